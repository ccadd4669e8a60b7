"""docs/language.md 7.1: each argument that a kernel is made with, wrong in each way, through every interface."""

from __future__ import annotations

from pathlib import Path

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from interfaces import EIGHT, INTERFACES, Interface, raised, raising

all_interfaces = pytest.mark.parametrize("interface", INTERFACES, ids=lambda interface: interface.label)
with_names = pytest.mark.parametrize(
    "interface", [i for i in INTERFACES if not i.by_name], ids=lambda interface: interface.label
)


def check(interface, arguments, error, message):
    assert str(raised(interface, error, interface.make, **arguments)) == f"{interface.prefix} {message}"


def odd(method, error, **others):
    return raising(method, error("it says"), **others)


class Text(str):
    """A str is one, whatever its class."""


TEXT = "Expected `{}` to be a string but got {}."
SOURCE = "Expected `{}` to be a string or a path but got {}."
BOOL = "Expected `{}` to be a bool but got {}."
SURROGATE = "Expected `{}` to be text but got the lone surrogate '\\ud800' at {}."


@all_interfaces
@pytest.mark.parametrize("argument", ["name", "source", "header"])
def test_what_is_no_text(interface, argument):
    for value, kind in (
        (None, "NoneType"),
        (3, "int"),
        (b"out[0] = 1;", "bytes"),
        (["out[0] = 1;"], "list"),
        (np.array("out[0] = 1;"), "numpy.ndarray"),
        (odd("__str__", ValueError), "interfaces.Odd"),
    ):
        # A second argument that is no string is none of the dictionary generation's.
        if not (interface.generation == "dictionary" and argument == "source"):
            expected = TEXT if argument == "name" else SOURCE
            check(interface, {argument: value}, TypeError, expected.format(argument, kind))
    for value, where in (("\ud800", 0), ("// größer \ud800", 10), (Text("a\ud800"), 1)):
        check(interface, {argument: value}, ValueError, SURROGATE.format(argument, where))


@all_interfaces
def test_text_may_be_a_class_of_the_callers(interface):
    made = {"name": Text("k"), "source": Text("out[0] = 1;"), "header": Text("// nothing")}
    assert "out[0] = 1;" in interface.call("source_for", made=made)
    assert type(interface.make(**made).name) is str


@all_interfaces
@pytest.mark.parametrize("argument", ["ensure_row_contiguous", "atomic_outputs"])
def test_what_is_no_bool(interface, argument):
    if (interface.generation, argument) == ("cuda", "atomic_outputs"):
        return
    for value, kind in (
        (None, "NoneType"),
        (0, "int"),
        ("yes", "str"),
        (1.0, "float"),
        (np.uint8(1), "numpy.uint8"),
        (np.ones(1, bool), "numpy.ndarray"),
        (mx.array(True), "mlx.core.array"),
        (odd("__bool__", ValueError), "interfaces.Odd"),
    ):
        check(interface, {argument: value}, TypeError, BOOL.format(argument, kind))
    # What NumPy's comparisons give is one.
    for value in (np.True_, EIGHT[0] == 0):
        text = interface.call("source_for", made={argument: value})
        assert ("device atomic<float>* out" in text) == (argument == "atomic_outputs")


LIST = "Expected `{}` to be a list of strings but got {}."
IDENTIFIERS = "Expected the names in `{}` to be identifiers but got {!r}."


class Inconstant(list):
    """Gives other items when it is asked again."""

    asked = 0

    def __iter__(self):
        self.asked += 1
        return iter(["y"] if self.asked == 1 else [3])


class Failing(list):
    def __iter__(self):
        raise RuntimeError("mine")


