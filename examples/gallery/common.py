"""What the programs of the gallery share: their command lines, the photograph, timing, and how figures look."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import mlx.core as mx
import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from demo import photograph as demo_photograph

KILN, OTHER, THIRD = "#d1495b", "#30638e", "#8d96a3"
"""The colours of Kiln's values, of those that they are compared with, and of what neither is about."""


def title_of(doc: str | None) -> str:
    """The first line of a program's docstring."""
    return (doc or "").partition("\n")[0]


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A command line with ``--out``, described by the first line of the program's docstring."""
    result = argparse.ArgumentParser(description=title_of(doc))
    result.add_argument("--out", type=Path, default=Path("out/gallery"), help="folder for pictures (%(default)s)")
    return result


def photograph() -> NDArray[np.float32]:
    """The photograph that ``make demo`` warps: (height, width, 3), values in [0, 1]."""
    return np.array(demo_photograph.load())


def new_figure(width: float, height: float) -> Figure:
    """A figure of that many inches whose parts make room for one another. It needs no display."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, out: Path, name: str) -> Path:
    """Writes the figure into the folder ``out``, which is made where it is missing, and says so."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / name
    with rc_context({"savefig.facecolor": "white"}):
        figure.savefig(path, dpi=110)
    print(f"wrote {path}")
    return path


def bars(axis: Axes, groups: Sequence[object], series: Mapping[str, tuple[str, Sequence[float]]]) -> None:
    """A group of bars for each of ``groups``, one bar of each series, which has a colour and a value for each group."""
    width = 0.84 / len(series)
    for number, (name, (colour, values)) in enumerate(series.items()):
        places = np.arange(len(groups)) + (number - (len(series) - 1) / 2) * width
        drawn = axis.bar(places, values, 0.93 * width, color=colour, label=name)
        axis.bar_label(drawn, fmt=lambda value: f"{value:.0f}" if value >= 100 else f"{value:.2g}", fontsize=8)
    axis.set_xticks(np.arange(len(groups)), [str(group) for group in groups])
    axis.spines[["top", "right"]].set_visible(False)
    # Room for the legend.
    axis.margins(y=0.15)
    axis.legend(frameon=False, fontsize=9, ncols=len(series), loc="upper left", columnspacing=1, handlelength=1.2)


def medians(functions: Mapping[str, Callable[..., object]], *arguments: object, rounds: int) -> dict[str, float]:
    """The median time of one call of each function with these arguments, in milliseconds; MLX arrays are evaluated.

    The functions take turns, so that what else the machine does falls on all of them alike. A first round does not
    count: kernels are compiled in it.
    """
    for function in functions.values():
        mx.eval(function(*arguments))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            mx.eval(function(*arguments))
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}
