"""Caches of keys and values that are kept in few bits or in pages: what fills them, and attention over them."""

import numpy as np

from bodies import Dtype, body
from bodies.corpus_attention import attend, normal

_QUANTISED_HEADER = """
// Keys and values as unsigned integers of BITS bits, little end first in words of 32 bits, with a scale and an offset for
// each group of GROUP elements of a head's row: x = scale * n + offset.

template <int BITS>
struct Packing {
  static constant constexpr int per_word = 32 / BITS;
  static constant constexpr uint mask = (1u << BITS) - 1u;
};

// A thread's part of a query, and the sum of its elements, by which the offset counts: sum q (s n + b) = s sum q n + b sum q.
template <int N>
struct QueryPart {
  float values[N];
  float sum;

  template <typename T>
  void load(const device T* from, float scale) {
    sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] = scale * float(from[i]);
      sum += values[i];
    }
  }
};

template <int BITS, int N>
float dot_quantised(const thread QueryPart<N>& q, const device uint* words, float scale, float offset) {
  float products = 0;
  if constexpr (BITS == 8) {
    // A word is four bytes.
    const device uchar4* bytes = reinterpret_cast<const device uchar4*>(words);
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      float4 n = float4(bytes[i]);
      products += q.values[4 * i] * n.x + q.values[4 * i + 1] * n.y;
      products += q.values[4 * i + 2] * n.z + q.values[4 * i + 3] * n.w;
    }
  } else {
#pragma unroll
    for (int w = 0; w < N / Packing<BITS>::per_word; ++w) {
      uint word = words[w];
#pragma unroll
      for (int i = 0; i < Packing<BITS>::per_word; ++i) {
        products += q.values[w * Packing<BITS>::per_word + i] * float(word & Packing<BITS>::mask);
        word >>= BITS;
      }
    }
  }
  return scale * products + offset * q.sum;
}

template <int BITS, int N>
void add_quantised(thread float* sums, const device uint* words, float weight, float scale, float offset) {
  const float step = weight * scale, start = weight * offset;
  if constexpr (BITS == 8) {
    const device uchar4* bytes = reinterpret_cast<const device uchar4*>(words);
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      float4 n = float4(bytes[i]) * step + start;
      sums[4 * i] += n.x;
      sums[4 * i + 1] += n.y;
      sums[4 * i + 2] += n.z;
      sums[4 * i + 3] += n.w;
    }
  } else {
#pragma unroll
    for (int w = 0; w < N / Packing<BITS>::per_word; ++w) {
      const uint word = words[w];
#pragma unroll
      for (int i = 0; i < Packing<BITS>::per_word; ++i) {
        sums[w * Packing<BITS>::per_word + i] += step * float(extract_bits(word, uint(i * BITS), uint(BITS))) + start;
      }
    }
  }
}
"""

