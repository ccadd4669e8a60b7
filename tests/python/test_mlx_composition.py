"""Kernels among MLX's own operations: transformations, graphs, streams and threads, against NumPy."""

import threading

import mlx.core as mx
import numpy as np
import pytest
from mlx_kernels import ADD, DOUBLE, STRIDED_COPY, call, call1, custom_function, make, needs_own_kernels, numbers

CUBE = "uint i = thread_position_in_grid.x; out[i] = a[i] * a[i] * a[i];"
CUBE_VJP = "uint i = thread_position_in_grid.x; out[i] = 3 * a[i] * a[i] * cotangent[i];"


# An array without dimensions is a number in the body.
CUBE_OF_NUMBER = "out[0] = a * a * a;"
CUBE_OF_NUMBER_VJP = "out[0] = 3 * a * a * cotangent;"


def make_cube():
    """x³ with its gradient, both by kernels."""
    forward, forward_of_number = make(CUBE, name="cube"), make(CUBE_OF_NUMBER, name="cube")
    inputs = ("a", "cotangent")
    backward = make(CUBE_VJP, inputs=inputs, name="cube_vjp")
    backward_of_number = make(CUBE_OF_NUMBER_VJP, inputs=inputs, name="cube_vjp")

    @custom_function
    def cube(x):
        return call1(forward if x.ndim else forward_of_number, x)

    @cube.vjp
    def cube_vjp(x, cotangent, _):
        return call1(backward if x.ndim else backward_of_number, x, cotangent)

    return cube


def check(result, expected, tolerance=1e-6):
    np.testing.assert_allclose(np.array(result), expected, rtol=tolerance, atol=tolerance)


# ---- Transformations


def views():
    whole = numbers((9, 8))
    a = mx.array(whole)
    mx.eval(a)
    return {
        "transposed": (a.T, whole.T),
        "steps": (a[::2, ::3], whole[::2, ::3]),
        "backwards": (a[::-1, ::-2], whole[::-1, ::-2]),
        "broadcast": (mx.broadcast_to(a[2], (4, 8)), np.broadcast_to(whole[2], (4, 8))),
        "7 elements": (a[3, :7], whole[3, :7]),
        "empty": (a[:, 3:3], whole[:, 3:3]),
    }


def arrays():
    whole = numbers((40, 30), seed=2)
    a = mx.array(whole)
    mx.eval(a)
    return views() | {
        "whole": (a, whole),
        "8 elements": (a[3, :8], whole[3, :8]),
        "0-dimensional": (mx.array(whole[1, 2]), np.array(whole[1, 2])),
        "0-dimensional within an array": (a[30, 20], np.array(whole[30, 20])),
        "number broadcast": (mx.broadcast_to(a[0, 0], (5, 3)), np.broadcast_to(whole[0, 0], (5, 3))),
        "empty from the start": (mx.zeros((0,)), np.zeros(0, np.float32)),
        "not evaluated": (mx.array(whole) * 1, whole),
    }


def cotangent_of(x):
    return numbers(x.shape, seed=1)


def by_async_eval(cube, x):
    result = cube(x)
    mx.async_eval(result)
    return result


def by_stream(cube, x):
    with mx.stream(mx.new_stream(mx.cpu)):
        result = cube(x + 0) + 0
        mx.eval(result)
    return result


def compiled_thrice(cube, x):
    function = mx.compile(lambda x: mx.exp(-cube(x) * 0.1) + cube(x + 1))
    for _ in range(3):
        result = function(x)
        mx.eval(result)
    return result


def loss_of(cube):
    return lambda x: mx.sin(cube(2 * x)).sum()


def gradient(x):
    return 3 * np.float32(2) * (2 * x) ** 2 * np.cos(8 * x**3)


# What is made of x³ and of its array, and what must come out.
TRANSFORMATIONS = {
    "eval": (lambda cube, x: cube(x), lambda x: x**3),
    "compile": (compiled_thrice, lambda x: np.exp(-(x**3) * 0.1) + (x + 1) ** 3),
    "grad": (lambda cube, x: mx.grad(loss_of(cube))(x), gradient),
    "compile of grad": (lambda cube, x: mx.compile(mx.grad(loss_of(cube)))(x), gradient),
    "grad of compile": (lambda cube, x: mx.grad(mx.compile(loss_of(cube)))(x), gradient),
    "value_and_grad": (lambda cube, x: mx.value_and_grad(loss_of(cube))(x)[0], lambda x: np.sin(8 * x**3).sum()),
    "results of vjp": (lambda cube, x: mx.vjp(cube, [x], [mx.array(cotangent_of(x))])[0][0], lambda x: x**3),
    "vjp": (
        lambda cube, x: mx.vjp(cube, [x], [mx.array(cotangent_of(x))])[1][0],
        lambda x: 3 * x**2 * cotangent_of(x),
    ),
    "checkpoint": (lambda cube, x: mx.grad(lambda x: mx.checkpoint(cube)(x).sum())(x), lambda x: 3 * x**2),
    "async_eval": (by_async_eval, lambda x: x**3),
    "stream": (by_stream, lambda x: x**3),
}


