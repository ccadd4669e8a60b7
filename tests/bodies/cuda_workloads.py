"""CUDA: kernels as users write them."""

import numpy as np

from bodies import CUDA_DTYPES, Dtype, cuda_body


def _normal(*shape, dtype="float32"):
    return lambda rng: rng.normal(size=shape).astype(np.float32).astype(CUDA_DTYPES[dtype])


def _inputs(**makers):
    return lambda rng: {name: make(rng) if callable(make) else make for name, make in makers.items()}


_WARP_SUM = """
template <typename T> __device__ T warp_sum(T v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
"""

for _dtype, _tolerance in (("float32", 1e-5), ("float16", 2e-3), ("bfloat16", 2e-2)):

    def _softmax(x):
        v = x.astype(np.float64)
        e = np.exp(v - v.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    cuda_body(
        """
        const T* row = x + blockIdx.x * x_shape[1];
        float high = -INFINITY;
        for (int i = threadIdx.x; i < x_shape[1]; i += 32) high = fmaxf(high, float(row[i]));
        for (int d = 16; d > 0; d /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, d));
        float sum = 0;
        for (int i = threadIdx.x; i < x_shape[1]; i += 32) sum += __expf(float(row[i]) - high);
        sum = warp_sum(sum);
        for (int i = threadIdx.x; i < x_shape[1]; i += 32)
          y[blockIdx.x * x_shape[1] + i] = T(__expf(float(row[i]) - high) / sum);
        """,
        name=f"cuda_softmax_{_dtype}",
        header=_WARP_SUM,
        template=[("T", Dtype(_dtype))],
        inputs=_inputs(x=_normal(6, 100, dtype=_dtype)),
        outputs={"y": ((6, 100), _dtype)},
        tolerance=_tolerance,
        grid=(6 * 32, 1, 1),
        threadgroup=(32, 1, 1),
    )(_softmax)

    def _rms_norm(x, w):
        v = x.astype(np.float64)
        return v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-5) * w.astype(np.float64)

    cuda_body(
        """
        __shared__ float sums[4];
        auto block = cg::this_thread_block();
        auto warp = cg::tiled_partition<32>(block);
        float v = float(x[blockIdx.x * 128 + threadIdx.x]);
        float sum = cg::reduce(warp, v * v, cg::plus<float>());
        if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum;
        block.sync();
        sum = sums[0] + sums[1] + sums[2] + sums[3];
        y[blockIdx.x * 128 + threadIdx.x] = v * rsqrtf(sum / 128 + 1e-5f) * float(w[threadIdx.x]);
        """,
        name=f"cuda_rms_norm_{_dtype}",
        inputs=_inputs(x=_normal(4, 128, dtype=_dtype), w=_normal(128, dtype=_dtype)),
        outputs={"y": ((4, 128), _dtype)},
        tolerance=_tolerance,
        grid=(512, 1, 1),
        threadgroup=(128, 1, 1),
    )(_rms_norm)


@cuda_body(
    """
    constexpr int SIDE = 16;
    __shared__ float left[SIDE][SIDE], right[SIDE][SIDE];
    int row = blockIdx.y * SIDE + threadIdx.y, col = blockIdx.x * SIDE + threadIdx.x;
    int rows = a_shape[0], inner = a_shape[1], cols = b_shape[1];
    float sum = 0;
    for (int k = 0; k < inner; k += SIDE) {
      left[threadIdx.y][threadIdx.x] = row < rows && k + threadIdx.x < inner ? a[row * inner + k + threadIdx.x] : 0;
      right[threadIdx.y][threadIdx.x] = col < cols && k + threadIdx.y < inner ? b[(k + threadIdx.y) * cols + col] : 0;
      __syncthreads();
    #pragma unroll
      for (int n = 0; n < SIDE; ++n) sum += left[threadIdx.y][n] * right[n][threadIdx.x];
      __syncthreads();
    }
    if (row < rows && col < cols) y[row * cols + col] = sum;
    """,
    inputs=lambda rng: {
        "a": rng.integers(-4, 5, (40, 30)).astype(np.float32),
        "b": rng.integers(-4, 5, (30, 50)).astype(np.float32),
    },
    outputs={"y": ((40, 50), "float32")},
    grid=(50, 40, 1),
    threadgroup=(16, 16, 1),
)
def cuda_matrix_product(a, b):
    return a @ b


@cuda_body(
    """
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < x_shape[0]) atomicAdd(&bins[x[i] >> 4], 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
    """,
    init_value=0,
    inputs=lambda rng: {"x": rng.integers(0, 256, 1000, np.uint8)},
    outputs={"y": ((16,), "uint32")},
    grid=(1000, 1, 1),
    threadgroup=(128, 1, 1),
)
def cuda_histogram(x):
    return np.bincount(x >> 4, minlength=16).astype(np.uint32)


