// Functions of a float's sign, exponent and mantissa: ldexp, frexp, ilogb, nextafter. All exact, or rounded once.
__KILN_EXACT_BEGIN
namespace __kiln {

__KILN_INLINE int exact_step(int k) { return k > 127 ? 127 : k < -126 ? -102 : 0; }

}  // namespace __kiln

namespace metal {

// x 2^k in three steps, of which only the last one rounds. (A step of 2^-102 that leaves a subnormal number comes
// before one that turns it into 0.)
__KILN_INLINE float ldexp(float x, int k) {
  k = k > 300 ? 300 : k < -300 ? -300 : k;
  int first = __kiln::exact_step(k);
  k -= first;
  int second = __kiln::exact_step(k);
  return x * __kiln::power_of_two(first) * __kiln::power_of_two(second) * __kiln::power_of_two(k - second);
}
__KILN_INLINE half ldexp(half x, int k) { return half(ldexp(float(x), k)); }
__KILN_INLINE bfloat ldexp(bfloat x, int k) { return bfloat(ldexp(float(x), k)); }
template <class T, int N>
__KILN_INLINE vec<T, N> ldexp(vec<T, N> x, __kiln::converted<vec<int, N>> k) {
  vec<T, N> result;
  result.x = ldexp(x.x, k.x);
  result.y = ldexp(x.y, k.y);
  if constexpr (N > 2) result.z = ldexp(x.z, k.z);
  if constexpr (N > 3) result.w = ldexp(x.w, k.w);
  return result;
}
__KILN_PRECISE_AND_FAST(ldexp)

// x = result * 2^exponent with 1/2 <= |result| < 1. Zeros, infinities and NaNs are returned with an exponent of 0.
__KILN_INLINE float frexp(float x, int& exponent) {
  float a = __kiln::magnitude(x);
  bool regular = a > 0 && a < __kiln::infinity;
  exponent = regular ? __kiln::exponent_of(a) + 1 : 0;
  uint bits = __kiln::bits_of(a < 0x1p-126f ? x * 0x1p23f : x);
  return regular ? __kiln::float_of((bits & 0x807fffff) | 0x3f000000) : x;
}
__KILN_INLINE half frexp(half x, int& exponent) { return half(frexp(float(x), exponent)); }
__KILN_INLINE bfloat frexp(bfloat x, int& exponent) { return bfloat(frexp(float(x), exponent)); }
template <class T, int N>
__KILN_INLINE vec<T, N> frexp(vec<T, N> x, vec<int, N>& exponent) {
  vec<T, N> result;
  int part;
  result.x = frexp(x.x, part), exponent.x = part;
  result.y = frexp(x.y, part), exponent.y = part;
  if constexpr (N > 2) result.z = frexp(x.z, part), exponent.z = part;
  if constexpr (N > 3) result.w = frexp(x.w, part), exponent.w = part;
  return result;
}
__KILN_PRECISE_AND_FAST(frexp)

__KILN_INLINE int ilogb(float x) {
  float a = __kiln::magnitude(x);
  int special = a == __kiln::infinity ? INT_MAX : a == 0 ? FP_ILOGB0 : FP_ILOGBNAN;
  return a > 0 && a < __kiln::infinity ? __kiln::exponent_of(a) : special;
}
__KILN_INLINE int ilogb(half x) { return ilogb(float(x)); }
__KILN_INLINE int ilogb(bfloat x) { return ilogb(float(x)); }
__KILN_VECTOR_FORMS_1(ilogb)
__KILN_PRECISE_AND_FAST(ilogb)

// The neighbour of x towards y; y where they are equal.
#define __KILN_NEXTAFTER(T, BITS, SIGN)                                                                  \
  __KILN_INLINE T nextafter(T x, T y) {                                                                  \
    BITS bits = __builtin_bit_cast(BITS, x), target = __builtin_bit_cast(BITS, y);                       \
    BITS grown = bits + ((x < y) == !(bits & SIGN) ? 1 : -1);                                            \
    BITS smallest = (target & SIGN) | 1;                                                                 \
    T moved = __builtin_bit_cast(T, x == T(0) ? smallest : grown);                                       \
    return x == y ? y : x < y || x > y ? moved : x + y;                                                  \
  }
__KILN_NEXTAFTER(float, uint, 0x80000000)
__KILN_NEXTAFTER(half, ushort, 0x8000)
__KILN_NEXTAFTER(bfloat, ushort, 0x8000)
__KILN_VECTOR_FORMS_2(nextafter)
__KILN_PRECISE_AND_FAST(nextafter)

}  // namespace metal
__KILN_EXACT_END
