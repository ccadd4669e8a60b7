"""Every body gives the same bits on every engine with every instruction set (docs/language.md 4.2)."""

import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kiln
import numpy as np
import pytest
import random_bodies
import random_sum_bodies
import random_tile_bodies
import random_waiting_bodies
from configurations import CONFIGURATIONS, LEVELS, available, evaluate, has
from launch_bodies import BODIES, kernel_of, launch_numpy

TESTS = Path(__file__).parent.parent
RANDOM_BODIES = range(40)
RANDOM_TILE_BODIES = range(40)
RANDOM_SUM_BODIES = range(60)
# `tools/compare_engines.py` compares more.
RANDOM_WAITING_BODIES = 500
ON_OTHER_INSTRUCTION_SETS = 100


class Result:
    """What a body gave, and on which engine."""

    def __init__(self, outputs: list[np.ndarray], launch: kiln.Launch) -> None:
        self.outputs = outputs
        self.engine = launch.engine
        self.reason = launch.engine_reason


def bodies_for(waiting: int) -> list[Any]:
    """All that promise bits; of those in the manner of real ones, on the other instruction sets, every fourth: they are
    long to compile."""
    every = [body for body in BODIES.values() if body.compile_options.get("math_mode", "safe") == "safe"]
    if waiting == RANDOM_WAITING_BODIES:
        return every
    return [body for n, body in enumerate(every) if n % 4 == 0 or not body.subject.startswith("corpus_")]


def results(waiting: int) -> dict[str, Result]:
    """Of the bodies in `tests/bodies`, and of random ones, `waiting` of them with threads that work together."""
    found = {}
    for body in bodies_for(waiting):
        outputs = launch_numpy(body, list(body.inputs().values()))
        found[body.name] = Result(outputs, kernel_of(body.name, kiln.metal_kernel).history[-1])
    for seed in RANDOM_BODIES:
        found[f"random {seed}"] = Result(*random_bodies.results(seed))
    for seed in RANDOM_SUM_BODIES:
        found[f"random sums {seed}"] = Result(*random_sum_bodies.results(seed))
    for seed in RANDOM_TILE_BODIES:
        found[f"random tile {seed}"] = Result(*random_tile_bodies.results(seed))
    for seed in range(waiting):
        found[f"random waiting {seed}"] = Result(*random_waiting_bodies.results(seed))
    return found


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """The same bits; a NaN counts as any other."""
    if a.dtype.kind == "c":
        return same(a.real, b.real) and same(a.imag, b.imag)
    bits = f"u{a.dtype.itemsize}"
    equal = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    return bool(np.all(equal | ((a != a) & (b != b))))


def different(ours: dict[str, Result], theirs: dict[str, Result]) -> list[str]:
    """Those of `theirs` that do not agree; `ours` has them all."""
    few = len(bodies_for(ON_OTHER_INSTRUCTION_SETS))
    others = len(RANDOM_BODIES) + len(RANDOM_TILE_BODIES) + len(RANDOM_SUM_BODIES)
    assert len(theirs) >= few + others + ON_OTHER_INSTRUCTION_SETS
    return [
        name
        for name, result in theirs.items()
        if not all(same(a, b) for a, b in zip(ours[name].outputs, result.outputs, strict=True))
    ]


@pytest.fixture(scope="module")
def all_results() -> Any:
    """By configuration; as many processes at a time as there are processors for. The scalar engine and the SIMD engine
    with the processor's best instruction set run every random body. Long ones, too, which the SIMD engine would leave."""
    everywhere = [CONFIGURATIONS[0], *[("simd", isa) for isa, level in LEVELS.items() if has(level)][-1:]]
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        running = {
            (engine, isa): pool.submit(
                evaluate,
                "test_instruction_sets",
                f"m.results({RANDOM_WAITING_BODIES if (engine, isa) in everywhere else ON_OTHER_INSTRUCTION_SETS})",
                KILN_CPU_ENGINE="simd-always" if engine == "simd" else engine,
                KILN_CPU_ISA=isa,
            )
            for engine, isa in available()
        }
        return {configuration: future.result() for configuration, future in running.items()}


def test_an_instruction_set_gives_the_same_bits(all_results):
    assert different(all_results[CONFIGURATIONS[0]], all_results["scalar", "sse2"]) == []


@pytest.mark.parametrize("isa", LEVELS)
def test_the_simd_engine_gives_the_same_bits(isa, all_results):
    if ("simd", isa) not in all_results:
        pytest.skip(f"the processor has no {isa}")
    theirs = all_results["simd", isa]
    # Other modes promise less.
    unsafe = {body.name for body in BODIES.values() if dict(body.compile_options).get("math_mode", "safe") != "safe"}
    assert set(different(all_results[CONFIGURATIONS[0]], theirs)) <= unsafe
    assert {name: result.reason for name, result in theirs.items() if result.engine != "simd"} == {}


def said_by(program: str, **settings: str) -> str:
    """What another process writes."""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_below_avx2_the_simd_engine_leaves_everything_to_the_scalar_one():
    program = (
        "import kiln, numpy as np\n"
        "k = kiln.metal_kernel('k', [], ['y'], 'y[0] = 1;')\n"
        "k(inputs=[], output_shapes=[(1,)], output_dtypes=['int8'], grid=(1, 1, 1), threadgroup=(1, 1, 1))\n"
        "print(k.history[0].engine, k.history[0].engine_reason, sep=': ')"
    )
    said = said_by(program, KILN_CPU_ISA="sse4", KILN_CPU_ENGINE="simd")
    assert said == "scalar: the SIMD engine does not take it: it needs AVX2\n"


