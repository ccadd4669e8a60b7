"""Vectors of floats in the bits of an integer: pack_…, unpack_… and pixel data types.

References are of integers and float64, in which each product and quotient here is exact or far enough from the middle
between two floats. Every format gets all its special numbers: ends, ties, NaNs, infinities, what is out of range.
"""

import math

import ml_dtypes
import numpy as np

from bodies import DTYPES, body

_COUNT = 256
_TYPES = {"float": "float32", "half": "float16"}


def _fields(kind, *widths):
    """(kind, first bit, bits) of each component."""
    first, fields = 0, []
    for width in widths:
        fields.append((kind, first, width))
        first += width
    return fields


_SRGB = [*(("srgb", first, 8) for first in (0, 8, 16)), ("unorm", 24, 8)]
# The format's name where it is unpacked, where it is packed, its fields and its integer.
_FORMATS = [
    ("unorm4x8", "unorm4x8", _fields("unorm", 8, 8, 8, 8), "uint"),
    ("snorm4x8", "snorm4x8", _fields("snorm", 8, 8, 8, 8), "uint"),
    ("unorm2x16", "unorm2x16", _fields("unorm", 16, 16), "uint"),
    ("snorm2x16", "snorm2x16", _fields("snorm", 16, 16), "uint"),
    ("unorm10a2", "unorm10a2", _fields("unorm", 10, 10, 10, 2), "uint"),
    ("snorm10a2", "snorm10a2", _fields("snorm", 10, 10, 10, 2), "uint"),
    ("unorm565", "unorm565", _fields("unorm", 5, 6, 5), "ushort"),
    ("unorm4x8_srgb", "srgb_unorm4x8", _SRGB, "uint"),
]


def _linear(srgb):
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _srgb(linear):
    return np.where(linear < 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def unpacked(words, fields, dtype):
    """The components of each word."""
    columns = []
    for kind, first, bits in fields:
        field = (words.astype(np.int64) >> first) & ((1 << bits) - 1)
        if kind == "snorm":
            field = np.where(field >> (bits - 1), field - (1 << bits), field)
            values = np.maximum(field / ((1 << (bits - 1)) - 1), -1)
        else:
            values = field / ((1 << bits) - 1)
            values = _linear(values) if kind == "srgb" else values
        columns.append(values.astype(DTYPES[dtype]))
    return np.stack(columns, axis=-1)


def packed(vectors, fields, dtype):
    """The word of each row of `vectors`."""
    words = np.zeros(len(vectors), np.int64)
    for column, (kind, first, bits) in zip(vectors.astype(np.float64).T, fields, strict=True):
        column = np.where(np.isnan(column), 0, column)
        if kind == "snorm":
            field = np.rint(np.clip(column, -1, 1) * ((1 << (bits - 1)) - 1))
        elif kind == "srgb":
            field = np.floor(_srgb(np.clip(column, 0, 1)) * 255 + 0.5)
        else:
            field = np.rint(np.clip(column, 0, 1) * ((1 << bits) - 1))
        words |= (field.astype(np.int64) & ((1 << bits) - 1)) << first
    return words.astype(dtype)


def words_of(rng, dtype, fields):
    """Random words; before them those that have one value in all fields, and those with one field that counts up."""
    words = rng.integers(0, 1 << 8 * DTYPES[dtype].itemsize, _COUNT, np.uint64)
    words[:4] = 0, (1 << 64) - 1, 0x8000800080008000, 0x8080808080808080
    for i, (_, first, bits) in enumerate(fields):
        words[4 + 60 * i : 64 + 60 * i] = np.linspace(0, (1 << bits) - 1, 60).astype(np.uint64) << np.uint64(first)
    return words.astype(DTYPES[dtype])


def vectors_of(rng, dtype, fields):
    """Numbers around the range, then special ones, ties between two integers and their neighbours."""
    kind, _, bits = fields[0]
    largest = (1 << (bits - (kind == "snorm"))) - 1
    info = ml_dtypes.finfo(DTYPES[dtype])
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.nan, np.inf, -np.inf, float(info.max), -float(info.max)]
    special += [float(info.smallest_normal), float(info.smallest_subnormal), -float(info.smallest_subnormal), 2, -3]
    vectors = rng.uniform(-1.3, 1.3, (_COUNT, len(fields)))
    ties = ((rng.integers(0, largest, 60) + 0.5) / largest).astype(DTYPES[dtype])
    if kind == "srgb":
        ties = _linear((rng.integers(0, largest, 60) + 0.5) / largest).astype(DTYPES[dtype])
    special += [*ties, *np.nextafter(ties, DTYPES[dtype].type(2)), *np.nextafter(ties, DTYPES[dtype].type(-2))]
    for column in range(len(fields)):
        vectors[: len(special), column] = np.roll(np.array(special, np.float64), 7 * column)
    return vectors.astype(DTYPES[dtype])


