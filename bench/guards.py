"""``python -m bench.guards``: what memory guards cost, kernel by kernel, as tables for docs/design/compiler.md.

Each kernel of kernels.py runs with guards and with ``bounds: off``, in turns, on the SIMD engine with one thread. Kiln
reads its settings once, so each instruction set is a process of its own. The figure is the least processor time of a
call with guards, as a multiple of that without: other programs make calls slower, never faster.

``--kernels FILE`` takes the kernels of a Python file instead: its ``KERNELS`` has functions by name whose results have
``dialect``, ``body``, ``header``, ``inputs``, ``outputs`` (name: (shape, dtype)), ``grid``, ``tg``, ``init`` and
``atomic``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kiln

from bench import engines, kernels

ROUNDS = 60
# A call that is shorter is repeated, so that the clock's steps do not count.
LEAST_SECONDS = 0.002


def _own(name: str, small: bool) -> list[Callable[[], Any]]:
    problem = kernels.problem(name, small)
    kernel = problem.kernel

    def made(bounds: str) -> Callable[[], Any]:
        options = {**kernel.options, "compile_options": {**kernel.options["compile_options"], "bounds": bounds}}
        again = kiln.metal_kernel(
            kernel.name, kernel.input_names, kernel.output_names, kernel.source, header=kernel.header, **options
        )
        return lambda: again(**problem.call)

    return [made("on"), made("off")]


def _from_file(file: str) -> Any:
    specification = importlib.util.spec_from_file_location("kernels_of_file", file)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.KERNELS


def _others(make: Callable[[], Any]) -> list[Callable[[], Any]]:
    problem = make()
    is_metal = problem.dialect == "metal"
    call = {
        "inputs": list(problem.inputs.values()),
        "output_shapes": [shape for shape, _ in problem.outputs.values()],
        "output_dtypes": [dtype for _, dtype in problem.outputs.values()],
        "grid": problem.grid,
        "threadgroup": problem.tg,
        **({} if problem.init is None else {"init_value": problem.init}),
    }

    def made(bounds: str) -> Callable[[], Any]:
        make_kernel: Any = kiln.metal_kernel if is_metal else kiln.cuda_kernel
        kernel = make_kernel(
            problem.name,
            list(problem.inputs),
            list(problem.outputs),
            problem.body,
            header=problem.header,
            compile_options={"bounds": bounds},
            **({"atomic_outputs": problem.atomic} if is_metal else {}),
        )
        return lambda: kernel(**call)

    return [made("on"), made("off")]


def _seconds(call: Callable[[], Any], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - begin) / count


def ratio(calls: list[Callable[[], Any]], rounds: int) -> float:
    """The least time of the first one, as a multiple of the second one's."""
    for call in calls:
        call()
    count = max(1, round(LEAST_SECONDS / max(_seconds(calls[1], 1), 1e-6)))
    times = [[_seconds(call, count) for call in calls] for _ in range(rounds)]
    return min(t[0] for t in times) / min(t[1] for t in times)


def _measure(arguments: argparse.Namespace) -> dict[str, float]:
    if arguments.kernels:
        file = _from_file(arguments.kernels)
        found = {name: lambda make=make: _others(make) for name, make in file.items()}
    else:
        found = {name: lambda name=name: _own(name, arguments.small) for name in kernels.PROBLEMS}
    names = [name for name in found if not arguments.names or name in arguments.names]
    return {name: ratio(found[name](), arguments.rounds) for name in names}


def table(results: dict[str, dict[str, float]]) -> str:
    """In Markdown: a line for each kernel, the dearest first, a column for each instruction set."""
    isas = list(results)
    names = sorted(results[isas[0]], key=lambda name: -max(results[isa][name] for isa in isas))
    lines = [f"| kernel | {' | '.join(isas)} |", f"|---|{'---|' * len(isas)}"]
    lines += [f"| {name} | {' | '.join(f'{results[isa][name]:.2f}' for isa in isas)} |" for name in names]
    means = [statistics.geometric_mean(results[isa].values()) for isa in isas]
    return "\n".join([*lines, f"| geometric mean of {len(names)} | {' | '.join(f'{mean:.2f}' for mean in means)} |"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.guards", description="What memory guards cost.")
    parser.add_argument("names", nargs="*", help="kernels; by default all")
    parser.add_argument("--kernels", metavar="FILE", help="kernels of a Python file, rather than bench/kernels.py")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--small", action="store_true", help="small arrays, to try the program")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(_measure(arguments)))
        return
    results = {}
    for isa in engines.INSTRUCTION_SETS:
        if isa in engines._instruction_sets():
            environment = {"KILN_CPU_ISA": isa, "KILN_CPU_ENGINE": "simd", "KILN_CPU_THREADS": "1", "KILN_CACHE": "off"}
            done = subprocess.run(
                [sys.executable, "-m", "bench.guards", "--child", *sys.argv[1:]],
                env={**os.environ, **engines._ENVIRONMENT, **environment},
                cwd=Path(__file__).parent.parent,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            results[isa] = json.loads(done.stdout)
    print(table(results))


if __name__ == "__main__":
    main()
