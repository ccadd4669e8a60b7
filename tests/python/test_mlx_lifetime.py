"""What a kernel holds, and for how long; the interpreter lock; the end of the process."""

import gc
import subprocess
import sys
import textwrap
import threading
from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from mlx_kernels import BROKEN_BARRIER, DOUBLE, call, call1, custom_function, make, numbers

# ---- Memory


def grown(action, rounds=200):
    """By how many bytes MLX's memory grows while an action is done many times, after it has been done once."""
    action()
    gc.collect()
    mx.synchronize()
    before = mx.get_active_memory()
    for _ in range(rounds):
        action()
    gc.collect()
    mx.synchronize()
    return mx.get_active_memory() - before


def test_launches_keep_no_arrays():
    kernel, cube = make(DOUBLE), custom_function(lambda x: call1(make(DOUBLE, name="c"), x))
    cube.vjp(lambda x, cotangent, _: 2 * cotangent)
    x = mx.array(numbers((50, 40)))
    mx.eval(x)
    compiled = mx.compile(lambda x: call1(kernel, x) + 1)
    assert grown(lambda: mx.eval(call1(kernel, x))) == 0
    assert grown(lambda: mx.eval(call1(kernel, x[::-1].T))) == 0
    assert grown(lambda: mx.eval(call1(kernel, x * 2) + 1)) == 0
    assert grown(lambda: mx.async_eval(call1(kernel, x))) == 0
    assert grown(lambda: call(kernel, x + 1)) == 0
    assert grown(lambda: mx.eval(compiled(x))) == 0
    assert grown(lambda: mx.eval(mx.grad(lambda x: cube(x).sum())(x))) == 0
    assert grown(lambda: np.array(call1(kernel, x), copy=False)) == 0


@pytest.mark.parametrize(
    ("body", "error"), [("out[0] = nothing;", kiln.CompileError), (BROKEN_BARRIER, kiln.DeviceError)]
)
def test_failures_keep_no_arrays(body, error):
    kernel = make(body)
    x = mx.array(numbers((32, 32)))
    mx.eval(x)

    def fail():
        with pytest.raises(error):
            mx.eval(call1(kernel, x * 2))

    assert grown(fail, 50) == 0


def test_copies_of_inputs_are_dropped_after_the_launch():
    # The thread of a stream may have nothing more to do, and a copy may be large.
    megabytes = 64
    script = f"""
        import gc
        import kiln.mlx
        import mlx.core as mx

        def resident():
            for line in open("/proc/self/status"):
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) >> 10

        x = mx.zeros(({megabytes}, 512, 512)).T
        kernel = kiln.mlx.metal_kernel("k", ["a"], ["out"], "out[0] = a[0];")
        call = lambda x: kernel(inputs=[x], output_shapes=[(1,)], output_dtypes=[mx.float32], grid=(1, 1, 1),
                                threadgroup=(1, 1, 1))
        mx.eval(x, call(mx.zeros((2, 2)).T))
        before = resident()
        mx.eval(call(x))
        mx.synchronize()
        assert resident() - before < {megabytes // 2}, (before, resident())
    """
    run(script)


def test_calls_keep_no_references():
    kernel, x = make(DOUBLE), mx.array(numbers((30,)))
    shape, template = (30,), [("N", 1)]
    counted = (kernel, x, shape, template, mx.float32)
    before = [sys.getrefcount(thing) for thing in counted]
    for _ in range(100):
        mx.eval(call(kernel, x, shapes=[shape], dtypes=[mx.float32], template=template))
        with pytest.raises(ValueError):
            call(kernel, x, x)
        with pytest.raises(TypeError):
            call(kernel, x, shapes=[shape], template=3)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in counted] == before


def test_a_graph_keeps_its_kernels_and_no_longer():
    # 4,000 kernel objects of one meaning, each with a body of 100 kB, are made and dropped.
    run(
        """
        import kiln.mlx
        import mlx.core as mx

        def resident():
            for line in open("/proc/self/status"):
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) >> 10

        body = "out[thread_position_in_grid.x] = 2 * a[thread_position_in_grid.x];" + " " * 100_000
        x = mx.ones(4)

        def launch():
            kernel = kiln.mlx.metal_kernel("k", ["a"], ["out"], body)
            return kernel(inputs=[x], output_shapes=[(4,)], output_dtypes=[mx.float32], grid=(4, 1, 1),
                          threadgroup=(4, 1, 1))[0]

        for _ in range(50):
            mx.eval(launch())
        before = resident()
        for _ in range(2000):
            mx.eval(launch())
            launch()
        assert resident() - before < 100, (before, resident())
        """
    )


# ---- The interpreter lock


SPIN = """
    // Until the other thread has written; the end is there so that a test that fails does not hang.
    device atomic_int* flag = (device atomic_int*)a;
    out[0] = 0;
    for (int k = 0; k < 2000000000; ++k) {
        if (atomic_load_explicit(flag, memory_order_relaxed) != 0) {
            out[0] = 1;
            break;
        }
    }
"""


