"""What the SIMD engine makes together: stores to members of structures, arithmetic on them in the order of memory, and
what simdgroups hand one another through threadgroup memory, from places that no lane's own store covers."""

import numpy as np

from bodies import DTYPES, body

_TYPES = (("float", "float32"), ("half", "float16"), ("long", "int64"), ("uint", "uint32"))
_MEMBERS = ((2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2, 3)), (4, (2, 0)), (4, (3, 1, 2)), (8, range(8)))

for _type, _dtype in _TYPES:
    # The grid goes over the arrays' end; in the second part some threads take no part, and the index wraps.
    for _each, _members in _MEMBERS:

        def _stored(x, each=_each, members=_members):
            i = np.arange(150)
            out = np.zeros((2, 131 * each - 1), x.dtype)
            for n, member in enumerate(members):
                value = x[i] * (n + 1) + member
                place = each * i + member
                inside = place < out.shape[1]
                out[0, place[inside]] = value[inside]
                place = (each * i + member + 2**32 - 2 * each) % 2**32
                inside = (place < out.shape[1]) & (i % 5 < 3)
                out[1, place[inside]] = value[inside] + 1
            return out[0], out[1]

        body(
            f"""
            uint i = thread_position_in_grid.x;
            device {_type}* to = out + {_each} * i;
            {" ".join(f"to[{m}] = x[i] * {n + 1} + {m};" for n, m in enumerate(_members))}
            if (i % 5 < 3) {{
              {" ".join(f"some[{_each} * (i - 2) + {m}] = x[i] * {n + 1} + {m + 1};" for n, m in enumerate(_members))}
            }}
            """,
            name=f"members_are_stored_{_type}_{_each}_{''.join(map(str, _members))}",
            inputs=lambda rng, dtype=_dtype: {"x": rng.integers(1, 20, 150).astype(DTYPES[dtype])},
            outputs={"out": ((131 * _each - 1,), _dtype), "some": ((131 * _each - 1,), _dtype)},
            init_value=0,
            grid=(150, 1, 1),
            threadgroup=(96, 1, 1),
            constructs="memory.load_outside",
        )(_stored)


@body(
    """
    uint i = thread_position_in_grid.x;
    device float4* to = (device float4*)out;
    float4 value = ((const device float4*)x)[i], other = ((const device float4*)y)[i];
    to[3 * i] = fma(value, other, value) * x[5];
    to[3 * i + 1] = value.wzyx - other;
    to[3 * i + 2] = float4(-value.x, abs(value.y), value.z + other.w, value.w);
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (70, 4)).astype(np.float32),
        "y": rng.integers(-9, 9, (66, 4)).astype(np.float32),
    },
    outputs={"out": ((70, 3, 4), "float32")},
    grid=(70, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside",
)
def members_keep_their_order(x, y):
    y = np.concatenate([y, np.zeros((4, 4), np.float32)])
    last = np.stack([-x[:, 0], abs(x[:, 1]), x[:, 2] + y[:, 3], x[:, 3]], axis=1)
    return np.stack([(x * y + x) * x.flat[5], x[:, ::-1] - y, last], axis=1)


# Stores that are near one another and overlap keep their order; so do loads between them of what they may change.
@body(
    """
    uint i = thread_position_in_grid.x;
    threadgroup float shared[64];
    device float* to = out + 4 * i;
    to[0] = x[i];
    to[1] = 2;
    to[0] = to[1] + 1;
    to[3] = to[0] * 2;
    shared[thread_position_in_threadgroup.x] = to[3];
    to[2] = shared[thread_position_in_threadgroup.x];
    shared[thread_position_in_threadgroup.x] = x[i];
    to[1] = shared[thread_position_in_threadgroup.x] + to[2];
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, 70).astype(np.float32)},
    outputs={"out": ((70, 4), "float32")},
    grid=(70, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside",
)
def stores_keep_their_order(x):
    return np.stack([np.full(70, 3), x + 6, np.full(70, 6), np.full(70, 6)], axis=1).astype(np.float32)


# ---- Tiles: a few rows, each of several lanes

