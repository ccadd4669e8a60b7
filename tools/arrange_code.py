#!/usr/bin/env python3
"""Arranges a library's machine code by what runs of it, in place: LLVM's BOLT, and a profile.

Compiling three bodies runs 17,000 of the compiler library's 114,000 functions, and of most of those the smaller part. As
linked, that part lies all over 58 MB: more pages to map, lines of code to fetch and branches to take than the work
needs. With the ways that are taken in a row, in 10 MB for all bodies, a compilation takes a fifth less (docs/design/compiler.md).

The profile is src/compiler/code_layout.yaml.xz, which tools/profile_compiler.py writes. A function that is not the one
which the profile was made of (its hash tells) stays as it is. What the code does is the same with any profile and with
none, so where BOLT fails the library is left as it was linked, with a warning.
"""

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

OPTIONS = [
    "-reorder-blocks=ext-tsp",  # the ways that are taken, in a row
    "-reorder-functions=cdsort",  # functions that call one another, together
    "-split-functions",  # what was never taken, elsewhere
    "-split-all-cold",
    "-split-eh",
]


def arrange(bolt: str, profile: Path, library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        unpacked, arranged = Path(folder) / "profile.yaml", Path(folder) / "arranged.so"
        command: list[str | Path] = [bolt, library, f"-data={unpacked}", "-o", arranged, *OPTIONS]
        try:
            import lzma  # which a Python may have been built without

            unpacked.write_bytes(lzma.decompress(profile.read_bytes()))
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except (ImportError, OSError) as error:
            print(f"warning: {library.name} stays as it was linked: {error}")
            return
        if done.returncode:
            print(f"warning: {library.name} stays as it was linked; {bolt} says:\n{done.stdout}{done.stderr}")
            return
        used = re.search(r"(\d+) out of \d+ functions in the binary .* have non-empty execution profile", done.stdout)
        print(f"arranged {used[1] if used else 'no'} functions of {library.name}")
        os.replace(arranged, library)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bolt", help="llvm-bolt")
    parser.add_argument("profile", type=Path, help="BOLT's YAML, compressed by xz")
    parser.add_argument("library", type=Path, help="linked with --emit-relocs")
    options = parser.parse_args()
    arrange(options.bolt, options.profile, options.library)


if __name__ == "__main__":
    main()
