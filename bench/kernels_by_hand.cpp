// The kernels of kernels.py as one writes them in C++ for a processor with vectors, at their best: what they are
// measured against. bench/engines.py compiles this file once for each instruction set, with AVX-512 and with AVX2.
//
// What the compiler vectorises by itself is a plain loop; what it does not (loops that lanes leave one by one, sums in
// an order of one's own, registers kept over a loop) is written with the compiler's vectors, `Floats`, which GCC and
// Clang both have, and intrinsics where the two instruction sets differ. Threads are OpenMP's. Sums may be in any order
// and products be contracted; functions are as exact as a good library's, 4 ulp at most.
//
// Rejected: what only holds for these arrays (a count of channels known when compiling), and what makes of a kernel
// another one (histograms of each thread, added up later, where the kernel has atomics); prefetches, which are tuned to
// a machine (the grid sample would gain a fifth where its image is not in the caches).
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "corners.h"

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef float FloatsAnywhere __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint32_t WordsAnywhere __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

inline Floats load(const float* from) { return *reinterpret_cast<const FloatsAnywhere*>(from); }
inline Words load(const uint32_t* from) { return *reinterpret_cast<const WordsAnywhere*>(from); }
inline void store(float* to, Floats values) { *reinterpret_cast<FloatsAnywhere*>(to) = values; }
inline Floats all(float value) { return Floats{} + value; }

#if defined(__AVX512F__)
inline Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats rounded(Floats a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// a * 2^n, also where 2^n is no float.
inline Floats scaled(Floats a, Floats n) { return _mm512_scalef_ps(a, n); }
inline Floats reciprocal_root_estimate(Floats a) { return _mm512_rsqrt14_ps(a); }
inline Floats root_of(Floats a) { return _mm512_sqrt_ps(a); }
inline bool any(Ints mask) { return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0; }
inline float sum_of(Floats a) { return _mm512_reduce_add_ps(a); }
inline float largest_of(Floats a) { return _mm512_reduce_max_ps(a); }
inline Floats as_floats(Words a) { return _mm512_cvtepi32_ps((__m512i)a); }
inline Floats as_floats(const uint16_t* halves) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves)));
}
#else
inline Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
inline Floats rounded(Floats a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Floats power_of_two(__m256i n) {
  return (Floats)_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23);
}
inline Floats scaled(Floats a, Floats n) {
  __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  return a * power_of_two(half) * power_of_two(_mm256_sub_epi32(whole, half));
}
inline Floats reciprocal_root_estimate(Floats a) { return _mm256_rsqrt_ps(a); }
inline Floats root_of(Floats a) { return _mm256_sqrt_ps(a); }
inline bool any(Ints mask) { return !_mm256_testz_si256((__m256i)mask, (__m256i)mask); }
inline float sum_of(Floats a) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest_of(Floats a) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline Floats as_floats(Words a) { return _mm256_cvtepi32_ps((__m256i)a); }
inline Floats as_floats(const uint16_t* halves) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}
#endif

// 2^n * e^r with |r| <= ln(2) / 2; the coefficients are Cephes'. Right from -104, below which a float is 0, to
// infinity; NaN stays: min and max give their second operand where one is a NaN.
inline Floats exponential(Floats x) {
  x = smaller(all(89.0f), larger(all(-104.0f), x));
  Floats n = rounded(x * 1.44269504088896341f);
  Floats r = fused(n, all(-0.693359375f), x);
  r = fused(n, all(2.12194440e-4f), r);
  Floats sum = all(1.9875691500e-4f);
  sum = fused(sum, r, all(1.3981999507e-3f));
  sum = fused(sum, r, all(8.3334519073e-3f));
  sum = fused(sum, r, all(4.1665795894e-2f));
  sum = fused(sum, r, all(1.6666665459e-1f));
  sum = fused(sum, r, all(5.0000001201e-1f));
  return scaled(fused(sum, r * r, r + 1), n);
}

