"""Bodies that write an input through a cast (docs/language.md 3.1): an error at the line of the write, or, where the
kernel's options name the input, a write in place; and for a program that runs as on a Mac, a write and a warning."""

import os
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import input_write_bodies
import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from gpu_code import ptx_of
from input_write_bodies import BODIES, CALL, METAL_INDEX, N, X, check, launch, make

INDEX = "uint i = thread_position_in_grid.x; "
STORE = INDEX + "((device float*)cache)[i] = x[i]; y[i] = x[i];"


def kernel_of(source=STORE, inputs=("x", "cache"), writable=("cache",), make=kiln.metal_kernel, **options):
    compile_options = {"writable_inputs": list(writable), **options.pop("compile_options", {})}
    return make("stores", list(inputs), ["y"], source, compile_options=compile_options, **options)


def floats(count=N):
    return np.full(count, -1, np.float32)


# ---- What is refused


def refusal(kernel, *arrays):
    with pytest.raises(kiln.UnsupportedError) as raised:
        launch(kernel, *arrays)
    return str(raised.value)


@pytest.mark.parametrize("bounds", ["on", "off"])
@pytest.mark.parametrize("name", BODIES)
def test_a_write_to_an_input_is_an_error_by_line(name, bounds):
    body = BODIES[name]
    cache, x = body.cache.copy(), X.copy()
    message = refusal(make(body, bounds=bounds), x, cache)
    place = re.search(r"\n((?:source|header):\d+:\d+): error: ", message)
    assert place, message
    assert place.group(1) == body.place, message
    first, second = message.split("\n")[:2]
    assert first == f"[{body.dialect}_kernel] `writes_{body.dialect}` uses what is not supported."
    assert second.endswith(
        ": error: `cache` is an input, and the body writes to it; name it in "
        'compile_options={"writable_inputs": ["cache"]} to write it in place'
    )
    np.testing.assert_array_equal(cache, body.cache)
    np.testing.assert_array_equal(x, X)


def test_the_message_word_for_word():
    kernel = kiln.metal_kernel(
        "append", ["x", "cache"], ["y"], METAL_INDEX + "  ((device float*)cache)[i] = x[i];\ny[i] = 0;"
    )
    assert refusal(kernel, X, floats()) == (
        "[metal_kernel] `append` uses what is not supported.\n"
        "source:2:29: error: `cache` is an input, and the body writes to it; name it in "
        'compile_options={"writable_inputs": ["cache"]} to write it in place\n'
        "    ((device float*)cache)[i] = x[i];\n"
        "                              ^"
    )


def test_a_message_names_all_inputs_that_are_written():
    kernel = kiln.metal_kernel(
        "two", ["keys", "values"], ["y"],
        METAL_INDEX + "y[i] = 0;\n((device float*)values)[i] = 1;\n((device float*)keys)[i] = 2;",
    )  # fmt: skip
    assert refusal(kernel, X, floats()).split("\n")[1] == (
        "source:3:28: error: `values` is an input, and the body writes to it; name them in "
        'compile_options={"writable_inputs": ["values", "keys"]} to write them in place'
    )


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("x_shape", "((device int*)x_shape)[0] = 1;"),
        ("x_strides", "const_cast<device int64_t*>(x_strides)[0] = 1;"),
        ("x_ndim", "*(device int*)&x_ndim = 1;"),
    ],
)
def test_shapes_cannot_be_written(name, source):
    kernel = kiln.metal_kernel("shapes", ["x", "cache"], ["y"], METAL_INDEX + source + " y[i] = x[i];")
    assert f"error: `{name}` is read-only, and the body writes to it\n" in refusal(kernel, X, floats())


def test_a_write_in_an_included_file(tmp_path):
    (tmp_path / "put.h").write_text("// one\ninline void put(device float* p, uint i) {\n  p[i] = 1;\n}\n")
    kernel = kiln.metal_kernel(
        "included", ["x", "cache"], ["y"], METAL_INDEX + "put((device float*)cache, i); y[i] = x[i];",
        header='#include "put.h"', compile_options={"include_dirs": [tmp_path]},
    )  # fmt: skip
    assert f"\n{tmp_path / 'put.h'}:3:8: error: `cache` is an input" in refusal(kernel, X, floats())


