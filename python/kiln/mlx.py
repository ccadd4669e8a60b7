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
            keywords["stream"] = _original_gpu
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


# What both Kiln's interfaces and MLX's own have, besides the names of inputs and outputs.
_EXPORTED = ("name", "source", "header", "ensure_row_contiguous", "atomic_outputs", "shared_memory")


def _for_export(original: Any, ours: Callable, names: dict[str, list[str]], arguments: tuple, keywords: dict) -> Any:
    """MLX's own kernel of what ``ours`` was given."""
    given = inspect.signature(ours).bind_partial(*arguments, **keywords).arguments
    kept = {key: given[key] for key in (*_EXPORTED, *names) if key in given}
    options = given.get("compile_options") or {}
    # The others say how Kiln compiles.
    if "math_mode" in options and ours is not _kernels.cuda_kernel:
        kept["compile_options"] = {"math_mode": options["math_mode"]}
    return original(**{**names, **kept})


def _installed(interface: str, original: Any) -> Any:
    ours = globals()[interface]

    @functools.wraps(ours)
    def make(*arguments: Any, **keywords: Any) -> Any:
        def make_original(inputs: list[str], outputs: list[str]) -> Any:
            generation = _kernels.cuda_kernel
            if interface == "metal_kernel":
                generation = _kernels.generation_of(arguments[1:], keywords)
            names = {"input_names": inputs, "output_names": outputs}
            return _for_export(original, generation, names, arguments, keywords)

        return _ExportableKernel(ours(*arguments, **keywords), make_original)

    return make


class MetalKernel(_kernels.MetalKernel):
    __doc__ = _kernels.MetalKernel.__doc__
    _library = "mlx"

    @functools.wraps(_kernels.MetalKernel.__init__)
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)

        def make_original(inputs: list[str], outputs: list[str]) -> Any:
            original = _originals.get((mx.fast, "metal_kernel"), mx.fast.metal_kernel)
            names = {"input_names": inputs, "output_names": outputs}
            return _for_export(original, _kernels.MetalKernel, names, arguments, keywords)

        self._kernel = _ExportableKernel(self._kernel, make_original)


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
