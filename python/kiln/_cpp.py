"""``python -m kiln cpp``: how programs in C++ are built with the libraries and headers of this package."""

from __future__ import annotations

from pathlib import Path

from kiln import _core


def _library() -> str:
    return f"libkiln.so.{_core.version}"


def options(package: Path) -> list[str]:
    """Those of GCC and Clang. The program finds the library where the package is now."""
    return [
        *("-std=c++20", f"-I{package / 'include'}"),
        *(f"-L{package}", f"-l:{_library()}", f"-Wl,-rpath,{package}"),
    ]


def main(*, cmake_dir: bool) -> int:
    package = Path(_core.__file__).parent
    print(package / "cmake" if cmake_dir else " ".join(options(package)))
    return 0
