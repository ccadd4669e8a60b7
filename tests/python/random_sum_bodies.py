"""Random bodies in which threadgroups add up, for comparing engines bit for bit.

In the manner of norms and softmaxes: each thread combines some elements of its threadgroup's row, a simdgroup's lanes are
added up, or their largest is found, what simdgroups have lies in threadgroup memory, and one of them or all combine that.
There are several such numbers at a time, stored in order, backwards or with gaps, to threadgroup memory or to the output,
some by one simdgroup only; again for the next row; and what comes out is wanted by all threads. So that some of the loops
over simdgroups are what `compiler/workgroup/deferred_reductions.h` is about, and others are nearly.

What has not been written is not read, and no place is written by two threads without a barrier between.
"""

from __future__ import annotations

import random

import kiln
import numpy as np

ROWS = 3  # of x, for each threadgroup
WAIT = "threadgroup_barrier(mem_flags::mem_threadgroup);"
OPERATIONS = {
    "float": ["sum", "sum", "sum", "max", "min", "product"],
    "int": ["sum", "sum", "max", "min", "and", "or", "xor"],
    "uint": ["sum", "max", "min", "xor"],
}
# What an element becomes part of a number by.
STEPS = {
    "float": ["fma({v}, {v}, {q})", "{q} + {v}", "max({q}, {v})", "{q} + abs({v})", "{v} < 0 ? {q} : {q} + {v}", "{v}"],
    "int": ["{q} + {v}", "{q} * 3 + {v}", "max({q}, {v})", "{q} ^ ({v} << 2)", "{v} > 9 ? {q} : {q} - {v}"],
    "uint": ["{q} + {v}", "({q} >> 1) + {v} * 5", "min({q}, {v})", "{q} ^ {v}"],
}


