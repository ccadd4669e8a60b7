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
import inspect
from collections.abc import Callable
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


def cuda_kernel(*arguments: Any, **keywords: Any) -> Kernel:
    return _kernels.cuda_kernel_for("mlx", *arguments, **keywords)


cuda_kernel.__doc__ = _kernels.cuda_kernel.__doc__


class _ExportableKernel:
    """A kernel that becomes MLX's own inside ``mx.export_function``.

    ``make_original`` gets the names of inputs and outputs: MLX's kernels have them from the start, those of the
    dictionary and class generations from the call.
    """

    def __init__(self, kernel: Kernel, make_original: Callable[[list[str], list[str]], Any]) -> None:
        self._kernel = kernel
        self._make_original = make_original

    def __call__(self, **keywords: Any) -> Any:
        if not _exporting.get():
            return self._kernel(**keywords)
        if keywords.get("stream") is not None:
            # The name mx.gpu may mean the CPU here; what is exported is for a GPU.
            keywords["stream"] = _installation.original_gpu
        if not isinstance(keywords.get("inputs"), dict):
            return self._make_original([], [])(**keywords)
        output_names = list(keywords["output_shapes"])
        original = self._make_original(list(keywords["inputs"]), output_names)
        keywords["inputs"] = list(keywords["inputs"].values())
        for argument in ("output_shapes", "output_dtypes"):
            keywords[argument] = [keywords[argument][name] for name in output_names]
        if isinstance(keywords.get("template"), dict):
            keywords["template"] = list(keywords["template"].items())
        return dict(zip(output_names, original(**keywords), strict=True))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __repr__(self) -> str:
        return repr(self._kernel)


def _original(interface: str, keywords: dict[str, Any]) -> Any:
    """A kernel of MLX's own."""
    options = keywords.pop("compile_options", None) or {}
    # The other options say how Kiln compiles.
    if interface == "metal_kernel" and "math_mode" in options:
        keywords["compile_options"] = {"math_mode": options["math_mode"]}
    original = _installation.originals.get((mx.fast, interface)) or getattr(mx.fast, interface)
    return original(**keywords)


def _original_by_names(signature: inspect.Signature, arguments: tuple, keywords: dict[str, Any]):
    """Makes MLX's own kernel of the arguments of a generation that has no names."""
    given = signature.bind_partial(*arguments, **keywords).arguments
    kept = ("name", "source", "header", "ensure_row_contiguous", "atomic_outputs", "compile_options")
    keywords = {key: given[key] for key in kept if key in given}
    return lambda inputs, outputs: _original(
        "metal_kernel", {**keywords, "input_names": inputs, "output_names": outputs}
    )


def _installed(interface: str):
    ours = globals()[interface]
    by_lists = inspect.signature(_kernels.cuda_kernel if interface == "cuda_kernel" else _kernels._list_generation)

    @functools.wraps(ours)
    def make(*arguments: Any, **keywords: Any) -> Any:
        kernel = ours(*arguments, **keywords)
        if interface == "metal_kernel" and _kernels.is_by_dictionary(arguments[1:], keywords):
            by_names = inspect.signature(_kernels._dictionary_generation)
            return _ExportableKernel(kernel, _original_by_names(by_names, arguments, keywords))
        given = by_lists.bind_partial(*arguments, **keywords).arguments
        return _ExportableKernel(kernel, lambda *_: _original(interface, dict(given)))

    return make


class MetalKernel(_kernels.MetalKernel):
    __doc__ = _kernels.MetalKernel.__doc__
    _library = "mlx"

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        signature = inspect.signature(_kernels.MetalKernel)
        self._kernel = _ExportableKernel(self._kernel, _original_by_names(signature, arguments, keywords))


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


_MISSING = object()


class _Installation(contextlib.AbstractContextManager):
    """What ``install`` has put in place of what. As a context manager it takes it back at the end."""

    def __init__(self) -> None:
        self.originals: dict[tuple[Any, str], Any] = {}
        self.original_gpu = mx.gpu

    def put(self, module: Any, name: str, value: Any) -> None:
        if (module, name) not in self.originals:
            self.originals[(module, name)] = getattr(module, name, _MISSING)
        setattr(module, name, value)

    def take_back(self) -> None:
        for (module, name), original in self.originals.items():
            if original is _MISSING:
                delattr(module, name)
            else:
                setattr(module, name, original)
        self.originals.clear()

    def __exit__(self, *exception: Any) -> None:
        uninstall()


_installation = _Installation()


def install(metal: bool = False) -> contextlib.AbstractContextManager:
    """Puts Kiln's functions at ``mlx.core.fast.metal_kernel``, ``.cuda_kernel`` and ``.MetalKernel``.

    Args:
      metal: also opens the gates that programs ask before they make a kernel: ``mx.metal.is_available()`` is true,
        and where MLX has no GPU, the name ``mx.gpu`` means the CPU device. This reaches Python code that looks these
        names up when it runs; it cannot reach names that were imported before (``from mlx.core import gpu``) nor
        MLX's own C++ code.

    Returns:
      A context manager that calls ``uninstall()`` at its end; it need not be used.

    Inside ``mx.export_function`` and ``mx.exporter`` the installed functions hand over to MLX's own.
    """
    put = _installation.put
    for interface in ("metal_kernel", "cuda_kernel"):
        if (mx.fast, interface) not in _installation.originals:
            put(mx.fast, interface, _installed(interface))
    put(mx.fast, "MetalKernel", MetalKernel)
    for name in ("export_function",):
        if (mx, name) not in _installation.originals:
            put(mx, name, _marks_export(getattr(mx, name)))
    if (mx, "exporter") not in _installation.originals:
        exporter = mx.exporter
        put(mx, "exporter", functools.wraps(exporter)(lambda *a, **k: _Exporter(exporter(*a, **k))))
    if metal:
        put(mx.metal, "is_available", lambda: True)
        if not _libraries.import_mlx().has_gpu():
            put(mx, "gpu", mx.cpu)
    return _installation


def uninstall() -> None:
    """Takes back everything that ``install`` has put in place. Does nothing where nothing is installed."""
    _installation.take_back()
