"""Accesses that are vectors only if the compiler sees how they lie, and operations that processors have for vectors in
part. Each check compares with NumPy, on the engine of its process; `test_memory_shapes.py` runs them on all."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import kiln
import numpy as np
from guarded_pages import GuardedPages

METAL = {"uint8": "uchar", "float16": "half", "float32": "float", "uint64": "ulong"}

CHECKS: dict[str, Callable[[], None]] = {}


def check(cases: Mapping[str, Iterable[Any]] | None = None) -> Any:
    """Registers a check, with each combination of its parameters."""

    def register(function: Any) -> Any:
        for values in itertools.product(*(cases or {}).values()):
            name = "-".join([function.__name__, *map(str, values)])
            CHECKS[name] = functools.partial(function, *values)
        return function

    return register


def run(
    body: str,
    inputs: Any,
    outputs: Any,
    threads: Any,
    threadgroup: Any = (64, 1, 1),
    init_value: Any = None,
    bounds: str = "on",
) -> Any:
    kernel = kiln.metal_kernel("checked", list(inputs), list(outputs), body, compile_options={"bounds": bounds})
    return kernel(
        inputs=list(inputs.values()),
        output_shapes=[(size,) if isinstance(size, int) else size for size, _ in outputs.values()],
        output_dtypes=[dtype for _, dtype in outputs.values()],
        grid=threads if isinstance(threads, tuple) else (threads, 1, 1),
        threadgroup=threadgroup,
        init_value=init_value,
    )


# ---- Members of structures


def members_of(step: int) -> dict[str, Any]:
    return {"all": range(step), "last": [step - 1], "all but the first": range(1, step)}


@check({"dtype": METAL, "step": [2, 3, 4, 8, 16]})
def members(dtype: str, step: int) -> None:
    name = METAL[dtype]
    for threads, (which, some) in itertools.product([1000, 37], members_of(step).items()):
        x = np.random.default_rng(step).integers(0, 100, step * threads).astype(dtype)
        reads = "".join(f" s = s * 3 + x[{step} * i + {m}];" for m in some)
        writes = "".join(f" z[{step} * i + {m}] = {name}(i + {m});" for m in some)
        kept = "".join(f" w[{step} * i + {m}] = x[{step} * i + {m}];" for m in some)
        body = f"uint i = thread_position_in_grid.x; {name} s = 0;{reads} y[i] = s;{writes} if (x[i] > 50) {{{kept}}}"
        # The last threads read and write beyond the arrays, which gives zero and does nothing.
        for size in [step * threads, step * threads - step - 1]:
            outputs = {"y": (threads, dtype), "z": (size, dtype), "w": (size, dtype)}
            y, z, w = run(body, {"x": x[:size]}, outputs, threads, init_value=7)
            seen = np.concatenate([x[:size], np.zeros(step * threads - size, dtype)])
            sums = np.zeros(threads, dtype)
            written = np.full(step * threads, 7, dtype)
            copied = written.copy()
            chosen = seen[:threads] > 50
            for m in some:
                sums = (sums * np.array(3, dtype) + seen[m::step]).astype(dtype)
                written[m::step] = (np.arange(threads) + m).astype(dtype)
                copied[m::step] = np.where(chosen, seen[m::step], copied[m::step])
            np.testing.assert_array_equal(y, sums, err_msg=f"{which} of {threads}")
            np.testing.assert_array_equal(z, written[:size], err_msg=f"{which} of {threads}")
            np.testing.assert_array_equal(w, copied[:size], err_msg=f"{which} of {threads}")


@check({"dtype": METAL, "step": [2, 3, 4, 8, 16, 20]})
def members_without_bounds_checks(dtype: str, step: int) -> None:
    """The array begins with the first thread's first member or ends with the last thread's last one, beside a page that
    cannot be read."""
    name, middle = METAL[dtype], step // 2
    for threads, some in itertools.product([256, 37], [[0, 1], [0, step - 1], [0, middle], [0, middle - 1, middle]]):
        some = sorted({m for m in some if m >= 0})
        size = step * (threads - 1) + some[-1] + 1
        values = np.random.default_rng(step).integers(0, 100, size).astype(dtype)
        padded = np.concatenate([values, np.zeros(step - 1 - some[-1], dtype)])
        sums = np.zeros(threads, dtype)
        for m in some:
            sums = (sums * np.array(3, dtype) + padded[m::step]).astype(dtype)
        reads = "".join(f" s = s * 3 + x[{step} * i + {m}];" for m in some)
        body = f"uint i = thread_position_in_grid.x; {name} s = 0; if (i % 97 < n[0]) {{{reads}}} y[i] = s;"
        pages = GuardedPages(values.nbytes)
        for at_end, active in itertools.product([False, True], [97, 90]):
            inputs = {"x": pages.copy(values, at_end), "n": np.array([active], np.uint32)}
            (y,) = run(body, inputs, {"y": (threads, dtype)}, threads, bounds="off")
            expected = np.where(np.arange(threads) % 97 < active, sums, np.array(0, dtype))
            np.testing.assert_array_equal(y, expected, err_msg=f"{some} of {threads}, {active} active")


@check({"dtype": ["uint8", "float32", "uint64"], "step": [2, 3, 4, 8], "bounds": ["on", "off"]})
def members_by_unsigned_indices(dtype: str, step: int, bounds: str) -> None:
    """Members that lie together unless a `uint` wraps between them; with guards also where it does."""
    name, threads = METAL[dtype], 256
    size = step * threads
    x = np.random.default_rng(step).integers(0, 100, size).astype(dtype)
    firsts = [0, step * 40, 7, 1] + ([step * 40 + 1, step * 255 + step - 1, size, 2**31] if bounds == "on" else [])
    for first, members in itertools.product(firsts, [range(step), range(step - 1, -1, -1), [0, step - 1]]):
        # The threads below `start` would read before the array.
        start = -(-first // step) if bounds == "off" else 0
        i = np.arange(threads)
        sums, copied = np.zeros(threads, dtype), np.full(size, 7, dtype)
        for m in members:
            at = (step * i - first + m) % 2**32
            inside = (at < size) & (i >= start)
            read = np.where(inside, x[np.where(inside, at, 0)], np.array(0, dtype))
            sums = (sums * np.array(3, dtype) + read).astype(dtype)
            copied[at[inside]] = (read + np.array(m, dtype)).astype(dtype)[inside]
        text = f"{step} * i - n[0]"
        reads = "".join(f" {name} v{m} = x[{text} + {m}u]; s = s * 3 + v{m};" for m in members)
        writes = "".join(f" z[{text} + {m}u] = v{m} + {m};" for m in members)
        body = f"uint i = thread_position_in_grid.x; {name} s = 0; if (i >= n[1]) {{{reads}{writes}}} y[i] = s;"
        y, z = run(
            body,
            {"x": x, "n": np.array([first, start], np.uint32)},
            {"y": (threads, dtype), "z": (size, dtype)},
            threads,
            init_value=7,
            bounds=bounds,
        )
        np.testing.assert_array_equal(y, sums, err_msg=f"{first}, {members}")
        np.testing.assert_array_equal(z, copied, err_msg=f"{first}, {members}")


# An index of thread i and member m, and where it wraps: in some lanes, in all of them, or in some members alone.
WRAPPING: dict[str, tuple[str, Callable[[Any, int, int], Any], int]] = {
    "and": ("uint((3 * i + n[0] + {m}u) & 1023u)", lambda i, n, m: (3 * i + n + m) % 1024, 1024),
    "remainder": ("(3 * i + n[0] + {m}u) % 1024u", lambda i, n, m: (3 * i + n + m) % 1024, 1024),
    "uchar": ("uint(uchar(3 * i + n[0] + {m}u))", lambda i, n, m: (3 * i + n + m) % 256, 256),
    "ushort": ("uint(ushort(3 * i + n[0] + {m}u))", lambda i, n, m: (3 * i + n + m) % 65536, 65536),
    "uniform": ("3 * i + ((n[0] + {m}u) & 15u)", lambda i, n, m: 3 * i + (n + m) % 16, 16),
    "uniform and wide": ("ulong(3 * i) + ulong(uchar(n[0] + {m}u))", lambda i, n, m: 3 * i + (n + m) % 256, 256),
    "one of three": (
        "ulong(3 * i) + ulong(uchar(n[0] + {m}u % 2u)) + {m}ul / 2ul * 2ul",
        lambda i, n, m: 3 * i + (n + m % 2) % 256 + m // 2 * 2,
        256,
    ),
}


@check({"index": WRAPPING, "bounds": ["on", "off"]})
def members_that_wrap(index: str, bounds: str) -> None:
    """The array ends, where there are no guards, with the last element that an index can name."""
    text, at, end = WRAPPING[index]
    threads = 64
    for first, members in itertools.product(
        sorted({0, max(0, end - 94), max(0, end - 31), end - 3, end - 1}), [[0, 1, 2], [2, 0, 1], [0, 2]]
    ):
        indices = [at(np.arange(threads), first, m) for m in members]
        # Stores of a simdgroup, whose elements are all different.
        ends = [int(number.max()) + 1 for number in indices]
        for size in {max(ends)} | ({max(ends) - 40, max(ends) + 9} if bounds == "on" else set()):
            values = np.arange(1, size + 1, dtype=np.float32)
            reads = "".join(f" y[{len(members)} * i + {k}] = x[{text.format(m=m)}];" for k, m in enumerate(members))
            writes = "".join(f" z[{text.format(m=m)}] = i + {100 * m}u;" for m in members)
            y, z = run(
                f"uint i = thread_position_in_grid.x;{reads} if (i < 32) {{{writes}}}",
                {"x": GuardedPages(values.nbytes).copy(values, at_end=True), "n": np.array([first], np.uint32)},
                {"y": (threads * len(members), "float32"), "z": (size, "float32")},
                threads,
                init_value=7,
                bounds=bounds,
            )
            seen = np.append(values, np.zeros(max(0, max(ends) - size), np.float32))
            np.testing.assert_array_equal(y, np.stack([seen[number] for number in indices], 1).ravel())
            written = np.full(max(max(ends), size), 7, np.float32)
            for m, number in zip(members, indices, strict=True):
                written[number[:32]] = np.arange(32) + 100 * m
            if len(np.unique(np.concatenate([number[:32] for number in indices]))) == 32 * len(members):
                np.testing.assert_array_equal(z, written[:size])


# Of a thread in column x, the column of a row of w elements; those that are within the row for all x below 2 w come first.
RESAMPLINGS: dict[str, Callable[[Any, int], Any]] = {
    "x / 2": lambda x, w: x // 2,
    "min(x / 2 + 1, w - 1)": lambda x, w: np.minimum(x // 2 + 1, w - 1),
    "min((x + 1) / 2, w - 1)": lambda x, w: np.minimum((x + 1) // 2, w - 1),
    "max((x - 1) / 2, 0)": lambda x, w: np.maximum(x - 1, 0) // 2,
    "(x & 1) ? min(x / 2 + 1, w - 1) : x / 2": lambda x, w: np.where(x % 2 == 1, np.minimum(x // 2 + 1, w - 1), x // 2),
    "x % 2 == 0 ? max(x / 2 - 1, 0) : x / 2": lambda x, w: np.where(x % 2 == 0, np.maximum(x // 2 - 1, 0), x // 2),
    "min(x / 4 + 2, w - 1)": lambda x, w: np.minimum(x // 4 + 2, w - 1),
    "max(w - 1 - x, 0)": lambda x, w: np.maximum(w - 1 - x, 0),
    "w - 1 - x / 2": lambda x, w: w - 1 - x // 2,
    "(x + 5) % w": lambda x, w: (x + 5) % w,
    "(x / 2 + 3) % w": lambda x, w: (x // 2 + 3) % w,
    "(w - 1 - x % w) / 2 * 2": lambda x, w: (w - 1 - x % w) // 2 * 2,
    "(y * w + x) / 2 - y * w": lambda x, w: (np.arange(5)[:, None] * w + x) // 2 - np.arange(5)[:, None] * w,
    "(x + 1) / 2": lambda x, w: (x + 1) // 2,
    "w - x": lambda x, w: w - x,
    "x - 3 >> 1": lambda x, w: (x - 3) >> 1,
}


@check({"dtype": METAL, "kind": RESAMPLINGS, "bounds": ["on", "off"]})
def resampled_rows(dtype: str, kind: str, bounds: str) -> None:
    """Indices that are a pattern but at a border: lanes share elements, or go backwards."""
    name, rows = METAL[dtype], 5
    within = list(RESAMPLINGS)[:12]
    for w, (active, threadgroup) in itertools.product(
        [8, 40, 101], [(9, (16, 4, 1)), (9, (64, 1, 1)), (5, (16, 4, 1)), (6, (24, 2, 1))]
    ):
        if bounds == "off" and kind not in within:
            return
        values = np.random.default_rng(w).integers(0, 100, rows * w).astype(dtype)
        x, y = np.arange(2 * w), np.arange(rows)[:, None]
        at = y * w + RESAMPLINGS[kind](x, w)
        is_in = (at >= 0) & (at < values.size) & ((x + y) % 9 < active)
        expected = np.where(is_in, values[np.where(is_in, at, 0)], np.array(0, dtype))
        body = f"""int x = thread_position_in_grid.x, y = thread_position_in_grid.y, w = n[0]; {name} v = 0;
            if ((x + y) % 9 < n[1]) v = a[y * w + ({kind})]; r[y * 2 * w + x] = v;"""
        pages = GuardedPages(values.nbytes)
        for at_end in [False, True]:
            inputs = {"a": pages.copy(values, at_end), "n": np.array([w, active], np.int32)}
            (r,) = run(body, inputs, {"r": ((rows, 2 * w), dtype)}, (2 * w, rows, 1), threadgroup, bounds=bounds)
            np.testing.assert_array_equal(r, expected, err_msg=f"{w} columns, {active} of 9 active, {threadgroup}")


@check({"dtype": ["uint8", "float32"], "bounds": ["on", "off"]})
def resampled_pixels(dtype: str, bounds: str) -> None:
    """The same of pixels of several members, and of a picture that is enlarged."""
    name, rows, w = METAL[dtype], 6, 37
    values = np.random.default_rng(3).integers(0, 100, rows * w * 4).astype(dtype)
    picture = values.reshape(rows, w, 4).astype(np.float32)
    x, y = np.arange(2 * w), np.arange(2 * rows)[:, None]
    x0, x1 = x // 2, np.where(x % 2 == 1, np.minimum(x // 2 + 1, w - 1), x // 2)
    y0, y1 = y // 2, np.minimum((y + 1) // 2, rows - 1)
    expected = picture[y0, x0] + picture[y0, x1] * 3 + picture[y1, np.minimum((x + 1) // 2, w - 1)] * 5
    body = f"""int x = thread_position_in_grid.x, y = thread_position_in_grid.y, w = n[0], h = n[1];
        const device {name}4* p = (const device {name}4*)a;
        int x0 = x / 2, x1 = (x & 1) ? min(x0 + 1, w - 1) : x0, y0 = y / 2, y1 = min((y + 1) / 2, h - 1);
        float4 c = float4(p[y0 * w + x0]) + float4(p[y0 * w + x1]) * 3 + float4(p[y1 * w + min((x + 1) / 2, w - 1)]) * 5;
        ((device float4*)r)[y * 2 * w + x] = c;"""
    for at_end in [False, True]:
        inputs = {"a": GuardedPages(values.nbytes).copy(values, at_end), "n": np.array([w, rows], np.int32)}
        shape = (2 * rows, 2 * w, 4)
        (r,) = run(body, inputs, {"r": (shape, "float32")}, (2 * w, 2 * rows, 1), (16, 16, 1), bounds=bounds)
        np.testing.assert_array_equal(r, expected)


@check({"dtype": ["uint8", "float32"], "index": ["uchar", "char", "ushort", "short"], "bounds": ["on", "off"]})
def narrow_numbers_of_patterns(dtype: str, index: str, bounds: str) -> None:
    """Patterns that reach beyond the numbers that are to be indices, which wrap."""
    kind = np.dtype({"uchar": "uint8", "char": "int8", "ushort": "uint16", "short": "int16"}[index])
    size, threads = 1 << 8 * kind.itemsize, 64
    steps = [size // 6, size // 4, size // 2 + 3, 1]
    values = np.random.default_rng(size).integers(1, 100, size).astype(dtype)
    for step, least in itertools.product(steps, [0, 5] if "u" in index else [-5, 0, 5]):
        x = np.arange(threads)
        numbers = np.maximum((x // 4 * step).astype(kind), np.array(least, kind)).astype(np.int64)
        if bounds == "off" and numbers.min() < 0:
            continue
        expected = np.where(numbers >= 0, values[numbers % size], np.array(0, dtype))
        body = f"""int x = thread_position_in_grid.x;
            {index} i = max({index}(x / 4 * {step}), {index}(n[0]));
            r[x] = a[i];"""
        for at_end in [False, True]:
            inputs = {"a": GuardedPages(values.nbytes).copy(values, at_end), "n": np.array([least], np.int32)}
            (r,) = run(body, inputs, {"r": (threads, dtype)}, threads, (32, 1, 1), bounds=bounds)
            np.testing.assert_array_equal(r, expected, err_msg=f"steps of {step}, at least {least}")


@check({"dtype": METAL, "bounds": ["on", "off"]})
def mirrored_rows(dtype: str, bounds: str) -> None:
    """Threads that write rows backwards, in swapped pairs and in mirrored groups of eight, all of them or some."""
    name, rows = METAL[dtype], 5
    orders: dict[str, Callable[[Any, int], Any]] = {
        "w - 1 - x": lambda x, w: w - 1 - x,
        "x ^ 1": lambda x, w: x ^ 1,
        "x / 8 * 8 + 7 - x % 8": lambda x, w: x // 8 * 8 + 7 - x % 8,
        "w - x": lambda x, w: w - x,
    }
    for (kind, order), w, (active, threadgroup) in itertools.product(
        list(orders.items())[: 4 if bounds == "on" else 3],
        [8, 40, 104],
        [(9, (16, 4, 1)), (9, (64, 1, 1)), (5, (8, 8, 1))],
    ):
        values = np.random.default_rng(w).integers(0, 100, rows * w).astype(dtype)
        x, y = np.arange(w), np.arange(rows)[:, None]
        at = y * w + order(x, w)
        is_written = ((x + y) % 9 < active) & (at < values.size)
        expected = np.full(values.size, 7, dtype)
        expected[at[is_written]] = (values.reshape(rows, w) + np.array(1, dtype))[is_written]
        body = f"""int x = thread_position_in_grid.x, y = thread_position_in_grid.y, w = n[0];
            if ((x + y) % 9 < n[1]) r[y * w + ({kind})] = a[y * w + x] + {name}(1);"""
        inputs = {"a": values, "n": np.array([w, active], np.int32)}
        (r,) = run(body, inputs, {"r": (values.size, dtype)}, (w, rows, 1), threadgroup, init_value=7, bounds=bounds)
        np.testing.assert_array_equal(r, expected, err_msg=f"{kind}, {w} columns, {active} of 9 active, {threadgroup}")


@check({"dtype": METAL, "columns": [7, 20, 33]})
def rows_of_threads(dtype: str, columns: int) -> None:
    """Each thread walks a row of its own, in a loop whose length is known or is not, and the last one's may end early."""
    name = METAL[dtype]
    for threads, index in itertools.product([200, 37], ["int", "uint"]):
        x = np.random.default_rng(columns).integers(0, 100, threads * columns).astype(dtype)
        body = f"""{index} i = thread_position_in_grid.x; {name} s = 0, t = 0;
            for ({index} k = 0; k < {columns}; ++k) s = s * 3 + x[i * {columns} + k];
            for ({index} k = 0; k < {index}(n[0]); ++k) t = t * 3 + x[i * {columns} + k + 1];
            y[i] = s; z[i] = t;"""
        for size, length in [(x.size, columns), (x.size - columns - 2, columns - 2)]:
            inputs = {"x": x[:size], "n": np.array([length], np.uint32)}
            y, z = run(body, inputs, {"y": (threads, dtype), "z": (threads, dtype)}, threads)
            seen = np.zeros(x.size + 1, dtype)
            seen[:size] = x[:size]
            sums = [np.zeros(threads, dtype), np.zeros(threads, dtype)]
            with np.errstate(over="ignore"):
                for which, (first, count) in enumerate([(0, columns), (1, length)]):
                    for k in range(first, first + count):
                        at = np.arange(threads) * columns + k
                        sums[which] = (sums[which] * np.array(3, dtype) + seen[at]).astype(dtype)
            np.testing.assert_array_equal(y, sums[0], err_msg=f"{threads} threads, {size} elements")
            np.testing.assert_array_equal(z, sums[1], err_msg=f"{threads} threads, {size} elements")


