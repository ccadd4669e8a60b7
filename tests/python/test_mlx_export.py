"""`mx.export_function`: what is exported holds MLX's own kernels, so that it loads on a Mac; and what `install` changes
and takes back."""

import copy
from pathlib import Path
from typing import Any

import kiln
import kiln.mlx
import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from mlx_kernels import DOUBLE, call1, custom_function, make, needs_own_kernels

pytestmark = needs_own_kernels

# MLX's types know one generation, and say of kernels that they are objects.
fast: Any = mx.fast

SOURCE = "uint i = thread_position_in_grid.x; out[i] = T(a[i]) * N + a_shape[0];"
ORIGINALS = {name: getattr(mx.fast, name, None) for name in ("metal_kernel", "cuda_kernel", "MetalKernel")}


def array():
    result = mx.arange(12, dtype=mx.float32).reshape(3, 4)
    mx.eval(result)
    return result


def arguments(a):
    return {
        "inputs": [a],
        "template": [("T", mx.float16), ("N", 3)],
        "output_shapes": [a.shape],
        "output_dtypes": [mx.float32],
        "grid": (a.size, 1, 1),
        "threadgroup": (4, 1, 1),
    }


def by_lists(a, **options):
    return make(SOURCE, function=mx.fast.metal_kernel)(**arguments(a), **options)[0]


def by_dictionary(a, **options):
    kernel = fast.metal_kernel("kernel", SOURCE)
    named = {"inputs": {"a": a}, "output_shapes": {"out": a.shape}, "output_dtypes": {"out": mx.float32}}
    template = {"T": mx.float16, "N": 3}
    results = kernel(**{**arguments(a), **named, "template": template}, **options)
    assert list(results) == ["out"]
    return results["out"]


def by_class(a):
    keywords = arguments(a)
    kernel = fast.MetalKernel(
        "kernel", SOURCE, keywords["grid"], keywords["threadgroup"], {"out": a.shape}, {"out": mx.float32}
    )
    kernel.template(T=mx.float16, N=3)
    return kernel(a=a)["out"]


def exported(path, function, *inputs, export=None):
    (export or mx.export_function)(str(path), function, *inputs)
    return path.read_bytes()


def writable_memory():
    """Of this process, from where to where."""
    lines = [line.split(maxsplit=2) for line in Path("/proc/self/maps").read_text().splitlines()]
    return [tuple(int(end, 16) for end in ends.split("-")) for ends, access, _ in lines if access.startswith("rw")]


def without_addresses(data, memory=None):
    """The file names each array by its address, which no two exports share. Here each becomes a number, counted in the
    order in which they appear: 8 bytes that are an address in memory that this process may write. (A low address with
    zeros before it looks like a high one.)"""
    memory = memory or writable_memory()
    numbers: dict[int, int] = {}
    result, i = bytearray(), 0
    while i < len(data):
        value = int.from_bytes(data[i : i + 8], "little")
        if value % 16 == 0 and any(begin <= value < end for begin, end in memory):
            result += numbers.setdefault(value, len(numbers)).to_bytes(8, "little")
            i += 8
        else:
            result.append(data[i])
            i += 1
    return bytes(result)


def test_low_addresses_are_told_from_zeros_before_them():
    # The heap of a Python whose own code lies low does so, too.
    memory = [(0x39AB5000, 0x45F85000), (0x7F60A0000000, 0x7F60A4000000)]
    for address in (0x3BBED430, 0x7F60A0C69180):
        assert without_addresses(bytes(2) + address.to_bytes(8, "little") + bytes(2), memory) == bytes(12)


@pytest.fixture
def reference(tmp_path):
    """What MLX's own function exports."""
    assert mx.fast.metal_kernel is ORIGINALS["metal_kernel"]
    return exported(tmp_path / "own.mlxfn", by_lists, array())


def test_the_reference_is_a_kernel_of_the_gpu(reference, tmp_path):
    # So that the comparisons below mean something: a machine without a GPU cannot load it.
    assert reference.count(b"CustomKernel") == 1
    assert b"[[kernel]] void custom_kernel_kernel" in reference
    if not mx.metal.is_available():
        with pytest.raises(ValueError, match="gpu"):
            imported: Any = mx.import_function(str(tmp_path / "own.mlxfn"))
            imported(array())


@pytest.mark.parametrize("function", [by_lists, by_dictionary, by_class])
def test_installed_functions_hand_over(function, reference, tmp_path):
    with kiln.mlx.install():
        before = np.array(function(array()))
        data = exported(tmp_path / "installed.mlxfn", function, array())
        after = np.array(function(array()))
    assert without_addresses(data) == without_addresses(reference)
    np.testing.assert_array_equal(before, np.arange(12).reshape(3, 4) * 3 + 3)
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("metal", [False, True])
@pytest.mark.parametrize("function", [by_lists, by_dictionary])
def test_a_stream_of_the_gpu_stays_one(function, metal, reference, tmp_path):
    with kiln.mlx.install(metal=metal):
        data = exported(tmp_path / "stream.mlxfn", lambda a: function(a, stream=mx.gpu), array())
    assert without_addresses(data) == without_addresses(reference)


