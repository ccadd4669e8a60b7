"""Steps of optimisers over whole arrays: moments of several kinds, rounding at random, orthogonal updates."""

import numpy as np

from bodies import DTYPES, Dtype, body

F = np.float32


@body(
    """
    // Parameters of many sizes lie one after the other; a table says where chunks of at most CHUNK elements begin and whose
    // they are. Decoupled decay, corrected moments, a master copy in float beside parameters of sixteen bits.
    const uint chunk = threadgroup_position_in_grid.x, t = thread_position_in_threadgroup.x;
    const int begin = chunk_starts[chunk], end = chunk_starts[chunk + 1];
    const Settings s = ((device const Settings*)settings)[tensor_of_chunk[chunk]];
    const float step = float(step_number);
    const float correct_m = 1.0f - metal::precise::pow(s.beta1, step), correct_v = 1.0f - metal::precise::pow(s.beta2, step);
    const float rate = s.rate * (WARMUP > 0 ? min(1.0f, step / WARMUP) : 1.0f);
    // A gradient that is not finite leaves the chunk as it is: all threads must know.
    threadgroup atomic_uint bad;
    if (t == 0) atomic_store_explicit(&bad, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = begin + int(t); i < end; i += threads_per_threadgroup.x)
      if (!isfinite(float(g[i]))) atomic_fetch_or_explicit(&bad, 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const bool skip = atomic_load_explicit(&bad, memory_order_relaxed) != 0;
    if (t == 0) skipped[chunk] = skip;

    for (int i = begin + int(t); i < end; i += threads_per_threadgroup.x) {
      float p = master[i], m1 = m[i], v1 = v[i], v_most = AMSGRAD ? v_max[i] : 0.0f;
      if (!skip) {
        const float grad = float(g[i]) * inverse_scale;
        p -= rate * s.decay * p;
        m1 = mix(grad, m1, s.beta1);
        v1 = mix(grad * grad, v1, s.beta2);
        if (AMSGRAD) v_most = max(v_most, v1);
        const float denominator = metal::precise::sqrt((AMSGRAD ? v_most : v1) / correct_v) + s.epsilon;
        p -= rate * (m1 / correct_m) / denominator;
      }
      master_out[i] = p;
      p_out[i] = T(p);
      m_out[i] = m1;
      v_out[i] = v1;
      v_max_out[i] = v_most;
    }
    """,
    header="""
struct Settings {
  float rate;
  float beta1, beta2;
  float epsilon;
  float decay;
};
""",
    template=[("T", Dtype("float16")), ("AMSGRAD", True), ("WARMUP", 100)],
    inputs=lambda rng: {
        "master": rng.uniform(1, 2, 150).astype(F),
        "g": np.where(np.arange(150) == 77, np.inf, rng.uniform(0.5, 1, 150) * 64).astype(np.float16),
        "m": rng.uniform(0, 1, 150).astype(F),
        "v": rng.uniform(0, 1, 150).astype(F),
        "v_max": rng.uniform(0, 1, 150).astype(F),
        "chunk_starts": np.array([0, 3, 43, 64, 104, 150], np.int32),
        "tensor_of_chunk": np.array([0, 1, 1, 2, 2], np.int32),
        "settings": np.array(
            [[0.1, 0.9, 0.99, 1e-8, 0.01], [0.01, 0.8, 0.95, 1e-6, 0], [0.05, 0.9, 0.999, 1e-8, 0.1]], F
        ),
        "step_number": 20,
        "inverse_scale": 0.015625,
    },
    outputs={
        "p_out": ((150,), "float16"),
        "skipped": ((5,), "bool"),
        **{f"{name}_out": ((150,), "float32") for name in ("master", "m", "v", "v_max")},
    },
    grid=(5 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=2**-11,
    constructs="address_spaces.threadgroup_atomic synchronisation.fetch_or synchronisation.threadgroup_atomics "
    "functions.isfinite functions.pow functions.mix functions.sqrt address_spaces.cast_to_struct",
)
def adam_over_many_tensors(master, g, m, v, v_max, chunk_starts, tensor_of_chunk, settings, step_number, inverse_scale):
    p, m, v, v_max = (a.astype(np.float64) for a in (master, m, v, v_max))
    skipped = []
    for chunk, tensor in enumerate(tensor_of_chunk):
        own = slice(chunk_starts[chunk], chunk_starts[chunk + 1])
        grad = g[own].astype(np.float64) * inverse_scale
        skipped.append(not np.isfinite(grad).all())
        if skipped[-1]:
            continue
        rate, beta1, beta2, epsilon, decay = settings[tensor].astype(np.float64)
        rate *= step_number / 100
        m[own] = beta1 * m[own] + (1 - beta1) * grad
        v[own] = beta2 * v[own] + (1 - beta2) * grad**2
        v_max[own] = np.maximum(v_max[own], v[own])
        direction = m[own] / (1 - beta1**step_number)
        direction = direction / (np.sqrt(v_max[own] / (1 - beta2**step_number)) + epsilon)
        p[own] = p[own] * (1 - rate * decay) - rate * direction
    return p, np.array(skipped), p, m, v, v_max


@body(
    """
    // The sign of a mixture of momentum and gradient. Parameters of sixteen bits are rounded at random: the lower half of the
    // float's bits is the chance to go up. Random bits are a hash of the element's number and the step.
    const uint i = thread_position_in_grid.x;
    const uint n = p_shape[0];
    const uint first = i * 4;
    if (first >= n) return;
    for (uint j = first; j < min(first + 4, n); ++j) {
      const float grad = g[j], momentum = m[j];
      const float direction = sign(momentum * b1 + grad * (1.0f - b1));
      const float value = float(p[j]) - rate * (direction + float(p[j]) * decay);
      p_out[j] = round_at_random(value, hash(j * 2654435761u ^ seed));
      m_out[j] = momentum * b2 + grad * (1.0f - b2);
    }
    """,
    header="""
inline uint hash(uint x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

inline bfloat16_t round_at_random(float x, uint random) {
  const uint bits = as_type<uint>(x) + (random & 0xffffu);
  // The upper half is a bfloat, without further rounding.
  return as_type<bfloat16_t>(ushort(bits >> 16));
}
""",
    inputs=lambda rng: {
        "p": rng.normal(size=203).astype(DTYPES["bfloat16"]),
        "g": rng.normal(size=203).astype(F),
        "m": rng.normal(size=203).astype(F),
        "rate": 0.01,
        "b1": 0.9,
        "b2": 0.99,
        "decay": 0.1,
        "seed": 12345,
    },
    outputs={"p_out": ((203,), "bfloat16"), "m_out": ((203,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.as_type functions.sign types.bfloat16_t structure.early_return literals.integer",
)
def lion_with_random_rounding(p, g, m, rate, b1, b2, decay, seed):
    rate, b1, b2, decay = F(rate), F(b1), F(b2), F(decay)
    own = p.astype(F)
    value = own - rate * (np.sign(m * b1 + g * (F(1) - b1)) + own * decay)
    h = (np.arange(203, dtype=np.uint64) * 2654435761 & 0xFFFFFFFF) ^ seed
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = (h ^ h >> shift) * factor & 0xFFFFFFFF
    h ^= h >> 16
    bits = value.view(np.uint32) + (h & 0xFFFF).astype(np.uint32)
    return (bits >> 16).astype(np.uint16).view(DTYPES["bfloat16"]), m * b2 + g * (F(1) - b2)


@body(
    """
    // Momentum, then an update whose singular values are all near one: five times X = a X + (b A + c A A) X with A = X X^T.
    // A threadgroup has a whole matrix of ROWS by COLUMNS, ROWS being the smaller one.
    threadgroup float x[ROWS][COLUMNS];
    threadgroup float gram[ROWS][ROWS + 1];
    threadgroup float polynomial[ROWS][ROWS + 1];
    threadgroup float squares[32];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint which = threadgroup_position_in_grid.x;
    constexpr float A = 3.4445f, B = -4.7750f, C = 2.0315f;

    float own = 0;
    for (uint i = t; i < ROWS * COLUMNS; i += THREADS) {
      const uint at = which * ROWS * COLUMNS + i;
      const float m = momentum[at] * beta + g[at];
      momentum_out[at] = m;
      const float v = NESTEROV ? g[at] + beta * m : m;
      x[i / COLUMNS][i % COLUMNS] = v;
      own += v * v;
    }
    own = simd_sum(own);
    if (lane == 0) squares[simd] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0;
    for (uint s = 0; s < THREADS / 32; ++s) total += squares[s];
    const float inverse = 1.0f / (metal::precise::sqrt(total) + 1e-7f);
    for (uint i = t; i < ROWS * COLUMNS; i += THREADS) x[i / COLUMNS][i % COLUMNS] *= inverse;

    for (int round = 0; round < ROUNDS; ++round) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // Symmetric: the lower half is a mirror image.
      for (uint i = t; i < ROWS * ROWS; i += THREADS) {
        const uint r = i / ROWS, c = i % ROWS;
        if (c < r) continue;
        float sum = 0;
        for (uint j = 0; j < COLUMNS; ++j) sum = fma(x[r][j], x[c][j], sum);
        gram[r][c] = sum;
        gram[c][r] = sum;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = t; i < ROWS * ROWS; i += THREADS) {
        const uint r = i / ROWS, c = i % ROWS;
        float sum = 0;
        for (uint j = 0; j < ROWS; ++j) sum = fma(gram[r][j], gram[j][c], sum);
        polynomial[r][c] = fma(C, sum, B * gram[r][c]) + (r == c ? A : 0.0f);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // A thread has whole columns: it may write over what it alone reads.
      for (uint c = t; c < COLUMNS; c += THREADS) {
        float column[ROWS];
        for (uint r = 0; r < ROWS; ++r) column[r] = x[r][c];
        for (uint r = 0; r < ROWS; ++r) {
          float sum = 0;
          for (uint j = 0; j < ROWS; ++j) sum = fma(polynomial[r][j], column[j], sum);
          x[r][c] = sum;
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float scale = rate * metal::precise::sqrt(max(1.0f, float(COLUMNS) / ROWS));
    for (uint i = t; i < ROWS * COLUMNS; i += THREADS) {
      const uint at = which * ROWS * COLUMNS + i;
      p_out[at] = p[at] * (1.0f - rate * decay) - scale * x[i / COLUMNS][i % COLUMNS];
    }
    """,
    template=[("ROWS", 12), ("COLUMNS", 20), ("THREADS", 64), ("ROUNDS", 5), ("NESTEROV", True)],
    inputs=lambda rng: {
        "p": rng.uniform(2, 3, (2, 12, 20)).astype(F),
        "g": rng.normal(size=(2, 12, 20)).astype(F),
        "momentum": rng.normal(size=(2, 12, 20)).astype(F),
        "beta": 0.95,
        "rate": 0.02,
        "decay": 0.1,
    },
    outputs={"p_out": ((2, 12, 20), "float32"), "momentum_out": ((2, 12, 20), "float32")},
    grid=(2 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=1e-5,
    constructs="barriers.in_loop address_spaces.threadgroup_2d_array structure.dynamic_local_array functions.fma "
    "functions.sqrt simdgroup.sum",
)
def muon_step(p, g, momentum, beta, rate, decay):
    """Of the singular values, each by itself: the vectors stay what they are."""
    p, g, momentum = (a.astype(np.float64) for a in (p, g, momentum))
    momentum = momentum * beta + g
    u, s, vt = np.linalg.svd(g + beta * momentum, full_matrices=False)
    s = s / np.sqrt((s**2).sum(1, keepdims=True))
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    update = (u * s[:, None]) @ vt
    return p * (1 - rate * decay) - rate * np.sqrt(20 / 12) * update, momentum


def _dynamic_map(signed):
    """Values for eight bits with more digits near the top: a decade for each leading zero of the code."""
    values = [0.0, 1.0]
    for decade in range(7):
        count = 2 ** (decade if signed else decade + 1)
        edges = np.linspace(0.1, 1, count + 1)
        middles = (edges[1:] + edges[:-1]) / 2 * 10.0 ** (decade - 6)
        values += [*middles, *(-middles)] if signed else [*middles]
    return np.unique(np.array(values, F))


_SIGNED, _UNSIGNED = _dynamic_map(True), _dynamic_map(False)


def _table(name, values):
    padded = [*values, *[values[-1]] * (256 - len(values))]
    lines = [", ".join(f"{float(v):.9e}f" for v in padded[i : i + 8]) for i in range(0, 256, 8)]
    return f"constant float {name}[256] = {{\n  " + ",\n  ".join(lines) + "\n};\n"


@body(
    """
    // Moments of eight bits with a scale for each block of BLOCK: they are looked up, moved, and put back to the nearest entry
    // of the table relative to the block's new maximum. A threadgroup has a block; a thread PER elements of it.
    constexpr int THREADS = 64, PER = BLOCK / THREADS;
    threadgroup float most_m[THREADS / 32], most_v[THREADS / 32];
    const uint block = threadgroup_position_in_grid.x, t = thread_position_in_threadgroup.x;
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint count = p_shape[0];
    const float old_m = m_scale[block], old_v = v_scale[block];
    float m[PER], v[PER];
    float top_m = 0, top_v = 0;
    #pragma unroll
    for (int i = 0; i < PER; ++i) {
      const uint at = block * BLOCK + i * THREADS + t;
      const bool inside = at < count;
      const float grad = inside ? g[at] : 0.0f;
      m[i] = inside ? SIGNED_MAP[m_codes[at]] * old_m : 0.0f;
      v[i] = inside ? UNSIGNED_MAP[v_codes[at]] * old_v : 0.0f;
      m[i] = m[i] * BETA1 + grad * (1.0f - BETA1);
      v[i] = v[i] * BETA2 + grad * grad * (1.0f - BETA2);
      top_m = max(top_m, fabs(m[i]));
      top_v = max(top_v, v[i]);
    }
    top_m = simd_max(top_m);
    top_v = simd_max(top_v);
    if (lane == 0) {
      most_m[simd] = top_m;
      most_v[simd] = top_v;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top_m = max(most_m[0], most_m[1]);
    top_v = max(most_v[0], most_v[1]);
    if (t == 0) {
      m_scale_out[block] = top_m;
      v_scale_out[block] = top_v;
    }
    #pragma unroll
    for (int i = 0; i < PER; ++i) {
      const uint at = block * BLOCK + i * THREADS + t;
      if (at >= count) break;
      // The step uses the moments before they are rounded.
      p_out[at] = p[at] - rate * m[i] / (metal::precise::sqrt(v[i]) + EPSILON);
      m_codes_out[at] = nearest(SIGNED_MAP, SIGNED_COUNT, top_m > 0 ? m[i] / top_m : 0.0f);
      uchar code = nearest(UNSIGNED_MAP, UNSIGNED_COUNT, top_v > 0 ? v[i] / top_v : 0.0f);
      // A second moment of zero would make the next step too large.
      if (code == 0 && v[i] > 0) code = 1;
      v_codes_out[at] = code;
    }
    """,
    header=f"""
#define BETA1 0.9f
#define BETA2 0.999f
#define EPSILON 1e-8f
#define SIGNED_COUNT {len(_SIGNED)}
#define UNSIGNED_COUNT {len(_UNSIGNED)}

// Ascending; what is behind the last value is filled with it.
{_table("SIGNED_MAP", _SIGNED)}
{_table("UNSIGNED_MAP", _UNSIGNED)}
"""
    + """
// By bisection; halfway goes down.
static uchar nearest(constant const float* table, int count, float x) {
  int low = 0, high = count - 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table[middle] <= x)
      low = middle;
    else
      high = middle;
  }
  return uchar(x - table[low] <= table[high] - x ? low : high);
}
""",
    template=[("BLOCK", 128)],
    inputs=lambda rng: {
        "p": rng.normal(size=300).astype(F),
        "g": rng.normal(size=300).astype(F),
        "m_codes": rng.integers(0, len(_SIGNED), 300, np.uint8),
        "v_codes": rng.integers(0, len(_UNSIGNED), 300, np.uint8),
        "m_scale": rng.uniform(0.5, 2, 3).astype(F),
        "v_scale": rng.uniform(0.5, 2, 3).astype(F),
        "rate": 0.001,
    },
    outputs={
        "p_out": ((300,), "float32"),
        "m_codes_out": ((300,), "uint8"),
        "v_codes_out": ((300,), "uint8"),
        "m_scale_out": ((3,), "float32"),
        "v_scale_out": ((3,), "float32"),
    },
    grid=(3 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="address_spaces.large_constant_table structure.while simdgroup.max functions.sqrt functions.fabs "
    "address_spaces.constant structure.define_in_header",
)
def adam_with_moments_of_eight_bits(p, g, m_codes, v_codes, m_scale, v_scale, rate):
    block = np.arange(300) // 128
    m = _SIGNED[m_codes] * m_scale[block] * F(0.9) + g * (F(1) - F(0.9))
    v = _UNSIGNED[v_codes] * v_scale[block] * F(0.999) + g * g * (F(1) - F(0.999))
    new_m = np.maximum.reduceat(np.abs(m), [0, 128, 256])
    new_v = np.maximum.reduceat(v, [0, 128, 256])

    def codes(values, scale, table):
        return np.abs((values / scale[block])[:, None] - table).argmin(axis=1)

    v_out = codes(v, new_v, _UNSIGNED)
    v_out = np.where((v_out == 0) & (v > 0), 1, v_out)
    p = p - F(rate) * m / (np.sqrt(v) + F(1e-8))
    return p, codes(m, new_m, _SIGNED).astype(np.uint8), v_out.astype(np.uint8), new_m, new_v


@body(
    """
    // Second moments by their rows' and columns' means only. One threadgroup has the matrix: means first, then the update,
    // whose root mean square is limited, then the parameters, whose own root mean square gives the step's size.
    threadgroup float row_now[ROWS], column_now[COLUMNS];
    threadgroup float partial[2][8];
    const uint t = thread_position_in_threadgroup.x, lane = thread_index_in_simdgroup;
    const uint simd = simdgroup_index_in_threadgroup, simds = simdgroups_per_threadgroup;
    const uint first = threadgroup_position_in_grid.x * ROWS * COLUMNS;
    device const float* grad = g + first;

    // A simdgroup for each row.
    for (uint r = simd; r < ROWS; r += simds) {
      float sum = 0;
      for (uint c = lane; c < COLUMNS; c += 32) sum += grad[r * COLUMNS + c] * grad[r * COLUMNS + c] + 1e-30f;
      sum = simd_sum(sum) / COLUMNS;
      if (lane == 0) {
        const uint at = threadgroup_position_in_grid.x * ROWS + r;
        row_now[r] = rows_out[at] = mix(sum, rows[at], beta);
      }
    }
    // A thread for each column.
    for (uint c = t; c < COLUMNS; c += threads_per_threadgroup.x) {
      float sum = 0;
      for (uint r = 0; r < ROWS; ++r) sum += grad[r * COLUMNS + c] * grad[r * COLUMNS + c] + 1e-30f;
      const uint at = threadgroup_position_in_grid.x * COLUMNS + c;
      column_now[c] = columns_out[at] = mix(sum / ROWS, columns[at], beta);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float row_mean = 0;
    for (uint r = 0; r < ROWS; ++r) row_mean += row_now[r];
    row_mean /= ROWS;

    float of_update = 0, of_parameters = 0;
    for (uint i = t; i < ROWS * COLUMNS; i += threads_per_threadgroup.x) {
      const float u = grad[i] * rsqrt(row_now[i / COLUMNS] / row_mean) * rsqrt(column_now[i % COLUMNS]);
      of_update += u * u;
      of_parameters += p[first + i] * p[first + i];
    }
    const float2 sums = simd_sum(float2(of_update, of_parameters));
    if (lane == 0) partial[0][simd] = sums.x, partial[1][simd] = sums.y;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    of_update = of_parameters = 0;
    for (uint s = 0; s < simds; ++s) of_update += partial[0][s], of_parameters += partial[1][s];
    const float size = metal::precise::sqrt(of_update / (ROWS * COLUMNS));
    const float step = rate * max(1e-3f, metal::precise::sqrt(of_parameters / (ROWS * COLUMNS)));
    for (uint i = t; i < ROWS * COLUMNS; i += threads_per_threadgroup.x) {
      const float u = grad[i] * rsqrt(row_now[i / COLUMNS] / row_mean) * rsqrt(column_now[i % COLUMNS]);
      p_out[first + i] = p[first + i] - step * u / max(1.0f, size / CLIP);
    }
    """,
    header="constant float CLIP = 1.0f;\n",
    template=[("ROWS", 10), ("COLUMNS", 70)],
    inputs=lambda rng: {
        "p": rng.uniform(1, 2, (2, 10, 70)).astype(F),
        "g": (rng.normal(size=(2, 10, 70)) * np.array([1, 30])[:, None, None]).astype(F),
        "rows": rng.uniform(0.5, 1, (2, 10)).astype(F),
        "columns": rng.uniform(0.5, 1, (2, 70)).astype(F),
        "beta": 0.75,
        "rate": 0.01,
    },
    outputs={
        "p_out": ((2, 10, 70), "float32"),
        "rows_out": ((2, 10), "float32"),
        "columns_out": ((2, 70), "float32"),
    },
    grid=(2 * 96, 1, 1),
    threadgroup=(96, 1, 1),
    tolerance=1e-6,
    constructs="simdgroup.sum types.float2 functions.rsqrt functions.mix address_spaces.constant_scalar "
    "attributes.simdgroups_per_threadgroup",
)
def adafactor_step(p, g, rows, columns, beta, rate):
    p, g, rows, columns = (a.astype(np.float64) for a in (p, g, rows, columns))
    rows = beta * rows + (1 - beta) * (g**2).mean(axis=2)
    columns = beta * columns + (1 - beta) * (g**2).mean(axis=1)
    second = rows[:, :, None] * columns[:, None] / rows.mean(axis=1)[:, None, None]
    update = g / np.sqrt(second)
    update /= np.maximum(1, np.sqrt((update**2).mean(axis=(1, 2), keepdims=True)))
    return p - rate * np.sqrt((p**2).mean(axis=(1, 2), keepdims=True)) * update, rows, columns


@body(
    """
    // Layers' own step sizes: the ratio of the norms of the parameters and of the update. Layers are segments of the array; a
    // threadgroup has one, and comes past its elements twice, since the update is cheaper to make again than to keep.
    threadgroup float2 norms[32];
    const uint layer = threadgroup_position_in_grid.x, t = thread_position_in_threadgroup.x;
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const int begin = layer == 0 ? 0 : ends[layer - 1], end = ends[layer];

    auto update_of = [&](int i, thread float& m1, thread float& v1) {
      m1 = 0.9f * m[i] + 0.1f * g[i];
      v1 = 0.99f * v[i] + 0.01f * g[i] * g[i];
      return m1 / (metal::precise::sqrt(v1) + 1e-6f) + decay * p[i];
    };

    float2 own = 0;
    for (int i = begin + int(t); i < end; i += threads_per_threadgroup.x) {
      float m1, v1;
      const float u = update_of(i, m1, v1);
      own += float2(p[i] * p[i], u * u);
    }
    own.x = simd_sum(own.x);
    own.y = simd_sum(own.y);
    if (simd == 0) norms[lane] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) norms[simd] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float2 both = sqrt(simd_sum(norms[lane]));
    const float ratio = both.x > 0 && both.y > 0 ? clamp(both.x / both.y, 0.01f, 10.0f) : 1.0f;
    for (int i = begin + int(t); i < end; i += threads_per_threadgroup.x) {
      float m1, v1;
      const float u = update_of(i, m1, v1);
      p_out[i] = p[i] - rate * ratio * u;
      m_out[i] = m1;
      v_out[i] = v1;
    }
    if (t == 0) ratios[layer] = ratio;
    """,
    inputs=lambda rng: {
        "p": (rng.uniform(1, 2, 220) * (np.arange(220) >= 5)).astype(F),
        "g": rng.uniform(0.5, 1, 220).astype(F),
        "m": rng.uniform(0.5, 1, 220).astype(F),
        "v": rng.uniform(0.5, 1, 220).astype(F),
        "ends": np.array([5, 105, 105, 220], np.int32),
        "rate": 0.01,
        "decay": 0.1,
    },
    outputs={
        **{f"{name}_out": ((220,), "float32") for name in ("p", "m", "v")},
        "ratios": ((4,), "float32"),
    },
    grid=(4 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=1e-6,
    constructs="structure.lambda address_spaces.threadgroup_vectors functions.sqrt functions.clamp simdgroup.sum "
    "types.float2",
)
def lamb_step(p, g, m, v, ends, rate, decay):
    p, g, m, v = (a.astype(np.float64) for a in (p, g, m, v))
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    u = m / (np.sqrt(v) + 1e-6) + decay * p
    ratios, new = [], p.copy()
    for part in np.split(np.arange(220), ends[:-1]):
        a, b = np.sqrt((p[part] ** 2).sum()), np.sqrt((u[part] ** 2).sum())
        ratios.append(np.clip(a / b, 0.01, 10) if a > 0 and b > 0 else 1.0)
        new[part] -= rate * ratios[-1] * u[part]
    return new, m, v, np.array(ratios)
