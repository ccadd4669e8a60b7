"""``make bench-engines``: the CPU's engines against C++ written by hand, kernel by kernel.

Each problem of kernels.py runs on the SIMD engine, on the scalar engine and as kernels_by_hand.cpp has it, on the same
arrays, with guards on: with AVX-512 and AVX2, with one thread and all. Kiln reads its settings once, so that each of
these is a process of its own, which takes turns between Kiln and the C++ and prints its figures as JSON. The scalar
engine is there for information, and its times are from other processes.

What is compared is the time of a call from Python, outputs included. Kiln makes new outputs at each call; the C++
writes into those of Kiln's last one: where arrays lie to one another decides on some processors whether a load waits for
a store, and makes code for a softmax twice as slow, Kiln's and the C++ alike. Where memory came from the system each time
its pages would be counted too, so the processes keep what is freed (`_ENVIRONMENT`), and both find pages that were there
before.

Beside the times stand what the machine can do, measured in the same processes: bytes copied, fused multiplications and
additions. Bytes count each array once, so that what stays in the caches may go beyond a copy's figure.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kiln import _core

from bench import kernels, measure

ROUNDS = 10
SCALAR_ROUNDS = 3

INSTRUCTION_SETS = {
    "avx512": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    "avx2": ("-march=x86-64-v3",),
}
# What the SIMD engine is held to, as a multiple of the time by hand.
LIMIT = 1.2
# The C++ of the matrix-vector product distributes and adds up the vector once for all rows, which each simdgroup does for
# its own: 1.3 to 1.4 times (docs/design/passes.md, `invariant-cache`).
LIMITS = {"grid sample": 1.15, "grid sample vjp": 1.05, "histogram": 1.05, "4-bit matrix-vector": 1.5}

# Freed memory stays with the process; OpenMP's threads sleep when they have nothing to do, rather than taking turns
# with Kiln's.
_ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "OMP_WAIT_POLICY": "passive",
    "KMP_BLOCKTIME": "0",
}


def _instruction_sets() -> list[str]:
    """Those that the processor has."""
    levels = {isa: options[0].removeprefix("-march=") for isa, options in INSTRUCTION_SETS.items()}
    return [isa for isa, level in levels.items() if level <= _core.cpu_architecture()]


def compilers() -> list[tuple[str, ...]]:
    """Clang first, whose passes are those of Kiln's compiler; newer ones before others. Clang's OpenMP library may lie
    with another version of Clang."""
    folders = sorted(Path("/usr/lib").glob("llvm-*/lib"), key=lambda folder: -int(folder.parent.name.split("-")[1]))
    folder = next((folder for folder in folders if (folder / "libomp.so").exists()), None)
    library = () if folder is None else (f"-L{folder}", f"-Wl,-rpath,{folder}")
    found = [name for name in ("clang++-19", "clang++-18", "clang++", "g++") if shutil.which(name)]
    return [(name, *(library if name.startswith("clang") else ())) for name in found]


def compile_by_hand(folder: Path, isa: str) -> tuple[Path, str]:
    """The library, and which compiler made it."""
    source = Path(__file__).parent / "kernels_by_hand.cpp"
    library = folder / f"by_hand_{isa}.so"
    said = "there is neither clang++ nor g++"
    for name, *arguments in compilers():
        # What the OpenMP library lacks is to show here, and not when the library is opened.
        command = [
            *(name, "-std=c++20", "-O3", *INSTRUCTION_SETS[isa], "-mtune=native", "-fopenmp"),
            *("-shared", "-fPIC", "-Wl,--no-undefined", "-o", str(library), str(source), *arguments),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            version = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
            return library, version.stdout.splitlines()[0]
        said = done.stderr
    raise SystemExit(f"kernels_by_hand.cpp does not compile: {said}")


class ByHand:
    """Functions of kernels_by_hand.cpp."""

    def __init__(self, library: Path):
        self._library = ctypes.CDLL(str(library))

    def bind(self, problem: kernels.Problem) -> Callable[[Sequence[np.ndarray]], object]:
        """A function of the outputs."""
        inputs = [np.atleast_1d(np.asarray(value)) for value in problem.call["inputs"]]
        function = getattr(self._library, problem.by_hand)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in inputs]
        sizes = [ctypes.c_int64(size) for size in problem.sizes]

        def call(outputs: Sequence[np.ndarray], inputs=inputs) -> object:
            return function(*pointers, *(ctypes.c_void_p(output.ctypes.data) for output in outputs), *sizes)

        return call

    def bind_arrays(self, name: str, arrays: Sequence[np.ndarray], sizes: Sequence[int]):
        """A function without arguments."""
        function = partial(
            getattr(self._library, name),
            *(ctypes.c_void_p(array.ctypes.data) for array in arrays),
            *map(ctypes.c_int64, sizes),
        )
        # Kept for as long as the function.
        return lambda arrays=list(arrays): function()


def check(name: str, problem: kernels.Problem, outputs: Sequence[np.ndarray], who: str, reference=None) -> None:
    for output, exact in zip(outputs, problem.reference() if reference is None else reference, strict=True):
        error = problem.error(output, exact)
        if not error <= 1:
            raise SystemExit(f"{name}: {who} is off by {error:.2g} times what is allowed")


def check_small(name: str, by_hand: ByHand | None) -> str:
    """Runs one problem once at a small size; gives the engine."""
    problem = kernels.problem(name, small=True)
    outputs = problem.kernel(**problem.call)
    check(name, problem, outputs, "Kiln")
    if by_hand:
        theirs = [np.full_like(output, 7) for output in outputs]
        by_hand.bind(problem)(theirs)
        check(name, problem, theirs, "C++ by hand")
    engine: str = problem.kernel.history[-1].engine
    return engine


def _machine(by_hand: ByHand) -> dict[str, float]:
    """GB/s copied and GFLOP/s of fused multiplications and additions, each the best of ten."""
    elements, steps = 1 << 24, 1_000_000
    x, out = np.ones(elements, np.float32), np.ones(elements, np.float32)
    copy = measure.in_turns({"": by_hand.bind_arrays("copy", [x, out], [elements])}, ROUNDS)[""]
    numbers = np.array([0.5, 0.5, 0], np.float32)
    fma = by_hand.bind_arrays("multiply_and_add", [numbers], [steps])
    lanes = by_hand.bind_arrays("lanes", [], [])()
    operations = 2 * 12 * lanes * steps * fma()
    times = measure.in_turns({"": fma}, ROUNDS)[""]
    return {"GB/s": 2e-6 * x.nbytes / min(copy.values), "GFLOP/s": 1e-6 * operations / min(times.values)}


def _child(library: Path, references: Path, engine: str, names: Sequence[str], progress) -> dict[str, Any]:
    """Of this process, whose settings are those of its environment."""
    by_hand = ByHand(library)
    figures: dict[str, Any] = {"machine": _machine(by_hand)} if engine == "simd" else {}
    for name in names:
        progress(name)
        problem = kernels.problem(name)
        with np.load(references / f"{name}.npz") as file:
            reference = list(file.values())
        outputs = list(problem.kernel(**problem.call))
        check(name, problem, outputs, "Kiln", reference)
        launch = problem.kernel.history[-1]
        if launch.engine != engine:
            raise SystemExit(f"{name} ran on the {launch.engine} engine: {launch.engine_reason}")

        def run_kiln(problem=problem, outputs=outputs) -> None:
            outputs.clear()  # whose memory the new ones get
            outputs.extend(problem.kernel(**problem.call))

        functions: dict[str, Callable[[], object]] = {"Kiln": run_kiln}
        if engine == "simd":
            for output in outputs:
                output.fill(1)
            functions["by hand"] = partial(by_hand.bind(problem), outputs)
            functions["by hand"]()
            check(name, problem, outputs, "C++ by hand", reference)
        times = measure.in_turns(functions, ROUNDS if engine == "simd" else SCALAR_ROUNDS)
        figures[name] = {who: samples.as_json() for who, samples in times.items()}
        figures[name] |= {
            "work": problem.work,
            "unit": problem.unit,
            "inputs": [np.shape(value) for value in problem.call["inputs"]],
            "outputs": problem.call["output_shapes"],
        }
        if "by hand" in times:
            figures[name]["ratio"] = times["Kiln"].median / times["by hand"].median
    return figures


def _run_child(arguments: dict[str, Any], isa: str, threads: int, progress) -> dict[str, Any]:
    settings = {
        "KILN_CPU_ENGINE": arguments["engine"],
        "KILN_CPU_ISA": isa,
        "KILN_CPU_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
    }
    progress(f"{arguments['engine']} engine, {isa}, threads: {threads}")
    done = subprocess.run(
        [sys.executable, "-m", "bench.engines", "--child", json.dumps(arguments)],
        env={**os.environ, **_ENVIRONMENT, **settings},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _rate(figures: dict[str, Any], milliseconds: float) -> str:
    unit = figures["unit"]
    rate = figures["work"] / milliseconds / (1e3 if unit.startswith("M ") else 1e6)
    return f"{rate:.3g} {unit}"


def _table(title: str, simd: dict[str, Any], scalar: dict[str, Any], names: Sequence[str]) -> str:
    rows = []
    for name in names:
        kiln, by_hand, ratio = *(simd[name][who]["median_ms"] for who in ("Kiln", "by hand")), simd[name]["ratio"]
        limit = LIMITS.get(name, LIMIT)
        rows.append(
            [
                name,
                f"{kiln:.3g} ms",
                f"{by_hand:.3g} ms",
                f"{ratio:.2f}",
                f"{limit:.2f}" + ("" if ratio <= limit else " !"),
                _rate(simd[name], kiln),
                _rate(simd[name], by_hand),
                f"{scalar[name]['Kiln']['median_ms']:.3g} ms" if name in scalar else "",
            ]
        )
    machine = f"copying {simd['machine']['GB/s']:.3g} GB/s, fma {simd['machine']['GFLOP/s']:.3g} GFLOP/s"
    header = ["", "SIMD engine", "by hand", "ratio", "limit", "SIMD engine", "by hand", "scalar engine"]
    return measure.table(f"{title}; the machine: {machine}", header, rows)


def run(progress, isas: Sequence[str], threads: Sequence[int], names: Sequence[str], with_scalar: bool):
    load = os.getloadavg()[0]
    if load > 0.5:
        progress(f"other programs run here (load {load:.1f}): times of all threads will be those of fewer")
    figures: dict[str, Any] = {"load_before": load, "limits": {name: LIMITS.get(name, LIMIT) for name in names}}
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        progress("references")
        for name in names:
            np.savez(Path(folder) / f"{name}.npz", *kernels.problem(name).reference())
        for isa in isas:
            library, compiler = compile_by_hand(Path(folder), isa)
            figures["compiler"] = compiler
            for count in threads:
                arguments = {"library": str(library), "references": folder, "names": list(names)}
                simd = _run_child(arguments | {"engine": "simd"}, isa, count, progress)
                scalar = _run_child(arguments | {"engine": "scalar"}, isa, count, progress) if with_scalar else {}
                figures[f"{isa}, threads: {count}"] = {"simd": simd, "scalar": scalar}
                tables.append(_table(f"{isa}, threads: {count}", simd, scalar, names))
    return figures, tables


def main() -> None:
    def progress(what: str) -> None:
        print(f"  {what} …", file=sys.stderr, flush=True)

    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="kernel", help=", ".join(kernels.PROBLEMS))
    parser.add_argument("--isa", choices=INSTRUCTION_SETS, action="append")
    parser.add_argument("--threads", type=int, action="append", help="by default 1, and as many as there are")
    parser.add_argument("--no-scalar", action="store_true", help="leave the scalar engine out")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child = arguments.child
        names, folder = child["names"], Path(child["references"])
        print(json.dumps(_child(Path(child["library"]), folder, child["engine"], names, lambda what: None)))
        return
    unknown = set(arguments.names) - kernels.PROBLEMS.keys()
    if unknown:
        parser.error(f"no such kernel: {', '.join(sorted(unknown))}")
    names = arguments.names or list(kernels.PROBLEMS)
    threads = arguments.threads or sorted({1, len(os.sched_getaffinity(0))})
    isas = arguments.isa or _instruction_sets()
    figures, tables = run(progress, isas, threads, names, not arguments.no_scalar)
    print("\n\n".join(tables))
    if len(sys.argv) == 1:
        print(f"\nwritten to {measure.write('engines', figures)}")


if __name__ == "__main__":
    main()