def _register(unpacked_format, packed_format, fields, integer):
    n = len(fields)
    word = {"uint": "uint32", "ushort": "uint16"}[integer]
    for element, dtype in _TYPES.items():
        unpack = f"unpack_{unpacked_format}_to_{element}"
        pack = f"pack_{element}_to_{packed_format}"
        out = "\n".join(f"    out[{n} * i + {c}] = v[{c}];" for c in range(n))

        body(
            f"""
    uint i = thread_position_in_grid.x;
    {element}{n} v = i % 2 ? {unpack}(x[i]) : metal::{unpack}(x[i]);
{out}
    """,
            name=unpack,
            inputs=lambda rng, word=word: {"x": words_of(rng, word, fields)},
            outputs={"out": ((_COUNT, n), dtype)},
            grid=(_COUNT, 1, 1),
            threadgroup=(64, 1, 1),
            constructs=f"functions.{unpack}",
        )(lambda x, dtype=dtype: unpacked(x, fields, dtype))

        components = ", ".join(f"x[{n} * i + {c}]" for c in range(n))
        body(
            f"""
    uint i = thread_position_in_grid.x;
    {element}{n} v({components});
    out[2 * i] = i % 2 ? {pack}(v) : metal::{pack}(v);
    out[2 * i + 1] = {pack}(v.y);  // a number stands for a vector of it
    """,
            name=pack,
            inputs=lambda rng, dtype=dtype: {"x": vectors_of(rng, dtype, fields)},
            outputs={"out": ((_COUNT, 2), word)},
            grid=(_COUNT, 1, 1),
            threadgroup=(64, 1, 1),
            constructs=f"functions.{pack}",
        )(
            lambda x, word=word: np.stack(
                [packed(x, fields, word), packed(np.repeat(x[:, 1:2], n, axis=1), fields, word)], axis=1
            )
        )


for _format in _FORMATS:
    _register(*_format)


