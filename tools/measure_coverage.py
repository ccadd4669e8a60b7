#!/usr/bin/env python3
"""Which lines the tests reach: runs them on a build that counts, and says where too few are reached.

    tools/measure_coverage.py BUILD_FOLDER [--compiler] [--report-only]

The folder is that of the preset `coverage`; the environment that runs this script has the package from there
(install_preset.py). The report goes to report.txt in the folder: each folder's share, then every place that no test reaches, with the reason that docs/coverage.md
gives. Fails where a folder that has a limit is below it.

With --compiler it runs the C++ tests and those Python tests that are for the compiler, COMPILER_TESTS, which takes less
than all, and looks at the compiler's library alone. Its tables go to docs/coverage.md.

Lines are statements: for C++ what GCC counts without optimisation (gcovr), for Python coverage.py. What runs in
processes that tests start counts too, unless they end by a signal or by _exit.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
REASONS = ROOT / "docs/coverage.md"

# The smallest share of lines, in percent, of each folder; None: shown only.
LIMITS = {
    "src/core": 90,
    "src/frontend": 90,
    "src/runtime": 90,
    "src/cache": 90,
    "src/compiler": 90,
    "python/kiln": 90,
    "include/kiln": None,
    "src/adapters": None,
    "src/targets": None,
    "python/src": None,
}

WHOLE_FILE = "(all)"

COMPILER = "src/compiler"
# The Python tests that reach the compiler, without the mark `long`: each dialect, engine, instruction set and GPU, what is
# refused and what is said about it, limits, random bodies.
COMPILER_TESTS = [
    *("approximations", "atomic_lanes", "code_with_avx2", "compile_limits", "cuda_on_cpu", "errors", "gpu_functions"),
    *("grid_parts", "guards", "input_writes", "instruction_sets", "lack_of_memory", "lane_sums", "language"),
    *("matrix_products", "memory_shapes", "messages", "own_names", "passes", "prefetches", "ptx"),
    *("random_control_flow", "random_exchanges", "random_memory", "random_small", "random_waits", "remarks"),
    *("reuse_barriers", "row_updates", "runs", "store_order", "threadgroup_variables", "tile_batches", "valid_code"),
    *("warnings", "warp_convergence", "wrong_kernels"),
]
_TABLES = re.compile(r"(?<=<!-- made by `make coverage-compiler` -->\n\n).*?(?=<!-- end -->)", re.DOTALL)


class Lines(NamedTuple):
    reached: set[int]
    missed: set[int]


def folder_of(file: str) -> str | None:
    return next((folder for folder in LIMITS if file.startswith(f"{folder}/")), None)


def run_cpp_tests(build: Path) -> None:
    for old in build.rglob("*.gcda"):
        old.unlink()
    subprocess.run(["ctest", "--preset", "coverage", "--parallel", "2"], cwd=ROOT, check=True)


def run_compiler_tests(build: Path) -> None:
    run_cpp_tests(build)
    files = [f"tests/python/test_{name}.py" for name in COMPILER_TESTS]
    parallel = ["--numprocesses", "auto", "--maxprocesses", "8", "--dist", "worksteal"]
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not long"]
    subprocess.run([*pytest, *parallel, *files], cwd=ROOT, check=True)


def run_tests(build: Path) -> None:
    run_cpp_tests(build)
    shutil.rmtree(build / "python-data", ignore_errors=True)
    (build / "python-data").mkdir()
    environment = {**os.environ, "COVERAGE_FILE": str(build / "python-data/data")}
    subprocess.run(
        [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=environment,
        check=True,
    )


def cpp_lines(build: Path, folders: Iterable[str]) -> dict[str, Lines]:
    output = build / "cpp.json"
    filters = [argument for folder in folders for argument in ("--filter", f"{folder}/")]
    subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "gcovr",
                "--root",
                str(ROOT),
                "--object-directory",
                str(build),
                "--json",
                str(output),
            ),
            *("--merge-mode-functions", "merge-use-line-0", *filters, str(build)),
        ],
        cwd=ROOT,
        check=True,
    )
    result = {}
    for file in json.loads(output.read_text())["files"]:
        text = (ROOT / file["file"]).read_text().splitlines()
        counts: dict[int, int] = defaultdict(int)
        for line in file["lines"]:
            # The end of a block is no statement; GCC counts there what is destroyed when an exception passes.
            if text[line["line_number"] - 1].strip() not in ("}", "};"):
                counts[line["line_number"]] += line["count"]
        result[file["file"]] = Lines({n for n, c in counts.items() if c}, {n for n, c in counts.items() if not c})
    return result


def python_lines(build: Path) -> dict[str, Lines]:
    output = build / "python.json"
    environment = {**os.environ, "COVERAGE_FILE": str(build / "python-data/data")}
    for arguments in (["combine", "--quiet", "--keep"], ["json", "--quiet", "-o", str(output)]):
        subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, env=environment, check=True)
    files = json.loads(output.read_text())["files"]
    return {name: Lines(set(f["executed_lines"]), set(f["missing_lines"])) for name, f in files.items()}


def places_of(lines: Lines) -> list[list[int]]:
    """Lines that are missed, those together between which none is reached."""
    places: list[list[int]] = []
    for number in sorted(lines.missed):
        if places and not any(between in lines.reached for between in range(places[-1][-1], number)):
            places[-1].append(number)
        else:
            places.append([number])
    return places


def share(lines: Iterable[Lines]) -> tuple[int, float]:
    """How many there are, and how many of them are reached, in percent."""
    every = list(lines)
    reached, missed = sum(len(one.reached) for one in every), sum(len(one.missed) for one in every)
    return reached + missed, 100 * reached / max(1, reached + missed)


def compiler_tables(files: dict[str, Lines]) -> str:
    """Of the compiler's rooms, and of its files below the limit."""
    rooms: dict[str, list[Lines]] = defaultdict(list)
    for file, lines in files.items():
        folder, _, rest = file.removeprefix(f"{COMPILER}/").partition("/")
        rooms[f"`{folder}/`" if rest else "beside the folders"].append(lines)
    rows = [("folder", "lines", "reached"), ("---", "---", "---")]
    for room, lines_of_room in sorted(rooms.items()):
        number, percent = share(lines_of_room)
        rows.append((room, f"{number:,}", f"{percent:.1f} %"))
    number, percent = share(files.values())
    rows.append(("together", f"{number:,}", f"{percent:.1f} %"))
    low = [(file, *share([lines])) for file, lines in files.items()]
    low = [row for row in low if row[2] < (LIMITS[COMPILER] or 0)]
    rows_of_files = [("file", "lines", "reached"), ("---", "---", "---")]
    rows_of_files += [
        (f"`{file.removeprefix(f'{COMPILER}/')}`", str(number), f"{percent:.1f} %")
        for file, number, percent in sorted(low, key=lambda row: row[2])
    ]

    def table(rows: list[tuple[str, str, str]]) -> str:
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)

    heading = f"Files of which less than {LIMITS[COMPILER]} % are reached:"
    return "\n".join([table(rows), *([f"{heading}\n", table(rows_of_files)] if low else [])]) + "\n"


