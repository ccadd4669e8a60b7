"""State-space models: selective scans, their gradient, state-space duality by chunks, and the short convolution before
them."""

import numpy as np

from bodies import DTYPES, Dtype, body


def _softplus(x):
    return np.logaddexp(0, x)


def _silu(x):
    return x / (1 + np.exp(-x))


def _sequential_scan(x, delta, a, b, c, state):
    """x, delta: [steps, channels]; a: [channels, states]; b, c: [steps, states]."""
    y = []
    for t in range(len(x)):
        state = state * np.exp(delta[t][:, None] * a) + (delta[t] * x[t])[:, None] * b[t]
        y.append(state @ c[t])
    return np.array(y), state


# ---- Selective scan


@body(
    """
    // Sixteen lanes for a channel, one for each state: two channels for each simdgroup.
    constexpr int N = 16;
    const ushort lane = thread_index_in_simdgroup;
    const ushort n = lane % N;
    const uint channels = x_shape[2];
    const uint channel = (threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup) * 2
        + lane / N;
    const uint batch = threadgroup_position_in_grid.y;
    const int steps = x_shape[1];
    const bool inside = channel < channels;
    const uint c = inside ? channel : 0;  // those outside compute what nobody stores, for the shuffles

    const float a = -metal::precise::exp(log_a[c * N + n]);
    const float skip = d[c], bias = delta_bias[c];
    float state = 0;
    for (int t = 0; t < steps; ++t) {
      const uint at = (batch * steps + t) * channels + c;
      const uint with_state = (batch * steps + t) * N + n;
      float step = float(delta[at]) + bias;
      if (SOFTPLUS) step = step <= 20.0f ? metal::precise::log(1.0f + metal::precise::exp(step)) : step;
      const float in = float(x[at]);
      state = metal::precise::exp(step * a) * state + step * in * float(b[with_state]);

      float sum = state * float(cc[with_state]);
      sum += simd_shuffle_xor(sum, ushort(8));
      sum += simd_shuffle_xor(sum, ushort(4));
      sum += simd_shuffle_xor(sum, ushort(2));
      sum += simd_shuffle_xor(sum, ushort(1));
      sum += skip * in;
      if (GATED) {
        const float g = float(z[at]);
        sum *= g / (1.0f + metal::precise::exp(-g));
      }
      if (inside && n == 0) y[at] = T(sum);
    }
    if (inside) last[(batch * channels + c) * N + n] = state;
    """,
    template=[("T", Dtype("float16")), ("SOFTPLUS", True), ("GATED", True)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1.5, (2, 12, 11)).astype(np.float16),
        "delta": rng.normal(size=(2, 12, 11)).astype(np.float16),
        "log_a": np.log(rng.uniform(0.5, 4, (11, 16))).astype(np.float32),
        "b": rng.uniform(0.1, 1, (2, 12, 16)).astype(np.float16),
        "cc": rng.uniform(0.1, 1, (2, 12, 16)).astype(np.float16),
        "d": rng.uniform(0, 1, 11).astype(np.float32),
        "z": rng.uniform(0.5, 3, (2, 12, 11)).astype(np.float16),
        "delta_bias": rng.uniform(-2, -1, 11).astype(np.float32),
    },
    outputs={"y": ((2, 12, 11), "float16"), "last": ((2, 11, 16), "float32")},
    grid=(3 * 64, 2, 1),
    threadgroup=(64, 1, 1),
    tolerance=2**-10,
    constructs="simdgroup.shuffle_xor functions.exp functions.log structure.template_arguments types.half",
)
def selective_scan(x, delta, log_a, b, cc, d, z, delta_bias):
    x, delta, log_a, b, cc, d, z, delta_bias = (
        a.astype(np.float64) for a in (x, delta, log_a, b, cc, d, z, delta_bias)
    )
    y, last = np.zeros((2, 12, 11)), np.zeros((2, 11, 16))
    for i in range(2):
        out, last[i] = _sequential_scan(
            x[i], _softplus(delta[i] + delta_bias), -np.exp(log_a), b[i], cc[i], np.zeros((11, 16))
        )
        y[i] = (out + d * x[i]) * _silu(z[i])
    return y, last


