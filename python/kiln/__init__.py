"""Kiln turns the body of a GPU kernel, given as text, into a compiled function of arrays.

Bodies are written in Metal, as for ``mlx.core.fast.metal_kernel``, and run on this machine's CPU, on the arrays of MLX
and NumPy. ``kiln.mlx.install()``, after ``import kiln.mlx``, puts the same functions where programs written for MLX look
for them.
"""

from kiln import _core, errors
from kiln._core import CompiledKernel, Kernel, Launch
from kiln._kernels import MetalKernel, cuda_kernel, metal_kernel
from kiln.errors import CompileError, DeviceError, Diagnostic, InternalError, UnsupportedError

__version__ = _core.version

__all__ = [
    "CompileError",
    "CompiledKernel",
    "DeviceError",
    "Diagnostic",
    "InternalError",
    "Kernel",
    "Launch",
    "MetalKernel",
    "UnsupportedError",
    "cuda_kernel",
    "errors",
    "metal_kernel",
]
