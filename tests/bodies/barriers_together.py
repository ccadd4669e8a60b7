"""Barriers that all simdgroups come to on the same way, in threadgroups of whole simdgroups and others.

The SIMD engine makes loops over simdgroups of these: values that live from one barrier to the next are each simdgroup's
own, and some of them share a place.
"""

import numpy as np

from bodies import body

# Grid and threadgroup: one simdgroup, a row of a power of two, of another number, several rows, a cut edge, parts.
_SHAPES = {
    "one_simdgroup": ((96, 1, 1), (32, 1, 1)),
    "eight": ((512, 1, 1), (256, 1, 1)),
    "three": ((192, 1, 1), (96, 1, 1)),
    "rows": ((64, 4, 2), (32, 4, 1)),
    "rows_of_16": ((32, 8, 1), (16, 8, 1)),
    "cut": ((300, 1, 1), (128, 1, 1)),
    "cut_rows": ((300, 3, 2), (128, 1, 1)),
    "parts": ((144, 1, 1), (72, 1, 1)),
}
_SOURCE = """
    threadgroup int s[256];
    uint t = thread_index_in_threadgroup;
    uint3 size = threads_per_threadgroup, at = thread_position_in_grid;
    uint count = size.x * size.y * size.z, next = (t + 1) % count, far = (t + 33) % count;
    uint i = at.x + threads_per_grid.x * (at.y + threads_per_grid.y * at.z);
    int a = x[i], b = int(t), kept[3] = {a, b, 7}, first = 0;
    s[t] = a;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int turn = 0; turn < steps[0]; ++turn) {
        int before = a;
        int seen = s[next] + turn;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        a = b + seen;
        b = before;
        kept[(t + uint(turn)) % 3] += a;
        if (seen % 2 == 0) s[t] = a;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (turn == 0) first = a;
        if (threadgroup_position_in_grid.x % 2 == 0) {
            int distant = s[far];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            s[t] ^= distant;
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (turn >= steps[1]) break;
    }
    y[i] = a + 3 * b + 5 * s[next] + 7 * kept[t % 3] + 11 * first;
"""


def _group(x, number, steps):
    """What the threads of a threadgroup give, whose places in x's row it has."""
    n = len(x)
    t = np.arange(n)
    a, b, s = x.astype(np.int64), t.copy(), x.astype(np.int64)
    kept, first = np.stack([a, b, np.full(n, 7)]), np.zeros(n, np.int64)
    for turn in range(steps[0]):
        before, seen = a, s[(t + 1) % n] + turn
        a, b = b + seen, before
        kept[(t + turn) % 3, t] += a
        s = np.where(seen % 2 == 0, a, s)
        first = a if turn == 0 else first
        if number % 2 == 0:
            s = s ^ s[(t + 33) % n]
        if turn >= steps[1]:
            break
    return a + 3 * b + 5 * s[(t + 1) % n] + 7 * kept[t % 3, t] + 11 * first


for _name, (_grid, _threadgroup) in _SHAPES.items():
    _threads = int(np.prod(_grid))

    @body(
        _SOURCE,
        name=f"barriers_together_{_name}",
        inputs=lambda rng, threads=_threads: {
            "x": rng.integers(-99, 99, threads, np.int32),
            "steps": np.array([6, 4], np.int32),
        },
        outputs={"y": ((_threads,), "int32")},
        grid=_grid,
        threadgroup=_threadgroup,
        constructs="barriers.in_loop barriers.under_uniform_condition",
    )
    def _together(x, steps, grid=_grid, threadgroup=_threadgroup):
        values = x.reshape(grid[::-1])
        result = np.zeros(values.shape, np.int64)
        for z in range(0, grid[2], threadgroup[2]):
            for y in range(0, grid[1], threadgroup[1]):
                for x_first in range(0, grid[0], threadgroup[0]):
                    place = tuple(
                        slice(start, start + size)
                        for start, size in zip((z, y, x_first), threadgroup[::-1], strict=True)
                    )
                    part = values[place]
                    given = _group(part.reshape(-1), x_first // threadgroup[0], steps.tolist())
                    result[place] = given.reshape(part.shape)
        return result.reshape(-1).astype(np.int32)


@body(
    """
    // What a loop computes that simdgroups leave in different iterations, wanted behind a barrier.
    threadgroup uint passed[128];
    uint t = thread_position_in_threadgroup.x, simdgroup = simdgroup_index_in_threadgroup;
    passed[t] = t;
    uint i = 0, at;
    do {
        at = simdgroup + 8 * i;
        i += 1;
    } while (more[at] != 0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = at + 1000 * passed[127 - t];
    """,
    inputs=lambda rng: {"more": np.array([s + 8 * i < 40 - 7 * s for i in range(6) for s in range(8)], np.int32)},
    outputs={"y": ((128,), "uint32")},
    grid=(128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="barriers.loop_variables_across",
)
def barriers_behind_loops_of_their_own(more):
    found = []
    for simdgroup in range(4):
        at = simdgroup
        while more[at]:
            at += 8
        found.append(at)
    return (np.repeat(found, 32) + 1000 * np.arange(128)[::-1]).astype(np.uint32)
