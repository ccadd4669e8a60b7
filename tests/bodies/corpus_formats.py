"""Weights in blocks of many formats: products with a vector, and rows that are looked up."""

import numpy as np

from bodies import DTYPES, Dtype, body

# Name, weights in a block.
FORMATS = (
    ("four_bits", 32),
    ("five_bits", 32),
    ("six_bits", 64),
    ("three_bits", 64),
    ("trits", 64),
    ("table", 32),
    ("e4m3", 32),
)

_HEADER = """
// Weights in blocks. A format is a class: its block as it stands in memory, how many weights that has, and four
// neighbouring weights of it as floats. All else is written once.

constant constexpr int FOUR_BITS = 0;
constant constexpr int FIVE_BITS = 1;
constant constexpr int SIX_BITS = 2;
constant constexpr int THREE_BITS = 3;
constant constexpr int TRITS = 4;
constant constexpr int TABLE = 5;
constant constexpr int E4M3 = 6;

template <int FORMAT>
struct Format;

// ---- Four bits with an offset: w = factor * n + offset. The first half of the block is in the lower nibbles.
template <>
struct Format<FOUR_BITS> {
  struct Block {
    half factor;
    half offset;
    uchar numbers[16];
  };
  static constexpr constant int weights = 32;

  static float4 four(const device Block& block, int at) {
    const int shift = at < 16 ? 0 : 4;
    const device uchar* from = block.numbers + (at & 15);
    const uint4 n = (uint4(from[0], from[1], from[2], from[3]) >> uint4(shift)) & 15u;
    return float(block.factor) * float4(n) + float(block.offset);
  }
};

// ---- Five bits around 16: four as above, the fifth of all weights in one word.
template <>
struct Format<FIVE_BITS> {
  struct Block {
    half factor;
    uchar fifth[4];
    uchar numbers[16];
  };
  static constexpr constant int weights = 32;

  static float4 four(const device Block& block, int at) {
    // The word stands at an odd place: byte by byte.
    const uint above = uint(block.fifth[0]) | (uint(block.fifth[1]) << 8) | (uint(block.fifth[2]) << 16) |
        (uint(block.fifth[3]) << 24);
    const int shift = at < 16 ? 0 : 4;
    int4 n;
    for (int j = 0; j < 4; ++j) {
      const int low = (block.numbers[(at & 15) + j] >> shift) & 15;
      n[j] = low | int(((above >> (at + j)) & 1u) << 4);
    }
    return float(block.factor) * float4(n - 16);
  }
};

// ---- Six bits around 32: four and two apart, and a scale of eight bits with a sign for each sixteen weights.
template <>
struct Format<SIX_BITS> {
  struct Block {
    uchar low[32];
    uchar high[16];
    char scales[4];
    half factor;
  };
  static constexpr constant int weights = 64;

  static float4 four(const device Block& block, int at) {
    const uint bits = block.high[at / 4];
    float4 n;
    for (int j = 0; j < 4; ++j) {
      const uint pair = block.low[(at + j) / 2];
      const uint low = (j & 1) ? pair >> 4 : pair & 15u;
      n[j] = float(int(low | ((bits >> (2 * j) & 3u) << 4)) - 32);
    }
    return (float(block.factor) * float(block.scales[at / 16])) * n;
  }
};

// ---- Three bits around 4: two and one apart; scales of four bits around 8.
template <>
struct Format<THREE_BITS> {
  struct Block {
    uchar low[16];
    uchar third[8];
    uchar scales[2];
    half factor;
  };
  static constexpr constant int weights = 64;

  static float4 four(const device Block& block, int at) {
    const uint low = block.low[at / 4];
    const uint third = uint(block.third[at / 8]) >> (at & 4);
    const uint both = block.scales[at / 32];
    const int scale = int((at & 16) ? both >> 4 : both & 15u) - 8;
    const uint4 n = ((uint4(low) >> uint4(0, 2, 4, 6)) & 3u) | (((uint4(third) >> uint4(0, 1, 2, 3)) & 1u) << 2);
    return float(block.factor) * float(scale) * (float4(n) - 4.0f);
  }
};

// ---- Minus one, nothing or one: five to a byte, as digits of base three; the last four of a block by twos of bits.
constant uchar powers_of_three[5] = {1, 3, 9, 27, 81};

template <>
struct Format<TRITS> {
  struct Block {
    half factor;
    uchar fives[12];
    uchar rest;
    uchar unused;
  };
  static constexpr constant int weights = 64;

  static float4 four(const device Block& block, int at) {
    float4 n;
    if (at == 60) {
      const uint rest = block.rest;
      n = float4(rest & 3u, (rest >> 2) & 3u, (rest >> 4) & 3u, rest >> 6);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int place = at + j;
        n[j] = float(block.fives[place / 5] / powers_of_three[place % 5] % 3);
      }
    }
    return float(block.factor) * (n - 1.0f);
  }
};

// ---- Numbers of a table whose entries stand as densely as weights do.
constant float entries[16] = {
    -1.0f, -0.6961928f, -0.5250730f, -0.3949175f, -0.2844414f, -0.1847734f, -0.0910500f, 0.0f,
    0.0795803f, 0.1609302f, 0.2461123f, 0.3379152f, 0.4407098f, 0.5626170f, 0.7229568f, 1.0f};

template <>
struct Format<TABLE> {
  struct Block {
    bfloat largest;
    uchar numbers[16];
  };
  static constexpr constant int weights = 32;

  static float4 four(const device Block& block, int at) {
    const uchar first = block.numbers[at / 2], second = block.numbers[at / 2 + 1];
    return float(block.largest) * float4(entries[first & 15], entries[first >> 4], entries[second & 15], entries[second >> 4]);
  }
};

// ---- Floats of eight bits with a power of two. A block has 33 bytes.
template <>
struct Format<E4M3> {
  struct Block {
    uchar exponent;
    uchar numbers[32];
  };
  static constexpr constant int weights = 32;

  static float4 four(const device Block& block, int at) {
    ushort4 n;
    for (int j = 0; j < 4; ++j) n[j] = block.numbers[at + j];
    // To where half has sign, exponent and mantissa; its exponents are 8 more.
    const half4 values = as_type<half4>(ushort4(((n & 0x80) << 8) | ((n & 0x7f) << 7)));
    return ldexp(float4(values), int4(int(block.exponent) - 127 + 8));
  }
};

// ---- What is done with any of them

// A row of a matrix, by a vector that is in threadgroup memory. The lanes of a simdgroup share blocks: PARTS lanes have
// the parts of one.
template <int FORMAT, int PARTS>
METAL_FUNC float row_by_vector(
    const device typename Format<FORMAT>::Block* row, const threadgroup float4* vector, int blocks, uint lane) {
  using F = Format<FORMAT>;
  constexpr int own = F::weights / PARTS;
  static_assert(own % 4 == 0 && 32 % PARTS == 0, "parts are whole fours, and lanes are whole blocks");
  const int part = lane % PARTS;
  float total = 0;
  for (int block = lane / PARTS; block < blocks; block += 32 / PARTS) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < own; j += 4) {
      const int at = part * own + j;
      sum += dot(vector[(block * F::weights + at) / 4], F::four(row[block], at));
    }
    total += sum;
  }
  return simd_sum(total);
}

template <int FORMAT, typename T>
METAL_FUNC void row_to_numbers(const device typename Format<FORMAT>::Block* row, device T* to, int blocks, uint lane) {
  using F = Format<FORMAT>;
  for (int at = 4 * int(lane); at < blocks * F::weights; at += 128) {
    const vec<T, 4> four = vec<T, 4>(F::four(row[at / F::weights], at % F::weights));
#pragma unroll
    for (int j = 0; j < 4; ++j) to[at + j] = four[j];
  }
}
"""

