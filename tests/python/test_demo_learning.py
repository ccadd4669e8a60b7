"""The learning part of `make demo`, in each array library that is there, and how one is chosen."""

from __future__ import annotations

import importlib.util

import kiln
import numpy as np
import pytest

pytest.importorskip("matplotlib").use("Agg")

from demo import learn, libraries, photograph  # noqa: E402
from demo.affine import affine_warp, gradient  # noqa: E402

TITLES = {"mlx": "MLX", "torch": "PyTorch", "jax": "JAX"}


@pytest.mark.parametrize("name", libraries.NAMES)
def test_the_warp_is_found(name, tmp_path):
    pytest.importorskip(name)
    library, reason = libraries.choose(name)
    assert (library.name, reason) == (name, "named by --library")
    progress: list[str] = []
    report = learn.run(np.array(photograph.load()), tmp_path / "learn.png", progress.append, library)
    assert report.failures() == []
    assert report.library.split() == [TITLES[name], library.title.split()[1]]
    assert (tmp_path / "learn.png").stat().st_size > 10_000 and len(progress) == 7
    # The table of `make demo` has these.
    assert len(affine_warp.history) >= 2 * learn.STEPS and len(gradient.history) >= learn.STEPS


@pytest.mark.parametrize("name", libraries.NAMES)
def test_the_gradient_is_that_of_finite_differences(name):
    pytest.importorskip(name)
    library, _ = libraries.choose(name)
    rng = np.random.default_rng(0)
    # Smooth, so that differences over a pixel are right.
    y, x = np.mgrid[0:48, 0:40] / 8
    image = (np.sin(x) * np.cos(y))[..., None].astype(np.float32)
    weight = rng.normal(size=image.shape).astype(np.float32)
    at = np.array([0.7, 0.1, 0.05, -0.1, 0.8, -0.03])

    def value(parameters: np.ndarray) -> float:
        warped = affine_warp(image, parameters.astype(np.float32))
        return float((np.asarray(warped, np.float64) * weight).sum())

    arrays = [library.array(np.asarray(a, np.float32)) for a in (at, image, weight)]
    got, gradient = library.value_and_gradient(lambda p, image, weight: (affine_warp(image, p) * weight).sum())(*arrays)
    np.testing.assert_allclose(float(got), value(at), rtol=1e-4)
    step = 2e-3
    expected = [(value(at + step * unit) - value(at - step * unit)) / (2 * step) for unit in np.eye(6)]
    np.testing.assert_allclose(np.asarray(gradient), expected, rtol=0.02, atol=0.05 * np.abs(expected).max())


def test_what_is_learnt_is_a_function_of_arrays_of_all_libraries():
    assert isinstance(affine_warp, kiln.Function)


@pytest.mark.parametrize(
    ("there", "chosen", "reason"),
    [
        ({"torch", "jax", "mlx"}, "torch", "it is installed; --library names another"),
        ({"jax", "mlx"}, "jax", "torch is not installed; --library names another"),
        ({"mlx"}, "mlx", "torch and jax are not installed; --library names another"),
    ],
)
def test_the_library_is_one_that_is_there(there, chosen, reason, monkeypatch):
    made = libraries.Library(chosen, "", lambda array: array, lambda function: function)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in there else None)
    monkeypatch.setitem(libraries._MAKE, chosen, lambda: made)
    assert libraries.choose() == (made, reason)
