"""The array libraries that Kiln knows. A library is met when one of its arrays or dtypes first comes by.

A new library is a row here, an implementation of ``ArrayLibrary`` (``python/src/array_library.h``), and a test file.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, NamedTuple

from kiln import _core


class Library(NamedTuple):
    name: str
    package: str
    """The package whose modules its types come from."""
    title: str
    how_to_get: str


LIBRARIES = (
    Library("numpy", "numpy", "NumPy", "pip install numpy"),
    Library("mlx", "mlx", "MLX", "pip install 'mlx[cpu]==0.32.4'"),
)

_met: set[str] = set()


def _import(name: str, module: str) -> None:
    (library,) = (library for library in LIBRARIES if library.name == name)
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{library.title} is not installed: {library.how_to_get} ({error})") from error


def meet_by_name(name: str) -> None:
    """Registers a library with ``_core``, once. Raises ImportError that says how to get one that cannot be used."""
    if name in _met:
        return
    if name == "numpy":
        _import("numpy", "numpy")
        _core.register_numpy()
    elif name == "mlx":
        _core.register_library(import_mlx().library(_core.make_compiled_kernel()))
    _met.add(name)


def import_mlx() -> ModuleType:
    """``kiln._mlx``. Raises ImportError that says how to get what is missing."""
    _import("mlx", "mlx.core")  # brings libmlx.so and the type of its arrays
    try:
        from kiln import _mlx
    except ImportError as error:
        raise ImportError(
            f"Kiln's part for MLX cannot be loaded: {error}. It is built for MLX 0.32.4; "
            "pip install 'mlx[cpu]==0.32.4' brings that version, and installing Kiln again builds for the one there."
        ) from error
    return _mlx


def meet(thing: object) -> None:
    """Registers the library that ``thing`` belongs to, if it is one of those known here."""
    kind: Any = thing if issubclass(type(thing), type) else type(thing)
    # ml_dtypes' types are NumPy's as far as kernels go. A class may have set its module to anything.
    modules = (base.__module__ for base in kind.__mro__)
    roots = {module.partition(".")[0] for module in modules if isinstance(module, str)}
    if "ml_dtypes" in roots:
        roots.add("numpy")
    for library in LIBRARIES:
        if library.package in roots and library.package in sys.modules:
            meet_by_name(library.name)
