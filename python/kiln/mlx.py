"""Kiln for programs written for MLX.

``metal_kernel``, ``cuda_kernel`` and ``MetalKernel`` here always give MLX arrays. ``install()`` puts them at
``mlx.core.fast``, so that a program written for MLX on a Mac runs unmodified on Linux::

    import kiln.mlx
    kiln.mlx.install()

or, for the length of a block::

    with kiln.mlx.install():
        ...
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mlx.core as mx

from kiln import _kernels, _libraries
from kiln._core import Kernel

_libraries.meet_by_name("mlx")

# Whether this thread is inside mx.export_function. What is exported must load on a Mac, so the installed functions then
# hand over to MLX's own.
_exporting: contextvars.ContextVar[bool] = contextvars.ContextVar("kiln_exporting", default=False)


def metal_kernel(name: str, *arguments: Any, **keywords: Any) -> Kernel:
    return _kernels.metal_kernel_for("mlx", name, *arguments, **keywords)


metal_kernel.__doc__ = _kernels.metal_kernel.__doc__
metal_kernel.__signature__ = _kernels.metal_kernel.__signature__


def cuda_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    shared_memory: int = 0,
    compile_options: Mapping[str, Any] | None = None,
) -> Kernel:
    return _kernels.cuda_kernel_for(
        "mlx",
        name,
        input_names,
        output_names,
        source,
        header,
        ensure_row_contiguous,
        shared_memory,
        compile_options,
    )


cuda_kernel.__doc__ = _kernels.cuda_kernel.__doc__


class MetalKernel(_kernels.MetalKernel):
    __doc__ = _kernels.MetalKernel.__doc__
    _library = "mlx"


class _ExportableKernel:
    """A kernel of the list generation that becomes MLX's own inside ``mx.export_function``."""

    def __init__(self, kernel: Kernel, make_original: Any) -> None:
        self._kernel = kernel
        self._make_original = make_original
        self._original = None

    def __call__(self, **keywords: Any) -> Any:
        if not _exporting.get():
            return self._kernel(**keywords)
        if self._original is None:
            self._original = self._make_original()
        if keywords.get("stream") is not None:
            # The name mx.gpu may mean the CPU here; what is exported is for a GPU.
            keywords["stream"] = _original_gpu
        return self._original(**keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __repr__(self) -> str:
        return repr(self._kernel)


def _installed(interface: str, original: Any) -> Any:
    ours = globals()[interface]

    @functools.wraps(ours)
    def make(*arguments: Any, **keywords: Any) -> Any:
        kernel = ours(*arguments, **keywords)
        return _ExportableKernel(kernel, lambda: original(*arguments, **keywords))

    return make


def _marks_export(function):
    @functools.wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        token = _exporting.set(True)
        try:
            return function(*arguments, **keywords)
        finally:
            _exporting.reset(token)

    return wrapper


class _Exporter:
    """What mx.exporter returns: each call traces one more set of arguments."""

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return _marks_export(self._exporter)(*arguments, **keywords)

    def __enter__(self) -> _Exporter:
        self._exporter.__enter__()
        return self

    def __exit__(self, *exception: Any) -> Any:
        return self._exporter.__exit__(*exception)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exporter, name)


def _installed_exporter(original: Any) -> Any:
    return functools.wraps(original)(lambda *arguments, **keywords: _Exporter(original(*arguments, **keywords)))


_MISSING = object()

# What stood at the names where Kiln's functions are now, by module and name.
_originals: dict[tuple[Any, str], Any] = {}
_original_gpu = mx.gpu


def _take_back(key: tuple[Any, str]) -> None:
    module, name = key
    original = _originals.pop(key)
    if original is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, original)


class _Installation(contextlib.AbstractContextManager):
    """What one call of ``install`` has put in place. As a context manager it takes that back at the end, and leaves
    what an earlier call has put in place."""

    def __init__(self) -> None:
        self._keys: list[tuple[Any, str]] = []

    def put(self, module: Any, name: str, make: Callable[[Any], Any]) -> None:
        """``make`` is given what stands there."""
        key = (module, name)
        if key in _originals:
            return
        original = getattr(module, name, _MISSING)
        setattr(module, name, make(original))
        _originals[key] = original
        self._keys.append(key)

    def __exit__(self, *exception: Any) -> None:
        for key in self._keys:
            if key in _originals:
                _take_back(key)


def install(metal: bool = False) -> contextlib.AbstractContextManager:
    """Puts Kiln's functions at ``mlx.core.fast.metal_kernel``, ``.cuda_kernel`` and ``.MetalKernel``.

    Args:
      metal: also opens the gates that programs ask before they make a kernel: ``mx.metal.is_available()`` is true,
        and where MLX has no GPU, the name ``mx.gpu`` means the CPU device. This reaches Python code that looks these
        names up when it runs; it cannot reach names that were imported before (``from mlx.core import gpu``) nor
        MLX's own C++ code.

    Returns:
      A context manager that takes back at its end what this call has put in place; it need not be used.

    Inside ``mx.export_function`` and ``mx.exporter`` the installed functions hand over to MLX's own.
    """
    installation = _Installation()
    for interface in ("metal_kernel", "cuda_kernel"):
        installation.put(mx.fast, interface, functools.partial(_installed, interface))
    installation.put(mx.fast, "MetalKernel", lambda _: MetalKernel)
    installation.put(mx, "export_function", _marks_export)
    installation.put(mx, "exporter", _installed_exporter)
    if metal:
        installation.put(mx.metal, "is_available", lambda _: lambda: True)
        if not _libraries.import_mlx().has_gpu():
            installation.put(mx, "gpu", lambda _: mx.cpu)
    return installation


def uninstall() -> None:
    """Takes back everything that ``install`` has put in place. Does nothing where nothing is installed."""
    for key in list(_originals):
        _take_back(key)
