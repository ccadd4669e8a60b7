"""CUDA: kernels in the manner of those that projects ship, each with a reference in NumPy."""

from typing import Any

import numpy as np

from bodies import CUDA_DTYPES, Dtype, cuda_body

_BF16 = CUDA_DTYPES["bfloat16"]


def _f64(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


# ---- Reductions, scans, sorting

_BLOCK_REDUCE = """
// Sums, maxima and the place of the maximum over a block of at most 1024 threads.
struct Best {
  float value;
  int index;
};
__device__ __forceinline__ Best better(Best a, Best b) {
  if (b.value > a.value || (b.value == a.value && b.index < a.index)) return b;
  return a;
}
__device__ __forceinline__ float warp_sum(float v) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
  return v;
}
__device__ __forceinline__ Best warp_best(Best best) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    Best other;
    other.value = __shfl_down_sync(0xffffffffu, best.value, offset);
    other.index = __shfl_down_sync(0xffffffffu, best.index, offset);
    best = better(best, other);
  }
  return best;
}
__device__ float block_sum(float v) {
  static __shared__ float partial[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  v = warp_sum(v);
  __syncthreads();
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  v = lane < warps ? partial[lane] : 0.0f;
  return __shfl_sync(0xffffffffu, warp_sum(v), 0);
}
__device__ Best block_best(Best best) {
  static __shared__ float values[32];
  static __shared__ int indices[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  best = warp_best(best);
  __syncthreads();
  if (lane == 0) {
    values[warp] = best.value;
    indices[warp] = best.index;
  }
  __syncthreads();
  best.value = lane < warps ? values[lane] : -INFINITY;
  best.index = lane < warps ? indices[lane] : INT_MAX;
  best = warp_best(best);
  best.value = __shfl_sync(0xffffffffu, best.value, 0);
  best.index = __shfl_sync(0xffffffffu, best.index, 0);
  return best;
}
"""


@cuda_body(
    """
    const int row = blockIdx.x, columns = x_shape[1];
    const float* in = x + row * columns;
    float sum = 0.0f;
    Best best{-INFINITY, INT_MAX};
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
      const float v = __ldg(in + c);
      sum += v;
      best = better(best, Best{v, c});
    }
    sum = block_sum(sum);
    best = block_best(best);
    if (threadIdx.x == 0) {
      sums[row] = sum;
      places[row] = best.index;
    }
    """,
    header=_BLOCK_REDUCE,
    inputs=lambda rng: {"x": rng.integers(-500, 500, (5, 777)).astype(np.float32)},
    outputs={"sums": ((5,), "float32"), "places": ((5,), "int32")},
    grid=(5 * 160, 1, 1),
    threadgroup=(160, 1, 1),
)
def cuda_block_reductions(x):
    return x.sum(1), x.argmax(1).astype(np.int32)


@cuda_body(
    """
    // Stable compaction: each block counts what it keeps, waits for the blocks before it, and writes in order.
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ int kept_by_warp[8];
    __shared__ int ticket, base;
    if (block.thread_rank() == 0) ticket = atomicAdd(&state[0], 1);
    block.sync();

    const int at = ticket * 256 + block.thread_rank();
    const bool keep = at < x_shape[0] && x[at] % 3 != 0;
    const unsigned votes = warp.ballot(keep);
    const int rank = __popc(votes & ((1u << warp.thread_rank()) - 1));
    if (warp.thread_rank() == 0) kept_by_warp[warp.meta_group_rank()] = __popc(votes);
    block.sync();

    if (warp.meta_group_rank() == 0) {
      const int own = warp.thread_rank() < 8 ? kept_by_warp[warp.thread_rank()] : 0;
      const int before = cg::exclusive_scan(warp, own, cg::plus<int>());
      const int total = warp.shfl(before + own, 7);
      if (warp.thread_rank() < 8) kept_by_warp[warp.thread_rank()] = before;
      if (warp.thread_rank() == 0) {
        volatile int* ready = state + 1;
        int first = 0;
        if (ticket > 0) {
          while ((first = ready[ticket - 1]) == 0) __nanosleep(40);
          first -= 1;  // stored with one added, so that zero means: not yet
        }
        __threadfence();
        ready[ticket] = first + total + 1;
        base = first;
      }
    }
    block.sync();
    if (keep) y[base + kept_by_warp[warp.meta_group_rank()] + rank] = x[at];
    """,
    init_value=0,
    inputs=lambda rng: {"x": rng.integers(0, 1000, 2500).astype(np.int32)},
    outputs={"y": ((2500,), "int32"), "state": ((11,), "int32")},
    grid=(2560, 1, 1),
    threadgroup=(256, 1, 1),
)
def cuda_stream_compaction(x):
    kept = x[x % 3 != 0]
    counts = [(x[k : k + 256] % 3 != 0).sum() for k in range(0, 2560, 256)]
    state = np.concatenate([[10], np.cumsum(counts) + 1])
    return np.pad(kept, (0, 2500 - len(kept))).astype(np.int32), state.astype(np.int32)


@cuda_body(
    """
    // A sum that starts anew where a flag is set, within a warp by shuffles and across warps by shared memory.
    __shared__ float tails[8];
    __shared__ unsigned starts[8];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    const int at = blockIdx.x * 256 + t;
    float v = x[at];
    const unsigned heads = __ballot_sync(~0u, flags[at] != 0);
    // Distance to the last flag at or before this lane, or to the warp's begin.
    const unsigned below = heads & (0xffffffffu >> (31 - lane));
    const int reach = below ? lane - (31 - __clz(below)) : lane;
    #pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      const float other = __shfl_up_sync(~0u, v, d);
      if (d <= reach) v += other;
    }
    if (lane == 31) tails[warp] = v;
    if (lane == 0) starts[warp] = heads;
    __syncthreads();
    if (!below) {
      float carry = 0;
      for (int w = warp - 1; w >= 0; --w) {
        carry += tails[w];
        if (starts[w]) break;
      }
      v += carry;
    }
    y[at] = v;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 20, 512).astype(np.float32), "flags": (rng.random(512) < 0.03).astype(np.int32)},
    outputs={"y": ((512,), "float32")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
)  # fmt: skip
def cuda_segmented_scan(x, flags):
    y, total = np.zeros(512, np.float32), np.float32(0)
    for i in range(512):
        total = x[i] + (np.float32(0) if flags[i] or i % 256 == 0 else total)
        y[i] = total
    return y


@cuda_body(
    """
    constexpr int kDigitBits = 4, kDigits = 1 << kDigitBits, kThreads = 128, kItems = 4, kCount = kThreads * kItems;
    constexpr int kWarps = kThreads / 32;
    __shared__ unsigned keys[kCount];
    __shared__ unsigned payload[kCount];
    // How many keys of each digit each warp has met in this round; then where its next one goes.
    __shared__ int counts[kDigits][kWarps];
    __shared__ int totals[kWarps];

    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    const unsigned* in = x + blockIdx.x * kCount;

    // A thread's items lie 32 apart, so that a warp reads rows and keeps its items' order: warp, then item, then lane.
    unsigned key[kItems], value[kItems];
    #pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = warp * 32 * kItems + i * 32 + lane;
      key[i] = order_preserving(in[place]);
      value[i] = place;
    }

    for (int shift = 0; shift < 32; shift += kDigitBits) {
      for (int c = t; c < kDigits * kWarps; c += kThreads) counts[c / kWarps][c % kWarps] = 0;
      __syncthreads();

      // Rank of each item among those of the same digit in its warp: those of earlier rounds, and lanes below.
      int rank[kItems];
      #pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const unsigned digit = (key[i] >> shift) & (kDigits - 1);
        const unsigned peers = __match_any_sync(0xffffffffu, digit);
        const int leader = __ffs(peers) - 1;
        const int below = __popc(peers & ((1u << lane) - 1));
        int before = 0;
        if (lane == leader) {
          before = counts[digit][warp];
          counts[digit][warp] = before + __popc(peers);
        }
        __syncwarp();
        rank[i] = __shfl_sync(0xffffffffu, before, leader) + below;
      }
      __syncthreads();

      // An exclusive scan over digits, and within a digit over warps: 64 counters, two for each thread of a warp.
      if (t < kDigits * kWarps) {
        const int own = counts[t / kWarps][t % kWarps];
        int sum = own;
        #pragma unroll
        for (int d = 1; d < 32; d <<= 1) {
          const int other = __shfl_up_sync(0xffffffffu, sum, d);
          if (lane >= d) sum += other;
        }
        if (lane == 31) totals[warp] = sum;
        counts[t / kWarps][t % kWarps] = sum - own;
      }
      __syncthreads();
      if (t >= 32 && t < kDigits * kWarps) {
        int carry = 0;
        for (int w = 0; w < warp; ++w) carry += totals[w];
        counts[t / kWarps][t % kWarps] += carry;
      }
      __syncthreads();

      // Scatter into shared memory, and take back what now stands at this thread's places.
      #pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const unsigned digit = (key[i] >> shift) & (kDigits - 1);
        const int place = counts[digit][warp] + rank[i];
        keys[place] = key[i];
        payload[place] = value[i];
      }
      __syncthreads();
      #pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const int place = warp * 32 * kItems + i * 32 + lane;
        key[i] = keys[place];
        value[i] = payload[place];
      }
      __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = blockIdx.x * kCount + warp * 32 * kItems + i * 32 + lane;
      sorted[place] = original(key[i]);
      places[place] = value[i];
    }

    // The same block's quantiles, from what is in shared memory: the median and both quarters.
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < kItems; ++i) keys[warp * 32 * kItems + i * 32 + lane] = key[i];
    __syncthreads();
    if (t < 3) quartiles[blockIdx.x * 3 + t] = __uint_as_float(original(keys[(t + 1) * kCount / 4]));

    // And a check of the order, which every thread takes part in: how many neighbours stand the wrong way round.
    int wrong = 0;
    for (int place = t; place + 1 < kCount; place += kThreads) wrong += keys[place] > keys[place + 1];
    wrong = __syncthreads_count(wrong > 0);
    if (t == 0) errors[blockIdx.x] = wrong;
    """,
    header="""
    // Bits of floats in the order of the numbers: the sign is turned round, and below zero all the others.
    __device__ __forceinline__ unsigned order_preserving(unsigned bits) {
      const unsigned mask = static_cast<unsigned>(-static_cast<int>(bits >> 31)) | 0x80000000u;
      return bits ^ mask;
    }
    __device__ __forceinline__ unsigned original(unsigned key) {
      const unsigned mask = ((key >> 31) - 1) | 0x80000000u;
      return key ^ mask;
    }
    """,
    inputs=lambda rng: {"x": np.round(rng.normal(size=(3, 512)) * 40).astype(np.float32).view(np.uint32)},
    outputs={
        "sorted": ((3, 512), "uint32"),
        "places": ((3, 512), "int32"),
        "quartiles": ((3, 3), "float32"),
        "errors": ((3,), "int32"),
    },
    grid=(3 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="cuda_structure.long_body",
)
def cuda_radix_sort_of_floats(x):
    # Of zeros the negative one comes first.
    bits = x.astype(np.int64)
    key = np.where(bits >> 31, ~bits & 0xFFFFFFFF, bits | 0x80000000)
    order = np.argsort(key, 1, kind="stable")
    found = np.take_along_axis(x, order, 1)
    return found, order.astype(np.int32), found.view(np.float32)[:, [128, 256, 384]], np.zeros(3, np.int32)


@cuda_body(
    """
    extern __shared__ unsigned char raw[];
    float* keys = reinterpret_cast<float*>(raw);
    short* values = reinterpret_cast<short*>(keys + 256);
    const int t = threadIdx.x;
    keys[t] = x[blockIdx.x * 256 + t];
    values[t] = t;
    __syncthreads();
    for (int size = 2; size <= 256; size <<= 1) {
      for (int stride = size >> 1; stride > 0; stride >>= 1) {
        const int partner = t ^ stride;
        if (partner > t) {
          const bool ascending = (t & size) == 0;
          const float a = keys[t], b = keys[partner];
          const short va = values[t], vb = values[partner];
          const bool wrong = ascending ? (a > b || (a == b && va > vb)) : (a < b || (a == b && va < vb));
          if (wrong) {
            keys[t] = b; keys[partner] = a;
            values[t] = vb; values[partner] = va;
          }
        }
        __syncthreads();
      }
    }
    y[blockIdx.x * 256 + t] = keys[t];
    order[blockIdx.x * 256 + t] = values[t];
    """,
    shared_memory=256 * 6,
    inputs=lambda rng: {"x": rng.integers(0, 100, (2, 256)).astype(np.float32)},
    outputs={"y": ((2, 256), "float32"), "order": ((2, 256), "int16")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
)
def cuda_bitonic_sort(x):
    order = np.argsort(x, 1, kind="stable")
    return np.take_along_axis(x, order, 1), order.astype(np.int16)


@cuda_body(
    """
    // Each warp counts for itself; the block adds up; one atomic for each bin and block.
    __shared__ unsigned bins[4][65];
    const int t = threadIdx.x, warp = t / warpSize;
    for (int i = t; i < 4 * 65; i += blockDim.x) (&bins[0][0])[i] = 0;
    __syncthreads();
    const uchar4* in = reinterpret_cast<const uchar4*>(x);
    for (int i = blockIdx.x * blockDim.x + t; i < x_shape[0] / 4; i += gridDim.x * blockDim.x) {
      const uchar4 v = in[i];
      atomicAdd(&bins[warp][v.x >> 2], 1u);
      atomicAdd(&bins[warp][v.y >> 2], 1u);
      atomicAdd(&bins[warp][v.z >> 2], 1u);
      atomicAdd(&bins[warp][v.w >> 2], 1u);
    }
    __syncthreads();
    if (t < 64) {
      unsigned sum = 0;
      #pragma unroll
      for (int w = 0; w < 4; ++w) sum += bins[w][t];
      if (sum) atomicAdd(&y[t], sum);
    }
    """,
    init_value=0,
    inputs=lambda rng: {"x": np.clip(rng.normal(120, 40, 6000), 0, 255).astype(np.uint8)},
    outputs={"y": ((64,), "uint32")},
    grid=(512, 1, 1),
    threadgroup=(128, 1, 1),
)
def cuda_histogram_by_warps(x):
    return np.bincount(x >> 2, minlength=64).astype(np.uint32)


@cuda_body(
    """
    // Who passes goes to a list; those of a warp that are together ask for room once.
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= x_shape[0]) return;
    const float v = x[i];
    const float score = v * v - 2.0f * v;
    if (score > 3.0f) {
      auto active = cg::coalesced_threads();
      int base = 0;
      if (active.thread_rank() == 0) base = atomicAdd(&count[0], active.size());
      base = active.shfl(base, 0);
      list[base + active.thread_rank()] = i;
    } else if (score < -0.5f) {
      const unsigned here = __activemask();
      if (__ffs(here) - 1 == (threadIdx.x & 31)) atomicSub(&count[1], __popc(here));
    }
    """,
    init_value=0,
    inputs=lambda rng: {"x": rng.integers(-5, 6, 300).astype(np.float32)},
    outputs={"list": ((300,), "int32"), "count": ((2,), "int32")},
    # One block, so that the list's order is that of the warps on every target.
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
)
def cuda_filter_of_one_warp(x):
    score = x[:32] ** 2 - 2 * x[:32]
    found = np.flatnonzero(score > 3)
    return np.pad(found, (0, 300 - len(found))).astype(np.int32), np.array(
        [len(found), -(score < -0.5).sum()], np.int32
    )


# ---- Products


@cuda_body(
    """
    // 64 x 64 of the result for each block of 256 threads, 4 x 4 for each thread, steps of 16; columns are padded.
    constexpr int TILE = 64, STEP = 16, EACH = 4;
    __shared__ float left[STEP][TILE + 4];
    __shared__ float right[STEP][TILE + 4];
    const int rows = a_shape[0], inner = a_shape[1], columns = b_shape[1];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sums[EACH][EACH] = {};
    for (int k0 = 0; k0 < inner; k0 += STEP) {
      #pragma unroll
      for (int i = t; i < TILE * STEP; i += 256) {
        const int r = i / STEP, k = i % STEP;
        left[k][r] = row0 + r < rows && k0 + k < inner ? a[(row0 + r) * inner + k0 + k] : 0.0f;
      }
      #pragma unroll
      for (int i = t; i < TILE * STEP; i += 256) {
        const int c = i % TILE, k = i / TILE;
        right[k][c] = column0 + c < columns && k0 + k < inner ? b[(k0 + k) * columns + column0 + c] : 0.0f;
      }
      __syncthreads();
      #pragma unroll
      for (int k = 0; k < STEP; ++k) {
        const float4 u = *reinterpret_cast<const float4*>(&left[k][ty * EACH]);
        const float4 v = *reinterpret_cast<const float4*>(&right[k][tx * EACH]);
        const float p[EACH] = {u.x, u.y, u.z, u.w}, q[EACH] = {v.x, v.y, v.z, v.w};
        #pragma unroll
        for (int i = 0; i < EACH; ++i)
          #pragma unroll
          for (int j = 0; j < EACH; ++j) sums[i][j] = fmaf(p[i], q[j], sums[i][j]);
      }
      __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const int r = row0 + ty * EACH + i;
      if (r >= rows) break;
      #pragma unroll
      for (int j = 0; j < EACH; ++j) {
        const int c = column0 + tx * EACH + j;
        if (c < columns) y[r * columns + c] = sums[i][j] + bias[c];
      }
    }
    """,
    inputs=lambda rng: {
        "a": rng.integers(-3, 4, (70, 50)).astype(np.float32),
        "b": rng.integers(-3, 4, (50, 90)).astype(np.float32),
        "bias": rng.integers(-3, 4, 90).astype(np.float32),
    },
    outputs={"y": ((70, 90), "float32")},
    grid=(512, 2, 1),
    threadgroup=(256, 1, 1),
)
def cuda_tiled_product(a, b, bias):
    return a @ b + bias


@cuda_body(
    """
    // One warp for each row; 4 bytes of weights and of activations at a time; a scale for each 32 of them.
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp >= w_shape[0]) return;
    const int columns = w_shape[1];
    const int* weights = reinterpret_cast<const int*>(w + warp * columns);
    const int* activations = reinterpret_cast<const int*>(x);
    float total = 0.0f;
    for (int word = lane; word < columns / 4; word += 32) {
      const int sum = __dp4a(__ldg(weights + word), __ldg(activations + word), 0);
      total += float(sum) * __half2float(scales[warp * (columns / 32) + word / 8]);
    }
    #pragma unroll
    for (int d = 16; d > 0; d >>= 1) total += __shfl_xor_sync(~0u, total, d);
    if (lane == 0) y[warp] = __float2half_rn(total * x_scale[0]);
    """,
    inputs=lambda rng: {
        "w": rng.integers(-127, 128, (10, 256)).astype(np.int8),
        "scales": (2.0 ** rng.integers(-10, -7, (10, 8))).astype(np.float16),
        "x": rng.integers(-20, 20, 256).astype(np.int8),
        "x_scale": np.float32(0.125),
    },
    outputs={"y": ((10,), "float16")},
    tolerance=1e-3,
    grid=(10 * 32, 1, 1),
    threadgroup=(64, 1, 1),
)
def cuda_product_of_bytes_with_scales(w, scales, x, x_scale):
    products = (w.astype(np.int64) * x.astype(np.int64)).reshape(10, 8, 32).sum(2)
    return (products * _f64(scales)).sum(1) * float(x_scale)


@cuda_body(
    """
    // y = dequantised(w) x for a few rows of x at once. Weights are 4 bits, eight in a word, those of a group of GROUP
    // columns with a scale and a zero point; a block has four warps, and each warp owns OUTPUTS rows of the weights.
    constexpr int WARPS = 4;
    constexpr int COLUMNS_PER_WORD = 8;
    constexpr int MAX_TOKENS = 4;

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int tokens = x_shape[0];
    const int columns = x_shape[1];
    const int outputs = w_shape[0];
    const int words = columns / COLUMNS_PER_WORD;
    const int groups = columns / GROUP;

    // Activations go through shared memory once for all warps, in half precision, a tile of TILE columns at a time.
    constexpr int TILE = 256;
    __shared__ __align__(16) T staged[MAX_TOKENS][TILE];
    // What the warps' lanes have summed, for the tokens that a block treats together.
    __shared__ float results[WARPS][OUTPUTS][MAX_TOKENS];

    const int first_output = (blockIdx.x * WARPS + warp) * OUTPUTS;
    const int first_token = blockIdx.y * MAX_TOKENS;
    const int here = min(MAX_TOKENS, tokens - first_token);

    // The activations are normalised by their root mean square. Since a product is linear, its factor may wait until
    // the end; only the gains of the columns are applied to what is staged. One warp does each token.
    __shared__ float factors[MAX_TOKENS];
    for (int t = warp; t < here; t += WARPS) {
      float squares = 0.0f;
      for (int c = lane; c < columns; c += 32) {
        const float element = float(x[(first_token + t) * columns + c]);
        squares = fmaf(element, element, squares);
      }
      squares = warp_total(squares);
      if (lane == 0) factors[t] = rsqrtf(squares / columns + 1e-6f);
    }

    float sums[OUTPUTS][MAX_TOKENS];
    #pragma unroll
    for (int o = 0; o < OUTPUTS; ++o)
      #pragma unroll
      for (int t = 0; t < MAX_TOKENS; ++t) sums[o][t] = 0.0f;

    for (int tile = 0; tile < columns; tile += TILE) {
      const int width = min(TILE, columns - tile);
      __syncthreads();
      for (int i = threadIdx.x; i < MAX_TOKENS * TILE; i += WARPS * 32) {
        const int t = i / TILE, c = i % TILE;
        staged[t][c] = t < here && c < width
            ? T(float(x[(first_token + t) * columns + tile + c]) * float(gains[tile + c]))
            : T(0.0f);
      }
      __syncthreads();

      // Each lane takes one word, eight columns, of every row of this warp.
      for (int word = lane; word < width / COLUMNS_PER_WORD; word += 32) {
        const int column = word * COLUMNS_PER_WORD;
        const int group = (tile + column) / GROUP;

        float activations[MAX_TOKENS][COLUMNS_PER_WORD];
        float activation_sums[MAX_TOKENS];
        #pragma unroll
        for (int t = 0; t < MAX_TOKENS; ++t) {
          activation_sums[t] = 0.0f;
          #pragma unroll
          for (int k = 0; k < COLUMNS_PER_WORD; ++k) {
            activations[t][k] = float(staged[t][column + k]);
            activation_sums[t] += activations[t][k];
          }
        }

        #pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
          const int row = first_output + o;
          if (row >= outputs) break;
          const unsigned packed = __ldg(w + row * words + tile / COLUMNS_PER_WORD + word);
          const float scale = float(scales[row * groups + group]);
          // Four bits of a word hold the zero point of one of eight groups.
          const unsigned zero_word = __ldg(zeros + row * ((groups + 7) / 8) + group / 8);
          const float zero = float((zero_word >> (4 * (group % 8))) & 15u);

          float weights[COLUMNS_PER_WORD];
          unpack_nibbles(packed, weights);
          #pragma unroll
          for (int t = 0; t < MAX_TOKENS; ++t) {
            float dot = 0.0f;
            #pragma unroll
            for (int k = 0; k < COLUMNS_PER_WORD; ++k) dot = fmaf(weights[k], activations[t][k], dot);
            // sum over (w - zero) * x = sum over w * x - zero * sum over x
            sums[o][t] = fmaf(scale, dot - zero * activation_sums[t], sums[o][t]);
          }
        }
      }
    }

    // Over the lanes of a warp by a butterfly, which leaves the same bits in each; then through shared memory, so that one row of threads writes.
    #pragma unroll
    for (int o = 0; o < OUTPUTS; ++o)
      #pragma unroll
      for (int t = 0; t < MAX_TOKENS; ++t) {
        const float total = warp_total(sums[o][t]);
        if (lane == 0) results[warp][o][t] = total;
      }
    __syncthreads();

    for (int i = threadIdx.x; i < WARPS * OUTPUTS * MAX_TOKENS; i += WARPS * 32) {
      const int t = i % MAX_TOKENS, o = i / MAX_TOKENS % OUTPUTS, of_warp = i / MAX_TOKENS / OUTPUTS;
      const int row = (blockIdx.x * WARPS + of_warp) * OUTPUTS + o;
      if (t < here && row < outputs) {
        const float gate = results[of_warp][o][t] * factors[t] + (has_bias[0] ? float(bias[row]) : 0.0f);
        y[(first_token + t) * outputs + row] = T(silu(gate));
      }
    }
    """,
    header="""
    __device__ __forceinline__ void unpack_nibbles(unsigned word, float (&weights)[8]) {
      #pragma unroll
      for (int k = 0; k < 8; ++k) weights[k] = float((word >> (4 * k)) & 15u);
    }
    __device__ __forceinline__ float warp_total(float v) {
      #pragma unroll
      for (int distance = 16; distance > 0; distance >>= 1) v += __shfl_xor_sync(0xffffffffu, v, distance);
      return v;
    }
    __device__ __forceinline__ float silu(float v) { return v / (1.0f + __expf(-v)); }
    """,
    template=[("T", Dtype("float16")), ("GROUP", 64), ("OUTPUTS", 2)],
    inputs=lambda rng: {
        "x": (rng.normal(size=(6, 320)) * 0.5).astype(np.float16),
        "w": rng.integers(0, 2**32, (19, 40), np.uint32),
        "scales": rng.uniform(0.005, 0.02, (19, 5)).astype(np.float16),
        "zeros": rng.integers(0, 2**32, (19, 1), np.uint32),
        "bias": rng.normal(size=19).astype(np.float16),
        "gains": (2.0 ** rng.integers(-1, 2, 320)).astype(np.float16),
        "has_bias": True,
    },
    outputs={"y": ((6, 19), "float16")},
    tolerance=8e-3,
    grid=(3 * 128, 2, 1),
    threadgroup=(128, 1, 1),
    constructs="cuda_structure.long_body",
)
def cuda_four_bit_product(x, w, scales, zeros, bias, gains, has_bias):
    weights = (w[:, :, None] >> (4 * np.arange(8, dtype=np.uint32)) & 15).reshape(19, 320)
    zero = zeros >> (4 * np.arange(5, dtype=np.uint32)) & 15
    full = (_f64(weights).reshape(19, 5, 64) - _f64(zero)[:, :, None]) * _f64(scales)[:, :, None]
    normal = _f64(x) / np.sqrt((_f64(x) ** 2).mean(1, keepdims=True) + 1e-6) * _f64(gains)
    gate = normal @ full.reshape(19, 320).T + _f64(bias)
    return gate / (1 + np.exp(-gate))


# ---- Transformers


@cuda_body(
    """
    // One token attends to what came before it: a block for each head of the queries, which share heads of keys and
    // values. Each of eight warps walks over its own positions with a running maximum and sum; at the end they meet.
    //
    // Scores are kept to base 2, since that is what the hardware's exponential is to: the query is scaled once by
    // log2(e), and what has to be done in the natural scale (the cap) goes there and back.
    constexpr int WARPS = 8;
    constexpr int EACH = D / 32;
    static_assert(D % 64 == 0, "lanes read pairs");

    __shared__ float highs[WARPS];
    __shared__ float weights[WARPS];
    __shared__ float outputs[WARPS][D];

    const int batch = blockIdx.y;
    const int head = blockIdx.x;
    const int heads = q_shape[1];
    const int kv_heads = k_shape[1];
    const int kv_head = head / (heads / kv_heads);
    const int length = lengths[batch];
    // Keys and values lie in pages of PAGE positions, in any order: a row of the table for each sequence.
    const int* table = pages + batch * pages_shape[1];
    // Farther positions count less, by a slope that falls from head to head.
    const float slope = exp2f(-8.0f * (head + 1) / heads) * 1.44269504f;
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;

    // A lane's part of the query, in float, with the scale and the base of the exponential folded in.
    float query[EACH];
    {
      const T* from = q + (batch * heads + head) * D;
      #pragma unroll
      for (int e = 0; e < EACH; e += 2) {
        const float2 pair = load_pair(from + e * 32 + 2 * lane);
        query[e] = pair.x * scale[0] * 1.44269504f;
        query[e + 1] = pair.y * scale[0] * 1.44269504f;
      }
    }

    float high = -INFINITY, sum = 0.0f;
    float output[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; ++e) output[e] = 0.0f;

    auto place_of = [&](int position) {
      const long long page = table[position / PAGE];
      return ((page * kv_heads + kv_head) * PAGE + position % PAGE) * D;
    };
    // Of a window only the last positions count, but the first SINKS always do.
    const int window_begin = max(0, length - WINDOW);
    for (int position = warp; position < length; position += WARPS) {
      if (position >= SINKS && position < window_begin) continue;
      const long long place = place_of(position);
      const T* key = k + place;
      float score = 0.0f;
      #pragma unroll
      for (int e = 0; e < EACH; e += 2) {
        const float2 pair = load_pair(key + e * 32 + 2 * lane);
        score = fmaf(query[e], pair.x, score);
        score = fmaf(query[e + 1], pair.y, score);
      }
      score = sum_of_warp(score);
      if (CAP > 0) {
        // Soft cap, in the natural scale.
        const float natural = score * 0.69314718f;
        score = CAP * tanhf(natural / CAP) * 1.44269504f;
      }
      score -= slope * (length - 1 - position);
      const float higher = fmaxf(high, score);
      const float keep = exp2f(high - higher);
      const float weight = exp2f(score - higher);
      high = higher;
      sum = sum * keep + weight;
      const T* value = v + place;
      #pragma unroll
      for (int e = 0; e < EACH; e += 2) {
        const float2 pair = load_pair(value + e * 32 + 2 * lane);
        output[e] = output[e] * keep + weight * pair.x;
        output[e + 1] = output[e + 1] * keep + weight * pair.y;
      }
    }

    // A position that is no key's: a number for each head that takes weight and gives nothing.
    if (warp == WARPS - 1 && has_sink[0]) {
      const float score = sink[head] * 1.44269504f, higher = fmaxf(high, score);
      const float keep = exp2f(high - higher);
      sum = sum * keep + exp2f(score - higher);
      high = higher;
      #pragma unroll
      for (int e = 0; e < EACH; ++e) output[e] *= keep;
    }

    // The warps' results, each with a maximum of its own.
    if (lane == 0) {
      highs[warp] = high;
      weights[warp] = sum;
    }
    #pragma unroll
    for (int e = 0; e < EACH; e += 2) {
      outputs[warp][e * 32 + 2 * lane] = output[e];
      outputs[warp][e * 32 + 2 * lane + 1] = output[e + 1];
    }
    __syncthreads();

    if (threadIdx.x < D) {
      float highest = -INFINITY;
      #pragma unroll
      for (int w = 0; w < WARPS; ++w) highest = fmaxf(highest, highs[w]);
      float total = 0.0f, result = 0.0f;
      #pragma unroll
      for (int w = 0; w < WARPS; ++w) {
        // A warp without positions has the weight zero.
        const float factor = highs[w] == -INFINITY ? 0.0f : exp2f(highs[w] - highest);
        total = fmaf(factor, weights[w], total);
        result = fmaf(factor, outputs[w][threadIdx.x], result);
      }
      const int place = (batch * heads + head) * D + threadIdx.x;
      y[place] = T(total > 0.0f ? result / total : 0.0f);
      if (threadIdx.x == 0) logsums[batch * heads + head] = total > 0.0f ? (highest + log2f(total)) * 0.69314718f : -INFINITY;
    }
    """,
    header="""
    __device__ __forceinline__ float2 load_pair(const __half* p) {
      return __half22float2(*reinterpret_cast<const __half2*>(p));
    }
    __device__ __forceinline__ float2 load_pair(const __nv_bfloat16* p) {
      return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(p));
    }
    __device__ __forceinline__ float2 load_pair(const float* p) { return *reinterpret_cast<const float2*>(p); }
    __device__ __forceinline__ float sum_of_warp(float v) {
      #pragma unroll
      for (int distance = 16; distance > 0; distance >>= 1) v += __shfl_xor_sync(0xffffffffu, v, distance);
      return v;
    }
    """,
    template=[("T", Dtype("bfloat16")), ("D", 64), ("PAGE", 8), ("WINDOW", 24), ("SINKS", 2), ("CAP", 30)],
    inputs=lambda rng: {
        "q": rng.normal(size=(2, 4, 64)).astype(_BF16),
        "k": rng.normal(size=(7, 2, 8, 64)).astype(_BF16),
        "v": rng.normal(size=(7, 2, 8, 64)).astype(_BF16),
        "pages": np.array([[3, 0, 6, 1, 4], [2, 5, 0, 0, 0]], np.int32),
        "lengths": np.array([37, 5], np.int32),
        "sink": rng.normal(size=4).astype(np.float32),
        "has_sink": True,
        "scale": np.float32(0.125),
    },
    outputs={"y": ((2, 4, 64), "bfloat16"), "logsums": ((2, 4), "float32")},
    tolerance=3e-2,
    grid=(4 * 256, 2, 1),
    threadgroup=(256, 1, 1),
    constructs="cuda_structure.long_body",
)
def cuda_attention_decode(q, k, v, pages, lengths, sink, has_sink, scale):
    q, k, v = _f64(q), _f64(k), _f64(v)
    y, logs = np.zeros((2, 4, 64)), np.zeros((2, 4))
    for b in range(2):
        n = int(lengths[b])
        seen = (np.arange(n) < 2) | (np.arange(n) >= n - 24)
        for h in range(4):
            keys, values = (x[pages[b], h // 2].reshape(-1, 64)[:n][seen] for x in (k, v))
            scores = 30 * np.tanh(keys @ q[b, h] * float(scale) / 30)
            scores -= 2.0 ** (-8 * (h + 1) / 4) * (n - 1 - np.flatnonzero(seen))
            scores = np.append(scores, sink[h])
            y[b, h] = _softmax(scores)[:-1] @ values
            logs[b, h] = np.log(np.exp(scores).sum())
    return y, logs


@cuda_body(
    """
    // A chunk of tokens of the gated delta rule. A block has a head and a stripe of 32 of the state's columns, which
    // its lanes hold, one column each; the state's DK rows are spread over WARPS warps, so that a thread keeps ROWS
    // numbers. For each token, with q and k normalised:
    //   S <- decay * S;  error = v - k S;  S <- S + beta * k (x) error;  y = q S
    constexpr int WARPS = 4;
    constexpr int ROWS = DK / WARPS;
    constexpr int STRIPE = 32;
    constexpr float EPSILON = 1e-6f;
    static_assert(DK % WARPS == 0 && DV % STRIPE == 0, "whole rows and stripes");

    // Keys and queries of a token, as all warps read them; what each warp adds to a product with the state.
    __shared__ float key[2][DK];
    __shared__ float query[2][DK];
    __shared__ float partial[WARPS][STRIPE];
    __shared__ float gates[2][2];

    const int tokens = q_shape[1];
    const int heads = v_shape[2];
    const int key_heads = q_shape[2];
    const int batch = blockIdx.z;
    const int head = blockIdx.y;
    const int key_head = head / (heads / key_heads);
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int column = blockIdx.x * STRIPE + lane;
    const int first_row = warp * ROWS;

    // The values go through a causal convolution of four tokens and a gate of their own. Those before the first token
    // come from the call before; a column's taps and its last values stay in registers.
    float taps[4], last[3];
    #pragma unroll
    for (int n = 0; n < 4; ++n) taps[n] = convolution[(head * DV + column) * 4 + n];
    #pragma unroll
    for (int n = 0; n < 3; ++n) last[n] = history[((batch * 3 + n) * heads + head) * DV + column];

    float rows[ROWS];
    const float* begin = state + ((batch * heads + head) * DK + first_row) * DV + column;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) rows[r] = begin[r * DV];

    for (int token = 0; token < tokens; ++token) {
      // Two buffers, so that one barrier a token is enough between what is read and what is written next.
      const int buffer = token & 1;
      const int of_keys = ((batch * tokens + token) * key_heads + key_head) * DK;
      const int of_values = ((batch * tokens + token) * heads + head) * DV;

      // The first warp normalises the key, the second the query; the third computes the gates.
      if (warp < 2) {
        const T* from = warp == 0 ? k + of_keys : q + of_keys;
        float* to = warp == 0 ? key[buffer] : query[buffer];
        float squares = 0.0f;
        #pragma unroll
        for (int c = lane; c < DK; c += 32) {
          const float element = float(from[c]);
          squares = fmaf(element, element, squares);
        }
        squares = butterfly(squares);
        const float factor = rsqrtf(squares + EPSILON) * (warp == 0 ? 1.0f : rsqrtf(float(DK)));
        #pragma unroll
        for (int c = lane; c < DK; c += 32) to[c] = float(from[c]) * factor;
      } else if (warp == 2 && lane == 0) {
        const int of_gates = (batch * tokens + token) * heads + head;
        // The decay is exp(-exp(A) * softplus(a + bias)), the step sigmoid(b).
        const float shifted = float(a[of_gates]) + dt_bias[head];
        gates[buffer][0] = __expf(-__expf(log_decay[head]) * softplus(shifted));
        gates[buffer][1] = 1.0f / (1.0f + __expf(-float(b[of_gates])));
      }
      __syncthreads();

      const float newest = float(v[of_values + column]);
      float mixed = taps[3] * newest;
      #pragma unroll
      for (int n = 0; n < 3; ++n) mixed = fmaf(taps[n], last[n], mixed);
      mixed = mixed / (1.0f + __expf(-mixed));
      last[0] = last[1];
      last[1] = last[2];
      last[2] = newest;

      const float decay = gates[buffer][0];
      const float beta = gates[buffer][1];

      // What the decayed state gives for the key: this warp's rows, then all of them.
      float dot = 0.0f;
      #pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        rows[r] *= decay;
        dot = fmaf(key[buffer][first_row + r], rows[r], dot);
      }
      partial[warp][lane] = dot;
      __syncthreads();
      float remembered = 0.0f;
      #pragma unroll
      for (int w = 0; w < WARPS; ++w) remembered += partial[w][lane];

      // The correction, and with the same pass over the rows the output.
      const float delta = beta * (mixed - remembered);
      float answer = 0.0f;
      #pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        rows[r] = fmaf(key[buffer][first_row + r], delta, rows[r]);
        answer = fmaf(query[buffer][first_row + r], rows[r], answer);
      }
      __syncthreads();  // all have read what the warps added before
      partial[warp][lane] = answer;
      __syncthreads();
      if (warp == 0) {
        float sum = 0.0f;
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) sum += partial[w][lane];
        y[of_values + column] = T(sum);
      }
    }

    // The state goes back as it stands after the last token.
    float* end = new_state + ((batch * heads + head) * DK + first_row) * DV + column;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) end[r * DV] = rows[r];
    """,
    header="""
    // The sum over a warp, which every lane gets. The lanes' order is the same in each of them, and so are the bits.
    __device__ __forceinline__ float butterfly(float v) {
      #pragma unroll
      for (int distance = 16; distance > 0; distance >>= 1) v += __shfl_xor_sync(0xffffffffu, v, distance);
      return v;
    }
    // log(1 + exp(v)); beyond 20 it is v to the last bit.
    __device__ __forceinline__ float softplus(float v) {
      if (v > 20.0f) return v;
      return log1pf(__expf(v));
    }
    """,
    template=[("T", Dtype("float32")), ("DK", 64), ("DV", 64)],
    inputs=lambda rng: {
        "q": rng.normal(size=(1, 6, 1, 64)).astype(np.float32),
        "k": rng.normal(size=(1, 6, 1, 64)).astype(np.float32),
        "v": rng.normal(size=(1, 6, 2, 64)).astype(np.float32),
        "a": rng.normal(size=(1, 6, 2)).astype(np.float32),
        "b": rng.normal(size=(1, 6, 2)).astype(np.float32),
        "log_decay": rng.normal(size=2).astype(np.float32),
        "dt_bias": rng.normal(size=2).astype(np.float32),
        "convolution": rng.normal(size=(2, 64, 4)).astype(np.float32),
        "history": rng.normal(size=(1, 3, 2, 64)).astype(np.float32),
        "state": rng.normal(size=(1, 2, 64, 64)).astype(np.float32),
    },
    outputs={"y": ((1, 6, 2, 64), "float32"), "new_state": ((1, 2, 64, 64), "float32")},
    tolerance=5e-3,  # some of the sums nearly cancel
    grid=(2 * 128, 2, 1),
    threadgroup=(128, 1, 1),
    constructs="cuda_structure.long_body",
)
def cuda_gated_delta_rule(q, k, v, a, b, log_decay, dt_bias, convolution, history, state):
    q, k, v, a, b, s = (_f64(t) for t in (q, k, v, a, b, state))
    every = np.concatenate([_f64(history), v], 1)
    v = sum(every[:, n : n + 6] * _f64(convolution)[:, :, n] for n in range(4))
    v = v / (1 + np.exp(-v))
    y = np.zeros((1, 6, 2, 64))
    s = s.copy()
    for h in range(2):
        for t in range(6):
            key = k[0, t, 0] / np.sqrt((k[0, t, 0] ** 2).sum() + 1e-6)
            query = q[0, t, 0] / np.sqrt((q[0, t, 0] ** 2).sum() + 1e-6) / 8
            decay = np.exp(-np.exp(float(log_decay[h])) * np.log1p(np.exp(a[0, t, h] + float(dt_bias[h]))))
            s[0, h] *= decay
            delta = (v[0, t, h] - key @ s[0, h]) / (1 + np.exp(-b[0, t, h]))
            s[0, h] += np.outer(key, delta)
            y[0, t, h] = query @ s[0, h]
    return y, s


@cuda_body(
    """
    // One block samples one row: temperature, repetition penalty, the K largest by repeated maxima, their softmax, the
    // smallest set of them whose probability reaches p, and a draw by a number of the counter-based generator.
    constexpr int THREADS = 128;
    constexpr int WARPS = THREADS / 32;
    constexpr int EACH = 4;
    static_assert(THREADS * EACH >= VOCABULARY, "a thread keeps its logits in registers");

    __shared__ float best_values[WARPS];
    __shared__ int best_places[WARPS];
    __shared__ float top_values[K];
    __shared__ int top_places[K];
    __shared__ float probabilities[K];
    __shared__ unsigned seen[(VOCABULARY + 31) / 32];

    const int row = blockIdx.x;
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const float inverse_temperature = 1.0f / temperature[0];

    // Which tokens the row has had: a bit for each.
    for (int i = threadIdx.x; i < (VOCABULARY + 31) / 32; i += THREADS) seen[i] = 0u;
    __syncthreads();
    for (int i = threadIdx.x; i < history_shape[1]; i += THREADS) {
      const int token = history[row * history_shape[1] + i];
      if (token >= 0) atomicOr(&seen[token >> 5], 1u << (token & 31));
    }
    __syncthreads();

    // This thread's logits. Those that are no tokens are never the largest.
    float values[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int token = threadIdx.x + e * THREADS;
      float v = -INFINITY;
      if (token < VOCABULARY) {
        v = float(logits[row * VOCABULARY + token]);
        if (seen[token >> 5] >> (token & 31) & 1u) v = v > 0.0f ? v / penalty[0] : v * penalty[0];
        v *= inverse_temperature;
      }
      values[e] = v;
    }

    // K rounds: each finds the largest that is left, of equal ones the first, and its owner takes it away.
    for (int round = 0; round < K; ++round) {
      Candidate best{-INFINITY, INT_MAX};
      #pragma unroll
      for (int e = 0; e < EACH; ++e) best = first_of(best, Candidate{values[e], (int)threadIdx.x + e * THREADS});
      best = first_of_warp(best);
      if (lane == 0) {
        best_values[warp] = best.value;
        best_places[warp] = best.place;
      }
      __syncthreads();
      if (warp == 0) {
        best = lane < WARPS ? Candidate{best_values[lane], best_places[lane]} : Candidate{-INFINITY, INT_MAX};
        best = first_of_warp(best);
        if (lane == 0) {
          top_values[round] = best.value;
          top_places[round] = best.place;
        }
      }
      __syncthreads();
      const int taken = top_places[round];
      if (taken % THREADS == threadIdx.x) {
        // An index that is known while compiling keeps the array in registers.
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
          if (taken / THREADS == e) values[e] = -INFINITY;
      }
    }

    // The first warp does the rest: K is at most a warp.
    if (warp != 0) return;
    static_assert(K <= 32, "one candidate for each lane");
    const bool is_candidate = lane < K;
    const float score = is_candidate ? top_values[lane] : -INFINITY;
    const float weight = is_candidate ? __expf(score - top_values[0]) : 0.0f;
    float total = weight;
    #pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) total += __shfl_xor_sync(0xffffffffu, total, distance);
    const float probability = weight / total;
    if (is_candidate) probabilities[lane] = probability;
    __syncwarp();

    // The sum up to and with each candidate; those are kept whose predecessors do not reach p.
    float sum = probability;
    #pragma unroll
    for (int distance = 1; distance < 32; distance <<= 1) {
      const float below = __shfl_up_sync(0xffffffffu, sum, distance);
      if (lane >= distance) sum += below;
    }
    const bool is_kept = is_candidate && sum - probability < top_p[0];
    const unsigned kept = __ballot_sync(0xffffffffu, is_kept);
    const int last = 31 - __clz(kept);
    const float mass = __shfl_sync(0xffffffffu, sum, last);

    // A draw in [0, mass): the first kept candidate whose sum is above it.
    const uint2 random = threefry(make_uint2(row, 7u), make_uint2(seed[0], 0x1234567u));
    const float uniform = (random.x >> 8) * 0x1p-24f;
    const unsigned above = __ballot_sync(0xffffffffu, is_kept && sum > uniform * mass);
    const int chosen = above ? __ffs(above) - 1 : last;

    // How undecided the kept ones are, in bits, and the chance of the chosen one before any was left out.
    float surprise = is_kept ? -probability / mass * __log2f(probability / mass) : 0.0f;
    #pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) surprise += __shfl_xor_sync(0xffffffffu, surprise, distance);

    if (lane == 0) {
      tokens[row] = top_places[chosen];
      counts[row] = __popc(kept);
      draws[row] = random.x;
      entropies[2 * row] = surprise;
      entropies[2 * row + 1] = probabilities[chosen];
    }
    if (is_candidate) {
      places[row * K + lane] = top_places[lane];
      chances[row * K + lane] = is_kept ? probabilities[lane] / mass : 0.0f;
    }
    """,
    header="""
    struct Candidate {
      float value;
      int place;
    };
    __device__ __forceinline__ Candidate first_of(Candidate a, Candidate b) {
      const bool take_b = b.value > a.value || (b.value == a.value && b.place < a.place);
      return take_b ? b : a;
    }
    __device__ __forceinline__ Candidate first_of_warp(Candidate best) {
      #pragma unroll
      for (int distance = 16; distance > 0; distance >>= 1) {
        const float value = __shfl_xor_sync(0xffffffffu, best.value, distance);
        const int place = __shfl_xor_sync(0xffffffffu, best.place, distance);
        best = first_of(best, Candidate{value, place});
      }
      return best;
    }
    // Threefry of two words, thirteen rounds (Salmon, Moraes, Dror and Shaw, 2011).
    __device__ inline uint2 threefry(uint2 counter, uint2 key) {
      constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
      const unsigned keys[3] = {key.x, key.y, 0x1BD11BDAu ^ key.x ^ key.y};
      unsigned a = counter.x + keys[0], b = counter.y + keys[1];
      #pragma unroll
      for (int round = 0; round < 13; ++round) {
        a += b;
        b = __funnelshift_l(b, b, rotations[round % 8]);
        b ^= a;
        if (round % 4 == 3) {
          const int step = round / 4 + 1;
          a += keys[step % 3];
          b += keys[(step + 1) % 3] + step;
        }
      }
      return make_uint2(a, b);
    }
    """,
    template=[("VOCABULARY", 500), ("K", 20)],
    inputs=lambda rng: {
        "logits": (rng.permutation(2000)[:1500].reshape(3, 500) / 100 - 10).astype(np.float32),
        "history": np.where(rng.random((3, 12)) < 0.8, rng.integers(0, 500, (3, 12)), -1).astype(np.int32),
        "temperature": np.float32(0.5),
        "penalty": np.float32(2.0),
        "top_p": np.float32(0.8),
        "seed": np.uint32(99),
    },
    outputs={
        "tokens": ((3,), "int32"),
        "counts": ((3,), "int32"),
        "draws": ((3,), "uint32"),
        "entropies": ((3, 2), "float32"),
        "places": ((3, 20), "int32"),
        "chances": ((3, 20), "float32"),
    },
    tolerance=1e-4,
    grid=(3 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="cuda_structure.long_body",
)
def cuda_sampling(logits, history, temperature, penalty, top_p, seed):
    def threefry(counter, key):
        keys = [*key, 0x1BD11BDA ^ key[0] ^ key[1]]
        a, b = (counter[0] + keys[0]) % 2**32, (counter[1] + keys[1]) % 2**32
        for r in range(13):
            a = (a + b) % 2**32
            n = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
            b = ((b << n | b >> (32 - n)) % 2**32) ^ a
            if r % 4 == 3:
                step = r // 4 + 1
                a, b = (a + keys[step % 3]) % 2**32, (b + keys[(step + 1) % 3] + step) % 2**32
        return a

    tokens, counts, draws, entropies = [], [], [], []
    places, chances = np.zeros((3, 20), np.int32), np.zeros((3, 20))
    for row in range(3):
        v = _f64(logits[row])
        for token in {int(t) for t in history[row] if t >= 0}:
            v[token] = v[token] / 2 if v[token] > 0 else v[token] * 2
        v *= 2
        order = np.argsort(-v, kind="stable")[:20]
        probability = _softmax(v[order])
        total = np.cumsum(probability)
        kept = total - probability < float(top_p)
        random = threefry((row, 7), (int(seed), 0x1234567))
        mass = total[kept][-1]
        chosen = np.flatnonzero(kept & (total > (random >> 8) * 2.0**-24 * mass))[0]
        share = probability[kept] / mass
        entropies.append([-(share * np.log2(share)).sum(), probability[chosen]])
        tokens.append(order[chosen])
        counts.append(kept.sum())
        draws.append(random)
        places[row], chances[row] = order, np.where(kept, probability / mass, 0)
    found = np.array(tokens, np.int32), np.array(counts, np.int32), np.array(draws, np.uint32)
    return *found, np.array(entropies), places, chances


@cuda_body(
    """
    // A row of any length: its maximum and sum in one pass, four elements at a time, then the quotients.
    const int columns = x_shape[1];
    const float* in = x + blockIdx.x * columns;
    float* out = y + blockIdx.x * columns;
    float high = -INFINITY, sum = 0.0f;
    const float4* vectors = reinterpret_cast<const float4*>(in);
    for (int i = threadIdx.x; i < columns / 4; i += blockDim.x) {
      const float4 v = vectors[i];
      const float higher = fmaxf(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), high);
      sum = sum * __expf(high - higher) + __expf(v.x - higher) + __expf(v.y - higher) + __expf(v.z - higher) + __expf(v.w - higher);
      high = higher;
    }
    for (int d = 16; d > 0; d /= 2) {
      const float other_high = __shfl_xor_sync(~0u, high, d), other_sum = __shfl_xor_sync(~0u, sum, d);
      const float higher = fmaxf(high, other_high);
      // A lane may have seen nothing yet.
      sum = (high > -INFINITY ? sum * __expf(high - higher) : 0.0f) + (other_high > -INFINITY ? other_sum * __expf(other_high - higher) : 0.0f);
      high = higher;
    }
    __shared__ float2 warps[4];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = make_float2(high, sum);
    __syncthreads();
    float all_high = -INFINITY, all_sum = 0.0f;
    for (int w = 0; w < 4; ++w) all_high = fmaxf(all_high, warps[w].x);
    for (int w = 0; w < 4; ++w) all_sum += warps[w].x > -INFINITY ? warps[w].y * __expf(warps[w].x - all_high) : 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = __expf(in[i] - all_high) / all_sum;
    """,
    inputs=lambda rng: {"x": (rng.normal(size=(4, 300)) * 3).astype(np.float32)},
    outputs={"y": ((4, 300), "float32")},
    tolerance=3e-5,
    grid=(4 * 128, 1, 1),
    threadgroup=(128, 1, 1),
)
def cuda_online_softmax(x):
    return _softmax(_f64(x))


@cuda_body(
    """
    // Means and variances by Welford, merged over lanes and warps; half2 in and out.
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    const int pairs = x_shape[1] / 2;
    const half2* in = reinterpret_cast<const half2*>(x) + blockIdx.x * pairs;
    half2* out = reinterpret_cast<half2*>(y) + blockIdx.x * pairs;
    Moments m{0.0f, 0.0f, 0.0f};
    for (int i = block.thread_rank(); i < pairs; i += block.size()) {
      const float2 v = __half22float2(in[i]);
      m.add(v.x);
      m.add(v.y);
    }
    #pragma unroll
    for (int d = 16; d > 0; d /= 2) m.merge(warp.shfl_xor(m, d));
    __shared__ Moments parts[8];
    if (warp.thread_rank() == 0) parts[warp.meta_group_rank()] = m;
    block.sync();
    m = parts[0];
    for (int w = 1; w < warp.meta_group_size(); ++w) m.merge(parts[w]);
    const float scale = rsqrtf(m.m2 / m.count + 1e-5f);
    const half2* g = reinterpret_cast<const half2*>(gain);
    for (int i = block.thread_rank(); i < pairs; i += block.size()) {
      const float2 v = __half22float2(in[i]), w = __half22float2(g[i]);
      out[i] = __floats2half2_rn((v.x - m.mean) * scale * w.x, (v.y - m.mean) * scale * w.y);
    }
    """,
    header="""
    struct Moments {
      float count, mean, m2;
      __device__ void add(float v) {
        count += 1.0f;
        const float delta = v - mean;
        mean += delta / count;
        m2 += delta * (v - mean);
      }
      __device__ void merge(const Moments& other) {
        if (other.count == 0.0f) return;
        const float total = count + other.count, delta = other.mean - mean;
        mean += delta * (other.count / total);
        m2 += other.m2 + delta * delta * (count * other.count / total);
        count = total;
      }
    };
    """,
    inputs=lambda rng: {
        "x": (rng.normal(size=(4, 200)) * 3 + 5).astype(np.float16),
        "gain": rng.uniform(0.5, 1.5, 200).astype(np.float16),
    },
    outputs={"y": ((4, 200), "float16")},
    tolerance=4e-3,
    grid=(4 * 96, 1, 1),
    threadgroup=(96, 1, 1),
)
def cuda_layer_norm(x, gain):
    v = _f64(x)
    return (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * _f64(gain)


@cuda_body(
    """
    // gate * sigmoid(1.702 gate) * up, in pairs of halves.
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= x_shape[0] / 2) return;
    const half2 gate = reinterpret_cast<const half2*>(x)[i], up = __ldg(reinterpret_cast<const half2*>(z) + i);
    const half2 one = __float2half2_rn(1.0f);
    const half2 turned = __hmul2(gate, __float2half2_rn(-1.702f));
    const half2 sigmoid = __h2div(one, __hadd2(one, h2exp(turned)));
    reinterpret_cast<half2*>(y)[i] = __hmul2(__hmul2(gate, sigmoid), __hmin2(__hmax2(up, __hneg2(one)), one));
    """,
    inputs=lambda rng: {"x": rng.normal(size=200).astype(np.float16), "z": rng.normal(size=200).astype(np.float16)},
    outputs={"y": ((200,), "float16")},
    tolerance=6e-3,
    grid=(100, 1, 1),
    threadgroup=(64, 1, 1),
)
def cuda_gated_activation_of_pairs(x, z):
    g = _f64(x)
    return g / (1 + np.exp(-1.702 * g)) * np.clip(_f64(z), -1, 1)


@cuda_body(
    """
    // Half of a head's dimensions are turned with the other half; keys go into a paged cache.
    const int token = blockIdx.x, head = blockIdx.y, heads = q_shape[1], half_size = q_shape[2] / 2;
    const int position = positions[token];
    const int block = table[position / PAGE], slot = position % PAGE;
    for (int d = threadIdx.x; d < half_size; d += blockDim.x) {
      const float angle = position * exp2f(-13.287712f * d / half_size);
      float sine, cosine;
      sincosf(angle, &sine, &cosine);
      const int at = (token * heads + head) * 2 * half_size + d;
      const float q0 = __bfloat162float(q[at]), q1 = __bfloat162float(q[at + half_size]);
      turned[at] = __float2bfloat16(q0 * cosine - q1 * sine);
      turned[at + half_size] = __float2bfloat16(q1 * cosine + q0 * sine);
      if (head < k_shape[1]) {
        const int from = (token * k_shape[1] + head) * 2 * half_size + d;
        const float k0 = __bfloat162float(k[from]), k1 = __bfloat162float(k[from + half_size]);
        const int to = ((block * k_shape[1] + head) * PAGE + slot) * 2 * half_size + d;
        cache[to] = __float2bfloat16_rn(k0 * cosine - k1 * sine);
        cache[to + half_size] = __float2bfloat16_rn(k1 * cosine + k0 * sine);
      }
    }
    """,
    init_value=0,
    template=[("PAGE", 4)],
    inputs=lambda rng: {
        "q": rng.normal(size=(3, 2, 32)).astype(_BF16),
        "k": rng.normal(size=(3, 1, 32)).astype(_BF16),
        "positions": np.array([2, 5, 11], np.int32),
        "table": np.array([2, 0, 1], np.int32),
    },
    outputs={"turned": ((3, 2, 32), "bfloat16"), "cache": ((3, 1, 4, 32), "bfloat16")},
    tolerance=1.5e-2,
    grid=(3 * 16, 2, 1),
    threadgroup=(16, 1, 1),
)
def cuda_rotary_embedding_and_cache(q, k, positions, table):
    angle = positions[:, None] * 10000.0 ** (-np.arange(16) / 16)
    s, c = np.sin(angle)[:, None], np.cos(angle)[:, None]

    def turn(x):
        a, b = _f64(x)[..., :16], _f64(x)[..., 16:]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    cache = np.zeros((3, 1, 4, 32))
    for token, position in enumerate(positions):
        cache[table[position // 4], :, position % 4] = turn(k)[token]
    return turn(q), cache


@cuda_body(
    """
    // Which two of EXPERTS each token goes to, their weights, and each token's place among those of its expert.
    const int token = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const bool is_token = token < logits_shape[0];
    float score = is_token && lane < EXPERTS ? logits[token * EXPERTS + lane] : -INFINITY;
    float first_score = 0.0f;
    for (int k = 0; k < 2; ++k) {
      const float high = cg::reduce(warp, score, cg::greater<float>());
      const int expert = __ffs(warp.ballot(score == high)) - 1;
      if (k == 0) first_score = high;
      if (is_token && lane == 0) {
        chosen[token * 2 + k] = expert;
        weights[token * 2 + k] = __expf(high - first_score);
        atomicAdd(&load[expert], 1);
      }
      if (lane == expert) score = -INFINITY;
    }
    if (is_token && lane == 0) {
      const float second = weights[token * 2 + 1];
      weights[token * 2] = 1.0f / (1.0f + second);
      weights[token * 2 + 1] = second / (1.0f + second);
    }
    """,
    init_value=0,
    template=[("EXPERTS", 12)],
    inputs=lambda rng: {"logits": rng.permutation(21 * 12).reshape(21, 12).astype(np.float32) / 32},
    outputs={"chosen": ((21, 2), "int32"), "weights": ((21, 2), "float32"), "load": ((12,), "int32")},
    tolerance=1e-4,
    grid=(6 * 128, 1, 1),
    threadgroup=(128, 1, 1),
)
def cuda_routing_to_experts(logits):
    order = np.argsort(-logits, 1)[:, :2]
    pair = _softmax(np.take_along_axis(_f64(logits), order, 1))
    return order.astype(np.int32), pair, np.bincount(order.reshape(-1), minlength=12).astype(np.int32)


# ---- Numbers


@cuda_body(
    """
    // Philox of four words and ten rounds; pairs of normals of each.
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 c = make_uint4(i, 0u, 3u, 4u);
    uint2 key = make_uint2(seed[0], seed[1]);
    #pragma unroll
    for (int round = 0; round < 10; ++round) {
      const unsigned low0 = 0xD2511F53u * c.x, high0 = __umulhi(0xD2511F53u, c.x);
      const unsigned low1 = 0xCD9E8D57u * c.z, high1 = __umulhi(0xCD9E8D57u, c.z);
      c = make_uint4(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
      key.x += 0x9E3779B9u;
      key.y += 0xBB67AE85u;
    }
    reinterpret_cast<uint4*>(words)[i] = c;
    const float u = fmaf(__uint2float_rn(c.x), 0x1p-32f, 0x1p-33f), v = __uint2float_rn(c.y) * 0x1p-32f;
    float s, t;
    sincospif(2.0f * v, &s, &t);
    const float radius = sqrtf(-2.0f * logf(u));
    reinterpret_cast<float2*>(normals)[i] = make_float2(radius * t, radius * s);
    """,
    inputs=lambda rng: {"seed": rng.integers(0, 2**32, 8, np.uint32)},
    outputs={"words": ((96, 4), "uint32"), "normals": ((96, 2), "float32")},
    tolerance=2e-4,
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
)
def cuda_philox(seed):
    c = [np.arange(96, dtype=np.uint64), *(np.full(96, n, np.uint64) for n in (0, 3, 4))]
    low = np.uint64(0xFFFFFFFF)
    for r in range(10):
        keys = [(int(seed[n]) + r * step) % 2**32 for n, step in enumerate((0x9E3779B9, 0xBB67AE85))]
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            q >> np.uint64(32) ^ c[1] ^ np.uint64(keys[0]),
            q & low,
            p >> np.uint64(32) ^ c[3] ^ np.uint64(keys[1]),
            p & low,
        ]
    u = c[0].astype(np.float32).astype(np.float64) * 2.0**-32 + 2.0**-33
    angle = 2 * np.pi * (c[1].astype(np.float32).astype(np.float64) * 2.0**-32)
    radius = np.sqrt(-2 * np.log(u))
    return np.stack(c, 1).astype(np.uint32), np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


@cuda_body(
    """
    // xxHash32 of each row's words, four lanes at a time, and MurmurHash3's end over it.
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= x_shape[0]) return;
    const unsigned P1 = 2654435761u, P2 = 2246822519u, P3 = 3266489917u;
    unsigned v[4] = {SEED + P1 + P2, SEED + P2, SEED, SEED - P1};
    const uint4* in = reinterpret_cast<const uint4*>(x + row * x_shape[1]);
    for (int k = 0; k < x_shape[1] / 4; ++k) {
      const uint4 w = in[k];
      const unsigned words[4] = {w.x, w.y, w.z, w.w};
      #pragma unroll
      for (int n = 0; n < 4; ++n) {
        v[n] += words[n] * P2;
        v[n] = __funnelshift_l(v[n], v[n], 13) * P1;
      }
    }
    unsigned h = __funnelshift_l(v[0], v[0], 1) + __funnelshift_l(v[1], v[1], 7) + __funnelshift_l(v[2], v[2], 12)
               + __funnelshift_l(v[3], v[3], 18) + 4 * x_shape[1];
    h ^= h >> 15; h *= P2; h ^= h >> 13; h *= P3; h ^= h >> 16;
    y[row] = h;
    unsigned m = h;
    m ^= m >> 16; m *= 0x85ebca6bu; m ^= m >> 13; m *= 0xc2b2ae35u; m ^= m >> 16;
    y[x_shape[0] + row] = m;
    """,
    template=[("SEED", 5)],
    inputs=lambda rng: {"x": rng.integers(0, 2**32, (70, 16), np.uint32)},
    outputs={"y": ((2, 70), "uint32")},
    grid=(70, 1, 1),
    threadgroup=(32, 1, 1),
)
def cuda_hashes(x):
    p1, p2, p3 = 2654435761, 2246822519, 3266489917

    def rotated(n, k):
        return (n << k | n >> (32 - k)) % 2**32

    found = []
    for row in x:
        v = [(5 + p1 + p2) % 2**32, (5 + p2) % 2**32, 5, (5 - p1) % 2**32]
        for k, word in enumerate(row):
            v[k % 4] = rotated((v[k % 4] + int(word) * p2) % 2**32, 13) * p1 % 2**32
        h = (sum(rotated(n, k) for n, k in zip(v, (1, 7, 12, 18), strict=True)) + 64) % 2**32
        for shift, factor in ((15, p2), (13, p3), (16, 1)):
            h = (h ^ h >> shift) * factor % 2**32
        m = h
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            m = (m ^ m >> shift) * factor % 2**32
        found.append((h, m))
    return np.array(found, np.uint32).T


@cuda_body(
    """
    // Threads of a warp leave at different iterations; double, on a grid of powers of two.
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= 48 || row >= 40) return;
    const double cx = -2.0 + column * 0.0625, cy = -1.25 + row * 0.0625;
    double zx = 0.0, zy = 0.0;
    int n = 0;
    for (; n < 64; ++n) {
      const double xx = __dmul_rn(zx, zx), yy = __dmul_rn(zy, zy);
      if (__dadd_rn(xx, yy) > 4.0) break;
      zy = __dadd_rn(__dmul_rn(2.0 * zx, zy), cy);
      zx = __dadd_rn(__dsub_rn(xx, yy), cx);
    }
    y[row * 48 + column] = n;
    """,
    outputs={"y": ((40, 48), "int32")},
    grid=(48, 40, 1),
    threadgroup=(16, 8, 1),
)
def cuda_mandelbrot():
    cx, cy = np.meshgrid(-2 + np.arange(48) * 0.0625, -1.25 + np.arange(40) * 0.0625)
    zx, zy, n, inside = np.zeros((40, 48)), np.zeros((40, 48)), np.zeros((40, 48), np.int32), np.ones((40, 48), bool)
    for _ in range(64):
        xx, yy = zx * zx, zy * zy
        inside &= xx + yy <= 4
        n += inside
        zx, zy = np.where(inside, xx - yy + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
    return n


@cuda_body(
    """
    // A 64-point transform in shared memory: bits reversed, then six rounds of butterflies.
    __shared__ float2 values[64];
    const int t = threadIdx.x;
    const int from = __brev((unsigned)t) >> 26;
    values[t] = reinterpret_cast<const float2*>(x)[blockIdx.x * 64 + from];
    __syncthreads();
    for (int size = 2; size <= 64; size *= 2) {
      const int half_size = size / 2;
      if ((t & (size - 1)) < half_size) {
        const int k = t & (half_size - 1);
        float sine, cosine;
        sincospif(-2.0f * k / size, &sine, &cosine);
        const float2 a = values[t], b = values[t + half_size];
        const float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
        values[t] = make_float2(a.x + turned.x, a.y + turned.y);
        values[t + half_size] = make_float2(a.x - turned.x, a.y - turned.y);
      }
      __syncthreads();
    }
    y[blockIdx.x * 64 + t] = hypotf(values[t].x, values[t].y);
    """,
    inputs=lambda rng: {"x": rng.normal(size=(3, 64, 2)).astype(np.float32)},
    outputs={"y": ((3, 64), "float32")},
    tolerance=1e-4,
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
)
def cuda_fourier_transform(x):
    return np.abs(np.fft.fft(_f64(x)[..., 0] + 1j * _f64(x)[..., 1]))


# ---- Grids and images


@cuda_body(
    """
    // Tiles of 32 x 32 by 32 x 8 threads; what would be a column's conflicts is spread by exclusive or.
    __shared__ int tile[32][32];
    const int rows = x_shape[1], columns = x_shape[2], plane = blockIdx.z;
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
      if (row + k < rows && column < columns)
        tile[threadIdx.y + k][threadIdx.x ^ (threadIdx.y + k)] = x[(plane * rows + row + k) * columns + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
      if (row + k < columns && column < rows)
        y[(plane * columns + row + k) * rows + column] = tile[threadIdx.x][(threadIdx.y + k) ^ threadIdx.x];
    """,
    inputs=lambda rng: {"x": rng.integers(0, 1000, (2, 45, 70)).astype(np.int32)},
    outputs={"y": ((2, 70, 45), "int32")},
    grid=(96, 16, 2),
    threadgroup=(32, 8, 1),
)
def cuda_batched_transpose(x):
    return x.transpose(0, 2, 1)


@cuda_body(
    """
    // A plane at a time in shared memory with a border of one; the planes before and behind in registers.
    __shared__ float plane[10][34];
    const int nx = x_shape[2], ny = x_shape[1], nz = x_shape[0];
    const int gx = blockIdx.x * 32 + threadIdx.x, gy = blockIdx.y * 8 + threadIdx.y;
    const bool inside = gx < nx && gy < ny;
    auto at = [&](int z, int r, int c) {
      return r >= 0 && r < ny && c >= 0 && c < nx && z >= 0 && z < nz ? x[(z * ny + r) * nx + c] : 0.0f;
    };
    float before = 0.0f, here = at(0, gy, gx);
    for (int z = 0; z < nz; ++z) {
      const float behind = at(z + 1, gy, gx);
      plane[threadIdx.y + 1][threadIdx.x + 1] = here;
      if (threadIdx.x == 0) plane[threadIdx.y + 1][0] = at(z, gy, gx - 1);
      if (threadIdx.x == 31) plane[threadIdx.y + 1][33] = at(z, gy, gx + 1);
      if (threadIdx.y == 0) plane[0][threadIdx.x + 1] = at(z, gy - 1, gx);
      if (threadIdx.y == 7) plane[9][threadIdx.x + 1] = at(z, gy + 1, gx);
      __syncthreads();
      const float* p = &plane[threadIdx.y + 1][threadIdx.x + 1];
      if (inside) y[(z * ny + gy) * nx + gx] = p[-1] + p[1] + p[-34] + p[34] + before + behind - 6.0f * here;
      __syncthreads();
      before = here;
      here = behind;
    }
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 10, (5, 13, 40)).astype(np.float32)},
    outputs={"y": ((5, 13, 40), "float32")},
    grid=(64, 16, 1),
    threadgroup=(32, 8, 1),
)
def cuda_stencil_of_seven_points(x):
    p = np.pad(x, 1)
    centre = p[1:-1, 1:-1, 1:-1]
    sides = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
    return sides + p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:] - 6 * centre


