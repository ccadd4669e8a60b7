// Functions whose results are exact or correctly rounded.
__KILN_EXACT_BEGIN
namespace __kiln {

// a * b + c as a float; where it does not fit, the odd one of its two neighbours, so that rounding that once more to
// fewer bits gives what one rounding would have given. a * b must be exact in float.
__KILN_INLINE float odd_fma(float a, float b, float c) {
  float product = a * b;
  float sum = fma(a, b, c);
  float part = sum - product;
  float error = (product - (sum - part)) + (c - part);
  uint bits = bits_of(sum);
  bool is_wrong = (error > 0 || error < 0) && !(bits & 1);
  return float_of(is_wrong ? ((error > 0) == (sum > 0) ? bits + 1 : bits - 1) : bits);
}

// 2^-64 x, rounded in the same way.
__KILN_INLINE float odd_scale_down(float x) {
  float result = x * 0x1p-64f;
  float back = magnitude(result) * 0x1p64f;
  uint bits = bits_of(result);
  bool is_wrong = back != magnitude(x) && !(bits & 1);
  return float_of(is_wrong ? (back < magnitude(x) ? bits + 1 : bits - 1) : bits);
}

// 1 / sqrt(x), correctly rounded: an estimate y within one unit, and y / 2 times r, the first term of the series in the
// residual r = 1 - x y^2, which is known exactly enough from two fma. One mantissa would be rounded to the wrong side
// for want of the second term, 3/8 y r^2; with the float below 1/2 none is (tools/check_math.py). Nothing in it leaves
// the range of floats: x y is the root. Of 0 and infinity y is the result, and the residual is a NaN: any other number
// in its place leaves y as it is, and residuals, 2^-22 at most, are below the one that is taken.
__KILN_INLINE float rounded_rsqrt(float x) {
  float y = 1.0f / sqrt(x);
  float_pair p = exact_product(x, y);
  float residual = fma(-p.low, y, fma(-p.high, y, 1.0f));
  return __kiln_rounded_rsqrt(x, fma(y * 0x1.fffffep-2f, residual < 0x1p-20f ? residual : 0x1p-20f, y));
}

}  // namespace __kiln

namespace metal {

__KILN_INLINE float floor(float x) { return __builtin_floorf(x); }
__KILN_INLINE float ceil(float x) { return __builtin_ceilf(x); }
__KILN_INLINE float trunc(float x) { return __builtin_truncf(x); }
__KILN_INLINE float rint(float x) { return __builtin_rintf(x); }
__KILN_THROUGH_FLOAT_1(floor)
__KILN_THROUGH_FLOAT_1(ceil)
__KILN_THROUGH_FLOAT_1(trunc)
__KILN_THROUGH_FLOAT_1(rint)

// Halves away from zero.
__KILN_INLINE float round(float x) {
  float t = __builtin_truncf(x);
  return __builtin_fabsf(x - t) >= 0.5f ? t + __builtin_copysignf(1.0f, x) : t;
}
__KILN_THROUGH_FLOAT_1(round)

__KILN_INLINE float fabs(float x) { return __builtin_fabsf(x); }
__KILN_THROUGH_FLOAT_1(fabs)
#define __KILN_INTEGER_ABS(T) \
  __KILN_INLINE T abs(T x) { return x < 0 ? T(-x) : x; }
__KILN_SIGNED_TYPES(__KILN_INTEGER_ABS)
#define __KILN_UNSIGNED_ABS(T) \
  __KILN_INLINE T abs(T x) { return x; }
__KILN_UNSIGNED_TYPES(__KILN_UNSIGNED_ABS)
__KILN_INLINE float abs(float x) { return __builtin_fabsf(x); }
__KILN_THROUGH_FLOAT_1(abs)

__KILN_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
__KILN_THROUGH_FLOAT_2(copysign)

// -1, -0, +0 or 1; 0 for a NaN.
__KILN_INLINE float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f; }
__KILN_THROUGH_FLOAT_1(sign)

