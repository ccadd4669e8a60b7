"""From logits to tokens: penalties, thresholds, draws, and drafts that are verified."""

import numpy as np

from bodies import DTYPES, Dtype, body

_SAMPLER_HEADER = """
// Floats as unsigned integers of the same order, so that thresholds can be found bit by bit.
inline uint ordered(float v) {
  const uint bits = as_type<uint>(v);
  return bits ^ ((bits & 0x80000000u) ? 0xffffffffu : 0x80000000u);
}

inline float unordered(uint key) {
  return as_type<float>(key ^ ((key & 0x80000000u) ? 0x80000000u : 0xffffffffu));
}

// What the threads of one row share.
template <int SIMDS>
struct Shared {
  float floats[SIMDS];
  uint uints[SIMDS];
  atomic_uint digits[256];
  uint found[2];
};

#define ACROSS_SIMDGROUPS(NAME, TYPE, FIELD, OF_LANES, NOTHING)                     \\
  template <int SIMDS>                                                              \\
  inline TYPE NAME(threadgroup Shared<SIMDS>& shared, TYPE v, uint lane, uint id) { \\
    v = OF_LANES(v);                                                                \\
    if (lane == 0) shared.FIELD[id] = v;                                            \\
    threadgroup_barrier(mem_flags::mem_threadgroup);                                \\
    v = OF_LANES(lane < SIMDS ? shared.FIELD[lane] : TYPE(NOTHING));                \\
    threadgroup_barrier(mem_flags::mem_threadgroup);                                \\
    return v;                                                                       \\
  }

ACROSS_SIMDGROUPS(row_sum, float, floats, simd_sum, 0)
ACROSS_SIMDGROUPS(row_max, float, floats, simd_max, -INFINITY)
ACROSS_SIMDGROUPS(row_count, uint, uints, simd_sum, 0)
ACROSS_SIMDGROUPS(row_min, uint, uints, simd_min, 0xffffffff)

#undef ACROSS_SIMDGROUPS

// The k-th largest key of the row, by four digits of eight bits from the top: a histogram of the digit among those
// whose upper digits are right, then the place in it where k keys are reached from above.
template <int SIMDS, typename Key>
inline uint kth_largest(threadgroup Shared<SIMDS>& shared, Key key_at, int n, uint k, uint t) {
  uint prefix = 0, known = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (uint d = t; d < 256; d += SIMDS * 32) {
      atomic_store_explicit(&shared.digits[d], 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = t; i < n; i += SIMDS * 32) {
      const uint key = key_at(i);
      if ((key & known) == prefix) {
        atomic_fetch_add_explicit(&shared.digits[(key >> shift) & 0xff], 1, memory_order_relaxed);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
      uint left = k, d = 255;
      for (;; --d) {
        const uint here = atomic_load_explicit(&shared.digits[d], memory_order_relaxed);
        if (here >= left || d == 0) break;
        left -= here;
      }
      shared.found[0] = d;
      shared.found[1] = left;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    prefix |= shared.found[0] << shift;
    known |= 0xffu << shift;
    k = shared.found[1];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  return prefix;
}
"""

