"""Kernels as nodes of MLX's CUDA graphs: every body, and what MLX does with nodes, on its GPU.

MLX's default device is the GPU where it has one, so that the other tests of MLX run there too.
"""

import functools
import subprocess
import sys
import threading

import kiln
import numpy as np
import pytest

mx = pytest.importorskip("mlx.core", reason="MLX is not installed", exc_type=ImportError)
import kiln.mlx  # noqa: E402
from launch_bodies import BODIES, launch  # noqa: E402
from mlx_kernels import (  # noqa: E402
    ADD,
    DOUBLE,
    DTYPES,
    STRIDED_COPY,
    call,
    call1,
    custom_function,
    make,
    numbers,
    to_mlx,
    to_numpy,
)

# All of the module at once: where there is no GPU, reporting its four thousand tests one by one would take seconds.
if not mx.is_available(mx.gpu):
    pytest.skip("MLX has no GPU here", allow_module_level=True)

by_name = pytest.mark.parametrize("name", BODIES)


def equal(result, expected):
    np.testing.assert_array_equal(to_numpy(result), expected)


# ---- Every body


@functools.cache
def expected_of(name):
    return BODIES[name].expected()


def mlx_dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


def launch_on(device, body):
    with mx.stream(device):
        inputs = [to_mlx(value) for value in body.inputs().values()]
        outputs = launch(body, kiln.mlx.metal_kernel, inputs, mlx_dtype)
        mx.eval(outputs)
    return [to_numpy(output) for output in outputs]


@by_name
def test_reference(name):
    body, expected = BODIES[name], expected_of(name)
    outputs = launch_on(mx.gpu, body)
    problems = [body.mismatch(key, got, expected[key]) for key, got in zip(expected, outputs, strict=True)]
    assert not any(problems), "\n".join(filter(None, problems))


def adds_floats_atomically(body):
    """Whether the order of additions, which nobody fixes, shows."""
    has_floats = any(dtype in ("float32", "float16", "bfloat16") for _, dtype in body.outputs.values())
    return has_floats and "atomic_fetch" in body.header + body.source


def bits(array):
    parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    # One NaN counts as any other.
    return [(np.where(part != part, part.dtype.type(0), part).tobytes(), (part != part).tobytes()) for part in parts]


@by_name
def test_same_bits_as_on_the_cpu(name):
    body = BODIES[name]
    if body.compile_options.get("math_mode", "safe") != "safe" or adds_floats_atomically(body):
        pytest.skip("nobody promises the same bits")
    for output, gpu, cpu in zip(body.outputs, launch_on(mx.gpu, body), launch_on(mx.cpu, body), strict=True):
        assert bits(gpu) == bits(cpu), output


# ---- Arrays


def test_it_runs_on_the_gpu_when_it_is_evaluated():
    kernel = make(DOUBLE)
    a = numbers((1000,))
    result = call1(kernel, mx.array(a))
    assert len(kernel.history) == 0
    equal(result, 2 * a)
    assert [launch.target for launch in kernel.history] == ["nvidia:0"]
    equal(call1(kernel, mx.array(a), stream=mx.cpu), 2 * a)
    assert kernel.history[-1].target == "cpu"
    compiled = kernel.compile(
        inputs=[mx.array(a)], output_shapes=[a.shape], output_dtypes=[mx.float32], grid=(1, 1, 1), threadgroup=(1, 1, 1)
    )
    assert compiled.target == "nvidia:0"


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_init_values(dtype):
    a = numbers((7, 5), dtype)
    source = "uint i = thread_position_in_grid.x; if (i % 2) out[i] = a[i];"
    result = call1(make(source), to_mlx(a), init_value=3)
    expected = np.full(35, 3).astype(a.dtype)
    expected[1::2] = a.reshape(-1)[1::2]
    equal(result, expected.reshape(7, 5))


