"""Accesses outside an argument (docs/language.md 5.1): a load gives zero, a store or an atomic does nothing."""

from typing import Any

import numpy as np

from bodies import DTYPES, Dtype, body


@body(
    """
    int i = int(thread_position_in_grid.x) - 20;
    out[i + 20] = x[i] + 10 * x[i + 1000000] + 100 * x[-i - 1];
    """,
    inputs=lambda rng: {"x": rng.integers(1, 9, 12, np.int32)},
    outputs={"out": ((50,), "int32")},
    grid=(50, 1, 1),
    threadgroup=(50, 1, 1),
    constructs="memory.load_outside",
)
def loads_before_and_behind(x):
    padded = np.zeros(200, np.int32)
    padded[100:112] = x
    i = np.arange(-20, 30)
    return padded[100 + i] + 100 * padded[100 - i - 1]


for _dtype in ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "complex64"):

    def _loads(x):
        padded = np.zeros(40, x.dtype)
        padded[:11] = x
        return padded[:30], padded[:30], padded[10:40]

    body(
        """
    uint i = thread_position_in_grid.x;
    out[i] = x[i];
    device const T* moved = x + 3;
    moved += i;
    moved -= 3;
    again[i] = *moved;
    struct Pair { T first, second; };
    other[i] = ((device const Pair*)(x + 9 - int(i)))[i].second;
    """,
        name=f"loads_outside_{_dtype}",
        template=[("T", Dtype(_dtype))],
        inputs=lambda rng, dtype=_dtype: {"x": (rng.integers(1, 9, 11)).astype(np.float32).astype(DTYPES[dtype])},
        outputs={"out": ((30,), _dtype), "again": ((30,), _dtype), "other": ((30,), _dtype)},
        grid=(30, 1, 1),
        threadgroup=(30, 1, 1),
        constructs="memory.load_outside memory.through_a_local_pointer address_spaces.device_pointer_arithmetic",
    )(_loads)


@body(
    """
    // Reads first and masks afterwards, up to a row before the image and behind it.
    int2 at = int2(thread_position_in_grid.xy);
    int width = image_shape[1], height = image_shape[0];
    float total = 0;
    for (int dy = -2; dy <= 2; ++dy) {
      for (int dx = -2; dx <= 2; ++dx) {
        int2 p = at + int2(dx, dy);
        float value = image[p.y * width + p.x];
        bool inside = p.x >= 0 && p.x < width && p.y >= 0 && p.y < height;
        total += inside ? value : 0;
      }
    }
    blurred[at.y * width + at.x] = total;
    """,
    inputs=lambda rng: {"image": rng.integers(0, 100, (9, 13)).astype(np.float32)},
    outputs={"blurred": ((9, 13), "float32")},
    grid=(13, 9, 1),
    threadgroup=(13, 3, 1),
    constructs="memory.load_outside types.int2",
)
def box_sum_that_masks_afterwards(image):
    padded = np.pad(image, 2)
    return np.lib.stride_tricks.sliding_window_view(padded, (5, 5)).sum(axis=(2, 3))


