"""Attention of many tokens at once: tiles in threadgroup memory and in matrices of a simdgroup, many kinds of masks,
gradients, and the recurrences that stand in its place."""

import numpy as np

from bodies import Dtype, body
from bodies.corpus_attention import attend, normal, positive


@body(
    """
    // BQ queries by BK keys at a time; eight threads share a query, each with every eighth key and every eighth dimension.
    threadgroup float qs[BQ][D + 1];
    threadgroup float ks[BK][D + 1];
    threadgroup float vs[BK][D];
    threadgroup float ps[BQ][BK + 1];

    const int t = thread_index_in_threadgroup;
    const int member = t % 8, row = t / 8;
    const int head = threadgroup_position_in_grid.y;
    const int queries = q_shape[1], keys = k_shape[1];
    const int first_query = threadgroup_position_in_grid.x * BQ;
    const int query = first_query + row;
    const int offset = keys - queries;
    device const T* q_head = q + head * queries * D;
    device const T* k_head = k + head * keys * D;
    device const T* v_head = v + head * keys * D;

    for (int e = t; e < BQ * D; e += 8 * BQ) {
      int r = e / D, c = e - r * D;
      qs[r][c] = first_query + r < queries ? scale * float(q_head[(first_query + r) * D + c]) : 0;
    }

    float o[D / 8];
    for (int j = 0; j < D / 8; ++j) o[j] = 0;
    float largest = -INFINITY, sum = 0;
    // The last tile that some query of this threadgroup sees.
    const int last = min(keys, first_query + BQ + offset);
    for (int first = 0; first < last; first += BK) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int e = t; e < BK * D; e += 8 * BQ) {
        int r = e / D, c = e - r * D;
        bool inside = first + r < keys;
        ks[r][c] = inside ? float(k_head[(first + r) * D + c]) : 0;
        vs[r][c] = inside ? float(v_head[(first + r) * D + c]) : 0;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      float tile_max = -INFINITY;
      for (int key = member; key < BK; key += 8) {
        float score = 0;
        for (int d = 0; d < D; ++d) score = fma(qs[row][d], ks[key][d], score);
        score = CAP * precise::tanh(score / CAP);
        bool seen = first + key < keys && first + key <= query + offset;
        score = seen ? score : -INFINITY;
        ps[row][key] = score;
        tile_max = max(tile_max, score);
      }
      for (ushort s = 1; s < 8; s <<= 1) tile_max = max(tile_max, simd_shuffle_xor(tile_max, s));
      float next = max(largest, tile_max);
      float factor = exp(largest - next);
      float tile_sum = 0;
      for (int key = member; key < BK; key += 8) {
        float p = exp(ps[row][key] - next);
        ps[row][key] = p;
        tile_sum += p;
      }
      for (ushort s = 1; s < 8; s <<= 1) tile_sum += simd_shuffle_xor(tile_sum, s);
      sum = sum * factor + tile_sum;
      largest = next;
      // A row belongs to threads of one simdgroup.
      simdgroup_barrier(mem_flags::mem_threadgroup);
      for (int j = 0; j < D / 8; ++j) {
        float added = 0;
        for (int key = 0; key < BK; ++key) added = fma(ps[row][key], vs[key][member + 8 * j], added);
        o[j] = o[j] * factor + added;
      }
    }
    if (query < queries)
      for (int j = 0; j < D / 8; ++j) out[(head * queries + query) * D + member + 8 * j] = T(o[j] / sum);
    """,
    template=[("T", Dtype("float16")), ("D", 40), ("BQ", 16), ("BK", 24), ("CAP", 20)],
    inputs=lambda rng: {
        "q": normal(rng, "float16", 3, 37, 40),
        "k": normal(rng, "float16", 3, 50, 40),
        "v": positive(rng, "float16", 3, 50, 40),
        "scale": 2.0,
    },
    outputs={"out": ((3, 37, 40), "float16")},
    grid=(3 * 128, 3, 1),
    threadgroup=(128, 1, 1),
    tolerance=6e-4,
    constructs="functions.precise functions.tanh simdgroup.shuffle_xor synchronisation.simdgroup_barrier functions.fma "
    "barriers.run_time_trip_count address_spaces.threadgroup_2d_array structure.template_arguments",
)
def causal_attention_with_a_soft_cap(q, k, v, scale):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scores = 20 * np.tanh(q @ k.swapaxes(1, 2) * scale / 20)
    scores[:, np.arange(50)[None] > np.arange(37)[:, None] + 13] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


