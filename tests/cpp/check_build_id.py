"""Whether the compiler has another build ID when it is linked with one thing changed: ``check_build_id.py CMAKE BUILD LIBRARY``.

Machine code on disk is found by it, so it has to change with all that is linked. The library is linked anew with the
command of its build, once as it is and once for each of: a byte of the device library, of a flag that bodies are compiled
with, of the text of LLVM's version.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

# Sizes of name and content, the type of a build ID, its owner; then 20 bytes.
NOTE = re.compile(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", re.DOTALL)

# What is changed: the input of the linker, with files compiled together or apart, a text in it, and the same text with
# another letter.
CHANGES = {
    "the device library": (("device_library_parts.cpp.o",), b"METAL_FUNC inline", b"METAL_FUNC inlinE"),
    # As much of a long flag as a compiler puts into one instruction.
    "a flag": (("clang_session.cpp.o", "compiler_base.dir/Unity/unity_clang_cxx.cxx.o"), b"-fno-str", b"-fno-stR"),
    "LLVM's version": (("-lLLVMAsmPrinter",), b"LLVM version 19", b"LLVM version 18"),
}


def build_id(path: Path) -> bytes:
    notes = NOTE.findall(path.read_bytes())
    assert len(notes) == 1, f"{path} has {len(notes)} build IDs of 160 bits"
    return bytes(notes[0])


def link_command(ninja: str, build: Path, library: Path) -> list[str]:
    target = library.relative_to(build)
    commands = subprocess.run(
        [ninja, "-C", build, "-t", "commands", target], check=True, capture_output=True, text=True
    )
    words = shlex.split(commands.stdout.splitlines()[-1])
    # ": && g++ … && :", or what arranges the library's code in place of the colon
    begin = words.index("&&") + 1
    return words[begin : words.index("&&", begin)]


def file_of(word: str, command: list[str], build: Path) -> Path:
    if not word.startswith("-l"):
        return build / word
    folders = [Path(other[2:]) for other in command if other.startswith("-L")]
    return next(path for folder in folders if (path := folder / f"lib{word[2:]}.a").exists())


def main(ninja: str, build_folder: str, library_file: str) -> None:
    build, library = Path(build_folder), Path(library_file)
    command = link_command(ninja, build, library)
    (output,) = (place + 1 for place, word in enumerate(command) if word == "-o")

    with tempfile.TemporaryDirectory() as name:

        def linked(replaced: tuple[str, ...] = (), old: bytes = b"", new: bytes = b"") -> bytes:
            words = list(command)
            words[output] = f"{name}/linked.so"
            if replaced:
                (place,) = {words.index(word) for word in words if word.endswith(replaced)}
                original = file_of(words[place], command, build)
                content = original.read_bytes()
                assert old in content, f"{original} has no {old!r}"
                words[place] = f"{name}/{original.name}"
                Path(words[place]).write_bytes(content.replace(old, new))
            subprocess.run(words, cwd=build, check=True)
            return build_id(Path(name) / "linked.so")

        unchanged = linked()
        # BOLT, which arranges code, turns the last bit over.
        arranged = unchanged[:-1] + bytes([unchanged[-1] ^ 1])
        assert build_id(library) in (unchanged, arranged), "linking is not reproducible"
        ids = {subject: linked(*change) for subject, change in CHANGES.items()}
        same = [subject for subject, changed in ids.items() if changed in (unchanged, arranged)]
        assert not same, f"no part of the build ID: {', '.join(same)}"


main(*sys.argv[1:])
