"""Launches (docs/language.md 2.1, 2.5, 3.3, 3.2, 5.1): what a body cannot show because it is about errors, or about the
caller's side."""

import subprocess
import sys
import textwrap
from typing import Any

import kiln
import numpy as np
import pytest


def run(source, *, inputs=None, output=((4,), "float32"), grid=(4, 1, 1), threadgroup=(4, 1, 1), header="", **options):
    """The only output of one launch. Names of inputs are the keys; options of the kernel and of the call are mixed."""
    of_kernel = {
        key: options.pop(key)
        for key in ("ensure_row_contiguous", "atomic_outputs", "compile_options")
        if key in options
    }
    inputs = inputs or {}
    kernel = kiln.metal_kernel(
        name="launched", input_names=list(inputs), output_names=["out"], source=source, header=header, **of_kernel
    )
    call = {"output_shapes": [output[0]], "output_dtypes": [output[1]], "grid": grid, "threadgroup": threadgroup}
    return kernel(inputs=list(inputs.values()), **call, **options)[0]


WRITE = "out[thread_position_in_grid.x] = 1;"

# ---- Grids (2.1)


@pytest.mark.parametrize(
    ("grid", "threadgroup", "message"),
    [
        ((4, 1, 1), (1025, 1, 1), "Expected `threadgroup` to have at most 1024 threads but got (1025, 1, 1)."),
        # As given, although it would be clamped to one thread.
        ((1, 1, 1), (32, 32, 2), "Expected `threadgroup` to have at most 1024 threads but got (32, 32, 2)."),
        ((4, 1, 1), (2**20, 2**20, 2**20), "at most 1024 threads but got (1048576, 1048576, 1048576)."),
        ((4, 1, 1), (0, 1, 1), "Expected each dimension of `threadgroup` to be in [1, 2147483647] but got (0, 1, 1)."),
        (
            (4, 1, 1),
            (4, -2, 1),
            "Expected each dimension of `threadgroup` to be in [1, 2147483647] but got (4, -2, 1).",
        ),
        ((0, 1, 1), (4, 0, 1), "Expected each dimension of `threadgroup` to be in [1, 2147483647] but got (4, 0, 1)."),
        ((-4, 1, 1), (4, 1, 1), "Expected each dimension of `grid` to be in [0, 2147483647] but got (-4, 1, 1)."),
        ((4, 1, 2**31), (4, 1, 1), "to be in [0, 2147483647] but got (4, 1, 2147483648)."),
    ],
)
def test_impossible_grids(grid, threadgroup, message):
    with pytest.raises(ValueError) as raised:
        run(WRITE, grid=grid, threadgroup=threadgroup)
    assert str(raised.value).startswith("[metal_kernel] ")
    assert message in str(raised.value)


@pytest.mark.parametrize("threadgroup", [(1024, 1, 1), (1, 1024, 1), (16, 8, 8), (1, 1, 1024)])
def test_the_largest_threadgroup(threadgroup):
    size = int(np.prod(threadgroup))
    source = """
    threadgroup uint seen[1024];
    uint t = thread_index_in_threadgroup;
    seen[t] = t;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[t] = seen[1023 - t];
    """
    out = run(source, output=((size,), "uint32"), grid=threadgroup, threadgroup=threadgroup)
    np.testing.assert_array_equal(out, np.arange(size)[::-1])


@pytest.mark.parametrize(
    "barrier", ["", "threadgroup_barrier(mem_flags::mem_threadgroup);"], ids=["loop", "coroutines"]
)
def test_real_sizes_at_the_edges(barrier):
    source = f"""
    uint3 at = thread_position_in_grid, size = threads_per_threadgroup;
    {barrier}
    out[at.x + 10 * at.y + 70 * at.z] = size.x + 10 * size.y + 100 * size.z;
    """
    out = run(source, output=((3, 7, 10), "uint32"), grid=(10, 7, 3), threadgroup=(4, 3, 2))
    x = np.where(np.arange(10) < 8, 4, 2)
    y = np.where(np.arange(7) < 6, 3, 1)
    z = np.where(np.arange(3) < 2, 2, 1)
    np.testing.assert_array_equal(out, x + 10 * y[:, None] + 100 * z[:, None, None])


