"""Sound and other series: filters, spectra, pitch, sampling rates, smoothing, alignment in time."""

import numpy as np

from bodies import Dtype, body


def _mel(frequency):
    return 2595 * np.log10(1 + frequency / 700)


def _mel_filters(bands, bins, rate):
    """Triangles of which each begins where the last has its top, in steps of the mel scale."""
    edges = 700 * (10 ** (np.linspace(_mel(60), _mel(rate / 2), bands + 2) / 2595) - 1)
    frequencies = np.arange(bins) * rate / (2 * (bins - 1))
    up = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(np.minimum(up, down), 0)


def _tone(rng, length, *frequencies):
    t = np.arange(length)
    sound = sum(a * np.sin(2 * np.pi * f * t + p) for f, a, p in frequencies)
    return (sound + rng.normal(size=length) * 0.02).astype(np.float32)


# ---- Spectra


_TWIDDLES = 128
_EDGES = 700 * (10 ** (np.linspace(_mel(60), _mel(4000), 22) / 2595) - 1)


@body(
    """
    // Cepstra of speech, a frame for each threadgroup of 64 threads: pre-emphasis, a Hann window, a transform of 256 real samples
    // as one of 128 complex ones, power in triangular bands of the mel scale, logarithms, their cosine transform, and a lifter.
    threadgroup float2 data[2][N / 2];
    threadgroup float power[N / 2 + 1];
    threadgroup float bands[BANDS];
    const int t = thread_index_in_threadgroup;
    const int frame = threadgroup_position_in_grid.x;
    const int length = signal_shape[0];
    device const T* in = signal + frame * HOP;

    // Even samples are real parts, odd ones imaginary parts.
    for (int j = t; j < N / 2; j += 64) {
      float2 pair;
      #pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int at = 2 * j + k, place = frame * HOP + at;
        const float own = place < length ? float(in[at]) : 0.0f;
        const float before = place > 0 && place <= length ? float(in[at - 1]) : 0.0f;
        const float window = 0.5f - 0.5f * cospi(2.0f * float(at) / float(N));
        pair[k] = (own - 0.97f * before) * window;
      }
      data[0][j] = pair;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // Stockham's transform: in order without reversing bits, from one buffer to the other. Radix 2, then 4 three times.
    int from = 0;
    {
      const float2 a = data[0][t], b = data[0][t + N / 4];
      data[1][2 * t] = a + b;
      data[1][2 * t + 1] = a - b;
      from = 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    #pragma unroll
    for (int span = 2; span < N / 2; span *= 4) {
      if (t < N / 8) {
        const int place = t % span;
        const float2 a = data[from][t];
        const float2 b = turned(data[from][t + N / 8], place * (N / 8 / span));
        const float2 c = turned(data[from][t + 2 * N / 8], 2 * place * (N / 8 / span));
        const float2 d = turned(data[from][t + 3 * N / 8], 3 * place * (N / 8 / span));
        const float2 ac = a + c, a_c = a - c, bd = b + d, b_d = quarter_turn(b - d);
        threadgroup float2* to = data[1 - from] + (t / span) * span * 4 + place;
        to[0] = ac + bd;
        to[span] = a_c + b_d;
        to[2 * span] = ac - bd;
        to[3 * span] = a_c - b_d;
      }
      from = 1 - from;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // The real signal's bins from those of the complex one and of its mirror image.
    for (int j = t; j <= N / 2; j += 64) {
      const float2 z = data[from][j % (N / 2)], mirror = data[from][(N / 2 - j) % (N / 2)] * float2(1, -1);
      const float2 even = 0.5f * (z + mirror), odd = 0.5f * (z - mirror);
      const float c = cospi(2.0f * float(j) / float(N)), s = -sinpi(2.0f * float(j) / float(N));
      // odd / i, turned by the bin's angle.
      const float2 x = even + float2(odd.y * c + odd.x * s, odd.y * s - odd.x * c);
      power[j] = length_squared(x) / float(N);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // A simdgroup takes every second band; lanes share the bins from the band's first to its last.
    for (int band = simdgroup_index_in_threadgroup; band < BANDS; band += 2) {
      const Triangle triangle = kTriangles[band];
      float sum = 0;
      for (int j = triangle.first + int(thread_index_in_simdgroup); j <= triangle.last; j += 32) {
        const float f = float(j) * (RATE / float(N));
        const float up = (f - triangle.begin) / (triangle.top - triangle.begin);
        const float down = (triangle.end - f) / (triangle.end - triangle.top);
        sum = fma(max(min(up, down), 0.0f), power[j], sum);
      }
      sum = simd_sum(sum);
      if (simd_is_first()) {
        bands[band] = log(max(sum, 1e-10f));
        energies[frame * BANDS + band] = sum;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (t < COEFFICIENTS) {
      float sum = 0;
      for (int band = 0; band < BANDS; ++band)
        sum += bands[band] * cospi(float(t) * (float(band) + 0.5f) / float(BANDS));
      const float scale = t == 0 ? rsqrt(float(BANDS)) : rsqrt(float(BANDS) / 2);
      const float lifter = 1 + 11.0f * sinpi(float(t) / 22);
      cepstra[frame * COEFFICIENTS + t] = 40 + sum * scale * lifter;
    }
    """,
    header="""
#define RATE 8000.0f

// exp(-2 pi i k / 128) for k < 96, as the transform of 128 wants them.
constant float2 kTurns[96] = {
"""
    + "".join(
        "  "
        + ", ".join(
            f"float2({np.cos(2 * np.pi * k / _TWIDDLES):.8f}f, {-np.sin(2 * np.pi * k / _TWIDDLES):.8f}f)"
            for k in range(row, row + 3)
        )
        + ",\n"
        for row in range(0, 96, 3)
    )
    + """};

inline float2 turned(float2 x, int k) {
  const float2 w = kTurns[k];
  return float2(x.x * w.x - x.y * w.y, x.x * w.y + x.y * w.x);
}

// Times -i.
inline float2 quarter_turn(float2 x) { return float2(x.y, -x.x); }

// A band: frequencies of its corners in Hz, and the bins in it.
struct Triangle {
  float begin, top, end;
  int first, last;
};

constant Triangle kTriangles[20] = {
"""
    + "".join(
        f"  {{{a:.4f}f, {b:.4f}f, {c:.4f}f, {int(np.ceil(a * 256 / 8000))}, {int(np.floor(c * 256 / 8000))}}},\n"
        for a, b, c in zip(_EDGES[:-2], _EDGES[1:-1], _EDGES[2:], strict=True)
    )
    + """};
""",
    template=[("T", Dtype("float32")), ("N", 256), ("HOP", 100), ("BANDS", 20), ("COEFFICIENTS", 12)],
    inputs=lambda rng: {
        "signal": (_tone(rng, 620, (0.03, 1, 0), (0.11, 0.5, 1), (0.31, 0.3, 2)) + rng.normal(size=620) * 0.2).astype(
            np.float32
        )
    },
    outputs={"energies": ((5, 20), "float32"), "cepstra": ((5, 12), "float32")},
    grid=(5 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-5,
    constructs="address_spaces.constant_array address_spaces.constant_vector structure.struct barriers.double_buffering "
    "functions.cospi functions.sinpi functions.log functions.length_squared functions.rsqrt functions.fma "
    "address_spaces.threadgroup_vectors simdgroup.is_first barriers.in_unrolled_loop types.float2",
)
def mel_cepstra(signal):
    signal = np.concatenate([signal.astype(np.float64), np.zeros(256)])
    emphasised = signal - 0.97 * np.concatenate([[0], signal[:-1]])
    # What comes behind the end has no sample before it either.
    emphasised[621:] = 0
    frames = np.stack([emphasised[start : start + 256] for start in range(0, 500, 100)])
    power = abs(np.fft.rfft(frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)))) ** 2 / 256
    energies = power @ _mel_filters(20, 129, 8000).T
    k, n = np.arange(12)[:, None], np.arange(20)
    dct = np.cos(np.pi * k * (n + 0.5) / 20) * np.where(k == 0, np.sqrt(1 / 20), np.sqrt(2 / 20))
    return energies, 40 + np.log(energies) @ dct.T * (1 + 11 * np.sin(np.pi * np.arange(12) / 22))


