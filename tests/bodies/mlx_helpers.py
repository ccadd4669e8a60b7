"""What MLX's header gives a kernel (docs/language.md 1.4)."""

import numpy as np

from bodies import DTYPES, body


@body(
    """
    uint i = thread_position_in_grid.x;
    uint columns = x_shape[3], rows = x_shape[2], planes = x_shape[1];
    uint3 at(i % columns, i / columns % rows, i / columns / rows);
    int64_t by_vector = elem_to_loc<int64_t>(at, x_shape, x_strides, x_ndim);
    int by_int = elem_to_loc<int>(i, x_shape, x_strides, x_ndim);
    device float* row = out + 6 * i;
    row[0] = x[by_vector];
    row[1] = x[by_int];
    row[2] = x[elem_to_loc_2(uint2(at.xy), x_strides + 2)];
    row[3] = x[elem_to_loc_3(uint3(at.xy, at.z % planes), x_strides + 1)];
    row[4] = x[elem_to_loc_1(at.x, x_strides[3])];
    LoopedElemToLoc<4> loop(x_ndim);
    for (uint j = 0; j < i; ++j) loop.next(x_shape, x_strides);
    row[5] = x[loop.location()];
    """,
    inputs=lambda rng: {"x": rng.normal(size=(4, 3, 5, 2)).astype(np.float32).transpose(3, 1, 0, 2)},
    outputs={"out": ((2, 3, 4, 5, 6), "float32")},
    grid=(120, 1, 1),
    threadgroup=(40, 1, 1),
    ensure_row_contiguous=False,
    constructs="mlx.elem_to_loc mlx.elem_to_loc_1 mlx.elem_to_loc_2 mlx.elem_to_loc_3 mlx.LoopedElemToLoc "
    "layouts.strided",
)
def positions_of_elements(x):
    out = np.zeros((2, 3, 4, 5, 6), np.float32)
    out[..., 0] = out[..., 1] = out[..., 5] = x
    out[..., 2] = x[0, 0]
    out[..., 3] = x[0]
    out[..., 4] = x[0, 0, 0]
    return out


@body(
    """
    uint i = thread_position_in_grid.x;
    uint3 at(i % x_shape[2], i / x_shape[2] % x_shape[1], i / x_shape[2] / x_shape[1]);
    int2 two = int2(elem_to_loc_2_nd(at, x_shape, x_strides, y_strides, x_ndim));
    auto three = elem_to_loc_3_nd<int64_t>(at, x_shape, x_strides, y_strides, x_strides, x_ndim);
    out[2 * i] = x[two.x] - y[two.y];
    out[2 * i + 1] = x[three.x] * y[three.y] + x[three.z];
    """,
    inputs=lambda rng: {
        "x": rng.integers(-9, 9, (2, 3, 4)).astype(np.float32).swapaxes(0, 2),
        "y": np.broadcast_to(rng.integers(-9, 9, (3, 1)).astype(np.float32), (4, 3, 2)),
    },
    outputs={"out": ((4, 3, 2, 2), "float32")},
    grid=(24, 1, 1),
    threadgroup=(24, 1, 1),
    ensure_row_contiguous=False,
    constructs="mlx.elem_to_loc_2_nd mlx.elem_to_loc_3_nd layouts.strided",
)
def positions_in_several_arrays(x, y):
    return np.stack([x - y, x * y + x], axis=-1)


@body(
    """
    uint i = thread_position_in_grid.x;
    if (i > 0) return;
    out[0] = ceildiv(17, 4) + 100 * ceildiv(16u, 4);
    out[1] = WorkPerThread<float>::n + 10 * WorkPerThread<half>::n + 100 * WorkPerThread<uint8_t>::n;
    ConditionalType<sizeof(float) == 4, int, float>::type integer = 2.9;
    out[2] = integer;
    out[3] = cast_to<bool>(-0.0f) + 10 * cast_to<bool>(1e-40f) + 100 * cast_to<int>(3.7f);
    limits[0] = Limits<float>::max;
    limits[1] = Limits<float>::finite_min;
    limits[2] = Limits<int>::min;
    limits[3] = Limits<bfloat16_t>::finite_max;
    limits[4] = -Limits<half>::max;
    limits[5] = expm1(1e-3) * 0 + erf(0.0) + complex64_t(3, 4).imag + float16_t(1) + bfloat16_t(2);
    """,
    outputs={"out": ((4,), "int32"), "limits": ((6,), "float32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="mlx.ceildiv mlx.WorkPerThread mlx.ConditionalType mlx.cast_to mlx.Limits types.float16_t "
    "types.bfloat16_t mlx.expm1 mlx.erf",
)
def small_helpers():
    limits = np.array([np.inf, np.finfo(np.float32).min, -(2.0**31), 0, -np.inf, 7], np.float32)
    limits[3] = np.array(0x7F7F, np.uint16).view(DTYPES["bfloat16"]).astype(np.float32)
    return np.array([5 + 400, 2 + 40 + 800, 2, 310], np.int32), limits


@body(
    """
    uint i = thread_position_in_grid.x;
    out[3 * i] = erf(x[i]);
    out[3 * i + 1] = erfinv(x[i] * 0.25);
    out[3 * i + 2] = expm1(x[i]);
    """,
    inputs=lambda rng: {"x": rng.uniform(-3, 3, 64).astype(np.float32)},
    outputs={"out": ((64, 3), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-6,
    constructs="mlx.erf mlx.erfinv mlx.expm1",
)
def error_functions(x):
    from math import erf

    wide = x.astype(np.float64)
    y = wide * 0.25
    # The inverse by Newton's method.
    inverse = y.copy()
    for _ in range(30):
        inverse -= (np.vectorize(erf)(inverse) - y) / (2 / np.sqrt(np.pi) * np.exp(-inverse * inverse))
    return np.stack([np.vectorize(erf)(wide), inverse, np.expm1(wide)], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    out[i] = erf(x[i]) + lerp(x[i], 1.0, 0.5) + sigmoid(x[i]);
    """,
    header="""
// Names that Metal does not have, or that a header may define for itself.
float erf(float x) { return 100 * x; }
template <typename T>
T lerp(T a, T b, float t) {
  return a + (b - a) * t;
}
inline float sigmoid(float x) { return x > 0 ? 1.0 : 0.0; }
""",
    inputs=lambda rng: {"x": rng.integers(-9, 9, 32).astype(np.float32)},
    outputs={"out": ((32,), "float32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="mlx.own_definitions structure.helper_function",
)
def own_definitions(x):
    f = np.float32
    return f(100) * x + (x + (f(1) - x) * f(0.5)) + np.where(x > 0, f(1), f(0))
