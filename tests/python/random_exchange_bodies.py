"""Random bodies whose threads exchange values in threadgroup memory between barriers, at distances that a loop changes,
and what they give.

A loop over distances has one to three rounds: butterflies in place, compare-exchanges, updates from a partner, folds,
moves, and stores at a running count. Indices are `t ^ j`, numbers with a 0 inserted at a bit, `t + j`, `t - j`, reversed,
modulo, transposed; distances come from an array, follow from the loop, or are constants. Some indices leave the array: a
load gives 0 there, a store does nothing.

Each statement is written twice, in Metal and in NumPy, so `expected` is computed without Kiln. The second one also records
who accesses what between two barriers, and that floating-point numbers are integers that their type has: a body that has a
race, or is not exact, is drawn again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import kiln
import numpy as np

GROUPS = 3
LENGTH = 400  # of x
WORD = (1 << 32) - 1
WAIT = "threadgroup_barrier(mem_flags::mem_threadgroup);"
HEADER = "struct Pair { int a; float b; };"
DTYPES = {
    "float": np.float32,
    "half": np.float16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "short": np.int16,
    "uchar": np.uint8,
}
# Members of the elements' types.
TYPES = {
    **{name: [("", name)] for name in DTYPES},
    **{f"{name}2": [(".x", name), (".y", name)] for name in ("float", "int", "half")},
    "Pair": [(".a", "int"), (".b", "float")],
}
LARGEST = {"half": 1 << 11, "float": 1 << 24}  # up to which each integer is a number of the type

Values = list[np.ndarray]  # of each member, by thread
Lanes = np.ndarray  # of each thread


class UnsuitableError(Exception):
    """A race, or a number that is rounded."""


class Group:
    """The threads of a threadgroup, and its memory."""

    def __init__(self, body: Body, number: int, threads: int, x: np.ndarray) -> None:
        self.body, self.number, self.x = body, number, x
        self.t = np.arange(threads)
        self.all = np.zeros(threads, np.int64)
        self.k = self.j = 0
        self.values: dict[str, Values] = {}
        self.indices: dict[str, Lanes] = {}
        self.first = np.zeros(threads, np.int64)
        self.memory = {name: self.filled(name) for name in "su"}
        self.accesses: dict[str, list[tuple[Lanes, Lanes, bool]]] = {"s": [], "u": []}

    def filled(self, name: str) -> Values:
        z = np.arange(self.body.size)
        return [
            self.x[(z * (7 if name == "s" else 3) + self.number * 13 + m) % LENGTH].astype(DTYPES[member])
            for m, (_, member) in enumerate(self.body.members)
        ]

    def wait(self) -> None:
        """What a thread writes between two barriers no other one accesses."""
        for name, accesses in self.accesses.items():
            if any(writes for _, _, writes in accesses):
                first, last = np.full(self.body.size, 1 << 20), np.full(self.body.size, -1)
                written = np.zeros(self.body.size, bool)
                for places, threads, writes in accesses:
                    np.minimum.at(first, places, threads)
                    np.maximum.at(last, places, threads)
                    written[places] |= writes
                if (written & (first != last)).any():
                    raise UnsuitableError("race")
            self.accesses[name] = []

    def inside(self, name: str, index: Lanes, mask: Lanes, *, writes: bool) -> Lanes:
        inside = mask & (index >= 0) & (index < self.body.size)
        self.body.leaves |= bool((mask & ~inside).any())
        self.accesses[name].append((index[inside], self.t[inside], writes))
        return inside

    def load(self, name: str, index: Lanes, mask: Lanes) -> Values:
        inside = self.inside(name, index, mask, writes=False)
        return [
            np.where(inside, member[np.where(inside, index, 0)], member.dtype.type(0)) for member in self.memory[name]
        ]

    def store(self, name: str, index: Lanes, mask: Lanes, values: Values) -> None:
        inside = self.inside(name, index, mask, writes=True)
        for member, value, (_, type) in zip(self.memory[name], values, self.body.members, strict=True):
            if type in LARGEST and (np.abs(value[inside].astype(np.float64)) > LARGEST[type]).any():
                raise UnsuitableError("rounded")
            member[index[inside]] = value[inside]

    def add(self, factor: int, values: Values, mask: Lanes) -> None:
        total = self.all * factor
        for m, value in enumerate(values):
            total += (7 * m + 1) * (value.astype(np.int64) & WORD)
        self.all = np.where(mask, total & WORD, self.all)

    @property
    def everyone(self) -> Lanes:
        return np.full(self.t.shape, True)


class Statement:
    """Its text, and what it does. Masks of what stands in braces are its own."""

    def __init__(self, text: str, does: Callable[[Group], None]) -> None:
        self.text, self.does = text, does


Number = tuple[str, Callable[[Group], Any]]  # in Metal, and by thread

INSERTED: list[Number] = [  # a 0 at the bit `j`, which is a power of two, or what is like it
    ("2 * j * (t / j) + t % j", lambda g: 2 * g.j * (g.t // g.j) + g.t % g.j),
    ("t / j * 2 * j + t % j", lambda g: 2 * g.j * (g.t // g.j) + g.t % g.j),
    ("t + t / j * j", lambda g: g.t + g.t // g.j * g.j),
]
INSERTED_AT_BITS: list[Number] = [
    ("((t & ~(j - 1)) << 1) | (t & (j - 1))", lambda g: ((g.t & ~(g.j - 1)) << 1) | (g.t & (g.j - 1))),
    ("2 * t - (t & (j - 1))", lambda g: 2 * g.t - (g.t & (g.j - 1))),
    ("t + (t & -j)", lambda g: g.t + (g.t & -g.j)),
    ("(t & (j - 1)) + 2 * (t & ~(j - 1))", lambda g: (g.t & (g.j - 1)) + 2 * (g.t & ~(g.j - 1))),
]
PARTNERS: list[Number] = [
    ("t ^ j", lambda g: g.t ^ g.j),
    ("t ^ j", lambda g: g.t ^ g.j),
    ("t ^ (2 * j - 1)", lambda g: g.t ^ (2 * g.j - 1)),
    ("(t / j & 1) ? t - j : t + j", lambda g: np.where(g.t // g.j & 1, g.t - g.j, g.t + g.j)),
]


def reversed_bits(numbers: Lanes, bits: int) -> Lanes:
    result = np.zeros_like(numbers)
    for bit in range(bits):
        result |= ((numbers >> bit) & 1) << (bits - 1 - bit)
    return result


class Body:
    """The text of one random body, its launch, and what it gives."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = r = random.Random(seed)
        self.x = np.random.default_rng(seed).integers(-9, 9, LENGTH)
        self.type = r.choice([*TYPES, "float", "float", "int", "int", "uint", "float2", "float2", "Pair"])
        self.members = TYPES[self.type]
        while True:
            self.draw()
            try:
                self.expected = self.computed()
            except UnsuitableError:
                continue
            break
        self.options = {"bounds": "off"} if not self.leaves and r.random() < 0.2 else {}

    # ---- What is drawn

    def draw(self) -> None:
        r = self.random
        self.leaves = False
        self.is_square = r.random() < 0.2
        self.threads = 256 if self.is_square else r.choice([32, 64, 96, 128, 128, 256, 256, 40, 100])
        self.cut = 0 if self.is_square else r.choice([0] * 6 + [1, 13])
        few = self.threads
        self.size = r.choice(
            [few, few, 2 * few, 2 * few, 2 * few, 2 * few + 3, 3 * few, few - 5, 2 * few - 9, few // 2]
        )
        self.number = 0
        self.index_type = r.choice(["uint", "uint", "uint", "int", "int", "ushort"])
        # A simdgroup's elements at running counts, and those of all.
        self.region = r.choice([40, 100, 256])
        self.keeps = len(self.members) == 1 and r.random() < 0.25
        self.start_of_loop, self.steps, self.end_of_loop, self.powers = self.loop()
        self.rounds: list[Statement] = []
        self.waits_first = r.random() < 0.5
        kinds = r.choices(
            [self.butterfly, self.compare_exchange, self.update, self.fold, self.move, self.count],
            [10, 3, 4, 2, 4, 5 if self.keeps else 2],
            k=r.choice([1, 1, 2, 3]),
        )
        if self.keeps and self.count not in kinds:
            kinds[-1] = self.count
        for kind in kinds:
            if self.waits_first:
                self.wait()
            kind()
            if not self.waits_first:
                self.wait()

    def loop(self) -> tuple[str, list[int], str, bool]:
        """How it begins, the distances, how it ends, and whether all of these are powers of two."""
        r = self.random
        kind = r.choice(["array", "array", "array", "double", "double", "halve", "halve", "shift", "constant"])
        steps = r.randint(1, 7)
        self.numbers = [steps, 0]
        if kind == "array":
            powers = r.random() < 0.7
            js = [1 << r.randint(0, 7) for _ in range(steps)] if powers else [r.randint(1, 40) for _ in range(steps)]
            self.numbers += js
            return "for (uint k = 0; k < c[0]; ++k) { uint j = c[2 + k];", js, "}", powers
        js = [1 << step for step in range(steps)]
        if kind == "shift":
            return "for (uint k = 0; k < c[0]; ++k) { uint j = 1u << k;", js, "}", True
        if kind == "constant":
            j = r.choice([1, 2, 4, 8, 16, 32, 3, 12])
            return f"for (uint k = 0; k < c[0]; ++k) {{ const uint j = {j};", [j] * steps, "}", j not in (3, 12)
        known = r.random() < 0.25
        if kind == "double":
            self.numbers[0] = 1 << steps
            end = self.numbers[0] if known else "c[0]"
            begin = f"for (uint j = 1, k = 0; j < {end}; {r.choice(['j *= 2', 'j <<= 1', 'j += j'])}, ++k) {{"
            return begin, js, "}", True
        self.numbers[0] = 1 << (steps - 1)
        begin = f"for (uint j = {self.numbers[0] if known else 'c[0]'}, k = 0; j > 0; {r.choice(['j /= 2', 'j >>= 1'])}, ++k) {{"
        return begin, js[::-1], "}", True

    def mask(self, *, ordinary: float = 0.4) -> Number:
        r = self.random
        bound = r.choice([5, 16, 31, 40, 72])
        choices: list[Number] = [
            ("t % 3 != 1", lambda g: g.t % 3 != 1),
            ("t >= j", lambda g: g.t >= g.j),
            ("(t & j) == 0", lambda g: (g.t & g.j) == 0),
            ("(t & j) != 0", lambda g: (g.t & g.j) != 0),
            (f"t < {bound}", lambda g: g.t < bound),
            (f"t + j < {bound}", lambda g: g.t + g.j < bound),
            ("x[row * 64 + t] > 0", lambda g: g.x[g.number * 64 + g.t] > 0),
            ("k % 2 == 0", lambda g: np.full(g.t.shape, g.k % 2 == 0)),
            ("j < 8", lambda g: np.full(g.t.shape, g.j < 8)),
        ]
        return ("", lambda g: g.everyone) if r.random() < ordinary else r.choice(choices)

    def place(self, *, is_target: bool = False) -> Number:
        """Any index of an element. Those that threads store to are more often different."""
        r = self.random
        n, threads = self.size, self.threads
        bits = threads.bit_length() - 1
        power = 1 << bits
        choices: list[Number] = [
            *PARTNERS,
            *PARTNERS,
            ("t + j", lambda g: g.t + g.j),
            ("t + j", lambda g: g.t + g.j),
            ("t - j", lambda g: g.t - g.j),
            ("t - j", lambda g: g.t - g.j),
            ("(t ^ j) + (j & 3)", lambda g: (g.t ^ g.j) + (g.j & 3)),
            (f"{n} - 1 - t", lambda g: n - 1 - g.t),
            (f"{threads} - 1 - (t ^ j)", lambda g: threads - 1 - (g.t ^ g.j)),
            (f"(t + j) % {n}", lambda g: (g.t + g.j) % n),
            (f"(t + {threads} - j % {threads}) % {threads}", lambda g: (g.t + threads - g.j % threads) % threads),
            (f"(t + j) & {power - 1}", lambda g: (g.t + g.j) & (power - 1)),
            ("2 * t + (j & 1)", lambda g: 2 * g.t + (g.j & 1)),
            *INSERTED,
            *(INSERTED_AT_BITS if self.powers else []),
        ]
        if threads == power:
            choices += [
                (f"reverse_bits(t) >> {32 - bits}", lambda g: reversed_bits(g.t, bits)),
                (
                    f"((t << 1) | (t >> {bits - 1})) & {power - 1}",
                    lambda g: (g.t << 1 | g.t >> (bits - 1)) & (power - 1),
                ),
                (f"(t * (2 * j + 1)) % {threads}", lambda g: g.t * (2 * g.j + 1) % threads),
            ]
        if self.is_square:
            choices = [
                *choices,
                ("at.x * 16 + at.y", lambda g: g.t % 16 * 16 + g.t // 16),
                *[("at.y * 16 + (at.x ^ j)", lambda g: g.t // 16 * 16 + (g.t % 16 ^ g.j))] * 4,
                *[("(at.y ^ j) * 16 + at.x", lambda g: (g.t // 16 ^ g.j) * 16 + g.t % 16)] * 4,
                ("at.y * 16 + (at.x + j) % 16", lambda g: g.t // 16 * 16 + (g.t % 16 + g.j) % 16),
                ("(at.y + j) * 16 + at.x", lambda g: (g.t // 16 + g.j) * 16 + g.t % 16),
            ]
        if not is_target:
            choices += [
                (f"t % {n // 2}", lambda g: g.t % (n // 2)),
                ("t < j ? t : t ^ 1", lambda g: np.where(g.t < g.j, g.t, g.t ^ 1)),
                ("t / j", lambda g: g.t // g.j),
                ("t | j", lambda g: g.t | g.j),
                ("t & ~j", lambda g: g.t & ~g.j),
                ("j", lambda g: np.full(g.t.shape, g.j)),
                (f"(t + uint(abs(int(x[t])))) % {n}", lambda g: (g.t + np.abs(g.x[g.t])) % n),
            ]
        return r.choice(choices)

    def index(self, number: Number) -> str:
        """The name of a variable with this index."""
        text, of = number
        r = self.random
        type = r.choice(["uint", "int", "ushort"]) if r.random() < 0.15 else self.index_type
        name = self.named("i")

        def does(g: Group) -> None:
            value = np.asarray(of(g)) & WORD
            if type == "int":
                value = value - ((value >> 31) << 32)
            g.indices[name] = value & 0xFFFF if type == "ushort" else value

        self.say(f"{type} {name} = {text};", does)
        return name

    def named(self, letter: str) -> str:
        self.number += 1
        return f"{letter}{self.number}"

    def say(self, text: str, does: Callable[[Group], None]) -> None:
        self.rounds.append(Statement(text, does))

    def wait(self) -> None:
        self.say(WAIT, Group.wait)

    def loaded(self, array: str, index: str, mask: Number) -> str:
        """The name of a variable with the element; without the mask's text, which is around it."""
        name = self.named("v")

        def does(g: Group) -> None:
            g.values[name] = g.load(array, g.indices[index], mask[1](g))

        self.say(f"{self.type} {name} = {array}[{index}];", does)
        return name

    def store(self, array: str, index: str, value: tuple[str, Callable[[Group], Values]], mask: Number) -> None:
        self.say(f"{array}[{index}] = {value[0]};", lambda g: g.store(array, g.indices[index], mask[1](g), value[1](g)))

    def add(self, name: str, mask: Number) -> None:
        """To what a thread knows of all that it has loaded."""
        factor = self.random.choice([3, 5])
        self.say(
            f"all = all * {factor} + {self.word(name)};",
            lambda g: g.add(factor, g.values[name], mask[1](g)),
        )

    def word(self, name: str) -> str:
        words = []
        for m, (suffix, member) in enumerate(self.members):
            word = f"uint({name}{suffix})" if member in ("uint", "long") else f"uint(int({name}{suffix}))"
            words.append(f"{7 * m + 1} * {word}" if m else word)
        return " + ".join(words)

    def value(self, one: str, other: str) -> tuple[str, Callable[[Group], Values]]:
        """What is computed from two elements."""
        r = self.random
        functions: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
            "+": ("{0} + {1}", np.add),
            "-": ("{0} - {1}", np.subtract),
            "from": ("{1} - {0}", lambda a, b: b - a),
            "min": ("min({0}, {1})", np.minimum),
            "max": ("max({0}, {1})", np.maximum),
            "other": ("{1}", lambda a, b: b),
            "^": ("{0} ^ {1}", np.bitwise_xor),
        }
        has_bits = not any(member in LARGEST for _, member in self.members)
        names = [*functions][: 7 if has_bits else 6]
        chosen = [r.choice([*names, "+", "-"])] * len(self.members)
        if len(chosen) == 2 and r.random() < 0.4:
            chosen[1] = r.choice(names)
        swaps = self.type.endswith("2") and r.random() < 0.3
        suffixes = [suffix for suffix, _ in self.members]
        others = suffixes[::-1] if swaps else suffixes
        parts = [
            functions[name][0].format(one + a, other + b) for name, a, b in zip(chosen, suffixes, others, strict=True)
        ]
        if self.type == "Pair":
            text = f"Pair{{{', '.join(parts)}}}"
        elif self.type.endswith("2") and chosen[0] == chosen[1] and r.random() < 0.6:
            text = functions[chosen[0]][0].format(one, other + (".yx" if swaps else ""))
        else:
            text = f"{self.type}({', '.join(parts)})"

        def of(g: Group) -> Values:
            b = g.values[other][::-1] if swaps else g.values[other]
            return [functions[name][1](x, y) for name, x, y in zip(chosen, g.values[one], b, strict=True)]

        return text, of

    def begin(self, mask: Number) -> None:
        if mask[0]:
            self.say(f"if ({mask[0]}) {{", lambda g: None)

    def end(self, mask: Number) -> None:
        if mask[0]:
            self.say("}", lambda g: None)

    def pair(self) -> tuple[str, str]:
        """Indices of a butterfly's two elements."""
        r = self.random
        numbers = INSERTED + INSERTED_AT_BITS if self.powers else INSERTED
        first = self.index(r.choice(numbers))
        operators: list[tuple[str, Callable[[Any, Any], Any]]] = [("+", lambda a, b: a + b)]
        if self.powers:
            operators += [("|", lambda a, b: a | b), ("^", lambda a, b: a ^ b), *operators * 3]
        sign, of = r.choice(operators)
        second = self.index((f"{first} {sign} j", lambda g: of(g.indices[first], g.j)))
        return first, second

    # ---- Rounds

    def butterfly(self) -> None:
        r = self.random
        i, p = self.pair()
        everyone: Number = ("", lambda g: g.everyone)
        is_around = r.random() < 0.3
        mask = self.mask()
        if is_around:
            self.begin(mask)
        around = mask if is_around else everyone
        v, y = self.loaded("s", i, around), self.loaded("s", p, around)
        if not is_around:
            if r.random() < 0.25:
                self.wait()
            self.begin(mask)
        values = [self.value(v, y), self.value(v, y)]
        self.store("s", i, values[0], mask)
        target = r.choice(["s", "s", "s", "u", ""])
        if target:
            self.store(target, p, values[1], mask)
        if is_around:
            self.add(y, mask)
        self.end(mask)
        if not is_around:
            self.add(v, everyone)
            if r.random() < 0.5:
                self.add(y, everyone)

    def compare_exchange(self) -> None:
        r = self.random
        if r.random() < 0.5:
            i, p = self.pair()
            mask = self.mask(ordinary=0.6)
        else:
            i, p = self.index(("t", lambda g: g.t)), self.index(r.choice(PARTNERS))
            text, of = f"uint({p}) > t", lambda g: (g.indices[p] & WORD) > g.t
            if r.random() < 0.3:
                n = self.size
                mask = (f"{text} && {p} < {n}", lambda g: of(g) & (g.indices[p] < n))
            else:
                mask = (text, of)
        self.begin(mask)
        v, y = self.loaded("s", i, mask), self.loaded("s", p, mask)
        first = self.members[0][0]
        up, is_up = r.choice(
            [
                ("true", lambda g: g.everyone),
                ("((t & j) == 0)", lambda g: (g.t & g.j) == 0),
                ("((t & (4 * j)) == 0)", lambda g: (g.t & (4 * g.j)) == 0),
                ("(k % 2 == 1)", lambda g: np.full(g.t.shape, g.k % 2 == 1)),
            ]
        )
        swaps: Number = (
            f"({v}{first} > {y}{first}) == {up}",
            lambda g: mask[1](g) & ((g.values[v][0] > g.values[y][0]) == is_up(g)),
        )
        self.begin(swaps)
        self.store("s", i, (y, lambda g: g.values[y]), swaps)
        self.store("s", p, (v, lambda g: g.values[v]), swaps)
        self.end(swaps)
        self.add(v, mask)
        self.end(mask)

    def update(self) -> None:
        """Each thread's own element from another one."""
        r = self.random
        everyone: Number = ("", lambda g: g.everyone)
        i = self.index(("t", lambda g: g.t))
        p = self.index(self.place())
        around = r.choice([everyone, everyone, ("t >= j", lambda g: g.t >= g.j)])
        if around[0]:
            name = self.named("v")

            def does(g: Group) -> None:
                g.values[name] = g.load("s", g.indices[p], around[1](g))

            self.say(f"{self.type} {name} = {around[0]} ? s[{p}] : {self.zero};", does)
            y = name
        else:
            y = self.loaded("s", p, everyone)
        v = self.loaded("s", i, everyone)
        self.wait()
        mask = self.mask()
        self.begin(mask)
        self.store("s", i, self.value(v, y), mask)
        self.end(mask)
        self.add(y, everyone)

    def fold(self) -> None:
        """In place, into the part of the array that no other thread accesses."""
        masks: list[Number] = [
            ("t < j", lambda g: g.t < g.j),
            ("t % (2 * j) == 0", lambda g: g.t % (2 * g.j) == 0),
            ("(t & j) == 0", lambda g: (g.t & g.j) == 0),
            ("t % (2 * j) < j", lambda g: g.t % (2 * g.j) < g.j),
        ]
        mask = self.random.choice(masks)
        i, p = self.index(("t", lambda g: g.t)), self.index(("t + j", lambda g: g.t + g.j))
        self.begin(mask)
        v, y = self.loaded("s", i, mask), self.loaded("s", p, mask)
        self.store("s", i, self.value(v, y), mask)
        self.end(mask)

    def move(self) -> None:
        r = self.random
        everyone: Number = ("", lambda g: g.everyone)
        v = self.loaded("s", self.index(self.place()), everyone)
        y = self.loaded(r.choice("su"), self.index(self.place()), everyone)
        self.wait()
        mask = self.mask()
        target = r.choice("su")
        p = self.index(self.place(is_target=True))
        self.begin(mask)
        self.store(target, p, self.value(v, y), mask)
        if r.random() < 0.3:
            self.store("s" if target == "u" else "u", self.index(self.place(is_target=True)), self.value(y, v), mask)
        self.end(mask)
        self.wait()
        self.add(self.loaded(target, self.index(self.place()), everyone), everyone)

    def count(self) -> None:
        """What some threads of a simdgroup have, next to each other, from where the last ones ended."""
        r = self.random
        everyone: Number = ("", lambda g: g.everyone)
        v = self.loaded("s", self.index(self.place()), everyone)
        suffix = self.members[0][0]
        wanted = r.choice([(f"{v}{suffix} > 0", lambda g: g.values[v][0] > 0), self.mask(ordinary=0)])
        around = self.mask(ordinary=0.7)
        flag, rank, number = self.named("b"), self.named("i"), self.named("n")
        counts_on = r.random() < 0.6

        def does(g: Group) -> None:
            wants = wanted[1](g) & around[1](g)
            g.indices[flag] = wants
            first = g.t // 32 * 32
            before = np.cumsum(wants) - wants
            g.indices[number] = np.array([wants[f : f + 32].sum() for f in first])
            base = first // 32 * self.region if counts_on or self.keeps else first
            g.indices[rank] = base + g.first + before - before[first]

        self.begin(around)
        base = f"simdgroup * {self.region}" if counts_on or self.keeps else "simdgroup * 32"
        kind = r.choice(["votes"] * 4 + ["sum"])
        self.say(f"bool {flag} = {wanted[0]};", does)
        nothing: Callable[[Group], None] = lambda g: None  # noqa: E731
        if kind == "votes":
            below = r.choice(["((1u << lane) - 1)", "~(0xffffffffu << lane)"])
            self.say(f"uint {number} = uint(uint64_t(simd_ballot({flag})));", nothing)
            self.say(f"uint {rank} = {base} + first + popcount({number} & {below});", nothing)
            number_of = f"popcount({number})"
        else:
            self.say(f"uint {number} = simd_sum(uint({flag}));", nothing)
            self.say(f"uint {rank} = {base} + first + simd_prefix_exclusive_sum(uint({flag}));", nothing)
            number_of = number
        stores: Number = (flag, lambda g: g.indices[flag])
        if self.keeps:
            self.say(
                f"if ({flag}) kept[row * {self.region * 8} + {rank}] = {v};", lambda g: self.keep(g, rank, flag, v)
            )
        else:
            self.begin(stores)
            self.store("u", rank, (v, lambda g: g.values[v]), stores)
            self.end(stores)
        if counts_on:
            self.say(
                f"first += {number_of};",
                lambda g: setattr(g, "first", g.first + np.where(around[1](g), g.indices[number], 0)),
            )
        self.end(around)

    def keep(self, g: Group, rank: str, flag: str, v: str) -> None:
        wants = g.indices[flag]
        places = g.number * self.region * 8 + g.indices[rank]
        # A simdgroup's region is its own, or each element would have to be written once only.
        if (g.indices[rank][wants] // self.region != g.t[wants] // 32).any():
            raise UnsuitableError("race")
        self.kept[places[wants]] = g.values[v][0][wants]

    # ---- All of it

    @property
    def zero(self) -> str:
        return "Pair{0, 0.0f}" if self.type == "Pair" else f"{self.type}(0)"

    @property
    def grid(self) -> tuple[int, int, int]:
        return (48, 16, 1) if self.is_square else (GROUPS * self.threads - self.cut, 1, 1)

    @property
    def threadgroup(self) -> tuple[int, int, int]:
        return (16, 16, 1) if self.is_square else (self.threads, 1, 1)

    def computed(self) -> list[np.ndarray]:
        """What each output is."""
        total = np.zeros((GROUPS, self.threads), np.uint32)
        y = np.zeros((GROUPS, 2, self.size, len(self.members)), np.uint32)
        self.kept = np.zeros(GROUPS * self.region * 8, DTYPES[self.members[0][1]])
        with np.errstate(over="ignore", invalid="ignore"):
            for number in range(GROUPS):
                threads = self.threads - (self.cut if number == GROUPS - 1 else 0)
                g = Group(self, number, threads, self.x)
                for g.k, g.j in enumerate(self.steps):
                    for statement in self.rounds:
                        statement.does(g)
                # The first barrier of the next turn is behind the last one of this turn.
                g.wait()
                total[number, :threads] = g.all
                for a, name in enumerate("su"):
                    for m, member in enumerate(g.memory[name]):
                        y[number, a, :, m] = member.astype(np.int64) & WORD
        return [total.ravel(), y.ravel(), self.kept]

    @property
    def text(self) -> str:
        values = {
            name: ", ".join(
                f"{member}(x[(z * {factor} + row * 13 + {m}) % {LENGTH}])" for m, (_, member) in enumerate(self.members)
            )
            for name, factor in (("s", 7), ("u", 3))
        }
        made = {name: f"Pair{{{v}}}" if self.type == "Pair" else f"{self.type}({v})" for name, v in values.items()}
        each = f"for (uint z = t; z < {self.size}; z += threads)"
        words = len(self.members)
        out = [
            f"y[((row * 2 + {a}) * {self.size} + z) * {words} + {m}] = "
            + (f"uint({name}[z]{suffix});" if member in ("uint", "long") else f"uint(int({name}[z]{suffix}));")
            for a, name in enumerate("su")
            for m, (suffix, member) in enumerate(self.members)
        ]
        return "\n".join(
            [
                f"threadgroup {self.type} s[{self.size}], u[{self.size}];",
                "uint t = thread_index_in_threadgroup, row = threadgroup_position_in_grid.x;",
                "uint threads = threads_per_threadgroup.x * threads_per_threadgroup.y;",
                *(["uint2 at = thread_position_in_threadgroup.xy;"] if self.is_square else []),
                "uint lane = thread_index_in_simdgroup, simdgroup = simdgroup_index_in_threadgroup;",
                f"{each} {{ s[z] = {made['s']}; u[z] = {made['u']}; }}",
                *([] if self.waits_first else [WAIT]),
                "uint all = 0, first = 0;",
                self.start_of_loop,
                *(statement.text for statement in self.rounds),
                self.end_of_loop,
                WAIT,
                f"{each} {{",
                *out,
                "}",
                f"total[row * {self.threads} + t] = all;",
            ]
        )


def run(body: Body, source: str | None = None) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body gave, or another text in its place, and its launch."""
    names = ["total", "y", "kept"][: 3 if body.keeps else 2]
    numbers = np.zeros(16, np.uint32)
    numbers[: len(body.numbers)] = body.numbers
    kernel = kiln.metal_kernel(
        f"random_exchange_{body.seed}",
        ["x", "c"],
        names,
        source or body.text,
        header=HEADER,
        compile_options=body.options,
    )
    outputs = kernel(
        inputs=[body.x.astype(np.int32), numbers],
        output_shapes=[(each.size,) for each in body.expected[: len(names)]],
        output_dtypes=[str(each.dtype) for each in body.expected[: len(names)]],
        grid=body.grid,
        threadgroup=body.threadgroup,
        init_value=0,
    )
    return outputs, kernel.history[0]


def results(seed: int) -> tuple[list[np.ndarray], kiln.Launch]:
    """What the body of this seed gave, and its launch."""
    return run(Body(seed))


def problem(seed: int, engine: str = "") -> str:
    """What is wrong with what the body of this seed gave, or that another engine has run it; nothing, if nothing is."""
    body = Body(seed)
    outputs, launch = run(body)
    said = [] if engine in ("", launch.engine) else [f"{launch.engine}: {launch.engine_reason}"]
    for name, output, expected in zip(["total", "y", "kept"], outputs, body.expected, strict=False):
        wrong = np.flatnonzero(np.asarray(output) != expected)
        if len(wrong):
            some = ", ".join(f"[{place}] {output[place]}, not {expected[place]}" for place in wrong[:4])
            said.append(f"{len(wrong)} elements of {name}: {some}")
    if not said:
        return ""
    launched = f"grid {body.grid}, threadgroup {body.threadgroup}, c {body.numbers}, options {body.options}"
    return "\n".join([f"seed {seed}", *said, launched, body.text])
