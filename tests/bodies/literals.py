"""Numbers in a body's text."""

import numpy as np

from bodies import DTYPES, Dtype, body


@body(
    """
    uint i = thread_position_in_grid.x;
    auto third = 1.0 / 3.0;
    float shifted = x[i] + 1e-5;
    scaled[i] = shifted * 1.1 + third;
    bool tiny = 1e-46 == 0;             // no float is that small
    bool same = 0.1 == 0.1f && 16777217.0 == 16777216.0;
    sizes[i] = int(sizeof(1.0)) + int(sizeof(1e3)) + int(sizeof(third)) + 100 * int(tiny) + 1000 * int(same);
    """,
    inputs=lambda rng: {"x": rng.normal(size=64).astype(np.float32)},
    outputs={"scaled": ((64,), "float32"), "sizes": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="literals.unsuffixed_float literals.exponent",
)
def literals_are_float(x):
    f = np.float32
    return (x + f(1e-5)) * f(1.1) + f(1) / f(3), np.full(64, 12 + 100 + 1000, np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    T gray = 0.3 * x[3 * i] + 0.59 * x[3 * i + 1] + 0.11 * x[3 * i + 2];
    y[i] = gray;
    halves[i] = T(halved<T>(x[3 * i]) * .1);
    sizes[i] = int(sizeof(1.0)) + int(sizeof(T(2) * 0x1p-1)) + 10 * int(0.1 == 0.1f);
    """,
    header="template <typename U> auto halved(U v) { return v * 5e-1 + 1. / 3.; }\n",
    template=[("T", Dtype("float16"))],
    inputs=lambda rng: {"x": rng.normal(size=96).astype(np.float16)},
    outputs={"y": ((32,), "float16"), "halves": ((32,), "float16"), "sizes": ((32,), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="literals.unsuffixed_float types.half",
)
def literals_in_templates_are_float(x):
    f, h = np.float32, np.float16
    r, g, b = x.astype(f).reshape(-1, 3).T
    gray = f(0.3) * r + f(0.59) * g + f(0.11) * b
    halved = r * f(0.5) + f(1) / f(3)
    return gray.astype(h), (halved * f(0.1)).astype(h), np.full(32, 18, np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    half h = x[i];
    halves[i] = h * 0.1h + 2h - 1.5e-2H;
    bfloats[i] = bfloat(x[i]) * 0.1bf + 3.0bf;
    floats[i] = float(x[i]) * 0x1.8p1 + 0x1p-3f + .5 + 5. - 2.f + 1E1;
    """,
    inputs=lambda rng: {"x": rng.normal(size=64).astype(np.float16)},
    outputs={"halves": ((64,), "float16"), "bfloats": ((64,), "bfloat16"), "floats": ((64,), "float32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="literals.half_suffix literals.bfloat_suffix literals.hexadecimal_float literals.unsuffixed_float "
    "literals.exponent types.half types.bfloat",
)
def half_and_bfloat_literals(x):
    h, b, f = np.float16, DTYPES["bfloat16"].type, np.float32
    floats = x.astype(f) * f(3) + f(0.125) + f(0.5) + f(5) - f(2) + f(10)
    return x * h(0.1) + h(2) - h(1.5e-2), x.astype(b) * b(0.1) + b(3), floats


@body(
    """
    uint i = thread_position_in_grid.x;
    ulong big = 0xffff'ffff'ffff'ffffull - 0x1234567890ul;
    long low = -9'000'000'000L;
    uint mask = 0b1010'1010u | 0777u;
    int character = 'A' + '\\n';
    out[4 * i + 0] = long(big);
    out[4 * i + 1] = low + i;
    out[4 * i + 2] = mask;
    out[4 * i + 3] = character + (2147483647 > 0u ? 1 : 0) + (true ? 010 : 0);
    """,
    outputs={"out": ((8, 4), "int64")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="literals.integer types.long types.ulong",
)
def integer_literals():
    row = [-0x1234567890 - 1, -9_000_000_000, 0b10101010 | 0o777, 65 + 10 + 1 + 8]
    out = np.array([row] * 8, np.int64)
    out[:, 1] += np.arange(8)
    return out


@body(
    """
    uint i = thread_position_in_grid.x;
    half x = in[i];
    // An int literal takes the other operand's type, a float literal makes the whole expression float.
    products[2 * i] = float(x * 3);
    products[2 * i + 1] = x * 3.001;
    half kept = x * 2 + 1;
    out[i] = kept / 3;
    """,
    inputs=lambda rng: {"in": rng.normal(size=32).astype(np.float16)},
    outputs={"products": ((32, 2), "float32"), "out": ((32,), "float16")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="literals.unsuffixed_float types.half",
)
def half_with_other_literals(**arrays):
    x = arrays["in"]
    products = np.stack([(x * np.float16(3)).astype(np.float32), x.astype(np.float32) * np.float32(3.001)], axis=1)
    return products, (x * np.float16(2) + np.float16(1)) / np.float16(3)
