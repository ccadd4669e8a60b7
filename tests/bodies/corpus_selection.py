"""Attention that chooses: what a cache forgets, which blocks are worth looking at, and scores with relative places."""

import numpy as np

from bodies import Dtype, body
from bodies.corpus_attention import attend, normal, positive

_EVICT_HEADER = """
// A cache with a budget. What stays: the first tokens, the newest ones, and of the others those that have drawn the most
// attention. Attention is counted in whole numbers, so that every order of additions gives the same.

constant constexpr uint UNIT_BITS = 20;

// The mass of one key under the attention of the newest queries: softmax over all keys, in two passes per query. A
// simdgroup has a query; lanes have keys.
template <int D>
struct Softmax {
  float largest;
  float sum;

  static float score(const device half* query, const device half* key) {
    const device half4* q = reinterpret_cast<const device half4*>(query);
    const device half4* k = reinterpret_cast<const device half4*>(key);
    float4 parts = 0.0f;
#pragma unroll
    for (int j = 0; j < D / 4; ++j) parts = fma(float4(q[j]), float4(k[j]), parts);
    return ((parts.x + parts.y) + (parts.z + parts.w)) * rsqrt(float(D));
  }

  void look_at(const device half* query, const device half* keys, int seen, uint lane) {
    largest = -INFINITY;
    for (int i = lane; i < seen; i += 32) largest = max(largest, score(query, keys + i * D));
    largest = simd_max(largest);
    sum = 0.0f;
    for (int i = lane; i < seen; i += 32) sum += precise::exp(score(query, keys + i * D) - largest);
    sum = simd_sum(sum);
  }

  uint share(const device half* query, const device half* key) const {
    return uint(rint(precise::exp(score(query, key) - largest) / sum * float(1 << 8))) << (UNIT_BITS - 8);
  }
};

// Where the running count of a condition stands, over a threadgroup of SIMDS simdgroups: before the thread, and in all.
template <int SIMDS>
inline uint2 count_before(bool condition, threadgroup uint* scratch, uint lane, uint simd_id) {
  const uint votes = uint(ulong(simd_ballot(condition)));
  if (lane == 0) scratch[simd_id] = popcount(votes);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint before = 0, all = 0;
#pragma unroll
  for (int s = 0; s < SIMDS; ++s) {
    before += s < int(simd_id) ? scratch[s] : 0u;
    all += scratch[s];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return uint2(before + popcount(votes & ((1u << lane) - 1u)), all);
}
"""

_EVICT = """
    constexpr int SIMDS = 4;
    constexpr int THREADS = SIMDS * 32;
    threadgroup atomic_uint gathered[MOST];
    threadgroup uint masses[MOST];
    threadgroup uint scratch[SIMDS];

    const uint t = thread_index_in_threadgroup;
    const uint lane = thread_index_in_simdgroup;
    const uint simd_id = simdgroup_index_in_threadgroup;
    const int head = threadgroup_position_in_grid.x;
    const int n = keys_shape[1], queries = recent_shape[1];
    const device half* k = keys + head * n * D;

    // 1. What the newest queries look at, and what was counted before. Of many heads that share keys all count.
    for (int i = t; i < n; i += THREADS) atomic_store_explicit(&gathered[i], old_masses[head * n + i], memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int row = simd_id; row < queries * GQA; row += SIMDS) {
      const int query = row / GQA;
      const device half* q = recent + ((head * GQA + row % GQA) * queries + query) * D;
      // The newest query is the last token's.
      const int seen = n - queries + query + 1;
      Softmax<D> softmax;
      softmax.look_at(q, k, seen, lane);
      for (int i = lane; i < seen; i += 32) {
        const uint share = softmax.share(q, k + i * D);
        if (share != 0) atomic_fetch_add_explicit(&gathered[i], share, memory_order_relaxed);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // 2. Those that stay in any case have the most that there is.
    for (int i = t; i < n; i += THREADS) {
      const bool safe = i < FIRST || i >= n - LATEST;
      masses[i] = safe ? 0xffffffffu : atomic_load_explicit(&gathered[i], memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // 3. The largest threshold that at least BUDGET reach: bit by bit from the top.
    uint threshold = 0;
    if (n > BUDGET) {
      for (uint bit = 1u << 31; bit != 0; bit >>= 1) {
        const uint candidate = threshold | bit;
        uint reached = 0;
        for (int base = 0; base < n; base += THREADS) {
          const int i = base + int(t);
          reached += count_before<SIMDS>(i < n && masses[i] >= candidate, scratch, lane, simd_id).y;
        }
        if (reached >= BUDGET) threshold = candidate;
      }
    }

    // 4. Those above stay; of those that are equal, the latest, as many as there is room for.
    uint above = 0, equal = 0;
    for (int base = 0; base < n; base += THREADS) {
      const int i = base + int(t);
      above += count_before<SIMDS>(i < n && masses[i] > threshold, scratch, lane, simd_id).y;
      equal += count_before<SIMDS>(i < n && masses[i] == threshold, scratch, lane, simd_id).y;
    }
    const uint room = min(uint(BUDGET), uint(n)) - above;
    const uint skipped = equal - min(room, equal);

    // 5. The kept keys and values move together, in order.
    uint placed = 0, passed = 0;
    for (int base = 0; base < n; base += THREADS) {
      const int i = base + int(t);
      const bool is_equal = i < n && masses[i] == threshold;
      const uint2 equals = count_before<SIMDS>(is_equal, scratch, lane, simd_id);
      const bool stays = i < n && (masses[i] > threshold || (is_equal && passed + equals.x >= skipped));
      const uint2 place = count_before<SIMDS>(stays, scratch, lane, simd_id);
      if (stays) {
        const uint to = placed + place.x;
        kept[head * BUDGET + to] = i;
        new_masses[head * BUDGET + to] = atomic_load_explicit(&gathered[i], memory_order_relaxed);
        for (int d = 0; d < D; d += 4) {
          *(device half4*)(new_keys + (head * BUDGET + to) * D + d) = *(const device half4*)(k + i * D + d);
          *(device half4*)(new_values + (head * BUDGET + to) * D + d) =
              *(const device half4*)(values + (head * n + i) * D + d);
        }
      }
      placed += place.y;
      passed += equals.y;
    }
"""


