"""Bits, fields and long numbers: ciphers, error correction, transforms modulo primes, space-filling curves, packing."""

import numpy as np

from bodies import body


def _lines(values, per_line, width, suffix=""):
    """Constants as they are pasted into a header."""
    rows = [values[i : i + per_line] for i in range(0, len(values), per_line)]
    return "".join("  " + ", ".join(f"0x{value:0{width}x}{suffix}" for value in row) + ",\n" for row in rows)


# ---- A field of 256


def _gf_multiply(a, b, polynomial):
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (polynomial if a & 128 else 0)
        b >>= 1
    return product


def _sbox():
    inverse = [0] * 256
    for a in range(1, 256):
        inverse[a] = next(b for b in range(256) if _gf_multiply(a, b, 0x11B) == 1) if not inverse[a] else inverse[a]
        inverse[inverse[a]] = a
    box = []
    for a in inverse:
        turned = a * 0x101
        box.append((a ^ turned >> 7 ^ turned >> 6 ^ turned >> 5 ^ turned >> 4) & 255 ^ 0x63)
    return box


_SBOX = _sbox()


def _rounds_table():
    """A column (2 s, s, s, 3 s) for each byte, the first in the highest bits."""
    return [_gf_multiply(s, 2, 0x11B) << 24 | s << 16 | s << 8 | _gf_multiply(s, 3, 0x11B) for s in _SBOX]


