"""Kernels as users write them: for neural networks, images, simulations, data."""

import itertools

import numpy as np

from bodies import DTYPES, Dtype, body
from bodies.model import Threads, fma, reduce, scan


def _normal(*shape, dtype="float32", scale=1.0):
    return lambda rng: (rng.normal(size=shape) * scale).astype(np.float32).astype(DTYPES[dtype])


def _inputs(**makers):
    return lambda rng: {name: make(rng) if callable(make) else make for name, make in makers.items()}


# ---- Neural networks


@body(
    """
    uint3 at = thread_position_in_grid;
    uint pairs = threads_per_grid.x, positions = threads_per_grid.y;
    uint head = at.z;
    if (at.y >= positions) return;
    float theta = float(at.y + offset) * angles[at.x];
    // The angle's sine and cosine, by their series: theta is small.
    float t2 = theta * theta;
    float s = theta * (1.0 - t2 * (1.0 / 6.0 - t2 / 120.0));
    float c = 1.0 - t2 * (0.5 - t2 * (1.0 / 24.0));
    device const T* in = x + (head * positions + at.y) * 2 * pairs;
    device T* out = y + (head * positions + at.y) * 2 * pairs;
    float first = in[at.x], second = in[at.x + pairs];
    out[at.x] = static_cast<T>(first * c - second * s);
    out[at.x + pairs] = static_cast<T>(first * s + second * c);
    """,
    template=[("T", Dtype("float16"))],
    inputs=_inputs(
        x=_normal(2, 6, 16, dtype="float16"),
        angles=lambda rng: (0.01 / (1 + np.arange(8))).astype(np.float32),
        offset=3,
    ),
    outputs={"y": ((2, 6, 16), "float16")},
    grid=(8, 6, 2),
    threadgroup=(8, 4, 1),
    constructs="structure.static_cast structure.early_return types.half attributes.thread_position_in_grid",
)
def rotary_embedding(x, angles, offset):
    f = np.float32
    theta = (np.arange(6) + offset).astype(f)[:, None] * angles
    t2 = theta * theta
    s = theta * (f(1) - t2 * (f(1) / f(6) - t2 / f(120)))
    c = f(1) - t2 * (f(0.5) - t2 * (f(1) / f(24)))
    first, second = x[..., :8].astype(f), x[..., 8:].astype(f)
    return np.concatenate([first * c - second * s, first * s + second * c], axis=-1).astype(np.float16)


for _dtype in ("float32", "float16", "bfloat16"):

    def _rms_norm(x, weight, eps):
        f = np.float32
        rows = []
        for row in x:
            own = np.zeros(64, f)
            for start in range(0, 150, 64):
                part = row[start : start + 64].astype(f)
                own[: len(part)] += part * part
            lanes = reduce("sum", own.reshape(2, 32), np.ones((2, 32), bool))[:, 0]
            mean = (lanes[0] + lanes[1]) / f(150)
            scale = f(1) / np.sqrt(mean + f(eps))
            rows.append((weight.astype(f) * (row.astype(f) * scale)).astype(x.dtype))
        return np.array(rows)

    body(
        """
    threadgroup float partial[2];
    uint row = threadgroup_position_in_grid.x, t = thread_position_in_threadgroup.x;
    int width = x_shape[1];
    device const T* in = x + row * width;
    float own = 0;
    for (int j = t; j < width; j += 64) {
      float v = in[j];
      own += v * v;
    }
    own = simd_sum(own);
    if (thread_index_in_simdgroup == 0) partial[simdgroup_index_in_threadgroup] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float scale = 1.0 / metal::sqrt((partial[0] + partial[1]) / width + eps);
    for (int j = t; j < width; j += 64) y[row * width + j] = T(float(weight[j]) * (float(in[j]) * scale));
    """,
        name=f"rms_norm_{_dtype}",
        template=[("T", Dtype(_dtype))],
        inputs=_inputs(x=_normal(5, 150, dtype=_dtype), weight=_normal(150, dtype=_dtype), eps=1e-5),
        outputs={"y": ((5, 150), _dtype)},
        grid=(5 * 64, 1, 1),
        threadgroup=(64, 1, 1),
        constructs="simdgroup.sum functions.sqrt structure.template_arguments literals.exponent",
    )(_rms_norm)


