"""Integers of a few bits with scales: products with vectors and matrices, packing and unpacking, and activations.

Where scales are powers of two and the rest are small integers, every sum is exact in a float, whatever its order.
"""

import numpy as np

from bodies import DTYPES, Dtype, body


def _pack(values, bits):
    """Along the last axis, the lowest bits first, as bytes."""
    planes = values[..., None] >> np.arange(bits, dtype=values.dtype) & 1
    return np.packbits(planes.astype(np.uint8).reshape(*values.shape[:-1], -1), axis=-1, bitorder="little")


def _powers(rng, shape, low, high):
    return (2.0 ** rng.integers(low, high, shape)).astype(np.float16)


# ---- Affine by groups, of any number of bits

_UNPACKING = """
// Eight weights of B bits take B bytes, the lowest bits first. Each width has its own way out of the bytes.
template <int B>
struct Eight;

#define BYTE(i) uint(from[i])

template <>
struct Eight<1> {
  static void unpack(device const uchar* from, thread float* to) {
    #pragma unroll
    for (int j = 0; j < 8; ++j) to[j] = select(0.0f, 1.0f, (from[0] & (1 << j)) != 0);
  }
};

template <>
struct Eight<2> {
  static void unpack(device const uchar* from, thread float* to) {
    const uint word = BYTE(0) | BYTE(1) << 8;
    #pragma unroll
    for (int j = 0; j < 8; ++j) to[j] = float((word >> (2 * j)) & 0x3u);
  }
};

template <>
struct Eight<3> {
  static void unpack(device const uchar* from, thread float* to) {
    // 8 + 8 + 8 bits: two of the weights lie across a byte's end.
    to[0] = float(from[0] & 0x7);
    to[1] = float((from[0] & 0x38) >> 3);
    to[2] = float(((from[0] & 0xc0) >> 6) | ((from[1] & 0x1) << 2));
    to[3] = float((from[1] & 0xe) >> 1);
    to[4] = float((from[1] & 0x70) >> 4);
    to[5] = float(((from[1] & 0x80) >> 7) | ((from[2] & 0x3) << 1));
    to[6] = float((from[2] & 0x1c) >> 2);
    to[7] = float((from[2] & 0xe0) >> 5);
  }
};

template <>
struct Eight<4> {
  static void unpack(device const uchar* from, thread float* to) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      to[2 * j] = float(from[j] & 0xf);
      to[2 * j + 1] = float(from[j] >> 4);
    }
  }
};

template <>
struct Eight<5> {
  static void unpack(device const uchar* from, thread float* to) {
    // Forty bits as a long word.
    const ulong word = ulong(BYTE(0) | BYTE(1) << 8 | BYTE(2) << 16 | BYTE(3) << 24) | ulong(from[4]) << 32;
    #pragma unroll
    for (int j = 0; j < 8; ++j) to[j] = float(uint(word >> (5 * j)) & 0x1fu);
  }
};

template <>
struct Eight<6> {
  static void unpack(device const uchar* from, thread float* to) {
    // Twice four weights in 24 bits.
    for (int half_of_it = 0; half_of_it < 2; ++half_of_it) {
      const uint word = BYTE(3 * half_of_it) | BYTE(3 * half_of_it + 1) << 8 | BYTE(3 * half_of_it + 2) << 16;
      for (int j = 0; j < 4; ++j) to[4 * half_of_it + j] = float(extract_bits(word, 6 * j, 6));
    }
  }
};

template <>
struct Eight<7> {
  static void unpack(device const uchar* from, thread float* to) {
    // A weight begins one bit before its byte does: what is left of the byte before it, and the rest of its own.
    uint left = 0;
    #pragma unroll
    for (int j = 0; j < 7; ++j) {
      to[j] = float(((BYTE(j) << j) | left) & 0x7fu);
      left = BYTE(j) >> (7 - j);
    }
    to[7] = float(left);
  }
};

template <>
struct Eight<8> {
  static void unpack(device const uchar* from, thread float* to) {
    for (int j = 0; j < 8; ++j) to[j] = float(from[j]);
  }
};

// The sums that eight columns add to a row, for V vectors at once: sum x q and sum x, which the group's scale and bias take.
template <int V>
struct Sums {
  float products[V];
  float plain[V];

  void clear() thread {
    for (int v = 0; v < V; ++v) products[v] = plain[v] = 0;
  }

  void add(thread const float* weights, thread const float (&x)[V][8]) thread {
    #pragma unroll
    for (int v = 0; v < V; ++v) {
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        products[v] = fma(weights[j], x[v][j], products[v]);
        plain[v] += x[v][j];
      }
    }
  }
};
"""