_QUANTISED = """
    // A quadgroup's four threads share a row; a simdgroup works on eight keys at a time, and the threadgroup on 32.
    constexpr int SHARE = D / 4;
    constexpr int WORDS = SHARE * BITS / 32;
    constexpr int SIMDS = 4;
    constexpr int KEYS = SIMDS * 8;
    static_assert(GROUP % SHARE == 0 || SHARE % GROUP == 0, "groups and shares nest");
    static_assert(SHARE <= GROUP, "a thread's part has one scale");

    const uint lane = thread_index_in_simdgroup;
    const uint simd_id = simdgroup_index_in_threadgroup;
    const uint quad_lane = thread_index_in_quadgroup;
    const int quad = int(simd_id * 8 + lane / 4);
    const int head = threadgroup_position_in_grid.y;
    const int kv_head = head / GQA;
    const int n = key_words_shape[1];
    const int row_words = D * BITS / 32;
    const int row_groups = D / GROUP;

    QueryPart<SHARE> q;
    q.load(queries + head * D + quad_lane * SHARE, scale);
    float sums[SHARE];
    for (int i = 0; i < SHARE; ++i) sums[i] = 0;

    float highest = -INFINITY, total = 0;
    for (int i = quad; i < n; i += KEYS) {
      const int row = kv_head * n + i;
      const int group = row * row_groups + int(quad_lane) * SHARE / GROUP;
      const int word = row * row_words + int(quad_lane) * WORDS;
      float score = dot_quantised<BITS, SHARE>(q, key_words + word, float(key_scales[group]), float(key_offsets[group]));
      score = quad_sum(score);
      // A mask that is added, of half precision, one row for all heads.
      score += float(mask[i]);
      const float next = max(highest, score);
      // Nothing but masked keys so far: there is no maximum to subtract.
      const float factor = next == -INFINITY ? 1.0f : exp(highest - next);
      const float weight = next == -INFINITY ? 0.0f : exp(score - next);
      total = total * factor + weight;
      for (int j = 0; j < SHARE; ++j) sums[j] *= factor;
      add_quantised<BITS, SHARE>(
          sums, value_words + word, weight, float(value_scales[group]), float(value_offsets[group]));
      highest = next;
    }

    // Eight quadgroups of the simdgroup, by lanes of equal number in them; then the simdgroups by threadgroup memory.
    threadgroup float all_highest[SIMDS];
    threadgroup float all_totals[SIMDS];
    threadgroup float merged[SIMDS][D];
    const float of_simd = simd_max(highest);
    const float own = of_simd == -INFINITY ? 0.0f : exp(highest - of_simd);
    total *= own;
    for (ushort distance = 4; distance < 32; distance *= 2) total += simd_shuffle_xor(total, distance);
    for (int j = 0; j < SHARE; ++j) {
      float sum = sums[j] * own;
      sum += simd_shuffle_xor(sum, ushort(4));
      sum += simd_shuffle_xor(sum, ushort(8));
      sum += simd_shuffle_xor(sum, ushort(16));
      if (lane < 4) merged[simd_id][lane * SHARE + j] = sum;
    }
    if (lane == 0) {
      all_highest[simd_id] = of_simd;
      all_totals[simd_id] = total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const int d = int(thread_index_in_threadgroup);
    if (d >= D) return;
    float top = -INFINITY;
    for (int s = 0; s < SIMDS; ++s) top = max(top, all_highest[s]);
    float numerator = 0, denominator = 0;
    for (int s = 0; s < SIMDS; ++s) {
      const float factor = all_highest[s] == -INFINITY ? 0.0f : exp(all_highest[s] - top);
      numerator += factor * merged[s][d];
      denominator += factor * all_totals[s];
    }
    out[head * D + d] = T(numerator / denominator);
"""

