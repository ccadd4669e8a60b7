"""What a kernel says of itself, and compiling it for inputs of which only dtypes and shapes are known."""

from __future__ import annotations

from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest

BODY = "uint i = thread_position_in_grid.x;\ny[i] = T(x[i] * factor);\n"
HEADER = "// größer\n"

# ---- Attributes


def test_texts_and_names():
    kernel = kiln.metal_kernel("k", ("x", "factor"), ["y"], BODY, HEADER)
    assert (kernel.name, kernel.source, kernel.header) == ("k", BODY, HEADER)
    assert (kernel.input_names, kernel.output_names) == (["x", "factor"], ["y"])
    # Lists of the caller's own: a kernel cannot be changed.
    assert kernel.input_names is not None
    kernel.input_names.append("z")
    assert kernel.input_names == ["x", "factor"]
    for name in ("source", "header", "input_names", "output_names", "options"):
        with pytest.raises(AttributeError):
            setattr(kernel, name, "")


def test_names_that_calls_give():
    kernel = kiln.metal_kernel("k", BODY)
    assert (kernel.source, kernel.header, kernel.input_names, kernel.output_names) == (BODY, "", None, None)


def test_texts_of_files(tmp_path):
    (tmp_path / "add.h").write_text("float add(float a, float b) { return a + b; }\n")
    body = '#include "add.h"\ny[0] = add(x[0], x[1]);'
    (tmp_path / "body.metal").write_text(body)
    kernel = kiln.metal_kernel("k", ["x"], ["y"], tmp_path / "body.metal", header=tmp_path / "add.h")
    (tmp_path / "body.metal").write_text("changed")
    assert kernel.source == body
    assert kernel.header == (tmp_path / "add.h").read_text()


def test_options_that_were_left_out():
    assert kiln.metal_kernel("k", ["x"], ["y"], BODY).options == {
        "ensure_row_contiguous": True,
        "atomic_outputs": False,
        "compile_options": {"math_mode": "safe"},
    }
    assert kiln.cuda_kernel("k", ["x"], ["y"], "").options == {
        "ensure_row_contiguous": True,
        "shared_memory": 0,
        "compile_options": {"math_mode": "safe"},
    }


def test_an_equal_kernel_is_made_of_what_a_kernel_says(tmp_path):
    options = {
        "math_mode": "fast",
        "bounds": "off",
        "specialize": False,
        "include_dirs": [str(tmp_path)],
        "writable_inputs": ["x"],
    }
    first = kiln.metal_kernel("k", ["x"], ["y"], BODY, HEADER, False, True, options)
    assert first.input_names is not None and first.output_names is not None
    again = kiln.metal_kernel(
        first.name, first.input_names, first.output_names, first.source, first.header, **first.options
    )
    assert first.options == again.options
    assert first.options == {
        "ensure_row_contiguous": False,
        "atomic_outputs": True,
        "compile_options": options,
    }
    cuda = kiln.cuda_kernel("k", ["x"], ["y"], "", shared_memory=64, compile_options={"bounds": "on"})
    assert kiln.cuda_kernel("k", ["x"], ["y"], "", **cuda.options).options == cuda.options
    assert cuda.options["shared_memory"] == 64
    assert cuda.options["compile_options"] == {"math_mode": "safe", "bounds": "on"}


def test_kernels_of_mlx_say_the_same():
    with kiln.mlx.install():
        kernels: list[Any] = [mx.fast.metal_kernel("k", ["x", "factor"], ["y"], BODY)]
    kernels.append(kiln.mlx.metal_kernel("k", ["x", "factor"], ["y"], BODY))
    for kernel in kernels:
        assert (kernel.source, kernel.input_names) == (BODY, ["x", "factor"])


@pytest.mark.parametrize("module", [kiln, kiln.mlx])
def test_the_oldest_form(module):
    kernel = module.MetalKernel(
        "k", BODY, 4, 4, {"y": (4,), "z": ()}, {"y": "float32", "z": "int8"}, header=HEADER, atomic_outputs=True
    )
    assert (kernel.source, kernel.header, kernel.output_names) == (BODY, HEADER, ["y", "z"])
    assert kernel.options == {
        "ensure_row_contiguous": True,
        "atomic_outputs": True,
        "compile_options": {"math_mode": "safe"},
    }


# ---- Compiling without arrays

DESCRIBED: dict[str, Any] = {
    "input_shapes": [(8,), ()],
    "input_dtypes": ["float32", np.float32],
    "output_shapes": [(8,)],
    "output_dtypes": ["float16"],
    "template": [("T", "float16")],
    "grid": (8, 1, 1),
    "threadgroup": (8, 1, 1),
}


