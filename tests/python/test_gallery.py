"""The programs of the examples gallery: what they compute, and that each draws its picture.

References are NumPy's, in double precision or, where Metal promises arithmetic as written (docs/language.md 4.1), in the
same precision and order, bit for bit.
"""

import ast
import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("matplotlib")
import matplotlib.image
import mlx.core as mx
from PIL import Image
from PIL.GifImagePlugin import GifImageFile

from examples.gallery import (
    differentiable_renderer,
    gaussian_blur,
    histogram,
    mandelbrot,
    n_body,
    quantized_product,
    reaction_diffusion,
    softmax_rms_norm,
    sorting,
)
from examples.gallery.__main__ import NEEDED, PROGRAMS
from examples.gallery.__main__ import main as run_gallery

GALLERY = Path(__file__).parent.parent.parent / "examples" / "gallery"

# Rounding to a type is off by at most this share.
ROUNDING = {mx.float32: 2.0**-24, mx.float16: 2.0**-11, mx.bfloat16: 2.0**-8}
TYPES = pytest.mark.parametrize("dtype", list(ROUNDING), ids=lambda dtype: str(dtype).rpartition(".")[2])


def doubles(array):
    return np.array(array.astype(mx.float32), dtype=np.float64)


# ---- Mandelbrot


def mandelbrot_reference(columns, rows, centre, width, limit):
    """Each step in single precision, in the kernel's order; the fraction in double."""
    spacing = np.float32(width / columns)
    x = (np.arange(columns, dtype=np.float32) + np.float32(0.5) - np.float32(columns / 2)) * spacing
    y = -(np.arange(rows, dtype=np.float32) + np.float32(0.5) - np.float32(rows / 2)) * spacing
    c_x, c_y = np.broadcast_arrays(np.float32(centre.real) + x, (np.float32(centre.imag) + y)[:, None])
    z_x, z_y = np.zeros_like(c_x), np.zeros_like(c_y)
    steps = np.full(c_x.shape, float(limit))
    running = np.ones(c_x.shape, bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for n in range(limit):
            size = z_x * z_x + z_y * z_y
            escaped = running & (size > 65536)
            steps[escaped] = np.maximum(n - np.log2(np.log2(size[escaped].astype(np.float64)) / 16), 0)
            running &= ~escaped
            z_x, z_y = z_x * z_x - z_y * z_y + c_x, np.float32(2) * z_x * z_y + c_y
    return steps


def test_mandelbrot_escapes_where_single_precision_does():
    limit = 200
    steps, picture = mandelbrot.mandelbrot(48, 36, -0.6 + 0j, 3.2, limit)
    expected = mandelbrot_reference(48, 36, -0.6 + 0j, 3.2, limit)
    # One rounding of a number below 256, and log2, of values below 8, within a few units in its last place.
    np.testing.assert_allclose(steps, expected, rtol=0, atol=2.0**-17 + 8 * 2.0**-21)
    assert 0.1 < np.mean(steps == limit) < 0.5

    inside = expected == limit
    phase = 0.55 * np.log2(expected + 1)[..., None] + np.array([1.1, 1.2, 1.35])
    colours = np.where(inside[..., None], 0, 255 * (0.5 - 0.5 * np.cos(np.pi * phase)))
    assert abs(picture - colours).max() <= 0.5 + 0.01


def test_mandelbrot_samples_are_the_pixels_of_a_finer_picture():
    coarse, _ = mandelbrot.mandelbrot(17, 11, -0.745 + 0.11j, 0.01, 300, samples=2)
    fine, _ = mandelbrot.mandelbrot(34, 22, -0.745 + 0.11j, 0.01, 300)
    sums = fine[::2, ::2] + fine[::2, 1::2] + fine[1::2, ::2] + fine[1::2, 1::2]
    np.testing.assert_array_equal(coarse, sums / 4)


# ---- Reaction and diffusion


def gray_scott_reference(u, v, steps, feed, kill):
    """In the arrays' own precision, in the kernel's order."""
    kind = u.dtype.type
    both = kind(np.float32(feed) + np.float32(kill))

    def laplacian(a):
        def there(rows, columns):
            return np.roll(a, (-rows, -columns), (0, 1))

        edges = there(0, -1) + there(0, 1) + (there(-1, 0) + there(1, 0))
        corners = there(-1, -1) + there(-1, 1) + (there(1, -1) + there(1, 1))
        return kind(0.2) * edges + kind(0.05) * corners - a

    for _ in range(steps):
        reacting = u * v * v
        u_change = laplacian(u) - reacting + kind(feed) * (kind(1) - u)
        v_change = kind(0.5) * laplacian(v) + reacting - both * v
        u, v = u + u_change, v + v_change
    return u, v


@TYPES
def test_reaction_diffusion_has_the_bits_of_the_same_sums(dtype):
    u, v = reaction_diffusion.seeded(37, 52, seeds=3, dtype=dtype)
    results = reaction_diffusion.simulate(u, v, 12, 0.0545, 0.062)
    kind = {mx.float32: np.float32, mx.float16: np.float16, mx.bfloat16: ml_dtypes.bfloat16}[dtype]
    first_u, first_v = (np.array(array.astype(mx.float32)).astype(kind) for array in (u, v))
    expected = gray_scott_reference(first_u, first_v, 12, 0.0545, 0.062)
    for result, reference in zip(results, expected, strict=True):
        assert result.dtype == dtype
        np.testing.assert_array_equal(doubles(result), reference.astype(np.float64))


def test_seeds_are_discs():
    u, v = (np.array(array) for array in reaction_diffusion.seeded(56, 84, seeds=1))
    inside = v != 0
    assert np.all(v[inside] == 0.25) and np.all(u[inside] == 0.5) and np.all(u[~inside] == 1)
    # A disc of radius 2, which may continue at the opposite edges: no two of its cells are further apart.
    cells = np.argwhere(inside)
    away = abs(cells[:, None] - cells)
    away = np.minimum(away, np.array(v.shape) - away)
    assert 9 <= len(cells) <= 16 and np.hypot(*np.moveaxis(away, -1, 0)).max() < 4


def test_reaction_diffusion_is_lazy():
    u, v = reaction_diffusion.seeded(16, 16, seeds=2)
    launches = len(reaction_diffusion.kernel.history)
    assert launches < 900, "the history holds 1,000 launches"
    results = reaction_diffusion.simulate(u, v, 5, 0.05, 0.06)
    assert len(reaction_diffusion.kernel.history) == launches
    mx.eval(*results)
    assert len(reaction_diffusion.kernel.history) == launches + 5


def test_a_film_has_the_frames(tmp_path):
    frames = [np.full((12, 16), value, np.float32) for value in (0, 0.5, 1)]
    reaction_diffusion.film(frames, tmp_path / "new" / "film.gif", milliseconds=50)
    with Image.open(tmp_path / "new" / "film.gif") as film:
        assert isinstance(film, GifImageFile)
        assert (film.n_frames, film.size, film.info["loop"]) == (3, (16, 12), 0)
        brightness = []
        for frame in range(3):
            film.seek(frame)
            brightness.append(np.asarray(film.convert("RGB"), dtype=float).mean())
    assert brightness == sorted(brightness) and len(set(brightness)) == 3


# ---- n bodies


def field_reference(bodies, softening):
    """Of doubles: the field, and the sum of the sizes of what is added up for it."""
    place, mass = bodies[:, :3].astype(np.float64), bodies[:, 3].astype(np.float64)
    way = place[None] - place[:, None]
    inverse = 1 / np.sqrt(np.square(way).sum(axis=-1) + softening**2)
    pulls = (mass[None] * inverse**3)[..., None] * way
    potentials = -mass[None] * inverse
    np.fill_diagonal(potentials, 0)
    field = np.concatenate([pulls.sum(axis=1), potentials.sum(axis=1)[:, None]], axis=1)
    sizes = np.concatenate(
        [abs(pulls).sum(axis=1), abs(potentials).sum(axis=1)[:, None] + mass[:, None] / softening], axis=1
    )
    return field, sizes


@pytest.mark.parametrize("count", [2, 3, 128, 129, 300])
def test_n_body_field(count):
    generator = np.random.default_rng(count)
    bodies = generator.normal(size=(count, 4)).astype(np.float32)
    bodies[:, 3] = generator.uniform(0.1, 1, count)
    field = n_body.field_of(bodies, 0.125)
    expected, sizes = field_reference(bodies, 0.125)
    # A sum of count terms, each of which comes from some ten roundings.
    np.testing.assert_array_less(abs(field - expected), (count + 20) * 2.0**-24 * sizes)
    np.testing.assert_array_equal(n_body.field_of(bodies, 0.125, n_body.without_tiles), field)


def test_n_body_follows_a_circle():
    # Two bodies of mass 1 at a distance of 2; softened, so the period is not Kepler's.
    bodies = np.array([[1, 0, 0, 1], [-1, 0, 0, 1]], np.float32)
    speed = np.sqrt(2 / (4 + 0.01) ** 1.5)
    velocities = np.array([[0, speed, 0], [0, -speed, 0]], np.float32)
    period = 2 * np.pi / speed
    before = bodies.copy(), velocities.copy()
    run = n_body.simulate(bodies, velocities, frames=3, steps=200, step=period / 400, softening=0.1)
    np.testing.assert_array_equal(bodies, before[0])
    np.testing.assert_array_equal(velocities, before[1])
    np.testing.assert_array_equal(run.positions[0], bodies[:, :3])
    # Leapfrog's phase is off by (2 pi / 400)^2 / 24 of the angle, which is 6.3 at the end.
    np.testing.assert_allclose(run.positions[1], -bodies[:, :3], atol=1e-3)
    np.testing.assert_allclose(run.positions[2], bodies[:, :3], atol=1e-3)
    np.testing.assert_allclose(run.energies, speed**2 - 1 / np.sqrt(4.01), rtol=1e-4)


def test_n_body_keeps_energy():
    run = n_body.simulate(*n_body.two_discs(200), frames=4, steps=10, step=0.02)
    np.testing.assert_allclose(run.energies, run.energies[0], rtol=1e-3)


# ---- Softmax and RMS norm


@TYPES
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (2, 31), (5, 32), (3, 33), (4, 1000), (2, 5000)])
def test_softmax(shape, dtype):
    x = (4 * mx.random.normal(shape, key=mx.random.key(shape[1]))).astype(dtype)
    exact = softmax_rms_norm.exact_softmax(doubles(x))
    # Exponents are below 32 and off by half a unit; then an exponential, a sum of positive numbers and a product.
    accuracy = ROUNDING[dtype] + 2.0**-19 + shape[1] / 32 * 2.0**-24
    # The least half numbers are coarser than their share.
    np.testing.assert_allclose(doubles(softmax_rms_norm.softmax(x)), exact, rtol=accuracy, atol=2.0**-25)
    assert softmax_rms_norm.softmax(x).dtype == dtype