# Casts that write nothing, and writes that are never reached, whatever the shapes.
HARMLESS = {
    "read through a cast": "device float* p = (device float*)cache; y[i] = p[i] + x[i];",
    "atomic load": "y[i] = x[i] + atomic_load_explicit((device atomic_float*)cache + i, memory_order_relaxed);",
    "if false": "if (false) ((device float*)cache)[i] = 1; y[i] = cache[i] + x[i];",
    "constant that is false": "const bool writes = 3 > 4; if (writes) ((device float*)cache)[i] = 1; y[i] = cache[i] + x[i];",
    "variable that is false": "bool writes = false; if (writes) ((device float*)cache)[i] = 1; y[i] = cache[i] + x[i];",
    "template that is not taken": "put<false>((device float*)cache, i, 1); y[i] = cache[i] + x[i];",
    "loop that does not run": "for (int k = 0; k < 0; ++k) ((device float*)cache)[i] = k; y[i] = cache[i] + x[i];",
    "the same condition twice": "bool b = x[i] < 32; device float* p = b ? y : (device float*)cache; "
    "y[i] = cache[i] + x[i]; if (b) p[i] = cache[i] + x[i];",
    "structure with both": "View v{(device float*)cache, y}; v.to[i] = v.from[i] + x[i];",
    "array of structures with both": "View v[2] = {{(device float*)cache, y}, {(device float*)x, y}}; "
    "v[i % 2].to[i] = v[0].from[i] + v[1].from[i];",
    "alignment": "*(device float*)((ulong)(y + i) + ((ulong)cache & 3)) = cache[i] + x[i];",
    "address as a number": "uint low = uint((ulong)cache) & 1; y[i + low] = cache[i] + x[i];",
    "distance": "device float* p = (device float*)cache + i; y[p - (device float*)cache] = cache[i] + x[i];",
}
HELPERS = """
template <bool W> void put(device float* p, uint i, float v) { if (W) p[i] = v; }
struct View { device float* from; device float* to; };
"""


@pytest.mark.parametrize("bounds", ["on", "off"])
@pytest.mark.parametrize("name", HARMLESS)
def test_what_writes_nothing_is_accepted(name, bounds):
    kernel = kiln.metal_kernel(
        "harmless", ["x", "cache"], ["y"], INDEX + HARMLESS[name], header=HELPERS, compile_options={"bounds": bounds}
    )
    cache = np.linspace(5, 9, N, dtype=np.float32)
    y = launch(kernel, X, cache)
    np.testing.assert_array_equal(y, cache + X)
    np.testing.assert_array_equal(cache, np.linspace(5, 9, N, dtype=np.float32))


def test_a_refusal_does_not_depend_on_shapes():
    source = INDEX + "if (x_shape[0] > 100) ((device float*)cache)[i] = 1; y[i] = x[i];"
    kernel = kiln.metal_kernel("by_shape", ["x", "cache"], ["y"], source)
    for count in (1, 2, 3, 4, 5, 6, 200):
        with pytest.raises(kiln.UnsupportedError):
            launch(kernel, np.zeros((count, 1), np.float32), floats())


def test_a_refused_kernel_leaves_nothing_behind():
    for _ in range(2):
        refused, named = kernel_of(writable=()), kernel_of()
        with pytest.raises(kiln.UnsupportedError):
            launch(refused, X, floats())
        cache = floats()
        launch(named, X, cache)
        np.testing.assert_array_equal(cache, X)
        with pytest.raises(kiln.UnsupportedError):
            refused.compile(inputs=[X, floats()], output_shapes=[(N,)], output_dtypes=["float32"], **CALL)
        assert refused.history == []


# ---- What is written in place


@pytest.mark.parametrize("name", BODIES)
def test_a_writable_input_is_written_in_place(name):
    check(name)


@pytest.mark.parametrize("name", ["C cast", "atomic add", "input or output", "CUDA, memcpy"])
def test_writes_in_place_without_guards(name):
    check(name, bounds="off")


@pytest.mark.parametrize(("engine", "isa"), [("scalar", "avx512"), ("simd", "avx2"), ("simd", "sse4")])
def test_writes_in_place_on_every_engine(engine, isa):
    done = subprocess.run(
        [sys.executable, input_write_bodies.__file__],
        env={**os.environ, "KILN_CPU_ENGINE": engine, "KILN_CPU_ISA": isa},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"{len(BODIES)}\n", "")