@body(
    """
    // The pitch of each frame: normalised differences by lag (YIN). The first dip below a threshold is the period, made finer by
    // a parabola through it and its neighbours; where there is none, the deepest dip, and a mark.
    threadgroup float difference[LAGS + 1];
    threadgroup float samples[2 * LAGS + 32];
    const uint t = thread_index_in_threadgroup, lane = thread_index_in_simdgroup;
    const uint frame = threadgroup_position_in_grid.x;
    for (uint j = t; j < 2 * LAGS; j += THREADS) samples[j] = signal[frame * HOP + j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint lag = t; lag <= LAGS; lag += THREADS) {
      float sum = 0;
      for (uint j = 0; j < LAGS; ++j) {
        const float d = samples[j] - (j + lag < 2 * LAGS ? samples[j + lag] : 0.0f);
        sum += d * d;
      }
      difference[lag] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index_in_threadgroup != 0) return;

    // d(lag) * lag / (d(1) + ... + d(lag)), lanes by lanes.
    float before = 0;
    for (uint first = 1; first < LAGS; first += 32) {
      const uint lag = first + lane;
      const float own = lag < LAGS ? difference[lag] : 0;
      const float sum = before + simd_prefix_inclusive_sum(own);
      before = simd_broadcast(sum, 31);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (lag < LAGS) difference[lag] = sum > 0 ? own * float(lag) / sum : 1;
    }
    if (lane == 0) difference[0] = difference[LAGS] = 1;
    simdgroup_barrier(mem_flags::mem_threadgroup);

    uint chosen = 0;
    float deepest = INFINITY;
    uint deepest_lag = 0;
    for (uint first = SHORTEST; first < LAGS && chosen == 0; first += 32) {
      const uint lag = first + lane;
      const bool inside = lag < LAGS;
      const float own = inside ? difference[lag] : INFINITY;
      const bool dip = inside && own <= difference[lag - 1] && own < difference[lag + 1];
      const uint dips = uint(uint64_t(simd_ballot(dip && own < threshold)));
      if (dips != 0) chosen = first + ctz(dips);
      const float least = simd_min(own);
      if (least < deepest) {
        deepest = least;
        deepest_lag = simd_min(own == least ? lag : 0xffffffffu);
      }
    }
    if (lane == 0) {
      const uint lag = chosen ? chosen : deepest_lag;
      const float a = difference[lag - 1], b = difference[lag], c = difference[lag + 1];
      const float shift = 0.5f * (a - c) / (a - 2 * b + c);
      periods[frame] = float(lag) + (isfinite(shift) ? clamp(shift, -0.5f, 0.5f) : 0.0f);
      voiced[frame] = chosen != 0;
      depths[frame] = 1 + b;
    }
    """,
    template=[("LAGS", 128), ("HOP", 64), ("THREADS", 64), ("SHORTEST", 12)],
    inputs=lambda rng: {
        "signal": np.concatenate(
            [
                _tone(rng, 320, (1 / 37.4, 1, 0), (2 / 37.4, 0.6, 1)),
                _tone(rng, 256, (1 / 90.7, 1, 0.5), (3 / 90.7, 0.4, 0)),
                rng.normal(size=128).astype(np.float32),
            ]
        ),
        "threshold": 0.15,
    },
    outputs={"periods": ((8,), "float32"), "voiced": ((8,), "bool"), "depths": ((8,), "float32")},
    grid=(8 * 64, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2e-6,
    constructs="simdgroup.prefix_inclusive_sum simdgroup.broadcast simdgroup.ballot simdgroup.min functions.ctz "
    "synchronisation.simdgroup_barrier functions.isfinite structure.return_before_simd types.INFINITY",
)
def pitch_by_differences(signal, threshold):
    periods, voiced, depths = [], [], []
    for frame in range(8):
        x = np.concatenate([signal[64 * frame : 64 * frame + 256].astype(np.float64), np.zeros(1)])
        d = np.array([((x[:128] - x[lag : lag + 128]) ** 2).sum() for lag in range(129)])
        normal = np.ones(129)
        normal[1:128] = d[1:128] * np.arange(1, 128) / d[1:128].cumsum()
        dips = [lag for lag in range(12, 128) if normal[lag] <= normal[lag - 1] and normal[lag] < normal[lag + 1]]
        good = [lag for lag in dips if normal[lag] < threshold]
        lag = good[0] if good else 12 + int(normal[12:128].argmin())
        a, b, c = normal[lag - 1 : lag + 2]
        periods.append(lag + np.clip(0.5 * (a - c) / (a - 2 * b + c), -0.5, 0.5))
        voiced.append(bool(good))
        depths.append(1 + b)
    return np.array(periods), np.array(voiced), np.array(depths)


# ---- Filters


for _dtype in ("float32", "int16"):

    def _fir(x, taps, _dtype=_dtype):
        out = np.stack([np.convolve(row.astype(np.float64), taps.astype(np.float64))[: row.size : 3] for row in x])
        return out if _dtype == "float32" else np.clip((out.astype(int) + 2**13) >> 14, -32768, 32767)

    body(
        """
    // A filter and a decimation by DOWN in one: a threadgroup has a piece of the signal and what comes before it in threadgroup
    // memory, sorted by phase, so that neighbouring threads read neighbouring words.
    using Sum = typename Arithmetic<T>::Sum;
    using Coefficient = typename Arithmetic<T>::Coefficient;
    constexpr int OUT = 32, IN = OUT * DOWN + TAPS - 1;
    constexpr int PHASE = (IN + DOWN - 1) / DOWN;
    threadgroup T phases[DOWN][PHASE + 1];
    threadgroup Coefficient filter[TAPS];
    const int t = thread_index_in_threadgroup, channel = threadgroup_position_in_grid.y;
    const int length = x_shape[1], first = int(threadgroup_position_in_grid.x) * OUT * DOWN - (TAPS - 1);
    device const T* in = x + channel * length;
    for (int j = t; j < IN; j += OUT) {
      const int at = first + j;
      phases[j % DOWN][j / DOWN] = at >= 0 && at < length ? in[at] : T(0);
    }
    for (int j = t; j < TAPS; j += OUT) filter[j] = taps[TAPS - 1 - j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Sum sum = 0;
    #pragma clang loop unroll_count(4)
    for (int j = 0; j < TAPS; ++j) sum += Sum(filter[j]) * Sum(phases[j % DOWN][t + j / DOWN]);
    const int at = threadgroup_position_in_grid.x * OUT + t;
    if (at < y_length) y[channel * y_length + at] = finished<T>(sum);
    """,
        name=f"fir_decimation_{_dtype}",
        header="""
// Whole samples have coefficients in 16384ths and are rounded and limited at the end.
template <typename T>
struct Arithmetic {
  using Sum = float;
  using Coefficient = float;
};

template <>
struct Arithmetic<short> {
  using Sum = int;
  using Coefficient = short;
};

template <typename T>
inline T finished(typename Arithmetic<T>::Sum sum) {
  if constexpr (is_same_v<T, short>) return short(clamp((sum + (1 << 13)) >> 14, -32768, 32767));
  else return sum;
}
""",
        template=[("T", Dtype(_dtype)), ("TAPS", 25), ("DOWN", 3)],
        inputs=lambda rng, _dtype=_dtype: {
            "x": rng.uniform(1, 2, (2, 250)).astype(np.float32)
            if _dtype == "float32"
            else rng.integers(-(2**15), 2**15, (2, 250)).astype(np.int16),
            "taps": (np.hanning(27)[1:-1] / 13).astype(np.float32)
            if _dtype == "float32"
            else np.round(np.hanning(27)[1:-1] / 7 * 2**14).astype(np.int16),
            "y_length": 84,
        },
        outputs={"y": ((2, 84), _dtype)},
        grid=(96, 2, 1),
        threadgroup=(32, 1, 1),
        tolerance=3e-6 if _dtype == "float32" else 0,
        constructs="structure.using structure.if_constexpr structure.template address_spaces.threadgroup_array_of_T "
        "structure.pragma_clang_loop functions.clamp address_spaces.threadgroup_2d_array",
    )(lambda x, taps, y_length, _reference=_fir: _reference(x, taps))


@body(
    """
    // A cascade of second-order sections (an equaliser) over long rows, by a scan: a section's state after 32 samples is a
    // matrix of the state before them and a vector, and such pairs compose. Lanes take four samples each: first with zero state,
    // then the scan says the state that each lane should have begun with.
    const uint lane = thread_index_in_simdgroup, row = threadgroup_position_in_grid.x;
    const int length = x_shape[1];
    Section sections[SECTIONS];
    float2 carried[SECTIONS];
    float2x2 step[SECTIONS][5];     // the state's way through 4, 8, 16, 32, 64 samples
    for (int s = 0; s < SECTIONS; ++s) {
      sections[s].load(coefficients + 5 * s);
      carried[s] = 0;
      const float2x2 one = sections[s].matrix(), two = one * one;
      step[s][0] = two * two;
      for (int k = 1; k < 5; ++k) step[s][k] = step[s][k - 1] * step[s][k - 1];
    }
    for (int first = 0; first < length; first += 128) {
      const int at = first + 4 * lane;
      float4 v = 0;
      for (int j = 0; j < 4; ++j)
        if (at + j < length) v[j] = x[row * length + at + j];
      for (int s = 0; s < SECTIONS; ++s) {
        float2 state = 0;
        for (int j = 0; j < 4; ++j) sections[s].run(v[j], state);
        // States at the lanes' ends, by doubling distances.
        for (int k = 0; k < 5; ++k) {
          const ushort distance = 1 << k;
          const float2 below = simd_shuffle_up(state, distance);
          if (lane >= distance) state += step[s][k] * below;
        }
        // What a lane begins with: the state at the end of the lane below, and what is carried through all lanes below.
        float2 begin = simd_shuffle_up(state, 1);
        if (lane == 0) begin = 0;
        float2 through = carried[s];
        for (int k = 0; k < 5; ++k)
          if ((lane >> k) & 1) through = step[s][k] * through;
        begin += through;
        float2 own = begin;
        for (int j = 0; j < 4; ++j) v[j] = sections[s].run(v[j], own);
        carried[s] = simd_broadcast(own, 31);
      }
      for (int j = 0; j < 4; ++j)
        if (at + j < length) y[row * length + at + j] = v[j];
    }
    """,
    header="""
// y = b0 x + s1;  s1 = b1 x - a1 y + s2;  s2 = b2 x - a2 y.
struct Section {
  float b0, b1, b2, a1, a2;

  void load(const device float* c) {
    b0 = c[0];
    b1 = c[1];
    b2 = c[2];
    a1 = c[3];
    a2 = c[4];
  }

  float run(float x, thread float2& s) const {
    const float y = fma(b0, x, s.x);
    s = float2(b1 * x - a1 * y + s.y, b2 * x - a2 * y);
    return y;
  }

  // Of the state, without input; columns.
  float2x2 matrix() const { return float2x2(float2(-a1, -a2), float2(1, 0)); }
};
""",
    template=[("SECTIONS", 3)],
    inputs=lambda rng: {
        "x": (3 + rng.normal(size=(2, 300))).astype(np.float32),
        "coefficients": np.array(
            [[0.2, 0.3, 0.2, -0.5, 0.2], [1.1, -1.2, 0.5, -1.2, 0.6], [0.8, 0.1, 0.05, -0.3, -0.2]], np.float32
        ),
    },
    outputs={"y": ((2, 300), "float32")},
    grid=(64, 1, 1),
    threadgroup=(32, 1, 1),
    tolerance=2e-6,
    constructs="types.matrices types.matrix_arithmetic simdgroup.shuffle_up simdgroup.broadcast structure.struct "
    "types.component_index address_spaces.thread functions.fma types.float2 types.matrix_constructors",
)
def equaliser_by_scan(x, coefficients):
    y = x.astype(np.float64)
    for b0, b1, b2, a1, a2 in coefficients.astype(np.float64):
        out = np.zeros_like(y)
        padded = np.pad(y, ((0, 0), (2, 0)))
        for t in range(y.shape[1]):
            past = [out[:, t - k] if t >= k else 0 for k in (1, 2)]
            out[:, t] = b0 * padded[:, t + 2] + b1 * padded[:, t + 1] + b2 * padded[:, t] - a1 * past[0] - a2 * past[1]
        y = out
    return y


@body(
    """
    // From one sampling rate to another, UP / DOWN, by a windowed sinc whose values for all phases are made first; each output
    // needs the phase's taps only. Frames of stereo as half2, positions in 64 bits.
    threadgroup float bank[UP][2 * HALF];
    const uint t = thread_index_in_threadgroup;
    for (uint j = t; j < UP * 2 * HALF; j += threads_per_threadgroup.x) {
      const int phase = j / (2 * HALF), tap = j % (2 * HALF);
      const float d = float(tap - HALF + 1) - float(phase) / float(UP);
      // The lower of the two rates limits.
      const float cut = min(1.0f, float(UP) / float(DOWN));
      const float sinc = d == 0 ? 1.0f : sinpi(d * cut) / (M_PI_F * d * cut);
      const float window = 0.42f + 0.5f * cospi(d / float(HALF)) + 0.08f * cospi(2 * d / float(HALF));
      bank[phase][tap] = cut * sinc * window;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const long at = long(thread_position_in_grid.x) + start;
    const long position = at * DOWN;
    const long whole = position / UP;
    const int phase = int(position % UP);
    device const half2* frames = (device const half2*)x;
    float2 sum = 0;
    float weights = 0;
    for (int tap = 0; tap < 2 * HALF; ++tap) {
      const long from = clamp(whole + tap - HALF + 1, 0l, long(x_shape[0]) - 1);
      sum += bank[phase][tap] * float2(frames[from]);
      weights += bank[phase][tap];
    }
    ((device half2*)y)[thread_position_in_grid.x] = half2(sum / weights);
    """,
    template=[("UP", 7), ("DOWN", 10), ("HALF", 12)],
    inputs=lambda rng: {"x": rng.uniform(1, 2, (200, 2)).astype(np.float16), "start": 3},
    outputs={"y": ((130, 2), "float16")},
    grid=(130, 1, 1),
    threadgroup=(64, 1, 1),
    tolerance=2**-10.5,
    constructs="functions.sinpi functions.cospi types.half2 types.long address_spaces.threadgroup_2d_array functions.clamp "
    "types.M_constants launch.edge_threadgroups",
)
def resampling_of_stereo(x, start):
    out = []
    for at in range(start, start + 130):
        place = at * 10 / 7
        taps = np.arange(at * 10 // 7 - 11, at * 10 // 7 + 13)
        d = taps - place
        window = 0.42 + 0.5 * np.cos(np.pi * d / 12) + 0.08 * np.cos(2 * np.pi * d / 12)
        w = np.sinc(d * 0.7) * window
        out.append(w @ x[np.clip(taps, 0, 199)].astype(np.float64) / w.sum())
    return np.array(out)


# ---- Series


@body(
    """
    // Over each series: mean, deviation and extremes of a window that moves, and the Holt-Winters forecast beside them. Windows
    // have two parts, as sums of blocks from the left and from the right do; a series is a simdgroup, its lanes neighbouring days.
    const int lane = thread_index_in_simdgroup, row = thread_position_in_grid.y;
    const int n = x_shape[1];
    device const float* in = x + row * n;
    for (int at = lane; at < n; at += 32) {
      const int begin = max(at - WINDOW + 1, 0), count = at - begin + 1;
      float sum = 0, low = INFINITY, high = -INFINITY;
      for (int j = begin; j <= at; ++j) {
        sum += in[j];
        low = fmin(low, in[j]);
        high = fmax(high, in[j]);
      }
      const float mean = sum / float(count);
      float squares = 0;
      for (int j = begin; j <= at; ++j) squares += (in[j] - mean) * (in[j] - mean);
      device float* to = rolling + (row * n + at) * 4;
      to[0] = mean;
      to[1] = count > 1 ? sqrt(squares / float(count - 1)) : NAN;
      to[2] = low;
      to[3] = high;
    }

    // Level, trend and seasons depend on the day before: one lane for each set of rates, all of them the same series.
    if (lane >= rates_shape[0]) return;
    const packed_float3 rate = ((device const packed_float3*)rates)[lane];
    float level = 0, trend = 0, season[PERIOD];
    for (int j = 0; j < PERIOD; ++j) level += in[j];
    level /= PERIOD;
    for (int j = 0; j < PERIOD; ++j) season[j] = in[j] - level;
    float error = 0;
    for (int at = PERIOD; at < n; ++at) {
      const int phase = at % PERIOD;
      const float expected = level + trend + season[phase];
      error += abs(in[at] - expected);
      const float last = level;
      level = mix(level + trend, in[at] - season[phase], rate.x);
      trend = mix(trend, level - last, rate.y);
      season[phase] = mix(season[phase], in[at] - level, rate.z);
    }
    device float* to = forecast + (row * rates_shape[0] + lane) * (PERIOD + 1);
    for (int j = 0; j < PERIOD; ++j) to[j] = level + float(j + 1) * trend + season[(n + j) % PERIOD];
    to[PERIOD] = error / float(n - PERIOD);
    """,
    template=[("WINDOW", 9), ("PERIOD", 7)],
    inputs=lambda rng: {
        "x": (
            100 + np.arange(70) * 0.3 + 10 * np.sin(np.arange(70) * 2 * np.pi / 7) + rng.normal(size=(3, 70)) * 2
        ).astype(np.float32),
        "rates": rng.uniform(0.05, 0.5, (5, 3)).astype(np.float32),
    },
    outputs={"rolling": ((3, 70, 4), "float32"), "forecast": ((3, 5, 8), "float32")},
    grid=(32, 3, 1),
    threadgroup=(32, 3, 1),
    tolerance=3e-6,
    constructs="functions.fmin functions.fmax functions.mix functions.sqrt types.NAN types.packed_vectors "
    "structure.dynamic_local_array structure.early_return types.INFINITY",
)
def rolling_and_forecast(x, rates):
    x = x.astype(np.float64)
    rolling = np.full((3, 70, 4), np.nan)
    for at in range(70):
        part = x[:, max(at - 8, 0) : at + 1]
        rolling[:, at, 0], rolling[:, at, 2], rolling[:, at, 3] = part.mean(axis=1), part.min(axis=1), part.max(axis=1)
        if at:
            rolling[:, at, 1] = part.std(axis=1, ddof=1)
    forecasts = []
    for series in x:
        for alpha, beta, gamma in rates.astype(np.float64):
            level, trend = series[:7].mean(), 0.0
            seasons, errors = list(series[:7] - level), []
            for value in series[7:]:
                errors.append(abs(value - level - trend - seasons[-7]))
                new = alpha * (value - seasons[-7]) + (1 - alpha) * (level + trend)
                trend, level = beta * (new - level) + (1 - beta) * trend, new
                seasons.append(gamma * (value - level) + (1 - gamma) * seasons[-7])
            forecasts.append([level + (j + 1) * trend + seasons[j - 7] for j in range(7)] + [np.mean(errors)])
    return rolling, np.array(forecasts).reshape(3, 5, 8)


@body(
    """
    // Dynamic time warping within a band, the cost of the best way and the way itself. Cells of an anti-diagonal are independent:
    // a thread for each place of the band, three diagonals in threadgroup memory, which turn round.
    threadgroup float diagonals[3][2 * BAND + 1];
    const int t = thread_index_in_threadgroup, pair = threadgroup_position_in_grid.x;
    const int n = a_lengths[pair], m = b_lengths[pair];
    device const float2* a = (device const float2*)first + pair * first_shape[1];
    device const float2* b = (device const float2*)second + pair * second_shape[1];
    device uchar* moves = steps + pair * first_shape[1] * second_shape[1];
    for (int k = 0; k < 3; ++k) diagonals[k][t] = INFINITY;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Thread t has cells with i - j = t - BAND.
    const int offset = t - BAND;
    int current = 0;
    for (int diagonal = 0; diagonal < n + m - 1; ++diagonal) {
      threadgroup float* now = diagonals[current];
      threadgroup const float* last = diagonals[(current + 2) % 3];
      threadgroup const float* before_last = diagonals[(current + 1) % 3];
      float own = INFINITY;
      // i + j = diagonal and i - j = offset: only every second thread has a cell.
      if (((diagonal + offset) & 1) == 0) {
        const int i = (diagonal + offset) / 2, j = (diagonal - offset) / 2;
        if (i >= 0 && j >= 0 && i < n && j < m) {
          const float cost = distance(a[i], b[j]);
          const float up = t > 0 ? last[t - 1] : INFINITY;                // i - 1
          const float left = t < 2 * BAND ? last[t + 1] : INFINITY;       // j - 1
          const float both = before_last[t];
          uchar move = 0;
          float best = both;
          if (up < best) best = up, move = 1;
          if (left < best) best = left, move = 2;
          if (diagonal == 0) best = 0;
          own = best + cost;
          moves[i * second_shape[1] + j] = move;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      now[t] = own;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      current = (current + 1) % 3;
    }
    threadgroup_barrier(mem_flags::mem_device);
    if (t != 0) return;
    totals[pair] = diagonals[(current + 2) % 3][n - m + BAND];
    int i = n - 1, j = m - 1, count = 0;
    while (true) {
      path[(pair * (first_shape[1] + second_shape[1]) + count) * 2] = ushort(i);
      path[(pair * (first_shape[1] + second_shape[1]) + count) * 2 + 1] = ushort(j);
      ++count;
      if (i == 0 && j == 0) break;
      switch (moves[i * second_shape[1] + j]) {
        case 0: --i, --j; break;
        case 1: --i; break;
        case 2: --j; break;
      }
    }
    lengths[pair] = count;
    """,
    template=[("BAND", 12)],
    inputs=lambda rng: {
        "first": np.cumsum(rng.integers(-3, 4, (3, 40, 2)), axis=1).astype(np.float32),
        "second": np.cumsum(rng.integers(-3, 4, (3, 36, 2)), axis=1).astype(np.float32),
        "a_lengths": np.array([40, 36, 5], np.int32),
        "b_lengths": np.array([36, 30, 9], np.int32),
    },
    outputs={
        "totals": ((3,), "float32"),
        "steps": ((3, 40, 36), "uint8"),
        "path": ((3, 76, 2), "uint16"),
        "lengths": ((3,), "int32"),
    },
    grid=(75, 1, 1),
    threadgroup=(25, 1, 1),
    init_value=0,
    tolerance=1e-6,
    constructs="functions.distance barriers.in_loop address_spaces.threadgroup_2d_array structure.switch structure.while "
    "simdgroup.partial types.float2 address_spaces.cast_to_vector",
)
def warping_in_time(first, second, a_lengths, b_lengths):
    totals, steps = np.zeros(3), np.zeros((3, 40, 36), np.uint8)
    path, lengths = np.zeros((3, 76, 2), np.uint16), np.zeros(3, np.int32)
    for p, (n, m) in enumerate(zip(a_lengths, b_lengths, strict=True)):
        cost = np.full((n + 1, m + 1), np.inf)
        for i in range(n):
            for j in range(m):
                if abs(i - j) <= 12:
                    ways = [cost[i, j], cost[i, j + 1], cost[i + 1, j]]
                    if i == j == 0:
                        ways[0] = 0
                    steps[p, i, j] = int(np.argmin(ways))
                    cost[i + 1, j + 1] = min(ways) + np.hypot(*(first[p, i] - second[p, j]).astype(np.float64))
        totals[p] = cost[n, m]
        i, j = n - 1, m - 1
        way = [(i, j)]
        while (i, j) != (0, 0):
            move = steps[p, i, j]
            i, j = i - (move != 2), j - (move != 1)
            way.append((i, j))
        path[p, : len(way)] = way
        lengths[p] = len(way)
    return totals, steps, path, lengths
