"""docs/language.md 6.2: 32 threads that make, compile, launch and drop kernels, and calls within calls."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from mlx_kernels import to_mlx, to_numpy

THREADS = 32

INDEX = "uint i = thread_position_in_grid.x;\n"
ADD = INDEX + "out[i] = x[i] + {n};"
SHAPES = INDEX + "out[i] = x[elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim)] * {n};"
# Its threads wait for one another.
TURN = """
    threadgroup float t[64];
    uint i = thread_position_in_grid.x, l = thread_position_in_threadgroup.x, n = threads_per_threadgroup.x;
    t[l] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = t[n - 1 - l] + {n};
"""
SUM = INDEX + "out[i] = simd_sum(x[i]) + {n};"
# Its threadgroups wait for one another.
MEET = """
    threadgroup uint all;
    if (thread_position_in_threadgroup.x == 0) {{
        atomic_fetch_add_explicit(&count[0], 1, memory_order_relaxed);
        while (atomic_load_explicit(&count[0], memory_order_relaxed) < threadgroups_per_grid.x) {{}}
        all = atomic_load_explicit(&count[0], memory_order_relaxed);
    }}
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_store_explicit(&count[1 + thread_position_in_grid.x], all + {n}, memory_order_relaxed);
"""
BROKEN = "out[0] = nothing + {n};"
FAULT = """
    uint i = thread_position_in_grid.x;
    if (i % 2 == 0) threadgroup_barrier(mem_flags::mem_threadgroup); else threadgroup_barrier(mem_flags::mem_none);
    out[i] = x[i] + {n};
"""


class Library:
    """An array library, as one thread uses it."""

    def __init__(self, name):
        self.name = name
        self.module = kiln if name == "numpy" else kiln.mlx

    def array(self, value):
        return value if self.name == "numpy" else to_mlx(value)

    def make(self, body, n, **options):
        return self.module.metal_kernel(f"k{n}", ["x"], ["out"], body.format(n=n), **options)

    def keywords(self, x, **changes):
        keywords = {
            "inputs": [self.array(x)],
            "output_shapes": [x.shape],
            "output_dtypes": ["float32"],
            "grid": (x.size, 1, 1),
            "threadgroup": (32, 1, 1),
        }
        return keywords | changes

    def call(self, kernel, x, **changes):
        (out,) = kernel(**self.keywords(x, **changes))
        return out if self.name == "numpy" else to_numpy(out)


def turned(x):
    groups = [x[i : i + 32][::-1] for i in range(0, len(x), 32)]
    return np.concatenate(groups)


def in_threads(work, count=THREADS):
    """Runs ``work(number)`` in threads that begin together; what they raise is raised here."""
    begin = threading.Barrier(count)
    errors = []

    def run(number):
        try:
            begin.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def some_of_everything(library, rng, shared, steps):
    """A thread's random life with kernels of its own and with one of all threads."""
    kernels = {}
    x = rng.integers(0, 100, 96).astype(np.float32)
    for _ in range(steps):
        n = int(rng.integers(0, 6))
        action = int(rng.integers(0, 12))
        if action == 0:
            kernels[n] = library.make(ADD, n)
        elif action == 1 and n in kernels:
            del kernels[n]
        elif action == 2:
            kernel = kernels.setdefault(n, library.make(ADD, n))
            before = len(kernel.history)
            np.testing.assert_array_equal(library.call(kernel, x), x + n)
            assert len(kernel.history) == before + 1
        elif action == 3:
            np.testing.assert_array_equal(library.call(library.make(TURN, n), x), turned(x) + n)
        elif action == 4:
            rows = x.reshape(-1, int(rng.choice([4, 6, 8, 12])))[:, ::-2]
            result = library.call(library.make(SHAPES, n, ensure_row_contiguous=bool(n % 2)), rows)
            np.testing.assert_array_equal(result, rows * n)
        elif action == 5:
            sums = np.repeat(x.reshape(-1, 32).sum(axis=1), 32)
            np.testing.assert_array_equal(library.call(library.make(SUM, n), x), sums + n)
        elif action == 6:
            assert f"x[i] + {n};" in library.make(ADD, n).source_for(**library.keywords(x))
        elif action == 7:
            assert library.make(ADD, n).compile(**library.keywords(x)).code_bytes > 0
        elif action == 8:
            with pytest.raises(kiln.CompileError, match="undeclared identifier 'nothing'"):
                library.call(library.make(BROKEN, n), x)
        elif action == 9:
            with pytest.raises(kiln.DeviceError, match="16 of 32 threads reach the threadgroup_barrier in line 3"):
                library.call(library.make(FAULT, n), x)
        elif action == 10:
            with pytest.raises(ValueError, match="Expected `grid` to have 1 to 3 ints but got 0"):
                library.call(library.make(ADD, n), x, grid=())
        else:
            long = np.resize(x, int(rng.choice([8, 32, 100, 20_000])))
            np.testing.assert_array_equal(library.call(shared, long), long + 7)
            assert all(launch.target == "cpu" for launch in shared.history)


