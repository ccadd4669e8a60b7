"""Scans and reductions of data: by segments, runs and keys, of moments and extremes, over one threadgroup or many."""

import numpy as np

from bodies import DTYPES, Dtype, body

# ---- Segments


for _dtype in ("int32", "float32"):

    def _segmented(values, heads):
        starts = np.flatnonzero(np.concatenate([[True], heads[1:].astype(bool)]))
        lengths = np.diff(np.append(starts, len(values)))
        inclusive = np.concatenate([part.cumsum(dtype=part.dtype) for part in np.split(values, starts[1:])])
        largest = np.concatenate([np.maximum.accumulate(part) for part in np.split(values, starts[1:])])
        assert lengths.sum() == len(values)
        return inclusive - values, largest

    body(
        """
    // Sums (exclusive) and maxima (inclusive) since the last head, four elements a thread, over one threadgroup.
    constexpr int PER = 4;
    threadgroup Carry<T> totals[32];
    const int lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const int first = int(thread_position_in_grid.x) * PER;
    const int n = values_shape[0];

    T value[PER];
    bool head[PER];
    Carry<T> own = Carry<T>::nothing();
    MLX_MTL_PRAGMA_UNROLL
    for (int j = 0; j < PER; ++j) {
      const int at = first + j;
      value[j] = at < n ? values[at] : T(0);
      head[j] = at < n && heads[at] != 0;
      own = own + Carry<T>{value[j], value[j], head[j]};
    }
    // Over the simdgroup: a lane takes from those below as long as it has no head itself.
    Carry<T> sum = own;
    for (ushort distance = 1; distance < 32; distance *= 2) {
      Carry<T> below = {
          simd_shuffle_up(sum.total, distance), simd_shuffle_up(sum.largest, distance), simd_shuffle_up(sum.stops, distance)};
      if (lane >= distance) sum = below + sum;
    }
    if (lane == 31) totals[group] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Carry<T> before = Carry<T>::nothing();
    for (int g = 0; g < group; ++g) before = before + totals[g];
    Carry<T> lower = {
        simd_shuffle_up(sum.total, 1), simd_shuffle_up(sum.largest, 1), simd_shuffle_up(sum.stops, 1)};
    if (lane > 0) before = before + lower;
    MLX_MTL_PRAGMA_UNROLL
    for (int j = 0; j < PER; ++j) {
      const int at = first + j;
      const bool begins = head[j] || at == 0;
      const Carry<T> next = before + Carry<T>{value[j], value[j], head[j]};
      if (at < n) {
        sums[at] = begins ? T(0) : before.total;
        largest[at] = next.largest;
      }
      before = next;
    }
    """,
        name=f"segmented_scans_{_dtype}",
        header="""
template <typename T>
struct Carry {
  T total, largest;
  bool stops;   // a head is among them: nothing comes through from before

  static Carry nothing() { return {T(0), Limits<T>::min, false}; }

  Carry operator+(Carry later) const {
    if (later.stops) return later;
    return {T(total + later.total), max(largest, later.largest), stops};
  }
};
""",
        inputs=lambda rng, _dtype=_dtype: {
            "values": rng.integers(-100, 100, 499).astype(DTYPES[_dtype]),
            "heads": (rng.random(499) < np.repeat([0.3, 0.01], [200, 299])).astype(np.uint8),
        },
        template=[("T", Dtype(_dtype))],
        outputs={"sums": ((499,), _dtype), "largest": ((499,), _dtype)},
        grid=(128, 1, 1),
        threadgroup=(128, 1, 1),
        constructs="structure.operator simdgroup.shuffle_up address_spaces.threadgroup_struct mlx.Limits "
        "mlx.MLX_MTL_PRAGMA_UNROLL structure.template barriers.scan",
    )(_segmented)


# ---- Runs and keys


