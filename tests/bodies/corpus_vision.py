"""What is seen in images: regions, distances, motion, lines, boxes."""

import numpy as np

from bodies import body

# ---- Regions


@body(
    """
    // Regions of an image of one tile: a forest over the pixels, in which a root is a region's first pixel. Roots are joined by
    // fetch_min, the larger under the smaller, so that the end does not depend on who comes first.
    threadgroup atomic_uint parent[SIDE * SIDE];
    threadgroup uint before[SIDE];
    threadgroup atomic_uint area[MOST], left[MOST], right[MOST], top[MOST], bottom[MOST];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, row = simdgroup_index_in_threadgroup;
    const uint tile = threadgroup_position_in_grid.z;
    device const uchar* in = image + tile * SIDE * SIDE;
    const uchar own = in[t];
    atomic_store_explicit(&parent[t], t, memory_order_relaxed);
    if (t < MOST) {
      atomic_store_explicit(&area[t], 0u, memory_order_relaxed);
      atomic_store_explicit(&left[t], SIDE, memory_order_relaxed);
      atomic_store_explicit(&right[t], 0u, memory_order_relaxed);
      atomic_store_explicit(&top[t], SIDE, memory_order_relaxed);
      atomic_store_explicit(&bottom[t], 0u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (own != 0) {
      // Half of the eight neighbours; the others look from their side.
      const int x = lane, y = row;
      if (x > 0 && in[t - 1] == own) join(parent, t, t - 1);
      if (y > 0) {
        if (in[t - SIDE] == own) join(parent, t, t - SIDE);
        if (DIAGONALS && x > 0 && in[t - SIDE - 1] == own) join(parent, t, t - SIDE - 1);
        if (DIAGONALS && x + 1 < SIDE && in[t - SIDE + 1] == own) join(parent, t, t - SIDE + 1);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Regions are numbered by their first pixels: those of the rows above, and of the lanes before.
    const uint root = find(parent, t);
    const bool is_root = own != 0 && root == t;
    const uint roots = uint(uint64_t(simd_ballot(is_root)));
    if (lane == 0) before[row] = popcount(roots);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (row == 0) before[lane] = simd_prefix_exclusive_sum(before[lane]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint number = before[row] + popcount(roots & ((1u << lane) - 1));
    // A root's place says its number from now on, above all places.
    if (is_root) atomic_store_explicit(&parent[t], SIDE * SIDE + number, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint region = own == 0 ? 0 : atomic_load_explicit(&parent[root], memory_order_relaxed) - SIDE * SIDE;
    labels[tile * SIDE * SIDE + t] = own == 0 ? 0 : region + 1;
    if (own != 0 && region < MOST) {
      atomic_fetch_add_explicit(&area[region], 1u, memory_order_relaxed);
      atomic_fetch_min_explicit(&left[region], lane, memory_order_relaxed);
      atomic_fetch_max_explicit(&right[region], lane, memory_order_relaxed);
      atomic_fetch_min_explicit(&top[region], row, memory_order_relaxed);
      atomic_fetch_max_explicit(&bottom[region], row, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < MOST) {
      device uint* to = boxes + (tile * MOST + t) * 5;
      to[0] = atomic_load_explicit(&area[t], memory_order_relaxed);
      to[1] = atomic_load_explicit(&left[t], memory_order_relaxed);
      to[2] = atomic_load_explicit(&top[t], memory_order_relaxed);
      to[3] = atomic_load_explicit(&right[t], memory_order_relaxed);
      to[4] = atomic_load_explicit(&bottom[t], memory_order_relaxed);
    }
    """,
    header="""
inline uint find(threadgroup atomic_uint* parent, uint place) {
  while (true) {
    uint up = atomic_load_explicit(&parent[place], memory_order_relaxed);
    if (up == place) return place;
    place = up;
  }
}

inline void join(threadgroup atomic_uint* parent, uint a, uint b) {
  while (true) {
    a = find(parent, a);
    b = find(parent, b);
    if (a == b) return;
    uint smaller = min(a, b), larger = max(a, b);
    uint seen = atomic_fetch_min_explicit(&parent[larger], smaller, memory_order_relaxed);
    // It was a root still. Otherwise what it hung under has to be joined as well.
    if (seen == larger) return;
    a = smaller;
    b = seen;
  }
}
""",
    template=[("SIDE", 32), ("MOST", 64), ("DIAGONALS", True)],
    inputs=lambda rng: {
        "image": np.stack(
            [
                (rng.random((32, 32)) < 0.38).astype(np.uint8),
                # Rings in rings: long ways round.
                (np.maximum(*abs(np.mgrid[:32, :32] - 15)) % 3 % 2 * (1 + (rng.random((32, 32)) < 0.02))).astype(
                    np.uint8
                ),
            ]
        )
    },
    outputs={"labels": ((2, 32, 32), "uint32"), "boxes": ((2, 64, 5), "uint32")},
    grid=(32, 32, 2),
    threadgroup=(32, 32, 1),
    constructs="synchronisation.fetch_min synchronisation.fetch_max synchronisation.threadgroup_atomics simdgroup.ballot "
    "reconvergence.return_in_helper_loop address_spaces.threadgroup_atomic functions.popcount "
    "simdgroup.prefix_exclusive_sum",
)
def connected_regions(image):
    labels, boxes = np.zeros((2, 32, 32), np.uint32), np.zeros((2, 64, 5), np.uint32)
    for picture, label, box in zip(image, labels, boxes, strict=True):
        box[:] = (0, 32, 32, 0, 0)
        count = 0
        for start in zip(*np.nonzero(picture), strict=True):
            if label[start]:
                continue
            count += 1
            label[start], region = count, [start]
            for y, x in region:
                for ny in range(max(y - 1, 0), min(y + 2, 32)):
                    for nx in range(max(x - 1, 0), min(x + 2, 32)):
                        if not label[ny, nx] and picture[ny, nx] == picture[start]:
                            label[ny, nx] = count
                            region.append((ny, nx))
            if count <= 64:
                ys, xs = np.array(region).T
                box[count - 1] = (len(region), xs.min(), ys.min(), xs.max(), ys.max())
    return labels, boxes


