"""Products of matrices and vectors: by tiles, by simdgroup matrices, in parts, in batches, of low rank, and transforms that
are products with a known matrix."""

import numpy as np

from bodies import DTYPES, Dtype, body


def _integers(rng, shape, dtype="float16", most=4):
    """Such that sums of some hundred products are exact."""
    return rng.integers(-most, most + 1, shape).astype(DTYPES[dtype])


# ---- By tiles


@body(
    """
    // c = alpha a b + beta c0 in half with sums of float. A threadgroup of 8 x 8 threads makes a tile of 32 x 32, each thread
    // 4 x 4 of it out of registers; tiles of the factors have two buffers, so that one barrier for each step is enough.
    constexpr int TM = 32, TN = 32, TK = 16;
    constexpr int RM = 4, RN = 4;
    threadgroup half a_tiles[2][TK][TM];        // transposed: a thread reads four rows as a vector
    threadgroup half b_tiles[2][TK][TN];

    const int m = a_shape[0], k = a_shape[1], n = b_shape[1];
    const ushort2 t = ushort2(thread_position_in_threadgroup.xy);
    const ushort linear = t.y * 8 + t.x;
    const int row_0 = threadgroup_position_in_grid.y * TM, column_0 = threadgroup_position_in_grid.x * TN;

    float sums[RM][RN];
    #pragma unroll
    for (int i = 0; i < RM; ++i)
      #pragma unroll
      for (int j = 0; j < RN; ++j) sums[i][j] = 0;

    // 64 threads, 512 elements of each tile: eight for each thread. Rows of a are k apart, so neighbours read along k.
    #define FETCH(buffer, k_0)                                                                \\
      for (ushort i = linear; i < TM * TK; i += 64) {                                         \\
        const int row = row_0 + i / TK, column = (k_0) + i % TK;                              \\
        a_tiles[buffer][i % TK][i / TK] = row < m && column < k ? a[row * k + column] : 0.0h; \\
      }                                                                                       \\
      for (ushort i = linear; i < TK * TN; i += 64) {                                         \\
        const int row = (k_0) + i / TN, column = column_0 + i % TN;                           \\
        b_tiles[buffer][i / TN][i % TN] = row < k && column < n ? b[row * n + column] : 0.0h; \\
      }

    int current = 0;
    FETCH(0, 0)
    for (int k_0 = 0; k_0 < k; k_0 += TK) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (k_0 + TK < k) {
        FETCH(1 - current, k_0 + TK)
      }
      #pragma unroll 4
      for (int step = 0; step < TK; ++step) {
        const float4 left = float4(*(threadgroup const half4*)&a_tiles[current][step][t.y * RM]);
        const float4 right = float4(*(threadgroup const half4*)&b_tiles[current][step][t.x * RN]);
        #pragma unroll
        for (int i = 0; i < RM; ++i)
          #pragma unroll
          for (int j = 0; j < RN; ++j) sums[i][j] = fma(left[i], right[j], sums[i][j]);
      }
      current = 1 - current;
    }
    #undef FETCH

    const float alpha = factors[0], beta = factors[1];
    for (int i = 0; i < RM; ++i) {
      const int row = row_0 + t.y * RM + i;
      if (row >= m) break;
      for (int j = 0; j < RN; ++j) {
        const int column = column_0 + t.x * RN + j;
        if (column >= n) break;
        float sum = alpha * sums[i][j];
        // What would be multiplied by zero is not read: it may not be there.
        if (beta != 0) sum += beta * float(c0[row * n + column]);
        c[row * n + column] = half(sum);
      }
    }
    """,
    inputs=lambda rng: {
        "a": _integers(rng, (45, 70)),
        "b": _integers(rng, (70, 39)),
        "c0": _integers(rng, (45, 39), most=100),
        "factors": np.array([0.5, 2], np.float32),
    },
    outputs={"c": ((45, 39), "float16")},
    grid=(16, 16, 1),
    threadgroup=(8, 8, 1),
    constructs="barriers.double_buffering structure.multi_line_macro structure.pragma_unroll functions.fma types.half4 "
    "address_spaces.threadgroup_small_array layouts.few_elements literals.half_suffix",
)
def product_by_register_tiles(a, b, c0, factors):
    return (factors[0] * (a.astype(np.float64) @ b.astype(np.float64)) + factors[1] * c0).astype(np.float16)


