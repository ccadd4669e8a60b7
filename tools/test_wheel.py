#!/usr/bin/env python3
"""Builds the wheel and tries it where there is nothing but Python: no compiler on the path, nothing of this repository.

    tools/test_wheel.py [--keep FOLDER]

Looks at what the wheel's libraries need of the system, installs it with NumPy and MLX into an environment of its own,
and runs tests/wheel/try_kiln.py there. To try it on another machine of the same system, take the wheel and that script:

    python3 -m venv env && env/bin/pip install kiln_jit-*.whl[numpy,mlx] && env/bin/python try_kiln.py
"""

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What Debian 12 and Ubuntu 24.04 have without any package being asked for, and what lies beside the modules.
SYSTEM_LIBRARIES = {
    *("libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2"),
    *("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libzstd.so.1"),
}
OWN_LIBRARIES = re.compile(r"libkiln\.so\.[0-9.]+")
# Of the package mlx, found by the module's path to it.
MLX_LIBRARIES = {"libmlx.so"}


def build(folder: Path) -> Path:
    """The wheel, from the build folder that the installed package was made in."""
    build_dir = (ROOT / "build/.stamps/build-dir").read_text().strip()
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"),
            *("--config-settings", f"build-dir={build_dir}", "--wheel-dir", str(folder), str(ROOT)),
        ],
        check=True,
    )
    (wheel,) = folder.glob("kiln_jit-*.whl")
    return wheel


def problems_of(wheel: Path, folder: Path) -> list[str]:
    """What keeps the wheel from running elsewhere."""
    problems = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(folder)
    for name in names:
        if not name.startswith(("kiln/", "kiln_jit-")):
            problems.append(f"{name} lies outside the package")
    libraries = [folder / name for name in names if re.search(r"\.so($|\.)", name)]
    if not libraries:
        problems.append("there is no library")
    for library in libraries:
        text = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
        allowed = SYSTEM_LIBRARIES | (MLX_LIBRARIES if library.name.startswith("_mlx") else set())
        problems += [
            f"{library.name} needs {other}" for other in sorted(needed - allowed) if not OWN_LIBRARIES.fullmatch(other)
        ]
        for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text):
            problems += [
                f"{library.name} looks in {part}" for part in path.split(":") if not part.startswith("$ORIGIN")
            ]
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", metavar="FOLDER", help="copy the wheel there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel = build(folder)
        problems = problems_of(wheel, folder / "contents")
        if problems:
            print("\n".join(problems), file=sys.stderr)
            return 1
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, needs nothing that the system lacks")
        if options.keep:
            Path(options.keep).mkdir(parents=True, exist_ok=True)
            shutil.copy(wheel, options.keep)
        environment = folder / "environment"
        python = environment / "bin/python"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}[numpy,mlx]"], check=True)
        shutil.copy(ROOT / "tests/wheel/try_kiln.py", folder)
        # No other program can be found there.
        return subprocess.run(
            [python, folder / "try_kiln.py"], cwd=folder, env={"PATH": str(environment / "bin"), "HOME": str(folder)}
        ).returncode


if __name__ == "__main__":
    assert sysconfig.get_platform() == "linux-x86_64"
    sys.exit(main())
