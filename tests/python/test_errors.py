"""docs/language.md 7: what a wrong call, a wrong body and an unsupported body say, word for word."""

from __future__ import annotations

import inspect
import pickle

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest

INDEX = "uint i = thread_position_in_grid.x;\n"
EIGHT = np.arange(8, dtype=np.float32)


def make(source="out[0] = 1;", header="", inputs=("x",), outputs=("out",), name="k", **keywords) -> kiln.Kernel:
    return kiln.metal_kernel(name, list(inputs), list(outputs), source, header=header, **keywords)


def call(kernel, method="__call__", **keywords):
    """Calls with keywords that are right unless they are given; ``...`` leaves one out."""
    right = {
        "inputs": [EIGHT],
        "output_shapes": [(8,)],
        "output_dtypes": ["float32"],
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
    }
    keywords = {key: value for key, value in {**right, **keywords}.items() if value is not ...}
    return getattr(kernel, method)(**keywords)


def works():
    """docs/language.md 7.5: whatever went wrong before, a launch still computes what it should."""
    (out,) = call(make(INDEX + "out[i] = x[i] + 1;"))
    return np.array_equal(out, EIGHT + 1)


def raised(error, function, *arguments, **keywords):
    with pytest.raises(error) as caught:
        function(*arguments, **keywords)
    assert type(caught.value) is error
    assert works()
    return caught.value


# ---- 7.1: making a kernel

KEYWORD = "[metal_kernel] {} name `{}` is a keyword of the Metal dialect."
SURROGATE = "[metal_kernel] Expected `{}` to be text but got the lone surrogate '\\ud800' at {}."
IDENTIFIERS = "[metal_kernel] Expected the names in `{}` to be identifiers but got {}."
LISTS = "[metal_kernel] Expected `{}` to be a list of strings but got {}."
BOUNDS = "[metal_kernel] Expected `compile_options[\"bounds\"]` to be 'on' or 'off' but got {}."
KNOWN = " Those are `math_mode`, `bounds`, `specialize`, `include_dirs` and `writable_inputs`."


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"name": 3}, TypeError, "[metal_kernel] Expected `name` to be a string but got int."),
        ({"source": 3}, TypeError, "[metal_kernel] Expected `source` to be a string or a path but got int."),
        ({"source": b"x"}, TypeError, "[metal_kernel] Expected `source` to be a string or a path but got bytes."),
        ({"header": None}, TypeError, "[metal_kernel] Expected `header` to be a string or a path but got NoneType."),
        ({"input_names": "ab"}, TypeError, LISTS.format("input_names", "the string 'ab': write ['ab']")),
        ({"input_names": None}, TypeError, LISTS.format("input_names", "NoneType")),
        ({"input_names": ["a", 3]}, TypeError, LISTS.format("input_names", "int")),
        ({"output_names": "ab"}, TypeError, LISTS.format("output_names", "the string 'ab': write ['ab']")),
        ({"output_names": 3}, TypeError, LISTS.format("output_names", "int")),
        (
            {"ensure_row_contiguous": 1},
            TypeError,
            "[metal_kernel] Expected `ensure_row_contiguous` to be a bool but got int.",
        ),
        ({"atomic_outputs": "no"}, TypeError, "[metal_kernel] Expected `atomic_outputs` to be a bool but got str."),
        ({"output_names": []}, ValueError, "[metal_kernel] Must specify at least one output."),
        ({"input_names": ["1a"]}, ValueError, "[metal_kernel] Input name `1a` is not an identifier."),
        ({"input_names": ["a b"]}, ValueError, "[metal_kernel] Input name `a b` is not an identifier."),
        ({"output_names": [""]}, ValueError, "[metal_kernel] Output name `` is not an identifier."),
        (
            {"input_names": ["while"]},
            ValueError,
            KEYWORD.format("Input", "while"),
        ),
        (
            {"output_names": ["device"]},
            ValueError,
            KEYWORD.format("Output", "device"),
        ),
        ({"input_names": ["a", "a"]}, ValueError, "[metal_kernel] Name `a` is used twice."),
        ({"input_names": ["a"], "output_names": ["a"]}, ValueError, "[metal_kernel] Name `a` is used twice."),
        ({"compile_options": "fast"}, ValueError, "[metal_kernel] Expected `compile_options` to be a dict."),
        ({"compile_options": {"speed": 9}}, ValueError, "[metal_kernel] Unknown compile option `speed`." + KNOWN),
        (
            {"compile_options": {"math_mode": "quick"}},
            ValueError,
            "[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'.",
        ),
        (
            {"compile_options": {"bounds": True}},
            ValueError,
            BOUNDS.format("True"),
        ),
        (
            {"compile_options": {"specialize": "yes"}},
            TypeError,
            '[metal_kernel] Expected `compile_options["specialize"]` to be a bool but got str.',
        ),
        (
            {"compile_options": {"math_mode": np.array(["safe", "fast"])}},
            ValueError,
            "[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'.",
        ),
        (
            {"compile_options": {"bounds": np.array(["on", "off"])}},
            ValueError,
            BOUNDS.format("numpy.ndarray"),
        ),
        ({"name": "a\ud800"}, ValueError, SURROGATE.format("name", 1)),
        ({"source": "\ud800"}, ValueError, SURROGATE.format("source", 0)),
        ({"header": "// \ud800"}, ValueError, SURROGATE.format("header", 3)),
        ({"input_names": ["\ud800"]}, ValueError, IDENTIFIERS.format("input_names", "'\\ud800'")),
        ({"output_names": ["a\0b"]}, ValueError, IDENTIFIERS.format("output_names", "'a\\x00b'")),
        (
            {"compile_options": {"include_dirs": "here"}},
            TypeError,
            '[metal_kernel] Expected `compile_options["include_dirs"]` to be a list of folders but got str.',
        ),
        ({"precision": 1}, TypeError, "metal_kernel() got an unexpected keyword argument 'precision'"),
    ],
)
def test_a_wrong_argument_of_metal_kernel(keywords, error, message):
    right = {"name": "k", "input_names": ["a"], "output_names": ["out"], "source": ""}
    assert str(raised(error, kiln.metal_kernel, **{**right, **keywords})) == message
    assert str(raised(error, kiln.mlx.metal_kernel, **{**right, **keywords})) == message


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"name": 3}, TypeError, "[cuda_kernel] Expected `name` to be a string but got int."),
        (
            {"input_names": "ab"},
            TypeError,
            "[cuda_kernel] Expected `input_names` to be a list of strings but got the string 'ab': write ['ab'].",
        ),
        ({"output_names": []}, ValueError, "[cuda_kernel] Must specify at least one output."),
        (
            {"input_names": ["__shared__"]},
            ValueError,
            "[cuda_kernel] Input name `__shared__` is a keyword of the CUDA dialect.",
        ),
        ({"input_names": ["out"]}, ValueError, "[cuda_kernel] Name `out` is used twice."),
        ({"shared_memory": 1.5}, TypeError, "[cuda_kernel] Expected `shared_memory` to be an int but got float."),
        (
            {"shared_memory": -1},
            ValueError,
            "[cuda_kernel] Expected `shared_memory` to be at least 0 and below 2^63 but got -1.",
        ),
        ({"compile_options": {"speed": 9}}, ValueError, "[cuda_kernel] Unknown compile option `speed`." + KNOWN),
        ({"atomic_outputs": True}, TypeError, "cuda_kernel() got an unexpected keyword argument 'atomic_outputs'"),
    ],
)
def test_a_wrong_argument_of_cuda_kernel(keywords, error, message):
    right = {"name": "k", "input_names": ["a"], "output_names": ["out"], "source": ""}
    assert str(raised(error, kiln.cuda_kernel, **{**right, **keywords})) == message


