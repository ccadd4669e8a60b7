"""Which engine a body gets by what pays, and the reason for it in a launch's words. The choice is an estimate without a
clock, so it is the same on every machine with the same instruction set; results do not depend on it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import kiln
import numpy as np
import pytest
from kiln import _core

pytestmark = pytest.mark.skipif(_core.cpu_architecture() < "x86-64-v3", reason="the processor has no AVX2")

CYCLES = r" \(estimated cycles of a simdgroup: \d+, of its threads one after the other: \d+\)"
PAYS_NOT = "the SIMD engine does not take it: vectors would not pay: "
ROWS = (
    re.escape(PAYS_NOT + "each thread walks a row of its own, and the rows evict one another from the cache") + CYCLES
)
STACKS = re.escape(PAYS_NOT + "its threads index private arrays by numbers of their own") + CYCLES
INDEXED = re.escape(PAYS_NOT + "most of its time is spent on accesses that differ from lane to lane") + CYCLES

THREADS, LENGTH = 96, 512

RUNNING_SUM = """
    uint i = thread_position_in_grid.x;
    float sum = 0;
    for (int t = 0; t < x_shape[1]; ++t) {
        sum += x[i * x_shape[1] + t];
        y[i * x_shape[1] + t] = sum * sum;
    }
"""

# The same through memory, so that no blocks of iterations are made.
FED_BACK = """
    uint i = thread_position_in_grid.x;
    for (int t = 0; t < x_shape[1]; ++t) {
        float before = t > 0 ? y[i * x_shape[1] + t - 1] : 0.0f;
        y[i * x_shape[1] + t] = before + x[i * x_shape[1] + t];
    }
"""

# Ways to put bricks of 1, 2 and 3 in a row of a length, by a stack of what was tried.
STACK = """
    uint i = thread_position_in_grid.x;
    int tried[24], left[24], count = 0, depth = 0;
    left[0] = int(x[i]);
    tried[0] = 0;
    while (depth >= 0) {
        if (left[depth] == 0) {
            ++count;
            --depth;
            continue;
        }
        if (tried[depth] == 3 || tried[depth] >= left[depth]) {
            --depth;
            continue;
        }
        ++tried[depth];
        left[depth + 1] = left[depth] - tried[depth];
        tried[depth + 1] = 0;
        ++depth;
    }
    y[i] = count;
"""

# Follows a list until a number repeats.
SEARCH = """
    uint i = thread_position_in_grid.x;
    int found = -1;
    for (int k = starts[i]; k < starts[i + 1]; ++k) {
        if (x[near[k]] == 2) {
            found = k;
            break;
        }
    }
    y[i] = found;
"""


def choice_of(engine: str, isa: str, case: str) -> tuple[str, str, list[float]]:
    """Engine, reason and output of a case, from another process."""
    program = f"import json, test_engine_choice as t; print(json.dumps(t.run({case!r})))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        env={**os.environ, "KILN_CPU_ENGINE": engine, "KILN_CPU_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    chosen: tuple[str, str, list[float]] = tuple(json.loads(done.stdout))
    return chosen


def numbers(count: int, limit: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, limit, count)


def arrays(case: str) -> tuple[str, dict[str, np.ndarray], tuple[int, ...]]:
    """Body, inputs and the output's shape."""
    if case.startswith(("rows", "fed back")):
        length = int(case.split()[-1])
        return (
            RUNNING_SUM if case.startswith("rows") else FED_BACK,
            {"x": numbers(THREADS * length, 9).reshape(THREADS, length).astype(np.float32)},
            (THREADS, length),
        )
    if case == "stack":
        return STACK, {"x": numbers(THREADS, 9).astype(np.float32)}, (THREADS,)
    starts = np.concatenate([[0], np.cumsum(numbers(THREADS, 20))]).astype(np.int32)
    near = numbers(int(starts[-1]), 200).astype(np.int32)
    return SEARCH, {"starts": starts, "near": near, "x": numbers(200, 10).astype(np.int32)}, (THREADS,)


