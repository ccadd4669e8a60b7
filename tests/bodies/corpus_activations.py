"""Activations with gates and without, their gradients, and the losses at the end of a model."""

import math

import numpy as np

from bodies import DTYPES, Dtype, body

_erf = np.vectorize(math.erf, otypes=[np.float64])

_ACTIVATIONS_HEADER = """
// Every activation once, with its derivative; a macro makes the functions, the switch and the numbers from the list. The
// derivative's expression may use the value y.

#define ACTIVATIONS(DO)                                                                                           \\
  DO(relu, max(x, 0.0f), x > 0 ? 1.0f : 0.0f)                                                                     \\
  DO(relu_squared, x > 0 ? x * x : 0.0f, x > 0 ? 2.0f * x : 0.0f)                                                 \\
  DO(relu_six, clamp(x, 0.0f, 6.0f), (x > 0 && x < 6) ? 1.0f : 0.0f)                                              \\
  DO(leaky_relu, x > 0 ? x : a * x, x > 0 ? 1.0f : a)                                                             \\
  DO(elu, x > 0 ? x : a * expm1(x), x > 0 ? 1.0f : y + a)                                                         \\
  DO(selu, SELU_SCALE * (x > 0 ? x : SELU_ALPHA * expm1(x)), x > 0 ? SELU_SCALE : y + SELU_SCALE * SELU_ALPHA)     \\
  DO(celu, x > 0 ? x : a * expm1(x / a), x > 0 ? 1.0f : y / a + 1.0f)                                             \\
  DO(sigmoid, sigmoid_of(x), y * (1.0f - y))                                                                      \\
  DO(log_sigmoid, -softplus_of(-x), sigmoid_of(-x))                                                               \\
  DO(silu, x * sigmoid_of(x), sigmoid_of(x) * (1.0f + x * sigmoid_of(-x)))                                        \\
  DO(quick_gelu, x * sigmoid_of(1.702f * x), gradient_of_scaled_silu(x, 1.702f))                                  \\
  DO(gelu, x * normal_below(x), normal_below(x) + x * normal_density(x))                                          \\
  DO(gelu_tanh, 0.5f * x * (1.0f + precise::tanh(cubic(x))), gradient_of_gelu_tanh(x))                            \\
  DO(softplus, softplus_of(x), sigmoid_of(x))                                                                     \\
  DO(softsign, x / (1.0f + abs(x)), 1.0f / ((1.0f + abs(x)) * (1.0f + abs(x))))                                   \\
  DO(mish, x * precise::tanh(softplus_of(x)), gradient_of_mish(x))                                                \\
  DO(hard_sigmoid, saturate(x / 6.0f + 0.5f), abs(x) < 3 ? 1.0f / 6.0f : 0.0f)                                    \\
  DO(hard_swish, x * saturate(x / 6.0f + 0.5f), x <= -3 ? 0.0f : x >= 3 ? 1.0f : x / 3.0f + 0.5f)                 \\
  DO(hard_shrink, abs(x) > a ? x : 0.0f, abs(x) > a ? 1.0f : 0.0f)                                                \\
  DO(soft_shrink, sign(x) * max(abs(x) - a, 0.0f), abs(x) > a ? 1.0f : 0.0f)                                      \\
  DO(tanh_shrink, x - precise::tanh(x), square(precise::tanh(x)))                                                 \\
  DO(gaussian, exp(-x * x), -2.0f * x * y)                                                                        \\
  DO(snake, x + square(sin(a * x)) / a, 1.0f + sin(2.0f * a * x))

constant constexpr float SELU_ALPHA = 1.6732632423543772f;
constant constexpr float SELU_SCALE = 1.0507009873554805f;

METAL_FUNC float square(float x) { return x * x; }

// exp of what is not positive only, so that nothing overflows.
METAL_FUNC float sigmoid_of(float x) {
  const float e = precise::exp(-abs(x));
  return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

METAL_FUNC float softplus_of(float x) { return max(x, 0.0f) + log1p(precise::exp(-abs(x))); }

METAL_FUNC float normal_below(float x) { return 0.5f * (1.0f + erf(x * M_SQRT1_2_F)); }

METAL_FUNC float normal_density(float x) { return 0.3989422804f * precise::exp(-0.5f * x * x); }

METAL_FUNC float cubic(float x) { return 0.7978845608f * (x + 0.044715f * x * x * x); }

METAL_FUNC float gradient_of_gelu_tanh(float x) {
  const float t = precise::tanh(cubic(x));
  const float slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope;
}

METAL_FUNC float gradient_of_scaled_silu(float x, float by) {
  const float s = sigmoid_of(by * x);
  return s + by * x * s * (1.0f - s);
}

METAL_FUNC float gradient_of_mish(float x) {
  const float t = precise::tanh(softplus_of(x));
  return t + x * sigmoid_of(x) * (1.0f - t * t);
}

#define NUMBER(NAME, VALUE, SLOPE) kind_##NAME,
enum Kind : int { ACTIVATIONS(NUMBER) kind_count };
#undef NUMBER

#define FUNCTION(NAME, VALUE, SLOPE)                          \\
  METAL_FUNC float2 value_and_slope_of_##NAME(float x, float a) { \\
    const float y = (VALUE);                                  \\
    return float2(y, (SLOPE));                                \\
  }
ACTIVATIONS(FUNCTION)
#undef FUNCTION

METAL_FUNC float2 value_and_slope(int kind, float x, float a) {
#define CASE(NAME, VALUE, SLOPE) \\
  case kind_##NAME:              \\
    return value_and_slope_of_##NAME(x, a);
  switch (kind) {
    ACTIVATIONS(CASE)
    default:
      return float2(x, 1.0f);
  }
#undef CASE
}
"""