// One step of Newton's makes of 12 bits or 14 bits 23, to 2 ulp.
inline Floats reciprocal_root(Floats a) {
  Floats estimate = reciprocal_root_estimate(a);
  Floats half = estimate * 0.5f;
  return fused(half, fused(a * estimate, -estimate, all(1.0f)), estimate);
}

// The same, correctly rounded, where no square underflows: the first terms in what is left of the root and of the
// division, both exact. With 1/2 one mantissa of all would be rounded to the wrong side, with the float below it none
// is.
inline Floats rounded_reciprocal_root(Floats a) {
  Floats root = root_of(a), missing = fused(-root, root, a), inverse = all(1.0f) / root;
  Floats left = fused(-inverse, root, all(1.0f));
  return fused(inverse, fused(-(missing * inverse), inverse * 0x1.fffffep-2f, left), inverse);
}

}  // namespace

extern "C" void exp_of(const float* x, float* out, int64_t count) {
  int64_t vectors = count / kLanes;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < vectors; ++i) store(out + i * kLanes, exponential(load(x + i * kLanes)));
  for (int64_t i = vectors * kLanes; i < count; ++i) out[i] = exponential(all(x[i]))[0];
}

// x [batch, height, width, channels], grid [batch, places, 2], out [batch, places, channels].
extern "C" void grid_sample(const float* x, const float* grid, float* out, int64_t batch, int64_t height, int64_t width,
                            int64_t channels, int64_t places) {
  // What a corner outside the image reads; its share becomes 0.
  const std::vector<float> nothing(static_cast<size_t>(channels), 0.0f);
#pragma omp parallel for schedule(static)
  for (int64_t place = 0; place < batch * places; ++place) {
    Corners corners = locate(grid, place, places, height, width, channels);
    const float* from[4];
    for (int i = 0; i < 4; ++i) from[i] = corners.offset[i] < 0 ? nothing.data() : x + corners.offset[i];
    float* to = out + place * channels;
    const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    const float wa = corners.share[0], wb = corners.share[1], wc = corners.share[2], wd = corners.share[3];
#pragma omp simd
    for (int64_t i = 0; i < channels; ++i) to[i] = wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i];
  }
}

// Places share pixels, so that adding to them is atomic.
extern "C" void grid_sample_vjp(const float* x, const float* grid, const float* cotangents, float* x_grad,
                                float* grid_grad, int64_t batch, int64_t height, int64_t width, int64_t channels,
                                int64_t places) {
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t row = 0; row < batch * height; ++row)
      std::memset(x_grad + row * width * channels, 0, static_cast<size_t>(width * channels) * sizeof(float));
#pragma omp for schedule(static)
    for (int64_t place = 0; place < batch * places; ++place) {
      Corners corners = locate(grid, place, places, height, width, channels);
      const float* cotangent = cotangents + place * channels;
      float slope_x = 0, slope_y = 0;
      for (int i = 0; i < 4; ++i) {
        if (corners.offset[i] < 0) continue;
        const float* value = x + corners.offset[i];
        float product = 0;
#pragma omp simd reduction(+ : product)
        for (int64_t k = 0; k < channels; ++k) product += value[k] * cotangent[k];
        float* to = x_grad + corners.offset[i];
        for (int64_t k = 0; k < channels; ++k)
          std::atomic_ref(to[k]).fetch_add(corners.share[i] * cotangent[k], std::memory_order_relaxed);
        slope_x += corners.by_x[i] * product;
        slope_y += corners.by_y[i] * product;
      }
      grid_grad[2 * place] = slope_x * width / 2;
      grid_grad[2 * place + 1] = slope_y * height / 2;
    }
  }
}

