"""Sequences in other orders than one after the other: scans over threadgroups that wait for one another, trees, both
directions, chunks with gates by key, and several reflections for each step."""

import numpy as np

from bodies import Dtype, body


@body(
    """
    // h_t = a_t h_{t-1} + x_t over a long row in one pass: a threadgroup scans its block, publishes what it does to a state,
    // and looks back over the blocks before it until it finds one that knows its state. Threadgroups take their numbers from
    // a counter, so that those they wait for have begun.
    threadgroup uint ticket;
    threadgroup float before;
    threadgroup float2 totals[THREADS / 32];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    if (t == 0) ticket = atomic_fetch_add_explicit((device atomic_uint*)control, 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint block = ticket, length = x_shape[0];
    const uint i = block * THREADS + t;
    float factor = i < length ? a[i] : 1.0f, value = i < length ? x[i] : 0.0f;

    for (ushort distance = 1; distance < 32; distance <<= 1) {
      const float f = simd_shuffle_up(factor, distance), v = simd_shuffle_up(value, distance);
      if (lane >= distance) {
        value = factor * v + value;
        factor *= f;
      }
    }
    if (lane == 31) totals[simd] = float2(factor, value);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float2 prefix = float2(1, 0);
    for (uint s = 0; s < simd; ++s) prefix = float2(prefix.x * totals[s].x, totals[s].x * prefix.y + totals[s].y);
    value = factor * prefix.y + value;
    factor *= prefix.x;

    // Per block: a flag, what it does (factor, value), its state. Flags follow the numbers that they stand for.
    device atomic_uint* flags = (device atomic_uint*)control + 1;
    device atomic_uint* numbers = flags + threadgroups_per_grid.x;
    #define PUT(place, v) \\
      atomic_store_explicit(numbers + 3 * block + (place), as_type<uint>(v), memory_order_relaxed)
    #define GET(from, place) \\
      as_type<float>(atomic_load_explicit(numbers + 3 * (from) + (place), memory_order_relaxed))
    if (t == THREADS - 1) {
      float state = 0;
      if (block == 0) {
        state = value;
      } else {
        PUT(0, factor);
        PUT(1, value);
        atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
        atomic_store_explicit(flags + block, 1u, memory_order_relaxed);
        // What lies between here and the block that is looked at.
        float f = 1, v = 0;
        for (uint from = block; from-- > 0;) {
          uint flag;
          do {
            flag = atomic_load_explicit(flags + from, memory_order_relaxed);
          } while (flag == 0);
          atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
          if (flag == 2) {
            v = f * GET(from, 2) + v;
            break;
          }
          v = f * GET(from, 1) + v;
          f *= GET(from, 0);
        }
        before = v;
        state = factor * v + value;
      }
      PUT(2, state);
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      atomic_store_explicit(flags + block, 2u, memory_order_relaxed);
      if (block == 0) before = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < length) h[i] = factor * before + value;
    """,
    template=[("THREADS", 64)],
    # Exact whatever the order: integers, and factors of one and minus one.
    inputs=lambda rng: {
        "a": rng.choice([-1, 1, 1, 1], 1000).astype(np.float32),
        "x": rng.integers(-64, 64, 1000).astype(np.float32),
    },
    outputs={"h": ((1000,), "float32"), "control": ((100,), "uint32")},
    grid=(1024, 1, 1),
    threadgroup=(64, 1, 1),
    init_value=0,
    constructs="synchronisation.waiting_threadgroups synchronisation.fetch_add synchronisation.load "
    "synchronisation.store synchronisation.atomic_thread_fence simdgroup.shuffle_up structure.define structure.do "
    "types.as_type",
)
def recurrence_by_looking_back(a, x):
    def scan(a, x):
        state, out = np.float32(0), []
        for factor, value in zip(a, x, strict=True):
            state = factor * state + value
            out.append(state)
        return np.array(out, np.float32)

    h = scan(a, x)
    control = np.zeros(100, np.uint32)
    control[0], control[1:17] = 16, 2
    for block in range(16):
        own = slice(64 * block, 64 * block + 64)
        numbers = [a[own].prod(), scan(a[own], x[own])[-1]] if block else [0, 0]
        control[17 + 3 * block : 20 + 3 * block] = np.array([*numbers, h[own][-1]], np.float32).view(np.uint32)
    return h, control


