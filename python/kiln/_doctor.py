"""``python -m kiln doctor``: what is usable here, and for what is not, why and what would make it so."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Callable
from typing import NamedTuple

import kiln
from kiln import _core, _libraries

_BODY = "out[thread_position_in_grid.x] = 2 * inp[thread_position_in_grid.x];"


class Finding(NamedTuple):
    name: str
    usable: bool
    detail: str
    """Versions and sizes; or why it is not usable and what would make it so."""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _kernel(name: str) -> kiln.Kernel:
    return kiln.metal_kernel(name, ["inp"], ["out"], _BODY)


def _keywords(inputs: object, dtype: object) -> dict:
    return {
        "inputs": [inputs],
        "grid": (4, 1, 1),
        "threadgroup": (4, 1, 1),
        "output_shapes": [(4,)],
        "output_dtypes": [dtype],
    }


def _reason(check: Callable[[], str]) -> tuple[bool, str]:
    """Runs a check, which returns details; what it raises is the reason that something is not usable."""
    try:
        return True, check()
    except Exception as error:
        return False, f"{error}" or type(error).__name__


def _check_compiler() -> str:
    path = _core.compiler_path()
    kernel = kiln.metal_kernel("doctor_compiler", ["inp"], ["out"], "out[thread_position_in_grid.x] = 2 * inp;")
    compiled = kernel.compile(**_keywords(2.0, "float32"))
    return f"{path}, compiled a kernel in {compiled.compile_ms:.1f} ms"


def _check_cpu() -> str:
    return f"{_core.cpu_architecture()}, {_core.cpu_threads()} threads, scalar engine"


def _check_numpy() -> str:
    import numpy as np

    inputs = np.arange(4, dtype=np.float32)
    (out,) = _kernel("doctor_numpy")(**_keywords(inputs, np.float32))
    if not np.array_equal(out, 2 * inputs):
        raise RuntimeError("a kernel gave wrong numbers; this is a defect of Kiln")
    bfloat16 = "with bfloat16" if importlib.util.find_spec("ml_dtypes") else "without bfloat16: pip install ml_dtypes"
    return f"{_version('numpy')}, {bfloat16}"


def _check_mlx() -> str:
    _libraries.import_mlx()
    import mlx.core as mx

    inputs = mx.arange(4, dtype=mx.float32)
    (out,) = _kernel("doctor_mlx")(**_keywords(inputs, mx.float32))
    if not mx.array_equal(out, 2 * inputs).item():
        raise RuntimeError("a kernel gave wrong numbers; this is a defect of Kiln")
    return f"{_version('mlx')}, {'with' if _libraries.import_mlx().has_gpu() else 'without'} a GPU of its own"


def findings() -> dict[str, list[Finding]]:
    """What the report shows, by heading."""

    def found(name: str, check: Callable[[], str]) -> Finding:
        return Finding(name, *_reason(check))

    def later(name: str, what: str) -> Finding:
        return Finding(name, False, f"this version of Kiln has no {what}")

    return {
        "Compiler": [found("libkiln_compiler.so", _check_compiler)],
        "Targets": [
            found("cpu", _check_cpu),
            later("nvidia", "NVIDIA target; kernels run on the CPU"),
        ],
        "Array libraries": [
            found("numpy", _check_numpy),
            found("mlx", _check_mlx),
            later("torch", "part for PyTorch; arrays go through NumPy: tensor.numpy()"),
            later("jax", "part for JAX; arrays go through NumPy: numpy.asarray(array)"),
            later("cupy", "part for CuPy"),
        ],
    }


def main() -> int:
    """Prints the report. 0 where the compiler, a target and an array library are usable."""
    print(f"Kiln {kiln.__version__}, Python {platform.python_version()}, {platform.platform()}")
    report = findings()
    for heading, rows in report.items():
        print(f"\n{heading}")
        width = max(len(row.name) for row in rows)
        for row in rows:
            first, *rest = row.detail.splitlines() or [""]
            print(f"  {row.name:{width}}  {'usable    ' if row.usable else 'not usable'}  {first}")
            for line in rest:
                print(f"  {'':{width}}              {line}")
    print("\nSettings")
    for variable, values, meaning in _core.settings():
        value = os.environ.get(variable)
        print(f"  {variable} {'= ' + value if value else 'is not set'}: {meaning} ({values})")
    return 0 if all(any(row.usable for row in rows) for rows in report.values()) else 1
