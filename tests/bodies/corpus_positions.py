"""How tokens come to know where they are: rotations of many kinds, and biases of the scores."""

import numpy as np

from bodies import DTYPES, Dtype, body


def away_from_zero(rng, dtype, *shape):
    return rng.uniform(0.5, 2, shape).astype(np.float32).astype(DTYPES[dtype])


def rotated(x, theta, traditional=False):
    """Of the last axis, all of it; theta is broadcast to its half."""
    x = x.astype(np.float64)
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if traditional else (x[..., :half], x[..., half:])
    c, s = np.cos(theta), np.sin(theta)
    first, second = a * c - b * s, a * s + b * c
    if traditional:
        return np.stack([first, second], axis=-1).reshape(x.shape)
    return np.concatenate([first, second], axis=-1)


_ROPE_HEADER = """
// Pairs of a row are turned by an angle that grows with the position. Which two elements are a pair, and whether the turn
// is undone (as the gradient needs it), are decided while compiling.

template <bool TRADITIONAL>
struct Pairing;

// Neighbours.
template <>
struct Pairing<true> {
  static METAL_FUNC size_t first(uint pair, uint pairs, size_t stride) { return 2 * pair * stride; }
  static METAL_FUNC size_t second(uint pair, uint pairs, size_t stride) { return (2 * pair + 1) * stride; }
};

// The first half of the row with the second.
template <>
struct Pairing<false> {
  static METAL_FUNC size_t first(uint pair, uint pairs, size_t stride) { return pair * stride; }
  static METAL_FUNC size_t second(uint pair, uint pairs, size_t stride) { return (pair + pairs) * stride; }
};

template <bool FORWARD>
METAL_FUNC float2 turn(float2 v, float cosine, float sine) {
  if (FORWARD) {
    return float2(v.x * cosine - v.y * sine, v.x * sine + v.y * cosine);
  }
  return float2(v.y * sine + v.x * cosine, v.y * cosine - v.x * sine);
}
"""

_ROPE = """
    // Grid: pairs, positions, heads in groups of N for each batch. The angle's functions are shared by N heads.
    const uint3 pos = thread_position_in_grid;
    const uint pairs = DIMS / 2;
    const uint heads = x_shape[1];
    const uint head_groups = (heads + N - 1) / N;
    const uint batch = pos.z / head_groups;
    const uint first_head = pos.z % head_groups * N;
    if (pos.x >= uint(x_shape[3]) / 2 || pos.y >= uint(x_shape[2])) return;

    const size_t out_head = size_t(x_shape[2]) * x_shape[3];
    size_t in_at = batch * x_strides[0] + first_head * x_strides[1] + pos.y * x_strides[2];
    size_t out_at = (size_t(batch) * heads + first_head) * out_head + size_t(pos.y) * x_shape[3];
    if (pos.x >= pairs) {
      // The part of the row that is not rotated goes as it is.
      for (uint h = 0; h < N && first_head + h < heads; ++h) {
        for (uint e = 2 * pos.x; e < 2 * pos.x + 2; ++e) {
          out[out_at + e] = x[in_at + e * x_strides[3]];
        }
        in_at += x_strides[1];
        out_at += out_head;
      }
      return;
    }

    // Periods may come as a table; else they grow by equal factors.
    const float turns = HAS_FREQS ? 1.0f / freqs[pos.x] : exp2(log2_base * -float(pos.x) / float(pairs));
    const float where_it_is = float(int(pos.y) + offsets[batch]) * scale;
    float cosine;
    const float sine = precise::sincos(where_it_is * turns, cosine);

    using P = Pairing<TRADITIONAL>;
    for (uint h = 0; h < N && first_head + h < heads; ++h) {
      const float2 v = float2(
          static_cast<float>(x[in_at + P::first(pos.x, pairs, x_strides[3])]),
          static_cast<float>(x[in_at + P::second(pos.x, pairs, x_strides[3])]));
      const float2 r = turn<FORWARD>(v, cosine, sine);
      out[out_at + P::first(pos.x, pairs, 1)] = static_cast<T>(r.x);
      out[out_at + P::second(pos.x, pairs, 1)] = static_cast<T>(r.y);
      in_at += x_strides[1];
      out_at += out_head;
    }
"""