def _aes_encrypt(block, key):
    """As the standard says it, byte by byte."""
    words = len(key) // 4
    schedule = [list(key[4 * i : 4 * i + 4]) for i in range(words)]
    factor = 1
    for i in range(words, 4 * (words + 7)):
        word = schedule[i - 1]
        if i % words == 0:
            word = [_SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= factor
            factor = _gf_multiply(factor, 2, 0x11B)
        elif words == 8 and i % 8 == 4:
            word = [_SBOX[b] for b in word]
        schedule.append([a ^ b for a, b in zip(schedule[i - words], word, strict=True)])

    def add(state, number):
        keys = [b for word in schedule[4 * number : 4 * number + 4] for b in word]
        return [a ^ b for a, b in zip(state, keys, strict=True)]

    state = add(block, 0)
    for number in range(1, words + 7):
        state = [_SBOX[b] for b in state]
        state = [state[(i + 4 * (i % 4)) % 16] for i in range(16)]
        if number < words + 6:
            mixed = []
            for c in range(0, 16, 4):
                for r in range(4):
                    a, b, d, e = (state[c + (r + j) % 4] for j in range(4))
                    mixed.append(_gf_multiply(a, 2, 0x11B) ^ _gf_multiply(b, 3, 0x11B) ^ d ^ e)
            state = mixed
        state = add(state, number)
    return bytes(state)


for _key_bits in (128, 256):

    def _aes_counter(message, key, nonce, lengths, _key_bits=_key_bits):
        out = np.zeros((3, 112), np.uint8)
        for row, n in enumerate(lengths):
            stream = b"".join(
                _aes_encrypt(nonce[row].tobytes() + (block + 1).to_bytes(4, "big"), key[row].tobytes())
                for block in range(-(-int(n) // 16))
            )
            out[row, :n] = message[row, :n] ^ np.frombuffer(stream, np.uint8)[:n]
        return out

    body(
        """
    // Counter mode: a threadgroup for each message, which has its own key; one thread makes the round keys, all encrypt their
    // counters and add them to the text. Four look-ups and three turns a column and round; the last round has none of the mixing.
    constexpr int WORDS = KEY_BITS / 32, ROUNDS = WORDS + 6;
    threadgroup uint round_keys[4 * (ROUNDS + 1)];
    const uint t = thread_index_in_threadgroup, row = threadgroup_position_in_grid.y;
    if (t == 0) {
      device const uchar* from = key + row * 4 * WORDS;
      for (int i = 0; i < WORDS; ++i) round_keys[i] = big_endian(from + 4 * i);
      uint factor = 1;
      for (int i = WORDS; i < 4 * (ROUNDS + 1); ++i) {
        uint word = round_keys[i - 1];
        if (i % WORDS == 0) {
          word = substituted(rotate(word, 8u)) ^ factor << 24;
          factor = factor << 1 ^ (factor & 0x80 ? 0x11b : 0);
        } else if (WORDS == 8 && i % 8 == 4) {
          word = substituted(word);
        }
        round_keys[i] = round_keys[i - WORDS] ^ word;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const uint length = lengths[row], begin = 16 * t;
    if (begin >= length) return;
    device const uchar* iv = nonce + row * 12;
    uint4 s = uint4(big_endian(iv), big_endian(iv + 4), big_endian(iv + 8), t + 1);
    s ^= uint4(round_keys[0], round_keys[1], round_keys[2], round_keys[3]);
    // Two rounds at a time, from s to m and back.
    uint4 m;
    for (int round = 1; round < ROUNDS - 1; round += 2) {
      ROUND(m, s, 4 * round)
      ROUND(s, m, 4 * round + 4)
    }
    ROUND(m, s, 4 * (ROUNDS - 1))
    LAST_ROUND(s, m, 4 * ROUNDS)
    if (begin + 16 <= length) {
      const uint4 text = reinterpret_cast<device const packed_uint4*>(message + row * message_shape[1])[t];
      reinterpret_cast<device packed_uint4*>(out + row * message_shape[1])[t] = text ^ uint4(
          reversed(s.x), reversed(s.y), reversed(s.z), reversed(s.w));
    } else {
      for (uint j = 0; begin + j < length; ++j) {
        const uint at = row * message_shape[1] + begin + j;
        out[at] = message[at] ^ uchar(s[j / 4] >> (24 - 8 * (j % 4)));
      }
    }
    """,
        name=f"aes_{_key_bits}_counter_mode",
        header="""
// The inverse in GF(256), then an affine map: what stands in for each byte.
constant uchar kSubstitutes[256] = {
"""
        + _lines(_SBOX, 16, 2)
        + """};

// What a substituted byte adds to its column: twice itself, itself, itself, and three times itself. For the other three rows it
// is turned by a byte each.
constant uint kRound[256] = {
"""
        + _lines(_rounds_table(), 8, 8)
        + """};

inline uint big_endian(device const uchar* p) {
  return uint(p[0]) << 24 | uint(p[1]) << 16 | uint(p[2]) << 8 | uint(p[3]);
}

inline uint reversed(uint x) {
  const uchar4 b = as_type<uchar4>(x);
  return as_type<uint>(b.wzyx);
}

inline uint substituted(uint x) {
  return uint(kSubstitutes[x >> 24]) << 24 | uint(kSubstitutes[(x >> 16) & 255]) << 16
       | uint(kSubstitutes[(x >> 8) & 255]) << 8 | uint(kSubstitutes[x & 255]);
}

// A column of the next state from a byte each of four columns, which is how rows are shifted.
#define COLUMN(a, b, c, d, k)                                                                   \\
  (kRound[(a) >> 24] ^ rotate(kRound[((b) >> 16) & 255], 24u) ^                                 \\
   rotate(kRound[((c) >> 8) & 255], 16u) ^ rotate(kRound[(d) & 255], 8u) ^ round_keys[k])

#define ROUND(to, from, first)                                     \\
  to.x = COLUMN(from.x, from.y, from.z, from.w, (first));          \\
  to.y = COLUMN(from.y, from.z, from.w, from.x, (first) + 1);      \\
  to.z = COLUMN(from.z, from.w, from.x, from.y, (first) + 2);      \\
  to.w = COLUMN(from.w, from.x, from.y, from.z, (first) + 3);

#define LAST_COLUMN(a, b, c, d, k)                                                              \\
  (uint(kSubstitutes[(a) >> 24]) << 24 | uint(kSubstitutes[((b) >> 16) & 255]) << 16 |          \\
   uint(kSubstitutes[((c) >> 8) & 255]) << 8 | uint(kSubstitutes[(d) & 255])) ^ round_keys[k]

#define LAST_ROUND(to, from, first)                                \\
  to.x = LAST_COLUMN(from.x, from.y, from.z, from.w, (first));     \\
  to.y = LAST_COLUMN(from.y, from.z, from.w, from.x, (first) + 1); \\
  to.z = LAST_COLUMN(from.z, from.w, from.x, from.y, (first) + 2); \\
  to.w = LAST_COLUMN(from.w, from.x, from.y, from.z, (first) + 3);
""",
        template=[("KEY_BITS", _key_bits)],
        inputs=lambda rng, _key_bits=_key_bits: {
            "message": rng.integers(0, 256, (3, 112), np.uint8),
            "key": rng.integers(0, 256, (3, _key_bits // 8), np.uint8),
            "nonce": rng.integers(0, 256, (3, 12), np.uint8),
            "lengths": np.array([112, 45, 16], np.int32),
        },
        outputs={"out": ((3, 112), "uint8")},
        grid=(8, 3, 1),
        threadgroup=(8, 1, 1),
        init_value=0,
        constructs="address_spaces.constant_array structure.multi_line_macro_in_header types.packed_vectors types.as_type "
        "functions.rotate types.uint4 structure.reinterpret_cast structure.early_return types.swizzle_read "
        "structure.constexpr",
    )(_aes_counter)


def _gf_tables():
    exponents, logarithms, value = [], [0] * 256, 1
    for power in range(255):
        exponents.append(value)
        logarithms[value] = power
        value = _gf_multiply(value, 2, 0x11D)
    return exponents, logarithms


_EXPONENTS, _LOGARITHMS = _gf_tables()


def _reed_solomon_words(rng, count, data_bytes, check_bytes):
    """Code words, and where they are wrong."""
    generator = [1]
    for power in range(check_bytes):
        root, shifted = _EXPONENTS[power], [*generator, 0]
        generator = [a ^ _gf_multiply(b, root, 0x11D) for a, b in zip(shifted, [0, *generator], strict=True)]
    words = []
    for _ in range(count):
        data = rng.integers(0, 256, data_bytes).tolist()
        rest = data + [0] * check_bytes
        for i in range(data_bytes):
            factor = rest[i]
            for j, g in enumerate(generator):
                rest[i + j] ^= _gf_multiply(factor, g, 0x11D)
        words.append(data + rest[data_bytes:])
    return np.array(words, np.uint8)


@body(
    """
    // Decodes Reed-Solomon words of LENGTH bytes with CHECKS of them for checking, a word for each simdgroup: syndromes by all
    // lanes, Berlekamp and Massey's search for the shortest register by every lane alike, Chien's search for its roots by all
    // lanes, Forney's formula for what is wrong there.
    const uint lane = thread_index_in_simdgroup, word = threadgroup_position_in_grid.x;
    device const uchar* in = received + word * LENGTH;
    device uchar* out = corrected + word * LENGTH;
    uint syndrome[CHECKS];
    uint any_wrong = 0;
    for (uint k = 0; k < CHECKS; ++k) {
      // The word as a polynomial at 2^k; a lane's part begins at its first byte's power.
      uint sum = 0;
      for (uint at = lane; at < LENGTH; at += 32) sum ^= gf::times_power(in[at], k * (LENGTH - 1 - at));
      syndrome[k] = simd_xor(sum);
      any_wrong |= syndrome[k];
    }
    for (uint at = lane; at < LENGTH; at += 32) out[at] = in[at];
    if (any_wrong == 0) {
      if (lane == 0) status[word] = 0;
      return;
    }

    uint locator[CHECKS + 1] = {1}, last[CHECKS + 1] = {1};
    uint size = 0, gap = 1, last_discrepancy = 1;
    for (uint k = 0; k < CHECKS; ++k) {
      uint discrepancy = syndrome[k];
      for (uint j = 1; j <= size; ++j) discrepancy ^= gf::times(locator[j], syndrome[k - j]);
      if (discrepancy == 0) {
        ++gap;
        continue;
      }
      const uint factor = gf::over(discrepancy, last_discrepancy);
      uint kept[CHECKS + 1];
      for (uint j = 0; j <= CHECKS; ++j) kept[j] = locator[j];
      for (uint j = gap; j <= CHECKS; ++j) locator[j] ^= gf::times(factor, last[j - gap]);
      if (2 * size <= k) {
        size = k + 1 - size;
        for (uint j = 0; j <= CHECKS; ++j) last[j] = kept[j];
        last_discrepancy = discrepancy;
        gap = 1;
      } else {
        ++gap;
      }
    }

    // The errors' values: syndromes times the locator, below the number of checks.
    uint evaluator[CHECKS];
    for (uint j = 0; j < CHECKS; ++j) {
      evaluator[j] = 0;
      for (uint i = 0; i <= min(j, size); ++i) evaluator[j] ^= gf::times(locator[i], syndrome[j - i]);
    }

    uint found = 0;
    for (uint first = 0; first < LENGTH; first += 32) {
      const uint at = first + lane;
      const uint inverse = 255 - (LENGTH - 1 - at) % 255;    // 2^inverse is one by the place's power
      uint value = 0;
      for (uint j = 0; j <= size; ++j) value ^= gf::times_power(locator[j], j * inverse);
      const bool wrong = at < LENGTH && value == 0;
      if (wrong) {
        uint top = 0, slope = 0;
        for (uint j = 0; j < CHECKS; ++j) top ^= gf::times_power(evaluator[j], j * inverse);
        for (uint j = 1; j <= size; j += 2) slope ^= gf::times_power(locator[j], (j - 1) * inverse);
        out[at] = in[at] ^ uchar(gf::times_power(gf::over(top, slope), LENGTH - 1 - at));
      }
      found += simd_sum(wrong ? 1u : 0u);
    }
    // Fewer roots than the register is long, or too many: it was not to be corrected.
    const bool right = found == size && size <= CHECKS / 2;
    if (!right)
      for (uint at = lane; at < LENGTH; at += 32) out[at] = in[at];
    if (lane == 0) status[word] = right ? int(found) : -1;
    """,
    header="""
// The field of 256 elements by x^8 + x^4 + x^3 + x^2 + 1, in which 2 generates all but 0.
namespace gf {

constant uchar kPower[255] = {
"""
    + _lines(_EXPONENTS, 16, 2)
    + """};

constant uchar kLogarithm[256] = {
"""
    + _lines(_LOGARITHMS, 16, 2)
    + """};

// a * 2^power.
inline uint times_power(uint a, uint power) { return a == 0 ? 0 : kPower[(kLogarithm[a] + power) % 255]; }

inline uint times(uint a, uint b) { return b == 0 ? 0 : times_power(a, kLogarithm[b]); }

inline uint over(uint a, uint b) { return b == 0 ? 0 : times_power(a, 255 - kLogarithm[b]); }

}  // namespace gf
""",
    template=[("LENGTH", 60), ("CHECKS", 10)],
    inputs=lambda rng: {
        "received": _reed_solomon_words(rng, 7, 50, 10)
        ^ np.stack(
            [
                np.where(np.isin(np.arange(60), rng.choice(60, wrong, replace=False)), rng.integers(1, 256, 60), 0)
                for wrong in (0, 1, 2, 3, 4, 5, 9)
            ]
        ).astype(np.uint8)
    },
    outputs={"corrected": ((7, 60), "uint8"), "status": ((7,), "int32")},
    grid=(7 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.constant_array simdgroup.xor simdgroup.sum structure.dynamic_local_array "
    "structure.return_before_simd structure.template_arguments",
)
def reed_solomon_decoding(received):
    def times(a, b):
        return _gf_multiply(a, b, 0x11D)

    def solved(matrix):
        """The last column's combination of the others by Gauss's elimination; nothing if there is more than one."""
        rows = [list(row) for row in matrix]
        for c in range(len(rows)):
            pivot = next((r for r in range(c, len(rows)) if rows[r][c]), None)
            if pivot is None:
                return None
            rows[c], rows[pivot] = rows[pivot], rows[c]
            inverse = _EXPONENTS[-_LOGARITHMS[rows[c][c]] % 255]
            rows[c] = [times(v, inverse) for v in rows[c]]
            for r in range(len(rows)):
                if r != c:
                    rows[r] = [v ^ times(rows[r][c], w) for v, w in zip(rows[r], rows[c], strict=True)]
        return [row[-1] for row in rows]

    def decoded(word):
        s = [0] * 10
        for at, byte in enumerate(word):
            s = [v ^ times(byte, _EXPONENTS[k * (59 - at) % 255]) for k, v in enumerate(s)]
        if not any(s):
            return word, 0
        # Peterson: as many errors as equations can be solved for.
        for count in range(5, 0, -1):
            locator = solved([s[i : i + count + 1] for i in range(count)])
            if locator is not None:
                break
        else:
            return word, -1
        powers = []
        for power in range(60):
            x, value = _EXPONENTS[power], 0
            for coefficient in [1, *locator[::-1]]:
                value = times(value, x) ^ coefficient
            if value == 0:
                powers.append(power)
        if len(powers) != count:
            return word, -1
        values = solved([[_EXPONENTS[k * p % 255] for p in powers] + [s[k]] for k in range(count)])
        word = list(word)
        for power, value in zip(powers, values, strict=True):
            word[59 - power] ^= value
        return word, count

    words, status = zip(*(decoded(word) for word in received.tolist()), strict=True)
    return np.array(words, np.uint8), np.array(status, np.int32)


# ---- Numbers modulo primes


@body(
    """
    // Products of polynomials modulo 998244353 = 119 * 2^23 + 1, by the transform: a threadgroup for each pair, N / 2 threads.
    // Numbers are kept in Montgomery's form, so that a product needs two multiplications and no division.
    threadgroup uint a[N], b[N];
    const uint t = thread_index_in_threadgroup, pair = threadgroup_position_in_grid.x;
    const uint na = left_lengths[pair], nb = right_lengths[pair];
    for (uint j = t; j < N; j += N / 2) {
      a[j] = j < na ? mont::in(left[pair * N / 2 + j]) : 0;
      b[j] = j < nb ? mont::in(right[pair * N / 2 + j]) : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Down: by decimation in frequency, so that results come in bit-reversed order.
    for (uint half_span = N / 2; half_span > 0; half_span /= 2) {
      const uint low = 2 * half_span * (t / half_span) + t % half_span;
      const uint root = mont::power(mont::kRoot, (mont::P - 1) / (2 * half_span) * (t % half_span));
      {
        const uint x = a[low], y = a[low + half_span];
        a[low] = mont::sum(x, y);
        a[low + half_span] = mont::product(mont::difference(x, y), root);
      }
      {
        const uint x = b[low], y = b[low + half_span];
        b[low] = mont::sum(x, y);
        b[low + half_span] = mont::product(mont::difference(x, y), root);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    // No one else needs these two places: no barrier.
    for (uint j = t; j < N; j += N / 2) a[j] = mont::product(a[j], b[j]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Up: by decimation in time, from bit-reversed order to the natural one, with the roots' inverses.
    for (uint half_span = 1; half_span < N; half_span *= 2) {
      const uint low = 2 * half_span * (t / half_span) + t % half_span;
      const uint root = mont::power(mont::kRoot, mont::P - 1 - (mont::P - 1) / (2 * half_span) * (t % half_span));
      const uint x = a[low], y = mont::product(a[low + half_span], root);
      a[low] = mont::sum(x, y);
      a[low + half_span] = mont::difference(x, y);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    const uint scale = mont::power(mont::in(N), mont::P - 2);
    for (uint j = t; j < N; j += N / 2) out[pair * N + j] = mont::out(mont::product(a[j], scale));
    """,
    header="""
namespace mont {

constant uint P = 998244353;
// -1 / P modulo 2^32, 2^64 modulo P, and 3 (whose powers are all numbers) in Montgomery's form.
constant uint kInverse = 998244351;
constant uint kSquare = 932051910;
constant uint kRoot = 905969652;

inline uint sum(uint a, uint b) {
  const uint s = a + b;
  return s >= P ? s - P : s;
}

inline uint difference(uint a, uint b) { return a >= b ? a - b : a + P - b; }

// a b / 2^32.
inline uint product(uint a, uint b) {
  const ulong wide = ulong(a) * b;
  const uint m = uint(wide) * kInverse;
  // The lower halves add up to 2^32, but for zero.
  const uint high = uint(wide >> 32) + mulhi(m, P) + (uint(wide) != 0 ? 1 : 0);
  return high >= P ? high - P : high;
}

inline uint in(uint a) { return product(a, kSquare); }
inline uint out(uint a) { return product(a, 1); }

inline uint power(uint a, uint n) {
  uint result = product(1, kSquare);
  for (; n != 0; n >>= 1) {
    if (n & 1) result = product(result, a);
    a = product(a, a);
  }
  return result;
}

}  // namespace mont
""",
    template=[("N", 128)],
    inputs=lambda rng: {
        "left": rng.integers(0, 998244353, (3, 64), np.uint32),
        "right": rng.integers(0, 998244353, (3, 64), np.uint32),
        "left_lengths": np.array([64, 1, 50], np.int32),
        "right_lengths": np.array([64, 64, 3], np.int32),
    },
    outputs={"out": ((3, 128), "uint32")},
    grid=(3 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="functions.mulhi types.ulong address_spaces.constant_scalar barriers.in_loop structure.helper_function",
)
def polynomial_products_modulo_a_prime(left, right, left_lengths, right_lengths):
    out = np.zeros((3, 128), np.uint32)
    for row in range(3):
        product = np.convolve(
            left[row, : left_lengths[row]].astype(object), right[row, : right_lengths[row]].astype(object)
        )
        out[row, : len(product)] = product % 998244353
    return out


@body(
    """
    // base^exponent modulo an odd number of LIMBS * 32 bits, a thread for each: Montgomery's products limb by limb, the exponent
    // two bits at a time from its highest, with the powers 1 to 3 at hand.
    const uint i = thread_position_in_grid.x;
    Big<LIMBS> modulus, x;
    modulus.load(moduli + i * LIMBS);
    x.load(bases + i * LIMBS);
    const uint inverse = minus_inverse(modulus.limb[0]);

    // 2^(64 LIMBS) modulo the modulus, by doubling from 1: what takes numbers into Montgomery's form.
    Big<LIMBS> square;
    square.set(1);
    for (int j = 0; j < 64 * LIMBS; ++j) square.twice(modulus);
    Big<LIMBS> one;
    one.set(1);
    Big<LIMBS> powers[4];
    powers[0] = product(one, square, modulus, inverse);
    powers[1] = product(x, square, modulus, inverse);
    powers[2] = product(powers[1], powers[1], modulus, inverse);
    powers[3] = product(powers[2], powers[1], modulus, inverse);

    Big<LIMBS> result = powers[0];
    const device uint* exponent = exponents + i * EXPONENT_WORDS;
    for (int bit = 32 * EXPONENT_WORDS - 2; bit >= 0; bit -= 2) {
      result = product(result, result, modulus, inverse);
      result = product(result, result, modulus, inverse);
      const uint digit = (exponent[bit / 32] >> (bit % 32)) & 3;
      // All four are read whatever the digit is, so that time does not tell.
      Big<LIMBS> factor = powers[0];
      for (uint k = 1; k < 4; ++k)
        for (int j = 0; j < LIMBS; ++j) factor.limb[j] = digit == k ? powers[k].limb[j] : factor.limb[j];
      result = product(result, factor, modulus, inverse);
    }
    result = product(result, one, modulus, inverse);
    for (int j = 0; j < LIMBS; ++j) out[i * LIMBS + j] = result.limb[j];
    """,
    header="""
// Numbers of N limbs, the lowest first.
template <int N>
struct Big {
  uint limb[N];

  void load(const device uint* from) {
    for (int j = 0; j < N; ++j) limb[j] = from[j];
  }

  void set(uint value) {
    for (int j = 0; j < N; ++j) limb[j] = j == 0 ? value : 0;
  }

  // Less b where it is at least b, or where a bit stands above.
  void reduce(thread const Big& b, uint above) {
    uint less[N];
    uint borrow = 0;
    for (int j = 0; j < N; ++j) {
      const ulong d = ulong(limb[j]) - b.limb[j] - borrow;
      less[j] = uint(d);
      borrow = uint(d >> 63);
    }
    const bool takes = above != 0 || borrow == 0;
    for (int j = 0; j < N; ++j) limb[j] = takes ? less[j] : limb[j];
  }

  void twice(thread const Big& modulus) {
    uint carry = 0;
    for (int j = 0; j < N; ++j) {
      const uint next = limb[j] >> 31;
      limb[j] = limb[j] << 1 | carry;
      carry = next;
    }
    reduce(modulus, carry);
  }
};

// -1 / a modulo 2^32, by Newton: each step doubles the bits that are right.
inline uint minus_inverse(uint a) {
  uint x = a;   // right in three bits
  for (int step = 0; step < 4; ++step) x *= 2 - a * x;
  return 0 - x;
}

// a b / 2^(32 N): a limb of a at a time, and a multiple of the modulus that makes the lowest limb zero.
template <int N>
inline Big<N> product(thread const Big<N>& a, thread const Big<N>& b, thread const Big<N>& modulus, uint inverse) {
  uint t[N + 2];
  for (int j = 0; j < N + 2; ++j) t[j] = 0;
  for (int i = 0; i < N; ++i) {
    ulong carry = 0;
    for (int j = 0; j < N; ++j) {
      carry += ulong(a.limb[i]) * b.limb[j] + t[j];
      t[j] = uint(carry);
      carry >>= 32;
    }
    carry += t[N];
    t[N] = uint(carry);
    t[N + 1] = uint(carry >> 32);
    const uint m = t[0] * inverse;
    carry = (ulong(m) * modulus.limb[0] + t[0]) >> 32;
    for (int j = 1; j < N; ++j) {
      carry += ulong(m) * modulus.limb[j] + t[j];
      t[j - 1] = uint(carry);
      carry >>= 32;
    }
    carry += t[N];
    t[N - 1] = uint(carry);
    t[N] = t[N + 1] + uint(carry >> 32);
  }
  Big<N> result;
  for (int j = 0; j < N; ++j) result.limb[j] = t[j];
  result.reduce(modulus, t[N]);
  return result;
}
""",
    template=[("LIMBS", 4), ("EXPONENT_WORDS", 2)],
    inputs=lambda rng: {
        "bases": np.minimum(*(rng.integers(0, 2**32, (40, 4), np.uint32) for _ in range(2)))
        // np.array([1, 1, 1, 2], np.uint32),
        "exponents": rng.integers(0, 2**32, (40, 2), np.uint32),
        "moduli": rng.integers(0, 2**32, (40, 4), np.uint32) | np.array([1, 0, 0, 2**31], np.uint32),
    },
    outputs={"out": ((40, 4), "uint32")},
    grid=(40, 1, 1),
    threadgroup=(40, 1, 1),
    constructs="structure.template structure.struct types.ulong address_spaces.thread structure.explicit_template_arguments "
    "structure.helper_function",
)
def modular_powers_of_long_numbers(bases, exponents, moduli):
    def number(limbs):
        return sum(int(limb) << 32 * j for j, limb in enumerate(limbs))

    out = []
    for x, e, m in zip(bases, exponents, moduli, strict=True):
        value = pow(number(x), number(e), number(m))
        out.append([value >> 32 * j & (2**32 - 1) for j in range(4)])
    return np.array(out, np.uint32)


@body(
    """
    // Products of long numbers with every limb of the result its own thread: columns of products are summed in 96 bits, then
    // carries go up, first as they are, then those that a full limb hands on, by the carry look-ahead of adders: which limbs
    // make a carry and which let one through are bits of ballots, and one addition lets all carries run.
    const uint lane = thread_index_in_simdgroup, pair = thread_position_in_grid.y;
    device const uint* a = left + pair * 16;
    device const uint* b = right + pair * 16;
    ulong low = 0;
    uint high = 0;
    for (uint i = 0; i < 16; ++i) {
      const uint j = lane - i;
      if (j >= 16) continue;
      const ulong p = ulong(a[i]) * b[j];
      low += p;
      high += low < p ? 1 : 0;
    }
    // Each limb is now a sum of three words of three neighbours.
    const uint middle_below = simd_shuffle_up(uint(low >> 32), 1), high_below = simd_shuffle_up(high, 2);
    ulong sum = ulong(uint(low)) + (lane > 0 ? middle_below : 0) + (lane > 1 ? high_below : 0);
    const uint over = uint(sum >> 32);
    const uint over_below = simd_shuffle_up(over, 1);
    sum = ulong(uint(sum)) + (lane > 0 ? over_below : 0);
    const uint word = uint(sum);
    const uint makes = uint(uint64_t(simd_ballot((sum >> 32) != 0)));
    const uint passes = uint(uint64_t(simd_ballot(word == 0xffffffffu)));
    const uint carries = ((makes << 1) + passes) ^ passes;
    out[pair * 32 + lane] = word + ((carries >> lane) & 1);
    """,
    inputs=lambda rng: {
        "left": (
            left := np.where(rng.random((9, 16)) < 0.5, 2**32 - 1, rng.integers(0, 2**32, (9, 16))).astype(np.uint32)
        ),
        "right": np.where(np.arange(9)[:, None] < 3, 2**32 - 1, left[::-1]).astype(np.uint32),
    },
    outputs={"out": ((9, 32), "uint32")},
    grid=(32, 9, 1),
    threadgroup=(32, 4, 1),
    constructs="simdgroup.ballot simdgroup.shuffle_up types.ulong reconvergence.continue_before_call",
)
def products_of_long_numbers(left, right):
    out = []
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        value = sum(x << 32 * i for i, x in enumerate(a)) * sum(x << 32 * i for i, x in enumerate(b))
        out.append([value >> 32 * j & (2**32 - 1) for j in range(32)])
    return np.array(out, np.uint32)


# ---- Orders and packing


@body(
    """
    // Points along two curves that fill space: Morton's by spreading bits, Hilbert's (Skilling) by turning parts of the cube, in
    // three dimensions of ten bits; and back from both.
    const uint i = thread_position_in_grid.x;
    const ushort3 p = ushort3(((device const packed_ushort3*)points)[i]);
    const uint m = spread(p.x) | spread(p.y) << 1 | spread(p.z) << 2;
    morton[i] = m;
    ushort3 h = p;
    to_transpose(h);
    const uint along = spread(h.z) | spread(h.y) << 1 | spread(h.x) << 2;
    hilbert[i] = along;
    ushort3 back = ushort3(gather(along >> 2), gather(along >> 1), gather(along));
    from_transpose(back);
    const ushort3 other = ushort3(gather(m), gather(m >> 1), gather(m >> 2));
    same[i] = all(back == p) && all(other == p);
    """,
    header="""
#define BITS 10

// Two zeros between each two bits.
inline uint spread(uint x) {
  x = (x | x << 16) & 0x030000ff;
  x = (x | x << 8) & 0x0300f00f;
  x = (x | x << 4) & 0x030c30c3;
  return (x | x << 2) & 0x09249249;
}

inline ushort gather(uint x) {
  x &= 0x09249249;
  x = (x | x >> 2) & 0x030c30c3;
  x = (x | x >> 4) & 0x0300f00f;
  x = (x | x >> 8) & 0x030000ff;
  return ushort((x | x >> 16) & 0x3ff);
}

inline void to_transpose(thread ushort3& x) {
  for (ushort q = 1 << (BITS - 1); q > 1; q >>= 1) {
    const ushort low = q - 1;
    for (int j = 0; j < 3; ++j) {
      if (x[j] & q) {
        x.x ^= low;
      } else {
        const ushort t = (x.x ^ x[j]) & low;
        x.x ^= t;
        x[j] ^= t;
      }
    }
  }
  x.y ^= x.x;
  x.z ^= x.y;
  ushort t = 0;
  for (ushort q = 1 << (BITS - 1); q > 1; q >>= 1)
    if (x.z & q) t ^= q - 1;
  x ^= t;
}

inline void from_transpose(thread ushort3& x) {
  ushort t = x.z >> 1;
  x.z ^= x.y;
  x.y ^= x.x;
  x.x ^= t;
  for (ushort q = 2; q != 1 << BITS; q <<= 1) {
    const ushort low = q - 1;
    for (int j = 2; j >= 0; --j) {
      if (x[j] & q) {
        x.x ^= low;
      } else {
        t = (x.x ^ x[j]) & low;
        x.x ^= t;
        x[j] ^= t;
      }
    }
  }
}
""",
    inputs=lambda rng: {
        "points": np.concatenate(
            [np.stack(np.meshgrid(*[range(4)] * 3, indexing="ij"), -1).reshape(-1, 3), rng.integers(0, 1024, (60, 3))]
        ).astype(np.uint16)
    },
    outputs={"morton": ((124,), "uint32"), "hilbert": ((124,), "uint32"), "same": ((124,), "bool")},
    grid=(124, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="types.ushort3 types.packed_vectors types.component_index address_spaces.thread functions.all "
    "structure.define_in_header types.vector_comparison",
)
def curves_that_fill_space(points):
    def interleaved(coordinates):
        return sum((int(c) >> bit & 1) << (3 * bit + j) for bit in range(10) for j, c in enumerate(coordinates))

    def turned(point):
        # Each level's part of the cube: Gray code of its eight, with the axes exchanged and mirrored on the way down.
        x = [int(c) for c in point]
        for bit in range(9, 0, -1):
            low = (1 << bit) - 1
            for j in range(3):
                if x[j] >> bit & 1:
                    x[0] ^= low
                else:
                    swap = (x[0] ^ x[j]) & low
                    x[0], x[j] = x[0] ^ swap, x[j] ^ swap
        x[1] ^= x[0]
        x[2] ^= x[1]
        flip = 0
        for bit in range(9, 0, -1):
            flip ^= (1 << bit) - 1 if x[2] >> bit & 1 else 0
        return [c ^ flip for c in x]

    morton = np.array([interleaved(p) for p in points], np.uint32)
    hilbert = np.array([interleaved(turned(p)[::-1]) for p in points], np.uint32)
    # What makes it Hilbert's: the first 64 points are a cube, walked through in steps of one.
    walk = points[:64][np.argsort(hilbert[:64])].astype(int)
    assert sorted(hilbert[:64]) == list(range(64)) and (abs(np.diff(walk, axis=0)).sum(axis=1) == 1).all()
    return morton, hilbert, np.ones(124, bool)


for _width in (5, 11):

    def _packed(x, _width=_width):
        rows = x.reshape(6, 64)
        base = rows.min(axis=1, keepdims=True)
        words = []
        for row in rows - base:
            bits = np.minimum(row, 2**_width - 1)[:, None] >> np.arange(_width) & 1
            words.append(np.packbits(bits.reshape(-1).astype(np.uint8), bitorder="little").view(np.uint32))
        exceptions = (rows - base > 2**_width - 1).sum(axis=1)
        restored = np.minimum(rows, base + 2**_width - 1)
        return (
            np.array(words),
            base[:, 0].astype(np.int32),
            exceptions.astype(np.uint32),
            restored.reshape(-1).astype(np.int32),
        )

    body(
        """
    // Blocks of 64 numbers as differences from their smallest, WIDTH bits each: two numbers a thread, words put together by the
    // lanes whose words they are. What does not fit becomes the largest that does, and is counted. Then they are read again.
    constexpr uint LARGEST = (1u << WIDTH) - 1;
    threadgroup uint codes[SIMDGROUPS][64];
    const uint lane = thread_index_in_simdgroup, group = simdgroup_index_in_threadgroup;
    const uint block = threadgroup_position_in_grid.x * SIMDGROUPS + group;
    const int2 own = ((device const int2*)x)[block * 32 + lane];
    const int base = simd_min(min(own.x, own.y));
    const uint2 code = uint2(own - base);
    const uint2 large = uint2(code > LARGEST);
    const uint count = simd_sum(large.x + large.y);
    codes[group][2 * lane] = min(code.x, LARGEST);
    codes[group][2 * lane + 1] = min(code.y, LARGEST);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    device uint* to = words + block * 2 * WIDTH;
    for (uint w = lane; w < 2 * WIDTH; w += 32) {
      uint word = 0;
      // From the number that has bit 32 w to the one that has bit 32 w + 31.
      for (uint j = 32 * w / WIDTH; j * WIDTH < 32 * w + 32; ++j) {
        const int shift = int(j * WIDTH) - int(32 * w);
        word |= shift >= 0 ? codes[group][j] << shift : codes[group][j] >> -shift;
      }
      to[w] = word;
    }
    if (lane == 0) {
      bases[block] = base;
      exceptions[block] = count;
    }
    simdgroup_barrier(mem_flags::mem_device);
    for (uint j = lane; j < 64; j += 32) {
      const uint first = j * WIDTH / 32, shift = j * WIDTH % 32;
      const ulong both = ulong(to[first]) | (shift + WIDTH > 32 ? ulong(to[first + 1]) << 32 : 0ul);
      restored[block * 64 + j] = base + int(extract_bits(uint(both >> shift), 0, WIDTH));
    }
    """,
        name=f"bit_packing_{_width}",
        template=[("WIDTH", _width), ("SIMDGROUPS", 2)],
        inputs=lambda rng, _width=_width: {
            "x": (rng.integers(0, int(2**_width * 1.1), 384) + np.repeat(rng.integers(-1000, 1000, 6), 64)).astype(
                np.int32
            )
        },
        outputs={
            "words": ((6, 2 * _width), "uint32"),
            "bases": ((6,), "int32"),
            "exceptions": ((6,), "uint32"),
            "restored": ((384,), "int32"),
        },
        grid=(192, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="simdgroup.min simdgroup.sum functions.extract_bits synchronisation.simdgroup_barrier types.int2 types.uint2 "
        "address_spaces.cast_to_vector types.vector_comparison types.vector_conversion",
    )(_packed)
