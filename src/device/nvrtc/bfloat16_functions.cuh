// Pairs of bfloats, and functions and conversions by name: the rest of what bodies use of <cuda_bf16.h>, behind
// bfloat16.cuh.
struct __nv_bfloat162_raw {
  unsigned short x, y;
};
struct __align__(4) __nv_bfloat162 {
  __nv_bfloat162() = default;
  __device__ __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
  __device__ __nv_bfloat162(const __nv_bfloat162_raw& raw)
      : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
  __device__ operator __nv_bfloat162_raw() const { return {x.bits, y.bits}; }
  __nv_bfloat16 x, y;
};
using nv_bfloat162 = __nv_bfloat162;

namespace __kiln {
__KILN_DEVICE unsigned word(__nv_bfloat162 v) { return v.x.bits | (unsigned(v.y.bits) << 16); }
__KILN_DEVICE __nv_bfloat162 to_bfloat2(unsigned w) {
  return __nv_bfloat162_raw{static_cast<unsigned short>(w), static_cast<unsigned short>(w >> 16)};
}
}  // namespace __kiln

__KILN_DEVICE __nv_bfloat16 __float2bfloat16_rz(float x) {
  if (x != x) return x;
  return __kiln::to_bfloat(static_cast<unsigned short>(__float_as_uint(x) >> 16));
}
__KILN_DEVICE __nv_bfloat16 __float2bfloat16_rd(float x) {
  __nv_bfloat16 r = __float2bfloat16_rz(x);
  return float(r) > x ? __kiln::to_bfloat(static_cast<unsigned short>(r.bits + 1)) : r;
}
__KILN_DEVICE __nv_bfloat16 __float2bfloat16_ru(float x) {
  __nv_bfloat16 r = __float2bfloat16_rz(x);
  return float(r) < x ? __kiln::to_bfloat(static_cast<unsigned short>(r.bits + 1)) : r;
}
__KILN_DEVICE __nv_bfloat16 __double2bfloat16(double x) { return x; }
__KILN_DEVICE short __bfloat16_as_short(__nv_bfloat16 x) { return static_cast<short>(x.bits); }
__KILN_DEVICE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
__KILN_DEVICE __nv_bfloat16 __short_as_bfloat16(short x) { return __kiln::to_bfloat(static_cast<unsigned short>(x)); }
__KILN_DEVICE __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __kiln::to_bfloat(x); }
__KILN_DEVICE __nv_bfloat16 __short2bfloat16_rn(short x) { return x; }
__KILN_DEVICE __nv_bfloat16 __ushort2bfloat16_rn(unsigned short x) { return x; }
__KILN_DEVICE __nv_bfloat16 __int2bfloat16_rn(int x) { return x; }
__KILN_DEVICE __nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return x; }
__KILN_DEVICE __nv_bfloat16 __ll2bfloat16_rn(long long x) { return x; }
__KILN_DEVICE __nv_bfloat16 __ull2bfloat16_rn(unsigned long long x) { return x; }
#define __KILN_BFLOAT_TO(WORD, TYPE)                                                                           \
  __KILN_DEVICE TYPE __bfloat162##WORD##_rn(__nv_bfloat16 x) { return __float2##WORD##_rn(float(x)); }         \
  __KILN_DEVICE TYPE __bfloat162##WORD##_rz(__nv_bfloat16 x) { return __float2##WORD##_rz(float(x)); }         \
  __KILN_DEVICE TYPE __bfloat162##WORD##_rd(__nv_bfloat16 x) { return __float2##WORD##_rd(float(x)); }         \
  __KILN_DEVICE TYPE __bfloat162##WORD##_ru(__nv_bfloat16 x) { return __float2##WORD##_ru(float(x)); }
__KILN_BFLOAT_TO(int, int)
__KILN_BFLOAT_TO(uint, unsigned)
__KILN_BFLOAT_TO(ll, long long)
__KILN_BFLOAT_TO(ull, unsigned long long)