_AFFINE_PRODUCT = """
    // y = x w^T for V vectors; w has ROWS rows for each simdgroup. A lane takes eight columns at a time, so that a step of
    // the simdgroup is 256 columns; columns are a multiple of the group, not of the step.
    constexpr int ROWS = 2;
    const uint lane = thread_index_in_simdgroup;
    const int columns = x_shape[1], rows = y_rows;
    const int first_row = ROWS * int(threadgroup_position_in_grid.y * simdgroups_per_threadgroup
        + simdgroup_index_in_threadgroup);
    if (first_row >= rows) return;
    const int row_bytes = columns / 8 * B, row_groups = columns / GROUP;

    float totals[ROWS][V];
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < V; ++v) totals[r][v] = 0;

    for (int column = int(lane) * 8; column < columns; column += 256) {
      float own[V][8];
      for (int v = 0; v < V; ++v) {
        device const T* from = x + v * columns + column;
        for (int j = 0; j < 8; ++j) own[v][j] = float(from[j]);
      }
      #pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        // A row behind the last one is read as the last one, and not written.
        const int row = min(first_row + r, rows - 1);
        float weights[8];
        Eight<B>::unpack(w + row * row_bytes + column / 8 * B, weights);
        Sums<V> sums;
        sums.clear();
        sums.add(weights, own);
        const int group = row * row_groups + column / GROUP;
        const float scale = float(scales[group]), bias = float(biases[group]);
        for (int v = 0; v < V; ++v) totals[r][v] += scale * sums.products[v] + bias * sums.plain[v];
      }
    }

    for (int r = 0; r < ROWS; ++r) {
      for (int v = 0; v < V; ++v) {
        const float total = simd_sum(totals[r][v]);
        if (lane == 0 && first_row + r < rows) y[v * rows + first_row + r] = total;
      }
    }
    """

for _bits in range(1, 9):

    def _affine_inputs(rng, bits=_bits):
        return {
            "x": rng.integers(-8, 9, (3, 320)).astype(np.float16),
            "w": _pack(rng.integers(0, 2**bits, (7, 320)), bits),
            "scales": _powers(rng, (7, 10), -4, 1),
            "biases": (_powers(rng, (7, 10), -4, 1) * rng.integers(-8, 1, (7, 10))).astype(np.float16),
            "y_rows": 7,
        }

    def _affine_product(x, w, scales, biases, y_rows, bits=_bits):
        planes = np.unpackbits(w, axis=-1, bitorder="little").reshape(7, 320, bits)
        levels = planes.astype(np.int64) @ (1 << np.arange(bits))
        weights = levels * np.repeat(scales.astype(np.float64), 32, 1) + np.repeat(biases.astype(np.float64), 32, 1)
        return (x.astype(np.float64) @ weights.T).astype(np.float32)

    body(
        _AFFINE_PRODUCT,
        name=f"affine_product_of_{_bits}_bits",
        header=_UNPACKING,
        template=[("T", Dtype("float16")), ("B", _bits), ("GROUP", 32), ("V", 3)],
        inputs=_affine_inputs,
        outputs={"y": ((3, 7), "float32")},
        grid=(32, 4, 1),
        threadgroup=(32, 2, 1),
        constructs="structure.template structure.struct functions.extract_bits functions.fma simdgroup.sum "
        "structure.pragma_unroll address_spaces.device structure.early_return",
    )(_affine_product)


