"""Random arithmetic of bytes and shorts, with NumPy's results: C++ computes it in 32 bits, vectors may in 16 or 8."""

from __future__ import annotations

import random
from typing import NamedTuple

import kiln
import numpy as np

THREADS = 1000
ROW = 100
INPUTS = {"a": "uint8", "b": "int8", "c": "uint16", "d": "int16"}
TYPES = {"uint8": "uchar", "int8": "char", "uint16": "ushort", "int16": "short"}


class Term(NamedTuple):
    """An expression of the type int in Metal, and its values."""

    text: str
    values: np.ndarray


def wrapped(values: np.ndarray) -> np.ndarray:
    """As int wraps."""
    return (values & 0xFFFFFFFF).astype(np.uint32).astype(np.int32).astype(np.int64)


class Body:
    """The text of one random body, and what it gives."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = r = random.Random(seed)
        numbers = np.random.default_rng(seed)
        self.inputs: dict[str, np.ndarray] = {}
        for name, dtype in INPUTS.items():
            info = np.iinfo(dtype)
            values = numbers.integers(info.min, info.max, THREADS, endpoint=True).astype(dtype)
            values[numbers.random(THREADS) < 0.2] = r.choice([info.min, info.max])
            self.inputs[name] = values
        # Bytes most often, and neighbours of theirs: others do not fit into 16 bits for long.
        self.names = r.choice(["a", "ab", "ab", "abd", "abcd"])
        self.place = np.arange(THREADS)
        self.known: list[Term] = []
        lines = ["uint i = thread_position_in_grid.x;"]
        for number in range(r.randint(1, 4)):
            term = self.term(r.randint(1, 4))
            lines.append(f"int v{number} = {term.text};")
            self.known.append(Term(f"v{number}", term.values))
            if r.random() < 0.4:
                lines += self.branch(number)
        results = [self.term(r.randint(0, 2)) for _ in range(3)]
        if r.random() < 0.7:
            results[0] = self.known[-1]
        condition, holds = self.condition(1)
        lines += [
            f"y[i] = {results[0].text};",
            f"f[i] = float({results[1].text});",
            f"s[i] = uchar({results[2].text});",
            f"t[i] = {condition};",
        ]
        self.text = "\n".join(lines)
        self.expected = [
            results[0].values.astype(np.int32),
            results[1].values.astype(np.float32),
            results[2].values.astype(np.uint8),
            holds.astype(np.uint8),
        ]

    def branch(self, number: int) -> list[str]:
        """A value that one side of a branch changes, or a case of a switch."""
        r = self.random
        was, other = self.known[number], self.term(2)
        if r.random() < 0.3:
            labels = r.sample(range(-3, 300), 2)
            chosen = np.isin(was.values, labels)
            lines = [
                f"switch (v{number}) {{",
                *(f"case {label}:" for label in labels),
                f"v{number} = {other.text}; break;",
            ]
            lines += ["default: break;", "}"]
        else:
            condition, chosen = self.condition(1)
            lines = [f"if ({condition}) v{number} = {other.text};"]
        self.known[number] = Term(was.text, np.where(chosen, other.values, was.values))
        return lines

    def condition(self, depth: int) -> tuple[str, np.ndarray]:
        r = self.random
        one, other = self.term(depth), self.term(r.choice([0, depth]))
        compare, operator = r.choice(
            [(np.less, "<"), (np.greater, ">"), (np.less_equal, "<="), (np.equal, "=="), (np.not_equal, "!=")]
        )
        return f"{one.text} {operator} {other.text}", compare(one.values, other.values)

    def leaf(self) -> Term:
        r = self.random
        if self.known and r.random() < 0.3:
            return r.choice(self.known)
        if r.random() < 0.25:
            number = r.choice([r.randint(-9, 9), r.randint(-300, 300), 127, 128, 255, 256, 32767])
            return Term(f"({number})", np.full(THREADS, number, np.int64))
        name = r.choice(self.names)
        where, text = self.place, "i"
        if r.random() < 0.3:
            where, text = np.minimum(self.place + 1, THREADS - 1), f"min(i + 1, {THREADS - 1}u)"
        return Term(f"int({name}[{text}])", self.inputs[name][where].astype(np.int64))

    def term(self, depth: int) -> Term:
        r = self.random
        if depth == 0 or r.random() < 0.15:
            return self.leaf()
        kind = r.choice(
            ["+", "+", "-", "-", "*", "&", "|", "^", "<<", ">>", "/", "%", "min", "max", "abs", "?", "cast"]
        )
        one = self.term(depth - 1)
        x = one.values
        if kind in ("<<", ">>"):
            by = r.randint(0, 9)
            return Term(f"({one.text} {kind} {by})", wrapped(x << by) if kind == "<<" else x >> by)
        if kind in ("/", "%"):
            by = r.choice([2, 3, 7, 9, 16, 255, 256, 1000, -3])
            quotient = np.sign(x) * np.sign(by) * (np.abs(x) // abs(by))
            return Term(f"({one.text} {kind} {by})", quotient if kind == "/" else x - quotient * by)
        if kind == "abs":
            return Term(f"abs({one.text})", wrapped(np.abs(x)))
        if kind == "cast":
            dtype = r.choice(list(TYPES))
            return Term(f"int({TYPES[dtype]}({one.text}))", x.astype(dtype).astype(np.int64))
        other = self.term(r.randint(0, depth - 1))
        y = other.values
        if kind == "?":
            condition, holds = self.condition(0)
            return Term(f"({condition} ? {one.text} : {other.text})", np.where(holds, x, y))
        if kind in ("min", "max"):
            return Term(f"{kind}({one.text}, {other.text})", np.minimum(x, y) if kind == "min" else np.maximum(x, y))
        values = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}[kind]
        return Term(f"({one.text} {kind} {other.text})", wrapped(values))


def results(seed: int) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body of this seed gave, and its launch."""
    body = Body(seed)
    kernel = kiln.metal_kernel(f"random_small_{seed}", list(INPUTS), ["y", "f", "s", "t"], body.text)
    outputs = kernel(
        inputs=list(body.inputs.values()),
        output_shapes=[(THREADS,)] * 4,
        output_dtypes=["int32", "float32", "uint8", "uint8"],
        grid=(THREADS, 1, 1),
        threadgroup=(ROW, 1, 1),
    )
    return outputs, kernel.history[0]