def test_softmax_of_infinite_and_of_large_values():
    x = np.zeros((3, 40), np.float32)
    x[0, 7] = 3e38
    x[1, :] = -np.inf
    x[1, 3:5] = -1e30
    x[2, :] = np.finfo(np.float32).max
    expected = np.zeros((3, 40))
    expected[0, 7] = 1
    expected[1, 3:5] = 0.5
    expected[2, :] = 1 / 40
    np.testing.assert_allclose(np.array(softmax_rms_norm.softmax(mx.array(x))), expected, rtol=2.0**-22)


@TYPES
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (2, 31), (5, 32), (3, 33), (4, 1000), (2, 5000)])
def test_rms_norm(shape, dtype):
    x = mx.random.normal(shape, key=mx.random.key(shape[1])).astype(dtype)
    weight = mx.random.uniform(0.5, 2, (shape[1],), key=mx.random.key(1)).astype(dtype)
    exact = softmax_rms_norm.exact_rms_norm(doubles(x), doubles(weight), 1e-5)
    # Rounded before the product with the weight and after it.
    accuracy = 2.01 * ROUNDING[dtype] + (8 + shape[1] / 32) * 2.0**-24
    result = softmax_rms_norm.rms_norm(x, weight, 1e-5)
    np.testing.assert_allclose(doubles(result), exact, rtol=accuracy, atol=2.0**-25)
    assert result.dtype == dtype


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16])
def test_softmax_and_rms_norm_are_mlxs(dtype):
    x = mx.random.normal((6, 700), key=mx.random.key(1)).astype(dtype)
    weight = mx.random.normal((700,), key=mx.random.key(2)).astype(dtype)
    bound = 8 * ROUNDING[dtype] + 2.0**-18
    theirs = mx.softmax(x, axis=-1, precise=True)
    np.testing.assert_allclose(doubles(softmax_rms_norm.softmax(x)), doubles(theirs), rtol=bound, atol=bound / 700)
    theirs = mx.fast.rms_norm(x, weight, 1e-5)
    np.testing.assert_allclose(doubles(softmax_rms_norm.rms_norm(x, weight, 1e-5)), doubles(theirs), rtol=bound)


