#!/usr/bin/env python3
"""Draws the pictures that README.md and the documentation show, below docs/pictures, from those that programs draw.

They are kept in the repository, because a reader of the README has run nothing. ``make gallery`` and ``make demo`` come
first: gallery.jpg is made of pictures in out/gallery, demonstration.jpg is a smaller copy of out/warp.png. The pictures of
programs that need PyTorch or JAX are kept as well, because the site is built without these; they are drawn again where
out/gallery has them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("mandelbrot.png", "reaction_diffusion.gif", "n_body.png")
HEIGHT, GAP = 300, 6
WIDTH = 1000
KEPT = ("pytorch_image.png", "jax_lens.png")


def overview(folder: Path) -> Image.Image:
    """Pictures of the gallery side by side, each of the same height; of an animation the last frame."""
    shown = []
    for name in NAMES:
        file = Image.open(folder / name)
        file.seek(getattr(file, "n_frames", 1) - 1)
        width = round(file.width * HEIGHT / file.height)
        shown.append(file.convert("RGB").resize((width, HEIGHT), Image.Resampling.LANCZOS))
    result = Image.new("RGB", (sum(picture.width + GAP for picture in shown) - GAP, HEIGHT), "white")
    left = 0
    for picture in shown:
        result.paste(picture, (left, 0))
        left += picture.width + GAP
    return result


def smaller(path: Path) -> Image.Image:
    picture = Image.open(path).convert("RGB")
    return picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)


def main() -> int:
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    made = {
        "gallery.jpg": overview(ROOT / "out" / "gallery"),
        "demonstration.jpg": smaller(ROOT / "out" / "warp.png"),
        **{
            Path(name).with_suffix(".jpg").name: smaller(path)
            for name in KEPT
            if (path := ROOT / "out" / "gallery" / name).exists()
        },
    }
    for name, picture in made.items():
        picture.save(folder / name, quality=85, optimize=True)
        print(f"docs/pictures/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
