"""Indices outside private arrays and threadgroup memory (docs/language.md 5.1): a load gives zero, a store or an atomic
does nothing, whatever the index is."""

from typing import Any

import kiln
import numpy as np
import pytest

COUNT = 64
X = np.arange(COUNT, dtype=np.int32)

BEGINNING = {
    kiln.metal_kernel: "int i = thread_position_in_grid.x; int v = x[i];",
    kiln.cuda_kernel: "int i = blockIdx.x * blockDim.x + threadIdx.x; int v = x[i];",
}


def run(source, header="", x=X, make=kiln.metal_kernel, **options):
    kernel = make("own_memory", ["x"], ["y"], BEGINNING[make] + source, header=header, **options)
    return kernel(
        inputs=[x], output_shapes=[(COUNT,)], output_dtypes=["int32"], grid=(COUNT, 1, 1), threadgroup=(COUNT, 1, 1)
    )[0]


def gives(expected, source, header="", x=X, make=kiln.metal_kernel):
    np.testing.assert_array_equal(run(source, header, x, make), np.broadcast_to(expected, COUNT))


# Each is an index outside of eight elements, for every v from 0 to 63.
OUTSIDE = [
    "8",
    "-1",
    "1000000",
    "-1000000",
    "8 + v",
    "-1 - v",
    "v + (1 << 20)",
    "(v + 1) * 1000000",
    "(long(v) + 1) << 40",
    "-((long(v) + 1) << 40)",
    "uint(-1 - v)",
    "(v ^ -1)",
    "0x7fffffff - v",
    "(int)0x80000000 + v",
    "0x7fffffffffffffffl - v",
]

PRIVATE = "int s[8] = {1, 2, 3, 4, 5, 6, 7, 8};"
THREADGROUP = """
threadgroup int s[8];
if (i < 8) s[i] = i + 1;
threadgroup_barrier(mem_flags::mem_threadgroup);
"""
SUM = "for (int k = 0; k < 8; ++k) r += s[k];"
memories = pytest.mark.parametrize("memory", [PRIVATE, THREADGROUP], ids=["private", "threadgroup"])
outside = pytest.mark.parametrize("index", OUTSIDE)


@memories
@outside
def test_load_outside_gives_zero(memory, index):
    gives(36, f"{memory} int r = s[{index}]; {SUM} y[i] = r;")


@memories
@outside
def test_store_outside_does_nothing(memory, index):
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);" if "threadgroup" in memory else ""
    gives(36, f"{memory} s[{index}] = 99; {barrier} int r = 0; {SUM} y[i] = r;")


@outside
def test_atomic_outside_does_nothing(index):
    source = f"""
    threadgroup atomic_int s[8];
    if (i < 8) atomic_store_explicit(&s[i], i + 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int r = atomic_fetch_add_explicit(&s[{index}], 5, memory_order_relaxed);
    atomic_store_explicit(&s[{index}], 7, memory_order_relaxed);
    int seen = 5;
    if (atomic_compare_exchange_weak_explicit(&s[{index}], &seen, 9, memory_order_relaxed, memory_order_relaxed)) r += 1;
    r += seen;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < 8; ++k) r += atomic_load_explicit(&s[k], memory_order_relaxed);
    y[i] = r;
    """
    gives(36, source)


def test_compare_exchange_outside_sees_zero():
    source = """
    threadgroup atomic_int s[8];
    int zero = 0, other = 5;
    bool one = atomic_compare_exchange_weak_explicit(&s[8 + v], &zero, 9, memory_order_relaxed, memory_order_relaxed);
    bool two = atomic_compare_exchange_weak_explicit(&s[-1 - v], &other, 9, memory_order_relaxed, memory_order_relaxed);
    y[i] = one * 100 + two * 10 + zero + other;
    """
    gives(100, source)


@memories
@pytest.mark.parametrize("shift", [60, 61, 62])
def test_addresses_that_wrap(memory, shift):
    """2^62 elements of four bytes are none: the address is the first element's."""
    gives(3 if shift == 62 else 0, f"{memory} y[i] = s[(1l << {shift}) + 2 + (v >> 10)];")


@memories
def test_loops_beyond_the_end(memory):
    gives(36, f"{memory} int r = 0; for (int k = -5; k < 20; ++k) r += s[k]; y[i] = r;")
    gives(36, f"{memory} int r = 0; for (int k = 0; k < 100 + v; ++k) r += s[k]; y[i] = r;")
    gives(
        np.minimum(X, 8) * (np.minimum(X, 8) + 1) // 2,
        f"{memory} int r = 0; for (int k = 0; k < v; ++k) r += s[k]; y[i] = r;",
    )
    gives(36, f"{memory} int r = 0; for (int k = 30; k >= -30; --k) r += s[k]; y[i] = r;")


