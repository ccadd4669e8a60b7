"""How long a kernel takes to compile: the first of a process, the compiler's opening included, and the next."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

from bench import measure

PROCESSES = 9
WARM = 15

KINDS = ("exp", "grid sample", "grid sample vjp")


def _compile_function(kind: str):
    """A function that compiles the kernel's n-th variant and gives the milliseconds it took."""
    import kiln
    import numpy as np

    from bench import bodies

    x, grid = np.zeros((1, 64, 64, 64), np.float32), np.zeros((1, 16, 16, 2), np.float32)
    cotangents = np.zeros((1, 16, 16, 64), np.float32)
    make, source, call = {
        "exp": (bodies.exp_kernel, bodies.EXP, bodies.exp_call(np.zeros(4096, np.float16), np.dtype(np.float32))),
        "grid sample": (bodies.forward_kernel, bodies.FORWARD, bodies.forward_call(x, grid)),
        "grid sample vjp": (bodies.vjp_kernel, bodies.VJP, bodies.vjp_call(x, grid, cotangents)),
    }[kind]

    def compile_variant(n: int) -> float:
        start = time.perf_counter()
        # Another text is another kernel.
        make(kiln.metal_kernel, f"{source}\n    // {n}").compile(**call)
        return 1e3 * (time.perf_counter() - start)

    return compile_variant


def in_this_process(kind: str) -> list[float]:
    """The first compilation of the process, then `WARM` others."""
    compile_variant = _compile_function(kind)
    return [compile_variant(n) for n in range(1 + WARM)]


def run(progress) -> tuple[dict[str, Any], list[str]]:
    figures: dict[str, Any] = {}
    rows = []
    first: dict[str, list[float]] = {kind: [] for kind in KINDS}
    warm: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for n in range(PROCESSES):
        progress(f"compile times: process {n + 1} of {PROCESSES} for each kernel")
        for kind in KINDS:
            program = (
                f"import json; from bench import compile_times as c; print(json.dumps(c.in_this_process({kind!r})))"
            )
            done = subprocess.run(
                [sys.executable, "-c", program],
                check=True,
                capture_output=True,
                text=True,
                # NumPy's library has threads that wait busily for 0.1 s after they were made, beside the first compilation.
                env={**os.environ, "KILN_CACHE": "off", "OPENBLAS_NUM_THREADS": "1"},
            )
            times = json.loads(done.stdout)
            first[kind].append(times[0])
            warm[kind].append(statistics.median(times[1:]))
    for kind in KINDS:
        a, b = measure.Samples(tuple(first[kind])), measure.Samples(tuple(warm[kind]))
        figures[kind] = {"first": a.as_json(), "warm": b.as_json()}
        rows.append([kind, str(a), str(b)])
    title = f"compiling one new kernel, {PROCESSES} processes"
    return figures, [measure.table(title, ["", "first in a process", "next"], rows)]
