"""Metal's mathematics, for scalars and vectors of each type and in each namespace.

A body of a function computes twelve elements a thread: three scalars, by the plain name, with `metal::` and, where it
exists, with `precise::`, and vectors of two, three and four. What is exact is compared bit for bit with a reference in
the type itself; the rest with one in float64, to the error that Metal's specification allows.

A thread's elements lie side by side, but those of small types lie in twelve rows, an element of each thread in each:
taking bytes out of registers by twelves would be most of a body's compilation, and `memory_shapes.py` does that.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from bodies import DTYPES, body
from bodies.model import fma
from bodies.types import FLOATS, INTEGERS, values

_THREADS = 40
_SHAPE = (_THREADS, 12)
_VECTORS = ((2, 3), (3, 5), (4, 8))  # components, first element


def _eps(dtype):
    return float(ml_dtypes.finfo(DTYPES[dtype]).eps)


def _source(function, element, arity, namespaces, result=None):
    """The body for a function of `arity` arrays a, b, c, …"""
    arrays = "abcd"[:arity]
    in_rows = element in ("char", "uchar", "short", "ushort", "half", "bfloat")
    lines = [f"uint i = {'' if in_rows else '12 * '}thread_position_in_grid.x;"]

    def at(j):
        return f"i + {_THREADS * j if in_rows else j}"

    for j, namespace in enumerate((*namespaces, "", "")[:3]):
        lines.append(f"out[{at(j)}] = {namespace}{function}({', '.join(f'{x}[{at(j)}]' for x in arrays)});")
    for n, first in _VECTORS:
        lines.append("{")
        for x in arrays:
            lines.append(f"  {element}{n} v{x}({', '.join(f'{x}[{at(first + j)}]' for j in range(n))});")
        call = f"{function}({', '.join(f'v{x}' for x in arrays)})"
        lines.append(f"  {result or element}{n} r = {namespaces[n % len(namespaces)]}{call};")
        lines += [f"  out[{at(first + j)}] = r[{j}];" for j in range(n)]
        lines.append("}")
    return "\n".join(lines)


def _family(
    function,
    reference,
    *,
    arity=1,
    types=FLOATS,
    ulps=0,
    half_ulps=None,
    inputs=values,
    namespaces=("", "metal::", "precise::"),
    result=None,
    constructs="",
    suffix="",
):
    """A body for each type. `inputs(rng, dtype, shape)` makes the arguments, or is a tuple of such functions. `result` is
    the type that the function gives, its name in Metal and its dtype, where that is not its argument's."""
    for element, dtype in types.items():
        made = inputs if isinstance(inputs, tuple) else (inputs,) * arity
        allowed = ulps if dtype == "float32" or half_ulps is None else half_ulps

        def expected(dtype=dtype, exact=allowed == 0, **arrays):
            arguments = list(arrays.values())
            if not exact:
                arguments = [a.astype(np.float64) for a in arguments]
            return np.asarray(reference(*arguments))

        body(
            _source(function, element, arity, namespaces, result and result[0]),
            name=f"{function}_{element}{suffix}",
            inputs=lambda rng, dtype=dtype, made=made: {
                key: make(rng, dtype, _SHAPE) for key, make in zip("abcd", made, strict=False)
            },
            outputs={"out": (_SHAPE, result[1] if result else dtype)},
            grid=(_THREADS, 1, 1),
            threadgroup=(16, 1, 1),
            tolerance=allowed * _eps(dtype) if allowed else 0,
            constructs=f"functions.{function} {constructs}"
            + (" functions.precise" if "precise::" in namespaces else ""),
        )(expected)


def _through_float(function):
    """A function of float32 for the smaller types too, rounded once."""

    def rounded(*arrays):
        return np.asarray(function(*(a.astype(np.float32) for a in arrays))).astype(arrays[0].dtype)

    return rounded


_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-6, -1e-6)


def _between(low, high, special=_SPECIAL):
    """Numbers evenly in [low, high], and the special ones."""

    def make(rng, dtype, shape):
        array = rng.uniform(low, high, shape)
        array.reshape(-1)[: len(special)] = special
        return array.astype(np.float32).astype(DTYPES[dtype])

    return make


def _powers_of_ten(low, high, special=()):
    def make(rng, dtype, shape):
        array = 10 ** rng.uniform(low, high, shape)
        array.reshape(-1)[: len(special)] = special
        return array.astype(np.float32).astype(DTYPES[dtype])

    return make


