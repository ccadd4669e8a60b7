// sinh, cosh, tanh and their inverses.
//
// With a = n ln 2 + r, up to the factor 2^(n-1): sinh a = (1 - t) cosh r + (1 + t) sinh r with t = 4^-n, cosh a the
// same with the signs of t turned, and tanh a their ratio. sinh r = r + r^3 s(r^2), cosh r = 1 + r^2 c(r^2), both of
// degree 2 and good to 2^-33 for |r| <= ln(2) / 2. So no difference of nearly equal numbers is rounded, however small a
// is.
//
// The inverses are logarithms of 1 + w, where w is a sum of two floats.
__KILN_EXACT_BEGIN
namespace __kiln {

// 2^(1-n) times sinh and cosh of n ln 2 + r.
struct hyperbolic_pair {
  int n;
  float_pair sinh, cosh;
};
__KILN_INLINE hyperbolic_pair sinh_and_cosh(float a) {
  reduced_power p = reduce_power(a);
  float z = p.r * p.r;
  float s = __KILN_POLYNOMIAL_3(z, 0x1.555556p-3f, 0x1.110fbep-7f, 0x1.a2e308p-13f);
  float c = __KILN_POLYNOMIAL_3(z, 0x1p-1f, 0x1.5554e6p-5f, 0x1.6d4f1ep-10f);
  float sinh_tail = fma(p.r * z, s, p.low), cosh_tail = z * c;
  float t = power_of_two(p.n > 30 ? -60 : -2 * p.n);
  float_pair minus = ordered_sum(1.0f, -t), plus = ordered_sum(1.0f, t);
  float sinh = fma(plus.high, p.r, minus.high), cosh = fma(minus.high, p.r, plus.high);
  float sinh_low = fma(plus.high, p.r, minus.high - sinh), cosh_low = fma(minus.high, p.r, plus.high - cosh);
  sinh_low += fma(plus.low, p.r, minus.low) + fma(minus.high, cosh_tail, plus.high * sinh_tail);
  cosh_low += fma(minus.low, p.r, plus.low) + fma(plus.high, cosh_tail, minus.high * sinh_tail);
  return {p.n, ordered_sum(sinh, sinh_low), ordered_sum(cosh, cosh_low)};
}

}  // namespace __kiln

namespace metal {

// Largest error: 0.754 ULP.
__KILN_INLINE float sinh(float x) {
  float a = __kiln::magnitude(x);
  __kiln::hyperbolic_pair h = __kiln::sinh_and_cosh(a > 91.0f ? 91.0f : a);
  return __kiln::flip_sign(__kiln::scale(h.sinh.high, h.n - 1), __kiln::sign_bit(x));
}

// Largest error: 0.729 ULP.
__KILN_INLINE float cosh(float x) {
  float a = __kiln::magnitude(x);
  __kiln::hyperbolic_pair h = __kiln::sinh_and_cosh(a > 91.0f ? 91.0f : a);
  return __kiln::scale(h.cosh.high, h.n - 1);
}

namespace precise {
// Largest error: 0.67 ULP.
__KILN_INLINE float tanh(float x) {
  float a = __kiln::magnitude(x);
  __kiln::hyperbolic_pair h = __kiln::sinh_and_cosh(a > 10.0f ? 10.0f : a);
  float inverse = 1.0f / h.cosh.high;
  float q = h.sinh.high * inverse;
  float rest = __kiln::fma(-q, h.cosh.high, h.sinh.high) + __kiln::fma(-q, h.cosh.low, h.sinh.low);
  return __kiln::flip_sign(__kiln::fma(rest, inverse, q), __kiln::sign_bit(x));
}
}  // namespace precise

// log(1 + w) with w = |x| + (sqrt(1 + x^2) - 1). Largest error: 1.171 ULP.
__KILN_INLINE float asinh(float x) {
  float a = __kiln::magnitude(x);
  bool large = a > 0x1p28f;  // the logarithm of 2a
  float b = large ? 0.0f : a;
  __kiln::float_pair square = __kiln::exact_product(b, b);
  __kiln::float_pair sum = b > 1.0f ? __kiln::ordered_sum(square.high, 1.0f) : __kiln::ordered_sum(1.0f, square.high);
  float root = __kiln::sqrt(sum.high);
  float root_low = (__kiln::fma(-root, root, sum.high) + (sum.low + square.low)) * (0.5f / root);
  __kiln::float_pair w = __kiln::ordered_sum(b, root - 1.0f);
  float result = __kiln::log1p_pair(w.high, w.low + root_low, 0);
  __kiln::scaled_number n = __kiln::take_power(a);
  result = large ? __kiln::log_sum(n.k + 1.0f, n.f, 0) : result;
  return __kiln::flip_sign(a < __kiln::infinity ? result : a, __kiln::sign_bit(x));
}

// log(1 + w) with w = t + sqrt(2t + t^2) and t = x - 1. Largest error: 0.908 ULP.
__KILN_INLINE float acosh(float x) {
  bool large = x > 0x1p28f;
  float t = large ? 1.0f : x - 1.0f;
  __kiln::float_pair square = __kiln::exact_product(t, t);
  __kiln::float_pair sum = t > 2.0f ? __kiln::ordered_sum(square.high, t + t) : __kiln::ordered_sum(t + t, square.high);
  float root = __kiln::sqrt(sum.high);
  float rest = __kiln::fma(-root, root, sum.high) + (sum.low + square.low);
  float root_low = root > 0 ? rest * (0.5f * __kiln::rough_reciprocal(root)) : root;  // a NaN stays one
  __kiln::float_pair w = __kiln::ordered_sum(root, t);
  float result = __kiln::log1p_pair(w.high, w.low + root_low, 0);
  __kiln::scaled_number n = __kiln::take_power(x);
  result = large ? __kiln::log_sum(n.k + 1.0f, n.f, 0) : result;
  return x < 1.0f ? __kiln::not_a_number : x < __kiln::infinity ? result : x;
}

// log(1 + w) / 2 with w = 2a / (1 - a). Largest error: 0.937 ULP.
__KILN_INLINE float atanh(float x) {
  float a = __kiln::magnitude(x);
  __kiln::float_pair divisor = __kiln::ordered_sum(1.0f, -a);
  float w = (a + a) / divisor.high;
  float rest = __kiln::fma(-w, divisor.low, __kiln::fma(-w, divisor.high, a + a));
  float result = 0.5f * __kiln::log1p_pair(w, rest * __kiln::rough_reciprocal(divisor.high), 0);
  result = a < 1.0f ? result : a == 1.0f ? __kiln::infinity : __kiln::not_a_number;
  return __kiln::flip_sign(result, __kiln::sign_bit(x));
}

__KILN_THROUGH_FLOAT_1(sinh)
__KILN_THROUGH_FLOAT_1(cosh)
__KILN_APPROXIMATED_1(tanh)
__KILN_THROUGH_FLOAT_1(asinh)
__KILN_THROUGH_FLOAT_1(acosh)
__KILN_THROUGH_FLOAT_1(atanh)

}  // namespace metal
__KILN_EXACT_END