def _activations(x, parameter, gradient):
    x, a = x.astype(np.float64), float(parameter)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    softplus = lambda v: np.logaddexp(v, 0)  # noqa: E731
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    below, density = 0.5 * (1 + _erf(x / math.sqrt(2))), np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    inner = 0.7978845608 * (x + 0.044715 * x**3)
    mish = np.tanh(softplus(x))
    quick = sigmoid(1.702 * x)
    hard = np.clip(x / 6 + 0.5, 0, 1)
    one, zero = np.ones_like(x), np.zeros_like(x)
    up = x > 0
    table = [
        (np.maximum(x, 0), up * one),
        (np.where(up, x * x, 0), np.where(up, 2 * x, 0)),
        (np.clip(x, 0, 6), (up & (x < 6)) * one),
        (np.where(up, x, a * x), np.where(up, 1, a)),
        (np.where(up, x, a * np.expm1(x)), np.where(up, 1, a * np.exp(x))),
        (scale * np.where(up, x, alpha * np.expm1(x)), scale * np.where(up, 1, alpha * np.exp(x))),
        (np.where(up, x, a * np.expm1(x / a)), np.where(up, 1, np.exp(x / a))),
        (sigmoid(x), sigmoid(x) * sigmoid(-x)),
        (-softplus(-x), sigmoid(-x)),
        (x * sigmoid(x), sigmoid(x) * (1 + x * sigmoid(-x))),
        (x * quick, quick + 1.702 * x * quick * (1 - quick)),
        (x * below, below + x * density),
        (
            0.5 * x * (1 + np.tanh(inner)),
            0.5 * (1 + np.tanh(inner))
            + 0.5 * x * (1 - np.tanh(inner) ** 2) * 0.7978845608 * (1 + 3 * 0.044715 * x * x),
        ),
        (softplus(x), sigmoid(x)),
        (x / (1 + np.abs(x)), 1 / (1 + np.abs(x)) ** 2),
        (x * mish, mish + x * sigmoid(x) * (1 - mish**2)),
        (hard, np.where(np.abs(x) < 3, 1 / 6, 0)),
        (x * hard, np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5))),
        (np.where(np.abs(x) > a, x, 0), (np.abs(x) > a) * one),
        (np.sign(x) * np.maximum(np.abs(x) - a, 0), (np.abs(x) > a) * one),
        (x - np.tanh(x), np.tanh(x) ** 2),
        (np.exp(-x * x), -2 * x * np.exp(-x * x)),
        (x + np.sin(a * x) ** 2 / a, 1 + np.sin(2 * a * x)),
        (x, one + zero),
    ]
    values = np.stack([table[i][0][i] for i in range(24)])
    slopes = np.stack([table[i][1][i] for i in range(24)])
    return values, slopes * gradient


