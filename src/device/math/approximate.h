// What exp, exp2, exp10, log2, log10, sin, cos, tan, tanh, pow, powr, sqrt, length and normalize are in math modes
// other than safe, where a processor has instructions for their kernels; at present on NVIDIA GPUs.
//
// Each is made of the instruction as the Metal specification's table for fast math says ("implemented as exp2(y *
// log2(x))"), and is within that table's bounds: 3 + floor(2 |x|) units in the last place for exp and exp2, 3 units for
// logarithms, but 2^-21 absolutely between 1/2 and 2, 2^-13 absolutely for sin and cos between -pi and pi.
// tests/python/test_gpu_approximations.py measures them. Subnormal arguments and results are zeros.
//
// sin and cos take multiples of 2 pi off first, which the instruction does with an error that grows with the argument;
// angles of thousands of turns occur, as in rotary embeddings. tanh is a polynomial near 0: the quotient has an
// absolute error only, and half would show it.
__KILN_EXACT_BEGIN
namespace __kiln::approximate {

__KILN_INLINE float exp2(float x) { return __kiln_approximate(approximation::exp2, x); }
__KILN_INLINE float exp(float x) { return exp2(x * 0x1.715476p+0f); }
__KILN_INLINE float exp10(float x) { return exp2(x * 0x1.a934fp+1f); }

__KILN_INLINE float log2(float x) { return __kiln_approximate(approximation::log2, x); }
__KILN_INLINE float log10(float x) { return log2(x) * 0x1.344136p-2f; }

// x - 2 pi n with n = rint(x / (2 pi)), for |x| < 2^22.
__KILN_INLINE float without_turns(float x) {
  float n = fma(x, 0x1.45f306p-3f, rounder) - rounder;
  return fma(n, 0x1.777a5cp-23f, fma(n, -0x1.921fb6p+2f, x));
}

__KILN_INLINE float sin(float x) { return __kiln_approximate(approximation::sin, without_turns(x)); }
__KILN_INLINE float cos(float x) { return __kiln_approximate(approximation::cos, without_turns(x)); }
__KILN_INLINE float sqrt(float x) { return __kiln_approximate(approximation::sqrt, x); }
__KILN_INLINE float rsqrt(float x) { return __kiln_approximate(approximation::rsqrt, x); }
__KILN_INLINE float reciprocal(float x) { return __kiln_approximate(approximation::reciprocal, x); }
__KILN_INLINE float tan(float x) {
  float r = without_turns(x);
  return __kiln_approximate(approximation::sin, r) * reciprocal(__kiln_approximate(approximation::cos, r));
}

// 1 - 2 / (e^(2 |x|) + 1).
__KILN_INLINE float tanh(float x) {
  float a = magnitude(x), z = x * x;
  float quotient = fma(-2.0f, reciprocal(exp2(a * 0x1.715476p+1f) + 1.0f), 1.0f);
  float near_zero = fma(a * z, fma(z, 0x1.111112p-3f, -0x1.555556p-2f), a);
  return flip_sign(a < 0.125f ? near_zero : quotient, sign_bit(x));
}

__KILN_INLINE float powr(float x, float y) { return exp2(y * log2(x)); }
__KILN_INLINE float pow(float x, float y) {
  float result = powr(magnitude(x), y);
  bool is_integer = __builtin_truncf(y) == y, is_even = __builtin_truncf(0.5f * y) == 0.5f * y;
  result = flip_sign(result, is_integer && !is_even ? sign_bit(x) : 0);
  result = x < 0 && !is_integer ? not_a_number : result;
  return y == 0 ? 1.0f : result;
}

}  // namespace __kiln::approximate
__KILN_EXACT_END

// Defines F of floats, in namespace metal, behind precise::F of a float, and the forms of both for other types.
#define __KILN_APPROXIMATED_1(F)                                         \
  __KILN_INLINE float F(float x) {                                       \
    if (__kiln::__kiln_approximates()) return __kiln::approximate::F(x); \
    return precise::F(x);                                                \
  }                                                                      \
  __KILN_OTHER_FORMS_1(F)                                                \
  namespace fast {                                                       \
  using metal::F;                                                        \
  }                                                                      \
  namespace precise {                                                    \
  __KILN_OTHER_FORMS_1(F)                                                \
  }
// The same, where half and bfloat have the precise function: an absolute error would show.
#define __KILN_APPROXIMATED_FLOATS_1(F)                                     \
  __KILN_INLINE float F(float x) {                                          \
    if (__kiln::__kiln_approximates()) return __kiln::approximate::F(x);    \
    return precise::F(x);                                                   \
  }                                                                         \
  __KILN_INLINE half F(half x) { return half(precise::F(float(x))); }       \
  __KILN_INLINE bfloat F(bfloat x) { return bfloat(precise::F(float(x))); } \
  __KILN_VECTOR_FORMS_1(F)                                                  \
  namespace fast {                                                          \
  using metal::F;                                                           \
  }                                                                         \
  namespace precise {                                                       \
  __KILN_OTHER_FORMS_1(F)                                                   \
  }
#define __KILN_APPROXIMATED_2(F)                                                       \
  __KILN_INLINE float F(float x, float y) {                                            \
    if (__kiln::__kiln_approximates()) return __kiln::approximate::F(x, y);            \
    return precise::F(x, y);                                                           \
  }                                                                                    \
  __KILN_INLINE half F(half x, half y) { return half(F(float(x), float(y))); }         \
  __KILN_INLINE bfloat F(bfloat x, bfloat y) { return bfloat(F(float(x), float(y))); } \
  __KILN_VECTOR_FORMS_2(F)                                                             \
  namespace fast {                                                                     \
  using metal::F;                                                                      \
  }                                                                                    \
  namespace precise {                                                                  \
  __KILN_INLINE half F(half x, half y) { return half(F(float(x), float(y))); }         \
  __KILN_INLINE bfloat F(bfloat x, bfloat y) { return bfloat(F(float(x), float(y))); } \
  __KILN_VECTOR_FORMS_2(F)                                                             \
  }
