// What the math functions share. Each function is written once, in float arithmetic without contraction, so that it
// has the same bits on every engine and target; half and bfloat go through float and are rounded once at the end.
namespace __kiln {

__KILN_INLINE constexpr uint bits_of(float x) { return __builtin_bit_cast(uint, x); }
__KILN_INLINE constexpr float float_of(uint bits) { return __builtin_bit_cast(float, bits); }

__KILN_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// 2^n for n in [-126, 127].
__KILN_INLINE float power_of_two(int n) { return float_of(uint(n + 127) << 23); }

// x * 2^n for n in [-278, 254], rounded once: the first two factors are exact.
__KILN_INLINE float scale(float x, int n) {
  int high = n < -126 ? -126 : n > 127 ? 127 : n;
  n -= high;
  int middle = n < -126 ? -126 : n > 127 ? 127 : n;
  return x * power_of_two(high) * power_of_two(middle);
}

}  // namespace __kiln

// F for half and bfloat by way of float, for vectors, and in metal::precise and metal::fast.
#define __KILN_THROUGH_FLOAT_1(F)                                     \
  __KILN_INLINE half F(half x) { return half(F(float(x))); }          \
  __KILN_INLINE bfloat F(bfloat x) { return bfloat(F(float(x))); }    \
  __KILN_VECTOR_FORMS_1(F)                                            \
  __KILN_PRECISE_AND_FAST(F)
#define __KILN_THROUGH_FLOAT_2(F)                                                          \
  __KILN_INLINE half F(half x, half y) { return half(F(float(x), float(y))); }             \
  __KILN_INLINE bfloat F(bfloat x, bfloat y) { return bfloat(F(float(x), float(y))); }     \
  __KILN_VECTOR_FORMS_2(F)                                                                 \
  __KILN_PRECISE_AND_FAST(F)