def run(case: str) -> tuple[str, str, list[float]]:
    body, inputs, shape = arrays(case)
    kernel = kiln.metal_kernel("choice", list(inputs), ["y"], body)
    (y,) = kernel(
        inputs=list(inputs.values()),
        output_shapes=[shape],
        output_dtypes=["float32"],
        grid=(THREADS, 1, 1),
        threadgroup=(32, 1, 1),
    )
    launch = kernel.history[-1]
    return launch.engine, launch.engine_reason, y.ravel().tolist()


def expected(case: str) -> list[float]:
    _, inputs, _ = arrays(case)
    if case.startswith("rows"):
        sums = np.cumsum(inputs["x"], axis=1, dtype=np.float32)
        return (sums * sums).ravel().tolist()
    if case.startswith("fed back"):
        return np.cumsum(inputs["x"], axis=1, dtype=np.float32).ravel().tolist()
    if case == "stack":
        ways = [1, 1, 2]
        while len(ways) < 10:
            ways.append(sum(ways[-3:]))
        return [float(ways[int(left)]) for left in inputs["x"]]
    starts, near, x = (inputs[name] for name in ("starts", "near", "x"))
    return [float(next((k for k in range(starts[i], starts[i + 1]) if x[near[k]] == 2), -1)) for i in range(THREADS)]


INSTRUCTION_SETS = ["avx2", *(["avx512"] if _core.cpu_architecture() >= "x86-64-v4" else [])]


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize(("case", "reason"), [(f"fed back {LENGTH}", ROWS), ("stack", STACKS)])
def test_what_vectors_do_not_pay_for_goes_to_the_scalar_engine(isa, case, reason):
    engine, said, y = choice_of("simd", isa, case)
    assert engine == "scalar"
    assert re.fullmatch(reason, said), said
    assert y == expected(case)


def test_a_search_in_lists_goes_to_the_scalar_engine_without_gathers():
    engine, said, y = choice_of("simd", "avx2", "search")
    assert engine == "scalar"
    assert re.fullmatch(INDEXED, said), said
    assert y == expected("search")


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("length", [500, 513, 100, LENGTH])
def test_rows_that_are_moved_in_blocks_stay_on_the_simd_engine(isa, length):
    engine, said, y = choice_of("simd", isa, f"rows {length}")
    assert (engine, said) == ("simd", "the default")
    assert y == expected(f"rows {length}")


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("case", [f"rows {LENGTH}", f"fed back {LENGTH}", "stack", "search"])
def test_simd_always_ignores_what_pays(isa, case):
    engine, _, y = choice_of("simd-always", isa, case)
    assert engine == "simd"
    assert y == expected(case)


@pytest.mark.parametrize("threadgroup", [(64, 2, 1), (64, 4, 1), (128, 2, 1), (32, 4, 1), (16, 8, 1), (128, 1, 1)])
@pytest.mark.parametrize("length", [63, 64, 65, 324])
def test_loops_over_a_threadgroups_threads_are_vectors(threadgroup, length):
    """Where a loop is shorter than the threadgroup, the optimizer must know that the threadgroup has threads: it saw a
    loop that never ends, which has no join."""
    source = f"""
        threadgroup float tile[{length}];
        uint2 at = thread_position_in_grid.xy;
        uint t = thread_index_in_threadgroup, threads = threads_per_threadgroup.x * threads_per_threadgroup.y;
        for (uint i = t; i < {length}; i += threads) tile[i] = x[i] * 2 + threadgroup_position_in_grid.y;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[at.y * 256 + at.x] = tile[(7 * t) % {length}];
    """
    kernel = kiln.metal_kernel("tiles", ["x"], ["y"], source)
    x = np.arange(length, dtype=np.float32)
    outputs = kernel(
        inputs=[x],
        grid=(256, 8, 1),
        threadgroup=threadgroup,
        output_shapes=[(8, 256)],
        output_dtypes=["float32"],
    )
    assert kernel.history[-1].engine == "simd", kernel.history[-1].engine_reason
    row, column = np.indices((8, 256))
    t = column % threadgroup[0] + row % threadgroup[1] * threadgroup[0]
    np.testing.assert_array_equal(outputs[0], x[7 * t % length] * 2 + row // threadgroup[1])
