"""Pointers to threadgroup memory as values: exchanged, chosen, in arrays and classes, across barriers."""

import numpy as np

from bodies import Dtype, body


def _turned(n):
    """What eight threads that each pass `value + 1` to the left leave after n steps."""
    values = np.arange(8)
    for _ in range(n):
        values = np.roll(values, -1) + 1
    return values.astype(np.float32)


_STEPS = """
    for (int i = 0; i < n; ++i) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      b[u] = a[(u + 1) % 8] + 1;
      threadgroup float* t = a; a = b; b = t;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[u] = a[u];
"""

# Where the two buffers lie: in one array of arrays, in one array, in two.
for _name, _buffers in {
    "rows": "threadgroup float s[2][8]; threadgroup float* a = s[0]; threadgroup float* b = s[1];",
    "halves": "threadgroup float s[16]; threadgroup float* a = s; threadgroup float* b = s + 8;",
    "arrays": "threadgroup float s[8], r[8]; threadgroup float* a = s; threadgroup float* b = r;",
}.items():

    @body(
        "const uint u = thread_position_in_threadgroup.x;" + _buffers + "a[u] = u;" + _STEPS,
        inputs=lambda rng: {"n": 3},
        outputs={"y": ((8,), "float32")},
        grid=(8, 1, 1),
        threadgroup=(8, 1, 1),
        constructs="address_spaces.threadgroup_pointers barriers.double_buffering",
        name=f"exchanged_{_name}",
    )
    def _exchanged(n):
        return _turned(n)


