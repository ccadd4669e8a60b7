"""Numerical methods: differential equations, prices by chance, filters, splines, fractals."""

import math
import statistics

import numpy as np

from bodies import body

# ---- Ordinary differential equations


_SYSTEMS = 3
_TIMES = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.25], np.float32)


@body(
    """
    // One thread for each trajectory. What it follows is decided while it runs, so that the lanes of a simdgroup part.
    uint i = thread_position_in_grid.x;
    if (i >= uint(kinds_shape[0])) return;
    float4 y = reinterpret_cast<device const float4*>(starts)[i];
    float parameter = parameters[i];
    Output out{times, uint(times_shape[0]), reinterpret_cast<device float4*>(samples) + i * uint(times_shape[0])};
    int steps = 0;
    switch (kinds[i]) {
      case 0: steps = integrate(Kepler{parameter}, y, tolerance, out); break;
      case 1: steps = integrate(VanDerPol{parameter}, y, tolerance, out); break;
      case 2: steps = integrate(Lorenz{parameter}, y, tolerance, out); break;
    }
    // Too many steps are reported as a failure.
    succeeded[i] = steps > 0 && steps < MAX_STEPS;
    """,
    header="""
constant int MAX_STEPS = 400;

// Where samples go. All are moved by a constant, so that those who compare them need no absolute tolerance.
struct Output {
  const device float* times;
  uint count;
  device float4* samples;
};

// ---- What is integrated

// Two bodies: place and velocity; the parameter is the strength of the attraction.
struct Kepler {
  float strength;
  constexpr static constant float OFFSET = 8.0f;
  float4 operator()(float, float4 y) const {
    float r2 = dot(y.xy, y.xy);
    float pull = -strength / (r2 * metal::sqrt(r2));
    return float4(y.zw, pull * y.xy);
  }
};

// An oscillator whose damping changes its sign.
struct VanDerPol {
  float mu;
  constexpr static constant float OFFSET = 8.0f;
  float4 operator()(float t, float4 y) const {
    float push = 0.25f * cos(2.0f * t);
    return float4(y.y, mu * (1.0f - y.x * y.x) * y.y - y.x + push, 0.0f, 0.0f);
  }
};

// Convection; slowed down, because its paths part so fast.
struct Lorenz {
  float rho;
  constexpr static constant float OFFSET = 64.0f;
  float4 operator()(float, float4 y) const {
    const float sigma = 10.0f, beta = 8.0f / 3.0f, slow = 0.25f;
    return slow * float4(sigma * (y.y - y.x), y.x * (rho - y.z) - y.y, y.x * y.y - beta * y.z, 0.0f);
  }
};

// ---- Dormand and Prince's pair of the fifth and the fourth order

struct Tableau {
  constexpr static constant float C2 = 1.0f / 5, C3 = 3.0f / 10, C4 = 4.0f / 5, C5 = 8.0f / 9;
  constexpr static constant float A21 = 1.0f / 5;
  constexpr static constant float A31 = 3.0f / 40, A32 = 9.0f / 40;
  constexpr static constant float A41 = 44.0f / 45, A42 = -56.0f / 15, A43 = 32.0f / 9;
  constexpr static constant float A51 = 19372.0f / 6561, A52 = -25360.0f / 2187, A53 = 64448.0f / 6561,
                                  A54 = -212.0f / 729;
  constexpr static constant float A61 = 9017.0f / 3168, A62 = -355.0f / 33, A63 = 46732.0f / 5247, A64 = 49.0f / 176,
                                  A65 = -5103.0f / 18656;
  // The sixth row is the result as well: the last stage is the next step's first one.
  constexpr static constant float B1 = 35.0f / 384, B3 = 500.0f / 1113, B4 = 125.0f / 192, B5 = -2187.0f / 6784,
                                  B6 = 11.0f / 84;
  constexpr static constant float E1 = 71.0f / 57600, E3 = -71.0f / 16695, E4 = 71.0f / 1920, E5 = -17253.0f / 339200,
                                  E6 = 22.0f / 525, E7 = -1.0f / 40;
  // For what lies between two steps.
  constexpr static constant float D1 = -1.127017565386284f, D3 = 2.675424484351598f, D4 = -5.685526961588504f,
                                  D5 = 3.521932367920791f, D6 = -1.767281257075746f, D7 = 2.382468931778144f;
};

inline float scaled_norm(float4 error, float4 y, float4 y_new, float tolerance) {
  float4 scale = tolerance * (1.0f + max(abs(y), abs(y_new)));
  float4 e = error / scale;
  return metal::sqrt(0.25f * dot(e, e));
}

template <typename System>
inline int integrate(System f, float4 y, float tolerance, thread const Output& out) {
  using T = Tableau;
  const float end = out.times[out.count - 1];
  float t = 0.0f, h = 0.01f, last_error = 1e-4f;
  uint next = 0;
  int steps = 0;
  float4 k1 = f(t, y);
  while (next < out.count && steps < MAX_STEPS) {
    ++steps;
    h = min(h, end - t);
    float4 k2 = f(t + T::C2 * h, y + h * (T::A21 * k1));
    float4 k3 = f(t + T::C3 * h, y + h * (T::A31 * k1 + T::A32 * k2));
    float4 k4 = f(t + T::C4 * h, y + h * (T::A41 * k1 + T::A42 * k2 + T::A43 * k3));
    float4 k5 = f(t + T::C5 * h, y + h * (T::A51 * k1 + T::A52 * k2 + T::A53 * k3 + T::A54 * k4));
    float4 k6 = f(t + h, y + h * (T::A61 * k1 + T::A62 * k2 + T::A63 * k3 + T::A64 * k4 + T::A65 * k5));
    float4 change = h * (T::B1 * k1 + T::B3 * k3 + T::B4 * k4 + T::B5 * k5 + T::B6 * k6);
    float4 y_new = y + change;
    float4 k7 = f(t + h, y_new);
    float4 error = h * (T::E1 * k1 + T::E3 * k3 + T::E4 * k4 + T::E5 * k5 + T::E6 * k6 + T::E7 * k7);
    float size = max(scaled_norm(error, y, y_new, tolerance), 1e-5f);
    if (size > 1.0f) {
      // Once more, with a shorter step.
      h *= max(0.2f, 0.9f * pow(size, -0.2f));
      continue;
    }
    // All samples that this step has passed.
    bool at_end = t + h >= end;
    for (; next < out.count && (at_end || out.times[next] <= t + h); ++next) {
      float a = clamp((out.times[next] - t) / h, 0.0f, 1.0f), b = 1.0f - a;
      float4 bend = h * k1 - change;
      float4 second = change - h * k7 - bend;
      float4 third = h * (T::D1 * k1 + T::D3 * k3 + T::D4 * k4 + T::D5 * k5 + T::D6 * k6 + T::D7 * k7);
      out.samples[next] = System::OFFSET + y + a * (change + b * (bend + a * (second + b * third)));
    }
    // The error before counts too, so that steps do not swing.
    float factor = 0.9f * pow(size, -0.14f) * pow(last_error, 0.08f);
    last_error = max(size, 1e-4f);
    t += h;
    h *= clamp(factor, 0.2f, 5.0f);
    y = y_new;
    k1 = k7;
  }
  return steps;
}
""",
    inputs=lambda rng: {
        "kinds": (np.arange(45) % _SYSTEMS).astype(np.uint8),
        "starts": np.where(
            (np.arange(45) % _SYSTEMS)[:, None] == 0,
            rng.uniform([0.9, -0.1, -0.1, 0.9], [1.1, 0.1, 0.1, 1.1], (45, 4)),
            rng.uniform(1, 2, (45, 4)) * [1, 1, 1, 0],
        ).astype(np.float32),
        "parameters": np.where(np.arange(45) % 3 == 2, rng.uniform(20, 24, 45), rng.uniform(1, 1.5, 45)).astype(
            np.float32
        ),
        "times": _TIMES,
        "tolerance": 5e-7,
    },
    outputs={"samples": ((45, len(_TIMES), 4), "float32"), "succeeded": ((45,), "bool")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-5,
    constructs="structure.operator structure.template structure.switch structure.constexpr structure.using "
    "reconvergence.divergent_trip_count functions.pow functions.cos functions.clamp functions.abs structure.while "
    "address_spaces.constant_scalar",
)
def dormand_prince(kinds, starts, parameters, times, tolerance):
    y, p = starts.astype(np.float64), parameters.astype(np.float64)
    kepler, oscillator = (kinds == 0)[:, None], (kinds == 1)[:, None]

    def rate(t, y):
        a, b, c, d = y.T
        r3 = (a * a + b * b) ** 1.5
        one = np.stack([c, d, -p * a / r3, -p * b / r3], axis=1)
        zero = np.zeros_like(a)
        two = np.stack([b, p * (1 - a * a) * b - a + np.cos(2 * t) / 4, zero, zero], axis=1)
        three = np.stack([10 * (b - a), a * (p - c) - b, a * b - 8 / 3 * c, zero], axis=1) / 4
        return np.where(kepler, one, np.where(oscillator, two, three))

    # The classical method in many small steps, which end at every time that is asked for.
    h, out = 1 / 64, []
    for n in range(1, round(float(times[-1]) / h) + 1):
        t = (n - 1) * h
        k1 = rate(t, y)
        k2 = rate(t + h / 2, y + h / 2 * k1)
        k3 = rate(t + h / 2, y + h / 2 * k2)
        k4 = rate(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if n * h in times:
            out.append(y)
    offset = np.where(kinds == 2, 64, 8)[:, None, None]
    return np.stack(out, axis=1) + offset, np.ones(45, bool)


# ---- Prices


def _sobol_directions():
    """Direction numbers of eight dimensions, by the recurrences of their primitive polynomials."""
    table = [[1 << 31 - i for i in range(32)]]
    for degree, coefficients, first in (
        (1, 0, [1]),
        (2, 1, [1, 3]),
        (3, 1, [1, 3, 1]),
        (3, 2, [1, 1, 1]),
        (4, 1, [1, 1, 3, 3]),
        (4, 4, [1, 3, 5, 13]),
        (5, 2, [1, 1, 5, 5, 17]),
    ):
        v = [m << 31 - i for i, m in enumerate(first)]
        for i in range(degree, 32):
            new = v[i - degree] ^ v[i - degree] >> degree
            for k in range(1, degree):
                if coefficients >> (degree - 1 - k) & 1:
                    new ^= v[i - k]
            v.append(new)
        table.append(v)
    return table


def _direction_rows():
    lines = []
    for row in _sobol_directions():
        words = [f"0x{word:08x}" for word in row]
        lines.append("    {" + ",\n     ".join(", ".join(words[k : k + 8]) for k in range(0, 32, 8)) + "},")
    return "\n".join(lines)


_PATHS = 512


@body(
    """
    // Prices of options that depend on the whole path, by quasi-random numbers. A row of the grid for each contract.
    threadgroup float partial[8];
    threadgroup float partial_squares[8];
    const uint contract = thread_position_in_grid.y;
    const uint t = thread_position_in_threadgroup.x;
    constexpr int STEPS = 8;
    const Contract c = reinterpret_cast<device const Contract*>(contracts)[contract];
    const float dt = c.maturity / STEPS;
    const float drift = (c.rate - 0.5f * c.volatility * c.volatility) * dt;
    const float discount = exp(-c.rate * c.maturity);
    float sum = 0.0f, squares = 0.0f;
    for (uint path = t; path < PATHS; path += threads_per_threadgroup.x) {
      // The first point of the sequence is the corner: it is left out.
      uint x[STEPS];
      sobol_point(path + 1, x);
      float w[STEPS + 1];
      // A Brownian bridge: the first, best dimensions make the path's large features.
      w[0] = 0.0f;
      w[8] = metal::sqrt(8.0f * dt) * normal_of(x[0] ^ shifts[0]);
      BETWEEN(0, 4, 8, 1);
      BETWEEN(0, 2, 4, 2);
      BETWEEN(4, 6, 8, 3);
      BETWEEN(0, 1, 2, 4);
      BETWEEN(2, 3, 4, 5);
      BETWEEN(4, 5, 6, 6);
      BETWEEN(6, 7, 8, 7);
      float mean = 0.0f, log_mean = 0.0f, highest = c.spot, lowest = c.spot, price = c.spot;
      #pragma unroll
      for (int k = 1; k <= STEPS; ++k) {
        float log_price = float(k) * drift + c.volatility * w[k];
        price = c.spot * exp(log_price);
        mean += price;
        log_mean += log_price;
        highest = max(highest, price);
        lowest = min(lowest, price);
      }
      mean /= STEPS;
      float pays = 0.0f;
      switch (int(c.kind)) {
        case CALL: pays = max(price - c.strike, 0.0f); break;
        case PUT: pays = max(c.strike - price, 0.0f); break;
        case ASIAN: pays = max(mean - c.strike, 0.0f); break;
        case GEOMETRIC_ASIAN: pays = max(c.spot * exp(log_mean / STEPS) - c.strike, 0.0f); break;
        case UP_AND_OUT: pays = highest >= c.barrier ? 0.0f : max(price - c.strike, 0.0f); break;
        case LOOKBACK: pays = price - lowest; break;
        case DIGITAL: pays = price > c.strike ? c.barrier : 0.0f; break;
      }
      pays *= discount;
      sum += pays;
      squares += pays * pays;
    }
    sum = simd_sum(sum);
    squares = simd_sum(squares);
    if (simd_is_first()) {
      partial[simdgroup_index_in_threadgroup] = sum;
      partial_squares[simdgroup_index_in_threadgroup] = squares;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) {
      for (uint g = 1; g < simdgroups_per_threadgroup; ++g) {
        sum += partial[g];
        squares += partial_squares[g];
      }
      float price = sum / PATHS;
      prices[contract] = price;
      spreads[contract] = metal::sqrt(squares / PATHS - price * price);
    }
    """,
    header="""
enum Kind { CALL, PUT, ASIAN, GEOMETRIC_ASIAN, UP_AND_OUT, LOOKBACK, DIGITAL };

struct Contract {
  float kind, spot, strike, rate, volatility, maturity, barrier, padding;
};

// The point of the path in the middle between two that are known.
#define BETWEEN(a, m, b, dimension)                                                       \\
  w[m] = 0.5f * (w[a] + w[b]) +                                                           \\
         metal::sqrt(0.25f * float((b) - (a)) * dt) * normal_of(x[dimension] ^ shifts[dimension])

// Direction numbers of Sobol's sequence.
constant uint DIRECTIONS[8][32] = {
"""
    + _direction_rows()
    + """
};

inline void sobol_point(uint index, thread uint* x) {
  // In the order of Gray's code, which visits the same points.
  uint gray = index ^ (index >> 1);
  for (int d = 0; d < 8; ++d) x[d] = 0;
  for (int bit = 0; gray != 0; gray >>= 1, ++bit) {
    if (!(gray & 1)) continue;
    for (int d = 0; d < 8; ++d) x[d] ^= DIRECTIONS[d][bit];
  }
}

// The inverse of the normal distribution by rational functions (Wichura's, for 7 digits).
inline float normal_of(uint bits) {
  float p = (float(bits >> 9) + 0.5f) * 0x1p-23f;
  float q = p - 0.5f;
  if (fabs(q) <= 0.425f) {
    float r = 0.180625f - q * q;
    return q * (((59.109374720f * r + 159.29113202f) * r + 50.434271938f) * r + 3.3871327179f) /
           (((67.187563600f * r + 78.757757664f) * r + 17.895169469f) * r + 1.0f);
  }
  float r = metal::sqrt(-log(q < 0.0f ? p : 1.0f - p));
  float value;
  if (r <= 5.0f) {
    r -= 1.6f;
    value = (((0.17023821103f * r + 1.3067284816f) * r + 2.7568153900f) * r + 1.4234372777f) /
            ((0.12021132975f * r + 0.73700164250f) * r + 1.0f);
  } else {
    r -= 5.0f;
    value = (((0.017337203997f * r + 0.42868294337f) * r + 3.0812263860f) * r + 6.6579051150f) /
            ((0.012258202635f * r + 0.24197894225f) * r + 1.0f);
  }
  return copysign(value, q);
}
""",
    template=[("PATHS", _PATHS)],
    inputs=lambda rng: {
        "contracts": np.array(
            [
                [kind, 100, strike, 0.03, volatility, maturity, barrier, 0]
                for kind, strike, volatility, maturity, barrier in (
                    (0, 95, 0.2, 1, 0),
                    (1, 110, 0.3, 0.5, 0),
                    (2, 98, 0.25, 2, 0),
                    (3, 98, 0.25, 2, 0),
                    (4, 90, 0.3, 1, 135),
                    (5, 0, 0.2, 1, 0),
                    (6, 105, 0.4, 1.5, 10),
                )
            ],
            np.float32,
        ),
        "shifts": rng.integers(0, 2**32, 8, np.uint32),
    },
    outputs={"prices": ((7,), "float32"), "spreads": ((7,), "float32")},
    grid=(128, 7, 1),
    threadgroup=(128, 1, 1),
    tolerance=2e-6,
    constructs="address_spaces.large_constant_table address_spaces.cast_to_struct structure.switch "
    "structure.multi_line_macro_in_header simdgroup.sum simdgroup.is_first functions.exp functions.log "
    "functions.copysign structure.constexpr literals.hexadecimal_float",
)
def option_prices(contracts, shifts):
    inverse = np.vectorize(statistics.NormalDist().inv_cdf)
    # All points up to a power of two, then those of the codes.
    codes = np.arange(1, _PATHS + 1, dtype=np.uint32)
    codes = codes ^ codes >> np.uint32(1)
    z = np.empty((8, _PATHS))
    for d, row in enumerate(_sobol_directions()):
        bits = (codes[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool)
        words = np.bitwise_xor.reduce(np.where(bits, np.array(row, np.uint32), np.uint32(0)), axis=1)
        z[d] = inverse((((words ^ shifts[d]) >> np.uint32(9)) + 0.5) / 2**23)
    # Brownian motion at times 1 to 8, with variance 1 for each step.
    w = {0: np.zeros(_PATHS), 8: math.sqrt(8) * z[0]}
    for d, (a, m, b) in enumerate([(0, 4, 8), (0, 2, 4), (4, 6, 8), (0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7, 8)], 1):
        w[m] = (w[a] + w[b]) / 2 + math.sqrt((b - a) / 4) * z[d]
    walks = np.array([w[k] for k in range(9)])
    prices, spreads = [], []
    for kind, spot, strike, rate, volatility, maturity, barrier, _ in contracts.astype(np.float64):
        dt = maturity / 8
        logs = (rate - volatility**2 / 2) * dt * np.arange(9)[:, None] + volatility * math.sqrt(dt) * walks
        path = spot * np.exp(logs)
        last = path[8]
        pays = {
            0: np.maximum(last - strike, 0),
            1: np.maximum(strike - last, 0),
            2: np.maximum(path[1:].mean(axis=0) - strike, 0),
            3: np.maximum(spot * np.exp(logs[1:].mean(axis=0)) - strike, 0),
            4: np.where(path.max(axis=0) >= barrier, 0, np.maximum(last - strike, 0)),
            5: last - path.min(axis=0),
            6: np.where(last > strike, barrier, 0),
        }[int(kind)] * math.exp(-rate * maturity)
        prices.append(pays.mean())
        spreads.append(pays.std())
    return np.array(prices), np.array(spreads)


# ---- Filters


_FRAMES = 10


def _tracks(rng):
    starts = rng.uniform([20, 20, 1, 1], [30, 30, 2, 2], (24, 4))
    times = np.arange(1, _FRAMES + 1)[:, None]
    places = starts[:, None, :2] + times * starts[:, None, 2:] + rng.normal(size=(24, _FRAMES, 2)) * 0.5
    return {
        "measurements": places.astype(np.float32),
        "seen": (rng.uniform(size=(24, _FRAMES)) < 0.8).astype(bool),
        "start_mean": np.array([25, 25, 1.5, 1.5], np.float32),
        "start_variance": np.array([9, 9, 1, 1], np.float32),
        "process_noise": 0.05,
        "measurement_noise": 0.25,
    }


@body(
    """
    // Objects that move at nearly constant velocity, seen now and then: a Kalman filter forward, then the smoother of
    // Rauch, Tung and Striebel backward. One thread for each object.
    using State = Matrix<4, 1>;
    using Square = Matrix<4, 4>;
    uint i = thread_position_in_grid.x;
    if (i >= uint(measurements_shape[0])) return;
    const float q = process_noise, r = measurement_noise;

    Square f = Square::identity();
    f(0, 2) = 1.0f;
    f(1, 3) = 1.0f;
    // Noise of the acceleration, over a time of 1.
    Square noise = Square::zero();
    for (int axis = 0; axis < 2; ++axis) {
      noise(axis, axis) = q / 3.0f;
      noise(axis, axis + 2) = noise(axis + 2, axis) = q / 2.0f;
      noise(axis + 2, axis + 2) = q;
    }
    Matrix<2, 4> h = Matrix<2, 4>::zero();
    h(0, 0) = h(1, 1) = 1.0f;
    Matrix<2, 2> r_matrix = Matrix<2, 2>::identity() * r;

    State x;
    Square p = Square::zero();
    for (int k = 0; k < 4; ++k) {
      x(k, 0) = start_mean[k];
      p(k, k) = start_variance[k];
    }

    State filtered[FRAMES];
    Square filtered_p[FRAMES];
    float log_likelihood = 0.0f;
    int used = 0;
    for (int frame = 0; frame < FRAMES; ++frame) {
      x = f * x;
      p = f * p * f.transposed() + noise;
      if (seen[i * FRAMES + frame]) {
        ++used;
        Matrix<2, 1> z;
        z(0, 0) = measurements[(i * FRAMES + frame) * 2];
        z(1, 0) = measurements[(i * FRAMES + frame) * 2 + 1];
        Matrix<2, 1> off = z - h * x;
        Matrix<2, 2> s = h * p * h.transposed() + r_matrix;
        Matrix<2, 2> s_inverse = inverse_of(s);
        Matrix<4, 2> gain = p * h.transposed() * s_inverse;
        x = x + gain * off;
        // Joseph's form: it stays symmetric and positive.
        Square keep = Square::identity() - gain * h;
        p = keep * p * keep.transposed() + gain * r_matrix * gain.transposed();
        float det = s(0, 0) * s(1, 1) - s(0, 1) * s(1, 0);
        log_likelihood -= 0.5f * ((off.transposed() * s_inverse * off)(0, 0) + log(det) + 2.0f * LOG_TWO_PI);
      }
      filtered[frame] = x;
      filtered_p[frame] = p;
    }
    log_likelihoods[i] = log_likelihood;
    detections[i] = used;

    for (int frame = FRAMES - 1; frame >= 0; --frame) {
      if (frame < FRAMES - 1) {
        // What the filter expected of the frame after this one.
        State expected = f * filtered[frame];
        Square expected_p = f * filtered_p[frame] * f.transposed() + noise;
        // The gain is P F^T expected^-1: its transpose solves a positive definite system.
        Square gain = solve(expected_p, f * filtered_p[frame]).transposed();
        x = filtered[frame] + gain * (x - expected);
        p = filtered_p[frame] + gain * (p - expected_p) * gain.transposed();
      }
      for (int k = 0; k < 4; ++k) {
        smoothed[(i * FRAMES + frame) * 4 + k] = x(k, 0);
        deviations[(i * FRAMES + frame) * 4 + k] = metal::sqrt(p(k, k));
      }
    }
    """,
    header="""
#define LOG_TWO_PI 1.8378770664093453f

// Matrices whose sizes are known while compiling; loops over them disappear.
template <int R, int C>
struct Matrix {
  float at[R][C];

  thread float& operator()(int r, int c) thread { return at[r][c]; }
  float operator()(int r, int c) const thread { return at[r][c]; }

  static Matrix zero() {
    Matrix m;
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) m.at[r][c] = 0.0f;
    return m;
  }
  static Matrix identity() {
    Matrix m = zero();
    for (int k = 0; k < R && k < C; ++k) m.at[k][k] = 1.0f;
    return m;
  }
  Matrix<C, R> transposed() const thread {
    Matrix<C, R> m;
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) m.at[c][r] = at[r][c];
    return m;
  }
};

#define ELEMENTWISE(op)                                                              \\
  template <int R, int C>                                                            \\
  inline Matrix<R, C> operator op(Matrix<R, C> a, Matrix<R, C> b) {                  \\
    for (int r = 0; r < R; ++r)                                                      \\
      for (int c = 0; c < C; ++c) a.at[r][c] = a.at[r][c] op b.at[r][c];             \\
    return a;                                                                        \\
  }
ELEMENTWISE(+)
ELEMENTWISE(-)
#undef ELEMENTWISE

template <int R, int C>
inline Matrix<R, C> operator*(Matrix<R, C> a, float s) {
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) a.at[r][c] *= s;
  return a;
}

template <int R, int K, int C>
inline Matrix<R, C> operator*(Matrix<R, K> a, Matrix<K, C> b) {
  Matrix<R, C> m;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) {
      float sum = 0.0f;
#pragma unroll
      for (int k = 0; k < K; ++k) sum = fma(a.at[r][k], b.at[k][c], sum);
      m.at[r][c] = sum;
    }
  return m;
}

inline Matrix<2, 2> inverse_of(Matrix<2, 2> m) {
  float inverse_det = 1.0f / (m(0, 0) * m(1, 1) - m(0, 1) * m(1, 0));
  Matrix<2, 2> out;
  out(0, 0) = m(1, 1) * inverse_det;
  out(1, 1) = m(0, 0) * inverse_det;
  out(0, 1) = -m(0, 1) * inverse_det;
  out(1, 0) = -m(1, 0) * inverse_det;
  return out;
}

// a^-1 b for a positive definite a: L D L^T, then the columns of b in turn.
template <int N, int C>
inline Matrix<N, C> solve(Matrix<N, N> a, Matrix<N, C> b) {
  for (int k = 0; k < N; ++k) {
    float inverse = 1.0f / a(k, k);
    for (int r = k + 1; r < N; ++r) {
      float l = a(r, k) * inverse;
      for (int c = k + 1; c < N; ++c) a(r, c) -= l * a(k, c);
      for (int c = 0; c < C; ++c) b(r, c) -= l * b(k, c);
    }
  }
  for (int r = N - 1; r >= 0; --r)
    for (int c = 0; c < C; ++c) {
      float rest = b(r, c);
      for (int k = r + 1; k < N; ++k) rest -= a(r, k) * b(k, c);
      b(r, c) = rest / a(r, r);
    }
  return b;
}
""",
    template=[("FRAMES", _FRAMES)],
    inputs=_tracks,
    outputs={
        "smoothed": ((24, _FRAMES, 4), "float32"),
        "deviations": ((24, _FRAMES, 4), "float32"),
        "log_likelihoods": ((24,), "float32"),
        "detections": ((24,), "int32"),
    },
    grid=(32, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=1e-5,
    constructs="structure.operator structure.template structure.multi_line_macro_in_header structure.using "
    "structure.dynamic_local_array structure.struct functions.log functions.fma address_spaces.thread types.bool",
)
def kalman_smoother(measurements, seen, start_mean, start_variance, process_noise, measurement_noise):
    # All states together are one Gaussian; what was seen conditions it.
    q, r = float(np.float32(process_noise)), float(np.float32(measurement_noise))
    f = np.eye(4) + np.eye(4, k=2)
    noise = np.kron([[q / 3, q / 2], [q / 2, q]], np.eye(2))
    mean, p = start_mean.astype(np.float64), np.diag(start_variance.astype(np.float64))
    means, covariance = np.zeros((_FRAMES, 4)), np.zeros((_FRAMES, 4, _FRAMES, 4))
    for k in range(_FRAMES):
        mean, p = f @ mean, f @ p @ f.T + noise
        means[k] = mean
        covariance[k, :, k] = p
        for later in range(k + 1, _FRAMES):
            covariance[later, :, k] = f @ covariance[later - 1, :, k]
            covariance[k, :, later] = covariance[later, :, k].T
    full = covariance.reshape(4 * _FRAMES, 4 * _FRAMES)
    smoothed, deviations, likelihoods = [], [], []
    for places, when in zip(measurements.astype(np.float64), seen, strict=True):
        own = np.array([4 * k + axis for k in np.flatnonzero(when) for axis in range(2)], int)
        s = full[np.ix_(own, own)] + r * np.eye(len(own))
        off = places[when].ravel() - means.ravel()[own]
        gain = np.linalg.solve(s, full[own]).T
        smoothed.append((means.ravel() + gain @ off).reshape(_FRAMES, 4))
        deviations.append(np.sqrt(np.diag(full - gain @ full[own])).reshape(_FRAMES, 4))
        likelihoods.append(
            -(off @ np.linalg.solve(s, off) + np.linalg.slogdet(s)[1] + len(own) * math.log(2 * math.pi)) / 2
        )
    return np.array(smoothed), np.array(deviations), np.array(likelihoods), seen.sum(axis=1).astype(np.int32)


# ---- Splines


@body(
    """
    // Natural cubic splines through the knots of each curve: the second derivatives by elimination, then points between.
    threadgroup float bends[MOST];
    uint curve = threadgroup_position_in_grid.x, t = thread_position_in_threadgroup.x;
    int knots = x_shape[1];
    device const float* xs = x + curve * knots;
    device const float* ys = y + curve * knots;
    if (t == 0) {
      float carried[MOST];
      bends[0] = 0.0f;
      carried[0] = 0.0f;
      for (int k = 1; k < knots - 1; ++k) {
        float left = xs[k] - xs[k - 1], right = xs[k + 1] - xs[k];
        float share = left / (left + right);
        float pivot = share * bends[k - 1] + 2.0f;
        float slope_change = (ys[k + 1] - ys[k]) / right - (ys[k] - ys[k - 1]) / left;
        bends[k] = (share - 1.0f) / pivot;
        carried[k] = (6.0f * slope_change / (left + right) - share * carried[k - 1]) / pivot;
      }
      bends[knots - 1] = 0.0f;
      for (int k = knots - 2; k >= 0; --k) bends[k] = bends[k] * bends[k + 1] + carried[k];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint points = at_shape[0];
    for (uint i = t; i < points; i += threads_per_threadgroup.x) {
      float p = at[i];
      int low = 0, high = knots - 1;
      while (high - low > 1) {
        int middle = (low + high) >> 1;
        if (xs[middle] > p) high = middle; else low = middle;
      }
      float h = xs[high] - xs[low];
      float a = (xs[high] - p) / h, b = (p - xs[low]) / h;
      values[curve * points + i] = a * ys[low] + b * ys[high] +
                                   ((a * a * a - a) * bends[low] + (b * b * b - b) * bends[high]) * (h * h) / 6.0f;
    }
    """,
    header="#define MOST 64\n",
    inputs=lambda rng: {
        "x": np.cumsum(rng.uniform(0.5, 1.5, (3, 20)), axis=1).astype(np.float32),
        "y": rng.uniform(4, 6, (3, 20)).astype(np.float32),
        "at": rng.uniform(1.5, 11, 70).astype(np.float32),
    },
    outputs={"values": ((3, 70), "float32")},
    grid=(96, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=5e-6,
    constructs="barriers.after_divergent_condition structure.while structure.dynamic_local_array "
    "reconvergence.divergent_trip_count address_spaces.threadgroup_array",
)
def natural_splines(x, y, at):
    out = []
    for xs, ys in zip(x.astype(np.float64), y.astype(np.float64), strict=True):
        # All coefficients of all pieces, from what the pieces must fulfil.
        n = len(xs) - 1
        rows, right = [], []

        def piece(k, terms, n=n):
            row = np.zeros(4 * n)
            row[4 * k : 4 * k + 4] = terms
            return row

        for k in range(n):
            h = xs[k + 1] - xs[k]
            rows += [piece(k, [1, 0, 0, 0]), piece(k, [1, h, h**2, h**3])]
            right += [ys[k], ys[k + 1]]
            if k + 1 < n:
                rows.append(piece(k, [0, 1, 2 * h, 3 * h**2]) - piece(k + 1, [0, 1, 0, 0]))
                rows.append(piece(k, [0, 0, 2, 6 * h]) - piece(k + 1, [0, 0, 2, 0]))
                right += [0, 0]
        rows += [piece(0, [0, 0, 2, 0]), piece(n - 1, [0, 0, 2, 6 * (xs[n] - xs[n - 1])])]
        c = np.linalg.solve(np.array(rows), [*right, 0, 0]).reshape(n, 4)
        k = np.clip(np.searchsorted(xs, at, "right") - 1, 0, n - 1)
        d = at.astype(np.float64) - xs[k]
        out.append(((c[k, 3] * d + c[k, 2]) * d + c[k, 1]) * d + c[k, 0])
    return np.array(out)


# ---- Fractals


def _split(value):
    high = np.float32(value)
    return high, np.float32(value - float(high))


@body(
    """
    // A Julia set with smooth colours.
    uint2 at = thread_position_in_grid.xy;
    float2 size = float2(threads_per_grid.xy);
    float2 z = (float2(at) + 0.5f - 0.5f * size) * (3.0f / size.x);
    const float2 c = float2(c_real, c_imag);
    float n = 0;
    bool escaped = false;
    for (int k = 0; k < LIMIT; ++k) {
      z = float2(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + c;
      if (dot(z, z) > 256.0f) {
        // The fraction of a step by which it was late.
        n = k + 1 - log2(0.5f * log2(dot(z, z)));
        escaped = true;
        break;
      }
    }
    float3 colour = escaped ? 0.55f + 0.45f * cos(0.35f * n + float3(0.0f, 0.6f, 1.0f)) : float3(0.0f);
    half4 pixel = half4(half3(colour), escaped ? 1.0h : 0.0h);
    ((device half4*)image)[at.y * threads_per_grid.x + at.x] = pixel;
    """,
    template=[("LIMIT", 40)],
    inputs=lambda rng: {"c_real": -0.8, "c_imag": 0.156},
    outputs={"image": ((18, 24, 4), "float16")},
    grid=(24, 18, 1),
    threadgroup=(8, 8, 1),
    tolerance=2**-10,
    constructs="functions.log2 functions.cos types.half4 types.half3 literals.half_suffix "
    "address_spaces.cast_to_vector",
)
def julia_set(c_real, c_imag):
    y, x = np.mgrid[:18, :24]
    z = ((x - 11.5) + 1j * (y - 8.5)) * (3 / 24)
    n, escaped = np.zeros((18, 24)), np.zeros((18, 24), bool)
    for k in range(40):
        z = np.where(escaped, z, z * z + complex(np.float32(c_real), np.float32(c_imag)))
        now = ~escaped & (np.abs(z) > 16)
        n[now] = k + 1 - np.log2(np.log2(np.abs(z[now])))
        escaped |= now
    colour = 0.55 + 0.45 * np.cos(0.35 * n[..., None] + np.array([0, 0.6, 1]))
    return np.concatenate([np.where(escaped[..., None], colour, 0), escaped[..., None]], axis=2)


@body(
    """
    // Deep in the Mandelbrot set: every number is the sum of two floats.
    uint2 at = thread_position_in_grid.xy;
    uint index = at.y * threads_per_grid.x + at.x;
    Twofold cx = Twofold(centre[0], centre[1]) + Twofold(scale) * Twofold(float(at.x) - 7.5f);
    Twofold cy = Twofold(centre[2], centre[3]) + Twofold(scale) * Twofold(float(at.y) - 5.5f);
    Twofold x(0.0f), y(0.0f);
    int count = 0;
    while (count < limit) {
      Twofold xx = x * x, yy = y * y;
      if ((xx + yy).high > 4.0f) break;
      Twofold xy = x * y;
      x = xx - yy + cx;
      y = xy + xy + cy;
      ++count;
    }
    counts[index] = count;
    """,
    header="""
// A sum of two floats, the second below half of a unit of the first one's last place.
struct Twofold {
  float high, low;

  explicit Twofold(float h, float l = 0.0f) : high(h), low(l) {}

  static Twofold sum_of(float a, float b) {
    float s = a + b, back = s - a;
    return Twofold(s, (a - (s - back)) + (b - back));
  }
  static Twofold product_of(float a, float b) {
    float p = a * b;
    return Twofold(p, fma(a, b, -p));
  }
  static Twofold joined(float h, float l) {
    float s = h + l;
    return Twofold(s, l - (s - h));
  }
  Twofold operator-() const { return Twofold(-high, -low); }
  Twofold operator+(Twofold o) const {
    Twofold s = sum_of(high, o.high), t = sum_of(low, o.low);
    s = joined(s.high, s.low + t.high);
    return joined(s.high, s.low + t.low);
  }
  Twofold operator-(Twofold o) const { return *this + -o; }
  Twofold operator*(Twofold o) const {
    Twofold p = product_of(high, o.high);
    return joined(p.high, p.low + (high * o.low + low * o.high));
  }
};
""",
    inputs=lambda rng: {
        # Near a point whose path ends in a cycle that repels; half of each number is in its second float.
        "centre": np.array([_split(-0.1010963638456221), _split(0.9562865108091415)], np.float32).reshape(4),
        "scale": 2.0**-27,
        "limit": 200,
    },
    outputs={"counts": ((12, 16), "int32")},
    grid=(16, 12, 1),
    threadgroup=(16, 4, 1),
    constructs="structure.operator structure.struct arithmetic.no_contraction functions.fma structure.while "
    "reconvergence.divergent_trip_count",
)
def mandelbrot_of_two_floats(centre, scale, limit):
    real, imag = (float(centre[k]) + float(centre[k + 1]) for k in (0, 2))
    y, x = np.mgrid[:12, :16]
    c = real + scale * (x - 7.5) + 1j * (imag + scale * (y - 5.5))
    z, counts, alive = np.zeros_like(c), np.zeros((12, 16), np.int32), np.ones((12, 16), bool)
    for _ in range(limit):
        alive &= z.real**2 + z.imag**2 <= 4
        counts += alive
        z = np.where(alive, z * z + c, z)
    return counts
