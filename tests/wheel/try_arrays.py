"""Runs a kernel of an installed Kiln on the arrays of the libraries that are named: torch, jax."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import kiln
import numpy as np

BODY = "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];"


def main(names: list[str]) -> None:
    x = np.arange(100, dtype=np.float32)
    make: dict[str, Callable[[Any], Any]] = {
        "torch": lambda module: module.from_numpy(x),
        "jax": lambda module: module.numpy.asarray(x),
    }
    for name in names:
        module = importlib.import_module(name)
        kernel = kiln.metal_kernel(f"try_{name}", ["x"], ["y"], BODY)
        (y,) = kernel(
            inputs=[make[name](module)], output_shapes=[(100,)], output_dtypes=["float32"], grid=100, threadgroup=64
        )
        assert type(y).__module__.partition(".")[0] in (name, f"{name}lib"), type(y)
        np.testing.assert_array_equal(np.asarray(y), 2 * x)
        print(f"{name} {module.__version__}: right")


if __name__ == "__main__":
    main(sys.argv[1:])
