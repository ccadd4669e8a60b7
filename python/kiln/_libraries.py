"""The array libraries that Kiln knows. A library is met when one of its arrays or dtypes first comes by.

A new library is a row here, an implementation of ``ArrayLibrary`` (``python/src/array_library.h``), and a test file.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import re
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from kiln import _core


class Library(NamedTuple):
    name: str
    package: str
    """The package whose modules its types come from."""
    title: str
    how_to_get: str


_HOW_TO_GET_MLX = "pip install 'mlx[cpu]==0.32.4'"

LIBRARIES = (
    Library("numpy", "numpy", "NumPy", "pip install numpy"),
    Library("mlx", "mlx", "MLX", _HOW_TO_GET_MLX),
    Library("torch", "torch", "PyTorch", "pip install torch"),
    Library("cupy", "cupy", "CuPy", "pip install cupy-cuda13x"),
    Library("jax", "jax", "JAX", "pip install jax"),
)

# How those are registered that ``_core`` itself serves.
_REGISTER = {
    "numpy": _core.register_numpy,
    "torch": _core.register_torch,
    "cupy": _core.register_cupy,
    "jax": _core.register_jax,
}

_met: set[str] = set()

_MLX_MODULE = "kiln._mlx"
_mlx_lock = threading.Lock()


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
    if name == "mlx":
        _core.register_library(import_mlx().library(_core.make_compiled_kernel()))
    else:
        _import(name, name)
        _REGISTER[name]()
    _met.add(name)


def mlx_parts() -> dict[str, Path]:
    """The files of ``kiln._mlx`` for this Python, by the version of MLX, or ``FIRST-LAST``, that each is for: MLX's C++
    interface changes with each version, and that of its Python module with most.
    """
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    files = sorted(Path(__file__).parent.glob(f"_mlx-*{suffix}"), key=lambda file: _numbers(file.name))
    return {file.name.removeprefix("_mlx-").removesuffix(suffix): file for file in files}


def mlx_versions() -> str:
    """The versions of MLX that there are parts for, as messages say them."""
    return ", ".join(serves.replace("-", " to ") for serves in mlx_parts()) or "none"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _mlx_part_for(version: str) -> Path:
    this, others = f"{sys.version_info[0]}.{sys.version_info[1]}", _pythons_with_mlx()
    if others and this not in others:
        raise ImportError(
            f"This wheel of Kiln has no part for MLX for Python {this}, only for {', '.join(others)}. Kernels take the "
            "arrays of other libraries; `pip install .` in a clone of Kiln builds the part for this Python."
        )
    parts = mlx_parts()
    if version in parts:
        return parts[version]
    # MLX that was built from its sources, as 0.33.0.dev20261127, has the interface of no release: the name alone counts.
    if re.fullmatch(r"[\d.]+", version):
        for serves, file in parts.items():
            first, _, last = serves.partition("-")
            if _numbers(first) <= _numbers(version) <= _numbers(last or first):
                return file
    raise ImportError(
        f"Kiln's part for MLX is not there for version {version}; those that are there: {mlx_versions()}. "
        f"{_HOW_TO_GET_MLX} brings a version that Kiln is built for, and installing Kiln from its sources builds for the "
        "one there."
    )


def import_mlx() -> ModuleType:
    """``kiln._mlx``, of the file for the MLX that is installed. Raises ImportError that says how to get what is missing."""
    _import("mlx", "mlx.core")  # brings libmlx.so and the type of its arrays
    if module := sys.modules.get(_MLX_MODULE):
        return module
    with _mlx_lock:
        if module := sys.modules.get(_MLX_MODULE):
            return module
        file = _mlx_part_for(sys.modules["mlx.core"].__version__)
        try:
            spec = importlib.util.spec_from_file_location(_MLX_MODULE, file)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except ImportError as error:
            raise ImportError(
                f"Kiln's part for MLX cannot be loaded: {error}. {_HOW_TO_GET_MLX} brings MLX anew."
            ) from error
        sys.modules[_MLX_MODULE] = module
        return module


def _pythons_with_mlx() -> list[str]:
    """The versions of Python that the installed package has ``_mlx`` for. A wheel for several has one for each."""
    names = (path.name for path in Path(__file__).parent.glob("_mlx-*.cpython-*.so"))
    found = (re.search(r"\.cpython-(\d)(\d+)-", name) for name in names)
    versions = sorted({(int(match[1]), int(match[2])) for match in found if match})
    return [f"{major}.{minor}" for major, minor in versions]


_told_folders = False


def tell_library_folders() -> None:
    """Tells ``_core`` where the packages are that have NVIDIA's libraries, which no loader searches: ``nvidia/*/lib``."""
    global _told_folders
    if _told_folders:
        return
    _told_folders = True
    try:
        found = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):  # something else has that name
        return
    for folder in (found and found.submodule_search_locations) or ():
        _core.add_package_folder(folder)


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


class Handed:
    """Memory on its way to an array library, which takes it by DLPack."""

    def __init__(self, capsule: object, device: tuple[int, int]) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def _make_hand_to_jax() -> Any:
    """``hand_to_jax``: an array of JAX's of memory, on the CPU or a GPU's.

    On the CPU ``jax.dlpack.from_dlpack`` takes 19 microseconds, 3 of them in the function of JAX's that makes the array.
    The others find that function's arguments, and these are the same each time. The function has no name that JAX promises
    to keep: where it is not there, or takes none of these arguments, it is not used again.
    """
    make: Any = None
    device: Any = None
    is_found = False

    def find() -> None:
        nonlocal make, device, is_found
        import jax

        is_found = True
        try:
            from jax._src import lib

            module = getattr(lib, "_jax", None) or lib.xla_client._xla
            make = module.dlpack_managed_tensor_to_buffer
            device = jax.local_devices(backend="cpu")[0]
        except (ImportError, AttributeError):
            make = None

    def hand_to_jax(capsule: object, gpu: int | None = None) -> Any:
        nonlocal make
        if gpu is None:
            if not is_found:
                find()
            if make is not None:
                try:
                    return make(capsule, device, None)
                except TypeError:  # other arguments: the memory is still the capsule's
                    make = None
        import jax

        return jax.dlpack.from_dlpack(Handed(capsule, (1, 0) if gpu is None else (2, gpu)))  # CPU, CUDA

    return hand_to_jax


hand_to_jax = _make_hand_to_jax()
