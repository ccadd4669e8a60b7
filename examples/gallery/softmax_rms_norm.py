"""Softmax and RMS norm of rows, with reductions over a threadgroup.

Both functions need a value of the whole row before they can write its first element: the sum of exponentials and, to
avoid overflow, the largest element; or the mean of squares. A threadgroup computes one row. Each thread reads every n-th
element and keeps a partial result. The 32 threads of a simdgroup combine theirs with `simd_sum` or `simd_max`, and the
simdgroups combine their results through threadgroup memory.

What it shows of Metal and of Kiln:

* `simd_sum` and `simd_max`, and the attributes around them: `thread_index_in_simdgroup`,
  `simdgroup_index_in_threadgroup`, `simdgroups_per_threadgroup`.
* A function of the header that uses threadgroup memory and barriers. The array itself is declared in the body: Metal
  has `threadgroup` variables in kernels only.
* A template argument for the type. Half and bfloat16 are read and written, sums are floats.
* MLX arrays through `kiln.metal_kernel`: the results belong to the library of the inputs.

The times in the figure are those of the machine that drew it. On a CPU MLX computes with vector instructions on one core,
and `mx.fast.rms_norm` consists of its operations there. Kiln uses all cores, and runs the threads of a simdgroup as one
vector if the processor has AVX2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import kiln
import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from examples.gallery import common

HEADER = """
// The sum over all threads of a threadgroup. `partial` has room for its simdgroups and is free again afterwards.
METAL_FUNC float threadgroup_sum(float value, threadgroup float* partial, uint lane, uint simdgroup, uint simdgroups) {
    value = simd_sum(value);
    if (lane == 0) partial[simdgroup] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value = simd_sum(lane < simdgroups ? partial[lane] : 0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return value;
}

// The largest value, likewise.
METAL_FUNC float threadgroup_max(float value, threadgroup float* partial, uint lane, uint simdgroup, uint simdgroups) {
    value = simd_max(value);
    if (lane == 0) partial[simdgroup] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value = simd_max(lane < simdgroups ? partial[lane] : -INFINITY);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return value;
}
"""

SOFTMAX = """
    threadgroup float partial[32];
    uint me = thread_position_in_threadgroup.x, size = threads_per_threadgroup.x;
    uint lane = thread_index_in_simdgroup, simdgroup = simdgroup_index_in_threadgroup;
    uint simdgroups = simdgroups_per_threadgroup;
    uint columns = x_shape[1], row = threadgroup_position_in_grid.y * columns;

    float largest = -INFINITY;
    for (uint i = me; i < columns; i += size)
        largest = max(largest, float(x[row + i]));
    largest = threadgroup_max(largest, partial, lane, simdgroup, simdgroups);

    float sum = 0;
    for (uint i = me; i < columns; i += size)
        sum += exp(float(x[row + i]) - largest);
    float scale = 1 / threadgroup_sum(sum, partial, lane, simdgroup, simdgroups);

    for (uint i = me; i < columns; i += size)
        y[row + i] = T(exp(float(x[row + i]) - largest) * scale);
"""

RMS_NORM = """
    threadgroup float partial[32];
    uint me = thread_position_in_threadgroup.x, size = threads_per_threadgroup.x;
    uint columns = x_shape[1], row = threadgroup_position_in_grid.y * columns;

    float sum = 0;
    for (uint i = me; i < columns; i += size)
        sum += float(x[row + i]) * float(x[row + i]);
    sum = threadgroup_sum(
        sum, partial, thread_index_in_simdgroup, simdgroup_index_in_threadgroup, simdgroups_per_threadgroup);
    float scale = rsqrt(sum / columns + eps);

    for (uint i = me; i < columns; i += size)
        y[row + i] = T(float(x[row + i]) * scale) * weight[i];
"""

softmax_kernel = kiln.metal_kernel(name="softmax", input_names=["x"], output_names=["y"], source=SOFTMAX, header=HEADER)
rms_norm_kernel = kiln.metal_kernel(
    name="rms_norm", input_names=["x", "weight", "eps"], output_names=["y"], source=RMS_NORM, header=HEADER
)


def threads_for(columns: int) -> int:
    """Whole simdgroups, at most 8, with 16 elements of a row to a thread: a short row is not worth many who wait."""
    return 32 * min(8, max(1, columns // (16 * 32)))


def softmax(x: mx.array) -> mx.array:
    """Softmax of each row of x, (rows, columns)."""
    threads = threads_for(x.shape[1])
    (y,) = softmax_kernel(
        inputs=[x],
        template=[("T", x.dtype)],
        grid=(threads, x.shape[0], 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return y


def rms_norm(x: mx.array, weight: mx.array, eps: float) -> mx.array:
    """Each row of x, (rows, columns), divided by the root of its mean square plus eps, times weight, (columns,)."""
    threads = threads_for(x.shape[1])
    (y,) = rms_norm_kernel(
        inputs=[x, weight, eps],
        template=[("T", x.dtype)],
        grid=(threads, x.shape[0], 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return y


def softmax_by_operations(x: mx.array) -> mx.array:
    """The same with MLX's operations."""
    exponentials = mx.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def rms_norm_by_operations(x: mx.array, weight: mx.array, eps: float) -> mx.array:
    """The same with MLX's operations."""
    return x * mx.rsqrt(mx.square(x).mean(axis=-1, keepdims=True) + eps) * weight


def exact_softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same in double precision."""
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def exact_rms_norm(x: NDArray[np.float64], weight: NDArray[np.float64], eps: float) -> NDArray[np.float64]:
    """The same in double precision."""
    return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps) * weight


def _differences(dtype: mx.Dtype, rows: int, columns: int) -> list[tuple[str, float, float, float]]:
    """Of both functions: the name, and the largest differences of Kiln to MLX, of Kiln and of MLX to exact values."""
    x = (3 * mx.random.normal((rows, columns), key=mx.random.key(1))).astype(dtype)
    weight = mx.random.uniform(0.5, 1.5, (columns,), key=mx.random.key(2)).astype(dtype)

    def largest(a: mx.array, b: mx.array | NDArray[np.float64]) -> float:
        return float(np.abs(as_doubles(a) - (as_doubles(b) if isinstance(b, mx.array) else b)).max())

    def as_doubles(a: mx.array) -> NDArray[np.float64]:
        return np.array(a.astype(mx.float32), dtype=np.float64)

    result = []
    for name, ours, theirs, exact in (
        ("softmax", softmax(x), mx.softmax(x, axis=-1, precise=True), exact_softmax(as_doubles(x))),
        (
            "RMS norm",
            rms_norm(x, weight, 1e-5),
            mx.fast.rms_norm(x, weight, 1e-5),
            exact_rms_norm(as_doubles(x), as_doubles(weight), 1e-5),
        ),
    ):
        result.append((name, largest(ours, theirs), largest(ours, exact), largest(theirs, exact)))
    return result


def _times(title: str, rows: int, columns: int, rounds: int) -> dict[str, float]:
    """Milliseconds of Kiln, of MLX's function and of its operations."""
    x = mx.random.normal((rows, columns), key=mx.random.key(3))
    arguments: tuple[object, ...] = (x,) if title == "softmax" else (x, mx.ones((columns,)), 1e-5)
    mx.eval(arguments)
    functions: dict[str, dict[str, Callable[..., mx.array]]] = {
        "softmax": {
            "Kiln": softmax,
            "MLX's function": lambda x: mx.softmax(x, axis=-1),
            "MLX's operations": softmax_by_operations,
        },
        "RMS norm": {
            "Kiln": rms_norm,
            "MLX's function": mx.fast.rms_norm,
            "MLX's operations": rms_norm_by_operations,
        },
    }
    return common.medians(functions[title], *arguments, rounds=rounds)


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, default=1 << 20, help="elements of an array that is timed (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="times that each is run (%(default)s)")
    options = parser.parse_args(argv)

    print("largest difference             Kiln to MLX   Kiln to exact    MLX to exact")
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        for name, *values in _differences(dtype, 64, 1024):
            kind = str(dtype).removeprefix("mlx.core.")
            print(f"  {name:10}{kind:12}{''.join(f'{value:16.1e}' for value in values)}")

    widths = [256, 1024, 4096, 16384]
    figure = common.new_figure(11, 4.4)
    print(f"milliseconds for {options.size} elements, float32   {''.join(f'{width:9}' for width in widths)} columns")
    for axis, title in zip(figure.subplots(1, 2), ("softmax", "RMS norm"), strict=True):
        rows = [max(1, options.size // width) for width in widths]
        times = [_times(title, *shape, options.rounds) for shape in zip(rows, widths, strict=True)]
        series = {}
        for name, colour in (
            ("Kiln", common.KILN),
            ("MLX's function", common.OTHER),
            ("MLX's operations", common.THIRD),
        ):
            series[name] = (colour, [medians[name] for medians in times])
            print(f"  {title:10}{name:38}{''.join(f'{value:9.2f}' for value in series[name][1])}")
        common.bars(axis, [f"{row} x {width}" for row, width in zip(rows, widths, strict=True)], series)
        axis.set(title=title, xlabel="rows x columns, float32", ylabel="milliseconds, less is better")
    common.save(figure, options.out, "softmax_rms_norm.png")


if __name__ == "__main__":
    main()
