#!/usr/bin/env python3
"""Checks that files include only what their layer may know.

The arrows are those of ARCHITECTURE.md. A layer is a folder; what it may include is written here, once.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# layer -> the layers whose headers it may include. Every layer may include itself and the standard library.
ALLOWED = {
    "include/kiln": [],
    "src/core": ["include/kiln"],
    "src/frontend": ["src/core", "include/kiln"],
    "src/device": [],
    "src/compiler": ["src/core", "include/kiln"],
    "src/targets": ["src/core", "include/kiln"],
    "src/targets/cpu": ["src/targets", "src/core", "include/kiln"],
    "src/cache": ["src/core", "include/kiln"],
    "src/runtime": ["src/core", "src/frontend", "src/targets", "src/targets/cpu", "src/cache", "include/kiln"],
    "src/adapters": ["src/runtime", "src/frontend", "src/core", "include/kiln"],
    "python/src": ["src/adapters", "src/runtime", "src/frontend", "src/core", "include/kiln"],
}

# Headers of libraries -> the only layers that may include them.
LIBRARIES = {
    "clang/": ["src/compiler"],
    "llvm/": ["src/compiler"],
    "cuda.h": [],
    "nvrtc.h": [],
    "mlx/": ["src/adapters", "python/src"],
    "nanobind/": ["python/src"],
    "numpy/": ["python/src"],
    "Python.h": ["python/src"],
}

# Where a quoted include is looked for.
SEARCH = ["src", "include", "."]


def layer_of(path: Path) -> str | None:
    """The deepest layer that the file lies in."""
    relative = path.relative_to(ROOT).as_posix()
    layers = [layer for layer in ALLOWED if relative.startswith(f"{layer}/")]
    return max(layers, key=len, default=None)


def resolve(name: str, includer: Path) -> Path | None:
    for folder in [includer.parent, *(ROOT / folder for folder in SEARCH)]:
        if (folder / name).is_file():
            return (folder / name).resolve()
    return None


def check_file(path: Path) -> list[str]:
    layer = layer_of(path)
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not match or layer is None:
            continue
        name = match[2]
        where = f"{path.relative_to(ROOT)}:{number}"
        for library, layers in LIBRARIES.items():
            if name.startswith(library) and layer not in layers:
                problems.append(f"{where}: {layer} may not include {name}")
        target = resolve(name, path) if match[1] == '"' else None
        other = layer_of(target) if target else None
        if other and other != layer and other not in ALLOWED[layer]:
            problems.append(f"{where}: {layer} may not include {name}, which belongs to {other}")
    return problems


def main() -> int:
    files = [
        path
        for layer in ALLOWED
        for suffix in ("*.h", "*.cpp")
        for path in (ROOT / layer).rglob(suffix)
        if layer_of(path) == layer
    ]
    problems = [problem for path in sorted(set(files)) for problem in check_file(path)]
    print("\n".join(problems) if problems else f"layers: {len(set(files))} files, every include is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
