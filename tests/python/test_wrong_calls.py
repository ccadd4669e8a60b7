"""docs/language.md 7.1: each argument of a call, wrong in each way, through every interface, word for word."""

from __future__ import annotations

import fractions
from typing import Any

import kiln
import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from interfaces import EIGHT, INTERFACES, METHODS, Interface, Item, raised, raising

ENORMOUS = 10**5000  # which Python does not write in digits

all_interfaces = pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.label)


def those(*generations, library=None):
    """The interfaces of some generations."""
    chosen = [i for i in INTERFACES if i.generation in generations and library in (None, i.library)]
    return pytest.mark.parametrize("interface", chosen, ids=lambda interface: interface.label)


def check(interface, keywords, error, message):
    """Every method raises the error; ``{arrays}`` in the message is how it names the library's arrays."""
    message = f"{interface.prefix} {message.replace('{arrays}', interface.arrays)}"
    for method in METHODS:
        assert str(raised(interface, error, interface.call, method, **keywords)) == message


def odd(method, error=ValueError, **others):
    return raising(method, error("it says"), **others)


NO_ARRAY = "Expected `inputs` to be {{arrays}} or numbers but got {} for `x`."
TOO_LARGE = "Input `x` does not fit into int64: "
DIMENSION = "Expected each dimension in `output_shapes` to "
SHAPES = "Expected `output_shapes` to be a list of shapes but got "
DTYPES = "Expected `output_dtypes` to have dtypes but got "
THOSE = (
    " Those are bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64 and "
    "complex64."
)
NUMBER = "Expected `init_value` to be a number but got "
DOUBLE = "Expected `init_value` to fit into a double."
BOOL = "Expected `verbose` to be a bool but got "
GRID = "Expected each dimension of `grid` to be "
GROUP = "Expected each dimension of `threadgroup` to be "
WHOLE_GRID = "Expected `grid` to be an int or 1 to 3 ints but got "

