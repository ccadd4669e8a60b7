"""docs/language.md 6.3: the end of a process with work in flight, and children that are forked."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from processes import run

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
        ("", {"grid": "3"}, "TypeError"),
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
        signal.alarm(240)
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


# ---- Memory


def test_no_memory_for_threads_that_wait():
    body = """
        float a[20000];
        uint i = thread_position_in_grid.x;
        for (int j = 0; j < 20000; ++j) a[j] = x[i] + j;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = a[19999 - i];
    """
    run(f"""
        import resource

        numbers = np.arange(1024, dtype=np.float32)
        kernels = [(make({body!r}, kiln), numbers), (make({body!r}, kiln.mlx), mx.array(numbers))]
        few = lambda kernel, x: call(kernel, x[:8]).tolist() == [19999] * 8
        assert all(few(kernel, x) for kernel, x in kernels)
        # The threads of one threadgroup need 80 MB.
        pages = int(open("/proc/self/statm").read().split()[0])
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (40 << 20), hard))
        for kernel, x in kernels:
            for _ in range(3):
                try:
                    call(kernel, x, threadgroup=(1024, 1, 1)).tolist()
                    print("there was memory")
                except MemoryError as error:
                    assert str(error) == (
                        "[metal_kernel] There is no memory for the threads of `k` in threadgroups of 1024."), error
                assert few(kernel, x)
    """)


def test_kiln_is_imported_after_the_cpp_library_was_used():
    """Another module, as PyTorch is, has loaded the C++ library, and its thread-local variables have their addresses."""
    script = """
        import ctypes
        ctypes.CDLL("libstdc++.so.6").__cxa_get_globals()
        import kiln
        print(kiln.metal_kernel("k", ["x"], ["y"], "y[0] = x[0];").name)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("k\n", "")
