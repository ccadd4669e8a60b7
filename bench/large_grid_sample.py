"""``python -m bench.large_grid_sample``: the grid sample and its gradient at a size of 2 GB, against MLX's operations.

Takes about 8 GB of memory and a minute. The operations run image by image. Fails where the results differ by more than
1e-4 of the largest value.
"""

from __future__ import annotations

import time

import kiln.mlx
import mlx.core as mx

from bench import bodies

SHAPE = (8, 1024, 1024, 64)
GRID = (8, 256, 256, 2)


def _timed(function):
    start = time.perf_counter()
    result = function()
    mx.eval(result)
    return result, time.perf_counter() - start


def main() -> None:
    keys = mx.random.split(mx.random.key(0), 3)
    x = mx.random.normal(SHAPE, key=keys[0])
    grid = mx.random.uniform(-1.1, 1.1, GRID, key=keys[1])  # beyond every border
    cotangents = mx.random.normal((*GRID[:3], SHAPE[3]), key=keys[2])
    mx.eval(x, grid, cotangents)

    forward = bodies.forward_kernel(kiln.mlx.metal_kernel)
    vjp = bodies.vjp_kernel(kiln.mlx.metal_kernel)
    (out,), forward_s = _timed(lambda: forward(**bodies.forward_call(x, grid)))
    (x_grad, grid_grad), vjp_s = _timed(lambda: vjp(**bodies.vjp_call(x, grid, cotangents)))

    worst = {"forward": 0.0, "x's gradient": 0.0, "grid's gradient": 0.0}
    forward_operations_s = vjp_operations_s = 0.0
    for n in range(SHAPE[0]):
        image = slice(n, n + 1)
        arguments = [mx.contiguous(x[image]), mx.contiguous(grid[image])]
        mx.eval(arguments)
        expected, seconds = _timed(lambda a=arguments: bodies.sample_by_operations(*a))
        forward_operations_s += seconds
        (x_expected, grid_expected), seconds = _timed(
            lambda a=arguments, i=image: mx.vjp(bodies.sample_by_operations, a, [cotangents[i]])[1]
        )
        vjp_operations_s += seconds
        for name, a, b in (
            ("forward", out[image], expected),
            ("x's gradient", x_grad[image], x_expected),
            ("grid's gradient", grid_grad[image], grid_expected),
        ):
            worst[name] = max(worst[name], float(mx.abs(a - b).max() / mx.abs(b).max()))
    print(f"x {SHAPE}, grid {GRID}, float32")
    print(f"forward: Kiln {forward_s:.2f} s, MLX's operations {forward_operations_s:.2f} s")
    print(f"vjp:     Kiln {vjp_s:.2f} s, MLX's operations {vjp_operations_s:.2f} s")
    for name, difference in worst.items():
        print(f"largest difference, {name}: {difference:.1e} of the largest value")
        if not difference < 1e-4:
            raise SystemExit(f"{name} is wrong")


if __name__ == "__main__":
    main()
