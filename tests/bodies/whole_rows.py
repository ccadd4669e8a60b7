"""Bodies of which every access is a row, in simdgroups where all of them lie within their arrays and in others: at
borders of one, two and three dimensions, with strides below zero, of zero and beyond rows, and where indices wrap."""

import numpy as np

from bodies import DTYPES, body

_TYPES = (("int", "int32"), ("half", "float16"), ("uchar", "uint8"), ("long", "int64"))


def _memory(x):
    """The elements of a view as they lie, and which of them its first one is."""
    steps = [stride // x.itemsize for stride in x.strides]
    before = sum(min(0, (n - 1) * step) for n, step in zip(x.shape, steps, strict=True))
    behind = sum(max(0, (n - 1) * step) for n, step in zip(x.shape, steps, strict=True))
    corner = x[tuple(slice(n - 1, None) if step < 0 else slice(1) for n, step in zip(x.shape, steps, strict=True))]
    flat = np.lib.stride_tricks.as_strided(corner, shape=(behind - before + 1,), strides=(x.itemsize,))
    return flat, -before


def _read(x, places):
    """The elements so many from the first one; zero outside."""
    flat, first = _memory(x)
    places = places.astype(np.int64) + first
    inside = (places >= 0) & (places < len(flat))
    return np.where(inside, flat[np.where(inside, places, 0)], np.zeros((), x.dtype))


# ---- Neighbours in three dimensions


def _cube(rng):
    return rng.integers(-1000, 1000, (5, 9, 70)).astype(np.int32)


_VIEWS = {
    "plain": lambda rng: _cube(rng),
    "part": lambda rng: _cube(rng)[1:4, 2:8, 3:68],
    "narrow": lambda rng: _cube(rng)[:, :, 20:51],
    "one_wider": lambda rng: _cube(rng)[1:, 1:, 5:38],
    "column": lambda rng: _cube(rng)[:, :, 4:5],
    "planes_reversed": lambda rng: _cube(rng)[::-1],
    "lines_reversed": lambda rng: _cube(rng)[:, ::-1, 2:66],
    "all_reversed": lambda rng: _cube(rng)[::-1, ::-1, ::-1],
    "one_plane": lambda rng: np.broadcast_to(_cube(rng)[0], (4, 9, 70)),
    "one_line": lambda rng: np.broadcast_to(_cube(rng)[:, 3:4], (5, 6, 70)),
    "one_element": lambda rng: np.broadcast_to(_cube(rng)[:, :, 7:8], (5, 9, 64)),
    "every_second": lambda rng: _cube(rng)[:, ::2, ::2],
    "turned": lambda rng: _cube(rng).transpose(2, 1, 0),
}

_THREADGROUPS = ((64, 3, 1), (16, 16, 1), (5, 3, 2), (1024, 1, 1))

for _n, (_name, _make) in enumerate(_VIEWS.items()):
    _shape = _make(np.random.default_rng(0)).shape

    def _neighbours(x, add):
        plane, line, step = (stride // x.itemsize for stride in x.strides)
        z, y, i = np.indices(x.shape)
        at = z * plane + y * line + i * step
        total = 13 * _read(x, at)
        for factor, distance in ((2, -line), (3, line), (5, -plane), (7, plane), (11, -step), (17, step)):
            total = total + factor * _read(x, at + distance)
        return (total + add).astype(np.int32)

    for _threadgroup in ((32, 4, 2), _THREADGROUPS[_n % len(_THREADGROUPS)]):
        body(
            """
            uint3 place = thread_position_in_grid;
            int64_t plane = x_strides[0], line = x_strides[1], next = x_strides[2];
            const device int* from = x + place.z * plane + place.y * line + place.x * next;
            int total = 13 * from[0] + 2 * from[-line] + 3 * from[line] + 5 * from[-plane] + 7 * from[plane] +
                        11 * from[-next] + 17 * from[next];
            out[(place.z * threads_per_grid.y + place.y) * threads_per_grid.x + place.x] = total + add;
            """,
            name=f"neighbours_{_name}_{'_'.join(map(str, _threadgroup))}",
            inputs=lambda rng, make=_make: {"x": make(rng), "add": np.array(9, np.int32)},
            outputs={"out": (_shape, "int32")},
            grid=_shape[::-1],
            threadgroup=_threadgroup,
            ensure_row_contiguous=False,
            reads_around=True,
            constructs="memory.load_outside layouts.strided layouts.negative_strides",
        )(_neighbours)

# ---- Rows that begin anywhere

_LENGTH = 200
_FAR = (2**40, -(2**40), 2**60 - 90, -(2**60), 2**63 - 1, -(2**63) + 40)
_SHIFTS = np.array([*range(-140, 210, 3), -2, -1, 0, 1, 2, *_FAR], np.int64)

for _type, _dtype in _TYPES:
    # Those far away are never there; the others are rows by themselves.
    for _threadgroup, _distances in (((32, 8, 1), (0, 1, -3, 7)), ((75, 1, 1), (0, 2, -(2**33), 2**41))):

        def _from_anywhere(x, shifts, distances=_distances):
            size = x.itemsize
            out = np.zeros((len(shifts), 75), x.dtype)
            for row, shift in enumerate(shifts.tolist()):
                for factor, distance in enumerate(distances, 1):
                    # In bytes, which wrap.
                    places = [(i + shift + distance) * size % 2**64 for i in range(75)]
                    values = [x[p // size] if p < _LENGTH * size else x.dtype.type(0) for p in places]
                    out[row] += x.dtype.type(factor) * np.array(values, x.dtype)
            return out

        _sum = " + ".join(f"{factor} * from[{distance}l]" for factor, distance in enumerate(_distances, 1))
        body(
            f"""
            uint i = thread_position_in_grid.x, row = thread_position_in_grid.y;
            const device {_type}* from = x + shifts[row] + i;
            out[row * 75 + i] = {_sum};
            """,
            name=f"rows_from_anywhere_{_type}_{_threadgroup[0]}",
            inputs=lambda rng, dtype=_dtype: {
                "x": rng.integers(1, 9, _LENGTH).astype(DTYPES[dtype]),
                "shifts": _SHIFTS,
            },
            outputs={"out": ((len(_SHIFTS), 75), _dtype)},
            grid=(75, len(_SHIFTS), 1),
            threadgroup=_threadgroup,
            constructs="memory.load_outside",
        )(_from_anywhere)


@body(
    """
    uint i = thread_position_in_grid.x, row = thread_position_in_grid.y;
    device int* to = out + row * 70 + i + shift;
    int value = x[row * 70 + i] + x[row * 70 + i + 1] * 100;
    to[0] = value;
    more[row * 70 + i + 40] = value + 1;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 70 * 6).astype(np.int32), "shift": np.array(-50, np.int64)},
    outputs={"out": ((420,), "int32"), "more": ((420,), "int32")},
    init_value=7,
    grid=(70, 6, 1),
    threadgroup=(32, 3, 1),
    constructs="memory.store_outside memory.load_outside",
)
def rows_stored_over_borders(x, shift):
    value = x + np.append(x[1:], 0) * 100
    out, more = np.full(420, 7, np.int32), np.full(420, 7, np.int32)
    out[:370] = value[50:]
    more[40:] = value[:380] + 1
    return out, more


# ---- Indices that wrap


@body(
    """
    uint i = thread_position_in_grid.x, row = thread_position_in_grid.y;
    ushort narrow = ushort(i + 65500 + row);
    uint back = i - row;
    out[row * 100 + i] = x[narrow] + x[ushort(narrow + 1)] + x[back] + x[back + 5u] + x[i + 4294967290u];
    """,
    inputs=lambda rng: {"x": rng.integers(0, 1000, 65700).astype(np.int32)},
    outputs={"out": ((9, 100), "int32")},
    grid=(100, 9, 1),
    threadgroup=(100, 3, 1),
    constructs="memory.load_outside",
)
def rows_of_indices_that_wrap(x):
    row, i = np.indices((9, 100))
    narrow = (i + 65500 + row) % 65536
    back = (i - row) % 2**32
    parts = (narrow, (narrow + 1) % 65536, back, (back + 5) % 2**32, (i + 4294967290) % 2**32)
    return sum(_read(x, part) for part in parts).astype(np.int32)


# ---- What else a simdgroup does


@body(
    """
    uint i = thread_position_in_grid.x, row = thread_position_in_grid.y;
    atomic_fetch_add_explicit((device atomic_uint*)&counts[row], 1u, memory_order_relaxed);
    int here = x[row * 70 + i - 1] + x[row * 70 + i] + x[row * 70 + i + 1];
    atomic_fetch_add_explicit((device atomic_uint*)&sums[i % 3], uint(here), memory_order_relaxed);
    out[row * 70 + i] = here;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 1000, 70 * 5).astype(np.int32)},
    outputs={"counts": ((5,), "uint32"), "sums": ((3,), "uint32"), "out": ((5, 70), "int32")},
    init_value=0,
    grid=(70, 5, 1),
    threadgroup=(64, 2, 1),
    constructs="synchronisation.fetch_add memory.load_outside",
)
def rows_behind_atomics(x):
    padded = np.pad(x, 1)
    here = (padded[:-2] + padded[1:-1] + padded[2:]).reshape(5, 70)
    sums = [here[:, i::3].sum() for i in range(3)]
    return np.full(5, 70, np.uint32), np.array(sums, np.uint32), here.astype(np.int32)


@body(
    """
    uint3 at = thread_position_in_grid, own = thread_position_in_threadgroup;
    uint i = (at.z * threads_per_grid.y + at.y) * threads_per_grid.x + at.x;
    int first = x[i], second = x[i + 1], third = x[i + 70];
    int several[4] = {first, second, third, int(own.y)};
    for (int k = 0; k < first % 5; ++k) several[k % 4] += several[(k + 1) % 4] + k;
    sums[i] = several[0] - several[1] + several[2] * several[3];
    where[i] = thread_index_in_threadgroup * 10000u + own.z * 1000u + own.y * 100u + own.x;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 100, 45 * 13 * 3).astype(np.int32)},
    outputs={"sums": ((3, 13, 45), "int32"), "where": ((3, 13, 45), "uint32")},
    grid=(45, 13, 3),
    threadgroup=(33, 4, 2),
    constructs="memory.load_outside attributes.thread_index_in_threadgroup attributes.thread_position_in_threadgroup",
)
def rows_of_a_threadgroup_in_y(x):
    z, y, i = np.indices((3, 13, 45))
    width, height = np.where(i < 33, 33, 12), np.where(y < 12, 4, 1)
    own_x, own_y, own_z = i % 33, y % 4, z % 2
    index = (own_z * height + own_y) * width + own_x
    where = index * 10000 + own_z * 1000 + own_y * 100 + own_x
    place = (z * 13 + y) * 45 + i
    sums = np.zeros(place.shape, np.int32)
    for at in np.ndindex(place.shape):
        several = [int(_read(x, place[at] + d)) for d in (0, 1, 70)] + [int(own_y[at])]
        for k in range(several[0] % 5):
            several[k % 4] += several[(k + 1) % 4] + k
        sums[at] = several[0] - several[1] + several[2] * several[3]
    return sums, where.astype(np.uint32)
