"""Bilinear sampling of an image at given places: with MLX's operations, and as one fused kernel with its own gradient.

Places are (x, y) in pixels; pixel (i, j) is at x = j, y = i. Outside the image everything is 0. Shapes: image
(height, width, channels), places (rows, columns, 2), result (rows, columns, channels).
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx

# ---- With MLX's operations


def sample_by_operations(image: mx.array, places: mx.array) -> mx.array:
    height, width, _ = image.shape
    x, y = places[..., 0], places[..., 1]
    left, top = mx.stop_gradient(mx.floor(x)), mx.stop_gradient(mx.floor(y))
    right_share, bottom_share = x - left, y - top

    def corner(row: mx.array, column: mx.array, share: mx.array) -> mx.array:
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        index = mx.clip(row, 0, height - 1) * width + mx.clip(column, 0, width - 1)
        values = image.reshape(height * width, -1)[index.astype(mx.int32)]
        return values * (share * inside)[..., None]

    return (
        corner(top, left, (1 - bottom_share) * (1 - right_share))
        + corner(top, left + 1, (1 - bottom_share) * right_share)
        + corner(top + 1, left, bottom_share * (1 - right_share))
        + corner(top + 1, left + 1, bottom_share * right_share)
    )


# ---- As kernels

_HEADER = """
// The value of a pixel, 0 outside.
template <typename T>
METAL_FUNC T pixel(const device T* image, int row, int column, int channel, int height, int width, int channels) {
    bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? image[(row * width + column) * channels + channel] : T(0);
}
"""

# One thread for each value of the result.
_FORWARD = """
    uint index = thread_position_in_grid.x;
    int height = image_shape[0], width = image_shape[1], channels = image_shape[2];
    uint place = index / channels;
    int channel = index % channels;

    float x = places[2 * place], y = places[2 * place + 1];
    int column = floor(x), row = floor(y);
    float right = x - column, bottom = y - row;

    T top_left = pixel(image, row, column, channel, height, width, channels);
    T top_right = pixel(image, row, column + 1, channel, height, width, channels);
    T bottom_left = pixel(image, row + 1, column, channel, height, width, channels);
    T bottom_right = pixel(image, row + 1, column + 1, channel, height, width, channels);
    out[index] = (1 - bottom) * ((1 - right) * top_left + right * top_right) +
                 bottom * ((1 - right) * bottom_left + right * bottom_right);
"""

# One thread for each place. What it adds to a place's gradient is its own; pixels are shared, so theirs is atomic.
_BACKWARD = """
    uint place = thread_position_in_grid.x;
    int height = image_shape[0], width = image_shape[1], channels = image_shape[2];

    float x = places[2 * place], y = places[2 * place + 1];
    int column = floor(x), row = floor(y);
    float right = x - column, bottom = y - row;

    float slope_x = 0, slope_y = 0;
    for (int corner = 0; corner < 4; ++corner) {
        int r = row + corner / 2, c = column + corner % 2;
        if (r < 0 || r >= height || c < 0 || c >= width) continue;
        float share_x = corner % 2 ? right : 1 - right, share_y = corner / 2 ? bottom : 1 - bottom;
        float product = 0;
        for (int channel = 0; channel < channels; ++channel) {
            int offset = (r * width + c) * channels + channel;
            T cotangent = cotangents[place * channels + channel];
            product += image[offset] * cotangent;
            atomic_fetch_add_explicit(&image_grad[offset], share_x * share_y * cotangent, memory_order_relaxed);
        }
        slope_x += (corner % 2 ? share_y : -share_y) * product;
        slope_y += (corner / 2 ? share_x : -share_x) * product;
    }
    atomic_fetch_add_explicit(&places_grad[2 * place], slope_x, memory_order_relaxed);
    atomic_fetch_add_explicit(&places_grad[2 * place + 1], slope_y, memory_order_relaxed);
"""

# MLX's types say of kernels that they are objects.
forward_kernel: Any = mx.fast.metal_kernel(
    name="bilinear_sample",
    input_names=["image", "places"],
    output_names=["out"],
    source=_FORWARD,
    header=_HEADER,
)
backward_kernel: Any = mx.fast.metal_kernel(
    name="bilinear_sample_vjp",
    input_names=["image", "places", "cotangents"],
    output_names=["image_grad", "places_grad"],
    source=_BACKWARD,
    atomic_outputs=True,
)


@mx.custom_function
def sample(image: mx.array, places: mx.array) -> mx.array:
    shape = (*places.shape[:2], image.shape[2])
    (out,) = forward_kernel(
        inputs=[image, places],
        template=[("T", image.dtype)],
        grid=(shape[0] * shape[1] * shape[2], 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes=[shape],
        output_dtypes=[image.dtype],
    )
    return out


@sample.vjp
def _sample_vjp(primals, cotangents, _):
    image, places = primals
    return backward_kernel(
        inputs=[image, places, cotangents],
        template=[("T", image.dtype)],
        grid=(places.shape[0] * places.shape[1], 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes=[image.shape, places.shape],
        output_dtypes=[image.dtype, mx.float32],
        init_value=0,
    )