extern "C" void softmax(const float* x, float* out, int64_t rows, int64_t length) {
  int64_t whole = length / kLanes * kLanes;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * length;
    float* to = out + row * length;
    // Clang does not vectorise a maximum whose NaNs it must keep.
    Floats two_largest[2] = {all(-INFINITY), all(-INFINITY)};
    int64_t at = 0;
    for (; at + 2 * kLanes <= length; at += 2 * kLanes)
      for (int v = 0; v < 2; ++v) two_largest[v] = larger(two_largest[v], load(from + at + v * kLanes));
    float largest = largest_of(larger(two_largest[0], two_largest[1]));
    for (; at < length; ++at) largest = std::max(largest, from[at]);
    Floats sums = {};
    for (int64_t i = 0; i < whole; i += kLanes) {
      Floats value = exponential(load(from + i) - largest);
      store(to + i, value);
      sums += value;
    }
    float sum = sum_of(sums);
    for (int64_t i = whole; i < length; ++i) sum += to[i] = exponential(all(from[i] - largest))[0];
    const float factor = 1 / sum;
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) to[i] *= factor;
  }
}

extern "C" void rms_norm(const float* x, const float* weight, const float* eps, float* out, int64_t rows,
                         int64_t length) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * length;
    float* to = out + row * length;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < length; ++i) sum += from[i] * from[i];
    const float factor = 1 / std::sqrt(sum / length + *eps);
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) to[i] = weight[i] * (from[i] * factor);
  }
}

// Of blocks of 4096.
extern "C" void reduction(const float* x, float* out, int64_t blocks) {
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const float* from = x + block * 4096;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < 4096; ++i) sum += from[i];
    out[block] = sum;
  }
}

// Sums up to and with each element, of rows of 256.
extern "C" void scan(const float* x, float* out, int64_t rows) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * 256;
    float* to = out + row * 256;
#if defined(__AVX512F__)
    __m512 before = _mm512_setzero_ps();
    for (int64_t i = 0; i < 256; i += 16) {
      __m512 a = load(from + i);
      a += (__m512)_mm512_bslli_epi128((__m512i)a, 4);
      a += (__m512)_mm512_bslli_epi128((__m512i)a, 8);
      // The sums of quarters into those above. Shuffles with zeros would become vexpandps, which is slow.
      __m512 sums = _mm512_permute_ps(a, 0xff);
      a += _mm512_maskz_shuffle_f32x4(0xfff0, sums, sums, _MM_SHUFFLE(2, 1, 0, 0));
      sums = _mm512_permute_ps(a, 0xff);
      a += _mm512_maskz_shuffle_f32x4(0xff00, sums, sums, _MM_SHUFFLE(1, 0, 0, 0));
      store(to + i, a + before);
      // The chain from vector to vector is this sum alone.
      before += _mm512_permutexvar_ps(_mm512_set1_epi32(15), a);
    }
#else
    __m256 before = _mm256_setzero_ps();
    for (int64_t i = 0; i < 256; i += 8) {
      __m256 a = load(from + i);
      a += (__m256)_mm256_slli_si256((__m256i)a, 4);
      a += (__m256)_mm256_slli_si256((__m256i)a, 8);
      // The lower half's sum into the upper half.
      a += _mm256_permute_ps(_mm256_permute2f128_ps(a, a, 0x08), 0xff);
      store(to + i, a + before);
      before += _mm256_permutevar8x32_ps(a, _mm256_set1_epi32(7));
    }
#endif
  }
}

namespace {

// Several at a time, since one step waits for the one before it; as many as registers are there for.
#if defined(__AVX512F__)
constexpr int kOrbitVectors = 4;
#else
constexpr int kOrbitVectors = 2;
#endif

}  // namespace