for _traditional, _forward, _freqs in ((True, True, False), (False, False, True)):

    def _rope(x, offsets, freqs, log2_base, scale, traditional=_traditional, forward=_forward, own=_freqs):
        inverse = 1 / freqs.astype(np.float64) if own else np.exp2(-np.arange(8) / 8 * log2_base)
        positions = (np.arange(6) + offsets.astype(np.float64)[:, None]) * scale
        theta = (positions[..., None] * inverse)[:, None] * (1 if forward else -1)
        return np.concatenate([rotated(x[..., :16], theta, traditional), x[..., 16:].astype(np.float64)], axis=-1)

    body(
        _ROPE,
        name=f"rope_{'neighbours' if _traditional else 'halves'}_{'forward' if _forward else 'backward'}",
        header=_ROPE_HEADER,
        template=[
            ("T", Dtype("float32")),
            ("DIMS", 16),
            ("N", 4),
            ("TRADITIONAL", _traditional),
            ("FORWARD", _forward),
            ("HAS_FREQS", _freqs),
        ],
        # As they leave a projection: [batch, position, head, dimension], seen as [batch, head, position, dimension].
        inputs=lambda rng: {
            "x": away_from_zero(rng, "float32", 2, 6, 5, 22).transpose(0, 2, 1, 3),
            "offsets": np.array([3, 0], np.int32),
            "freqs": (10000.0 ** (np.arange(8) / 8)).astype(np.float32),
            "log2_base": 13.28771238,
            "scale": 0.75,
        },
        outputs={"out": ((2, 5, 6, 22), "float32")},
        grid=(11, 6, 4),
        threadgroup=(11, 3, 2),
        # What is turned to nearly zero is off by the errors of the two that are added.
        tolerance=2e-4,
        ensure_row_contiguous=False,
        constructs="structure.template structure.using functions.precise functions.sincos functions.exp2 "
        "layouts.strided layouts.shape_arguments types.float2 mlx.METAL_FUNC types.size_t structure.early_return",
    )(_rope)


_STRETCHED = """
    // Frequencies that were stretched for long contexts, made where they are used. Two schools: blending by wavelength
    // with a smooth passage (LLAMA), and by a ramp over dimensions, with attention tempered (YARN).
    uint pair = thread_position_in_grid.x, position = thread_position_in_grid.y;
    constexpr int pairs = DIMS / 2;
    float inverse = powr(theta_base, -float(pair) / pairs);
    float temper = 1;
    switch (KIND) {
      case LLAMA: {
        float wavelength = 2 * M_PI_F / inverse;
        float low = old_context / LOW_FACTOR, high = old_context / HIGH_FACTOR;
        if (wavelength > low) {
          inverse /= factor;
        } else if (wavelength >= high) {
          float smooth_part = (old_context / wavelength - LOW_FACTOR) / (HIGH_FACTOR - LOW_FACTOR);
          inverse = mix(inverse / factor, inverse, smooth_part);
        }
        break;
      }
      case YARN: {
        // Where a dimension turns BETA times within the old context.
        float per = 2 * log(theta_base);
        float first = max(0.0f, floor(DIMS * log(old_context / (FAST * 2 * M_PI_F)) / per));
        float last = min(DIMS - 1.0f, ceil(DIMS * log(old_context / (SLOW * 2 * M_PI_F)) / per));
        float ramp = saturate((float(pair) - first) / max(last - first, 0.001f));
        inverse = mix(inverse, inverse / factor, ramp);
        temper = 0.1f * log(factor) + 1;
      }
    }
    if (position == 0) frequencies[pair] = inverse;
    float cosine, sine = sincos(float(position) * inverse, cosine);
    table[(position * pairs + pair) * 2] = T(cosine * temper);
    table[(position * pairs + pair) * 2 + 1] = T(sine * temper);
    """

