"""NumPy scalars among the inputs keep their dtype, in every interface, as they do in MLX's own text."""

from __future__ import annotations

import re
from typing import Any

import kiln
import kiln.mlx
import ml_dtypes
import mlx.core as mx
import mlx_text
import numpy as np
import pytest
from interfaces import INTERFACES, Interface, Item

# A scalar, the dtype that a body sees in Metal, and its name there.
SCALARS = [
    (np.bool_(True), "bool", "bool"),
    (np.int8(-100), "int8", "int8_t"),
    (np.int16(-30000), "int16", "int16_t"),
    (np.int32(-7), "int32", "int32_t"),
    (np.int64(100000), "int64", "int64_t"),
    (np.uint8(200), "uint8", "uint8_t"),
    (np.uint16(60000), "uint16", "uint16_t"),
    (np.uint32(1), "uint32", "uint32_t"),
    (np.uint64(2**63 + 1), "uint64", "uint64_t"),
    (np.float16(0.1), "float16", "float16_t"),
    (ml_dtypes.bfloat16(0.1), "bfloat16", "bfloat16_t"),
    (np.float32(0.1), "float32", "float"),
    (np.float64(0.1), "float32", "float"),
    (np.complex64(1 - 2j), "complex64", "complex64_t"),
    (np.complex128(1 - 2j), "complex64", "complex64_t"),
]
METAL = [interface for interface in INTERFACES if interface.generation != "cuda"]
CUDA = [interface for interface in INTERFACES if interface.generation == "cuda"]
by_label: dict[str, Any] = {"ids": lambda value: value.label if isinstance(value, Interface) else None}
one = {"output_shapes": Item((1,)), "grid": 1, "threadgroup": 1}


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def arguments(interface, body):
    """Those of a kernel with one input and one output."""
    return {"source": body} if interface.by_name else {"source": body, "input_names": ["x"], "output_names": ["out"]}


@pytest.mark.parametrize("interface", METAL, **by_label)
def test_scalars_in_metal(interface):
    made = arguments(interface, "out[0] = x;")
    for scalar, dtype, metal in SCALARS:
        changes: dict[str, Any] = {**one, "inputs": Item(scalar), "output_dtypes": Item(dtype)}
        text = interface.call("source_for", made, **changes)
        assert f"const constant {metal}& x [[buffer(0)]]" in text
        out = interface.first(interface.call("__call__", made, **changes))
        assert out.dtype == numpy_dtype(dtype)
        assert out[0] == np.asarray(scalar).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("interface", CUDA, **by_label)
def test_scalars_in_cuda(interface):
    made = {"source": "out[0] = x[0] * x[0];", "input_names": ["x"], "output_names": ["out"]}
    # MLX has no float64 on a GPU, and gives its kernels a float.
    double = "double" if interface.library == "numpy" else "float"
    for scalar, cuda in (
        (np.int8(-10), "int8_t"),
        (np.uint16(200), "uint16_t"),
        (np.int64(100000), "int64_t"),
        (np.uint64(2**32 - 1), "uint64_t"),
        (np.float32(0.1), "float"),
        (np.float64(0.1), double),
    ):
        dtype = "float32" if cuda == "float" else "float64" if cuda == "double" else np.asarray(scalar).dtype.name
        changes: dict[str, Any] = {**one, "inputs": Item(scalar), "output_dtypes": Item(dtype)}
        assert f"const {cuda}* x" in interface.call("source_for", made, **changes)
        expected = np.asarray(scalar).astype(dtype)
        assert interface.first(interface.call("__call__", made, **changes))[0] == expected * expected


def square(**given):
    kernel = kiln.metal_kernel("square", ["n"], ["y"], "y[0] = n * n;")
    return kernel(output_shapes=[(1,)], grid=1, threadgroup=1, **given)[0][0]


