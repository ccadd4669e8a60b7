// Pairs of bfloats, and functions and conversions by name: the rest of what bodies use of <cuda_bf16.h>, behind
// bfloat16.cuh.
#define __KILN_T __nv_bfloat16
#define __KILN_T2 __nv_bfloat162
#define __KILN_RAW __nv_bfloat16_raw
#define __KILN_RAW2 __nv_bfloat162_raw
#define __KILN_TO to_bfloat
#define __KILN_TO2 to_bfloat2
#define __KILN_NAME(BEFORE, AFTER) BEFORE##bfloat16##AFTER
#define __KILN_PTX ".bf16"
#define __KILN_INSTRUCTION __KILN_BFLOAT_INSTRUCTION
#define __KILN_INFINITE_BITS 0x7f80
#include "small_float_pairs.cuh"
using nv_bfloat162 = __nv_bfloat162;
__KILN_DEVICE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }

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

#if __CUDA_ARCH__ >= 800
__KILN_TERNARY(__hfma, __hfma2, "fma.rn")
__KILN_BINARY(__hmax, __hmax2, "max")
__KILN_BINARY(__hmin, __hmin2, "min")
__KILN_BINARY(__hmax_nan, __hmax2_nan, "max.NaN")
__KILN_BINARY(__hmin_nan, __hmin2_nan, "min.NaN")
#if __CUDA_ARCH__ >= 900
__KILN_PAIR(__hadd2, __hadd, "add")
__KILN_PAIR(__hsub2, __hsub, "sub")
__KILN_PAIR(__hmul2, __hmul, "mul")
#else
__KILN_DEVICE __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(a, {1.0f, 1.0f}, b); }
__KILN_DEVICE __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(b, {-1.0f, -1.0f}, a); }
__KILN_DEVICE __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(a, b, {-0.0f, -0.0f}); }
#endif
// Not contracted.
#if __CUDA_ARCH__ >= 900
__KILN_BINARY(__hadd_rn, __hadd2_rn, "add.rn")
__KILN_BINARY(__hsub_rn, __hsub2_rn, "sub.rn")
__KILN_BINARY(__hmul_rn, __hmul2_rn, "mul.rn")
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
__KILN_OF_BOTH(__hadd2_sat, __hadd_sat)
__KILN_OF_BOTH(__hsub2_sat, __hsub_sat)
__KILN_OF_BOTH(__hmul2_sat, __hmul_sat)
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
__KILN_OF_BOTH(__hadd2, __hadd)
__KILN_OF_BOTH(__hsub2, __hsub)
__KILN_OF_BOTH(__hmul2, __hmul)
__KILN_OF_BOTH(__hmax2, __hmax)
__KILN_OF_BOTH(__hmin2, __hmin)
#endif
__KILN_DEVICE __nv_bfloat16 __habs(__nv_bfloat16 a) {
  return __kiln::to_bfloat(static_cast<unsigned short>(a.bits & 0x7fff));
}
__KILN_DEVICE __nv_bfloat162 __habs2(__nv_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }

#include "small_float_functions.cuh"

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
