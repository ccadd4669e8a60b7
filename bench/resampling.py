"""Kernels whose neighbors share elements, or that read and write rows backwards, with positions as ``int``.

For ``make bench-passes`` (``python -m bench.passes --kernels bench/resampling.py``) and for comparisons of compilers:
pictures that are enlarged or mirrored, colors at half the resolution, wavelets, numbers of a few bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bench.private_arrays import Problem

H, W = 480, 848

_BEGIN = "int x = thread_position_in_grid.x, y = thread_position_in_grid.y; int h = {0}_shape[0], w = {0}_shape[1];"

# Of a picture of floats, `a`, and one of bytes, `b`.
_BODIES = {
    "nearest": "y_[y * w + x] = a[(y / 2) * (w / 2) + x / 2];",
    "linear": """
int x0 = max((x - 1) / 2, 0), x1 = min(x0 + 1, w / 2 - 1), y0 = max((y - 1) / 2, 0), y1 = min(y0 + 1, h / 2 - 1);
float tx = (x & 1) ? 0.25f : 0.75f, ty = (y & 1) ? 0.25f : 0.75f;
float top = mix(a[y0 * (w / 2) + x0], a[y0 * (w / 2) + x1], tx);
float bottom = mix(a[y1 * (w / 2) + x0], a[y1 * (w / 2) + x1], tx);
y_[y * w + x] = mix(top, bottom, ty);""",
    "color": """
const device uchar2* uv = (const device uchar2*)b;
int x0 = x / 2, x1 = (x & 1) ? min(x0 + 1, w / 2 - 1) : x0, row = (y / 2) * (w / 2);
float2 c = (float2(uv[row + x0]) + float2(uv[row + x1])) * 0.5f - 128.0f;
float l = 1.164f * (float(b[y * w + x]) - 16.0f);
y_[y * w + x] = l + 1.793f * c.y - 0.213f * c.x;""",
    "wavelet": """
float s = a[y * w + x / 2], d = a[y * w + w / 2 + x / 2];
y_[y * w + x] = x % 2 ? s - d : s + d;""",
    "four bits": "int i = y * w + x; y_[i] = float((b[i / 2] >> (4 * (i % 2))) & 15) * a[i / 32] - 8.0f;",
    "two bits": "int i = y * w + x; y_[i] = float((b[i / 4] >> (2 * (i % 4))) & 3) * a[i / 64] - 1.0f;",
    "mirrored": "y_[y * w + w - 1 - x] = a[y * w + max(w - 2 - x, 0)];",
    "tiles": "int i = y * w + x, tile = x / 8, at = x % 8; y_[i] = a[y * w + tile * 8 + (7 - at)] * float(tile % 3);",
}


def _problem(name: str, body: str) -> Problem:
    random = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {
        "a": random.random((H, W)).astype(np.float32),
        "b": random.integers(0, 256, (H, W), dtype=np.uint8),
    }
    inputs = {key: array for key, array in arrays.items() if f"{key}[" in body or f"){key};" in body}
    begin = _BEGIN.format(next(iter(inputs)))
    return Problem(name.replace(" ", "_"), begin + body, inputs, {"y_": ((H, W), "float32")}, (W, H, 1), (16, 16, 1))


KERNELS: dict[str, Callable[[], Problem]] = {name: partial(_problem, name, body) for name, body in _BODIES.items()}
