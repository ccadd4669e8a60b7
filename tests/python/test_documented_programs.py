"""The programs that MLX's documentation of custom kernels shows, from its first generation to today's.

Written anew, with other names; each exercises what its model does: exponentials of half numbers through a float32
template in every generation of the interface, strided inputs by `elem_to_loc`, and a bilinear grid sample whose kernel
reads before it masks, with a gradient that adds up in atomic outputs. The programs are what a Mac runs: nothing but
`kiln.mlx.install()` comes before them.
"""

from typing import Any

import kiln
import kiln.mlx
import mlx.core as mx
import numpy as np
import pytest
from guarded_pages import GuardedPages

# MLX's types know one generation, and say of kernels that they are objects.
fast: Any = mx.fast


@pytest.fixture(autouse=True)
def _installed():
    with kiln.mlx.install():
        yield


# ---- Exponentials: half arrays, computed in the template's float

EXP = """
    uint position = thread_position_in_grid.x;
    T value = values[position];
    result[position] = metal::exp(value);
"""

STRIDED_EXP = """
    uint position = thread_position_in_grid.x;
    uint place = elem_to_loc(position, values_shape, values_strides, values_ndim);
    T value = values[place];
    // What is written is row-contiguous whatever is read.
    result[position] = metal::exp(value);
"""


def exp_with_lists(values, source=EXP, verbose=False, **options):
    kernel = fast.metal_kernel(
        name="exponentials", input_names=["values"], output_names=["result"], source=source, **options
    )
    (result,) = kernel(
        inputs=[values],
        template=[("T", mx.float32)],
        grid=(values.size, 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes=[values.shape],
        output_dtypes=[values.dtype],
        verbose=verbose,
    )
    return result


def exp_with_dictionaries(values, source=EXP, verbose=False, **options):
    kernel = fast.metal_kernel(name="exponentials", source=source, **options)
    results = kernel(
        inputs={"values": values},
        template={"T": mx.float32},
        grid=(values.size, 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes={"result": values.shape},
        output_dtypes={"result": values.dtype},
        verbose=verbose,
    )
    return results["result"]


def exp_with_class(values, source=EXP, verbose=False, **options):
    kernel = fast.MetalKernel(
        name="exponentials",
        source=source,
        grid=(values.size, 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes={"result": values.shape},
        output_dtypes={"result": values.dtype},
        verbose=verbose,
        **options,
    )
    kernel.template(T=mx.float32)
    return kernel(values=values)["result"]


GENERATIONS = pytest.mark.parametrize("exp", [exp_with_lists, exp_with_dictionaries, exp_with_class])


def half_numbers(shape):
    return mx.random.normal(shape=shape, key=mx.random.key(7)).astype(mx.float16)


def check_exponentials(result, values):
    assert result.dtype == mx.float16
    assert mx.allclose(result, mx.exp(values)).item()
    # Rounded to half once: a float's exponential is off by far less than half a unit of half.
    exact = np.exp(np.array(values).astype(np.float64))
    np.testing.assert_allclose(np.array(result).astype(np.float64), exact, rtol=2.0**-11 * 1.01)


@GENERATIONS
def test_exp(exp):
    values = half_numbers((4, 16))
    check_exponentials(exp(values), values)


@GENERATIONS
def test_exp_prints_what_it_compiles(exp, capsys):
    values = half_numbers((4, 16))
    check_exponentials(exp(values, verbose=True), values)
    printed = capsys.readouterr().out
    assert "template <typename T>" in printed
    assert "const device float16_t* values [[buffer(0)]]" in printed
    assert "device float16_t* result" in printed
    assert "uint3 thread_position_in_grid [[thread_position_in_grid]]" in printed
    assert EXP in printed
    # The first generation passes shapes and strides whether or not the body uses them.
    assert ("const constant size_t* values_strides" in printed) == (exp is exp_with_class)


@GENERATIONS
def test_exp_of_a_strided_array(exp):
    values = half_numbers((4, 16))[::2]
    check_exponentials(exp(values, STRIDED_EXP, ensure_row_contiguous=False), values)


@GENERATIONS
def test_exp_of_a_strided_array_with_a_copy(exp):
    # Without `ensure_row_contiguous=False` the same body sees the strides of the copy.
    values = half_numbers((4, 16))[::2]
    check_exponentials(exp(values, STRIDED_EXP), values)
    check_exponentials(exp(values), values)


@GENERATIONS
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2, ::3],
        lambda a: a.T,
        lambda a: a[1:3, 2:9],
        lambda a: mx.broadcast_to(a[:, :1], (4, 16)),
        lambda a: a.reshape(2, 2, 4, 4).transpose(3, 1, 0, 2),
    ],
    ids=["steps", "transposed", "window", "broadcast", "four dimensions"],
)
def test_exp_of_other_views(exp, view):
    values = view(half_numbers((4, 16)))
    check_exponentials(exp(values, STRIDED_EXP, ensure_row_contiguous=False), values)


