"""Random bodies that read pictures around a thread's pixel, and what they give.

A thread leaves early where its pixel is outside (in several forms, or not at all), or writes something else at the
border. It reads neighbours at indices that are clamped, mirrored, wrapped around, halved or left as they are, in loops
or one by one, from pixels of bytes to words, single or interleaved, and also outside of the array, where a load gives
zero. Widths are no multiples of threadgroups, of which some have rows of 4 to 64 threads.

`expected` is computed in NumPy, without Kiln: each value of the body is an array over the grid, of 32 or 64 bits that wrap.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

NAMES = ("out",)

# Of an element: the name in Metal and NumPy, and how many interleaved channels a pixel may have.
ELEMENTS = [
    ("uchar", "uint8"),
    ("char", "int8"),
    ("ushort", "uint16"),
    ("half", "float16"),
    ("int", "int32"),
    ("float", "float32"),
]
NARROW, WIDE = (1 << 32) - 1, (1 << 64) - 1
THREADGROUPS = [(32, 8), (16, 16), (8, 8), (64, 4), (32, 1), (4, 4), (128, 2), (24, 3), (2, 32)]


class Value:
    """Text of the body, and what it is in each thread."""

    def __init__(self, text: str, numbers: Any) -> None:
        self.text, self.numbers = text, np.asarray(numbers)

    def __add__(self, other: Value) -> Value:
        return Value(f"({self.text} + {other.text})", self.numbers + other.numbers)

    def __sub__(self, other: Value) -> Value:
        return Value(f"({self.text} - {other.text})", self.numbers - other.numbers)

    def __mul__(self, other: Value) -> Value:
        return Value(f"({self.text} * {other.text})", self.numbers * other.numbers)


class Body:
    def __init__(self, seed: int) -> None:
        r = self.random = random.Random(seed)
        self.width, self.height = r.choice([7, 20, 33, 64, 70, 96, 131]), r.choice([3, 8, 17, 24])
        self.channels = r.choice([1, 1, 1, 2, 3, 4])
        self.element, self.dtype = r.choice(ELEMENTS)
        self.is_signed, self.is_wide = r.random() < 0.6, r.random() < 0.3
        self.number = {(True, False): "int", (False, False): "uint", (True, True): "long", (False, True): "ulong"}[
            self.is_signed, self.is_wide
        ]
        self.word: Any = np.uint64 if self.is_wide else np.uint32
        self.signed: Any = np.int64 if self.is_wide else np.int32
        self.threadgroup = r.choice(THREADGROUPS)
        self.knows_shape = r.random() < 0.8
        self.exit = r.randrange(7)
        tx, ty = self.threadgroup
        self.grid = (-(-self.width // tx) * tx, -(-self.height // ty) * ty, 1)
        if self.exit == 0 or r.random() < 0.3:
            self.grid = (self.width, self.height, 1)
        self.pixels = np.random.default_rng(seed).integers(0, 100, (self.height, self.width, self.channels))
        y, x = np.mgrid[: self.grid[1], : self.grid[0]].astype(self.word)
        self.x_, self.y_ = Value("x", x), Value("y", y)
        self.write()

    # ---- Values

    def constant(self, number: int) -> Value:
        return Value(f"{self.number}({number})", self.word(number & (WIDE if self.is_wide else NARROW)))

    def less(self, one: Value, other: Value) -> Any:
        if self.is_signed:
            return one.numbers.view(self.signed) < other.numbers.view(self.signed)
        return one.numbers < other.numbers

    def smaller(self, one: Value, other: Value) -> Value:
        return Value(f"min({one.text}, {other.text})", np.where(self.less(other, one), other.numbers, one.numbers))

    def larger(self, one: Value, other: Value) -> Value:
        return Value(f"max({one.text}, {other.text})", np.where(self.less(one, other), other.numbers, one.numbers))

    def remainder(self, one: Value, other: Value) -> Value:
        if not self.is_signed:
            return Value(f"({one.text} % {other.text})", one.numbers % other.numbers)
        numbers = np.fmod(one.numbers.view(self.signed), other.numbers.view(self.signed))
        return Value(f"({one.text} % {other.text})", numbers.astype(self.signed).view(self.word))

    def coordinate(self, at: Value, size: Value, distance: Value) -> Value:
        """A neighbour's, in one of the ways in which bodies keep it inside, or do not."""
        zero, one = self.constant(0), self.constant(1)
        moved = at + distance
        match self.random.randrange(10):
            case 0 | 1:
                text = f"clamp({moved.text}, {self.number}(0), {self.number}({(size - one).text}))"
                return Value(text, self.smaller(self.larger(moved, zero), size - one).numbers)
            case 2:
                return self.smaller(self.larger(moved, zero), size - one)
            case 3:
                return self.larger(self.smaller(moved, size - one), zero)
            case 4:
                return self.smaller(moved, size - one)
            case 5:
                return self.remainder(moved + size, size)
            case 6:
                numbers = np.where(self.less(moved, size), moved.numbers, (size - one).numbers)
                return Value(f"({moved.text} < {size.text} ? {moved.text} : {(size - one).text})", numbers)
            case 7:
                if not self.is_signed:
                    return Value(f"({at.text} ^ 1)", at.numbers ^ self.word(1))
                return Value(f"abs({moved.text})", np.abs(moved.numbers.view(self.signed)).view(self.word))
            case 8:
                return Value(
                    f"({at.text} >> 1)",
                    (at.numbers.view(self.signed) >> 1).view(self.word) if self.is_signed else at.numbers >> 1,
                )
            case _:
                return moved

    # ---- Statements

    def load(self, index: Value) -> Value:
        """Of any element, zero outside."""
        offsets = index.numbers.view(self.signed).astype(np.int64) if self.is_signed else index.numbers.astype(np.int64)
        flat = self.pixels.reshape(-1)
        inside = (offsets >= 0) & (offsets < flat.size)
        return Value(
            f"uint(src[{index.text}])", np.where(inside, flat[np.where(inside, offsets, 0)], 0).astype(np.uint32)
        )

    def neighbour(self, dx: Value, dy: Value) -> Value:
        column = self.coordinate(self.x_, self.w, dx)
        row = self.coordinate(self.y_, self.h, dy)
        index = row * self.w + column
        if self.channels > 1:
            index = index * self.constant(self.channels) + self.constant(self.random.randrange(self.channels))
        return self.load(index)

    def write(self) -> None:
        r = self.random
        lines = [f"{self.number} x = thread_position_in_grid.x, y = thread_position_in_grid.y;"]
        sizes = ("src_shape[1]", "src_shape[0]") if self.knows_shape else ("size[0]", "size[1]")
        lines.append(f"{self.number} w = {sizes[0]}, h = {sizes[1]};")
        self.w, self.h = (
            Value("w", np.full(self.x_.numbers.shape, self.width, self.word)),
            Value("h", np.full(self.x_.numbers.shape, self.height, self.word)),
        )
        inside = (self.x_.numbers < self.width) & (self.y_.numbers < self.height)
        inner = inside & (self.x_.numbers >= 1) & (self.x_.numbers < self.width - 1)
        lines += {
            0: [],
            1: ["if (x >= w || y >= h) return;"],
            2: ["if (x >= w) return;", "if (y >= h) return;"],
            3: ["if (x < w && y < h) {"],
            4: [
                "if (x >= w || y >= h) return;",
                "if (x < 1 || x >= w - 1) {",
                "  out[y * w + x] = 5;",
                "  return;",
                "}",
            ],
            5: ["if (x >= w) return;"],
            6: ["if (!(x < w) || (y >= h)) return;", "if (x == 3 && y == 1) return;"],
        }[self.exit]
        sums = np.full(self.x_.numbers.shape, 1, np.uint32)
        lines.append("uint sum = 1;")
        radius = r.choice([0, 1, 1, 2])
        if r.random() < 0.5:
            text_dx, text_dy = f"{self.number}(dx)", f"{self.number}(dy)"
            state = r.getstate()
            for dy in range(-radius, radius + 1):
                for dx in range(-radius, radius + 1):
                    r.setstate(state)
                    read = self.neighbour(
                        Value(text_dx, self.constant(dx).numbers), Value(text_dy, self.constant(dy).numbers)
                    )
                    sums = sums * np.uint32(3) + read.numbers
            lines.append(f"for (int dy = -{radius}; dy <= {radius}; dy++)")
            lines.append(f"  for (int dx = -{radius}; dx <= {radius}; dx++)")
            lines.append(f"    sum = sum * 3 + {read.text};")
        else:
            for _ in range(r.randint(1, 9)):
                read = self.neighbour(
                    self.constant(r.randint(-radius, radius)), self.constant(r.randint(-radius, radius))
                )
                sums = sums * np.uint32(5) + read.numbers
                lines.append(f"sum = sum * 5 + {read.text};")
        lines.append("out[y * w + x] = sum;")
        if self.exit == 3:
            lines.append("}")
        self.dialect, self.text = "metal", "\n".join(lines)
        # Threads beyond the height write outside, and nothing.
        self.sums = np.full((self.height, self.width), 7, np.uint32)
        rows, columns = min(self.height, self.grid[1]), min(self.width, self.grid[0])
        if self.exit == 4:
            sums = np.where(inner, sums, 5)
        written = inside & ~((self.exit == 6) & (self.x_.numbers == 3) & (self.y_.numbers == 1))
        self.sums[:rows, :columns] = np.where(written, sums, 7)[:rows, :columns]

    # ---- As random_memory_check.py takes them

    def x(self) -> Any:
        return np.ascontiguousarray(self.pixels.astype(self.dtype))

    def kernel(self) -> Any:
        import kiln

        names = ["src"] if self.knows_shape else ["src", "size"]
        return kiln.metal_kernel("picture", names, ["out"], self.text)

    def keywords(self, src: Any) -> dict[str, Any]:
        size = [] if self.knows_shape else [np.array([self.width, self.height], np.int32)]
        return {
            "inputs": [src, *size],
            "grid": self.grid,
            "threadgroup": (*self.threadgroup, 1),
            "output_shapes": [(self.height, self.width)],
            "output_dtypes": [np.uint32],
            "init_value": 7,
        }

    def expected(self) -> list[Any]:
        return [self.sums.reshape(-1).view(np.int32)]
