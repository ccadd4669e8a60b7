"""docs/language.md 3.1: arrays that are laid out in no usual way go through every interface, others are refused."""

from __future__ import annotations

import ctypes
import gc
import mmap
import threading
import weakref
from typing import Any

import kiln
import kiln.mlx
import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from interfaces import EIGHT, INTERFACES, METHODS, Interface, Item, raised
from mlx_kernels import DTYPES, numbers, to_mlx, to_numpy

BUFFER: Any = EIGHT  # NumPy's types do not say that arrays are buffers

RUNNING = [interface for interface in INTERFACES if interface.generation != "cuda"]
all_interfaces = pytest.mark.parametrize("interface", RUNNING, ids=lambda interface: interface.label)
numpy_interfaces = pytest.mark.parametrize(
    "interface", [i for i in RUNNING if i.library == "numpy"], ids=lambda interface: interface.label
)
mlx_interfaces = pytest.mark.parametrize(
    "interface", [i for i in RUNNING if i.library == "mlx"], ids=lambda interface: interface.label
)

# Each thread reads one element, by the strides.
READ = "uint i = thread_position_in_grid.x;\nout[i] = x[elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim)];"
READ_SCALAR = "out[thread_position_in_grid.x] = x;"


def check(interface, array, given=None, dtype=None):
    """That a kernel reads the elements of ``array`` where it is given that or another object for it."""
    expected = array if dtype is None else array.astype(dtype)
    before = array.tobytes()
    for contiguous in (True, False):
        # The class generation has strides of `size_t`, which `elem_to_loc` takes as well.
        made = {"source": READ_SCALAR if array.ndim == 0 else READ, "ensure_row_contiguous": contiguous}
        result = interface.call(
            made=made,
            inputs=Item(array if given is None else given),
            output_shapes=Item(array.shape),
            output_dtypes=Item(expected.dtype.newbyteorder("=").name),
            grid=(array.size, 1, 1),
        )
        np.testing.assert_array_equal(interface.first(result), expected)
    assert array.tobytes() == before


def misaligned(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
RECORDS = np.zeros(6, [("a", "i1"), ("b", "f4"), ("c", "i2")])
RECORDS["b"] = np.arange(6)


NUMPY_ARRAYS = {
    "read only": read_only(CUBE),
    "bytes": np.frombuffer(b"12345678", np.uint8),
    "mapped memory": np.frombuffer(mmap.mmap(-1, 32), np.float32),
    "misaligned": misaligned(CUBE),
    "misaligned and strided": misaligned(CUBE)[:, ::-1, ::2],
    "other byte order": CUBE.astype(">f4"),
    "other byte order, misaligned, strided": misaligned(CUBE.astype(">f4"))[..., ::2],
    "other byte order of 64 bits": np.arange(2**40, 2**40 + 5).astype(">i8"),
    "a field of records": RECORDS["b"],
    "negative strides": CUBE[::-1, ::-1, ::-1],
    "column major": np.asfortranarray(CUBE),
    "repeated elements": np.broadcast_to(CUBE[:1], (5, 3, 4)),
    "one element for all": np.broadcast_to(np.float32(3), (2, 3)),
    "overlapping rows": np.lib.stride_tricks.sliding_window_view(EIGHT, 3),
    "no dimensions": np.array(3, np.float32),
    "no dimensions, read only": read_only(np.array(3, np.float32)),
    "no elements": np.zeros((3, 0, 2), np.float32),
    "no elements, column major": np.zeros((3, 0, 2), np.float32, order="F")[::-1],
    "64 dimensions": EIGHT.reshape((1,) * 31 + (2,) + (1,) * 15 + (4,) + (1,) * 16),
    "64 dimensions turned": EIGHT.reshape((2,) * 3 + (1,) * 61).transpose(range(63, -1, -1)),
    "a masked array": np.ma.masked_array(EIGHT, mask=EIGHT > 3).data,
    "bfloat16": numbers((2, 3), "bfloat16")[:, ::-1],
}


@numpy_interfaces
@pytest.mark.parametrize("name", NUMPY_ARRAYS)
def test_odd_arrays_of_numpy(interface, name):
    check(interface, NUMPY_ARRAYS[name])


@numpy_interfaces
def test_no_code_of_an_arrays_class_runs_where_it_is_copied(interface):
    made = []

    class Subclass(np.ndarray):
        def __array_finalize__(self, other):
            made.append(other)

    for array in (misaligned(CUBE), CUBE.astype(">f4"), CUBE[::-1]):
        given = array.view(Subclass)
        made.clear()
        check(interface, array, given)
        assert not made


@numpy_interfaces
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_in_the_other_byte_order(interface, dtype):
    array = numbers((3, 5), dtype)
    if dtype != "bfloat16":
        check(interface, array.astype(array.dtype.newbyteorder(">")))
    check(interface, misaligned(array))


NO_DTYPES = [
    (np.zeros(3, np.complex128), "complex128"),
    (np.zeros(3, np.longdouble), "float128"),
    (np.zeros(3, np.clongdouble), "complex256"),
    (np.zeros(3, object), "object"),
    (np.array(["text"]), "<U4"),
    (np.array([b"text"]), "|S4"),
    (np.zeros(2, "U0"), "<U1"),
    (np.zeros(3, "V0"), "|V0"),
    (np.zeros(3, "M8[s]"), "datetime64[s]"),
    (np.zeros(3, "m8[ns]"), "timedelta64[ns]"),
    (np.zeros(3, [("a", "i4")]), "[('a', '<i4')]"),
    (np.array(["text"], np.dtypes.StringDType()), "StringDType()"),
    (np.zeros(3, ml_dtypes.int4), "int4"),
    (np.zeros(3, ml_dtypes.uint4), "uint4"),
    (np.zeros(3, ml_dtypes.float8_e4m3fn), "float8_e4m3fn"),
    (misaligned(np.zeros(3, np.complex128)), "complex128"),
    (np.zeros(3, [("a", "i1"), ("b", "c16")])["b"], "complex128"),
]


@pytest.mark.parametrize("interface", [i for i in INTERFACES if i.library == "numpy"], ids=lambda i: i.label)
@pytest.mark.parametrize(("array", "dtype"), NO_DTYPES, ids=lambda value: value if isinstance(value, str) else "")
def test_dtypes_that_no_kernel_takes(interface, array, dtype):
    message = f"{interface.prefix} Input `x` has dtype {dtype}, which no kernel can take."
    for given in (array, array.reshape(-1)[:0], array[0:1].reshape(())):
        for method in METHODS:
            assert str(raised(interface, TypeError, interface.call, method, inputs=Item(given))) == message


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.label)
def test_doubles(interface):
    doubles = np.zeros(3) if interface.library == "numpy" else mx.zeros(3, mx.float64)
    if interface.generation == "cuda":
        assert "const double* x" in interface.call("source_for", inputs=Item(doubles))
        return
    message = "[metal_kernel] Metal has no double, but {} is float64."
    for method in METHODS:
        error = raised(interface, ValueError, interface.call, method, inputs=Item(doubles))
        assert str(error) == message.format("input `x`")
        for dtype in ("float64", np.float64, np.dtype("f8"), mx.float64):
            error = raised(interface, ValueError, interface.call, method, output_dtypes=Item(dtype))
            assert str(error) == message.format("output `out`")


