// Functions whose results are exact or correctly rounded.
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

__KILN_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
// The square root of a half, rounded to float first, rounds to the same half: 24 >= 2 * 11 + 2 bits.
__KILN_THROUGH_FLOAT_1(sqrt)

__KILN_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
// The product of two halves is exact in float. The sum is rounded to odd, so that rounding it once more, to half,
// gives what one rounding would have given.
__KILN_INLINE half fma(half a, half b, half c) {
  float product = float(a) * float(b), addend = c;
  float sum = product + addend;
  float part = sum - product;
  float error = (product - (sum - part)) + (addend - part);
  uint bits = __kiln::bits_of(sum);
  if ((error > 0 || error < 0) && !(bits & 1)) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return half(__kiln::float_of(bits));
}
__KILN_INLINE bfloat fma(bfloat a, bfloat b, bfloat c) { return bfloat(fma(float(a), float(b), float(c))); }
__KILN_VECTOR_FORMS_3(fma)
__KILN_PRECISE_AND_FAST(fma)

// 1 / sqrt(x), correctly rounded: an estimate within one unit, corrected by its residual, whose sign and size are
// known exactly enough from two fma.
__KILN_INLINE float rsqrt(float x) {
  // Subnormals are scaled by an even power of two.
  bool tiny = x < 0x1p-100f;
  float s = tiny ? x * 0x1p60f : x;
  float y = 1.0f / __builtin_sqrtf(s);
  if (x > 0 && x < __builtin_inff()) {
    float high = s * y;
    float low = __builtin_fmaf(s, y, -high);
    float residual = __builtin_fmaf(-low, y, __builtin_fmaf(-high, y, 1.0f));
    y = __builtin_fmaf(y * 0.5f, residual, y);
  }
  return tiny ? y * 0x1p30f : y;
}
__KILN_THROUGH_FLOAT_1(rsqrt)

// x - floor(x), but below 1.
__KILN_INLINE float fract(float x) {
  float f = x - __builtin_floorf(x);
  return f < 0x1.fffffep-1f || f != f ? f : 0x1.fffffep-1f;
}
__KILN_THROUGH_FLOAT_1(fract)

__KILN_INLINE float fdim(float x, float y) { return x > y ? x - y : x != x || y != y ? x + y : 0.0f; }
__KILN_THROUGH_FLOAT_2(fdim)

// The remainder of the division that is rounded towards zero; exact. Long division, a bit at a time: the quotient may
// have 277 bits.
__KILN_INLINE float fmod(float x, float y) {
  uint a = __kiln::bits_of(x) & 0x7fffffff, b = __kiln::bits_of(y) & 0x7fffffff;
  if (b == 0 || a >= 0x7f800000 || b > 0x7f800000) return __builtin_nanf("");
  if (a < b) return x;
  int ea = int(a >> 23), eb = int(b >> 23);
  uint ma = a & 0x7fffff, mb = b & 0x7fffff;
  if (ea) ma |= 0x800000; else ea = 1;
  if (eb) mb |= 0x800000; else eb = 1;
  // Subnormal mantissas are brought to full length; exponents may become negative.
  int za = __builtin_clz(ma) - 8, zb = __builtin_clz(mb) - 8;
  ma <<= za, ea -= za, mb <<= zb, eb -= zb;
  for (; ea > eb; --ea) {
    if (ma >= mb) ma -= mb;
    ma <<= 1;
  }
  if (ma >= mb) ma -= mb;
  if (ma == 0) return __builtin_copysignf(0.0f, x);
  int z = __builtin_clz(ma) - 8;
  ma <<= z, ea -= z;
  uint bits = ea > 0 ? (ma & 0x7fffff) | uint(ea) << 23 : ma >> (1 - ea);
  return __builtin_copysignf(__kiln::float_of(bits), x);
}
__KILN_THROUGH_FLOAT_2(fmod)

}  // namespace metal