// Whole numbers of 8 and 16 bits: the nearest where they do not fit, 0 of what is no number.
#define __KILN_BFLOAT_TO_SHORT(ROUNDING)                                                                       \
  __KILN_DEVICE short __bfloat162short_##ROUNDING(__nv_bfloat16 x) {                                            \
    return static_cast<short>(max(-32768, min(32767, __float2int_##ROUNDING(float(x)))));                      \
  }                                                                                                            \
  __KILN_DEVICE unsigned short __bfloat162ushort_##ROUNDING(__nv_bfloat16 x) {                                  \
    return static_cast<unsigned short>(max(0, min(65535, __float2int_##ROUNDING(float(x)))));                  \
  }
__KILN_BFLOAT_TO_SHORT(rn)
__KILN_BFLOAT_TO_SHORT(rz)
__KILN_BFLOAT_TO_SHORT(rd)
__KILN_BFLOAT_TO_SHORT(ru)
__KILN_DEVICE signed char __bfloat162char_rz(__nv_bfloat16 x) { return static_cast<signed char>(x); }
__KILN_DEVICE unsigned char __bfloat162uchar_rz(__nv_bfloat16 x) { return static_cast<unsigned char>(x); }
// By way of a float that keeps what is lost.
#define __KILN_BFLOAT_FROM(WORD, TYPE, WIDE)                                                                   \
  __KILN_DEVICE __nv_bfloat16 __##WORD##2bfloat16_rz(TYPE x) { return __float2bfloat16_rz(__kiln::to_odd(WIDE(x))); } \
  __KILN_DEVICE __nv_bfloat16 __##WORD##2bfloat16_rd(TYPE x) { return __float2bfloat16_rd(__kiln::to_odd(WIDE(x))); } \
  __KILN_DEVICE __nv_bfloat16 __##WORD##2bfloat16_ru(TYPE x) { return __float2bfloat16_ru(__kiln::to_odd(WIDE(x))); }
using __kiln_wide = long long;
using __kiln_unsigned_wide = unsigned long long;
__KILN_BFLOAT_FROM(short, short, int)
__KILN_BFLOAT_FROM(ushort, unsigned short, int)
__KILN_BFLOAT_FROM(int, int, int)
__KILN_BFLOAT_FROM(uint, unsigned, unsigned)
__KILN_BFLOAT_FROM(ll, long long, __kiln_wide)
__KILN_BFLOAT_FROM(ull, unsigned long long, __kiln_unsigned_wide)

__KILN_DEVICE __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
__KILN_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
__KILN_DEVICE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
__KILN_DEVICE __nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
__KILN_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
__KILN_DEVICE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
__KILN_DEVICE float2 __bfloat1622float2(__nv_bfloat162 v) { return {float(v.x), float(v.y)}; }
__KILN_DEVICE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
__KILN_DEVICE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
__KILN_DEVICE float __low2float(__nv_bfloat162 v) { return v.x; }
__KILN_DEVICE float __high2float(__nv_bfloat162 v) { return v.y; }
__KILN_DEVICE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
__KILN_DEVICE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
__KILN_DEVICE __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return {v.y, v.x}; }
__KILN_DEVICE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
__KILN_DEVICE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }

#if __CUDA_ARCH__ >= 800
#ifdef __KILN_CPU_CUDA
__KILN_SMALL_TERNARY(__nv_bfloat16, __kiln::brain16, __kiln::to_bfloat, __hfma, "fma.rn")
__KILN_DEVICE __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
#else
__KILN_DEVICE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { __KILN_BFLOAT_FMA(a, b, c); }
__KILN_DEVICE __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  unsigned r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(__kiln::word(a)), "r"(__kiln::word(b)), "r"(__kiln::word(c)));
  return __kiln::to_bfloat2(r);
}
#define __KILN_BFLOAT_PAIR(NAME2, PTX)                                                                \
  __KILN_DEVICE __nv_bfloat162 NAME2(__nv_bfloat162 a, __nv_bfloat162 b) {                            \
    unsigned r;                                                                                       \
    asm(PTX ".bf16x2 %0, %1, %2;" : "=r"(r) : "r"(__kiln::word(a)), "r"(__kiln::word(b)));            \
    return __kiln::to_bfloat2(r);                                                                     \
  }
