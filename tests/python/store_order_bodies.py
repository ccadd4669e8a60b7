"""Metal bodies whose threads store to one element from the sides of a branch.

The reference runs one thread after the other, which decides who is last.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import kiln
import numpy as np

THREADS, ELEMENTS = 128, 16
HEAD = "uint t = thread_position_in_grid.x; int k = place[t], v = x[t];\n"

# A thread's stores, in order: what they write of the arrays `y` and `z`, by index.
Thread = Callable[[int, np.ndarray, np.ndarray, dict, dict], None]
BODIES: dict[str, tuple[str, Thread]] = {}


def body(name, source):
    def add(thread):
        BODIES[name] = (HEAD + source, thread)
        return thread

    return add


@body("one_store", "y[k] = v;")
def _(t, k, v, y, z):
    y[k[t]] = v[t]


@body("two_sides", "if (v & 1) y[k] = v; else y[k] = -v;")
def _(t, k, v, y, z):
    y[k[t]] = v[t] if v[t] & 1 else -v[t]


@body("one_element", "if (v & 1) y[3] = v; else y[3] = -v;")
def _(t, k, v, y, z):
    y[3] = v[t] if v[t] & 1 else -v[t]


@body("an_element_for_some_threads", "if (v & 1) y[t % 5] = v; else y[t % 5] = -v;")
def _(t, k, v, y, z):
    y[t % 5] = v[t] if v[t] & 1 else -v[t]


@body("other_indices", "if (v & 1) y[k] = v; else y[place[t ^ 1]] = -v;")
def _(t, k, v, y, z):
    if v[t] & 1:
        y[k[t]] = v[t]
    else:
        y[k[t ^ 1]] = -v[t]


@body("three_sides", "if (v < 30) y[k] = 1; else if (v < 60) y[k] = v; else y[k] = -v;")
def _(t, k, v, y, z):
    y[k[t]] = 1 if v[t] < 30 else v[t] if v[t] < 60 else -v[t]


@body("a_side_that_stores_nothing", "if (v < 30) y[k] = 1000 + v; else if (v < 60) y[k] = v;")
def _(t, k, v, y, z):
    if v[t] < 60:
        y[k[t]] = v[t] + 1000 * (v[t] < 30)


@body(
    "a_switch",
    "switch (v & 3) { case 0: y[k] = v; break; case 1: y[k] = -v; break; case 2: y[k] = 2 * v; break; default: y[k] = 7; }",
)
def _(t, k, v, y, z):
    y[k[t]] = [v[t], -v[t], 2 * v[t], 7][v[t] & 3]


@body(
    "branches_in_branches",
    "if (v & 1) { if (v & 2) y[k] = v; else y[k] = -v; } else { if (v & 4) y[k] = 2 * v; else y[k] = 5; }",
)
def _(t, k, v, y, z):
    y[k[t]] = (v[t] if v[t] & 2 else -v[t]) if v[t] & 1 else (2 * v[t] if v[t] & 4 else 5)


@body("both_sides_store_to_two_arrays", "if (v & 1) { y[k] = v; z[k] = 1; } else { z[k] = 2; y[k] = -v; }")
def _(t, k, v, y, z):
    y[k[t]] = v[t] if v[t] & 1 else -v[t]
    z[k[t]] = 1 if v[t] & 1 else 2


@body(
    "code_behind_a_store",
    "int r; if (v & 1) { y[k] = v; r = x[t ^ 1] * 3; } else { y[k] = -v; r = x[t ^ 2] + 1; } z[k] = r;",
)
def _(t, k, v, y, z):
    y[k[t]] = v[t] if v[t] & 1 else -v[t]
    z[k[t]] = v[t ^ 1] * 3 if v[t] & 1 else v[t ^ 2] + 1


@body("a_load_between", "if (v & 1) { int old = z[t % 3]; y[k] = v + old * 0; } else { y[k] = -v; }")
def _(t, k, v, y, z):
    y[k[t]] = v[t] if v[t] & 1 else -v[t]


@body("returns", "if (v & 1) { y[k] = v; return; } y[k] = -v;")
def _(t, k, v, y, z):
    y[k[t]] = v[t] if v[t] & 1 else -v[t]


@body("a_long_side", "if (v & 1) y[k] = int(1000.0f * sqrt(float(v) / 7.0f)); else y[k] = -v;")
def _(t, k, v, y, z):
    y[k[t]] = int(np.float32(1000) * np.sqrt(np.float32(v[t]) / np.float32(7))) if v[t] & 1 else -v[t]


@body("outside_of_the_array", "if (v & 1) y[k * 3 - 8] = v; else y[k * 3 - 8] = -v;")
def _(t, k, v, y, z):
    if 0 <= k[t] * 3 - 8 < ELEMENTS:
        y[k[t] * 3 - 8] = v[t] if v[t] & 1 else -v[t]


@body(
    "in_each_iteration_of_a_loop",
    "for (int n = 0; n < 3; ++n) { if (x[t ^ n] & 1) y[16 * n + k] = v; else y[16 * n + k] = -v; }",
)
def _(t, k, v, y, z):
    for n in range(3):
        y[16 * n + k[t]] = v[t] if v[t ^ n] & 1 else -v[t]


@body(
    "threadgroup_memory",
    """
    threadgroup int s[16];
    if (t < 16) s[t] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (v & 1) s[k] = v; else s[k] = -v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < 16) y[t] = s[t];
    """,
)
def _(t, k, v, y, z):
    for e in range(16):
        y.setdefault(e, 0)
    y[k[t]] = v[t] if v[t] & 1 else -v[t]


@body("bytes", "device uchar* b = (device uchar*)z; if (v & 1) b[k] = uchar(v); else b[k] = uchar(v + 1);")
def _(t, k, v, y, z):
    word, byte = divmod(int(k[t]), 4)
    value = int(v[t]) + (0 if v[t] & 1 else 1)
    z[word] = (z.get(word, 0) & ~(255 << 8 * byte)) | (value & 255) << 8 * byte


def random_body(seed):
    """Nested branches, at the end of each of whose sides is a store to `y[k]`, or to no element."""
    rng = random.Random(seed)

    def side(depth):
        if depth == 0 or rng.random() < 0.2:
            if rng.random() < 0.15:
                return "", lambda t, k, v, y: None
            a, b = rng.randint(-9, 9), rng.randint(-99, 99)
            work = f"v = v * 3 + {b}; " if rng.random() < 0.3 else ""

            def store(t, k, v, y):
                value = 3 * int(v) + b if work else int(v)
                y[k[t]] = a * value + b

            return f"{work}y[k] = {a} * v + {b};", store
        bit, with_else = rng.randint(0, 6), rng.random() < 0.8
        first, run_first = side(depth - 1)
        other, run_other = side(depth - 1) if with_else else ("", lambda t, k, v, y: None)

        def run(t, k, v, y):
            (run_first if int(v) >> bit & 1 else run_other)(t, k, v, y)

        return f"if (v >> {bit} & 1) {{ {first} }}" + (f" else {{ {other} }}" if with_else else ""), run

    source, run = side(4)
    return HEAD + source, lambda t, k, v, y, z: run(t, k, v[t], y)


for seed in range(24):
    BODIES[f"random_{seed}"] = random_body(seed)


def inputs():
    rng = np.random.default_rng(8)
    return rng.integers(0, 100, THREADS).astype(np.int32), rng.integers(0, ELEMENTS, THREADS).astype(np.int32)


def result(name):
    """The outputs, and the engine."""
    kernel = kiln.metal_kernel(name="k", input_names=["x", "place"], output_names=["y", "z"], source=BODIES[name][0])
    size = 3 * ELEMENTS if "loop" in name else ELEMENTS
    y, z = kernel(
        inputs=list(inputs()),
        grid=(THREADS, 1, 1),
        threadgroup=(THREADS, 1, 1),
        output_shapes=[(size,), (ELEMENTS,)],
        output_dtypes=[np.int32, np.int32],
        init_value=0,
    )
    return (y, z), kernel.history[-1].engine


def expected(name):
    x, place = inputs()
    size = 3 * ELEMENTS if "loop" in name else ELEMENTS
    y: dict[int, int] = {}
    z: dict[int, int] = {}
    for t in range(THREADS):
        BODIES[name][1](t, place, x, y, z)
    return [
        np.array([stored.get(e, 0) for e in range(length)], np.int32) for stored, length in ((y, size), (z, ELEMENTS))
    ]