# Code for equal threadgroups of whole simdgroups has no code for others.
@pytest.mark.parametrize(
    ("threadgroup", "grids"),
    [
        ((256, 1, 1), [(1024, 1, 1), (1000, 1, 1), (256, 3, 1)]),
        ((96, 1, 1), [(288, 2, 1), (300, 2, 1), (320, 2, 1)]),
        ((16, 16, 1), [(64, 48, 2), (64, 40, 2), (60, 48, 2)]),
        ((24, 4, 1), [(48, 8, 3), (48, 10, 3)]),
        ((8, 4, 2), [(32, 16, 4), (32, 16, 5), (30, 16, 4)]),
        ((20, 3, 1), [(40, 6, 1), (50, 6, 1)]),
    ],
)
def test_launches_with_and_without_threadgroups_at_an_edge(threadgroup, grids):
    kernel = kiln.metal_kernel(
        name="launched",
        input_names=[],
        output_names=["out"],
        source="""
        uint3 at = thread_position_in_grid, size = threads_per_grid, sides = threads_per_threadgroup;
        uint count = sides.x * sides.y * sides.z, t = thread_index_in_threadgroup;
        threadgroup uint places[1024];
        uint place = at.x + size.x * (at.y + size.y * at.z);
        places[t] = place;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[place] = places[count - 1 - t];
        """,
    )
    for grid in [*grids, *grids]:
        size = grid[::-1]
        places = np.arange(np.prod(size), dtype=np.uint32).reshape(size)
        expected = np.empty_like(places)
        for z in range(0, size[0], threadgroup[2]):
            for y in range(0, size[1], threadgroup[1]):
                for x in range(0, size[2], threadgroup[0]):
                    here = np.s_[z : z + threadgroup[2], y : y + threadgroup[1], x : x + threadgroup[0]]
                    expected[here] = places[here].ravel()[::-1].reshape(places[here].shape)
        call = {"output_shapes": [size], "output_dtypes": ["uint32"], "grid": grid, "threadgroup": threadgroup}
        (out,) = kernel(inputs=[], **call)
        np.testing.assert_array_equal(out, expected)
        compiled = kernel.compile(inputs=[], **call)
        if compiled.engine != "simd":
            continue
        are_equal = all(side % of_group == 0 for side, of_group in zip(grid, threadgroup, strict=True))
        are_whole = np.prod(threadgroup) % 32 == 0
        is_left_out = "unused-simdgroups" in {one.name for one in compiled.passes()}
        assert is_left_out == (are_equal and are_whole)


@pytest.mark.parametrize("grid", [(0, 1, 1), (4, 0, 1), (4, 1, 0), (0, 0, 0)])
def test_grid_without_threads(grid):
    assert run(WRITE, grid=grid).shape == (4,)
    np.testing.assert_array_equal(run(WRITE, grid=grid, init_value=7), np.full(4, 7, np.float32))


def test_threadgroup_is_clamped_in_each_dimension():
    source = "out[thread_position_in_grid.x] = threads_per_threadgroup.x + 100 * dispatch_threads_per_threadgroup.y;"
    np.testing.assert_array_equal(run(source, threadgroup=(64, 16, 1)), np.full(4, 104, np.float32))


# ---- Threadgroup memory (2.2)

FILL = """
    threadgroup uint words[WORDS];
    uint t = thread_index_in_threadgroup;
    for (uint i = t; i < WORDS; i += 64) words[i] = i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint sum = 0;
    for (uint i = t; i < WORDS; i += 64) sum += words[WORDS - 1 - i];
    out[thread_position_in_grid.x] = sum;
"""


@pytest.mark.parametrize("kilobytes", [32, 64])
def test_threadgroup_memory(kilobytes):
    words = kilobytes * 256
    out = run(
        FILL, header=f"#define WORDS {words}", output=((128,), "uint32"), grid=(128, 1, 1), threadgroup=(64, 1, 1)
    )
    expected = np.arange(words, dtype=np.uint32)[::-1].reshape(-1, 64).sum(axis=0)
    np.testing.assert_array_equal(out, np.tile(expected, 2).astype(np.uint32))


# ---- Barriers that only some threads reach (2.5)

