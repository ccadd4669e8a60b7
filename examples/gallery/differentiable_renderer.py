"""A renderer with a gradient: soft ellipses that learn to look like a photograph.

The picture is a stack of ellipses, each with a position, a shape, a colour, an opacity and Gaussian edges. From front to
back each covers part of the ones below it, so every pixel is a smooth function of all parameters. Gradient descent on the
squared difference to a photograph moves, stretches and colours the ellipses until they resemble it.

The forward and the backward kernel have a thread for each pixel. An ellipse's gradient is a sum over pixels. A simdgroup,
which has 8 x 4 of them, adds its part with `simd_sum`, and its first thread adds that to the result atomically. Most
ellipses do not reach most pixels; `simd_any` checks whether any of the 32 threads needs the sums.

What it shows of Metal and of Kiln:

* `kiln.mlx.install()`: the kernels are made with `mx.fast.metal_kernel`, and the program is one for a Mac.
* `mx.custom_function` with a `vjp` that is a kernel. Sigmoids, exponentials and the loss are MLX's own operations, and
  `mx.value_and_grad` goes through both.
* The `vjp` receives the forward result, which saves a pass: the colour below an ellipse is the pixel's colour minus that
  above it.
* Calls of `simd_any` and `simd_sum` in a loop without a divergent exit: all 32 threads execute each call.
* `atomic_outputs=True` and `init_value=0` for a sum of floats. Its order changes from run to run, and so do the last bits
  of a gradient.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import kiln.mlx
import mlx.core as mx
import numpy as np

from examples.gallery import common

HEADER = """
// Its numbers in an array: x, y, the shape's three, red, green, blue, opacity. Lengths are in pixels.
constant constexpr int kNumbers = 9;

// What an ellipse is at a pixel.
struct Cover {
    float2 away;  // from the ellipse's place
    float2 bent;  // the same in the ellipse's own measure: 1 is a standard deviation
    float shape;  // 1 at its place, less and less outwards
    float alpha;  // how much of what is behind it it hides; 0 where that would not be seen
};

METAL_FUNC Cover cover(const device float* ellipse, float2 pixel) {
    Cover c;
    c.away = pixel - float2(ellipse[0], ellipse[1]);
    c.bent = float2(ellipse[2] * c.away.x + ellipse[3] * c.away.y, ellipse[4] * c.away.y);
    float square = dot(c.bent, c.bent);
    // exp(-11.1 / 2) is below 1/255 already.
    c.shape = square < 11.1f ? exp(-0.5f * square) : 0.0f;
    c.alpha = ellipse[8] * c.shape;
    if (c.alpha < 1.0f / 255) c.alpha = 0;
    return c;
}

METAL_FUNC float3 colour_of(const device float* ellipse) {
    return float3(ellipse[5], ellipse[6], ellipse[7]);
}
"""

FORWARD = """
    uint2 place = thread_position_in_grid.xy;
    float2 pixel = float2(place) + 0.5f;
    float3 colour = 0;
    float visible = 1;
    for (int i = 0; i < ellipses_shape[0]; ++i) {
        const device float* ellipse = ellipses + kNumbers * i;
        float alpha = cover(ellipse, pixel).alpha;
        colour += visible * alpha * colour_of(ellipse);
        visible *= 1 - alpha;
    }
    for (int channel = 0; channel < 3; ++channel)
        image[3 * (place.y * threads_per_grid.x + place.x) + channel] = colour[channel];
"""

BACKWARD = """
    uint2 place = thread_position_in_grid.xy;
    float2 pixel = float2(place) + 0.5f;
    uint index = 3 * (place.y * threads_per_grid.x + place.x);
    float3 cotangent = float3(cotangents[index], cotangents[index + 1], cotangents[index + 2]);
    // What is still to come of the pixel's colour.
    float3 behind = float3(image[index], image[index + 1], image[index + 2]);

    float visible = 1;
    for (int i = 0; i < ellipses_shape[0]; ++i) {
        const device float* ellipse = ellipses + kNumbers * i;
        Cover c = cover(ellipse, pixel);
        if (!simd_any(c.alpha > 0)) continue;

        float3 colour = colour_of(ellipse);
        behind -= visible * c.alpha * colour;
        // More of this ellipse is more of its colour, and less of everything behind it.
        float by_alpha = c.alpha > 0 ? dot(cotangent, visible * colour - behind / (1 - c.alpha)) : 0.0f;
        float3 by_colour = visible * c.alpha * cotangent;
        float2 by_bent = -by_alpha * c.alpha * c.bent;
        float contribution[kNumbers] = {
            -by_bent.x * ellipse[2],
            -(by_bent.x * ellipse[3] + by_bent.y * ellipse[4]),
            by_bent.x * c.away.x,
            by_bent.x * c.away.y,
            by_bent.y * c.away.y,
            by_colour.x,
            by_colour.y,
            by_colour.z,
            by_alpha * c.shape,
        };
        for (int number = 0; number < kNumbers; ++number) {
            float sum = simd_sum(contribution[number]);
            if (thread_index_in_simdgroup == 0)
                atomic_fetch_add_explicit(&gradient[kNumbers * i + number], sum, memory_order_relaxed);
        }
        visible *= 1 - c.alpha;
    }