@body(
    """
    constexpr int M = 4;
    threadgroup float shared_max[32];
    threadgroup float shared_sum[32];
    uint row = threadgroup_position_in_grid.y;
    uint lid = thread_position_in_threadgroup.x, lane = thread_index_in_simdgroup;
    uint simd_id = simdgroup_index_in_threadgroup;
    float v[M];
    float largest = -INFINITY;
    for (int j = 0; j < M; ++j) {
      uint place = lid * M + j;
      v[j] = place < uint(x_shape[1]) ? float(x[row * x_shape[1] + place]) : -INFINITY;
      largest = max(largest, v[j]);
    }
    largest = simd_max(largest);
    if (simd_id == 0) {
      shared_max[lane] = -INFINITY;
      shared_sum[lane] = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) shared_max[simd_id] = largest;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    largest = simd_max(shared_max[lane]);
    float sum = 0;
    for (int j = 0; j < M; ++j) {
      v[j] = exp(v[j] - largest);
      sum += v[j];
    }
    sum = simd_sum(sum);
    if (lane == 0) shared_sum[simd_id] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(shared_sum[lane]);
    for (int j = 0; j < M; ++j) {
      uint place = lid * M + j;
      if (place < uint(x_shape[1])) y[row * x_shape[1] + place] = v[j] / sum;
    }
    """,
    inputs=_inputs(x=_normal(3, 250, dtype="float16", scale=4)),
    outputs={"y": ((3, 250), "float32")},
    grid=(64, 3, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-6,
    constructs="functions.exp functions.max simdgroup.max simdgroup.sum types.INFINITY structure.dynamic_local_array",
)
def softmax(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@body(
    """
    // Mean and variance in one pass over the row (Welford), merged over the threads of a simdgroup.
    uint row = thread_position_in_grid.y, lane = thread_index_in_simdgroup;
    int width = x_shape[1];
    float mean = 0, m2 = 0, count = 0;
    for (int j = lane; j < width; j += 32) {
      count += 1;
      float delta = x[row * width + j] - mean;
      mean += delta / count;
      m2 += delta * (x[row * width + j] - mean);
    }
    for (ushort distance = 16; distance > 0; distance /= 2) {
      float other_mean = simd_shuffle_xor(mean, distance), other_m2 = simd_shuffle_xor(m2, distance);
      float other_count = simd_shuffle_xor(count, distance);
      float both = count + other_count, delta = other_mean - mean;
      if (both > 0) {
        mean += delta * other_count / both;
        m2 += other_m2 + delta * delta * count * other_count / both;
      }
      count = both;
    }
    float scale = rsqrt(m2 / count + 1e-5);
    for (int j = lane; j < width; j += 32)
      y[row * width + j] = (x[row * width + j] - mean) * scale * weight[j] + bias[j];
    """,
    inputs=lambda rng: {
        "x": (rng.uniform(1, 2, (4, 90)) * np.array([[1], [10], [100], [-5]])).astype(np.float32),
        "weight": rng.uniform(1, 2, 90).astype(np.float32),
        "bias": rng.uniform(20, 21, 90).astype(np.float32),
    },
    outputs={"y": ((4, 90), "float32")},
    grid=(32, 4, 1),
    threadgroup=(32, 1, 1),
    tolerance=3e-6,
    constructs="simdgroup.shuffle_xor functions.rsqrt literals.exponent",
)
def layer_norm(x, weight, bias):
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * weight + bias


@body(
    """
    uint i = thread_position_in_grid.x;
    float v = float(x[i]);
    float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
    out[i] = T(0.5f * v * (1.0f + metal::precise::tanh(inner)));
    """,
    template=[("T", Dtype("bfloat16"))],
    # Below -3, 1 + tanh has hardly any correct digits left.
    inputs=lambda rng: {"x": np.linspace(-3, 8, 200).astype(DTYPES["bfloat16"])},
    outputs={"out": ((200,), "bfloat16")},
    grid=(200, 1, 1),
    threadgroup=(128, 1, 1),
    tolerance=2**-8,
    constructs="functions.tanh types.bfloat16_t structure.template_arguments",
)
def gelu(x):
    v = x.astype(np.float64)
    return 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))


@body(
    """
    // One row of the output per simdgroup; weights of 4 bits, with a scale and a bias for each group of 32.
    constexpr uint group_size = 32;
    uint row = thread_position_in_grid.y, lane = thread_index_in_simdgroup;
    uint columns = x_shape[0];
    device const uint* packed = w + row * columns / 8;
    float total = 0;
    for (uint word = lane; word < columns / 8; word += 32) {
      uint bits = packed[word];
      uint group = row * (columns / group_size) + word * 8 / group_size;
      float scale = scales[group], bias = biases[group];
      float products = 0, plain = 0;
      #pragma unroll
      for (int j = 0; j < 8; ++j) {
        float v = x[word * 8 + j];
        products = fma(v, float((bits >> (4 * j)) & 0xf), products);
        plain += v;
      }
      total += scale * products + bias * plain;
    }
    total = simd_sum(total);
    if (lane == 0) y[row] = total;
    """,
    inputs=lambda rng: {
        "x": rng.normal(size=512).astype(np.float32),
        "w": rng.integers(0, 2**32, (6, 64), np.uint32),
        "scales": rng.normal(size=(6, 16)).astype(np.float16),
        "biases": rng.normal(size=(6, 16)).astype(np.float16),
    },
    outputs={"y": ((6,), "float32")},
    grid=(32, 6, 1),
    threadgroup=(32, 2, 1),
    constructs="functions.fma simdgroup.sum structure.pragma_unroll structure.constexpr",
)
def quantised_matrix_vector(x, w, scales, biases):
    f = np.float32
    rows = []
    for row in range(6):
        total = np.zeros(32, f)
        for first in (0, 32):
            words = np.arange(first, first + 32)
            bits, group = w[row, words], words // 4
            products, plain = np.zeros(32, f), np.zeros(32, f)
            for j in range(8):
                v = x[words * 8 + j]
                products = fma(v, (bits >> np.uint32(4 * j) & np.uint32(15)).astype(f), products)
                plain = plain + v
            total = total + (scales[row, group].astype(f) * products + biases[row, group].astype(f) * plain)
        rows.append(reduce("sum", total[None], np.ones((1, 32), bool))[0, 0])
    return np.array(rows, f)


