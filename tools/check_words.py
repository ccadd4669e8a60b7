#!/usr/bin/env python3
"""Checks that names in the compiler use the field's words, so that a reader finds them by searching.

WORDS lists the words that are refused in names of files and in identifiers of src/compiler, each with the word to use
instead. docs/glossary.md explains the terms and shows this table, which tools/write_lists.py writes there.

Names of instruction sets and GPUs (MACHINES) are refused in code and comments alike, except in the rooms of one
processor, in the driver, which chooses among them, and in the list of passes. Elsewhere code asks what a processor can
do (src/compiler/ir/vector_isa.h), and a comment says which property matters.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "src/compiler"

# Refused words -> what to use instead. A word is refused if it is a whole part of a name, between underscores or the
# humps of CamelCase; a compound such as `same_in_all`, if its parts follow one another. Words that also have a right
# meaning (place, row, way, piece, run, wait, exchange, same) are refused only in unambiguous compounds.
WORDS = {
    "ask asks asked asking question questions": "check, guard or predicate; query of an analysis",
    "behind": "after, dominated by, successor",
    "apart": "scalarized; `.slow` for the clone of a function",
    "wanted wants": "live, used, needed; register pressure",
    "nobody somebody who whom": "dead, unused; exclusive",
    "usual": "likely; fast path",
    "fork forks": "branch",
    "meet meets meeting meetings": "join",
    "alike same_in_all same_for_all": "uniform (over a simdgroup), invariant (over a launch)",
    "differ differs": "divergent",
    "again": "rematerialize, reload; back edge",
    "untaken": "ordering edge",
    "stand_in stand_ins": "pseudo-intrinsic",
    "way_of ways_of way_out ways_out real_way by_way": "edge, path, successor",
    "place_of places_of of_place at_place same_place same_places": "address, offset, index, position",
    "waiting_place waiting_places wait_site wait_sites has_wait": "convergence point; suspend point",
    "lower_wait lower_waits wait_lowering waits_before waits_between": "convergence point; suspend point",
    "exchanges_values is_exchange has_exchange has_exchanges lower_exchanges": "collective",
    "is_row are_rows load_row masked_row limited_row whole_row whole_rows": "consecutive access",
    "row_loops row_functions row_questions": "loop versioning, function versioning",
    "row_locks row_updates locked_rows shared_row": "striped atomics",
    "gathered_row gathered_rows": "indirect prefetch",
    "edge_row edge_rows": "tail load",
    "distant_row distant_rows": "shared bounds check",
    "row_runs in_runs are_runs by_piece last_piece next_piece before_pieces separate_pieces": "thread coarsening; half",
    "gather_stores": "cluster stores (a gather is an indexed load)",
    "tile_batch tile_batches batch_tiles": "tile multibuffering",
    "finish_chain finish_chains": "pressure scheduler",
    "cut": "split",
    "leave_first tail_first tails_first": "early-exit linearization",
    "agreement barriers_agree": "barrier uniformity",
    "separate_lanes": "affine lanes",
    "turned turn_square turn_squares": "transposed, transpose",
    "extremes packed_number packed_numbers scaling": "min/max idiom; int4 to float; ldexp",
    "told said": "set, reported",
    "forget forgets forgotten": "invalidate, reset",
    "let lets given_out": "allow, assign",
}

# Names of instruction sets, their intrinsics, and GPUs: whole words or the first of a name, and humps of CamelCase.
MACHINES = re.compile(
    r"(?:(?<![A-Za-z])(?i:avx|sse\d|x86|nvidia|nvptx|nvvm|ptx|sm_\d|bmi\d|[xyz]mm\d*(?![a-z])|[abhv]\d00|rtx|gb200|volta"
    r"|turing|ampere|hopper|blackwell)|(?:Avx|AVX|X86|Nvidia|NVIDIA|Nvptx|NVPTX|Nvvm|NVVM|Ptx|PTX))\w*"
)

# A path such as `x86/image_writer.h` is no such name.
MACHINE_PATHS = re.compile(r"\b(?:nvptx|x86)/[\w.]*")

# Folders and files of src/compiler in which they are right.
MACHINE_FILES = ["driver/", "nvptx/", "pipeline.cpp", "pipeline.h", "x86/"]

# What stands elsewhere: file of src/compiler, text -> reason.
ALLOWED_MACHINES = {
    ("clang/dialects/cuda_tokens.cpp", "inline PTX is not supported"): "CUDA's users know the language in `asm` as PTX",
    ("clang/dialects/cuda_tokens.cpp", '"sm_20_intrinsics.h"'): "a header of CUDA's",
    ("ir/entry.h", '"x86_64-unknown-linux-gnu"'): "Clang compiles for one target, whatever the kernel's is",
}

_TOKEN = re.compile(
    r'^[ \t]*#[ \t]*include[^\n]*|//[^\n]*|/\*.*?\*/|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'|(?P<name>(?:tok::)?[A-Za-z_]\w*)|\d[\w.']*",
    re.DOTALL | re.MULTILINE,
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_REFUSED = {tuple(word.split("_")): use for words, use in WORDS.items() for word in words.split()}
_LONGEST = max(map(len, _REFUSED))


def identifiers(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each identifier in C++ text, without those of LLVM and Clang: `forgetLoop`, `tok::question`."""
    line, end = 1, 0
    for match in _TOKEN.finditer(text):
        line, end = line + text.count("\n", end, match.start()), match.start()
        name = match["name"]
        if name and not name.startswith("tok::") and not re.match(r"(?!k[A-Z])[a-z]+\d*[A-Z]", name):
            yield line, name


