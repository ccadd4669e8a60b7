"""Batches as an axis of the grid, and slices of grids: the bits of launches of their own, of one launch."""

import pickle
from typing import Any

import function_definitions as definitions
import kiln
import numpy as np
import pytest
from bodies.attributes import NAMES as ATTRIBUTE_NAMES
from gpu_code import code_of
from kiln._functions import spec_of_input
from kiln._grid_parts import batched_function


def shape_of(x, *_):
    return [x.shape]


def dtype_of(x, *_):
    return [x.dtype]


def thread_per_element(x, *_):
    return tuple(x.shape[::-1])


def function_of(
    source: str, names: tuple[str, ...] = ("x",), threadgroup=(8, 2, 2), make: Any = None, **options
) -> Any:
    kernel = (make or kiln.metal_kernel)("part", list(names), ["y"], source, **options)
    return kernel.function(
        output_shapes=shape_of,
        output_dtypes=dtype_of,
        grid=thread_per_element,
        threadgroup=threadgroup,
        init_value=0,
    )


INDEX = "uint3 p = thread_position_in_grid; uint i = (p.z * x_shape[1] + p.y) * x_shape[2] + p.x; "
BODIES = {
    "every attribute": INDEX
    + "uint hash = x[i]; "
    + "".join(
        f"hash = hash * 31 + {name}; "
        if name.split("_")[0] not in ("dispatch", "grid", "threads", "threadgroups", "thread", "threadgroup")
        or "_index_" in name
        or name in ("thread_execution_width", "threads_per_simdgroup")
        or "groups_per_threadgroup" in name
        else f"hash = hash * 31 + {name}.x * 7 + {name}.y * 5 + {name}.z * 3; "
        for name in ATTRIBUTE_NAMES
    )
    + "y[i] = hash;",
    "threadgroup memory": INDEX
    + """
        threadgroup uint shared[32];
        uint t = thread_index_in_threadgroup;
        uint3 n = threads_per_threadgroup;
        shared[t] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[i] = shared[n.x * n.y * n.z - 1 - t] + 100 * simd_sum(x[i]);
    """,
    "its own names": INDEX
    + """
        uint3 threads_per_grid = uint3(3);
        p.x += threads_per_grid.x;
        thread_position_in_grid = p;
        if (x[i] == 3) return;
        y[i] = thread_position_in_grid.x;
    """,
}


def values(*shape):
    return np.random.default_rng(sum(shape)).integers(0, 9, shape).astype(np.uint32)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("shape", [(4, 6, 30), (2, 1, 7), (2, 3, 64)])
def test_a_batch_has_the_bits_of_launches_of_its_own(name, shape):
    function = function_of(BODIES[name])
    x = values(5, *shape)
    got = batched_function(function, (True,))(x)
    assert np.array_equal(got, np.stack([function(element) for element in x]))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("shape", [(4, 6, 30), (1, 1, 7), (3, 5, 33)])
def test_slices_have_the_bits_of_one_launch(name, shape):
    function = function_of(BODIES[name])
    x = values(*shape)
    whole = function(x)
    for axis in range(3):
        for count in (1, 2, 5):
            parts = [function.shard(i, count, axis)(x) for i in range(count)]
            assert np.array_equal(sum(parts), whole), (axis, count)
            # Each thread belongs to one slice.
            assert (sum((part != 0).astype(int) for part in parts) <= 1).all()


def test_scalars_strides_and_common_inputs():
    function = function_of(
        INDEX + "y[i] = x[elem_to_loc(i, x_shape, x_strides, x_ndim)] * s + w[i % w_shape[0]] + x_ndim + w_shape[0];",
        ("x", "s", "w"),
        ensure_row_contiguous=False,
    )
    x, s, w = values(4, 3, 5, 2).transpose(0, 3, 2, 1), values(4), values(4, 7)
    for flags in ((True, True, True), (True, False, True), (False, True, False), (True, True, False)):
        inputs = [value if flag else value[0] for value, flag in zip((x, s, w), flags, strict=True)]
        expected = [
            function(*[value[k] if flag else value for value, flag in zip(inputs, flags, strict=True)])
            for k in range(4)
        ]
        assert np.array_equal(batched_function(function, flags)(*inputs), np.stack(expected)), flags


def shifted(source: str) -> str:
    return INDEX + "int n = x_shape[0] * x_shape[1] * x_shape[2]; int j = int(i); " + source