for _type, _dtype in _TYPES:

    def _tiles(x):
        i = np.arange(200)

        def read(place):
            place = place % 2**32
            return np.where(place < len(x), x[np.minimum(place, len(x) - 1)], 0).astype(x.dtype)

        some = np.where(i % 7 < 5, read(i // 8 * 24 + i % 8 + 2), 0)
        columns = [
            read(i // 8 * 24 + i % 8),
            read(i // 8 % 4 * 40 + i % 8 + 3),
            read(i // 16 * 20 + i % 16 - 9),
            read(i // 8 * 2**29 + i % 8),
            read(i // 4 % 8 * 64 + 60 - i % 4),
            read(i // 4 % 8 * 64 + i % 4 * 16 + 5),
            some.astype(x.dtype),
        ]
        return np.stack(columns, axis=1)

    body(
        f"""
        uint i = thread_position_in_grid.x;
        device {_type}* to = out + 7 * i;
        to[0] = x[i / 8 * 24 + i % 8];
        to[1] = x[i / 8 % 4 * 40 + i % 8 + 3];
        to[2] = x[i / 16 * 20 + i % 16 - 9];
        to[3] = x[i / 8 * 536870912 + i % 8];
        to[4] = x[i / 4 % 8 * 64 + 60 - i % 4];
        to[5] = x[i / 4 % 8 * 64 + i % 4 * 16 + 5];
        {_type} some = 0;
        if (i % 7 < 5) some = x[i / 8 * 24 + i % 8 + 2];
        to[6] = some;
        """,
        name=f"tiles_{_type}",
        inputs=lambda rng, dtype=_dtype: {"x": rng.integers(1, 100, 560).astype(DTYPES[dtype])},
        outputs={"out": ((200, 7), _dtype)},
        grid=(200, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="memory.load_outside",
    )(_tiles)

# ---- Rows or zero, by what is the same in a simdgroup


def _at(x, place):
    place = place % 2**32
    return np.where(place < len(x), x[np.minimum(place, len(x) - 1)], 0).astype(x.dtype)


for _type, _dtype in (*_TYPES, ("uchar", "uint8")):
    # Rows inside, over the end, before the beginning and wholly outside, wanted and not; the last one is shorter.
    def _chosen(x, flags):
        i = np.arange(1000)
        flag = flags[i // 64]
        none = x.dtype.type(0)
        columns = [
            np.where(flag > 2, _at(x, i + 37), none),
            np.where(flag > 2, none, _at(x, i - 70)),
            np.where(flag % 2 == 1, _at(x, 3 * i % 2**31 - 2 * i + 5), none) + np.where(flag > 1, _at(x, i), none),
            np.where((flag % 2 == 0) & (i % 3 != 0), _at(x, i + 37), none),
            np.where(flag > 2, x.dtype.type(3), none) + np.where(flag > 2, _at(x, i // 64 * 80 + i % 64), none),
            sum((np.where((flag > k) & (flag != 4), _at(x, i + 300 * k), none) for k in range(5)), np.zeros(1000)),
        ]
        return np.stack(columns, axis=1).astype(x.dtype)

    body(
        f"""
        uint i = thread_position_in_grid.x;
        uint flag = flags[i / 64];
        device {_type}* to = out + 6 * i;
        {_type} a = x[i + 37], b = x[i - 70], c = x[3 * i - 2 * i + 5], d = x[i];
        to[0] = flag > 2 ? a : {_type}(0);
        to[1] = flag > 2 ? {_type}(0) : b;
        to[2] = (flag % 2 == 1 ? c : {_type}(0)) + (flag > 1 ? d : {_type}(0));
        {_type} some = 0;
        if (i % 3 != 0) {{
          some = x[i + 37];
          some = flag % 2 == 0 ? some : {_type}(0);
        }}
        to[3] = some;
        to[4] = 3;
        {_type} three = to[4];
        to[4] = 9;
        {_type} e = x[i / 64 * 80 + i % 64];
        three = flag > 2 ? three : {_type}(0);
        to[4] = three + (flag > 2 ? e : {_type}(0));
        {_type} sum = 0;
        for (uint k = 0; k < flag; ++k) {{
          {_type} value = x[i + 300 * k];
          sum += flag != 4 ? value : {_type}(0);
        }}
        to[5] = sum;
        """,
        name=f"rows_or_zero_{_type}",
        inputs=lambda rng, dtype=_dtype: {
            "x": rng.integers(1, 30, 810).astype(DTYPES[dtype]),
            "flags": rng.integers(0, 6, 16).astype(np.uint32),
        },
        outputs={"out": ((1000, 6), _dtype)},
        grid=(1000, 1, 1),
        threadgroup=(128, 1, 1),
        constructs="memory.load_outside",
    )(_chosen)


# What is chosen is what was there before the store.
@body(
    """
    uint i = thread_position_in_grid.x;
    uint flag = flags[i / 32];
    float before = out[i], other = x[i];
    out[i] = x[i + 1];
    before = flag > 2 ? before : 0;
    out[i] += before;
    float zero = x[i + 2];
    zero = flag > 2 ? zero : -0.0f;
    last[i] = flag > 1 ? other : zero;
    """,
    inputs=lambda rng: {
        "x": rng.integers(1, 9, 150).astype(np.float32),
        "flags": rng.integers(0, 6, 5).astype(np.uint32),
    },
    outputs={"out": ((140,), "float32"), "last": ((150,), "float32")},
    init_value=5,
    grid=(150, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="memory.load_outside",
)
def rows_are_chosen_before_stores(x, flags):
    i = np.arange(150)
    flag = flags[i // 32]
    out = _at(x, i + 1) + np.where(flag > 2, np.float32(5), np.float32(0))
    zero = np.where(flag > 2, _at(x, i + 2), np.float32(-0.0))
    return out[:140], np.where(flag > 1, x, zero)


# ---- Runs of two simdgroups, with what is the same in both

for _threads, _grid in (
    (128, (1000, 1, 1)),
    (64, (320, 3, 2)),
    (192, (1216, 1, 1)),
    (96, (1000, 1, 1)),
    (256, (40, 2, 1)),
):

    def _in_runs(x, y, grid=_grid, threads=_threads):
        count = grid[0] * grid[1] * grid[2]
        i = np.arange(count) % grid[0]
        own = i % min(threads, grid[0])
        place = i // 64
        weight = _at(x, 2 * place) * 3 + _at(x, 2 * place + 1)
        weight = weight * weight - _at(x, i // 192) + _at(x, i // 128 * 2 + i // 32 % 2) * 2
        sums = np.zeros(count, np.int64)
        for k in range(4):
            at = place * 5 - k + i % 64
            sums = sums + np.where(x[place % 7] > k, _at(y, at), 0)
        values = weight * _at(y, i % 64 + 64 * (place % 3)) + sums + np.where(i & 96 == 32, weight, i >> 4)
        return (values + 1000 * own).astype(np.int32)

    body(
        """
        uint3 grid = threads_per_grid, at = thread_position_in_grid;
        uint i = at.x, place = i / 64;
        int first = x[2 * place], second = x[2 * place + 1];
        int weight = first * 3 + second;
        weight = weight * weight - x[i / 192] + x[i / 128 * 2 + i / 32 % 2] * 2;
        int sum = 0;
        for (int k = 0; k < 4; ++k) {
          int value = y[place * 5 - k + i % 64];
          sum += x[place % 7] > k ? value : 0;
        }
        int value = weight * y[i % 64 + 64 * (place % 3)] + sum;
        value += (i & 96) == 32 ? weight : int(i >> 4);
        out[(at.z * grid.y + at.y) * grid.x + i] = value + 1000 * thread_position_in_threadgroup.x;
        """,
        name=f"runs_of_simdgroups_{_threads}_{_grid[0]}",
        inputs=lambda rng: {
            "x": rng.integers(0, 9, 36).astype(np.int32),
            "y": rng.integers(0, 9, 170).astype(np.int32),
        },
        outputs={"out": ((_grid[0] * _grid[1] * _grid[2],), "int32")},
        grid=_grid,
        threadgroup=(_threads, 1, 1),
        constructs="memory.load_outside",
    )(_in_runs)

    # Of a row's own places, which neighbours do not continue.
    def _own_runs(x, grid=_grid):
        i = np.arange(grid[0] * grid[1] * grid[2])
        column = i % grid[0]
        place = column // 64
        a = _at(x, place).astype(np.float32) * 2 + 1
        b = _at(x, place + 1).astype(np.float32) - a
        c = a * b + _at(x, place // 2) * a + _at(x, column // 256) * b
        return c + _at(x, column % 64 + place)

    body(
        """
        uint3 grid = threads_per_grid, at = thread_position_in_grid;
        uint i = (at.z * grid.y + at.y) * grid.x + at.x;
        uint place = at.x / 64;
        float a = x[place] * 2 + 1, b = x[place + 1] - a;
        float c = a * b + x[place / 2] * a + x[at.x / 256] * b;
        out[i] = c + x[at.x % 64 + place];
        """,
        name=f"runs_of_rows_{_threads}_{_grid[0]}",
        inputs=lambda rng: {"x": rng.integers(0, 9, 60).astype(np.float32)},
        outputs={"out": ((_grid[0] * _grid[1] * _grid[2],), "float32")},
        grid=_grid,
        threadgroup=(_threads, 1, 1),
        constructs="memory.load_outside",
    )(_own_runs)

# ---- Rows whose places are read: beyond the borders, and behind the last of them

for _channels in (64, 192):

    def _gathered(x, places, channels=_channels):
        pixels = x.reshape(-1, channels)
        out = np.zeros((len(places) // 2, channels), np.float32)
        for k in range(2):
            first = places[k::2] * np.float32(11) - np.float32(3)
            row = np.floor(first).astype(np.int64)
            inside = (row >= 0) & (row < len(pixels))
            share = (first - row).astype(np.float32)
            value = np.where(inside[:, None], pixels[np.clip(row, 0, len(pixels) - 1)], np.float32(0))
            out = (out + value * (np.float32(1) - share * share)[:, None]).astype(np.float32)
        return out

    body(
        """
        uint i = thread_position_in_grid.x, place = i / CHANNELS;
        int channel = i % CHANNELS;
        float sum = 0;
        for (int k = 0; k < 2; ++k) {
          float first = places[2 * place + k] * 11 - 3;
          int row = floor(first);
          float value = x[row * CHANNELS + channel], share = first - row;
          sum += (row >= 0 && row < x_shape[0] ? value : 0) * (1 - share * share);
        }
        out[i] = sum;
        """,
        name=f"gathered_rows_of_{_channels}",
        header=f"#define CHANNELS {_channels}\n",
        inputs=lambda rng, channels=_channels: {
            "x": rng.integers(-9, 9, (9, channels)).astype(np.float32),
            "places": (rng.integers(0, 64, 90) / np.float32(64)).astype(np.float32) * np.float32(1.3),
        },
        outputs={"out": ((45, _channels), "float32")},
        grid=(45 * _channels, 1, 1),
        threadgroup=(192, 1, 1),
        tolerance=1e-6,
        constructs="memory.load_outside functions.floor",
    )(_gathered)


@body(
    """
    uint i = thread_position_in_grid.x, place = i / CHANNELS;
    int channel = i % CHANNELS;
    float first = places[place] * 11 - 3;
    int row = floor(first);
    float value = row >= 0 && row < ROWS ? x[row * CHANNELS + channel] : 1;
    if (row >= 0 && row < ROWS)
      atomic_fetch_add_explicit(&added[row * CHANNELS + channel], value + channel, memory_order_relaxed);
    float share = simd_sum(value * (row & 3));
    if (thread_index_in_simdgroup == 0) atomic_store_explicit(&shares[i / 32], share, memory_order_relaxed);
    """,
    header="#define CHANNELS 64\n#define ROWS 6\n",
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (6, 64)).astype(np.float32),
        "places": (rng.integers(0, 64, 45) / np.float32(64)).astype(np.float32),
    },
    outputs={"added": ((6, 64), "float32"), "shares": ((90,), "float32")},
    atomic_outputs=True,
    init_value=0,
    grid=(45 * 64, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="synchronisation.fetch_add simdgroup.sum functions.floor",
)
def rows_added_at_places(x, places):
    added, shares = np.zeros((6, 64), np.float32), np.zeros((45, 2), np.float32)
    rows = np.floor(places * np.float32(11) - np.float32(3)).astype(np.int64)
    for place, row in enumerate(rows):
        inside = 0 <= row < 6
        value = x[row] if inside else np.ones(64, np.float32)
        if inside:
            added[row] += value + np.arange(64, dtype=np.float32)
        shares[place] = (value * (row & 3)).reshape(2, 32).sum(axis=1)
    return added, shares.reshape(90)


# What is known of a place behind a condition is not known of later ones, which may lie far outside.
def _labels(rng):
    return {
        "labels": np.where(np.arange(45) % 16 < 8, 5, rng.integers(1 << 27, 1 << 28, 45)).astype(np.int32),
        "firsts": rng.integers(1, 9, 8).astype(np.int32),
        "rows": np.array([3, 1, 0, 2, 5, 4], np.int32),
    }


@body(
    """
    uint i = thread_position_in_grid.x, place = i / 64;
    int channel = i % 64, label = labels[place], first = firsts[label];
    float value = first;
    if (label == 5) {
      int row = rows[label];
      value += x[row * 64 + channel];
    }
    out[i] = value;
    """,
    inputs=lambda rng: {**_labels(rng), "x": rng.integers(-9, 9, (6, 64)).astype(np.float32)},
    outputs={"out": ((45, 64), "float32")},
    grid=(45 * 64, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="memory.load_outside",
)
def row_gathered_at_one_label(labels, firsts, rows, x):
    first = np.where(labels < len(firsts), firsts[np.clip(labels, 0, len(firsts) - 1)], 0).astype(np.float32)
    return first[:, None] + np.where(labels[:, None] == 5, x[rows[5]], np.float32(0))


@body(
    """
    uint i = thread_position_in_grid.x, place = i / 64;
    int label = labels[place], first = firsts[label];
    if (label == 5) {
      int row = rows[label];
      atomic_fetch_add_explicit(&added[row * 64 + i % 64], float(first), memory_order_relaxed);
    }
    float share = simd_sum(float(first & 7));
    if (thread_index_in_simdgroup == 0) atomic_store_explicit(&shares[i / 32], share, memory_order_relaxed);
    """,
    inputs=_labels,
    outputs={"added": ((6, 64), "float32"), "shares": ((90,), "float32")},
    atomic_outputs=True,
    init_value=0,
    grid=(45 * 64, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="memory.load_outside synchronisation.fetch_add simdgroup.sum",
)
def rows_added_at_one_label(labels, firsts, rows):
    added = np.zeros((6, 64), np.float32)
    first = np.where(labels < len(firsts), firsts[np.clip(labels, 0, len(firsts) - 1)], 0)
    for label, value in zip(labels, first, strict=True):
        if label == 5:
            added[rows[5]] += value
    return added, np.repeat((first & 7) * 32, 2).astype(np.float32)


# A launch that several threads run, unlike the others here: rows are exchanged, in pairs where all lanes take part and
# they begin at a word, among values that are wanted behind them.
@body(
    """
    uint i = thread_position_in_grid.x, place = i / 64;
    int channel = i % 64;
    float a = x[i], b = a * 3 + channel, c = x[(i + 64) % 40960] - b, sum = 0;
    float4 rest = float4(a + b, b - c, c * 2, a - 7);
    for (int k = 0; k < 3; ++k) {
      int row = rows[3 * place + k], at = row * 64 + channel + row % 3;
      if (channel < 64 - 9 * k) atomic_fetch_add_explicit(&added[at], b + k, memory_order_relaxed);
      sum += b * k - c;
    }
    atomic_fetch_max_explicit(&largest[channel + 1], int(a), memory_order_relaxed);
    atomic_fetch_add_explicit(&added[17 * 64 + 2 + channel], rest.x + rest.y + rest.z + rest.w, memory_order_relaxed);
    float share = simd_sum(sum + a);
    if (thread_index_in_simdgroup == 0) atomic_store_explicit(&shares[i / 32], share, memory_order_relaxed);
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, 40960).astype(np.float32),
        "rows": rng.integers(0, 18, 3 * 640).astype(np.int32),
    },
    outputs={"added": ((20 * 64,), "float32"), "largest": ((65,), "int32"), "shares": ((1280,), "float32")},
    atomic_outputs=True,
    init_value=0,
    grid=(40960, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.fetch_add synchronisation.fetch_max simdgroup.sum types.float4",
)
def rows_added_among_values(x, rows):
    channel = np.arange(40960) % 64
    a = x.astype(np.int64)
    b = a * 3 + channel
    c = np.roll(a, -64) - b
    added, largest, total = np.zeros(20 * 64, np.int64), np.zeros(65, np.int64), a.copy()
    for k in range(3):
        row = rows.reshape(640, 3)[:, k].repeat(64)
        takes_part = channel < 64 - 9 * k
        np.add.at(added, (row * 64 + channel + row % 3)[takes_part], (b + k)[takes_part])
        total += b * k - c
    np.maximum.at(largest, channel + 1, a)
    np.add.at(added, 17 * 64 + 2 + channel, (a + b) + (b - c) + c * 2 + (a - 7))
    shares = total.reshape(1280, 32).sum(axis=1)
    return added.astype(np.float32), largest.astype(np.int32), shares.astype(np.float32)


@body(
    """
    threadgroup float tile[256];
    uint t = thread_position_in_threadgroup.x, i = thread_position_in_grid.x;
    float a = x[i];
    for (int k = 0; k < counts[0]; ++k) {
      tile[t] = a + k;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float b = tile[t ^ 33];
      atomic_fetch_sub_explicit(&sums[t + k], b, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      a += b - 2 * k;
    }
    atomic_store_explicit(&lasts[i], int(a), memory_order_relaxed);
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, 20480).astype(np.float32), "counts": np.array([5], np.int32)},
    outputs={"sums": ((260,), "float32"), "lasts": ((20480,), "int32")},
    atomic_outputs=True,
    init_value=0,
    grid=(20480, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.fetch_sub synchronisation.threadgroup_barrier",
)
def rows_subtracted_between_barriers(x, counts):
    a = x.astype(np.int64).reshape(80, 256)
    sums = np.zeros(260, np.int64)
    for k in range(counts[0]):
        b = (a + k)[:, np.arange(256) ^ 33]
        sums[k : 256 + k] -= b.sum(axis=0)
        a = a + b - 2 * k
    return sums.astype(np.float32), a.astype(np.int32).reshape(20480)


# Rows that lie before an array, beyond it, or half in it, by an index that cannot wrap (the first) and one that can; the
# second array also by lanes of which some take no part. A launch that several threads run.
@body(
    """
    uint i = thread_position_in_grid.x, place = i / 64;
    int channel = i % 64, row = rows[place];
    long at = (long)row * 64 + channel - 40;
    atomic_fetch_add_explicit(&added[at], float(channel), memory_order_relaxed);
    if (channel % 16 < 5 + row) atomic_fetch_sub_explicit(&taken[at + 3], x[i] + row, memory_order_relaxed);
    atomic_fetch_add_explicit(&wrapped[row * 64 + channel - 75], x[i], memory_order_relaxed);
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, 40960).astype(np.float32),
        "rows": rng.integers(-3, 18, 640).astype(np.int32),
    },
    outputs={"added": ((903,), "float32"), "taken": ((903,), "float32"), "wrapped": ((903,), "float32")},
    atomic_outputs=True,
    init_value=0,
    grid=(40960, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.fetch_add synchronisation.fetch_sub memory.atomic_outside",
)
def rows_added_at_an_end(x, rows):
    channel, row, x = np.arange(40960) % 64, rows.repeat(64).astype(np.int64), x.astype(np.int64)
    results = np.zeros((3, 903), np.int64)
    for result, at, change, takes_part in (
        (results[0], row * 64 + channel - 40, channel, True),
        (results[1], row * 64 + channel - 37, -(x + row), channel % 16 < 5 + row),
        (results[2], row * 64 + channel - 75, x, True),
    ):
        inside = (at >= 0) & (at < 903) & takes_part
        np.add.at(result, at[inside], change[inside])
    return tuple(results.astype(np.float32))


# Where the body asks what a guard would, too: of a table that is read behind it, and of threadgroup memory.
@body(
    """
    threadgroup atomic_float sums[64];
    const float table[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;
    atomic_store_explicit(&sums[t], 0.0f, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ulong code = codes[i], at = (ulong)t + starts[i / 64];
    if (code < 10) atomic_fetch_add_explicit(&sums[t], table[code], memory_order_relaxed);
    if (at < 40ul) atomic_fetch_add_explicit(&sums[at], 100.0f, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = atomic_load_explicit(&sums[t], memory_order_relaxed);
    """,
    inputs=lambda rng: {
        "codes": rng.choice([0, 5, 8, 9, 10, 10**12, 2**62], 640).astype(np.uint64),
        "starts": rng.integers(0, 50, 10).astype(np.uint64),
    },
    outputs={"out": ((640,), "float32")},
    grid=(640, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="synchronisation.fetch_add synchronisation.threadgroup_barrier memory.load_outside",
)
def rows_added_behind_a_question(codes, starts):
    table = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 0], np.float32)
    sums = np.where(codes < 10, table[np.minimum(codes, 9)], 0).reshape(10, 64)
    place = np.arange(64)
    return np.where((place < 40) & (place >= starts[:, None]), sums + 100, sums).astype(np.float32).reshape(640)


# The same of rows that are read.
for _type, _dtype in (*_TYPES, ("uchar", "uint8"), ("bool", "bool")):

    def _at_an_end(x, rows):
        at = rows.repeat(64).astype(np.int64) * 64 + np.arange(2560) % 64 - 40
        found = np.where((at >= 0) & (at < x.size), x[np.clip(at, 0, x.size - 1)], 0).astype(np.float32)
        next_one = np.where((at >= -1) & (at < x.size - 1), x[np.clip(at + 1, 0, x.size - 1)], 0).astype(np.float32)
        return found + 2 * np.where(at % 7 < 3, next_one, 0)

    body(
        """
        uint i = thread_position_in_grid.x;
        int channel = i % 64, row = rows[i / 64];
        long at = (long)row * 64 + channel - 40;
        float sum = float(x[at]);
        if ((at + 7 * 64) % 7 < 3) sum += 2 * float(x[at + 1]);
        out[i] = sum;
        """,
        name=f"rows_read_at_an_end_{_type}",
        inputs=lambda rng, dtype=_dtype: {
            "x": rng.integers(0, 2 if dtype == "bool" else 99, 903).astype(dtype),
            "rows": rng.integers(-3, 18, 40).astype(np.int32),
        },
        outputs={"out": ((2560,), "float32")},
        grid=(2560, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="memory.load_outside",
    )(_at_an_end)


@body(
    """
    struct Pixel { uchar r, g, b; };
    uint i = thread_position_in_grid.x;
    Pixel one = ((const device Pixel*)x)[(long)rows[i / 64] * 64 + i % 64 - 40], copy = one;
    out[i] = copy.r + 256 * copy.g + 65536 * copy.b;
    """,
    inputs=lambda rng: {
        "x": rng.integers(0, 256, 3 * 900).astype(np.uint8),
        "rows": rng.integers(-3, 18, 40).astype(np.int32),
    },
    outputs={"out": ((2560,), "int32")},
    grid=(2560, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside",
)
def pixels_read_at_an_end(x, rows):
    at = rows.repeat(64).astype(np.int64) * 64 + np.arange(2560) % 64 - 40
    pixels = x.astype(np.int32).reshape(900, 3) @ [1, 256, 65536]
    return np.where((at >= 0) & (at < 900), pixels[np.clip(at, 0, 899)], 0).astype(np.int32)


def _chained(x, next_row):
    row = np.arange(45) % 20
    next_row = np.append(next_row, np.zeros(10, np.int32))
    out = np.zeros((45, 64), np.int64)
    for k in range(4):
        out += x[row]
        row = (row + next_row[np.arange(45) * 4 + k]) % 20
        out += 2 * x[row]
    return (out + _mixed(np.arange(45))[:, None]).astype(np.int32)


def _mixed(place):
    """What is the same in a place, enough of it that two simdgroups compute it once."""
    for k in range(8):
        place = (place * 3 + k) ^ (place >> 2)
    return place


body(
    """
    uint i = thread_position_in_grid.x, place = i / 64;
    int c = i % 64, sum = 0, mixed = place, row = place % 20;
    for (int k = 0; k < 8; ++k) mixed = (mixed * 3 + k) ^ (mixed >> 2);
    for (int k = 0; k < 4; ++k) {
      sum += x[row * 64 + c];
      row = (row + next_row[place * 4 + k]) % 20;
      sum += 2 * x[row * 64 + c];
    }
    out[i] = sum + mixed;
    """,
    name="rows_that_lead_to_rows",
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (20, 64)).astype(np.int32),
        "next_row": rng.integers(0, 20, 170).astype(np.int32),
    },
    outputs={"out": ((45, 64), "int32")},
    grid=(45 * 64, 1, 1),
    threadgroup=(192, 1, 1),
    constructs="memory.load_outside",
)(_chained)

# ---- Atomics at places of their own: a row, where one thread of the process runs the launch

for _count in (200, 9000):  # one, and as many as there are

    def _in_rows(x, count=_count):
        i = np.arange(count, dtype=np.uint32)
        numbers = 5 + i
        numbers[i % 3 == 0] = np.maximum(numbers, 7 * i % 1000)[i % 3 == 0]
        sums = np.full(count, 5, np.float32) + x
        sums[i % 2 == 0] -= np.float32(0.25)
        bits = np.full(count // 32 + 1, 5, np.uint32)
        np.bitwise_xor.at(bits, i // 32, (i + 5) * 3)
        return numbers[: count - 3], sums, bits

    body(
        """
        uint i = thread_position_in_grid.x;
        uint before = atomic_fetch_add_explicit(&numbers[i], i, memory_order_relaxed);
        if (i % 3 == 0) before = atomic_fetch_max_explicit(&numbers[i], 7 * i % 1000, memory_order_relaxed);
        atomic_fetch_add_explicit(&sums[i], x[i], memory_order_relaxed);
        if (i % 2 == 0) atomic_fetch_sub_explicit(&sums[i], 0.25f, memory_order_relaxed);
        before = i % 3 == 0 || i + 3 >= threads_per_grid.x ? i + 5 : before + i;
        atomic_fetch_xor_explicit(&bits[i / 32], before * 3, memory_order_relaxed);
        """,
        name=f"atomics_in_rows_{_count}",
        inputs=lambda rng, count=_count: {"x": rng.integers(-9, 9, count).astype(np.float32)},
        outputs={
            "numbers": ((_count - 3,), "uint32"),
            "sums": ((_count,), "float32"),
            "bits": ((_count // 32 + 1,), "uint32"),
        },
        atomic_outputs=True,
        init_value=5,
        grid=(_count, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="memory.load_outside",
    )(_in_rows)

# Rows at even and odd places, over the end, of some threads, and at places that several threads add to at once.
for _count in (200, 20000):

    def _in_pairs(x, count=_count):
        i = np.arange(count)
        some = (i >= 100) | (i % 2 == 0)
        sums, own, shifted = (np.full(count + more, 1, np.float32) for more in (60, -5, -2))
        for step in range(64):
            inside = i + step < len(sums)
            np.add.at(sums, (i + step)[inside], x[inside])
        before = np.where(some & (i < len(own)), np.float32(1), np.float32(0))
        own[some[: len(own)]] += x[: len(own)][some[: len(own)]]
        shifted -= np.where(some, 2 * x, 0)[1 : count - 1]
        return sums, own, shifted, before

    body(
        """
        uint i = thread_position_in_grid.x;
        for (uint step = 0; step < 64; ++step) atomic_fetch_add_explicit(&sums[i + step], x[i], memory_order_relaxed);
        float old = 0;
        if (i >= 100 || i % 2 == 0) {
          old = atomic_fetch_add_explicit(&own[i], x[i], memory_order_relaxed);
          atomic_fetch_sub_explicit(&shifted[i - 1], 2 * x[i], memory_order_relaxed);
        }
        atomic_store_explicit(&before[i], old, memory_order_relaxed);
        """,
        name=f"atomics_in_pairs_{_count}",
        inputs=lambda rng, count=_count: {"x": rng.integers(-9, 9, count).astype(np.float32)},
        outputs={
            "sums": ((_count + 60,), "float32"),
            "own": ((_count - 5,), "float32"),
            "shifted": ((_count - 2,), "float32"),
            "before": ((_count,), "float32"),
        },
        atomic_outputs=True,
        init_value=1,
        grid=(_count, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="memory.load_outside",
    )(_in_pairs)

# ---- Across barriers

for _threads in (32, 96, 128, 256):
    # The last threadgroup is smaller.
    _length = 3 * _threads + 24

    def _normalized(x, threads=_threads):
        values = np.concatenate([x, np.zeros(-len(x) % 4, np.float32)]).reshape(-1, 4)
        out = np.empty_like(values)
        for first in range(0, len(values), threads):
            some = values[first : first + threads]
            out[first : first + threads] = some * 2 + some.sum()
        return out.reshape(-1)[: len(x)]

    body(
        """
        uint i = thread_position_in_grid.x, own = thread_position_in_threadgroup.x;
        threadgroup float sums[32];
        float sum = 0;
        for (uint k = 0; k < 4; ++k) sum += x[4 * i + k];
        sum = simd_sum(sum);
        if (own < 32) sums[own] = 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (own % 32 == 0) sums[own / 32] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float total = 0;
        for (uint k = 0; k < 8; ++k) total += sums[k];
        for (uint k = 0; k < 4; ++k) out[4 * i + k] = fma(x[4 * i + k], 2.0f, total);
        """,
        name=f"rows_of_four_around_barriers_{_threads}",
        inputs=lambda rng, length=_length: {"x": rng.integers(-9, 9, 4 * length - 3).astype(np.float32)},
        outputs={"out": ((4 * _length - 3,), "float32")},
        grid=(_length, 1, 1),
        threadgroup=(_threads, 1, 1),
        constructs="barriers.in_loop",
    )(_normalized)

    for _type, _dtype in _TYPES:
        # Before, behind and around: what a thread reads was stored by several simdgroups, or lies outside its reach.
        def _handed_on(x, threads=_threads):
            out = []
            for first in range(0, len(x), threads):
                shared = x[first : first + threads].copy()
                count = len(shared)
                own = np.arange(count)
                for step in (1, 2, 4, 8, 16, 32):
                    before = np.where(own >= step, shared[np.maximum(own - step, 0)], 0).astype(x.dtype)
                    after = np.where(own + 2 * step < count, shared[np.minimum(own + 2 * step, count - 1)], 1)
                    shared = ((shared + before).astype(x.dtype) - after.astype(x.dtype)).astype(x.dtype)
                    shared[own < step] = (shared[own < step] + shared[own[own < step] ^ 1]).astype(x.dtype)
                out.append(shared)
            return np.concatenate(out)

        body(
            f"""
            threadgroup {_type} shared[{_threads}];
            uint i = thread_position_in_grid.x, own = thread_position_in_threadgroup.x;
            uint count = threads_per_threadgroup.x;
            if (threadgroup_position_in_grid.x == 3) count = {_length % _threads};
            shared[own] = x[i];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint step = 1; step < 64; step *= 2) {{
              {_type} before = own >= step ? shared[own - step] : {_type}(0);
              {_type} after = own + 2 * step < count ? shared[own + 2 * step] : {_type}(1);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              shared[own] += before;
              shared[own] -= after;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              {_type} other = shared[own ^ 1];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (own < step) shared[own] += other;
              threadgroup_barrier(mem_flags::mem_threadgroup);
            }}
            out[i] = shared[own];
            """,
            name=f"handed_on_{_type}_{_threads}",
            inputs=lambda rng, dtype=_dtype, length=_length: {"x": rng.integers(0, 4, length).astype(DTYPES[dtype])},
            outputs={"out": ((_length,), _dtype)},
            grid=(_length, 1, 1),
            threadgroup=(_threads, 1, 1),
            constructs="barriers.in_loop",
        )(_handed_on)