APPEND = """
uint i = thread_position_in_grid.x;
uint row = uint(length[0]), width = k_shape[0];
device float* to = (device float*)cache + row * width;
if (i < width) to[i] = k[i];
threadgroup_barrier(mem_flags::mem_device);
float sum = 0;
for (uint r = 0; r <= row; ++r) sum += cache[r * width + i];
y[i] = sum;
"""


@pytest.mark.parametrize("bounds", ["on", "off"])
@pytest.mark.parametrize("width", [8, 32, 64])
def test_a_key_value_cache_that_launches_append_to(width, bounds):
    """What a launch reads of the cache is what it and the launches before it have written."""
    kernel = kernel_of(APPEND, ("k", "cache", "length"), compile_options={"bounds": bounds})
    cache, rows = np.zeros((5, width), np.float32), np.random.default_rng(width).normal(size=(5, width))
    rows = rows.astype(np.float32)
    for step in range(5):
        (y,) = kernel(
            inputs=[rows[step], cache, np.array([step], np.int32)], output_shapes=[(width,)],
            output_dtypes=["float32"], grid=(width, 1, 1), threadgroup=(width, 1, 1),
        )  # fmt: skip
        np.testing.assert_array_equal(cache[: step + 1], rows[: step + 1])
        assert not cache[step + 1 :].any()
        np.testing.assert_allclose(y, rows[: step + 1].sum(0), rtol=1e-5, atol=1e-6)


def test_a_load_after_a_store_to_the_same_input():
    """Loads of an input that is written are not moved before the store, or made once for a loop."""
    source = (
        INDEX
        + """
        device float* c = (device float*)cache;
        float before = cache[i];
        c[i] = before + 1;
        float between = cache[i];
        for (int k = 0; k < 5; ++k) c[i] = cache[i] * 2;
        y[i] = before + 100 * between + 10000 * cache[i];
    """
    )
    cache = np.arange(N, dtype=np.float32)
    y = launch(kernel_of(source), X, cache)
    np.testing.assert_array_equal(cache, 32 * (X + 1))
    np.testing.assert_array_equal(y, X + 100 * (X + 1) + 10000 * 32 * (X + 1))


@pytest.mark.parametrize("dialect", ["metal", "cuda"])
@pytest.mark.parametrize("threads", [1, 64, 5000])
def test_counters_that_last_from_launch_to_launch(threads, dialect):
    make: Any
    if dialect == "metal":
        source = INDEX + "y[i] = atomic_fetch_add_explicit((device atomic_uint*)counter, 1u, memory_order_relaxed);"
        make = kiln.metal_kernel
    else:
        source = """
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < x_shape[0]) y[i] = atomicAdd(const_cast<unsigned*>(counter), 1u);
        """
        make = kiln.cuda_kernel
    kernel = kernel_of(source, ("x", "counter"), ("counter",), make)
    counter = np.array([7], np.uint32)
    for round in range(3):
        (y,) = kernel(
            inputs=[np.zeros(threads, np.int8), counter], output_shapes=[(threads,)], output_dtypes=["uint32"],
            grid=(threads, 1, 1), threadgroup=(32, 1, 1),
        )  # fmt: skip
        first = 7 + round * threads
        np.testing.assert_array_equal(np.sort(y), np.arange(first, first + threads))
        assert counter[0] == first + threads


def test_counters_that_several_threads_of_the_program_launch_on():
    """An input that is written is not the launch's alone, as its outputs are."""
    source = (
        INDEX
        + """
        atomic_fetch_add_explicit((device atomic_uint*)counts + i % 4, 1u, memory_order_relaxed);
        atomic_fetch_add_explicit((device atomic_float*)sums + i % 4, 1.0f, memory_order_relaxed);
        y[i] = 0;
    """
    )
    kernel = kernel_of(source, ("counts", "sums"), ("counts", "sums"))
    counts, sums = np.zeros(4, np.uint32), np.zeros(4, np.float32)

    def work():
        for _ in range(20):
            kernel(
                inputs=[counts, sums], output_shapes=[(256,)], output_dtypes=["float32"], init_value=0,
                grid=(256, 1, 1), threadgroup=(64, 1, 1),
            )  # fmt: skip

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.tolist() == [4 * 20 * 64] * 4
    assert sums.tolist() == [4 * 20 * 64] * 4


