// pow and powr.
//
// x^y = 2^(y log2 x). The product is up to 150, so that its logarithm is needed to some 2^-34: it is a sum of two
// floats. x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log2 m = s (c1 + z (c3 + z t(z))) with s = (m - 1) / (m + 1)
// and z = s^2 <= 0.0295, where c1 and c3 are the first terms of the series, 2 log2(e) and 2/3 log2(e), as sums of two
// floats, and t has degree 2; good to 2^-36.
__KILN_EXACT_BEGIN
namespace __kiln {

// log2 of x > 0; of infinity and 0 too.
__KILN_INLINE float_pair log2_pair(float x) {
  bool tiny = x < 0x1p-126f;
  uint bits = bits_of(tiny ? x * 0x1p23f : x);
  int k = int(bits - bits_of(0x1.6a09e6p-1f)) >> 23;
  float m = float_of(bits - (uint(k) << 23));
  // (m - 1) / (m + 1); the numerator is exact.
  float_pair divisor = ordered_sum(1.0f, m);
  float inverse = 1.0f / divisor.high;
  float s = (m - 1.0f) * inverse;
  float s_low = fma(-s, divisor.low, fma(-s, divisor.high, m - 1.0f)) * inverse;
  float_pair z = exact_product(s, s);
  z.low = fma(s + s, s_low, z.low);
  float t = __KILN_POLYNOMIAL_3(z.high, 0x1.27771p-1f, 0x1.a5ba72p-2f, 0x1.5a11d6p-2f);
  float_pair c = ordered_sum(0x1.ec709ep-1f, z.high * t);
  c.low += -0x1.e2fe02p-28f;
  float_pair v = exact_product(z.high, c.high);
  v.low = fma(z.low, c.high, fma(z.high, c.low, v.low));
  c = ordered_sum(0x1.715476p+1f, v.high);
  c.low += v.low + 0x1.4ae0cp-25f;
  float_pair p = exact_product(s, c.high);
  p.low = fma(s_low, c.high, fma(s, c.low, p.low));
  float_pair sum = ordered_sum(float(tiny ? k - 23 : k), p.high);
  sum = ordered_sum(sum.high, sum.low + p.low);
  bool regular = x > 0 && x < infinity;
  return {regular ? sum.high : x == 0 ? -infinity : x, regular ? sum.low : 0.0f};
}

// 2^(high + low), where `low` matters only if `high` is below 200.
__KILN_INLINE float exp2_pair(float high, float low) {
  bool large = !(magnitude(high) < 200.0f);
  high = large ? float_of(sign_bit(high) | bits_of(200.0f)) : high;
  low = large ? 0.0f : low;
  float sum = high + rounder;
  float rest = high - (sum - rounder);
  float_pair f = ordered_sum(rest, low);
  // `rest` may be smaller than `low`; then it is 0 or the error is far below what the result shows.
  float t = __KILN_POLYNOMIAL_6(f.high, 0x1.62c8cep-26f, 0x1.ebfbdcp-3f, 0x1.c6aee6p-5f, 0x1.3b2d74p-7f,
                                0x1.5f3fa4p-10f, 0x1.41e494p-13f);
  float e = fma(f.high, 0x1.62e43p-1f, fma(f.low, 0x1.62e43p-1f, f.high * t)) + 1.0f;
  return scale(e, integer_of(sum));
}

// |x|^y for numbers.
__KILN_INLINE float power_of_magnitude(float x, float y) {
  float_pair l = log2_pair(magnitude(x));
  float_pair p = exact_product(y, l.high);
  return exp2_pair(p.high, fma(y, l.low, p.low));
}

}  // namespace __kiln

namespace metal {

// A square is the exponent that kernels are written with most: a product, correctly rounded. A `y` that is known leaves
// the product alone or nothing of it; another one costs a comparison and the product. The choice is by value, not by what
// a compiler knows, so that it is the same on every engine.
namespace precise {
// As in C: 1 for y = 0 and for x = 1, whatever the other is. Largest error: 0.911 ULP.
__KILN_INLINE float pow(float x, float y) {
  float result = y == 2.0f ? x * x : __kiln::power_of_magnitude(x, y);
  bool is_integer = __builtin_truncf(y) == y, is_even = __builtin_truncf(0.5f * y) == 0.5f * y;
  result = __kiln::flip_sign(result, is_integer && !is_even ? __kiln::sign_bit(x) : 0);
  bool is_number = x == x && y == y && !(x < 0 && x > -__kiln::infinity && !is_integer);
  result = is_number ? result : __kiln::not_a_number;
  bool is_one = x == 1.0f || y == 0 || (x == -1.0f && __kiln::magnitude(y) == __kiln::infinity);
  return is_one ? 1.0f : result;
}

// x^y for x >= 0, as IEEE 754 defines it: a NaN for x < 0, 0^0, infinity^0 and 1^infinity. Errors as for pow.
__KILN_INLINE float powr(float x, float y) {
  float result = y == 2.0f ? x * x : __kiln::power_of_magnitude(x, y);
  // The product that is the exponent is a NaN in the cases named above and for NaNs.
  float exponent = y * (x == 1.0f ? 0.0f : x == 0 ? -__kiln::infinity : x == __kiln::infinity ? x : 1.0f);
  return x >= 0 && exponent == exponent ? result : __kiln::not_a_number;
}
}  // namespace precise

__KILN_APPROXIMATED_2(pow)
__KILN_APPROXIMATED_2(powr)

}  // namespace metal
__KILN_EXACT_END
