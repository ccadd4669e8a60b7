"""docs/language.md 6.4: what a signal's handler raises ends launches and compilations, and leaves nothing half done."""

from __future__ import annotations

import itertools
import textwrap

import pytest
from processes import run

# A launch that lasts until another thread has sent the signal; the end is there so that a test that fails does not hang.
SIGNALS = """
# What runs in the background of a shell inherits that this signal is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

SPIN = '''
    device atomic_int* flag = (device atomic_int*)x;
    out[0] = 0;
    for (int k = 0; k < 2000000000; ++k)
        if (atomic_load_explicit(flag, memory_order_relaxed) != 0) {
            out[0] = 1;
            break;
        }
'''

def interrupt_soon():
    '''A timer. It is started where KeyboardInterrupt is caught: on a loaded machine the signal may come at once.'''
    return threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))

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


# Bodies that never end.
ENDLESS = {
    "nothing": "while (true) {}",
    "stores": "for (int k = 0;; ++k) out[i] = x[i] + k;",
    "do": "float s = x[i]; do { s = s * 0.5f + 1; } while (s > 0 || s <= 0); out[i] = s;",
    "one lane": "float s = 0; while (i == 3) s += x[i]; out[i] = s;",
    "depends on data": "float s = x[i]; while (s >= 0) s += 1 - s / 2; out[i] = s;",
    "never reaches its end": "for (int k = int(x[0]); k != 8; k += 2) out[i] = k & 1;",
    "spin": """
        device atomic_int* flag = (device atomic_int*)out;
        while (atomic_load_explicit(flag, memory_order_relaxed) != 17) {}
    """,
    "exchange": """
        device atomic_int* flag = (device atomic_int*)out;
        int seen = 0;
        do seen = atomic_fetch_add_explicit(flag, 0, memory_order_relaxed); while (seen != 17);
    """,
    "barrier": """
        threadgroup float t[64];
        uint l = thread_position_in_threadgroup.x;
        while (true) {
            t[l] = x[i];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            out[i] = t[l ^ 1];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    """,
    "after a barrier": """
        threadgroup float t[64];
        t[thread_position_in_threadgroup.x] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        while (t[0] > -1) out[i] = t[thread_position_in_threadgroup.x ^ 1];
    """,
    "simdgroup": "float s = x[i]; while (s > -1) s = simd_max(s); out[i] = s;",
    "simdgroup in a branch": """
        float s = x[i];
        while (s > -1) { if (i & 1) s = simd_max(s); else s += 1 - s / 2; }
        out[i] = s;
    """,
    "loop in a loop": """
        for (int k = 0;; ++k) { float s = 0; for (int j = 0; j < 100; ++j) s += x[j % 8]; out[i] = s; }
    """,
    "array": "int a[64]; for (uint k = i;; k = a[k & 63]) { a[k & 63] = k * 7 + 1; out[i] = a[3]; }",
    # The scalar engine does not inline it.
    "long": f"""
        float s = 0;
        {" ".join(f"s += x[(i + {k}) % 8] * {k};" for k in range(500))}
        for (int k = 0;; ++k) out[i] = s + k;
    """,
}

INTERRUPT_ENDLESS = """
os.environ["KILN_CPU_ENGINE"] = {engine!r}
module = kiln if {library!r} == "numpy" else kiln.mlx
array = np.array if {library!r} == "numpy" else mx.array
size = {size}
x = array(np.arange(1, size + 1, dtype=np.float32))
kernel = make(INDEX + {body!r}, module)
call(kernel, x, "compile")

for attempt in range(2):
    timer = interrupt_soon()
    try:
        timer.start()
        result = call(kernel, x)
        if {library!r} == "mlx":
            mx.eval(result)
        print("it ended")
    except KeyboardInterrupt:
        pass
    timer.join()
assert kernel.history == []
again = call(make(module=module), x)
assert np.array_equal(np.array(again), np.arange(2, size + 2, dtype=np.float32))
"""


# Of each body one combination of the others, another for the next body; of two kinds of code one for each engine.
ENDLESS_CALLS = [
    pytest.param(
        name,
        engine,
        library,
        size,
        marks=[pytest.mark.long]
        if (n // 2 + m + k) % 4 or ((n + m) % 2 and name not in ("barrier", "depends on data"))
        else [],
    )
    for n, name in enumerate(ENDLESS)
    for m, engine in enumerate(["scalar", "simd"])
    for k, (library, size) in enumerate(itertools.product(["numpy", "mlx"], [8, 20_000]))
]


@pytest.mark.parametrize(("name", "engine", "library", "size"), ENDLESS_CALLS)
def test_an_interrupt_ends_a_body_that_never_ends(name, engine, library, size):
    signals(INTERRUPT_ENDLESS.format(engine=engine, library=library, size=size, body=ENDLESS[name]))


@pytest.mark.parametrize("engine", ["scalar", "simd"])
def test_an_interrupt_ends_a_body_of_cudas_that_never_ends(engine):
    signals(f"""
        os.environ["KILN_CPU_ENGINE"] = {engine!r}
        kernel = kiln.cuda_kernel("k", ["x"], ["out"], "__shared__ int t; while (true) {{ __syncthreads(); t = x[0]; }}")
        call(kernel, method="compile")
        try:
            interrupt_soon().start()
            call(kernel)
            print("it ended")
        except KeyboardInterrupt:
            pass
        assert call(make())[7] == 8
    """)


def test_an_interrupt_ends_a_launch_at_the_next_threadgroup():
    # Each threadgroup ends within milliseconds, all of them in days.
    signals("""
        kernel = make(SLOW)
        call(kernel, X, "compile")
        try:
            interrupt_soon().start()
            call(kernel, grid=(1 << 30, 1, 1))
            print("it ended")
        except KeyboardInterrupt:
            pass
        assert kernel.history == []
        assert call(make())[7] == 8
    """)


@pytest.mark.parametrize("library", ["numpy", "mlx"])
def test_a_handler_that_raises_another_exception_ends_a_launch(library):
    script = f"""
        class Timeout(Exception):
            pass

        def handler(*_):
            raise Timeout("too long")

        signal.signal(signal.SIGALRM, handler)
        library = {library!r}
        kernel = make("while (true) {{}}", kiln if library == "numpy" else kiln.mlx)
        array = X if library == "numpy" else mx.array(X)
        call(kernel, array, "compile")
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            result = call(kernel, array)
            mx.eval(result) if library == "mlx" else None
        except Timeout as error:
            print(error)
        assert call(make())[7] == 8
    """
    signals(script, "too long\n")


def test_a_handler_that_does_not_raise_ends_nothing():
    # It runs while the launch does, may launch kernels, and lets the body go on.
    signals("""
        handled = []
        flag = np.zeros(16, np.int32)
        spin = '''
            device atomic_int* flag = (device atomic_int*)x;
            int k = 0;
            while (atomic_load_explicit(flag, memory_order_relaxed) == 0) k = 1;
            out[0] = k;
        '''

        def handler(*_):
            handled.append(call(make())[7])
            if len(handled) == 3:
                flag[0] = 1

        kernel = make(spin)
        keywords = dict(output_shapes=[(1,)], output_dtypes=["int32"], grid=(1, 1, 1))
        call(kernel, flag, "compile", **keywords)
        call(make())
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        result = call(kernel, flag, **keywords)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert result[0] == 1 and set(handled) == {8} and len(handled) >= 3
        assert len(kernel.history) == 1
    """)


# (MLX's own stream runs one task after the other, so that no array of MLX's is computed within the launch of another.)
@pytest.mark.parametrize(("outer", "inner"), [("numpy", "numpy"), ("numpy", "mlx"), ("mlx", "numpy")])
def test_a_handler_that_launches_leaves_the_launch_its_arguments(outer, inner):
    # Threadgroups that begin after the handler read them again.
    signals(f"""
        handled = []
        flag = np.zeros(16, np.int32)
        given = np.arange(512, dtype=np.int32)
        wait = '''
            uint i = thread_position_in_grid.x;
            int k = 0;
            while (atomic_load_explicit((device atomic_int*)flag, memory_order_relaxed) == 0) ++k;
            out[i] = x[i] + 1;
        '''
        keywords = dict(output_shapes=[(512,)], output_dtypes=["int32"], grid=(512, 1, 1), threadgroup=(8, 1, 1))
        is_mlx = {outer!r} == "mlx"
        kernel = (kiln.mlx if is_mlx else kiln).metal_kernel("wait", ["flag", "x"], ["out"], wait)
        inputs = [mx.array(flag), mx.array(given)] if is_mlx else [flag, given]
        mx.eval(inputs) if is_mlx else None
        shared = np.array(inputs[0], copy=False)
        other = make(module=kiln if {inner!r} == "numpy" else kiln.mlx)

        def handler(*_):
            array = np.arange(4096, dtype=np.float32) if {inner!r} == "numpy" else mx.arange(4096, dtype=mx.float32)
            result = call(other, array, output_shapes=[(4096,)], grid=(4096, 1, 1))
            handled.append(len(np.array(result)))
            if len(handled) == 3:
                shared[0] = 1

        kernel.compile(inputs=inputs, **keywords)
        handler()
        handled.clear()
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        (result,) = kernel(inputs=inputs, **keywords)
        mx.eval(result) if is_mlx else None
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert len(handled) >= 3
        np.testing.assert_array_equal(np.array(result), given + 1)
    """)


LONG_COMPILATION = """
statements = "".join(f"s = sin(s + {k}) * exp(s);" for k in range(1500))
kernel = make(INDEX + f"float s = x[i]; {statements} out[i] = s * 0 + 1;", MODULE)
try:
    interrupt_soon().start()
    call(kernel, ARRAY, "compile")
    print("it ended")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("library", ["numpy", "mlx"])
def test_an_interrupt_ends_a_long_compilation(library):
    # The compilation goes on without its caller; other kernels are compiled meanwhile.
    modules = {"numpy": "MODULE, ARRAY = kiln, X\n", "mlx": "MODULE, ARRAY = kiln.mlx, mx.array(X)\n"}
    signals(modules[library] + LONG_COMPILATION + "assert call(make())[7] == 8\n", "interrupted\n")


def test_a_process_ends_while_a_compilation_goes_on():
    signals("MODULE, ARRAY = kiln, X\n" + LONG_COMPILATION, "interrupted\n")


def test_an_interrupt_while_other_threads_work():
    # It is the main thread's; the others go on.
    signals("""
        results = []

        def work(t):
            for n in range(30):
                results.append(call(make(ADD.format(f"{t} * 100 + {n}")))[7] == 7 + t * 100 + n)

        # Started before: what is raised within start() leaves open whether the thread runs.
        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
        for thread in threads:
            thread.start()

        def main():
            for n in itertools.count():
                call(make(ADD.format(n % 20)))

        interrupted(main)
        for thread in threads:
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
            # Not at intervals: where a handler takes longer than one, handlers would nest without end.
            signal.setitimer(signal.ITIMER_REAL, 0.002)

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.002)
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
