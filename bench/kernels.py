"""The kernels by which the CPU's engines are measured, each with its inputs, its result in float64 and its cost.

The bodies are written as one writes them for a GPU, in the manner of MLX's own: one thread an element, a simdgroup or a
threadgroup a row, tiles in threadgroup memory. None is written for Kiln but in one point: where the inner loop is a sum
of products it says ``fma``. Metal contracts ``a * b + c`` by itself; Kiln computes what is written (docs/language.md
4.1), and the C++ that it is measured against is free to contract. n-body is in two math modes, with C++ for each: in
`fast` both take the root from the processor's estimate; in `safe`, as all others are, it is rounded correctly in both.

A problem knows nothing of engines, threads or clocks: bench/engines.py times it, tests/python/test_benchmarks.py runs
it at a small size, so that it cannot rot.

Rejected: bodies that are tuned until Kiln likes them. They would measure the tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import kiln
import numpy as np
from numpy.typing import NDArray

from bench import bodies

Array = NDArray[Any]


class Problem(NamedTuple):
    kernel: Any
    call: dict[str, Any]
    """Keywords of a call of ``kernel``."""
    by_hand: str
    """The function of kernels_by_hand.cpp: pointers of the inputs, of the outputs, then ``sizes``."""
    sizes: tuple[int, ...]
    reference: Callable[[], list[Array]]
    """The outputs, computed in float64."""
    error: Callable[[Array, Array], float]
    """How far an output is from its reference; at most 1 is right."""
    work: float
    """What a call moves in bytes, each array counted once, or computes in operations."""
    unit: str
    """GB/s or GFLOP/s, or a million of events each second for work that is neither."""


def _relative(limit: float) -> Callable[[Array, Array], float]:
    """Of the largest value."""

    def error(result: Array, reference: Array) -> float:
        return float(np.abs(result - reference).max() / np.abs(reference).max()) / limit

    return error


def _ulps(limit: float) -> Callable[[Array, Array], float]:
    def error(result: Array, reference: Array) -> float:
        ulp = np.spacing(np.abs(reference).astype(np.float32)).astype(np.float64)
        return float((np.abs(result - reference) / ulp).max()) / limit

    return error


def _share_that_differs(limit: float) -> Callable[[Array, Array], float]:
    def error(result: Array, reference: Array) -> float:
        return float((result != reference).mean()) / limit

    return error


def _aligned(array: Array) -> Array:
    """A copy that begins at a cache line, as allocators for vectors give it; NumPy's gives it where it happens to."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy: Array = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return _aligned(rng.standard_normal(shape, dtype=np.float32))


def _call(inputs: Sequence[Any], grid: tuple, threadgroup: tuple, shape: tuple, dtype: str = "float32", **others: Any):
    return {
        "inputs": list(inputs),
        "grid": grid,
        "threadgroup": threadgroup,
        "output_shapes": [shape],
        "output_dtypes": [dtype],
        **others,
    }


def _exp(rng: np.random.Generator, small: bool) -> Problem:
    x = _aligned(rng.uniform(-87, 88, 5000 if small else 1 << 22).astype(np.float32))
    return Problem(
        bodies.exp_kernel(kiln.metal_kernel),
        bodies.exp_call(x, x.dtype),
        "exp_of",
        (x.size,),
        lambda: [np.exp(x.astype(np.float64))],
        _ulps(4),
        2 * x.nbytes,
        "GB/s",
    )


def _grid_sample_arrays(rng: np.random.Generator, small: bool) -> tuple[Array, Array]:
    """Places spread evenly, some of them beyond the borders. The image is larger than the processor's caches."""
    x = _normal(rng, *((2, 20, 16, 64) if small else (1, 512, 512, 64)))
    grid = _aligned(rng.uniform(-1.1, 1.1, (2, 12, 8, 2) if small else (1, 128, 128, 2)).astype(np.float32))
    return x, grid


