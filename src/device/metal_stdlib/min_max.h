// min, max and their relatives. Of a number and a NaN each gives the number.
namespace metal {

#define __KILN_INTEGER_MIN_MAX(T)                                    \
  __KILN_INLINE constexpr T min(T a, T b) { return b < a ? b : a; }  \
  __KILN_INLINE constexpr T max(T a, T b) { return a < b ? b : a; }
__KILN_INTEGER_TYPES(__KILN_INTEGER_MIN_MAX)

#define __KILN_FLOAT_MIN_MAX(T)                                                         \
  __KILN_INLINE constexpr T fmin(T a, T b) { return b < a || a != a ? b : a; }          \
  __KILN_INLINE constexpr T fmax(T a, T b) { return a < b || a != a ? b : a; }          \
  __KILN_INLINE constexpr T min(T a, T b) { return fmin(a, b); }                        \
  __KILN_INLINE constexpr T max(T a, T b) { return fmax(a, b); }                        \
  __KILN_INLINE constexpr T fmin3(T a, T b, T c) { return fmin(a, fmin(b, c)); }        \
  __KILN_INLINE constexpr T fmax3(T a, T b, T c) { return fmax(a, fmax(b, c)); }        \
  __KILN_INLINE constexpr T fmedian3(T a, T b, T c) { return fmax(fmin(a, b), fmin(fmax(a, b), c)); } \
  __KILN_INLINE constexpr T saturate(T a) { return fmin(fmax(a, T(0)), T(1)); }
__KILN_FLOAT_TYPES(__KILN_FLOAT_MIN_MAX)

#define __KILN_MIN_MAX_OF_THREE(T)                                                                 \
  __KILN_INLINE constexpr T min3(T a, T b, T c) { return min(a, min(b, c)); }                      \
  __KILN_INLINE constexpr T max3(T a, T b, T c) { return max(a, max(b, c)); }                      \
  __KILN_INLINE constexpr T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }   \
  __KILN_INLINE constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); }
__KILN_ARITHMETIC_TYPES(__KILN_MIN_MAX_OF_THREE)

__KILN_VECTOR_FORMS_2(min)
__KILN_VECTOR_FORMS_2(max)
__KILN_VECTOR_FORMS_2(fmin)
__KILN_VECTOR_FORMS_2(fmax)
__KILN_VECTOR_FORMS_3(min3)
__KILN_VECTOR_FORMS_3(max3)
__KILN_VECTOR_FORMS_3(median3)
__KILN_VECTOR_FORMS_3(fmin3)
__KILN_VECTOR_FORMS_3(fmax3)
__KILN_VECTOR_FORMS_3(fmedian3)
__KILN_VECTOR_FORMS_3(clamp)
__KILN_VECTOR_FORMS_1(saturate)

__KILN_PRECISE_AND_FAST(clamp)
__KILN_PRECISE_AND_FAST(fmax)
__KILN_PRECISE_AND_FAST(fmax3)
__KILN_PRECISE_AND_FAST(fmedian3)
__KILN_PRECISE_AND_FAST(fmin)
__KILN_PRECISE_AND_FAST(fmin3)
__KILN_PRECISE_AND_FAST(max)
__KILN_PRECISE_AND_FAST(max3)
__KILN_PRECISE_AND_FAST(median3)
__KILN_PRECISE_AND_FAST(min)
__KILN_PRECISE_AND_FAST(min3)
__KILN_PRECISE_AND_FAST(saturate)

}  // namespace metal