@body(
    """
    // Tokens of a tree that is being tried: each follows the state of its parent, which came earlier in the list or is the
    // state before the tree. A simdgroup has a row of the states; all states are kept, and that of the accepted leaf is copied.
    const uint lane = thread_index_in_simdgroup, row = thread_position_in_grid.y, head = thread_position_in_grid.z;
    const uint rows = threads_per_grid.y, heads = threads_per_grid.z;
    const int tokens = parents_shape[0];
    threadgroup float kept[ROWS_AT_ONCE][MOST][32];
    threadgroup float(&own)[MOST][32] = kept[thread_position_in_threadgroup.y];
    const float start = root[(head * rows + row) * 32 + lane];
    for (int t = 0; t < tokens; ++t) {
      const int parent = parents[t];
      float state = parent < 0 ? start : own[parent][lane];
      const float key = k[(t * heads + head) * 32 + lane];
      state *= gates[t * heads + head];
      const float error = v[(t * heads + head) * rows + row] - simd_sum(state * key);
      state += key * error * 0.5f;
      own[t][lane] = state;
      const float out = simd_sum(state * q[(t * heads + head) * 32 + lane]);
      if (lane == 0) y[(t * heads + head) * rows + row] = out;
    }
    accepted[(head * rows + row) * 32 + lane] = leaf < 0 ? start : own[leaf][lane];
    """,
    template=[("ROWS_AT_ONCE", 4), ("MOST", 12)],
    inputs=lambda rng: {
        "q": rng.uniform(0, 0.5, (12, 2, 32)).astype(np.float32),
        "k": rng.uniform(0, 0.25, (12, 2, 32)).astype(np.float32),
        "v": rng.uniform(2, 4, (12, 2, 8)).astype(np.float32),
        "gates": rng.uniform(0.75, 1, (12, 2)).astype(np.float32),
        "parents": np.array([-1, 0, 0, 1, 1, 2, -1, 6, 3, 3, 7, 10], np.int32),
        "root": rng.uniform(0, 0.5, (2, 8, 32)).astype(np.float32),
        "leaf": 9,
    },
    outputs={"y": ((12, 2, 8), "float32"), "accepted": ((2, 8, 32), "float32")},
    grid=(32, 8, 2),
    threadgroup=(32, 4, 1),
    tolerance=2e-6,
    constructs="address_spaces.threadgroup_2d_array address_spaces.threadgroup_reference_to_helper simdgroup.sum "
    "layouts.python_number",
)
def delta_rule_on_a_tree(q, k, v, gates, parents, root, leaf):
    q, k, v, gates, root = (a.astype(np.float64) for a in (q, k, v, gates, root))
    states: list[np.ndarray] = []
    y = np.zeros((12, 2, 8))
    for t, parent in enumerate(parents):
        state = (root if parent < 0 else states[parent]) * gates[t][:, None, None]
        error = v[t] - np.einsum("hvk,hk->hv", state, k[t])
        state = state + 0.5 * error[:, :, None] * k[t][:, None]
        states.append(state)
        y[t] = np.einsum("hvk,hk->hv", state, q[t])
    return y, states[leaf]


