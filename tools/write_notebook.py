#!/usr/bin/env python3
"""Writes examples/tutorial.ipynb: the pages of the tutorial as one notebook.

Text becomes cells of Markdown, code becomes cells of code with the output that the page shows. The tests run the cells
in order (tests/python/test_documentation.py), so that the notebook needs no Jupyter to be checked. With ``--check``
nothing is written; the exit status says whether the notebook is what would be written.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "tutorial"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"

_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_DIRECTIVE = re.compile(r"^:::\{\w+\}.*?^:::$\n?", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def pages() -> list[str]:
    """The names of the pages, in the order of the tutorial's menu."""
    menu = re.search(
        r"^:::\{toctree\}\n:hidden:\n\n(.*?)\n:::$", (PAGES / "index.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert menu
    return ["index", *menu[1].split()]


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").splitlines(keepends=True)


def _in_repository(text: str) -> str:
    """Links of a page, as seen from the notebook's folder."""
    return _LINK.sub(lambda match: f"]({posixpath.normpath(posixpath.join('../docs/tutorial', match[1]))})", text)


def cells() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in pages():
        page = _DIRECTIVE.sub("", _FRONT.sub("", (PAGES / f"{name}.md").read_text()))
        begin = 0
        for block in _BLOCK.finditer(page):
            text = page[begin : block.start()].strip()
            begin = block.end()
            if text:
                found.append({"cell_type": "markdown", "metadata": {}, "source": _lines(_in_repository(text))})
            if block[1] == "python":
                code: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
                found.append({**code, "source": _lines(block[2])})
            elif found[-1]["cell_type"] == "code" and not found[-1]["outputs"]:
                output = {"name": "stdout", "output_type": "stream", "text": block[2].splitlines(keepends=True)}
                found[-1]["outputs"].append(output)
                if re.match(r"[\w.]*Error: ", block[2]):
                    # Jupyter goes on after a cell with this tag.
                    found[-1]["metadata"] = {"tags": ["raises-exception"]}
            else:
                raise SystemExit(f"docs/tutorial/{name}.md: a block of {block[1]} that no code prints")
        if text := page[begin:].strip():
            found.append({"cell_type": "markdown", "metadata": {}, "source": _lines(_in_repository(text))})
    return [{"id": f"cell-{number}", **cell} for number, cell in enumerate(found)]


def notebook() -> str:
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    content = {"cells": cells(), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    text = notebook()
    if "--check" not in sys.argv[1:]:
        NOTEBOOK.write_text(text)
    elif not NOTEBOOK.exists() or NOTEBOOK.read_text() != text:
        print("examples/tutorial.ipynb is not what tools/write_notebook.py writes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