@with_names
@pytest.mark.parametrize("argument", ["input_names", "output_names"])
def test_what_are_no_names(interface, argument):
    kind = "Input" if argument == "input_names" else "Output"
    dialect = "CUDA" if interface.generation == "cuda" else "Metal"
    for value, what in (
        (3, "int"),
        (b"x", "bytes"),
        ({"x"}, "set"),
        ({"x": 1}, "dict"),
        ({"x": 1}.keys(), "dict_keys"),
        (iter(["x"]), "list_iterator"),
        ((name for name in ["x"]), "generator"),
        (np.array(["x"]), "numpy.ndarray"),
        ([None], "NoneType"),
        ([3], "int"),
        ([b"x"], "bytes"),
        ([["x"]], "list"),
    ):
        check(interface, {argument: value}, TypeError, LIST.format(argument, what))
    # A string or None as input_names of metal_kernel is a matter of the generations of the interface.
    if (argument, interface.generation) != ("input_names", "list"):
        check(interface, {argument: "x"}, TypeError, LIST.format(argument, "the string 'x': write ['x']"))
    for name in ("\0", "a\0b", "\ud800", "€", "a\u200b", "\N{COMBINING ACUTE ACCENT}a", "🐚"):
        check(interface, {argument: [name]}, ValueError, IDENTIFIERS.format(argument, name))
    for name in ("", " ", "a b", "1a", "a-b", "a\n", "a.b", "*a", "a//", "::a"):
        check(interface, {argument: [name]}, ValueError, f"{kind} name `{name}` is not an identifier.")
    keyword = "__shared__" if interface.generation == "cuda" else "threadgroup"
    for name in ("int", "while", "template", "bool", "xor", keyword):
        message = f"{kind} name `{name}` is a keyword of the {dialect} dialect."
        check(interface, {argument: [name]}, ValueError, message)
    check(interface, {argument: ["b", "a", "b"]}, ValueError, "Name `b` is used twice.")
    check(interface, {"input_names": ["c"], "output_names": ["c"]}, ValueError, "Name `c` is used twice.")
    check(interface, {"output_names": []}, ValueError, "Must specify at least one output.")
    assert interface.make(**{argument: Inconstant()}).name == "k"
    assert str(raised(interface, RuntimeError, interface.make, **{argument: Failing()})) == "mine"


@with_names
def test_names_that_are_right(interface):
    for name in ("größe", "日本", "_", "__", "x1", "float4", "metal", "thread_position_in_grid", "out_shape"):
        source = f"out[0] = {name}[0];"
        text = interface.call("source_for", made={"input_names": [name], "source": source})
        assert f"* {name}" in text
        if interface.generation == "list":
            made = {"input_names": (name,), "source": source}
            assert interface.first(interface.call(made=made, grid=(1, 1, 1)))[0] == 0


@pytest.mark.parametrize("interface", [i for i in INTERFACES if i.generation == "cuda"], ids=lambda i: i.label)
def test_what_is_no_size_of_shared_memory(interface):
    size = "Expected `shared_memory` to be at least 0 and below 2^63 but got {}."
    for value, kind in (
        (None, "NoneType"),
        ("64", "str"),
        (64.0, "float"),
        (np.float32(64), "numpy.float32"),
        ([64], "list"),
        (odd("__index__", TypeError), "interfaces.Odd"),
    ):
        check(interface, {"shared_memory": value}, TypeError, f"Expected `shared_memory` to be an int but got {kind}.")
    for value in (-1, -(2**63), 2**63, 2**64):
        check(interface, {"shared_memory": value}, ValueError, size.format(value))
    for value in (10**5000, -(10**5000)):
        check(interface, {"shared_memory": value}, ValueError, size.format("a number of 16610 bits"))
    own = RuntimeError("mine")
    assert raised(interface, RuntimeError, interface.make, shared_memory=raising("__index__", own)) is own
    for value in (0, 64, True, np.int64(64), 2**63 - 1):
        assert interface.make(shared_memory=value).name == "k"


MATH_MODE = "Expected math_mode to be 'safe', 'relaxed', or 'fast'."
BOUNDS = "Expected `compile_options[\"bounds\"]` to be 'on' or 'off' but got {}."
UNKNOWN = (
    "Unknown compile option `{}`. Those are `math_mode`, `bounds`, `specialize`, `include_dirs` and `writable_inputs`."
)
SPECIALIZE = BOOL.format('compile_options["specialize"]', "{}")
INCLUDE_DIRS = 'Expected `compile_options["include_dirs"]` to be a list of folders but got {}.'


class Equal:
    """What is equal to everything is none of it."""

    def __eq__(self, other):
        return True

    __hash__ = None  # type: ignore[assignment]