@body(
    """
    // A simdgroup quantises two groups of 64 values, each lane four of its own: the range by reductions, then neighbours put
    // their bits together.
    constexpr float LEVELS = (1 << BITS) - 1;
    constexpr ushort PER = 4;
    const uint lane = thread_index_in_simdgroup;
    const uint group = thread_position_in_grid.y;
    const uint first = group * 128 + lane * PER;
    float v[PER];
    float low = INFINITY, high = -INFINITY;
    for (ushort j = 0; j < PER; ++j) {
      v[j] = float(x[first + j]);
      low = min(low, v[j]);
      high = max(high, v[j]);
    }
    // Over sixteen lanes: a group is half of the simdgroup.
    for (ushort mask = 1; mask < 16; mask <<= 1) {
      low = min(low, simd_shuffle_xor(low, mask));
      high = max(high, simd_shuffle_xor(high, mask));
    }
    // The end that is farther from zero is met exactly.
    const bool low_is_far = fabs(low) > fabs(high);
    float scale = max((high - low) / LEVELS, 1e-7f);
    scale = low_is_far ? scale : -scale;
    const float edge = low_is_far ? low : high;
    const float steps = rint(edge / scale);
    const bool at_zero = steps == 0.0f;
    if (!at_zero) scale = edge / steps;
    const float bias = at_zero ? 0.0f : edge;

    uint bits = 0;
    for (ushort j = 0; j < PER; ++j) {
      const float level = clamp(rint((v[j] - bias) / scale), 0.0f, LEVELS);
      bits |= uint(level) << (BITS * j);
    }
    if (lane % 16 == 0) {
      scales[2 * group + lane / 16] = scale;
      biases[2 * group + lane / 16] = bias;
    }
    // PER * BITS bits of each lane; a whole number of bytes of each pair of lanes.
    const uint other = simd_shuffle_down(bits, ushort(1));
    if (lane % 2 == 0) {
      const uint both = bits | other << (PER * BITS);
      device uchar* to = w + (first * BITS) / 8;
      for (uint j = 0; j < BITS; ++j) to[j] = uchar(both >> (8 * j));
    }
    """,
    template=[("BITS", 3)],
    inputs=lambda rng: {"x": rng.normal(size=(5, 256)).astype(np.float16)},
    outputs={"w": ((5, 96), "uint8"), "scales": ((5, 4), "float32"), "biases": ((5, 4), "float32")},
    grid=(32, 10, 1),
    threadgroup=(32, 5, 1),
    constructs="simdgroup.shuffle_xor simdgroup.shuffle_down functions.rint functions.clamp functions.fabs "
    "types.INFINITY types.uchar",
)
def affine_quantisation(x):
    f = np.float32
    groups = x.reshape(20, 64).astype(f)
    low, high = groups.min(1), groups.max(1)
    far = np.abs(low) > np.abs(high)
    scale = np.where(far, 1, -1).astype(f) * np.maximum((high - low) / f(7), f(1e-7))
    edge = np.where(far, low, high)
    steps = np.rint(edge / scale)
    scale = np.where(steps != 0, edge / np.where(steps != 0, steps, f(1)), scale)
    bias = np.where(steps != 0, edge, f(0))
    levels = np.clip(np.rint((groups - bias[:, None]) / scale[:, None]), 0, 7).astype(np.int64)
    return _pack(levels, 3).reshape(5, 96), scale.reshape(5, 4), bias.reshape(5, 4)


@body(
    """
    // Rows of an embedding of four bits by their numbers; a number outside the table gives zeros. Two numbers of the word
    // for each component: even columns in the lower nibbles.
    const uint word = thread_position_in_grid.x, token = thread_position_in_grid.y;
    const uint words = threads_per_grid.x;
    const int id = int(ids[token]);
    auto to = reinterpret_cast<device vec<T, 4>*>(out + (token * words + word) * 8);
    if (id < 0 || id >= table_shape[0]) {
      to[0] = to[1] = vec<T, 4>(0);
      return;
    }
    const uint packed = table[uint(id) * words + word];
    const uint group = uint(id) * (words * 8 / GROUP) + word * 8 / GROUP;
    const T scale = scales[group], bias = biases[group];
    const uint4 shifts = uint4(0, 4, 8, 12);
    to[0] = vec<T, 4>((uint4(packed) >> shifts) & 15u) * scale + bias;
    to[1] = vec<T, 4>((uint4(packed >> 16) >> shifts) & 15u) * scale + bias;
    """,
    template=[("T", Dtype("float16")), ("GROUP", 16)],
    inputs=lambda rng: {
        "table": rng.integers(0, 2**32, (30, 12), np.uint32),
        "ids": np.array([[3, 29, 0, -1], [30, 3, 17, 8]], np.int16),
        "scales": _powers(rng, (30, 6), -4, 2),
        "biases": rng.integers(-30, 30, (30, 6)).astype(np.float16),
    },
    outputs={"out": ((2, 4, 96), "float16")},
    grid=(12, 8, 1),
    threadgroup=(12, 4, 1),
    constructs="types.vec types.uint4 structure.reinterpret_cast structure.early_return types.vector_conversion",
)
def embedding_of_four_bits(table, ids, scales, biases):
    levels = np.stack([table >> np.uint32(4 * j) & np.uint32(15) for j in range(8)], axis=-1).reshape(30, 96)
    rows = levels.astype(np.float32) * np.repeat(scales.astype(np.float32), 16, axis=1)
    rows = (rows + np.repeat(biases.astype(np.float32), 16, axis=1)).astype(np.float16)
    inside = (ids >= 0) & (ids < 30)
    return np.where(inside[..., None], rows[np.where(inside, ids, 0)], np.float16(0))


# ---- Products with matrices