def _corners(x: Array, grid: Array):
    """Of each place its four corners: pixel, share, and the share's slopes by the place; in float64 but for the place,
    whose pixel a kernel chooses in float32."""
    _, height, width, _ = x.shape
    px = ((grid[..., 0] + np.float32(1)) * np.float32(width) - np.float32(1)) / np.float32(2)
    py = ((grid[..., 1] + np.float32(1)) * np.float32(height) - np.float32(1)) / np.float32(2)
    left, top = np.floor(px).astype(np.int64), np.floor(py).astype(np.int64)
    share_x, share_y = px - left, py - top
    image = np.arange(x.shape[0])[:, None, None]
    for row, by_row, slope_y in ((top, 1 - share_y, -1), (top + 1, share_y, 1)):
        for column, by_column, slope_x in ((left, 1 - share_x, -1), (left + 1, share_x, 1)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            pixel = (image * height + np.clip(row, 0, height - 1)) * width + np.clip(column, 0, width - 1)
            yield pixel, inside * by_row * by_column, inside * slope_x * by_row, inside * slope_y * by_column


def _grid_sample(rng: np.random.Generator, small: bool) -> Problem:
    x, grid = _grid_sample_arrays(rng, small)
    batch, height, width, channels = x.shape

    def reference() -> list[Array]:
        pixels = x.reshape(-1, channels)
        result = np.zeros((*grid.shape[:3], channels))
        for pixel, share, _, _ in _corners(x, grid):
            result += pixels[pixel] * share[..., None]
        return [result]

    places = grid.shape[1] * grid.shape[2]
    return Problem(
        bodies.forward_kernel(kiln.metal_kernel),
        bodies.forward_call(x, grid),
        "grid_sample",
        (batch, height, width, channels, places),
        reference,
        _relative(1e-5),
        # Four pixels read and one written for each place.
        batch * places * (5 * channels + 2) * 4,
        "GB/s",
    )


def _grid_sample_vjp(rng: np.random.Generator, small: bool) -> Problem:
    x, grid = _grid_sample_arrays(rng, small)
    batch, height, width, channels = x.shape
    cotangents = _normal(rng, *grid.shape[:3], channels)

    def reference() -> list[Array]:
        pixels = x.reshape(-1, channels)
        x_grad, slopes = np.zeros(pixels.shape), np.zeros(grid.shape)
        for pixel, share, slope_x, slope_y in _corners(x, grid):
            # Places in order of their pixels, so that those of one pixel are added up in one go.
            order = np.argsort(pixel, axis=None, kind="stable")
            sorted_pixels = pixel.ravel()[order]
            first = np.flatnonzero(np.diff(sorted_pixels, prepend=-1))
            parts = (cotangents * share[..., None]).reshape(-1, channels)[order]
            x_grad[sorted_pixels[first]] += np.add.reduceat(parts, first)
            products = (pixels[pixel].astype(np.float64) * cotangents).sum(axis=-1)
            slopes[..., 0] += products * slope_x * width / 2
            slopes[..., 1] += products * slope_y * height / 2
        return [x_grad.reshape(x.shape), slopes]

    places = batch * grid.shape[1] * grid.shape[2]
    return Problem(
        bodies.vjp_kernel(kiln.metal_kernel),
        bodies.vjp_call(x, grid, cotangents),
        "grid_sample_vjp",
        (batch, height, width, channels, grid.shape[1] * grid.shape[2]),
        reference,
        _relative(1e-5),
        4 * places * channels,
        "M atomics/s",
    )


SOFTMAX = """
    // A simdgroup a row.
    uint lane = thread_index_in_simdgroup, length = x_shape[1];
    const device float* row = x + thread_position_in_grid.y * length;
    device float* to = out + thread_position_in_grid.y * length;

    float largest = -INFINITY;
    for (uint i = lane; i < length; i += threads_per_simdgroup) largest = max(largest, row[i]);
    largest = simd_max(largest);

    float sum = 0;
    for (uint i = lane; i < length; i += threads_per_simdgroup) {
        float value = exp(row[i] - largest);
        to[i] = value;
        sum += value;
    }
    float factor = 1 / simd_sum(sum);
    for (uint i = lane; i < length; i += threads_per_simdgroup) to[i] *= factor;
"""


def _softmax(rng: np.random.Generator, small: bool) -> Problem:
    x = _normal(rng, *((9, 100) if small else (3072, 1024)))
    x *= 4

    def reference() -> list[Array]:
        powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        return [powers / powers.sum(axis=1, keepdims=True)]

    return Problem(
        kiln.metal_kernel("softmax", ["x"], ["out"], SOFTMAX),
        _call([x], (32, x.shape[0], 1), (32, 8, 1), x.shape),
        "softmax",
        x.shape,
        reference,
        _relative(1e-5),
        2 * x.nbytes,
        "GB/s",
    )


RMS_NORM = """
    // A threadgroup a row, as MLX's rms_single_row: four elements a thread, sums of simdgroups in threadgroup memory.
    constexpr uint reads = 4;
    threadgroup float sums[32];
    threadgroup float factor[1];
    uint length = x_shape[1];
    uint row = threadgroup_position_in_grid.x * length;
    uint first = thread_position_in_threadgroup.x * reads;

    float sum = 0;
    for (uint i = 0; i < reads; ++i) {
        float value = first + i < length ? x[row + first + i] : 0;
        sum = fma(value, value, sum);
    }
    sum = simd_sum(sum);
    if (simdgroup_index_in_threadgroup == 0) sums[thread_index_in_simdgroup] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index_in_simdgroup == 0) sums[simdgroup_index_in_threadgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index_in_threadgroup == 0) {
        sum = simd_sum(sums[thread_index_in_simdgroup]);
        if (thread_index_in_simdgroup == 0) factor[0] = metal::precise::rsqrt(sum / length + eps);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < reads; ++i)
        if (first + i < length) out[row + first + i] = weight[first + i] * (x[row + first + i] * factor[0]);
"""


def _rms_norm(rng: np.random.Generator, small: bool) -> Problem:
    x = _normal(rng, *((9, 200) if small else (4096, 1024)))
    weight = _normal(rng, x.shape[1])

    def reference() -> list[Array]:
        exact = x.astype(np.float64)
        return [weight * exact / np.sqrt((exact * exact).mean(axis=1, keepdims=True) + 1e-5)]

    threads = -(-x.shape[1] // 128) * 32
    return Problem(
        kiln.metal_kernel("rms_norm", ["x", "weight", "eps"], ["out"], RMS_NORM),
        _call([x, weight, np.float32(1e-5)], (threads * x.shape[0], 1, 1), (threads, 1, 1), x.shape),
        "rms_norm",
        x.shape,
        reference,
        _relative(1e-5),
        2 * x.nbytes,
        "GB/s",
    )


REDUCTION = """
    // Sixteen elements a thread, then a tree.
    constexpr uint threads = 256, reads = 16;
    threadgroup float sums[threads];
    uint thread_index = thread_position_in_threadgroup.x;
    const device float* from = x + threadgroup_position_in_grid.x * threads * reads + thread_index;
    float sum = 0;
    for (uint i = 0; i < reads; ++i) sum += from[i * threads];
    sums[thread_index] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = threads / 2; step > 0; step /= 2) {
        if (thread_index < step) sums[thread_index] += sums[thread_index + step];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (thread_index == 0) out[threadgroup_position_in_grid.x] = sums[0];
"""


def _reduction(rng: np.random.Generator, small: bool) -> Problem:
    blocks = 3 if small else 2048
    x = _normal(rng, blocks, 4096)
    return Problem(
        kiln.metal_kernel("reduction", ["x"], ["out"], REDUCTION),
        _call([x], (blocks * 256, 1, 1), (256, 1, 1), (blocks,)),
        "reduction",
        (blocks,),
        lambda: [x.astype(np.float64).sum(axis=1)],
        _relative(1e-5),
        x.nbytes,
        "GB/s",
    )


SCAN = """
    // A threadgroup a row, an element a thread; after each step a thread has the sum of twice as many elements.
    threadgroup float sums[256];
    uint element = thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
    sums[thread_index] = x[element];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = 1; step < 256; step *= 2) {
        float before = thread_index >= step ? sums[thread_index - step] : 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sums[thread_index] += before;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    out[element] = sums[thread_index];
"""


def _scan(rng: np.random.Generator, small: bool) -> Problem:
    x = _normal(rng, 5 if small else 16384, 256)
    return Problem(
        kiln.metal_kernel("scan", ["x"], ["out"], SCAN),
        _call([x], (x.size, 1, 1), (256, 1, 1), x.shape),
        "scan",
        (x.shape[0],),
        lambda: [x.astype(np.float64).cumsum(axis=1)],
        _relative(1e-5),
        2 * x.nbytes,
        "GB/s",
    )


MANDELBROT = """
    uint2 place = thread_position_in_grid.xy;
    float cx = -2.2f + 3.2f * place.x / threads_per_grid.x;
    float cy = -1.2f + 2.4f * place.y / threads_per_grid.y;
    float x = 0, y = 0;
    int step = 0;
    for (; step < 200; ++step) {
        float xx = x * x, yy = y * y;
        if (xx + yy > 4) break;
        y = fma(2 * x, y, cy);
        x = xx - yy + cx;
    }
    out[place.y * threads_per_grid.x + place.x] = step;
"""


def _mandelbrot(rng: np.random.Generator, small: bool) -> Problem:
    height, width = (20, 40) if small else (384, 512)

    def steps() -> Array:
        cx = np.float32(-2.2) + np.float32(3.2) * np.arange(width, dtype=np.float32) / np.float32(width)
        cy = np.float32(-1.2) + np.float32(2.4) * np.arange(height, dtype=np.float32) / np.float32(height)
        c = cx.astype(np.float64) + 1j * cy.astype(np.float64)[:, None]
        z, result, live = np.zeros_like(c), np.zeros(c.shape, np.int32), np.ones(c.shape, bool)
        for _ in range(200):
            live &= z.real * z.real + z.imag * z.imag <= 4
            result += live
            z = np.where(live, z * z + c, z)
        return result

    return Problem(
        kiln.metal_kernel("mandelbrot", [], ["out"], MANDELBROT),
        _call([], (width, height, 1), (32, 8, 1), (height, width), "int32"),
        "mandelbrot",
        (height, width),
        lambda: [steps()],
        # Orbits near the border of the set are chaotic.
        _share_that_differs(0.01),
        # Seven operations a step, two of them in an fma.
        7.0 * int(steps().sum()),
        "GFLOP/s",
    )


MATRIX_PRODUCT = """
    // A threadgroup makes 64 rows by 64 columns of the product, a thread 8 rows of one column; tiles of the factors are
    // in threadgroup memory, 8 deep.
    constexpr uint rows = 64, columns = 64, depth = 8, each = 8;
    threadgroup float a_tile[rows * depth];
    threadgroup float b_tile[depth * columns];
    uint inner = a_shape[1], width = b_shape[1];
    uint thread_index = thread_position_in_threadgroup.x;
    uint column = thread_index % columns, first_row = thread_index / columns * each;
    const device float* a_from = a + threadgroup_position_in_grid.y * rows * inner;
    const device float* b_from = b + threadgroup_position_in_grid.x * columns;

    float sums[each] = {0};
    for (uint k = 0; k < inner; k += depth) {
        a_tile[thread_index] = a_from[thread_index / depth * inner + k + thread_index % depth];
        b_tile[thread_index] = b_from[(k + thread_index / columns) * width + column];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < depth; ++i) {
            float factor = b_tile[i * columns + column];
            for (uint row = 0; row < each; ++row)
                sums[row] = fma(a_tile[(first_row + row) * depth + i], factor, sums[row]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    device float* to = out + (threadgroup_position_in_grid.y * rows + first_row) * width +
                       threadgroup_position_in_grid.x * columns + column;
    for (uint row = 0; row < each; ++row) to[row * width] = sums[row];
"""


def _matrix_product(rng: np.random.Generator, small: bool) -> Problem:
    height, inner, width = (128, 64, 192) if small else (512, 512, 512)
    a, b = _normal(rng, height, inner), _normal(rng, inner, width)
    return Problem(
        kiln.metal_kernel("matrix_product", ["a", "b"], ["out"], MATRIX_PRODUCT),
        _call([a, b], (width // 64 * 512, height // 64, 1), (512, 1, 1), (height, width)),
        "matrix_product",
        (height, inner, width),
        lambda: [a.astype(np.float64) @ b.astype(np.float64)],
        _relative(1e-5),
        2.0 * height * inner * width,
        "GFLOP/s",
    )


SIMDGROUP_PRODUCT = """
    // A threadgroup of four simdgroups makes 64 rows by 64 columns of the product, a simdgroup 32 by 32, as matrices of
    // 8 by 8 with sums in float; tiles of the factors are in threadgroup memory, 32 deep. Rows of tiles are longer than
    // what they hold, so that those below one another are in different banks.
    constexpr uint rows = 64, columns = 64, depth = 32, each = 32, threads = 128;
    constexpr uint a_length = depth + 8, b_length = columns + 8;
    threadgroup half a_tile[rows * a_length];
    threadgroup half b_tile[depth * b_length];
    uint inner = a_shape[1], width = b_shape[1];
    uint thread_index = thread_index_in_threadgroup;
    uint top = simdgroup_index_in_threadgroup / 2 * each, left = simdgroup_index_in_threadgroup % 2 * each;
    const device half* a_from = a + threadgroup_position_in_grid.y * rows * inner;
    const device half* b_from = b + threadgroup_position_in_grid.x * columns;

    simdgroup_matrix<float, 8, 8> sums[4][4];
    for (uint i = 0; i < 4; ++i)
        for (uint j = 0; j < 4; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k = 0; k < inner; k += depth) {
        for (uint i = thread_index; i < rows * depth; i += threads)
            a_tile[i / depth * a_length + i % depth] = a_from[i / depth * inner + k + i % depth];
        for (uint i = thread_index; i < depth * columns; i += threads)
            b_tile[i / columns * b_length + i % columns] = b_from[(k + i / columns) * width + i % columns];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint step = 0; step < depth; step += 8) {
            simdgroup_matrix<half, 8, 8> a_part[4], b_part[4];
            for (uint i = 0; i < 4; ++i) {
                simdgroup_load(a_part[i], a_tile + (top + 8 * i) * a_length + step, a_length);
                simdgroup_load(b_part[i], b_tile + step * b_length + left + 8 * i, b_length);
            }
            for (uint i = 0; i < 4; ++i)
                for (uint j = 0; j < 4; ++j)
                    simdgroup_multiply_accumulate(sums[i][j], a_part[i], b_part[j], sums[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    device float* to = out + (threadgroup_position_in_grid.y * rows + top) * width +
                       threadgroup_position_in_grid.x * columns + left;
    for (uint i = 0; i < 4; ++i)
        for (uint j = 0; j < 4; ++j) simdgroup_store(sums[i][j], to + 8 * i * width + 8 * j, width);
"""


def simdgroup_product_call(a: Any, b: Any) -> dict[str, Any]:
    """Of matrices whose extents are multiples of 64, the inner one of 32."""
    height, width = a.shape[0], b.shape[1]
    return _call([a, b], (width // 64 * 128, height // 64, 1), (128, 1, 1), (height, width))


def _simdgroup_product(rng: np.random.Generator, small: bool) -> Problem:
    height, inner, width = (128, 64, 192) if small else (512, 512, 512)
    a = _aligned(rng.standard_normal((height, inner)).astype(np.float16))
    b = _aligned(rng.standard_normal((inner, width)).astype(np.float16))
    return Problem(
        kiln.metal_kernel("simdgroup_product", ["a", "b"], ["out"], SIMDGROUP_PRODUCT),
        simdgroup_product_call(a, b),
        "half_matrix_product",
        (height, inner, width),
        lambda: [a.astype(np.float64) @ b.astype(np.float64)],
        _relative(1e-5),
        2.0 * height * inner * width,
        "GFLOP/s",
    )


QUANTIZED = """
    // A simdgroup makes four elements of the product, as MLX's qmv: a lane has eight elements of the vector at a time.
    constexpr int results = 4;
    uint words = weights_shape[1], groups = scales_shape[1], lane = thread_index_in_simdgroup;
    uint first = thread_position_in_grid.y * results;
    float sums[results] = {0};
    for (uint word = lane; word < words; word += threads_per_simdgroup) {
        float values[8], total = 0;
        for (int i = 0; i < 8; ++i) {
            values[i] = x[8 * word + i];
            total += values[i];
        }
        for (int r = 0; r < results; ++r) {
            uint row = first + r;
            uint packed = weights[row * words + word];
            float dot = 0;
            for (int i = 0; i < 8; ++i) dot = fma(float((packed >> (4 * i)) & 15), values[i], dot);
            uint group = row * groups + word / 8;
            sums[r] = fma(scales[group], dot, fma(biases[group], total, sums[r]));
        }
    }
    for (int r = 0; r < results; ++r) {
        float sum = simd_sum(sums[r]);
        if (lane == 0) out[first + r] = sum;
    }
"""


def _quantized(rng: np.random.Generator, small: bool) -> Problem:
    rows, length = (24, 512) if small else (4096, 4096)
    weights = _aligned(rng.integers(0, 1 << 32, (rows, length // 8), dtype=np.uint32))
    scales, biases = _normal(rng, rows, length // 64), _normal(rng, rows, length // 64)
    x = _normal(rng, length)

    def reference() -> list[Array]:
        values = ((weights[..., None] >> np.arange(0, 32, 4, dtype=np.uint32)) & 15).reshape(rows, length // 64, 64)
        return [((values * scales.astype(np.float64)[..., None] + biases[..., None]).reshape(rows, length) @ x)]

    return Problem(
        kiln.metal_kernel("quantized", ["x", "weights", "scales", "biases"], ["out"], QUANTIZED),
        _call([x, weights, scales, biases], (32, rows // 4, 1), (32, 2, 1), (rows,)),
        "quantized",
        (rows, length),
        reference,
        _relative(1e-5),
        2.0 * rows * length,
        "GFLOP/s",
    )


HISTOGRAM = """
    atomic_fetch_add_explicit(&out[x[thread_position_in_grid.x]], 1, memory_order_relaxed);
"""


def _histogram(rng: np.random.Generator, small: bool) -> Problem:
    x = _aligned(rng.integers(0, 256, 5000 if small else 1 << 20, dtype=np.uint8))
    return Problem(
        kiln.metal_kernel("histogram", ["x"], ["out"], HISTOGRAM, atomic_outputs=True),
        _call([x], (x.size, 1, 1), (256, 1, 1), (256,), "uint32", init_value=0),
        "histogram",
        (x.size,),
        lambda: [np.bincount(x, minlength=256)],
        _share_that_differs(1e-9),
        x.size,
        "M atomics/s",
    )


N_BODY = """
    // As in GPU Gems 3, chapter 31: all threads of a threadgroup read a tile of bodies, then each goes through it.
    threadgroup float4 tile[256];
    const device float4* bodies = (const device float4*)positions;
    uint body = thread_position_in_grid.x, thread_index = thread_position_in_threadgroup.x;
    float3 here = bodies[body].xyz, sum = 0;
    for (uint first = 0; first < threads_per_grid.x; first += 256) {
        tile[thread_index] = bodies[first + thread_index];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < 256; ++i) {
            float3 way = tile[i].xyz - here;
            float squared = fma(way.x, way.x, fma(way.y, way.y, fma(way.z, way.z, 0.01f)));
            float inverse = rsqrt(squared);
            float pull = tile[i].w * inverse * inverse * inverse;
            sum = fma(way, float3(pull), sum);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    ((device float4*)out)[body] = float4(sum, 0);
"""


def _n_body(rng: np.random.Generator, small: bool, math_mode: str = "fast", by_hand: str = "n_body") -> Problem:
    positions = _normal(rng, 512 if small else 4096, 4)
    positions[:, 3] = rng.uniform(0.5, 1.5, len(positions))

    def reference() -> list[Array]:
        exact = positions.astype(np.float64)
        result = np.zeros(positions.shape)
        for some in np.array_split(np.arange(len(exact)), 16):
            way = exact[None, :, :3] - exact[some, None, :3]
            pull = exact[:, 3] / ((way * way).sum(axis=2) + np.float32(0.01)) ** 1.5
            result[some, :3] = (way * pull[..., None]).sum(axis=1)
        return [result]

    return Problem(
        kiln.metal_kernel("n_body", ["positions"], ["out"], N_BODY, compile_options={"math_mode": math_mode}),
        _call([positions], (len(positions), 1, 1), (256, 1, 1), positions.shape),
        by_hand,
        (len(positions),),
        reference,
        _relative(1e-4),
        # As they are counted for n-body codes, the root as one.
        19.0 * len(positions) ** 2,
        "GFLOP/s",
    )


STENCIL = """
    // `x` is a part of a larger array, with a border on every side of what is computed.
    uint3 place = thread_position_in_grid;
    int64_t plane = x_strides[0], line = x_strides[1], next = x_strides[2];
    const device float* from = x + (place.z + 1) * plane + (place.y + 1) * line + (place.x + 1) * next;
    float around = from[-plane] + from[plane] + from[-line] + from[line] + from[-next] + from[next];
    out[(place.z * threads_per_grid.y + place.y) * threads_per_grid.x + place.x] =
        fma(-6.0f, from[0], around) * 0.1f + from[0];
"""


def _stencil(rng: np.random.Generator, small: bool) -> Problem:
    depth, height, width = (5, 7, 70) if small else (128, 128, 128)
    whole = _normal(rng, depth + 4, height + 6, width + 10)
    x = whole[1 : depth + 3, 2 : height + 4, 3 : width + 5]

    def reference() -> list[Array]:
        exact = x.astype(np.float64)
        here = exact[1:-1, 1:-1, 1:-1]
        around = (
            (exact[:-2, 1:-1, 1:-1] + exact[2:, 1:-1, 1:-1])
            + (exact[1:-1, :-2, 1:-1] + exact[1:-1, 2:, 1:-1])
            + (exact[1:-1, 1:-1, :-2] + exact[1:-1, 1:-1, 2:])
        )
        return [here + 0.1 * (around - 6 * here)]

    return Problem(
        kiln.metal_kernel("stencil", ["x"], ["out"], STENCIL, ensure_row_contiguous=False),
        _call([x], (width, height, depth), (32, 8, 1), (depth, height, width)),
        "stencil",
        (depth, height, width, *(stride // 4 for stride in x.strides)),
        reference,
        _relative(1e-5),
        x.size * 4 + depth * height * width * 4,
        "GB/s",
    )


PROBLEMS: dict[str, Callable[[np.random.Generator, bool], Problem]] = {
    "exp": _exp,
    "grid sample": _grid_sample,
    "grid sample vjp": _grid_sample_vjp,
    "softmax": _softmax,
    "RMS norm": _rms_norm,
    "tree reduction": _reduction,
    "scan": _scan,
    "Mandelbrot": _mandelbrot,
    "matrix product": _matrix_product,
    "half matrix product": _simdgroup_product,
    "4-bit matrix-vector": _quantized,
    "histogram": _histogram,
    "n-body": _n_body,
    "n-body, safe": partial(_n_body, math_mode="safe", by_hand="n_body_rounded"),
    "3-D stencil": _stencil,
}


def problem(name: str, small: bool = False) -> Problem:
    """The same arrays in every process."""
    return PROBLEMS[name](np.random.default_rng(1), small)
