"""The end of a process with work in flight, children that are forked, and signals; each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

PREAMBLE = """
import atexit, builtins, faulthandler, gc, itertools, os, signal, sys, threading, time, weakref
faulthandler.dump_traceback_later(120, exit=True)
import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np

X = np.arange(8, dtype=np.float32)
INDEX = "uint i = thread_position_in_grid.x; "
ADD = INDEX + "out[i] = x[i] + {};"
TURN = '''
    threadgroup float t[64];
    uint i = thread_position_in_grid.x, l = thread_position_in_threadgroup.x;
    t[l] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = t[threads_per_threadgroup.x - 1 - l];
'''
SLOW = INDEX + "float s = x[i]; for (int k = 0; k < 3000000; ++k) s = fma(s, 1.0f, 0.0f); out[i] = s;"

def make(body=ADD.format(1), module=kiln, name="k"):
    return module.metal_kernel(name, ["x"], ["out"], body)

def call(kernel, x=X, method="__call__", **changes):
    keywords = dict(inputs=[x], output_shapes=[x.shape], output_dtypes=["float32"], grid=(x.size, 1, 1),
                    threadgroup=(32, 1, 1))
    result = getattr(kernel, method)(**{**keywords, **changes})
    return result[0] if method == "__call__" else result

class Last:
    '''Does something when it goes.'''
    def __init__(self, function):
        self.function = function

    def __del__(self):
        self.function()
"""


def run(script, expected="", returncode=0):
    """Runs a script, which must end as expected and say nothing of errors."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=150,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # NumPy's threads take every signal
    )
    assert (done.returncode, done.stderr) == (returncode, "")
    assert done.stdout == expected


# ---- The end of the process


@pytest.mark.parametrize("threads", [1, 6])
@pytest.mark.parametrize("what", ["launch", "compile", "fail"])
def test_daemon_threads_at_the_end(what, threads):
    """They get the interpreter's lock no more when their launch is over; Python before 3.14 unwinds their stacks."""
    body = {
        "launch": "kernel = make(SLOW)\nforever = lambda t, n: call(kernel)",
        "compile": "forever = lambda t, n: call(make(ADD.format(f'{t} + {n}')))",
        "fail": """
def forever(t, n):
    try:
        call(make(f"out[0] = nothing{t}_{n};"))
    except kiln.CompileError:
        pass
""",
    }[what]
    run(
        f"""
{body}
begun = threading.Barrier({threads + 1})

def work(t):
    forever(t, -1)
    begun.wait()
    for n in itertools.count():
        forever(t, n)

for t in range({threads}):
    threading.Thread(target=work, args=(t,), daemon=True).start()
begun.wait()
print("end")
""",
        "end\n",
    )


ENDS = {
    "threads that are no daemons": """
        def work(t):
            for n in range(4):
                assert call(make(ADD.format(f"{t} * 10 + {n}")))[7] == 7 + t * 10 + n
        for t in range(8):
            threading.Thread(target=work, args=(t,)).start()
    """,
    "threads that are no daemons, MLX": """
        def work(t):
            kernel = make(ADD.format(t), kiln.mlx)
            for n in range(20):
                assert call(kernel, mx.array(X) + n)[7].item() == 7 + t + n
        for t in range(8):
            threading.Thread(target=work, args=(t,)).start()
    """,
    "work in flight": "kernel = make(SLOW, kiln.mlx); mx.async_eval([call(kernel, mx.array(X) + n) for n in range(8)])",
    "work in flight whose threads wait": """
        kernel = make(TURN, kiln.mlx)
        results = [call(kernel, mx.ones(50_000) * n) for n in range(20)]
        mx.async_eval(results)
    """,
    "work in flight on several streams": """
        kernel = make(SLOW, kiln.mlx)
        results = [call(kernel, mx.array(X), stream=mx.new_stream(mx.cpu)) for _ in range(4)]
        mx.async_eval(results)
    """,
    "work that nobody began": "kernel = make(module=kiln.mlx); results = [call(kernel, mx.array(X)) for _ in range(4)]",
    "a failure that nobody saw": """
        result = call(make("out[0] = nothing;", kiln.mlx), mx.array(X))
        try:
            call(make("out[0] = nothing;"))
        except kiln.CompileError as error:
            error.error, error.kernel = error, make()
    """,
    "kernels in a cycle": """
        class Holder:
            pass
        holder = Holder()
        holder.holder, holder.kernels = holder, [make(), make(module=kiln.mlx)]
        holder.results = [call(holder.kernels[0]), call(holder.kernels[1], mx.array(X))]
        del holder
    """,
    "an installed kernel in a cycle": """
        with kiln.mlx.install():
            kernel = mx.fast.metal_kernel("k", ["x"], ["out"], ADD.format(1))
        kernel.own, kernel.result = kernel, call(kernel, mx.array(X))
        del kernel
    """,
    "os._exit while threads compile": """
        def work():
            for n in itertools.count():
                call(make(ADD.format(n)))
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        call(make())
        os._exit(0)
    """,
}


