"""CUDA: types, functions, and what a body and its header may say."""

import math
from typing import Any

import ml_dtypes
import numpy as np

from bodies import CUDA_DTYPES, Dtype, cuda_body
from bodies.model import fma


def _normal(*shape, dtype="float32", scale=1.0):
    return lambda rng: {"x": (rng.normal(size=shape) * scale).astype(CUDA_DTYPES[dtype])}


_LINE: dict[str, Any] = {"grid": (64, 1, 1), "threadgroup": (32, 1, 1)}
_HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


@cuda_body(
    """
    auto elem = cooperative_groups::this_grid().thread_rank();
    T tmp = x[elem];
    y[elem] = exp(tmp);
    """,
    template=[("T", Dtype("float32"))],
    inputs=_normal(64, dtype="float16"),
    outputs={"y": ((64,), "float16")},
    tolerance=2**-11,
    **_LINE,
)
def cuda_documented_exp(x):
    return np.exp(x.astype(np.float64))


@cuda_body(
    _HEAD
    + """
    __int128 p = (__int128)a[i] * 1000000007 * b[i];
    y[i] = (long long)(p / 1000003);
    y[64 + i] = (long long)(p % 1000003);
    unsigned __int128 u = (unsigned __int128)(unsigned long long)a[i] << 40;
    y[128 + i] = (long long)(u / 1000000007u);
    y[192 + i] = (long long)(u % 1000000007u);
    y[256 + i] = (long long)((__int128)(f[i] * 1e20f) >> 40);
    y[320 + i] = (long long)(float)(p >> 20);
    """,
    inputs=lambda rng: {
        "a": rng.integers(-(2**40), 2**40, 64),
        "b": rng.integers(1, 1000, 64),
        "f": rng.normal(size=64).astype(np.float32),
    },
    outputs={"y": ((6, 64), "int64")},
    constructs="cuda_types.int128",
    **_LINE,
)
def cuda_integers_of_128_bits(a, b, f):
    def wrapped(value):
        return (value + 2**63) % 2**64 - 2**63

    def truncated(n, d):
        return abs(n) // d * (1 if n >= 0 else -1)

    rows = []
    for x, y, z in zip(a.tolist(), b.tolist(), f, strict=True):
        p, u = x * 1000000007 * y, (x % 2**64 << 40) % 2**128
        quotient = truncated(p, 1000003)
        rows.append(
            [
                *(wrapped(quotient), p - quotient * 1000003, wrapped(u // 1000000007), u % 1000000007),
                *(int(z * np.float32(1e20)) >> 40, int(np.float32(p >> 20))),
            ]
        )
    return np.array(rows, np.int64).T


@cuda_body(
    _HEAD
    + """
    long double v = x[i];
    v = v * v + 0.1L;
    y[i] = v;
    """,
    inputs=lambda rng: {"x": rng.normal(size=64)},
    outputs={"y": ((64,), "float64")},
    constructs="cuda_types.long_double",
    tolerance=2**-52,
    **_LINE,
)
def cuda_long_double(x):
    return x * x + 0.1


for _dtype, _class in (("float16", "__half"), ("bfloat16", "__nv_bfloat16")):

    def _arithmetic(x):
        f = x.astype(np.float32)
        rounded = lambda v: v.astype(x.dtype).astype(np.float32)  # noqa: E731
        total = rounded(f + np.roll(f, 1))
        return np.stack([total, rounded(total - f * 0), rounded(total / f), rounded(-f * f)]).astype(x.dtype)

    cuda_body(
        _HEAD
        + f"""
        {_class} a = x[i], b = x[(i + 63) % 64];
        {_class} sum = a + b, zero = 0.0f;
        y[i] = sum;
        y[64 + i] = sum - a * zero;
        y[128 + i] = sum / a;
        y[192 + i] = -a * a;
        """,
        name=f"cuda_arithmetic_of_{_dtype}",
        inputs=_normal(64, dtype=_dtype),
        outputs={"y": ((4, 64), _dtype)},
        **_LINE,
    )(_arithmetic)

    def _compared(x):
        b = np.roll(x, -1)
        rows = [x == b, x != b, x < b, x <= b, x > b, x >= b, x != 0, np.isnan(x)]
        return sum(row.astype(np.int32) << k for k, row in enumerate(rows))

    cuda_body(
        _HEAD
        + f"""
        {_class} a = x[i], b = x[(i + 1) % 64];
        y[i] = (a == b) + 2 * (a != b) + 4 * (a < b) + 8 * (a <= b) + 16 * (a > b) + 32 * __hge(a, b)
             + 64 * (a ? 1 : 0) + 128 * __hisnan(a);
        """,
        name=f"cuda_comparison_of_{_dtype}",
        inputs=lambda rng, d=_dtype: {
            "x": np.where(rng.random(64) < 0.1, np.nan, rng.integers(-2, 3, 64)).astype(CUDA_DTYPES[d])
        },
        outputs={"y": ((64,), "int32")},
        **_LINE,
    )(_compared)

    def _conversions(x):
        f = x.astype(np.float64)
        return np.stack([np.trunc(f), np.rint(f), np.floor(f), np.ceil(f), np.trunc(f)]).astype(np.int32)

    _word = "half" if _dtype == "float16" else "bfloat16"
    cuda_body(
        _HEAD
        + f"""
        y[i] = __{_word}2int_rz(x[i]);
        y[64 + i] = __{_word}2int_rn(x[i]);
        y[128 + i] = __{_word}2int_rd(x[i]);
        y[192 + i] = __{_word}2int_ru(x[i]);
        y[256 + i] = int(x[i]);
        """,
        name=f"cuda_integers_of_{_dtype}",
        inputs=_normal(64, dtype=_dtype, scale=20),
        outputs={"y": ((5, 64), "int32")},
        **_LINE,
    )(_conversions)

    def _from_integers(x, dtype=CUDA_DTYPES[_dtype]):
        return np.stack([x.astype(np.float64), (x * 3).astype(np.float64)]).astype(dtype)

    cuda_body(
        _HEAD + f"y[i] = __int2{_word}_rn(x[i]); y[64 + i] = {_class}((long long)x[i] * 3);",
        name=f"cuda_{_dtype}_of_integers",
        inputs=lambda rng: {"x": rng.integers(-20000, 20000, 64).astype(np.int32)},
        outputs={"y": ((2, 64), _dtype)},
        **_LINE,
    )(_from_integers)

    def _functions(x):
        f = np.abs(x.astype(np.float64)) + 0.5
        f = f.astype(x.dtype).astype(np.float64)
        return np.stack([np.exp(f), np.log(f), np.sqrt(f), 1 / np.sqrt(f), 1 / f, np.sin(f), np.tanh(f), np.floor(f)])

    cuda_body(
        _HEAD
        + f"""
        {_class} v = __habs(x[i]);
        v = {_class}(float(v) + 0.5f);
        y[i] = hexp(v);
        y[64 + i] = hlog(v);
        y[128 + i] = hsqrt(v);
        y[192 + i] = hrsqrt(v);
        y[256 + i] = hrcp(v);
        y[320 + i] = hsin(v);
        y[384 + i] = {_class}(tanhf(float(v)));
        y[448 + i] = hfloor(v);
        """,
        name=f"cuda_functions_of_{_dtype}",
        inputs=_normal(64, dtype=_dtype),
        outputs={"y": ((8, 64), _dtype)},
        tolerance=2**-10 if _dtype == "float16" else 2**-7,
        **_LINE,
    )(_functions)

    _pair = f"{_class}2" if _dtype == "float16" else "__nv_bfloat162"

    def _pairs(x):
        f = x.astype(np.float64)
        swapped = f.reshape(-1, 2)[:, ::-1].reshape(-1)
        fused = (f * f + swapped).astype(x.dtype)
        return np.stack([fused, (f + swapped).astype(x.dtype), np.maximum(x, swapped.astype(x.dtype))])

    cuda_body(
        f"""
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        const {_pair}* pairs = reinterpret_cast<const {_pair}*>(x);
        {_pair}* out = reinterpret_cast<{_pair}*>(y);
        {_pair} v = pairs[i], w = __lowhigh2highlow(v);
        out[i] = __hfma2(v, v, w);
        out[32 + i] = v + w;
        out[64 + i] = __hmax2(v, w);
        """,
        name=f"cuda_pairs_of_{_dtype}",
        inputs=_normal(64, dtype=_dtype),
        outputs={"y": ((3, 64), _dtype)},
        grid=(32, 1, 1),
        threadgroup=(32, 1, 1),
    )(_pairs)

    def _summed(x):
        return np.array([x.astype(np.float64).sum()]).astype(x.dtype)

    cuda_body(
        _HEAD + "atomicAdd(&y[0], x[i]);",
        name=f"cuda_atomic_add_of_{_dtype}",
        constructs=f"cuda_atomics.of_{'half' if _dtype == 'float16' else _dtype}",
        init_value=0,
        inputs=lambda rng, d=_dtype: {"x": rng.integers(0, 3, 64).astype(CUDA_DTYPES[d])},
        outputs={"y": ((1,), _dtype)},
        **_LINE,
    )(_summed)

    cuda_body(
        _HEAD + "y[i] = __shfl_xor_sync(~0u, x[i], 1);",
        name=f"cuda_shuffle_of_{_dtype}",
        inputs=_normal(64, dtype=_dtype),
        outputs={"y": ((64,), _dtype)},
        **_LINE,
    )(lambda x: x[np.arange(64) ^ 1])


@cuda_body(
    _HEAD
    + """
    y[i] = __half_as_ushort(__float2half_rn(x[i]));
    y[64 + i] = __half_as_ushort(__float2half_rz(x[i]));
    y[128 + i] = __bfloat16_as_ushort(__float2bfloat16(x[i]));
    y[192 + i] = __bfloat16_as_ushort(__float2bfloat16_rz(x[i]));
    """,
    inputs=_normal(64),
    outputs={"y": ((4, 64), "uint16")},
    **_LINE,
)
def cuda_rounding_of_floats(x):
    half = x.astype(np.float16)
    toward_zero = np.where(np.abs(half.astype(np.float32)) > np.abs(x), half.view(np.uint16) - 1, half.view(np.uint16))
    bfloat = x.astype(ml_dtypes.bfloat16).view(np.uint16)
    return np.stack([half.view(np.uint16), toward_zero, bfloat, x.view(np.uint32) >> 16]).astype(np.uint16)


@cuda_body(
    _HEAD
    + """
    float4 v = reinterpret_cast<const float4*>(x)[i];
    float2 a = make_float2(v.x + v.z, v.y - v.w);
    int3 k = make_int3(1, 2, 3);
    uchar4 u = make_uchar4(i, i + 1, 0, 255);
    double2 d{a.x, a.y};
    reinterpret_cast<float4*>(y)[i] = make_float4(a.x, a.y, float(d.x) * k.z, float(u.y));
    """,
    inputs=_normal(64, 4),
    outputs={"y": ((64, 4), "float32")},
    **_LINE,
    constructs="cuda_memory.vector_access",
)
def cuda_vectors(x):
    a, b = x[:, 0] + x[:, 2], x[:, 1] - x[:, 3]
    return np.stack([a, b, a * np.float32(3), np.arange(1, 65, dtype=np.float32)], 1)


_MATH: dict[str, Any] = {
    "expf": np.exp,
    "exp": np.exp,
    "exp2f": np.exp2,
    "expm1f": np.expm1,
    "logf": np.log,
    "log2f": np.log2,
    "log10f": np.log10,
    "log1pf": np.log1p,
    "sinf": np.sin,
    "cosf": np.cos,
    "tanf": np.tan,
    "atanf": np.arctan,
    "sinhf": np.sinh,
    "tanhf": np.tanh,
    "sqrtf": np.sqrt,
    "rsqrtf": lambda v: 1 / np.sqrt(v),
    "cbrtf": np.cbrt,
    "erff": np.vectorize(math.erf),
    "lgammaf": np.vectorize(math.lgamma),
}


@cuda_body(
    _HEAD + "\n".join(f"y[{64 * k} + i] = {name}(x[i]);" for k, name in enumerate(_MATH)),
    inputs=lambda rng: {"x": rng.uniform(2.2, 3, 64).astype(np.float32)},
    outputs={"y": ((len(_MATH), 64), "float32")},
    tolerance=2**-20,
    **_LINE,
)
def cuda_math(x):
    return np.stack([function(x.astype(np.float64)) for function in _MATH.values()])


@cuda_body(
    _HEAD
    + """
    y[i] = __expf(x[i]);
    y[64 + i] = __logf(x[i]);
    y[128 + i] = __fdividef(x[i], 3.0f);
    y[192 + i] = __powf(x[i], 1.5f);
    y[256 + i] = __frsqrt_rn(x[i]);
    y[320 + i] = __saturatef(x[i] - 2.0f);
    """,
    inputs=lambda rng: {"x": rng.uniform(2.2, 3, 64).astype(np.float32)},
    outputs={"y": ((6, 64), "float32")},
    tolerance=2**-18,
    **_LINE,
)
def cuda_fast_math_functions(x):
    v = x.astype(np.float64)
    return np.stack([np.exp(v), np.log(v), v / 3, v**1.5, 1 / np.sqrt(v), v - 2])


@cuda_body(
    _HEAD
    + """
    y[i] = __fmaf_rn(x[i], x[i], -1.0f);
    y[64 + i] = __fadd_rn(__fmul_rn(x[i], x[i]), -1.0f);
    y[128 + i] = fmaf(x[i], 2.5f, x[i]);
    y[192 + i] = fminf(x[i], 0.5f) + fmaxf(x[i], -0.5f);
    y[256 + i] = copysignf(2.0f, x[i]) + truncf(x[i]) + rintf(x[i]) + floorf(x[i]);
    """,
    inputs=_normal(64),
    outputs={"y": ((5, 64), "float32")},
    **_LINE,
)
def cuda_rounded_arithmetic(x):
    f = np.float32
    clamped = np.minimum(x, f(0.5)) + np.maximum(x, f(-0.5))
    parts = np.copysign(f(2), x) + np.trunc(x) + np.rint(x) + np.floor(x)
    return np.stack([fma(x, x, np.full(64, -1, f)), x * x + f(-1), fma(x, np.full(64, 2.5, f), x), clamped, parts])


@cuda_body(
    _HEAD
    + """
    unsigned v = x[i];
    y[i] = __popc(v);
    y[64 + i] = __clz(v);
    y[128 + i] = __ffs(v);
    y[192 + i] = __brev(v);
    y[256 + i] = __umulhi(v, 0x9e3779b9u);
    y[320 + i] = __byte_perm(v, 0, 0x0123);
    y[384 + i] = __funnelshift_l(v, v, 7);
    y[448 + i] = __popcll(((unsigned long long)v << 32) | v) + __clzll(v) + __ffsll(v);
    y[512 + i] = max(v, 77u) + min((int)(v >> 1), 99) + abs(-3);
    """,
    inputs=lambda rng: {"x": rng.integers(1, 2**32, 64, np.uint32)},
    outputs={"y": ((9, 64), "uint32")},
    **_LINE,
)
def cuda_integer_functions(x):
    v = [int(value) for value in x]
    rows = [
        [bin(n).count("1") for n in v],
        [32 - n.bit_length() for n in v],
        [(n & -n).bit_length() for n in v],
        [int(f"{n:032b}"[::-1], 2) for n in v],
        [n * 0x9E3779B9 >> 32 for n in v],
        [int.from_bytes(n.to_bytes(4, "little"), "big") for n in v],
        [(n << 7 | n >> 25) % 2**32 for n in v],
        [2 * bin(n).count("1") + 64 - n.bit_length() + (n & -n).bit_length() for n in v],
        [(max(n, 77) + min(n >> 1, 99) + 3) % 2**32 for n in v],
    ]
    return np.array(rows, np.uint32)


@cuda_body(
    _HEAD
    + """
    y[i] = __float_as_uint(x[i]) ^ __float_as_int(-x[i]);
    y[64 + i] = __float2int_rn(x[i]) + 100 * __float2int_rz(x[i]) + 10000 * __float2int_ru(x[i]);
    y[128 + i] = __float_as_uint(__int_as_float(i)) + __double2int_rn(double(x[i]));
    """,
    inputs=_normal(64),
    outputs={"y": ((3, 64), "int32")},
    **_LINE,
)
def cuda_conversions(x):
    n, z, u = (function(x).astype(np.int32) for function in (np.rint, np.trunc, np.ceil))
    return np.stack([np.full(64, -(2**31)), n + 100 * z + 10000 * u, np.arange(64) + n]).astype(np.int32)


@cuda_body(
    _HEAD + "double v = x[i]; y[i] = sqrt(v * v + 1.0) - 1e-3 * exp(-v) + fma(v, v, 2.0);",
    inputs=_normal(64, dtype="float64"),
    outputs={"y": ((64,), "float64")},
    tolerance=1e-14,
    **_LINE,
    constructs="cuda_types.double",
)
def cuda_double(x):
    return np.sqrt(x * x + 1) - 1e-3 * np.exp(-x) + (x * x + 2)


@cuda_body(
    _HEAD
    + """
    complex64_t z = x[i];
    y[i] = z * z + complex64_t(1.0f, -1.0f) / z - 2.0f * z;
    m[i] = abs(z) + z.real() - imag(z) + (z == z ? 1.0f : 0.0f);
    """,
    inputs=lambda rng: {"x": (rng.normal(size=64) + 1j * rng.normal(size=64)).astype(np.complex64)},
    outputs={"y": ((64,), "complex64"), "m": ((64,), "float32")},
    tolerance=1e-4,
    **_LINE,
    constructs="cuda_types.complex64_t",
)
def cuda_complex(x):
    z = x.astype(np.complex128)
    return z * z + (1 - 1j) / z - 2 * z, np.abs(z) + z.real - z.imag + 1


# Small integers, whose products and sums are exact however they are contracted; quotients are of numerators that are
# not 0, being sums of an odd and an even product.
def _complex_pairs(dtype):
    def make(rng):
        x = 2 * rng.integers(0, 5, (64, 6)) + 1
        x[:, 1] += 1
        x[:, 1:6:2] *= np.array([1, -1, 1])
        return {"x": x.astype(dtype)}

    return make


def _complex_results(x):
    a, b, c = (x[:, k] + 1j * x[:, k + 1] for k in (0, 2, 4))
    values = [a + b, a - b, a * b, a / b, a * b + c, a.conj(), c]
    parts = [part for value in values for part in (value.real, value.imag)]
    return np.stack([*parts, np.abs(a), np.abs(c)], axis=1)


@cuda_body(
    """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const cuComplex* v = (const cuComplex*)x + 3 * i;
    cuFloatComplex a = v[0], b = make_cuFloatComplex(cuCrealf(v[1]), cuCimagf(v[1]));
    cuComplex c = make_cuComplex(v[2].x, v[2].y);
    cuComplex results[7] = {cuCaddf(a, b), cuCsubf(a, b), cuCmulf(a, b), cuCdivf(a, b), cuCfmaf(a, b, c), cuConjf(a), c};
    for (int k = 0; k < 7; ++k) {
      y[16 * i + 2 * k] = results[k].x;
      y[16 * i + 2 * k + 1] = results[k].y;
    }
    y[16 * i + 14] = cuCabsf(a);
    y[16 * i + 15] = cuCabsf(c);
    """,
    header="#include <cuComplex.h>\n",
    inputs=_complex_pairs(np.float32),
    outputs={"y": ((64, 16), "float32")},
    tolerance=1e-5,
    constructs="cuda_types.cuComplex",
    **_LINE,
)
def cuda_complex_of_floats(x):
    return _complex_results(x.astype(np.float64))


@cuda_body(
    """
    #include <cuComplex.h>
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const cuDoubleComplex* v = (const cuDoubleComplex*)x + 3 * i;
    cuDoubleComplex a = v[0], b = make_cuDoubleComplex(cuCreal(v[1]), cuCimag(v[1]));
    cuDoubleComplex c = cuComplexFloatToDouble(cuComplexDoubleToFloat(v[2]));
    cuDoubleComplex results[7] = {cuCadd(a, b), cuCsub(a, b), cuCmul(a, b), cuCdiv(a, b), cuCfma(a, b, c), cuConj(a), c};
    for (int k = 0; k < 7; ++k) {
      y[16 * i + 2 * k] = results[k].x;
      y[16 * i + 2 * k + 1] = results[k].y;
    }
    y[16 * i + 14] = cuCabs(a);
    y[16 * i + 15] = cuCabs(c);
    """,
    inputs=_complex_pairs(np.float64),
    outputs={"y": ((64, 16), "float64")},
    tolerance=1e-13,
    constructs="cuda_types.cuDoubleComplex",
    **_LINE,
)
def cuda_complex_of_doubles(x):
    return _complex_results(x)


@cuda_body(
    _HEAD + "if (N > 2 && F) y[i] = T(x[i]) * N; else y[i] = 0;",
    template=[("T", Dtype("float64")), ("N", 3), ("F", True)],
    inputs=_normal(64),
    outputs={"y": ((64,), "float64")},
    **_LINE,
    constructs="cuda_launch.template_arguments",
)
def cuda_template_arguments(x):
    return x.astype(np.float64) * 3


@cuda_body(
    _HEAD + "y[i] = apply(x[i], Scale<float, 2>{0.5f}, [] (float v) { return v + 1; }) + SHIFT(i);",
    header="""
    #define SHIFT(v) ((v) & 3)
    template <typename T, int N> struct Scale {
      T extra;
      __device__ __forceinline__ T operator()(T v) const { return N * v + extra; }
    };
    template <typename T, typename F, typename G> __device__ T apply(T v, F f, G g) { return g(f(v)); }
    """,
    inputs=_normal(64),
    outputs={"y": ((64,), "float32")},
    tolerance=1e-6,
    **_LINE,
    constructs="cuda_structure.helper_function cuda_structure.template cuda_structure.lambda",
)
def cuda_helpers(x):
    return 2 * x.astype(np.float64) + 1.5 + (np.arange(64) & 3)


@cuda_body(
    _HEAD + "y[i] = table[i % 4] + offset + counter_of(i);",
    header="""
    __constant__ float table[4] = {1.5f, 2.5f, 3.5f, 4.5f};
    __device__ const int offset = 10;
    namespace { __device__ __noinline__ int counter_of(int i) { switch (i & 3) { case 0: return 5; case 1: return 6; default: break; } return 7; } }
    """,
    outputs={"y": ((64,), "float32")},
    **_LINE,
    constructs="cuda_memory.__constant__",
)
def cuda_constants():
    i = np.arange(64) % 4
    return (i + 1.5 + 10 + np.minimum(i + 5, 7)).astype(np.float32)


@cuda_body(
    _HEAD
    + """
    float local[8];
    #pragma unroll
    for (int k = 0; k < 8; ++k) local[k] = x[(i + k) % 64];
    #pragma unroll 2
    for (int k = 0; k < 7; ++k) local[k + 1] = fmaxf(local[k], local[k + 1]);
    y[i] = local[(i * 3) % 8];
    """,
    inputs=_normal(64),
    outputs={"y": ((64,), "float32")},
    **_LINE,
    constructs="cuda_structure.pragma_unroll cuda_structure.local_array",
)
def cuda_unrolled_loops(x):
    windows = np.stack([np.roll(x, -k) for k in range(8)], 1)
    i = np.arange(64)
    return np.maximum.accumulate(windows, 1)[i, (i * 3) % 8]


@cuda_body(
    _HEAD
    + """
    const float* __restrict__ in = x;
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    int sum;
    asm volatile("add.s32 %0, %1, %2;" : "=r"(sum) : "r"(i), "r"(1000));
    y[i] = __ldg(&in[i]) * 0 + lane + sum;
    """,
    inputs=_normal(64),
    outputs={"y": ((64,), "float32")},
    **_LINE,
    constructs="cuda_structure.inline_ptx",
)
def cuda_inline_ptx(x):
    return (np.arange(64) % 32 + np.arange(64) + 1000).astype(np.float32)


@cuda_body(
    _HEAD
    + """
    assert(i < 64);
    if (i == 64) printf("never printed %d %f\\n", i, 1.5);
    y[i] = WARP_SIZE + (clock64() > 0 ? 1 : 0);
    """,
    outputs={"y": ((64,), "int32")},
    **_LINE,
    constructs="cuda_output.printf cuda_output.assert",
)
def cuda_printf_and_assert():
    return np.full(64, 33, np.int32)


@cuda_body(
    _HEAD
    + """
    int64_t from = elem_to_loc(i, x_shape.data(), x_strides.data(), x_ndim);
    int64_t same = elem_to_loc_nd<2>(i, x_shape.data(), x_strides.data());
    auto [a, b] = elem_to_loc(i, x_shape.data(), x_strides.data(), x_strides.data(), x_ndim);
    LoopedElemToLoc<2> loop(2);
    for (int k = 0; k < i; ++k) loop.next(x_shape.data(), x_strides.data());
    y[i] = x[from] + (from == same && a == from && b == from && loop.location() == from ? 0 : 1000)
         + x_shape[0] + x_shape.size();
    """,
    ensure_row_contiguous=False,
    inputs=lambda rng: {"x": rng.integers(0, 100, (16, 8)).astype(np.int32)[::2].T},
    outputs={"y": ((8, 8), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_mlx.elem_to_loc cuda_mlx.LoopedElemToLoc cuda_launch.shape_arguments cuda_launch.strided",
)
def cuda_shapes_and_strides(x):
    return x + np.int32(18)


@cuda_body(
    _HEAD
    + """
    auto v = load_vector<4>(x, i, 62, 0.0f);
    for (int k = 0; k < 4; ++k) v[k] = v[k] + 1;
    store_vector<4>(y, i, v, 62);
    if (i == 0) {
      limits[0] = Limits<float>::max();
      limits[1] = Limits<float>::finite_min();
      limits[2] = Limits<int16_t>::min() + Limits<uint8_t>::max();
      limits[3] = -inf;
      limits[4] = Limits<__half>::finite_max();
      limits[5] = FLT_EPSILON + INT_MAX;
    }
    """,
    inputs=_normal(62),
    outputs={"y": ((62,), "float32"), "limits": ((6,), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="cuda_mlx.load_vector cuda_mlx.Limits",
)
def cuda_vector_loads_and_limits(x):
    f = np.finfo(np.float32)
    limits = [np.inf, f.min, -32768 + 255, -np.inf, 65504, float(f.eps) + 2**31]
    return x + np.float32(1), np.array(limits).astype(np.float32)