OUTSIDE = {
    "reads": shifted("y[i] = x[j - 3] + 10 * x[j + 5] + 100 * x[n] + 1000 * x[-1];"),
    "stores": shifted("y[j + 2] = x[i]; if (j == 0) { y[n] = 9; y[-1] = 9; y[n + 7] = 9; }"),
    "a pointer that moves": shifted(
        "auto at = x + j - 4; uint s = 0; for (int k = 0; k < 9; ++k) s += *at++; y[i] = s;"
    ),
    "vectors": shifted(
        "device uint4* to = (device uint4*)y; const device uint4* from = (const device uint4*)x; to[j - 1] = from[j] + from[j + 1];"
    ),
    "one of two pointers": shifted(
        "auto o = j % 2 ? x + 1 : w - 2; y[i] = o[j]; auto q = j % 3 ? x : w; y[i] += q[n - j + 1];"
    ),
    "threadgroup memory": shifted(
        """
        threadgroup uint shared[64];
        uint t = thread_index_in_threadgroup;
        shared[t] = x[j - 1];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[i] = shared[threads_per_threadgroup.x - 1 - t] + w[j + 3];
        """
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("shape", [(4, 6, 30), (2, 1, 7), (2, 3, 64), (1, 1, 1)])
def test_accesses_outside_of_an_array_of_a_batch_reach_no_neighbor(name, shape):
    function = function_of(OUTSIDE[name], ("x", "w"), threadgroup=(8, 1, 1))
    x, w = values(5, *shape), values(5, *shape)[::-1].copy()
    for flags in ((True, True), (True, False), (False, True)):
        inputs = [value if flag else value[0] for value, flag in zip((x, w), flags, strict=True)]
        expected = [
            function(*[value[k] if flag else value for value, flag in zip(inputs, flags, strict=True)])
            for k in range(5)
        ]
        assert np.array_equal(batched_function(function, flags)(*inputs), np.stack(expected)), flags


def test_strided_arrays_of_a_batch_have_their_own_bounds():
    function = function_of(
        INDEX + "int j = int(i); y[i] = x[j - 2] + 10 * x[j * x_strides[2] + 1] + 100 * x[-j] + 1000 * s;",
        ("x", "s"),
        ensure_row_contiguous=False,
    )
    whole = values(12, 4, 6, 10)
    for x in (
        whole[::2],
        whole[::-3],
        whole[:, ::-1, :, ::2],
        whole[::-1, ::2, ::-1, ::-1],
        whole.transpose(3, 1, 2, 0),
    ):
        s = values(len(x))
        expected = np.stack([function(x[k], s[k]) for k in range(len(x))])
        assert np.array_equal(batched_function(function, (True, True))(x, s), expected), x.strides


def test_atomics_outside_of_an_array_of_a_batch():
    kernel = kiln.metal_kernel(
        "histogram",
        ["x"],
        ["y"],
        "atomic_fetch_add_explicit(&y[int(x[thread_position_in_grid.x]) - 2], 1u, memory_order_relaxed);",
        atomic_outputs=True,
    )
    function = kernel.function(
        output_shapes=[(5,)], output_dtypes=["uint32"], grid=lambda x: (x.size,), threadgroup=64, init_value=0
    )
    x = values(6, 1000)
    expected = np.stack([np.bincount(row, minlength=7)[2:7] for row in x])
    assert np.array_equal(batched_function(function, (True,))(x), expected)


def test_a_store_through_an_input_of_a_batch_is_refused():
    kernel = kiln.metal_kernel("store", ["x"], ["y"], "y[0] = 1;\n  ((device float*)x)[thread_position_in_grid.x] = 1;")
    function = kernel.function(output_shapes=[(1,)], output_dtypes=["float32"], grid=4, threadgroup=4)
    with pytest.raises(kiln.UnsupportedError, match="source:2") as alone:
        function(np.ones(4, np.float32))
    with pytest.raises(kiln.UnsupportedError, match="source:2") as batch:
        batched_function(function, (True,))(np.ones((3, 4), np.float32))
    assert str(batch.value) == str(alone.value)


CUDA = """
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = x_shape[0];
    if (i < n && blockIdx.z < gridDim.z) y[i] = 2 * x[i * x_strides[0]] + blockIdx.x + 100 * gridDim.x + 7 * x_ndim;
"""


def test_cuda_bodies():
    function = function_of(CUDA, threadgroup=(16, 1, 1), make=kiln.cuda_kernel)
    x = values(6, 70)
    assert np.array_equal(batched_function(function, (True,))(x), np.stack([function(element) for element in x]))
    for count in (1, 2, 3, 7):
        assert np.array_equal(sum(function.shard(i, count)(x[0]) for i in range(count)), function(x[0]))


def test_batches_of_more_blocks_than_hardware_takes_are_several_launches(monkeypatch):
    function = function_of(CUDA, threadgroup=(16, 1, 1), make=kiln.cuda_kernel)
    x = values(7, 70)
    monkeypatch.setattr("kiln._grid_parts._MOST_BLOCKS_IN_Z", 3)
    assert np.array_equal(batched_function(function, (True,))(x), np.stack([function(element) for element in x]))
    assert [record.grid for record in function._parts[(True,)]._kernel.history[-3:]] == [
        (70, 1, 3),
        (70, 1, 3),
        (70, 1, 1),
    ]
    # Metal's have no such limit.
    function = function_of(BODIES["threadgroup memory"], threadgroup=(8, 1, 1))
    x = values(7, 1, 2, 9)
    assert np.array_equal(batched_function(function, (True,))(x), np.stack([function(element) for element in x]))
    assert function._parts[(True,)]._kernel.history[-1].grid == (9, 2, 7)


def test_what_sees_the_whole_launch_is_refused_by_line():
    header = "\n__device__ int at() {\n  return blockIdx.x; }"
    function = function_of("y[at()] = x[at()];", header=header, make=kiln.cuda_kernel)
    with pytest.raises(kiln.UnsupportedError) as error:
        function.vmap("grid")
    assert str(error.value) == (
        "[cuda_kernel] `part`: header:3: `blockIdx` is of the whole launch here, and the body's grid is a part of it (a "
        "batch as an axis of the grid, or a slice)."
    )
    assert repr(function) == "<kiln.Function of `part`>"
    with pytest.raises(kiln.UnsupportedError, match="header:3: `blockIdx` is of the whole launch here"):
        function.shard(0, 2)
    function = function_of("\n auto g = cooperative_groups::this_grid();", make=kiln.cuda_kernel)
    with pytest.raises(kiln.UnsupportedError, match="source:2: `cooperative_groups` is of the whole launch here"):
        function.vmap("grid")


def test_a_batch_needs_whole_threadgroups():
    function = function_of(BODIES["threadgroup memory"])
    with pytest.raises(ValueError) as error:
        batched_function(function, (True,))(values(5, 3, 2, 2))
    assert str(error.value) == (
        "[metal_kernel] A batch of `part` as an axis of the grid needs whole threadgroups along z, and the grid has 3 "
        "threads there in threadgroups of 2."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), "Expected `count` to be at least 1 but got 0."),
        ((2, 2), "Expected `index` to be in [0, 1] but got 2."),
        ((0, 2, 3), "Expected `axis` to be 0, 1 or 2 but got 3."),
    ],
)
def test_wrong_slices(arguments, message):
    with pytest.raises(ValueError) as error:
        definitions.square.shard(*arguments)
    assert str(error.value) == f"[metal_kernel] {message}"