@pytest.mark.parametrize("what", ENDS)
def test_the_end(what):
    run(ENDS[what])


LAST = {
    "atexit": "atexit.register(lambda: print(call(make())[7]))",
    "atexit, MLX": "atexit.register(lambda: print(call(make(module=kiln.mlx), mx.array(X))[7].item()))",
    "a global object": "kernel = make(); call(kernel); last = Last(lambda: print(call(kernel)[7]))",
    "an object of builtins": """
        kernel = make()
        call(kernel)
        builtins.last = Last(lambda kernel=kernel, call=call, print=print, X=X: print(call(kernel, X)[7]))
    """,
    "an object of builtins, MLX": """
        kernel = make(module=kiln.mlx)
        builtins.last = Last(lambda kernel=kernel, call=call, x=mx.array(X), print=print: print(call(kernel, x)[7].item()))
    """,
    "a generator": """
        kernel = make()
        call(kernel)
        def generate():
            try:
                yield
            finally:
                print(call(kernel)[7])
        generator = generate()
        next(generator)
    """,
    "an object of a thread": """
        kernel = make()
        local = threading.local()
        def work():
            local.last = Last(lambda: print(call(kernel)[7]))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """,
    "sys.excepthook": """
        def hook(*_):
            print(call(make())[7])
            os._exit(0)
        sys.excepthook = hook
        sys.stdout.reconfigure(line_buffering=True)
        raise RuntimeError
    """,
}


@pytest.mark.parametrize("what", LAST)
def test_the_last_thing_is_a_launch(what):
    run(LAST[what], "8.0\n")


# Classes of errors are looked for when nothing can be imported any more.
@pytest.mark.parametrize(
    ("body", "changes", "error"),
    [
        ("out[0] = nothing;", {}, "CompileError"),
        ("goto end; end: out[0] = 1;", {}, "UnsupportedError"),
        (
            "if (thread_position_in_grid.x < 3) threadgroup_barrier(mem_flags::mem_none); "
            "else threadgroup_barrier(mem_flags::mem_none);",
            {},
            "DeviceError",
        ),
        ("", {"grid": 3}, "TypeError"),
        ("", {"threadgroup": (0, 1, 1)}, "ValueError"),
    ],
)
@pytest.mark.parametrize("module", ["kiln", "kiln.mlx"])
def test_the_last_thing_is_an_error(module, body, changes, error):
    run(
        f"""
        x = X if {module!r} == "kiln" else mx.array(X)
        call(make(module={module}), x)
        kernel = make({body!r}, {module})
        def last(kernel=kernel, call=call, x=x, Exception=Exception, print=print, type=type, changes={changes!r}):
            try:
                call(kernel, x, **changes).tolist()
            except Exception as error:
                print(type(error).__name__)
        builtins.last = Last(last)
        """,
        f"{error}\n",
    )


# ---- fork

FORK = """
def in_child(function):
    '''What a child prints, and that it ends well.'''
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        try:
            assert function() is not False
            sys.stdout.flush()
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status

def both(expected=8.0):
    '''A kernel of the parent's and one of the child's own, small and large.'''
    ones = np.ones(100_000, np.float32)
    for kernel in (old, make(ADD.format("1 + 0 * {}".format(os.getpid())))):
        assert call(kernel)[7] == expected
        assert (call(kernel, ones) == 2).all()
        assert len(kernel.history) >= 2
    assert (call(turn, ones.cumsum(dtype=np.float32))[:32] == np.arange(32, 0, -1)).all()
    try:
        call(make("out[0] = nothing;"))
    except kiln.CompileError:
        return True

old, turn = make(), make(TURN)
"""


def fork(script):
    run(FORK + textwrap.dedent(script))


