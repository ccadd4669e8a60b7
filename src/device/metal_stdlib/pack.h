// pack_… and unpack_…: vectors of floats as fields of one integer, and back.
//
// The first component has the lowest bits. An unsigned field of n bits stands for c / (2^n - 1), a signed one for
// c / (2^(n-1) - 1), not below -1. Both directions are rounded once, to the nearest and halves to even, as the
// specification's 8.7.1 asks for since Metal 2; a NaN packs to 0. Products and quotients in float alone would be rounded
// twice: so a product's rounding error breaks its ties, and a quotient that becomes a half goes through the odd one of
// its two neighbours. sRGB goes by tables (math/srgb_tables.h); alpha, the fourth component, is linear there.
//
// The functions are templates because vec is not defined yet; U is never another type.
__KILN_EXACT_BEGIN
namespace __kiln {

// c / largest.
template <class T>
__KILN_INLINE T normalized(int c, float largest) {
  float quotient = float(c) / largest;
  if constexpr (same<T, half>) {
    float rest = fma(-quotient, largest, float(c));
    uint bits = bits_of(quotient), grown = (rest > 0) == (quotient > 0);
    quotient = rest == 0 || (bits & 1) ? quotient : float_of(bits + 2 * grown - 1);
  }
  return T(quotient);
}

// x * largest as an integer, of x in [lowest, 1].
__KILN_INLINE int denormalized(float x, float lowest, float largest) {
  x = x < lowest ? lowest : x > 1.0f ? 1.0f : x != x ? 0.0f : x;
  float product = x * largest, error = fma(x, largest, -product), nearest = __builtin_rintf(product);
  float rest = product - nearest;
  return int(nearest) + (rest == 0.5f && error > 0) - (rest == -0.5f && error < 0);
}

// The field of `bits` bits from `first` on.
template <class T>
__KILN_INLINE T unpack_unorm(uint x, int first, int bits) {
  uint mask = (1u << bits) - 1;
  return normalized<T>(x >> first & mask, mask);
}
template <class T>
__KILN_INLINE T unpack_snorm(uint x, int first, int bits) {
  int largest = (1 << (bits - 1)) - 1, c = int(x << (32 - bits - first)) >> (32 - bits);
  return normalized<T>(c < -largest ? -largest : c, largest);
}
template <class T>
__KILN_INLINE T unpack_srgb(uint x, int first) {
  return T(linear_of_srgb[x >> first & 255]);
}

__KILN_INLINE uint pack_unorm(float x, int first, int bits) {
  return uint(denormalized(x, 0.0f, (1u << bits) - 1)) << first;
}
__KILN_INLINE uint pack_snorm(float x, int first, int bits) {
  return (uint(denormalized(x, -1.0f, (1 << (bits - 1)) - 1)) & ((1u << bits) - 1)) << first;
}
__KILN_INLINE uint pack_srgb(float x, int first) {
  uint c = 0;
#pragma clang loop unroll(full)
  for (uint step = 128; step > 0; step >>= 1) c += x >= srgb_thresholds[c + step] ? step : 0;
  return c << first;
}

}  // namespace __kiln

#define __KILN_UNPACK(T, FORMAT, INTEGER, COUNT, ...)                        \
  template <class U = T>                                                     \
  __KILN_INLINE vec<U, COUNT> unpack_##FORMAT##_to_##T(INTEGER x) {          \
    return {__VA_ARGS__};                                                    \
  }
#define __KILN_PACK(T, FORMAT, INTEGER, COUNT, ...)                                         \
  template <class U = T>                                                                    \
  __KILN_INLINE INTEGER pack_##T##_to_##FORMAT(__kiln::converted<vec<U, COUNT>> x) {        \
    return INTEGER(__VA_ARGS__);                                                            \
  }