def test_neighbours_are_not_reached():
    source = """
    int a[4] = {1, 1, 1, 1}, b[4] = {2, 2, 2, 2}, c[4] = {3, 3, 3, 3};
    for (int k = -8; k < 0; ++k) b[k - v] = 7;
    for (int k = 4; k < 12; ++k) b[k + v] = 7;
    int r = 0;
    for (int k = 0; k < 4; ++k) r += a[k] + b[k] + c[k] + a[4 + v + k] + c[-1 - v - k];
    y[i] = r;
    """
    gives(24, source)
    shared = """
    threadgroup int a[64], b[64], c[64];
    a[i] = 1; b[i] = 2; c[i] = 3;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    b[64 + i] = 7; b[-1 - i] = 7;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = a[i] + b[i] + c[i] + b[64 + i] + b[-1 - i];
    """
    gives(6, shared)


def test_an_element_in_part():
    """An access is inside as a whole, or outside as a whole."""
    source = """
    int s[4] = {1, 2, 3, 4};
    int r = *(thread int*)((thread char*)s + 13 + (v & 1));
    *(thread int*)((thread char*)s - 3 + (v & 1)) = -1;
    y[i] = r + s[0] + s[1] + s[2] + s[3] + int(*(thread long*)(s + 3));
    """
    gives(10, source)


def test_addresses_that_are_not_aligned():
    source = """
    threadgroup float s[68];
    s[i] = i; if (i < 4) s[64 + i] = 64 + i;
    float p[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float4 q = *(threadgroup float4*)(s + v) + *(thread float4*)(p + (v & 3));
    y[i] = q.x + q.y + q.z + q.w + (*(thread int*)((thread char*)p + 4 * (v & 1)) >> 30);
    """
    gives(4 * X + 6 + 4 * (X & 3) + 6, source)


def test_vectors_structures_and_matrices():
    header = "struct S { int a; int b[3]; int c; };"
    source = """
    int4 q[2] = {int4(1, 2, 3, 4), int4(5, 6, 7, 8)};
    S s[2] = {{1, {2, 3, 4}, 5}, {6, {7, 8, 9}, 10}};
    int m[2][3] = {{1, 2, 3}, {4, 5, 6}};
    int zero = v >> 10;
    // The object is the whole variable.
    int r = q[zero][5] + s[zero].b[4] + s[zero].b[zero - 1] + m[zero][4];
    r += q[zero][8] + q[zero - 1][zero] + s[zero + 2].a + s[zero].b[9] + s[zero - 1].c + m[zero][6] + m[2 + zero][0];
    q[zero][-1] = 9; s[zero - 1].c = 9; m[zero][6] = 9; m[-1 + zero][2] = 9;
    for (int k = 0; k < 2; ++k) r += q[k].x + q[k].w + s[k].a + s[k].c + m[k][0] + m[k][2];
    y[i] = r;
    """
    gives(6 + 6 + 1 + 5 + 18 + 22 + 14, source, header)
    gives(np.r_[1, 2, 3, np.zeros(61, np.int32)], "int3 q(1, 2, 3); q[3] = 9; y[i] = v == 3 ? 0 : q[v];")