# ---- The product with weights of four bits


@pytest.mark.parametrize("group_size", [32, 64, 128])
def test_weights_are_unpacked_as_mlx_does(group_size):
    packed = mx.quantize(mx.random.normal((6, 256), key=mx.random.key(3)), group_size=group_size, bits=4)
    theirs = doubles(mx.dequantize(*packed, group_size=group_size, bits=4))
    ours = quantized_product.unpacked(*packed, group_size)
    # A product and a sum that may each be rounded, of numbers below 16.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=16 * 2.0**-24)


@TYPES
@pytest.mark.parametrize(
    ("rows", "features", "depth", "group_size"), [(1, 1, 32, 32), (1, 10, 256, 64), (3, 7, 512, 128), (11, 33, 320, 64)]
)
def test_quantized_product(rows, features, depth, group_size, dtype):
    weights = mx.random.normal((features, depth), key=mx.random.key(1)).astype(dtype)
    x = mx.random.normal((rows, depth), key=mx.random.key(2)).astype(dtype)
    packed = mx.quantize(weights, group_size=group_size, bits=4)
    result = quantized_product.quantized_product(x, *packed, group_size)
    assert (result.dtype, result.shape) == (dtype, (rows, features))

    meant = quantized_product.unpacked(*packed, group_size)
    exact = doubles(x) @ meant.T
    scale, bias = (abs(np.repeat(doubles(a), group_size, axis=1)) for a in packed[1:])
    # An unpacked weight is rounded twice, a product once, and a thread adds depth / 32 of them, then 5 times two sums.
    sizes = abs(doubles(x)) @ (15 * scale + bias).T
    bound = ROUNDING[dtype] * abs(exact) + (depth / 32 + 8) * 2.0**-24 * sizes
    assert np.all(abs(doubles(result) - exact) <= bound)