LOOK_BACK = """
uint g = threadgroup_position_in_grid.x, l = thread_position_in_threadgroup.x;
threadgroup uint total, before;
if (l == 0) total = 0;
threadgroup_barrier(mem_flags::mem_threadgroup);
atomic_fetch_add_explicit((threadgroup atomic_uint*)&total, x[g * 32 + l], memory_order_relaxed);
threadgroup_barrier(mem_flags::mem_threadgroup);
if (l == 0) {
  device atomic_uint* state = (device atomic_uint*)flags;
  uint sum = 0;
  if (g > 0)
    // The threadgroup before says its sum, plus one, when it has it.
    for (;;) {
      uint seen = atomic_load_explicit(state + g - 1, memory_order_relaxed);
      if (seen != 0) { sum = seen - 1; break; }
    }
  before = sum;
  atomic_store_explicit(state + g, sum + total + 1, memory_order_relaxed);
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (l == 0) y[g] = before;
"""


@pytest.mark.parametrize("groups", [1, 2, 7, 33, 200])
def test_a_decoupled_look_back_whose_flags_are_an_input_ends(groups):
    kernel = kernel_of(LOOK_BACK, ("x", "flags"), ("flags",))
    x = np.random.default_rng(groups).integers(0, 9, groups * 32).astype(np.uint32)
    flags = np.zeros(groups, np.uint32)
    (y,) = kernel(
        inputs=[x, flags], output_shapes=[(groups,)], output_dtypes=["uint32"], grid=(groups * 32, 1, 1),
        threadgroup=(32, 1, 1),
    )  # fmt: skip
    sums = np.cumsum(x.reshape(groups, 32).sum(1))
    np.testing.assert_array_equal(y, np.concatenate([[0], sums[:-1]]))
    np.testing.assert_array_equal(flags, sums + 1)


def test_stores_outside_of_a_writable_input_do_nothing():
    memory = np.zeros(64, np.float32)
    source = INDEX + "((device float*)cache)[int(i) - 20] = 1; y[i] = cache[int(i) - 20];"
    y = launch(kernel_of(source), X, memory[16:32])
    np.testing.assert_array_equal(memory, [0] * 16 + [1] * 16 + [0] * 32)
    np.testing.assert_array_equal(y, [0] * 20 + [1] * 16 + [0] * 28)


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[1:65, 3], np.s_[64:0:-1, 1]])
def test_a_strided_input_is_written_where_it_lies(view):
    memory = np.zeros((128, 4) if isinstance(view, tuple) else 128 if view.step == 2 else 64, np.float32)
    cache = memory[view]
    source = INDEX + "((device float*)cache)[int64_t(i) * cache_strides[0]] = x[i] + 1; y[i] = x[i];"
    launch(kernel_of(source, ensure_row_contiguous=False), X, cache)
    np.testing.assert_array_equal(cache, X + 1)
    assert np.count_nonzero(memory) == N


def test_a_text_says_what_mlx_says():
    call: dict[str, Any] = {"inputs": [X, floats()], "output_shapes": [(N,)], "output_dtypes": ["float32"], **CALL}
    assert kernel_of().source_for(**call) == kernel_of(writable=()).source_for(**call)
    assert "const device float* cache [[buffer(1)]]" in kernel_of().source_for(**call)


@pytest.mark.parametrize("generation", ["dictionary", "class"])
def test_the_other_generations(generation):
    kernel: Any
    options = {"writable_inputs": ["cache"]}
    outputs: dict[str, Any] = {"output_shapes": {"y": (N,)}, "output_dtypes": {"y": "float32"}}
    cache = floats()
    if generation == "dictionary":
        kernel = kiln.metal_kernel("by_name", STORE, compile_options=options)
        y = kernel(inputs={"x": X, "cache": cache}, **outputs, **CALL)["y"]
    else:
        kernel = kiln.MetalKernel("by_class", STORE, **outputs, **CALL, compile_options=options)
        y = kernel(x=X, cache=cache)["y"]
    np.testing.assert_array_equal(cache, X)
    np.testing.assert_array_equal(y, X)


# ---- What cannot be written in place

