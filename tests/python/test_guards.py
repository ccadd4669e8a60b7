"""Accesses outside their argument whose pointers do not come straight from it (docs/language.md 5.1)."""

import kiln
import numpy as np
import pytest

FAR = "(1l << 36)"
X = np.arange(1, 65, dtype=np.float32)
Z = X + 100


def run(source, header="", dtype="float32", count=64, **options):
    kernel = kiln.metal_kernel(name="guards", input_names=["x", "z"], output_names=["y"], source=source, header=header)
    return kernel(
        inputs=[X, Z], output_shapes=[(64,)], output_dtypes=[dtype], grid=(count, 1, 1), threadgroup=(64, 1, 1),
        **options,
    )[0]  # fmt: skip


def guarded(source, expected, header="", **options):
    out = run("uint i = thread_position_in_grid.x;" + source, header, **options)
    np.testing.assert_array_equal(out, expected)


TILE = "struct Tile { const device float* from; float sums[8]; device float* to; };"
INDEX = np.arange(64)


def test_structure_with_a_pointer_and_an_array():
    source = """
    Tile t;
    t.from = x + 2;
    t.to = y;
    for (int k = 0; k < 8; ++k) t.sums[k] = k;
    int j = int(x[i]) % 8;
    t.to[i] = t.sums[j] + t.from[int(i) - 2];
    t.to[64 + 4096 * i] = 1000;
    t.from[int(i) - 66 - 4096 * int(i)];
    y[i] += t.from[i + FAR] + t.from[-3 - int(i)];
    """.replace("FAR", FAR)
    guarded(source, X % 8 + X, TILE)


def test_a_structures_pointer_does_not_reach_another_argument():
    source = """
    Tile t; t.from = x; t.to = y;
    for (int k = 0; k < 8; ++k) t.sums[k] = k;
    y[i] = t.sums[int(x[i]) % 8] + t.from[(z - x) + int(i)];
    """
    guarded(source, X % 8, TILE)


def test_structures_that_are_copied_and_nested():
    header = TILE + "struct Outer { int a; Tile tile; char b; };"
    source = """
    Outer o = {1, {x, {1, 2, 3, 4, 5, 6, 7, 8}, y}, 3};
    Tile t = o.tile;
    Outer p = o;
    p.tile.sums[i % 8] += 10;
    t.to[i] = p.tile.sums[i % 8] + t.sums[(i + 1) % 8] + p.tile.from[i] + t.from[i + FAR] + p.a + p.b + o.b;
    """.replace("FAR", FAR)
    guarded(source, INDEX % 8 + 11 + (INDEX + 1) % 8 + 1 + X + 7, header)


POINTERS = """
const device float* from[2] = {x - 1, z + 64};
device float* to[2] = {y, y + 32};
float s = 0;
"""


@pytest.mark.parametrize("count", ["2", "2 + int(x[0]) - 1"])  # unrolled or not
def test_array_of_pointers(count):
    source = (
        POINTERS
        + f"""
    for (int k = 0; k < {count}; ++k) {{
      s += from[k][i + {FAR}] + from[k][int(i) + 1 - 64 * k - k];
      to[k][{FAR}] = 7;
    }}
    y[i] = s;
    """
    )
    guarded(source, X + Z)


def test_arrays_of_pointers_to_everything():
    source = """
    threadgroup float shared[64];
    float own[4] = {1, 2, 3, 4};
    own[int(x[i]) & 3] += 10;
    shared[i] = 5;
    const float* from[4] = {x, own, shared, table};
    float s = 0;
    int count = 3 + int(x[0]);
    for (int k = 0; k < count; ++k) s += from[k][i & 3] + (k == 0 || k == 3 ? from[k][i + FAR] : 0);
    y[i] = s - from[1][i & 3];
    """.replace("FAR", FAR)

    guarded(source, X[INDEX & 3] + 5 + 20 * (1 + (INDEX & 3)), "constant float table[4] = {20, 40, 60, 80};")


@pytest.mark.parametrize("address", ["(size_t)x + 4 * (size_t)i", "((size_t)x | 0ul) - 4 + 4 * size_t(i + 1)"])
@pytest.mark.parametrize("outside", ["0", "(1ul << 40)", "256", "-256"])
def test_pointer_through_an_integer(address, outside):
    source = f"const device float* p = (const device float*)({address} + {outside}); y[i] = *p;"
    guarded(source, X if outside == "0" else 0 * X)


def test_pointer_through_an_integer_in_memory():
    source = """
    size_t address[2] = {(size_t)x, (size_t)z};
    float s = 0;
    int count = 1 + int(x[0]);
    for (int k = 0; k < count; ++k) {
      s += *(const device float*)(address[k] + 4 * i) + *(const device float*)(address[k] + 4 * i + FAR);
    }
    y[i] = s;
    """.replace("FAR", FAR)
    guarded(source, X + Z)


def test_null():
    guarded("const device float* p = nullptr; if (i < 32) p = x; y[i] = p[i];", np.where(INDEX < 32, X, 0))
    guarded("const device float* p = i < 32 ? x : nullptr; y[i] = p[i]; *(device int*)nullptr = 3;",
            np.where(INDEX < 32, X, 0))  # fmt: skip


def test_constant_table():
    header = "constant float table[4] = {1, 2, 3, 4}; constant struct { float a[2]; float b; } s = {{5, 6}, 7};"
    source = "y[i] = table[int(x[i]) * 100000000 - 100000000] + table[int(i) - 2] + s.a[i * 1000];"
    guarded(source, np.r_[1 + 5, 0, 1, 2, 3, 4, np.zeros(58)], header)


def test_table_of_pointers():
    header = """
    constant float a[2] = {1, 2}, b[3] = {3, 4, 5};
    constant constant float* const tables[2] = {a, b + 1};
    struct Row { int length; constant float* values; };
    constant Row rows[2] = {{2, a}, {3, b}};
    """
    source = """
    uint k = int(x[i]) & 1;
    y[i] = tables[k][0] + 10 * rows[k].values[rows[k].length - 1] + tables[k][FAR] + rows[k + i * 1000000].length;
    """.replace("FAR", FAR)
    k = X.astype(int) & 1
    guarded(source, np.where(k, 4 + 50, 1 + 20) + np.r_[3, np.zeros(63)], header)


def test_compare_exchange_outside_sees_zero():
    source = """
    device atomic_uint* p = (device atomic_uint*)y + i;
    uint old = atomic_load_explicit(p, memory_order_relaxed), rounds = 0;
    while (!atomic_compare_exchange_weak_explicit(p, &old, old + 1, memory_order_relaxed, memory_order_relaxed))
      if (++rounds > 1000000) return;
    uint seen = 5;
    bool done = atomic_compare_exchange_weak_explicit(p + 64, &seen, 9u, memory_order_relaxed, memory_order_relaxed);
    if (done || seen != 0) atomic_store_explicit(p - 64, 77u, memory_order_relaxed);
    """
    guarded(source, np.ones(64), dtype="uint32", count=100, init_value=0)


def test_atomics_on_an_array_of_smaller_elements():
    source = """
    device atomic_uint* p = (device atomic_uint*)y + i / 2;
    uint old = atomic_load_explicit(p, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(p, &old, old + 1, memory_order_relaxed, memory_order_relaxed)) {}
    if (i == 0) atomic_store_explicit((device atomic_uint*)y + 31, 8u, memory_order_relaxed);
    """
    out = run("uint i = thread_position_in_grid.x;" + source, dtype="float16", init_value=0, count=62)
    np.testing.assert_array_equal(out.view(np.uint32), [2] * 31 + [8])
