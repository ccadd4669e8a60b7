"""Every body of `tests/bodies`, with the arrays of each library, against its reference."""

import functools

import bodies
import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from guarded_pages import GuardedPages

BODIES = {body.name: body for body in bodies.all_bodies()}

by_name = pytest.mark.parametrize("name", BODIES)


@functools.cache
def expected_of(name):
    return BODIES[name].expected()


@functools.cache
def kernel_of(name, make):
    body = BODIES[name]
    return make(
        name=body.name,
        input_names=list(body.inputs()),
        output_names=list(body.outputs),
        source=body.source,
        header=body.header,
        ensure_row_contiguous=body.ensure_row_contiguous,
        atomic_outputs=body.atomic_outputs,
        compile_options=dict(body.compile_options),
    )


def launch(body, make, inputs, dtype_of):
    return kernel_of(body.name, make)(
        inputs=inputs,
        template=[(k, dtype_of(v) if isinstance(v, bodies.Dtype) else v) for k, v in body.template],
        grid=body.grid,
        threadgroup=body.threadgroup,
        output_shapes=[shape for shape, _ in body.outputs.values()],
        output_dtypes=[dtype_of(dtype) for _, dtype in body.outputs.values()],
        init_value=body.init_value,
    )


def check(body, outputs):
    expected = expected_of(body.name)
    problems = [body.mismatch(name, got, expected[name]) for name, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


@by_name
def test_numpy(name):
    body = BODIES[name]
    inputs = body.inputs()
    check(body, launch(body, kiln.metal_kernel, list(inputs.values()), bodies.DTYPES.__getitem__))
    for key, before in body.inputs().items():
        if isinstance(before, np.ndarray):
            assert inputs[key].tobytes() == before.tobytes(), f"{key} was written"


# ---- MLX


def to_mlx(value):
    """The same elements in the same order in memory."""
    if not isinstance(value, np.ndarray):
        return value
    if value.flags.c_contiguous:
        # MLX does not know ml_dtypes.
        if value.dtype == bodies.DTYPES["bfloat16"]:
            return mx.array(value.view(np.uint16)).view(mx.bfloat16)
        return mx.array(value)
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.flags.c_contiguous
    first = (value.ctypes.data - base.ctypes.data) // value.itemsize
    strides = [stride // value.itemsize for stride in value.strides]
    return mx.as_strided(to_mlx(base.reshape(-1)), value.shape, strides, first)


def from_mlx(value):
    if value.dtype == mx.bfloat16:
        return np.array(value.view(mx.uint16)).view(bodies.DTYPES["bfloat16"])
    return np.array(value)


def mlx_dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


@by_name
def test_mlx(name):
    body = BODIES[name]
    inputs = [to_mlx(value) for value in body.inputs().values()]
    outputs = launch(body, kiln.mlx.metal_kernel, inputs, mlx_dtype)
    mx.eval(outputs)
    check(body, [from_mlx(output) for output in outputs])


# ---- Memory safety (specification 3.9): what lies around an input must not be touched


@pytest.mark.parametrize("at_end", [False, True], ids=["at_start", "at_end"])
@by_name
def test_between_guard_pages(name, at_end):
    body = BODIES[name]
    inputs = [
        GuardedPages(value.nbytes).copy(value, at_end)
        if isinstance(value, np.ndarray) and value.flags.c_contiguous and value.size
        else value
        for value in body.inputs().values()
    ]
    check(body, launch(body, kiln.metal_kernel, inputs, bodies.DTYPES.__getitem__))