_BODY = """
    // The first threadgroups multiply, ROWS rows each, a simdgroup taking one after the other; the others look up rows by
    // their numbers. Both read the same blocks.
    using Block = typename Format<FORMAT>::Block;
    constexpr int SIMDS = 2;
    constexpr int ROWS = 4;
    threadgroup float4 vector[WIDTH / 4];
    const uint lane = thread_index_in_simdgroup;
    const int simd_id = simdgroup_index_in_threadgroup;
    const int rows = w_shape[0];
    constexpr int blocks = WIDTH / Format<FORMAT>::weights;
    const device Block* matrix = reinterpret_cast<const device Block*>(w);
    const int multiplying = ceildiv(rows, ROWS);
    const int group = threadgroup_position_in_grid.x;

    if (group >= multiplying) {
      const int entry = (group - multiplying) * SIMDS + simd_id;
      if (entry >= ids_shape[0]) return;
      row_to_numbers<FORMAT>(matrix + ids[entry] * blocks, looked_up + entry * WIDTH, blocks, lane);
      return;
    }
    for (int i = thread_index_in_threadgroup; i < WIDTH / 4; i += SIMDS * 32) {
      vector[i] = float4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int r = simd_id; r < ROWS; r += SIMDS) {
      const int row = group * ROWS + r;
      if (row >= rows) break;
      const float product = row_by_vector<FORMAT, 4>(matrix + row * blocks, vector, blocks, lane);
      if (lane == 0) y[row] = product + bias[row];
    }
"""

_BELOW = [-1.0, -0.6961928, -0.5250730, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0.0]
_ABOVE = [0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1.0]
_ENTRIES = np.array([*_BELOW, *_ABOVE])