PLACE = "[metal_kernel] Input `cache` is to be written in place, "
READ_ONLY = floats()
READ_ONLY.flags.writeable = False
UNFIT = {
    "number": (3.0, "but is a number."),
    "NumPy's number": (np.float32(3), "but is a number."),
    "read-only": (READ_ONLY, "but is read-only."),
    "buffer of bytes": (np.frombuffer(bytes(4 * N), np.float32), "but is read-only."),
    "every second": (
        floats(2 * N)[::2], "but is not row-contiguous, and `ensure_row_contiguous` would have a copy written."
    ),
    "transposed": (
        floats().reshape(8, 8).T, "but is not row-contiguous, and `ensure_row_contiguous` would have a copy written."
    ),
    "backwards": (
        floats()[::-1], "but is not row-contiguous, and `ensure_row_contiguous` would have a copy written."
    ),
    "broadcast": (
        np.lib.stride_tricks.as_strided(floats(1), (N,), (0,), writeable=True),
        "but is broadcast: its elements share memory.",
    ),
    "other byte order": (
        floats().astype(">f4"), "but is not aligned, of the machine's byte order and with strides of whole elements."
    ),
    "misaligned": (
        np.frombuffer(bytearray(4 * N + 1), np.uint8)[1:].view(np.float32),
        "but is not aligned, of the machine's byte order and with strides of whole elements.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_an_input_that_cannot_be_written(name):
    cache, why = UNFIT[name]
    before = np.array(cache)
    with pytest.raises(ValueError) as raised:
        launch(kernel_of(), X, cache)
    assert str(raised.value) == PLACE + why
    np.testing.assert_array_equal(np.array(cache), before)


@pytest.mark.parametrize(
    "part", [np.s_[:], np.s_[:1], np.s_[63:], np.s_[10:20], np.s_[::7]], ids=["all", "first", "last", "middle", "steps"]
)
def test_a_writable_input_overlaps_no_other_input(part):
    cache = floats()
    with pytest.raises(ValueError) as raised:
        launch(kernel_of(ensure_row_contiguous=False), cache[part], cache)
    assert str(raised.value) == (
        "[metal_kernel] The memory of input `x` and of input `cache`, which is written in place, overlap."
    )
    np.testing.assert_array_equal(cache, floats())


def test_a_writable_input_overlaps_no_output():
    cache = floats()
    with pytest.raises(ValueError, match="The memory of input `cache` and of output `y` overlap"):
        kernel_of()(inputs=[X, cache], outputs=[cache], **CALL)


def test_neighbours_in_memory_do_not_overlap():
    memory = np.zeros(3 * N, np.float32)
    memory[N : 2 * N] = X
    kernel_of()(inputs=[memory[N : 2 * N], memory[:N]], outputs=[memory[2 * N :]], **CALL)
    np.testing.assert_array_equal(memory.reshape(3, N), [X, X, X])


def test_an_input_that_is_given_twice_and_not_written():
    kernel = kernel_of(inputs=("x", "z", "cache"))
    cache = floats()
    kernel(inputs=[X, X, cache], output_shapes=[(N,)], output_dtypes=["float32"], **CALL)
    np.testing.assert_array_equal(cache, X)


def test_an_empty_writable_input():
    empty = np.zeros((0, 3), np.float32)
    y = launch(kernel_of(), X, empty)
    np.testing.assert_array_equal(y, X)


# ---- The option

OPTION = 'compile_options["writable_inputs"]'


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (
            "cache",
            TypeError,
            f"Expected `{OPTION}` to be a list of strings but got the string 'cache': write ['cache'].",
        ),
        ({"cache"}, TypeError, f"Expected `{OPTION}` to be a list of strings but got set."),
        (None, TypeError, f"Expected `{OPTION}` to be a list of strings but got NoneType."),
        (True, TypeError, f"Expected `{OPTION}` to be a list of strings but got bool."),
        ([3], TypeError, f"Expected `{OPTION}` to be a list of strings but got int."),
        (["cash"], ValueError, "`writable_inputs` names `cash`, which is no input. Those are `x`, `cache`."),
        (["y"], ValueError, "`writable_inputs` names `y`, which is no input. Those are `x`, `cache`."),
        (["cache", "cache"], ValueError, "`writable_inputs` names `cache` twice."),
        (("x", "cache", "x"), ValueError, "`writable_inputs` names `x` twice."),
    ],
)
def test_what_the_option_takes(value, error, message):
    with pytest.raises(error) as raised:
        kiln.metal_kernel("option", ["x", "cache"], ["y"], STORE, compile_options={"writable_inputs": value})
    assert str(raised.value) == f"[metal_kernel] {message}"


