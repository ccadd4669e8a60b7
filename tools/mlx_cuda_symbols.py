#!/usr/bin/env python3
"""Writes tests/python/mlx_cuda_symbols.txt: what Kiln's part for MLX needs of MLX's library, all of which MLX exports
with its CUDA back end too. Run it when that part asks for something else, or for another version of MLX.

    python tools/mlx_cuda_symbols.py mlx_cuda_13-0.32.4-….whl
The wheel is one of those that `pip download --no-deps 'mlx[cuda13]==0.32.4'` names; nothing of it is run.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "tests" / "python" / "mlx_cuda_symbols.txt"


def symbols(library: Path, which: str) -> set[str]:
    lines = subprocess.run(
        ["nm", "-D", f"--{which}-only", library], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {name for name in (line.split()[-1] for line in lines) if "3mlx4core" in name}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path, help="of mlx-cuda-12 or mlx-cuda-13")
    wheel = parser.parse_args().wheel
    from kiln import _libraries

    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as content:
        exported = symbols(Path(content.extract("mlx/lib/libmlx.so", folder)), "defined")
    needed = symbols(Path(str(_libraries.import_mlx().__file__)), "undefined")
    if missing := sorted(needed - exported):
        sys.exit("\n".join(["MLX's CUDA back end does not export:", *missing]))
    # What a build without optimisation, as that of `make coverage`, asks for besides.
    needed |= {name for name in exported if name.startswith(("_ZN3mlx4core9Primitive", "_ZTVN3mlx4core9Primitive"))}
    version = wheel.name.split("-")[1]
    LIST.write_text("\n".join([f"# needed, and exported by the library of mlx-cuda {version}", *sorted(needed)]) + "\n")


if __name__ == "__main__":
    main()