@all_interfaces
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("fast", ValueError, "Expected `compile_options` to be a dict."),
        (3, ValueError, "Expected `compile_options` to be a dict."),
        ([("math_mode", "fast")], ValueError, "Expected `compile_options` to be a dict."),
        ({"speed": 9}, ValueError, UNKNOWN.format("speed")),
        ({"Math_mode": "fast"}, ValueError, UNKNOWN.format("Math_mode")),
        ({"": 9}, ValueError, UNKNOWN.format("")),
        ({3: 9}, ValueError, UNKNOWN.format("3")),
        ({None: 9}, ValueError, UNKNOWN.format("None")),
        ({"math_mode": None}, ValueError, MATH_MODE),
        ({"math_mode": "quick"}, ValueError, MATH_MODE),
        ({"math_mode": "Safe"}, ValueError, MATH_MODE),
        ({"math_mode": b"safe"}, ValueError, MATH_MODE),
        ({"math_mode": ["safe"]}, ValueError, MATH_MODE),
        ({"math_mode": Equal()}, ValueError, MATH_MODE),
        ({"math_mode": np.array(["safe", "fast"])}, ValueError, MATH_MODE),
        ({"bounds": None}, ValueError, BOUNDS.format("NoneType")),
        ({"bounds": True}, ValueError, BOUNDS.format("True")),
        ({"bounds": "yes"}, ValueError, BOUNDS.format("'yes'")),
        ({"bounds": "\ud800" * 30}, ValueError, BOUNDS.format(("'" + "\\ud800" * 30)[:100])),
        ({"bounds": Equal()}, ValueError, BOUNDS.format("test_wrong_kernels.Equal")),
        ({"bounds": np.array(["on", "off"])}, ValueError, BOUNDS.format("numpy.ndarray")),
        ({"specialize": None}, TypeError, SPECIALIZE.format("NoneType")),
        ({"specialize": "yes"}, TypeError, SPECIALIZE.format("str")),
        ({"specialize": 1}, TypeError, SPECIALIZE.format("int")),
        ({"specialize": np.ones(2)}, TypeError, SPECIALIZE.format("numpy.ndarray")),
        ({"include_dirs": None}, TypeError, INCLUDE_DIRS.format("NoneType")),
        ({"include_dirs": "here"}, TypeError, INCLUDE_DIRS.format("str")),
        ({"include_dirs": [3]}, TypeError, INCLUDE_DIRS.format("int")),
        (
            {"include_dirs": ["a\0b"]},
            ValueError,
            "Expected `compile_options[\"include_dirs\"]` to be a path in UTF-8 but got 'a\\x00b'.",
        ),
        ({"math_mode": "fast", "speed": 9}, ValueError, UNKNOWN.format("speed")),
    ],
)
def test_a_wrong_compile_option(interface, options, error, message):
    check(interface, {"compile_options": options}, error, message)


@all_interfaces
def test_compile_options_that_are_right(interface):
    for options in (
        None,
        {},
        {"math_mode": "safe"},
        {"math_mode": Text("relaxed"), "bounds": "off", "specialize": False},
        {"specialize": np.True_, "include_dirs": ()},
    ):
        assert interface.make(compile_options=options).name == "k"


# ---- What Python itself says

FUNCTIONS = {
    "list": "metal_kernel",
    "dictionary": "metal_kernel",
    "class": "MetalKernel.__init__",
    "cuda": "cuda_kernel",
}


@all_interfaces
def test_arguments_that_there_are_not(interface):
    function = FUNCTIONS[interface.generation]
    # The first three are names of Kiln's own functions.
    for name in ("library", "kind", "self", "precision", "größe"):
        if (interface.generation, name) == ("class", "self"):
            continue
        error = raised(interface, TypeError, interface.make, **{name: 1})
        assert str(error) == f"{function}() got an unexpected keyword argument '{name}'"


@all_interfaces
def test_arguments_that_are_missing_or_too_many(interface):
    function = FUNCTIONS[interface.generation]
    make = interface.function
    error = raised(interface, TypeError, make, "k", name="k", source="", input_names=["x"], output_names=["out"])
    if interface.generation != "class":
        assert str(error) == f"{function}() got multiple values for argument 'name'"
    assert str(raised(interface, TypeError, make, *["k"] * 20)).startswith(f"{function}() takes from ")
    missing = {
        "list": "2 required positional arguments: 'name' and 'source'",
        "dictionary": "2 required positional arguments: 'name' and 'source'",
        "class": "6 required positional arguments: 'name', 'source', 'grid', 'threadgroup', 'output_shapes', and "
        "'output_dtypes'",
        "cuda": "4 required positional arguments: 'name', 'input_names', 'output_names', and 'source'",
    }
    assert str(raised(interface, TypeError, make)) == f"{function}() missing {missing[interface.generation]}"
    error = raised(interface, TypeError, interface.make, source=...)
    assert str(error) == f"{function}() missing 1 required positional argument: 'source'"


# ---- Generations

NEEDS = "`{}` needs `{}`: a kernel has both, or takes all names from its calls."
IN_THEIR_PLACE = (
    "Got {}, and a source in their place as the second argument: a kernel with names takes them before its source, one "
    "without takes all names from its calls."
)