def test_slices_and_batches_pickle():
    x = np.arange(1000, dtype=np.float32)
    parts = [pickle.loads(pickle.dumps(definitions.square.shard(i, 2))) for i in range(2)]
    assert np.array_equal(parts[0](x)[:512], (x * x)[:512]) and np.array_equal(parts[1](x)[512:], (x * x)[512:])
    batch = pickle.loads(pickle.dumps(batched_function(definitions.mirrored, (True, False))))
    assert np.array_equal(batch(x.reshape(4, 250), x[:250]), x.reshape(4, 250)[:, ::-1] * x[:250])


def test_an_exported_function_is_no_part():
    mx = pytest.importorskip("mlx.core")
    import kiln.mlx

    part = definitions.square.shard(0, 2)
    with pytest.raises(kiln.UnsupportedError, match="is a part of a grid"):
        kiln.mlx._marks_export(part)(mx.ones(4))


@pytest.mark.parametrize("dialect", ["metal", "cuda"])
def test_batches_compile_for_gpus(dialect):
    """Metal's to PTX, whose loads assume no alignment that only the first array has; CUDA's by NVRTC."""
    if dialect == "metal":
        function, x = function_of(OUTSIDE["vectors"], ("x", "w"), threadgroup=(8, 1, 1)), values(5, 2, 3, 7)
    else:
        function, x = function_of(CUDA, threadgroup=(16, 1, 1), make=kiln.cuda_kernel), values(6, 70)
    inputs = [x] * len(function.input_names)
    batched = batched_function(function, (True,) * len(inputs))
    numbers = [np.int32(n) for n in batched._numbers(tuple(spec_of_input(value) for value in inputs))]
    code = code_of(batched._kernel, [*inputs, *numbers], [("uint32", x.shape)], [], "sm_90")
    if dialect == "metal":
        assert b"ld.global" in code and b"ld.global.v" not in code and b"ld.global.nc.v" not in code
    else:
        assert b"\x7fELF" in code