class Body:
    """The text of one random body, its grid and its threadgroup."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = r = random.Random(seed)
        self.threads = r.choice([32, 64, 96, 128, 256, 256, 512, 1024])
        self.simdgroups = self.threads // 32
        self.groups = r.choice([1, 2, 3])
        self.reads = r.choice([1, 2, 3, 4, 4, 4, 8])
        self.row = max(1, self.threads * self.reads - r.choice([0, 0, 0, 0, 1, 37]))
        self.type = r.choice(["float", "float", "float", "int", "uint"])
        self.part = r.choice([self.type] * 4 + (["short", "uchar"] if self.type != "float" else []))
        self.numbers = r.choice([1, 1, 2, 3, 5])
        self.by_element = r.random() < 0.7
        self.operations = [r.choice(OPERATIONS[self.type]) for _ in range(self.numbers)]
        self.places = [
            r.choice(["{g}", "{g}", "{g}", "{n} - {g}", "2 * {g}", "{g} ^ 1", "({g} + 3) % 32"])
            for _ in range(self.numbers)
        ]
        rows = r.random() < 0.3
        round_lines = self.round()
        loop = [f"for (uint row = 0; row < {ROWS}; ++row) {{", *round_lines, WAIT, "}"]
        self.text = "\n".join(
            [
                f"threadgroup {self.part} parts[{self.numbers}][64];",
                f"threadgroup {self.type} whole[{self.numbers}];",
                "uint t = thread_position_in_threadgroup.x, lane = thread_index_in_simdgroup;",
                "uint sg = simdgroup_index_in_threadgroup, group = threadgroup_position_in_grid.x;",
                *(loop if rows else ["uint row = group % 3;", *round_lines]),
            ]
        )

    def place(self, k: int, simdgroup: str) -> str:
        """Where a simdgroup's number lies."""
        return "(" + self.places[k].format(g=simdgroup, n=self.simdgroups - 1) + ")"

    def element(self, i: str) -> str:
        return f"t * {self.reads} + {i}" if self.by_element else f"{i} * {self.threads} + t"

    def round(self) -> list[str]:
        """From a row of x to a row of y."""
        r, lines = self.random, []
        begin = f"(group * {ROWS} + row) * {self.row}"
        is_whole = self.row == self.threads * self.reads and r.random() < 0.7
        inside = "true" if is_whole else f"{self.element('i')} < {self.row}"
        lines += [f"{self.type} {', '.join(f'q{k} = {k}' for k in range(self.numbers))};"]
        lines += [f"for (uint i = 0; i < {self.reads}; ++i) {{"]
        lines += [f"{self.type} v = {inside} ? x[{begin} + {self.element('i')}] : {self.type}(1);"]
        lines += [f"q{k} = {r.choice(STEPS[self.type]).format(q=f'q{k}', v='v')};" for k in range(self.numbers)]
        lines += ["}"]
        # The same in all simdgroups.
        lines += [f"q0 = {self.type}((lane * 3 + group) * (lane + 5));"] if r.random() < 0.1 else []
        lines += [f"q{k} = simd_{operation}(q{k});" for k, operation in enumerate(self.operations)]
        is_first_filled = r.random() < 0.6
        if is_first_filled:
            lines += [f"if (sg == {self.filler()}) {{"]
            for k in range(self.numbers):
                lines += [f"parts[{k}][lane] = {r.choice([0, 1, 7])};", f"parts[{k}][lane + 32] = {r.choice([0, 2])};"]
            lines += ["}", WAIT]
        stores = [f"parts[{k}][{self.place(k, 'sg')}] = {self.part}(q{k});" for k in range(self.numbers)]
        if r.random() < 0.3:
            sums = f"sums[(group * {ROWS} + row) * {self.simdgroups * self.numbers} + sg * {self.numbers}"
            stores += [f"{sums} + {k}] = q{k};" for k in range(self.numbers)]
        lines += [
            f"if ({r.choice(['lane == 0', 'simd_is_first()', 'lane == 0', 'lane == 31'])}) {{",
            *stores,
            "}",
            WAIT,
        ]
        return [*lines, *self.combine(is_first_filled), *self.write(begin, inside)]

    def filler(self) -> int:
        return self.random.choice([0, 0, 0, self.simdgroups - 1])

    def combine(self, is_first_filled: bool) -> list[str]:
        """What all simdgroups have together, where all threads may read it."""
        r, lines = self.random, []
        kind = r.choice(["first", "first", "all", "loop", "none"])
        for k, operation in enumerate(self.operations):
            whole = (
                f"{self.type}(parts[{k}][lane])"
                if is_first_filled
                else f"lane < {self.simdgroups} ? {self.type}(parts[{k}][{self.place(k, 'lane')}]) : 1"
            )
            if kind == "all":
                lines += [f"{self.type} w{k} = simd_{operation}({whole});"]
            elif kind == "first":
                line = f"q{k} = simd_{operation}({whole}); if (lane == 0) whole[{k}] = q{k} * 2;"
                lines += [f"if (sg == {self.filler()}) {{ {line} }}"]
            elif kind == "loop":
                lines += [f"{self.type} w{k} = 0;"]
                lines += [f"for (uint j = 0; j < {self.simdgroups}; ++j) w{k} += parts[{k}][{self.place(k, 'j')}];"]
            else:
                other = self.place(k, f"((sg + {r.choice([1, 2])}) % {self.simdgroups})")
                lines += [f"{self.type} w{k} = parts[{k}][{other}];"]
        if kind == "first":
            lines += [WAIT, *(f"{self.type} w{k} = whole[{k}];" for k in range(self.numbers))]
        return lines

    def write(self, begin: str, inside: str) -> list[str]:
        r = self.random
        place = f"{begin} + {self.element('i')}"
        value = r.choice([f"x[{place}] * w0", f"x[{place}] + w0", "w0", f"max(x[{place}], w0)"])
        value += "".join(f" + w{k}" for k in range(1, self.numbers))
        return [f"for (uint i = 0; i < {self.reads}; ++i) if ({inside}) y[{place}] = {value};"]


def run(body: Body, source: str | None = None) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body gave, or another text in its place, and its launch."""
    numbers = np.random.default_rng(body.seed)
    count = body.groups * ROWS * body.row
    dtype = {"float": np.float32, "int": np.int32, "uint": np.uint32}[body.type]
    x = numbers.standard_normal(count) * 4 if body.type == "float" else numbers.integers(0, 99, count)
    kernel = kiln.metal_kernel(f"random_sums_{body.seed}", ["x"], ["y", "sums"], source or body.text)
    outputs = kernel(
        inputs=[x.astype(dtype)],
        output_shapes=[(count,), (body.groups * ROWS * body.simdgroups * body.numbers,)],
        output_dtypes=[dtype, dtype],
        grid=(body.groups * body.threads, 1, 1),
        threadgroup=(body.threads, 1, 1),
        init_value=0,
    )
    return outputs, kernel.history[0]


def results(seed: int) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body of this seed gave, and its launch."""
    return run(Body(seed))
