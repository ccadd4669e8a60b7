"""Addresses that differ from lane to lane by what a compiler sees: shared words, elements of structures, reversed and
exchanged lanes; at edges of arrays, in arithmetic that wraps, and where some threads take no part."""

import numpy as np

from bodies import DTYPES, body

_TYPES = (("float", "float32"), ("half", "float16"), ("uchar", "uint8"), ("long", "int64"), ("short", "int16"))


def _read(x, place):
    """Zero outside."""
    inside = (place >= 0) & (place < len(x))
    return np.where(inside, x[np.clip(place, 0, len(x) - 1)], 0).astype(x.dtype)


for _type, _dtype in _TYPES:
    # Simdgroups wholly inside, over the end and wholly outside; the seventh column's index wraps.
    def _shared(x):
        i = np.arange(200)
        wrapping = (i // 4 + 2**32 - 7) % 2**32
        columns = [
            _read(x, i // 8),
            _read(x, i // 2),
            _read(x, 3 + i % 8),
            _read(x, 47 - i),
            _read(x, i ^ 5),
            _read(x, i // 16 * 2 + i % 2),
            _read(x, wrapping),
            np.where(i % 3 == 0, _read(x, i // 8 + 40), 0),
        ]
        return np.stack(columns, axis=1).astype(x.dtype)

    body(
        f"""
        uint i = thread_position_in_grid.x;
        device {_type}* to = out + 8 * i;
        to[0] = x[i / 8];
        to[1] = x[i / 2];
        to[2] = x[3 + i % 8];
        to[3] = x[47 - int(i)];
        to[4] = x[i ^ 5];
        to[5] = x[i / 16 * 2 + i % 2];
        to[6] = x[i / 4 - 7];
        {_type} last = 0;
        if (i % 3 == 0) last = x[i / 8 + 40];
        to[7] = last;
        """,
        name=f"words_that_lanes_share_{_type}",
        inputs=lambda rng, dtype=_dtype: {"x": rng.integers(1, 100, 50).astype(DTYPES[dtype])},
        outputs={"out": ((200, 8), _dtype)},
        grid=(200, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="memory.load_outside",
    )(_shared)

    # As many elements as a thread has, of which some are read, and the last simdgroups go over the end.
    for _each, _members in ((2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2, 3)), (4, (0, 1, 2)), (4, (3, 1)), (8, range(8))):

        def _structures(x, each=_each, members=_members):
            i = np.arange(150)
            sums = np.zeros(150, np.int64)
            for n, member in enumerate(members):
                sums += (n + 1) * _read(x, each * i + member).astype(np.int64)
            some = np.zeros(150, np.int64)
            for n, member in enumerate(members):
                some += (n + 2) * _read(x, (each * i + member + 2**32 - 2 * each) % 2**32).astype(np.int64)
            return sums, np.where(i % 5 < 3, some, -1)

        body(
            f"""
            uint i = thread_position_in_grid.x;
            out[i] = {" + ".join(f"{n + 1} * long(x[{_each} * i + {m}])" for n, m in enumerate(_members))};
            long sum = -1;
            if (i % 5 < 3)
              sum = {" + ".join(f"{n + 2} * long(x[{_each} * (i - 2) + {m}])" for n, m in enumerate(_members))};
            some[i] = sum;
            """,
            name=f"members_of_structures_{_type}_{_each}_{''.join(map(str, _members))}",
            inputs=lambda rng, dtype=_dtype, each=_each: {
                "x": rng.integers(1, 100, 131 * each - 1).astype(DTYPES[dtype])
            },
            outputs={"out": ((150,), "int64"), "some": ((150,), "int64")},
            grid=(150, 1, 1),
            threadgroup=(96, 1, 1),
            constructs="memory.load_outside",
        )(_structures)


@body(
    """
    uint i = thread_position_in_grid.x;
    float own[6] = {0};
    for (uint k = 0; k < 3; ++k)
      for (int r = 0; r < 6; ++r) {
        float a = x[6 * i + r], b = y[(i + k) / 8 * 6 + r];
        own[r] = fma(a, b, own[r]) * 0.5f + own[(r + 1) % 6];
      }
    for (int r = 0; r < 6; ++r) out[6 * i + r] = own[r];
    """,
    inputs=lambda rng: {
        "x": rng.integers(-8, 9, (70, 6)).astype(np.float32),
        "y": rng.integers(-8, 9, (9, 6)).astype(np.float32),
    },
    outputs={"out": ((70, 6), "float32")},
    grid=(70, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside",
)
def private_arrays_in_loops(x, y):
    own = np.zeros((70, 6), np.float32)
    for k in range(3):
        place = (np.arange(70) + k) // 8
        rows = np.where((place < 9)[:, None], y[np.minimum(place, 8)], 0)
        for r in range(6):
            own[:, r] = (x[:, r] * rows[:, r] + own[:, r]) * np.float32(0.5) + own[:, (r + 1) % 6]
    return own


# ---- Threads that know their place in the grid alone
#
# Rows of threadgroups that are next to one another may be run as one.

for _name, _grid, _threadgroup in (
    ("narrow", (50, 7, 3), (16, 4, 1)),
    ("odd", (37, 5, 2), (5, 2, 2)),
    ("one", (70, 3, 1), (1, 1, 1)),
    ("whole", (130, 9, 1), (32, 8, 1)),
):

    def _joined(x, grid=_grid):
        columns, rows, planes = grid
        z, y, column = np.meshgrid(np.arange(planes), np.arange(rows), np.arange(columns), indexing="ij")
        place = (z * rows + y) * columns + column
        out = _read(x, place) + 1000 * _read(x, place + 1) + (column + 100 * y + 10000 * z)
        return out.astype(np.int32), np.full(1, out.sum(), np.int32)

    body(
        """
        uint3 place = thread_position_in_grid, grid = threads_per_grid;
        uint i = (place.z * grid.y + place.y) * grid.x + place.x;
        int value = x[i] + 1000 * x[i + 1] + int(place.x + 100 * place.y + 10000 * place.z);
        atomic_store_explicit(&out[i], value, memory_order_relaxed);
        atomic_fetch_add_explicit(&sum[0], value, memory_order_relaxed);
        """,
        name=f"rows_of_neighbours_{_name}",
        inputs=lambda rng, grid=_grid: {"x": rng.integers(1, 1000, np.prod(grid)).astype(np.int32)},
        outputs={"out": (_grid[::-1], "int32"), "sum": ((1,), "int32")},
        grid=_grid,
        threadgroup=_threadgroup,
        atomic_outputs=True,
        init_value=0,
        constructs="attributes.thread_position_in_grid attributes.threads_per_grid",
    )(_joined)


# Indices whose narrow parts wrap or change their sign from one lane to another.
for _name, _index in (
    ("sign", "int(char((u & 7) | char(lane << 3))) + 128"),
    ("sign_of_a_sum", "long(char((u & 7) + char(lane << 3))) + 128"),
    ("zero", "uchar(uchar(u & 28) | uchar(lane << 5))"),
    ("short", "int(short(ushort(u & 7) | ushort(lane << 12))) + 32768"),
):

    def _wrapping(x, u, name=_name):
        lane = np.arange(32)
        if name == "zero":
            index = (u[0] & 28) | (lane << 5 & 255)
        elif name == "short":
            index = ((u[0] & 7) | (lane << 12 & 0xFFFF)).astype(np.uint16).view(np.int16).astype(int) + 32768
        else:
            index = ((u[0] & 7) | (lane << 3 & 255)).astype(np.uint8).view(np.int8).astype(int) + 128
        return x[index], np.concatenate([np.isin(np.arange(256), index), np.zeros(256, bool)]).astype(np.int32)

    body(
        f"""
        uint lane = thread_position_in_grid.x;
        uchar u = few[0];
        y[lane] = x[{_index}];
        threadgroup int marked[256], beside[256];
        for (uint k = lane; k < 256; k += 32) marked[k] = beside[k] = 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if ({_index} < 256) marked[{_index}] = 1;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = lane; k < 256; k += 32) {{ marks[k] = marked[k]; marks[256 + k] = beside[k]; }}
        """,
        name=f"lanes_wrap_{_name}",
        inputs=lambda rng: {
            "x": rng.integers(-(10**6), 10**6, 65536).astype(np.int32),
            "few": np.array([7, 1, 2, 3], np.uint8),
        },
        outputs={"y": ((32,), "int32"), "marks": ((512,), "int32")},
        grid=(32, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="types.char types.uchar",
    )(lambda x, few, f=_wrapping: f(x, few.astype(int)))


@body(
    """
    uint i = thread_position_in_grid.x;
    uint first = k[0] * 16, m = 31 - (i & 31);
    float v = 0;
    uint t = 0;
    if (m < 16) {  // only here have `first` and `m` no bit in common
      t = first | m;
      v = x[t & ~16u];
    }
    out[i] = v;
    place[i] = t;
    """,
    inputs=lambda rng: {"x": np.arange(4096, dtype=np.float32), "k": np.ones(16, np.uint32)},
    outputs={"out": ((96,), "float32"), "place": ((96,), "uint32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="attributes.thread_position_in_grid",
)
def bits_in_common_where_nobody_looks(x, k):
    m = 31 - np.arange(96) % 32
    place = np.where(m < 16, k[0] * 16 | m, 0).astype(np.uint32)
    return np.where(m < 16, x[place & ~np.uint32(16)], 0).astype(np.float32), place
