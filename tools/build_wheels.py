#!/usr/bin/env python3
"""Builds the wheels that are published: manylinux, for each Python that is given or found.

    tools/build_wheels.py [--out FOLDER] [PYTHON...]

The compiler's library knows no Python: all wheels have that of the package in this environment (`make build`), and of
each Python the modules alone are compiled. A wheel for Python 3.11 stands for itself. Those of 3.12 and later are one
wheel, of Python's stable interface, with

* `_core` for each of these Pythons, which is what they import: it reads tuples and lists without a call, and that is a
  good part of a small launch;
* `_core` for the stable interface, which serves Pythons that came later;
* `_mlx` for each of these Pythons and each version of MLX (mlx_parts.py). It has to speak with MLX's module, and MLX
  builds it for each Python.

(A wheel for each Python was the alternative. The compiler's library is nearly all of it, so that four would be four
times as large, and the next Python would have none on the day when it comes out.)

auditwheel then looks whether the libraries need what the policy does not grant, copies libzstd beside them, and names
the policy in the wheel's name. MLX's library is MLX's wheel's; `_mlx` finds it there.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import NamedTuple

import mlx_parts

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "wheels"

# Debian 12 has this glibc, and its compiler's library.
POLICY = "manylinux_2_36_x86_64"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
FIRST_STABLE = (3, 12)
LARGEST = 60e6  # bytes


class Python(NamedTuple):
    path: Path
    version: tuple[int, int]

    @property
    def tag(self) -> str:
        return f"cp{self.version[0]}{self.version[1]}"

    @property
    def folder(self) -> Path:
        return FOLDER / self.tag

    @property
    def in_environment(self) -> Path:
        return self.folder / "env" / "bin" / "python"


def ask(python: Path) -> Python | None:
    """What it is; None for what is no CPython of a version that wheels are built for, or has no interpreter lock."""
    code = (
        "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2], "
        "int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode or not (match := re.fullmatch(r"cpython (\d+) (\d+) 0\n", done.stdout)):
        return None
    return Python(python, (int(match[1]), int(match[2])))


def find_pythons() -> list[Python]:
    """The first of each version, on the path or among pyenv's; otherwise Debian's, unpacked (tools/debian_python)."""
    found = []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        candidates = [Path(path) for path in [shutil.which(f"python{version}")] if path]
        candidates += sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True)
        known = (python for path in candidates if (python := ask(path)) and has_headers(path))
        if python := next(known, None) or unpack_debian(version):
            found.append(python)
    return found


def unpack_debian(version: str) -> Python | None:
    folder = FOLDER / "pythons" / version
    done = subprocess.run([ROOT / "tools" / "debian_python", version, folder], check=False)
    return None if done.returncode else ask(folder / "usr" / "bin" / f"python{version}")


def has_headers(python: Path) -> bool:
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode == 0 and (Path(done.stdout.strip()) / "Python.h").exists()


def run(*command: str | Path, **environment: str) -> None:
    # cmake and ninja of the environment come first.
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    subprocess.run(
        [str(part) for part in command], check=True, cwd=ROOT, env={**os.environ, "PATH": path, **environment}
    )


def requirements() -> list[str]:
    """What the package is built with: the lines of requirements.txt that its build needs."""
    names = ("scikit-build-core", "nanobind", "mlx", "numpy")
    return [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line.startswith(names)]


def make_environment(python: Python) -> None:
    # Some Pythons come without pip, and Debian's without ensurepip.
    if not python.in_environment.exists():
        run(python.path, "-m", "venv", "--without-pip", python.folder / "env")
    run(sys.executable, "-m", "pip", "--python", python.in_environment, "install", "-q", *requirements())


def compiler_library() -> Path:
    """That of the installed package: without the symbols that only a debugger reads."""
    specification = importlib.util.find_spec("kiln")
    assert specification and specification.origin, (
        "`make build` installs the package, whose compiler's library is taken"
    )
    return Path(specification.origin).with_name("libkiln_compiler.so")


def build(python: Python) -> Path:
    """The wheel as it comes from the build."""
    raw = python.folder / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    defined = {"KILN_COMPILER_LIBRARY": compiler_library(), "KILN_STABLE_ABI": "OFF"}
    run(
        *(sys.executable, "-m", "pip", "--python", python.in_environment),
        *("wheel", "-q", "--no-build-isolation", "--no-deps", "--wheel-dir", raw),
        *("--config-settings", f"build-dir={python.folder / 'build'}"),
        *(part for name, value in defined.items() for part in ("--config-settings", f"cmake.define.{name}={value}")),
        ROOT,
    )
    (wheel,) = raw.glob("*.whl")
    add_mlx_parts(wheel, python)
    return wheel


def add_mlx_parts(wheel: Path, python: Python) -> None:
    """Adds the modules for the versions of MLX that the build itself has not."""
    contents = _contents(wheel)
    (library,) = (path for path in (python.folder / "build" / "lib").glob("libkiln.so.*") if not path.is_symlink())
    for part in mlx_parts.PARTS:
        if any(name.startswith(f"kiln/_mlx-{part.serves}.") for name in contents):
            continue
        module = mlx_parts.build_part(part, python.in_environment, library)
        contents[f"kiln/{module.name}"] = (module.read_bytes(), 0o100755 << 16)
    _write(contents, wheel)


def _contents(wheel: Path) -> dict[str, tuple[bytes, int]]:
    """What a wheel's files have, and their attributes."""
    with zipfile.ZipFile(wheel) as archive:
        return {item.filename: (archive.read(item), item.external_attr) for item in archive.infolist()}


