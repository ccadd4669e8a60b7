// What the math functions share.
//
// Each function is written once, in float arithmetic, so that it has the same bits on every engine and target; half and
// bfloat go through float and are rounded once at the end. Results that float arithmetic alone would miss by more than
// a unit in the last place are carried as sums of two floats; tools/fit_polynomial.py makes the polynomials.
//
// Errors are given in such units (ULP), rounded up, as tools/check_math.py measured them. Over all floats: exp, exp2,
// exp10, log, log2, log10, sin, cos, tan, tanh and erf, and that sqrt and rsqrt are rounded correctly. Of the other
// functions of one argument over every 7th float, so that the largest error of all may be a little larger (by 0.06 for
// tan); of two arguments over 20 million random pairs and all pairs of special numbers. What the tests assert leaves
// room for that.

// Between these two, arithmetic is as written in every math mode: what is a rounding error to this library,
// reassociation would simplify to zero, and a function must see the infinities and NaNs that it tests for.
#define __KILN_EXACT_BEGIN _Pragma("float_control(precise, on, push)") _Pragma("clang fp contract(off)")
#define __KILN_EXACT_END _Pragma("float_control(pop)")

__KILN_EXACT_BEGIN
namespace __kiln {

__KILN_INLINE constexpr uint bits_of(float x) { return __builtin_bit_cast(uint, x); }
__KILN_INLINE constexpr float float_of(uint bits) { return __builtin_bit_cast(float, bits); }

__KILN_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
// Not __builtin_sqrtf, which between the marks above is a call of C's function, because of errno.
__KILN_INLINE float sqrt(float x) { return __builtin_elementwise_sqrt(x); }
__KILN_INLINE float magnitude(float x) { return float_of(bits_of(x) & 0x7fffffff); }
__KILN_INLINE uint sign_bit(float x) { return bits_of(x) & 0x80000000; }
// x with its sign turned where the bit is set.
__KILN_INLINE float flip_sign(float x, uint bit) { return float_of(bits_of(x) ^ bit); }

constexpr float infinity = __builtin_inff();
constexpr float not_a_number = __builtin_nanf("");

// Adding this number and taking it away rounds x to an integer, halves to even, where |x| < 2^22; the sum holds that
// integer in its low bits.
constexpr float rounder = 0x1.8p23f;
__KILN_INLINE int integer_of(float sum) { return int(bits_of(sum) - bits_of(rounder)); }

// x, or the end of the range that it is beyond; a NaN stays one. One end after the other, as processors have it.
__KILN_INLINE float within(float x, float low, float high) {
  float raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// 2^n for n in [-126, 127].
__KILN_INLINE float power_of_two(int n) { return float_of(uint(n + 127) << 23); }

// floor(log2 x) for finite x > 0.
__KILN_INLINE int exponent_of(float x) {
  bool tiny = x < 0x1p-126f;
  return int(bits_of(tiny ? x * 0x1p23f : x) >> 23) - (tiny ? 150 : 127);
}

// x * 2^n for x near 1 and n in [-252, 254], rounded once.
__KILN_INLINE float scale(float x, int n) { return __kiln_scaled(x, float(n), n); }
// The same where n is known as a sum with `rounder`, too.
__KILN_INLINE float scale_by_sum(float x, float sum) { return __kiln_scaled(x, sum - rounder, integer_of(sum)); }

// 1 / x to 5 %, for x > 0 that is normal as its reciprocal is: enough where a correction is divided. The bits of a
// float are nearly its logarithm; the constant is where the largest error is least.
__KILN_INLINE float rough_reciprocal(float x) { return float_of(0x7ef31000 - bits_of(x)); }

// An unevaluated sum. `low` is at most about half a unit in the last place of `high`.
struct float_pair {
  float high, low;
};

// a + b, exactly, where |a| >= |b| or a is 0.
__KILN_INLINE float_pair ordered_sum(float a, float b) {
  float high = a + b;
  return {high, b - (high - a)};
}
// a + b, exactly.
__KILN_INLINE float_pair exact_sum(float a, float b) {
  float high = a + b;
  float part = high - a;
  return {high, (a - (high - part)) + (b - part)};
}
// a * b, exactly.
__KILN_INLINE float_pair exact_product(float a, float b) {
  float high = a * b;
  return {high, fma(a, b, -high)};
}

}  // namespace __kiln
__KILN_EXACT_END

// c0 + c1 x + c2 x^2 + …, by Horner's rule.
#define __KILN_POLYNOMIAL_1(X, C) C
#define __KILN_POLYNOMIAL_2(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_1(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_3(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_2(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_4(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_3(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_5(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_4(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_6(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_5(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_7(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_6(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_8(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_7(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_9(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_8(X, __VA_ARGS__), X, C)
#define __KILN_POLYNOMIAL_10(X, C, ...) __builtin_fmaf(__KILN_POLYNOMIAL_9(X, __VA_ARGS__), X, C)

// F for half and bfloat by way of float, and for vectors.
#define __KILN_OTHER_FORMS_1(F)                                    \
  __KILN_INLINE half F(half x) { return half(F(float(x))); }       \
  __KILN_INLINE bfloat F(bfloat x) { return bfloat(F(float(x))); } \
  __KILN_VECTOR_FORMS_1(F)
// Those, and all in metal::precise and metal::fast.
#define __KILN_THROUGH_FLOAT_1(F) \
  __KILN_OTHER_FORMS_1(F)         \
  __KILN_PRECISE_AND_FAST(F)
#define __KILN_THROUGH_FLOAT_2(F)                                                          \
  __KILN_INLINE half F(half x, half y) { return half(F(float(x), float(y))); }             \
  __KILN_INLINE bfloat F(bfloat x, bfloat y) { return bfloat(F(float(x), float(y))); }     \
  __KILN_VECTOR_FORMS_2(F)                                                                 \
  __KILN_PRECISE_AND_FAST(F)
#define __KILN_THROUGH_FLOAT_3(F)                                                                    \
  __KILN_INLINE half F(half x, half y, half z) { return half(F(float(x), float(y), float(z))); }     \
  __KILN_INLINE bfloat F(bfloat x, bfloat y, bfloat z) {                                             \
    return bfloat(F(float(x), float(y), float(z)));                                                  \
  }                                                                                                  \
  __KILN_VECTOR_FORMS_3(F)                                                                           \
  __KILN_PRECISE_AND_FAST(F)

// The forms of F(x, second result); FLOAT is the form of a float that serves half and bfloat.
#define __KILN_RESULT_AND_REFERENCE(F)    \
  __KILN_RESULT_AND_REFERENCE_FORMS(F, F) \
  __KILN_PRECISE_AND_FAST(F)
#define __KILN_RESULT_AND_REFERENCE_FORMS(F, FLOAT)                           \
  __KILN_INLINE half F(half x, half& second) {                                \
    float wide;                                                               \
    half result = half(FLOAT(float(x), wide));                                \
    second = half(wide);                                                      \
    return result;                                                            \
  }                                                                           \
  __KILN_INLINE bfloat F(bfloat x, bfloat& second) {                          \
    float wide;                                                               \
    bfloat result = bfloat(FLOAT(float(x), wide));                            \
    second = bfloat(wide);                                                    \
    return result;                                                            \
  }                                                                           \
  template <class T, int N>                                                   \
  __KILN_INLINE vec<T, N> F(vec<T, N> x, vec<T, N>& second) {                 \
    vec<T, N> result;                                                         \
    T part;                                                                   \
    result.x = F(x.x, part), second.x = part;                                 \
    result.y = F(x.y, part), second.y = part;                                 \
    if constexpr (N > 2) result.z = F(x.z, part), second.z = part;            \
    if constexpr (N > 3) result.w = F(x.w, part), second.w = part;            \
    return result;                                                            \
  }