# ---- MLX


def lazy(array):
    """Not evaluated when the kernel is called."""
    return to_mlx(array) + 0


MLX_ARRAYS = {
    "transposed": lambda: (CUBE.T, to_mlx(CUBE).T),
    "transposed, not evaluated": lambda: (CUBE.T, lazy(CUBE).T),
    "sliced": lambda: (CUBE[:, 1:, ::2], lazy(CUBE)[:, 1:, ::2]),
    "negative strides": lambda: (CUBE[::-1], to_mlx(CUBE[::-1])),
    "repeated": lambda: (np.broadcast_to(CUBE, (3, 2, 3, 4)), mx.broadcast_to(lazy(CUBE), (3, 2, 3, 4))),
    "overlapping rows": lambda: (
        np.lib.stride_tricks.sliding_window_view(EIGHT, 3),
        mx.as_strided(lazy(EIGHT), (6, 3), (1, 1), 0),
    ),
    "no dimensions": lambda: (np.array(3, np.float32), mx.array(3.0)),
    "no elements": lambda: (np.zeros((3, 0), np.float32), mx.zeros((3, 0))),
    "100 dimensions": lambda: (EIGHT, lazy(EIGHT).reshape((1,) * 50 + (8,) + (1,) * 49)),
    "a view of other elements": lambda: (EIGHT.view(np.int32), lazy(EIGHT).view(mx.int32)),
    "from NumPy": lambda: (CUBE[:, 1:, ::2].T, CUBE[:, 1:, ::2].T),
    "from NumPy, read only": lambda: (CUBE, read_only(CUBE)),
    "from NumPy, misaligned": lambda: (CUBE, misaligned(CUBE)),
    "from NumPy, no dimensions": lambda: (np.array(3, np.float32), np.array(3, np.float32)),
    "from NumPy, bfloat16": lambda: (numbers((2, 3), "bfloat16"),) * 2,
    "memory": lambda: (EIGHT, memoryview(BUFFER)),
    "bytes": lambda: (np.frombuffer(b"abc", np.uint8), b"abc"),
}


