"""Norms over rows, groups and residuals, with what is fused to them, and their gradients."""

import numpy as np

from bodies import DTYPES, Dtype, body

# What several threads of a threadgroup find, as one: here as the headers of kernels have it.
_THREADGROUP_SUM = """
// Sums over the threadgroup. The scratch has a place for each simdgroup; it is free again when the function returns.
template <typename V>
METAL_FUNC V threadgroup_sum(V value, threadgroup V* scratch, uint lane, uint simd_id, uint simds) {
  value = simd_sum(value);
  if (simds == 1) return value;
  if (lane == 0) scratch[simd_id] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  value = lane < simds ? scratch[lane] : V(0);
  value = simd_sum(value);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return value;
}
"""


def uniform(low, high, *shape, dtype="float32"):
    return lambda rng: rng.uniform(low, high, shape).astype(np.float32).astype(DTYPES[dtype])


def made(**makers):
    return lambda rng: {name: make(rng) if callable(make) else make for name, make in makers.items()}


@body(
    """
    // y = w x r with r = rsqrt(mean(x^2) + eps). A threadgroup takes every GROUPS-th row, so that the gradient of the
    // weight can be added up in registers; the partial sums go to one row of `dw_parts` per threadgroup.
    threadgroup float2 scratch[32];
    const uint lane = thread_index_in_simdgroup, simd_id = simdgroup_index_in_threadgroup;
    const uint simds = simdgroups_per_threadgroup;
    const uint lid = thread_position_in_threadgroup.x, lsize = threads_per_threadgroup.x;
    const uint axis = x_shape[x_ndim - 1], rows = x_shape[0];
    float dw_own[N_READS] = {0};
    for (uint row = threadgroup_position_in_grid.x; row < rows; row += threadgroups_per_grid.x) {
      const device T* xr = x + row * axis;
      const device T* gr = g + row * axis;
      float xs[N_READS], gs[N_READS];
      float2 both = 0;  // the sums of x^2 and of x w g
      for (int j = 0; j < N_READS; ++j) {
        const uint at = lid + j * lsize;
        const bool inside = at < axis;
        xs[j] = inside ? float(xr[at]) : 0.0f;
        gs[j] = inside ? float(gr[at]) : 0.0f;
        both += float2(xs[j] * xs[j], xs[j] * gs[j] * (inside ? float(w[at]) : 0.0f));
      }
      both = threadgroup_sum(both, scratch, lane, simd_id, simds);
      const float r = metal::precise::rsqrt(both.x / axis + eps);
      const float pull = r * r * r * both.y / axis;
      for (int j = 0; j < N_READS; ++j) {
        const uint at = lid + j * lsize;
        if (at >= axis) break;
        dx[row * axis + at] = static_cast<T>(float(w[at]) * gs[j] * r - xs[j] * pull);
        dw_own[j] += gs[j] * xs[j] * r;
      }
    }
    for (int j = 0; j < N_READS; ++j)
      if (lid + j * lsize < axis) dw_parts[threadgroup_position_in_grid.x * axis + lid + j * lsize] = dw_own[j];
    """,
    header=_THREADGROUP_SUM,
    template=[("T", Dtype("float32")), ("N_READS", 3)],
    # Of two kinds of columns, which pull in opposite ways: no gradient is near zero.
    inputs=lambda rng: {
        "x": (rng.uniform(0.9, 1.1, (7, 180)) * np.where(np.arange(180) % 2, 1, 0.3)).astype(np.float32),
        "w": rng.uniform(0.9, 1.1, 180).astype(np.float32),
        "g": (rng.uniform(0.9, 1.1, (7, 180)) * np.where(np.arange(180) % 2, 0.3, 2)).astype(np.float32),
        "eps": 1e-5,
    },
    outputs={"dx": ((7, 180), "float32"), "dw_parts": ((3, 180), "float32")},
    grid=(3 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=5e-6,
    constructs="structure.template mlx.METAL_FUNC functions.rsqrt functions.precise types.float2 "
    "barriers.in_template address_spaces.threadgroup_pointer_to_helper layouts.shape_arguments",
)
def rms_norm_gradients(x, w, g, eps):
    x, w, g = (a.astype(np.float64) for a in (x, w, g))
    r = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps)
    dx = w * g * r - x * r**3 * (x * w * g).mean(axis=1, keepdims=True)
    terms = g * x * r
    return dx, np.stack([terms[i::3].sum(axis=0) for i in range(3)])


