"""Formats of quantised weights that are more than integers with a scale: small floats with shared exponents, superblocks,
codebooks, lattices. Where scales are powers of two, products are exact in a float, whatever their order."""

import ml_dtypes
import numpy as np

from bodies import body


def _nibbles(packed):
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
# fmt: off
NORMAL_FLOAT = np.array([
    -1, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.09105004, 0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.562617, 0.7229568, 1,
], np.float32)
# fmt: on


# ---- Small floats


@body(
    """
    // Weights of four bits (one of the sign, two of the exponent, one of the mantissa), an exponent for each 32 of them.
    // Sixteen lanes for a row: each takes a block's half, as two words.
    const uint lane = thread_index_in_simdgroup;
    const uint row = thread_position_in_grid.y * 2 + lane / 16;
    const uint rows = w_shape[0], blocks = exponents_shape[1];
    const bool inside = row < rows;
    float total = 0;
    for (uint half_block = lane % 16; half_block < 2 * blocks; half_block += 16) {
      const uint block = half_block / 2;
      const uint2 words = inside ? ((device const uint2*)w)[(row * blocks * 2 + half_block)] : uint2(0);
      half4 parts[4];
      for (int i = 0; i < 2; ++i) {
        parts[2 * i] = four_of(words[i]);
        parts[2 * i + 1] = four_of(words[i] >> 16);
      }
      device const half4* in = (device const half4*)(x + half_block * 16);
      float sum = 0;
      for (int i = 0; i < 4; ++i) sum += dot(float4(parts[i]), float4(in[i]));
      total += sum * power_of_two(exponents[row * blocks + block]);
    }
    for (ushort distance = 8; distance; distance >>= 1) total += simd_shuffle_down(total, distance);
    if (inside && lane % 16 == 0) y[row] = total;
    """,
    header="""
// The three bits of exponent and mantissa, at the same place in a half; what is different is the exponent's bias, 1 for 15.
// Subnormals come out right too.
inline half4 four_of(uint nibbles) {
  const ushort4 codes = ushort4(nibbles, nibbles >> 4, nibbles >> 8, nibbles >> 12) & 15;
  const ushort4 bits = ((codes & 7) << 9) | ((codes & 8) << 12);
  return as_type<half4>(bits) * 16384.0h;
}

// 0 is the smallest power, which is subnormal as a float.
inline float power_of_two(uchar e) { return as_type<float>(e == 0 ? 0x00400000u : uint(e) << 23); }
""",
    inputs=lambda rng: {
        "x": rng.integers(-4, 5, 160).astype(np.float16),
        "w": rng.integers(0, 256, (7, 80), np.uint8),
        "exponents": rng.integers(122, 128, (7, 5), np.uint8),
    },
    outputs={"y": ((7,), "float32")},
    grid=(32, 4, 1),
    threadgroup=(32, 4, 1),
    constructs="types.as_type types.ushort4 types.half4 functions.dot simdgroup.shuffle_down address_spaces.cast_to_vector "
    "literals.half_suffix",
)
def product_of_mxfp4(x, w, exponents):
    weights = E2M1[_nibbles(w)] * np.repeat(2.0 ** (exponents.astype(int) - 127), 32, axis=1)
    return (weights @ x.astype(np.float64)).astype(np.float32)


