"""Functions of arrays that the tests of all libraries share: each is defined once, rules included."""

from typing import Any

import kiln

INDEX = "uint i = thread_position_in_grid.x; "


# Named, so that functions of them can be pickled.
def one_shape(x, *_):
    return [x.shape]


def one_dtype(x, *_):
    return [x.dtype]


def two_shapes(x, *_):
    return [x.shape, x.shape]


def two_dtypes(x, *_):
    return [x.dtype, x.dtype]


def thread_per_element(x, *_):
    return x.size, 1, 1


def elementwise(name: str, inputs: list[str], source: str, outputs: tuple[str, ...] = ("y",)) -> Any:
    kernel = kiln.metal_kernel(name, inputs, list(outputs), INDEX + source)
    return kernel.function(
        output_shapes=one_shape if len(outputs) == 1 else two_shapes,
        output_dtypes=one_dtype if len(outputs) == 1 else two_dtypes,
        grid=thread_per_element,
        threadgroup=(256, 1, 1),
    )


def together(arrays: Any, axes: Any) -> list[Any]:
    """The arrays with the batch as their first axis, all of one shape."""
    xp = kiln.array_namespace(*arrays)
    first = [x if axis is None else xp.moveaxis(x, axis, 0) for x, axis in zip(arrays, axes, strict=True)]
    shape = next(x.shape for x, axis in zip(first, axes, strict=True) if axis is not None)
    return [xp.broadcast_to(x, shape) for x in first]


# The product of two arrays: bilinear, so that its rules are made of itself.
product = elementwise("product", ["a", "b"], "y[i] = a[i] * b[i];")


@product.vjp
def product_vjp(primals, cotangent, _):
    a, b = primals
    return product(b, cotangent), product(a, cotangent)


@product.jvp
def product_jvp(primals, tangents):
    (a, b), (da, db) = primals, tangents
    parts = []
    if da is not None:
        parts.append(product(da, b))
    if db is not None:
        parts.append(product(a, db))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@product.vmap
def product_vmap(inputs, axes):
    return product(*together(inputs, axes)), 0


# One input, one output: rules are given arrays, not tuples.
square = elementwise("square", ["x"], "y[i] = x[i] * x[i];")


@square.vjp
def square_vjp(x, cotangent, _):
    return 2 * product(x, cotangent)


@square.jvp
def square_jvp(x, tangent):
    return 2 * product(x, tangent)


@square.vmap
def square_vmap(x, axis):
    return square(x), axis


# Two outputs, of which the gradient may need one; the rule uses the outputs.
powers = elementwise("powers", ["x"], "square[i] = x[i] * x[i]; cube[i] = x[i] * x[i] * x[i];", ("square", "cube"))


@powers.vjp
def powers_vjp(x, cotangents, outputs):
    return 2 * product(x, cotangents[0]) + 3 * product(outputs[0], cotangents[1])


@powers.jvp
def powers_jvp(x, tangent):
    return 2 * product(x, tangent), 3 * product(square(x), tangent)


@powers.vmap
def powers_vmap(x, axis):
    return powers(x), (axis, axis)


# No rules, and one launch after the other.
plain = elementwise("plain", ["x"], "y[i] = x[i] * x[i];")
one_by_one = elementwise("one_by_one", ["x", "scale"], "y[i] = x[i] * scale[i % scale_shape[0]];")
one_by_one.vmap("sequential")


# A batch as one more axis of the grid, for a body that knows where it is: the product with the reversed array.
mirrored = elementwise("mirrored", ["x", "w"], "y[i] = w[i] * x[threads_per_grid.x - 1 - i];")
mirrored.vmap("grid")


@mirrored.vjp
def mirrored_vjp(primals, cotangent, _):
    x, w = primals
    xp = kiln.array_namespace(x)
    return mirrored(cotangent * w, xp.ones_like(w)), mirrored(x, cotangent)


@mirrored.jvp
def mirrored_jvp(primals, tangents):
    (x, w), (dx, dw) = primals, tangents
    parts = ([] if dx is None else [mirrored(dx, w)]) + ([] if dw is None else [mirrored(x, dw)])
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


# ---- A bilinear sample with a gradient by hand: images (batch, height, width, channels), places (batch, …, 2) in -1 to 1.