def check_transformation(name, cube, array, expected):
    transform, reference = TRANSFORMATIONS[name]
    result = transform(cube, array)
    wanted = reference(expected)
    assert result.shape == np.shape(wanted) and result.dtype == mx.float32
    check(result, wanted, 2e-3 if "grad" in name else 1e-5)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("kind", arrays())
def test_transformations(kind, transformation):
    check_transformation(transformation, make_cube(), *arrays()[kind])


def test_transformations_in_threads():
    cube = make_cube()

    def work(number):
        # Each thread begins elsewhere, so that different transformations meet.
        names = list(TRANSFORMATIONS)
        for kind, (array, expected) in arrays().items():
            for name in names[number:] + names[:number]:
                try:
                    check_transformation(name, cube, array, expected)
                except AssertionError as error:
                    raise AssertionError(f"{name} of {kind}") from error

    in_threads(4, work)


@pytest.mark.parametrize("view", views())
def test_transformations_of_views_that_are_not_copied(view):
    array, expected = views()[view]
    kernel = make(STRIDED_COPY, ensure_row_contiguous=False)
    check(mx.compile(lambda x: call1(kernel, x) + 1)(array), expected + 1)
    check(mx.compile(lambda x: call1(kernel, x.T) + 1)(array), expected.T + 1)


def test_value_and_grad_of_several_arguments_and_outputs():
    forward = make(
        "uint i = thread_position_in_grid.x; product[i] = a[i] * b[i]; difference[i] = a[i] - b[i];",
        inputs=("a", "b"),
        outputs=("product", "difference"),
    )
    backward = make(
        """
        uint i = thread_position_in_grid.x;
        da[i] = b[i] * cp[i] + cd[i];
        db[i] = a[i] * cp[i] - cd[i];
        """,
        inputs=("a", "b", "cp", "cd"),
        outputs=("da", "db"),
    )

    @custom_function
    def both(a, b):
        return call(forward, a, b, shapes=[a.shape] * 2)

    @both.vjp
    def both_vjp(primals, cotangents, _):
        return call(backward, *primals, *cotangents, shapes=[primals[0].shape] * 2)

    a, b = numbers((20,)), numbers((20,), seed=1)

    def loss(a, b):
        product, difference = both(a, b)
        return (product * product).sum() + (3 * difference).sum()

    value, (da, db) = mx.value_and_grad(loss, argnums=(0, 1))(mx.array(a), mx.array(b))
    check(value, ((a * b) ** 2).sum() + 3 * (a - b).sum(), 1e-5)
    check(da, 2 * a * b * b + 3, 1e-5)
    check(db, 2 * a * b * a - 3, 1e-5)
    # A gradient of which only one output's cotangent is known.
    db_only = mx.grad(lambda a, b: both(a, b)[1].sum(), argnums=1)(mx.array(a), mx.array(b))
    check(db_only, -np.ones(20))


def test_second_derivative():
    square = make("uint i = thread_position_in_grid.x; out[i] = a[i] * a[i];")
    cube = make_cube()

    @custom_function
    def quartic(x):
        return call1(square, call1(square, x))

    @quartic.vjp
    def quartic_vjp(x, cotangent, _):
        return 4 * cube(x) * cotangent

    x = numbers((15,))
    second = mx.grad(lambda x: mx.grad(lambda y: quartic(y).sum())(x).sum())(mx.array(x))
    check(second, 12 * x**2, 1e-5)


def transformations(kernel, custom, **options):
    """What becomes of a function of one kernel; MLX's own kernels are used where they are exported."""

    def function(x):
        return call1(kernel, x, **options)

    if custom:
        plain, function = function, mx.custom_function(function)
        function.vjp(lambda x, cotangent, _: 2 * cotangent)
        function.jvp(lambda x, tangent: 2 * tangent)
        function.vmap(lambda x, axis: (plain(x), axis))
    return {
        "vjp": lambda x: mx.vjp(function, [x], [x])[1][0],
        "grad": mx.grad(lambda x: function(x).sum()),
        "jvp": lambda x: mx.jvp(function, [x], [x])[1][0],
        "vmap": mx.vmap(function),
    }