def test_children_launch_and_compile():
    fork("""
        in_child(both)                 # before anything was launched
        assert both()
        for _ in range(3):
            in_child(both)
        in_child(lambda: in_child(both))  # a grandchild
        assert both()
        assert call(old, method="compile").code_bytes > 0
        in_child(lambda: call(old)[7] == 8 and old.history[-1].code == "memory")
    """)


def test_children_that_are_forked_while_others_compile_and_launch():
    fork("""
        assert both()
        done = threading.Event()
        shared = make(INDEX + "out[i] = x[i] + x_shape[0];")

        def work(t):
            for n in itertools.count():
                if done.is_set():
                    return
                assert call(make(ADD.format(f"{t} * 1000 + {n % 50}")))[7] == 7 + t * 1000 + n % 50
                for size in (8, 16, 24, 32, 40, 48):
                    assert call(shared, np.zeros(size, np.float32))[0] == size
                shared.history

        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        try:
            for n in range(30):
                in_child(lambda: both() and call(shared)[0] == 8 and call(make(ADD.format(n)))[7] == 7 + n)
        finally:
            done.set()
        for thread in threads:
            thread.join()
    """)


def test_children_with_mlx():
    # MLX's own streams have no threads in a child; new ones do.
    fork("""
        kernel = make(module=kiln.mlx)
        assert call(kernel, mx.array(X))[7].item() == 8

        def child():
            stream = mx.new_stream(mx.cpu)
            fresh = make(ADD.format(2), kiln.mlx)
            with mx.stream(stream):
                assert call(kernel, mx.array(X))[7].item() == 8
                assert call(fresh, mx.array(X) + 1)[7].item() == 10
            results = []
            thread = threading.Thread(target=lambda: results.append(call(fresh, mx.array(X))[7].item()))
            thread.start()
            thread.join()
            return results == [9]

        for _ in range(3):
            in_child(child)
        assert call(kernel, mx.array(X))[7].item() == 8
    """)


def test_pools_of_processes():
    fork("""
        import concurrent.futures
        import multiprocessing

        def task(n):
            return float(call(old, X + n)[7] + call(make(ADD.format(n)), X)[7])

        assert both()
        context = multiprocessing.get_context("fork")
        expected = [8 + n + 7 + n for n in range(20)]
        with context.Pool(3) as pool:
            assert pool.map(task, range(20)) == expected
        with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:
            assert list(pool.map(task, range(20))) == expected
        assert both()
    """)


def test_programs_that_are_started():
    fork("""
        import subprocess

        assert both()
        for options in ({}, {"preexec_fn": lambda: None}, {"start_new_session": True}):
            assert subprocess.run(["true"], **options).returncode == 0
        assert os.system("true") == 0
        assert both()
    """)


# ---- Signals

# A launch that lasts until another thread has sent the signal; the end is there so that a test that fails does not hang.
SIGNALS = """
SPIN = '''
    device atomic_int* flag = (device atomic_int*)x;
    out[0] = 0;
    for (int k = 0; k < 2000000000; ++k)
        if (atomic_load_explicit(flag, memory_order_relaxed) != 0) {
            out[0] = 1;
            break;
        }
'''

def interrupted(function, release=lambda: None):
    '''Runs a function during which SIGINT comes.'''
    begun = threading.Event()

    def send():
        begun.wait()
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        release()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        begun.set()
        function()
        while True:
            time.sleep(1)  # the signal may come only now
    except KeyboardInterrupt:
        pass
    sender.join()

# Whether the signal came before the function had begun is a matter of luck on a loaded machine.
def until(attempt):
    for n in range(20):
        if attempt(n):
            return
    raise RuntimeError("the signal always came too early")
"""


def signals(script, expected="", returncode=0):
    run(SIGNALS + textwrap.dedent(script), expected, returncode)


@pytest.mark.parametrize("library", ["numpy", "mlx"])
def test_an_interrupt_during_a_launch(library):
    signals(f"""
        library = {library!r}
        keywords = dict(output_shapes=[(1,)], output_dtypes=["int32"], grid=(1, 1, 1))
        array = (lambda: np.zeros(16, np.int32)) if library == "numpy" else (lambda: mx.zeros(16, mx.int32))
        kernel = make(SPIN, kiln if library == "numpy" else kiln.mlx)
        call(kernel, array(), "compile", **keywords)

        def attempt(n):
            before = len(kernel.history)
            flag = array()
            mx.eval(flag) if library == "mlx" else None
            seen = np.array(flag, copy=False)
            results = []

            def release():
                time.sleep(0.05)
                seen[0] = 1

            def launch():
                result = call(kernel, flag, **keywords)
                results.append(result)
                mx.eval(result) if library == "mlx" else None

            interrupted(launch, release)
            if len(kernel.history) == before:
                return False
            # It ended, with all that belongs to it.
            assert len(kernel.history) == before + 1 and kernel.history[-1].code == "memory"
            assert library == "numpy" or results[0].item() == 1
            assert call(kernel, flag, **keywords).item() == 1
            assert call(make(), X)[7] == 8
            return True

        until(attempt)
    """)