def views():
    whole = numbers((9, 8, 6))
    a = mx.array(whole)
    return {
        "transposed": (a.transpose(2, 0, 1), whole.transpose(2, 0, 1)),
        "steps": (a[::2, ::3, 1], whole[::2, ::3, 1]),
        "backwards": (a[::-1, :, ::-2], whole[::-1, :, ::-2]),
        "broadcast": (mx.broadcast_to(a[2], (4, 8, 6)), np.broadcast_to(whole[2], (4, 8, 6))),
        "part": (a[3:5], whole[3:5]),
        "few": (a[3, 2, 1:5], whole[3, 2, 1:5]),
        "number": (a[8, 7, 5], whole[8, 7, 5]),
        "empty": (a[:, 3:3], whole[:, 3:3]),
    }


@pytest.mark.parametrize("copied", [True, False], ids=["copied", "as they are"])
@pytest.mark.parametrize("view", ["transposed", "steps", "backwards", "broadcast", "part", "few", "number", "empty"])
def test_views(view, copied):
    array, expected = views()[view]
    if not array.ndim:
        equal(call1(make("out[0] = a;", ensure_row_contiguous=copied), array), expected)
    elif copied:
        equal(call1(make(DOUBLE), array), 2 * expected)
    else:
        equal(call1(make(STRIDED_COPY, ensure_row_contiguous=False), array), expected)


def test_outputs_without_a_launch():
    shapes, dtypes = [(4,), (2, 0), (), (3, 3)], [mx.float32, mx.int8, mx.uint64, mx.bfloat16]
    kernel = make("o[0] = a[0]; p[0] = 0; *q = 0; r[0] = 0;", outputs=("o", "p", "q", "r"))
    results = call(kernel, mx.zeros((3,)), shapes=shapes, dtypes=dtypes, threads=0, init_value=9)
    for result, shape, dtype in zip(results, shapes, dtypes, strict=True):
        assert result.dtype == dtype
        np.testing.assert_array_equal(np.array(result.astype(mx.float32)), np.full(shape, 9, np.float32))
    # Without a value for them, they have memory all the same.
    mx.eval(call(kernel, mx.zeros((3,)), shapes=shapes, dtypes=dtypes, threads=0))


def test_memory_is_given_back():
    kernel = make("uint i = thread_position_in_grid.x; if (i > 0) out[i] = a[i];")
    a = mx.array(numbers((512, 512)))
    mx.eval(a)
    mx.synchronize()
    before = mx.get_active_memory()
    for _ in range(50):
        mx.eval(call1(kernel, a.T, init_value=1))
    mx.synchronize()
    assert mx.get_active_memory() <= before + a.nbytes
    mx.reset_peak_memory()
    mx.eval(call1(make(DOUBLE), a))
    assert mx.get_peak_memory() <= before + 2 * a.nbytes


# ---- Graphs


def test_a_thousand_kernels_in_a_row():
    kernel = make("uint i = thread_position_in_grid.x; out[i] = a[i] + 1;")
    x = mx.zeros((100,))
    for _ in range(1000):
        x = call1(kernel, x)
    equal(x, np.full(100, 1000, np.float32))
    assert len(kernel.history) == 1000


def test_a_thousand_kernels_side_by_side():
    kernel = make(ADD, inputs=("a", "b"))
    results = [call1(kernel, mx.full((64,), float(i)), mx.arange(64, dtype=mx.float32)) for i in range(1000)]
    mx.eval(results)
    for i, result in enumerate(results):
        equal(result, np.arange(64, dtype=np.float32) + i)


def test_copies_and_fills_live_as_long_as_they_are_used():
    # What is freed too early is what the next node's memory is made of.
    kernel = make("uint i = thread_position_in_grid.x; if (i % 3) out[i] = a[i] + b[i];", inputs=("a", "b"))
    rng = np.random.default_rng(0)
    for _ in range(20):
        pairs = [(rng.normal(size=(n, 40)).astype(np.float32), n) for n in rng.integers(10, 200, 30)]
        results = [call1(kernel, mx.array(a).T, (mx.array(a) * 2).T, init_value=n) for a, n in pairs]
        mx.eval(results)
        for (a, n), result in zip(pairs, results, strict=True):
            expected = (a + a * 2).T.reshape(-1).copy()
            expected[::3] = n
            equal(result, expected.reshape(40, -1))