_HEADER = """
    inline float to_pixels(float place, int size) { return ((place + 1) * size - 1) / 2; }
"""
_BEGIN = """
    uint i = thread_position_in_grid.x;
    int height = image_shape[1], width = image_shape[2], channels = image_shape[3];
    uint channel = i % channels, place = i / channels;
    uint batch = place / (places_shape[1] * places_shape[2]);
    float x = to_pixels(places[2 * place], width), y = to_pixels(places[2 * place + 1], height);
    int left = floor(x), top = floor(y);
"""
_CORNERS = """
    for (int corner = 0; corner < 4; ++corner) {
        int column = left + corner % 2, row = top + corner / 2;
        if (column >= 0 && column < width && row >= 0 && row < height) {
            float near_x = 1 - abs(x - column), near_y = 1 - abs(y - row);
            int at = ((batch * height + row) * width + column) * channels + channel;
"""

grid_sample = kiln.metal_kernel(
    "grid_sample",
    ["image", "places"],
    ["sample"],
    _BEGIN + "float sum = 0;" + _CORNERS + "sum += near_x * near_y * image[at]; } } sample[i] = sum;",
    header=_HEADER,
).function(
    output_shapes=lambda image, places: [(*places.shape[:-1], image.shape[-1])],
    output_dtypes=lambda image, places: [image.dtype],
    grid=lambda image, places: (places.size // 2 * image.shape[-1], 1, 1),
    threadgroup=(256, 1, 1),
)

grid_sample_gradient = kiln.metal_kernel(
    "grid_sample_gradient",
    ["image", "places", "cotangents"],
    ["d_image", "d_places"],
    _BEGIN
    + "float cotangent = cotangents[i], slope_x = 0, slope_y = 0;"
    + _CORNERS
    + """
            atomic_fetch_add_explicit(&d_image[at], near_x * near_y * cotangent, memory_order_relaxed);
            slope_x += (corner % 2 == 0 ? -near_y : near_y) * image[at] * cotangent;
            slope_y += (corner / 2 == 0 ? -near_x : near_x) * image[at] * cotangent;
        }
    }
    atomic_fetch_add_explicit(&d_places[2 * place], slope_x * width / 2, memory_order_relaxed);
    atomic_fetch_add_explicit(&d_places[2 * place + 1], slope_y * height / 2, memory_order_relaxed);
""",
    header=_HEADER,
    atomic_outputs=True,
).function(
    output_shapes=lambda image, places, _: [image.shape, places.shape],
    output_dtypes=lambda image, places, _: [image.dtype, places.dtype],
    grid=lambda image, places, _: (places.size // 2 * image.shape[-1], 1, 1),
    threadgroup=(256, 1, 1),
    init_value=0,
)


@grid_sample.vjp
def grid_sample_vjp(primals, cotangent, _):
    return grid_sample_gradient(*primals, cotangent)


# ---- In double precision: CUDA bodies.

_CUDA_INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= size) return; "


def cuda_elementwise(name: str, inputs: list[str], source: str) -> Any:
    size = f"int size = 1; for (int d = 0; d < {inputs[0]}_ndim; ++d) size *= {inputs[0]}_shape[d]; "
    return kiln.cuda_kernel(name, inputs, ["y"], size + _CUDA_INDEX + source).function(
        output_shapes=one_shape, output_dtypes=one_dtype, grid=thread_per_element, threadgroup=(64, 1, 1)
    )


cuda_sine = cuda_elementwise("sine", ["x"], "y[i] = sin(x[i]);")
cuda_cosine_times = cuda_elementwise("cosine_times", ["x", "g"], "y[i] = cos(x[i]) * g[i];")
cuda_minus_sine_times = cuda_elementwise("minus_sine_times", ["x", "g", "h"], "y[i] = -sin(x[i]) * g[i] * h[i];")


@cuda_sine.vjp
def cuda_sine_vjp(x, cotangent, _):
    return cuda_cosine_times(x, cotangent)


@cuda_sine.jvp
def cuda_sine_jvp(x, tangent):
    return cuda_cosine_times(x, tangent)


@cuda_cosine_times.vjp
def cuda_cosine_times_vjp(primals, cotangent, _):
    x, g = primals
    return cuda_minus_sine_times(x, g, cotangent), cuda_cosine_times(x, cotangent)


# Of complex numbers, too: what libraries conjugate in gradients is real here.
tripled = elementwise("tripled", ["x"], "y[i] = x[i] + x[i] + x[i];")


@tripled.vjp
def tripled_vjp(x, cotangent, _):
    return tripled(cotangent)


@tripled.jvp
def tripled_jvp(x, tangent):
    return tripled(tangent)


tripled.vmap("grid")
