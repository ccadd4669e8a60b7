"""An affine warp of an image as a function of arrays, with its own gradient for the six parameters: the same for MLX,
PyTorch and JAX.

The pixel of the result at (u, v), both in [-1, 1] from edge to edge, is the image's at
(p0 u + p1 v + p2, p3 u + p4 v + p5), bilinear between pixels and 0 outside.
"""

from __future__ import annotations

import kiln

_HEADER = """
template <typename T>
METAL_FUNC T lerp(T from, T to, float share) {
    return from + share * (to - from);
}

struct Place {
    float u, v;      // of the result's pixel
    int row, column; // of the image's pixel above and to the left
    float right, bottom;
};

METAL_FUNC Place locate(uint2 pixel, uint2 size, const constant float* p) {
    Place place;
    place.u = (2 * float(pixel.x) + 1) / size.x - 1;
    place.v = (2 * float(pixel.y) + 1) / size.y - 1;
    float x = ((p[0] * place.u + p[1] * place.v + p[2] + 1) * size.x - 1) / 2;
    float y = ((p[3] * place.u + p[4] * place.v + p[5] + 1) * size.y - 1) / 2;
    place.column = floor(x);
    place.row = floor(y);
    place.right = x - place.column;
    place.bottom = y - place.row;
    return place;
}

// The four pixels around a place, 0 outside: above left, above right, below left, below right.
METAL_FUNC float4 corners(const device float* image, Place place, uint channel, uint2 size, uint channels) {
    float4 result = 0;
    for (int i = 0; i < 4; ++i) {
        int row = place.row + i / 2, column = place.column + i % 2;
        if (row >= 0 && row < int(size.y) && column >= 0 && column < int(size.x))
            result[i] = image[(row * size.x + column) * channels + channel];
    }
    return result;
}
"""

_FORWARD = """
    uint2 pixel = thread_position_in_grid.xy, size = uint2(image_shape[1], image_shape[0]);
    uint channels = image_shape[2];
    Place place = locate(pixel, size, parameters);
    for (uint channel = 0; channel < channels; ++channel) {
        float4 c = corners(image, place, channel, size, channels);
        float2 columns = lerp(c.xz, c.yw, place.right);
        out[(pixel.y * size.x + pixel.x) * channels + channel] = lerp(columns.x, columns.y, place.bottom);
    }
"""

# Each simdgroup sums what its threads contribute; one thread of it adds that to the result.
_BACKWARD = """
    uint2 pixel = thread_position_in_grid.xy, size = uint2(image_shape[1], image_shape[0]);
    uint channels = image_shape[2];
    Place place = locate(pixel, size, parameters);
    float by_x = 0, by_y = 0;
    for (uint channel = 0; channel < channels; ++channel) {
        float cotangent = cotangents[(pixel.y * size.x + pixel.x) * channels + channel];
        float4 c = corners(image, place, channel, size, channels);
        by_x += cotangent * lerp(c.y - c.x, c.w - c.z, place.bottom);
        by_y += cotangent * lerp(c.z - c.x, c.w - c.y, place.right);
    }
    by_x *= size.x / 2.0;
    by_y *= size.y / 2.0;
    float contribution[6] = {by_x * place.u, by_x * place.v, by_x, by_y * place.u, by_y * place.v, by_y};
    for (int i = 0; i < 6; ++i) {
        float sum = simd_sum(contribution[i]);
        if (thread_index_in_simdgroup == 0)
            atomic_fetch_add_explicit(&parameters_grad[i], sum, memory_order_relaxed);
    }
"""

forward_kernel = kiln.metal_kernel(
    name="affine_warp",
    input_names=["image", "parameters"],
    output_names=["out"],
    source=_FORWARD,
    header=_HEADER,
)
backward_kernel = kiln.metal_kernel(
    name="affine_warp_vjp",
    input_names=["image", "parameters", "cotangents"],
    output_names=["parameters_grad"],
    source=_BACKWARD,
    header=_HEADER,
    atomic_outputs=True,
)


def _grid(image, *_):
    height, width, _ = image.shape
    return width, height, 1


# Arrays of any library: image (height, width, channels) and parameters (6,), both float32; the result has the image's
# shape.
affine_warp = forward_kernel.function(
    output_shapes=lambda image, parameters: [image.shape],
    output_dtypes=["float32"],
    grid=_grid,
    threadgroup=(32, 8, 1),
)
gradient = backward_kernel.function(
    output_shapes=lambda image, parameters, cotangents: [parameters.shape],
    output_dtypes=["float32"],
    grid=_grid,
    threadgroup=(32, 8, 1),
    init_value=0,
)


@affine_warp.vjp
def _affine_warp_vjp(primals, cotangents, _):
    image, parameters = primals
    return None, gradient(image, parameters, cotangents)
