"""Sorting and selecting: in threadgroup memory, by digits, by networks, by ranks, by heaps."""

import numpy as np

from bodies import DTYPES, Dtype, body

# ---- Networks


for _dtype in ("float32", "uint16"):

    def _sorted_pairs(keys, values, lengths, _dtype=_dtype):
        out_keys, out_values = keys.copy(), values.copy()
        for row, n in enumerate(lengths):
            # By key, then by value: what is equal in both is the same.
            order = np.lexsort((values[row, :n], keys[row, :n]))
            out_keys[row, :n] = keys[row, order]
            out_values[row, :n] = values[row, order]
        return out_keys, out_values

    body(
        """
    // Each threadgroup sorts a row of up to ROW pairs. A thread holds PER of them; strides below PER are settled in registers,
    // those below 32 * PER by shuffles, the rest in threadgroup memory.
    constexpr int PER = 4;
    constexpr int ROW = THREADS * PER;
    threadgroup Pair<K> tile[ROW];
    uint row = threadgroup_position_in_grid.y;
    uint t = thread_position_in_threadgroup.x;
    uint length = lengths[row];
    const device K* in = keys + row * ROW;

    Pair<K> own[PER];
    for (int j = 0; j < PER; ++j) {
      uint at = t * PER + j;
      own[j] = at < length ? Pair<K>{in[at], values[row * ROW + at]} : Pair<K>::last();
    }

    for (uint span = 2; span <= ROW; span *= 2) {
      for (uint stride = span / 2; stride > 0; stride /= 2) {
        if (stride >= 32 * PER) {
          // Partners are in other simdgroups.
          threadgroup_barrier(mem_flags::mem_threadgroup);
          for (int j = 0; j < PER; ++j) tile[t * PER + j] = own[j];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          for (int j = 0; j < PER; ++j) {
            uint at = t * PER + j;
            own[j] = chosen(own[j], tile[at ^ stride], wants_smaller(at, stride, span));
          }
        } else if (stride >= PER) {
          ushort distance = stride / PER;
          for (int j = 0; j < PER; ++j) {
            Pair<K> other = {simd_shuffle_xor(own[j].key, distance), simd_shuffle_xor(own[j].value, distance)};
            own[j] = chosen(own[j], other, wants_smaller(t * PER + j, stride, span));
          }
        } else {
          #pragma unroll
          for (int j = 0; j < PER; ++j) {
            int other = j ^ int(stride);
            if (other > j) {
              bool ascending = ((t * PER + j) & span) == 0;
              if ((own[other] < own[j]) == ascending) {
                Pair<K> moved = own[j];
                own[j] = own[other];
                own[other] = moved;
              }
            }
          }
        }
      }
    }
    for (int j = 0; j < PER; ++j) {
      uint at = t * PER + j;
      bool inside = at < length;
      sorted_keys[row * ROW + at] = inside ? own[j].key : in[at];
      sorted_values[row * ROW + at] = inside ? own[j].value : values[row * ROW + at];
    }
    """,
        name=f"bitonic_pairs_{_dtype}",
        header="""
template <typename K>
struct Pair {
  K key;
  uint value;

  // Behind all that a row can hold: no value of a row is as large.
  static Pair last() { return {numeric_limits<K>::max(), 0xffffffffu}; }

  bool operator<(thread const Pair& other) const {
    return key < other.key || (key == other.key && value < other.value);
  }
};

// Which of the two a place keeps: the lower place of an ascending span the smaller one, and so on.
inline bool wants_smaller(uint at, uint stride, uint span) {
  bool lower = (at & stride) == 0;
  bool ascending = (at & span) == 0;
  return lower == ascending;
}

template <typename K>
inline Pair<K> chosen(Pair<K> mine, Pair<K> other, bool smaller) {
  return (other < mine) == smaller ? other : mine;
}
""",
        template=[("K", Dtype(_dtype)), ("THREADS", 64)],
        inputs=lambda rng, _dtype=_dtype: {
            "keys": rng.integers(0, 60, (3, 256)).astype(DTYPES[_dtype]),
            "values": rng.integers(0, 1000, (3, 256), np.uint32),
            "lengths": np.array([256, 1, 171], np.int32),
        },
        outputs={"sorted_keys": ((3, 256), _dtype), "sorted_values": ((3, 256), "uint32")},
        grid=(64, 3, 1),
        threadgroup=(64, 1, 1),
        constructs="barriers.sort barriers.nested_loop simdgroup.shuffle_xor structure.operator structure.template "
        "address_spaces.threadgroup_struct types.numeric_limits address_spaces.thread",
    )(_sorted_pairs)


