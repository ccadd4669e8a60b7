// Pixel data types: vectors in memory in the bits of a pixel format (specification 2.7).
//
// A pixel is read and written as a whole, as the type T that arithmetic has, by the rules of pack.h. It can be assigned
// and compared, nothing else. 10 and 11 bits of a float are those of a half without its sign and its last bits; a number
// becomes the nearest, what is below 0 becomes 0. rgb9e5 has one exponent for three fractions (specification 8.7.5).
__KILN_EXACT_BEGIN
namespace __kiln {

template <class T>
struct components {
  typedef T type;
  static constexpr int count = 1;
};
template <class T, int N>
struct components<metal::vec<T, N>> {
  typedef T type;
  static constexpr int count = N;
};

// A field of 5 + `mantissa` bits, and the float that it stands for.
template <class T>
__KILN_INLINE T unpack_small_float(uint x, int first, int mantissa) {
  uint field = x >> first & ((32u << mantissa) - 1);
  return T(__builtin_bit_cast(half, ushort(field << (10 - mantissa))));
}
__KILN_INLINE uint pack_small_float(float x, int first, int mantissa) {
  int dropped = 23 - mantissa;
  uint bits = bits_of(x), rounded = (bits + ((1u << (dropped - 1)) - 1) + (bits >> dropped & 1)) >> dropped;
  uint regular = rounded - (112u << mantissa), infinite = 31u << mantissa;
  uint subnormal = uint(__builtin_rintf((x < 0x1p-14f ? x : 0.0f) * float(1u << (14 + mantissa))));
  uint field = x < 0x1p-14f ? subnormal : x < 0x1p16f ? regular : infinite;
  return (x > 0 ? field : x != x ? infinite | 1u << (mantissa - 1) : 0u) << first;
}

// Three fractions of 9 bits, from the lowest bits up, and the exponent that they share.
template <class T>
__KILN_INLINE T unpack_shared_exponent(uint x) {
  typedef typename components<T>::type C;
  float unit = power_of_two(int(x >> 27) - 24);
  return T(C(float(x & 511) * unit), C(float(x >> 9 & 511) * unit), C(float(x >> 18 & 511) * unit));
}
// What an exponent of 31 reaches; 0 for a NaN.
__KILN_INLINE float within_shared_exponent(float x) { return x > 0 ? (x < 65408.0f ? x : 65408.0f) : 0.0f; }
// x * scale, which is exact, to the nearest integer, halves up.
__KILN_INLINE uint fraction_of(float x, float scale) {
  float product = x * scale, below = __builtin_truncf(product);
  return uint(below) + (product - below >= 0.5f);
}
__KILN_INLINE uint pack_shared_exponent(float r, float g, float b) {
  r = within_shared_exponent(r), g = within_shared_exponent(g), b = within_shared_exponent(b);
  float largest = metal::fmax(r, metal::fmax(g, b));
  int exponent = largest < 0x1p-16f ? 0 : exponent_of(largest) + 16;
  exponent += fraction_of(largest, power_of_two(24 - exponent)) == 512;
  float scale = power_of_two(24 - exponent);
  return fraction_of(r, scale) | fraction_of(g, scale) << 9 | fraction_of(b, scale) << 18 | uint(exponent) << 27;
}

}  // namespace __kiln