@body(
    """
    // Both directions of an LSTM side by side, a threadgroup for each. The hidden state has two buffers by number.
    threadgroup T hidden[2][UNITS];
    const ushort unit = thread_position_in_threadgroup.x;
    const uint batch = threadgroup_position_in_grid.y;
    const bool backwards = threadgroup_position_in_grid.z == 1;
    const int steps = x_shape[1];
    device const float* from = x + batch * steps * 2 * 4 * UNITS + (backwards ? 4 * UNITS : 0);
    device const T* w = weights + (backwards ? 4 * UNITS * UNITS : 0);
    float cell = 0;
    int now = 0;
    hidden[now][unit] = T(0);
    for (int step = 0; step < steps; ++step, now ^= 1) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const int t = backwards ? steps - 1 - step : step;
      float gate[4];
      #pragma unroll
      for (ushort g = 0; g < 4; ++g) gate[g] = from[t * 2 * 4 * UNITS + g * UNITS + unit];
      for (ushort j = 0; j < UNITS; ++j) {
        const float h = hidden[now][j];
        #pragma unroll
        for (ushort g = 0; g < 4; ++g) gate[g] += h * float(w[(g * UNITS + j) * UNITS + unit]);
      }
      const float4 open = 1.0f / (1.0f + metal::precise::exp(-float4(gate[0], gate[1], gate[2], gate[3])));
      const float fresh = metal::precise::tanh(gate[2]);
      cell = open.y * cell + open.x * fresh;
      const T h = T(open.w * metal::precise::tanh(cell));
      hidden[now ^ 1][unit] = h;
      y[((batch * steps + t) * 2 + backwards) * UNITS + unit] = h;
    }
    cells[(batch * 2 + backwards) * UNITS + unit] = cell;
    """,
    template=[("T", Dtype("float32")), ("UNITS", 40)],
    inputs=lambda rng: {
        "x": rng.uniform(0.2, 1, (2, 6, 2, 4, 40)).astype(np.float32),
        "weights": rng.uniform(0, 0.1, (2, 4, 40, 40)).astype(np.float32),
    },
    outputs={"y": ((2, 6, 2, 40), "float32"), "cells": ((2, 2, 40), "float32")},
    grid=(40, 2, 2),
    threadgroup=(40, 1, 1),
    tolerance=1e-6,
    constructs="barriers.double_buffering functions.tanh functions.exp types.float4 structure.pragma_unroll "
    "address_spaces.threadgroup_array_of_T barriers.loop_variables_across",
)
def lstm_in_both_directions(x, weights):
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    x, weights = x.astype(np.float64), weights.astype(np.float64)
    y, cells = np.zeros((2, 6, 2, 40)), np.zeros((2, 2, 40))
    for direction in range(2):
        h = np.zeros((2, 40))
        for t in range(6) if direction == 0 else range(5, -1, -1):
            gate = x[:, t, direction] + np.einsum("bj,gju->bgu", h, weights[direction])
            cells[:, direction] *= sigmoid(gate[:, 1])
            cells[:, direction] += sigmoid(gate[:, 0]) * np.tanh(gate[:, 2])
            h = sigmoid(gate[:, 3]) * np.tanh(cells[:, direction])
            y[:, t, direction] = h
    return y, cells


