"""Functions of arrays in MLX: each transformation against MLX's own operations."""

import gc
import pickle
from typing import Any

import function_definitions as definitions
import kiln.mlx
import mlx.core as mx
import pytest
import transformation_table
from function_definitions import grid_sample, mirrored, plain, powers, product, square, tripled
from mlx_kernels import needs_own_kernels
from mlx_transformations import TRANSFORMATIONS, X, close, values

LIMITS: dict[str, str] = {}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name):
    TRANSFORMATIONS[name]()


def test_the_page_says_so():
    transformation_table.check("MLX", TRANSFORMATIONS, LIMITS)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 5), (1,), (0, 3)])
def test_gradients_by_dtype_and_shape(dtype, shape):
    x = values(*shape, dtype=getattr(mx, dtype))
    got, expected = (mx.grad(lambda y, f=f: f(y).astype(mx.float32).sum())(x) for f in (square, lambda y: y * y))
    close(got, expected, 1e-2 if dtype != "float32" else 1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3), (2, 0)])
def test_complex_numbers(shape):
    x = values(*shape) + 2j * values(*shape)
    weights = values(*shape) - 1 + 1j * values(*shape)
    got, expected = [
        (f(x), mx.vjp(f, [x], [weights])[1][0], mx.jvp(f, [x], [weights])[1][0], mx.vmap(f)(x), mx.compile(f)(x))
        for f in (tripled, lambda x: 3 * x)
    ]
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == mx.complex64 and one.shape == other.shape and mx.all(mx.abs(one - other) < 1e-5).item()


@pytest.mark.parametrize("shape", [(0, 5), (4, 0)])
def test_empty_arrays_in_programs(shape):
    x = values(*shape)
    for options in ({}, {"shapeless": True}):
        close(mx.compile(lambda x: square(mx.sin(x)), **options)(x), mx.sin(x) ** 2)
    close(mx.grad(lambda x: product(square(x), x).sum())(x), mx.zeros(shape))
    close(mx.vmap(square)(x), x**2)
    close(mx.vmap(mirrored)(x, x), x * x)


def test_parts_of_grids_in_programs_for_any_size():
    """Their kernels are given numbers, which the program has of the shapes that it was traced with."""
    batched = mx.compile(mx.vmap(mirrored), shapeless=True)
    sliced = mx.compile(mirrored.shard(1, 2), shapeless=True)
    for shape in ((8, 5), (3, 7), (4, 2), (5, 300), (1, 1)):
        x, w = values(*shape), values(*shape) + 1
        close(batched(x, w), w * x[:, ::-1])
        flat = x.reshape(-1), w.reshape(-1)
        begin = (x.size + 255) // 256 // 2 * 256
        close(sliced(*flat)[begin:], (flat[1] * flat[0][::-1])[begin:])


def test_several_outputs():
    for weights in ((1, 0), (0, 1), (2, 3)):
        close(
            mx.grad(lambda x, w=weights: w[0] * powers(x)[0].sum() + w[1] * powers(x)[1].sum())(X),
            mx.grad(lambda x, w=weights: (w[0] * x**2 + w[1] * x**3).sum())(X),
            1e-4,
        )


def test_grid_sample():
    """From the definition that all libraries share, against MLX's operations."""
    image, places = values(2, 9, 7, 3), values(2, 4, 5, 2) * 0.6

    def own(image, places):
        _, height, width, _ = image.shape
        x, y = (((places[..., k] + 1) * size - 1) / 2 for k, size in ((0, width), (1, height)))
        left, top = mx.floor(x), mx.floor(y)
        result = 0
        for dx in (0, 1):
            for dy in (0, 1):
                column, row = left + dx, top + dy
                share = (1 - mx.abs(x - column)) * (1 - mx.abs(y - row))
                inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
                batch = mx.arange(image.shape[0])[:, None, None]
                rows, columns = mx.clip(row, 0, height - 1), mx.clip(column, 0, width - 1)
                at = mx.stop_gradient(rows).astype(mx.int32), mx.stop_gradient(columns).astype(mx.int32)
                result = result + (share * inside)[..., None] * image[batch, *at]
        return result

    weights = values(2, 4, 5, 3)
    close(grid_sample(image, places), own(image, places), 1e-4)
    gradients = [
        mx.grad(lambda image, places, f=f: (f(image, places) * weights).sum(), argnums=(0, 1))(image, places)
        for f in (grid_sample, own)
    ]
    for got, expected in zip(*gradients, strict=True):
        close(got, expected, 1e-4)