NEEDS = "[metal_kernel] `{}` needs `{}`: a kernel has both, or takes all names from its calls."


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((), {"input_names": ["a"], "source": ""}, NEEDS.format("input_names", "output_names")),
        ((["a"],), {"source": ""}, NEEDS.format("input_names", "output_names")),
        (("body",), {"output_names": ["b"]}, NEEDS.format("output_names", "input_names")),
        (
            (),
            {"source": "", "output_names": ["b"]},
            NEEDS.format("output_names", "input_names"),
        ),
        (
            ("body",),
            {"input_names": ["a"], "output_names": ["b"]},
            "[metal_kernel] Got `input_names`, and a source in their place as the second argument: a kernel with names "
            "takes them before its source, one without takes all names from its calls.",
        ),
        (
            ("body", ["a"]),
            {},
            "[metal_kernel] Got a list of names, and a source in their place as the second argument: a kernel with "
            "names takes them before its source, one without takes all names from its calls.",
        ),
        (
            ("body", ("a",), ["out"]),
            {},
            "[metal_kernel] Got a list of names, and a source in their place as the second argument: a kernel with "
            "names takes them before its source, one without takes all names from its calls.",
        ),
    ],
)
def test_generations_of_the_interface_do_not_mix_in_one_kernel(arguments, keywords, message):
    assert str(raised(TypeError, kiln.metal_kernel, "k", *arguments, **keywords)) == message


# ---- 7.1: calling one

NO_ARRAY = "[metal_kernel] Expected `inputs` to be NumPy arrays or numbers but got {} for `x`."
NO_DOUBLE = "[metal_kernel] Metal has no double, but {} is float64."
SIZES = "[metal_kernel] Expected `{}` to have size {} but got size {}."
TEMPLATE = "[metal_kernel] Expected `template` to be a list of pairs of a name and a value but got {}."
INVALID_TEMPLATE = (
    "[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`. Got {} for `T`."
)
GRID = "[metal_kernel] Expected each dimension of `grid` {}."
GROUP = "[metal_kernel] Expected each dimension of `threadgroup` {}."
DTYPES = (
    " Those are bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64 and "
    "complex64."
)
BY_LIST = "this kernel was made with `input_names`, so its calls take lists."


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"inputs": ...}, TypeError, "[metal_kernel] The call is missing the argument `inputs`."),
        ({"output_shapes": ...}, TypeError, "[metal_kernel] The call is missing the argument `output_shapes`."),
        ({"output_dtypes": ...}, TypeError, "[metal_kernel] The call is missing the argument `output_dtypes`."),
        ({"grid": ...}, TypeError, "[metal_kernel] The call is missing the argument `grid`."),
        ({"threadgroup": ...}, TypeError, "[metal_kernel] The call is missing the argument `threadgroup`."),
        ({"threads": 1}, TypeError, "[metal_kernel] The call has no argument `threads`; did you mean `threadgroup`?"),
        # inputs
        ({"inputs": []}, ValueError, SIZES.format("inputs", 1, 0)),
        ({"inputs": [EIGHT, EIGHT]}, ValueError, SIZES.format("inputs", 1, 2)),
        ({"inputs": 3}, TypeError, "[metal_kernel] Expected `inputs` to be a list but got int."),
        ({"inputs": "x"}, TypeError, "[metal_kernel] Expected `inputs` to be a list but got str."),
        (
            {"inputs": {"x": EIGHT}},
            TypeError,
            f"[metal_kernel] Expected `inputs` to be a list but got a dict: {BY_LIST}",
        ),
        (
            {"inputs": [None]},
            TypeError,
            NO_ARRAY.format("NoneType"),
        ),
        (
            {"inputs": [[1.0]]},
            TypeError,
            NO_ARRAY.format("list"),
        ),
        ({"inputs": [2**63]}, ValueError, f"[metal_kernel] Input `x` does not fit into int64: {2**63}."),
        (
            {"inputs": [np.zeros(3)]},
            ValueError,
            NO_DOUBLE.format("input `x`"),
        ),
        (
            {"inputs": [np.zeros(3, np.complex128)]},
            TypeError,
            "[metal_kernel] Input `x` has dtype complex128, which no kernel can take.",
        ),
        (
            {"inputs": [np.zeros(3, object)]},
            TypeError,
            "[metal_kernel] Input `x` has dtype object, which no kernel can take.",
        ),
        (
            {"inputs": [np.array("text")]},
            TypeError,
            "[metal_kernel] Input `x` has dtype <U4, which no kernel can take.",
        ),
        (
            {"inputs": [np.zeros(3, "m8[s]")]},
            TypeError,
            "[metal_kernel] Input `x` has dtype timedelta64[s], which no kernel can take.",
        ),
        # output_shapes
        ({"output_shapes": []}, ValueError, SIZES.format("output_shapes", 1, 0)),
        ({"output_shapes": [(1,), (2,)]}, ValueError, SIZES.format("output_shapes", 1, 2)),
        (
            {"output_shapes": 3},
            TypeError,
            "[metal_kernel] Expected `output_shapes` to be a list of shapes but got int.",
        ),
        (
            {"output_shapes": (3,)},
            TypeError,
            "[metal_kernel] Expected `output_shapes` to be a list of shapes but got one shape: write [(3,)].",
        ),
        (
            {"output_shapes": (4, 5)},
            TypeError,
            "[metal_kernel] Expected `output_shapes` to be a list of shapes but got one shape: write [(4, 5)].",
        ),
        (
            {"output_shapes": (4, 5.0)},
            TypeError,
            "[metal_kernel] Expected `output_shapes` to be a list of shapes but got int.",
        ),
        (
            {"output_shapes": {"out": (3,)}},
            TypeError,
            "[metal_kernel] Expected `output_shapes` to be a list of shapes but got dict.",
        ),
        (
            {"output_shapes": [(1.5,)]},
            TypeError,
            "[metal_kernel] Expected each dimension in `output_shapes` to be an int but got float.",
        ),
        (
            {"output_shapes": [(-1,)]},
            ValueError,
            "[metal_kernel] Expected the dimensions of output `out` to be at least 0 but got -1.",
        ),
        (
            {"output_shapes": [(2**64,)]},
            ValueError,
            f"[metal_kernel] Expected each dimension in `output_shapes` to fit into 64 bits but got {2**64}.",
        ),
        (
            {"output_shapes": [(2**40, 2**40)]},
            ValueError,
            "[metal_kernel] Output `out` has more than 2^63 - 1 bytes.",
        ),
        # output_dtypes
        ({"output_dtypes": []}, ValueError, SIZES.format("output_dtypes", 1, 0)),
        ({"output_dtypes": ["int32", "int32"]}, ValueError, SIZES.format("output_dtypes", 1, 2)),
        (
            {"output_dtypes": "float32"},
            TypeError,
            "[metal_kernel] Expected `output_dtypes` to be a list of dtypes but got str.",
        ),
        (
            {"output_dtypes": {"out": "float32"}},
            TypeError,
            "[metal_kernel] Expected `output_dtypes` to be a list of dtypes but got dict.",
        ),
        ({"output_dtypes": [3]}, TypeError, "[metal_kernel] Expected `output_dtypes` to have dtypes but got 3."),
        (
            {"output_dtypes": ["float31"]},
            ValueError,
            "[metal_kernel] `float31` in `output_dtypes` is no dtype." + DTYPES,
        ),
        (
            {"output_dtypes": ["float64"]},
            ValueError,
            NO_DOUBLE.format("output `out`"),
        ),
        # grid and threadgroup
        ({"grid": 3.5}, TypeError, "[metal_kernel] Expected `grid` to be an int or 1 to 3 ints but got float."),
        ({"grid": ()}, ValueError, "[metal_kernel] Expected `grid` to have 1 to 3 ints but got 0."),
        ({"grid": (1, 1, 1, 1)}, ValueError, "[metal_kernel] Expected `grid` to have 1 to 3 ints but got 4."),
        ({"grid": (1, 1, 1.5)}, TypeError, GRID.format("to be an int but got float")),
        ({"grid": (-1, 1, 1)}, ValueError, GRID.format("to be in [0, 2147483647] but got (-1, 1, 1)")),
        ({"grid": (1, 2**31, 1)}, ValueError, GRID.format("to be in [0, 2147483647] but got (1, 2147483648, 1)")),
        ({"grid": (2**70, 1, 1)}, ValueError, GRID.format(f"to fit into 64 bits but got {2**70}")),
        (
            {"threadgroup": None},
            TypeError,
            "[metal_kernel] Expected `threadgroup` to be an int or 1 to 3 ints but got NoneType.",
        ),
        ({"threadgroup": []}, ValueError, "[metal_kernel] Expected `threadgroup` to have 1 to 3 ints but got 0."),
        ({"threadgroup": ("1", 1, 1)}, TypeError, GROUP.format("to be an int but got str")),
        ({"threadgroup": (8, 0, 1)}, ValueError, GROUP.format("to be in [1, 2147483647] but got (8, 0, 1)")),
        ({"threadgroup": (8, 1, -1)}, ValueError, GROUP.format("to be in [1, 2147483647] but got (8, 1, -1)")),
        (
            {"threadgroup": (32, 33, 1)},
            ValueError,
            "[metal_kernel] Expected `threadgroup` to have at most 1024 threads but got (32, 33, 1).",
        ),
        # template
        ({"template": 3}, TypeError, TEMPLATE.format("int")),
        ({"template": [3]}, TypeError, TEMPLATE.format("int")),
        ({"template": ["Ta"]}, TypeError, TEMPLATE.format("str")),
        ({"template": [("T",)]}, TypeError, TEMPLATE.format("tuple")),
        (
            {"template": {"T": 1}},
            TypeError,
            f"[metal_kernel] Expected `template` to be a list of pairs but got a dict: {BY_LIST}",
        ),
        (
            {"template": [(3, 1)]},
            TypeError,
            "[metal_kernel] Expected the names in `template` to be strings but got int.",
        ),
        ({"template": [("T", 1.5)]}, ValueError, INVALID_TEMPLATE.format("1.5")),
        ({"template": [("T", "int")]}, ValueError, INVALID_TEMPLATE.format("'int'")),
        ({"template": [("T", int)]}, ValueError, INVALID_TEMPLATE.format("<class 'int'>")),
        ({"template": [("T", None)]}, ValueError, INVALID_TEMPLATE.format("None")),
        (
            {"template": [("N", 2**31)]},
            ValueError,
            "[metal_kernel] Expected template argument `N` to fit into 32 bits but got 2147483648.",
        ),
        (
            {"template": [("T", "float64")]},
            ValueError,
            NO_DOUBLE.format("template argument `T`"),
        ),
        ({"template": [("3", 1)]}, ValueError, "[metal_kernel] Template argument name `3` is not an identifier."),
        (
            {"template": [("half", 1)]},
            ValueError,
            "[metal_kernel] Template argument name `half` is a keyword of the Metal dialect.",
        ),
        ({"template": [("T", 1), ("T", 2)]}, ValueError, "[metal_kernel] Name `T` is used twice."),
        ({"template": [("x", 1)]}, ValueError, "[metal_kernel] Name `x` is used twice."),
        # the rest
        ({"init_value": "0"}, TypeError, "[metal_kernel] Expected `init_value` to be a number but got str."),
        (
            {"init_value": np.ones(2)},
            TypeError,
            "[metal_kernel] Expected `init_value` to be a number but got numpy.ndarray.",
        ),
        ({"grid": (np.ones(2, int), 1, 1)}, TypeError, GRID.format("to be an int but got numpy.ndarray")),
        ({"verbose": np.ones(2)}, TypeError, "[metal_kernel] Expected `verbose` to be a bool but got numpy.ndarray."),
        ({"init_value": 1j}, TypeError, "[metal_kernel] Expected `init_value` to be a number but got complex."),
        ({"init_value": 2**1100}, ValueError, "[metal_kernel] Expected `init_value` to fit into a double."),
        (
            {"stream": 1},
            ValueError,
            "[metal_kernel] `stream` has no meaning for NumPy arrays, whose kernels run at once.",
        ),
        (
            {"output_shapes": [(1,) * 65]},
            ValueError,
            "[metal_kernel] Expected the shapes in `output_shapes` to have at most 64 dimensions, as NumPy's arrays have, but "
            "got 65.",
        ),
    ],
)
def test_a_wrong_argument_of_a_call(keywords, error, message):
    kernel = make()
    for method in ("__call__", "source_for", "compile"):
        assert str(raised(error, call, kernel, method, **keywords)) == message