#endif
#define __KILN_BFLOAT_BINARY(NAME, NAME2, PTX) \
  __KILN_BFLOAT_INSTRUCTION(NAME, PTX)         \
  __KILN_BFLOAT_PAIR(NAME2, PTX)
__KILN_BFLOAT_BINARY(__hmax, __hmax2, "max")
__KILN_BFLOAT_BINARY(__hmin, __hmin2, "min")
__KILN_BFLOAT_BINARY(__hmax_nan, __hmax2_nan, "max.NaN")
__KILN_BFLOAT_BINARY(__hmin_nan, __hmin2_nan, "min.NaN")
#if __CUDA_ARCH__ >= 900
__KILN_BFLOAT_PAIR(__hadd2, "add")
__KILN_BFLOAT_PAIR(__hsub2, "sub")
__KILN_BFLOAT_PAIR(__hmul2, "mul")
#else
__KILN_DEVICE __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(a, {1.0f, 1.0f}, b); }
__KILN_DEVICE __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(b, {-1.0f, -1.0f}, a); }
__KILN_DEVICE __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(a, b, {-0.0f, -0.0f}); }
#endif
// Not contracted.
#if __CUDA_ARCH__ >= 900
__KILN_BFLOAT_BINARY(__hadd_rn, __hadd2_rn, "add.rn")
__KILN_BFLOAT_BINARY(__hsub_rn, __hsub2_rn, "sub.rn")
__KILN_BFLOAT_BINARY(__hmul_rn, __hmul2_rn, "mul.rn")
#else
__KILN_DEVICE __nv_bfloat16 __hadd_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hadd(a, b); }
__KILN_DEVICE __nv_bfloat16 __hsub_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hsub(a, b); }
__KILN_DEVICE __nv_bfloat16 __hmul_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmul(a, b); }
__KILN_DEVICE __nv_bfloat162 __hadd2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __hadd2(a, b); }
__KILN_DEVICE __nv_bfloat162 __hsub2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __hsub2(a, b); }
__KILN_DEVICE __nv_bfloat162 __hmul2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __hmul2(a, b); }
#endif
// Between 0 and 1, 0 of what is no number; and at least 0.
namespace __kiln {
__KILN_DEVICE __nv_bfloat16 saturated(__nv_bfloat16 x) {
  return __hmin(__hmax(x, __nv_bfloat16(0.0f)), __nv_bfloat16(1.0f));
}
}  // namespace __kiln
__KILN_DEVICE __nv_bfloat16 __hadd_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __kiln::saturated(__hadd(a, b)); }
__KILN_DEVICE __nv_bfloat16 __hsub_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __kiln::saturated(__hsub(a, b)); }
__KILN_DEVICE __nv_bfloat16 __hmul_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __kiln::saturated(__hmul(a, b)); }
__KILN_DEVICE __nv_bfloat16 __hfma_sat(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __kiln::saturated(__hfma(a, b, c));
}
__KILN_DEVICE __nv_bfloat16 __hfma_relu(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __hmax_nan(__hfma(a, b, c), __nv_bfloat16(0.0f));
}
#define __KILN_BFLOAT_BOTH(NAME2, NAME)                                                              \
  __KILN_DEVICE __nv_bfloat162 NAME2(__nv_bfloat162 a, __nv_bfloat162 b) {                           \
    return {NAME(a.x, b.x), NAME(a.y, b.y)};                                                         \
  }
