#!/usr/bin/env python3
"""Holds what documents say against what the code has, where that can be told without running anything.

* What introduces Kiln (the package's docstring, README.md, docs/index.md) names every dialect, target and array library.
* What the compiler refuses by name is named among the limits.
* No page has a section without content where one reads it in the repository.
* Environment variables and exceptions that documents name exist.
* No document says what only "this version" does: such sentences outlive it.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# ---- What Kiln has

DIALECTS = ("Metal", "CUDA")
TARGETS = ("x86-64 CPU", "NVIDIA GPU")


def libraries(root: Path) -> list[str]:
    """The titles of the array libraries, as python/kiln/_libraries.py has them."""
    text = (root / "python/kiln/_libraries.py").read_text()
    return re.findall(r'Library\("\w+", "\w+", "(\w+)"', text)


def introductions(root: Path) -> dict[str, str]:
    module = ast.parse((root / "python/kiln/__init__.py").read_text())
    first = {name: (root / name).read_text().split("\n```", 1)[0] for name in ("README.md", "docs/index.md")}
    return {"help(kiln)": ast.get_docstring(module) or "", **first}


def missing_names(root: Path) -> Iterator[str]:
    for place, text in introductions(root).items():
        words = " ".join(text.split())
        for name in (*DIALECTS, *TARGETS, *libraries(root)):
            if name not in words:
                yield f"{place} does not name {name}"


# ---- What is refused

# How pages call what a message calls otherwise.
CALLED = {
    "jumps to labels": "`goto`",
    "types": "`typeid`",
    "a kernel": "`new`",
    "static variables of a thread": "`thread_local`",
    "managed variables": "`__managed__`",
    "inline assembly": "inline assembly",
    "clusters of blocks": "clusters",
    "floats of 8 bits": "8-bit floats",
    "floats of 128 bits": "`__float128`",
    "CUDA's C++ libraries": "`cub::`",
}
# The functions that say why a name is refused, and the pages that must have each reason.
REFUSALS = {
    ("src/compiler/clang/token_rewriter.cpp", "unsupported_keyword"): ["docs/dialects/metal.md"],
    ("src/compiler/clang/token_rewriter.cpp", "unsupported_reason"): [
        "docs/dialects/metal.md",
        "docs/limits.md",
        "README.md",
    ],
    ("src/compiler/clang/dialects/cuda_tokens.cpp", "unsupported_keyword"): ["docs/dialects/cuda.md"],
    ("src/compiler/clang/dialects/cuda_tokens.cpp", "unsupported_in_cuda"): ["docs/dialects/cuda.md"],
}


def reasons(text: str, function: str) -> list[str]:
    """The messages that a function of C++ returns."""
    begin = re.search(rf"^const char\* {function}\(.*\) {{$", text, re.MULTILINE)
    if not begin:
        raise SystemExit(f"there is no function {function}")
    body = text[begin.end() : text.index("\n}\n", begin.end())]
    return re.findall(r'(?:return |: )"([^"]+)"', body)


def subject(reason: str) -> str:
    """What a message says is not there: "textures" of "textures are not supported"."""
    name = re.split(r" (?:is|are) not | cannot ", reason)[0]
    return CALLED.get(name, name)


def unnamed_refusals(root: Path) -> Iterator[str]:
    for (file, function), pages in REFUSALS.items():
        for reason in sorted(set(reasons((root / file).read_text(), function))):
            for page in pages:
                words = " ".join((root / page).read_text().split()).lower()
                if subject(reason).lower() not in words:
                    yield f"{page} does not name what {function} refuses: {reason}"


# ---- What a page shows in the repository

# What is there on the site alone.
_DIRECTIVE = re.compile(r"^:::\{(\w+)\}.*?^:::$", re.DOTALL | re.MULTILINE)
_SITES_OWN = ("filter", "thumbnails", "toctree")


def empty_sections(page: str) -> Iterator[str]:
    """Headings without text, but for those that have sections of their own."""
    text = _DIRECTIVE.sub(lambda match: "" if match[1] in _SITES_OWN else match[0], page)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$", "a block", text, flags=re.DOTALL | re.MULTILINE)
    parts = re.split(r"^(#+) (.*)$", text, flags=re.MULTILINE)
    levels, titles, bodies = parts[1::3], parts[2::3], parts[3::3]
    for level, title, body, below in zip(levels, titles, bodies, [*levels[1:], ""], strict=False):
        if not body.strip() and len(below) <= len(level):
            yield title


# ---- Names


def documents(root: Path) -> list[Path]:
    """What users read: pages, the public headers, the package with its docstrings."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    headers = sorted((root / "include").rglob("*.h"))
    package = [*sorted((root / "python/kiln").glob("*.py")), root / "python/src/core_module.cpp"]
    return [path for path in (*pages, *headers, *package) if "docs/gallery" not in str(path.relative_to(root))]


def unknown_names(root: Path) -> Iterator[str]:
    settings = set(re.findall(r'{"(KILN_[A-Z_]+)"', (root / "src/core/settings.h").read_text()))
    thrown = [root / "include/kiln/error.h", root / "src/core/compiler.h"]
    errors = {name for path in thrown for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)}
    errors |= {name for name, value in vars(builtins).items() if isinstance(value, type)}
    for path in documents(root):
        text = path.read_text()
        place = path.relative_to(root)
        # A macro of C++ or CMake is no variable of the environment; pages show one that is wrong on purpose.
        if path.suffix == ".md":
            for name in sorted(set(re.findall(r"`(KILN_[A-Z_]+)(?:=\w+)?`", text)) - settings):
                if f"D{name}=" not in text:
                    yield f"{place} names {name}, which is no setting"
        for name in sorted(set(re.findall(r"\b[A-Z][a-z]\w+Error\b", text)) - errors):
            if path.suffix in (".md", ".h"):
                yield f"{place} names {name}, which nothing raises"
        if re.search(r"\bin this version\b", text):
            yield f"{place} says what is so in this version"


def problems(root: Path) -> list[str]:
    found = [*missing_names(root), *unnamed_refusals(root), *unknown_names(root)]
    for path in sorted((root / "docs").rglob("*.md")):
        found += [f"{path.relative_to(root)}: nothing is below `{title}`" for title in empty_sections(path.read_text())]
    return found


def main() -> int:
    found = problems(ROOT)
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(f"documents: {len(documents(ROOT))} files say what the code has")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