@needs_own_kernels
@pytest.mark.parametrize("custom", [False, True], ids=["alone", "custom"])
@pytest.mark.parametrize("name", transformations(None, False))
def test_transformations_do_what_mlx_does(name, custom, tmp_path):
    x = mx.array(numbers((2, 3)))
    mx.eval(x)
    own = transformations(make(DOUBLE, function=mx.fast.metal_kernel), custom, stream=mx.gpu)[name]
    ours = transformations(make(DOUBLE), custom)[name]
    try:
        mx.export_function(str(tmp_path / "own.mlxfn"), own, x)
    except ValueError as error:
        with pytest.raises(ValueError) as raised:
            ours(x)
        assert str(raised.value) == str(error)
        transformation = {"grad": "vjp"}.get(name, name)
        assert str(error) == f"[Primitive::{transformation}] Not implemented for CustomKernel."
    else:
        assert custom and name in ("vjp", "grad")
        check(ours(x), 2 * np.array(x) if name == "vjp" else np.full((2, 3), 2))


def test_what_does_not_depend_on_the_argument_is_not_transformed():
    x = mx.arange(6, dtype=mx.float32)
    y = call1(make(DOUBLE), x)
    check(mx.grad(lambda x: (x * y).sum())(x), 2 * np.arange(6))


def test_shapeless_compile_is_mlxs_error():
    kernel = make(DOUBLE)
    function = mx.compile(lambda x: call1(kernel, x) + 1, shapeless=True)
    with pytest.raises(ValueError) as error:
        function(mx.arange(6, dtype=mx.float32))
    assert str(error.value) == "[Primitive::output_shapes] CustomKernel cannot infer output shapes."


def test_compiled_functions_of_several_shapes():
    cube = make_cube()
    function = mx.compile(lambda x: cube(x) * 2)
    for shape in [(5,), (7,), (8,), (2, 3), (0, 4), (5,)]:
        x = numbers(shape)
        check(function(mx.array(x)), 2 * x**3, 1e-5)


def test_compiled_state():
    double = make(DOUBLE)
    state = {"weight": mx.arange(6, dtype=mx.float32), "steps": mx.array(0)}

    def step(x):
        state["weight"] = call1(double, state["weight"]) - x
        state["steps"] = state["steps"] + 1
        return state["weight"].sum()

    compiled = mx.compile(step, inputs=state, outputs=state)
    expected = np.arange(6, dtype=np.float32)
    for i in range(5):
        total = compiled(mx.array(float(i)))
        expected = 2 * expected - i
        check(total, expected.sum())
    check(state["weight"], expected)
    assert state["steps"].item() == 5


def test_compiled_functions_do_not_merge_different_kernels():
    x = numbers((50,))
    double, cube = make(DOUBLE), make(CUBE)
    other = make("uint i = thread_position_in_grid.x; out[i] = N * a[i];")

    def function(x):
        return (
            call1(double, x),
            call1(cube, x),
            call1(double, x),
            call1(other, x, template=[("N", 5)]),
            call1(other, x, template=[("N", 7)]),
            call1(other, x, template=[("N", 7)], threads=0, init_value=1),
            call1(other, x, template=[("N", 7)], threads=25, init_value=0),
        )

    for results in (mx.compile(function)(mx.array(x)), function(mx.array(x))):
        expected = (2 * x, x**3, 2 * x, 5 * x, 7 * x, np.ones(50), 7 * x * (np.arange(50) < 25))
        for result, value in zip(results, expected, strict=True):
            check(result, value)


# ---- Graphs


def test_kernels_of_one_name():
    # The name, the inputs, the outputs and the length of the text are the same.
    bodies = [f"uint i = thread_position_in_grid.x; out[i] = a[i] * {n};" for n in range(2, 9)]
    x = numbers((30,))
    result = mx.array(x)
    kernels = [make(body, name="same") for body in bodies]
    parts = [call1(kernel, result) for kernel in kernels]
    for kernel in kernels:
        result = call1(kernel, result)
    mx.eval(result, *parts)
    for n, part in zip(range(2, 9), parts, strict=True):
        check(part, x * np.float32(n))
    check(result, x * np.float32(2 * 3 * 4 * 5 * 6 * 7 * 8), 1e-5)