@pytest.mark.parametrize("names", [("numpy",), ("mlx",), ("numpy", "mlx")], ids="+".join)
def test_threads_that_do_some_of_everything(names):
    libraries = {name: Library(name) for name in names}
    shared = {name: library.make(ADD, 7) for name, library in libraries.items()}

    def work(number):
        name = names[number % len(names)]
        # MLX's streams belong to threads.
        with mx.stream(mx.new_stream(mx.cpu)) if name == "mlx" else threading.Lock():
            some_of_everything(libraries[name], np.random.default_rng(number), shared[name], steps=60)

    in_threads(work)


@pytest.mark.parametrize("name", ["numpy", "mlx"])
def test_threads_that_launch_one_kernel_for_the_first_time(name):
    library = Library(name)
    for n in range(5):
        kernel = library.make(SHAPES, 100 + n)

        def work(number, kernel=kernel, n=n):
            # More shapes than there is code of their own for.
            x = np.arange(8 * (1 + number % 8), dtype=np.float32).reshape(-1, 8)
            np.testing.assert_array_equal(library.call(kernel, x), x * (100 + n))

        in_threads(work)
        codes = [launch.code for launch in kernel.history]
        assert len(codes) == THREADS
        # Code for four shapes and for all others (where rows of threads are simdgroups, and where not), each made once
        # for all who want it; who waits for it finds it.
        assert codes.count("compiled") <= 6


@pytest.mark.parametrize("name", ["numpy", "mlx"])
def test_threads_with_one_kernel_that_does_not_compile(name):
    library = Library(name)
    kernel = library.make(BROKEN, 200)
    x = np.ones(8, np.float32)
    messages = []

    def work(number):
        for _ in range(10):
            with pytest.raises(kiln.CompileError) as error:
                library.call(kernel, x)
            messages.append(str(error.value))

    in_threads(work)
    assert len(messages) == 10 * THREADS
    assert len(set(messages)) == 1
    assert kernel.history == []


def test_threads_whose_threadgroups_wait_for_one_another():
    kernel = kiln.metal_kernel("meet", [], ["count"], MEET.format(n=3), atomic_outputs=True)

    def work(number):
        for groups in (2, 5):
            (count,) = kernel(
                inputs=[],
                output_shapes=[(1 + 4 * groups,)],
                output_dtypes=["uint32"],
                grid=(4 * groups, 1, 1),
                threadgroup=(4, 1, 1),
                init_value=0,
            )
            assert count.tolist() == [groups] + [groups + 3] * (4 * groups)

    in_threads(work, 8)


def test_a_fault_of_one_launch_is_no_others():
    library = Library("numpy")
    x = np.arange(50_000, dtype=np.float32)
    right, fault = library.make(TURN, 300), library.make(FAULT, 301)
    expected = turned(x) + 300

    def work(number):
        for _ in range(4):
            if number % 2:
                with pytest.raises(kiln.DeviceError):
                    library.call(fault, x)
            else:
                np.testing.assert_array_equal(library.call(right, x), expected)

    in_threads(work, 8)


@pytest.mark.parametrize("name", ["numpy", "mlx"])
def test_a_kernel_that_is_dropped_while_it_runs(name):
    library = Library(name)
    x = np.arange(30_000, dtype=np.float32)

    def work(number):
        # Nobody holds the kernel but the call, or MLX's graph.
        for n in range(5):
            with mx.stream(mx.new_stream(mx.cpu)) if name == "mlx" else threading.Lock():
                np.testing.assert_array_equal(library.call(library.make(ADD, 400 + n), x), x + 400 + n)
                gc.collect(0)

    in_threads(work, 8)