extern "C" void mandelbrot(int32_t* out, int64_t height, int64_t width) {
  constexpr int kVectors = kOrbitVectors, kPlaces = kVectors * kLanes;
  alignas(64) float count[kLanes];
  for (int i = 0; i < kLanes; ++i) count[i] = static_cast<float>(i);
  const Floats from_zero = load(count);
// Rows differ in work, and neighbours less.
#pragma omp parallel for schedule(static, 4)
  for (int64_t row = 0; row < height; ++row) {
    const float cy = -1.2f + 2.4f * row / height;
    for (int64_t first = 0; first < width; first += kPlaces) {
      Floats cx[kVectors], x[kVectors], y[kVectors];
      Ints steps[kVectors], live[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        cx[v] = -2.2f + 3.2f * (from_zero + static_cast<float>(first + v * kLanes)) / static_cast<float>(width);
        x[v] = y[v] = Floats{};
        steps[v] = Ints{};
        live[v] = Ints{} - 1;
      }
      for (int step = 0; step < 200; ++step) {
        Ints left = {};
        for (int v = 0; v < kVectors; ++v) {
          Floats xx = x[v] * x[v], yy = y[v] * y[v];
          live[v] &= xx + yy <= 4;
          steps[v] -= live[v];
          left |= live[v];
          y[v] = fused(2 * x[v], y[v], all(cy));
          x[v] = xx - yy + cx[v];
        }
        if (!any(left)) break;
      }
      int32_t* to = out + row * width + first;
      const int64_t places = std::min<int64_t>(kPlaces, width - first);
      std::memcpy(to, steps, static_cast<size_t>(places) * sizeof(int32_t));
    }
  }
}

namespace {

// Rows by vectors that stay in registers.
#if defined(__AVX512F__)
constexpr int kBlockRows = 12, kBlockVectors = 2;
#else
constexpr int kBlockRows = 6, kBlockVectors = 2;
#endif

// `rows` rows of a, of length inner, times a panel [inner, kBlockVectors * kLanes].
template <int rows>
void multiply_block(const float* a, const float* panel, float* out, int64_t inner, int64_t width) {
  Floats sums[rows][kBlockVectors] = {};
  for (int64_t k = 0; k < inner; ++k) {
    Floats b[kBlockVectors];
    for (int v = 0; v < kBlockVectors; ++v) b[v] = load(panel + (k * kBlockVectors + v) * kLanes);
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row) {
      Floats factor = all(a[row * inner + k]);
      for (int v = 0; v < kBlockVectors; ++v) sums[row][v] = fused(factor, b[v], sums[row][v]);
    }
  }
  for (int row = 0; row < rows; ++row)
    for (int v = 0; v < kBlockVectors; ++v) store(out + row * width + v * kLanes, sums[row][v]);
}

}  // namespace

// a [height, inner], b [inner, width], out [height, width]; width a multiple of 32. The columns of b that a block needs
// lie one behind the other in a panel, which stays in the first cache.
extern "C" void matrix_product(const float* a, const float* b, float* out, int64_t height, int64_t inner,
                               int64_t width) {
  constexpr int64_t kColumns = kBlockVectors * kLanes;
#pragma omp parallel
  {
    std::vector<float> panel(static_cast<size_t>(inner * kColumns));
#pragma omp for schedule(static)
    for (int64_t column = 0; column < width; column += kColumns) {
      for (int64_t k = 0; k < inner; ++k)
        std::memcpy(panel.data() + k * kColumns, b + k * width + column, kColumns * sizeof(float));
      int64_t row = 0;
      for (; row + kBlockRows <= height; row += kBlockRows)
        multiply_block<kBlockRows>(a + row * inner, panel.data(), out + row * width + column, inner, width);
      for (; row + 2 <= height; row += 2)
        multiply_block<2>(a + row * inner, panel.data(), out + row * width + column, inner, width);
      for (; row < height; ++row)
        multiply_block<1>(a + row * inner, panel.data(), out + row * width + column, inner, width);
    }
  }
}

// The same of halves, with sums in float: the factors are floats before they are multiplied, a as a whole.
extern "C" void half_matrix_product(const uint16_t* a, const uint16_t* b, float* out, int64_t height, int64_t inner,
                                    int64_t width) {
  constexpr int64_t kColumns = kBlockVectors * kLanes;
  std::vector<float> rows(static_cast<size_t>(height * inner));
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t row = 0; row < height; ++row)
      for (int64_t k = 0; k < inner; k += kLanes) store(rows.data() + row * inner + k, as_floats(a + row * inner + k));
    std::vector<float> panel(static_cast<size_t>(inner * kColumns));