# What is wrong in every interface, with arrays of any library.
ANYWHERE = [
    # inputs
    ("inputs", Item(None), TypeError, NO_ARRAY.format("NoneType")),
    ("inputs", Item("text"), TypeError, NO_ARRAY.format("str")),
    ("inputs", Item([1.0]), TypeError, NO_ARRAY.format("list")),
    ("inputs", Item({}), TypeError, NO_ARRAY.format("dict")),
    ("inputs", Item(object()), TypeError, NO_ARRAY.format("object")),
    ("inputs", Item(np.float32), TypeError, NO_ARRAY.format("type")),
    ("inputs", Item(mx.float32), TypeError, NO_ARRAY.format("mlx.core.Dtype")),
    ("inputs", Item(fractions.Fraction(1, 2)), TypeError, NO_ARRAY.format("fractions.Fraction")),
    ("inputs", Item(iter([EIGHT])), TypeError, NO_ARRAY.format("list_iterator")),
    ("inputs", Item(odd("__index__")), TypeError, NO_ARRAY.format("interfaces.Odd")),
    ("inputs", Item(odd("__index__", TypeError)), TypeError, NO_ARRAY.format("interfaces.Odd")),
    ("inputs", Item(2**63), ValueError, TOO_LARGE + "9223372036854775808."),
    ("inputs", Item(-(2**63) - 1), ValueError, TOO_LARGE + "-9223372036854775809."),
    ("inputs", Item(2**64), ValueError, TOO_LARGE + "18446744073709551616."),
    ("inputs", Item(ENORMOUS), ValueError, TOO_LARGE + "a number of 16610 bits."),
    # output_shapes
    ("output_shapes", ..., TypeError, "The call is missing the argument `output_shapes`."),
    ("output_shapes", Item(None), TypeError, SHAPES + "NoneType."),
    ("output_shapes", Item("8"), TypeError, SHAPES + "str."),
    ("output_shapes", Item(b"8"), TypeError, SHAPES + "bytes."),
    ("output_shapes", Item({8: 8}), TypeError, SHAPES + "dict."),
    ("output_shapes", Item({8}), TypeError, SHAPES + "set."),
    ("output_shapes", Item(iter([8])), TypeError, SHAPES + "list_iterator."),
    ("output_shapes", Item(np.array(8)), TypeError, SHAPES + "numpy.ndarray."),
    ("output_shapes", Item(mx.array(8)), TypeError, SHAPES + "mlx.core.array."),
    ("output_shapes", Item(odd("__iter__", __getitem__=None)), TypeError, SHAPES + "interfaces.Odd."),
    ("output_shapes", Item((None,)), TypeError, DIMENSION + "be an int but got NoneType."),
    ("output_shapes", Item(("8",)), TypeError, DIMENSION + "be an int but got str."),
    ("output_shapes", Item((8.0,)), TypeError, DIMENSION + "be an int but got float."),
    ("output_shapes", Item((float("nan"),)), TypeError, DIMENSION + "be an int but got float."),
    ("output_shapes", Item(((8,),)), TypeError, DIMENSION + "be an int but got tuple."),
    ("output_shapes", Item(np.ones(2)), TypeError, DIMENSION + "be an int but got numpy.float64."),
    ("output_shapes", Item((mx.ones(2),)), TypeError, DIMENSION + "be an int but got mlx.core.array."),
    ("output_shapes", Item((odd("__index__"),)), TypeError, DIMENSION + "be an int but got interfaces.Odd."),
    ("output_shapes", Item((2**63,)), ValueError, DIMENSION + "fit into 64 bits but got 9223372036854775808."),
    ("output_shapes", Item((2**64,)), ValueError, DIMENSION + "fit into 64 bits but got 18446744073709551616."),
    ("output_shapes", Item((ENORMOUS,)), ValueError, DIMENSION + "fit into 64 bits but got a number of 16610 bits."),
    ("output_shapes", Item((-1,)), ValueError, "Expected the dimensions of output `out` to be at least 0 but got -1."),
    ("output_shapes", Item((2**31 - 1,) * 3), ValueError, "Output `out` has more than 2^63 - 1 bytes."),
    # output_dtypes
    ("output_dtypes", ..., TypeError, "The call is missing the argument `output_dtypes`."),
    ("output_dtypes", Item(None), TypeError, DTYPES + "None."),
    ("output_dtypes", Item(3), TypeError, DTYPES + "3."),
    ("output_dtypes", Item(float), TypeError, DTYPES + "<class 'float'>."),
    ("output_dtypes", Item(["float32"]), TypeError, DTYPES + "['float32']."),
    ("output_dtypes", Item(np.complex128), TypeError, DTYPES + "<class 'numpy.complex128'>."),
    ("output_dtypes", Item(np.dtype("M8[s]")), TypeError, DTYPES + "dtype('<M8[s]')."),
    ("output_dtypes", Item(np.dtype([("a", "i4")])), TypeError, DTYPES + "dtype([('a', '<i4')])."),
    ("output_dtypes", Item(np.longdouble), TypeError, DTYPES + "<class 'numpy.longdouble'>."),
    ("output_dtypes", Item(ml_dtypes.int4), TypeError, DTYPES + "<class 'ml_dtypes.int4'>."),
    ("output_dtypes", Item(ml_dtypes.float8_e5m2), TypeError, DTYPES + "<class 'ml_dtypes.float8_e5m2'>."),
    ("output_dtypes", Item(mx.array([1.0, 2.0])), TypeError, DTYPES + "array([1, 2], dtype=float32)."),
    ("output_dtypes", Item(["é" * 300]), TypeError, DTYPES + "['" + "é" * 99 + "…."),
    ("output_dtypes", Item(odd("__repr__")), TypeError, DTYPES + "interfaces.Odd."),
    ("output_dtypes", Item(odd("a", __repr__=lambda self: "\ud800")), TypeError, DTYPES + "\\ud800."),
    ("output_dtypes", Item(odd("a", __module__=3, __repr__=lambda self: "odd")), TypeError, DTYPES + "odd."),
    ("output_dtypes", Item(ENORMOUS), TypeError, DTYPES + "int."),
    ("output_dtypes", Item("float31"), ValueError, "`float31` in `output_dtypes` is no dtype." + THOSE),
    ("output_dtypes", Item("f4"), ValueError, "`f4` in `output_dtypes` is no dtype." + THOSE),
    ("output_dtypes", Item(""), ValueError, "`` in `output_dtypes` is no dtype." + THOSE),
    ("output_dtypes", Item("float32\0"), ValueError, "`float32␀` in `output_dtypes` is no dtype." + THOSE),
    ("output_dtypes", Item("\ud800"), ValueError, "`\\ud800` in `output_dtypes` is no dtype." + THOSE),
    # grid
    ("grid", ..., TypeError, "The call is missing the argument `grid`."),
    ("grid", None, TypeError, WHOLE_GRID + "NoneType."),
    ("grid", 8.0, TypeError, WHOLE_GRID + "float."),
    ("grid", "811", TypeError, WHOLE_GRID + "str."),
    ("grid", b"\1\1\1", TypeError, WHOLE_GRID + "bytes."),
    ("grid", {8: 1, 1: 1, 2: 1}, TypeError, WHOLE_GRID + "dict."),
    ("grid", {1, 2, 3}, TypeError, WHOLE_GRID + "set."),
    ("grid", iter((8, 1, 1)), TypeError, WHOLE_GRID + "tuple_iterator."),
    ("grid", np.array(8.0), TypeError, WHOLE_GRID + "numpy.ndarray."),
    ("grid", odd("__iter__", __getitem__=None), TypeError, WHOLE_GRID + "interfaces.Odd."),
    ("grid", (), ValueError, "Expected `grid` to have 1 to 3 ints but got 0."),
    ("grid", [], ValueError, "Expected `grid` to have 1 to 3 ints but got 0."),
    ("grid", (8, 1, 1, 1), ValueError, "Expected `grid` to have 1 to 3 ints but got 4."),
    ("grid", (8, 1, None), TypeError, GRID + "an int but got NoneType."),
    ("grid", (8.0, 1, 1), TypeError, GRID + "an int but got float."),
    ("grid", (float("nan"), 1, 1), TypeError, GRID + "an int but got float."),
    ("grid", np.ones(3), TypeError, GRID + "an int but got numpy.float64."),
    ("grid", np.ones((3, 2), int), TypeError, GRID + "an int but got numpy.ndarray."),
    ("grid", (mx.array([1, 2]), 1, 1), TypeError, GRID + "an int but got mlx.core.array."),
    ("grid", (mx.array(1.5), 1, 1), TypeError, GRID + "an int but got mlx.core.array."),
    ("grid", (odd("__index__"), 1, 1), TypeError, GRID + "an int but got interfaces.Odd."),
    ("grid", (odd("a", __index__=lambda self: "8"), 1, 1), TypeError, GRID + "an int but got interfaces.Odd."),
    ("grid", (-1, 1, 1), ValueError, GRID + "in [0, 2147483647] but got (-1, 1, 1)."),
    ("grid", (1, 2**31, 1), ValueError, GRID + "in [0, 2147483647] but got (1, 2147483648, 1)."),
    ("grid", (1, 1, 2**63), ValueError, GRID[:-3] + "fit into 64 bits but got 9223372036854775808."),
    ("grid", (ENORMOUS, 1, 1), ValueError, GRID[:-3] + "fit into 64 bits but got a number of 16610 bits."),
    (
        "grid",
        (2**31 - 1,) * 3,
        ValueError,
        "Expected `grid` to have at most 2^62 threadgroups but got (2147483647, 2147483647, 2147483647) in threadgroups "
        "of (8, 1, 1).",
    ),
    # threadgroup
    ("threadgroup", ..., TypeError, "The call is missing the argument `threadgroup`."),
    ("threadgroup", None, TypeError, "Expected `threadgroup` to be an int or 1 to 3 ints but got NoneType."),
    ("threadgroup", 8.5, TypeError, "Expected `threadgroup` to be an int or 1 to 3 ints but got float."),
    ("threadgroup", (8,) * 5, ValueError, "Expected `threadgroup` to have 1 to 3 ints but got 5."),
    ("threadgroup", (8, 1, 1.0), TypeError, GROUP + "an int but got float."),
    ("threadgroup", (odd("__index__"), 1, 1), TypeError, GROUP + "an int but got interfaces.Odd."),
    ("threadgroup", (0, 1, 1), ValueError, GROUP + "in [1, 2147483647] but got (0, 1, 1)."),
    ("threadgroup", (1, 1, -1), ValueError, GROUP + "in [1, 2147483647] but got (1, 1, -1)."),
    ("threadgroup", (2**31, 1, 1), ValueError, GROUP + "in [1, 2147483647] but got (2147483648, 1, 1)."),
    ("threadgroup", (1, 2**64, 1), ValueError, GROUP[:-3] + "fit into 64 bits but got 18446744073709551616."),
    *(
        ("threadgroup", size, ValueError, f"Expected `threadgroup` to have at most 1024 threads but got {size}.")
        for size in ((1025, 1, 1), (32, 32, 2), (2**31 - 1,) * 3)
    ),
    # init_value
    ("init_value", "0", TypeError, NUMBER + "str."),
    ("init_value", b"0", TypeError, NUMBER + "bytes."),
    ("init_value", [0], TypeError, NUMBER + "list."),
    ("init_value", object(), TypeError, NUMBER + "object."),
    ("init_value", 1j, TypeError, NUMBER + "complex."),
    ("init_value", np.complex64(1), TypeError, NUMBER + "numpy.complex64."),
    ("init_value", np.array(1j), TypeError, NUMBER + "numpy.ndarray."),
    ("init_value", mx.array(1j), TypeError, NUMBER + "mlx.core.array."),
    ("init_value", EIGHT, TypeError, NUMBER + "numpy.ndarray."),
    ("init_value", EIGHT[:0], TypeError, NUMBER + "numpy.ndarray."),
    ("init_value", mx.array([1, 2]), TypeError, NUMBER + "mlx.core.array."),
    ("init_value", odd("__float__"), TypeError, NUMBER + "interfaces.Odd."),
    ("init_value", odd("__index__"), TypeError, NUMBER + "interfaces.Odd."),
    ("init_value", odd("a", __float__=lambda self: "1"), TypeError, NUMBER + "interfaces.Odd."),
    ("init_value", 2**1024, ValueError, DOUBLE),
    ("init_value", -ENORMOUS, ValueError, DOUBLE),
    ("init_value", fractions.Fraction(10**400), ValueError, DOUBLE),
    # verbose
    ("verbose", None, TypeError, BOOL + "NoneType."),
    ("verbose", "no", TypeError, BOOL + "str."),
    ("verbose", 1, TypeError, BOOL + "int."),
    ("verbose", [], TypeError, BOOL + "list."),
    ("verbose", np.ones(2), TypeError, BOOL + "numpy.ndarray."),
    ("verbose", mx.array(True), TypeError, BOOL + "mlx.core.array."),
    ("verbose", odd("__bool__"), TypeError, BOOL + "interfaces.Odd."),
]