__KILN_BFLOAT_BOTH(__hadd2_sat, __hadd_sat)
__KILN_BFLOAT_BOTH(__hsub2_sat, __hsub_sat)
__KILN_BFLOAT_BOTH(__hmul2_sat, __hmul_sat)
__KILN_DEVICE __nv_bfloat162 __hfma2_sat(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)};
}
__KILN_DEVICE __nv_bfloat162 __hfma2_relu(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
}
#else
// Rounded twice, so only nearly as the later GPUs do.
__KILN_DEVICE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return fmaf(float(a), float(b), float(c));
}
__KILN_DEVICE __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) { return fmaxf(a, b); }
__KILN_DEVICE __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) { return fminf(a, b); }
__KILN_DEVICE __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
#define __KILN_BFLOAT_EACH(NAME2, NAME) \
  __KILN_DEVICE __nv_bfloat162 NAME2(__nv_bfloat162 a, __nv_bfloat162 b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; }
__KILN_BFLOAT_EACH(__hadd2, __hadd)
__KILN_BFLOAT_EACH(__hsub2, __hsub)
__KILN_BFLOAT_EACH(__hmul2, __hmul)
__KILN_BFLOAT_EACH(__hmax2, __hmax)
__KILN_BFLOAT_EACH(__hmin2, __hmin)
#endif
__KILN_DEVICE __nv_bfloat162 __h2div(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }
__KILN_DEVICE __nv_bfloat16 __habs(__nv_bfloat16 a) {
  return __kiln::to_bfloat(static_cast<unsigned short>(a.bits & 0x7fff));
}
__KILN_DEVICE __nv_bfloat162 __hneg2(__nv_bfloat162 a) { return {__hneg(a.x), __hneg(a.y)}; }
__KILN_DEVICE __nv_bfloat162 __habs2(__nv_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }

#define __KILN_BFLOAT_COMPARISON(WORD, CONDITION)                                                   \
  __KILN_DEVICE bool __h##WORD(__nv_bfloat16 left, __nv_bfloat16 right) {                           \
    float a = left, b = right;                                                                      \
    return CONDITION;                                                                               \
  }                                                                                                 \
  __KILN_DEVICE __nv_bfloat162 __h##WORD##2(__nv_bfloat162 a, __nv_bfloat162 b) {                   \
    return {float(__h##WORD(a.x, b.x)), float(__h##WORD(a.y, b.y))};                                \
  }                                                                                                 \
  __KILN_DEVICE bool __hb##WORD##2(__nv_bfloat162 a, __nv_bfloat162 b) {                            \
    return __h##WORD(a.x, b.x) && __h##WORD(a.y, b.y);                                              \
  }                                                                                                 \
  __KILN_DEVICE unsigned __h##WORD##2_mask(__nv_bfloat162 a, __nv_bfloat162 b) {                    \
    return (__h##WORD(a.x, b.x) ? 0xffffu : 0u) | (__h##WORD(a.y, b.y) ? 0xffff0000u : 0u);         \
  }
__KILN_BFLOAT_COMPARISON(eq, a == b)
__KILN_BFLOAT_COMPARISON(ne, a < b || a > b)
__KILN_BFLOAT_COMPARISON(lt, a < b)
__KILN_BFLOAT_COMPARISON(le, a <= b)
__KILN_BFLOAT_COMPARISON(gt, a > b)
__KILN_BFLOAT_COMPARISON(ge, a >= b)
__KILN_BFLOAT_COMPARISON(equ, !(a < b || a > b))
__KILN_BFLOAT_COMPARISON(neu, a != b)
__KILN_BFLOAT_COMPARISON(ltu, !(a >= b))
__KILN_BFLOAT_COMPARISON(leu, !(a > b))
__KILN_BFLOAT_COMPARISON(gtu, !(a <= b))
__KILN_BFLOAT_COMPARISON(geu, !(a < b))
// a * b + c of complex numbers, real part first.
__KILN_DEVICE __nv_bfloat162 __hcmadd(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}
__KILN_DEVICE bool __hisnan(__nv_bfloat16 a) { return (a.bits & 0x7fff) > 0x7f80; }
__KILN_DEVICE int __hisinf(__nv_bfloat16 a) { return a.bits == 0x7f80 ? 1 : a.bits == 0xff80 ? -1 : 0; }
__KILN_DEVICE __nv_bfloat162 __hisnan2(__nv_bfloat162 a) { return {float(__hisnan(a.x)), float(__hisnan(a.y))}; }

