"""The tables of docs/transformations.md: what each library's transformations do with a function of arrays.

A table has the transformations that the library's tests apply, in their order, and what comes of each; the tests pass only
where that is so. With ``WRITE_TRANSFORMATIONS=1`` the test of a library writes its table.

The column of a GPU is what `test_gpu_transformations.py` wrote in a run on one (`bench/results/gpu_transformations.json`);
a table has it as soon as there is such a file.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "transformations.md"
MEASURED = ROOT / "bench" / "results" / "gpu_transformations.json"

PASSES = "passes"


class LibraryLimit(Exception):
    """A program that fails without Kiln, too. The message says why, with the number of the library's issue where there
    is one."""


class Record:
    """What a run on a GPU found, written after each transformation: the next one may end the process. The processes of
    a run write one file."""

    def __init__(self, path: Path | None, gpu: str) -> None:
        self._path = path
        self._gpu = gpu

    def add(self, library: str, version: str, transformation: str, result: str) -> None:
        if self._path is None:
            return
        with open(self._path, "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            content: dict[str, Any] = json.loads(text) if text else {"versions": {}, "transformations": {}}
            content["gpu"] = self._gpu
            content["versions"][library] = version
            content["transformations"].setdefault(library, {})[transformation] = result
            file.truncate(0)
            file.write(json.dumps(content, indent=1) + "\n")


def result_of(error: BaseException) -> str:
    """An error as a cell of the table has it: its first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    return text if isinstance(error, LibraryLimit) else f"{type(error).__name__}: {text}"


def _cell(result: str | None) -> str:
    if result is None:
        return "\N{EN DASH} (not measured)"
    return result if result == PASSES else f"error: “{result.replace('|', chr(92) + '|')}”"


def _table(title: str, transformations: Iterable[str], limits: Mapping[str, str]) -> str:
    columns: dict[str, Mapping[str, str]] = {
        "on the CPU": {name: limits.get(name, PASSES) for name in transformations},
    }
    if MEASURED.exists():
        columns["on an NVIDIA GPU"] = json.loads(MEASURED.read_text())["transformations"].get(title, {})
    rows = [
        f"| {' | '.join([name, *[_cell(results.get(name)) for results in columns.values()]])} |"
        for name in columns["on the CPU"]
    ]
    return "\n".join([f"| transformation | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|", *rows])


def check(title: str, transformations: Iterable[str], limits: Mapping[str, str]) -> None:
    """Compares the table below a heading of the page with what the tests do."""
    text = PAGE.read_text()
    table = _table(title, transformations, limits)
    section = re.search(rf"(?<=\n## {title}\n\n)\|.*?\|(?=\n\n|\n\Z)", text, re.DOTALL)
    assert section, f"docs/transformations.md has no table of {title}"
    if os.environ.get("WRITE_TRANSFORMATIONS"):
        PAGE.write_text(text[: section.start()] + table + text[section.end() :])
        return
    assert section[0] == table, "WRITE_TRANSFORMATIONS=1 make test-frameworks writes it"
