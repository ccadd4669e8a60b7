"""Runs a program as Python itself would, after ``kiln.mlx.install()``."""

from __future__ import annotations

import os
import runpy
import sys


def main(program: str, arguments: list[str], *, as_module: bool, metal: bool) -> int:
    """The program's exit status is this process's: SystemExit passes through."""
    if not as_module and not os.path.exists(program):
        print(f"python -m kiln run: no such file: {program}", file=sys.stderr)
        return 2
    try:
        import kiln.mlx
    except ImportError as error:
        print(f"python -m kiln run: {error}", file=sys.stderr)
        return 1
    kiln.mlx.install(metal=metal)
    sys.argv = [program, *arguments]
    if as_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        # A folder or an archive brings its own path.
        if os.path.isfile(program):
            sys.path[0] = os.path.dirname(os.path.abspath(program))
        runpy.run_path(program, run_name="__main__")
    return 0