def test_names_that_only_a_call_has():
    outputs: dict[str, Any] = {"output_shapes": {"y": (N,)}, "output_dtypes": {"y": "float32"}}
    options = {"writable_inputs": ["cash"]}
    message = "[metal_kernel] `writable_inputs` names `cash`, which is no input. Those are `x`, `cache`."
    by_name: Any = kiln.metal_kernel("by_name", STORE, compile_options=options)
    by_class = kiln.MetalKernel("by_class", STORE, **outputs, **CALL, compile_options=options)
    for call in (
        lambda: by_name(inputs={"x": X, "cache": floats()}, **outputs, **CALL),
        lambda: by_class(x=X, cache=floats()),
    ):
        with pytest.raises(ValueError) as raised:
            call()
        assert str(raised.value) == message
    cash = floats()
    by_class_source = STORE.replace("cache", "cash")
    kiln.MetalKernel("by_class", by_class_source, **outputs, **CALL, compile_options=options)(x=X, cash=cash)
    np.testing.assert_array_equal(cash, X)


@pytest.mark.parametrize("value", [[], (), ["cache"], ("x", "cache")])
def test_values_that_the_option_takes(value):
    kernel = kiln.metal_kernel(
        "option", ["x", "cache"], ["y"], INDEX + "y[i] = x[i];", compile_options={"writable_inputs": value}
    )
    np.testing.assert_array_equal(launch(kernel, X.copy(), floats()), X)


# ---- MLX


def test_mlx_arrays_are_written_where_the_option_names_them():
    kernel = kernel_of(make=kiln.mlx.metal_kernel)
    cache = mx.zeros(N)
    mx.eval(cache)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.eval(launch(kernel, mx.array(X), cache, dtype=mx.float32))
    np.testing.assert_array_equal(np.array(cache), X)


def test_mlx_arrays_are_refused_like_others():
    kernel = kernel_of(make=kiln.mlx.metal_kernel, writable=())
    with pytest.raises(kiln.UnsupportedError, match="`cache` is an input, and the body writes to it"):
        mx.eval(launch(kernel, mx.array(X), mx.zeros(N), dtype=mx.float32))


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        (lambda: mx.zeros(2 * N)[::2], "but is not row-contiguous, and `ensure_row_contiguous` would have a copy"),
        (lambda: mx.zeros((8, 8)).T, "but is not row-contiguous, and `ensure_row_contiguous` would have a copy"),
        (lambda: mx.broadcast_to(mx.zeros(1), (N,)), "but is broadcast: its elements share memory"),
    ],
)
def test_mlx_arrays_that_cannot_be_written(cache, message):
    kernel = kernel_of(make=kiln.mlx.metal_kernel)
    with pytest.raises(ValueError) as raised:
        mx.eval(launch(kernel, mx.array(X), cache(), dtype=mx.float32))
    assert str(raised.value).startswith(f"{PLACE}{message}")


@pytest.mark.parametrize(
    ("cache", "kind"), [(3.0, "float"), (floats(), "numpy.ndarray")], ids=["number", "array of NumPy"]
)
def test_mlx_writes_its_own_arrays_only(cache, kind):
    with pytest.raises(ValueError) as raised:
        launch(kernel_of(make=kiln.mlx.metal_kernel), mx.array(X), cache, dtype=mx.float32)
    assert str(raised.value) == f"{PLACE}but is {kind} and no MLX array."


def test_mlx_arrays_that_overlap():
    cache = mx.zeros(N)
    mx.eval(cache)
    with pytest.raises(ValueError, match="The memory of input `x` and of input `cache`, which is written in place, ov"):
        mx.eval(launch(kernel_of(make=kiln.mlx.metal_kernel), cache, cache, dtype=mx.float32))


INSTALLED = {
    "C cast": STORE,
    "atomic": INDEX
    + "atomic_store_explicit((device atomic_float*)cache + i, x[i], memory_order_relaxed); y[i] = x[i];",
    "vector": INDEX + "if (i % 4 == 0) ((device float4*)cache)[i / 4] = *(const device float4*)(x + i); y[i] = x[i];",
    "integer": INDEX + "*(device float*)((ulong)cache + 4 * i) = x[i]; y[i] = x[i];",
    "barrier": "threadgroup float t[64]; " + INDEX + "t[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); "
    "((device float*)cache)[i] = t[i]; y[i] = t[i];",
}


def warning_of(name, inputs="its input `cache`", pronoun="it"):
    return (
        f"[metal_kernel] `{name}` writes {inputs} through a cast, in place, as on a Mac. Name {pronoun} in "
        'compile_options={"writable_inputs": […]} where that is meant, or write an output.'
    )


