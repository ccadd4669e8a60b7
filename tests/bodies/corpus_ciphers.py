"""Ciphers with their checks, as they are written for speed: tables, unrolled rounds, long numbers in parts."""

import hashlib

import numpy as np

from bodies import body
from bodies.corpus_numbers import _SBOX, _aes_encrypt, _gf_multiply, _lines

_INVERSE = [_SBOX.index(i) for i in range(256)]


def _decryption_table(turns):
    """(14 s, 9 s, 13 s, 11 s) for each byte, the first in the highest bits, turned by bytes."""
    table = []
    for s in _INVERSE:
        column = [_gf_multiply(s, factor, 0x11B) for factor in (14, 9, 13, 11)]
        column = column[4 - turns :] + column[: 4 - turns]
        table.append(int.from_bytes(bytes(column), "big"))
    return table


@body(
    """
    // Chained blocks are decrypted in any order: each thread takes its block and adds the one before. Round keys are made by the
    // first threads and turned for decryption by all. At the end the padding says how long the text is; padding that is none is
    // told without saying where it is wrong.
    threadgroup uint keys[44];
    threadgroup atomic_uint wrong;
    const uint t = thread_index_in_threadgroup, message = threadgroup_position_in_grid.y;
    const uint blocks = block_counts[message];
    if (t == 0) {
      atomic_store_explicit(&wrong, 0u, memory_order_relaxed);
      for (uint i = 0; i < 4; ++i) keys[i] = swapped(((device const uint*)key)[4 * message + i]);
      uint factor = 0x01000000;
      for (uint i = 4; i < 44; i += 4) {
        const uint last = keys[i - 1];
        keys[i] = keys[i - 4] ^ factor ^ uint(kSubstitute[(last >> 16) & 255]) << 24 ^ uint(kSubstitute[(last >> 8) & 255]) << 16
                ^ uint(kSubstitute[last & 255]) << 8 ^ uint(kSubstitute[last >> 24]);
        keys[i + 1] = keys[i - 3] ^ keys[i];
        keys[i + 2] = keys[i - 2] ^ keys[i + 1];
        keys[i + 3] = keys[i - 1] ^ keys[i + 2];
        factor = i == 32 ? 0x1b000000 : factor << 1;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // All but the first and the last round key go through the inverse mixing: a table of substituted bytes does it, once the
    // substitution is taken back.
    for (uint i = 4 + t; i < 40; i += threads_per_threadgroup.x) {
      const uint k = keys[i];
      keys[i] = kTurn0[kSubstitute[k >> 24]] ^ kTurn1[kSubstitute[(k >> 16) & 255]] ^ kTurn2[kSubstitute[(k >> 8) & 255]]
              ^ kTurn3[kSubstitute[k & 255]];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const bool active = t < blocks;
    uint s0, s1, s2, s3, t0, t1, t2, t3;
    if (active) {
      device const uint4* in = (device const uint4*)cipher + message * (cipher_shape[1] / 16);
      const uint4 own = in[t], before = t == 0 ? ((device const uint4*)start)[message] : in[t - 1];
      s0 = swapped(own.x) ^ keys[40];
      s1 = swapped(own.y) ^ keys[41];
      s2 = swapped(own.z) ^ keys[42];
      s3 = swapped(own.w) ^ keys[43];
      ROUND(t, s, 36)
      ROUND(s, t, 32)
      ROUND(t, s, 28)
      ROUND(s, t, 24)
      ROUND(t, s, 20)
      ROUND(s, t, 16)
      ROUND(t, s, 12)
      ROUND(s, t, 8)
      ROUND(t, s, 4)
      const uint p0 = LAST(t0, t3, t2, t1, 0), p1 = LAST(t1, t0, t3, t2, 1);
      const uint p2 = LAST(t2, t1, t0, t3, 2), p3 = LAST(t3, t2, t1, t0, 3);
      const uint4 out = uint4(swapped(p0), swapped(p1), swapped(p2), swapped(p3)) ^ before;
      ((device uint4*)plain)[message * (cipher_shape[1] / 16) + t] = out;
      if (t + 1 == blocks) {
        // The last byte counts those to take away, all of which are that count.
        const uchar count = uchar(out.w >> 24);
        uint difference = count == 0 || count > 16;
        for (uint j = 0; j < 16; ++j) {
          const uchar byte = uchar(out[j / 4] >> (8 * (j % 4)));
          difference |= j + count >= 16 ? byte ^ count : 0;
        }
        atomic_fetch_or_explicit(&wrong, difference, memory_order_relaxed);
        sizes[message] = difference == 0 ? int(16 * blocks - count) : -1;
      }
    }
    """,
    header="""
// Substitutes of bytes and their inverse.
constant uchar kSubstitute[256] = {
"""
    + _lines(_SBOX, 16, 2)
    + """};

constant uchar kInverse[256] = {
"""
    + _lines(_INVERSE, 16, 2)
    + """};

// What a byte of each row adds to a column when a round is undone: its inverse substitute times 14, 9, 13 and 11. Four tables, each
// the last one turned by a byte, so that no look-up has to be turned.
"""
    + "\n".join(
        f"constant uint kTurn{turns}[256] = {{\n" + _lines(_decryption_table(turns), 8, 8) + "};\n"
        for turns in range(4)
    )
    + """
inline uint swapped(uint x) {
  x = ((x & 0x00ff00ff) << 8) | ((x >> 8) & 0x00ff00ff);
  return (x << 16) | (x >> 16);
}

// Rows turn to the right, so a column's bytes come from the columns before it.
#define COLUMN(a, b, c, d, k)                                                                                 \\
  (kTurn0[(a) >> 24] ^ kTurn1[((b) >> 16) & 255] ^ kTurn2[((c) >> 8) & 255] ^ kTurn3[(d) & 255] ^ keys[k])

#define ROUND(to, from, k)                                     \\
  to##0 = COLUMN(from##0, from##3, from##2, from##1, (k));     \\
  to##1 = COLUMN(from##1, from##0, from##3, from##2, (k) + 1); \\
  to##2 = COLUMN(from##2, from##1, from##0, from##3, (k) + 2); \\
  to##3 = COLUMN(from##3, from##2, from##1, from##0, (k) + 3);

#define LAST(a, b, c, d, k)                                                                                  \\
  ((uint(kInverse[(a) >> 24]) << 24 | uint(kInverse[((b) >> 16) & 255]) << 16 |                              \\
    uint(kInverse[((c) >> 8) & 255]) << 8 | uint(kInverse[(d) & 255])) ^ keys[k])
""",
    inputs=lambda rng: {
        "key": (keys := rng.integers(0, 256, (4, 16), np.uint8)),
        "start": (starts := rng.integers(0, 256, (4, 16), np.uint8)),
        "cipher": np.stack(
            [
                np.frombuffer(_chained(text, k.tobytes(), s.tobytes()).ljust(160, b"\0"), np.uint8)
                for text, k, s in zip(
                    (
                        bytes(range(64, 150)) + bytes([10] * 10),
                        b"exactly one block of zeros follows" + bytes([14] * 14),
                        # Padding that is none.
                        bytes(rng.integers(32, 100, 47).tolist()) + b"\x02",
                        bytes([16] * 16),
                    ),
                    keys,
                    starts,
                    strict=True,
                )
            ]
        ),
        "block_counts": np.array([6, 3, 3, 1], np.int32),
    },
    outputs={"plain": ((4, 160), "uint8"), "sizes": ((4,), "int32")},
    grid=(10, 4, 1),
    threadgroup=(10, 1, 1),
    init_value=0,
    constructs="structure.long_body address_spaces.constant_array structure.multi_line_macro_in_header "
    "structure.token_pasting simdgroup.partial types.uint4 address_spaces.cast_to_vector types.component_index "
    "barriers.after_divergent_condition",
)
def aes_chained_blocks_decrypted(key, start, cipher, block_counts):
    plain, sizes = np.zeros((4, 160), np.uint8), []
    for row, count in enumerate(block_counts):
        k, before = key[row].tobytes(), start[row].tobytes()
        out = b""
        for at in range(0, 16 * int(count), 16):
            block = cipher[row, at : at + 16].tobytes()
            out += bytes(a ^ b for a, b in zip(_aes_decrypted(block, k), before, strict=True))
            # It is what encrypting gives back.
            assert _aes_encrypt(_aes_decrypted(block, k), k) == block
            before = block
        plain[row, : len(out)] = list(out)
        right = 1 <= out[-1] <= 16 and out[-out[-1] :] == bytes([out[-1]] * out[-1])
        sizes.append(len(out) - out[-1] if right else -1)
    return plain, np.array(sizes, np.int32)


