"""CUDA: functions of floats, doubles and integers, each against NumPy, Python's own or exact fractions."""

import fractions
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from bodies import cuda_body

_LINE: dict[str, Any] = {"grid": (64, 1, 1), "threadgroup": (32, 1, 1)}
_HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
_SINGLE, _DOUBLE = 2.0**-20, 2.0**-46  # what CUDA's functions may be off, and some more


def _uniform(low: float, high: float, dtype: str, **more: Any) -> Callable[..., Any]:
    return lambda rng: {"x": rng.uniform(low, high, 64).astype(dtype)} | more


# ---- Of one number

_Function = Callable[[float], float]


def _bessel_j(order: int) -> _Function:
    """Its integral, which the rule of trapezoids gives to the last bit."""

    def function(x: float) -> float:
        t = np.linspace(0, np.pi, 201)
        values = np.cos(order * t - x * np.sin(t))
        return float((values.sum() - (values[0] + values[-1]) / 2) / 200)

    return function


def _bessel_y0(x: float) -> float:
    total, term, harmonic = 0.0, 1.0, 0.0
    for k in range(1, 40):
        term *= -(x * x / 4) / (k * k)
        harmonic += 1 / k
        total -= harmonic * term
    euler = 0.57721566490153286061
    return 2 / math.pi * ((math.log(x / 2) + euler) * _bessel_j(0)(x) + total)


def _bessel_y1(x: float) -> float:
    # J1 Y0 - J0 Y1 = 2 / (pi x)
    return (_bessel_j(1)(x) * _bessel_y0(x) - 2 / (math.pi * x)) / _bessel_j(0)(x)


def _bessel_i(order: int) -> _Function:
    def function(x: float) -> float:
        t = np.linspace(0, np.pi, 201)
        values = np.exp(x * np.cos(t)) * np.cos(order * t)
        return float((values.sum() - (values[0] + values[-1]) / 2) / 200)

    return function


def _normcdfinv(x: float) -> float:
    return statistics.NormalDist().inv_cdf(x)


def _half_turns(function: _Function) -> _Function:
    return lambda v: function(math.pi * math.remainder(v, 2))


