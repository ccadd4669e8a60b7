"""What a thread computes does not depend on where it waits: random programs, with and without waiting.

The same text is compiled twice. `WAIT` is nothing or a barrier of the simdgroup, `SAME(v)` is `v` or a shuffle that
gives each lane its own value. Without, a thread runs from beginning to end; with, it is cut at each of these places, and
all that it needs behind them (values of every kind, arrays, results of branches and loops) must have been kept.
"""

import random

import kiln
import numpy as np
import pytest
from sampling import sampled

THREADS = 72  # of threadgroups of 40: two sizes, simdgroups that are not full

NOTHING = """
#define WAIT
#define SAME(v) (v)
"""
WAITING = """
#define WAIT simdgroup_barrier(mem_flags::mem_none)
template <class T> T same(T v) { return simd_shuffle_xor(v, 0); }
#define SAME(v) same(v)
"""
FUNCTIONS = """
struct Record { int count; float weight; ushort small; };

int leaves_early(int x, int k) {
  for (int i = 0; i < 5; ++i) {
    WAIT;
    if ((x >> i & 1) && k > i) return SAME(x + i);
    x = x * 3 + 1;
  }
  return x ^ k;
}
float sums(thread float* values, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += values[i * 5 + count & 7];
    if (i == 2) WAIT;
  }
  return sum;
}
void swap_them(thread int& a, thread int& b) {
  int kept = a;
  WAIT;
  a = b;
  b = kept;
}
uint bits(float v) { return isnan(v) ? 1 : as_type<uint>(v); }
"""
BEGINNING = """
uint t = thread_position_in_grid.x;
int i0 = x[t], i1 = int(t) * 7 - 3, i2 = x[(t + 5) % 72], i3 = 11;
float f0 = x[t] * 0.25f, f1 = t;
bool b0 = x[t] & 1, b1 = t > 7;
short narrow = i2;
ulong wide = t;
half2 halves(1.5h, half(x[t] & 7));
int4 four(i0, i1, i2, i3);
Record record = {i1, 0.5f, 9};
int numbers[8];
float values[8];
for (int k = 0; k < 8; ++k) {
  numbers[k] = k * i0;
  values[k] = k + int(t & 3);
}
"""
END = """
uint hash = 2166136261u;
auto add = [&](uint part) { hash = (hash ^ part) * 16777619u; };
for (int k = 0; k < 8; ++k) {
  add(numbers[k]);
  add(bits(values[k]));
}
for (int k = 0; k < 4; ++k) add(four[k]);
add(i0), add(i1), add(i2), add(i3), add(bits(f0)), add(bits(f1)), add(bits(halves.x)), add(bits(halves.y));
add(narrow), add(wide), add(wide >> 32), add(b0), add(b1), add(record.count), add(bits(record.weight));
add(record.small);
out[t] = hash;
"""


