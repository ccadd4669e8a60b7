"""docs/language.md 7.1: lists and dictionaries that are wrong, or change while they are read."""

from __future__ import annotations

import collections
import types
from typing import Any

import mlx.core as mx
import numpy as np
from interfaces import EIGHT, raised
from test_wrong_calls import SHAPES, check, odd, those

BY_LIST = "this kernel was made with `input_names`, so its calls take lists."
SIZE = "Expected `{}` to have size 1 but got size {}."
LISTS = [
    ("inputs", ..., TypeError, "The call is missing the argument `inputs`."),
    *(
        (name, value, TypeError, f"Expected `{name}` to be {what} but got {kind}.")
        for name, what in (
            ("inputs", "a list"),
            ("output_shapes", "a list of shapes"),
            ("output_dtypes", "a list of dtypes"),
        )
        for value, kind in (
            (None, "NoneType"),
            (3, "int"),
            ("x", "str"),
            (b"x", "bytes"),
            ({EIGHT.tobytes()}, "set"),
            (iter([EIGHT]), "list_iterator"),
            ((x for x in [EIGHT]), "generator"),
            (odd("__iter__", __getitem__=None), "interfaces.Odd"),
            (odd("__getitem__", __len__=lambda self: 1), "interfaces.Odd"),
        )
    ),
    ("inputs", {"x": EIGHT}, TypeError, f"Expected `inputs` to be a list but got a dict: {BY_LIST}"),
    (
        "inputs",
        types.MappingProxyType({"x": EIGHT}),
        TypeError,
        f"Expected `inputs` to be a list but got a dict: {BY_LIST}",
    ),
    (
        "inputs",
        collections.UserDict({"x": EIGHT}),
        TypeError,
        f"Expected `inputs` to be a list but got a dict: {BY_LIST}",
    ),
    ("output_shapes", {"out": (8,)}, TypeError, "Expected `output_shapes` to be a list of shapes but got dict."),
    ("output_dtypes", {"out": "int32"}, TypeError, "Expected `output_dtypes` to be a list of dtypes but got dict."),
    ("template", {"T": 1}, TypeError, f"Expected `template` to be a list of pairs but got a dict: {BY_LIST}"),
    ("template", {}, TypeError, f"Expected `template` to be a list of pairs but got a dict: {BY_LIST}"),
    ("inputs", [], ValueError, SIZE.format("inputs", 0)),
    ("inputs", [1, 2], ValueError, SIZE.format("inputs", 2)),
    *(
        ("inputs", array, TypeError, f"Expected `inputs` to be a list but got {kind}: write [x] for one array x.")
        for array, kind in (
            (EIGHT, "numpy.ndarray"),
            (np.array(1.0), "numpy.ndarray"),
            (EIGHT.reshape(2, 4), "numpy.ndarray"),
            (np.zeros(0), "numpy.ndarray"),
            (mx.array(EIGHT), "mlx.core.array"),
            (mx.array(EIGHT).reshape(4, 2), "mlx.core.array"),
        )
    ),
    ("output_shapes", [], ValueError, SIZE.format("output_shapes", 0)),
    ("output_shapes", [(8,), (8,)], ValueError, SIZE.format("output_shapes", 2)),
    ("output_shapes", (8,), TypeError, SHAPES + "one shape: write [(8,)]."),
    ("output_dtypes", [], ValueError, SIZE.format("output_dtypes", 0)),
    ("output_dtypes", ["int32"] * 2, ValueError, SIZE.format("output_dtypes", 2)),
]


@those("list", "cuda")
def test_a_wrong_list(interface):
    for name, value, error, message in LISTS:
        check(interface, {name: value}, error, message)


BY_DICT = "this kernel was made without `input_names`, so its calls take dicts."
SAME_KEYS = "Expected `output_dtypes` to have the keys of `output_shapes`, but "


class Items(dict):
    def __init__(self, items):
        super().__init__()
        self._items = items

    def items(self):
        if isinstance(self._items, Exception):
            raise self._items
        return self._items