def test_compiled_functions_that_run_many_times():
    double, add = make(DOUBLE), make(ADD, inputs=("a", "b"))

    @mx.compile
    def function(x, y):
        a = call1(double, mx.exp(x))
        b = call1(add, a.T, (y + 1).T, init_value=0)
        return call1(add, b, mx.sin(a).T).sum(axis=0), call1(double, b)

    for n in range(60):
        x, y = numbers((30, 50), seed=n), numbers((30, 50), seed=n + 100)
        first, second = function(mx.array(x), mx.array(y))
        mx.eval(first, second)
        a = 2 * np.exp(x.astype(np.float64))
        b = (a + y + 1).T
        np.testing.assert_allclose(np.array(first), (b + np.sin(a).T).sum(axis=0), rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(np.array(second), 2 * b, rtol=1e-5, atol=1e-5)


CUBE = "uint i = thread_position_in_grid.x; out[i] = a[i] * a[i] * a[i];"
CUBE_VJP = "uint i = thread_position_in_grid.x; out[i] = 3 * a[i] * a[i] * cotangent[i];"


def make_cube():
    forward, backward = make(CUBE, name="cube"), make(CUBE_VJP, inputs=("a", "cotangent"), name="cube_vjp")

    @custom_function
    def cube(x):
        return call1(forward, x)

    @cube.vjp
    def cube_vjp(x, cotangent, _):
        return call1(backward, x, cotangent)

    return cube


def test_gradients():
    cube = make_cube()

    def loss(x):
        return mx.sin(cube(2 * x)).sum()

    x = numbers((40, 30))
    exact = x.astype(np.float64)
    expected = 24 * exact**2 * np.cos(8 * exact**3)
    for gradient in (mx.grad(loss), mx.compile(mx.grad(loss)), mx.grad(mx.compile(loss))):
        for array in (mx.array(x), mx.array(x.T.copy()).T):
            np.testing.assert_allclose(np.array(gradient(array)), expected, rtol=2e-3, atol=2e-3)
    value, gradient = mx.value_and_grad(loss)(mx.array(x))
    np.testing.assert_allclose(value.item(), np.sin(8 * exact**3).sum(), rtol=1e-3)
    (result,), (pulled,) = mx.vjp(cube, [mx.array(x)], [mx.ones(x.shape)])
    np.testing.assert_allclose(np.array(result), x**3, rtol=1e-5)
    np.testing.assert_allclose(np.array(pulled), 3 * x**2, rtol=1e-5)


# ---- Streams and threads

# Long enough to be still running when the next thing is asked for.
SLOW = """
    uint i = thread_position_in_grid.x;
    float s = a[i];
    for (int k = 0; k < 300000; ++k) s = fma(s, 1.0f, 0.0f);
    out[i] = s + 1;
"""


def test_streams_wait_for_one_another():
    slow, double = make(SLOW), make(DOUBLE)
    streams = [mx.new_stream(mx.gpu), mx.new_stream(mx.gpu), mx.default_stream(mx.cpu)]
    x, expected = mx.zeros((256,)), np.zeros(256, np.float32)
    for n in range(9):
        # The CPU would take long for the slow one.
        on_cpu = n % 3 == 2
        x = call1(double if on_cpu else slow, x, stream=streams[n % 3])
        expected = 2 * expected if on_cpu else expected + 1
    equal(x, expected)
    assert {launch.target for launch in double.history} == {"cpu"}


def test_async_eval():
    slow = make(SLOW)
    results = [call1(slow, mx.full((256,), float(n))) for n in range(5)]
    for result in results:
        mx.async_eval(result)
    for n, result in enumerate(results):
        equal(result, np.full(256, n + 1, np.float32))


def test_threads():
    shared, failures = make(ADD, inputs=("a", "b")), []
    start = threading.Barrier(4)

    def work(number):
        try:
            own = make(f"uint i = thread_position_in_grid.x; out[i] = a[i] * {number + 2};")
            start.wait()
            for n in range(50):
                a = numbers((100 + n, 3), seed=n)
                result = call1(shared, call1(own, mx.array(a)), mx.array(a.T.copy()).T)
                np.testing.assert_allclose(np.array(result), (number + 3) * a, rtol=1e-5)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert {launch.target for launch in shared.history} == {"nvidia:0"}


# ---- CUDA bodies


SAXPY = """
    auto i = cooperative_groups::this_grid().thread_rank();
    if (i < size_t(y_shape[0])) out[i] = T(A) * x[i] + y[i * y_strides[0]] + y_ndim;
"""
REVERSE = """
    extern __shared__ float memory[];
    int i = threadIdx.x;
    memory[i] = x[blockIdx.x * blockDim.x + i];
    __syncthreads();
    out[blockIdx.x * blockDim.x + i] = memory[blockDim.x - 1 - i];
"""


def saxpy(cuda_kernel, x, y):
    kernel = cuda_kernel(name="saxpy", input_names=["x", "y"], output_names=["out"], source=SAXPY)
    (out,) = kernel(
        inputs=[x, y],
        template=[("T", mx.float32), ("A", 3)],
        grid=(x.size, 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[mx.float32],
    )
    return out


def test_cuda_bodies():
    x, y = numbers((1000,)), numbers((2000,), seed=1)[::2]
    expected = np.float32(3) * x + y + 1
    np.testing.assert_allclose(
        np.array(saxpy(kiln.mlx.cuda_kernel, mx.array(x), mx.array(y))), expected, rtol=1e-6, atol=1e-6
    )
    with kiln.mlx.install():
        np.testing.assert_allclose(
            np.array(saxpy(mx.fast.cuda_kernel, mx.array(x), mx.array(y))), expected, rtol=1e-6, atol=1e-6
        )


def test_cuda_bodies_with_shared_memory():
    for threads in (256, 1024):
        kernel = make(REVERSE, inputs=("x",), function=kiln.mlx.cuda_kernel, shared_memory=4 * threads)
        x = numbers((4 * threads,))
        result = call1(kernel, mx.array(x), threadgroup=(threads, 1, 1))
        equal(result, x.reshape(4, threads)[:, ::-1].reshape(-1))


# ---- In MLX's place


def test_installed():
    with kiln.mlx.install(metal=True):
        assert mx.gpu == mx.DeviceType.gpu and mx.metal.is_available()
        kernel = make(DOUBLE, function=mx.fast.metal_kernel)
        assert isinstance(kernel, kiln.Kernel)
        a = numbers((20,))
        equal(call1(kernel, mx.array(a), stream=mx.gpu), 2 * a)
        assert kernel.history[-1].target == "nvidia:0"


# ---- Errors


def test_errors_come_at_evaluation_and_harm_nothing():
    a = mx.array(numbers((100,)))
    wrong = call1(make("out[0] = nothing;"), a)
    with pytest.raises(kiln.CompileError, match="nothing"):
        mx.eval(wrong)
    large = make("threadgroup float much[100000]; much[0] = a[0]; out[0] = much[0];")
    with pytest.raises(kiln.UnsupportedError, match=r"bytes of threadgroup memory, and a GPU of sm_"):
        mx.eval(call1(large, a))
    with pytest.raises(ValueError, match=r"Expected `threadgroup` to have at most 1024"):
        call1(make(DOUBLE), a, threadgroup=(2000, 1, 1), threads=2000)
    equal(call1(make(DOUBLE), a), 2 * np.array(a))


FAULT = """
import kiln
import kiln.mlx
import mlx.core as mx

kernel = kiln.mlx.metal_kernel(
    "fault", ["a"], ["out"], "out[long(a[0]) << 40] = 1;", compile_options={"bounds": "off"}
)
(out,) = kernel(
    inputs=[mx.ones((9,))], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(9,)], output_dtypes=[mx.float32]
)
try:
    mx.eval(out)
    mx.synchronize()
    print(out.tolist())
except RuntimeError as error:
    print("raised:", error)
"""


def test_a_fault_is_an_error():
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=120, check=False)
    # MLX may end a process whose context is lost; it does not go on with wrong numbers.
    assert "illegal" in done.stdout + done.stderr, done.stdout + done.stderr
