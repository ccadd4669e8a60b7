"""How long a kernel takes to compile for the GPU: the first of a process, all libraries' opening included, and the next.

CuPy and MLX are asked for the same kernels in CUDA; both would find what they compiled before on disk, so each kernel's
text is new.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.measure import Samples, table

PROCESSES = 3
WARM = 9

_EXP = "unsigned i = blockIdx.x * blockDim.x + threadIdx.x; T value = inp[i]; out[i] = exp(float(value));"
_GROUPS = "auto group = cooperative_groups::this_thread_block(); unsigned i = blockIdx.x * group.size() + group.thread_rank(); "
_GROUPED_EXP = _GROUPS + "T value = inp[i]; out[i] = exp(float(value));"
_MLX_LIBRARY = "MLX cuda_kernel"


def _forward_in_cuda() -> str:
    """The documented forward body in CUDA."""
    from bench import bodies

    return bodies.FORWARD.replace(
        "uint elem = thread_position_in_grid.x;",
        "unsigned elem = blockIdx.x * blockDim.x + threadIdx.x;",
    ).replace("uint place", "unsigned place")


def kiln_compiler(kind: str, mark: str) -> Callable[[int], None]:
    """Compiles the n-th kernel of a kind; those of two processes are equal where the mark is."""
    import kiln
    import torch

    from bench import bodies

    a = torch.zeros(4096, device="cuda")
    x, grid = torch.zeros((1, 64, 64, 64), device="cuda"), torch.zeros((1, 16, 16, 2), device="cuda")
    interface: Callable[..., Any]
    if kind == "grid sample, Metal":
        make, source, call, interface = (
            bodies.forward_kernel,
            bodies.FORWARD,
            bodies.forward_call(x, grid),
            kiln.metal_kernel,
        )
    elif kind == "exp, Metal":
        make, source, call, interface = bodies.exp_kernel, bodies.EXP, bodies.exp_call(a, a.dtype), kiln.metal_kernel
    elif kind == "grid sample, CUDA":
        make, source = bodies.forward_kernel, _forward_in_cuda()
        call, interface = bodies.forward_call(x, grid), kiln.cuda_kernel
    else:
        source = _EXP if kind == "exp, CUDA" else _GROUPED_EXP
        make, call, interface = bodies.exp_kernel, bodies.exp_call(a, a.dtype), kiln.cuda_kernel
    return lambda n: make(interface, f"{source}\n    // {n} {mark}").compile(**call)


def _kiln(kind: str) -> Callable[[int], None]:
    return kiln_compiler(kind, str(os.getpid()))


def _mlx(kind: str) -> Callable[[int], None]:
    import mlx.core as mx

    from bench import bodies

    a, x, grid = mx.zeros(4096), mx.zeros((1, 64, 64, 64)), mx.zeros((1, 16, 16, 2))
    mx.eval(a, x, grid)
    if kind == "grid sample, CUDA":
        make, source, call = bodies.forward_kernel, _forward_in_cuda(), bodies.forward_call(x, grid)
    else:
        make, source, call = bodies.exp_kernel, _EXP, bodies.exp_call(a, a.dtype)
    return lambda n: mx.eval(make(mx.fast.cuda_kernel, f"{source}\n    // {n} {os.getpid()}")(**call))


def _cupy(kind: str) -> Callable[[int], None]:
    import cupy

    from bench.gpu import by_hand

    text, name = (by_hand.EXP, "exp_of") if kind == "exp, CUDA" else (by_hand.FORWARD, "grid_sample")
    return lambda n: cupy.RawKernel(f"{text}\n// {n} {os.getpid()}", name).compile()


LIBRARIES: dict[str, tuple[Callable[[str], Callable[[int], None]], tuple[str, ...]]] = {
    "Kiln": (
        _kiln,
        ("exp, Metal", "grid sample, Metal", "exp, CUDA", "grid sample, CUDA", "exp, CUDA with cooperative groups"),
    ),
    "CuPy RawKernel": (_cupy, ("exp, CUDA", "grid sample, CUDA")),
    _MLX_LIBRARY: (_mlx, ("exp, CUDA", "grid sample, CUDA")),
}


def in_this_process(library: str, kind: str) -> list[float]:
    """Milliseconds of the first compilation of the process, then of ``WARM`` others. The arrays and the GPU's context
    are there before."""
    compile_variant = LIBRARIES[library][0](kind)
    times = []
    for n in range(1 + WARM):
        start = time.perf_counter()
        compile_variant(n)
        times.append(1e3 * (time.perf_counter() - start))
    return times


def run() -> tuple[dict[str, Any], list[str]]:
    first: dict[str, list[float]] = {}
    warm: dict[str, list[float]] = {}
    for _ in range(PROCESSES):
        for library, (_, kinds) in LIBRARIES.items():
            for kind in kinds:
                program = (
                    "import json; from bench.gpu import compile_times as c; "
                    f"print(json.dumps(c.in_this_process({library!r}, {kind!r})))"
                )
                done = subprocess.run(
                    [sys.executable, "-c", program],
                    capture_output=True,
                    text=True,
                    env={**os.environ, "KILN_CACHE": "off"},
                )
                if done.returncode != 0:
                    if library == "Kiln":
                        raise SystemExit(done.stderr)
                    continue  # a library that is not there
                times = json.loads(done.stdout.splitlines()[-1])
                first.setdefault(f"{library}: {kind}", []).append(times[0])
                warm.setdefault(f"{library}: {kind}", []).append(statistics.median(times[1:]))
    figures, rows = {}, []
    for name in first:
        a, b = Samples(tuple(first[name])), Samples(tuple(warm[name]))
        figures[name] = {"first": a.as_json(), "next": b.as_json()}
        rows.append([name, str(a), str(b)])
    return figures, [table("compiling one new kernel for the GPU", ["", "first in a process", "next"], rows)]