@body(
    """
    threadgroup float s[16];
    const uint u = thread_position_in_threadgroup.x;
    threadgroup float* a = s;
    threadgroup float* b = s + 8;
    a[u] = u;
    b[u] = 3 * u;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (n > 2) {
      threadgroup float* t = a;
      a = b;
      b = t;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[u] = a[u] + 10 * b[u];
    // Threads need not agree.
    threadgroup float* mine = u % 2 ? s + 4 : s;
    for (uint i = 0; i < u % 3; ++i) mine = mine == s ? s + 8 : s + 4;
    z[u] = *mine;
    """,
    inputs=lambda rng: {"n": 3},
    outputs={"y": ((8,), "float32"), "z": ((8,), "float32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="address_spaces.threadgroup_pointers",
)
def chosen_halves(n):
    u = np.arange(8)
    s = np.concatenate([u, 3 * u]).astype(np.float32)
    places = []
    for i in range(8):
        place = 4 if i % 2 else 0
        for _ in range(i % 3):
            place = 8 if place == 0 else 4
        places.append(place)
    return (13 * u).astype(np.float32), s[places]


@body(
    """
    threadgroup float s[16];
    const uint u = thread_position_in_threadgroup.x;
    Buffers both;
    both.a = s;
    both.b = s + 8;
    both.a[u] = u;
    for (int i = 0; i < n; ++i) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      both.b[u] = both.a[(u + 1) % 8] + 1;
      both.exchange();
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[u] = both.a[u];
    """,
    header="""
    struct Buffers {
      threadgroup float* a;
      threadgroup float* b;
      void exchange() thread { threadgroup float* t = a; a = b; b = t; }
    };
    """,
    inputs=lambda rng: {"n": 4},
    outputs={"y": ((8,), "float32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="address_spaces.threadgroup_pointers",
)
def exchanged_members(n):
    return _turned(n)


# An array of pointers is a constant to Clang where all of them are known.
for _name, _buffers in {
    "halves": "threadgroup float s[16]; threadgroup float* b[2] = {s, s + 8};",
    "arrays": "threadgroup float s[8], r[8]; threadgroup float* b[2] = {s, r};",
    "constant_halves": "threadgroup float s[16]; threadgroup float* const b[2] = {s, s + 8};",
}.items():

    @body(
        _buffers
        + """
        const uint u = thread_position_in_threadgroup.x;
        b[0][u] = u;
        for (int i = 0; i < n; ++i) {
          threadgroup_barrier(mem_flags::mem_threadgroup);
          b[(i + 1) & 1][u] = b[i & 1][(u + 1) % 8] + 1;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[u] = b[n & 1][u];
        """,
        inputs=lambda rng: {"n": 3},
        outputs={"y": ((8,), "float32")},
        grid=(8, 1, 1),
        threadgroup=(8, 1, 1),
        constructs="address_spaces.threadgroup_pointers barriers.double_buffering",
        name=f"array_of_pointers_to_{_name}",
    )
    def _array_of_pointers(n):
        return _turned(n)


for _name, _access in {
    "atomic": """
    #define TYPE atomic_int
    #define PUT(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
    #define GET(p) atomic_load_explicit(p, memory_order_relaxed)
    #define ADD(p, v) atomic_fetch_add_explicit(p, v, memory_order_relaxed)
    """,
    "plain": """
    #define TYPE int
    #define PUT(p, v) *(p) = v
    #define GET(p) *(p)
    #define ADD(p, v) *(p) += v
    """,
}.items():

    @body(
        """
        threadgroup TYPE sums[128];
        uint t = thread_position_in_threadgroup.x;
        PUT(sums + t, 0);
        PUT(sums + 64 + t, 0);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        Forces out{sums, 3, {sums + 64, sums}};
        out.add(t, int(t));
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[t] = GET(sums + t) + 1000 * GET(sums + 64 + t);
        """,
        header=_access
        + """
        struct Forces {
          threadgroup TYPE* forces;
          int scale;
          threadgroup TYPE* others[2];
          void add(int atom, int f) const thread {
            ADD(forces + atom, scale * f);
            for (int i = 0; i < 2; ++i) ADD(others[i] + atom, f + i);
          }
        };
        """,
        outputs={"y": ((64,), "int32")},
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="address_spaces.threadgroup_pointers",
        name=f"member_points_to_{_name}_sums",
    )
    def _member_points_to_sums():
        t = np.arange(64)
        return (4 * t + 1 + 1000 * t).astype(np.int32)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


@body(
    """
    // Steps of a GRU. The hidden state has two buffers in threadgroup memory, which change their roles; a thread has a unit.
    threadgroup float buffers[2][HIDDEN];
    const uint unit = thread_position_in_threadgroup.x, sequence = threadgroup_position_in_grid.y;
    const bool reverse = REVERSE;
    const int length = lengths[sequence];
    threadgroup float* now = buffers[0];
    threadgroup float* next = buffers[1];
    now[unit] = h0[sequence * HIDDEN + unit];
    for (int step = 0; step < STEPS; ++step) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const int t = reverse ? length - 1 - step : step;
      // Padding: nothing is computed, and zeros stand in the output. All threads of the sequence agree.
      if (step >= length) {
        y[(sequence * STEPS + step) * HIDDEN + unit] = 0;
        continue;
      }
      const device T* gates = x + (sequence * STEPS + t) * 3 * HIDDEN;   // reset, update, new: the inputs' part
      float sums[3] = {0, 0, 0};
      for (int j = 0; j < HIDDEN; ++j) {
        const float h = now[j];
        #pragma unroll
        for (int g = 0; g < 3; ++g) sums[g] += h * float(weights[(g * HIDDEN + unit) * HIDDEN + j]);
      }
      const float reset = logistic(float(gates[unit]) + sums[0]);
      const float update = logistic(float(gates[HIDDEN + unit]) + sums[1]);
      const float fresh = metal::precise::tanh(float(gates[2 * HIDDEN + unit]) + reset * (sums[2] + bias[unit]));
      const float h = mix(fresh, now[unit], update);
      next[unit] = h;
      y[(sequence * STEPS + t) * HIDDEN + unit] = h;
      threadgroup float* other = now;
      now = next;
      next = other;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    last[sequence * HIDDEN + unit] = now[unit];
    """,
    header="inline float logistic(float x) { return 1 / (1 + metal::precise::exp(-x)); }",
    template=[("T", Dtype("float16")), ("HIDDEN", 48), ("STEPS", 7), ("REVERSE", True)],
    inputs=lambda rng: {
        "x": rng.uniform(0.2, 1, (4, 7, 144)).astype(np.float16),
        "weights": rng.uniform(0, 0.1, (144, 48)).astype(np.float16),
        "bias": rng.uniform(0, 1, 48).astype(np.float32),
        "h0": rng.uniform(0.1, 1, (4, 48)).astype(np.float32),
        "lengths": np.array([7, 1, 4, 0], np.int32),
    },
    outputs={"y": ((4, 7, 48), "float32"), "last": ((4, 48), "float32")},
    grid=(48, 4, 1),
    threadgroup=(48, 1, 1),
    tolerance=1e-6,
    constructs="barriers.double_buffering barriers.with_continue functions.tanh functions.mix "
    "address_spaces.threadgroup_2d_array address_spaces.threadgroup_pointers",
)
def gru_steps_in_reverse(x, weights, bias, h0, lengths):
    x, weights, bias, h = (np.asarray(a).astype(np.float64) for a in (x, weights, bias, h0))
    y = np.zeros((4, 7, 48))
    for s in range(4):
        for t in reversed(range(lengths[s])):
            hidden = (weights @ h[s]).reshape(3, 48)
            gates = x[s, t].reshape(3, 48)
            reset, update = _sigmoid(gates[0] + hidden[0]), _sigmoid(gates[1] + hidden[1])
            fresh = np.tanh(gates[2] + reset * (hidden[2] + bias))
            h[s] = (1 - update) * fresh + update * h[s]
            y[s, t] = h[s]
    return y, h


@body(
    """
    // The pointers themselves lie in threadgroup memory, behind which other threads find them.
    const device float* threadgroup from[64];
    device float* threadgroup to;
    threadgroup float s[64];
    threadgroup float* const volatile threadgroup * unused = nullptr;
    threadgroup float* threadgroup half_of_s[2];
    const uint u = thread_position_in_threadgroup.x;
    from[u] = x + u;
    if (u == 3) to = y;
    if (u < 2) half_of_s[u] = s + 32 * u;
    s[u] = 100 * u;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    to[u] = *from[63 - u] + half_of_s[1 - u / 32][u % 32] + (unused ? 1 : 0);
    """,
    inputs=lambda rng: {"x": rng.integers(0, 99, 64).astype(np.float32)},
    outputs={"y": ((64,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="address_spaces.threadgroup_pointers address_spaces.threadgroup_array",
)
def pointers_in_threadgroup_memory(x):
    return x[::-1] + 100 * ((np.arange(64) + 32) % 64)