# ---- The blur


def blur_rows_reference(image, weights):
    """In the image's own precision, in the kernel's order."""
    radius = len(weights) // 2
    padded = np.pad(image, ((0, 0), (radius, radius), (0, 0)), mode="edge")
    sums = np.zeros(image.shape, image.dtype)
    for i, weight in enumerate(weights):
        sums = sums + image.dtype.type(weight) * padded[:, i : i + image.shape[1]]
    return sums


VIEWS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.transpose(1, 0, 2),
    "mirrored": lambda a: a[::-1, ::-1],
    "every third": lambda a: a[1::2, ::3, ::2],
    "one row again and again": lambda a: np.broadcast_to(a[:1], (9, *a.shape[1:])),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("columns", [1, 5, 128, 200])
def test_blur_of_rows_has_the_bits_of_the_same_sums(columns, view):
    image = view(np.random.default_rng(1).uniform(size=(7, columns, 3)).astype(np.float32))
    weights = gaussian_blur.gaussian(1.5)
    np.testing.assert_array_equal(gaussian_blur.blur_rows(image, weights), blur_rows_reference(image, weights))


def test_blur():
    image = np.random.default_rng(2).uniform(size=(41, 150, 3)).astype(np.float32)
    weights = gaussian_blur.gaussian(2.3).astype(np.float64)
    assert len(weights) == 15 and weights.sum() == pytest.approx(1, abs=15 * 2.0**-25)
    exact = blur_rows_reference(image.astype(np.float64), weights).transpose(1, 0, 2)
    exact = blur_rows_reference(exact, weights).transpose(1, 0, 2)
    # Two sums of 15 positive products, of a total below 1.
    np.testing.assert_allclose(gaussian_blur.blur(image, 2.3), exact, rtol=0, atol=2 * 16 * 2.0**-24)


