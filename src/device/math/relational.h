// The relational functions. Kinds of numbers are told by their bits, so that they are told in fast mode too.
namespace __kiln {

template <class T>
using scalar = typename enable_if<__is_arithmetic(T), T>::type;

}  // namespace __kiln

namespace metal {

// MASK: all but the sign. INFINITY_BITS: of infinity. ONE: the smallest normal number.
#define __KILN_CLASSIFY(T, BITS, MASK, INFINITY_BITS, ONE)                                                          \
  __KILN_INLINE bool isnan(T x) { return (__builtin_bit_cast(BITS, x) & MASK) > INFINITY_BITS; }                    \
  __KILN_INLINE bool isinf(T x) { return (__builtin_bit_cast(BITS, x) & MASK) == INFINITY_BITS; }                   \
  __KILN_INLINE bool isfinite(T x) { return (__builtin_bit_cast(BITS, x) & MASK) < INFINITY_BITS; }                 \
  __KILN_INLINE bool isnormal(T x) {                                                                                \
    return BITS((__builtin_bit_cast(BITS, x) & MASK) - ONE) < INFINITY_BITS - ONE;                                  \
  }                                                                                                                 \
  __KILN_INLINE bool signbit(T x) { return (__builtin_bit_cast(BITS, x) & ~MASK) != 0; }                            \
  __KILN_INLINE bool isordered(T x, T y) { return !isnan(x) && !isnan(y); }                                         \
  __KILN_INLINE bool isunordered(T x, T y) { return isnan(x) || isnan(y); }
__KILN_CLASSIFY(float, uint, 0x7fffffffu, 0x7f800000u, 0x00800000u)
__KILN_CLASSIFY(half, ushort, 0x7fff, 0x7c00, 0x0400)
__KILN_CLASSIFY(bfloat, ushort, 0x7fff, 0x7f80, 0x0080)
__KILN_VECTOR_FORMS_1(isnan)
__KILN_VECTOR_FORMS_1(isinf)
__KILN_VECTOR_FORMS_1(isfinite)
__KILN_VECTOR_FORMS_1(isnormal)
__KILN_VECTOR_FORMS_1(signbit)
__KILN_VECTOR_FORMS_2(isordered)
__KILN_VECTOR_FORMS_2(isunordered)

__KILN_INLINE bool all(bool x) { return x; }
__KILN_INLINE bool any(bool x) { return x; }
template <int N>
__KILN_INLINE bool all(vec<bool, N> x) {
  bool result = x.x && x.y;
  if constexpr (N > 2) result = result && x.z;
  if constexpr (N > 3) result = result && x.w;
  return result;
}
template <int N>
__KILN_INLINE bool any(vec<bool, N> x) {
  bool result = x.x || x.y;
  if constexpr (N > 2) result = result || x.z;
  if constexpr (N > 3) result = result || x.w;
  return result;
}

// b where the condition holds, else a; any scalar or vector type, bool too. The condition is of bools: Metal takes no
// integers as masks.
template <class T>
__KILN_INLINE constexpr __kiln::scalar<T> select(T a, T b, bool condition) {
  return condition ? b : a;
}
template <class T, int N>
__KILN_INLINE vec<T, N> select(vec<T, N> a, __kiln::converted<vec<T, N>> b,
                               __kiln::converted<vec<bool, N>> condition) {
  vec<T, N> result;
  result.x = condition.x ? b.x : a.x;
  result.y = condition.y ? b.y : a.y;
  if constexpr (N > 2) result.z = condition.z ? b.z : a.z;
  if constexpr (N > 3) result.w = condition.w ? b.w : a.w;
  return result;
}
template <class T, int N>
__KILN_INLINE vec<T, N> select(__kiln::converted<T> a, vec<T, N> b, __kiln::converted<vec<bool, N>> condition) {
  return select(vec<T, N>(a), b, condition);
}

}  // namespace metal
