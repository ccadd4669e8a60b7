"""Threadgroups whose simdgroups read rows that are far apart, which are asked for one threadgroup before; of the last
one, nothing is there to be asked for."""

import numpy as np

from bodies import body

_BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def _read(x, place):
    """Zero outside."""
    place = np.asarray(place) % 2**32
    return np.where(place < len(x), x[np.minimum(place, len(x) - 1)], 0).astype(np.float64)


for _name, _groups, _length, _first in (
    ("as_they_are", 3, 3 * 4096, 0),
    ("alone", 1, 4096, 0),
    ("over_the_end", 3, 2 * 4096 + 700, 0),
    ("outside", 2, 300, 8000),
    ("wrapping", 3, 9000, 2**32 - 4096 - 700),
):

    def _sums(x, first, groups=_groups):
        blocks = _read(x, int(first) + np.arange(groups * 4096)).reshape(groups, 4096)
        return blocks.sum(axis=1).astype(np.float32)

    for _way, _element in (("", "x[place + i * 256]"), ("_by_a_pointer", "(x + place)[i * 256]")):
        if _way and _name == "wrapping":
            continue
        body(
            f"""
        threadgroup float sums[256];
        uint thread_index = thread_position_in_threadgroup.x;
        uint place = first + threadgroup_position_in_grid.x * 4096 + thread_index;
        float sum = 0;
        for (uint i = 0; i < 16; ++i) sum += {_element};
        sums[thread_index] = sum;
        {_BARRIER}
        for (uint step = 128; step > 0; step /= 2) {{
          if (thread_index < step) sums[thread_index] += sums[thread_index + step];
          {_BARRIER}
        }}
        if (thread_index == 0) out[threadgroup_position_in_grid.x] = sums[0];
        """,
            name=f"sums_of_rows_far_apart_{_name}{_way}",
            inputs=lambda rng, length=_length, first=_first: {
                # Small and whole, so that sums have no order.
                "x": rng.integers(-3, 4, length).astype(np.float32),
                "first": np.uint32(first),
            },
            outputs={"out": ((_groups,), "float32")},
            grid=(_groups * 256, 1, 1),
            threadgroup=(256, 1, 1),
            constructs="synchronisation.threadgroup_barrier",
        )(_sums)


# ---- A threadgroup's rows by its places in x and y; the array is read where it is not changed


@body(
    f"""
    threadgroup float sums[128];
    uint2 group = threadgroup_position_in_grid.xy;
    uint thread_index = thread_position_in_threadgroup.x;
    const device float* from = x + (group.y * threadgroups_per_grid.x + group.x) * 2048 + thread_index;
    float sum = 0;
    for (uint i = 0; i < 16; ++i) sum = fma(from[i * 128], weight[i * 128 + thread_index], sum);
    sums[thread_index] = sum;
    {_BARRIER}
    uint at = (group.y * threadgroups_per_grid.x + group.x) * 128 + thread_index;
    out[at] = sums[127 - thread_index];
    """,
    inputs=lambda rng: {
        "x": rng.integers(-3, 4, 6 * 2048).astype(np.float32),
        "weight": rng.integers(-3, 4, 2048).astype(np.float32),
    },
    outputs={"out": ((6 * 128,), "float32")},
    grid=(3 * 128, 2, 1),
    threadgroup=(128, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def weighted_sums_of_rows_far_apart(x, weight):
    products = x.reshape(6, 16, 128).astype(np.float64) * weight.reshape(16, 128)
    return products.sum(axis=1)[:, ::-1].astype(np.float32).ravel()


# ---- Places that are not asked for: of a division by what another threadgroup has, and of long arithmetic, once


@body(
    f"""
    threadgroup float sums[64];
    uint thread_index = thread_position_in_threadgroup.x, group = threadgroup_position_in_grid.x;
    int dividend = int(group * 0x10000000u + 0x70000000u);
    const device float* from = x + ((uint(dividend / divisor) >> 28) & 7) * 4096 + thread_index;
    float sum = 0;
    for (uint i = 0; i < 16; ++i) sum += from[i * 256];
    sums[thread_index] = sum;
    {_BARRIER}
    out[group * 64 + thread_index] = sums[63 - thread_index];
    """,
    inputs=lambda rng: {"x": rng.integers(-3, 4, 1 << 16).astype(np.float32), "divisor": np.int32(-1)},
    outputs={"out": ((3 * 64,), "float32")},
    grid=(3 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def sums_of_rows_far_apart_by_a_quotient(x, divisor):
    rows = []
    for group in range(3):
        dividend = (group * 0x10000000 + 0x70000000 + 2**31) % 2**32 - 2**31
        # The quotient of the smallest number is it itself.
        place = ((-dividend) % 2**32 >> 28 & 7) * 4096
        rows.append(x[place : place + 4096].reshape(16, 256)[:, :64].sum(axis=0)[::-1])
    return np.concatenate(rows).astype(np.float32)


@body(
    f"""
    threadgroup float sums[32];
    uint thread_index = thread_position_in_threadgroup.x, group = threadgroup_position_in_grid.x;
    uint mixed = group;
    for (int k = 0; k < 8; ++k) {{
      mixed ^= mixed << 13;
      mixed ^= mixed >> 17;
      mixed ^= mixed << 5;
    }}
    const device float* from = x + (mixed & 7) * 4096 + thread_index;
    float sum = 0;
    for (uint i = 0; i < 16; ++i) sum += from[i * 256];
    sums[thread_index] = sum;
    {_BARRIER}
    out[group * 32 + thread_index] = sums[31 - thread_index];
    """,
    inputs=lambda rng: {"x": rng.integers(-3, 4, 1 << 16).astype(np.float32)},
    outputs={"out": ((3 * 32,), "float32")},
    grid=(3 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="synchronisation.threadgroup_barrier",
)
def sums_of_rows_far_apart_by_a_mixed_number(x):
    rows = []
    for group in range(3):
        mixed = group
        for _ in range(8):
            mixed ^= mixed << 13 & 0xFFFFFFFF
            mixed ^= mixed >> 17
            mixed ^= mixed << 5 & 0xFFFFFFFF
        place = (mixed & 7) * 4096
        rows.append(x[place : place + 4096].reshape(16, 256)[:, :32].sum(axis=0)[::-1])
    return np.concatenate(rows).astype(np.float32)