def test_a_call_takes_keywords_only():
    message = "[metal_kernel] The call takes keyword arguments only."
    assert str(raised(TypeError, make(), [EIGHT])) == message


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        (
            {"inputs": ["text"]},
            TypeError,
            "[metal_kernel] Expected `inputs` to be MLX arrays or numbers but got str for `x`.",
        ),
        ({"inputs": [2**63]}, ValueError, f"[metal_kernel] Input `x` does not fit into int64: {2**63}."),
        (
            {"output_shapes": [(2**31,)]},
            ValueError,
            "[metal_kernel] Expected each dimension in `output_shapes` to be from 0 to 2147483647, as those of MLX's arrays "
            "are, but got 2147483648.",
        ),
        (
            {"output_shapes": [(-1,)]},
            ValueError,
            "[metal_kernel] Expected the dimensions of output `out` to be at least 0 but got -1.",
        ),
        ({"stream": 3}, TypeError, "[metal_kernel] Expected `stream` to be an MLX stream or device but got int."),
        ({"output_dtypes": []}, ValueError, SIZES.format("output_dtypes", 1, 0)),
        (
            {"output_dtypes": [mx.float64]},
            ValueError,
            NO_DOUBLE.format("output `out`"),
        ),
        (
            {"threadgroup": (1025, 1, 1)},
            ValueError,
            "[metal_kernel] Expected `threadgroup` to have at most 1024 threads but got (1025, 1, 1).",
        ),
    ],
)
def test_a_wrong_argument_of_a_call_with_mlx_arrays(keywords, error, message):
    kernel = kiln.mlx.metal_kernel("k", ["x"], ["out"], "out[0] = 1;")
    for method in ("__call__", "source_for", "compile"):
        assert str(raised(error, call, kernel, method, **{"inputs": [mx.array(EIGHT)], **keywords})) == message


def test_arrays_of_two_libraries_in_one_call():
    message = "[metal_kernel] Expected all `inputs` to be arrays of one library but got arrays of {} and {}."
    kernel = make(inputs=("x", "y"))
    arrays = [EIGHT, mx.array(EIGHT)]
    assert str(raised(TypeError, call, kernel, inputs=arrays)) == message.format("numpy", "mlx")
    assert str(raised(TypeError, call, kernel, inputs=arrays[::-1])) == message.format("mlx", "numpy")


BY_DICT = "this kernel was made without `input_names`, so its calls take dicts."


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"inputs": [EIGHT]}, TypeError, f"[metal_kernel] Expected `inputs` to be a dict but got list: {BY_DICT}"),
        (
            {"output_shapes": [(8,)]},
            TypeError,
            f"[metal_kernel] Expected `output_shapes` to be a dict but got list: {BY_DICT}",
        ),
        (
            {"output_dtypes": ["float32"]},
            TypeError,
            f"[metal_kernel] Expected `output_dtypes` to be a dict but got list: {BY_DICT}",
        ),
        ({"inputs": {3: EIGHT}}, TypeError, "[metal_kernel] Expected the keys of `inputs` to be strings but got int."),
        ({"inputs": {"a\0b": EIGHT}}, ValueError, IDENTIFIERS.format("inputs", "'a\\x00b'")),
        ({"inputs": {"\ud800": EIGHT}}, ValueError, IDENTIFIERS.format("inputs", "'\\ud800'")),
        ({"output_shapes": {"a\0": (8,)}}, ValueError, IDENTIFIERS.format("output_shapes", "'a\\x00'")),
        ({"template": {"\ud800": 1}}, ValueError, IDENTIFIERS.format("template", "'\\ud800'")),
        ({"verbose": np.ones(2)}, TypeError, "[metal_kernel] Expected `verbose` to be a bool but got numpy.ndarray."),
        (
            {"output_dtypes": {"out": "\ud800"}},
            ValueError,
            "[metal_kernel] `\\ud800` in `output_dtypes` is no dtype." + DTYPES,
        ),
        ({"inputs": {"a b": EIGHT}}, ValueError, "[metal_kernel] Input name `a b` is not an identifier."),
        ({"inputs": {"out": EIGHT}}, ValueError, "[metal_kernel] Name `out` is used twice."),
        (
            {"output_dtypes": {}},
            ValueError,
            "[metal_kernel] Expected `output_dtypes` to have the keys of `output_shapes`, but `out` is missing.",
        ),
        (
            {"output_dtypes": {"out": "float32", "more": "float32"}},
            ValueError,
            "[metal_kernel] Expected `output_dtypes` to have the keys of `output_shapes`, but got `more`.",
        ),
        (
            {"output_shapes": {}, "output_dtypes": {}},
            ValueError,
            "[metal_kernel] Must specify at least one output.",
        ),
        ({"template": {"T": 1.5}}, ValueError, INVALID_TEMPLATE.format("1.5")),
    ],
)
def test_a_wrong_argument_of_a_call_by_name(keywords, error, message):
    kernel = kiln.metal_kernel("k", "out[0] = 1;")
    right = {"inputs": {"x": EIGHT}, "output_shapes": {"out": (8,)}, "output_dtypes": {"out": "float32"}}
    assert str(raised(error, call, kernel, **{**right, **keywords})) == message