_STRETCHED_HEADER = """
#define LLAMA 0
#define YARN 1
constant constexpr float LOW_FACTOR = 1, HIGH_FACTOR = 4;
constant float FAST = 32.0, SLOW = 1.0;
"""

for _kind, _school in enumerate(("llama", "yarn")):

    def _stretched(theta_base, old_context, factor, school=_school):
        inverse = theta_base ** (-np.arange(32) / 32)
        temper = 1.0
        if school == "llama":
            old_share = np.clip((old_context * inverse / (2 * np.pi) - 1) / 3, 0, 1)
        else:
            first, last = (
                64 * np.log(old_context / (turns * 2 * np.pi)) / (2 * np.log(theta_base)) for turns in (32, 1)
            )
            first, last = max(0, np.floor(first)), min(63, np.ceil(last))
            old_share = 1 - np.clip((np.arange(32) - first) / (last - first), 0, 1)
            temper += 0.1 * np.log(factor)
        inverse = old_share * inverse + (1 - old_share) * inverse / factor
        angle = np.arange(5)[:, None] * inverse
        return inverse, np.stack([np.cos(angle), np.sin(angle)], axis=-1) * temper

    body(
        _STRETCHED,
        name=f"rope_tables_of_{_school}",
        header=_STRETCHED_HEADER,
        template=[("KIND", _kind), ("DIMS", 64), ("T", Dtype("float32"))],
        inputs=lambda rng: {"theta_base": 500000.0, "old_context": 8192.0, "factor": 8.0},
        outputs={"frequencies": ((32,), "float32"), "table": ((5, 32, 2), "float32")},
        grid=(32, 5, 1),
        threadgroup=(32, 5, 1),
        tolerance=2e-5,
        constructs="structure.switch functions.powr functions.sincos functions.mix functions.saturate functions.log "
        "functions.ceil types.M_constants address_spaces.constant_scalar structure.define_in_header "
        "layouts.python_number",
    )(_stretched)


@body(
    """
    // Rotations by sections: some pairs follow the time, others the row and the column of a picture's patch. Three
    // threads' worth of positions, one table of sections.
    const uint pair = thread_position_in_grid.x, head = thread_position_in_grid.y, token = thread_position_in_grid.z;
    const int tokens = x_shape[0], heads = x_shape[1], half_width = x_shape[2] / 2;

    // Which of the three the pair belongs to: the number of section ends that it has passed.
    int end = 0, kind = -1;
    do {
      ++kind;
      end += sections[kind];
    } while (kind < 2 && int(pair) >= end);
    const float position = float(positions[kind * tokens + token]);
    const float theta = position * exp(-log(10000.0f) * float(pair) / float(half_width));
    const float c = cos(theta), s = sin(theta);

    const device bfloat16_t* row = x + (token * heads + head) * 2 * half_width;
    device float* to = y + (token * heads + head) * 2 * half_width;
    const float a = row[pair], b = row[pair + half_width];
    to[pair] = a * c - b * s;
    to[pair + half_width] = b * c + a * s;
    """,
    inputs=lambda rng: {
        "x": away_from_zero(rng, "bfloat16", 9, 3, 32),
        "positions": np.array(
            [[0, 1, 2, 2, 2, 2, 2, 2, 4], [0, 1, 2, 2, 3, 3, 4, 4, 5], [0, 1, 2, 3, 2, 3, 2, 3, 5]], np.int32
        ),
        "sections": np.array([4, 7, 5], np.int32),
    },
    outputs={"y": ((9, 3, 32), "float32")},
    grid=(16, 3, 9),
    threadgroup=(16, 3, 4),
    tolerance=2e-4,
    constructs="structure.do types.bfloat16_t layouts.few_elements functions.cos functions.sin functions.log "
    "launch.edge_threadgroups",
)
def rope_by_sections(x, positions, sections):
    kind = np.repeat(np.arange(3), sections)
    theta = positions.astype(np.float64)[kind].T * 10000.0 ** (-np.arange(16) / 16)
    return rotated(x, theta[:, None])


