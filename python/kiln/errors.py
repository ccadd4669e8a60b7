"""What Kiln raises besides ``ValueError`` and ``TypeError`` for wrong arguments.

A name that a body gets wrong is a ``CompileError``, a construct that cannot run here an ``UnsupportedError``, and what
ends a launch a ``DeviceError``. After any of them the process and later launches are sound.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Diagnostic(NamedTuple):
    """One message about a kernel's text."""

    severity: str
    """``"error"``, ``"warning"`` or ``"note"``."""
    message: str
    """What is wrong, in one line, as "use of undeclared identifier 'y'"."""
    text: str
    """Which text it points into: ``"source"``, ``"header"``, ``"included"`` for a file that one of them includes, or
    ``"generated"`` for what Kiln wrote around them."""
    line: int
    """From 1; 0 where no position is known."""
    column: int
    """From 1, in bytes; 0 where no position is known."""
    source_line: str
    """That line of the text."""
    file: str = ""
    """The path of the file that holds the text; empty where it is no file."""


class CompileError(RuntimeError):
    """The body or the header is not valid in its dialect. The message shows the first error and its place.

    It comes at the call for arrays of NumPy, PyTorch, JAX and CuPy, at ``mx.eval`` or earlier for MLX arrays, and at
    ``.compile()``.

    Example:
      >>> import kiln
      >>> kernel = kiln.metal_kernel("k", [], ["out"], "out[0] = 1;\\nout[1] = y;")
      >>> try:
      ...     kernel(inputs=[], output_shapes=[(2,)], output_dtypes=["int32"], grid=(1, 1, 1), threadgroup=(1, 1, 1))
      ... except kiln.CompileError as error:
      ...     first = error.diagnostics[0]
      ...     print(f"line {first.line} of the {first.text}: {first.message}")
      line 2 of the source: use of undeclared identifier 'y'
    """

    diagnostics: list[Diagnostic]
    """Everything the compiler found, in its order."""
    generated_source: str
    """The whole text that was compiled, as ``source_for`` gives it."""
    log: str
    """Everything the compiler printed, by lines of ``generated_source``."""

    def __init__(self, message: str, diagnostics: list[Diagnostic], generated_source: str, log: str) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics
        self.generated_source = generated_source
        self.log = log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics, self.generated_source, self.log)


class UnsupportedError(NotImplementedError):
    """Valid in its dialect, but not supported here. The message names the construct and its line, or what is missing.

    Nothing else is computed in its place.
    """


class DeviceError(RuntimeError):
    """The device failed while a kernel ran, or the kernel did something that ends a launch.

    Such are threads that wait at different calls of ``threadgroup_barrier``. What the launch's outputs hold is
    unspecified.
    """


class InternalError(RuntimeError):
    """A defect of Kiln itself. Please report it, with the kernel's text and the message."""


class WrittenInputWarning(UserWarning):
    """A body writes an input through a cast, in a program that runs as on a Mac (``kiln.mlx.install``).

    The array is written in place, as on a Mac. It comes once for each kernel, from the evaluation of its first launch.
    ``compile_options={"writable_inputs": [...]}`` says that the write is meant, and there is no warning then;
    ``warnings.filterwarnings("ignore", category=kiln.WrittenInputWarning)`` hides all of them.
    """