def _mixed(rng, dtype, shape):
    """All magnitudes and signs, and the special numbers."""
    info = ml_dtypes.finfo(DTYPES[dtype])
    special = [*_SPECIAL, float(info.max), float(info.min), float(info.smallest_normal), float(info.smallest_subnormal)]
    array = rng.normal(size=shape) * 10.0 ** rng.integers(-4, 5, shape)
    array.reshape(-1)[: len(special)] = special
    return array.astype(np.float32).astype(DTYPES[dtype])


def _shuffled(make):
    """The same numbers in another order, so that special ones meet ordinary ones."""

    def made(rng, dtype, shape):
        array = make(rng, dtype, shape)
        return rng.permutation(array.reshape(-1)).reshape(shape)

    return made


_PAIR = (_mixed, _shuffled(_mixed))
_TRIPLE = (_mixed, _shuffled(_mixed), _shuffled(_mixed))
# ---- Exact functions of floats

_family("floor", _through_float(np.floor), inputs=_mixed)
_family("ceil", _through_float(np.ceil), inputs=_mixed)
_family("trunc", _through_float(np.trunc), inputs=_mixed)
_family("rint", _through_float(np.rint), inputs=_mixed)
_family("round", _through_float(lambda x: np.copysign(_round_away(np.abs(x)), x)), inputs=_mixed)
_family("abs", _through_float(np.abs), inputs=_mixed)
_family("fabs", _through_float(np.abs), inputs=_mixed)
_family("sqrt", _through_float(np.sqrt), inputs=_mixed)
_family("sign", _through_float(lambda x: np.where(np.isnan(x), 0, np.where(x == 0, x, np.sign(x)))), inputs=_mixed)
_family("copysign", _through_float(np.copysign), arity=2, inputs=_PAIR)
_family("fdim", _through_float(lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x + y), np.nan, 0))), arity=2)
_family("fmod", _through_float(np.fmod), arity=2, inputs=_PAIR)


def _round_away(magnitude):
    whole = np.trunc(magnitude)
    return np.where(magnitude - whole >= np.float32(0.5), whole + np.float32(1), whole)


def _tied_apart(make):
    """Without zeros, of which the smaller is not defined."""

    def made(rng, dtype, shape):
        array = make(rng, dtype, shape)
        return np.where(array == 0, DTYPES[dtype].type(7), array)

    return made


_DISTINCT = (_tied_apart(_mixed), _shuffled(_tied_apart(_mixed)), _shuffled(_tied_apart(_mixed)))
_median = _through_float(lambda x, y, z: np.maximum(np.minimum(x, y), np.minimum(np.maximum(x, y), z)))
for _name in ("min", "fmin"):
    _family(_name, _through_float(np.fmin), arity=2, inputs=_DISTINCT[:2])
for _name in ("max", "fmax"):
    _family(_name, _through_float(np.fmax), arity=2, inputs=_DISTINCT[:2])
