"""Runs a program as Python itself would, after ``kiln.mlx.install()``."""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import sys
from typing import Any

from kiln import _kernels
from kiln._core import Kernel, Launch


def _describe(kernel: Kernel) -> dict[str, Any]:
    fields = [name for name, value in vars(Launch).items() if not name.startswith("_") and not callable(value)]
    return {
        "name": kernel.name,
        "launches": [{field: getattr(launch, field) for field in fields} for launch in kernel.history],
    }


def main(
    program: str,
    arguments: list[str],
    *,
    as_module: bool,
    metal: bool,
    mac: str | None = None,
    report: str | None = None,
    command: str = "run",
) -> int:
    """The program's exit status is this process's: SystemExit passes through. ``report`` names a file that gets the
    kernels in the order in which they were made, each with its last 1,000 launches. ``mac`` has the packages, divided
    by commas, that get a Mac's answers; where it is empty those that make kernels do. ``command`` is this one's name,
    for messages."""
    options: dict[str, Any] = {"as_module": as_module, "metal": metal, "mac": mac, "command": command}
    if report is None:
        return _run(program, arguments, **options)
    # Before the program has run for hours.
    try:
        file = open(report, "w")  # noqa: SIM115
    except OSError as error:
        print(f"python -m kiln run: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    process = os.getpid()
    with file, _kernels.keeping_made() as kernels:
        try:
            return _run(program, arguments, **options)
        finally:
            # A child that was forked has the file too.
            if os.getpid() == process:
                import mlx.core as mx

                mx.synchronize()
                json.dump([_describe(kernel) for kernel in kernels], file, indent=2)
                file.write("\n")


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
