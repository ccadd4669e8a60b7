"""What Kiln raises besides ``ValueError`` and ``TypeError`` for wrong arguments."""

from __future__ import annotations

from typing import Any, NamedTuple


class Diagnostic(NamedTuple):
    """One message about a kernel's text."""

    severity: str
    """``"error"``, ``"warning"`` or ``"note"``."""
    message: str
    text: str
    """Where it points: ``"source"``, ``"header"``, or ``"generated"`` for what Kiln wrote around them."""
    line: int
    """From 1; 0 where no position is known."""
    column: int
    """From 1, in bytes; 0 where no position is known."""
    source_line: str
    """That line of the text."""


class CompileError(RuntimeError):
    """The body or the header is not valid in its dialect. The message shows the first error and its place."""

    diagnostics: list[Diagnostic]
    """Everything the compiler found, in its order."""
    generated_source: str
    """The whole text that was compiled."""
    log: str
    """Everything the compiler printed."""

    def __init__(self, message: str, diagnostics: list[Diagnostic], generated_source: str, log: str) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics
        self.generated_source = generated_source
        self.log = log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics, self.generated_source, self.log)


class UnsupportedError(NotImplementedError):
    """Valid, but not supported here. The message names the construct and its line, or what is missing."""


class DeviceError(RuntimeError):
    """The device failed while a kernel ran, or the kernel did something that ends a launch."""


class InternalError(RuntimeError):
    """A defect of Kiln itself."""