def test_a_point_becomes_a_gaussian():
    image = np.zeros((21, 23, 1), np.float32)
    image[10, 11] = 1
    blurred = gaussian_blur.blur(image, 2)[..., 0]
    weights = gaussian_blur.gaussian(2)
    expected = np.zeros_like(blurred)
    expected[4:17, 5:18] = weights[:, None] * weights[None]
    np.testing.assert_array_equal(blurred, expected)


# ---- The histogram


@pytest.mark.parametrize("count", [histogram.histogram, histogram.histogram_direct])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1000, 1), (4099, 3), (20000, 4)])
def test_histogram_is_numpys(shape, count):
    generator = np.random.default_rng(shape[0])
    # Most values fall into few bins, the others anywhere.
    values = np.where(generator.uniform(size=shape) < 0.7, 255, generator.integers(0, 256, shape)).astype(np.uint8)
    counts = count(values)
    assert counts.dtype == np.uint32
    edges = np.arange(257)
    np.testing.assert_array_equal(counts, [np.histogram(values[:, channel], edges)[0] for channel in range(shape[1])])


def test_equalized_values_are_spread_evenly():
    generator = np.random.default_rng(5)
    values = np.clip(generator.normal(60, 12, (50000, 1)), 0, 255).astype(np.uint8)
    spread = histogram.equalized(values, histogram.histogram(values))
    order = np.argsort(values[:, 0], kind="stable")
    assert np.all(np.diff(spread[order, 0].astype(int)) >= 0)
    shares = np.searchsorted(np.sort(spread[:, 0]), np.arange(256), side="right") / len(spread)
    # A bin cannot be parted, and the fullest holds 1 / (12 sqrt(2 pi)) of the values.
    assert abs(shares - np.arange(1, 257) / 256).max() < 0.04


# ---- Sorting


@pytest.mark.parametrize("count", [1, 2, 7, 15, 16, 17, 1023, 1024, 1025, 2048, 5000, 9999])
def test_sort(count):
    values = np.random.default_rng(count).integers(-1000, 1000, count).astype(np.int32)
    assert sorting.sort(mx.array(values)).tolist() == sorted(values.tolist())


@pytest.mark.parametrize(
    "dtype", [mx.uint8, mx.int16, mx.uint32, mx.int64, mx.float16, mx.bfloat16, mx.float32], ids=str
)
def test_sort_of_types(dtype):
    values = np.random.default_rng(3).normal(0, 50, 3000)
    x = mx.array(np.clip(values, 0, 255) if dtype in (mx.uint8, mx.uint32) else values).astype(dtype)
    result = sorting.sort(x)
    assert result.dtype == dtype
    elements: Any = x.tolist()
    assert result.tolist() == sorted(elements)