# ---- Grid sample: bilinear, zero outside, pixel centres at the halves. Images are (batch, height, width, channels),
# places (batch, rows, columns, 2) with x before y, from -1 at one border to 1 at the other.

# Four corners are read wherever they are; what lies outside is masked afterwards.
SAMPLE = """
    uint index = thread_position_in_grid.x;
    int height = image_shape[1], width = image_shape[2], channels = image_shape[3];
    int per_image = places_shape[1] * places_shape[2];
    int row_step = width * channels;

    uint place = index / channels;
    float x = ((places[2 * place] + 1) * width - 1) / 2;
    float y = ((places[2 * place + 1] + 1) * height - 1) / 2;
    int left = floor(x), top = floor(y);
    int right = left + 1, bottom = top + 1;

    T share_lt = (right - x) * (bottom - y);
    T share_rt = (x - left) * (bottom - y);
    T share_lb = (right - x) * (y - top);
    T share_rb = (x - left) * (y - top);

    int origin = index / channels / per_image * (height * row_step) + index % channels;
    T lt = image[origin + top * row_step + left * channels];
    T rt = image[origin + top * row_step + right * channels];
    T lb = image[origin + bottom * row_step + left * channels];
    T rb = image[origin + bottom * row_step + right * channels];

    bool in_left = left >= 0 && left < width, in_right = right >= 0 && right < width;
    bool in_top = top >= 0 && top < height, in_bottom = bottom >= 0 && bottom < height;
    lt = in_left && in_top ? lt : 0;
    rt = in_right && in_top ? rt : 0;
    lb = in_left && in_bottom ? lb : 0;
    rb = in_right && in_bottom ? rb : 0;
    sampled[index] = share_lt * lt + share_rt * rt + share_lb * lb + share_rb * rb;
"""

# A place has as many threads as its channels, filled up to whole simdgroups, so that no simd_sum mixes two places.
SAMPLE_GRADIENT = """
    uint index = thread_position_in_grid.x;
    int height = image_shape[1], width = image_shape[2], channels = image_shape[3];
    int lanes = ceildiv(channels, threads_per_simdgroup) * threads_per_simdgroup;
    int per_image = places_shape[1] * places_shape[2];
    int row_step = width * channels;

    uint place = index / lanes;
    int channel = index % lanes;
    float x = ((places[2 * place] + 1) * width - 1) / 2;
    float y = ((places[2 * place + 1] + 1) * height - 1) / 2;
    int left = floor(x), top = floor(y);
    int right = left + 1, bottom = top + 1;

    int origin = index / lanes / per_image * (height * row_step) + channel;
    T slope_x = T(0), slope_y = T(0);
    if (channel < channels) {
        T cotangent = cotangents[place * channels + channel];
        bool in_left = left >= 0 && left < width, in_right = right >= 0 && right < width;
        if (top >= 0 && top < height) {
            if (in_left) {
                int at = origin + top * row_step + left * channels;
                atomic_fetch_add_explicit(&image_gradient[at], (right - x) * (bottom - y) * cotangent,
                                          memory_order_relaxed);
                slope_x -= image[at] * (bottom - y) * cotangent;
                slope_y -= image[at] * (right - x) * cotangent;
            }
            if (in_right) {
                int at = origin + top * row_step + right * channels;
                atomic_fetch_add_explicit(&image_gradient[at], (x - left) * (bottom - y) * cotangent,
                                          memory_order_relaxed);
                slope_x += image[at] * (bottom - y) * cotangent;
                slope_y -= image[at] * (x - left) * cotangent;
            }
        }
        if (bottom >= 0 && bottom < height) {
            if (in_left) {
                int at = origin + bottom * row_step + left * channels;
                atomic_fetch_add_explicit(&image_gradient[at], (right - x) * (y - top) * cotangent,
                                          memory_order_relaxed);
                slope_x -= image[at] * (y - top) * cotangent;
                slope_y += image[at] * (right - x) * cotangent;
            }
            if (in_right) {
                int at = origin + bottom * row_step + right * channels;
                atomic_fetch_add_explicit(&image_gradient[at], (x - left) * (y - top) * cotangent,
                                          memory_order_relaxed);
                slope_x += image[at] * (y - top) * cotangent;
                slope_y += image[at] * (x - left) * cotangent;
            }
        }
    }

    // One atomic operation for 32 channels.
    slope_x = simd_sum(slope_x);
    slope_y = simd_sum(slope_y);
    if (thread_index_in_simdgroup == 0) {
        atomic_fetch_add_explicit(&places_gradient[2 * place], slope_x * (width / 2.0f), memory_order_relaxed);
        atomic_fetch_add_explicit(&places_gradient[2 * place + 1], slope_y * (height / 2.0f), memory_order_relaxed);
    }
"""

