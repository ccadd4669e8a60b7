"""Compile time grows with the length of a body and not with its square: what can be told without a clock. Long bodies go
to the scalar engine, with a reason; code grows in proportion to the body; results do not depend on the engine."""

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
from sampling import sampled

from bench.compile_growth import KINDS, compile_once

SHORT = {
    "conditional lines": 8,
    "switch cases": 8,
    "else-if chain": 8,
    "leaves of a tree": 16,
    "early returns": 8,
    "loops in branches": 8,
    "multiply-adds": 64,
    "private array": 8,
    "guarded accesses": 8,
    "sum of products": 16,
    "4-bit products": 2,
    "simdgroup sums": 62,
    "barriers": 16,
}
LONG = {
    "conditional lines": 125,
    "switch cases": 125,
    "else-if chain": 125,
    "leaves of a tree": 500,
    "early returns": 125,
    "loops in branches": 125,
    "multiply-adds": 4096,
    "private array": 64,
    "guarded accesses": 125,
    "sum of products": 125,
    "4-bit products": 16,
    "simdgroup sums": 1000,
    "barriers": 500,
}

TOO_LONG = r"vector code of so long a body would take long to compile \(estimated cost \d+, limit (?:4000|16000)\)"
SERIALIZED = (
    r"its memory accesses are serialized, so that vectors save little, and it would take long to compile "
    r"\(estimated cost \d+, limit 3000\)"
)
REASON = f"the SIMD engine does not take it: (?:{TOO_LONG}|{SERIALIZED})"


def compiled_by(engine: str, sizes: dict[str, int]) -> dict[str, tuple[str, str, int]]:
    """Engine, reason and bytes of code of each kind's body, from another process."""
    program = (
        "import json\n"
        "from bench.compile_growth import KINDS, compile_once\n"
        f"made = {{kind: compile_once(KINDS[kind][0](size))[0] for kind, size in {sizes!r}.items()}}\n"
        "print(json.dumps({kind: (one.engine, one.engine_reason, one.code_bytes) for kind, one in made.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KILN_CPU_ENGINE": engine},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made: dict[str, tuple[str, str, int]] = json.loads(done.stdout)
    return made


has_avx2 = _core.cpu_architecture() >= "x86-64-v3"


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_short_bodies_stay_on_the_simd_engine():
    made = compiled_by("simd", SHORT)
    assert {kind: reason for kind, (engine, reason, _) in made.items() if engine != "simd"} == {}


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_long_bodies_go_to_the_scalar_engine_which_the_reason_says():
    made = compiled_by("simd", LONG)
    assert {kind: engine for kind, (engine, _, _) in made.items() if engine != "scalar"} == {}
    assert {kind: reason for kind, (_, reason, _) in made.items() if not re.fullmatch(REASON, reason)} == {}


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
@pytest.mark.parametrize("kind", sampled(["private array", "barriers", "conditional lines"], every=3))
def test_the_simd_engine_takes_long_bodies_where_it_is_told_to(kind):
    ((engine, reason, _),) = compiled_by("simd-always", {kind: LONG[kind]}).values()
    assert engine == "simd", reason


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_a_long_body_has_the_code_that_the_scalar_engine_makes_of_it():
    kinds = ("conditional lines", "multiply-adds", "private array", "leaves of a tree", "guarded accesses")
    sizes = {kind: LONG[kind] for kind in kinds}
    fallback, scalar = compiled_by("simd", sizes), compiled_by("scalar", sizes)
    assert {kind: made[2] for kind, made in fallback.items()} == {kind: made[2] for kind, made in scalar.items()}


@pytest.mark.parametrize("engine", ["scalar", "simd"])
@pytest.mark.parametrize(
    "kind", ["conditional lines", "switch cases", "leaves of a tree", "guarded accesses", "sum of products", "barriers"]
)
def test_code_grows_in_proportion_to_the_body(kind, engine):
    # The form of the code changes between 16 and 20 barriers.
    vector_sizes = (24, 48) if kind == "barriers" else (8, 16)
    small, large = (
        compiled_by(engine, {kind: size})[kind][2] for size in ((125, 500) if engine == "scalar" else vector_sizes)
    )
    assert large < (5 if engine == "scalar" else 2.5) * small


def test_a_very_long_body_is_refused_by_its_length():
    source = "uint i = thread_position_in_grid.x;\nfloat s = x[i];\n" + "".join(
        f"if (s > {k}) s += x[(i + {k}) % 64] * x[(i + {k} * 3) % 64];\n" for k in range(1600)
    )
    compiled, _ = compile_once(source + "y[i] = s;")
    assert compiled.engine == "scalar"
    if has_avx2 and _core.cpu_engine() == "simd":
        assert re.fullmatch(
            "the SIMD engine does not take it: vector code of so long a body would take long to compile "
            r"\(\d+ instructions, limit 40000\)",
            compiled.engine_reason,
        )


@pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
def test_long_branches_have_vector_code_once_without_mask_registers():
    """Simdgroups that are not full, of which a launch of whole simdgroups has one, run one thread after the other."""
    program = (
        "import sys\n"
        "sys.path[:0] = ['tests', 'tests/python']\n"
        "import test_compile_growth as growth\n"
        "growth.test_values_of_a_decision_tree(125, 128)\n"
        "bodies = [growth.KINDS['leaves of a tree'][0](leaves) for leaves in (16, 125)]\n"
        "made = [[one.name for one in growth.compile_once(body)[0].passes()] for body in bodies]\n"
        "print(['scalar-simdgroup' in names for names in made])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KILN_CPU_ENGINE": "simd", "KILN_CPU_ISA": "avx2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[False, True]\n"


def run(source: str, x: np.ndarray, threads: int = 100) -> np.ndarray:
    kernel = kiln.metal_kernel("long", ["x"], ["y"], source)
    (y,) = kernel(
        inputs=[x],
        output_shapes=[x.shape],
        output_dtypes=["float32"],
        grid=(x.size, 1, 1),
        threadgroup=(threads, 1, 1),
    )
    return y


@pytest.mark.parametrize("count", [40, 200, 400])
def test_values_of_conditional_lines(count):
    x = np.random.default_rng(count).integers(0, count // 2, 1000).astype(np.float32)
    i, s = np.arange(1000), x.copy()
    for k in range(count):
        s = np.where(s > k, s + x[(i + k) % 64], s)
    assert (run(KINDS["conditional lines"][0](count), x) == s).all()


@pytest.mark.parametrize("count", [40, 200, 400])
def test_values_of_switch_cases(count):
    x = np.random.default_rng(count).integers(-5, count + 5, 1000).astype(np.float32)
    i, case = np.arange(1000), x.astype(int)
    there = (case >= 0) & (case < count)
    chosen = x * (case + np.float32(0.5)).astype(np.float32) + x[(i + case) % 64]
    assert (run(KINDS["switch cases"][0](count), x) == np.where(there, chosen, x)).all()


@pytest.mark.parametrize("count", [40, 125, 300])
def test_values_of_early_returns(count):
    x = np.random.default_rng(count).integers(0, 3 * count, 1000).astype(np.float32)
    i, s, y, left = np.arange(1000), x.copy(), np.zeros(1000, np.float32), np.zeros(1000, bool)
    for k in range(count):
        leaves = ~left & (s == k)
        y[leaves] = s[leaves] * k
        left |= leaves
        s = s + x[(i + k) % 64]
    assert (run(KINDS["early returns"][0](count), x) == np.where(left, y, s)).all()


@pytest.mark.parametrize("side", [8, 16, 32])
def test_values_of_unrolled_products(side):
    x = np.random.default_rng(side).integers(-3, 4, 1000).astype(np.float32)
    padded = np.concatenate([x, np.zeros(2000, np.float32)])
    i = np.arange(1000)
    a, b = (np.array([padded[step * i + k] for k in range(side)]) for step in (1, 2))
    c = sum(np.array([a[k] * b[(k + m) % side] for m in range(side)]) for k in range(side))
    assert (run(KINDS["multiply-adds"][0](side * side), x) == (c * a).sum(axis=0)).all()


# 1000 threads are not whole simdgroups. In threadgroups of 128 their last ones run in turn if the code is long.
@pytest.mark.parametrize("threads", [100, 128])
@pytest.mark.parametrize("leaves", [32, 125, 250, 600])
def test_values_of_a_decision_tree(leaves, threads):
    x = np.random.default_rng(leaves).integers(0, 60, 1000).astype(np.float32)

    def value(low: int, high: int, s: np.float32) -> float:
        while high - low > 1:
            middle = (low + high) // 2
            if x[(31 * low + 7 * high) % 64] + s < 37 * middle % 113:
                high = middle
            else:
                low = middle
        return low + 0.25

    expected = np.array([value(0, leaves, s) for s in x], np.float32)
    assert (run(KINDS["leaves of a tree"][0](leaves), x, threads) == expected).all()


def test_a_loop_around_loops_over_simdgroups_stays_a_loop():
    """Its latch is the inner loop's latch, whose metadata is not its own."""
    body = """threadgroup float tile[80];
        uint t = thread_index_in_threadgroup;
        float sum = 0;
        for (uint k = 0; k < 100; ++k) {
            for (uint i = t; i < 67; i += threads_per_threadgroup.x) tile[i] = x[(13 * k + i) % 997] + sum;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            sum = fma(tile[(7 * t + 2) % 67], tile[(t + 2) % 67], sum);
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        out[thread_position_in_grid.x] = sum;"""
    kernel = kiln.metal_kernel("tiles", ["x"], ["out"], body)
    compiled = kernel.compile(
        inputs=[np.zeros(1000, np.float32)],
        output_shapes=[(256,)],
        output_dtypes=["float32"],
        grid=(256, 1, 1),
        threadgroup=(128, 1, 1),
    )
    assert max(made.instructions_after for made in compiled.passes()) < 5000
