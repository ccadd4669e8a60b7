#!/usr/bin/env python3
"""Runs clang-tidy over the C++ of src, include and python: `make tidy`.

    tools/run_tidy.py BUILD_DIR [--jobs N] [FILE …]

Reads the compile commands of the build folder. Without FILEs everything is checked as it is built, so that a unity build's
files are checked together, with their headers parsed once. With FILEs only these are checked, each by itself; a header is
checked with the file of its name. The checks are those of `.clang-tidy`, and each finding fails.

LLVM's `run-clang-tidy` is not used: it does not know files inside a unity build, nor GCC's options.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "python")
CLANG_TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
# Commands may be for GCC, of which Clang does not know each option and warning.
GCC_ONLY = {"-fno-reorder-blocks-and-partition"}
ARGUMENTS = (
    *("--quiet", "--warnings-as-errors=*", "--extra-arg=-Wno-unknown-warning-option"),
    # Python's headers and nanobind's lie in folders of these names as well.
    f"--header-filter=^{re.escape(str(ROOT))}/({'|'.join(FOLDERS)})/",
)


class Unit(NamedTuple):
    file: Path
    sources: list[Path]
    """What it consists of, below ROOT: the file itself, or the files that a unity build's file includes."""
    command: dict[str, object]


def units_of(build: Path) -> list[Unit]:
    units = []
    for command in json.loads((build / "compile_commands.json").read_text()):
        file = Path(command["directory"], command["file"]).resolve()
        sources = [file]
        if file.parent.name == "Unity":
            sources = [
                Path(name).resolve() for name in re.findall(r'^#include "(.+)"$', file.read_text(), re.MULTILINE)
            ]
        own = [source for source in sources if source.is_relative_to(ROOT) and not source.is_relative_to(build)]
        if own and all(source.relative_to(ROOT).parts[0] in FOLDERS for source in own):
            words = [word for word in shlex.split(command["command"]) if word not in GCC_ONLY]
            units.append(Unit(file, own, {"directory": command["directory"], "file": str(file), "arguments": words}))
    return units


def unit_for(file: Path, units: list[Unit]) -> Unit | None:
    """The file by itself, with the options of the unit that it is part of; None where it is not compiled."""
    source = file.with_suffix(".cpp").resolve()
    for unit in units:
        if source in unit.sources:
            words = [str(source) if Path(word).name == unit.file.name else word for word in unit.command["arguments"]]  # type: ignore[attr-defined]
            return Unit(source, [source], {**unit.command, "file": str(source), "arguments": words})
    return None


def check(unit: Unit, database: Path) -> tuple[Unit, bool, str]:
    command = [CLANG_TIDY, "-p", str(database), *ARGUMENTS, str(unit.file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return unit, done.returncode == 0, done.stdout + ("" if done.returncode == 0 else done.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    units = units_of(options.build.resolve())
    if options.files:
        units = list({one.file: one for file in options.files if (one := unit_for(file, units))}.values())
    database = ROOT / "build" / "tidy"
    database.mkdir(parents=True, exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps([unit.command for unit in units]))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(check, unit, database) for unit in units]
        for number, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            unit, is_clean, output = job.result()
            folders = sorted({str(source.relative_to(ROOT).parent) for source in unit.sources})
            name = ", ".join(folders) if len(unit.sources) > 1 else str(unit.sources[0].relative_to(ROOT))
            print(f"[{number}/{len(units)}] {name}" + ("" if is_clean else ": not clean"), flush=True)
            if not is_clean:
                failed += 1
                print(output, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