@body(
    """
    // Run lengths of bytes and back again: heads of runs by comparison, their number by a scan, lengths by the next head's
    // place; then every place finds its run by bisection, which must give the input.
    threadgroup uint group_heads[32];
    threadgroup ushort run_start[SIZE + 1];
    threadgroup uchar run_value[SIZE];
    threadgroup uint run_count;
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const uint row = threadgroup_position_in_grid.x;
    const uint length = lengths[row];
    device const uchar* in = bytes + row * SIZE;
    const bool inside = t < length;
    const uchar own = in[t];
    const bool head = inside && (t == 0 || in[t - 1] != own || (t % MOST) == 0);
    const uint votes = uint(uint64_t(simd_ballot(head)));
    const uint below = popcount(votes & ~(0xffffffffu << lane));
    if (simd_is_first()) group_heads[group] = popcount(votes);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (group == 0) {
      const uint count = lane < SIZE / 32 ? group_heads[lane] : 0;
      const uint sum = simd_prefix_inclusive_sum(count);
      group_heads[lane] = sum - count;
      if (lane == 31) run_count = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint count = run_count;
    if (head) {
      const uint number = group_heads[group] + below;
      run_start[number] = ushort(t);
      run_value[number] = own;
    }
    if (t == 0) run_start[count] = ushort(length);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < count) {
      run_values[row * SIZE + t] = run_value[t];
      run_lengths[row * SIZE + t] = uchar(run_start[t + 1] - run_start[t]);
    }
    if (t == 0) run_counts[row] = count;

    uint low = 0, high = count;
    while (inside && high - low > 1) {
      const uint middle = (low + high) >> 1;
      if (run_start[middle] <= t) low = middle;
      else high = middle;
    }
    decoded[row * SIZE + t] = inside ? run_value[low] : 0;
    """,
    template=[("SIZE", 256), ("MOST", 64)],
    inputs=lambda rng: {
        "bytes": np.stack(
            [
                np.repeat(rng.integers(0, 4, 256), rng.integers(1, 12, 256))[:256],
                rng.integers(0, 2, 256),
                np.full(256, 9),
            ]
        ).astype(np.uint8),
        "lengths": np.array([256, 201, 255], np.int32),
    },
    outputs={
        "run_values": ((3, 256), "uint8"),
        "run_lengths": ((3, 256), "uint8"),
        "run_counts": ((3,), "uint32"),
        "decoded": ((3, 256), "uint8"),
    },
    grid=(3 * 256, 1, 1),
    threadgroup=(256, 1, 1),
    init_value=0,
    constructs="simdgroup.ballot simdgroup.is_first functions.popcount address_spaces.threadgroup_scalar structure.while "
    "address_spaces.threadgroup_small_array barriers.scan",
)
def run_lengths_and_back(bytes, lengths):
    values, runs, decoded = (np.zeros((3, 256), np.uint8) for _ in range(3))
    numbers = []
    for row, n in enumerate(lengths):
        part = bytes[row, :n]
        heads = np.flatnonzero((np.arange(n) % 64 == 0) | (part != np.roll(part, 1)))
        values[row, : len(heads)] = part[heads]
        runs[row, : len(heads)] = np.diff(np.append(heads, n))
        decoded[row, :n] = part
        numbers.append(len(heads))
    return values, runs, np.array(numbers, np.uint32), decoded


