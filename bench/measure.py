"""Measuring, and writing down what was measured where.

Alternatives take turns, round after round, so that what else happens on the machine falls on all of them alike. One that
leaves the caches full of its own results makes the next one write them back, though; where that matters each is called
once more before its turn counts (`in_turns`), and what that call took is kept beside the figures.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "measured.md"


class Samples(NamedTuple):
    """Times of one thing, in milliseconds."""

    values: tuple[float, ...]
    behind_others: tuple[float, ...] = ()  # of calls right behind another thing's, which do not count

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def behind_others_median(self) -> float:
        return statistics.median(self.behind_others)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, high

    def as_json(self) -> dict[str, Any]:
        low, high = self.quartiles
        return {
            "median_ms": self.median,
            "quartiles_ms": [low, high],
            "range_ms": [min(self.values), max(self.values)],
            "samples": len(self.values),
            **({"behind_others_median_ms": self.behind_others_median} if self.behind_others else {}),
        }

    def __str__(self) -> str:
        low, high = self.quartiles
        if self.median < 0.1:
            return f"{1e3 * self.median:.2f} µs ({1e3 * low:.2f} to {1e3 * high:.2f})"
        return f"{_short(self.median)} ms ({_short(low)} to {_short(high)})"


def _short(milliseconds: float) -> str:
    """Three digits."""
    return f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:.0f}"


def in_turns(
    functions: dict[str, Callable[[], object]], rounds: int, calls: int = 1, settles: bool = False
) -> dict[str, Samples]:
    """Time of one call of each function, from `rounds` rounds of `calls` calls after one round that does not count.
    `settles`: each is called once before its calls of a round, so that it does not pay for what others left behind."""
    for function in functions.values():
        function()
    values: dict[str, list[float]] = {name: [] for name in functions}
    behind_others: dict[str, list[float]] = {name: [] for name in functions}

    def time_of(function: Callable[[], object], calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return 1e3 * (time.perf_counter() - start) / calls

    for _ in range(rounds):
        for name, function in functions.items():
            if settles:
                behind_others[name].append(time_of(function, 1))
            values[name].append(time_of(function, calls))
    return {name: Samples(tuple(values[name]), tuple(behind_others[name])) for name in functions}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    import kiln
    import numpy as np
    from kiln import _core

    return {
        "processor": _processor(),
        "threads": len(os.sched_getaffinity(0)),
        "memory_GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "instruction_set": _core.cpu_architecture(),
        "python": platform.python_version(),
        "kiln": kiln.__version__,
        "mlx": _version("mlx"),
        "numpy": np.__version__,
    }


def write(name: str, figures: dict[str, Any]) -> Path:
    """Writes figures with the machine's description and the day."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "figures": figures}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def write_page(tables: str) -> Path:
    """Puts the tables where the documentation's page has its own."""
    before, _, rest = PAGE.read_text().partition("```text\n")
    _, _, after = rest.partition("\n```\n")
    PAGE.write_text(f"{before}```text\n{tables}\n```\n{after}")
    return PAGE


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [title]
    for row in [header, *rows]:
        cells = [
            f"{row[0]:<{widths[0]}}",
            *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  " + "   ".join(cells))
    return "\n".join(lines)
