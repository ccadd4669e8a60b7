"""Kiln turns the body of a GPU kernel, given as text, into a compiled function of arrays.

Bodies are written in Metal (``metal_kernel``) or in CUDA (``cuda_kernel``), as for the functions of these names in
``mlx.core.fast``. A kernel runs where its arrays are, on an x86-64 CPU or on an NVIDIA GPU. It takes arrays of NumPy, MLX,
PyTorch, JAX and CuPy, whichever are installed; results belong to the library of the inputs.

``kiln.mlx.install()``, after ``import kiln.mlx``, puts these functions into ``mlx.core.fast``, and ``python -m kiln run
program.py`` runs a program written for MLX unmodified. ``python -m kiln doctor`` says what is usable on this machine.
"""

from kiln import _core, errors
from kiln._core import CompiledKernel, CompilePass, CompileRemark, Kernel, Launch
from kiln._functions import ArraySpec, Function, array_namespace
from kiln._kernels import MetalKernel, cuda_kernel, metal_kernel
from kiln.errors import (
    CompileError,
    DeviceError,
    Diagnostic,
    InternalError,
    UnsupportedError,
    WrittenInputWarning,
)

__version__ = _core.version

__all__ = [
    "ArraySpec",
    "CompileError",
    "CompilePass",
    "CompileRemark",
    "CompiledKernel",
    "DeviceError",
    "Diagnostic",
    "Function",
    "InternalError",
    "Kernel",
    "Launch",
    "MetalKernel",
    "UnsupportedError",
    "WrittenInputWarning",
    "array_namespace",
    "cuda_kernel",
    "errors",
    "metal_kernel",
]