# ---- Calls within calls


@pytest.mark.parametrize("name", ["numpy", "mlx"])
@pytest.mark.parametrize("hook", ["index", "sequence", "float", "items", "finalizer", "collection", "print"])
def test_a_call_within_the_same_kernels_call(name, hook, monkeypatch):
    """Reading an argument may run any code, which may launch the same kernel, even with other arrays."""
    library = Library(name)
    names = () if hook == "items" else (["x", "n"], ["out"])
    kernel = library.module.metal_kernel("again", *names, source=SHAPES.replace("* {n}", "+ n"))
    inner = np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, ::-1].T
    outer = np.arange(15, dtype=np.float32).reshape(3, 5)[::-1]
    results: list[Any] = []

    def call(x, n, **changes):
        keywords: dict[str, Any] = {
            "inputs": {"x": library.array(x), "n": n},
            "output_shapes": {"out": x.shape},
            "output_dtypes": {"out": "float32"},
        }
        if names:
            keywords = {key: list(value.values()) for key, value in keywords.items()}
        result = kernel(**{**keywords, "grid": (x.size, 1, 1), "threadgroup": (32, 1, 1), **changes})
        out = result[0] if names else result["out"]
        return to_numpy(out) if isinstance(out, mx.array) else out

    def again(*_):
        if len(results) < 100:
            results.append(call(inner, 1000))

    class Index:
        def __init__(self, value):
            self._value = value

        def __index__(self):
            again()
            return self._value

    class Float:
        def __float__(self):
            again()
            return 0.0

    class Grid:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            again()
            return (outer.size, 1, 1)[i]

    class Items(dict):
        def items(self):
            again()
            return super().items()

    class Finalized:
        """Makes items that only the call holds."""

        def __len__(self):
            return 2

        def __getitem__(self, i):
            item = Index([3, 5][i])
            weakref.finalize(item, again)
            return item

    class Out:
        write = again

        def flush(self):
            pass

    n: Any = 5
    made: dict[str, Any] = {
        "index": lambda: {"grid": (Index(outer.size), 1, 1)},
        "sequence": lambda: {"grid": Grid()},
        "float": lambda: {"init_value": Float()},
        "items": lambda: {"output_shapes": Items(out=outer.shape)},
        "finalizer": lambda: {"output_shapes": [Finalized()]},
        "collection": dict,
        "print": lambda: {"verbose": True},
    }
    changes = made[hook]()
    if hook == "index":
        n = Index(5)
    if hook == "print":
        monkeypatch.setattr("sys.stdout", Out())
    if hook == "collection":
        gc.callbacks.append(again)
        threshold = gc.get_threshold()
        gc.set_threshold(1)
    try:
        result = call(outer, n, **changes)
    finally:
        if hook == "collection":
            gc.set_threshold(*threshold)
            gc.callbacks.remove(again)
        monkeypatch.undo()
    np.testing.assert_array_equal(result, outer + 5)
    assert results
    for inner_result in results:
        np.testing.assert_array_equal(inner_result, inner + 1000)
    assert len(kernel.history) == 1 + len(results)


def test_a_call_where_an_array_is_finalized():
    # What a result's owner does when it goes may be a launch.
    library = Library("numpy")
    kernel = library.make(ADD, 500)
    x = np.arange(8, dtype=np.float32)
    seen = []

    def launch():
        seen.append(library.call(kernel, x)[0])

    for _ in range(3):
        result = library.call(kernel, x)
        weakref.finalize(result, launch)
        del result
    assert seen == [500] * 3


def test_names_in_other_threads_dictionaries():
    """Threads that read one dictionary while another one changes it read it as it was or as it is."""
    inputs: dict[str, Any] = {"x": np.arange(8, dtype=np.float32)}
    kernel = kiln.metal_kernel("k", INDEX + "out[i] = x[i];")
    stop = threading.Event()

    def change():
        for n in itertools.count():
            if stop.is_set():
                return
            inputs[f"y{n % 7}"] = n
            inputs.pop(f"y{(n + 3) % 7}", None)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(300):
            out = kernel(
                inputs=inputs,
                output_shapes={"out": (8,)},
                output_dtypes={"out": "float32"},
                grid=(8, 1, 1),
                threadgroup=(8, 1, 1),
            )["out"]
            assert out.tolist() == list(range(8))
    finally:
        stop.set()
        changing.join()
