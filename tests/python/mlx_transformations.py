"""What MLX's transformations do with functions of arrays, against MLX's own operations, on MLX's default device.

The tests run the programs on the CPU (`test_functions_mlx.py`) and on a GPU (`test_gpu_transformations.py`); the table in
docs/transformations.md has their names.
"""

from typing import Any

import mlx.core as mx
import numpy as np
from function_definitions import mirrored, one_by_one, powers, product, square


def values(*shape, dtype=mx.float32):
    rng = np.random.default_rng(len(shape) + sum(shape))
    return mx.array(rng.normal(size=shape), dtype)


def close(got, expected, tolerance=1e-5):
    assert got.shape == expected.shape and got.dtype == expected.dtype
    assert mx.allclose(got, expected, rtol=tolerance, atol=tolerance).item(), (got, expected)


def loss(x):
    """Of a function between operations of MLX's."""
    return product(square(mx.sin(x)), x).sum()


def loss_of_operations(x):
    return (mx.sin(x) ** 2 * x).sum()


X = values(8, 5)


def both(transform, x=X, tolerance=1e-4):
    return lambda: close(transform(loss)(x), transform(loss_of_operations)(x), tolerance)


def jvp():
    # Not of sums, of which MLX 0.30.0 has none.
    ours, operations = (lambda x: product(square(mx.sin(x)), x)), (lambda x: mx.sin(x) ** 2 * x)
    for got, expected in zip(mx.jvp(ours, [X], [X]), mx.jvp(operations, [X], [X]), strict=True):
        close(got[0], expected[0], 1e-4)
    # Of one input alone.
    close(mx.jvp(lambda a: product(a, X), [X], [X])[1][0], X * X)
    close(mx.jvp(lambda b: product(X, b), [X], [X])[1][0], X * X)


def vmap():
    close(mx.vmap(square)(X), X**2)
    close(mx.vmap(square, in_axes=1, out_axes=1)(X), X**2)
    close(mx.vmap(product, in_axes=(0, None))(X, X[0]), X * X[0])
    close(mx.vmap(mx.vmap(square))(X), X**2)
    for got, expected in zip(mx.vmap(powers)(X), (X**2, X**3), strict=True):
        close(got, expected)


def sequential():
    scale = values(5)
    close(mx.vmap(one_by_one, in_axes=(0, None))(X, scale), X * scale)
    close(mx.vmap(one_by_one, in_axes=(1, None))(X, mx.ones(1)), X.T)
    assert mx.vmap(one_by_one, in_axes=(0, None))(X[:0], scale).shape == (0, 5)


def reversed_product(x, w):
    return w * x[::-1]


def grid_axis():
    """Batches of a function that knows where it is in its grid; derivatives of batches, batches of derivatives."""
    w, v = values(5), values(8, 5)
    for arrays, in_axes in (((X, v), (0, 0)), ((X, w), (0, None)), ((w, v), (None, 0)), ((X.T, w), (1, None))):
        batched, expected = (mx.vmap(f, in_axes=in_axes) for f in (mirrored, reversed_product))
        close(batched(*arrays), expected(*arrays))
        for i in (0, 1):
            got, wanted = (mx.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=i)(*arrays) for f in (batched, expected))
            close(got, wanted, 1e-4)
            got, wanted = (
                mx.vmap(mx.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=i), in_axes=in_axes)(*arrays)
                for f in (mirrored, reversed_product)
            )
            close(got, wanted, 1e-4)
        got, wanted = (mx.jvp(f, list(arrays), list(arrays)) for f in (batched, expected))
        close(got[1][0], wanted[1][0])
    nested = [mx.vmap(mx.vmap(f, in_axes=(0, None)), in_axes=(0, 0)) for f in (mirrored, reversed_product)]
    close(*(f(values(3, 8, 5), values(3, 5)) for f in nested))


def compile_any_size():
    forward = mx.compile(lambda x: square(mx.sin(x)), shapeless=True)
    backward = mx.compile(mx.grad(loss), shapeless=True)
    for shape in ((8, 5), (300,), (2, 3, 4), (0, 3)):
        x = values(*shape)
        close(forward(x), mx.sin(x) ** 2)
        close(backward(x), mx.grad(loss_of_operations)(x), 1e-4)


TRANSFORMATIONS: dict[str, Any] = {
    "value": lambda: close(square(X), X**2),
    "gradient": both(mx.grad),
    "second derivative": both(lambda f: mx.grad(lambda x: mx.grad(f)(x).sum())),
    "`mx.vjp`": lambda: close(mx.vjp(square, [X], [mx.cos(X)])[1][0], 2 * X * mx.cos(X)),
    "`mx.jvp`": jvp,
    "`mx.vmap`": vmap,
    "`mx.vmap`, one launch after the other": sequential,
    "`mx.vmap`, an axis of the grid": grid_axis,
    "`vmap(grad)`": both(lambda f: mx.vmap(mx.grad(f))),
    "`grad(vmap)`": both(lambda f: mx.grad(lambda x: mx.vmap(f)(x).sum())),
    "`mx.compile`": lambda: close(mx.compile(lambda x: square(mx.sin(x)))(X), mx.sin(X) ** 2),
    "`compile(grad)`": both(lambda f: mx.compile(mx.grad(f))),
    "`mx.compile(shapeless=True)`, with gradients": compile_any_size,
    "`mx.checkpoint`": both(lambda f: mx.grad(mx.checkpoint(f))),
    "`mx.custom_function`": both(lambda f: mx.grad(mx.custom_function(f))),
}
