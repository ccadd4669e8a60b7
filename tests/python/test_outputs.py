"""Arrays that a caller gives for a call's outputs (docs/reference/python.md), with NumPy and MLX."""

from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest

COPY: Any = kiln.metal_kernel("copy", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i];")
X = np.arange(8, dtype=np.float32)
THREADS: dict[str, Any] = {"grid": (8, 1, 1), "threadgroup": (8, 1, 1)}


def read_only():
    array = np.zeros(8, np.float32)
    array.flags.writeable = False
    return array


def test_are_written_and_returned():
    y = np.empty((2, 4), np.int16)
    (result,) = COPY(inputs=[X], outputs=[y], **THREADS)
    assert result is y
    assert y.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_by_name():
    kernel = kiln.metal_kernel("k", "y[0] = x[3]; z[0] = 7;")
    outputs = {"z": np.zeros(1, np.int8), "y": np.zeros(1, np.float32)}
    result = kernel(inputs={"x": X}, outputs=outputs, grid=(1, 1, 1), threadgroup=(1, 1, 1))
    assert list(result) == ["z", "y"]
    assert (result["y"][0], result["z"][0]) == (3, 7)


def test_are_filled_first():
    y = np.empty(12, np.float32)
    COPY(inputs=[X], outputs=[y], init_value=2.5, **THREADS)
    assert y.tolist() == [*X.tolist(), 2.5, 2.5, 2.5, 2.5]


def test_say_the_library_where_no_input_does():
    kernel = kiln.metal_kernel("k", [], ["y"], "y[0] = 1;")
    (y,) = kernel(inputs=[], outputs=[np.zeros(1)[:0].astype(np.float32)], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    assert y.shape == (0,)


@pytest.mark.parametrize(
    ("outputs", "error", "message"),
    [
        ([], ValueError, "Expected `outputs` to have size 1 but got size 0."),
        ("y", TypeError, "Expected `outputs` to be a list of arrays but got str."),
        ({"y": X}, TypeError, "Expected `outputs` to be a list of arrays but got dict."),
        ([None], TypeError, "Expected `outputs` to be NumPy arrays but got NoneType for `y`."),
        ([X[:4]], ValueError, "The memory of input `x` and of output `y` overlap."),
        ([read_only()], ValueError, "Output `y` is read-only."),
        (
            [np.zeros(16, np.float32)[::2]],
            ValueError,
            "Output `y` is not row-contiguous, aligned and of the machine's byte order.",
        ),
        (
            [np.zeros(8, ">f4")],
            ValueError,
            "Output `y` is not row-contiguous, aligned and of the machine's byte order.",
        ),
        ([np.zeros(8, np.complex128)], TypeError, "Output `y` has dtype complex128, which no kernel can take."),
        ([np.zeros(8)], ValueError, "Metal has no double, but output `y` is float64."),
        (
            [mx.zeros(8)],
            TypeError,
            "Expected all `inputs` and `outputs` to be arrays of one library but got arrays of numpy and mlx.",
        ),
    ],
)
def test_are_refused(outputs, error, message):
    with pytest.raises(error) as raised:
        COPY(inputs=[X], outputs=outputs, **THREADS)
    assert str(raised.value) == f"[metal_kernel] {message}"


def test_of_mlx_are_refused():
    with pytest.raises(ValueError) as error:
        COPY(inputs=[mx.array(X)], outputs=[mx.zeros(8)], **THREADS)
    assert str(error.value) == "[metal_kernel] `outputs` has no meaning for MLX arrays, which cannot be written."


@pytest.mark.parametrize("name", ["output_shapes", "output_dtypes"])
def test_say_shapes_and_dtypes(name):
    with pytest.raises(TypeError) as error:
        COPY(inputs=[X], outputs=[X.copy()], **THREADS, **{name: [X.shape if name == "output_shapes" else "float32"]})
    assert str(error.value) == f"[metal_kernel] The call has `outputs`, from which `{name}` follows."


def test_may_be_none():
    (y,) = COPY(inputs=[X], outputs=None, output_shapes=[(8,)], output_dtypes=["float32"], **THREADS)
    assert np.array_equal(y, X)


def test_empty_arrays_overlap_nothing():
    memory = np.zeros((4, 4), np.float32)
    kernel = kiln.metal_kernel("k", ["x"], ["y", "z"], "y[thread_position_in_grid.x] = 1 + x_shape[1];")
    y, _ = kernel(inputs=[memory[1:2, 0:0]], outputs=[memory, memory[2:2]], grid=(16, 1, 1), threadgroup=(16, 1, 1))
    assert y is memory
    assert (memory == 1).all()
