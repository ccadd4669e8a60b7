"""CUDA: how bodies and headers are written, where threads are, and what memory they have."""

from typing import Any

import numpy as np

from bodies import Dtype, cuda_body

_LINE: dict[str, Any] = {"grid": (64, 1, 1), "threadgroup": (32, 1, 1)}
_HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


def _ints(count, low=0, high=100, dtype=np.int32):
    return lambda rng: {"x": rng.integers(low, high, count).astype(dtype)}


# ---- Structure


@cuda_body(
    """
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < x_shape[0]; k += gridDim.x * blockDim.x) y[k] = 3 * x[k] + 1;
    """,
    inputs=_ints(1000),
    outputs={"y": ((1000,), "int32")},
    constructs="cuda_structure.grid_stride_loop",
    **_LINE,
)
def cuda_grid_stride_loop(x):
    return 3 * x + np.int32(1)


@cuda_body(
    """
    __shared__ int cells[32];
    int lane = threadIdx.x, at = blockIdx.x * 32 + lane;
    cells[lane] = 0;
    __syncthreads();
    if (lane >= 24) return;
    cells[lane] = x[at];
    __syncthreads();
    int sum = 0, n = 0;
    while (n < 8) {
      if (n == 5) { ++n; continue; }
      sum += cells[(lane + n) % 32];
      if (sum > 300) break;
      ++n;
    }
    do { sum += 1000; } while (sum < 2500);
    y[at] = sum;
    """,
    init_value=-1,
    inputs=_ints(64),
    outputs={"y": ((64,), "int32")},
    constructs="cuda_structure.early_return cuda_structure.return_before_barrier cuda_structure.loops "
    "cuda_synchronisation.__syncthreads cuda_memory.shared_array cuda_launch.init_value",
    **_LINE,
)
def cuda_returns_and_loops(x):
    y = np.full(64, -1, np.int32)
    for at in range(64):
        lane, first = at % 32, at // 32 * 32
        if lane >= 24:
            continue
        total, n = 0, 0
        while n < 8:
            if n != 5:
                other = (lane + n) % 32
                total += int(x[first + other]) if other < 24 else 0
                if total > 300:
                    break
            n += 1
        total += 1000
        while total < 2500:
            total += 1000
        y[at] = total
    return y


@cuda_body(
    """
    __shared__ int cells[2][32];
    int lane = threadIdx.x, v = x[blockIdx.x * 32 + lane], turn = 0;
    bool forward = blockIdx.x == 0;
    if (forward) {
      cells[1][lane] = v;
      __syncthreads();
      v += cells[1][31 - lane];
      __syncthreads();
    }
    for (int d = 1; d < 32; d *= 2) {
      cells[turn][lane] = v;
      __syncthreads();
      if (lane >= d) v += cells[turn][lane - d];
      turn ^= 1;
    }
    y[blockIdx.x * 32 + lane] = v;
    """,
    inputs=_ints(64),
    outputs={"y": ((64,), "int32")},
    constructs="cuda_structure.barrier_in_loop cuda_structure.barrier_under_uniform_condition",
    **_LINE,
)
def cuda_barriers_in_loops(x):
    x = x.reshape(2, 32).copy()
    x[0] += x[0, ::-1].copy()
    return np.cumsum(x, 1).astype(np.int32).reshape(-1)


@cuda_body(
    _HEAD
    + """
    #define TWICE(v) \\
      ((v) +         \\
       (v))
    #define NAME(a, b) a##b
    int NAME(fi, ve) = 5, kind = i % 6;
    switch (kind) {
      case 0: y[i] = 10; break;
      case 1:
      case 2: y[i] = TWICE(five);
      default: y[i] += SCALE(3); break;
      case 4: { y[i] = -1; } break;
      case 5: y[i] = ARCHITECTURE;
    }
    """,
    header="""
    #define SCALE(v) \\
      ((v) * 7)
    #if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    #define ARCHITECTURE 8
    #else
    #define ARCHITECTURE 0
    #endif
    """,
    init_value=0,
    outputs={"y": ((64,), "int32")},
    constructs="cuda_structure.switch cuda_structure.macros cuda_structure.token_pasting cuda_structure.conditional_macros",
    **_LINE,
)
def cuda_macros_and_cases():
    return np.array([10, 31, 31, 21, -1, 8], np.int32)[np.arange(64) % 6]


