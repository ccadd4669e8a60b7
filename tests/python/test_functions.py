"""Functions of arrays (`Kernel.function`) by themselves: what they take, what they refuse, NumPy, pickling. Those of other
libraries are in test_functions_mlx.py, test_functions_torch.py and test_functions_jax.py."""

import functools
import multiprocessing
import pickle
import re
from typing import Any

import function_definitions as definitions
import kiln
import numpy as np
import pytest
from kiln._functions import Size

SQUARE: Any = kiln.metal_kernel("square", ["x"], ["y"], definitions.INDEX + "y[i] = x[i] * x[i];")
GOOD: dict[str, Any] = {
    "output_shapes": lambda x: [x.shape],
    "output_dtypes": lambda x: [x.dtype],
    "grid": lambda x: (x.size, 1, 1),
    "threadgroup": (256, 1, 1),
}


def make(**changes):
    return SQUARE.function(**{**GOOD, **changes})


def four():
    return np.arange(4, dtype=np.float32)


def test_values_of_numpy_arrays():
    assert np.array_equal(make()(four()), four() ** 2)
    assert np.array_equal(make(output_shapes=[(4,)], output_dtypes=["float32"], grid=4)(four()), four() ** 2)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(make()(x.T), x.T**2)
    assert make()(np.empty((0, 3), np.float32)).shape == (0, 3)
    y, z = definitions.powers(x)
    assert np.array_equal(y, x**2) and np.array_equal(z, x**3)


def test_numbers_are_arrays_without_dimensions():
    function = kiln.metal_kernel("k", ["x", "s"], ["y"], definitions.INDEX + "y[i] = x[i] * s;").function(
        output_shapes=lambda x, s: [x.shape] if s.shape == () else [],
        output_dtypes=lambda x, s: [s.dtype],
        grid=lambda x, s: x.size * s.size,
        threadgroup=4,
    )
    for number, dtype in ((2, "int32"), (2.5, "float32")):
        y = function(four(), number)
        assert y.dtype == dtype and np.array_equal(y, (four() * number).astype(dtype))


def test_specs_tell_shapes_and_dtypes():
    seen = []

    def grid(x):
        seen.append((x.shape, x.dtype, x.ndim, x.size))
        return 12

    make(grid=grid)(np.ones((3, 4), np.float32))
    assert seen == [((3, 4), "float32", 2, 12)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_template_arguments_from_dtypes(dtype):
    function = kiln.metal_kernel("k", ["x"], ["y"], definitions.INDEX + "y[i] = T(x[i]) + N;").function(
        **{**GOOD, "template": lambda x: {"T": x.dtype, "N": x.ndim, "UNUSED": True}}
    )
    assert np.array_equal(function(np.arange(4).astype(dtype)), np.arange(4).astype(dtype) + np.dtype(dtype).type(1))


def test_init_value():
    function = kiln.metal_kernel("k", ["x"], ["y"], "if (thread_position_in_grid.x == 0) y[0] = x[0];").function(
        **{**GOOD, "init_value": lambda x: x.size}
    )
    assert np.array_equal(function(four()), [0, 4, 4, 4])


# ---- What is refused, and when.


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"output_shapes": [(4,), (4,)]}, ValueError, "Expected `output_shapes` to have size 1 but got size 2."),
        ({"output_dtypes": []}, ValueError, "Expected `output_dtypes` to have size 1 but got size 0."),
        ({"output_dtypes": ["float31"]}, TypeError, "Expected `output_dtypes` to be made of dtypes but got 'float31'."),
        ({"output_shapes": 4}, TypeError, "Expected `output_shapes` to be a list of shapes but got int."),
        (
            {"output_shapes": (2, 4)},
            TypeError,
            "Expected `output_shapes` to be a list of shapes but got one shape: write [(2, 4)].",
        ),
        (
            {"output_shapes": [4]},
            TypeError,
            "Expected `output_shapes` to be a list of shapes but got a list of ints: write [(4,)].",
        ),
        ({"grid": (1, 1, 1, 1)}, ValueError, "Expected `grid` to have 1 to 3 dimensions but got 4."),
        ({"grid": "x"}, TypeError, "Expected `grid` to be made of ints but got str."),
        ({"grid": 1.5}, TypeError, "Expected `grid` to be made of ints but got float."),
        ({"template": 3}, TypeError, "Expected `template` to be a list of pairs but got int."),
        ({"template": [("T-1", 3)]}, ValueError, "Expected the names in `template` to be identifiers but got 'T-1'."),
        ({"init_value": "x"}, TypeError, "Expected `init_value` to be a number but got str."),
    ],
)
def test_wrong_values(changes, error, message):
    with pytest.raises(error, match=f"^{re.escape('[metal_kernel] ' + message)}$"):
        make(**changes)
    ((name, value),) = changes.items()
    if error is not ValueError or name != "init_value":
        with pytest.raises(error, match=f"^{re.escape('[metal_kernel] ' + message)}$"):
            make(**{name: lambda x: value})(four())