#define __KILN_BFLOAT_FUNCTION(NAME, NAME2, FLOAT)                                          \
  __KILN_DEVICE __nv_bfloat16 NAME(__nv_bfloat16 a) {                                       \
    float x = a;                                                                            \
    return __nv_bfloat16(FLOAT);                                                            \
  }                                                                                         \
  __KILN_DEVICE __nv_bfloat162 NAME2(__nv_bfloat162 a) { return {NAME(a.x), NAME(a.y)}; }
__KILN_BFLOAT_FUNCTION(hexp, h2exp, expf(x))
__KILN_BFLOAT_FUNCTION(hexp2, h2exp2, exp2f(x))
__KILN_BFLOAT_FUNCTION(hexp10, h2exp10, exp10f(x))
__KILN_BFLOAT_FUNCTION(hlog, h2log, logf(x))
__KILN_BFLOAT_FUNCTION(hlog2, h2log2, log2f(x))
__KILN_BFLOAT_FUNCTION(hlog10, h2log10, log10f(x))
__KILN_BFLOAT_FUNCTION(hsin, h2sin, sinf(x))
__KILN_BFLOAT_FUNCTION(hcos, h2cos, cosf(x))
__KILN_BFLOAT_FUNCTION(htanh, h2tanh, tanhf(x))
__KILN_BFLOAT_FUNCTION(hsqrt, h2sqrt, __fsqrt_rn(x))
__KILN_BFLOAT_FUNCTION(hrsqrt, h2rsqrt, rsqrtf(x))
__KILN_BFLOAT_FUNCTION(hrcp, h2rcp, __frcp_rn(x))
__KILN_BFLOAT_FUNCTION(hfloor, h2floor, floorf(x))
__KILN_BFLOAT_FUNCTION(hceil, h2ceil, ceilf(x))
__KILN_BFLOAT_FUNCTION(htrunc, h2trunc, truncf(x))
__KILN_BFLOAT_FUNCTION(hrint, h2rint, rintf(x))

