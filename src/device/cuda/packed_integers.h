// Arithmetic on the halves (2) and the bytes (4) of a word, each by itself, and maxima of sums.
namespace __kiln {
// Part `i` of a word, of 8 or 16 bits.
template <int Bits, bool Signed>
__KILN_DEVICE int part(unsigned word, int i) {
  unsigned bits = word << (32 - Bits * (i + 1));
  return Signed ? int(bits) >> (32 - Bits) : int(bits >> (32 - Bits));
}
template <int Bits, bool Signed, class F>
__KILN_DEVICE unsigned of_parts(unsigned a, unsigned b, F f) {
  unsigned result = 0;
#pragma unroll
  for (int i = 0; i < 32 / Bits; ++i) {
    unsigned value = unsigned(f(part<Bits, Signed>(a, i), part<Bits, Signed>(b, i)));
    result |= (value & ((1u << Bits) - 1)) << (Bits * i);
  }
  return result;
}
template <int Bits, bool Signed>
__KILN_DEVICE int saturated(int x) {
  constexpr int lowest = Signed ? -(1 << (Bits - 1)) : 0, highest = Signed ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1;
  return x < lowest ? lowest : x > highest ? highest : x;
}
}  // namespace __kiln

#define __KILN_PARTS_2(NAME, SIGNED, VALUE)                                                                  \
  __KILN_DEVICE unsigned NAME##2(unsigned a, unsigned b) {                                                   \
    constexpr int bits = 16;                                                                                 \
    return __kiln::of_parts<bits, SIGNED>(a, b, [](int x, int y) { return VALUE; });                         \
  }                                                                                                          \
  __KILN_DEVICE unsigned NAME##4(unsigned a, unsigned b) {                                                   \
    constexpr int bits = 8;                                                                                  \
    return __kiln::of_parts<bits, SIGNED>(a, b, [](int x, int y) { return VALUE; });                         \
  }
#define __KILN_PARTS_1(NAME, SIGNED, VALUE)                                                                  \
  __KILN_DEVICE unsigned NAME##2(unsigned a) {                                                               \
    constexpr int bits = 16;                                                                                 \
    return __kiln::of_parts<bits, SIGNED>(a, 0, [](int x, int) { return VALUE; });                           \
  }                                                                                                          \
  __KILN_DEVICE unsigned NAME##4(unsigned a) {                                                               \
    constexpr int bits = 8;                                                                                  \
    return __kiln::of_parts<bits, SIGNED>(a, 0, [](int x, int) { return VALUE; });                           \
  }
