"""Random programs of branches, loops, switches and functions with calls of simdgroup functions and barriers, against a
machine with 32 lanes in lockstep (docs/language.md 2.3).

Bodies of `tests/bodies` show each shape by itself; here the shapes meet in ways that nobody thought of. A program is a
tree of tuples, which is written as Metal and run by `Lanes`.
"""

import random

import kiln
import numpy as np
import pytest
from sampling import sampled

GROUPS, SIZE = 2, 72  # two simdgroups and a quarter
MASK = 0xFFFFFFFF


class Writer:
    """A random program, as a tree and as text."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0
        self.helpers = [self.block(3, in_function=True) for _ in range(2)]
        self.main = self.block(4, top=True)

    def block(self, depth, *, top=False, in_loop=False, in_switch=False, in_function=False):
        count = self.random.randint(2, 4) if depth else self.random.randint(1, 2)
        return [self.statement(depth, top, in_loop, in_switch, in_function) for _ in range(count)]

    def condition(self):
        r = self.random
        kind = r.choice(["bits", "bits", "lane", "any", "all"])
        if kind == "lane":
            return (kind, r.randint(1, 31))
        return (kind, r.randint(0, 5), r.randint(0, 3))

    def statement(self, depth, top, in_loop, in_switch, in_function):
        r = self.random
        inner = {"in_loop": in_loop, "in_switch": in_switch, "in_function": in_function}
        simple = ["sum", "sum", "change", "ballot"]
        if in_loop:
            simple += ["break_if", "continue_if"]
        if in_function or top or r.random() < 0.1:
            simple.append("return_if")
        nested = ["if", "if", "for", "for", "while", "do", "switch"]
        if not in_function:
            nested.append("call")
            if top:
                nested += ["uniform_for", "barrier"]
        kind = r.choice(simple if depth == 0 or r.random() < 0.4 else nested)
        if kind in ("sum", "change", "ballot"):
            return (kind, r.randint(1, 99))
        if kind in ("break_if", "continue_if", "return_if"):
            return (kind, self.condition(), r.randint(1, 99))
        if kind == "call":
            return (kind, r.randrange(2))
        if kind == "barrier":
            return (kind,)
        if kind == "if":
            otherwise = self.block(depth - 1, **inner) if r.random() < 0.5 else []
            return (kind, self.condition(), self.block(depth - 1, **inner), otherwise)
        if kind == "switch":
            # `break` would leave the switch: inside, loops are not left.
            cases = [(self.block(depth - 1, in_function=in_function), r.random() < 0.6) for _ in range(3)]
            return (kind, r.randint(0, 5), cases)
        self.names += 1
        inner["in_loop"] = True
        if kind == "uniform_for":
            body = self.block(1, in_function=False)
            return (kind, self.names, r.randint(1, 3), [("barrier",), *body, ("barrier",)])
        return (kind, self.names, r.randint(0, 5), self.block(depth - 1, **inner))

    # ---- As text

    def source(self):
        return "\n".join(
            [
                f"threadgroup uint shared_values[{SIZE}];",
                "uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;",
                "uint v = x[i], acc = 0;",
                "shared_values[t] = 0;",
                *self.lines(self.main, "LEAVE"),
                "LEAVE",
            ]
        )

    def header(self):
        lines = ["#define LEAVE { out[2 * i] = acc; out[2 * i + 1] = v; return; }"]
        for number, block in enumerate(self.helpers):
            lines += [f"void helper{number}(thread uint& v, thread uint& acc, uint lane) {{"]
            lines += [*self.lines(block, "return;"), "acc += simd_sum(lane); }"]
        return "\n".join(lines)

    @staticmethod
    def written(condition):
        if condition[0] == "lane":
            return f"lane < {condition[1]}u"
        plain = f"((v >> {condition[1]}) & 3u) == {condition[2]}u"
        return {"bits": plain, "any": f"simd_any({plain})", "all": f"simd_all({plain})"}[condition[0]]

    def lines(self, block, leave):
        lines = []
        for kind, *parts in block:
            if kind == "sum":
                lines.append(f"acc = acc * 31u + simd_sum(v ^ {parts[0]}u);")
            elif kind == "ballot":
                lines.append(f"acc ^= uint(simd_vote::vote_t(simd_ballot((v & {parts[0]}u) != 0)));")
            elif kind == "change":
                lines.append(f"v = v * 5u + {parts[0]}u + (v >> 7);")
            elif kind == "barrier":
                lines.append("shared_values[t] = acc; threadgroup_barrier(mem_flags::mem_threadgroup);")
                lines.append(f"acc += shared_values[(t + 1) % {SIZE}];")
                lines.append("threadgroup_barrier(mem_flags::mem_threadgroup);")
            elif kind.endswith("_if"):
                action = {"break_if": "break;", "continue_if": "continue;", "return_if": leave}[kind]
                lines.append(f"if ({self.written(parts[0])}) {{ acc += simd_sum({parts[1]}u); {action} }}")
            elif kind == "call":
                lines.append(f"helper{parts[0]}(v, acc, lane);")
            elif kind == "if":
                lines += [f"if ({self.written(parts[0])}) {{", *self.lines(parts[1], leave), "}"]
                if parts[2]:
                    lines += ["else {", *self.lines(parts[2], leave), "}"]
            elif kind == "switch":
                lines.append(f"switch ((v >> {parts[0]}) & 3u) {{")
                for number, (body, breaks) in enumerate(parts[1]):
                    lines += [f"case {number}: {{", *self.lines(body, leave), "}"]
                    if breaks:
                        lines.append("break;")
                lines.append("}")
            elif kind == "uniform_for":
                name, trips, body = parts
                lines += [f"for (uint j{name} = 0; j{name} < {trips}u; ++j{name}) {{", *self.lines(body, leave), "}"]
            else:
                name, shift, body = parts
                inside = self.lines(body, leave)
                lines.append(f"uint n{name} = (v >> {shift}) % 4u;")
                if kind == "for":
                    lines += [f"for (uint j{name} = 0; j{name} < n{name}; ++j{name}) {{", *inside, "}"]
                elif kind == "while":
                    lines += [f"while (simd_sum(n{name}) > 2u && n{name}-- > 0u) {{", *inside, "}"]
                else:
                    lines += ["do {", *inside, f"}} while (n{name}-- > 1u && n{name} < 9u);"]
        return lines


class Returned(Exception):
    pass


class Lanes:
    """The threads of one threadgroup. Masks say which of them are somewhere; lanes are arrays of 32."""

    def __init__(self, writer, x):
        self.writer = writer
        places = -(-SIZE // 32) * 32
        self.v = np.zeros(places, np.uint32)
        self.v[:SIZE] = x
        self.acc = np.zeros(places, np.uint32)
        self.shared = np.zeros(places, np.uint32)
        self.lane = np.arange(places) % 32
        self.live = np.arange(places) < SIZE

    def run(self):
        # What leaves main no longer takes part.
        self.block(self.writer.main, self.live.copy(), self.frame())
        return np.stack([self.acc[:SIZE], self.v[:SIZE]], axis=1)

    def frame(self):
        """Those that have left the function, the innermost loop, its iteration."""
        none = np.zeros_like(self.live)
        return {"return": none.copy(), "break": none.copy(), "continue": none.copy()}

    def over_simdgroups(self, values, here, function):
        rows = np.where(here, values, 0).astype(np.uint32).reshape(-1, 32)
        return np.repeat(function(rows), 32).astype(np.uint32)

    def sum(self, values, here):
        return self.over_simdgroups(values, here, lambda rows: rows.sum(axis=1, dtype=np.uint32))

    def holds(self, condition, here):
        if condition[0] == "lane":
            return here & (self.lane < condition[1])
        plain = (self.v >> np.uint32(condition[1])) & 3 == condition[2]
        if condition[0] == "bits":
            return here & plain
        counted = plain if condition[0] == "any" else ~plain
        some = self.over_simdgroups(counted, here, lambda rows: rows.any(axis=1)) != 0
        return here & (some if condition[0] == "any" else ~some)

    def block(self, block, here, frame):
        """Runs it for the threads in `here`; those that reach its end."""
        for kind, *parts in block:
            here = self.statement(kind, parts, here, frame)
        return here

    def statement(self, kind, parts, here, frame):
        acc, v = self.acc, self.v
        if kind == "sum":
            acc[here] = (acc * np.uint32(31) + self.sum(v ^ np.uint32(parts[0]), here))[here]
        elif kind == "ballot":
            bits = ((v & np.uint32(parts[0])) != 0).astype(np.uint32) << self.lane.astype(np.uint32)
            acc[here] ^= self.sum(bits, here)[here]
        elif kind == "change":
            v[here] = (v * np.uint32(5) + np.uint32(parts[0]) + (v >> np.uint32(7)))[here]
        elif kind == "barrier":
            # Memory keeps what those that have left wrote last.
            self.shared = np.where(here, acc, self.shared)
            acc[here] += self.shared[(np.arange(len(acc)) + 1) % SIZE][here]
        elif kind.endswith("_if"):
            leaving = self.holds(parts[0], here)
            acc[leaving] += self.sum(np.full_like(v, parts[1]), leaving)[leaving]
            frame[kind.removesuffix("_if")] |= leaving
            return here & ~leaving
        elif kind == "call":
            stayed = self.block(self.writer.helpers[parts[0]], here, self.frame())
            acc[stayed] += self.sum(self.lane.astype(np.uint32), stayed)[stayed]
        elif kind == "if":
            chosen = self.holds(parts[0], here)
            return self.block(parts[1], chosen, frame) | self.block(parts[2], here & ~chosen, frame)
        elif kind == "switch":
            value = (v >> np.uint32(parts[0])) & 3
            done = here & (value == 3)
            falling = np.zeros_like(here)
            for number, (body, breaks) in enumerate(parts[1]):
                falling = self.block(body, falling | (here & (value == number)), frame)
                if breaks:
                    done, falling = done | falling, np.zeros_like(here)
            return done | falling
        else:
            return self.loop(kind, parts, here, frame)
        return here

    def loop(self, kind, parts, here, frame):
        inner = self.frame()
        inner["return"] = frame["return"]
        left = (self.v >> np.uint32(parts[1])) % np.uint32(4)
        if kind == "uniform_for":
            left = np.full_like(self.v, parts[1])
        done = np.zeros_like(here)
        while here.any():
            staying = here
            if kind in ("for", "uniform_for"):
                staying = here & (left > 0)
            elif kind == "while":
                staying = here & (self.sum(left, here) > 2)
                tested, staying = staying, staying & (left > 0)
                left[tested & ~staying] -= np.uint32(1)
            if kind != "do":
                left[staying] -= np.uint32(1)
                done |= here & ~staying
            inner["continue"][:] = False
            here = self.block(parts[2], staying, inner) | inner["continue"]
            if kind == "do":
                before = left.copy()
                left[here] -= np.uint32(1)
                again = here & (before > 1)
                again &= left < 9
                done |= here & ~again
                here = again
        return done | inner["break"]


@pytest.mark.parametrize("seed", sampled(range(40), every=3))
def test_random_program(seed):
    writer = Writer(seed)
    kernel = kiln.metal_kernel(
        name=f"random_{seed}", input_names=["x"], output_names=["out"], source=writer.source(), header=writer.header()
    )
    x = np.random.default_rng(seed).integers(0, 2**32, GROUPS * SIZE, np.uint32)
    out = kernel(
        inputs=[x],
        output_shapes=[(GROUPS * SIZE, 2)],
        output_dtypes=["uint32"],
        grid=(GROUPS * SIZE, 1, 1),
        threadgroup=(SIZE, 1, 1),
    )[0]
    with np.errstate(over="ignore"):
        expected = np.concatenate([Lanes(writer, part).run() for part in x.reshape(GROUPS, SIZE)])
    np.testing.assert_array_equal(out, expected)