UNREACHED = {
    "one branch": (
        """
        if (thread_index_in_threadgroup < 5)
          threadgroup_barrier(mem_flags::mem_none);
        threadgroup_barrier(mem_flags::mem_none);
        """,
        (2, "only 5 of 64 threads"),
    ),
    "one simdgroup": (
        """
        if (simdgroup_index_in_threadgroup == 1) threadgroup_barrier(mem_flags::mem_none);
        out[0] = 1;
        threadgroup_barrier(mem_flags::mem_none);
        """,
        (1, "only 32 of 64 threads"),
    ),
    "a loop of different lengths": (
        """
        for (uint i = 0; i < thread_index_in_threadgroup; ++i) {
          threadgroup_barrier(mem_flags::mem_none);
        }
        threadgroup_barrier(mem_flags::mem_none);
        """,
        (2, "only 63 of 64 threads"),
    ),
    "two barriers for one": (
        """
        if (thread_index_in_threadgroup % 2) {
          threadgroup_barrier(mem_flags::mem_none);
        } else {
          threadgroup_barrier(mem_flags::mem_none);
        }
        """,
        (2, "only 32 of 64 threads"),
    ),
    "continue before it": (
        """
        for (int i = 0; i < 3; ++i) {
          if (i == 1 && thread_index_in_threadgroup == 63) continue;
          threadgroup_barrier(mem_flags::mem_none);
        }
        threadgroup_barrier(mem_flags::mem_none);
        """,
        (3, "only 63 of 64 threads"),
    ),
    "some have left a loop": (
        """
        int turns = 0;
        for (; turns < 3; ++turns)
          if (thread_index_in_threadgroup == 63) break;
        if (turns > 0) threadgroup_barrier(mem_flags::mem_none);
        threadgroup_barrier(mem_flags::mem_none);
        """,
        (4, "only 63 of 64 threads"),
    ),
    "some have left a loop, others returned": (
        """
        int turns = 0;
        for (; turns < 3; ++turns) {
          if (thread_index_in_threadgroup < 40) return;
          if (thread_index_in_threadgroup == 63) break;
        }
        if (turns > 0) threadgroup_barrier(mem_flags::mem_none);
        threadgroup_barrier(mem_flags::mem_none);
        """,
        (6, "only 23 of 24 threads"),
    ),
    "the end of an endless loop": (
        """
        for (uint i = 0;; ++i) {
          if ((thread_index_in_threadgroup & 7) == i) {
            threadgroup_barrier(mem_flags::mem_none);
            break;
          }
        }
        """,
        (3, "only 8 of 64 threads"),
    ),
    "some have returned": (
        """
        if (thread_index_in_threadgroup < 40) return;
        if (thread_index_in_threadgroup % 2) threadgroup_barrier(mem_flags::mem_none);
        simd_sum(1);
        threadgroup_barrier(mem_flags::mem_none);
        """,
        (2, "only 12 of 24 threads"),
    ),
}


def test_barrier_in_line_0():
    source = (
        "\n#line 0\nif (thread_index_in_threadgroup < 3) threadgroup_barrier(mem_flags::mem_none); else simd_sum(1);"
    )
    source += "threadgroup_barrier(mem_flags::mem_none);"
    with pytest.raises(kiln.DeviceError, match="threads reach the threadgroup_barrier"):
        run(source, grid=(256, 1, 1), threadgroup=(64, 1, 1))


@pytest.mark.parametrize("case", UNREACHED)
def test_barrier_that_some_threads_do_not_reach(case):
    source, (line, count) = UNREACHED[case]
    with pytest.raises(kiln.DeviceError) as raised:
        run(textwrap.dedent(source).strip(), grid=(256, 1, 1), threadgroup=(64, 1, 1))
    assert f"{count} reach the threadgroup_barrier in line {line} of the source" in str(raised.value)
    # The process, and the same kernel's cache, are as before.
    np.testing.assert_array_equal(run(WRITE), np.ones(4, np.float32))


def test_unreached_barrier_in_the_header():
    header = "inline void meet(uint t) {\n  if (t == 3) return;\n  threadgroup_barrier(mem_flags::mem_none);\n}\n"
    with pytest.raises(kiln.DeviceError, match=r"only 7 of 8 threads .* in line 3 of the header"):
        run("meet(thread_index_in_threadgroup);\nout[0] = simd_sum(1);\nthreadgroup_barrier(mem_flags::mem_none);",
            header=header, grid=(8, 1, 1), threadgroup=(8, 1, 1))  # fmt: skip


