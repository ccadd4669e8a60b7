"""Kernels on JAX's arrays on a GPU."""

import os

import kiln
import pytest
from gpu import needs_gpu

# Beside PyTorch and CuPy in one process, and Kiln's own outputs.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(not any(d.platform == "gpu" for d in jax.devices()), reason="JAX has no part for NVIDIA GPUs"),
]

INDEX = "uint i = thread_position_in_grid.x; "
COPY = kiln.metal_kernel("copy", ["x"], ["y"], INDEX + "y[i] = x[i];")


def call(kernel, x, **changes):
    keywords = {
        "inputs": [x],
        "grid": (x.size, 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
    }
    return kernel(**{**keywords, **changes})[0]


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "bfloat16", "float32", "complex64"],
)
def test_dtypes(dtype):
    x = jnp.arange(300).astype(dtype)
    y = call(COPY, x)
    assert isinstance(y, jax.Array) and y.dtype == x.dtype and y.devices() == x.devices()
    assert bool((x == y).all())


def test_results_go_on_in_jax():
    double = kiln.metal_kernel("double_it", ["x"], ["y"], INDEX + "y[i] = 2 * x[i];")
    x = jnp.arange(1 << 20, dtype=jnp.float32)
    expected = x
    for _ in range(20):
        x = call(double, x) - 1
        expected = 2 * expected - 1
        x, expected = x % 1000, expected % 1000
    assert bool((x == expected).all())
    assert COPY.history is not None


def test_memory_is_given_back():
    x = jnp.zeros(1 << 26, jnp.float32)
    for _ in range(2000):  # 512 GB in all
        x = call(COPY, x)
    assert bool((x == 0).all())


def test_traced_values_are_refused():
    with pytest.raises(TypeError, match="is a value in a function that JAX traces"):
        jax.jit(lambda x: call(COPY, x))(jnp.zeros(8))


def test_streams_are_refused():
    with pytest.raises(ValueError, match="`stream` has no meaning for JAX arrays, whose streams are JAX's own"):
        call(COPY, jnp.zeros(8), stream=1)