_LAYER_NORM_HEADER = (
    _THREADGROUP_SUM
    + """
// Four elements of a row, from memory that may be float, half or bfloat, and back. Rows need not be whole fours: what is
// missing at the end is zero and is not written.
template <typename T>
struct Four {
  float v[4];

  METAL_FUNC void read(const device T* row, int at, int axis) {
    if (at + 4 <= axis) {
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = static_cast<float>(row[at + i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = at + i < axis ? static_cast<float>(row[at + i]) : 0.0f;
    }
  }

  METAL_FUNC void write(device T* row, int at, int axis) const {
    if (at + 4 <= axis) {
#pragma unroll
      for (int i = 0; i < 4; ++i) row[at + i] = static_cast<T>(v[i]);
    } else {
      for (int i = 0; i < 4 && at + i < axis; ++i) row[at + i] = static_cast<T>(v[i]);
    }
  }
};

// Means and squares in three numbers, for the gradient in one pass over the row: the sums of x - mean would need two.
struct RowSums {
  float mean;
  float variance;
  float mean_wg;
  float mean_wgx;
};
"""
)

_LAYER_NORM_GRADIENTS = """
    // A threadgroup per row. Two passes over the row for the statistics (the variance around the mean, as it should be),
    // a third for the means that the gradient needs, a fourth that writes.
    threadgroup float scratch[32];
    threadgroup float2 scratch2[32];
    const uint lane = thread_index_in_simdgroup;
    const uint simd_id = simdgroup_index_in_threadgroup;
    const uint simds = (threads_per_threadgroup.x + 31) / 32;
    const int lid = thread_position_in_threadgroup.x;
    const int step = threads_per_threadgroup.x * 4;
    const int row = threadgroup_position_in_grid.x;
    const int axis = x_shape[1];
    const float inverse_axis = 1.0f / float(axis);

    const device T* x_row = x + row * axis;
    const device T* g_row = g + row * axis;
    device T* dx_row = dx + row * axis;
    device float* x_hat_row = x_hat + row * axis;

    RowSums s;
    float sum = 0.0f;
    for (int at = lid * 4; at < axis; at += step) {
      Four<T> xs;
      xs.read(x_row, at, axis);
      sum += (xs.v[0] + xs.v[1]) + (xs.v[2] + xs.v[3]);
    }
    s.mean = threadgroup_sum(sum, scratch, lane, simd_id, simds) * inverse_axis;

    sum = 0.0f;
    for (int at = lid * 4; at < axis; at += step) {
      Four<T> xs;
      xs.read(x_row, at, axis);
      for (int i = 0; i < 4; ++i) {
        // What is beyond the end would count as -mean.
        const float d = at + i < axis ? xs.v[i] - s.mean : 0.0f;
        sum = fma(d, d, sum);
      }
    }
    s.variance = threadgroup_sum(sum, scratch, lane, simd_id, simds) * inverse_axis;
    const float scale = precise::rsqrt(s.variance + eps);

    float2 sums = 0.0f;
    for (int at = lid * 4; at < axis; at += step) {
      Four<T> xs, gs, ws;
      xs.read(x_row, at, axis);
      gs.read(g_row, at, axis);
      if (HAS_W) ws.read(w, at, axis);
      for (int i = 0; i < 4; ++i) {
        const float wg = HAS_W ? ws.v[i] * gs.v[i] : gs.v[i];
        sums.x += wg;
        sums.y += wg * (xs.v[i] - s.mean) * scale;
      }
    }
    sums = threadgroup_sum(sums, scratch2, lane, simd_id, simds) * inverse_axis;
    s.mean_wg = sums.x;
    s.mean_wgx = sums.y;

    for (int at = lid * 4; at < axis; at += step) {
      Four<T> xs, gs, ws;
      Four<float> hats;
      xs.read(x_row, at, axis);
      gs.read(g_row, at, axis);
      if (HAS_W) ws.read(w, at, axis);
      for (int i = 0; i < 4; ++i) {
        const float hat = (xs.v[i] - s.mean) * scale;
        const float wg = HAS_W ? ws.v[i] * gs.v[i] : gs.v[i];
        hats.v[i] = hat;
        xs.v[i] = scale * (wg - s.mean_wg - hat * s.mean_wgx);
      }
      xs.write(dx_row, at, axis);
      hats.write(x_hat_row, at, axis);
    }
    if (lid == 0) {
      statistics[2 * row] = s.mean;
      statistics[2 * row + 1] = scale;
    }
"""