@pytest.mark.parametrize(
    ("keywords", "inputs", "error", "message"),
    [
        (
            {},
            {"x": None},
            TypeError,
            NO_ARRAY.format("NoneType"),
        ),
        ({"grid": ()}, {}, ValueError, "[metal_kernel] Expected `grid` to have 1 to 3 ints but got 0."),
        (
            {"output_dtypes": {}},
            {},
            ValueError,
            "[metal_kernel] Expected `output_dtypes` to have the keys of `output_shapes`, but `out` is missing.",
        ),
        ({}, {"int": EIGHT}, ValueError, "[metal_kernel] Input name `int` is a keyword of the Metal dialect."),
    ],
)
def test_a_wrong_argument_of_the_class_generation(keywords, inputs, error, message):
    right = {
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
        "output_shapes": {"out": (8,)},
        "output_dtypes": {"out": "float32"},
    }
    kernel = kiln.MetalKernel("k", "out[0] = 1;", **{**right, **keywords})
    assert str(raised(error, kernel, **inputs)) == message


def test_a_wrong_template_of_the_class_generation():
    kernel = kiln.MetalKernel("k", "", (1, 1, 1), (1, 1, 1), {"out": (1,)}, {"out": "float32"})
    kernel.template(T=1.5)
    assert str(raised(ValueError, kernel)) == INVALID_TEMPLATE.format("1.5")


def test_any_text_may_be_a_kernels_name():
    name = 'größer "than"\n1'
    kernel = make(INDEX + "out[i] = x[i];", name=name)
    assert kernel.name == name
    np.testing.assert_array_equal(call(kernel)[0], EIGHT)


# ---- 7.2: bodies that do not compile


def compile_error(source, header="", **keywords):
    kernel = make(source, header)
    error = raised(kiln.CompileError, call, kernel, **keywords)
    assert issubclass(kiln.CompileError, RuntimeError)
    assert error.generated_source == call(kernel, "source_for", **keywords)
    # Launches of the same kernel say the same.
    assert str(raised(kiln.CompileError, call, kernel, **keywords)) == str(error)
    return error