@pytest.mark.parametrize("module", [kiln, kiln.mlx, mx.fast], ids=lambda module: module.__name__)
@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((), {"input_names": ["a"], "source": ""}, NEEDS.format("input_names", "output_names")),
        ((["a"],), {"source": ""}, NEEDS.format("input_names", "output_names")),
        ((3,), {"source": ""}, NEEDS.format("input_names", "output_names")),
        (("body",), {"output_names": ["b"]}, NEEDS.format("output_names", "input_names")),
        ((), {"source": "", "output_names": ["b"]}, NEEDS.format("output_names", "input_names")),
        (("body",), {"input_names": ["a"], "output_names": ["b"]}, IN_THEIR_PLACE.format("`input_names`")),
        (("body", ["a"]), {}, IN_THEIR_PLACE.format("a list of names")),
        (("body", ("a",), ["out"]), {}, IN_THEIR_PLACE.format("a list of names")),
        (("body", 3), {}, BOOL.format("ensure_row_contiguous", "int")),
        ((["a"], "out", ""), {}, LIST.format("output_names", "the string 'out': write ['out']")),
        # A string where a list of names belongs, which could also be a source.
        *(
            (arguments, keywords, LIST.format("input_names", "the string 'x': write ['x']"))
            for arguments, keywords in (
                (("x", ["out"], "out[0] = x;"), {}),
                (("x", ("out",)), {"source": "out[0] = x;"}),
                (("x", "out", "out[0] = x;"), {}),
                (("x", "out"), {"source": "out[0] = x;"}),
                (("x", ["out"], Path("k.metal")), {}),
                ((), {"input_names": "x", "output_names": ["out"], "source": "out[0] = x;"}),
            )
        ),
        ((None, None, ""), {}, LIST.format("input_names", "NoneType")),
    ],
)
def test_generations_of_the_interface_do_not_mix_in_one_kernel(module, arguments, keywords, message):
    interface = Interface(module, "list")
    assert (
        str(raised(interface, TypeError, interface.function, "k", *arguments, **keywords))
        == f"[metal_kernel] {message}"
    )


# ---- Names and texts that no C string can hold


@pytest.mark.parametrize(
    ("name", "source", "header", "error", "message"),
    [
        (
            "a\0b",
            "out[0] = y;",
            "",
            kiln.CompileError,
            "[metal_kernel] `a␀b` does not compile.\nsource:1:10: error: use of undeclared identifier 'y'\n"
            "  out[0] = y;\n           ^",
        ),
        (
            "k",
            "out[0] = 1;\0 out[1] = y;",
            "",
            kiln.CompileError,
            "[metal_kernel] `k` does not compile.\nsource:1:23: error: use of undeclared identifier 'y'\n"
            "  out[0] = 1;␀ out[1] = y;\n                        ^",
        ),
        (
            "a\0b",
            "threadgroup float t[1 << 20]; t[0] = 1; out[0] = t[0];",
            "",
            kiln.UnsupportedError,
            f"[metal_kernel] `a␀b` needs {4 << 20} bytes of threadgroup memory, and the cpu target has {1 << 20}.",
        ),
        (
            "a\0b",
            "goto end; end:",
            "",
            kiln.UnsupportedError,
            "[metal_kernel] `a␀b` uses what is not supported.\n"
            "source:1:1: error: 'goto': jumps to labels are not supported\n  goto end; end:\n  ^",
        ),
        (
            "a\0b",
            "if (thread_position_in_grid.x < 3) threadgroup_barrier(mem_flags::mem_none); else "
            "threadgroup_barrier(mem_flags::mem_none);",
            "",
            kiln.DeviceError,
            "kernel `a␀b`: only 3 of 8 threads reach the threadgroup_barrier in line 1 of the source; the launch was "
            "ended",
        ),
    ],
)
def test_errors_show_a_nul(name, source, header, error, message):
    interface = Interface(kiln, "list")
    made = {"name": name, "source": source, "header": header}
    assert str(raised(interface, error, interface.call, made=made)) == message


def test_a_nul_in_a_kernels_text():
    interface = Interface(kiln, "list")
    made = {"name": "a\0b", "source": "// \0\nuint i = thread_position_in_grid.x;\nout[i] = x[i] + ONE;"}
    made["header"] = "\0#define ONE 1 // \0\n"
    np.testing.assert_array_equal(interface.first(interface.call(made=made)), EIGHT + 1)
    kernel = interface.make(**made)
    assert kernel.name == "a\0b"
    assert repr(kernel) == "<kiln.Kernel `a\0b`>"
    assert "\0#define ONE 1 // \0\n" in interface.call("source_for", made=made)


def test_a_wrong_argument_of_install():
    for value, kind in ((None, "NoneType"), (1, "int"), ("yes", "str"), (np.ones(1, bool), "numpy.ndarray")):
        with pytest.raises(TypeError) as error:
            kiln.mlx.install(metal=value)  # type: ignore[arg-type]
        assert str(error.value) == f"[install] Expected `metal` to be a bool but got {kind}."
    before = mx.fast.metal_kernel
    with kiln.mlx.install(metal=np.bool_(False)):  # type: ignore[arg-type]
        assert mx.fast.metal_kernel is not before
    assert mx.fast.metal_kernel is before
