"""Engines and instruction sets that tests compare, each in a process of its own: Kiln reads its settings once."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent

# Engine and instruction set. The first is what the others are held against. sse2 has no instructions for rounding,
# fused multiplication and conversion of halves; avx2 no masks.
CONFIGURATIONS = [("scalar", "avx512"), ("scalar", "sse2"), ("simd", "avx2"), ("simd", "avx512")]
LEVELS = {"avx2": "x86-64-v3", "avx512": "x86-64-v4"}


def has(level: str) -> bool:
    """Whether the processor has a level of x86-64, as the compiler sees it."""
    done = subprocess.run(
        [sys.executable, "-c", "from kiln import _core; print(_core.cpu_architecture())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip() >= level


def evaluate(module: str, expression: str, timeout: float | None = None, **settings: str) -> Any:
    """What an expression of a test module, there called `m`, gives in a process with these settings. A process that
    takes longer than `timeout` seconds is ended, which is an error."""
    program = (
        f"import pickle, sys; sys.path[:0] = sys.argv[1:]; import {module} as m;"
        f"sys.stdout.buffer.write(pickle.dumps({expression}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(TESTS), str(TESTS / "python")],
        env={**os.environ, **settings},
        capture_output=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


def available() -> list[tuple[str, str]]:
    """The configurations that the processor runs."""
    return [(engine, isa) for engine, isa in CONFIGURATIONS if engine == "scalar" or has(LEVELS[isa])]


def results_of_bodies(module: str) -> dict[tuple[str, str], Any]:
    """By configuration, and by the name of each of a module's `BODIES`: its `result(name)`."""
    return {
        (engine, isa): evaluate(
            module,
            "{name: m.result(name) for name in m.BODIES}",
            timeout=300,
            KILN_CPU_ENGINE=engine,
            KILN_CPU_ISA=isa,
        )
        for engine, isa in available()
    }
