"""docs/language.md 7.4: where there is no memory, MemoryError is raised, and what comes afterwards works."""

from __future__ import annotations

import textwrap

import pytest
from processes import run

# Runs functions while the process may map only so many bytes more than it has mapped.
LIMITED = """
import resource

def mapped():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def limited(more, function):
    '''What the function returns, or MemoryError.'''
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped() + more, hard))
    try:
        return function()
    except MemoryError:
        return MemoryError
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

MIB = 1 << 20
LEVELS = [0, 1, 2, 4, 8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024]
"""


def limited(script, environment=()):
    run(LIMITED + textwrap.dedent(script), environment=environment)


def test_loading_the_compiler_and_compiling():
    # In a process for each level: the library is loaded once.
    limited("""
        outcomes = []
        for level in LEVELS:
            reader, writer = os.pipe()
            if child := os.fork():
                os.close(writer)
                with os.fdopen(reader) as file:
                    outcomes.append(file.read())
                assert os.waitpid(child, 0)[1] == 0, (level, outcomes)
                continue
            with os.fdopen(writer, "w") as file:
                try:
                    kernel = make()
                    call(kernel, method="source_for")  # imports what Python needs
                    result = limited(level * MIB, lambda: call(kernel))
                    assert result is MemoryError or np.array_equal(result, X + 1)
                    assert np.array_equal(call(kernel), X + 1)
                    assert np.array_equal(call(make(TURN)), X[::-1])
                    file.write("MemoryError" if result is MemoryError else "result")
                except BaseException as error:
                    file.write(repr(error))
            os._exit(0)
        assert set(outcomes) == {"MemoryError", "result"}, outcomes
        assert outcomes[0] == "MemoryError" and outcomes[-1] == "result", outcomes
    """)


def test_compiling_with_the_compiler_loaded():
    limited("""
        assert np.array_equal(call(make()), X + 1)
        outcomes = set()
        for level in LEVELS[::2]:
            statements = "".join(f"s = sin(s + {k}) * {level + 2};" for k in range(20))
            kernel = make(INDEX + "float s = x[i];" + statements + "out[i] = s * 0 + 1;")
            result = limited(level * MIB, lambda: call(kernel))
            outcomes.add("MemoryError" if result is MemoryError else result.tolist() == [1] * 8)
            assert call(kernel).tolist() == [1] * 8
        assert outcomes <= {"MemoryError", True} and True in outcomes, outcomes
    """)


@pytest.mark.parametrize("library", ["numpy", "mlx"])
def test_outputs_and_copies_and_frames(library):
    limited(f"""
        module = kiln if {library!r} == "numpy" else kiln.mlx
        array = np.array if {library!r} == "numpy" else mx.array
        def evaluated(result):
            return np.array(result)
        kernel, turn = make(module=module), make(TURN, module)
        many = array(np.arange(1 << 20, dtype=np.float32))
        first = array(X)
        expected = evaluated(call(kernel, many)), evaluated(call(turn, many))
        for level in LEVELS:
            for k, right in zip((kernel, turn), expected):
                result = limited(level * MIB, lambda: evaluated(call(k, many)))
                assert result is MemoryError or np.array_equal(result, right), level
            assert np.array_equal(evaluated(call(kernel, first)), X + 1)
    """)


def test_threads_that_have_not_run_yet():
    # The pool's threads exist after the first call, in which one or two take part; the others run first in a call for
    # which there is hardly any memory. C libraries may allocate a thread's variables when it first comes to them.
    environment = {"KILN_CPU_THREADS": "8"}
    limited(
        """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        libc.free.argtypes = [ctypes.c_void_p]

        kernel = make()
        x = np.arange(1 << 22, dtype=np.float32)
        call(kernel, x[:8192])
        result, blocks = np.empty_like(x), (ctypes.c_void_p * (1 << 16))()
        def almost_without_memory():
            count = 0
            for size in [1 << 20, 1 << 14, 4000]:
                while count < len(blocks) and (block := libc.malloc(size)):
                    blocks[count] = block
                    count += 1
            for k in range(0, count, 2):  # for what a call allocates
                libc.free(blocks[k])
            try:
                kernel(inputs=[x], outputs=[result], grid=(x.size, 1, 1), threadgroup=(32, 1, 1))
                return True
            finally:
                for k in range(1, count, 2):
                    libc.free(blocks[k])
        outcome = limited(0, almost_without_memory)
        assert outcome is MemoryError or np.array_equal(result, x + 1)
        """,
        environment=environment,
    )


def test_an_output_that_is_too_large():
    run("""
        kernel = make()
        for shape in [(1 << 45,), (1 << 20, 1 << 20, 1 << 10)]:
            try:
                call(kernel, output_shapes=[shape])
                print("it was allocated")
            except MemoryError:
                pass
        assert call(kernel)[7] == 8
    """)
