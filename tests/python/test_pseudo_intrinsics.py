"""The device library declares those pseudo-intrinsics that the compiler's table has, and nothing else spells a name."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"
TABLE = SOURCES / "compiler" / "ir" / "pseudo_intrinsics.def"
ROW = re.compile(r'^KILN_PSEUDO_INTRINSIC\(\w+, "(\w+)", \w+, \w+, (\w+),', re.M)
# `extern "C" … type name(`, without a body. Functions of C have a prefix of their own (device/cuda/c_functions.h).
DECLARATION = re.compile(r'extern "C"[^;{]*?\b(__kiln_\w+)\(')


def rows():
    return ROW.findall(TABLE.read_text())


def test_every_row_is_read():
    assert len(rows()) == TABLE.read_text().count("\nKILN_PSEUDO_INTRINSIC(")
    assert len({name for name, _ in rows()}) == len(rows())


def test_the_device_library_declares_what_the_table_has():
    declared = set()
    for path in (SOURCES / "device").rglob("*.*"):
        declared |= set(DECLARATION.findall(path.read_text()))
    assert declared == {name for name, origin in rows() if origin == "kDevice"}


def test_the_compiler_spells_names_in_the_table_alone():
    names = {name for name, _ in rows()}
    # The SIMD engine's function of a simdgroup has the name that a GPU's index of a simdgroup has.
    known = {("engines/simd_entry.h", "__kiln_simdgroup")}
    spelled = {
        (str(path.relative_to(SOURCES / "compiler")), name)
        for path in (SOURCES / "compiler").rglob("*.*")
        if path.suffix in (".h", ".cpp") and path.parent.name != "opt"
        for name in re.findall(r'"(__kiln_\w+)"', path.read_text())
        if name in names
    }
    assert spelled == known