@body(
    """
    // y = x w^T + bias for half x, w of four bits. Tiles of BM by BN of the result, four simdgroups of which each has a
    // quarter; tiles of the weights are dequantised into threadgroup memory, and sums are kept as matrices of float.
    constexpr int BM = 32, BN = 32, BK = 32;
    constexpr int PAD = 8;                      // rows do not begin in the same bank
    constexpr int PER_WORD = 8;
    constexpr int THREADS = 128;
    static_assert(GROUP % BK == 0, "a step along the columns stays within a group");
    threadgroup half x_tile[BM][BK + PAD];
    threadgroup half w_tile[BN][BK + PAD];
    threadgroup float y_tile[BM][BN + 1];

    const int m = x_shape[0], k = x_shape[1], n = w_shape[0];
    const int row_0 = int(threadgroup_position_in_grid.y) * BM;
    const int column_0 = int(threadgroup_position_in_grid.x) * BN;
    const short tid = short(thread_index_in_threadgroup);
    const short simd = short(simdgroup_index_in_threadgroup);
    // Where the simdgroup's quarter begins.
    const short top = (simd >> 1) * 16, left = (simd & 1) * 16;
    const bool whole_rows = row_0 + BM <= m, whole_columns = column_0 + BN <= n;

    simdgroup_float8x8 sums[2][2];
    #pragma unroll
    for (short i = 0; i < 2; ++i)
      for (short j = 0; j < 2; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);

    for (int k_0 = 0; k_0 < k; k_0 += BK) {
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- x: eight halves for each thread, as two vectors of four.
      {
        const short r = tid / 4, c = tid % 4 * 8;
        threadgroup half4* to = (threadgroup half4*)&x_tile[r][c];
        if (whole_rows || row_0 + r < m) {
          const device half4* from = (const device half4*)(x + (row_0 + r) * k + k_0 + c);
          to[0] = from[0];
          to[1] = from[1];
        } else {
          to[0] = half4(0.0h);
          to[1] = half4(0.0h);
        }
      }

      // ---- w: a word for each thread, of eight nibbles.
      {
        const short r = tid / (BK / PER_WORD), c = tid % (BK / PER_WORD) * PER_WORD;
        threadgroup half* to = &w_tile[r][c];
        if (whole_columns || column_0 + r < n) {
          const int row = column_0 + r;
          uint packed = w[(row * k + k_0 + c) / PER_WORD];
          const int group = row * (k / GROUP) + k_0 / GROUP;
          const half scale = scales[group], zero = zeros[group];
          #pragma unroll
          for (short j = 0; j < PER_WORD; ++j) {
            to[j] = (half(packed & 0xf) - zero) * scale;
            packed >>= 4;
          }
        } else {
          for (short j = 0; j < PER_WORD; ++j) to[j] = 0.0h;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- The products of the tiles.
      simdgroup_half8x8 a[2], b[2];
      for (short step = 0; step < BK; step += 8) {
        #pragma unroll
        for (short i = 0; i < 2; ++i) {
          simdgroup_load(a[i], &x_tile[top + 8 * i][step], BK + PAD);
          // Rows of w are columns of its transpose.
          simdgroup_load(b[i], &w_tile[left + 8 * i][step], BK + PAD, ulong2(0, 0), true);
        }
        #pragma unroll
        for (short i = 0; i < 2; ++i) {
          #pragma unroll
          for (short j = 0; j < 2; ++j) simdgroup_multiply_accumulate(sums[i][j], a[i], b[j], sums[i][j]);
        }
      }
    }

    // ---- Out, through threadgroup memory: the result's edges may be anywhere.
    #pragma unroll
    for (short i = 0; i < 2; ++i)
      for (short j = 0; j < 2; ++j) simdgroup_store(sums[i][j], &y_tile[top + 8 * i][left + 8 * j], BN + 1);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = tid; i < BM * BN; i += THREADS) {
      const int row = row_0 + i / BN, column = column_0 + i % BN;
      if (row >= m || column >= n) continue;
      float sum = y_tile[i / BN][i % BN];
      if (HAS_BIAS) sum += float(bias[column]);
      switch (ACTIVATION) {
        case 1: sum = max(sum, 0.0f); break;
        case 2: sum = sum * clamp(sum / 6.0f + 0.5f, 0.0f, 1.0f); break;
        default: break;
      }
      y[row * n + column] = half(sum);
    }
    """,
    template=[("GROUP", 64), ("HAS_BIAS", True), ("ACTIVATION", 1)],
    inputs=lambda rng: {
        "x": rng.integers(-2, 3, (41, 128)).astype(np.float16),
        "w": rng.integers(0, 2**32, (50, 16), np.uint32),
        "scales": _powers(rng, (50, 2), -3, 0),
        "zeros": rng.integers(5, 11, (50, 2)).astype(np.float16),
        "bias": rng.integers(-20, 20, 50).astype(np.float16),
    },
    outputs={"y": ((41, 50), "float16")},
    grid=(2 * 32, 2 * 4, 1),
    threadgroup=(32, 4, 1),
    constructs="simdgroup_matrix.load_and_store simdgroup_matrix.multiply_accumulate simdgroup_matrix.mixed_types "
    "address_spaces.threadgroup_small_array structure.switch barriers.in_loop literals.half_suffix",
)
def product_with_weights_of_four_bits(x, w, scales, zeros, bias):
    levels = np.stack([w >> np.uint32(4 * j) & np.uint32(15) for j in range(8)], axis=-1).reshape(50, 128)
    weights = (levels - np.repeat(zeros.astype(np.float64), 64, 1)) * np.repeat(scales.astype(np.float64), 64, 1)
    return np.maximum(x.astype(np.float64) @ weights.T + bias, 0).astype(np.float16)