def test_barrier_for_those_that_are_left():
    source = """
    threadgroup uint seen[64];
    uint t = thread_index_in_threadgroup;
    seen[t] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t % 3 == 0) return;
    seen[t] = t;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[t] = seen[63 - t];
    """
    out = run(source, output=((64,), "uint32"), grid=(64, 1, 1), threadgroup=(64, 1, 1), init_value=99)
    t = np.arange(64)
    np.testing.assert_array_equal(out, np.where(t % 3 == 0, 99, np.where((63 - t) % 3 == 0, 0, 63 - t)))


# ---- Outputs and inputs (3.3, 3.2)


def test_outputs_are_fresh_and_row_contiguous():
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    kernel = kiln.metal_kernel(
        name="fresh",
        input_names=["x"],
        output_names=["out"],
        source="uint i = thread_position_in_grid.x; out[i] = x[i];",
    )
    call: dict[str, Any] = {
        "output_shapes": [(3, 4)],
        "output_dtypes": ["float32"],
        "grid": (12, 1, 1),
        "threadgroup": (12, 1, 1),
    }
    first = kernel(inputs=[x], **call)[0]
    second = kernel(inputs=[x], **call)[0]
    assert first.flags.c_contiguous and first.flags.writeable and first.flags.owndata is not None
    assert not np.shares_memory(first, second) and not np.shares_memory(first, x)
    first[...] = -1
    np.testing.assert_array_equal(second, x)


def test_initial_value_is_under_what_is_written():
    out = run("if (thread_position_in_grid.x % 2) out[thread_position_in_grid.x] = 5;", init_value=-3)
    np.testing.assert_array_equal(out, np.array([-3, 5, -3, 5], np.float32))


VIEWS = {
    "transposed": lambda base: base.reshape(6, 10).T,
    "every second, backwards": lambda base: base[::-2],
    "both axes backwards": lambda base: base.reshape(6, 10)[::-1, ::-1],
    "a column": lambda base: base.reshape(6, 10)[:, 3],
    "broadcast": lambda base: np.broadcast_to(base.reshape(6, 10)[:, 4:5], (6, 7)),
    "windows": lambda base: np.lib.stride_tricks.sliding_window_view(base, 5)[::3],
    "one element many times": lambda base: np.lib.stride_tricks.as_strided(base[7:], (4, 5), (0, 0)),
    "dimensions of one": lambda base: base.reshape(1, 60, 1)[:, ::-3, :],
}


@pytest.mark.parametrize("contiguous", [True, False], ids=["copied", "as it is"])
@pytest.mark.parametrize("name", VIEWS)
def test_views(name, contiguous):
    base = np.arange(60, dtype=np.int32) + 100
    before = base.copy()
    view = VIEWS[name](base)
    source = """
    uint i = thread_position_in_grid.x;
    long at = elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim);
    out[i] = x[at];
    """
    out = run(
        source,
        inputs={"x": view},
        output=(view.shape, "int32"),
        grid=(view.size, 1, 1),
        threadgroup=(16, 1, 1),
        ensure_row_contiguous=contiguous,
    )
    np.testing.assert_array_equal(out, view)
    np.testing.assert_array_equal(base, before)