def test_kernels_made_before_and_inside(reference, tmp_path):
    with kiln.mlx.install():
        kernel = make(SOURCE, function=mx.fast.metal_kernel)
        data = exported(tmp_path / "before.mlxfn", lambda a: kernel(**arguments(a))[0], array())
    assert without_addresses(data) == without_addresses(reference)


@pytest.mark.parametrize("evaluated_before", [False, True])
def test_compiled_functions(evaluated_before, reference, tmp_path):
    with kiln.mlx.install():
        function = mx.compile(by_lists)
        if evaluated_before:
            mx.eval(function(array()))
        data = exported(tmp_path / "compiled.mlxfn", function, array())
    assert without_addresses(data) == without_addresses(reference)


def test_gradients(tmp_path):
    # MLX exports no custom function, but what its gradient is made of.
    with kiln.mlx.install():

        @custom_function
        def function(a):
            return by_lists(a)

        @function.vjp
        def function_vjp(primals, cotangents, _):
            return by_lists(cotangents)

        gradient = mx.grad(lambda a: function(a).sum())
        data = exported(tmp_path / "grad.mlxfn", gradient, array())
        np.testing.assert_array_equal(np.array(gradient(array())), np.full((3, 4), 6))
    assert data.count(b"CustomKernel") == 1
    assert b"KilnKernel" not in data


def test_exporter(tmp_path):
    path = tmp_path / "several.mlxfn"
    with kiln.mlx.install():
        with mx.exporter(str(path), lambda *arrays: by_lists(sum(arrays))) as export:
            export(array())
            export(array(), array())
        inside = np.array(by_lists(array()))
    data = path.read_bytes()
    assert data.count(b"CustomKernel") == 2
    np.testing.assert_array_equal(inside, np.arange(12).reshape(3, 4) * 3 + 3)


def test_an_exporter_that_is_closed_by_hand(tmp_path):
    path = tmp_path / "closed.mlxfn"
    with kiln.mlx.install():
        export = mx.exporter(str(path), by_lists)
        export(array())
        export.close()
    assert path.read_bytes().count(b"CustomKernel") == 1


@pytest.mark.parametrize("value", [True, False])
def test_flags_stay_flags(value, tmp_path):
    def function(a):
        kernel = make("out[thread_position_in_grid.x] = F;", function=mx.fast.metal_kernel)
        return kernel(**{**arguments(a), "template": [("F", value)]})[0]

    reference = exported(tmp_path / "own.mlxfn", function, array())
    with kiln.mlx.install():
        data = exported(tmp_path / "flag.mlxfn", function, array())
    assert without_addresses(data) == without_addresses(reference)
    assert b"template <bool F>" in data


def test_kernels_in_cuda_are_mlxs_too(tmp_path):
    """Where MLX can make none, an export says so in MLX's words."""

    def function(a):
        kernel: Any = mx.fast.cuda_kernel("kernel", ["a"], ["out"], "out[0] = a[0];", shared_memory=64)
        return kernel(**{**arguments(a), "template": []})[0]

    def outcome(name):
        try:
            return without_addresses(exported(tmp_path / name, function, array()))
        except RuntimeError as error:
            return str(error)

    expected = outcome("own.mlxfn")
    with kiln.mlx.install():
        assert outcome("installed.mlxfn") == expected


def test_kilns_own_options_are_not_exported(tmp_path):
    options = {"math_mode": "fast", "bounds": "off"}
    a = array()
    own = make(DOUBLE, compile_options={"math_mode": "fast"}, function=mx.fast.metal_kernel)
    reference = exported(tmp_path / "own.mlxfn", lambda a: call1(own, a), a)
    with kiln.mlx.install():
        kernel = make(DOUBLE, compile_options=options, function=mx.fast.metal_kernel)
        data = exported(tmp_path / "options.mlxfn", lambda a: call1(kernel, a), a)
    assert without_addresses(data) == without_addresses(reference)


def test_an_export_that_fails_leaves_the_functions_as_they_were(tmp_path):
    with kiln.mlx.install():

        def function(a):
            by_lists(a)
            raise KeyError("no")

        with pytest.raises(KeyError):
            mx.export_function(str(tmp_path / "failed.mlxfn"), function, array())
        np.testing.assert_array_equal(np.array(by_lists(array())), np.arange(12).reshape(3, 4) * 3 + 3)