@body(
    """
    // Compaction over all threadgroups in one launch: who finishes a block adds its number of survivors to its successor's
    // count, which waits for it (a chained scan). Blocks are handed out by a counter, so that a block's predecessor has begun.
    threadgroup uint block_number, base, group_counts[8];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    if (t == 0) block_number = atomic_fetch_add_explicit(&state[0], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint block = block_number;
    const uint at = block * SIZE + t, n = x_shape[0];
    const float value = at < n ? x[at] : 0.0f;
    const bool stays = at < n && isfinite(value) && value >= limits[0] && value < limits[1];
    const uint place = simd_prefix_exclusive_sum(uint(stays));
    if (lane == 31) group_counts[group] = place + uint(stays);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
      uint total = 0;
      for (uint g = 0; g < SIZE / 32; ++g) {
        const uint count = group_counts[g];
        group_counts[g] = total;
        total += count;
      }
      uint before = 0;
      if (block > 0) {
        // A sum and a mark that it is there are one word, so that nothing else has to be ordered.
        uint seen;
        do {
          seen = atomic_load_explicit(&state[block], memory_order_relaxed);
        } while (seen < kThere);
        before = seen - kThere;
      }
      atomic_store_explicit(&state[block + 1], kThere + before + total, memory_order_relaxed);
      base = before;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (stays) {
      const uint to = base + group_counts[group] + place;
      atomic_store_explicit(&kept[to], as_type<uint>(value), memory_order_relaxed);
      atomic_store_explicit(&places[to], at, memory_order_relaxed);
    }
    """,
    header="constant uint kThere = 1u << 31;",
    template=[("SIZE", 128)],
    inputs=lambda rng: {
        "x": np.where(rng.random(1111) < 0.1, np.nan, rng.normal(size=1111)).astype(np.float32),
        "limits": np.array([-0.5, 1.5], np.float32),
    },
    outputs={"kept": ((1111,), "uint32"), "places": ((1111,), "uint32"), "state": ((10,), "uint32")},
    grid=(9 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="synchronisation.waiting_threadgroups launch.atomic_outputs functions.isfinite structure.do "
    "address_spaces.constant_scalar simdgroup.prefix_exclusive_sum types.as_type layouts.few_elements",
)
def compaction_over_threadgroups(x, limits):
    with np.errstate(invalid="ignore"):
        stays = (x >= limits[0]) & (x < limits[1])
    kept, places = np.zeros(1111, np.uint32), np.zeros(1111, np.uint32)
    count = stays.sum()
    kept[:count], places[:count] = x[stays].view(np.uint32), np.flatnonzero(stays)
    sums = np.pad(stays, (0, 9 * 128 - 1111)).reshape(9, 128).sum(axis=1).cumsum()
    return kept, places, np.concatenate([[9], 2**31 + sums]).astype(np.uint32)


@body(
    """
    // Group by key: rows of a table of sorted keys are reduced to count, sum, smallest, largest and the place of the largest.
    // A simdgroup reduces the runs that lie in its 32 rows; what a run has in several simdgroups is put together by atomics,
    // floats through their bits in the order of the numbers.
    const uint i = thread_position_in_grid.x, n = keys_shape[0];
    const ushort lane = thread_index_in_simdgroup;
    const bool inside = i < n;
    const int key = inside ? keys[i] : -1;
    const float value = inside ? values[i] : 0;
    const int previous = simd_shuffle_and_fill_up(key, -2, 1);
    const bool head = key != previous;
    const uint heads = uint(uint64_t(simd_ballot(head)));
    // Lanes of this run: from the last head at or below to the next one above.
    const ushort begin = 31 - clz(heads & (0xffffffffu >> (31 - lane)));
    const uint above = lane == 31 ? 0 : heads & (0xffffffffu << (lane + 1));
    const ushort end = above ? ctz(above) : 32;

    int sum = int(value);
    uint low = ordered(value), high = ordered(value);
    uint where = i;
    for (ushort distance = 1; distance < 32; distance *= 2) {
      const int other_sum = simd_shuffle_down(sum, distance);
      const uint other_low = simd_shuffle_down(low, distance), other_high = simd_shuffle_down(high, distance);
      const uint other_where = simd_shuffle_down(where, distance);
      if (lane + distance < end) {
        sum += other_sum;
        low = min(low, other_low);
        if (other_high > high) {
          high = other_high;
          where = other_where;
        }
      }
    }
    if (!head || !inside) return;
    device atomic_uint* to = groups + key * 4;
    atomic_fetch_add_explicit(&to[0], uint(end - begin), memory_order_relaxed);
    atomic_fetch_add_explicit(&to[1], uint(sum), memory_order_relaxed);
    atomic_fetch_max_explicit(&to[2], ~low, memory_order_relaxed);
    atomic_fetch_max_explicit(&to[3], high, memory_order_relaxed);
    // Place and value together: the largest, and of equals the first.
    device atomic_ulong* best = (device atomic_ulong*)arg_max + key;
    atomic_max_explicit(best, ulong(high) << 32 | (0xffffffffu - where), memory_order_relaxed);
    """,
    header="""
inline uint ordered(float x) {
  const uint bits = as_type<uint>(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
""",
    # The last rows, of the padding, have no key.
    inputs=lambda rng: {
        "keys": (keys := np.sort(np.minimum(rng.integers(0, 30, 230), rng.integers(0, 60, 230)))).astype(np.int32),
        "values": rng.integers(-99, 100, len(keys)).astype(np.float32),
    },
    outputs={"groups": ((32, 4), "uint32"), "arg_max": ((32,), "uint64")},
    grid=(256, 1, 1),
    threadgroup=(64, 1, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="simdgroup.shuffle_and_fill_up simdgroup.shuffle_down functions.clz functions.ctz synchronisation.fetch_max "
    "types.atomic_ulong types.atomic_uint synchronisation.fetch_add launch.atomic_outputs",
)
def groups_by_sorted_key(keys, values):
    def ordered(v):
        bits = int(np.float32(v).view(np.uint32))
        return bits ^ 0xFFFFFFFF if bits >> 31 else bits | 1 << 31

    groups, best = np.zeros((32, 4), np.uint32), np.zeros(32, np.uint64)
    for key in np.unique(keys):
        where = np.flatnonzero(keys == key)
        own = values[where]
        groups[key] = (len(own), int(own.sum()) % 2**32, 2**32 - 1 - ordered(own.min()), ordered(own.max()))
        best[key] = ordered(own.max()) << 32 | (2**32 - 1 - int(where[own.argmax()]))
    return groups, best


# ---- Moments


@body(
    """
    // Mean, variance, skewness and kurtosis of each column of a table in one pass: threads keep the first four central moments
    // of their share (Pébay's formulas) and put them together in a tree in threadgroup memory.
    threadgroup float4 moments[THREADS];
    threadgroup float counts[THREADS];
    const uint column = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup;
    const int rows = x_shape[0];
    float n = 0;
    float4 m = 0;     // mean, and sums of the deviations' squares, cubes and fourth powers
    for (int row = t; row < rows; row += THREADS) {
      const float value = x[row * x_strides[0] + column * x_strides[1]];
      if (isnan(value)) continue;
      const float before = n;
      n += 1;
      const float delta = value - m.x, part = delta / n, square = part * part, term = delta * part * before;
      m.x += part;
      m.w += term * square * (n * n - 3 * n + 3) + 6 * square * m.y - 4 * part * m.z;
      m.z += term * part * (n - 2) - 3 * part * m.y;
      m.y += term;
    }
    moments[t] = m;
    counts[t] = n;
    for (uint half_count = THREADS / 2; half_count > 0; half_count /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < half_count && counts[t + half_count] > 0) {
        const float na = counts[t], nb = counts[t + half_count], all = na + nb;
        const float4 a = moments[t], b = moments[t + half_count];
        const float d = b.x - a.x, d2 = d * d;
        float4 c;
        c.x = a.x + d * nb / all;
        c.y = a.y + b.y + d2 * na * nb / all;
        c.z = a.z + b.z + d2 * d * na * nb * (na - nb) / (all * all) + 3 * d * (na * b.y - nb * a.y) / all;
        c.w = a.w + b.w + d2 * d2 * na * nb * (na * na - na * nb + nb * nb) / (all * all * all)
            + 6 * d2 * (na * na * b.y + nb * nb * a.y) / (all * all) + 4 * d * (na * b.z - nb * a.z) / all;
        moments[t] = c;
        counts[t] = all;
      }
    }
    if (t == 0) {
      const float4 all = moments[0];
      const float count = counts[0], variance = all.y / count;
      out[column * 4] = all.x;
      out[column * 4 + 1] = all.y / (count - 1);
      out[column * 4 + 2] = (all.z / count) / (variance * sqrt(variance));
      out[column * 4 + 3] = (all.w / count) / (variance * variance);
    }
    """,
    template=[("THREADS", 64)],
    inputs=lambda rng: {
        # Columns of a transposed array; skewed, so that the third moment is not near 0.
        "x": np.where(
            rng.random((5, 333)) < 0.05, np.nan, rng.exponential(size=(5, 333)) + np.array([[1], [3], [5], [0.5], [-9]])
        )
        .astype(np.float32)
        .T
    },
    outputs={"out": ((5, 4), "float32")},
    grid=(5 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    ensure_row_contiguous=False,
    tolerance=2e-6,
    constructs="barriers.tree_reduction address_spaces.threadgroup_vectors functions.isnan layouts.strided "
    "reconvergence.continue_before_call layouts.shape_arguments functions.sqrt",
)
def four_moments_of_columns(x):
    rows = []
    for column in x.astype(np.float64).T:
        v = column[~np.isnan(column)]
        d = v - v.mean()
        var = (d**2).mean()
        rows.append([v.mean(), v.var(ddof=1), (d**3).mean() / var**1.5, (d**4).mean() / var**2])
    return np.array(rows)


@body(
    """
    // A running sum that is as good as with twice the digits: the parts that roundings lose are summed as well (Neumaier), and
    // the lanes' pairs are scanned with exact sums. Then the same sum without such care, to see the difference.
    const uint lane = thread_index_in_simdgroup, row = threadgroup_position_in_grid.x;
    const int n = x_shape[1];
    float2 carried = 0;
    for (int first = 0; first < n; first += 32) {
      const int at = first + lane;
      float2 sum = float2(at < n ? x[row * n + at] : 0.0f, 0.0f);
      for (ushort distance = 1; distance < 32; distance <<= 1) {
        const float2 below = simd_shuffle_up(sum, distance);
        if (lane >= distance) sum = added(below, sum);
      }
      sum = added(carried, sum);
      if (at < n) y[row * n + at] = sum.x + sum.y;
      carried = simd_broadcast(sum, 31);
    }
    """,
    header="""
// a + b without loss: the rounded sum, and what the rounding took.
inline float2 two_sum(float a, float b) {
  const float s = a + b, t = s - a;
  return float2(s, (a - (s - t)) + (b - t));
}

inline float2 added(float2 a, float2 b) {
  float2 s = two_sum(a.x, b.x);
  s.y += a.y + b.y;
  return two_sum(s.x, s.y);
}
""",
    inputs=lambda rng: {
        "x": (
            rng.uniform(0.5, 1, (3, 150)) * 10.0 ** rng.integers(-4, 6, (3, 150)) * rng.choice([-1, 1, 1], (3, 150))
            + np.eye(1, 150) * 1e7
        ).astype(np.float32)
    },
    outputs={"y": ((3, 150), "float32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=2**-23.9,
    constructs="simdgroup.shuffle_up simdgroup.broadcast types.float2 structure.helper_function arithmetic.no_contraction",
)
def compensated_running_sum(x):
    return x.astype(np.float64).cumsum(axis=1)


@body(
    """
    // Quantiles of each row as NumPy's default has them: sorted in threadgroup memory, then between two places. NaNs are left
    // out; a row of nothing else has none.
    threadgroup float sorted[SIZE];
    threadgroup atomic_int present;
    const int t = thread_index_in_threadgroup, row = threadgroup_position_in_grid.y;
    const int n = x_shape[1];
    if (t == 0) atomic_store_explicit(&present, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int j = t; j < SIZE; j += THREADS) {
      float v = j < n ? x[row * n + j] : NAN;
      if (!isnan(v)) atomic_fetch_add_explicit(&present, 1, memory_order_relaxed);
      sorted[j] = isnan(v) ? INFINITY : v;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Shell's sort would do for one thread; here odd and even neighbours exchange by strides that shrink.
    for (int span = 2; span <= SIZE; span <<= 1)
      for (int stride = span >> 1; stride > 0; stride >>= 1) {
        for (int j = t; j < SIZE / 2; j += THREADS) {
          const int low = 2 * stride * (j / stride) + j % stride;
          const int high = stride == span >> 1 ? low ^ (span - 1) : low + stride;
          const float a = sorted[low], b = sorted[high];
          if (a > b) {
            sorted[low] = b;
            sorted[high] = a;
          }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
    const int count = atomic_load_explicit(&present, memory_order_relaxed);
    if (t >= q_shape[0]) return;
    float result = NAN;
    if (count > 0) {
      float whole;
      const float part = modf(q[t] * float(count - 1), whole);
      const int low = int(whole), high = min(low + 1, count - 1);
      result = mix(sorted[low], sorted[high], part);
    }
    quantiles[row * q_shape[0] + t] = result;
    """,
    template=[("SIZE", 128), ("THREADS", 32)],
    inputs=lambda rng: {
        "x": np.where(
            rng.random((4, 101)) < np.array([[0], [0.3], [1], [0.98]]), np.nan, rng.uniform(1, 9, (4, 101))
        ).astype(np.float32),
        "q": np.array([0, 0.25, 0.5, 0.75, 0.9, 0.96875, 0.99, 1], np.float32),
    },
    outputs={"quantiles": ((4, 8), "float32")},
    grid=(32, 4, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-6,
    constructs="functions.modf functions.mix functions.isnan types.NAN types.INFINITY barriers.sort barriers.nested_loop "
    "synchronisation.threadgroup_atomics",
)
def quantiles_of_rows(x, q):
    out = np.full((4, 8), np.nan)
    for row in range(4):
        v = x[row][~np.isnan(x[row])].astype(np.float64)
        if len(v):
            out[row] = np.quantile(v, q.astype(np.float64))
    return out
