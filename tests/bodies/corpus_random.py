"""Random numbers: by counters and by states, of several distributions, masks, and permutations."""

import math

import numpy as np

from bodies import body

_M32, _M64 = 2**32 - 1, 2**64 - 1


def _rotl(value, by, bits=64):
    mask = 2**bits - 1
    return (value << by | value >> (bits - by)) & mask


def _philox(counter, key, rounds=10):
    c, k = list(counter), list(key)
    for _ in range(rounds):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & _M32, p >> 32 ^ c[3] ^ k[1], p & _M32]
        k = [(k[0] + 0x9E3779B9) & _M32, (k[1] + 0xBB67AE85) & _M32]
    return c


# ---- Distributions


@body(
    """
    // One stream for each element, one draw after the other from it: the element is the counter's first word, the draw its
    // second, so that a rejection takes nothing from anyone else.
    const uint i = thread_position_in_grid.x;
    Stream s(i, uint2(as_type<uint>(seed), 0x5eedu));
    const uint kind = i % KINDS;
    float result = 0;
    switch (kind) {
      case 0: result = s.exponential(parameter_a[i]); break;
      case 1: result = s.normal() * parameter_b[i] + parameter_a[i]; break;
      case 2: result = s.gamma(parameter_a[i]) * parameter_b[i]; break;
      case 3: {
        const float x = s.gamma(parameter_a[i]), y = s.gamma(parameter_b[i]);
        result = x / (x + y);
        break;
      }
      case 4: result = float(s.poisson_by_product(parameter_a[i])); break;
      case 5: result = float(s.geometric(parameter_b[i])); break;
      case 6: result = s.triangular(-parameter_a[i], parameter_b[i], 20.0f); break;
      case 7: result = float(s.binomial(12, 0.3f)); break;
    }
    samples[i] = result;
    draws[i] = s.drawn();
    """,
    header="""
// Philox of four words and ten rounds as a stream of floats.
struct Stream {
  uint4 block;
  uint element, next, left;
  uint2 key;

  Stream(uint e, uint2 k) : block(0), element(e), next(0), left(0), key(k) {}

  static uint2 wide(uint a, uint b) { return uint2(a * b, mulhi(a, b)); }

  void refill() {
    uint4 c = uint4(element, next++, 0x243f6a88u, 0x85a308d3u);
    uint2 k = key;
    #pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint2 p = wide(0xD2511F53u, c.x), q = wide(0xCD9E8D57u, c.z);
      c = uint4(q.y ^ c.y ^ k.x, q.x, p.y ^ c.w ^ k.y, p.x);
      k += uint2(0x9E3779B9u, 0xBB67AE85u);
    }
    block = c;
    left = 4;
  }

  uint bits() {
    if (left == 0) refill();
    uint result = block.x;
    block = block.yzwx;
    --left;
    return result;
  }

  // In (0, 1): halves of 2^-24 away from both ends.
  float uniform() { return (float(bits() >> 8) + 0.5f) * 0x1p-24f; }

  uint drawn() const { return next * 4 - left; }

  float exponential(float rate) { return -precise::log(uniform()) / rate; }

  // Box and Muller; the second number is thrown away, so that a draw takes two words always.
  float normal() {
    const float u = uniform(), v = uniform();
    return precise::sqrt(-2 * precise::log(u)) * cospi(2 * v);
  }

  // Marsaglia and Tsang: a cube of a normal number, accepted nearly always.
  float gamma(float shape) {
    float boost = 1;
    if (shape < 1) {
      boost = precise::powr(uniform(), 1 / shape);
      shape += 1;
    }
    const float d = shape - 1.0f / 3, c = 1 / (3 * precise::sqrt(d));
    while (true) {
      const float x = normal(), u = uniform();
      float v = 1 + c * x;
      if (v <= 0) continue;
      v = v * v * v;
      const float x2 = x * x;
      if (u < 1 - 0.0331f * x2 * x2) return boost * d * v;
      if (precise::log(u) < 0.5f * x2 + d * (1 - v + precise::log(v))) return boost * d * v;
    }
  }

  // Knuth: how many uniform numbers until their product is below e^-mean.
  uint poisson_by_product(float mean) {
    const float limit = precise::exp(-mean);
    float product = uniform();
    uint count = 0;
    while (product > limit) {
      product *= uniform();
      ++count;
    }
    return count;
  }

  // Failures before the first success.
  uint geometric(float p) { return uint(floor(precise::log(uniform()) / log1p(-p))); }

  float triangular(float low, float mode, float high) {
    const float u = uniform(), cut = (mode - low) / (high - low);
    return u < cut ? low + precise::sqrt(u * (high - low) * (mode - low))
                   : high - precise::sqrt((1 - u) * (high - low) * (high - mode));
  }

  // By its definition, which is the fastest for few trials.
  uint binomial(uint trials, float p) {
    uint count = 0;
    for (uint j = 0; j < trials; ++j) count += uniform() < p ? 1 : 0;
    return count;
  }
};
""",
    template=[("KINDS", 8)],
    inputs=lambda rng: {
        "parameter_a": rng.uniform(0.4, 6, 320).astype(np.float32),
        "parameter_b": rng.uniform(0.1, 0.9, 320).astype(np.float32),
        "seed": 20240229,
    },
    outputs={"samples": ((320,), "float32"), "draws": ((320,), "uint32")},
    grid=(320, 1, 1),
    threadgroup=(64, 1, 1),
    # Normal numbers near zero, and sums with them.
    tolerance=1e-5,
    constructs="functions.mulhi functions.cospi functions.precise functions.log functions.log1p functions.powr "
    "structure.struct structure.switch structure.while types.uint4 types.swizzle_read literals.hexadecimal_float "
    "reconvergence.continue_before_call types.as_type",
)
def samples_of_distributions(parameter_a, parameter_b, seed):
    samples, draws = np.zeros(320), np.zeros(320, np.uint32)
    for i, (a, b) in enumerate(zip(parameter_a.tolist(), parameter_b.tolist(), strict=True)):
        drawn = 0

        def uniform(i=i):
            nonlocal drawn
            word = _philox((i, drawn // 4, 0x243F6A88, 0x85A308D3), (seed, 0x5EED))[drawn % 4]
            drawn += 1
            return ((word >> 8) + 0.5) / 2**24

        def normal(uniform=uniform):
            u, v = uniform(), uniform()
            return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)

        def gamma(shape, uniform=uniform, normal=normal):
            boost = uniform() ** (1 / shape) if shape < 1 else 1
            d = shape + (shape < 1) - 1 / 3
            while True:
                x, u = normal(), uniform()
                v = (1 + x / (3 * math.sqrt(d))) ** 3
                if v > 0 and (u < 1 - 0.0331 * x**4 or math.log(u) < x * x / 2 + d * (1 - v + math.log(v))):
                    return boost * d * v

        match i % 8:
            case 0:
                value = -math.log(uniform()) / a
            case 1:
                value = normal() * b + a
            case 2:
                value = gamma(a) * b
            case 3:
                value = gamma(a)
                value /= value + gamma(b)
            case 4:
                value, product = 0, uniform()
                while product > math.exp(-a):
                    product, value = product * uniform(), value + 1
            case 5:
                value = math.log(uniform()) // math.log1p(-b)
            case 6:
                u, low, high = uniform(), -a, 20
                left = math.sqrt(u * (high - low) * (b - low))
                value = (
                    low + left
                    if u < (b - low) / (high - low)
                    else high - math.sqrt((1 - u) * (high - low) * (high - b))
                )
            case _:
                value = sum(uniform() < 0.3 for _ in range(12))
        samples[i], draws[i] = value, drawn
    return samples, draws


# ---- Dropout


@body(
    """
    // Dropout by Threefry of two words and twenty rounds, with the mask in bits besides: a thread has four elements; the same
    // counter gives the same bits again when gradients want them.
    const uint i = thread_position_in_grid.x;
    const uint2 a = threefry(uint2(i, 0), uint2(key[0], key[1])), b = threefry(uint2(i, 1), uint2(key[0], key[1]));
    const uint4 words = uint4(a, b);
    const bool4 kept = words >= threshold;
    const uint4 at = 4 * i + uint4(0, 1, 2, 3);
    const half4 in = ((const device half4*)x)[i];
    ((device half4*)y)[i] = select(half4(0), in * half(scale), kept);
    const uint nibble = uint(kept.x) | uint(kept.y) << 1 | uint(kept.z) << 2 | uint(kept.w) << 3;
    // Eight threads' nibbles are a word, which the first of them writes.
    uint word = nibble << (4 * (thread_index_in_simdgroup % 8));
    word |= simd_shuffle_xor(word, 1);
    word |= simd_shuffle_xor(word, 2);
    word |= simd_shuffle_xor(word, 4);
    if (thread_index_in_simdgroup % 8 == 0) mask[i / 8] = word;
    const uint survivors = simd_sum(popcount(nibble));
    if (thread_index_in_simdgroup == 0) atomic_fetch_add_explicit((device atomic_uint*)count, survivors, memory_order_relaxed);
    """,
    header="""
constant uint kTurns[8] = {13, 15, 26, 6, 17, 29, 16, 24};

inline uint2 threefry(uint2 x, uint2 key) {
  const uint k[3] = {key.x, key.y, 0x1BD11BDAu ^ key.x ^ key.y};
  x += key;
  #pragma unroll(20)
  for (int round = 0; round < 20; ++round) {
    x.x += x.y;
    x.y = rotate(x.y, kTurns[round % 8]) ^ x.x;
    if (round % 4 == 3) {
      const uint n = round / 4 + 1;
      x += uint2(k[n % 3], k[(n + 1) % 3] + n);
    }
  }
  return x;
}
""",
    inputs=lambda rng: {
        "x": rng.integers(-64, 64, 768).astype(np.float16),
        "key": rng.integers(0, 2**32, 2, np.uint32),
        "threshold": np.array(2**32 // 5 * 2, np.uint32),
        "scale": 1.5,
    },
    outputs={"y": ((768,), "float16"), "mask": ((24,), "uint32"), "count": ((1,), "uint32")},
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
    init_value=0,
    constructs="functions.rotate functions.select types.bool4 types.half4 simdgroup.shuffle_xor functions.popcount "
    "types.vector_comparison address_spaces.cast_to_atomic structure.pragma_unroll layouts.zero_dimensional",
)
def dropout_by_threefry(x, key, threshold, scale):
    words = []
    k = [int(key[0]), int(key[1])]
    k.append(0x1BD11BDA ^ k[0] ^ k[1])
    for i in range(192):
        for half in range(2):
            a, b = (i + k[0]) & _M32, (half + k[1]) & _M32
            for r in range(20):
                a = (a + b) & _M32
                b = _rotl(b, (13, 15, 26, 6, 17, 29, 16, 24)[r % 8], 32) ^ a
                if r % 4 == 3:
                    n = r // 4 + 1
                    a, b = (a + k[n % 3]) & _M32, (b + k[(n + 1) % 3] + n) & _M32
            words += [a, b]
    kept = np.array(words) >= int(threshold)
    mask = np.packbits(kept, bitorder="little").view(np.uint32)
    return np.where(kept, x * np.float16(scale), np.float16(0)), mask, np.array([kept.sum()], np.uint32)


# ---- States


@body(
    """
    // Xoshiro256** for each thread, seeded by SplitMix; every stream begins 2^128 numbers behind the one before, by the jump
    // polynomial, as often as its lane says. Whole numbers below a bound without bias, and without division but for rare cases.
    const uint i = thread_position_in_grid.x;
    Xoshiro g(seeds[i / 4]);
    for (uint j = 0; j < i % 4; ++j) g.jump();
    for (uint j = 0; j < 3; ++j) words[3 * i + j] = g.next();
    const uint bound = bounds[i];
    for (uint j = 0; j < 4; ++j) rolls[4 * i + j] = g.below(bound);
    """,
    header="""
constant ulong kJump[4] = {0x180ec6d33cfd0aba, 0xd5a61266f0c9392c, 0xa9582618e03fc9aa, 0x39abdc4529b1661c};

struct Xoshiro {
  ulong s[4];

  explicit Xoshiro(ulong seed) {
    for (int j = 0; j < 4; ++j) {
      seed += 0x9e3779b97f4a7c15;
      ulong z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      s[j] = z ^ (z >> 31);
    }
  }

  ulong next() {
    const ulong result = rotate(s[1] * 5, ulong(7)) * 9;
    const ulong t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], ulong(45));
    return result;
  }

  void jump() {
    ulong t[4] = {0, 0, 0, 0};
    for (int word = 0; word < 4; ++word)
      for (int bit = 0; bit < 64; ++bit) {
        if ((kJump[word] >> bit) & 1)
          for (int j = 0; j < 4; ++j) t[j] ^= s[j];
        next();
      }
    for (int j = 0; j < 4; ++j) s[j] = t[j];
  }

  // The upper half of a product; where the lower half says that the draw is one of those too many, another draw.
  uint below(uint bound) {
    ulong product = (next() >> 32) * bound;
    if (uint(product) < bound) {
      const uint too_many = (0u - bound) % bound;
      while (uint(product) < too_many) product = (next() >> 32) * bound;
    }
    return uint(product >> 32);
  }
};
""",
    inputs=lambda rng: {
        "seeds": rng.integers(0, 2**64, 10, np.uint64),
        "bounds": np.concatenate([rng.integers(1, 100, 20), rng.integers(2**31, 2**32, 20)]).astype(np.uint32),
    },
    outputs={"words": ((40, 3), "uint64"), "rolls": ((40, 4), "uint32")},
    grid=(40, 1, 1),
    threadgroup=(20, 1, 1),
    constructs="types.ulong functions.rotate address_spaces.constant_array structure.struct structure.while "
    "reconvergence.nested_loops",
)
def xoshiro_streams(seeds, bounds):
    jump = (0x180EC6D33CFD0ABA, 0xD5A61266F0C9392C, 0xA9582618E03FC9AA, 0x39ABDC4529B1661C)

    def step(s):
        result = _rotl(s[1] * 5 & _M64, 7) * 9 & _M64
        a, b, c, d = s
        c, d = c ^ a, d ^ b
        return result, [a ^ d, b ^ c, c ^ (b << 17 & _M64), _rotl(d, 45)]

    words, rolls = [], []
    for i, bound in enumerate(bounds.tolist()):
        if i % 4 == 0:
            z, s = int(seeds[i // 4]), []
            for _ in range(4):
                z = (z + 0x9E3779B97F4A7C15) & _M64
                m = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _M64
                m = (m ^ m >> 27) * 0x94D049BB133111EB & _M64
                s.append(m ^ m >> 31)
        else:
            # On from where the stream before began.
            t = [0, 0, 0, 0]
            for bit in range(256):
                if jump[bit // 64] >> bit % 64 & 1:
                    t = [a ^ b for a, b in zip(s, t, strict=True)]
                s = step(s)[1]
            s = t
        own = s
        for _ in range(3):
            value, own = step(own)
            words.append(value)
        for _ in range(4):
            while True:
                value, own = step(own)
                product = (value >> 32) * bound
                if product & _M32 >= 2**32 % bound:
                    break
            rolls.append(product >> 32)
    return np.array(words, np.uint64).reshape(40, 3), np.array(rolls, np.uint32).reshape(40, 4)


@body(
    """
    // PCG: a state of 64 bits that goes in steps of a, and an output that the state itself turns. A thread may begin anywhere in
    // its stream, since n steps are one step with other constants, found by squaring.
    const uint i = thread_position_in_grid.x;
    const ulong increment = (ulong(streams[i]) << 1) | 1;
    Affine skip = power(Affine{kMultiplier, increment}, offsets[i]);
    ulong state = skip(initial[0] + increment);
    uint total = 0;
    for (uint j = 0; j < COUNT; ++j) {
      const uint drawn = permuted(state);
      if (j < 2) out[2 * i + j] = drawn;
      total += drawn & 0xffff;
      state = state * kMultiplier + increment;
    }
    sums[i] = total;
    """,
    header="""
constant ulong kMultiplier = 6364136223846793005;

struct Affine {
  ulong factor, term;
  ulong operator()(ulong x) const { return factor * x + term; }
};

// First f, then g.
inline Affine then(Affine f, Affine g) { return Affine{g.factor * f.factor, g.factor * f.term + g.term}; }

inline Affine power(Affine f, ulong n) {
  Affine result = {1, 0};
  for (; n; n >>= 1) {
    if (n & 1) result = then(result, f);
    f = then(f, f);
  }
  return result;
}

inline uint permuted(ulong state) {
  const uint shifted = uint(((state >> 18) ^ state) >> 27), turn = uint(state >> 59);
  return (shifted >> turn) | (shifted << ((0 - turn) & 31));
}
""",
    template=[("COUNT", 100)],
    inputs=lambda rng: {
        "streams": rng.integers(0, 2**32, 70, np.uint32),
        "offsets": rng.integers(0, 2**62, 70, np.uint64) >> rng.integers(0, 62, 70, np.uint64),
        "initial": np.array([42], np.uint64),
    },
    outputs={"out": ((70, 2), "uint32"), "sums": ((70,), "uint32")},
    grid=(70, 1, 1),
    threadgroup=(70, 1, 1),
    constructs="structure.operator types.ulong address_spaces.constant_scalar structure.struct "
    "reconvergence.divergent_trip_count",
)
def pcg_with_skips(streams, offsets, initial):
    multiplier, out, sums = 6364136223846793005, [], []
    for stream, offset in zip(streams.tolist(), offsets.tolist(), strict=True):
        increment = stream * 2 + 1
        # The sum of a geometric series, without division: modulo (a - 1) 2^64.
        a_n = pow(multiplier, offset, (multiplier - 1) << 64)
        state = (a_n * (int(initial[0]) + increment) + (a_n - 1) // (multiplier - 1) * increment) & _M64
        drawn = []
        for _ in range(100):
            shifted, turn = (state >> 18 ^ state) >> 27 & _M32, state >> 59
            drawn.append((shifted >> turn | shifted << 32 - turn) & _M32)
            state = (state * multiplier + increment) & _M64
        out.append(drawn[:2])
        sums.append(sum(d & 0xFFFF for d in drawn))
    return np.array(out, np.uint32), np.array(sums, np.uint32)


# ---- Permutations and choices


@body(
    """
    // A random permutation of any number of places without memory for it: a Feistel network permutes the next power of four,
    // and who lands outside goes round again. Then batches of rows are gathered in this order, epoch by epoch.
    const uint2 at = thread_position_in_grid.xy;
    const uint count = rows_shape[0], width = rows_shape[1];
    const uint bits = 32 - clz(count - 1), half_bits = (bits + 1) / 2;
    const uint low = (1u << half_bits) - 1;
    const uint epoch = at.y;
    uint place = at.x;
    do {
      uint left = place >> half_bits, right = place & low;
      #pragma unroll
      for (uint round = 0; round < ROUNDS; ++round) {
        uint f = right * 0x85ebca6bu ^ (keys[epoch] + round * 0x9e3779b9u);
        f ^= f >> 15;
        f *= 0x2c1b3c6du;
        f ^= f >> 12;
        const uint next = left ^ (f & low);
        left = right;
        right = next;
      }
      place = left << half_bits | right;
    } while (place >= count);
    order[epoch * count + at.x] = place;
    for (uint c = 0; c < width; ++c) shuffled[(epoch * count + at.x) * width + c] = rows[place * width + c];
    """,
    template=[("ROUNDS", 6)],
    inputs=lambda rng: {
        "rows": rng.integers(-100, 100, (150, 5)).astype(np.int8),
        "keys": rng.integers(0, 2**32, 3, np.uint32),
    },
    outputs={"order": ((3, 150), "uint32"), "shuffled": ((3, 150, 5), "int8")},
    grid=(150, 3, 1),
    threadgroup=(64, 1, 1),
    constructs="structure.do functions.clz structure.pragma_unroll reconvergence.divergent_trip_count",
)
def rows_in_feistel_order(rows, keys):
    orders = []
    for key in keys.tolist():
        whole = []
        for place in range(256):
            left, right = divmod(place, 16)
            for r in range(6):
                f = right * 0x85EBCA6B & _M32 ^ (key + r * 0x9E3779B9) & _M32
                f = (f ^ f >> 15) * 0x2C1B3C6D & _M32
                left, right = right, left ^ (f ^ f >> 12) & 15
            whole.append(left * 16 + right)
        assert sorted(whole) == list(range(256))
        order = []
        for place in range(150):
            place = whole[place]
            while place >= 150:
                place = whole[place]
            order.append(place)
        orders.append(order)
    permutations = np.array(orders, np.uint32)
    return permutations, rows[permutations]


@body(
    """
    // Choices by weight: Walker's alias table is made by one thread for each distribution (small and large buckets exchange what
    // they lack), then every thread draws: a bucket by the upper bits of a word, itself or its alias by the lower ones.
    // Weights are whole numbers with sum 2^16, so that a table is exact.
    threadgroup ushort alias[MOST];
    threadgroup uint cut[MOST];        // of 2^16 * count
    threadgroup ushort stack[MOST];    // small ones from the bottom, large ones from the top
    const uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup;
    const uint count = weights_shape[1];
    const uint full = 1u << 16;
    if (t < count) {
      cut[t] = weights[row * count + t] * count;
      alias[t] = ushort(t);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
      uint small = 0, large = MOST;
      for (uint j = 0; j < count; ++j) {
        if (cut[j] < full) stack[small++] = ushort(j);
        else stack[--large] = ushort(j);
      }
      while (small > 0 && large < MOST) {
        const uint s = stack[--small], l = stack[large];
        alias[s] = ushort(l);
        cut[l] -= full - cut[s];
        if (cut[l] < full) {
          ++large;
          stack[small++] = ushort(l);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // How often each outcome would come of all 2^16 * count words: exactly its weight, times count.
    if (t < count) {
      uint sum = min(cut[t], full);
      for (uint j = 0; j < count; ++j)
        if (j != t && alias[j] == t) sum += full - min(cut[j], full);
      shares[row * count + t] = sum;
    }
    const uint word = words[thread_position_in_grid.x];
    const uint bucket = mulhi(word, count), rest = (word * count) >> 16;
    choices[thread_position_in_grid.x] = rest < cut[bucket] ? bucket : uint(alias[bucket]);
    """,
    template=[("MOST", 64)],
    inputs=lambda rng: {
        "weights": np.stack(
            [np.diff(np.sort(np.concatenate([[0, 65536], rng.integers(0, 65537, 36)]))) for _ in range(3)]
        ).astype(np.uint32),
        "words": rng.integers(0, 2**32, 192, np.uint32),
    },
    outputs={"shares": ((3, 37), "uint32"), "choices": ((192,), "uint32")},
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="functions.mulhi address_spaces.threadgroup_small_array structure.while "
    "address_spaces.threadgroup_array",
)
def choices_by_alias_table(weights, words):
    choices = []
    for row, w in enumerate(weights.tolist()):
        cut, alias = [v * 37 for v in w], list(range(37))
        small = [j for j in range(37) if cut[j] < 65536]
        large = [j for j in range(37) if cut[j] >= 65536]
        while small and large:
            s, big = small.pop(), large[-1]
            alias[s] = big
            cut[big] -= 65536 - cut[s]
            if cut[big] < 65536:
                small.append(large.pop())
        for word in words[64 * row : 64 * row + 64].tolist():
            bucket, rest = divmod(word * 37, 2**32)
            choices.append(bucket if rest >> 16 < cut[bucket] else alias[bucket])
    return weights * np.uint32(37), np.array(choices, np.uint32)
