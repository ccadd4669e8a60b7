"""How long finding a kernel on disk takes: the first of a process, and the next. (`compile_times` has what it saves.)

The process has met NumPy before, with a kernel that is not compiled: importing takes longer than finding.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from bench import compile_times, measure


def in_this_process(kind: str) -> dict[str, Any]:
    """Times of the first kernel and of its variants, and how many were found on disk."""
    import kiln
    import numpy as np
    from kiln import _core

    kiln.metal_kernel("meet", ["x"], ["y"], "y[0] = x[0];").source_for(
        inputs=[np.zeros(1, np.float32)],
        output_shapes=[(1,)],
        output_dtypes=["float32"],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
    )
    before = _core.cache_status()["hits"]
    times = compile_times.in_this_process(kind)
    return {"times": times, "hits": _core.cache_status()["hits"] - before}


def run(progress) -> tuple[dict[str, Any], list[str]]:
    figures: dict[str, Any] = {}
    rows = []
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as folder:
        environment = {**os.environ, "KILN_CACHE": "on", "KILN_CACHE_DIR": folder}

        def process(kind: str) -> dict[str, Any]:
            program = f"import json; from bench import stored_code as s; print(json.dumps(s.in_this_process({kind!r})))"
            done = subprocess.run(
                [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment
            )
            return json.loads(done.stdout)

        for kind in compile_times.KINDS:
            progress(f"kernels on disk: {kind}")
            process(kind)  # compiles them
            done = [process(kind) for _ in range(compile_times.PROCESSES)]
            assert all(one["hits"] == 1 + compile_times.WARM for one in done), "something was compiled"
            first = measure.Samples(tuple(one["times"][0] for one in done))
            warm = measure.Samples(tuple(statistics.median(one["times"][1:]) for one in done))
            figures[kind] = {"first": first.as_json(), "warm": warm.as_json()}
            rows.append([kind, str(first), str(warm)])
    title = f"finding one kernel on disk, {compile_times.PROCESSES} processes"
    return figures, [measure.table(title, ["", "first in a process", "next"], rows)]
