// min, max, abs, and functions of an integer's bits.
#define __KILN_INTEGER_MIN_MAX_OF(R, A, B)                                                            \
  __KILN_DEVICE constexpr R min(A a, B b) { return static_cast<R>(b) < static_cast<R>(a) ? static_cast<R>(b) : static_cast<R>(a); }                       \
  __KILN_DEVICE constexpr R max(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a); }
__KILN_INTEGER_MIN_MAX_OF(int, int, int)
__KILN_INTEGER_MIN_MAX_OF(unsigned, unsigned, unsigned)
__KILN_INTEGER_MIN_MAX_OF(unsigned, int, unsigned)
__KILN_INTEGER_MIN_MAX_OF(unsigned, unsigned, int)
__KILN_INTEGER_MIN_MAX_OF(long, long, long)
__KILN_INTEGER_MIN_MAX_OF(unsigned long, unsigned long, unsigned long)
__KILN_INTEGER_MIN_MAX_OF(unsigned long, long, unsigned long)
__KILN_INTEGER_MIN_MAX_OF(unsigned long, unsigned long, long)
__KILN_INTEGER_MIN_MAX_OF(long long, long long, long long)
__KILN_INTEGER_MIN_MAX_OF(unsigned long long, unsigned long long, unsigned long long)
__KILN_INTEGER_MIN_MAX_OF(unsigned long long, long long, unsigned long long)
__KILN_INTEGER_MIN_MAX_OF(unsigned long long, unsigned long long, long long)
#define __KILN_REAL_MIN_MAX(R, A, B)                              \
  __KILN_DEVICE R min(A a, B b) { return fmin(R(a), R(b)); }      \
  __KILN_DEVICE R max(A a, B b) { return fmax(R(a), R(b)); }
__KILN_REAL_MIN_MAX(float, float, float)
__KILN_REAL_MIN_MAX(double, double, double)
__KILN_REAL_MIN_MAX(double, float, double)
__KILN_REAL_MIN_MAX(double, double, float)
__KILN_DEVICE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
__KILN_DEVICE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
__KILN_DEVICE long long llmin(long long a, long long b) { return min(a, b); }
__KILN_DEVICE long long llmax(long long a, long long b) { return max(a, b); }
__KILN_DEVICE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
__KILN_DEVICE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

__KILN_DEVICE constexpr int abs(int x) { return x < 0 ? -x : x; }
__KILN_DEVICE constexpr long abs(long x) { return x < 0 ? -x : x; }
__KILN_DEVICE constexpr long long abs(long long x) { return x < 0 ? -x : x; }
__KILN_DEVICE float abs(float x) { return __builtin_fabsf(x); }
__KILN_DEVICE double abs(double x) { return __builtin_fabs(x); }
__KILN_DEVICE constexpr long labs(long x) { return abs(x); }
__KILN_DEVICE constexpr long long llabs(long long x) { return abs(x); }

__KILN_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
__KILN_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__KILN_DEVICE int __clz(int x) { return __builtin_clzg(unsigned(x), 32); }
__KILN_DEVICE int __clzll(long long x) { return __builtin_clzg(static_cast<unsigned long long>(x), 64); }
__KILN_DEVICE int __ffs(int x) { return x == 0 ? 0 : __builtin_ctzg(unsigned(x), 32) + 1; }
__KILN_DEVICE int __ffsll(long long x) { return x == 0 ? 0 : __builtin_ctzg(static_cast<unsigned long long>(x), 64) + 1; }
__KILN_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
__KILN_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
__KILN_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long bytes = (static_cast<unsigned long long>(y) << 32) | x;
  unsigned result = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned s = (selector >> (4 * i)) & 15;
    unsigned byte = unsigned(bytes >> (8 * (s & 7))) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