@pytest.mark.parametrize("library", ["numpy", "mlx"])
def test_python_runs_while_a_kernel_does(library):
    flag: Any
    if library == "numpy":
        flag = seen = np.zeros(16, np.int32)
        kernel = make(SPIN, function=kiln.metal_kernel)
    else:
        flag = mx.zeros(16, mx.int32)
        mx.eval(flag)
        seen = np.array(flag, copy=False)
        kernel = make(SPIN)
    # Compiled before, so that nothing but the launch lets the other thread run.
    keywords: dict[str, Any] = {
        "output_shapes": [(1,)],
        "output_dtypes": ["int32"],
        "grid": (1, 1, 1),
        "threadgroup": (1, 1, 1),
    }
    kernel.compile(inputs=[flag], **keywords)
    begun = threading.Event()

    def write():
        begun.wait()
        seen[0] = 1

    writer = threading.Thread(target=write)
    writer.start()
    interval = sys.getswitchinterval()
    # The other thread gets the lock only where this one gives it up.
    sys.setswitchinterval(1000)
    try:
        begun.set()
        (result,) = kernel(inputs=[flag], **keywords)
        assert result.item() == 1
    finally:
        sys.setswitchinterval(interval)
        writer.join()


@pytest.mark.parametrize("library", ["numpy", "mlx"])
@pytest.mark.parametrize("how", ["compile", "launch"])
def test_python_runs_while_a_kernel_is_compiled(library, how):
    libraries: dict[str, tuple[Any, Any]] = {"numpy": (kiln, np), "mlx": (kiln.mlx, mx)}
    module, arrays = libraries[library]
    x = arrays.ones((4,), dtype=arrays.float32)
    keywords: dict[str, Any] = {
        "output_shapes": [(4,)],
        "output_dtypes": ["float32"],
        "grid": (4, 1, 1),
        "threadgroup": (4, 1, 1),
    }
    begun, ran = threading.Event(), []

    def run_once():
        begun.wait()
        ran.append(True)

    other = threading.Thread(target=run_once)
    other.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    attempts = 0
    try:
        begun.set()
        # A loaded machine may not wake the other thread while the first one compiles.
        while not ran and attempts < 40:
            attempts += 1
            kernel = make(DOUBLE + f"out[i] += {attempts};", name=f"lock {library} {how}", function=module.metal_kernel)
            if how == "compile":
                kernel.compile(inputs=[x], **keywords)
            else:
                (result,) = kernel(inputs=[x], **keywords)
                assert result[0] == 2 + attempts
        assert ran
    finally:
        sys.setswitchinterval(interval)
        other.join()


# ---- The end of the process


def run(script, **options):
    """Runs a script in a process of its own, which must end well and say nothing of errors."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


PREAMBLE = """
import sys
import threading
import kiln.mlx
import mlx.core as mx
import numpy as np

def make(body, name="k") -> kiln.Kernel:
    return kiln.mlx.metal_kernel(name, ["a"], ["out"], body)

def call(kernel, x, threads=None, **options):
    return kernel(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(threads or x.size, 1, 1),
                  threadgroup=(64, 1, 1), **options)[0]

double = make("uint i = thread_position_in_grid.x; out[i] = 2 * a[i];")
slow = make('''
    uint i = thread_position_in_grid.x;
    float x = a[i];
    for (int k = 0; k < 100000; ++k) x = fma(x, 1.0f, 0.0f);
    out[i] = x;
''', "slow")
x = mx.ones(20000)
"""


@pytest.mark.parametrize(
    "script",
    [
        "y = call(double, x)",
        "mx.eval(call(double, x))",
        "y = call(slow, x); mx.async_eval(y)",
        "mx.async_eval(call(slow, x))",
        "y = [call(slow, x + i) for i in range(20)]; mx.async_eval(y); del y",
        "s = mx.new_stream(mx.cpu); y = call(slow, call(slow, x), stream=s); mx.async_eval(y)",
        "y = call(slow, x); mx.async_eval(y); z = call(double, y) + 1; del x",
        "y = np.array(call(double, x), copy=False); del double, x",
        "sys.lone = [call(double, x), double]; sys.lone.append(sys.lone)",
        "t = threading.Thread(target=lambda: mx.async_eval(call(slow, mx.ones(20000)))); t.start(); t.join()",
        "t = threading.Thread(target=lambda: mx.eval(call(slow, mx.ones(20000)))); t.start()",
        "f = mx.compile(lambda x: call(double, x) + 1); mx.async_eval(f(x))",
        "kiln.mlx.install(metal=True); y = call(mx.fast.metal_kernel('k', ['a'], ['out'], 'out[0] = a[0];'), x)",
        "k = make('out[0] = nothing;', 'bad')\ntry: mx.eval(call(k, x))\nexcept kiln.CompileError as e: error = e",
        "k = kiln.metal_kernel('n', ['a'], ['out'], 'out[0] = a[0];'); sys.kept = [call(k, np.ones(4)[::2] > 0), k]",
    ],
)
def test_the_process_ends_well(script):
    assert run(PREAMBLE + script + "\nprint('end')\nsys.exit(0)") == "end\n"


def test_a_forked_child_launches():
    script = """
        import os
        import warnings

        warnings.simplefilter("ignore")
        import kiln
        import numpy as np

        kernel = kiln.metal_kernel("k", ["a"], ["out"], "out[thread_position_in_grid.x] = 2 * a[0];")

        def total():
            (out,) = kernel(inputs=[np.float32([1.5])], output_shapes=[(100000,)], output_dtypes=["float32"],
                            grid=(100000, 1, 1), threadgroup=(64, 1, 1))
            return out.sum()

        assert total() == 300000
        child = os.fork()
        if child == 0:
            os._exit(0 if total() == 300000 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert total() == 300000
    """
    run(script)
