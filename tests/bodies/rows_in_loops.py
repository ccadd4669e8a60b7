"""Rows of simdgroups in loops: arrays that end, begin or wrap somewhere in the loop; simdgroups with and without all of
their threads; sums and extremes that loops carry, of NaNs and zeros too; numbers of a few bits."""

import numpy as np

from bodies import body

_SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -1.5, 1e-45], np.float32)


def _read(x, place):
    """Zero outside."""
    place = np.asarray(place).astype(np.int64) % 2**32
    return np.where(place < len(x), x[np.minimum(place, len(x) - 1)], 0).astype(x.dtype)


# ---- Loops with several accesses, of which some go over an array's end
#
# `x`, `y` and `z` are as long as they are said to be; the simdgroup's row begins where `first` says, which may be so far
# that it wraps.

for _name, _lengths, _first, _rows, _length in (
    ("inside", (600, 600, 600), 0, 4, 128),
    ("over_the_end", (500, 450, 512), 0, 4, 128),
    ("one_that_ends_early", (512, 33, 512), 0, 4, 128),
    ("outside", (512, 512, 512), 600, 4, 128),
    ("wrapping", (512, 512, 512), 2**32 - 200, 4, 128),
    ("wrapping_in_a_row", (512, 512, 512), 2**32 - 4 * 96 + 40, 4, 96),
    ("of_odd_length", (500, 500, 500), 0, 4, 100),
    ("not_all_threads", (500, 500, 500), 0, 3, 125),
):

    def _loops(x, y, z, first, rows=_rows, length=_length):
        lane = np.arange(32)
        out = np.zeros((rows, length), np.float32)
        sums = np.zeros(rows, np.float32)
        for row in range(rows):
            start = int(first) + row * length
            sum_of_lanes = np.zeros(32, np.float32)
            for i in range(0, length, 32):
                there = i + lane < length
                place = start + i + lane
                value = _read(x, place) + _read(y, place + 1) * _read(z, place)
                sum_of_lanes += np.where(there, value, np.float32(0))
                out[row, (i + lane)[there]] = value[there]
            sums[row] = sum_of_lanes.sum()
        return out, sums

    body(
        f"""
        uint row = thread_position_in_grid.y, lane = thread_index_in_simdgroup;
        uint start = first + row * {_length};
        float sum = 0;
        for (uint i = lane; i < {_length}; i += threads_per_simdgroup) {{
            float value = x[start + i] + y[start + i + 1] * z[start + i];
            out[row * {_length} + i] = value;
            sum += value;
        }}
        sum = simd_sum(sum);
        if (lane == 0) sums[row] = sum;
        """,
        name=f"rows_in_loops_{_name}",
        inputs=lambda rng, lengths=_lengths, first=_first: {
            **{
                name: rng.integers(-9, 9, length).astype(np.float32)
                for name, length in zip("xyz", lengths, strict=True)
            },
            "first": np.uint32(first),
        },
        outputs={"out": ((_rows, _length), "float32"), "sums": ((_rows,), "float32")},
        grid=(32, _rows, 1),
        threadgroup=(32, 2, 1),
        constructs="memory.load_outside memory.store_outside simdgroup.sum",
    )(_loops)


# Shapes are known when compiling, and rows are members of structures, whose threads have eight elements each.
@body(
    """
    uint words = w_shape[1], lane = thread_index_in_simdgroup, row = thread_position_in_grid.y;
    float sum = 0, total = 0;
    for (uint word = lane; word < words; word += threads_per_simdgroup) {
        for (int i = 0; i < 8; ++i) total += x[8 * word + i];
        uint packed = w[row * words + word];
        float dot = 0;
        for (int i = 0; i < 8; ++i) dot += float((packed >> (4 * i)) & 15) * x[8 * word + i];
        sum += dot * scale[row * (words / 8) + word / 8];
    }
    sum = simd_sum(sum);
    total = simd_sum(total);
    if (lane == 0) out[row] = sum, totals[row] = total;
    """,
    inputs=lambda rng: {
        "x": rng.integers(-3, 4, 8 * 96 - 20).astype(np.float32),
        "w": rng.integers(0, 2**32, (6, 96), np.uint32),
        "scale": rng.integers(-2, 3, 6 * 12 - 3).astype(np.float32),
    },
    outputs={"out": ((6,), "float32"), "totals": ((6,), "float32")},
    grid=(32, 6, 1),
    threadgroup=(32, 4, 1),
    constructs="memory.load_outside simdgroup.sum",
)
def packed_rows(x, w, scale):
    out, totals = np.zeros(6, np.float32), np.zeros(6, np.float32)
    values = _read(x, np.arange(8 * 96)).reshape(96, 8)
    for row in range(6):
        digits = (w[row][:, None] >> np.arange(0, 32, 4, dtype=np.uint32)) & 15
        dots = (digits * values).sum(axis=1)
        out[row] = (dots * _read(scale, row * 12 + np.arange(96) // 8)).sum()
        totals[row] = values.sum()
    return out, totals


# ---- Threadgroups with barriers, whose arrays end somewhere


@body(
    """
    threadgroup float shared[4];
    uint thread_index = thread_position_in_threadgroup.x, group = threadgroup_position_in_grid.x;
    uint first = 4 * thread_index;
    float sum = 0;
    for (uint i = 0; i < 4; ++i) sum += x[group * 512 + first + i];
    for (uint i = 0; i < 3; ++i) sum += y[group * 384 + i * 128 + thread_index];
    sum = simd_sum(sum);
    if (thread_index_in_simdgroup == 0) shared[simdgroup_index_in_threadgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float all = shared[0] + shared[1] + shared[2] + shared[3];
    for (uint i = 0; i < 4; ++i) out[group * 512 + first + i] = w[first + i] * x[group * 512 + first + i] + all;
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, 3 * 512 - 130).astype(np.float32),
        "y": rng.integers(-9, 9, 3 * 384 - 1).astype(np.float32),
        "w": rng.integers(-9, 9, 512).astype(np.float32),
    },
    outputs={"out": ((4 * 512 - 70,), "float32")},
    grid=(128 * 4, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="memory.load_outside memory.store_outside simdgroup.sum synchronisation.threadgroup_barrier",
)
def threadgroups_over_the_end(x, y, w):
    blocks = _read(x, np.arange(4 * 512)).reshape(4, 512)
    sums = blocks.sum(axis=1) + _read(y, np.arange(4 * 384)).reshape(4, 384).sum(axis=1)
    return (w * blocks + sums[:, None]).ravel()[: 4 * 512 - 70]


# Each threadgroup has accesses outside.
@body(
    """
    threadgroup float shared[64];
    uint thread_index = thread_position_in_threadgroup.x, group = threadgroup_position_in_grid.x;
    shared[thread_index] = x[group * 64 + thread_index] + w[thread_index];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[group * 64 + thread_index] = shared[63 - thread_index] + w[thread_index + 1000];
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, 190).astype(np.float32),
        "w": rng.integers(-9, 9, 50).astype(np.float32),
    },
    outputs={"out": ((192,), "float32")},
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="memory.load_outside synchronisation.threadgroup_barrier",
)
def threadgroups_that_are_always_outside(x, w):
    values = _read(x, np.arange(192)).reshape(3, 64) + _read(w, np.arange(64))
    return values[:, ::-1].ravel()


