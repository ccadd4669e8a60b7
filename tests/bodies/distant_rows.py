"""Elements a known number of places apart, which the SIMD engine reads under one guard: at the array's end some of
them are there and others are not."""

import numpy as np

from bodies import DTYPES, body

_TYPES = (("float", "float32"), ("half", "float16"), ("uchar", "uint8"), ("long", "int64"))
# Overlapping ones, too, and one of its own behind a store.
_DISTANCES = (0, 64, 33, 160, 97, 5, 1000)


def _there(x, place):
    """What lies there, 0 outside."""
    inside = (place >= 0) & (place < len(x))
    return np.where(inside, x[np.where(inside, place, 0)], x.dtype.type(0))


for _type, _dtype in _TYPES:

    def _read(x):
        i = np.arange(400)
        one, two = np.zeros(400, x.dtype), np.zeros(400, x.dtype)
        for n, distance in enumerate(_DISTANCES):
            value = _there(x, i + distance)
            one += value * x.dtype.type(n + 1)
            if n % 2:
                two += np.where(i % 3 == 1, value, x.dtype.type(0))
        # The sum wraps at 32 bits.
        two += np.where(
            i % 3 == 2, _there(x, (i + 2**32 - 100) % 2**32) + _there(x, (i + 2**32 - 30) % 2**32), 0
        ).astype(x.dtype)
        return one, two

    body(
        f"""
        uint i = thread_position_in_grid.x;
        const device {_type}* from = x + i;
        {_type} sum = 0;
        {" ".join(f"sum += from[{d}] * {_type}({n + 1}); out[i] = sum;" for n, d in enumerate(_DISTANCES))}
        {_type} other = 0;
        if (i % 3 == 1) {{
          {" ".join(f"other += from[{d}];" for d in _DISTANCES[1::2])}
        }}
        if (i % 3 == 2) other = x[i - 100u] + x[i - 30u];
        some[i] = other;
        """,
        name=f"rows_at_known_distances_{_type}",
        inputs=lambda rng, dtype=_dtype: {"x": rng.integers(0, 4, 350).astype(DTYPES[dtype])},
        outputs={"out": ((400,), _dtype), "some": ((400,), _dtype)},
        grid=(400, 1, 1),
        threadgroup=(96, 1, 1),
        constructs="memory.load_outside",
    )(_read)


@body(
    """
    // Sixteen elements a thread and a tree, as reductions do it.
    threadgroup float sums[256];
    uint t = thread_position_in_threadgroup.x;
    const device float* from = x + threadgroup_position_in_grid.x * 4096 + t;
    float sum = 0;
    for (uint i = 0; i < 16; ++i) sum += from[i * 256];
    sums[t] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = 128; step > 0; step /= 2) {
        if (t < step) sums[t] += sums[t + step];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t == 0) out[threadgroup_position_in_grid.x] = sums[0];
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, 4096 * 3 - 1700).astype(np.float32)},
    outputs={"out": ((4,), "float32")},
    grid=(1024, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="memory.load_outside",
)
def rows_of_a_tree(x):
    return np.concatenate([x, np.zeros(4096 * 4 - len(x), np.float32)]).reshape(4, 4096).sum(axis=1)
