// sin, cos, tan, sincos, and the same of multiples of pi.
//
// |x| = n pi/2 + r + low with n = rint(|x| / (pi/2)); n modulo 4 says which function of r is wanted and with which
// sign. Below 2^17 three floats make up pi/2 well enough. Above, the bits of 2/pi that matter for this exponent are
// multiplied by the mantissa in integers (M. Payne, R. Hanek, 1983). sin r = r + r^3 s(r^2) with s of degree 2, cos r =
// 1 - r^2 / 2 + r^4 c(r^2) with c of degree 2, tan r = r + r^3 t(r^2) with t of degree 6, for |r| <= 0.796: good to
// 2^-27, 2^-32 and 2^-28 of the function.
__KILN_EXACT_BEGIN
namespace __kiln {

struct angle {
  float r, low;
  uint quadrant;  // modulo 4
};

// Of a >= 2^17; of infinity and NaN, a NaN.
inline angle reduce_large_angle(float a) {
  // 2/pi after its binary point, and a word of zeros before it.
  constexpr uint two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                  0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  uint bits = bits_of(a);
  ulong mantissa = (bits & 0x7fffff) | 0x800000;
  // a = mantissa 2^e. A bit of weight 2^-j makes a multiple of 4 where j <= e - 2: the 96 bits from j = e - 1 on are
  // multiplied, modulo 2^96. The first two bits of the product are the quadrant, the others the fraction.
  uint e = (bits >> 23) - 150;
  uint first = (e + 30) >> 5, shift = (e + 30) & 31;
  auto word = [&](uint i) -> ulong {
    return uint((ulong(two_over_pi[first + i]) << 32 | two_over_pi[first + i + 1]) << shift >> 32);
  };
  ulong product = (mantissa * word(0) << 32) + mantissa * word(1) + (mantissa * word(2) >> 32);
  // The fraction of a quarter turn, from -1/2 to 1/2, in units of 2^-64.
  long fraction = long(product << 2);
  uint quadrant = uint(product >> 62) + (fraction < 0);
  float high = float(fraction);
  float low = float(fraction - long(high));
  constexpr float unit = 0x1p-64f;
  float_pair r = exact_product(high * unit, 0x1.921fb6p+0f);
  r.low = fma(high * unit, -0x1.777a5cp-25f, fma(low * unit, 0x1.921fb6p+0f, r.low));
  return {a < infinity ? r.high : not_a_number, r.low, quadrant & 3};
}

__KILN_INLINE angle reduce_angle(float a) {
  if (!(a < 0x1p17f)) return reduce_large_angle(a);
  float sum = fma(a, 0x1.45f306p-1f, rounder);
  float n = sum - rounder;
  float rest = fma(n, -0x1.921fb6p+0f, a);  // exact
  float_pair p = exact_product(n, 0x1.777a5cp-25f);
  float_pair r = exact_sum(rest, p.high);
  return {r.high, r.low + fma(n, 0x1.ee59dap-50f, p.low), bits_of(sum) & 3};
}

// Of pi a, for a >= 0. `r` is 0 where a is a multiple of 1/2.
__KILN_INLINE angle reduce_half_turns(float a) {
  float half_of_a = 0.5f * a;
  a = a < 4.0f ? a : 2.0f * (half_of_a - __builtin_floorf(half_of_a));  // exact
  float sum = a + a + rounder;
  float f = fma(sum - rounder, -0.5f, a);
  float_pair r = exact_product(f, 0x1.921fb6p+1f);
  return {r.high, fma(f, -0x1.777a5cp-24f, r.low), bits_of(sum) & 3};
}

__KILN_INLINE float sin_of_rest(angle x) {
  float z = x.r * x.r;
  float s = __KILN_POLYNOMIAL_3(z, -0x1.555544p-3f, 0x1.1106bcp-7f, -0x1.991694p-13f);
  return x.r + fma(x.r * z, s, x.low);
}

__KILN_INLINE float cos_of_rest(angle x) {
  float z = x.r * x.r;
  float c = __KILN_POLYNOMIAL_3(z, 0x1.55554ap-5f, -0x1.6c0c0ap-10f, 0x1.99d99ap-16f);
  float half_of_z = 0.5f * z;
  float high = 1.0f - half_of_z;
  float low = (1.0f - high) - half_of_z;
  return high + fma(z * z, c, fma(-x.r, x.low, low));
}

// The sine of the whole angle, the cosine with `turn` = 1.
__KILN_INLINE float sin_of_angle(angle x, uint turn) {
  uint quadrant = x.quadrant + turn;
  float cosine = cos_of_rest(x), sine = sin_of_rest(x);
  return flip_sign(quadrant & 1 ? cosine : sine, (quadrant & 2) << 30);
}

__KILN_INLINE float tan_of_angle(angle x) {
  float z = x.r * x.r;
  float t = __KILN_POLYNOMIAL_7(z, 0x1.555564p-2f, 0x1.110c86p-3f, 0x1.bb0b84p-5f, 0x1.5abf24p-6f, 0x1.6d2dbp-7f,
                                -0x1.3d57cp-12f, 0x1.2b7fc6p-8f);
  float_pair tan = ordered_sum(x.r, fma(x.r * z, t, fma(z, x.low, x.low)));
  // -1 / tan, corrected by its residual.
  float inverse = -1.0f / tan.high;
  inverse = fma(inverse, fma(inverse, tan.low, fma(inverse, tan.high, 1.0f)), inverse);
  return x.quadrant & 1 ? inverse : tan.high;
}

}  // namespace __kiln

