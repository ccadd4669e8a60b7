"""Errors of kernels in MLX's graphs: they keep their type, and what is evaluated afterwards is sound."""

import importlib.metadata
import threading
from collections.abc import Callable
from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from mlx_kernels import ADD, BROKEN_BARRIER, DOUBLE, call, call1, make

VERSION = tuple(int(part) for part in importlib.metadata.version("mlx").split(".")[:3])
# MLX ends the process where an error passes its buffer protocol, or a stream's task.
BUFFERS_END_THE_PROCESS = VERSION < (0, 32, 4)
TASKS_END_THE_PROCESS = VERSION < (0, 32, 2)

MISSPELT = "uint i = thread_position_in_grid.x;\nout[i] = a[j];"


def array():
    return mx.arange(40, dtype=mx.float32)


def check_sound(stream=None):
    result = call1(make(DOUBLE), array() + 1, stream=stream) - 1
    np.testing.assert_array_equal(np.array(result), 2 * np.arange(40) + 1)


def in_the_background(x):
    mx.async_eval(x)
    mx.eval(x)


# Ways in which a program has MLX evaluate an array.
WAYS: dict[str, Callable[[Any], object]] = {
    "eval": mx.eval,
    "async_eval": in_the_background,
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "print": str,
    "compile": lambda x: mx.eval(mx.compile(lambda y: y + x[0] * 0)(mx.zeros(1))),
}


@pytest.mark.parametrize("way", WAYS)
def test_compile_error(way):
    x = call1(make(MISSPELT), array() + 1) * 2
    for _ in range(2):
        with pytest.raises(kiln.CompileError) as error:
            WAYS[way](x)
        (diagnostic,) = [d for d in error.value.diagnostics if d.severity == "error"]
        assert (diagnostic.text, diagnostic.line, diagnostic.column) == ("source", 2, 12)
        assert diagnostic.source_line == "out[i] = a[j];"
        assert "use of undeclared identifier 'j'" in str(error.value)
        assert MISSPELT in error.value.generated_source
    check_sound()


def test_compile_error_inside_a_compiled_function():
    kernel = make(MISSPELT)
    function = mx.compile(lambda x: call1(kernel, x) + 1)
    for _ in range(2):
        with pytest.raises(kiln.CompileError):
            mx.eval(function(array()))
    check_sound()


def test_compile_error_when_asked_to_compile():
    keywords: dict[str, Any] = {
        "output_shapes": [(40,)],
        "output_dtypes": [mx.float32],
        "grid": (40, 1, 1),
        "threadgroup": (8, 1, 1),
    }
    with pytest.raises(kiln.CompileError):
        make(MISSPELT).compile(inputs=[array()], **keywords)
    check_sound()


@pytest.mark.parametrize("way", WAYS)
def test_unsupported_error(way):
    body = "threadgroup float big[1000000]; big[0] = 1; out[0] = big[0] + a[0];"
    for _ in range(2):
        with pytest.raises(kiln.UnsupportedError, match="threadgroup memory"):
            WAYS[way](call1(make(body), array()))
    check_sound()


@pytest.mark.parametrize("way", WAYS)
def test_device_error(way):
    for _ in range(3):
        with pytest.raises(kiln.DeviceError, match=r"only \d+ of 40 threads reach the threadgroup_barrier in line \d"):
            WAYS[way](call1(make(BROKEN_BARRIER, name=f"broken {way}"), array() + 1) * 2)
        check_sound()


