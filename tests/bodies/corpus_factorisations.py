"""Factorisations of small matrices, as optimisers and quantisers need them: a matrix for each threadgroup or simdgroup."""

import numpy as np

from bodies import body


def _positive(rng, count, n):
    a = rng.normal(size=(count, n, 2 * n))
    return (a @ a.swapaxes(1, 2) / (2 * n) + 0.5 * np.eye(n)).astype(np.float32)


@body(
    """
    // a = l l^T in threadgroup memory, columns from the left; then l z = b by forward substitution and l^T x = z by backward.
    // The damping that is added to the diagonal is a part of the mean of the diagonal.
    threadgroup float l[N][N + 1];
    threadgroup float z[N];
    threadgroup bool failed;
    const uint t = thread_position_in_threadgroup.x, matrix = threadgroup_position_in_grid.x;
    for (uint i = t; i < N * N; i += THREADS) l[i / N][i % N] = a[matrix * N * N + i];
    if (t == 0) failed = false;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float mean = 0;
    for (uint i = 0; i < N; ++i) mean += l[i][i];
    mean /= N;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = t; i < N; i += THREADS) l[i][i] += damping * mean;

    for (uint j = 0; j < N; ++j) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t == 0) {
        if (l[j][j] > 0)
          l[j][j] = metal::precise::sqrt(l[j][j]);
        else
          failed = true;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (failed) break;
      const float pivot = l[j][j];
      for (uint i = j + 1 + t; i < N; i += THREADS) l[i][j] /= pivot;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // What is to the right and below, the lower triangle of it.
      for (uint i = t; i < (N - j - 1) * (N - j - 1); i += THREADS) {
        const uint row = j + 1 + i / (N - j - 1), column = j + 1 + i % (N - j - 1);
        if (column <= row) l[row][column] -= l[row][j] * l[column][j];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) status[matrix] = failed ? -1 : 0;
    if (failed) {
      for (uint i = t; i < N; i += THREADS) x[matrix * N + i] = 0;
      for (uint i = t; i < N * N; i += THREADS) lower[matrix * N * N + i] = 0;
      return;
    }
    for (uint i = t; i < N * N; i += THREADS) lower[matrix * N * N + i] = i % N <= i / N ? l[i / N][i % N] : 0;

    // The first simdgroup alone: a lane for every 32nd row, and what is known goes round by its lane.
    if (simdgroup_index_in_threadgroup > 0) return;
    const uint lane = thread_index_in_simdgroup;
    for (uint i = lane; i < N; i += 32) z[i] = b[matrix * N + i];
    for (uint j = 0; j < N; ++j) {
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (lane == 0) z[j] /= l[j][j];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = j + 1 + lane; i < N; i += 32) z[i] -= l[i][j] * z[j];
    }
    for (int j = N - 1; j >= 0; --j) {
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (lane == 0) z[j] /= l[j][j];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      for (int i = lane; i < j; i += 32) z[i] -= l[j][i] * z[j];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane; i < N; i += 32) x[matrix * N + i] = z[i];
    """,
    template=[("N", 20), ("THREADS", 64)],
    inputs=lambda rng: {
        "a": np.concatenate([_positive(rng, 2, 20), -_positive(rng, 1, 20)]),
        "b": rng.uniform(1, 2, (3, 20)).astype(np.float32),
        "damping": 0.0625,
    },
    outputs={"x": ((3, 20), "float32"), "lower": ((3, 20, 20), "float32"), "status": ((3,), "int32")},
    grid=(3 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-5,
    constructs="barriers.with_break barriers.in_loop synchronisation.simdgroup_barrier address_spaces.threadgroup_scalar "
    "address_spaces.threadgroup_2d_array functions.sqrt",
)
def cholesky_and_solution(a, b, damping):
    a, b = a.astype(np.float64), b.astype(np.float64)
    x, lower, status = np.zeros((3, 20)), np.zeros((3, 20, 20)), np.zeros(3, np.int32)
    for i in range(3):
        damped = a[i] + damping * np.trace(a[i]) / 20 * np.eye(20)
        if np.linalg.eigvalsh(damped)[0] <= 0:
            status[i] = -1
            continue
        lower[i], x[i] = np.linalg.cholesky(damped), np.linalg.solve(damped, b[i])
    return x, lower, status


@body(
    """
    // Reflections of Householder, a simdgroup for each matrix: lanes are rows, a lane has its row in registers. The result is
    // the triangle with a diagonal that is not negative, and the product of the reflections times what was given.
    const uint lane = thread_index_in_simdgroup, matrix = thread_position_in_grid.y;
    float row[COLUMNS];
    float right = rhs[matrix * 32 + lane];
    for (uint c = 0; c < COLUMNS; ++c) row[c] = a[(matrix * 32 + lane) * COLUMNS + c];
    for (uint c = 0; c < COLUMNS; ++c) {
      const bool below = lane >= c;
      const float own = below ? row[c] : 0.0f;
      const float norm = metal::precise::sqrt(simd_sum(own * own));
      const float head = simd_shuffle(own, ushort(c));
      // Away from the head, so that nothing cancels.
      const float target = head > 0 ? -norm : norm;
      const float v = lane == c ? own - target : own;
      const float square = simd_sum(v * v);
      if (square > 0) {
        for (uint j = c; j < COLUMNS; ++j) row[j] -= v * (2 * simd_sum(v * row[j]) / square);
        right -= v * (2 * simd_sum(v * right) / square);
      }
      // Signs: rows of the triangle may be turned over.
      if (lane == c && row[c] < 0) {
        for (uint j = c; j < COLUMNS; ++j) row[j] = -row[j];
        right = -right;
      }
    }
    if (lane >= COLUMNS) return;
    for (uint c = 0; c < COLUMNS; ++c) triangle[(matrix * COLUMNS + lane) * COLUMNS + c] = c < lane ? 0.0f : row[c];
    rotated[matrix * COLUMNS + lane] = right;
    """,
    template=[("COLUMNS", 6)],
    inputs=lambda rng: {
        "a": (rng.uniform(0, 0.5, (3, 32, 6)) + np.eye(32, 6) * 4).astype(np.float32),
        "rhs": rng.uniform(1, 2, (3, 32)).astype(np.float32),
    },
    outputs={"triangle": ((3, 6, 6), "float32"), "rotated": ((3, 6), "float32")},
    grid=(32, 3, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-5,
    constructs="simdgroup.shuffle simdgroup.run_time_lane simdgroup.sum functions.sqrt structure.dynamic_local_array "
    "reconvergence.under_a_condition",
)
def householder_triangle(a, rhs):
    triangles, rotated = [], []
    for matrix, b in zip(a.astype(np.float64), rhs.astype(np.float64), strict=True):
        q, r = np.linalg.qr(matrix)
        signs = np.where(np.diag(r) < 0, -1, 1)
        triangles.append(r * signs[:, None])
        rotated.append((q * signs).T @ b)
    return np.array(triangles), np.array(rotated)


@body(
    """
    // Eigenvalues of symmetric matrices by rotations: all pairs of a round at once, rounds as in a tournament. A simdgroup for
    // each matrix of N = 16; lanes have half a row each. Stops when all lanes agree that nothing is left.
    threadgroup float a[2][N][N + 1];
    threadgroup float2 turns[2][N / 2];
    const uint lane = thread_index_in_simdgroup, which = simdgroup_index_in_threadgroup;
    const uint matrix = threadgroup_position_in_grid.x * 2 + which;
    threadgroup float(*m)[N + 1] = a[which];
    for (uint i = lane; i < N * N; i += 32) m[i / N][i % N] = matrices[matrix * N * N + i];
    int sweeps = 0;
    for (; sweeps < MOST; ++sweeps) {
      simdgroup_barrier(mem_flags::mem_threadgroup);
      float off = 0;
      for (uint i = lane; i < N * N; i += 32)
        if (i / N != i % N) off = max(off, fabs(m[i / N][i % N]));
      if (simd_all(off < 1e-6f)) break;
      for (uint round = 0; round < N - 1; ++round) {
        simdgroup_barrier(mem_flags::mem_threadgroup);
        // Lane k < N / 2 has the pair of places k and N - 1 - k; the first place stays, the others go round.
        if (lane < N / 2) {
          const uint p = player(lane, round), q = player(N - 1 - lane, round);
          const float apq = m[p][q];
          float2 turn = float2(1, 0);
          if (fabs(apq) > 1e-30f) {
            const float theta = (m[q][q] - m[p][p]) / (2 * apq);
            const float t = copysign(1.0f, theta) / (fabs(theta) + metal::precise::sqrt(theta * theta + 1));
            turn.x = 1 / metal::precise::sqrt(t * t + 1);
            turn.y = t * turn.x;
          }
          turns[which][lane] = turn;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        // Columns, then rows: each lane half of a row's or a column's elements.
        for (uint pair = 0; pair < N / 2; ++pair) {
          const uint p = player(pair, round), q = player(N - 1 - pair, round);
          const float2 turn = turns[which][pair];
          if (lane < N) {
            const float left = m[lane][p], right = m[lane][q];
            m[lane][p] = turn.x * left - turn.y * right;
            m[lane][q] = turn.y * left + turn.x * right;
          }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint pair = 0; pair < N / 2; ++pair) {
          const uint p = player(pair, round), q = player(N - 1 - pair, round);
          const float2 turn = turns[which][pair];
          if (lane < N) {
            const float upper = m[p][lane], lower = m[q][lane];
            m[p][lane] = turn.x * upper - turn.y * lower;
            m[q][lane] = turn.y * upper + turn.x * lower;
          }
        }
      }
    }
    // In ascending order, by counting those that are smaller.
    const float own = lane < N ? m[lane][lane] : INFINITY;
    uint rank = 0;
    for (ushort j = 0; j < N; ++j) {
      const float other = simd_shuffle(own, j);
      rank += other < own || (other == own && j < lane);
    }
    if (lane < N) values[matrix * N + rank] = own;
    """,
    header="""
#define N 16
#define MOST 12
inline uint player(uint place, uint round) {
  return place == 0 ? 0 : 1 + (place - 1 + round) % (N - 1);
}
""",
    inputs=lambda rng: {"matrices": _positive(rng, 4, 16)},
    outputs={"values": ((4, 16), "float32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=1e-5,
    constructs="simdgroup.all synchronisation.simdgroup_barrier functions.copysign functions.sqrt simdgroup.shuffle "
    "types.float2 structure.define_in_header address_spaces.threadgroup_vectors reconvergence.break_before_call",
)
def eigenvalues_by_rotations(matrices):
    return np.linalg.eigvalsh(matrices.astype(np.float64))


@body(
    """
    // The inverse of a unit lower triangle by halves: inverses of 2 x 2 first, then [a 0; b c] has -c^-1 b a^-1 below. A
    // threadgroup has the matrix; each doubling makes all blocks of its size.
    threadgroup float inverse[SIZE][SIZE + 1];
    threadgroup float between[SIZE / 2][SIZE + 1];
    const uint t = thread_index_in_threadgroup, matrix = threadgroup_position_in_grid.x;
    const uint threads = threads_per_threadgroup.x;
    for (uint i = t; i < SIZE * SIZE; i += threads) {
      const uint r = i / SIZE, c = i % SIZE;
      // Blocks of one are their own inverses.
      inverse[r][c] = r == c ? 1.0f : r > c ? l[matrix * SIZE * SIZE + i] : 0.0f;
    }
    for (uint size = 1; size < SIZE; size *= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // b a^-1 for each pair of blocks: the rows of all b lie in one array of half the height.
      for (uint i = t; i < SIZE / 2 * size; i += threads) {
        const uint pair = i / (size * size), r = i / size % size, c = i % size, first = 2 * size * pair;
        float sum = 0;
        for (uint j = c; j < size; ++j) sum += inverse[first + size + r][first + j] * inverse[first + j][first + c];
        between[pair * size + r][c] = sum;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = t; i < SIZE / 2 * size; i += threads) {
        const uint pair = i / (size * size), r = i / size % size, c = i % size, first = 2 * size * pair;
        float sum = 0;
        for (uint j = 0; j <= r; ++j) sum -= inverse[first + size + r][first + size + j] * between[pair * size + j][c];
        inverse[first + size + r][first + c] = sum;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = t; i < SIZE * SIZE; i += threads) out[matrix * SIZE * SIZE + i] = inverse[i / SIZE][i % SIZE];
    """,
    template=[("SIZE", 32)],
    # Integers: the inverse has integers too.
    inputs=lambda rng: {
        "l": np.tril(rng.choice([-1, 0, 0, 0, 0, 0, 0, 1], (2, 32, 32)), -1).astype(np.float32)
        + np.eye(32, dtype=np.float32)
    },
    outputs={"out": ((2, 32, 32), "float32")},
    grid=(2 * 48, 1, 1),
    threadgroup=(48, 1, 1),
    constructs="barriers.in_loop address_spaces.threadgroup_2d_array simdgroup.partial",
)
def inverse_of_unit_triangles(l):  # noqa: E741
    return np.rint(np.linalg.inv(l.astype(np.float64))).astype(np.float32) + np.float32(0)
