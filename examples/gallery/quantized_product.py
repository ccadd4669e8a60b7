"""A product with weights of four bits, from MLX's own packing.

Large models store their weights in few bits. `mx.quantize` takes groups of 32, 64 or 128 weights of a row. It stores a
scale and a bias for each group, and for each weight an integer q from 0 to 15 that represents scale * q + bias. A word
holds eight such integers. On a GPU the product with one vector, as for each token of a model, takes as long as reading
the weights; so they are unpacked in registers and never stored.

A simdgroup computes one row of the weights. Each of its threads loads every 32nd word, unpacks it and multiplies it by
eight numbers of x, and `simd_sum` adds the results of the 32 threads. If x has many rows, a thread uses the unpacked
weights for `BATCH` of them.

On a few cores of a CPU the arithmetic takes longer than the memory accesses, so four bits save memory rather than time.
The figure compares with the product of 32-bit weights.

What it shows of Metal and of Kiln:

* Template integers: `GROUP` and `BATCH` are constants in the body. `float sum[BATCH]` needs that, and the loops over it
  are unrolled.
* A grid of 32 x features x batches threads: the threadgroup (32, 4, 1) is four simdgroups, one for each row.
* `simd_sum` in a loop: all 32 threads execute each call.
* Arrays of two types in one kernel: `uint32` words, and x, scales and biases of type `T`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import kiln.mlx
import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from examples.gallery import common

SOURCE = """
    uint lane = thread_position_in_grid.x, feature = thread_position_in_grid.y, features = threads_per_grid.y;
    uint rows = x_shape[0], depth = x_shape[1];
    uint first = thread_position_in_grid.z * BATCH;

    float sum[BATCH] = {0};
    for (uint word = lane; word < depth / 8; word += 32) {
        uint packed = w[feature * (depth / 8) + word];
        uint group = (feature * depth + word * 8) / GROUP;
        float scale = scales[group], bias = biases[group];
        float weight[8];
        for (int i = 0; i < 8; ++i)
            weight[i] = scale * float((packed >> (4 * i)) & 15) + bias;
        for (int row = 0; row < BATCH; ++row) {
            // Behind the last row of x the last one is taken again; its sum is not stored.
            uint values = min(first + row, rows - 1) * depth + 8 * word;
            for (int i = 0; i < 8; ++i)
                sum[row] += weight[i] * float(x[values + i]);
        }
    }
    for (int row = 0; row < BATCH; ++row) {
        float total = simd_sum(sum[row]);
        if (lane == 0 && first + row < rows)
            y[(first + row) * features + feature] = T(total);
    }
"""

kernel = kiln.mlx.metal_kernel(
    name="quantized_product",
    input_names=["x", "w", "scales", "biases"],
    output_names=["y"],
    source=SOURCE,
)


def quantized_product(x: mx.array, w: mx.array, scales: mx.array, biases: mx.array, group_size: int = 64) -> mx.array:
    """x, (rows, depth), times the transpose of what w, scales and biases stand for, (features, depth).

    Args:
      w, scales, biases: what ``mx.quantize(weights, group_size, bits=4)`` gives, of weights of the dtype of x.
    """
    rows, features = x.shape[0], w.shape[0]
    batch = min(8, rows)
    (y,) = kernel(
        inputs=[x, w, scales, biases],
        template=[("T", x.dtype), ("GROUP", group_size), ("BATCH", batch)],
        grid=(32, features, -(-rows // batch)),
        threadgroup=(32, 4, 1),
        output_shapes=[(rows, features)],
        output_dtypes=[x.dtype],
    )
    return y


def unpacked(w: mx.array, scales: mx.array, biases: mx.array, group_size: int) -> NDArray[np.float64]:
    """What the packed weights stand for, (features, depth), in double precision."""
    words = np.array(w)
    numbers = (words[:, :, None] >> (4 * np.arange(8, dtype=np.uint32))) & 15
    in_groups = numbers.reshape(len(words), -1, group_size).astype(np.float64)
    scale, bias = (np.array(a.astype(mx.float32), dtype=np.float64)[:, :, None] for a in (scales, biases))
    return (scale * in_groups + bias).reshape(len(words), -1)


def relative_error(y: mx.array | NDArray[np.float64], exact: NDArray[np.float64]) -> float:
    """The root of the mean square of the differences, to that of the exact values."""
    values = np.array(y.astype(mx.float32), dtype=np.float64) if isinstance(y, mx.array) else y
    return float(np.sqrt(np.square(values - exact).mean() / np.square(exact).mean()))


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=2048, help="features, and depth, of the weights (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="times that each product is run (%(default)s)")
    options = parser.parse_args(argv)

    depth = options.size
    weights = mx.random.normal((depth, depth), key=mx.random.key(1)) / depth**0.5
    x = mx.random.normal((32, depth), key=mx.random.key(2))
    doubles = np.array(x, dtype=np.float64)
    unrounded = doubles @ np.array(weights, dtype=np.float64).T

    groups = [32, 64, 128]
    errors: dict[str, list[float]] = {"rounding to 4 bits": [], "mx.quantized_matmul": [], "Kiln": []}
    for group in groups:
        packed = mx.quantize(weights, group_size=group, bits=4)
        meant = doubles @ unpacked(*packed, group).T
        theirs = mx.quantized_matmul(x, *packed, transpose=True, group_size=group, bits=4)
        errors["rounding to 4 bits"].append(relative_error(meant, unrounded))
        errors["mx.quantized_matmul"].append(relative_error(theirs, meant))
        errors["Kiln"].append(relative_error(quantized_product(x, *packed, group), meant))
    print(f"relative error, weights in groups of{''.join(f'{group:10}' for group in groups)}")
    for name, values in errors.items():
        print(f"  {name:34}{''.join(f'{value:10.1e}' for value in values)}")

    packed = mx.quantize(weights, group_size=64, bits=4)
    rows = [1, 4, 16]
    times: dict[str, list[float]] = {"mx.matmul, 32 bits": [], "mx.quantized_matmul": [], "Kiln": []}
    for count in rows:
        part = mx.contiguous(x[:count])
        mx.eval(weights, part, *packed)
        functions: dict[str, Callable[[mx.array], mx.array]] = {
            "mx.matmul, 32 bits": lambda part: part @ weights.T,
            "mx.quantized_matmul": lambda part: mx.quantized_matmul(
                part, *packed, transpose=True, group_size=64, bits=4
            ),
            "Kiln": lambda part: quantized_product(part, *packed),
        }
        for name, value in common.medians(functions, part, rounds=options.rounds).items():
            times[name].append(value / count)
    print(f"milliseconds a row of x, of so many{''.join(f'{count:10}' for count in rows)}")
    for name, values in times.items():
        print(f"  {name:34}{''.join(f'{value:10.2f}' for value in values)}")

    figure = common.new_figure(11, 4.4)
    times_axis, errors_axis = figure.subplots(1, 2)
    colours = (common.THIRD, common.OTHER, common.KILN)
    for axis, labels, series in ((times_axis, rows, times), (errors_axis, groups, errors)):
        coloured = {name: (colour, series[name]) for name, colour in zip(series, colours, strict=True)}
        common.bars(axis, labels, coloured)
    times_axis.set(
        title="time", xlabel=f"rows of x; {depth} x {depth} weights", ylabel="milliseconds a row, less is better"
    )
    errors_axis.set(title="error", xlabel="weights in a group", ylabel="relative error, less is better", yscale="log")
    errors_axis.set_ylim(1e-8, 10)
    common.save(figure, options.out, "quantized_product.png")


if __name__ == "__main__":
    main()