#define __KILN_BFLOAT_RELATIONS(TYPE, PREFIX, SUFFIX)                                                         \
  __KILN_DEVICE bool operator==(const TYPE& a, const TYPE& b) { return PREFIX##eq##SUFFIX(a, b); }            \
  __KILN_DEVICE bool operator!=(const TYPE& a, const TYPE& b) { return PREFIX##neu##SUFFIX(a, b); }           \
  __KILN_DEVICE bool operator<(const TYPE& a, const TYPE& b) { return PREFIX##lt##SUFFIX(a, b); }             \
  __KILN_DEVICE bool operator<=(const TYPE& a, const TYPE& b) { return PREFIX##le##SUFFIX(a, b); }            \
  __KILN_DEVICE bool operator>(const TYPE& a, const TYPE& b) { return PREFIX##gt##SUFFIX(a, b); }             \
  __KILN_DEVICE bool operator>=(const TYPE& a, const TYPE& b) { return PREFIX##ge##SUFFIX(a, b); }
__KILN_BFLOAT_OPERATORS(__nv_bfloat162, __hadd2, __hsub2, __hmul2, __h2div, __hneg2, __nv_bfloat162(1.0f, 1.0f))
__KILN_BFLOAT_RELATIONS(__nv_bfloat162, __hb, 2)

#define __KILN_BFLOAT_LOADS(NAME)                                                                 \
  __KILN_DEVICE __nv_bfloat16 NAME(const __nv_bfloat16* p) {                                      \
    return __kiln::to_bfloat(NAME(reinterpret_cast<const unsigned short*>(p)));                   \
  }                                                                                               \
  __KILN_DEVICE __nv_bfloat162 NAME(const __nv_bfloat162* p) {                                    \
    return __kiln::to_bfloat2(NAME(reinterpret_cast<const unsigned*>(p)));                        \
  }
__KILN_BFLOAT_LOADS(__ldg)
__KILN_BFLOAT_LOADS(__ldcg)
__KILN_BFLOAT_LOADS(__ldca)
__KILN_BFLOAT_LOADS(__ldcs)
__KILN_BFLOAT_LOADS(__ldlu)
__KILN_BFLOAT_LOADS(__ldcv)
#ifndef __KILN_CPU_CUDA
#define __KILN_BFLOAT_STORES(NAME)                                                   \
  __KILN_DEVICE void NAME(__nv_bfloat16* p, __nv_bfloat16 v) {                       \
    NAME(reinterpret_cast<unsigned short*>(p), v.bits);                              \
  }                                                                                  \
  __KILN_DEVICE void NAME(__nv_bfloat162* p, __nv_bfloat162 v) {                     \
    NAME(reinterpret_cast<unsigned*>(p), __kiln::word(v));                           \
  }
__KILN_BFLOAT_STORES(__stwb)
__KILN_BFLOAT_STORES(__stcg)
__KILN_BFLOAT_STORES(__stcs)
__KILN_BFLOAT_STORES(__stwt)
#endif
#define __KILN_BFLOAT_SHUFFLE(NAME, WHERE)                                                                    \
  __KILN_DEVICE __nv_bfloat16 NAME(unsigned mask, __nv_bfloat16 v, WHERE at, int width = 32) {                \
    return __kiln::to_bfloat(static_cast<unsigned short>(NAME(mask, unsigned(v.bits), at, width)));           \
  }                                                                                                           \
  __KILN_DEVICE __nv_bfloat162 NAME(unsigned mask, __nv_bfloat162 v, WHERE at, int width = 32) {              \
    return __kiln::to_bfloat2(NAME(mask, __kiln::word(v), at, width));                                        \
  }
__KILN_BFLOAT_SHUFFLE(__shfl_sync, int)
__KILN_BFLOAT_SHUFFLE(__shfl_up_sync, unsigned)
__KILN_BFLOAT_SHUFFLE(__shfl_down_sync, unsigned)
__KILN_BFLOAT_SHUFFLE(__shfl_xor_sync, int)

#ifdef __KILN_CPU_CUDA
__KILN_SMALL_ATOMIC_ADD(__nv_bfloat16, __kiln::to_bfloat)
#else
// sm_90 has instructions; before, by compare and exchange.
__KILN_DEVICE __nv_bfloat162 atomicAdd(__nv_bfloat162* p, __nv_bfloat162 v) {
#if __CUDA_ARCH__ >= 900
  unsigned r;
  asm volatile("atom.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(__kiln::word(v)) : "memory");
  return __kiln::to_bfloat2(r);
#else
  unsigned* words = reinterpret_cast<unsigned*>(p);
  unsigned before = *words, seen;
  do {
    seen = before;
    before = atomicCAS(words, seen, __kiln::word(__hadd2(__kiln::to_bfloat2(seen), v)));
  } while (before != seen);
  return __kiln::to_bfloat2(before);
#endif
}
#if __CUDA_ARCH__ >= 700
__KILN_DEVICE __nv_bfloat16 atomicAdd(__nv_bfloat16* p, __nv_bfloat16 v) {
#if __CUDA_ARCH__ >= 900
  unsigned short r;
  asm volatile("atom.add.noftz.bf16 %0, [%1], %2;" : "=h"(r) : "l"(p), "h"(v.bits) : "memory");
  return __kiln::to_bfloat(r);
#else
  unsigned short* bits = reinterpret_cast<unsigned short*>(p);
  unsigned short before = *bits, seen;
  do {
    seen = before;
    before = atomicCAS(bits, seen, __hadd(__kiln::to_bfloat(seen), v).bits);
  } while (before != seen);
  return __kiln::to_bfloat(before);
#endif
}
#endif
#endif

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
