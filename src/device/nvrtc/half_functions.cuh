// Pairs of halves, and functions and conversions by name: the rest of what bodies use of <cuda_fp16.h>, behind half.cuh.
//
// Arithmetic is one PTX instruction each, as there; that of names in _rn is not contracted. Functions (hexp, …) are
// computed in float, whose error is far below half's last bit, and rounded once.
#define __KILN_T __half
#define __KILN_T2 __half2
#define __KILN_RAW __half_raw
#define __KILN_RAW2 __half2_raw
#define __KILN_TO to_half
#define __KILN_TO2 to_half2
#define __KILN_NAME(BEFORE, AFTER) BEFORE##half##AFTER
#define __KILN_PTX ".f16"
#define __KILN_INSTRUCTION __KILN_HALF_ARITHMETIC
#define __KILN_INFINITE_BITS 0x7c00
#include "small_float_pairs.cuh"
using half2 = __half2;
using __nv_half2 = __half2;
using nv_half2 = __half2;
__KILN_DEVICE __half2 __half2half2(__half x) { return {x, x}; }

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

__KILN_PAIR(__hadd2, __hadd, "add")
__KILN_PAIR(__hsub2, __hsub, "sub")
__KILN_PAIR(__hmul2, __hmul, "mul")
__KILN_BINARY(__hadd_rn, __hadd2_rn, "add.rn")
__KILN_BINARY(__hsub_rn, __hsub2_rn, "sub.rn")
__KILN_BINARY(__hmul_rn, __hmul2_rn, "mul.rn")
__KILN_BINARY(__hadd_sat, __hadd2_sat, "add.sat")
__KILN_BINARY(__hsub_sat, __hsub2_sat, "sub.sat")
__KILN_BINARY(__hmul_sat, __hmul2_sat, "mul.sat")
__KILN_TERNARY(__hfma, __hfma2, "fma.rn")
__KILN_TERNARY(__hfma_sat, __hfma2_sat, "fma.rn.sat")
#if __CUDA_ARCH__ >= 800
__KILN_TERNARY(__hfma_relu, __hfma2_relu, "fma.rn.relu")
__KILN_BINARY(__hmax, __hmax2, "max")
__KILN_BINARY(__hmin, __hmin2, "min")
__KILN_BINARY(__hmax_nan, __hmax2_nan, "max.NaN")
__KILN_BINARY(__hmin_nan, __hmin2_nan, "min.NaN")
#else
__KILN_DEVICE __half __hmax(__half a, __half b) { return fmaxf(a, b); }
__KILN_DEVICE __half __hmin(__half a, __half b) { return fminf(a, b); }
__KILN_OF_BOTH(__hmax2, __hmax)
__KILN_OF_BOTH(__hmin2, __hmin)
#endif

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

#ifndef __KILN_CPU_CUDA
#define __KILN_COMPARE(WORD, CONDITION)                                                                          \
  __KILN_DEVICE bool __h##WORD(__half a, __half b) {                                                             \
    unsigned r;                                                                                                  \
    asm("{ .reg .pred p; setp." #WORD ".f16 p, %1, %2; selp.u32 %0, 1, 0, p; }"                                  \
        : "=r"(r)                                                                                                \
        : "h"(a.bits), "h"(b.bits));                                                                             \
    return r != 0;                                                                                               \
  }                                                                                                              \
  __KILN_DEVICE __half2 __h##WORD##2(__half2 a, __half2 b) {                                                     \
    unsigned r;                                                                                                  \
    asm("set." #WORD ".f16x2.f16x2 %0, %1, %2;" : "=r"(r) : "r"(__kiln::word(a)), "r"(__kiln::word(b)));         \
    return __kiln::to_half2(r);                                                                                  \
  }
#endif
#include "small_float_functions.cuh"

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
