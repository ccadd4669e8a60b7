"""Functions of arrays in all libraries at once: threads, and processes that end while libraries run."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import function_definitions as definitions
import numpy as np
import pytest
from function_definitions import product, square

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")
import mlx.core as mx  # noqa: E402

X = np.random.default_rng(3).normal(size=(8, 5)).astype(np.float32)


def in_torch(function):
    x = torch.from_numpy(X).requires_grad_()
    function(x).sum().backward()
    batch = torch.vmap(product, in_dims=(0, None))(x.detach(), x.detach()[0])
    return x.grad.numpy(), batch.numpy()


def in_jax(function):
    gradient = jax.jit(jax.grad(lambda x: function(x).sum()))(X)
    return np.asarray(gradient), np.asarray(jax.vmap(product, in_axes=(0, None))(jax.numpy.asarray(X), X[0]))


def in_mlx(function):
    # A stream belongs to its thread.
    with mx.stream(mx.new_stream(mx.cpu)):
        x = mx.array(X)
        gradient = mx.grad(lambda x: function(x).sum())(x)
        batch = mx.vmap(product, in_axes=(0, None))(x, x[0])
        mx.eval(gradient, batch)
        return np.array(gradient), np.array(batch)


def test_threads_of_all_libraries():
    """32 threads that make kernels, trace them and launch them."""
    failures: list[Any] = []
    begin = threading.Barrier(32)

    def work(number):
        try:
            function = definitions.elementwise(f"of_{number % 8}", ["x"], f"y[i] = x[i] * x[i] * {number % 8 + 1};")
            scale = number % 8 + 1
            function.vjp(lambda x, cotangent, _: product(x, cotangent) * (2.0 * scale))
            begin.wait()
            for _ in range(3):
                gradient, batch = (in_torch, in_jax, in_mlx)[number % 3](function)
                np.testing.assert_allclose(gradient, 2 * scale * X, rtol=1e-5)
                np.testing.assert_allclose(batch, X * X[0], rtol=1e-5)
        except BaseException as error:
            failures.append((number, error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    assert failures == []


def test_one_definition_gives_the_same_bits_everywhere():
    """In PyTorch, JAX, MLX and NumPy, values and gradients."""
    weights = np.random.default_rng(4).normal(size=X.shape).astype(np.float32)

    x = torch.from_numpy(X).requires_grad_()
    y = square(x)
    y.backward(torch.from_numpy(weights))
    results = [(y.detach().numpy(), x.grad.numpy())]
    y, pullback = jax.vjp(square, jax.numpy.asarray(X))
    results.append((np.asarray(y), np.asarray(pullback(jax.numpy.asarray(weights))[0])))
    (y,), (gradient,) = mx.vjp(square, [mx.array(X)], [mx.array(weights)])
    results.append((np.array(y), np.array(gradient)))
    assert all(np.array_equal(one, square(X)) for one, _ in results)
    assert all(np.array_equal(one, results[0][1]) for _, one in results)


@pytest.mark.parametrize("library", ["torch", "jax", "mlx"])
def test_interpreters_end(library):
    """With functions, graphs and compiled programs that nothing has let go of."""
    programs = {
        "torch": "import torch; x = torch.ones(4, requires_grad=True); y = square(x); z = square(y.sum().reshape(1))",
        "jax": "import jax; f = jax.jit(jax.grad(lambda x: square(x).sum())); y = f(jax.numpy.ones(4))",
        "mlx": "import mlx.core as mx; x = mx.ones(4); y = mx.grad(lambda x: square(x).sum())(x); z = square(square(x))",
    }
    text = f"""
        import sys
        sys.path.insert(0, {str(Path(definitions.__file__).parent)!r})
        from function_definitions import square
        {programs[library]}
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
