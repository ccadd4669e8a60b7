"""Functions that a body calls several times with the same arguments, or with arguments that only look the same."""

import numpy as np

from bodies import body


def _values(rng):
    return {"x": rng.uniform(-40, 40, 700).astype(np.float32)}


@body(
    """
    uint i = thread_position_in_grid.x;
    float2 p = turned(float2(x[i], 1.0f), 3.0f * x[i]), q = turned(p, -3.0f * x[i]);
    out[4 * i] = p.x;
    out[4 * i + 1] = p.y;
    out[4 * i + 2] = q.x;
    out[4 * i + 3] = q.y;
    """,
    header="""
    inline float2 turned(float2 p, float angle) {
      return float2(p.x * cos(angle) - p.y * sin(angle), p.x * sin(angle) + p.y * cos(angle));
    }
    """,
    inputs=_values,
    outputs={"out": ((700, 4), "float32")},
    grid=(700, 1, 1),
    threadgroup=(96, 1, 1),
    tolerance=3e-4,
    constructs="functions.sin functions.cos structure.helper_function",
)
def points_turned_there_and_back(x):
    angle = (np.float32(3) * x).astype(np.float64)
    x = x.astype(np.float64)
    turned = x * np.cos(angle) - np.sin(angle), x * np.sin(angle) + np.cos(angle)
    return np.stack([*turned, x, np.ones_like(x)], 1)


@body(
    """
    uint i = thread_position_in_grid.x;
    out[i] = luma(x[i], steps) * 4 + chroma(x[i], steps);
    """,
    header="""
    inline int root(int v, int steps) {
      if (v < 0) return -1;
      int r = 0;
      for (int k = steps; k >= 0; --k) {
        int next = r | 1 << k;
        if (next * next <= v) r = next;
      }
      return r;
    }
    inline int luma(int v, int steps) { return v & 1 ? root(v, steps) : 2 * root(v / 2, steps); }
    inline int chroma(int v, int steps) { return root(v, steps) - root(v / 2, steps); }
    """,
    inputs=lambda rng: {"x": rng.integers(-500, 100000, 600, np.int32), "steps": np.int32(9)},
    outputs={"out": ((600,), "int32")},
    grid=(600, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="structure.helper_function",
)
def roots_on_two_sides_of_branches(x, steps):
    def root(v):
        return np.where(v < 0, -1, np.sqrt(np.maximum(v, 0).astype(np.float64)).astype(np.int64))

    half = np.trunc(x / 2).astype(np.int64)
    return np.where(x & 1, root(x), 2 * root(half)) * 4 + root(x) - root(half)


# A store beyond the array does nothing, a load from there gives zero: both calls have another argument.
@body(
    """
    uint i = thread_position_in_grid.x;
    int before = folded(out[i + shift]);
    out[i + shift] = x[i];
    int after = folded(out[i + shift]);
    out[i] = 1000 * before + after;
    """,
    header="inline int folded(int v) { if (v > 50) v = v % 50; else v += 3; return v; }",
    inputs=lambda rng: {"x": rng.integers(0, 100, 300, np.int32), "shift": np.int32(300)},
    outputs={"out": ((300,), "int32")},
    grid=(300, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="structure.helper_function",
)
def stores_beyond_between_two_calls(x, shift):
    return np.full(300, 3003)


@body(
    """
    threadgroup float shared[64];
    uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;
    shared[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float a = folded(shared[t ^ 1]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    shared[t ^ 1] = x[i] + 1.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = a * 256.0f + folded(shared[t ^ 1]);
    """,
    header="inline float folded(float v) { return v < 0.0f ? -0.5f * v : v > 8.0f ? 8.0f : v; }",
    inputs=lambda rng: {"x": rng.integers(-20, 20, 640).astype(np.float32)},
    outputs={"out": ((640,), "float32")},
    grid=(640, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.helper_function",
)
def calls_with_a_barrier_between(x):
    def fold(v):
        return np.where(v < 0, -0.5 * v, np.minimum(v, 8))

    return fold(x.reshape(-1, 2)[:, ::-1].ravel()) * 256 + fold(x + 1)