namespace precise {
__KILN_INLINE float sqrt(float x) { return __kiln::sqrt(x); }
}  // namespace precise
// The square root of a half, rounded to float first, rounds to the same half: 24 >= 2 * 11 + 2 bits.
__KILN_APPROXIMATED_1(sqrt)

__KILN_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__KILN_INLINE half fma(half a, half b, half c) { return half(__kiln::odd_fma(a, b, c)); }
__KILN_INLINE bfloat fma(bfloat a, bfloat b, bfloat c) {
  float x = a, y = b, z = c;
  // A product below the normal floats is not exact.
  bool tiny = __kiln::magnitude(x * y) < 0x1p-60f && __kiln::magnitude(z) < 0x1p-60f;
  if (!tiny) return bfloat(__kiln::odd_fma(x, y, z));
  bool small = __kiln::magnitude(x) < 1.0f;
  return bfloat(__kiln::odd_scale_down(__kiln::odd_fma(small ? x * 0x1p64f : x, small ? y : y * 0x1p64f, z * 0x1p64f)));
}
__KILN_VECTOR_FORMS_3(fma)
__KILN_PRECISE_AND_FAST(fma)

__KILN_INLINE float rsqrt(float x) { return __kiln::__kiln_rsqrt(x, __kiln::rounded_rsqrt(x)); }
__KILN_OTHER_FORMS_1(rsqrt)
namespace fast {
using metal::rsqrt;
}
namespace precise {
__KILN_INLINE float rsqrt(float x) { return __kiln::rounded_rsqrt(x); }
__KILN_OTHER_FORMS_1(rsqrt)
}  // namespace precise

// x - floor(x), but below 1 in the argument's type.
__KILN_INLINE float fract(float x) {
  float f = x - __builtin_floorf(x);
  return f > 0x1.fffffep-1f ? 0x1.fffffep-1f : f;
}
__KILN_INLINE half fract(half x) {
  float f = float(x) - __builtin_floorf(float(x));
  return half(f > 0x1.ffcp-1f ? 0x1.ffcp-1f : f);
}
__KILN_INLINE bfloat fract(bfloat x) {
  float f = float(x) - __builtin_floorf(float(x));
  return bfloat(f > 0x1.fep-1f ? 0x1.fep-1f : f);
}
__KILN_VECTOR_FORMS_1(fract)
__KILN_PRECISE_AND_FAST(fract)

// x without its fraction in `integer`; both have the sign of x.
__KILN_INLINE float modf(float x, float& integer) {
  integer = __builtin_truncf(x);
  return __builtin_copysignf(__kiln::magnitude(x) == __kiln::infinity ? 0.0f : x - integer, x);
}
__KILN_RESULT_AND_REFERENCE(modf)

__KILN_INLINE float divide(float x, float y) { return x / y; }
__KILN_THROUGH_FLOAT_2(divide)

__KILN_INLINE float fdim(float x, float y) { return x > y ? x - y : x != x || y != y ? x + y : 0.0f; }
__KILN_THROUGH_FLOAT_2(fdim)

// The remainder of the division that is rounded towards zero; exact. A quotient of up to 277 bits is found 22 bits at
// a time: multiples of t = y 2^d are taken off, where the fma is exact, and corrected where the division rounded up.
__KILN_INLINE float fmod(float x, float y) {
  float a = __kiln::magnitude(x), b = __kiln::magnitude(y);
  if (!(a < __kiln::infinity && b > 0)) return __kiln::not_a_number;
  while (a >= b) {
    int d = __kiln::exponent_of(a) - __kiln::exponent_of(b) - 22;
    float t = d > 0 ? __kiln::scale(b, d) : b;
    a = __kiln::fma(-__builtin_truncf(a / t), t, a);
    a = a < 0 ? a + t : a;
  }
  return __builtin_copysignf(a, x);
}
__KILN_THROUGH_FLOAT_2(fmod)

}  // namespace metal
__KILN_EXACT_END
