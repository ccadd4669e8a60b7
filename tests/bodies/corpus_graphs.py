"""Graphs and automata: searches, ranks, triangles, shortest ways; rules on rows, grids and piles."""

import numpy as np

from bodies import body


def _graph(rng, nodes, edges, isolated=0):
    """Neighbours of each node in order, as starts and targets. Both directions, no loops."""
    pairs = rng.integers(0, nodes - isolated, (edges, 2))
    matrix = np.zeros((nodes, nodes), bool)
    matrix[pairs[:, 0], pairs[:, 1]] = True
    matrix |= matrix.T
    np.fill_diagonal(matrix, False)
    starts = np.concatenate([[0], matrix.sum(axis=1).cumsum()]).astype(np.int32)
    return starts, np.nonzero(matrix)[1].astype(np.int32)


def _matrix(starts, targets):
    n = len(starts) - 1
    matrix = np.zeros((n, n), bool)
    matrix[np.repeat(np.arange(n), np.diff(starts)), targets] = True
    return matrix


# ---- Graphs


@body(
    """
    // Breadth first from a source for each threadgroup, all levels in one launch. Who comes first to a node puts it into the next
    // frontier, by exchange; which parent a node has must not depend on that, so it is the least of those one level above.
    threadgroup atomic_uint level[NODES];
    threadgroup ushort queue[2][NODES];
    threadgroup atomic_uint sizes[2];
    const uint t = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    const uint search = threadgroup_position_in_grid.x;
    const uint nodes = starts_shape[0] - 1;
    constexpr uint UNSEEN = 0xffffffff;
    for (uint v = t; v < nodes; v += threads) atomic_store_explicit(&level[v], UNSEEN, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
      atomic_store_explicit(&level[sources[search]], 0u, memory_order_relaxed);
      queue[0][0] = ushort(sources[search]);
      atomic_store_explicit(&sizes[0], 1u, memory_order_relaxed);
      atomic_store_explicit(&sizes[1], 0u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint current = 0, depth = 0, reached = 0;
    while (true) {
      const uint size = atomic_load_explicit(&sizes[current], memory_order_relaxed);
      if (size == 0) break;
      reached += size;
      // A simdgroup for each node of the frontier, lanes for its edges.
      for (uint q = simdgroup_index_in_threadgroup; q < size; q += threads / 32) {
        const uint v = queue[current][q];
        const int end = starts[v + 1];
        for (int e = starts[v] + int(thread_index_in_simdgroup); e < end; e += 32) {
          const uint w = targets[e];
          uint seen = UNSEEN;
          // Weak: it may fail though the node is unseen.
          while (!atomic_compare_exchange_weak_explicit(
                     &level[w], &seen, depth + 1, memory_order_relaxed, memory_order_relaxed) && seen == UNSEEN) {}
          if (seen == UNSEEN) {
            const uint place = atomic_fetch_add_explicit(&sizes[1 - current], 1u, memory_order_relaxed);
            queue[1 - current][place] = ushort(w);
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t == 0) atomic_store_explicit(&sizes[current], 0u, memory_order_relaxed);
      current = 1 - current;
      ++depth;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint v = t; v < nodes; v += threads) {
      const uint own = atomic_load_explicit(&level[v], memory_order_relaxed);
      levels[search * nodes + v] = int(own);
      int parent = -1;
      for (int e = starts[v]; e < starts[v + 1] && own != 0 && own != UNSEEN; ++e) {
        if (atomic_load_explicit(&level[targets[e]], memory_order_relaxed) == own - 1) {
          parent = targets[e];
          break;
        }
      }
      parents[search * nodes + v] = parent;
    }
    if (t == 0) {
      summary[2 * search] = reached;
      summary[2 * search + 1] = depth;
    }
    """,
    template=[("NODES", 256)],
    inputs=lambda rng: {
        "starts": (graph := _graph(rng, 220, 300, isolated=5))[0],
        "targets": graph[1],
        "sources": np.array([0, 17, 219], np.int32),
    },
    outputs={"levels": ((3, 220), "int32"), "parents": ((3, 220), "int32"), "summary": ((3, 2), "uint32")},
    grid=(3 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="synchronisation.compare_exchange synchronisation.threadgroup_atomics barriers.in_while barriers.with_break "
    "address_spaces.threadgroup_small_array synchronisation.fetch_add barriers.run_time_trip_count",
)
def breadth_first_search(starts, targets, sources):
    matrix = _matrix(starts, targets)
    levels, parents, summary = np.full((3, 220), -1, np.int32), np.full((3, 220), -1, np.int32), []
    for s, source in enumerate(sources):
        frontier, depth = {int(source)}, 0
        levels[s, source] = 0
        while frontier:
            depth += 1
            frontier = {int(w) for v in frontier for w in np.flatnonzero(matrix[v]) if levels[s, w] < 0}
            levels[s, list(frontier)] = depth
        for v in np.flatnonzero(levels[s] > 0):
            parents[s, v] = np.flatnonzero(matrix[v] & (levels[s] == levels[s, v] - 1))[0]
        summary.append([(levels[s] >= 0).sum(), depth])
    return levels, parents, np.array(summary, np.uint32)


@body(
    """
    // Page rank by pulling: a quadgroup for each node adds what its neighbours hand on; nodes without edges hand what they have to
    // all. STEPS steps in one threadgroup, then how much the last one changed.
    threadgroup float rank[2][NODES];
    threadgroup float share[NODES];
    threadgroup float partial[32];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const uint nodes = starts_shape[0] - 1, quad = t / 4, quads = threads_per_threadgroup.x / 4;
    for (uint v = t; v < nodes; v += threads_per_threadgroup.x) rank[0][v] = 1.0f / float(nodes);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint current = 0;
    float change = 0;
    for (int step = 0; step < STEPS; ++step) {
      float lost = 0;
      for (uint v = t; v < nodes; v += threads_per_threadgroup.x) {
        const int degree = starts[v + 1] - starts[v];
        if (degree == 0) lost += rank[current][v];
        share[v] = degree == 0 ? 0 : rank[current][v] / float(degree);
      }
      lost = simd_sum(lost);
      if (lane == 0) partial[group] = lost;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      lost = simd_sum(lane < simdgroups_per_threadgroup ? partial[lane] : 0.0f);
      const float base = (1 - damping) / float(nodes) + damping * lost / float(nodes);
      change = 0;
      for (uint v = quad; v < nodes; v += quads) {
        float sum = 0;
        for (int e = starts[v] + int(t % 4); e < starts[v + 1]; e += 4) sum += share[targets[e]];
        sum = quad_sum(sum);
        if (t % 4 == 0) {
          const float next = base + damping * sum;
          change += abs(next - rank[current][v]);
          rank[1 - current][v] = next;
        }
      }
      current = 1 - current;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    change = simd_sum(change);
    if (lane == 0) partial[group] = change;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint v = t; v < nodes; v += threads_per_threadgroup.x) ranks[v] = rank[current][v];
    if (t == 0) {
      float sum = 1;
      for (uint g = 0; g < simdgroups_per_threadgroup; ++g) sum += partial[g];
      changes[0] = sum;
    }
    """,
    template=[("NODES", 256), ("STEPS", 6)],
    inputs=lambda rng: {
        "starts": (graph := _graph(rng, 200, 500, isolated=7))[0],
        "targets": graph[1],
        "damping": 0.85,
    },
    outputs={"ranks": ((200,), "float32"), "changes": ((1,), "float32")},
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    tolerance=2e-6,
    constructs="simdgroup.quad_sum simdgroup.sum barriers.double_buffering attributes.simdgroups_per_threadgroup "
    "barriers.in_loop barriers.between_two_loops layouts.zero_dimensional",
)
def page_rank(starts, targets, damping):
    matrix = _matrix(starts, targets).astype(float)
    degree = matrix.sum(axis=0)
    rank = np.full(200, 1 / 200)
    for _ in range(6):
        last = rank
        share = np.where(degree > 0, rank / np.maximum(degree, 1), 0)
        rank = (1 - damping) / 200 + damping * (matrix @ share + rank[degree == 0].sum() / 200)
    return rank, np.array([1 + abs(rank - last).sum()])


@body(
    """
    // Triangles through each node, and how near its neighbours are to knowing each other. A simdgroup for each edge to a larger
    // node: 32 of the shorter list are looked up in the longer one by bisection, all at once.
    const uint lane = thread_index_in_simdgroup;
    const int edges = targets_shape[0], nodes = starts_shape[0] - 1;
    const int edge = int(thread_position_in_grid.x / 32);
    if (edge >= edges) return;
    // The edge's own node, by bisection too.
    const int u = last_not_above(starts, 0, nodes, edge);
    const int v = targets[edge];
    if (v < u) return;
    int short_begin = starts[u], short_end = starts[u + 1], long_begin = starts[v], long_end = starts[v + 1];
    if (short_end - short_begin > long_end - long_begin) {
      swap(short_begin, long_begin);
      swap(short_end, long_end);
    }
    uint own = 0;
    for (int at = short_begin + int(lane); at < short_end; at += 32) {
      const int w = targets[at];
      // A triangle is counted at its edge of the two lower nodes.
      if (w <= v) continue;
      const int found = last_not_above(targets, long_begin, long_end, w);
      if (found < long_end && found >= long_begin && targets[found] == w) {
        ++own;
        atomic_fetch_add_explicit(&counts[w], 1u, memory_order_relaxed);
      }
    }
    own = simd_sum(own);
    if (lane == 0 && own > 0) {
      atomic_fetch_add_explicit(&counts[u], own, memory_order_relaxed);
      atomic_fetch_add_explicit(&counts[v], own, memory_order_relaxed);
      atomic_fetch_add_explicit(&counts[nodes], own, memory_order_relaxed);
    }
    """,
    header="""
// The last place in [begin, end) of what is not above the value; begin if all are.
inline int last_not_above(const device int* sorted, int begin, int end, int value) {
  while (end - begin > 1) {
    const int middle = begin + (end - begin) / 2;
    if (sorted[middle] <= value) begin = middle;
    else end = middle;
  }
  return begin;
}

template <typename T>
inline void swap(thread T& a, thread T& b) {
  const T kept = a;
  a = b;
  b = kept;
}
""",
    inputs=lambda rng: {
        # A few nodes know nearly everyone.
        "starts": (
            graph := (
                lambda m: (
                    np.concatenate([[0], m.sum(axis=1).cumsum()]).astype(np.int32),
                    np.nonzero(m)[1].astype(np.int32),
                )
            )((lambda a: a | a.T)(np.triu(rng.random((70, 70)) < np.where(np.arange(70) > 66, 0.8, 0.12), 1)))
        )[0],
        "targets": graph[1],
    },
    outputs={"counts": ((71,), "uint32")},
    # More than there are edges.
    grid=(1200 * 32, 1, 1),
    threadgroup=(128, 1, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="structure.return_before_simd address_spaces.device synchronisation.device_atomics structure.template "
    "address_spaces.thread launch.atomic_outputs reconvergence.continue_before_call simdgroup.sum",
)
def triangles_of_nodes(starts, targets):
    matrix = _matrix(starts, targets).astype(np.int64)
    through = np.diag(matrix @ matrix @ matrix) // 2
    return np.append(through, through.sum() // 3).astype(np.uint32)


@body(
    """
    // Shortest ways from one node to all, by relaxing every edge until nothing falls any more. Distance and predecessor are one
    // number of 64 bits, so that one atomic minimum takes both, and ties go to the least predecessor.
    threadgroup atomic_uint falls;
    const uint t = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    const int edges = sources_shape[0];
    device atomic_ulong* best = (device atomic_ulong*)state;
    for (uint v = t; v < NODES; v += threads) {
      const ulong begin = v == uint(origin) ? v : ~0ul;
      // The output is all zeros first, and a minimum would stay there: what is kept is the complement.
      atomic_max_explicit(&best[v], ~begin, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_device);
    uint rounds = 0;
    bool more = true;
    while (more) {
      if (t == 0) atomic_store_explicit(&falls, 0u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
      // All threads read what the last round left, into their own arrays.
      ulong from[PER], there[PER];
      for (int j = 0; j < PER; ++j) {
        const int e = int(t) + j * int(threads);
        from[j] = e < edges ? ~state[sources[e]] : ~0ul;
        there[j] = e < edges ? ~state[ends[e]] : 0ul;
      }
      threadgroup_barrier(mem_flags::mem_device);
      for (int j = 0; j < PER; ++j) {
        const int e = int(t) + j * int(threads);
        if (e >= edges || from[j] == ~0ul) continue;
        const ulong length = (from[j] >> 32) + weights[e];
        const ulong offer = length << 32 | uint(sources[e]);
        if (there[j] > offer) {
          atomic_max_explicit(&best[ends[e]], ~offer, memory_order_relaxed);
          atomic_fetch_or_explicit(&falls, 1u, memory_order_relaxed);
        }
      }
      threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
      more = atomic_load_explicit(&falls, memory_order_relaxed) != 0;
      ++rounds;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint v = t; v < NODES; v += threads) {
      const ulong own = ~state[v];
      distances[v] = own == ~0ul ? -1 : int(own >> 32);
      predecessors[v] = own == ~0ul ? -1 : int(uint(own));
    }
    if (t == 0) passes[0] = rounds;
    """,
    template=[("NODES", 90), ("PER", 6)],
    inputs=lambda rng: {
        "sources": rng.integers(0, 88, 360, np.int32),
        "ends": rng.integers(0, 89, 360, np.int32),
        "weights": rng.integers(1, 30, 360).astype(np.uint16),
        "origin": 3,
    },
    outputs={
        "state": ((90,), "uint64"),
        "distances": ((90,), "int32"),
        "predecessors": ((90,), "int32"),
        "passes": ((1,), "uint32"),
    },
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    init_value=0,
    constructs="types.atomic_ulong address_spaces.cast_to_atomic barriers.private_arrays_across barriers.in_while "
    "synchronisation.fetch_or synchronisation.mem_flags types.ulong barriers.run_time_trip_count",
)
def shortest_ways(sources, ends, weights, origin):
    distances, rounds = np.full(90, np.inf), 0
    distances[origin] = 0
    keys = np.full(90, 2**64 - 1, object)
    keys[origin] = int(origin)
    while True:
        # As the numbers of both say: the predecessor may still become a lesser one.
        offers = [
            (int(b), ((int(keys[a]) >> 32) + int(w)) << 32 | int(a))
            for a, b, w in zip(sources, ends, weights, strict=True)
            if keys[a] != 2**64 - 1
        ]
        rounds += 1
        better = [(b, offer) for b, offer in offers if offer < keys[b]]
        if not better:
            break
        for b, offer in better:
            keys[b] = min(keys[b], offer)
    reached = keys != 2**64 - 1
    lengths = np.array([int(k) >> 32 if r else -1 for k, r in zip(keys, reached, strict=True)], np.int32)
    # Bellman's equations hold.
    for a, b, w in zip(sources, ends, weights, strict=True):
        assert not reached[a] or lengths[b] <= lengths[a] + w
    before = np.array([int(k) & (2**32 - 1) if r else -1 for k, r in zip(keys, reached, strict=True)], np.int32)
    return np.array([2**64 - 1 - int(k) for k in keys], np.uint64), lengths, before, np.array([rounds], np.uint32)


# ---- Automata


@body(
    """
    // Elementary automata, 32 cells a word and 32 words a simdgroup, a rule for each: a cell's three neighbours are bits of three
    // words, and the rule's eight cases are put together from its bits. Every STRIDE-th generation is kept.
    const uint lane = thread_index_in_simdgroup;
    const uint which = thread_position_in_grid.y;
    const uint rule = rules[which];
    uint cells = first[which * 32 + lane];
    uint total = 0;
    for (int generation = 0; generation < GENERATIONS; ++generation) {
      // Rows are rings; bit 31 is the leftmost cell of a word, lane 0 the leftmost word.
      const uint before = simd_shuffle_rotate_up(cells, 1), after = simd_shuffle_rotate_down(cells, 1);
      const uint left = cells >> 1 | before << 31, right = cells << 1 | after >> 31;
      uint next = 0;
      #pragma unroll
      for (uint k = 0; k < 8; ++k) {
        const uint matches = (k & 4 ? left : ~left) & (k & 2 ? cells : ~cells) & (k & 1 ? right : ~right);
        if ((rule >> k) & 1) next |= matches;
      }
      cells = next;
      total += popcount(cells);
      if (generation % STRIDE == STRIDE - 1)
        kept[(which * (GENERATIONS / STRIDE) + generation / STRIDE) * 32 + lane] = cells;
    }
    total = simd_sum(total);
    if (lane == 0) populations[which] = total;
    """,
    template=[("GENERATIONS", 24), ("STRIDE", 4)],
    inputs=lambda rng: {
        "rules": np.array([30, 90, 110, 184, 45, 54], np.uint8),
        "first": np.concatenate(
            [np.where(np.arange(64) % 32 == 16, 1, 0).reshape(2, 32), rng.integers(0, 2**32, (4, 32))]
        ).astype(np.uint32),
    },
    outputs={"kept": ((6, 6, 32), "uint32"), "populations": ((6,), "uint32")},
    grid=(32, 6, 1),
    threadgroup=(32, 3, 1),
    constructs="simdgroup.shuffle_rotate_up simdgroup.shuffle_rotate_down functions.popcount structure.pragma_unroll "
    "layouts.few_elements simdgroup.sum",
)
def elementary_automata(rules, first):
    kept, populations = np.zeros((6, 6, 32), np.uint32), []
    for n, rule in enumerate(rules.tolist()):
        table = np.array([rule >> k & 1 for k in range(8)])
        cells = np.unpackbits(first[n].astype(">u4").view(np.uint8)).astype(int)
        total = 0
        for generation in range(24):
            cells = table[4 * np.roll(cells, 1) + 2 * cells + np.roll(cells, -1)]
            total += cells.sum()
            if generation % 4 == 3:
                kept[n, generation // 4] = np.packbits(cells.astype(np.uint8)).view(">u4")
        populations.append(total)
    return kept, np.array(populations, np.uint32)


@body(
    """
    // A gas on a hexagonal lattice (Frisch, Hasslacher and Pomeau): a site is six bits, one for each direction in which a particle
    // flies, and a seventh for a wall. Two that meet turn to a side, which the place and the time say; three that meet turn
    // back; walls send all back. Particles and their momentum are kept, which the sums show.
    threadgroup uchar site[2][ROWS][COLUMNS];
    const int2 t = int2(thread_position_in_threadgroup.xy);
    site[0][t.y][t.x] = start[t.y * COLUMNS + t.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int current = 0;
    for (int step = 0; step < STEPS; ++step) {
      // Stream: bit d comes from the neighbour against direction d.
      uchar own = site[current][t.y][t.x] & kWall;
      #pragma unroll
      for (int d = 0; d < 6; ++d) {
        const int2 from = neighbour(t, (d + 3) % 6, int2(COLUMNS, ROWS));
        own |= site[current][from.y][from.x] & (1 << d);
      }
      site[1 - current][t.y][t.x] = collided(own, ((t.x ^ t.y ^ step) & 1) != 0);
      current = 1 - current;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    const uchar own = site[current][t.y][t.x];
    out[t.y * COLUMNS + t.x] = own;
    // Twice the horizontal momentum, in whole numbers.
    int momentum = 0;
    for (int d = 0; d < 6; ++d) momentum += (own >> d) & 1 ? kAcross[d] : 0;
    const int particles = popcount(uint(own & 63));
    const int2 sums = int2(simd_sum(particles), simd_sum(momentum));
    if (simd_is_first()) {
      atomic_fetch_add_explicit((device atomic_int*)&totals[0], sums.x, memory_order_relaxed);
      atomic_fetch_add_explicit((device atomic_int*)&totals[1], sums.y, memory_order_relaxed);
    }
    """,
    header="""
constant uchar kWall = 64;

// East, north-east, north-west, west, south-west, south-east.
constant char kAcross[6] = {2, 1, -1, -2, -1, 1};
constant char kDown[6] = {0, -1, -1, 0, 1, 1};

// Odd rows are half a place to the right.
inline int2 neighbour(int2 at, int direction, int2 size) {
  int2 to = at + int2(0, kDown[direction]);
  if (kDown[direction] == 0) to.x += kAcross[direction] / 2;
  else if (kAcross[direction] > 0) to.x += at.y & 1;
  else to.x -= 1 - (at.y & 1);
  return (to + size) % size;
}

inline uchar turned(uchar particles, int by) { return ((particles << by) | (particles >> (6 - by))) & 63; }

inline uchar collided(uchar site, bool clockwise) {
  if (site & kWall) return kWall | turned(site & 63, 3);
  switch (site) {
    // Head on.
    case 0b001001:
    case 0b010010:
    case 0b100100: return turned(site, clockwise ? 1 : 5);
    // From three sides.
    case 0b010101:
    case 0b101010: return turned(site, 3);
    default: return site;
  }
}
""",
    template=[("ROWS", 16), ("COLUMNS", 48), ("STEPS", 20)],
    inputs=lambda rng: {
        "start": (
            np.where(rng.random((16, 48)) < 0.6, rng.integers(0, 64, (16, 48)) & rng.integers(0, 64, (16, 48)), 0)
            | np.where((np.arange(48) == 20) & (np.arange(16)[:, None] < 9), 64, 0)
        ).astype(np.uint8)
    },
    outputs={"out": ((16, 48), "uint8"), "totals": ((2,), "int32")},
    grid=(48, 16, 1),
    threadgroup=(48, 16, 1),
    init_value=0,
    constructs="address_spaces.constant_array barriers.double_buffering literals.integer structure.switch types.uchar "
    "simdgroup.is_first address_spaces.threadgroup_small_array functions.popcount synchronisation.fetch_add",
)
def lattice_gas(start):
    across, down = (2, 1, -1, -2, -1, 1), (0, -1, -1, 0, 1, 1)
    site = start.astype(int)
    y, x = np.mgrid[:16, :48]
    for step in range(20):
        moved = site & 64
        for d in range(6):
            # Twice the place across, since odd rows are moved by a half.
            to_y = (y + down[d]) % 16
            to_x = (2 * x + y % 2 + across[d] - to_y % 2) // 2 % 48
            particles = np.zeros_like(site)
            particles[to_y, to_x] = site >> d & 1
            moved |= particles << d
        out = moved.copy()
        for place in np.ndindex(16, 48):
            v = int(moved[place])
            directions = [d for d in range(6) if v >> d & 1]
            turn = 0
            if v & 64:
                turn = 3
            elif len(directions) == 2 and directions[1] - directions[0] == 3:
                turn = 1 if (place[0] ^ place[1] ^ step) & 1 else 5
            elif directions in ([0, 2, 4], [1, 3, 5]):
                turn = 3
            out[place] = v & 64 | sum(1 << (d + turn) % 6 for d in directions)
        site = out
    bits = site[..., None] >> np.arange(6) & 1
    assert bits.sum() == (start[..., None] >> np.arange(6) & 1).sum()
    return site.astype(np.uint8), np.array([bits.sum(), (bits * across).sum()], np.int32)


@body(
    """
    // A pile of sand: who has four grains or more gives one to each neighbour, until all are quiet; what falls over the edge is
    // gone. The end does not depend on the order (the pile is abelian), nor does how often each place has toppled.
    threadgroup atomic_int grains[SIDE + 2][SIDE + 2];
    threadgroup atomic_int active[2];
    const int2 t = int2(thread_position_in_threadgroup.xy) + 1;
    const int index = thread_index_in_threadgroup;
    for (int j = index; j < (SIDE + 2) * (SIDE + 2); j += SIDE * SIDE)
      atomic_store_explicit(&grains[j / (SIDE + 2)][j % (SIDE + 2)], 0, memory_order_relaxed);
    if (index < 2) atomic_store_explicit(&active[index], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_store_explicit(&grains[t.y][t.x], pile[index], memory_order_relaxed);
    int count = 0, round = 0;
    bool quiet = false;
    do {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const int own = atomic_load_explicit(&grains[t.y][t.x], memory_order_relaxed);
      const int times = own / 4;
      if (simd_any(times > 0) && simd_is_first())
        atomic_store_explicit(&active[round & 1], 1, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (times > 0) {
        count += times;
        atomic_fetch_sub_explicit(&grains[t.y][t.x], 4 * times, memory_order_relaxed);
        atomic_fetch_add_explicit(&grains[t.y][t.x - 1], times, memory_order_relaxed);
        atomic_fetch_add_explicit(&grains[t.y][t.x + 1], times, memory_order_relaxed);
        atomic_fetch_add_explicit(&grains[t.y - 1][t.x], times, memory_order_relaxed);
        atomic_fetch_add_explicit(&grains[t.y + 1][t.x], times, memory_order_relaxed);
      }
      quiet = atomic_load_explicit(&active[round & 1], memory_order_relaxed) == 0;
      // The other flag is next, and nobody looks at it now.
      if (index == 0) atomic_store_explicit(&active[~round & 1], 0, memory_order_relaxed);
      ++round;
    } while (!quiet);
    quietly[index] = atomic_load_explicit(&grains[t.y][t.x], memory_order_relaxed);
    topplings[index] = count;
    """,
    template=[("SIDE", 16)],
    inputs=lambda rng: {"pile": (rng.integers(0, 7, (16, 16)) + 200 * (rng.random((16, 16)) < 0.01)).astype(np.int32)},
    outputs={"quietly": ((16, 16), "int32"), "topplings": ((16, 16), "int32")},
    grid=(16, 16, 1),
    threadgroup=(16, 16, 1),
    constructs="barriers.in_do structure.do simdgroup.any simdgroup.is_first synchronisation.fetch_sub "
    "synchronisation.threadgroup_atomics barriers.run_time_trip_count types.atomic_int",
)
def sand_pile(pile):
    grains, count = np.pad(pile.astype(int), 1), np.zeros((18, 18), int)
    while True:
        # One place at a time, in another order.
        places = np.argwhere(grains[1:-1, 1:-1] >= 4) + 1
        if not len(places):
            break
        for y, x in places[::-1]:
            while grains[y, x] >= 4:
                times = grains[y, x] // 4
                grains[y, x] -= 4 * times
                count[y, x] += times
                for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                    grains[y + dy, x + dx] += times
    return grains[1:-1, 1:-1].astype(np.int32), count[1:-1, 1:-1].astype(np.int32)
