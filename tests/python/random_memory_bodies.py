"""Random bodies that index arguments, threadgroup and private arrays with arbitrary numbers, and what they give.

Indices are constants beyond both ends, negative, huge, so large that the address wraps, computed from data, counters of
loops; accesses go through arrays of all integer types, vectors, structures, matrices, pointers that are advanced, chosen
and stored, casts to other types at any byte, and atomics. A load outside of its object gives zero, a store outside does
nothing, a compare-exchange finds zero.

Each statement is written twice, in Metal or CUDA and in Python, where objects are byte arrays and a thread is a generator
that yields at barriers: `expected` is computed without Kiln. Threads do not race: between two barriers threadgroup memory
is only read, or each thread accesses its own elements or none at all, or one thread has all of it, or there are only
atomic additions.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

NAMES = ("y", "z", "total")

WORD = (1 << 32) - 1
ADDRESS = (1 << 64) - 1

# Bytes, whether signed, names in Metal and CUDA.
TYPES = {
    "char": (1, True, "char", "signed char"),
    "uchar": (1, False, "uchar", "unsigned char"),
    "short": (2, True, "short", "short"),
    "ushort": (2, False, "ushort", "unsigned short"),
    "int": (4, True, "int", "int"),
    "uint": (4, False, "uint", "unsigned"),
    "long": (8, True, "long", "long long"),
}
# struct Record: name, offset, type, count
MEMBERS = [("a", 0, "int", 1), ("b", 4, "short", 3), ("c", 12, "int", 2), ("d", 20, "uchar", 4)]
RECORD_BYTES = 24


class Variable:
    """An array of the body's: `shape` of elements, of one type or of records."""

    def __init__(self, name: str, space: str, kind: str, element: str, shape: tuple[int, ...]) -> None:
        self.name, self.space, self.kind, self.element, self.shape = name, space, kind, element, shape
        self.bytes = RECORD_BYTES if kind == "record" else TYPES[element][0]
        for length in shape:
            self.bytes *= length

    @property
    def stride(self) -> int:
        """Bytes of an element of the outermost array."""
        return self.bytes // self.shape[0]


def wrap(value: int) -> int:
    return ((value + (1 << 31)) & WORD) - (1 << 31)


def load(memory: bytearray, offset: int, size: int, signed: bool) -> int:
    offset &= ADDRESS
    if offset > len(memory) - size:
        return 0
    return int.from_bytes(memory[offset : offset + size], "little", signed=signed)