@cuda_body(
    """
    __shared__ int warp_totals[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, v = x[threadIdx.x];
    for (int d = 1; d < 32; d *= 2) {
      int below = __shfl_up_sync(~0u, v, d);
      if (lane >= d) v += below;
    }
    if (lane == 31) warp_totals[warp] = v;
    __syncthreads();
    for (int w = 0; w < warp; ++w) v += warp_totals[w];
    y[threadIdx.x] = v;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 256).astype(np.int32)},
    outputs={"y": ((256,), "int32")},
    grid=(256, 1, 1),
    threadgroup=(256, 1, 1),
)
def cuda_scan(x):
    return np.cumsum(x).astype(np.int32)


@cuda_body(
    """
    auto elem = cooperative_groups::this_grid().thread_rank();
    int H = x_shape[1], W = x_shape[2], C = x_shape[3], gH = grid_shape[1], gW = grid_shape[2];
    if (elem >= (unsigned long long)grid_shape[0] * gH * gW * C) return;
    auto place = elem / C * 2;
    float ix = ((grid[place] + 1) * W - 1) / 2, iy = ((grid[place + 1] + 1) * H - 1) / 2;
    int left = floorf(ix), top = floorf(iy);
    auto batch = elem / C / gW / gH * H * W * C;
    auto channel = elem % C;
    T sum = 0;
    for (int dy = 0; dy < 2; ++dy)
      for (int dx = 0; dx < 2; ++dx) {
        int col = left + dx, row = top + dy;
        if (col < 0 || col >= W || row < 0 || row >= H) continue;
        sum += (1 - fabsf(ix - col)) * (1 - fabsf(iy - row)) * x[batch + (row * W + col) * C + channel];
      }
    y[elem] = sum;
    """,
    template=[("T", Dtype("float32"))],
    inputs=_inputs(x=_normal(2, 9, 8, 4), grid=lambda rng: rng.uniform(-1.2, 1.2, (2, 5, 6, 2)).astype(np.float32)),
    outputs={"y": ((2, 5, 6, 4), "float32")},
    tolerance=1e-3,
    grid=(240, 1, 1),
    threadgroup=(64, 1, 1),
)
def cuda_grid_sample(x, grid):
    h, w = x.shape[1:3]
    # Positions in float, as the body has them: which corner they belong to depends on it.
    at_x = ((grid[..., 0] + 1) * np.float32(w) - 1) / 2
    at_y = ((grid[..., 1] + 1) * np.float32(h) - 1) / 2
    left, top = np.floor(at_x).astype(int), np.floor(at_y).astype(int)
    batch = np.arange(2)[:, None, None]
    total = np.zeros((2, 5, 6, 4))
    for dy in range(2):
        for dx in range(2):
            col, row = left + dx, top + dy
            inside = (col >= 0) & (col < w) & (row >= 0) & (row < h)
            weight = (1 - np.abs(at_x.astype(float) - col)) * (1 - np.abs(at_y.astype(float) - row)) * inside
            total += weight[..., None] * x[batch, np.clip(row, 0, h - 1), np.clip(col, 0, w - 1)]
    return total


@cuda_body(
    """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 500) return;
    float cx = x[2 * i], cy = x[2 * i + 1], a = 0, b = 0;
    int n = 0;
    while (n < 50 && a * a + b * b < 4.0f) {
      float next = a * a - b * b + cx;
      b = 2 * a * b + cy;
      a = next;
      ++n;
    }
    y[i] = n;
    """,
    # On a lattice of powers of two far from the edge of the set, so that contraction changes nothing.
    inputs=lambda rng: {"x": rng.choice([-2.5, -1.0, 0.0, 0.25, 1.0, 2.0], (500, 2)).astype(np.float32)},
    outputs={"y": ((500,), "int32")},
    grid=(500, 1, 1),
    threadgroup=(64, 1, 1),
)
def cuda_escape_times(x):
    a = b = np.zeros(500)
    n = np.zeros(500, np.int32)
    for _ in range(50):
        go = a * a + b * b < 4
        a, b = np.where(go, a * a - b * b + x[:, 0], a), np.where(go, 2 * a * b + x[:, 1], b)
        n += go
    return n


@cuda_body(
    """
    // Half precision in, float sums, one block a row.
    extern __shared__ float partial[];
    const half2* row = reinterpret_cast<const half2*>(x) + blockIdx.x * 64;
    const half2* vec = reinterpret_cast<const half2*>(v);
    float2 p = __half22float2(__hmul2(row[threadIdx.x], vec[threadIdx.x]));
    partial[threadIdx.x] = p.x + p.y;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
      if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
      __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = __float2half(partial[0]);
    """,
    shared_memory=256,
    inputs=lambda rng: {
        "x": rng.integers(-2, 3, (8, 128)).astype(np.float16),
        "v": rng.integers(-2, 3, 128).astype(np.float16),
    },
    outputs={"y": ((8,), "float16")},
    grid=(512, 1, 1),
    threadgroup=(64, 1, 1),
)
def cuda_half_matrix_vector(x, v):
    return (x.astype(np.float64) @ v.astype(np.float64)).astype(np.float16)