@pytest.mark.parametrize("bounds", [(2, 3), ("n[0]", "n[1]")])
@pytest.mark.parametrize("engine", ["simd", "scalar"])
def test_leaving_two_loops_for_two_reasons(engine, bounds):
    """Those that leave exchange values before; the others are at a barrier, to which the loop around it leads again."""
    source = f"""
        uint i = thread_position_in_grid.x;
        y[i] = x[i] + 0 * n[0];
        for (int turn = 0; turn < {bounds[0]}; ++turn) {{
          int k = 0;
          for (; k < {bounds[1]}; ++k) {{
            if (x[i] == k || x[i] == 4 + turn) {{
              y[i] += 100 * simd_sum(1);
              break;
            }}
            threadgroup_barrier(mem_flags::mem_none);
          }}
          if (k < {bounds[1]}) return;
        }}"""
    program = (
        "import kiln, numpy as np\n"
        f"k = kiln.metal_kernel('k', ['x', 'n'], ['y'], {source!r})\n"
        "x = np.random.default_rng(3).integers(0, 9, 128).astype(np.int32)\n"
        "(y,) = k(inputs=[x, np.array([2, 3], np.int32)], output_shapes=[(128,)], output_dtypes=['int32'],\n"
        "         grid=(128, 1, 1), threadgroup=(64, 1, 1))\n"
        "leaves = np.select([x == 0, x == 1, x == 2, x == 4, x == 5], [0, 1, 2, 0, 3], default=-1)\n"
        "groups = leaves.reshape(4, 32)\n"
        "counts = (groups[:, :, None] == groups[:, None, :]).sum(axis=2).ravel()\n"
        "assert (y == np.where(leaves < 0, x, x + 100 * counts)).all()"
    )
    said_by(program, KILN_CPU_ENGINE=engine)


_BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def test_what_may_be_written_too_late_is_left_to_the_scalar_engine():
    """Threads return before a barrier and behind it by the same code, which is too long to be copied."""
    much = " ".join(f"part[t] = part[t] * 3 ^ x[(i + part[t] + {k}) & 255];" for k in range(800))
    source = f"""
        threadgroup int part[64];
        uint i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;
        part[t] = 0;
        y[i] = -1;
        {_BARRIER}
        bool leaves = true;
        if (x[i] >= 2) {{
          {_BARRIER}
          leaves = x[i] > 12;
        }}
        if (leaves) {{
          {much}
          y[i] = part[t];
          part[t] = 100;
          return;
        }}
        {_BARRIER}
        y[i] = part[t ^ 1] + part[t ^ 5];"""
    program = (
        "import kiln, numpy as np\n"
        f"k = kiln.metal_kernel('k', ['x'], ['y'], {source!r})\n"
        "x = np.random.default_rng(3).integers(0, 16, 257).astype(np.int32)\n"
        "(y,) = k(inputs=[x], output_shapes=[(256,)], output_dtypes=['int32'],\n"
        "         grid=(256, 1, 1), threadgroup=(64, 1, 1))\n"
        "at, left = np.arange(256), (x[:256] < 2) | (x[:256] > 12)\n"
        "assert (y == 100 * (left[at ^ 1].astype(int) + left[at ^ 5]))[~left].all()\n"
        "print(k.history[0].engine, k.history[0].engine_reason, sep=': ')"
    )
    said = said_by(program, KILN_CPU_ENGINE="simd")
    too_late = "what threads write before they return may come too late for others behind a barrier"
    why = too_late if has("x86-64-v3") else "it needs AVX2"
    assert said == f"scalar: the SIMD engine does not take it: {why}\n"


def test_code_is_made_for_the_shape_of_threadgroups():
    """The SIMD engine tells rows of whole simdgroups apart, and of pairs of them: a kernel that is called with all kinds
    is right with all."""
    program = (
        "import kiln, numpy as np\n"
        "k = kiln.metal_kernel('k', ['x'], ['y'],\n"
        "    'uint i = thread_position_in_grid.x; y[i] = x[i] + i / 64 + i % 96 + thread_index_in_threadgroup;')\n"
        "x = np.arange(1000, dtype=np.float32)\n"
        "i = np.arange(1000)\n"
        "for size in (256, 100, 32, 7, 64, 100):\n"
        "    (y,) = k(inputs=[x], output_shapes=[(1000,)], output_dtypes=['float32'], grid=(1000, 1, 1),\n"
        "             threadgroup=(size, 1, 1))\n"
        "    assert (y == x + i // 64 + i % 96 + i % size).all(), size\n"
        "print([launch.code for launch in k.history], {launch.engine for launch in k.history})"
    )
    said = said_by(program, KILN_CPU_ENGINE="simd")
    engine = "simd" if has("x86-64-v3") else "scalar"
    assert said == (f"['compiled', 'compiled', 'compiled', 'memory', 'memory', 'memory'] {{'{engine}'}}\n")