@body(
    """
    // Whole vectors and structs: outside is what is not wholly inside.
    int i = int(thread_position_in_grid.x);
    float4 v = ((device const float4*)x)[i - 4];
    ((device float4*)vectors)[i] = v;
    Three three = ((device const Three*)x)[i - 4];
    sums[i] = three.values[0] + three.values[1] + three.values[2];
    """,
    header="struct Three { float values[3]; };",
    inputs=lambda rng: {"x": rng.integers(1, 99, 24).astype(np.float32)},
    outputs={"vectors": ((16, 4), "float32"), "sums": ((16,), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="memory.vectors_outside address_spaces.cast_to_vector address_spaces.cast_to_struct types.float4",
)
def vectors_and_structs_outside(x):
    vectors, sums = np.zeros((16, 4), np.float32), np.zeros(16, np.float32)
    vectors[4:10] = x.reshape(6, 4)
    sums[4:12] = x.reshape(8, 3).sum(axis=1)
    return vectors, sums


@body(
    """
    // Wherever they begin: what lies partly inside is outside.
    int i = int(thread_position_in_grid.x) - 6;
    float4 four = *(device const float4*)(x + i);
    half2 two = *((device const half2*)((device const half*)x + 2 * i + 1));
    device float4* row = (device float4*)loaded + 2 * (i + 6);
    row[0] = four;
    row[1] = float4(load_pair(x, i), float2(two));
    *(device int4*)(stored + 5 * i - 2) = int4(i, i + 1, i + 2, i + 3);
    """,
    header="""
float2 load_pair(device const float* values, int i) {
  device const float2* pairs = (device const float2*)(values + 1);
  return *(device const float2*)((device const char*)pairs + 4 * i - 4);
}
""",
    inputs=lambda rng: {"x": rng.integers(1, 99, 23).astype(np.float32)},
    outputs={"loaded": ((36, 8), "float32"), "stored": ((100,), "int32")},
    grid=(36, 1, 1),
    threadgroup=(36, 1, 1),
    init_value=-9,
    constructs="memory.vectors_outside memory.store_outside memory.through_a_local_pointer "
    "address_spaces.cast_to_vector types.float4 types.half2 types.float2",
)
def vectors_that_straddle_an_end(x):
    def load(array, first, count):
        inside = first >= 0 and first + count <= len(array)
        return array[first : first + count] if inside else np.zeros(count, array.dtype)

    stored = np.full(100, -9, np.int32)
    rows = []
    for i in range(-6, 30):
        rows.append(np.concatenate([load(x, i, 4), load(x, i, 2), load(x.view(np.float16), 2 * i + 1, 2)]))
        first = 5 * i - 2
        if first >= 0 and first + 4 <= 100:
            stored[first : first + 4] = np.arange(i, i + 4)
    return np.array(rows).astype(np.float32), stored


@body(
    """
    int i = int(thread_position_in_grid.x) - 50;
    out[i] = i;
    out[i * 1000003 + (i == 0 ? 40 : 17)] = -1;
    device int* p = out + 25;
    if (i != 0) p[i * 1000] = -2;
    if (i < 0 || i > 7) ((device int4*)out)[i] = int4(-3);
    second[i + 50] = ((device int*)x)[i & 15];
    """,
    inputs=lambda rng: {"x": rng.integers(0, 9, 16, np.int32)},
    outputs={"out": ((30,), "int32"), "second": ((100,), "int32")},
    grid=(100, 1, 1),
    threadgroup=(100, 1, 1),
    init_value=5,
    constructs="memory.store_outside memory.input_without_const memory.vectors_outside",
)
def stores_outside(x):
    return np.arange(30, dtype=np.int32), x[np.arange(-50, 50) & 15]


@body(
    """
    int i = int(thread_position_in_grid.x) - 4;
    int before = atomic_fetch_add_explicit(&cells[i], 3, memory_order_relaxed) +
                 atomic_load_explicit(&cells[i * 100 + 5000], memory_order_relaxed) +
                 atomic_exchange_explicit(&cells[-1 - i * i], 7, memory_order_relaxed);
    atomic_store_explicit(&cells[8 + i * i], 9, memory_order_relaxed);
    int expected = 0;
    bool done = atomic_compare_exchange_weak_explicit(&cells[1000 + i], &expected, 8, memory_order_relaxed,
                                                      memory_order_relaxed);
    atomic_fetch_max_explicit(&cells[-50], 100, memory_order_relaxed);
    if (done && expected == 0) atomic_store_explicit(&old[i + 4], before, memory_order_relaxed);
    """,
    outputs={"cells": ((8,), "int32"), "old": ((16,), "int32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    atomic_outputs=True,
    init_value=2,
    constructs="memory.atomic_outside synchronisation.fetch_add synchronisation.compare_exchange",
)
def atomics_outside():
    i = np.arange(-4, 12)
    return np.full(8, 5, np.int32), np.where((i >= 0) & (i < 8), 2, 0).astype(np.int32)


@body(
    """
    int i = int(thread_position_in_grid.x), n = x[i];
    int left[4] = {1, 2, 3, 4}, own[4] = {5, 6, 7, 8}, right[4] = {9, 10, 11, 12};
    int4 v(1, 2, 3, 4);
    own[n] = 50;
    own[n + 1000000] = 60;
    v[n] = 70;
    const thread int* p = i % 2 ? own : left;
    int sum = own[n] + own[uint(n)] + v[n - 1] + p[n - 4] + own[long(n) << 40];
    for (int k = -2; k < 6; ++k) sum += left[k] + own[k] + right[k];
    out[i] = sum;
    """,
    inputs=lambda rng: {"x": np.arange(-12, 20, dtype=np.int32)},
    outputs={"out": ((32,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="memory.private_outside",
)
def private_arrays_outside(x):
    def at(array, k):
        return int(array[k]) if 0 <= k < 4 else 0

    sums = []
    for i, n in enumerate(x.tolist()):
        own, left, v = [5, 6, 7, 8], [1, 2, 3, 4], [1, 2, 3, 4]
        if 0 <= n < 4:
            own[n], v[n] = 50, 70
        first = own[0] if n == 0 else 0
        sums.append(2 * at(own, n) + at(v, n - 1) + at(own if i % 2 else left, n - 4) + first + sum(own) + 10 + 42)
    return np.array(sums, np.int32)


@body(
    """
    threadgroup int left[32], cells[32], right[32];
    threadgroup atomic_int count[2];
    int i = int(thread_position_in_grid.x), t = int(thread_position_in_threadgroup.x), n = x[i];
    left[t] = 1; cells[t] = t; right[t] = 3;
    if (t < 2) atomic_store_explicit(&count[t], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    cells[t + 32] = 99;
    cells[-1 - t] = 99;
    int zero = 0;
    bool done = atomic_compare_exchange_weak_explicit(&count[2 + t], &zero, 8, memory_order_relaxed,
                                                      memory_order_relaxed);
    int before = atomic_fetch_add_explicit(&count[-1 - t], 5, memory_order_relaxed);
    atomic_fetch_add_explicit(&count[n], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int sum = 0;
    for (int k = n; k < n + 3; ++k) sum += cells[k];
    out[i] = sum + 100 * (left[t] + right[t]) + 1000 * (done + before + zero) +
             10000 * (atomic_load_explicit(&count[0], memory_order_relaxed) +
                      atomic_load_explicit(&count[1], memory_order_relaxed));
    """,
    inputs=lambda rng: {"x": np.arange(-20, 44, dtype=np.int32)},
    outputs={"out": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="memory.threadgroup_outside",
)
def threadgroup_arrays_outside(x):
    k = x[:, None] + np.arange(3)
    sums = np.where((k >= 0) & (k < 32), k, 0).sum(axis=1)
    counts = ((x >= 0) & (x < 2)).reshape(2, 32).sum(axis=1).repeat(32)
    return (sums + 400 + 1000 + 10000 * counts).astype(np.int32)


@body(
    """
    // Pointers that come from one of two arguments, by a condition, in a loop, and through functions.
    int i = int(thread_position_in_grid.x);
    device const int* p = i % 2 ? a : b;
    int sum = p[i];
    device const int* from = a;
    for (int j = 0; j < 3; ++j) {
      sum += 10 * from[i - 2];
      from = (i + j) % 3 == 0 ? b : from + 1;
    }
    sum += 100 * at(i > 8 ? a : b, i) + 1000 * Window{a + 2}.get(i - 3);
    out[i] = sum;
    """,
    header="""
int at(device const int* values, int i) { return values[i]; }
struct Window {
  device const int* values;
  int get(int i) const { return values[i]; }
};
""",
    inputs=lambda rng: {"a": rng.integers(1, 9, 9, np.int32), "b": rng.integers(1, 9, 14, np.int32)},
    outputs={"out": ((20,), "int32")},
    grid=(20, 1, 1),
    threadgroup=(20, 1, 1),
    constructs="memory.merged_pointers memory.through_a_local_pointer structure.helper_function",
)
def loads_through_merged_pointers(a, b):
    def get(array, index):
        return int(array[index]) if 0 <= index < len(array) else 0

    out = []
    for i in range(20):
        total = get(a if i % 2 else b, i)
        array, first = a, 0
        for j in range(3):
            total += 10 * get(array, first + i - 2)
            array, first = (b, 0) if (i + j) % 3 == 0 else (array, first + 1)
        total += 100 * get(a if i > 8 else b, i) + 1000 * get(a, 2 + i - 3)
        out.append(total)
    return np.array(out, np.int32)


@body(
    """
    int i = int(thread_position_in_grid.x);
    out[i] = few[i] + 10 * x_shape[i] + 100 * int(x_strides[i - 1]) + 1000 * x[i] + 10000 * x_ndim;
    """,
    inputs=lambda rng: {"few": rng.integers(1, 9, 3, np.int32), "x": rng.integers(1, 9, (2, 4), np.int32)},
    outputs={"out": ((12,), "int32")},
    grid=(12, 1, 1),
    threadgroup=(12, 1, 1),
    constructs="memory.load_outside memory.shapes_outside address_spaces.constant",
)
def loads_of_constants_outside(few, x):
    def get(array, index):
        return int(array[index]) if 0 <= index < len(array) else 0

    flat = x.reshape(-1)
    return np.array(
        [get(few, i) + 10 * get([2, 4], i) + 100 * get([4, 1], i - 1) + 1000 * get(flat, i) + 20000 for i in range(12)],
        np.int32,
    )


@body(
    """
    int i = int(thread_position_in_grid.x);
    out[i] = nothing[i] + nothing[0] + nothing_shape[0] * 10 + nothing_shape[1];
    none[i] = 3;
    """,
    inputs=lambda rng: {"nothing": np.zeros((0, 4), np.int32)},
    outputs={"out": ((8,), "int32"), "none": ((0,), "int32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="memory.load_outside memory.store_outside layouts.empty",
)
def arrays_without_elements(nothing):
    return np.full(8, 4, np.int32), np.zeros(0, np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    out[i] = x[i] * 2;
    """,
    inputs=lambda rng: {"x": rng.normal(size=64).astype(np.float32)},
    outputs={"out": ((64,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    compile_options={"bounds": "off"},
    constructs="memory.guards_off",
)
def without_guards(x):
    return x * np.float32(2)


@body(
    """
    // A column of a matrix as it is: what lies between its elements is inside, what lies behind the last is not.
    int i = int(thread_position_in_grid.x);
    out[i] = x[i - 4];
    """,
    inputs=lambda rng: {"x": rng.integers(1, 99, (5, 6), np.int32)[:, 2]},
    outputs={"out": ((40,), "int32")},
    grid=(40, 1, 1),
    threadgroup=(40, 1, 1),
    ensure_row_contiguous=False,
    reads_around=True,
    constructs="memory.strided_extent layouts.strided",
)
def loads_around_a_column(x):
    base = x.base.reshape(-1)
    out = np.zeros(40, np.int32)
    out[4 : 4 + 25] = base[2:27]
    return out


# ---- Read first, mask afterwards
#
# A mask with zero behind a guarded load may become part of the guard; one with another value, or of a value that is
# used without the mask too, may not.

for _type, _dtype in (("float", "float32"), ("half", "float16"), ("int", "int32"), ("uchar", "uint8")):

    def _masked(x, mask, dtype=_dtype):
        place = np.arange(-8, 56)

        def read(at):
            return np.where((at >= 0) & (at < 40), x[np.clip(at, 0, 39)], 0).astype(DTYPES[dtype])

        a, b, c, d, e, f = (read(place + n) for n in range(6))
        zero, one = DTYPES[dtype].type(0), DTYPES[dtype].type(1)
        negative = zero if DTYPES[dtype].kind in "iu" else -zero
        columns = [
            np.where(mask, a, zero),
            np.where(mask, zero, b),
            np.where(mask, c, negative),
            np.where(mask, d, one),
            np.where(mask, e, zero),
            e,
            np.where(mask & (place % 3 == 0), f, zero),
        ]
        out = np.stack(columns, axis=1).astype(DTYPES[dtype])
        return out, np.signbit(out.astype(np.float32))

    body(
        f"""
        int i = thread_position_in_grid.x, place = i - 8;
        bool keep = mask[i];
        {_type} a = x[place], b = x[place + 1], c = x[place + 2], d = x[place + 3], e = x[place + 4];
        {_type} f = x[place + 5];
        {_type} results[7] = {{
            keep ? a : {_type}(0), keep ? {_type}(0) : b, keep ? c : {_type}(-0.0f), keep ? d : {_type}(1),
            keep ? e : {_type}(0), e, keep && place % 3 == 0 ? f : {_type}(0)
        }};
        for (int k = 0; k < 7; ++k) {{
          out[7 * i + k] = results[k];
          negative[7 * i + k] = signbit(float(results[k]));
        }}
        """,
        name=f"masks_behind_loads_{_type}",
        inputs=lambda rng, dtype=_dtype: {
            "x": rng.integers(1, 100, 40).astype(DTYPES[dtype]),
            "mask": rng.integers(0, 2, 64).astype(bool),
        },
        outputs={"out": ((64, 7), _dtype), "negative": ((64, 7), "bool")},
        grid=(64, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="memory.load_outside",
    )(_masked)


# ---- Many elements that lie apart, each of which lanes may load one after the other


def _loads_apart(times):
    return (
        "uint i = thread_position_in_grid.x;\nulong a = i;\n"
        + "".join(f"a = a * 5 + x[(a >> 3 & 15) + {k % 17}];\n" for k in range(times))
        + "out[i] = a;"
    )


def _loaded_apart(x, times):
    a = np.arange(64, dtype=np.uint64)
    for k in range(times):
        a = a * np.uint64(5) + x[(a >> np.uint64(3) & np.uint64(15)) + np.uint64(k % 17)]
    return a


_APART: dict[str, Any] = {
    "inputs": lambda rng: {"x": rng.integers(0, 1 << 63, 32).astype(np.uint64)},
    "outputs": {"out": ((64,), "uint64")},
    "grid": (64, 1, 1),
    "threadgroup": (32, 1, 1),
    "constructs": "types.ulong",
}


@body(_loads_apart(100), **_APART)
def many_loads_of_elements_apart(x):
    return _loaded_apart(x, 100)


@body(_loads_apart(400), **_APART)
def four_hundred_loads_of_elements_apart(x):
    return _loaded_apart(x, 400)