def refused(name: str) -> tuple[str, str] | None:
    """The first refused word in a name, and what to use instead."""
    parts = [part.lower() for part in _PART.findall(name)]
    for begin in range(len(parts)):
        for end in range(begin + 1, min(begin + _LONGEST, len(parts)) + 1):
            if use := _REFUSED.get(tuple(parts[begin:end])):
                return "_".join(parts[begin:end]), use
    return None


def problems(root: Path) -> list[str]:
    """Refused words in names of files and identifiers."""
    found: list[str] = []
    for path in sorted((root / FOLDER).rglob("*")):
        relative = path.relative_to(root).as_posix()
        if word := refused(path.stem):
            found.append(f"{relative}: {_reason(*word, 'the name of this file')}")
        if path.suffix not in {".h", ".cpp", ".def"}:
            continue
        lines: dict[str, int] = {}
        for line, name in identifiers(path.read_text()):
            lines.setdefault(name, line)
        for name, line in lines.items():
            if word := refused(name):
                found.append(f"{relative}:{line}: {_reason(*word, f'`{name}`')}")
    return found


def machines(root: Path, allowed: dict[tuple[str, str], str]) -> list[str]:
    """Instruction sets and GPUs where code is for any, and entries of `allowed` that are not needed."""
    found: list[str] = []
    needless = dict(allowed)
    for path in sorted((root / FOLDER).rglob("*")):
        relative = path.relative_to(root / FOLDER).as_posix()
        if path.suffix not in {".h", ".cpp", ".def"} or relative.startswith(tuple(MACHINE_FILES)):
            continue
        text = path.read_text()
        for file, phrase in allowed:
            if file == relative and phrase in text:
                text = text.replace(phrase, "")
                needless.pop((file, phrase))
        places = [("", path.stem), *((f":{number}", line) for number, line in enumerate(text.splitlines(), 1))]
        for where, line in places:
            if match := MACHINES.search(MACHINE_PATHS.sub("", line)):
                found.append(
                    f"{FOLDER}/{relative}{where}: `{match[0]}` is an instruction set or a GPU; name the property of the "
                    "processor that matters (src/compiler/ir/vector_isa.h)"
                )
    return found + [
        f"{FOLDER}/{file}: no longer contains `{phrase}`; remove it from ALLOWED_MACHINES" for file, phrase in needless
    ]


def _reason(word: str, use: str, name: str) -> str:
    return f"`{word}` in {name}; use instead: {use} (docs/glossary.md)"


def table() -> str:
    """The refused words as rows of docs/glossary.md."""
    rows = [f"| {', '.join(f'`{word}`' for word in words.split())} | {use} |" for words, use in WORDS.items()]
    return "\n".join(["| word | use instead |", "|---|---|", *rows])


def main() -> int:
    found = problems(ROOT) + machines(ROOT, ALLOWED_MACHINES)
    print("\n".join(found) if found else "words: names use the field's")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
