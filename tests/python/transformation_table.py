"""The tables of docs/transformations.md: what each library's transformations do with a function of arrays.

A table has the transformations that the library's tests apply, in their order, and what comes of each; the tests pass only
where that is so. With ``WRITE_TRANSFORMATIONS=1`` the test of a library writes its table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "transformations.md"


def _table(transformations: Iterable[str], limits: Mapping[str, str]) -> str:
    rows = [f"| {name} | {f'error: “{limits[name]}”' if name in limits else 'passes'} |" for name in transformations]
    return "\n".join(["| transformation | on the CPU |", "|---|---|", *rows])


def check(title: str, transformations: Iterable[str], limits: Mapping[str, str]) -> None:
    """Compares the table below a heading of the page with what the tests do."""
    text = PAGE.read_text()
    table = _table(transformations, limits)
    section = re.search(rf"(?<=\n## {title}\n\n)\|.*?\|(?=\n\n|\n\Z)", text, re.DOTALL)
    assert section, f"docs/transformations.md has no table of {title}"
    if os.environ.get("WRITE_TRANSFORMATIONS"):
        PAGE.write_text(text[: section.start()] + table + text[section.end() :])
        return
    assert section[0] == table, "WRITE_TRANSFORMATIONS=1 make test-frameworks writes it"