@body(
    """
    // A threadgroup for a channel of a sequence. Time is spread over the threads, ITEMS steps to each; for each state the
    // pairs (factor, value) of a thread are composed, scanned over the simdgroup, then over the simdgroups, and what a
    // chunk ends with is what the next one begins with.
    constexpr uint CHUNK = THREADS * ITEMS;
    constexpr uint SIMDS = THREADS / 32;
    threadgroup Step totals[SIMDS];
    threadgroup float carried[STATES];

    const uint tid = thread_position_in_threadgroup.x;
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint channel = threadgroup_position_in_grid.y, batch = threadgroup_position_in_grid.z;
    const uint channels = u_shape[1], length = u_shape[2];
    // Channels of one group have B and C in common.
    const uint groups = b_shape[1], group = channel / (channels / groups);

    device const float* u_row = u + (batch * channels + channel) * length;
    device const float* delta_row = delta + (batch * channels + channel) * length;
    device const float* z_row = z + (batch * channels + channel) * length;
    device const float* b_rows = b + (batch * groups + group) * STATES * length;
    device const float* c_rows = c + (batch * groups + group) * STATES * length;
    device float* y_row = y + (batch * channels + channel) * length;

    if (tid < STATES) carried[tid] = 0;

    for (uint first = 0; first < length; first += CHUNK) {
      float u_own[ITEMS], delta_own[ITEMS], out[ITEMS];
      const uint begin = first + tid * ITEMS;
      #pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const bool inside = begin + i < length;
        u_own[i] = inside ? u_row[begin + i] : 0.0f;
        // A step of no length changes nothing.
        delta_own[i] = inside ? softplus(delta_row[begin + i] + delta_bias[channel]) : 0.0f;
        out[i] = skip[channel] * u_own[i];
      }

      for (int n = 0; n < STATES; ++n) {
        // exp(delta a) as a power of two: one multiplication less for each item.
        const float a = a_matrix[channel * STATES + n] * LOG2_E;

        // What this thread's steps do, one after the other.
        Step own[ITEMS];
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
          const float input = begin + i < length ? b_rows[n * length + begin + i] : 0.0f;
          own[i].factor = metal::precise::exp2(delta_own[i] * a);
          own[i].value = delta_own[i] * u_own[i] * input;
          if (i > 0) own[i] = then(own[i - 1], own[i]);
        }

        // What all steps up to this thread's last do, within the simdgroup.
        Step all = own[ITEMS - 1];
        SCAN_STAGE(all, 1)
        SCAN_STAGE(all, 2)
        SCAN_STAGE(all, 4)
        SCAN_STAGE(all, 8)
        SCAN_STAGE(all, 16)
        if (lane == 31) totals[simd] = all;

        Step before;
        before.factor = simd_shuffle_up(all.factor, 1);
        before.value = simd_shuffle_up(all.value, 1);
        if (lane == 0) before = identity();
        threadgroup_barrier(mem_flags::mem_threadgroup);

        // The simdgroups before this one. There are few: each thread goes through them itself.
        Step earlier = identity();
        for (uint s = 0; s < simd; ++s) earlier = then(earlier, totals[s]);
        earlier = then(earlier, before);
        const float start = earlier.factor * carried[n] + earlier.value;

        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
          const float state = own[i].factor * start + own[i].value;
          const float output = begin + i < length ? c_rows[n * length + begin + i] : 0.0f;
          out[i] += state * output;
          // Steps behind the end keep the state, so the last thread's is that of the end.
          if (i == ITEMS - 1 && tid == THREADS - 1 && first + CHUNK >= length)
            last_state[(batch * channels + channel) * STATES + n] = state;
        }
        // All have read what was carried and the totals, before they are written again.
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (tid == THREADS - 1) carried[n] = own[ITEMS - 1].factor * start + own[ITEMS - 1].value;
      }

      #pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        if (begin + i >= length) break;
        const float gate = z_row[begin + i];
        y_row[begin + i] = out[i] * gate / (1.0f + metal::precise::exp(-gate));
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    """,
    header="""
#define LOG2_E 1.44269504f

// state -> factor * state + value
struct Step {
  float factor;
  float value;
};

inline Step identity() {
  Step step;
  step.factor = 1.0f;
  step.value = 0.0f;
  return step;
}

inline Step then(Step first, Step second) {
  Step both;
  both.factor = first.factor * second.factor;
  both.value = second.factor * first.value + second.value;
  return both;
}

#define SCAN_STAGE(step, distance)                               \\
  {                                                              \\
    Step lower;                                                  \\
    lower.factor = simd_shuffle_up((step).factor, distance);     \\
    lower.value = simd_shuffle_up((step).value, distance);       \\
    if (lane >= (distance)) step = then(lower, step);            \\
  }

inline float softplus(float x) {
  return x > 20.0f ? x : metal::precise::log(1.0f + metal::precise::exp(x));
}
""",
    template=[("THREADS", 64), ("ITEMS", 2), ("STATES", 4)],
    inputs=lambda rng: {
        "u": rng.uniform(0.5, 1.5, (1, 6, 300)).astype(np.float32),
        "delta": rng.normal(size=(1, 6, 300)).astype(np.float32),
        "a_matrix": -rng.uniform(0.1, 2, (6, 4)).astype(np.float32),
        "b": rng.uniform(0.1, 1, (1, 2, 4, 300)).astype(np.float32),
        "c": rng.uniform(0.1, 1, (1, 2, 4, 300)).astype(np.float32),
        "skip": rng.uniform(0, 1, 6).astype(np.float32),
        "z": rng.uniform(0.5, 3, (1, 6, 300)).astype(np.float32),
        "delta_bias": rng.uniform(-2, -1, 6).astype(np.float32),
    },
    outputs={"y": ((1, 6, 300), "float32"), "last_state": ((1, 6, 4), "float32")},
    grid=(64, 6, 1),
    threadgroup=(64, 1, 1),
    tolerance=4e-6,
    constructs="barriers.nested_loop simdgroup.shuffle_up address_spaces.threadgroup_struct functions.exp2 "
    "structure.multi_line_macro_in_header structure.struct barriers.private_arrays_across structure.pragma_unroll",
)
def selective_scan_by_blocks(u, delta, a_matrix, b, c, skip, z, delta_bias):
    u, delta, a_matrix, b, c, skip, z = (v.astype(np.float64) for v in (u, delta, a_matrix, b, c, skip, z))
    y, last = np.zeros((1, 6, 300)), np.zeros((1, 6, 4))
    for group in range(2):
        own = slice(3 * group, 3 * group + 3)
        steps = _softplus(delta[0, own] + delta_bias[own, None])
        out, last[0, own] = _sequential_scan(
            u[0, own].T, steps.T, a_matrix[own], b[0, group].T, c[0, group].T, np.zeros((3, 4))
        )
        y[0, own] = (out.T + skip[own, None] * u[0, own]) * _silu(z[0, own])
    return y, last


