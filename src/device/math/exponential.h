// exp and its relatives.
//
// exp(x) = 2^n * e^r with n = rint(x / ln 2) and |r| <= ln(2)/2; e^r by a polynomial of degree 6 (a minimax fit of
// (e^r - 1 - r) / r^2). Largest error over all floats: below 1 unit in the last place.
namespace __kiln {

// (e^r - 1 - r) / r^2 for |r| <= 0.35.
__KILN_INLINE float exp_tail(float r) {
  float p = 0x1.6850e4p-10f;
  p = fma(p, r, 0x1.123bccp-7f);
  p = fma(p, r, 0x1.555b98p-5f);
  p = fma(p, r, 0x1.55548ep-3f);
  return fma(p, r, 0x1.fffff8p-2f);
}

}  // namespace __kiln

namespace metal {

__KILN_INLINE float exp(float x) {
  float c = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;  // a NaN stays one
  float n = __builtin_rintf(c * 0x1.715476p+0f);
  float r = __kiln::fma(n, -0x1.62e4p-1f, c);
  r = __kiln::fma(n, -0x1.7f7d1cp-20f, r);
  float e = __kiln::fma(__kiln::exp_tail(r), r * r, r) + 1.0f;
  return __kiln::scale(e, int(n));
}
__KILN_THROUGH_FLOAT_1(exp)

__KILN_INLINE float exp2(float x) {
  float c = x < -151.0f ? -151.0f : x > 129.0f ? 129.0f : x;
  float n = __builtin_rintf(c);
  float f = c - n;  // exact
  float r = f * 0x1.62e430p-1f;
  float low = __kiln::fma(f, 0x1.62e430p-1f, -r) + f * -0x1.05c610p-29f;
  float e = __kiln::fma(__kiln::exp_tail(r), r * r, low) + r + 1.0f;
  return __kiln::scale(e, int(n));
}
__KILN_THROUGH_FLOAT_1(exp2)

__KILN_INLINE float exp10(float x) {
  float c = x < -46.0f ? -46.0f : x > 39.0f ? 39.0f : x;
  float n = __builtin_rintf(c * 0x1.a934f0p+1f);
  // log10(2) in three parts, the first two short enough for exact products with n.
  float f = __kiln::fma(n, -0x1.34p-2f, c);
  f = __kiln::fma(n, -0x1.04d4p-10f, f);
  f = __kiln::fma(n, -0x1.3ef400p-20f, f);
  float r = f * 0x1.26bb1cp+1f;
  float low = __kiln::fma(f, 0x1.26bb1cp+1f, -r) + f * -0x1.12aabap-25f;
  float e = __kiln::fma(__kiln::exp_tail(r), r * r, low) + r + 1.0f;
  return __kiln::scale(e, int(n));
}
__KILN_THROUGH_FLOAT_1(exp10)

__KILN_INLINE float expm1(float x) {
  float c = x < -18.0f ? -18.0f : x > 89.0f ? 89.0f : x;
  float n = __builtin_rintf(c * 0x1.715476p+0f);
  float r = __kiln::fma(n, -0x1.62e4p-1f, c);
  r = __kiln::fma(n, -0x1.7f7d1cp-20f, r);
  float e = __kiln::fma(__kiln::exp_tail(r), r * r, r);  // e^r - 1
  // 2^n e^r - 1 = 2^n (e^r - 1) + (2^n - 1); at n = 128 the power itself is too large.
  if (n == 0) return x == 0 ? x : e;
  if (n > 127) return __kiln::scale(e + 1.0f, int(n));
  float t = __kiln::power_of_two(int(n));
  return __kiln::fma(t, e, t - 1.0f);
}
__KILN_THROUGH_FLOAT_1(expm1)

__KILN_INLINE float tanh(float x) {
  float a = __builtin_fabsf(x);
  float m = expm1(2.0f * (a > 10.0f ? 10.0f : a));
  float t = m / (m + 2.0f);
  t = x != x ? x : t;
  return __builtin_copysignf(t, x);
}
__KILN_THROUGH_FLOAT_1(tanh)

__KILN_INLINE float sinh(float x) {
  float a = __builtin_fabsf(x);
  float s;
  if (a < 88.0f) {
    float m = expm1(a);
    s = 0.5f * (m + m / (m + 1.0f));
  } else {
    float h = exp(0.5f * a);
    s = (0.5f * h) * h;
  }
  return __builtin_copysignf(s, x);
}
__KILN_THROUGH_FLOAT_1(sinh)

__KILN_INLINE float cosh(float x) {
  float a = __builtin_fabsf(x);
  float h = exp(0.5f * a);
  if (a >= 88.0f) return (0.5f * h) * h;
  float e = exp(a);
  return 0.5f * e + 0.5f / e;
}
__KILN_THROUGH_FLOAT_1(cosh)

}  // namespace metal
