"""An unknown affine warp of the photograph is found by gradient descent through the kernel's own gradient, in the array
library that the user has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from demo.affine import affine_warp
from demo.libraries import Library

TRUTH = (0.93, 0.12, 0.06, -0.10, 1.05, -0.05)
START = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
STEPS = 240


class LearnReport(NamedTuple):
    losses: list[float]
    parameters: list[float]
    truth: tuple[float, ...]
    library: str

    @property
    def loss_left(self) -> float:
        """The last loss as a share of the first."""
        return self.losses[-1] / self.losses[0]

    @property
    def largest_error(self) -> float:
        """The largest difference of a parameter from the truth; NaN where one is."""
        return float(np.abs(np.subtract(self.parameters, self.truth)).max())

    def failures(self) -> list[str]:
        """What was promised and is not so."""
        failures = []
        if not self.loss_left < 0.02:
            failures.append(f"the loss fell to {100 * self.loss_left:.1f} % of its start only, not below 2 %")
        if not self.largest_error < 0.01:
            failures.append(f"a parameter is off by {self.largest_error:.3f}, not by less than 0.01")
        return failures


def blur(image: np.ndarray, radius: int) -> np.ndarray:
    """The mean over squares of 2 radius + 1 pixels, twice, by running sums; edges are repeated."""
    for _ in range(2):
        for axis in (0, 1):
            pad = [(0, 0)] * 3
            pad[axis] = (radius + 1, radius)
            sums = np.cumsum(np.pad(image, pad, mode="edge"), axis=axis)
            n = image.shape[axis]
            upper = np.take(sums, np.arange(2 * radius + 1, 2 * radius + 1 + n), axis=axis)
            lower = np.take(sums, np.arange(n), axis=axis)
            image = (upper - lower) / (2 * radius + 1)
    return image


def run(photograph: np.ndarray, out: Path, progress, library: Library, steps: int = STEPS) -> LearnReport:
    """`library` has the arrays, the gradient and the arithmetic of the descent."""

    def array(values) -> Any:
        return library.array(np.ascontiguousarray(values, dtype=np.float32))

    pixels = photograph[::2, ::2]
    image = array(pixels)
    target = affine_warp(image, array(TRUTH))
    start = affine_warp(image, array(START))

    # Coarse pictures first: there the loss has no valleys but the right one.
    levels = [(0.35, 10), (0.35, 4), (0.30, 1)]  # share of the steps, radius of the blur
    plan = [radius for share, radius in levels for _ in range(round(share * steps))]
    blurred = {radius: (array(blur(pixels, radius)), array(blur(np.asarray(target), radius))) for radius in set(plan)}

    def loss(parameters, source, wanted):
        return ((affine_warp(source, parameters) - wanted) ** 2).mean()

    loss_and_gradient = library.value_and_gradient(loss)
    parameters = array(START)
    mean, spread = array(np.zeros(6)), array(np.zeros(6))  # Adam's moments (Kingma and Ba, 2015)
    losses = []
    for step, radius in enumerate(plan, 1):
        _, gradient = loss_and_gradient(parameters, *blurred[radius])
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.99 * spread + 0.01 * gradient**2
        rate = 0.02 * (1 - step / (len(plan) + 1)) ** 1.5
        parameters = parameters - rate * (mean / (1 - 0.9**step)) / ((spread / (1 - 0.99**step)) ** 0.5 + 1e-8)
        # The loss that is reported is that of the pictures as they are.
        losses.append(float(loss(parameters, image, target)))
        if step % 40 == 0 or step == len(plan):
            progress(f"step {step:3} of {len(plan)}, loss {losses[-1]:.2e}")
    first = float(loss(array(START), image, target))
    report = LearnReport([first, *losses], [float(value) for value in parameters], TRUTH, library.title)

    progress(f"drawing {out}")
    figure, axes = plt.subplots(1, 4, figsize=(15, 5), width_ratios=[1, 1, 1, 1.3])
    result = affine_warp(image, parameters)
    for axis, picture, title in zip(axes, (target, start, result), ("target", "start", "result"), strict=False):
        axis.imshow(np.clip(np.asarray(picture), 0, 1))
        axis.set_title(title)
        axis.axis("off")
    axes[3].semilogy(report.losses)
    axes[3].axhline(0.02 * first, color="grey", linestyle=":", label="2 % of the start")
    axes[3].set(xlabel="step", title="mean squared difference to the target")
    axes[3].legend()
    figure.tight_layout()
    figure.savefig(out, dpi=110)
    plt.close(figure)
    return report