@mlx_interfaces
@pytest.mark.parametrize("name", MLX_ARRAYS)
def test_odd_arrays_of_mlx(interface, name):
    array, given = MLX_ARRAYS[name]()
    for contiguous in (True, False):
        made = {"source": READ_SCALAR if array.ndim == 0 else READ, "ensure_row_contiguous": contiguous}
        result = interface.call(
            made=made,
            inputs=Item(given),
            output_shapes=Item(array.shape),
            output_dtypes=Item(array.dtype.name),
            grid=(array.size, 1, 1),
        )
        np.testing.assert_array_equal(interface.first(result), array)


class Pretender:
    """Says that it is an array, and is none."""

    def __dlpack__(self, **keywords):
        raise RuntimeError("not today")

    def __dlpack_device__(self):
        return 1, 0

    def __index__(self):
        return 5


NOT_TAKEN = "{} MLX does not take input `x`, which is {}."
NOT_EXPORTED = "{} Input `x` is a test_odd_arrays.Pretender that cannot be exported by DLPack: not today"
NO_ARRAY = "{} Expected `inputs` to be {} or numbers but got {} for `x`."


@pytest.mark.parametrize("interface", [i for i in INTERFACES if i.library == "mlx"], ids=lambda i: i.label)
def test_arrays_that_mlx_does_not_take(interface):
    for array, dtype in (
        *((array, dtype) for array, dtype in NO_DTYPES if not dtype.startswith("complex")),
        (EIGHT.astype(">f4"), ">f4"),
    ):
        message = NOT_TAKEN.format(interface.prefix, f"numpy.ndarray of dtype {dtype}")
        for method in METHODS:
            assert str(raised(interface, TypeError, interface.call, method, inputs=Item(array))) == message
    value: Any
    for value, kind in (
        (np.longdouble(1), "numpy.longdouble of dtype float128"),
        (np.str_("text"), "numpy.str_ of dtype <U4"),
        (np.datetime64("2020"), "numpy.datetime64 of dtype datetime64[Y]"),
        (np.timedelta64(3, "s"), "numpy.timedelta64 of dtype timedelta64[s]"),
    ):
        error = raised(interface, TypeError, interface.call, inputs=Item(value))
        assert str(error) == NOT_TAKEN.format(interface.prefix, kind)
    error = raised(interface, TypeError, interface.call, inputs=Item(Pretender()))
    assert str(error) == NOT_EXPORTED.format(interface.prefix)
    for value in (CUBE[:, ::-1], np.broadcast_to(np.float32(1), (2**31,))):
        error = raised(interface, TypeError, interface.call, inputs=Item(value))
        message = f"{interface.prefix} MLX does not take input `x`, which is numpy.ndarray of dtype float32: "
        assert str(error) == message + str(error.__cause__)
    # They say that they have strides and have none. (A type of ctypes belongs to the module that first names it.)
    for value, kind in (
        ((ctypes.c_float * 37)(), "test_odd_arrays.c_float_Array_37"),
        ((ctypes.c_int * 37 * 2)(), "test_odd_arrays.c_int_Array_37_Array_2"),
    ):
        error = raised(interface, TypeError, interface.call, inputs=Item(value))
        assert str(error) == NO_ARRAY.format(interface.prefix, "MLX arrays", kind)


@pytest.mark.parametrize("interface", [i for i in INTERFACES if i.library == "numpy"], ids=lambda i: i.label)
def test_objects_that_numpy_does_not_take(interface):
    value: Any
    for value, kind in (
        (b"abc", "bytes"),
        (memoryview(BUFFER), "memoryview"),
        ((ctypes.c_float * 37)(), "test_odd_arrays.c_float_Array_37"),
    ):
        error = raised(interface, TypeError, interface.call, inputs=Item(value))
        assert str(error) == NO_ARRAY.format(interface.prefix, "NumPy arrays", kind)
    error = raised(interface, TypeError, interface.call, inputs=Item(Pretender()))
    assert str(error) == NOT_EXPORTED.format(interface.prefix)
    for value, dtype in ((np.datetime64("2020"), "datetime64[Y]"), (np.longdouble(1), "float128")):
        error = raised(interface, TypeError, interface.call, inputs=Item(value))
        assert str(error) == f"{interface.prefix} Input `x` has dtype {dtype}, which no kernel can take."


