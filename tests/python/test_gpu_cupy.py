"""Kernels on CuPy's arrays."""

import kiln
import numpy as np
import pytest
from gpu import needs_gpu, needs_two_gpus

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

pytestmark = needs_gpu

INDEX = "uint i = thread_position_in_grid.x; "
COPY = kiln.metal_kernel("copy", ["x"], ["y"], INDEX + "y[i] = x[i];")
SLOW = kiln.metal_kernel(
    "slow",
    ["x"],
    ["y"],
    INDEX
    + "uint n = i; for (int k = 0; k < 2000000; ++k) n = n * 1664525u + 1013904223u; y[i] = n == 7 ? 0 : x[i] + 1;",
)


def call(kernel, x, **changes):
    keywords = {
        "inputs": [x],
        "grid": (x.size, 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
    }
    if "outputs" in changes:
        del keywords["output_shapes"], keywords["output_dtypes"]
    return kernel(**{**keywords, **changes})[0]


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "complex64",
    ],
)
def test_dtypes(dtype):
    x = cupy.arange(300).astype(dtype)
    y = call(COPY, x)
    assert isinstance(y, cupy.ndarray) and y.dtype == x.dtype
    assert bool((x == y).all())


def test_views():
    matrix = cupy.arange(64 * 48, dtype=cupy.float32).reshape(64, 48)
    by_strides = kiln.metal_kernel(
        "k",
        ["x"],
        ["y"],
        INDEX + "y[i] = x[elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim)];",
        ensure_row_contiguous=False,
    )
    for view in (matrix.T, matrix[::2, 3:], matrix[::-1], cupy.broadcast_to(matrix[0], (3, 48)), matrix[:, :0]):
        for kernel in (COPY, by_strides):
            assert bool((call(kernel, view) == view).all())


def test_given_outputs_and_streams():
    x = cupy.arange(1 << 16, dtype=cupy.float32)
    y = cupy.empty_like(x)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        assert call(SLOW, x, outputs=[y]) is y
    assert not stream.done
    stream.synchronize()
    assert bool((y == x + 1).all())
    for given in (stream, stream.ptr):
        z = call(SLOW, x, stream=given)
        assert not stream.done
        stream.synchronize()
        assert bool((z == x + 1).all())


def test_numpys_arrays_do_not_mix():
    with pytest.raises(TypeError, match="arrays of one library but got arrays of cupy and numpy"):
        call(COPY, cupy.zeros(8, cupy.float32), outputs=[np.zeros(8, np.float32)])


def test_dtypes_that_no_kernel_can_take():
    with pytest.raises(TypeError, match="Input `x` has dtype complex128, which no kernel can take"):
        call(COPY, cupy.zeros(8, cupy.complex128), output_dtypes=[cupy.float32])


@needs_two_gpus
def test_each_gpu_runs_what_is_there():
    for index in (1, 0, 1):
        with cupy.cuda.Device(index):
            x = cupy.arange(100, dtype=cupy.float32)
        y = call(COPY, x)
        assert y.device.id == index
        with cupy.cuda.Device(index):
            assert bool((y == x).all())