@body(
    """
    // Linear attention with a gate for each key: S_t = diag(g_t) S_{t-1} + k_t v_t^T, y_t = q_t S_t, by chunks of C steps in
    // sub-chunks of SUB. Within a sub-chunk the decays between two steps are made for each key; between sub-chunks queries
    // and keys carry their part of the decay, relative to the later sub-chunk's beginning, so that no factor is above one.
    constexpr short SUBS = C / SUB;
    threadgroup float q_tile[C][DK];
    threadgroup float k_tile[C][DK];
    threadgroup float v_tile[C][DV];
    threadgroup float sums[C][DK];          // of the gates' logarithms, from the chunk's beginning
    threadgroup float scores[C][C];
    threadgroup float state[DK][DV];

    const short tid = thread_index_in_threadgroup;
    const uint head = threadgroup_position_in_grid.x;
    const int length = q_shape[1];
    const device float* q_ = q + head * length * DK;
    const device float* k_ = k + head * length * DK;
    const device float* g_ = log_gates + head * length * DK;
    const device float* v_ = v + head * length * DV;

    for (short i = tid; i < DK * DV; i += THREADS) state[i / DV][i % DV] = initial[head * DK * DV + i];

    for (int first = 0; first < length; first += C) {
      const short steps = short(min(int(C), length - first));
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- What the chunk reads, zeros behind the end.
      for (short i = tid; i < C * DK; i += THREADS) {
        const short t = i / DK, d = i % DK;
        const bool inside = t < steps;
        q_tile[t][d] = inside ? q_[(first + t) * DK + d] : 0.0f;
        k_tile[t][d] = inside ? k_[(first + t) * DK + d] : 0.0f;
      }
      for (short i = tid; i < C * DV; i += THREADS)
        v_tile[i / DV][i % DV] = i / DV < steps ? v_[first * DV + i] : 0.0f;
      // A thread for each key: sums over the chunk, one after the other.
      for (short d = tid; d < DK; d += THREADS) {
        float sum = 0;
        for (short t = 0; t < C; ++t) {
          if (t < steps) sum += g_[(first + t) * DK + d];
          sums[t][d] = sum;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- Scores within the sub-chunks on the diagonal.
      for (short i = tid; i < SUBS * SUB * SUB; i += THREADS) {
        const short sub = i / (SUB * SUB), row = sub * SUB + i / SUB % SUB, column = sub * SUB + i % SUB;
        float score = 0;
        if (column <= row)
          for (short d = 0; d < DK; ++d)
            score += q_tile[row][d] * k_tile[column][d] * metal::precise::exp(sums[row][d] - sums[column][d]);
        scores[row][column] = score;
      }

      // ---- And below it: two factors for each key instead of one for each pair.
      for (short sub = 1; sub < SUBS; ++sub) {
        const short begin = sub * SUB;
        for (short i = tid; i < SUB * begin; i += THREADS) {
          const short row = begin + i / begin, column = i % begin;
          float score = 0;
          for (short d = 0; d < DK; ++d) {
            const float middle = sums[begin - 1][d];
            const float of_query = q_tile[row][d] * metal::precise::exp(sums[row][d] - middle);
            const float of_key = k_tile[column][d] * metal::precise::exp(middle - sums[column][d]);
            score += of_query * of_key;
          }
          scores[row][column] = score;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- Outputs.
      for (short i = tid; i < steps * DV; i += THREADS) {
        const short t = i / DV, d = i % DV;
        float within = 0, before = 0;
        for (short j = 0; j <= t; ++j) within += scores[t][j] * v_tile[j][d];
        for (short j = 0; j < DK; ++j) before += q_tile[t][j] * metal::precise::exp(sums[t][j]) * state[j][d];
        y[(head * length + first + t) * DV + d] = within + before;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // ---- The state behind the chunk.
      for (short i = tid; i < DK * DV; i += THREADS) {
        const short j = i / DV, d = i % DV;
        const float end = sums[C - 1][j];
        float sum = state[j][d] * metal::precise::exp(end);
        for (short t = 0; t < steps; ++t)
          sum += k_tile[t][j] * metal::precise::exp(end - sums[t][j]) * v_tile[t][d];
        state[j][d] = sum;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = tid; i < DK * DV; i += THREADS) last[head * DK * DV + i] = state[i / DV][i % DV];
    """,
    template=[("C", 16), ("SUB", 4), ("DK", 12), ("DV", 20), ("THREADS", 64)],
    inputs=lambda rng: {
        "q": rng.uniform(0, 1, (2, 39, 12)).astype(np.float32),
        "k": rng.uniform(0, 1, (2, 39, 12)).astype(np.float32),
        "v": rng.uniform(0, 1, (2, 39, 20)).astype(np.float32),
        # Some keys forget at once.
        "log_gates": rng.choice([-0.01, -0.5, -3, -30], (2, 39, 12)).astype(np.float32),
        "initial": rng.uniform(0, 1, (2, 12, 20)).astype(np.float32),
    },
    outputs={"y": ((2, 39, 20), "float32"), "last": ((2, 12, 20), "float32")},
    grid=(2 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    # Sums of logarithms reach hundreds.
    tolerance=2e-5,
    constructs="barriers.in_loop address_spaces.threadgroup_2d_array functions.exp barriers.run_time_trip_count",
)
def gated_linear_attention_by_chunks(q, k, v, log_gates, initial):
    q, k, v, gates, state = (a.astype(np.float64) for a in (q, k, v, np.exp(log_gates.astype(np.float64)), initial))
    y = np.zeros((2, 39, 20))
    for t in range(39):
        state = gates[:, t, :, None] * state + k[:, t, :, None] * v[:, t, None]
        y[:, t] = np.einsum("hk,hkv->hv", q[:, t], state)
    return y, state


@body(
    """
    // Several reflections for each step: S = S (I - b_j k_j k_j^T) + b_j v_j k_j^T for j = 1 ... N, then one output. Keys are
    // made units first. The state's rows are spread over quadgroups: eight rows for each simdgroup, KEYS / 4 keys for a lane.
    constexpr ushort PER = KEYS / 4;
    const ushort part = thread_index_in_quadgroup;
    const uint row = thread_position_in_grid.y * 8 + quadgroup_index_in_threadgroup % 8;
    const uint rows = 8 * threads_per_grid.y, head = thread_position_in_grid.z;
    const int steps = q_shape[1];
    vec<float, 4> state[PER / 4];
    for (ushort i = 0; i < PER / 4; ++i) state[i] = 0;
    for (int t = 0; t < steps; ++t) {
      const int at = head * steps + t;
      for (ushort j = 0; j < N; ++j) {
        device const float4* key = (device const float4*)(k + (at * N + j) * KEYS) + part * (PER / 4);
        float square = 0, seen = 0;
        for (ushort i = 0; i < PER / 4; ++i) {
          square += length_squared(key[i]);
          seen += dot(state[i], key[i]);
        }
        const float inverse = rsqrt(quad_sum(square));
        seen = quad_sum(seen) * inverse;
        const float change = beta[at * N + j] * (v[(at * N + j) * rows + row] - seen) * inverse;
        for (ushort i = 0; i < PER / 4; ++i) state[i] = fma(key[i], change, state[i]);
      }
      float sum = 0;
      device const float4* query = (device const float4*)(q + at * KEYS) + part * (PER / 4);
      for (ushort i = 0; i < PER / 4; ++i) sum += dot(query[i], state[i]);
      sum = quad_sum(sum);
      if (part == 0) y[at * rows + row] = sum;
    }
    """,
    template=[("N", 3), ("KEYS", 32)],
    inputs=lambda rng: {
        "q": rng.uniform(0, 1, (2, 5, 32)).astype(np.float32),
        "k": (rng.uniform(0, 1, (2, 5, 3, 32)) * (rng.random((2, 5, 3, 32)) < 0.3) + 0.01).astype(np.float32),
        "v": rng.uniform(2, 3, (2, 5, 3, 16)).astype(np.float32),
        # Above one a reflection turns the sign.
        "beta": rng.uniform(0.5, 1.5, (2, 5, 3)).astype(np.float32),
    },
    outputs={"y": ((2, 5, 16), "float32")},
    grid=(32, 2, 2),
    threadgroup=(32, 1, 1),
    tolerance=2e-6,
    constructs="attributes.thread_index_in_quadgroup attributes.quadgroup_index_in_threadgroup simdgroup.quad_sum "
    "functions.length_squared functions.rsqrt functions.fma types.vec",
)
def several_reflections_for_each_step(q, k, v, beta):
    q, k, v, beta = (a.astype(np.float64) for a in (q, k, v, beta))
    unit = k / np.sqrt((k**2).sum(-1, keepdims=True))
    y = np.zeros((2, 5, 16))
    for head in range(2):
        state = np.zeros((16, 32))
        for t in range(5):
            for j in range(3):
                key = unit[head, t, j]
                state = state @ (np.eye(32) - beta[head, t, j] * np.outer(key, key))
                state += beta[head, t, j] * np.outer(v[head, t, j], key)
            y[head, t] = state @ q[head, t]
    return y


@body(
    """
    // The gradient of a scan with a scalar decay for each head: lanes are the head's channels, a lane has N states. Everything is
    // recomputed from the states at the beginnings of segments, so that little is kept.
    constexpr int SEGMENT = 4;
    const ushort p = thread_index_in_simdgroup;
    const uint head = threadgroup_position_in_grid.x, heads = threadgroups_per_grid.x;
    const int steps = x_shape[0];
    const float rate = a[head];
    float state[N], grad[N];
    float kept[SEGMENT][N];
    for (int n = 0; n < N; ++n) state[n] = grad[n] = 0;
    device float* segments = starts + head * (steps / SEGMENT) * N * 32;

    #define DECAY(t) metal::precise::exp(dt[(t) * heads + head] * rate)
    #define INPUT(t) (dt[(t) * heads + head] * x[((t) * heads + head) * 32 + p])
    #define ADVANCE(t)                                                            \
      {                                                                           \
        const float decay = DECAY(t), in = INPUT(t);                              \
        for (int n = 0; n < N; ++n) state[n] = state[n] * decay + in * b[(t) * N + n]; \
      }

    for (int t = 0; t < steps; ++t) {
      if (t % SEGMENT == 0)
        for (int n = 0; n < N; ++n) segments[(t / SEGMENT * N + n) * 32 + p] = state[n];
      ADVANCE(t)
    }
    float d_rate = 0;
    for (int segment = steps / SEGMENT - 1; segment >= 0; --segment) {
      for (int n = 0; n < N; ++n) state[n] = segments[(segment * N + n) * 32 + p];
      for (int i = 0; i < SEGMENT; ++i) {
        for (int n = 0; n < N; ++n) kept[i][n] = state[n];   // before the step
        ADVANCE(segment * SEGMENT + i)
      }
      for (int i = SEGMENT - 1; i >= 0; --i) {
        const int t = segment * SEGMENT + i;
        const float out = dy[(t * heads + head) * 32 + p], decay = DECAY(t), in = INPUT(t);
        const float step = dt[t * heads + head], own = x[(t * heads + head) * 32 + p];
        float d_in = 0, d_decay = 0;
        for (int n = 0; n < N; ++n) {
          const float after = kept[i][n] * decay + in * b[t * N + n];
          const float for_c = simd_sum(out * after);
          grad[n] += out * c[t * N + n];
          const float for_b = simd_sum(grad[n] * in);
          if (p == 0) {
            dc[(t * heads + head) * N + n] = for_c;
            db[(t * heads + head) * N + n] = for_b;
          }
          d_in += grad[n] * b[t * N + n];
          d_decay += grad[n] * kept[i][n];
          grad[n] *= decay;
        }
        dx[(t * heads + head) * 32 + p] = d_in * step;
        const float d_exponent = simd_sum(d_decay) * decay;
        const float d_step = simd_sum(d_in * own) + d_exponent * rate;
        d_rate += d_exponent * step;
        if (p == 0) ddt[t * heads + head] = d_step;
      }
    }
    if (p == 0) da[head] = d_rate;
    """,
    template=[("N", 3)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1, (8, 2, 32)).astype(np.float32),
        "dt": rng.uniform(0.1, 0.5, (8, 2)).astype(np.float32),
        "a": np.array([-0.25, -0.125], np.float32),
        "b": rng.uniform(0.5, 1, (8, 3)).astype(np.float32),
        "c": rng.uniform(0.5, 1, (8, 3)).astype(np.float32),
        "dy": rng.uniform(0.5, 1, (8, 2, 32)).astype(np.float32),
    },
    outputs={
        "dx": ((8, 2, 32), "float32"),
        "ddt": ((8, 2), "float32"),
        "da": ((2,), "float32"),
        "db": ((8, 2, 3), "float32"),
        "dc": ((8, 2, 3), "float32"),
        "starts": ((2, 2, 3, 32), "float32"),
    },
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=2e-6,
    constructs="structure.define structure.multi_line_macro simdgroup.sum structure.dynamic_local_array functions.exp",
)
def scan_gradient_with_segments(x, dt, a, b, c, dy):
    """Pairs of an earlier and a later step: the loss is the sum of w(s, t) dt_s (x_s . dy_t) (b_s . c_t)."""
    x, dt, a, b, c, dy = (v.astype(np.float64) for v in (x, dt, a, b, c, dy))
    dx, ddt, da = np.zeros((8, 2, 32)), np.zeros((8, 2)), np.zeros(2)
    db, dc, starts = np.zeros((8, 2, 3)), np.zeros((8, 2, 3)), np.zeros((2, 2, 3, 32))
    for h in range(2):
        for later in range(8):
            for s in range(later + 1):
                w = np.exp(a[h] * dt[s + 1 : later + 1, h].sum())
                dots, states = x[s, h] @ dy[later, h], b[s] @ c[later]
                term = w * dt[s, h] * dots * states
                dx[s, h] += w * dt[s, h] * states * dy[later, h]
                ddt[s, h] += term / dt[s, h]
                ddt[s + 1 : later + 1, h] += term * a[h]
                da[h] += term * dt[s + 1 : later + 1, h].sum()
                db[s, h] += w * dt[s, h] * dots * c[later]
                dc[later, h] += w * dt[s, h] * dots * b[s]
        for s in range(4):
            w = np.exp(a[h] * dt[s + 1 : 4, h].sum())
            starts[h, 1] += w * dt[s, h] * b[s][:, None] * x[s, h]
    return dx, ddt, da, db, dc, starts