@all_interfaces
@pytest.mark.parametrize("argument", dict.fromkeys(row[0] for row in ANYWHERE))
def test_a_wrong_argument(interface, argument):
    for name, value, error, message in ANYWHERE:
        # The class generation is made with these, so that Python itself says that one is missing.
        if name == argument and not (interface.generation == "class" and value is ...):
            check(interface, {name: value}, error, message)


# ---- Templates, which are lists of pairs, dictionaries, or the keywords of a method

INVALID = "Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`. Got {} for `T`."
BITS = "Expected template argument `N` to fit into 32 bits but got "
TEMPLATES = [
    ("T", None, ValueError, INVALID.format("None")),
    ("T", 1.5, ValueError, INVALID.format("1.5")),
    ("T", "int", ValueError, INVALID.format("'int'")),
    ("T", "\ud800", ValueError, INVALID.format("'\\ud800'")),
    ("T", int, ValueError, INVALID.format("<class 'int'>")),
    ("T", np.complex128, ValueError, INVALID.format("<class 'numpy.complex128'>")),
    ("T", np.float32(2), ValueError, INVALID.format("np.float32(2.0)")),
    ("T", EIGHT, ValueError, INVALID.format("array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)")),
    ("T", mx.array([1, 2]), ValueError, INVALID.format("array([1, 2], dtype=int32)")),
    ("T", odd("__index__", __repr__=lambda self: "odd"), ValueError, INVALID.format("odd")),
    ("T", odd("__index__", TypeError, __repr__=lambda self: "odd"), ValueError, INVALID.format("odd")),
    ("T", odd("__repr__"), ValueError, INVALID.format("interfaces.Odd")),
    ("N", 2**31, ValueError, BITS + "2147483648."),
    ("N", -(2**31) - 1, ValueError, BITS + "-2147483649."),
    ("N", 2**63, ValueError, BITS + "9223372036854775808."),
    ("N", ENORMOUS, ValueError, BITS + "a number of 16610 bits."),
    ("", 1, ValueError, "Template argument name `` is not an identifier."),
    ("a b", 1, ValueError, "Template argument name `a b` is not an identifier."),
    ("€", 1, ValueError, "Expected the names in `template` to be identifiers but got '€'."),
    ("a\u200b", 1, ValueError, "Expected the names in `template` to be identifiers but got 'a\\u200b'."),
    ("\0", 1, ValueError, "Expected the names in `template` to be identifiers but got '\\x00'."),
    ("\ud800", 1, ValueError, "Expected the names in `template` to be identifiers but got '\\ud800'."),
    ("x", 1, ValueError, "Name `x` is used twice."),
    ("out", 1, ValueError, "Name `out` is used twice."),
]


