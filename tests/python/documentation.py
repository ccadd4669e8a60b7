"""The pages of the documentation, and the blocks of code in them.

What a block's language means, to readers and to the tests:

* ``python``: run, all of a page in order in one process, in an empty folder. A page with ``continues: other.md`` in its
  front matter starts with the names that the other page ends with. A block whose first line is ``# name.py`` is a file of
  that name in the folder, and is run where a console block runs it; so is a ``metal`` one that begins ``// name.metal``
  and a ``cuda`` one that begins ``// name.cu``. ``needs: torch`` in the front matter names the modules without which the
  tests leave the page's programs out.
* ``text``, ``metal`` or ``cuda`` below a ``python`` block: exactly what that block prints, and the last lines of the
  traceback where it raises.
* ``console``: the lines that begin with ``$`` are commands, the lines below each what it prints. A command that fails
  says why there.
* ``cpp``: a whole program; ``text`` below it is what it prints. ``cmake``: the lines of a project that builds such a
  program. Those who build them against an installation get them from ``code_blocks``.
* ``text`` elsewhere: a diagram or a format. ``DIAGRAMS`` counts those of each page.

In what is printed, ``…`` stands for anything within a line, a line of it for any number of lines, and a number before
``s``, ``ms`` or ``µs`` for any number.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"

LANGUAGES = {"python", "text", "console", "cpp", "cmake", "metal", "cuda"}
OUTPUTS = {"text", "metal", "cuda"}
PROGRAMS = {"python", "cpp"}

# Blocks that show what no program prints, by page.
DIAGRAMS = {
    "ARCHITECTURE.md": 2,
    "docs/coverage.md": 1,
    "docs/design/simd-engine.md": 8,
    "docs/measured.md": 1,
}


class Block(NamedTuple):
    page: str
    """Relative to the repository's root."""
    line: int
    """Of the block's first line in the page, from 1."""
    language: str
    """Empty for a fence that says none."""
    text: str
    """With the last line's end."""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file_name(self) -> str | None:
        """Of a block that is a file."""
        comment = {"python": r"# (\w+\.py)\n", "metal": r"// (\w+\.metal)\n", "cuda": r"// (\w+\.cu)\n"}.get(
            self.language
        )
        named = re.match(comment, self.text) if comment else None
        return named[1] if named else None


def pages() -> list[str]:
    """All pages, relative to the repository's root, but those that the site's builder writes itself (``%`` begins a
    comment there)."""
    below = (page for page in sorted(DOCS.rglob("*.md")) if not page.read_text().startswith("% Written by"))
    names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/gallery/README.md"]
    return names + [str(page.relative_to(ROOT)) for page in below]


_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)[ ]*(?P<language>[^`\n]*)$")


def code_blocks(page: str, language: str | None = None) -> list[Block]:
    """The fenced blocks of a page, in order; those of one language where it is given.

    Directives are written with colons (``:::{toctree}``), so every fence of backquotes is code, save for ``{eval-rst}``,
    which has no other form.
    """
    found: list[Block] = []
    lines = (ROOT / page).read_text().split("\n")
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        number += 1
        if not opening:
            continue
        first = number
        while number < len(lines) and lines[number].strip() != opening["fence"]:
            number += 1
        assert number < len(lines), f"{page}:{first}: nothing closes this fence"
        indent = len(opening["indent"])
        text = "".join(line[indent:] + "\n" for line in lines[first:number])
        found.append(Block(page, first + 1, opening["language"].strip(), text))
        number += 1
    return [block for block in found if block.language != "{eval-rst}" and language in (None, block.language)]


def continued(page: str) -> str | None:
    """The page with whose names this one starts."""
    front = re.match(r"---\n(.*?)\n---\n", (ROOT / page).read_text(), re.DOTALL)
    named = re.search(r"^continues: (\S+)$", front[1], re.MULTILINE) if front else None
    return str(Path(page).parent / named[1]) if named else None


# A time, as re.escape writes it, and the spaces before it.
_TIME = re.compile(r"(?:\\ )*[0-9]+(?:\\\.[0-9]+)?(?=\\ (?:s|ms|µs)\b)")


def needed(page: str) -> list[str]:
    """The modules without which the page's programs do not run."""
    front = re.match(r"---\n(?:.*\n)*?needs: (.+)\n(?:.*\n)*?---\n", (ROOT / page).read_text())
    return front[1].split(", ") if front else []


def matches(shown: str, printed: str) -> bool:
    """Whether a program printed what the page shows."""
    lines = [
        _TIME.sub(r" *[0-9]+(?:\\.[0-9]+)?", re.escape(line)).replace("…", "[^\n]*") + "\n"
        for line in shown.rstrip("\n").split("\n")
    ]
    pattern = "".join("(?:[^\n]*\n)*" if line == "[^\n]*\n" else line for line in lines)
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


# Reads blocks from standard input, a line of JSON each, and answers with what each printed.
_RUNNER = r"""
import contextlib, io, json, sys, traceback
answers, names = sys.stdout, {"__name__": "__main__"}
for line in sys.stdin:
    place, number, text = json.loads(line)
    printed, raised = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile("\n" * (number - 1) + text, place, "exec"), names)
        except Exception as error:
            raised = traceback.format_exc()
            print("".join(traceback.format_exception_only(error)), end="")
    answers.write(json.dumps([printed.getvalue(), raised]) + "\n")
    answers.flush()
"""


class Session:
    """One process that runs a page's blocks, and the folder that it runs in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in ("KILN_CACHE_DIR", "XDG_CACHE_HOME")},
            "HOME": str(folder),
            "KILN_CACHE": "on",  # as users have it, in this folder
            "PATH": os.pathsep.join(paths),
            "COLUMNS": "80",
            "MPLBACKEND": "Agg",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONUNBUFFERED": "1",  # a command's output and its errors come in their order, as in a terminal
        }
        self._process: subprocess.Popen[str] | None = None

    def python(self, block: Block) -> tuple[str, str | None]:
        """What the block printed, and the traceback where it raised."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUNNER],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([block.page, block.line, block.text]) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"{block.place}: the process ended with status {process.wait()}"
        printed, raised = json.loads(answer)
        return printed, raised

    def console(self, command: str) -> tuple[str, int]:
        """What a command printed, errors included, and its status."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout, done.returncode

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a console block, and what is shown below it."""
    parts = re.split(r"^\$ (.*)$\n", block.text, flags=re.MULTILINE)
    assert parts[0] == "", f"{block.place}: a console block begins with a command"
    yield from zip(parts[1::2], parts[2::2], strict=True)


# ---- Links


def headings(page: str) -> set[str]:
    """What a link to a place in the page may name: each heading in small letters, with hyphens for spaces."""
    text = re.sub(r"(?ms)^(```+).*?^\1$", "", (ROOT / page).read_text())
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(words.replace(" ", "-"))
    return found


def links(page: str) -> list[tuple[str, str]]:
    """The relative links of a page: the file, relative to the root, and the place in it, or an empty string."""
    text = re.sub(r"(?ms)^(```+).*?^\1$", "", (ROOT / page).read_text())
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, place = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        found.append((file, place))
    return found