"""

# A program for a Mac has no `with`; here other programs of the same process keep what MLX gave them.
with kiln.mlx.install():
    forward_kernel: Any = mx.fast.metal_kernel(
        name="render", input_names=["ellipses"], output_names=["image"], source=FORWARD, header=HEADER
    )
    backward_kernel: Any = mx.fast.metal_kernel(
        name="render_vjp",
        input_names=["ellipses", "image", "cotangents"],
        output_names=["gradient"],
        source=BACKWARD,
        header=HEADER,
        atomic_outputs=True,
    )


def renderer(rows: int, columns: int) -> Callable[..., Any]:
    """A function of ellipses, (n, 9), that gives their picture, (rows, columns, 3), and has a gradient.

    The first ellipse is in front; behind the last it is black. Opacities are below 1.
    """
    # A simdgroup is 32 neighbours of the linear index: 8 columns of 4 rows, which need mostly the same ellipses.
    launch = {"grid": (columns, rows, 1), "threadgroup": (8, 4, 1), "output_dtypes": [mx.float32]}

    @mx.custom_function
    def render(ellipses: mx.array) -> mx.array:
        return forward_kernel(inputs=[ellipses], output_shapes=[(rows, columns, 3)], **launch)[0]

    @render.vjp
    def _render_vjp(ellipses: mx.array, cotangents: mx.array, image: mx.array) -> mx.array:
        inputs = [ellipses, image, cotangents]
        return backward_kernel(inputs=inputs, output_shapes=[ellipses.shape], init_value=0, **launch)[0]

    return render


def ellipses_from(free: mx.array, rows: int, columns: int) -> mx.array:
    """Ellipses, (n, 9), from as many numbers that may have any value: what gradient descent works on."""
    places = free[:, 0:2] * mx.array([columns, rows], mx.float32)
    # Where the free numbers are 0, a standard deviation is 1/24 of the height.
    widths, skews, heights = mx.exp(free[:, 2:3]), free[:, 3:4], mx.exp(free[:, 4:5])
    shapes = mx.concatenate([widths, skews, heights], axis=1) * (24 / rows)
    return mx.concatenate([places, shapes, mx.sigmoid(free[:, 5:8]), 0.98 * mx.sigmoid(free[:, 8:9])], axis=1)


def start(count: int) -> mx.array:
    """Numbers, (n, 9), of grey ellipses at places that are always the same."""
    places = mx.random.uniform(shape=(count, 2), key=mx.random.key(1))
    others = 0.1 * mx.random.normal((count, 7), key=mx.random.key(2))
    return mx.concatenate([places, others], axis=1)


class Fit(NamedTuple):
    """What ``fit`` gives."""

    first: mx.array
    """The picture at the start, (rows, columns, 3)."""
    last: mx.array
    """The picture at the end."""
    losses: mx.array
    """(steps + 1,): mean squared differences to the target, before each step and at the end."""


def fit(target: mx.array, count: int, steps: int, rate: float = 0.15) -> Fit:
    """Fits so many ellipses to the target, (rows, columns, 3), in so many steps of Adam."""
    rows, columns, _ = target.shape
    render = renderer(rows, columns)

    def picture_of(free: mx.array) -> mx.array:
        return render(ellipses_from(free, rows, columns))

    def loss_of(free: mx.array) -> mx.array:
        return mx.mean(mx.square(picture_of(free) - target))

    # A place is a share of the picture: what is a small step for an exponent is a leap for it.
    rates = rate * mx.array([0.1, 0.1] + 7 * [1.0])
    free = start(count)
    first = picture_of(free)
    value_and_gradient = mx.value_and_grad(loss_of)
    mean, spread = mx.zeros_like(free), mx.zeros_like(free)
    losses: list[mx.array] = []
    for step in range(1, steps + 1):
        loss, gradient = value_and_gradient(free)
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.99 * spread + 0.01 * mx.square(gradient)
        free = free - rates * (mean / (1 - 0.9**step)) / (mx.sqrt(spread / (1 - 0.99**step)) + 1e-8)
        mx.eval(free, mean, spread, loss)
        losses.append(loss)
    losses.append(loss_of(free))
    return Fit(first, picture_of(free), mx.stack(losses))


def smaller(image: mx.array, factor: int) -> mx.array:
    """The image, (rows, columns, 3), with the mean of factor x factor pixels in the place of each such square."""
    rows, columns = image.shape[0] // factor, image.shape[1] // factor
    cut = image[: rows * factor, : columns * factor]
    return cut.reshape(rows, factor, columns, factor, 3).mean(axis=(1, 3))


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=100, help="rows of the picture (%(default)s)")
    parser.add_argument("--ellipses", type=int, default=256, help="how many (%(default)s)")
    parser.add_argument("--steps", type=int, default=160, help="steps of gradient descent (%(default)s)")
    options = parser.parse_args(argv)

    photograph = mx.array(common.photograph())
    target = smaller(photograph, max(1, photograph.shape[0] // options.size))
    begin = time.perf_counter()
    result = fit(target, options.ellipses, options.steps)
    mx.eval(result.last)
    seconds = time.perf_counter() - begin

    size = f"{target.shape[1]} x {target.shape[0]} pixels"
    print(f"{options.ellipses} ellipses, {size}, {options.steps} steps: {seconds:.2f} s")
    for what, kernel in (("forward", forward_kernel), ("backward", backward_kernel)):
        print(f"  {what:10}{np.median([launch.run_ms for launch in kernel.history]):8.2f} ms a launch")
    losses = np.array(result.losses)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")

    figure = common.new_figure(13, 4)
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.4])
    for axis, picture, title in zip(
        axes, (target, result.first, result.last), ("target", "start", f"after {options.steps} steps"), strict=False
    ):
        axis.imshow(np.clip(np.array(picture), 0, 1), interpolation="nearest")
        axis.set_title(title)
        axis.axis("off")
    axes[3].semilogy(losses, color=common.KILN)
    axes[3].set(xlabel="step", title="mean squared difference to the target")
    axes[3].spines[["top", "right"]].set_visible(False)
    common.save(figure, options.out, "differentiable_renderer.png")


if __name__ == "__main__":
    main()
