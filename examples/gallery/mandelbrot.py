"""The Mandelbrot set, with colours that do not step.

A point c of the plane belongs to the set if the iteration `z = z * z + c` from 0 stays bounded. Each thread of a
two-dimensional grid iterates one pixel until |z| exceeds a radius, and the number of steps n gives the colour. Whole
numbers would draw bands. The distance of the last z from the radius gives the fraction of the last step:
`n - log2(log(|z|) / log(radius))` grows without jumps from one n to the next.

What it shows of Metal and of Kiln:

* `thread_position_in_grid` in two dimensions. Kiln runs exactly the threads of the grid, so no thread has to
  check that its pixel exists.
* Template arguments: `LIMIT` and `SAMPLES` are constants when the body is compiled, so the loops over samples are
  unrolled.
* A `header` with helper functions.
* Python floats as inputs: each is a `const constant float&` in the body.
* NumPy arrays: the call returns when the kernel has run. Without an array among the inputs, the dtypes of the outputs
  decide the library of the results.

Metal has no `double`. Floats near the picture's centre are 6e-8 apart. A picture of a width below 5e-5, whose pixels are
closer than that, shows blocks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import kiln
import matplotlib.image
import numpy as np
from numpy.typing import NDArray

from examples.gallery import common

HEADER = """
// How many steps c takes until |z| exceeds 256, with a fraction; `limit` where it does not in that many.
METAL_FUNC float steps_to_escape(float2 c, int limit) {
    float2 z = 0;
    for (int n = 0; n < limit; ++n) {
        float2 square = z * z;
        float size = square.x + square.y;
        if (size > 65536)
            // log2(|z|) is half of log2(size), and log2(256) is 8.
            return max(n - log2(log2(size) / 16), 0.0f);
        z = float2(square.x - square.y, 2 * z.x * z.y) + c;
    }
    return limit;
}

// Colours from 0 to 1, of the logarithm because steps crowd near the set; black in the set.
METAL_FUNC float3 colour_of(float steps, int limit) {
    if (steps >= limit) return 0;
    return 0.5f - 0.5f * cospi(0.55f * log2(steps + 1) + float3(1.1f, 1.2f, 1.35f));
}
"""

SOURCE = """
    uint2 pixel = thread_position_in_grid.xy;
    float2 centre = float2(centre_x, centre_y);
    // Of the picture's middle, in pixels; y grows downwards.
    float2 middle = float2(threads_per_grid.xy) / 2;

    float3 colour = 0;
    float sum = 0;
    for (int row = 0; row < SAMPLES; ++row) {
        for (int column = 0; column < SAMPLES; ++column) {
            float2 place = float2(pixel) + (float2(column, row) + 0.5f) / SAMPLES - middle;
            float n = steps_to_escape(centre + float2(place.x, -place.y) * spacing, LIMIT);
            colour += colour_of(n, LIMIT);
            sum += n;
        }
    }
    colour /= SAMPLES * SAMPLES;

    uint index = pixel.y * threads_per_grid.x + pixel.x;
    steps[index] = sum / (SAMPLES * SAMPLES);
    for (int channel = 0; channel < 3; ++channel)
        picture[3 * index + channel] = uint8_t(rint(255 * colour[channel]));
"""

kernel = kiln.metal_kernel(
    name="mandelbrot",
    input_names=["centre_x", "centre_y", "spacing"],
    output_names=["steps", "picture"],
    source=SOURCE,
    header=HEADER,
)


def mandelbrot(
    columns: int, rows: int, centre: complex, width: float, limit: int = 1000, samples: int = 1
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Steps to escape, (rows, columns), and colours, (rows, columns, 3), each the mean of samples x samples in a pixel.

    Args:
      centre: the middle of the picture.
      width: how wide the picture is in the plane of c.
      limit: after how many steps a point counts as one of the set.
    """
    steps, picture = kernel(
        inputs=[centre.real, centre.imag, width / columns],
        template=[("LIMIT", limit), ("SAMPLES", samples)],
        grid=(columns, rows, 1),
        threadgroup=(32, 4, 1),
        output_shapes=[(rows, columns), (rows, columns, 3)],
        output_dtypes=[np.float32, np.uint8],
    )
    return steps, picture


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=960, help="columns of the picture (%(default)s)")
    parser.add_argument("--width", type=float, default=0.008, help="width in the plane (%(default)s)")
    parser.add_argument("--samples", type=int, default=3, help="samples of a pixel in each direction (%(default)s)")
    options = parser.parse_args(argv)

    columns, rows = options.size, options.size * 2 // 3
    start = time.perf_counter()
    steps, picture = mandelbrot(columns, rows, -0.7453 + 0.1127j, options.width, samples=options.samples)
    seconds = time.perf_counter() - start

    total = float(steps.sum(dtype=np.float64)) * options.samples**2
    print(f"{columns} x {rows} pixels of {options.samples**2} samples each, {steps.mean():.0f} steps a sample")
    print(f"{seconds:.2f} s with compiling, {total / seconds / 1e6:.0f} million steps a second")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "mandelbrot.png"
    matplotlib.image.imsave(path, picture)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
