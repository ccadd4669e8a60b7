"""Bodies whose simdgroups read rows that lie between one another's (docs/design/simd-engine.md). Numbers are whole and
small, so that any order of sums gives the same."""

import numpy as np

from bodies import body

# By name: how many rows of 32 elements are read in memory's order.
ROWS_IN_ORDER: dict[str, int] = {}
# Those of which AVX2's registers have too few for the rows of all simdgroups.
NEED_AVX512 = ("reads_halves_in_order", "reads_two_arrays_in_order")

_SUM_OF_THREADGROUP = """
    threadgroup float sums[32];
    float total = simd_sum(sum);
    if (thread_index_in_simdgroup == 0) sums[simdgroup_index_in_threadgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    total = 0;
    for (uint i = 0; i < simdgroups_per_threadgroup; ++i) total += sums[i];
    if (thread_index == 0) y[group] = total;
"""


def _add(name, rows, source, reference, reads, threads=256, step=None, dtype=np.float32):
    groups, length = 3, reads * (step or threads)
    ROWS_IN_ORDER[name] = rows
    body(
        f"""
        uint thread_index = thread_position_in_threadgroup.x, group = threadgroup_position_in_grid.x;
        uint first = group * {length} + thread_index;
        float sum = 0;
        {source}
        {_SUM_OF_THREADGROUP}
        """,
        name=name,
        inputs=lambda rng: {
            "x": rng.integers(-8, 9, groups * length).astype(dtype),
            "z": rng.integers(-8, 9, groups * length).astype(dtype),
        },
        outputs={"y": ((groups,), "float32")},
        grid=(threads * groups, 1, 1),
        threadgroup=(threads, 1, 1),
        constructs="synchronisation.threadgroup_barrier simdgroup.sum",
    )(lambda x, z: reference(x.reshape(groups, length).astype(np.float32), z.reshape(groups, length)).ravel())


def _add_sums(name, rows, reads, **options):
    threads, step = options.get("threads", 256), options.get("step") or options.get("threads", 256)
    _add(
        name,
        rows,
        f"for (uint i = 0; i < {reads}; ++i) sum += x[first + i * {step}];",
        lambda x, z: x.reshape(-1, reads, step)[:, :, :threads].sum((1, 2)),
        reads,
        **options,
    )


_add_sums("reads_in_order", 128, 16)
_add_sums("reads_in_order_four_simdgroups", 64, 16, threads=128)
_add_sums("reads_halves_in_order", 128, 16, dtype=np.float16)
# One simdgroup has no jumps, rows with others between them keep them, and few rows are not worth it.
_add_sums("reads_one_simdgroup_as_it_does", 0, 16, threads=32)
_add_sums("reads_rows_between_others_as_it_does", 0, 16, step=512)
_add_sums("reads_few_rows_as_it_does", 0, 4, threads=64)


def _add_with(name, rows, between, reads=16, **options):
    """With something between the rows of each simdgroup."""
    _add(
        name,
        rows,
        f"for (uint i = 0; i < {reads}; ++i) {{ {between} sum += x[first + i * 256]; }}",
        lambda x, z: x.sum(1),
        reads,
        **options,
    )


# What is written in between may be what is read, and what is read twice is the same.
_add_with("reads_rows_between_stores_as_it_does", 0, "if (thread_index == 0 && i % 8 == 1) y[group] = sum;")
_add_with(
    "reads_rows_between_atomics_as_it_does",
    0,
    "if (thread_index == 0 && i % 8 == 1)"
    "  atomic_fetch_add_explicit((device atomic_float*)&y[group], 1.0f, memory_order_relaxed);",
)
_add(
    "reads_two_arrays_in_order",
    64,
    "for (uint i = 0; i < 8; ++i) sum += x[first + i * 128] * z[first + i * 128];",
    lambda x, z: (x * z).sum(1),
    8,
    threads=128,
)
_add(
    "reads_two_large_arrays_as_it_does",
    0,
    "for (uint i = 0; i < 8; ++i) sum += x[first + i * 256] * z[first + i * 256];",
    lambda x, z: (x * z).sum(1),
    8,
)
_add(
    "reads_rows_twice_as_it_does",
    0,
    "for (uint i = 0; i < 16; ++i) sum += x[first + i * 256] - 2 * x[first + (15 - i) * 256];",
    lambda x, z: -x.sum(1),
    16,
)