for _bits in (4, 8):

    def _quantised_inputs(rng, bits):
        def words():
            return rng.integers(0, 2**32, (2, 70, 64 * bits // 32), np.uint32)

        mask = np.zeros(70, np.float16)
        mask[:9] = -np.inf
        mask[30:33] = -np.inf
        step = 1 / 2**bits
        return {
            "queries": normal(rng, "float16", 6, 64),
            "key_words": words(),
            "key_scales": rng.uniform(1.5 * step, 3 * step, (2, 70, 2)).astype(np.float16),
            "key_offsets": rng.uniform(-1.5, -0.5, (2, 70, 2)).astype(np.float16),
            "value_words": words(),
            "value_scales": rng.uniform(step, 2 * step, (2, 70, 2)).astype(np.float16),
            "value_offsets": rng.uniform(0.25, 0.5, (2, 70, 2)).astype(np.float16),
            "mask": mask,
            "scale": 0.125,
        }

    def _quantised(
        queries, key_words, key_scales, key_offsets, value_words, value_scales, value_offsets, mask, scale, bits=_bits
    ):
        def whole(words, scales, offsets):
            numbers = (words[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)) & np.uint32(2**bits - 1)
            numbers = numbers.reshape(2, 70, 2, 32).astype(np.float64)
            return (numbers * scales[..., None] + offsets[..., None]).reshape(2, 70, 64).repeat(3, axis=0)

        k, v = whole(key_words, key_scales, key_offsets), whole(value_words, value_scales, value_offsets)
        q = queries.astype(np.float64)[:, None] * scale
        return attend(q, k, v, mask.astype(np.float64))[0][:, 0]

    body(
        _QUANTISED,
        name=f"decode_attention_of_{_bits}_bits",
        header=_QUANTISED_HEADER,
        template=[("T", Dtype("float32")), ("D", 64), ("BITS", _bits), ("GROUP", 32), ("GQA", 3)],
        inputs=lambda rng, bits=_bits: _quantised_inputs(rng, bits),
        outputs={"out": ((6, 64), "float32")},
        grid=(128, 6, 1),
        threadgroup=(128, 1, 1),
        tolerance=5e-6,
        constructs="structure.if_constexpr structure.template structure.struct functions.extract_bits "
        "attributes.thread_index_in_quadgroup simdgroup.quad_sum simdgroup.shuffle_xor types.uchar4 "
        "structure.constexpr address_spaces.thread structure.explicit_template_arguments structure.return_before_simd"
        if _bits == 4
        else "structure.if_constexpr simdgroup.quad_sum types.uchar4",
    )(_quantised)


@body(
    """
    // A cache of bytes that are floats of 4 exponent and 3 mantissa bits, with one scale for each head.
    const uint lane = thread_index_in_simdgroup;
    const uint head = thread_position_in_grid.y;
    const uint n = k_shape[1];
    const device uchar4* rows_k = (const device uchar4*)(k + head * n * D);
    const device uchar4* rows_v = (const device uchar4*)(v + head * n * D);
    const float4 query = ((const device float4*)q)[head * (D / 4) + lane] * (k_scale[head] * 0.0883883476f);

    float m = -INFINITY, l = 0;
    float4 o = 0;
    uint i = 0;
    // Two keys at a time, for the sake of latency.
    for (; i + 1 < n; i += 2) {
      float4 first = from_e4m3(rows_k[i * (D / 4) + lane]), second = from_e4m3(rows_k[(i + 1) * (D / 4) + lane]);
      float2 s = simd_sum(float2(dot(query, first), dot(query, second)));
      float next = max3(m, s.x, s.y);
      float2 p = exp(s - next);
      float keep = exp(m - next);
      l = l * keep + p.x + p.y;
      o = o * keep + p.x * from_e4m3(rows_v[i * (D / 4) + lane]) + p.y * from_e4m3(rows_v[(i + 1) * (D / 4) + lane]);
      m = next;
    }
    if (i < n) {
      float s = simd_sum(dot(query, from_e4m3(rows_k[i * (D / 4) + lane])));
      float next = max(m, s), keep = exp(m - next), p = exp(s - next);
      l = l * keep + p;
      o = o * keep + p * from_e4m3(rows_v[i * (D / 4) + lane]);
    }
    ((device half4*)out)[head * (D / 4) + lane] = half4(o * (v_scale[head] / l));
    """,
    header="""
// Sign, exponent and mantissa moved to where half has them; the exponents differ by 8, which a product mends, also for
// subnormal numbers. The type has no infinities, and its NaN is not stored in caches.
inline float4 from_e4m3(uchar4 bytes) {
  ushort4 wide = ushort4(bytes);
  ushort4 bits = ((wide & 0x80) << 8) | ((wide & 0x7f) << 7);
  return float4(as_type<half4>(bits)) * 256.0f;
}
""",
    template=[("D", 128)],
    inputs=lambda rng: {
        "q": normal(rng, "float32", 3, 128),
        # All finite values, subnormal ones too; of the values those from 1/2 to 7/4.
        "k": (rng.integers(0, 0x3C, (3, 31, 128)) | rng.integers(0, 2, (3, 31, 128)) << 7).astype(np.uint8),
        "v": rng.integers(0x30, 0x40, (3, 31, 128)).astype(np.uint8),
        "k_scale": np.array([1.0, 0.5, 1.5], np.float32),
        "v_scale": np.array([2.0, 1.0, 0.75], np.float32),
    },
    outputs={"out": ((3, 128), "float16")},
    grid=(32, 3, 1),
    threadgroup=(32, 1, 1),
    tolerance=6e-4,
    constructs="types.as_type types.ushort4 types.uchar4 types.half4 functions.max3 functions.dot simdgroup.sum "
    "structure.helper_function address_spaces.cast_to_vector layouts.few_elements",
)
def decode_attention_of_e4m3(q, k, v, k_scale, v_scale):
    def value(b):
        exponent, mantissa = (b >> 3) & 15, b & 7
        size = (8 + mantissa) * 2.0 ** (exponent - 10.0) if exponent else mantissa * 2.0**-9
        return -size if b & 128 else size

    table = np.array([value(b) for b in range(256)])
    q = q.astype(np.float64)[:, None] * 0.0883883476
    k, v = table[k] * k_scale[:, None, None], table[v] * v_scale[:, None, None]
    return attend(q, k, v)[0][:, 0]


@body(
    """
    // New tokens go to a ring behind the first KEEP slots, which stay for ever. They are stored as bytes, with a scale for
    // each token and head. Slots that nothing new comes to are copied: outputs are fresh arrays.
    const uint lane = thread_index_in_simdgroup;
    const int slot = thread_position_in_grid.y, row = thread_position_in_grid.z;  // row: batch and head
    const int slots = old_bytes_shape[1], fresh = x_shape[1];
    constexpr int D = 64;

    // Of the new tokens the last that falls into this slot.
    auto slot_of = [&](int position) {
      return position < KEEP ? position : KEEP + (position - KEEP) % (slots - KEEP);
    };
    int source = -1;
    for (int j = lane; j < fresh; j += 32) {
      if (slot_of(offset + j) == slot) source = max(source, j);
    }
    source = simd_max(source);

    device char2* to = (device char2*)(bytes + (row * slots + slot) * D);
    if (source < 0) {
      to[lane] = ((const device char2*)(old_bytes + (row * slots + slot) * D))[lane];
      if (lane == 0) scales[row * slots + slot] = old_scales[row * slots + slot];
      return;
    }
    const half2 v = ((const device half2*)(x + (row * fresh + source) * D))[lane];
    const half largest = simd_max(max(abs(v.x), abs(v.y)));
    const float inverse = largest == 0.0h ? 0.0f : 127.0f / float(largest);
    to[lane] = char2(rint(float2(v) * inverse));
    if (lane == 0) scales[row * slots + slot] = half(float(largest) / 127.0f);
    """,
    template=[("KEEP", 3)],
    # Numbers that are whole parts of the largest: nothing is near a half.
    inputs=lambda rng: {
        "x": _parts_of_the_largest(rng),
        "offset": 9,
        "old_bytes": rng.integers(-127, 128, (4, 12, 64)).astype(np.int8),
        "old_scales": rng.uniform(0.01, 0.02, (4, 12)).astype(np.float16),
    },
    outputs={"bytes": ((4, 12, 64), "int8"), "scales": ((4, 12), "float16")},
    grid=(32, 12, 4),
    threadgroup=(32, 4, 1),
    constructs="types.char2 types.half2 types.half literals.half_suffix structure.lambda functions.rint functions.abs "
    "simdgroup.max types.vector_conversion address_spaces.cast_to_vector",
)
def append_to_a_ring_of_bytes(x, offset, old_bytes, old_scales):
    bytes_, scales = old_bytes.copy(), old_scales.copy()
    for j in range(x.shape[1]):
        position = offset + j
        slot = position if position < 3 else 3 + (position - 3) % 9
        largest = np.abs(x[:, j].astype(np.float64)).max(axis=1)
        bytes_[:, slot] = np.rint(x[:, j] * 127 / largest[:, None])
        scales[:, slot] = (largest / 127).astype(np.float32)
    return bytes_, scales


def _parts_of_the_largest(rng):
    parts = rng.integers(-127, 128, (4, 14, 64))
    parts[:, :, 5] = 127
    return (parts * rng.choice([0.125, 0.25, 0.0625], (4, 14, 1))).astype(np.float16)


@body(
    """
    // A group of 32 numbers becomes words of BITS bits with a scale and a bias; a lane is a number.
    constexpr uint top = (1u << BITS) - 1;
    constexpr uint per_word = 32 / BITS;
    const uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup;
    const float v = x[i];
    const float low = simd_min(v), range = simd_max(v) - low;
    // Scale and bias are rounded first: the numbers are those that are nearest with what is stored.
    const T scale = T(range / float(top)), bias = T(low);
    const float steps = scale == T(0) ? 0.0f : (v - float(bias)) / float(scale);
    const uint q = min(uint(max(rint(steps), 0.0f)), top);
    // Neighbours' numbers beside one another, in as many steps as it takes.
    uint word = q << (BITS * (lane % per_word));
    #pragma unroll
    for (ushort d = 1; d < ushort(per_word); d *= 2) word |= simd_shuffle_xor(word, d);
    if (lane % per_word == 0) words[i / per_word] = word;
    if (lane == 0) {
      scales[i / 32] = scale;
      biases[i / 32] = bias;
    }
    """,
    template=[("T", Dtype("float16")), ("BITS", 4)],
    # low = -8 s, high = 7 s: the scale is s, the bias -8 s.
    inputs=lambda rng: {"x": _sixteenths(rng)},
    outputs={"words": ((36,), "uint32"), "scales": ((9,), "float16"), "biases": ((9,), "float16")},
    grid=(288, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="simdgroup.min simdgroup.max simdgroup.shuffle_xor functions.rint functions.max functions.min "
    "structure.pragma_unroll structure.constexpr types.half",
)
def quantise_groups(x):
    groups = x.reshape(9, 32).astype(np.float64)
    low, high = groups.min(axis=1), groups.max(axis=1)
    scale = (high - low) / 15
    numbers = ((groups - low[:, None]) / scale[:, None]).astype(np.uint32)
    words = (numbers.reshape(36, 8) << np.arange(0, 32, 4, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)
    return words, scale.astype(np.float16), low.astype(np.float16)


def _sixteenths(rng):
    parts = rng.integers(-8, 8, (9, 32))
    parts[:, 3], parts[:, 30] = -8, 7
    return (parts * rng.choice([0.25, 1, 2], (9, 1))).reshape(288).astype(np.float32)


@body(
    """
    // Pages of several sequences, one behind the other without gaps: keys to rows, values turned, in vectors of 16 bytes
    // where that can be. A threadgroup has a page of a head.
    threadgroup ushort tile[PAGE * (D + 2)];
    const uint t = thread_index_in_threadgroup;
    const uint sequence = threadgroup_position_in_grid.z, head = threadgroup_position_in_grid.y;
    const uint page = threadgroup_position_in_grid.x;
    const uint begin = starts[sequence], length = starts[sequence + 1] - begin;
    if (page * PAGE >= length) return;
    const uint here = min(uint(PAGE), length - page * PAGE);
    const uint heads = threadgroups_per_grid.y;
    const size_t physical = tables[sequence * tables_shape[1] + page];

    constexpr uint vectors = D * sizeof(ushort) / sizeof(uint4);
    const device uint4* from = (const device uint4*)(keys + (physical * heads + head) * PAGE * D);
    device uint4* to = (device uint4*)(out_keys + (head * starts[SEQUENCES] + begin + page * PAGE) * D);
    for (uint e = t; e < here * vectors; e += 64) to[e] = from[e];

    // Values lie as [D][PAGE]; what is read along a page is written along D.
    const device ushort* v = values + (physical * heads + head) * PAGE * D;
    for (uint e = t; e < D * PAGE; e += 64) tile[e % PAGE * (D + 2) + e / PAGE] = v[e];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = t; e < here * D; e += 64)
      out_values[(head * starts[SEQUENCES] + begin + page * PAGE) * D + e] = tile[e / D * (D + 2) + e % D];
    """,
    template=[("PAGE", 8), ("D", 24), ("SEQUENCES", 4)],
    inputs=lambda rng: {
        "keys": rng.integers(0, 65536, (10, 3, 8, 24)).astype(np.uint16),
        "values": rng.integers(0, 65536, (10, 3, 24, 8)).astype(np.uint16),
        "tables": np.array([[4, 1, 9], [0, 0, 0], [7, 2, 0], [3, 8, 5]], np.uint8),
        "starts": np.array([0, 17, 17, 29, 53], np.uint32),
    },
    outputs={"out_keys": ((3, 53, 24), "uint16"), "out_values": ((3, 53, 24), "uint16")},
    grid=(3 * 64, 3, 4),
    threadgroup=(64, 1, 1),
    constructs="types.uint4 types.ushort types.size_t address_spaces.cast_to_vector barriers.transposition "
    "address_spaces.threadgroup_small_array barriers.after_early_return layouts.few_elements",
)
def gather_pages(keys, values, tables, starts):
    k, v = [], []
    for table, begin, end in zip(tables, starts, starts[1:], strict=False):
        k.append(keys[table].transpose(1, 0, 2, 3).reshape(3, 24, 24)[:, : end - begin])
        v.append(values[table].transpose(1, 0, 3, 2).reshape(3, 24, 24)[:, : end - begin])
    return np.concatenate(k, axis=1), np.concatenate(v, axis=1)


@body(
    """
    // Merging of tokens: every second token looks for the most similar of the others, by cosine; the R closest pairs
    // become their mean. Which pairs, is found by rank; who is left keeps the order.
    constexpr int A = TOKENS / 2;
    threadgroup float norms[TOKENS];
    threadgroup float best[A];
    threadgroup ushort partner[A];
    threadgroup ushort merged[A];
    const int t = thread_index_in_threadgroup, width = x_shape[1];

    // Even tokens are A, odd ones B.
    if (t < TOKENS) {
      float squares = 0;
      for (int c = 0; c < width; ++c) squares += x[t * width + c] * x[t * width + c];
      norms[t] = sqrt(squares);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // A simdgroup for each of A in turn; its lanes are B.
    for (int a = simdgroup_index_in_threadgroup; a < A; a += int(simdgroups_per_threadgroup)) {
      float similarity = -2;
      int who = INT_MAX;
      for (int b = thread_index_in_simdgroup; b < A; b += 32) {
        float products = 0;
        for (int c = 0; c < width; ++c) products += x[2 * a * width + c] * x[(2 * b + 1) * width + c];
        products /= norms[2 * a] * norms[2 * b + 1];
        if (products > similarity) similarity = products, who = b;
      }
      const float top = simd_max(similarity);
      who = simd_min(similarity == top ? who : INT_MAX);
      if (simd_is_first()) best[a] = top, partner[a] = ushort(who);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < A) {
      int rank = 0;
      for (int other = 0; other < A; ++other)
        rank += best[other] > best[t] || (best[other] == best[t] && other < t);
      merged[t] = rank < R;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Tokens that are left: A's, then B's, each with the number of those before it.
    for (int e = t; e < TOKENS; e += int(threads_per_threadgroup.x)) {
      const bool of_a = e < A;
      const int own = of_a ? e : e - A;
      if (of_a && merged[own]) continue;
      int row = own;
      if (of_a) for (int before = 0; before < own; ++before) row -= merged[before];
      else row += A - R;
      float count = 1;
      if (!of_a) for (int a = 0; a < A; ++a) count += float(merged[a] && partner[a] == own);
      for (int c = 0; c < width; ++c) {
        float sum = x[(2 * own + (of_a ? 0 : 1)) * width + c];
        if (!of_a)
          for (int a = 0; a < A; ++a)
            if (merged[a] && partner[a] == own) sum += x[2 * a * width + c];
        y[row * width + c] = sum / count;
      }
      sizes[row] = uchar(count);
    }
    """,
    template=[("TOKENS", 80), ("R", 15)],
    inputs=lambda rng: {"x": rng.uniform(0.2, 1, (80, 12)).astype(np.float32)},
    outputs={"y": ((65, 12), "float32"), "sizes": ((65,), "uint8")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    tolerance=1e-6,
    constructs="simdgroup.max simdgroup.min simdgroup.is_first attributes.simdgroups_per_threadgroup functions.sqrt "
    "address_spaces.threadgroup_small_array barriers.between_two_loops types.uchar",
)
def merge_similar_tokens(x):
    x = x.astype(np.float64)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similarity = unit[0::2] @ unit[1::2].T
    partner, best = similarity.argmax(axis=1), similarity.max(axis=1)
    merged = np.sort(np.argsort(-best, kind="stable")[:15])
    sums, counts = x[1::2].copy(), np.ones(40)
    np.add.at(sums, partner[merged], x[0::2][merged])
    np.add.at(counts, partner[merged], 1)
    left = np.delete(np.arange(40), merged)
    sizes = np.concatenate([np.ones(25), counts])
    return np.concatenate([x[0::2][left], sums / counts[:, None]]), sizes.astype(np.uint8)
