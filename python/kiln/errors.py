"""The exceptions of Kiln, besides ``ValueError`` and ``TypeError`` for wrong arguments.

A body that is not valid raises a ``CompileError``, a construct that Kiln cannot run an ``UnsupportedError``, and a failed
launch a ``DeviceError``. After any of them the process and later launches are sound.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Diagnostic(NamedTuple):
    """One message about a kernel's text."""

    severity: str
    """``"error"``, ``"warning"`` or ``"note"``."""
    message: str
    """The message in one line, such as "use of undeclared identifier 'y'"."""
    text: str
    """The text that it points into: ``"source"``, ``"header"``, ``"included"`` for a file that one of them includes, or
    ``"generated"`` for the text that Kiln wrote around them."""
    line: int
    """The line, from 1; 0 if the position is unknown."""
    column: int
    """The column in bytes, from 1; 0 if the position is unknown."""
    source_line: str
    """The text of that line."""
    file: str = ""
    """The path of the file with the text; empty for a string."""


class CompileError(RuntimeError):
    """The body or the header is not valid in its dialect. The message shows the first error with its line and column.

    With arrays of NumPy, PyTorch, JAX and CuPy the call raises it, with MLX arrays ``mx.eval`` or an earlier step.
    ``.compile()`` always raises it.

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
    """All errors, warnings and notes of the compiler, in its order."""
    generated_source: str
    """The whole text that was compiled, as ``source_for`` returns it."""
    log: str
    """The compiler's output, with line numbers of ``generated_source``."""

    def __init__(self, message: str, diagnostics: list[Diagnostic], generated_source: str, log: str) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics
        self.generated_source = generated_source
        self.log = log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics, self.generated_source, self.log)


class UnsupportedError(NotImplementedError):
    """A body that is valid in its dialect but not supported. The message names the construct and its line, or what is
    missing.

    Kiln computes nothing else in its place.
    """


class DeviceError(RuntimeError):
    """The device failed while a kernel ran, or the kernel did something that ends a launch.

    An example are threads that wait at different calls of ``threadgroup_barrier``. The contents of the launch's outputs
    are unspecified.
    """


class InternalError(RuntimeError):
    """A defect of Kiln itself. Please report it, with the kernel's text and the message."""


class WrittenInputWarning(UserWarning):
    """A body writes an input through a cast, in a program that runs as on a Mac (``kiln.mlx.install``).

    The array is written in place, as on a Mac. The evaluation of a kernel's first launch gives the warning, once for each
    kernel. ``compile_options={"writable_inputs": [...]}`` declares that the write is intended, and there is no warning
    then. ``warnings.filterwarnings("ignore", category=kiln.WrittenInputWarning)`` hides all of them.
    """