@pytest.mark.parametrize(
    ("scalar", "dtype", "expected"),
    [
        (np.int64(100000), "int64", 10_000_000_000),
        (np.uint64(3_000_000_000), "uint64", 9_000_000_000_000_000_000),
        (np.uint32(2**31), "uint32", 0),
        (np.int32(46340), "int32", 2147395600),
        # Integers narrower than an int are promoted, as in C++.
        (np.int8(100), "int32", 10000),
        (np.uint16(65535), "uint32", 65535 * 65535 % 2**32),
        (np.float16(100), "float16", 10000),
        (100000, "int64", 100000 * 100000 % 2**32),
    ],
)
def test_arithmetic_is_that_of_the_dtype(scalar, dtype, expected):
    value = square(inputs=[scalar], output_dtypes=[dtype])
    if isinstance(scalar, int):
        expected -= 2**32 if expected >= 2**31 else 0  # a Python int is an int32
    assert value == expected


# MLX's own kernels take ml_dtypes' scalars for complex numbers.
@pytest.mark.parametrize(
    "scalar", [row[0] for row in SCALARS if row[1] != "bfloat16"], ids=lambda value: type(value).__name__
)
def test_text_is_mlxs(scalar, tmp_path, capfd):
    call = {"output_shapes": [(1,)], "output_dtypes": [mx.float32], "grid": (1, 1, 1), "threadgroup": (1, 1, 1)}
    kernel: dict[str, Any] = {"input_names": ["n"], "output_names": ["y"], "source": "y[0] = 1;"}
    # MLX's tracer takes arrays, so that the scalar is closed over.
    made: Any = mlx_text._metal_kernel(name="k", **kernel)
    capfd.readouterr()
    mlx_text._export_function(
        str(tmp_path / "traced.mlxfn"),
        lambda array: made(inputs=[scalar], verbose=True, stream=mx.gpu, **call),
        mx.array(0),
    )
    text = re.fullmatch(r"Generated source code for `k`:\n```\n(.*)\n```\n", capfd.readouterr().out, re.DOTALL)
    assert text
    for module in (kiln, kiln.mlx):
        ours = module.metal_kernel(name="k", **kernel).source_for(inputs=[scalar], **call)
        assert mlx_text.normalized(ours) == mlx_text.normalized(text[1])


def test_scalars_of_dtypes_that_kiln_lacks():
    for scalar, shown in ((np.longdouble(1), "longdouble"), (ml_dtypes.int4(3), "int4"), (np.str_("a"), "<U1")):
        with pytest.raises(TypeError) as error:
            square(inputs=[scalar], output_dtypes=["int32"])
        shown = str(np.asarray(scalar).dtype) if shown == "longdouble" else shown
        assert str(error.value) == f"[metal_kernel] Input `n` has dtype {shown}, which no kernel can take."
    kernel = kiln.mlx.metal_kernel("k", ["n"], ["y"], "y[0] = n;")
    for scalar, kind in ((np.longdouble(1), "numpy.longdouble"), (np.datetime64("2020"), "numpy.datetime64")):
        with pytest.raises(TypeError) as error:
            kernel(inputs=[scalar], output_shapes=[(1,)], output_dtypes=["int32"], grid=1, threadgroup=1)
        assert str(error.value) == (
            f"[metal_kernel] MLX does not take input `n`, which is {kind} of dtype {scalar.dtype}."
        )


def test_scalars_among_templates():
    body = "y[0] = N; y[1] = FLAG ? 5 : 6;"
    for module in (kiln, kiln.mlx):
        kernel = module.metal_kernel("k", [], ["y"], body)
        for value in (np.int8(3), np.int64(3), np.uint64(3), np.array(3)):
            for flag in (np.True_, np.bool_(False), True):
                (y,) = kernel(
                    inputs=[],
                    template=[("N", value), ("FLAG", flag)],
                    output_shapes=[(2,)],
                    output_dtypes=["int32"],
                    grid=1,
                    threadgroup=1,
                )
                assert np.array(y).tolist() == [3, 5 if flag else 6]
