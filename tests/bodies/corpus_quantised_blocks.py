"""Products with weights in blocks of several kinds, where the kind is a template argument: a class, a function or a table
that the kernel is written around."""

import ml_dtypes
import numpy as np

from bodies import body


def _nibble_blocks(rng, rows, count, kind):
    """Blocks of 32: the bytes as they lie in memory, and the weights."""
    d = 2.0 ** rng.integers(-4, 0, (rows, count, 1))
    d_bytes = d.astype(np.float16).view(np.uint8)
    if kind == "eight":
        q = rng.integers(-128, 128, (rows, count, 32))
        return np.concatenate([d_bytes, q.astype(np.int8).view(np.uint8)], axis=-1), d * q
    q = rng.integers(0, 32 if kind == "five" else 16, (rows, count, 32))
    low = ((q & 15)[..., :16] | (q & 15)[..., 16:] << 4).astype(np.uint8)
    if kind == "five":
        high = np.packbits((q >> 4).astype(np.uint8), axis=-1, bitorder="little")
        return np.concatenate([d_bytes, high, low], axis=-1), d * (q - 16)
    if kind == "four":
        return np.concatenate([d_bytes, low], axis=-1), d * (q - 8)
    m = rng.integers(-4, 5, (rows, count, 1)).astype(np.float64)
    return np.concatenate([d_bytes, m.astype(np.float16).view(np.uint8), low], axis=-1), d * q + m


_KINDS = {"four": 0, "four_with_minimum": 1, "five": 2, "eight": 3}

_BLOCKS = """
#define BLOCK 32

typedef struct {
  half d;
  uint8_t qs[BLOCK / 2];     // weight i in the lower nibble of byte i, weight i + 16 in the upper
} block_four;

typedef struct {
  half d;
  half m;
  uint8_t qs[BLOCK / 2];
} block_four_with_minimum;

typedef struct {
  half d;
  uint8_t high[4];
  uint8_t qs[BLOCK / 2];
} block_five;

typedef struct {
  half d;
  int8_t qs[BLOCK];
} block_eight;

// Sixteen of a block's weights, the first half or the second one, as a matrix whose columns are four of them each.
static void dequantise(device const block_four* b, short part, thread half4x4& to) {
  device const uint16_t* qs = (device const uint16_t*)b->qs;   // two bytes at once
  const half d = b->d;
  const ushort mask = part ? 0x00f0 : 0x000f;
  const half low = part ? d / 16.h : d, high = low / 256.h, minus = -8.h * d;
  for (int i = 0; i < 8; ++i) {
    to[i / 2][2 * (i % 2)] = low * (qs[i] & mask) + minus;
    to[i / 2][2 * (i % 2) + 1] = high * (qs[i] & (mask << 8)) + minus;
  }
}

static void dequantise(device const block_four_with_minimum* b, short part, thread half4x4& to) {
  for (short i = 0; i < 16; ++i) to[i / 4][i % 4] = b->d * half((b->qs[i] >> (part ? 4 : 0)) & 0xF) + b->m;
}

static void dequantise(device const block_five* b, short part, thread half4x4& to) {
  const uint high = b->high[0] | b->high[1] << 8 | uint(b->high[2]) << 16 | uint(b->high[3]) << 24;
  for (short i = 0; i < 16; ++i) {
    const short low = part ? b->qs[i] >> 4 : b->qs[i] & 0xF;
    const short fifth = (high >> (i + 16 * part)) << 4 & 0x10;
    to[i / 4][i % 4] = b->d * half(short((low | fifth) - 16));
  }
}

static void dequantise(device const block_eight* b, short part, thread half4x4& to) {
  for (short i = 0; i < 16; ++i) to[i / 4][i % 4] = half(b->qs[16 * part + i]) * b->d;
}

// What the kernel needs to know of a kind: the block, and the function as a template argument.
template <typename block_t, void (*function)(device const block_t*, short, thread half4x4&)>
struct Kind {
  using block = block_t;
  static constexpr constant short parts = BLOCK / 16;
  static void run(device const block_t* b, short part, thread half4x4& to) { function(b, part, to); }
};

template <int number> struct KindOf;
template <> struct KindOf<0> : Kind<block_four, dequantise> {};
template <> struct KindOf<1> : Kind<block_four_with_minimum, dequantise> {};
template <> struct KindOf<2> : Kind<block_five, dequantise> {};
template <> struct KindOf<3> : Kind<block_eight, dequantise> {};
"""