def test_wrong_counts_of_arrays():
    with pytest.raises(ValueError, match=r"^\[metal_kernel\] `square` takes 1 input \(x\) but got 2\.$"):
        make()(four(), four())
    two = kiln.metal_kernel("sum", ["x", "b"], ["y"], "y[0] = x[0] + b[0];").function(
        output_shapes=[(1,)], output_dtypes=["float32"], grid=1, threadgroup=1
    )
    with pytest.raises(ValueError, match=r"^\[metal_kernel\] `sum` takes 2 inputs \(x, b\) but got 1\.$"):
        two(four())


def test_a_function_of_an_unknown_argument():
    kernel: Any = kiln.metal_kernel("k", ["x"], ["y"], "y[0] = x[0];")
    with pytest.raises(TypeError, match=r"^function\(\) got an unexpected keyword argument 'gird'$"):
        kernel.function(output_shapes=[(1,)], output_dtypes=["float32"], gird=1, threadgroup=1)


def test_specs_have_no_elements():
    for use in (lambda x: (int(x[0]), 1, 1), lambda x: (x.item(), 1, 1), lambda x: (int(x), 1, 1)):
        with pytest.raises((TypeError, AttributeError), match="ArraySpec"):
            make(grid=use)(four())


def test_results_from_data_are_refused():
    mx = pytest.importorskip("mlx.core")
    count = mx.array(4)
    with pytest.raises(TypeError) as error:
        make(grid=lambda x: (count, 1, 1))(four())
    assert str(error.value) == (
        "[metal_kernel] Expected `grid` to be computed from shapes and dtypes but got mlx.core.array, whose elements are data."
    )


def test_kernels_that_can_be_no_functions():
    by_name = kiln.metal_kernel("by_name", "y[0] = x[0];")
    with pytest.raises(ValueError) as error:
        by_name.function(**GOOD)
    assert str(error.value) == (
        "[metal_kernel] `by_name` was made without `input_names`, and a function takes its arrays in their order."
    )
    writes = kiln.metal_kernel(
        "writes", ["x"], ["y"], "((device float*)x)[0] = 1;", compile_options={"writable_inputs": ["x"]}
    )
    with pytest.raises(ValueError) as error:
        writes.function(**GOOD)
    assert str(error.value) == (
        "[metal_kernel] `writes` writes inputs (`writable_inputs`), and a function of arrays writes none."
    )


def test_history_lists_launches_of_equal_functions():
    body = definitions.INDEX + "y[i] = x[i] + 41;"
    first, second = (kiln.metal_kernel("listed", ["x"], ["y"], body).function(**GOOD) for _ in range(2))
    assert first.history == []
    first(four())
    second(four())
    assert [(launch.grid, launch.code) for launch in first.history] == [((4, 1, 1), "compiled"), ((4, 1, 1), "memory")]
    assert len(second.history) == 2