@body(
    """
    // A lane for each pair of a channel and a state; eight states, so four channels for each simdgroup. States are kept for
    // the way back. What channels have in common is added up by atomics, of two simdgroups: the order of two summands is no matter.
    constexpr uint N = 8;
    const uint channels = x_shape[1];
    const uint i = thread_position_in_grid.x;
    const uint channel = i / N, n = i % N;
    const int steps = x_shape[0];
    device float* saved = states + i;          // of step t: saved[t * channels * N]
    const uint stride = channels * N;

    const float rate = a[i];
    float state = 0;
    for (int t = 0; t < steps; ++t) {
      const float dt = delta[t * channels + channel];
      state = metal::precise::exp(dt * rate) * state + dt * b[t * N + n] * x[t * channels + channel];
      saved[t * stride] = state;
    }

    float grad = 0, grad_rate = 0;
    for (int t = steps - 1; t >= 0; --t) {
      const uint at = t * channels + channel;
      const float dt = delta[at], in = x[at], out = dy[at];
      const float factor = metal::precise::exp(dt * rate);
      const float before = t > 0 ? saved[(t - 1) * stride] : 0.0f;

      grad += out * c[t * N + n];
      // Sums over the channels of the simdgroup first: few atomics are left.
      float for_c = out * saved[t * stride], for_b = grad * dt * in;
      for (ushort mask = N; mask < 32; mask <<= 1) {
        for_c += simd_shuffle_xor(for_c, mask);
        for_b += simd_shuffle_xor(for_b, mask);
      }
      if (thread_index_in_simdgroup < N) {
        atomic_fetch_add_explicit((device atomic_float*)dc + t * N + n, for_c, memory_order_relaxed);
        atomic_fetch_add_explicit((device atomic_float*)db + t * N + n, for_b, memory_order_relaxed);
      }

      // Sums over the eight states of the channel.
      float for_x = grad * dt * b[t * N + n];
      float for_delta = grad * (rate * factor * before + b[t * N + n] * in);
      for (ushort mask = 1; mask < N; mask <<= 1) {
        for_x += simd_shuffle_xor(for_x, mask);
        for_delta += simd_shuffle_xor(for_delta, mask);
      }
      if (n == 0) {
        dx[at] = for_x;
        ddelta[at] = for_delta;
      }
      grad_rate += grad * dt * factor * before;
      grad *= factor;
    }
    da[i] = grad_rate;
    """,
    inputs=lambda rng: {
        "x": rng.uniform(1, 2, (5, 8)).astype(np.float32),
        "delta": rng.uniform(0.1, 0.3, (5, 8)).astype(np.float32),
        "a": -rng.uniform(0.1, 0.5, (8, 8)).astype(np.float32),
        "b": rng.uniform(0.5, 1, (5, 8)).astype(np.float32),
        "c": rng.uniform(0.5, 1, (5, 8)).astype(np.float32),
        "dy": rng.uniform(0.5, 1, (5, 8)).astype(np.float32),
    },
    outputs={
        "dx": ((5, 8), "float32"),
        "ddelta": ((5, 8), "float32"),
        "da": ((8, 8), "float32"),
        "db": ((5, 8), "float32"),
        "dc": ((5, 8), "float32"),
        "states": ((5, 8, 8), "float32"),
    },
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    init_value=0,
    tolerance=3e-6,
    constructs="synchronisation.fetch_add address_spaces.cast_to_atomic types.atomic_float simdgroup.shuffle_xor "
    "launch.init_value",
)
def selective_scan_gradient(x, delta, a, b, c, dy):
    """By derivatives along the imaginary axis, of all inputs at once."""
    arrays = [value.astype(np.float64) for value in (x, delta, a, b, c)]
    count = sum(value.size for value in arrays)
    moved, first = [], 0
    for value in arrays:
        step = np.zeros((count, value.size), complex)
        step[np.arange(first, first + value.size), np.arange(value.size)] = 1e-40j
        moved.append(value + step.reshape(count, *value.shape))
        first += value.size
    mx, md, ma, mb, mc = moved
    state, loss, states = np.zeros((count, 8, 8), complex), np.zeros(count, complex), []
    for t in range(5):
        dt = md[:, t, :, None]
        state = np.exp(dt * ma) * state + dt * mx[:, t, :, None] * mb[:, t, None]
        states.append(state[0].real)
        loss += ((state * mc[:, t, None]).sum(-1) * dy[t]).sum(-1)
    slopes = np.split(loss.imag / 1e-40, np.cumsum([value.size for value in arrays])[:-1])
    return *(slope.reshape(value.shape) for slope, value in zip(slopes, arrays, strict=True)), np.array(states)