_BLOCK_PRODUCT = """
    // y[j, i] = sum_k w[i, k] x[j, k]: a tile of 32 rows of w by 16 vectors, 32 deep, in four simdgroups. One piece of threadgroup
    // memory serves as both tiles and as the result; tiles lie as blocks of 8 by 8, row by row.
    using kind = KindOf<KIND>;
    using block = typename kind::block;
    constexpr short ROWS = 32, VECTORS = 16, DEPTH = 32;
    threadgroup uchar shared[ROWS * DEPTH * sizeof(half) + VECTORS * DEPTH * sizeof(half)];
    threadgroup half* tile_w = (threadgroup half*)shared;
    threadgroup half* tile_x = (threadgroup half*)(shared + ROWS * DEPTH * sizeof(half));

    const Sizes sizes = *(const constant Sizes*)args;
    const short tid = thread_index_in_threadgroup, simd = simdgroup_index_in_threadgroup;
    const int first_row = threadgroup_position_in_grid.y * ROWS, first_vector = threadgroup_position_in_grid.x * VECTORS;
    // Rows behind the last one are read as the last one.
    const short rows = min(sizes.rows - first_row, int(ROWS)), vectors = min(sizes.vectors - first_vector, int(VECTORS));

    // 128 threads: two for each block of w's tile, where 64 threads have work; eight for each row of x's.
    const short w_row = min(short(tid / 2), short(rows - 1));
    const short x_row = min(short(tid / 8), short(vectors - 1));
    const int blocks = sizes.depth / BLOCK;
    device const block* from_w = (device const block*)w + (first_row + w_row) * blocks;
    device const float* from_x = x + (first_vector + x_row) * sizes.depth + tid % 8 * 4;

    simdgroup_half8x8 a[2], b;
    simdgroup_float8x8 c[2] = {simdgroup_float8x8(0.f), simdgroup_float8x8(0.f)};

    for (int k = 0; k < sizes.depth; k += DEPTH) {
      half4x4 registers;
      if (tid < 64) kind::run(from_w, tid % 2, registers);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (tid < 64) {
        #pragma unroll(16)
        for (short i = 0; i < 16; ++i) {
          const short column = 16 * (tid % 2) + i;
          tile_w[64 * ((tid / 2) / 8 * 4 + column / 8) + 8 * ((tid / 2) % 8) + column % 8] = registers[i / 4][i % 4];
        }
      }
      // Transposed blocks of x: its rows are the product's columns.
      const float4 four = *(device const float4*)from_x;
      for (short i = 0; i < 4; ++i) {
        const short column = tid % 8 * 4 + i;
        tile_x[64 * (column / 8 * 2 + tid / 8 / 8) + 8 * (column % 8) + tid / 8 % 8] = half(four[i]);
      }
      ++from_w;
      from_x += DEPTH;
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // Each simdgroup has eight of the vectors' columns and sixteen rows.
      threadgroup const half* lw = tile_w + 64 * 4 * 2 * (simd / 2);
      threadgroup const half* lx = tile_x + 64 * (simd % 2);
      for (short step = 0; step < DEPTH / 8; ++step) {
        simdgroup_load(a[0], lw, 8);
        simdgroup_load(a[1], lw + 4 * 64, 8);
        simdgroup_load(b, lx, 8);
        simdgroup_barrier(mem_flags::mem_none);
        simdgroup_multiply_accumulate(c[0], a[0], b, c[0]);
        simdgroup_multiply_accumulate(c[1], a[1], b, c[1]);
        lw += 64;
        lx += 2 * 64;
      }
    }

    // The result takes the place of the tiles.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float* result = (threadgroup float*)shared;
    for (short i = 0; i < 2; ++i)
      simdgroup_store(c[i], result + (16 * (simd / 2) + 8 * i) * VECTORS + 8 * (simd % 2), VECTORS);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = tid; i < ROWS * VECTORS; i += 128) {
      const short row = i % ROWS, vector = i / ROWS;
      if (row < rows && vector < vectors)
        y[(first_vector + vector) * sizes.rows + first_row + row] = result[row * VECTORS + vector];
    }
    """

