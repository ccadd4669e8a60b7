"""Scalar and vector types: their sizes, constructors, components, conversions."""

import numpy as np

from bodies import DTYPES, Dtype, body

# Metal's names of the scalar types, and the dtypes of arrays of them.
SCALARS = {
    "bool": "bool",
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "half": "float16",
    "bfloat": "bfloat16",
    "float": "float32",
}
INTEGERS = {name: dtype for name, dtype in SCALARS.items() if DTYPES[dtype].kind in "iu"}
FLOATS = {name: SCALARS[name] for name in ("half", "bfloat", "float")}
ALIASES = {
    "int8_t": "int8",
    "uint8_t": "uint8",
    "int16_t": "int16",
    "uint16_t": "uint16",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "int64_t": "int64",
    "uint64_t": "uint64",
    "size_t": "uint64",
    "float16_t": "float16",
    "bfloat16_t": "bfloat16",
}
# Names that have vector types too.
VECTOR_ELEMENTS = {name: dtype for name, dtype in SCALARS.items()}


def values(rng, dtype, shape):
    """Numbers over the type's range, small enough to be told apart after an operation or two."""
    kind = DTYPES[dtype].kind
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind == "i":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if kind == "u":
        return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return rng.normal(0, 4, shape).astype(np.float32).astype(DTYPES[dtype])


# ---- Scalars

for _name, _dtype in {**SCALARS, **ALIASES}.items():
    if _name == "bool":
        continue

    def _scalar(x, y, dtype=_dtype):
        one = DTYPES[dtype].type(1)
        with np.errstate(all="ignore"):
            if DTYPES[dtype].kind in "iu":
                return (x + y) * y - one, (x & y) ^ (y | one), np.where(x < y, x, y)
            return (x + y) * y - one, -x / (y * y + one), np.where(x < y, x, y)

    _second = "(a & b) ^ (b | one)" if DTYPES[_dtype].kind in "iu" else "-a / (b * b + one)"
    body(
        f"""
    uint i = thread_position_in_grid.x;
    {_name} a = x[i], b = y[i];
    const {_name} one = 1;
    first[i] = (a + b) * b - one;
    second[i] = {_second};
    smaller[i] = a < b ? a : b;
    """,
        name=f"scalar_{_name}",
        inputs=lambda rng, dtype=_dtype: {"x": values(rng, dtype, 96), "y": values(rng, dtype, 96)},
        outputs={"first": ((96,), _dtype), "second": ((96,), _dtype), "smaller": ((96,), _dtype)},
        grid=(96, 1, 1),
        threadgroup=(32, 1, 1),
        constructs=f"types.{_name}",
    )(_scalar)