__KILN_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned((((static_cast<unsigned long long>(high) << 32) | low) << (shift & 31)) >> 32);
}
__KILN_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return unsigned((((static_cast<unsigned long long>(high) << 32) | low) << min(shift, 32u)) >> 32);
}
__KILN_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((static_cast<unsigned long long>(high) << 32) | low) >> (shift & 31));
}
__KILN_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((static_cast<unsigned long long>(high) << 32) | low) >> min(shift, 32u));
}
__KILN_DEVICE int __mulhi(int x, int y) { return int((static_cast<long long>(x) * y) >> 32); }
__KILN_DEVICE unsigned __umulhi(unsigned x, unsigned y) { return unsigned((static_cast<unsigned long long>(x) * y) >> 32); }
__KILN_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  unsigned long long a = x >> 32, b = x & 0xffffffff, c = y >> 32, d = y & 0xffffffff;
  unsigned long long middle = a * d + (b * d >> 32), other = b * c + (middle & 0xffffffff);
  return a * c + (middle >> 32) + (other >> 32);
}
__KILN_DEVICE long long __mul64hi(long long x, long long y) {
  unsigned long long high = __umul64hi(x, y);
  return static_cast<long long>(high - (x < 0 ? y : 0) - (y < 0 ? x : 0));
}
__KILN_DEVICE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
__KILN_DEVICE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
__KILN_DEVICE unsigned __sad(int x, int y, unsigned z) { return (x < y ? unsigned(y) - x : unsigned(x) - y) + z; }
__KILN_DEVICE unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x < y ? y - x : x - y) + z; }
__KILN_DEVICE int __hadd(int x, int y) { return (x & y) + ((x ^ y) >> 1); }
__KILN_DEVICE int __rhadd(int x, int y) { return (x | y) - ((x ^ y) >> 1); }
__KILN_DEVICE unsigned __uhadd(unsigned x, unsigned y) { return (x & y) + ((x ^ y) >> 1); }
__KILN_DEVICE unsigned __urhadd(unsigned x, unsigned y) { return (x | y) - ((x ^ y) >> 1); }
// The place of the n-th bit that is set, from `base` on: upwards, or downwards where n is negative.
__KILN_DEVICE unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  unsigned found = n > 0 ? n : -n, result = ~0u;
  for (unsigned i = 0; i < 32; ++i) {
    unsigned at = n > 0 ? i : 31 - i;
    bool counts = (n > 0 ? at >= base : at <= base) && (mask >> at & 1);
    found -= counts;
    if (counts && found == 0) result = at;
  }
  return result;
}
__KILN_DEVICE int __dp4a(int a, int b, int c) {
#pragma unroll
  for (int i = 0; i < 32; i += 8) c += int(static_cast<signed char>(a >> i)) * int(static_cast<signed char>(b >> i));
  return c;
}
__KILN_DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
#pragma unroll
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
  return c;
}
__KILN_DEVICE int __dp4a(char4 a, char4 b, int c) {
  return __dp4a(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c);
}
__KILN_DEVICE unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), c);
}
__KILN_DEVICE int __dp2a_lo(int a, int b, int c) {
  return c + int(short(a)) * int(static_cast<signed char>(b)) + (a >> 16) * int(static_cast<signed char>(b >> 8));
}
__KILN_DEVICE int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
__KILN_DEVICE unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 65535) * (b & 255) + (a >> 16) * (b >> 8 & 255);
}
__KILN_DEVICE unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
__KILN_DEVICE int __dp2a_lo(short2 a, char4 b, int c) {
  return __dp2a_lo(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c);
}
__KILN_DEVICE int __dp2a_hi(short2 a, char4 b, int c) {
  return __dp2a_hi(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c);
}
__KILN_DEVICE unsigned __dp2a_lo(ushort2 a, uchar4 b, unsigned c) {
  return __dp2a_lo(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), c);
}
__KILN_DEVICE unsigned __dp2a_hi(ushort2 a, uchar4 b, unsigned c) {
  return __dp2a_hi(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), c);
}
__KILN_DEVICE unsigned short __nv_bswap16(unsigned short x) { return __builtin_bswap16(x); }
__KILN_DEVICE unsigned __nv_bswap32(unsigned x) { return __builtin_bswap32(x); }
__KILN_DEVICE unsigned long long __nv_bswap64(unsigned long long x) { return __builtin_bswap64(x); }
