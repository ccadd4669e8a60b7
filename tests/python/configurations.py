"""Engines and instruction sets that tests compare, each in a process of its own: Kiln reads its settings once.

A process runs call after call until it has run `CALLS`, so that Python, NumPy and the tests' modules are imported once.
"""

import atexit
import functools
import os
import pickle
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kiln import _core

TESTS = Path(__file__).parent.parent

# Engine and instruction set. The first is what the others are held against. sse2 has no instructions for rounding,
# fused multiplication and conversion of halves; avx2 no masks.
CONFIGURATIONS = [("scalar", "avx512"), ("scalar", "sse2"), ("simd", "avx2"), ("simd", "avx512")]
LEVELS = {"avx2": "x86-64-v3", "avx512": "x86-64-v4"}

CALLS = 300  # of one process, which keeps what it has compiled
SECONDS = 300  # for one call

PROGRAM = """
import importlib, os, pickle, sys, traceback
sys.path[:0] = sys.argv[1:]
results = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # what a kernel or a test prints is no result
while True:
    try:
        module, function, arguments = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    try:
        result = True, getattr(importlib.import_module(module), function)(*arguments)
    except Exception:
        result = False, traceback.format_exc()
    pickle.dump(result, results)
    results.flush()
"""


class Worker:
    """A process with these settings, and the next one where it has run many calls or has ended."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        self.calls = 0
        atexit.register(self.stop)

    def send(self, module: str, function: str, *arguments: Any) -> None:
        """Begins a call of a test module's function. `receive` is next."""
        if self.calls == CALLS:
            self.stop()
        if self.process is None:
            self.calls = 0
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(TESTS), str(TESTS / "python")],
                env={**os.environ, **self.settings},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
            )
        self.calls += 1
        assert self.process.stdin
        pickle.dump((module, function, arguments), self.process.stdin)
        self.process.stdin.flush()

    def receive(self) -> Any:
        """What the call gives. That it raises, takes too long, or that the process ends is an error."""
        assert self.process and self.process.stdout
        problem = f"{self.settings}: no result after {SECONDS} seconds"
        if select.select([self.process.stdout], [], [], SECONDS)[0]:
            try:
                succeeded, result = pickle.load(self.process.stdout)
                assert succeeded, f"{self.settings}: {result}"
                return result
            except EOFError:
                code = self.process.wait()
                self.errors.seek(0)
                problem = f"{self.settings}: the process ended, {code}: {self.errors.read().decode(errors='replace')}"
        self.process.kill()
        self.stop()
        raise AssertionError(problem)

    def call(self, module: str, function: str, *arguments: Any) -> Any:
        self.send(module, function, *arguments)
        return self.receive()

    def stop(self) -> None:
        if self.process:
            assert self.process.stdin and self.process.stdout
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None


@functools.cache
def worker(engine: str, isa: str) -> Worker:
    """This process's own one, which lives as long."""
    return Worker(KILN_CPU_ENGINE=engine, KILN_CPU_ISA=isa)


def call_on(configurations: Iterable[tuple[str, str]], module: str, function: str, *arguments: Any) -> dict[Any, Any]:
    """What the call gives by engine and instruction set; the processes run at the same time."""
    workers = {configuration: worker(*configuration) for configuration in configurations}
    for one in workers.values():
        one.send(module, function, *arguments)
    results, problems = {}, []
    for configuration, one in workers.items():
        # Each is received, or its result would be the next call's.
        try:
            results[configuration] = one.receive()
        except AssertionError as error:
            problems.append(str(error))
    assert not problems, "\n".join(problems)
    return results


@functools.cache
def has(level: str) -> bool:
    """Whether the processor has a level of x86-64, as the compiler sees it."""
    done = subprocess.run(
        [sys.executable, "-c", "from kiln import _core; print(_core.cpu_architecture())"],
        env={**os.environ, "KILN_CPU_ISA": "avx512"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip() >= level


def available() -> list[tuple[str, str]]:
    """The configurations that the processor runs."""
    return [(engine, isa) for engine, isa in CONFIGURATIONS if engine == "scalar" or has(LEVELS[isa])]


class Result(NamedTuple):
    """What a body gave, and on which engine."""

    outputs: list[np.ndarray]
    engine: str
    reason: str


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """The same bits; a NaN counts as any other."""
    if a.dtype.kind == "c":
        return same(a.real, b.real) and same(a.imag, b.imag)
    bits = f"u{a.dtype.itemsize}"
    equal = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    return bool(np.all(equal | ((a != a) & (b != b))))


def different(results: dict[Any, Result]) -> list[Any]:
    """The configurations whose bits are not those of the first one."""
    first, *others = results
    return [
        other
        for other in others
        if not all(same(a, b) for a, b in zip(results[first].outputs, results[other].outputs, strict=True))
    ]


@functools.cache
def own() -> tuple[str, str]:
    """That of this process."""
    isa = next((isa for isa, level in reversed(LEVELS.items()) if _core.cpu_architecture() >= level), "sse2")
    return _core.cpu_engine(), isa
