"""Convolutions: as a product that is never written out, by Winograd's method, of each channel by itself, transposed, and
the gradient of their weights."""

import numpy as np

from bodies import DTYPES, Dtype, body


def _convolution(x, w, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    """x: [batch, height, width, channels]; w: [out, kernel height, kernel width, channels / groups]."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    kh, kw = w.shape[1:3]
    height = (x.shape[1] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    width = (x.shape[2] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((x.shape[0], height, width, w.shape[0]))
    share = w.shape[0] // groups
    for g in range(groups):
        own, filters = slice(g * share, (g + 1) * share), slice(g * w.shape[3], (g + 1) * w.shape[3])
        for i in range(kh):
            for j in range(kw):
                top, left = i * dilation[0], j * dilation[1]
                rows = slice(top, top + (height - 1) * stride[0] + 1, stride[0])
                columns = slice(left, left + (width - 1) * stride[1] + 1, stride[1])
                out[..., own] += x[:, rows, columns, filters] @ w[own, i, j].T
    return out


@body(
    """
    // Rows of the product are places of the output, columns are filters, and the sum goes over the kernel's places and the
    // channels. A tile of what would be the matrix of patches is put into threadgroup memory by each thread finding where
    // its elements come from; nothing of it is written to memory.
    constexpr int BM = 32, BN = 16, BK = 16, THREADS = 128;
    threadgroup half patches[BM][BK + 8];
    threadgroup half filters[BN][BK + 8];
    threadgroup float result[BM][BN];
    const Geometry g = {x_shape[1], x_shape[2], x_shape[3], w_shape[0], w_shape[1], w_shape[2], sizes[0], sizes[1],
                        STRIDE, PADDING, DILATION, GROUPS};
    const int places = x_shape[0] * g.out_height * g.out_width;
    const int depth = g.kernel_height * g.kernel_width * g.channels_of_group();
    const ushort tid = thread_index_in_threadgroup, simd = simdgroup_index_in_threadgroup;
    const int row_0 = int(threadgroup_position_in_grid.y) * BM;
    const int group = threadgroup_position_in_grid.z;
    const int column_0 = int(threadgroup_position_in_grid.x) * BN;         // within the group's filters

    // A thread has four neighbours in depth of one row, in each step.
    const ushort own_row = tid / 4, own_depth = tid % 4 * 4;
    const Place place = g.place_of(row_0 + own_row);
    const bool row_inside = row_0 + own_row < places;

    simdgroup_float8x8 sums[2] = {simdgroup_float8x8(0.0f), simdgroup_float8x8(0.0f)};
    for (int k_0 = 0; k_0 < depth; k_0 += BK) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      #pragma unroll
      for (ushort j = 0; j < 4; ++j) {
        const int k = k_0 + own_depth + j;
        half value = 0.0h;
        if (row_inside && k < depth) {
          const int from = g.source(place, k, group);
          if (from >= 0) value = x[from];
        }
        patches[own_row][own_depth + j] = value;
      }
      // Filters are rows of w: the kernel's places and channels in the order of the sum. Half of the threads.
      if (tid < BN * BK / 4) {
        const ushort r = tid / (BK / 4), c = tid % (BK / 4) * 4;
        const int filter = column_0 + r;
        #pragma unroll
        for (ushort j = 0; j < 4; ++j) {
          const int k = k_0 + c + j;
          const bool inside = filter < g.filters_of_group() && k < depth;
          filters[r][c + j] = inside ? w[(group * g.filters_of_group() + filter) * depth + k] : 0.0h;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // Four simdgroups, eight rows each.
      simdgroup_half8x8 a, b;
      for (ushort step = 0; step < BK; step += 8) {
        simdgroup_load(a, &patches[simd * 8][step], BK + 8);
        for (ushort j = 0; j < 2; ++j) {
          simdgroup_load(b, &filters[8 * j][step], BK + 8, ulong2(0, 0), true);
          simdgroup_multiply_accumulate(sums[j], a, b, sums[j]);
        }
      }
    }
    for (ushort j = 0; j < 2; ++j) simdgroup_store(sums[j], &result[simd * 8][8 * j], BN);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort i = tid; i < BM * BN; i += THREADS) {
      const int row = row_0 + i / BN, filter = column_0 + i % BN;
      if (row >= places || filter >= g.filters_of_group()) continue;
      const int column = group * g.filters_of_group() + filter;
      const float v = result[i / BN][i % BN] + float(bias[column]);
      out[row * g.filters + column] = T(RELU ? max(v, 0.0f) : v);
    }
    """,
    header="""
struct Place {
  int batch, y, x;      // of the upper left of what the kernel covers; may be outside
};

struct Geometry {
  int height, width, channels;
  int filters, kernel_height, kernel_width;
  int out_height, out_width;
  int stride, padding, dilation, groups;

  int channels_of_group() const thread { return channels / groups; }
  int filters_of_group() const thread { return filters / groups; }

  Place place_of(int row) const thread {
    Place p;
    p.batch = row / (out_height * out_width);
    p.y = row / out_width % out_height * stride - padding;
    p.x = row % out_width * stride - padding;
    return p;
  }

  // Where element k of a patch lies in the input, or -1 in its frame of zeros.
  int source(thread const Place& p, int k, int group) const thread {
    const int share = channels_of_group();
    const int channel = k % share, in_kernel = k / share;
    const int y = p.y + in_kernel / kernel_width * dilation;
    const int x = p.x + in_kernel % kernel_width * dilation;
    if (y < 0 || y >= height || x < 0 || x >= width) return -1;
    return ((p.batch * height + y) * width + x) * channels + group * share + channel;
  }
};
""",
    template=[("T", Dtype("float16")), ("STRIDE", 2), ("PADDING", 2), ("DILATION", 2), ("GROUPS", 2), ("RELU", True)],
    inputs=lambda rng: {
        "x": rng.integers(-3, 4, (2, 11, 13, 6)).astype(np.float16),
        "w": rng.integers(-3, 4, (38, 3, 2, 3)).astype(np.float16),
        "bias": rng.integers(-9, 9, 38).astype(np.float16),
        "sizes": np.array([6, 8], np.int32),
    },
    outputs={"out": ((2, 6, 8, 38), "float16")},
    grid=(2 * 32, 3 * 4, 2),
    threadgroup=(32, 4, 1),
    constructs="simdgroup_matrix.multiply_accumulate simdgroup_matrix.load_and_store structure.struct "
    "address_spaces.threadgroup_small_array layouts.few_elements barriers.in_loop literals.half_suffix",
)
def convolution_as_implicit_product(x, w, bias, sizes):
    out = _convolution(x, w, (2, 2), (2, 2), (2, 2), groups=2)
    return np.maximum(out + bias.astype(np.float64), 0).astype(np.float16)


@body(
    """
    // F(2 x 2, 3 x 3): four outputs of a patch of 4 x 4 by sixteen products instead of thirty-six. Per threadgroup: TILES
    // patches beside one another, FILTERS filters; the channels' sum is made in the transformed domain.
    threadgroup float patches[16][TILES][CHANNELS];      // transformed
    threadgroup float kernels[16][CHANNELS][FILTERS];
    threadgroup float products[16][TILES][FILTERS];

    const uint tid = thread_index_in_threadgroup;
    const uint threads = threads_per_threadgroup.x;
    const int height = x_shape[1], width = x_shape[2], channels = x_shape[3], filters = w_shape[0];
    const int out_height = height, out_width = width;    // a frame of one zero
    const int tile_x0 = int(threadgroup_position_in_grid.x) * TILES, tile_y = threadgroup_position_in_grid.y;
    const int filter_blocks = ceildiv(filters, FILTERS);
    const int batch = int(threadgroup_position_in_grid.z) / filter_blocks;
    const int filter_0 = int(threadgroup_position_in_grid.z) % filter_blocks * FILTERS;

    for (uint i = tid; i < 16 * TILES * FILTERS; i += threads)
      products[i / (TILES * FILTERS)][i / FILTERS % TILES][i % FILTERS] = 0;

    for (int c_0 = 0; c_0 < channels; c_0 += CHANNELS) {
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- Patches: B^T d B
      for (uint i = tid; i < TILES * CHANNELS; i += threads) {
        const int tile = i / CHANNELS, c = i % CHANNELS;
        float d[4][4];
        #pragma unroll
        for (int y = 0; y < 4; ++y) {
          #pragma unroll
          for (int x_ = 0; x_ < 4; ++x_) {
            const int row = 2 * tile_y - 1 + y, column = 2 * (tile_x0 + tile) - 1 + x_;
            const bool inside = row >= 0 && row < height && column >= 0 && column < width && c_0 + c < channels;
            d[y][x_] = inside ? x[((batch * height + row) * width + column) * channels + c_0 + c] : 0.0f;
          }
        }
        float half_way[4][4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) INPUT_TRANSFORM(half_way[0][j], half_way[1][j], half_way[2][j], half_way[3][j],
                                                    d[0][j], d[1][j], d[2][j], d[3][j])
        #pragma unroll
        for (int r = 0; r < 4; ++r) INPUT_TRANSFORM(patches[4 * r][tile][c], patches[4 * r + 1][tile][c],
                                                    patches[4 * r + 2][tile][c], patches[4 * r + 3][tile][c],
                                                    half_way[r][0], half_way[r][1], half_way[r][2], half_way[r][3])
      }

      // ---- Kernels: G g G^T. Doubled in both directions, which the outputs make good: no halves here.
      for (uint i = tid; i < CHANNELS * FILTERS; i += threads) {
        const int c = i / FILTERS, f = i % FILTERS;
        const bool inside = c_0 + c < channels && filter_0 + f < filters;
        float g[3][3];
        for (int y = 0; y < 3; ++y)
          for (int x_ = 0; x_ < 3; ++x_)
            g[y][x_] = inside ? w[(((filter_0 + f) * 3 + y) * 3 + x_) * channels + c_0 + c] : 0.0f;
        float half_way[4][3];
        #pragma unroll
        for (int j = 0; j < 3; ++j) KERNEL_TRANSFORM(half_way[0][j], half_way[1][j], half_way[2][j], half_way[3][j],
                                                     g[0][j], g[1][j], g[2][j])
        #pragma unroll
        for (int r = 0; r < 4; ++r) KERNEL_TRANSFORM(kernels[4 * r][c][f], kernels[4 * r + 1][c][f],
                                                     kernels[4 * r + 2][c][f], kernels[4 * r + 3][c][f],
                                                     half_way[r][0], half_way[r][1], half_way[r][2])
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- Sixteen small products
      for (uint i = tid; i < 16 * TILES * FILTERS; i += threads) {
        const uint f = i % FILTERS, tile = i / FILTERS % TILES, at = i / (TILES * FILTERS);
        float sum = products[at][tile][f];
        for (uint c = 0; c < CHANNELS; ++c) sum = fma(patches[at][tile][c], kernels[at][c][f], sum);
        products[at][tile][f] = sum;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // ---- Outputs: A^T m A
    for (uint i = tid; i < TILES * FILTERS; i += threads) {
      const int f = i % FILTERS, tile = i / FILTERS;
      if (filter_0 + f >= filters) continue;
      float half_way[2][4], o[2][2];
      #pragma unroll
      for (int j = 0; j < 4; ++j) OUTPUT_TRANSFORM(half_way[0][j], half_way[1][j], products[j][tile][f],
                                                   products[4 + j][tile][f], products[8 + j][tile][f],
                                                   products[12 + j][tile][f])
      #pragma unroll
      for (int r = 0; r < 2; ++r) OUTPUT_TRANSFORM(o[r][0], o[r][1], half_way[r][0], half_way[r][1], half_way[r][2],
                                                   half_way[r][3])
      for (int r = 0; r < 2; ++r) {
        for (int c = 0; c < 2; ++c) {
          const int row = 2 * tile_y + r, column = 2 * (tile_x0 + tile) + c;
          if (row < out_height && column < out_width)
            out[((batch * out_height + row) * out_width + column) * filters + filter_0 + f] = o[r][c] * 0.25f;
        }
      }
    }
    """,
    header="""
#define INPUT_TRANSFORM(to0, to1, to2, to3, d0, d1, d2, d3) \\
  {                                                         \\
    to0 = (d0) - (d2);                                      \\
    to1 = (d1) + (d2);                                      \\
    to2 = (d2) - (d1);                                      \\
    to3 = (d1) - (d3);                                      \\
  }

// Twice the usual one.
#define KERNEL_TRANSFORM(to0, to1, to2, to3, g0, g1, g2)    \\
  {                                                         \\
    to0 = 2 * (g0);                                         \\
    to1 = (g0) + (g1) + (g2);                               \\
    to2 = (g0) - (g1) + (g2);                               \\
    to3 = 2 * (g2);                                         \\
  }

#define OUTPUT_TRANSFORM(to0, to1, m0, m1, m2, m3)          \\
  {                                                         \\
    to0 = (m0) + (m1) + (m2);                               \\
    to1 = (m1) - (m2) - (m3);                               \\
  }
""",
    template=[("TILES", 4), ("CHANNELS", 8), ("FILTERS", 8)],
    inputs=lambda rng: {
        "x": rng.integers(-9, 10, (2, 7, 13, 11)).astype(np.float32),
        "w": rng.integers(-9, 10, (10, 3, 3, 11)).astype(np.float32),
    },
    outputs={"out": ((2, 7, 13, 10), "float32")},
    grid=(2 * 64, 4, 4),
    threadgroup=(64, 1, 1),
    constructs="structure.multi_line_macro_in_header structure.pragma_unroll functions.fma mlx.ceildiv barriers.in_loop "
    "structure.dynamic_local_array",
)
def convolution_by_winograd(x, w):
    return _convolution(x, w, padding=(1, 1)).astype(np.float32) + np.float32(0)


@body(
    """
    // Each channel by itself. Tiles of 8 x 8 places and four channels as a vector, with their halo; outputs of a column are
    // made while the rows that they share are in registers.
    constexpr int TILE = 8, SIDE = (TILE - 1) * STRIDE + K;
    threadgroup vec<T, 4> tile[SIDE][SIDE];
    const int2 t = int2(thread_position_in_threadgroup.xy);
    const int channel_4 = threadgroup_position_in_grid.z % CHANNELS_4, batch = threadgroup_position_in_grid.z / CHANNELS_4;
    const int2 size = int2(x_shape[2], x_shape[1]);
    const int2 first = int2(threadgroup_position_in_grid.xy) * (TILE * STRIDE) - K / 2;
    device const vec<T, 4>* in = (device const vec<T, 4>*)x;
    for (int y = t.y; y < SIDE; y += TILE) {
      for (int x_ = t.x; x_ < SIDE; x_ += TILE) {
        const int2 at = first + int2(x_, y);
        const bool inside = all(at >= 0) && all(at < size);
        tile[y][x_] = inside ? in[((batch * size.y + at.y) * size.x + at.x) * CHANNELS_4 + channel_4] : vec<T, 4>(0);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int2 place = int2(thread_position_in_grid.xy), out_size = (size + STRIDE - 1) / STRIDE;
    if (any(place >= out_size)) return;
    float4 sum = 0;
    #pragma unroll
    for (int y = 0; y < K; ++y) {
      #pragma unroll
      for (int x_ = 0; x_ < K; ++x_) {
        const float4 weight = float4(((device const vec<T, 4>*)w)[(y * K + x_) * CHANNELS_4 + channel_4]);
        sum = fma(float4(tile[t.y * STRIDE + y][t.x * STRIDE + x_]), weight, sum);
      }
    }
    device vec<T, 4>* to = (device vec<T, 4>*)out;
    to[((batch * out_size.y + place.y) * out_size.x + place.x) * CHANNELS_4 + channel_4] = vec<T, 4>(sum);
    """,
    template=[("T", Dtype("bfloat16")), ("K", 3), ("STRIDE", 2), ("CHANNELS_4", 2)],
    inputs=lambda rng: {
        "x": rng.integers(-3, 4, (2, 19, 25, 8)).astype(DTYPES["bfloat16"]),
        "w": rng.integers(-3, 4, (3, 3, 8)).astype(DTYPES["bfloat16"]),
    },
    outputs={"out": ((2, 10, 13, 8), "bfloat16")},
    grid=(16, 16, 4),
    threadgroup=(8, 8, 1),
    constructs="address_spaces.threadgroup_vectors functions.all functions.any types.vec functions.fma types.int2 "
    "types.vector_comparison structure.early_return",
)
def convolution_of_each_channel(x, w):
    filters = w.transpose(2, 0, 1)[..., None]
    return _convolution(x, filters, (2, 2), (1, 1), groups=8).astype(DTYPES["bfloat16"])


@body(
    """
    // One dimension, causal, a filter for each channel, with gaps. Time is spread over the lanes: what lies before a lane's own
    // comes by shuffles from the lanes before it, and from the simdgroup's last block.
    const uint lane = thread_index_in_simdgroup, channel = thread_position_in_grid.y, batch = thread_position_in_grid.z;
    const int length = x_shape[2], channels = x_shape[1];
    device const float* in = x + (batch * channels + channel) * length;
    device float* out = y + (batch * channels + channel) * length;
    float previous = 0;
    for (int first = 0; first < length; first += 32) {
      const int t = first + int(lane);
      const float own = t < length ? in[t] : 0;
      float sum = 0;
      #pragma unroll
      for (ushort j = 0; j < TAPS; ++j) {
        const float past = simd_shuffle_and_fill_up(own, previous, ushort(j * GAP));
        sum += past * w[channel * TAPS + (TAPS - 1 - j)];
      }
      previous = own;
      if (t < length) out[t] = sum + bias[channel];
    }
    """,
    template=[("TAPS", 5), ("GAP", 4)],
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (2, 6, 75)).astype(np.float32),
        "w": rng.integers(-9, 9, (6, 5)).astype(np.float32),
        "bias": rng.integers(1000, 1010, 6).astype(np.float32),
    },
    outputs={"y": ((2, 6, 75), "float32")},
    grid=(32, 6, 2),
    threadgroup=(32, 6, 1),
    constructs="simdgroup.shuffle_and_fill_up structure.pragma_unroll layouts.few_elements",
)
def dilated_causal_convolution(x, w, bias):
    padded = np.pad(x, ((0, 0), (0, 0), (16, 0)))
    y = sum(padded[:, :, 4 * j : 4 * j + 75] * w[:, j, None] for j in range(5))
    return y + bias[:, None]


@body(
    """
    // Transposed, in two dimensions: what an output gets. Of the kernel only the places count whose distance is a multiple of
    // the stride; they are the same for all outputs of one remainder.
    const int3 at = int3(thread_position_in_grid);
    const int out_width = out_sizes[1], out_height = out_sizes[0];
    if (at.x >= out_width || at.y >= out_height) return;
    const int filters = w_shape[0], channels = w_shape[3], kh = w_shape[1], kw = w_shape[2];
    const int filter = at.z % filters, batch = at.z / filters;
    const int2 from = at.xy + padding;
    int total = 0;
    // The first place of the kernel with the output's remainder, then every stride-th.
    for (int i = from.y % STRIDE_Y; i < kh; i += STRIDE_Y) {
      const int row = (from.y - i) / STRIDE_Y;
      if (row < 0) break;
      if (row >= x_shape[1]) continue;
      for (int j = from.x % STRIDE_X; j < kw; j += STRIDE_X) {
        const int column = (from.x - j) / STRIDE_X;
        if (column < 0) break;
        if (column >= x_shape[2]) continue;
        const device int8_t* in = x + ((batch * x_shape[1] + row) * x_shape[2] + column) * channels;
        const device int8_t* weights = w + ((filter * kh + i) * kw + j) * channels;
        for (int c = 0; c < channels; ++c) total += int(in[c]) * int(weights[c]);
      }
    }
    out[((batch * out_height + at.y) * out_width + at.x) * filters + filter] = total;
    """,
    template=[("STRIDE_Y", 2), ("STRIDE_X", 3)],
    inputs=lambda rng: {
        "x": rng.integers(-128, 128, (2, 4, 5, 3), np.int8),
        "w": rng.integers(-128, 128, (4, 3, 4, 3), np.int8),
        "out_sizes": np.array([8, 14], np.int32),
        "padding": 1,
    },
    outputs={"out": ((2, 8, 14, 4), "int32")},
    grid=(16, 8, 8),
    threadgroup=(16, 2, 2),
    constructs="types.int8_t types.int3 types.swizzle_read structure.early_return types.mixed_operands",
)
def transposed_convolution(x, w, out_sizes, padding):
    """What an input gives, added up."""
    whole = np.zeros((2, 12, 19, 4), np.int32)
    for row in range(4):
        for column in range(5):
            given = np.einsum("bc,fijc->bijf", x[:, row, column].astype(np.int32), w.astype(np.int32))
            whole[:, 2 * row : 2 * row + 3, 3 * column : 3 * column + 4] += given
    return whole[:, padding : padding + 8, padding : padding + 14]


@body(
    """
    // The gradient by the weights of a convolution of one dimension: a simdgroup for each filter, channel and place of the
    // kernel, lanes along time and batch; sums of 64 bits, of what is quantised to 16.
    const uint lane = thread_index_in_simdgroup;
    const int taps = dims[2], channels = x_shape[2], filters = dy_shape[2];
    const uint which = threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup;
    const int channel = which % channels, tap = which / channels % taps, filter = which / (channels * taps);
    if (filter >= filters) return;
    const int length = x_shape[1], out_length = dy_shape[1];
    long sum = 0;
    for (int i = lane; i < x_shape[0] * out_length; i += 32) {
      const int batch = i / out_length, t = i % out_length;
      const int from = t * dims[0] + tap - dims[1];
      if (from < 0 || from >= length) continue;
      sum += long(dy[i * filters + filter]) * x[(batch * length + from) * channels + channel];
    }
    // There are no sums of longs over a simdgroup: by halves.
    for (ushort mask = 16; mask > 0; mask >>= 1) sum += simd_shuffle_xor(sum, mask);
    if (lane == 0) {
      dw[(filter * taps + tap) * channels + channel] = sum;
      scaled[(filter * taps + tap) * channels + channel] = float(sum) * 0x1p-20f;
    }
    """,
    inputs=lambda rng: {
        "x": rng.integers(-32768, 32768, (3, 30, 3), np.int16),
        "dy": rng.integers(-32768, 32768, (3, 15, 2), np.int16),
        # Stride, padding, taps.
        "dims": np.array([2, 1, 3], np.int32),
    },
    outputs={"dw": ((2, 3, 3), "int64"), "scaled": ((2, 3, 3), "float32")},
    grid=(5 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="types.long mlx.shuffles structure.return_before_simd layouts.few_elements literals.hexadecimal_float",
)
def gradient_of_convolution_weights(x, dy, dims):
    padded = np.pad(x.astype(np.int64), ((0, 0), (1, 1), (0, 0)))
    dw = np.stack([np.einsum("btf,btc->fc", dy, padded[:, tap : tap + 30 : 2]) for tap in range(3)], axis=1)
    return dw, dw.astype(np.float32) * np.float32(2.0**-20)


@body(
    """
    // Where each tap looks is given by offsets, and how much it counts by a weight: bilinear samples, zero outside. Filters are
    // applied to what was gathered, a group of channels for each set of offsets.
    const int2 place = int2(thread_position_in_grid.xy);
    const int batch = thread_position_in_grid.z;
    const int height = x_shape[1], width = x_shape[2];
    if (place.x >= width || place.y >= height) return;
    float gathered[TAPS][CHANNELS];
    for (int tap = 0; tap < TAPS; ++tap) {
      const int at = ((batch * height + place.y) * width + place.x) * TAPS + tap;
      const float2 from = float2(place) + float2(tap % 3 - 1, tap / 3 - 1) + ((const device float2*)offsets)[at];
      const float2 corner = floor(from), part = from - corner;
      for (int c = 0; c < CHANNELS; ++c) gathered[tap][c] = 0;
      #pragma unroll
      for (int which = 0; which < 4; ++which) {
        const int2 p = int2(corner) + int2(which & 1, which >> 1);
        if (any(p < 0) || p.x >= width || p.y >= height) continue;
        const float2 share = select(1.0f - part, part, bool2(which & 1, which >> 1));
        const float weight = share.x * share.y * masks[at];
        const device half* values = x + ((batch * height + p.y) * width + p.x) * CHANNELS;
        for (int c = 0; c < CHANNELS; ++c) gathered[tap][c] += weight * float(values[c]);
      }
    }
    for (int f = 0; f < w_shape[0]; ++f) {
      float sum = 0;
      for (int tap = 0; tap < TAPS; ++tap)
        for (int c = 0; c < CHANNELS; ++c) sum += gathered[tap][c] * float(w[(f * TAPS + tap) * CHANNELS + c]);
      out[((batch * height + place.y) * width + place.x) * w_shape[0] + f] = sum;
    }
    """,
    template=[("TAPS", 9), ("CHANNELS", 4)],
    # Quarters, whose products and sums are exact.
    inputs=lambda rng: {
        "x": rng.integers(-4, 5, (2, 5, 6, 4)).astype(np.float16),
        "offsets": (rng.integers(-8, 9, (2, 5, 6, 9, 2)) / 4).astype(np.float32),
        "masks": rng.integers(0, 3, (2, 5, 6, 9)).astype(np.float32),
        "w": rng.integers(-3, 4, (3, 9, 4)).astype(np.float16),
    },
    outputs={"out": ((2, 5, 6, 3), "float32")},
    grid=(8, 8, 2),
    threadgroup=(4, 4, 2),
    constructs="functions.floor functions.any functions.select types.bool2 types.vector_comparison types.mixed_operands "
    "structure.dynamic_local_array structure.early_return",
)
def deformable_convolution(x, offsets, masks, w):
    y, x_ = np.mgrid[:5, :6]
    total = np.zeros((2, 5, 6, 3))
    padded = np.zeros((2, 19, 20, 4))
    padded[:, 7:12, 7:13] = x
    for tap in range(9):
        column = x_ + tap % 3 - 1 + offsets[..., tap, 0].astype(np.float64) + 7
        row = y + tap // 3 - 1 + offsets[..., tap, 1].astype(np.float64) + 7
        left, top = np.floor(column).astype(int), np.floor(row).astype(int)
        b = np.arange(2)[:, None, None]
        for dy in range(2):
            for dx in range(2):
                share = (1 - abs(column - left - dx)) * (1 - abs(row - top - dy)) * masks[..., tap]
                total += share[..., None] * (padded[b, top + dy, left + dx] @ w[:, tap].astype(np.float64).T)
    return total.astype(np.float32)