for _dtype, _weighted in (("float32", True), ("float16", False)):

    def _layer_norm_gradients(x, w, g, eps, weighted=_weighted):
        x, w, g = (a.astype(np.float64) for a in (x, w, g))
        scale = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
        hat = (x - x.mean(axis=1, keepdims=True)) * scale
        wg = w * g if weighted else g
        dx = scale * (wg - wg.mean(axis=1, keepdims=True) - hat * (wg * hat).mean(axis=1, keepdims=True))
        return dx, hat, np.concatenate([x.mean(axis=1, keepdims=True), scale], axis=1)

    # Three kinds of columns, so that neither the mean nor what the gradient subtracts comes near an element.
    def _three_kinds(rng, values, dtype):
        kinds = np.array(values)[np.arange(5 * 221).reshape(5, 221) % len(values)]
        return (kinds * rng.uniform(0.95, 1.05, (5, 221))).astype(np.float32).astype(DTYPES[dtype])

    body(
        _LAYER_NORM_GRADIENTS,
        name=f"layer_norm_gradients_{_dtype}",
        header=_LAYER_NORM_HEADER,
        template=[("T", Dtype(_dtype)), ("HAS_W", _weighted)],
        inputs=lambda rng, dtype=_dtype, kinds=_three_kinds: {
            "x": kinds(rng, [1, 3, 7], dtype),
            "w": rng.uniform(0.95, 1.05, 221).astype(np.float32).astype(DTYPES[dtype]),
            "g": kinds(rng, [4, 1, 3], dtype),
            "eps": 1e-5,
        },
        outputs={"dx": ((5, 221), _dtype), "x_hat": ((5, 221), "float32"), "statistics": ((5, 2), "float32")},
        grid=(5 * 40, 1, 1),
        threadgroup=(40, 1, 1),
        tolerance={"float32": 1e-5, "float16": 6e-4}[_dtype],
        constructs="structure.template structure.struct barriers.in_helper_called_twice mlx.METAL_FUNC simdgroup.partial "
        "types.float2 functions.rsqrt functions.precise functions.fma structure.static_cast",
    )(_layer_norm_gradients)