def test_rules_are_functions():
    function = make()
    for name, message in (
        ("vjp", "Expected `vjp` to be a function but got int."),
        ("jvp", "Expected `jvp` to be a function but got int."),
        ("vmap", "Expected `vmap` to be a function, 'grid' or 'sequential' but got int."),
    ):
        with pytest.raises(TypeError, match=f"^{re.escape('[metal_kernel] ' + message)}$"):
            getattr(function, name)(3)
    with pytest.raises(ValueError, match="Expected `vmap` to be a function, 'grid' or 'sequential' but got 'parallel'"):
        function.vmap("parallel")


def test_a_rule_may_wrap_one_with_other_parameters():
    def with_factor(rule):
        @functools.wraps(rule)
        def wrapper(*arguments):
            return rule(2, *arguments)

        return wrapper

    @with_factor
    def rule(factor, x, cotangent, output):
        return factor * cotangent

    assert make().vjp(rule) is not None


def test_rules_and_callables_with_other_parameters_are_refused():
    function = kiln.metal_kernel("scale", ["x", "s"], ["y"], definitions.INDEX + "y[i] = x[i] * s;").function(
        output_shapes=lambda x, _: [x.shape], output_dtypes=lambda x, _: [x.dtype], grid=4, threadgroup=4
    )
    for name, call in (
        ("vjp", "rule((x, s), cotangents, outputs)"),
        ("jvp", "rule((x, s), tangents)"),
        ("vmap", "rule((x, s), axes)"),
    ):
        with pytest.raises(TypeError) as error:
            getattr(function, name)(lambda x, s, c, y: (x, s))
        assert str(error.value) == (
            f"[metal_kernel] Expected the {name} rule of `scale` to be called as `{call}` but got a function of (x, s, c, y)."
        )
    with pytest.raises(
        TypeError, match=re.escape("called as `rule(x, cotangents, outputs)` but got a function of (x).")
    ):
        make().vjp(lambda x: x)
    with pytest.raises(TypeError) as error:
        make(grid=lambda x, s: 4)
    assert str(error.value) == (
        "[metal_kernel] Expected `grid` to take an argument for each input, (x), but got a function of (x, s)."
    )


def test_rules_are_returned_as_they_are():
    """So that a decorated rule keeps its name, and can be pickled by it."""
    function = make()

    def rule(*_):
        return None

    assert function.vjp(rule) is rule and function.jvp(rule) is rule and function.vmap(rule) is rule
    assert repr(function) == "<kiln.Function of `square` with vjp, jvp, vmap>"
    assert repr(make()) == "<kiln.Function of `square`>"


def test_references_are_those_of_the_content():
    assert definitions.square._reference == pickle.loads(pickle.dumps(definitions.square))._reference
    assert definitions.square._reference != definitions.product._reference
    first, second = make(), make()
    assert first._reference == second._reference
    first.vjp(lambda *_: None)
    second.vjp(lambda *_: None)
    assert first._reference != second._reference


# ---- Sizes that are not known yet.


def evaluate(steps, dimensions):
    """What the handler computes (python/src/xla_launch.cpp)."""
    stack: list[int] = []
    steps = list(steps)
    while steps:
        step = steps.pop(0)
        if step == Size.CONSTANT:
            stack.append(steps.pop(0))
        elif step == Size.DIMENSION:
            stack.append(dimensions[steps.pop(0)][steps.pop(0)])
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(
                {
                    Size.ADD: lambda a, b: a + b,
                    Size.SUBTRACT: lambda a, b: a - b,
                    Size.MULTIPLY: lambda a, b: a * b,
                    Size.DIVIDE: lambda a, b: a // b,
                    Size.REMAINDER: lambda a, b: a % b,
                }[step](left, right)
            )
    (result,) = stack
    return result