_SAMPLER = """
    // One threadgroup per row: temperature, then the K most probable, then as many of them as make up P of the mass, then
    // those not too much less probable than the best; from what is left one is drawn with the row's random number.
    constexpr int THREADS = SIMDS * 32;
    threadgroup Shared<SIMDS> shared;
    const uint t = thread_index_in_threadgroup;
    const uint lane = thread_index_in_simdgroup;
    const uint id = simdgroup_index_in_threadgroup;
    const uint row = threadgroup_position_in_grid.x;
    const int n = logits_shape[1];
    const device T* own = logits + row * n;
    const float temperature = settings[row * 4];
    const uint top_k = uint(settings[row * 4 + 1]);
    const float top_p = settings[row * 4 + 2];
    const float min_p = settings[row * 4 + 3];

    auto key_at = [&](int i) { return ordered(float(own[i])); };

    float best = -INFINITY;
    for (int i = t; i < n; i += THREADS) best = max(best, float(own[i]));
    best = row_max<SIMDS>(shared, best, lane, id);

    if (temperature == 0.0f) {
      // The first of the best.
      uint first = 0xffffffff;
      for (int i = int(t); i < n; i += THREADS) {
        if (float(own[i]) == best) {
          first = uint(i);
          break;
        }
      }
      first = row_min<SIMDS>(shared, first, lane, id);
      if (t == 0) {
        tokens[row] = int(first);
        kept[row] = 1;
        probabilities[row] = 1.0f;
      }
      return;
    }

    const float per = 1.0f / temperature;
    auto weight_at = [&](int i) { return exp((float(own[i]) - best) * per); };

    // Everything from this key upwards is kept. Equals of the K-th are kept as well.
    uint threshold = 0;
    if (top_k > 0 && top_k < uint(n)) threshold = kth_largest<SIMDS>(shared, key_at, n, top_k, t);

    float mass = 0.0f;
    for (int i = t; i < n; i += THREADS) {
      if (key_at(i) >= threshold) mass += weight_at(i);
    }
    mass = row_sum<SIMDS>(shared, mass, lane, id);

    if (top_p < 1.0f) {
      // The highest threshold above which there still is enough: bit by bit, like a number that is guessed.
      uint guess = 0;
      for (uint bit = 1u << 31; bit != 0; bit >>= 1) {
        const uint candidate = guess | bit;
        float above = 0.0f;
        for (int i = t; i < n; i += THREADS) {
          const uint key = key_at(i);
          if (key >= candidate && key >= threshold) above += weight_at(i);
        }
        above = row_sum<SIMDS>(shared, above, lane, id);
        if (above >= top_p * mass) guess = candidate;
      }
      threshold = max(threshold, guess);
    }

    if (min_p > 0.0f) {
      // Weights are relative to the best one's, whose is 1.
      const float lowest = best + log(min_p) * temperature;
      threshold = max(threshold, ordered(lowest));
    }

    uint count = 0;
    mass = 0.0f;
    for (int i = t; i < n; i += THREADS) {
      if (key_at(i) >= threshold) {
        mass += weight_at(i);
        ++count;
      }
    }
    mass = row_sum<SIMDS>(shared, mass, lane, id);
    count = row_count<SIMDS>(shared, count, lane, id);

    // The draw: the first token at which the running sum exceeds the random part of the mass.
    const float aim = uniforms[row] * mass;
    float before = 0.0f;
    uint chosen = 0xffffffff;
    uint last_kept = 0;
    for (int base = 0; base < n; base += THREADS) {
      const int i = base + int(t);
      const bool is_kept = i < n && key_at(i) >= threshold;
      const float weight = is_kept ? weight_at(i) : 0.0f;
      const float upto = simd_prefix_inclusive_sum(weight);
      if (lane == 31) shared.floats[id] = upto;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float others = 0.0f, all = 0.0f;
      for (uint s = 0; s < SIMDS; ++s) {
        if (s == id) others = all;
        all += shared.floats[s];
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (is_kept) last_kept = uint(i) + 1;
      const bool reached = is_kept && before + others + upto > aim;
      chosen = row_min<SIMDS>(shared, reached ? uint(i) : 0xffffffff, lane, id);
      if (chosen != 0xffffffff) break;
      before += all;
    }
    if (chosen == 0xffffffff) {
      // Roundings have eaten the end of the mass: the last token that is kept.
      chosen = ~row_min<SIMDS>(shared, ~last_kept, lane, id) - 1;
    }
    if (t == 0) {
      tokens[row] = int(chosen);
      kept[row] = count;
      probabilities[row] = weight_at(chosen) / mass;
    }
"""


