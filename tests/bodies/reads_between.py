"""Bodies whose simdgroups read rows that lie between one another's (docs/design/simd-engine.md). Numbers are whole and
small, so that any order of sums gives the same."""

import numpy as np

from bodies import body
from bodies.prefetches import SUM_OF_THREADGROUP

_SUM_OF_THREADGROUP = f"""{SUM_OF_THREADGROUP}    if (thread_index == 0) y[group] = total;
"""


def _add(name, source, reference, reads, threads=256, step=None, dtype=np.float32):
    groups, length = 3, reads * (step or threads)
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


def _add_sums(name, reads, **options):
    threads, step = options.get("threads", 256), options.get("step") or options.get("threads", 256)
    _add(
        name,
        f"for (uint i = 0; i < {reads}; ++i) sum += x[first + i * {step}];",
        lambda x, z: x.reshape(-1, reads, step)[:, :, :threads].sum((1, 2)),
        reads,
        **options,
    )


_add_sums("reads_between_simdgroups", 16)
_add_sums("reads_between_four_simdgroups", 16, threads=128)
_add_sums("reads_halves_between", 16, dtype=np.float16)
# One simdgroup, rows with others between them, and few rows.
_add_sums("reads_of_one_simdgroup", 16, threads=32)
_add_sums("reads_between_others", 16, step=512)
_add_sums("reads_few_between", 4, threads=64)


def _add_with(name, between, reads=16, **options):
    """With something between the rows of each simdgroup."""
    _add(
        name,
        f"for (uint i = 0; i < {reads}; ++i) {{ {between} sum += x[first + i * 256]; }}",
        lambda x, z: x.sum(1),
        reads,
        **options,
    )


# What is written in between may be what is read, and what is read twice is the same.
_add_with("reads_between_stores", "if (thread_index == 0 && i % 8 == 1) y[group] = sum;")
_add_with(
    "reads_between_atomics",
    "if (thread_index == 0 && i % 8 == 1)"
    "  atomic_fetch_add_explicit((device atomic_float*)&y[group], 1.0f, memory_order_relaxed);",
)
_add(
    "reads_two_arrays_between",
    "for (uint i = 0; i < 8; ++i) sum += x[first + i * 128] * z[first + i * 128];",
    lambda x, z: (x * z).sum(1),
    8,
    threads=128,
)
_add(
    "reads_two_large_arrays_between",
    "for (uint i = 0; i < 8; ++i) sum += x[first + i * 256] * z[first + i * 256];",
    lambda x, z: (x * z).sum(1),
    8,
)
_add(
    "reads_twice_between",
    "for (uint i = 0; i < 16; ++i) sum += x[first + i * 256] - 2 * x[first + (15 - i) * 256];",
    lambda x, z: -x.sum(1),
    16,
)
