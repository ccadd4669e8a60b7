"""The grid sample for NVIDIA Warp's CPU back end, which runs a kernel's threads one after the other. The gradient is the
one that Warp derives itself.
"""

from __future__ import annotations

import tempfile
import time

import numpy as np
import warp as wp

wp.config.quiet = True
_folder = tempfile.TemporaryDirectory()
# A folder of its own, so that compiling is measured and nothing of the user's is touched.
wp.config.kernel_cache_dir = _folder.name


@wp.kernel
def next_one(x: wp.array[wp.float32], out: wp.array[wp.float32]):
    i = wp.tid()
    out[i] = x[i] + 1.0


@wp.kernel
def _sample(x: wp.array4d[wp.float32], grid: wp.array4d[wp.float32], out: wp.array4d[wp.float32]):
    batch, row, column, channel = wp.tid()
    height = x.shape[1]
    width = x.shape[2]
    px = ((grid[batch, row, column, 0] + 1.0) * float(width) - 1.0) / 2.0
    py = ((grid[batch, row, column, 1] + 1.0) * float(height) - 1.0) / 2.0
    left = int(wp.floor(px))
    top = int(wp.floor(py))
    share_x = px - float(left)
    share_y = py - float(top)
    total = 0.0
    if top >= 0 and top < height and left >= 0 and left < width:
        total += (1.0 - share_x) * (1.0 - share_y) * x[batch, top, left, channel]
    if top >= 0 and top < height and left + 1 >= 0 and left + 1 < width:
        total += share_x * (1.0 - share_y) * x[batch, top, left + 1, channel]
    if top + 1 >= 0 and top + 1 < height and left >= 0 and left < width:
        total += (1.0 - share_x) * share_y * x[batch, top + 1, left, channel]
    if top + 1 >= 0 and top + 1 < height and left + 1 >= 0 and left + 1 < width:
        total += share_x * share_y * x[batch, top + 1, left + 1, channel]
    out[batch, row, column, channel] = total


@wp.kernel
def _exp(inp: wp.array[wp.float32], out: wp.array[wp.float32]):
    i = wp.tid()
    out[i] = wp.exp(inp[i])


class GridSample:
    def __init__(self, x: np.ndarray, grid: np.ndarray):
        self._x = wp.from_numpy(x, device="cpu")
        self._grid = wp.from_numpy(grid, device="cpu")
        self._out = wp.empty((*grid.shape[:3], x.shape[3]), dtype=wp.float32, device="cpu")
        start = time.perf_counter()
        self.forward()
        self.compile_ms = 1e3 * (time.perf_counter() - start)

    def forward(self) -> np.ndarray:
        wp.launch(_sample, dim=self._out.shape, inputs=[self._x, self._grid, self._out], device="cpu")
        return self._out.numpy()

    def vjp(self, cotangents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x_grad, grid_grad = wp.zeros_like(self._x), wp.zeros_like(self._grid)
        wp.launch(
            _sample,
            dim=self._out.shape,
            inputs=[self._x, self._grid, self._out],
            adj_inputs=[x_grad, grid_grad, wp.from_numpy(cotangents, device="cpu")],
            adj_outputs=[],
            adjoint=True,
            device="cpu",
        )
        return x_grad.numpy(), grid_grad.numpy()


class SmallLaunch:
    """exp of a few elements; the output is given."""

    def __init__(self, a: np.ndarray):
        self._inp = wp.from_numpy(a, device="cpu")
        self._out = wp.empty(a.shape, dtype=wp.float32, device="cpu")
        self()

    def __call__(self) -> None:
        wp.launch(_exp, dim=self._out.size, inputs=[self._inp, self._out], device="cpu")
