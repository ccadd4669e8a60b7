"""``make bench-passes``: what each optional pass of the compiler is worth, as the page docs/design/passes.md.

Three questions for each pass of ``src/compiler/pipeline.cpp`` that results do not depend on:

* On how many bodies does it do something? Every body of tests/bodies is compiled for the CPU, for each instruction set
  that the processor has, and asked which passes fired.
* What does its removal cost? Each kernel of kernels.py (and of another file, ``--kernels``) on which it fires is timed
  in two processes, of which one has the pass switched off (``KILN_PASSES=-name``). The processes take turns. A third one
  switches nothing off, so that the same comparison says how far figures are from one another by themselves.
* What does it cost? The part of the time of compiling all bodies, and lines of code.

One thread, so that nothing but the code is compared. Rejected: counting a pass as worth its place when it fires. Some
fire on a third of all bodies and gain nothing measurable there.

A file for ``--kernels`` has ``KERNELS``: functions, by name, that make a problem with the attributes ``name``, ``body``,
``header``, ``dialect``, ``inputs`` (arrays by name), ``outputs`` (shape and dtype by name), ``grid``, ``tg``,
``template``, ``atomic``, ``init`` and ``math_mode``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench import measure

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "design" / "passes.md"
COMPILER = ROOT / "src" / "compiler"
BEGIN, END = "<!-- made by `make bench-passes` -->", "<!-- end -->"

INSTRUCTION_SETS = {"avx512": "x86-64-v4", "avx2": "x86-64-v3"}
# Removal costs something from here on. Of a process against itself, nine kernels of ten stay below.
NOISE = 1.03
ROUNDS = 9
# A turn takes this long, so that the clock and a first call's cache misses do not count.
TURN_MS = 20.0

# Passes whose code is a part of another's file.
_SHARED_FILES = {
    "guarded-loop-versioning": "loop_versioning",
    "atomic-prefetch": "prefetch",
    "coarsened-loop-versioning": "loop_versioning",
    "order-stores": "split_vectors",
    "partial-unrolling": "full_unrolling",
    "scalar-slow-version": "function_versioning",
    "threadgroup-versioning": "loop_versioning",
}


def optional_passes() -> list[str]:
    """Names, from the one list."""
    text = (COMPILER / "pipeline.cpp").read_text()
    names = re.search(r"kOptionalPasses\[\] = \{(.*?)\};", text, re.S)
    assert names is not None
    return re.findall(r'"([a-z0-9-]+)"', names[1])


def lines_of(name: str) -> tuple[int, str | None]:
    """Lines of the files that are named after the pass, and the file that it shares with another."""
    shared = _SHARED_FILES.get(name)
    stem = shared or name.replace("-", "_")
    files = sorted(COMPILER.glob(f"*/{stem}.h")) + sorted(COMPILER.glob(f"*/{stem}.cpp"))
    if not files:
        raise SystemExit(f"no file of src/compiler is named after the pass {name}")
    return sum(len(file.read_text().splitlines()) for file in files), shared


# ---- What runs in a process of its own


Maker = Callable[[], tuple[Any, dict[str, Any]]]
"""Makes a kernel and the keywords of its call."""


def _bench_kernels() -> dict[str, Maker]:
    from bench import kernels

    def make(name: str) -> tuple[Any, dict[str, Any]]:
        problem = kernels.problem(name)
        return problem.kernel, problem.call

    return {f"bench: {name}": partial(make, name) for name in kernels.PROBLEMS}


def _kernels_of(path: str) -> dict[str, Maker]:
    import kiln

    spec = importlib.util.spec_from_file_location("kernels_of_a_file", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def make(name: str) -> tuple[Any, dict[str, Any]]:
        p = module.KERNELS[name]()
        described: dict[str, Any] = {
            "name": p.name,
            "input_names": list(p.inputs),
            "output_names": list(p.outputs),
            "source": p.body,
            "header": p.header,
            "compile_options": {} if p.math_mode is None else {"math_mode": p.math_mode},
        }
        if p.dialect == "metal":
            described["atomic_outputs"] = p.atomic
        call: dict[str, Any] = {
            "inputs": list(p.inputs.values()),
            "output_shapes": [shape for shape, _ in p.outputs.values()],
            "output_dtypes": [dtype for _, dtype in p.outputs.values()],
            "grid": p.grid,
            "threadgroup": p.tg,
        }
        if p.template is not None:
            call["template"] = p.template
        if p.init is not None:
            call["init_value"] = p.init
        maker: Any = kiln.metal_kernel if p.dialect == "metal" else kiln.cuda_kernel
        return maker(**described), call

    file = Path(path)
    label = file.parent.name if file.stem == "kernels" else file.stem.replace("_", " ")
    return {f"{label}: {name}": partial(make, name) for name in module.KERNELS}


def _problems(files: Iterable[str]) -> dict[str, Maker]:
    found = _bench_kernels()
    for file in files:
        found |= _kernels_of(file)
    return found


def _serve(files: Sequence[str]) -> None:
    """Answers requests, a line of JSON each: names of problems, passes that fire on one, the time of one."""
    problems = _problems(files)
    made: dict[str, tuple[Any, dict[str, Any], int]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        if request["what"] == "names":
            answer = list(problems)
        elif request["what"] == "passes":
            kernel, call = problems[request["name"]]()
            answer = sorted({p.name for p in kernel.compile(**call).passes() if p.fired and p.number})
        else:
            name = request["name"]
            if name not in made:
                made.clear()
                kernel, call = problems[name]()
                kernel(**call)
                start = time.perf_counter()
                kernel(**call)
                once = 1e3 * (time.perf_counter() - start)
                made[name] = kernel, call, max(1, round(TURN_MS / max(once, 1e-3)))
            kernel, call, calls = made[name]
            start = time.perf_counter()
            for _ in range(calls):
                kernel(**call)
            answer = 1e3 * (time.perf_counter() - start) / calls
        print(json.dumps(answer), flush=True)


def _count(first: int, step: int) -> None:
    """Which passes fire on every so many of the bodies of tests/bodies, as JSON."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "python")]
    import bodies
    import kiln
    import launch_bodies

    fired: Counter[str] = Counter()
    ms: defaultdict[str, float] = defaultdict(float)
    count, total = 0, 0.0
    for body in bodies.all_bodies()[first::step]:
        kernel = launch_bodies.kernel_of(body.name, kiln.metal_kernel)
        template = [(k, bodies.DTYPES[v] if isinstance(v, bodies.Dtype) else v) for k, v in body.template]
        passes = kernel.compile(
            inputs=list(body.inputs().values()),
            template=template,
            grid=body.grid,
            threadgroup=body.threadgroup,
            output_shapes=[shape for shape, _ in body.outputs.values()],
            output_dtypes=[bodies.DTYPES[dtype] for _, dtype in body.outputs.values()],
        ).passes()
        count += 1
        total += sum(p.ms for p in passes)
        fired.update({p.name for p in passes if p.fired and p.number})
        for p in passes:
            if p.number:
                ms[p.name] += p.ms
    print(json.dumps({"bodies": count, "fired": fired, "ms": ms, "total_ms": total}))


