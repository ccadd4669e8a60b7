"""A lens for waves, designed by gradient descent through a simulation in JAX.

Waves come from the left and pass a strip in which each cell may slow them down. Which cells have to be slow, so that the
waves meet at one point on the right? A program that simulates the waves and is differentiated answers that: the gradient
of the energy at the point says for each cell whether it should be slower or faster.

A step of the simulation is the kernel: the next height of each cell comes from its last two heights and its four
neighbours. `lax.scan` repeats the step, `jax.grad` runs the scan backwards through the gradient kernel, and `jax.jit`
compiles all of it into one program.

What it shows of Metal and of Kiln:

* `kernel.function` makes a function of JAX's arrays from a kernel. Under `jit`, XLA calls the kernel without Python.
* A `.vjp` rule is made of kernels and of JAX's own operations: the gradient of the height before the last is `-cotangent`,
  the others come from a kernel with two outputs.
* The sum over neighbours equals its own transpose, since every cell is its neighbours' neighbour and cells outside count
  as 0. So the backward kernel has the same form as the forward one. The tests compare it with JAX's gradient of the same
  step in `jax.numpy`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import kiln
import numpy as np
from numpy.typing import NDArray

from examples.gallery import common

HEADER = """
// How much the four neighbours of a cell are above it, in sum. Cells outside of the plane are 0.
template <typename P>
float bend(P a, int row, int column, int rows, int columns) {
    int cell = row * columns + column;
    float sum = -4 * a[cell];
    if (column > 0) sum += a[cell - 1];
    if (column + 1 < columns) sum += a[cell + 1];
    if (row > 0) sum += a[cell - columns];
    if (row + 1 < rows) sum += a[cell + columns];
    return sum;
}
"""

STEP = """
    int column = thread_position_in_grid.x, row = thread_position_in_grid.y;
    int rows = u_shape[0], columns = u_shape[1], cell = row * columns + column;
    next[cell] = 2 * u[cell] - before[cell] + speed[cell] * bend(u, row, column, rows, columns);
"""

# The gradients of `u` and of `speed`.
STEP_BACK = """
    int column = thread_position_in_grid.x, row = thread_position_in_grid.y;
    int rows = u_shape[0], columns = u_shape[1], cell = row * columns + column;
    // The transpose: of each neighbour, its share of this cell.
    float sum = -4 * speed[cell] * cotangent[cell];
    if (column > 0) sum += speed[cell - 1] * cotangent[cell - 1];
    if (column + 1 < columns) sum += speed[cell + 1] * cotangent[cell + 1];
    if (row > 0) sum += speed[cell - columns] * cotangent[cell - columns];
    if (row + 1 < rows) sum += speed[cell + columns] * cotangent[cell + columns];
    u_gradient[cell] = 2 * cotangent[cell] + sum;
    speed_gradient[cell] = cotangent[cell] * bend(u, row, column, rows, columns);