def store(memory: bytearray, offset: int, size: int, value: int) -> None:
    offset &= ADDRESS
    if offset <= len(memory) - size:
        memory[offset : offset + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def exchange(memory: bytearray, offset: int, expected: int, value: int) -> int:
    old = load(memory, offset, 4, True)
    if old == expected:
        store(memory, offset, 4, value)
    return old


class Body:
    """One random body, as text and as a Python program."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = r = random.Random(seed)
        self.dialect = "cuda" if seed % 5 == 4 else "metal"
        self.group = r.choice([24, 32, 40, 64])
        self.threads = self.group * 2 if self.dialect == "cuda" or r.random() < 0.5 else self.group + 32
        self.names = 0
        self.counters: list[tuple[str, str]] = []
        self.pointers: list[tuple[str, str, str]] = []  # name, type, whether in shared memory
        self.ints = ["a", "b", "c"]
        self.c_lines: list[str] = []
        self.py_lines: list[str] = []
        self.indent = 1
        self.mode = "read"  # of threadgroup memory
        self.own: list[Variable] = [self.variable("thread") for _ in range(r.randint(1, 3))]
        has_shared = r.random() < 0.65
        self.shared: list[Variable] = (
            [self.variable("threadgroup") for _ in range(r.randint(1, 3))] if has_shared else []
        )
        self.write()

    # ---- What there is

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def variable(self, space: str) -> Variable:
        r = self.random
        kind = r.choice(["array", "array", "array", "matrix", "record", "vector"])
        element = r.choice(list(TYPES))
        first = r.choice([1, 2, 3, 4, 5, 8, 16]) if space == "thread" else r.choice([8, self.group, 64, 64])
        shape: tuple[int, ...] = (first,)
        if kind == "matrix":
            shape = (min(first, 8), r.choice([2, 3, 4, 8]))
        if kind == "vector":
            kind, element, shape = ("vector", "int", (first, r.choice([2, 4])))
            if self.dialect == "cuda":
                kind = "matrix"
        return Variable(self.name("p" if space == "thread" else "s"), space, kind, element, shape)

    def type(self, element: str) -> str:
        _, _, metal, cuda = TYPES[element]
        return metal if self.dialect == "metal" else cuda

    def declaration(self, variable: Variable) -> str:
        lengths = "".join(f"[{n}]" for n in variable.shape)
        if variable.kind == "record":
            element = "Record"
        elif variable.kind == "vector":
            element, lengths = f"int{variable.shape[1]}", f"[{variable.shape[0]}]"
        else:
            element = self.type(variable.element)
        if variable.space == "thread":
            return f"{element} {variable.name}{lengths};"
        return f"{'threadgroup' if self.dialect == 'metal' else '__shared__'} {element} {variable.name}{lengths};"

    # ---- Numbers: the text, and what Python computes

    def number(self, depth: int = 2) -> tuple[str, str]:
        r = self.random
        if depth == 0 or r.random() < 0.25:
            kind = r.randrange(6)
            if kind <= 2:
                name = r.choice(self.ints)
                return name, name
            if kind == 3:
                value = r.choice([r.randint(-9, 9), r.randint(-9, 9), r.randint(-(1 << 31), (1 << 31) - 1)])
                return (f"({value})" if value > -(1 << 31) else "(-2147483647 - 1)"), f"({value})"
            if kind == 4 and self.counters:
                name, _ = r.choice(self.counters)
                return f"int({name})", f"wrap({name})"
            return "t", "t"
        kind = r.randrange(9)
        one_c, one_py = self.number(depth - 1)
        other_c, other_py = self.number(depth - 1)
        if kind <= 3:
            operator = r.choice("+-*&|^")
            return f"({one_c} {operator} {other_c})", f"wrap({one_py} {operator} {other_py})"
        if kind == 4:
            amount = r.randint(1, 20)
            return f"({one_c} >> {amount})", f"({one_py} >> {amount})"
        if kind == 5:
            condition_c, condition_py = self.condition(depth - 1)
            return f"({condition_c} ? {one_c} : {other_c})", f"({one_py} if {condition_py} else {other_py})"
        return self.loaded()

    def condition(self, depth: int = 1) -> tuple[str, str]:
        r = self.random
        operator = r.choice(["<", "<=", "==", "!=", ">"])
        one_c, one_py = self.number(depth)
        other_c, other_py = self.number(depth)
        if r.random() < 0.4:
            mask, value = r.choice([1, 3, 7]), r.randint(0, 3)
            return f"(({one_c} & {mask}) {operator} {value})", f"(({one_py} & {mask}) {operator} {value})"
        return f"({one_c} {operator} {other_c})", f"({one_py} {operator} {other_py})"

    def long(self, text: str) -> str:
        return f"long({text})" if self.dialect == "metal" else f"((long long)({text}))"

    def index(self, length: int) -> tuple[str, str]:
        """Any number, often within 0 to length."""
        r = self.random
        kind = r.randrange(15)
        if kind <= 1:
            value = r.randrange(length)
            return str(value), str(value)
        if kind == 2:
            value = r.choice([-1, -2, length, length + 1, -length, r.randint(-100, 200), 1 << 30, -(1 << 30)])
            return f"({value})", f"({value})"
        if kind in (3, 4) and self.counters:
            name, kind_of = r.choice(self.counters)
            if kind_of == "uint" or r.random() < 0.5:
                return name, name
            value = r.randint(-4, 4)
            return f"({name} + ({value}))", f"({name} + ({value}))"
        if kind == 5:
            return "t", "t"
        number_c, number_py = self.number(1)
        if kind in (6, 7, 8):
            return f"({number_c} & {length - 1})", f"({number_py} & {length - 1})"
        if kind == 9:
            return f"(({number_c} & 15) - 4)", f"(({number_py} & 15) - 4)"
        if kind == 10:
            unsigned = "uint" if self.dialect == "metal" else "(unsigned)"
            return f"{unsigned}({number_c})", f"({number_py} & WORD)"
        if kind == 11:
            shift = r.choice([4, 12, 28])
            return f"({self.long(number_c)} << {shift})", f"({number_py} << {shift})"
        if kind == 12:
            # An address that wraps: 2^62 elements of 4 bytes are none.
            power, value = r.choice([60, 61, 62, 63]), r.randrange(length)
            text = f"({self.long('1')} << {power})"
            return f"({text} + {value})", f"((1 << {power}) + {value})"
        if kind == 13:
            return f"(short)({number_c})", f"((({number_py}) + 32768 & 65535) - 32768)"
        return number_c, number_py

    def outside(self, length: int) -> tuple[str, str]:
        """A number that is no index of so many elements, whatever their size."""
        r = self.random
        number_c, number_py = self.number(1)
        kind = r.randrange(5)
        if kind == 0:
            value = r.choice([length, length + r.randint(0, 40), -1, -r.randint(1, 40)])
            return f"({value})", f"({value})"
        if kind == 1:
            return f"({length} + ({number_c} & 0xffff))", f"({length} + ({number_py} & 0xffff))"
        if kind == 2:
            return f"(-1 - ({number_c} & 0xfff))", f"(-1 - ({number_py} & 0xfff))"
        if kind == 3:
            return f"({self.long(f'{number_c} | 1')} << 20)", f"(({number_py} | 1) << 20)"
        unsigned = "uint" if self.dialect == "metal" else "(unsigned)"
        return f"{unsigned}(-1 - ({number_c} & 7))", f"(-1 - ({number_py} & 7) & WORD)"

    # ---- Accesses: text, Python's memory, offset, type

    def usable(self) -> list[Variable]:
        return self.own + (self.shared if self.mode in ("read", "single") else [])

    def element(self, variable: Variable, first: tuple[str, str] | None = None) -> tuple[str, str, str, str]:
        r = self.random
        first_c, first_py = first or self.index(variable.shape[0])
        text, memory = f"{variable.name}[{first_c}]", f"{variable.name}"
        offset = f"({first_py}) * {variable.stride}"
        if variable.kind == "record":
            name, begin, element, count = r.choice(MEMBERS)
            text, offset = f"{text}.{name}", f"{offset} + {begin}"
            if count > 1:
                # Of a whole variable that threads share an index within a member must not lead to another's element.
                if first is None:
                    second_c, second_py = self.index(count)
                else:
                    second_c = second_py = str(r.randrange(count))
                text, offset = f"{text}[{second_c}]", f"{offset} + ({second_py}) * {TYPES[element][0]}"
            return text, memory, offset, element
        if len(variable.shape) == 2:
            if first is None:
                second_c, second_py = self.index(variable.shape[1])
            else:
                second_c = second_py = str(r.randrange(variable.shape[1]))
            text, offset = f"{text}[{second_c}]", f"{offset} + ({second_py}) * {TYPES[variable.element][0]}"
        return text, memory, offset, variable.element

    def cast(self, variable: Variable) -> tuple[str, str, str, str]:
        """As another type, from any byte on."""
        r = self.random
        element = r.choice([name for name in TYPES])
        index_c, index_py = self.index(variable.bytes)
        space = f"{variable.space} " if self.dialect == "metal" else ""
        byte, type_name = self.type("uchar"), self.type(element)
        if r.random() < 0.5:
            text = f"(({space}{type_name}*){variable.name})[{index_c}]"
            return text, variable.name, f"({index_py}) * {TYPES[element][0]}", element
        text = f"(*({space}{type_name}*)(({space}{byte}*){variable.name} + {index_c}))"
        return text, variable.name, f"({index_py})", element

    def place(self) -> tuple[str, str, str, str]:
        """Somewhere that this thread may read and write."""
        r = self.random
        usable = [pointer for pointer in self.pointers if pointer[2] == "own" or self.mode in ("read", "single")]
        if usable and r.random() < 0.25:
            name, element, _ = r.choice(usable)
            index_c, index_py = self.index(4)
            return f"{name}[{index_c}]", f"{name}[0]", f"{name}[1] + ({index_py}) * {TYPES[element][0]}", element
        if self.mode == "own" and self.shared and r.random() < 0.5:
            variable = r.choice(self.shared)
            return self.element(variable, self.mine(variable))
        variable = r.choice(self.usable())
        return self.cast(variable) if r.random() < 0.2 else self.element(variable)

    def mine(self, variable: Variable) -> tuple[str, str]:
        """The thread's own element where it has one, or none."""
        length = variable.shape[0]
        outside_c, outside_py = self.outside(length)
        condition_c, condition_py = self.condition(1)
        if length < self.group:
            condition_c, condition_py = f"(t < {length} && {condition_c})", f"(t < {length} and {condition_py})"
        return (
            f"({condition_c} ? {self.long('t')} : {self.long(outside_c)})",
            f"(t if {condition_py} else {outside_py})",
        )

    def loaded(self) -> tuple[str, str]:
        r = self.random
        if r.random() < 0.2:
            index_c, index_py = self.index(64)
            return f"x[{index_c}]", f"load(x, ({index_py}) * 4, 4, True)"
        if self.mode == "atomic":
            text, memory, offset, element = self.element(r.choice(self.own))
        else:
            text, memory, offset, element = self.place()
        size, signed, *_ = TYPES[element]
        return f"int({text})", f"wrap(load({memory}, {offset}, {size}, {signed}))"

    # ---- Statements

    def emit(self, c: str, py: str) -> None:
        self.c_lines += [c]
        self.py_lines += [" " * self.indent + line for line in py.split("\n")]

    def block(self, depth: int, most: int = 2) -> None:
        count = self.random.randint(1, most)
        self.indent += 1
        pointers, counters = len(self.pointers), len(self.counters)
        for _ in range(count):
            self.statement(depth)
        del self.pointers[pointers:], self.counters[counters:]
        self.indent -= 1

    def assign(self) -> None:
        r = self.random
        name = r.choice(self.ints)
        value_c, value_py = self.number()
        operator = r.choice(["=", "+", "^"])
        if operator == "=":
            self.emit(f"{name} = {value_c};", f"{name} = {value_py}")
        else:
            self.emit(f"{name} {operator}= {value_c};", f"{name} = wrap({name} {operator} {value_py})")

    def put(self) -> None:
        if self.mode == "read" or self.mode == "atomic":
            # Threadgroup memory is not written.
            variable = self.random.choice(self.own)
            text, memory, offset, element = (
                self.cast(variable) if self.random.random() < 0.2 else self.element(variable)
            )
        else:
            text, memory, offset, element = self.place()
        value_c, value_py = self.number(1)
        size = TYPES[element][0]
        self.emit(f"{text} = {value_c};", f"store({memory}, {offset}, {size}, {value_py})")

    def output(self) -> None:
        """The thread's own element of an output, or none."""
        outside_c, outside_py = self.outside(self.threads)
        condition_c, condition_py = self.condition(1)
        value_c, value_py = self.number(1)
        self.emit(
            f"y[{condition_c} ? {self.long('i')} : {self.long(outside_c)}] = {value_c};",
            f"store(y, (i if {condition_py} else {outside_py}) * 4, 4, {value_py})",
        )

    def add(self) -> None:
        """An atomic addition anywhere."""
        words = [v for v in self.shared if v.kind in ("array", "matrix") and v.element in ("int", "uint")]
        value_c, value_py = self.number(1)
        if self.mode == "atomic" and words and self.random.random() < 0.8:
            text, memory, offset, element = self.element(self.random.choice(words))
            space = "threadgroup"
        else:
            index_c, index_py = self.index(16)
            text, memory, offset, element, space = f"total[{index_c}]", "total", f"({index_py}) * 4", "int", "device"
        if self.dialect == "metal":
            c = f"atomic_fetch_add_explicit(({space} atomic_{element}*)&{text}, {value_c}, memory_order_relaxed);"
        else:
            c = f"atomicAdd(&{text}, {value_c});"
        self.emit(c, f"store({memory}, {offset}, 4, load({memory}, {offset}, 4, True) + {value_py})")

    def compare_exchange(self) -> None:
        words = [v for v in self.shared if v.kind == "array" and v.element == "int"]
        name, expected, value = self.random.choice(self.ints), self.number(1), self.number(1)
        if self.mode == "own" and words and self.random.random() < 0.7:
            text, memory, offset, _ = self.element(variable := self.random.choice(words), self.mine(variable))
            space = "threadgroup"
        elif self.dialect == "cuda" or self.random.random() < 0.5:
            condition_c, condition_py = self.condition(1)
            outside_c, outside_py = self.outside(self.threads)
            text = f"y[{condition_c} ? {self.long('i')} : {self.long(outside_c)}]"
            memory, offset, space = "y", f"(i if {condition_py} else {outside_py}) * 4", "device"
        else:
            return self.assign()
        old = self.name("old")
        if self.dialect == "metal":
            c = (
                f"{{ int {old} = {expected[0]}; if (atomic_compare_exchange_weak_explicit(({space} atomic_int*)&{text}, "
                f"&{old}, {value[0]}, memory_order_relaxed, memory_order_relaxed)) {old} += 5; {name} ^= {old}; }}"
            )
        else:
            wanted = self.name("wanted")
            c = (
                f"{{ int {wanted} = {expected[0]}, {old} = atomicCAS(&{text}, {wanted}, {value[0]}); "
                f"if ({old} == {wanted}) {old} += 5; {name} ^= {old}; }}"
            )
        self.emit(
            c,
            f"wanted = {expected[1]}\nold = exchange({memory}, {offset}, wanted, {value[1]})\n"
            f"{name} = wrap({name} ^ (old + 5 if old == wanted else old))",
        )

    def point(self) -> None:
        """A pointer into one variable, or into one of two; it may be advanced."""
        r = self.random
        flat = [v for v in self.usable() if v.kind == "array"]
        if not flat:
            return self.assign()
        one = r.choice(flat)
        same = [v for v in flat if v.element == one.element and v.space == one.space]
        other = r.choice(same)
        name, size = self.name("q"), TYPES[one.element][0]
        one_index, other_index = self.index(one.shape[0]), self.index(other.shape[0])
        space = f"{one.space} " if self.dialect == "metal" else ""
        one_c, one_py = f"{one.name} + {one_index[0]}", f"({one.name}, ({one_index[1]}) * {size})"
        other_c, other_py = f"{other.name} + {other_index[0]}", f"({other.name}, ({other_index[1]}) * {size})"
        condition_c, condition_py = self.condition(1)
        if r.random() < 0.5:
            self.emit(f"{space}{self.type(one.element)}* {name} = {one_c};", f"{name} = {one_py}")
        else:
            self.emit(
                f"{space}{self.type(one.element)}* {name} = {condition_c} ? {one_c} : {other_c};",
                f"{name} = {one_py} if {condition_py} else {other_py}",
            )
        self.pointers.append((name, one.element, "own" if one.space == "thread" else "shared"))

    def advance(self) -> None:
        if not self.pointers:
            return self.assign()
        name, element, _ = self.random.choice(self.pointers)
        index_c, index_py = self.index(4)
        self.emit(f"{name} += {index_c};", f"{name} = ({name}[0], {name}[1] + ({index_py}) * {TYPES[element][0]})")

    def copy_record(self) -> None:
        """A structure as a whole."""
        records = [v for v in self.own if v.kind == "record"]
        if not records:
            return self.assign()
        one, other = self.random.choice(records), self.random.choice(records)
        one_index, other_index = self.small_index(one.shape[0]), self.small_index(other.shape[0])
        self.emit(
            f"{{ Record r = {one.name}[{one_index[0]}]; r.a += 3; {other.name}[{other_index[0]}] = r; }}",
            f"first = ({one_index[1]}) * {RECORD_BYTES}\n"
            f"copied = bytearray(load({one.name}, first + k, 1, False) for k in range({RECORD_BYTES}))\n"
            f"store(copied, 0, 4, load(copied, 0, 4, True) + 3)\n"
            f"first = ({other_index[1]}) * {RECORD_BYTES}\n"
            f"for k in range({RECORD_BYTES}): store({other.name}, first + k, 1, copied[k])",
        )

    def small_index(self, length: int) -> tuple[str, str]:
        """Its address does not wrap, so that a structure is all inside or all outside."""
        number_c, number_py = self.number(1)
        if self.random.random() < 0.5:
            return f"({number_c} & {length - 1})", f"({number_py} & {length - 1})"
        return f"({number_c})", f"({number_py})"

    def loop(self, depth: int) -> None:
        r = self.random
        kind, k = r.randrange(5), self.name("k")
        first, count = r.randint(-4, 4), r.randint(0, 9)
        if kind == 0:
            self.emit(
                f"for (int {k} = {first}; {k} < {first + count}; ++{k}) {{",
                f"for {k} in range({first}, {first + count}):",
            )
        elif kind == 1:
            number_c, number_py = self.number(1)
            self.emit(
                f"for (int {k} = {first}, {k}n = {number_c} & 7; {k} < {k}n; ++{k}) {{",
                f"for {k} in range({first}, {number_py} & 7):",
            )
        elif kind == 2:
            self.emit(
                f"for (int {k} = {first + count}; {k} >= {first}; --{k}) {{",
                f"for {k} in range({first + count}, {first - 1}, -1):",
            )
        elif kind == 3:
            begin = r.choice([1, 4, 16, 100])
            unsigned = self.type("uint")
            self.emit(
                f"for ({unsigned} {k} = {begin}; {k} > 0; {k} >>= 1) {{",
                f"for {k} in [{begin} >> n for n in range(32) if {begin} >> n]:",
            )
        else:
            step = r.choice([2, 3, 7])
            self.emit(
                f"for (int {k} = t & 3; {k} < {count * 2}; {k} += {step}) {{",
                f"for {k} in range(t & 3, {count * 2}, {step}):",
            )
        self.counters.append((k, "uint" if kind == 3 else "int"))
        self.block(depth - 1)
        self.counters.pop()
        self.emit("}", "pass")

    def branch(self, depth: int) -> None:
        condition_c, condition_py = self.condition()
        self.emit(f"if ({condition_c}) {{", f"if {condition_py}:")
        self.block(depth - 1)
        if self.random.random() < 0.4:
            self.c_lines.append("} else {")
            self.py_lines.append(" " * self.indent + "else:")
            self.block(depth - 1)
        self.emit("}", "pass")

    def statement(self, depth: int) -> None:
        r = self.random
        if depth and r.random() < 0.3:
            return self.loop(depth) if r.random() < 0.6 else self.branch(depth)
        r.choice(
            [
                *[self.put] * 6,
                *[self.assign] * 5,
                self.output,
                self.add,
                self.point,
                self.advance,
                self.copy_record,
                self.compare_exchange,
            ]
        )()

    def barrier(self) -> None:
        if self.shared:
            c = "threadgroup_barrier(mem_flags::mem_threadgroup);" if self.dialect == "metal" else "__syncthreads();"
            self.emit(c, "yield")

    def write(self) -> None:
        r = self.random
        for variable in self.own:
            self.emit(self.declaration(variable), f"{variable.name} = bytearray({variable.bytes})")
            self.fill(variable)
        for variable in self.shared:
            self.c_lines.append(self.declaration(variable))
            self.py_lines.append(f" {variable.name} = shared['{variable.name}']")
        self.mode = "single"
        for variable in self.shared:
            self.emit("if (t == 0) {", "if t == 0:")
            self.indent += 1
            self.fill(variable)
            self.indent -= 1
            self.emit("}", "pass")
        self.barrier()
        phases = r.choices(["read", "own", "single", "atomic"], k=r.randint(1, 2)) if self.shared else ["read"]
        for self.mode in phases:
            if self.mode == "single":
                which = r.randrange(self.group // 2)
                self.emit(f"if (t == {which}) {{", f"if t == {which}:")
                self.block(2, 4)
                self.emit("}", "pass")
            else:
                # Pointers of one phase are none of the next.
                self.c_lines.append("{")
                pointers = len(self.pointers)
                for _ in range(r.randint(2, 4)):
                    self.statement(2)
                del self.pointers[pointers:]
                self.c_lines.append("}")
            self.barrier()
        self.mode = "read"
        for variable in self.own + self.shared:
            self.add_up(variable)
        self.emit("z[i] = a ^ b; z[i + THREADS] = c;".replace("THREADS", str(self.threads)),
                  f"store(z, i * 4, 4, a ^ b)\nstore(z, (i + {self.threads}) * 4, 4, c)")  # fmt: skip

    def each(self, variable: Variable, c: str, py: str) -> None:
        """For each byte of a variable, of those that threads share each thread its part."""
        k = self.name("k")
        first, step = ("t", self.group) if variable in self.shared and self.mode == "read" else ("0", 1)
        space = f"{variable.space} " if self.dialect == "metal" else ""
        byte = f"(({space}{self.type('uchar')}*){variable.name})[{k}]"
        # Unrolled, they would take most of the time.
        self.c_lines.append("#pragma nounroll")
        self.emit(
            f"for (int {k} = {first}; {k} < {variable.bytes}; {k} += {step}) {c.replace('BYTE', byte).replace('K', k)}",
            f"for {k} in range({first}, {variable.bytes}, {step}): {py.replace('BYTE', f'{variable.name}[{k}]').replace('K', k)}",
        )

    def fill(self, variable: Variable) -> None:
        factor = self.random.randint(1, 200)
        self.each(variable, f"BYTE = K * {factor} + 1;", f"BYTE = K * {factor} + 1 & 255")

    def add_up(self, variable: Variable) -> None:
        self.each(variable, "c = c * 31 + BYTE;", "c = wrap(c * 31 + BYTE)")

    # ---- Text, arguments, results

    @property
    def source(self) -> str:
        if self.dialect == "metal":
            beginning = (
                "const int i = thread_position_in_grid.x, t = thread_position_in_threadgroup.x;\n"
                "int a = x[i & 63], b = i, c = t;"
            )
        else:
            beginning = "const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;\nint a = x[i & 63], b = i, c = t;"
        return "\n".join([beginning, *self.c_lines])

    @property
    def header(self) -> str:
        members = " ".join(
            f"{self.type(element)} {name}{f'[{count}]' if count > 1 else ''};" for name, _, element, count in MEMBERS
        )
        return f"struct Record {{ {members} }};\n"

    def x(self) -> np.ndarray:
        return np.random.default_rng(self.seed).integers(-(1 << 31), 1 << 31, 64).astype(np.int32) >> (
            np.arange(64, dtype=np.int32) % 30
        )

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(self.threads,), (2 * self.threads,), (16,)]

    def expected(self) -> list[np.ndarray]:
        """Of `y`, `z` and `total`, computed without Kiln."""
        program = "\n".join(
            [
                "def thread(i, t, x, y, z, total, shared):",
                " a, b, c = load(x, (i & 63) * 4, 4, True), i, t",
                *self.py_lines,
                " yield",
            ]
        )
        names: dict[str, Any] = {"load": load, "store": store, "exchange": exchange, "wrap": wrap, "WORD": WORD}
        exec(program, names)
        x = bytearray(self.x().tobytes())
        y, z, total = (bytearray(4 * shape[0]) for shape in self.shapes)
        for begin in range(0, self.threads, self.group):
            shared = {variable.name: bytearray(variable.bytes) for variable in self.shared}
            running = [
                names["thread"](i, i - begin, x, y, z, total, shared)
                for i in range(begin, min(begin + self.group, self.threads))
            ]
            while running:
                running = [thread for thread in running if next(thread, "ended") != "ended"]
        return [np.frombuffer(bytes(memory), np.int32) for memory in (y, z, total)]

    def keywords(self, x: Any) -> dict[str, Any]:
        """Of a call, for the array `x`."""
        return {
            "inputs": [x],
            "output_shapes": self.shapes,
            "output_dtypes": ["int32", "int32", "int32"],
            "grid": (self.threads, 1, 1),
            "threadgroup": (self.group, 1, 1),
            "init_value": 0,
        }

    def kernel(self, **options: Any) -> Any:
        import kiln

        make = kiln.metal_kernel if self.dialect == "metal" else kiln.cuda_kernel
        return make(f"memory_{self.seed}", ["x"], ["y", "z", "total"], self.source, header=self.header, **options)
