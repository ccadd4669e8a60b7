"""Attention of one new token, or of a few, over a cache of keys and values: many kinds of caches, split and combined."""

import numpy as np

from bodies import DTYPES, Dtype, body


def attend(q, k, v, bias=0.0, sink=None):
    """Of scaled queries [..., L, D] over keys and values [..., N, D]; and the logarithms of the sums."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) + bias
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - largest)
    return (weights / total) @ v, (np.log(total) + largest)[..., 0]


def normal(rng, dtype, *shape):
    return rng.normal(size=shape).astype(np.float32).astype(DTYPES[dtype])


def positive(rng, dtype, *shape):
    """Values whose averages are nowhere near zero, so that a relative error means something."""
    return rng.uniform(0.5, 2, shape).astype(np.float32).astype(DTYPES[dtype])


def _ancestors(parents):
    masks: list[int] = []
    for draft, parent in enumerate(parents):
        masks.append((masks[parent] if parent >= 0 else 0) | 1 << draft)
    return np.array(masks, np.uint64)


for _dtype in ("float16", "bfloat16"):

    def _decode(queries, keys, values, scale):
        k, v = keys.repeat(3, axis=1), values.repeat(3, axis=1)
        return attend(queries.astype(np.float64) * scale, k, v)[0]

    body(
        """
    // A threadgroup per head of a sequence: its simdgroups take keys in turn, two at a time, and halve their number until
    // one partial result is left.
    const uint lane = thread_index_in_simdgroup, member = simdgroup_index_in_threadgroup;
    const uint team = simdgroups_per_threadgroup;
    const int head = threadgroup_position_in_grid.y, sequence = threadgroup_position_in_grid.z;
    const int heads = queries_shape[1], kv_heads = keys_shape[1], length = keys_shape[2];
    const int64_t shared_row = int64_t(sequence * kv_heads + head / GQA) * length;
    const device T* key_rows = keys + shared_row * D;
    const device T* value_rows = values + shared_row * D;

    threadgroup Partial<D / 32> handed[4][32];
    float query[D / 32];
    for (int e = 0; e < D / 32; ++e) query[e] = scale * float(queries[(sequence * heads + head) * D + e * 32 + lane]);

    Partial<D / 32> own;
    own.clear();
    for (int i = 2 * member; i < length; i += 2 * team) {
      const bool second = i + 1 < length;
      float2 scores = 0;
      for (int e = 0; e < D / 32; ++e) {
        scores.x += query[e] * float(key_rows[i * D + e * 32 + lane]);
        if (second) scores.y += query[e] * float(key_rows[(i + 1) * D + e * 32 + lane]);
      }
      scores = simd_sum(scores);
      own.add(scores.x, value_rows + i * D + lane);
      if (second) own.add(scores.y, value_rows + (i + 1) * D + lane);
    }
    for (uint half_of = team / 2; half_of > 0; half_of /= 2) {
      if (member >= half_of && member < 2 * half_of) handed[member - half_of][lane] = own;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (member < half_of) own.merge(handed[member][lane]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (member != 0) return;
    for (int e = 0; e < D / 32; ++e) out[(sequence * heads + head) * D + e * 32 + lane] = T(own.sums[e] / own.total);
    """,
        name=f"decode_attention_vector_{_dtype}",
        header="""
// What has been seen of a softmax: the largest score, the sum of the weights relative to it, and a lane's part of the
// weighted sum of values.
template <int N>
struct Partial {
  float largest;
  float total;
  float sums[N];

  void clear() {
    largest = -INFINITY;
    total = 0;
    for (int i = 0; i < N; ++i) sums[i] = 0;
  }

  template <typename T>
  void add(float score, const device T* value) {
    const float higher = max(largest, score);
    const float keep = fast::exp(largest - higher), weight = fast::exp(score - higher);
    largest = higher;
    total = fma(total, keep, weight);
    for (int i = 0; i < N; ++i) sums[i] = fma(sums[i], keep, weight * float(value[32 * i]));
  }

  void merge(const threadgroup Partial& other) {
    if (other.largest == -INFINITY) return;
    const float higher = max(largest, other.largest);
    const float keep = fast::exp(largest - higher), take = fast::exp(other.largest - higher);
    largest = higher;
    total = total * keep + other.total * take;
    for (int i = 0; i < N; ++i) sums[i] = sums[i] * keep + other.sums[i] * take;
  }
};
""",
        template=[("T", Dtype(_dtype)), ("D", 64), ("GQA", 3)],
        inputs=lambda rng, dtype=_dtype: {
            "queries": normal(rng, dtype, 2, 6, 1, 64),
            "keys": normal(rng, dtype, 2, 2, 37, 64),
            "values": positive(rng, dtype, 2, 2, 37, 64),
            "scale": 0.125,
        },
        outputs={"out": ((2, 6, 1, 64), _dtype)},
        grid=(256, 6, 2),
        threadgroup=(256, 1, 1),
        tolerance={"float16": 6e-4, "bfloat16": 4.5e-3}[_dtype],
        constructs="simdgroup.sum functions.fast functions.fma types.INFINITY types.float2 types.int64_t barriers.in_loop "
        "barriers.tree_reduction structure.template_arguments structure.template structure.struct "
        "address_spaces.threadgroup_struct address_spaces.threadgroup_reference_to_helper",
    )(_decode)


@body(
    """
    // The cache is a ring: position p lives in slot p % WINDOW. One simdgroup per head; each lane scores one key, then
    // the lanes change roles and each sums two dimensions of the values.
    threadgroup float weights[SIMDS][32];
    const uint lane = thread_index_in_simdgroup;
    const uint local = simdgroup_index_in_threadgroup;
    const uint head = threadgroup_position_in_grid.x * SIMDS + local;
    const uint batch = threadgroup_position_in_grid.y;
    const uint kv_head = head / (HEADS / KV_HEADS);
    const int position = positions[batch];
    const int first = max(0, position + 1 - WINDOW);
    const int count = position + 1 - first;

    const device half4* q = (const device half4*)(queries + (batch * HEADS + head) * D);
    const device half* keys_of_head = keys + (batch * KV_HEADS + kv_head) * WINDOW * D;
    const device half* values_of_head = values + (batch * KV_HEADS + kv_head) * WINDOW * D;

    // A learned logit takes part in the denominator, but has no value.
    float largest = sinks[head];
    float denominator = 1.0f;
    float2 sum = 0.0f;
    for (int base = 0; base < count; base += 32) {
      int mine = base + int(lane);
      float score = -INFINITY;
      if (mine < count) {
        const device half4* k = (const device half4*)(keys_of_head + ((first + mine) % WINDOW) * D);
        float4 partial = 0.0f;
    #pragma unroll
        for (int j = 0; j < D / 4; ++j) {
          partial += float4(q[j]) * float4(k[j]);
        }
        score = (partial.x + partial.y + partial.z + partial.w) * rsqrt(float(D));
      }
      float higher = max(largest, simd_max(score));
      float correction = exp(largest - higher);
      float weight = exp(score - higher);
      denominator = denominator * correction + simd_sum(weight);
      sum *= correction;
      largest = higher;
      weights[local][lane] = weight;
      simdgroup_barrier(mem_flags::mem_threadgroup);
      int here = min(32, count - base);
      for (int j = 0; j < here; ++j) {
        const device half2* v = (const device half2*)(values_of_head + ((first + base + j) % WINDOW) * D);
        sum += weights[local][j] * float2(v[lane]);
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    ((device float2*)(out + (batch * HEADS + head) * D))[lane] = sum / denominator;
    """,
    template=[("HEADS", 4), ("KV_HEADS", 2), ("WINDOW", 48), ("D", 64), ("SIMDS", 2)],
    inputs=lambda rng: {
        "queries": normal(rng, "float16", 3, 4, 64),
        "keys": normal(rng, "float16", 3, 2, 48, 64),
        "values": positive(rng, "float16", 3, 2, 48, 64),
        "sinks": np.array([0.5, -1.0, 2.0, 0.0, 0, 0, 0, 0], np.float32),
        "positions": np.array([20, 47, 101], np.int32),
    },
    outputs={"out": ((3, 4, 64), "float32")},
    grid=(128, 3, 1),
    threadgroup=(64, 1, 1),
    tolerance=4e-6,
    constructs="simdgroup.max simdgroup.sum synchronisation.simdgroup_barrier types.half4 types.half2 types.float2 "
    "address_spaces.cast_to_vector address_spaces.threadgroup_2d_array functions.rsqrt layouts.few_elements",
)
def decode_attention_ring_with_sinks(queries, keys, values, sinks, positions):
    out = np.zeros((3, 4, 64))
    for b, position in enumerate(positions):
        slots = np.arange(max(0, position + 1 - 48), position + 1) % 48
        for h in range(4):
            q = queries[b, h : h + 1].astype(np.float64) / 8
            out[b, h] = attend(q, keys[b, h // 2, slots], values[b, h // 2, slots], sink=float(sinks[h]))[0][0]
    return out


@body(
    """
    // First pass: each block of keys has a threadgroup of its own, so that a long cache fills the machine.
    const uint lane = thread_index_in_simdgroup;
    const uint block = threadgroup_position_in_grid.z;
    const uint blocks = threadgroups_per_grid.z;
    const uint head = thread_position_in_grid.y;
    const uint kv_head = head / GQA;
    const int n = int(keys_shape[1]);

    // Queries are scaled so that exp2 serves.
    float q[D / 32];
    float o[D / 32] = {0};
    for (int j = 0; j < D / 32; ++j) q[j] = queries[head * D + lane + 32 * j] * (scale * 1.44269504089f);

    float m = -FLT_MAX;
    float l = 0;
    for (int i = block; i < n; i += blocks) {
      const device float* k = keys + (kv_head * n + i) * D;
      const device float* v = values + (kv_head * n + i) * D;
      float s = 0;
      for (int j = 0; j < D / 32; ++j) s = fma(q[j], k[lane + 32 * j], s);
      s = simd_sum(s);
      float next = fmax(m, s);
      float keep = exp2(m - next), take = exp2(s - next);
      l = fma(l, keep, take);
      for (int j = 0; j < D / 32; ++j) o[j] = fma(o[j], keep, take * v[lane + 32 * j]);
      m = next;
    }
    const uint row = head * blocks + block;
    for (int j = 0; j < D / 32; ++j) partials[row * D + lane + 32 * j] = o[j];
    if (simd_is_first()) {
      maxima[row] = m;
      sums[row] = l;
    }
    """,
    template=[("D", 64), ("GQA", 2)],
    inputs=lambda rng: {
        "queries": normal(rng, "float32", 4, 64),
        "keys": normal(rng, "float32", 2, 45, 64) + np.float32(0.3),
        "values": positive(rng, "float32", 2, 45, 64),
        "scale": 0.125,
    },
    outputs={
        "partials": ((4, 8, 64), "float32"),
        "maxima": ((4, 8), "float32"),
        "sums": ((4, 8), "float32"),
    },
    grid=(32, 4, 8),
    threadgroup=(32, 2, 1),
    # The largest score of a block can be anything; what is near zero is off by the errors of its terms.
    tolerance=2e-5,
    constructs="functions.exp2 functions.fma functions.fmax types.FLT_constants simdgroup.is_first simdgroup.sum "
    "attributes.threadgroups_per_grid attributes.threadgroup_position_in_grid",
)
def split_attention_first_pass(queries, keys, values, scale):
    k, v = (a.astype(np.float64).repeat(2, axis=0) for a in (keys, values))
    scores = np.einsum("hd,hnd->hn", queries.astype(np.float64), k) * scale * np.log2(np.e)
    partials, maxima, sums = np.zeros((4, 8, 64)), np.zeros((4, 8)), np.zeros((4, 8))
    for b in range(8):
        part = scores[:, b::8]
        maxima[:, b] = part.max(axis=1)
        weights = np.exp2(part - maxima[:, b : b + 1])
        sums[:, b] = weights.sum(axis=1)
        partials[:, b] = np.einsum("hn,hnd->hd", weights, v[:, b::8])
    return partials, maxima, sums


@body(
    """
    // Second pass: merges what the blocks of one head have found. A threadgroup is one head; 32 simdgroups each take
    // some blocks, and a tile in threadgroup memory turns rows of blocks into columns of dimensions.
    constexpr int LINE = 32 + 1;
    threadgroup float tile[32 * LINE];
    const int blocks = maxima_shape[1];
    const int head = threadgroup_position_in_grid.x;
    const int row = simdgroup_index_in_threadgroup;
    const int lane = thread_index_in_simdgroup;

    float m = lane < blocks ? maxima[head * blocks + lane] : -INFINITY;
    float highest = simd_max(m);
    float factor = metal::exp2(m - highest);
    float denominator = simd_sum(lane < blocks ? factor * sums[head * blocks + lane] : 0.0f);
    for (int base = 0; base < D; base += 32) {
      float part = 0;
      for (int b = row; b < blocks; b += 32) {
        part += partials[(head * blocks + b) * D + base + lane] * simd_shuffle(factor, ushort(b));
      }
      tile[row * LINE + lane] = part;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float sum = simd_sum(tile[lane * LINE + row]);
      if (lane == 0) {
        out[head * D + base + row] = T(denominator == 0 ? sum : sum / denominator);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (lane == 0 && row == 0) logsumexp[head] = (highest + log2(denominator)) * M_LN2_F;
    """,
    template=[("T", Dtype("bfloat16")), ("D", 96)],
    inputs=lambda rng: {
        "partials": rng.uniform(1, 9, (3, 20, 96)).astype(np.float32),
        "maxima": rng.uniform(-4, 4, (3, 20)).astype(np.float32),
        "sums": rng.uniform(1, 5, (3, 20)).astype(np.float32),
    },
    outputs={"out": ((3, 96), "bfloat16"), "logsumexp": ((3,), "float32")},
    grid=(3 * 1024, 1, 1),
    threadgroup=(1024, 1, 1),
    tolerance=4.5e-3,
    constructs="simdgroup.sum simdgroup.max simdgroup.shuffle barriers.transposition barriers.in_loop functions.log2 "
    "functions.exp2 types.M_constants types.INFINITY",
)
def split_attention_second_pass(partials, maxima, sums):
    factor = np.exp2(maxima.astype(np.float64))
    total = (factor * sums).sum(axis=1)
    return np.einsum("hb,hbd->hd", factor, partials) / total[:, None], np.log(total)


_PAGED_HEADER = """
// Attention over a cache in pages. Keys of a page lie as [D / X][PAGE][X], so that neighbouring threads, which have
// neighbouring tokens, read neighbouring vectors; values as [D][PAGE], so that a dot product with the weights of a page's
// tokens runs along memory.

template <typename T>
struct Vec4Of {};

template <>
struct Vec4Of<float> {
  using type = float4;
};

template <>
struct Vec4Of<half> {
  using type = half4;
};

template <typename T>
inline float4 load4(const device T* p) {
  return float4(*reinterpret_cast<const device typename Vec4Of<T>::type*>(p));
}

inline float dot4(float4 a, float4 b, float start) {
  start = fma(a.x, b.x, start);
  start = fma(a.y, b.y, start);
  start = fma(a.z, b.z, start);
  return fma(a.w, b.w, start);
}

// What a threadgroup's simdgroups agree on. `scratch` has a place for each of them; it can be used again at once.
template <int SIMDS>
inline float threadgroup_max(threadgroup float* scratch, float value, uint simd_id, uint lane) {
  value = simd_max(value);
  if (lane == 0) {
    scratch[simd_id] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  value = lane < SIMDS ? scratch[lane] : -FLT_MAX;
  value = simd_max(value);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return value;
}

template <int SIMDS>
inline float threadgroup_sum(threadgroup float* scratch, float value, uint simd_id, uint lane) {
  value = simd_sum(value);
  if (lane == 0) {
    scratch[simd_id] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  value = lane < SIMDS ? scratch[lane] : 0.0f;
  value = simd_sum(value);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return value;
}
"""

_PAGED = """
    constexpr int THREADS = 128;
    constexpr int SIMDS = THREADS / 32;
    // A token's key is shared by GROUP threads, each with every GROUP-th vector of X elements.
    constexpr int X = 16 / int(sizeof(T));
    constexpr int GROUP = PAGE >= 32 ? 1 : 32 / PAGE;
    constexpr int GROUPS_PER_SIMD = 32 / GROUP;
    constexpr int VECTORS = D / X;
    static_assert(VECTORS % GROUP == 0, "a head is whole vectors for each thread of a group");

    threadgroup float scores[MAX_CONTEXT];
    threadgroup float4 query[D / 4];
    threadgroup float scratch[SIMDS];
    threadgroup float halves[D * (SIMDS / 2)];

    const int head = threadgroup_position_in_grid.x;
    const int sequence = threadgroup_position_in_grid.y;
    const int heads = threadgroups_per_grid.x;
    const int thread_id = thread_position_in_threadgroup.x;
    const uint simd_id = simdgroup_index_in_threadgroup;
    const uint lane = thread_index_in_simdgroup;

    const int context = context_lengths[sequence];
    if (context == 0) {
      // An empty slot of the batch: nothing to attend to, all of the threadgroup leaves.
      for (int d = thread_id; d < D; d += THREADS) out[(sequence * heads + head) * D + d] = T(0);
      return;
    }
    const int pages = (context + PAGE - 1) / PAGE;
    const int table_width = block_tables_shape[1];
    const device int* table = block_tables + sequence * table_width;
    const int kv_heads = key_cache_shape[1];
    const int kv_head = head / (heads / kv_heads);

    for (int j = thread_id; j < D / 4; j += THREADS) {
      query[j] = load4(queries + (sequence * heads + head) * D + 4 * j) * scale;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // ALiBi: the further back a token, the less it counts.
    float slope = 0.0f;
    if (ALIBI) slope = alibi_slopes[head];

    const int group = lane / GROUP;
    const int group_offset = lane % GROUP;
    float highest = -FLT_MAX;
    for (int page = simd_id; page < pages; page += SIMDS) {
      const int64_t physical = table[page];
      const device T* page_keys = key_cache + (physical * kv_heads + kv_head) * (D * PAGE);
      for (int first = 0; first < PAGE; first += GROUPS_PER_SIMD) {
        const int slot = first + group;
        const int token = page * PAGE + slot;
        float partial = 0.0f;
    #pragma unroll
        for (int j = 0; j < VECTORS / GROUP; ++j) {
          const int vector = j * GROUP + group_offset;
          const device T* k = page_keys + (vector * PAGE + slot) * X;
    #pragma unroll
          for (int part = 0; part < X / 4; ++part) {
            partial = dot4(query[vector * (X / 4) + part], load4(k + 4 * part), partial);
          }
        }
        // Of the group's threads only.
    #pragma unroll
        for (ushort mask = GROUP / 2; mask >= 1; mask /= 2) {
          partial += simd_shuffle_xor(partial, mask);
        }
        if (group_offset == 0) {
          const bool masked = token >= context;
          const float score = partial + slope * float(token - context + 1);
          if (token < MAX_CONTEXT) scores[token] = masked ? 0.0f : score;
          highest = masked ? highest : max(highest, score);
        }
      }
    }
    highest = threadgroup_max<SIMDS>(scratch, highest, simd_id, lane);

    float sum = 0.0f;
    for (int i = thread_id; i < context; i += THREADS) {
      const float weight = exp(scores[i] - highest);
      scores[i] = weight;
      sum += weight;
    }
    sum = threadgroup_sum<SIMDS>(scratch, sum, simd_id, lane);
    const float inverse = 1.0f / (sum + 1e-6f);
    for (int i = thread_id; i < context; i += THREADS) {
      scores[i] *= inverse;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Values: a thread has rows of the page's [D][PAGE]; four tokens at a time.
    constexpr int ROWS = D / 32;
    float sums[ROWS];
    for (int r = 0; r < ROWS; ++r) sums[r] = 0.0f;
    for (int page = simd_id; page < pages; page += SIMDS) {
      const int64_t physical = table[page];
      const device T* page_values = value_cache + (physical * kv_heads + kv_head) * (D * PAGE);
      for (int slot = 0; slot < PAGE; slot += 4) {
        const int token = page * PAGE + slot;
        // The last page is full of what earlier sequences left there, NaNs included: it is not even multiplied.
        float4 weight = 0.0f;
        bool4 inside = int4(0, 1, 2, 3) + token < context;
        if (inside.x) weight.x = scores[token];
        if (inside.y) weight.y = scores[token + 1];
        if (inside.z) weight.z = scores[token + 2];
        if (inside.w) weight.w = scores[token + 3];
        for (int r = 0; r < ROWS; ++r) {
          float4 v = load4(page_values + (r * 32 + int(lane)) * PAGE + slot);
          sums[r] = dot4(weight, select(float4(0.0f), v, inside), sums[r]);
        }
      }
    }

    // The upper half of the simdgroups hands its sums to the lower half, until one has all.
    for (int active = SIMDS; active > 1; active /= 2) {
      const int middle = active / 2;
      if (int(simd_id) >= middle && int(simd_id) < active) {
        for (int r = 0; r < ROWS; ++r) halves[(simd_id - middle) * D + r * 32 + lane] = sums[r];
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (int(simd_id) < middle) {
        for (int r = 0; r < ROWS; ++r) sums[r] += halves[simd_id * D + r * 32 + lane];
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (simd_id == 0) {
      for (int r = 0; r < ROWS; ++r) out[(sequence * heads + head) * D + r * 32 + lane] = T(sums[r]);
    }
"""


def _paged_inputs(rng, dtype, alibi):
    x = 16 // np.dtype(DTYPES[dtype]).itemsize
    k, v = normal(rng, dtype, 9, 2, 64 // x, 8, x), positive(rng, dtype, 9, 2, 64, 8)
    # The last page of a sequence has tokens beyond its end.
    v[4, :, :, 5:] = np.nan
    k[4, :, :, 5:] = np.nan
    return {
        "queries": normal(rng, dtype, 3, 4, 64),
        "key_cache": k,
        "value_cache": v,
        "block_tables": np.array([[7, 1, 4, 0], [0, 0, 0, 0], [3, 8, 2, 6]], np.int32),
        "context_lengths": np.array([21, 0, 32], np.int32),
        "alibi_slopes": np.array([0.5, 0.25, 0.125, 0.0625], np.float32) * (1 if alibi else np.nan),
        "scale": 0.125,
    }


for _dtype, _alibi in (("float32", True), ("float16", False)):

    def _paged(queries, key_cache, value_cache, block_tables, context_lengths, alibi_slopes, scale):
        out = np.zeros((3, 4, 64))
        slopes = np.nan_to_num(alibi_slopes).astype(np.float64)
        for s, (table, n) in enumerate(zip(block_tables, context_lengths, strict=True)):
            for h in range(4):
                if n:
                    k = key_cache[table, h // 2].transpose(0, 2, 1, 3).reshape(32, 64)[:n]
                    v = value_cache[table, h // 2].transpose(0, 2, 1).reshape(32, 64)[:n]
                    bias = slopes[h] * (np.arange(n) - n + 1)
                    out[s, h] = attend(queries[s, h : h + 1].astype(np.float64) * scale, k, v, bias)[0][0]
        return out

    body(
        _PAGED,
        name=f"paged_attention_{_dtype}",
        header=_PAGED_HEADER,
        template=[("T", Dtype(_dtype)), ("D", 64), ("PAGE", 8), ("MAX_CONTEXT", 64), ("ALIBI", _alibi)],
        inputs=lambda rng, dtype=_dtype, alibi=_alibi: _paged_inputs(rng, dtype, alibi),
        outputs={"out": ((3, 4, 64), _dtype)},
        grid=(4 * 128, 3, 1),
        threadgroup=(128, 1, 1),
        tolerance={"float32": 4e-6, "float16": 6e-4}[_dtype],
        constructs="structure.template structure.using structure.struct structure.explicit_template_arguments "
        "address_spaces.threadgroup_pointer_to_helper address_spaces.threadgroup_vectors functions.select types.bool4 "
        "simdgroup.shuffle_xor barriers.in_helper_called_twice barriers.after_early_return structure.reinterpret_cast "
        "types.vector_comparison barriers.tree_reduction",
    )(_paged)


@body(
    """
    // Multi-latent attention with the up-projections absorbed: the queries already live in the latent space, keys and
    // values are one and the same row of the cache, and what is rotated stands beside it.
    constexpr int SIMDS = 4;
    threadgroup float latent[SIMDS][R];
    threadgroup float2 state[SIMDS];
    const uint lane = thread_index_in_simdgroup, simd_id = simdgroup_index_in_threadgroup;
    const uint head = threadgroup_position_in_grid.y;
    const int n = cache_shape[0];

    float q[R / 32], q_rope = lane < P ? query_rope[head * P + lane] * scale : 0.0f;
    float o[R / 32];
    #pragma unroll
    for (int j = 0; j < R / 32; ++j) {
      q[j] = query_latent[head * R + j * 32 + lane] * scale;
      o[j] = 0.0f;
    }
    float m = -INFINITY, l = 0.0f;
    for (int i = simd_id; i < n; i += SIMDS) {
      const device bfloat* row = cache + i * (R + P);
      float c[R / 32];
      float s = lane < P ? q_rope * float(row[R + lane]) : 0.0f;
      for (int j = 0; j < R / 32; ++j) {
        c[j] = float(row[j * 32 + lane]);
        s += q[j] * c[j];
      }
      s = simd_sum(s);
      if (s > m) {
        // The maximum moves in few steps only: the correction hides behind a branch that all lanes agree on.
        float correction = exp(m - s);
        l *= correction;
        for (int j = 0; j < R / 32; ++j) o[j] *= correction;
        m = s;
      }
      float p = exp(s - m);
      l += p;
      for (int j = 0; j < R / 32; ++j) o[j] += p * c[j];
    }
    for (int j = 0; j < R / 32; ++j) latent[simd_id][j * 32 + lane] = o[j];
    if (lane == 0) state[simd_id] = float2(m, l);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float top = max(max(state[0].x, state[1].x), max(state[2].x, state[3].x));
    float4 factors = exp(float4(state[0].x, state[1].x, state[2].x, state[3].x) - top);
    float total = dot(factors, float4(state[0].y, state[1].y, state[2].y, state[3].y));
    const uint t = thread_index_in_threadgroup;
    if (t < R) {
      float4 parts = float4(latent[0][t], latent[1][t], latent[2][t], latent[3][t]);
      latent[0][t] = dot(parts, factors) / total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Back up from the latent space, by this head's matrix; a simdgroup does some rows of it.
    for (int row = simd_id; row < V; row += SIMDS) {
      float sum = 0.0f;
      for (int j = lane; j < R; j += 32) sum += up[(head * V + row) * R + j] * latent[0][j];
      sum = simd_sum(sum);
      if (lane == 0) out[head * V + row] = sum;
    }
    """,
    template=[("R", 64), ("P", 16), ("V", 24)],
    inputs=lambda rng: {
        "query_latent": normal(rng, "float32", 3, 64),
        "query_rope": normal(rng, "float32", 3, 16),
        "cache": positive(rng, "bfloat16", 33, 80),
        "up": positive(rng, "float32", 3, 24, 64),
        "scale": 0.11,
    },
    outputs={"out": ((3, 24), "float32")},
    grid=(128, 3, 1),
    threadgroup=(128, 1, 1),
    tolerance=5e-6,
    constructs="types.bfloat types.float2 types.float4 functions.dot functions.exp simdgroup.sum "
    "address_spaces.threadgroup_2d_array",
)
def multi_latent_attention(query_latent, query_rope, cache, up, scale):
    q = np.concatenate([query_latent, query_rope], axis=1).astype(np.float64) * scale
    cache = cache.astype(np.float64)
    latent = attend(q, cache, cache[:, :64])[0]
    return np.einsum("hr,hvr->hv", latent, up)


@body(
    """
    // Several drafts at once, as a tree: a draft sees the whole cache, and of the drafts those on its way to the root,
    // which a mask of 64 bits tells. The heads that share keys sit in one threadgroup and share the tiles.
    threadgroup float tile_k[TILE][D + 1];
    threadgroup float tile_v[TILE][D];
    const ushort lane = thread_index_in_simdgroup;
    const int member = simdgroup_index_in_threadgroup;
    const int kv_head = threadgroup_position_in_grid.y, draft = threadgroup_position_in_grid.z;
    const int head = kv_head * GQA + member;
    const int drafts = ancestors_shape[0];
    const int n = k_shape[1], past = n - drafts;
    const ulong seen = ancestors[draft];

    threadgroup float query[GQA][D];
    for (int d = lane; d < D; d += 32) query[member][d] = q[(head * drafts + draft) * D + d] * scale;

    float m = -1e30f, l = 0, o0 = 0, o1 = 0;
    for (int first = 0; first < n; first += TILE) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int e = thread_index_in_threadgroup; e < TILE * D; e += GQA * 32) {
        int row = e / D, column = e % D;
        bool there = first + row < n;
        tile_k[row][column] = there ? k[(kv_head * n + first + row) * D + column] : 0.0f;
        tile_v[row][column] = there ? v[(kv_head * n + first + row) * D + column] : 0.0f;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      const int key = first + lane;
      bool visible = lane < TILE && key < n;
      if (key >= past) visible = visible && ((seen >> (key - past)) & 1ul);
      // A tile in which nobody sees anything is not worth its products.
      const uint votes = uint(ulong(simd_ballot(visible)));
      if (votes == 0) continue;
      float score = -INFINITY;
      if (visible) {
        score = 0;
        for (int d = 0; d < D; ++d) score += query[member][d] * tile_k[lane][d];
      }
      const float next = max(m, simd_max(score));
      const float keep = exp(m - next), p = exp(score - next);
      l = l * keep + simd_sum(p);
      o0 *= keep;
      o1 *= keep;
      for (uint left = votes; left != 0; left &= left - 1) {
        const ushort who = ushort(ctz(left));
        const float weight = simd_shuffle(p, who);
        o0 += weight * tile_v[who][lane];
        o1 += weight * tile_v[who][lane + 32];
      }
      m = next;
    }
    device float* row = out + (head * drafts + draft) * D;
    row[lane] = o0 / l;
    row[lane + 32] = o1 / l;
    """,
    template=[("D", 64), ("GQA", 2), ("TILE", 16)],
    inputs=lambda rng: {
        "q": normal(rng, "float32", 4, 9, 64),
        "k": normal(rng, "float32", 2, 40, 64),
        "v": positive(rng, "float32", 2, 40, 64),
        # Of each draft: itself, and those above it. Each one's parent comes before it.
        "ancestors": _ancestors([-1, 0, 0, 1, 1, 2, 3, 3, 5]),
        "scale": 0.125,
    },
    outputs={"out": ((4, 9, 64), "float32")},
    grid=(64, 2, 9),
    threadgroup=(64, 1, 1),
    tolerance=4e-6,
    constructs="simdgroup.ballot simdgroup.shuffle simdgroup.run_time_lane simdgroup.max functions.ctz types.ulong "
    "barriers.with_continue address_spaces.threadgroup_2d_array barriers.in_loop",
)
def attention_of_a_tree_of_drafts(q, k, v, ancestors, scale):
    out = np.zeros((4, 9, 64))
    for draft, mask in enumerate(ancestors):
        visible = np.concatenate([np.ones(31, bool), [(int(mask) >> j) & 1 == 1 for j in range(9)]])
        for h in range(4):
            query = q[h, draft : draft + 1].astype(np.float64) * scale
            out[h, draft] = attend(query, k[h // 2, visible], v[h // 2, visible])[0][0]
    return out