# ---- What asks them


def _environment(isa: str, switched_off: str | None) -> dict[str, str]:
    settings = {"KILN_CACHE": "off", "KILN_CPU_THREADS": "1", "KILN_CPU_ISA": isa}
    if switched_off:
        settings["KILN_PASSES"] = f"-{switched_off}"
    # Freed memory stays with the process, as in engines.py.
    settings |= {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **settings}


class _Process:
    """`processor`: the one that it runs on."""

    def __init__(self, isa: str, files: Sequence[str], processor: int, switched_off: str | None = None):
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.passes", "--serve", f"--processor={processor}"),
                *(f"--kernels={file}" for file in files),
            ],
            env=_environment(isa, switched_off),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: str, name: str = "") -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"what": what, "name": name}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Removal(NamedTuple):
    """What it costs to switch a pass off: times without it, as multiples of those with it, by kernel."""

    ratios: dict[str, float]

    @property
    def median(self) -> float | None:
        return statistics.median(self.ratios.values()) if self.ratios else None

    @property
    def worst(self) -> tuple[str, float] | None:
        return max(self.ratios.items(), key=lambda item: item[1]) if self.ratios else None

    @property
    def gains(self) -> int:
        """How many kernels gain by the pass."""
        return sum(ratio >= NOISE for ratio in self.ratios.values())