@all_interfaces
def test_a_wrong_template_argument(interface):
    rows: list[tuple[Any, ...]] = list(TEMPLATES)
    if interface.generation != "cuda":
        rows.append(("T", "float64", ValueError, "Metal has no double, but template argument `T` is float64."))
        rows.append(("half", 1, ValueError, "Template argument name `half` is a keyword of the Metal dialect."))
    else:
        rows.append(("half", 1, ValueError, None))
        rows.append(
            ("__shared__", 1, ValueError, "Template argument name `__shared__` is a keyword of the CUDA dialect.")
        )
    for name, value, error, message in rows:
        template = {name: value} if interface.by_name else [(name, value)]
        if message is None:  # is a name like any other
            assert "constexpr int half = 1;" in interface.call("source_for", template=template)
        else:
            check(interface, {"template": template}, error, message)


PAIRS = "Expected `template` to be a list of pairs of a name and a value but got "


@those("list", "dictionary", "cuda")
@pytest.mark.parametrize(
    ("template", "error", "message"),
    [
        (3, TypeError, PAIRS + "int."),
        ("T", TypeError, PAIRS + "str."),
        (iter([("T", 1)]), TypeError, PAIRS + "list_iterator."),
        ([3], TypeError, PAIRS + "int."),
        (["Tx"], TypeError, PAIRS + "str."),
        ([("T",)], TypeError, PAIRS + "tuple."),
        ([("T", 1, 2)], TypeError, PAIRS + "tuple."),
        ([{"T": 1, "N": 2}], TypeError, PAIRS + "dict."),
        ([{"T", "N"}], TypeError, PAIRS + "set."),
        ([odd("__getitem__", __len__=lambda self: 2)], TypeError, PAIRS + "interfaces.Odd."),
        ([odd("__len__", __getitem__=lambda self, i: [][i])], TypeError, PAIRS + "interfaces.Odd."),
        ([(3, 1)], TypeError, "Expected the names in `template` to be strings but got int."),
        ([(None, 1)], TypeError, "Expected the names in `template` to be strings but got NoneType."),
        ([("T", 1), ("T", 1)], ValueError, "Name `T` is used twice."),
    ],
)
def test_a_wrong_list_of_template_arguments(interface, template, error, message):
    check(interface, {"template": template}, error, message)


