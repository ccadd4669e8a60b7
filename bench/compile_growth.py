"""``python -m bench.compile_growth``: how compile time grows with the length of a body, on both CPU engines.

Each kind of body is made in sizes that double. The table has the CPU time of one compilation by each engine, the SIMD
engine's as a multiple of the scalar engine's, how much longer the doubled body takes (2 is linear), and the engine that
was chosen. CPU time is the process's, the best of some rounds, with the disk cache off and the compiler opened before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

from bench import measure

POSITION = "uint i = thread_position_in_grid.x;\n"
START = POSITION + "float s = x[i];\n"


def _lines(template: str, n: int) -> str:
    return "".join(template.replace("@", str(k)) for k in range(n))


def conditional_lines(n: int) -> str:
    return START + _lines("if (s > @) s += x[(i + @) % 64];\n", n) + "y[i] = s;"


def switch_cases(n: int) -> str:
    return (
        START + "switch (int(s)) {\n" + _lines("case @: s = s * @.5f + x[(i + @) % 64]; break;\n", n) + "}\ny[i] = s;"
    )


def else_if_chain(n: int) -> str:
    return START + "if (s < 0) s = 1;\n" + _lines("else if (s < @.5f) s *= x[(i + @) % 64];\n", n) + "y[i] = s;"


def decision_tree(n: int) -> str:
    def node(low: int, high: int) -> str:
        if high - low == 1:
            return f"s = {low}.25f;\n"
        middle = (low + high) // 2
        return (
            f"if (x[{(31 * low + 7 * high) % 64}] + s < {37 * middle % 113}) {{\n"
            f"{node(low, middle)}}} else {{\n{node(middle, high)}}}\n"
        )

    return START + node(0, n) + "y[i] = s;"


def early_returns(n: int) -> str:
    return START + _lines("if (s == @) { y[i] = s * @; return; }\ns += x[(i + @) % 64];\n", n) + "y[i] = s;"


def loops_in_branches(n: int) -> str:
    line = "if (s > @) for (int k = 0; k < int(s); ++k) s += x[(i + @ * k) % 64];\n"
    return START + _lines(line, n) + "y[i] = s;"


def multiply_adds(n: int) -> str:
    """On private arrays of `sqrt(n)` elements."""
    side = round(n**0.5)
    return (
        POSITION
        + f"""
        const int n = {side};
        float a[n], b[n], c[n], s = 0;
        #pragma unroll
        for (int k = 0; k < n; ++k) {{ a[k] = x[i + k]; b[k] = x[2 * i + k]; c[k] = 0; }}
        #pragma unroll
        for (int k = 0; k < n; ++k) {{
          #pragma unroll
          for (int l = 0; l < n; ++l) c[l] += a[k] * b[(k + l) % n];
        }}
        #pragma unroll
        for (int k = 0; k < n; ++k) s += c[k] * a[k];
        y[i] = s;"""
    )


def private_array(n: int) -> str:
    """Scores of neighbours, as in neighbourhood attention."""
    return (
        POSITION
        + f"""
        const int n = {n};
        float scores[n], most = -INFINITY, total = 0, result = 0;
        for (int k = 0; k < n; ++k) {{
          int at = int(i) + k - n / 2;
          float score = -INFINITY;
          if (at >= 0 && at < 4096) {{
            score = 0;
            for (int d = 0; d < 32; ++d) score += x[32 * i + d] * x[32 * at + d];
          }}
          scores[k] = score;
          most = max(most, score);
        }}
        for (int k = 0; k < n; ++k) {{ scores[k] = exp(scores[k] - most); total += scores[k]; }}
        for (int k = 0; k < n; ++k) result += scores[k] * x[i + k];
        y[i] = result / total;"""
    )


def guarded_accesses(n: int) -> str:
    return POSITION + _lines("y[i + @ * 64] = x[i + @ * 3] + x[2 * i + @];\n", n)


def sum_of_products(n: int) -> str:
    return POSITION + "y[i] = " + " + ".join(f"x[i + {k}] * x[2 * i + {k}]" for k in range(n)) + ";"


def packed_products(n: int) -> str:
    """Numbers of four bits, of `n` words, with a private array."""
    return (
        POSITION
        + f"""
        const int n = {n};
        const device uint* words = (const device uint*)x;
        float a[8 * n], sums[4] = {{0, 0, 0, 0}};
        #pragma unroll
        for (int k = 0; k < 8 * n; ++k) a[k] = x[(i % 7) * 8 * n + k];
        #pragma unroll
        for (int row = 0; row < 4; ++row) {{
          #pragma unroll
          for (int k = 0; k < n; ++k) {{
            uint word = words[(4 * i + row) * n + k];
            #pragma unroll
            for (int b = 0; b < 8; ++b) sums[row] += a[8 * k + b] * (float((word >> (4 * b)) & 15) - 8.0f);
          }}
        }}
        for (int row = 0; row < 4; ++row) y[4 * i + row] = sums[row];"""
    )


def simdgroup_sums(n: int) -> str:
    return START + _lines("s = s * @.5f + simd_sum(s);\n", n) + "y[i] = s;"


def barriers(n: int) -> str:
    step = """t[l] = s; threadgroup_barrier(mem_flags::mem_threadgroup);
        s += t[(l + @) % 256]; threadgroup_barrier(mem_flags::mem_threadgroup);
        """
    return (
        START + "uint l = thread_position_in_threadgroup.x; threadgroup float t[256];\n" + _lines(step, n) + "y[i] = s;"
    )


KINDS: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "conditional lines": (conditional_lines, (125, 250, 500, 1000, 2000)),
    "switch cases": (switch_cases, (125, 250, 500, 1000, 2000)),
    "else-if chain": (else_if_chain, (62, 125, 250)),
    "leaves of a tree": (decision_tree, (125, 250, 500, 1000, 2000)),
    "early returns": (early_returns, (125, 250, 500, 1000)),
    "loops in branches": (loops_in_branches, (31, 62, 125, 250)),
    "multiply-adds": (multiply_adds, (64, 256, 1024, 4096, 9216)),
    "private array": (private_array, (32, 64, 128)),
    "guarded accesses": (guarded_accesses, (32, 64, 125, 250, 500)),
    "sum of products": (sum_of_products, (62, 125, 250, 500, 1000)),
    "4-bit products": (packed_products, (2, 4, 8, 16, 32)),
    "simdgroup sums": (simdgroup_sums, (62, 125, 250, 500)),
    "barriers": (barriers, (16, 32, 64, 125)),
}


def compile_once(source: str):
    """The compiled kernel, and the seconds of CPU time that it took."""
    import kiln
    import numpy as np

    kernel = kiln.metal_kernel(name="growth", input_names=["x"], output_names=["y"], source=source)
    start = time.process_time()
    compiled = kernel.compile(
        inputs=[np.zeros(4096, np.float32)],
        output_shapes=[(4096,)],
        output_dtypes=["float32"],
        grid=(4096, 1, 1),
        threadgroup=(256, 1, 1),
    )
    return compiled, time.process_time() - start


def in_this_process(kind: str, size: int, rounds: int) -> str:
    """The best time, and the engine."""
    make, _ = KINDS[kind]
    compile_once("y[thread_position_in_grid.x] = x[0];")
    best, engine = float("inf"), ""
    for turn in range(rounds):
        # Another text is another kernel.
        compiled, seconds = compile_once(f"{make(size)}\n// {turn}")
        best, engine = min(best, seconds), compiled.engine
    return f"{best} {engine}"


def time_of(kind: str, size: int, engine: str, rounds: int) -> tuple[float, str]:
    program = f"from bench.compile_growth import in_this_process as f; print(f({kind!r}, {size}, {rounds}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "KILN_CACHE": "off", "KILN_CPU_ENGINE": engine, "OPENBLAS_NUM_THREADS": "1"},
    )
    seconds, chosen = done.stdout.split()
    return float(seconds), chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"of: {', '.join(KINDS)}; by default all")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    for kind in arguments.kinds or KINDS:
        before: dict[str, float] = {}
        for size in KINDS[kind][1]:
            scalar, _ = time_of(kind, size, "scalar", arguments.rounds)
            simd, chosen = time_of(kind, size, "simd", arguments.rounds)
            now = {"scalar": scalar, "simd": simd}
            growth = [f"{now[engine] / before[engine]:.1f}" if before else "" for engine in now]
            rows.append([kind, str(size), f"{scalar:.3f}", f"{simd:.3f}", f"{simd / scalar:.1f}", *growth, chosen])
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
            before = now
    columns = ["", "size", "scalar, s", "SIMD, s", "ratio", "growth, scalar", "growth, SIMD", "engine"]
    print(measure.table("CPU time of a compilation", columns, rows))


if __name__ == "__main__":
    main()
