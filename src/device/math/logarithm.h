// log, log2 and log10, and what other files need of them.
//
// x = 2^k (1 + f) with 1 + f in [2/3, 4/3), where f is exact. log(1 + f) = f + f^2 t(f) with t of degree 8, good to
// 2^-27 of the logarithm; t has log_b(1 + f) = f log_b(e) + f^2 t(f) in the other bases. The sum of k log_b(2) and the
// first term keeps its rounding error.
__KILN_EXACT_BEGIN
namespace __kiln {

// x > 0 as 2^k (1 + f).
struct scaled_number {
  float k, f;
};
__KILN_INLINE scaled_number take_power(float x) {
  bool tiny = x < 0x1p-126f;
  uint bits = bits_of(tiny ? x * 0x1p23f : x);
  int k = int(bits - bits_of(0x1.555556p-1f)) >> 23;
  return {float(tiny ? k - 23 : k), float_of(bits - (uint(k) << 23)) - 1.0f};
}

// k ln 2 + log(1 + f) + low for |f| <= 1/3.
__KILN_INLINE float log_sum(float k, float f, float low) {
  float_pair s = ordered_sum(k * 0x1.62e4p-1f, f);  // the product is exact, as in reduce_power
  float t = __KILN_POLYNOMIAL_9(f, -0x1p-1f, 0x1.55550cp-2f, -0x1.fffe5ep-3f, 0x1.99ce36p-3f, -0x1.55b7f2p-3f,
                                0x1.1ef234p-3f, -0x1.f03adap-4f, 0x1.1df0dap-3f, -0x1.0e2d78p-3f);
  return s.high + fma(f * f, t, fma(k, 0x1.7f7d1cp-20f, s.low + low));
}

// `result`, or what a logarithm gives where x is no positive finite number.
__KILN_INLINE float log_or_special(float x, float result) {
  result = x < infinity ? result : x;
  return x > 0 ? result : x == 0 ? -infinity : not_a_number;
}

// log(1 + x + low) for x >= -1 + 2^-24 below 2^60, plus `doublings` ln 2.
__KILN_INLINE float log1p_pair(float x, float low, float doublings) {
  float sum = 1.0f + x;
  int k = int(bits_of(sum) - bits_of(0x1.555556p-1f)) >> 23;
  float s = power_of_two(-k);
  float f = fma(s, x, s - 1.0f);
  low = fma(s, low, fma(s, x, (s - 1.0f) - f));
  return log_sum(float(k) + doublings, f, fma(-f, low, low));
}

// log(1 + x). Largest error: 0.915 ULP.
__KILN_INLINE float log1p(float x) {
  // Beyond 2^50 the one does not matter, and 2^-k would leave the floats.
  bool large = x > 0x1p50f;
  float result = log1p_pair(large ? x * 0x1p-64f : x, 0, 0);
  scaled_number n = take_power(x);
  result = large ? log_sum(n.k, n.f, 0) : result;
  result = log_or_special(1.0f + x, result);
  return x == 0 ? x : result;
}

}  // namespace __kiln

namespace metal {

namespace precise {
// Largest error: 0.883 ULP.
__KILN_INLINE float log(float x) {
  __kiln::scaled_number n = __kiln::take_power(x);
  return __kiln::log_or_special(x, __kiln::log_sum(n.k, n.f, 0));
}

// Largest error: 0.918 ULP.
__KILN_INLINE float log2(float x) {
  __kiln::scaled_number n = __kiln::take_power(x);
  __kiln::float_pair p = __kiln::exact_product(n.f, 0x1.715476p+0f);
  __kiln::float_pair s = __kiln::ordered_sum(n.k, p.high);
  float t = __KILN_POLYNOMIAL_9(n.f, -0x1.715478p-1f, 0x1.ec702ap-2f, -0x1.715272p-2f, 0x1.279e88p-2f, -0x1.ed2348p-3f,
                                0x1.9dc6fp-3f, -0x1.64ad54p-3f, 0x1.9d64dp-3f, -0x1.89de38p-3f);
  float low = __kiln::fma(n.f, 0x1.4ae0cp-26f, p.low + s.low);
  return __kiln::log_or_special(x, s.high + __kiln::fma(n.f * n.f, t, low));
}

// Largest error: 1.136 ULP.
__KILN_INLINE float log10(float x) {
  __kiln::scaled_number n = __kiln::take_power(x);
  __kiln::float_pair p = __kiln::exact_product(n.f, 0x1.bcb7b2p-2f);
  __kiln::float_pair s = __kiln::ordered_sum(n.k * 0x1.344p-2f, p.high);
  float t = __KILN_POLYNOMIAL_9(n.f, -0x1.bcb7b2p-3f, 0x1.287a32p-3f, -0x1.bcb5f2p-4f, 0x1.63f57p-4f, -0x1.28d712p-4f,
                                0x1.f24e5ep-5f, -0x1.ae8b24p-5f, 0x1.f176dp-5f, -0x1.d6d574p-5f);
  float low = __kiln::fma(n.f, -0x1.5b235ep-27f, __kiln::fma(n.k, 0x1.3509f8p-18f, p.low + s.low));
  return __kiln::log_or_special(x, s.high + __kiln::fma(n.f * n.f, t, low));
}
}  // namespace precise

// An instruction's log2 times ln 2 is off by up to 3.2 units, and fast math allows 3.
__KILN_INLINE float log(float x) { return precise::log(x); }
__KILN_OTHER_FORMS_1(log)
namespace fast {
using metal::log;
}
namespace precise {
__KILN_OTHER_FORMS_1(log)
}
__KILN_APPROXIMATED_1(log2)
__KILN_APPROXIMATED_1(log10)

}  // namespace metal
__KILN_EXACT_END