class Reason(NamedTuple):
    fragment: str
    """Of one of the lines that are missed; ``(all)``: of any."""
    text: str


def read_reasons() -> dict[str, list[Reason]]:
    """Rows ``| `file` | `fragment` | reason |`` of the page, those for a whole file last."""
    reasons = defaultdict(list)
    for file, fragment, text in re.findall(r"^\| `([^`]+)` \| `+ ?(.+?) ?`+ \| (.+) \|$", REASONS.read_text(), re.M):
        reasons[file].append(Reason(fragment.replace("\\|", "|"), text))
    for rows in reasons.values():
        rows.sort(key=lambda reason: reason.fragment == WHOLE_FILE)
    return reasons


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--report-only", action="store_true", help="of the last run")
    parser.add_argument("--compiler", action="store_true", help="the compiler's library alone")
    options = parser.parse_args()
    build = options.build.resolve()
    if not options.report_only:
        run_compiler_tests(build) if options.compiler else run_tests(build)
    folders = [COMPILER] if options.compiler else list(LIMITS)
    files = cpp_lines(build, folders)
    if options.compiler:
        page = REASONS.read_text()
        REASONS.write_text(_TABLES.sub(lambda _: compiler_tables(files), page))
    else:
        files |= python_lines(build)
    reasons = read_reasons()
    used = set()

    sums = {folder: [0, 0] for folder in folders}
    explained, unexplained = [], []
    for file, lines in sorted(files.items()):
        folder = folder_of(file)
        if folder is None:
            continue
        sums[folder][0] += len(lines.reached)
        sums[folder][1] += len(lines.missed)
        text = (ROOT / file).read_text().splitlines()
        for place in places_of(lines):
            whole = [text[number - 1] for number in place]
            reason = next(
                (r for r in reasons[file] if r.fragment == WHOLE_FILE or any(r.fragment in line for line in whole)),
                None,
            )
            shown = f"{file}:{place[0]}" + (f"-{place[-1]}" if len(place) > 1 else "")
            if reason:
                used.add((file, reason))
                explained.append(f"{shown}: {reason.text}")
            else:
                unexplained.append("\n".join([f"{shown}:", *whole]))

    report = [f"{'folder':14} {'lines':>6} {'reached':>8}   limit"]
    too_low = []
    for folder, (reached, missed) in sums.items():
        share = 100 * reached / max(1, reached + missed)
        limit = LIMITS[folder]
        report.append(
            f"{folder:14} {reached + missed:6} {share:6.1f} %   {'' if limit is None else f'{limit} %'}".rstrip()
        )
        if limit is not None and share < limit:
            too_low.append(folder)
    unused = [
        (file, reason)
        for file in reasons
        for reason in reasons[file]
        if (file, reason) not in used and folder_of(file) in folders
    ]
    report += ["", f"Not reached, and docs/coverage.md gives no reason: {len(unexplained)}", *unexplained]
    report += ["", f"Not reached, for a reason: {len(explained)}", *explained]
    if unused:
        report += ["", "Reached, or gone, and docs/coverage.md gives a reason"]
        report += [f"{file}: {reason.fragment}" for file, reason in unused]
    (build / "report.txt").write_text("\n".join(report) + "\n")
    print("\n".join(report))
    for folder in too_low:
        print(f"{folder} is below its limit of {LIMITS[folder]} %", file=sys.stderr)
    return 1 if too_low else 0


if __name__ == "__main__":
    sys.exit(main())