@body(
    """
    // The row's number says which activation; behind the last of them the identity.
    const uint2 at = thread_position_in_grid.xy;
    const uint i = at.y * threads_per_grid.x + at.x;
    const float2 both = value_and_slope(int(at.y), x[i], parameter);
    y[i] = T(both.x);
    dx[i] = T(both.y * gradient[i]);
    """,
    header=_ACTIVATIONS_HEADER,
    template=[("T", Dtype("float32"))],
    # Where no gradient is near its zero, and no sum cancels: from the left of the bends, and from the right.
    inputs=lambda rng: {
        "x": np.concatenate(
            [rng.uniform(-0.55, -0.4, (24, 20)), rng.uniform(0.4, 2.5, (24, 20)), rng.uniform(3.5, 7, (24, 9))], axis=1
        ).astype(np.float32),
        "parameter": 0.3,
        "gradient": rng.uniform(0.5, 2, (24, 49)).astype(np.float32),
    },
    outputs={"y": ((24, 49), "float32"), "dx": ((24, 49), "float32")},
    grid=(49, 24, 1),
    threadgroup=(16, 4, 1),
    tolerance=1e-4,
    constructs="structure.multi_line_macro_in_header structure.token_pasting structure.switch mlx.METAL_FUNC mlx.erf "
    "mlx.expm1 functions.log1p functions.precise functions.sign functions.saturate functions.clamp types.M_constants "
    "address_spaces.constant_scalar launch.edge_threadgroups",
)
def activations_and_their_gradients(x, parameter, gradient):
    return _activations(x, parameter, gradient)


