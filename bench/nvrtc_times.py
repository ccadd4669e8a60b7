"""How long CUDA bodies take to compile with NVRTC: the first of a process, its opening included, and the next; with
Kiln's declarations and with CUDA's headers. Needs NVRTC and no GPU: ``python -m bench.nvrtc_times [sm_90]``.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROCESSES = 3
NEXT = 6

EXP = """
    auto elem = cooperative_groups::this_grid().thread_rank();
    T tmp = inp[elem];
    out[elem] = exp(tmp);
"""
PLAIN_EXP = EXP.replace("cooperative_groups::this_grid().thread_rank()", "blockIdx.x * blockDim.x + threadIdx.x")
GRID_SAMPLE = """
    auto elem = cooperative_groups::this_grid().thread_rank();
    int H = x_shape[1], W = x_shape[2], C = x_shape[3], gH = grid_shape[1], gW = grid_shape[2];
    auto place = elem / C * 2;
    T ix = ((grid[place] + 1) * W - 1) / 2, iy = ((grid[place + 1] + 1) * H - 1) / 2;
    int left = floorf(ix), top = floorf(iy);
    auto batch = elem / C / gW / gH * H * W * C + elem % C;
    T sum = 0;
    for (int dy = 0; dy < 2; ++dy)
      for (int dx = 0; dx < 2; ++dx) {
        int col = left + dx, row = top + dy;
        if (col < 0 || col >= W || row < 0 || row >= H) continue;
        sum += (1 - fabsf(ix - col)) * (1 - fabsf(iy - row)) * x[batch + (row * W + col) * C];
      }
    out[elem] = sum;
"""
FULL = "#include <cooperative_groups.h>\n"

# Name: inputs, their dtypes and shapes, source, header.
KINDS = {
    "exp, float, no groups": ({"inp": ("float32", [64])}, PLAIN_EXP, ""),
    "exp, half, no groups": ({"inp": ("float16", [64])}, PLAIN_EXP, ""),
    "exp, half, groups": ({"inp": ("float16", [64])}, EXP, ""),
    "grid sample, groups": ({"x": ("float32", [1, 8, 8, 8]), "grid": ("float32", [1, 4, 4, 2])}, GRID_SAMPLE, ""),
    "exp, half, groups; CUDA's headers": ({"inp": ("float16", [64])}, EXP, FULL),
}


def in_this_process(kind: str, architecture: str) -> list[tuple[float, float]]:
    """Milliseconds of the first compilation and of `NEXT` others: by the clock, and of the processor."""
    import kiln
    from kiln import _core

    inputs, source, header = KINDS[kind]
    taken = []
    for n in range(1 + NEXT):
        start, start_cpu = time.perf_counter(), time.process_time()
        # Another text is another kernel.
        kernel = kiln.cuda_kernel("bench", list(inputs), ["out"], f"{source}// {n}\n", header)
        _core.compile_ahead(
            kernel=kernel,
            inputs=[(dtype, shape, [1] * len(shape)) for dtype, shape in inputs.values()],
            outputs=[("float32", [64])],
            template=[("T", "float32")],
            input_names=[],
            output_names=[],
            specialized=False,
            architecture=architecture,
        )
        taken.append((1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - start_cpu)))
    return taken


def main() -> None:
    architecture = sys.argv[1] if len(sys.argv) > 1 else "sm_90"
    print(f"{'ms, median':36}" + "".join(f"{name:>12}" for name in ("first", "processor", "next", "processor")))
    for kind in KINDS:
        first: list[tuple[float, float]] = []
        following: list[tuple[float, float]] = []
        # CUDA's headers are kept in the folder of the cache, where NVRTC brings them.
        with tempfile.TemporaryDirectory() as folder:
            for n in range(PROCESSES + 1):
                call = f"print(json.dumps(nvrtc_times.in_this_process({kind!r}, {architecture!r})))"
                settings = {"KILN_CACHE": "on", "KILN_CACHE_DIR": folder}
                done = subprocess.run(
                    [sys.executable, "-c", f"import json; from bench import nvrtc_times; {call}"],
                    check=True,
                    capture_output=True,
                    env={**os.environ, **settings},
                )
                taken = json.loads(done.stdout)
                for kept in Path(folder).iterdir():
                    if not kept.name.startswith("cuda-headers"):
                        shutil.rmtree(kept)
                if n == 0:
                    continue  # has written the headers, and brought the files into memory
                first.append(taken[0])
                following += taken[1:]
        columns = [statistics.median(t) for both in (first, following) for t in zip(*both, strict=True)]
        print(f"{kind:36}" + "".join(f"{value:12.1f}" for value in columns), flush=True)


if __name__ == "__main__":
    main()
