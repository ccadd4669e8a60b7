"""What stands around attention: embeddings, adapters, products with weights of few bits, and a whole layer at once."""

import numpy as np

from bodies import DTYPES, Dtype, body
from bodies.corpus_attention import attend
from bodies.corpus_positions import rotated

# ---- Embeddings


@body(
    """
    // Rows of a table in bytes with scales by group, the learned position and the kind of the segment; then the norm.
    constexpr int PER = WIDTH / 32;
    const uint lane = thread_index_in_simdgroup, token = thread_position_in_grid.y;
    const int id = ids[token];
    const int position = positions[token];
    // An id outside the table is the unknown token's.
    const int row = select(UNKNOWN, id, id >= 0 && id < table_shape[0]);
    float v[PER];
    float sum = 0;
    #pragma unroll
    for (int j = 0; j < PER; ++j) {
      const int c = j * 32 + int(lane);
      const float scale = scales[row * (WIDTH / GROUP) + c / GROUP], zero = zeros[row * (WIDTH / GROUP) + c / GROUP];
      v[j] = (float(table[row * WIDTH + c]) - zero) * scale + float(position_table[position * WIDTH + c]);
      v[j] += kinds[token] ? float(kind_table[WIDTH + c]) : float(kind_table[c]);
      sum += v[j];
    }
    const float mean = simd_sum(sum) / WIDTH;
    float squares = 0;
    for (int j = 0; j < PER; ++j) squares += pow(v[j] - mean, 2.0f);
    const float scale = rsqrt(simd_sum(squares) / WIDTH + 1e-12f);
    for (int j = 0; j < PER; ++j) {
      const int c = j * 32 + int(lane);
      y[token * WIDTH + c] = (v[j] - mean) * scale * weight[c] + bias[c];
    }
    """,
    template=[("WIDTH", 96), ("GROUP", 48), ("UNKNOWN", 1)],
    inputs=lambda rng: {
        "ids": np.array([5, 0, 29, 30, -4, 7, 7, 12, 2], np.int32),
        "positions": np.arange(9, dtype=np.uint16),
        "kinds": np.arange(9) > 4,
        "table": rng.integers(0, 256, (30, 96), np.uint8),
        "scales": rng.uniform(0.01, 0.02, (30, 2)).astype(np.float16),
        "zeros": rng.integers(120, 136, (30, 2)).astype(np.float16),
        "position_table": rng.normal(size=(16, 96)).astype(np.float16),
        "kind_table": rng.normal(size=(2, 96)).astype(np.float16),
        "weight": rng.uniform(0.5, 1, 96).astype(np.float32),
        "bias": rng.uniform(5, 6, 96).astype(np.float32),
    },
    outputs={"y": ((9, 96), "float32")},
    grid=(32, 9, 1),
    threadgroup=(32, 4, 1),
    tolerance=3e-6,
    constructs="functions.select functions.pow functions.rsqrt simdgroup.sum types.bool structure.pragma_unroll "
    "launch.edge_threadgroups",
)
def embed_tokens(ids, positions, kinds, table, scales, zeros, position_table, kind_table, weight, bias):
    row = np.where((ids >= 0) & (ids < 30), ids, 1)
    groups = table[row].reshape(9, 2, 48).astype(np.float64)
    v = ((groups - zeros[row][..., None]) * scales[row][..., None]).reshape(9, 96)
    v = v + position_table[positions] + kind_table[kinds.astype(int)]
    v = (v - v.mean(axis=1, keepdims=True)) / np.sqrt(v.var(axis=1, keepdims=True) + 1e-12)
    return v * weight + bias