SIMDGROUP = 32


def sample_call(image, places):
    """What a call of the forward kernel is given, for any array library."""
    shape = (*places.shape[:3], image.shape[3])
    return {
        "template": {"T": image.dtype},
        "grid": (int(np.prod(shape)), 1, 1),
        "threadgroup": (256, 1, 1),
        "inputs": {"image": image, "places": places},
        "output_shapes": {"sampled": shape},
        "output_dtypes": {"sampled": image.dtype},
    }


def sample_gradient_call(image, places, cotangents):
    lanes = -(-image.shape[3] // SIMDGROUP) * SIMDGROUP
    return {
        "template": {"T": image.dtype},
        "grid": (int(np.prod(places.shape[:3])) * lanes, 1, 1),
        "threadgroup": (256, 1, 1),
        "inputs": {"image": image, "places": places, "cotangents": cotangents},
        "output_shapes": {"image_gradient": image.shape, "places_gradient": places.shape},
        "output_dtypes": {"image_gradient": image.dtype, "places_gradient": image.dtype},
        "init_value": 0,
    }


def make_sample(by_lists):
    """The differentiable function, over the interface of dictionaries or that of lists."""
    if by_lists:
        forward = fast.metal_kernel(
            name="sample", input_names=["image", "places"], output_names=["sampled"], source=SAMPLE
        )
        backward = fast.metal_kernel(
            name="sample_gradient",
            input_names=["image", "places", "cotangents"],
            output_names=["image_gradient", "places_gradient"],
            source=SAMPLE_GRADIENT,
            atomic_outputs=True,
        )

        def call(kernel, keywords):
            lists = {key: list(keywords[key].values()) for key in ("inputs", "output_shapes", "output_dtypes")}
            return kernel(**{**keywords, **lists, "template": list(keywords["template"].items())})
    else:
        forward = fast.metal_kernel(name="sample", source=SAMPLE)
        backward = fast.metal_kernel(name="sample_gradient", source=SAMPLE_GRADIENT, atomic_outputs=True)

        def call(kernel, keywords):
            return list(kernel(**keywords).values())

    @mx.custom_function
    def sample(image, places):
        return call(forward, sample_call(image, places))[0]

    @sample.vjp
    def sample_vjp(primals, cotangents, _):
        image, places = primals
        return tuple(call(backward, sample_gradient_call(image, places, cotangents)))

    return sample


def sample_by_operations(image, places):
    """The same with MLX's operations. Its gather does not check indices: they are kept inside before, not after."""
    batch, height, width, _ = image.shape
    x = ((places[..., 0] + 1) * width - 1) / 2
    y = ((places[..., 1] + 1) * height - 1) / 2
    left, top = (mx.stop_gradient(mx.floor(a)) for a in (x, y))
    number = mx.arange(batch)[:, None, None]

    def corner(column, row, share):
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        columns = mx.clip(column, 0, width - 1).astype(mx.int32)
        rows = mx.clip(row, 0, height - 1).astype(mx.int32)
        return image[number, rows, columns] * (inside * share)[..., None]

    return (
        corner(left, top, (left + 1 - x) * (top + 1 - y))
        + corner(left + 1, top, (x - left) * (top + 1 - y))
        + corner(left, top + 1, (left + 1 - x) * (y - top))
        + corner(left + 1, top + 1, (x - left) * (y - top))
    )


def sample_exactly(image, places, cotangents):
    """Result and both gradients in float64."""
    image, places, cotangents = (a.astype(np.float64) for a in (image, places, cotangents))
    batch, height, width, _ = image.shape
    x = ((places[..., 0] + 1) * width - 1) / 2
    y = ((places[..., 1] + 1) * height - 1) / 2
    left, top = np.floor(x), np.floor(y)
    number = np.broadcast_to(np.arange(batch)[:, None, None], x.shape)
    sampled = np.zeros((*x.shape, image.shape[3]))
    image_gradient, places_gradient = np.zeros_like(image), np.zeros_like(places)
    for column, share_x, slope_x in ((left, left + 1 - x, -1), (left + 1, x - left, 1)):
        for row, share_y, slope_y in ((top, top + 1 - y, -1), (top + 1, y - top, 1)):
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            at = (number, np.where(inside, row, 0).astype(int), np.where(inside, column, 0).astype(int))
            values = image[at] * inside[..., None]
            sampled += values * (share_x * share_y)[..., None]
            np.add.at(image_gradient, at, cotangents * (inside * share_x * share_y)[..., None])
            along = (values * cotangents).sum(-1)
            places_gradient[..., 0] += along * slope_x * share_y * width / 2
            places_gradient[..., 1] += along * slope_y * share_x * height / 2
    return sampled, image_gradient, places_gradient


def positions(size, rng):
    """Places along one axis, in pixels: inside, across each border, on either side of it, far away. Never at a pixel's
    centre, where the gradient jumps."""
    fixed = [-1000.25, -7.5, -1.25, -0.75, -0.25, size / 2 - 0.25, size - 1.25, size - 0.75, size - 0.25]
    fixed += [size + 0.25, size + 7.5, size + 1000.25]
    return np.array(fixed + list(rng.integers(-2, size + 1, 4) + rng.uniform(0.1, 0.9, 4)))


def everywhere(batch, height, width, channels):
    """An image, places that reach over all its borders, and cotangents."""
    rng = np.random.default_rng(5)
    xs, ys = positions(width, rng), positions(height, rng)
    # Each border is crossed alone and together with each of its neighbours; in one pixel, no place has all corners.
    crossed = {
        (int(np.sign(np.clip(x, 0, width - 1) - x)), int(np.sign(np.clip(y, 0, height - 1) - y)))
        for x in xs[(xs > -1) & (xs < width)]
        for y in ys[(ys > -1) & (ys < height)]
    }
    assert crossed >= {(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i or width > 1) and (j or height > 1)}
    pixels = np.stack(np.meshgrid(xs, ys), -1)
    places = (2 * pixels + 1) / (width, height) - 1
    places = np.stack([places if i % 2 == 0 else places[::-1, ::-1] for i in range(batch)]).astype(np.float32)
    image = rng.normal(size=(batch, height, width, channels)).astype(np.float32)
    cotangents = rng.normal(size=(*places.shape[:3], channels)).astype(np.float32)
    return image, places, cotangents


SIZES = pytest.mark.parametrize("size", [(2, 6, 8, 3), (3, 5, 7, 40), (1, 1, 1, 1), (2, 4, 4, 32)], ids=str)


def close(got, expected):
    # Places far outside lose digits of x and y; their corners do not count, but sums of 40 channels do.
    np.testing.assert_allclose(np.array(got), expected, rtol=1e-4, atol=2e-4)


@SIZES
@pytest.mark.parametrize("by_lists", [False, True], ids=["dictionaries", "lists"])
def test_grid_sample(size, by_lists):
    sample = make_sample(by_lists)
    arrays = everywhere(*size)
    image, places, cotangents = map(mx.array, arrays)
    expected = sample_exactly(*arrays)
    by_operations = mx.vjp(sample_by_operations, [image, places], [cotangents])
    by_kernel = mx.vjp(sample, [image, places], [cotangents])
    close(sample(image, places), expected[0])
    for (result,), gradients in (by_operations, by_kernel):
        close(result, expected[0])
        close(gradients[0], expected[1])
        close(gradients[1], expected[2])


@pytest.mark.parametrize("by_lists", [False, True], ids=["dictionaries", "lists"])
def test_grid_sample_under_grad_and_compile(by_lists):
    sample = make_sample(by_lists)
    arrays = everywhere(2, 6, 8, 3)
    image, places, cotangents = map(mx.array, arrays)
    _, image_gradient, places_gradient = sample_exactly(*arrays)

    def loss(image, places):
        return (sample(image, places) * cotangents).sum()

    for transform in (mx.grad, lambda f, argnums: mx.compile(mx.grad(f, argnums=argnums))):
        gradients = transform(loss, argnums=(0, 1))(image, places)
        close(gradients[0], image_gradient)
        close(gradients[1], places_gradient)


def test_grid_sample_at_pixel_centres():
    # There the result is the pixel itself, whichever corner it is found at.
    image = np.random.default_rng(3).normal(size=(1, 4, 8, 2)).astype(np.float32)
    pixels = np.stack(np.meshgrid(np.arange(8), np.arange(4)), -1)
    places = ((2 * pixels + 1) / (8, 4) - 1).astype(np.float32)[None]
    np.testing.assert_array_equal(np.array(make_sample(False)(mx.array(image), mx.array(places))), image)


# ---- Memory safety: nothing around the arrays may be touched, although corners outside are read


@pytest.mark.parametrize("at_end", [False, True], ids=["at_start", "at_end"])
def test_exp_between_guard_pages(at_end):
    values = np.array(half_numbers((4, 16)))
    kernel = kiln.metal_kernel(name="exponentials", source=STRIDED_EXP, ensure_row_contiguous=False)
    guarded = GuardedPages(values.nbytes).copy(values, at_end)
    for view in (guarded, guarded[::2], guarded[::-1], guarded.T):
        results = kernel(
            inputs={"values": view},
            template={"T": np.float32},
            grid=(view.size, 1, 1),
            threadgroup=(256, 1, 1),
            output_shapes={"result": view.shape},
            output_dtypes={"result": view.dtype},
        )
        # `uint` holds no negative place; what a view that runs backwards gives is the body's affair.
        if view.strides[0] > 0:
            check_exponentials(mx.array(results["result"]), mx.array(np.ascontiguousarray(view)))


@SIZES
@pytest.mark.parametrize("at_end", [False, True], ids=["at_start", "at_end"])
def test_grid_sample_between_guard_pages(size, at_end):
    arrays = everywhere(*size)
    image, places, cotangents = (GuardedPages(a.nbytes).copy(a, at_end) for a in arrays)
    sampled, image_gradient, places_gradient = sample_exactly(*arrays)
    forward = kiln.metal_kernel(name="sample", source=SAMPLE)
    backward = kiln.metal_kernel(name="sample_gradient", source=SAMPLE_GRADIENT, atomic_outputs=True)
    close(forward(**sample_call(image, places))["sampled"], sampled)
    gradients = backward(**sample_gradient_call(image, places, cotangents))
    close(gradients["image_gradient"], image_gradient)
    close(gradients["places_gradient"], places_gradient)
    assert all(np.array_equal(a, b) for a, b in zip((image, places, cotangents), arrays, strict=True))


@pytest.mark.parametrize("at_end", [False, True], ids=["at_start", "at_end"])
def test_grid_sample_nowhere(at_end):
    # Offsets overflow; places that are no numbers have no pixel.
    image, places, _ = everywhere(2, 6, 8, 3)
    nowhere = np.array([1e30, -1e30, 3e9, -3e9, 1e8, -1e8, np.inf, -np.inf, np.nan], np.float32)
    places = np.tile(places, (1, 3, 1, 1))
    places[:, : len(nowhere), ::2, 0] = nowhere[:, None]
    places[:, : len(nowhere), ::3, 1] = nowhere[::-1, None]
    forward = kiln.metal_kernel(name="sample", source=SAMPLE)
    call = sample_call(*(GuardedPages(a.nbytes).copy(a, at_end) for a in (image, places)))
    sampled = forward(**call)["sampled"]
    changed = (np.abs(places) > 1e7).any(-1) | np.isnan(places).any(-1)
    assert changed.any()
    # Shares of far places may overflow; times zero they are no numbers either.
    assert not np.nan_to_num(sampled[changed], posinf=1).any()
    expected = sample_exactly(image, np.where(changed[..., None], 0, places), np.zeros_like(sampled))[0]
    close(sampled[~changed], expected[~changed])
