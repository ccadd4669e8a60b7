"""Bodies whose threadgroups read and write what a processor does not foresee (docs/design/simd-engine.md). Numbers are
whole and small, so that any order of sums gives the same."""

import numpy as np

from bodies import body

# By name: how many cache lines a threadgroup asks for, and how often it may come to where it does if not once: once for
# each simdgroup, or for one or two iterations.
PREFETCHES: dict[str, tuple[int, tuple[int, ...]]] = {}
SIMDGROUPS = 8

_CONSTRUCTS = "synchronisation.threadgroup_barrier simdgroup.sum"
SUM_OF_THREADGROUP = """
    threadgroup float sums[32];
    float total = simd_sum(sum);
    if (thread_index_in_simdgroup == 0) sums[simdgroup_index_in_threadgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    total = 0;
    for (uint i = 0; i < simdgroups_per_threadgroup; ++i) total += sums[i];
"""


def _add(
    name,
    lines,
    source,
    reference,
    length,
    threads=32 * SIMDGROUPS,
    groups=3,
    times=None,
    out_length=None,
    constructs=_CONSTRUCTS,
):
    PREFETCHES[name] = lines, times or (threads // 32,)
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
        constructs=constructs,
    )(lambda x, weight: reference(x.reshape(groups, length), weight).ravel())


def _add_sums(name, lines, reads, threads=32 * SIMDGROUPS, step=32 * SIMDGROUPS, times=None):
    _add(
        name,
        lines,
        f"""
        float sum = 0;
        for (uint i = 0; i < {reads}; ++i) sum += x[group * {step * reads} + i * {step} + thread_index];
        {SUM_OF_THREADGROUP}
        if (thread_index == 0) y[group] = total;
        """,
        lambda x, weight: x.reshape(-1, reads, step)[:, :, :threads].sum((1, 2)),
        step * reads,
        threads,
        times=times,
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
        {SUM_OF_THREADGROUP}
        for (uint i = 0; i < {reads}; ++i)
          y[group * {length} + thread_index * {reads} + i] = total - {array}[{at}];
        """,
        (lambda x, weight: x.sum(1, keepdims=True) - x)
        if array == "x"
        else (lambda x, weight: np.broadcast_to(weight.sum() - weight, x.shape)),
        length,
        threads,
    )


# All lines of every second KiB, of which each simdgroup reads sixteen pieces, and thirty-two in a loop.
_add_sums("reads_pages_with_jumps", 256, 16, step=512)
_add_sums("reads_pages_with_jumps_in_loops", 512, 32, times=(16, 32))
# So many pages, and not more.
_add_sums("asks_for_sixteen_pages", 1024, 64, times=(32, 64))
_add_sums("asks_for_no_more_than_sixteen_pages", 0, 68)
# Less than a page: sixteen pieces with jumps, half of them, and sixteen that follow one another.
_add_sums("asks_for_sixteen_rows_with_jumps", 32, 16, 32, 64)
_add_sums("asks_for_no_eight_rows_with_jumps", 0, 8, 32, 64)
_add_sums("asks_for_no_part_of_a_page", 0, 16, 32, 32)
# A page that is read, and once more, and one that is written.
_add_rows("reads_pages", 128, 4)
_add_rows("asks_for_two_pages", 256, 8)
# Of half a page what is written alone, and of an eighth not that either.
_add_rows("asks_for_what_is_written", 32, 2)
_add_rows("asks_for_no_eighth_of_a_page", 0, 1, threads=128)
# What all threadgroups read is there.
_add_rows("asks_for_what_differs", 64, 4, array="weight", place="")
# A KiB, of which neighbouring simdgroups' parts follow one another: the position is asked to be small enough.
_add(
    "asks_for_what_is_written_by_position",
    16,
    """
    threadgroup float values[256];
    values[thread_index] = x[thread_position_in_grid.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[thread_position_in_grid.x] = values[thread_index] + (thread_index >= 32 ? values[thread_index - 32] : 0);
    """,
    lambda x, weight: x + np.pad(x, ((0, 0), (32, 0)))[:, :256],
    256,
    constructs="synchronisation.threadgroup_barrier",
)