@body(
    """
    // Sixteen values to a block: the block's scale becomes a float of eight bits, relative to the tensor's scale; the values
    // floats of four bits, relative to both. Two blocks for each simdgroup.
    const uint i = thread_position_in_grid.x;
    const float v = i < uint(x_shape[0]) ? float(x[i]) : 0.0f;
    float largest = fabs(v);
    for (ushort mask = 8; mask > 0; mask >>= 1) largest = max(largest, simd_shuffle_xor(largest, mask));
    const uchar code = to_e4m3(largest / 6.0f / tensor_scale);
    const float scale = from_e4m3(code) * tensor_scale;
    const float relative = scale > 0 ? fabs(v) / scale : 0.0f;
    // Halfway goes to the even code.
    const uchar magnitude = uchar(relative > 0.25f) + uchar(relative >= 0.75f) + uchar(relative > 1.25f)
        + uchar(relative >= 1.75f) + uchar(relative > 2.5f) + uchar(relative >= 3.5f) + uchar(relative > 5.0f);
    const uchar nibble = magnitude | (signbit(v) ? 8 : 0);
    const uchar upper = uchar(simd_shuffle_xor(ushort(nibble), ushort(1)));
    if (i >= uint(x_shape[0])) return;
    if (i % 2 == 0) packed[i / 2] = nibble | (upper << 4);
    if (i % 16 == 0) scales[i / 16] = code;
    """,
    header="""
// To four bits of exponent (bias 7) and three of mantissa, nearest and halfway to even; too large becomes the largest, 448.
static uchar to_e4m3(float x) {
  const float limited = metal::min(x, 448.0f);
  if (limited < 0x1p-6f) return uchar(metal::rint(limited * 512.0f));   // subnormal, in 512ths
  uint bits = as_type<uint>(limited);
  bits += 0x7FFFFu + ((bits >> 20) & 1u);
  return uchar((bits >> 20) - (120u << 3));
}

static float from_e4m3(uchar code) {
  const uint exponent = code >> 3, mantissa = code & 7;
  if (exponent == 0) return float(mantissa) / 512.0f;
  return as_type<float>(((exponent + 120u) << 23) | (mantissa << 20));
}
""",
    inputs=lambda rng: {
        "x": np.concatenate(
            [
                rng.normal(size=400) * np.repeat(2.0 ** rng.integers(-12, 6, 25), 16),
                # Halfway between two codes, with scales of one.
                np.array([6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -6, -0.25, -0.75, -1.25, -1.75, -2.5, -3.5, -5]) / 4,
                np.zeros(16),
            ]
        ).astype(np.float32),
        "tensor_scale": 0.25,
    },
    outputs={"packed": ((216,), "uint8"), "scales": ((27,), "uint8")},
    grid=(448, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.as_type functions.rint functions.signbit simdgroup.shuffle_xor literals.hexadecimal_float "
    "structure.early_return types.uchar",
)
def quantisation_to_nvfp4(x, tensor_scale):
    f = np.float32
    blocks = x.reshape(27, 16)
    ideal = np.abs(blocks).max(axis=1) / f(6) / f(tensor_scale)
    scales = np.minimum(ideal, f(448)).astype(ml_dtypes.float8_e4m3fn)
    whole = (scales.astype(f) * f(tensor_scale))[:, None]
    relative = np.where(whole > 0, blocks / np.where(whole > 0, whole, f(1)), np.copysign(f(0), blocks))
    codes = np.clip(relative, f(-6), f(6)).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    return codes.reshape(-1, 2) @ np.array([1, 16], np.uint8), scales.view(np.uint8)


for _five in (False, True):

    def _mxfp8(x, five=_five):
        target, limit, most = (ml_dtypes.float8_e5m2, 57344, 15) if five else (ml_dtypes.float8_e4m3fn, 448, 8)
        blocks = x.astype(np.float32).reshape(-1, 32)
        largest = np.abs(blocks).max(axis=1)
        exponent = np.where(largest > 0, np.frexp(largest)[1] - 1 - most, 0)
        codes = np.clip(np.ldexp(blocks, -exponent[:, None]), -limit, limit).astype(np.float32).astype(target)
        back = np.ldexp(codes.astype(np.float32), exponent[:, None])
        return codes.view(np.uint8).reshape(x.shape), (exponent + 127).astype(np.uint8), back.reshape(x.shape)

    body(
        """
    // A block of 32 shares a power of two, so that its largest value comes near the top of the format's range. A simdgroup
    // is a block. `back` is what the codes stand for.
    const uint i = thread_position_in_grid.x;
    const float v = float(x[i]);
    const float largest = simd_max(fabs(v));
    const int top = FIVE ? 15 : 8;
    const int exponent = largest > 0 ? ilogb(largest) - top : 0;
    const float scaled = ldexp(v, -exponent);
    uchar code;
    float value;
    if (FIVE) {
      code = SmallFloat<5, 2>::encode(scaled);
      value = SmallFloat<5, 2>::decode(code);
    } else {
      code = SmallFloat<4, 3>::encode(scaled);
      value = SmallFloat<4, 3>::decode(code);
    }
    codes[i] = code;
    back[i] = ldexp(value, exponent);
    if (simd_is_first()) exponents[i / 32] = uchar(exponent + 127);
    """,
        name="quantisation_to_mxfp8_e5m2" if _five else "quantisation_to_mxfp8_e4m3",
        header="""
// A sign, E bits of exponent and M of mantissa. With five bits of exponent the highest one is that of infinities and NaNs;
// with four only its highest mantissa is a NaN.
template <int E, int M>
struct SmallFloat {
  static constexpr constant int bias = (1 << (E - 1)) - 1;
  static constexpr constant uint largest = E == 5 ? (30u << M) | 3u : (15u << M) | 6u;

  static float magnitude(uint code) {
    const uint exponent = code >> M, mantissa = code & ((1u << M) - 1);
    if (exponent == 0) return metal::ldexp(float(mantissa), 1 - bias - M);
    return as_type<float>(((exponent + 127 - bias) << 23) | (mantissa << (23 - M)));
  }

  static uchar encode(float x) {
    const uint sign = metal::signbit(x) ? 0x80u : 0u;
    const float a = metal::min(metal::fabs(x), magnitude(largest));
    uint code;
    if (a < metal::ldexp(1.0f, 1 - bias)) {
      code = uint(metal::rint(metal::ldexp(a, bias - 1 + M)));
    } else {
      const uint bits = as_type<uint>(a);
      const uint rounded = bits + ((1u << (22 - M)) - 1) + ((bits >> (23 - M)) & 1u);
      code = (rounded >> (23 - M)) - uint(127 - bias) * (1u << M);
    }
    return uchar(sign | metal::min(code, largest));
  }

  static float decode(uchar code) {
    const float m = magnitude(code & 0x7fu);
    return code & 0x80 ? -m : m;
  }
};
""",
        template=[("FIVE", _five)],
        inputs=lambda rng: {
            "x": (rng.normal(size=(6, 64)) * 10.0 ** rng.uniform(-6, 2, (6, 64)) * (np.arange(6)[:, None] != 3)).astype(
                np.float16
            )
        },
        outputs={"codes": ((6, 64), "uint8"), "exponents": ((12,), "uint8"), "back": ((6, 64), "float32")},
        grid=(384, 1, 1),
        threadgroup=(128, 1, 1),
        constructs="structure.template structure.struct functions.ilogb functions.ldexp functions.rint functions.signbit "
        "types.as_type simdgroup.max simdgroup.is_first",
    )(_mxfp8)


@body(
    """
    // Attention's keys in eight bits of two formats, times a query in half: four codes of a word become a half4 by shifts,
    // and the rest of the exponent's bias is in the scale.
    const uint lane = thread_index_in_simdgroup, key = thread_position_in_grid.y, head = thread_position_in_grid.z;
    const uint keys = threads_per_grid.y;
    const uint at = (head * keys + key) * 128;
    const uint k_word = ((device const uint*)(k + at))[lane];
    const uint2 pairs = uint2(k_word, k_word >> 16);
    float sum = 0;
    const half4 query = ((device const half4*)(q + head * 128))[lane];
    for (ushort p = 0; p < 2; ++p) {
      const ushort2 codes = ushort2(pairs[p] & 0xff, (pairs[p] >> 8) & 0xff);
      half2 values;
      if (five[head]) {
        values = as_type<half2>(ushort2(codes << 8));
      } else {
        values = as_type<half2>(ushort2((codes & 0x7f) << 7 | (codes & 0x80) << 8)) * 256.0h;
      }
      sum += dot(float2(values), float2(p == 0 ? query.xy : query.zw));
    }
    sum = simd_sum(sum);
    if (lane == 0) scores[head * keys + key] = sum * scales[head];
    """,
    inputs=lambda rng: {
        "q": rng.integers(-8, 8, (2, 128)).astype(np.float16),
        "k": np.stack(
            [
                rng.integers(-16, 17, (5, 128)).astype(ml_dtypes.float8_e4m3fn).view(np.uint8),
                (2.0 ** rng.integers(-4, 4, (5, 128)) * rng.choice([-1, 1, 1.25], (5, 128)))
                .astype(ml_dtypes.float8_e5m2)
                .view(np.uint8),
            ]
        ),
        "five": np.array([False, True]),
        "scales": np.array([0.5, 0.125], np.float32),
    },
    outputs={"scores": ((2, 5), "float32")},
    grid=(32, 5, 2),
    threadgroup=(32, 5, 1),
    constructs="types.as_type types.half2 types.ushort2 functions.dot layouts.few_elements types.component_index",
)
def scores_of_keys_of_eight_bits(q, k, five, scales):
    formats = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
    keys = np.stack([codes.view(form).astype(np.float64) for codes, form in zip(k, formats, strict=True)])
    return (np.einsum("hkd,hd->hk", keys, q.astype(np.float64)) * scales[:, None]).astype(np.float32)


# ---- Tables of values


@body(
    """
    // To the nearest of sixteen quantiles of the normal distribution: a bisection of the middles between them. A block is 64
    // values, two for each lane.
    const uint lane = thread_index_in_simdgroup, block = thread_position_in_grid.y;
    const device float2* in = (const device float2*)x + block * 32;
    const float2 v = in[lane];
    const float largest = simd_max(max(fabs(v.x), fabs(v.y)));
    const float2 relative = v / (largest > 0 ? largest : 1.0f);
    packed[block * 32 + lane] = nearest(relative.x) | nearest(relative.y) << 4;
    if (lane == 0) absmax[block] = largest;
    """,
    header="constant float LEVELS[16] = {"
    + ", ".join(f"{value:.9g}f" for value in NORMAL_FLOAT)
    .replace("-1f", "-1.0f")
    .replace(" 0f", " 0.0f")
    .replace(" 1f", " 1.0f")
    + """};

inline uchar nearest(float v) {
  uchar low = 0;
  for (uchar step = 8; step > 0; step /= 2) {
    // Halfway belongs to the lower level.
    const float middle = (LEVELS[low + step - 1] + LEVELS[low + step]) * 0.5f;
    if (v > middle) low += step;
  }
  return low;
}
""",
    inputs=lambda rng: {"x": (rng.normal(size=(9, 64)) * (np.arange(9)[:, None] != 4)).astype(np.float32)},
    outputs={"packed": ((9, 32), "uint8"), "absmax": ((9,), "float32")},
    grid=(32, 9, 1),
    threadgroup=(32, 3, 1),
    constructs="address_spaces.constant_array types.float2 simdgroup.max functions.fabs structure.helper_function",
)
def quantisation_to_normal_floats(x):
    f = np.float32
    largest = np.abs(x).max(axis=1)
    middles = (NORMAL_FLOAT[1:] + NORMAL_FLOAT[:-1]) * f(0.5)
    relative = x / np.where(largest > 0, largest, f(1))[:, None]
    codes = (relative[..., None] > middles).sum(-1).astype(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4, largest


@body(
    """
    // y = x w^T with w of normal floats whose blocks' magnitudes are themselves quantised: eight bits by 256 blocks, with a
    // table of values and an offset. The table of levels is put into threadgroup memory, once for each simdgroup.
    threadgroup float levels[4][16];
    const uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
    if (lane < 16) levels[simd][lane] = code[lane];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const uint row = threadgroup_position_in_grid.y * 4 + simd;
    const uint rows = packed_shape[0], bytes = packed_shape[1];
    if (row >= rows) return;
    float sum = 0;
    for (uint i = lane; i < bytes; i += 32) {
      const uchar byte = packed[row * bytes + i];
      const uint block = (row * bytes + i) * 2 / BLOCK;
      const float magnitude = fma(state_code[absmax[block]], state_absmax[block / STATE_BLOCK], offset);
      // The first of two is in the upper nibble.
      const float2 pair = float2(levels[simd][byte >> 4], levels[simd][byte & 15]);
      sum += magnitude * dot(pair, ((const device float2*)x)[i]);
    }
    sum = simd_sum(sum);
    if (lane == 0) y[row] = sum;
    """,
    template=[("BLOCK", 64), ("STATE_BLOCK", 16)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1, 192).astype(np.float32),
        "packed": rng.integers(0, 256, (11, 96), np.uint8) | np.uint8(0x80),
        "code": NORMAL_FLOAT + np.float32(1),
        "absmax": rng.integers(0, 256, 33, np.uint8),
        "state_code": np.linspace(-1, 1, 256).astype(np.float32),
        "state_absmax": rng.uniform(0.5, 1, 3).astype(np.float32),
        "offset": 1.5,
    },
    outputs={"y": ((11,), "float32")},
    grid=(32, 12, 1),
    threadgroup=(32, 4, 1),
    tolerance=1e-6,
    constructs="synchronisation.simdgroup_barrier functions.fma functions.dot address_spaces.threadgroup_2d_array "
    "structure.return_before_simd",
)
def product_with_scales_that_are_quantised(x, packed, code, absmax, state_code, state_absmax, offset):
    codes = np.stack([packed >> 4, packed & 15], axis=-1).reshape(11, 192)
    state_code, state_absmax = state_code.astype(np.float64), state_absmax.astype(np.float64)
    magnitudes = state_code[absmax] * np.repeat(state_absmax, 16)[:33] + offset
    weights = code.astype(np.float64)[codes] * np.repeat(magnitudes, 64).reshape(11, 192)
    return weights @ x.astype(np.float64)


@body(
    """
    // A weight is a sum of entries of two codebooks, of eight numbers each. For each group of eight columns all products of the
    // input with the entries are made once, and rows look them up.
    threadgroup float tables[GROUPS][BOOKS][256];
    const uint tid = thread_index_in_threadgroup, threads = threads_per_threadgroup.x;
    const int groups = codes_shape[1];
    const uint row = thread_position_in_grid.x;
    float total = 0;
    for (int first = 0; first < groups; first += GROUPS) {
      const int count = min(GROUPS, groups - first);
      for (uint i = tid; i < uint(count) * BOOKS * 256; i += threads) {
        const uint entry = i % (BOOKS * 256), group = i / (BOOKS * 256);
        const device half4* vectors = (const device half4*)(codebooks + entry * 8);
        const device float4* in = (const device float4*)(x + (first + group) * 8);
        tables[group][entry / 256][entry % 256] = dot(float4(vectors[0]), in[0]) + dot(float4(vectors[1]), in[1]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (row < uint(codes_shape[0])) {
        for (int group = 0; group < count; ++group) {
          const device uchar* own = codes + (row * groups + first + group) * BOOKS;
          for (int b = 0; b < BOOKS; ++b) total += tables[group][b][own[b]];
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row < uint(codes_shape[0])) y[row] = half(total * float(scales[row]));
    """,
    template=[("GROUPS", 4), ("BOOKS", 2)],
    inputs=lambda rng: {
        "x": rng.integers(-3, 4, 56).astype(np.float32),
        "codes": rng.integers(0, 256, (50, 7, 2), np.uint8),
        "codebooks": rng.integers(-8, 9, (2, 256, 8)).astype(np.float16) / np.float16(4),
        "scales": (2.0 ** rng.integers(-4, 1, 50)).astype(np.float16),
    },
    outputs={"y": ((50,), "float16")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="barriers.in_loop address_spaces.threadgroup_2d_array functions.dot address_spaces.cast_to_vector "
    "types.half4",
)
def product_with_additive_codebooks(x, codes, codebooks, scales):
    entries = codebooks.astype(np.float64)
    weights = (entries[0][codes[..., 0]] + entries[1][codes[..., 1]]).reshape(50, 56)
    return ((weights @ x.astype(np.float64)) * scales.astype(np.float64)).astype(np.float16)


# ---- Superblocks

_SUPERBLOCKS = """
// 256 weights with scales of their own for every 16 or 32, and one for all. Layouts as they lie in files: no padding.

// Scale and minimum of eight blocks of 32, six bits each.
struct Super4 {
  half d;                 // of the scales
  half d_min;             // of the minima
  uchar scales[12];       // sixteen numbers of six bits: eight scales, eight minima
  uchar low[128];         // block b and weight i: byte 32 * (b / 2) + i, the upper nibble for odd b
};

struct Super5 {
  half d;
  half d_min;
  uchar scales[12];
  uchar high[32];         // bit b of byte i: the fifth bit of weight i of block b
  uchar low[128];
};

// Sixteen blocks of 16, with signed scales and values around zero.
struct Super6 {
  uchar low[128];         // lower nibbles, as above
  uchar high[64];         // byte 32 * (b / 4) + i, two bits for each of four blocks of 32
  char scales[16];
  half d;
};

// Sixteen blocks of 16 again, with scales of six bits around zero; of a weight's three bits the highest is apart.
struct Super3 {
  uchar high[32];         // as in Super5
  uchar low[64];          // as Super6's `high`
  uchar scales[12];
  half d;
};

static_assert(sizeof(Super3) == 110 && sizeof(Super4) == 144, "as in files");
static_assert(sizeof(Super5) == 176 && sizeof(Super6) == 210, "as in files");

// Number `index` of those of six bits that follow one another.
inline uint six_bits(device const uchar* from, uint index) {
  const uint bit = 6 * index, byte = bit >> 3, shift = bit & 7;
  uint word = from[byte];
  // The last number ends with the last byte.
  if (shift > 2) word |= uint(from[byte + 1]) << 8;
  return (word >> shift) & 0x3f;
}

inline uint nibble(device const uchar* low, uint block, uint i) {
  return (uint(low[32 * (block >> 1) + i]) >> (4 * (block & 1))) & 0xf;
}

// What a lane adds: its weight of each block of 32. For those with minima: d * scale * sum(q x) - d_min * min * sum(x).
#define WITH_MINIMA(Super, LEVEL)                                                             \\
  inline float lane_sum(device const Super& block_of_all, device const float* x, uint lane) { \\
    float scaled = 0, minima = 0;                                                             \\
    _Pragma("unroll") for (uint b = 0; b < 8; ++b) {                                          \\
      const float v = x[32 * b + lane];                                                       \\
      const uint level = LEVEL;                                                               \\
      scaled += float(six_bits(block_of_all.scales, b)) * (float(level) * v);                 \\
      minima += float(six_bits(block_of_all.scales, 8 + b)) * v;                              \\
    }                                                                                         \\
    return float(block_of_all.d) * scaled - float(block_of_all.d_min) * minima;               \\
  }

WITH_MINIMA(Super4, nibble(block_of_all.low, b, lane))
WITH_MINIMA(Super5, nibble(block_of_all.low, b, lane) | (((block_of_all.high[lane] >> b) & 1u) << 4))
#undef WITH_MINIMA

inline float lane_sum(device const Super6& all, device const float* x, uint lane) {
  float sum = 0;
  for (uint b = 0; b < 8; ++b) {
    const uint upper = (uint(all.high[32 * (b >> 2) + lane]) >> (2 * (b & 3))) & 3;
    const int level = int(nibble(all.low, b, lane) | upper << 4) - 32;
    sum += float(level * all.scales[2 * b + lane / 16]) * x[32 * b + lane];
  }
  return float(all.d) * sum;
}

inline float lane_sum(device const Super3& all, device const float* x, uint lane) {
  float sum = 0;
  for (uint b = 0; b < 8; ++b) {
    const uint lower = (uint(all.low[32 * (b >> 2) + lane]) >> (2 * (b & 3))) & 3;
    const int level = int(lower | ((uint(all.high[lane]) >> b) & 1u) << 2) - 4;
    const int scale = int(six_bits(all.scales, 2 * b + lane / 16)) - 32;
    sum += float(level * scale) * x[32 * b + lane];
  }
  return float(all.d) * sum;
}

// The type by its number of bits.
template <int bits> struct SuperOf;
template <> struct SuperOf<3> { using type = Super3; };
template <> struct SuperOf<4> { using type = Super4; };
template <> struct SuperOf<5> { using type = Super5; };
template <> struct SuperOf<6> { using type = Super6; };
"""

_SUPERBLOCK_PRODUCT = """
    // ROWS rows of w for each simdgroup, all superblocks of a row one after the other; several vectors along z.
    using Super = typename SuperOf<BITS>::type;
    constexpr uint ROWS = 2;
    const uint lane = thread_index_in_simdgroup;
    const uint superblocks = uint(x_shape[1]) / 256, rows = w_shape[0];
    const uint first_row = thread_position_in_grid.y * ROWS, vector = thread_position_in_grid.z;
    device const Super* blocks = (device const Super*)w;
    float sums[ROWS] = {};
    for (uint s = 0; s < superblocks; ++s) {
      device const float* in = x + vector * x_shape[1] + s * 256;
      #pragma unroll
      for (uint r = 0; r < ROWS; ++r) {
        // Rows behind the end are not there.
        if (first_row + r >= rows) continue;
        sums[r] += lane_sum(blocks[(first_row + r) * superblocks + s], in, lane);
      }
    }
    #pragma unroll
    for (uint r = 0; r < ROWS; ++r) {
      const float sum = simd_sum(sums[r]);
      if (lane == r && first_row + r < rows) y[vector * rows + first_row + r] = sum;
    }
    """


def _six_bits(numbers):
    bits = numbers[..., None] >> np.arange(6) & 1
    return np.packbits(bits.astype(np.uint8).reshape(*numbers.shape[:-1], -1), axis=-1, bitorder="little")


def _low_nibbles(levels):
    """[…, 8, 32] to the bytes of `low`."""
    low = levels & 15
    return (low[..., 0::2, :] | low[..., 1::2, :] << 4).reshape(*levels.shape[:-2], 128).astype(np.uint8)


def _superblocks(rng, bits, rows, count):
    """The bytes and the weights that they stand for."""
    levels = rng.integers(0, 2**bits, (rows, count, 8, 32))
    d = 2.0 ** rng.integers(-6, -2, (rows, count, 1, 1))
    d_bytes = d.reshape(rows, count, 1).astype(np.float16).view(np.uint8)
    high_bits = ((levels >> (2 if bits == 3 else 4)) << np.arange(8)[:, None]).sum(axis=2).astype(np.uint8)
    if bits == 3:
        numbers = rng.integers(0, 64, (rows, count, 16))
        low = (levels & 3).reshape(rows, count, 2, 4, 32) << (2 * np.arange(4))[:, None]
        low = low.sum(axis=3).reshape(rows, count, 64).astype(np.uint8)
        packed = [high_bits, low, _six_bits(numbers), d_bytes]
        weights = d * (levels - 4) * np.repeat(numbers - 32, 16, axis=-1).reshape(levels.shape)
    elif bits == 6:
        scales = rng.integers(-128, 128, (rows, count, 16))
        high = levels.reshape(rows, count, 2, 4, 32) >> 4 << (2 * np.arange(4))[:, None]
        high = high.sum(axis=3).reshape(rows, count, 64)
        packed = [_low_nibbles(levels), high.astype(np.uint8), scales.astype(np.int8).view(np.uint8), d_bytes]
        weights = d * (levels - 32) * np.repeat(scales, 16, axis=-1).reshape(levels.shape)
    else:
        d_min = 2.0 ** rng.integers(-6, -2, (rows, count, 1, 1))
        numbers = rng.integers(0, 64, (rows, count, 16))
        min_bytes = d_min.reshape(rows, count, 1).astype(np.float16).view(np.uint8)
        packed = [d_bytes, min_bytes, _six_bits(numbers), *([high_bits] if bits == 5 else []), _low_nibbles(levels)]
        weights = d * numbers[..., :8, None] * levels - d_min * numbers[..., 8:, None]
    return np.concatenate(packed, axis=-1).reshape(rows, -1), weights.reshape(rows, -1)


for _bits in (3, 4, 5, 6):

    def _superblock_inputs(rng, bits=_bits):
        packed, _ = _superblocks(np.random.default_rng(bits), bits, 5, 2)
        return {"x": rng.integers(-4, 5, (2, 512)).astype(np.float32), "w": packed}

    def _superblock_product(x, w, bits=_bits):
        _, weights = _superblocks(np.random.default_rng(bits), bits, 5, 2)
        return (x.astype(np.float64) @ weights.T).astype(np.float32)

    body(
        _SUPERBLOCK_PRODUCT,
        name=f"product_with_superblocks_of_{_bits}_bits",
        header=_SUPERBLOCKS,
        template=[("BITS", _bits)],
        inputs=_superblock_inputs,
        outputs={"y": ((2, 5), "float32")},
        grid=(32, 3, 2),
        threadgroup=(32, 3, 1),
        constructs="address_spaces.cast_to_struct structure.multi_line_macro_in_header structure.using structure._Pragma "
        "reconvergence.continue_before_call types.half simdgroup.sum",
    )(_superblock_product)


# ---- A lattice

_LATTICE_RNG = np.random.default_rng(2026)
# Eight odd magnitudes 1, 3, 5 for each code: most of the mass near one.
_LATTICE = np.unique(_LATTICE_RNG.choice([1, 3, 5], (1200, 8), p=[0.62, 0.28, 0.1]), axis=0)
_LATTICE = _LATTICE[_LATTICE_RNG.permutation(len(_LATTICE))[:256]]
_LATTICE_TEXT = ",\n".join(
    "  " + ", ".join(f"0x{int.from_bytes(bytes(row.tolist()), 'little'):016x}ul" for row in _LATTICE[i : i + 4])
    for i in range(0, 256, 4)
)


def _lattice_weights(words, d):
    """words: [rows, groups of 32, 2]."""
    indices = words[..., 0, None] >> np.arange(0, 32, 8, dtype=np.uint32) & np.uint32(255)
    signs = words[..., 1, None] >> np.arange(0, 28, 7, dtype=np.uint32) & np.uint32(127)
    bits = signs[..., None] >> np.arange(7, dtype=np.uint32) & np.uint32(1)
    bits = np.concatenate([bits, bits.sum(-1, keepdims=True) % 2], axis=-1).astype(int)
    scale = (2 * (words[..., 1] >> 28) + 1) / 8 * d[:, None]
    return (_LATTICE[indices] * (1 - 2 * bits) * scale[..., None, None]).reshape(len(words), -1)


@body(
    """
    // Two words for each 32 weights: four numbers of points of the lattice, and four times seven signs with four bits of the
    // scale. The eighth sign makes the number of minuses even. A lane takes a pair of words.
    threadgroup ulong points[256];
    const uint tid = thread_index_in_threadgroup, threads = threads_per_threadgroup.x * threads_per_threadgroup.y;
    for (uint i = tid; i < 256; i += threads) points[i] = LATTICE[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const uint lane = thread_index_in_simdgroup, row = thread_position_in_grid.y;
    const uint pairs = w_shape[1];
    if (row >= uint(w_shape[0])) return;
    device const uint2* words = (device const uint2*)w + row * pairs;
    float total = 0;
    for (uint i = lane; i < pairs; i += 32) {
      const uint2 pair = words[i];
      device const float4* in = (device const float4*)(x + 32 * i);
      float sum = 0;
      #pragma unroll
      for (uint j = 0; j < 4; ++j) {
        const ulong point = points[(pair.x >> (8 * j)) & 0xff];
        const uint seven = (pair.y >> (7 * j)) & 0x7f;
        const uint signs = seven | (popcount(seven) & 1) << 7;
        const float4 first = signed_bytes(uint(point), signs), second = signed_bytes(uint(point >> 32), signs >> 4);
        sum += dot(first, in[2 * j]) + dot(second, in[2 * j + 1]);
      }
      // Odd multiples of an eighth.
      total += sum * (float(2 * (pair.y >> 28) + 1) * 0.125f);
    }
    total = simd_sum(total);
    if (lane == 0) y[row] = total * float(d[row]);
    """,
    header=f"""
// Points with odd coordinates, a byte for each, up to their signs.
constant ulong LATTICE[256] = {{
{_LATTICE_TEXT}
}};
"""
    + """
inline float4 signed_bytes(uint bytes, uint signs) {
  const float4 v = float4(as_type<uchar4>(bytes));
  return select(v, -v, bool4(signs & 1, signs & 2, signs & 4, signs & 8));
}
""",
    inputs=lambda rng: {
        "x": rng.integers(-4, 5, 1280).astype(np.float32),
        "w": rng.integers(0, 2**32, (5, 40, 2), np.uint32),
        "d": (2.0 ** rng.integers(-4, 1, 5)).astype(np.float16),
    },
    outputs={"y": ((5,), "float32")},
    grid=(32, 6, 1),
    threadgroup=(32, 3, 1),
    constructs="address_spaces.constant_array types.ulong types.as_type types.uchar4 types.bool4 functions.select "
    "functions.popcount structure.return_before_simd",
)
def product_with_lattice_points(x, w, d):
    return (_lattice_weights(w, d.astype(np.float64)) @ x.astype(np.float64)).astype(np.float32)


@body(
    """
    // To the nearest point of the lattice, signs apart: an odd number of minuses is mended where it costs least. A simdgroup
    // searches the 256 points for eight values; ties go to the lower number.
    const uint lane = thread_index_in_simdgroup, group = thread_position_in_grid.y;
    device const float* in = x + group * 8;
    float magnitude[8];
    uint minus = 0;
    for (int j = 0; j < 8; ++j) {
      magnitude[j] = fabs(in[j]);
      minus |= uint(in[j] < 0) << j;
    }
    if (popcount(minus) % 2) {
      int weakest = 0;
      for (int j = 1; j < 8; ++j)
        if (magnitude[j] < magnitude[weakest]) weakest = j;
      minus ^= 1u << weakest;
      magnitude[weakest] = -magnitude[weakest];
    }
    float best = -INFINITY;
    uint code = 0;
    for (uint i = lane; i < 256; i += 32) {
      const uchar8 point = {as_type<uchar4>(table[2 * i]), as_type<uchar4>(table[2 * i + 1])};
      // |v - p|^2 less |v|^2, negated and halved.
      float gain = 0;
      for (int j = 0; j < 8; ++j) gain += point[j] * (magnitude[j] - 0.5f * point[j]);
      if (gain > best) {
        best = gain;
        code = i;
      }
    }
    const float most = simd_max(best);
    code = simd_min(best == most ? code : 256u);
    if (lane == 0) codes[group] = ushort(code | (minus & 0x7f) << 8);
    """,
    header="""
struct uchar8 {
  uchar4 low, high;
  float operator[](int i) const thread { return i < 4 ? low[i] : high[i - 4]; }
};
""",
    inputs=lambda rng: {
        "x": (np.rint(rng.normal(size=(40, 8)) * 40) / 16 + 1 / 64).astype(np.float32),
        "table": _LATTICE.astype(np.uint8).view(np.uint32),
    },
    outputs={"codes": ((40,), "uint16")},
    grid=(32, 40, 1),
    threadgroup=(32, 8, 1),
    constructs="structure.operator structure.struct simdgroup.max simdgroup.min types.uchar4 functions.popcount "
    "types.as_type structure.dynamic_local_array",
)
def quantisation_to_lattice_points(x, table):
    codes = []
    for row in x.astype(np.float64):
        minus, magnitude = (row < 0).astype(int), np.abs(row)
        if minus.sum() % 2:
            weakest = magnitude.argmin()
            minus[weakest] ^= 1
            magnitude[weakest] *= -1
        nearest = ((_LATTICE - magnitude) ** 2).sum(axis=1).argmin()
        codes.append(nearest | int(minus[:7] @ (1 << np.arange(7))) << 8)
    return np.array(codes, np.uint16)


# ---- Repacking


@body(
    """
    // From rows of words, as they are stored, to the order in which a simdgroup reads them: 32 rows of a word side by side, and
    // within a word even columns in the lower half and odd ones in the upper, so that a half2 is got by one mask.
    threadgroup uint tile[32][33];
    const uint2 t = thread_position_in_threadgroup.xy, group = threadgroup_position_in_grid.xy;
    const uint rows = w_shape[0], words = w_shape[1];
    const uint word = group.x * 32 + t.x;
    for (uint r = t.y; r < 32; r += threads_per_threadgroup.y) {
      const uint row = group.y * 32 + r;
      uint v = row < rows && word < words ? w[row * words + word] : 0;
      // Nibbles 0 1 2 3 4 5 6 7 become 0 2 4 6 1 3 5 7: three exchanges of bits.
      uint swap = (v ^ (v >> 4)) & 0x00F000F0u;
      v ^= swap ^ (swap << 4);
      swap = (v ^ (v >> 8)) & 0x0000FF00u;
      v ^= swap ^ (swap << 8);
      tile[r][t.x] = v;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint c = t.y; c < 32; c += threads_per_threadgroup.y) {
      const uint column = group.x * 32 + c;
      if (column < words) out[(group.y * words + column) * 32 + t.x] = tile[t.x][c];
    }
    """,
    inputs=lambda rng: {"w": rng.integers(0, 2**32, (50, 40), np.uint32)},
    outputs={"out": ((2, 40, 32), "uint32")},
    grid=(64, 8, 1),
    threadgroup=(32, 4, 1),
    constructs="barriers.transposition address_spaces.threadgroup_2d_array literals.integer types.uint2",
)
def repacked_for_simdgroups(w):
    padded = np.zeros((64, 40), np.uint32)
    padded[:50] = w
    nibbles = padded[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
    mixed = (nibbles[..., [0, 2, 4, 6, 1, 3, 5, 7]] << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1)
    return mixed.astype(np.uint32).reshape(2, 32, 40).swapaxes(1, 2)
