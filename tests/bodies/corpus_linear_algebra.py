"""Linear algebra: tridiagonal and sparse systems, small matrices of a thread's own, Fourier transforms."""

import itertools

import numpy as np

from bodies import Dtype, body


@body(
    """
    // Tridiagonal systems by cyclic reduction: each step halves the equations that are left, then the unknowns come back.
    threadgroup float a[N], b[N], c[N], d[N], x[N];
    uint t = thread_index_in_threadgroup, system = threadgroup_position_in_grid.x;
    for (uint i = t; i < N; i += N / 2) {
      a[i] = lower[system * N + i];
      b[i] = diagonal[system * N + i];
      c[i] = upper[system * N + i];
      d[i] = rhs[system * N + i];
    }
    uint active = N / 2, stride = 1;
    while (stride < N / 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < active) {
        uint i = 2 * stride * t + 2 * stride - 1;
        uint left = i - stride, right = i + stride;
        bool last = i == N - 1;
        float k1 = a[i] / b[left], k2 = last ? 0.0f : c[i] / b[right];
        b[i] = b[i] - c[left] * k1 - (last ? 0.0f : a[right] * k2);
        d[i] = d[i] - d[left] * k1 - (last ? 0.0f : d[right] * k2);
        a[i] = -a[left] * k1;
        c[i] = last ? 0.0f : -c[right] * k2;
      }
      stride *= 2;
      active /= 2;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Two equations are left.
    if (t == 0) {
      uint i = N / 2 - 1, j = N - 1;
      float det = b[i] * b[j] - c[i] * a[j];
      x[i] = (b[j] * d[i] - c[i] * d[j]) / det;
      x[j] = (b[i] * d[j] - a[j] * d[i]) / det;
    }
    active = 2;
    for (stride = N / 4; stride > 0; stride /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < active) {
        uint i = 2 * stride * t + stride - 1;
        float known = d[i] - c[i] * x[i + stride];
        if (i >= stride) known -= a[i] * x[i - stride];
        x[i] = known / b[i];
      }
      active *= 2;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = t; i < N; i += N / 2) solution[system * N + i] = x[i];
    """,
    template=[("N", 64)],
    inputs=lambda rng: {
        "lower": rng.uniform(0.5, 1, (3, 64)).astype(np.float32) * (np.arange(64) > 0).astype(np.float32),
        "diagonal": rng.uniform(3, 4, (3, 64)).astype(np.float32),
        "upper": -rng.uniform(0.5, 1, (3, 64)).astype(np.float32) * (np.arange(64) < 63).astype(np.float32),
        "rhs": rng.uniform(4, 5, (3, 64)).astype(np.float32),
    },
    outputs={"solution": ((3, 64), "float32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=5e-6,
    constructs="barriers.in_while barriers.in_loop address_spaces.threadgroup_array",
)
def cyclic_reduction(lower, diagonal, upper, rhs):
    out = []
    for a, b, c, d in zip(lower, diagonal, upper, rhs, strict=True):
        matrix = np.diag(b.astype(np.float64)) + np.diag(a[1:], -1) + np.diag(c[:-1], 1)
        out.append(np.linalg.solve(matrix, d.astype(np.float64)))
    return np.array(out)


# ---- Sparse products


def _sparse(rng, rows, columns, per_row):
    """The rows' lengths, and the places and the values of what is not zero."""
    lengths = np.minimum(rng.geometric(1 / per_row, rows) - 1, columns)
    lengths[3] = 0
    lengths[5] = columns
    places = [np.sort(rng.choice(columns, n, replace=False)) for n in lengths]
    values = [rng.uniform(0.5, 1.5, n).astype(np.float32) for n in lengths]
    return lengths, places, values


def _csr_inputs(rng):
    lengths, places, values = _sparse(rng, 37, 50, 9)
    return {
        "row_starts": np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32),
        "column_indices": np.concatenate(places).astype(np.uint16),
        "elements": np.concatenate(values),
        "dense": rng.uniform(1, 2, (50, 6)).astype(np.float32),
    }


@body(
    """
    // A sparse matrix in compressed rows by a dense one of few columns. A row has WIDTH lanes of a simdgroup; each adds up
    // its elements for all columns, then the lanes of the row fold.
    constexpr uint ROWS = 32 / WIDTH;
    uint lane = thread_index_in_simdgroup;
    uint row = thread_position_in_grid.x / 32 * ROWS + lane / WIDTH;
    uint rows = row_starts_shape[0] - 1;
    uint within = lane % WIDTH;
    float sums[COLUMNS] = {};
    uint begin = row < rows ? row_starts[row] : 0, end = row < rows ? row_starts[row + 1] : 0;
    for (uint k = begin + within; k < end; k += WIDTH) {
      float v = elements[k];
      const device float* line = dense + uint(column_indices[k]) * COLUMNS;
      #pragma unroll
      for (int c = 0; c < COLUMNS; ++c) sums[c] = fma(v, line[c], sums[c]);
    }
    for (uint distance = WIDTH / 2; distance > 0; distance /= 2)
      #pragma unroll
      for (int c = 0; c < COLUMNS; ++c) sums[c] += simd_shuffle_down(sums[c], ushort(distance));
    if (within == 0 && row < rows)
      for (int c = 0; c < COLUMNS; ++c) product[row * COLUMNS + c] = ALPHA_ONE ? sums[c] : alpha * sums[c];
    """,
    template=[("WIDTH", 8), ("COLUMNS", 6), ("ALPHA_ONE", False)],
    inputs=lambda rng: _csr_inputs(rng) | {"alpha": 2.5},
    outputs={"product": ((37, 6), "float32")},
    grid=(320, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=3e-6,
    constructs="simdgroup.shuffle_down functions.fma structure.pragma_unroll reconvergence.divergent_trip_count "
    "structure.template_arguments types.ushort",
)
def sparse_rows_by_dense(row_starts, column_indices, elements, dense, alpha):
    matrix = np.zeros((37, 50))
    for row, (a, b) in enumerate(itertools.pairwise(row_starts)):
        matrix[row, column_indices[a:b]] = elements[a:b]
    return alpha * matrix @ dense.astype(np.float64)


def _ell_inputs(rng):
    _, places, values = _sparse(rng, 45, 40, 6)
    width = 10
    columns, numbers = np.full((width, 45), -1, np.int32), np.zeros((width, 45), np.float16)
    rest = []
    for row, (own, given) in enumerate(zip(places, values, strict=True)):
        columns[: len(own[:width]), row], numbers[: len(own[:width]), row] = own[:width], given[:width]
        rest += [(row, c, v) for c, v in zip(own[width:], given[width:], strict=True)]
    rows, more, last = zip(*rest, strict=True)
    # Eighths and small integers: sums are exact, so that the order of the atomics does not matter.
    return {
        "ell_columns": columns,
        "ell_values": np.rint(numbers * 8) / np.float16(8),
        "coo_rows": np.array(rows, np.uint16),
        "coo_columns": np.array(more, np.uint16),
        "coo_values": (np.rint(np.array(last) * 8) / 8).astype(np.float16),
        "x": rng.integers(1, 9, 40).astype(np.float32),
    }


@body(
    """
    // The hybrid form: rows of equal length for what most rows have, a list of the rest. The first threadgroups take the
    // rows, the others the list; both add to y.
    uint i = thread_position_in_grid.x;
    int rows = ell_columns_shape[1], width = ell_columns_shape[0];
    if (threadgroup_position_in_grid.x * 32 < uint(rows)) {
      if (int(i) >= rows) return;
      float sum = 0;
      for (int k = 0; k < width; ++k) {
        int column = ell_columns[k * rows + int(i)];
        if (column < 0) break;
        sum += float(ell_values[k * rows + int(i)]) * x[column];
      }
      if (sum != 0) atomic_fetch_add_explicit(&y[i], sum, memory_order_relaxed);
      return;
    }
    uint place = i - (rows + 31) / 32 * 32;
    uint count = coo_rows_shape[0];
    bool valid = place < count;
    int row = valid ? int(coo_rows[place]) : -1;
    float value = valid ? float(coo_values[place]) * x[coo_columns[place]] : 0;
    // The list is sorted: a scan adds up what belongs to one row, and its last lane writes.
    for (ushort distance = 1; distance < 32; distance <<= 1) {
      float above = simd_shuffle_and_fill_up(value, 0.0f, distance);
      int owner = simd_shuffle_and_fill_up(row, -2, distance);
      if (owner == row) value += above;
    }
    int next = simd_shuffle_and_fill_down(row, -3, 1);
    if (valid && next != row) atomic_fetch_add_explicit(&y[row], value, memory_order_relaxed);
    """,
    inputs=_ell_inputs,
    outputs={"y": ((45,), "float32")},
    atomic_outputs=True,
    init_value=0,
    grid=(192, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="simdgroup.shuffle_and_fill_up simdgroup.shuffle_and_fill_down types.atomic_float types.half "
    "synchronisation.fetch_add launch.atomic_outputs structure.return_before_simd",
)
def hybrid_sparse_product(ell_columns, ell_values, coo_rows, coo_columns, coo_values, x):
    y, x = np.zeros(45), x.astype(np.float64)
    for columns, values in zip(ell_columns, ell_values.astype(np.float64), strict=True):
        y += np.where(columns >= 0, values * x[columns], 0)
    np.add.at(y, coo_rows, coo_values.astype(np.float64) * x[coo_columns])
    return y.astype(np.float32)


# ---- Fourier transforms


def _signals(count, length):
    """Noise and a pulse at the beginning: no frequency is near zero."""

    def make(rng):
        x = rng.normal(size=(2, count, length)) * 0.5
        x[:, :, 0] += 60
        return {"x": (x[0] + 1j * x[1]).astype(np.complex64)}

    return make


@body(
    """
    // 256 points for each simdgroup, eight in the registers of each lane: radix 8 over the registers, then five rounds of
    // shuffles between the lanes; no threadgroup memory.
    uint lane = thread_index_in_simdgroup;
    uint transform = thread_position_in_grid.x / 32;
    device const float2* in = (device const float2*)x + transform * 256;
    device float2* out = (device float2*)y + transform * 256;
    float2 v[8];
    // Register r of lane l has point 32 r + l.
    #pragma unroll
    for (uint r = 0; r < 8; ++r) v[r] = in[r * 32 + lane];

    // Points 32 r + l over r: eight numbers in one lane.
    radix8<INVERSE>(v);
    // Now register k is frequency k of the outer transform; it is turned by its place in the lane.
    #pragma unroll
    for (uint k = 1; k < 8; ++k) v[k] = times(v[k], root<INVERSE>(lane * k, 256));

    // Over the 32 lanes: radix 2, decimation in frequency. The upper half of each pair has the difference.
    #define LANE_STEP(DISTANCE)                                                              \\
      {                                                                                      \\
        const bool upper = lane & DISTANCE;                                                  \\
        const float2 turn = root<INVERSE>(lane & (DISTANCE - 1), 2 * DISTANCE);              \\
        _Pragma("unroll") for (uint k = 0; k < 8; ++k) {                                     \\
          float2 other = float2(simd_shuffle_xor(v[k].x, DISTANCE), simd_shuffle_xor(v[k].y, DISTANCE)); \\
          float2 sum = upper ? other - v[k] : v[k] + other;                                  \\
          v[k] = upper ? times(sum, turn) : sum;                                             \\
        }                                                                                    \\
      }
    LANE_STEP(16)
    LANE_STEP(8)
    LANE_STEP(4)
    LANE_STEP(2)
    LANE_STEP(1)
    #undef LANE_STEP

    // The inner frequency is the lane's number with its five bits reversed.
    uint inner = reverse_bits(lane) >> 27;
    #pragma unroll
    for (uint k = 0; k < 8; ++k) out[inner * 8 + k] = INVERSE ? v[k] / 256.0f : v[k];
    """,
    header="""
METAL_FUNC float2 times(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// exp(-2 pi i place / size), or its conjugate.
template <bool INVERSE>
METAL_FUNC float2 root(uint place, uint size) {
  float turn = 2.0f * float(place % size) / float(size);
  float2 w = float2(cospi(turn), -sinpi(turn));
  return INVERSE ? float2(w.x, -w.y) : w;
}

// A quarter of a turn, in the transform's direction.
template <bool INVERSE>
METAL_FUNC float2 quarter(float2 a) {
  return INVERSE ? float2(-a.y, a.x) : float2(a.y, -a.x);
}

template <bool INVERSE>
METAL_FUNC void radix4(thread float2& a, thread float2& b, thread float2& c, thread float2& d) {
  float2 ac = a + c, bd = b + d, ac_ = a - c, bd_ = quarter<INVERSE>(b - d);
  a = ac + bd;
  b = ac_ + bd_;
  c = ac - bd;
  d = ac_ - bd_;
}

// Eight numbers in natural order, before and after.
template <bool INVERSE>
METAL_FUNC void radix8(thread float2* v) {
  float2 even[4] = {v[0], v[2], v[4], v[6]};
  float2 odd[4] = {v[1], v[3], v[5], v[7]};
  radix4<INVERSE>(even[0], even[1], even[2], even[3]);
  radix4<INVERSE>(odd[0], odd[1], odd[2], odd[3]);
  const float s = M_SQRT1_2_F;
  const float sign = INVERSE ? 1.0f : -1.0f;
  odd[1] = times(odd[1], float2(s, sign * s));
  odd[2] = quarter<INVERSE>(odd[2]);
  odd[3] = times(odd[3], float2(-s, sign * s));
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = even[k] + odd[k];
    v[k + 4] = even[k] - odd[k];
  }
}
""",
    template=[("INVERSE", False)],
    inputs=_signals(3, 256),
    outputs={"y": ((3, 256), "complex64")},
    grid=(96, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=3e-6,
    constructs="simdgroup.shuffle_xor structure._Pragma structure.multi_line_macro functions.reverse_bits "
    "functions.sinpi functions.cospi mlx.METAL_FUNC types.M_constants",
)
def fourier_transform_in_registers(x):
    return np.fft.fft(x.astype(np.complex128), axis=1)


@body(
    """
    // Any length whose factors are 2, 3, 4 and 5, by Stockham: each round reads one buffer and writes the other.
    threadgroup float2 buffers[2][LENGTH];
    uint t = thread_index_in_threadgroup, row = threadgroup_position_in_grid.x;
    const device complex64_t* in = x + row * LENGTH;
    for (uint i = t; i < LENGTH; i += THREADS) buffers[0][i] = float2(in[i].real, in[i].imag);
    threadgroup float2* from = buffers[0];
    threadgroup float2* to = buffers[1];
    uint done = 1;
    constexpr uint radices[] = {RADICES};
    for (uint round = 0; round < sizeof(radices) / sizeof(uint); ++round) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint radix = radices[round];
      switch (radix) {
        case 2: pass<2>(from, to, t, done); break;
        case 3: pass<3>(from, to, t, done); break;
        case 4: pass<4>(from, to, t, done); break;
        case 5: pass<5>(from, to, t, done); break;
      }
      done *= radix;
      threadgroup float2* swap = from;
      from = to;
      to = swap;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = t; i < LENGTH; i += THREADS) y[row * LENGTH + i] = complex64_t(from[i].x, from[i].y);
    """,
    header="""
#define LENGTH 240u
#define RADICES 4, 4, 3, 5
#define THREADS 60u

inline float2 mul(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
inline float2 turn(float part) { return float2(cospi(2.0f * part), -sinpi(2.0f * part)); }

template <uint RADIX>
inline void butterfly(thread float2* v) {
  float2 w[RADIX], u[RADIX];
  for (uint k = 0; k < RADIX; ++k) w[k] = turn(float(k) / RADIX);
  for (uint k = 0; k < RADIX; ++k) {
    float2 sum = v[0];
#pragma unroll
    for (uint j = 1; j < RADIX; ++j) sum += mul(v[j], w[j * k % RADIX]);
    u[k] = sum;
  }
  for (uint k = 0; k < RADIX; ++k) v[k] = u[k];
}

// Where nothing needs a product.
template <>
inline void butterfly<2>(thread float2* v) {
  float2 d = v[0] - v[1];
  v[0] += v[1];
  v[1] = d;
}

template <>
inline void butterfly<4>(thread float2* v) {
  float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
  d = float2(d.y, -d.x);
  v[0] = a + c;
  v[1] = b + d;
  v[2] = a - c;
  v[3] = b - d;
}

template <uint RADIX>
inline void pass(threadgroup const float2* from, threadgroup float2* to, uint t, uint done) {
  constexpr uint columns = LENGTH / RADIX;
  for (uint i = t; i < columns; i += THREADS) {
    uint k = i % done;
    float2 v[RADIX];
    for (uint r = 0; r < RADIX; ++r) v[r] = mul(from[i + r * columns], turn(float(r * k) / float(done * RADIX)));
    butterfly<RADIX>(v);
    uint base = (i / done) * done * RADIX + k;
    for (uint r = 0; r < RADIX; ++r) to[base + r * done] = v[r];
  }
}
""",
    inputs=_signals(2, 240),
    outputs={"y": ((2, 240), "complex64")},
    grid=(120, 1, 1),
    threadgroup=(60, 1, 1),
    tolerance=3e-6,
    constructs="types.complex64_t barriers.double_buffering barriers.in_loop structure.template structure.switch "
    "address_spaces.threadgroup_pointer_to_helper functions.sinpi functions.cospi simdgroup.partial",
)
def fourier_transform_of_mixed_radix(x):
    return np.fft.fft(x.astype(np.complex128), axis=1)


# ---- Small matrices


@body(
    """
    // Eigenvalues of symmetric 3 x 3 matrices, of which the upper half is given, by the roots of their polynomial; and a
    // unit vector of the largest one.
    uint i = thread_position_in_grid.x;
    device const float* m = matrices + 6 * i;
    const float xx = m[0], xy = m[1], xz = m[2], yy = m[3], yz = m[4], zz = m[5];
    float3 values;
    float off = xy * xy + xz * xz + yz * yz;
    float mean = (xx + yy + zz) / 3.0f;
    if (off < 1e-12f * mean * mean) {
      // Already diagonal.
      values = float3(min3(xx, yy, zz), median3(xx, yy, zz), max3(xx, yy, zz));
    } else {
      float3 d = float3(xx, yy, zz) - mean;
      float p = metal::sqrt((dot(d, d) + 2.0f * off) / 6.0f);
      float det = d.x * (d.y * d.z - yz * yz) - xy * (xy * d.z - yz * xz) + xz * (xy * yz - d.y * xz);
      float angle = acos(clamp(det / (2.0f * p * p * p), -1.0f, 1.0f)) / 3.0f;
      values.z = mean + 2.0f * p * cos(angle);
      values.x = mean + 2.0f * p * cos(angle + 2.0f * M_PI_F / 3.0f);
      values.y = 3.0f * mean - values.x - values.z;
    }
    // Of M - value, two rows span the plane across the vector: the pair that is furthest from being parallel.
    float3 r0 = float3(xx - values.z, xy, xz), r1 = float3(xy, yy - values.z, yz), r2 = float3(xz, yz, zz - values.z);
    float3 candidates[3] = {cross(r0, r1), cross(r0, r2), cross(r1, r2)};
    int best = 0;
    for (int k = 1; k < 3; ++k)
      if (length_squared(candidates[k]) > length_squared(candidates[best])) best = k;
    float3 v = off == 0.0f ? float3(xx == values.z, yy == values.z && xx != values.z, zz == values.z && xx != values.z &&
                             yy != values.z) : normalize(candidates[best]);
    // Its sign is free: the largest component is positive.
    float3 size = abs(v);
    float lead = size.x >= size.y && size.x >= size.z ? v.x : size.y >= size.z ? v.y : v.z;
    v *= sign(lead);
    ((device packed_float3*)eigenvalues)[i] = packed_float3(values);
    // Projections on the axes, which never vanish together.
    for (int c = 0; c < 3; ++c) squares[3 * i + c] = 1.0f + v[c];
    """,
    inputs=lambda rng: {
        "matrices": np.concatenate(
            [rng.uniform(-1, 1, (40, 6)) + np.array([5, 0, 0, 6.5, 0, 8]), [[3, 0, 0, 5, 0, 4], [9, 0, 0, 4, 0, 6]]]
        ).astype(np.float32)
    },
    outputs={"eigenvalues": ((42, 3), "float32"), "squares": ((42, 3), "float32")},
    grid=(42, 1, 1),
    threadgroup=(42, 1, 1),
    tolerance=5e-6,
    constructs="functions.acos functions.cos functions.median3 functions.min3 functions.max3 functions.cross "
    "functions.sign functions.abs functions.length_squared types.packed_vectors types.M_constants",
)
def eigenvalues_of_three(matrices):
    full = matrices.astype(np.float64)[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    values, vectors = np.linalg.eigh(full)
    v = vectors[:, :, 2]
    lead = np.take_along_axis(v, np.abs(v).argmax(axis=1)[:, None], axis=1)
    return values, 1 + v * np.sign(lead)


for _dtype in ("float32", "float16"):

    def _solved(a, b):
        full = np.tril(a.astype(np.float64)) + np.tril(a.astype(np.float64), -1).transpose(0, 2, 1)
        x = np.linalg.solve(full, b.astype(np.float64)[..., None])[..., 0]
        return x, np.linalg.slogdet(full)[1]

    body(
        """
    // A positive definite system for each thread: Cholesky in registers, of the lower half.
    uint i = thread_position_in_grid.x;
    if (i >= uint(a_shape[0])) return;
    float l[N * (N + 1) / 2];
    const device T* matrix = a + i * N * N;
    #define L(r, c) l[(r) * ((r) + 1) / 2 + (c)]
    #pragma unroll
    for (int r = 0; r < N; ++r)
      #pragma unroll
      for (int c = 0; c <= r; ++c) L(r, c) = float(matrix[r * N + c]);
    float log_det = 0.0f;
    #pragma unroll
    for (int c = 0; c < N; ++c) {
      float pivot = L(c, c);
      #pragma unroll
      for (int k = 0; k < c; ++k) pivot = fma(-L(c, k), L(c, k), pivot);
      float root = metal::sqrt(pivot);
      log_det += 2.0f * metal::precise::log(root);
      float inverse = 1.0f / root;
      // The diagonal has the inverses, which is what is needed later.
      L(c, c) = inverse;
      #pragma unroll
      for (int r = c + 1; r < N; ++r) {
        float v = L(r, c);
        #pragma unroll
        for (int k = 0; k < c; ++k) v = fma(-L(r, k), L(c, k), v);
        L(r, c) = v * inverse;
      }
    }
    float x[N];
    #pragma unroll
    for (int r = 0; r < N; ++r) {
      float v = float(b[i * N + r]);
      #pragma unroll
      for (int k = 0; k < r; ++k) v = fma(-L(r, k), x[k], v);
      x[r] = v * L(r, r);
    }
    #pragma unroll
    for (int r = N - 1; r >= 0; --r) {
      float v = x[r];
      #pragma unroll
      for (int k = r + 1; k < N; ++k) v = fma(-L(k, r), x[k], v);
      x[r] = v * L(r, r);
      solution[i * N + r] = x[r];
    }
    log_determinant[i] = log_det;
    """,
        name=f"cholesky_solve_{_dtype}",
        template=[("T", Dtype(_dtype)), ("N", 6)],
        inputs=lambda rng, _dtype=_dtype: {
            "a": (rng.uniform(-0.25, 0.25, (33, 6, 6)) + 3 * np.eye(6)).astype(_dtype),
            "b": rng.uniform(4, 6, (33, 6)).astype(_dtype),
        },
        outputs={"solution": ((33, 6), "float32"), "log_determinant": ((33,), "float32")},
        grid=(64, 1, 1),
        threadgroup=(32, 1, 1),
        tolerance=3e-6,
        constructs="structure.pragma_unroll structure.define functions.fma functions.sqrt functions.log "
        "functions.precise structure.template_arguments structure.early_return",
    )(_solved)


@body(
    """
    // Least squares by Householder's reflections: one simdgroup for each problem, a lane for each row.
    uint problem = thread_position_in_grid.x / 32;
    uint row = thread_index_in_simdgroup;
    uint rows = a_shape[1];
    constexpr uint columns = COLUMNS;
    bool here = row < rows;
    float r[columns], y = here ? b[problem * rows + row] : 0.0f;
    for (uint c = 0; c < columns; ++c) r[c] = here ? a[(problem * rows + row) * columns + c] : 0.0f;
    #pragma unroll
    for (uint c = 0; c < columns; ++c) {
      bool below = row >= c;
      float own = below ? r[c] : 0.0f;
      float norm = metal::sqrt(simd_sum(own * own));
      float head = simd_broadcast(own, c);
      float alpha = head > 0.0f ? -norm : norm;
      float v = row == c ? own - alpha : own;
      float vv = simd_sum(v * v);
      for (uint k = c; k < columns; ++k) {
        float projection = 2.0f * simd_sum(v * r[k]) / vv;
        r[k] -= projection * v;
      }
      float projection = 2.0f * simd_sum(v * y) / vv;
      y -= projection * v;
    }
    // Back substitution; lane c has row c of R.
    float solution[columns];
    #pragma unroll
    for (int c = columns - 1; c >= 0; --c) {
      float rest = y;
      for (uint k = c + 1; k < columns; ++k) rest -= r[k] * solution[k];
      solution[c] = simd_broadcast(rest / r[c], ushort(c));
    }
    float residual = simd_sum(row >= columns ? y * y : 0.0f);
    if (row < columns) {
      float mine = 0.0f;
      for (uint c = 0; c < columns; ++c) mine = c == row ? solution[c] : mine;
      coefficients[problem * columns + row] = mine;
    }
    if (row == 0) residuals[problem] = residual;
    """,
    template=[("COLUMNS", 4)],
    inputs=lambda rng: {
        "a": (rng.uniform(0, 1, (5, 20, 4)) + np.tile(np.eye(4), (5, 1))).astype(np.float32),
        "b": rng.uniform(4, 8, (5, 20)).astype(np.float32),
    },
    outputs={"coefficients": ((5, 4), "float32"), "residuals": ((5,), "float32")},
    grid=(160, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-5,
    constructs="simdgroup.sum simdgroup.broadcast structure.pragma_unroll structure.constexpr functions.sqrt",
)
def least_squares_by_reflections(a, b):
    fits = [np.linalg.lstsq(m, v, rcond=None) for m, v in zip(a.astype(np.float64), b.astype(np.float64), strict=True)]
    return np.array([fit[0] for fit in fits]), np.array([fit[1][0] for fit in fits])


@body(
    """
    // Singular values of 4 x 3 matrices by one-sided Jacobi: columns are turned in pairs until they are at right angles.
    uint i = thread_position_in_grid.x;
    device const float4* in = (device const float4*)(columns + 12 * i);
    matrix<float, 3, 4> u(in[0], in[1], in[2]);
    float3x3 v(1.0f);
    int sweeps = 0;
    bool turned = true;
    while (turned && sweeps < 12) {
      turned = false;
      for (int p = 0; p < 2; ++p)
        for (int q = p + 1; q < 3; ++q) turned |= turn(u, v, p, q);
      ++sweeps;
    }
    float3 sigma = float3(length(u[0]), length(u[1]), length(u[2]));
    // Sorted by three exchanges.
    #define ORDER(a, b) if (sigma[a] < sigma[b]) { float s = sigma[a]; sigma[a] = sigma[b]; sigma[b] = s; }
    ORDER(0, 1)
    ORDER(1, 2)
    ORDER(0, 1)
    for (int k = 0; k < 3; ++k) singular_values[3 * i + k] = sigma[k];
    // What was turned must still be a rotation, and give back the matrix.
    float3x3 gram = transpose(v) * v;
    float wrong = 0.0f;
    for (int c = 0; c < 3; ++c) wrong = max(wrong, distance(gram[c], float3x3(1.0f)[c]));
    matrix<float, 3, 4> back = u * transpose(v);
    for (int c = 0; c < 3; ++c) wrong = max(wrong, distance(back[c], in[c]));
    good[i] = wrong < 2e-5f && sweeps < 12;
    determinants[i] = determinant(v);
    """,
    header="""
// Makes columns p and q of u orthogonal; says whether they were not yet.
inline bool turn(thread matrix<float, 3, 4>& u, thread float3x3& v, int p, int q) {
  float a = dot(u[p], u[p]), b = dot(u[q], u[q]), c = dot(u[p], u[q]);
  if (metal::abs(c) <= 1e-7f * metal::sqrt(a * b)) return false;
  float zeta = (b - a) / (2.0f * c);
  float t = copysign(1.0f / (metal::abs(zeta) + metal::sqrt(1.0f + zeta * zeta)), zeta);
  float cosine = rsqrt(1.0f + t * t), sine = cosine * t;
  float4 up = u[p];
  u[p] = cosine * up - sine * u[q];
  u[q] = sine * up + cosine * u[q];
  float3 vp = v[p];
  v[p] = cosine * vp - sine * v[q];
  v[q] = sine * vp + cosine * v[q];
  return true;
}
""",
    inputs=lambda rng: {"columns": (rng.normal(size=(50, 3, 4)) + np.eye(3, 4) * 2).astype(np.float32)},
    outputs={"singular_values": ((50, 3), "float32"), "good": ((50,), "bool"), "determinants": ((50,), "float32")},
    grid=(50, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=3e-6,
    constructs="types.matrices types.matrix_arithmetic types.matrix_components types.matrix_constructors "
    "functions.transpose functions.determinant functions.copysign functions.distance reconvergence.divergent_trip_count",
)
def singular_values_by_jacobi(columns):
    return np.linalg.svd(columns.astype(np.float64), compute_uv=False), np.ones(50, bool), np.ones(50)