for _kind, _number in _KINDS.items():

    def _block_inputs(rng, kind=_kind):
        packed, _ = _nibble_blocks(np.random.default_rng(len(kind)), 43, 3, kind)
        return {
            "x": rng.integers(-4, 5, (21, 96)).astype(np.float32),
            "w": packed,
            "args": np.array([43, 21, 96], np.int32),
        }

    def _block_product(x, w, args, kind=_kind):
        _, weights = _nibble_blocks(np.random.default_rng(len(kind)), 43, 3, kind)
        return (x.astype(np.float64) @ weights.reshape(43, 96).T).astype(np.float32)

    body(
        _BLOCK_PRODUCT,
        name=f"product_with_blocks_{_kind}",
        header=_BLOCKS + "\nstruct Sizes {\n  int rows, vectors, depth;\n};\n",
        template=[("KIND", _number)],
        inputs=_block_inputs,
        outputs={"y": ((21, 43), "float32")},
        grid=(2 * 128, 2, 1),
        threadgroup=(128, 1, 1),
        constructs="simdgroup_matrix.multiply_accumulate simdgroup_matrix.load_and_store types.matrices "
        "types.matrix_components address_spaces.cast_to_struct structure.template structure.using "
        "synchronisation.simdgroup_barrier address_spaces.threadgroup_small_array structure.pragma_unroll",
    )(_block_product)


@body(
    """
    // Rows by pointers of their own, which move along; the vector is read once for all of them. Eight bits of a block with a
    // scale in a separate array; every lane takes four neighbours.
    constexpr short NR = 4;
    const short lane = thread_index_in_simdgroup;
    const int first = int(thread_position_in_grid.y) * NR;
    const int rows = w_shape[0], width = w_shape[1];
    device const char4* row[NR];
    device const half* scale[NR];
    for (short r = 0; r < NR; ++r) {
      const int own = min(first + r, rows - 1);
      row[r] = (device const char4*)(w + own * width) + lane;
      scale[r] = scales + own * (width / 32) + lane / 8;
    }
    device const float4* in = (device const float4*)x + lane;
    float sum[NR] = {0.f};
    for (int k = lane * 4; k < width; k += 128, in += 32) {
      const float4 v = *in;
      for (short r = 0; r < NR; ++r) {
        sum[r] += float(*scale[r]) * dot(v, float4(*row[r]));
        row[r] += 32;
        scale[r] += 4;
      }
    }
    for (short r = 0; r < NR; ++r) {
      const float total = simd_sum(sum[r]);
      if (lane == 0 && first + r < rows) y[first + r] = total;
    }
    """,
    inputs=lambda rng: {
        "x": rng.integers(-8, 9, 224).astype(np.float32),
        "w": rng.integers(-128, 128, (10, 224), np.int8),
        "scales": (2.0 ** rng.integers(-6, 0, (10, 7))).astype(np.float16),
    },
    outputs={"y": ((10,), "float32")},
    grid=(32, 3, 1),
    threadgroup=(32, 3, 1),
    constructs="address_spaces.device_pointer_arithmetic structure.dynamic_local_array types.char4 functions.dot "
    "memory.through_a_local_pointer reconvergence.divergent_trip_count",
)
def product_with_row_pointers(x, w, scales):
    weights = w.astype(np.float64) * np.repeat(scales.astype(np.float64), 32, axis=1)
    return (weights @ x.astype(np.float64)).astype(np.float32)