def test_kernels_of_one_name_and_body():
    # Headers, options and names of arguments tell kernels apart too.
    x = numbers((30,))
    body = "uint i = thread_position_in_grid.x; out[i] = FACTOR * a[i] + b[i];"
    arrays = mx.array(x), mx.ones(30)
    results = [
        call1(make(body, inputs=("a", "b"), header="#define FACTOR 2"), *arrays),
        call1(make(body, inputs=("b", "a"), header="#define FACTOR 2"), *arrays),
        call1(make(body, inputs=("a", "b"), header="#define FACTOR 3"), *arrays),
    ]
    mx.eval(results)
    for result, expected in zip(results, (2 * x + 1, x + 2, 3 * x + 1), strict=True):
        check(result, expected)


def test_a_thousand_kernels_in_a_row():
    increment = make("uint i = thread_position_in_grid.x; out[i] = a[i] + 1;")
    x = mx.zeros((10,))
    for _ in range(1000):
        x = call1(increment, x)
    check(x, np.full(10, 1000))


def test_a_thousand_kernels_side_by_side():
    add = make("uint i = thread_position_in_grid.x; out[i] = a[i] + N;")
    x = mx.arange(10, dtype=mx.float32)
    results = [call1(add, x, template=[("N", n % 5)]) + n for n in range(1000)]
    total = sum(results[1:], results[0])
    check(total, 1000 * np.arange(10) + sum(n + n % 5 for n in range(1000)))
    mx.eval(results)
    for n in (0, 1, 998, 999):
        check(results[n], np.arange(10) + n + n % 5)


def test_a_diamond_of_kernels_and_operations():
    x = numbers((64,), seed=3) / 8
    double, add = make(DOUBLE), make(ADD, inputs=("a", "b"))
    array, expected = mx.array(x), x.astype(np.float64)
    for _ in range(100):
        left, right = call1(double, array), mx.tanh(array)
        array = call1(add, left, right) / 2
        expected = (2 * expected + np.tanh(expected)) / 2
        array, expected = array / 1.5, expected / 1.5
    check(array, expected, 1e-5)


def test_kernels_dropped_before_evaluation():
    def build(x):
        for n in range(1, 6):
            kernel = make(f"uint i = thread_position_in_grid.x; out[i] = a[i] + {n};", name=f"dropped{n}")
            x = call1(kernel, x * 1)
        return x

    x = numbers((12,))
    check(build(mx.array(x)), x + 15, 1e-5)


def test_results_that_nobody_wants():
    kernel = make("uint i = thread_position_in_grid.x; out[i] = a[i] + 41;", name="unwanted")
    x = mx.zeros((5,))
    for _ in range(100):
        call(kernel, x)
    assert kernel.history == []
    check(call1(kernel, x), np.full(5, 41))
    assert len(kernel.history) == 1


def test_evaluation_happens_once():
    kernel = make(DOUBLE)
    x = call1(kernel, mx.ones(9))
    y, z = x + 1, x * 2
    mx.eval(y)
    mx.eval(x, y, z)
    check(z, np.full(9, 4))
    assert len(kernel.history) == 1


# ---- Streams and asynchronous evaluation


def test_async_eval():
    double = make(DOUBLE)
    x = numbers((2000,))
    array, chain = mx.array(x), []
    for _ in range(50):
        array = call1(double, array) - mx.array(x)
        mx.async_eval(array)
        chain.append(array)
    for result in reversed(chain):
        check(result, x, 1e-5)


def test_streams_wait_for_one_another():
    first, second = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
    # Slow enough that a stream which did not wait would read what is not there yet.
    slow = make(
        """
        uint i = thread_position_in_grid.x;
        float x = a[i];
        for (int k = 0; k < 20000; ++k) x = fma(x, 1.0f, 0.0f);
        out[i] = 2 * x;
        """
    )
    double, add = make(DOUBLE), make(ADD, inputs=("a", "b"))
    x = numbers((300,))
    for _ in range(5):
        a = call1(slow, mx.array(x), stream=first)
        b = call1(double, a, stream=second)
        c = mx.add(a, b, stream=mx.cpu)
        d = call1(add, c, b, stream=first)
        mx.async_eval(d)
        e = call1(add, d, mx.negative(a, stream=second))
        check(e, 8 * x, 1e-5)
        check(c, 6 * x, 1e-5)


