"""Mixtures of experts: who goes where, in what order, the products of those who meet, and the way back."""

import numpy as np

from bodies import DTYPES, Dtype, body


@body(
    """
    // A simdgroup per token; a lane has PER neighbouring experts. Groups of experts compete first, by the sum of their two
    // best; then the experts of the groups that are left. The bias decides who is taken, not with what weight.
    constexpr int PER = EXPERTS / 32;
    constexpr int LANES_PER_GROUP = 32 / GROUPS;
    const ushort lane = thread_index_in_simdgroup;
    const uint token = thread_position_in_grid.y;
    float score[PER], biased[PER];
    float first = -INFINITY, second = -INFINITY;
    for (int j = 0; j < PER; ++j) {
      const int e = lane * PER + j;
      score[j] = 1.0f / (1.0f + metal::precise::exp(-float(logits[token * EXPERTS + e])));
      biased[j] = score[j] + bias[e];
      if (biased[j] > first) {
        second = first;
        first = biased[j];
      } else {
        second = max(second, biased[j]);
      }
    }
    // The two best of the group's lanes.
    for (ushort d = 1; d < LANES_PER_GROUP; d <<= 1) {
      const float other_first = simd_shuffle_xor(first, d), other_second = simd_shuffle_xor(second, d);
      second = max(min(first, other_first), max(second, other_second));
      first = max(first, other_first);
    }
    const float of_group = first + second;
    const int group = lane / LANES_PER_GROUP;
    int better = 0;
    for (int g = 0; g < GROUPS; ++g) {
      const float other = simd_shuffle(of_group, ushort(g * LANES_PER_GROUP));
      better += other > of_group || (other == of_group && g < group);
    }
    if (better >= TAKEN_GROUPS)
      for (int j = 0; j < PER; ++j) biased[j] = -INFINITY;

    float total = 0;
    float weight = 0;
    int mine = 0;
    for (int k = 0; k < K; ++k) {
      float best = biased[0];
      int at = 0;
      for (int j = 1; j < PER; ++j)
        if (biased[j] > best) best = biased[j], at = j;
      const float top = simd_max(best);
      const ushort owner = ushort(ctz(uint(ulong(simd_ballot(best == top)))));
      const int expert = simd_shuffle(int(lane * PER + at), owner);
      const float its = simd_shuffle(score[at], owner);
      if (lane == owner) biased[at] = -INFINITY;
      if (lane == k) weight = its, mine = expert;
      total += its;
    }
    if (lane < K) {
      experts[token * K + lane] = mine;
      weights[token * K + lane] = weight / total * scale;
    }
    """,
    template=[("EXPERTS", 64), ("GROUPS", 8), ("TAKEN_GROUPS", 3), ("K", 6)],
    inputs=lambda rng: {
        "logits": rng.normal(size=(9, 64)).astype(np.float32),
        "bias": (rng.normal(size=64) * 0.1).astype(np.float32),
        "scale": 2.5,
    },
    outputs={"experts": ((9, 6), "int32"), "weights": ((9, 6), "float32")},
    grid=(32, 9, 1),
    threadgroup=(32, 3, 1),
    tolerance=2e-6,
    constructs="simdgroup.shuffle simdgroup.shuffle_xor simdgroup.ballot simdgroup.run_time_lane functions.ctz "
    "structure.dynamic_local_array functions.precise functions.exp types.INFINITY",
)
def route_by_groups_of_experts(logits, bias, scale):
    score = 1 / (1 + np.exp(-logits.astype(np.float64)))
    biased = score + bias
    of_group = np.sort(biased.reshape(9, 8, 8), axis=-1)[..., -2:].sum(axis=-1)
    taken = np.argsort(-of_group, axis=1, kind="stable")[:, :3]
    open_ = np.zeros((9, 8), bool)
    np.put_along_axis(open_, taken, True, axis=1)
    order = np.argsort(-np.where(open_.repeat(8, axis=1), biased, -np.inf), axis=1, kind="stable")[:, :6]
    weights = np.take_along_axis(score, order, axis=1)
    return order.astype(np.int32), weights / weights.sum(axis=1, keepdims=True) * scale