@body(
    """
    // Codecs as policies: how many values a word has, how they get in and out, what the exponent is. The launch has a codec
    // for quantising and dequantising; a group is one simdgroup's.
    using codec = metal::conditional_t<FLOATS, codecs::SmallFloats, codecs::Integers<BITS>>;
    static_assert(metal::is_same_v<typename codec::word_type, uint>, "words of 32 bits");
    constexpr uint PER = codec::per_word;
    const uint group = thread_position_in_grid.y, lane = thread_index_in_simdgroup;
    array<float, PER> values;
    const uint first = (group * 32 + lane) * PER;
    for (uint i = 0; i < PER; ++i) values[i] = x[first + i];
    const float top = simd_max(codecs::largest(values));
    const int e = top == 0 ? 0 : ilogb(top) + 1;
    uint word = codec::encode(values, -e);
    words[group * 32 + lane] = word;
    if (simd_is_first()) exponents[group] = char(e);
    const array<float, PER> again = codec::decode(word, e);
    for (uint i = 0; i < PER; ++i) back[first + i] = again[i];
    """,
    header="""
#include <metal_stdlib>
#include <metal_type_traits>
using namespace metal;

namespace codecs {

enum class Rounding : uchar { nearest, down };

template <size_t N>
inline float largest(thread const array<float, N>& values) {
  float top = 0;
  for (size_t i = 0; i < N; ++i) top = fmax(top, fabs(values[i]));
  return top;
}

template <Rounding mode = Rounding::nearest>
inline int rounded(float x) {
  if constexpr (mode == Rounding::nearest)
    return int(rint(x));
  else
    return int(floor(x));
}

// What all codecs have in common: fields of equal width that follow one another.
template <typename Derived, uint Bits>
struct Packed {
  typedef uint word_type;
  static constexpr constant uint bits = Bits;
  static constexpr constant uint per_word = 32 / Bits;

  static uint encode(thread const array<float, per_word>& values, int exponent) {
    uint word = 0;
    for (uint i = 0; i < per_word; ++i)
      word = insert_bits(word, Derived::field(ldexp(values[i], exponent)), i * bits, bits);
    return word;
  }

  static array<float, per_word> decode(uint word, int exponent) {
    array<float, per_word> values;
    for (uint i = 0; i < per_word; ++i)
      values[i] = ldexp(Derived::value(extract_bits(word, i * bits, bits)), exponent);
    return values;
  }
};

// Signed, of a magnitude below one.
template <uint Bits>
struct Integers : Packed<Integers<Bits>, Bits> {
  static constexpr constant int most = (1 << (Bits - 1)) - 1;
  static uint field(float x) { return uint(clamp(rounded<>(x * (most + 1)), -most - 1, most)); }
  static float value(uint field) {
    // The sign's bit moves to the top and back.
    return float(int(field << (32 - Bits)) >> (32 - Bits)) / (most + 1);
  }
};

// A sign, two bits of exponent, a bit of mantissa; values up to one.
struct SmallFloats : Packed<SmallFloats, 4> {
  static constexpr constant array<float, 8> levels = {0.f, 1.f / 12, 2.f / 12, 3.f / 12, 4.f / 12, 6.f / 12, 8.f / 12, 1.f};
  static uint field(float x) {
    uint best = 0;
    for (uint i = 1; i < 8; ++i)
      if (abs(abs(x) - levels[i]) < abs(abs(x) - levels[best])) best = i;
    return best | (x < 0 ? 8u : 0u);
  }
  static float value(uint field) { return field & 8 ? -levels[field & 7] : levels[field & 7]; }
};

}  // namespace codecs
""",
    template=[("FLOATS", False), ("BITS", 6)],
    inputs=lambda rng: {"x": (rng.normal(size=(4, 160)) * np.array([1, 100, 0, 1e-3])[:, None]).astype(np.float32)},
    outputs={"words": ((4, 32), "uint32"), "exponents": ((4,), "int8"), "back": ((4, 160), "float32")},
    grid=(32, 4, 1),
    threadgroup=(32, 4, 1),
    constructs="structure.template structure.struct types.array structure.using_namespace_metal structure.include_metal "
    "functions.insert_bits functions.extract_bits functions.ilogb functions.ldexp structure.if_constexpr "
    "structure.explicit_template_arguments",
)
def codecs_as_policies(x):
    top = np.abs(x).max(axis=1)
    e = np.where(top == 0, 0, np.frexp(top)[1])
    q = np.clip(np.rint(np.ldexp(x, -e[:, None] + 5)), -32, 31).astype(np.int64)
    words = ((q & 63).reshape(4, 32, 5) << 6 * np.arange(5)).sum(-1).astype(np.uint32)
    return words, e.astype(np.int8), np.ldexp(q.astype(np.float32), e[:, None] - 5)