_BLOCKED = """
// A tile of a matrix in device memory goes to threadgroup memory by all threads together, VEC elements for each at a time.
// Rows of the tile may end at the matrix's edge; then elements are read one by one and the rest is zero.
template <typename T, int ROWS, int COLUMNS, int LD, int VEC, int THREADS>
struct TileLoader {
  static constant constexpr int PER_ROW = COLUMNS / VEC;
  static_assert(COLUMNS % VEC == 0 && (ROWS * PER_ROW) % THREADS == 0, "tiles are whole numbers of steps");

  const device T* from;
  threadgroup T* to;
  const long stride;
  const ushort thread_index;

  TileLoader(const device T* from_, threadgroup T* to_, long stride_, ushort index)
      : from(from_), to(to_), stride(stride_), thread_index(index) {}

  void load_whole() const thread {
    #pragma unroll
    for (int i = thread_index; i < ROWS * PER_ROW; i += THREADS) {
      const int row = i / PER_ROW, column = i % PER_ROW * VEC;
      const device vec<T, VEC>* source = (const device vec<T, VEC>*)(from + row * stride + column);
      *(threadgroup vec<T, VEC>*)(to + row * LD + column) = *source;
    }
  }

  void load_part(int rows, int columns) const thread {
    for (int i = thread_index; i < ROWS * PER_ROW; i += THREADS) {
      const int row = i / PER_ROW, column = i % PER_ROW * VEC;
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        const bool inside = row < rows && column + j < columns;
        to[row * LD + column + j] = inside ? from[row * stride + column + j] : T(0);
      }
    }
  }

  void load(int rows, int columns) const thread {
    if (rows >= ROWS && columns >= COLUMNS)
      load_whole();
    else
      load_part(rows, columns);
  }

  void next(long by) thread { from += by; }
};

// What happens to an element on its way out.
struct Plain {
  float operator()(float v, int) const thread { return v; }
};
struct WithBias {
  const device float* bias;
  float operator()(float v, int column) const thread { return v + bias[column]; }
};
struct WithBiasAndSquaredRelu {
  const device float* bias;
  float operator()(float v, int column) const thread {
    const float positive = max(v + bias[column], 0.0f);
    return positive * positive;
  }
};

// The simdgroup's fragments: MF by NF matrices of 8 by 8.
template <typename T, int MF, int NF>
struct Fragments {
  simdgroup_matrix<float, 8, 8> sums[MF][NF];

  METAL_FUNC void clear() thread {
    for (int i = 0; i < MF; ++i)
      for (int j = 0; j < NF; ++j) sums[i][j] = simdgroup_matrix<float, 8, 8>(0);
  }

  template <bool TRANSPOSE_B, int A_LD, int B_LD>
  METAL_FUNC void step(const threadgroup T* a, const threadgroup T* b) thread {
    simdgroup_matrix<T, 8, 8> left, right[NF];
    #pragma unroll
    for (int j = 0; j < NF; ++j) {
      if constexpr (TRANSPOSE_B)
        simdgroup_load(right[j], b + 8 * j * B_LD, B_LD, ulong2(0, 0), true);
      else
        simdgroup_load(right[j], b + 8 * j, B_LD);
    }
    #pragma unroll
    for (int i = 0; i < MF; ++i) {
      simdgroup_load(left, a + 8 * i * A_LD, A_LD);
      // There and back, so that neighbours have a factor in common.
      #pragma unroll
      for (int j = 0; j < NF; ++j) {
        const int column = i % 2 ? NF - 1 - j : j;
        simdgroup_multiply_accumulate(sums[i][column], left, right[column], sums[i][column]);
      }
    }
  }

  // A thread has two neighbours of a row of each matrix.
  template <typename F>
  METAL_FUNC void store(device T* to, int ld, int rows, int columns, int column_0, ushort lane, thread const F& apply) thread {
    const int quad = lane / 4;
    const int r = (quad & 4) + (lane / 2) % 4, c = (quad & 2) * 2 + (lane % 2) * 2;
    for (int i = 0; i < MF; ++i) {
      for (int j = 0; j < NF; ++j) {
        const thread auto& elements = sums[i][j].thread_elements();
        const int row = 8 * i + r, column = 8 * j + c;
        if (row >= rows) continue;
        if (column < columns) to[row * ld + column] = T(apply(elements[0], column_0 + column));
        if (column + 1 < columns) to[row * ld + column + 1] = T(apply(elements[1], column_0 + column + 1));
      }
    }
  }
};
"""