def test_missing_rules():
    for use, message in (
        (
            lambda: mx.grad(lambda x: plain(x).sum())(X),
            "Input `x` of `plain` requires a gradient (MLX, grad, vjp), and the function has no vjp rule: attach one with "
            "`f.vjp(rule)`.",
        ),
        (
            lambda: mx.jvp(plain, [X], [X]),
            "Input `x` of `plain` has a tangent (MLX, jvp), and the function has no jvp rule: attach one with "
            "`f.jvp(rule)`.",
        ),
        (
            lambda: mx.vmap(plain)(X),
            "`plain` is batched (MLX, vmap), and the function has no vmap rule: attach one with `f.vmap(rule)` or "
            '`f.vmap("grid")`.',
        ),
    ):
        with pytest.raises(TypeError) as error:
            use()
        assert str(error.value) == "[metal_kernel] " + message
    # Kernels that are no functions keep MLX's words.
    kernel: Any = kiln.mlx.metal_kernel("k", ["x"], ["y"], definitions.INDEX + "y[i] = x[i];")
    keywords = {
        "output_shapes": [X.shape],
        "output_dtypes": [mx.float32],
        "grid": (40, 1, 1),
        "threadgroup": (40, 1, 1),
    }
    with pytest.raises(ValueError, match=r"^\[Primitive::vjp\] Not implemented for CustomKernel\.$"):
        mx.grad(lambda x: kernel(inputs=[x], **keywords)[0].sum())(X)


def test_errors_of_rules_reach_the_program():
    function = definitions.elementwise("wrong", ["x"], "y[i] = x[i];")

    @function.vjp
    def fails(*_):
        raise KeyError("of the rule")

    with pytest.raises(KeyError, match="of the rule"):
        mx.grad(lambda x: function(x).sum())(X)
    function.vjp(lambda x, cotangent, _: cotangent[0])
    with pytest.raises(ValueError) as error:
        mx.grad(lambda x: function(x).sum())(X)
    assert str(error.value) == (
        "[metal_kernel] The vjp rule of `wrong` gave a gradient of shape (5,) for input `x` of shape (8, 5)."
    )


def test_functions_live_as_long_as_their_graph():
    """A function that a loss makes for itself is gone when MLX asks for its gradient."""

    def with_own_function(x):
        function = definitions.elementwise("own", ["x"], "y[i] = x[i] * x[i];")
        function.vjp(lambda x, cotangent, _: 2 * product(x, cotangent))
        result = function(x).sum()
        del function
        gc.collect()
        return result

    close(mx.grad(with_own_function)(X), 2 * X)


def test_equal_launches_are_one():
    """In a graph that MLX compiles; of a kernel that is no function MLX knows nothing."""
    kernel = definitions.elementwise("counted", ["x"], "y[i] = x[i] + 1;")
    program = mx.compile(lambda x: kernel(x) * kernel(x))
    close(program(X), (X + 1) ** 2)
    assert len(kernel._kernel.history) == 1


@needs_own_kernels
def test_exports_hand_over_to_mlx():
    """What is exported loads on a Mac: it has one of MLX's own kernels."""
    with kiln.mlx.install():
        seen = []
        original = kiln.mlx._ExportableKernel._exported

        def exported(self, **keywords):
            seen.append(keywords["grid"])
            return original(self, **keywords)

        kiln.mlx._ExportableKernel._exported = exported  # type: ignore[method-assign]
        try:
            import tempfile

            with tempfile.TemporaryDirectory() as folder:
                mx.export_function(f"{folder}/f.mlxfn", lambda x: square(x), X)
        finally:
            kiln.mlx._ExportableKernel._exported = original  # type: ignore[method-assign]
    assert seen == [(40, 1, 1)]


def test_functions_pickle():
    copy = pickle.loads(pickle.dumps(square))
    close(mx.grad(lambda x: copy(x).sum())(X), 2 * X)


def test_numbers_among_arrays():
    function = definitions.elementwise("scaled", ["x", "s"], "y[i] = x[i] * s;")
    function.vjp(lambda primals, cotangent, _: (cotangent * primals[1], None))
    close(mx.grad(lambda x: function(x, 3.0).sum())(X), mx.full(X.shape, 3.0))