def _sampled(logits, settings, uniforms):
    rows: list[tuple[int, int, float]] = []
    for row, (temperature, top_k, top_p, min_p), u in zip(
        logits.astype(np.float64), settings.astype(np.float64), uniforms.astype(np.float64), strict=True
    ):
        if temperature == 0:
            rows.append((int(row.argmax()), 1, 1.0))
            continue
        weights = np.exp((row - row.max()) / temperature)
        order = np.argsort(-row, kind="stable")
        ranked = weights[order]
        inside = np.ones(len(row), bool)
        if 0 < top_k < len(row):
            inside = row >= row[order[int(top_k) - 1]]
        total = weights[inside].sum()
        if top_p < 1:
            enough = np.searchsorted(np.cumsum(ranked), top_p * total)
            inside &= row >= row[order[enough]]
        if min_p > 0:
            inside &= weights >= min_p
        weights = np.where(inside, weights, 0)
        token = int(np.searchsorted(np.cumsum(weights), u * weights.sum(), side="right"))
        rows.append((token, int(inside.sum()), weights[token] / weights.sum()))
    tokens, kept, probabilities = zip(*rows, strict=True)
    return np.array(tokens, np.int32), np.array(kept, np.uint32), np.array(probabilities)


for _dtype in ("float32", "float16"):
    body(
        _SAMPLER,
        name=f"sample_top_k_top_p_min_p_{_dtype}",
        header=_SAMPLER_HEADER,
        template=[("T", Dtype(_dtype)), ("SIMDS", 4)],
        inputs=lambda rng, dtype=_dtype: {
            "logits": (rng.normal(size=(8, 500)) * 3).astype(np.float32).astype(DTYPES[dtype]),
            # temperature, K, P, least part of the best
            "settings": np.array(
                [
                    [0.0, 0, 1, 0],
                    [1.0, 0, 1, 0],
                    [0.7, 20, 1, 0],
                    [1.0, 0, 0.9, 0],
                    [1.5, 0, 1, 0.05],
                    [1.2, 50, 0.8, 0.02],
                    [0.5, 1, 1, 0],
                    [2.0, 499, 0.99, 0],
                ],
                np.float32,
            ),
            "uniforms": np.array([0.5, 0.013, 0.61, 0.37, 0.93, 0.72, 0.99, 0.28], np.float32),
        },
        outputs={"tokens": ((8,), "int32"), "kept": ((8,), "uint32"), "probabilities": ((8,), "float32")},
        grid=(8 * 128, 1, 1),
        threadgroup=(128, 1, 1),
        tolerance=5e-6,
        constructs="types.as_type types.atomic_uint address_spaces.threadgroup_struct synchronisation.fetch_add "
        "synchronisation.load synchronisation.store synchronisation.threadgroup_atomics structure.lambda "
        "structure.multi_line_macro_in_header simdgroup.prefix_inclusive_sum simdgroup.min barriers.in_macro "
        "address_spaces.threadgroup_reference_to_helper barriers.with_break barriers.with_return",
    )(_sampled)


@body(
    """
    // Gumbel's way of drawing: the largest of logits with noise. The noise is a hash of the row's seed and the token, so
    // that rows can be drawn again, and nothing is kept. Numbers in fixed point stand in the upper half of 64 bits, for
    // one atomic over many threadgroups; the lower half lets the first of equals win.
    uint row = thread_position_in_grid.y;
    ulong best = 0;
    for (uint token = thread_position_in_grid.x; token < uint(logits_shape[1]); token += threads_per_grid.x) {
      uint bits = pcg(token ^ pcg(seeds[row]));
      // In (0, 1), neither end.
      float u = (float(bits >> 9) + 0.5f) * 0x1p-23f;
      float noisy = float(logits[row * logits_shape[1] + token]) - log(-log(u));
      uint key = uint(noisy * 256.0f + 0x1p20f);
      best = max(best, (ulong(key) << 32) | (0xffffffffu - token));
    }
    // 64 bits in a simdgroup, by halves.
    uint upper = uint(best >> 32), top = simd_max(upper);
    uint lower = simd_max(upper == top ? uint(best) : 0u);
    if (simd_is_first())
      atomic_max_explicit((device atomic_ulong*)&keys[row], (ulong(top) << 32) | lower, memory_order_relaxed);
    """,
    header="""
inline uint pcg(uint v) {
  uint state = v * 747796405u + 2891336453u;
  uint word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  return (word >> 22u) ^ word;
}
""",
    inputs=lambda rng: {
        "logits": (rng.integers(-24, 24, (5, 700)) / 8).astype(DTYPES["bfloat16"]),
        "seeds": rng.integers(0, 2**32, 5, np.uint32),
    },
    outputs={"keys": ((5,), "uint64")},
    grid=(256, 5, 1),
    threadgroup=(64, 1, 1),
    init_value=0,
    constructs="types.ulong types.atomic_ulong literals.hexadecimal_float "
    "simdgroup.max simdgroup.is_first functions.log attributes.threads_per_grid address_spaces.cast_to_atomic",
)
def draw_by_gumbel_noise(logits, seeds):
    def pcg(v):
        state = (v * 747796405 + 2891336453) & 0xFFFFFFFF
        word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) & 0xFFFFFFFF
        return (word >> 22) ^ word

    keys = []
    for row, seed in zip(logits.astype(np.float64), seeds, strict=True):
        # In fixed point this is far from where a rounding would count.
        bits = np.array([pcg(token ^ pcg(int(seed))) for token in range(700)])
        noisy = row - np.log(-np.log(((bits >> 9) + 0.5) / 2**23))
        fixed = (noisy * 256 + 2**20).astype(np.int64)
        token = int(fixed.argmax())
        keys.append(int(fixed[token]) << 32 | 0xFFFFFFFF - token)
    return np.array(keys, np.uint64)