@body(
    """
    // Gate and up are halves of one row, as a fused projection leaves them; so are their gradients. The forward value
    // comes again, for the gradient of the product behind it.
    const uint i = thread_position_in_grid.x;
    const uint inner = gate_up_shape[1] / 2;
    const uint row = i * 2 / inner, column = i * 2 % inner;
    const device vec<T, 2>* gates = (const device vec<T, 2>*)(gate_up + row * 2 * inner + column);
    const device vec<T, 2>* ups = (const device vec<T, 2>*)(gate_up + row * 2 * inner + inner + column);
    const float2 g = float2(*gates), u = float2(*ups);
    const float2 d = float2(((const device vec<T, 2>*)dy)[i]);
    const float2 s = 1 / (1 + exp(-g));
    const float2 silu = g * s;
    ((device vec<T, 2>*)h)[i] = vec<T, 2>(silu * u);
    *(device vec<T, 2>*)(d_gate_up + row * 2 * inner + column) = vec<T, 2>(d * u * (s + silu * (1 - s)));
    *(device vec<T, 2>*)(d_gate_up + row * 2 * inner + inner + column) = vec<T, 2>(d * silu);
    """,
    template=[("T", Dtype("bfloat16"))],
    inputs=lambda rng: {
        "gate_up": (rng.choice([-1, 1], (6, 52)) * rng.uniform(0.25, 1.1, (6, 52))).astype(DTYPES["bfloat16"]),
        "dy": rng.uniform(0.5, 2, (6, 26)).astype(DTYPES["bfloat16"]),
    },
    outputs={"h": ((6, 26), "bfloat16"), "d_gate_up": ((6, 52), "bfloat16")},
    grid=(78, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=4.5e-3,
    constructs="types.vec types.float2 types.vector_conversion address_spaces.cast_to_vector functions.exp",
)
def swiglu_and_its_gradients(gate_up, dy):
    g, u = gate_up[:, :26].astype(np.float64), gate_up[:, 26:].astype(np.float64)
    s, d = 1 / (1 + np.exp(-g)), dy.astype(np.float64)
    return g * s * u, np.concatenate([d * u * s * (1 + g * (1 - s)), d * g * s], axis=1)


@body(
    """
    // Gate and up alternate; both have limits, and a bias that depends on the row's expert. The result goes out in bytes
    // with one power of two for each 32 of them, the largest that still fits.
    const uint lane = thread_index_in_simdgroup;
    const uint row = thread_position_in_grid.y, block = thread_position_in_grid.x / 32;
    const uint width = x_shape[1] / 2, c = block * 32 + lane;
    const device half2* pairs = (const device half2*)x;
    const device float2* biases = (const device float2*)bias;
    float2 p = float2(pairs[row * width + c]) + biases[experts[row] * width + c];
    float gate = min(p.x, LIMIT), up = clamp(p.y, -LIMIT, LIMIT);
    float v = gate / (1 + exp(-ALPHA * gate)) * (up + 1);

    // 2^e with |v| <= 127 * 2^e for all 32.
    float largest = simd_max(fabs(v));
    int e;
    frexp(largest / 127.0f, e);
    e = largest == 0 ? 0 : e;
    y[row * width + c] = int8_t(rint(ldexp(v, -e)));
    if (lane == 0) exponents[row * (width / 32) + block] = int8_t(e);
    """,
    header="""
constant float LIMIT = 7.0f;
#define ALPHA 1.702f
""",
    # The seed's values are not near halves.
    inputs=lambda rng: {
        "x": (rng.normal(size=(5, 128)) * 4).astype(np.float16),
        "bias": rng.normal(size=(3, 128)).astype(np.float32),
        "experts": np.array([2, 0, 0, 1, 2], np.uint8),
    },
    outputs={"y": ((5, 64), "int8"), "exponents": ((5, 2), "int8")},
    grid=(64, 5, 1),
    threadgroup=(32, 5, 1),
    constructs="functions.frexp functions.ldexp functions.rint functions.fabs functions.clamp types.int8_t types.half2 "
    "address_spaces.constant_scalar simdgroup.max structure.define_in_header layouts.few_elements",
)
def limited_swiglu_to_bytes(x, bias, experts):
    p = x.astype(np.float64).reshape(5, 64, 2) + bias.reshape(3, 64, 2)[experts]
    gate, up = np.minimum(p[..., 0], 7), np.clip(p[..., 1], -7, 7)
    v = (gate / (1 + np.exp(-1.702 * gate)) * (up + 1)).reshape(5, 2, 32)
    exponents = np.frexp(np.abs(v).max(axis=-1) / 127)[1]
    return np.rint(v * 2.0 ** -exponents[..., None]).reshape(5, 64).astype(np.int8), exponents.astype(np.int8)


@body(
    """
    // Bias, GELU, dropout and the residual in one. The mask comes from a counter, four elements to a hash, and is kept as
    // bits for the way back.
    const uint i = thread_position_in_grid.x;
    const uint columns = x_shape[1] / 4;
    const float4 b = ((const device float4*)bias)[i % columns];
    const float4 v = ((const device float4*)x)[i] + b;
    float4 g;
    for (int j = 0; j < 4; ++j) g[j] = 0.5f * v[j] * (1.0f + erf(v[j] * 0.70710678f));
    // Rounds of additions, rotations and exclusive ors.
    uint4 s = uint4(i, seed, 0x9e3779b9u, ~i);
    for (int round = 0; round < 6; ++round) {
      s.x += s.y; s.w = rotate(s.w ^ s.x, uint(16));
      s.z += s.w; s.y = rotate(s.y ^ s.z, 12u);
      s.x += s.y; s.w = rotate(s.w ^ s.x, 8u);
      s.z += s.w; s.y = rotate(s.y ^ s.z, 7u);
    }
    const bool4 keep = s > uint4(uint(RATE * 4294967296.0f));
    const float4 kept = select(float4(0), g * (1.0f / (1.0f - RATE)), keep);
    ((device float4*)y)[i] = ((const device float4*)residual)[i] + kept;
    // A simdgroup's 128 bits, four words.
    uint nibble = uint(keep.x) | uint(keep.y) << 1 | uint(keep.z) << 2 | uint(keep.w) << 3;
    const ushort lane = thread_index_in_simdgroup;
    uint word = nibble << (4 * (lane & 7));
    word = simd_shuffle_xor(word, 1) | word;
    word |= simd_shuffle_xor(word, 2);
    word |= simd_shuffle_xor(word, 4);
    if ((lane & 7) == 0) mask[i / 8] = word;
    """,
    header="#define RATE 0.25f",
    inputs=lambda rng: {
        "x": rng.uniform(-0.5, 1, (8, 48)).astype(np.float32),
        "bias": rng.uniform(0.1, 0.4, 48).astype(np.float32),
        "residual": rng.uniform(1, 2, (8, 48)).astype(np.float32),
        "seed": 2024,
    },
    outputs={"y": ((8, 48), "float32"), "mask": ((12,), "uint32")},
    grid=(96, 1, 1),
    threadgroup=(96, 1, 1),
    tolerance=2e-6,
    constructs="mlx.erf functions.rotate functions.select types.bool4 types.uint4 types.vector_comparison "
    "simdgroup.shuffle_xor types.component_index structure.define_in_header",
)
def bias_gelu_dropout_and_residual(x, bias, residual, seed):
    v = x.astype(np.float64) + bias
    g = 0.5 * v * (1 + _erf(v / math.sqrt(2)))

    def rotl(a, by):
        return (a << by | a >> 32 - by) & 0xFFFFFFFF

    words = []
    for i in range(96):
        a, b, c, d = i, seed, 0x9E3779B9, ~i & 0xFFFFFFFF
        for _ in range(6):
            for first, second in ((16, 12), (8, 7)):
                a = (a + b) & 0xFFFFFFFF
                d = rotl(d ^ a, first)
                c = (c + d) & 0xFFFFFFFF
                b = rotl(b ^ c, second)
        words += [a, b, c, d]
    keep = np.array(words) > 2**30
    mask = np.packbits(keep, bitorder="little").view(np.uint32)
    return residual + np.where(keep.reshape(8, 48), g / 0.75, 0), mask


# ---- Losses

_CROSS_ENTROPY_HEADER = """
// The largest so far, and the sum of exponentials relative to it; the sum of the logits themselves, for smoothing.
struct Running {
  float largest;
  float sum;
  float plain;

  static Running nothing() { return Running{-INFINITY, 0, 0}; }

  void take(float v) {
    if (v > largest) {
      sum = sum * exp(largest - v) + 1.0f;
      largest = v;
    } else {
      sum += exp(v - largest);
    }
    plain += v;
  }
};

// In this order the sum is the same on every machine.
inline Running merged(Running a, Running b) {
  Running r = Running::nothing();
  r.largest = max(a.largest, b.largest);
  // Neither has seen anything.
  if (r.largest == -INFINITY) return r;
  r.sum = a.sum * exp(a.largest - r.largest) + b.sum * exp(b.largest - r.largest);
  r.plain = a.plain + b.plain;
  return r;
}

template <typename F>
inline Running over_simdgroup(Running own, F exchange) {
  for (ushort distance = 1; distance < 32; distance <<= 1) {
    Running other;
    other.largest = exchange(own.largest, distance);
    other.sum = exchange(own.sum, distance);
    other.plain = exchange(own.plain, distance);
    own = merged(own, other);
  }
  return own;
}
"""


@body(
    """
    // Loss and gradient of a row in one launch. Labels are smoothed, logits have a soft cap, the squared logarithm of the
    // partition is added with a weight, and rows of the label to ignore are zeros. One pass for the statistics, one that
    // writes.
    threadgroup Running parts[SIMDS];
    const uint t = thread_index_in_threadgroup;
    const uint row = threadgroup_position_in_grid.x;
    const int n = logits_shape[1];
    const int label = labels[row];
    const device T* own = logits + row * n;
    device T* to = d_logits + row * n;
    if (label == IGNORED) {
      for (int i = t; i < n; i += SIMDS * 32) to[i] = T(0);
      if (t == 0) losses[row] = logsumexps[row] = 0;
      return;
    }
    auto capped = [cap](float v) { return cap * precise::tanh(v / cap); };
    Running running = Running::nothing();
    for (int i = t; i < n; i += SIMDS * 32) running.take(capped(float(own[i])));
    running = over_simdgroup(running, [](float v, ushort distance) { return simd_shuffle_xor(v, distance); });
    if (thread_index_in_simdgroup == 0) parts[simdgroup_index_in_threadgroup] = running;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    running = parts[0];
    #pragma unroll
    for (int s = 1; s < SIMDS; ++s) running = merged(running, parts[s]);

    const float logsumexp = running.largest + log(running.sum);
    const float smoothing = 0.1f, z_weight = 0.0078125f;
    if (t == 0) {
      const float of_label = logsumexp - capped(float(own[label]));
      const float of_all = logsumexp - running.plain / n;
      losses[row] = (1 - smoothing) * of_label + smoothing * of_all + z_weight * logsumexp * logsumexp;
      logsumexps[row] = logsumexp;
    }
    for (int i = t; i < n; i += SIMDS * 32) {
      const float c = capped(float(own[i]));
      const float p = exp(c - logsumexp);
      float g = p * (1 + 2 * z_weight * logsumexp) - smoothing / n;
      if (i == label) g -= 1 - smoothing;
      // The slope of the cap.
      g *= 1 - (c / cap) * (c / cap);
      to[i] = T(g * scale);
    }
    """,
    header=_CROSS_ENTROPY_HEADER,
    template=[("T", Dtype("float32")), ("SIMDS", 3), ("IGNORED", -100)],
    # A label's probability is small, and no other's gradient is near zero.
    inputs=lambda rng: {
        "logits": np.where(
            rng.random((6, 333)) < 0.1, rng.uniform(2, 3, (6, 333)), rng.uniform(-4, -3, (6, 333))
        ).astype(np.float32),
        "labels": np.array([3, -100, 332, 0, 117, -100], np.int32),
        "cap": 30.0,
        "scale": 0.25,
    },
    outputs={"losses": ((6,), "float32"), "logsumexps": ((6,), "float32"), "d_logits": ((6, 333), "float32")},
    grid=(6 * 96, 1, 1),
    threadgroup=(96, 1, 1),
    tolerance=5e-6,
    constructs="structure.struct structure.lambda structure.template address_spaces.threadgroup_struct functions.tanh "
    "functions.exp functions.log simdgroup.shuffle_xor barriers.after_early_return types.INFINITY",
)
def cross_entropy_and_its_gradient(logits, labels, cap, scale):
    losses, logs, gradients = np.zeros(6), np.zeros(6), np.zeros((6, 333))
    for row, label in enumerate(labels):
        if label != -100:
            c = cap * np.tanh(logits[row].astype(np.float64) / cap)
            logs[row] = z = np.log(np.exp(c).sum())
            target = np.full(333, 0.1 / 333)
            target[label] += 0.9
            losses[row] = z - target @ c + z * z / 128
            gradients[row] = (np.exp(c - z) * (1 + z / 64) - target) * (1 - (c / cap) ** 2) * scale
    return losses, logs, gradients


@body(
    """
    // The logarithms of sums of exponentials of long rows, each by several threadgroups: the last of a row's to arrive
    // merges what all have left. Partial results are the device's, and so is the count of arrivals.
    threadgroup float2 shared[4];
    threadgroup bool last;
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;
    const uint part = threadgroup_position_in_grid.x, parts = threadgroups_per_grid.x, row = threadgroup_position_in_grid.y;
    const uint n = x_shape[1];
    float m = -INFINITY, s = 0;
    for (uint i = part * 128 + t; i < n; i += parts * 128) {
      const float v = x[row * n + i];
      const float next = max(m, v);
      s = s * exp(m - next) + exp(v - next);
      m = next;
    }
    const float top = simd_max(m);
    // Threads without elements have a sum of zero, and -inf - -inf is no number.
    s = simd_sum(m == -INFINITY ? 0 : s * exp(m - top));
    if (lane == 0) shared[simdgroup_index_in_threadgroup] = float2(top, s);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
      float2 all = shared[0];
      for (int j = 1; j < 4; ++j) {
        const float next = max(all.x, shared[j].x);
        all = float2(next, all.y * exp(all.x - next) + shared[j].y * exp(shared[j].x - next));
      }
      device atomic_uint* slots = (device atomic_uint*)partials + (row * parts + part) * 2;
      atomic_store_explicit(slots, as_type<uint>(all.x), memory_order_relaxed);
      atomic_store_explicit(slots + 1, as_type<uint>(all.y), memory_order_relaxed);
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      const uint before = atomic_fetch_add_explicit((device atomic_uint*)arrivals + row, 1u, memory_order_relaxed);
      atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
      last = before == parts - 1;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!last || t >= 32) return;
    float2 own = float2(-INFINITY, 0);
    if (lane < parts) {
      device atomic_uint* slots = (device atomic_uint*)partials + (row * parts + lane) * 2;
      own.x = as_type<float>(atomic_load_explicit(slots, memory_order_relaxed));
      own.y = as_type<float>(atomic_load_explicit(slots + 1, memory_order_relaxed));
    }
    const float best = simd_max(own.x);
    const float sum = simd_sum(own.y * exp(own.x - best));
    if (lane == 0) y[row] = best + log(sum);
    """,
    inputs=lambda rng: {"x": (rng.normal(size=(3, 1500)) * 3).astype(np.float16)},
    outputs={"y": ((3,), "float32"), "partials": ((3, 5, 2), "float32"), "arrivals": ((3,), "uint32")},
    grid=(5 * 128, 3, 1),
    threadgroup=(128, 1, 1),
    init_value=0,
    tolerance=2e-6,
    constructs="synchronisation.last_arrival synchronisation.atomic_thread_fence synchronisation.fetch_add "
    "address_spaces.cast_to_atomic types.as_type address_spaces.threadgroup_scalar barriers.last_arrival "
    "simdgroup.max simdgroup.sum",
)
def logsumexp_of_long_rows(x):
    x = x.astype(np.float64)
    parts = np.zeros((3, 5, 2))
    for p in range(5):
        own = x[:, np.arange(1500) // 128 % 5 == p]
        parts[:, p, 0] = own.max(axis=1)
        parts[:, p, 1] = np.exp(own - parts[:, p, :1]).sum(axis=1)
    return np.log(np.exp(x).sum(axis=1)), parts, np.full(3, 5, np.uint32)


@body(
    """
    // A policy's loss with clipped ratios and a penalty of its distance from a reference, token by token, summed by
    // sequence; what is masked does not count. Advantages are standardised within a group of sequences first.
    const uint lane = thread_index_in_simdgroup, sequence = thread_position_in_grid.y;
    const uint length = new_logs_shape[1], group = sequence / GROUP;
    float reward = lane < GROUP ? rewards[group * GROUP + lane] : 0;
    const float mean = simd_sum(reward) / GROUP;
    const float spread = lane < GROUP ? reward - mean : 0;
    const float deviation = precise::sqrt(simd_sum(spread * spread) / (GROUP - 1));
    const float advantage = (rewards[sequence] - mean) / (deviation + 1e-4f);

    float loss = 0, clipped = 0, count = 0;
    for (uint i = lane; i < length; i += 32) {
      const uint at = sequence * length + i;
      if (!mask[at]) continue;
      const float ratio = exp(new_logs[at] - old_logs[at]);
      const float bounded = clamp(ratio, 1.0f - LOW, 1.0f + HIGH);
      const float surrogate = min(ratio * advantage, bounded * advantage);
      const float back = reference_logs[at] - new_logs[at];
      const float distance = expm1(back) - back;
      loss += 0.5f * distance - surrogate;
      clipped += float(bounded != ratio);
      count += 1;
      // The gradient with respect to the new logarithm.
      const bool flows = ratio * advantage <= bounded * advantage;
      gradients[at] = -0.5f * expm1(back) - (flows ? ratio * advantage : 0.0f);
    }
    float3 sums = simd_sum(float3(loss, clipped, count));
    sums.xy /= max(sums.z, 1.0f);
    if (lane == 0) {
      losses[sequence] = sums.x;
      clip_fractions[sequence] = sums.y;
    }
    """,
    header="""
constexpr constant float LOW = 0.2f;
constexpr constant float HIGH = 0.28f;
""",
    template=[("GROUP", 4)],
    inputs=lambda rng: _policy_inputs(rng),
    outputs={
        "losses": ((8,), "float32"),
        "clip_fractions": ((8,), "float32"),
        "gradients": ((8, 70), "float32"),
    },
    grid=(32, 8, 1),
    threadgroup=(32, 4, 1),
    init_value=0,
    tolerance=1e-5,
    constructs="types.float3 types.swizzle_write simdgroup.sum mlx.expm1 functions.clamp functions.sqrt types.bool "
    "reconvergence.continue_before_call launch.init_value address_spaces.constant_scalar",
)
def policy_loss_of_groups(new_logs, old_logs, reference_logs, mask, rewards):
    new, old, reference = (a.astype(np.float64) for a in (new_logs, old_logs, reference_logs))
    groups = rewards.astype(np.float64).reshape(2, 4)
    spread = groups - groups.mean(axis=1, keepdims=True)
    advantage = (spread / (groups.std(axis=1, ddof=1, keepdims=True) + 1e-4)).reshape(8, 1)
    ratio, back = np.exp(new - old), reference - new
    bounded = np.clip(ratio, 0.8, 1.28)
    surrogate = np.minimum(ratio * advantage, bounded * advantage)
    loss = 0.5 * (np.expm1(back) - back) - surrogate
    flows = ratio * advantage <= bounded * advantage
    gradient = -0.5 * np.expm1(back) - np.where(flows, ratio * advantage, 0)
    count = np.maximum(mask.sum(axis=1), 1)
    return (
        (loss * mask).sum(axis=1) / count,
        ((bounded != ratio) * mask).sum(axis=1) / count,
        np.where(mask, gradient, 0),
    )


def _policy_inputs(rng):
    old = -rng.uniform(0.5, 3, (8, 70))
    # Half of the ratios are clipped, on either side, and none is at a bound.
    new = old + rng.choice([-1, 1], (8, 70)) * rng.choice([0.12, 0.4], (8, 70)) * rng.uniform(0.9, 1.1, (8, 70))
    mask = np.arange(70) < np.array([70, 33, 64, 1, 50, 69, 32, 31])[:, None]
    return {
        "new_logs": new.astype(np.float32),
        "old_logs": old.astype(np.float32),
        "reference_logs": (new + rng.uniform(0.5, 0.8, (8, 70))).astype(np.float32),
        "mask": mask,
        "rewards": np.array([1, 0, 0, 1, 3, -1, 0.5, 0.25], np.float32),
    }