@body(
    """
    // Eight bits by eight bits with sums of 32 bits: tiles of 16 x 16, four columns in a char4. Zero points go in at the end,
    // by the sums of the rows.
    threadgroup char4 a_tile[16][9];
    threadgroup char4 b_tile[16][9];
    const ushort2 t = ushort2(thread_position_in_threadgroup.xy);
    const uint row = threadgroup_position_in_grid.y * 16 + t.y, column = threadgroup_position_in_grid.x * 16 + t.x;
    const uint m = a_shape[0], n = b_shape[0], words = a_shape[1] / 4;
    device const char4* a4 = (device const char4*)a;
    device const char4* b4 = (device const char4*)b;
    int total = 0, b_total = 0;
    for (uint first = 0; first < words; first += 8) {
      if (t.x < 8) {
        const uint w = first + t.x;
        a_tile[t.y][t.x] = row < m && w < words ? a4[row * words + w] : char4(0);
      } else {
        const uint w = first + t.x - 8, b_row = threadgroup_position_in_grid.x * 16 + t.y;
        b_tile[t.y][t.x - 8] = b_row < n && w < words ? b4[b_row * words + w] : char4(0);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (ushort w = 0; w < 8; ++w) {
        total += sum_of_products(a_tile[t.y][w], b_tile[t.x][w]);
        b_total += sum_of_products(char4(1), b_tile[t.x][w]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row >= m || column >= n) return;
    // (a - zero) . b = a . b - zero * sum b
    const int exact = total - int(a_zeros[row]) * b_total;
    sums[row * n + column] = exact;
    y[row * n + column] = float(exact) * (a_scales[row] * b_scales[column]);
    """,
    header="""
static inline int sum_of_products(char4 a, char4 b) {
  const short4 p = short4(a) * short4(b);   // 127 * 127 and -128 * -128 fit
  return int(p.x) + p.y + p.z + p.w;
}
""",
    inputs=lambda rng: {
        "a": rng.integers(-128, 128, (21, 76), np.int8),
        "b": rng.integers(-128, 128, (37, 76), np.int8),
        "a_scales": rng.uniform(0.01, 0.1, 21).astype(np.float32),
        "a_zeros": rng.integers(-128, 128, 21, np.int8),
        "b_scales": rng.uniform(0.01, 0.1, 37).astype(np.float32),
    },
    outputs={"sums": ((21, 37), "int32"), "y": ((21, 37), "float32")},
    grid=(48, 32, 1),
    threadgroup=(16, 16, 1),
    constructs="types.char4 types.short4 types.char address_spaces.threadgroup_vectors address_spaces.cast_to_vector "
    "structure.barrier_in_loop",
)
def product_of_eight_bits(a, b, a_scales, a_zeros, b_scales):
    sums = (a.astype(np.int64) - a_zeros[:, None]) @ b.astype(np.int64).T
    return sums.astype(np.int32), sums.astype(np.float32) * (a_scales[:, None] * b_scales)


