"""The kernels that are measured: exp, and a bilinear grid sample with its gradient.

Grid sample: x (batch, height, width, channels), grid (batch, rows, columns, 2) with (x, y) in [-1, 1] from edge to edge
of the image, result (batch, rows, columns, channels); outside the image everything is 0. The forward body reads first
and masks afterwards, as published ones do, so that its reads reach over the image's borders.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mlx.core as mx

EXP = """
    uint i = thread_position_in_grid.x;
    T value = inp[i];
    out[i] = metal::exp(value);
"""

FORWARD = """
    uint elem = thread_position_in_grid.x;
    int height = x_shape[1], width = x_shape[2], channels = x_shape[3];
    int rows = grid_shape[1], columns = grid_shape[2];

    uint place = elem / channels;
    int channel = elem % channels;
    float px = ((grid[2 * place] + 1) * width - 1) / 2;
    float py = ((grid[2 * place + 1] + 1) * height - 1) / 2;
    int left = floor(px), top = floor(py);
    int right = left + 1, bottom = top + 1;

    int image = place / rows / columns * height * width * channels + channel;
    T a = x[image + (top * width + left) * channels];
    T b = x[image + (top * width + right) * channels];
    T c = x[image + (bottom * width + left) * channels];
    T d = x[image + (bottom * width + right) * channels];
    bool in_left = left >= 0 && left < width, in_right = right >= 0 && right < width;
    bool in_top = top >= 0 && top < height, in_bottom = bottom >= 0 && bottom < height;
    a = in_top && in_left ? a : 0;
    b = in_top && in_right ? b : 0;
    c = in_bottom && in_left ? c : 0;
    d = in_bottom && in_right ? d : 0;

    T wa = (right - px) * (bottom - py), wb = (px - left) * (bottom - py);
    T wc = (right - px) * (py - top), wd = (px - left) * (py - top);
    out[elem] = wa * a + wb * b + wc * c + wd * d;
"""

VJP = """
    uint elem = thread_position_in_grid.x;
    int height = x_shape[1], width = x_shape[2], channels = x_shape[3];
    int rows = grid_shape[1], columns = grid_shape[2];
    // Channels are padded to whole simdgroups, so that a simdgroup belongs to one place.
    int padded = ceildiv(channels, threads_per_simdgroup) * threads_per_simdgroup;

    uint place = elem / padded;
    int channel = elem % padded;
    float px = ((grid[2 * place] + 1) * width - 1) / 2;
    float py = ((grid[2 * place + 1] + 1) * height - 1) / 2;
    int left = floor(px), top = floor(py);
    int right = left + 1, bottom = top + 1;

    int image = place / rows / columns * height * width * channels + channel;
    T slope_x = T(0), slope_y = T(0);
    if (channel < channels) {
        T cotangent = cotangents[place * channels + channel];
        if (top >= 0 && top < height && left >= 0 && left < width) {
            int offset = image + (top * width + left) * channels;
            atomic_fetch_add_explicit(&x_grad[offset], (right - px) * (bottom - py) * cotangent, memory_order_relaxed);
            slope_x -= x[offset] * (bottom - py) * cotangent;
            slope_y -= x[offset] * (right - px) * cotangent;
        }
        if (top >= 0 && top < height && right >= 0 && right < width) {
            int offset = image + (top * width + right) * channels;
            atomic_fetch_add_explicit(&x_grad[offset], (px - left) * (bottom - py) * cotangent, memory_order_relaxed);
            slope_x += x[offset] * (bottom - py) * cotangent;
            slope_y -= x[offset] * (px - left) * cotangent;
        }
        if (bottom >= 0 && bottom < height && left >= 0 && left < width) {
            int offset = image + (bottom * width + left) * channels;
            atomic_fetch_add_explicit(&x_grad[offset], (right - px) * (py - top) * cotangent, memory_order_relaxed);
            slope_x -= x[offset] * (py - top) * cotangent;
            slope_y += x[offset] * (right - px) * cotangent;
        }
        if (bottom >= 0 && bottom < height && right >= 0 && right < width) {
            int offset = image + (bottom * width + right) * channels;
            atomic_fetch_add_explicit(&x_grad[offset], (px - left) * (py - top) * cotangent, memory_order_relaxed);
            slope_x += x[offset] * (py - top) * cotangent;
            slope_y += x[offset] * (px - left) * cotangent;
        }
    }
    slope_x = simd_sum(slope_x);
    slope_y = simd_sum(slope_y);
    if (thread_index_in_simdgroup == 0) {
        atomic_fetch_add_explicit(&grid_grad[2 * place], slope_x * width / 2, memory_order_relaxed);
        atomic_fetch_add_explicit(&grid_grad[2 * place + 1], slope_y * height / 2, memory_order_relaxed);
    }
