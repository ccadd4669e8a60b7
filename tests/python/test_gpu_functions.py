"""Functions of arrays on an NVIDIA GPU, in PyTorch and JAX."""

import os
from typing import Any

import numpy as np
import pytest
from function_definitions import grid_sample, one_by_one, product, square
from gpu import needs_gpu

pytestmark = needs_gpu
# Beside PyTorch in one process.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

RNG = np.random.default_rng(2)
X = RNG.normal(size=(64, 50)).astype(np.float32)
IMAGE = RNG.normal(size=(2, 9, 7, 3)).astype(np.float32)
PLACES = (RNG.normal(size=(2, 4, 5, 2)) * 0.6).astype(np.float32)
WEIGHTS = RNG.normal(size=(2, 4, 5, 3)).astype(np.float32)


@pytest.fixture
def torch() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    torch.cuda.set_device(0)  # where JAX was opened, which leaves the last one current
    return torch


@pytest.fixture
def jax() -> Any:
    jax = pytest.importorskip("jax")
    try:
        jax.devices("cuda")
    except RuntimeError:
        pytest.skip("JAX has no GPU")
    return jax


def close(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=tolerance, atol=tolerance)


# ---- PyTorch


def torch_gradient(function, x):
    x = x.clone().requires_grad_()
    function(x).backward()
    return x.grad.cpu()


def test_gradients_in_torch(torch):
    x = torch.tensor(X, device="cuda")
    for transform in (lambda f: f, lambda f: torch.compile(f, fullgraph=True)):
        close(square(x).cpu(), X**2)
        got = torch_gradient(transform(lambda x: product(square(torch.sin(x)), x).sum()), x)
        close(got, torch_gradient(lambda x: (torch.sin(x) ** 2 * x).sum(), x), 1e-4)
    close(torch.vmap(product, in_dims=(0, None))(x, x[0]).cpu(), X * X[0])
    close(torch.vmap(one_by_one, in_dims=(0, None))(x[:5], x[0]).cpu(), X[:5] * X[0])
    # The bits are the CPU's.
    assert np.array_equal(square(x).cpu().numpy(), square(X))


def test_streams_and_graphs_in_torch(torch):
    x = torch.tensor(X, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        program = torch.compile(lambda x: square(square(x)), fullgraph=True)
        program(x)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = program(x)
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    close(y.cpu(), np.full_like(X, 81))


def test_grid_sample_in_torch(torch):
    def own(image, places):
        return torch.nn.functional.grid_sample(image.permute(0, 3, 1, 2), places, align_corners=False).permute(
            0, 2, 3, 1
        )

    weights = torch.tensor(WEIGHTS, device="cuda")
    results = []
    for function in (grid_sample, own):
        inputs = [torch.tensor(value, device="cuda", requires_grad=True) for value in (IMAGE, PLACES)]
        y = function(*inputs)
        results.append([y.detach(), *torch.autograd.grad((y * weights).sum(), inputs)])
    for got, expected in zip(*results, strict=True):
        close(got.cpu(), expected.cpu(), 1e-4)


# ---- JAX


def test_programs_in_jax(jax):
    jnp = jax.numpy
    x = jax.device_put(X, jax.devices("cuda")[0])

    def loss(x):
        return product(square(jnp.sin(x)), x).sum()

    def loss_of_operations(x):
        return (jnp.sin(x) ** 2 * x).sum()

    assert np.array_equal(np.asarray(square(x)), square(X))
    for transform in (lambda f: f, jax.jit):
        close(transform(jax.grad(loss))(x), jax.grad(loss_of_operations)(x), 1e-4)
    close(jax.jvp(loss, (x,), (x,))[1], jax.jvp(loss_of_operations, (x,), (x,))[1], 1e-3)
    close(jax.jit(jax.vmap(product, in_axes=(0, None)))(x, x[0]), X * X[0])
    close(jax.jit(jax.vmap(one_by_one, in_axes=(0, None)))(x[:5], x[0]), X[:5] * X[0])
    close(jax.lax.scan(lambda c, _: (square(c), None), x, None, length=3)[0], X**8, 1e-4)


def test_launches_are_ordered_with_xlas_in_jax(jax):
    """On XLA's stream, without waiting: each launch reads what the one before it has written."""
    jnp = jax.numpy
    x = jax.device_put(np.full((1 << 22,), 1.0, np.float32), jax.devices("cuda")[0])

    @jax.jit
    def chain(x):
        for _ in range(50):
            x = product(x * 2, jnp.full_like(x, 0.5))
        return x.sum()

    for _ in range(5):
        assert chain(x) == 1 << 22


def test_numbers_and_empty_arrays_in_jax(jax):
    x = jax.device_put(X[:0], jax.devices("cuda")[0])
    assert square(x).shape == (0, 50)


def test_grid_sample_in_jax(jax):
    image, places, weights = (jax.device_put(value, jax.devices("cuda")[0]) for value in (IMAGE, PLACES, WEIGHTS))
    on_cpu = [jax.device_put(value, jax.devices("cpu")[0]) for value in (IMAGE, PLACES, WEIGHTS)]

    def gradients(image, places, weights):
        loss = lambda image, places: (grid_sample(image, places) * weights).sum()  # noqa: E731
        return jax.jit(jax.grad(loss, argnums=(0, 1)))(image, places)

    for got, expected in zip(gradients(image, places, weights), gradients(*on_cpu), strict=True):
        close(got, expected, 1e-4)


def test_errors_in_jax(jax):
    from function_definitions import elementwise

    broken = elementwise("broken", ["x"], "y[i] = x[i] + nothing;")
    x = jax.device_put(X, jax.devices("cuda")[0])
    with pytest.raises(Exception, match="use of undeclared identifier 'nothing'"):
        jax.jit(broken)(x).block_until_ready()
    close(square(x), X**2)