def scale(**options: Any) -> kiln.Kernel:
    return kiln.metal_kernel("scale", ["x", "factor"], ["y"], BODY, **options)


def with_arrays(kernel: Any, method: str = "__call__") -> Any:
    rest = {key: value for key, value in DESCRIBED.items() if not key.startswith("input_")}
    return getattr(kernel, method)(inputs=[np.arange(8, dtype=np.float32), 0.5], **rest)


def test_code_of_a_description_is_that_of_a_call():
    kernel = scale()
    compiled = kernel.compile(**DESCRIBED)
    assert (compiled.name, compiled.target) == ("scale", "cpu")
    (y,) = with_arrays(kernel)
    np.testing.assert_array_equal(y, np.arange(8) / 2)
    assert [launch.code for launch in kernel.history] == ["memory"]
    assert compiled.machine_code == with_arrays(kernel, "compile").machine_code


def test_text_of_a_description_is_that_of_a_call():
    assert scale().source_for(**DESCRIBED) == with_arrays(scale(), "source_for")


def test_shapes_that_become_constants():
    body = "y[thread_position_in_grid.x] = x_shape[0] + x_strides[0];"
    kernel = kiln.metal_kernel("k", ["x"], ["y"], body)
    call: dict[str, Any] = {
        "output_shapes": [(1,)], "output_dtypes": ["int32"], "grid": 1, "threadgroup": 1
    }  # fmt: skip
    kernel.compile(input_shapes=[[np.int64(8), 2]], input_dtypes=[mx.float32], **call)
    (y,) = kernel(inputs=[np.zeros((8, 2), np.float32)], **call)
    assert y[0] == 8 + 2
    assert (kernel.history[0].code, kernel.history[0].specialized) == ("memory", True)


def test_descriptions_by_name():
    kernel = kiln.metal_kernel("scale", BODY)
    call: dict[str, Any] = {
        "output_shapes": {"y": (8,)},
        "output_dtypes": {"y": "float32"},
        "template": {"T": "float32"},
        "grid": 8,
        "threadgroup": 8,
    }
    kernel.compile(input_shapes={"x": (8,), "factor": ()}, input_dtypes={"factor": "float32", "x": "float32"}, **call)
    kernel(inputs={"x": np.ones(8, np.float32), "factor": 2.0}, **call)
    assert kernel.history[0].code == "memory"


def test_a_kernel_of_mlx_is_compiled_ahead():
    kernel = kiln.mlx.metal_kernel("scale", ["x", "factor"], ["y"], BODY)
    kernel.compile(**DESCRIBED)
    rest = {key: value for key, value in DESCRIBED.items() if not key.startswith("input_")}
    mx.eval(kernel(inputs=[mx.arange(8, dtype=mx.float32), 0.5], **rest))
    assert kernel.history[0].code == "memory"


def test_what_is_none_is_left_out():
    nothing = {"input_shapes": None, "input_dtypes": None, "target": None}
    kernel: Any = scale()
    rest = {key: value for key, value in DESCRIBED.items() if not key.startswith("input_")}
    x = np.arange(8, dtype=np.float32)
    assert kernel.source_for(inputs=[x, 0.5], **nothing, **rest) == kernel.source_for(inputs=None, **DESCRIBED)


def test_verbose_prints_the_text(capsys):
    kernel = scale()
    kernel.compile(**DESCRIBED, verbose=True)
    assert kernel.source_for(**DESCRIBED) in capsys.readouterr().out


