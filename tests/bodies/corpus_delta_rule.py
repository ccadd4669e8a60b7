"""The delta rule with gates: step by step, by chunks, over ragged batches, and its gradient."""

import numpy as np

from bodies import DTYPES, Dtype, body

# ---- One gate for each head, the state in registers


def _delta_rule(q, k, v, gate, beta, state):
    """A head's outputs and last state. q, k: [steps, dk]; v: [steps, dv]; gate: [steps] or [steps, dk]."""
    out = []
    for t in range(len(q)):
        state = state * gate[t]
        error = v[t] - state @ k[t]
        state = state + np.outer(beta[t] * error, k[t])
        out.append(state @ q[t])
    return np.array(out), state


def _over_heads(q, k, v, gate, beta, state, rule=_delta_rule):
    """[batch, steps, heads, …]; a key head serves several value heads."""
    q, k, v, gate, beta, state = (a.astype(np.float64) for a in (q, k, v, gate, beta, state))
    y, last = np.zeros_like(v), np.zeros_like(state)
    share = v.shape[2] // k.shape[2]
    for b in range(v.shape[0]):
        for h in range(v.shape[2]):
            y[b, :, h], last[b, h] = rule(
                q[b, :, h // share], k[b, :, h // share], v[b, :, h], gate[b, :, h], beta[b, :, h], state[b, h]
            )
    return y, last


for _dtype, _tolerance in (("float32", 1e-6), ("bfloat16", 2**-8)):

    def _scalar_gate_inputs(rng, dtype=DTYPES[_dtype]):
        return {
            "q": rng.uniform(0, 0.25, (2, 7, 2, 64)).astype(dtype),
            "k": rng.uniform(0, 0.2, (2, 7, 2, 64)).astype(dtype),
            "v": rng.uniform(2, 4, (2, 7, 4, 12)).astype(dtype),
            "g": rng.uniform(0.8, 1, (2, 7, 4)).astype(np.float32),
            "beta": rng.uniform(0.2, 0.6, (2, 7, 4)).astype(dtype),
            "state_in": rng.uniform(0, 0.3, (2, 4, 12, 64)).astype(np.float32),
            "T": 7,
        }

    body(
        """
    // A simdgroup keeps one row of the state (one value channel, all keys), PER of its elements in each lane.
    constexpr int PER = Dk / 32;
    const uint head_of_batch = thread_position_in_grid.z;
    const uint b = head_of_batch / Hv, hv = head_of_batch % Hv, hk = hv / (Hv / Hk);
    const uint row = thread_position_in_grid.y;
    const uint lane = thread_index_in_simdgroup;

    auto q_ = q + (b * T * Hk + hk) * Dk;
    auto k_ = k + (b * T * Hk + hk) * Dk;
    auto v_ = v + (b * T * Hv + hv) * Dv;
    auto y_ = y + (b * T * Hv + hv) * Dv;
    auto g_ = g + b * T * Hv + hv;
    auto beta_ = beta + b * T * Hv + hv;
    const uint place = (head_of_batch * Dv + row) * Dk + PER * lane;

    float state[PER];
    for (int i = 0; i < PER; ++i) state[i] = state_in[place + i];

    for (int t = 0; t < T; ++t) {
      float kv = 0.0f;
      const float decay = g_[0];
      for (int i = 0; i < PER; ++i) {
        state[i] *= decay;
        kv += state[i] * static_cast<float>(k_[PER * lane + i]);
      }
      const float delta = (static_cast<float>(v_[row]) - simd_sum(kv)) * static_cast<float>(beta_[0]);
      float own = 0.0f;
      for (int i = 0; i < PER; ++i) {
        state[i] += static_cast<float>(k_[PER * lane + i]) * delta;
        own += state[i] * static_cast<float>(q_[PER * lane + i]);
      }
      own = simd_sum(own);
      if (lane == 0) y_[row] = static_cast<InT>(own);
      q_ += Hk * Dk; k_ += Hk * Dk; v_ += Hv * Dv; y_ += Hv * Dv; g_ += Hv; beta_ += Hv;
    }
    for (int i = 0; i < PER; ++i) state_out[place + i] = state[i];
    """,
        name=f"delta_rule_scalar_gate_{_dtype}",
        template=[("InT", Dtype(_dtype)), ("Dk", 64), ("Dv", 12), ("Hk", 2), ("Hv", 4)],
        inputs=_scalar_gate_inputs,
        outputs={"y": ((2, 7, 4, 12), _dtype), "state_out": ((2, 4, 12, 64), "float32")},
        grid=(32, 12, 8),
        threadgroup=(32, 4, 1),
        tolerance=_tolerance,
        constructs="simdgroup.sum structure.auto structure.template_arguments layouts.python_number",
    )(lambda q, k, v, g, beta, state_in, T: _over_heads(q, k, v, g, beta, state_in))


# ---- A gate for each key, and steps that are masked


def _masked_inputs(rng):
    mask = np.ones((2, 9), bool)
    mask[0, :4] = False
    mask[1, 3] = mask[1, 8] = False
    return {
        "q": rng.uniform(0, 0.2, (2, 9, 2, 128)).astype(np.float16),
        "k": rng.uniform(0, 0.15, (2, 9, 2, 128)).astype(np.float16),
        "v": rng.uniform(2, 4, (2, 9, 2, 10)).astype(np.float16),
        "log_g": rng.uniform(-0.5, 0, (2, 9, 2, 128)).astype(np.float32),
        "beta": rng.uniform(0.1, 0.5, (2, 9, 2)).astype(np.float32),
        "mask": mask,
        "state_in": rng.uniform(0, 0.2, (2, 2, 10, 128)).astype(np.float32),
    }


@body(
    """
    // State as [batch, heads, Dv, Dk]; a lane has four keys of TWO rows.
    constexpr uint TWO = 2;
    const uint lane = thread_index_in_simdgroup;
    const uint row = TWO * thread_position_in_grid.y;
    const uint head = thread_position_in_grid.z;
    const uint b = head / H, h = head % H;
    const int steps = q_shape[1];
    if (row >= Dv) return;

    device const float4* start = (device const float4*)(state_in + (head * Dv + row) * 128);
    float4 s0 = start[lane], s1 = start[lane + 32];
    for (int t = 0; t < steps; ++t) {
      const uint at = (b * steps + t) * H + h;
      device half* out = y + at * Dv + row;
      // Padding leaves the state as it is. The mask is the same for all lanes.
      if (!mask[b * steps + t]) {
        if (lane < TWO) out[lane] = 0.0h;
        continue;
      }
      const float4 decay = metal::precise::exp(((device const float4*)log_g)[at * 32 + lane]);
      const float4 key = float4(((device const half4*)k)[at * 32 + lane]);
      const float4 query = float4(((device const half4*)q)[at * 32 + lane]);
      s0 *= decay;
      s1 *= decay;
      const float2 seen = float2(simd_sum(dot(s0, key)), simd_sum(dot(s1, key)));
      const float2 wanted = float2(v[at * Dv + row], v[at * Dv + row + 1]);
      const float2 delta = beta[at] * (wanted - seen);
      s0 += delta.x * key;
      s1 += delta.y * key;
      const float2 got = float2(simd_sum(dot(s0, query)), simd_sum(dot(s1, query)));
      if (lane < TWO) out[lane] = half(got[lane]);
    }
    device float4* end = (device float4*)(state_out + (head * Dv + row) * 128);
    end[lane] = s0;
    end[lane + 32] = s1;
    """,
    template=[("H", 2), ("Dv", 10)],
    inputs=_masked_inputs,
    outputs={"y": ((2, 9, 2, 10), "float16"), "state_out": ((2, 2, 10, 128), "float32")},
    grid=(32, 6, 4),
    threadgroup=(32, 2, 2),
    tolerance=2**-10,
    constructs="address_spaces.cast_to_vector functions.dot functions.exp reconvergence.continue_before_call "
    "types.float4 types.half4 types.component_index literals.half_suffix",
)
def delta_rule_vector_gates_masked(q, k, v, log_g, beta, mask, state_in):
    y = np.zeros((2, 9, 2, 10))
    last = np.zeros((2, 2, 10, 128))
    arrays = (q, k, v, np.exp(log_g.astype(np.float64)), beta)
    for b in range(2):
        own_q, own_k, own_v, gate, rate = (a[b : b + 1, mask[b]] for a in arrays)
        out, last[b : b + 1] = _over_heads(own_q, own_k, own_v, gate, rate, state_in[b : b + 1])
        y[b : b + 1, mask[b]] = out
    return y, last


# ---- Ragged batches, states in slots, gates and norms from what the projections give


@body(
    """
    const uint head = threadgroup_position_in_grid.y, sequence = threadgroup_position_in_grid.z;
    const uint lane = thread_index_in_simdgroup;
    const uint column = threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup;
    const int first = offsets[sequence], last = offsets[sequence + 1];
    const int slot = slots[sequence];
    // A slot below zero is a sequence that was evicted; an empty one keeps its state.
    if (slot < 0 || column >= DV) return;

    RowOfState<DK / 32> state;
    device float* cache = pool + ((uint(slot) * HEADS + head) * DV + column) * DK;
    device const float* previous = states + ((uint(slot) * HEADS + head) * DV + column) * DK;
    if (fresh[sequence])
      state.clear();
    else
      state.load(previous, lane);

    const float rate = metal::precise::exp(a_log[head]);
    for (int token = first; token < last; ++token) {
      const int at = token * HEADS + head;
      RowOfState<DK / 32> key, query;
      key.load(k + at * DK, lane);
      query.load(q + at * DK, lane);
      key.normalise(EPSILON);
      query.normalise(EPSILON);
      query.scale(metal::rsqrt(float(DK)));

      const float step = softplus(float(dt[at]) + dt_bias[head]);
      state.scale(metal::precise::exp(-rate * step));
      const float error = float(v[at * DV + column]) - state.dot(key);
      state.add(key, sigmoid(float(b[at])) * error);
      const float out = state.dot(query);
      if (simd_is_first()) y[at * DV + column] = out;
    }
    state.store(cache, lane);
    """,
    header="""
#define EPSILON 1e-6f

inline float softplus(float x) { return x > 20.0f ? x : metal::precise::log(1.0f + metal::precise::exp(x)); }
inline float sigmoid(float x) { return 1.0f / (1.0f + metal::precise::exp(-x)); }

// N elements for each lane of a simdgroup, 32 apart.
template <int N>
struct RowOfState {
  float values[N];

  void clear() thread {
    for (int i = 0; i < N; ++i) values[i] = 0;
  }
  template <typename P>
  void load(P from, uint lane) thread {
    for (int i = 0; i < N; ++i) values[i] = float(from[32 * i + lane]);
  }
  void store(device float* to, uint lane) const thread {
    for (int i = 0; i < N; ++i) to[32 * i + lane] = values[i];
  }
  float dot(thread const RowOfState& other) const thread {
    float own = 0;
    for (int i = 0; i < N; ++i) own = fma(values[i], other.values[i], own);
    return simd_sum(own);
  }
  void scale(float by) thread {
    for (int i = 0; i < N; ++i) values[i] *= by;
  }
  void add(thread const RowOfState& other, float factor) thread {
    for (int i = 0; i < N; ++i) values[i] = fma(other.values[i], factor, values[i]);
  }
  void normalise(float epsilon) thread { scale(metal::rsqrt(dot(*this) + epsilon)); }
};
""",
    template=[("HEADS", 2), ("DK", 96), ("DV", 6)],
    inputs=lambda rng: {
        "q": rng.uniform(0, 1, (11, 2, 96)).astype(np.float16),
        "k": rng.uniform(0, 1, (11, 2, 96)).astype(np.float16),
        "v": rng.uniform(2, 4, (11, 2, 6)).astype(np.float16),
        "dt": rng.normal(size=(11, 2)).astype(np.float16),
        "b": rng.normal(size=(11, 2)).astype(np.float16),
        "a_log": rng.uniform(-3, -2, 2).astype(np.float32),
        "dt_bias": rng.uniform(-1, 0, 2).astype(np.float32),
        "offsets": np.array([0, 4, 4, 9, 11], np.int32),
        "slots": np.array([3, 0, 2, -1], np.int32),
        "fresh": np.array([False, False, True, False]),
        "states": rng.uniform(0, 0.1, (4, 2, 6, 96)).astype(np.float32),
    },
    outputs={"y": ((11, 2, 6), "float32"), "pool": ((4, 2, 6, 96), "float32")},
    grid=(2 * 128, 2, 4),
    threadgroup=(128, 1, 1),
    init_value=0,
    tolerance=2e-6,
    constructs="structure.struct structure.template simdgroup.is_first functions.log functions.rsqrt "
    "address_spaces.template_parameter attributes.simdgroups_per_threadgroup structure.early_return",
)
def delta_rule_ragged_with_slots(q, k, v, dt, b, a_log, dt_bias, offsets, slots, fresh, states):
    q, k, v, dt, b, a_log, dt_bias = (a.astype(np.float64) for a in (q, k, v, dt, b, a_log, dt_bias))
    unit_q = q / np.sqrt((q * q).sum(-1, keepdims=True) + 1e-6) / np.sqrt(96)
    unit_k = k / np.sqrt((k * k).sum(-1, keepdims=True) + 1e-6)
    gate = np.exp(-np.exp(a_log) * np.log1p(np.exp(dt + dt_bias)))
    beta = 1 / (1 + np.exp(-b))
    y, pool = np.zeros((11, 2, 6)), np.zeros((4, 2, 6, 96))
    for s, slot in enumerate(slots):
        if slot < 0:
            continue
        part = slice(offsets[s], offsets[s + 1])
        for h in range(2):
            start = states[slot, h].astype(np.float64) * (not fresh[s])
            out, pool[slot, h] = _delta_rule(
                unit_q[part, h], unit_k[part, h], v[part, h], gate[part, h], beta[part, h], start
            )
            y[part, h] = out.reshape(-1, 6)
    return y, pool


# ---- By chunks


@body(
    """
    // One threadgroup for a head of a sequence. The steps of a chunk are solved for together:
    //   (I + tril(beta_i gamma_i / gamma_j k_i.k_j, -1)) u = beta (v - gamma K S),
    // where gamma_i is the product of the gates of the chunk up to step i. Then
    //   y = gamma Q S + tril(gamma_i / gamma_j q_i.k_j) u,  S' = gamma_C S + sum_j gamma_C / gamma_j k_j u_j.
    threadgroup float queries[C][DK + 1];
    threadgroup float keys[C][DK + 1];
    threadgroup float updates[C][DV];
    threadgroup float state[DK][DV];
    threadgroup float system[C][C + 1];
    threadgroup float scores[C][C + 1];
    threadgroup float logs[C];
    threadgroup float betas[C];

    const uint tid = thread_index_in_threadgroup;
    const uint threads = THREADS;
    const uint head = threadgroup_position_in_grid.y;
    const uint batch = threadgroup_position_in_grid.z;
    const uint heads = threadgroups_per_grid.y;
    const uint length = q_shape[1];
    const uint base = batch * length * heads + head;  // of step t: base + t * heads

    for (uint i = tid; i < DK * DV; i += threads)
      state[i / DV][i % DV] = initial[(batch * heads + head) * DK * DV + i];

    for (uint first = 0; first < length; first += C) {
      const uint steps = min(uint(C), length - first);

      // 1. What the chunk reads. Steps behind the end are zeros with a gate of one: they change nothing.
      for (uint i = tid; i < C * DK; i += threads) {
        const uint t = i / DK, d = i % DK;
        const bool inside = t < steps;
        const uint at = (base + (first + t) * heads) * DK + d;
        queries[t][d] = inside ? float(q[at]) : 0.0f;
        keys[t][d] = inside ? float(k[at]) : 0.0f;
      }
      if (tid < C) {
        const bool inside = tid < steps;
        const uint at = base + (first + tid) * heads;
        betas[tid] = inside ? beta[at] : 0.0f;
        // C is the width of a simdgroup or less: a scan gives the logarithms of gamma.
        logs[tid] = simd_prefix_inclusive_sum(inside ? log_gate[at] : 0.0f);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // 2. The products of keys with keys and of queries with keys, decayed.
      for (uint i = tid; i < C * C; i += threads) {
        const uint row = i / C, column = i % C;
        float with_key = 0, with_query = 0;
        if (column <= row) {
          for (uint d = 0; d < DK; ++d) {
            with_key = fma(keys[row][d], keys[column][d], with_key);
            with_query = fma(queries[row][d], keys[column][d], with_query);
          }
          const float decay = metal::precise::exp(logs[row] - logs[column]);
          with_key *= betas[row] * decay;
          with_query *= decay;
        }
        system[row][column] = with_key;
        scores[row][column] = with_query;
      }

      // 3. The right side: what the state does not predict yet.
      for (uint i = tid; i < C * DV; i += threads) {
        const uint t = i / DV, d = i % DV;
        float predicted = 0;
        for (uint j = 0; j < DK; ++j) predicted = fma(keys[t][j], state[j][d], predicted);
        const float wanted = t < steps ? float(v[(base + (first + t) * heads) * DV + d]) : 0.0f;
        updates[t][d] = betas[t] * (wanted - metal::precise::exp(logs[t]) * predicted);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // 4. Forward substitution. A thread has a column, so no barrier is needed between the rows.
      for (uint d = tid; d < DV; d += threads) {
        for (uint row = 1; row < steps; ++row) {
          float sum = updates[row][d];
          for (uint column = 0; column < row; ++column) sum -= system[row][column] * updates[column][d];
          updates[row][d] = sum;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // 5. Outputs: from the state before the chunk, and from the chunk itself.
      for (uint i = tid; i < steps * DV; i += threads) {
        const uint t = i / DV, d = i % DV;
        float from_state = 0, from_chunk = 0;
        for (uint j = 0; j < DK; ++j) from_state = fma(queries[t][j], state[j][d], from_state);
        for (uint j = 0; j <= t; ++j) from_chunk = fma(scores[t][j], updates[j][d], from_chunk);
        const float out = metal::precise::exp(logs[t]) * from_state + from_chunk;
        y[(base + (first + t) * heads) * DV + d] = T(out);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // 6. The state behind the chunk. Each thread has its own elements of it.
      const float whole = logs[C - 1];
      for (uint i = tid; i < DK * DV; i += threads) {
        const uint j = i / DV, d = i % DV;
        float sum = metal::precise::exp(whole) * state[j][d];
        for (uint t = 0; t < steps; ++t)
          sum = fma(metal::precise::exp(whole - logs[t]) * keys[t][j], updates[t][d], sum);
        state[j][d] = sum;
      }
      // The next chunk overwrites keys, which all have read by then.
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    for (uint i = tid; i < DK * DV; i += threads)
      final_state[(batch * heads + head) * DK * DV + i] = state[i / DV][i % DV];
    """,
    template=[("T", Dtype("float32")), ("C", 16), ("DK", 24), ("DV", 40), ("THREADS", 96)],
    inputs=lambda rng: {
        "q": rng.uniform(0, 0.4, (1, 37, 2, 24)).astype(np.float32),
        "k": rng.uniform(0, 0.3, (1, 37, 2, 24)).astype(np.float32),
        "v": rng.uniform(2, 4, (1, 37, 2, 40)).astype(np.float32),
        "log_gate": rng.uniform(-0.4, 0, (1, 37, 2)).astype(np.float32),
        "beta": rng.uniform(0.1, 0.5, (1, 37, 2)).astype(np.float32),
        "initial": rng.uniform(0, 0.5, (1, 2, 24, 40)).astype(np.float32),
    },
    outputs={"y": ((1, 37, 2, 40), "float32"), "final_state": ((1, 2, 24, 40), "float32")},
    grid=(96, 2, 1),
    threadgroup=(96, 1, 1),
    tolerance=3e-6,
    constructs="barriers.in_loop address_spaces.threadgroup_2d_array simdgroup.prefix_inclusive_sum functions.fma "
    "barriers.run_time_trip_count",
)
def delta_rule_by_chunks(q, k, v, log_gate, beta, initial):
    y, last = _over_heads(q, k, v, np.exp(log_gate.astype(np.float64)), beta, initial.swapaxes(2, 3))
    return y, last.swapaxes(2, 3)


# ---- The gradient


@body(
    """
    // A lane has one value channel, with its whole row of the state: DK floats in registers. The states of all steps go to
    // `history`, from which the way back reads them; sums over the channels are sums over the simdgroup.
    const uint lane = thread_index_in_simdgroup;
    const uint head = threadgroup_position_in_grid.x;  // of batch and head together
    const int steps = q_shape[1];

    device const float* qs = q + head * steps * DK;
    device const float* ks = k + head * steps * DK;
    device const float* vs = v + head * steps * 32;
    device const float* dys = dy + head * steps * 32;
    device float* saved = history + head * (steps + 1) * DK * 32;

    float state[DK];
    FOR_KEYS(j) state[j] = initial[(head * 32 + lane) * DK + j];
    FOR_KEYS(j) saved[j * 32 + lane] = state[j];

    // ---- Forward
    for (int t = 0; t < steps; ++t) {
      const float decay = gate[head * steps + t], rate = beta[head * steps + t];
      float seen = 0;
      FOR_KEYS(j) {
        state[j] *= decay;
        seen = fma(state[j], ks[t * DK + j], seen);
      }
      const float update = rate * (vs[t * 32 + lane] - seen);
      FOR_KEYS(j) state[j] = fma(update, ks[t * DK + j], state[j]);
      device float* to = saved + (t + 1) * DK * 32;
      FOR_KEYS(j) to[j * 32 + lane] = state[j];
    }

    // ---- Back
    float grad[DK];
    FOR_KEYS(j) grad[j] = 0;
    for (int t = steps - 1; t >= 0; --t) {
      const float decay = gate[head * steps + t], rate = beta[head * steps + t];
      const float dy_t = dys[t * 32 + lane];
      device const float* before = saved + t * DK * 32;
      device const float* after = before + DK * 32;
      device const float* q_t = qs + t * DK;
      device const float* k_t = ks + t * DK;
      const uint at = (head * steps + t) * DK;

      // y = S q
      FOR_KEYS(j) {
        const float sum = simd_sum(after[j * 32 + lane] * dy_t);
        if (lane == 0) dq[at + j] = sum;
        grad[j] = fma(dy_t, q_t[j], grad[j]);
      }

      // S = S' + beta e k^T with e = v - S' k and S' = gate S_before
      float along = 0, seen = 0;
      FOR_KEYS(j) {
        along = fma(grad[j], k_t[j], along);
        seen = fma(decay * before[j * 32 + lane], k_t[j], seen);
      }
      const float error = vs[t * 32 + lane] - seen;
      const float d_error = rate * along;
      const float sum_beta = simd_sum(error * along);
      if (lane == 0) dbeta[head * steps + t] = sum_beta;
      dv[(head * steps + t) * 32 + lane] = d_error;

      float d_gate = 0;
      FOR_KEYS(j) {
        const float old = before[j * 32 + lane];
        const float sum = simd_sum(grad[j] * (rate * error) - d_error * (decay * old));
        if (lane == 0) dk[at + j] = sum;
        grad[j] = fma(-d_error, k_t[j], grad[j]);
        d_gate = fma(grad[j], old, d_gate);
        grad[j] *= decay;
      }
      d_gate = simd_sum(d_gate);
      if (lane == 0) dgate[head * steps + t] = d_gate;
    }
    FOR_KEYS(j) dinitial[(head * 32 + lane) * DK + j] = grad[j];
    """,
    header='#define FOR_KEYS(j) _Pragma("clang loop unroll(full)") for (int j = 0; j < DK; ++j)\n',
    template=[("DK", 8)],
    inputs=lambda rng: {
        "q": rng.uniform(0.2, 0.6, (3, 4, 8)).astype(np.float32),
        "k": rng.uniform(0.1, 0.3, (3, 4, 8)).astype(np.float32),
        "v": rng.uniform(2, 4, (3, 4, 32)).astype(np.float32),
        "gate": rng.uniform(0.8, 1, (3, 4)).astype(np.float32),
        "beta": rng.uniform(0.1, 0.4, (3, 4)).astype(np.float32),
        "initial": rng.uniform(0, 0.3, (3, 32, 8)).astype(np.float32),
        "dy": rng.uniform(0.5, 1.5, (3, 4, 32)).astype(np.float32),
    },
    outputs={
        "dq": ((3, 4, 8), "float32"),
        "dk": ((3, 4, 8), "float32"),
        "dv": ((3, 4, 32), "float32"),
        "dgate": ((3, 4), "float32"),
        "dbeta": ((3, 4), "float32"),
        "dinitial": ((3, 32, 8), "float32"),
        "history": ((3, 5, 8, 32), "float32"),
    },
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=2e-6,
    constructs="simdgroup.sum structure._Pragma structure.define_in_header functions.fma",
)
def delta_rule_gradient(q, k, v, gate, beta, initial, dy):
    """By derivatives along the imaginary axis of each input, all of a head's at once: there is nothing to cancel."""
    arrays = {"q": q, "k": k, "v": v, "gate": gate, "beta": beta, "initial": initial}
    gradients = {key: np.zeros(value.shape) for key, value in arrays.items()}
    history = np.zeros((3, 5, 8, 32))
    for head in range(3):
        own = {key: value[head].astype(np.float64) for key, value in arrays.items()}
        sizes = [value.size for value in own.values()]
        count = sum(sizes)
        step = np.eye(count) * 1e-40j
        moved = {}
        for (key, value), first, size in zip(own.items(), np.cumsum([0, *sizes]), sizes, strict=False):
            moved[key] = value + step[:, first : first + size].reshape(count, *value.shape)
        state, loss = moved["initial"], 0
        history[head, 0] = state[0].real.T
        for t in range(4):
            state = state * moved["gate"][:, t, None, None]
            key = moved["k"][:, t]
            error = moved["v"][:, t] - np.einsum("pij,pj->pi", state, key)
            state = state + (moved["beta"][:, t, None] * error)[:, :, None] * key[:, None, :]
            loss = loss + np.einsum("pij,pj,i->p", state, moved["q"][:, t], dy[head, t].astype(np.float64))
            history[head, t + 1] = state[0].real.T
        slopes = np.asarray(loss).imag / 1e-40
        for (key, value), first, size in zip(own.items(), np.cumsum([0, *sizes]), sizes, strict=False):
            gradients[key][head] = slopes[first : first + size].reshape(value.shape)
    return *(gradients[key] for key in ("q", "k", "v", "gate", "beta", "initial")), history


# ---- Without the correction: attention that is linear in the keys


@body(
    """
    // Retention: scores decay by a power of their head's rate. Chunks of 16 steps and heads of 32, one simdgroup each.
    constexpr short C = 16, D = 32;
    threadgroup float state[D * D];     // keys by values
    threadgroup float scaled[C * D];    // queries or keys, times their powers
    threadgroup float scores[C * C];
    threadgroup float powers[C + 1];

    const ushort lane = thread_index_in_simdgroup;
    const uint head = threadgroup_position_in_grid.x;
    const int length = q_shape[1];
    device const float* q_ = q + head * length * D;
    device const float* k_ = k + head * length * D;
    device const float* v_ = v + head * length * D;
    device float* y_ = y + head * length * D;

    for (ushort i = lane; i < D * D; i += 32) state[i] = 0;
    // Powers of the rate, by repeated multiplication as a scan of products.
    if (lane <= C) powers[lane] = simd_prefix_exclusive_product(rates[head]);
    simdgroup_barrier(mem_flags::mem_threadgroup);

    for (int first = 0; first < length; first += C) {
      simdgroup_float8x8 a, b, sum;

      // Scores of the chunk's queries with its keys, decayed where they are causal.
      #pragma unroll
      for (short r = 0; r < C; r += 8) {
        #pragma unroll
        for (short c = 0; c < C; c += 8) {
          sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
          for (short d = 0; d < D; d += 8) {
            simdgroup_load(a, q_ + (first + r) * D + d, D);
            simdgroup_load(b, k_ + (first + c) * D + d, D, ulong2(0, 0), true);
            simdgroup_multiply_accumulate(sum, a, b, sum);
          }
          simdgroup_store(sum, scores + r * C + c, C);
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      for (short i = lane; i < C * C; i += 32) {
        const short distance = i / C - i % C;
        scores[i] = distance < 0 ? 0.0f : scores[i] * powers[distance];
      }
      // Queries see the state with the decay since the chunk began.
      for (short i = lane; i < C * D; i += 32) scaled[i] = q_[first * D + i] * powers[i / D + 1];
      simdgroup_barrier(mem_flags::mem_threadgroup);

      #pragma unroll
      for (short r = 0; r < C; r += 8) {
        for (short c = 0; c < D; c += 8) {
          sum = simdgroup_float8x8(0.0f);
          for (short d = 0; d < D; d += 8) {
            simdgroup_load(a, scaled + r * D + d, D);
            simdgroup_load(b, state + d * D + c, D);
            simdgroup_multiply_accumulate(sum, a, b, sum);
          }
          for (short t = 0; t <= r; t += 8) {
            simdgroup_load(a, scores + r * C + t, C);
            simdgroup_load(b, v_ + (first + t) * D + c, D);
            simdgroup_multiply_accumulate(sum, a, b, sum);
          }
          simdgroup_store(sum, y_ + (first + r) * D + c, D);
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);

      // state = rate^C state + (keys with the decay to the chunk's end)^T values
      for (short i = lane; i < C * D; i += 32) scaled[i] = k_[first * D + i] * powers[C - 1 - i / D];
      for (ushort i = lane; i < D * D; i += 32) state[i] *= powers[C];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      for (short r = 0; r < D; r += 8) {
        for (short c = 0; c < D; c += 8) {
          simdgroup_load(sum, state + r * D + c, D);
          #pragma unroll
          for (short t = 0; t < C; t += 8) {
            simdgroup_load(a, scaled + t * D + r, D, ulong2(0, 0), true);
            simdgroup_load(b, v_ + (first + t) * D + c, D);
            simdgroup_multiply_accumulate(sum, a, b, sum);
          }
          simdgroup_store(sum, state + r * D + c, D);
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (ushort i = lane; i < D * D; i += 32) last_state[head * D * D + i] = state[i];
    """,
    inputs=lambda rng: {
        "q": rng.uniform(0, 1, (3, 48, 32)).astype(np.float32),
        "k": rng.uniform(0, 1, (3, 48, 32)).astype(np.float32),
        "v": rng.uniform(0, 1, (3, 48, 32)).astype(np.float32),
        "rates": np.array([0.75, 0.875, 0.96875], np.float32),
    },
    outputs={"y": ((3, 48, 32), "float32"), "last_state": ((3, 32, 32), "float32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=3e-6,
    constructs="simdgroup_matrix.load_and_store simdgroup_matrix.multiply_accumulate simdgroup_matrix.constructors "
    "simdgroup.prefix_exclusive_product synchronisation.simdgroup_barrier structure.pragma_unroll",
)
def retention_by_chunks(q, k, v, rates):
    q, k, v, rates = (a.astype(np.float64) for a in (q, k, v, rates))
    t = np.arange(48)
    distance = t[:, None] - t
    decay = np.where(distance >= 0, rates[:, None, None] ** np.maximum(distance, 0), 0)
    to_end = rates[:, None] ** (47 - t)
    return (q @ k.swapaxes(1, 2) * decay) @ v, np.einsum("ht,htk,htv->hkv", to_end, k, v)


@body(
    """
    // Features elu(x) + 1, which are positive, and the sum by which the values are divided. Strided inputs.
    const uint channel = thread_position_in_threadgroup.x;  // of the values
    const uint head = threadgroup_position_in_grid.y, batch = threadgroup_position_in_grid.z;
    const int length = q_shape[2], features = q_shape[3];
    threadgroup float query[MAX_FEATURES], key[MAX_FEATURES];
    float state[MAX_FEATURES];
    float weights = 0;
    for (int j = 0; j < features; ++j) state[j] = 0;
    for (int t = 0; t < length; ++t) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint j = channel; j < uint(features); j += threads_per_threadgroup.x) {
        auto at = [&](constant const int64_t* strides) {
          return batch * strides[0] + head * strides[1] + t * strides[2] + j * strides[3];
        };
        query[j] = feature(q[at(q_strides)]);
        key[j] = feature(k[at(k_strides)]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const float value = v[batch * v_strides[0] + head * v_strides[1] + t * v_strides[2] + channel * v_strides[3]];
      float out = 0, norm = 0;
      for (int j = 0; j < features; ++j) {
        state[j] += key[j] * value;
        out += query[j] * state[j];
      }
      // The normaliser is the same product for a value of one: each thread adds a part of the keys' sums.
      weights += channel < uint(features) ? key[channel] : 0.0f;
      norm = simd_sum(channel < uint(features) ? query[channel] * weights : 0.0f);
      y[((batch * threadgroups_per_grid.y + head) * length + t) * 32 + channel] = bfloat16_t(out / norm);
    }
    """,
    header="""
constant constexpr int MAX_FEATURES = 32;
template <typename T>
METAL_FUNC float feature(T x) {
  float v = float(x);
  return v > 0 ? v + 1.0f : metal::precise::exp(v);
}
""",
    inputs=lambda rng: {
        "q": rng.normal(size=(2, 10, 2, 20)).astype(np.float16).swapaxes(1, 2),
        "k": rng.normal(size=(2, 2, 20, 10)).astype(np.float16).swapaxes(2, 3),
        "v": np.broadcast_to(rng.uniform(1, 2, (2, 1, 10, 32)).astype(np.float16), (2, 2, 10, 32)),
    },
    outputs={"y": ((2, 2, 10, 32), "bfloat16")},
    grid=(32, 2, 2),
    threadgroup=(32, 1, 1),
    ensure_row_contiguous=False,
    tolerance=2**-8,
    constructs="layouts.strided structure.lambda mlx.METAL_FUNC address_spaces.constant_scalar barriers.in_loop "
    "barriers.private_arrays_across",
)
def linear_attention_with_features(q, k, v):
    def feature(x):
        x = x.astype(np.float64)
        return np.where(x > 0, x + 1, np.exp(x))

    scores = np.tril(feature(q) @ feature(k).swapaxes(2, 3))
    return scores @ v.astype(np.float64) / scores.sum(-1, keepdims=True)