DICTIONARIES: list[tuple[Any, ...]] = [
    *(
        (name, value, TypeError, f"Expected `{name}` to be a dict but got {kind}: {BY_DICT}")
        for name in ("inputs", "output_shapes", "output_dtypes")
        for value, kind in (
            (None, "NoneType"),
            (3, "int"),
            ("x", "str"),
            ([("x", EIGHT)], "list"),
            ((), "tuple"),
            (EIGHT, "numpy.ndarray"),
            (iter({}), "dict_keyiterator"),
            ({}.items(), "dict_items"),
        )
    ),
    *(
        (name, value, TypeError, f"Expected `{name}` to be a dict but got test_wrong_containers.Items.")
        for name in ("inputs", "output_shapes", "output_dtypes", "template")
        for value in (Items([1]), Items([("x",)]), Items(["xy"]), Items(3), Items(TypeError("it says")))
    ),
    *(
        (name, {key: value}, TypeError, f"Expected the keys of `{name}` to be strings but got {kind}.")
        for name, value in (("inputs", EIGHT), ("output_shapes", (8,)), ("output_dtypes", "int32"), ("template", 1))
        for key, kind in ((3, "int"), (None, "NoneType"), (b"x", "bytes"), (("x",), "tuple"))
    ),
    *(
        (name, {key: value}, ValueError, f"Expected the names in `{name}` to be identifiers but got {key!r}.")
        for name, value in (("inputs", EIGHT), ("output_shapes", (8,)), ("output_dtypes", "int32"))
        for key in ("\0", "a\0b", "\ud800", "a\ud800", "€", "a\u2028b")
    ),
    ("inputs", {"": EIGHT}, ValueError, "Input name `` is not an identifier."),
    ("inputs", {"1x": EIGHT}, ValueError, "Input name `1x` is not an identifier."),
    ("inputs", {"while": EIGHT}, ValueError, "Input name `while` is a keyword of the Metal dialect."),
    ("inputs", {"out": EIGHT}, ValueError, "Name `out` is used twice."),
    ("output_dtypes", {}, ValueError, SAME_KEYS + "`out` is missing."),
    ("output_dtypes", {"Out": "int32"}, ValueError, SAME_KEYS + "got `Out`."),
    ("output_dtypes", {"out": "int32", "more": "int32"}, ValueError, SAME_KEYS + "got `more`."),
]


@those("dictionary")
def test_a_wrong_dictionary(interface):
    for name, value, error, message in DICTIONARIES:
        check(interface, {name: value}, error, message)
    outputs = {"output_shapes": {"o p": (8,)}, "output_dtypes": {"o p": "int32"}}
    check(interface, outputs, ValueError, "Output name `o p` is not an identifier.")
    outputs = {"output_shapes": {"int": (8,)}, "output_dtypes": {"int": "int32"}}
    check(interface, outputs, ValueError, "Output name `int` is a keyword of the Metal dialect.")
    check(interface, {"output_shapes": {}, "output_dtypes": {}}, ValueError, "Must specify at least one output.")
    check(interface, {"inputs": ...}, TypeError, "The call is missing the argument `inputs`.")


@those("class")
def test_a_wrong_dictionary_of_the_class_generation(interface):
    for name, value, error, message in DICTIONARIES:
        if name in ("output_shapes", "output_dtypes"):
            check(interface, {name: value}, error, message)
    for name, message in (("in t", "Input name `in t` is not an identifier."), ("out", "Name `out` is used twice.")):
        check(interface, {"inputs": {name: interface.array(EIGHT)}}, ValueError, message)


@those("dictionary")
def test_dictionaries_that_change_while_they_are_read(interface):
    shapes: dict[str, Any] = {}
    dtypes = {"out": "float32", "more": "int32"}

    def index(self):
        shapes.clear()
        dtypes["another"] = "int32"
        return 8

    shapes |= {"out": (type("Clearing", (), {"__index__": index})(),), "more": (2,)}
    error = raised(interface, ValueError, interface.call, output_shapes=shapes, output_dtypes=dtypes)
    assert str(error) == f"{interface.prefix} {SAME_KEYS}got `another`."
    assert shapes == {}


# What stands in for a list or a dictionary.
@those("dictionary")
def test_mappings_that_are_no_dictionaries(interface):
    x, y = interface.array(EIGHT), interface.array(EIGHT * 10)
    ordered = collections.OrderedDict(y=y, x=x)
    ordered.move_to_end("y")
    for inputs in (types.MappingProxyType({"x": x, "y": y}), collections.UserDict(x=x, y=y), ordered):
        keywords = {"inputs": inputs, "output_shapes": types.MappingProxyType({"out": (8,)})}
        text = interface.call("source_for", made={"source": "out[0] = x[0] + y[0];"}, **keywords)
        assert text.index("float* x [[buffer(0)]]") < text.index("float* y [[buffer(1)]]")
        np.testing.assert_array_equal(interface.first(interface.call(**keywords)), EIGHT + 1)
