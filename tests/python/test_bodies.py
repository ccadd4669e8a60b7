"""Every body of `tests/bodies`, with the arrays of each library, against its reference."""

import functools

import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from guarded_pages import GuardedPages
from launch_bodies import BODIES, launch, launch_numpy
from mlx_kernels import to_mlx, to_numpy

by_name = pytest.mark.parametrize("name", BODIES)


@functools.cache
def expected_of(name):
    return BODIES[name].expected()


def check(body, outputs):
    expected = expected_of(body.name)
    problems = [body.mismatch(name, got, expected[name]) for name, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


@by_name
def test_numpy(name):
    body = BODIES[name]
    inputs = body.inputs()
    check(body, launch_numpy(body, list(inputs.values())))
    for key, before in body.inputs().items():
        if isinstance(before, np.ndarray):
            assert inputs[key].tobytes() == before.tobytes(), f"{key} was written"


# ---- MLX


def mlx_dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


@by_name
def test_mlx(name):
    body = BODIES[name]
    inputs = [to_mlx(value) for value in body.inputs().values()]
    outputs = launch(body, kiln.mlx.metal_kernel, inputs, mlx_dtype)
    mx.eval(outputs)
    check(body, [to_numpy(output) for output in outputs])


# ---- Memory safety (docs/language.md 5.1): what lies around an input must not be touched


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
    check(body, launch_numpy(body, inputs))