@body(
    """
    // Unions and fields of bits: how a block's words are taken apart without shifts being written out.
    const uint i = thread_position_in_grid.x;
    Header head;
    head.word = words[4 * i];
    const float scale = ldexp(float(head.fields.scale) + 1.0f, int(head.fields.exponent) - 16);
    const bool with_minimum = head.fields.kind == kind_with_minimum;
    const float minimum = with_minimum ? float(head.fields.minimum) - 16.0f : 0.0f;
    float sum = minimum;
    for (uint j = 1; j < 4; ++j) {
      Levels levels;
      levels.word = words[4 * i + j];
      union {
        uint word;
        uchar4 bytes;
      } order;
      order.word = levels.word;
      sum += scale * float(levels.fields.a + levels.fields.b + levels.fields.c + levels.fields.d) - float(order.bytes.z & 1);
      // Back again, with two of them exchanged.
      const uint a = levels.fields.a;
      levels.fields.a = levels.fields.b;
      levels.fields.b = a;
      exchanged[3 * i + j - 1] = levels.word;
    }
    sums[i] = sum;
    switch (Kind(head.fields.kind)) {
      case kind_plain: kinds[i] = 'p'; break;
      case kind_with_minimum: kinds[i] = 'm'; break;
      default: kinds[i] = '?';
    }
    """,
    header="""
enum Kind : uint { kind_plain = 0, kind_with_minimum, kind_other };

union Header {
  uint word;
  struct {
    uint kind : 2;
    uint exponent : 5;
    uint scale : 12;
    uint minimum : 5;
    uint : 8;
  } fields;
};

union Levels {
  uint word;
  struct {
    uint a : 7, b : 9, c : 6, d : 10;
  } fields;
};
""",
    inputs=lambda rng: {"words": rng.integers(0, 2**32, (40, 4), np.uint32)},
    outputs={"sums": ((40,), "float32"), "exchanged": ((40, 3), "uint32"), "kinds": ((40,), "uint8")},
    grid=(40, 1, 1),
    threadgroup=(20, 1, 1),
    tolerance=1e-5,
    constructs="structure.struct types.uchar4 structure.switch functions.ldexp",
)
def blocks_by_fields_of_bits(words):
    def field(word, first, count):
        return word >> np.uint32(first) & np.uint32((1 << count) - 1)

    head, levels = words[:, 0], words[:, 1:]
    scale = (field(head, 7, 12) + 1.0) * 2.0 ** (field(head, 2, 5).astype(int) - 16)
    kind = field(head, 0, 2)
    a, b, c, d = field(levels, 0, 7), field(levels, 7, 9), field(levels, 16, 6), field(levels, 22, 10)
    sums = np.where(kind == 1, field(head, 19, 5) - 16.0, 0.0)
    sums = sums + scale * (a + b + c + d).sum(axis=1) - field(levels, 16, 1).sum(axis=1)
    exchanged = b & np.uint32(127) | a << np.uint32(7) | c << np.uint32(16) | d << np.uint32(22)
    return sums, exchanged, np.array([ord(k) for k in "pm??"], np.uint8)[kind]


