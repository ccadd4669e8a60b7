#!/usr/bin/env python3
"""Checks that each pass has tests of its own and says what it takes for granted.

A pass is a name in src/compiler/pipeline.cpp or in kiln-opt's tables. It needs

* a folder tests/compiler/<room>/<name>/ with three files or more: it fires, it must not fire, a border between the two.
  Each file has RUN lines that run the pass, and lines for FileCheck;
* a row in src/compiler/ir/preconditions.cpp, whose conditions fail where the order of passes is wrong.

UNTESTED and UNCONDITIONAL name those that have none, each with the reason.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FEWEST_FILES = 3

_OF_LLVM = "LLVM's own, in one call"
_ENTRY = "writes the function around a body's code; every test of a launch runs it"
# Pass -> why it has no tests of its own.
UNTESTED = {
    "coarsened-loop-versioning": "needs the function for rows of pairs, which `row-loops` writes: tests/python/test_runs.py",
    "guard-comparisons": "needs the parameter block that `kernel-entry` makes: tests/python/test_ptx.py",
    "inline-body": _OF_LLVM,
    "kernel-entry": _ENTRY,
    "known-branches": _OF_LLVM,
    "pairs": _OF_LLVM,
    "row-loops": _ENTRY,
    "scalar-simdgroup": _ENTRY,
    "strip-lines": _OF_LLVM,
    "structurize": _OF_LLVM,
    "target-layout": _OF_LLVM,
    "unused-simdgroups": "makes a function empty that nothing calls",
}

_ANY_ORDER = "replaces calls wherever they are, before and after the code is a simdgroup's"
# Pass -> why it takes nothing for granted.
UNCONDITIONAL = {
    "access-shapes": "prints what an analysis finds, and belongs to no pipeline",
    "approximations": _ANY_ORDER,
    "bfloat-conversions": _ANY_ORDER,
    "hide-sinks": "replaces a variable's uses, whatever they are",
    "inline-body": "inlines whatever is called",
    "known-branches": "folds constants",
    "ldexp": _ANY_ORDER,
    "may-loop-for-ever": "an analysis, which asks nothing of its function",
    "promote-variables": "part of other passes, on functions that combine two values",
    "row-loops": "fills a function that is empty",
    "scalar-simdgroup": "makes a function that calls the body",
    "spin-loops": "an analysis, which asks nothing of its function",
    "strip-lines": "removes what remarks needed",
    "unreachable-defaults": "what leads to what cannot be reached does so anywhere",
    "unused-simdgroups": "empties a function",
    "vector-bitcasts": "part of `components`, which has a row",
}


def passes(root: Path) -> set[str]:
    """The names in pipeline.cpp and in kiln-opt."""
    compiler = root / "src/compiler"
    pipeline = "\n".join(
        line for line in (compiler / "pipeline.cpp").read_text().splitlines() if not line.lstrip().startswith("//")
    )
    names = {name for _, name in re.findall(r'\b(run|query)\(\s*"([^"]+)"', pipeline)}
    names |= set(re.findall(r'\boptional\("([^"]+)"\)', pipeline))
    return names | set(re.findall(r'^ +\{"([a-z0-9-]+)",', (compiler / "opt/kiln_opt.cpp").read_text(), re.MULTILINE))


def conditions(root: Path) -> set[str]:
    """The passes that have a row of preconditions."""
    text = (root / "src/compiler/ir/preconditions.cpp").read_text()
    return set(re.findall(r'^ +\{"([a-z0-9-]+)",\s*\{&', text, re.MULTILINE))


def check_folder(folder: Path, name: str, where: str) -> list[str]:
    files = sorted(folder.glob("*.ll"))
    problems = []
    if len(files) < FEWEST_FILES:
        problems.append(
            f"{where}: {len(files)} of {FEWEST_FILES} files; a pass has one in which it fires, one in which it must not, "
            "and a border"
        )
    for file in files:
        text = file.read_text()
        runs = re.findall(r"^; RUN: (.*)", text, re.MULTILINE)
        prefixes = {"CHECK", *re.findall(r"--check-prefix(?:es)?=([\w-]+)", " ".join(runs))}
        if not any(re.search(rf"--passes=[^ ]*(?<![\w-]){re.escape(name)}(?![\w-])", run) for run in runs):
            problems.append(f"{where}/{file.name}: no RUN line runs {name}")
        if not re.search(rf"^; (?:{'|'.join(map(re.escape, prefixes))})(?:-[A-Z-]+\d*)?:", text, re.MULTILINE):
            problems.append(f"{where}/{file.name}: has no line for FileCheck")
    return problems


def problems(root: Path, untested: dict[str, str], unconditional: dict[str, str]) -> list[str]:
    names, rows = passes(root), conditions(root)
    tests = root / "tests/compiler"
    folders = {folder.name: folder for folder in tests.glob("*/*/") if any(folder.glob("*.ll"))}
    # What is around all passes.
    folders = {name: folder for name, folder in folders.items() if folder.parent.name != "ir"}
    found = []
    for name in sorted(names):
        if name in folders:
            folder = folders[name]
            found += check_folder(folder, name, folder.relative_to(root).as_posix())
        elif name not in untested:
            found.append(f"{name}: has no folder tests/compiler/<room>/{name}/")
        if name not in rows and name not in unconditional:
            found.append(f"{name}: src/compiler/ir/preconditions.cpp has no row of what it takes for granted")
    found += [f"{folders[name].relative_to(root)}: there is no such pass" for name in sorted(folders.keys() - names)]
    found += [f"{name}: has preconditions, but there is no such pass" for name in sorted(rows - names)]
    found += [f"{name}: has tests; remove it from UNTESTED" for name in sorted(untested.keys() & folders.keys())]
    found += [
        f"{name}: has preconditions; remove it from UNCONDITIONAL" for name in sorted(unconditional.keys() & rows)
    ]
    gone = (untested.keys() | unconditional.keys()) - names
    found += [f"{name}: there is no such pass; remove it from UNTESTED and UNCONDITIONAL" for name in sorted(gone)]
    return found


def main() -> int:
    found = problems(ROOT, UNTESTED, UNCONDITIONAL)
    print("\n".join(found) if found else f"passes: {len(passes(ROOT))} names, each with tests and preconditions")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