def _ratios(one: _Process, other: _Process, names: Iterable[str], rounds: int) -> dict[str, float]:
    """The time in `other` as a multiple of that in `one`: the median over rounds of the ratio in a round."""
    found = {}
    for name in names:
        ratios = []
        for i in range(rounds + 1):
            order = (one, other) if i % 2 else (other, one)
            times = {process: process.ask("time", name) for process in order}
            if i:
                ratios.append(times[other] / times[one])
        found[name] = statistics.median(ratios)
    return found


def removal(
    isa: str, files: Sequence[str], passes: Sequence[str], names: Sequence[str], rounds: int, jobs: int, progress
) -> dict[str, Any]:
    """For each pass its ratios, and those of a process against itself. `jobs` passes are measured at once, the two
    processes of each on one processor."""
    processors = sorted(os.sched_getaffinity(0))
    free = [processors[i * len(processors) // jobs] for i in range(jobs)]
    with contextlib.closing(_Process(isa, files, free[0])) as whole:
        chosen = [name for name in whole.ask("names") if not names or name.partition(": ")[2] in names]
        fired = {name: whole.ask("passes", name) for name in chosen}

    def ratios_without(name: str | None) -> dict[str, float]:
        affected = [kernel for kernel in chosen if name is None or name in fired[kernel]]
        progress(f"{isa}: {'nothing switched off' if name is None else f'without {name}'}, {len(affected)} kernels")
        if not affected:
            return {}
        processor = free.pop()
        try:
            with (
                contextlib.closing(_Process(isa, files, processor)) as whole,
                contextlib.closing(_Process(isa, files, processor, name)) as other,
            ):
                return _ratios(whole, other, affected, rounds)
        finally:
            free.append(processor)

    # Those that fire most take longest.
    order = sorted(passes, key=lambda name: -sum(name in of_kernel for of_kernel in fired.values()))
    with ThreadPoolExecutor(jobs) as pool:
        same, *ratios = pool.map(ratios_without, [None, *order])
    return {"kernels": chosen, "same": same, "ratios": dict(zip(order, ratios, strict=True))}


def firing(isa: str, step: int = 1, jobs: int = 1) -> dict[str, Any]:
    """Of every `step`-th body: how many there are, on how many each pass fires, and how long passes take."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.passes", f"--count={job * step},{jobs * step}"],
            env=_environment(isa, None),
            stdout=subprocess.PIPE,
        )
        for job in range(jobs)
    ]
    fired: Counter[str] = Counter()
    ms: Counter[str] = Counter()
    found: dict[str, Any] = {"bodies": 0, "fired": fired, "ms": ms, "total_ms": 0.0}
    for process in processes:
        output, _ = process.communicate()
        if process.returncode:
            raise SystemExit("counting failed")
        part = json.loads(output)
        found["bodies"] += part["bodies"]
        found["total_ms"] += part["total_ms"]
        fired.update(part["fired"])
        ms.update(part["ms"])
    return found


def _cell(figures: dict[str, Any], name: str) -> list[str]:
    counted, cost = figures["firing"], Removal(figures["removal"]["ratios"][name])
    share = 100 * counted["fired"].get(name, 0) / counted["bodies"]
    cells = [f"{share:.1f} %", f"{len(cost.ratios)}"]
    if cost.median is None or cost.worst is None:
        return [*cells, "", "", ""]
    kernel, worst = cost.worst
    return [*cells, f"{cost.gains}", f"{cost.median:.2f}", f"{worst:.2f} ({kernel})" if worst >= NOISE else "none"]


def page(content: dict[str, Any]) -> str:
    """The tables, in Markdown."""
    figures = content["figures"]
    machine = content["machine"]
    parts = [f"{machine['processor']}, one thread, {content['date']}."]
    for isa, of_isa in figures.items():
        counted, kernels = of_isa["firing"], of_isa["removal"]
        same = sorted(kernels["same"].values())
        parts.append(
            f"## {'AVX-512' if isa == 'avx512' else 'AVX2'}\n\n"
            f"{counted['bodies']} bodies, {len(kernels['kernels'])} kernels. A process against itself: "
            f"{same[0]:.2f} to {same[-1]:.2f} times, median {statistics.median(same):.2f}."
        )
        rows = [
            "| pass | bodies on which it fires | kernels on which it fires | kernels that gain "
            "| removal, median | removal, worst | compile time | lines |",
            "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
        ]
        # Passes that were removed since stay in the figures.
        for name in sorted(kernels["ratios"].keys() & set(optional_passes())):
            lines, shared = lines_of(name)
            time_share = f"{100 * counted['ms'].get(name, 0) / counted['total_ms']:.1f} %"
            amount = f"in `{shared}`" if shared else str(lines)
            rows.append(f"| {' | '.join([f'`{name}`', *_cell(of_isa, name), time_share, amount])} |")
        parts.append("\n".join(rows))
    # Passes that came later, and how they were measured.
    if "added" in content:
        parts.append(content["added"])
    return "\n\n".join(parts)


def write_page(content: dict[str, Any]) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{page(content)}\n\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels_or_all", nargs="*", metavar="KERNEL", help="by default all")
    parser.add_argument("--kernels", action="append", default=[], metavar="FILE", help="more kernels; may be repeated")
    parser.add_argument("--passes", type=lambda text: text.split(","), default=None, help="by default all")
    parser.add_argument("--isa", choices=INSTRUCTION_SETS, action="append", help="by default those of the processor")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--step", type=int, default=1, help="count only every so many bodies")
    parser.add_argument("--jobs", type=int, default=1, help="how many passes are measured at once")
    parser.add_argument("--processor", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--count", help=argparse.SUPPRESS)
    parser.add_argument("--page", action="store_true", help="write the page from bench/results/passes.json")
    arguments = parser.parse_args()
    if arguments.serve:
        os.sched_setaffinity(0, {arguments.processor})
        return _serve(arguments.kernels)
    if arguments.count:
        return _count(*map(int, arguments.count.split(",")))
    path = measure.RESULTS / "passes.json"
    if not arguments.page:
        from kiln import _core

        def progress(what: str) -> None:
            print(f"  {what} …", file=sys.stderr, flush=True)

        isas = arguments.isa or [isa for isa, level in INSTRUCTION_SETS.items() if level <= _core.cpu_architecture()]
        passes = arguments.passes or optional_passes()
        figures = {}
        for isa in isas:
            progress(f"{isa}: bodies")
            counted = firing(isa, arguments.step, arguments.jobs)
            costs = removal(
                isa, arguments.kernels, passes, arguments.kernels_or_all, arguments.rounds, arguments.jobs, progress
            )
            figures[isa] = {"firing": counted, "removal": costs}
        measure.write("passes", figures)
    content = json.loads(path.read_text())
    write_page(content)
    print(page(content))
    print(f"\nwritten to {path} and {PAGE}")
    return None


if __name__ == "__main__":
    main()