_MATRICES_HEADER = """
#include <metal_simdgroup_matrix>

// Attention of tiles of 8 by 8. A simdgroup owns eight rows of queries; a thread's two elements of a tile are those that
// Apple's GPUs give it: a row is spread over the lanes that differ in the bits 0 and 3 of their numbers.

#define FOR_TILES(I, N) MLX_MTL_PRAGMA_UNROLL for (short I = 0; I < (N); ++I)

struct Place {
  short row;
  short column;

  static Place of(ushort lane) {
    const short quad = lane / 4;
    return Place{short((quad & 4) + (lane / 2) % 4), short((quad & 2) * 2 + (lane % 2) * 2)};
  }
};

// The largest or the sum of a row of 8, for all who have a part of it.
struct Larger {
  static float apply(float a, float b) { return metal::max(a, b); }
};

struct Plus {
  static float apply(float a, float b) { return a + b; }
};

template <typename Op>
METAL_FUNC float over_row(float own) {
  own = Op::apply(own, simd_shuffle_xor(own, ushort(1)));
  own = Op::apply(own, simd_shuffle_xor(own, ushort(8)));
  return own;
}

template <int N>
struct RowOfTiles {
  simdgroup_matrix<float, 8, 8> tiles[N];

  void clear() {
    FOR_TILES(i, N) tiles[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }

  thread float& at(short tile, short element) { return tiles[tile].thread_elements()[element]; }

  void scale(float by) {
    FOR_TILES(i, N) {
      tiles[i].thread_elements()[0] *= by;
      tiles[i].thread_elements()[1] *= by;
    }
  }

  template <typename Op>
  float reduce(float start) {
    FOR_TILES(i, N) {
      start = Op::apply(start, tiles[i].thread_elements()[0]);
      start = Op::apply(start, tiles[i].thread_elements()[1]);
    }
    return over_row<Op>(start);
  }
};

// All threads of the threadgroup bring rows of the source into a tile, zeros beyond its end. TRANSPOSE turns it, so that
// the product with it needs no turning.
template <typename T, int ROWS, int COLUMNS, int STRIDE, int THREADS, bool TRANSPOSE>
struct Loader {
  static void load(threadgroup float* to, const device T* from, int rows_left, float factor, uint thread_id) {
    constexpr int VECTOR = 4;
    static_assert(COLUMNS % VECTOR == 0, "rows are whole vectors");
    for (int e = thread_id; e < ROWS * COLUMNS / VECTOR; e += THREADS) {
      const int r = e / (COLUMNS / VECTOR);
      const int c = e % (COLUMNS / VECTOR) * VECTOR;
      MLX_MTL_PRAGMA_UNROLL
      for (int j = 0; j < VECTOR; ++j) {
        const float value = r < rows_left ? factor * static_cast<float>(from[r * COLUMNS + c + j]) : 0.0f;
        if (TRANSPOSE) {
          to[(c + j) * STRIDE + r] = value;
        } else {
          to[r * STRIDE + c + j] = value;
        }
      }
    }
  }
};
"""

_MATRICES = """
    constexpr int SIMDS = BQ / 8;
    constexpr int THREADS = 32 * SIMDS;
    constexpr int PAD = 4;
    constexpr int TD = BD / 8;
    constexpr int TK = BK / 8;
    constexpr int LDQ = BD + PAD;
    constexpr int LDK = BK + PAD;
    constexpr int LDV = BD + PAD;

    threadgroup float q_tile[BQ * LDQ];
    // Keys are done with when values come.
    threadgroup float kv_tile[(BD * LDK > BK * LDV) ? BD * LDK : BK * LDV];

    const uint thread_id = thread_index_in_threadgroup;
    const ushort simd_id = simdgroup_index_in_threadgroup;
    const Place place = Place::of(thread_index_in_simdgroup);

    const int block = threadgroup_position_in_grid.x;
    const int head = threadgroup_position_in_grid.y;
    const int batch = threadgroup_position_in_grid.z;
    const int heads = q_shape[1];
    const int kv_heads = k_shape[1];
    const int qL = q_shape[2];
    const int kL = k_shape[2];
    const int q_row = (batch * heads + head) * qL + block * BQ;
    const int kv_row = (batch * kv_heads + head / (heads / kv_heads)) * kL;
    const int own_row = block * BQ + simd_id * 8 + place.row;
    const int past = kL - qL;

    // exp2 of scores times log2(e) is exp of the scores.
    const float to_exp2 = scale * M_LOG2E_F;
    Loader<T, BQ, BD, LDQ, THREADS, false>::load(q_tile, q + q_row * BD, qL - block * BQ, to_exp2, thread_id);

    RowOfTiles<TD> output;
    output.clear();
    float row_max = -INFINITY;
    float row_sum = 0.0f;

    int key_tiles = (kL + BK - 1) / BK;
    if (CAUSAL) {
      const int seen = min(kL, (block + 1) * BQ + past);
      key_tiles = min(key_tiles, (seen + BK - 1) / BK);
    }
    for (int kt = 0; kt < key_tiles; ++kt) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      Loader<T, BK, BD, LDK, THREADS, true>::load(kv_tile, k + (kv_row + kt * BK) * BD, kL - kt * BK, 1.0f, thread_id);
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // S = Q K^T
      RowOfTiles<TK> scores;
      scores.clear();
      FOR_TILES(d, TD) {
        simdgroup_matrix<float, 8, 8> a;
        simdgroup_load(a, q_tile + simd_id * 8 * LDQ + d * 8, LDQ);
        FOR_TILES(j, TK) {
          simdgroup_matrix<float, 8, 8> b;
          simdgroup_load(b, kv_tile + d * 8 * LDK + j * 8, LDK);
          simdgroup_multiply_accumulate(scores.tiles[j], a, b, scores.tiles[j]);
        }
      }

      // What lies beyond the end, and beyond the diagonal, only in tiles that reach so far.
      const bool at_end = (kt + 1) * BK > kL;
      const bool on_diagonal = CAUSAL && (kt + 1) * BK > block * BQ + past;
      if (at_end || on_diagonal) {
        FOR_TILES(j, TK) {
          MLX_MTL_PRAGMA_UNROLL
          for (short e = 0; e < 2; ++e) {
            const int column = kt * BK + j * 8 + place.column + e;
            if (column >= kL || (CAUSAL && column > own_row + past)) {
              scores.at(j, e) = -INFINITY;
            }
          }
        }
      }

      const float new_max = scores.template reduce<Larger>(row_max);
      const float factor = exp2(row_max - new_max);
      FOR_TILES(j, TK) {
        scores.at(j, 0) = exp2(scores.at(j, 0) - new_max);
        scores.at(j, 1) = exp2(scores.at(j, 1) - new_max);
      }
      row_sum = row_sum * factor + scores.template reduce<Plus>(0.0f);
      row_max = new_max;
      output.scale(factor);

      threadgroup_barrier(mem_flags::mem_threadgroup);
      Loader<T, BK, BD, LDV, THREADS, false>::load(kv_tile, v + (kv_row + kt * BK) * BD, kL - kt * BK, 1.0f, thread_id);
      threadgroup_barrier(mem_flags::mem_threadgroup);

      // O += P V; the scores are already tiles of a left factor.
      FOR_TILES(j, TK) {
        FOR_TILES(d, TD) {
          simdgroup_matrix<float, 8, 8> b;
          simdgroup_load(b, kv_tile + j * 8 * LDV + d * 8, LDV);
          simdgroup_multiply_accumulate(output.tiles[d], scores.tiles[j], b, output.tiles[d]);
        }
      }
    }

    if (own_row >= qL) return;
    output.scale(1.0f / row_sum);
    device T* target = out + ((batch * heads + head) * qL + own_row) * BD + place.column;
    FOR_TILES(d, TD) {
      target[d * 8] = static_cast<T>(output.at(d, 0));
      target[d * 8 + 1] = static_cast<T>(output.at(d, 1));
    }
    // One thread of a row tells what the gradient will want.
    if (place.column == 0) logsumexp[(batch * heads + head) * qL + own_row] = (row_max + log2(row_sum)) * M_LN2_F;
"""