// WORDS of type WORD hold the bits: `__bits` in UNPACK, which makes a T of components C of them, and in order what PACK
// makes of `v`.
#define __KILN_PIXEL(NAME, COMPONENTS, WORD, WORDS, UNPACK, ...)                                               \
  template <class T>                                                                                           \
  struct NAME {                                                                                                \
    typedef typename __kiln::components<T>::type C;                                                            \
    static_assert(__is_floating_point(C) && __kiln::components<T>::count == COMPONENTS,                        \
                  #NAME " is of " #COMPONENTS " floats");                                                      \
    WORD __bits[WORDS];                                                                                        \
    NAME() = default;                                                                                          \
    __KILN_INLINE NAME(T v) : __bits{__VA_ARGS__} {}                                                           \
    __KILN_INLINE operator T() const { return UNPACK; }                                                        \
    __KILN_PIXEL_COMPARISON(NAME, ==)                                                                          \
    __KILN_PIXEL_COMPARISON(NAME, !=)                                                                          \
  };
#define __KILN_PIXEL_COMPARISON(NAME, OP)                                                                      \
  friend __KILN_INLINE auto operator OP(NAME x, NAME y) { return T(x) OP T(y); }                             \
  friend __KILN_INLINE auto operator OP(NAME x, T y) { return T(x) OP y; }                                   \
  friend __KILN_INLINE auto operator OP(T x, NAME y) { return x OP T(y); }
#define __KILN_PIXELS_OF_WORDS(KIND, WORD, BITS)                                                               \
  __KILN_PIXEL(r##BITS##KIND, 1, WORD, 1, __KILN_GET(KIND, 0, BITS), __KILN_PUT(KIND, WORD, v, BITS))          \
  __KILN_PIXEL(rg##BITS##KIND, 2, WORD, 2, T(__KILN_GET(KIND, 0, BITS), __KILN_GET(KIND, 1, BITS)),            \
               __KILN_PUT(KIND, WORD, v.x, BITS), __KILN_PUT(KIND, WORD, v.y, BITS))                           \
  __KILN_PIXEL(rgba##BITS##KIND, 4, WORD, 4,                                                                   \
               T(__KILN_GET(KIND, 0, BITS), __KILN_GET(KIND, 1, BITS), __KILN_GET(KIND, 2, BITS),              \
                 __KILN_GET(KIND, 3, BITS)),                                                                   \
               __KILN_PUT(KIND, WORD, v.x, BITS), __KILN_PUT(KIND, WORD, v.y, BITS),                           \
               __KILN_PUT(KIND, WORD, v.z, BITS), __KILN_PUT(KIND, WORD, v.w, BITS))
#define __KILN_GET(KIND, INDEX, BITS) __kiln::unpack_##KIND<C>(__bits[INDEX], 0, BITS)
#define __KILN_PUT(KIND, WORD, VALUE, BITS) WORD(__kiln::pack_##KIND(VALUE, 0, BITS))

namespace metal {

__KILN_PIXELS_OF_WORDS(unorm, uchar, 8)
__KILN_PIXELS_OF_WORDS(snorm, uchar, 8)
__KILN_PIXELS_OF_WORDS(unorm, ushort, 16)
__KILN_PIXELS_OF_WORDS(snorm, ushort, 16)

__KILN_PIXEL(srgba8unorm, 4, uchar, 4,
             T(__kiln::unpack_srgb<C>(__bits[0], 0), __kiln::unpack_srgb<C>(__bits[1], 0),
               __kiln::unpack_srgb<C>(__bits[2], 0), __KILN_GET(unorm, 3, 8)),
             uchar(__kiln::pack_srgb(v.x, 0)), uchar(__kiln::pack_srgb(v.y, 0)), uchar(__kiln::pack_srgb(v.z, 0)),
             __KILN_PUT(unorm, uchar, v.w, 8))
__KILN_PIXEL(rgb10a2, 4, uint, 1,
             T(__kiln::unpack_unorm<C>(__bits[0], 0, 10), __kiln::unpack_unorm<C>(__bits[0], 10, 10),
               __kiln::unpack_unorm<C>(__bits[0], 20, 10), __kiln::unpack_unorm<C>(__bits[0], 30, 2)),
             __kiln::pack_unorm(v.x, 0, 10) | __kiln::pack_unorm(v.y, 10, 10) | __kiln::pack_unorm(v.z, 20, 10) |
                 __kiln::pack_unorm(v.w, 30, 2))
__KILN_PIXEL(rg11b10f, 3, uint, 1,
             T(__kiln::unpack_small_float<C>(__bits[0], 0, 6), __kiln::unpack_small_float<C>(__bits[0], 11, 6),
               __kiln::unpack_small_float<C>(__bits[0], 22, 5)),
             __kiln::pack_small_float(v.x, 0, 6) | __kiln::pack_small_float(v.y, 11, 6) |
                 __kiln::pack_small_float(v.z, 22, 5))
__KILN_PIXEL(rgb9e5, 3, uint, 1, __kiln::unpack_shared_exponent<T>(__bits[0]),
             __kiln::pack_shared_exponent(v.x, v.y, v.z))

}  // namespace metal
__KILN_EXACT_END
