"""Members of records at indices that data choose: the SIMD engine loads each lane's part and transposes, or gathers
words of several members."""

from typing import Any

import numpy as np

from bodies import DTYPES, body

_THREADS = 200
_RECORDS = 37
# The members that are added, each times its number plus one; of 9 words no neighbours of a part's border, of 8 bytes all.
_SHAPES = (
    ("float", "float32", 2, (0, 1)),
    ("float", "float32", 3, (0, 1, 2)),
    ("float", "float32", 4, (0, 1, 2, 3)),
    ("int", "int32", 5, (0, 1, 2, 3, 4)),
    ("uint", "uint32", 6, (0, 1, 2, 4, 5)),
    ("float", "float32", 8, tuple(range(8))),
    ("int", "int32", 9, (1, 2, 3, 5, 6, 7, 8)),
    ("float", "float32", 16, tuple(range(16))),
    ("uchar", "uint8", 2, (0, 1)),
    ("uchar", "uint8", 3, (0, 1, 2)),
    ("char", "int8", 4, (0, 1, 3)),
    ("half", "float16", 2, (0, 1)),
    ("ushort", "uint16", 3, (0, 1, 2)),
    ("half", "float16", 4, (0, 1, 2, 3)),
    ("long", "int64", 2, (0, 1)),
)


def _sums(x, index, width, members):
    """Of each index's record; a member outside of the array is 0. Sums are small enough to be exact."""
    x = np.asarray(x).reshape(-1)
    total = np.zeros(index.shape, np.int64)
    for member in members:
        at = index.astype(np.int64) * width + member
        inside = (at >= 0) & (at < len(x))
        total += np.where(inside, x[np.where(inside, at, 0)].astype(np.int64), 0) * (member + 1)
    return total


def _terms(source, index, width, members):
    return " + ".join(f"int({source}[{width} * {index} + {member}]) * {member + 1}" for member in members)


def _records(rng, dtype, width):
    return rng.integers(0, 100, _RECORDS * width).astype(DTYPES[dtype])


def _indices(rng, dtype="int32", low=0, high=_RECORDS):
    """Both ends are among them."""
    index = rng.integers(low, high, _THREADS)
    index[rng.permutation(_THREADS)[:6]] = [low, high - 1] * 3
    return index.astype(DTYPES[dtype])


def _inputs(dtype, width, indices=_indices):
    """With all records whole."""
    return lambda rng: {"x": _records(rng, dtype, width), "index": indices(rng)}


for _type, _dtype, _width, _members in _SHAPES:
    _name = f"{_width}_{_type}s"
    _common: dict[str, Any] = {
        "outputs": {"out": ((_THREADS,), "int32")},
        "grid": (_THREADS, 1, 1),
        "threadgroup": (64, 1, 1),
        "constructs": "memory.load_outside",
    }

    # Some records lie before the array or after it, and the last one is not complete.
    @body(
        f"""
        uint i = thread_position_in_grid.x;
        int j = index[i];
        out[i] = {_terms("x", "j", _width, _members)};
        """,
        name=f"records_of_{_name}",
        inputs=lambda rng, dtype=_dtype, width=_width: {
            "x": _records(rng, dtype, width)[:-1],
            "index": _indices(rng, low=-2, high=_RECORDS + 2),
        },
        **_common,
    )
    def _guarded(x, index, width=_width, members=_members):
        return _sums(x, index, width, members).astype(np.int32)

    # All are inside, up to the last member of the array.
    @body(
        f"""
        uint i = thread_position_in_grid.x;
        int sum = 0;
        if (index[i] % 3 != 1) {{
          uint j = index[i];
          sum = {_terms("x", "j", _width, _members)};
        }}
        out[i] = sum;
        """,
        name=f"records_of_{_name}_in_a_branch",
        inputs=_inputs(_dtype, _width, lambda rng: _indices(rng, "uint32")),
        **_common,
    )
    def _in_a_branch(x, index, width=_width, members=_members):
        return np.where(index % 3 != 1, _sums(x, index, width, members), 0).astype(np.int32)

    # Lanes leave the loop at different times, a few of them late.
    @body(
        f"""
        uint i = thread_position_in_grid.x;
        int sum = 0;
        ushort j = index[i];
        for (uint step = 0; step < 40; ++step) {{
          sum += {_terms("x", "j", _width, _members)};
          if (j % 4 == 3) break;
          j = (j * 5 + 2 + step) % {_RECORDS};
        }}
        out[i] = sum;
        """,
        name=f"records_of_{_name}_in_a_loop_that_lanes_leave",
        inputs=_inputs(_dtype, _width, lambda rng: _indices(rng, "uint16")),
        **_common,
    )
    def _in_a_loop(x, index, width=_width, members=_members):
        total, j, active = np.zeros(_THREADS, np.int64), index.astype(np.int64), np.ones(_THREADS, bool)
        for step in range(40):
            total += np.where(active, _sums(x, j, width, members), 0)
            active &= j % 4 != 3
            j = np.where(active, (j * 5 + 2 + step) % _RECORDS, j)
        return total.astype(np.int32)

    @body(
        f"""
        threadgroup {_type} tile[{_RECORDS * _width}];
        uint i = thread_position_in_grid.x;
        for (uint k = thread_position_in_threadgroup.x; k < {_RECORDS * _width}; k += threads_per_threadgroup.x)
          tile[k] = x[k];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        int j = index[i];
        out[i] = {_terms("tile", "j", _width, _members)};
        """,
        name=f"records_of_{_name}_in_threadgroup_memory",
        inputs=_inputs(_dtype, _width),
        **(_common | {"constructs": "address_spaces.threadgroup_array"}),
    )
    def _in_threadgroup_memory(x, index, width=_width, members=_members):
        return _sums(x, index, width, members).astype(np.int32)

    @body(
        f"""
        uint i = thread_position_in_grid.x;
        {_type} own[{4 * _width}];
        for (uint k = 0; k < {4 * _width}; ++k) own[k] = x[k] + {_type}(i % 2);
        int j = index[i] % 4;
        out[i] = {_terms("own", "j", _width, _members)};
        """,
        name=f"records_of_{_name}_in_a_private_array",
        inputs=_inputs(_dtype, _width),
        **(_common | {"constructs": "address_spaces.thread"}),
    )
    def _in_a_private_array(x, index, width=_width, members=_members):
        odd = np.arange(_THREADS) % 2 * sum(member + 1 for member in members)
        return (_sums(x, index % 4, width, members) + odd).astype(np.int32)