for _dtype, _causal in (("float32", True), ("bfloat16", False)):

    def _by_matrices(q, k, v, scale, causal=_causal):
        k, v = k.repeat(2, axis=1), v.repeat(2, axis=1)
        bias = np.where(np.arange(39)[None] > np.arange(35)[:, None] + 4, -np.inf, 0.0) if causal else 0.0
        return attend(q.astype(np.float64) * scale, k, v, bias)

    body(
        _MATRICES,
        name=f"attention_by_matrices_{_dtype}",
        header=_MATRICES_HEADER,
        template=[("T", Dtype(_dtype)), ("BQ", 16), ("BK", 8), ("BD", 16), ("CAUSAL", _causal)],
        inputs=lambda rng, dtype=_dtype: {
            "q": positive(rng, dtype, 1, 4, 35, 16),
            "k": positive(rng, dtype, 1, 2, 39, 16),
            "v": positive(rng, dtype, 1, 2, 39, 16),
            "scale": 0.17,
        },
        outputs={"out": ((1, 4, 35, 16), _dtype), "logsumexp": ((1, 4, 35), "float32")},
        grid=(3 * 64, 4, 1),
        threadgroup=(64, 1, 1),
        tolerance={"float32": 5e-6, "bfloat16": 4.5e-3}[_dtype],
        constructs="simdgroup_matrix.thread_elements simdgroup_matrix.load_and_store simdgroup_matrix.constructors "
        "simdgroup_matrix.multiply_accumulate structure.template structure.include_metal structure.struct "
        "mlx.METAL_FUNC mlx.MLX_MTL_PRAGMA_UNROLL structure.define_in_header types.M_constants functions.exp2 "
        "simdgroup.shuffle_xor "
        "address_spaces.threadgroup_pointer_to_helper barriers.in_loop",
    )(_by_matrices)