@body(
    """
    uint i = thread_position_in_grid.x;
    // Back and forth: an integer keeps its bits, but for the second name of -1.
    uint word = x[i];
    out[8 * i] = pack_float_to_unorm4x8(unpack_unorm4x8_to_float(word));
    out[8 * i + 1] = pack_half_to_unorm4x8(unpack_unorm4x8_to_half(word));
    out[8 * i + 2] = pack_float_to_unorm2x16(unpack_unorm2x16_to_float(word));
    out[8 * i + 3] = pack_float_to_unorm10a2(unpack_unorm10a2_to_float(word));
    out[8 * i + 4] = pack_half_to_unorm565(unpack_unorm565_to_half(ushort(word)));
    out[8 * i + 5] = pack_float_to_srgb_unorm4x8(unpack_unorm4x8_srgb_to_float(word));
    packed_float4 memory = unpack_unorm4x8_to_float(word);
    out[8 * i + 6] = pack_float_to_unorm4x8(memory);
    float4 colour = unpack_unorm4x8_to_float(word).bgra;
    out[8 * i + 7] = pack_half_to_unorm4x8(half4(colour));
    """,
    inputs=lambda rng: {"x": rng.integers(0, 1 << 32, _COUNT, np.uint32)},
    outputs={"out": ((_COUNT, 8), "uint32")},
    grid=(_COUNT, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="functions.pack_float_to_unorm4x8 functions.unpack_unorm4x8_to_float types.packed_vectors",
)
def packed_and_unpacked(x):
    swapped = (x & 0xFF00FF00) | (x >> 16 & 0xFF) | (x & 0xFF) << 16
    return np.stack([x, x, x, x, x & 0xFFFF, x, x, swapped], axis=1)


# ---- Pixel data types

# The format's name, its fields and the integers that hold it in memory.
_PIXELS = [
    ("r8unorm", _fields("unorm", 8), "uint8"),
    ("r8snorm", _fields("snorm", 8), "uint8"),
    ("r16unorm", _fields("unorm", 16), "uint16"),
    ("r16snorm", _fields("snorm", 16), "uint16"),
    ("rg8unorm", _fields("unorm", 8, 8), "uint8"),
    ("rg8snorm", _fields("snorm", 8, 8), "uint8"),
    ("rg16unorm", _fields("unorm", 16, 16), "uint16"),
    ("rg16snorm", _fields("snorm", 16, 16), "uint16"),
    ("rgba8unorm", _fields("unorm", 8, 8, 8, 8), "uint8"),
    ("srgba8unorm", _SRGB, "uint8"),
    ("rgba8snorm", _fields("snorm", 8, 8, 8, 8), "uint8"),
    ("rgba16unorm", _fields("unorm", 16, 16, 16, 16), "uint16"),
    ("rgba16snorm", _fields("snorm", 16, 16, 16, 16), "uint16"),
    ("rgb10a2", _fields("unorm", 10, 10, 10, 2), "uint32"),
]


def _pixel_body(pixel, element, n, word, per_pixel, size, construct, vectors, reference):
    """Each thread reads a pixel of `x` and writes one of `v`, and says what it knows of the type."""
    value = element if n == 1 else f"{element}{n}"
    components = ", ".join(f"v[{n} * i + {c}]" for c in range(n))
    read = "\n".join(f"    seen[{n} * i + {c}] = {'a' if n == 1 else f'a[{c}]'};" for c in range(n))
    whole = "all" if n > 1 else ""
    dtype = _TYPES[element]
    body(
        f"""
    uint i = thread_position_in_grid.x;
    typedef {pixel}<{value}> pixel;
    struct Texel {{ pixel p; }};
    const device pixel* in = (const device pixel*)x;
    device Texel* to = (device Texel*)pixels;
    {value} a = in[i];
{read}
    pixel kept = in[i], made = {value}({components});
    to[i].p = made;
    {value} back = made;
    bool same = {whole}(kept == a) && !{whole}(kept != a) && {whole}(in[i] == kept) && {whole}(back == made);
    facts[i] = sizeof(pixel) + 100 * alignof(Texel) + 1000 * same;
    """,
        name=f"{pixel}_{element}",
        inputs=lambda rng: {
            "x": rng.integers(0, 1 << 8 * DTYPES[word].itemsize, (_COUNT, per_pixel), DTYPES[word]),
            "v": vectors(rng, dtype),
        },
        outputs={
            "seen": ((_COUNT, n), dtype),
            "pixels": ((_COUNT, per_pixel), word),
            "facts": ((_COUNT,), "int32"),
        },
        grid=(_COUNT, 1, 1),
        threadgroup=(64, 1, 1),
        constructs=f"types.{construct}",
    )(lambda x, v: _with_facts(reference, x, v, dtype, size + 100 * DTYPES[word].itemsize))


def _with_facts(reference, x, v, dtype, facts):
    """And the facts: a pixel equals itself, unless it has a NaN."""
    seen, pixels = reference(x, v, dtype)
    has_nan = np.isnan(seen).any(axis=1) | np.isnan(reference(pixels, v, dtype)[0]).any(axis=1)
    return seen, pixels, (facts + 1000 * ~has_nan).astype(np.int32)


def _normalized_pixel(pixel, fields, word):
    n, bits = len(fields), 8 * DTYPES[word].itemsize
    per_pixel = 1 if bits == 32 else n

    def reference(x, v, dtype):
        words = sum(x[:, k].astype(np.uint64) << np.uint64(bits * k) for k in range(per_pixel))
        made = packed(v, fields, np.uint64)
        split = [(made >> np.uint64(bits * k)).astype(DTYPES[word]) for k in range(per_pixel)]
        return unpacked(words, fields, dtype), np.stack(split, axis=1)

    construct = pixel if pixel in ("srgba8unorm", "rgb10a2") else f"pixels_of_{bits}_bits"
    for element in _TYPES if bits != 16 else ["float"]:
        _pixel_body(
            pixel,
            element,
            n,
            word,
            per_pixel,
            per_pixel * bits // 8,
            construct,
            lambda rng, dtype: vectors_of(rng, dtype, fields),
            reference,
        )


for _pixel in _PIXELS:
    _normalized_pixel(*_pixel)


def _small_float(bits, mantissa):
    """What a field of 5 bits of exponent and `mantissa` bits stands for."""
    exponent, fraction = bits >> mantissa, bits & ((1 << mantissa) - 1)
    regular = np.ldexp(1 + fraction / (1 << mantissa), exponent - 15)
    subnormal = np.ldexp(fraction / (1 << mantissa), -14)
    special = np.where(fraction == 0, np.inf, np.nan)
    return np.where(exponent == 31, special, np.where(exponent == 0, subnormal, regular))


def _to_small_float(values, mantissa):
    """The nearest field, of two the even one; 0 for what is below 0."""
    fields = np.arange(31 << mantissa)
    known = np.append(_small_float(fields, mantissa), 65536.0)  # the last one stands for infinity
    result = []
    for value in values.astype(np.float64):
        if math.isnan(value):
            result.append((31 << mantissa) | 1 << (mantissa - 1))
            continue
        value = min(max(value, 0.0), 65536.0)
        above = int(np.searchsorted(known, value))
        if above == 0:
            result.append(0)
            continue
        low, high = known[above - 1], known[above]
        nearer_below = value - low < high - value or (value - low == high - value and (above - 1) % 2 == 0)
        result.append(above - 1 if nearer_below else above)
    return np.array(result, np.int64)


_SPECIAL = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 65024.0, 65279.0, 65280.0, 65504.0, 64512.0, 6.1e-5, 9.6e-7]


