#!/usr/bin/env python3
"""Holds the table of constructs, tests/constructs.toml, against the bodies that prove them, tests/bodies.

Every row needs a body, but those that say why they come later; every name that a body gives needs a row. Where a row is
one function or attribute, a body that claims to prove it must have its name in its text. CUDA's rows are those of
sections that begin with `cuda_`, and CUDA's bodies prove them.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import bodies  # noqa: E402

# How the language calls a row of these sections; a row with `tokens` says it itself.
_NAMES = {
    "attributes": "{}",
    "functions": "{}",
    "traits": "{}",
    "simdgroup": "simd_{}",
    "synchronisation": "atomic_{}_explicit",
}


CUDA = "cuda_"
# Their rows are words; those of other sections of CUDA's are names.
_CUDA_WORDS = {"cuda_structure", "cuda_launch"}


class Row(NamedTuple):
    later: str
    """Why it has no body yet; empty where it needs one."""
    tokens: frozenset[str]
    """What the text of a body that proves it must contain."""


def _tokens(section: str, name: str) -> list[str]:
    if section.startswith(CUDA):
        return [] if section in _CUDA_WORDS else [name]
    if section not in _NAMES:
        return []
    return [name if name.startswith("quad_") else _NAMES[section].format(name)]


def read_table(path: Path) -> dict[str, Row]:
    """The rows by their names, `section.name`."""
    table = {}
    for section, rows in tomllib.loads(path.read_text()).items():
        for name, row in rows.items():
            row = {"is": row} if isinstance(row, str) else row
            if not row["is"].endswith("."):
                raise SystemExit(f"{path.name}: {section}.{name} has no sentence")
            tokens = row["tokens"].split() if "tokens" in row else _tokens(section, name)
            table[f"{section}.{name}"] = Row(row.get("later", ""), frozenset(tokens))
    return table


def problems_of(table: dict[str, Row], proofs: Iterable[bodies.Body]) -> list[str]:
    problems = []
    proved: dict[str, str] = {}
    for body in proofs:
        text = re.sub(r"(?s)//[^\n]*|/\*.*?\*/", " ", body.source + "\n" + body.header)
        words = set(re.findall(r"\w+", text))
        for name in body.constructs:
            proved.setdefault(name, body.name)
            if name not in table:
                problems.append(f"{name}: {body.name} names it, the table does not")
            else:
                problems += [f"{name}: {body.name} has no `{token}`" for token in sorted(table[name].tokens - words)]
    for name, row in table.items():
        if row.later and name in proved:
            problems.append(f"{name}: is to come later, but {proved[name]} proves it")
        elif not row.later and name not in proved:
            problems.append(f"{name}: no body proves it")
    return problems


def problems_of_both(table: dict[str, Row], metal: Iterable[bodies.Body], cuda: Iterable[bodies.Body]) -> list[str]:
    of_cuda = {name: row for name, row in table.items() if name.startswith(CUDA)}
    of_metal = {name: row for name, row in table.items() if name not in of_cuda}
    return problems_of(of_metal, metal) + problems_of(of_cuda, cuda)


def main() -> int:
    table = read_table(ROOT / "tests" / "constructs.toml")
    problems = problems_of_both(table, bodies.all_bodies(), bodies.all_cuda_bodies())
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        waiting = sum(1 for row in table.values() if row.later)
        proofs = len(bodies.all_bodies()) + len(bodies.all_cuda_bodies())
        print(f"{len(table) - waiting} constructs are proved by {proofs} bodies, {waiting} come later")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