@body(
    """
    uint i = thread_position_in_grid.x;
    bool a = x[i], b = y[i];
    bool both = a & b;
    both &= true;
    out[4 * i + 0] = both || !a;
    out[4 * i + 1] = n[i];              // not 0
    out[4 * i + 2] = f[i];
    out[4 * i + 3] = a != b;
    counts[i] = a + b + (a ? 10 : 20) + int(both) * 100;
    """,
    inputs=lambda rng: {
        "x": values(rng, "bool", 64),
        "y": values(rng, "bool", 64),
        "n": rng.integers(-1, 2, 64, np.int32) * 256,
        "f": rng.integers(-1, 2, 64).astype(np.float32) / 8,
    },
    outputs={"out": ((64, 4), "bool"), "counts": ((64,), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.bool",
)
def scalar_bool(x, y, n, f):
    counts = x.astype(np.int32) + y + np.where(x, 10, 20) + (x & y) * 100
    return np.stack([(x & y) | ~x, n != 0, f != 0, x != y], axis=1), counts.astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    complex64_t a = x[i], b = y[i];
    sum[i] = a + b - 1;
    product[i] = a * b;
    product[i] *= complex64_t(0, 1);
    parts[i] = (a.real < b.real) + 2 * (a == a) + 4 * (a != b);
    b.imag = -b.imag;
    norms[i] = (y[i] * b).real;
    """,
    inputs=lambda rng: {
        key: (rng.normal(size=48) + 1j * rng.normal(size=48)).astype(np.complex64) for key in ("x", "y")
    },
    outputs={
        "sum": ((48,), "complex64"),
        "product": ((48,), "complex64"),
        "parts": ((48,), "int32"),
        "norms": ((48,), "float32"),
    },
    grid=(48, 1, 1),
    threadgroup=(48, 1, 1),
    constructs="types.complex64_t",
)
def complex_numbers(x, y):
    real, imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
    # … times i, whose products with 0 are added as well
    zero = np.float32(0)
    product = (real * zero - imag) + 1j * (real + imag * zero)
    parts = (x.real < y.real) + 2 + 4 * (x != y)
    norms = y.real * y.real - y.imag * -y.imag
    return (x + y - np.complex64(1)), product.astype(np.complex64), parts.astype(np.int32), norms


@body(
    """
    uint i = thread_position_in_grid.x;
    short s = bytes[i];                                 // sign-extends
    uchar u = words[i];                                 // takes the low byte
    out[8 * i + 0] = s;
    out[8 * i + 1] = u;
    out[8 * i + 2] = long(float(words[i]));
    out[8 * i + 3] = long(bytes[i]) * words[i];         // wider than an int
    out[8 * i + 4] = bytes[i] * bytes[i];               // promoted to int
    out[8 * i + 5] = uint(words[i]) > bytes[i];         // compared as uint
    out[8 * i + 6] = int(half(words[i] % 2048)) + int(bfloat(bytes[i]));
    out[8 * i + 7] = ushort(words[i]) + short(words[i]);
    """,
    inputs=lambda rng: {"bytes": values(rng, "int8", 64), "words": values(rng, "int32", 64)},
    outputs={"out": ((64, 8), "int64")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.scalar_conversion types.short types.uchar types.long",
)
def scalar_conversions(bytes, words):
    b, w = bytes.astype(np.int64), words.astype(np.int64)
    # % takes the sign of the dividend, as C has it
    remainder = np.fmod(w, 2048).astype(np.float16).astype(np.int64)
    columns = [
        b,
        w & 0xFF,
        words.astype(np.float32).astype(np.int64),
        b * w,
        b * b,
        words.astype(np.uint32) > bytes.astype(np.uint32),
        remainder + bytes.astype(DTYPES["bfloat16"]).astype(np.int64),
        (w & 0xFFFF) + words.astype(np.int16),
    ]
    return np.stack([column.astype(np.int64) for column in columns], axis=1)


@body(
    """
    uint i = thread_position_in_grid.x;
    half h = x[i];
    bfloat b = y[i];
    constexpr bfloat third = bfloat(half(0.333));
    // A cast of each form, an initialisation, an assignment, an argument, a result.
    bfloats[8 * i] = bfloat(h);
    bfloats[8 * i + 1] = (bfloat)h + static_cast<bfloat>(h * h);
    bfloat initialised = h;
    bfloat in_braces{bfloat(h)};
    bfloats[8 * i + 2] = initialised * in_braces;
    bfloats[8 * i + 3] = h;
    bfloats[8 * i + 4] = through<bfloat>(h) + third;
    bfloats[8 * i + 5] = Pair<bfloat>{bfloat(h), b}.sum();
    bfloats[8 * i + 6] = T(h);
    bfloats[8 * i + 7] = bfloat2(half2(h, 1)).x;
    halves[4 * i] = half(b);
    halves[4 * i + 1] = (half)b + through<half>(b);
    halves[4 * i + 2] = b;
    halves[4 * i + 3] = half3(bfloat3(b)).z;
    """,
    header="""
template <typename To, typename From>
To through(From value) {
  return static_cast<To>(value);
}
template <typename T>
struct Pair {
  T first, second;
  T sum() const { return first + second; }
};
""",
    template=[("T", Dtype("bfloat16"))],
    inputs=lambda rng: {
        "x": np.concatenate([rng.normal(size=28) * 100, [65504, 6e-8, np.inf, np.nan]]).astype(np.float16),
        "y": np.concatenate([rng.normal(size=28) * 100, [70000, 3e-8, -np.inf, np.nan]])
        .astype(np.float32)
        .astype(DTYPES["bfloat16"]),
    },
    outputs={"bfloats": ((32, 8), "bfloat16"), "halves": ((32, 4), "float16")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.half_and_bfloat types.half types.bfloat types.vector_conversion structure.static_cast "
    "structure.c_cast",
)
def halves_and_bfloats(x, y):
    b16 = DTYPES["bfloat16"]
    b = x.astype(b16)
    h = y.astype(np.float16)
    third = np.float16(0.333).astype(b16)
    bfloats = [b, b + (x * x).astype(b16), b * b, b, b + third, b + y, b, b]
    return np.stack(bfloats, axis=1), np.stack([h, h + h, h, h], axis=1)


# ---- Vectors


def _vector_body(element, dtype):
    """Everything that vectors of one element type have."""
    lines = ["uint i = thread_position_in_grid.x;", f"device const {element}* in = x + 8 * i;"]
    outputs = 0

    def emit(count, expression):
        nonlocal outputs
        for component in "xyzw"[:count]:
            lines.append(f"out[{{total}} * i + {outputs}] = {expression}.{component};")
            outputs += 1

    for n in (2, 3, 4):
        type_name = f"{element}{n}"
        loaded = ", ".join(f"in[{j}]" for j in range(n))
        other = ", ".join(f"in[{7 - j}]" for j in range(n))
        lines += [f"{type_name} a{n}({loaded});", f"vec<{element}, {n}> b{n} = {type_name}({other});"]
        emit(n, f"{type_name}(in[2])")  # one value for all
        lines.append(f"{type_name} braces{n}{{{loaded}}};")
        emit(n, f"braces{n}")
        lines.append(f"a{n}.x = b{n}[{n - 1}];")
        lines.append(f"b{n}[1] = a{n}.y;")
        emit(n, f"a{n}")
        emit(n, f"b{n}")
        lines.append(f"{type_name} swapped{n} = a{n}.{'yx' if n == 2 else 'zyx' if n == 3 else 'wzyx'};")
        emit(n, f"swapped{n}")
        lines.append(f"swapped{n}.{'yx'} = b{n}.xy;")
        emit(n, f"swapped{n}")
        lines.append(f"a{n} == b{n};")
        lines[-1] = f"bool{n} equal{n} = a{n} == b{n};"
        emit(n, f"{type_name}(equal{n})")
    lines += [
        f"{element}3 three({element}2(in[0], in[1]), in[2]);",
        f"{element}4 four(in[3], three.zyx);",
        f"{element}4 pairs = {element}4(a2, b2);",
        f"{element}4 middle = {element}4(in[0], {element}2(in[5], in[6]), in[7]);",
        f"{element}4 tail = {element}4(in[4], in[3], four.rg);",
        f"{element}4 front = {element}4(a3, in[1]);",
        f"{element}3 reversed({'in[6]'}, b2);",
        "front.rgba = front.abgr;",
        "tail.zw = four.xx;",
    ]
    for count, name in ((3, "three"), (4, "four"), (4, "pairs"), (4, "middle"), (4, "tail"), (4, "front")):
        emit(count, name)
    emit(3, "reversed")
    return "\n".join(lines).replace("{total}", str(outputs)), outputs


def _vector_reference(x):
    rows = []
    for source in x:
        row = []
        a, b = {}, {}
        for n in (2, 3, 4):
            a[n], b[n] = list(source[:n]), [source[7 - j] for j in range(n)]
            row += [source[2]] * n
            row += a[n]
            a[n][0] = b[n][n - 1]
            b[n][1] = a[n][1]
            row += a[n] + b[n]
            swapped = a[n][::-1]
            row += swapped
            swapped[1], swapped[0] = b[n][0], b[n][1]
            row += swapped
            row += [source.dtype.type(p == q) for p, q in zip(a[n], b[n], strict=True)]
        three = [source[0], source[1], source[2]]
        four = [source[3], *three[::-1]]
        row += three + four + a[2] + b[2]
        row += [source[0], source[5], source[6], source[7]]
        row += [source[4], source[3], four[0], four[0]]
        row += [source[1], *a[3][::-1]]
        row += [source[6], *b[2]]
        rows.append(row)
    return np.array(rows, x.dtype)


for _name, _dtype in SCALARS.items():
    _source, _count = _vector_body(_name, _dtype)
    body(
        _source,
        name=f"vectors_{_name}",
        inputs=lambda rng, dtype=_dtype: {"x": values(rng, dtype, (20, 8))},
        outputs={"out": ((20, _count), _dtype)},
        grid=(20, 1, 1),
        threadgroup=(20, 1, 1),
        constructs=f"types.{_name}2 types.{_name}3 types.{_name}4 types.vec types.vector_constructors "
        "types.braced_constructor types.swizzle_read types.swizzle_write types.rgba types.component_index "
        "types.vector_comparison",
    )(_vector_reference)


def _vector_arithmetic(x, y, integer):
    one = x.dtype.type(1)
    with np.errstate(all="ignore"):
        if integer:
            results = [x + y, x - y, x * y, x & y, x | y, x ^ y, ~x, -x, x + one, x << one, y >> one]
        else:
            results = [x + y, x - y, x * y, x / y, -x, x + one, one / y, x * y + one, x - y * y, y - x, +y]
    return np.concatenate([np.concatenate([r[:, :2], r[:, 2:5], r[:, 5:]], axis=1) for r in results], axis=1)


for _name, _dtype in SCALARS.items():
    if _name == "bool":
        continue
    _integer = DTYPES[_dtype].kind in "iu"
    _lines = ["uint i = thread_position_in_grid.x;"]
    _first = 0
    _expressions = (
        ["a + b", "a - b", "a * b", "a & b", "a | b", "a ^ b", "~a", "-a", "ONE + a", "a << ONE", "b >> ONE"]
        if _integer
        else ["a + b", "a - b", "a * b", "a / b", "-a", "a + ONE", "ONE / b", "a * b + ONE", "a - b * b", "b - a", "+b"]
    )
    for _n, _offset in ((2, 0), (3, 2), (4, 5)):
        _components = ", ".join(f"x[9 * i + {_offset + j}]" for j in range(_n))
        _lines += [
            "{",
            f"{_name}{_n} a({_components}), b({_components.replace('x[', 'y[')});",
            f"const {_name} ONE = 1;",
        ]
        for _row, _expression in enumerate(_expressions):
            # Half of them as compound assignments.
            _operator = _expression.split()[1] if _row % 2 == 0 and _expression.count(" ") == 2 else ""
            if _operator and _expression.startswith("a"):
                _lines.append(f"{_name}{_n} r{_row} = a; r{_row} {_operator}= {_expression.split()[2]};")
            else:
                _lines.append(f"{_name}{_n} r{_row} = {_expression};")
            for _j in range(_n):
                _lines.append(f"out[{9 * len(_expressions)} * i + {9 * _row + _offset + _j}] = r{_row}[{_j}];")
        _lines.append("}")
    body(
        "\n".join(_lines),
        name=f"vector_arithmetic_{_name}",
        inputs=lambda rng, dtype=_dtype: {"x": values(rng, dtype, (20, 9)), "y": values(rng, dtype, (20, 9))},
        outputs={"out": ((20, 9 * len(_expressions)), _dtype)},
        grid=(20, 1, 1),
        threadgroup=(20, 1, 1),
        constructs=f"types.vector_arithmetic types.{_name}2 types.{_name}3 types.{_name}4 types.component_index",
    )(lambda x, y, integer=_integer: _vector_arithmetic(x, y, integer))


@body(
    """
    uint i = thread_position_in_grid.x;
    float4 v = ((device const float4*)x)[i];
    half4 h = half4(v);
    device float4* out4 = (device float4*)out + 8 * i;
    float f = 0.3;
    int n = 3;
    // The scalar becomes the vector's element, whatever its own type is.
    out4[0] = 1.5h * v + n - 2u / v;
    out4[1] = float4(h * f + 0.1 + n);
    out4[2] = float4(2 - h / 0.3f);
    // Swizzles are read, negated, assigned to, counted.
    float4 w = v;
    w.xy *= 2;
    w.zw += w.xy;
    w.x += f;
    w.yz++;
    --w.w;
    w[i % 4] -= n;
    out4[3] = w;
    out4[4] = float4(-v.xy * n, -(v.zw - 1));
    w = v.x > 0 ? -v : v.wzyx;
    w.xyz = w.zyx * w.w;
    ++w;
    out4[5] = w--;
    w.rgb = 2;
    w /= 4.0h;
    out4[6] = w + -v.w;
    float2 pair = v.xy;
    pair = 1 - pair.yx;
    float3 three = float3(pair, n) + 1;
    out4[7] = float4(three.zx, +pair);
    """,
    inputs=lambda rng: {"x": rng.normal(size=(24, 4)).astype(np.float32)},
    outputs={"out": ((24, 8, 4), "float32")},
    grid=(24, 1, 1),
    threadgroup=(24, 1, 1),
    constructs="types.mixed_operands types.vector_arithmetic types.swizzle_read types.swizzle_write types.float4 "
    "types.half4 types.component_index",
)
def vectors_with_scalars(x):
    f, h = np.float32, np.float16
    rows = []
    for i, v in enumerate(x):
        halves = v.astype(h)
        w = v.copy()
        w[:2] *= f(2)
        w[2:] += w[:2]
        w[0] += f(0.3)
        w[1:3] += f(1)
        w[3] -= f(1)
        w[i % 4] -= f(3)
        u = -v if v[0] > 0 else v[::-1].copy()
        u[:3] = u[2::-1].copy() * u[3]
        u += f(1)
        last = np.append(np.full(3, 2, f), u[3] - f(1)) / f(4)
        pair = f(1) - v[1::-1]
        rows.append(
            [
                f(1.5) * v + f(3) - f(2) / v,
                (halves * h(0.3) + h(0.1) + h(3)).astype(f),
                (h(2) - halves / h(0.3)).astype(f),
                w,
                np.concatenate([-v[:2] * f(3), -(v[2:] - f(1))]),
                u,
                last + -v[3],
                np.array([4, pair[0] + f(1), *pair], f),
            ]
        )
    return np.array(rows)


@body(
    """
    uint i = thread_position_in_grid.x;
    int4 v = int4(x[i], x[i] >> 8, -7, int(i));
    device int4* out4 = (device int4*)out + 6 * i;
    out4[0] = v % 5 + (v & 0xff) * 2u;
    v <<= 1;
    v.xy >>= 3;
    out4[1] = ~v ^ 5;
    out4[2] = 1 << (v & 7);
    uchar4 c = uchar4(v);
    c += 250;                       // stays a uchar
    c = c * 3 - true;
    out4[3] = int4(c);
    short3 s = short3(v.xyz) | short(1);
    s /= 3;
    out4[4] = int4(int3(s), 0) - 1;
    bool4 odd = (v.x & 1) != 0 ? v > 2 : 2 >= v;
    bool4 small = -8 < v && v < 8;
    out4[5] = int4(odd ^ small) + 10 * int4(!odd | false) + 100 * int4(odd == true) + 1000 * int4(v != v.wzyx);
    """,
    inputs=lambda rng: {"x": rng.integers(-1000, 1000, 32, np.int32)},
    outputs={"out": ((32, 6, 4), "int32")},
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.mixed_operands types.vector_arithmetic types.vector_comparison types.int4 types.uchar4 "
    "types.short3 types.bool4 types.swizzle_write",
)
def integer_vectors_with_scalars(x):
    rows = []
    for i, value in enumerate(x.tolist()):
        v = np.array([value, value >> 8, -7, i], np.int32)
        first = np.fmod(v, 5) + (v & 255) * 2
        v = v << 1
        v[:2] >>= 3
        c = v.astype(np.uint8) + np.uint8(250)
        c = c * np.uint8(3) - np.uint8(1)
        s = v[:3].astype(np.int16) | np.int16(1)
        s = np.trunc(s / 3).astype(np.int32)
        odd = v > 2 if v[0] & 1 else v <= 2
        small = (v > -8) & (v < 8)
        last = (odd ^ small) + 10 * ~odd + 100 * odd + 1000 * (v != v[::-1])
        rows.append([first, ~v ^ 5, 1 << (v & 7), c.astype(np.int32), np.append(s, 0) - 1, last])
    return np.array(rows).astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    int3 a(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
    int3 b = a.yzx;
    bool3 less = a < b, not_less = !less, more = a > b;
    bool3 either = less || more, both = less && more;
    out[8 * i + 0] = all(less | not_less);
    out[8 * i + 1] = any(both);
    out[8 * i + 2] = less.x + 2 * less.y + 4 * less.z;
    out[8 * i + 3] = int(either.x) + 2 * int(either.y) + 4 * int(either.z);
    int3 smaller = select(b, a, less);
    out[8 * i + 4] = smaller.x;
    out[8 * i + 5] = all((a <= b) == (not_less != (a == b)));
    out[8 * i + 6] = any(bool3(false, true, less.x) & bool3(a != b));
    out[8 * i + 7] = (a >= b).y ? smaller.y : smaller.z;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 4, (64, 3), np.int32)},
    outputs={"out": ((64, 8), "int32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.vector_comparison types.bool3 types.int3 functions.all functions.any functions.select",
)
def comparisons_of_vectors(x):
    rows = []
    for a in x.tolist():
        b = [a[1], a[2], a[0]]
        less = [p < q for p, q in zip(a, b, strict=True)]
        unequal = [p != q for p, q in zip(a, b, strict=True)]
        smaller = [p if p < q else q for p, q in zip(a, b, strict=True)]
        rows.append(
            [
                1,
                0,
                less[0] + 2 * less[1] + 4 * less[2],
                unequal[0] + 2 * unequal[1] + 4 * unequal[2],
                smaller[0],
                all((p <= q) == ((not p < q) != (p == q)) for p, q in zip(a, b, strict=True)),
                unequal[1] or (less[0] and unequal[2]),
                smaller[1] if not less[1] else smaller[2],
            ]
        )
    return np.array(rows).astype(np.int32)


@body(
    """
    uint i = thread_position_in_grid.x;
    float4 f = ((device const float4*)x)[i];
    int4 n = int4(f * 10);
    half4 h = half4(f);
    bfloat4 g = bfloat4(h);
    uchar4 c = uchar4(clamp(f * 100, 0.0, 255.0));
    ushort4 w = ushort4(c) * 257;
    ((device int4*)ints)[i] = n + int4(w);
    ((device half4*)halves)[i] = h + half4(g) + half4(float4(c));
    ((device uchar4*)bytes)[i] = c;
    bool4 set = bool4(n);
    float3 three = float3(h.xyz) + float3(int3(true, false, set.w));
    three += 1;
    threes[3 * i] = three.x;
    threes[3 * i + 1] = three.y;
    threes[3 * i + 2] = three.z;
    """,
    inputs=lambda rng: {"x": rng.normal(size=(32, 4)).astype(np.float32)},
    outputs={
        "ints": ((32, 4), "int32"),
        "halves": ((32, 4), "float16"),
        "bytes": ((32, 4), "uint8"),
        "threes": ((32, 3), "float32"),
    },
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.vector_conversion types.float4 types.half4 types.bfloat4 types.int4 types.uchar4 types.ushort4 "
    "types.bool4 types.float3 address_spaces.cast_to_vector functions.clamp",
)
def conversions_of_vectors(x):
    f = np.float32
    n = (x * f(10)).astype(np.int32)
    h = x.astype(np.float16)
    g = h.astype(DTYPES["bfloat16"]).astype(np.float16)
    c = np.clip(x * f(100), 0, 255).astype(np.uint8)
    threes = h[:, :3].astype(f)
    threes[:, 0] += f(1)
    threes[:, 2] += (n[:, 3] != 0).astype(f)
    return n + c.astype(np.int32) * 257, h + g + c.astype(np.float16), c, threes + f(1)


# ---- Bits, sizes, limits


@body(
    """
    uint i = thread_position_in_grid.x;
    uint bits = as_type<uint>(x[i]);
    // The square root's first guess, by halving the exponent.
    float guess = as_type<float>(0x1fbd1df5 + (bits >> 1));
    out[i] = 0.5 * (guess + x[i] / guess);
    half2 halves = as_type<half2>(bits);
    ushort2 words = as_type<ushort2>(x[i]);
    parts[4 * i] = as_type<ushort>(halves.y);
    parts[4 * i + 1] = words.x;
    parts[4 * i + 2] = as_type<uchar4>(bits).w;
    parts[4 * i + 3] = uint(as_type<int>(bits) >> 31) + as_type<ulong>(uint2(bits, 1)) % 1000 +
                       as_type<uint2>(long(bits)).y + as_type<ushort>(as_type<bfloat>(words.y));
    """,
    inputs=lambda rng: {"x": rng.uniform(0.01, 100, 64).astype(np.float32)},
    outputs={"out": ((64,), "float32"), "parts": ((64, 4), "uint32")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.as_type types.half2 types.ushort2 types.uchar4 types.uint2",
)
def bits_of_floats(x):
    f = np.float32
    bits = x.view(np.uint32)
    guess = (np.uint32(0x1FBD1DF5) + (bits >> 1)).view(f)
    high, low = bits >> 16, bits & 0xFFFF
    wide = (bits.astype(np.uint64) + (1 << 32)) % 1000
    parts = np.stack([high, low, bits >> 24, wide.astype(np.uint32) + high], axis=1)
    return f(0.5) * (guess + x / guess), parts.astype(np.uint32)


_SIZES = {
    **{name: (DTYPES[dtype].itemsize,) * 2 for name, dtype in SCALARS.items()},
    **{
        f"{name}{n}": (DTYPES[dtype].itemsize * (2 if n == 2 else 4),) * 2
        for name, dtype in SCALARS.items()
        for n in (2, 3, 4)
    },
    "size_t": (8, 8),
    "ptrdiff_t": (8, 8),
    "complex64_t": (8, 4),
    "device float*": (8, 8),
    "array<float, 3>": (12, 4),
    "atomic_uint": (4, 4),
    "atomic_ulong": (8, 8),
    "Mixed": (48, 16),
}

body(
    "\n".join(
        f'static_assert(sizeof({name}) == {size} && alignof({name}) == {alignment}, "{name}");\n'
        f"sizes[{2 * row}] = sizeof({name});\nsizes[{2 * row + 1}] = alignof({name});"
        for row, (name, (size, alignment)) in enumerate(_SIZES.items())
    ),
    name="sizes_and_alignments",
    header="struct Mixed {\n  char first;\n  float3 second;\n  half third;\n};\n",
    outputs={"sizes": ((len(_SIZES), 2), "uint32")},
    grid=(1, 1, 1),
    threadgroup=(1, 1, 1),
    constructs="types.size_and_alignment types.size_t",
)(lambda: np.array(list(_SIZES.values()), np.uint32))


@body(
    """
    uint i = thread_position_in_grid.x;
    // Three floats and one of padding.
    float3 p = ((device const float3*)points)[i];
    device Record& record = ((device Record*)records)[i];
    record.position = p * 2;
    record.id = ushort(i);
    record.flags = uchar2(1, 2);
    record.mass = half(p.x);
    """,
    header="""
struct Record {
  float3 position;
  ushort id;
  uchar2 flags;
  half mass;
};
""",
    inputs=lambda rng: {"points": rng.normal(size=(16, 4)).astype(np.float32)},
    outputs={"records": ((16, 8), "float32")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    init_value=0,
    constructs="types.size_and_alignment types.float3 types.uchar2 address_spaces.cast_to_struct structure.struct",
)
def records_in_a_buffer(points):
    layout = np.dtype(
        {
            "names": ["position", "id", "flags", "mass"],
            "formats": [(np.float32, 3), np.uint16, (np.uint8, 2), np.float16],
            "offsets": [0, 16, 18, 20],
            "itemsize": 32,
        }
    )
    records = np.zeros(16, layout)
    records["position"] = points[:, :3] * np.float32(2)
    records["id"] = np.arange(16)
    records["flags"] = (1, 2)
    records["mass"] = points[:, 0].astype(np.float16)
    out = np.frombuffer(records.tobytes(), np.float32).reshape(16, 8).copy()
    return out


@body(
    """
    uint i = thread_position_in_grid.x;
    array<float, 4> weights = {0.5, 1, 1.5, 2};
    array<array<int, 2>, 3> table{};
    weights[i % 4] += 10;
    for (uint j = 0; j < table.size(); ++j) table[j][i & 1] = int(j) + 1;
    float total = 0;
    for (float weight : weights) total += weight;
    for (const thread auto& row : table) total += row[0] * 2 + row[1] * 3;
    out[i] = total + weights.back();
    """,
    outputs={"out": ((8,), "float32")},
    grid=(8, 1, 1),
    threadgroup=(8, 1, 1),
    constructs="types.array structure.dynamic_local_array",
)
def arrays_of_fixed_size():
    return np.array([15 + 6 * (2 if i % 2 == 0 else 3) + (12 if i % 4 == 3 else 2) for i in range(8)], np.float32)


_LIMITS = {
    "float": ("float32", ["max", "min", "lowest", "epsilon", "infinity", "denorm_min", "quiet_NaN"]),
    "half": ("float16", ["max", "min", "lowest", "epsilon", "infinity", "denorm_min", "quiet_NaN"]),
    "bfloat": ("bfloat16", ["max", "min", "lowest", "epsilon", "infinity", "denorm_min", "quiet_NaN"]),
    **{name: (dtype, ["max", "min", "lowest"]) for name, dtype in INTEGERS.items()},
}


def _limit(dtype, name):
    import ml_dtypes

    if DTYPES[dtype].kind in "iu":
        return np.iinfo(dtype).max if name == "max" else np.iinfo(dtype).min
    info = ml_dtypes.finfo(DTYPES[dtype])
    return {
        "max": info.max,
        "min": info.smallest_normal,
        "lowest": info.min,
        "epsilon": info.eps,
        "infinity": np.inf,
        "denorm_min": info.smallest_subnormal,
        "quiet_NaN": np.nan,
    }[name]


for _name, (_dtype, _members) in _LIMITS.items():
    body(
        "\n".join(
            f"out[{row}] = {'metal::' if row % 2 else ''}numeric_limits<{_name}>::{member}();"
            for row, member in enumerate(_members)
        )
        + f'\nstatic_assert(numeric_limits<{_name}>::is_specialized, "");',
        name=f"numeric_limits_{_name}",
        outputs={"out": ((len(_members),), _dtype)},
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        constructs=f"types.numeric_limits types.{_name}",
    )(
        lambda dtype=_dtype, members=_members: np.array(
            [DTYPES[dtype].type(_limit(dtype, member)) for member in members], DTYPES[dtype]
        )
    )


_CONSTANTS = {
    "M_E_F": np.e,
    "M_LOG2E_F": np.log2(np.e),
    "M_LOG10E_F": np.log10(np.e),
    "M_LN2_F": np.log(2),
    "M_LN10_F": np.log(10),
    "M_PI_F": np.pi,
    "M_PI_2_F": np.pi / 2,
    "M_PI_4_F": np.pi / 4,
    "M_1_PI_F": 1 / np.pi,
    "M_2_PI_F": 2 / np.pi,
    "M_2_SQRTPI_F": 2 / np.sqrt(np.pi),
    "M_SQRT2_F": np.sqrt(2),
    "M_SQRT1_2_F": np.sqrt(0.5),
    "INFINITY": np.inf,
    "-INFINITY": -np.inf,
    "NAN": np.nan,
    "HUGE_VALF": np.inf,
    "MAXFLOAT": np.finfo(np.float32).max,
    "FLT_MAX": np.finfo(np.float32).max,
    "-FLT_MAX": np.finfo(np.float32).min,
    "FLT_MIN": np.finfo(np.float32).tiny,
    "FLT_EPSILON": np.finfo(np.float32).eps,
    "FLT_MANT_DIG": 24,
    "HALF_MAX": 65504,
    "HALF_MIN": 2**-14,
    "HALF_EPSILON": 2**-10,
    "M_PI_H": np.float16(np.pi),
    "INT_MAX": np.float32(2**31 - 1),
    "UCHAR_MAX": 255,
    "CHAR_BIT": 8,
}
body(
    "\n".join(f"out[{row}] = {name};" for row, name in enumerate(_CONSTANTS)),
    name="constants",
    outputs={"out": ((len(_CONSTANTS),), "float32")},
    grid=(1, 1, 1),
    threadgroup=(1, 1, 1),
    constructs="types.INFINITY types.NAN types.HUGE_VALF types.M_constants types.FLT_constants types.HALF_constants",
)(lambda: np.array(list(_CONSTANTS.values()), np.float64).astype(np.float32))


# ---- The larger or smaller of two halves, chosen by a condition: x86's maximum would choose otherwise


def _choices_of_halves(x):
    three, h = np.float16(3), np.float16
    first, other = x, x[[1] * len(x)]
    with np.errstate(invalid="ignore"):
        columns = [
            np.where(first > three, first, three),
            np.where(first < three, first, three),
            np.where(three >= first, three, first),
            np.where(other > three, other, three),
            np.where(other < three, other, three),
            np.where(first <= other, other, first),
        ]
    return np.stack([column.astype(h) for column in columns], axis=1)


body(
    """
    uint i = thread_position_in_grid.x;
    half v = x[i], same = x[1];
    y[6 * i] = v > 3.0h ? v : 3.0h;
    y[6 * i + 1] = v < 3.0h ? v : 3.0h;
    y[6 * i + 2] = 3.0h >= v ? 3.0h : v;
    y[6 * i + 3] = same > 3.0h ? same : 3.0h;
    y[6 * i + 4] = same < 3.0h ? same : 3.0h;
    y[6 * i + 5] = v <= same ? same : v;
    """,
    name="choices_of_halves",
    inputs=lambda rng: {"x": np.tile(np.array([1, 5, np.nan, -np.inf, np.inf, -0.0, 3, -7], np.float16), 8)},
    outputs={"y": ((64, 6), "float16")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.half literals.half_suffix",
)(_choices_of_halves)


# ---- A type that is a template argument

for _dtype in ("float32", "float16", "bfloat16", "int32", "uint8", "complex64", "bool", "int64"):

    def _cast_twice(x, dtype=_dtype):
        return x.astype(DTYPES[dtype]) if dtype != "bool" else x != 0

    body(
        """
    uint i = thread_position_in_grid.x;
    T value = static_cast<T>(x[i]);
    if constexpr (KEEP) out[i * STEP] = value;
    """,
        name=f"template_type_{_dtype}",
        inputs=lambda rng: {"x": rng.integers(0, 3, 32, np.int32)},
        template=[("T", Dtype(_dtype)), ("STEP", 1), ("KEEP", True)],
        outputs={"out": ((32,), _dtype)},
        grid=(32, 1, 1),
        threadgroup=(32, 1, 1),
        constructs="structure.template_arguments structure.if_constexpr structure.static_cast",
    )(_cast_twice)