"""


def _like_u(outputs: int) -> dict[str, Any]:
    """Outputs of the shape of the first input, and one thread for each of its elements."""
    return {
        "output_shapes": lambda u, *_: [u.shape] * outputs,
        "output_dtypes": ["float32"] * outputs,
        "grid": lambda u, *_: (u.shape[1], u.shape[0], 1),
        "threadgroup": (64, 4, 1),
    }


step = kiln.metal_kernel("wave_step", ["u", "before", "speed"], ["next"], STEP, header=HEADER).function(**_like_u(1))
step_back = kiln.metal_kernel(
    "wave_step_back", ["u", "speed", "cotangent"], ["u_gradient", "speed_gradient"], STEP_BACK, header=HEADER
).function(**_like_u(2))


@step.vjp
def step_vjp(
    primals: tuple[jax.Array, jax.Array, jax.Array], cotangent: jax.Array, next: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    u, _, speed = primals
    u_gradient, speed_gradient = step_back(u, speed, cotangent)
    return u_gradient, -cotangent, speed_gradient


FREE = 0.25
"""What `speed` is outside of the strip: the square of the cells that a wave passes in a step. Above 0.5 steps explode."""
LENGTH = 10
"""Cells of a wave."""


def borders(rows: int, columns: int, width: int = 14) -> NDArray[np.float32]:
    """What cells keep of a wave in a step, (rows, columns): less towards the edges, which would reflect it."""
    y, x = np.mgrid[0:rows, 0:columns]
    depth = np.minimum.reduce([x, y, columns - 1 - x, rows - 1 - y])
    return np.exp(-((0.015 * np.maximum(width - depth, 0)) ** 2)).astype(np.float32)


def waves(speed: jax.Array, steps: int) -> jax.Array:
    """Heights after each step, (steps, rows, columns), of waves from a line near the left edge."""
    rows, columns = speed.shape
    keeps = jnp.asarray(borders(rows, columns))

    def advance(state: tuple[jax.Array, jax.Array], time: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        before, u = state
        source = jnp.sin(2 * jnp.pi * FREE**0.5 / LENGTH * time) * jnp.minimum(time / 40, 1)
        after = keeps * step(u, keeps * before, speed)
        after = after.at[:, 16].add(0.1 * source)
        return (u, after), after

    still = jnp.zeros((rows, columns), jnp.float32)
    _, heights = jax.lax.scan(advance, (still, still), jnp.arange(steps, dtype=jnp.float32))
    return heights


class Design:
    """Where the strip and the point are in a plane of that size."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.left, self.right = columns * 5 // 16, columns * 7 // 16
        self.point = rows // 2, columns * 3 // 4
        # Until the waves have passed the point for a while.
        self.steps = round(1.6 * columns / FREE**0.5)

    def start(self) -> jax.Array:
        """How slow the strip's cells are, as any numbers: (rows, columns of the strip)."""
        return jnp.full((self.rows, self.right - self.left), -1.0)

    def speed(self, slow: jax.Array) -> jax.Array:
        """(rows, columns): in the strip between FREE and a third of it."""
        return (
            jnp.full((self.rows, self.columns), FREE)
            .at[:, self.left : self.right]
            .multiply(1 - 0.67 * jax.nn.sigmoid(slow))
        )

    def energy(self, slow: jax.Array) -> jax.Array:
        """The mean square of the height at the point in the last third of the time."""
        row, column = self.point
        heights = waves(self.speed(slow), self.steps)
        return jnp.square(heights[-self.steps // 3 :, row, column]).mean()


def adam(
    gradient: Callable[[jax.Array], tuple[jax.Array, jax.Array]], x: jax.Array, steps: int, rate: float
) -> tuple[jax.Array, list[float]]:
    """What minimizes a function, found by Adam from its values and gradients; and the values."""
    mean, square, values = jnp.zeros_like(x), jnp.zeros_like(x), []
    for number in range(1, steps + 1):
        value, g = gradient(x)
        values.append(float(value))
        mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g * g
        x = x - rate * mean / (1 - 0.9**number) / (jnp.sqrt(square / (1 - 0.99**number)) + 1e-12)
    return x, values


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=112, help="rows of the plane (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="steps of the design (%(default)s)")
    options = parser.parse_args(argv)

    design = Design(options.size, options.size * 3 // 2)
    start = time.perf_counter()
    gradient = jax.jit(jax.value_and_grad(lambda slow: -jnp.log(design.energy(slow))))
    slow, values = adam(gradient, design.start(), options.steps, rate=0.3)
    seconds = time.perf_counter() - start
    energies = [design.energy(slow) for slow in (design.start(), slow)]
    print(
        f"{options.steps} gradients through {design.steps} steps of {design.rows} x {design.columns} cells: {seconds:.1f} s"
    )
    print(f"energy at the point {energies[1] / energies[0]:.1f} times that of an even strip")

    figure = common.new_figure(11, 6.4)
    (speed_axis, gain_axis), (even_axis, lens_axis) = figure.subplots(2, 2)
    speed_axis.imshow(design.speed(slow), cmap="bone", vmin=0)
    speed_axis.set(title="speed in each cell: dark is slow", xticks=[], yticks=[])
    gain_axis.plot(np.exp(-np.array(values)) / np.exp(-values[0]), color=common.KILN)
    gain_axis.set(xlabel="step of the design", ylabel="energy at the point", yscale="log")
    gain_axis.spines[["top", "right"]].set_visible(False)
    for axis, shown, title in ((even_axis, design.start(), "an even strip"), (lens_axis, slow, "the lens")):
        heights = waves(design.speed(shown), design.steps)[-1]
        most = float(jnp.quantile(jnp.abs(heights), 0.998))
        axis.imshow(heights, cmap="RdBu", vmin=-most, vmax=most)
        axis.set(title=title, xticks=[], yticks=[])
    for axis in (speed_axis, even_axis, lens_axis):
        axis.plot(*design.point[::-1], "+", color="black", markersize=10)
    common.save(figure, options.out, "jax_lens.png")


if __name__ == "__main__":
    main()
