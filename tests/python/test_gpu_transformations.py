"""Functions of arrays under the transformations of PyTorch, JAX and MLX, with arrays on an NVIDIA GPU.

The programs are those that the other tests run on the CPU. `TESTS_GPU_TRANSFORMATIONS` names a file for what comes of each,
which `tools/gpu_tests.py` puts beside its other results; as bench/results/gpu_transformations.json it makes the column of
GPUs in docs/transformations.md. `TESTS_TRANSFORMATIONS_DEVICE=cpu` runs the same on the CPU, to try this file.
"""

import functools
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import transformation_table
from gpu import count
from kiln import _core

DEVICE = os.environ.get("TESTS_TRANSFORMATIONS_DEVICE", "cuda")
# Before a library is imported.
if DEVICE == "cuda" and count() < 1:
    pytest.skip("no NVIDIA GPU", allow_module_level=True)
# Beside PyTorch in one process.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

Program = Callable[[], None]


class Library(NamedTuple):
    title: str
    version: str
    transformations: dict[str, Program]
    programs: Any = None  # those by dtype and shape
    here: Callable[[Program], Program] = lambda program: program


def of_torch() -> Library | None:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if DEVICE == "cuda" and not torch.cuda.is_available():
        return None
    from torch_transformations import Programs

    programs = Programs(DEVICE)

    def here(program: Program) -> Program:
        def run() -> None:
            if DEVICE == "cuda":
                torch.cuda.set_device(0)  # JAX leaves the last one current
            program()

        return run

    return Library("PyTorch", torch.__version__, programs.transformations, programs, here)


def of_jax() -> Library | None:
    if importlib.util.find_spec("jax") is None:
        return None
    import jax

    try:
        jax.devices(DEVICE)
    except RuntimeError:
        return None
    from jax_transformations import Programs

    programs = Programs(DEVICE)
    return Library("JAX", jax.__version__, programs.transformations, programs, programs.here)


def of_mlx() -> Library | None:
    try:
        import mlx.core as mx
    except ImportError:
        return None
    device = mx.gpu if DEVICE == "cuda" else mx.cpu
    if not mx.is_available(device):
        return None
    import mlx_transformations

    def here(program: Program) -> Program:
        def run() -> None:
            with mx.stream(device):
                program()

        return run

    return Library("MLX", importlib.metadata.version("mlx"), mlx_transformations.TRANSFORMATIONS, here=here)


LIBRARIES = {library.title: library for library in (of_torch(), of_jax(), of_mlx()) if library is not None}
with_programs = pytest.mark.parametrize("title", [library.title for library in LIBRARIES.values() if library.programs])


@functools.cache
def record() -> transformation_table.Record:
    path = os.environ.get("TESTS_GPU_TRANSFORMATIONS")
    gpu = _core.nvidia_status()["gpus"][0]["name"] if DEVICE == "cuda" else "none"
    return transformation_table.Record(Path(path) if path else None, gpu)


@pytest.mark.parametrize(
    ("title", "name"), [(title, name) for title, library in LIBRARIES.items() for name in library.transformations]
)
def test_transformations(title: str, name: str) -> None:
    library = LIBRARIES[title]

    def add(result: str) -> None:
        record().add(title, library.version, name, result)

    try:
        library.here(library.transformations[name])()
    except transformation_table.LibraryLimit as limit:
        add(transformation_table.result_of(limit))
        pytest.xfail(str(limit))
    except Exception as error:  # skipped tests raise none
        add(transformation_table.result_of(error))
        raise
    add(transformation_table.PASSES)


@with_programs
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 5), (1,), (0, 3)])
def test_gradients_by_dtype_and_shape(title: str, dtype: str, shape: tuple[int, ...]) -> None:
    library = LIBRARIES[title]
    library.here(lambda: library.programs.gradients(dtype, shape))()


@with_programs
@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3), (2, 0)])
def test_complex_numbers(title: str, shape: tuple[int, ...]) -> None:
    library = LIBRARIES[title]
    library.here(lambda: library.programs.complex_numbers(shape))()


@with_programs
@pytest.mark.parametrize("shape", [(0, 5), (4, 0)])
def test_empty_arrays_in_programs(title: str, shape: tuple[int, ...]) -> None:
    library = LIBRARIES[title]
    library.here(lambda: library.programs.empty_arrays(shape))()


@with_programs
@pytest.mark.parametrize("name", ["several_outputs", "grid_sample"])
def test_larger_programs(title: str, name: str) -> None:
    library = LIBRARIES[title]
    library.here(getattr(library.programs, name))()