# ---- State-space duality (the second generation: a scalar decay for each head)


@body(
    """
    // One token. Threads along the state, which has a multiple of four elements; rows of a head along y.
    const uint lane = thread_index_in_simdgroup;
    const uint p = thread_position_in_grid.y;                    // within the head
    const uint head = thread_position_in_grid.z % H, batch = thread_position_in_grid.z / H;
    const uint group = head / (H / G);

    const float raw = float(dt[batch * H + head]) + dt_bias[head];
    float step = max(raw, 0.0f) + metal::precise::log(1.0f + metal::precise::exp(-fabs(raw)));
    step = clamp(step, limits[0], limits[1]);
    const float decay = metal::precise::exp(-metal::precise::exp(a_log[head]) * step);

    const float in = float(x[(batch * H + head) * P + p]);
    const uint row = ((batch * H + head) * P + p) * N;
    const auto b_row = reinterpret_cast<const device vec<T, 4>*>(b + (batch * G + group) * N);
    const auto c_row = reinterpret_cast<const device vec<T, 4>*>(c + (batch * G + group) * N);
    const auto old_row = reinterpret_cast<const device float4*>(state + row);
    auto new_row = reinterpret_cast<device float4*>(new_state + row);

    float sum = 0;
    for (uint j = lane; j < N / 4; j += 32) {
      const float4 next = old_row[j] * decay + float4(b_row[j]) * (step * in);
      new_row[j] = next;
      sum += dot(next, float4(c_row[j]));
    }
    sum = simd_sum(sum);
    if (lane == 0) y[(batch * H + head) * P + p] = T(sum + d_skip[head] * in);
    """,
    template=[("T", Dtype("bfloat16")), ("H", 4), ("G", 2), ("P", 6), ("N", 144)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1.5, (2, 4, 6)).astype(DTYPES["bfloat16"]),
        "dt": rng.normal(size=(2, 4)).astype(DTYPES["bfloat16"]),
        "a_log": rng.uniform(-1, 1, 4).astype(np.float32),
        "b": rng.uniform(0, 1, (2, 2, 144)).astype(DTYPES["bfloat16"]),
        "c": rng.uniform(0, 1, (2, 2, 144)).astype(DTYPES["bfloat16"]),
        "d_skip": rng.uniform(0, 1, 4).astype(np.float32),
        "dt_bias": rng.uniform(-3, -1, 4).astype(np.float32),
        "limits": np.array([0.0625, 0.5], np.float32),
        "state": rng.uniform(0, 1, (2, 4, 6, 144)).astype(np.float32),
    },
    outputs={"y": ((2, 4, 6), "bfloat16"), "new_state": ((2, 4, 6, 144), "float32")},
    grid=(32, 6, 8),
    threadgroup=(32, 8, 1),
    tolerance=2**-8,
    constructs="structure.reinterpret_cast types.vec types.bfloat4 functions.clamp functions.fabs functions.dot "
    "layouts.few_elements",
)
def state_space_step(x, dt, a_log, b, c, d_skip, dt_bias, limits, state):
    x, dt, a_log, b, c, d_skip, state = (v.astype(np.float64) for v in (x, dt, a_log, b, c, d_skip, state))
    step = np.clip(_softplus(dt + dt_bias), *limits.astype(np.float64))
    decay = np.exp(-np.exp(a_log) * step)
    b, c = np.repeat(b, 2, axis=1), np.repeat(c, 2, axis=1)
    new = state * decay[..., None, None] + (x * step[..., None])[..., None] * b[:, :, None]
    return (new * c[:, :, None]).sum(-1) + d_skip[:, None] * x, new


