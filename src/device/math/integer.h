// The integer functions. (abs is in rounding.h; clamp, min, max and their relatives are in metal_stdlib/min_max.h.)
//
// Templates over the integer types: the first argument says which, the others are converted to it. Arithmetic that may
// overflow is that of the unsigned type or of one twice as wide.
namespace __kiln {

template <class T>
using unsigned_of = __make_unsigned(T);
template <class T>
constexpr int bits_in = 8 * sizeof(T);
template <class T>
constexpr bool is_signed = T(-1) < T(0);

template <int Bytes, bool IsSigned>
struct wider {
  typedef int type;
};
template <>
struct wider<2, false> {
  typedef uint type;
};
template <>
struct wider<4, true> {
  typedef long type;
};
template <>
struct wider<4, false> {
  typedef ulong type;
};
template <>
struct wider<8, true> {
  typedef __int128 type;
};
template <>
struct wider<8, false> {
  typedef unsigned __int128 type;
};
// A type that holds products of two T and a third T.
template <class T>
using wide = typename wider<sizeof(T), is_signed<T>>::type;

template <class T>
constexpr T largest_integer = T(unsigned_of<T>(-1) >> is_signed<T>);
template <class T>
constexpr T smallest_integer = T(~largest_integer<T>);

template <class T>
__KILN_INLINE T saturate_to(int x) {
  constexpr int low = smallest_integer<T>, high = largest_integer<T>;
  return T(x < low ? low : x > high ? high : x);
}

}  // namespace __kiln

