"""Kernels on CuPy's arrays."""

import re

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


APPEND = kiln.metal_kernel(
    "append",
    ["cache", "x"],
    ["y"],
    INDEX + "((device float*)cache)[i] = cache[i] + x[i]; y[i] = cache[i];",
    compile_options={"writable_inputs": ["cache"]},
)


def append(cache, x, **changes):
    return call(APPEND, x, inputs=[cache, x], **changes)


def test_inputs_that_are_written():
    x = cupy.arange(1000, dtype=cupy.float32)
    cache = cupy.ones_like(x)
    address = cache.data.ptr
    for n in range(1, 4):
        y = append(cache, x)
        assert bool((cache == 1 + n * x).all()) and bool((y == cache).all())
    assert cache.data.ptr == address
    # A part that is row-contiguous is written where it lies, and what is beside it stays.
    whole = cupy.zeros((3, 1000), cupy.float32)
    append(whole[1], x)
    assert bool((whole == cupy.stack([0 * x, x, 0 * x])).all())
    # On a stream, after what the stream was given before.
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        made = call(SLOW, x)
        append(made, x)
        append(made, x)
    assert not stream.done
    stream.synchronize()
    assert bool((made == 3 * x + 1).all())


def test_inputs_that_cannot_be_written():
    x = cupy.zeros(8, cupy.float32)
    cannot = "Input `cache` is to be written in place, but is "
    for cache, message in [
        (
            cupy.zeros(16, cupy.float32)[::2],
            cannot + "not row-contiguous, and `ensure_row_contiguous` would have a copy written.",
        ),
        (cupy.broadcast_to(x[:1], (8,)), cannot + "broadcast: its elements share memory."),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            append(cache, x)
        assert bool((cache == 0).all())
    for other, changes in [(x, {}), (x + 1, {"outputs": [x]})]:
        with pytest.raises(ValueError, match="`cache`"):
            append(x, other, **changes)
    assert bool((x == 0).all())
    # An array that a launch may write is no other argument's because of an error before.
    assert bool((append(x, x + 1) == 1).all()) and bool((x == 1).all())


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
