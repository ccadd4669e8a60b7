"""Kiln for programs written for MLX.

The functions ``metal_kernel`` and ``cuda_kernel`` and the class ``MetalKernel`` of this module always return MLX arrays.
``install()`` puts them into ``mlx.core.fast``, so that a program written for MLX on a Mac runs unmodified on Linux::

    import kiln.mlx
    kiln.mlx.install()

or, for the length of a block::

    with kiln.mlx.install():
        ...

Importing this module raises ``ImportError`` if MLX is missing, or if Kiln has no part for its version; the message says
how to get one, and which versions there are parts for.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kiln import _core, _kernels, _libraries
from kiln._core import Kernel
from kiln.errors import UnsupportedError

_libraries.meet_by_name("mlx")  # says how to get MLX where it is missing

import mlx.core as mx  # noqa: E402

# Whether this thread is inside mx.export_function. What is exported must load on a Mac, so the installed functions then
# hand over to MLX's own.
_exporting: contextvars.ContextVar[bool] = contextvars.ContextVar("kiln_exporting", default=False)


if TYPE_CHECKING:
    from kiln._kernels import cuda_kernel as cuda_kernel
    from kiln._kernels import metal_kernel as metal_kernel
else:

    def _of_mlx(function, make):
        """The function with results that are always MLX arrays."""

        @functools.wraps(function)
        def of_mlx(*arguments, **keywords):
            return make("mlx", Kernel, *arguments, **keywords)

        of_mlx.__module__ = __name__
        return of_mlx

    metal_kernel = _of_mlx(_kernels.metal_kernel, _kernels.metal_kernel_for)
    cuda_kernel = _of_mlx(_kernels.cuda_kernel, _kernels.cuda_kernel_for)


class _ExportableKernel(Kernel):
    """A kernel that becomes MLX's own inside ``mx.export_function``."""

    def __init__(self, **made: Any) -> None:
        # On a Mac a body may write its inputs.
        super().__init__(**made, allows_input_stores=True)
        self._made = made

    def __reduce__(self) -> tuple[Any, ...]:
        restore, (module, name, made) = super().__reduce__()
        del made["allows_input_stores"]
        return restore, (module, name, made)

    @property
    def __call__(self) -> Any:
        """What is called. A frame of this module around the call would be the place of its warnings."""
        return self._call_while_exporting if _exporting.get() else super().__call__

    def _call_while_exporting(self, /, *arguments: Any, **keywords: Any) -> Any:
        # Raises what a call raises.
        self.source_for(*arguments, **keywords)
        return self._exported(**keywords)

    def _exported(
        self,
        *,
        inputs: Any,
        output_shapes: Any,
        output_dtypes: Any,
        template: Any = None,
        stream: Any = None,
        **rest: Any,
    ) -> Any:
        """The call of MLX's own kernel. Its arguments are right in Kiln's eyes; MLX's takes less kinds of them."""
        by_name = self._made["input_names"] is None
        input_names, output_names = self._made["input_names"], self._made["output_names"]
        if by_name:
            input_names, output_names = list(inputs), list(output_shapes)
            inputs = list(inputs.values())
            output_shapes = [output_shapes[name] for name in output_names]
            output_dtypes = [output_dtypes[name] for name in output_names]
        pairs = template.items() if isinstance(template, Mapping) else template or []
        results = self._original(input_names, output_names)(
            inputs=[_as_mlx_takes(value) for value in inputs],
            output_shapes=[tuple(map(operator.index, shape)) for shape in output_shapes],
            output_dtypes=[_mlx_dtype(dtype) for dtype in output_dtypes],
            template=[(name, _template_value(value)) for name, value in pairs],
            grid=_extent(rest["grid"]),
            threadgroup=_extent(rest["threadgroup"]),
            init_value=None if rest.get("init_value") is None else float(rest["init_value"]),
            verbose=bool(rest.get("verbose", False)),
            # The name mx.gpu may mean the CPU here; what is exported is for a GPU.
            stream=None if stream is None else _original_gpu,
        )
        return dict(zip(output_names, results, strict=True)) if by_name else results

    def _original(self, input_names: list[str], output_names: list[str]) -> Any:
        made = self._made
        source, header, includes_files = _core.texts_of(self)
        if includes_files:
            raise UnsupportedError(
                f"[{made['dialect']}_kernel] `{made['name']}` includes files, and what is exported cannot."
            )
        options = {"header": header, "ensure_row_contiguous": made["ensure_row_contiguous"]}
        if made["dialect"] == "cuda":
            make = _originals.get((mx.fast, "cuda_kernel"), mx.fast.cuda_kernel)
            options["shared_memory"] = made["shared_memory"]
        else:
            make = _originals.get((mx.fast, "metal_kernel"), mx.fast.metal_kernel)
            options["atomic_outputs"] = made["atomic_outputs"]
            # The other options say how Kiln compiles.
            if made["math_mode"] != "safe":
                options["compile_options"] = {"math_mode": made["math_mode"]}
        return make(name=made["name"], input_names=input_names, output_names=output_names, source=source, **options)


