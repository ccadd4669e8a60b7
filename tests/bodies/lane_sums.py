"""Bodies that add up all lanes of several simdgroups, or of several values (docs/design/simd-engine.md).

Sums of floats are rounded in the order of lanes that the specification of `simd_sum` here gives, so that references add
up in it, too."""

from functools import reduce

import numpy as np

from bodies import body

# By name: how many sums leave the loop over simdgroups that makes them.
SUMS_BEHIND_LOOPS: dict[str, int] = {}
# The same of those whose loops AVX-512 is short enough for to be unrolled.
SUMS_BEHIND_LONG_LOOPS: dict[str, int] = {}
# By name: how many sums are added up together, at most eight.
SUMS_TOGETHER: dict[str, list[int]] = {}

_OPERATIONS = {
    "sum": (np.add, 0),
    "product": (np.multiply, 1),
    "max": (np.maximum, -100),
    "min": (np.minimum, 100),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


def over_lanes(values, combine):
    """Of 32 lanes, the last axis: neighbours first."""
    while values.shape[-1] > 1:
        values = combine(values[..., 0::2], values[..., 1::2])
    return values[..., 0]


def _numbers(dtype):
    if dtype != "float32":
        return lambda rng, count: rng.integers(-50, 50, count).astype(dtype)
    # Of many sizes, so that another order gives another sum.
    return lambda rng, count: (rng.standard_normal(count) * 2.0 ** rng.integers(-6, 7, count)).astype(np.float32)


def _fma(a, b, c):
    return (a.astype(np.float64) * b + c).astype(np.float32)


def _norm(name, operation, threads, reads=4, dtype="float32", lists=(SUMS_BEHIND_LOOPS,), value=None):
    """As an RMS norm: what all threads have together is what each multiplies with."""
    combine, nothing = _OPERATIONS[operation]
    groups, simdgroups = 3, threads // 32
    kind = {"float32": "float", "int32": "int", "uint32": "uint"}[dtype]
    for names in lists:
        names[name] = [simdgroups] if names is SUMS_TOGETHER else simdgroups
    source, of_element = value or (
        ("fma(v, v, all)", lambda v, all: _fma(v, v, all))
        if dtype == "float32"
        else ("all * 3 + v", lambda v, all: all * 3 + v)
    )

    @body(
        f"""
        threadgroup {kind} parts[32];
        threadgroup {kind} whole[1];
        uint group = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup;
        uint first = (group * {threads} + thread_position_in_threadgroup.x) * {reads};
        {kind} all = 0;
        for (uint i = 0; i < {reads}; ++i) {{
            {kind} v = x[first + i];
            all = {source};
        }}
        all = simd_{operation}(all);
        if (simdgroup_index_in_threadgroup == 0) parts[lane] = {nothing};
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane == 0) parts[simdgroup_index_in_threadgroup] = all;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (simdgroup_index_in_threadgroup == 0) {{
            all = simd_{operation}(parts[lane]);
            if (lane == 0) whole[0] = all;
            sums[group * 32 + lane] = parts[lane];
        }}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < {reads}; ++i) y[first + i] = x[first + i] * whole[0];
        """,
        name=name,
        inputs=lambda rng: {"x": _numbers(dtype)(rng, groups * threads * reads)},
        outputs={"y": ((groups * threads * reads,), dtype), "sums": ((groups, 32), dtype)},
        grid=(threads * groups, 1, 1),
        threadgroup=(threads, 1, 1),
        constructs=f"synchronisation.threadgroup_barrier simdgroup.{operation}",
    )
    def reference(x):
        with np.errstate(over="ignore"):
            own = x.reshape(groups, simdgroups, 32, reads)
            each = reduce(lambda all, i: of_element(own[..., i], all), range(reads), np.zeros(own.shape[:3], own.dtype))
            parts = np.full((groups, 32), nothing).astype(dtype)
            parts[:, :simdgroups] = over_lanes(each, combine)
            whole = over_lanes(parts, combine)
            return (x.reshape(groups, -1) * whole[:, None]).ravel(), parts

    return reference


for _threads in (256, 512, 1024):
    _norm(f"sums_of_{_threads}_threads", "sum", _threads)
# Two simdgroups are no loop, and code for three or nine is code for any number.
_norm("sums_of_64_threads", "sum", 64, lists=[SUMS_TOGETHER])
_norm("sums_of_96_threads", "sum", 96, lists=[])
_norm("sums_of_288_threads", "sum", 288, lists=[])
for _operation in ("product", "max", "min", "and", "or", "xor", "sum"):
    _norm(f"{_operation}_of_integers", _operation, 256, dtype="int32")
for _operation in ("max", "min"):
    _norm(f"{_operation}_of_unsigned", _operation, 256, dtype="uint32")
_norm("products_of_floats", "product", 256, value=("all + v", lambda v, all: all + v))
# What LLVM makes of them is not one operation.
_norm("largest_of_floats", "max", 256, lists=[], value=("all + v", lambda v, all: all + v))
# Squares of other lane by lane operations, and what does not lie in squares.
_norm(
    "sums_of_choices",
    "sum",
    256,
    value=("v < 0 ? all : all + abs(v)", lambda v, all: np.where(v < 0, all, all + abs(v))),
)
_norm("sums_of_pairs", "sum", 256, reads=2, lists=[SUMS_BEHIND_LONG_LOOPS])
_norm("sums_of_three", "sum", 256, reads=3, lists=[SUMS_BEHIND_LONG_LOOPS])
_norm("sums_of_eight", "sum", 256, reads=8)


SUMS_BEHIND_LOOPS["sums_that_others_want"] = 8


@body(
    """
    threadgroup float parts[32];
    uint group = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup, own = simdgroup_index_in_threadgroup;
    uint first = (group * 256 + thread_position_in_threadgroup.x) * 4;
    float sum = 0;
    for (uint i = 0; i < 4; ++i) sum += x[first + i];
    sum = simd_sum(sum);
    if (lane == 0) parts[own] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float above = parts[(own + 1) % 8];
    for (uint i = 0; i < 4; ++i) y[first + i] = x[first + i] * above;
    """,
    name="sums_that_others_want",
    inputs=lambda rng: {"x": _numbers("float32")(rng, 2 * 8 * 128)},
    outputs={"y": ((2, 8, 128), "float32")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.threadgroup_barrier simdgroup.sum",
)
def _(x):
    own = x.reshape(2, 8, 32, 4)
    parts = over_lanes(reduce(np.add, (own[..., i] for i in range(4))), np.add)
    return x.reshape(2, 8, 128) * np.roll(parts, -1, axis=1)[:, :, None]


# Parts of sums, which are elements of bits, too.
for _type, _dtype, _part in (
    ("ushort", "uint16", "ushort(all)"),
    ("char", "int8", "char(all)"),
    ("ushort", "uint16", "ushort(as_type<uint>(all) >> 16)"),
):

    def _parts_of_sums(x, dtype=_dtype, shift=16 if ">>" in _part else 0):
        own = x.reshape(2, 8, 32, 8)
        each = reduce(lambda all, i: all * 3 + own[..., i], range(8), np.zeros(own.shape[:3], np.int32))
        parts = (over_lanes(each, np.add).view(np.uint32) >> shift).astype(dtype)
        return np.tile(parts, 32).reshape(2, 256)

    body(
        f"""
        threadgroup {_type} parts[32];
        uint t = thread_position_in_threadgroup.x, group = threadgroup_position_in_grid.x;
        int all = 0;
        for (uint i = 0; i < 8; ++i) all = all * 3 + x[(group * 256 + t) * 8 + i];
        all = simd_sum(all);
        if (thread_index_in_simdgroup == 0) parts[simdgroup_index_in_threadgroup] = {_part};
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[group * 256 + t] = parts[t % 8];
        """,
        name=f"{'high_' if '>>' in _part else ''}parts_of_sums_{_type}",
        inputs=lambda rng: {"x": rng.integers(-999, 999, 4096).astype(np.int32)},
        outputs={"y": ((2, 256), _dtype)},
        grid=(512, 1, 1),
        threadgroup=(256, 1, 1),
        constructs="synchronisation.threadgroup_barrier simdgroup.sum",
    )(_parts_of_sums)


@body(
    """
    threadgroup int parts[32];
    uint t = thread_position_in_threadgroup.x, lane = thread_index_in_simdgroup;
    uint group = threadgroup_position_in_grid.x;
    int sum = simd_sum(int((lane * 3 + group) * (lane * 7 + 5 * group)));
    uint bits = x[group * 256 + t];
    for (uint i = 0; i < 30; ++i) { bits ^= bits << 13; bits ^= bits >> 17; bits ^= bits << 5; }
    if (lane == 0) parts[simdgroup_index_in_threadgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[group * 256 + t] = parts[t % 8] + bits;
    """,
    name="sums_that_all_simdgroups_have",
    inputs=lambda rng: {"x": rng.integers(0, 2**32, 512).astype(np.uint32)},
    outputs={"y": ((512,), "uint32")},
    grid=(512, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.threadgroup_barrier simdgroup.sum",
)
def _(x):
    lane, group = np.arange(32, dtype=np.uint32), np.arange(2, dtype=np.uint32)[:, None]
    sums = ((lane * 3 + group) * (lane * 7 + 5 * group)).sum(1, dtype=np.uint32)
    bits = x.copy()
    for _ in range(30):
        bits ^= bits << 13
        bits ^= bits >> 17
        bits ^= bits << 5
    return bits + np.repeat(sums, 256)


@body(
    """
    threadgroup float parts[64];
    uint t = thread_position_in_threadgroup.x, own = simdgroup_index_in_threadgroup;
    float sum = 0;
    for (uint i = 0; i < 8; ++i) sum += x[t * 8 + i];
    sum = simd_sum(sum);
    // The place is a long computation, of which each step takes the one before twice.
    uint place = own + 77;
    for (uint i = 0; i < 40; ++i) { place ^= place << 13; place ^= place >> 17; place ^= place << 5; }
    if (thread_index_in_simdgroup == 0) {
        parts[own] = sum;
        if (place & 1) parts[32 + own] = 1;
        else parts[32 + own] = 2;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[t] = parts[t % 8] * parts[32 + t % 8];
    """,
    name="sums_beside_long_computations",
    inputs=lambda rng: {"x": _numbers("float32")(rng, 2048)},
    outputs={"y": ((256,), "float32")},
    grid=(256, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="synchronisation.threadgroup_barrier simdgroup.sum",
)
def _(x):
    own = x.reshape(8, 32, 8)
    parts = over_lanes(reduce(np.add, (own[..., i] for i in range(8))), np.add)
    place = np.arange(8, dtype=np.uint32) + np.uint32(77)
    for _ in range(40):
        place ^= place << 13
        place ^= place >> 17
        place ^= place << 5
    return np.tile(parts * np.where(place & 1, 1, 2).astype(np.float32), 32)


def _several(name, count, together, source="x[i] * {k}", dtype="float32", after="", scale=1):
    kind = {"float32": "float", "int32": "int"}[dtype]
    values = "\n".join(f"{kind} s{k} = simd_sum({source.format(k=k + 1)});" for k in range(count))
    stores = "\n".join(f"y[simdgroup * {count} + {k}] = s{k}{after};" for k in range(count))
    SUMS_TOGETHER[name] = together

    @body(
        f"""
        uint i = thread_position_in_grid.x, simdgroup = i / 32;
        {values}
        if (thread_index_in_simdgroup == 0) {{ {stores} }}
        """,
        name=name,
        inputs=lambda rng: {"x": _numbers(dtype)(rng, 64)},
        outputs={"y": ((2, count), dtype)},
        grid=(64, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="simdgroup.sum",
    )
    def reference(x):
        own = x.reshape(2, 32)
        return np.stack([over_lanes(own * x.dtype.type(k + 1), np.add) for k in range(count)], axis=1)

    return reference


_several("two_sums", 2, [2])
_several("three_sums", 3, [3])
_several("five_sums_of_integers", 5, [5], dtype="int32")
_several("eight_sums", 8, [8])
_several("eleven_sums", 11, [8, 3])


@body(
    """
    uint i = thread_position_in_grid.x;
    float a = simd_sum(x[i]);
    float b = simd_sum(x[i] * a);
    float c = simd_sum(x[i] - b);
    y[i] = a + b + c;
    """,
    name="sums_of_sums",
    inputs=lambda rng: {"x": _numbers("float32")(rng, 64)},
    outputs={"y": ((2, 32), "float32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="simdgroup.sum",
)
def _(x):
    own = x.reshape(2, 32)
    a = over_lanes(own, np.add)[:, None]
    b = over_lanes(own * a, np.add)[:, None]
    c = over_lanes(own - b, np.add)[:, None]
    return np.broadcast_to(a + b + c, own.shape)
