"""Recurrent cells: RWKV of three generations, gated units, xLSTM. Beside them: normalisation by rows and columns in turn,
and connections over several streams."""

import numpy as np

from bodies import DTYPES, Dtype, body


def _wide(*arrays):
    return tuple(np.asarray(a).astype(np.float64) for a in arrays)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- RWKV


@body(
    """
    // The fourth generation: a weighted mean of the values, of exponentials that are kept below one.
    uint i = thread_position_in_grid.x;
    uint c = i % C, b = i / C;
    if (b >= B) return;
    const float decay = -metal::precise::exp(w[c]);
    const float bonus = u[c];
    float numerator = state[(b * 3 + 0) * C + c];
    float denominator = state[(b * 3 + 1) * C + c];
    float largest = state[(b * 3 + 2) * C + c];

    for (uint t = 0; t < L; ++t) {
        const uint at = (b * L + t) * C + c;
        const float kt = float(k[at]), vt = float(v[at]);
        {
            const float top = max(largest, bonus + kt);
            const float old = metal::precise::exp(largest - top), now = metal::precise::exp(bonus + kt - top);
            y[at] = (old * numerator + now * vt) / (old * denominator + now);
        }
        {
            const float top = max(largest + decay, kt);
            const float old = metal::precise::exp(largest + decay - top), now = metal::precise::exp(kt - top);
            numerator = old * numerator + now * vt;
            denominator = old * denominator + now;
            largest = top;
        }
    }
    state_out[(b * 3 + 0) * C + c] = numerator;
    state_out[(b * 3 + 1) * C + c] = denominator;
    state_out[(b * 3 + 2) * C + c] = largest;
    """,
    template=[("B", 3), ("L", 14), ("C", 40)],
    inputs=lambda rng: {
        "w": rng.uniform(-2, 0, 40).astype(np.float32),
        "u": rng.normal(size=40).astype(np.float32),
        "k": (3 * rng.normal(size=(3, 14, 40))).astype(np.float16),
        "v": rng.uniform(1, 2, (3, 14, 40)).astype(np.float16),
        # Nothing was seen yet in the first sequence.
        "state": np.concatenate(
            [
                np.tile(np.array([0, 0, -1e38], np.float32)[None, :, None], (1, 1, 40)),
                rng.uniform(1, 2, (2, 3, 40)).astype(np.float32),
            ]
        ),
    },
    outputs={"y": ((3, 14, 40), "float32"), "state_out": ((3, 3, 40), "float32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-6,
    constructs="functions.exp functions.max structure.early_return structure.template_arguments",
)
def wkv4(w, u, k, v, state):
    w, u, k, v, state = _wide(w, u, k, v, state)
    numerator, denominator, top = state[:, 0], state[:, 1], state[:, 2]
    total, count = numerator * np.exp(top), denominator * np.exp(top)
    decay = np.exp(-np.exp(w))
    y, largest = [], top
    for t in range(14):
        now = np.exp(u + k[:, t])
        y.append((total + now * v[:, t]) / (count + now))
        total, count = decay * total + np.exp(k[:, t]) * v[:, t], decay * count + np.exp(k[:, t])
        largest = np.maximum(largest - np.exp(w), k[:, t])
    return np.stack(y, axis=1), np.stack([total * np.exp(-largest), count * np.exp(-largest), largest], axis=1)


@body(
    """
    // The sixth: a matrix for each head, whose rows decay as the data say. A thread has a column of it.
    threadgroup float r_now[HEAD], k_now[HEAD], u_now[HEAD], w_now[HEAD];
    const uint j = thread_index_in_threadgroup;
    const uint head = threadgroup_position_in_grid.x % H, batch = threadgroup_position_in_grid.x / H;
    float4 state[HEAD / 4];

    const device float* initial = state_in + (batch * H + head) * HEAD * HEAD + j * HEAD;
    #pragma unroll
    for (uint i = 0; i < HEAD / 4; ++i) state[i] = ((const device float4*)initial)[i];

    threadgroup_barrier(mem_flags::mem_threadgroup);
    u_now[j] = u[head * HEAD + j];

    for (uint t = 0; t < STEPS; ++t) {
      const uint at = ((batch * STEPS + t) * H + head) * HEAD + j;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      r_now[j] = float(r[at]);
      k_now[j] = float(k[at]);
      w_now[j] = metal::precise::exp(-metal::precise::exp(float(w[at])));
      threadgroup_barrier(mem_flags::mem_threadgroup);

      const float value = float(v[at]);
      float sum = 0;
      #pragma unroll
      for (uint i = 0; i < HEAD / 4; ++i) {
        const float4 rr = ((threadgroup float4*)r_now)[i];
        const float4 kk = ((threadgroup float4*)k_now)[i];
        const float4 ww = ((threadgroup float4*)w_now)[i];
        const float4 uu = ((threadgroup float4*)u_now)[i];
        const float4 added = kk * value;
        const float4 seen = fma(uu, added, state[i]);
        sum += dot(rr, seen);
        state[i] = fma(state[i], ww, added);
      }
      y[at] = static_cast<T>(sum);
    }

    device float4* last = (device float4*)(state_out + (batch * H + head) * HEAD * HEAD + j * HEAD);
    #pragma unroll
    for (uint i = 0; i < HEAD / 4; ++i) last[i] = state[i];
    """,
    template=[("T", Dtype("bfloat16")), ("H", 2), ("HEAD", 32), ("STEPS", 10)],
    inputs=lambda rng: {
        **{name: rng.uniform(0, 1, (2, 10, 2, 32)).astype(DTYPES["bfloat16"]) for name in ("r", "k", "v")},
        "w": rng.uniform(-3, 0, (2, 10, 2, 32)).astype(DTYPES["bfloat16"]),
        "u": rng.uniform(0, 1, (2, 32)).astype(np.float32),
        "state_in": rng.uniform(0, 1, (2, 2, 32, 32)).astype(np.float32),
    },
    outputs={"y": ((2, 10, 2, 32), "bfloat16"), "state_out": ((2, 2, 32, 32), "float32")},
    grid=(4 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=2**-8,
    constructs="barriers.in_loop barriers.private_arrays_across address_spaces.cast_to_vector functions.dot functions.fma "
    "structure.pragma_unroll",
)
def wkv6(r, k, v, w, u, state_in):
    r, k, v, w, u, state = _wide(r, k, v, w, u, state_in)
    y = []
    for t in range(10):
        added = v[:, t, :, :, None] * k[:, t, :, None, :]  # [batch, head, value, key]
        y.append(((state + u[:, None, :] * added) * r[:, t, :, None, :]).sum(-1))
        state = state * np.exp(-np.exp(w[:, t, :, None, :])) + added
    return np.stack(y, axis=1), state


@body(
    """
    // The gradient of the sixth generation by r, k, v, w (the decay itself, not its logarithm) and u, from a zero state.
    // Two passes: forward for r, which needs the states in their order; back for the others, which need what comes later.
    // A thread of the first pass has a row (a key), one of the second pass too; values go through threadgroup memory.
    threadgroup float v_now[HEAD], dy_now[HEAD];
    threadgroup float shared[HEAD][HEAD + 1];
    const ushort i = thread_index_in_threadgroup;
    const uint head = threadgroup_position_in_grid.x, batch = threadgroup_position_in_grid.y;
    const uint heads = threadgroups_per_grid.x;
    const int steps = r_shape[1];
    #define AT(t) (((batch * steps + (t)) * heads + head) * HEAD + i)

    float state[HEAD];
    for (ushort j = 0; j < HEAD; ++j) state[j] = 0;
    const float bonus = u[head * HEAD + i];

    // dr_i(t) = sum_j (S_ij + u_i k_i v_j) dy_j; and what dw needs of S: it is kept in `states`.
    for (int t = 0; t < steps; ++t) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      v_now[i] = v[AT(t)];
      dy_now[i] = dy[AT(t)];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const float key = k[AT(t)], decay = w[AT(t)];
      float from_state = 0, together = 0;
      device float* saved = states + AT(t) * HEAD;
      for (ushort j = 0; j < HEAD; ++j) {
        saved[j] = state[j];
        from_state += state[j] * dy_now[j];
        together += v_now[j] * dy_now[j];
        state[j] = state[j] * decay + key * v_now[j];
      }
      dr[AT(t)] = from_state + bonus * key * together;
    }

    // Back: G_ij is the gradient by the state behind step t.
    float grad[HEAD];
    for (ushort j = 0; j < HEAD; ++j) grad[j] = 0;
    float du_own = 0;
    for (int t = steps - 1; t >= 0; --t) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      v_now[i] = v[AT(t)];
      dy_now[i] = dy[AT(t)];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const float receive = r[AT(t)], key = k[AT(t)], decay = w[AT(t)];
      const device float* saved = states + AT(t) * HEAD;
      float dk_own = 0, dw_own = 0, together = 0;
      for (ushort j = 0; j < HEAD; ++j) {
        together += v_now[j] * dy_now[j];
        dk_own += grad[j] * v_now[j];
        dw_own += grad[j] * saved[j];
        // By the value j this row gives: the columns are added up below.
        shared[i][j] = key * (grad[j] + bonus * receive * dy_now[j]);
        grad[j] = grad[j] * decay + receive * dy_now[j];
      }
      dk[AT(t)] = dk_own + bonus * receive * together;
      dw[AT(t)] = dw_own;
      du_own += receive * key * together;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float dv_own = 0;
      for (ushort row = 0; row < HEAD; ++row) dv_own += shared[row][i];
      dv[AT(t)] = dv_own;
    }
    du[(batch * heads + head) * HEAD + i] = du_own;
    """,
    template=[("HEAD", 16)],
    inputs=lambda rng: {
        **{name: rng.uniform(0.5, 1, (2, 6, 2, 16)).astype(np.float32) for name in ("r", "k", "v", "w", "dy")},
        "u": rng.uniform(0.5, 1, (2, 16)).astype(np.float32),
    },
    outputs={
        **{name: ((2, 6, 2, 16), "float32") for name in ("dr", "dk", "dv", "dw")},
        "du": ((2, 2, 16), "float32"),
        "states": ((2, 6, 2, 16, 16), "float32"),
    },
    grid=(32, 2, 1),
    threadgroup=(16, 1, 1),
    tolerance=1e-6,
    constructs="structure.define barriers.in_loop barriers.private_arrays_across address_spaces.threadgroup_2d_array "
    "barriers.transposition simdgroup.partial",
)
def wkv6_gradient(r, k, v, w, dy, u):
    """Every pair of an earlier and a later step by itself."""
    r, k, v, w, dy, u = _wide(r, k, v, w, dy, u)
    dr, dk, dv, dw = (np.zeros((2, 6, 2, 16)) for _ in range(4))
    states = np.zeros((2, 6, 2, 16, 16))
    together = np.einsum("btgj,btgj->btg", v, dy)[..., None]
    for later in range(6):
        for earlier in range(later):
            between = w[:, earlier + 1 : later].prod(axis=1)
            crossed = np.einsum("bgj,bgj->bg", v[:, earlier], dy[:, later])[..., None]
            dr[:, later] += between * k[:, earlier] * crossed
            dk[:, earlier] += between * r[:, later] * crossed
            weight = (between * r[:, later] * k[:, earlier]).sum(-1, keepdims=True)
            dv[:, earlier] += weight * dy[:, later]
            states[:, later] += (between * k[:, earlier])[..., None] * v[:, earlier, :, None]
            for step in range(earlier + 1, later):
                dw[:, step] += between / w[:, step] * r[:, later] * k[:, earlier] * crossed
    dr += u * k * together
    dk += u * r * together
    dv += (u * r * k).sum(-1, keepdims=True) * dy
    return dr, dk, dv, dw, (r * k * together).sum(axis=1), states


@body(
    """
    // The seventh: S = S (diag(w) + a b^T) + v k^T. Lanes along the keys, PER of them each; ROWS values for a simdgroup.
    const uint lane = thread_index_in_simdgroup;
    const uint row_0 = thread_position_in_grid.y * ROWS;
    const uint head = thread_position_in_grid.z % H, batch = thread_position_in_grid.z / H;
    float state[ROWS][PER];
    FOR_ROWS FOR_OWN state[row][i] = state_in[STATE_AT];

    for (int t = 0; t < steps; ++t) {
      const uint base = ((batch * steps + t) * H + head) * (32 * PER);
      float ri[PER], wi[PER], ki[PER], ai[PER], bi[PER];
      FOR_OWN {
        const uint at = base + lane * PER + i;
        ri[i] = r[at];
        wi[i] = metal::precise::exp(-0.606531f / (1.0f + metal::precise::exp(-float(w[at]))));
        ki[i] = k[at];
        ai[i] = a[at];
        bi[i] = b[at];
      }
      float along[ROWS], out[ROWS];
      FOR_ROWS {
        along[row] = 0;
        FOR_OWN along[row] = fma(state[row][i], ai[i], along[row]);
        along[row] = simd_sum(along[row]);
      }
      FOR_ROWS {
        const float value = v[base + row_0 + row];
        out[row] = 0;
        FOR_OWN {
          state[row][i] = state[row][i] * wi[i] + along[row] * bi[i] + value * ki[i];
          out[row] = fma(state[row][i], ri[i], out[row]);
        }
        out[row] = simd_sum(out[row]);
      }
      // A lane for each row that is written.
      FOR_ROWS if (lane == row) y[base + row_0 + row] = out[row];
    }
    FOR_ROWS FOR_OWN state_out[STATE_AT] = state[row][i];
    """,
    header="""
#define FOR_ROWS _Pragma("unroll") for (uint row = 0; row < ROWS; ++row)
#define FOR_OWN _Pragma("unroll") for (uint i = 0; i < PER; ++i)
#define STATE_AT ((batch * H + head) * 32 * PER + row_0 + row) * 32 * PER + lane * PER + i
""",
    template=[("H", 2), ("PER", 2), ("ROWS", 4)],
    inputs=lambda rng: {
        **{name: rng.uniform(0, 1, (1, 8, 2, 64)).astype(np.float32) for name in ("r", "k", "v")},
        "w": rng.normal(size=(1, 8, 2, 64)).astype(np.float32),
        "a": -rng.uniform(0, 0.1, (1, 8, 2, 64)).astype(np.float32),
        "b": rng.uniform(0, 0.05, (1, 8, 2, 64)).astype(np.float32),
        "state_in": rng.uniform(1, 2, (1, 2, 64, 64)).astype(np.float32),
        "steps": 8,
    },
    outputs={"y": ((1, 8, 2, 64), "float32"), "state_out": ((1, 2, 64, 64), "float32")},
    grid=(32, 16, 2),
    threadgroup=(32, 4, 1),
    tolerance=1e-5,
    constructs="structure.define_in_header structure._Pragma simdgroup.sum functions.fma layouts.python_number",
)
def wkv7(r, k, v, w, a, b, state_in, steps):
    r, k, v, w, a, b, state = _wide(r, k, v, w, a, b, state_in)
    y = np.zeros((1, 8, 2, 64))
    for t in range(steps):
        for h in range(2):
            decay = np.diag(np.exp(-0.606531 * _sigmoid(w[0, t, h])))
            change = decay + np.outer(a[0, t, h], b[0, t, h])
            state[0, h] = state[0, h] @ change + np.outer(v[0, t, h], k[0, t, h])
            y[0, t, h] = state[0, h] @ r[0, t, h]
    return y, state


# ---- Gated units


@body(
    """
    // h_t = (1 - z_t) h_{t - 1} + z_t g_t with all quantities positive, in logarithms: with a_t the running sum of
    // log(1 - z), log h_t = a_t + log(exp(log h_0) + sum_s exp(log(z_s g_s) - a_s)). Sums of exponentials are pairs of the
    // largest exponent and the sum relative to it, and are scanned over a row of the threadgroup.
    const uint lane = thread_index_in_simdgroup;
    const uint channel = thread_position_in_grid.y, channels = threads_per_grid.y;
    const int length = gate_shape[0];
    float decay_so_far = 0;
    LogSum all = {log_h0[channel], 1.0f};
    for (int first = 0; first < length; first += 32) {
      const int t = first + int(lane);
      const bool inside = t < length;
      const float logit = inside ? gate[t * channels + channel] : -INFINITY;
      const float candidate = inside ? log_candidate[t * channels + channel] : 0.0f;
      // log(1 - z) and log(z).
      const float log_keep = -log_one_plus_exp(logit), log_take = -log_one_plus_exp(-logit);
      const float decay = decay_so_far + simd_prefix_inclusive_sum(log_keep);
      LogSum own = {log_take + candidate - decay, inside ? 1.0f : 0.0f};
      for (ushort distance = 1; distance < 32; distance *= 2) {
        LogSum lower;
        lower.top = simd_shuffle_up(own.top, distance);
        lower.sum = simd_shuffle_up(own.sum, distance);
        if (lane >= distance) own += lower;
      }
      own += all;
      if (inside) log_h[t * channels + channel] = decay + own.top + metal::precise::log(own.sum);
      all.top = simd_broadcast(own.top, ushort(31));
      all.sum = simd_broadcast(own.sum, ushort(31));
      decay_so_far = simd_broadcast(decay, ushort(31));
    }
    """,
    header="""
struct LogSum {
  float top;
  float sum;
  thread LogSum& operator+=(LogSum other) thread {
    // Nothing is added where the other side is empty, whose exponent may be infinite.
    if (other.sum == 0) return *this;
    if (sum == 0) {
      *this = other;
      return *this;
    }
    const float most = metal::max(top, other.top);
    sum = sum * metal::precise::exp(top - most) + other.sum * metal::precise::exp(other.top - most);
    top = most;
    return *this;
  }
};

static float log_one_plus_exp(float x) {
  if (x == -INFINITY) return 0;
  return metal::max(x, 0.0f) + metal::precise::log(1 + metal::precise::exp(-metal::fabs(x)));
}
""",
    inputs=lambda rng: {
        "gate": rng.normal(size=(70, 5)).astype(np.float32),
        "log_candidate": rng.uniform(1, 3, (70, 5)).astype(np.float32),
        "log_h0": rng.uniform(1, 2, 5).astype(np.float32),
    },
    outputs={"log_h": ((70, 5), "float32")},
    grid=(32, 5, 1),
    threadgroup=(32, 5, 1),
    # The running sums grow to a hundred, which cancels.
    tolerance=5e-5,
    constructs="structure.operator structure.struct simdgroup.prefix_inclusive_sum simdgroup.broadcast "
    "simdgroup.shuffle_up types.INFINITY",
)
def minimal_gated_unit_in_logarithms(gate, log_candidate, log_h0):
    gate, log_candidate, log_h0 = _wide(gate, log_candidate, log_h0)
    h, out = np.exp(log_h0), []
    for t in range(70):
        z = _sigmoid(gate[t])
        h = (1 - z) * h + z * np.exp(log_candidate[t])
        out.append(np.log(h))
    return np.array(out)


# ---- xLSTM


@body(
    """
    // A scalar memory with exponential gates and a stabiliser; heads do not see one another's hidden state.
    threadgroup float hidden[UNITS];
    const uint unit = thread_position_in_threadgroup.x, head = unit / HEAD, within = unit % HEAD;
    const uint batch = threadgroup_position_in_grid.y;
    float c = 0, n = 0, m = 0, h = 0;
    for (int t = 0; t < steps; ++t) {
      hidden[unit] = h;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // Input, forget, cell, output: a float4 of pre-activations.
      float4 pre = ((device const float4*)x)[(batch * steps + t) * UNITS + unit];
      for (int j = 0; j < HEAD; ++j)
        pre += hidden[head * HEAD + j] * ((device const packed_float4*)recurrent)[(head * HEAD + within) * HEAD + j];
      threadgroup_barrier(mem_flags::mem_threadgroup);

      const float log_forget = -metal::precise::log(1 + metal::precise::exp(-pre.y));
      const float top = t == 0 ? pre.x : max(log_forget + m, pre.x);
      const float in = metal::precise::exp(pre.x - top);
      const float keep = t == 0 ? 0.0f : metal::precise::exp(log_forget + m - top);
      c = keep * c + in * metal::precise::tanh(pre.z);
      n = keep * n + in;
      m = top;
      h = c / n / (1 + metal::precise::exp(-pre.w));
      y[(batch * steps + t) * UNITS + unit] = h;
    }
    device float* end = state + (batch * UNITS + unit) * 3;
    *(device packed_float3*)end = packed_float3(c, n, m);
    """,
    template=[("UNITS", 32), ("HEAD", 8)],
    inputs=lambda rng: {
        "x": (rng.normal(size=(2, 6, 32, 4)) * np.array([2, 2, 0.2, 1]) + np.array([0, 0, 1, 0])).astype(np.float32),
        "recurrent": rng.uniform(0, 0.1, (4, 8, 8, 4)).astype(np.float32),
        "steps": 6,
    },
    outputs={"y": ((2, 6, 32), "float32"), "state": ((2, 32, 3), "float32")},
    grid=(32, 2, 1),
    threadgroup=(32, 1, 1),
    # The stabiliser may be near zero.
    tolerance=1e-5,
    constructs="types.packed_vectors types.float4 functions.tanh functions.log barriers.in_loop",
)
def scalar_lstm_with_exponential_gates(x, recurrent, steps):
    x, recurrent = _wide(x, recurrent)
    y, state = np.zeros((2, 6, 32)), np.zeros((2, 32, 3))
    c = n = h = np.zeros((2, 32))
    m = np.full((2, 32), -np.inf)
    for t in range(steps):
        pre = x[:, t] + np.einsum("hijg,bhj->bhig", recurrent, h.reshape(2, 4, 8)).reshape(2, 32, 4)
        log_forget = -np.logaddexp(0, -pre[..., 1])
        # Without a stabiliser.
        c = np.exp(log_forget) * c + np.exp(pre[..., 0]) * np.tanh(pre[..., 2])
        n = np.exp(log_forget) * n + np.exp(pre[..., 0])
        m = np.maximum(log_forget + m, pre[..., 0])
        h = c / n * _sigmoid(pre[..., 3])
        y[:, t] = h
    state[:] = np.stack([c * np.exp(-m), n * np.exp(-m), m], axis=-1)
    return y, state


@body(
    """
    // A matrix memory: C = f C + i v k^T, n = f n + i k, h = C q / max(|n . q|, exp(-m)). A simdgroup has VALUES rows of C in
    // half2 pairs of keys; each simdgroup keeps its own copy of n.
    constexpr int PAIRS = DK / 64;
    const ushort lane = thread_index_in_simdgroup;
    const uint value = thread_position_in_grid.y * VALUES, head = thread_position_in_grid.z;
    const int steps = q_shape[1];
    float2 memory[VALUES][PAIRS];
    float2 norm[PAIRS];
    for (int p = 0; p < PAIRS; ++p) {
      norm[p] = 0;
      for (int r = 0; r < VALUES; ++r) memory[r][p] = float2(0);
    }
    float m = -INFINITY;
    for (int t = 0; t < steps; ++t) {
      const uint at = head * steps + t;
      const float2 gates = ((device const float2*)gate_pairs)[at];      // logarithms: input, forget
      const float top = max(gates.x, gates.y + m);
      const float in = metal::precise::exp(gates.x - top), keep = metal::precise::exp(gates.y + m - top);
      m = top;
      device const half2* queries = (device const half2*)(q + at * DK);
      device const half2* keys = (device const half2*)(k + at * DK);
      float with_norm = 0;
      float with_memory[VALUES] = {};
      for (int p = 0; p < PAIRS; ++p) {
        const float2 key = float2(keys[p * 32 + lane]) * in, query = float2(queries[p * 32 + lane]);
        norm[p] = norm[p] * keep + key;
        with_norm += dot(norm[p], query);
        for (int r = 0; r < VALUES; ++r) {
          memory[r][p] = memory[r][p] * keep + key * float(v[at * DV + value + r]);
          with_memory[r] += dot(memory[r][p], query);
        }
      }
      const float divisor = max(abs(simd_sum(with_norm)), metal::precise::exp(-m));
      for (int r = 0; r < VALUES; ++r) {
        const float out = simd_sum(with_memory[r]) / divisor;
        if (lane == ushort(r)) h[at * DV + value + r] = out;
      }
    }
    """,
    template=[("DK", 128), ("DV", 8), ("VALUES", 2)],
    inputs=lambda rng: {
        "q": rng.uniform(0, 1, (2, 9, 128)).astype(np.float16),
        "k": rng.uniform(0, 0.25, (2, 9, 128)).astype(np.float16),
        "v": rng.uniform(1, 2, (2, 9, 8)).astype(np.float16),
        "gate_pairs": np.stack([rng.uniform(-6, 2, (2, 9)), rng.uniform(-1, 0, (2, 9))], axis=-1).astype(np.float32),
    },
    outputs={"h": ((2, 9, 8), "float32")},
    grid=(32, 4, 2),
    threadgroup=(32, 2, 1),
    tolerance=2e-6,
    constructs="types.half2 types.float2 functions.abs functions.dot types.INFINITY address_spaces.cast_to_vector",
)
def matrix_lstm(q, k, v, gate_pairs):
    q, k, v, gates = _wide(q, k, v, gate_pairs)
    h = np.zeros((2, 9, 8))
    for head in range(2):
        since = np.concatenate([[0], np.cumsum(gates[head, :, 1])])
        m = -np.inf
        for t in range(9):
            m = max(gates[head, t, 0], gates[head, t, 1] + m)
            weights = np.exp(gates[head, : t + 1, 0] + since[t + 1] - since[1 : t + 2])
            scores = k[head, : t + 1] @ q[head, t] * weights
            h[head, t] = scores @ v[head, : t + 1] / max(abs(scores.sum()), 1.0)
    return h


# ---- Normalisation by rows and columns in turn


@body(
    """
    // A threadgroup has a matrix of scores; its rows, then its columns are made to sum up to their targets, in logarithms,
    // until no row is off by more than a tolerance. Rows belong to simdgroups, columns to lanes.
    threadgroup float cost[ROWS][32];
    threadgroup float row_log[ROWS], column_log[32];
    threadgroup float worst[ROWS];
    const ushort lane = thread_index_in_simdgroup, row = simdgroup_index_in_threadgroup;
    const uint matrix = threadgroup_position_in_grid.x;
    const int columns = scores_shape[2];
    const bool inside = lane < columns;
    const float own = inside ? float(scores[(matrix * ROWS + row) * columns + lane]) / temperature : -INFINITY;
    cost[row][lane] = own;
    if (row == 0) column_log[lane] = 0;
    int used = 0;
    for (; used < MOST; ++used) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // Rows: the logarithm of the sum of exponentials, by its largest term.
      const float with_column = own + (inside ? column_log[lane] : 0.0f);
      const float top = simd_max(with_column);
      const float sum = simd_sum(metal::precise::exp(with_column - top));
      const float now = metal::precise::log(row_targets[row]) - top - metal::precise::log(sum);
      if (lane == 0) {
        worst[row] = used == 0 ? INFINITY : metal::fabs(now - row_log[row]);
        row_log[row] = now;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float moved = 0;
      for (int r = 0; r < ROWS; ++r) moved = max(moved, worst[r]);
      if (moved < 1e-3f) break;
      // Columns: the first simdgroup has a lane for each.
      if (row == 0 && inside) {
        float largest = -INFINITY, total = 0;
        for (int r = 0; r < ROWS; ++r) largest = max(largest, cost[r][lane] + row_log[r]);
        for (int r = 0; r < ROWS; ++r) total += metal::precise::exp(cost[r][lane] + row_log[r] - largest);
        column_log[lane] = -largest - metal::precise::log(total);
      }
    }
    if (inside) plan[(matrix * ROWS + row) * columns + lane] = metal::precise::exp(own + row_log[row] + column_log[lane]);
    if (row == 0 && lane == 0) rounds[matrix] = used;
    """,
    template=[("ROWS", 8), ("MOST", 50)],
    inputs=lambda rng: {
        "scores": rng.normal(size=(3, 8, 24)).astype(np.float16),
        "row_targets": np.full(8, 3, np.float32),
        "temperature": 0.5,
    },
    outputs={"plan": ((3, 8, 24), "float32"), "rounds": ((3,), "int32")},
    grid=(3 * 256, 1, 1),
    threadgroup=(256, 1, 1),
    tolerance=4e-6,
    constructs="barriers.with_break simdgroup.max simdgroup.sum types.INFINITY address_spaces.threadgroup_2d_array "
    "barriers.run_time_trip_count",
)
def sinkhorn_until_it_settles(scores, row_targets, temperature):
    plans, rounds = [], []
    for matrix in np.exp(scores.astype(np.float64) / temperature):
        v, u, used = np.ones(24), row_targets / matrix.sum(axis=1), 0
        moved = np.inf
        while moved >= 1e-3:
            v = 1 / (u @ matrix)
            before, u = u, row_targets / (matrix @ v)
            moved = np.abs(np.log(u / before)).max()
            used += 1
        plans.append(u[:, None] * matrix * v)
        rounds.append(used)
    return np.array(plans), np.array(rounds, np.int32)


@body(
    """
    // Four streams instead of one residual. From the normalised streams come what a layer reads (a weight for each), what it
    // writes back, and how the streams mix: a matrix that is made doubly stochastic by turns.
    threadgroup float4x4 partial_products[SIMDS];
    threadgroup float4 partial_reads[SIMDS], partial_writes[SIMDS];
    threadgroup float partial_squares[SIMDS];

    const uint token = threadgroup_position_in_grid.x, tid = thread_position_in_threadgroup.x;
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    const uint width = layer_shape[1];
    device const float* x = streams + token * 4 * width;

    // Coefficients are linear in the streams: 24 for each element, four vectors of six.
    float squares = 0;
    float4 read = 0, write = 0;
    float4x4 products = float4x4(0.0f);
    for (uint i = tid; i < 4 * width; i += 32 * SIMDS) {
      const float v = x[i];
      squares += v * v;
      device const float4* row = (device const float4*)weights + i * 6;
      read += v * row[0];
      write += v * row[1];
      products += float4x4(row[2], row[3], row[4], row[5]) * v;
    }
    squares = simd_sum(squares);
    read = simd_sum(read);
    write = simd_sum(write);
    for (int c = 0; c < 4; ++c) products[c] = simd_sum(products[c]);
    if (lane == 0) {
      partial_squares[simd] = squares;
      partial_reads[simd] = read;
      partial_writes[simd] = write;
      partial_products[simd] = products;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = 0; s < SIMDS; ++s) {
      if (s == simd) continue;
      squares += partial_squares[s];
      read += partial_reads[s];
      write += partial_writes[s];
      products += partial_products[s];
    }
    // All threads have the sums, if in different order: the coefficients of one simdgroup are used by all.
    threadgroup float4x4 mixing;
    threadgroup float4 reading, writing;
    if (simd == 0 && lane == 0) {
      const float scale = metal::rsqrt(squares / (4 * width) + 1e-6f);
      reading = logistic(read * scale * gains[0] + ((device const float4*)offsets)[0]);
      writing = 2.0f * logistic(write * scale * gains[1] + ((device const float4*)offsets)[1]);
      float4x4 m;
      for (int c = 0; c < 4; ++c)
        m[c] = metal::precise::exp(products[c] * scale * gains[2] + ((device const float4*)offsets)[2 + c]);
      for (int round = 0; round < ROUNDS; ++round) {
        for (int c = 0; c < 4; ++c) m[c] /= dot(m[c], float4(1));
        const float4 rows = m * float4(1);
        for (int c = 0; c < 4; ++c) m[c] /= rows;
      }
      mixing = m;
      reading = clamp(reading, 0.0f, 1.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float4x4 m = mixing;
    for (uint j = tid; j < width; j += 32 * SIMDS) {
      const float4 own = float4(x[j], x[width + j], x[2 * width + j], x[3 * width + j]);
      to_layer[token * width + j] = dot(reading, own);
      const float4 next = m * own + writing * layer[token * width + j];
      for (int s = 0; s < 4; ++s) out[(token * 4 + s) * width + j] = next[s];
    }
    """,
    header="inline float4 logistic(float4 x) { return 1.0f / (1.0f + metal::precise::exp(-x)); }\n",
    template=[("SIMDS", 2), ("ROUNDS", 6)],
    inputs=lambda rng: {
        "streams": rng.uniform(0.5, 1.5, (3, 4, 40)).astype(np.float32),
        "layer": rng.uniform(0.5, 1.5, (3, 40)).astype(np.float32),
        "weights": (rng.normal(size=(160, 24)) / 20).astype(np.float32),
        "gains": np.array([0.5, 0.75, 1], np.float32),
        "offsets": rng.normal(size=24).astype(np.float32),
    },
    outputs={"to_layer": ((3, 40), "float32"), "out": ((3, 4, 40), "float32")},
    grid=(3 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=4e-6,
    constructs="types.matrices types.matrix_constructors types.matrix_arithmetic types.matrix_components simdgroup.sum "
    "address_spaces.threadgroup_vectors functions.dot",
)
def hyper_connections(streams, layer, weights, gains, offsets):
    streams, layer, weights, gains, offsets = _wide(streams, layer, weights, gains, offsets)
    flat = streams.reshape(3, 160)
    unit = flat / np.sqrt((flat**2).mean(1, keepdims=True) + 1e-6)
    raw = (unit @ weights).reshape(3, 6, 4)
    offsets = offsets.reshape(6, 4)
    read = _sigmoid(raw[:, 0] * gains[0] + offsets[0])
    write = 2 * _sigmoid(raw[:, 1] * gains[1] + offsets[1])
    mixing = np.exp(raw[:, 2:] * gains[2] + offsets[2:])  # [token, from, to]
    for _ in range(6):
        mixing /= mixing.sum(axis=2, keepdims=True)
        mixing /= mixing.sum(axis=1, keepdims=True)
    out = np.einsum("tij,tid->tjd", mixing, streams) + write[:, :, None] * layer[:, None]
    return np.einsum("ts,tsd->td", read, streams), out
