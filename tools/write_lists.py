#!/usr/bin/env python3
"""Writes the lists that pages have of the project's tables, so that one reads them in the repository as on the site.

A page marks where a list goes. Between the mark and ``<!-- end -->`` come

* for ``<!-- constructs: types -->`` the rows of that section of tests/constructs.toml;
* for ``<!-- headers -->`` the public C++ headers with what their first comments say, for ``<!-- declarations -->`` what
  they declare, with its comments;
* for ``<!-- python: Kernel Launch -->`` the docstrings of these names of the installed package and of their members;
* for ``<!-- words -->`` the words that tools/check_words.py refuses.

With ``--check`` nothing is written; the exit status says whether the pages are what would be written.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_words  # noqa: E402
import reference_text  # noqa: E402

_MARKED = re.compile(r"(<!-- (\w+)(?:: ([\w. ]+))? -->\n).*?(<!-- end -->)", re.DOTALL)

Row: TypeAlias = str | dict[str, str]

# Sections whose rows are names in a body, and what stands before and behind them there.
_NAMES = {
    "functions": "{}",
    "traits": "{}",
    "types": "{}",
    "mlx": "{}",
    "simdgroup": "simd_{}",
    "synchronisation": "atomic_{}_explicit",
}


def attribute_types() -> dict[str, str]:
    rows = re.findall(r'\{"(\w+)", (true|false), (?:true|false)\}', (ROOT / "src/core/attribute_table.h").read_text())
    return {name: "uint3" if is_vector == "true" else "uint" for name, is_vector in rows}


def sentence(row: Row) -> str:
    if isinstance(row, str):
        return row
    return f"{row['is']} Not in this version: {row['later']}." if "later" in row else row["is"]


def label(section: str, name: str, row: Row) -> str:
    """How a body writes it; in words where that is no single name."""
    tokens = row.get("tokens") if isinstance(row, dict) else None
    if tokens:
        return ", ".join(f"`{token}`" for token in tokens.split())
    # A sentence that spells a name says that the row's own is none.
    is_name = tokens != "" and "`" not in sentence(row)
    if section == "types":
        is_name = is_name and re.fullmatch(r"[a-z]+\d?|\w+_t|atomic_\w+|[A-Z_]+|as_type", name) is not None
    if not is_name:
        return name.replace("_", " ")
    return f"`{name}`" if name.startswith("quad_") else f"`{_NAMES[section].format(name)}`"


def constructs(section: str) -> str:
    """The rows of a section of tests/constructs.toml, each with its sentence."""
    rows = tomllib.loads((ROOT / "tests/constructs.toml").read_text())[section]
    if section == "attributes":
        types = attribute_types()
        cells: list[tuple[str, ...]] = [(f"`{name}`", f"`{types[name]}`", sentence(row)) for name, row in rows.items()]
    elif section in _NAMES:
        cells = [(label(section, name, row), sentence(row)) for name, row in rows.items()]
    else:
        return "\n".join(f"* {sentence(row)}" for row in rows.values())
    # A bar would end the cell.
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    columns = len(cells[0])
    return "\n".join(["|" + " |" * columns, "|" + "---|" * columns, *lines])


def headers() -> str:
    """The public C++ headers with their first sentences."""
    folder = ROOT / "include" / "kiln"
    lines = ["| | |", "|---|---|"]
    for name in ["kiln.h", *reference_text.headers_in_order()]:
        comment = re.match(r"(?://[^\n]*\n)+", (folder / name).read_text())
        if not comment:
            raise SystemExit(f"include/kiln/{name} does not begin with a comment")
        text = " ".join(line.lstrip("/ ") for line in comment[0].splitlines())
        first = re.match(r"(.*?[.:])(?: |$)", text)
        lines.append(f"| `kiln/{name}` | {(first[1] if first else text).removesuffix(':')} |")
    return "\n".join(lines)


def with_lists(page: str) -> str:
    def written(match: re.Match[str]) -> str:
        begin, kind, section, end = match.groups()
        lists = {
            "constructs": lambda: constructs(section),
            "declarations": reference_text.header_reference,
            "headers": headers,
            "python": lambda: "\n\n".join(map(reference_text.described, section.split())),
            "words": check_words.table,
        }
        return f"{begin}\n{lists[kind]()}\n\n{end}"

    return _MARKED.sub(written, page)


def main() -> int:
    status = 0
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.read_text()
        made = with_lists(page)
        if made == page:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{path.relative_to(ROOT)} is not what tools/write_lists.py writes", file=sys.stderr)
            status = 1
        else:
            path.write_text(made)
    return status


if __name__ == "__main__":
    sys.exit(main())
