"""A photograph through a swirl: the same function with MLX's operations and as a fused kernel."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import mlx.core as mx
import numpy as np

from demo import sampling

# MLX's types say of what a custom function gives that it is an object.
sample: Any = sampling.sample

REPEATS = 5


class WarpReport(NamedTuple):
    forward_difference: float
    """Largest difference of the two results, for values in [0, 1]."""
    gradient_difference: float
    """Largest difference of the two gradients, relative to the largest gradient."""
    milliseconds: dict[str, float]
    """Medians: "operations forward", "kernel forward", "operations vjp", "kernel vjp"."""


def swirl(height: int, width: int) -> mx.array:
    """Places (height, width, 2) that turn about the centre, by 3 radians there and less and less outwards."""
    y, x = mx.meshgrid(mx.arange(height, dtype=mx.float32), mx.arange(width, dtype=mx.float32), indexing="ij")
    dx, dy = x - (width - 1) / 2, y - (height - 1) / 2
    radius = mx.sqrt(dx * dx + dy * dy) / (min(height, width) / 2)
    angle = 3 * mx.exp(-3 * radius * radius)
    turned_x = mx.cos(angle) * dx - mx.sin(angle) * dy
    turned_y = mx.sin(angle) * dx + mx.cos(angle) * dy
    return mx.stack([turned_x + (width - 1) / 2, turned_y + (height - 1) / 2], axis=-1)


def _median_ms(function) -> float:
    mx.eval(function())  # compiles
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        mx.eval(function())
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def run(image: mx.array, out: Path, progress) -> WarpReport:
    places = swirl(*image.shape[:2])
    cotangents = mx.random.normal(image.shape, key=mx.random.key(0))
    mx.eval(places, cotangents)

    def gradients(function):
        return mx.vjp(function, [image, places], [cotangents])[1]

    progress("swirling with MLX's operations and with the kernel")
    by_operations = sampling.sample_by_operations(image, places)
    by_kernel = sample(image, places)
    forward_difference = float(mx.abs(by_operations - by_kernel).max())
    gradient_difference = max(
        float(mx.abs(a - b).max() / mx.abs(a).max())
        for a, b in zip(gradients(sampling.sample_by_operations), gradients(sample), strict=True)
    )

    progress(f"timing each, the median of {REPEATS}")
    milliseconds = {}
    for name, function in (("operations", sampling.sample_by_operations), ("kernel", sample)):
        milliseconds[f"{name} forward"] = _median_ms(lambda f=function: f(image, places))
        milliseconds[f"{name} vjp"] = _median_ms(lambda f=function: gradients(f))

    progress(f"drawing {out}")
    figure, axes = plt.subplots(1, 4, figsize=(12, 4.8), width_ratios=[1, 1, 1, 0.05], layout="constrained")
    difference = np.abs(np.array(by_operations) - np.array(by_kernel)).max(axis=-1)
    for axis, picture, title in (
        (axes[0], np.array(image), "photograph"),
        (axes[1], np.clip(np.array(by_kernel), 0, 1), "through a swirl, by the kernel"),
        (axes[2], difference, f"difference to MLX's operations, at most {forward_difference:.1e}"),
    ):
        shown = axis.imshow(picture, cmap="magma" if picture.ndim == 2 else None)
        axis.set_title(title, fontsize=10)
        axis.axis("off")
    figure.colorbar(shown, cax=axes[3])
    figure.savefig(out, dpi=110)
    plt.close(figure)
    return WarpReport(forward_difference, gradient_difference, milliseconds)