def test_streams_wait_for_kernels_with_barriers():
    first, second = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
    reverse = make(
        """
        threadgroup float shared[64];
        uint i = thread_position_in_grid.x, lane = thread_position_in_threadgroup.x;
        shared[lane] = a[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = shared[63 - lane];
        """
    )
    x = numbers((640,))
    reversed_x = x.reshape(10, 64)[:, ::-1].reshape(640)
    for asynchronous in (False, True):
        array, expected = mx.array(x), x
        for _ in range(10):
            a = call1(reverse, array, stream=first)
            b = mx.add(a, array, stream=second)
            c = call1(reverse, b, stream=second)
            array = mx.multiply(mx.add(c, a, stream=first), 0.25, stream=mx.cpu)
            if asynchronous:
                mx.async_eval(array)
            turned = expected.reshape(10, 64)[:, ::-1].reshape(640)
            expected = ((turned + expected) + turned) * np.float32(0.25)
        check(array, expected, 1e-5)
    check(call1(reverse, mx.array(x)), reversed_x)


@pytest.mark.parametrize(
    "kind", ["none", "device", "device type", "stream", "thread-local", "thread-unsafe", "context"]
)
def test_ways_to_name_a_stream(kind):
    if kind.startswith("thread") and not hasattr(mx, f"new_{kind.replace('-', '_')}_stream"):
        pytest.skip("this MLX has no such streams")
    stream = {
        "device": lambda: mx.Device(mx.cpu, 0),
        "device type": lambda: mx.cpu,
        "stream": lambda: mx.new_stream(mx.cpu),
        "thread-local": lambda: mx.new_thread_local_stream(mx.cpu),
        "thread-unsafe": lambda: mx.new_thread_unsafe_stream(mx.cpu),
    }.get(kind, lambda: None)()
    x = numbers((20,))
    if kind == "context":
        with mx.stream(mx.new_stream(mx.cpu)):
            result = call1(make(DOUBLE), mx.array(x) + 1) - 2
    else:
        result = call1(make(DOUBLE), mx.array(x) + 1, stream=stream) - 2
    check(result, 2 * x, 1e-5)


# ---- Threads


def in_threads(count, function):
    """Runs function(number) in threads that start together; raises what any of them raised."""
    start, errors = threading.Barrier(count), []

    def run(number):
        try:
            start.wait()
            function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_with_their_own_streams():
    shared = make(DOUBLE, name="shared")
    whole = numbers((9, 8))
    array = mx.array(whole)
    mx.eval(array)

    def work(number):
        own = make(f"uint i = thread_position_in_grid.x; out[i] = a[i] + {number};", name="own")
        strided = make(STRIDED_COPY, ensure_row_contiguous=False)
        cube = make_cube()
        with mx.stream(mx.new_stream(mx.cpu)):
            for i in range(30):
                x = array * (number + i)
                expected = whole * np.float32(number + i)
                mx.async_eval(x)
                check(call1(own, call1(shared, x)), 2 * expected + number, 1e-5)
                check(call1(strided, x[::-1].T), expected[::-1].T, 1e-5)
                check(mx.grad(lambda y: cube(y).sum())(x / 10), 3 * (expected / 10) ** 2, 1e-4)

    in_threads(6, work)


def test_threads_that_launch_one_kernel_for_the_first_time():
    x = numbers((100,))
    for round in range(5):
        kernel = make(f"uint i = thread_position_in_grid.x; out[i] = a[i] * {round + 100};", name="together")
        results: dict[int, np.ndarray] = {}

        def work(number, kernel=kernel, results=results):
            results[number] = np.array(call1(kernel, mx.array(x)))

        in_threads(8, work)
        assert len(results) == 8
        for result in results.values():
            check(result, x * np.float32(round + 100))
        # Once for all of them.
        codes = [launch.code for launch in kernel.history]
        assert sorted(codes) == ["compiled"] + ["memory"] * 7


def test_threads_compile_functions_at_once():
    def work(number):
        cube = make_cube()
        function = mx.compile(lambda x: cube(x) + number)
        for _ in range(10):
            x = numbers((20 + number,), seed=number)
            check(function(mx.array(x)), x**3 + number, 1e-5)

    in_threads(4, work)


def test_evaluated_arrays_go_from_thread_to_thread():
    kernel = make(DOUBLE)
    value = [call1(kernel, mx.ones(50))]
    mx.eval(value)

    def work(_):
        value[0] = call1(kernel, value[0])
        mx.eval(value)

    for _ in range(6):
        in_threads(1, work)
    check(value[0], np.full(50, 2.0**7))