@body(
    """
    uint i = thread_position_in_grid.x;
    uint2 words = ((device const uint2*)packed)[i];
    half scale = scales[i / 2], zero = zeros[i / 2];
    half4 parts[4];
    for (int j = 0; j < 4; ++j) {
      uint quarter = (j < 2 ? words.x : words.y) >> (16 * (j & 1));
      ushort4 nibbles = ushort4(quarter, quarter >> 4, quarter >> 8, quarter >> 12) & 15;
      parts[j] = (half4(nibbles) - zero) * scale;
    }
    for (int j = 0; j < 4; ++j) ((device half4*)out)[i * 4 + j] = parts[j];
    """,
    inputs=lambda rng: {
        "packed": rng.integers(0, 256, 16 * 8, np.uint8),
        "scales": rng.normal(size=8).astype(np.float16),
        "zeros": rng.integers(0, 16, 8).astype(np.float16),
    },
    outputs={"out": ((256,), "float16")},
    grid=(16, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="types.half4 types.ushort4 types.uint2 address_spaces.cast_to_vector types.vector_arithmetic",
)
def dequantise_four_bits(packed, scales, zeros):
    nibbles = np.stack([packed & 15, packed >> 4], axis=1).reshape(8, 32).astype(np.float16)
    return ((nibbles - zeros[:, None]) * scales[:, None]).reshape(256)


@body(
    """
    // A tile of 8 x 8 of the product, by tiles of 8 x 8 of the factors.
    constexpr int TILE = 8;
    threadgroup float a_tile[TILE][TILE];
    threadgroup float b_tile[TILE][TILE];
    int2 t = int2(thread_position_in_threadgroup.xy);
    int row = threadgroup_position_in_grid.y * TILE + t.y;
    int column = threadgroup_position_in_grid.x * TILE + t.x;
    int m = a_shape[0], k = a_shape[1], n = b_shape[1];
    float total = 0;
    for (int first = 0; first < k; first += TILE) {
      a_tile[t.y][t.x] = row < m && first + t.x < k ? a[row * k + first + t.x] : 0.0;
      b_tile[t.y][t.x] = column < n && first + t.y < k ? b[(first + t.y) * n + column] : 0.0;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int j = 0; j < TILE; ++j) total = fma(a_tile[t.y][j], b_tile[j][t.x], total);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row < m && column < n) c[row * n + column] = total;
    """,
    inputs=_inputs(a=_normal(19, 21), b=_normal(21, 13)),
    outputs={"c": ((19, 13), "float32")},
    grid=(16, 24, 1),
    threadgroup=(8, 8, 1),
    constructs="address_spaces.threadgroup_2d_array functions.fma structure.barrier_in_loop barriers.run_time_trip_count",
)
def matrix_product_by_tiles(a, b):
    total = np.zeros((19, 13), np.float32)
    for k in range(21):
        total = fma(a[:, k : k + 1], b[k : k + 1], total)
    return total


@body(
    """
    // Attention of one query over all keys, with the largest score and the sum kept as it goes.
    constexpr uint D = 32;
    uint query = thread_position_in_grid.y, lane = thread_index_in_simdgroup;
    uint keys = k_shape[0];
    float q_own = q[query * D + lane] * 0.25f;
    float largest = -INFINITY, sum = 0, out = 0;
    for (uint key = 0; key <= query + keys - uint(q_shape[0]); ++key) {
      float score = simd_sum(q_own * k[key * D + lane]);
      float next = max(largest, score);
      float factor = exp(largest - next), weight = exp(score - next);
      sum = sum * factor + weight;
      out = out * factor + weight * v[key * D + lane];
      largest = next;
    }
    o[query * D + lane] = out / sum;
    """,
    inputs=lambda rng: {
        "q": rng.normal(size=(5, 32)).astype(np.float32),
        "k": rng.normal(size=(12, 32)).astype(np.float32),
        "v": rng.uniform(1, 2, (12, 32)).astype(np.float32),
    },
    outputs={"o": ((5, 32), "float32")},
    grid=(32, 5, 1),
    threadgroup=(32, 5, 1),
    tolerance=4e-6,
    constructs="simdgroup.sum functions.exp functions.max types.INFINITY reconvergence.divergent_trip_count",
)
def attention(q, k, v):
    out = []
    for i, query in enumerate(q.astype(np.float64)):
        scores = (k[: i + 8].astype(np.float64) @ query) * 0.25
        weights = np.exp(scores - scores.max())
        out.append(weights @ v[: i + 8] / weights.sum())
    return np.array(out)


@body(
    """
    uint i = thread_position_in_grid.x;
    float g = grad[i], m1 = m[i], v1 = v[i];
    m1 = 0.9 * m1 + (1.0 - 0.9) * g;
    v1 = 0.999 * v1 + (1.0 - 0.999) * g * g;
    m_out[i] = m1;
    v_out[i] = v1;
    p_out[i] = p[i] - rate * m1 / (metal::precise::sqrt(v1) + 1e-8);
    """,
    inputs=lambda rng: {
        **{name: rng.normal(size=100).astype(np.float32) for name in ("p", "grad", "m")},
        "v": rng.uniform(0, 1, 100).astype(np.float32),
        "rate": 0.001,
    },
    outputs={name: ((100,), "float32") for name in ("p_out", "m_out", "v_out")},
    grid=(100, 1, 1),
    threadgroup=(100, 1, 1),
    constructs="functions.sqrt literals.unsuffixed_float literals.exponent",
)
def adam_step(p, grad, m, v, rate):
    f = np.float32
    m = f(0.9) * m + (f(1) - f(0.9)) * grad
    v = f(0.999) * v + (f(1) - f(0.999)) * grad * grad
    return p - f(rate) * m / (np.sqrt(v) + f(1e-8)), m, v


@body(
    """
    // The K largest of each row and where they were, by sorting pairs in threadgroup memory.
    threadgroup float keys[128];
    threadgroup ushort places[128];
    uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup;
    uint width = x_shape[1];
    keys[t] = t < width ? x[row * width + t] : -INFINITY;
    places[t] = ushort(t);
    for (uint span = 2; span <= 128; span <<= 1) {
      for (uint distance = span >> 1; distance > 0; distance >>= 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint other = t ^ distance;
        if (other > t) {
          bool descending = (t & span) == 0;
          bool before = keys[t] > keys[other] || (keys[t] == keys[other] && places[t] < places[other]);
          if (before != descending) {
            float key = keys[t];
            keys[t] = keys[other];
            keys[other] = key;
            ushort place = places[t];
            places[t] = places[other];
            places[other] = place;
          }
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < K) {
      values[row * K + t] = keys[t];
      indices[row * K + t] = places[t];
    }
    """,
    template=[("K", 9)],
    inputs=lambda rng: {"x": rng.integers(-30, 30, (4, 100)).astype(np.float32)},
    outputs={"values": ((4, 9), "float32"), "indices": ((4, 9), "uint32")},
    grid=(4 * 128, 1, 1),
    threadgroup=(128, 1, 1),
    constructs="barriers.sort barriers.nested_loop types.INFINITY structure.template_arguments "
    "address_spaces.threadgroup_small_array",
)
def top_k(x):
    order = np.argsort(-x, axis=1, kind="stable")[:, :9]
    return np.take_along_axis(x, order, axis=1), order.astype(np.uint32)


@body(
    """
    uint lane = thread_index_in_simdgroup, row = threadgroup_position_in_grid.x;
    float best = -INFINITY;
    int place = -1;
    for (int j = lane; j < x_shape[1]; j += 32) {
      float v = x[row * x_shape[1] + j];
      if (v > best) {
        best = v;
        place = j;
      }
    }
    for (ushort distance = 16; distance > 0; distance >>= 1) {
      float other = simd_shuffle_down(best, distance);
      int other_place = simd_shuffle_down(place, distance);
      if (other > best || (other == best && other_place < place)) {
        best = other;
        place = other_place;
      }
    }
    if (lane == 0) out[row] = place;
    """,
    inputs=lambda rng: {"x": rng.integers(-9, 9, (7, 99)).astype(np.float32)},
    outputs={"out": ((7,), "int32")},
    grid=(7 * 32, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="simdgroup.shuffle_down types.INFINITY",
)
def argmax_by_shuffles(x):
    return x.argmax(axis=1).astype(np.int32)


@body(
    """
    uint4 key = uint4(seed, 0, 0, 0);
    uint i = thread_position_in_grid.x;
    uint4 block = philox(uint4(i, 0, 1, 2), uint2(seed, seed + 1));
    float4 uniform = float4(block >> 8) * 0x1p-24f;
    // A dropout mask, scaled.
    float4 kept = select(float4(0), float4(1.0 / 0.75), uniform < 0.75);
    for (int j = 0; j < 4; ++j) {
      bits[4 * i + j] = block[j];
      y[4 * i + j] = x[4 * i + j] * kept[j];
    }
    """.replace("    uint4 key = uint4(seed, 0, 0, 0);\n", ""),
    header="""
// A counter-based generator: ten rounds of multiplications.
inline uint2 multiply_wide(uint a, uint b) {
  ulong product = ulong(a) * b;
  return uint2(uint(product >> 32), uint(product));
}

inline uint4 philox(uint4 counter, uint2 key) {
  for (int j = 0; j < 10; ++j) {
    uint2 p = multiply_wide(0xD2511F53u, counter.x), q = multiply_wide(0xCD9E8D57u, counter.z);
    counter = uint4(q.x ^ counter.y ^ key.x, q.y, p.x ^ counter.w ^ key.y, p.y);
    key += uint2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}
""",
    inputs=_inputs(x=_normal(160), seed=12345),
    outputs={"bits": ((160,), "uint32"), "y": ((160,), "float32")},
    grid=(40, 1, 1),
    threadgroup=(40, 1, 1),
    constructs="types.uint4 types.uint2 types.ulong functions.select types.vector_conversion literals.hexadecimal_float "
    "structure.helper_function",
)
def dropout_with_random_numbers(x, seed):
    blocks = []
    for i in range(40):
        c, key = [i, 0, 1, 2], [seed, seed + 1]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(q >> 32) ^ c[1] ^ key[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ key[1], p & 0xFFFFFFFF]
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        blocks += c
    bits = np.array(blocks, np.uint32)
    uniform = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
    scale = np.float32(1) / np.float32(0.75)
    return bits, x * np.where(uniform < np.float32(0.75), scale, np.float32(0))


# ---- Images


@body(
    """
    int2 p = int2(thread_position_in_grid.xy);
    int width = image_shape[1], height = image_shape[0], channels = image_shape[2];
    float2 where_from = float2(float(p.x) * 0.75f + 0.3f, float(p.y) * 0.5f - 0.4f);
    float2 corner = floor(where_from);
    float2 weight = where_from - corner;
    int2 first = int2(corner);
    for (int c = 0; c < channels; ++c) {
      float taps[2][2];
      for (int dy = 0; dy < 2; ++dy)
        for (int dx = 0; dx < 2; ++dx) {
          int2 at = first + int2(dx, dy);
          bool inside = at.x >= 0 && at.x < width && at.y >= 0 && at.y < height;
          // Read first, masked afterwards.
          float value = image[(at.y * width + at.x) * channels + c];
          taps[dy][dx] = inside ? value : 0;
        }
      float top = taps[0][0] * (1 - weight.x) + taps[0][1] * weight.x;
      float bottom = taps[1][0] * (1 - weight.x) + taps[1][1] * weight.x;
      out[(p.y * int(threads_per_grid.x) + p.x) * channels + c] = top * (1 - weight.y) + bottom * weight.y;
    }
    """,
    inputs=_inputs(image=_normal(9, 12, 3)),
    outputs={"out": ((20, 16, 3), "float32")},
    grid=(16, 20, 1),
    threadgroup=(8, 8, 1),
    constructs="memory.load_outside functions.floor types.float2 types.int2 structure.dynamic_local_array "
    "types.vector_conversion",
)
def bilinear_sampling(image):
    f = np.float32
    y, x = np.mgrid[:20, :16].astype(f)
    x, y = x * f(0.75) + f(0.3), y * f(0.5) - f(0.4)
    x0, y0 = np.floor(x), np.floor(y)
    wx, wy = (x - x0)[..., None], (y - y0)[..., None]
    padded = np.pad(image, ((2, 9), (2, 9), (0, 0)))

    def tap(dy, dx):
        return padded[y0.astype(int) + 2 + dy, x0.astype(int) + 2 + dx]

    top = tap(0, 0) * (1 - wx) + tap(0, 1) * wx
    bottom = tap(1, 0) * (1 - wx) + tap(1, 1) * wx
    return top * (1 - wy) + bottom * wy


@body(
    """
    uint2 at = thread_position_in_grid.xy;
    if (at.x >= 30 || at.y >= 20) return;
    float2 c = float2(at) * float2(3.0 / 30, 2.0 / 20) - float2(2, 1), z = 0;
    uchar count = 0;
    while (count < 60) {
      z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
      if (z.x * z.x + z.y * z.y > 4) break;
      ++count;
    }
    counts[at.y * 30 + at.x] = count;
    """,
    outputs={"counts": ((20, 30), "uint8")},
    grid=(32, 32, 1),
    threadgroup=(32, 4, 1),
    constructs="types.float2 structure.while structure.early_return types.uchar",
)
def mandelbrot():
    f = np.float32
    y, x = np.mgrid[:20, :30].astype(f)
    cx, cy = x * (f(3) / f(30)) - f(2), y * (f(2) / f(20)) - f(1)
    zx, zy = np.zeros_like(cx), np.zeros_like(cx)
    counts, alive = np.zeros((20, 30), np.uint8), np.ones((20, 30), bool)
    for _ in range(60):
        zx, zy = (zx * zx - zy * zy) + cx, f(2) * zx * zy + cy
        alive &= ~(zx * zx + zy * zy > 4)
        counts[alive] += 1
    return counts


@body(
    """
    int2 at = int2(thread_position_in_grid.xy), size = int2(threads_per_grid.xy);
    int neighbours = 0;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        if (dx == 0 && dy == 0) continue;
        int2 p = (at + int2(dx, dy) + size) % size;
        neighbours += cells[p.y * size.x + p.x];
      }
    bool alive = cells[at.y * size.x + at.x];
    next[at.y * size.x + at.x] = neighbours == 3 || (alive && neighbours == 2);
    """,
    inputs=lambda rng: {"cells": rng.integers(0, 2, (17, 23)).astype(bool)},
    outputs={"next": ((17, 23), "bool")},
    grid=(23, 17, 1),
    threadgroup=(8, 8, 1),
    constructs="types.bool types.int2 types.vector_arithmetic",
)
def game_of_life(cells):
    count = sum(
        np.roll(np.roll(cells.astype(int), dy, axis=0), dx, axis=1)
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
        if (dx, dy) != (0, 0)
    )
    return (count == 3) | (cells & (count == 2))


@body(
    """
    uint i = thread_position_in_grid.x;
    uchar4 pixel = ((device const uchar4*)pixels)[i];
    float3 colour = float3(pixel.rgb) / 255.0;
    float grey = dot(colour, float3(0.25, 0.5, 0.25));
    float3 toned = mix(float3(grey), colour, 0.5);
    toned = saturate(toned * float3(1.25, 1.0, 0.75));
    // Up to here all are multiples of 1/32: with this added, none is so near to an integer that a rounding matters.
    ((device uchar4*)out)[i] = uchar4(uchar3(toned * 255.0 + 0.51), pixel.a);
    """,
    inputs=lambda rng: {"pixels": rng.integers(0, 256, (8, 8, 4), np.uint8)},
    outputs={"out": ((8, 8, 4), "uint8")},
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="functions.dot functions.mix functions.saturate types.uchar4 types.uchar3 types.float3 types.rgba",
)
def tone_of_pixels(pixels):
    colour = pixels[..., :3].astype(np.float64) / 255
    grey = colour @ [0.25, 0.5, 0.25]
    toned = np.clip((grey[..., None] + (colour - grey[..., None]) * 0.5) * [1.25, 1, 0.75], 0, 1) * 255 + 0.51
    return np.concatenate([toned.astype(np.uint8), pixels[..., 3:]], axis=-1)


# ---- Simulations


@body(
    """
    threadgroup float4 tile[16];
    uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup;
    uint count = bodies_shape[0];
    float4 own = i < count ? ((device const float4*)bodies)[i] : float4(0);
    float3 acceleration = 0;
    for (uint first = 0; first < count; first += 16) {
      tile[t] = first + t < count ? ((device const float4*)bodies)[first + t] : float4(0);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint j = 0; j < 16; ++j) {
        float3 d = tile[j].xyz - own.xyz;
        float r2 = d.x * d.x + d.y * d.y + d.z * d.z + 0.01;
        float inverse = 1.0 / metal::sqrt(r2);
        acceleration += d * (tile[j].w * inverse * inverse * inverse);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (i >= count) return;
    float3 v = float3(velocities[3 * i], velocities[3 * i + 1], velocities[3 * i + 2]) + acceleration * dt;
    float3 p = own.xyz + v * dt;
    moved[3 * i] = p.x, moved[3 * i + 1] = p.y, moved[3 * i + 2] = p.z;
    """,
    inputs=lambda rng: {
        "bodies": rng.uniform(0.5, 1.5, (37, 4)).astype(np.float32),
        "velocities": rng.normal(size=(37, 3)).astype(np.float32),
        "dt": 0.05,
    },
    outputs={"moved": ((37, 3), "float32")},
    grid=(48, 1, 1),
    threadgroup=(16, 1, 1),
    constructs="types.float3 types.float4 types.swizzle_read functions.sqrt address_spaces.threadgroup_vectors "
    "types.vector_arithmetic structure.barrier_in_loop",
)
def gravity_step(bodies, velocities, dt):
    f = np.float32
    acceleration = np.zeros((37, 3), f)
    padded = np.concatenate([bodies, np.zeros((11, 4), f)])
    for other in padded:
        d = other[:3] - bodies[:, :3]
        r2 = d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1] + d[:, 2] * d[:, 2] + f(0.01)
        inverse = f(1) / np.sqrt(r2)
        acceleration = acceleration + d * (other[3] * inverse * inverse * inverse)[:, None]
    return bodies[:, :3] + (velocities + acceleration * f(dt)) * f(dt)


@body(
    """
    // A wave on a grid, several steps in one launch of one threadgroup.
    threadgroup float now[14][14];
    threadgroup float before[14][14];
    uint2 t = thread_position_in_threadgroup.xy;
    bool edge = t.x == 0 || t.y == 0 || t.x == 13 || t.y == 13;
    now[t.y][t.x] = start[t.y * 14 + t.x];
    before[t.y][t.x] = now[t.y][t.x];
    for (int step = 0; step < STEPS; ++step) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float next = now[t.y][t.x];
      if (!edge) {
        float sum = now[t.y][t.x - 1] + now[t.y][t.x + 1] + now[t.y - 1][t.x] + now[t.y + 1][t.x];
        next = 2 * next - before[t.y][t.x] + 0.25 * (sum - 4 * next);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      before[t.y][t.x] = now[t.y][t.x];
      now[t.y][t.x] = next;
    }
    out[t.y * 14 + t.x] = now[t.y][t.x];
    """,
    template=[("STEPS", 5)],
    inputs=_inputs(start=_normal(14, 14)),
    outputs={"out": ((14, 14), "float32")},
    grid=(14, 14, 1),
    threadgroup=(14, 14, 1),
    constructs="barriers.in_loop address_spaces.threadgroup_2d_array structure.template_arguments",
)
def wave_steps(start):
    f = np.float32
    now, before = start.copy(), start.copy()
    for _ in range(5):
        sums = now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1]
        centre = now[1:-1, 1:-1]
        following = now.copy()
        following[1:-1, 1:-1] = f(2) * centre - before[1:-1, 1:-1] + f(0.25) * (sums - f(4) * centre)
        before, now = now, following
    return now