def _chained(text, key, before):
    out = b""
    for at in range(0, len(text), 16):
        before = _aes_encrypt(bytes(a ^ b for a, b in zip(text[at : at + 16], before, strict=True)), key)
        out += before
    return out


def _aes_decrypted(block, key):
    """The rounds backwards, byte by byte."""
    schedule, factor = [list(key[4 * i : 4 * i + 4]) for i in range(4)], 1
    for i in range(4, 44):
        word = schedule[i - 1]
        if i % 4 == 0:
            word = [_SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= factor
            factor = _gf_multiply(factor, 2, 0x11B)
        schedule.append([a ^ b for a, b in zip(schedule[i - 4], word, strict=True)])
    state = list(block)
    for number in range(10, -1, -1):
        state = [
            a ^ b
            for a, b in zip(state, [b for word in schedule[4 * number : 4 * number + 4] for b in word], strict=True)
        ]
        if number in (10, 0):
            mixed = state
        else:
            mixed = [
                _gf_multiply(state[c + r], 14, 0x11B)
                ^ _gf_multiply(state[c + (r + 1) % 4], 11, 0x11B)
                ^ _gf_multiply(state[c + (r + 2) % 4], 13, 0x11B)
                ^ _gf_multiply(state[c + (r + 3) % 4], 9, 0x11B)
                for c in range(0, 16, 4)
                for r in range(4)
            ]
        if number:
            state = [_INVERSE[mixed[(i - 4 * (i % 4)) % 16]] for i in range(16)]
    return bytes(state)


# ---- ChaCha20 and Poly1305


@body(
    """
    // A message's cipher and its tag (RFC 8439), a simdgroup for each: lanes make a block of 64 bytes each and add it to the text;
    // then the tag, a polynomial over 2^130 - 5. Lane l sums every 32nd block of 16 bytes by Horner with r^32, times its own
    // power of r; the sum of all lanes is the message's. Numbers have five limbs of 26 bits.
    threadgroup uint limbs[33][5];
    const uint lane = thread_index_in_simdgroup, message = threadgroup_position_in_grid.x;
    const uint length = lengths[message], most = text_shape[1];
    device const uint* k = (device const uint*)key + 8 * message;
    device const uint* n = (device const uint*)nonce + 3 * message;

    // Block 0 is not for the text: its first half is the tag's key.
    for (uint block = lane; block < 1 + (length + 63) / 64; block += 32) {
      uint4 a = uint4(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574);
      uint4 b = uint4(k[0], k[1], k[2], k[3]), c = uint4(k[4], k[5], k[6], k[7]);
      uint4 d = uint4(block, n[0], n[1], n[2]);
      const uint4 a0 = a, b0 = b, c0 = c, d0 = d;
      for (int round = 0; round < 10; ++round) {
        QUARTERS
        // Diagonals become columns.
        b = b.yzwx;
        c = c.zwxy;
        d = d.wxyz;
        QUARTERS
        b = b.wxyz;
        c = c.zwxy;
        d = d.yzwx;
      }
      const uint4 stream[4] = {a + a0, b + b0, c + c0, d + d0};
      if (block == 0) {
        const uint4 r = stream[0] & uint4(0x0fffffff, 0x0ffffffc, 0x0ffffffc, 0x0ffffffc);
        poly::Number x = poly::from_words(r, 0);
        for (int j = 0; j < 5; ++j) limbs[0][j] = x.limb[j];
        for (int j = 0; j < 4; ++j) tags[message * 4 + j] = stream[1][j];
        continue;
      }
      const uint first = 64 * (block - 1);
      for (uint j = 0; j < 64 && first + j < length; ++j) {
        const uint at = message * most + first + j;
        const uint word = stream[j / 16][(j / 4) % 4];
        sealed[at] = text[at] ^ uint8_t(word >> (8 * (j % 4)));
      }
    }
    simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);

    // Powers r^1 to r^32: a lane each, by squaring.
    poly::Number r;
    for (int j = 0; j < 5; ++j) r.limb[j] = limbs[0][j];
    poly::Number power = r, square = r;
    uint exponent = 32 - lane;    // of lane l's last block
    bool begun = false;
    for (int bit = 0; bit < 6; ++bit) {
      if ((exponent >> bit) & 1) {
        power = begun ? poly::times(power, square) : square;
        begun = true;
      }
      square = poly::times(square, square);
    }
    poly::Number all;      // r^32, which is lane 0's
    for (int j = 0; j < 5; ++j) all.limb[j] = simd_broadcast(power.limb[j], 0);

    // The text's blocks, padded with zeros to whole ones, then one with the lengths (of what is sealed only: 0 before it).
    // They are numbered so that the last is lane 31's; a lane may begin with a number that is not there, which is zero.
    const int text_blocks = int(length + 15) / 16, blocks = text_blocks + 1, missing = (32 - blocks % 32) % 32;
    poly::Number sum;
    for (int j = 0; j < 5; ++j) sum.limb[j] = 0;
    for (int row = 0; row < (blocks + missing) / 32; ++row) {
      const int block = row * 32 + int(lane) - missing;
      uint4 words = 0;
      if (block >= 0 && block < text_blocks) {
        for (uint j = 0; j < 16; ++j) {
          const uint at = 16 * block + j;
          if (at < length) words[j / 4] |= uint(sealed[message * most + at]) << (8 * (j % 4));
        }
      } else if (block == text_blocks) {
        words = uint4(0, 0, length, 0);
      }
      if (row > 0) sum = poly::times(sum, all);
      sum = poly::plus(sum, poly::from_words(words, block >= 0));
    }
    sum = poly::times(sum, power);
    for (ushort distance = 16; distance > 0; distance /= 2) {
      poly::Number other;
      for (int j = 0; j < 5; ++j) other.limb[j] = simd_shuffle_xor(sum.limb[j], distance);
      sum = poly::plus(sum, other);
    }
    if (lane == 0) {
      const uint4 reduced = poly::to_words(sum);
      // Modulo 2^128 from here on.
      ulong carry = 0;
      for (int j = 0; j < 4; ++j) {
        carry += ulong(reduced[j]) + tags[message * 4 + j];
        tags[message * 4 + j] = uint(carry);
        carry >>= 32;
      }
    }
    """,
    header="""
#define QUARTERS                     \\
  a += b; d = rotate(d ^ a, 16u);    \\
  c += d; b = rotate(b ^ c, 12u);    \\
  a += b; d = rotate(d ^ a, 8u);     \\
  c += d; b = rotate(b ^ c, 7u);

// Numbers modulo 2^130 - 5: limbs of 26 bits, which may be a little larger between operations.
namespace poly {

constant uint kMask = (1u << 26) - 1;

struct Number {
  uint limb[5];
};

// Four words, the lowest first, and a bit above them.
inline Number from_words(uint4 w, bool above) {
  Number x;
  x.limb[0] = w.x & kMask;
  x.limb[1] = (w.x >> 26 | w.y << 6) & kMask;
  x.limb[2] = (w.y >> 20 | w.z << 12) & kMask;
  x.limb[3] = (w.z >> 14 | w.w << 18) & kMask;
  x.limb[4] = w.w >> 8 | (above ? 1u << 24 : 0);
  return x;
}

// Carries go round: 2^130 is 5.
inline Number settled(thread ulong* t) {
  Number x;
  ulong carry = 0;
  for (int j = 0; j < 5; ++j) {
    t[j] += carry;
    carry = t[j] >> 26;
    x.limb[j] = uint(t[j]) & kMask;
  }
  carry = x.limb[0] + carry * 5;
  x.limb[0] = uint(carry) & kMask;
  x.limb[1] += uint(carry >> 26);
  return x;
}

inline Number plus(Number a, Number b) {
  ulong t[5];
  for (int j = 0; j < 5; ++j) t[j] = ulong(a.limb[j]) + b.limb[j];
  return settled(t);
}

inline Number times(Number a, Number b) {
  ulong t[5];
  #pragma unroll
  for (int j = 0; j < 5; ++j) {
    t[j] = 0;
    #pragma unroll
    for (int i = 0; i < 5; ++i) {
      // Limb i of a and limb j - i of b; what is above 2^130 comes back five times.
      const int other = j >= i ? j - i : j - i + 5;
      t[j] += ulong(a.limb[i]) * (j >= i ? b.limb[other] : b.limb[other] * 5);
    }
  }
  return settled(t);
}

// The least number that is the same, and of it the lowest 128 bits.
inline uint4 to_words(Number x) {
  uint carry = 0;
  for (int pass = 0; pass < 2; ++pass) {
    carry = 0;
    for (int j = 0; j < 5; ++j) {
      x.limb[j] += carry;
      carry = x.limb[j] >> 26;
      x.limb[j] &= kMask;
    }
    x.limb[0] += carry * 5;
  }
  // Less 2^130 - 5, where it is at least that.
  uint less[5];
  carry = 5;
  for (int j = 0; j < 5; ++j) {
    less[j] = x.limb[j] + carry;
    carry = less[j] >> 26;
    less[j] &= kMask;
  }
  if (carry)
    for (int j = 0; j < 5; ++j) x.limb[j] = less[j];
  return uint4(
      x.limb[0] | x.limb[1] << 26,
      x.limb[1] >> 6 | x.limb[2] << 20,
      x.limb[2] >> 12 | x.limb[3] << 14,
      x.limb[3] >> 18 | x.limb[4] << 8);
}

}  // namespace poly
""",
    inputs=lambda rng: {
        "text": rng.integers(0, 256, (5, 700), np.uint8),
        "key": rng.integers(0, 256, (5, 32), np.uint8),
        "nonce": rng.integers(0, 256, (5, 12), np.uint8),
        "lengths": np.array([700, 0, 1, 511, 64], np.int32),
    },
    outputs={"sealed": ((5, 700), "uint8"), "tags": ((5, 4), "uint32")},
    grid=(5 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    init_value=0,
    constructs="types.uint4 types.swizzle_read types.ulong functions.rotate simdgroup.broadcast simdgroup.shuffle_xor "
    "synchronisation.simdgroup_barrier structure.multi_line_macro_in_header types.component_index address_spaces.thread "
    "reconvergence.continue_before_call",
)
def chacha20_and_poly1305(text, key, nonce, lengths):
    def block(key, counter, nonce):
        words = np.frombuffer(b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce, "<u4").tolist()
        s = list(words)

        def quarter(a, b, c, d):
            for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[x] = (s[x] + s[y]) % 2**32
                v = s[z] ^ s[x]
                s[z] = (v << by | v >> (32 - by)) % 2**32

        for _ in range(10):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        return b"".join(((a + b) % 2**32).to_bytes(4, "little") for a, b in zip(s, words, strict=True))

    sealed, tags = np.zeros((5, 700), np.uint8), []
    for row, n in enumerate(lengths.tolist()):
        k, iv = key[row].tobytes(), nonce[row].tobytes()
        stream = b"".join(block(k, 1 + i, iv) for i in range(-(-n // 64)))
        sealed[row, :n] = text[row, :n] ^ np.frombuffer(stream[:n], np.uint8)
        once = block(k, 0, iv)
        r = int.from_bytes(once[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
        data = sealed[row, :n].tobytes() + bytes(-n % 16) + bytes(8) + n.to_bytes(8, "little")
        tag = 0
        for at in range(0, len(data), 16):
            tag = (tag + int.from_bytes(data[at : at + 16], "little") + 2**128) * r % (2**130 - 5)
        tag = (tag + int.from_bytes(once[16:32], "little")) % 2**128
        tags.append([tag >> 32 * j & 0xFFFFFFFF for j in range(4)])
    return sealed, np.array(tags, np.uint32)


# ---- Keys from pass phrases


def _sha512_constants():
    """The first 64 bits of the fractional parts of the cube roots of the first 80 primes."""
    primes = [p for p in range(2, 410) if all(p % q for q in range(2, p))]
    constants = []
    for p in primes:
        # The cube root in 64 bits behind the point, by bisection.
        low, high = 0, 8 << 64
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**3 <= p << 192 else (low, middle)
        constants.append(low & (2**64 - 1))
    return constants


@body(
    """
    // PBKDF2 with HMAC-SHA-512: a thread for each pass phrase of at most 32 bytes, ROUNDS rounds. What depends on the phrase only,
    // the first block inside and outside, is hashed once; a round is two blocks then.
    const uint i = thread_position_in_grid.x;
    device const uchar* phrase = phrases + i * 32;
    const uint length = phrase_lengths[i];
    sha512::Block inner, outer;
    for (uint j = 0; j < 16; ++j) {
      ulong word = 0;
      for (uint b = 0; b < 8; ++b) {
        const uint at = 8 * j + b;
        word = word << 8 | (at < length ? phrase[at] : 0);
      }
      inner.w[j] = word ^ 0x3636363636363636ul;
      outer.w[j] = word ^ 0x5c5c5c5c5c5c5c5cul;
    }
    sha512::State inside = sha512::begin(), outside = sha512::begin();
    inside.add(inner);
    outside.add(outer);

    // The salt (8 bytes) and the number of the part, 1.
    sha512::Block block;
    block.w[0] = salts[i];
    block.w[1] = 0x0000000180000000ul;
    for (int j = 2; j < 15; ++j) block.w[j] = 0;
    block.w[15] = (128 + 12) * 8;
    sha512::State result = inside;
    result.add(block);
    sha512::State sum;
    for (int j = 0; j < 8; ++j) sum.h[j] = 0;
    for (int round = 0; round < ROUNDS; ++round) {
      if (round > 0) {
        block.of_digest(result);
        result = inside;
        result.add(block);
      }
      block.of_digest(result);
      result = outside;
      result.add(block);
      for (int j = 0; j < 8; ++j) sum.h[j] ^= result.h[j];
    }
    for (int j = 0; j < 8; ++j) keys[i * 8 + j] = sum.h[j];
    """,
    header="""
namespace sha512 {

constant ulong kRound[80] = {
"""
    + _lines(_sha512_constants(), 4, 16)
    + """};

inline ulong right(ulong x, uint by) { return (x >> by) | (x << (64 - by)); }

struct State;

struct Block {
  ulong w[16];
  void of_digest(State s);
};

struct State {
  ulong h[8];

  void add(Block b) {
    ulong v[8];
    for (int j = 0; j < 8; ++j) v[j] = h[j];
    for (int first = 0; first < 80; first += 16) {
      for (int j = 0; j < 16; ++j) {
        if (first > 0) {
          const ulong x = b.w[(j + 1) & 15], y = b.w[(j + 14) & 15];
          b.w[j] += (right(x, 1) ^ right(x, 8) ^ (x >> 7)) + b.w[(j + 9) & 15] + (right(y, 19) ^ right(y, 61) ^ (y >> 6));
        }
        const ulong e = v[4], a = v[0];
        const ulong t = v[7] + (right(e, 14) ^ right(e, 18) ^ right(e, 41)) + ((e & v[5]) ^ (~e & v[6])) + kRound[first + j] + b.w[j];
        const ulong u = (right(a, 28) ^ right(a, 34) ^ right(a, 39)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        for (int m = 7; m > 0; --m) v[m] = v[m - 1];
        v[4] += t;
        v[0] = t + u;
      }
    }
    for (int j = 0; j < 8; ++j) h[j] += v[j];
  }
};

// A digest and the padding behind a block and it.
inline void Block::of_digest(State s) {
  for (int j = 0; j < 8; ++j) w[j] = s.h[j];
  w[8] = 0x8000000000000000ul;
  for (int j = 9; j < 15; ++j) w[j] = 0;
  w[15] = (128 + 64) * 8;
}

inline State begin() {
  return {{0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
           0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179}};
}

}  // namespace sha512
""",
    template=[("ROUNDS", 3)],
    inputs=lambda rng: {
        "phrases": rng.integers(32, 127, (10, 32)).astype(np.uint8),
        "phrase_lengths": np.array([0, 1, 7, 8, 9, 15, 16, 20, 31, 32], np.uint8),
        "salts": rng.integers(0, 2**64, 10, np.uint64),
    },
    outputs={"keys": ((10, 8), "uint64")},
    grid=(10, 1, 1),
    threadgroup=(10, 1, 1),
    constructs="types.ulong address_spaces.constant_array structure.struct structure.template_arguments",
)
def keys_from_pass_phrases(phrases, phrase_lengths, salts):
    keys = [
        np.frombuffer(hashlib.pbkdf2_hmac("sha512", p[:n].tobytes(), int(s).to_bytes(8, "big"), 3), ">u8")
        for p, n, s in zip(phrases, phrase_lengths, salts, strict=True)
    ]
    return np.array(keys).astype(np.uint64)
