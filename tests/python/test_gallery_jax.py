"""The program of the gallery for JAX: the kernels against the same step in `jax.numpy`, and that the design works."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("matplotlib")

import jax.numpy as jnp  # noqa: E402

from examples.gallery import jax_lens  # noqa: E402


def step_reference(u, before, speed):
    padded = jnp.pad(u, 1)
    neighbours = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    return 2 * u - before + speed * (neighbours - 4 * u)


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (65, 9)])
def test_a_step_and_its_gradients_are_those_of_jax(shape):
    generator = np.random.default_rng(shape[1])
    u, before, cotangent = (jnp.asarray(generator.normal(size=shape), jnp.float32) for _ in range(3))
    speed = jnp.asarray(generator.uniform(0.1, 0.3, shape), jnp.float32)
    for function in (lambda f: f, jax.jit):
        after, back = jax.vjp(function(jax_lens.step), u, before, speed)
        expected, expected_back = jax.vjp(step_reference, u, before, speed)
        # Sums of seven values, most below 4.
        np.testing.assert_allclose(after, expected, atol=1e-5)
        for gradient, reference in zip(back(cotangent), expected_back(cotangent), strict=True):
            np.testing.assert_allclose(gradient, reference, atol=1e-5)


def test_the_gradient_through_many_steps(monkeypatch):
    design = jax_lens.Design(20, 30)
    slow = design.start() + 0.5 * jax.random.normal(jax.random.key(0), design.start().shape)
    gradient = jax.jit(jax.grad(design.energy))(slow)
    monkeypatch.setattr(jax_lens, "step", step_reference)
    expected = jax.grad(design.energy)(slow)
    largest = float(jnp.abs(expected).max())
    assert largest > 0
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-3 * largest)


def test_borders_absorb_waves():
    keeps = jax_lens.borders(40, 60)
    assert keeps.shape == (40, 60) and np.all(keeps[14:-14, 14:-14] == 1)
    assert keeps.min() == keeps[0].max() < 0.97
    heights = jax_lens.waves(jnp.full((40, 60), jax_lens.FREE), 400)
    assert bool(jnp.isfinite(heights).all())


def test_the_lens_gathers_waves():
    design = jax_lens.Design(32, 48)
    gradient = jax.jit(jax.value_and_grad(lambda slow: -jnp.log(design.energy(slow))))
    slow, values = jax_lens.adam(gradient, design.start(), 12, rate=0.3)
    assert len(values) == 12 and values[-1] < values[0]
    assert float(design.energy(slow)) > 1.5 * float(design.energy(design.start()))
    speed = design.speed(slow)
    outside = np.ones(speed.shape, bool)
    outside[:, design.left : design.right] = False
    assert np.all(np.asarray(speed)[outside] == jax_lens.FREE) and float(speed.min()) > jax_lens.FREE / 4