@mlx_interfaces
def test_what_a_transformation_traces_is_no_number(interface):
    def trace(**changes):
        return mx.compile(lambda x: interface.call(inputs=Item(x), **{k: v(x) for k, v in changes.items()}))(
            lazy(EIGHT)
        )

    for argument, value, whom in (
        ("init_value", lambda x: x[0], "`init_value` to be a number"),
        ("grid", lambda x: (x[0].astype(mx.int32), 1, 1), "each dimension of `grid` to be an int"),
        ("threadgroup", lambda x: (x[0].astype(mx.int32), 1, 1), "each dimension of `threadgroup` to be an int"),
        (
            "output_shapes",
            lambda x: Item((x.size, x[0].astype(mx.int8))),
            "each dimension in `output_shapes` to be an int",
        ),
    ):
        error = raised(interface, TypeError, trace, **{argument: value})
        assert str(error) == f"{interface.prefix} Expected {whom} but got mlx.core.array."
    # Its shape and its dtype are known.
    for method in METHODS:
        traced = mx.compile(lambda x, method=method: (interface.call(method, inputs=Item(x)), x + 1)[1])(lazy(EIGHT))
        np.testing.assert_array_equal(to_numpy(traced), EIGHT + 1)


@mlx_interfaces
def test_arrays_of_another_thread(interface):
    made: dict[str, Any] = {}

    def make():
        stream = mx.new_stream(mx.cpu)
        made["evaluated"] = mx.add(to_mlx(EIGHT), 1, stream=stream)
        mx.eval(made["evaluated"])
        made["lazy"] = mx.add(to_mlx(EIGHT), 1, stream=stream)
        made["stream"] = stream

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(interface.first(interface.call(inputs=Item(made["evaluated"]))), EIGHT + 2)
    # MLX's streams belong to threads, and MLX says so where an array is evaluated.
    calls = [interface.call(inputs=Item(made["lazy"]))]
    if interface.generation != "class":
        calls.append(interface.call(stream=made["stream"]))
    for call in calls:
        with pytest.raises(RuntimeError, match=r"There is no Stream\(cpu, \d+\) in current thread"):
            interface.first(call)
        assert interface.works()


# ---- Several inputs, and what becomes of them


@all_interfaces
def test_inputs_that_overlap(interface):
    base = EIGHT if interface.library == "numpy" else lazy(EIGHT)
    inputs: Any = {"a": base[:6], "b": base[2:], "c": base[1:7], "d": base}
    made: dict[str, Any] = {
        "source": "uint i = thread_position_in_grid.x;\nout[i] = a[i] + b[i] * 10 + c[i] * 100 + d[i] * 1000;"
    }
    if not interface.by_name:
        made["input_names"] = list(inputs)
        inputs = list(inputs.values())
    result = interface.call(made=made, inputs=inputs, output_shapes=Item((6,)), grid=(6, 1, 1))
    i = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(interface.first(result), i + (i + 2) * 10 + (i + 1) * 100 + i * 1000)


@numpy_interfaces
def test_results_share_no_memory_with_inputs(interface):
    array = EIGHT.copy()
    result = interface.first(interface.call(inputs=Item(array)))
    assert not np.shares_memory(result, array)
    result[...] = 0
    np.testing.assert_array_equal(array, EIGHT)


def test_arrays_that_nobody_else_holds():
    class Making:
        """Its items live as long as somebody holds them."""

        def __init__(self, make):
            self._make = make

        def __len__(self):
            return 1

        def __getitem__(self, i):
            return [self._make()][i]

    interface = Interface(kiln, "list")
    for make in (EIGHT.copy, lambda: EIGHT.astype(">f4"), lambda: misaligned(EIGHT), lambda: EIGHT[::-1].copy()[::-1]):
        for _ in range(20):
            np.testing.assert_array_equal(interface.first(interface.call(inputs=Making(make))), EIGHT + 1)


def test_an_array_that_is_dropped_while_others_are_read():
    arrays = [EIGHT.copy()]
    dropped = weakref.ref(arrays[0])

    def index(self):
        arrays.clear()
        gc.collect()
        return 3

    arrays.append(type("Dropping", (), {"__index__": index})())
    kernel = kiln.metal_kernel("k", ["x", "n"], ["out"], "uint i = thread_position_in_grid.x;\nout[i] = x[i] + n;")
    (out,) = kernel(
        inputs=arrays, output_shapes=[(8,)], output_dtypes=["float32"], grid=(8, 1, 1), threadgroup=(8, 1, 1)
    )
    np.testing.assert_array_equal(out, EIGHT + 3)
    assert dropped() is None


def test_an_array_that_changes_its_shape_while_others_are_read():
    array = EIGHT.copy()

    def index(self):
        array.shape = (1, 2, 1, 2, 1, 2)
        return 3

    number = type("Reshaping", (), {"__index__": index})()
    kernel = kiln.metal_kernel("k", ["x", "n"], ["out"], "out[thread_position_in_grid.x] = x_ndim + n;")
    (out,) = kernel(
        inputs=[array, number], output_shapes=[(1,)], output_dtypes=["int32"], grid=(1, 1, 1), threadgroup=(1, 1, 1)
    )
    assert out[0] in (1 + 3, 6 + 3)