@pytest.mark.parametrize("library", ["numpy", "mlx"])
@pytest.mark.parametrize("how", ["compile", "launch"])
def test_an_interrupt_during_a_compile(library, how):
    # What was compiled is there for the next call.
    signals(f"""
        library, how = {library!r}, {how!r}
        array = X if library == "numpy" else mx.array(X)

        def attempt(n):
            statements = "".join(f"s = sin(s + {{k}}) * exp(s);" for k in range(60))
            kernel = make(INDEX + f"float s = x[i] + {{n}}; {{statements}} out[i] = s * 0 + 1;",
                          kiln if library == "numpy" else kiln.mlx)
            def run():
                result = call(kernel, array, "compile" if how == "compile" else "__call__")
                mx.eval(result) if library == "mlx" and how == "launch" else None

            interrupted(run)
            launches = len(kernel.history)
            assert launches in ((0,) if how == "compile" else (0, 1))
            assert launches == 0 or kernel.history[-1].code == "compiled"
            result = call(kernel, array)
            mx.eval(result) if library == "mlx" else None
            assert len(kernel.history) == launches + 1
            return kernel.history[-1].code == "memory"

        until(attempt)
        assert call(make(), X)[7] == 8
    """)


def test_an_interrupt_while_other_threads_work():
    # It is the main thread's; the others go on.
    signals("""
        results = []

        def work(t):
            for n in range(30):
                results.append(call(make(ADD.format(f"{t} * 100 + {n}")))[7] == 7 + t * 100 + n)

        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]

        def main():
            for thread in threads:
                thread.start()
            for n in itertools.count():
                call(make(ADD.format(n % 20)))

        interrupted(main)
        for thread in threads:
            if thread.ident:
                thread.join()
            else:
                thread.start()
                thread.join()
        assert len(results) == 120 and all(results)
        assert call(make())[7] == 8
    """)


def test_the_default_action_ends_the_process():
    signals(
        """
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        call(make(TURN), np.ones(100_000, np.float32))  # there are threads of the pool now
        threading.Thread(target=lambda: (time.sleep(0.05), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()
        while True:
            call(make(SLOW))
        """,
        returncode=-2,
    )


@pytest.mark.parametrize("library", ["numpy", "mlx"])
def test_handlers_that_launch(library):
    signals(f"""
        module, array = (kiln, np.array) if {library!r} == "numpy" else (kiln.mlx, mx.array)
        kernel = make(INDEX + "out[i] = x[elem_to_loc<int64_t>(i, x_shape, x_strides, x_ndim)] + x_shape[0];", module)
        inner = np.arange(12, dtype=np.float32).reshape(3, 4)
        outer = np.arange(40, dtype=np.float32)
        handled = []

        def handler(*_):
            handled.append(np.array_equal(np.array(call(kernel, array(inner))), inner + 3))
            call(make(ADD.format(len(handled) % 5), module), array(inner))

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        launches = 0
        while len(handled) < 100:
            assert np.array_equal(np.array(call(kernel, array(outer))), outer + 40)
            launches += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert all(handled)
        assert len(kernel.history) == min(1000, launches + len(handled))
    """)


def test_handlers_that_raise_within_an_argument():
    signals("""
        class Number:
            def __index__(self):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
                return 8

        kernel = make()
        for _ in range(20):
            try:
                call(kernel, grid=(Number(), 1, 1))
                print("not interrupted")
            except KeyboardInterrupt:
                pass
        assert kernel.history == []
        assert call(kernel)[7] == 8
    """)


def test_signals_that_a_program_waits_for():
    # A thread of Kiln's that did not block a signal would be given it, and end the process.
    signals("""
        call(make(TURN), np.ones(100_000, np.float32))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        for _ in range(50):
            os.kill(os.getpid(), signal.SIGUSR1)
            call(make(TURN), np.ones(100_000, np.float32))
            assert signal.sigtimedwait({signal.SIGUSR1}, 30).si_signo == signal.SIGUSR1
    """)