@those("list", "cuda")
def test_a_list_of_ints_is_no_list_of_shapes(interface):
    check(interface, {"output_shapes": [8]}, TypeError, SHAPES + "a list of ints: write [(8,)].")
    check(interface, {"output_shapes": [2, 4]}, TypeError, SHAPES + "a list of ints: write [(2, 4)].")


@those("dictionary", "class")
def test_an_int_is_no_shape(interface):
    check(interface, {"output_shapes": {"out": 8}}, TypeError, SHAPES + "int.")


# ---- The rest of a call


@those("list", "dictionary", "cuda")
def test_arguments_that_there_are_not(interface):
    for name in ("first", "init", "self", "größe"):
        check(interface, {name: 1}, TypeError, f"The call has no argument `{name}`.")
    for name, meant in (("threads", "threadgroup"), ("tempate", "template"), ("input", "inputs")):
        check(interface, {name: 1}, TypeError, f"The call has no argument `{name}`; did you mean `{meant}`?")
    # A name that is misspelt is missing as well.
    message = "The call has no argument `threadgrp`; did you mean `threadgroup`?"
    check(interface, {"threadgroup": ..., "threadgrp": 8}, TypeError, message)
    is_cuda = interface.generation == "cuda"
    function = "cuda_kernel" if is_cuda else "metal_kernel"
    for name in ("header", "shared_memory" if is_cuda else "atomic_outputs"):
        check(interface, {name: 1}, TypeError, f"The call has no argument `{name}`; pass it to `{function}`.")
    # CUDA's words.
    for name in ("block", "block_dim", "block_size", "blockDim"):
        check(interface, {name: 1}, TypeError, f"The call has no argument `{name}`; did you mean `threadgroup`?")
    check(
        interface,
        {"blocks": 1},
        TypeError,
        "The call has no argument `blocks`; did you mean `grid`? It counts threads.",
    )
    for name in ("shared", "shared_mem", "smem") if is_cuda else ():
        message = f"The call has no argument `{name}`; pass `shared_memory` to `cuda_kernel`."
        check(interface, {name: 1}, TypeError, message)
    check(interface, {"a\0": 1}, TypeError, "The call has no argument `a␀`.")
    check(interface, {"\ud800": 1}, TypeError, "The call has no argument `\\ud800`.")
    for method in METHODS:
        function = getattr(interface.make(), method)
        error = raised(interface, TypeError, function, [EIGHT], **interface.right())
        assert str(error) == f"{interface.prefix} The call takes keyword arguments only."


