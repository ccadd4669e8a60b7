"""A real photograph, which an installed package ships."""

from __future__ import annotations

import matplotlib.cbook
import matplotlib.image
import mlx.core as mx
import numpy as np


def load() -> mx.array:
    """Matplotlib's portrait of Grace Hopper (US Navy, public domain): (height, width, 3), float32 in [0, 1].

    Cropped to even sides.
    """
    file = matplotlib.cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
    pixels = matplotlib.image.imread(file).astype(np.float32) / 255
    height, width = (side // 2 * 2 for side in pixels.shape[:2])
    return mx.array(np.ascontiguousarray(pixels[:height, :width, :3]))
