"""A Gaussian blur of a photograph, with a halo in threadgroup memory and one kernel for rows and columns.

A Gaussian in two dimensions is a product of two Gaussians in one dimension. Blurring along rows and then along columns
costs 2 * (2 r + 1) products for a pixel; doing both at once costs (2 r + 1) squared. Neighbouring pixels need nearly the
same values. So the threads of a threadgroup load a part of a row into threadgroup memory, with a halo of r more values on
each side, wait at a barrier, and compute their sums from there.

There is only a kernel for the blur along rows. The blur along columns is the same kernel on the transposed image, which is
a view with exchanged strides. With `ensure_row_contiguous=False` the kernel gets that view unchanged, and its strides.

What it shows of Metal and of Kiln:

* `image_strides`, in elements, and `image_shape`, which the generated signature has because the body uses them. Strides
  may be negative, so indices computed from them are signed 64-bit integers.
* Threadgroup memory whose size depends on a template argument, and its size from `kernel.compile` before anything runs.
* The dictionary form of the interface: each call names its inputs and outputs.
* Arithmetic as written: the tests add the same products in the same order in NumPy, and compare bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kiln
import numpy as np
from numpy.typing import NDArray

from examples.gallery import common

TILE = 128

SOURCE = """
    threadgroup float stretch[TILE + 2 * RADIUS];
    uint3 place = thread_position_in_grid;
    int lane = thread_position_in_threadgroup.x, size = threads_per_threadgroup.x;
    int rows = image_shape[0], columns = image_shape[1], channels = image_shape[2];

    // The stretch begins RADIUS before the threadgroup's first pixel. Beyond an edge its value is taken again.
    int64_t row = place.y * image_strides[0] + place.z * image_strides[2];
    int begin = int(place.x) - lane - RADIUS;
    for (int i = lane; i < size + 2 * RADIUS; i += size)
        stretch[i] = image[row + clamp(begin + i, 0, columns - 1) * image_strides[1]];
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float sum = 0;
    for (int i = 0; i <= 2 * RADIUS; ++i)
        sum += weights[i] * stretch[lane + i];
    blurred[(place.y * columns + place.x) * channels + place.z] = sum;
"""

kernel = kiln.metal_kernel("blur_rows", SOURCE, ensure_row_contiguous=False)


def gaussian(sigma: float) -> NDArray[np.float32]:
    """2 r + 1 weights whose sum is 1, for the radius r of three sigma, sigma in pixels."""
    radius = max(1, round(3 * sigma))
    weights = np.exp(-0.5 * np.square(np.arange(-radius, radius + 1) / sigma))
    return (weights / weights.sum()).astype(np.float32)


def call_for(image: NDArray[np.float32], weights: NDArray[np.float32]) -> dict[str, Any]:
    """What the kernel is called with, to blur along the rows of an image (rows, columns, channels)."""
    rows, columns, channels = image.shape
    return {
        "inputs": {"image": image, "weights": weights},
        "template": {"TILE": TILE, "RADIUS": len(weights) // 2},
        "grid": (columns, rows, channels),
        "threadgroup": (TILE, 1, 1),
        "output_shapes": {"blurred": image.shape},
        "output_dtypes": {"blurred": np.float32},
    }


def blur_rows(image: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """The image, (rows, columns, channels), blurred along its rows; it may be any view."""
    return kernel(**call_for(image, weights))["blurred"]


def blur(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """The image, (rows, columns, channels), blurred along rows and columns; sigma in pixels."""
    weights = gaussian(sigma)
    return blur_rows(blur_rows(image, weights).transpose(1, 0, 2), weights).transpose(1, 0, 2)


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=600, help="rows of the photograph to take (%(default)s)")
    parser.add_argument("--sigma", type=float, default=6, help="of the stronger blur, in pixels (%(default)s)")
    options = parser.parse_args(argv)

    image = common.photograph()[: options.size, : options.size]
    weak, strong = options.sigma / 3, options.sigma
    pictures = {"photograph": image}
    print(f"{image.shape[1]} x {image.shape[0]} pixels, 3 channels")
    for sigma in (weak, strong):
        described = kernel.compile(**call_for(image, gaussian(sigma)))
        times = common.medians({"blur": blur}, image, sigma, rounds=5)
        print(
            f"sigma {sigma:g}: {len(gaussian(sigma)):3} weights, {times['blur']:.1f} ms, "
            f"{described.threadgroup_memory_bytes} bytes of threadgroup memory"
        )
        pictures[f"blurred, sigma {sigma:g}"] = blur(image, sigma)
    # What a weak blur takes away is detail; adding it once more sharpens.
    pictures["photograph + (photograph - weak blur)"] = 2 * image - pictures[f"blurred, sigma {weak:g}"]

    figure = common.new_figure(13, 4.2)
    for axis, (title, picture) in zip(figure.subplots(1, 4), pictures.items(), strict=True):
        axis.imshow(np.clip(picture, 0, 1))
        axis.set_title(title, fontsize=10)
        axis.axis("off")
    common.save(figure, options.out, "gaussian_blur.png")


if __name__ == "__main__":
    main()