# Products of 32 bits wrap: numbers near 2^30 and 2^31 are times 4 near 2^32, so that members before the wrap are outside
# and those after it at the array's beginning.
for _type, _dtype in (("float", "float32"), ("uchar", "uint8"), ("half", "float16"), ("int", "int32")):
    for _index in ("uint", "int"):

        @body(
            f"""
            uint i = thread_position_in_grid.x;
            uint j = index[i];
            {_index} first = {_index}(4 * j + start[i]);
            out[i] = int(x[first]) + int(x[first + 1]) * 2 + int(x[first + 2]) * 3 + int(x[first + 3]) * 4;
            """,
            name=f"records_of_{_type}s_at_an_{_index}_that_wraps",
            inputs=lambda rng, dtype=_dtype: {
                "x": _records(rng, dtype, 4),
                "index": np.where(
                    rng.integers(0, 4, _THREADS) == 0,
                    rng.choice([2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**29 - 1, 2**29], _THREADS),
                    rng.integers(0, _RECORDS, _THREADS),
                ).astype(np.uint32),
                "start": rng.integers(0, 4, _THREADS).astype(np.uint32),
            },
            outputs={"out": ((_THREADS,), "int32")},
            grid=(_THREADS, 1, 1),
            threadgroup=(64, 1, 1),
            constructs="memory.load_outside",
        )
        def _wrapping(x, index, start):
            first = 4 * index.astype(np.int64) + start
            total = np.zeros(_THREADS, np.int64)
            for member in range(4):
                at = (first + member) % 2**32
                inside = at < len(x)
                total += np.where(inside, x[np.where(inside, at, 0)].astype(np.int64), 0) * (member + 1)
            return total.astype(np.int32)


_TABLE = [3 * k * k % 101 for k in range(160)]


@body(
    """
    uint i = thread_position_in_grid.x;
    ushort j = index[i];
    out[i] = TABLE[5 * j] + TABLE[5 * j + 1] * 2 + TABLE[5 * j + 2] * 3 + TABLE[5 * j + 3] * 4 + TABLE[5 * j + 4] * 5;
    """,
    header=f"constant int TABLE[160] = {{{', '.join(map(str, _TABLE))}}};",
    inputs=lambda rng: {"index": _indices(rng, "uint16", 0, 32)},
    outputs={"out": ((_THREADS,), "int32")},
    grid=(_THREADS, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="address_spaces.constant",
)
def records_of_a_constant_table(index):
    return _sums(np.array(_TABLE), index, 5, range(5)).astype(np.int32)


@body(
    """
    // Each thread has a record of its own, which it writes between loads.
    uint i = thread_position_in_grid.x;
    int j = index[i];
    int sum = work[4 * j] + work[4 * j + 1] * 2 + work[4 * j + 2] * 3 + work[4 * j + 3] * 4;
    work[4 * j + 1] = 1000 + i;
    sum += work[4 * j] + work[4 * j + 1] * 2 + work[4 * j + 2] * 3;
    work[4 * j + 3] = sum;
    out[i] = sum + work[4 * j + 2] + work[4 * j + 3];
    """,
    inputs=lambda rng: {"index": rng.permutation(_THREADS).astype(np.int32)},
    outputs={"out": ((_THREADS,), "int32"), "work": ((_THREADS * 4,), "int32")},
    init_value=7,
    grid=(_THREADS, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside",
)
def records_that_are_written_between_loads(index):
    i = np.arange(_THREADS, dtype=np.int32)
    work = np.full((_THREADS, 4), 7, np.int32)
    work[index, 1] = 1000 + i
    sums = 70 + 28 + (1000 + i) * 2
    work[index, 3] = sums
    return (sums + 7 + sums).astype(np.int32), work.reshape(-1)