@body(
    """
    // Penalties of what was said: counts of the last tokens go to threadgroup memory, as far as they concern the part of
    // the vocabulary that the threadgroup has.
    threadgroup atomic_uint counts[PART];
    threadgroup atomic_uint in_prompt[PART / 32];
    const uint t = thread_index_in_threadgroup;
    const uint row = threadgroup_position_in_grid.y, first = threadgroup_position_in_grid.x * PART;
    const uint vocabulary = logits_shape[1];
    for (uint i = t; i < PART; i += threads_per_threadgroup.x)
      atomic_store_explicit(counts + i, 0u, memory_order_relaxed);
    for (uint i = t; i < PART / 32; i += threads_per_threadgroup.x)
      atomic_store_explicit(in_prompt + i, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const int length = lengths[row], prompt = prompt_lengths[row];
    for (int i = t; i < length; i += threads_per_threadgroup.x) {
      const uint token = uint(history[row * history_shape[1] + i]) - first;
      // What is below `first` has become a large number.
      if (token >= PART) continue;
      if (i < prompt)
        atomic_fetch_or_explicit(in_prompt + token / 32, 1u << (token % 32), memory_order_relaxed);
      else
        atomic_fetch_add_explicit(counts + token, 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const float repetition = penalties[0], frequency = penalties[1], presence = penalties[2];
    for (uint i = t; i < PART && first + i < vocabulary; i += threads_per_threadgroup.x) {
      float v = logits[row * vocabulary + first + i];
      const uint count = atomic_load_explicit(counts + i, memory_order_relaxed);
      const bool said = count > 0 || (atomic_load_explicit(in_prompt + i / 32, memory_order_relaxed) >> (i % 32) & 1);
      if (said) v = v > 0 ? v / repetition : v * repetition;
      v -= frequency * float(count) + presence * float(count > 0);
      out[row * vocabulary + first + i] = v;
    }
    """,
    template=[("PART", 128)],
    inputs=lambda rng: {
        "logits": rng.normal(size=(3, 300)).astype(np.float32),
        "history": rng.integers(0, 300, (3, 90), np.int32) // np.array([[1], [2], [9]], np.int32),
        "lengths": np.array([90, 41, 77], np.int32),
        "prompt_lengths": np.array([30, 41, 0], np.int32),
        "penalties": np.array([1.25, 0.5, 0.375], np.float32),
    },
    outputs={"out": ((3, 300), "float32")},
    grid=(3 * 64, 3, 1),
    threadgroup=(64, 1, 1),
    constructs="address_spaces.threadgroup_atomic synchronisation.fetch_or synchronisation.fetch_add synchronisation.load "
    "synchronisation.store barriers.with_continue layouts.few_elements types.atomic_uint",
)
def penalties_of_repetition(logits, history, lengths, prompt_lengths, penalties):
    out = logits.copy()
    repetition, frequency, presence = penalties
    for row in range(3):
        counts = np.bincount(history[row, prompt_lengths[row] : lengths[row]], minlength=300).astype(np.float32)
        said = np.bincount(history[row, : lengths[row]], minlength=300) > 0
        v = logits[row]
        v = np.where(said, np.where(v > 0, v / repetition, v * repetition), v)
        out[row] = v - (frequency * counts + presence * (counts > 0).astype(np.float32))
    return out