@body(
    """
    // Weights from a walk: each takes sixteen bits of a stream of which K move on, through a hash to a number that is nearly
    // normal: the sum of its four bytes. Nothing is stored but the stream.
    const uint lane = thread_index_in_simdgroup, row = thread_position_in_grid.y;
    const uint columns = x_shape[0], words = stream_shape[1];
    int total = 0;
    for (uint column = lane; column < columns; column += 32) {
      const uint bit = column * K, word = bit / 32;
      // The stream ends with one word more than it has weights for.
      const ulong two = ulong(stream[row * words + word]) | ulong(stream[row * words + word + 1]) << 32;
      const uint state = uint(two >> (bit % 32)) & 0xffff;
      const uint hash = state * 89226354u + 64248484u;
      const uchar4 bytes = as_type<uchar4>(hash);
      const int weight = int(bytes.x) + bytes.y + bytes.z + bytes.w - 510;
      total += weight * x[column];
    }
    total = simd_sum(total);
    if (lane == 0) y[row] = total;
    """,
    template=[("K", 3)],
    inputs=lambda rng: {
        "x": rng.integers(-100, 100, 150, np.int16),
        "stream": rng.integers(0, 2**32, (7, 16), np.uint32),
    },
    outputs={"y": ((7,), "int32")},
    grid=(32, 7, 1),
    threadgroup=(32, 7, 1),
    constructs="types.ulong types.as_type types.uchar4 literals.integer simdgroup.sum",
)
def product_with_weights_of_a_trellis(x, stream):
    y = []
    for words in stream:
        bits = int.from_bytes(words.tobytes(), "little")
        states = [bits >> 3 * j & 0xFFFF for j in range(150)]
        weights = [sum((s * 89226354 + 64248484 & 0xFFFFFFFF).to_bytes(4, "little")) - 510 for s in states]
        y.append(int(np.dot(weights, x.astype(np.int64))))
    return np.array(y, np.int32)


@body(
    """
    // Column after column to four bits; what is lost in one is made good in those that follow, by a row of the inverse
    // Hessian's factor. A simdgroup for each row, whose columns live in its lanes.
    constexpr ushort PER = COLUMNS / 32;
    const ushort lane = thread_index_in_simdgroup;
    const uint row = thread_position_in_grid.y;
    float own[PER];
    #pragma unroll
    for (ushort i = 0; i < PER; ++i) own[i] = w[row * COLUMNS + i * 32 + lane];
    const float scale = scales[row];
    for (ushort column = 0; column < COLUMNS; ++column) {
      const ushort which = column / 32;
      // The value is in one lane, in a register that the column chooses.
      float candidate = 0;
      #pragma unroll
      for (ushort i = 0; i < PER; ++i) candidate = i == which ? own[i] : candidate;
      const float value = simd_broadcast(candidate, ushort(column % 32));
      const int level = clamp(int(rint(value / scale)), -8, 7);
      const float error = (value - float(level) * scale) / factor[column * COLUMNS + column];
      if (lane == 0) {
        const uint at = (row * COLUMNS + column) / 2;
        // Neighbours share a byte, which the same lane writes twice.
        levels[at] = column % 2 == 0 ? uchar(level & 15) : uchar(levels[at] | (level & 15) << 4);
      }
      for (ushort i = which; i < PER; ++i) {
        const ushort j = i * 32 + lane;
        if (j > column) own[i] -= error * factor[column * COLUMNS + j];
      }
    }
    """,
    template=[("COLUMNS", 64)],
    inputs=lambda rng: {
        "w": rng.normal(size=(5, 64)).astype(np.float32),
        "scales": rng.uniform(0.2, 0.4, 5).astype(np.float32),
        "factor": np.triu(rng.normal(size=(64, 64)) / 8 + np.eye(64)).astype(np.float32),
    },
    outputs={"levels": ((5, 32), "uint8")},
    grid=(32, 5, 1),
    threadgroup=(32, 1, 1),
    constructs="simdgroup.broadcast functions.rint functions.clamp structure.dynamic_local_array structure.pragma_unroll",
)
def quantisation_with_error_feedback(w, scales, factor):
    own = w.copy()
    levels = np.zeros((5, 64), np.int64)
    for column in range(64):
        levels[:, column] = np.clip(np.rint(own[:, column] / scales), -8, 7)
        error = (own[:, column] - levels[:, column].astype(np.float32) * scales) / factor[column, column]
        own[:, column + 1 :] -= error[:, None] * factor[column, column + 1 :]
    return ((levels[:, ::2] & 15) | (levels[:, 1::2] & 15) << 4).astype(np.uint8)