@body(
    """
    // Queries, keys and values are views of one array, as a fused projection leaves them; the mask is spread over batch
    // and heads without being copied. So everything goes by strides. A thread is a query of a head.
    const int query = thread_position_in_grid.x;
    const int head = thread_position_in_grid.y;
    const int batch = thread_position_in_grid.z;
    const int n = k_shape[2];
    if (query >= q_shape[2]) return;

    const device float* own = q + batch * q_strides[0] + head * q_strides[1] + query * q_strides[2];
    float row[D];
    for (int d = 0; d < D; ++d) row[d] = own[d * q_strides[3]] * scale;

    // The place of the row's first element in the mask, whatever its strides are.
    const uint element = uint(((batch * mask_shape[1] + head) * mask_shape[2] + query) * mask_shape[3]);
    const device bool* allowed = mask + elem_to_loc(element, mask_shape, mask_strides, mask_ndim);

    float sums[D] = {0.0f};
    float largest = -INFINITY, total = 0;
    bool any = false;
    for (int key = 0; key < n; ++key) {
      if (!allowed[key * mask_strides[3]]) continue;
      any = true;
      const device float* k_row = k + batch * k_strides[0] + head * k_strides[1] + key * k_strides[2];
      const device float* v_row = v + batch * v_strides[0] + head * v_strides[1] + key * v_strides[2];
      float score = 0;
      for (int d = 0; d < D; ++d) score += row[d] * k_row[d * k_strides[3]];
      float weight;
      if (score > largest) {
        const float factor = exp(largest - score);
        total *= factor;
        for (int d = 0; d < D; ++d) sums[d] *= factor;
        largest = score;
        weight = 1;
      } else {
        weight = exp(score - largest);
      }
      total += weight;
      for (int d = 0; d < D; ++d) sums[d] += weight * v_row[d * v_strides[3]];
    }
    device float* to = out + ((batch * q_shape[1] + head) * q_shape[2] + query) * D;
    // Who sees nothing gets zeros, not NaNs.
    for (int d = 0; d < D; ++d) to[d] = any ? sums[d] / total : 0.0f;
    """,
    template=[("D", 16)],
    inputs=lambda rng: _views_of_qkv(rng),
    outputs={"out": ((2, 3, 13, 16), "float32")},
    grid=(16, 3, 2),
    threadgroup=(16, 1, 2),
    tolerance=4e-6,
    ensure_row_contiguous=False,
    constructs="layouts.strided layouts.shape_arguments mlx.elem_to_loc structure.dynamic_local_array types.bool "
    "address_spaces.device_pointer_arithmetic structure.early_return",
)
def attention_over_views_with_a_mask(q, k, v, mask, scale):
    out = np.zeros((2, 3, 13, 16))
    for b, h, i in np.ndindex(2, 3, 13):
        if (seen := mask[b, h, i]).any():
            out[b, h, i] = attend(q[b, h, i : i + 1].astype(np.float64) * scale, k[b, h, seen], v[b, h, seen])[0][0]
    return out


def _views_of_qkv(rng):
    qkv = rng.uniform(0.5, 2, (2, 13, 3, 3, 16)).astype(np.float32)
    q, k, v = (qkv[:, :, j].transpose(0, 2, 1, 3) for j in range(3))
    mask = rng.random((13, 13)) < 0.5
    mask[4] = False
    return {"q": q, "k": k, "v": v, "mask": np.broadcast_to(mask, (2, 3, 13, 13)), "scale": 0.25}


