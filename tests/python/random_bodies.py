"""Random bodies whose threads do not wait for one another, for comparing engines bit for bit.

Each has nested loops and branches that threads take differently, with ``break``, ``continue`` and ``return``; switches;
private arrays with dynamic indices; integers, floats and halves; reads anywhere in an input and beyond it; integer
atomics, whose sums do not depend on the order. Loops end after few iterations whatever their conditions say.
"""

from __future__ import annotations

import random

import kiln
import numpy as np

THREADS = 200  # of the grid; the last threadgroup is cut
THREADGROUP = 72  # two rows of 32 and a rest

INTS = ["a", "b", "c"]
FLOATS = ["f", "g"]


class Body:
    """The text of one random body."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.loops = 0
        self.text = "\n".join(
            [
                "uint i = thread_position_in_grid.x;",
                "device atomic_int* sums = (device atomic_int*)total;",
                "int a = n[i], b = int(i), c = int(thread_index_in_simdgroup);",
                "float f = x[i], g = 0.5f;",
                "half h = half(f);",
                "int p[8] = {};",
                "float q[4] = {};",
                *self.block(4, in_loop=False),
                "for (int k = 0; k < 8; ++k) a ^= p[k] << k;",
                "for (int k = 0; k < 4; ++k) g += q[k];",
                "y[i] = f; y[i + 256] = g; y[i + 512] = float(h);",
                "z[i] = a; z[i + 256] = b; z[i + 512] = c;",
            ]
        )

    def block(self, depth: int, *, in_loop: bool) -> list[str]:
        count = self.random.randint(2, 4) if depth else self.random.randint(1, 2)
        return [line for _ in range(count) for line in self.statement(depth, in_loop)]

    def integer(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice([*INTS, *INTS, str(r.randint(-9, 9)), "int(i)", "n[(a + b) & 255]", "p[a & 7]", "int(f)"])
        operator = r.choice(["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"])
        if r.random() < 0.1:
            return r.choice([f"abs({self.integer(0)})", f"min(a, {self.integer(0)})", f"popcount({self.integer(0)})"])
        return f"({self.integer(depth - 1)} {operator} {self.integer(depth - 1)})"

    def floating(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice([*FLOATS, *FLOATS, f"{r.uniform(-2, 2):.3f}f", "float(a)", "x[b]", "x[i + 3]", "q[b & 3]"])
        if r.random() < 0.3:
            one, two = self.floating(0), self.floating(0)
            return r.choice([f"fma({one}, {two}, f)", f"min({one}, {two})", f"sqrt(abs({one}))", f"float(half({one}))"])
        return f"({self.floating(depth - 1)} {r.choice(['+', '-', '*'])} {self.floating(depth - 1)})"

    def condition(self) -> str:
        r = self.random
        return r.choice(
            [
                f"{self.integer(1)} {r.choice(['<', '>', '==', '!='])} {self.integer(1)}",
                f"{self.floating(1)} {r.choice(['<', '>='])} {self.floating(1)}",
                f"(b & {r.randint(1, 7)}) == {r.randint(0, 3)}",
                f"(c & {1 << r.randint(0, 4)}) != 0",
                f"i < {r.randint(1, THREADS)}",
                "h > half(0.25)",
            ]
        )

    def simple(self) -> str:
        r = self.random
        kind = r.randrange(9)
        if kind <= 2:
            return f"{r.choice(INTS)} {r.choice(['=', '+=', '^='])} {self.integer()};"
        if kind <= 4:
            return f"{r.choice(FLOATS)} {r.choice(['=', '+='])} {self.floating()};"
        if kind == 5:
            return f"h = h * half({r.uniform(-1, 1):.2f}) + half(f);"
        if kind == 6:
            return f"p[{self.integer(1)} & 7] += {self.integer(1)};"
        if kind == 7:
            return f"q[{self.integer(1)} & 3] = {self.floating(1)};"
        return f"atomic_fetch_add_explicit(&sums[{self.integer(1)} & 15], {self.integer(1)}, memory_order_relaxed);"

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        r = self.random
        if depth == 0 or r.random() < 0.35:
            return [self.simple()]
        kind = r.choice(["if", "if", "else", "for", "while", "do", "switch", "leave"])
        if kind == "leave":
            how = r.choice(["break", "continue"]) if in_loop and r.random() < 0.8 else "return"
            if how == "return":
                how = "{ y[i] = f; z[i] = a + b; return; }"
            return [f"if ({self.condition()}) {how}{'' if how.endswith('}') else ';'}"]
        if kind == "if":
            return [f"if ({self.condition()}) {{", *self.block(depth - 1, in_loop=in_loop), "}"]
        if kind == "else":
            return [
                f"if ({self.condition()}) {{",
                *self.block(depth - 1, in_loop=in_loop),
                "} else {",
                *self.block(depth - 1, in_loop=in_loop),
                "}",
            ]
        if kind == "switch":
            lines = [f"switch ({self.integer(1)} & 3) {{"]
            for case in r.sample(range(4), 3):
                lines += [f"case {case}: {{", *self.block(depth - 1, in_loop=False), "}"]
                if r.random() < 0.7:
                    lines.append("break;")
            return [*lines, "default: b += 1;", "}"]
        self.loops += 1
        count = f"k{self.loops}"
        block = self.block(depth - 1, in_loop=True)
        most = r.randint(2, 5)
        if kind == "for":
            bound = r.choice([str(most), f"min({most}, b & 7)", f"(c % {most + 1})"])
            return [f"for (int {count} = 0; {count} < {bound}; ++{count}) {{", *block, "}"]
        if kind == "while":
            return [f"int {count} = 0;", f"while ({count}++ < {most} && ({self.condition()})) {{", *block, "}"]
        return [f"int {count} = 0;", "do {", *block, f"}} while (++{count} < {most} && ({self.condition()}));"]


def run(body: Body, source: str | None = None) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body gave, or another text in its place, and its launch."""
    numbers = np.random.default_rng(body.seed)
    kernel = kiln.metal_kernel(f"random_{body.seed}", ["x", "n"], ["y", "z", "total"], source or body.text)
    outputs = kernel(
        inputs=[
            numbers.standard_normal(THREADS).astype(np.float32),
            numbers.integers(-50, 50, 256).astype(np.int32),
        ],
        output_shapes=[(768,), (768,), (16,)],
        output_dtypes=["float32", "int32", "int32"],
        grid=(THREADS, 1, 1),
        threadgroup=(THREADGROUP, 1, 1),
        init_value=0,
    )
    return outputs, kernel.history[0]


def results(seed: int) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body of this seed gave, and its launch."""
    return run(Body(seed))