@body(
    """
    // Drafts of a small model against the probabilities of the large one. A draft stays with probability p / q; at the
    // first that does not, a token is drawn from what p has more than q; if all stay, one more from the last p.
    const uint lane = thread_index_in_simdgroup, row = thread_position_in_grid.y;
    const int drafts = draft_tokens_shape[1], n = p_shape[2];
    device const float* p_rows = p + row * (drafts + 1) * n;
    device const float* q_rows = q + row * drafts * n;

    // One lane for each draft; a ballot tells the first that is refused.
    bool stays = true;
    if (int(lane) < drafts) {
      const int token = draft_tokens[row * drafts + lane];
      stays = uniforms[row * (drafts + 1) + lane] * q_rows[lane * n + token] <= p_rows[lane * n + token];
    }
    const uint refused = uint(simd_vote::vote_t(simd_ballot(!stays)));
    const int accepted = refused == 0 ? drafts : int(ctz(refused));

    device const float* p_row = p_rows + accepted * n;
    device const float* q_row = q_rows + accepted * n;
    const bool all = accepted == drafts;
    float mass = 0;
    for (int i = lane; i < n; i += 32) mass += all ? p_row[i] : max(p_row[i] - q_row[i], 0.0f);
    mass = simd_sum(mass);
    const float aim = uniforms[row * (drafts + 1) + drafts] * mass;

    int chosen = n - 1;
    float before = 0;
    for (int base = 0; base < n; base += 32) {
      const int i = base + int(lane);
      float w = 0;
      if (i < n) w = all ? p_row[i] : fdim(p_row[i], q_row[i]);
      const float upto = before + simd_prefix_inclusive_sum(w);
      const ulong over = (ulong)simd_ballot(upto > aim);
      if (over != 0) {
        chosen = base + int(ctz(over));
        break;
      }
      before = simd_broadcast(upto, 31);
    }
    for (int j = lane; j <= drafts; j += 32) {
      const int token = j < accepted ? draft_tokens[row * drafts + j] : j == accepted ? chosen : -1;
      tokens[row * (drafts + 1) + j] = token;
    }
    if (lane == 0) counts[row] = uchar(accepted);
    """,
    inputs=lambda rng: _drafts(rng),
    outputs={"tokens": ((9, 6), "int32"), "counts": ((9,), "uint8")},
    grid=(32, 9, 1),
    threadgroup=(32, 2, 1),
    constructs="simdgroup.ballot simdgroup.vote functions.ctz functions.fdim simdgroup.prefix_inclusive_sum "
    "simdgroup.broadcast types.uchar reconvergence.break_before_call launch.edge_threadgroups",
)
def verify_drafts(draft_tokens, p, q, uniforms):
    tokens, counts = np.full((9, 6), -1, np.int32), np.zeros(9, np.uint8)
    p, q, u = (a.astype(np.float64) for a in (p, q, uniforms))
    for row in range(9):
        kept = 0
        while (
            kept < 5 and u[row, kept] * q[row, kept, draft_tokens[row, kept]] <= p[row, kept, draft_tokens[row, kept]]
        ):
            kept += 1
        rest = p[row, 5] if kept == 5 else np.maximum(p[row, kept] - q[row, kept], 0)
        sums = np.cumsum(rest)
        tokens[row, :kept] = draft_tokens[row, :kept]
        tokens[row, kept] = np.searchsorted(sums, u[row, 5] * sums[-1], side="right")
        counts[row] = kept
    return tokens, counts