def _hdr_vectors(rng, dtype):
    vectors = rng.uniform(0, 2, (_COUNT, 3)) * 10.0 ** rng.integers(-8, 5, (_COUNT, 3))
    for column in range(3):
        vectors[: len(_SPECIAL), column] = np.roll(_SPECIAL, 3 * column)
    # Ties between two fractions of 6 bits, of 5, and of 9.
    vectors[20:40] = (2 * rng.integers(64, 128, (20, 3)) + 1) / 256
    vectors[40:60] = (2 * rng.integers(32, 64, (20, 3)) + 1) / 128
    vectors[60:80] = (2 * rng.integers(256, 512, (20, 3)) + 1) / 1024
    with np.errstate(over="ignore"):
        return vectors.astype(DTYPES[dtype])


def _rg11b10f(x, v, dtype):
    x = x[:, 0].astype(np.int64)
    seen = [_small_float(x & 2047, 6), _small_float(x >> 11 & 2047, 6), _small_float(x >> 22, 5)]
    made = _to_small_float(v[:, 0], 6) | _to_small_float(v[:, 1], 6) << 11 | _to_small_float(v[:, 2], 5) << 22
    return np.stack(seen, axis=1).astype(DTYPES[dtype]), made.astype(np.uint32)[:, None]


def _rgb9e5(x, v, dtype):
    x = x[:, 0].astype(np.int64)
    seen = [np.ldexp((x >> first & 511) / 512.0, (x >> 27) - 15) for first in (0, 9, 18)]
    made = []
    for row in v.astype(np.float64):
        clamped = [min(max(0.0 if math.isnan(c) else c, 0.0), 65408.0) for c in row]
        largest = max(clamped)
        exponent = max(-16, math.floor(math.log2(largest)) if largest > 0 else -16) + 16
        if math.floor(largest / 2.0 ** (exponent - 24) + 0.5) == 512:
            exponent += 1
        fields = [math.floor(c / 2.0 ** (exponent - 24) + 0.5) for c in clamped]
        made.append(fields[0] | fields[1] << 9 | fields[2] << 18 | exponent << 27)
    return np.stack(seen, axis=1).astype(DTYPES[dtype]), np.array(made, np.uint32)[:, None]


for _element in _TYPES:
    _pixel_body("rg11b10f", _element, 3, "uint32", 1, 4, "rg11b10f", _hdr_vectors, _rg11b10f)
    _pixel_body("rgb9e5", _element, 3, "uint32", 1, 4, "rgb9e5", _hdr_vectors, _rgb9e5)