def _write(contents: dict[str, tuple[bytes, int]], wheel: Path) -> None:
    """Writes a wheel, with a list of its files that is right."""
    record = next(name for name in contents if name.endswith(".dist-info/RECORD"))
    del contents[record]
    lines = [_record_line(name, content) for name, (content, _) in contents.items()]
    contents[record] = ("".join([*lines, f"{record},,\n"]).encode(), 0o100644 << 16)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, attributes) in contents.items():
            item = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            item.external_attr, item.compress_type = attributes, zipfile.ZIP_DEFLATED
            archive.writestr(item, content)


def build_stable_core(python: Python) -> Path:
    """`_core` for the stable interface, without the symbols that only a debugger reads."""
    # As deep as the other build folder, so that ccache knows what both compile.
    folder = python.folder / "abi3"
    run(
        *("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DKILN_BUILD_PYTHON=ON"),
        *("-DKILN_STABLE_ABI=ON", f"-DKILN_COMPILER_LIBRARY={compiler_library()}"),
        # As in the package: found beside the module alone.
        *("-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", f"-DPython_EXECUTABLE={python.in_environment}"),
    )
    run("cmake", "--build", folder, "--target", "_core")
    core = folder / "lib" / "_core.abi3.so"
    run("strip", core)
    return core


def _record_line(name: str, content: bytes) -> str:
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def merge(wheels: list[Path], stable_core: Path) -> Path:
    """One wheel of the stable interface: the first, with the modules of the others."""
    first, *others = wheels
    name = re.sub(r"-cp\d+-cp\d+-", f"-cp{FIRST_STABLE[0]}{FIRST_STABLE[1]}-abi3-", first.name)
    assert name != first.name, first
    contents = _contents(first)
    for wheel in others:
        modules = {
            name: file
            for name, file in _contents(wheel).items()
            if re.fullmatch(r"kiln/_[\w.-]+\.cpython-[^/]+\.so", name)
        }
        contents |= modules
    contents["kiln/_core.abi3.so"] = (stable_core.read_bytes(), 0o100755 << 16)
    metadata = next(name for name in contents if name.endswith(".dist-info/WHEEL"))
    text, attributes = contents[metadata]
    tag = f"Tag: cp{FIRST_STABLE[0]}{FIRST_STABLE[1]}-abi3-".encode()
    contents[metadata] = (re.sub(rb"Tag: cp\d+-cp\d+-", tag, text), attributes)
    merged = FOLDER / "merged" / name
    shutil.rmtree(merged.parent, ignore_errors=True)
    merged.parent.mkdir(parents=True)
    _write(contents, merged)
    return merged


def repair(wheel: Path, out: Path) -> Path:
    before = set(out.glob("*.whl"))
    run(
        *("auditwheel", "repair", "--plat", POLICY, "--exclude", "libmlx.so", "--wheel-dir", out, wheel),
    )
    (made,) = set(out.glob("*.whl")) - before
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=FOLDER / "dist", help="by default build/wheels/dist")
    parser.add_argument("pythons", nargs="*", type=Path, metavar="PYTHON", help="by default those that are found")
    options = parser.parse_args()
    if options.pythons:
        pythons = [python for path in options.pythons if (python := ask(path.absolute()))]
        if len(pythons) != len(options.pythons):
            parser.error("these are not all CPythons with an interpreter lock")
    else:
        pythons = find_pythons()
    pythons.sort(key=lambda python: python.version)
    missing = [v for v in VERSIONS if tuple(map(int, v.split("."))) not in [python.version for python in pythons]]
    print(f"Pythons: {', '.join(str(python.path) for python in pythons)}", flush=True)
    if missing:
        print(
            f"there is no wheel, or no module, for Python {', '.join(missing)}: name them to WHEEL_PYTHONS", flush=True
        )

    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    built: dict[Python, Path] = {}
    for python in pythons:
        print(f"building for Python {python.version[0]}.{python.version[1]}", flush=True)
        make_environment(python)
        built[python] = build(python)
    wheels = [wheel for python, wheel in built.items() if python.version < FIRST_STABLE]
    if later := [python for python in pythons if python.version >= FIRST_STABLE]:
        print("building for the stable interface", flush=True)
        wheels.append(merge([built[python] for python in later], build_stable_core(later[0])))
    status = 0
    for wheel in (repair(wheel, options.out) for wheel in wheels):
        size = wheel.stat().st_size
        print(f"{wheel}: {size / 1e6:.1f} MB")
        if size > LARGEST:
            print(f"it is larger than {LARGEST / 1e6:.0f} MB", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
