"""Hashes and check sums of many records at once, and what is made of them: trees, filters, tables of counts."""

import hashlib
import itertools
import zlib

import numpy as np

from bodies import body


def _table(values, per_line=8):
    """Constants as they are pasted into a header."""
    lines = [values[i : i + per_line] for i in range(0, len(values), per_line)]
    return ",\n".join("  " + ", ".join(f"0x{value:08x}u" for value in line) for line in lines)


_M64 = 2**64 - 1


def _rotl64(value, by):
    return (value << by | value >> (64 - by)) & _M64


# ---- SHA-256


@body(
    """
    // The root of a Merkle tree over up to LEAVES records of 32 bytes. Leaves and inner nodes are told apart by a first
    // byte, 0 or 1, so that no inner node can be passed off as a leaf. An odd node goes up as it is.
    threadgroup uint nodes[LEAVES][8];
    uint tree = threadgroup_position_in_grid.x;
    uint t = thread_index_in_threadgroup;
    uint count = counts[tree];

    sha256::Digest own;
    if (t < count) {
      device const uint* leaf = reinterpret_cast<device const uint*>(leaves + (tree * LEAVES + t) * 32);
      uint words[8];
      #pragma unroll
      for (int i = 0; i < 8; ++i) words[i] = sha256::big_endian(leaf[i]);
      own = sha256::leaf(words);
      own.store(nodes[t]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint levels = 0;
    for (uint width = count; width > 1; width = (width + 1) / 2, ++levels) {
      uint pairs = width / 2;
      if (t < pairs) {
        uint words[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) words[i] = nodes[2 * t + i / 8][i % 8];
        own = sha256::node(words);
      } else if (t == pairs && (width & 1)) {
        own.load(nodes[width - 1]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < (width + 1) / 2) own.store(nodes[t]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t < 8) roots[tree * 8 + t] = count == 0 ? 0 : nodes[0][t];
    if (t == 0) depths[tree] = levels;
    """,
    header="""
namespace sha256 {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constant uint K[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// And of the square roots of the first eight.
constant uint kStart[8] = {
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

inline uint right(uint x, uint by) { return rotate(x, 32 - by); }

inline uint big_endian(uint x) {
  return ((x & 0x000000ff) << 24) | ((x & 0x0000ff00) << 8) | ((x >> 8) & 0x0000ff00) | (x >> 24);
}

struct Digest {
  uint h[8];

  void begin() {
    for (int i = 0; i < 8; ++i) h[i] = kStart[i];
  }

  // One block of 16 words. The schedule is a ring of 16, whose indices are known since rounds go by 16.
  void compress(thread uint* w) {
    uint a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (int first = 0; first < 64; first += 16) {
      #pragma unroll
      for (int j = 0; j < 16; ++j) {
        if (first > 0) {
          uint w15 = w[(j + 1) & 15], w2 = w[(j + 14) & 15];
          uint s0 = right(w15, 7) ^ right(w15, 18) ^ (w15 >> 3);
          uint s1 = right(w2, 17) ^ right(w2, 19) ^ (w2 >> 10);
          w[j] += s0 + w[(j + 9) & 15] + s1;
        }
        uint big1 = right(e, 6) ^ right(e, 11) ^ right(e, 25);
        uint choice = (e & f) ^ (~e & g);
        uint t1 = last + big1 + choice + K[first + j] + w[j];
        uint big0 = right(a, 2) ^ right(a, 13) ^ right(a, 22);
        uint majority = (a & b) ^ (a & c) ^ (b & c);
        last = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + big0 + majority;
      }
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += last;
  }

  void store(threadgroup uint* to) const {
    for (int i = 0; i < 8; ++i) to[i] = h[i];
  }

  void load(threadgroup const uint* from) {
    for (int i = 0; i < 8; ++i) h[i] = from[i];
  }
};

// A byte before the words moves all of them by a byte: a word has its neighbour's last byte first.
inline uint behind(uint before, uint word) { return (before << 24) | (word >> 8); }

// 33 bytes: one block.
inline Digest leaf(thread const uint* x) {
  uint w[16];
  w[0] = behind(0, x[0]);
  for (int i = 1; i < 8; ++i) w[i] = behind(x[i - 1], x[i]);
  w[8] = behind(x[7], 0x80000000u);
  for (int i = 9; i < 15; ++i) w[i] = 0;
  w[15] = 33 * 8;
  Digest d;
  d.begin();
  d.compress(w);
  return d;
}

// 65 bytes: one block, and a second with the last byte, the mark and the length.
inline Digest node(thread const uint* x) {
  uint w[16];
  w[0] = behind(1, x[0]);
  for (int i = 1; i < 16; ++i) w[i] = behind(x[i - 1], x[i]);
  Digest d;
  d.begin();
  d.compress(w);
  w[0] = behind(x[15], 0x80000000u);
  for (int i = 1; i < 15; ++i) w[i] = 0;
  w[15] = 65 * 8;
  d.compress(w);
  return d;
}

}  // namespace sha256
""",
    template=[("LEAVES", 32)],
    inputs=lambda rng: {
        "leaves": rng.integers(0, 256, (4, 32, 32), np.uint8),
        "counts": np.array([32, 13, 1, 7], np.int32),
    },
    outputs={"roots": ((4, 8), "uint32"), "depths": ((4,), "uint32")},
    grid=(4 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.constant_array structure.struct structure.reinterpret_cast functions.rotate "
    "barriers.run_time_trip_count address_spaces.threadgroup_pointer_to_helper structure.pragma_unroll",
)
def merkle_roots_by_sha256(leaves, counts):
    roots, depths = [], []
    for tree, count in zip(leaves, counts, strict=True):
        nodes = [hashlib.sha256(b"\0" + leaf.tobytes()).digest() for leaf in tree[:count]]
        depth = 0
        while len(nodes) > 1:
            pairs = [hashlib.sha256(b"\1" + a + b).digest() for a, b in zip(nodes[::2], nodes[1::2], strict=False)]
            nodes = pairs + nodes[len(pairs) * 2 :]
            depth += 1
        roots.append(np.frombuffer(nodes[0], ">u4").astype(np.uint32))
        depths.append(depth)
    return np.array(roots), np.array(depths, np.uint32)


# ---- Cyclic redundancy checks


@body(
    """
    // Records of any lengths, one for each thread. The threads make the tables first: slice[k][b] is the remainder of the
    // byte b with k zero bytes behind it, so that four bytes need four look-ups and no shifts between them.
    threadgroup uint slice[4][256];
    uint t = thread_position_in_threadgroup.x;
    uint c = t;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (0xEDB88320u & (0u - (c & 1)));
    slice[0][t] = c;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    #pragma unroll
    for (int k = 1; k < 4; ++k) {
      c = (c >> 8) ^ slice[0][c & 0xff];
      slice[k][t] = c;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint record = thread_position_in_grid.x;
    if (record + 1 >= uint(offsets_shape[0])) return;
    uint at = offsets[record], end = offsets[record + 1];
    uint crc = ~0u;
    // Bytes up to a multiple of four.
    for (; at < end && (at & 3); ++at) crc = (crc >> 8) ^ slice[0][(crc ^ data[at]) & 0xff];
    for (; at + 4 <= end; at += 4) {
      uint four = crc ^ *(const device uint*)(data + at);
      crc = slice[3][four & 0xff] ^ slice[2][(four >> 8) & 0xff] ^ slice[1][(four >> 16) & 0xff] ^ slice[0][four >> 24];
    }
    for (; at < end; ++at) crc = (crc >> 8) ^ slice[0][(crc ^ data[at]) & 0xff];
    crcs[record] = ~crc;
    """,
    inputs=lambda rng: {
        "data": rng.integers(0, 256, 4000, np.uint8),
        "offsets": np.concatenate([[0, 0, 1, 3], np.sort(rng.integers(4, 4001, 150)), [4000]]).astype(np.int32),
    },
    outputs={"crcs": ((154,), "uint32")},
    grid=(256, 1, 1),
    threadgroup=(256, 1, 1),
    constructs="address_spaces.threadgroup_2d_array structure.early_return layouts.shape_arguments "
    "address_spaces.device_pointer_arithmetic reconvergence.divergent_trip_count",
)
def crc32_of_records(data, offsets):
    return np.array([zlib.crc32(data[a:b].tobytes()) for a, b in itertools.pairwise(offsets)], np.uint32)


def _crc32c_table():
    table = []
    for c in range(256):
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
        table.append(c)
    return table


@body(
    """
    // One message for each simdgroup. Each thread takes blocks of BLOCK bytes; a block's remainder is moved to its place in
    // the message by a product with x^(8 * bytes behind it), and the remainders are added, which is exclusive or.
    uint lane = thread_index_in_simdgroup;
    uint message = threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup;
    if (message >= uint(messages_shape[0])) return;
    device const uint8_t* bytes = messages + message * messages_shape[1];
    uint length = lengths[message];

    uint sum = 0;
    for (uint begin = lane * BLOCK; begin < length; begin += 32 * BLOCK) {
      uint end = min(begin + BLOCK, length);
      uint crc = begin == 0 ? 0xffffffffu : 0u;
      for (uint at = begin; at < end; ++at) crc = crc32c::step(crc, bytes[at]);
      sum ^= crc32c::multiply(crc, crc32c::power_of_x(length - end));
    }
    sum = simd_xor(sum);
    if (lane == 0) crcs[message] = length == 0 ? 0 : ~sum;
    """,
    header="""
// CRC-32C: the polynomial x^32 + x^28 + x^27 + x^26 + x^25 + x^23 + x^22 + x^20 + x^19 + x^18 + x^14 + x^13 + x^11 + x^10
// + x^9 + x^8 + x^6 + 1, with the coefficient of x^0 in the highest bit.
namespace crc32c {

constant uint kPolynomial = 0x82f63b78;

constant uint kBytes[256] = {
"""
    + _table(_crc32c_table())
    + """
};

inline uint step(uint crc, uint8_t byte) { return kBytes[(crc ^ byte) & 0xff] ^ (crc >> 8); }

// The product of two polynomials, modulo the polynomial. Bit 31 is x^0.
inline uint multiply(uint a, uint b) {
  uint product = 0;
  for (uint mask = 0x80000000u; mask != 0; mask >>= 1) {
    if (a & mask) product ^= b;
    b = b & 1 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// x^(8 n), by squaring.
inline uint power_of_x(uint n) {
  uint result = 0x80000000u;   // x^0
  uint square = 0x00800000u;   // x^8
  while (n != 0) {
    if (n & 1) result = multiply(result, square);
    square = multiply(square, square);
    n >>= 1;
  }
  return result;
}

}  // namespace crc32c
""",
    template=[("BLOCK", 12)],
    inputs=lambda rng: {
        "messages": rng.integers(0, 256, (7, 500), np.uint8),
        "lengths": np.array([500, 12, 13, 0, 1, 384, 399], np.int32),
    },
    outputs={"crcs": ((7,), "uint32")},
    grid=(8 * 32, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.xor address_spaces.constant_array attributes.simdgroups_per_threadgroup types.uint8_t "
    "structure.return_before_simd structure.while",
)
def crc32c_joined_from_blocks(messages, lengths):
    table, out = _crc32c_table(), []
    for message, length in zip(messages, lengths, strict=True):
        crc = 0xFFFFFFFF
        for byte in message[:length].tolist():
            crc = table[(crc ^ byte) & 255] ^ crc >> 8
        out.append(crc ^ 0xFFFFFFFF)
    return np.array(out, np.uint32)


# ---- Hashes of 64 bits


@body(
    """
    uint i = thread_position_in_grid.x;
    device const uchar* p = records + i * RECORD;
    uint length = lengths[i];
    ulong seed = seeds[i % seeds_shape[0]];
    ulong h;
    uint at = 0;
    if (length >= 32) {
      ulong4 lanes = ulong4(seed) + ulong4(P1 + P2, P2, 0, 0ul - P1);
      for (; at + 32 <= length; at += 32) {
        device const ulong* q = (device const ulong*)(p + at);
        lanes.x = xx_round(lanes.x, q[0]);
        lanes.y = xx_round(lanes.y, q[1]);
        lanes.z = xx_round(lanes.z, q[2]);
        lanes.w = xx_round(lanes.w, q[3]);
      }
      h = rotl64(lanes.x, 1) + rotl64(lanes.y, 7) + rotl64(lanes.z, 12) + rotl64(lanes.w, 18);
      #pragma unroll
      for (int j = 0; j < 4; ++j) h = (h ^ xx_round(0, lanes[j])) * P1 + P4;
    } else {
      h = seed + P5;
    }
    h += length;
    for (; at + 8 <= length; at += 8) h = rotl64(h ^ xx_round(0, *(device const ulong*)(p + at)), 27) * P1 + P4;
    if (at + 4 <= length) {
      h = rotl64(h ^ (ulong(*(device const uint*)(p + at)) * P1), 23) * P2 + P3;
      at += 4;
    }
    while (at < length) h = rotl64(h ^ (p[at++] * P5), 11) * P1;
    h ^= h >> 33; h *= P2;
    h ^= h >> 29; h *= P3;
    hashes[i] = h ^ (h >> 32);
    """,
    header="""
#define RECORD 104
#define P1 0x9E3779B185EBCA87ul
#define P2 0xC2B2AE3D27D4EB4Ful
#define P3 0x165667B19E3779F9ul
#define P4 0x85EBCA77C2B2AE63ul
#define P5 0x27D4EB2F165667C5ul

METAL_FUNC ulong rotl64(ulong x, uint by) { return (x << by) | (x >> (64 - by)); }
METAL_FUNC ulong xx_round(ulong lane, ulong input) { return rotl64(lane + input * P2, 31) * P1; }
""",
    inputs=lambda rng: {
        "records": rng.integers(0, 256, (105, 104), np.uint8),
        "lengths": np.arange(105, dtype=np.int32),
        "seeds": np.array([0, 2654435761, 2**63 + 11], np.uint64),
    },
    outputs={"hashes": ((105,), "uint64")},
    grid=(105, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.ulong types.ulong4 structure.define_in_header mlx.METAL_FUNC types.component_index",
)
def xxhash64_of_records(records, lengths, seeds):
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def mixed(accumulator, word):
        return _rotl64((accumulator + word * p2) & _M64, 31) * p1 & _M64

    def hashed(data, seed):
        whole = len(data) // 32 * 32
        if whole:
            state = [(seed + s) & _M64 for s in (p1 + p2, p2, 0, -p1)]
            for at in range(0, whole, 8):
                state[at // 8 % 4] = mixed(state[at // 8 % 4], int.from_bytes(data[at : at + 8], "little"))
            h = sum(_rotl64(s, by) for s, by in zip(state, (1, 7, 12, 18), strict=True)) & _M64
            for s in state:
                h = ((h ^ mixed(0, s)) * p1 + p4) & _M64
        else:
            h = (seed + p5) & _M64
        h, rest = (h + len(data)) & _M64, data[whole:]
        while len(rest) >= 8:
            h = (_rotl64(h ^ mixed(0, int.from_bytes(rest[:8], "little")), 27) * p1 + p4) & _M64
            rest = rest[8:]
        if len(rest) >= 4:
            h = (_rotl64(h ^ int.from_bytes(rest[:4], "little") * p1 & _M64, 23) * p2 + p3) & _M64
            rest = rest[4:]
        for byte in rest:
            h = _rotl64(h ^ byte * p5 & _M64, 11) * p1 & _M64
        h = (h ^ h >> 33) * p2 & _M64
        h = (h ^ h >> 29) * p3 & _M64
        return h ^ h >> 32

    return np.array(
        [
            hashed(record[:n].tobytes(), int(seeds[i % 3]))
            for i, (record, n) in enumerate(zip(records, lengths, strict=True))
        ],
        np.uint64,
    )


for _c, _d in ((2, 4), (1, 3)):

    def _siphash(words, lengths, key, _c=_c, _d=_d):
        def turn(v):
            v[0] = (v[0] + v[1]) & _M64
            v[2] = (v[2] + v[3]) & _M64
            v[1], v[3] = _rotl64(v[1], 13) ^ v[0], _rotl64(v[3], 16) ^ v[2]
            v[0] = (_rotl64(v[0], 32) + v[3]) & _M64
            v[2] = (v[2] + v[1]) & _M64
            v[3], v[1] = _rotl64(v[3], 21) ^ v[0], _rotl64(v[1], 17) ^ v[2]
            v[2] = _rotl64(v[2], 32)

        out = []
        k = [int(k) for k in key]
        for row, n in zip(words, lengths, strict=True):
            data = row.tobytes()[:n]
            data += bytes(-(n + 1) % 8) + bytes([n & 255])
            v = [int.from_bytes(b"somepseudorandomlygeneratedbytes"[i : i + 8], "big") for i in range(0, 32, 8)]
            v = [value ^ k[i % 2] for i, value in enumerate(v)]
            for at in range(0, len(data), 8):
                m = int.from_bytes(data[at : at + 8], "little")
                v[3] ^= m
                for _ in range(_c):
                    turn(v)
                v[0] ^= m
            v[2] ^= 0xFF
            for _ in range(_d):
                turn(v)
            out.append(v[0] ^ v[1] ^ v[2] ^ v[3])
        return np.array(out, np.uint64)

    body(
        """
    uint i = thread_position_in_grid.x;
    uint n = lengths[i];
    SipState s(key[0], key[1]);
    device const ulong* row = words + i * uint(words_shape[1]);
    for (uint j = 0; j < n / 8; ++j) s.absorb<C>(row[j]);
    // What is left, below the length's lowest byte.
    ulong last = ulong(n) << 56;
    device const uchar* rest = (device const uchar*)(row + n / 8);
    switch (n & 7) {
      case 7: last |= ulong(rest[6]) << 48;  // fall through
      case 6: last |= ulong(rest[5]) << 40;
      case 5: last |= ulong(rest[4]) << 32;
      case 4: last |= ulong(rest[3]) << 24;
      case 3: last |= ulong(rest[2]) << 16;
      case 2: last |= ulong(rest[1]) << 8;
      case 1: last |= ulong(rest[0]); break;
      case 0: break;
    }
    s.absorb<C>(last);
    hashes[i] = s.finish<D>();
    """,
        name=f"siphash_{_c}_{_d}",
        header="""
struct SipState {
  ulong v0, v1, v2, v3;
  SipState(ulong k0, ulong k1)
      : v0(k0 ^ 0x736f6d6570736575), v1(k1 ^ 0x646f72616e646f6d), v2(k0 ^ 0x6c7967656e657261), v3(k1 ^ 0x7465646279746573) {}

#define HALF_ROUND(a, b, c, d, s, t) \\
  a += b; c += d;                    \\
  b = rotate(b, ulong(s)) ^ a;       \\
  d = rotate(d, ulong(t)) ^ c;       \\
  a = rotate(a, ulong(32));

  template <int N>
  void rounds() {
    #pragma unroll
    for (int i = 0; i < N; ++i) {
      HALF_ROUND(v0, v1, v2, v3, 13, 16)
      HALF_ROUND(v2, v1, v0, v3, 17, 21)
    }
  }
#undef HALF_ROUND

  template <int N>
  void absorb(ulong m) {
    v3 ^= m;
    rounds<N>();
    v0 ^= m;
  }

  template <int N>
  ulong finish() {
    v2 ^= 0xff;
    rounds<N>();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};
""",
        template=[("C", _c), ("D", _d)],
        inputs=lambda rng: {
            "words": rng.integers(0, 2**64, (40, 6), np.uint64),
            "lengths": (np.arange(40) % 41).astype(np.uint16),
            "key": rng.integers(0, 2**64, 2, np.uint64),
        },
        outputs={"hashes": ((40,), "uint64")},
        grid=(40, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="structure.switch structure.multi_line_macro_in_header structure.template functions.rotate types.ulong "
        "structure.explicit_template_arguments",
    )(_siphash)


# ---- SHA-3


for _bits in (256, 512):

    def _sha3(messages, lengths, _bits=_bits):
        digests = [
            hashlib.new(f"sha3_{_bits}", message[:n].tobytes()).digest()
            for message, n in zip(messages, lengths, strict=True)
        ]
        return np.array([np.frombuffer(digest, "<u8") for digest in digests])

    body(
        """
    // A simdgroup for each message: 25 of its lanes hold the state, a word each. Lane x + 5 y is the word of column x.
    constexpr uint rate = 200 - BITS / 4;
    ushort lane = thread_index_in_simdgroup;
    uint message = thread_position_in_grid.y;
    device const uchar* bytes = messages + message * messages_shape[1];
    uint length = lengths[message];
    const ushort x = lane % 5, y = lane / 5;
    // Where this lane's neighbours are. The last seven lanes only look on.
    const bool used = lane < 25;
    const ushort left = (x + 4) % 5, right = (x + 1) % 5, second = (x + 2) % 5;
    const ushort from = used ? (x + 3 * y) % 5 + 5 * x : lane;
    const uint turn = used ? kRotation[lane] : 0;

    ulong word = 0;
    for (uint block = 0; block * rate <= length; ++block) {
      if (lane < rate / 8) {
        ulong in = 0;
        for (uint j = 0; j < 8; ++j) {
          uint at = block * rate + lane * 8 + j;
          ulong byte = at < length ? bytes[at] : at == length ? 6 : 0;
          in |= byte << (8 * j);
        }
        bool last = (block + 1) * rate > length;
        if (last && lane == rate / 8 - 1) in |= 0x8000000000000000ul;
        word ^= in;
      }
      for (int round = 0; round < 24; ++round) {
        // The parity of each column.
        ulong parity = 0;
        #pragma unroll
        for (ushort j = 0; j < 5; ++j) parity ^= simd_shuffle(word, ushort(x + 5 * j));
        ulong next = simd_shuffle(parity, right);
        word ^= simd_shuffle(parity, left) ^ ((next << 1) | (next >> 63));
        // Words turn, then change places.
        word = turn == 0 ? word : (word << turn) | (word >> (64 - turn));
        word = simd_shuffle(word, from);
        // The only step that is not linear.
        ulong a = simd_shuffle(word, ushort(right + 5 * y));
        ulong b = simd_shuffle(word, ushort(second + 5 * y));
        word ^= ~a & b;
        if (lane == 0) word ^= kRound[round];
      }
    }
    if (lane < BITS / 64) digests[message * (BITS / 64) + lane] = word;
    """,
        name=f"sha3_{_bits}_by_lanes",
        header="""
constant uint kRotation[25] = {
  0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14,
};
constant ulong kRound[24] = {
  0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B, 0x0000000080000001,
  0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
  0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
  0x000000000000800A, 0x800000008000000A, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};
""",
        template=[("BITS", _bits)],
        inputs=lambda rng: {
            "messages": rng.integers(0, 256, (6, 300), np.uint8),
            "lengths": np.array([0, 135, 136, 71, 300, 271], np.int32),
        },
        outputs={"digests": ((6, _bits // 64), "uint64")},
        grid=(32, 6, 1),
        threadgroup=(32, 2, 1),
        constructs="simdgroup.shuffle simdgroup.run_time_lane types.ulong address_spaces.constant_array "
        "structure.constexpr structure.template_arguments",
    )(_sha3)


# ---- Tables


@body(
    """
    // How often each key occurs in its batch, and where first. Keys go into an open table in threadgroup memory; which slot a
    // key gets depends on who comes first, what is counted there does not.
    constexpr uint SLOTS = 256;
    constexpr uint EMPTY = 0xffffffff;
    threadgroup atomic_uint slots[SLOTS];
    threadgroup atomic_uint tally[SLOTS];
    threadgroup atomic_uint first[SLOTS];
    threadgroup atomic_uint distinct;
    uint t = thread_index_in_threadgroup, size = threads_per_threadgroup.x;
    for (uint s = t; s < SLOTS; s += size) {
      atomic_store_explicit(&slots[s], EMPTY, memory_order_relaxed);
      atomic_store_explicit(&tally[s], 0, memory_order_relaxed);
      atomic_store_explicit(&first[s], 0xffffffffu, memory_order_relaxed);
    }
    if (t == 0) atomic_store_explicit(&distinct, 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    uint key = keys[thread_position_in_grid.x];
    uint slot = scatter(key) % SLOTS;
    for (uint tries = 1;; ++tries) {
      uint seen = EMPTY;
      bool taken = atomic_compare_exchange_weak_explicit(&slots[slot], &seen, key, memory_order_relaxed, memory_order_relaxed);
      if (taken) atomic_fetch_add_explicit(&distinct, 1u, memory_order_relaxed);
      if (taken || seen == key) break;
      // A weak exchange may fail though the slot is empty: then once more, else on by growing steps.
      if (seen != EMPTY) slot = (slot + tries) % SLOTS;
    }
    atomic_fetch_add_explicit(&tally[slot], 1u, memory_order_relaxed);
    atomic_fetch_min_explicit(&first[slot], t, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    counts[thread_position_in_grid.x] = atomic_load_explicit(&tally[slot], memory_order_relaxed);
    firsts[thread_position_in_grid.x] = atomic_load_explicit(&first[slot], memory_order_relaxed);
    if (t == 0) uniques[threadgroup_position_in_grid.x] = atomic_load_explicit(&distinct, memory_order_relaxed);
    """,
    header="""
inline uint scatter(uint h) {
  h ^= h >> 16;
  h *= 0x7feb352du;
  h ^= h >> 15;
  h *= 0x846ca68bu;
  return h ^ (h >> 16);
}
""",
    # As many as there are different ones, a few, and one.
    inputs=lambda rng: {
        "keys": np.concatenate(
            [rng.permutation(160), rng.integers(1000, 1030, 160), np.full(160, 7), rng.integers(0, 2**31, 160)]
        ).astype(np.uint32),
    },
    outputs={"counts": ((640,), "uint32"), "firsts": ((640,), "uint32"), "uniques": ((4,), "uint32")},
    grid=(640, 1, 1),
    threadgroup=(160, 1, 1),
    constructs="synchronisation.compare_exchange synchronisation.threadgroup_atomics synchronisation.fetch_min "
    "synchronisation.fetch_add synchronisation.load synchronisation.store address_spaces.threadgroup_atomic",
)
def counts_by_hash_table(keys):
    counts, firsts, uniques = [], [], []
    for batch in keys.reshape(4, 160):
        _, first, inverse, count = np.unique(batch, return_index=True, return_inverse=True, return_counts=True)
        counts.append(count[inverse])
        firsts.append(first[inverse])
        uniques.append(len(count))
    return (
        np.concatenate(counts).astype(np.uint32),
        np.concatenate(firsts).astype(np.uint32),
        np.array(uniques, np.uint32),
    )


@body(
    """
    // A Bloom filter of BITS bits: words go in by fetch_or, then each query asks for its HASHES bits.
    uint i = thread_position_in_grid.x;
    threadgroup atomic_uint filter_bits[BITS / 32];
    for (uint w = i; w < BITS / 32; w += threads_per_grid.x) atomic_store_explicit(filter_bits + w, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < uint(members_shape[0])) {
      uint2 h = two_hashes(members + i * 8, member_lengths[i]);
      for (uint k = 0; k < HASHES; ++k) {
        uint bit = place(h, k) % BITS;
        atomic_fetch_or_explicit(filter_bits + bit / 32, 1u << (bit % 32), memory_order_relaxed);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint2 h = two_hashes(queries + i * 8, query_lengths[i]);
    bool maybe = true;
    for (uint k = 0; k < HASHES && maybe; ++k) {
      uint bit = place(h, k) % BITS;
      maybe = (atomic_load_explicit(filter_bits + bit / 32, memory_order_relaxed) >> (bit % 32)) & 1;
    }
    verdicts[i] = maybe;
    uint total = 0;
    for (uint w = i; w < BITS / 32; w += threads_per_grid.x) {
      words[w] = atomic_load_explicit(filter_bits + w, memory_order_relaxed);
      total += popcount(words[w]);
    }
    total = simd_sum(total);
    if (simd_is_first()) filled[simdgroup_index_in_threadgroup] = total;
    """,
    header="""
// FNV-1a with two starting values.
inline uint2 two_hashes(const device uchar* text, uint length) {
  uint2 h = uint2(0x811c9dc5u, 0x050c5d1fu);
  for (uint j = 0; j < length; ++j) h = (h ^ uint(text[j])) * 16777619u;
  return uint2(h.x, h.y | 1);
}
// The k-th of as many as one likes, from two.
inline uint place(uint2 h, uint k) { return h.x + k * h.y + (k * k * k - k) / 6; }
""",
    template=[("BITS", 1024), ("HASHES", 4)],
    inputs=lambda rng: {
        "members": (words := rng.integers(97, 123, (60, 8)).astype(np.uint8)),
        "member_lengths": (lengths := rng.integers(3, 9, 60).astype(np.uint8)),
        "queries": np.concatenate([words[:40], rng.integers(97, 123, (56, 8)).astype(np.uint8)]),
        "query_lengths": np.concatenate([lengths[:40], rng.integers(3, 9, 56).astype(np.uint8)]),
    },
    outputs={"words": ((32,), "uint32"), "verdicts": ((96,), "bool"), "filled": ((3,), "uint32")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="synchronisation.fetch_or synchronisation.threadgroup_atomics functions.popcount simdgroup.is_first "
    "types.uint2 simdgroup.sum",
)
def bloom_filter(members, member_lengths, queries, query_lengths):
    def places(text, length):
        a, b = 0x811C9DC5, 0x050C5D1F
        for byte in text[:length].tolist():
            a, b = (a ^ byte) * 16777619 % 2**32, (b ^ byte) * 16777619 % 2**32
        b |= 1
        return {(a + k * b + (k**3 - k) // 6) % 2**32 % 1024 for k in range(4)}

    bits = set().union(*(places(t, n) for t, n in zip(members, member_lengths, strict=True)))
    flags = np.zeros(1024, bool)
    flags[list(bits)] = True
    words = np.packbits(flags, bitorder="little").view(np.uint32)
    verdicts = np.array([places(t, n) <= bits for t, n in zip(queries, query_lengths, strict=True)])
    # Words 0 to 31 are the first simdgroup's.
    return words, verdicts, np.array([flags.sum(), 0, 0], np.uint32)