@body(
    """
    // Activations by row to eight bits: the largest magnitude over the threadgroup, then rounding. Rows of no magnitude give
    // zeros. Also the sums of the rows, which products with zero points need.
    threadgroup float largest_of[32];
    threadgroup int sums_of[32];
    const uint row = threadgroup_position_in_grid.x, tid = thread_position_in_threadgroup.x;
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint width = x_shape[1], threads = threads_per_threadgroup.x;
    device const T* in = x + row * width;

    float largest = 0;
    for (uint j = tid * 4; j < width; j += threads * 4)
      for (uint c = j; c < min(j + 4, width); ++c) largest = max(largest, fabs(float(in[c])));
    largest = simd_max(largest);
    if (simd == 0) largest_of[lane] = 0, sums_of[lane] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) largest_of[simd] = largest;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    largest = simd_max(largest_of[lane]);

    const float inverse = largest == 0.0f ? 0.0f : 127.0f / largest;
    int sum = 0;
    for (uint j = tid; j < width; j += threads) {
      const char v = char(rint(float(in[j]) * inverse));
      q[row * width + j] = v;
      sum += v;
    }
    sum = simd_sum(sum);
    if (lane == 0) sums_of[simd] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(sums_of[lane]);
    if (tid == 0) {
      scales[row] = largest / 127.0f;
      row_sums[row] = sum;
    }
    """,
    template=[("T", Dtype("bfloat16"))],
    inputs=lambda rng: {
        "x": (rng.normal(size=(5, 301)) * np.array([[1], [100], [0], [0.001], [7]])).astype(DTYPES["bfloat16"])
    },
    outputs={"q": ((5, 301), "int8"), "scales": ((5,), "float32"), "row_sums": ((5,), "int32")},
    grid=(5 * 96, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="simdgroup.max simdgroup.sum functions.rint functions.fabs address_spaces.threadgroup_array types.char",
)
def activations_to_eight_bits_by_row(x):
    f = np.float32
    largest = np.abs(x.astype(f)).max(axis=1)
    inverse = np.where(largest == 0, f(0), f(127) / np.where(largest == 0, f(1), largest))
    q = np.rint(x.astype(f) * inverse[:, None]).astype(np.int8)
    return q, largest / f(127), q.sum(axis=1, dtype=np.int32)


@body(
    """
    // Tokens sorted by their expert: a threadgroup takes eight of them, finds the expert of each and goes through the runs
    // of equal experts. Weights of eight bits with a scale for each row.
    constexpr int TOKENS = 8;
    threadgroup int experts[TOKENS];
    threadgroup float x_rows[TOKENS][K];
    const int first = int(threadgroup_position_in_grid.y) * TOKENS;
    const int tokens = x_shape[0];
    const uint tid = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    const int row = int(thread_position_in_grid.x);          // of the weights
    if (tid < TOKENS) experts[tid] = first + int(tid) < tokens ? int(expert_of[first + tid]) : -1;
    for (int i = tid; i < TOKENS * K; i += threads) {
      const int token = first + i / K;
      x_rows[i / K][i % K] = token < tokens ? float(x[token * K + i % K]) : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    int begin = 0;
    while (begin < TOKENS && experts[begin] >= 0) {
      const int expert = experts[begin];
      int end = begin + 1;
      while (end < TOKENS && experts[end] == expert) ++end;
      // One pass over the expert's row for all of the run's tokens.
      float sums[TOKENS] = {0};
      const device int8_t* weights = w + (expert * N + row) * K;
      for (int j = 0; j < K; j += 4) {
        const char4 four = *(const device packed_char4*)(weights + j);
        for (int t = begin; t < end; ++t) {
          const threadgroup float* v = &x_rows[t][j];
          sums[t] += v[0] * four.x + v[1] * four.y + v[2] * four.z + v[3] * four.w;
        }
      }
      const float scale = scales[expert * N + row];
      for (int t = begin; t < end; ++t) y[(first + t) * N + row] = sums[t] * scale;
      begin = end;
    }
    """,
    template=[("K", 36), ("N", 24)],
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (19, 36)).astype(np.float32),
        "w": rng.integers(-127, 128, (5, 24, 36), np.int8),
        "scales": (2.0 ** rng.integers(-7, -3, (5, 24))).astype(np.float32),
        "expert_of": np.sort(rng.integers(0, 5, 19)).astype(np.uint8),
    },
    outputs={"y": ((19, 24), "float32")},
    grid=(24, 3, 1),
    threadgroup=(24, 1, 1),
    constructs="structure.while structure.dynamic_local_array types.packed_vectors types.int8_t simdgroup.partial "
    "address_spaces.threadgroup_2d_array",
)
def product_of_sorted_experts(x, w, scales, expert_of):
    y = np.einsum("tk,tnk->tn", x.astype(np.float64), w[expert_of].astype(np.float64)) * scales[expert_of]
    return y.astype(np.float32)


