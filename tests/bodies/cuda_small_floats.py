"""CUDA: __half and __nv_bfloat16, alone and in pairs, by the names of <cuda_fp16.h> and <cuda_bf16.h>."""

from typing import Any

import numpy as np

from bodies import CUDA_DTYPES, cuda_body

_LINE: dict[str, Any] = {"grid": (64, 1, 1), "threadgroup": (32, 1, 1)}
_PAIRS: dict[str, Any] = {"grid": (32, 1, 1), "threadgroup": (32, 1, 1)}
_HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
_ROUNDINGS: dict[str, Any] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def _rounded(x: Any, dtype: np.dtype, direction: str = "rn") -> np.ndarray:
    """Of float64, rounded once: by way of a float32 whose last bit says whether something was lost."""
    x = np.asarray(x, np.float64)
    toward_zero = x.astype(np.float32)
    too_far = np.abs(toward_zero.astype(np.float64)) > np.abs(x)
    toward_zero = np.where(too_far, np.nextafter(toward_zero, np.float32(0)), toward_zero)
    bits = toward_zero.view(np.uint32) | (toward_zero.astype(np.float64) != x).astype(np.uint32)
    near = np.where(np.isfinite(x), bits.view(np.float32), x).astype(np.float32).astype(dtype)
    if direction == "rn":
        return near
    back = near.astype(np.float64)
    words = near.view(np.uint16).astype(np.int32)
    is_up = {"ru": np.ones_like(x, bool), "rd": np.zeros_like(x, bool), "rz": x < 0}[direction]
    is_down = {"ru": np.zeros_like(x, bool), "rd": np.ones_like(x, bool), "rz": x > 0}[direction]
    step = np.where(is_up & (back < x), 1, 0) - np.where(is_down & (back > x), 1, 0)
    return (words + step * np.where(words & 0x8000, -1, 1)).astype(np.uint16).view(dtype)


def _mixture(dtype: np.dtype, *names: str, special: bool = True) -> Any:
    choice = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 2.0**-14, 0.3], np.float64)

    def inputs(rng: Any) -> dict[str, np.ndarray]:
        values = {}
        for name in names:
            x = rng.normal(size=64)
            values[name] = np.where(rng.random(64) < (0.3 if special else 0), rng.choice(choice, 64), x).astype(dtype)
        return values

    return inputs


_COMPARISONS: dict[str, Any] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_ALL_COMPARISONS: dict[str, Any] = _COMPARISONS | {
    f"{word}u": lambda a, b, f=function: f(a, b) | np.isnan(a) | np.isnan(b) for word, function in _COMPARISONS.items()
}
_FUNCTIONS: dict[str, Any] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda v: 10**v,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda v: 1 / np.sqrt(v),
    "rcp": lambda v: 1 / v,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
}


def _sat(v: Any) -> Any:
    return np.where(np.isnan(v), 0, np.clip(v, 0, 1) + 0.0)