@body(
    """
    // The gradient of a table, without atomics on floats: tokens come sorted by id, and whoever holds the first of a run
    // adds it up, in order. Other rows stay zero. Long runs go by fours.
    const uint c = thread_position_in_grid.x, place = thread_position_in_grid.y;
    const uint width = dy_shape[1], tokens = sorted_ids_shape[0];
    const int id = sorted_ids[place];
    if (id == padding || (place > 0 && sorted_ids[place - 1] == id)) return;
    // Where the run ends, by steps that grow and then shrink.
    uint end = place + 1, step = 1;
    while (end + step <= tokens && sorted_ids[end + step - 1] == id) {
      end += step;
      step <<= 1;
    }
    for (; step > 0; step >>= 1)
      if (end + step <= tokens && sorted_ids[end + step - 1] == id) end += step;

    float sum = 0;
    uint j = place;
    for (; j + 4 <= end; j += 4) {
      const uint4 from = uint4(order[j], order[j + 1], order[j + 2], order[j + 3]);
      sum += (dy[from.x * width + c] + dy[from.y * width + c]) + (dy[from.z * width + c] + dy[from.w * width + c]);
    }
    for (; j < end; ++j) sum += dy[order[j] * width + c];
    d_table[id * width + c] = sum;
    if (c == 0) frequency[id] = end - place;
    """,
    # Whole numbers: sums are exact in any order.
    inputs=lambda rng: _sorted_tokens(rng),
    outputs={"d_table": ((40, 12), "float32"), "frequency": ((40,), "uint32")},
    grid=(12, 150, 1),
    threadgroup=(12, 8, 1),
    init_value=0,
    constructs="structure.while structure.early_return launch.init_value types.uint4 reconvergence.divergent_trip_count",
)
def gradient_of_an_embedding(sorted_ids, order, dy, padding):
    d_table, frequency = np.zeros((40, 12), np.float32), np.zeros(40, np.uint32)
    np.add.at(d_table, sorted_ids, dy[order])
    np.add.at(frequency, sorted_ids, 1)
    d_table[padding], frequency[padding] = 0, 0
    return d_table, frequency


def _sorted_tokens(rng):
    ids = (rng.random(150) ** 3 * 40).astype(np.int32)
    order = np.argsort(ids, kind="stable")
    return {
        "sorted_ids": ids[order],
        "order": order.astype(np.uint32),
        "dy": rng.integers(-99, 99, (150, 12)).astype(np.float32),
        "padding": 3,
    }