@check(
    {"order": ["i.x p.y i.y p.x", "p.x i.y i.x p.y", "i.x i.y p.y p.x", "p.x p.y i.x i.y"], "distance": [0, 1, 4, 64]}
)
def stores_to_partners(order: str, distance: int) -> None:
    """At a distance of 0 both partners are one, and a thread's later store to it is the one that stays."""
    threads, places = 64, order.split()
    writes = "".join(f" s[{place[0]}].{place[2]} = t + {1000 * k};" for k, place in enumerate(places))
    (y,) = run(
        f"""threadgroup int2 s[192]; int t = thread_position_in_threadgroup.x, j = n[0], b = max(j, 1) - 1;
            s[t] = s[t + 64] = s[t + 128] = 0; threadgroup_barrier(mem_flags::mem_threadgroup);
            int i = ((t & ~b) << 1 | (t & b)) + n[1], p = i + j;{writes}
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (int k = 0; k < 3; ++k) {{ y[6 * t + 2 * k] = s[t + 64 * k].x; y[6 * t + 2 * k + 1] = s[t + 64 * k].y; }}""",
        {"n": np.array([distance, 0], np.int32)},
        {"y": (6 * threads, "int32")},
        threads,
    )
    memory = np.zeros((192, 2), np.int32)
    t, below = np.arange(threads), max(distance, 1) - 1
    first = (t & ~below) << 1 | (t & below)
    for k, place in enumerate(places):
        memory[first + (distance if place[0] == "p" else 0), "xy".index(place[2])] = t + 1000 * k
    np.testing.assert_array_equal(y.reshape(threads, 3, 2), memory.reshape(3, threads, 2).swapaxes(0, 1))