# ---- Distances


@body(
    """
    // The exact squared distance to the nearest mark, and which mark it is. First each column for itself; then each row: every
    // column is a parabola over the row, and the lowest of all is followed from right to left.
    threadgroup ushort nearest[HEIGHT][WIDTH];
    constexpr int FAR = 0xffff;
    const int t = thread_index_in_threadgroup;
    const int height = marks_shape[0], width = marks_shape[1];
    if (t < width) {
      int last = FAR;
      for (int y = 0; y < height; ++y) {
        if (marks[y * width + t]) last = y;
        nearest[y][t] = ushort(last);
      }
      last = FAR;
      for (int y = height - 1; y >= 0; --y) {
        if (marks[y * width + t]) last = y;
        int above = nearest[y][t];
        // Of equals the upper one.
        if (above == FAR || (last != FAR && last - y < y - above)) nearest[y][t] = ushort(last);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const int y = t;
    if (y >= height) return;
    // Columns whose parabola is lowest somewhere, and from where on.
    short column[WIDTH];
    short begin[WIDTH];
    int top = -1;
    for (int u = 0; u < width; ++u) {
      if (nearest[y][u] == FAR) continue;
      const int gu = square(int(nearest[y][u]) - y);
      while (top >= 0) {
        const int v = column[top], x = begin[top];
        if (square(x - v) + square(int(nearest[y][v]) - y) <= square(x - u) + gu) break;
        --top;
      }
      int from = 0;
      if (top >= 0) {
        // The first place where u is strictly lower than v.
        const int v = column[top], gv = square(int(nearest[y][v]) - y);
        from = (u * u - v * v + gu - gv) / (2 * (u - v)) + 1;
        if (from >= width) continue;
      }
      ++top;
      column[top] = short(u);
      begin[top] = short(from);
    }
    for (int x = width - 1; x >= 0; --x) {
      if (top < 0) {
        distances[y * width + x] = -1;
        continue;
      }
      const int v = column[top];
      distances[y * width + x] = square(x - v) + square(int(nearest[y][v]) - y);
      if (x == begin[top]) --top;
    }
    """,
    header="inline int square(int x) { return x * x; }",
    template=[("WIDTH", 44), ("HEIGHT", 30)],
    inputs=lambda rng: {"marks": rng.random((30, 44)) < 0.01},
    outputs={"distances": ((30, 44), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.dynamic_local_array structure.while address_spaces.threadgroup_small_array types.bool "
    "types.short reconvergence.break_before_call",
)
def distance_transform(marks):
    y, x = np.nonzero(marks)
    gy, gx = np.mgrid[:30, :44]
    return ((gy[..., None] - y) ** 2 + (gx[..., None] - x) ** 2).min(axis=-1).astype(np.int32)


# ---- Motion


@body(
    """
    // Motion of blocks of 8 x 8 from one frame to the next: all places of a window, then half places around the best. A simdgroup
    // has a block; its lanes share the places. Costs are sums of differences and a price for far motion; key words hold
    // cost, then place, so that one minimum decides and ties go to the nearest in order.
    threadgroup uchar window[8 + 2 * R + 2][8 + 2 * R + 2 + 6];
    threadgroup uchar4 block[8][2];
    const int lane = thread_index_in_simdgroup;
    const int2 size = int2(previous_shape[1], previous_shape[0]);
    const int2 corner = int2(threadgroup_position_in_grid.xy) * 8;
    constexpr int EDGE = 8 + 2 * R + 2;
    for (int j = lane; j < EDGE * EDGE; j += 32) {
      int2 q = clamp(corner - R - 1 + int2(j % EDGE, j / EDGE), int2(0), size - 1);
      window[j / EDGE][j % EDGE] = previous[q.y * size.x + q.x];
    }
    if (lane < 16) {
      device const uchar4* row = (device const uchar4*)(current + (corner.y + lane / 2) * size.x + corner.x);
      block[lane / 2][lane % 2] = row[lane % 2];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);

    constexpr int SPAN = 2 * R + 1;
    uint best = 0xffffffff;
    for (int place = lane; place < SPAN * SPAN; place += 32) {
      const int2 d = int2(place % SPAN, place / SPAN) - R;
      uint cost = PRICE * uint(abs(d.x) + abs(d.y));
      for (int y = 0; y < 8; ++y) {
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
          threadgroup const uchar* w = &window[y + d.y + R + 1][4 * h + d.x + R + 1];
          cost += sum_of(absdiff(block[y][h], uchar4(w[0], w[1], w[2], w[3])));
        }
      }
      best = min(best, cost << 16 | uint(place));
    }
    best = simd_min(best);

    // Eight neighbours at half a place, each by four lanes, two rows a lane.
    const int place = best & 0xffff;
    const int2 whole = int2(place % SPAN, place / SPAN) - R;
    const int neighbour = lane / 4, quarter = lane % 4;
    const int around = neighbour < 4 ? neighbour : neighbour + 1;
    const int2 half_step = int2(around % 3, around / 3) - 1;
    uint cost = 0;
    for (int y = 2 * quarter; y < 2 * quarter + 2; ++y) {
      for (int h = 0; h < 2; ++h) {
        uchar4 a, b, c, d;
        for (int j = 0; j < 4; ++j) {
          const int2 at = int2(4 * h + j, y) + whole + R + 1;
          const int2 to = at + half_step;
          a[j] = window[at.y][at.x];
          b[j] = window[at.y][to.x];
          c[j] = window[to.y][at.x];
          d[j] = window[to.y][to.x];
        }
        // As video has it: means of means, rounded up.
        cost += sum_of(absdiff(block[y][h], rhadd(rhadd(a, b), rhadd(c, d))));
      }
    }
    cost = quad_sum(cost);
    const uint price = PRICE * uint(abs(whole.x) + abs(whole.y));
    const uint half_best = simd_min((cost + price) << 16 | uint(around));
    if (simd_is_first()) {
      const uint at = threadgroup_position_in_grid.y * threadgroups_per_grid.x + threadgroup_position_in_grid.x;
      int2 motion = whole * 2;
      uint least = best >> 16;
      if ((half_best >> 16) < least) {
        least = half_best >> 16;
        const int k = half_best & 0xffff;
        motion += int2(k % 3, k / 3) - 1;
      }
      motions[2 * at] = motion.x;
      motions[2 * at + 1] = motion.y;
      costs[at] = least;
    }
    """,
    header="""
inline uint sum_of(uchar4 v) { return uint(v.x) + uint(v.y) + uint(v.z) + uint(v.w); }
""",
    template=[("R", 4), ("PRICE", 3)],
    inputs=lambda rng: {
        "previous": (
            frames := (
                np.kron(rng.integers(0, 200, (20, 24)), np.ones((3, 3), int)) + rng.integers(0, 50, (60, 72))
            ).astype(np.uint8)
        )[10:42, 10:50].copy(),
        # Moved by two and a half places, and with noise.
        "current": (
            (frames[12:44, 8:48].astype(int) + frames[13:45, 8:48] + 1) // 2 + rng.integers(0, 4, (32, 40))
        ).astype(np.uint8),
    },
    outputs={"motions": ((4, 5, 2), "int32"), "costs": ((4, 5), "uint32")},
    grid=(5 * 32, 4, 1),
    threadgroup=(32, 1, 1),
    constructs="functions.absdiff functions.rhadd simdgroup.min simdgroup.quad_sum synchronisation.simdgroup_barrier "
    "address_spaces.threadgroup_vectors types.uchar4 simdgroup.is_first address_spaces.cast_to_vector",
)
def motion_of_blocks(previous, current):
    motions, costs = np.zeros((4, 5, 2), np.int32), np.zeros((4, 5), np.uint32)
    padded = np.pad(previous.astype(int), 5, mode="edge")
    steps = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    for by in range(4):
        for bx in range(5):
            own = current[8 * by : 8 * by + 8, 8 * bx : 8 * bx + 8].astype(int)

            def seen(dy, dx, by=by, bx=bx):
                return padded[8 * by + 5 + dy : 8 * by + 13 + dy, 8 * bx + 5 + dx : 8 * bx + 13 + dx]

            whole = [
                (3 * (abs(dy) + abs(dx)) + abs(own - seen(dy, dx)).sum(), dy, dx)
                for dy in range(-4, 5)
                for dx in range(-4, 5)
            ]
            cost, dy, dx = min(whole)
            motion = [2 * dx, 2 * dy]
            halves = []
            for y, x in steps:
                a, b = (seen(dy, dx) + seen(dy, dx + x) + 1) // 2, (seen(dy + y, dx) + seen(dy + y, dx + x) + 1) // 2
                halves.append((3 * (abs(dy) + abs(dx)) + abs(own - (a + b + 1) // 2).sum(), y, x))
            if min(halves)[0] < cost:
                cost, y, x = min(halves)
                motion = [2 * dx + x, 2 * dy + y]
            motions[by, bx], costs[by, bx] = motion, cost
    return motions, costs


@body(
    """
    // One step of Lucas and Kanade's optical flow. Gradients and the five sums over a window are whole numbers, so that the
    // equations of each pixel are exact; where they say little (a small eigenvalue), there is no flow.
    threadgroup short gx[TILE + 2 * R][TILE + 2 * R], gy[TILE + 2 * R][TILE + 2 * R], gt[TILE + 2 * R][TILE + 2 * R];
    const int2 t = int2(thread_position_in_threadgroup.xy);
    const int2 size = int2(first_shape[1], first_shape[0]);
    const int2 origin = int2(threadgroup_position_in_grid.xy) * TILE;
    const int2 real = int2(threads_per_threadgroup.xy);
    for (int y = t.y; y < TILE + 2 * R; y += real.y)
      for (int x = t.x; x < TILE + 2 * R; x += real.x) {
        const int2 q = clamp(origin + int2(x, y) - R, int2(0), size - 1);
        const int left = max(q.x - 1, 0), right = min(q.x + 1, size.x - 1);
        const int above = max(q.y - 1, 0), below = min(q.y + 1, size.y - 1);
        gx[y][x] = short(int(first[q.y * size.x + right]) - int(first[q.y * size.x + left]));
        gy[y][x] = short(int(first[below * size.x + q.x]) - int(first[above * size.x + q.x]));
        gt[y][x] = short(int(second[q.y * size.x + q.x]) - int(first[q.y * size.x + q.x]));
      }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int xx = 0, xy = 0, yy = 0, xt = 0, yt = 0;
    for (int dy = 0; dy <= 2 * R; ++dy)
      for (int dx = 0; dx <= 2 * R; ++dx) {
        const int a = gx[t.y + dy][t.x + dx], b = gy[t.y + dy][t.x + dx], c = gt[t.y + dy][t.x + dx];
        xx += a * a, xy += a * b, yy += b * b, xt += a * c, yt += b * c;
      }
    const long determinant = long(xx) * yy - long(xy) * xy;
    // Both eigenvalues of [xx xy; xy yy] are above m where (xx - m)(yy - m) > xy^2 and xx > m.
    const long m = least;
    const bool sure = (xx - m) * (yy - m) > long(xy) * xy && xx > m;
    const int2 at = origin + t;
    float2 motion = NAN;
    if (sure) {
      // Gradients are over two pixels.
      const long u = 2 * (long(xy) * yt - long(yy) * xt), v = 2 * (long(xy) * xt - long(xx) * yt);
      motion = float2(float(u) / float(determinant), float(v) / float(determinant));
    }
    ((device float2*)flow)[at.y * size.x + at.x] = motion;
    """,
    template=[("R", 2), ("TILE", 8)],
    inputs=lambda rng: {
        "first": (
            128
            + 60 * np.sin(np.add.outer(np.arange(21) * 0.5, np.arange(27) * 0.2))
            + 50 * np.cos(np.subtract.outer(np.arange(21) * 0.1, np.arange(27) * 0.6)) * (np.arange(27) < 20)
        ).astype(np.uint8),
        "second": (
            128
            + 60 * np.sin(np.add.outer(np.arange(21) * 0.5 + 0.1, np.arange(27) * 0.2))
            + 50 * np.cos(np.subtract.outer(np.arange(21) * 0.1, np.arange(27) * 0.6 + 0.2)) * (np.arange(27) < 20)
        ).astype(np.uint8),
        "least": 4000,
    },
    outputs={"flow": ((21, 27, 2), "float32")},
    grid=(27, 21, 1),
    threadgroup=(8, 8, 1),
    tolerance=3e-7,
    constructs="types.NAN types.long address_spaces.threadgroup_small_array launch.edge_threadgroups types.float2 "
    "attributes.threads_per_threadgroup layouts.python_number",
)
def optical_flow_step(first, second, least):
    a, b = first.astype(object), second.astype(object)

    def moved(image, dy, dx):
        return image[np.clip(np.arange(21) + dy, 0, 20)][:, np.clip(np.arange(27) + dx, 0, 26)]

    gx, gy, gt = moved(a, 0, 1) - moved(a, 0, -1), moved(a, 1, 0) - moved(a, -1, 0), b - a

    def windowed(products):
        return sum(moved(products, dy, dx) for dy in range(-2, 3) for dx in range(-2, 3))

    # Windows repeat the gradients at the edge.
    xx, xy, yy, xt, yt = (windowed(p) for p in (gx * gx, gx * gy, gy * gy, gx * gt, gy * gt))
    determinant = (xx * yy - xy * xy).astype(float)
    sure = ((xx - least) * (yy - least) > xy * xy) & (xx > least)
    flow = np.stack([(2 * (xy * yt - yy * xt)).astype(float), (2 * (xy * xt - xx * yt)).astype(float)], axis=-1)
    return np.where(sure[..., None].astype(bool), flow / determinant[..., None], np.nan)


# ---- Lines and boxes


@body(
    """
    // Lines by votes: a marked pixel votes for all lines through it, an angle and a distance each. Then a line is one that has
    // more votes than a threshold and than its neighbours; of angles the last is beside the first, with the distance's sign
    // turned. Sines are whole numbers of 1024, so that votes do not depend on rounding.
    threadgroup atomic_uint votes[ANGLES * DISTANCES];
    const uint t = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    for (uint j = t; j < ANGLES * DISTANCES; j += threads) atomic_store_explicit(&votes[j], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int height = marks_shape[0], width = marks_shape[1];
    for (int j = t; j < height * width; j += threads) {
      if (!marks[j]) continue;
      const int x = j % width, y = j / width;
      for (int k = 0; k < ANGLES; ++k) {
        const int distance = (x * kCosine[k] + y * cosine_before(k) + 512) >> 10;
        atomic_fetch_add_explicit(&votes[k * DISTANCES + distance + DISTANCES / 2], 1u, memory_order_relaxed);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = t; j < ANGLES * DISTANCES; j += threads) {
      const int angle = j / DISTANCES, distance = int(j % DISTANCES) - DISTANCES / 2;
      const uint own = atomic_load_explicit(&votes[j], memory_order_relaxed);
      bool peak = own >= uint(threshold);
      for (int da = -1; da <= 1 && peak; ++da)
        for (int dd = -1; dd <= 1; ++dd) {
          if (da == 0 && dd == 0) continue;
          int a = angle + da, d = distance + dd;
          if (a < 0 || a >= ANGLES) {
            a = (a + ANGLES) % ANGLES;
            d = -d;
          }
          if (d < -DISTANCES / 2 || d >= DISTANCES / 2) continue;
          const uint place = a * DISTANCES + d + DISTANCES / 2;
          const uint other = atomic_load_explicit(&votes[place], memory_order_relaxed);
          if (other > own || (other == own && place < j)) {
            peak = false;
            break;
          }
        }
      counts[j] = ushort(own);
      peaks[j] = peak;
    }
    """,
    header="""
// cos(k pi / 48) in 1024ths.
constant short kCosine[48] = {
"""
    + "\n".join(
        "  " + ", ".join(f"{round(1024 * np.cos(k * np.pi / 48)):5d}" for k in range(row, row + 12)) + ","
        for row in range(0, 48, 12)
    )
    + """
};

// The sine is the cosine a quarter of a turn before.
inline int cosine_before(int k) { return k >= 24 ? kCosine[k - 24] : -kCosine[k + 24]; }
""",
    template=[("ANGLES", 48), ("DISTANCES", 96)],
    inputs=lambda rng: {
        "marks": (
            (np.eye(30, 36, 4) > 0)
            | (np.arange(36) == 11)
            | (np.add.outer(np.arange(30), np.arange(36) // 2) == 25)
            | (rng.random((30, 36)) < 0.03)
        ),
        "threshold": 20,
    },
    outputs={"counts": ((48, 96), "uint16"), "peaks": ((48, 96), "bool")},
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="synchronisation.threadgroup_atomics address_spaces.constant_array synchronisation.fetch_add types.ushort "
    "reconvergence.break_before_call",
)
def lines_by_votes(marks, threshold):
    cosine = np.array([round(1024 * np.cos(k * np.pi / 48)) for k in range(48)])
    sine = np.array([round(1024 * np.sin(k * np.pi / 48)) for k in range(48)])
    counts = np.zeros((48, 96), int)
    for y, x in zip(*np.nonzero(marks), strict=True):
        counts[np.arange(48), (x * cosine + y * sine + 512 >> 10) + 48] += 1
    peaks = np.zeros((48, 96), bool)
    # Equals are told apart by their place.
    rank = counts * 5000 - np.arange(48 * 96).reshape(48, 96)
    for a in range(48):
        for d in range(96):
            if counts[a, d] >= threshold:
                around = []
                for da in (-1, 0, 1):
                    for dd in (-1, 0, 1):
                        b, e = a + da, d - 48 + dd
                        if not 0 <= b < 48:
                            b, e = b % 48, -e
                        if -48 <= e < 48:
                            around.append(rank[b, e + 48])
                peaks[a, d] = rank[a, d] == max(around)
    return counts.astype(np.uint16), peaks


@body(
    """
    // Of boxes that overlap, only the best stays. Boxes are ranked by score; then each has a bit for every later one that it
    // would remove, and one simdgroup goes down the list. Corners are whole numbers: whether the overlap is too large is exact.
    threadgroup short4 sorted[COUNT];
    threadgroup uint removes[COUNT][WORDS];
    threadgroup ushort origin[COUNT];
    const uint t = thread_index_in_threadgroup, set = threadgroup_position_in_grid.x;
    device const float* score = scores + set * COUNT;
    uint rank = 0;
    for (uint j = 0; j < COUNT; ++j) rank += score[j] > score[t] || (score[j] == score[t] && j < t);
    sorted[rank] = reinterpret_cast<device const short4*>(boxes)[set * COUNT + t];
    origin[rank] = ushort(t);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const short4 own = sorted[t];
    const int own_area = area(own);
    #pragma unroll
    for (uint w = 0; w < WORDS; ++w) {
      uint bits = 0;
      for (uint b = 0; b < 32; ++b) {
        const uint j = 32 * w + b;
        if (j <= t) continue;
        const short4 other = sorted[j];
        const int common = area(short4(max(own.xy, other.xy), min(own.zw, other.zw)));
        const int together = own_area + area(other) - common;
        if (common * 100 > together * PERCENT) bits |= 1u << b;
      }
      removes[t][w] = bits;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (simdgroup_index_in_threadgroup == 0) {
      const uint lane = thread_index_in_simdgroup;
      uint removed = 0;   // of lane w: word w
      uint kept = 0;
      for (uint j = 0; j < COUNT; ++j) {
        const uint word = simd_broadcast(removed, 0);
        const uint mine = j / 32 == 0 ? word : simd_shuffle(removed, ushort(j / 32));
        if ((mine >> (j % 32)) & 1) continue;
        if (lane < WORDS) removed |= removes[j][lane];
        if (lane == 0) keep[set * COUNT + kept] = origin[j];
        ++kept;
      }
      for (uint j = kept + lane; j < COUNT; j += 32) keep[set * COUNT + j] = -1;
      if (lane == 0) kept_counts[set] = kept;
    }
    """,
    header="""
// Of a box from (x, y) to (z, w).
inline int area(short4 box) { return max(0, int(box.z) - int(box.x)) * max(0, int(box.w) - int(box.y)); }
""",
    template=[("COUNT", 96), ("WORDS", 3), ("PERCENT", 45)],
    inputs=lambda rng: {
        "boxes": np.concatenate(
            [corner := rng.integers(0, 60, (2, 96, 2)), corner + rng.integers(8, 40, (2, 96, 2))], axis=-1
        ).astype(np.int16),
        "scores": (rng.integers(0, 50, (2, 96)) / 50).astype(np.float32),
    },
    outputs={"keep": ((2, 96), "int32"), "kept_counts": ((2,), "uint32")},
    grid=(192, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="types.short4 types.swizzle_read simdgroup.broadcast simdgroup.run_time_lane structure.reinterpret_cast "
    "reconvergence.continue_before_call address_spaces.threadgroup_2d_array",
)
def best_of_overlapping_boxes(boxes, scores):
    keep, counts = np.full((2, 96), -1, np.int32), []
    for s in range(2):
        x0, y0, x1, y1 = boxes[s].astype(int).T
        kept: list[int] = []
        for i in np.argsort(-scores[s], kind="stable"):
            for j in kept:
                common = max(0, min(x1[i], x1[j]) - max(x0[i], x0[j])) * max(0, min(y1[i], y1[j]) - max(y0[i], y0[j]))
                together = (x1[i] - x0[i]) * (y1[i] - y0[i]) + (x1[j] - x0[j]) * (y1[j] - y0[j]) - common
                if common * 100 > together * 45:
                    break
            else:
                kept.append(i)
        keep[s, : len(kept)] = kept
        counts.append(len(kept))
    return keep, np.array(counts, np.uint32)