@body(
    """
    // Channels come last: the group's elements are runs of `size` channels at every pixel. Mean and variance by Welford's
    // merge, so that one pass over memory suffices; SiLU comes with it.
    threadgroup float3 parts[8];
    const uint t = thread_index_in_threadgroup;
    const int group = threadgroup_position_in_grid.x, batch = threadgroup_position_in_grid.y;
    const int channels = x_shape[3], size = channels / GROUPS;
    const int pixels = x_shape[1] * x_shape[2];
    const device T* base = x + batch * pixels * channels + group * size;
    device T* to = y + batch * pixels * channels + group * size;

    // count, mean, sum of squared distances
    float3 own = 0;
    for (int e = t; e < pixels * size; e += threads_per_threadgroup.x) {
      const float v = float(base[e / size * channels + e % size]);
      own.x += 1;
      const float delta = v - own.y;
      own.y += delta / own.x;
      own.z += delta * (v - own.y);
    }
    for (ushort distance = 1; distance < 32; distance *= 2) own = merge(own, simd_shuffle_xor(own, distance));
    if (thread_index_in_simdgroup == 0) parts[simdgroup_index_in_threadgroup] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    own = parts[0];
    for (uint s = 1; s < simdgroups_per_threadgroup; ++s) own = merge(own, parts[s]);
    const float scale = rsqrt(own.z / own.x + eps);

    for (int e = t; e < pixels * size; e += threads_per_threadgroup.x) {
      const int c = group * size + e % size;
      const int at = e / size * channels + e % size;
      const float v = (float(base[at]) - own.y) * scale * float(weight[c]) + float(bias[c]);
      to[at] = T(v / (1 + exp(-v)));
    }
    """,
    header="""
inline float3 merge(float3 a, float3 b) {
  const float count = a.x + b.x;
  if (count == 0) return a;
  const float delta = b.y - a.y;
  return float3(count, a.y + delta * (b.x / count), a.z + b.z + delta * delta * (a.x * b.x / count));
}
""",
    template=[("T", Dtype("float32")), ("GROUPS", 3)],
    inputs=made(
        x=uniform(-1, 2, 2, 5, 7, 12),
        weight=uniform(0.5, 1, 12),
        # So that no element is near zero.
        bias=uniform(4, 5, 12),
        eps=1e-5,
    ),
    outputs={"y": ((2, 5, 7, 12), "float32")},
    grid=(3 * 96, 2, 1),
    threadgroup=(96, 1, 1),
    tolerance=5e-6,
    constructs="types.float3 simdgroup.shuffle_xor address_spaces.threadgroup_vectors functions.rsqrt functions.exp "
    "attributes.simdgroups_per_threadgroup structure.helper_function",
)
def group_norm_with_silu(x, weight, bias, eps):
    groups = x.astype(np.float64).reshape(2, 35, 3, 4)
    centred = groups - groups.mean(axis=(1, 3), keepdims=True)
    v = (centred / np.sqrt(groups.var(axis=(1, 3), keepdims=True) + eps)).reshape(x.shape) * weight + bias
    return v / (1 + np.exp(-v))


