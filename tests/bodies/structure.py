"""Control flow, macros, functions, templates, types of the body's own, pragmas."""

import hashlib
import math

import numpy as np

from bodies import Dtype, body
from bodies.model import Threads, fma, reduce

# ---- Leaving early


@body(
    """
    uint2 at = thread_position_in_grid.xy;
    uint width = image_shape[1], height = image_shape[0];
    if (at.x >= width || at.y >= height) {
      return;
    }
    uint left = at.x > 0 ? at.x - 1 : 0;
    uint right = min(at.x + 1, width - 1);
    uint above = at.y > 0 ? at.y - 1 : 0;
    uint below = min(at.y + 1, height - 1);
    int gradient_x = int(image[at.y * width + right]) - int(image[at.y * width + left]);
    int gradient_y = int(image[below * width + at.x]) - int(image[above * width + at.x]);
    edges[at.y * width + at.x] = uchar(min(abs(gradient_x) + abs(gradient_y), 255));
    """,
    inputs=lambda rng: {"image": rng.integers(0, 256, (29, 45), np.uint8)},
    outputs={"edges": ((29, 45), "uint8")},
    grid=(48, 32, 1),
    threadgroup=(16, 8, 1),
    constructs="structure.early_return functions.min functions.abs types.uchar attributes.thread_position_in_grid",
)
def image_edges(image):
    padded = np.pad(image.astype(int), 1, mode="edge")
    horizontal = np.abs(padded[1:-1, 2:] - padded[1:-1, :-2])
    vertical = np.abs(padded[2:, 1:-1] - padded[:-2, 1:-1])
    return np.minimum(horizontal + vertical, 255).astype(np.uint8)


@body(
    """
    threadgroup float partial[64];
    uint i = thread_position_in_grid.x;
    uint t = thread_position_in_threadgroup.x;
    if (i >= uint(n)) return;
    partial[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // The last threadgroup has fewer threads left than it began with.
    uint members = min(64u, uint(n) - threadgroup_position_in_grid.x * 64);
    float largest = partial[0];
    for (uint j = 1; j < members; ++j) largest = max(largest, partial[j]);
    y[i] = x[i] / largest;
    """,
    inputs=lambda rng: {"x": rng.uniform(1, 2, 150).astype(np.float32), "n": 150},
    outputs={"y": ((150,), "float32")},
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.return_before_barrier barriers.after_early_return functions.max "
    "address_spaces.threadgroup_array synchronisation.threadgroup_barrier",
)
def normalise_by_block_maximum(x, n):
    return np.concatenate([block / block.max() for block in np.split(x, [64, 128])])


