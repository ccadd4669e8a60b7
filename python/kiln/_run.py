"""Runs a program as Python itself would, after ``kiln.mlx.install()``."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from kiln import _core, _kernels
from kiln._core import Kernel, Launch

# ---- What a program's kernels did


def _describe(kernel: Kernel) -> dict[str, Any]:
    fields = [name for name, value in vars(Launch).items() if not name.startswith("_") and not callable(value)]
    return {
        "name": kernel.name,
        "totals": _core.launch_totals(kernel),
        "launches": [{field: getattr(launch, field) for field in fields} for launch in kernel.history],
    }


def _most_frequent(forms: list[str]) -> str:
    """``4x1x1 and 2 more``."""
    (form, _), *others = Counter(forms).most_common()
    return f"{form} and {len(others)} more" if others else form


def _extent(sizes: tuple[int, int, int]) -> str:
    return "x".join(map(str, sizes))


def _row(kernel: Kernel, totals: dict[str, Any]) -> list[str]:
    launches = kernel.history
    return [
        # One line, whatever the name has.
        " ".join(kernel.name.split()),
        str(totals["launches"]),
        f"{totals['run_ms']:.2f}",
        str(totals["compiled"]),
        f"{totals['compile_ms']:.1f}",
        _most_frequent([f"{launch.target} {launch.engine}" for launch in launches]) if launches else "",
        _most_frequent([_extent(launch.grid) for launch in launches]) if launches else "",
        _most_frequent([_extent(launch.threadgroup) for launch in launches]) if launches else "",
        _most_frequent(
            [f"{', '.join(launch.input_dtypes) or 'none'} -> {', '.join(launch.output_dtypes)}" for launch in launches]
        )
        if launches
        else "",
    ]


_HEADINGS = ["kernel", "launches", "run ms", "compiled", "compile ms", "target", "grid", "threadgroup", "dtypes"]
_NUMBERS = range(1, 5)


def _table(kernels: list[Kernel]) -> str:
    """The kernels, those that ran longest first, and what they come to."""
    every = [(kernel, _core.launch_totals(kernel)) for kernel in kernels]
    every.sort(key=lambda item: -item[1]["run_ms"])
    rows = [_row(kernel, totals) for kernel, totals in every]
    sums = {key: sum(totals[key] for _, totals in every) for key in ("launches", "run_ms", "compiled", "compile_ms")}
    total = [
        "total",
        str(sums["launches"]),
        f"{sums['run_ms']:.2f}",
        str(sums["compiled"]),
        f"{sums['compile_ms']:.1f}",
    ]
    lines = [_HEADINGS, *rows, total]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(_HEADINGS))]
    return "".join(
        "  ".join(
            text.rjust(width) if i in _NUMBERS else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=False))
        ).rstrip()
        + "\n"
        for line in lines
    )


# ---- Writing however the program ends

# Those that end a process unless it says otherwise, and that a handler may see.
_ENDING = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM", "SIGXCPU", "SIGVTALRM", "SIGPROF")


@contextlib.contextmanager
def writing_at_the_end(write: Callable[[bool], None]) -> Iterator[None]:
    """Calls ``write`` once at the end of the block, or before a signal ends the process, which it then does. It is told
    whether there is time to wait for what is still running. A child that was forked writes nothing."""
    process = os.getpid()
    # A signal may come while it writes: the process ends when that is done.
    has_begun, ended_by = False, 0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal has_begun, ended_by
        if os.getpid() == process:
            if has_begun:
                ended_by = number
                return
            has_begun = True
            try:
                write(False)
            finally:
                _end_by(number)
        _end_by(number)

    numbers = [signal.Signals[name] for name in _ENDING if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        if os.getpid() == process and not has_begun:
            has_begun = True
            write(True)
            if ended_by:
                _end_by(ended_by)
        for number in handled:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)


def _end_by(number: int) -> None:
    """Ends the process as the signal does where nothing handles it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def wait_for_mlx() -> None:
    """Until all that was asked for has run, where the program has MLX."""
    if "mlx.core" in sys.modules:
        sys.modules["mlx.core"].synchronize()