__KILN_PARTS_1(__vabs, true, x < 0 ? -x : x)
__KILN_PARTS_1(__vabsss, true, (__kiln::saturated<bits, true>(x < 0 ? -x : x)))
__KILN_PARTS_1(__vneg, true, -x)
__KILN_PARTS_1(__vnegss, true, (__kiln::saturated<bits, true>(-x)))
__KILN_PARTS_2(__vabsdiffs, true, x < y ? y - x : x - y)
__KILN_PARTS_2(__vabsdiffu, false, x < y ? y - x : x - y)
__KILN_PARTS_2(__vadd, false, x + y)
__KILN_PARTS_2(__vaddss, true, (__kiln::saturated<bits, true>(x + y)))
__KILN_PARTS_2(__vaddus, false, (__kiln::saturated<bits, false>(x + y)))
__KILN_PARTS_2(__vsub, false, x - y)
__KILN_PARTS_2(__vsubss, true, (__kiln::saturated<bits, true>(x - y)))
__KILN_PARTS_2(__vsubus, false, (__kiln::saturated<bits, false>(x - y)))
// Rounded away from zero.
__KILN_PARTS_2(__vavgs, true, (x + y + (x + y >= 0)) >> 1)
__KILN_PARTS_2(__vavgu, false, (x + y + 1) >> 1)
__KILN_PARTS_2(__vhaddu, false, (x + y) >> 1)
__KILN_PARTS_2(__vmaxs, true, x < y ? y : x)
__KILN_PARTS_2(__vmaxu, false, x < y ? y : x)
__KILN_PARTS_2(__vmins, true, y < x ? y : x)
__KILN_PARTS_2(__vminu, false, y < x ? y : x)
#define __KILN_PARTS_COMPARED(WORD, SIGNED, CONDITION)      \
  __KILN_PARTS_2(__vcmp##WORD, SIGNED, CONDITION ? -1 : 0)  \
  __KILN_PARTS_2(__vset##WORD, SIGNED, CONDITION ? 1 : 0)
__KILN_PARTS_COMPARED(eq, false, x == y)
__KILN_PARTS_COMPARED(ne, false, x != y)
__KILN_PARTS_COMPARED(ges, true, x >= y)
__KILN_PARTS_COMPARED(geu, false, x >= y)
__KILN_PARTS_COMPARED(gts, true, x > y)
__KILN_PARTS_COMPARED(gtu, false, x > y)
__KILN_PARTS_COMPARED(les, true, x <= y)
__KILN_PARTS_COMPARED(leu, false, x <= y)
__KILN_PARTS_COMPARED(lts, true, x < y)
__KILN_PARTS_COMPARED(ltu, false, x < y)
#define __KILN_PARTS_SUMMED(NAME, BITS, SIGNED)                                                     \
  __KILN_DEVICE unsigned NAME(unsigned a, unsigned b) {                                             \
    unsigned sum = 0;                                                                               \
    _Pragma("unroll") for (int i = 0; i < 32 / BITS; ++i) {                                         \
      int x = __kiln::part<BITS, SIGNED>(a, i), y = __kiln::part<BITS, SIGNED>(b, i);               \
      sum += unsigned(x < y ? y - x : x - y);                                                       \
    }                                                                                               \
    return sum;                                                                                     \
  }
__KILN_PARTS_SUMMED(__vsads2, 16, true)
__KILN_PARTS_SUMMED(__vsads4, 8, true)
__KILN_PARTS_SUMMED(__vsadu2, 16, false)
__KILN_PARTS_SUMMED(__vsadu4, 8, false)

// Maxima and minima of sums and of three; sums wrap. `relu`: at least 0.
namespace __kiln {
template <class T>
__KILN_DEVICE T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
__KILN_DEVICE T smaller(T a, T b) {
  return b < a ? b : a;
}
template <bool Signed, class F>
__KILN_DEVICE unsigned of_halves(unsigned a, unsigned b, unsigned c, F f) {
  unsigned result = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i)
    result |= (unsigned(f(part<16, Signed>(a, i), part<16, Signed>(b, i), part<16, Signed>(c, i))) & 0xffff) << (16 * i);
  return result;
}
// A sum of halves, wrapped.
template <bool Signed>
__KILN_DEVICE int half_sum(int a, int b) {
  return part<16, Signed>(unsigned(a + b), 0);
}
}  // namespace __kiln
#define __KILN_EXTREMES(WORD, CHOOSE, BETTER)                                                                          \
  __KILN_DEVICE int __viadd##WORD##_s32(int a, int b, int c) { return __kiln::CHOOSE(int(unsigned(a) + b), c); }       \
  __KILN_DEVICE unsigned __viadd##WORD##_u32(unsigned a, unsigned b, unsigned c) { return __kiln::CHOOSE(a + b, c); }  \
  __KILN_DEVICE int __viadd##WORD##_s32_relu(int a, int b, int c) {                                                    \
    return __kiln::larger(__viadd##WORD##_s32(a, b, c), 0);                                                            \
  }                                                                                                                    \
  __KILN_DEVICE unsigned __viadd##WORD##_s16x2(unsigned a, unsigned b, unsigned c) {                                   \
    return __kiln::of_halves<true>(                                                                                    \
        a, b, c, [](int x, int y, int z) { return __kiln::CHOOSE(__kiln::half_sum<true>(x, y), z); });                 \
  }                                                                                                                    \
  __KILN_DEVICE unsigned __viadd##WORD##_u16x2(unsigned a, unsigned b, unsigned c) {                                   \
    return __kiln::of_halves<false>(                                                                                   \
        a, b, c, [](int x, int y, int z) { return __kiln::CHOOSE(__kiln::half_sum<false>(x, y), z); });                \
  }                                                                                                                    \
  __KILN_DEVICE unsigned __viadd##WORD##_s16x2_relu(unsigned a, unsigned b, unsigned c) {                              \
    return __vmaxs2(__viadd##WORD##_s16x2(a, b, c), 0);                                                                \
  }                                                                                                                    \
  __KILN_DEVICE int __vi##WORD##3_s32(int a, int b, int c) { return __kiln::CHOOSE(__kiln::CHOOSE(a, b), c); }         \
  __KILN_DEVICE unsigned __vi##WORD##3_u32(unsigned a, unsigned b, unsigned c) {                                       \
    return __kiln::CHOOSE(__kiln::CHOOSE(a, b), c);                                                                    \
  }                                                                                                                    \
  __KILN_DEVICE int __vi##WORD##3_s32_relu(int a, int b, int c) { return __kiln::larger(__vi##WORD##3_s32(a, b, c), 0); } \
  __KILN_DEVICE unsigned __vi##WORD##3_s16x2(unsigned a, unsigned b, unsigned c) {                                     \
    return __v##WORD##s2(__v##WORD##s2(a, b), c);                                                                      \
  }                                                                                                                    \
  __KILN_DEVICE unsigned __vi##WORD##3_u16x2(unsigned a, unsigned b, unsigned c) {                                     \
    return __v##WORD##u2(__v##WORD##u2(a, b), c);                                                                      \
  }                                                                                                                    \
  __KILN_DEVICE unsigned __vi##WORD##3_s16x2_relu(unsigned a, unsigned b, unsigned c) {                                \
    return __vmaxs2(__vi##WORD##3_s16x2(a, b, c), 0);                                                                  \
  }                                                                                                                    \
  __KILN_DEVICE int __vi##WORD##_s32_relu(int a, int b) { return __kiln::larger(__kiln::CHOOSE(a, b), 0); }            \
  __KILN_DEVICE unsigned __vi##WORD##_s16x2_relu(unsigned a, unsigned b) { return __vmaxs2(__v##WORD##s2(a, b), 0); }  \
  /* And which one it is. */                                                                                           \
  __KILN_DEVICE int __vib##WORD##_s32(int a, int b, bool* first) { return (*first = a BETTER b) ? a : b; }             \
  __KILN_DEVICE unsigned __vib##WORD##_u32(unsigned a, unsigned b, bool* first) { return (*first = a BETTER b) ? a : b; } \
  __KILN_DEVICE unsigned __vib##WORD##_s16x2(unsigned a, unsigned b, bool* high, bool* low) {                          \
    *high = __kiln::part<16, true>(a, 1) BETTER __kiln::part<16, true>(b, 1);                                          \
    *low = __kiln::part<16, true>(a, 0) BETTER __kiln::part<16, true>(b, 0);                                           \
    return __v##WORD##s2(a, b);                                                                                        \
  }                                                                                                                    \
  __KILN_DEVICE unsigned __vib##WORD##_u16x2(unsigned a, unsigned b, bool* high, bool* low) {                          \
    *high = __kiln::part<16, false>(a, 1) BETTER __kiln::part<16, false>(b, 1);                                        \
    *low = __kiln::part<16, false>(a, 0) BETTER __kiln::part<16, false>(b, 0);                                         \
    return __v##WORD##u2(a, b);                                                                                        \
  }
__KILN_EXTREMES(max, larger, >=)
__KILN_EXTREMES(min, smaller, <=)
