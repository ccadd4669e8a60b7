"""A renderer with a gradient, which the programs of this folder fit in parallel: one definition for all libraries.

The picture is a sum of soft discs, each with a place, a size and a brightness. A thread computes a pixel. Pixels are
independent, so devices can have parts of them; all need all discs, whose gradients are sums over the devices.
"""

from __future__ import annotations

from typing import Any

import kiln
import numpy as np

HEADER = """
// Of a disc: x, y, size, brightness.
METAL_FUNC float shape_at(const device float* disc, float2 pixel, thread float2& away) {
    away = (pixel - float2(disc[0], disc[1])) / disc[2];
    return exp(-0.5f * dot(away, away));
}
"""

render = kiln.metal_kernel(
    name="render_discs",
    input_names=["discs", "pixels"],
    output_names=["image"],
    header=HEADER,
    source="""
        uint i = thread_position_in_grid.x;
        float2 pixel = float2(pixels[2 * i], pixels[2 * i + 1]), away;
        float sum = 0;
        for (int k = 0; k < discs_shape[0]; ++k)
            sum += discs[4 * k + 3] * shape_at(discs + 4 * k, pixel, away);
        image[i] = sum;
    """,
).function(
    output_shapes=lambda discs, pixels: [pixels.shape[:1]],
    output_dtypes=lambda discs, pixels: [discs.dtype],
    grid=lambda discs, pixels: pixels.shape[0],
    threadgroup=256,
)

# A simdgroup sums its pixels' parts first, so that few threads add to one number.
render_gradient = kiln.metal_kernel(
    name="render_discs_vjp",
    input_names=["discs", "pixels", "cotangents"],
    output_names=["gradient"],
    header=HEADER,
    source="""
        uint i = thread_position_in_grid.x;
        float2 pixel = float2(pixels[2 * i], pixels[2 * i + 1]), away;
        for (int k = 0; k < discs_shape[0]; ++k) {
            const device float* disc = discs + 4 * k;
            float shape = shape_at(disc, pixel, away) * cotangents[i];
            float by_away = disc[3] * shape / disc[2];
            float parts[4] = {by_away * away.x, by_away * away.y, by_away * dot(away, away), shape};
            for (int n = 0; n < 4; ++n) {
                float sum = simd_sum(parts[n]);
                if (thread_index_in_simdgroup == 0)
                    atomic_fetch_add_explicit(&gradient[4 * k + n], sum, memory_order_relaxed);
            }
        }
    """,
    atomic_outputs=True,
).function(
    output_shapes=lambda discs, *_: [discs.shape],
    output_dtypes=lambda discs, *_: [discs.dtype],
    grid=lambda discs, pixels, _: pixels.shape[0],
    threadgroup=256,
    init_value=0,
)


@render.vjp
def render_vjp(primals: Any, cotangent: Any, _: Any) -> Any:
    return render_gradient(*primals, cotangent), None


# Devices have parts of the pixels and all discs.
render.sharding(inputs=[None, 0], outputs=[0])

SIZE = 64
STEPS = 60
RATE = 0.03


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Discs to begin with, pixels, and the picture that the discs are to make."""
    rng = np.random.default_rng(0)
    rows, columns = np.indices((SIZE, SIZE)).reshape(2, -1)
    pixels = np.stack([columns, rows], 1).astype(np.float32) / SIZE
    wanted = np.column_stack([rng.uniform(0.2, 0.8, (6, 2)), np.full(6, 0.1), rng.uniform(0.5, 1, 6)])
    start = wanted + rng.normal(0, 0.03, wanted.shape)
    start[:, 2] = 0.12
    return start.astype(np.float32), pixels, render(wanted.astype(np.float32), pixels)