def main(
    program: str,
    arguments: list[str],
    *,
    as_module: bool,
    metal: bool,
    mac: str | None = None,
    report: str | None = None,
    summary: bool = False,
    command: str = "run",
) -> int:
    """The program's exit status is this process's: SystemExit passes through. ``report`` names a file that gets the
    kernels in the order in which they were made, each with its totals and its last 1,000 launches; ``summary`` prints a
    table of them to the standard error. ``mac`` has the packages, divided by commas, that get a Mac's answers; where it
    is empty those that make kernels do. ``command`` is this one's name, for messages."""
    options: dict[str, Any] = {"as_module": as_module, "metal": metal, "mac": mac, "command": command}
    if report is None and not summary:
        return _run(program, arguments, **options)
    # Before the program has run for hours.
    try:
        file = None if report is None else open(report, "w")  # noqa: SIM115
    except OSError as error:
        print(f"python -m kiln run: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2

    def write(may_wait: bool) -> None:
        if may_wait:
            wait_for_mlx()
        if file is not None:
            json.dump([_describe(kernel) for kernel in kernels], file, indent=2)
            file.write("\n")
            file.flush()
        if summary:
            print(_table(kernels), end="", file=sys.stderr, flush=True)

    with file or contextlib.nullcontext(), _kernels.keeping_made() as kernels, writing_at_the_end(write):
        return _run(program, arguments, **options)


def _is_module(name: str) -> bool:
    """Whether there is such a module. What importing its package raises is raised."""
    if name.startswith("."):
        return False
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if not error.name or not f"{name}.".startswith(f"{error.name}."):
            raise
    except ValueError:  # an empty name, or a module without a specification
        pass
    return False


def _is_program(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in ("__main__.py", "__main__.pyc"))


def _show_tracebacks_of_the_program() -> None:
    """An exception that ends the program is printed as Python prints it without this command: from the program's own
    first frame on."""
    hook = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        hook(kind, error.with_traceback(own := _program_frames(trace)), own)

    sys.excepthook = show


def _program_frames(trace: TracebackType | None) -> TracebackType | None:
    """What `_run` called, without the frames of runpy. None where the program has no frame, as with its syntax errors."""
    inner = trace
    while inner and inner.tb_frame.f_code is not _run.__code__:
        inner = inner.tb_next
    if inner is None:
        return trace
    inner = inner.tb_next
    while inner and inner.tb_frame.f_globals.get("__name__") == "runpy":
        inner = inner.tb_next
    return inner


def _run(program: str, arguments: list[str], *, as_module: bool, metal: bool, mac: str | None, command: str) -> int:
    if not as_module and not os.path.exists(program):
        print(f"python -m kiln {command}: no such file: {program}", file=sys.stderr)
        return 2
    if not as_module and os.path.isdir(program) and not _is_program(program):
        print(f"python -m kiln {command}: can't find '__main__' module in {program!r}", file=sys.stderr)
        return 1  # as Python itself
    try:
        import kiln.mlx
    except ImportError as error:
        print(f"python -m kiln {command}: {error}", file=sys.stderr)
        return 1
    if mac is not None:
        from kiln import _mac

        _mac.answer(filter(None, mac.split(",")), program if as_module else None)
    kiln.mlx.install(metal=metal or mac is not None)
    sys.argv = [program, *arguments]
    _show_tracebacks_of_the_program()
    if as_module:
        sys.path[0] = os.getcwd()
        if not _is_module(program):
            print(f"python -m kiln {command}: no module named {program}", file=sys.stderr)
            return 1  # as Python itself
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        # A folder or an archive brings its own path.
        if os.path.isfile(program):
            sys.path[0] = os.path.dirname(os.path.abspath(program))
        runpy.run_path(program, run_name="__main__")
    return 0