@body(
    """
    // Sequences of many lengths one behind the other, without padding. One simdgroup per token and head: it looks up
    // where its sequence begins, then its lanes are keys, and then dimensions.
    const ushort lane = thread_index_in_simdgroup;
    const int token = thread_position_in_grid.x / 32;
    const int head = thread_position_in_grid.y;
    const int heads = q_shape[1], kv_heads = k_shape[1];
    const int kv_head = head * kv_heads / heads;
    if (token >= q_shape[0]) return;

    // The last sequence that does not begin behind the token; sequences may be empty.
    int low = 0, high = starts_q_shape[0] - 1;
    while (high - low > 1) {
      int middle = (low + high) >> 1;
      if (starts_q[middle] <= token) low = middle; else high = middle;
    }
    const int q_begin = starts_q[low], q_end = starts_q[low + 1];
    const int k_begin = starts_k[low], k_end = starts_k[low + 1];
    // Aligned at the end: the last query sees the last key.
    const int position = token - q_end + k_end;
    const int from = max(k_begin, position - WINDOW + 1);

    const float own = q[(token * heads + head) * 32 + lane] * scale;
    float m = -INFINITY, l = 0, o = 0;
    for (int first = from; first <= position; first += 32) {
      const int key = first + lane;
      const device half* k_row = k + (key * kv_heads + kv_head) * 32;
      float score = 0;
      for (ushort d = 0; d < 32; ++d) {
        float other = simd_broadcast(own, d);
        if (key <= position) score += other * float(k_row[d]);
      }
      if (key > position) score = -INFINITY;
      const float next = max(m, simd_max(score));
      const float p = exp(score - next), keep = exp(m - next);
      l = l * keep + simd_sum(p);
      o *= keep;
      const ushort count = ushort(min(32, position - first + 1));
      for (ushort j = 0; j < count; ++j)
        o += simd_shuffle(p, j) * float(v[((first + j) * kv_heads + kv_head) * 32 + lane]);
      m = next;
    }
    out[(token * heads + head) * 32 + lane] = half(o / l);
    if (lane == 0) logsumexp[head * q_shape[0] + token] = m + log(l);
    """,
    template=[("WINDOW", 40)],
    inputs=lambda rng: {
        "q": positive(rng, "float16", 41, 4, 32),
        "k": positive(rng, "float16", 81, 2, 32),
        "v": positive(rng, "float16", 81, 2, 32),
        "starts_q": np.array([0, 7, 7, 40, 41], np.int32),
        "starts_k": np.array([0, 7, 13, 61, 81], np.int32),
        "scale": 0.177,
    },
    outputs={"out": ((41, 4, 32), "float16"), "logsumexp": ((4, 41), "float32")},
    grid=(42 * 32, 4, 1),
    threadgroup=(64, 1, 1),
    tolerance=6e-4,
    constructs="structure.while structure.return_before_simd simdgroup.broadcast simdgroup.shuffle "
    "simdgroup.run_time_lane layouts.few_elements types.half functions.log",
)
def attention_of_packed_sequences(q, k, v, starts_q, starts_k, scale):
    out, logs = np.zeros((41, 4, 32)), np.zeros((4, 41))
    for s in range(4):
        for token in range(starts_q[s], starts_q[s + 1]):
            position = token - starts_q[s + 1] + starts_k[s + 1]
            keys = np.arange(max(starts_k[s], position - 39), position + 1)
            for h in range(4):
                query = q[token, h : h + 1].astype(np.float64) * scale
                (out[token, h],), (logs[h, token],) = attend(query, k[keys, h // 2], v[keys, h // 2])
    return out, logs


# ---- The gradient of causal attention. Keys are of two kinds, so that what is summed does not cancel.


def _gradient_inputs(rng, queries, keys):
    kind = np.where(np.arange(keys) % 3 == 0, 1.0, 0.25)[:, None]
    q = rng.uniform(0.5, 1, (2, queries, 32))
    k, v = (kind * rng.uniform(0.9, 1.1, (2, keys, 32)) for _ in range(2))
    q, k, v = (a.astype(np.float32) for a in (q, k, v))
    d_out = rng.uniform(0.5, 1, (2, queries, 32)).astype(np.float32)
    out, logs = attend(q.astype(np.float64) * 0.125, k, v, _behind(queries, keys))
    delta = (out * d_out).sum(axis=-1)
    return {
        "q": q,
        "k": k,
        "v": v,
        "d_out": d_out,
        "logsumexp": logs.astype(np.float32),
        "delta": delta.astype(np.float32),
        "scale": 0.125,
    }


def _behind(queries, keys):
    return np.where(np.arange(keys)[None] > np.arange(queries)[:, None] + keys - queries, -np.inf, 0.0)


def _gradients(q, k, v, d_out, logsumexp, delta, scale):
    q, k, v, d_out = (a.astype(np.float64) for a in (q, k, v, d_out))
    scores = q @ k.swapaxes(1, 2) * scale + _behind(q.shape[1], k.shape[1])
    p = np.exp(scores - logsumexp.astype(np.float64)[..., None])
    ds = p * (d_out @ v.swapaxes(1, 2) - delta.astype(np.float64)[..., None]) * scale
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ d_out


@body(
    """
    // A simdgroup per query: its lanes are the dimensions. The weights are computed again from the sums of the forward
    // pass, so nothing quadratic was kept.
    const uint lane = thread_index_in_simdgroup;
    const int query = thread_position_in_grid.y, head = thread_position_in_grid.z;
    const int n = k_shape[1], queries = q_shape[1];
    const int row = head * queries + query;
    const float q_own = q[row * 32 + lane] * scale, d_own = d_out[row * 32 + lane];
    const float log_sum = logsumexp[row], d = delta[row];
    device const float* k_head = k + head * n * 32;
    device const float* v_head = v + head * n * 32;
    float sum = 0;
    for (int key = 0; key <= query + n - queries; ++key) {
      const float k_own = k_head[key * 32 + lane];
      const float2 both = simd_sum(float2(q_own * k_own, d_own * v_head[key * 32 + lane]));
      const float p = exp(both.x - log_sum);
      sum = fma(p * (both.y - d), k_own, sum);
    }
    dq[row * 32 + lane] = sum * scale;
    """,
    inputs=lambda rng: _gradient_inputs(rng, 21, 30),
    outputs={"dq": ((2, 21, 32), "float32")},
    grid=(32, 21, 2),
    threadgroup=(32, 4, 1),
    tolerance=2e-5,
    constructs="simdgroup.sum types.float2 functions.fma functions.exp launch.edge_threadgroups "
    "reconvergence.divergent_trip_count",
)
def attention_gradient_of_queries(q, k, v, d_out, logsumexp, delta, scale):
    return _gradients(q, k, v, d_out, logsumexp, delta, scale)[0]


@body(
    """
    // A threadgroup owns BK keys, and goes over the queries that see them; what it adds up stays in registers, so that
    // no atomics are needed.
    threadgroup float4 q_tile[BQ][8];
    threadgroup float4 d_tile[BQ][8];
    threadgroup float2 scalars[BQ];  // logsumexp and delta
    const int t = thread_index_in_threadgroup;
    const int part = t % 8;  // which four dimensions
    const int local = t / 8;
    const int n = k_shape[1], queries = q_shape[1];
    const int head = threadgroup_position_in_grid.y;
    const int first_key = threadgroup_position_in_grid.x * BK;
    const int key = first_key + local;
    const bool real = key < n;
    const int past = n - queries;

    device const float4* k4 = (device const float4*)k;
    device const float4* v4 = (device const float4*)v;
    const float4 k_own = real ? k4[(head * n + key) * 8 + part] : float4(0);
    const float4 v_own = real ? v4[(head * n + key) * 8 + part] : float4(0);
    float4 dk_own = 0, dv_own = 0;

    // Queries before the first that sees a key of this tile are skipped.
    const int begin = max(0, first_key - past) / BQ * BQ;
    for (int first = begin; first < queries; first += BQ) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int e = t; e < BQ * 8; e += BK * 8) {
        const int query = first + e / 8;
        const bool there = query < queries;
        q_tile[e / 8][e % 8] = there ? ((device const float4*)q)[(head * queries + query) * 8 + e % 8] : float4(0);
        d_tile[e / 8][e % 8] = there ? ((device const float4*)d_out)[(head * queries + query) * 8 + e % 8] : float4(0);
        if (e % 8 == 0)
          scalars[e / 8] = there ? float2(logsumexp[head * queries + query], delta[head * queries + query])
                                 : float2(INFINITY, 0);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int i = 0; i < BQ; ++i) {
        float s = dot(q_tile[i][part], k_own), dp = dot(d_tile[i][part], v_own);
        for (ushort distance = 1; distance < 8; distance *= 2) {
          s += simd_shuffle_xor(s, distance);
          dp += simd_shuffle_xor(dp, distance);
        }
        if (key > first + i + past) continue;
        const float p = exp(s * scale - scalars[i].x);
        dv_own += p * d_tile[i][part];
        dk_own += (p * (dp - scalars[i].y) * scale) * q_tile[i][part];
      }
    }
    if (!real) return;
    ((device float4*)dk)[(head * n + key) * 8 + part] = dk_own;
    ((device float4*)dv)[(head * n + key) * 8 + part] = dv_own;
    """,
    template=[("BQ", 8), ("BK", 12)],
    inputs=lambda rng: _gradient_inputs(rng, 25, 28),
    outputs={"dk": ((2, 28, 32), "float32"), "dv": ((2, 28, 32), "float32")},
    grid=(3 * 96, 2, 1),
    threadgroup=(96, 1, 1),
    tolerance=2e-5,
    constructs="address_spaces.threadgroup_vectors address_spaces.cast_to_vector functions.dot simdgroup.shuffle_xor "
    "barriers.in_loop types.float4 types.INFINITY",
)
def attention_gradient_of_keys_and_values(q, k, v, d_out, logsumexp, delta, scale):
    return _gradients(q, k, v, d_out, logsumexp, delta, scale)[1:]


@body(
    """
    // A pixel attends to the K by K pixels around it; at the edges of the image the window stays inside. A bias by
    // relative place is added. A thread is a pixel of a head.
    constexpr int R = K / 2;
    const int3 p = int3(thread_position_in_grid);
    const int width = q_shape[2], height = q_shape[1], head = p.z;
    if (p.x >= width || p.y >= height) return;
    const int2 corner = clamp(p.xy - R, int2(0), int2(width, height) - K);

    const device packed_float3* q3 = (const device packed_float3*)q;
    const device packed_float3* k3 = (const device packed_float3*)k;
    const device packed_float3* v3 = (const device packed_float3*)v;
    const int plane = head * height * width;
    float3 own[4];
    #pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) own[j] = float3(q3[(plane + p.y * width + p.x) * 4 + j]) * scale;

    float scores[K * K];
    float largest = -INFINITY;
    for (int dy = 0; dy < K; ++dy) {
      for (int dx = 0; dx < K; ++dx) {
        const int2 at = corner + int2(dx, dy);
        const int place = (plane + at.y * width + at.x) * 4;
        float s = 0;
        for (int j = 0; j < 4; ++j) s += dot(own[j], float3(k3[place + j]));
        const int2 relative = at - p.xy + (K - 1);
        s += bias[(head * (2 * K - 1) + relative.y) * (2 * K - 1) + relative.x];
        scores[dy * K + dx] = s;
        largest = fmax(largest, s);
      }
    }
    float total = 0;
    float3 sum[4] = {0, 0, 0, 0};
    for (int i = 0; i < K * K; ++i) {
      const float w = exp(scores[i] - largest);
      total += w;
      const int place = (plane + (corner.y + i / K) * width + corner.x + i % K) * 4;
      for (int j = 0; j < 4; ++j) sum[j] += w * float3(v3[place + j]);
    }
    for (int j = 0; j < 4; ++j)
      ((device packed_float3*)out)[(plane + p.y * width + p.x) * 4 + j] = packed_float3(sum[j] / total);
    """,
    template=[("K", 5)],
    inputs=lambda rng: {
        "q": normal(rng, "float32", 2, 9, 11, 12),
        "k": normal(rng, "float32", 2, 9, 11, 12),
        "v": positive(rng, "float32", 2, 9, 11, 12),
        "bias": normal(rng, "float32", 2, 9, 9),
        "scale": 0.29,
    },
    outputs={"out": ((2, 9, 11, 12), "float32")},
    grid=(16, 12, 2),
    threadgroup=(8, 4, 2),
    tolerance=4e-6,
    constructs="types.packed_vectors types.int3 types.int2 functions.clamp structure.pragma_clang_loop types.float3 "
    "structure.dynamic_local_array functions.dot types.swizzle_read structure.early_return",
)
def neighbourhood_attention(q, k, v, bias, scale):
    out = np.zeros((2, 9, 11, 12))
    for h, y, x in np.ndindex(2, 9, 11):
        y0, x0 = min(max(y - 2, 0), 4), min(max(x - 2, 0), 6)
        around = np.s_[h, y0 : y0 + 5, x0 : x0 + 5]
        b = bias[h, y0 - y + 4 : y0 - y + 9, x0 - x + 4 : x0 - x + 9].reshape(25)
        query = q[h, y, x : x + 1].astype(np.float64) * scale
        out[h, y, x] = attend(query, k[around].reshape(25, 12), v[around].reshape(25, 12), b)[0][0]
    return out


@body(
    """
    // Which blocks of keys a block of queries sees is listed, row by row. Four threads, a quadgroup, share a query.
    threadgroup half4 k_tile[B * D / 4];
    threadgroup half4 v_tile[B * D / 4];
    const ushort t = thread_index_in_threadgroup;
    const ushort part = thread_index_in_quadgroup;
    const uint query = threadgroup_position_in_grid.x * B + t / 4;
    const uint head = threadgroup_position_in_grid.y, n = q_shape[1];
    const device half4* q_row = (const device half4*)(q + (head * n + query) * D) + part * (D / 16);

    half4 own[D / 16];
    float4 sums[D / 16];
    for (int j = 0; j < D / 16; ++j) {
      own[j] = q_row[j];
      sums[j] = float4(0);
    }
    float m = -HUGE_VALF, l = 0;
    const int begin = row_starts[threadgroup_position_in_grid.x], end = row_starts[threadgroup_position_in_grid.x + 1];
    for (int entry = begin; entry < end; ++entry) {
      const uint block = columns[entry];
      const device half4* k4 = (const device half4*)(k + (head * n + block * B) * D);
      const device half4* v4 = (const device half4*)(v + (head * n + block * B) * D);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint e = t; e < B * D / 4; e += 4 * B) {
        k_tile[e] = k4[e];
        v_tile[e] = v4[e];
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const bool diagonal = block == threadgroup_position_in_grid.x;
      for (ushort key = 0; key < B; ++key) {
        if (diagonal && key > t / 4) break;
        float s = 0;
        for (int j = 0; j < D / 16; ++j) s += dot(float4(own[j]), float4(k_tile[key * (D / 4) + part * (D / 16) + j]));
        s = quad_sum(s) * scale;
        const float next = max(m, s), keep = exp(m - next), p = exp(s - next);
        l = l * keep + p;
        for (int j = 0; j < D / 16; ++j) sums[j] = sums[j] * keep + p * float4(v_tile[key * (D / 4) + part * (D / 16) + j]);
        m = next;
      }
    }
    device half4* to = (device half4*)(out + (head * n + query) * D) + part * (D / 16);
    for (int j = 0; j < D / 16; ++j) to[j] = half4(sums[j] / l);
    """,
    template=[("B", 16), ("D", 32)],
    inputs=lambda rng: {
        "q": normal(rng, "float16", 2, 64, 32),
        "k": normal(rng, "float16", 2, 64, 32),
        "v": positive(rng, "float16", 2, 64, 32),
        # Blocks on the diagonal, the one before, and the first.
        "row_starts": np.array([0, 1, 3, 6, 9], np.int32),
        "columns": np.array([0, 0, 1, 0, 1, 2, 0, 2, 3], np.uint16),
        "scale": 0.177,
    },
    outputs={"out": ((2, 64, 32), "float16")},
    grid=(4 * 64, 2, 1),
    threadgroup=(64, 1, 1),
    tolerance=6e-4,
    constructs="simdgroup.quad_sum attributes.thread_index_in_quadgroup types.HUGE_VALF types.half4 types.ushort "
    "address_spaces.threadgroup_vectors barriers.run_time_trip_count reconvergence.break_before_call",
)
def block_sparse_attention(q, k, v, row_starts, columns, scale):
    bias = np.full((64, 64), -np.inf)
    for row in range(4):
        for column in columns[row_starts[row] : row_starts[row + 1]]:
            bias[16 * row : 16 * row + 16, 16 * int(column) : 16 * int(column) + 16] = 0
    bias[np.arange(64)[None] > np.arange(64)[:, None]] = -np.inf
    return attend(q.astype(np.float64) * scale, k, v, bias)[0]


# ---- Recurrences in attention's place


@body(
    """
    // The gated delta rule: state = g state + (beta (v - g state k)) k. A simdgroup owns one row of the state of a head,
    // spread over its lanes, and runs through the sequence; padding at the end leaves the state alone.
    typedef vec<float, DK / 32> Slice;
    const uint lane = thread_index_in_simdgroup;
    const uint row = thread_position_in_grid.y;
    const uint value_head = thread_position_in_grid.z % VALUE_HEADS, sequence = thread_position_in_grid.z / VALUE_HEADS;
    const uint key_head = value_head * KEY_HEADS / VALUE_HEADS;
    const uint steps = v_shape[1];
    const uint used = lengths[sequence];

    const device Slice* kept = (const device Slice*)state_in;
    const uint slice = ((sequence * VALUE_HEADS + value_head) * DV + row) * 32 + lane;
    Slice state = kept[slice];
    for (uint step = 0; step < steps; ++step) {
      const uint at = sequence * steps + step;
      const uint target = (at * VALUE_HEADS + value_head) * DV + row;
      if (step >= used) {
        if (simd_is_first()) y[target] = T(0);
        continue;
      }
      const uint line = (at * KEY_HEADS + key_head) * 32 + lane;
      const Slice key = ((const device Slice*)k)[line], query = ((const device Slice*)q)[line];
      state *= g[at * VALUE_HEADS + value_head];
      const float known = simd_sum(dot(state, key));
      const float correction = beta[at * VALUE_HEADS + value_head] * (float(v[target]) - known);
      state += correction * key;
      const float answer = simd_sum(dot(state, query));
      if (simd_is_first()) y[target] = T(answer);
    }
    ((device Slice*)state_out)[slice] = state;
    """,
    template=[("T", Dtype("float32")), ("DK", 64), ("DV", 6), ("KEY_HEADS", 1), ("VALUE_HEADS", 2)],
    inputs=lambda rng: {
        "q": rng.uniform(0.1, 0.3, (2, 7, 1, 64)).astype(np.float32),
        "k": rng.uniform(0.05, 0.2, (2, 7, 1, 64)).astype(np.float32),
        "v": rng.uniform(4, 5, (2, 7, 2, 6)).astype(np.float32),
        "g": rng.uniform(0.8, 1, (2, 7, 2)).astype(np.float32),
        "beta": rng.uniform(0.2, 0.4, (2, 7, 2)).astype(np.float32),
        "state_in": rng.uniform(0, 0.1, (2, 2, 6, 64)).astype(np.float32),
        "lengths": np.array([7, 5], np.int32),
    },
    outputs={"y": ((2, 7, 2, 6), "float32"), "state_out": ((2, 2, 6, 64), "float32")},
    grid=(32, 6, 4),
    threadgroup=(32, 4, 1),
    tolerance=4e-6,
    constructs="types.vec functions.dot simdgroup.sum simdgroup.is_first address_spaces.cast_to_vector "
    "launch.edge_threadgroups reconvergence.continue_before_call",
)
def gated_delta_rule(q, k, v, g, beta, state_in, lengths):
    q, k = (a.astype(np.float64).repeat(2, axis=2) for a in (q, k))
    states, y = state_in.astype(np.float64), np.zeros((2, 7, 2, 6))
    for b in range(2):
        for t in range(lengths[b]):
            state = states[b] * g[b, t, :, None, None]
            error = v[b, t] - np.einsum("hvk,hk->hv", state, k[b, t])
            states[b] = state + np.einsum("hv,hk->hvk", error * beta[b, t, :, None], k[b, t])
            y[b, t] = np.einsum("hvk,hk->hv", states[b], q[b, t])
    return y, states


@body(
    """
    // Retention by chunks: within a chunk as attention without softmax, with a decay by distance; from chunk to chunk
    // by a state, which stays in threadgroup memory.
    threadgroup float state[D][D];
    threadgroup float qc[C][D], kc[C][D], vc[C][D];
    threadgroup float inner[C][C];
    const uint2 t = thread_position_in_threadgroup.xy;  // D by C threads
    const uint head = threadgroup_position_in_grid.x;
    const float log_gamma = log2_decays[head];
    const uint length = q_shape[1];

    for (uint r = t.y; r < D; r += C) state[r][t.x] = 0;
    for (uint chunk = 0; chunk < length; chunk += C) {
      const uint at = (head * length + chunk + t.y) * D + t.x;
      const bool inside = chunk + t.y < length;
      qc[t.y][t.x] = inside ? q[at] : 0;
      kc[t.y][t.x] = inside ? k[at] : 0;
      vc[t.y][t.x] = inside ? v[at] : 0;
      threadgroup_barrier(mem_flags::mem_threadgroup);

      if (t.x < C) {
        float s = 0;
        if (t.x <= t.y) {
          for (uint d = 0; d < D; ++d) s += qc[t.y][d] * kc[t.x][d];
          s *= exp2(log_gamma * float(t.y - t.x));
        }
        inner[t.y][t.x] = s;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);

      float own = 0, across = 0;
      for (uint j = 0; j <= t.y; ++j) own += inner[t.y][j] * vc[j][t.x];
      for (uint d = 0; d < D; ++d) across += qc[t.y][d] * state[d][t.x];
      if (inside) out[at] = own + across * exp2(log_gamma * float(t.y + 1));

      // Everybody has read the old state; the last chunk may be shorter than C.
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const uint here = min(uint(C), length - chunk);
      for (uint r = t.y; r < D; r += C) {
        float sum = state[r][t.x] * exp2(log_gamma * float(here));
        for (uint j = 0; j < here; ++j) sum += kc[j][r] * vc[j][t.x] * exp2(log_gamma * float(here - 1 - j));
        state[r][t.x] = sum;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint r = t.y; r < D; r += C) last_state[(head * D + r) * D + t.x] = state[r][t.x];
    """,
    template=[("D", 24), ("C", 8)],
    inputs=lambda rng: {
        "q": positive(rng, "float32", 2, 29, 24),
        "k": positive(rng, "float32", 2, 29, 24),
        "v": positive(rng, "float32", 2, 29, 24),
        "log2_decays": np.log2(np.array([0.9, 0.97])).astype(np.float32),
    },
    outputs={"out": ((2, 29, 24), "float32"), "last_state": ((2, 24, 24), "float32")},
    grid=(2 * 24, 8, 1),
    threadgroup=(24, 8, 1),
    tolerance=4e-6,
    constructs="address_spaces.threadgroup_2d_array barriers.in_loop functions.exp2 types.uint2 layouts.few_elements",
)
def retention_over_tiles(q, k, v, log2_decays):
    gamma = np.exp2(log2_decays.astype(np.float64))[:, None, None]
    state, out = np.zeros((2, 24, 24)), np.zeros((2, 29, 24))
    for t in range(29):
        state = gamma * state + k[:, t, :, None].astype(np.float64) * v[:, t, None, :]
        out[:, t] = np.einsum("hd,hde->he", q[:, t], state)
    return out, state