_BLOCKED_BODY = """
    // d = apply(a op(b)) for each of a batch, in tiles of BM by BN by BK and WM by WN simdgroups. Threadgroups that are
    // neighbours in memory share tiles of b: their order goes down a stripe of SWIZZLE tiles before it goes right.
    constexpr int THREADS = WM * WN * 32;
    constexpr int PAD = 16 / sizeof(T);
    constexpr int B_ROWS = TRANSPOSE_B ? BN : BK, B_COLUMNS = TRANSPOSE_B ? BK : BN;
    constexpr int A_LD = BK + PAD, B_LD = B_COLUMNS + PAD;
    constexpr int MF = BM / (8 * WM), NF = BN / (8 * WN);
    static_assert(MF * WM * 8 == BM && NF * WN * 8 == BN, "tiles are made of whole fragments");
    threadgroup T a_tile[BM * A_LD];
    threadgroup T b_tile[B_ROWS * B_LD];

    const int m = a_shape[1], k = a_shape[2], n = TRANSPOSE_B ? b_shape[1] : b_shape[2];
    const int tiles_m = ceildiv(m, BM), tiles_n = ceildiv(n, BN);
    const int stripe = int(threadgroup_position_in_grid.x) / (SWIZZLE * tiles_m);
    const int within = int(threadgroup_position_in_grid.x) % (SWIZZLE * tiles_m);
    const int wide = min(SWIZZLE, tiles_n - stripe * SWIZZLE);
    const int tile_n = stripe * SWIZZLE + within % wide, tile_m = within / wide;
    if (tile_n >= tiles_n || tile_m >= tiles_m) return;
    const int batch = threadgroup_position_in_grid.z;
    const int row_0 = tile_m * BM, column_0 = tile_n * BN;
    const int rows = min(BM, m - row_0), columns = min(BN, n - column_0);

    // One of the batch may have b in common with all.
    const device T* a_from = a + long(batch) * m * k + long(row_0) * k;
    const device T* b_from = b + (b_shape[0] == 1 ? 0 : long(batch) * n * k)
        + (TRANSPOSE_B ? long(column_0) * k : long(column_0));
    const long b_stride = TRANSPOSE_B ? k : n;
    const ushort lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const ushort index = simd * 32 + lane;
    TileLoader<T, BM, BK, A_LD, 4, THREADS> a_loader(a_from, a_tile, k, index);
    TileLoader<T, B_ROWS, B_COLUMNS, B_LD, 4, THREADS> b_loader(b_from, b_tile, b_stride, index);

    const int top = simd / WN * 8 * MF, left = simd % WN * 8 * NF;
    Fragments<T, MF, NF> fragments;
    fragments.clear();
    for (int k_0 = 0; k_0 < k; k_0 += BK) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const int depth = min(BK, k - k_0);
      a_loader.load(rows, depth);
      if (TRANSPOSE_B)
        b_loader.load(columns, depth);
      else
        b_loader.load(depth, columns);
      a_loader.next(BK);
      b_loader.next(TRANSPOSE_B ? long(BK) : BK * b_stride);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int step = 0; step < BK; step += 8) {
        const threadgroup T* b_step = b_tile + (TRANSPOSE_B ? left * B_LD + step : step * B_LD + left);
        fragments.template step<TRANSPOSE_B, A_LD, B_LD>(a_tile + top * A_LD + step, b_step);
      }
    }

    device T* to = d + (long(batch) * m + row_0 + top) * n + column_0 + left;
    const int my_rows = rows - top, my_columns = columns - left, my_first = column_0 + left;
    if constexpr (EPILOGUE == 0)
      fragments.store(to, n, my_rows, my_columns, my_first, lane, Plain{});
    else if constexpr (EPILOGUE == 1)
      fragments.store(to, n, my_rows, my_columns, my_first, lane, WithBias{bias});
    else
      fragments.store(to, n, my_rows, my_columns, my_first, lane, WithBiasAndSquaredRelu{bias});
    """