#pragma omp for schedule(static)
    for (int64_t column = 0; column < width; column += kColumns) {
      for (int64_t k = 0; k < inner; ++k)
        for (int v = 0; v < kBlockVectors; ++v)
          store(panel.data() + k * kColumns + v * kLanes, as_floats(b + k * width + column + v * kLanes));
      int64_t row = 0;
      for (; row + kBlockRows <= height; row += kBlockRows)
        multiply_block<kBlockRows>(rows.data() + row * inner, panel.data(), out + row * width + column, inner, width);
      for (; row + 2 <= height; row += 2)
        multiply_block<2>(rows.data() + row * inner, panel.data(), out + row * width + column, inner, width);
      for (; row < height; ++row)
        multiply_block<1>(rows.data() + row * inner, panel.data(), out + row * width + column, inner, width);
    }
  }
}

// weights [rows, length / 8] of eight numbers of 4 bits each, scales and biases [rows, length / 64], one for each group
// of 64 numbers; length a multiple of 128.
extern "C" void quantized(const float* x, const uint32_t* weights, const float* scales, const float* biases, float* out,
                          int64_t rows, int64_t length) {
  const int64_t words = length / 8, groups = length / 64;
  // The numbers of a vector's words are eight apart in the vector x; here they are next to one another. And the sums of
  // x that are multiplied by biases.
  std::vector<float> turned(static_cast<size_t>(length)), sums(static_cast<size_t>(groups), 0.0f);
  for (int64_t word = 0; word < words; ++word)
    for (int64_t i = 0; i < 8; ++i) {
      turned[static_cast<size_t>((word / kLanes * 8 + i) * kLanes + word % kLanes)] = x[8 * word + i];
      sums[static_cast<size_t>(word / 8)] += x[8 * word + i];
    }
  // As many rows at a time as there are registers for, so that x is read once for all of them.
  constexpr int kRows = 4;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < rows; first += kRows) {
    Floats total[kRows] = {};
    for (int64_t word = 0; word < words; word += kLanes) {
      Floats dot[kRows] = {};
      Words packed[kRows];
      for (int r = 0; r < kRows; ++r) packed[r] = load(weights + std::min(first + r, rows - 1) * words + word);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        Floats values = load(turned.data() + (word / kLanes * 8 + i) * kLanes);
        for (int r = 0; r < kRows; ++r) dot[r] = fused(as_floats((packed[r] >> (4 * i)) & 15), values, dot[r]);
      }
      for (int r = 0; r < kRows; ++r) {
        const float* scale = scales + std::min(first + r, rows - 1) * groups + word / 8;
#if defined(__AVX512F__)
        Floats both = _mm512_insertf32x8(_mm512_set1_ps(scale[0]), _mm256_set1_ps(scale[1]), 1);
#else
        Floats both = all(scale[0]);
#endif
        total[r] = fused(both, dot[r], total[r]);
      }
    }
    for (int64_t row = first; row < std::min(first + kRows, rows); ++row) {
      float bias = 0;
#pragma omp simd reduction(+ : bias)
      for (int64_t group = 0; group < groups; ++group)
        bias += biases[row * groups + group] * sums[static_cast<size_t>(group)];
      out[row] = sum_of(total[row - first]) + bias;
    }
  }
}

extern "C" void histogram(const uint8_t* x, uint32_t* out, int64_t count) {
  std::memset(out, 0, 256 * sizeof(uint32_t));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) std::atomic_ref(out[x[i]]).fetch_add(1, std::memory_order_relaxed);
}

