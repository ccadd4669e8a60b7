"""Random bodies with a loop over tiles in threadgroup memory, for comparing engines bit for bit.

A threadgroup fills a tile, waits, reads it into sums, and waits, or waits first. Tiles have odd sizes and places between
their rows that are never written; they are filled whole, in part, at places that change, with what depends on sums,
before the loop too; what was written is read behind it, or something else is written there. Threadgroups are cut, and
have rows of whole simdgroups and of others. So some of the loops are what `compiler/workgroup/tile_multibuffering.h` is about, and
others are nearly.

What has not been written is not read, and no place is written by two threads.
"""

from __future__ import annotations

import random

import kiln
import numpy as np

LENGTH = 997  # of x
STEPS = {"float": "fma({0}, {1}, {2})", "int": "({0} * {1} + {2})"}


class Body:
    """The text of one random body, its grid and its threadgroup."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = r = random.Random(seed)
        threads = r.choice([64, 96, 128, 160, 256, 512])
        rows = r.choice([1, 1, max(threads // 64, 1), threads // 32, threads // 16])
        self.threadgroup = (threads // rows, rows, 1)
        cut = r.choice([0] * 6 + [1, 5])
        self.grid = (threads // rows * r.choice([1, 2, 3]) - cut, rows * r.choice([1, 2]), 1)
        self.type = r.choice(["float", "float", "int", "half"])
        self.sum = "int" if self.type == "int" else "float"
        self.size = r.choice([threads, threads // 2 + 3, threads + 5, 63, 2 * threads, 3 * threads - 7])
        self.row = 16 + r.choice([0, 0, 3, 8])  # places of sixteen elements
        self.places = (self.size + 15) // 16 * self.row
        self.sums = r.choice([1, 2, 3, 5, 8, 8, 14])
        self.step = r.choice([1, 3, 8])
        self.end = r.choice([1, 5, 16, 33, 100])
        fill, is_filled = self.fill()
        wait = "threadgroup_barrier(mem_flags::mem_threadgroup);"
        waits_first = r.random() < 0.3
        around = [wait, *fill, wait, *self.read()] if waits_first else [*fill, wait, *self.read(), wait]
        result = " + ".join(f"s{i} * {i + 1}" for i in range(self.sums))
        behind: list[str] = []
        if r.random() < 0.15:
            behind += [wait] if waits_first else []
            behind += [f"{self.each()} tile[{self.place('i')}] = {self.type}(i % 9);", wait] if r.random() < 0.5 else []
            result += f" + {self.element('t + 3')}"
        self.text = "\n".join(
            [
                f"threadgroup {self.type} tile[{self.places}];",
                "uint t = thread_index_in_threadgroup, base = threadgroup_position_in_grid.x * 31;",
                "uint threads = threads_per_threadgroup.x * threads_per_threadgroup.y;",
                "uint2 at = thread_position_in_grid.xy;",
                *(f"{self.sum} s{i} = {i};" for i in range(self.sums)),
                *([f"{self.each()} tile[{self.place('i')}] = {self.type}(i % 5);", wait] if is_filled else []),
                *self.loop(around),
                *behind,
                f"out[at.x + threads_per_grid.x * at.y] = {result};",
            ]
        )

    def loop(self, lines: list[str]) -> list[str]:
        end = self.random.choice(["end[0]", "end[0]", str(self.end)])
        again = [f"if (k + {self.step} >= uint({end})) break;"] if self.random.random() < 0.2 else []
        loop = [f"for (uint k = 0; k < uint({end}); k += {self.step}) {{", *lines, *again, "}"]
        if self.random.random() < 0.1:
            return ["for (uint turn = 0; turn < 2; ++turn) {", *loop, loop[-2] if "barrier" in loop[-2] else "", "}"]
        return loop

    def place(self, index: str) -> str:
        """Where an element of the tile is."""
        return index if self.row == 16 else f"({index}) / 16 * {self.row} + ({index}) % 16"

    def element(self, index: str) -> str:
        return f"{self.sum}(tile[{self.place(f'({index}) % {self.size}')}])"

    def each(self) -> str:
        return f"for (uint i = t; i < {self.size}; i += threads)"

    def fill(self) -> tuple[list[str], bool]:
        """What fills the tile, and whether it must have been filled before."""
        r = self.random
        value = f"x[(13 * k + i + base) % {LENGTH}]"
        whole = self.place("i")
        kind = r.choice(["whole", "whole", "whole", "guarded", "inside", "some", "sometimes", "moving", "of sums"])
        is_filled = r.random() < 0.05
        if kind == "guarded":
            return [f"{self.each()} tile[{whole}] = x[40 * k + i + base];"], is_filled
        if kind == "inside":
            inside = f"k + i < {self.end} ? {value} : {self.type}(1)"
            return [f"{self.each()} tile[{whole}] = {inside};"], is_filled
        if kind == "some":
            return [f"{self.each()} if (i % 3 != 1) tile[{whole}] = {value};"], True
        if kind == "sometimes":
            return [f"{self.each()} if ((i + k) % 3 != 1) tile[{whole}] = {value};"], True
        if kind == "moving":
            place = self.place(f"((i + k) % {self.size})")
            return [f"{self.each()} if (i % 2 == 0) tile[{place}] = {value};"], True
        if kind == "of sums":
            return [f"{self.each()} tile[{whole}] = {value} + {self.type}(int(s0) & 7);"], is_filled
        return [f"{self.each()} tile[{whole}] = {value};"], is_filled

    def read(self) -> list[str]:
        r = self.random
        rounds = r.choice(["", "", "3", "8", "8", "20", "2 + t % 4"])
        j = "j" if rounds else "2"
        lines = [self.addition(i, j, is_together="t" not in rounds) for i in range(self.sums)]
        return [f"for (uint j = 0; j < {rounds}; ++j) {{", *lines, "}"] if rounds else lines

    def addition(self, i: int, j: str, *, is_together: bool) -> str:
        r = self.random
        one = self.element(
            r.choice(
                [f"t + 7 * {j}", f"{j} + {i}", f"t / 32 * 7 + {j} + 8 * {i}", f"7 * t + {j}", f"t % 16 + 16 * {j}"]
            )
        )
        other = self.element(r.choice([f"3 * {j} + {i}", f"t + {j}", f"t / 8 + {j}"]))
        kind = r.choice(["product"] * 6 + ["chain", "some", "exchange", "gather"])
        if kind == "some":
            return f"if ((t + {j}) % {r.choice([2, 3, 5])} == 1) s{i} += {one};"
        if kind == "exchange" and is_together:
            return f"s{i} += simd_shuffle_xor({one}, ushort({r.choice([1, 4, 16])}));"
        if kind == "gather":
            return f"s{i} += {self.sum}(x[uint(abs(int({one} * 100))) % {LENGTH}]);"
        to = f"s{(i + 1) % self.sums}" if kind == "chain" else f"s{i}"
        return f"s{i} = {STEPS[self.sum].format(one, other, to)};"


def run(body: Body, source: str | None = None) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body gave, or another text in its place, and its launch."""
    numbers = np.random.default_rng(body.seed)
    x = numbers.integers(-9, 9, LENGTH) if body.type == "int" else numbers.standard_normal(LENGTH)
    kernel = kiln.metal_kernel(f"random_tile_{body.seed}", ["x", "end"], ["out"], source or body.text)
    outputs = kernel(
        inputs=[
            x.astype({"float": np.float32, "int": np.int32, "half": np.float16}[body.type]),
            np.array([body.end, 0], np.int32),
        ],
        output_shapes=[(body.grid[0] * body.grid[1],)],
        output_dtypes=["float32" if body.sum == "float" else "int32"],
        grid=body.grid,
        threadgroup=body.threadgroup,
    )
    return outputs, kernel.history[0]


def results(seed: int) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body of this seed gave, and its launch."""
    return run(Body(seed))