@body(
    """
    // All of a head's sequence in one threadgroup, Q steps at a time:
    //   y_i = sum_{j <= i} (c_i . b_j) exp(l_i - l_j) dt_j x_j + exp(l_i) c_i . S,  S' = exp(l_Q) S + sum_j exp(l_Q - l_j) ...
    // with l the running sum of dt * a within the chunk. A change of the sequence index (packed documents) cuts the decay
    // off: l then falls by so much that the exponential is next to nothing.
    //
    // Keys (b) and queries (c) are those of all heads, in half; a head has P channels. Nothing but the running sums is kept
    // from one step of the loop to the next in registers, so that a chunk may be as long as threadgroup memory allows.
    threadgroup half b_tile[Q][N];
    threadgroup half c_tile[Q][N];
    threadgroup float x_tile[Q][P];          // times dt
    threadgroup float mixing[Q][Q];
    threadgroup float running[Q];
    threadgroup float state[N][P];
    threadgroup float partial[THREADS / 32];

    const ushort tid = thread_index_in_threadgroup;
    const ushort lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint head = threadgroup_position_in_grid.x, batch = threadgroup_position_in_grid.y;
    const uint heads = threadgroups_per_grid.x;
    const int length = x_shape[1];
    const float a = a_per_head[head];

    ZERO_TILE(state, N, P)

    int last_document = documents[batch * length];
    for (int first = 0; first < length; first += Q) {
      const int steps = min(Q, length - first);
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- Loads
      for (ushort i = tid; i < Q * N; i += THREADS) {
        const ushort t = i / N, n = i % N;
        const bool inside = t < steps;
        const uint at = (batch * length + first + t) * N + n;
        b_tile[t][n] = inside ? b[at] : half(0);
        c_tile[t][n] = inside ? c[at] : half(0);
      }
      for (ushort i = tid; i < Q * P; i += THREADS) {
        const ushort t = i / P, p = i % P;
        const uint at = (batch * length + first + t) * heads + head;
        x_tile[t][p] = t < steps ? dt[at] * float(x[at * P + p]) : 0.0f;
      }

      // ---- Running sums of the logarithms: Q is THREADS, a step for each thread.
      float log_decay = 0;
      if (tid < steps) {
        const int token = batch * length + first + tid;
        log_decay = dt[token * heads + head] * a;
        const int previous = tid == 0 ? last_document : documents[token - 1];
        if (documents[token] != previous) log_decay = CUT;
      }
      float scanned = simd_prefix_inclusive_sum(log_decay);
      if (lane == 31) partial[simd] = scanned;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (ushort s = 0; s < simd; ++s) scanned += partial[s];
      running[tid] = scanned;
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- How steps of the chunk see one another
      for (ushort i = tid; i < Q * Q; i += THREADS) {
        const ushort row = i / Q, column = i % Q;
        float sum = 0;
        if (row >= column) {
          for (ushort n = 0; n < N; n += 4) {
            const half4 left = *(threadgroup const half4*)&c_tile[row][n];
            const half4 right = *(threadgroup const half4*)&b_tile[column][n];
            sum += dot(float4(left), float4(right));
          }
          // Differences of large sums would lose digits where a document ends: within one document nothing was cut.
          sum *= running[row] - running[column] < CUT / 2 ? 0.0f : decay_between(running[column], running[row]);
        }
        mixing[row][column] = sum;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- Outputs
      for (ushort i = tid; i < steps * P; i += THREADS) {
        const ushort t = i / P, p = i % P;
        float within = 0, before = 0;
        for (ushort j = 0; j <= t; ++j) within += mixing[t][j] * x_tile[j][p];
        for (ushort n = 0; n < N; ++n) before += float(c_tile[t][n]) * state[n][p];
        const uint at = ((batch * length + first + t) * heads + head) * P + p;
        y[at] = within + decay_between(0.0f, running[t]) * before + d[head] * float(x[at]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- The state behind the chunk
      const float end = running[Q - 1];
      for (ushort i = tid; i < N * P; i += THREADS) {
        const ushort n = i / P, p = i % P;
        float sum = decay_between(0.0f, end) * state[n][p];
        for (short t = 0; t < steps; ++t)
          sum += decay_between(running[t], end) * float(b_tile[t][n]) * x_tile[t][p];
        state[n][p] = sum;
      }
      last_document = documents[batch * length + first + steps - 1];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort i = tid; i < N * P; i += THREADS)
      last_state[(batch * heads + head) * N * P + i] = state[i / P][i % P];
    """,
    header="""
constant constexpr float CUT = -100.0f;

#define ZERO_TILE(tile, rows, columns) \\
  for (ushort i = tid; i < (rows) * (columns); i += THREADS) tile[i / (columns)][i % (columns)] = 0;

METAL_FUNC float decay_between(float from, float to) {
  return metal::precise::exp(to - from);
}
""",
    template=[("Q", 64), ("THREADS", 64), ("N", 16), ("P", 8)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1.5, (2, 150, 3, 8)).astype(np.float16),
        "dt": rng.uniform(0.05, 0.2, (2, 150, 3)).astype(np.float32),
        "a_per_head": np.array([-0.25, -0.5, -1], np.float32),
        "b": rng.uniform(0, 1, (2, 150, 16)).astype(np.float16),
        "c": rng.uniform(0, 1, (2, 150, 16)).astype(np.float16),
        "d": np.array([0.5, 0, 1], np.float32),
        "documents": np.array([[0] * 150, [0] * 20 + [1] * 44 + [2] * 60 + [3] * 26], np.int32),
    },
    outputs={"y": ((2, 150, 3, 8), "float32"), "last_state": ((2, 3, 16, 8), "float32")},
    grid=(3 * 64, 2, 1),
    threadgroup=(64, 1, 1),
    # Running sums behind a cut are in the hundreds.
    tolerance=4e-5,
    constructs="address_spaces.threadgroup_2d_array address_spaces.threadgroup_small_array barriers.scan "
    "barriers.run_time_trip_count structure.multi_line_macro_in_header simdgroup.prefix_inclusive_sum functions.exp",
)
def state_space_duality_by_chunks(x, dt, a_per_head, b, c, d, documents):
    x, dt, a_per_head, b, c, d = (v.astype(np.float64) for v in (x, dt, a_per_head, b, c, d))
    y, state = np.zeros((2, 150, 3, 8)), np.zeros((2, 3, 16, 8))
    for t in range(150):
        for i in range(2):
            goes_on = t == 0 or documents[i, t] == documents[i, t - 1]
            decay = np.exp(dt[i, t] * a_per_head) * goes_on
            into = np.einsum("n,hp->hnp", b[i, t], dt[i, t][:, None] * x[i, t])
            state[i] = decay[:, None, None] * state[i] + into
            y[i, t] = np.einsum("n,hnp->hp", c[i, t], state[i]) + d[:, None] * x[i, t]
    return y, state