@cuda_body(
    _HEAD
    + "y[i] = a(x[i]) + b(x[i]) + c(x[i]) + d(x[i]) + outer::inner::e(x[i]) + f(x[i], 2, 3.5f) + g<float, 3>(x[i]);",
    header="""
    __device__ __forceinline__ float a(float v) { return v + 1; }
    __host__ __device__ float b(float v) { return 2 * v; }
    static __device__ __noinline__ float c(float v) { return v - 1; }
    __device__ __inline__ float d(const float& v) { return -v; }
    namespace outer { namespace inner { __device__ float e(float v) { return 4 * v; } } }
    namespace { template <typename... Rest> __device__ float f(Rest... rest) { return (rest + ...); } }
    template <typename T, int N> __device__ T g(T v) { return N * v; }
    template <> __device__ float g<float, 3>(float v) { return v / 2; }
    __global__ void __launch_bounds__(128) never_launched(float* p) { p[0] = 1; }
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 64).astype(np.float32)},
    outputs={"y": ((64,), "float32")},
    constructs="cuda_structure.helper_function cuda_structure.function_words cuda_structure.namespace "
    "cuda_structure.variadic_template cuda_structure.template cuda_structure.kernel_in_header",
    **_LINE,
)
def cuda_functions_of_every_kind(x):
    # a + b + c + d + e + f + g
    return (x + 1) + 2 * x + (x - 1) - x + 4 * x + (x + np.float32(5.5)) + x / 2


@cuda_body(
    _HEAD
    + """
    enum class Kind : int { low, high };
    union { float number; unsigned word; } both;
    both.number = x[i];
    Kind kind = both.word >> 31 ? Kind::low : Kind::high;
    auto [one_time, two_times] = make_int2(i, 2 * i);
    int first = one_time, second = two_times;
    Angle<float> angle{x[i]};
    Angle<float> sum = angle + Angle<float>(1.0f);
    constexpr int cells = Angle<float>::cells(3);
    static_assert(cells == 9, "three by three");
    float table[cells] = {};
    for (int k = 0; k < cells; ++k) table[k] = k * x[i];
    auto add = [&](int v) { return v + first; };
    auto twice = [=](float v) { return 2 * v + second; };
    float result = 0;
    if constexpr (cells > 4) result = table[i % cells] + add(1) + twice(0.5f);
    y[i] = result + float(sum) + (kind == Kind::low ? 100.0f : 0.0f);
    z[i] = static_cast<int>(x[i]) + (int)x[i] + *reinterpret_cast<const int*>(&x[i]) % 7 + const_cast<int&>(first) * 0;
    """,
    header="""
    template <typename T>
    struct Angle {
      T value;
      __device__ Angle(T v) : value(v) {}
      __device__ Angle operator+(const Angle& other) const { return Angle(value + other.value); }
      __device__ explicit operator float() const { return float(value); }
      static constexpr __device__ int cells(int n) { return n * n; }
    };
    """,
    inputs=lambda rng: {"x": rng.integers(-50, 50, 64).astype(np.float32)},
    outputs={"y": ((64,), "float32"), "z": ((64,), "int32")},
    constructs="cuda_structure.enum cuda_structure.union cuda_structure.structured_binding cuda_structure.struct "
    "cuda_structure.operator cuda_structure.constexpr cuda_structure.if_constexpr cuda_structure.lambda "
    "cuda_structure.local_array cuda_structure.casts",
    **_LINE,
)
def cuda_classes_and_casts(x):
    i = np.arange(64)
    result = (i % 9) * x + (1 + i) + (1 + 2 * i)
    y = result + (x + 1) + np.where(np.signbit(x), 100, 0)
    words = x.view(np.int32).astype(np.int64)
    z = 2 * x.astype(np.int64) + np.fmod(words, 7)
    return y.astype(np.float32), z.astype(np.int32)


@cuda_body(
    _HEAD
    + """
    const T* __restrict__ in = x;
    T sum = 0;
    #pragma unroll
    for (int k = 0; k < N; ++k) sum += in[(i + k) % 64];
    #pragma unroll 2
    for (int k = 0; k < N; ++k) sum -= in[(i + 2 * k) % 64] / 2;
    __builtin_assume(i < 64);
    if (__builtin_expect(i == 3, 0)) sum += FLAG ? 5 : 0;
    if (i > 1000) __builtin_unreachable();
    Holder h{sum};
    Holder moved = std::move(h);
    y[i] = pass(std::forward<T>(moved.value));
    """,
    header="""
    struct Holder { float value; };
    template <typename U> __device__ U pass(U&& v) { return v; }
    """,
    template=[("T", Dtype("float32")), ("N", 4), ("FLAG", True)],
    inputs=lambda rng: {"x": (2 * rng.integers(0, 100, 64)).astype(np.float32)},
    outputs={"y": ((64,), "float32")},
    constructs="cuda_structure.pragma_unroll cuda_structure.restrict cuda_structure.hints cuda_structure.move "
    "cuda_structure.template_arguments cuda_launch.template_arguments",
    **_LINE,
)
def cuda_hints_and_unrolling(x):
    total = sum(np.roll(x, -k) for k in range(4)) - sum(np.roll(x, -2 * k) / 2 for k in range(4))
    return (total + np.where(np.arange(64) == 3, 5, 0)).astype(np.float32)


# ---- Indices


@cuda_body(
    """
    uint3 thread = threadIdx, block = blockIdx;
    dim3 threads = blockDim, blocks = gridDim, plain(7), two(2, 3);
    unsigned at = ((block.z * blocks.y + block.y) * blocks.x + block.x) * (threads.x * threads.y * threads.z)
                + (thread.z * threads.y + thread.y) * threads.x + thread.x;
    y[at] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z
          + 1000000 * (blockDim.x == 4 && blockDim.y == 2 && blockDim.z == 2 && gridDim.x == 2 && gridDim.y == 3 && gridDim.z == 2)
          + (plain.x == 7 && plain.y == 1 && two.y == 3 && two.z == 1 && warpSize == 32 && WARP_SIZE == 32 ? 0 : 7);
    """,
    outputs={"y": ((12, 16), "int32")},
    grid=(8, 6, 4),
    threadgroup=(4, 2, 2),
    constructs="cuda_indices.threadIdx cuda_indices.blockIdx cuda_indices.blockDim cuda_indices.gridDim cuda_indices.warpSize "
    "cuda_indices.dim3 cuda_indices.uint3 cuda_indices.three_dimensions cuda_mlx.WARP_SIZE",
)
def cuda_places_in_three_dimensions():
    block, thread = np.arange(12)[:, None], np.arange(16)[None, :]
    at = thread % 4 + 10 * (thread // 4 % 2) + 100 * (thread // 8)
    return (at + 1000 * (block % 2) + 10000 * (block // 2 % 3) + 100000 * (block // 6) + 1000000).astype(np.int32)


# ---- Memory


@cuda_body(
    """
    __shared__ __align__(16) float rows[4][9];
    __shared__ alignas(8) float2 pairs[32];
    __shared__ Cell cells[32];
    __shared__ int total;
    __shared__ volatile int last;
    __shared__ __half halves[32];
    __shared__ __nv_bfloat16 bfloats[32];
    int t = threadIdx.x, v = x[t];
    rows[t / 8][t % 8] = v;
    pairs[t] = make_float2(v, t);
    cells[t].value = v;
    cells[t].index = t;
    halves[t] = float(v);
    bfloats[t] = float(v % 64);
    if (t == 0) total = last = 0;
    __syncthreads();
    atomicAdd(&total, v);
    if (t == 31) last = v;
    __syncthreads();
    int other = 31 - t;
    y[t] = rows[other / 8][other % 8] + 1000 * (pairs[other].x == v) + pairs[other].y * 10000;
    y[32 + t] = cells[other].value + 1000 * cells[other].index;
    y[64 + t] = total + last;
    y[96 + t] = int(halves[other]) + 1000 * int(bfloats[other]);
    y[128 + t] = reversed(v) + 1000 * shifted<3>(v) + 1000000 * shifted<5>(v);
    """,
    header="""
    struct Cell { int value; short index; };
    __device__ int reversed(int v) {
      __shared__ int cells[32];
      cells[threadIdx.x] = v;
      __syncthreads();
      return cells[31 - threadIdx.x];
    }
    template <int N> __device__ int shifted(int v) {
      __shared__ int cells[32 + N];
      cells[threadIdx.x + N] = v;
      if (threadIdx.x < N) cells[threadIdx.x] = N;
      __syncthreads();
      return cells[threadIdx.x];
    }
    """,
    inputs=_ints(32),
    outputs={"y": ((5, 32), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_memory.shared_array cuda_memory.shared_2d_array cuda_memory.shared_vectors cuda_memory.shared_struct "
    "cuda_memory.shared_scalar cuda_memory.shared_volatile cuda_memory.shared_halves cuda_memory.shared_alignment "
    "cuda_memory.shared_in_helper cuda_memory.shared_in_template cuda_atomics.shared_memory",
)
def cuda_shared_memory_of_every_kind(x):
    t, back = np.arange(32), x[::-1]
    rows = [back + 1000 * (back == x) + 10000 * t[::-1], back + 1000 * t[::-1], np.full(32, x.sum() + x[31])]
    shifted = [np.where(t < n, n, x[np.maximum(t - n, 0)]) for n in (3, 5)]
    rows += [back + 1000 * (back % 64), back + 1000 * shifted[0] + 1000000 * shifted[1]]
    return np.stack(rows).astype(np.int32)


@cuda_body(
    """
    extern __shared__ __align__(16) unsigned char memory[];
    double* doubles = reinterpret_cast<double*>(memory);
    float4* vectors = reinterpret_cast<float4*>(doubles + 32);
    unsigned short* shorts = reinterpret_cast<unsigned short*>(vectors + 32);
    int t = threadIdx.x;
    doubles[t] = x[t] * 0.5;
    vectors[t] = make_float4(x[t], t, 0, 1);
    shorts[t] = t * 3;
    __syncthreads();
    int other = (t + 7) % 32;
    y[t] = doubles[other] + vectors[other].x + vectors[other].y * 1000 + shorts[other] * 100000.0;
    """,
    shared_memory=32 * (8 + 16 + 2),
    inputs=_ints(32),
    outputs={"y": ((32,), "float64")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_memory.dynamic_shared cuda_memory.dynamic_shared_parts cuda_launch.shared_memory",
)
def cuda_parts_of_dynamic_memory(x):
    t = np.roll(np.arange(32), -7)
    return 1.5 * x[t] + 1000.0 * t + 300000.0 * t


@cuda_body(
    _HEAD
    + """
    constexpr float half_of[4] = {0.5f, 1.0f, 1.5f, 2.0f};
    y[i] = table[i % 5] + Squares<4>::of[i % 4] + half_of[i % 4] + (&first)[0];
    """,
    header="""
    __constant__ float table[5] = {1, 2, 3, 4, 5};
    static __constant__ int first = 100;
    template <int N> struct Squares { static constexpr int of[4] = {N * 0, N * 1, N * 4, N * 9}; };
    """,
    outputs={"y": ((64,), "float32")},
    constructs="cuda_memory.__constant__ cuda_memory.constexpr_table",
    **_LINE,
)
def cuda_tables():
    i = np.arange(64)
    return (i % 5 + 1 + 4 * (i % 4) ** 2 + (i % 4 + 1) / 2 + 100).astype(np.float32)


@cuda_body(
    _HEAD
    + """
    const float* in = x;
    float4 v = __ldg(reinterpret_cast<const float4*>(x) + i % 16);
    y[i] = __ldg(in + i) + __ldca(in + i) + __ldcg(in + i) + __ldcs(in + i) + __ldlu(in + i) + __ldcv(in + i);
    __stwb(&y[64 + i], v.x);
    __stcg(&y[128 + i], v.y);
    __stcs(&y[192 + i], v.z);
    __stwt(&y[256 + i], v.w);
    volatile float* again = y;
    again[320 + i] = 1;
    again[320 + i] += 2;
    unsigned char bytes[8];
    memset(bytes, 3, 8);
    memcpy(bytes + 4, &in[i], 4);
    float copied;
    memcpy(&copied, bytes + 4, sizeof copied);
    y[384 + i] = copied + bytes[2];
    if (i < 16) reinterpret_cast<float4*>(y + 448)[i] = reinterpret_cast<const float4*>(x)[15 - i];
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 64).astype(np.float32)},
    outputs={"y": ((8, 64), "float32")},
    constructs="cuda_memory.loads cuda_memory.stores cuda_memory.volatile cuda_memory.memcpy cuda_memory.vector_access",
    **_LINE,
)
def cuda_loads_stores_and_copies(x):
    quads = np.tile(x.reshape(16, 4), (4, 1))
    rows = [6 * x, *quads.T, np.full(64, 3), x + 3, x.reshape(16, 4)[::-1].reshape(-1)]
    return np.stack(rows).astype(np.float32)