def test_a_wrong_call_is_an_error_at_once():
    kernel = make(ADD, inputs=("a", "b"))
    with pytest.raises(ValueError, match="Expected `inputs` to have size 2 but got size 1"):
        call(kernel, array())
    with pytest.raises(ValueError, match="at most 1024 threads"):
        call(kernel, array(), array(), threadgroup=(64, 32, 1))
    with pytest.raises(ValueError, match="Metal has no double"):
        call(make(DOUBLE), mx.array(1.0, mx.float32), dtypes=["float64"])
    with pytest.raises(TypeError, match="Expected `stream` to be an MLX stream or device but got str"):
        call(make(DOUBLE), array(), stream="cpu")
    with pytest.raises(TypeError, match="Expected `inputs` to be MLX arrays or numbers but got str"):
        call(make(DOUBLE), "array", shapes=[(4,)], dtypes=[mx.float32])
    with pytest.raises(ValueError, match="does not fit into int64"):
        call(make("out[0] = a;"), 2**63, shapes=[(1,)], dtypes=[mx.int64])
    check_sound()


def test_no_numbers_where_a_launch_failed():
    x = call1(make(BROKEN_BARRIER), array())
    for read in (mx.eval, np.from_dlpack, str, lambda x: (x + 1).tolist()):
        with pytest.raises(kiln.DeviceError):
            read(x)
    if BUFFERS_END_THE_PROCESS:
        return
    with pytest.raises(kiln.DeviceError):
        np.array(x)
    # MLX makes one kind of error of all that its buffers raise.
    with pytest.raises(RuntimeError, match="threads reach the threadgroup_barrier"):
        memoryview(x)
    check_sound()


@pytest.mark.parametrize(("body", "error"), [(MISSPELT, kiln.CompileError), (BROKEN_BARRIER, kiln.DeviceError)])
def test_failures_do_not_wear_mlx_out(body, error):
    # What a stream's task throws makes MLX lose count of its tasks now and then; after eleven times it waits for ever.
    kernel = make(body)
    for i in range(1000):
        with pytest.raises(error):
            mx.eval(call1(kernel, array() * i) + 1)
    check_sound()


def test_the_rest_of_the_graph_survives():
    x = array() + 1
    before = call1(make(DOUBLE), x)
    for body, error in ((MISSPELT, kiln.CompileError), (BROKEN_BARRIER, kiln.DeviceError)):
        failing = call1(make(body), before)
        after = failing + 1
        beside = call1(make(DOUBLE), before)
        with pytest.raises(error):
            mx.eval(after, beside)
        for result, factor in ((before, 2), (beside, 4), (x, 1)):
            np.testing.assert_array_equal(np.array(result), factor * (np.arange(40) + 1))
    check_sound()


@pytest.mark.parametrize(("body", "error"), [(MISSPELT, kiln.CompileError), (BROKEN_BARRIER, kiln.DeviceError)])
def test_errors_on_another_stream(body, error):
    first, second = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
    x = mx.add(array(), 1, stream=first)
    with pytest.raises(error):
        mx.eval(call1(make(body), x, stream=second))
    for stream in (first, second, None):
        check_sound(stream)
    with pytest.raises(error):
        mx.eval(mx.add(call1(make(body), x, stream=second), 1, stream=first))
    for stream in (first, second, None):
        check_sound(stream)
    np.testing.assert_array_equal(np.array(x), np.arange(40) + 1)


def test_errors_in_threads():
    caught = {}

    def work(number):
        body, error = ((MISSPELT, kiln.CompileError), (BROKEN_BARRIER, kiln.DeviceError))[number % 2]
        count = 0
        for _ in range(5):
            try:
                mx.eval(call1(make(body), array()))
            except error:
                count += 1
            check_sound()
        caught[number] = count

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caught == dict.fromkeys(range(6), 5)


@pytest.mark.skipif(TASKS_END_THE_PROCESS, reason="MLX before 0.32.2 ends the process at an error of a stream's task")
def test_other_errors_of_a_stream_are_not_kilns():
    with pytest.raises(kiln.DeviceError):
        mx.eval(call1(make(BROKEN_BARRIER), array()))
    with pytest.raises(RuntimeError) as error:
        mx.eval(mx.linalg.inv(mx.zeros((3, 3)), stream=mx.cpu))
    assert not isinstance(error.value, kiln.DeviceError)
    check_sound()