_family("min3", _through_float(lambda x, y, z: np.fmin(x, np.fmin(y, z))), arity=3, inputs=_DISTINCT)
_family("max3", _through_float(lambda x, y, z: np.fmax(x, np.fmax(y, z))), arity=3, inputs=_DISTINCT)
_family("fmin3", _through_float(lambda x, y, z: np.fmin(x, np.fmin(y, z))), arity=3, inputs=_DISTINCT)
_family("fmax3", _through_float(lambda x, y, z: np.fmax(x, np.fmax(y, z))), arity=3, inputs=_DISTINCT)
_family("median3", _median, arity=3)
_family("fmedian3", _median, arity=3)
_family(
    "clamp",
    _through_float(lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    arity=3,
    inputs=(values, _between(-3, -2, ()), _between(2, 3, ())),
)
_family("saturate", _through_float(lambda x: np.clip(x, 0, 1)), inputs=_between(-1, 2, (0.25, 3)))
_family("step", _through_float(lambda edge, x: np.where(x < edge, 0, 1)), arity=2)
_family("fma", lambda x, y, z: _small_fma(x, y, z), arity=3, inputs=(values, values, values))
_family(
    "fract",
    _through_float(lambda x: x - np.floor(x)),
    inputs=_between(-9, 9, (0.0, 1.0, -0.5)),
    types={"float": "float32"},
)
_family("nextafter", np.nextafter, arity=2, types={"float": "float32"}, namespaces=("", "metal::"), inputs=_PAIR)


def _small_fma(x, y, z):
    """Rounded once to the type: the product of two halves or bfloats and its sum with a third fit into 64 bits."""
    if x.dtype == np.float32:
        return fma(x, y, z)
    exact = x.astype(np.longdouble) * y.astype(np.longdouble) + z.astype(np.longdouble)
    # float32 by rounding to odd, then once more
    near = exact.astype(np.float32)
    bits = near.view(np.int32)
    toward = np.where((exact > near) == (near > 0), 1, -1)
    odd = np.where((near.astype(np.longdouble) != exact) & (bits & 1 == 0), bits + toward, bits)
    return odd.astype(np.int32).view(np.float32).astype(x.dtype)


# ---- Questions about floats

_reference: Callable[..., Any]
for _name, _reference in (
    ("isfinite", np.isfinite),
    ("isnan", np.isnan),
    ("isinf", np.isinf),
    ("signbit", np.signbit),
):
    _family(
        _name,
        lambda x, reference=_reference: reference(x.astype(np.float32)),
        inputs=_mixed,
        result=("bool", "bool"),
        namespaces=("", "metal::"),
    )
_family(
    "isnormal",
    lambda x: (
        np.isfinite(x.astype(np.float32))
        & (np.abs(x.astype(np.float32)) >= np.float32(ml_dtypes.finfo(x.dtype).smallest_normal))
    ),
    inputs=_mixed,
    result=("bool", "bool"),
    namespaces=("", "metal::"),
)
_family(
    "isordered",
    lambda x, y: ~(np.isnan(x.astype(np.float32)) | np.isnan(y.astype(np.float32))),
    arity=2,
    inputs=_PAIR,
    result=("bool", "bool"),
    namespaces=("", "metal::"),
)
_family(
    "isunordered",
    lambda x, y: np.isnan(x.astype(np.float32)) | np.isnan(y.astype(np.float32)),
    arity=2,
    inputs=_PAIR,
    result=("bool", "bool"),
    namespaces=("", "metal::"),
)

# ---- Functions with an error: the largest that the specification allows, in units of the last place

_TWO_PI = 2 * np.pi
for _name, _reference, _ulps, _inputs in (
    ("exp", np.exp, 4, _between(-104, 90)),
    ("exp2", np.exp2, 4, _between(-150, 129)),
    ("exp10", lambda x: 10.0**x, 4, _between(-45, 39)),
    ("log", np.log, 4, _powers_of_ten(-4, 4, (0.0, np.inf, np.nan, -1.0, 1.0, 0.99, 1.01))),
    ("log2", np.log2, 4, _powers_of_ten(-4, 4, (0.0, np.inf, np.nan, -1.0, 1.0, 0.99, 1.01))),
    ("log10", np.log10, 4, _powers_of_ten(-4, 4, (0.0, np.inf, np.nan, -1.0, 1.0, 0.99, 1.01))),
    ("rsqrt", lambda x: 1 / np.sqrt(x), 2, _powers_of_ten(-4, 4, (0.0, np.inf, np.nan, -1.0, 1.0))),
    ("tanh", np.tanh, 5, _between(-10, 10)),
    ("sinh", np.sinh, 4, _between(-10, 10)),
    ("cosh", np.cosh, 4, _between(-10, 10)),
    ("sin", np.sin, 4, _between(-30, 30, (0.0, -0.0, np.nan, np.inf))),
    ("cos", np.cos, 4, _between(-30, 30, (0.0, -0.0, np.nan, np.inf))),
    ("tan", np.tan, 6, _between(-30, 30, (0.0, -0.0, np.nan, np.inf))),
    ("asin", np.arcsin, 4, _between(-1, 1, (0.0, 1.0, -1.0, 2.0, np.nan))),
    ("acos", np.arccos, 4, _between(-1, 1, (0.0, 1.0, -1.0, 2.0, np.nan))),
    ("atan", np.arctan, 5, _between(-9, 9)),
    ("asinh", np.arcsinh, 4, _between(-99, 99)),
    ("acosh", np.arccosh, 4, _between(1, 99, (1.0, 0.5, np.inf, np.nan))),
    ("atanh", np.arctanh, 5, _between(-0.999, 0.999, (0.0, 1.0, -1.0, 2.0))),
):
    # Half and bfloat may be off by one unit; an argument near a zero of the function is not what this is about.
    _family(_name, _reference, ulps=_ulps, half_ulps=1, inputs=_inputs)


def _half_turns(x):
    """x as a number of quarter turns, modulo 4, and the angle that is left, in [-pi / 4, pi / 4]: exact,
    so that zeros and poles are where they belong."""
    turned = np.fmod(x, 2)
    quarters = np.rint(2 * turned)
    return np.nan_to_num(quarters).astype(int) % 4, np.pi * (turned - quarters / 2)


def _sinpi(x):
    quarters, angle = _half_turns(x)
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.choose(quarters, [sine, cosine, -sine, -cosine])


def _cospi(x):
    quarters, angle = _half_turns(x)
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.choose(quarters, [cosine, -sine, -cosine, sine])


def _tanpi(x):
    # A pole has the sign of the sine there.
    return _sinpi(x) / np.where(_cospi(x) == 0, 0.0, _cospi(x))


_quarters = _between(-8, 8, (0.25, np.nan, np.inf, -0.25, 0.75))
_family("sinpi", _sinpi, ulps=4, half_ulps=1, inputs=_quarters)
_family("cospi", _cospi, ulps=4, half_ulps=1, inputs=_quarters)
_family("tanpi", _tanpi, ulps=6, half_ulps=1, inputs=_quarters)
_family("atan2", np.arctan2, ulps=6, half_ulps=1, arity=2, inputs=(_between(-5, 5), _between(-5, 5, ())))
_family("divide", np.divide, ulps=1, arity=2, inputs=(values, _between(1, 9, (-2.0,))))
_family(
    "pow",
    np.power,
    ulps=16,
    half_ulps=1,
    arity=2,
    inputs=(
        _powers_of_ten(-1, 1, (0.0, 1.0, np.inf, 2.0, -2.0, -2.0, -2.0)),
        _between(-4, 4, (0.0, np.nan, -1.0, 0.5, 3.0, 2.0, 0.5)),
    ),
)
_family("powr", np.power, ulps=16, half_ulps=1, arity=2, inputs=(_powers_of_ten(-1, 1), _between(-4, 4, ())))
_family(
    "mix",
    lambda x, y, a: x + (y - x) * a,
    ulps=4,
    half_ulps=4,
    arity=3,
    inputs=(_between(1, 2, ()), _between(2, 3, ()), _between(0, 1, ())),
)


def _smooth(low, high, x):
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


_family(
    "smoothstep",
    _smooth,
    ulps=16,
    half_ulps=16,
    arity=3,
    inputs=(_between(-2, -1, ()), _between(1, 2, ()), _between(0, 3, ())),
)
for _name, _reference, _inputs in (
    ("log1p", np.log1p, _powers_of_ten(-4, 4, (0.0, -0.5, -1.0, np.inf))),
    ("expm1", np.expm1, _between(-20, 20)),
):
    _family(_name, _reference, ulps=4, half_ulps=1, inputs=_inputs, namespaces=("",), types={"float": "float32"})


@body(
    """
    uint i = thread_position_in_grid.x;
    out[4 * i] = fast::exp(x[i]);
    out[4 * i + 1] = metal::fast::log(x[i]);
    out[4 * i + 2] = fast::rsqrt(x[i]) + fast::sqrt(x[i]);
    out[4 * i + 3] = fast::pow(x[i], 1.5) + fast::max(x[i], 2.0) + fast::tanh(x[i]);
    """,
    inputs=lambda rng: {"x": rng.uniform(2, 9, 64).astype(np.float32)},
    outputs={"out": ((64, 4), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=24 * 2**-23,
    constructs="functions.fast functions.exp functions.log functions.rsqrt functions.sqrt functions.pow functions.max "
    "functions.tanh",
)
def functions_in_fast(x):
    x = x.astype(np.float64)
    third, fourth = 1 / np.sqrt(x) + np.sqrt(x), x**1.5 + np.maximum(x, 2) + np.tanh(x)
    return np.stack([np.exp(x), np.log(x), third, fourth], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    float4 v(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    // One value for all components.
    float4 limited = clamp(v, -1.0, 1.0);
    float4 least = max(v, 0.0) + min(0.5, v) * 2 + fmax(v, v.w);
    float4 stepped = step(0.0, v) + select(v, float4(2), v > 1);
    half3 h = max(half3(v.xyz), 0.0h) + clamp(half3(v.yzw), half(0), half(1));
    for (int j = 0; j < 4; ++j) {
      out[12 * i + j] = limited[j];
      out[12 * i + 4 + j] = least[j];
      out[12 * i + 8 + j] = j < 3 ? float(h[j]) : stepped[3];
    }
    """,
    inputs=lambda rng: {"x": rng.normal(size=(32, 4)).astype(np.float32)},
    outputs={"out": ((32, 12), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="functions.scalar_for_vector functions.clamp functions.max functions.min functions.step "
    "functions.select types.vector_comparison",
)
def scalars_for_vectors(x):
    f = np.float32
    least = np.maximum(x, f(0)) + np.minimum(x, f(0.5)) * f(2) + np.maximum(x, x[:, 3:])
    stepped = np.where(x < 0, f(0), f(1)) + np.where(x > 1, f(2), x)
    h = x.astype(np.float16)
    h = np.maximum(h[:, :3], np.float16(0)) + np.clip(h[:, 1:], np.float16(0), np.float16(1))
    return np.concatenate([np.clip(x, -1, 1), least, h.astype(f), stepped[:, 3:]], axis=1)


# ---- Two results


@body(
    """
    uint i = thread_position_in_grid.x;
    float c, whole;
    int exponent;
    exact[6 * i] = modf(x[i], whole);
    exact[6 * i + 1] = whole;
    exact[6 * i + 2] = frexp(x[i], exponent);
    exact[6 * i + 3] = exponent;
    exact[6 * i + 4] = ldexp(x[i], int(i % 9) - 4);
    exact[6 * i + 5] = ilogb(x[i]);
    float s = sincos(x[i], c);
    angles[2 * i] = s;
    angles[2 * i + 1] = c;
    """,
    inputs=lambda rng: {"x": rng.uniform(0.1, 30, 64).astype(np.float32)},
    outputs={"exact": ((64, 6), "float32"), "angles": ((64, 2), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=4 * 2**-23,
    constructs="functions.modf functions.frexp functions.ldexp functions.ilogb functions.sincos",
)
def functions_with_two_results(x):
    fraction, whole = np.modf(x)
    mantissa, exponent = np.frexp(x)
    scaled = np.ldexp(x, np.arange(64) % 9 - 4)
    wide = x.astype(np.float64)
    exact = np.stack([fraction, whole, mantissa, exponent, scaled, exponent - 1], axis=1)
    return exact, np.stack([np.sin(wide), np.cos(wide)], axis=1)


# ---- Geometry

for _element, _dtype in FLOATS.items():

    def _geometry(x, y):
        x, y = x.astype(np.float64), y.astype(np.float64)
        rows = []
        for a, b in zip(x, y, strict=True):
            row = []
            for n, first in ((2, 0), (3, 2), (4, 5)):
                p, q = a[first : first + n], b[first : first + n]
                difference = p + q
                row += [p @ q, np.sqrt(p @ p), np.sqrt(difference @ difference), p @ p, difference @ difference]
                row += list(p / np.sqrt(p @ p))
            rows.append(row)
        return np.array(rows)

    _lines = ["uint i = thread_position_in_grid.x;"]
    _place = 0
    for _n, _first in ((2, 0), (3, 2), (4, 5)):
        _p = ", ".join(f"x[9 * i + {_first + j}]" for j in range(_n))
        _q = _p.replace("x[", "y[")
        _lines += ["{", f"{_element}{_n} p({_p}), q({_q}), n = normalize(p);"]
        for _call in (
            "dot(p, q)",
            "metal::length(p)",
            "distance(p, -q)",
            "length_squared(p)",
            "distance_squared(p, -q)",
        ):
            _lines.append(f"out[24 * i + {_place}] = {_call};")
            _place += 1
        for _j in range(_n):
            _lines.append(f"out[24 * i + {_place}] = n[{_j}];")
            _place += 1
        _lines.append("}")
    body(
        "\n".join(_lines),
        name=f"geometry_{_element}",
        inputs=lambda rng, dtype=_dtype: {key: _between(0.5, 4, ())(rng, dtype, (32, 9)) for key in "xy"},
        outputs={"out": ((32, 24), _dtype)},
        grid=(32, 1, 1),
        threadgroup=(32, 1, 1),
        tolerance=4 * _eps(_dtype),
        constructs="functions.dot functions.length functions.distance functions.length_squared "
        "functions.distance_squared functions.normalize",
    )(_geometry)


@body(
    """
    uint i = thread_position_in_grid.x;
    float3 a(x[9 * i], x[9 * i + 1], x[9 * i + 2]);
    float3 b(x[9 * i + 3], x[9 * i + 4], x[9 * i + 5]);
    float3 n(x[9 * i + 6], x[9 * i + 7], x[9 * i + 8]);
    float3 c = cross(a, float3(-b.x, b.y, -b.z));
    float3 r = reflect(-a, n);
    float3 f = faceforward(n, a, -b);
    float3 t = refract(float3(0, 0, -1), float3(0, 0, 1), 0.5);
    for (int j = 0; j < 3; ++j) {
      out[12 * i + j] = c[j];
      out[12 * i + 3 + j] = r[j];
      out[12 * i + 6 + j] = f[j];
      out[12 * i + 9 + j] = t[j];
    }
    """,
    inputs=lambda rng: {"x": rng.uniform(1, 2, (16, 9)).astype(np.float32)},
    outputs={"out": ((16, 12), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    tolerance=1e-6,
    constructs="functions.cross functions.reflect functions.faceforward functions.refract types.float3",
)
def geometry_of_three(x):
    x = x.astype(np.float64)
    a, b, n = x[:, :3], x[:, 3:6], x[:, 6:]
    crossed = np.cross(a, b * [-1, 1, -1])
    reflected = -a + 2 * (a * n).sum(axis=1, keepdims=True) * n
    return np.concatenate([crossed, reflected, n, np.tile([0.0, 0, -1], (16, 1))], axis=1)


# ---- Integers


def _wide(function):
    """A function of Python integers, element by element; the result wraps to the type."""

    def of(*arrays):
        dtype = arrays[0].dtype
        bits = dtype.itemsize * 8
        flat = [array.reshape(-1).tolist() for array in arrays]
        results = [function(*row, bits, dtype.kind == "i") % (1 << bits) for row in zip(*flat, strict=True)]
        return np.array(results, np.uint64).astype(f"u{dtype.itemsize}").view(dtype).reshape(arrays[0].shape)

    return of


def _saturate(value, bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def _ends(rng, dtype, shape):
    """The whole range, with its ends."""
    array = values(rng, dtype, shape)
    info = np.iinfo(dtype)
    special = [0, 1, info.max, info.min, info.max - 1, info.min + 1, info.max // 2, 2]
    array.reshape(-1)[: len(special)] = special
    return array


_ENDS = (_ends, _shuffled(_ends), _shuffled(_ends))
_plain = ("", "metal::")


def _bits(value, bits):
    return f"{value % (1 << bits):0{bits}b}"


for _name, _arity, _reference in (
    ("abs", 1, lambda x, bits, signed: abs(x)),
    ("popcount", 1, lambda x, bits, signed: _bits(x, bits).count("1")),
    ("clz", 1, lambda x, bits, signed: bits - len(_bits(x, bits).lstrip("0"))),
    ("ctz", 1, lambda x, bits, signed: bits - len(_bits(x, bits).rstrip("0"))),
    ("reverse_bits", 1, lambda x, bits, signed: int(_bits(x, bits)[::-1], 2)),
    ("min", 2, lambda x, y, bits, signed: min(x, y)),
    ("max", 2, lambda x, y, bits, signed: max(x, y)),
    ("addsat", 2, lambda x, y, bits, signed: _saturate(x + y, bits, signed)),
    ("subsat", 2, lambda x, y, bits, signed: _saturate(x - y, bits, signed)),
    ("hadd", 2, lambda x, y, bits, signed: x + y >> 1),
    ("rhadd", 2, lambda x, y, bits, signed: x + y + 1 >> 1),
    ("mulhi", 2, lambda x, y, bits, signed: x * y >> bits),
    (
        "rotate",
        2,
        lambda x, y, bits, signed: (x % (1 << bits) << y % bits) | (x % (1 << bits) >> (bits - y % bits)),
    ),
    ("madhi", 3, lambda x, y, z, bits, signed: (x * y >> bits) + z),
    ("madsat", 3, lambda x, y, z, bits, signed: _saturate(x * y + z, bits, signed)),
    ("min3", 3, lambda x, y, z, bits, signed: min(x, y, z)),
    ("max3", 3, lambda x, y, z, bits, signed: max(x, y, z)),
    ("median3", 3, lambda x, y, z, bits, signed: sorted((x, y, z))[1]),
):
    _family(_name, _wide(_reference), arity=_arity, types=INTEGERS, inputs=_ENDS[:_arity], namespaces=_plain)

for _element, _dtype in INTEGERS.items():
    _unsigned = DTYPES[f"uint{DTYPES[_dtype].itemsize * 8}"]
    _family(
        "absdiff",
        lambda x, y, unsigned=_unsigned: _wide(lambda a, b, bits, signed: abs(a - b))(x, y).view(unsigned),
        arity=2,
        types={_element: _dtype},
        inputs=_ENDS[:2],
        namespaces=_plain,
        result=(_element if _element.startswith("u") else f"u{_element}", _unsigned.name),
    )

_family(
    "clamp",
    _wide(lambda x, low, high, bits, signed: min(max(x, low), high)),
    arity=3,
    types=INTEGERS,
    namespaces=_plain,
    inputs=(
        _ends,
        lambda rng, dtype, shape: rng.integers(10, 40, shape, dtype),
        lambda rng, dtype, shape: rng.integers(50, 100, shape, dtype),
    ),
)
_family(
    "mul24",
    _wide(lambda x, y, bits, signed: x * y),
    arity=2,
    types={"int": "int32", "uint": "uint32"},
    namespaces=_plain,
    inputs=lambda rng, dtype, shape: rng.integers(0, 1 << 23, shape, dtype),
)
_family(
    "mad24",
    _wide(lambda x, y, z, bits, signed: x * y + z),
    arity=3,
    types={"int": "int32", "uint": "uint32"},
    namespaces=_plain,
    inputs=lambda rng, dtype, shape: rng.integers(0, 1 << 23, shape, dtype),
)


@body(
    """
    uint i = thread_position_in_grid.x;
    uint offset = i % 20, count = i % 12;
    out[6 * i] = extract_bits(x[i], offset, count);
    out[6 * i + 1] = insert_bits(x[i], ~x[i], offset, count);
    out[6 * i + 2] = extract_bits(int(x[i]), offset, count);
    out[6 * i + 3] = extract_bits(ushort(x[i]), 3u, 7u);
    uint2 pair = extract_bits(uint2(x[i], x[i] >> 1), offset, count);
    out[6 * i + 4] = pair.x + pair.y;
    out[6 * i + 5] = insert_bits(uint2(x[i], 7), uint2(x[i] >> 4, 9), 4u, 8u).x;
    """,
    inputs=lambda rng: {"x": values(rng, "uint32", 64)},
    outputs={"out": ((64, 6), "uint32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="functions.extract_bits functions.insert_bits",
)
def bit_fields(x):
    rows = []
    for i, value in enumerate(x.tolist()):
        offset, count = i % 20, i % 12
        mask = (1 << count) - 1
        field = value >> offset & mask
        inserted = (value & ~(mask << offset)) | ((~value & mask) << offset)
        signed = field - (1 << count) if count and field >> (count - 1) else field
        second = (value >> 1) >> offset & mask
        last = (value & ~0xFF0) | ((value >> 4 & 0xFF) << 4)
        row = [field, inserted, signed, (value & 0xFFFF) >> 3 & 0x7F, field + second, last]
        rows.append([v & 0xFFFFFFFF for v in row])
    return np.array(rows, np.uint32)


for _element, _dtype in (*FLOATS.items(), *INTEGERS.items()):
    body(
        f"""
    uint i = 12 * thread_position_in_grid.x;
    for (int j = 0; j < 8; ++j) out[i + j] = select(a[i + j], b[i + j], bool(c[i + j]));
    {_element}4 p(a[i + 8], a[i + 9], a[i + 10], a[i + 11]), q(b[i + 8], b[i + 9], b[i + 10], b[i + 11]);
    bool4 which(c[i + 8], c[i + 9], c[i + 10], c[i + 11]);
    {_element}4 r = metal::select(p, q, which);
    for (int j = 0; j < 4; ++j) out[i + 8 + j] = r[j];
    """,
        name=f"select_{_element}",
        inputs=lambda rng, dtype=_dtype: {
            "a": values(rng, dtype, _SHAPE),
            "b": values(rng, dtype, _SHAPE),
            "c": rng.integers(0, 2, _SHAPE).astype(bool),
        },
        outputs={"out": (_SHAPE, _dtype)},
        grid=(_THREADS, 1, 1),
        threadgroup=(16, 1, 1),
        constructs="functions.select types.bool4",
    )(lambda a, b, c: np.where(c, b, a))