# ---- Barriers and fences


@cuda_body(
    """
    __shared__ int cells[64];
    int t = threadIdx.x, v = x[t];
    cells[t] = v;
    __barrier_sync(0);
    int other = cells[63 - t];
    int count = __syncthreads_count(v > other), all = __syncthreads_and(v < 100), any = __syncthreads_or(v > 98);
    cells[t] = other;
    __syncwarp();
    int next = cells[t / 32 * 32 + (t + 1) % 32];
    __syncwarp(0xffffffff);
    __threadfence_block();
    cells[t] = next;
    __threadfence_system();
    __syncthreads();
    __threadfence();
    y[t] = cells[63 - t] + 1000 * count + 100000 * (all != 0) + 1000000 * (any != 0);
    """,
    inputs=_ints(64),
    outputs={"y": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_synchronisation.__barrier_sync cuda_synchronisation.__syncthreads_count "
    "cuda_synchronisation.__syncthreads_and cuda_synchronisation.__syncthreads_or cuda_synchronisation.__syncwarp "
    "cuda_synchronisation.__threadfence cuda_synchronisation.__threadfence_block cuda_synchronisation.__threadfence_system",
)
def cuda_barriers_and_fences(x):
    other = x[::-1]
    t = np.arange(64)
    following = other[t // 32 * 32 + (t + 1) % 32]
    flags = 1000 * (x > other).sum() + 100000 + 1000000 * (x > 98).any()
    return (following[::-1] + flags).astype(np.int32)


@cuda_body(
    """
    __shared__ bool last;
    int t = threadIdx.x;
    atomicAdd(&sums[blockIdx.x], x[blockIdx.x * 32 + t]);
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicInc(&counter[0], gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    int sum = 0;
    for (int b = t; b < gridDim.x; b += 32) sum += __ldcg(&sums[b]);
    sum = __reduce_add_sync(~0u, sum);
    if (t == 0) y[0] = sum;
    """,
    init_value=0,
    inputs=_ints(32 * 40),
    outputs={"sums": ((40,), "int32"), "counter": ((1,), "uint32"), "y": ((1,), "int32")},
    grid=(32 * 40, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_synchronisation.last_block cuda_launch.several_outputs",
)
def cuda_last_block_reduces(x):
    sums = x.reshape(40, 32).sum(1).astype(np.int32)
    return sums, np.zeros(1, np.uint32), sums.sum(keepdims=True).astype(np.int32)


@cuda_body(
    """
    // A scan in one pass: each block takes a number, waits for the sum of those before it, and hands its own on.
    __shared__ int block, before;
    int t = threadIdx.x;
    if (t == 0) block = atomicAdd(&tickets[0], 1);
    __syncthreads();
    int v = x[block * 32 + t], sum = v;
    for (int d = 1; d < 32; d *= 2) {
      int below = __shfl_up_sync(~0u, sum, d);
      if (t >= d) sum += below;
    }
    if (t == 31) {
      volatile int* flags = tickets;
      volatile int* totals = tickets + 33;
      before = 0;
      if (block > 0) {
        while (flags[block] == 0) __nanosleep(20);
        __threadfence();
        before = totals[block - 1];
      }
      totals[block] = before + sum;
      __threadfence();
      flags[block + 1] = 1;
    }
    __syncthreads();
    y[block * 32 + t] = before + sum;
    """,
    init_value=0,
    inputs=_ints(32 * 32),
    outputs={"tickets": ((65,), "int32"), "y": ((1024,), "int32")},
    grid=(1024, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_synchronisation.waiting_blocks",
)
def cuda_scan_in_one_pass(x):
    total = np.cumsum(x)
    return np.concatenate([[32], np.ones(32), total[31::32]]).astype(np.int32), total.astype(np.int32)


# ---- Types

_VECTORS = {
    "char": ("int8", 4),
    "uchar": ("uint8", 4),
    "short": ("int16", 4),
    "ushort": ("uint16", 4),
    "int": ("int32", 4),
    "uint": ("uint32", 4),
    "long": ("int64", 3),
    "ulong": ("uint64", 3),
    "longlong": ("int64", 3),
    "ulonglong": ("uint64", 3),
    "float": ("float32", 4),
    "double": ("float64", 3),
}
for _word, (_dtype, _widest) in _VECTORS.items():

    def _vector(x, widest=_widest):
        a, b, c, d = (np.roll(x, -k) for k in range(4))
        rows = [a, b + a, a + c + b, (b + d) if widest == 4 else c]
        return np.stack(rows).astype(x.dtype)

    _four = (
        f"{_word}4 four = make_{_word}4(a, b, c, d); {_word}4 other; other = four; y[192 + i] = other.y + other.w;"
        if _widest == 4
        else "y[192 + i] = c;"
    )
    cuda_body(
        _HEAD
        + f"""
        auto a = x[i], b = x[(i + 1) % 64], c = x[(i + 2) % 64], d = x[(i + 3) % 64];
        {_word}1 one = make_{_word}1(a);
        {_word}2 two = make_{_word}2(a, b), pairs[2] = {{two, {{b, a}}}};
        {_word}3 three = make_{_word}3(a, b, c);
        y[i] = one.x;
        y[64 + i] = pairs[1].x + two.x;
        y[128 + i] = three.x + three.z + (&three)->y;
        {_four}
        """,
        name=f"cuda_vectors_of_{_word}",
        inputs=_ints(64, 0, 40, np.dtype(_dtype)),
        outputs={"y": ((4, 64), _dtype)},
        constructs=f"cuda_types.{_word}{4 if _widest == 4 else 2}",
        **_LINE,
    )(_vector)


@cuda_body(
    """
    int n = 0;
    for (unsigned v : {sizeof(char2), alignof(char2), sizeof(uchar3), alignof(uchar4), sizeof(short3), alignof(short4),
                       sizeof(int3), alignof(int4), alignof(int2), sizeof(float3), alignof(float4), sizeof(double3),
                       alignof(double2), alignof(longlong2), sizeof(ulonglong3), sizeof(dim3), sizeof(__half2), alignof(__half2)})
      y[n++] = v;
    int8_t a = -1; uint8_t b = 255; int16_t c = -2; uint16_t d = 65535; int32_t e = -3; uint32_t f = 7;
    int64_t g = -4; uint64_t h = 1ull << 40;
    size_t s = 9; ptrdiff_t p = -5;
    y[n++] = a + b + c + d + e + f + g + int(h >> 36) + s + p;
    """,
    outputs={"y": ((19,), "int32")},
    grid=(1, 1, 1),
    threadgroup=(1, 1, 1),
    constructs="cuda_types.vector_alignment cuda_types.int32_t cuda_types.size_t",
)
def cuda_sizes_and_alignments():
    sizes = [2, 2, 3, 4, 6, 8, 12, 16, 8, 12, 16, 24, 16, 16, 24, 12, 4, 4]
    return np.array([*sizes, -1 + 255 - 2 + 65535 - 3 + 7 - 4 + 16 + 9 - 5], np.int32)


@cuda_body(
    """
    y[0] = INT_MAX; y[1] = INT_MIN; y[2] = UINT_MAX; y[3] = LLONG_MAX; y[4] = INT32_MAX; y[5] = UINT8_MAX;
    y[6] = FLT_MAX; y[7] = FLT_MIN; y[8] = FLT_EPSILON; y[9] = DBL_MAX; y[10] = DBL_EPSILON;
    """,
    outputs={"y": ((11,), "float64")},
    grid=(1, 1, 1),
    threadgroup=(1, 1, 1),
    constructs="cuda_types.limits",
)
def cuda_ends_of_types():
    f, d = np.finfo(np.float32), np.finfo(np.float64)
    whole = [2**31 - 1, -(2**31), 2**32 - 1, 2**63, 2**31 - 1, 255]
    return np.array([*whole, f.max, f.tiny, f.eps, d.max, d.eps], np.float64)


@cuda_body(
    _HEAD
    + """
    y[i] = x[i] == 0 ? CUDART_INF_F : x[i] * CUDART_PI_F + CUDART_L2E_F * CUDART_LN2_F;
    y[64 + i] = isnan(CUDART_NAN_F) + 2 * isnan(CUDART_NAN) + 4 * (CUDART_INF > 1e308) + CUDART_SQRT_TWO_F;
    z[i] = CUDART_PI * i;
    """,
    header="#include <math_constants.h>",
    inputs=lambda rng: {"x": rng.integers(0, 5, 64).astype(np.float32)},
    outputs={"y": ((2, 64), "float32"), "z": ((64,), "float64")},
    tolerance=2**-20,
    constructs="cuda_types.CUDART_constants",
    **_LINE,
)
def cuda_constants_of_a_header(x):
    v = x.astype(np.float64)
    y = np.stack([np.where(v == 0, np.inf, v * np.pi + 1), np.full(64, 7 + np.sqrt(2))])
    return y, np.pi * np.arange(64)


@cuda_body(
    """
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    float v = __half2float(__float2half(x[block.thread_rank()]));
    y[block.thread_rank()] = cg::reduce(tile, v, cg::plus<float>());
    y[32 + block.thread_rank()] = cg::inclusive_scan(tile, __bfloat162float(__float2bfloat16(v)), cg::greater<float>());
    """,
    # As files begin that a compiler of CUDA's reads.
    header="""
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cooperative_groups/scan.h>
    namespace cg = cooperative_groups;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 32).astype(np.float32)},
    outputs={"y": ((2, 32), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
)
def cuda_included_headers(x):
    tiles = x.reshape(2, 16)
    return np.stack([np.repeat(tiles.sum(1), 16), np.maximum.accumulate(tiles, 1).reshape(-1)])


# ---- Output and launch


@cuda_body(
    _HEAD
    + """
    assert(i < 64 && "as many as there are");
    if (i > 100) {
      printf("never printed: %d %5.2f %s %c %llu %%\\n", i, 1.5, "text", 'c', 7ull);
      __trap();
      __brkpt();
      __prof_trigger(1);
    }
    long long begin = clock64();
    __nanosleep(5);
    y[i] = (clock64() >= begin) + 2 * (sizeof(clock()) > 0);
    """,
    outputs={"y": ((64,), "int32")},
    constructs="cuda_output.printf cuda_output.assert cuda_output.clock cuda_output.__trap",
    **_LINE,
)
def cuda_output_and_clock():
    return np.full(64, 3, np.int32)


@cuda_body(
    """
    // The grid has 70 threads; 96 run.
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&count[0], 1);
    if (i < x_shape[0] * x_shape[1]) {
      int row = i / x_shape[1], column = i % x_shape[1];
      y[i] = x[row * x_strides[0] + column * x_strides[1]] + x_ndim;
    }
    """,
    init_value=0,
    ensure_row_contiguous=False,
    inputs=lambda rng: {"x": rng.integers(0, 100, (20, 14)).astype(np.int32)[::-2, ::2]},
    outputs={"y": ((10, 7), "int32"), "count": ((1,), "int32")},
    grid=(70, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="cuda_launch.whole_blocks cuda_launch.shape_arguments cuda_launch.strided",
)
def cuda_strided_input(x):
    return x + np.int32(2), np.array([96], np.int32)


@cuda_body(
    _HEAD
    + """
    AlignedVector<float, 4> v = unsafe_load_vector<4>(x, i);
    for (int k = 0; k < 4; ++k) v[k] = 2 * v[3 - k] * (k < 2) + v[k] * (k >= 2);
    unsafe_store_vector<4>(y, i, v);
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 256).astype(np.float32)},
    outputs={"y": ((64, 4), "float32")},
    constructs="cuda_mlx.AlignedVector",
    **_LINE,
)
def cuda_aligned_vectors(x):
    q = x.reshape(64, 4)
    return np.stack([2 * q[:, 3], 2 * q[:, 2], q[:, 2], q[:, 3]], 1)