@body(
    """
    // Softmax over all experts, the K best of it, their weights made to sum to one; and for the balance of the experts
    // the number of tokens of each, and the sum of its probabilities in fixed point, so that the order does not matter.
    const uint lane = thread_index_in_simdgroup, token = thread_position_in_grid.y;
    const bool real = lane < uint(logits_shape[1]);
    const float logit = real ? float(logits[token * logits_shape[1] + lane]) : -INFINITY;
    const float largest = simd_max(logit);
    const float e = exp(logit - largest), sum = simd_sum(e);
    const float p = e / sum;
    if (real) atomic_fetch_add_explicit(&mass[lane], uint(rint(p * 0x1p12f)), memory_order_relaxed);

    // Rank by counting who is before: every lane asks every other.
    uint rank = 0;
    for (ushort d = 1; d < 32; ++d) {
      const float other = simd_shuffle_rotate_down(p, d);
      const uint who = (lane + d) & 31;
      rank += other > p || (other == p && who < lane);
    }
    const bool chosen = real && rank < K;
    const float kept = simd_sum(chosen ? p : 0);
    if (chosen) {
      atomic_store_explicit(&experts[token * K + rank], lane, memory_order_relaxed);
      atomic_store_explicit(&shares[token * K + rank], uint(rint(p / kept * 0x1p12f)), memory_order_relaxed);
      atomic_fetch_add_explicit(&counts[lane], 1u, memory_order_relaxed);
    }
    """,
    template=[("K", 2)],
    # Far enough from one another for what is rounded.
    inputs=lambda rng: {"logits": (rng.integers(-16, 16, (21, 24)) / 8).astype(np.float16)},
    outputs={
        "experts": ((21, 2), "uint32"),
        "shares": ((21, 2), "uint32"),
        "counts": ((24,), "uint32"),
        "mass": ((24,), "uint32"),
    },
    grid=(32, 21, 1),
    threadgroup=(32, 8, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="launch.atomic_outputs launch.init_value synchronisation.fetch_add synchronisation.store functions.rint "
    "simdgroup.shuffle_rotate_down literals.hexadecimal_float launch.edge_threadgroups",
)
def route_and_count(logits):
    x = logits.astype(np.float64)
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    order = np.argsort(-p, axis=1, kind="stable")[:, :2]
    kept = np.take_along_axis(p, order, axis=1)
    shares = np.rint(kept / kept.sum(axis=1, keepdims=True) * 2**12)
    counts = np.bincount(order.reshape(-1), minlength=24)
    return tuple(a.astype(np.uint32) for a in (order, shares, counts, np.rint(p * 2**12).sum(axis=0)))


_SORT_HEADER = """
// Tokens sorted by expert, in order within an expert, with every expert's part rounded up to whole blocks, so that a
// block of a later product has one expert only.

constant constexpr uint NOBODY = 0xffffffff;

struct Entry {
  uint expert;
  uint place;
};

// Of the lanes of the simdgroup that have the same expert, those before this one, and all. By the bits of the number: a
// lane is like this one if all bits are.
template <int BITS>
inline uint2 among_equals(uint expert, uint lane) {
  uint equals = 0xffffffff;
#pragma unroll
  for (int bit = 0; bit < BITS; ++bit) {
    const bool own = (expert >> bit) & 1;
    const uint votes = uint(ulong(simd_ballot(own)));
    equals &= own ? votes : ~votes;
  }
  const uint before = equals & ((1u << lane) - 1u);
  return uint2(popcount(before), popcount(equals));
}

constexpr int bits_for(int n) {
  int bits = 0;
  while ((1 << bits) < n) ++bits;
  return bits;
}
"""

_SORT = """
    // One threadgroup. First what each of its simdgroups has of each expert, then where each begins, then the places.
    constexpr int BITS = bits_for(EXPERTS + 1);
    threadgroup uint histogram[SIMDS][EXPERTS + 1];
    threadgroup uint begins[EXPERTS + 1];
    threadgroup uint carry;

    const uint t = thread_index_in_threadgroup;
    const uint lane = thread_index_in_simdgroup;
    const uint simd_id = simdgroup_index_in_threadgroup;
    const uint entries = experts_shape[0] * experts_shape[1];
    // A simdgroup's share of the entries is one run of them, so that order is kept.
    const uint share = ceildiv(ceildiv(entries, uint(SIMDS)), 32u) * 32;
    const uint from = min(simd_id * share, entries), to = min(from + share, entries);

    for (uint i = t; i < SIMDS * (EXPERTS + 1); i += SIMDS * 32) histogram[i / (EXPERTS + 1)][i % (EXPERTS + 1)] = 0;
    if (t == 0) carry = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // What is beyond the end counts as one more expert: all lanes stay together.
    for (uint first = from; first < to; first += 32) {
      const uint i = first + lane;
      const uint expert = i < to ? uint(experts[i]) : EXPERTS;
      const uint2 equals = among_equals<BITS>(expert, lane);
      // The first of equals adds them all.
      if (equals.x == 0) histogram[simd_id][expert] += equals.y;
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Down the columns, and along the experts by 32 at a time.
    if (simd_id == 0) {
      for (uint base = 0; base < EXPERTS; base += 32) {
        const uint expert = base + lane;
        uint total = 0;
        if (expert < EXPERTS) {
          for (uint s = 0; s < SIMDS; ++s) {
            const uint own = histogram[s][expert];
            histogram[s][expert] = total;
            total += own;
          }
        }
        const uint padded = (total + BLOCK - 1) / BLOCK * BLOCK;
        const uint before = carry + simd_prefix_exclusive_sum(padded);
        if (expert < EXPERTS) {
          begins[expert] = before;
          counts[expert] = total;
          // Every block is told its expert.
          for (uint b = before / BLOCK; b < (before + padded) / BLOCK; ++b) block_experts[b] = int(expert);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (lane == 31) carry = before + padded;
        simdgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
    // The counts have gone to device memory, and all read them.
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    const uint used = carry;
    if (t == 0) total_padded[0] = int(used);
    const uint capacity = capacity_of(EXPERTS, entries, BLOCK);
    for (uint b = used / BLOCK + t; b < capacity / BLOCK; b += SIMDS * 32) block_experts[b] = -1;
    // Padding points to no entry. Then the entries take their places; both never write the same one.
    for (uint i = t; i < capacity; i += SIMDS * 32) {
      bool taken = false;
      for (uint e = 0; e < EXPERTS && !taken; ++e) taken = i >= begins[e] && i < begins[e] + uint(counts[e]);
      if (!taken) sorted[i] = NOBODY;
    }
    for (uint first = from; first < to; first += 32) {
      const uint i = first + lane;
      Entry entry{i < to ? uint(experts[i]) : uint(EXPERTS), 0};
      const uint2 equals = among_equals<BITS>(entry.expert, lane);
      if (i < to) {
        entry.place = begins[entry.expert] + histogram[simd_id][entry.expert] + equals.x;
        sorted[entry.place] = i;
        inverse[i] = entry.place;
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (equals.x == 0) histogram[simd_id][entry.expert] += equals.y;
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
"""


def _sorted_by_expert(experts):
    flat, capacity = experts.reshape(-1).astype(int), 78 * 4 + 11 * 7 // 8 * 8
    counts = np.bincount(flat, minlength=11)
    sorted_, inverse, blocks = np.full(capacity, 2**32 - 1, np.uint32), np.zeros(312, np.uint32), []
    at = 0
    for expert in range(11):
        entries = np.flatnonzero(flat == expert)
        sorted_[at : at + len(entries)] = entries
        inverse[entries] = at + np.arange(len(entries))
        whole = -(-len(entries) // 8)
        blocks += [expert] * whole
        at += 8 * whole
    blocks += [-1] * (capacity // 8 - len(blocks))
    return sorted_, inverse, np.array(blocks, np.int32), counts.astype(np.int32), np.array([at], np.int32)


body(
    _SORT,
    name="sort_tokens_by_expert",
    header=_SORT_HEADER
    + """
// The most that padding can make of it.
inline uint capacity_of(uint experts, uint entries, uint block) {
  return entries + experts * (block - 1) / block * block;
}
""",
    template=[("EXPERTS", 11), ("BLOCK", 8), ("SIMDS", 4)],
    # Some experts are popular, and one is not asked at all.
    inputs=lambda rng: {
        "experts": np.where((e := (rng.random((78, 4)) ** 2 * 11).astype(np.uint8)) == 7, np.uint8(0), e),
    },
    outputs={
        "sorted": ((78 * 4 + 11 * 7 // 8 * 8,), "uint32"),
        "inverse": ((78 * 4,), "uint32"),
        "block_experts": (((78 * 4 + 11 * 7 // 8 * 8) // 8,), "int32"),
        "counts": ((11,), "int32"),
        "total_padded": ((1,), "int32"),
    },
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="structure.constexpr structure.struct structure.template functions.popcount simdgroup.ballot "
    "simdgroup.prefix_exclusive_sum address_spaces.threadgroup_2d_array address_spaces.threadgroup_scalar mlx.ceildiv "
    "synchronisation.simdgroup_barrier synchronisation.mem_flags address_spaces.constant_scalar types.uint2",
)(_sorted_by_expert)


@body(
    """
    // Blocks of sorted tokens by columns of their expert's matrix; rows are gathered while they are loaded. Tokens stand
    // in several places, as many as they have experts.
    threadgroup T rows[BLOCK][DEPTH + 2];
    threadgroup T columns[BN][DEPTH + 2];
    const uint2 t = thread_position_in_threadgroup.xy;
    const uint block = threadgroup_position_in_grid.y, first_column = threadgroup_position_in_grid.x * BN;
    const int expert = block_experts[block];
    if (expert < 0) return;
    const uint width = x_shape[1], out_width = w_shape[1];
    const uint entry = sorted[block * BLOCK + t.y];
    const bool padding = entry == 0xffffffffu;
    const uint token = padding ? 0 : entry / K;

    float sum = 0;
    for (uint k = 0; k < width; k += DEPTH) {
      for (uint d = t.x; d < DEPTH; d += BN) rows[t.y][d] = padding || k + d >= width ? T(0) : x[token * width + k + d];
      for (uint e = t.y * BN + t.x; e < BN * DEPTH; e += BLOCK * BN) {
        const uint column = first_column + e / DEPTH, d = k + e % DEPTH;
        const bool inside = column < out_width && d < width;
        columns[e / DEPTH][e % DEPTH] = inside ? w[(uint(expert) * out_width + column) * width + d] : T(0);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      #pragma unroll(8)
      for (uint d = 0; d < DEPTH; ++d) sum = fma(float(rows[t.y][d]), float(columns[t.x][d]), sum);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (!padding && first_column + t.x < out_width) y[entry * out_width + first_column + t.x] = T(sum);
    """,
    template=[("T", Dtype("float16")), ("BLOCK", 4), ("BN", 16), ("DEPTH", 16), ("K", 2)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1, (9, 40)).astype(np.float16),
        "w": rng.uniform(0.25, 1, (3, 22, 40)).astype(np.float16),
        "sorted": np.array(
            [
                *(0, 3, 5, 8),
                *(11, 17, -1, -1),
                *(1, 2, 4, 6),
                *(7, 9, 10, -1),
                *(12, 13, 14, 15),
                *(16, -1, -1, -1),
                *[-1] * 4,
            ]
        ).astype(np.uint32),
        "block_experts": np.array([0, 0, 1, 1, 2, 2, -1, -1], np.int32),
    },
    outputs={"y": ((18, 22), "float16")},
    grid=(32, 28, 1),
    threadgroup=(16, 4, 1),
    tolerance=6e-4,
    constructs="address_spaces.threadgroup_array_of_T address_spaces.threadgroup_small_array structure.pragma_unroll "
    "functions.fma structure.early_return barriers.in_loop",
)
def product_of_blocks_of_experts(x, w, sorted, block_experts):
    y = np.zeros((18, 22))
    for place, entry in enumerate(sorted):
        if entry < 18:
            y[entry] = w[block_experts[place // 4]].astype(np.float64) @ x[entry // 2].astype(np.float64)
    return y


@body(
    """
    // Back to the tokens' own order: what the experts said, by their weights, with the shared expert under its gate, onto
    // the residual. Vectors of four; a thread goes on to further tokens.
    const uint c = thread_position_in_grid.x;
    const uint width4 = residual_shape[1] / 4, tokens = residual_shape[0];
    for (uint token = thread_position_in_grid.y; token < tokens; token += threads_per_grid.y) {
      float4 sum = 0;
      bfloat4 gathered;
      for (uint k = 0; k < K; ++k) {
        const uint place = inverse[token * K + k];
        gathered = ((const device bfloat4*)expert_out)[place * width4 + c];
        sum = fma(float4(gathered), float4(weights[token * K + k]), sum);
      }
      if (SHARED) {
        const float gate = 1 / (1 + exp(-shared_gate[token]));
        sum += gate * float4(((const device bfloat4*)shared_out)[token * width4 + c]);
      }
      const device float4* r = (const device float4*)residual;
      ((device float4*)out)[token * width4 + c] = r[token * width4 + c] + sum;
    }
    """,
    template=[("K", 3), ("SHARED", True)],
    inputs=lambda rng: {
        "expert_out": rng.uniform(0.5, 1, (33, 20)).astype(DTYPES["bfloat16"]),
        "inverse": rng.permutation(33).astype(np.uint32),
        "weights": rng.uniform(0.1, 1, (11, 3)).astype(np.float32),
        "shared_out": rng.uniform(0.5, 1, (11, 20)).astype(DTYPES["bfloat16"]),
        "shared_gate": rng.normal(size=11).astype(np.float32),
        "residual": rng.uniform(0.5, 1, (11, 20)).astype(np.float32),
    },
    outputs={"out": ((11, 20), "float32")},
    grid=(5, 4, 1),
    threadgroup=(5, 4, 1),
    tolerance=1e-6,
    constructs="types.bfloat4 types.float4 functions.fma types.vector_conversion address_spaces.cast_to_vector "
    "attributes.threads_per_grid",
)
def combine_what_experts_said(expert_out, inverse, weights, shared_out, shared_gate, residual):
    gathered = expert_out.astype(np.float64)[inverse.reshape(11, 3)]
    shared = shared_out.astype(np.float64) / (1 + np.exp(-shared_gate.astype(np.float64)))[:, None]
    return residual + np.einsum("tkd,tk->td", gathered, weights) + shared


_QMV_HEADER = """
// Rows of two quantised matrices, gate and up, by one vector, so that the activation needs no trip to memory. Weights have
// 4 bits, eight in a word, low end first, and a scale and a bias for each GROUP of them.

// Sixteen neighbours of the vector as a lane holds them: the even ones apart from the odd ones, in fours, as nibbles come
// out of a word by one mask.
struct Sixteen {
  float4 even[2];
  float4 odd[2];
  float sum;

  template <typename T>
  void load(const device T* from) {
    for (int w = 0; w < 2; ++w) {
      const device T* p = from + 8 * w;
      even[w] = float4(p[0], p[2], p[4], p[6]);
      odd[w] = float4(p[1], p[3], p[5], p[7]);
    }
    add_up();
  }

  // The end of a row may come before the sixteenth.
  template <typename T>
  void load(const device T* from, int count) {
    for (int w = 0; w < 2; ++w) {
      even[w] = odd[w] = 0.0f;
      for (int j = 0; j < 4; ++j) {
        if (8 * w + 2 * j < count) even[w][j] = float(from[8 * w + 2 * j]);
        if (8 * w + 2 * j + 1 < count) odd[w][j] = float(from[8 * w + 2 * j + 1]);
      }
    }
    add_up();
  }

  void add_up() {
    const float4 all = (even[0] + odd[0]) + (even[1] + odd[1]);
    sum = (all.x + all.y) + (all.z + all.w);
  }

  // By sixteen weights: sum x (s n + b) = s sum x n + b sum x.
  float times(uint2 words, float scale, float bias) const {
    float products = 0.0f;
    for (int w = 0; w < 2; ++w) {
      const uchar4 low = as_type<uchar4>(words[w] & 0x0f0f0f0fu);
      const uchar4 high = as_type<uchar4>((words[w] >> 4) & 0x0f0f0f0fu);
      products += dot(even[w], float4(low)) + dot(odd[w], float4(high));
    }
    return fma(scale, products, bias * sum);
  }
};

// A matrix of all experts, at a row of one of them.
template <typename T, int GROUP>
struct Rows {
  const device uint2* words;
  const device T* scales;
  const device T* biases;
  int pairs;   // of words in a row
  int groups;  // in a row

  Rows(const device uint* w, const device T* s, const device T* b, int64_t row, int width)
      : pairs(width / 16), groups(width / GROUP) {
    words = reinterpret_cast<const device uint2*>(w) + row * pairs;
    scales = s + row * groups;
    biases = b + row * groups;
  }

  // The products of the sixteenth number `at` of row `r` below the first.
  float product(const thread Sixteen& v, int r, int at) const {
    const int group = r * groups + at * 16 / GROUP;
    return v.times(words[r * pairs + at], float(scales[group]), float(biases[group]));
  }
};

struct Silu {
  static float apply(float gate, float up) { return gate / (1.0f + metal::exp(-gate)) * up; }
};

// The one with limits: gate from above, up from both sides, and one more than up.
struct Limited {
  static float apply(float gate, float up) {
    gate = metal::min(gate, 7.0f);
    up = metal::clamp(up, -7.0f, 7.0f);
    return gate / (1.0f + metal::exp(-1.702f * gate)) * (up + 1.0f);
  }
};

template <int KIND>
struct Activation : ConditionalType<KIND == 0, Silu, Limited>::type {};

// Both matrices at once, some rows of each, for one token.
template <typename T, int GROUP, int ROWS>
struct Pair {
  float gates[ROWS];
  float ups[ROWS];

  Pair() {
    for (int r = 0; r < ROWS; ++r) gates[r] = ups[r] = 0.0f;
  }

  void add(const thread Sixteen& v, const thread Rows<T, GROUP>& gate, const thread Rows<T, GROUP>& up, int at, int rows) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      // Uniform over the simdgroup: no lane goes another way.
      if (r < rows) {
        gates[r] += gate.product(v, r, at);
        ups[r] += up.product(v, r, at);
      }
    }
  }
};
"""

_QMV = """
    // Two simdgroups with ROWS rows each; a lane has every 32nd sixteen of the vector.
    constexpr int ROWS = 4;
    const int lane = thread_index_in_simdgroup;
    const int entry = threadgroup_position_in_grid.z;
    const int in_size = x_shape[1], out_size = gate_w_shape[1];
    const int first = ROWS * int(2 * threadgroup_position_in_grid.y + simdgroup_index_in_threadgroup);
    if (first >= out_size) return;
    const int rows = min(ROWS, out_size - first);

    // The same vector goes to the K experts of its token.
    const device T* vector = x + entry / K * in_size;
    const int64_t row = int64_t(experts[entry]) * out_size + first;
    const Rows<T, GROUP> gate_rows(gate_w, gate_scales, gate_biases, row, in_size);
    const Rows<T, GROUP> up_rows(up_w, up_scales, up_biases, row, in_size);

    Pair<T, GROUP, ROWS> pair;
    Sixteen v;
    int at = lane;
    for (; at < in_size / 512 * 32; at += 32) {
      v.load(vector + 16 * at);
      pair.add(v, gate_rows, up_rows, at, rows);
    }
    // What is less than a round for the whole simdgroup.
    const int rest = in_size - 16 * at;
    if (rest > 0) {
      v.load(vector + 16 * at, rest);
      pair.add(v, gate_rows, up_rows, at, rows);
    }
    for (int r = 0; r < rows; ++r) {
      const float2 both = simd_sum(float2(pair.gates[r], pair.ups[r]));
      if (lane == 0) y[entry * out_size + first + r] = T(Activation<KIND>::apply(both.x, both.y));
    }
"""

for _kind, _name in enumerate(("silu", "limited")):

    def _qmv_inputs(rng):
        def words():
            return rng.integers(0, 2**32, (5, 13, 72), np.uint32)

        def scales(low, high):
            return rng.uniform(low, high, (5, 13, 9)).astype(np.float16)

        return {
            "x": rng.uniform(0.2, 1, (3, 576)).astype(np.float16),
            "experts": np.array([0, 3, 1, 4, 2, 2, 0, 4], np.int32)[:6],
            "gate_w": words(),
            "gate_scales": scales(0.0005, 0.001),
            "gate_biases": scales(-0.002, 0.001),
            "up_w": words(),
            "up_scales": scales(0.0005, 0.001),
            "up_biases": scales(-0.002, 0.001),
        }

    def _qmv(x, experts, gate_w, gate_scales, gate_biases, up_w, up_scales, up_biases, kind=_kind):
        def product(words, scales, biases):
            w = (words[..., None] >> np.arange(0, 32, 4, dtype=np.uint32)) & np.uint32(15)
            w = w.reshape(5, 13, 9, 64) * scales[..., None].astype(np.float64) + biases[..., None]
            tokens = x.astype(np.float64).repeat(2, axis=0)
            return np.einsum("ei,eoi->eo", tokens, w.reshape(5, 13, 576)[experts])

        gate, up = product(gate_w, gate_scales, gate_biases), product(up_w, up_scales, up_biases)
        if kind == 0:
            return gate / (1 + np.exp(-gate)) * up
        gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
        return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)

    body(
        _QMV,
        name=f"experts_of_four_bits_{_name}",
        header=_QMV_HEADER,
        template=[("T", Dtype("float16")), ("GROUP", 64), ("K", 2), ("KIND", _kind)],
        inputs=_qmv_inputs,
        outputs={"y": ((6, 13), "float16")},
        grid=(32, 4, 6),
        threadgroup=(32, 2, 1),
        tolerance=7e-4,
        constructs="structure.template structure.struct mlx.ConditionalType address_spaces.thread types.int64_t "
        "functions.clamp functions.dot functions.fma simdgroup.sum types.as_type types.uchar4 types.uint2 types.float4 "
        "types.component_index structure.reinterpret_cast structure.pragma_unroll",
    )(_qmv)


@body(
    """
    // Four-bit floats (2 exponent bits, 1 of mantissa) with one power of two per 32 of them. The sixteen values are looked
    // up; the power is made of its bits. A quadgroup of threads shares a row.
    const uint row = thread_position_in_grid.x / 4, quad = thread_index_in_quadgroup;
    const uint columns = x_shape[0], rows = scales_shape[0];
    if (row >= rows) return;
    float total = 0;
    for (uint block = quad; block < columns / 32; block += 4) {
      const uchar exponent = scales[row * (columns / 32) + block];
      // 2^(exponent - 127); the smallest is subnormal.
      const float scale = exponent == 0 ? as_type<float>(0x00400000u) : as_type<float>(uint(exponent) << 23);
      device const uchar* bytes = w + row * columns / 2 + block * 16;
      device const float* in = x + block * 32;
      float sum = 0;
      for (uint j = 0; j < 16; ++j) {
        sum += in[2 * j] * E2M1[bytes[j] & 15];
        sum += in[2 * j + 1] * E2M1[bytes[j] >> 4];
      }
      total += scale * sum;
    }
    total = quad_sum(total);
    if (quad == 0) y[row] = total + bias[row];
    """,
    header="""
constant float E2M1[16] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
""",
    # Multiples of small powers of two: everything is exact.
    inputs=lambda rng: {
        "x": rng.integers(-8, 8, 288).astype(np.float32),
        "w": rng.integers(0, 256, (21, 144), np.uint8),
        "scales": rng.integers(124, 130, (21, 9)).astype(np.uint8),
        "bias": rng.integers(-8, 8, 21).astype(np.float32),
    },
    outputs={"y": ((21,), "float32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.constant_array types.as_type types.uchar attributes.thread_index_in_quadgroup "
    "simdgroup.quad_sum structure.return_before_simd",
)
def product_with_four_bit_floats(x, w, scales, bias):
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    table = np.concatenate([table, -table])
    values = table[np.stack([w & 15, w >> 4], axis=-1).reshape(21, 9, 32)]
    weights = (values * 2.0 ** (scales.astype(float) - 127)[..., None]).reshape(21, 288)
    return (weights @ x + bias).astype(np.float32)
