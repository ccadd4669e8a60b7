// Pairs of halves, and functions and conversions by name: the rest of what bodies use of <cuda_fp16.h>, behind half.cuh.
//
// Arithmetic is one PTX instruction each, as there; that of names in _rn is not contracted. Functions (hexp, …) are
// computed in float, whose error is far below half's last bit, and rounded once.
struct __half2_raw {
  unsigned short x, y;
};
struct __align__(4) __half2 {
  __half2() = default;
  __device__ __half2(__half a, __half b) : x(a), y(b) {}
  __device__ __half2(const __half2_raw& raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  __device__ operator __half2_raw() const { return {x.bits, y.bits}; }
  __half x, y;
};
using half2 = __half2;
using __nv_half2 = __half2;
using nv_half2 = __half2;

namespace __kiln {
__KILN_DEVICE unsigned word(__half2 v) { return v.x.bits | (unsigned(v.y.bits) << 16); }
__KILN_DEVICE __half2 to_half2(unsigned w) {
  return __half2_raw{static_cast<unsigned short>(w), static_cast<unsigned short>(w >> 16)};
}
}  // namespace __kiln
#define __KILN_HALF_ROUNDINGS(WORD, TYPE, PTX, REGISTER)          \
  __KILN_HALF_FROM(WORD##_to_half_rz, TYPE, PTX, REGISTER, "rz")  \
  __KILN_HALF_FROM(WORD##_to_half_rd, TYPE, PTX, REGISTER, "rm")  \
  __KILN_HALF_FROM(WORD##_to_half_ru, TYPE, PTX, REGISTER, "rp")  \
  __KILN_HALF_TO(half_to_##WORD##_rn, TYPE, PTX, REGISTER, "rn")  \
  __KILN_HALF_TO(half_to_##WORD##_rd, TYPE, PTX, REGISTER, "rm")  \
  __KILN_HALF_TO(half_to_##WORD##_ru, TYPE, PTX, REGISTER, "rp")
__KILN_HALF_ROUNDINGS(short, short, "s16", "h")
__KILN_HALF_ROUNDINGS(ushort, unsigned short, "u16", "h")
__KILN_HALF_ROUNDINGS(int, int, "s32", "r")
__KILN_HALF_ROUNDINGS(uint, unsigned int, "u32", "r")
__KILN_HALF_ROUNDINGS(ll, long long, "s64", "l")
__KILN_HALF_ROUNDINGS(ull, unsigned long long, "u64", "l")

__KILN_DEVICE signed char __half2char_rz(__half x) { return static_cast<signed char>(x); }
__KILN_DEVICE unsigned char __half2uchar_rz(__half x) { return static_cast<unsigned char>(x); }

#ifndef __KILN_CPU_CUDA
#define __KILN_FLOAT_TO_HALF(NAME, ROUNDING)                             \
  __KILN_DEVICE __half NAME(float x) {                                   \
    unsigned short r;                                                    \
    asm("cvt." ROUNDING ".f16.f32 %0, %1;" : "=h"(r) : "f"(x));          \
    return __kiln::to_half(r);                                           \
  }
#endif
__KILN_FLOAT_TO_HALF(__float2half_rz, "rz")
__KILN_FLOAT_TO_HALF(__float2half_rd, "rm")
__KILN_FLOAT_TO_HALF(__float2half_ru, "rp")

#define __KILN_HALF_CONVERSION(WORD, TYPE, ROUNDING)                                                                  \
  __KILN_DEVICE __half __##WORD##2half_##ROUNDING(TYPE x) { return __kiln::to_half(__kiln::WORD##_to_half_##ROUNDING(x)); } \
  __KILN_DEVICE TYPE __half2##WORD##_##ROUNDING(__half x) { return __kiln::half_to_##WORD##_##ROUNDING(x.bits); }
#define __KILN_HALF_CONVERSIONS(WORD, TYPE)  \
  __KILN_HALF_CONVERSION(WORD, TYPE, rn)     \
  __KILN_HALF_CONVERSION(WORD, TYPE, rz)     \
  __KILN_HALF_CONVERSION(WORD, TYPE, rd)     \
  __KILN_HALF_CONVERSION(WORD, TYPE, ru)
__KILN_HALF_CONVERSIONS(short, short)
__KILN_HALF_CONVERSIONS(ushort, unsigned short)
__KILN_HALF_CONVERSIONS(int, int)
__KILN_HALF_CONVERSIONS(uint, unsigned int)
__KILN_HALF_CONVERSIONS(ll, long long)
__KILN_HALF_CONVERSIONS(ull, unsigned long long)

__KILN_DEVICE __half2 make_half2(__half x, __half y) { return {x, y}; }
__KILN_DEVICE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__KILN_DEVICE __half2 __half2half2(__half x) { return {x, x}; }
__KILN_DEVICE __half2 __float2half2_rn(float x) { return {x, x}; }
__KILN_DEVICE __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
__KILN_DEVICE __half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
__KILN_DEVICE float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
__KILN_DEVICE __half __low2half(__half2 v) { return v.x; }
__KILN_DEVICE __half __high2half(__half2 v) { return v.y; }
__KILN_DEVICE float __low2float(__half2 v) { return v.x; }
__KILN_DEVICE float __high2float(__half2 v) { return v.y; }
__KILN_DEVICE __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
__KILN_DEVICE __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
__KILN_DEVICE __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
__KILN_DEVICE __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
__KILN_DEVICE __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }

// One instruction for halves and for pairs.
#ifndef __KILN_CPU_CUDA
#define __KILN_HALF_PAIR(NAME2, PTX)                                                             \
  __KILN_DEVICE __half2 NAME2(__half2 a, __half2 b) {                                            \
    unsigned r;                                                                                  \
    asm(PTX ".f16x2 %0, %1, %2;" : "=r"(r) : "r"(__kiln::word(a)), "r"(__kiln::word(b)));        \
    return __kiln::to_half2(r);                                                                  \
  }
#define __KILN_HALF_TERNARY(NAME, NAME2, PTX)                                                                          \
  __KILN_DEVICE __half NAME(__half a, __half b, __half c) {                                                            \
    unsigned short r;                                                                                                  \
    asm(PTX ".f16 %0, %1, %2, %3;" : "=h"(r) : "h"(a.bits), "h"(b.bits), "h"(c.bits));                                 \
    return __kiln::to_half(r);                                                                                         \
  }                                                                                                                    \
  __KILN_DEVICE __half2 NAME2(__half2 a, __half2 b, __half2 c) {                                                       \
    unsigned r;                                                                                                        \
    asm(PTX ".f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(__kiln::word(a)), "r"(__kiln::word(b)), "r"(__kiln::word(c)));    \
    return __kiln::to_half2(r);                                                                                        \
  }
#endif
#define __KILN_HALF_BINARY(NAME, NAME2, PTX) \
  __KILN_HALF_ARITHMETIC(NAME, PTX)          \
  __KILN_HALF_PAIR(NAME2, PTX)
__KILN_HALF_PAIR(__hadd2, "add")
__KILN_HALF_PAIR(__hsub2, "sub")
__KILN_HALF_PAIR(__hmul2, "mul")
__KILN_HALF_BINARY(__hadd_rn, __hadd2_rn, "add.rn")
__KILN_HALF_BINARY(__hsub_rn, __hsub2_rn, "sub.rn")
__KILN_HALF_BINARY(__hmul_rn, __hmul2_rn, "mul.rn")
__KILN_HALF_BINARY(__hadd_sat, __hadd2_sat, "add.sat")
__KILN_HALF_BINARY(__hsub_sat, __hsub2_sat, "sub.sat")
__KILN_HALF_BINARY(__hmul_sat, __hmul2_sat, "mul.sat")
__KILN_HALF_TERNARY(__hfma, __hfma2, "fma.rn")
__KILN_HALF_TERNARY(__hfma_sat, __hfma2_sat, "fma.rn.sat")
#if __CUDA_ARCH__ >= 800
__KILN_HALF_TERNARY(__hfma_relu, __hfma2_relu, "fma.rn.relu")
__KILN_HALF_BINARY(__hmax, __hmax2, "max")
__KILN_HALF_BINARY(__hmin, __hmin2, "min")
__KILN_HALF_BINARY(__hmax_nan, __hmax2_nan, "max.NaN")
__KILN_HALF_BINARY(__hmin_nan, __hmin2_nan, "min.NaN")
#else
__KILN_DEVICE __half __hmax(__half a, __half b) { return fmaxf(a, b); }
__KILN_DEVICE __half __hmin(__half a, __half b) { return fminf(a, b); }
__KILN_DEVICE __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
__KILN_DEVICE __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
#endif
__KILN_DEVICE __half2 __h2div(__half2 a, __half2 b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }

#ifndef __KILN_CPU_CUDA
#define __KILN_HALF_UNARY(NAME, NAME2, PTX)                                    \
  __KILN_DEVICE __half NAME(__half a) {                                        \
    unsigned short r;                                                          \
    asm(PTX ".f16 %0, %1;" : "=h"(r) : "h"(a.bits));                           \
    return __kiln::to_half(r);                                                 \
  }                                                                            \
  __KILN_DEVICE __half2 NAME2(__half2 a) {                                     \
    unsigned r;                                                                \
    asm(PTX ".f16x2 %0, %1;" : "=r"(r) : "r"(__kiln::word(a)));                \
    return __kiln::to_half2(r);                                                \
  }
#endif
__KILN_HALF_UNARY(__habs, __habs2, "abs")
__KILN_DEVICE __half2 __hneg2(__half2 a) { return __kiln::to_half2(__kiln::word(a) ^ 0x80008000u); }

// Comparisons; those with u are true where an operand is NaN.
#ifndef __KILN_CPU_CUDA
#define __KILN_HALF_COMPARISON(WORD, PTX)                                                                        \
  __KILN_DEVICE bool __h##WORD(__half a, __half b) {                                                             \
    unsigned r;                                                                                                  \
    asm("{ .reg .pred p; setp." PTX ".f16 p, %1, %2; selp.u32 %0, 1, 0, p; }"                                    \
        : "=r"(r)                                                                                                \
        : "h"(a.bits), "h"(b.bits));                                                                             \
    return r != 0;                                                                                               \
  }                                                                                                              \
  __KILN_DEVICE __half2 __h##WORD##2(__half2 a, __half2 b) {                                                     \
    unsigned r;                                                                                                  \
    asm("set." PTX ".f16x2.f16x2 %0, %1, %2;" : "=r"(r) : "r"(__kiln::word(a)), "r"(__kiln::word(b)));           \
    return __kiln::to_half2(r);                                                                                  \
  }                                                                                                              \
  __KILN_DEVICE bool __hb##WORD##2(__half2 a, __half2 b) { return __h##WORD(a.x, b.x) && __h##WORD(a.y, b.y); }
#endif
__KILN_HALF_COMPARISON(eq, "eq")
__KILN_HALF_COMPARISON(ne, "ne")
__KILN_HALF_COMPARISON(lt, "lt")
__KILN_HALF_COMPARISON(le, "le")
__KILN_HALF_COMPARISON(gt, "gt")
__KILN_HALF_COMPARISON(ge, "ge")
__KILN_HALF_COMPARISON(equ, "equ")
__KILN_HALF_COMPARISON(neu, "neu")
__KILN_HALF_COMPARISON(ltu, "ltu")
__KILN_HALF_COMPARISON(leu, "leu")
__KILN_HALF_COMPARISON(gtu, "gtu")
__KILN_HALF_COMPARISON(geu, "geu")
// Of a pair as a word of bits.
#define __KILN_HALF_MASK(WORD)                                                                          \
  __KILN_DEVICE unsigned __h##WORD##2_mask(__half2 a, __half2 b) {                                      \
    return (__h##WORD(a.x, b.x) ? 0xffffu : 0u) | (__h##WORD(a.y, b.y) ? 0xffff0000u : 0u);             \
  }
__KILN_HALF_MASK(eq)
__KILN_HALF_MASK(ne)
__KILN_HALF_MASK(lt)
__KILN_HALF_MASK(le)
__KILN_HALF_MASK(gt)
__KILN_HALF_MASK(ge)
__KILN_HALF_MASK(equ)
__KILN_HALF_MASK(neu)
__KILN_HALF_MASK(ltu)
__KILN_HALF_MASK(leu)
__KILN_HALF_MASK(gtu)
__KILN_HALF_MASK(geu)
// a * b + c of complex numbers, real part first.
__KILN_DEVICE __half2 __hcmadd(__half2 a, __half2 b, __half2 c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}
__KILN_DEVICE bool __hisnan(__half a) { return (a.bits & 0x7fff) > 0x7c00; }
__KILN_DEVICE int __hisinf(__half a) { return a.bits == 0x7c00 ? 1 : a.bits == 0xfc00 ? -1 : 0; }
__KILN_DEVICE __half2 __hisnan2(__half2 a) { return {float(__hisnan(a.x)), float(__hisnan(a.y))}; }

#define __KILN_HALF_FUNCTION(NAME, NAME2, FLOAT)                                \
  __KILN_DEVICE __half NAME(__half a) {                                         \
    float x = a;                                                                \
    return __half(FLOAT);                                                       \
  }                                                                             \
  __KILN_DEVICE __half2 NAME2(__half2 a) { return {NAME(a.x), NAME(a.y)}; }
__KILN_HALF_FUNCTION(hexp, h2exp, expf(x))
__KILN_HALF_FUNCTION(hexp2, h2exp2, exp2f(x))
__KILN_HALF_FUNCTION(hexp10, h2exp10, exp10f(x))
__KILN_HALF_FUNCTION(hlog, h2log, logf(x))
__KILN_HALF_FUNCTION(hlog2, h2log2, log2f(x))
__KILN_HALF_FUNCTION(hlog10, h2log10, log10f(x))
__KILN_HALF_FUNCTION(hsin, h2sin, sinf(x))
__KILN_HALF_FUNCTION(hcos, h2cos, cosf(x))
__KILN_HALF_FUNCTION(htanh, h2tanh, tanhf(x))
__KILN_HALF_FUNCTION(hsqrt, h2sqrt, __fsqrt_rn(x))
__KILN_HALF_FUNCTION(hrsqrt, h2rsqrt, rsqrtf(x))
__KILN_HALF_FUNCTION(hrcp, h2rcp, __frcp_rn(x))
__KILN_HALF_FUNCTION(hfloor, h2floor, floorf(x))
__KILN_HALF_FUNCTION(hceil, h2ceil, ceilf(x))
__KILN_HALF_FUNCTION(htrunc, h2trunc, truncf(x))
__KILN_HALF_FUNCTION(hrint, h2rint, rintf(x))

#define __KILN_HALF_RELATIONS(TYPE, PREFIX, SUFFIX)                                                           \
  __KILN_DEVICE bool operator==(const TYPE& a, const TYPE& b) { return PREFIX##eq##SUFFIX(a, b); }            \
  __KILN_DEVICE bool operator!=(const TYPE& a, const TYPE& b) { return PREFIX##neu##SUFFIX(a, b); }           \
  __KILN_DEVICE bool operator<(const TYPE& a, const TYPE& b) { return PREFIX##lt##SUFFIX(a, b); }             \
  __KILN_DEVICE bool operator<=(const TYPE& a, const TYPE& b) { return PREFIX##le##SUFFIX(a, b); }            \
  __KILN_DEVICE bool operator>(const TYPE& a, const TYPE& b) { return PREFIX##gt##SUFFIX(a, b); }             \
  __KILN_DEVICE bool operator>=(const TYPE& a, const TYPE& b) { return PREFIX##ge##SUFFIX(a, b); }
__KILN_HALF_OPERATORS(__half2, __hadd2, __hsub2, __hmul2, __h2div, __hneg2)
__KILN_HALF_STEPS(__half2, __hadd2, __hsub2, __half2(1.0f, 1.0f))
__KILN_HALF_RELATIONS(__half2, __hb, 2)

// Loads, stores, shuffles: of the bits.
#define __KILN_HALF_LOADS(NAME)                                                                                       \
  __KILN_DEVICE __half NAME(const __half* p) {                                                                         \
    return __kiln::to_half(NAME(reinterpret_cast<const unsigned short*>(p)));                                          \
  }                                                                                                                    \
  __KILN_DEVICE __half2 NAME(const __half2* p) {                                                                       \
    return __kiln::to_half2(NAME(reinterpret_cast<const unsigned*>(p)));                                               \
  }
__KILN_HALF_LOADS(__ldg)
__KILN_HALF_LOADS(__ldcg)
__KILN_HALF_LOADS(__ldca)
__KILN_HALF_LOADS(__ldcs)
__KILN_HALF_LOADS(__ldlu)
__KILN_HALF_LOADS(__ldcv)
#ifndef __KILN_CPU_CUDA
#define __KILN_HALF_STORES(NAME)                                                     \
  __KILN_DEVICE void NAME(__half* p, __half v) {                                     \
    NAME(reinterpret_cast<unsigned short*>(p), v.bits);                              \
  }                                                                                  \
  __KILN_DEVICE void NAME(__half2* p, __half2 v) {                                   \
    NAME(reinterpret_cast<unsigned*>(p), __kiln::word(v));                           \
  }
__KILN_HALF_STORES(__stwb)
__KILN_HALF_STORES(__stcg)
__KILN_HALF_STORES(__stcs)
__KILN_HALF_STORES(__stwt)
#endif
#define __KILN_HALF_SHUFFLE(NAME, WHERE)                                                                    \
  __KILN_DEVICE __half NAME(unsigned mask, __half v, WHERE at, int width = 32) {                            \
    return __kiln::to_half(static_cast<unsigned short>(NAME(mask, unsigned(v.bits), at, width)));           \
  }                                                                                                         \
  __KILN_DEVICE __half2 NAME(unsigned mask, __half2 v, WHERE at, int width = 32) {                          \
    return __kiln::to_half2(NAME(mask, __kiln::word(v), at, width));                                        \
  }
__KILN_HALF_SHUFFLE(__shfl_sync, int)
__KILN_HALF_SHUFFLE(__shfl_up_sync, unsigned)
__KILN_HALF_SHUFFLE(__shfl_down_sync, unsigned)
__KILN_HALF_SHUFFLE(__shfl_xor_sync, int)

#ifdef __KILN_CPU_CUDA
__KILN_SMALL_ATOMIC_ADD(__half, __kiln::to_half)
#else
#if __CUDA_ARCH__ >= 700
__KILN_DEVICE __half atomicAdd(__half* p, __half v) {
  unsigned short r;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(r) : "l"(p), "h"(v.bits) : "memory");
  return __kiln::to_half(r);
}
#endif
__KILN_DEVICE __half2 atomicAdd(__half2* p, __half2 v) {
  unsigned r;
  asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(__kiln::word(v)) : "memory");
  return __kiln::to_half2(r);
}
#endif

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
