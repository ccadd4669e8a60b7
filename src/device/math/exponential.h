// exp, exp2 and exp10, and what other files need of them.
//
// e^x = 2^n e^r with n = rint(x / ln 2), so that |r| <= ln(2) / 2; e^r = 1 + r + r^2 t(r) with t of degree 4. exp2 and
// exp10 take off the integral power of two first: b^f = 1 + f (ln b + t(f)) with t of degree 5, |f| <= 1/2 for b = 2
// and |f| <= log10(2) / 2 for b = 10. The polynomials are good to 2^-28 of the power.
__KILN_EXACT_BEGIN
namespace __kiln {

// (e^r - 1 - r) / r^2 for |r| <= 0.3468.
__KILN_INLINE float exp_tail(float r) {
  return __KILN_POLYNOMIAL_5(r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b2p-5f, 0x1.123994p-7f, 0x1.6a4b44p-10f);
}

// x = n ln 2 + r + low for |x| < 2^8.
struct reduced_power {
  int n;
  float r, low;
  float sum;  // n's with `rounder`
};
__KILN_INLINE reduced_power reduce_power(float x) {
  float sum = fma(x, 0x1.715476p+0f, rounder);
  float n = sum - rounder;
  // ln 2 in two parts, the first so short that its multiples are exact, and what they leave of x too.
  float rest = fma(n, -0x1.62e4p-1f, x);
  float r = fma(n, -0x1.7f7d1cp-20f, rest);
  return {integer_of(sum), r, fma(n, -0x1.7f7d1cp-20f, rest - r), sum};
}

// e^x - 1. Largest error: 1.077 ULP.
__KILN_INLINE float expm1(float x) {
  reduced_power p = reduce_power(within(x, -18.0f, 89.0f));
  // 2^n e^r - 1 = 2^n ((1 - 2^-n) + (e^r - 1)).
  float_pair s = ordered_sum(1.0f - power_of_two(p.n > 64 ? -64 : -p.n), p.r);
  float e = s.high + (s.low + fma(exp_tail(p.r), p.r * p.r, p.low));
  return x == 0 ? x : scale(e, p.n);
}

}  // namespace __kiln

namespace metal {

namespace precise {
// Largest error: 1.013 ULP.
__KILN_INLINE float exp(float x) {
  __kiln::reduced_power p = __kiln::reduce_power(__kiln::within(x, -104.0f, 89.0f));
  return __kiln::scale_by_sum(__kiln::fma(__kiln::exp_tail(p.r), p.r * p.r, p.r) + 1.0f, p.sum);
}

// Largest error: 0.85 ULP.
__KILN_INLINE float exp2(float x) {
  float c = __kiln::within(x, -151.0f, 129.0f);
  float sum = c + __kiln::rounder;
  float f = c - (sum - __kiln::rounder);  // exact
  float t = __KILN_POLYNOMIAL_6(f, 0x1.62c8cep-26f, 0x1.ebfbdcp-3f, 0x1.c6aee6p-5f, 0x1.3b2d74p-7f, 0x1.5f3fa4p-10f,
                                0x1.41e494p-13f);
  return __kiln::scale_by_sum(__kiln::fma(f, 0x1.62e43p-1f, f * t) + 1.0f, sum);
}

// Largest error: 1.059 ULP.
__KILN_INLINE float exp10(float x) {
  float c = __kiln::within(x, -46.0f, 39.0f);
  float sum = __kiln::fma(c, 0x1.a934fp+1f, __kiln::rounder);
  float n = sum - __kiln::rounder;
  float f = __kiln::fma(n, -0x1.344p-2f, c);  // log10(2) in two parts, as ln 2 above
  f = __kiln::fma(n, -0x1.3509f8p-18f, f);
  float t = __KILN_POLYNOMIAL_6(f, 0x1.7091c6p-25f, 0x1.53524ap+1f, 0x1.046f66p+1f, 0x1.2bd9bp+0f, 0x1.1585c8p-1f,
                                0x1.a6b462p-3f);
  return __kiln::scale_by_sum(__kiln::fma(f, 0x1.26bb1cp+1f, f * t) + 1.0f, sum);
}
}  // namespace precise

__KILN_APPROXIMATED_1(exp)
__KILN_APPROXIMATED_1(exp2)
__KILN_APPROXIMATED_1(exp10)

}  // namespace metal
__KILN_EXACT_END