@body(
    """
    // Packed along the rows: a word has eight rows of a column. Rows belong to groups in any order (`g_idx`), zero points are
    // packed along the columns. A thread has a column and a part of the rows; parts are added up in threadgroup memory.
    threadgroup float parts[8][32];
    const uint column = thread_position_in_grid.x, part = thread_position_in_threadgroup.y;
    const uint columns = qweight_shape[1], words = qweight_shape[0];
    float sum = 0;
    for (uint word = part; word < words; word += 8) {
      const uint packed = column < columns ? qweight[word * columns + column] : 0;
      #pragma clang loop unroll(full)
      for (uint j = 0; j < 8; ++j) {
        const uint row = word * 8 + j, group = uint(g_idx[row]);
        const uint level = (packed >> (4 * j)) & 0xF;
        const uint zero = ((qzeros[group * ((columns + 7) / 8) + column / 8] >> (4 * (column % 8))) & 0xF) + 1;
        sum += x[row] * (float(scales[group * columns + column]) * float(int(level) - int(zero)));
      }
    }
    parts[part][thread_position_in_threadgroup.x] = sum;
    for (uint span = 4; span > 0; span /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (part < span)
        parts[part][thread_position_in_threadgroup.x] += parts[part + span][thread_position_in_threadgroup.x];
    }
    if (part == 0 && column < columns) y[column] = parts[0][thread_position_in_threadgroup.x];
    """,
    inputs=lambda rng: {
        "x": rng.integers(-8, 8, 96).astype(np.float32),
        "qweight": rng.integers(0, 2**32, (12, 44), np.uint32),
        "qzeros": rng.integers(0, 2**32, (3, 6), np.uint32),
        "scales": _powers(rng, (3, 44), -5, 1),
        "g_idx": rng.permutation(np.repeat(np.arange(3, dtype=np.int32), 32)),
    },
    outputs={"y": ((44,), "float32")},
    grid=(64, 8, 1),
    threadgroup=(32, 8, 1),
    constructs="barriers.tree_reduction structure.pragma_clang_loop memory.load_outside "
    "address_spaces.threadgroup_2d_array",
)
def product_with_reordered_groups(x, qweight, qzeros, scales, g_idx):
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    levels = (qweight[:, None] >> shifts[:, None] & np.uint32(15)).reshape(96, 44).astype(np.float64)
    zeros = (qzeros[:, :, None] >> shifts & np.uint32(15)).reshape(3, 48)[:, :44] + 1.0
    return (x @ ((levels - zeros[g_idx]) * scales[g_idx])).astype(np.float32)


# ---- One bit and less than two


