"""docs/language.md 6.5: launches and compilations work on threads with stacks of any size."""

from __future__ import annotations

import textwrap

import pytest
from processes import run

# A function on a thread with a small stack. What it raises, or its result, is printed by the main thread: Python itself
# needs some of a small stack for printing.
ON_SMALL_STACK = """
def on_stack(kib, function):
    results = []
    def target():
        try:
            results.append(function())
        except Exception as error:
            results.append(error)
    threading.stack_size(kib * 1024)
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    threading.stack_size(0)
    return results[0]

PRIVATE = INDEX + '''
    float a[{n}];
    for (int k = 0; k < {n}; ++k) a[k] = x[i] + k;
    float s = 0;
    for (int k = 0; k < 8; ++k) s += a[(int(x[i]) * 7 + k * {n} / 9) % {n}];
    out[i] = s;
'''
def private_result(n):
    return [float(sum(np.float32(v + (int(v) * 7 + k * n // 9) % n) for k in range(8))) for v in X]
"""


def on_small_stack(script):
    run(ON_SMALL_STACK + textwrap.dedent(script))


# Python cannot have less, and MLX's and NumPy's variables of each thread lie on its stack too.
SIZES = [32, 48, 64, 96, 128, 192, 256]


@pytest.mark.parametrize("kib", SIZES)
def test_compilations(kib):
    on_small_stack(f"""
        kernel = make()
        function = lambda: call(kernel)
        assert np.array_equal(on_stack({kib}, function), X + 1)
        # Recursion in Clang and LLVM goes with the depth of an expression.
        deep = make(INDEX + "out[i] = x[i]" + " + 1.0f" * 2000 + ";")
        assert np.array_equal(on_stack({kib}, lambda: call(deep)), X + 2000)
        assert isinstance(on_stack({kib}, lambda: call(make("out[0] = y;"))), kiln.CompileError)
        assert np.array_equal(call(kernel), X + 1)
    """)


@pytest.mark.parametrize("kib", SIZES)
@pytest.mark.parametrize("elements", [1000, 12_000, 51_200, 60_000])
def test_private_arrays(kib, elements):
    on_small_stack(f"""
        n = {elements}
        kernel = make(PRIVATE.format(n=n))
        expected = private_result(n)
        assert call(kernel).tolist() == expected
        for _ in range(3):
            assert on_stack({kib}, lambda: call(kernel)).tolist() == expected
    """)


@pytest.mark.parametrize("kib", [32, 64, 192])
def test_engines_and_kinds_of_launches(kib):
    on_small_stack(f"""
        many = np.arange(100_000, dtype=np.float32)
        reduction = INDEX + "out[i] = simd_sum(x[i]);"
        expected = np.repeat(many.reshape(-1, 32).sum(1, dtype=np.float64), 32)
        assert np.array_equal(on_stack({kib}, lambda: call(make(reduction), many)), expected.astype(np.float32))
        turned = many.reshape(-1, 32)[:, ::-1].ravel()
        assert np.array_equal(on_stack({kib}, lambda: call(make(TURN), many)), turned)
        strided = np.arange(64, dtype=np.float32)[::2]
        assert np.array_equal(on_stack({kib}, lambda: call(make(), strided)), strided + 1)
        filled = on_stack({kib}, lambda: call(make("if (thread_position_in_grid.x == 1) out[1] = 5;"), init_value=3))
        assert filled.tolist() == [3, 5, 3, 3, 3, 3, 3, 3]
    """)


def test_arrays_of_mlx_on_small_stacks():
    on_small_stack("""
        kernel = make(PRIVATE.format(n=51200), kiln.mlx)
        x = mx.array(X)
        mx.eval(x)
        def function():
            result = call(kernel, x)
            mx.eval(result)
            return result
        assert np.array(on_stack(192, function)).tolist() == private_result(51200)
    """)


def test_threads_of_the_pool_do_not_depend_on_the_limit_of_stacks():
    run("""
        import resource, subprocess
        if len(sys.argv) == 1:
            pass
    """)
    script = ON_SMALL_STACK + textwrap.dedent("""
        many = np.repeat(X, 4000)
        kernel = make(PRIVATE.format(n=51200))
        result = call(kernel, many)
        assert np.array_equal(result, np.repeat(np.array(private_result(51200), np.float32), 4000))
    """)
    run(
        f"""
        import resource, subprocess
        limited = lambda: resource.setrlimit(resource.RLIMIT_STACK, (256 * 1024, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        from processes import PREAMBLE
        done = subprocess.run([sys.executable, "-c", PREAMBLE + {script!r}], preexec_fn=limited, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    """.replace(
            "from processes import PREAMBLE",
            f"sys.path.insert(0, {str(__import__('pathlib').Path(__file__).parent)!r})\n        from processes import PREAMBLE",
        )
    )
