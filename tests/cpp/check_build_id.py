"""Whether the linker's build IDs are digests of what it links, and the compiler has one: ``check_build_id.py LIBRARY CXX
FLAGS...``, where the flags choose the linker and its build IDs as the library's own do.

Machine code on disk is found by it, so it has to change with all that is linked: LLVM, the device library, flags.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Sizes of name and content, the type of a build ID, its owner; then 20 bytes.
NOTE = re.compile(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", re.DOTALL)


def build_id(path: Path) -> bytes:
    notes = NOTE.findall(path.read_bytes())
    assert len(notes) == 1, f"{path} has {len(notes)} build IDs of 160 bits"
    return bytes(notes[0])


def main(library: str, *compiler: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def linked(text: str) -> bytes:
            (folder / "a.cpp").write_text(text)
            subprocess.run([*compiler, "-shared", "-fPIC", "-o", "a.so", "a.cpp"], cwd=folder, check=True)
            return build_id(folder / "a.so")

        first = linked("extern const int numbers[3] = {1, 2, 3};")
        assert linked("extern const int numbers[3] = {1, 2, 3};") == first
        # A constant, an instruction, a name.
        assert linked("extern const int numbers[3] = {1, 2, 4};") != first
        added, subtracted = (linked(f"int f(int a) {{ return a {sign} 5; }}") for sign in "+-")
        assert added != subtracted
        assert linked("int g(int a) { return a + 5; }") != added
    build_id(Path(library))


main(*sys.argv[1:])