@those("class")
def test_positional_arguments_of_the_class_generation(interface):
    for method in (*METHODS, "template"):
        error = raised(interface, TypeError, getattr(interface.make(), method), EIGHT)
        assert str(error) == f"MetalKernel.{method}() takes 1 positional argument but 2 were given"


@those("list", "dictionary", "cuda", library="numpy")
def test_numpy_has_no_streams(interface):
    for stream in (3, "cpu", mx.cpu, mx.default_stream(mx.cpu), object()):
        message = "`stream` has no meaning for NumPy arrays, whose kernels run at once."
        check(interface, {"stream": stream}, ValueError, message)


@those("list", "dictionary", "cuda", library="mlx")
def test_what_is_no_stream(interface):
    for stream, kind in (
        (3, "int"),
        ("cpu", "str"),
        (object(), "object"),
        (EIGHT, "numpy.ndarray"),
        (mx.cpu.name, "str"),
    ):
        message = f"Expected `stream` to be an MLX stream or device but got {kind}."
        check(interface, {"stream": stream}, TypeError, message)


@those("list", "dictionary", "class", "cuda", library="numpy")
def test_arrays_of_two_libraries(interface):
    arrays = {"x": EIGHT, "y": mx.array(EIGHT)}
    made = {} if interface.by_name else {"input_names": ["x", "y"]}
    message = "Expected all `inputs` to be arrays of one library but got arrays of {} and {}."
    for order, libraries in ((("x", "y"), ("numpy", "mlx")), (("y", "x"), ("mlx", "numpy"))):
        inputs: Any = {name: arrays[name] for name in order}
        inputs = inputs if interface.by_name else list(inputs.values())
        check(interface, {"inputs": inputs, "made": made}, TypeError, message.format(*libraries))


# ---- Limits of a library's arrays


@those("list", "dictionary", "class", "cuda", library="numpy")
def test_outputs_that_numpy_cannot_have(interface):
    dimensions = (
        "Expected the shapes in `output_shapes` to have at most 64 dimensions, as NumPy's arrays have, but got 65."
    )
    check(interface, {"output_shapes": Item((1,) * 65)}, ValueError, dimensions)
    if interface.generation == "cuda":
        return
    # Nothing is allocated for a text, or to compile.
    shape = (2**62, 0)
    assert "custom_kernel" in interface.call("source_for", output_shapes=Item(shape))
    error = raised(interface, ValueError, interface.call, output_shapes=Item(shape))
    assert str(error) == f"{interface.prefix} NumPy cannot make output `out`: {error.__cause__}"
    assert type(error.__cause__) is ValueError
    error = raised(interface, MemoryError, interface.call, output_shapes=Item((2**60,)))
    assert str(error) == f"{interface.prefix} There is no memory for the {2**62} bytes of output `out`."


@those("list", "dictionary", "class", "cuda", library="mlx")
def test_outputs_that_mlx_cannot_have(interface):
    for dimension in (2**31, -(2**31) - 1, 2**62):
        message = f"be from 0 to 2147483647, as those of MLX's arrays are, but got {dimension}."
        check(interface, {"output_shapes": Item((dimension,))}, ValueError, DIMENSION + message)
    if interface.generation == "cuda":
        return
    # MLX counts what it could not allocate, and above its limit waits for other work at each evaluation.
    active = mx.get_active_memory()
    result = interface.call(output_shapes=Item((2**31 - 1, 2**20)))
    error = raised(interface, MemoryError, interface.first, result)
    assert str(error) == f"{interface.prefix} There is no memory for the {2**53 - 2**22} bytes of output `out`."
    assert abs(mx.get_active_memory() - active) < 2**40


