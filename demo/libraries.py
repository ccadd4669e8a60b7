"""The array libraries in which the demonstration learns."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Library(NamedTuple):
    name: str
    title: str
    """With its version."""
    array: Callable[[np.ndarray], Any]
    value_and_gradient: Callable[[Callable[..., Any]], Callable[..., tuple[Any, Any]]]
    """Of a function of arrays whose result is a number: a function that also gives the gradient of the first array."""


def _mlx() -> Library:
    import mlx.core as mx

    return Library("mlx", f"MLX {importlib.metadata.version('mlx')}", mx.array, mx.value_and_grad)


def _torch() -> Library:
    import torch

    def value_and_gradient(function: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
        def both(first: Any, *others: Any) -> tuple[Any, Any]:
            first = first.detach().requires_grad_()
            value = function(first, *others)
            (gradient,) = torch.autograd.grad(value, first)
            return value.detach(), gradient

        return both

    return Library("torch", f"PyTorch {torch.__version__}", torch.tensor, value_and_gradient)


def _jax() -> Library:
    import jax

    return Library(
        "jax",
        f"JAX {jax.__version__}",
        jax.numpy.asarray,
        lambda function: jax.jit(jax.value_and_grad(function)),
    )


_MAKE = {"torch": _torch, "jax": _jax, "mlx": _mlx}
NAMES = tuple(_MAKE)


def choose(wanted: str = "auto") -> tuple[Library, str]:
    """The library and the reason for it. By itself it is PyTorch or JAX where one of them is installed: MLX always is,
    because the demonstration's first part needs it.
    """
    if wanted != "auto":
        return _MAKE[wanted](), "named by --library"
    for name in NAMES:
        if importlib.util.find_spec(name) is not None:
            others = NAMES[: NAMES.index(name)]
            why = f"{' and '.join(others)} {'is' if len(others) == 1 else 'are'} not" if others else "it is"
            return _MAKE[name](), f"{why} installed; --library names another"
    raise ImportError("none of torch, jax and mlx is installed")
