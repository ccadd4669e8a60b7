// asin, acos, atan and atan2.
//
// atan q = q + q^3 a(q^2) with a of degree 8 for q in [0, 1]; larger arguments go through 1 / q. asin s = s + s^3
// p(s^2) with p of degree 4 for s in [0, 1/2]; larger arguments go through asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)).
// Both are good to 2^-27 of the function. Parts of pi are added as sums of two floats.
__KILN_EXACT_BEGIN
namespace __kiln {

// base - (high + low), where |base| >= |high| or base is 0, and base_low belongs to base.
__KILN_INLINE float take_from(float base, float base_low, float high, float low) {
  float_pair s = ordered_sum(base, -high);
  return s.high + (s.low + (base_low - low));
}

// atan(q) - q for q in [0, 1].
__KILN_INLINE float atan_tail(float q) {
  float z = q * q;
  float a = __KILN_POLYNOMIAL_9(z, -0x1.55554p-2f, 0x1.999268p-3f, -0x1.24265ap-3f, 0x1.c0ccp-4f, -0x1.58c962p-4f,
                                0x1.dccd6ep-5f, -0x1.016e24p-5f, 0x1.6a026p-7f, -0x1.de005ep-10f);
  return q * z * a;
}

// asin(s) - s with z = s^2, for |s| <= 1/2.
__KILN_INLINE float asin_tail(float s, float z) {
  float p = __KILN_POLYNOMIAL_5(z, 0x1.5555cap-3f, 0x1.33016ap-4f, 0x1.748a2cp-5f, 0x1.8bb538p-6f, 0x1.59cc8ep-5f);
  return s * z * p;
}

}  // namespace __kiln

namespace metal {

// Largest error: 1.165 ULP.
__KILN_INLINE float asin(float x) {
  float a = __kiln::magnitude(x);
  bool large = a > 0.5f;
  float z = large ? (1.0f - a) * 0.5f : a * a;
  float s = large ? __kiln::sqrt(z) : a;
  float tail = __kiln::asin_tail(s, z);
  float result = large ? __kiln::take_from(0x1.921fb6p+0f, -0x1.777a5cp-25f, 2.0f * s, 2.0f * tail) : s + tail;
  return __kiln::flip_sign(result, __kiln::sign_bit(x));
}

// Largest error: 1.133 ULP.
__KILN_INLINE float acos(float x) {
  float a = __kiln::magnitude(x);
  bool large = a > 0.5f;
  float z = large ? (1.0f - a) * 0.5f : a * a;
  float s = large ? __kiln::sqrt(z) : a;
  float tail = __kiln::asin_tail(s, z);
  // pi/2 - asin x, pi - 2 asin s for x < -1/2, 2 asin s for x > 1/2.
  bool is_double = large && x > 0;
  float base = is_double ? 0.0f : large ? 0x1.921fb6p+1f : 0x1.921fb6p+0f;
  float base_low = is_double ? 0.0f : large ? -0x1.777a5cp-24f : -0x1.777a5cp-25f;
  float factor = is_double ? -2.0f : large ? 2.0f : x < 0 ? -1.0f : 1.0f;
  return __kiln::take_from(base, base_low, factor * s, factor * tail);
}

// Largest error: 1.21 ULP.
__KILN_INLINE float atan(float x) {
  float a = __kiln::magnitude(x);
  bool large = a > 1.0f;
  float q = large ? 1.0f / a : a;
  // What the rounding of 1 / a took.
  float low = large && a < 0x1p24f ? __kiln::fma(-q, a, 1.0f) * q : 0.0f;
  float tail = __kiln::atan_tail(q) + low;
  float result = large ? __kiln::take_from(0x1.921fb6p+0f, -0x1.777a5cp-25f, q, tail) : q + tail;
  return __kiln::flip_sign(result, __kiln::sign_bit(x));
}

// Largest error: 1.428 ULP.
__KILN_INLINE float atan2(float y, float x) {
  float a = __kiln::magnitude(x), b = __kiln::magnitude(y);
  bool steep = b > a;
  float small = steep ? a : b, large = steep ? b : a;
  // Two zeros and two infinities of any signs have angles too.
  float q = small == large ? (large == 0 ? 0.0f : 1.0f) : small / large;
  // What the rounding of the quotient took, where neither it nor what it is made of is near the ends of the range.
  float low = __kiln::fma(-q, large, small) * __kiln::rough_reciprocal(large);
  float tail = __kiln::atan_tail(q) + (q > 0x1p-20f && large > 0x1p-80f && large < 0x1p80f ? low : 0.0f);
  // atan q, pi - atan q, pi/2 - atan q or pi/2 + atan q.
  bool backward = __kiln::sign_bit(x) != 0;
  float base = steep ? 0x1.921fb6p+0f : backward ? 0x1.921fb6p+1f : 0.0f;
  float base_low = steep ? -0x1.777a5cp-25f : backward ? -0x1.777a5cp-24f : 0.0f;
  uint sign = steep == backward ? 0x80000000 : 0;
  float result = __kiln::take_from(base, base_low, __kiln::flip_sign(q, sign), __kiln::flip_sign(tail, sign));
  return __kiln::flip_sign(result, __kiln::sign_bit(y));
}

__KILN_THROUGH_FLOAT_1(asin)
__KILN_THROUGH_FLOAT_1(acos)
__KILN_THROUGH_FLOAT_1(atan)
__KILN_THROUGH_FLOAT_2(atan2)

}  // namespace metal
__KILN_EXACT_END
