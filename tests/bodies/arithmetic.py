"""Arithmetic that C++ leaves undefined (docs/language.md 4.3): the values that Kiln gives it.

x / 0 is x, x % 0 is 0, MIN / -1 is MIN, MIN % -1 is 0; shifts are modulo the width; floats that do not fit into an
integer saturate, and a NaN becomes 0; signed overflow wraps.
"""

import ml_dtypes
import numpy as np

from bodies import DTYPES, body
from bodies.types import FLOATS, INTEGERS

_COUNT = 81


def _extremes(rng, dtype):
    info = np.iinfo(dtype)
    chosen = [info.min, info.max, 0, 1, info.max // 2, 7, info.min + 1, 2, -1 if info.min else info.max - 1]
    return np.array(chosen, dtype)


def _pairs(rng, dtype):
    """Every extreme with every other."""
    some = _extremes(rng, dtype)
    return {"x": np.repeat(some, 9), "y": np.tile(some, 9)}


def _wrap(value, bits, signed):
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _divide(a, b):
    """Towards zero."""
    if b == 0:
        return a, 0
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def _integer_rows(x, y, vectors):
    dtype = x.dtype
    bits, signed = dtype.itemsize * 8, dtype.kind == "i"
    # Scalars smaller than an int are promoted to it, vectors are not.
    width = bits if vectors else max(bits, 32)
    wide_signed = signed or width > bits
    rows = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        quotient, remainder = _divide(a, b)
        shift = b % width
        rows.append(
            [
                quotient,
                remainder,
                a << shift,
                _wrap(a, width, wide_signed) >> shift,
                a + b,
                a - b,
                a * b,
                -a,
            ]
        )
    return np.array([[_wrap(v, bits, signed) for v in row] for row in rows], dtype)


for _name, _dtype in INTEGERS.items():
    body(
        f"""
    uint i = thread_position_in_grid.x;
    {_name} a = x[i], b = y[i];
    out[8 * i + 0] = a / b;
    out[8 * i + 1] = a % b;
    out[8 * i + 2] = a << b;
    out[8 * i + 3] = a >> b;
    out[8 * i + 4] = a + b;
    {_name} difference = a;
    difference -= b;
    out[8 * i + 5] = difference;
    {_name} product = a;
    product *= b;
    out[8 * i + 6] = product;
    out[8 * i + 7] = -a;
    """,
        name=f"undefined_arithmetic_{_name}",
        inputs=lambda rng, dtype=_dtype: _pairs(rng, dtype),
        outputs={"out": ((_COUNT, 8), _dtype)},
        grid=(_COUNT, 1, 1),
        threadgroup=(27, 1, 1),
        constructs="arithmetic.division arithmetic.shifts arithmetic.signed_overflow",
    )(lambda x, y: _integer_rows(x, y, False))
    body(
        f"""
    uint i = 3 * thread_position_in_grid.x;
    {_name}3 a(x[i], x[i + 1], x[i + 2]), b(y[i], y[i + 1], y[i + 2]);
    {_name}3 results[8] = {{a / b, a % b, a << b, a >> b, a + b, a - b, a * b, -a}};
    for (int row = 0; row < 8; ++row)
      for (int j = 0; j < 3; ++j) out[8 * (i + j) + row] = results[row][j];
    """,
        name=f"undefined_vector_arithmetic_{_name}",
        inputs=lambda rng, dtype=_dtype: _pairs(rng, dtype),
        outputs={"out": ((_COUNT, 8), _dtype)},
        grid=(27, 1, 1),
        threadgroup=(27, 1, 1),
        constructs=f"arithmetic.division arithmetic.shifts arithmetic.signed_overflow types.{_name}3 "
        "types.vector_arithmetic",
    )(lambda x, y: _integer_rows(x, y, True))


@body(
    """
    // Divisors and shifts that are known, or are the same for all.
    uint i = thread_position_in_grid.x;
    int v = x[i];
    int zero = 0, big = 37;
    out[8 * i + 0] = v / zero;
    out[8 * i + 1] = v % zero;
    out[8 * i + 2] = v / minus_one;
    out[8 * i + 3] = v % minus_one;
    out[8 * i + 4] = v << big;
    out[8 * i + 5] = uint(v) >> (big + 32);
    int count = 0;
    for (int j = v; j > v - 1 && count < 3; ++j) ++count;      // j wraps
    out[8 * i + 6] = count;
    out[8 * i + 7] = v + 1 > v;                                // not assumed
    """,
    inputs=lambda rng: {"x": np.array([2**31 - 1, -(2**31), 5, -5, 0, 1, -1, 2**31 - 2], np.int32), "minus_one": -1},
    outputs={"out": ((8, 8), "int32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="arithmetic.division arithmetic.shifts arithmetic.signed_overflow",
)
def undefined_arithmetic_of_constants(x, minus_one):
    rows = []
    for v in x.tolist():
        count, j = 0, v
        while j > _wrap(v - 1, 32, True) and count < 3:
            count, j = count + 1, _wrap(j + 1, 32, True)
        row = [v, 0, -v, 0, v << 5, (v & 0xFFFFFFFF) >> 5, count, _wrap(v + 1, 32, True) > v]
        rows.append([_wrap(int(value), 32, True) for value in row])
    return np.array(rows, np.int32)


def _saturated(x, dtype):
    info = np.iinfo(dtype)
    out = []
    for value in x.astype(np.float64).tolist():
        if np.isnan(value):
            out.append(0)
        else:
            out.append(min(max(int(np.clip(value, -1e30, 1e30)), info.min), info.max))
    return np.array(out, dtype)


def _large_floats(rng, dtype):
    limit = float(ml_dtypes.finfo(DTYPES[dtype]).max)
    powers = [2.0**n for n in (7, 8, 15, 16, 31, 32, 63, 64) if 2.0**n <= limit]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.9, -0.9, 1.5, -1.5, 127.5, -128.5, 255.5, limit, -limit]
    numbers = special + powers + [-p for p in powers] + [p - p / 128 for p in powers] + [-p - p / 64 for p in powers]
    out = np.zeros(48, np.float32)
    out[: len(numbers)] = np.array(numbers, np.float32)
    return out.astype(DTYPES[dtype])


for _float, _dtype in FLOATS.items():
    _lines = ["uint i = thread_position_in_grid.x;", f"{_float} v = x[i];"]
    for _name in INTEGERS:
        _lines.append(f"to_{_name}[2 * i] = {_name}(v);")
        _lines.append(f"to_{_name}[2 * i + 1] = {_name}2({_float}2(1, v)).y;")
    body(
        "\n".join(_lines),
        name=f"{_float}_to_integers",
        inputs=lambda rng, dtype=_dtype: {"x": _large_floats(rng, dtype)},
        outputs={f"to_{_name}": ((48, 2), _integer) for _name, _integer in INTEGERS.items()},
        grid=(48, 1, 1),
        threadgroup=(48, 1, 1),
        constructs="arithmetic.float_to_integer types.scalar_conversion types.vector_conversion",
    )(lambda x: tuple(np.repeat(_saturated(x, dtype)[:, None], 2, axis=1) for dtype in INTEGERS.values()))


def _rounded_once(x, dtype):
    """From integers: through a float64 rounded to odd where 53 bits do not hold them."""
    out = []
    for value in x.tolist():
        if abs(value) < 2**53:
            exact = float(value)
        else:
            shift = abs(value).bit_length() - 53
            kept = abs(value) >> shift
            if kept << shift != abs(value):
                kept |= 1
            exact = float(kept) * 2.0**shift * (1 if value >= 0 else -1)
        if dtype == "float32":
            out.append(np.float32(exact))
            continue
        # then to odd once more, in float32
        near = np.float32(exact)
        bits = near.view(np.int32)
        if float(near) != exact and not bits & 1:
            bits = bits + np.int32(1 if (exact > float(near)) == (exact > 0) else -1)
        out.append(np.int32(bits).view(np.float32).astype(DTYPES[dtype]))
    return np.array(out).astype(DTYPES[dtype])


for _name, _dtype in INTEGERS.items():

    def _integers(rng, dtype=_dtype):
        info = np.iinfo(dtype)
        shifts = rng.integers(0, info.bits - 1, 60)
        numbers = rng.integers(info.min, info.max, 60, dtype, endpoint=True) >> shifts.astype(dtype)
        near = [v for v in (65504, 65519, 65520, 65521, 2049, 2051, 257, 259, 2**24 + 1, 2**53 + 1) if v <= info.max]
        return np.concatenate([numbers, np.array([info.min, info.max, 0, *near], dtype)])

    _size = len(_integers(np.random.default_rng(0)))
    body(
        """
    uint i = thread_position_in_grid.x;
    halves[i] = half(x[i]);
    bfloats[i] = bfloat(x[i]);
    floats[i] = float(x[i]);
    """,
        name=f"{_name}_to_floats",
        inputs=lambda rng, make=_integers: {"x": make(rng)},
        outputs={"halves": ((_size,), "float16"), "bfloats": ((_size,), "bfloat16"), "floats": ((_size,), "float32")},
        grid=(_size, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="arithmetic.integer_to_float types.scalar_conversion",
    )(lambda x: tuple(_rounded_once(x, dtype) for dtype in ("float16", "bfloat16", "float32")))


@body(
    """
    uint i = thread_position_in_grid.x;
    float a = x[i], b = y[i];
    out[8 * i + 0] = a / b;
    out[8 * i + 1] = a * b;                    // subnormals are kept
    out[8 * i + 2] = a + b - b;                // not simplified
    out[8 * i + 3] = (a - a) * b;
    out[8 * i + 4] = a < b ? a : b;
    out[8 * i + 5] = a == b;
    out[8 * i + 6] = !(a < b) == (a >= b);
    out[8 * i + 7] = float(half(a)) + float(bfloat(b));
    """,
    inputs=lambda rng: (lambda some: {"x": np.repeat(some, 10), "y": np.tile(some, 10)})(
        np.array([0.0, -0.0, 1e-38, -1e-45, np.inf, -np.inf, np.nan, 3.3, -70000.5, 3.4e38], np.float32)
    ),
    outputs={"out": ((100, 8), "float32")},
    grid=(100, 1, 1),
    threadgroup=(100, 1, 1),
    constructs="arithmetic.ieee",
)
def ieee_arithmetic(x, y):
    columns = [
        x / y,
        x * y,
        x + y - y,
        (x - x) * y,
        np.where(x < y, x, y),
        x == y,
        ~(x < y) == (x >= y),
        x.astype(np.float16).astype(np.float32) + y.astype(DTYPES["bfloat16"]).astype(np.float32),
    ]
    return np.stack([column.astype(np.float32) for column in columns], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    // Each operation is rounded to half.
    half a = x[i], b = y[i];
    half sum = a + b, product = a * b;
    halves[i] = (sum * product - a) / (b * b + 1.0h);
    bfloat c = bfloat(a), d = bfloat(b);
    bfloats[i] = (c * d + c) / (d - 3.0bf);
    """,
    inputs=lambda rng: {key: (rng.normal(size=256) * 100).astype(np.float16) for key in "xy"},
    outputs={"halves": ((256,), "float16"), "bfloats": ((256,), "bfloat16")},
    grid=(256, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="arithmetic.small_floats types.half types.bfloat literals.half_suffix literals.bfloat_suffix",
)
def small_floats_round_each_time(x, y):
    b16 = DTYPES["bfloat16"]
    c, d = x.astype(b16), y.astype(b16)
    halves = ((x + y) * (x * y) - x) / (y * y + np.float16(1))
    return halves, (c * d + c) / (d - b16.type(3))


@body(
    """
    uint i = thread_position_in_grid.x;
    float v = x[i];
    device float* row = out + 10 * i;
    row[0] = exp(-INFINITY + v);
    row[1] = v + NAN;
    row[2] = exp(v) - exp(v);           // 0, or NaN where it is infinite
    row[3] = v * 0x1p-120 * 0x1p-20;    // subnormal, and back
    row[4] = row[3] * 0x1p100 * 0x1p40;
    row[5] = max(v, NAN) + min(NAN, v);
    row[6] = sqrt(-v * v - 1);
    row[7] = v == v ? 1 / v : 0;
    row[8] = (v + 0x1p24) - 0x1p24;     // not reassociated
    // As a softmax with a mask needs it.
    float masked = i % 2 ? v : -INFINITY;
    row[9] = exp(masked - 60) / (exp(masked - 60) + 1);
    """,
    inputs=lambda rng: {"x": np.array([1, -1.5, 3.25, 0.125, -7, 100, 1e-30, 2], np.float32)},
    outputs={"out": ((8, 10), "float32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    tolerance=2**-21,
    constructs="arithmetic.ieee functions.exp functions.sqrt types.INFINITY types.NAN",
)
def infinities_and_subnormals(x):
    f = np.float32
    zero = 0 * x
    wide = x.astype(np.float64)
    small = x * f(2.0**-120) * f(2.0**-20)
    masked = np.where(np.arange(8) % 2, wide, -np.inf)
    columns = [
        zero,
        zero + f(np.nan),
        np.where(x > 89, np.nan, 0),
        small,
        small * f(2.0**100) * f(2.0**40),
        x + x,
        zero + f(np.nan),
        1 / x,
        (x + f(2**24)) - f(2**24),
        np.exp(masked - 60) / (np.exp(masked - 60) + 1),
    ]
    return np.stack([column.astype(np.float64) for column in columns], axis=1)


# ---- What is known while compiling


def _known_cases():
    """Expressions of constants, with the same expressions of what is loaded, and their values."""
    low, high = -(2**31), 2**31 - 1
    cases = []  # expression, operands, value

    def add(expression, operands, value):
        cases.append((expression, operands, value))

    for a, b in ((5, 0), (-5, 0), (low, -1), (0, 0), (low, 0), (high, -1), (-7, 2)):
        quotient, remainder = _divide(a, b)
        add("{0} / {1}", (a, b), _wrap(quotient, 32, True))
        add("{0} % {1}", (a, b), remainder)
    for a, b in ((1, 32), (1, 40), (3, -1), (-5, 33), (low, 31), (-1, 63)):
        add("{0} << {1}", (a, b), _wrap(a << b % 32, 32, True))
        add("{0} >> {1}", (a, b), a >> b % 32)
    for a, b in ((high, 1), (low, -1), (high, high)):
        add("{0} + {1}", (a, b), _wrap(a + b, 32, True))
        add("{0} * {1}", (a, b), _wrap(a * b, 32, True))
    add("-{0}", (low,), low)
    return cases


_CASES = _known_cases()
_FLOAT_CASES = (
    "1e20",
    "-1e20",
    "INFINITY",
    "-INFINITY",
    "NAN",
    "2147483648.0",
    "-2147483904.0",
    "300.5",
    "-1.5",
    "5e9",
)


def _constants_source():
    def written(value):
        return f"({value})" if value > -(2**31) else "(-2147483647 - 1)"

    lines = ["uint i = thread_position_in_grid.x;"]
    operand = 0
    for row, (expression, operands, _) in enumerate(_CASES):
        known = [written(value) for value in operands]
        loaded = [f"x[{operand + k}]" for k in range(len(operands))]
        operand += len(operands)
        lines.append(f"constexpr int {', '.join(f'c{row}_{k} = {value}' for k, value in enumerate(known))};")
        for column, arguments in enumerate((known, loaded, [f"c{row}_{k}" for k in range(len(operands))])):
            lines.append(f"out[{3 * row + column}] = {expression.format(*arguments)};")
    for row, value in enumerate(_FLOAT_CASES):
        for column, to in enumerate(("int", "uint", "uchar", "short", "long")):
            at = 10 * row + 2 * column
            lines.append(f"converted[{at}] = {to}({value}); converted[{at + 1}] = {to}(floats[{row}]);")
    return "\n".join(lines)


@body(
    _constants_source(),
    inputs=lambda rng: {
        "x": np.array([value for _, operands, _ in _CASES for value in operands], np.int32),
        "floats": np.array([float(v.replace("INFINITY", "inf")) for v in _FLOAT_CASES], np.float32),
    },
    outputs={"out": ((len(_CASES), 3), "int32"), "converted": ((len(_FLOAT_CASES), 5, 2), "int64")},
    grid=(1, 1, 1),
    threadgroup=(1, 1, 1),
    constructs="arithmetic.constants arithmetic.division arithmetic.shifts arithmetic.signed_overflow "
    "arithmetic.float_to_integer",
)
def constants_have_the_values_of_run_time(x, floats):
    out = np.repeat(np.array([value for _, _, value in _CASES], np.int32)[:, None], 3, axis=1)
    columns = [_saturated(floats, dtype).astype(np.int64) for dtype in ("int32", "uint32", "uint8", "int16", "int64")]
    return out, np.repeat(np.stack(columns, axis=1)[:, :, None], 2, axis=2)


# ---- Modes

for _mode in ("safe", "relaxed", "fast"):
    body(
        """
    uint i = thread_position_in_grid.x;
    float v = x[i], w = y[i];
    out[6 * i + 0] = v / w + w / v;
    out[6 * i + 1] = exp(v) * log(w);
    out[6 * i + 2] = sqrt(v * v + w * w) + rsqrt(v);
    out[6 * i + 3] = sin(v) + 2 + cos(w) * 0.5;
    out[6 * i + 4] = pow(v, w) + tanh(w);
    float sum = 0;
    for (int j = 0; j < 8; ++j) sum += x[(i + j) % 64] * y[j];
    out[6 * i + 5] = sum;
    #ifdef __FAST_MATH__
    fast[i] = true;
    #else
    fast[i] = false;
    #endif
    """,
        name=f"math_mode_{_mode}",
        inputs=lambda rng: {key: rng.uniform(1.5, 3, 64).astype(np.float32) for key in "xy"},
        outputs={"out": ((64, 6), "float32"), "fast": ((64,), "bool")},
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        tolerance=2e-5,
        compile_options={"math_mode": _mode},
        constructs="arithmetic.math_modes structure.conditional_macro",
    )(lambda x, y, mode=_mode: _in_float64(x.astype(np.float64), y.astype(np.float64), mode))


def _in_float64(x, y, mode):
    sums = [sum(x[(i + j) % 64] * y[j] for j in range(8)) for i in range(64)]
    columns = [
        x / y + y / x,
        np.exp(x) * np.log(y),
        np.hypot(x, y) + 1 / np.sqrt(x),
        np.sin(x) + 2 + np.cos(y) * 0.5,
        x**y + np.tanh(y),
        np.array(sums),
    ]
    return np.stack(columns, axis=1), np.full(64, mode == "fast")


@body(
    """
    // Each lane divides by zero, or overflows, at one step that is known when compiling.
    int lane = int(thread_index_in_simdgroup);
    uint i = thread_position_in_grid.x;
    long l = x[i];
    int n = int(x[i]), rest = n;
    uint u = uint(x[i]);
    for (int k = 0; k < 3; ++k) {
      simdgroup_barrier(mem_flags::mem_none);
      l /= k - lane;
      n /= lane - k - 1;
      rest %= 2 * lane - k;
      u /= uint(lane) >> k;
    }
    if (lane > 1) u += 7u / uint(lane - 1 - i / 32);
    a[i] = l;
    b[i] = n;
    c[i] = rest;
    d[i] = u;
    """,
    inputs=lambda rng: {"x": np.r_[rng.integers(-(2**31), 2**31, 66), np.full(6, -(2**31))].astype(np.int64)},
    outputs={"a": ((72,), "int64"), "b": ((72,), "int32"), "c": ((72,), "int32"), "d": ((72,), "uint32")},
    grid=(72, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="arithmetic.division",
)
def some_lanes_divide_by_zero(x):
    rows = []
    for i, value in enumerate(x.tolist()):
        lane = i % 32
        wide, number, rest, unsigned = value, value, value, value % 2**32
        for k in range(3):
            wide = _divide(wide, k - lane)[0]
            number = _wrap(_divide(number, lane - k - 1)[0], 32, True)
            rest = _divide(rest, 2 * lane - k)[1]
            unsigned = _divide(unsigned, lane >> k)[0]
        if lane > 1:
            unsigned += _divide(7, (lane - 1 - i // 32) % 2**32)[0]
        rows.append((wide, number, rest, unsigned))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


# ---- Sums of bytes over loops that run a known number of times: what fits into 16 bits, and what does not


def _windows(x, height, width):
    """Of each of the first 200 places in 8 rows: rows and columns from there on."""
    rows = np.arange(8)[:, None, None, None] + np.arange(height)[None, None, :, None]
    columns = np.arange(200)[None, :, None, None] + np.arange(width)[None, None, None, :]
    return x[rows, columns].astype(np.int64)


for _name, _height, _width, _statement, _of, _dtype in (
    ("bytes", 11, 11, "s += x[at];", lambda w, c: w, "int32"),
    ("most", 1, 257, "s += x[at];", lambda w, c: w, "int32"),
    ("more_than_the_most", 1, 258, "s += x[at];", lambda w, c: w, "int32"),
    ("nested_most", 16, 16, "s += abs(int(x[at]) - int(x[place]));", lambda w, c: np.abs(w - c), "uint32"),
    ("differences", 9, 9, "s -= x[at] - x[place];", lambda w, c: c - w, "int32"),
    ("limited", 7, 7, "s += clamp(x[at] - x[place], -9, 9);", lambda w, c: np.clip(w - c, -9, 9), "int32"),
    ("counted", 13, 13, "s += x[at] < x[place] ? 1 : 0;", lambda w, c: w < c, "uint8"),
    ("some", 12, 5, "if (x[at] & 1) s += x[at]; else s -= 3;", lambda w, c: np.where(w & 1, w, -3), "int32"),
    ("bits", 4, 10, "s += popcount(uint(x[at] ^ x[place]));", lambda w, c: np.bitwise_count(w ^ c), "uint16"),
    ("doubled", 1, 9, "s += s + x[at];", None, "int32"),
):

    def _summed(x, height=_height, width=_width, of=_of, dtype=_dtype):
        windows = _windows(x, height, width)
        if of is None:
            weights = 2 ** np.arange(width)[::-1]
            return (windows * weights).sum(axis=(2, 3)).astype(dtype)
        return of(windows, windows[..., :1, :1]).sum(axis=(2, 3)).astype(dtype)

    body(
        f"""
        uint column = thread_position_in_grid.x, row = thread_position_in_grid.y;
        uint place = row * x_shape[1] + column;
        int s = 0;
        for (int j = 0; j < {_height}; ++j)
          for (int k = 0; k < {_width}; ++k) {{
            uint at = place + j * x_shape[1] + k;
            {_statement}
          }}
        y[row * 200 + column] = s;
        """,
        name=f"sums_of_windows_{_name}",
        inputs=lambda rng: {
            # Half of the rows have the largest bytes.
            "x": np.where(rng.random((24, 1)) < 0.5, 255, rng.integers(0, 256, (24, 460))).astype(np.uint8)
        },
        outputs={"y": ((8, 200), _dtype)},
        grid=(200, 8, 1),
        threadgroup=(40, 2, 1),
        constructs="types.uchar",
    )(_summed)
