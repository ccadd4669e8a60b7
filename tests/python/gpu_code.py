"""Code of bodies for any architecture, and what `ptxas` says of PTX. No GPU is needed."""

import operator
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bodies
import kiln
import numpy as np
from kiln import _core

# Of the wheel that tests/requirements.txt names; a toolkit's own may be older than what Kiln writes.
PTXAS = next(
    (file for folder in sys.path if (file := Path(folder) / "nvidia" / "cuda_nvcc" / "bin" / "ptxas").exists()),
    Path("ptxas of the wheel nvidia-cuda-nvcc-cu12"),
)


def array(value: Any) -> tuple[str, list[int], list[int]]:
    """An input, as `compile_ahead` takes it: dtype, shape, strides in elements."""
    if not isinstance(value, np.ndarray | np.generic):
        if not isinstance(value, bool | float | complex):
            value = operator.index(value)
            value = np.asarray(value, np.int32 if -(2**31) <= value < 2**31 else np.int64)
        value = np.asarray(value)
        value = value.astype({"float64": "float32", "complex128": "complex64"}.get(value.dtype.name, value.dtype.name))
    return value.dtype.name, list(value.shape), [stride // value.itemsize for stride in value.strides]


def code_of(
    kernel: kiln.Kernel,
    inputs: Iterable[Any],
    outputs: Iterable[tuple[str, Iterable[int]]],
    template: Iterable[tuple[str, Any]],
    architecture: str,
    *,
    specialized: bool = True,
) -> bytes:
    """What the cache would keep."""
    *_, entry = _core.compile_ahead(
        kernel=kernel,
        inputs=[array(value) for value in inputs],
        outputs=[(dtype, list(shape)) for dtype, shape in outputs],
        template=list(template),
        input_names=[],
        output_names=[],
        specialized=specialized,
        architecture=architecture,
    )
    return entry


def code_of_body(body: Any, kernel: kiln.Kernel, architecture: str) -> bytes:
    def name_of(dtype: Any) -> str:
        return np.dtype(bodies.DTYPES[dtype]).name

    inputs: list[Any] = list(body.inputs().values())
    if body.ensure_row_contiguous:
        inputs = [np.array(value, order="C") if isinstance(value, np.ndarray) else value for value in inputs]
    outputs = [(name_of(dtype), shape) for shape, dtype in body.outputs.values()]
    template = [(k, name_of(v) if isinstance(v, bodies.Dtype) else v) for k, v in body.template]
    return code_of(kernel, inputs, outputs, template, architecture)


def ptx_in(code: bytes) -> str:
    begin = code.index(b".version ")
    return code[begin : code.index(b"\0", begin)].decode()


def ptx_of(
    kernel: kiln.Kernel,
    inputs: Iterable[Any],
    outputs: Iterable[tuple[str, Iterable[int]]],
    template: Iterable[tuple[str, Any]] = (),
    architecture: str = "sm_90",
    *,
    specialized: bool = True,
) -> str:
    return ptx_in(code_of(kernel, inputs, outputs, template, architecture, specialized=specialized))


def ptx_of_body(body: Any, kernel: kiln.Kernel, architecture: str = "sm_90") -> str:
    return ptx_in(code_of_body(body, kernel, architecture))


def assemble(ptx: str, architecture: str, folder: Path) -> str:
    """What `ptxas` has to say against it; empty where it takes it."""
    path = folder / "kernel.ptx"
    path.write_text(ptx)
    arguments = [str(PTXAS), "-O0", f"-arch={architecture}", str(path), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""