@body(
    """
    // The residual takes the layer's output, is normalised, and becomes bytes with one scale per token, for a product of
    // integers that follows. A value is held in registers from the first pass to the last.
    constexpr int PER = AXIS / 64;
    threadgroup float shared[2];
    threadgroup float peaks[2];
    const ushort t = thread_index_in_threadgroup, simd_id = simdgroup_index_in_threadgroup;
    const size_t row = threadgroup_position_in_grid.x * size_t(AXIS);
    float v[PER];
    float squares = 0;
    #pragma clang loop unroll(full)
    for (ushort j = 0; j < PER; ++j) {
      const half sum = x[row + t + 64 * j] + residual[row + t + 64 * j];
      new_residual[row + t + 64 * j] = sum;
      v[j] = sum;
      squares += v[j] * v[j];
    }
    squares = simd_sum(squares);
    if (simd_is_first()) shared[simd_id] = squares;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float r = 1.0f / sqrt((shared[0] + shared[1]) / AXIS + 1e-6f);

    float peak = 0;
    for (ushort j = 0; j < PER; ++j) {
      v[j] *= r * float(weight[t + 64 * j]);
      peak = max(peak, abs(v[j]));
    }
    peak = simd_max(peak);
    if (simd_is_first()) peaks[simd_id] = peak;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    peak = max(peaks[0], peaks[1]);
    const float inverse = peak == 0 ? 0 : 127.0f / peak;
    for (ushort j = 0; j < PER; ++j) quantised[row + t + 64 * j] = char(clamp(rint(v[j] * inverse), -128.0f, 127.0f));
    if (t == 0) scales[threadgroup_position_in_grid.x] = peak / 127.0f;
    """,
    template=[("AXIS", 192)],
    inputs=lambda rng: {
        "x": (rng.integers(-64, 64, (4, 192)) / 32).astype(np.float16),
        "residual": (rng.integers(-64, 64, (4, 192)) / 16).astype(np.float16),
        "weight": (rng.integers(8, 24, 192) / 16).astype(np.float16),
    },
    outputs={
        "quantised": ((4, 192), "int8"),
        "scales": ((4,), "float32"),
        "new_residual": ((4, 192), "float16"),
    },
    grid=(4 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=1e-6,
    constructs="types.char types.half types.size_t functions.rint functions.clamp functions.abs simdgroup.is_first "
    "simdgroup.max structure.pragma_clang_loop types.ushort",
)
def residual_norm_to_bytes(x, residual, weight):
    # The sums are exact; so are the squares, and what is rounded to bytes is nowhere near a half (the seed is fixed).
    total = x.astype(np.float64) + residual.astype(np.float64)
    normal = total / np.sqrt((total**2).mean(axis=1, keepdims=True) + 1e-6) * weight
    peak = np.abs(normal).max(axis=1, keepdims=True)
    return np.rint(normal * 127 / peak).astype(np.int8), peak[:, 0] / 127, total.astype(np.float16)


@body(
    """
    // A block of a diffusion transformer: x + gate * f, whose norm without weights is then shifted and scaled by what the
    // time step says, all of it from one row of six vectors per batch.
    constexpr int N = 4;
    threadgroup float sums[32], squares[32];
    uint row = threadgroup_position_in_grid.x, batch = row / tokens;
    uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    uint first = thread_position_in_threadgroup.x * N;
    uint width = x_shape[1];
    const device bfloat* conditions = modulation + batch * 3 * width;
    vec<float, N> v = 0;
    float sum = 0;
    if (first < width) {
      for (uint j = 0; j < N; ++j) {
        float gate = conditions[first + j];
        v[j] = x[row * width + first + j] + gate * f[row * width + first + j];
      }
      sum = v.x + v.y + v.z + v.w;
    }
    if (group == 0) sums[lane] = squares[lane] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(sum);
    if (lane == 0) sums[group] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float mean = simd_sum(sums[lane]) / width;
    vec<float, N> centred = first < width ? v - mean : vec<float, N>(0);
    float square = simd_sum(dot(centred, centred));
    if (lane == 0) squares[group] = square;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float scale = rsqrt(simd_sum(squares[lane]) / width + 1e-6);
    if (first >= width) return;
    for (uint j = 0; j < N; ++j) {
      float shift = conditions[width + first + j], stretch = conditions[2 * width + first + j];
      stream[row * width + first + j] = v[j];
      y[row * width + first + j] = centred[j] * scale * (1 + stretch) + shift;
    }
    """,
    inputs=made(
        x=uniform(0, 1, 6, 100),
        f=uniform(0, 1, 6, 100),
        modulation=lambda rng: (rng.uniform(0.5, 1, (2, 3, 100)) + np.array([0, 9, 0])[:, None]).astype(
            DTYPES["bfloat16"]
        ),
        tokens=3,
    ),
    outputs={"stream": ((6, 100), "float32"), "y": ((6, 100), "float32")},
    grid=(6 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=4e-6,
    constructs="types.vec types.component_index types.bfloat functions.dot layouts.python_number simdgroup.sum "
    "address_spaces.threadgroup_array",
)
def modulated_layer_norm(x, f, modulation, tokens):
    gate, shift, stretch = modulation.astype(np.float64).repeat(tokens, axis=0).transpose(1, 0, 2)
    stream = x + gate * f
    normal = (stream - stream.mean(axis=1, keepdims=True)) / np.sqrt(stream.var(axis=1, keepdims=True) + 1e-6)
    return stream, normal * (1 + stretch) + shift
