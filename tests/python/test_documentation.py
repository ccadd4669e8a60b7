"""The documentation: every block of code does what its page says, every link leads somewhere, every name is explained.

`documentation.py` says what a block's language means.
"""

from __future__ import annotations

import re

import pytest
from documentation import (
    DIAGRAMS,
    LANGUAGES,
    OUTPUTS,
    PROGRAMS,
    ROOT,
    Block,
    Session,
    code_blocks,
    commands,
    continued,
    matches,
    pages,
)

PAGES = pages()

# Commands that a page shows and that no test runs. Of `make`, the targets must be there.
SHOWN_ONLY = re.compile(r"(sudo )?(apt-get|git|pip|make|cmake|\.|\.venv/\S+) ")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_that_the_tests_know(page):
    blocks = code_blocks(page)
    assert [block.place for block in blocks if block.language not in LANGUAGES] == []
    free = [
        block.place
        for before, block in zip([None, *blocks], blocks, strict=False)
        if block.language in OUTPUTS and (before is None or before.language not in PROGRAMS or before.file_name)
    ]
    assert len(free) == DIAGRAMS.get(page, 0), f"shown by no program: {free}"


def _run_python(session: Session, page: str) -> None:
    """Runs a page for its names only; its own test checks what it prints."""
    if before := continued(page):
        _run_python(session, before)
    for block in code_blocks(page, "python"):
        if not block.file_name:
            session.python(block)


def _check_output(block: Block, shown: Block | None, printed: str, raised: str | None) -> None:
    if shown is None:
        assert raised is None, f"{block.place} raises, and the page does not say so:\n{raised}"
        assert printed == "", f"{block.place} prints what the page does not show:\n{printed}"
    else:
        assert matches(shown.text, printed), (
            f"{shown.place} is not what {block.place} prints:\n{printed}\n{raised or ''}"
        )


@pytest.mark.parametrize("page", [page for page in PAGES if code_blocks(page)])
def test_blocks_do_what_the_page_says(page, tmp_path):
    blocks = code_blocks(page)
    with Session(tmp_path) as session:
        if before := continued(page):
            _run_python(session, before)
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            if block.file_name:
                (tmp_path / block.file_name).write_text(block.text)
            elif block.language == "python":
                is_shown = following is not None and following.language in OUTPUTS
                _check_output(block, following if is_shown else None, *session.python(block))
            elif block.language == "console":
                for command, shown in commands(block):
                    if SHOWN_ONLY.match(command):
                        continue
                    printed, status = session.console(command)
                    assert matches(shown, printed), f"{block.place}: {command} prints\n{printed}"
                    assert status == 0 or shown, f"{block.place}: {command} ends with status {status}"


def test_every_make_target_that_a_page_names_is_there():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        (page, target)
        for page in PAGES
        for target in re.findall(r"(?:`|\$ |^)make ([\w-]+)", (ROOT / page).read_text())
    }
    assert {target for _, target in named} >= {"build", "demo", "test", "docs"}
    assert [(page, target) for page, target in named if target not in targets] == []


# ---- What reads the pages


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a …\n", "a 1.5 ms\n", True),
        ("a …\n", "b 1.5 ms\n", False),
        ("a …\n", "a 1\n2\n", False),
        ("a\n…\nb\n", "a\n1\n2\nb\n", True),
        ("a\n…\nb\n", "a\nb\n", True),
        ("a\n…\n", "b\n1\n", False),
        ("it took 1.2 ms\n", "it took 34.5 ms\n", True),
        ("it took 1.2 m\n", "it took 34.5 m\n", False),
        ("a.b(c)\n", "a+b(c)\n", False),
        ("", "a\n", False),
        ("", "", True),
    ],
)
def test_what_counts_as_equal(shown, printed, equal):
    assert matches(shown, printed) == equal