@pytest.mark.parametrize("name", VIEWS)
def test_strides_are_those_of_the_view_or_of_its_copy(name):
    view = VIEWS[name](np.arange(60, dtype=np.int32))
    source = "uint i = thread_position_in_grid.x; if (i < x_ndim) out[i] = x_strides[i];"
    for contiguous in (True, False):
        out = run(
            source,
            inputs={"x": view},
            output=((view.ndim,), "int64"),
            grid=(view.ndim, 1, 1),
            ensure_row_contiguous=contiguous,
        )
        taken = np.ascontiguousarray(view) if contiguous and not view.flags.c_contiguous else view
        np.testing.assert_array_equal(out, np.array(taken.strides) // 4)


# ---- Guards (5.1)


def code_size(options):
    kernel = kiln.metal_kernel(
        name="guarded", input_names=["x"], output_names=["out"], compile_options=options,
        source="uint i = thread_position_in_grid.x; out[i] = x[7 * i % 64] + x[i];",
    )  # fmt: skip
    compiled = kernel.compile(
        inputs=[np.zeros(64, np.float32)], output_shapes=[(64,)], output_dtypes=["float32"], grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
    )  # fmt: skip
    return compiled.code_bytes


def test_guards_can_be_taken_out():
    assert code_size({"bounds": "off"}) < code_size({"bounds": "on"}) == code_size({})


def test_threadgroups_that_wait_for_all_others():
    source = """
        atomic_fetch_add_explicit(&arrived[0], 1u, memory_order_relaxed);
        while (atomic_load_explicit(&arrived[0], memory_order_relaxed) < threadgroups_per_grid.x) {
        }
        atomic_store_explicit(&seen[threadgroup_position_in_grid.x], atomic_load_explicit(&arrived[0], memory_order_relaxed),
                              memory_order_relaxed);
    """
    program = f"""
        import kiln
        kernel = kiln.metal_kernel("meet", [], ["arrived", "seen"], {source!r}, atomic_outputs=True)
        _, seen = kernel(inputs=[], output_shapes=[(1,), (12,)], output_dtypes=["uint32", "uint32"],
                         grid=(12, 1, 1), threadgroup=(1, 1, 1), init_value=0)
        print(seen.tolist())
    """
    # In a process of its own, which can be ended: where a threadgroup waits behind its waiter, it never does.
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False, timeout=300
    )
    assert (ran.stdout, ran.stderr) == (f"{[12] * 12}\n", "")


def test_positions_of_threads_that_wait_in_rectangles():
    """Code may be made for rectangles of whole simdgroups; threadgroups at the grid's edge are smaller."""
    kernel = kiln.metal_kernel(
        "positions",
        [],
        ["y"],
        """
        threadgroup uint s[1024];
        uint3 at = thread_position_in_threadgroup, size = threads_per_threadgroup;
        uint t = thread_index_in_threadgroup, count = size.x * size.y * size.z;
        s[count - 1 - t] = at.x + 1000 * at.y + 1000000 * size.x;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint3 place = thread_position_in_grid, grid = threads_per_grid;
        y[place.y * grid.x + place.x] = s[count - 1 - (at.y * size.x + at.x)];
        """,
    )
    for grid, threadgroup in (
        ((128, 8, 1), (64, 4, 1)),
        ((128, 6, 1), (64, 4, 1)),
        ((100, 8, 1), (64, 4, 1)),
        ((256, 2, 1), (128, 2, 1)),
        ((512, 2, 1), (512, 2, 1)),
        ((256, 5, 1), (256, 4, 1)),
        ((64, 6, 1), (64, 3, 1)),
        ((64, 8, 1), (32, 8, 1)),
    ):
        shape = (grid[1], grid[0])
        (y,) = kernel(inputs=[], grid=grid, threadgroup=threadgroup, output_shapes=[shape], output_dtypes=["uint32"])
        rows, columns = np.indices(shape)
        first = columns // threadgroup[0] * threadgroup[0]
        size = np.minimum(threadgroup[0], grid[0] - first)
        expected = columns % threadgroup[0] + 1000 * (rows % threadgroup[1]) + 1000000 * size
        np.testing.assert_array_equal(y, expected, f"{grid} {threadgroup}")


def test_simdgroups_are_full_or_not():
    """Code may be made for full simdgroups; a launch with others has code of its own."""
    kernel = kiln.metal_kernel(
        "sums",
        [],
        ["y"],
        """
        uint3 place = thread_position_in_grid, grid = threads_per_grid;
        y[(place.z * grid.y + place.y) * grid.x + place.x] = simd_sum(1u);
        """,
    )
    for grid, threadgroup, expected in (
        ((64, 3, 1), (32, 1, 1), {32}),
        ((50, 3, 1), (32, 1, 1), {32, 18}),
        ((16, 4, 2), (8, 4, 1), {32}),
        ((20, 4, 2), (8, 4, 1), {32, 16}),
        ((16, 6, 1), (8, 4, 1), {32, 16}),
        ((16, 4, 2), (16, 2, 1), {32}),
        ((96, 1, 1), (64, 1, 1), {32}),
        ((64, 3, 1), (32, 1, 1), {32}),
        ((5, 7, 1), (64, 1, 1), {5}),
    ):
        (y,) = kernel(inputs=[], grid=grid, threadgroup=threadgroup, output_shapes=[grid], output_dtypes=["uint32"])
        assert set(y.ravel()) == expected, (grid, threadgroup)