def _bytes(x, dtype):
    x = np.ascontiguousarray(x.astype(dtype))
    return x.view(np.uint8).reshape(*x.shape[:-1], -1)


def _packed(x, bits):
    """Numbers of few bits in bytes, neighbours beside one another, the first lowest."""
    per = 8 // bits
    parts = x.reshape(*x.shape[:-1], -1, per) << (bits * np.arange(per))
    return parts.sum(axis=-1).astype(np.uint8)


def _blocks(rng, name, rows, blocks):
    """Blocks as bytes, and the weights that they mean, made from the same random numbers."""
    factor = rng.choice([0.5, 1, 1.5, 2], (rows, blocks, 1)) / 64

    def numbers(high, count):
        return rng.integers(0, high, (rows, blocks, count))

    def halves(n):
        return (n[..., :16] | n[..., 16:] << 4).astype(np.uint8)

    f16 = _bytes(factor, np.float16)
    if name == "four_bits":
        n, offset = numbers(16, 32), rng.choice([-0.25, -0.5], (rows, blocks, 1))
        return [f16, _bytes(offset, np.float16), halves(n)], factor * n + offset
    if name == "five_bits":
        n = numbers(32, 32)
        return [f16, _packed(n >> 4, 1), halves(n & 15)], factor * (n - 16)
    if name == "six_bits":
        n, scales = numbers(64, 64), rng.integers(-9, 10, (rows, blocks, 4))
        values = factor * scales.repeat(16, axis=-1) * (n - 32)
        return [_packed(n & 15, 4), _packed(n >> 4, 2), _bytes(scales, np.int8), f16], values
    if name == "three_bits":
        n, scales = numbers(8, 64), numbers(16, 4)
        values = factor * (scales - 8).repeat(16, axis=-1) * (n - 4)
        return [_packed(n & 3, 2), _packed(n >> 2, 1), _packed(scales, 4), f16], values
    if name == "trits":
        n = numbers(3, 64)
        fives = (n[..., :60].reshape(rows, blocks, 12, 5) * 3 ** np.arange(5)).sum(axis=-1).astype(np.uint8)
        unused = numbers(256, 1).astype(np.uint8)
        return [f16, fives, _packed(n[..., 60:], 2), unused], factor * (n - 1)
    if name == "table":
        n = numbers(16, 32)
        return [_bytes(factor, DTYPES["bfloat16"]), _packed(n, 4)], factor * _ENTRIES[n]
    n, exponent = numbers(256, 32), rng.integers(117, 121, (rows, blocks, 1))
    n[(n & 127) == 127] = 0  # there is no NaN
    sign, power, mantissa = 1 - 2 * (n >> 7), n >> 3 & 15, n & 7
    size = np.where(power > 0, (8 + mantissa) * 2.0 ** (power - 10.0), mantissa * 2.0**-9)
    return [exponent.astype(np.uint8), n.astype(np.uint8)], sign * size * 2.0 ** (exponent - 127.0)


for _format, (_name, _weights) in enumerate(FORMATS):

    def _made(name=_name, weights=_weights):
        rng = np.random.default_rng(weights + len(name))
        parts, values = _blocks(rng, name, 11, 320 // weights)
        return np.concatenate(parts, axis=-1).reshape(11, -1), values.reshape(11, 320)

    def _product_and_rows(w, x, bias, ids, made=_made):
        values = made()[1]
        return values @ x.astype(np.float64) + bias, values[ids]

    body(
        _BODY,
        name=f"weights_of_{_name}",
        header=_HEADER,
        template=[("T", Dtype("float32")), ("FORMAT", _format), ("WIDTH", 320)],
        inputs=lambda rng, made=_made: {
            "w": made()[0],
            "x": rng.normal(size=320).astype(np.float32),
            # So that no product is near zero.
            "bias": np.full(11, 300, np.float32),
            "ids": np.array([3, 10, 0, 3, 7], np.int32),
        },
        outputs={"y": ((11,), "float32"), "looked_up": ((5, 320), "float32")},
        grid=(6 * 64, 1, 1),
        threadgroup=(64, 1, 1),
        tolerance=1e-6,
        constructs="structure.template structure.struct structure.using structure.reinterpret_cast types.vec types.half4 "
        "address_spaces.cast_to_struct address_spaces.constant_array address_spaces.constant_scalar functions.ldexp "
        "types.size_and_alignment types.as_type functions.dot mlx.ceildiv mlx.METAL_FUNC types.bfloat barriers.with_break "
        "barriers.after_early_return address_spaces.threadgroup_vectors address_spaces.threadgroup_pointer_to_helper",
    )(_product_and_rows)