@check()
def rows_that_end_with_a_member_read_twice() -> None:
    """Four loads of three elements, without guards: the fourth element of the last row is on a page that cannot be read."""
    threads = 256
    values = np.random.default_rng(1).integers(0, 100, 20 * (threads - 1) + 3).astype(np.float32)
    (y,) = run(
        """uint i = thread_position_in_grid.x, k = n[0]; float s = x[20 * i + 4 * k]; s = s * 3 + x[20 * i + 4 * k + 1];
           s = s * 3 + x[20 * i + 4 * k + 2]; y[i] = s * 3 + x[(i * 5 + k) * 4 + 2];""",
        {"x": GuardedPages(values.nbytes).copy(values, at_end=True), "n": np.array([0], np.uint32)},
        {"y": (threads, "float32")},
        threads,
        bounds="off",
    )
    first, second, third = (values[20 * np.arange(threads) + k] for k in range(3))
    np.testing.assert_array_equal(y, ((first * 3 + second) * 3 + third) * 3 + third)


@check({"dtype": METAL, "step": [2, 4, 8]})
def piecewise_members_without_bounds_checks(dtype: str, step: int) -> None:
    """The array ends with the element of the last index that the threads have in common, beside a page that cannot be
    read."""
    threads = 256
    body = f"uint i = thread_position_in_grid.x; if (i % 97 < n[0]) y[i] = x[{step} * min(int(i), int(n[1]))];"
    for last, active in itertools.product([0, 40, 127, 255, 300], [97, 90]):
        values = np.random.default_rng(step).integers(0, 100, step * min(last, threads - 1) + 1).astype(dtype)
        x = GuardedPages(values.nbytes).copy(values, at_end=True)
        (y,) = run(
            body,
            {"x": x, "n": np.array([active, last], np.uint32)},
            {"y": (threads, dtype)},
            threads,
            init_value=7,
            bounds="off",
        )
        i = np.arange(threads)
        expected = np.where(i % 97 < active, values[step * np.minimum(i, last)], np.array(7, dtype))
        np.testing.assert_array_equal(y, expected, err_msg=f"up to {last}, {active} active")


