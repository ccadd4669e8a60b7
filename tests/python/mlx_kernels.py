"""What the tests of kernels on MLX's arrays share."""

from typing import Any

import kiln
import kiln.mlx
import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

# MLX's types say of what a custom function gives that it is an object.
custom_function: Any = mx.custom_function

# Every dtype that Metal has.
DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name, None) or getattr(np, name))
    for name in (
        *("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "complex64"),
    )
}


def to_mlx(value):
    """The same elements in the same order in memory; what is no array as it is."""
    if not isinstance(value, np.ndarray):
        return value
    if value.flags.c_contiguous:
        # MLX does not know ml_dtypes.
        if value.dtype == ml_dtypes.bfloat16:
            return mx.array(value.copy().view(np.uint16)).view(mx.bfloat16)
        # A copy has strides of its own also where an array without elements has negative ones, which MLX refuses.
        return mx.array(value.copy())
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.flags.c_contiguous
    first = (value.ctypes.data - base.ctypes.data) // value.itemsize
    strides = [stride // value.itemsize for stride in value.strides]
    return mx.as_strided(to_mlx(base.reshape(-1)), value.shape, strides, first)


def to_numpy(array):
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)


def numbers(shape, dtype="float32", seed=0):
    """An array with every kind of element that compares equal to itself."""
    dtype = DTYPES[dtype]
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def _has_own_kernels() -> bool:
    try:
        make("", function=mx.fast.metal_kernel)
    except RuntimeError as error:
        assert str(error) == "[metal_kernel] No Metal back-end.", error
        return False
    return True


def make(
    source, inputs=("a",), outputs=("out",), name="kernel", function=kiln.mlx.metal_kernel, **options
) -> kiln.Kernel:
    """A kernel; also one of MLX's own, which is called alike."""
    return function(name=name, input_names=list(inputs), output_names=list(outputs), source=source, **options)


def call(kernel, *inputs, shapes=None, dtypes=None, threads=None, **options):
    """One thread for each element of the first output; that is like the first input unless told otherwise."""
    shapes = shapes or [inputs[0].shape]
    dtypes = dtypes or [inputs[0].dtype] * len(shapes)
    return kernel(
        **{
            "inputs": list(inputs),
            "output_shapes": shapes,
            "output_dtypes": dtypes,
            "grid": (int(np.prod(shapes[0])) if threads is None else threads, 1, 1),
            "threadgroup": (64, 1, 1),
            **options,
        }
    )


def call1(kernel, *inputs, **options):
    (result,) = call(kernel, *inputs, **options)
    return result


DOUBLE = "uint i = thread_position_in_grid.x; out[i] = 2 * a[i];"
ADD = "uint i = thread_position_in_grid.x; out[i] = a[i] + b[i];"
COPY = "uint i = thread_position_in_grid.x; out[i] = a[i];"
STRIDED_COPY = """
    uint i = thread_position_in_grid.x;
    out[i] = a[elem_to_loc<int64_t>(i, a_shape, a_strides, a_ndim)];
"""
# Half of the threads wait at each barrier, so that neither opens.
BROKEN_BARRIER = """
    uint i = thread_position_in_grid.x;
    if (i % 2 == 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    } else {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    out[i] = a[i];
"""


# Before 0.32 MLX makes its own kernels only where Metal is, so here it can neither export them nor be compared with.
needs_own_kernels = pytest.mark.skipif(not _has_own_kernels(), reason="this MLX makes no kernels without Metal")