@pytest.mark.parametrize("name", INSTALLED)
def test_programs_for_a_mac_write_their_arrays_with_one_warning_a_kernel(name):
    with kiln.mlx.install():
        kernel = mx.fast.metal_kernel("appends", ["x", "cache"], ["y"], INSTALLED[name])
    cache = mx.zeros(N)
    mx.eval(cache)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(3):
            y = launch(kernel, mx.array(X + step), cache, dtype=mx.float32)
            mx.eval(y)
            np.testing.assert_array_equal(np.array(cache), X + step)
            np.testing.assert_array_equal(np.array(y), X + step)
        # Other code for another type, and the same kernel.
        mx.eval(launch(kernel, mx.array(X), cache, dtype=mx.float16))
    assert [(w.category, str(w.message)) for w in caught] == [(kiln.WrittenInputWarning, warning_of("appends"))]
    assert caught[0].filename == __file__


def test_each_kernel_of_a_program_warns():
    with kiln.mlx.install():
        kernels = [mx.fast.metal_kernel(f"k{n}", ["x", "cache"], ["y"], STORE) for n in range(3)]
    with pytest.warns(kiln.WrittenInputWarning) as caught:
        for kernel in kernels:
            mx.eval(launch(kernel, mx.array(X), mx.zeros(N), dtype=mx.float32))
    assert [str(w.message) for w in caught] == [warning_of(f"k{n}") for n in range(3)]


def test_a_warning_that_is_an_error_ends_the_evaluation():
    with kiln.mlx.install():
        kernel = mx.fast.metal_kernel("strict", ["x", "cache"], ["y"], STORE)
    for _ in range(2):
        cache = mx.zeros(N)
        mx.eval(cache)
        with warnings.catch_warnings():
            warnings.simplefilter("error", kiln.WrittenInputWarning)
            with pytest.raises(kiln.WrittenInputWarning) as raised:
                mx.eval(launch(kernel, mx.array(X), cache, dtype=mx.float32))
        assert str(raised.value) == warning_of("strict")
        assert not np.array(cache).any()


def test_installed_functions_take_the_option_and_do_not_warn():
    with kiln.mlx.install():
        kernel = kernel_of(make=mx.fast.metal_kernel)
    cache = mx.zeros(N)
    mx.eval(cache)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.eval(launch(kernel, mx.array(X), cache, dtype=mx.float32))
    np.testing.assert_array_equal(np.array(cache), X)


def test_installed_functions_warn_of_what_the_option_does_not_name():
    source = (
        INDEX + "((device float*)a)[i] = x[i]; ((device float*)b)[i] = x[i]; ((device float*)c)[i] = x[i]; y[i] = x[i];"
    )
    with kiln.mlx.install():
        kernel = kernel_of(source, ("a", "x", "b", "c"), ("b",), mx.fast.metal_kernel)
    arrays = [mx.zeros(N) for _ in range(3)]
    mx.eval(arrays)
    with pytest.warns(kiln.WrittenInputWarning) as caught:
        mx.eval(
            kernel(
                inputs=[arrays[0], mx.array(X), *arrays[1:]], output_shapes=[(N,)], output_dtypes=[mx.float32], **CALL
            )
        )
    assert [str(w.message) for w in caught] == [warning_of("stores", "its inputs `a` and `c`", "them")]
    for array in arrays:
        np.testing.assert_array_equal(np.array(array), X)


def test_a_copy_is_written_where_a_mac_writes_a_copy():
    with kiln.mlx.install():
        kernel = mx.fast.metal_kernel("copies", ["x", "cache"], ["y"], STORE.replace("y[i] = x[i]", "y[i] = cache[i]"))
    memory = mx.zeros(2 * N)
    mx.eval(memory)
    with pytest.warns(kiln.WrittenInputWarning):
        y = launch(kernel, mx.array(X), memory[::2], dtype=mx.float32)
        mx.eval(y)
    assert not np.array(memory).any()
    np.testing.assert_array_equal(np.array(y), X)


def test_installed_cuda_bodies():
    with kiln.mlx.install():
        kernel = mx.fast.cuda_kernel(
            "appends",
            ["x", "cache"],
            ["y"],
            "const_cast<float*>(cache)[threadIdx.x] = x[threadIdx.x]; y[threadIdx.x] = 0;",
        )
    cache = mx.zeros(N)
    mx.eval(cache)
    with pytest.warns(kiln.WrittenInputWarning, match=r"^\[cuda_kernel\] `appends` writes its input `cache` through"):
        mx.eval(launch(kernel, mx.array(X), cache, dtype=mx.float32))
    np.testing.assert_array_equal(np.array(cache), X)