def _pair(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return f.reshape(-1, 2)[:, 0], f.reshape(-1, 2)[:, 1]


def _together(x: Any, y: Any) -> np.ndarray:
    return np.stack([x, y], 1).reshape(-1)


def _bodies_of(kind: str) -> None:
    is_half = kind == "half"
    dtype_name = "float16" if is_half else "bfloat16"
    dtype = CUDA_DTYPES[dtype_name]
    one, two = ("__half", "__half2") if is_half else ("__nv_bfloat16", "__nv_bfloat162")
    short, short2 = ("half", "half2") if is_half else ("nv_bfloat16", "nv_bfloat162")
    word = "half" if is_half else "bfloat16"
    make = "make_half2" if is_half else "make_bfloat162"
    section = f"cuda_{word}"
    epsilon = 2.0**-10 if is_half else 2.0**-7
    digits = 11 if is_half else 8

    def rows(*names: str) -> str:
        return " ".join(f"{section}.{name}" for name in names)

    def r(x: Any) -> np.ndarray:
        return _rounded(x, dtype)

    # ---- One

    def arithmetic(a, b, c):
        f, g, h = (v.astype(np.float64) for v in (a, b, c))
        plain = [f + g, f - g, f * g, f / g, -f, np.abs(f), f + g, f - g, f * g]
        sat = [_sat(r(v).astype(np.float64)) for v in (f + g, f - g, f * g, f * g + h)]
        fused = r(f * g + h).astype(np.float64)
        kept = np.where(np.isnan(fused), np.nan, np.maximum(fused, 0) + 0.0)
        extremes = [np.fmax(f, g), np.fmin(f, g), np.maximum(f, g), np.minimum(f, g)]
        return np.stack([r(v) for v in [*plain, *sat, fused, kept, *extremes]])

    calls = ["__hadd(a, b)", "__hsub(a, b)", "__hmul(a, b)", "__hdiv(a, b)", "__hneg(a)", "__habs(a)"]
    calls += ["__hadd_rn(a, b)", "__hsub_rn(a, b)", "__hmul_rn(a, b)"]
    calls += ["__hadd_sat(a, b)", "__hsub_sat(a, b)", "__hmul_sat(a, b)", "__hfma_sat(a, b, c)"]
    calls += ["__hfma(a, b, c)", "__hfma_relu(a, b, c)"]
    calls += ["__hmax(a, b)", "__hmin(a, b)", "__hmax_nan(a, b)", "__hmin_nan(a, b)"]

    def of_elements(text: str) -> str:
        return text.replace("a,", "a[i],").replace("(a)", "(a[i])").replace("b)", "b[i])").replace("b,", "b[i],").replace("c)", "c[i])")  # fmt: skip

    cuda_body(
        _HEAD + "\n".join(f"y[{64 * k} + i] = {of_elements(call)};" for k, call in enumerate(calls)),
        name=f"cuda_named_arithmetic_of_{word}",
        inputs=_mixture(dtype, "a", "b", "c"),
        outputs={"y": ((len(calls), 64), dtype_name)},
        constructs=rows("__hadd", "__hadd_rn", "__hadd_sat", "__hfma", "__hmax"),
        **_LINE,
    )(arithmetic)

    def compared(a, b):
        a, b = a.astype(np.float32), b.astype(np.float32)
        total = sum(function(a, b).astype(np.int32) << k for k, function in enumerate(_ALL_COMPARISONS.values()))
        sign = np.where(np.isinf(a), np.where(a > 0, 1, -1), 0)
        return np.stack([total, np.isnan(a) + 10 * (sign + 1)]).astype(np.int32)

    cuda_body(
        _HEAD
        + "y[i] = "
        + " + ".join(f"(__h{name}(a[i], b[i]) << {k})" for k, name in enumerate(_ALL_COMPARISONS))
        + ";\ny[64 + i] = __hisnan(a[i]) + 10 * (__hisinf(a[i]) + 1);",
        name=f"cuda_named_comparisons_of_{word}",
        inputs=_mixture(dtype, "a", "b"),
        outputs={"y": ((2, 64), "int32")},
        constructs=rows("__heq"),
        **_LINE,
    )(compared)

    def functions(x):
        f = x.astype(np.float64)
        return np.stack([function(f) for function in _FUNCTIONS.values()])

    def some(rng: Any) -> dict[str, np.ndarray]:
        return {"x": rng.uniform(1.1, 2.9, 64).astype(dtype)}

    cuda_body(
        _HEAD + "\n".join(f"y[{64 * k} + i] = h{name}(x[i]);" for k, name in enumerate(_FUNCTIONS)),
        name=f"cuda_all_functions_of_{word}",
        inputs=some,
        outputs={"y": ((len(_FUNCTIONS), 64), dtype_name)},
        tolerance=epsilon,
        constructs=rows("hexp"),
        **_LINE,
    )(functions)
    cuda_body(
        _HEAD
        + f"const {two}* v = reinterpret_cast<const {two}*>(x); {two}* w = reinterpret_cast<{two}*>(y);\n"
        + "\n".join(f"w[{32 * k} + i] = h2{name}(v[i]);" for k, name in enumerate(_FUNCTIONS)),
        name=f"cuda_all_functions_of_pairs_of_{word}",
        inputs=some,
        outputs={"y": ((len(_FUNCTIONS), 64), dtype_name)},
        tolerance=epsilon,
        constructs=rows("h2exp"),
        **_PAIRS,
    )(functions)

    # ---- Conversions

    def of_floats(x):
        f = x.astype(np.float64)
        parts = [r(f), r(f), *(_rounded(f, dtype, d) for d in ("rz", "rd", "ru")), r(f * (1 + 2.0**-40))]
        return np.stack([*parts, r(r(f).astype(np.float64))])

    cuda_body(
        _HEAD
        + f"""
        y[i] = __float2{word}(x[i]);
        y[64 + i] = __float2{word}_rn(x[i]);
        y[128 + i] = __float2{word}_rz(x[i]);
        y[192 + i] = __float2{word}_rd(x[i]);
        y[256 + i] = __float2{word}_ru(x[i]);
        y[320 + i] = __double2{word}(double(x[i]) * (1 + 0x1p-40));
        y[384 + i] = __float2{word}(__{word}2float(__float2{word}(x[i])));
        """,
        name=f"cuda_floats_become_{word}",
        # Also halfway between two.
        inputs=lambda rng: {
            "x": np.where(
                rng.random(64) < 0.5, rng.normal(size=64), rng.integers(2**digits, 2 ** (digits + 1), 64) + 0.5
            ).astype(np.float32)
        },
        outputs={"y": ((7, 64), dtype_name)},
        constructs=rows(f"__float2{word}_rn"),
        **_LINE,
    )(of_floats)

    integers: dict[str, Any] = {
        "short": np.int16,
        "ushort": np.uint16,
        "int": np.int32,
        "uint": np.uint32,
        "ll": np.int64,
        "ull": np.uint64,
    }
    for name, integer in integers.items():
        limits = np.iinfo(integer)

        def to_integers(x, integer=integer, limits=limits):
            parts = []
            for function in _ROUNDINGS.values():
                values = function(x.astype(np.float64))
                parts.append([0 if v != v else min(max(int(v), limits.min), limits.max) for v in values])
            return np.array(parts, integer)

        cuda_body(
            _HEAD + "\n".join(f"y[{64 * k} + i] = __{word}2{name}_{d}(x[i]);" for k, d in enumerate(_ROUNDINGS)),
            name=f"cuda_{word}_become_{name}",
            inputs=lambda rng, signed=limits.min < 0, wide=limits.bits > 16: {
                "x": (rng.uniform(-300 if signed else 0, 300, 64) * np.where(rng.random(64) < 0.2, 100 if wide else 1, 1)).astype(dtype)
            },
            outputs={"y": ((4, 64), np.dtype(integer).name)},
            constructs=rows(f"__{word}2{name}_rn"),
            **_LINE,
        )(to_integers)  # fmt: skip

        def from_integers(x):
            # Exact as float64: of at most 53 bits.
            return np.stack([_rounded(x.astype(np.float64), dtype, d) for d in _ROUNDINGS])

        cuda_body(
            _HEAD + "\n".join(f"y[{64 * k} + i] = __{name}2{word}_{d}(x[i]);" for k, d in enumerate(_ROUNDINGS)),
            name=f"cuda_{name}_become_{word}",
            inputs=lambda rng, integer=integer, limits=limits: {
                "x": rng.integers(max(limits.min, -30000), min(limits.max, 60000), 64).astype(integer)
            },
            outputs={"y": ((4, 64), dtype_name)},
            constructs=rows(f"__{name}2{word}_rn"),
            **_LINE,
        )(from_integers)

    def casts(x):
        f = x.astype(np.float64)
        whole = np.trunc(f).astype(np.int64)
        y = [f, f, *(whole for _ in range(6)), np.clip(whole, -128, 127), np.clip(whole, 0, 255), f != 0]
        sources = [np.float64(i) * 37 - 400 for i in range(64)]
        z = [r(np.abs(v) if unsigned else v) for unsigned in (0, 0, 0, 1, 0, 1, 0, 1) for v in [np.array(sources)]]
        bytes_ = [np.clip(whole, -128, 127), np.clip(whole, 0, 255)]
        return np.stack(y).astype(np.float64), np.stack(z), np.stack(bytes_).astype(np.int32)

    cuda_body(
        _HEAD
        + f"""
        {one} v = x[i];
        y[i] = float(v); y[64 + i] = double(float(v)); y[128 + i] = short(v); y[192 + i] = (unsigned short)(__habs(v)) * (v < {one}(0.0f) ? -1 : 1);
        y[256 + i] = int(v); y[320 + i] = (double)(unsigned)(__habs(v)) * (v < {one}(0.0f) ? -1 : 1); y[384 + i] = (long long)(v);
        y[448 + i] = (double)(unsigned long long)(__habs(v)) * (v < {one}(0.0f) ? -1 : 1);
        y[512 + i] = (signed char)v; y[576 + i] = (unsigned char)v; y[640 + i] = v ? 1 : 0;
        int n = i * 37 - 400;
        unsigned u = n < 0 ? -n : n;
        z[i] = {one}(float(n)); z[64 + i] = {one}(double(n)); z[128 + i] = {one}(short(n)); z[192 + i] = {one}((unsigned short)u);
        z[256 + i] = {one}(n); z[320 + i] = {one}(u); z[384 + i] = {one}((long long)n); z[448 + i] = {one}((unsigned long long)u);
        w[i] = __{word}2char_rz(v); w[64 + i] = __{word}2uchar_rz(v);
        """,
        name=f"cuda_casts_of_{word}",
        inputs=lambda rng: {"x": rng.uniform(-300, 300, 64).astype(dtype)},
        outputs={"y": ((11, 64), "float64"), "z": ((8, 64), dtype_name), "w": ((2, 64), "int32")},
        constructs=rows("conversions", f"__{word}2char_rz"),
        **_LINE,
    )(casts)

    def operators(a, b):
        f, g = a.astype(np.float64), b.astype(np.float64)
        quotient = r(r(f * g).astype(np.float64) / f).astype(np.float64)
        y = [r(r(quotient + g).astype(np.float64) - f), r(-f), r(r(f + 1).astype(np.float64) * g)]
        relations = (f == g) + 2 * (f != g) + 4 * (f < g) + 8 * (f <= g) + 16 * (f > g) + 32 * (f >= g)
        return np.stack(y), relations.astype(np.int32)

    cuda_body(
        _HEAD
        + f"""
        {one} u = a[i], v = b[i];
        {short} w = u;
        // No sum right behind a product: a GPU may make one instruction of them.
        w *= v;
        w /= u;
        w += v;
        w -= u;
        y[i] = w;
        y[64 + i] = -u;
        y[128 + i] = ++u * v;
        u = a[i];
        z[i] = (u == v) + 2 * (u != v) + 4 * (u < v) + 8 * (u <= v) + 16 * (u > v) + 32 * (u >= v);
        """
        + ("nv_half other = u; z[i] += other == u ? 0 : 64;" if is_half else ""),
        name=f"cuda_operators_of_{word}",
        inputs=_mixture(dtype, "a", "b", special=False),
        outputs={"y": ((3, 64), dtype_name), "z": ((64,), "int32")},
        constructs=rows(one, "operators"),
        **_LINE,
    )(operators)

    def bits(x):
        words = x.view(np.uint16)
        special = np.array([0x7C00, 0x7FFF, 1, 0x7BFF, 0x8000, 0, 0x3C00] if is_half else [0x7F80, 0x7FFF, 1, 0x7F7F, 0x8000, 0, 0x3F80], np.uint16)  # fmt: skip
        return np.stack([words, words, words ^ 1, words ^ 1]), special

    suffix = "FP16" if is_half else "BF16"
    constants = [
        f"CUDART_{name}_{suffix}" for name in ("INF", "NAN", "MIN_DENORM", "MAX_NORMAL", "NEG_ZERO", "ZERO", "ONE")
    ]
    cuda_body(
        _HEAD
        + f"""
        y[i] = __{word}_as_ushort(x[i]);
        y[64 + i] = __{word}_as_short(x[i]);
        y[128 + i] = __{word}_as_ushort(__ushort_as_{word}(__{word}_as_ushort(x[i]) ^ 1));
        y[192 + i] = __{word}_as_ushort(__short_as_{word}(__{word}_as_short(x[i]) ^ 1));
        {one} all[7] = {{{", ".join(constants)}}};
        if (i < 7) z[i] = __{word}_as_ushort(all[i]);
        """,
        name=f"cuda_bits_of_{word}",
        inputs=_mixture(dtype, "x", special=False),
        outputs={"y": ((4, 64), "uint16"), "z": ((7,), "uint16")},
        constructs=rows(f"__{word}_as_ushort", "constants"),
        **_LINE,
    )(bits)

    # ---- Pairs

    pairs = f"const {two} v = reinterpret_cast<const {two}*>(a)[i], w = reinterpret_cast<const {two}*>(b)[i];\n{two}* out = reinterpret_cast<{two}*>(y);\n"  # fmt: skip

    def pair_arithmetic(a, b):
        f, g = a.astype(np.float64), b.astype(np.float64)
        fused = r(f * g + f).astype(np.float64)
        sat = [_sat(r(v).astype(np.float64)) for v in (f + g, f - g, f * g, f * g + f)]
        parts = [f + g, f - g, f * g, f / g, -f, np.abs(f), fused, f + g, f - g, f * g, *sat]
        parts += [np.where(np.isnan(fused), np.nan, np.maximum(fused, 0) + 0.0)]
        parts += [np.fmax(f, g), np.fmin(f, g), np.maximum(f, g), np.minimum(f, g)]
        return np.stack([r(v) for v in parts])

    pair_calls = ["__hadd2(v, w)", "__hsub2(v, w)", "__hmul2(v, w)", "__h2div(v, w)", "__hneg2(v)", "__habs2(v)"]
    pair_calls += ["__hfma2(v, w, v)", "__hadd2_rn(v, w)", "__hsub2_rn(v, w)", "__hmul2_rn(v, w)", "__hadd2_sat(v, w)"]
    pair_calls += ["__hsub2_sat(v, w)", "__hmul2_sat(v, w)", "__hfma2_sat(v, w, v)", "__hfma2_relu(v, w, v)"]
    pair_calls += ["__hmax2(v, w)", "__hmin2(v, w)", "__hmax2_nan(v, w)", "__hmin2_nan(v, w)"]
    cuda_body(
        _HEAD + pairs + "\n".join(f"out[{32 * k} + i] = {call};" for k, call in enumerate(pair_calls)),
        name=f"cuda_named_arithmetic_of_pairs_of_{word}",
        inputs=_mixture(dtype, "a", "b"),
        outputs={"y": ((len(pair_calls), 64), dtype_name)},
        constructs=rows("__hadd2"),
        **_PAIRS,
    )(pair_arithmetic)

    def pair_operators(a, b):
        f, g = a.astype(np.float64), b.astype(np.float64)
        quotient = r(r(f * g).astype(np.float64) / f).astype(np.float64)
        y = [r(r(quotient + g).astype(np.float64) - f), r(-f), r(f + 1)]
        both = [function(f, g).reshape(-1, 2).all(1) for function in (np.equal, np.less, np.less_equal, np.greater, np.greater_equal)]  # fmt: skip
        relations = sum(value.astype(np.int32) << k for k, value in enumerate(both))
        return np.stack(y), np.asarray(relations, np.int32)

    cuda_body(
        _HEAD
        + pairs
        + f"""
        {short2} s = v;
        s *= w;
        s /= v;
        s += w;
        s -= v;
        out[i] = s;
        out[32 + i] = -v;
        out[64 + i] = {make}(v.x + {one}(1.0f), (v + {two}({one}(1.0f), {one}(1.0f))).y);
        z[i] = (v == w) + 2 * (v < w) + 4 * (v <= w) + 8 * (v > w) + 16 * (v >= w);
        """,
        name=f"cuda_operators_of_pairs_of_{word}",
        inputs=_mixture(dtype, "a", "b", special=False),
        outputs={"y": ((3, 64), dtype_name), "z": ((32,), "int32")},
        constructs=rows(two, "pair_operators"),
        **_PAIRS,
    )(pair_operators)

    def pair_parts(a, b):
        (p, q), (s, t) = _pair(a), _pair(b)
        y = [(p, p), (p, q), (q, p), (p, q), (p, p), (q, s), (p, p), (q, q), (p, s), (q, t), (q, p), (p, q)]
        z = [p.astype(np.float32), q.astype(np.float32), p.astype(np.float32) + 2 * q.astype(np.float32)]
        return np.stack([_together(x, w) for x, w in y]), np.stack(z).astype(np.float32)

    w = "half" if is_half else "bfloat16"
    w2 = f"{w}2"
    cuda_body(
        _HEAD
        + pairs
        + f"""
        float2 f = __{w2}2float2(v);
        out[i] = __float2{w2}_rn(f.x);
        out[32 + i] = __floats2{w2}_rn(f.x, f.y);
        out[64 + i] = __float22{w2}_rn(make_float2(f.y, f.x));
        out[96 + i] = __halves2{w2}(v.x, v.y);
        out[128 + i] = __{w}2{w2}(v.x);
        out[160 + i] = {make}(__high2{w}(v), __low2{w}(w));
        out[192 + i] = __low2{w2}(v);
        out[224 + i] = __high2{w2}(v);
        out[256 + i] = __lows2{w2}(v, w);
        out[288 + i] = __highs2{w2}(v, w);
        out[320 + i] = __lowhigh2highlow(v);
        out[352 + i] = {two}(v.x, v.y);
        z[i] = __low2float(v);
        z[32 + i] = __high2float(v);
        z[64 + i] = f.x + 2 * f.y;
        """,
        name=f"cuda_parts_of_pairs_of_{word}",
        inputs=_mixture(dtype, "a", "b", special=False),
        outputs={"y": ((12, 64), dtype_name), "z": ((3, 32), "float32")},
        # The sum may be contracted on a GPU.
        tolerance=2**-18,
        constructs=rows("pair_conversions"),
        **_PAIRS,
    )(pair_parts)

    def complex_fma(a, b):
        (p, q), (s, t) = ([v.astype(np.float64) for v in _pair(x)] for x in (a, b))
        inner = r(p * s + p).astype(np.float64), r(p * t + q).astype(np.float64)
        return _together(r(-q * t + inner[0]), r(q * s + inner[1]))

    cuda_body(
        _HEAD + pairs + "out[i] = __hcmadd(v, w, v);",
        name=f"cuda_complex_product_of_{word}",
        inputs=_mixture(dtype, "a", "b", special=False),
        outputs={"y": ((64,), dtype_name)},
        constructs=rows("__hcmadd"),
        **_PAIRS,
    )(complex_fma)

    def pair_comparisons(a, b):
        f, g = a.astype(np.float64), b.astype(np.float64)
        found = [function(f, g) for function in _ALL_COMPARISONS.values()]
        y = np.stack([*(v.astype(dtype) for v in found), np.isnan(f).astype(dtype)])
        both = sum(v.reshape(-1, 2).all(1).astype(np.int32) << k for k, v in enumerate(found))
        masks = [np.where(v, 0xFFFF, 0).astype(np.uint16).view(np.uint32) for v in found]
        return y, np.asarray(both, np.int32), np.stack(masks)

    cuda_body(
        _HEAD
        + pairs
        + "\n".join(
            f"out[{32 * k} + i] = __h{name}2(v, w); m[{32 * k} + i] = __h{name}2_mask(v, w);"
            for k, name in enumerate(_ALL_COMPARISONS)
        )
        + "\nout[384 + i] = __hisnan2(v);\nz[i] = "
        + " + ".join(f"(__hb{name}2(v, w) << {k})" for k, name in enumerate(_ALL_COMPARISONS))
        + ";",
        name=f"cuda_comparisons_of_pairs_of_{word}",
        inputs=_mixture(dtype, "a", "b"),
        outputs={"y": ((13, 64), dtype_name), "z": ((32,), "int32"), "m": ((12, 32), "uint32")},
        constructs=rows("__heq2", "__hbeq2", "__heq2_mask"),
        **_PAIRS,
    )(pair_comparisons)

    # ---- Memory, shuffles, atomics

    def exchanged(a, b):
        lane = np.arange(32)
        sources = [(lane + 5) % 32, np.where(lane < 3, lane, lane - 3), np.where(lane < 29, lane + 3, lane), lane ^ 9]
        pairs_of = a.reshape(32, 2)
        alone = [b[:32][source] for source in sources]
        return np.stack([pairs_of[source].reshape(-1) for source in sources]), np.stack(alone)

    cuda_body(
        _HEAD
        + pairs
        + f"""
        {one} one = b[i];
        out[i] = __shfl_sync(~0u, v, i + 5);
        out[32 + i] = __shfl_up_sync(~0u, v, 3);
        out[64 + i] = __shfl_down_sync(~0u, v, 3);
        out[96 + i] = __shfl_xor_sync(~0u, v, 9);
        z[i] = __shfl_sync(~0u, one, i + 5);
        z[32 + i] = __shfl_up_sync(~0u, one, 3);
        z[64 + i] = __shfl_down_sync(~0u, one, 3);
        z[96 + i] = __shfl_xor_sync(~0u, one, 9);
        """,
        name=f"cuda_shuffles_of_pairs_of_{word}",
        inputs=_mixture(dtype, "a", "b", special=False),
        outputs={"y": ((4, 64), dtype_name), "z": ((4, 32), dtype_name)},
        constructs=rows("shuffles"),
        **_PAIRS,
    )(exchanged)

    loads = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv")
    stores = ("__stwb", "__stcg", "__stcs", "__stwt")
    cuda_body(
        _HEAD
        + pairs
        + "\n".join(
            f"out[{32 * k} + i] = {name}(reinterpret_cast<const {two}*>(a) + i);" for k, name in enumerate(loads)
        )
        + "\n"
        + "\n".join(f"{name}(out + {32 * (6 + k)} + i, w);" for k, name in enumerate(stores))
        + f"\n{one} sum = 0.0f;\n"
        + "\n".join(f"sum = {name}(&a[i]) + sum - sum;" for name in loads)
        + "\n"
        + "\n".join(f"{name}(&z[{32 * k} + i], sum);" for k, name in enumerate(stores)),
        name=f"cuda_loads_and_stores_of_{word}",
        inputs=lambda rng: {name: rng.integers(-4, 5, 64).astype(dtype) for name in "ab"},
        outputs={"y": ((10, 64), dtype_name), "z": ((4, 32), dtype_name)},
        constructs=rows("loads"),
        **_PAIRS,
    )(lambda a, b: (np.stack([a] * 6 + [b] * 4), np.stack([a[:32]] * 4)))

    cuda_body(
        _HEAD
        + f"""
        {two} v = reinterpret_cast<const {two}*>(x)[i];
        atomicAdd(reinterpret_cast<{two}*>(y), v);
        """,
        name=f"cuda_atomic_add_of_pairs_of_{word}",
        init_value=0,
        inputs=lambda rng: {"x": rng.integers(0, 4, 64).astype(dtype)},
        outputs={"y": ((2,), dtype_name)},
        constructs=f"cuda_atomics.of_{'half2' if is_half else 'bfloat162'}",
        **_PAIRS,
    )(lambda x: x.astype(np.float64).reshape(32, 2).sum(0).astype(dtype))


_bodies_of("half")
_bodies_of("bfloat16")
