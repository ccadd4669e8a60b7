"""How long finding a GPU's kernel on disk takes: the first of a process, and the next. (`compile_times` has what it
saves.) The arrays, the GPU's context and the cache's folder are there before.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.gpu import compile_times
from bench.measure import Samples, table


def in_this_process(kind: str) -> dict[str, Any]:
    """Times of the first kernel and of the others, and how many were found on disk."""
    from kiln import _core

    compile_variant = compile_times.kiln_compiler(kind, "stored")
    before = _core.cache_status()["hits"]
    times = []
    for n in range(1 + compile_times.WARM):
        start = time.perf_counter()
        compile_variant(n)
        times.append(1e3 * (time.perf_counter() - start))
    return {"times": times, "hits": _core.cache_status()["hits"] - before}


def run() -> tuple[dict[str, Any], list[str]]:
    figures: dict[str, Any] = {}
    rows = []
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        environment = {**os.environ, "KILN_CACHE": "on", "KILN_CACHE_DIR": folder}

        def process(kind: str) -> dict[str, Any]:
            program = (
                f"import json; from bench.gpu import stored_code as s; print(json.dumps(s.in_this_process({kind!r})))"
            )
            done = subprocess.run(
                [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment
            )
            return json.loads(done.stdout)

        for kind in ("exp, Metal", "grid sample, Metal", "exp, CUDA", "grid sample, CUDA"):
            process(kind)  # compiles them
            done = [process(kind) for _ in range(compile_times.PROCESSES)]
            assert all(one["hits"] == 1 + compile_times.WARM for one in done), "something was compiled"
            first = Samples(tuple(one["times"][0] for one in done))
            warm = Samples(tuple(statistics.median(one["times"][1:]) for one in done))
            figures[kind] = {"first": first.as_json(), "next": warm.as_json()}
            rows.append([kind, str(first), str(warm)])
    title = f"finding one kernel for the GPU on disk, {compile_times.PROCESSES} processes"
    return figures, [table(title, ["", "first in a process", "next"], rows)]