@those("list", "dictionary", "class")
def test_inputs_that_there_is_no_memory_to_copy(interface):
    huge: Any = np.broadcast_to(EIGHT, (2**23, 2**23, 8))
    if interface.library == "mlx":
        huge = mx.broadcast_to(mx.array(EIGHT), huge.shape)
    error = raised(interface, MemoryError, lambda: interface.first(interface.call(inputs=Item(huge))))
    assert str(error) == (
        f"{interface.prefix} There is no memory for the {2**51} bytes of a row-contiguous copy of input `x`."
    )
    out = interface.call(inputs=Item(huge), made={"ensure_row_contiguous": False})
    np.testing.assert_array_equal(interface.first(out), EIGHT + 1)


# ---- What objects of the caller's raise

OWN_ERRORS = [
    ("inputs", lambda e: Item(raising("__index__", e))),
    ("output_shapes", lambda e: Item((raising("__index__", e),))),
    ("output_shapes", lambda e: Item(raising("__iter__", e, __getitem__=None))),
    ("output_shapes", lambda e: Item(raising("__getitem__", e, __len__=lambda self: 1))),
    ("grid", lambda e: (raising("__index__", e), 1, 1)),
    ("threadgroup", lambda e: raising("__iter__", e, __getitem__=None)),
    ("init_value", lambda e: raising("__float__", e)),
    ("init_value", lambda e: raising("__index__", e)),
]


@all_interfaces
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError, LookupError])
def test_what_an_object_raises_of_its_own_passes(interface, error):
    for name, make in OWN_ERRORS:
        own = error("mine")
        assert raised(interface, error, interface.call, **{name: make(own)}) is own
    own = error("mine")
    pair = [raising("__getitem__", own, __len__=lambda self: 2)]
    if interface.generation != "class":
        assert raised(interface, error, interface.call, template=pair) is own


@all_interfaces
def test_what_an_object_says_of_itself_is_the_cause(interface):
    for name, make in OWN_ERRORS:
        if name == "inputs":
            continue
        for error in (TypeError, ValueError, OverflowError):
            own = error("mine")
            if (name, error) == ("init_value", OverflowError) or make is OWN_ERRORS[-1][1]:
                continue  # the one is too large, the other may still have a `__float__`
            assert raised(interface, TypeError, interface.call, **{name: make(own)}).__cause__ is own


# Reading an argument may run code of the caller's, which may change what is being read.
@all_interfaces
def test_arguments_that_change_while_they_are_read(interface):
    def clearing(container, value):
        def index(self):
            container.clear()
            return value

        return type("Clearing", (), {"__index__": index})()

    grid = [8, 1]
    grid.insert(0, clearing(grid, 8))
    shape = [4]
    shape.insert(0, clearing(shape, 2))
    changes: dict[str, Any] = {"grid": grid, "output_shapes": Item(shape)}
    if interface.generation != "class":
        template: Any = {} if interface.by_name else []
        if interface.by_name:
            template |= {"N": clearing(template, 3), "M": 4}
        else:
            template += [("N", clearing(template, 3)), ("M", 4)]
        changes["template"] = template
    if interface.generation == "cuda":
        assert "constexpr int N = 3;\n  constexpr int M = 4;" in interface.call("source_for", **changes)
    else:
        np.testing.assert_array_equal(interface.first(interface.call(**changes)), EIGHT.reshape(2, 4) + 1)
    assert grid == shape == []


def test_numbers_as_numpy_has_them():
    interface = Interface(kiln, "list")
    for value in (2**53 + 1, 2**63 - 1, -(2**63)):
        for number in (value, np.int64(value), np.array(value), np.array([[value]])[0, 0]):
            result = interface.call(init_value=number, output_dtypes=Item("int64"), output_shapes=Item((9,)))
            assert interface.first(result)[8] == value
    result = interface.call(init_value=np.uint64(2**64 - 1), output_dtypes=Item("uint64"), output_shapes=Item((9,)))
    assert interface.first(result)[8] == 2**64 - 1
    for verbose in (np.False_, False):
        assert interface.first(interface.call(verbose=verbose)).shape == (8,)
