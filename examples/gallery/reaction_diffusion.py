"""Reaction and diffusion: a film of two chemicals that grow a pattern.

Gray and Scott's model has two concentrations in each cell of a plane. U is fed, V is removed, both diffuse, and two V
react with a U to three V. A pattern grows from a few seeds of V, and depends on the two rates alone.

A step reads a cell's neighbours, so it cannot write in place: later threads would see new values. It reads one pair of
arrays and writes another. With MLX this double buffering is automatic: outputs of a kernel are new arrays, and the memory
of an array that is no longer used returns to MLX's allocator, which reuses it for the next step.

What it shows of Metal and of Kiln:

* MLX arrays are lazy. `simulate` only adds nodes to a graph; `mx.eval` runs them. A frame of the film is one evaluation
  of many steps. MLX allocates memory for some tens of steps ahead, so the memory printed at the end does not grow with
  the number of steps.
* One kernel with two outputs, and a template argument for the type, so that the same body runs in half precision.
* In Metal's safe mode arithmetic is computed as written: the tests compute the same sums in NumPy and compare bits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import kiln.mlx
import matplotlib
import mlx.core as mx
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from examples.gallery import common

HEADER = """
// How much the mean of the eight cells around a cell is above its own value; those that share an edge count four times
// as much. `left`, `right`, `above` and `below` are where those columns and rows are.
template <typename T>
METAL_FUNC T laplacian(const device T* a, uint left, uint column, uint right, uint above, uint row, uint below) {
    T edges = a[row + left] + a[row + right] + (a[above + column] + a[below + column]);
    T corners = a[above + left] + a[above + right] + (a[below + left] + a[below + right]);
    return T(0.2) * edges + T(0.05) * corners - a[row + column];
}
"""

SOURCE = """
    uint column = thread_position_in_grid.x, y = thread_position_in_grid.y;
    uint columns = threads_per_grid.x, rows = threads_per_grid.y;
    // The plane's edges meet.
    uint left = column == 0 ? columns - 1 : column - 1, right = column + 1 == columns ? 0 : column + 1;
    uint above = (y == 0 ? rows - 1 : y - 1) * columns, below = (y + 1 == rows ? 0 : y + 1) * columns;
    uint row = y * columns;

    uint cell = row + column;
    T reacting = u[cell] * v[cell] * v[cell];
    T u_change = laplacian(u, left, column, right, above, row, below) - reacting + T(feed) * (T(1) - u[cell]);
    T v_change = T(0.5) * laplacian(v, left, column, right, above, row, below) + reacting - T(feed + kill) * v[cell];
    next_u[cell] = u[cell] + u_change;
    next_v[cell] = v[cell] + v_change;
"""

kernel = kiln.mlx.metal_kernel(
    name="gray_scott",
    input_names=["u", "v", "feed", "kill"],
    output_names=["next_u", "next_v"],
    source=SOURCE,
    header=HEADER,
)


def seeded(rows: int, columns: int, seeds: int, dtype: mx.Dtype = mx.float32) -> tuple[mx.array, mx.array]:
    """U and V, (rows, columns): U is 1 and V is 0 except in small discs, whose centres are always the same."""
    generator = np.random.default_rng(4)
    u, v = np.ones((rows, columns), np.float32), np.zeros((rows, columns), np.float32)
    radius = max(1.5, min(rows, columns) / 28)
    y, x = np.mgrid[0:rows, 0:columns]
    for row, column in zip(generator.uniform(0, rows, seeds), generator.uniform(0, columns, seeds), strict=True):
        # The plane's edges meet, so a disc may continue on the other side.
        away_y, away_x = (y - row + rows / 2) % rows - rows / 2, (x - column + columns / 2) % columns - columns / 2
        inside = away_x**2 + away_y**2 < radius**2
        u[inside], v[inside] = 0.5, 0.25
    return mx.array(u, dtype), mx.array(v, dtype)


def simulate(u: mx.array, v: mx.array, steps: int, feed: float, kill: float) -> tuple[mx.array, mx.array]:
    """U and V, both (rows, columns), after so many steps. Nothing is computed yet.

    A cell counts as large as what diffuses in a step of time allows; feed and kill are rates per step.
    """
    rows, columns = u.shape
    for _ in range(steps):
        u, v = kernel(
            inputs=[u, v, feed, kill],
            template=[("T", u.dtype)],
            grid=(columns, rows, 1),
            threadgroup=(64, 4, 1),
            output_shapes=[u.shape, v.shape],
            output_dtypes=[u.dtype, v.dtype],
        )
    return u, v


def film(frames: Sequence[NDArray[np.float32]], path: Path, milliseconds: int = 80) -> None:
    """Writes (rows, columns) arrays of values from 0 to 1 as a GIF that starts over at its end."""
    levels = 64
    table = matplotlib.colormaps["magma"](np.linspace(0, 1, levels))[:, :3]
    palette = np.rint(255 * table).astype(np.uint8).tobytes()
    images = []
    for frame in frames:
        image = Image.fromarray(np.rint(frame * (levels - 1)).astype(np.uint8), mode="P")
        image.putpalette(palette)
        images.append(image)
    path.parent.mkdir(parents=True, exist_ok=True)
    durations = [milliseconds] * (len(images) - 1) + [1500]
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=256, help="rows and columns (%(default)s)")
    parser.add_argument("--frames", type=int, default=45, help="frames of the film (%(default)s)")
    parser.add_argument("--steps", type=int, default=120, help="steps from frame to frame (%(default)s)")
    parser.add_argument("--feed", type=float, default=0.0545, help="rate at which U is fed (%(default)s)")
    parser.add_argument("--kill", type=float, default=0.062, help="rate at which V is removed besides (%(default)s)")
    options = parser.parse_args(argv)

    u, v = seeded(options.size, options.size, seeds=6)
    frames = [np.array(v)]
    mx.reset_peak_memory()
    start = time.perf_counter()
    for _ in range(options.frames - 1):
        u, v = simulate(u, v, options.steps, options.feed, options.kill)
        mx.eval(u, v)
        frames.append(np.array(v))
    seconds = time.perf_counter() - start

    steps = options.steps * (options.frames - 1)
    print(
        f"{steps} steps of {options.size} x {options.size} cells: {seconds:.2f} s, {1e6 * seconds / steps:.0f} µs each"
    )
    print(f"one array {u.nbytes >> 10} KiB, all arrays that were in use at once {mx.get_peak_memory() >> 10} KiB")
    path = options.out / "reaction_diffusion.gif"
    film([np.clip(frame / 0.4, 0, 1) for frame in frames], path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
