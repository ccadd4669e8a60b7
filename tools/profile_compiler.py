#!/usr/bin/env python3
"""Writes src/compiler/code_layout.yaml.xz: which ways the compiler library's code takes while it compiles.

    .venv/bin/python tools/profile_compiler.py

Needs bolt-19 and what `make build` has built; takes some minutes and 1 GB of disk. To be run when Debian's LLVM changes,
or much of src/compiler; until then the functions that have changed are left as the linker put them
(tools/arrange_code.py).

BOLT puts counters into the library, which then compiles every eighth body of the tests for AVX2, AVX-512 and sm_90: as
many kernels as a few minutes allow, none of them chosen. Of what is counted, the file has two binary digits, as no
layout needs more, and no numbers of zero. Blocks' hashes, by which BOLT can guess at functions that have changed, are
left out: they would be more than half of it.
"""

import argparse
import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROFILE = ROOT / "src" / "compiler" / "code_layout.yaml.xz"
ARCHITECTURES = ["x86-64-v3", "x86-64-v4", "sm_90"]
EVERY = 8


def compile_bodies() -> None:
    """With the library that KILN_COMPILER names."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "python")]
    import kiln
    from gpu_code import code_of_body
    from launch_bodies import BODIES, kernel_of

    for body in list(BODIES.values())[::EVERY]:
        for architecture in ARCHITECTURES:
            code_of_body(body, kernel_of(body.name, kiln.metal_kernel), architecture)


def two_digits(match: re.Match[str]) -> str:
    count = int(match[2])
    dropped = max(0, count.bit_length() - 2)
    return f"{match[1]}{count >> dropped << dropped}"


def reduced(profile: str) -> str:
    """BOLT's YAML without what arranging does not need."""
    head, *functions = re.split(r"(?m)^  - name: ", profile)
    parts = [head]
    for function in functions:
        about, *blocks = function.split("      - bid:")
        kept = []
        for block in blocks:
            block = re.sub(r"\{ bid: \d+, cnt: 0(?:, mis: \d+)? \}(?:, )?|, mis: \d+", "", block)
            block = re.sub(r"\n +succ: +\[ *\]", "", block.replace(",  ]", " ]"))
            if re.search(r"exec:|succ:|calls:", block):
                kept.append(re.sub(r"\n +hash: +0x\w+", "", block))
        if not kept:
            about = re.sub(r"\n    blocks: *(?=\n)", "", about)
        whole = "      - bid:".join([about, *kept])
        parts.append(re.sub(r"((?:cnt|exec): *)(\d+)", two_digits, whole))
    return "  - name: ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bolt", default="/usr/lib/llvm-19/bin/llvm-bolt", help="beside the libraries that it needs")
    bolt = parser.parse_args().bolt
    build = Path((ROOT / "build" / ".stamps" / "build-dir").read_text().strip())
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    # The target is there with -DKILN_ARRANGE_COMPILER=ON alone.
    subprocess.run(["cmake", "--build", build, "--target", "kiln_compiler_linked"], check=True, env=environment)
    linked = build / "lib" / "libkiln_compiler_linked.so"
    with tempfile.TemporaryDirectory(dir=build) as folder:
        counting, counts = Path(folder) / "counting.so", Path(folder) / "counts.fdata"
        print("putting counters into the library")
        subprocess.run(
            [bolt, linked, "--instrument", f"--instrumentation-file={counts}", "-o", counting],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        print("compiling the tests' bodies with it")
        subprocess.run(
            [sys.executable, __file__, "--compile"],
            check=True,
            env={**environment, "KILN_COMPILER": str(counting), "KILN_CACHE": "off"},
        )
        profile = Path(folder) / "profile.yaml"
        subprocess.run(
            [bolt, linked, f"-data={counts}", f"-w={profile}", "-o", Path(folder) / "unused.so"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        PROFILE.write_bytes(lzma.compress(reduced(profile.read_text()).encode(), preset=9 | lzma.PRESET_EXTREME))
    linked.unlink()
    print(f"{PROFILE.relative_to(ROOT)}: {PROFILE.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    if sys.argv[1:] == ["--compile"]:
        compile_bodies()
    else:
        main()
