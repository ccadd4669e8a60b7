"""Runs the programs of the gallery: ``python -m examples.gallery [name ...] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

from examples.gallery import common

PROGRAMS = (
    "mandelbrot",
    "reaction_diffusion",
    "n_body",
    "softmax_rms_norm",
    "quantized_product",
    "gaussian_blur",
    "histogram",
    "sorting",
    "differentiable_renderer",
    "pytorch_image",
    "jax_lens",
)
NEEDED = {"pytorch_image": "torch", "jax_lens": "jax"}
"""Programs that need more than NumPy, MLX and matplotlib: the package of Python."""


def _missing(name: str) -> str | None:
    """The package that the program needs and this environment lacks."""
    needed = NEEDED.get(name)
    return needed if needed and importlib.util.find_spec(needed) is None else None


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.gallery", description="Runs the programs of the gallery.")
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which programs: {', '.join(PROGRAMS)}; all by default"
    )
    parser.add_argument("--out", type=Path, default=Path("out/gallery"), help="folder for pictures (%(default)s)")
    options = parser.parse_args(argv)
    for name in options.names:
        if name not in PROGRAMS:
            parser.error(f"no program `{name}`; there are {', '.join(PROGRAMS)}")
        if needed := _missing(name):
            parser.error(f"`{name}` needs {needed}: pip install {needed}")
    for name in options.names or PROGRAMS:
        if needed := _missing(name):
            print(f"{name}: left out, since it needs {needed}: pip install {needed}\n", flush=True)
            continue
        start = time.perf_counter()
        program = importlib.import_module(f"examples.gallery.{name}")
        print(f"{name}: {common.title_of(program.__doc__)}", flush=True)
        program.main(["--out", str(options.out)])
        print(f"{time.perf_counter() - start:.1f} s\n", flush=True)


if __name__ == "__main__":
    main()