@body(
    """
    // Batcher's odd-even merge sort of 16 numbers in each thread's registers: 63 exchanges, all places known. Two threads'
    // results are merged through their neighbours' then, and so on up to a simdgroup's 512.
    uint lane = thread_index_in_simdgroup;
    uint base = (thread_position_in_grid.x / 32) * 512;
    short v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15;
    // Interleaved: neighbouring threads read neighbouring elements.
    LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
    LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15)

    // Runs of 2.
    CE(0, 1) CE(2, 3) CE(4, 5) CE(6, 7) CE(8, 9) CE(10, 11) CE(12, 13) CE(14, 15)
    // Runs of 4.
    CE(0, 2) CE(1, 3) CE(1, 2)
    CE(4, 6) CE(5, 7) CE(5, 6)
    CE(8, 10) CE(9, 11) CE(9, 10)
    CE(12, 14) CE(13, 15) CE(13, 14)
    // Runs of 8.
    CE(0, 4) CE(1, 5) CE(2, 6) CE(3, 7) CE(2, 4) CE(3, 5) CE(1, 2) CE(3, 4) CE(5, 6)
    CE(8, 12) CE(9, 13) CE(10, 14) CE(11, 15) CE(10, 12) CE(11, 13) CE(9, 10) CE(11, 12) CE(13, 14)
    // One run of 16.
    CE(0, 8) CE(1, 9) CE(2, 10) CE(3, 11) CE(4, 12) CE(5, 13) CE(6, 14) CE(7, 15)
    CE(4, 8) CE(5, 9) CE(6, 10) CE(7, 11)
    CE(2, 4) CE(3, 5) CE(6, 8) CE(7, 9) CE(10, 12) CE(11, 13)
    CE(1, 2) CE(3, 4) CE(5, 6) CE(7, 8) CE(9, 10) CE(11, 12) CE(13, 14)

    // Runs of threads: the smaller half of this run and the partner's stays below. A partner's run is read backwards, so that
    // what is kept is bitonic, and sorted by halving steps.
    for (ushort span = 1; span < 32; span *= 2) {
      ushort mirror = 2 * span - 1;
      bool low = (lane & span) == 0;
      KEEP(0, 15) KEEP(1, 14) KEEP(2, 13) KEEP(3, 12) KEEP(4, 11) KEEP(5, 10) KEEP(6, 9) KEEP(7, 8)
      for (ushort step = span / 2; step > 0; step /= 2) {
        bool below = (lane & step) == 0;
        HALVE(0) HALVE(1) HALVE(2) HALVE(3) HALVE(4) HALVE(5) HALVE(6) HALVE(7)
        HALVE(8) HALVE(9) HALVE(10) HALVE(11) HALVE(12) HALVE(13) HALVE(14) HALVE(15)
      }
      CE(0, 8) CE(1, 9) CE(2, 10) CE(3, 11) CE(4, 12) CE(5, 13) CE(6, 14) CE(7, 15)
      CE(0, 4) CE(1, 5) CE(2, 6) CE(3, 7) CE(8, 12) CE(9, 13) CE(10, 14) CE(11, 15)
      CE(0, 2) CE(1, 3) CE(4, 6) CE(5, 7) CE(8, 10) CE(9, 11) CE(12, 14) CE(13, 15)
      CE(0, 1) CE(2, 3) CE(4, 5) CE(6, 7) CE(8, 9) CE(10, 11) CE(12, 13) CE(14, 15)
    }
    device short4* out = (device short4*)(y + base + lane * 16);
    out[0] = short4(v0, v1, v2, v3);
    out[1] = short4(v4, v5, v6, v7);
    out[2] = short4(v8, v9, v10, v11);
    out[3] = short4(v12, v13, v14, v15);
    """,
    header="""
#define LOAD(j) v##j = x[base + j * 32 + lane];

#define CE(i, j)                      \\
  {                                   \\
    short smaller = min(v##i, v##j);  \\
    v##j = max(v##i, v##j);           \\
    v##i = smaller;                   \\
  }

// Element i of this thread against element j of the mirrored one, and the other way round.
#define KEEP(i, j)                                  \\
  {                                                 \\
    short a = simd_shuffle_xor(v##j, mirror);       \\
    short b = simd_shuffle_xor(v##i, mirror);       \\
    v##i = low ? min(v##i, a) : max(v##i, a);       \\
    v##j = low ? min(v##j, b) : max(v##j, b);       \\
  }

#define HALVE(i)                                    \\
  {                                                 \\
    short other = simd_shuffle_xor(v##i, step);     \\
    v##i = below ? min(v##i, other) : max(v##i, other); \\
  }
""",
    inputs=lambda rng: {"x": rng.integers(-(2**15), 2**15, 3 * 512).astype(np.int16)},
    outputs={"y": ((3, 512), "int16")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.multi_line_macro_in_header structure.token_pasting simdgroup.shuffle_xor types.short "
    "types.short4 functions.min functions.max address_spaces.cast_to_vector",
)
def odd_even_merge_in_registers(x):
    return np.sort(x.reshape(3, 512), axis=1)


# ---- By digits


@body(
    """
    // A whole radix sort of one threadgroup's keys and values: for each digit of 4 bits, keys of a simdgroup are ranked among
    // those of the same digit by ballots, simdgroups by a scan of their counts. Stable, so that digits add up.
    constexpr uint RADIX = 16;
    constexpr uint GROUPS = THREADS / 32;
    threadgroup uint counts[RADIX * GROUPS];   // digit by digit, simdgroup by simdgroup
    threadgroup uint key_tile[THREADS];
    threadgroup uint place_tile[THREADS];
    const uint t = thread_index_in_threadgroup;
    const uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const uint i = thread_position_in_grid.x;
    // Floats whose bits are ordered as the numbers are.
    uint bits = as_type<uint>(x[i]);
    uint key = bits ^ (bits & 0x80000000u ? 0xffffffffu : 0x80000000u);
    uint place = t;

    for (uint shift = 0; shift < 32; shift += 4) {
      uint digit = (key >> shift) & (RADIX - 1);
      // Who in this simdgroup has the same digit: a ballot for each of its bits.
      uint same = 0xffffffffu;
      for (uint b = 0; b < 4; ++b) {
        bool one = (digit >> b) & 1;
        uint ones = uint(uint64_t(simd_ballot(one)));
        same &= one ? ones : ~ones;
      }
      uint rank = popcount(same & ((1u << lane) - 1));
      for (uint c = t; c < RADIX * GROUPS; c += THREADS) counts[c] = 0;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (rank == 0) counts[digit * GROUPS + group] = popcount(same);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // One simdgroup scans all counts.
      if (group == 0) {
        uint before = 0;
        for (uint first = 0; first < RADIX * GROUPS; first += 32) {
          uint own = counts[first + lane];
          uint sum = simd_prefix_inclusive_sum(own);
          counts[first + lane] = before + sum - own;
          before += simd_broadcast(sum, 31);
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint to = counts[digit * GROUPS + group] + rank;
      key_tile[to] = key;
      place_tile[to] = place;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      key = key_tile[t];
      place = place_tile[t];
    }
    y[i] = as_type<float>(key ^ (key & 0x80000000u ? 0x80000000u : 0xffffffffu));
    order[i] = place;
    """,
    template=[("THREADS", 128)],
    inputs=lambda rng: {
        "x": np.where(rng.random(256) < 0.5, rng.normal(size=256) * 1e4, rng.integers(-4, 5, 256)).astype(np.float32)
        + np.float32(0)
    },
    outputs={"y": ((256,), "float32"), "order": ((256,), "uint32")},
    grid=(256, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="simdgroup.ballot simdgroup.prefix_inclusive_sum simdgroup.broadcast functions.popcount types.as_type "
    "barriers.sort barriers.in_loop barriers.scan",
)
def radix_sort_of_floats(x):
    rows = x.reshape(2, 128)
    order = np.argsort(rows, axis=1, kind="stable")
    return np.take_along_axis(rows, order, axis=1).reshape(256), order.reshape(256).astype(np.uint32)


# ---- By ranks


@body(
    """
    // Two sorted lists become one: each thread finds where its piece of the result begins in both (a diagonal's crossing of the
    // merge path), then merges PIECE elements one after the other. Of equals the first list's come first.
    const int pair = thread_position_in_grid.y;
    const int begin = int(thread_position_in_grid.x) * PIECE;
    const int na = a_counts[pair], nb = b_counts[pair];
    const device int* a = lists_a + pair * lists_a_shape[1];
    const device int* b = lists_b + pair * lists_b_shape[1];
    if (begin >= na + nb) return;

    int low = max(0, begin - nb), high = min(begin, na);
    while (low < high) {
      int middle = (low + high) / 2;
      if (a[middle] <= b[begin - 1 - middle]) low = middle + 1;
      else high = middle;
    }
    int i = low, j = begin - low;
    device int* out = merged + pair * (lists_a_shape[1] + lists_b_shape[1]) + begin;
    for (int k = 0; k < PIECE && i + j < na + nb; ++k) {
      bool from_a = j >= nb || (i < na && a[i] <= b[j]);
      out[k] = from_a ? a[i++] : b[j++];
      sources[(out - merged) + k] = from_a ? 0 : 1;
    }
    """,
    template=[("PIECE", 7)],
    inputs=lambda rng: {
        "lists_a": np.sort(rng.integers(-50, 50, (4, 90)), axis=1).astype(np.int32),
        "lists_b": np.sort(rng.integers(-50, 50, (4, 70)), axis=1).astype(np.int32),
        "a_counts": np.array([90, 0, 45, 1], np.int32),
        "b_counts": np.array([70, 70, 0, 69], np.int32),
    },
    outputs={"merged": ((4, 160), "int32"), "sources": ((4, 160), "uint8")},
    grid=(23, 4, 1),
    threadgroup=(8, 2, 1),
    init_value=0,
    constructs="structure.while structure.early_return address_spaces.device_pointer_arithmetic launch.init_value "
    "launch.edge_threadgroups",
)
def merge_path_of_two_lists(lists_a, lists_b, a_counts, b_counts):
    merged, sources = np.zeros((4, 160), np.int32), np.zeros((4, 160), np.uint8)
    for row in range(4):
        a, b = lists_a[row, : a_counts[row]], lists_b[row, : b_counts[row]]
        both, which = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
        order = np.argsort(both, kind="stable")
        merged[row, : len(both)], sources[row, : len(both)] = both[order], which[order]
    return merged, sources


@body(
    """
    // A place's rank is the number of smaller ones, and of equal ones before it. All against all, by tiles.
    threadgroup float4 tile[TILE / 4];
    uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;
    uint n = x_shape[0];
    float own = i < n ? x[i] : INFINITY;
    uint4 smaller = 0;
    for (uint first = 0; first < n; first += TILE) {
      if (t < TILE / 4) {
        uint4 at = first + 4 * t + uint4(0, 1, 2, 3);
        tile[t] = float4(x[at.x], x[at.y], x[at.z], x[at.w]);
        tile[t] = select(float4(INFINITY), tile[t], at < n);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint j = 0; j < TILE / 4; ++j) {
        uint4 at = first + 4 * j + uint4(0, 1, 2, 3);
        bool4 before = (tile[j] < own) || ((tile[j] == own) && (at < i));
        smaller += uint4(before);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (i >= n) return;
    uint rank = smaller.x + smaller.y + smaller.z + smaller.w;
    ranks[i] = rank;
    y[rank] = own;
    """,
    template=[("TILE", 64)],
    inputs=lambda rng: {"x": rng.integers(-40, 40, 203).astype(np.float32)},
    outputs={"ranks": ((203,), "uint32"), "y": ((203,), "float32")},
    grid=(256, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.bool4 types.vector_comparison functions.select types.uint4 address_spaces.threadgroup_vectors "
    "structure.barrier_in_loop types.INFINITY",
)
def ranks_by_comparison(x):
    order = np.argsort(x, kind="stable")
    ranks = np.empty(203, np.uint32)
    ranks[order] = np.arange(203)
    return ranks, x[order]


# ---- The largest few


@body(
    """
    // The K largest of each row, in descending order. Each thread keeps a heap of the K best of its share, the smallest on
    // top; then rounds of the simdgroup take the best of all heaps' sorted lists.
    const uint row = threadgroup_position_in_grid.y;
    const uint lane = thread_index_in_simdgroup;
    const int width = scores_shape[1];
    const device half* in = scores + row * width;

    Heap<K> heap;
    heap.clear();
    for (int at = lane; at < width; at += 32) {
      half score = in[at];
      if (valid[at] == 0) continue;
      heap.offer(score, at);
    }
    heap.sort_descending();

    // A tournament: whose head is best gives it away.
    int head = 0;
    for (int k = 0; k < K; ++k) {
      half mine = head < K ? heap.score[head] : -HALF_MAX;
      int place = head < K ? heap.place[head] : 0x7fffffff;
      half best = simd_max(mine);
      int winner = simd_min(mine == best ? place : 0x7fffffff);
      if (place == winner) ++head;
      if (lane == 0) {
        bool none = winner == 0x7fffffff;
        top_scores[row * K + k] = none ? half(0) : best;
        top_places[row * K + k] = none ? -1 : winner;
      }
    }
    """,
    header="""
// A heap whose top is the worst of the K best: what does not beat it is not looked at further.
template <int K>
struct Heap {
  half score[K];
  int place[K];

  void clear() {
    for (int k = 0; k < K; ++k) {
      score[k] = -HALF_MAX;
      place[k] = 0x7fffffff;
    }
  }

  // Whether entry i is worse than entry j: a lower score, or as high but later.
  bool worse(int i, int j) const {
    return score[i] < score[j] || (score[i] == score[j] && place[i] > place[j]);
  }

  void swap(int i, int j) {
    half s = score[i];
    score[i] = score[j];
    score[j] = s;
    int p = place[i];
    place[i] = place[j];
    place[j] = p;
  }

  void sink(int i, int size) {
    while (2 * i + 1 < size) {
      int child = 2 * i + 1;
      if (child + 1 < size && worse(child + 1, child)) ++child;
      if (!worse(child, i)) return;
      swap(i, child);
      i = child;
    }
  }

  void offer(half s, int p) {
    if (s < score[0] || (s == score[0] && p > place[0])) return;
    score[0] = s;
    place[0] = p;
    sink(0, K);
  }

  // Takes the worst to the end, again and again.
  void sort_descending() {
    for (int size = K - 1; size > 0; --size) {
      swap(0, size);
      sink(0, size);
    }
  }
};
""",
    template=[("K", 6)],
    inputs=lambda rng: {
        "scores": rng.integers(-80, 80, (4, 230)).astype(np.float16) / np.float16(4),
        "valid": (rng.random(230) < 0.8).astype(np.uint8),
    },
    outputs={"top_scores": ((4, 6), "float16"), "top_places": ((4, 6), "int32")},
    grid=(32, 4, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.template structure.struct structure.dynamic_local_array types.HALF_constants simdgroup.max "
    "simdgroup.min reconvergence.return_in_helper_loop",
)
def largest_by_heaps(scores, valid):
    allowed = np.flatnonzero(valid)
    order = allowed[np.argsort(-scores[:, allowed].astype(np.float64), axis=1, kind="stable")[:, :6]]
    return np.take_along_axis(scores, order, axis=1), order.astype(np.int32)


@body(
    """
    // The k-th smallest of each row without sorting: the key is found from its highest digit down, with a histogram of 256
    // bins in threadgroup memory for each of the four digits. Equals of the key are filled up in order of place.
    threadgroup atomic_uint bins[256];
    threadgroup uint shared_digit, shared_rank;
    threadgroup uint taken[32];
    const uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup;
    const uint n = x_shape[1], lane = thread_index_in_simdgroup;
    device const int* in = x + row * n;
    uint rank = k, prefix = 0, mask = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
      atomic_store_explicit(&bins[t], 0u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint j = t; j < n; j += 256) {
        uint key = uint(in[j]) ^ 0x80000000u;
        if ((key & mask) == prefix) atomic_fetch_add_explicit(&bins[(key >> shift) & 255], 1u, memory_order_relaxed);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint count = atomic_load_explicit(&bins[t], memory_order_relaxed);
      uint before = simd_prefix_exclusive_sum(count);
      if (lane == 31) taken[simdgroup_index_in_threadgroup] = before + count;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint g = 0; g < simdgroup_index_in_threadgroup; ++g) before += taken[g];
      if (before <= rank && rank < before + count) {
        shared_digit = t;
        shared_rank = rank - before;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      prefix |= shared_digit << shift;
      mask |= 255u << shift;
      rank = shared_rank;
    }
    if (t == 0) kth[row] = int(prefix ^ 0x80000000u);
    // Which are the k + 1 smallest.
    int pivot = int(prefix ^ 0x80000000u);
    if (simdgroup_index_in_threadgroup == 0) {
      uint equals = rank + 1;
      for (uint first = 0; first < n; first += 32) {
        uint j = first + lane;
        bool inside = j < n, equal = inside && in[j] == pivot;
        uint seen = simd_prefix_exclusive_sum(equal ? 1u : 0u);
        if (inside) chosen[row * n + j] = in[j] < pivot || (equal && seen < equals);
        uint all = simd_sum(equal ? 1u : 0u);
        equals -= min(equals, all);
      }
    }
    """,
    inputs=lambda rng: {
        "x": np.concatenate(
            [rng.integers(-(2**31), 2**31, (2, 700)), rng.integers(-3, 3, (1, 700)), np.full((1, 700), -1)]
        ).astype(np.int32),
        "k": 123,
    },
    outputs={"kth": ((4,), "int32"), "chosen": ((4, 700), "bool")},
    grid=(4 * 256, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.threadgroup_atomics simdgroup.prefix_exclusive_sum address_spaces.threadgroup_scalar "
    "layouts.zero_dimensional layouts.python_number barriers.in_loop address_spaces.threadgroup_atomic",
)
def kth_smallest_by_digits(x, k):
    order = np.argsort(x, axis=1, kind="stable")
    chosen = np.zeros((4, 700), bool)
    np.put_along_axis(chosen, order[:, : k + 1], True, axis=1)
    return np.sort(x, axis=1)[:, k], chosen