def _drafts(rng):
    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)

    logits = rng.normal(size=(9, 6, 75)) * 2
    q = softmax(logits[:, :5] + rng.normal(size=(9, 5, 75)) * 0.4)
    tokens = np.array([[rng.choice(75, p=r / r.sum(dtype=np.float64)) for r in row.astype(np.float64)] for row in q])
    return {
        "draft_tokens": tokens.astype(np.int32),
        "p": softmax(logits),
        "q": q,
        "uniforms": rng.uniform(0.02, 0.98, (9, 6)).astype(np.float32),
    }


@body(
    """
    // A grammar allows some tokens: a bit for each. The best allowed one, the first of equals; whole words of the mask
    // that allow nothing are not looked at.
    const uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup;
    const uint lane = thread_index_in_simdgroup, simd_id = simdgroup_index_in_threadgroup;
    const int n = logits_shape[1], words = mask_shape[1];
    threadgroup half best_of[4];
    threadgroup int place_of[4];
    half best = -HALF_MAX;
    int place = INT_MAX;
    for (int w = simd_id; w < words; w += 4) {
      const uint bits = mask[row * words + w];
      if (bits == 0) continue;
      const int i = w * 32 + lane;
      if (!(bits >> lane & 1) || i >= n) continue;
      const half v = logits[row * n + i];
      if (v > best || place == INT_MAX) {
        best = v;
        place = i;
      }
    }
    #pragma unroll 5
    for (ushort distance = 16; distance > 0; distance >>= 1) {
      const half other = simd_shuffle_xor(best, distance);
      const int other_place = simd_shuffle_xor(place, distance);
      const bool better = other_place != INT_MAX && (place == INT_MAX || other > best || (other == best && other_place < place));
      best = select(best, other, better);
      place = select(place, other_place, better);
    }
    if (lane == 0) {
      best_of[simd_id] = best;
      place_of[simd_id] = place;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t != 0) return;
    for (int s = 1; s < 4; ++s) {
      if (place_of[s] == INT_MAX) continue;
      if (place == INT_MAX || best_of[s] > best || (best_of[s] == best && place_of[s] < place)) {
        best = best_of[s];
        place = place_of[s];
      }
    }
    // -1: the grammar has come to its end.
    tokens[row] = place == INT_MAX ? -1 : place;
    allowed[row] = 0;
    for (int w = 0; w < words; ++w) allowed[row] += popcount(mask[row * words + w]);
    """,
    inputs=lambda rng: {
        "logits": (rng.integers(-40, 40, (6, 310)) / 8).astype(np.float16),
        "mask": np.packbits(_grammar(rng), axis=1, bitorder="little").view(np.uint32),
    },
    outputs={"tokens": ((6,), "int32"), "allowed": ((6,), "uint32")},
    grid=(6 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="types.HALF_constants functions.select functions.popcount simdgroup.shuffle_xor structure.pragma_unroll "
    "address_spaces.threadgroup_small_array types.half",
)
def best_token_of_a_grammar(logits, mask):
    bits = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")[:, :310].astype(bool)
    best = np.where(bits, logits, -np.inf).argmax(axis=1)
    return np.where(bits.any(axis=1), best, -1).astype(np.int32), bits.sum(axis=1).astype(np.uint32)


def _grammar(rng):
    bits = rng.random((6, 320)) < np.array([0.5, 0.02, 0, 0.1, 1, 0.003])[:, None]
    bits[:, 310:] = False
    return bits


@body(
    """
    // One step of a beam search: of BEAMS x V sums the best 2 BEAMS, in order. A lane keeps its own best in a sorted list
    // by insertion; the simdgroup then takes the best head of a list, again and again.
    constexpr int MOST = 2 * BEAMS;
    const uint lane = thread_index_in_simdgroup, batch = thread_position_in_grid.y;
    const int v = log_probabilities_shape[2];
    float values[MOST];
    int places[MOST];
    for (int j = 0; j < MOST; ++j) {
      values[j] = -FLT_MAX;
      places[j] = 0x7fffffff;
    }
    for (int i = lane; i < BEAMS * v; i += 32) {
      const int beam = i / v;
      // A beam that has ended goes on with the end, at no cost.
      float step = log_probabilities[batch * BEAMS * v + i];
      if (ended[batch * BEAMS + beam]) {
        if (i - beam * v != END) continue;
        step = 0;
      }
      const float sum = scores[batch * BEAMS + beam] + step;
      if (sum <= values[MOST - 1]) continue;
      int j = MOST - 1;
      while (j > 0 && values[j - 1] < sum) {
        values[j] = values[j - 1];
        places[j] = places[j - 1];
        --j;
      }
      values[j] = sum;
      places[j] = i;
    }
    for (int taken = 0; taken < MOST; ++taken) {
      const float top = simd_max(values[0]);
      // The first of equals.
      const int place = simd_min(values[0] == top ? places[0] : 0x7fffffff);
      if (values[0] == top && places[0] == place) {
        #pragma unroll
        for (int j = 1; j < MOST; ++j) {
          values[j - 1] = values[j];
          places[j - 1] = places[j];
        }
        values[MOST - 1] = -FLT_MAX;
        best[batch * MOST + taken] = top;
        beams[batch * MOST + taken] = short(place / v);
        tokens[batch * MOST + taken] = place % v;
      }
    }
    """,
    template=[("BEAMS", 3), ("END", 2)],
    # Sums of eighths are exact, and some are equal.
    inputs=lambda rng: {
        "log_probabilities": -(rng.integers(1, 400, (4, 3, 83)) / 8).astype(np.float32),
        "scores": -(rng.integers(1, 16, (4, 3)) / 8).astype(np.float32),
        "ended": np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 0]], bool),
    },
    outputs={"best": ((4, 6), "float32"), "beams": ((4, 6), "int16"), "tokens": ((4, 6), "int32")},
    grid=(32, 4, 1),
    threadgroup=(32, 4, 1),
    constructs="simdgroup.max simdgroup.min structure.while structure.dynamic_local_array types.short types.bool "
    "types.FLT_constants reconvergence.divergent_trip_count",
)
def beam_step(log_probabilities, scores, ended):
    steps = log_probabilities.copy()
    steps[ended] = -np.inf
    steps[ended, 2] = 0
    sums = (scores[..., None] + steps).reshape(4, -1)
    order = np.argsort(-sums, axis=1, kind="stable")[:, :6]
    return np.take_along_axis(sums, order, axis=1), (order // 83).astype(np.int16), (order % 83).astype(np.int32)


@body(
    """
    // Drafts from the prompt itself: where the last N tokens have stood before, what followed is likely to follow again.
    // The longest of the tried lengths wins, and of its places the latest.
    const int lane = thread_index_in_simdgroup, row = threadgroup_position_in_grid.x;
    const int length = lengths[row];
    device const ushort* text = tokens + row * tokens_shape[1];
    int found = -1, matched = 0;
    for (int n = LONGEST; n >= 1 && found < 0; --n) {
      if (length <= n) continue;
      int own = -1;
      for (int at = lane; at < length - n; at += 32) {
        bool same = true;
        for (int j = 0; j < n && same; ++j) same = text[at + j] == text[length - n + j];
        if (same) own = at + n;
      }
      found = simd_max(own);
      if (found >= 0) matched = n;
    }
    for (int j = lane; j < DRAFTS; j += 32) {
      const bool there = found >= 0 && found + j < length;
      drafts[row * DRAFTS + j] = there ? int(text[found + j]) : -1;
    }
    if (lane == 0) matches[row] = char(matched);
    """,
    template=[("LONGEST", 4), ("DRAFTS", 8)],
    inputs=lambda rng: {
        "tokens": rng.integers(0, np.array([[3], [8], [20], [60000], [2]]), (5, 120)).astype(np.uint16),
        "lengths": np.array([120, 100, 111, 120, 1], np.int32),
    },
    outputs={"drafts": ((5, 8), "int32"), "matches": ((5,), "int8")},
    grid=(5 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.ushort types.char simdgroup.max structure.template_arguments reconvergence.nested_loops",
)
def drafts_from_the_prompt(tokens, lengths):
    drafts, matches = np.full((5, 8), -1, np.int32), np.zeros(5, np.int8)
    for row, (text, length) in enumerate(zip(tokens.tolist(), lengths, strict=True)):
        text = text[:length]
        for n in range(4, 0, -1):
            places = [i + n for i in range(length - n) if text[i : i + n] == text[-n:]]
            if places:
                following = text[places[-1] : places[-1] + 8]
                drafts[row, : len(following)], matches[row] = following, n
                break
    return drafts, matches


def _network(n):
    """Batcher's exchanges that sort n places, in groups that could run at once."""
    span = 1
    while span < n:
        distance = span
        while distance >= 1:
            yield [
                (i + j, i + j + distance)
                for j in range(distance % span, n - distance, 2 * distance)
                for i in range(min(distance, n - j - distance))
                if (i + j) // (2 * span) == (i + j + distance) // (2 * span)
            ]
            distance //= 2
        span *= 2


def _network_source(n):
    lines = ["const uint row = thread_position_in_grid.x;", "const uint rows = threads_per_grid.x;"]
    lines += [" ".join(f"LOAD({i})" for i in range(at, at + 8)) for at in range(0, n, 8)]
    for number, group in enumerate(_network(n)):
        lines.append(f"// {number + 1}: {len(group)} exchanges")
        for at in range(0, len(group), 5):
            lines.append(" ".join(f"EXCHANGE({a}, {b})" for a, b in group[at : at + 5]))
    lines += ["const float aim = nucleus[row];", "float sum = 0, mass = 0;", "uint kept = 0;"]
    lines += [" ".join(f"WEIGH({i})" for i in range(at, at + 8)) for at in range(0, n, 8)]
    lines += [" ".join(f"KEEP({i})" for i in range(at, at + 8)) for at in range(0, n, 8)]
    return "\n".join([*lines, "sizes[row] = kept;"])


@body(
    _network_source(32),
    header="""
// A row's 32 candidates sorted in a thread's registers, without a branch: the network is written out. Keys go down, and
// of equal keys the candidate that came first is first. Then those are kept that make up the wanted part of the mass.

#define LOAD(I)                            \\
  float k##I = keys[I * rows + row];       \\
  ushort p##I = I;

#define EXCHANGE(A, B)                                              \\
  {                                                                 \\
    const bool turn = k##B > k##A || (k##B == k##A && p##B < p##A); \\
    const float k = turn ? k##B : k##A;                             \\
    const ushort p = turn ? p##B : p##A;                            \\
    k##B = turn ? k##A : k##B;                                      \\
    p##B = turn ? p##A : p##B;                                      \\
    k##A = k;                                                       \\
    p##A = p;                                                       \\
  }

// Weights are whole numbers, so that the sum is exact.
#define WEIGH(I) mass += k##I;

#define KEEP(I)                                                                    \\
  {                                                                                \\
    const bool wanted = sum < aim * mass;                                          \\
    kept += wanted;                                                                \\
    order[row * 32 + I] = wanted ? ids[p##I * rows + row] : -1;                     \\
    sum += k##I;                                                                   \\
  }
""",
    inputs=lambda rng: {
        "keys": (rng.random((32, 37)) ** 4 * 200).astype(np.uint8).astype(np.float32),
        "ids": rng.integers(0, 100_000, (32, 37), np.int32),
        "nucleus": (rng.integers(1, 17, 37) / 16).astype(np.float32),
    },
    outputs={"order": ((37, 32), "int32"), "sizes": ((37,), "uint32")},
    grid=(37, 1, 1),
    threadgroup=(37, 1, 1),
    constructs="structure.token_pasting structure.multi_line_macro_in_header types.ushort "
    "simdgroup.partial attributes.threads_per_grid",
)
def candidates_by_a_sorting_network(keys, ids, nucleus):
    order, sizes = np.full((37, 32), -1, np.int32), np.zeros(37, np.uint32)
    for row in range(37):
        ranked = np.argsort(-keys[:, row], kind="stable")
        before = np.cumsum(keys[ranked, row]) - keys[ranked, row]
        kept = ranked[before < nucleus[row] * keys[:, row].sum()]
        order[row, : len(kept)], sizes[row] = ids[kept, row], len(kept)
    return order, sizes
