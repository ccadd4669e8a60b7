"""Shapes as constants in machine code: which launches get it, and that it computes the same."""

import itertools
import os
import subprocess
import sys
from typing import Any

import kiln
import numpy as np
import pytest

# Reads shapes at constant and at run-time indices, strides and the rank; gives the transposed array and a checksum.
SOURCE = """
    uint i = thread_position_in_grid.x;
    int rows = x_shape[x_ndim - 2], columns = x_shape[1];
    int row = i / columns, column = i % columns;
    y[column * rows + row] = x[row * x_strides[0] + column * x_strides[1]];
    if (i == 0) {
        int sum = 0;
        for (int d = 0; d < x_ndim; ++d) sum = 1000 * sum + x_shape[d];
        z[0] = sum;
    }
"""


# Kernels of one text share machine code.
_number = itertools.count()


def make(ensure_row_contiguous=False, **options) -> kiln.Kernel:
    source = f"{SOURCE}\n// {next(_number)}"
    return kiln.metal_kernel("transpose", ["x"], ["y", "z"], source, "", ensure_row_contiguous, **options)


def launch(kernel, x):
    y, z = kernel(
        inputs=[x],
        output_shapes=[x.shape[::-1], (1,)],
        output_dtypes=[x.dtype, "int32"],
        grid=(x.size, 1, 1),
        threadgroup=(32, 1, 1),
    )
    np.testing.assert_array_equal(y, x.T)
    assert z[0] == 1000 * x.shape[0] + x.shape[1]


def array(rows, columns):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def what_ran(kernel):
    return [(record.code, record.specialized) for record in kernel.history]


def test_the_first_four_shapes_have_code_of_their_own():
    kernel = make()
    for rows in (3, 4, 5, 6):
        launch(kernel, array(rows, 7))
    assert what_ran(kernel) == [("compiled", True)] * 4
    for rows in (7, 8, 9):
        launch(kernel, array(rows, 7))
    assert what_ran(kernel)[4:] == [("compiled", False), ("memory", False), ("memory", False)]
    for rows in (6, 3):
        launch(kernel, array(rows, 7))
    assert what_ran(kernel)[7:] == [("memory", True)] * 2


def test_strides_belong_to_the_shape():
    kernel = make()
    x = array(12, 10)
    for view in (x, x[::2], x[::-1], x[:, ::-1][:6, 5:], x[:6, :10]):
        launch(kernel, view)
    # The last has the same shape and strides as none before.
    assert what_ran(kernel) == [("compiled", True)] * 4 + [("compiled", False)]
    launch(kernel, array(12, 10))
    assert what_ran(kernel)[-1] == ("memory", True)


def test_copies_have_one_code():
    kernel = make(ensure_row_contiguous=True)
    x = array(12, 10)
    launch(kernel, x[:6, :5])
    launch(kernel, x[::2, ::2])
    launch(kernel, np.ascontiguousarray(x[6:, 5:]))
    assert what_ran(kernel) == [("compiled", True), ("memory", True), ("memory", True)]


def test_each_combination_of_types_has_its_own_four():
    kernel = make()
    for dtype in (np.int32, np.uint8):
        for rows in (3, 4, 5, 6):
            launch(kernel, array(rows, 5).astype(dtype))
    assert what_ran(kernel) == [("compiled", True)] * 8


def test_without_shapes_in_the_body_one_code_serves_all():
    kernel = kiln.metal_kernel(
        "double_it", ["x"], ["y"], "y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];"
    )
    for size in (10, 20, 30):
        kernel(
            inputs=[np.ones(size, np.float32)],
            output_shapes=[(size,)],
            output_dtypes=["float32"],
            grid=(size, 1, 1),
            threadgroup=(32, 1, 1),
        )
    assert what_ran(kernel) == [("compiled", False), ("memory", False), ("memory", False)]


def test_only_inputs_whose_shape_the_body_uses_count():
    kernel = kiln.metal_kernel("first_of", ["x", "other"], ["y"], "y[0] = x_shape[0] + other[0];")
    for size in (10, 20, 30, 40, 50):
        (y,) = kernel(
            inputs=[np.zeros((9, 2), np.int32), np.ones(size, np.int32)],
            output_shapes=[(1,)],
            output_dtypes=["int32"],
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
        )
        assert y[0] == 10
    assert what_ran(kernel) == [("compiled", True)] + [("memory", True)] * 4


@pytest.mark.parametrize("generation", ["dictionary", "class"])
def test_generations_without_names(generation):
    source = "y[thread_position_in_grid.x] = x_shape[0] + 10 * x_shape[1];"
    x = array(3, 4)
    if generation == "dictionary":
        kernel: Any = kiln.metal_kernel("shape_of", source)
        call = {"inputs": {"x": x}, "output_shapes": {"y": (2,)}, "output_dtypes": {"y": "int32"}}
        out = kernel(grid=(2, 1, 1), threadgroup=(2, 1, 1), **call)
    else:
        kernel = kiln.MetalKernel("shape_of", source, (2, 1, 1), (2, 1, 1), {"y": (2,)}, {"y": "int32"})
        out = kernel(x=x)
    np.testing.assert_array_equal(out["y"], [43, 43])
    assert what_ran(kernel) == [("compiled", True)]


def test_the_option_turns_it_off():
    kernel = make(compile_options={"specialize": False})
    for rows in (3, 4):
        launch(kernel, array(rows, 7))
    assert what_ran(kernel) == [("compiled", False), ("memory", False)]


def test_the_setting_turns_it_off_where_the_option_does_not_say():
    program = """
import test_specialization as t
off, on = t.make(), t.make(compile_options={"specialize": True})
for kernel in off, on:
    t.launch(kernel, t.array(3, 7))
print(t.what_ran(off), t.what_ran(on))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "KILN_SPECIALIZE": "off", "PYTHONPATH": os.path.dirname(__file__)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[('compiled', False)] [('compiled', True)]\n", "")