@check({"dtype": METAL})
def members_of_one_value(dtype: str) -> None:
    body = "uint i = thread_position_in_grid.x; " + "".join(f" y[4 * i + {m}] = x[0];" for m in range(4))
    (y,) = run(body, {"x": np.array([5], dtype)}, {"y": (400, dtype)}, 100)
    assert (y == 5).all()


@check({"name": ["float4", "half4", "uchar2"]})
def vectors_that_are_stored_as_a_whole(name: str) -> None:
    dtype, lanes = {"float4": ("float32", 4), "half4": ("float16", 4), "uchar2": ("uint8", 2)}[name]
    x = (np.arange(1000) % 200).astype(dtype)
    body = f"uint i = thread_position_in_grid.x; ((device {name}*)y)[i] = {name}(x[i]);"
    # Of the last vector but one element there is no room.
    for size in [1000 * lanes, 1000 * lanes - 1]:
        (y,) = run(body, {"x": x}, {"y": (size, dtype)}, 1000, init_value=3)
        expected = np.repeat(x, lanes)[:size]
        if size % lanes:
            expected[-(size % lanes) :] = 3
        np.testing.assert_array_equal(y, expected)


# ---- Private arrays


@check({"dtype": ["int8", "float16", "int32", "uint64"], "length": [7, 16, 200]})
def private_arrays(dtype: str, length: int) -> None:
    """Indices that are the same in all threads or not, inside the array or not, in loops that threads leave early."""
    name = METAL.get(dtype) or {"int8": "char", "int32": "int"}[dtype]
    n = 500
    steps = np.random.default_rng(3).integers(0, 3 * length, n).astype(np.int32)
    body = f"""
        uint i = thread_position_in_grid.x;
        {name} a[{length}] = {{}};
        for (int k = 0; k < steps[i]; ++k) {{
            a[k % {length}] += {name}(k % 5 + 1);
            if (k == 11 && i % 3 == 0) {{
                {name} b[{length}];
                for (int m = 0; m < {length}; ++m) b[m] = a[{length} - 1 - m];
                for (int m = 0; m < {length}; m += 2) a[m] = b[m];
            }}
            a[(k * int(i)) % {length}] += {name}(1);
            if (k == 17 && i % 7 == 0) break;
        }}
        a[steps[i] - 2] = {name}(3);
        y[i] = a[steps[i] % {length}] + a[int(i) - 100];
        for (int m = 0; m < {length}; ++m) z[int(i) * {length} + m] = a[m];"""
    y, z = run(body, {"steps": steps}, {"y": (n, dtype), "z": ((n, length), dtype)}, n)
    one = np.dtype(dtype).type
    for i in range(n):
        a = np.zeros(length, dtype)
        for k in range(int(steps[i])):
            a[k % length] += one(k % 5 + 1)
            if k == 11 and i % 3 == 0:
                a[::2] = a[::-1][::2].copy()
            a[k * i % length] += one(1)
            if k == 17 and i % 7 == 0:
                break
        if 0 <= steps[i] - 2 < length:
            a[steps[i] - 2] = one(3)
        outside = a[i - 100] if 0 <= i - 100 < length else one(0)
        assert y[i] == a[steps[i] % length] + outside, i
        np.testing.assert_array_equal(z[i], a, err_msg=str(i))


@check()
def private_arrays_of_rows_and_structures() -> None:
    n = 300
    x = np.random.default_rng(4).integers(0, 4, (n, 8)).astype(np.int32)
    body = """
        struct Pair { int first; float second; };
        uint i = thread_position_in_grid.x;
        int m[4][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
        Pair pairs[4];
        for (int k = 0; k < 4; ++k) pairs[k] = {k * 3, float(k) + 0.5f};
        for (int k = 0; k + 1 < 8; ++k) {
            m[x[8 * i + k]][x[8 * i + k + 1]] += k;
            pairs[x[8 * i + k]].first += m[k % 4][3 - k % 4];
            pairs[k % 4].second += float(pairs[x[8 * i + k]].first);
        }
        for (int k = 0; k < 16; ++k) y[16 * i + k] = m[k / 4][k % 4];
        for (int k = 0; k < 4; ++k) z[4 * i + k] = pairs[k].second;"""
    y, z = run(body, {"x": x}, {"y": ((n, 4, 4), "int32"), "z": ((n, 4), "float32")}, n)
    for i in range(n):
        m = np.zeros((4, 4), np.int32)
        m[:2] = [[1, 2, 3, 4], [5, 6, 7, 8]]
        first, second = np.arange(4) * 3, (np.arange(4) + 0.5).astype(np.float32)
        for k in range(7):
            m[x[i, k], x[i, k + 1]] += k
            first[x[i, k]] += m[k % 4, 3 - k % 4]
            second[k % 4] += np.float32(first[x[i, k]])
        np.testing.assert_array_equal(y[i], m)
        np.testing.assert_array_equal(z[i], second)


# ---- Lanes that turn out to be consecutive

INDICES: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "max": ("max(int(i) - 3, 0)", lambda i, n: np.maximum(i - 3, 0)),
    "min": ("min(int(i) + 3, int(n) - 1)", lambda i, n: np.minimum(i + 3, n - 1)),
    "clamp": ("clamp(int(i) * 2 - int(i) - 40, 0, int(n) - 50)", lambda i, n: np.clip(i - 40, 0, n - 50)),
    "choice": ("i < 100 ? i + 7 : i - 5", lambda i, n: np.where(i < 100, i + 7, i - 5)),
    "wrap": ("(i + n - 1) % n", lambda i, n: (i + n - 1) % n),
    "mirror": ("i < 500 ? 499 - i : i", lambda i, n: np.where(i < 500, 499 - i, i)),
    "quotient": ("i / 3", lambda i, n: i // 3),
    "xor": ("i ^ 16", lambda i, n: i ^ 16),
    "permutation": ("(i * 7919) % n", lambda i, n: (i * 7919) % n),
    "before the array": ("int(i) - 20", lambda i, n: i - 20),
    "beyond the array": ("max(i, 2u) + 900", lambda i, n: np.maximum(i, 2) + 900),
    "wraps at 32 bits": ("max(i, 1u) + 4294967000u", lambda i, n: (np.maximum(i, 1) + 4294967000) % 2**32),
    "long": ("max(long(i) - 3, 0l)", lambda i, n: np.maximum(i - 3, 0)),
    "short": ("short(max(i, 1u)) - short(5)", lambda i, n: np.maximum(i, 1) - 5),
    "torus, left": ("i == 0 ? n - 1 : i - 1", lambda i, n: (i - 1) % n),
    "torus, right": ("int(i) != int(n) - 1 ? int(i) + 1 : 0", lambda i, n: (i + 1) % n),
    "torus, by a difference": ("i + (i == n - 1 ? 1 - n : 1)", lambda i, n: (i + 1) % n),
    "no less than 0": ("i > 3 ? i - 3 : 0", lambda i, n: np.maximum(i - 3, 0)),
    "one less": ("i - (i > 300)", lambda i, n: i - (i > 300)),
    "between": ("i >= 40 && i < 900 ? i + 3 : 7", lambda i, n: np.where((i >= 40) & (i < 900), i + 3, 7)),
    "short period": ("(int(i) + 5) % 37", lambda i, n: (i + 5) % 37),
    "negative remainder": ("(int(i) - 500) % 300", lambda i, n: np.fmod(i - 500, 300)),
    "mask": ("(i + 3) & 255", lambda i, n: (i + 3) & 255),
    "one lane is the limit": ("int(i) == 517 ? 2 : int(i) - 1", lambda i, n: np.where(i == 517, 2, i - 1)),
    "nested": (
        "max(min(int(i) * 3 - 200, 900), int(i) + 4) % 990",
        lambda i, n: np.maximum(np.minimum(i * 3 - 200, 900), i + 4) % 990,
    ),
}