@body(
    """
    // One vector per text: the mean of its tokens, the first of them or the last, cut to the wanted width and then of
    // length one; and the similarity to a query, which is so already.
    threadgroup float parts[2];
    const uint t = thread_index_in_threadgroup, text = threadgroup_position_in_grid.x;
    const uint width = hidden_shape[2], length = hidden_shape[1];
    const device half* rows = hidden + text * length * width;
    const device bool* there = mask + text * length;
    float own = 0;
    switch (MODE) {
      case 0: {
        float count = 0;
        for (uint i = 0; i < length; ++i) {
          if (!there[i]) continue;
          own += float(rows[i * width + t]);
          count += 1;
        }
        own /= fmax(count, 1.0f);
        break;
      }
      case 1:
        own = rows[t];
        break;
      default: {
        uint last = 0;
        for (uint i = length; i-- > 0;) {
          if (there[i]) {
            last = i;
            break;
          }
        }
        own = rows[last * width + t];
      }
    }
    const float squares = simd_sum(own * own);
    if (thread_index_in_simdgroup == 0) parts[simdgroup_index_in_threadgroup] = squares;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    own *= rsqrt(max(parts[0] + parts[1], 1e-12f));
    y[text * 64 + t] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float similarity = simd_sum(own * query[t]);
    if (simd_is_first()) parts[simdgroup_index_in_threadgroup] = similarity;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) similarities[text] = parts[0] + parts[1];
    """,
    template=[("MODE", 0)],
    inputs=lambda rng: {
        "hidden": rng.uniform(0.2, 1, (4, 11, 80)).astype(np.float16),
        "mask": np.arange(11) < np.array([11, 4, 1, 7])[:, None],
        "query": np.full(64, 0.125, np.float32),
    },
    outputs={"y": ((4, 64), "float32"), "similarities": ((4,), "float32")},
    grid=(4 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-6,
    constructs="structure.switch functions.fmax functions.rsqrt simdgroup.sum simdgroup.is_first types.bool",
)
def pool_texts(hidden, mask, query):
    kept = hidden[..., :64].astype(np.float64) * mask[..., None]
    mean = kept.sum(axis=1) / mask.sum(axis=1, keepdims=True)
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    return unit, unit @ query


# ---- Adapters


@body(
    """
    // Many adapters in one batch: each token has the number of its own, or none. Down to the rank and up again in one
    // launch, with the narrow vector in threadgroup memory; ranks differ, and the matrices are padded to the largest.
    threadgroup float narrow[MAX_RANK];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;
    const uint simd_id = simdgroup_index_in_threadgroup, simds = simdgroups_per_threadgroup;
    const uint token = threadgroup_position_in_grid.x;
    const int in_size = x_shape[1], out_size = base_shape[1];
    const int adapter = adapters[token];
    device float* to = y + token * out_size;
    device const float* before = base + token * out_size;
    if (adapter < 0) {
      for (int o = t; o < out_size; o += threads_per_threadgroup.x) to[o] = before[o];
      return;
    }
    const int rank = ranks[adapter];
    device const T* down = a + adapter * MAX_RANK * in_size;
    for (int r = simd_id; r < rank; r += simds) {
      float sum = 0;
      for (int i = lane; i < in_size; i += 32) sum = fma(float(down[r * in_size + i]), x[token * in_size + i], sum);
      sum = simd_sum(sum);
      if (lane == 0) narrow[r] = sum * (alphas[adapter] / rank);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device const T* up = b + adapter * out_size * MAX_RANK;
    for (int o = t; o < out_size; o += threads_per_threadgroup.x) {
      float sum = before[o];
      for (int r = 0; r < rank; ++r) sum = fma(float(up[o * MAX_RANK + r]), narrow[r], sum);
      to[o] = sum;
    }
    """,
    template=[("T", Dtype("bfloat16")), ("MAX_RANK", 16)],
    inputs=lambda rng: {
        "x": rng.uniform(0.5, 1, (7, 70)).astype(np.float32),
        "base": rng.uniform(1, 2, (7, 45)).astype(np.float32),
        "a": _bfloat(rng.uniform(0, 0.1, (3, 16, 70))),
        "b": _bfloat(rng.uniform(0, 0.5, (3, 45, 16))),
        "adapters": np.array([0, -1, 2, 1, 1, -1, 0], np.int32),
        "ranks": np.array([4, 16, 9], np.int32),
        "alphas": np.array([8.0, 16.0, 3.0], np.float32),
    },
    outputs={"y": ((7, 45), "float32")},
    grid=(7 * 96, 1, 1),
    threadgroup=(96, 1, 1),
    tolerance=2e-6,
    constructs="functions.fma simdgroup.sum types.bfloat barriers.after_early_return layouts.few_elements "
    "attributes.simdgroups_per_threadgroup structure.template_arguments",
)
def adapters_of_a_batch(x, base, a, b, adapters, ranks, alphas):
    y = base.astype(np.float64)
    for token, adapter in enumerate(adapters):
        if adapter >= 0:
            r = ranks[adapter]
            narrow = a[adapter, :r].astype(np.float64) @ x[token] * alphas[adapter] / r
            y[token] += b[adapter, :, :r].astype(np.float64) @ narrow
    return y


def _bfloat(x):
    return x.astype(np.float32).astype(DTYPES["bfloat16"])


# ---- Weights as entries of a codebook


def _codebook():
    """256 different vectors of eight magnitudes, as bytes of 64 bits."""
    state = 12345
    entries: list[int] = []
    while len(entries) < 256:
        value = 0
        for place in range(8):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            value |= (8, 8, 25, 25, 43)[(state >> 16) % 5] << (8 * place)
        if value not in entries:
            entries.append(value)
    return entries


def _signs():
    """Of 7 bits those of 8: the number of minuses is even."""
    return [bits | (bits.bit_count() & 1) << 7 for bits in range(128)]


def _rows(numbers, form, per_row):
    texts = [form.format(number) for number in numbers]
    return ",\n".join("    " + ", ".join(texts[at : at + per_row]) for at in range(0, len(texts), per_row))


_CODEBOOK_HEADER = f"""
// Weights by twos and a bit: 256 of them in a block of 66 bytes. Eight neighbours are one of 256 vectors of magnitudes,
// with signs of which the last follows from the others; 32 share a scale of four bits, and all a factor of half precision.

constant ulong codebook[256] = {{
{_rows(_codebook(), "0x{:016x}ul", 4)}
}};

constant uchar signs_of[128] = {{
{_rows(_signs(), "{:3d}", 16)}
}};

struct Block {{
  half factor;
  // For each of eight parts: four numbers of vectors, then four times seven signs with the scale above them.
  ushort parts[32];
}};
static_assert(sizeof(Block) == 66, "blocks stand without gaps");

// What makes a minus of a magnitude, for four at a time.
inline float4 signed_values(uint magnitudes, uint signs) {{
  const float4 plain = float4(as_type<uchar4>(magnitudes));
  const bool4 minus = (uint4(signs) & uint4(1, 2, 4, 8)) != 0;
  return select(plain, -plain, minus);
}}
"""


@body(
    """
    // A simdgroup per row; a lane has one part of 32 weights of a block, so that four blocks are in work at a time.
    const uint lane = thread_index_in_simdgroup;
    const uint row = thread_position_in_grid.y;
    const uint blocks = x_shape[0] / 256;
    const device Block* own = (const device Block*)weights + row * blocks;
    const uint part = lane % 8;

    float total = 0;
    for (uint block = lane / 8; block < blocks; block += 4) {
      const device ushort* words = own[block].parts + 4 * part;
      const uint numbers = uint(words[0]) | (uint(words[1]) << 16);
      const uint above = uint(words[2]) | (uint(words[3]) << 16);
      const float scale = float(own[block].factor) * (0.5f + float(above >> 28)) * 0.25f;
      const device float4* in = (const device float4*)(x + block * 256 + part * 32);
      float sum = 0;
      #pragma unroll
      for (uint j = 0; j < 4; ++j) {
        const ulong vectors = codebook[(numbers >> (8 * j)) & 0xff];
        const uint signs = signs_of[(above >> (7 * j)) & 0x7f];
        sum += dot(in[2 * j], signed_values(uint(vectors), signs));
        sum += dot(in[2 * j + 1], signed_values(uint(vectors >> 32), signs >> 4));
      }
      total += scale * sum;
    }
    total = simd_sum(total);
    if (lane == 0) y[row] = total;
    """,
    header=_CODEBOOK_HEADER,
    # Small whole numbers, and factors that are powers of two: all sums are exact.
    inputs=lambda rng: {
        "x": rng.integers(-3, 4, 1536).astype(np.float32),
        "weights": np.concatenate(
            [
                rng.choice([0.125, 0.25, 0.5], (6, 6, 1)).astype(np.float16).view(np.uint8),
                rng.integers(0, 256, (6, 6, 64), np.uint8),
            ],
            axis=-1,
        ),
    },
    outputs={"y": ((6,), "float32")},
    grid=(32, 6, 1),
    threadgroup=(32, 2, 1),
    constructs="address_spaces.constant_array address_spaces.cast_to_struct types.ulong types.bool4 functions.select "
    "functions.dot types.as_type types.uchar4 simdgroup.sum types.half",
)
def product_with_a_codebook(x, weights):
    y = np.zeros(6, np.float32)
    table = np.array(_codebook(), np.uint64).view(np.uint8).reshape(256, 8).astype(np.float64)
    minus = np.unpackbits(np.array(_signs(), np.uint8)[:, None], axis=1, bitorder="little")
    for row, block in np.ndindex(6, 6):
        data = weights[row, block]
        factor = float(data[:2].copy().view(np.float16)[0])
        for part in range(8):
            own = data[2 + 8 * part : 10 + 8 * part]
            above = int(own[4:].copy().view(np.uint32)[0])
            for j in range(4):
                values = table[own[j]] * (1 - 2.0 * minus[above >> 7 * j & 127])
                at = block * 256 + part * 32 + j * 8
                y[row] += factor * (0.5 + (above >> 28)) / 4 * (values @ x[at : at + 8])
    return y


# ---- A layer of a decoder for one token, in one launch

_LAYER_HEADER = """
// All of a layer for one token by one threadgroup per sequence. Vectors live in threadgroup memory; a row of a matrix is
// one simdgroup's.

template <int SIMDS>
struct Team {
  uint lane;
  uint simd_id;
  uint index;

  static void meet() { threadgroup_barrier(mem_flags::mem_threadgroup); }

  // Root mean square norm from one vector to another.
  template <int N>
  void norm(const threadgroup float* from, threadgroup float* to, const device float* weight, threadgroup float* scratch) {
    float squares = 0;
    for (int i = index; i < N; i += SIMDS * 32) squares = fma(from[i], from[i], squares);
    squares = simd_sum(squares);
    if (lane == 0) scratch[simd_id] = squares;
    meet();
    float all = 0;
    for (int s = 0; s < SIMDS; ++s) all += scratch[s];
    const float scale = rsqrt(all / N + 1e-5f);
    for (int i = index; i < N; i += SIMDS * 32) to[i] = from[i] * scale * weight[i];
    meet();
  }

  // Rows by a vector; `use` gets a row's number and its product, in one lane.
  template <int ROWS, int COLUMNS, typename T, typename Use>
  void product(const device T* matrix, const threadgroup float* vector, Use use) {
    static_assert(COLUMNS % 32 == 0, "lanes have equal shares");
    for (int row = simd_id; row < ROWS; row += SIMDS) {
      float sum = 0;
#pragma unroll
      for (int c = 0; c < COLUMNS / 32; ++c) {
        sum = fma(float(matrix[row * COLUMNS + c * 32 + lane]), vector[c * 32 + lane], sum);
      }
      sum = simd_sum(sum);
      if (lane == 0) use(row, sum);
    }
    meet();
  }
};

// Halves of a head turn together.
inline void rotate_head(threadgroup float* head, int pair, int pairs, float position, float log2_base) {
  const float theta = position * exp2(-log2_base * float(pair) / float(pairs));
  const float c = cos(theta), s = sin(theta);
  const float a = head[pair], b = head[pair + pairs];
  head[pair] = a * c - b * s;
  head[pair + pairs] = a * s + b * c;
}
"""

_LAYER = """
    constexpr int Q = HEADS * HD;
    constexpr int KV = KV_HEADS * HD;
    constexpr int SIMDS = 4;
    threadgroup float stream[DM];
    threadgroup float normal[DM];
    threadgroup float qkv[Q + 2 * KV];
    threadgroup float scores[HEADS][CONTEXT];
    threadgroup float heads_out[Q];
    threadgroup float inner[FF];
    threadgroup float scratch[SIMDS];

    const int batch = threadgroup_position_in_grid.x;
    Team<SIMDS> team{thread_index_in_simdgroup, simdgroup_index_in_threadgroup, thread_index_in_threadgroup};
    const int position = positions[batch];
    const int capacity = keys_shape[2];

    for (int i = team.index; i < DM; i += SIMDS * 32) stream[i] = x[batch * DM + i];
    team.meet();

    // Attention: queries, keys and values of the new token.
    team.template norm<DM>(stream, normal, norm_1, scratch);
    team.template product<Q + 2 * KV, DM>(w_qkv, normal, [&](int row, float sum) { qkv[row] = sum; });
    for (int p = team.index; p < (HEADS + KV_HEADS) * (HD / 2); p += SIMDS * 32) {
      rotate_head(qkv + p / (HD / 2) * HD, p % (HD / 2), HD / 2, float(position), 13.287712379549449f);
    }
    team.meet();
    for (int i = team.index; i < KV; i += SIMDS * 32) {
      new_keys[batch * KV + i] = qkv[Q + i];
      new_values[batch * KV + i] = qkv[Q + KV + i];
    }

    // Heads by simdgroups; lanes are keys, then dimensions in as many parts as lanes allow.
    for (int head = team.simd_id; head < HEADS; head += SIMDS) {
      const int kv_head = head * KV_HEADS / HEADS;
      const threadgroup float* query = qkv + head * HD;
      const device float* k = keys + (batch * KV_HEADS + kv_head) * capacity * HD;
      const device float* v = values + (batch * KV_HEADS + kv_head) * capacity * HD;
      float largest = -INFINITY;
      for (int j = team.lane; j <= position; j += 32) {
        float score = 0;
        if (j == position) {
          // The newest is not in the cache yet.
          for (int d = 0; d < HD; ++d) score += query[d] * qkv[Q + kv_head * HD + d];
        } else {
          for (int d = 0; d < HD; ++d) score += query[d] * k[j * HD + d];
        }
        score *= rsqrt(float(HD));
        scores[head][j] = score;
        largest = max(largest, score);
      }
      largest = simd_max(largest);
      float sum = 0;
      for (int j = team.lane; j <= position; j += 32) {
        const float e = exp(scores[head][j] - largest);
        scores[head][j] = e;
        sum += e;
      }
      sum = simd_sum(sum);
      simdgroup_barrier(mem_flags::mem_threadgroup);

      constexpr int parts = 32 / HD;
      const int d = team.lane % HD, part = team.lane / HD;
      float mixed = 0;
      for (int j = part; j < position; j += parts) mixed += scores[head][j] * v[j * HD + d];
      for (ushort distance = HD; distance < 32; distance *= 2) mixed += simd_shuffle_xor(mixed, distance);
      mixed += scores[head][position] * qkv[Q + KV + kv_head * HD + d];
      if (part == 0) heads_out[head * HD + d] = mixed / sum;
    }
    team.meet();
    team.template product<DM, Q>(w_out, heads_out, [&](int row, float sum) { stream[row] += sum; });

    // The feed-forward part, gate and up by turns of rows.
    team.template norm<DM>(stream, normal, norm_2, scratch);
    team.template product<2 * FF, DM>(w_gate_up, normal, [&](int row, float sum) {
      // A row and the one FF further are done by the same simdgroup, the gate first.
      if (row < FF) {
        inner[row] = sum / (1.0f + exp(-sum));
      } else {
        inner[row - FF] *= sum;
      }
    });
    team.template product<DM, FF>(w_down, inner, [&](int row, float sum) { stream[row] += sum; });
    for (int i = team.index; i < DM; i += SIMDS * 32) y[batch * DM + i] = stream[i];
"""


def _weights(rng, *shape):
    return (rng.normal(size=shape) / np.sqrt(shape[1])).astype(np.float16)


@body(
    _LAYER,
    header=_LAYER_HEADER,
    template=[("DM", 64), ("HEADS", 4), ("KV_HEADS", 2), ("HD", 16), ("FF", 96), ("CONTEXT", 48)],
    inputs=lambda rng: {
        "x": rng.uniform(3, 5, (3, 64)).astype(np.float32),
        "positions": np.array([0, 41, 17], np.int32),
        "keys": rng.normal(size=(3, 2, 48, 16)).astype(np.float32),
        "values": rng.normal(size=(3, 2, 48, 16)).astype(np.float32),
        "norm_1": rng.uniform(0.5, 1, 64).astype(np.float32),
        "w_qkv": _weights(rng, 128, 64),
        "w_out": _weights(rng, 64, 64),
        "norm_2": rng.uniform(0.5, 1, 64).astype(np.float32),
        "w_gate_up": _weights(rng, 192, 64),
        "w_down": _weights(rng, 64, 96),
    },
    outputs={
        "y": ((3, 64), "float32"),
        "new_keys": ((3, 2, 16), "float32"),
        "new_values": ((3, 2, 16), "float32"),
    },
    grid=(3 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    # The products of rows by vectors are small here and there.
    tolerance=1e-4,
    constructs="structure.template structure.struct structure.lambda barriers.in_template barriers.in_helper_called_twice "
    "address_spaces.threadgroup_pointer_to_helper address_spaces.threadgroup_2d_array simdgroup.sum simdgroup.max "
    "simdgroup.shuffle_xor functions.fma functions.rsqrt functions.exp2 functions.cos synchronisation.simdgroup_barrier "
    "structure.pragma_unroll",
)
def decoder_layer_in_one_launch(x, positions, keys, values, norm_1, w_qkv, w_out, norm_2, w_gate_up, w_down):
    def norm(v, weight):
        return v / np.sqrt((v * v).mean() + 1e-5) * weight

    y, new_keys, new_values = np.zeros((3, 64)), np.zeros((3, 2, 16)), np.zeros((3, 2, 16))
    for b, position in enumerate(positions):
        stream = x[b].astype(np.float64)
        q, k, v = np.split(w_qkv.astype(np.float64) @ norm(stream, norm_1), [64, 96])
        theta = position * 10000.0 ** (-np.arange(8) / 8)
        q, k, v = rotated(q.reshape(4, 16), theta), rotated(k.reshape(2, 16), theta), v.reshape(2, 16)
        new_keys[b], new_values[b] = k, v
        all_keys = np.concatenate([keys[b, :, :position], k[:, None]], axis=1).repeat(2, axis=0)
        all_values = np.concatenate([values[b, :, :position], v[:, None]], axis=1).repeat(2, axis=0)
        mixed = attend(q[:, None] / 4, all_keys, all_values)[0]
        stream = stream + w_out.astype(np.float64) @ mixed.reshape(64)
        gate, up = np.split(w_gate_up.astype(np.float64) @ norm(stream, norm_2), 2)
        y[b] = stream + w_down.astype(np.float64) @ (gate / (1 + np.exp(-gate)) * up)
    return y, new_keys, new_values


@body(
    """
    // The short convolution before a recurrence, token by token of a stream: the last KERNEL - 1 inputs are the state,
    // which goes on with the next call. A thread is a channel and keeps the window in registers.
    const uint channel = thread_position_in_grid.x, batch = thread_position_in_grid.y;
    const uint channels = x_shape[2], steps = x_shape[1];
    float window[KERNEL], taps[KERNEL];
    #pragma unroll
    for (int j = 0; j < KERNEL; ++j) taps[j] = float(weight[channel * KERNEL + j]);
    #pragma unroll
    for (int j = 0; j < KERNEL - 1; ++j) window[j + 1] = float(state[(batch * channels + channel) * (KERNEL - 1) + j]);
    for (uint step = 0; step < steps; ++step) {
      float sum = float(bias[channel]);
      #pragma unroll
      for (int j = 0; j + 1 < KERNEL; ++j) window[j] = window[j + 1];
      window[KERNEL - 1] = float(x[(batch * steps + step) * channels + channel]);
      // Rows of padding neither count nor move the window.
      if (!valid[batch * steps + step]) {
        for (int j = KERNEL - 1; j > 0; --j) window[j] = window[j - 1];
        y[(batch * steps + step) * channels + channel] = T(0);
        continue;
      }
      #pragma unroll
      for (int j = 0; j < KERNEL; ++j) sum = fma(taps[j], window[j], sum);
      y[(batch * steps + step) * channels + channel] = T(sum / (1.0f + exp(-sum)));
    }
    for (int j = 0; j < KERNEL - 1; ++j)
      new_state[(batch * channels + channel) * (KERNEL - 1) + j] = T(window[j + 1]);
    """,
    template=[("T", Dtype("float16")), ("KERNEL", 4)],
    inputs=lambda rng: {
        "x": rng.uniform(0.2, 1, (2, 9, 21)).astype(np.float16),
        "state": rng.uniform(0.2, 1, (2, 21, 3)).astype(np.float16),
        "weight": rng.uniform(0.2, 1, (21, 4)).astype(np.float16),
        "bias": rng.uniform(0.2, 1, 21).astype(np.float16),
        "valid": np.arange(9) >= np.array([[0], [3]]),
    },
    outputs={"y": ((2, 9, 21), "float16"), "new_state": ((2, 21, 3), "float16")},
    grid=(21, 2, 1),
    threadgroup=(32, 1, 1),
    tolerance=6e-4,
    constructs="structure.pragma_unroll structure.dynamic_local_array functions.fma types.half types.bool "
    "launch.clamped_threadgroup",
)
def short_convolution_of_a_stream(x, state, weight, bias, valid):
    y, new_state = np.zeros((2, 9, 21)), np.zeros((2, 21, 3))
    for b in range(2):
        inputs = np.concatenate([state[b].T, x[b, valid[b]]]).astype(np.float64)
        sums = bias + sum(inputs[j : len(inputs) - 3 + j] * weight[:, j] for j in range(4))
        y[b, valid[b]] = sums / (1 + np.exp(-sums))
        new_state[b] = inputs[-3:].T
    return y, new_state
