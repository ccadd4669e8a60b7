"""Bodies whose threadgroups read and write what a processor does not foresee (docs/design/simd-engine.md). Numbers are
whole and small, so that any order of sums gives the same."""

import numpy as np

from bodies import body

# By name: of how many cache lines a threadgroup asks for.
PREFETCHES: dict[str, int] = {}
SIMDGROUPS = 8

_SUM_OF_THREADGROUP = """
    threadgroup float sums[32];
    float total = simd_sum(sum);
    if (thread_index_in_simdgroup == 0) sums[simdgroup_index_in_threadgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    total = 0;
    for (uint i = 0; i < simdgroups_per_threadgroup; ++i) total += sums[i];
"""


def _add(name, lines, source, reference, length, threads=32 * SIMDGROUPS, groups=3, out_length=None):
    PREFETCHES[name] = lines
    body(
        f"""
        uint thread_index = thread_position_in_threadgroup.x, group = threadgroup_position_in_grid.x;
        {source}
        """,
        name=name,
        inputs=lambda rng: {
            "x": rng.integers(-8, 9, groups * length).astype(np.float32),
            "weight": rng.integers(-8, 9, length).astype(np.float32),
        },
        outputs={"y": ((groups * (out_length or length),), "float32")},
        grid=(threads * groups, 1, 1),
        threadgroup=(threads, 1, 1),
        constructs="synchronisation.threadgroup_barrier simdgroup.sum",
    )(lambda x, weight: reference(x.reshape(groups, length), weight).ravel())


def _sums(x, weight):
    return x.sum(1, keepdims=True)


def _add_sums(name, lines, reads):
    _add(
        name,
        lines,
        f"""
        float sum = 0;
        for (uint i = 0; i < {reads}; ++i) sum += x[group * {256 * reads} + i * 256 + thread_index];
        {_SUM_OF_THREADGROUP}
        if (thread_index == 0) y[group] = total;
        """,
        _sums,
        256 * reads,
        out_length=1,
    )


def _add_rows(name, lines, reads, threads=256, array="x", place="group * {length} + "):
    length = reads * threads
    at = f"{place.format(length=length)}thread_index * {reads} + i"
    _add(
        name,
        lines,
        f"""
        float sum = 0;
        for (uint i = 0; i < {reads}; ++i) sum += {array}[{at}];
        {_SUM_OF_THREADGROUP}
        for (uint i = 0; i < {reads}; ++i)
          y[group * {length} + thread_index * {reads} + i] = total - {array}[{at}];
        """,
        (lambda x, weight: x.sum(1, keepdims=True) - x)
        if array == "x"
        else (lambda x, weight: np.broadcast_to(weight.sum() - weight, x.shape)),
        length,
        threads,
    )


# Sixteen rows with jumps for each simdgroup; half of them are too few, twice as many too long.
_add_sums("asks_for_rows_with_jumps", 256, 16)
_add_sums("asks_for_no_long_rows", 0, 32)
# A page that is read, and once more, and one that is written.
_add_rows("asks_for_pages", 128, 4)
_add_rows("asks_for_two_pages", 256, 8)
_add_rows("asks_for_no_part_of_a_page", 0, 2)
# What all threadgroups read is there.
_add_rows("asks_for_what_differs", 64, 4, array="weight", place="")
