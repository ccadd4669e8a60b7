#!/usr/bin/env python3
"""Checks that files include only what their layer may know.

The arrows are those of ARCHITECTURE.md. A layer is a folder; what it may include is written here, once.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The compiler's rooms, lowest first -> the rooms that each may include. The widener and what runs behind it know nothing
# of one another but what is in `ir` and `analysis`.
ROOMS = {
    "ir": [],
    "analysis": ["ir"],
    "lowering": ["analysis", "ir"],
    "codegen": ["ir"],
    "workgroup": ["codegen", "lowering", "analysis", "ir"],
    "vectorize": ["workgroup", "lowering", "analysis", "ir"],
    "versioning": ["workgroup", "ir"],
    "memory": ["workgroup", "ir"],
    "x86": ["ir"],
    "nvptx": ["lowering", "analysis", "ir"],
    "clang": ["ir"],
    "engines": ["workgroup", "ir"],
    "driver": ["nvptx", "x86", "clang", "lowering", "ir"],
}

# layer -> the layers whose headers it may include. Every layer may include itself and the standard library.
ALLOWED = {
    "include/kiln": [],
    "src/core": ["include/kiln"],
    "src/frontend": ["src/core", "include/kiln"],
    "src/device": [],
    # pipeline.cpp, the list of passes.
    "src/compiler": [*(f"src/compiler/{room}" for room in ROOMS if room not in ("clang", "driver")), "src/core"],
    # kiln-opt, which runs passes of every room.
    "src/compiler/opt": ["src/compiler", *(f"src/compiler/{room}" for room in ROOMS), "src/core", "include/kiln"],
    **{
        f"src/compiler/{room}": [*(f"src/compiler/{other}" for other in others), "src/core", "include/kiln"]
        + (["src/compiler"] if room == "driver" else [])
        # The numbers that the device library and the compiler share.
        + (["src/device"] if room == "clang" else [])
        for room, others in ROOMS.items()
    },
    "src/targets": ["src/core", "include/kiln"],
    "src/targets/cpu": ["src/targets", "src/core", "include/kiln"],
    "src/targets/cuda": ["src/targets", "src/core", "include/kiln"],
    "src/cache": ["src/core", "include/kiln"],
    "src/runtime": [
        "src/core",
        "src/frontend",
        "src/targets",
        "src/targets/cpu",
        "src/targets/cuda",
        "src/cache",
        "include/kiln",
    ],
    "src/adapters": ["src/runtime", "src/frontend", "src/core", "include/kiln"],
    "python/src": ["src/adapters", "src/runtime", "src/frontend", "src/cache", "src/core", "include/kiln"],
}

# Headers of libraries -> the only layers, or files, that may include them.
LIBRARIES = {
    "clang/": ["src/compiler/clang", "src/compiler/driver"],
    "llvm/": ["src/compiler", "src/compiler/opt", *(f"src/compiler/{room}" for room in ROOMS)],
    "cuda.h": ["src/targets/cuda"],
    "nvrtc.h": ["src/targets/cuda"],
    "mlx/": ["include/kiln/mlx.h", "src/adapters", "python/src"],
    "nanobind/": ["python/src"],
    "numpy/": ["python/src"],
    "Python.h": ["python/src"],
}

# Where an include is looked for; a quoted one beside its file first.
SEARCH = ["src", "include", "."]

# Where every C++ file belongs to a layer.
TREES = ["include", "src", "python"]
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh"}


def layer_of(path: Path) -> str | None:
    """The deepest layer that the file lies in."""
    if not path.is_relative_to(ROOT):
        return None
    relative = path.relative_to(ROOT).as_posix()
    layers = [layer for layer in ALLOWED if relative.startswith(f"{layer}/")]
    return max(layers, key=len, default=None)


def resolve(name: str, includer: Path, quoted: bool) -> Path | None:
    for folder in [*([includer.parent] if quoted else []), *(ROOT / folder for folder in SEARCH)]:
        if (folder / name).is_file():
            return (folder / name).resolve()
    return None


def check_file(path: Path) -> list[str]:
    layer = layer_of(path)
    if layer is None:
        return [
            f"{path.relative_to(ROOT)}: belongs to no layer; ALLOWED in tools/check_layers.py has none for its folder"
        ]
    relative = path.relative_to(ROOT).as_posix()
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not match:
            continue
        name = match[2]
        where = f"{path.relative_to(ROOT)}:{number}"
        for library, layers in LIBRARIES.items():
            if name.startswith(library) and layer not in layers and relative not in layers:
                problems.append(f"{where}: {layer} may not include {name}")
        target = resolve(name, path, quoted=match[1] == '"')
        if not target:
            continue
        other = layer_of(target)
        if other is None and target.is_relative_to(ROOT):
            problems.append(f"{where}: {layer} may not include {name}, which belongs to no layer")
        elif other and other != layer and other not in ALLOWED[layer]:
            problems.append(f"{where}: {layer} may not include {name}, which belongs to {other}")
    return problems


def check_comparisons(path: Path) -> list[str]:
    """Kinds of devices are told apart by their traits, and compared nowhere."""
    return [
        f"{path.relative_to(ROOT)}:{number}: compares kinds of devices; a property belongs into core/device_traits.h"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"[!=]=\s*DeviceKind::|DeviceKind::\w+\s*[!=]=|case DeviceKind::", line)
    ]


def main() -> int:
    files = sorted(path for tree in TREES for path in (ROOT / tree).rglob("*") if path.suffix in SUFFIXES)
    problems = [problem for path in files for check in (check_file, check_comparisons) for problem in check(path)]
    print("\n".join(problems) if problems else f"layers: {len(files)} files, every include is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