@pytest.mark.parametrize(
    "compute",
    [
        lambda n, m: n * m,
        lambda n, m: -(-n // 32) * 32 + m,
        lambda n, m: (n - m) % 7 - 100 // m,
        lambda n, m: 3 - n + 2 * m - m % 5,
        lambda n, m: 1000 % n + 5 // (m - 3 * n) + +n,
    ],
)
def test_sizes_are_computed_as_ints_are(compute):
    size = compute(Size((Size.DIMENSION, 0, 0)), Size((Size.DIMENSION, 1, 1)))
    for n, m in ((5, 3), (64, 1), (7, 22), (1, 4)):
        assert evaluate(size.steps, [(n,), (0, m)]) == compute(n, m)


def test_sizes_are_no_ints():
    size = Size((Size.DIMENSION, 0, 0))
    message = "a size that is not known yet can be added, multiplied and divided, and nothing else"
    for use in (int, bool, lambda n: n > 3, lambda n: max(n, 1), lambda n: n == 4, lambda n: range(n)):
        with pytest.raises(TypeError, match=message):
            use(size)


# ---- Pickling.


def run_in_child(content, x, queue):
    queue.put(pickle.loads(content)(x))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_functions_reach_other_processes(method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=run_in_child, args=(pickle.dumps(definitions.square), four(), queue))
    child.start()
    result = queue.get(timeout=300)
    child.join()
    assert np.array_equal(result, four() ** 2)


def call(kernel):
    return kernel(
        inputs=[four()], output_shapes=[(4,)], output_dtypes=["float32"], grid=(4, 1, 1), threadgroup=(4, 1, 1)
    )[0]


def test_kernels_pickle():
    kernel = pickle.loads(pickle.dumps(SQUARE))
    assert kernel.name == "square" and np.array_equal(call(kernel), four() ** 2)


def test_options_and_files_pickle(tmp_path):
    (tmp_path / "twice.h").write_text("inline float twice(float x) { return 2 * x; }\n")
    (tmp_path / "body.metal").write_text("uint i = thread_position_in_grid.x; y[i] = twice(x[i]) / 0.1f;")
    (tmp_path / "header.metal").write_text('#include "twice.h"\n')
    kernel = kiln.metal_kernel(
        "k",
        ["x"],
        ["y"],
        tmp_path / "body.metal",
        header=tmp_path / "header.metal",
        compile_options={"math_mode": "fast", "bounds": "off", "specialize": False},
    )
    content = pickle.dumps(kernel)
    for path in tmp_path.iterdir():
        path.unlink()
    copy = pickle.loads(content)
    assert kiln._core.spec_of(copy) == kiln._core.spec_of(kernel)
    assert np.allclose(call(copy), 2 * four() / 0.1)


def test_kernels_of_all_generations_pickle():
    by_name = pickle.loads(pickle.dumps(kiln.metal_kernel("k", definitions.INDEX + "y[i] = x[i] + 1;")))
    result = by_name(
        inputs={"x": four()}, output_shapes={"y": (4,)}, output_dtypes={"y": "float32"}, grid=4, threadgroup=4
    )
    assert np.array_equal(result["y"], four() + 1)
    oldest: Any = kiln.MetalKernel(
        "k", definitions.INDEX + "y[i] = x[i] + N;", 4, 4, output_shapes={"y": (4,)}, output_dtypes={"y": "float32"}
    )
    oldest.template(N=3)
    assert np.array_equal(pickle.loads(pickle.dumps(oldest))(x=four())["y"], four() + 3)


def test_installed_kernels_pickle():
    mlx = pytest.importorskip("kiln.mlx")
    mx = mlx.mx
    with mlx.install():
        kernel = mx.fast.metal_kernel("k", ["x"], ["y"], definitions.INDEX + "y[i] = x[i] + 1;")
    copy = pickle.loads(pickle.dumps(kernel))
    assert type(copy) is type(kernel)
    result = copy(inputs=[mx.arange(4.0)], output_shapes=[(4,)], output_dtypes=[mx.float32], grid=(4, 1, 1), threadgroup=(4, 1, 1))  # fmt: skip
    assert isinstance(result[0], mx.array) and result[0].tolist() == [1, 2, 3, 4]


def test_lambdas_do_not_pickle():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(make())


# ---- The array libraries' modules.


def test_namespaces():
    assert kiln.array_namespace(None, 3.0, four()) is np
    with pytest.raises(
        TypeError, match=r"^\[array_namespace\] Expected an array of NumPy, MLX, PyTorch, JAX or CuPy\.$"
    ):
        kiln.array_namespace(3.0)