DTYPES = (
    "bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64 and complex64"
)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"inputs": [1, 2]}, TypeError, "The call has `inputs`, from which `input_shapes` follows."),
        (
            {"inputs": [1, 2], "input_shapes": None, "input_dtypes": None, "target": "cpu"},
            TypeError,
            "The call has `inputs`, from which `target` follows.",
        ),
        ({"input_dtypes": None}, TypeError, "The call is missing the argument `input_dtypes`."),
        ({"input_shapes": None}, TypeError, "The call is missing the argument `input_shapes`."),
        (
            {"input_shapes": None, "input_dtypes": None, "target": "cpu"},
            TypeError,
            "The call is missing the argument `input_shapes`.",
        ),
        ({"stream": 3}, TypeError, "The call has `input_shapes`, beside which `stream` has no meaning."),
        ({"outputs": [1]}, TypeError, "The call has `input_shapes`, beside which `outputs` has no meaning."),
        ({"frobs": 3}, TypeError, "The call has no argument `frobs`."),
        ({"input_dtype": 3}, TypeError, "The call has no argument `input_dtype`; did you mean `input_dtypes`?"),
        ({"input_shapes": [(8,)]}, ValueError, "Expected `input_shapes` to have size 2 but got size 1."),
        ({"input_dtypes": ["int8"] * 3}, ValueError, "Expected `input_dtypes` to have size 2 but got size 3."),
        ({"input_shapes": 8}, TypeError, "Expected `input_shapes` to be a list of shapes but got int."),
        (
            {"input_shapes": (8, 1)},
            TypeError,
            "Expected `input_shapes` to be a list of shapes but got one shape: write [(8, 1)].",
        ),
        (
            {"input_shapes": [8, 1]},
            TypeError,
            "Expected `input_shapes` to be a list of shapes but got a list of ints: write [(8,), (1,)].",
        ),
        ({"input_shapes": [8, ()]}, TypeError, "Expected `input_shapes` to be a list of shapes but got int."),
        (
            {"input_shapes": [(8.0,), ()]},
            TypeError,
            "Expected each dimension in `input_shapes` to be an int but got float.",
        ),
        (
            {"input_shapes": [(-1,), ()]},
            ValueError,
            "Expected each dimension in `input_shapes` to be at least 0 but got -1.",
        ),
        (
            {"input_shapes": [(2**40, 2**40), ()]},
            ValueError,
            "Input `x`: array has more than 2^63 - 1 elements.",
        ),
        ({"input_dtypes": "int8"}, TypeError, "Expected `input_dtypes` to be a list of dtypes but got str."),
        ({"input_dtypes": ["int8", "int4"]}, ValueError, f"`int4` in `input_dtypes` is no dtype. Those are {DTYPES}."),
        ({"input_dtypes": ["int8", 3]}, TypeError, "Expected `input_dtypes` to have dtypes but got 3."),
        (
            {"input_dtypes": ["float64", "float32"]},
            ValueError,
            "Metal has no double, but input `x` is float64.",
        ),
        ({"target": 0}, TypeError, "Expected `target` to be a string but got int."),
        *(
            (
                {"target": target},
                ValueError,
                f'Expected `target` to be "cpu" or, of the first GPU, "nvidia:0" but got "{target}".',
            )
            for target in ("", "CPU", "nvidia", "nvidia:", "nvidia:-1", "nvidia:1x", "nvidia:99999999999", "sm_90")
        ),
        ({"grid": -1}, ValueError, "Expected each dimension of `grid` to be in [0, 2147483647] but got (-1, 1, 1)."),
    ],
)
@pytest.mark.parametrize("method", ["compile", "source_for"])
def test_a_wrong_description(method, changes, error, message):
    with pytest.raises(error) as raised:
        getattr(scale(), method)(**{**DESCRIBED, **changes})
    assert str(raised.value) == f"[metal_kernel] {message}"


def test_a_wrong_description_by_name():
    kernel = kiln.metal_kernel("scale", BODY)
    right: dict[str, Any] = {"output_shapes": {"y": (8,)}, "output_dtypes": {"y": "int8"}, "grid": 8, "threadgroup": 8}
    same = "[metal_kernel] Expected `input_dtypes` to have the keys of `input_shapes`, but"
    for dtypes, message in (
        ({"x": "int8"}, f"{same} `factor` is missing."),
        ({"x": "int8", "z": "int8", "factor": "int8"}, f"{same} got `z`."),
    ):
        with pytest.raises(ValueError) as raised:
            kernel.compile(input_shapes={"x": (8,), "factor": ()}, input_dtypes=dtypes, **right)
        assert str(raised.value) == message
    with pytest.raises(TypeError) as wrong:
        kernel.compile(input_shapes=[(8,)], input_dtypes=["int8"], **right)
    assert str(wrong.value) == (
        "[metal_kernel] Expected `input_shapes` to be a dict but got list: this kernel was made without `input_names`, so "
        "its calls take dicts."
    )


def test_a_call_takes_no_description():
    kernel: Any = scale()
    with pytest.raises(TypeError) as raised:
        kernel(**DESCRIBED)
    assert str(raised.value) == "[metal_kernel] The call has no argument `input_shapes`; `compile` has it."
    with pytest.raises(TypeError) as unknown:
        kernel(inputs=[1, 2], **DESCRIBED)
    assert str(unknown.value) == "[metal_kernel] The call has no argument `input_shapes`; `compile` has it."


def test_a_kernel_works_after_a_wrong_description():
    kernel = scale()
    with pytest.raises(ValueError):
        kernel.compile(**{**DESCRIBED, "input_shapes": []})
    np.testing.assert_array_equal(with_arrays(kernel)[0], np.arange(8) / 2)
    kernel.compile(**DESCRIBED)
    np.testing.assert_array_equal(with_arrays(kernel)[0], np.arange(8) / 2)
