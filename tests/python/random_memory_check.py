"""Runs random bodies that index memory between guard pages, and compares them with Python or NumPy.

    tests/python/random_memory_check.py 0 50000                   by seed, on both engines
    tests/python/random_memory_check.py 0 50000 --isa avx2        the SIMD engine with AVX2
    tests/python/random_memory_check.py 0 50000 --kind pictures   neighbours of pixels in place of arbitrary numbers
    tests/python/random_memory_check.py 0 50000 --kind rows       loops of threads over rows of their own
    tests/python/random_memory_check.py 0 300 --gpu               on an NVIDIA GPU, in this process (compute-sanitizer can look on)

A process for each engine runs body after body, since settings are read when a process starts. One that ends names its
body by that, and another goes on with the next. `random_memory_bodies.py`, `random_picture_bodies.py` and
`random_row_bodies.py` write the bodies and say what they give; `test_random_memory.py` runs some of them at each change.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import random_memory_bodies
import random_picture_bodies
import random_row_bodies
from guarded_pages import GuardedPages

KINDS: dict[str, Any] = {
    "memory": random_memory_bodies,
    "pictures": random_picture_bodies,
    "rows": random_row_bodies,
}


def work(kind: str, first: int, end: int) -> None:
    """Writes what each body gives, or why it gives nothing."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for seed in range(first, end):
        body = KINDS[kind].Body(seed)
        x = body.x()
        pages = GuardedPages(x.nbytes)
        try:
            outputs: Any = [output.tobytes() for output in body.kernel()(**body.keywords(pages.copy(x, seed % 2 == 0)))]
        except Exception as error:
            outputs = f"{type(error).__name__}: {error}"
        pickle.dump((seed, outputs), results)
        results.flush()


class Runner:
    """Processes of one engine, one after the other."""

    def __init__(self, kind: str, settings: dict[str, str], first: int, end: int) -> None:
        self.kind, self.settings, self.end = kind, settings, end
        self.start(first)

    def start(self, first: int) -> None:
        self.next = first
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        # Code is kept until a process ends.
        self.stop_at = min(self.end, first + 300)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--kind", self.kind, "--worker", str(first), str(self.stop_at)],
            env={**os.environ, "KILN_CACHE": "off", **self.settings},
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )

    def result(self) -> Any:
        """Of the next body: its outputs as bytes, or what went wrong."""
        assert self.process.stdout
        seed = self.next
        try:
            got, outputs = pickle.load(self.process.stdout)
            assert got == seed
        except EOFError:
            code = self.process.wait()
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace")[-300:]
            outputs = f"the process ended: {signal.Signals(-code).name if code < 0 else code} {said}"
            if seed + 1 < self.end:
                self.start(seed + 1)
            return outputs
        self.next += 1
        if self.next == self.stop_at and self.next < self.end:
            self.process.wait()
            self.start(self.next)
        return outputs

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def difference(names: tuple[str, ...], expected: list[Any], got: Any) -> str:
    """What is wrong; nothing where nothing is."""
    if isinstance(got, str):
        return got
    problems = []
    for name, one, other in zip(names, expected, got, strict=True):
        values = np.frombuffer(other, np.int32)
        places = np.flatnonzero(one != values)
        if places.size:
            first = ", ".join(f"[{k}] {one[k]} but got {values[k]}" for k in places[:3])
            problems.append(f"{name} differs in {places.size} elements: expected {first}")
    return "; ".join(problems)


def compare(first: int, end: int, isa: str = "", kind: str = "memory") -> Iterator[tuple[int, str, str]]:
    """Seeds, engines and what is wrong."""
    bodies = KINDS[kind]
    runners = {
        "scalar": Runner(kind, {"KILN_CPU_ENGINE": "scalar"}, first, end),
        "simd": Runner(kind, {"KILN_CPU_ENGINE": "simd-always", **({"KILN_CPU_ISA": isa} if isa else {})}, first, end),
    }
    try:
        for seed in range(first, end):
            expected = bodies.Body(seed).expected()
            for engine, runner in runners.items():
                yield seed, engine, difference(bodies.NAMES, expected, runner.result())
    finally:
        for runner in runners.values():
            runner.stop()


def compare_on_gpu(first: int, end: int, kind: str = "memory") -> Iterator[tuple[int, str, str]]:
    import torch
    from torch_arrays import to_numpy, to_torch

    for seed in range(first, end):
        body = KINDS[kind].Body(seed)
        if body.dialect == "cuda":  # which have no guards there
            continue
        keywords = body.keywords(to_torch(body.x(), "cuda"))
        keywords["output_dtypes"] = [torch.int32] * len(body.expected())
        got = [to_numpy(output).tobytes() for output in body.kernel()(**keywords)]
        yield seed, "gpu", difference(KINDS[kind].NAMES, body.expected(), got)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("end", type=int, nargs="?", default=1000)
    parser.add_argument("--isa", default="", help="of the SIMD engine; the processor's best")
    parser.add_argument("--kind", choices=list(KINDS), default="memory")
    parser.add_argument("--gpu", action="store_true", help="on an NVIDIA GPU")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.kind, *arguments.worker)
        return 0
    if arguments.gpu and arguments.kind == "rows":
        parser.error("rows are written in place by several kinds of arrays, which is for CPUs")
    started = time.monotonic()
    compared = wrong = 0
    seeds = (arguments.first, arguments.end)
    results = (
        compare_on_gpu(*seeds, arguments.kind) if arguments.gpu else compare(*seeds, arguments.isa, arguments.kind)
    )
    for seed, engine, problem in results:
        compared += 1
        if problem:
            wrong += 1
            print(f"seed {seed} {engine}: {problem}", flush=True)
    print(f"{compared} results, {wrong} wrong, {time.monotonic() - started:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