SEQUENCES = {
    "ascending": np.arange(3000.0),
    "descending": -np.arange(3000.0),
    "equal": np.full(3000, 2.5),
    "infinite": np.where(np.arange(3000) % 3, np.inf, -np.inf),
    "the largest, which also fills tiles": np.full(1500, np.inf),
    "saw": np.arange(3000.0) % 17,
}


@pytest.mark.parametrize("values", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_sort_of_sequences(values):
    assert sorting.sort(mx.array(values.astype(np.float32))).tolist() == sorted(values.tolist())


def test_each_stage_of_sorting_has_runs_twice_as_long():
    x = mx.random.uniform(shape=(4 * sorting.TILE + 100,), key=mx.random.key(2))
    stages = sorting.stages(x)
    assert len(stages) == 4
    before = np.array(x)
    for number, stage in enumerate(stages):
        run = sorting.TILE << number
        expected = [np.sort(before[begin : begin + run]) for begin in range(0, len(before), run)]
        np.testing.assert_array_equal(np.array(stage), np.concatenate(expected))


# ---- The renderer


def some_ellipses(count, rows, columns):
    free = 0.7 * mx.random.normal((count, 9), key=mx.random.key(6))
    free[:, :2] = mx.random.uniform(shape=(count, 2), key=mx.random.key(7))
    return differentiable_renderer.ellipses_from(free, rows, columns)


def picture_reference(ellipses, rows, columns):
    y, x = np.mgrid[0:rows, 0:columns] + 0.5
    colour, visible = np.zeros((rows, columns, 3)), np.ones((rows, columns))
    for e in ellipses:
        away_x, away_y = x - e[0], y - e[1]
        bent_x, bent_y = e[2] * away_x + e[3] * away_y, e[4] * away_y
        alpha = e[8] * np.exp(-0.5 * (bent_x**2 + bent_y**2))
        alpha = np.where(alpha < 1 / 255, 0, alpha)
        colour += (visible * alpha)[..., None] * e[5:8]
        visible = visible * (1 - alpha)
    return colour


@pytest.mark.parametrize(("rows", "columns"), [(16, 24), (13, 9)])
def test_renderer(rows, columns):
    ellipses = some_ellipses(20, rows, columns)
    picture = differentiable_renderer.renderer(rows, columns)(ellipses)
    # Colours below 1, of 20 layers with some ten roundings each, whose lengths are below 30.
    np.testing.assert_allclose(np.array(picture), picture_reference(doubles(ellipses), rows, columns), atol=2e-5)


def test_the_renderers_gradient_is_that_of_finite_differences():
    rows, columns = 14, 11
    ellipses = some_ellipses(8, rows, columns)
    cotangent = mx.random.normal((rows, columns, 3), key=mx.random.key(8))
    _, (gradient,) = mx.vjp(differentiable_renderer.renderer(rows, columns), [ellipses], [cotangent])

    at, step = doubles(ellipses), 1e-6
    expected = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[index] = step
        difference = picture_reference(at + change, rows, columns) - picture_reference(at - change, rows, columns)
        expected[index] = (difference * doubles(cotangent)).sum() / (2 * step)
    # Sums over 154 pixels in single precision; a term is up to the length of 14 pixels.
    np.testing.assert_allclose(doubles(gradient), expected, rtol=1e-4, atol=1e-4)
    assert np.all(abs(expected).max(axis=0) > 0.01), "every number of an ellipse matters somewhere"


def test_the_renderer_learns():
    # Colours that change from edge to edge, around a white disc.
    y, x = np.mgrid[0:24, 0:24] / 24
    ramps = np.stack([x, y, 1 - x], axis=-1)
    target = mx.array(np.where(np.hypot(x - 0.5, y - 0.4)[..., None] < 0.25, 1, ramps).astype(np.float32))
    result = differentiable_renderer.fit(target, 30, 40)
    losses = doubles(result.losses)
    assert losses.shape == (41,)
    assert losses[-1] < 0.1 * losses[0]
    for loss, picture in ((losses[0], result.first), (losses[-1], result.last)):
        assert loss == pytest.approx(np.square(doubles(picture) - doubles(target)).mean(), rel=1e-4)


def test_the_renderer_leaves_mlx_as_it_was():
    before = mx.fast.metal_kernel
    importlib.reload(differentiable_renderer)
    assert mx.fast.metal_kernel is before


def test_smaller():
    image = mx.arange(7 * 5 * 3, dtype=mx.float32).reshape(7, 5, 3)
    expected = np.array(image)[:6, :4].reshape(3, 2, 2, 2, 3).mean(axis=(1, 3))
    np.testing.assert_array_equal(np.array(differentiable_renderer.smaller(image, 2)), expected)


# ---- Programs and pictures

SMALL = {
    "mandelbrot": ["--size", "60", "--samples", "1"],
    "reaction_diffusion": ["--size", "32", "--frames", "3", "--steps", "5"],
    "n_body": ["--size", "60", "--steps", "2"],
    "softmax_rms_norm": ["--size", "4096", "--rounds", "1"],
    "quantized_product": ["--size", "128", "--rounds", "1"],
    "gaussian_blur": ["--size", "60", "--sigma", "3"],
    "histogram": ["--size", "40"],
    "sorting": ["--size", "3000"],
    "differentiable_renderer": ["--size", "30", "--ellipses", "8", "--steps", "3"],
    "pytorch_image": ["--size", "40", "--steps", "3", "--points", "100"],
    "jax_lens": ["--size", "32", "--steps", "2"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_draws_its_picture(name, tmp_path, capsys):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    importlib.import_module(f"examples.gallery.{name}").main(["--out", str(tmp_path / "new"), *SMALL[name]])
    (path,) = (tmp_path / "new").iterdir()
    assert path.stem == name
    assert f"wrote {path}" in capsys.readouterr().out
    if path.suffix == ".gif":
        with Image.open(path) as film:
            assert isinstance(film, GifImageFile)
            assert film.n_frames == 3
            picture = np.asarray(film.convert("RGB"))
    else:
        picture = matplotlib.image.imread(path)
    assert picture.ndim == 3 and picture.std() > 0


def test_the_gallery_runs_what_is_asked(tmp_path, capsys):
    run_gallery(["gaussian_blur", "histogram", "--out", str(tmp_path)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gaussian_blur.png", "histogram.png"]
    assert "histogram: The histogram of a photograph, counted with atomics." in capsys.readouterr().out


def test_the_gallery_knows_its_programs(capsys):
    with pytest.raises(SystemExit):
        run_gallery(["mandelbort"])
    assert "no program `mandelbort`; there are mandelbrot, " in capsys.readouterr().err


def test_the_gallery_leaves_out_what_it_cannot_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("examples.gallery.__main__.PROGRAMS", ("histogram", "jax_lens"))
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jax" else find_spec(name))
    run_gallery(["--out", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["histogram.png"]
    assert "jax_lens: left out, since it needs jax: pip install jax\n" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run_gallery(["jax_lens", "--out", str(tmp_path)])
    assert "`jax_lens` needs jax: pip install jax\n" in capsys.readouterr().err


def test_the_lists_of_programs_are_whole():
    files = {path.stem for path in GALLERY.glob("*.py")} - {"__init__", "__main__", "common"}
    assert set(PROGRAMS) == files
    rows = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.py\) \|", (GALLERY / "README.md").read_text(), re.MULTILINE)
    assert [row[0] for row in rows] == [row[1] for row in rows] == list(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_programs_docstring_begins_with_its_title(name):
    text = ast.get_docstring(ast.parse((GALLERY / f"{name}.py").read_text()))
    assert text
    lines = text.split("\n")
    assert lines[0].endswith(".") and lines[1] == ""
    assert "What it shows of Metal and of Kiln:" in lines