@body(
    """
    // Patches of an image in windows: the first half of a head turns with the row, the second with the column, pairs
    // being neighbours. A pair is a complex number, and so is the turn; the patches are put in the windows' order.
    const uint3 p = thread_position_in_grid;  // pair, place in the picture, head
    const uint width = grid_size_2d[1], height = grid_size_2d[0];
    if (p.y >= width * height) return;
    const uint row = p.y / width, column = p.y - row * width;
    const uint quarter = threads_per_grid.x / 2;
    const bool by_row = p.x < quarter;
    const uint frequency = by_row ? p.x : p.x - quarter;
    const float angle = float(by_row ? row : column) * inverse[frequency];
    const complex64_t turn(cos(angle), sin(angle));

    // Windows of W by W, those at the right and lower edges are smaller.
    const uint window_row = row / W, window_column = column / W;
    const uint rows_here = min(uint(W), height - window_row * W), columns_here = min(uint(W), width - window_column * W);
    const uint place = window_row * W * width + rows_here * window_column * W + (row % W) * columns_here + column % W;

    const uint pairs = threads_per_grid.x, heads = threads_per_grid.z;
    const complex64_t v = x[(p.y * heads + p.z) * pairs + p.x];
    y[(place * heads + p.z) * pairs + p.x] = v * turn;
    if (p.x == 0 && p.z == 0) order[place] = p.y;
    """,
    template=[("W", 4)],
    inputs=lambda rng: {
        "x": (rng.uniform(1, 2, (54, 2, 12)) + 1j * rng.uniform(1, 2, (54, 2, 12))).astype(np.complex64),
        "inverse": (100.0 ** (-np.arange(6) / 6)).astype(np.float32),
        "grid_size_2d": np.array([6, 9], np.int32),
    },
    outputs={"y": ((54, 2, 12), "complex64"), "order": ((54,), "uint32")},
    grid=(12, 56, 2),
    threadgroup=(12, 8, 2),
    tolerance=3e-5,
    constructs="types.complex64_t attributes.threads_per_grid types.uint3 functions.cos functions.sin functions.min "
    "layouts.few_elements",
)
def rope_of_patches_in_windows(x, inverse, grid_size_2d):
    height, width = grid_size_2d
    windows = [
        row * width + column
        for top in range(0, height, 4)
        for left in range(0, width, 4)
        for row in range(top, min(top + 4, height))
        for column in range(left, min(left + 4, width))
    ]
    row, column = np.divmod(np.arange(54), width)
    angle = np.concatenate([np.outer(row, inverse), np.outer(column, inverse)], axis=1, dtype=np.float64)
    turned = x.astype(np.complex128) * np.exp(1j * angle)[:, None]
    return turned[windows], np.array(windows, np.uint32)


