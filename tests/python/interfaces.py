"""Every way into Kiln, called alike: what the tests of wrong, odd and random calls share."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
from mlx_kernels import to_mlx, to_numpy

EIGHT = np.arange(8, dtype=np.float32)
INCREMENT = "uint i = thread_position_in_grid.x;\nout[i] = x[i] + 1;"

METHODS = ("__call__", "source_for", "compile")


class Item(NamedTuple):
    """A value that is the only one of a list, or of a dictionary under the right name."""

    value: Any


# What the class generation takes when a kernel is made.
_MADE_WITH = ("grid", "threadgroup", "output_shapes", "output_dtypes", "verbose", "init_value")


class Interface(NamedTuple):
    module: Any  # kiln, kiln.mlx, or mx.fast while Kiln's functions are there
    generation: str  # "list", "dictionary", "class" or "cuda"

    @property
    def label(self) -> str:
        return f"{self.module.__name__} {self.generation}"

    @property
    def prefix(self) -> str:
        return "[cuda_kernel]" if self.generation == "cuda" else "[metal_kernel]"

    @property
    def library(self) -> str:
        return "numpy" if self.module is kiln else "mlx"

    @property
    def arrays(self) -> str:
        """As messages call the library's arrays."""
        return "NumPy arrays" if self.library == "numpy" else "MLX arrays"

    @property
    def by_name(self) -> bool:
        return self.generation in ("dictionary", "class")

    def array(self, value: Any) -> Any:
        return value if self.library == "numpy" else to_mlx(value)

    def container(self, name: str, value: Any) -> Any:
        return {name: value} if self.by_name else [value]

    def right(self) -> dict[str, Any]:
        """The keywords of a call that is right."""
        return {
            "inputs": self.container("x", self.array(EIGHT)),
            "output_shapes": self.container("out", (8,)),
            "output_dtypes": self.container("out", "float32"),
            "grid": (8, 1, 1),
            "threadgroup": (8, 1, 1),
        }

    @property
    def function(self) -> Any:
        """What makes kernels."""
        name = {"cuda": "cuda_kernel", "class": "MetalKernel"}.get(self.generation, "metal_kernel")
        with kiln.mlx.install() if self.module is mx.fast else contextlib.nullcontext():
            return getattr(self.module, name)

    def make(self, /, **changes: Any) -> Any:
        """A kernel; ``...`` leaves an argument out."""
        arguments: dict[str, Any] = {"name": "k", "source": INCREMENT}
        if not self.by_name:
            arguments |= {"input_names": ["x"], "output_names": ["out"]}
        if self.generation == "class":
            arguments |= {name: value for name, value in self.right().items() if name in _MADE_WITH}
        arguments = {name: value for name, value in (arguments | changes).items() if value is not ...}
        return self.function(**arguments)

    def call(self, method: str = "__call__", /, made: dict[str, Any] | None = None, **changes: Any) -> Any:
        """Makes a kernel and calls it with keywords that are right but for the changes."""
        keywords = self.right() | changes
        for name, value in keywords.items():
            if isinstance(value, Item):
                keywords[name] = self.container("x" if name == "inputs" else "out", value.value)
        keywords = {name: value for name, value in keywords.items() if value is not ...}
        if self.generation != "class":
            return getattr(self.make(**(made or {})), method)(**keywords)
        ours = {name: keywords.pop(name) for name in _MADE_WITH if name in keywords}
        kernel = self.make(**(made or {}), **ours)
        if "template" in keywords:
            kernel.template(**keywords["template"])
        return getattr(kernel, method)(**keywords["inputs"])

    def first(self, result: Any) -> np.ndarray:
        """The first output of a call, evaluated."""
        out = next(iter(result.values())) if self.by_name else result[0]
        return to_numpy(out) if isinstance(out, mx.array) else out

    def works(self) -> bool:
        """Whether a call that is right still gives what it should."""
        if self.generation == "cuda":
            return "__global__ void custom_kernel_k" in self.call("source_for")
        return np.array_equal(self.first(self.call()), EIGHT + 1)


INTERFACES = tuple(
    Interface(module, generation)
    for module, generations in (
        (kiln, ("list", "dictionary", "class", "cuda")),
        (kiln.mlx, ("list", "dictionary", "class", "cuda")),
        (mx.fast, ("list", "dictionary", "class", "cuda")),
    )
    for generation in generations
)


def raised(interface: Interface, error: type[BaseException], call: Any, /, *arguments: Any, **keywords: Any) -> Any:
    """What a call raises, which must be of just this class; a call that is right follows it."""
    try:
        call(*arguments, **keywords)
    except BaseException as exception:
        assert type(exception) is error, f"{type(exception).__name__}: {exception}"
        assert interface.works()
        return exception
    raise AssertionError(f"no {error.__name__} was raised")


def raising(method: str, error: BaseException, **others: Any) -> Any:
    """An object of a class whose ``method`` raises ``error``."""

    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise error

    return type("Odd", (), {method: fail, **others})()