@check({"which": INDICES, "dtype": ["uint8", "float32", "uint64"]})
def indices(which: str, dtype: str) -> None:
    text, index = INDICES[which]
    n = 1000
    x = (np.arange(n) % 199 + 1).astype(dtype)
    at = index(np.arange(n), n)
    inside = (at >= 0) & (at < n)
    body = f"""uint i = thread_position_in_grid.x; uint n = x_shape[0]; y[i] = x[{text}];
        if (x[i] != 9) z[{text}] = {METAL[dtype]}(x[i] + 1);"""
    y, z = run(body, {"x": x}, {"y": (n, dtype), "z": (n, dtype)}, n, init_value=0)
    np.testing.assert_array_equal(y, np.where(inside, x[np.clip(at, 0, n - 1)], 0).astype(dtype))
    # Where several threads write one element, any of them may be the last.
    for k in np.unique(at[inside]):
        wrote = [x[i] + 1 for i in np.flatnonzero(at == k) if x[i] != 9]
        assert z[k] in (wrote or [0]), k


# Places whose lowest bits change: partners, pairs and what several threads share, as in subsampled pictures.
LOWEST_BITS: dict[str, Any] = {
    "x ^ 1": lambda x: x ^ 1,
    "x ^ 3": lambda x: x ^ 3,
    "x ^ 16": lambda x: x ^ 16,
    "x | 1": lambda x: x | 1,
    "x | 5": lambda x: x | 5,
    "x & ~1u": lambda x: x & ~1,
    "(x & ~3u) + 2": lambda x: (x & ~3) + 2,
    "x >> 1": lambda x: x >> 1,
    "x / 4": lambda x: x // 4,
    "(x / 2) * 2 + 1": lambda x: x // 2 * 2 + 1,
    "x / 16 * 16 + 15 - x % 16": lambda x: x // 16 * 16 + 15 - x % 16,
    "(x + 4) ^ 2": lambda x: (x + 4) ^ 2,
    "(x - 7) & ~1u": lambda x: (x - 7) & 0xFFFFFFFE,
}


@check({"threadgroup": ["64 1", "16 16", "8 8", "4 32", "2 32", "32 4", "24 2"], "dtype": METAL})
def lowest_bits(threadgroup: str, dtype: str) -> None:
    columns, rows = map(int, threadgroup.split())
    width, height = 72, 6
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    data = (np.arange(height * 100) % 211 + 1).astype(dtype)
    for text, place in LOWEST_BITS.items():
        at = place(x.astype(np.int64))
        is_inside = at < 100
        body = f"""uint x = thread_position_in_grid.x, y = thread_position_in_grid.y;
            uint at = {text};
            if (at < 100) {{ y0[y * 72 + x] = data[y * 100 + at]; y1[y * 100 + at] = data[y * 100 + at] + 1; }}"""
        got, written = run(
            body,
            {"data": data},
            {"y0": ((height, width), dtype), "y1": ((height, 100), dtype)},
            (width, height, 1),
            (columns, rows, 1),
            init_value=0,
        )
        expected = np.where(is_inside, data[np.where(is_inside, y * 100 + at, 0)], 0).astype(dtype)
        np.testing.assert_array_equal(got, expected, err_msg=text)
        stored = np.zeros((height, 100), dtype)
        stored[y[is_inside], at[is_inside]] = data[(y * 100 + at)[is_inside]] + 1
        np.testing.assert_array_equal(written, stored, err_msg=text)


# What an expression is, as text, and its values as integers of 32 bits.
Expression = tuple[str, Any]


def piecewise(random: np.random.Generator, i: Any, constants: Any, depth: int) -> Expression:
    """A random integer made of minima, maxima, choices and remainders of `i`; some constants are elements of `k`."""
    number = int(random.choice([0, 1, 5, 31, 32, 100, 511, 968, 999]))
    constant = f"{number}"
    if random.random() < 0.3:
        position = int(random.integers(len(constants)))
        constant, number = f"k[{position}]", int(constants[position])
    if depth == 0:
        return f"(int(i) + {number} - {number // 2})", i + number - number // 2
    text, values = piecewise(random, i, constants, depth - 1)
    kind = random.integers(8)
    if kind == 0:
        result = f"max({text}, {constant})", np.maximum(values, number)
    elif kind == 1:
        result = f"min({text}, {constant})", np.minimum(values, number)
    elif kind == 2:
        result = f"int(uint({text}) % {max(number, 1)}u)", values.astype(np.uint32) % np.uint32(max(number, 1))
    elif kind == 3:
        result = f"({text} % max({constant}, 1))", np.fmod(values, max(number, 1))
    elif kind == 4:
        result = f"({text} & 127)", values & 127
    elif kind == 5:
        result = f"int(max(uint({text}), uint({constant})))", np.maximum(values.astype(np.uint32), np.uint32(number))
    else:
        other, others = piecewise(random, i, constants, depth - 1) if kind == 6 else (constant, number)
        sign = str(random.choice(["==", "!=", "<", "<=", ">", ">="]))
        holds = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal}
        holds |= {">": np.greater, ">=": np.greater_equal}
        result = f"({text} {sign} {constant} ? {other} : {text})", np.where(holds[sign](values, number), others, values)
    return result[0], np.asarray(result[1]).astype(np.int32)


@check({"dtype": ["uint8", "float32"]})
def piecewise_indices(dtype: str) -> None:
    random = np.random.default_rng(5)
    n = 1000
    x = (np.arange(n) % 199 + 1).astype(dtype)
    constants = np.array([0, 1, 37, 640, 990], np.int32)
    for k in range(40):
        text, at = piecewise(random, np.arange(n, dtype=np.int32), constants, 1 + k % 3)
        inside = (at >= 0) & (at < n)
        body = f"uint i = thread_position_in_grid.x; int at = {text}; y[i] = x[at]; if (x[i] > 20) z[i] = x[at + 1];"
        y, z = run(body, {"x": x, "k": constants}, {"y": (n, dtype), "z": (n, dtype)}, n, init_value=0)
        np.testing.assert_array_equal(y, np.where(inside, x[np.clip(at, 0, n - 1)], 0).astype(dtype), err_msg=text)
        next_inside = (at >= -1) & (at < n - 1) & (x > 20)
        expected = np.where(next_inside, x[np.clip(at.astype(np.int64) + 1, 0, n - 1)], 0).astype(dtype)
        np.testing.assert_array_equal(z, expected, err_msg=text)


@check({"size": ["16x16", "8x8", "32x4", "12x4", "4x32", "2x16", "16x6", "32x32"]})
def tiles(size: str) -> None:
    width, height = map(int, size.split("x"))
    body = f"""
    threadgroup float s[{height + 2}][{width + 2}];
    int x = thread_position_in_grid.x, y = thread_position_in_grid.y, w = a_shape[1], h = a_shape[0];
    int tx = thread_position_in_threadgroup.x, ty = thread_position_in_threadgroup.y;
    s[ty + 1][tx + 1] = a[y * w + x];
    if (ty == 0) s[0][tx + 1] = a[max(y - 1, 0) * w + x];
    if (ty == {height} - 1) s[{height} + 1][tx + 1] = a[min(y + 1, h - 1) * w + x];
    if (tx == 0) s[ty + 1][0] = a[y * w + max(x - 1, 0)];
    if (tx == {width} - 1) s[ty + 1][{width} + 1] = a[y * w + min(x + 1, w - 1)];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    b[y * w + x] = 4 * s[ty + 1][tx + 1] - s[ty][tx + 1] - s[ty + 2][tx + 1] - s[ty + 1][tx] - s[ty + 1][tx + 2];"""
    a = np.random.default_rng(1).integers(0, 100, (height * 6, width * 5)).astype(np.float32)
    (b,) = run(body, {"a": a}, {"b": (a.shape, "float32")}, (a.shape[1], a.shape[0], 1), (width, height, 1))
    p = np.pad(a, 1, mode="edge")
    np.testing.assert_array_equal(b, 4 * a - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:])