# ---- The short convolution


@body(
    """
    // Channels run fastest. The state is the last K - 1 inputs of each sequence; a step may bring several tokens.
    const uint channel = thread_position_in_grid.x, batch = thread_position_in_grid.y;
    const uint channels = x_shape[2];
    const int tokens = x_shape[1];
    if (channel >= channels) return;

    float window[K];
    #pragma unroll
    for (int j = 0; j < K - 1; ++j) window[j] = conv_state[(batch * (K - 1) + j) * channels + channel];
    float taps[K];
    #pragma unroll
    for (int j = 0; j < K; ++j) taps[j] = weight[channel * K + j];

    for (int t = 0; t < tokens; ++t) {
      window[K - 1] = x[(batch * tokens + t) * channels + channel];
      float sum = HAS_BIAS ? float(bias[channel]) : 0.0f;
      #pragma unroll
      for (int j = 0; j < K; ++j) sum = fma(window[j], taps[j], sum);
      #if SILU
      sum = sum / (1.0f + metal::precise::exp(-sum));
      #endif
      out[(batch * tokens + t) * channels + channel] = half(sum);
      #pragma unroll
      for (int j = 0; j < K - 1; ++j) window[j] = window[j + 1];
    }
    #pragma unroll
    for (int j = 0; j < K - 1; ++j) new_state[(batch * (K - 1) + j) * channels + channel] = half(window[j]);
    """,
    header="#define SILU 1\n",
    template=[("K", 4), ("HAS_BIAS", True)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1, (3, 5, 70)).astype(np.float16),
        "conv_state": rng.uniform(0.5, 1, (3, 3, 70)).astype(np.float16),
        "weight": rng.uniform(0.1, 1, (70, 4)).astype(np.float16),
        "bias": rng.uniform(0, 1, 70).astype(np.float16),
    },
    outputs={"out": ((3, 5, 70), "float16"), "new_state": ((3, 3, 70), "float16")},
    grid=(96, 3, 1),
    threadgroup=(32, 3, 1),
    tolerance=2**-10,
    constructs="structure.conditional_macro structure.pragma_unroll functions.fma structure.early_return",
)
def short_convolution_with_state(x, conv_state, weight, bias):
    history = np.concatenate([conv_state, x], axis=1)
    total = np.zeros((3, 5, 70))
    for j in range(4):
        total += history[:, j : j + 5].astype(np.float64) * weight[:, j]
    return _silu(total + bias), history[:, -3:]