@body(
    """
    uint i = thread_position_in_grid.x;
    if (mask[i] == 0) return;
    int total = simd_sum(x[i]);
    sums[i] = total;
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 96, np.int32), "mask": rng.integers(0, 2, 96, np.uint8)},
    outputs={"sums": ((96,), "int32")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    init_value=0,
    constructs="structure.return_before_simd simdgroup.sum reconvergence.after_early_return",
)
def masked_group_sum(x, mask):
    threads = Threads((96, 1, 1), (96, 1, 1))
    kept = threads.read(mask) != 0
    return threads.write(reduce("sum", threads.read(x), kept), kept)


# ---- Loops


@body(
    """
    uint i = thread_position_in_grid.x;
    ulong value = start[i];
    int count = 0;
    while (value != 1 && count < limit) {
      if (value % 2 == 0)
        value /= 2;
      else
        value = 3 * value + 1;
      ++count;
    }
    steps[i] = count;
    """,
    inputs=lambda rng: {"start": np.arange(1, 201, dtype=np.uint64), "limit": 100},
    outputs={"steps": ((200,), "int32")},
    grid=(200, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.while types.ulong",
)
def collatz_steps(start, limit):
    steps = []
    for value in start.tolist():
        count = 0
        while value != 1 and count < limit:
            value = 3 * value + 1 if value % 2 else value // 2
            count += 1
        steps.append(count)
    return np.array(steps, np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    uint a = p[i], b = q[i], shift = 0;
    if (a == 0 || b == 0) {
      divisor[i] = a | b;
      return;
    }
    while (((a | b) & 1) == 0) {
      a >>= 1;
      b >>= 1;
      ++shift;
    }
    do {
      while ((a & 1) == 0) a >>= 1;
      while ((b & 1) == 0) b >>= 1;
      if (a >= b)
        a -= b;
      else
        b -= a;
    } while (a != 0 && b != 0);
    divisor[i] = (a | b) << shift;
    """,
    inputs=lambda rng: {
        "p": rng.integers(0, 50, 128, np.uint32) * np.uint32(12),
        "q": rng.integers(0, 50, 128, np.uint32) * np.uint32(18),
    },
    outputs={"divisor": ((128,), "uint32")},
    grid=(128, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.while structure.do structure.early_return types.uint",
)
def binary_gcd(p, q):
    return np.gcd(p, q)


# ---- The preprocessor


@body(
    """
    #define LOAD(J) x[base + (J)]
    #define ACCUMULATE(J)          \\
      do {                         \\
        int v = LOAD(J);           \\
        total += v * weight##J;    \\
      } while (0)
    #if RADIUS == 2
    const int weight0 = 1, weight1 = 4, weight2 = 6, weight3 = 4, weight4 = 1;
    #else
    #error "no such filter"
    #endif
    uint i = thread_position_in_grid.x;
    uint base = i;
    int total = 0;
    ACCUMULATE(0);
    ACCUMULATE(1);
    ACCUMULATE(2);
    ACCUMULATE(3);
    ACCUMULATE(4);
    #undef LOAD
    #ifdef ROUNDED
    total += 8;
    #endif
    y[i] = total >> 4;
    """,
    header="""
    #define RADIUS 2
    #define ROUNDED
    """,
    inputs=lambda rng: {"x": rng.integers(0, 1000, 68, np.int32)},
    outputs={"y": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.define structure.define_in_header structure.conditional_macro structure.multi_line_macro "
    "structure.token_pasting",
)
def binomial_filter_by_macro(x):
    return (np.convolve(x, [1, 4, 6, 4, 1], mode="valid") + 8 >> 4).astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    out[i] = APPLY(relu, x[i]) + APPLY(hard_tanh, x[i]);
    """,
    header="""
#define DEFINE_ACTIVATION(NAME, EXPRESSION)   \\
  METAL_FUNC float NAME##_activation(float x) { \\
    return EXPRESSION;                        \\
  }
DEFINE_ACTIVATION(relu, max(x, 0.0))
DEFINE_ACTIVATION(hard_tanh, clamp(x, -1.0, 1.0))
#undef DEFINE_ACTIVATION
#define APPLY(NAME, ...) NAME##_activation(__VA_ARGS__)
""",
    inputs=lambda rng: {"x": rng.normal(0, 2, 100).astype(np.float32)},
    outputs={"out": ((100,), "float32")},
    grid=(100, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.multi_line_macro_in_header structure.token_pasting structure.helper_function "
    "mlx.METAL_FUNC functions.max functions.clamp",
)
def activations_by_macro(x):
    return np.maximum(x, np.float32(0)) + np.clip(x, np.float32(-1), np.float32(1))


# ---- Functions, templates, classes


@body(
    """
    uint i = thread_position_in_grid.x;
    out[i] = blend<4>(x[i], y[i]);
    """,
    header="""
inline int weigh(int value, int weight) { return value * weight; }

// Declared before it is defined.
int divide_rounded(int value, int by);

template <int Parts>
int blend(int a, int b) {
  constexpr int half_of_it = Parts / 2;
  return divide_rounded(weigh(a, Parts - 1) + weigh(b, 1) + half_of_it, Parts);
}

int divide_rounded(int value, int by) { return value >= 0 ? value / by : -((-value + by - 1) / by); }
""",
    inputs=lambda rng: {"x": rng.integers(-99, 99, 64, np.int32), "y": rng.integers(-99, 99, 64, np.int32)},
    outputs={"out": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.helper_function structure.template structure.explicit_template_arguments structure.constexpr",
)
def blend_by_helpers(x, y):
    return ((3 * x + y + 2) // 4).astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    Accumulator<int, 3> recent;
    for (int j = 0; j < 8; ++j) recent.push(x[i * 8 + j]);
    Fraction mean = recent.mean();
    mean += Fraction{1, 2};
    out[i] = int(mean);
    smallest[i] = recent.smallest();
    """,
    header="""
struct Fraction {
  int numerator = 0;
  int denominator = 1;
  thread Fraction& operator+=(Fraction other) thread {
    numerator = numerator * other.denominator + other.numerator * denominator;
    denominator *= other.denominator;
    return *this;
  }
  // Rounds towards minus infinity.
  explicit operator int() const {
    int quotient = numerator / denominator;
    return quotient * denominator > numerator ? quotient - 1 : quotient;
  }
};

// The last N values.
template <typename T, int N>
struct Accumulator {
  T values[N] = {};
  int count = 0;

  void push(T value) {
    values[count % N] = value;
    ++count;
  }
  Fraction mean() const {
    T total = 0;
    for (int j = 0; j < N; ++j) total += values[j];
    return Fraction{total, N};
  }
  T smallest() const {
    T result = values[0];
    for (int j = 1; j < N; ++j)
      if (values[j] < result) result = values[j];
    return result;
  }
};
""",
    inputs=lambda rng: {"x": rng.integers(-50, 50, (40, 8), np.int32)},
    outputs={"out": ((40,), "int32"), "smallest": ((40,), "int32")},
    grid=(40, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="structure.struct structure.conversion_operator structure.operator structure.template "
    "structure.dynamic_local_array",
)
def running_mean_by_classes(x):
    last = x[:, -3:]
    total = last.sum(axis=1)
    return (2 * total + 3) // 6, last.min(axis=1)


@body(
    """
    using Element = metal::conditional_t<WIDE, float4, float>;
    constexpr int lanes = WIDE ? 4 : 1;
    uint i = thread_position_in_grid.x;
    device const Element* in = reinterpret_cast<device const Element*>(x) + i;
    auto scale = [&](auto value) { return value * static_cast<T>(factor); };
    auto scaled = scale(*in);
    if constexpr (WIDE) {
      auto rotated = scaled.yzwx;
      *((device Element*)(out + i * lanes)) = rotated;
    } else {
      out[i] = (T)scaled;
    }
    """,
    template=[("T", Dtype("float32")), ("WIDE", True)],
    inputs=lambda rng: {"x": rng.normal(size=64).astype(np.float32), "factor": 3},
    outputs={"out": ((64,), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="structure.using structure.if_constexpr structure.auto structure.lambda structure.static_cast "
    "structure.c_cast structure.reinterpret_cast structure.constexpr types.swizzle_read types.float4 "
    "address_spaces.cast_to_vector address_spaces.device",
)
def scale_and_rotate(x, factor):
    return np.roll((x * np.float32(factor)).reshape(16, 4), -1, axis=1).reshape(64)


@body(
    """
    uint i = thread_position_in_grid.x;
    int offset = 1;
    auto add = [=](int v) { return v + offset; };
    auto count = [&offset](int by) mutable { offset += by; };
    count(4);
    auto apply = [](auto f, int v) -> int { return f(f(v)); };
    out[i] = apply(add, x[i]) + offset;
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, 32, np.int32)},
    outputs={"out": ((32,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.lambda structure.auto",
)
def lambdas_by_value_and_reference(x):
    return (x + 2 + 5).astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    int value = x[i];
    int result = 0;
    switch (op[i]) {
      case 0:
        result = value;
        break;
      case 1:
        result = -value;
        // falls through
      case 2:
        result += 100;
        break;
      default:
        result = -1;
        break;
      case 3: {
        int twice = 2 * value;
        switch (twice & 2) {
          case 0: result = twice; break;
          case 2: result = twice + 1000; break;
        }
        break;
      }
      case 7:
        return;
    }
    out[i] = result;
    """,
    inputs=lambda rng: {"x": rng.integers(-99, 99, 80, np.int32), "op": rng.integers(0, 9, 80, np.uint8)},
    outputs={"out": ((80,), "int32")},
    grid=(80, 1, 1),
    threadgroup=(16, 1, 1),
    init_value=12345,
    constructs="structure.switch structure.early_return",
)
def interpreter_by_switch(x, op):
    def one(value, operation):
        match operation:
            case 0:
                return value
            case 1:
                return 100 - value
            case 2:
                return 100
            case 3:
                return 2 * value + (1000 if value & 1 else 0)
            case 7:
                return 12345
        return -1

    return np.array([one(int(v), int(o)) for v, o in zip(x, op, strict=True)], np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    float window[9];
    for (int j = 0; j < 9; ++j) window[j] = x[i + j];
    // Insertion sort: the indices are known only at run time.
    for (int j = 1; j < 9; ++j) {
      float key = window[j];
      int k = j - 1;
      while (k >= 0 && window[k] > key) {
        window[k + 1] = window[k];
        --k;
      }
      window[k + 1] = key;
    }
    y[i] = window[rank[0]];
    """,
    inputs=lambda rng: {"x": rng.normal(size=72).astype(np.float32), "rank": np.array([4], np.int32)},
    outputs={"y": ((64,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="structure.dynamic_local_array structure.while",
)
def median_of_nine(x, rank):
    return np.median(np.lib.stride_tricks.sliding_window_view(x, 9), axis=1).astype(np.float32)


# ---- Pragmas


@body(
    """
    uint i = thread_position_in_grid.x;
    int total = 0;
    #pragma unroll
    for (int j = 0; j < 4; ++j) total += x[i * 16 + j];
    #pragma unroll 2
    for (int j = 4; j < 8; ++j) total += 2 * x[i * 16 + j];
    #pragma clang loop unroll(full)
    for (int j = 8; j < 12; ++j) {
      total += 3 * x[i * 16 + j];
    }
    _Pragma("clang loop unroll(disable)")
    for (int j = 12; j < 14; ++j) total += 4 * x[i * 16 + j];
    MLX_MTL_PRAGMA_UNROLL
    for (int j = 14; j < 16; ++j) total += 5 * x[i * 16 + j];
    sums[i] = total;
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, (32, 16), np.int32)},
    outputs={"sums": ((32,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.pragma_unroll structure.pragma_clang_loop structure._Pragma mlx.MLX_MTL_PRAGMA_UNROLL",
)
def weighted_sums_unrolled(x):
    return (x * np.repeat([1, 2, 3, 4, 5], [4, 4, 4, 2, 2])).sum(axis=1).astype(np.int32)


def _compensated_sums(x):
    total = np.zeros(x.shape[0], np.float32)
    lost = np.zeros(x.shape[0], np.float32)
    for column in x.T:
        y = column - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total


for _name, _pragma, _mode in (
    ("clang", "#pragma clang fp contract(off) reassociate(off)", "fast"),
    ("metal", "#pragma METAL fp contract(off) reassociate(off)", "fast"),
    ("clang", "#pragma clang fp contract(off)", "safe"),
):
    body(
        f"""
    {_pragma}
    for (int row = thread_position_in_grid.x; row < rows; row += threads_per_grid.x) {{
      float total = 0, lost = 0;
      for (int j = 0; j < x_shape[1]; ++j) {{
        float y = x[row * x_shape[1] + j] - lost;
        float t = total + y;
        lost = (t - total) - y;
        total = t;
      }}
      sums[row] = total;
    }}
    """,
        name=f"compensated_sum_{_name}_{_mode}",
        inputs=lambda rng: {"x": (rng.uniform(0, 1, (24, 99)) ** 9).astype(np.float32), "rows": 24},
        outputs={"sums": ((24,), "float32")},
        grid=(10, 1, 1),
        threadgroup=(10, 1, 1),
        compile_options={"math_mode": _mode},
        constructs=f"structure.pragma_{_name}_fp attributes.threads_per_grid",
    )(lambda x, rows: _compensated_sums(x))


@body(
    """
    uint i = thread_position_in_grid.x;
    {
    #pragma clang fp contract(off)
      apart[i] = a[i] * b[i] + c[i];
    }
    plain[i] = a[i] * b[i] + c[i];
    fused[i] = fma(a[i], b[i], c[i]);
    """,
    inputs=lambda rng: {key: rng.normal(size=128).astype(np.float32) for key in "abc"},
    outputs={"apart": ((128,), "float32"), "plain": ((128,), "float32"), "fused": ((128,), "float32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.pragma_clang_fp functions.fma arithmetic.no_contraction",
)
def no_contraction_unless_written(a, b, c):
    return a * b + c, a * b + c, fma(a, b, c)


@body(
    """
    // With a barrier in the body, marks stand around the loops; the pragma must stay the block's first.
    #pragma clang fp contract(off)
    for (int j = 0; j < 3; ++j) {
      #pragma clang fp contract(off)
      for (int k = 0; k < 2; ++k) threadgroup_barrier(mem_flags::mem_none);
    }
    uint i = thread_position_in_grid.x;
    out[i] = x[i] * x[i] + 1.0;
    """,
    inputs=lambda rng: {"x": rng.normal(size=32).astype(np.float32)},
    outputs={"out": ((32,), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.pragma_clang_fp barriers.nested_loop",
)
def pragma_before_a_loop(x):
    return x * x + np.float32(1)


# ---- Names and headers


@body(
    """
    using namespace metal;
    uint i = thread_position_in_grid.x;
    out[i] = metal::min(x[i], y[i]) + max(x[i], y[i]) + ::metal::abs(x[i]);
    """,
    header="""
#include <metal_stdlib>
#include <metal_math>
#include <metal_simdgroup>
#include <metal_atomic>
using namespace metal;""",
    inputs=lambda rng: {"x": rng.integers(-9, 9, 64, np.int32), "y": rng.integers(-9, 9, 64, np.int32)},
    outputs={"out": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.using_namespace_metal structure.include_metal functions.min functions.max functions.abs",
)
def qualified_and_plain_names(x, y):
    return (x + y + np.abs(x)).astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    uint v = x[i];
    device uint* row = out + 12 * i;
    row[0] = __builtin_popcount(v) + 100 * __builtin_parity(v);
    row[1] = v ? __builtin_clz(v) + 100 * __builtin_ctz(v) : 3232;
    row[2] = __builtin_bswap32(v);
    row[3] = __builtin_rotateleft32(v, i);
    row[4] = __builtin_bitreverse32(v);
    int sum, overflows = __builtin_add_overflow(int(v), 2000000000, &sum);
    row[5] = uint(sum) ^ uint(overflows);
    row[6] = __builtin_popcountl(ulong(v) << 8 | 255);
    row[7] = uint(__builtin_fabsf(-float(v & 0xffff)) + __builtin_fminf(v & 7, 3.5f) * 2 + __builtin_copysignf(8, 1));
    uchar bytes[4];
    __builtin_memcpy(bytes, x + i, 4);
    row[8] = bytes[0] + 1000 * bytes[3];
    row[9] = __builtin_bit_cast(uint, float(v)) + __builtin_elementwise_max(v, 7u);
    switch (v & 1) {
      case 0: row[10] = __builtin_expect(v > 100, 1) ? 5 : 6; break;
      case 1: row[10] = 7; break;
      default: __builtin_unreachable();
    }
    __builtin_assume(v != 12345);
    row[11] = __builtin_constant_p(3) + 10 * __is_same(uint, unsigned int);
    """,
    inputs=lambda rng: {"x": np.append(rng.integers(0, 2**32, 30, np.uint32), np.array([0, 2**32 - 1], np.uint32))},
    outputs={"out": ((32, 12), "uint32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.builtins structure.switch",
)
def builtins_of_clang(x):
    rows = []
    for i, v in enumerate(x.tolist()):
        bits = f"{v:032b}"
        ones = bits.count("1")
        leading, trailing = 32 - len(bits.lstrip("0")), 32 - len(bits.rstrip("0"))
        swapped = int.from_bytes(v.to_bytes(4, "little"), "big")
        total = (v - (v >> 31 << 32)) + 2_000_000_000
        wrapped = (total & 0xFFFFFFFF) ^ (total > 2**31 - 1)
        float_bits = int(np.float32(v).view(np.uint32))
        rows.append(
            [
                ones + 100 * (ones % 2),
                leading + 100 * trailing if v else 3232,
                swapped,
                (v << i | v >> (32 - i)) & 0xFFFFFFFF,
                int(bits[::-1], 2),
                wrapped,
                ones + 8,
                int((v & 0xFFFF) + min(v & 7, 3.5) * 2 + 8),
                (v & 255) + 1000 * (v >> 24),
                (float_bits + max(v, 7)) & 0xFFFFFFFF,
                7 if v & 1 else 5 if v > 100 else 6,
                11,
            ]
        )
    return np.array(rows, np.uint32)


# ---- A long body


def _sha256_constants():
    """The first 32 bits of the fractional parts of the cube and square roots of the first primes."""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, math.isqrt(p) + 1))]

    def icbrt(n):
        r = round(n ** (1 / 3))
        while r**3 > n:
            r -= 1
        while (r + 1) ** 3 <= n:
            r += 1
        return r

    keys = [icbrt(p << 96) & 0xFFFFFFFF for p in primes[:64]]
    start = [math.isqrt(p << 64) & 0xFFFFFFFF for p in primes[:8]]
    return keys, start


def _sha256_source():
    """Every round written out, as generators of kernels do."""
    keys, start = _sha256_constants()
    lines = ["uint i = thread_position_in_grid.x;"]
    for j in range(16):
        lines.append(
            f"uint w{j} = (uint(message[i * 64 + {4 * j}]) << 24) | (uint(message[i * 64 + {4 * j + 1}]) << 16) |\n"
            f"          (uint(message[i * 64 + {4 * j + 2}]) << 8) | uint(message[i * 64 + {4 * j + 3}]);"
        )
    for j in range(16, 64):
        lines.append(
            f"uint w{j} = w{j - 16} + (ROTATE(w{j - 15}, 7) ^ ROTATE(w{j - 15}, 18) ^ (w{j - 15} >> 3)) + w{j - 7} +\n"
            f"          (ROTATE(w{j - 2}, 17) ^ ROTATE(w{j - 2}, 19) ^ (w{j - 2} >> 10));"
        )
    names = list("abcdefgh")
    lines += [f"uint {name} = {value:#x}u;" for name, value in zip(names, start, strict=True)]
    for j, key in enumerate(keys):
        a, b, c, d, e, f, g, h = names
        lines.append(
            f"{{  // round {j}\n"
            f"  uint t1 = {h} + (ROTATE({e}, 6) ^ ROTATE({e}, 11) ^ ROTATE({e}, 25)) + (({e} & {f}) ^ (~{e} & {g})) +\n"
            f"            {key:#010x}u + w{j};\n"
            f"  uint t2 = (ROTATE({a}, 2) ^ ROTATE({a}, 13) ^ ROTATE({a}, 22)) + (({a} & {b}) ^ ({a} & {c}) ^ ({b} & {c}));\n"
            f"  {d} += t1;\n"
            f"  {h} = t1 + t2;\n"
            f"}}"
        )
        names = [names[-1], *names[:-1]]
    for j, (name, value) in enumerate(zip("abcdefgh", start, strict=True)):
        lines.append(f"digest[i * 8 + {j}] = {name} + {value:#x}u;")
    return "\n".join(lines)


def _padded_messages(rng):
    blocks = []
    for length in range(0, 56):
        message = rng.integers(0, 256, length, np.uint8).tobytes()
        blocks.append(message + b"\x80" + bytes(55 - length) + (8 * length).to_bytes(8, "big"))
    return np.frombuffer(b"".join(blocks), np.uint8)


@body(
    _sha256_source(),
    header="#define ROTATE(X, N) (((X) >> (N)) | ((X) << (32 - (N))))\n",
    inputs=lambda rng: {"message": _padded_messages(rng)},
    outputs={"digest": ((56, 8), "uint32")},
    grid=(56, 1, 1),
    threadgroup=(56, 1, 1),
    constructs="structure.long_body structure.define_in_header",
)
def sha256_written_out(message):
    digests = []
    for block in message.reshape(-1, 64):
        length = int.from_bytes(block[56:].tobytes(), "big") // 8
        digests.append(np.frombuffer(hashlib.sha256(block[:length].tobytes()).digest(), ">u4"))
    return np.array(digests).astype(np.uint32)


@body(
    """
    uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup;
    if ((lane & 4) != 0) {
      if ((lane & 7) == 4) {
        y[i] = x[i] * 3;
        return;
      }
      // Optimising finds that it does nothing.
      for (uint j = lane; j < 1; j += 32)
        if (x[j] > 30) break;
    }
    y[i] = x[i] + 1;
    """,
    inputs=lambda rng: {"x": rng.integers(-50, 50, 70).astype(np.int32)},
    outputs={"y": ((70,), "int32")},
    grid=(70, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.early_return",
)
def return_beside_a_loop_that_does_nothing(x):
    return np.where(np.arange(70) % 8 == 4, x * 3, x + 1).astype(np.int32)


# ---- Switches over all values that their number can have, in loops within one that is unrolled: their defaults, which
# cannot be reached, leave the loops.


def _after_one(kind, a, x):
    """What a case makes of the number, and what it stores."""
    if (kind == "named" and a & 5 == 0) or (kind != "named" and (a + a) & 3 == 2):
        return a + 3 + (5 if kind == "shared" else 0), a
    if kind == "named" and a & 5 == 1:
        return a ^ 7, 0
    if kind == "named" and a & 5 == 4:
        return a + 9, 0
    q = 0
    while q < a & 7:
        a ^= int(x[(a + q) & 63])
        q += 1
    return a + (1 if kind == "shared" else 0), 0


for _kind, _cases in {
    "halves": """
        switch ((a + a) & 3) {
          case 2: sum += a; a += 3; break;
          case 0: for (int q = 0; q < (a & 7); ++q) a ^= x[(a + q) & 63]; break;
        }""",
    "shared": """
        switch ((a + a) & 3) {
          case 3: sum = 0;
          case 2: sum += a; a += 3;
          case 1: a += 5; break;
          default: for (int q = 0; q < (a & 7); ++q) a ^= x[(a + q) & 63];
                   a += 1;
        }""",
    "named": """
        switch (a & 5) {
          case 0: sum += a; a += 3; break;
          case 1: a ^= 7; break;
          case 4: a += 9; break;
          case 5: for (int q = 0; q < (a & 7); ++q) a ^= x[(a + q) & 63]; break;
          default: __builtin_unreachable();
        }""",
}.items():

    def _switched(x, kind=_kind):
        result = np.zeros((2, 96), np.int32)
        for i in range(96):
            a, total = int(x[i]), 0
            for _ in range(3):
                for _ in range(min(5, a & 7)):
                    for _ in range(3):
                        a, stored = _after_one(kind, a, x)
                        total += stored
                        if a >= 99:
                            break
            result[:, i] = a, total
        return result

    body(
        f"""
        uint i = thread_position_in_grid.x;
        int a = x[i], sum = 0;
        for (int k = 0; k < 3; ++k) {{
          int most = min(5, a & 7);
          for (int m = 0; m < most; ++m) {{
            int j = 0;
            do {{
              {_cases}
            }} while (++j < 3 && a < 99);
          }}
        }}
        y[i] = a;
        y[i + 96] = sum;
        """,
        name=f"exhaustive_switch_in_loops_{_kind}",
        inputs=lambda rng: {"x": rng.integers(0, 120, 96).astype(np.int32)},
        outputs={"y": ((2, 96), "int32")},
        grid=(96, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="structure.switch structure.exhaustive_switch",
    )(_switched)
