#!/usr/bin/env python3
"""Tries the wheels of `make wheels` where there is nothing but Python: no compiler on the path, nothing of this
repository.

    tools/test_wheels.py [--wheels FOLDER] [--root FOLDER]... [--with PACKAGE]... [--path FOLDER] [PYTHON...]

First it looks at what the wheels' libraries need of the system. Then, in an environment of its own of each Python that a
wheel is for, it installs the wheel and NumPy and runs the first program of README.md, both within a minute; then with
MLX tests/wheel/try_kiln.py; both once more with the module for Pythons that came later. The C++ program of README.md is
built against the installed wheel by this machine's compiler. With `--with torch` and `--with jax` it installs these as well and runs a kernel on their
arrays; `--path` names a folder that has them already. `--root` names the root of another system, such as one that
debootstrap made, in which the same is done by its python3; what pip installs there is downloaded here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import build_wheels
import mlx_parts

ROOT = build_wheels.ROOT

# What Debian 12 and Ubuntu 24.04 have without any package being asked for, and what lies beside the modules.
SYSTEM_LIBRARIES = {
    *("libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2"),
    *("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1"),
}
OWN_LIBRARIES = re.compile(r"libkiln\.so\.[0-9.]+|libzstd-[0-9a-f]+\.so\.[0-9.]+")
# What programs in C++ need, and type checkers.
FILES = ("kiln/include/kiln/kiln.h", "kiln/cmake/kiln-config.cmake", "kiln/py.typed")
# Of the package mlx, found by the module's path to it.
MLX_LIBRARIES = {"libmlx.so"}
MINUTE = 60  # seconds


def problems_of(wheel: Path, folder: Path) -> list[str]:
    """What keeps the wheel from running elsewhere."""
    problems = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(folder)
    for name in names:
        if not name.startswith(("kiln/", "kiln_jit-", "kiln_jit.libs/")):
            problems.append(f"{name} lies outside the package")
    problems += [f"{name} is missing" for name in FILES if name not in names]
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


def fits(wheel: Path, version: tuple[int, int]) -> bool:
    match = re.search(r"-cp(\d)(\d+)-(cp|abi)\d+-", wheel.name)
    assert match, wheel
    least = int(match[1]), int(match[2])
    return version == least or (match[3] == "abi" and version > least)


def first_program(language: str = "python") -> str:
    """The first block of README.md in that language."""
    match = re.search(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert match
    return match[1]


class Environment:
    """An environment in which programs are run as a user would run them."""

    def __init__(self, python: Path, folder: Path, *, path: Path | None = None) -> None:
        self._folder, self._path = folder, path
        subprocess.run([python, "-m", "venv", "--without-pip", folder / "env"], check=True)
        self._python = folder / "env" / "bin" / "python"

    def install(self, *packages: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", self._python, "install", "--quiet", *packages], check=True
        )

    def run(self, *arguments: str | Path, sees_path: bool = False) -> None:
        # No other program can be found there.
        environment = {"PATH": str(self._python.parent), "HOME": str(self._folder)}
        if sees_path and self._path:
            environment["PYTHONPATH"] = str(self._path)
        subprocess.run([self._python, *arguments], check=True, cwd=self._folder, env=environment)

    def build_cpp(self) -> None:
        """Builds the C++ program of README.md with this machine's compiler, which the environment does not have."""
        program = self._folder / "first.cpp"
        program.write_text(first_program("cpp"))
        options = subprocess.run([self._python, "-m", "kiln", "cpp"], check=True, capture_output=True, text=True).stdout
        built = program.with_suffix("")
        subprocess.run([os.environ.get("CXX", "c++"), program, *options.split(), "-o", built], check=True)
        printed = subprocess.run([built], check=True, capture_output=True, text=True).stdout
        assert printed == "0 2 4 6 8 ", printed

    @property
    def _files(self) -> Path:
        """Its folder, as this process sees it."""
        return self._folder

    def put(self, name: str, text: str) -> None:
        (self._files / name).write_text(text)

    def leave_stable_core(self) -> None:
        """As it is with a Python for which the wheel has no module of its own."""
        for module in self._files.glob("env/lib/python3.*/site-packages/kiln/_core.cpython-*.so"):
            module.unlink()


