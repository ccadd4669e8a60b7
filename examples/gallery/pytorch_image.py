"""A photograph as a small network in PyTorch, whose features a kernel samples.

A network that maps a position (x, y) straight to a colour learns slowly and stays blurred. A table of features helps: the
features at a position are interpolated from the four nearest entries of the table, and a small network turns them into a
colour. Tables of several resolutions, side by side, hold coarse and fine details. Table and network are trained together,
on random positions in the photograph.

Interpolation is the kernel: one thread for a position and a feature. In the backward pass the same threads add the
gradient to the four entries. Positions may share entries, so they add atomically.

What it shows of Metal and of Kiln:

* `kernel.function` makes a function of tensors from a kernel, and `.vjp` attaches its gradient. Tables are parameters of
  PyTorch's modules, its optimizer updates them, and `loss.backward()` reaches them through the kernel.
* A rule returns `None` for an input that needs no gradient, here the positions.
* `atomic_outputs=True` with `init_value=0` for sums to which many threads add. The order of such additions changes from
  run to run, and with it the last digits.
* The output's shape and the grid are computed from the inputs' shapes, so `torch.compile` can take the function into its
  graph (`--compile`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import kiln
import numpy as np
import torch

from examples.gallery import common

# Where a position, in [0, 1] x [0, 1], lies among the entries of `table`: (rows, columns, features).
CORNER = """
    uint feature = thread_position_in_grid.x, point = thread_position_in_grid.y;
    int rows = table_shape[0], columns = table_shape[1], features = table_shape[2];
    float x = points[2 * point] * (columns - 1), y = points[2 * point + 1] * (rows - 1);
    int left = clamp(int(x), 0, columns - 2), above = clamp(int(y), 0, rows - 2);
    float right_part = x - left, below_part = y - above;
    int corner = (above * columns + left) * features + feature, below = corner + columns * features;
"""

SAMPLE = f"""{CORNER}
    float upper = mix(table[corner], table[corner + features], right_part);
    float lower = mix(table[below], table[below + features], right_part);
    sampled[point * features + feature] = mix(upper, lower, below_part);
"""

# The gradient of a table that is read at those positions.
SPREAD = f"""{CORNER}
    float g = cotangent[point * features + feature];
    float upper = (1 - below_part) * g, lower = below_part * g;
    atomic_fetch_add_explicit(&gradient[corner], (1 - right_part) * upper, memory_order_relaxed);
    atomic_fetch_add_explicit(&gradient[corner + features], right_part * upper, memory_order_relaxed);
    atomic_fetch_add_explicit(&gradient[below], (1 - right_part) * lower, memory_order_relaxed);
    atomic_fetch_add_explicit(&gradient[below + features], right_part * lower, memory_order_relaxed);
"""

sample = kiln.metal_kernel("sample", ["table", "points"], ["sampled"], SAMPLE).function(
    output_shapes=lambda table, points: [(points.shape[0], table.shape[2])],
    output_dtypes=["float32"],
    grid=lambda table, points: (table.shape[2], points.shape[0], 1),
    threadgroup=(4, 64, 1),
)
spread = kiln.metal_kernel(
    "spread", ["table", "points", "cotangent"], ["gradient"], SPREAD, atomic_outputs=True
).function(
    output_shapes=lambda table, points, cotangent: [table.shape],
    output_dtypes=["float32"],
    grid=lambda table, points, cotangent: (table.shape[2], points.shape[0], 1),
    threadgroup=(4, 64, 1),
    init_value=0,
)


@sample.vjp
def sample_vjp(
    primals: tuple[torch.Tensor, torch.Tensor], cotangent: torch.Tensor, sampled: torch.Tensor
) -> tuple[torch.Tensor, None]:
    table, points = primals
    return spread(table, points, cotangent), None


class Image(torch.nn.Module):
    """Colours, (n, 3), at positions, (n, 2), from features at several resolutions."""

    def __init__(self, resolutions: Sequence[int], features: int = 4, hidden: int = 32) -> None:
        super().__init__()
        self.tables = torch.nn.ParameterList(
            [torch.nn.Parameter(0.1 * torch.randn(size, size, features)) for size in resolutions]
        )
        self.network = torch.nn.Sequential(
            torch.nn.Linear(features * len(resolutions), hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, 3),
            torch.nn.Sigmoid(),
        )

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        colours: torch.Tensor = self.network(torch.cat([sample(table, points) for table in self.tables], dim=1))
        return colours


def pixels_of(photograph: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """The colours, (n, 3), of the pixels of (rows, columns, 3) that are nearest to positions, (n, 2)."""
    rows, columns, _ = photograph.shape
    x = (points[:, 0] * (columns - 1)).round().long()
    y = (points[:, 1] * (rows - 1)).round().long()
    return photograph[y, x]


def fit(
    photograph: torch.Tensor,
    steps: int,
    points: int,
    *,
    resolutions: Sequence[int] = (12, 40, 120),
    compiles: bool = False,
) -> tuple[Image, list[float]]:
    """A network that was trained so many steps, each on so many positions, and the mean squared error of each step."""
    torch.manual_seed(0)
    image = Image(resolutions)
    forward = torch.compile(image, fullgraph=True) if compiles else image
    optimizer = torch.optim.Adam(image.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        positions = torch.rand(points, 2)
        loss = torch.nn.functional.mse_loss(forward(positions), pixels_of(photograph, positions))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return image, losses


@torch.no_grad()
def picture(image: Image, rows: int, columns: int) -> torch.Tensor:
    """The network's colours at each pixel: (rows, columns, 3)."""
    y, x = torch.meshgrid(torch.linspace(0, 1, rows), torch.linspace(0, 1, columns), indexing="ij")
    colours: torch.Tensor = image(torch.stack([x, y], dim=-1).reshape(-1, 2))
    return colours.reshape(rows, columns, 3)


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=600, help="rows of the photograph to take (%(default)s)")
    parser.add_argument("--steps", type=int, default=400, help="steps of training (%(default)s)")
    parser.add_argument("--points", type=int, default=8192, help="positions in a step (%(default)s)")
    parser.add_argument("--compile", action="store_true", help="compile the model with torch.compile, which needs g++")
    options = parser.parse_args(argv)

    photograph = torch.from_numpy(common.photograph()[: options.size].copy())
    rows, columns, _ = photograph.shape
    start = time.perf_counter()
    image, losses = fit(photograph, options.steps, options.points, compiles=options.compile)
    seconds = time.perf_counter() - start
    numbers = sum(parameter.numel() for parameter in image.parameters())
    print(f"{numbers} parameters for {photograph.numel()} values of the photograph")
    print(f"{options.steps} steps of {options.points} positions in {seconds:.1f} s")
    learned = picture(image, rows, columns)
    error = torch.nn.functional.mse_loss(learned, photograph).item()
    print(f"error {losses[0]:.4f} at first, {error:.5f} in the end: {-10 * np.log10(error):.1f} dB")

    figure = common.new_figure(11, 4.6)
    photograph_axis, learned_axis, loss_axis = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    for axis, shown, title in ((photograph_axis, photograph, "photograph"), (learned_axis, learned, "network")):
        axis.imshow(shown.numpy())
        axis.set_title(title)
        axis.axis("off")
    loss_axis.plot(losses, color=common.KILN)
    loss_axis.set(yscale="log", xlabel="step", ylabel="mean squared error", title="training")
    loss_axis.spines[["top", "right"]].set_visible(False)
    common.save(figure, options.out, "pytorch_image.png")


if __name__ == "__main__":
    main()