@body(
    _EVICT,
    header=_EVICT_HEADER,
    template=[("D", 16), ("GQA", 2), ("MOST", 192), ("BUDGET", 60), ("FIRST", 4), ("LATEST", 20)],
    inputs=lambda rng: {
        "recent": normal(rng, "float16", 6, 3, 16),
        "keys": (rng.normal(size=(3, 150, 16)) * rng.choice([0.5, 2.5], (3, 150, 1))).astype(np.float16),
        "values": normal(rng, "float16", 3, 150, 16),
        "old_masses": (rng.integers(0, 6, (3, 150)) << 12).astype(np.uint32),
    },
    outputs={
        "kept": ((3, 60), "int32"),
        "new_masses": ((3, 60), "uint32"),
        "new_keys": ((3, 60, 16), "float16"),
        "new_values": ((3, 60, 16), "float16"),
    },
    grid=(3 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="structure.template structure.struct address_spaces.threadgroup_atomic synchronisation.fetch_add "
    "synchronisation.load synchronisation.store functions.popcount simdgroup.ballot functions.rint functions.precise "
    "barriers.in_helper_called_twice barriers.nested_loop address_spaces.threadgroup_pointer_to_helper types.half4",
)
def evict_what_draws_little_attention(recent, keys, values, old_masses):
    masses = old_masses.astype(np.int64)
    for head in range(3):
        for row in range(6):
            query = row // 2
            q, seen = recent[head * 2 + row % 2, query].astype(np.float64), 148 + query
            scores = keys[head, :seen].astype(np.float64) @ q / 4
            p = np.exp(scores - scores.max())
            # In steps of 1/256: the seed's values are not near the middle of two.
            masses[head, :seen] += np.rint(p / p.sum() * 256).astype(np.int64) << 12
    rank = masses.copy()
    rank[:, :4] = rank[:, -20:] = 2**32
    # Of equals the later one is first.
    order = np.argsort(-rank[:, ::-1], axis=1, kind="stable")[:, :60]
    kept = np.sort(149 - order, axis=1)
    at = np.arange(3)[:, None]
    return kept.astype(np.int32), masses[at, kept].astype(np.uint32), keys[at, kept], values[at, kept]


@body(
    """
    // Blocks of keys are judged by a bound: the largest product that a query can have with anything between the block's
    // lowest and highest key, dimension by dimension. The TOP best blocks, the newest among them, are looked at in full.
    constexpr int D = 32;
    threadgroup float bounds[64];
    threadgroup int chosen[TOP];
    const uint lane = thread_index_in_simdgroup;
    const int head = threadgroup_position_in_grid.x;
    const int n = keys_shape[1], blocks = (n + BLOCK - 1) / BLOCK;
    const float q = queries[head * D + lane];

    for (int block = 0; block < blocks; ++block) {
      const float low = lows[(head * blocks + block) * D + lane], high = highs[(head * blocks + block) * D + lane];
      const float bound = simd_sum(q < 0 ? q * low : q * high);
      if (simd_is_first()) bounds[block] = block == blocks - 1 ? FLT_MAX : bound;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < TOP; ++k) {
      float best = -FLT_MAX;
      int at = INT_MAX;
      for (int block = lane; block < blocks; block += 32)
        if (bounds[block] > best) best = bounds[block], at = block;
      const float top = simd_max(best);
      const int block = simd_min(best == top ? at : INT_MAX);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (lane == 0) {
        bounds[block] = -INFINITY;
        chosen[k] = block;
        looked_at[head * TOP + k] = block;
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }

    float m = -INFINITY, l = 0, o = 0;
    for (int k = 0; k < TOP; ++k) {
      const int first = chosen[k] * BLOCK, last = min(first + BLOCK, n);
      for (int i = first; i < last; ++i) {
        const float s = simd_sum(q * keys[(head * n + i) * D + lane]) * 0.176776695f;
        const float higher = max(m, s), keep = exp(m - higher), p = exp(s - higher);
        m = higher;
        l = l * keep + p;
        o = o * keep + p * values[(head * n + i) * D + lane];
      }
    }
    out[head * D + lane] = o / l;
    """,
    template=[("BLOCK", 16), ("TOP", 4)],
    inputs=lambda rng: _with_bounds(rng),
    outputs={"out": ((3, 32), "float32"), "looked_at": ((3, 4), "int32")},
    grid=(3 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=4e-6,
    constructs="simdgroup.sum simdgroup.max simdgroup.min simdgroup.is_first synchronisation.simdgroup_barrier "
    "types.FLT_constants address_spaces.threadgroup_array",
)
def attention_to_the_best_blocks(queries, keys, values, lows, highs):
    out, looked_at = np.zeros((3, 32)), np.zeros((3, 4), np.int32)
    for head in range(3):
        q = queries[head].astype(np.float64)
        bounds = np.maximum(q * lows[head], q * highs[head]).sum(axis=1)
        bounds[-1] = np.inf
        looked_at[head] = best = np.argsort(-bounds, kind="stable")[:4]
        rows = np.concatenate([np.arange(b * 16, min(b * 16 + 16, 203)) for b in best])
        out[head] = attend(q[None] * 0.176776695, keys[head, rows], values[head, rows])[0][0]
    return out, looked_at


def _with_bounds(rng):
    keys = normal(rng, "float32", 3, 203, 32)
    blocks = [keys[:, at : at + 16] for at in range(0, 203, 16)]
    return {
        "queries": normal(rng, "float32", 3, 32),
        "keys": keys,
        "values": positive(rng, "float32", 3, 203, 32),
        "lows": np.stack([b.min(axis=1) for b in blocks], axis=1),
        "highs": np.stack([b.max(axis=1) for b in blocks], axis=1),
    }


@body(
    """
    // Content and place apart: keys meet queries, queries meet relative places, keys meet them too. Each of the three is a
    // product of its own, and far places share a bucket. Eight queries to a threadgroup, a quadgroup each.
    constexpr int SPAN = PLACES / 2;
    const uint quad = thread_index_in_threadgroup / 4, part = thread_index_in_quadgroup;
    const int i = int(threadgroup_position_in_grid.x * 8 + quad), head = threadgroup_position_in_grid.y;
    const int n = q_shape[1];
    // A quadgroup beyond the end works on the last query, and does not write.
    const int row = min(i, n - 1);
    const float4 query = float4(((const device packed_float4*)q)[(head * n + row) * 4 + part]);

    float largest = -INFINITY, sum = 0;
    float4 total = 0;
    for (int j = 0; j < n; ++j) {
      if (!mask[j]) continue;
      const float4 key = float4(((const device packed_float4*)k)[(head * n + j) * 4 + part]);
      const int place = clamp(row - j + SPAN, 0, PLACES - 1), back = clamp(j - row + SPAN, 0, PLACES - 1);
      const float4 place_key = float4(((const device packed_float4*)place_keys)[(head * PLACES + place) * 4 + part]);
      const float4 place_query = float4(((const device packed_float4*)place_queries)[(head * PLACES + back) * 4 + part]);
      float score = dot(query, key) + dot(query, place_key) + dot(key, place_query);
      // One over the root of three times the width.
      score = quad_sum(score) * 0.144337567f;
      const float higher = fmax(largest, score);
      const float keep = exp(largest - higher), weight = exp(score - higher);
      sum = sum * keep + weight;
      total = total * keep + weight * float4(((const device packed_float4*)v)[(head * n + j) * 4 + part]);
      largest = higher;
    }
    if (i < n) ((device packed_float4*)out)[(head * n + i) * 4 + part] = packed_float4(total / sum);
    """,
    template=[("PLACES", 16)],
    inputs=lambda rng: {
        "q": normal(rng, "float32", 2, 21, 16),
        "k": normal(rng, "float32", 2, 21, 16),
        "v": positive(rng, "float32", 2, 21, 16),
        "place_keys": normal(rng, "float32", 2, 16, 16),
        "place_queries": normal(rng, "float32", 2, 16, 16),
        "mask": np.arange(21) % 7 != 5,
    },
    outputs={"out": ((2, 21, 16), "float32")},
    grid=(3 * 32, 2, 1),
    threadgroup=(32, 1, 1),
    tolerance=4e-6,
    constructs="types.packed_vectors attributes.thread_index_in_quadgroup simdgroup.quad_sum functions.clamp "
    "functions.fmax types.bool",
)
def attention_with_places_apart(q, k, v, place_keys, place_queries, mask):
    q, k = q.astype(np.float64), k.astype(np.float64)
    place = np.clip(np.arange(21)[:, None] - np.arange(21) + 8, 0, 15)
    back = np.clip(np.arange(21) - np.arange(21)[:, None] + 8, 0, 15)
    of_queries = np.einsum("hid,hijd->hij", q, place_keys[:, place])
    of_keys = np.einsum("hjd,hijd->hij", k, place_queries[:, back])
    bias = (of_queries + of_keys) * 0.144337567 + np.where(mask, 0, -np.inf)
    return attend(q * 0.144337567, k, v, bias)[0]


@body(
    """
    // Attention of two chunks of keys, done apart, as one: outputs with the logarithms of their sums. Either may have seen
    // nothing. A vector of four to a thread, of any type.
    const uint3 at = thread_position_in_grid;
    const uint row = at.y + at.z * threads_per_grid.y;
    const uint fours = threads_per_grid.x;
    const float a = logs_a[row], b = logs_b[row];
    const float top = fmax(a, b);
    // Both are empty: the exponent of minus infinity less itself is no number.
    const float2 weights = top == -INFINITY ? float2(0.0f) : exp2((float2(a, b) - top) * M_LOG2E_F);
    const float sum = weights.x + weights.y;
    const vec<T, 4> first = *(reinterpret_cast<const device vec<T, 4>*>(out_a) + row * fours + at.x);
    const vec<T, 4> second = *(reinterpret_cast<const device vec<T, 4>*>(out_b) + row * fours + at.x);
    float4 merged = 0.0f;
    if (weights.x != 0) merged += weights.x * float4(first);
    if (weights.y != 0) merged += weights.y * float4(second);
    *(reinterpret_cast<device vec<T, 4>*>(out) + row * fours + at.x) = vec<T, 4>(sum == 0 ? merged : merged / sum);
    if (at.x == 0) logs[row] = sum == 0 ? -INFINITY : top + log(sum);
    """,
    template=[("T", Dtype("bfloat16"))],
    inputs=lambda rng: _two_chunks(rng),
    outputs={"out": ((3, 10, 24), "bfloat16"), "logs": ((3, 10), "float32")},
    grid=(6, 10, 3),
    threadgroup=(6, 4, 3),
    tolerance=4.5e-3,
    constructs="types.vec structure.reinterpret_cast functions.exp2 functions.fmax functions.log types.M_constants "
    "types.INFINITY launch.edge_threadgroups",
)
def merge_two_attentions(out_a, out_b, logs_a, logs_b):
    weights = np.exp(np.stack([logs_a, logs_b]).astype(np.float64))
    outs = np.nan_to_num(np.stack([out_a, out_b]).astype(np.float64))
    total = weights.sum(axis=0)
    out = (weights[..., None] * outs).sum(axis=0) / np.where(total, total, 1)[..., None]
    return out, np.log(total)


def _two_chunks(rng):
    chunks: dict[str, np.ndarray] = {}
    for name, nothing in (("a", [2, 7, 11]), ("b", [5, 7, 20])):
        out, logs = positive(rng, "bfloat16", 30, 24), rng.uniform(1, 3, 30).astype(np.float32)
        # Who has seen nothing has divided by nothing.
        out[nothing], logs[nothing] = np.nan, -np.inf
        chunks |= {f"out_{name}": out.reshape(3, 10, 24), f"logs_{name}": logs.reshape(3, 10)}
    return {name: chunks[name] for name in ("out_a", "out_b", "logs_a", "logs_b")}
