// What erf and erfinv are made of; the functions themselves are below src/device/after, since a kernel's header may
// define its own.
__KILN_EXACT_BEGIN
namespace __kiln {

// x (c + e(x^2)) with c = 2 / sqrt(pi) and e of degree 6 for |x| < 1, good to 2^-29; beyond, 1 - e^q(|x|) with q of
// degree 6, good to 2^-29 of the result. Largest error: 1.284 ULP.
__KILN_INLINE float erf(float x) {
  float a = magnitude(x);
  float z = a < 1.0f ? a * a : 1.0f;
  float e = __KILN_POLYNOMIAL_7(z, -0x1.01b74ep-24f, -0x1.81273ep-2f, 0x1.ce2cfap-4f, -0x1.b7f928p-6f, 0x1.54060cp-8f,
                                -0x1.a3f6fp-11f, 0x1.49647cp-14f);
  float near_0 = fma(a, 0x1.20dd76p+0f, a * e);
  float b = a > 3.95f ? 3.95f : a < 1.0f ? 1.0f : a;
  float q = __KILN_POLYNOMIAL_7(b, -0x1.661c82p-12f, -0x1.2088eap+0f, -0x1.46baf2p-1f, -0x1.a652f4p-4f, 0x1.65ca9p-6f,
                                -0x1.825872p-9f, 0x1.86d81ap-13f);
  reduced_power p = reduce_power(q);
  float far = 1.0f - (fma(exp_tail(p.r), p.r * p.r, p.r) + 1.0f) * power_of_two(p.n);
  return flip_sign(a < 1.0f ? near_0 : far, sign_bit(x));
}

// x (c + p(u)) with p of degree 9; u = w - 1 where w = -log(1 - x^2) < 5, otherwise sqrt(w) - 3; good to 2^-27. Largest
// error: 1.43 ULP.
__KILN_INLINE float erfinv(float x) {
  scaled_number n = take_power(fma(-x, x, 1.0f));
  float w = -log_sum(n.k, n.f, 0);
  float c, p;
  if (w < 5.0f) {
    float u = w - 1.0f;
    c = 0x1.209b9cp+0f;
    p = __KILN_POLYNOMIAL_10(u, -0x1.9552b4p-27f, 0x1.fb8fdp-3f, 0x1.169204p-8f, -0x1.377c88p-9f, 0x1.a4986ap-14f,
                             0x1.40bf76p-15f, -0x1.277256p-18f, -0x1.1a408ap-21f, 0x1.318c4p-23f, -0x1.2f4584p-27f);
  } else {
    float u = __kiln::sqrt(w) - 3.0f;
    c = 0x1.6a9efcp+1f;
    p = __KILN_POLYNOMIAL_10(u, -0x1.80c76ep-26f, 0x1.006dc8p+0f, 0x1.35842ep-7f, -0x1.f4af6p-8f, 0x1.74736p-8f,
                             -0x1.d5f82ap-9f, 0x1.8820ecp-10f, -0x1.48958ap-14f, -0x1.4e20c4p-12f, 0x1.0fda14p-13f);
  }
  // Of the magnitude, as p may be negative: -0 c + -0 p would be +0.
  float a = magnitude(x);
  float result = fma(a, c, a * p);
  result = a < 1.0f ? result : a == 1.0f ? infinity : not_a_number;
  return flip_sign(result, sign_bit(x));
}

}  // namespace __kiln
__KILN_EXACT_END
