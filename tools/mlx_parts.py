#!/usr/bin/env python3
"""Builds Kiln's Python module for MLX, `kiln._mlx`, for versions of MLX that are not in this environment.

    tools/mlx_parts.py [--test] [VERSION...]

A module fits where two interfaces are those that it was compiled with: MLX's C++ interface, which changes with nearly each
version, and nanobind's between modules, which has a number of its own (`NB_INTERNALS_VERSION`). `PARTS` has a row for each
pair. Versions in one row are those for which `src/adapters/mlx_*.cpp` compile to the same bytes, and whose modules were
built with the same number of nanobind's; `make wheels` builds all rows, `make build` only the version that is installed.

`--test` runs the tests of MLX's arrays with each version, in an environment that has it, with the module for it and
otherwise what `.venv` has. `--compare` says which neighbours compile to the same bytes: how a row for a new version is found.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "mlx"


class Part(NamedTuple):
    first: str
    last: str
    nanobind: str
    flags: str = ""

    @property
    def serves(self) -> str:
        return self.first if self.first == self.last else f"{self.first}-{self.last}"


# The last is that of requirements.txt, which the package's own build makes.
PARTS = (
    # nanobind 2.4's number includes that of the compiler's names.
    Part("0.30.0", "0.30.0", "2.4.0", "-fabi-version=16"),
    Part("0.30.1", "0.30.3", "2.10.2"),
    Part("0.30.4", "0.31.1", "2.10.2"),
    Part("0.31.2", "0.31.2", "2.12.0"),
    Part("0.32.0", "0.32.0", "2.14.0"),
    Part("0.32.1", "0.32.1", "2.14.0"),
    Part("0.32.2", "0.32.2", "2.15.0"),
    Part("0.32.3", "0.32.3", "3.1.0"),
    Part("0.32.4", "0.32.4", "3.1.0"),
)
# Those that the registry has, for --compare.
VERSIONS = (
    *("0.30.0", "0.30.1", "0.30.3", "0.30.4", "0.30.5", "0.30.6", "0.31.0", "0.31.1", "0.31.2"),
    *("0.32.0", "0.32.1", "0.32.2", "0.32.3", "0.32.4"),
)


# The tests of what depends on MLX's version.
TESTS = ("mlx_arrays", "mlx_composition", "mlx_errors", "mlx_export", "mlx_lifetime", "functions_mlx")


def part_for(version: str) -> Part:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(map(int, text.split(".")))

    return next(part for part in PARTS if numbers(part.first) <= numbers(version) <= numbers(part.last))


def run(*command: str | Path) -> None:
    # cmake and ninja of the environment come first.
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, env={**os.environ, "PATH": path})


def _fetch(package: str, version: str) -> Path:
    """A folder with that package alone, whose files are the same for each Python."""
    folder = FOLDER / "packages" / f"{package}-{version}"
    done = folder / ".done"
    if not done.exists():
        run(
            *(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--upgrade"),
            *("--target", folder, f"{package}=={version}"),
        )
        done.touch()
    return folder


def headers_of(version: str) -> Path:
    return _fetch("mlx-cpu", version) / "mlx"


def build_part(part: Part, python: Path, library: Path) -> Path:
    """The module for `python`, linked to the libkiln.so that is given; without what only a debugger reads."""
    code = "import sysconfig; print(sysconfig.get_config_var('SOABI'))"
    abi = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    folder = FOLDER / "parts" / abi / part.serves
    run(
        *("cmake", "-S", ROOT / "python" / "mlx_part", "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"),
        *(f"-DPython_EXECUTABLE={python}", f"-DKILN_LIBRARY={library}", f"-DKILN_MLX_SERVES={part.serves}"),
        f"-DMLX_ROOT={headers_of(part.first) / 'share' / 'cmake' / 'MLX'}",
        f"-Dnanobind_ROOT={_fetch('nanobind', part.nanobind) / 'nanobind' / 'cmake'}",
        *(f"-DCMAKE_CXX_FLAGS={part.flags}", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON"),
        # For Pythons with headers and no libraries, as in `python/CMakeLists.txt`.
        "--log-level=WARNING",
    )
    run("cmake", "--build", folder)
    (built,) = folder.glob("_mlx-*.so")
    run("strip", built)
    return built


def built_library() -> Path:
    """That of `make build`."""
    folder = Path((ROOT / "build" / ".stamps" / "build-dir").read_text().strip())
    (library,) = (path for path in (folder / "lib").glob("libkiln.so.*") if not path.is_symlink())
    return library


def make_environment(version: str, module: Path) -> Path:
    """The Python of an environment with that MLX and that module; everything else is this environment's."""
    environment = FOLDER / "environments" / version
    python = environment / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", "--without-pip", environment)
        packages = (f"mlx=={version}", f"mlx-cpu=={version}")
        run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", *packages)
    here = Path(sysconfig.get_path("purelib"))
    (site,) = environment.glob("lib/python3.*/site-packages")
    (site / "rest.pth").write_text(f"{here}\n")
    package = site / "kiln"
    shutil.rmtree(package, ignore_errors=True)
    # Libraries look for others beside themselves, so these are no symbolic links.
    shutil.copytree(
        here / "kiln", package, copy_function=os.link, ignore=shutil.ignore_patterns("__pycache__", "_mlx-*.so")
    )
    shutil.copy(module, package)
    return python


def test(version: str, module: Path) -> None:
    python = make_environment(version, module)
    print(f"== MLX {version} with {module.name}", flush=True)
    code = "import mlx.core as mx; from kiln import _libraries; print(mx.__version__, _libraries.import_mlx().__file__)"
    said = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert said == f"{version} {python.parents[1] / 'lib' / python_folder()}/site-packages/kiln/{module.name}", said
    run(python, "-m", "pytest", *(ROOT / "tests" / "python" / f"test_{name}.py" for name in TESTS))


def python_folder() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def compare() -> None:
    before = ""
    for version in VERSIONS:
        digest = hashlib.sha256()
        for source in sorted((ROOT / "src" / "adapters").glob("mlx_[cps][utr]*.cpp")):
            target = FOLDER / "object.o"
            run(
                *("c++", "-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-c", source, "-o", target),
                *("-I", ROOT / "src", "-I", ROOT / "include", "-isystem", headers_of(version) / "include"),
            )
            digest.update(target.read_bytes())
        print(version, "as before" if digest.hexdigest() == before else "differs", flush=True)
        before = digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--test", action="store_true", help="run the tests of MLX's arrays with them")
    parser.add_argument("--compare", action="store_true", help="which versions compile to the same bytes")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="by default one of each row")
    options = parser.parse_args()
    if options.compare:
        compare()
        return
    versions = options.versions or [part.first for part in PARTS]
    for version in versions:
        module = build_part(part_for(version), Path(sys.executable), built_library())
        print(module, flush=True)
        if options.test:
            test(version, module)


if __name__ == "__main__":
    main()