#define __KILN_UNPACK_4X8(T, KIND)                                                                               \
  __KILN_UNPACK(T, KIND##4x8, uint, 4, __kiln::unpack_##KIND<U>(x, 0, 8), __kiln::unpack_##KIND<U>(x, 8, 8),     \
                __kiln::unpack_##KIND<U>(x, 16, 8), __kiln::unpack_##KIND<U>(x, 24, 8))
#define __KILN_UNPACK_2X16(T, KIND) \
  __KILN_UNPACK(T, KIND##2x16, uint, 2, __kiln::unpack_##KIND<U>(x, 0, 16), __kiln::unpack_##KIND<U>(x, 16, 16))
#define __KILN_UNPACK_10A2(T, KIND)                                                                                \
  __KILN_UNPACK(T, KIND##10a2, uint, 4, __kiln::unpack_##KIND<U>(x, 0, 10), __kiln::unpack_##KIND<U>(x, 10, 10),   \
                __kiln::unpack_##KIND<U>(x, 20, 10), __kiln::unpack_##KIND<U>(x, 30, 2))
#define __KILN_PACK_4X8(T, KIND)                                                                       \
  __KILN_PACK(T, KIND##4x8, uint, 4, __kiln::pack_##KIND(x.x, 0, 8) | __kiln::pack_##KIND(x.y, 8, 8) | \
              __kiln::pack_##KIND(x.z, 16, 8) | __kiln::pack_##KIND(x.w, 24, 8))
#define __KILN_PACK_2X16(T, KIND) \
  __KILN_PACK(T, KIND##2x16, uint, 2, __kiln::pack_##KIND(x.x, 0, 16) | __kiln::pack_##KIND(x.y, 16, 16))
#define __KILN_PACK_10A2(T, KIND)                                                                         \
  __KILN_PACK(T, KIND##10a2, uint, 4, __kiln::pack_##KIND(x.x, 0, 10) | __kiln::pack_##KIND(x.y, 10, 10) | \
              __kiln::pack_##KIND(x.z, 20, 10) | __kiln::pack_##KIND(x.w, 30, 2))

#define __KILN_PACKED_FORMATS(T)                                                                                 \
  __KILN_UNPACK_4X8(T, unorm)                                                                                    \
  __KILN_UNPACK_4X8(T, snorm)                                                                                    \
  __KILN_UNPACK_2X16(T, unorm)                                                                                   \
  __KILN_UNPACK_2X16(T, snorm)                                                                                   \
  __KILN_UNPACK_10A2(T, unorm)                                                                                   \
  __KILN_UNPACK(T, unorm565, ushort, 3, __kiln::unpack_unorm<U>(x, 0, 5), __kiln::unpack_unorm<U>(x, 5, 6),      \
                __kiln::unpack_unorm<U>(x, 11, 5))                                                               \
  __KILN_UNPACK(T, unorm4x8_srgb, uint, 4, __kiln::unpack_srgb<U>(x, 0), __kiln::unpack_srgb<U>(x, 8),           \
                __kiln::unpack_srgb<U>(x, 16), __kiln::unpack_unorm<U>(x, 24, 8))                                \
  __KILN_PACK_4X8(T, unorm)                                                                                      \
  __KILN_PACK_4X8(T, snorm)                                                                                      \
  __KILN_PACK_2X16(T, unorm)                                                                                     \
  __KILN_PACK_2X16(T, snorm)                                                                                     \
  __KILN_PACK_10A2(T, unorm)                                                                                     \
  __KILN_PACK(T, unorm565, ushort, 3,                                                                            \
              __kiln::pack_unorm(x.x, 0, 5) | __kiln::pack_unorm(x.y, 5, 6) | __kiln::pack_unorm(x.z, 11, 5))    \
  __KILN_PACK(T, srgb_unorm4x8, uint, 4,                                                                         \
              __kiln::pack_srgb(x.x, 0) | __kiln::pack_srgb(x.y, 8) | __kiln::pack_srgb(x.z, 16) |               \
                  __kiln::pack_unorm(x.w, 24, 8))

namespace metal {
__KILN_PACKED_FORMATS(float)
__KILN_PACKED_FORMATS(half)
}  // namespace metal
__KILN_EXACT_END