@body(
    """
    // Packed sequences: each token looks back only within its own, and at its sequence's state for what came before.
    // A threadgroup has 32 tokens of 8 channels, with the tokens that they look back at.
    constexpr int BACK = WIDTH - 1;
    threadgroup float tile[32 + BACK][8];
    threadgroup int owners[32 + BACK];
    const int total = x_shape[0], channels = x_shape[1];
    const int first = int(threadgroup_position_in_grid.y) * 32;
    const uint2 t = thread_position_in_threadgroup.xy;
    const uint linear = thread_index_in_threadgroup, count = threads_per_threadgroup.x * threads_per_threadgroup.y;
    const int channel_0 = threadgroup_position_in_grid.x * 8;

    for (uint i = linear; i < (32 + BACK) * 8; i += count) {
      const int token = first - BACK + int(i / 8), channel = channel_0 + int(i % 8);
      tile[i / 8][i % 8] = token >= 0 && token < total && channel < channels ? x[token * channels + channel] : 0.0f;
    }
    for (uint i = linear; i < 32 + BACK; i += count) {
      const int token = first - BACK + int(i);
      // The sequence by bisection of the starts.
      int low = 0, high = starts_shape[0] - 1;
      while (high - low > 1) {
        const int middle = (low + high) >> 1;
        (token >= starts[middle] ? low : high) = middle;
      }
      owners[i] = token < 0 ? -1 : low;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const int token = first + int(t.y), channel = channel_0 + int(t.x);
    if (token >= total || channel >= channels) return;
    const int owner = owners[t.y + BACK];
    float sum = 0;
    for (int j = 0; j <= BACK; ++j) {
      const int row = int(t.y) + j;
      float value;
      if (owners[row] == owner) {
        value = tile[row][t.x];
      } else {
        const int from_end = starts[owner] - (first - BACK + row);    // 1 is the newest of the state
        value = had_state[owner] ? states[(owner * BACK + BACK - from_end) * channels + channel] : 0.0f;
      }
      sum += value * weight[j * channels + channel];
    }
    y[token * channels + channel] = sum;
    """,
    template=[("WIDTH", 4)],
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (75, 13)).astype(np.float32),
        "weight": rng.integers(-9, 9, (4, 13)).astype(np.float32),
        "starts": np.array([0, 2, 30, 33, 34, 75], np.int32),
        "states": rng.integers(-9, 9, (5, 3, 13)).astype(np.float32),
        "had_state": np.array([True, False, True, True, False]),
    },
    outputs={"y": ((75, 13), "float32")},
    grid=(16, 96, 1),
    threadgroup=(8, 32, 1),
    constructs="address_spaces.threadgroup_2d_array attributes.threads_per_threadgroup structure.while "
    "structure.early_return address_spaces.device_pointer_arithmetic",
)
def short_convolution_of_packed_sequences(x, weight, starts, states, had_state):
    y = np.zeros((75, 13), np.float32)
    for s in range(5):
        part = slice(starts[s], starts[s + 1])
        history = np.concatenate([states[s] * np.float32(had_state[s]), x[part]])
        for j in range(4):
            y[part] += history[j : j + len(history) - 3] * weight[j]
    return y + 0