# By row of tests/constructs.toml: what CUDA calls it, the reference, and where.
_OF_ONE: dict[str, tuple[tuple[float, float], dict[str, _Function]]] = {
    "exp exp2 exp10 expm1": ((-3, 5), {"exp": math.exp, "exp2": lambda v: 2**v, "exp10": lambda v: 10**v, "expm1": math.expm1}),
    "log log2 log10 log1p": ((1.5, 90), {"log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p}),
    "sin cos tan sinpi cospi": (
        (0.1, 0.45),
        {"sin": math.sin, "cos": math.cos, "tan": math.tan, "sinpi": _half_turns(math.sin), "cospi": _half_turns(math.cos)},
    ),
    "asin acos atan atanh": ((0.05, 0.95), {"asin": math.asin, "acos": math.acos, "atan": math.atan, "atanh": math.atanh}),
    "sinh cosh tanh asinh acosh": (
        (1.1, 4),
        {"sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh, "acosh": math.acosh},
    ),
    "sqrt rsqrt cbrt": (
        (0.1, 90),
        {"sqrt": math.sqrt, "rsqrt": lambda v: v**-0.5, "cbrt": lambda v: v ** (1 / 3), "rcbrt": lambda v: v ** (-1 / 3)},
    ),
    "erf erfc erfcx": (
        (0.1, 3),
        {"erf": math.erf, "erfc": math.erfc, "erfcx": lambda v: math.exp(v * v) * math.erfc(v)},
    ),
    "erfinv erfcinv normcdf normcdfinv": (
        (0.6, 0.95),
        {
            "erfinv": lambda v: _normcdfinv((1 + v) / 2) / math.sqrt(2),
            "erfcinv": lambda v: -_normcdfinv(v / 2) / math.sqrt(2),
            "normcdf": statistics.NormalDist().cdf,
            "normcdfinv": _normcdfinv,
        },
    ),
    "lgamma tgamma": ((2.5, 9), {"lgamma": math.lgamma, "tgamma": math.gamma}),
    "cyl_bessel_i0": ((0.5, 9), {"cyl_bessel_i0": _bessel_i(0), "cyl_bessel_i1": _bessel_i(1)}),
}  # fmt: skip

for _rows, (_ends, _functions) in _OF_ONE.items():
    for _dtype, _suffix in (("float32", "f"), ("float64", "")):

        def _one(x: np.ndarray, functions: Any = _functions) -> np.ndarray:
            return np.array([[function(float(v)) for v in x] for function in functions.values()])

        # Of floats by both names: with f, and without.
        _calls = [name + _suffix for name in _functions]
        cuda_body(
            _HEAD
            + "\n".join(f"y[{64 * k} + i] = {call}(x[i]);" for k, call in enumerate(_calls))
            + (
                "\n" + "\n".join(f"z[{64 * k} + i] = {name}(x[i]);" for k, name in enumerate(_functions))
                if _suffix
                else ""
            ),
            name=f"cuda_{_rows.split()[0]}_and_others_of_{_dtype}",
            inputs=_uniform(*_ends, _dtype),
            outputs={name: ((len(_functions), 64), _dtype) for name in ("y", *(("z",) if _suffix else ()))},
            tolerance=_SINGLE if _suffix else _DOUBLE,
            constructs=" ".join(f"cuda_math.{row}" for row in _rows.split()) if _suffix else "",
            **_LINE,
        )((lambda x, one=_one: (one(x), one(x))) if _suffix else _one)


@cuda_body(
    _HEAD
    + """
    y[i] = j0f(x[i]);
    y[64 + i] = j1f(x[i]);
    y[128 + i] = jnf(2, x[i]);
    y[192 + i] = y0f(x[i]);
    y[256 + i] = y1f(x[i]);
    y[320 + i] = ynf(2, x[i]);
    double v = x[i];
    z[i] = j0(v);
    z[64 + i] = j1(v);
    z[128 + i] = jn(2, v);
    z[192 + i] = y0(v);
    z[256 + i] = y1(v);
    z[320 + i] = yn(2, v);
    """,
    inputs=_uniform(1.0, 1.8, "float32"),
    outputs={"y": ((6, 64), "float32"), "z": ((6, 64), "float64")},
    tolerance=2**-16,  # close to a zero of y1 and yn
    constructs="cuda_math.j0 cuda_math.y0",
    **_LINE,
)
def cuda_bessel_functions(x):
    functions = [_bessel_j(0), _bessel_j(1), _bessel_j(2), _bessel_y0, _bessel_y1]
    rows = [[function(float(v)) for v in x] for function in functions]
    rows.append([2 / float(v) * _bessel_y1(float(v)) - _bessel_y0(float(v)) for v in x])
    return np.array(rows), np.array(rows)


@cuda_body(
    _HEAD
    + """
    float s, c;
    sincosf(x[i], &s, &c);
    y[i] = s - c;
    sincospif(x[i], &s, &c);
    y[64 + i] = s + 2 * c;
    double ds, dc, v = x[i];
    sincos(v, &ds, &dc);
    z[i] = ds - dc;
    sincospi(v, &ds, &dc);
    z[64 + i] = ds + 2 * dc;
    """,
    inputs=_uniform(0.05, 0.4, "float32"),
    outputs={"y": ((2, 64), "float32"), "z": ((2, 64), "float64")},
    tolerance=2**-19,
    constructs="cuda_math.sincos",
    **_LINE,
)
def cuda_sine_and_cosine(x):
    v = x.astype(np.float64)
    rows = np.stack([np.sin(v) - np.cos(v), np.sin(np.pi * v) + 2 * np.cos(np.pi * v)])
    return rows, rows


# ---- Exact ones


@cuda_body(
    _HEAD
    + """
    float v = x[i];
    y[i] = floorf(v); y[64 + i] = ceilf(v); y[128 + i] = truncf(v); y[192 + i] = rintf(v); y[256 + i] = roundf(v);
    y[320 + i] = nearbyintf(v); y[384 + i] = fabsf(v); y[448 + i] = logbf(v);
    double w = v;
    z[i] = floor(w); z[64 + i] = ceil(w); z[128 + i] = trunc(w); z[192 + i] = rint(w); z[256 + i] = round(w);
    z[320 + i] = nearbyint(w); z[384 + i] = fabs(w); z[448 + i] = logb(w);
    n[i] = lrintf(v); n[64 + i] = llrintf(v); n[128 + i] = lroundf(v); n[192 + i] = llroundf(v); n[256 + i] = ilogbf(v);
    n[320 + i] = lrint(w); n[384 + i] = llrint(w); n[448 + i] = lround(w); n[512 + i] = llround(w); n[576 + i] = ilogb(w);
    """,
    # Halves among them.
    inputs=lambda rng: {"x": np.where(rng.random(64) < 0.5, rng.integers(-9, 9, 64) + 0.5, rng.normal(size=64)).astype(np.float32)},
    outputs={"y": ((8, 64), "float32"), "z": ((8, 64), "float64"), "n": ((2, 5, 64), "int64")},
    constructs="cuda_math.floor cuda_math.ceil cuda_math.trunc cuda_math.rint cuda_math.round cuda_math.lrint cuda_math.fabs "
    "cuda_math.logb",
    **_LINE,
)  # fmt: skip
def cuda_whole_numbers(x):
    away = np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x)
    exponent = (np.frexp(x)[1] - 1).astype(np.float32)
    y = np.stack([np.floor(x), np.ceil(x), np.trunc(x), np.rint(x), away, np.rint(x), np.abs(x), exponent])
    n = np.stack([np.rint(x), np.rint(x), away, away, exponent]).astype(np.int64)
    return y.astype(np.float32), y.astype(np.float64), np.stack([n, n])


@cuda_body(
    _HEAD
    + """
    float v = a[i], w = b[i];
    y[i] = fminf(v, w); y[64 + i] = fmaxf(v, w); y[128 + i] = fdimf(v, w); y[192 + i] = fmodf(v, w);
    y[256 + i] = remainderf(v, w); y[320 + i] = copysignf(v, w); y[384 + i] = nextafterf(v, w); y[448 + i] = fmaf(v, w, v);
    int q;
    y[512 + i] = remquof(v, w, &q);
    n[i] = q & 7;
    double dv = v, dw = w;
    z[i] = fmin(dv, dw); z[64 + i] = fmax(dv, dw); z[128 + i] = fdim(dv, dw); z[192 + i] = fmod(dv, dw);
    z[256 + i] = remainder(dv, dw); z[320 + i] = copysign(dv, dw); z[384 + i] = nextafter(dv, dw);
    z[448 + i] = fma(dv, dw, dv);
    z[512 + i] = remquo(dv, dw, &q);
    n[64 + i] = q & 7;
    """,
    inputs=lambda rng: {"a": rng.integers(-99, 99, 64).astype(np.float32) / 4, "b": rng.integers(1, 30, 64).astype(np.float32) / 4},
    outputs={"y": ((9, 64), "float32"), "z": ((9, 64), "float64"), "n": ((2, 64), "int32")},
    constructs="cuda_math.fmin cuda_math.fmax cuda_math.fdim cuda_math.fmod cuda_math.remainder cuda_math.copysign "
    "cuda_math.nextafter cuda_math.fma",
    **_LINE,
)  # fmt: skip
def cuda_exact_functions_of_two(a, b):
    def rows(a, b):
        left = np.array([math.remainder(float(v), float(w)) for v, w in zip(a, b, strict=True)])
        parts = [np.minimum(a, b), np.maximum(a, b), np.maximum(a - b, 0), np.fmod(a, b), left.astype(a.dtype)]
        return np.stack([*parts, np.copysign(a, b), np.nextafter(a, b), a * b + a, left.astype(a.dtype)])

    exact = [round(fractions.Fraction(float(v)) / fractions.Fraction(float(w))) for v, w in zip(a, b, strict=True)]
    # The sign is the quotient's, the magnitude its last three bits.
    quotient = np.array([(abs(q) & 7) * (1 if q >= 0 else -1) & 7 for q in exact], np.int32)
    return rows(a, b), rows(a.astype(np.float64), b.astype(np.float64)), np.stack([quotient, quotient])


@cuda_body(
    _HEAD
    + """
    int e;
    float whole, v = x[i];
    y[i] = frexpf(v, &e); n[i] = e;
    y[64 + i] = modff(v, &whole); y[128 + i] = whole;
    y[192 + i] = ldexpf(v, i % 5); y[256 + i] = scalbnf(v, -3); y[320 + i] = scalblnf(v, 7l);
    double w = v, dwhole;
    z[i] = frexp(w, &e); n[64 + i] = e;
    z[64 + i] = modf(w, &dwhole); z[128 + i] = dwhole;
    z[192 + i] = ldexp(w, i % 5); z[256 + i] = scalbn(w, -3); z[320 + i] = scalbln(w, 7l);
    """,
    inputs=_uniform(-50, 50, "float32"),
    outputs={"y": ((6, 64), "float32"), "z": ((6, 64), "float64"), "n": ((2, 64), "int32")},
    constructs="cuda_math.frexp cuda_math.modf cuda_math.ldexp",
    **_LINE,
)
def cuda_parts_of_numbers(x):
    fraction, exponent = np.frexp(x)
    scaled = [np.ldexp(x, np.arange(64) % 5), np.ldexp(x, -3), np.ldexp(x, 7)]
    rows = np.stack([fraction, x - np.trunc(x), np.trunc(x), *scaled])
    return rows, rows.astype(np.float64), np.stack([exponent, exponent]).astype(np.int32)


# ---- Of several numbers


@cuda_body(
    _HEAD
    + """
    float v = a[i], w = b[i], all[5] = {v, w, v, w, 1.0f};
    double dv = v, dw = w, every[5] = {dv, dw, dv, dw, 1.0};
    y[i] = powf(v, w); y[64 + i] = atan2f(v, w); y[128 + i] = hypotf(v, w); y[192 + i] = rhypotf(v, w);
    y[256 + i] = norm3df(v, w, 1); y[320 + i] = norm4df(v, w, 1, 2); y[384 + i] = normf(5, all);
    y[448 + i] = rnorm3df(v, w, 1); y[512 + i] = rnorm4df(v, w, 1, 2); y[576 + i] = rnormf(5, all);
    y[640 + i] = fdividef(v, w); y[704 + i] = __fdividef(v, w);
    z[i] = pow(dv, dw); z[64 + i] = atan2(dv, dw); z[128 + i] = hypot(dv, dw); z[192 + i] = rhypot(dv, dw);
    z[256 + i] = norm3d(dv, dw, 1); z[320 + i] = norm4d(dv, dw, 1, 2); z[384 + i] = norm(5, every);
    z[448 + i] = rnorm3d(dv, dw, 1); z[512 + i] = rnorm4d(dv, dw, 1, 2); z[576 + i] = rnorm(5, every);
    z[640 + i] = dv / dw; z[704 + i] = dv / dw;
    """,
    inputs=lambda rng: {"a": rng.uniform(0.5, 5, 64).astype(np.float32), "b": rng.uniform(0.5, 5, 64).astype(np.float32)},
    outputs={"y": ((12, 64), "float32"), "z": ((12, 64), "float64")},
    tolerance=_SINGLE,
    constructs="cuda_math.pow cuda_math.atan2 cuda_math.hypot cuda_math.norm cuda_math.fdividef cuda_intrinsics.__fdividef",
    **_LINE,
)  # fmt: skip
def cuda_functions_of_several(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    three, four, five = np.sqrt(a * a + b * b + 1), np.sqrt(a * a + b * b + 5), np.sqrt(2 * a * a + 2 * b * b + 1)
    rows = [a**b, np.arctan2(a, b), np.hypot(a, b), 1 / np.hypot(a, b), three, four, five]
    rows += [1 / three, 1 / four, 1 / five, a / b, a / b]
    return np.stack(rows), np.stack(rows)


@cuda_body(
    _HEAD
    + """
    // Floats with integers are floats; integers alone are doubles.
    y[i] = fmod(x[i], 3) + fmax(x[i], 2) - fmin(1, x[i]) + pow(x[i], 2) + hypot(x[i], 4) + copysign(x[i], -1.0f);
    z[i] = pow(double(x[i]), 3) + max(x[i], 2.5) + min(1.5, x[i]);
    n[i] = sizeof(sqrt(x[i])) + 10 * sizeof(exp(double(i))) + 100 * sizeof(max(x[i], 1.0f)) + 1000 * sizeof(fabs(x[i]));
    """,
    inputs=_uniform(3.5, 9, "float32"),
    outputs={"y": ((64,), "float32"), "z": ((64,), "float64"), "n": ((64,), "int32")},
    tolerance=_SINGLE,
    constructs="cuda_math.overloads",
    **_LINE,
)
def cuda_overloads(x):
    v = x.astype(np.float64)
    y = np.fmod(v, 3) + v - 1 + v**2 + np.hypot(v, 4) - v
    return y, v**3 + v + 1.5, np.full(64, 4484, np.int32)


@cuda_body(
    _HEAD
    + """
    float f = x[i];
    double d = f;
    unsigned u = i * 0x9e3779b9u, w = ~u;
    y[i] = isnan(f) + 2 * isinf(f) + 4 * isfinite(f) + 8 * (signbit(f) != 0)
         + 16 * isnan(d) + 32 * isinf(d) + 64 * isfinite(d) + 128 * (signbit(d) != 0)
         + 2048 * (__isnanf(f) != 0) + 4096 * (__isinff(f) != 0) + 8192 * (__finitef(f) != 0)
         + 16384 * (__isnan(d) != 0) + 32768 * (__isinf(d) != 0) + 65536 * (__finite(d) != 0)
         + 256 * isnan(nanf("")) + 512 * isnan(nan("1")) + 1024 * (f > INFINITY || f == NAN);
    y[64 + i] = (min(u, w) == umin(u, w)) + 2 * (max(u, w) == umax(u, w)) + 4 * (min(i, 5u) == (i < 5 ? i : 5))
              + 8 * (llmin(-3ll, i) == -3) + 16 * (llmax(-3ll, i) == i) + 32 * (ullmin(7ull, u) == min(7ull, (unsigned long long)u))
              + 64 * (ullmax(7ull, u) == max(7ull, (unsigned long long)u)) + 128 * (min(2l, -2l) == -2) + 256 * (max(-1, 1) == 1);
    y[128 + i] = abs(-i) + 100 * labs(-2l) + 1000 * (llabs(-3ll) == 3) + 10000 * (abs(-1.5f) == 1.5f) + 100000 * (abs(-1.5) == 1.5);
    """,
    inputs=lambda rng: {"x": rng.choice(np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -2.5, 1e-40], np.float32), 64)},
    outputs={"y": ((3, 64), "int32")},
    constructs="cuda_math.isnan cuda_math.__isnanf cuda_math.nan cuda_math.min cuda_math.abs cuda_types.INFINITY",
    **_LINE,
)
def cuda_kinds_of_numbers(x):
    kind = np.isnan(x) + 2 * np.isinf(x) + 4 * np.isfinite(x) + 8 * np.signbit(x)
    return np.stack([kind * 17 + (kind & 7) * (2048 + 16384) + 768, np.full(64, 511), 111200 + np.arange(64)]).astype(
        np.int32
    )


@cuda_body(
    _HEAD
    + """
    float s, c;
    y[i] = __expf(x[i]); y[64 + i] = __exp10f(x[i]); y[128 + i] = __logf(x[i]); y[192 + i] = __log2f(x[i]);
    y[256 + i] = __log10f(x[i]); y[320 + i] = __powf(x[i], 1.5f); y[384 + i] = __sinf(x[i]); y[448 + i] = __cosf(x[i]);
    y[512 + i] = __tanf(x[i]);
    __sincosf(x[i], &s, &c);
    y[576 + i] = s + 2 * c;
    y[640 + i] = __saturatef(x[i] - 1.5f);
    y[704 + i] = __frsqrt_rn(x[i]);
    """,
    inputs=_uniform(0.3, 0.7, "float32"),
    outputs={"y": ((12, 64), "float32")},
    tolerance=2**-17,
    constructs="cuda_intrinsics.__expf cuda_intrinsics.__saturatef cuda_intrinsics.__frsqrt_rn",
    **_LINE,
)
def cuda_functions_in_hardware(x):
    v = x.astype(np.float64)
    rows = [np.exp(v), 10**v, np.log(v), np.log2(v), np.log10(v), v**1.5, np.sin(v), np.cos(v), np.tan(v)]
    return np.stack([*rows, np.sin(v) + 2 * np.cos(v), np.zeros(64), 1 / np.sqrt(v)])


# ---- Arithmetic that rounds in a direction


def _rounded(exact: fractions.Fraction, dtype: Any, direction: str) -> Any:
    """The nearest, or the next in a direction: not below an infinite one, where it is too large."""
    if exact == 0:
        return dtype(0)
    limits = np.finfo(dtype)
    exponent = max(_exponent(exact), limits.minexp + 1)
    step = fractions.Fraction(2) ** (exponent - limits.nmant - 1)
    steps = exact / step
    sign = -1.0 if exact < 0 else 1.0
    choices: dict[str, Any] = {"n": round, "z": math.trunc, "d": math.floor, "u": math.ceil}
    whole = choices[direction](steps)
    value = whole * step
    largest = fractions.Fraction(float(limits.max))
    if abs(value) > largest:
        inward = direction == "z" or ((direction == "d") == (value > 0) and direction in "du")
        return dtype(math.copysign(float(limits.max) if inward else math.inf, sign))
    return dtype(math.copysign(float(value), sign))


def _exponent(exact: fractions.Fraction) -> int:
    """What math.frexp() gives."""
    a = abs(exact)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    return e + 1 if a >= fractions.Fraction(2) ** e else e


def _root(exact: fractions.Fraction, dtype: Any, direction: str) -> Any:
    # With many more bits than a result has, and one more that says whether anything is lost.
    shift = 2 * 700
    scaled = exact.numerator * 2 ** (2 * shift) // exact.denominator
    r = math.isqrt(scaled)
    lost = fractions.Fraction(1, 2) if r * r != scaled or exact.numerator * 2 ** (2 * shift) % exact.denominator else 0
    return _rounded((r + lost) / fractions.Fraction(2) ** shift, dtype, direction)


def _directed(word: str, dtype: Any, direction: str, *arguments: np.ndarray) -> np.ndarray:
    apply: dict[str, Callable[..., fractions.Fraction]] = {
        "add": lambda a, b, c: a + b,
        "sub": lambda a, b, c: a - b,
        "mul": lambda a, b, c: a * b,
        "div": lambda a, b, c: a / b,
        "rcp": lambda a, b, c: 1 / a,
        "fma": lambda a, b, c: a * b + c,
    }
    result = []
    for values in zip(*arguments, strict=True):
        a, b, c = (fractions.Fraction(float(v)) for v in values)
        value = _root(abs(a), dtype, direction) if word == "sqrt" else _rounded(apply[word](a, b, c), dtype, direction)
        # Zeros of opposite signs, and what cancels, are -0 where one rounds down.
        if value == 0 and direction == "d" and word in ("add", "sub", "fma") and apply[word](a, b, c) == 0:
            value = dtype(-0.0)
        result.append(value)
    return np.array(result, dtype)


_DIRECTED = {
    np.float32: {
        "add": "__fadd_{}(a[i], b[i])",
        "sub": "__fsub_{}(a[i], b[i])",
        "mul": "__fmul_{}(a[i], b[i])",
        "div": "__fdiv_{}(a[i], b[i])",
        "rcp": "__frcp_{}(a[i])",
        "sqrt": "__fsqrt_{}(fabsf(a[i]))",
        "fma": "__fmaf_{}(a[i], b[i], c[i])",
    },
    np.float64: {
        "add": "__dadd_{}(a[i], b[i])",
        "sub": "__dsub_{}(a[i], b[i])",
        "mul": "__dmul_{}(a[i], b[i])",
        "div": "__ddiv_{}(a[i], b[i])",
        "rcp": "__drcp_{}(a[i])",
        "sqrt": "__dsqrt_{}(fabs(a[i]))",
        "fma": "__fma_{}(a[i], b[i], c[i])",
    },
}


def _numbers(dtype: Any) -> Callable[..., Any]:
    """Ordinary ones, and such as are tiny, huge, far apart, or cancel."""
    limits = np.finfo(dtype)

    def inputs(rng: Any) -> dict[str, np.ndarray]:
        def some() -> np.ndarray:
            values = (rng.uniform(1, 2, 64) * rng.choice([-1, 1], 64)).astype(dtype)
            exponents = rng.integers(-3, 4, 64)
            # To the ends of the range in the last half.
            exponents[32:] = rng.integers(limits.minexp + 1, limits.maxexp - 1, 32)
            return np.ldexp(values, exponents).astype(dtype)

        a, b, c = some(), some(), some()
        a[40:44] = limits.smallest_subnormal * np.array([1, -3, 5, 7])
        b[44:48] = limits.max
        c[:4] = -(a[:4] * b[:4])  # nearly cancels
        b[4:6] = -a[4:6]
        a[6:8], b[6:8], c[6:8] = 3, 5, -15  # cancels
        a[8:12], b[8:12], c[8:12] = limits.max, 1, limits.max
        return {"a": a, "b": b, "c": c}

    return inputs


for _type, _words in _DIRECTED.items():
    for _word, _call in _words.items():
        _directions = "nzdu"

        def _all_directions(a, b, c, word=_word, dtype=_type):
            return np.stack([_directed(word, dtype, direction, a, b, c) for direction in "nzdu"])

        _fixed = _call.split("(")[0].removesuffix("_{}")
        cuda_body(
            _HEAD + "\n".join(f"y[{64 * k} + i] = {_call.format('r' + d)};" for k, d in enumerate("nzdu")),
            name=f"cuda_directed{_fixed[1:]}",
            inputs=_numbers(_type),
            outputs={"y": ((4, 64), np.dtype(_type).name)},
            constructs=f"cuda_intrinsics.{_fixed}_rn",
            **_LINE,
        )(_all_directions)


@cuda_body(
    _HEAD
    + """
    y[i] = __fmaf_ieee_rn(a[i], b[i], c[i]);
    y[64 + i] = __fmaf_ieee_rz(a[i], b[i], c[i]);
    y[128 + i] = __fmaf_ieee_rd(a[i], b[i], c[i]);
    y[192 + i] = __fmaf_ieee_ru(a[i], b[i], c[i]);
    """,
    inputs=_numbers(np.float32),
    outputs={"y": ((4, 64), "float32")},
    constructs="cuda_intrinsics.__fmaf_ieee_rn",
    **_LINE,
)
def cuda_directed_fmaf_ieee(a, b, c):
    return np.stack([_directed("fma", np.float32, direction, a, b, c) for direction in "nzdu"])


# ---- Conversions

_INTEGERS: dict[str, Any] = {
    "int": ("int32", np.int32),
    "uint": ("uint32", np.uint32),
    "ll": ("int64", np.int64),
    "ull": ("uint64", np.uint64),
}
for _word, (_dtype, _integer) in _INTEGERS.items():

    def _to_integers(x, integer=_integer):
        rows = [function(x) for function in (np.rint, np.trunc, np.floor, np.ceil)]
        return (np.stack(rows).astype(integer),) * 2

    _is_signed = np.iinfo(_integer).min < 0
    cuda_body(
        _HEAD
        + "\n".join(
            f"y[{64 * k} + i] = __float2{_word}_{r}(x[i]); z[{64 * k} + i] = __double2{_word}_{r}(double(x[i]));"
            for k, r in enumerate(("rn", "rz", "rd", "ru"))
        ),
        name=f"cuda_{_word}_of_floats",
        inputs=_uniform(-900 if _is_signed else 1, 900, "float32"),
        outputs={"y": ((4, 64), _dtype), "z": ((4, 64), _dtype)},
        constructs=f"cuda_intrinsics.__float2{_word}_rn cuda_intrinsics.__double2{_word}_rn",
        **_LINE,
    )(_to_integers)

    def _from_integers(x):
        def row(direction):
            return [_rounded(fractions.Fraction(int(v)), np.float32, direction) for v in x]

        return np.array([row(direction) for direction in "nzdu"], np.float32)

    cuda_body(
        _HEAD + "\n".join(f"y[{64 * k} + i] = __{_word}2float_{r}(x[i]);" for k, r in enumerate(("rn", "rz", "rd", "ru"))),
        name=f"cuda_floats_of_{_word}",
        inputs=lambda rng, t=_integer: {
            "x": np.append(rng.integers(np.iinfo(t).min, np.iinfo(t).max, 61, t), np.array([np.iinfo(t).max, np.iinfo(t).min, 1], t))
        },
        outputs={"y": ((4, 64), "float32")},
        constructs=f"cuda_intrinsics.__{_word}2float_rn",
        **_LINE,
    )(_from_integers)  # fmt: skip


@cuda_body(
    _HEAD
    + """
    long long v = x[i];
    unsigned long long u = v;
    y[i] = __ll2double_rn(v); y[64 + i] = __ll2double_rz(v); y[128 + i] = __ll2double_rd(v); y[192 + i] = __ll2double_ru(v);
    y[256 + i] = __ull2double_rn(u); y[320 + i] = __ull2double_rz(u); y[384 + i] = __ull2double_rd(u);
    y[448 + i] = __ull2double_ru(u);
    y[512 + i] = __int2double_rn((int)v); y[576 + i] = __uint2double_rn((unsigned)v);
    """,
    inputs=lambda rng: {"x": rng.integers(-(2**63), 2**63 - 1, 64)},
    outputs={"y": ((10, 64), "float64")},
    constructs="cuda_intrinsics.__int2double_rn cuda_intrinsics.__ll2double_rn",
    **_LINE,
)
def cuda_doubles_of_integers(x):
    rows = []
    for values in (x, x.view(np.uint64)):
        rows += [[_rounded(fractions.Fraction(int(v)), np.float64, d) for v in values] for d in "nzdu"]
    return np.array([*rows, x.astype(np.int32), x.astype(np.uint32)], np.float64)


@cuda_body(
    _HEAD
    + """
    y[i] = __double2float_rn(x[i]);
    y[64 + i] = __double2float_rz(x[i]);
    y[128 + i] = __double2float_rd(x[i]);
    y[192 + i] = __double2float_ru(x[i]);
    """,
    inputs=lambda rng: {"x": rng.normal(size=64) * 10.0 ** rng.integers(-44, 39, 64)},
    outputs={"y": ((4, 64), "float32")},
    constructs="cuda_intrinsics.__double2float_rn",
    **_LINE,
)
def cuda_floats_of_doubles(x):
    return np.array([[_rounded(fractions.Fraction(float(v)), np.float32, d) for v in x] for d in "nzdu"], np.float32)


@cuda_body(
    _HEAD
    + """
    float f = x[i];
    double d = (double)f * f + 1;
    y[i] = __float_as_int(f) ^ 5;
    y[64 + i] = __float_as_uint(__uint_as_float(__float_as_uint(f) + 1)) - __float_as_int(__int_as_float(__float_as_int(f)));
    y[128 + i] = __double2hiint(d);
    y[192 + i] = __double2loint(d);
    y[256 + i] = __double_as_longlong(__hiloint2double(__double2hiint(d), __double2loint(d))) == __double_as_longlong(d);
    y[320 + i] = __double_as_longlong(__longlong_as_double(0x123456789abcdefll + i)) >> 20;
    """,
    inputs=_uniform(-9, 9, "float32"),
    outputs={"y": ((6, 64), "int32")},
    constructs="cuda_intrinsics.__float_as_int cuda_intrinsics.__double_as_longlong",
    **_LINE,
)
def cuda_bits_of_numbers(x):
    d = (x.astype(np.float64) * x + 1).view(np.int64)
    rows = [x.view(np.int32) ^ 5, np.ones(64), d >> 32, d, np.ones(64), (0x123456789ABCDEF + np.arange(64)) >> 20]
    return np.stack([np.asarray(row, np.int64).astype(np.int32) for row in rows])


# ---- Integers


def _two_words(rng: Any) -> dict[str, np.ndarray]:
    return {
        "a": rng.integers(0, 2**32, 64, np.uint32),
        "b": rng.integers(0, 2**32, 64, np.uint32),
    }


@cuda_body(
    _HEAD
    + """
    unsigned v = a[i] >> (i % 32), w = b[i];
    unsigned long long l = ((unsigned long long)v << 32) | w;
    y[i] = __popc(v); y[64 + i] = __popcll(l); y[128 + i] = __clz(v); y[192 + i] = __clzll(l);
    y[256 + i] = __ffs(v); y[320 + i] = __ffsll(l); y[384 + i] = __brev(v); y[448 + i] = __brevll(l) >> 7;
    y[512 + i] = __byte_perm(v, w, 0x7025); y[576 + i] = __nv_bswap32(v); y[640 + i] = __nv_bswap16((unsigned short)v);
    y[704 + i] = __nv_bswap64(l) >> 13; y[768 + i] = __fns(v, 0, 2);
    """,
    inputs=_two_words,
    outputs={"y": ((13, 64), "uint32")},
    constructs="cuda_integers.__popc cuda_integers.__clz cuda_integers.__ffs cuda_integers.__fns cuda_integers.__brev "
    "cuda_integers.__byte_perm cuda_integers.__nv_bswap32",
    **_LINE,
)
def cuda_bits_of_integers(a, b):
    columns = []
    for i in range(64):
        v, w = int(a[i]) >> (i % 32), int(b[i])
        n = v << 32 | w
        chosen = v.to_bytes(4, "little") + w.to_bytes(4, "little")
        second = [k for k in range(32) if v >> k & 1]
        columns.append([
            v.bit_count(), n.bit_count(), 32 - v.bit_length(), 64 - n.bit_length(),
            (v & -v).bit_length(), (n & -n).bit_length(), int(f"{v:032b}"[::-1], 2), int(f"{n:064b}"[::-1], 2) >> 7,
            int.from_bytes(bytes(chosen[k] for k in (5, 2, 0, 7)), "little"),
            int.from_bytes(v.to_bytes(4, "little"), "big"), int.from_bytes((v & 65535).to_bytes(2, "little"), "big"),
            int.from_bytes(n.to_bytes(8, "little"), "big") >> 13, second[1] if len(second) > 1 else 2**32 - 1,
        ])  # fmt: skip
    return (np.array(columns, np.uint64).T & 0xFFFFFFFF).astype(np.uint32)


@cuda_body(
    _HEAD
    + """
    unsigned v = a[i], w = b[i];
    int s = v, t = w;
    long long l = (long long)s * 0x123456789ll + t, m = (long long)t << 13;
    y[i] = __funnelshift_l(v, w, i); y[64 + i] = __funnelshift_lc(v, w, i); y[128 + i] = __funnelshift_r(v, w, i);
    y[192 + i] = __funnelshift_rc(v, w, i); y[256 + i] = __mulhi(s, t); y[320 + i] = __umulhi(v, w);
    y[384 + i] = __mul64hi(l, m); y[448 + i] = __umul64hi((unsigned long long)l, (unsigned long long)m);
    y[512 + i] = __mul24(s, t); y[576 + i] = __umul24(v, w); y[640 + i] = __hadd(s, t); y[704 + i] = __rhadd(s, t);
    y[768 + i] = __uhadd(v, w); y[832 + i] = __urhadd(v, w); y[896 + i] = __sad(s, t, 7u); y[960 + i] = __usad(v, w, 7u);
    """,
    inputs=_two_words,
    outputs={"y": ((16, 64), "uint32")},
    constructs="cuda_integers.__funnelshift_l cuda_integers.__mulhi cuda_integers.__mul24 cuda_integers.__hadd "
    "cuda_integers.__sad",
    **_LINE,
)
def cuda_products_of_integers(a, b):
    def signed(n, bits):
        n &= (1 << bits) - 1
        return n - (1 << bits) if n >> (bits - 1) else n

    columns = []
    for i in range(64):
        v, w = int(a[i]), int(b[i])
        s, t, both = signed(v, 32), signed(w, 32), w << 32 | v
        n, m = signed(s * 0x123456789 + t, 64), signed(t << 13, 64)
        columns.append([
            (both << i % 32) >> 32, (both << min(i, 32)) >> 32, both >> i % 32, both >> min(i, 32),
            s * t >> 32, v * w >> 32, n * m >> 64, (n % 2**64) * (m % 2**64) >> 64,
            signed(v, 24) * signed(w, 24), (v % 2**24) * (w % 2**24), (s + t) >> 1, (s + t + 1) >> 1,
            (v + w) >> 1, (v + w + 1) >> 1, abs(s - t) + 7, abs(v - w) + 7,
        ])  # fmt: skip
    return np.array([[n % 2**32 for n in column] for column in columns], np.uint32).T


@cuda_body(
    _HEAD
    + """
    unsigned v = a[i], w = b[i];
    char4 cv = *reinterpret_cast<char4*>(&v), cw = *reinterpret_cast<char4*>(&w);
    uchar4 uv = *reinterpret_cast<uchar4*>(&v), uw = *reinterpret_cast<uchar4*>(&w);
    short2 sv = *reinterpret_cast<short2*>(&v);
    ushort2 hv = *reinterpret_cast<ushort2*>(&v);
    y[i] = __dp4a((int)v, (int)w, i) - __dp4a(cv, cw, 0);
    y[64 + i] = __dp4a(cv, cw, i);
    y[128 + i] = __dp4a(v, w, 3u) + 0 * __dp4a(uv, uw, 3u);
    y[192 + i] = __dp4a(uv, uw, 3u);
    y[256 + i] = __dp2a_lo((int)v, (int)w, 5) - __dp2a_lo(sv, cw, 0);
    y[320 + i] = __dp2a_lo(sv, cw, 5);
    y[384 + i] = __dp2a_hi(sv, cw, 5);
    y[448 + i] = __dp2a_lo(hv, uw, 5u);
    y[512 + i] = __dp2a_hi(hv, uw, 5u) - __dp2a_hi(v, w, 0u);
    y[576 + i] = __dp2a_hi(v, w, 5u);
    """,
    inputs=_two_words,
    outputs={"y": ((10, 64), "int32")},
    constructs="cuda_integers.__dp4a cuda_integers.__dp2a_lo",
    **_LINE,
)
def cuda_products_of_bytes(a, b):
    i = np.arange(64)
    signed = [v.view(np.int8).reshape(64, 4).astype(np.int64) for v in (a, b)]
    plain = [v.view(np.uint8).reshape(64, 4).astype(np.int64) for v in (a, b)]
    halves = [a.view(t).reshape(64, 2).astype(np.int64) for t in (np.int16, np.uint16)]
    four, uour = (signed[0] * signed[1]).sum(1), (plain[0] * plain[1]).sum(1)
    low, high = ((halves[0] * signed[1][:, k : k + 2]).sum(1) for k in (0, 2))
    ulow, uhigh = ((halves[1] * plain[1][:, k : k + 2]).sum(1) for k in (0, 2))
    rows = [i, four + i, uour + 3, uour + 3, np.full(64, 5), low + 5, high + 5, ulow + 5, np.full(64, 5), uhigh + 5]
    return np.stack(rows).astype(np.int32)


# ---- Bytes and halves of a word


def _parts(v: np.ndarray, bits: int, is_signed: bool) -> np.ndarray:
    return v.view(f"{'i' if is_signed else 'u'}{bits // 8}").astype(np.int64)


def _as_words(parts: np.ndarray, bits: int) -> np.ndarray:
    return (parts & (2**bits - 1)).astype(f"u{bits // 8}").view(np.uint32)


def _clipped(parts: np.ndarray, bits: int, is_signed: bool) -> np.ndarray:
    low = -(2 ** (bits - 1)) if is_signed else 0
    return np.clip(parts, low, low + 2**bits - 1)


_SIGNED, _PLAIN = True, False
_PACKED: dict[str, Any] = {
    "__vadd4": {"vadd": (_PLAIN, lambda p, q, c: p + q), "vsub": (_PLAIN, lambda p, q, c: p - q)},
    "__vaddss4": {
        "vaddss": (_SIGNED, lambda p, q, c: c(p + q)),
        "vaddus": (_PLAIN, lambda p, q, c: c(p + q)),
        "vsubss": (_SIGNED, lambda p, q, c: c(p - q)),
        "vsubus": (_PLAIN, lambda p, q, c: c(p - q)),
    },
    "__vabs4": {
        "vabs": (_SIGNED, lambda p, c: abs(p)),
        "vabsss": (_SIGNED, lambda p, c: c(abs(p))),
        "vneg": (_SIGNED, lambda p, c: -p),
        "vnegss": (_SIGNED, lambda p, c: c(-p)),
    },
    "__vabsdiffu4": {
        "vabsdiffs": (_SIGNED, lambda p, q, c: abs(p - q)),
        "vabsdiffu": (_PLAIN, lambda p, q, c: abs(p - q)),
    },
    "__vavgu4": {
        "vavgs": (_SIGNED, lambda p, q, c: (p + q + (p + q >= 0)) >> 1),
        "vavgu": (_PLAIN, lambda p, q, c: (p + q + 1) >> 1),
        "vhaddu": (_PLAIN, lambda p, q, c: (p + q) >> 1),
    },
    "__vmaxs4": {
        "vmaxs": (_SIGNED, lambda p, q, c: np.maximum(p, q)),
        "vmaxu": (_PLAIN, lambda p, q, c: np.maximum(p, q)),
        "vmins": (_SIGNED, lambda p, q, c: np.minimum(p, q)),
        "vminu": (_PLAIN, lambda p, q, c: np.minimum(p, q)),
    },
} | {
    f"__v{kind}eq4": {
        f"v{kind}{word}{sign}": (sign == "s", lambda p, q, c, f=function, yes=yes: np.where(f(p, q), yes, 0))
        for word, function in {"eq": np.equal, "ne": np.not_equal, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less}.items()
        for sign in ("su" if word not in ("eq", "ne") else ("",))
    }
    for kind, yes in (("cmp", -1), ("set", 1))
}  # fmt: skip
for _row, _of_row in _PACKED.items():
    _lines: list[str] = []
    for _name in _of_row:
        _arguments = "(a[i])" if _row == "__vabs4" else "(a[i], b[i])"
        _lines += [f"y[{64 * (len(_lines) + k)} + i] = __{_name}{2 + 2 * k}{_arguments};" for k in range(2)]

    def _packed(a, b, of_row=_of_row, row=_row):
        rows = []
        for is_signed, function in of_row.values():
            for bits in (16, 8):
                inputs = [_parts(v, bits, is_signed) for v in ((a,) if row == "__vabs4" else (a, b))]
                rows.append(_as_words(function(*inputs, lambda p, n=bits, s=is_signed: _clipped(p, n, s)), bits))
        return np.stack(rows)

    cuda_body(
        _HEAD + "\n".join(_lines),
        name=f"cuda_packed{_row[1:]}",
        # Some parts are equal, some at the ends.
        inputs=lambda rng: {
            "a": rng.choice(np.array([0, 1, 5, 0x7F, 0x80, 0xFF, 0x3C], np.uint8), 256).view(np.uint32),
            "b": rng.choice(np.array([0, 1, 5, 0x7F, 0x80, 0xFF, 0xC3], np.uint8), 256).view(np.uint32),
        },
        outputs={"y": ((2 * len(_of_row), 64), "uint32")},
        constructs=f"cuda_packed_integers.{_row}",
        **_LINE,
    )(_packed)


@cuda_body(
    _HEAD
    + """
    y[i] = __vsads2(a[i], b[i]);
    y[64 + i] = __vsads4(a[i], b[i]);
    y[128 + i] = __vsadu2(a[i], b[i]);
    y[192 + i] = __vsadu4(a[i], b[i]);
    """,
    inputs=_two_words,
    outputs={"y": ((4, 64), "uint32")},
    constructs="cuda_packed_integers.__vsadu4",
    **_LINE,
)
def cuda_sums_of_distances(a, b):
    rows = []
    for is_signed in (True, False):
        for bits in (16, 8):
            distance = np.abs(_parts(a, bits, is_signed) - _parts(b, bits, is_signed))
            rows.append(distance.reshape(64, -1).sum(1))
    return np.stack(rows).astype(np.uint32)


_EXTREMES = [("max", np.maximum, np.greater_equal), ("min", np.minimum, np.less_equal)]


def _of_kind(v: np.ndarray, kind: str) -> np.ndarray:
    return {"s32": lambda: v.view(np.int32), "u32": lambda: v, "s16x2": lambda: v.view(np.int16), "u16x2": lambda: v.view(np.uint16)}[kind]()  # fmt: skip


@cuda_body(
    _HEAD
    + "\n".join(
        f"y[{64 * (6 * n + k)} + i] = __viadd{word}_{kind}(a[i], b[i], c[i]);"
        for n, (word, _, _) in enumerate(_EXTREMES)
        for k, kind in enumerate(("s32", "u32", "s16x2", "u16x2", "s32_relu", "s16x2_relu"))
    ),
    inputs=lambda rng: _two_words(rng) | {"c": rng.integers(0, 2**32, 64, np.uint32)},
    outputs={"y": ((12, 64), "uint32")},
    constructs="cuda_packed_integers.__viaddmax_s32",
    **_LINE,
)
def cuda_extremes_of_sums(a, b, c):
    rows = []
    for _, choose, _ in _EXTREMES:
        for kind in ("s32", "u32", "s16x2", "u16x2", "s32_relu", "s16x2_relu"):
            p, q, r = (_of_kind(v, kind.removesuffix("_relu")) for v in (a, b, c))
            value = choose(p + q, r)
            rows.append((np.maximum(value, 0) if "relu" in kind else value).astype(value.dtype).view(np.uint32))
    return np.stack(rows)


@cuda_body(
    _HEAD
    + "\n".join(
        f"y[{64 * (8 * n + k)} + i] = __vi{word}{call};"
        for n, (word, _, _) in enumerate(_EXTREMES)
        for k, call in enumerate(
            [f"3_{kind}(a[i], b[i], c[i])" for kind in ("s32", "u32", "s16x2", "u16x2", "s32_relu", "s16x2_relu")]
            + ["_s32_relu(a[i], b[i])", "_s16x2_relu(a[i], b[i])"]
        )
    ),
    inputs=lambda rng: _two_words(rng) | {"c": rng.integers(0, 2**32, 64, np.uint32)},
    outputs={"y": ((16, 64), "uint32")},
    constructs="cuda_packed_integers.__vimax3_s32",
    **_LINE,
)
def cuda_extremes_of_three(a, b, c):
    rows = []
    for _, choose, _ in _EXTREMES:
        for kind in ("s32", "u32", "s16x2", "u16x2", "s32_relu", "s16x2_relu", "s32_relu two", "s16x2_relu two"):
            p, q, r = (_of_kind(v, kind.split("_")[0]) for v in (a, b, c))
            value = choose(p, q) if "two" in kind else choose(choose(p, q), r)
            rows.append((np.maximum(value, 0) if "relu" in kind else value).astype(value.dtype).view(np.uint32))
    return np.stack(rows)


@cuda_body(
    _HEAD
    + "bool first, low, high;\n"
    + "\n".join(
        f"y[{256 * n} + i] = __vib{word}_s32(a[i], b[i], &first); w[{256 * n} + i] = first;\n"
        f"y[{256 * n + 64} + i] = __vib{word}_u32(a[i], b[i], &first); w[{256 * n + 64} + i] = first;\n"
        f"y[{256 * n + 128} + i] = __vib{word}_s16x2(a[i], b[i], &high, &low); w[{256 * n + 128} + i] = 2 * high + low;\n"
        f"y[{256 * n + 192} + i] = __vib{word}_u16x2(a[i], b[i], &high, &low); w[{256 * n + 192} + i] = 2 * high + low;"
        for n, (word, _, _) in enumerate(_EXTREMES)
    ),
    inputs=_two_words,
    outputs={"y": ((8, 64), "uint32"), "w": ((8, 64), "int32")},
    constructs="cuda_packed_integers.__vibmax_s32",
    **_LINE,
)
def cuda_extremes_and_which(a, b):
    y, w = [], []
    for _, choose, better in _EXTREMES:
        for kind in ("s32", "u32", "s16x2", "u16x2"):
            p, q = _of_kind(a, kind), _of_kind(b, kind)
            y.append(choose(p, q).view(np.uint32))
            which = better(p, q).astype(np.int32).reshape(64, -1)
            w.append((which << np.arange(which.shape[1])).sum(1).astype(np.int32))
    return np.stack(y), np.stack(w)