namespace metal {

namespace precise {
// Largest error: 1.03 ULP.
__KILN_INLINE float sin(float x) {
  return __kiln::flip_sign(__kiln::sin_of_angle(__kiln::reduce_angle(__kiln::magnitude(x)), 0), __kiln::sign_bit(x));
}

// Largest error: 1.051 ULP.
__KILN_INLINE float cos(float x) { return __kiln::sin_of_angle(__kiln::reduce_angle(__kiln::magnitude(x)), 1); }

// Largest error: 1.489 ULP.
__KILN_INLINE float tan(float x) {
  return __kiln::flip_sign(__kiln::tan_of_angle(__kiln::reduce_angle(__kiln::magnitude(x))), __kiln::sign_bit(x));
}
}  // namespace precise

// Zeros of sinpi have the sign of x, those of cospi are positive. Largest error: 0.999 ULP.
__KILN_INLINE float sinpi(float x) {
  float s = __kiln::sin_of_angle(__kiln::reduce_half_turns(__kiln::magnitude(x)), 0);
  return __kiln::flip_sign(s + 0.0f, __kiln::sign_bit(x));
}

// Largest error: 0.91 ULP.
__KILN_INLINE float cospi(float x) {
  return __kiln::sin_of_angle(__kiln::reduce_half_turns(__kiln::magnitude(x)), 1) + 0.0f;
}

// tanpi(n) is a zero, negative for odd n > 0, and tanpi(n + 1/2) an infinity, negative for odd n > 0. Largest error:
// 1.305 ULP.
__KILN_INLINE float tanpi(float x) {
  __kiln::angle a = __kiln::reduce_half_turns(__kiln::magnitude(x));
  float exact = __kiln::flip_sign(a.quadrant & 1 ? __kiln::infinity : 0.0f, (a.quadrant & 2) << 30);
  return __kiln::flip_sign(a.r == 0 ? exact : __kiln::tan_of_angle(a), __kiln::sign_bit(x));
}

__KILN_APPROXIMATED_FLOATS_1(sin)
__KILN_APPROXIMATED_FLOATS_1(cos)
__KILN_APPROXIMATED_FLOATS_1(tan)
__KILN_THROUGH_FLOAT_1(sinpi)
__KILN_THROUGH_FLOAT_1(cospi)
__KILN_THROUGH_FLOAT_1(tanpi)

namespace precise {
__KILN_INLINE float sincos(float x, float& cosine) {
  __kiln::angle a = __kiln::reduce_angle(__kiln::magnitude(x));
  cosine = __kiln::sin_of_angle(a, 1);
  return __kiln::flip_sign(__kiln::sin_of_angle(a, 0), __kiln::sign_bit(x));
}
__KILN_RESULT_AND_REFERENCE_FORMS(sincos, sincos)
}  // namespace precise
__KILN_INLINE float sincos(float x, float& cosine) {
  if (!__kiln::__kiln_approximates()) return precise::sincos(x, cosine);
  cosine = __kiln::approximate::cos(x);
  return __kiln::approximate::sin(x);
}
__KILN_RESULT_AND_REFERENCE_FORMS(sincos, precise::sincos)
namespace fast {
using metal::sincos;
}

}  // namespace metal
__KILN_EXACT_END