PROGRAM = """
import mlx.core as mx
import numpy as np

source = "uint i = thread_position_in_grid.x; ((device float*)cache)[i] += x[i]; y[i] = cache[i];"
kernel = mx.fast.metal_kernel("accumulates", ["x", "cache"], ["y"], source)
cache = mx.zeros(8)
mx.eval(cache)
for _ in range(2):
    (y,) = kernel(inputs=[mx.arange(8).astype(mx.float32), cache], output_shapes=[(8,)], output_dtypes=[mx.float32],
                  grid=(8, 1, 1), threadgroup=(8, 1, 1))
    mx.eval(y)
print(y.tolist(), cache.tolist())
"""


def run_program(path, *options, **environment):
    return subprocess.run(
        [sys.executable, *options, "-m", "kiln", "run", path],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_a_program_that_is_run_as_on_a_mac(tmp_path):
    """Machine code from disk knows what it writes as well."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    twice = [2.0 * n for n in range(8)]
    for _ in range(2):
        done = run_program(path, KILN_CACHE="on", KILN_CACHE_DIR=str(tmp_path / "cache"))
        assert done.stdout == f"{twice} {twice}\n", done.stderr
        assert done.stderr.count("WrittenInputWarning: " + warning_of("accumulates")) == 1
        assert f"{path}:12: WrittenInputWarning" in done.stderr
    quiet = run_program(path, "-W", "ignore", KILN_CACHE="off")
    assert (quiet.stdout, quiet.stderr) == (f"{twice} {twice}\n", "")


# ---- Recordings


def test_recordings_keep_the_option(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import kiln, numpy as np\n"
        f"kernel = kiln.metal_kernel('stores', ['x', 'cache'], ['y'], {STORE!r},\n"
        "    compile_options={'writable_inputs': ['cache']})\n"
        "kernel(inputs=[np.zeros(64, np.float32), np.zeros(64, np.float32)], output_shapes=[(64,)],\n"
        "    output_dtypes=['float32'], grid=(64, 1, 1), threadgroup=(64, 1, 1))\n"
    )
    recording, bundle = tmp_path / "kernels.json", tmp_path / "kernels.kiln"
    command = [sys.executable, "-m", "kiln"]
    subprocess.run([*command, "record", "--output", recording, program], check=True)
    done = subprocess.run(
        [*command, "compile", recording, "--bundle", bundle], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert Path(bundle).stat().st_size > 0


# ---- NVIDIA's GPUs


@pytest.mark.parametrize("mode", ["safe", "fast"])
def test_on_a_gpu_a_writable_input_is_not_read_as_a_constant(mode):
    """`ld.global.nc` may give what was there before a store."""
    source = INDEX + "device float* c = (device float*)cache; float a = cache[i]; c[i] = x[i]; y[i] = a + cache[i ^ 1];"
    kernel = kernel_of(source, compile_options={"math_mode": mode})
    arrays = [X, floats()]
    ptx = ptx_of(kernel, arrays, [("float32", (N,))], [], "sm_90")
    assert len(re.findall(r"ld\.global\.nc\.", ptx)) == 1  # x
    assert len(re.findall(r"ld\.global\.(?!nc)", ptx)) == 2
    assert len(re.findall(r"st\.global\.", ptx)) == 2
    with pytest.raises(kiln.UnsupportedError, match="source:1:102: error: `cache` is an input, and the body writes"):
        ptx_of(kernel_of(source, writable=()), arrays, [("float32", (N,))], [], "sm_90")


@pytest.mark.parametrize("name", [name for name, body in BODIES.items() if body.dialect == "metal"])
def test_bodies_that_write_an_input_compile_for_a_gpu(name):
    body = BODIES[name]
    arrays = [X, body.cache]
    assert ".visible .entry" in ptx_of(make(body, writable_inputs=["cache"]), arrays, [("float32", (N,))], [], "sm_90")
    with pytest.raises(kiln.UnsupportedError, match=f"\n{body.place}: error: `cache` is an input"):
        ptx_of(make(body), arrays, [("float32", (N,))], [], "sm_90")