namespace metal {

template <class T>
__KILN_INLINE __kiln::integral<T> popcount(T x) {
  return T(__builtin_popcountg(__kiln::unsigned_of<T>(x)));
}
// Of 0: the number of bits.
template <class T>
__KILN_INLINE __kiln::integral<T> clz(T x) {
  return T(__builtin_clzg(__kiln::unsigned_of<T>(x), __kiln::bits_in<T>));
}
template <class T>
__KILN_INLINE __kiln::integral<T> ctz(T x) {
  return T(__builtin_ctzg(__kiln::unsigned_of<T>(x), __kiln::bits_in<T>));
}
template <class T>
__KILN_INLINE __kiln::integral<T> reverse_bits(T x) {
  // Clang's function for any type would reverse a small integer as the int that it is promoted to.
  if constexpr (sizeof(T) == 1) return T(__builtin_bitreverse8(x));
  else if constexpr (sizeof(T) == 2) return T(__builtin_bitreverse16(x));
  else if constexpr (sizeof(T) == 4) return T(__builtin_bitreverse32(x));
  else return T(__builtin_bitreverse64(x));
}
__KILN_VECTOR_FORMS_1(popcount)
__KILN_VECTOR_FORMS_1(clz)
__KILN_VECTOR_FORMS_1(ctz)
__KILN_VECTOR_FORMS_1(reverse_bits)

// The bits [offset, offset + bits), extended by their sign where T has one. Fields that reach beyond the type, which
// Metal leaves undefined, are cut at its end.
template <class T>
__KILN_INLINE __kiln::integral<T> extract_bits(T x, uint offset, uint bits) {
  constexpr uint count = __kiln::bits_in<T>;
  if (bits == 0 || offset >= count) return 0;
  bits = bits < count - offset ? bits : count - offset;
  // Up, so that the field's last bit is the sign, and down.
  T up = T(__kiln::unsigned_of<T>(x) << (count - bits - offset));
  return T(up >> (count - bits));
}
template <class T, int N>
__KILN_INLINE vec<T, N> extract_bits(vec<T, N> x, uint offset, uint bits) {
  vec<T, N> result;
  result.x = extract_bits(x.x, offset, bits);
  result.y = extract_bits(x.y, offset, bits);
  if constexpr (N > 2) result.z = extract_bits(x.z, offset, bits);
  if constexpr (N > 3) result.w = extract_bits(x.w, offset, bits);
  return result;
}

// `base` with the bits [offset, offset + bits) from the first bits of `insert`.
template <class T>
__KILN_INLINE __kiln::integral<T> insert_bits(T base, __kiln::converted<T> insert, uint offset, uint bits) {
  constexpr uint count = __kiln::bits_in<T>;
  typedef __kiln::unsigned_of<T> U;
  if (bits == 0 || offset >= count) return base;
  U mask = U(U(bits < count ? (U(1) << bits) - 1 : U(-1)) << offset);
  return T((U(base) & U(~mask)) | (U(U(insert) << offset) & mask));
}
template <class T, int N>
__KILN_INLINE vec<T, N> insert_bits(vec<T, N> base, __kiln::converted<vec<T, N>> insert, uint offset, uint bits) {
  vec<T, N> result;
  result.x = insert_bits(base.x, insert.x, offset, bits);
  result.y = insert_bits(base.y, insert.y, offset, bits);
  if constexpr (N > 2) result.z = insert_bits(base.z, insert.z, offset, bits);
  if constexpr (N > 3) result.w = insert_bits(base.w, insert.w, offset, bits);
  return result;
}

// |x - y|, of the unsigned type, which has room for it.
template <class T>
__KILN_INLINE __kiln::unsigned_of<__kiln::integral<T>> absdiff(T x, __kiln::converted<T> y) {
  typedef __kiln::unsigned_of<T> U;
  return x < y ? U(U(y) - U(x)) : U(U(x) - U(y));
}
// Clang's functions would saturate a small integer as the int that it is promoted to.
template <class T>
__KILN_INLINE __kiln::integral<T> addsat(T x, __kiln::converted<T> y) {
  if constexpr (sizeof(T) < 4) return __kiln::saturate_to<T>(x + y);
  else return __builtin_elementwise_add_sat(x, T(y));
}
template <class T>
__KILN_INLINE __kiln::integral<T> subsat(T x, __kiln::converted<T> y) {
  if constexpr (sizeof(T) < 4) return __kiln::saturate_to<T>(x - y);
  else return __builtin_elementwise_sub_sat(x, T(y));
}
// (x + y) >> 1 and (x + y + 1) >> 1 of the sum that does not overflow.
template <class T>
__KILN_INLINE __kiln::integral<T> hadd(T x, __kiln::converted<T> y) {
  return T((x & y) + T(T(x ^ y) >> 1));
}
template <class T>
__KILN_INLINE __kiln::integral<T> rhadd(T x, __kiln::converted<T> y) {
  return T((x | y) - T(T(x ^ y) >> 1));
}
// The upper half of the product.
template <class T>
__KILN_INLINE __kiln::integral<T> mulhi(T x, __kiln::converted<T> y) {
  return T(__kiln::wide<T>(x) * __kiln::wide<T>(y) >> __kiln::bits_in<T>);
}
template <class T>
__KILN_INLINE __kiln::integral<T> madhi(T x, __kiln::converted<T> y, __kiln::converted<T> z) {
  typedef __kiln::unsigned_of<T> U;
  return T(U(U(mulhi(x, y)) + U(z)));
}
template <class T>
__KILN_INLINE __kiln::integral<T> madsat(T x, __kiln::converted<T> y, __kiln::converted<T> z) {
  __kiln::wide<T> sum = __kiln::wide<T>(x) * __kiln::wide<T>(y) + __kiln::wide<T>(z);
  constexpr T low = __kiln::smallest_integer<T>, high = __kiln::largest_integer<T>;
  return sum > __kiln::wide<T>(high) ? high : sum < __kiln::wide<T>(low) ? low : T(sum);
}
// Shifts to the left, the bits that leave coming back from the right; by y modulo the number of bits.
template <class T>
__KILN_INLINE __kiln::integral<T> rotate(T x, __kiln::converted<T> y) {
  constexpr uint count = __kiln::bits_in<T>;
  __kiln::unsigned_of<T> u = x;
  uint n = uint(y) & (count - 1);
  return T(__kiln::unsigned_of<T>(u << n) | __kiln::unsigned_of<T>(u >> ((count - n) & (count - 1))));
}
// Of the low 24 bits of x and y.
__KILN_INLINE int mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
__KILN_INLINE uint mul24(uint x, uint y) { return (x & 0xffffff) * (y & 0xffffff); }
__KILN_INLINE int mad24(int x, int y, int z) { return mul24(x, y) + z; }
__KILN_INLINE uint mad24(uint x, uint y, uint z) { return mul24(x, y) + z; }

__KILN_VECTOR_FORMS_2(absdiff)
__KILN_VECTOR_FORMS_2(addsat)
__KILN_VECTOR_FORMS_2(subsat)
__KILN_VECTOR_FORMS_2(hadd)
__KILN_VECTOR_FORMS_2(rhadd)
__KILN_VECTOR_FORMS_2(mulhi)
__KILN_VECTOR_FORMS_2(mul24)
__KILN_VECTOR_FORMS_2(rotate)
__KILN_VECTOR_FORMS_3(madhi)
__KILN_VECTOR_FORMS_3(madsat)
__KILN_VECTOR_FORMS_3(mad24)

}  // namespace metal