namespace {

template <auto inverse_root>
void accelerate(const float* positions, float* out, int64_t count) {
  constexpr int kVectors = 2, kBodies = kVectors * kLanes;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < count; first += kBodies) {
    const int64_t bodies = std::min<int64_t>(kBodies, count - first);
    alignas(64) float here[3][kBodies] = {};
    for (int64_t i = 0; i < bodies; ++i)
      for (int64_t axis = 0; axis < 3; ++axis) here[axis][i] = positions[4 * (first + i) + axis];
    Floats x[kVectors], y[kVectors], z[kVectors], sum_x[kVectors] = {}, sum_y[kVectors] = {}, sum_z[kVectors] = {};
    for (int v = 0; v < kVectors; ++v) {
      x[v] = load(here[0] + v * kLanes);
      y[v] = load(here[1] + v * kLanes);
      z[v] = load(here[2] + v * kLanes);
    }
    for (int64_t other = 0; other < count; ++other) {
      const float* there = positions + 4 * other;
      for (int v = 0; v < kVectors; ++v) {
        Floats way_x = all(there[0]) - x[v], way_y = all(there[1]) - y[v], way_z = all(there[2]) - z[v];
        Floats squared = fused(way_x, way_x, fused(way_y, way_y, fused(way_z, way_z, all(0.01f))));
        Floats inverse = inverse_root(squared);
        Floats pull = all(there[3]) * inverse * (inverse * inverse);
        sum_x[v] = fused(way_x, pull, sum_x[v]);
        sum_y[v] = fused(way_y, pull, sum_y[v]);
        sum_z[v] = fused(way_z, pull, sum_z[v]);
      }
    }
    for (int64_t i = 0; i < bodies; ++i) {
      float* to = out + 4 * (first + i);
      to[0] = sum_x[i / kLanes][i % kLanes];
      to[1] = sum_y[i / kLanes][i % kLanes];
      to[2] = sum_z[i / kLanes][i % kLanes];
      to[3] = 0;
    }
  }
}

}  // namespace

// positions [count, 4] with masses last, out [count, 4] with 0 last.
extern "C" void n_body(const float* positions, float* out, int64_t count) {
  accelerate<reciprocal_root>(positions, out, count);
}

extern "C" void n_body_rounded(const float* positions, float* out, int64_t count) {
  accelerate<rounded_reciprocal_root>(positions, out, count);
}

// x [depth + 2, height + 2, width + 2] with strides in elements, out [depth, height, width].
extern "C" void stencil(const float* x, float* out, int64_t depth, int64_t height, int64_t width, int64_t plane,
                        int64_t line, int64_t next) {
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t i = 0; i < depth; ++i)
    for (int64_t j = 0; j < height; ++j) {
      const float* from = x + (i + 1) * plane + (j + 1) * line + next;
      float* to = out + (i * height + j) * width;
      auto sum_at = [=](int64_t k, int64_t step) {
        const float* at = from + k * step;
        float around = at[-plane] + at[plane] + at[-line] + at[line] + at[-step] + at[step];
        return (around - 6.0f * at[0]) * 0.1f + at[0];
      };
      // Neighbours are loaded as vectors only where they are known to be next to one another.
      if (next == 1) {
#pragma omp simd
        for (int64_t k = 0; k < width; ++k) to[k] = sum_at(k, 1);
      } else {
#pragma omp simd
        for (int64_t k = 0; k < width; ++k) to[k] = sum_at(k, next);
      }
    }
}

// What the machine can do: bytes that are copied, as STREAM counts them, and multiplications and additions.

extern "C" void copy(const float* x, float* out, int64_t count) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) out[i] = x[i];
}

// 2 * 12 * kLanes * count operations in each thread; gives how many threads there were. Twelve sums hide that an fma
// takes several cycles.
extern "C" int64_t multiply_and_add(float* out, int64_t count) {
  int64_t threads = 0;
#pragma omp parallel reduction(+ : threads)
  {
    threads += 1;
    Floats sums[12];
    for (int i = 0; i < 12; ++i) sums[i] = all(static_cast<float>(i));
    const Floats factor = all(out[0]), term = all(out[1]);
    for (int64_t k = 0; k < count; ++k) {
#pragma GCC unroll 12
      for (int i = 0; i < 12; ++i) sums[i] = fused(sums[i], factor, term);
    }
    Floats sum = {};
    for (int i = 0; i < 12; ++i) sum += sums[i];
#pragma omp critical
    out[2] += sum_of(sum);
  }
  return threads;
}

extern "C" int64_t lanes() { return kLanes; }
