#!/usr/bin/env python3
"""Builds Kiln with its C++ tests and installs the package into the environment that runs this script.

The build folder is kept, so that a second run compiles only what has changed. Its path is written to
build/.stamps/build-dir, for ctest.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    build_dir = ROOT / "build" / tag
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"),
            *("--force-reinstall", "--config-settings", f"build-dir={build_dir}"),
            *("--config-settings", "cmake.define.KILN_BUILD_TESTS=ON"),
            str(ROOT),
        ],
        check=True,
        # cmake and ninja of the environment come first.
        env={**os.environ, "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"},
    )
    stamps = ROOT / "build" / ".stamps"
    stamps.mkdir(parents=True, exist_ok=True)
    (stamps / "build-dir").write_text(f"{build_dir}\n")


if __name__ == "__main__":
    main()
