"""The signatures of a kernel and of its methods, for ``inspect``, editors and ``help``.

``Kernel`` is a compiled class: its methods are no functions in Python's eyes, and ``inspect.signature`` knows nothing of
them. ``compile`` and ``source_for`` become Python functions around the compiled ones. A call does not, since it would
take a quarter longer: ``inspect`` takes the signature of a callable object from its attribute ``__signature__``. The
types are in ``_core.pyi``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_REQUIRED = inspect.Parameter.empty
_CALL = {
    "inputs": _REQUIRED,
    "output_shapes": None,
    "output_dtypes": None,
    "grid": _REQUIRED,
    "threadgroup": _REQUIRED,
    "template": None,
    "init_value": None,
    "verbose": False,
    "stream": None,
    "outputs": None,
}
_COMPILE = {**_CALL, "inputs": None, "input_shapes": None, "input_dtypes": None, "target": None}


def _parameters(keywords: dict[str, Any]) -> list[inspect.Parameter]:
    return [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in keywords.items()]


class _CallSignature:
    """``__signature__`` of kernels, not of their class."""

    _signature = inspect.Signature(_parameters(_CALL))

    def __get__(self, kernel: Any, owner: Any = None) -> inspect.Signature:
        if kernel is None:
            raise AttributeError("__signature__")
        return self._signature


def _wrap(kind: Any, name: str, result: str) -> None:
    compiled: Callable[..., Any] = getattr(kind, name)

    def method(self: Any, /, *arguments: Any, **keywords: Any) -> Any:
        return compiled(self, *arguments, **keywords)

    method.__name__, method.__qualname__ = name, f"{kind.__name__}.{name}"
    method.__module__ = kind.__module__
    # nanobind's begins with a line of its own that has the parameters.
    method.__doc__ = (compiled.__doc__ or "").partition("\n\n")[2]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    vars(method)["__signature__"] = inspect.Signature([own, *_parameters(_COMPILE)], return_annotation=result)
    setattr(kind, name, method)


def describe(kind: Any) -> None:
    """Gives the class ``Kernel``, which is being made, its signatures."""
    _wrap(kind, "source_for", "str")
    _wrap(kind, "compile", "CompiledKernel")
    kind.__signature__ = _CallSignature()
