"""Every body gives the same bits on every engine with every instruction set (docs/language.md 4.2)."""

import importlib
import os
import subprocess
import sys

import pytest
from configurations import Result, available, call_on, different, has
from sampling import sampled

# Random bodies, by the module that makes them: how many on each configuration, and how many more on the first and the
# last one alone, which are the scalar engine and the SIMD engine with the processor's best instruction set.
# `tools/compare_engines.py` compares more.
RANDOM = {
    "random_bodies": (40, 0),
    "random_sum_bodies": (60, 0),
    "random_tile_bodies": (40, 0),
    "random_waiting_bodies": (100, 400),
}
CHUNK = 10


def chunks() -> list[tuple[str, int]]:
    return [
        (module, first) for module, (everywhere, more) in RANDOM.items() for first in range(0, everywhere + more, CHUNK)
    ]


def results_of(module: str, first: int) -> list[Result]:
    """Of a chunk's bodies."""
    launched = [importlib.import_module(module).results(seed) for seed in range(first, first + CHUNK)]
    return [Result(outputs, launch.engine, launch.engine_reason) for outputs, launch in launched]


@pytest.mark.parametrize(
    "chunk", sampled(chunks(), every=12, group=lambda chunk: chunk[0]), ids=lambda chunk: f"{chunk[0]}-{chunk[1]}"
)
def test_random_bodies_give_the_same_bits(chunk: tuple[str, int]) -> None:
    """Long ones, too, which the SIMD engine would leave to the other."""
    module, first = chunk
    configurations = [("simd-always" if engine == "simd" else engine, isa) for engine, isa in available()]
    if first >= RANDOM[module][0]:
        configurations = [configurations[0], configurations[-1]]
    found = call_on(configurations, "test_instruction_sets", "results_of", module, first)
    for n in range(CHUNK):
        results = {configuration: each[n] for configuration, each in found.items()}
        assert different(results) == [], f"seed {first + n}"
        for (engine, _), result in results.items():
            assert result.engine == engine.removesuffix("-always"), f"seed {first + n}: {result.reason}"


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