class Writer:
    """Statements that read and change the variables of BEGINNING."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0  # that a break or a continue may leave
        self.counters = []
        self.names = 0

    def integer(self, depth=2):
        r = self.random
        names = ["i0", "i1", "i2", "i3", *self.counters]
        if depth == 0 or r.random() < 0.25:
            return r.choice(
                [*names, *names, str(r.randint(-5, 40)), "int(t)", "record.count", "int(four.y)", "int(b0)"]
            )

        def inner():
            return self.integer(depth - 1)

        return r.choice(
            [
                f"({inner()} {r.choice('+-*^|&')} {inner()})",
                f"({inner()} >> {r.randint(0, 4)})",
                f"(({self.truth(depth - 1)}) ? {inner()} : {inner()})",
                f"numbers[{inner()} & 7]",
                f"four[{inner()} & 3]",
                f"x[uint({inner()}) % 72]",
                f"SAME({inner()})",
                "(narrow + int(wide & 1023))",
            ]
        )

    def number(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice(["f0", "f1", "record.weight", "1.5f", "float(halves.y)"])
        return r.choice(
            [
                f"({self.number(depth - 1)} {r.choice('+-*')} {self.number(depth - 1)})",
                f"float({self.integer(depth - 1)} & 255)",
                f"SAME({self.number(depth - 1)})",
                f"values[{self.integer(depth - 1)} & 7]",
            ]
        )

    def truth(self, depth=1):
        r = self.random
        return r.choice(
            [
                "b0",
                f"SAME({self.integer(depth)} > {self.integer(depth)})",
                f"{self.number(depth)} < {self.number(depth)}",
                f"b1 != (({self.integer(depth)} & 1) == 0)",
                f"({self.integer(depth)} & {r.choice([1, 3, 7])}) {r.choice(['==', '!=', '<'])} {r.randint(0, 3)}",
            ]
        )

    def change(self):
        r = self.random
        return r.choice(
            [
                "WAIT;",
                "WAIT;",
                f"i{r.randint(0, 3)} = {self.integer()};",
                f"i{r.randint(0, 3)} = leaves_early({self.integer()}, {self.integer(1)} & 7);",
                f"f{r.randint(0, 1)} = {self.number()};",
                f"f{r.randint(0, 1)} += sums(values, {self.integer(1)} & 7);",
                f"b{r.randint(0, 1)} = {self.truth()};",
                f"numbers[{self.integer(1)} & 7] = {self.integer()};",
                f"values[{self.integer(1)} & 7] = {self.number()};",
                f"four = SAME(four.wxyz) + int4({self.integer(1)}, i0, 2, 3);",
                f"halves = half2(half({self.integer(1)} & 15), SAME(halves.x));",
                f"narrow = {self.integer()};",
                f"wide = wide * 6364136223846793005ul + {self.integer()};",
                f"{{ Record copy = record; copy.count += {self.integer()}; WAIT; record = copy; }}",
                f"record.weight = {self.number()}; record.small = {self.integer()};",
                "swap_them(i0, i1);",
            ]
        )

    def block(self, depth):
        return " ".join(self.statement(depth) for _ in range(self.random.randint(1, 3)))

    def statement(self, depth):
        r = self.random
        if self.loops and r.random() < 0.15:
            return f"if ({self.truth()}) {{ {self.change()} {r.choice(['break', 'continue'])}; }}"
        if depth == 0 or r.random() < 0.55:
            return self.change()
        kind = r.choice(["if", "if", "loop", "loop", "switch", "return"])
        if kind == "return":
            return f"if ({self.truth()} && i0 % 5 == 2) {{ out[t] = i1; return; }}"
        if kind == "if":
            return f"if ({self.truth()}) {{ {self.block(depth - 1)} }} else {{ {self.block(depth - 1)} }}"
        if kind == "switch":
            outside, self.loops = self.loops, 0
            cases = [f"case {n}: {{ {self.block(depth - 1)} }} {r.choice(['break;', ''])}" for n in range(3)]
            self.loops = outside
            return f"switch ({self.integer()} & 3) {{ {' '.join(cases)} }}"
        self.names += 1
        counter = f"k{self.names}"
        limit = r.choice(["3", "4", f"({self.integer(0)} & 3)"])
        self.loops += 1
        self.counters.append(counter)
        inside = self.block(depth - 1)
        self.counters.pop()
        self.loops -= 1
        return r.choice(
            [
                f"for (int {counter} = 0; {counter} < {limit}; ++{counter}) {{ {inside} }}",
                f"{{ int {counter} = 0; do {{ {inside} }} while (++{counter} < {limit}); }}",
                f"{{ int {counter} = -1; while (++{counter} < {limit}) {{ {inside} }} }}",
                f'_Pragma("unroll") for (int {counter} = 0; {counter} < 3; ++{counter}) {{ {inside} }}',
            ]
        )


@pytest.mark.parametrize("seed", sampled(range(24), every=2))
def test_waiting_changes_nothing(seed):
    writer = Writer(seed)
    program = "\n".join(writer.statement(4) for _ in range(10))
    x = np.random.default_rng(seed).integers(-100, 1000, THREADS, np.int32)
    results = [
        kiln.metal_kernel(
            name="waits",
            input_names=["x"],
            output_names=["out"],
            source=f"{BEGINNING}\n{program}\n{END}",
            header=f"{waiting}\n{FUNCTIONS}",
        )(
            inputs=[x],
            grid=(THREADS, 1, 1),
            threadgroup=(40, 1, 1),
            output_shapes=[(THREADS,)],
            output_dtypes=[np.uint32],
        )[0]
        for waiting in (NOTHING, WAITING)
    ]
    np.testing.assert_array_equal(results[0], results[1], err_msg=program)
    assert len(set(results[0].tolist())) > THREADS // 2