for _name, _dtype, _transposed, _epilogue, _shape in (
    ("plain", "float16", False, 0, (2, 40, 37, 50)),
    ("transposed_with_squared_relu", "float32", True, 2, (1, 33, 64, 70)),
):

    def _blocked_inputs(rng, dtype=_dtype, transposed=_transposed, shape=_shape):
        batch, m, k, n = shape
        return {
            "a": _integers(rng, (batch, m, k), dtype),
            # A batch with one matrix b.
            "b": _integers(rng, (1, n, k) if transposed else (batch, k, n), dtype),
            "bias": rng.integers(-9, 9, n).astype(np.float32),
        }

    def _blocked_product(a, b, bias, dtype=_dtype, transposed=_transposed, epilogue=_epilogue):
        product = a.astype(np.float64) @ (b.swapaxes(1, 2) if transposed else b).astype(np.float64)
        if epilogue:
            product = np.maximum(product + bias, 0) ** 2
        return product.astype(dtype)

    body(
        _BLOCKED_BODY,
        name=f"product_by_simdgroup_matrices_{_name}",
        header=_BLOCKED,
        template=[
            ("T", Dtype(_dtype)),
            ("BM", 16),
            ("BN", 32),
            ("BK", 16),
            ("WM", 1),
            ("WN", 2),
            ("TRANSPOSE_B", _transposed),
            ("EPILOGUE", _epilogue),
            ("SWIZZLE", 2),
        ],
        inputs=_blocked_inputs,
        outputs={"d": ((_shape[0], _shape[1], _shape[3]), _dtype)},
        grid=(64 * -(-_shape[1] // 16) * -(-_shape[3] // 32), 1, _shape[0]),
        threadgroup=(64, 1, 1),
        constructs="simdgroup_matrix.multiply_accumulate simdgroup_matrix.load_and_store simdgroup_matrix.thread_elements "
        "simdgroup_matrix.mixed_types structure.template structure.struct structure.if_constexpr structure.operator "
        "address_spaces.threadgroup_pointer_to_helper address_spaces.threadgroup_array_of_T mlx.METAL_FUNC mlx.ceildiv "
        "structure.explicit_template_arguments",
    )(_blocked_product)


@body(
    """
    // Blocks of a that are masked out are not read. The mask is that of blocks of 8 by 8; a simdgroup has a row of blocks of
    // the result, eight columns of it.
    const uint block_row = thread_position_in_grid.y, block_column = thread_position_in_grid.x / 32;
    const int k = a_shape[1], n = b_shape[1];
    simdgroup_bfloat8x8 left, right;
    simdgroup_float8x8 sum(0.0f);
    int used = 0;
    for (int block = 0; block < k / 8; ++block) {
      if (!mask[block_row * (k / 8) + block]) continue;
      simdgroup_load(left, a + block_row * 8 * k + block * 8, k);
      simdgroup_load(right, b + block * 8 * n + block_column * 8, n);
      simdgroup_multiply_accumulate(sum, left, right, sum);
      ++used;
    }
    // Also rows without a block have a result.
    simdgroup_store(sum, c + block_row * 8 * n + block_column * 8, n);
    if (thread_index_in_simdgroup == 0 && block_column == 0) blocks[block_row] = used;
    """,
    inputs=lambda rng: {
        "a": _integers(rng, (32, 48), "bfloat16"),
        "b": _integers(rng, (48, 24), "bfloat16"),
        "mask": rng.random((4, 6)) < np.array([[0.5], [0], [1], [0.3]]),
    },
    outputs={"c": ((32, 24), "float32"), "blocks": ((4,), "int32")},
    grid=(96, 4, 1),
    threadgroup=(96, 2, 1),
    constructs="simdgroup_matrix.mixed_types reconvergence.continue_before_call simdgroup_matrix.load_and_store",
)
def product_with_masked_blocks(a, b, mask):
    whole = np.repeat(np.repeat(mask, 8, axis=0), 8, axis=1)
    return ((a.astype(np.float64) * whole) @ b.astype(np.float64)).astype(np.float32), mask.sum(1).astype(np.int32)


# ---- With vectors


@body(
    """
    // y = a x for rows that are strided and a vector for each of a batch, given as a view. Four rows for each simdgroup, four
    // columns for each lane at a time where rows are contiguous, else one.
    const uint lane = thread_index_in_simdgroup;
    const uint batch = thread_position_in_grid.z;
    const int rows = a_shape[1], columns = a_shape[2];
    const int first = int(thread_position_in_grid.y) * 4;
    const device T* in = x + elem_to_loc(batch * columns, x_shape, x_strides, x_ndim);
    const device T* matrix = a + batch * a_strides[0];
    const int64_t row_stride = a_strides[1], x_stride = x_strides[x_ndim - 1];
    float sums[4] = {0, 0, 0, 0};
    if (a_strides[2] == 1 && x_stride == 1) {
      int j = int(lane) * 4;
      for (; j + 4 <= columns; j += 128) {
        const vec<T, 4> v = vec<T, 4>(in[j], in[j + 1], in[j + 2], in[j + 3]);
        for (int r = 0; r < 4 && first + r < rows; ++r) {
          const device T* row = matrix + (first + r) * row_stride + j;
          sums[r] += dot(float4(row[0], row[1], row[2], row[3]), float4(v));
        }
      }
      for (; j < columns; ++j)
        for (int r = 0; r < 4 && first + r < rows; ++r)
          sums[r] += float(matrix[(first + r) * row_stride + j]) * float(in[j]);
    } else {
      for (int j = lane; j < columns; j += 32)
        for (int r = 0; r < 4 && first + r < rows; ++r)
          sums[r] += float(matrix[(first + r) * row_stride + j * a_strides[2]]) * float(in[j * x_stride]);
    }
    for (int r = 0; r < 4; ++r) sums[r] = simd_sum(sums[r]);
    if (lane < 4 && first + int(lane) < rows) y[batch * rows + first + lane] = sums[lane];
    """,
    template=[("T", Dtype("float16"))],
    inputs=lambda rng: {
        "a": _integers(rng, (3, 11, 300))[:, :, 10:149],
        "x": np.broadcast_to(_integers(rng, (1, 139)), (3, 139)),
    },
    outputs={"y": ((3, 11), "float32")},
    grid=(32, 3, 3),
    threadgroup=(32, 3, 1),
    ensure_row_contiguous=False,
    constructs="layouts.strided mlx.elem_to_loc functions.dot simdgroup.sum structure.dynamic_local_array types.vec",
)
def batched_product_of_views(a, x):
    return np.einsum("brc,bc->br", a.astype(np.float64), x.astype(np.float64)).astype(np.float32)


@body(
    """
    // Few rows and a long sum: threadgroups along z have parts of it. Each adds its part to `partial`; the last one to arrive
    // at a column tile adds them up, in the order of the parts.
    constexpr uint COLUMNS = 32;
    const uint column = threadgroup_position_in_grid.x * COLUMNS + thread_position_in_threadgroup.x;
    const uint parts = threadgroups_per_grid.z, part = threadgroup_position_in_grid.z;
    const uint k = b_shape[0], n = b_shape[1];
    const uint each = (k + parts - 1) / parts;
    threadgroup float sums[SPLIT][COLUMNS];
    threadgroup bool is_last;

    float sum = 0;
    const uint end = min(k, (part + 1) * each);
    for (uint row = part * each + thread_position_in_threadgroup.y; row < end; row += SPLIT)
      sum = fma(float(x[row]), column < n ? float(b[row * n + column]) : 0.0f, sum);
    sums[thread_position_in_threadgroup.y][thread_position_in_threadgroup.x] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_position_in_threadgroup.y == 0 && column < n) {
      for (uint s = 1; s < SPLIT; ++s) sum += sums[s][thread_position_in_threadgroup.x];
      atomic_store_explicit((device atomic_float*)partial + part * n + column, sum, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_device);
    if (thread_index_in_threadgroup == 0) {
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      device atomic_uint* counter = (device atomic_uint*)arrived + threadgroup_position_in_grid.x;
      is_last = atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed) == parts - 1;
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!is_last || thread_position_in_threadgroup.y != 0 || column >= n) return;
    float total = 0;
    for (uint p = 0; p < parts; ++p)
      total += atomic_load_explicit((device atomic_float*)partial + p * n + column, memory_order_relaxed);
    y[column] = total;
    """,
    template=[("SPLIT", 4)],
    inputs=lambda rng: {"x": _integers(rng, 410), "b": _integers(rng, (410, 50))},
    outputs={"y": ((50,), "float32"), "partial": ((6, 50), "float32"), "arrived": ((2,), "uint32")},
    grid=(64, 4, 6),
    threadgroup=(32, 4, 1),
    init_value=0,
    constructs="synchronisation.last_arrival synchronisation.fetch_add synchronisation.atomic_thread_fence "
    "synchronisation.load synchronisation.store barriers.last_arrival address_spaces.threadgroup_scalar",
)
def product_in_parts(x, b):
    x, b = x.astype(np.float64), b.astype(np.float64)
    parts = [x[i : i + 69] @ b[i : i + 69] for i in range(0, 410, 69)]
    return (x @ b).astype(np.float32), np.array(parts, np.float32), np.full(2, 6, np.uint32)


@body(
    """
    // Adapters of low rank, another one for each token: y += scale[i] * (x A_i) B_i. What is between the two factors stays in
    // threadgroup memory. Adapter -1 is none; ranks differ.
    threadgroup float inner[MAX_RANK];
    const uint token = threadgroup_position_in_grid.y;
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint tid = thread_position_in_threadgroup.x;
    const int adapter = adapters[token];
    const uint k = x_shape[1], n = base_shape[1];
    if (adapter < 0) {
      for (uint j = tid; j < n; j += threads_per_threadgroup.x) y[token * n + j] = base[token * n + j];
      return;
    }
    const uint rank = ranks[adapter];
    device const half* down_rows = down + adapter * MAX_RANK * k;   // [rank, k]
    device const half* up_rows = up + adapter * n * MAX_RANK;       // [n, rank]
    for (uint r = simd; r < rank; r += simdgroups_per_threadgroup) {
      float sum = 0;
      for (uint j = lane; j < k; j += 32) sum += float(x[token * k + j]) * float(down_rows[r * k + j]);
      sum = simd_sum(sum);
      if (lane == 0) inner[r] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float scale = scales[adapter];
    for (uint j = tid; j < n; j += threads_per_threadgroup.x) {
      float sum = 0;
      for (uint r = 0; r < rank; ++r) sum += inner[r] * float(up_rows[j * MAX_RANK + r]);
      y[token * n + j] = base[token * n + j] + half(scale * sum);
    }
    """,
    template=[("MAX_RANK", 8)],
    inputs=lambda rng: {
        "x": _integers(rng, (6, 40), most=2),
        "base": _integers(rng, (6, 50), most=50),
        "down": _integers(rng, (3, 8, 40), most=1),
        "up": _integers(rng, (3, 50, 8), most=1),
        "adapters": np.array([2, -1, 0, 0, 1, 2], np.int32),
        "ranks": np.array([8, 3, 5], np.int32),
        "scales": np.array([0.5, 2, 0.25], np.float32),
    },
    outputs={"y": ((6, 50), "float16")},
    grid=(64, 6, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.after_early_return simdgroup.sum layouts.few_elements structure.template_arguments",
)
def adapters_of_low_rank(x, base, down, up, adapters, ranks, scales):
    y = base.astype(np.float64)
    for token, adapter in enumerate(adapters):
        if adapter >= 0:
            rank = ranks[adapter]
            inner = down[adapter, :rank].astype(np.float64) @ x[token].astype(np.float64)
            y[token] += scales[adapter] * (up[adapter, :, :rank].astype(np.float64) @ inner)
    return y.astype(np.float16)


# ---- Transforms


@body(
    """
    // A transform of Walsh and Hadamard of N = 2^LOG elements: bits of the index within a thread's own, within the simdgroup by
    // shuffles, the rest through threadgroup memory. Signs (a random diagonal) before, a scale behind it.
    constexpr ushort OWN = 8, N = 1 << LOG, THREADS = N / OWN;
    static_assert(THREADS >= 32 && THREADS <= 1024, "whole simdgroups");
    threadgroup float shared[N];
    const ushort tid = thread_position_in_threadgroup.x, lane = thread_index_in_simdgroup;
    const uint row = threadgroup_position_in_grid.y;
    float v[OWN];
    for (ushort i = 0; i < OWN; ++i) {
      const ushort j = tid * OWN + i;
      const bool minus = (signs[j / 32] >> (j % 32)) & 1;
      const float in = x[row * N + j];
      v[i] = minus ? -in : in;
    }

    // Bits 0 to 2.
    BUTTERFLIES(1)
    BUTTERFLIES(2)
    BUTTERFLIES(4)

    // Bits 3 to 7: the lane's number.
    for (ushort mask = 1; mask < 32; mask <<= 1) {
      const bool upper = lane & mask;
      for (ushort i = 0; i < OWN; ++i) {
        const float other = simd_shuffle_xor(v[i], mask);
        v[i] = upper ? other - v[i] : v[i] + other;
      }
    }

    // The rest: the simdgroup's number. Consecutive threads have consecutive elements there.
    if (LOG > 8) {
      for (ushort i = 0; i < OWN; ++i) shared[tid * OWN + i] = v[i];
      for (ushort mask = 256; mask < N; mask <<= 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort pair = tid; pair < N / 2; pair += THREADS) {
          const ushort low = (pair & (mask - 1)) | ((pair & ~(mask - 1)) << 1);
          const float a = shared[low], b = shared[low + mask];
          shared[low] = a + b;
          shared[low + mask] = a - b;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (ushort i = 0; i < OWN; ++i) v[i] = shared[tid * OWN + i];
    }
    for (ushort i = 0; i < OWN; ++i) y[row * N + tid * OWN + i] = v[i] * scale;
    """,
    header="""
#define BUTTERFLIES(span)                          \\
  _Pragma("clang loop unroll(full)")               \\
  for (ushort i = 0; i < 8; i += 2 * (span)) {     \\
    for (ushort j = i; j < i + (span); ++j) {      \\
      const float a = v[j], b = v[j + (span)];     \\
      v[j] = a + b;                                \\
      v[j + (span)] = a - b;                       \\
    }                                              \\
  }
""",
    template=[("LOG", 10)],
    inputs=lambda rng: {
        "x": rng.integers(-50, 50, (2, 1024)).astype(np.float32),
        "signs": rng.integers(0, 2**32, 32, np.uint32),
        "scale": 0.03125,
    },
    outputs={"y": ((2, 1024), "float32")},
    grid=(128, 2, 1),
    threadgroup=(128, 1, 1),
    constructs="structure.multi_line_macro_in_header structure._Pragma simdgroup.shuffle_xor barriers.in_loop "
    "barriers.private_arrays_across structure.constexpr",
)
def walsh_transform_with_signs(x, signs, scale):
    minus = np.unpackbits(signs.view(np.uint8), bitorder="little")
    h = np.array([[1]])
    for _ in range(10):
        h = np.block([[h, h], [h, -h]])
    return (((x * np.where(minus, -1, 1)) @ h.T) * scale).astype(np.float32)


# The first row of Paley's construction of order 12: quadratic residues of 11.
_RESIDUES = {j * j % 11 for j in range(1, 11)}
_HADAMARD_12 = np.array(
    [[1] * 12] + [[-1] + [1 if i == j or (j - i) % 11 in _RESIDUES else -1 for j in range(11)] for i in range(11)]
)
assert np.array_equal(_HADAMARD_12 @ _HADAMARD_12.T, 12 * np.eye(12))
_SUMS_OF_12 = "\n".join(
    f"  out[{i}] = " + "".join(f" {'-+'[int(_HADAMARD_12[i, j] > 0)]} in[{j}]" for j in range(12)).lstrip(" +") + ";"
    for i in range(12)
)


@body(
    """
    // 12 * 2^k elements: sums of twelve as they are written out, 2^k apart, then butterflies in threadgroup memory.
    constexpr ushort POWER = 1 << K;
    threadgroup float row[12 * POWER];
    const ushort t = thread_position_in_threadgroup.x, count = threads_per_threadgroup.x;
    const uint first = threadgroup_position_in_grid.x * 12 * POWER;
    for (ushort j = t; j < POWER; j += count) {
      float in[12], out[12];
      for (ushort i = 0; i < 12; ++i) in[i] = x[first + i * POWER + j];
      sums_of_twelve(in, out);
      for (ushort i = 0; i < 12; ++i) row[i * POWER + j] = out[i];
    }
    for (ushort span = 1; span < POWER; span <<= 1) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (ushort pair = t; pair < 6 * POWER; pair += count) {
        const ushort at = (pair / span) * 2 * span + pair % span;
        const float a = row[at], b = row[at + span];
        row[at] = a + b;
        row[at + span] = a - b;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort j = t; j < 12 * POWER; j += count) y[first + j] = T(row[j] * scale);
    """,
    header=f"""
// A matrix of Hadamard of order twelve.
inline void sums_of_twelve(thread const float* in, thread float* out) {{
{_SUMS_OF_12}
}}
""",
    template=[("T", Dtype("float16")), ("K", 5)],
    inputs=lambda rng: {"x": rng.integers(-5, 6, (3, 384)).astype(np.float16), "scale": 0.5},
    outputs={"y": ((3, 384), "float16")},
    grid=(3 * 40, 1, 1),
    threadgroup=(40, 1, 1),
    constructs="structure.helper_function address_spaces.thread barriers.in_loop address_spaces.threadgroup_array "
    "simdgroup.partial",
)
def hadamard_transform_of_twelve_times_a_power(x, scale):
    h = _HADAMARD_12
    for _ in range(5):
        h = np.kron(h, [[1, 1], [1, -1]])
    return (x.astype(np.float64) @ h.T * scale).astype(np.float16)


@body(
    """
    // Segments of different length of the sum: c_s = a[:, s] b[s, :] for each segment s, as gradients of experts' weights.
    threadgroup float a_part[8][17], b_part[16][9];
    const uint2 t = thread_position_in_threadgroup.xy;
    const uint segment = threadgroup_position_in_grid.z;
    const uint row = threadgroup_position_in_grid.y * 8 + t.y, column = threadgroup_position_in_grid.x * 8 + t.x;
    const uint m = a_shape[0], k = a_shape[1], n = b_shape[1];
    const uint begin = bounds[2 * segment], end = bounds[2 * segment + 1];
    float sum = 0;
    for (uint first = begin; first < end; first += 16) {
      for (uint i = 0; i < 16; i += 8) {
        const uint j = first + i + t.x, l = first + i + t.y;
        a_part[t.y][i + t.x] = row < m && j < end ? float(a[row * k + j]) : 0.0f;
        b_part[i + t.y][t.x] = column < n && l < end ? float(b[l * n + column]) : 0.0f;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint j = 0; j < 16; ++j) sum += a_part[t.y][j] * b_part[j][t.x];
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row < m && column < n) c[(segment * m + row) * n + column] = sum;
    """,
    inputs=lambda rng: {
        "a": _integers(rng, (13, 60), "bfloat16"),
        "b": _integers(rng, (60, 10), "bfloat16"),
        "bounds": np.array([[0, 20], [20, 20], [20, 53], [50, 60], [5, 6]], np.int32),
    },
    outputs={"c": ((5, 13, 10), "float32")},
    grid=(16, 16, 5),
    threadgroup=(8, 8, 1),
    constructs="barriers.run_time_trip_count address_spaces.threadgroup_2d_array types.bfloat16_t",
)
def product_of_segments(a, b, bounds):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.array([a[:, i:j] @ b[i:j] for i, j in bounds]).astype(np.float32)


@body(
    """
    // All products of three small matrices in one thread each, as in chains of rotations: compile-time sizes by templates.
    const uint i = thread_position_in_grid.x;
    if (i >= COUNT) return;
    Small<2, 3> a;
    Small<3, 4> b;
    Small<4, 2> c;
    a.load(as + 6 * i);
    b.load(bs + 12 * i);
    c.load(cs + 8 * i);
    // The cheaper order first; both give the same.
    const Small<2, 2> left = (a * b) * c;
    const Small<2, 2> right = a * (b * c);
    same[i] = left == right;
    left.store(out + 4 * i);
    traces[i] = left.trace() + right.transposed().trace();
    """,
    header="""
template <int R, int C>
struct Small {
  int v[R][C];

  void load(const device int* from) {
    for (int i = 0; i < R * C; ++i) v[i / C][i % C] = from[i];
  }
  void store(device int* to) const {
    for (int i = 0; i < R * C; ++i) to[i] = v[i / C][i % C];
  }
  template <int D>
  Small<R, D> operator*(thread const Small<C, D>& other) const thread {
    Small<R, D> product;
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < D; ++j) {
        product.v[i][j] = 0;
        for (int l = 0; l < C; ++l) product.v[i][j] += v[i][l] * other.v[l][j];
      }
    return product;
  }
  bool operator==(thread const Small& other) const thread {
    bool equal = true;
    for (int i = 0; i < R * C; ++i) equal = equal && v[i / C][i % C] == other.v[i / C][i % C];
    return equal;
  }
  Small<C, R> transposed() const thread {
    Small<C, R> t;
    for (int i = 0; i < R * C; ++i) t.v[i % C][i / C] = v[i / C][i % C];
    return t;
  }
  int trace() const thread {
    int sum = 0;
    for (int i = 0; i < (R < C ? R : C); ++i) sum += v[i][i];
    return sum;
  }
};
""",
    template=[("COUNT", 45)],
    inputs=lambda rng: {
        name: rng.integers(-9, 9, (45, *shape), np.int32)
        for name, shape in (("as", (2, 3)), ("bs", (3, 4)), ("cs", (4, 2)))
    },
    outputs={"same": ((45,), "bool"), "out": ((45, 2, 2), "int32"), "traces": ((45,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.template structure.operator structure.struct structure.early_return types.int",
)
def chains_of_small_products(**matrices):
    out = matrices["as"] @ matrices["bs"] @ matrices["cs"]
    return np.ones(45, bool), out, 2 * np.trace(out, axis1=1, axis2=2).astype(np.int32)
