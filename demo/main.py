"""``make demo``: two programs on a real photograph, with pictures and a table.

The first is as one would write it for a Mac: below ``kiln.mlx.install()`` it is plain MLX, with kernels made by
``mx.fast.metal_kernel``. The second learns in PyTorch, JAX or MLX, whichever is there (``--library``), through a function
of arrays that is the same for all.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import kiln
import kiln.mlx
from kiln import _core

kiln.mlx.install()

import mlx.core as mx  # noqa: E402
import numpy as np  # noqa: E402

from demo import affine, learn, libraries, photograph, sampling, warp  # noqa: E402

OUT = Path("out")
KERNELS = (sampling.forward_kernel, sampling.backward_kernel, affine.affine_warp, affine.gradient)


def progress(text: str) -> None:
    print(f"  {text} …", flush=True)


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def table(shape, warped: warp.WarpReport, learned: learn.LearnReport, seconds: dict[str, float]) -> str:
    ms = warped.milliseconds
    rows = [
        f"machine     {processor()}, {_core.cpu_threads()} threads; {platform.platform(terse=True)}",
        f"target      cpu, {_core.cpu_architecture()}; Kiln {kiln.__version__}, MLX {importlib.metadata.version('mlx')}",
        f"photograph  {shape[1]} x {shape[0]} pixels",
        "",
        "warp                     MLX's operations        kernel    ratio",
        *(
            f"  {what:8} {ms[f'operations {what}']:29.1f} ms {ms[f'kernel {what}']:10.1f} ms"
            f" {ms[f'operations {what}'] / ms[f'kernel {what}']:7.1f}"
            for what in ("forward", "vjp")
        ),
        f"  largest difference: {warped.forward_difference:.1e} forward, "
        f"{warped.gradient_difference:.1e} of the largest gradient",
        "",
        f"learn in {learned.library}",
        "                          p0      p1      p2      p3      p4      p5",
        f"  truth             {''.join(f'{p:8.4f}' for p in learned.truth)}",
        f"  found             {''.join(f'{p:8.4f}' for p in learned.parameters)}",
        f"  loss {learned.losses[0]:.2e} -> {learned.losses[-1]:.2e}, {100 * learned.loss_left:.2f} % of its start",
        "",
        "kernel                  compiled in   launches   time in launches",
    ]
    for kernel in KERNELS:
        history = kernel.history
        compiled = sum(launch.compile_ms for launch in history)
        rows.append(
            f"  {kernel.name:20} {compiled:10.1f} ms {len(history):10} {sum(e.run_ms for e in history) / 1e3:14.2f} s"
        )
    rows += ["", "where the time went", *(f"  {what:20} {value:10.2f} s" for what, value in seconds.items())]
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.main", description="Warps a photograph, and learns a warp.")
    parser.add_argument(
        "--library", choices=("auto", *libraries.NAMES), default="auto", help="the array library that learns"
    )
    library, reason = libraries.choose(parser.parse_args().library)
    OUT.mkdir(exist_ok=True)
    seconds: dict[str, float] = {}

    def timed(what: str, function, *arguments):
        print(what, flush=True)
        start = time.perf_counter()
        result = function(*arguments)
        seconds[what] = time.perf_counter() - start
        return result

    image = timed("photograph", photograph.load)
    mx.eval(image)
    warped = timed("warp", warp.run, image, OUT / "warp.png", progress)
    progress(f"learning in {library.title}: {reason}")
    learned = timed("learn", learn.run, np.array(image), OUT / "learn.png", progress, library)
    launches = [launch for kernel in KERNELS for launch in kernel.history]
    seconds["  of it compiling"] = sum(launch.compile_ms for launch in launches) / 1e3
    seconds["  of it in kernels"] = sum(launch.run_ms for launch in launches) / 1e3

    text = table(image.shape, warped, learned, seconds)
    (OUT / "table.txt").write_text(text + "\n")
    print(f"\n{text}\n\npictures: {OUT / 'warp.png'}, {OUT / 'learn.png'}; this table: {OUT / 'table.txt'}")
    failures = learned.failures()
    if warped.forward_difference > 1e-5 or warped.gradient_difference > 1e-4:
        failures.append("the kernel and MLX's operations differ")
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
