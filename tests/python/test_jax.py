"""Kernels on JAX's arrays in the CPU's memory. What GPUs do is in test_gpu_jax.py."""

import gc
import threading
import time
from typing import Any

import kiln
import numpy as np
import pytest
from kiln import _doctor, _libraries
from launch_bodies import BODIES, launch, shows_strides

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

INDEX = "uint i = thread_position_in_grid.x; "
COPY: Any = kiln.metal_kernel("copy", ["x"], ["y"], INDEX + "y[i] = x[i];")


def call(x, **changes):
    keywords = {
        "inputs": [x],
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
        "output_shapes": [(8,)],
        "output_dtypes": [jnp.float32],
    }
    return COPY(**{**keywords, **changes})[0]


def eight():
    return jnp.arange(8, dtype=jnp.float32)


@pytest.fixture
def with_64_bits():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


# JAX's arrays lie in memory in order, and some bodies read what lies between the elements of those that do not.
IN_ORDER = [name for name, body in BODIES.items() if not shows_strides(body)]


@pytest.mark.parametrize("name", IN_ORDER)
def test_bodies(name, with_64_bits):
    body = BODIES[name]
    inputs = [jnp.asarray(value) if isinstance(value, np.ndarray) else value for value in body.inputs().values()]
    outputs = [np.asarray(output) for output in launch(body, kiln.metal_kernel, inputs, str)]
    expected = body.expected()
    problems = [body.mismatch(output, got, expected[output]) for output, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


def test_results_are_arrays():
    y = call(eight())
    assert isinstance(y, jax.Array)
    assert jnp.array_equal(y, eight())
    assert jnp.array_equal(call(jnp.arange(16.0).reshape(8, 2).T[1]), jnp.arange(8) * 2 + 1)


def test_dtypes_are_jaxs():
    for dtype in (jnp.int8, jnp.bool_, jnp.bfloat16, jnp.complex64, "float16"):
        assert call(eight(), output_dtypes=[dtype]).dtype == jnp.dtype(dtype)


def message_of(error, function):
    with pytest.raises(error) as raised:
        function()
    assert jnp.array_equal(call(eight()), eight())
    return str(raised.value)


def test_refuses_values_that_are_traced():
    expected = (
        "[metal_kernel] Input `x` is a value in a function that JAX traces (jit, grad, vmap), and has no elements yet: "
        "`kernel.function(…)` makes a function that JAX can trace."
    )
    for function in (jax.jit(call), jax.grad(lambda x: call(x).sum())):
        assert message_of(TypeError, lambda function=function: function(eight())) == expected


def test_refuses_what_it_cannot_read_or_write():
    assert message_of(TypeError, lambda: call(eight().astype(jnp.float8_e5m2))) == (
        "[metal_kernel] Input `x` has dtype float8_e5m2, which no kernel can take."
    )
    assert message_of(TypeError, lambda: call(jax.random.key(1))).startswith("[metal_kernel] Input `x` has dtype key<")
    assert message_of(ValueError, lambda: call(eight(), output_dtypes=["int64"])) == (
        'JAX has arrays of int64 only after jax.config.update("jax_enable_x64", True)'
    )
    assert message_of(ValueError, lambda: call(eight(), stream=1)) == (
        "[metal_kernel] `stream` has no meaning for JAX arrays on the CPU, whose kernels run at once."
    )
    given = {"inputs": [eight()], "outputs": [eight()], "grid": (8, 1, 1), "threadgroup": (8, 1, 1)}
    assert message_of(ValueError, lambda: COPY(**given)) == (
        "[metal_kernel] `outputs` has no meaning for JAX arrays, which cannot be written."
    )


def test_refuses_arrays_that_are_gone():
    gone = "[metal_kernel] Input `x` is a JAX array that was deleted or donated, and has no elements any more."
    x = eight() + 1
    x.delete()
    assert message_of(ValueError, lambda: call(x)) == gone
    donated = eight() + 2
    jax.jit(lambda y: y + 1, donate_argnums=0)(donated).block_until_ready()
    if donated.is_deleted():
        assert message_of(ValueError, lambda: call(donated)) == gone


def test_results_are_not_copied():
    """They lie where the kernel wrote them, and stay when the call's other objects are gone."""
    addresses = kiln.metal_kernel(
        "addresses", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = (ulong)(y + i) % 64 + x[i];"
    )
    for size in (1, 3, 1000, 1 << 20):
        (y,) = addresses(
            inputs=[jnp.zeros(size)],
            output_shapes=[(size,)],
            output_dtypes=["int32"],
            grid=(size, 1, 1),
            threadgroup=(1, 1, 1),
        )
        # What JAX had copied would still say where it was before; memory that JAX takes as it is begins at a multiple.
        assert y.unsafe_buffer_pointer() % 64 == 0 and int(y[0]) == 0
        gc.collect()
        assert np.array_equal(np.asarray(y), np.arange(size, dtype=np.int64) * 4 % 64)


def test_arrays_that_jax_still_computes():
    """Also where Python computes them, which needs the interpreter's lock."""

    def slow(x):
        time.sleep(0.05)
        return np.asarray(x) + 1

    program = jax.jit(lambda x: jax.pure_callback(slow, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    assert jnp.array_equal(call(program(eight())), eight() + 1)


def test_another_thread_may_delete_an_array():
    """It ends the process if what JAX holds of the array is asked for without care."""
    gone = 0
    for _ in range(300):
        x = eight() + 0
        started = threading.Event()

        def delete(x=x, started=started):
            started.wait()
            x.delete()

        thread = threading.Thread(target=delete)
        thread.start()
        started.set()
        try:
            assert jnp.array_equal(call(x), eight())
        except ValueError as error:
            assert "was deleted or donated" in str(error)
            gone += 1
        thread.join()
    assert gone < 300


def test_memory_of_a_deleted_array_stays_while_a_kernel_reads_it():
    spin: Any = kiln.metal_kernel(
        "spin",
        ["x"],
        ["y"],
        INDEX + "float sum = 0; for (int k = 0; k < 20000; ++k) sum += x[(i + k) % 8192] * 0; y[i] = sum + x[i];",
    )
    keywords = {
        "output_shapes": [(8192,)],
        "output_dtypes": ["float32"],
        "grid": (8192, 1, 1),
        "threadgroup": (64, 1, 1),
    }
    expected = np.arange(8192, dtype=np.float32)
    spin(inputs=[jnp.asarray(expected)], **keywords)
    x = jnp.asarray(expected) + 0
    found: list[Any] = []

    def read():
        try:
            found.extend(spin(inputs=[x], **keywords))
        except ValueError as error:
            found.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.02)  # of the 50 milliseconds and more that the kernel takes
    x.delete()
    others = [jnp.zeros(8192) - k for k in range(20)]
    thread.join()
    # A thread that came late has found that the array is gone.
    late = isinstance(found[0], ValueError) and "was deleted or donated" in str(found[0])
    assert late or np.array_equal(np.asarray(found[0]), expected), others


def test_too_large_results():
    with pytest.raises(MemoryError, match=r"^There is no memory for the 1125899906842624 bytes of an output on cpu\.$"):
        call(eight(), output_shapes=[(1 << 48,)])


def test_arrays_by_the_function_that_jax_promises(monkeypatch):
    """Where a version of JAX has no other, or one with other arguments."""
    for make in (None, lambda: None):
        monkeypatch.setattr(_libraries, "hand_to_jax", _libraries._make_hand_to_jax())
        from jax._src import lib

        module = getattr(lib, "_jax", None) or lib.xla_client._xla
        with monkeypatch.context() as patch:
            if make is None:
                patch.delattr(module, "dlpack_managed_tensor_to_buffer")
            else:
                patch.setattr(module, "dlpack_managed_tensor_to_buffer", make)
            seen: list[Any] = []
            patch.setattr(jax.dlpack, "from_dlpack", lambda handed, seen=seen: seen.append(handed) or handed)
            assert _libraries.hand_to_jax("capsule") is seen[0]
            assert seen[0].__dlpack__(stream=None) == "capsule" and seen[0].__dlpack_device__() == (1, 0)


def test_doctor_tries_the_compiler_with_it_alone(monkeypatch):
    def is_missing():
        raise ImportError("not here")

    for other in ("_numpy", "_mlx", "_torch"):
        monkeypatch.setattr(_doctor, other, is_missing)
    rows = {row.name: row for group in _doctor.findings().values() for row in group}
    for name in ("libkiln_compiler.so", "cpu", "jax"):
        assert rows[name].usable, rows[name].detail
