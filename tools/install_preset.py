#!/usr/bin/env python3
"""Installs the package that a preset of CMakePresets.json has built into an environment of its own.

    tools/install_preset.py PRESET

The environment is build/PRESET/env. It has the packages of the environment that runs this script, but for Kiln. (A
folder on PYTHONPATH would not do: some tests start processes with another PYTHONPATH, which would find the other Kiln.)
"""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    build = ROOT / "build" / sys.argv[1]
    environment = build / "env"
    venv.create(environment, clear=True, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
    (packages / "outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    install = ["cmake", "--install", str(build), "--component", "python", "--prefix", str(packages)]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    for file in (ROOT / "python/kiln").iterdir():
        if file.is_file():
            shutil.copy(file, packages / "kiln")


if __name__ == "__main__":
    main()
