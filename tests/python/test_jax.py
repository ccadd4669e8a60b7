"""Kernels on JAX's arrays in the CPU's memory. What GPUs do is in test_gpu_jax.py."""

from typing import Any

import kiln
import numpy as np
import pytest
from launch_bodies import BODIES, launch, shows_strides

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

INDEX = "uint i = thread_position_in_grid.x; "
COPY: Any = kiln.metal_kernel("copy", ["x"], ["y"], INDEX + "y[i] = x[i];")


def call(x, **changes):
    keywords = {
        "inputs": [x],
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
        "output_shapes": [(8,)],
        "output_dtypes": [jnp.float32],
    }
    return COPY(**{**keywords, **changes})[0]


def eight():
    return jnp.arange(8, dtype=jnp.float32)


@pytest.fixture
def with_64_bits():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


# JAX's arrays lie in memory in order, and some bodies read what lies between the elements of those that do not.
IN_ORDER = [name for name, body in BODIES.items() if not shows_strides(body)]


@pytest.mark.parametrize("name", IN_ORDER)
def test_bodies(name, with_64_bits):
    body = BODIES[name]
    inputs = [jnp.asarray(value) if isinstance(value, np.ndarray) else value for value in body.inputs().values()]
    outputs = [np.asarray(output) for output in launch(body, kiln.metal_kernel, inputs, str)]
    expected = body.expected()
    problems = [body.mismatch(output, got, expected[output]) for output, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


def test_results_are_arrays():
    y = call(eight())
    assert isinstance(y, jax.Array)
    assert jnp.array_equal(y, eight())
    assert jnp.array_equal(call(jnp.arange(16.0).reshape(8, 2).T[1]), jnp.arange(8) * 2 + 1)


def test_dtypes_are_jaxs():
    for dtype in (jnp.int8, jnp.bool_, jnp.bfloat16, jnp.complex64, "float16"):
        assert call(eight(), output_dtypes=[dtype]).dtype == jnp.dtype(dtype)


def message_of(error, function):
    with pytest.raises(error) as raised:
        function()
    assert jnp.array_equal(call(eight()), eight())
    return str(raised.value)


def test_refuses_values_that_are_traced():
    expected = (
        "[metal_kernel] Input `x` is a value in a function that JAX traces (jit, grad, vmap), and has no elements yet: "
        "`kernel.function(…)` makes a function that JAX can trace."
    )
    for function in (jax.jit(call), jax.grad(lambda x: call(x).sum())):
        assert message_of(TypeError, lambda function=function: function(eight())) == expected


def test_refuses_what_it_cannot_read_or_write():
    assert message_of(TypeError, lambda: call(eight().astype(jnp.float8_e5m2))) == (
        "[metal_kernel] Input `x` has dtype float8_e5m2, which no kernel can take."
    )
    assert message_of(TypeError, lambda: call(jax.random.key(1))).startswith("[metal_kernel] Input `x` has dtype key<")
    assert message_of(ValueError, lambda: call(eight(), output_dtypes=["int64"])) == (
        'JAX has arrays of int64 only after jax.config.update("jax_enable_x64", True)'
    )
    assert message_of(ValueError, lambda: call(eight(), stream=1)) == (
        "[metal_kernel] `stream` has no meaning for JAX arrays on the CPU, whose kernels run at once."
    )
    given = {"inputs": [eight()], "outputs": [eight()], "grid": (8, 1, 1), "threadgroup": (8, 1, 1)}
    assert message_of(ValueError, lambda: COPY(**given)) == (
        "[metal_kernel] `outputs` has no meaning for JAX arrays, which cannot be written."
    )


def test_refuses_arrays_that_are_gone():
    gone = "[metal_kernel] Input `x` is a JAX array that was deleted or donated, and has no elements any more."
    x = eight() + 1
    x.delete()
    assert message_of(ValueError, lambda: call(x)) == gone
    donated = eight() + 2
    jax.jit(lambda y: y + 1, donate_argnums=0)(donated).block_until_ready()
    if donated.is_deleted():
        assert message_of(ValueError, lambda: call(donated)) == gone