def test_structures_as_a_whole():
    header = "struct S { int a[5]; };"
    source = """
    S s[3];
    for (int k = 0; k < 15; ++k) s[k / 5].a[k % 5] = k + 1;
    S one = s[v], two = s[-1 - v];
    s[v + 3] = one;
    s[v] = two;
    int r = 0;
    for (int k = 0; k < 15; ++k) r += s[k / 5].a[k % 5];
    y[i] = r + one.a[0] * 1000 + two.a[4];
    """
    sums = np.array([15, 40, 65])
    gives([120 - (sums[v] if v < 3 else 0) + (1000 * (5 * v + 1) if v < 3 else 0) for v in X], source, header)


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("const thread int* p = a + 100000; y[i] = p[v - 99999];", np.where(X < 3, X + 2, 0)),
        (
            "const thread int* p = v & 1 ? a : b; y[i] = p[v >> 1];",
            np.where(X // 2 < 4, X // 2 + np.where(X & 1, 1, 11), 0),
        ),
        (
            "const thread int* p = v & 1 ? a + 4 : b - 1; y[i] = p[v & 1 ? -1 - (v >> 1) : (v >> 1)];",
            np.where(X & 1, np.where(X // 2 < 4, 4 - X // 2, 0), np.where((X >= 2) & (X <= 8), X // 2 + 10, 0)),
        ),
        ("const thread int* p = a; int r = 0; for (int k = 0; k < 9; ++k, p += 1) r += *p; y[i] = r;", 10),
        ("const thread int* p = a - 3; int r = 0; while (p < a + 7) r += *p++; y[i] = r;", 10),
        ("const thread int* p = nullptr; if (v & 1) p = b; y[i] = p[v & 3];", np.where(X & 1, 11 + (X & 3), 0)),
        ("const thread int* p = (const thread int*)((size_t)a + 4 * (size_t)v); y[i] = *p;", np.where(X < 4, X + 1, 0)),
        (
            "const device int* p = v & 1 ? x + v : (const device int*)b; y[i] = p[v & 1 ? 0 : 4 + v];",
            np.where(X & 1, X, 0),
        ),
    ],
)
def test_pointers(pointer, expected):
    gives(expected, "int a[4] = {1, 2, 3, 4}, b[4] = {11, 12, 13, 14}; b[v & 3] += 0;" + pointer)


@pytest.mark.parametrize("index", ["5", "k", "k + 2", "n", "s.k", "-1", "4"])
def test_constants_known_before_and_after_promotion(index):
    source = f"""
    struct {{ size_t k; int a[2]; }} s = {{6, {{1, 2}}}};
    size_t k = 7; const int n = 5;
    int a[4] = {{1, 2, 3, 4}};
    int4 q(1, 2, 3, 4);
    a[{index}] = 50; q[{index}] = 50;
    const thread int* p = v & 1 ? &a[{index}] : &a[1];
    y[i] = a[{index}] + q[{index}] + *p + a[0] + q.w + s.a[0];
    """
    gives(np.where(X & 1, 6, 8), source)


def test_copies_in_part_outside():
    header = "struct S { int a, b, c; };"
    source = """
    int a[4] = {1, 2, 3, 4};
    S s = *(thread S*)(a + 2), t = *(thread S*)(a + 1);
    *(thread S*)(a + 3) = t;
    y[i] = s.a + s.b + s.c + t.a + t.c + a[3];
    """
    gives(10, source, header)


def test_pointers_that_were_stored():
    source = """
    int a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    thread int* p[2] = {a, b};
    int k = v & 1;
    p[k][(v & 3) + ((v & 2) << 40l)] = 9;
    int r = p[k][(1l << 36) + v] + p[2 + v][0];
    for (int j = 0; j < 4; ++j) r += a[j] + b[j];
    y[i] = r;
    """.replace("((v & 2) << 40l)", "(long(v & 2) << 40)")
    expected = [36 + (0 if v & 2 else 9 - (6 if v & 1 else 1)) for v in X]
    gives(expected, source)


@pytest.mark.parametrize(
    "stores",
    [
        "*(thread char**)p = p;",
        "*(thread char**)p = p; *(thread char**)(p + 8) = p;",
        "*(thread long*)p = *(thread long*)(p + 1);",
        "thread char** q = (thread char**)p; q[0] = p; q[1] = (thread char*)q; p[0] = p[1];",
        "*(thread char**)(a + 4) = a; *(thread char**)p = a;",
    ],
)
def test_places_outside_that_hold_their_own_address(stores):
    gives(X, f"char a[8]; thread char* p = a + 64; {stores} y[i] = v;")


def test_matrices_of_simdgroups():
    source = """
    threadgroup float s[64];
    s[i] = i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < 32) {
      simdgroup_float8x8 inside, half_outside, outside;
      simdgroup_load(inside, s, 8);
      simdgroup_load(half_outside, s + 32, 8);
      simdgroup_load(outside, s + 64 + x[63], 8);
      simdgroup_store(inside, s + 64 + x[63], 8);
      float sum = simd_sum(half_outside.thread_elements()[0] + half_outside.thread_elements()[1]);
      float none = simd_sum(outside.thread_elements()[0] + outside.thread_elements()[1]);
      y[i] = sum + none;
    } else {
      y[i] = 0;
    }
    """
    gives(np.where(X < 32, np.arange(32, 64).sum(), 0), source)


def test_cuda():
    source = """
    __shared__ int s[8];
    int p[8];
    for (int k = 0; k < 8; ++k) p[k] = k;
    if (i < 8) s[i] = i;
    __syncthreads();
    s[8 + v] = 9; s[-1 - v] = 9; p[8 + v] = 9;
    atomicAdd(&s[8 + v], 1);
    int old = atomicCAS(&s[-1 - v], 0, 3) + atomicExch(&s[100 + v], 4);
    __syncthreads();
    int r = old;
    for (int k = 0; k < 20; ++k) r += s[k] + p[k];
    y[i] = r;
    """
    gives(56, source, make=kiln.cuda_kernel)


@pytest.mark.parametrize("size", [1, 4, 64])
def test_dynamic_shared_memory(size):
    source = """
    extern __shared__ int s[];
    s[i] = v + 1;
    s[i + 100000] = 9;
    __syncthreads();
    y[i] = s[i] + s[i - 64] + s[i + 64] + s[-100000 - i];
    """
    kernel = kiln.cuda_kernel("dynamic", ["x"], ["y"], BEGINNING[kiln.cuda_kernel] + source, shared_memory=4 * size)
    y = kernel(
        inputs=[X], output_shapes=[(COUNT,)], output_dtypes=["int32"], grid=(COUNT, 1, 1), threadgroup=(COUNT, 1, 1)
    )
    np.testing.assert_array_equal(y[0], np.where(size > X, X + 1, 0))


def test_threadgroups_of_several_sizes():
    """A thread's place is known to be small enough for one launch, not for the next."""
    source = """
    threadgroup int s[64];
    uint t = thread_index_in_threadgroup;
    s[t] = int(t) + 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = s[t] + s[threads_per_threadgroup.x - 1 - t];
    """
    kernel = kiln.metal_kernel("sizes", ["x"], ["y"], BEGINNING[kiln.metal_kernel] + source)
    for size in (32, 64, 96, 128, 256, 1024, 48):
        x = np.arange(2048, dtype=np.int32)
        y = kernel(
            inputs=[x], output_shapes=[(2048,)], output_dtypes=["int32"], grid=(2048, 1, 1), threadgroup=(size, 1, 1)
        )[0]
        t = x % size
        last = np.minimum(size, 2048 - x // size * size) - 1 - t
        np.testing.assert_array_equal(y, np.where(t < 64, t + 1, 0) + np.where(last < 64, last + 1, 0))


def test_what_is_proved_has_no_guard():
    """No comparison with a length is left, so that arrays go into registers."""
    source = """
    threadgroup float s[32];
    uint lane = thread_index_in_simdgroup;
    float p[8];
    for (int k = 0; k < 8; ++k) p[k] = v * k;
    s[lane] = p[3];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float r = 0;
    for (uint stride = 16; stride > 0; stride >>= 1)
      if (lane < stride) r += s[lane + stride] + s[lane ^ 1] + p[stride & 7];
    for (int k = 7; k >= 0; --k) r += p[k] + s[k * 4 + (i & 3)];
    y[i] = r;
    """
    kernel = kiln.metal_kernel("proved", ["x"], ["y"], BEGINNING[kiln.metal_kernel] + source)
    call: dict[str, Any] = {
        "inputs": [X],
        "output_shapes": [(COUNT,)],
        "output_dtypes": ["int32"],
        "grid": (COUNT, 1, 1),
        "threadgroup": (COUNT, 1, 1),
    }
    stage = dict(kernel.compile(**call).stages())["guarded"]
    # Of the input and the output alone.
    assert stage.count("icmp ult i64") == 2, stage


def test_without_bounds():
    source = "int p[8] = {}; p[v & 15] = 5; y[i] = v < 8 ? p[v] : 5;"
    kernel = kiln.metal_kernel(
        "off", ["x"], ["y"], BEGINNING[kiln.metal_kernel] + source, compile_options={"bounds": "off"}
    )
    call: dict[str, Any] = {
        "inputs": [X & 7],
        "output_shapes": [(COUNT,)],
        "output_dtypes": ["int32"],
        "grid": (COUNT, 1, 1),
        "threadgroup": (COUNT, 1, 1),
    }
    np.testing.assert_array_equal(kernel(**call)[0], 5)
    assert "icmp ult i64" not in dict(kernel.compile(**call).stages())["guarded"]


def test_conditions_hold_where_they_stand():
    """An index that is computed twice, once where a condition bounds it."""
    source = f"""{PRIVATE} {THREADGROUP.replace("s[", "g[")}
    int r = 0;
    if (v < 5) r += s[v ^ 1] + g[v + 1];
    r += s[v ^ 1] + g[v + 1];
    if (v > 60) r += g[v + 1];
    y[i] = r;
    """
    at = lambda k: np.where((k >= 0) & (k < 8), k + 1, 0)  # noqa: E731
    gives(at(X ^ 1) + at(X + 1) + np.where(X < 5, at(X ^ 1) + at(X + 1), 0), source)