@cuda_body(
    """
    // 32 cells of a row in a word; neighbours are counted by adders of bits, rows wrap round.
    const int word = blockIdx.x * blockDim.x + threadIdx.x, words = x_shape[1], rows = x_shape[0];
    if (word >= words * rows) return;
    const int row = word / words, column = word % words;
    const int left = (column + words - 1) % words, right = (column + 1) % words;
    unsigned ones = 0, twos = 0, fours = 0, own = 0;
    auto add = [&](unsigned bits) {
      const unsigned carry = ones & bits;
      ones ^= bits;
      const unsigned second = twos & carry;
      twos ^= carry;
      fours ^= second;
    };
    #pragma unroll
    for (int d = -1; d <= 1; ++d) {
      const unsigned* line = x + (row + d + rows) % rows * words;
      const unsigned middle = line[column];
      add(__funnelshift_l(line[left], middle, 1));
      add(__funnelshift_r(middle, line[right], 1));
      if (d == 0) own = middle;
      else add(middle);
    }
    y[word] = ~fours & twos & (ones | own);
    atomicAdd(&alive[0], __popc(~fours & twos & (ones | own)));
    """,
    init_value=0,
    inputs=lambda rng: {"x": rng.integers(0, 2**32, (20, 3), np.uint32)},
    outputs={"y": ((20, 3), "uint32"), "alive": ((1,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
)
def cuda_game_of_life(x):
    cells = (x[:, :, None] >> np.arange(32, dtype=np.uint32) & 1).reshape(20, 96).astype(np.int64)
    around = sum(np.roll(cells, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
    # Eight neighbours count as none in three bits, and are too many either way.
    lives = (around == 3) | ((around == 2) & (cells == 1))
    words = (lives.reshape(20, 3, 32).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(2)
    return words.astype(np.uint32), np.array([lives.sum()], np.int32)


@cuda_body(
    """
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const int height = x_shape[0], width = x_shape[1];
    if (column >= width || row >= height) return;
    const uchar4* pixels = reinterpret_cast<const uchar4*>(x);
    int gx = 0, gy = 0;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const uchar4 p = pixels[min(max(row + dy, 0), height - 1) * width + min(max(column + dx, 0), width - 1)];
        const int grey = (77 * p.x + 150 * p.y + 29 * p.z) >> 8;
        gx += dx * (dy == 0 ? 2 : 1) * grey;
        gy += dy * (dx == 0 ? 2 : 1) * grey;
      }
    const unsigned edge = min(abs(gx) + abs(gy), 255);
    const uchar4 own = pixels[row * width + column];
    // The mean of each channel and the edge, all four at once.
    const unsigned packed = own.x | own.y << 8 | own.z << 16 | unsigned(own.w) << 24;
    reinterpret_cast<unsigned*>(y)[row * width + column] = __vavgu4(packed, edge * 0x01010101u);
    """,
    inputs=lambda rng: {"x": rng.integers(0, 256, (20, 30, 4), np.uint8)},
    outputs={"y": ((20, 30, 4), "uint8")},
    grid=(30, 20, 1),
    threadgroup=(16, 4, 1),
)
def cuda_edges_of_an_image(x):
    v = x.astype(np.int64)
    grey = np.pad((77 * v[..., 0] + 150 * v[..., 1] + 29 * v[..., 2]) >> 8, 1, mode="edge")
    smooth_rows = grey[:-2] + 2 * grey[1:-1] + grey[2:]
    smooth_columns = grey[:, :-2] + 2 * grey[:, 1:-1] + grey[:, 2:]
    gx, gy = smooth_rows[:, 2:] - smooth_rows[:, :-2], smooth_columns[2:] - smooth_columns[:-2]
    edge = np.minimum(np.abs(gx) + np.abs(gy), 255)[..., None]
    return ((v + edge + 1) >> 1).astype(np.uint8)


# ---- Simulation, graphs, sequences


@cuda_body(
    """
    extern __shared__ float4 bodies_of_tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = x_shape[0];
    const float4 own = i < n ? reinterpret_cast<const float4*>(x)[i] : make_float4(0, 0, 0, 0);
    float3 force = make_float3(0.0f, 0.0f, 0.0f);
    for (int begin = 0; begin < n; begin += blockDim.x) {
      bodies_of_tile[threadIdx.x] = begin + threadIdx.x < n ? reinterpret_cast<const float4*>(x)[begin + threadIdx.x]
                                                            : make_float4(0, 0, 0, 0);
      __syncthreads();
      #pragma unroll 4
      for (int j = 0; j < blockDim.x; ++j) {
        const float4 other = bodies_of_tile[j];
        const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
        const float strength = other.w * inverse * inverse * inverse;
        force.x += dx * strength;
        force.y += dy * strength;
        force.z += dz * strength;
      }
      __syncthreads();
    }
    if (i < n) {
      y[3 * i] = force.x;
      y[3 * i + 1] = force.y;
      y[3 * i + 2] = force.z;
    }
    """,
    shared_memory=64 * 16,
    inputs=lambda rng: {"x": np.concatenate([rng.normal(size=(100, 3)), rng.uniform(0.5, 1, (100, 1))], 1).astype(np.float32)},
    outputs={"y": ((100, 3), "float32")},
    tolerance=2e-3,
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
)  # fmt: skip
def cuda_bodies_that_attract(x):
    v = _f64(x)
    d = v[None, :, :3] - v[:, None, :3]
    r = (d * d).sum(2) + 0.01
    return (d * (v[None, :, 3] * r**-1.5)[..., None]).sum(1)


@cuda_body(
    """
    // All shortest paths of a small graph in one block.
    __shared__ int distance[32][33];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) distance[i / 32][i % 32] = x[blockIdx.x * 1024 + i];
    __syncthreads();
    for (int k = 0; k < 32; ++k) {
      for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
        const int row = i / 32, column = i % 32;
        // Through itself nothing becomes shorter, so that nobody writes what others read in this round.
        const int shorter = __viaddmin_s32(distance[row][k], distance[k][column], distance[row][column]);
        if (shorter < distance[row][column]) distance[row][column] = shorter;
      }
      __syncthreads();
    }
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) y[blockIdx.x * 1024 + i] = distance[i / 32][i % 32];
    """,
    inputs=lambda rng: {
        "x": np.where(
            np.eye(32), 0, np.where(rng.random((2, 32, 32)) < 0.15, rng.integers(1, 50, (2, 32, 32)), 10**6)
        ).astype(np.int32)
    },
    outputs={"y": ((2, 32, 32), "int32")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
)
def cuda_shortest_paths(x):
    d = x.astype(np.int64)
    for k in range(32):
        d = np.minimum(d, d[:, :, k : k + 1] + d[:, k : k + 1, :])
    return d.astype(np.int32)


@cuda_body(
    """
    // Local alignment with affine gaps: a block aligns one pair; a thread owns a column of the query and the threads
    // walk over anti-diagonals, so that what a cell needs was computed one and two steps before. Scores go through
    // shared memory from a column to the next. The best cell is found at the end, with a trace of directions that the
    // first thread follows back.
    constexpr int MATCH = 3, MISMATCH = -2, OPEN = 5, EXTEND = 1;
    constexpr int NEGATIVE = -1000000;
    constexpr int LONGEST = 64;

    // Of the last steps: h[parity][column + 1] is a column's newest score, e[..] that of a gap that comes from the left.
    __shared__ int h[3][LONGEST + 1];
    __shared__ int e[2][LONGEST + 1];
    __shared__ unsigned char reference[LONGEST];
    __shared__ unsigned char trace[LONGEST][LONGEST];
    __shared__ int best_of_warp[2];
    __shared__ int place_of_warp[2];

    const int pair = blockIdx.x;
    const int column = threadIdx.x;
    const int query_length = lengths[2 * pair];
    const int reference_length = lengths[2 * pair + 1];
    const int own = column < query_length ? queries[pair * LONGEST + column] : 255;
    reference[column] = column < reference_length ? references[pair * LONGEST + column] : 254;

    for (int i = column; i <= LONGEST; i += LONGEST) {
      h[0][i] = h[1][i] = h[2][i] = 0;
      e[0][i] = e[1][i] = NEGATIVE;
    }
    __syncthreads();

    // How often each of the four letters stands in the reference: by votes, two warps, one atomic of each.
    #pragma unroll
    for (int letter = 0; letter < 4; ++letter) {
      const unsigned votes = __ballot_sync(0xffffffffu, reference[column] == letter);
      if ((column & 31) == letter) atomicAdd(&letters[4 * pair + letter], __popc(votes));
    }

    int best = 0, best_place = 0;
    int up = 0;         // the score of the cell above: this column, one row before
    int gap_up = NEGATIVE;  // of a gap that comes from above

    for (int step = 0; step < query_length + reference_length - 1; ++step) {
      const int now = step % 3, before = (step + 2) % 3, earlier = (step + 1) % 3;
      const int row = step - column;
      const bool is_cell = column < query_length && row >= 0 && row < reference_length;
      int score = 0, gap_left = NEGATIVE;
      if (is_cell) {
        // The cell to the left was computed one step before, the one across two steps before.
        const int left = column == 0 ? 0 : h[before][column];
        const int across = column == 0 || row == 0 ? 0 : h[earlier][column];
        const int above = row == 0 ? 0 : up;
        const int left_gap = column == 0 ? NEGATIVE : e[(step + 1) & 1][column];
        const int above_gap = row == 0 ? NEGATIVE : gap_up;

        gap_left = __viaddmax_s32(left_gap, -EXTEND, left - OPEN);
        gap_up = __viaddmax_s32(above_gap, -EXTEND, above - OPEN);
        const int diagonal = across + (own == reference[row] ? MATCH : MISMATCH);
        score = __vimax3_s32_relu(diagonal, gap_left, gap_up);

        // 0: an end, 1: across, 2: left, 3: up; of equal ones the first.
        unsigned char from = 0;
        if (score > 0) from = score == diagonal ? 1 : score == gap_left ? 2 : 3;
        trace[row][column] = from;

        // Of equal scores the one that comes first row by row.
        const int place = row * LONGEST + column;
        if (score > best || (score == best && score > 0 && place < best_place)) {
          best = score;
          best_place = place;
        }
      }
      h[now][column + 1] = score;
      e[step & 1][column + 1] = gap_left;
      if (is_cell) up = score;
      __syncthreads();
    }

    // The largest of all columns: by shuffles, then between the two warps.
    #pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) {
      const int other = __shfl_down_sync(0xffffffffu, best, distance);
      const int other_place = __shfl_down_sync(0xffffffffu, best_place, distance);
      if (other > best || (other == best && other_place < best_place)) {
        best = other;
        best_place = other_place;
      }
    }
    if ((column & 31) == 0) {
      best_of_warp[column >> 5] = best;
      place_of_warp[column >> 5] = best_place;
    }
    __syncthreads();
    if (column != 0) return;

    if (best_of_warp[1] > best || (best_of_warp[1] == best && place_of_warp[1] < best_place)) {
      best = best_of_warp[1];
      best_place = place_of_warp[1];
    }
    int row = best_place / LONGEST, at = best_place % LONGEST, matches = 0, cells = 0;
    // Only steps across are told from gaps here: a gap's own cells point on along it as far as they are its best.
    while (best > 0 && row >= 0 && at >= 0) {
      const unsigned char from = trace[row][at];
      if (from == 0) break;
      ++cells;
      if (from == 1) {
        matches += reference[row] == queries[pair * LONGEST + at];
        --row;
        --at;
      } else if (from == 2) {
        --at;
      } else {
        --row;
      }
    }
    scores[4 * pair] = best;
    scores[4 * pair + 1] = best_place;
    scores[4 * pair + 2] = matches;
    scores[4 * pair + 3] = cells;
    """,
    inputs=lambda rng: {
        "queries": rng.integers(0, 4, (4, 64), np.uint8),
        "references": rng.integers(0, 4, (4, 64), np.uint8),
        "lengths": np.array([64, 64, 40, 64, 64, 33, 17, 50], np.int32),
    },
    init_value=0,
    outputs={"scores": ((4, 4), "int32"), "letters": ((4, 4), "int32")},
    grid=(4 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="cuda_structure.long_body",
)
def cuda_local_alignment(queries, references, lengths):
    result = []
    for pair in range(4):
        n, m = int(lengths[2 * pair]), int(lengths[2 * pair + 1])
        h = np.zeros((m + 1, n + 1), int)
        left, up = np.full((m + 1, n + 1), -(10**6)), np.full((m + 1, n + 1), -(10**6))
        trace = np.zeros((m, n), int)
        for r in range(m):
            for c in range(n):
                left[r + 1, c + 1] = max(left[r + 1, c] - 1, h[r + 1, c] - 5)
                up[r + 1, c + 1] = max(up[r, c + 1] - 1, h[r, c + 1] - 5)
                across = h[r, c] + (3 if queries[pair, c] == references[pair, r] else -2)
                score = max(0, across, left[r + 1, c + 1], up[r + 1, c + 1])
                h[r + 1, c + 1] = score
                if score > 0:
                    trace[r, c] = 1 if score == across else 2 if score == left[r + 1, c + 1] else 3
        best = h[1:, 1:].max()
        r, c = np.argwhere(h[1:, 1:] == best)[0]
        place, matches, cells = r * 64 + c, 0, 0
        while r >= 0 and c >= 0 and trace[r, c]:
            cells += 1
            matches += trace[r, c] == 1 and queries[pair, c] == references[pair, r]
            r, c = r - (trace[r, c] in (1, 3)), c - (trace[r, c] in (1, 2))
        result.append([best, place, matches, cells])
    letters = [np.bincount(references[pair, : lengths[2 * pair + 1]], minlength=4) for pair in range(4)]
    return np.array(result, np.int32), np.array(letters, np.int32)