# ---- Diagonal and complex


@body(
    """
    // y_t = Re(sum_n c_n h_n(t)), h(t) = exp(step a) h(t - 1) + b x(t), with complex states: pairs are conjugate, so half of
    // them are kept and the real part counts twice. Each lane has two states of a channel.
    const uint channel = thread_position_in_grid.y, lane = thread_index_in_simdgroup;
    const int steps = x_shape[1], states = a_shape[1];
    const float step = metal::precise::exp(log_step[channel]);
    complex64_t h[2] = {{0, 0}, {0, 0}}, factor[2], input[2], output[2];
    for (int j = 0; j < 2; ++j) {
      const int n = lane + 32 * j;
      const bool inside = n < states;
      const complex64_t pole = a[channel * states + n];
      const float size = metal::precise::exp(step * pole.real);
      float c;
      const float s = sincos(step * pole.imag, c);
      factor[j] = {size * c, size * s};
      // The exact discretisation: (exp(step a) - 1) / a.
      input[j] = (factor[j] - complex64_t(1.0f, 0.0f)) / (inside ? pole : complex64_t(1.0f, 0.0f));
      output[j] = inside ? cs[channel * states + n] : complex64_t(0.0f, 0.0f);
    }
    for (int t = 0; t < steps; ++t) {
      const complex64_t in = {x[channel * steps + t], 0.0f};
      float sum = 0;
      for (int j = 0; j < 2; ++j) {
        h[j] = factor[j] * h[j] + input[j] * in;
        sum += (output[j] * h[j]).real;
      }
      sum = 2.0f * simd_sum(sum);
      if (lane == 0) y[channel * steps + t] = sum + skip[channel] * in.real;
    }
    """,
    inputs=lambda rng: {
        "x": rng.uniform(1, 2, (5, 20)).astype(np.float32),
        "a": (-rng.uniform(0.5, 1, (5, 40)) + 1j * rng.uniform(0.1, 2, (5, 40))).astype(np.complex64),
        "cs": (rng.uniform(1, 2, (5, 40)) + 0.1j * rng.normal(size=(5, 40))).astype(np.complex64),
        "log_step": rng.uniform(-4, -3, 5).astype(np.float32),
        "skip": rng.uniform(0, 1, 5).astype(np.float32),
    },
    outputs={"y": ((5, 20), "float32")},
    grid=(32, 5, 1),
    threadgroup=(32, 5, 1),
    # exp(step a) - 1 loses the digits that a step of 0.02 shifts away.
    tolerance=2e-5,
    constructs="types.complex64_t functions.sincos structure.dynamic_local_array simdgroup.sum",
)
def diagonal_state_space(x, a, cs, log_step, skip):
    a, cs = a.astype(complex), cs.astype(complex)
    factor = np.exp(np.exp(log_step.astype(np.float64))[:, None] * a)
    y, h = np.zeros((5, 20)), np.zeros((5, 40), complex)
    for t in range(20):
        h = factor * h + (factor - 1) / a * x[:, t, None]
        y[:, t] = 2 * (cs * h).real.sum(1) + skip * x[:, t]
    return y
