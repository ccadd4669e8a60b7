"""Random bodies whose threads walk and write rows of their own, and what they give.

Loops go up and down, in steps of one to three, to bounds that are constant, unknown or a lane's own, one after the other
and in one another. Rows are read and written in place and at distances between iterations, through indices of any type,
pointers that walk along and casts to other types; some accesses are under conditions, or outside of the array, where a
load gives zero and a store does nothing. Rows have 1 to 200 elements, and some are 4096 bytes apart. No element that a
thread writes is another one's: rows are as far apart as what is accessed around them is wide.

`expected` is computed in NumPy, without Kiln: each value of the body is an array over the threads, of 32 bits that wrap.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

NAMES = ("out", "wide", "sums", "total", "x")

# Names in Metal and NumPy.
ELEMENTS = {
    "uchar": "uint8",
    "char": "int8",
    "ushort": "uint16",
    "short": "int16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "half": "float16",
    "float": "float32",
}
# Floats keep integers that they represent exactly.
MASKS = {"half": 255, "float": 1023}
# Of an index: bits, and whether it is signed.
NUMBERS = {
    "int": (32, True),
    "uint": (32, False),
    "long": (64, True),
    "ulong": (64, False),
    "uchar": (8, False),
    "ushort": (16, False),
}
DISTANCES = [0, 0, 0, 0, 0, 0, -1, 1, -2, 3, -3, 15, 16, 17, -15, -16, -17, 20, -20]
LENGTHS = [1, 2, 15, 17, 31, 32, 33, 47, 48, 64, 80, 96, 100, 128, 160, 199, 200]

Evaluated = Callable[["Threads"], Any]


class Threads:
    """What threads have where the reference is: numbers by name, and whether each is there."""

    def __init__(self, active: Any, numbers: dict[str, Any]) -> None:
        self.active, self.numbers = active, numbers
        self.broken = self.continued = np.zeros_like(active)


class Value:
    """Text of the body, and what it is in each thread."""

    def __init__(self, text: str, evaluate: Evaluated) -> None:
        self.text, self.evaluate = text, evaluate


class Statement:
    """Lines of the body, and what they do."""

    def __init__(self, lines: list[str], run: Callable[[Threads], None]) -> None:
        self.lines, self.run = lines, run


class Array:
    def __init__(self, name: str, element: str) -> None:
        self.name, self.element = name, element
        self.bytes = np.dtype(ELEMENTS[element]).itemsize
        self.lowest, self.highest, self.is_written = 0, 0, False
        self.memory = np.zeros(0, np.uint8)

    def reach(self, lowest: int, highest: int) -> None:
        """Elements of a row, counted from where it begins."""
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)


def wrapped(numbers: Any, number: str) -> Any:
    """As numbers of 64 bits that wrap."""
    bits, is_signed = NUMBERS[number]
    numbers = np.asarray(numbers).astype(np.uint64)
    if bits < 64:
        numbers = numbers & np.uint64((1 << bits) - 1)
        if is_signed:
            numbers = (numbers << np.uint64(64 - bits)).view(np.int64) >> np.int64(64 - bits)
    return numbers.astype(np.uint64)


def moved(text: str, distance: int) -> str:
    return text if distance == 0 else f"{text} {'-' if distance < 0 else '+'} {abs(distance)}"


class Body:
    def __init__(self, seed: int) -> None:
        r = self.random = random.Random(seed)
        self.seed = seed
        elements = list(ELEMENTS)
        self.in_place = r.random() < 0.35
        # Few of 8 bytes.
        shares = [0.2 if name in ("long", "ulong") else 1 for name in elements]
        main, other, third = r.choices(elements, shares, k=3)
        self.x_ = Array("x", main if r.random() < 0.5 else other)
        self.out = Array("out", main)
        self.wide = Array("wide", main if r.random() < 0.4 else third)
        self.arrays = [self.x_, self.out, self.wide]
        self.writable = [self.out, self.out, self.wide, *([self.x_] * 2 if self.in_place else [])]
        self.rows, self.group = r.choice([1, 5, 31, 33, 40, 50, 63, 70]), r.choice([32, 32, 64, 20, 33])
        self.threads = self.rows if r.random() < 0.4 else -(-self.rows // self.group) * self.group
        self.number = r.choice(["uint", "uint", "int", "long", "long", "ulong", "ulong"])
        self.rows_of_thread = r.choice([1, 1, 1, 1, 1, 2])
        self.has_views = r.random() < 0.2
        self.narrow_first = r.choice([0, 200, 208, 224, 224, 240, 240])
        self.has_private = self.has_threadgroup = False
        self.is_outside = False  # an access of a thread
        self.distances = r.sample(DISTANCES, 3) if r.random() < 0.6 else [0]
        self.sizes: list[int] = []
        self.write()

    # ---- Memory

    def load(self, array: Array, element: str, offsets: Any, threads: Threads) -> Any:
        dtype = np.dtype(ELEMENTS[element])
        offsets = offsets.astype(np.uint64)
        inside = threads.active & (offsets < max(array.memory.size - dtype.itemsize + 1, 0))
        self.is_outside |= bool((threads.active & ~inside).any())
        of_bytes = np.where(inside, offsets, 0).astype(np.int64)[:, None] + np.arange(dtype.itemsize)
        if not array.memory.size:
            return np.zeros(offsets.shape, np.uint32)
        values = array.memory[of_bytes].view(dtype)[:, 0]
        return np.where(inside, values.astype(np.int64), 0).astype(np.uint32)

    def store(self, array: Array, element: str, offsets: Any, values: Any, threads: Threads) -> None:
        dtype = np.dtype(ELEMENTS[element])
        offsets = offsets.astype(np.uint64)
        inside = threads.active & (offsets < max(array.memory.size - dtype.itemsize + 1, 0))
        self.is_outside |= bool((threads.active & ~inside).any())
        of_bytes = offsets[inside].astype(np.int64)[:, None] + np.arange(dtype.itemsize)
        array.memory[of_bytes] = values[inside].astype(dtype)[:, None].view(np.uint8)

    # ---- Values

    def place(self, array: Array, walk: dict[str, Any], is_write: bool) -> tuple[str, str, Evaluated]:
        """An element of the row: its text, type and offset in bytes."""
        r = self.random
        array.is_written |= is_write
        is_tidy = walk["written"] is not None
        step = walk["scale"] if is_tidy or r.random() < 0.7 else r.choice([1, 2, 3])
        distance = r.choice(self.distances)
        if is_tidy and array is walk["written"]:
            # What is read of it is at the same place or a later one, as a rule.
            distance = walk["distance"]
            if not is_write and r.random() < 0.5:
                distance += r.choice([0, 1, 1, 2, 3, 15, 16, 17, 20, -1, -2, -16, -17])
        # Channels of a pixel.
        if step > 1 and r.random() < 0.5:
            distance = walk["channel"] % step
            walk["channel"] += 1
        first, last = walk["values"][0] * step + distance, walk["values"][-1] * step + distance
        lowest, highest = min(first, last), max(first, last)
        counter = walk["name"]
        form = walk["form"] if is_tidy else r.randrange(10)
        scaled = f"{counter} * {step}" if step > 1 else counter
        if form == 0 and self.has_views and array.element not in MASKS:
            views = [name for name in ELEMENTS if name not in MASKS]
            view = r.choice(views)
            size = np.dtype(ELEMENTS[view]).itemsize
            array.reach(lowest * size // array.bytes - 1, highest * size // array.bytes + 1)
            text = f"(({self.pointer_to(array, view)})({array.name} + base))[long({moved(scaled, distance)})]"
            return (
                text,
                view,
                lambda t: (
                    self.base_of(t) * np.uint64(array.bytes)
                    + wrapped(t.numbers[counter] * np.int64(step) + np.int64(distance), walk["promoted"])
                    * np.uint64(size)
                ),
            )
        if form <= 2:
            index = walk["index"] if is_tidy else r.choice(["int", "uint", "long", "ulong"])
            array.reach(lowest, highest)
            text = f"{array.name}_row[{index}({moved(scaled, distance)})]"
            return (
                text,
                array.element,
                lambda t: (
                    (
                        self.base_of(t)
                        + wrapped(
                            wrapped(t.numbers[counter] * np.int64(step) + np.int64(distance), walk["promoted"]), index
                        )
                    )
                    * np.uint64(array.bytes)
                ),
            )
        if form == 3 and r.random() < 0.3:
            array.reach(0, 255)
            text = f"{array.name}_row[uchar({moved(scaled, distance)})]"
            return (
                text,
                array.element,
                lambda t: (
                    (self.base_of(t) + wrapped(t.numbers[counter] * np.int64(step) + np.int64(distance), "uchar"))
                    * np.uint64(array.bytes)
                ),
            )
        if form in (3, 4) and not walk["is_odd"]:
            array.reach(lowest, highest)
            name = f"walk{len(walk['pointers'])}"
            by = step * walk["step"]
            start = walk["values"][0] * step
            walk["pointers"].append(
                (f"{self.pointer_to(array, array.element)} {name} = {array.name} + base + {start};", f"{name} += {by}")
            )
            text = f"*{name}" if distance == 0 else f"{name}[{distance}]"
            return (
                text,
                array.element,
                lambda t: (
                    (self.base_of(t) + (t.numbers[counter] * np.int64(step) + np.int64(distance)).view(np.uint64))
                    * np.uint64(array.bytes)
                ),
            )
        array.reach(lowest, highest)
        number = self.number
        scaled = f"{number}({counter}) * {step}" if step > 1 else f"{number}({counter})"
        return (
            f"{array.name}[base + {moved(scaled, distance)}]",
            array.element,
            lambda t: (
                wrapped(
                    t.numbers["base"].view(np.int64) + t.numbers[counter] * np.int64(step) + np.int64(distance), number
                )
                * np.uint64(array.bytes)
            ),
        )

    def narrow_assigned(self, walk: dict[str, Any]) -> Statement:
        """From two elements of an array that the loop does not write, as a rule."""
        array = self.random.choice([one for one in self.arrays if one is not walk["written"]])
        (text, element, first), (other_text, _, other) = (self.narrow_place(array, walk, k) for k in (0, 16))

        def run(t: Threads) -> None:
            sums = self.load(array, element, first(t), t) + self.load(array, element, other(t), t) * np.uint32(5)
            t.numbers["s"] = np.where(t.active, t.numbers["s"] ^ sums, t.numbers["s"])

        return Statement([f"s ^= uint({text}) + uint({other_text}) * 5;"], run)

    def narrow_place(
        self, array: Array, walk: dict[str, Any], distance: int | None = None
    ) -> tuple[str, str, Evaluated]:
        """An element at a counter of 8 bits, which wraps, also between two of a loop's loads."""
        name, first = walk["narrow"], self.narrow_first
        distance = self.random.choice([0, 16, 16, 17, 20, 32]) if distance is None else distance
        line = (f"uchar {name} = {first};", f"{name}++")
        if line not in walk["pointers"]:
            walk["pointers"].append(line)
        array.reach(0, 255)
        counter, begin, step = walk["name"], walk["values"][0], walk["step"]
        return (
            f"{array.name}_row[uchar({moved(name, distance)})]",
            array.element,
            lambda t: (
                (self.base_of(t) + wrapped((t.numbers[counter] - begin) // step + first + distance, "uchar"))
                * np.uint64(array.bytes)
            ),
        )

    @staticmethod
    def base_of(threads: Threads) -> Any:
        return threads.numbers["base"]

    def pointer_to(self, array: Array, element: str) -> str:
        """Only what is written at last is writable."""
        is_constant = array is self.x_ and not self.in_place
        return f"{'const ' if is_constant else ''}device {element}*"

    def loaded(self, walk: dict[str, Any], array: Array | None = None) -> Value:
        r = self.random
        if array is None and walk["written"] is not None and r.random() < 0.7:
            array = r.choice([one for one in self.arrays if one is not walk["written"]])
        array = array or r.choice(self.arrays)
        if walk["narrow"] and array is not walk["written"] and r.random() < 0.8:
            text, element, offset = self.narrow_place(array, walk)
        else:
            text, element, offset = self.place(array, walk, False)
        return Value(f"uint({text})", lambda t: self.load(array, element, offset(t), t))

    def value(self, walk: dict[str, Any]) -> Value:
        r, counter = self.random, walk["name"]
        match r.randrange(6):
            case 0 | 1:
                read = self.loaded(walk)
                factor = r.choice([1, 2, 3])
                return Value(
                    f"(s * {factor} + {read.text})",
                    lambda t: t.numbers["s"] * np.uint32(factor) + read.evaluate(t),
                )
            case 2:
                return Value(f"(s ^ uint({counter}))", lambda t: t.numbers["s"] ^ t.numbers[counter].astype(np.uint32))
            case 3:
                one, other = self.loaded(walk), self.loaded(walk)
                return Value(f"({one.text} + {other.text} * 5)", lambda t: one.evaluate(t) + other.evaluate(t) * 5)
            case 4:
                return self.loaded(walk)
            case _:
                return Value("s", lambda t: t.numbers["s"])

    def condition(self, walk: dict[str, Any], is_rare: bool = False) -> Value:
        r, counter = self.random, walk["name"]
        mask, equal = (63, 5) if is_rare else r.choice([(1, 0), (3, 1), (7, 7)])
        if r.random() < 0.4:
            return Value(
                f"(uint({counter}) & {mask}) == {equal}",
                lambda t: (t.numbers[counter].astype(np.uint32) & np.uint32(mask)) == equal,
            )
        return Value(f"(s & {mask}) == {equal}", lambda t: (t.numbers["s"] & np.uint32(mask)) == equal)

    # ---- Statements

    def assigned(self, walk: dict[str, Any]) -> Statement:
        value = self.value(walk)

        def run(t: Threads) -> None:
            t.numbers["s"] = np.where(t.active, value.evaluate(t), t.numbers["s"]).astype(np.uint32)

        return Statement([f"s = {value.text};"], run)

    def stored(self, walk: dict[str, Any]) -> Statement:
        array = walk["written"] or self.random.choice(self.writable)
        value = self.value(walk)
        text, element, offset = self.place(array, walk, True)
        mask = MASKS.get(element, 0xFFFFFFFF)
        number = f"{value.text} & {mask}" if element in MASKS else value.text

        def run(t: Threads) -> None:
            self.store(array, element, offset(t), value.evaluate(t) & np.uint32(mask), t)

        return Statement([f"{text} = {element}({number});"], run)

    def in_condition(self, walk: dict[str, Any]) -> Statement:
        condition = self.condition(walk)
        inner = self.stored(walk) if self.random.random() < 0.6 else self.assigned(walk)

        def run(t: Threads) -> None:
            before = t.active
            t.active = before & condition.evaluate(t)
            inner.run(t)
            t.active = before

        return Statement([f"if ({condition.text}) {{", *(f"  {line}" for line in inner.lines), "}"], run)

    def leave(self, walk: dict[str, Any]) -> Statement:
        is_break = self.random.random() < 0.5
        condition = self.condition(walk, is_break)

        def run(t: Threads) -> None:
            leaving = t.active & condition.evaluate(t)
            t.active = t.active & ~leaving
            if is_break:
                t.broken = t.broken | leaving

        return Statement([f"if ({condition.text}) {'break' if is_break else 'continue'};"], run)

    def kept(self, walk: dict[str, Any]) -> Statement:
        """In an array of the thread, or of its own in that of the threadgroup."""
        counter, distance = walk["name"], self.random.randrange(8)
        if self.random.random() < 0.5:
            self.has_private, name, begin = True, "own", ""
        else:
            self.has_threadgroup, name, begin = True, "shared", "lid * 8 + "

        def run(t: Threads) -> None:
            memory, every = t.numbers[name], np.arange(t.active.size)
            number = t.numbers[counter].astype(np.int64)
            at = every[t.active], (number & 7)[t.active]
            memory[at] = t.numbers["s"][t.active]
            read = memory[every, (number + distance) & 7]
            t.numbers["s"] = np.where(t.active, t.numbers["s"] + read, t.numbers["s"])

        return Statement(
            [f"{name}[{begin}({counter} & 7)] = s;", f"s += {name}[{begin}(({counter} + {distance}) & 7)];"], run
        )

    def added(self, walk: dict[str, Any]) -> Statement:
        def run(t: Threads) -> None:
            self.total += np.add.reduce(t.numbers["s"][t.active], dtype=np.uint32)

        add = "atomic_fetch_add_explicit((device atomic_uint*)total, s, memory_order_relaxed);"
        return Statement([add], run)

    def loop(self, name: str, length: int) -> Statement:
        r = self.random
        is_tidy = r.random() < 0.85
        kind = r.choice(
            ["up", "up", "up", "up", "up", "down", "unequal", "until_zero", *(["own"] if not is_tidy else [])]
        )
        number = r.choice(["int", "int", "uint", "uint", "long", "ulong", "ushort"])
        step = r.choice([1] * 9 + [2, 3])
        first = r.choice([0, 0, 0, 1, 3])
        if kind == "down":
            number = r.choice(["int", "long"])
        if kind in ("unequal", "until_zero"):
            step, first = 1, 0
        scale = 1 if step > 1 else r.choice([1, 1, 1, 1, 1, 2, 3, 4])
        values = list(range(first, length, step))
        if kind in ("down", "until_zero"):
            first = 0 if kind == "until_zero" else first
            values = list(range(length - 1, first - 1, -step))
        promoted = "int" if number == "ushort" else number
        walk: dict[str, Any] = {
            "name": name,
            "values": values or [0],
            "step": -step if kind in ("down", "until_zero") else step,
            "scale": scale,
            "channel": 0,
            "promoted": promoted,
            "is_odd": kind == "until_zero",
            "pointers": [],
            "narrow": f"{name}_narrow" if is_tidy and kind != "until_zero" and r.random() < 0.2 else "",
            "written": r.choice(self.writable) if is_tidy else None,
            "distance": r.choice(self.distances),
            "index": r.choice(["long", "long", "ulong", "int", "uint"]),
            "form": r.choice([1, 1, 4, 4, 5]) if r.random() < 0.9 else r.randrange(10),
        }
        match r.randrange(3):
            case 0:
                bound = str(length)
            case _:
                bound = f"{number}(size[{len(self.sizes)}])"
                self.sizes.append(length)
        statements = []
        kinds = [self.assigned] * 3 + [self.stored] * (0 if is_tidy and r.random() < 0.6 else 2)
        for extra, share in [(self.in_condition, 0.25), (self.leave, 0.15), (self.kept, 0.12), (self.added, 0.05)]:
            if r.random() < (0 if walk["narrow"] else share / 3 if is_tidy else share):
                kinds += [extra] * 2
        for _ in range(r.randint(1, 3 if is_tidy else 5)):
            statements.append(r.choice(kinds)(walk))
        if r.random() < (0.2 if is_tidy and scale > 1 else 0.95):
            statements.append(self.stored(walk))
        if walk["narrow"]:
            statements.insert(0, self.narrow_assigned(walk))
        # All channels.
        if scale > 1 and r.random() < 0.8:
            others = [array for array in self.writable if array is not walk["written"]]
            array, distance = r.choice(others or self.writable), r.choice([0, 0, 1])
            for channel in range(scale):
                statements.append(self.channel_stored(array, walk, scale, channel + distance))
        steps = "".join(f", {by}" for _, by in walk["pointers"])
        by = f"{name} += {step}" if step > 1 else f"{name}++"
        head = {
            "up": f"for ({number} {name} = {first}; {name} < {bound}; {by}{steps}) {{",
            "unequal": f"for ({number} {name} = 0; {name} != {bound}; {name}++{steps}) {{",
            "own": f"for ({number} {name} = {first}; {name} < {number}({bound} - (row & 3)); {by}{steps}) {{",
            "down": f"for ({number} {name} = {bound} - 1; {name} >= {first}; "
            f"{f'{name} -= {step}' if step > 1 else f'{name}--'}{steps}) {{",
            "until_zero": f"for ({number} {name} = {bound}; {name}-- > 0;) {{",
        }[kind]
        lines = [
            *(line for line, _ in walk["pointers"]),
            head,
            *(f"  {line}" for statement in statements for line in statement.lines),
            "}",
        ]
        if walk["pointers"]:
            lines = ["{", *(f"  {line}" for line in lines), "}"]

        def run(t: Threads) -> None:
            before, t.broken = t.active, np.zeros_like(t.active)
            for k in values:
                t.numbers[name] = np.full(t.active.shape, k, np.int64)
                t.active = before & ~t.broken
                if kind == "own":
                    t.active = t.active & (k < length - (t.numbers["row"].astype(np.int64) & 3))
                if not t.active.any():
                    break
                for statement in statements:
                    statement.run(t)
            t.active = before

        return Statement(lines, run)

    def channel_stored(self, array: Array, walk: dict[str, Any], scale: int, distance: int) -> Statement:
        counter, values = walk["name"], walk["values"]
        lowest, highest = min(values) * scale + distance, max(values) * scale + distance
        array.reach(lowest, highest)
        array.is_written = True
        mask = MASKS.get(array.element, 0xFFFFFFFF)
        value = f"(s + {distance}) & {mask}"
        number = self.number

        def run(t: Threads) -> None:
            index = wrapped(t.numbers["base"].view(np.int64) + t.numbers[counter] * scale + distance, number)
            values = (t.numbers["s"] + np.uint32(distance)) & np.uint32(mask)
            self.store(array, array.element, index * np.uint64(array.bytes), values, t)

        place = f"{array.name}[base + {number}({counter}) * {scale} + {distance}]"
        return Statement([f"{place} = {array.element}({value});"], run)

    def write(self) -> None:
        r = self.random
        length = r.choice(LENGTHS) if r.random() < 0.8 else r.randint(20, 200)
        loops = []
        for k in range(r.choice([1, 1, 1, 2, 3])):
            length = max(length, 4)
            if r.random() < 0.15 and length < 100:
                loops.append(self.nested(k, length))
            else:
                loops.append(self.loop(f"i{k}", length))
            if r.random() < 0.3:
                length = r.choice(LENGTHS)
        self.set_memory(length)

        # The thread's row.
        exit_, mapping, shift = r.randrange(5), r.randrange(6), r.choice([1, 5, 32])
        number, rows = self.number, self.rows
        bits = NUMBERS[number]
        tid = np.arange(self.threads)
        if self.in_place:
            # Stores go through a cast.
            element = self.x_.element
            lines = [f"device {element}* x = (device {element}*)given;"]
        else:
            lines = []
        lines.append("uint tid = thread_position_in_grid.x, lid = thread_position_in_threadgroup.x;")
        active = np.ones(self.threads, bool)
        if mapping == 0:
            lines.append(f"{number} row = {number}({rows} - 1) - {number}(tid);")
            row = wrapped(rows - 1 - tid, number)
        elif mapping == 1:
            lines += [f"if (tid < {shift}) return;", f"{number} row = {number}(tid) - {shift};"]
            row, active = wrapped(tid - shift, number), tid >= shift
        elif mapping == 2:
            lines.append(f"{number} row = {number}(tid ^ 1);")
            row = wrapped(tid ^ 1, number)
        else:
            lines.append(f"{number} row = tid;")
            row = wrapped(tid, number)
        limit = str(rows)
        if r.random() < 0.5:
            limit = f"{number}(size[{len(self.sizes)}])"
            self.sizes.append(rows)
        signed = row.view(np.int64) if bits[1] else row
        inside = signed < rows
        if exit_ in (1, 2):
            lines.append(f"if (row >= {limit}) return;")
            active = active & inside
        elif exit_ == 3:
            lines.append(f"if (row >= {limit} || row == 3) return;")
            active = active & inside & (row != 3)
        elif exit_ == 4:
            lines.append(f"if (row < {limit}) {{")
            active = active & inside
        lines.append("uint s = tid + 3;")
        if self.has_private:
            lines += ["uint own[8];", "for (uint k = 0; k < 8; k++) own[k] = k;"]
        if self.has_threadgroup:
            lines += [
                f"threadgroup uint shared[{8 * self.group}];",
                "for (uint k = 0; k < 8; k++) shared[lid * 8 + k] = k;",
            ]
        pitch = str(self.pitch)
        if r.random() < 0.4:
            pitch = f"{number}(size[{len(self.sizes)}])"
            self.sizes.append(self.pitch)
        many = self.rows_of_thread
        if many > 1:
            lines.append(f"for (uint part = 0; part < {many}; part++) {{")
            lines.append(f"{number} base = (row * {many} + part) * {pitch};")
        else:
            lines.append(f"{number} base = row * {pitch};")
        for array in self.arrays:
            lines.append(f"{self.pointer_to(array, array.element)} {array.name}_row = {array.name} + base;")
        lines += [line for loop in loops for line in loop.lines]
        if many > 1:
            lines.append("}")
        lines.append("sums[tid] = s;")
        if exit_ == 4:
            lines.append("}")
        self.dialect, self.text = "metal", "\n".join(lines)

        # What it gives.
        self.total = np.uint32(7)
        kept = np.tile(np.arange(8, dtype=np.uint32), (self.threads, 1))
        threads = Threads(active, {"s": (tid + 3).astype(np.uint32), "own": kept.copy(), "shared": kept.copy()})
        threads.numbers["row"] = row
        with np.errstate(over="ignore"):
            for part in range(many):
                threads.numbers["base"] = wrapped(
                    (row * np.uint64(many) + np.uint64(part)) * np.uint64(self.pitch), number
                )
                for loop in loops:
                    loop.run(threads)
        self.sums = np.where(active, threads.numbers["s"], 7).astype(np.uint32)
        self.options: dict[str, Any] = {"writable_inputs": ["given"]} if self.in_place else {}
        if not self.is_outside and r.random() < 0.4:
            self.options["bounds"] = "off"
        if r.random() < 0.2:
            self.options["specialize"] = False

    def nested(self, k: int, length: int) -> Statement:
        """A loop in another one, which accesses rows, too."""
        times = self.random.choice([1, 2, 3])
        inner = self.loop(f"i{k}", length)
        outer = f"o{k}"
        walk: dict[str, Any] = {
            "name": outer,
            "values": list(range(times)),
            "step": 1,
            "scale": 1,
            "channel": 0,
            "promoted": "uint",
            "is_odd": True,
            "pointers": [],
            "narrow": "",
            "written": None,
            "distance": 0,
            "form": 5,
        }
        statements = [inner, *([self.stored(walk)] if self.random.random() < 0.5 else [])]
        self.random.shuffle(statements)
        lines = [
            f"for (uint {outer} = 0; {outer} < {times}; {outer}++) {{",
            *(f"  {line}" for statement in statements for line in statement.lines),
            "}",
        ]

        def run(t: Threads) -> None:
            for value in range(times):
                t.numbers[outer] = np.full(t.active.shape, value, np.int64)
                for statement in statements:
                    statement.run(t)

        return Statement(lines, run)

    def set_memory(self, length: int) -> None:
        """As wide as what is accessed around rows, or less for arrays that are read or end early."""
        r = self.random
        lowest, highest = min(a.lowest for a in self.arrays), max(a.highest for a in self.arrays)
        pitch = max(highest - lowest, highest) + 1
        if r.random() < 0.3:
            pitch += r.choice([1, 2, 3, 7])
        if self.has_views:
            pitch = -(-pitch // 8) * 8
        elif r.random() < 0.2:
            in_page = 4096 // self.out.bytes
            pitch = -(-pitch // in_page) * in_page
        elif r.random() < 0.3:
            pitch = -(-pitch // 16) * 16
        self.pitch = pitch
        numbers = np.random.default_rng(self.seed)
        for array in self.arrays:
            count = self.rows * self.rows_of_thread * pitch
            if r.random() < 0.2:
                count -= r.randint(0, min(count, 3 * pitch))
            count = max(-(-count // 8) * 8, 8)
            values = numbers.integers(0, 100, count) if array is self.x_ else np.full(count, 7)
            array.memory = values.astype(ELEMENTS[array.element]).view(np.uint8).copy()
        self.before = self.x_.memory.copy()

    # ---- As random_memory_check.py takes them

    def x(self) -> Any:
        return self.before.copy().view(ELEMENTS[self.x_.element])

    def kernel(self) -> Any:
        import kiln

        names = ["given" if self.in_place else "x", *(["size"] if self.sizes else [])]
        kernel = kiln.metal_kernel(
            "rows", names, ["out", "wide", "sums", "total"], self.text, compile_options=self.options
        )
        return lambda **keywords: [*kernel(**keywords), keywords["inputs"][0]]

    def keywords(self, x: Any) -> dict[str, Any]:
        return {
            "inputs": [x, *([np.array(self.sizes, np.int32)] if self.sizes else [])],
            "grid": (self.threads, 1, 1),
            "threadgroup": (self.group, 1, 1),
            "output_shapes": [
                (self.out.memory.size // self.out.bytes,),
                (self.wide.memory.size // self.wide.bytes,),
                (self.threads,),
                (1,),
            ],
            "output_dtypes": [ELEMENTS[self.out.element], ELEMENTS[self.wide.element], "uint32", "uint32"],
            "init_value": 7,
        }

    def expected(self) -> list[Any]:
        total = np.array([self.total], np.uint32)
        arrays: list[Any] = [self.out.memory, self.wide.memory, self.sums, total, self.x_.memory]
        return [array.view(np.int32) for array in arrays]