def exported(kernel: Kernel, call: dict[str, Any]) -> Any:
    """What a kernel's call is inside ``mx.export_function``: one of MLX's own."""
    made = _core.spec_of(kernel)
    del made["allows_input_stores"]
    if "batched_inputs" in made or "sliced_axis" in made:
        raise UnsupportedError(
            f"[{made['dialect']}_kernel] `{made['name']}` is a part of a grid (a batch as an axis of it, or a slice), and MLX's "
            "own kernels, which mx.export_function stores, have none."
        )
    return _ExportableKernel(**made)(**call)


def _mlx_dtype(dtype: Any) -> mx.Dtype:
    name = _core.dtype_name(dtype)
    kind: mx.Dtype = getattr(mx, "bool_" if name == "bool" else str(name))
    return kind


def _extent(value: Any) -> tuple[int, ...]:
    """A grid or a threadgroup with the dimensions that a call may leave out."""
    try:
        sizes: tuple[int, ...] = (operator.index(value),)
    except TypeError:
        sizes = tuple(map(operator.index, value))
    return (*sizes, 1, 1)[:3]


def _template_value(value: Any) -> Any:
    if _kernels.is_flag(value):
        return bool(value)
    return operator.index(value) if _core.dtype_name(value) is None else _mlx_dtype(value)


def _as_mlx_takes(value: Any) -> Any:
    """Arrays and numbers as they are; an object that only has ``__index__`` as an int, other libraries' arrays and
    NumPy's scalars as MLX's arrays."""
    if isinstance(value, mx.array | bool | int | float | complex):
        return value
    if _core.is_numpy_scalar(value):
        return mx.array(value)
    is_index = hasattr(type(value), "__index__") and not hasattr(value, "__dlpack__")
    return operator.index(value) if is_index else mx.array(value)


def _installed(interface: str, _original: Any) -> Any:
    ours = globals()[interface]
    make = {"metal_kernel": _kernels.metal_kernel_for, "cuda_kernel": _kernels.cuda_kernel_for}[interface]
    return functools.wraps(ours)(functools.partial(make, "mlx", _ExportableKernel))


class MetalKernel(_kernels.MetalKernel):
    __doc__ = _kernels.MetalKernel.__doc__
    _library = "mlx"
    _kind = _ExportableKernel


def _marks_export(function: Callable[..., Any]) -> Callable[..., Any]:
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

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
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


class _Installation(contextlib.AbstractContextManager["_Installation"]):
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


def install(metal: bool = False) -> contextlib.AbstractContextManager[Any]:
    """Replaces ``mlx.core.fast.metal_kernel``, ``.cuda_kernel`` and ``.MetalKernel`` by Kiln's functions.

    Example:
      >>> import kiln.mlx
      >>> import mlx.core as mx
      >>> with kiln.mlx.install(metal=True):
      ...     print(mx.metal.is_available(), type(mx.fast.metal_kernel("k", [], ["out"], "")).__mro__[1])
      True <class 'kiln._core.Kernel'>

    Args:
      metal: also changes the checks that programs make before they use a kernel. ``mx.metal.is_available()`` returns
        true, and if MLX has no GPU, the name ``mx.gpu`` means the CPU device. This affects Python code that looks these
        names up when it runs. It does not affect names that were imported before (``from mlx.core import gpu``), the
        enumeration's own name (``mx.DeviceType.gpu``, which stays MLX's GPU), and MLX's own C++ code.

    Returns:
      A context manager that undoes this call at its end. Using it is optional.

    Raises:
      TypeError: ``metal`` is not a bool.

    A body that writes an input through a cast writes MLX's array in place, as on a Mac, with one
    ``kiln.WrittenInputWarning`` for each kernel. Without ``install`` it is a ``kiln.UnsupportedError`` unless
    ``compile_options["writable_inputs"]`` names the input.

    Inside ``mx.export_function`` and ``mx.exporter`` the installed functions call MLX's own.

    The installation holds in this process and in its forked children. A process that is started anew, as
    ``multiprocessing`` does by "spawn", has to call ``install()`` itself, in the module that makes kernels.
    """
    metal = _kernels.read_flag("install", "metal", metal)
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
    """Undoes all calls of ``install``. Does nothing if nothing is installed.

    Kernels that were made in between stay Kiln's.
    """
    for key in list(_originals):
        _take_back(key)