@body(
    """
    // Products in four bits of a float by a table of all sixteen by sixteen products, in quarters: no multiplication at all.
    threadgroup short table[256];
    const uint t = thread_index_in_threadgroup;
    for (uint i = t; i < 256; i += threads_per_threadgroup.x) {
      const short a = doubled(i & 15), b = doubled(i >> 4);
      table[i] = a * b;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint row = thread_position_in_grid.x, vector = thread_position_in_grid.y;
    const uint bytes = w_shape[1];
    if (row >= uint(w_shape[0])) return;
    int total = 0;
    for (uint j = 0; j < bytes; j += 16) {
      int of_block = 0;
      for (uint i = j; i < j + 16; ++i) {
        const uchar a = x[vector * bytes + i], b = w[row * bytes + i];
        of_block += table[(a & 15) | (b & 15) << 4] + table[(a >> 4) | (b & 0xf0)];
      }
      // Powers of two as shifts, relative to the smallest.
      total += of_block << (x_exponents[vector * (bytes / 16) + j / 16] + w_exponents[row * (bytes / 16) + j / 16]);
    }
    y[vector * w_shape[0] + row] = float(total) * 0.25f;
    """,
    header="""
// Twice the value: 0, 1, 2, 3, 4, 6, 8, 12 with a sign.
constexpr short doubled(uint code) {
  const short magnitude = (code & 7) < 2 ? code & 7 : (2 + (code & 1)) << (((code & 7) >> 1) - 1);
  return code & 8 ? -magnitude : magnitude;
}
static_assert(doubled(7) == 12 && doubled(2) == 2 && doubled(13) == -6, "the format's values");
""",
    inputs=lambda rng: {
        "x": rng.integers(0, 256, (2, 48), np.uint8),
        "w": rng.integers(0, 256, (20, 48), np.uint8),
        "x_exponents": rng.integers(0, 4, (2, 3), np.uint8),
        "w_exponents": rng.integers(0, 4, (20, 3), np.uint8),
    },
    outputs={"y": ((2, 20), "float32")},
    grid=(32, 2, 1),
    threadgroup=(32, 1, 1),
    constructs="structure.constexpr address_spaces.threadgroup_small_array types.short structure.early_return "
    "layouts.few_elements",
)
def product_by_a_table_of_products(x, w, x_exponents, w_exponents):
    def floats(packed, exponents):
        codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)
        values = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
        return values * np.repeat(2.0 ** exponents.astype(int), 32, axis=1)

    return (floats(x, x_exponents) @ floats(w, w_exponents).T).astype(np.float32)