@body(
    """
    // Binary by binary: the signs of the activations as words, by ballots, then the number of equal signs.
    threadgroup uint signs[WORDS];
    const uint tid = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint vector = threadgroup_position_in_grid.y;
    const uint width = x_shape[1];
    float magnitude = 0;
    for (uint word = simd; word < WORDS; word += simdgroups_per_threadgroup) {
      const uint j = word * 32 + lane;
      const float v = j < width ? float(x[vector * width + j]) : 0.0f;
      magnitude += fabs(v);
      const simd_vote vote = simd_ballot(v < 0);
      if (lane == 0) signs[word] = uint(simd_vote::vote_t(vote));
    }
    threadgroup float magnitudes[4];
    magnitude = simd_sum(magnitude);
    if (lane == 0) magnitudes[simd] = magnitude;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0;
    for (uint s = 0; s < simdgroups_per_threadgroup; ++s) total += magnitudes[s];

    const uint row = threadgroup_position_in_grid.x * threads_per_threadgroup.x + tid;
    if (row >= uint(w_shape[0])) return;
    uint different = 0;
    for (uint word = 0; word < WORDS; ++word) {
      uint bits = signs[word] ^ w[row * WORDS + word];
      // Bits behind the end count for nothing.
      if (word == WORDS - 1) bits &= width % 32 ? (1u << (width % 32)) - 1 : ~0u;
      different += popcount(bits);
    }
    const int product = int(width) - 2 * int(different);
    dots[vector * w_shape[0] + row] = short(product);
    y[vector * w_shape[0] + row] = float(product) * (total / float(width)) * alpha[row];
    """,
    template=[("WORDS", 5)],
    inputs=lambda rng: {
        "x": (rng.integers(1, 9, (2, 144)) * rng.choice([-1, 1], (2, 144))).astype(np.float16),
        "w": rng.integers(0, 2**32, (70, 5), np.uint32),
        "alpha": rng.uniform(0.5, 1, 70).astype(np.float32),
    },
    outputs={"dots": ((2, 70), "int16"), "y": ((2, 70), "float32")},
    grid=(128, 2, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.ballot simdgroup.vote functions.popcount attributes.simdgroups_per_threadgroup types.short",
)
def binary_product(x, w, alpha):
    signs = 1 - 2 * np.unpackbits(w.view(np.uint8), axis=1, bitorder="little")[:, :144].astype(np.int64)
    dots = np.where(x < 0, -1, 1) @ signs.T
    mean = np.abs(x.astype(np.float32)).sum(axis=1, keepdims=True) / np.float32(144)
    return dots.astype(np.int16), dots.astype(np.float32) * mean * alpha


@body(
    """
    // Five ternary weights to a byte: the byte is the number 243ths of which are counted, so that each multiplication by
    // three pushes a digit out over its top. Activations have eight bits; sums are integers up to the end.
    const uint lane = thread_index_in_simdgroup;
    const uint row = thread_position_in_grid.y;
    const int columns = x_shape[0], bytes = (columns + 4) / 5;
    int total = 0;
    for (int i = lane; i < bytes; i += 32) {
      uchar code = w[row * bytes + i];
      #pragma unroll 5
      for (int j = 0; j < 5; ++j) {
        const ushort wide = ushort(code) * 3;
        const int digit = int(wide >> 8) - 1;
        code = uchar(wide);
        const int column = 5 * i + j;
        // A load behind the end gives zero.
        total += digit * int(x[column]);
      }
    }
    total = simd_sum(total);
    if (simd_is_first()) {
      sums[row] = total;
      y[row] = static_cast<bfloat>(float(total) * x_scale * w_scale);
    }
    """,
    inputs=lambda rng: {
        "x": rng.integers(-127, 128, 333, np.int8),
        # The digits d as ceil(256 / 243 * sum d 3^(4 - j)).
        "w": -(-256 * (rng.integers(0, 3, (9, 67, 5)) @ 3 ** np.arange(4, -1, -1)) // 243).astype(np.uint8),
        "x_scale": 0.03125,
        "w_scale": 0.75,
    },
    outputs={"sums": ((9,), "int32"), "y": ((9,), "bfloat16")},
    grid=(32, 9, 1),
    threadgroup=(32, 3, 1),
    constructs="memory.load_outside simdgroup.is_first types.uchar types.ushort types.bfloat structure.pragma_unroll",
)
def ternary_product(x, w, x_scale, w_scale):
    number = w.astype(np.int64) * 243 // 256
    digits = np.stack([number // 3 ** (4 - j) % 3 for j in range(5)], axis=-1).reshape(9, 335)[:, :333] - 1
    sums = digits @ x.astype(np.int64)
    return sums.astype(np.int32), (sums * x_scale * w_scale).astype(np.float32).astype(DTYPES["bfloat16"])


@body(
    """
    // Any number of bits up to that which was stored: a plane of bits for each, 32 columns to a word. The planes of the
    // highest bits come first, so that fewer of them are a coarser weight. Packed here by ballots, then multiplied.
    threadgroup uint planes[MOST][8];
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint row = threadgroup_position_in_grid.x, words = simdgroups_per_threadgroup;
    const uint column = simd * 32 + lane;
    const uchar level = levels[row * words * 32 + column];
    #pragma unroll
    for (int bit = 0; bit < MOST; ++bit) {
      const uint plane = uint(simd_vote::vote_t(simd_ballot((level >> (MOST - 1 - bit)) & 1)));
      if (lane == 0) {
        planes[bit][simd] = plane;
        packed[(row * MOST + bit) * words + simd] = plane;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // The simdgroup with number s makes the product with the first s + 1 planes.
    const uint used = simd + 1;
    if (used > MOST) return;
    int sum = 0;
    for (uint word = 0; word < words; ++word) {
      int weight = 0;
      for (uint bit = 0; bit < used; ++bit) weight = weight * 2 + int((planes[bit][word] >> lane) & 1);
      // In the middle of what the planes leave open.
      sum += (2 * weight + 1) * int(x[word * 32 + lane]);
    }
    sum = simd_sum(sum);
    if (lane == 0) products[row * MOST + simd] = sum << (MOST - used);
    """,
    template=[("MOST", 5)],
    inputs=lambda rng: {
        "levels": rng.integers(0, 32, (6, 192), np.uint8),
        "x": rng.integers(-99, 99, 192, np.int16),
    },
    outputs={"packed": ((6, 5, 6), "uint32"), "products": ((6, 5), "int32")},
    grid=(6 * 192, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="simdgroup.ballot simdgroup.vote simdgroup.sum structure.return_before_simd "
    "address_spaces.threadgroup_2d_array",
)
def bit_planes_of_any_precision(levels, x):
    planes = np.stack([levels >> np.uint8(4 - bit) & 1 for bit in range(5)], axis=1)
    packed = np.packbits(planes, axis=-1, bitorder="little").view(np.uint32)
    coarse = np.stack([2 * (levels.astype(np.int64) >> 4 - bit) + 1 << 4 - bit for bit in range(5)], axis=1)
    return packed, (coarse @ x.astype(np.int64)).astype(np.int32)