BROKEN = {
    "unknown name": (
        INDEX + "out[i] = y[i];",
        "",
        "source:2:10: error: use of undeclared identifier 'y'\n  out[i] = y[i];\n           ^",
    ),
    "unknown function": (
        INDEX + "out[i] = expp(x[i]);",
        "",
        "source:2:10: error: use of undeclared identifier 'expp'\n  out[i] = expp(x[i]);\n           ^",
    ),
    "unknown type": (
        INDEX + "T a = x[i];",
        "",
        "source:2:1: error: unknown type name 'T'\n  T a = x[i];\n  ^",
    ),
    "missing semicolon": (
        INDEX + "out[i] = x[i]\n  + 1\nout[0] = 2;",
        "",
        "source:3:6: error: expected ';' after expression\n    + 1\n       ^",
    ),
    "missing semicolon at the end": (
        INDEX + "out[i] = x[i]",
        "",
        "source:2:14: error: expected ';' after expression\n  out[i] = x[i]\n               ^",
    ),
    "wrong type": (
        INDEX + "float3 v = x;",
        "",
        "source:2:8: error: no viable conversion from 'const float *' to 'float3'\n  float3 v = x;\n         ^",
    ),
    "wrong type in an assignment": (
        INDEX + "\tout[i] = float3(1);",
        "",
        "source:2:11: error: assigning to 'float' from incompatible type 'float3'\n"
        "  \tout[i] = float3(1);\n  \t         ^",
    ),
    "member of a half": (
        INDEX + "half h = 1; out[i] = h.x;",
        "",
        "source:2:23: error: member reference base type 'half' is not a structure or union\n"
        "  half h = 1; out[i] = h.x;\n                        ^",
    ),
    "wrong arguments": (
        INDEX + "out[i] = pow(x[i]);",
        "",
        "source:2:10: error: no matching function for call to 'pow'; it takes 2 arguments\n  out[i] = pow(x[i]);\n           ^",
    ),
    "write to an input": (
        INDEX + "x[i] = 1;",
        "",
        "source:2:6: error: read-only variable is not assignable; inputs and constants cannot be written\n  x[i] = 1;\n       ^",
    ),
    "misspelt attribute": (
        "uint i = thread_positon_in_grid.x;\nout[i] = 1;",
        "",
        "source:1:10: error: use of undeclared identifier 'thread_positon_in_grid'; did you mean "
        "'thread_position_in_grid'?\n  uint i = thread_positon_in_grid.x;\n           ^",
    ),
    "attribute with one letter too many": (
        "out[0] = thread_index_in_simdgroups;",
        "",
        "source:1:10: error: use of undeclared identifier 'thread_index_in_simdgroups'; did you mean "
        "'thread_index_in_simdgroup'?\n  out[0] = thread_index_in_simdgroups;\n           ^",
    ),
    "misspelt shape": (
        "out[0] = x_shap[0];",
        "",
        "source:1:10: error: use of undeclared identifier 'x_shap'; did you mean 'x_shape'?\n"
        "  out[0] = x_shap[0];\n           ^",
    ),
    "shape that the header names": (
        "out[0] = f();",
        "float f() { return x_shape[0]; }",
        "header:1:20: error: use of undeclared identifier 'x_shape'; only the body has it, where the body itself names it\n"
        "  float f() { return x_shape[0]; }\n                     ^",
    ),
    "shape that the header and the body name": (
        "out[0] = f() + x_ndim;",
        "float f() { return x_ndim; }",
        "header:1:20: error: use of undeclared identifier 'x_ndim'; only the body has it, where the body itself names it\n"
        "  float f() { return x_ndim; }\n                     ^",
    ),
    "shape of an output": (
        "out[0] = out_shape[0] + x_shape[0];",
        "",
        "source:1:10: error: use of undeclared identifier 'out_shape'; only inputs with dimensions have a shape, strides "
        "and ndim\n  out[0] = out_shape[0] + x_shape[0];\n           ^",
    ),
    "misspelt function": (
        "out[0] = simd_summ(1.0f);",
        "",
        "source:1:10: error: use of undeclared identifier 'simd_summ'; did you mean 'simd_sum'?\n"
        "  out[0] = simd_summ(1.0f);\n           ^",
    ),
    "misspelt name of the body": (
        "float total = 1;\nout[0] = totl;",
        "",
        "source:2:10: error: use of undeclared identifier 'totl'; did you mean 'total'?\n"
        "  out[0] = totl;\n           ^\n"
        "source:1:7: note: 'total' declared here\n  float total = 1;\n        ^",
    ),
    "no keyword for an unknown name": (
        INDEX + "out[i] = elme + 1;",
        "",
        "source:2:10: error: use of undeclared identifier 'elme'\n  out[i] = elme + 1;\n           ^",
    ),
    "brace that nothing closes": (
        INDEX + "if (i < 2) {\n  out[i] = 1;",
        "",
        "source:2:12: error: nothing closes this '{'\n  if (i < 2) {\n             ^",
    ),
    "brace that nothing opens": (
        INDEX + "out[i] = 1; }",
        "",
        "source:2:13: error: nothing opens this '}'\n  out[i] = 1; }\n              ^",
    ),
    "braces that close the function and open another": (
        "out[0] = 1; }\nvoid another() {",
        "",
        "source:1:13: error: nothing opens this '}'\n  out[0] = 1; }\n              ^",
    ),
    "parenthesis that nothing closes": (
        "for (int j = 0; j < 3; ++j {\n  out[j] = 1;\n}",
        "",
        "source:1:5: error: nothing closes this '('\n  for (int j = 0; j < 3; ++j {\n      ^",
    ),
    "brace of the header that nothing closes": (
        "out[0] = 1;",
        "float f() {\n  return 1;\n",
        "header:1:11: error: nothing closes this '{'\n  float f() {\n            ^",
    ),
    "quote that nothing closes": (
        'out[0] = "text;',
        "",
        'source:1:10: error: nothing closes this "\n  out[0] = "text;\n           ^',
    ),
    "in a macro of the body": (
        "#define ADD(a) \\\n  (a + nothing)\n" + INDEX + "out[i] = ADD(x[i]);",
        "",
        "source:4:10: error: use of undeclared identifier 'nothing'\n  out[i] = ADD(x[i]);\n           ^\n"
        "source:2:8: note: expanded from macro 'ADD'\n    (a + nothing)\n         ^",
    ),
    "in a macro of the header": (
        INDEX + "out[i] = 1 + ADD(x[i]);",
        "\n#define ADD(a) (a + nothing)\n",
        "source:2:14: error: use of undeclared identifier 'nothing'\n  out[i] = 1 + ADD(x[i]);\n               ^\n"
        "header:2:21: note: expanded from macro 'ADD'\n  #define ADD(a) (a + nothing)\n                      ^",
    ),
    "in a macro of a macro": (
        "out[0] = OUTER;",
        "#define INNER nothing\n#define OUTER (1 + INNER)\n",
        "source:1:10: error: use of undeclared identifier 'nothing'\n  out[0] = OUTER;\n           ^\n"
        "header:1:15: note: expanded from macro 'INNER'\n  #define INNER nothing\n                ^",
    ),
    "in the argument of a macro": (
        "out[0] = TWICE(nothing);",
        "#define TWICE(a) (2 * a)\n",
        "source:1:16: error: use of undeclared identifier 'nothing'\n  out[0] = TWICE(nothing);\n                 ^",
    ),
    "in a name that a macro pastes": (
        "out[0] = PASTE(x, 1);",
        "#define PASTE(a, b) a##b\n",
        "source:1:10: error: use of undeclared identifier 'x1'\n  out[0] = PASTE(x, 1);\n           ^",
    ),
    "macro that nothing closes": (
        "out[0] = TWICE(1;",
        "#define TWICE(a) (2 * a)\n",
        "source:1:10: error: unterminated function-like macro invocation\n  out[0] = TWICE(1;\n           ^\n"
        "header:1:9: note: macro 'TWICE' defined here\n  #define TWICE(a) (2 * a)\n          ^",
    ),
    "in a template of the header": (
        INDEX + "out[i] = half_of(x[i]);",
        "template <typename T>\nT half_of(T a) {\n  return a.y;\n}",
        "header:3:11: error: member reference base type 'float' is not a structure or union\n    return a.y;\n"
        "            ^\n"
        "source:2:10: note: in instantiation of function template specialization 'half_of<float>' requested here\n"
        "  out[i] = half_of(x[i]);\n           ^",
    ),
    "in a template that is not used": (
        "out[0] = 1;",
        "template <typename T>\nT f(T a) {\n  return nothing;\n}\n",
        "header:3:10: error: use of undeclared identifier 'nothing'\n    return nothing;\n           ^",
    ),
    "in the device library's template": (
        INDEX + "out[i] = float4(1, 2, 3).x;",
        "",
        "source:2:10: error: the arguments do not make up the vector's components\n"
        "  out[i] = float4(1, 2, 3).x;\n           ^",
    ),
    "in the header, which does not end its line": (
        "out[0] = 1;",
        "int a = ;",
        "header:1:9: error: expected expression\n  int a = ;\n          ^",
    ),
    "comment without an end": (
        INDEX + "/* out[i] = 1;\nout[i] = 2;",
        "",
        "source:2:1: error: unterminated /* comment\n  /* out[i] = 1;\n  ^",
    ),
    "comment of the header without an end": (
        "out[0] = 1;",
        "#define A 1\n  /* nothing",
        "header:2:3: error: unterminated /* comment\n    /* nothing\n    ^",
    ),
    "conditional without an end": (
        "#if 1\nout[0] = 1;",
        "",
        "source:1:2: error: unterminated conditional directive\n  #if 1\n   ^",
    ),
    "conditional of the header without an end": (
        "out[0] = 1;",
        "#ifdef A\nint a;\n",
        "header:1:2: error: unterminated conditional directive\n  #ifdef A\n   ^",
    ),
    "body that is cut off": (
        INDEX + "out[i] =  \n\n",
        "",
        "source:2:9: error: expected expression\n  out[i] =  \n          ^",
    ),
    "header that is cut off": (
        "out[0] = 1;",
        "constant int a = 3",
        "header:1:19: error: expected ';' after top level declarator\n  constant int a = 3\n                    ^",
    ),
    "header that is cut off before a line end": (
        "out[0] = 1;",
        "#define A 1\nconstant int a =\n",
        "header:2:17: error: expected '(' for function-style cast or type construction\n"
        "  constant int a =\n                  ^",
    ),
    "end of no conditional": (
        "out[0] = 1;\n#endif",
        "",
        "source:2:2: error: #endif without #if\n  #endif\n   ^",
    ),
    "an error that the text asks for": (
        "#error not today",
        "",
        "source:1:2: error: not today\n  #error not today\n   ^",
    ),
    "static assertion": (
        'static_assert(sizeof(float) == 8, "no");',
        "",
        "source:1:15: error: static assertion failed due to requirement 'sizeof(float) == 8': no\n"
        '  static_assert(sizeof(float) == 8, "no");\n                ^\n'
        "source:1:29: note: expression evaluates to '4 == 8'\n"
        '  static_assert(sizeof(float) == 8, "no");\n                              ^',
    ),
    "header that is not there": (
        "out[0] = 1;",
        '#include "missing.h"\n',
        "header:1:10: error: 'missing.h' file not found; text is in no folder, and `include_dirs` names none\n  #include \"missing.h\"\n           ^",
    ),
    "function without a body": (
        "out[0] = f(1);",
        "float f(float x);\n",
        "header:1:7: error: 'f' is used but not defined\n  float f(float x);\n        ^",
    ),
    "double": (
        INDEX + "out[i] = (double)x[i];",
        "",
        "source:2:11: error: 'double' is not supported in Metal\n  out[i] = (double)x[i];\n            ^",
    ),
    "literal of long double": (
        INDEX + "out[i] = x[i] * 0x1.8p1L;",
        "",
        "source:2:17: error: 'long double' is not supported in Metal\n  out[i] = x[i] * 0x1.8p1L;\n                  ^",
    ),
    "double of the header": (
        "out[0] = 1;",
        "typedef double real;\n",
        "header:1:9: error: 'double' is not supported in Metal\n  typedef double real;\n          ^",
    ),
    "several": (
        "out[0] = a1;\nout[1] = a2;\nout[2] = a3;",
        "",
        "source:1:10: error: use of undeclared identifier 'a1'\n  out[0] = a1;\n           ^\n2 more errors.",
    ),
    "beyond letters of one byte": (
        "/* größer */ out[0] = y;",
        "",
        "source:1:25: error: use of undeclared identifier 'y'\n  /* größer */ out[0] = y;\n                        ^",
    ),
    "in a line that a carriage return ends": (
        "out[0] = 1;\r\nout[1] = y;\r\n",
        "",
        "source:2:10: error: use of undeclared identifier 'y'\n  out[1] = y;\n           ^",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_body_that_does_not_compile(what):
    source, header, message = BROKEN[what]
    error = compile_error(source, header)
    assert str(error) == f"[metal_kernel] `k` does not compile.\n{message}"

    # The first diagnostic is the error that the message shows; it points into the caller's text.
    first = error.diagnostics[0]
    place, _, rest = message.partition(": error: ")
    assert f"{first.text}:{first.line}:{first.column}" == place
    assert first.severity == "error"
    assert first.message == rest.partition("\n")[0]
    text = {"source": source, "header": header}[first.text]
    assert first.source_line == text.splitlines()[first.line - 1]


def test_what_a_compile_error_has():
    error = compile_error(
        INDEX + "out[i] = half_of(x[i]);\nout[i] = y;", "template <typename T>\nT half_of(T a) { return a.y; }"
    )
    # Templates are read again where they are used, after everything else.
    assert error.diagnostics == [
        kiln.Diagnostic(
            severity="error",
            message="use of undeclared identifier 'y'",
            text="source",
            line=3,
            column=10,
            source_line="out[i] = y;",
        ),
        kiln.Diagnostic(
            severity="error",
            message="member reference base type 'float' is not a structure or union",
            text="header",
            line=2,
            column=26,
            source_line="T half_of(T a) { return a.y; }",
        ),
        kiln.Diagnostic(
            severity="note",
            message="in instantiation of function template specialization 'half_of<float>' requested here",
            text="source",
            line=2,
            column=10,
            source_line="out[i] = half_of(x[i]);",
        ),
    ]
    assert error.generated_source.startswith("template <typename T>\nT half_of(T a) { return a.y; }\n[[kernel]] void ")
    # The log is the compiler's own, by lines of the generated text.
    line = error.generated_source.splitlines().index("out[i] = y;") + 1
    assert f"kernel.metal:{line}:10: error: use of undeclared identifier 'y'" in error.log


def test_a_compile_error_survives_pickling():
    error = compile_error("out[0] = y;")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.diagnostics) == (str(error), error.diagnostics)
    assert (copy.generated_source, copy.log) == (error.generated_source, error.log)


def test_an_error_that_depends_on_the_template_arguments():
    # It shows where Kiln asks for the function; of that, the caller need not know.
    kernel = make("out[0] = T(1).y;", name="my kernel")
    with pytest.raises(kiln.CompileError) as caught:
        call(kernel, template=[("T", "float16")])
    assert str(caught.value) == (
        "[metal_kernel] `my kernel` does not compile.\n"
        "source:1:14: error: member reference base type 'half' is not a structure or union\n"
        "  out[0] = T(1).y;\n               ^"
    )
    assert len(caught.value.diagnostics) == 1
    assert "in instantiation of function template specialization" in caught.value.log


def test_compiling_raises_what_a_call_would():
    kernel = make("out[0] = y;")
    message = "[metal_kernel] `k` does not compile.\nsource:1:10: error: use of undeclared identifier 'y'\n"
    assert str(raised(kiln.CompileError, call, kernel, "compile")).startswith(message)
    # The text is there, compiled or not.
    assert "out[0] = y;" in call(kernel, "source_for")


def test_with_mlx_arrays_a_compile_error_comes_where_the_result_is_evaluated():
    kernel = kiln.mlx.metal_kernel("k", ["x"], ["out"], "out[0] = y;")
    (out,) = call(kernel, inputs=[mx.array(EIGHT)])
    error = raised(kiln.CompileError, mx.eval, out)
    assert error.diagnostics[0].message == "use of undeclared identifier 'y'"
    assert "out[0] = y;" in error.generated_source
    # Other arrays evaluate as before.
    (out,) = call(kiln.mlx.metal_kernel("k", ["x"], ["out"], INDEX + "out[i] = x[i];"), inputs=[mx.array(EIGHT)])
    assert mx.array_equal(out, mx.array(EIGHT)).item()


# ---- 7.3: what is valid but not supported

UNSUPPORTED = {
    "recursion": (
        "out[0] = f(3);",
        "// one line\nfloat f(int n) {\n  return n == 0 ? 1 : n * f(n - 1);\n}\n",
        "header:2:7: error: 'f': recursion is not supported\n  float f(int n) {\n        ^",
    ),
    "recursion through another function": (
        "out[0] = f(3);",
        "float g(int n);\nfloat f(int n) { return n == 0 ? 1 : g(n); }\nfloat g(int n) { return f(n - 1); }",
        "header:2:7: error: 'f': recursion is not supported\n  float f(int n) { return n == 0 ? 1 : g(n); }\n        ^",
    ),
    "recursion of a template": (
        "out[0] = f(3);",
        "template <typename T> T f(T n) { return n == 0 ? 1 : n * f(n - 1); }",
        "header:1:25: error: 'f': recursion is not supported\n"
        "  template <typename T> T f(T n) { return n == 0 ? 1 : n * f(n - 1); }\n                          ^",
    ),
    "recursion of a member": (
        "out[0] = S().f(3);",
        "struct S {\n  float f(int n) { return n == 0 ? 1 : f(n - 1); }\n};\n",
        "header:2:9: error: 'f': recursion is not supported\n"
        "    float f(int n) { return n == 0 ? 1 : f(n - 1); }\n          ^",
    ),
    "new": (
        INDEX + "thread float* p = new float(3);",
        "",
        "source:2:19: error: 'new': a kernel cannot allocate memory\n"
        "  thread float* p = new float(3);\n                    ^",
    ),
    "delete": (
        "delete out;",
        "",
        "source:1:1: error: 'delete': a kernel cannot allocate memory\n  delete out;\n  ^",
    ),
    "throw": (
        INDEX + "if (i > 2) throw 3;",
        "",
        "source:2:12: error: 'throw': exceptions are not supported\n  if (i > 2) throw 3;\n             ^",
    ),
    "try": (
        "try { out[0] = 1; } catch (...) {}",
        "",
        "source:1:1: error: 'try': exceptions are not supported\n  try { out[0] = 1; } catch (...) {}\n  ^",
    ),
    "goto": (
        INDEX + "goto end;\nend: out[i] = 1;",
        "",
        "source:2:1: error: 'goto': jumps to labels are not supported\n  goto end;\n  ^",
    ),
    "virtual": (
        "out[0] = A().f();",
        "struct A {\n  virtual float f() { return 1; }\n};\n",
        "header:2:3: error: 'virtual': virtual functions are not supported\n    virtual float f() { return 1; }\n    ^",
    ),
    "dynamic_cast": (
        "A a;\nout[0] = dynamic_cast<thread A*>(&a) != nullptr;",
        "struct A {};\n",
        "source:2:10: error: 'dynamic_cast': types are not known when a kernel runs\n"
        "  out[0] = dynamic_cast<thread A*>(&a) != nullptr;\n           ^",
    ),
    "typeid": (
        "out[0] = typeid(float) == typeid(int);",
        "",
        "source:1:10: error: 'typeid': types are not known when a kernel runs\n"
        "  out[0] = typeid(float) == typeid(int);\n           ^",
    ),
    "asm": (
        'asm("nop");',
        "",
        "source:1:1: error: 'asm': inline assembly is not supported\n  asm(\"nop\");\n  ^",
    ),
    "floats of 128 bits": (
        "__float128 v = 1;",
        "",
        "source:1:1: error: '__float128': floats of 128 bits are not supported\n  __float128 v = 1;\n  ^",
    ),
    "integers of 128 bits": (
        "__int128 v = 1;",
        "",
        "source:1:1: error: '__int128': integers of 128 bits are not supported\n  __int128 v = 1;\n  ^",
    ),
    "thread_local": (
        "thread_local int a;",
        "",
        "source:1:1: error: 'thread_local': static variables of a thread are not supported\n  thread_local int a;\n  ^",
    ),
    "static variable": (
        "static int calls = 0;\nout[0] = ++calls;",
        "",
        "source:1:12: error: 'calls': a static variable must be constant or in threadgroup memory\n"
        "  static int calls = 0;\n             ^",
    ),
    "variable of the header": (
        "out[0] = ++calls;",
        "int calls = 0;\n",
        "header:1:5: error: 'calls': a static variable must be constant or in threadgroup memory\n"
        "  int calls = 0;\n      ^",
    ),
    "texture": (
        "out[0] = 1;",
        "float4 f(texture2d<float, access::read> t) { return t.read(uint2(0)); }\n",
        "header:1:10: error: 'texture2d': textures are not supported\n"
        "  float4 f(texture2d<float, access::read> t) { return t.read(uint2(0)); }\n           ^",
    ),
    "depth texture": (
        "out[0] = 1;",
        "void f(depth2d<float> t);\n",
        "header:1:8: error: 'depth2d': textures are not supported\n  void f(depth2d<float> t);\n         ^",
    ),
    "sampler": (
        "constexpr sampler s(filter::linear);",
        "",
        "source:1:11: error: 'sampler': samplers are not supported\n"
        "  constexpr sampler s(filter::linear);\n            ^",
    ),
    "function constant": (
        "out[0] = fast_path ? 1 : 2;",
        "constant bool fast_path [[function_constant(0)]];\n",
        "header:1:27: error: 'function_constant': function constants are not supported\n"
        "  constant bool fast_path [[function_constant(0)]];\n                            ^",
    ),
    "ray tracing": (
        "raytracing::ray r;",
        "",
        "source:1:1: error: 'raytracing': ray tracing is not supported\n  raytracing::ray r;\n  ^",
    ),
    "ray tracing in scope": (
        "out[0] = 1;",
        "using namespace raytracing;\n",
        "header:1:17: error: 'raytracing': ray tracing is not supported\n"
        "  using namespace raytracing;\n                  ^",
    ),
    "tensor operations": (
        "out[0] = 1;",
        "#include <metal_stdlib>\n#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n",
        "header:2:1: error: '#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>': this header is not "
        "supported\n  #include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n  ^",
    ),
    "namespace of tensor operations": (
        "mpp::tensor_ops::matmul2d<d> op;",
        "",
        "source:1:1: error: 'mpp': Metal Performance Primitives are not supported\n"
        "  mpp::tensor_ops::matmul2d<d> op;\n  ^",
    ),
    "steel header": (
        "out[0] = 1;",
        '#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"\n',
        "header:1:1: error: '#include <mlx/backend/metal/kernels/steel/gemm/gemm.h>': this header is not supported\n"
        '  #include "mlx/backend/metal/kernels/steel/gemm/gemm.h"\n  ^',
    ),
    "overloads by address space that differ": (
        "out[0] = f(x);",
        "float f(const device float* p) { return p[0]; }\nfloat f(constant float* p) { return p[0] + 1; }\n",
        "header:2:1: error: overloads of 'f' that differ in the address space and in what they do are not supported\n"
        "  float f(constant float* p) { return p[0] + 1; }\n  ^",
    ),
    "overloads of a template by address space that differ": (
        "out[0] = 1;",
        "template <typename T> T f(device T* p) { return p[0]; }\n"
        "template <typename T> T f(threadgroup T* p) { return p[1]; }\n",
        "header:2:1: error: overloads of 'f' that differ in the address space and in what they do are not supported\n"
        "  template <typename T> T f(threadgroup T* p) { return p[1]; }\n  ^",
    ),
    "call through a pointer to a function": (
        "float (*p)(float) = f;\nif (x[0] > 1) p = g;\nout[0] = p(1);",
        "float f(float a) { return a; }\nfloat g(float a) { return a + 1; }\n",
        "source:3:10: error: calls through pointers to functions are not supported\n  out[0] = p(1);\n           ^",
    ),
    "in a macro": (
        "out[0] = 1;\nJUMP",
        "#define JUMP goto end;\n",
        "source:2:1: error: 'goto': jumps to labels are not supported\n  JUMP\n  ^",
    ),
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_a_construct_that_is_not_supported(what):
    source, header, message = UNSUPPORTED[what]
    kernel = make(source, header)
    expected = f"[metal_kernel] `k` uses what is not supported.\n{message}"
    for method in ("__call__", "compile"):
        error = raised(kiln.UnsupportedError, call, kernel, method)
        assert isinstance(error, NotImplementedError)
        assert str(error) == expected


def test_with_mlx_arrays_an_unsupported_construct_is_told_where_the_result_is_evaluated():
    kernel = kiln.mlx.metal_kernel("k", ["x"], ["out"], "goto end;\nend: out[0] = 1;")
    (out,) = call(kernel, inputs=[mx.array(EIGHT)])
    assert "'goto'" in str(raised(kiln.UnsupportedError, mx.eval, out))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint16", "int64", "complex64"])
def test_atomic_outputs_of_dtypes_that_metal_has_no_atomic_of(dtype):
    metal = {"float16": "float16_t", "bfloat16": "bfloat16_t", "complex64": "complex64_t"}.get(dtype, f"{dtype}_t")
    message = f"[metal_kernel] Metal has no atomic<{metal}>, which `atomic_outputs` needs for output `out`."
    kernel = make(atomic_outputs=True)
    for method in ("__call__", "source_for", "compile"):
        assert str(raised(kiln.UnsupportedError, call, kernel, method, output_dtypes=[dtype])) == message


def test_more_threadgroup_memory_than_there_is():
    kernel = make("threadgroup float big[1 << 24];\nbig[0] = 1; out[0] = big[0];")
    message = str(raised(kiln.UnsupportedError, call, kernel))
    assert message == (
        f"[metal_kernel] `k` needs {4 << 24} bytes of threadgroup memory, and the cpu target has {1 << 20}."
    )


# Names that only look like those above are the body's.
@pytest.mark.parametrize(
    "source",
    [
        "int depth = 3; if (depth < 4) out[0] = 1;",
        "int texture_size = 3; if (texture_size < 4) out[0] = 1;",
        "int depth_buffer = 1, sampler = 0; if (depth_buffer < 2 && sampler < 2) out[0] = 1;",
        "uint packed_weights = 1; out[0] = packed_weights + 0;",
        "float packed_2 = 1; out[0] = packed_2;",
        "struct P { float texture2d; float mpp; }; P p = {1, 2}; if (p.texture2d < p.mpp) out[0] = 1;",
        "struct A { A() = default; A(const thread A&) = delete; float f = 1; }; A a; out[0] = a.f;",
        "float raytracing = 1;\nfloat mpp = raytracing;\nout[0] = mpp;",
        "// goto new delete throw double\nout[0] = 1;",
        "#if 0\ngoto new delete throw double\n#endif\nout[0] = 1;",
    ],
)
def test_names_that_only_look_unsupported(source):
    (out,) = call(make(source), grid=(1, 1, 1), output_shapes=[(1,)])
    np.testing.assert_array_equal(out, [1])


# Recursion at compile time is none when the kernel runs, and a static variable that is constant is none that changes.
@pytest.mark.parametrize(
    ("source", "header", "expected"),
    [
        (
            "out[0] = sum<4>();",
            "template <int N> int sum() { if constexpr (N == 0) return 0; else return N + sum<N - 1>(); }",
            10,
        ),
        (
            "out[0] = sum<4>();",
            "template <int N> int sum() { return N + sum<N - 1>(); }\ntemplate <> int sum<0>() { return 0; }",
            10,
        ),
        # Which function it is, is known when the kernel is compiled.
        ("float (*p)(float) = f;\nout[0] = p(1);", "float f(float a) { return a + 1; }", 2),
        (
            "out[0] = apply(f, 1);",
            "float f(float a) { return a + 1; }\n"
            "template <typename F> float apply(F function, float a) { return function(a); }",
            2,
        ),
        ("static constexpr int table[] = {1, 2, 3};\nout[0] = table[2];", "", 3),
        ("static const constant float table[] = {1, 2, 3};\nout[0] = table[2];", "", 3),
        ("out[0] = table[2];", "constant float table[3] = {1, 2, 3};", 3),
        # The same function for several address spaces.
        (
            "out[0] = f(x + 3);",
            "float f(const device float* p) { return p[0]; }\nfloat f(const constant float* p) { return p[0]; }\n"
            "float f(const threadgroup float* p) { return p[0]; }\n",
            3,
        ),
        (
            "out[0] = f(x + 3);",
            "float f(device float const* p) { return p[0]; }\nfloat f(constant float* p) { return p[0]; }\n",
            3,
        ),
    ],
)
def test_what_resembles_an_unsupported_construct(source, header, expected):
    (out,) = call(make(source, header), grid=(1, 1, 1), output_shapes=[(1,)])
    np.testing.assert_array_equal(out, [expected])


# ---- CUDA


def test_a_cuda_body_that_the_cpu_cannot_run():
    message = (
        "[cuda_kernel] `k` uses what is not supported.\n"
        "source:1:1: error: 'asm': inline PTX is not supported on the CPU\n"
        '  asm("exit;");\n'
        "  ^"
    )
    for module, array in ((kiln, EIGHT), (kiln.mlx, mx.array(EIGHT))):
        kernel = module.cuda_kernel("k", ["x"], ["out"], 'asm("exit;");')
        error = raised(kiln.UnsupportedError, lambda k, a: mx.eval(call(k, inputs=[a])), kernel, array)
        assert str(error) == message
        assert str(raised(kiln.UnsupportedError, call, kernel, "compile", inputs=[array])) == message


NUMBERS = {
    "compared": (
        "out[0] = n < 3;",
        "source:1:12: error: comparison between pointer and integer ('const int32_t *' (aka 'const int *') and 'int'); "
        "`n` has no dimensions and is a pointer in a CUDA body: write n[0]\n  out[0] = n < 3;\n             ^",
    ),
    "multiplied": (
        "out[0] = x[0] * n;",
        "source:1:15: error: invalid operands to binary expression ('const float' and 'const int32_t *' (aka 'const int "
        "*')); `n` has no dimensions and is a pointer in a CUDA body: write n[0]\n  out[0] = x[0] * n;\n                ^",
    ),
    "assigned": (
        "int m = n;",
        "source:1:5: error: cannot initialize a variable of type 'int' with an lvalue of type 'const int32_t *' (aka "
        "'const int *'); `n` has no dimensions and is a pointer in a CUDA body: write n[0]\n  int m = n;\n      ^",
    ),
    "its shape": (
        "out[0] = n_shape[0];",
        "source:1:10: error: use of undeclared identifier 'n_shape'; only inputs with dimensions have a shape, strides "
        "and ndim\n  out[0] = n_shape[0];\n           ^",
    ),
    "a misspelt shape": (
        "out[0] = x_shap[0];",
        "source:1:10: error: use of undeclared identifier 'x_shap'; did you mean 'x_shape'?\n"
        "  out[0] = x_shap[0];\n           ^",
    ),
    # An array is a pointer as well, and the program may mean it.
    "an array": (
        "out[0] = x < 3;",
        "source:1:12: error: comparison between pointer and integer ('const float *' and 'int')\n"
        "  out[0] = x < 3;\n             ^",
    ),
}


@pytest.mark.parametrize(("source", "message"), NUMBERS.values(), ids=NUMBERS.keys())
def test_an_input_without_dimensions_is_a_pointer_in_cuda(source, message):
    kernel = kiln.cuda_kernel("k", ["x", "n"], ["out"], source)
    error = raised(kiln.CompileError, call, kernel, inputs=[EIGHT, 3])
    assert str(error) == f"[cuda_kernel] `k` does not compile.\n{message}"


@pytest.mark.parametrize("source", ["out[0] += 1;", "out[0] = 1;", "float v = out[0] + 1;"])
def test_outputs_of_atomics_say_what_they_take(source):
    kernel = kiln.metal_kernel("k", ["x"], ["out"], source, atomic_outputs=True)
    (error, *_) = raised(kiln.CompileError, call, kernel).diagnostics
    assert error.message.endswith(
        "; `out` holds atomics, since `atomic_outputs` is set: use atomic_fetch_add_explicit or atomic_store_explicit"
    ), error.message


def test_a_wrong_call_with_outputs_of_atomics_has_no_other_advice():
    body = "atomic_fetch_add_explicit(&out[0], x, memory_order_relaxed);"
    kernel = kiln.metal_kernel("k", ["x"], ["out"], body, atomic_outputs=True)
    (error, *_) = raised(kiln.CompileError, call, kernel).diagnostics
    assert error.message == "no matching function for call to 'atomic_fetch_add_explicit'"


def test_a_kernel_returns_no_value():
    for make in (kiln.metal_kernel, kiln.cuda_kernel):
        (error, *_) = raised(kiln.CompileError, call, make("k", ["x"], ["out"], "return 3;")).diagnostics
        assert error.message == "the kernel should not return a value"


def test_an_input_without_dimensions_is_a_number_in_metal():
    kernel = kiln.metal_kernel("k", ["x", "n"], ["out"], "out[0] = n[0];")
    assert str(raised(kiln.CompileError, call, kernel, inputs=[EIGHT, 3])) == (
        "[metal_kernel] `k` does not compile.\n"
        "source:1:11: error: subscripted value is not an array, pointer, or vector; `n` has no dimensions and is a number "
        "in a Metal body: write n\n  out[0] = n[0];\n            ^"
    )


@pytest.mark.parametrize(
    ("source", "array"),
    [
        ("out = x * 2;", "x"),
        ("out[0] = 2 + x / 2;", "x"),
        ("out[0] = out;", "out"),
        ("out = x[0];", "out"),
        ("float v = x; out[0] = v;", "x"),
        ("out[0] = exp(x);", "x"),
        ("out[0] = max(0.0f, x );", "x"),
    ],
)
def test_an_array_in_the_place_of_an_element(source, array):
    for make in (kiln.metal_kernel, kiln.cuda_kernel):
        (error, *_) = raised(kiln.CompileError, call, make("k", ["x"], ["out"], source)).diagnostics
        assert error.message.endswith(f"; `{array}` is a pointer to the elements: write {array}[i] for one")


@pytest.mark.parametrize(
    "source", ["thread float *p = x;", "thread float *p; p = 3;", "x = x[0];", "out[0] = simd_sum(&x);"]
)
def test_a_pointer_that_is_meant(source):
    (error, *_) = raised(kiln.CompileError, call, kiln.metal_kernel("k", ["x"], ["out"], source)).diagnostics
    assert "is a pointer to the elements" not in error.message


def test_no_note_about_text_that_the_user_has_not_written():
    """A template argument is declared after the header."""
    kernel = kiln.metal_kernel("k", ["x"], ["out"], "out[0] = WIDHT;", header="// a header\n")
    assert str(raised(kiln.CompileError, call, kernel, template=[("WIDTH", 3)])) == (
        "[metal_kernel] `k` does not compile.\n"
        "source:1:10: error: use of undeclared identifier 'WIDHT'; did you mean 'WIDTH'?\n  out[0] = WIDHT;\n           ^"
    )


def test_a_wrong_call_of_a_cuda_kernel():
    kernel = kiln.cuda_kernel("k", ["x"], ["out"], "out[0] = x_shape[0];")
    assert str(raised(ValueError, call, kernel, inputs=[])) == (
        "[cuda_kernel] Expected `inputs` to have size 1 but got size 0."
    )
    assert str(raised(ValueError, call, kernel, "source_for", inputs=[np.zeros((1,) * 11, np.float32)])) == (
        "[cuda_kernel] Input `x` has 11 dimensions, but `x_shape` has room for 10."
    )


CUDA_TEXT = """\
#define ONE 1
namespace mlx::core::cu {

__global__ void custom_kernel_k_float_3_1___half_floats_doublec_float_complex64_t(
    const __half* x,
    const __grid_constant__ Shape x_shape,
    const __grid_constant__ Strides x_strides,
    const __grid_constant__ int x_ndim,
    const float* s,
    const double* d,
    float* out,
    complex64_t* z) {
  using T = float;
  constexpr int N = 3;
  constexpr bool F = true;
auto i = cooperative_groups::this_grid().thread_rank();
out[i] = x[i] + x_shape[0] + x_strides[0] + x_ndim + s[0];
}

}  // namespace mlx::core::cu
"""


def test_the_text_of_a_cuda_kernel():
    body = inspect.cleandoc("""
        auto i = cooperative_groups::this_grid().thread_rank();
        out[i] = x[i] + x_shape[0] + x_strides[0] + x_ndim + s[0];
    """)
    kernel = kiln.cuda_kernel("k", ["x", "s", "d"], ["out", "z"], body, header="#define ONE 1")
    text = call(
        kernel,
        "source_for",
        inputs=[np.zeros((2, 5), np.float16), 2.5, np.zeros(3)],
        output_shapes=[(8,), (1,)],
        output_dtypes=["float32", "complex64"],
        template=[("T", "float32"), ("N", 3), ("F", True)],
    )
    assert text == CUDA_TEXT