class Root(Environment):
    """The same in another system, whose python3 brings pip. It need not have a network."""

    def __init__(self, root: Path, version: tuple[int, int], shared: Path) -> None:
        self._root, self._version = root, version
        self._inside = Path("/tmp/kiln-wheels")
        shutil.rmtree(self._files, ignore_errors=True)
        self._files.mkdir(parents=True)
        self._downloads = shared
        self._command("python3", "-m", "venv", self._inside / "env")

    def _command(self, *arguments: str | Path, path: str = "/usr/bin:/bin") -> None:
        environment = [f"PATH={path}", f"HOME={self._inside}", "LANG=C.UTF-8"]
        shell = ["/bin/sh", "-c", 'cd "$HOME" && exec "$@"', "sh", *map(str, arguments)]
        subprocess.run(["chroot", self._root, "env", "-i", *environment, *shell], check=True)

    def install(self, *packages: str) -> None:
        platforms = [f"--platform=manylinux_2_{n}_x86_64" for n in (17, 27, 28, 34, 35, 36)]
        target = ["--only-binary=:all:", *platforms, "--python-version", ".".join(map(str, self._version))]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(self._downloads)]
        subprocess.run([*pip, *target, *packages], check=True)
        wheels = self._files / "wheels"
        shutil.copytree(self._downloads, wheels, dirs_exist_ok=True)
        inside = []
        for package in packages:
            path, bracket, extras = package.partition("[")
            inside.append(
                f"{self._inside / 'wheels' / Path(path).name if os.path.exists(path) else path}{bracket}{extras}"
            )
        offline = ["--quiet", "--no-index", "--find-links", str(self._inside / "wheels")]
        self._command(self._inside / "env/bin/python", "-m", "pip", "install", *offline, *inside)

    def run(self, *arguments: str | Path, sees_path: bool = False) -> None:
        self._command(self._inside / "env/bin/python", *arguments, path=str(self._inside / "env/bin"))

    @property
    def _files(self) -> Path:
        return self._root / self._inside.relative_to("/")

    def remove(self) -> None:
        shutil.rmtree(self._files)


@contextmanager
def timed(what: str, most: float | None = None) -> Iterator[None]:
    begin = time.monotonic()
    yield
    seconds = time.monotonic() - begin
    print(f"  {what}: {seconds:.0f} s", flush=True)
    if most is not None and seconds > most:
        raise SystemExit(f"that took longer than {most:.0f} s")


def try_wheel(wheel: Path, environment: Environment, others: list[str]) -> None:
    for name in ("try_kiln.py", "try_arrays.py"):
        environment.put(name, (ROOT / "tests" / "wheel" / name).read_text())
    environment.put("first.py", first_program())
    with timed("pip install and the first program, with NumPy alone", MINUTE):
        environment.install(str(wheel), "numpy")
        environment.run("first.py")
    # The oldest and the newest of each module for MLX. That which the package names comes last, and stays.
    for version in dict.fromkeys(version for part in mlx_parts.PARTS[:-1] for version in (part.first, part.last)):
        with timed(f"with MLX {version}"):
            environment.install(f"mlx[cpu]=={version}")
            environment.run("try_kiln.py")
    with timed("with MLX"):
        environment.install(f"{wheel}[mlx,numpy]")
        environment.run("try_kiln.py")
    if not isinstance(environment, Root):
        with timed("a program in C++"):
            environment.build_cpp()
    if others:
        with timed(f"with {' and '.join(others)}"):
            environment.install(*others)
            environment.run("try_arrays.py", *others)
    if "-abi3-" in wheel.name:
        with timed("with the module for later Pythons"):
            environment.leave_stable_core()
            environment.run("first.py")
            environment.run("try_kiln.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--wheels", type=Path, default=build_wheels.FOLDER / "dist", help="by default build/wheels/dist"
    )
    parser.add_argument("--root", type=Path, action="append", default=[], help="of another system; needs root")
    parser.add_argument("--with", dest="others", action="append", default=[], choices=("torch", "jax"))
    parser.add_argument("--path", type=Path, help="a folder with torch and jax, for the Python that they are for")
    parser.add_argument("pythons", nargs="*", type=Path, metavar="PYTHON", help="by default those that are found")
    options = parser.parse_args()
    wheels = sorted(options.wheels.glob("kiln_jit-*.whl"))
    if not wheels:
        parser.error(f"{options.wheels} has no wheels; `make wheels` builds them")
    with tempfile.TemporaryDirectory() as temporary:
        for wheel in wheels:
            problems = problems_of(wheel, Path(temporary) / wheel.name)
            if problems:
                print("\n".join(problems), file=sys.stderr)
                return 1
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, needs nothing that the system lacks", flush=True)
    pythons = [build_wheels.ask(path.absolute()) for path in options.pythons] or build_wheels.find_pythons()
    for python in filter(None, pythons):
        for wheel in (wheel for wheel in wheels if fits(wheel, python.version)):
            print(f"{python.path}: {wheel.name}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                environment = Environment(python.path, Path(folder), path=options.path)
                try_wheel(wheel, environment, options.others)
                if options.path and has_packages(options.path, python.version):
                    with timed(f"with what {options.path} has"):
                        environment.run("try_arrays.py", "torch", "jax", sees_path=True)
    for root in options.root:
        asked = subprocess.run(
            ["chroot", root, "python3", "-c", "import sys; print(*sys.version_info[:2])"],
            check=True,
            capture_output=True,
            text=True,
        )
        version = tuple(map(int, asked.stdout.split()))
        for wheel in (wheel for wheel in wheels if fits(wheel, (version[0], version[1]))):
            print(f"{root}, Python {version[0]}.{version[1]}: {wheel.name}", flush=True)
            with tempfile.TemporaryDirectory() as downloads:
                inside = Root(root, (version[0], version[1]), Path(downloads))
                try_wheel(wheel, inside, options.others)
                inside.remove()
    return 0


def has_packages(folder: Path, version: tuple[int, int]) -> bool:
    """Whether its compiled modules are for that Python."""
    suffix = f".cpython-{version[0]}{version[1]}-x86_64-linux-gnu.so"
    return any(folder.glob(f"*/*{suffix}"))


if __name__ == "__main__":
    sys.exit(main())