@body(
    """
    // Relative places fall into buckets: near ones have their own, far ones share by logarithm, and those ahead have half
    // of all. The bias of a bucket and a head is added to the scores; softmax follows in the same simdgroup.
    const uint lane = thread_index_in_simdgroup;
    const int query = thread_position_in_grid.y, head = thread_position_in_grid.z;
    const int queries = scores_shape[1], keys = scores_shape[2];
    constexpr int half_of = BUCKETS / 2;
    constexpr int exact = half_of / 2;
    const float per_log = float(half_of - exact) / log(float(FURTHEST) / float(exact));
    const device half* row = scores + (head * queries + query) * keys;

    auto bucket_of = [=](int relative) {
      const int ahead = relative > 0 ? half_of : 0;
      const int distance = abs(relative);
      if (distance < exact) return ahead + distance;
      const int far = exact + int(log(float(distance) / exact) * per_log);
      return ahead + min(far, half_of - 1);
    };

    float largest = -INFINITY;
    float own[(MOST + 31) / 32];
    for (int j = 0; j * 32 < keys; ++j) {
      const int key = j * 32 + lane;
      own[j] = -INFINITY;
      if (key < keys) {
        const int bucket = bucket_of(key - query);
        if (head == 0) buckets[query * keys + key] = uchar(bucket);
        own[j] = float(row[key]) + bias[bucket * threads_per_grid.z + head];
      }
      largest = max(largest, own[j]);
    }
    largest = simd_max(largest);
    float sum = 0;
    for (int j = 0; j * 32 < keys; ++j) {
      own[j] = exp(own[j] - largest);
      sum += own[j];
    }
    sum = simd_sum(sum);
    for (int j = 0; j * 32 < keys; ++j)
      if (j * 32 + int(lane) < keys) p[(head * queries + query) * keys + j * 32 + lane] = own[j] / sum;
    """,
    template=[("BUCKETS", 32), ("FURTHEST", 100), ("MOST", 96)],
    inputs=lambda rng: {
        "scores": rng.normal(size=(3, 11, 77)).astype(np.float16),
        "bias": rng.normal(size=(32, 3)).astype(np.float32),
    },
    outputs={"p": ((3, 11, 77), "float32"), "buckets": ((11, 77), "uint8")},
    grid=(32, 11, 3),
    threadgroup=(32, 4, 1),
    tolerance=2e-6,
    constructs="structure.lambda structure.auto structure.dynamic_local_array functions.abs functions.log simdgroup.max "
    "simdgroup.sum types.uchar",
)
def softmax_with_bias_of_buckets(scores, bias):
    relative = np.arange(77)[None] - np.arange(11)[:, None]
    distance = np.abs(relative)
    far = 8 + (np.log(np.maximum(distance, 1) / 8) / np.log(100 / 8) * 8).astype(int)
    bucket = np.where(distance < 8, distance, np.minimum(far, 15)) + np.where(relative > 0, 16, 0)
    s = scores.astype(np.float64) + bias[bucket].transpose(2, 0, 1)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True), bucket.astype(np.uint8)


_QK_NORM_HEADER = """
// What follows the projection to queries, keys and values of a layer, in one launch: heads of queries and keys are
// normalised, each by itself, and turned; keys and values go to their slots in the cache.

enum class Part : uchar { query, key, value };

struct Layout {
  int heads;
  int kv_heads;

  Part part(int row) const {
    return row < heads ? Part::query : row < heads + kv_heads ? Part::key : Part::value;
  }

  // The head's number among those of its part.
  int local(int row) const {
    switch (part(row)) {
      case Part::query: return row;
      case Part::key: return row - heads;
      default: return row - heads - kv_heads;
    }
  }

  int rows() const { return heads + 2 * kv_heads; }
};

// A lane's share of a head, as D / 32 neighbouring elements.
template <typename T, int D>
struct Share {
  static constexpr constant int N = D / 32;
  float v[N];

  void load(const device T* row, uint lane) {
    const device vec<T, N>* vectors = reinterpret_cast<const device vec<T, N>*>(row);
    const vec<T, N> read = vectors[lane];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = float(read[i]);
  }

  void store(device T* row, uint lane) const {
    vec<T, N> written;
#pragma unroll
    for (int i = 0; i < N; ++i) written[i] = T(v[i]);
    reinterpret_cast<device vec<T, N>*>(row)[lane] = written;
  }

  // Root mean square, over the whole simdgroup.
  void normalise(const device T* weight, float eps, uint lane) {
    float squares = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) squares = fma(v[i], v[i], squares);
    const float scale = rsqrt(simd_sum(squares) / D + eps);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] *= scale * float(weight[lane * N + i]);
  }

  // An element's partner is half a head away: the same place in the share of the lane 16 further.
  void turn(const device float* cosines, const device float* sines, uint lane) {
    const bool upper = lane >= 16;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float partner = simd_shuffle_xor(v[i], ushort(16));
      const int at = int(lane & 15) * N + i;
      v[i] = v[i] * cosines[at] + (upper ? partner : -partner) * sines[at];
    }
  }
};

// Slots are numbers in a cache of pages; what is padding has a negative one.
template <int PAGE>
METAL_FUNC int64_t offset_of_slot(int slot, int kv_head, int kv_heads, int width) {
  const int page = slot / PAGE, inside = slot % PAGE;
  return ((int64_t(page) * kv_heads + kv_head) * PAGE + inside) * width;
}
"""