"""


def exp_kernel(make, source: str = EXP):
    return make(name="exp", input_names=["inp"], output_names=["out"], source=source)


def forward_kernel(make, source: str = FORWARD):
    return make(name="grid_sample", input_names=["x", "grid"], output_names=["out"], source=source)


def vjp_kernel(make, source: str = VJP):
    return make(
        name="grid_sample_vjp",
        input_names=["x", "grid", "cotangents"],
        output_names=["x_grad", "grid_grad"],
        source=source,
        atomic_outputs=True,
    )


def exp_call(a, dtype) -> dict:
    return {
        "inputs": [a],
        "template": [("T", dtype)],
        "grid": (math.prod(a.shape), 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [a.shape],
        "output_dtypes": [dtype],
    }


def forward_call(x, grid) -> dict:
    shape = (*grid.shape[:3], x.shape[3])
    return {
        "inputs": [x, grid],
        "template": [("T", x.dtype)],
        "grid": (shape[0] * shape[1] * shape[2] * shape[3], 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [shape],
        "output_dtypes": [x.dtype],
    }


def vjp_call(x, grid, cotangents) -> dict:
    padded = (x.shape[3] + 31) // 32 * 32
    return {
        "inputs": [x, grid, cotangents],
        "template": [("T", x.dtype)],
        "grid": (grid.shape[0] * grid.shape[1] * grid.shape[2] * padded, 1, 1),
        "threadgroup": (256, 1, 1),
        "output_shapes": [x.shape, grid.shape],
        "output_dtypes": [x.dtype, x.dtype],
        "init_value": 0,
    }


def _places(x: mx.array, grid: mx.array) -> tuple[mx.array, mx.array]:
    _, height, width, _ = x.shape
    return ((grid[..., 0] + 1) * width - 1) / 2, ((grid[..., 1] + 1) * height - 1) / 2


# Indices are clipped in both: MLX's gather on the CPU reads wherever they point.


def sample_by_operations(x: mx.array, grid: mx.array) -> mx.array:
    """The same with MLX's operations, one after the other as the formulas stand."""
    import mlx.core as mx

    _, height, width, _ = x.shape
    px, py = _places(x, grid)
    image = mx.arange(x.shape[0])[:, None, None]
    left, top = (mx.stop_gradient(mx.floor(p)).astype(mx.int32) for p in (px, py))
    right, bottom = left + 1, top + 1

    def corner(row: mx.array, column: mx.array) -> mx.array:
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        values = x[image, mx.clip(row, 0, height - 1), mx.clip(column, 0, width - 1), :]
        return values * inside[..., None]

    return (
        ((right - px) * (bottom - py))[..., None] * corner(top, left)
        + ((px - left) * (bottom - py))[..., None] * corner(top, right)
        + ((right - px) * (py - top))[..., None] * corner(bottom, left)
        + ((px - left) * (py - top))[..., None] * corner(bottom, right)
    )


def sample_by_fewer_operations(x: mx.array, grid: mx.array) -> mx.array:
    """The same, tuned for MLX on the CPU: one index for a pixel, shares and borders in one factor."""
    import mlx.core as mx

    batch, height, width, channels = x.shape
    px, py = _places(x, grid)
    left, top = mx.stop_gradient(mx.floor(px)), mx.stop_gradient(mx.floor(py))
    share_x, share_y = px - left, py - top
    first = (mx.arange(batch) * (height * width))[:, None, None]
    pixels = x.reshape(batch * height * width, channels)

    def corner(row: mx.array, column: mx.array, share: mx.array) -> mx.array:
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        row, column = mx.clip(row, 0, height - 1), mx.clip(column, 0, width - 1)
        index = first + row.astype(mx.int32) * width + column.astype(mx.int32)
        return pixels[index] * (share * inside)[..., None]

    return (
        corner(top, left, (1 - share_x) * (1 - share_y))
        + corner(top, left + 1, share_x * (1 - share_y))
        + corner(top + 1, left, (1 - share_x) * share_y)
        + corner(top + 1, left + 1, share_x * share_y)
    )