def test_kernels_that_are_not_installed_are_no_kernels_of_mlx(tmp_path):
    # By its name MLX would take the node for one of its own, and read what is not there.
    kernel = make(DOUBLE)
    with pytest.raises(ValueError, match="Unable to serialize primitive KilnKernel"):
        mx.export_function(str(tmp_path / "kiln.mlxfn"), lambda a: call1(kernel, a), array())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"output_shapes": ...}, TypeError),
        ({"output_shapes": [(3, 4), (3, 4)]}, ValueError),
        ({"output_dtypes": ["no dtype"]}, ValueError),
        ({"template": [("T", 1.5)]}, ValueError),
        ({"threadgroup": (1025, 1, 1)}, ValueError),
        ({"inputs": [None]}, TypeError),
        ({"stream": 3}, TypeError),
        ({"more": 3}, TypeError),
    ],
)
@pytest.mark.parametrize("interface", ["lists", "dictionary"])
def test_a_wrong_call_is_the_same_error_as_outside(interface, changes, error, tmp_path):
    with kiln.mlx.install():
        if interface == "lists":
            kernel = make(SOURCE, function=mx.fast.metal_kernel)
        else:
            kernel = fast.metal_kernel("kernel", SOURCE)

    def call(a):
        keywords = {key: value for key, value in {**arguments(a), **changes}.items() if value is not ...}
        if interface == "dictionary":
            for key, names in (("inputs", "a"), ("output_shapes", ("out", "b")), ("output_dtypes", ("out",))):
                if key in keywords:
                    keywords[key] = dict(zip(names, keywords[key], strict=False))
            keywords["template"] = dict(keywords["template"])
        return kernel(**keywords)

    with pytest.raises(error) as outside:
        call(array())
    with kiln.mlx.install(), pytest.raises(error) as inside:
        mx.export_function(str(tmp_path / "wrong.mlxfn"), call, array())
    assert str(inside.value) == str(outside.value)


class Index:
    def __index__(self):
        return 3


def test_whatever_kiln_takes_is_exported(reference, tmp_path):
    with kiln.mlx.install():

        def function(a, **changes):
            kernel = make(SOURCE, function=mx.fast.metal_kernel)
            return kernel(**{**arguments(a), **changes})[0]

        kinds = {
            "strings": {"output_dtypes": ["float32"], "template": (("T", "float16"), ("N", 3))},
            "numpy": {"output_dtypes": [np.float32], "template": [["T", np.dtype("float16")], ["N", np.int8(3)]]},
            "index": {"template": [("T", mx.float16), ("N", Index())], "output_shapes": [[Index(), np.int64(4)]]},
            "extents": {"grid": [np.int32(12), 1, 1], "threadgroup": np.array([4, 1, 1])},
            "none": {"init_value": None, "stream": None, "verbose": False},
        }
        for kind, changes in kinds.items():
            data = exported(tmp_path / f"{kind}.mlxfn", lambda a, c=changes: function(a, **c), array())
            assert without_addresses(data) == without_addresses(reference), kind
        data = exported(
            tmp_path / "bool.mlxfn", lambda a: function(a, output_dtypes=["bool"], init_value=np.float32(1)), array()
        )
    assert data.count(b"CustomKernel") == 1


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (Index(), 3),
        (2.5, 2.5),
        (True, True),
        *((scalar, scalar) for scalar in (np.int8(3), np.uint32(3), np.int64(3), np.float16(3), np.float64(3))),
        (ml_dtypes.bfloat16(3), mx.array(3, mx.bfloat16)),
    ],
)
def test_numbers_among_the_inputs_are_exported(value, same, tmp_path):
    def exported_with(value, name):
        def function(a):
            kernel = make("out[0] = a[0] + b;", inputs=["a", "b"], function=mx.fast.metal_kernel)
            return kernel(**{**arguments(a), "inputs": [a, value], "template": []})[0]

        return without_addresses(exported(tmp_path / name, function, array()))

    reference = exported_with(same, "own.mlxfn")
    with kiln.mlx.install():
        assert exported_with(value, "installed.mlxfn") == reference


# ---- What installed functions make


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_installed_kernels_are_kernels(copied):
    with kiln.mlx.install():
        kernel = make(SOURCE, function=mx.fast.metal_kernel)
        old = fast.metal_kernel("kernel", SOURCE)
        cuda = mx.fast.cuda_kernel("kernel", ["a"], ["out"], "")
    for made in (kernel, old, cuda, make(SOURCE)):
        assert isinstance(made, kiln.Kernel)
        assert copied(made) is made
    with pytest.raises(TypeError) as raised:
        kernel([array()])  # type: ignore[call-overload]
    assert str(raised.value) == "[metal_kernel] The call takes keyword arguments only."


def test_metal_is_a_bool():
    before = state()
    with pytest.raises(TypeError) as raised:
        kiln.mlx.install(metal="no")  # type: ignore[arg-type]
    assert str(raised.value) == "[install] Expected `metal` to be a bool but got str."
    assert state() == before


# ---- install and uninstall


def state():
    names = [(mx.fast, name) for name in ORIGINALS]
    names += [(mx, "export_function"), (mx, "exporter"), (mx, "gpu"), (mx.metal, "is_available")]
    return [getattr(module, name, None) for module, name in names]


def test_kernels_outlive_their_installation():
    with kiln.mlx.install():
        kernel = make(SOURCE, function=mx.fast.metal_kernel)
        lazy = kernel(**arguments(array()))[0]
    for result in (lazy, kernel(**arguments(array()))[0]):
        np.testing.assert_array_equal(np.array(result), np.arange(12).reshape(3, 4) * 3 + 3)