@check({"size": ["16x16", "8x8", "4x8", "32x4", "16x6", "64x2"], "dtype": ["uint8", "float16", "float32", "uint64"]})
def elements_of_rows(size: str, dtype: str) -> None:
    """What threads of a row share, and tables that every row reads, to their last elements."""
    width, height = map(int, size.split("x"))
    name = METAL[dtype]
    body = f"""
    threadgroup {name} s[{height + 6}][{width}];
    uint x = thread_position_in_grid.x, y = thread_position_in_grid.y, w = a_shape[1];
    int tx = thread_position_in_threadgroup.x, ty = thread_position_in_threadgroup.y;
    for (int r = ty; r < {height + 6}; r += {height}) s[r][tx] = r < {height} ? a[y * w + x] : {name}(r);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    {name} sum = 0;
    for (int k = 0; k < {width}; ++k) sum += {name}(s[ty][k] * row[k * {width} + tx] + column[tx * {width} + k]);
    for (int k = -3; k <= 3; ++k) sum += s[ty + 3 + k][tx] + own[ty * {width} + tx / 2 + (k + 3) / 4];
    if (x < limit[0]) sum += s[ty][tx / 3] + row[{width} * {width} - 1 - tx];
    b[y * w + x] = sum;"""
    random = np.random.default_rng(2)
    shape = (height * 3, width * 5)
    values = {"a": shape, "row": (width, width), "column": (width, width), "own": (height * width,)}
    inputs = {k: random.integers(0, 3, of).astype(dtype) for k, of in values.items()}
    limit = np.array([width * 4 + width // 2 + 1], np.uint32)
    (b,) = run(body, {**inputs, "limit": limit}, {"b": (shape, dtype)}, (*shape[::-1], 1), (width, height, 1))
    a, row, column, own = (v.astype(np.int64) for v in inputs.values())
    for top, left in itertools.product(range(0, shape[0], height), range(0, shape[1], width)):
        tile = a[top : top + height, left : left + width]
        s = np.concatenate([tile, np.repeat(np.arange(height, height + 6)[:, None], width, 1)])
        tx, ty = np.arange(width), np.arange(height)[:, None]
        expected = tile @ row + column.sum(1)
        for k in range(7):
            expected = expected + s[k : k + height] + own[ty * width + tx // 2 + k // 4]
        last = tile[:, tx // 3] + row.ravel()[width * width - 1 - tx]
        expected = expected + np.where(left + tx < limit[0], last, 0)
        np.testing.assert_array_equal(b[top : top + height, left : left + width], expected.astype(dtype))


@check({"dtype": METAL})
def compressed_places(dtype: str) -> None:
    """Elements that some lanes keep, one after the other: where votes count the lanes that store, where they count
    others, and in outputs that are too short for all."""
    name = METAL[dtype]
    n = 1000
    x = np.random.default_rng(3).integers(0, 100, n).astype(dtype)
    ranks = {
        "popcount(votes & ((1u << lane) - 1))": 0,
        "popcount(ulong(votes) & ((ulong(1) << lane) - 1))": 0,
        "simd_prefix_exclusive_sum(uint(wanted))": 0,
        "popcount(votes & ((2u << lane) - 1))": 1,
    }
    others = {"uint(x[i]) % 2 == 0": x % 2 == 0, "lane < 30": np.arange(n) % 32 < 30}
    for (rank, more), (text, other), length in itertools.product(ranks.items(), others.items(), [1100, 990]):
        body = f"""
        uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup, first = i / 32 * 33;
        bool wanted = x[i] > 40;
        uint votes = uint(ulong(simd_ballot(wanted)));
        uint at = {rank};
        if (wanted) y[first + at] = x[i];
        if (wanted && {text}) z[first + at] = {name}(x[i] + 1);"""
        y, z = run(body, {"x": x}, {"y": (length, dtype), "z": (length, dtype)}, n, (96, 1, 1), init_value=0)
        expected = np.zeros((2, 1100), dtype)
        for i in range(n):
            wanted = x[i // 32 * 32 : i + 1] > 40
            at = i // 32 * 33 + int(wanted[:-1].sum()) + more
            if wanted[-1]:
                expected[0, at] = x[i]
            if wanted[-1] and other[i]:
                expected[1, at] = x[i] + 1
        np.testing.assert_array_equal([y, z], expected[:, :length], err_msg=body)


@check({"which": ["(i / 8) * 4 + i % 2", "(i / 4) * 3 + i % 4", "(i / 16) * 8 + i % 5"]})
def members_of_aligned_vectors(which: str) -> None:
    """Pieces that begin between two lanes' addresses, which are aligned to a whole vector."""
    body = f"""
    threadgroup ulong4 s[512];
    uint i = thread_position_in_threadgroup.x;
    for (uint k = i; k < 512; k += 64) s[k] = ulong4(x[k], 0, 0, 1);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = s[{which}].x + s[{which}].w;"""
    x = np.arange(512, dtype=np.uint64)
    (y,) = run(body, {"x": x}, {"y": (64, "uint64")}, 64)
    i = np.arange(64)
    np.testing.assert_array_equal(y, eval(which.replace("/", "//"), {"i": i}) + 1)


@check()
def negative_narrow_numbers_of_lanes() -> None:
    x = np.arange(512, dtype=np.float32)
    body = """uint i = thread_position_in_grid.x, lane = i % 32;
        char a = char(lane * 8 + (u[0] & 3)), b = char((14 - char(lane & ~1u)) + u[1]);
        y[i] = x[int(a) + 128] + x[256 + int(b)];"""
    u = np.array([3, 250], np.uint8)
    (y,) = run(body, {"x": x, "u": u}, {"y": (64, "float32")}, 64)
    lane = np.arange(64) % 32
    a, b = (lane * 8 + 3).astype(np.int8), (14 - (lane & ~1) + 250).astype(np.int8)
    np.testing.assert_array_equal(y, x[a.astype(int) + 128] + x[256 + b.astype(int)])


@check()
def a_narrow_negative_number_in_a_sum() -> None:
    x = np.arange(200000, dtype=np.float32)
    body = """uint i = thread_position_in_grid.x;
        short a = short(short(i) + s[0]);
        uint b = max(i, uint(k[0])) >> 16;
        y[i] = x[200 + long(a) + long(b)];"""
    inputs = {"x": x, "s": np.array([-100], np.int16), "k": np.array([3], np.int32)}
    (y,) = run(body, inputs, {"y": (256, "float32")}, 256)
    np.testing.assert_array_equal(y, np.arange(256) + 100)


# ---- Division


def quotients(a: Any, b: Any) -> Any:
    """Of Metal: a divisor of 0, or of -1 if the quotient would not fit, counts as 1."""
    info = np.iinfo(a.dtype)
    wide, by = (np.broadcast_to(v, a.shape).astype(object) for v in (a, b))
    by = np.where(by == 0, 1, by)
    by = np.where((wide == info.min) & (by == -1), 1, by)
    q = np.abs(wide) // np.abs(by) * np.sign(wide) * np.sign(by)
    return q.astype(a.dtype), (wide - q * by).astype(a.dtype)


@check({"dtype": ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]})
def division(dtype: str) -> None:
    rng = np.random.default_rng(5)
    info = np.iinfo(dtype)
    edges = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, 7, 3, info.max // 2, info.max // 2 + 1]
    if info.min < 0:
        edges += [-1, -2, -7]
    special = np.array(edges, dtype)
    random = rng.integers(info.min, info.max, 200, dtype=dtype, endpoint=True)
    a = np.concatenate([np.repeat(special, len(special)), random, random])
    b = np.concatenate([np.tile(special, len(special)), random[::-1], (random % 20).astype(dtype)])
    n = len(a)
    both = "uint i = thread_position_in_grid.x; q[i] = a[i] / b[{0}]; r[i] = a[i] % b[{0}];"
    outputs = {"q": (n, dtype), "r": (n, dtype)}
    q, r = run(both.format("i"), {"a": a, "b": b}, outputs, n)
    np.testing.assert_array_equal((q, r), quotients(a, b))
    for divisor in [*special, *random[:10]]:
        q, r = run(both.format("0"), {"a": a, "b": np.array([divisor])}, outputs, n)
        np.testing.assert_array_equal((q, r), quotients(a, divisor), err_msg=str(divisor))


# ---- Conversions and comparisons

INTEGERS = {"char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32"}
INTEGERS |= {"long": "int64", "ulong": "uint64"}


@check({"source": ["float32", "float16"], "name": INTEGERS})
def conversions_of_what_may_not_fit(source: str, name: str) -> None:
    dtype = INTEGERS[name]
    special = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        0.5,
        -0.5,
        -0.9,
        127.5,
        128,
        -128.9,
        -129,
        255.9,
        256,
        32767.9,
        65504,
    ]
    special += [2.0**k + d for k in (31, 32, 63, 64) for d in (0, -(2.0 ** (k - 24)))] + [-(2.0**31), -(2.0**63), -3e9]
    rng = np.random.default_rng(7)
    with np.errstate(over="ignore"):
        x = np.concatenate([special, rng.normal(0, 300, 200), rng.normal(0, 3e4, 200), rng.normal(0, 3e9, 200)])
        x = x.astype(source)
    (y,) = run(
        f"uint i = thread_position_in_grid.x; y[i] = {name}(x[i]);",
        {"x": x},
        {"y": (len(x), dtype)},
        len(x),
    )
    info = np.iinfo(dtype)

    def nearest(value: float) -> int:
        if np.isnan(value):
            return 0
        return int(max(min(value, info.max), info.min)) if np.isinf(value) else min(max(int(value), info.min), info.max)

    assert [int(v) for v in y] == [nearest(float(v)) for v in x]


@check()
def comparisons_of_halves() -> None:
    rng = np.random.default_rng(9)
    a = rng.integers(0, 2**16, 2000, dtype=np.uint16).view(np.float16)
    b = np.where(np.arange(2000) % 3 == 0, a, np.roll(a, 1))
    body = """uint i = thread_position_in_grid.x; half p = a[i], q = b[i];
        y[i] = uint(p < q) | uint(p <= q) << 1 | uint(p == q) << 2 | uint(p != q) << 3 | uint(p > q) << 4
            | uint(p >= q) << 5;
        z[i] = p < q ? p : q;"""
    y, z = run(body, {"a": a, "b": b}, {"y": (2000, "uint32"), "z": (2000, "float16")}, 2000)
    results = [a < b, a <= b, a == b, a != b, a > b, a >= b]
    np.testing.assert_array_equal(y, sum(r.astype(np.uint32) << k for k, r in enumerate(results)))
    np.testing.assert_array_equal(z.view(np.uint16), np.where(a < b, a, b).view(np.uint16))


# ---- Conditions of the body


@check({"dtype": METAL, "members": [1, 3], "bounds": ["on", "off"]})
def neighbours_within_an_image(dtype: str, members: int, bounds: str) -> None:
    """A condition proves that they are in the image, so that no guard is left, and some threads do not ask. Around the
    image nothing can be read."""
    name, rng = METAL[dtype], np.random.default_rng(members)
    for (height, width), reach in itertools.product([(5, 37), (9, 64), (3, 100)], [1, 2]):
        values = rng.integers(0, 100, (height, width, members)).astype(dtype)
        active = rng.integers(0, 4, (height, width)).astype(np.uint8)
        body = f"""int x = thread_position_in_grid.x, y = thread_position_in_grid.y, h = s_shape[0], w = s_shape[1];
            {name} sum = 0;
            if (active[y * w + x] != 0)
              for (int dy = -{reach}; dy <= {reach}; ++dy)
                for (int dx = -{reach}; dx <= {reach}; ++dx) {{
                  if (x + dx < 0 || x + dx >= w || y + dy < 0 || y + dy >= h) continue;
                  int at = ((y + dy) * w + x + dx) * {members};
                  for (int m = 0; m < {members}; ++m) sum = sum * 3 + s[at + m];
                }}
            out[y * w + x] = sum;"""
        expected = np.zeros((height, width), dtype)
        rows, columns = np.mgrid[:height, :width]
        for dy, dx in itertools.product(range(-reach, reach + 1), repeat=2):
            inside = (active != 0) & (rows + dy >= 0) & (rows + dy < height)
            inside &= (columns + dx >= 0) & (columns + dx < width)
            near = values[np.clip(rows + dy, 0, height - 1), np.clip(columns + dx, 0, width - 1)]
            for m in range(members):
                with np.errstate(over="ignore"):
                    more = (expected * np.array(3, dtype) + near[..., m]).astype(dtype)
                expected = np.where(inside, more, expected)
        pages = GuardedPages(values.nbytes)
        for at_end, threadgroup in itertools.product([False, True], [(32, 1, 1), (16, 4, 1)]):
            inputs = {"s": pages.copy(values, at_end), "active": active}
            outputs = {"out": ((height, width), dtype)}
            (out,) = run(body, inputs, outputs, (width, height, 1), threadgroup, bounds=bounds)
            np.testing.assert_array_equal(out, expected, err_msg=f"{height} x {width}, {reach}, {at_end}")


@check({"distance": [0, 1, -1, 30, -7, 2**31 - 40, -(2**31), -40]})
def columns_below_limits(distance: int) -> None:
    """Consecutive numbers that may wrap, compared with numbers of all sizes, as with a sign and without."""
    threads = 200
    limits = [1, 8, 33, 100, 199, 2**31 - 65, 2**31 - 1]
    comparisons = [
        f"{kind}(i + uint({distance})) {operator} {kind}({sign}{limit}u)"
        for kind in ("uint", "int")
        for operator in ("<", "<=", ">", ">=")
        for limit in limits
        for sign in ("", "-")
    ]
    stores = "".join(f" y[i * {len(comparisons)} + {n}] = {c} ? 5 : 9;" for n, c in enumerate(comparisons))
    (y,) = run(
        f"uint i = thread_position_in_grid.x;{stores}",
        {"x": np.zeros(1, np.uint8)},
        {"y": (threads * len(comparisons), "uint8")},
        threads,
    )
    numbers = (np.arange(threads) + distance) % 2**32
    expected = []
    for kind, operator, limit, sign in itertools.product(("uint", "int"), ("<", "<=", ">", ">="), limits, ("", "-")):
        number, bound = numbers, (-limit if sign else limit) % 2**32
        if kind == "int":
            number, bound = (number + 2**31) % 2**32 - 2**31, (bound + 2**31) % 2**32 - 2**31
        holds = {"<": number < bound, "<=": number <= bound, ">": number > bound, ">=": number >= bound}[operator]
        expected.append(np.where(holds, 5, 9))
    np.testing.assert_array_equal(y.reshape(threads, -1), np.stack(expected, 1))


@check({"divisor": [3, 5, 7, 12, 15, 17, 20, 31, 33, 100, 720, 65535, 2**31 - 1]})
def quotients_of_positions(divisor: int) -> None:
    """Rows and columns of a flat index, which wraps or does not."""
    for first, threads in itertools.product([0, 17, -9, 10**9, 2**32 - 77], [256, 100]):
        body = f"""uint i = thread_position_in_grid.x, n = i + uint({first}l);
            y[2 * i] = n / {divisor}u; y[2 * i + 1] = n % {divisor}u;
            z[2 * i] = int(n) / {divisor}; z[2 * i + 1] = int(n) % {divisor};"""
        y, z = run(
            body, {"x": np.zeros(1, np.uint8)}, {"y": (2 * threads, "uint32"), "z": (2 * threads, "int32")}, threads
        )
        n = (np.arange(threads) + first) % 2**32
        signed = (n + 2**31) % 2**32 - 2**31
        np.testing.assert_array_equal(y.reshape(-1, 2), np.stack([n // divisor, n % divisor], 1))
        quotients = np.sign(signed) * (abs(signed) // divisor)
        np.testing.assert_array_equal(z.reshape(-1, 2), np.stack([quotients, signed - quotients * divisor], 1))


@check({"type": ["uchar", "ushort", "char"], "added": [6, 250, 65530]})
def narrow_numbers_of_lanes(type: str, added: int) -> None:
    """Which wrap at a known lane, extended and compared, or as an index; the first line keeps them narrow."""
    threads, dtype = 128, {"uchar": np.uint8, "ushort": np.uint16, "char": np.int8}[type]
    body = f"""uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup, group = i / 32;
        group += simd_sum(i * 0);
        {type} narrow = {type}(lane + {added}u);
        z[i] = narrow;
        int k = int(narrow) + int(group);
        y[2 * i] = k < 100 ? 1 : 2;
        y[2 * i + 1] = x[uint(k)];"""
    x = np.random.default_rng(added).integers(0, 1000, 70000).astype(np.uint32)
    y, z = run(body, {"x": x}, {"y": (2 * threads, "uint32"), "z": (threads, dtype)}, threads, (32, 1, 1))
    narrow = (np.arange(threads) % 32 + added).astype(dtype)
    k = narrow.astype(np.int64) + np.arange(threads) // 32
    np.testing.assert_array_equal(z, narrow)
    np.testing.assert_array_equal(y.reshape(-1, 2), np.stack([np.where(k < 100, 1, 2), np.where(k >= 0, x[k], 0)], 1))


# ---- Grids of short rows


@check({"width": [1, 2, 3, 4, 5, 8, 12, 16, 17], "sees": ["grid", "threadgroup"]})
def grids_of_short_rows(width: int, sees: str) -> None:
    """Threads of several rows in one simdgroup, whole ones and not, in one plane or several."""
    extents = [(70, 1), (64, 3), (1, 90), (3, 50), (2, 1)]
    for (height, depth), threadgroup in itertools.product(
        extents, [(width, 1, 1), (width, 8, 1), (width, 2, 2), (2, 16, 1), (256, 1, 1), (1, 1, 1)]
    ):
        x = np.random.default_rng(width).integers(0, 1000, (depth, height, width)).astype(np.uint32)
        body = """uint3 p = thread_position_in_grid, size = threads_per_grid;
            uint at = (p.z * size.y + p.y) * size.x + p.x, n = x[at] % 7;
            uint sum = p.x + 100 * p.y + 10000 * p.z;
            for (uint k = 0; k < n; ++k) sum = sum * 3 + x[(at + k) % (size.x * size.y * size.z)];
            y[at] = sum;
        """
        if sees == "threadgroup":
            body += """uint3 group = threadgroup_position_in_grid, place = thread_position_in_threadgroup;
                z[at] = group.x + 20 * group.y + 2000 * group.z + 200000 * (place.x + 16 * place.y + 256 * place.z);
                w[at] = thread_index_in_threadgroup + 1000 * threads_per_threadgroup.y;"""
        outputs = {name: (x.shape, "uint32") for name in ("yzw" if sees == "threadgroup" else "y")}
        results = run(body, {"x": x}, outputs, (width, height, depth), threadgroup)
        z, y, c = np.mgrid[:depth, :height, :width].astype(np.int64)
        flat, at = x.ravel().astype(np.int64), (z * height + y) * width + c
        expected = c + 100 * y + 10000 * z
        for k in range(6):
            more = (expected * 3 + flat[(at + k) % flat.size]) % 2**32
            expected = np.where(k < x % 7, more, expected)
        np.testing.assert_array_equal(results[0], expected)
        if sees == "grid":
            continue
        sizes = [min(a, b) for a, b in zip((width, height, depth), threadgroup, strict=True)]
        group, place = [c // sizes[0], y // sizes[1], z // sizes[2]], [c % sizes[0], y % sizes[1], z % sizes[2]]
        places = place[0] + 16 * place[1] + 256 * place[2]
        positions = group[0] + 20 * group[1] + 2000 * group[2] + 200000 * places
        np.testing.assert_array_equal(results[1], positions % 2**32)
        here = [np.minimum(s, e - g * s) for s, e, g in zip(sizes, (width, height, depth), group, strict=True)]
        index = place[0] + here[0] * (place[1] + here[1] * place[2])
        np.testing.assert_array_equal(results[2], index + 1000 * here[1])


# ---- Private arrays that data index


@check({"dtype": METAL, "size": [3, 16, 40, 200]})
def histograms_of_threads(dtype: str, size: int) -> None:
    """In an array of each thread's own, some of whose indices are outside; its first value is 0."""
    name, threads, row = METAL[dtype], 100, 30
    x = np.random.default_rng(size).integers(0, size + 2, (threads, row)).astype(np.uint32)
    body = f"""uint i = thread_position_in_grid.x; {name} bins[{size}] = {{}};
        for (int j = 0; j < {row}; ++j) bins[x[i * {row} + j]] += 1;
        for (int j = 0; j < {size}; ++j) y[i * {size} + j] = bins[j];"""
    (y,) = run(body, {"x": x}, {"y": (threads * size, dtype)}, threads)
    counts = np.stack([np.bincount(numbers[numbers < size], minlength=size) for numbers in x])
    np.testing.assert_array_equal(y.reshape(threads, size), counts.astype(dtype))


@check({"dtype": METAL, "size": [5, 16, 30]})
def insertion_sorts(dtype: str, size: int) -> None:
    name, threads = METAL[dtype], 70
    x = np.random.default_rng(size).integers(0, 50, (threads, size)).astype(dtype)
    body = f"""uint i = thread_position_in_grid.x; {name} sorted[{size}];
        for (int j = 0; j < {size}; ++j) {{
            {name} v = x[i * {size} + j];
            int at = j;
            for (; at > 0 && sorted[at - 1] > v; --at) sorted[at] = sorted[at - 1];
            sorted[at] = v;
        }}
        for (int j = 0; j < {size}; ++j) y[i * {size} + j] = sorted[j];"""
    (y,) = run(body, {"x": x}, {"y": (threads * size, dtype)}, threads)
    np.testing.assert_array_equal(y.reshape(threads, size), np.sort(x, axis=1))


@check({"size": [8, 12, 33]})
def permutations_by_exchanges(size: int) -> None:
    """Two arrays, of which one becomes registers."""
    threads = 70
    x = np.random.default_rng(size).integers(0, 1000, (threads, size)).astype(np.uint32)
    body = f"""uint i = thread_position_in_grid.x, order[{size}], kept[{size}];
        for (uint j = 0; j < {size}; ++j) {{ order[j] = j; kept[j] = x[i * {size} + j]; }}
        for (uint j = {size} - 1; j > 0; --j) {{
            uint other = kept[j] % (j + 1), last = order[j];
            order[j] = order[other];
            order[other] = last;
        }}
        for (uint j = 0; j < {size}; ++j) y[i * {size} + j] = order[j];"""
    (y,) = run(body, {"x": x}, {"y": (threads * size, "uint32")}, threads)
    expected = np.tile(np.arange(size), (threads, 1))
    for numbers, order in zip(x, expected, strict=True):
        for j in range(size - 1, 0, -1):
            other = numbers[j] % (j + 1)
            order[j], order[other] = order[other], order[j]
    np.testing.assert_array_equal(y.reshape(threads, size), expected)


def run_checks(names: list[str]) -> list[str]:
    """Runs checks, each of which raises where it finds something; the names of those that have run."""
    for name in names:
        CHECKS[name]()
    return names