_QK_NORM = """
    const Layout layout{HEADS, KV_HEADS};
    const uint lane = thread_index_in_simdgroup;
    const int rows = layout.rows();
    const int token = thread_position_in_grid.y / rows;
    const int row = thread_position_in_grid.y % rows;
    const int slot = slots[token];
    const int position = positions[token];
    const Part part = layout.part(row);
    const int local = layout.local(row);
    // Padding writes its queries, which nobody reads, but must not touch the cache.
    if (slot < 0 && part != Part::query) return;

    Share<T, D> share;
    share.load(qkv + (token * rows + row) * D, lane);
    if (part != Part::value) {
      share.normalise(part == Part::query ? q_weight : k_weight, eps, lane);
      share.turn(cosines + position * (D / 2), sines + position * (D / 2), lane);
    }
    if (part == Part::query) {
      share.store(queries + (token * HEADS + local) * D, lane);
      return;
    }
    const int64_t at = offset_of_slot<PAGE>(slot, local, KV_HEADS, D);
    if (part == Part::key) {
      share.store(key_cache + at, lane);
    } else {
      share.store(value_cache + at, lane);
    }
"""

for _dtype in ("float32", "float16"):

    def _qk_norm(qkv, q_weight, k_weight, cosines, sines, positions, slots, eps):
        rows = qkv.reshape(5, 8, 64).astype(np.float64)
        theta = np.arctan2(sines, cosines, dtype=np.float64)[positions][:, None]

        def normal(part, weight):
            scale = 1 / np.sqrt((part**2).mean(axis=-1, keepdims=True) + eps)
            return rotated(part * scale * weight.astype(np.float64), theta)

        keys, values = np.zeros((3, 2, 4, 64)), np.zeros((3, 2, 4, 64))
        for token, slot in enumerate(slots):
            if slot >= 0:
                keys[slot // 4, :, slot % 4] = normal(rows[:, 4:6], k_weight)[token]
                values[slot // 4, :, slot % 4] = rows[token, 6:]
        return normal(rows[:, :4], q_weight), keys, values

    body(
        _QK_NORM,
        name=f"norm_rotation_and_cache_in_one_{_dtype}",
        header=_QK_NORM_HEADER,
        template=[("T", Dtype(_dtype)), ("D", 64), ("HEADS", 4), ("KV_HEADS", 2), ("PAGE", 4)],
        inputs=lambda rng, dtype=_dtype: {
            "qkv": away_from_zero(rng, dtype, 5, 8 * 64),
            "q_weight": away_from_zero(rng, dtype, 64),
            "k_weight": away_from_zero(rng, dtype, 64),
            "cosines": np.cos(np.outer(np.arange(20), 50.0 ** (-np.arange(32) / 32))).astype(np.float32),
            "sines": np.sin(np.outer(np.arange(20), 50.0 ** (-np.arange(32) / 32))).astype(np.float32),
            "positions": np.array([0, 17, 18, 3, 9], np.int32),
            "slots": np.array([4, 11, 3, -1, 0], np.int32),
            "eps": 1e-6,
        },
        outputs={
            "queries": ((5, 4, 64), _dtype),
            "key_cache": ((3, 2, 4, 64), _dtype),
            "value_cache": ((3, 2, 4, 64), _dtype),
        },
        grid=(32, 40, 1),
        threadgroup=(32, 4, 1),
        init_value=0,
        tolerance={"float32": 1e-4, "float16": 6e-4}[_dtype],
        constructs="structure.struct structure.switch structure.template types.vec types.component_index types.int64_t "
        "structure.reinterpret_cast simdgroup.sum simdgroup.shuffle_xor functions.rsqrt structure.early_return "
        "launch.init_value address_spaces.cast_to_vector mlx.METAL_FUNC",
    )(_qk_norm)