# ---- Extremes


def _larger(a, b):
    return np.where((a < b) | np.isnan(a), b, a)


def _smaller(a, b):
    return np.where((b < a) | np.isnan(a), b, a)


# What a loop carries begins with a number, with what may be a NaN, or with one; zeros keep their signs.
@body(
    """
    uint i = thread_position_in_grid.x;
    float largest = -INFINITY, smallest = INFINITY, of_first = x[i], of_nan = NAN, of_zero = -0.0f;
    for (uint k = 0; k < 4; ++k) {
        float value = x[i * 5 % 64 + 64 * k];
        largest = max(largest, value);
        smallest = min(smallest, value);
        of_first = max(of_first, value);
        of_nan = min(of_nan, value);
        of_zero = max(value, of_zero);
    }
    ((device float4*)out)[i] = float4(largest, smallest, of_first, of_nan);
    zeros[i] = of_zero;
    clamped[i] = clamp(x[i], -1.0f, 1.0f);
    ((device float2*)together)[i] = float2(simd_max(largest), simd_min(x[i]));
    """,
    inputs=lambda rng: {"x": rng.choice(_SPECIAL, 256)},
    outputs={
        "out": ((64, 4), "float32"),
        "zeros": ((64,), "float32"),
        "clamped": ((64,), "float32"),
        "together": ((64, 2), "float32"),
    },
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="functions.max functions.min simdgroup.max simdgroup.min",
)
def extremes_in_loops(x):
    i = np.arange(64)
    start = np.full(64, -np.inf, np.float32)
    largest, smallest, of_first = start, -start, x[:64]
    of_nan, of_zero = np.full(64, np.nan, np.float32), np.full(64, -0.0, np.float32)
    for k in range(4):
        value = x[i * 5 % 64 + 64 * k]
        largest, smallest = _larger(largest, value), _smaller(smallest, value)
        of_first, of_nan, of_zero = _larger(of_first, value), _smaller(of_nan, value), _larger(value, of_zero)
    clamped = _smaller(_larger(x[:64], np.float32(-1)), np.float32(1))

    def over_lanes(values, combine):
        values = values.reshape(2, 32)
        for step in (1, 2, 4, 8, 16):
            lower = values.reshape(2, -1, 2, step)[:, :, :1]
            upper = values.reshape(2, -1, 2, step)[:, :, 1:]
            both = combine(lower, upper)
            values = np.concatenate([both, both], axis=2).reshape(2, 32)
        return values.ravel()

    together = np.stack([over_lanes(largest, _larger), over_lanes(x[:64], _smaller)], axis=1)
    return np.stack([largest, smallest, of_first, of_nan], axis=1), of_zero, clamped, together


# ---- Numbers of a few bits


@body(
    """
    uint i = thread_position_in_grid.x;
    uint word = x[i];
    float sum = 0;
    for (uint s = 0; s < 32; ++s)
        sum += float((word >> s) & 15) + 3 * float((word >> s) & 5) - 7 * float(int((word >> s) & 1)) +
               float((word >> s) & 31) - 2 * float(word & (3u << s));
    out[i] = sum;
    ((device float2*)halves)[i] = float2(half(word & 7), float(word & 0));
    """,
    inputs=lambda rng: {"x": rng.integers(0, 2**32, 70, np.uint32) & 0x3FFFFF},
    outputs={"out": ((70,), "float32"), "halves": ((70, 2), "float32")},
    grid=(70, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.uint",
)
def numbers_of_a_few_bits(x):
    word = x.astype(np.uint64)
    total = np.zeros(70, np.float32)
    for s in range(32):
        shifted = (x >> np.uint32(s)).astype(np.int64)
        parts = (
            (shifted & 15).astype(np.float32) + np.float32(3) * (shifted & 5).astype(np.float32)
            - np.float32(7) * (shifted & 1).astype(np.float32) + (shifted & 31).astype(np.float32)
            - np.float32(2) * (word & ((3 << s) % 2**32)).astype(np.float32)
        )  # fmt: skip
        total += parts
    return total, np.stack([(x & 7).astype(np.float32), np.zeros(70, np.float32)], axis=1)