@body(
    """
    // A transform of 64 complex numbers in threadgroup memory; the factors come with the call.
    threadgroup float2 line[64];
    uint t = thread_index_in_threadgroup, row = threadgroup_position_in_grid.x;
    device const complex64_t* in = x + row * 64;
    for (uint j = t; j < 64; j += 32) {
      uint reversed = 0;
      for (uint bit = 0; bit < 6; ++bit) reversed |= ((j >> bit) & 1) << (5 - bit);
      line[reversed] = float2(in[j].real, in[j].imag);
    }
    for (uint half_span = 1; half_span < 64; half_span *= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint place = t & (half_span - 1);
      uint i = 2 * (t - place) + place;
      complex64_t w = factors[place * (32 / half_span)];
      float2 a = line[i], b = line[i + half_span];
      float2 turned(b.x * w.real - b.y * w.imag, b.x * w.imag + b.y * w.real);
      line[i] = a + turned;
      line[i + half_span] = a - turned;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = t; j < 64; j += 32) y[row * 64 + j] = complex64_t(line[j].x, line[j].y);
    """,
    inputs=lambda rng: {
        "x": (rng.normal(size=(3, 64)) + 1j * rng.normal(size=(3, 64))).astype(np.complex64),
        "factors": np.exp(-2j * np.pi * np.arange(32) / 64).astype(np.complex64),
    },
    outputs={"y": ((3, 64), "complex64")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="types.complex64_t types.float2 address_spaces.threadgroup_vectors barriers.in_loop",
)
def fourier_transform(x, factors):
    reversed_bits = [int(f"{j:06b}"[::-1], 2) for j in range(64)]
    real, imag = np.empty((3, 64), np.float32), np.empty((3, 64), np.float32)
    real[:, reversed_bits], imag[:, reversed_bits] = x.real, x.imag
    span = 1
    while span < 64:
        for t in range(32):
            place = t % span
            i = 2 * (t - place) + place
            w = factors[place * (32 // span)]
            ar, ai, br, bi = real[:, i].copy(), imag[:, i].copy(), real[:, i + span].copy(), imag[:, i + span].copy()
            tr, ti = br * w.real - bi * w.imag, br * w.imag + bi * w.real
            real[:, i], imag[:, i], real[:, i + span], imag[:, i + span] = ar + tr, ai + ti, ar - tr, ai - ti
        span *= 2
    return real + 1j * imag


# ---- Data


@body(
    """
    threadgroup uint totals[32];
    uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup;
    uint value = i < uint(x_shape[0]) ? x[i] : 0;
    uint before = simd_prefix_exclusive_sum(value);
    if (lane == 31) totals[simdgroup_index_in_threadgroup] = before + value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index_in_threadgroup == 0) totals[lane] = simd_prefix_exclusive_sum(totals[lane]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < uint(x_shape[0])) y[i] = before + totals[simdgroup_index_in_threadgroup];
    """,
    inputs=lambda rng: {"x": rng.integers(0, 1000, 777, np.uint32)},
    outputs={"y": ((777,), "uint32")},
    grid=(1024, 1, 1),
    threadgroup=(1024, 1, 1),
    constructs="simdgroup.prefix_exclusive_sum address_spaces.threadgroup_array attributes.thread_index_in_simdgroup",
)
def prefix_sum_of_a_threadgroup(x):
    return (np.cumsum(x) - x).astype(np.uint32)


@body(
    """
    uint i = thread_position_in_grid.x;
    device const uchar* text = texts + i * 20;
    uint length = lengths[i];
    uint h = 0x9747b28c;
    uint at = 0;
    for (; at + 4 <= length; at += 4) {
      uint k = *(device const uint*)(text + at);
      k *= 0xcc9e2d51;
      k = rotl(k, 15) * 0x1b873593u;
      h = rotl(h ^ k, 13) * 5 + 0xe6546b64;
    }
    uint rest = 0;
    switch (length & 3) {
      case 3: rest ^= uint(text[at + 2]) << 16;
      case 2: rest ^= uint(text[at + 1]) << 8;
      case 1:
        rest ^= text[at];
        h ^= rotl(rest * 0xcc9e2d51u, 15) * 0x1b873593u;
    }
    h ^= length;
    h = (h ^ (h >> 16)) * 0x85ebca6b;
    h = (h ^ (h >> 13)) * 0xc2b2ae35;
    hashes[i] = h ^ (h >> 16);
    """,
    header="static inline uint rotl(uint x, int by) { return (x << by) | (x >> (32 - by)); }",
    inputs=lambda rng: {
        "texts": rng.integers(0, 256, (21, 20), np.uint8),
        "lengths": (np.arange(21) % 21).astype(np.uint16),
    },
    outputs={"hashes": ((21,), "uint32")},
    grid=(21, 1, 1),
    threadgroup=(7, 1, 1),
    constructs="structure.switch address_spaces.device_pointer_arithmetic structure.c_cast literals.integer",
)
def murmur_hash(texts, lengths):
    def rotl(v, by):
        return (v << by | v >> 32 - by) & 0xFFFFFFFF

    def one(data):
        h = 0x9747B28C
        whole = len(data) // 4 * 4
        for at in range(0, whole, 4):
            k = int.from_bytes(data[at : at + 4], "little") * 0xCC9E2D51 & 0xFFFFFFFF
            h = (rotl(h ^ (rotl(k, 15) * 0x1B873593 & 0xFFFFFFFF), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
        if data[whole:]:
            k = int.from_bytes(data[whole:], "little") * 0xCC9E2D51 & 0xFFFFFFFF
            h ^= rotl(k, 15) * 0x1B873593 & 0xFFFFFFFF
        h ^= len(data)
        h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        return h ^ h >> 16

    return np.array([one(text[:n].tobytes()) for text, n in zip(texts, lengths, strict=True)], np.uint32)


@body(
    """
    uint row = thread_position_in_grid.x / 32, lane = thread_index_in_simdgroup;
    if (row >= uint(starts_shape[0] - 1)) return;
    float total = 0;
    for (int j = starts[row] + lane; j < starts[row + 1]; j += 32) total += values[j] * x[columns[j]];
    total = simd_sum(total);
    if (simd_is_first()) y[row] = total;
    """,
    inputs=lambda rng: {
        "starts": np.array([0, 3, 3, 90, 130, 131], np.int32),
        "columns": rng.integers(0, 40, 131, np.int32),
        "values": rng.integers(-9, 9, 131).astype(np.float32),
        "x": rng.integers(-9, 9, 40).astype(np.float32),
    },
    outputs={"y": ((5,), "float32")},
    grid=(192, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.sum simdgroup.is_first structure.return_before_simd reconvergence.divergent_trip_count",
)
def sparse_matrix_vector(starts, columns, values, x):
    return np.array([(values[a:b] * x[columns[a:b]]).sum() for a, b in itertools.pairwise(starts)], np.float32)


@body(
    """
    uint i = thread_position_in_grid.x;
    int4 own = int4(0);
    // Gathers rows, then scatters them with a sum.
    int from = sources[i];
    for (int j = 0; j < 4; ++j) own[j] = table[from * 4 + j];
    gathered[4 * i] = own.x; gathered[4 * i + 1] = own.y; gathered[4 * i + 2] = own.z; gathered[4 * i + 3] = own.w;
    for (int j = 0; j < 4; ++j)
      atomic_fetch_add_explicit((device atomic_int*)&sums[targets[i] * 4 + j], own[j], memory_order_relaxed);
    """,
    inputs=lambda rng: {
        "table": rng.integers(-99, 99, (12, 4), np.int32),
        "sources": rng.integers(0, 12, 50, np.int32),
        "targets": rng.integers(0, 6, 50, np.uint8),
    },
    outputs={"gathered": ((50, 4), "int32"), "sums": ((6, 4), "int32")},
    grid=(50, 1, 1),
    threadgroup=(25, 1, 1),
    init_value=0,
    constructs="types.int4 types.component_index synchronisation.fetch_add address_spaces.cast_to_atomic",
)
def gather_and_scatter(table, sources, targets):
    gathered, sums = table[sources], np.zeros((6, 4), np.int32)
    np.add.at(sums, targets, gathered)
    return gathered, sums


@body(
    """
    // One digit of a radix sort of 64 numbers for each step: stable, by ballots.
    threadgroup uint keys[64];
    threadgroup uint counts[2];
    uint t = thread_index_in_threadgroup, group = simdgroup_index_in_threadgroup, lane = thread_index_in_simdgroup;
    uint key = x[thread_position_in_grid.x];
    for (uint bit = 0; bit < 12; ++bit) {
      bool one = (key >> bit) & 1;
      uint ones = uint(simd_vote::vote_t(simd_ballot(one)));
      uint below = ones & ((1u << lane) - 1);
      uint ones_before = 0, scratch = below;
      for (; scratch; scratch &= scratch - 1) ++ones_before;
      uint total = 0;
      for (scratch = ones; scratch; scratch &= scratch - 1) ++total;
      if (lane == 0) counts[group] = total;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      uint zeros = 64 - counts[0] - counts[1];
      uint first_ones = group == 0 ? 0 : counts[0];
      uint place = one ? zeros + first_ones + ones_before : 32 * group - first_ones + lane - ones_before;
      keys[place] = key;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      key = keys[t];
    }
    y[thread_position_in_grid.x] = key;
    """,
    inputs=lambda rng: {"x": rng.integers(0, 4096, 128, np.uint32)},
    outputs={"y": ((128,), "uint32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    constructs="simdgroup.ballot simdgroup.vote barriers.in_loop barriers.sort",
)
def radix_sort(x):
    return np.sort(x.reshape(2, 64), axis=1).reshape(128)


@body(
    """
    // Sums of runs of equal keys, added up within a simdgroup before they go to memory.
    uint i = thread_position_in_grid.x;
    ushort lane = thread_index_in_simdgroup;
    int key = keys[i], value = values[i];
    for (ushort distance = 1; distance < 32; distance *= 2) {
      int other_value = simd_shuffle_up(value, distance), other_key = simd_shuffle_up(key, distance);
      if (lane >= distance && other_key == key) value += other_value;
    }
    int next = simd_shuffle_down(key, 1);
    if (lane == 31 || next != key) atomic_fetch_add_explicit(&sums[key], value, memory_order_relaxed);
    """,
    inputs=lambda rng: {
        "keys": np.sort(rng.integers(0, 20, 128, np.int32)),
        "values": rng.integers(-99, 99, 128, np.int32),
    },
    outputs={"sums": ((20,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(64, 1, 1),
    atomic_outputs=True,
    init_value=0,
    constructs="simdgroup.shuffle_up simdgroup.shuffle_down synchronisation.fetch_add launch.atomic_outputs",
)
def sums_by_key(keys, values):
    sums = np.zeros(20, np.int32)
    np.add.at(sums, keys, values)
    return sums


@body(
    """
    uint i = thread_position_in_grid.x;
    float2 p = float2(points[2 * i], points[2 * i + 1]);
    float best = FLT_MAX;
    int nearest = -1;
    for (int c = 0; c < centres_shape[0]; ++c) {
      float2 d = p - float2(centres[2 * c], centres[2 * c + 1]);
      float distance2 = d.x * d.x + d.y * d.y;
      if (distance2 < best) best = distance2, nearest = c;
    }
    assignment[i] = nearest;
    atomic_fetch_add_explicit((device atomic_int*)counts + nearest, 1, memory_order_relaxed);
    """,
    inputs=_inputs(points=_normal(90, 2), centres=_normal(5, 2)),
    outputs={"assignment": ((90,), "int32"), "counts": ((5,), "int32")},
    grid=(90, 1, 1),
    threadgroup=(32, 1, 1),
    init_value=0,
    constructs="types.FLT_constants types.float2 address_spaces.cast_to_atomic address_spaces.device_pointer_arithmetic",
)
def nearest_centres(points, centres):
    d = points[:, None] - centres[None]
    nearest = (d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]).argmin(axis=1)
    return nearest.astype(np.int32), np.bincount(nearest, minlength=5).astype(np.int32)


@body(
    """
    // Edit distance of two words by diagonals, one thread for each letter of the first.
    threadgroup int rows[3][33];
    int t = thread_index_in_threadgroup, group = threadgroup_position_in_grid.x;
    constexpr int N = 32;
    device const uchar* a = first + group * N;
    device const uchar* b = second + group * N;
    int current = 0;
    for (int diagonal = 0; diagonal <= 2 * N; ++diagonal) {
      threadgroup int* now = rows[current];
      threadgroup int* last = rows[(current + 2) % 3];
      threadgroup int* before = rows[(current + 1) % 3];
      for (int i = t; i <= N; i += N) {
        int j = diagonal - i;
        if (j < 0 || j > N) continue;
        if (i == 0 || j == 0)
          now[i] = i + j;
        else
          now[i] = min(min(last[i - 1], last[i]) + 1, before[i - 1] + (a[i - 1] != b[j - 1]));
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      current = (current + 1) % 3;
    }
    if (t == 0) distances[group] = rows[(current + 2) % 3][N];
    """,
    inputs=lambda rng: {key: rng.integers(0, 3, (4, 32), np.uint8) for key in ("first", "second")},
    outputs={"distances": ((4,), "int32")},
    grid=(128, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="address_spaces.threadgroup_2d_array barriers.in_loop barriers.with_continue functions.min",
)
def edit_distances(first, second):
    out = []
    for a, b in zip(first, second, strict=True):
        row = list(range(33))
        for i, letter in enumerate(a, 1):
            above, row = row, [i]
            for j, other in enumerate(b, 1):
                row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + int(letter != other)))
        out.append(row[-1])
    return np.array(out, np.int32)


@body(
    """
    // y[t] = a[t] y[t - 1] + x[t], as a scan of pairs over the lanes, chunk by chunk.
    uint row = threadgroup_position_in_grid.x;
    ushort lane = thread_index_in_simdgroup;
    int length = x_shape[1];
    float carried = 0;
    for (int first = 0; first < length; first += 32) {
      int place = row * length + first + lane;
      float factor = a[place], value = x[place];
      for (ushort distance = 1; distance < 32; distance <<= 1) {
        float other_factor = simd_shuffle_up(factor, distance), other_value = simd_shuffle_up(value, distance);
        if (lane >= distance) {
          value = other_value * factor + value;
          factor *= other_factor;
        }
      }
      value += factor * carried;
      y[place] = value;
      carried = simd_broadcast(value, 31);
    }
    """,
    inputs=lambda rng: {
        "a": rng.integers(-1, 2, (3, 96)).astype(np.float32),
        "x": rng.integers(-9, 9, (3, 96)).astype(np.float32),
    },
    outputs={"y": ((3, 96), "float32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    constructs="simdgroup.shuffle_up simdgroup.broadcast",
)
def linear_recurrence(a, x):
    y, state = np.zeros_like(x), np.zeros(3, np.float32)
    for t in range(96):
        state = a[:, t] * state + x[:, t]
        # Small integers; a zero's sign depends on the order of the products.
        y[:, t] = state
    return y


@body(
    """
    uint i = thread_position_in_grid.x;
    ushort lane = thread_index_in_simdgroup;
    half total = simd_prefix_inclusive_sum(x[i]);
    half largest = simd_max(x[i]), smallest = simd_min(x[i]);
    out[3 * i] = total;
    out[3 * i + 1] = simd_broadcast(total, 31) - total;
    out[3 * i + 2] = largest == smallest ? half(0) : (x[i] - smallest) / (largest - smallest);
    """,
    inputs=_inputs(x=_normal(96, dtype="float16")),
    outputs={"out": ((96, 3), "float16")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    constructs="simdgroup.prefix_inclusive_sum simdgroup.max simdgroup.min simdgroup.broadcast types.half",
)
def scaled_to_unit_range(x):
    threads = Threads((96, 1, 1), (96, 1, 1))
    v = threads.read(x)
    total = scan("sum", v, threads.live, False)
    low, high = reduce("min", v, threads.live), reduce("max", v, threads.live)
    columns = [total, total[..., 31:] - total, (v - low) / (high - low)]
    return np.stack([threads.write(column) for column in columns], axis=1)


@body(
    """
    // A convolution with its filter in threadgroup memory; all sizes are template arguments.
    threadgroup float taps[C_IN * KERNEL];
    uint t = thread_index_in_threadgroup;
    uint channel = thread_position_in_grid.y, place = thread_position_in_grid.x;
    for (uint j = t; j < C_IN * KERNEL; j += threads_per_threadgroup.x)
      taps[j] = w[channel * C_IN * KERNEL + j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = BIAS ? bias[channel] : 0;
    MLX_MTL_PRAGMA_UNROLL
    for (int c = 0; c < C_IN; ++c) {
      MLX_MTL_PRAGMA_UNROLL
      for (int k = 0; k < KERNEL; ++k) {
        int from = int(place) * STRIDE + k - KERNEL / 2;
        if (from >= 0 && from < x_shape[1]) total += x[c * x_shape[1] + from] * taps[c * KERNEL + k];
      }
    }
    y[channel * threads_per_grid.x + place] = total;
    """,
    template=[("C_IN", 3), ("KERNEL", 5), ("STRIDE", 2), ("BIAS", True)],
    inputs=_inputs(x=_normal(3, 40), w=_normal(4, 3, 5), bias=_normal(4)),
    outputs={"y": ((4, 20), "float32")},
    grid=(20, 4, 1),
    threadgroup=(10, 1, 1),
    constructs="structure.template_arguments mlx.MLX_MTL_PRAGMA_UNROLL address_spaces.threadgroup_array",
)
def convolution(x, w, bias):
    padded = np.pad(x, ((0, 0), (2, 2)))
    inside = np.pad(np.ones(40, bool), 2)
    total = np.repeat(bias[:, None], 20, axis=1)
    for c in range(3):
        for k in range(5):
            places = np.arange(20) * 2 + k
            term = total + padded[c, places] * w[:, c, k : k + 1]
            total = np.where(inside[places], term, total)
    return total
