#!/usr/bin/env python3
"""Holds the table of constructs, tests/constructs.toml, against the bodies that prove them, tests/bodies.

Every row needs a body, but those that say why they come later; every name that a body gives needs a row.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import bodies  # noqa: E402


def read_table(path: Path) -> dict[str, str]:
    """Why each row, `section.name`, has no body yet; empty where it needs one."""
    later = {}
    for section, rows in tomllib.loads(path.read_text()).items():
        for name, row in rows.items():
            sentence, reason = (row, "") if isinstance(row, str) else (row["is"], row["later"])
            if not sentence.endswith("."):
                raise SystemExit(f"{path.name}: {section}.{name} has no sentence")
            later[f"{section}.{name}"] = reason
    return later


def problems_of(later: dict[str, str], proved: dict[str, list[str]]) -> list[str]:
    problems = [f"{row}: no body proves it" for row in later if not later[row] and row not in proved]
    problems += [
        f"{row}: is to come later, but {proved[row][0]} proves it" for row in later if later[row] and row in proved
    ]
    problems += [
        f"{row}: {bodies_of[0]} names it, the table does not" for row, bodies_of in proved.items() if row not in later
    ]
    return problems


def main() -> int:
    later = read_table(ROOT / "tests" / "constructs.toml")
    proved: dict[str, list[str]] = {}
    for body in bodies.all_bodies():
        for row in body.constructs:
            proved.setdefault(row, []).append(body.name)
    problems = problems_of(later, proved)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        waiting = sum(1 for reason in later.values() if reason)
        print(
            f"{len(later) - waiting} constructs are proved by {len(bodies.all_bodies())} bodies, {waiting} come later"
        )
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
