// __nv_bfloat16: the part of <cuda_bf16.h> that every body with bfloats needs, with its rounding; the rest is
// bfloat16_functions.cuh.
//
// A bfloat16 is the upper half of a float. Its arithmetic has instructions from sm_90 on; on sm_80 all of it is fma
// (a * 1 + b, a * b + -0); before, it is computed in float and rounded again, which is the same: float has more than
// twice its bits.
#define __KILN_BFLOAT16 1
#ifndef __KILN_DEVICE
#define __KILN_DEVICE __device__ __forceinline__
#endif

struct __nv_bfloat16_raw {
  unsigned short x;
};

namespace __kiln {
__KILN_DEVICE unsigned short bfloat_bits(float x) {
#if __CUDA_ARCH__ >= 800 && !defined(__KILN_CPU_CUDA)
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
#else
  unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
}
__KILN_DEVICE float bfloat_value(unsigned short x) { return __uint_as_float(unsigned(x) << 16); }
// A float toward zero whose last bit says whether something was lost: rounded once more, it is right.
__KILN_DEVICE float keep_lost(float truncated, bool is_exact) {
  return is_exact ? truncated : __uint_as_float(__float_as_uint(truncated) | 1);
}
__KILN_DEVICE float to_odd(double x) {
  float f = __double2float_rz(x);
  return keep_lost(f, double(f) == x || x != x);
}
__KILN_DEVICE float to_odd(int x) { float f = __int2float_rz(x); return keep_lost(f, double(f) == double(x)); }
__KILN_DEVICE float to_odd(unsigned x) { float f = __uint2float_rz(x); return keep_lost(f, double(f) == double(x)); }
__KILN_DEVICE float to_odd(long long x) { float f = __ll2float_rz(x); return keep_lost(f, __float2ll_rz(f) == x); }
__KILN_DEVICE float to_odd(unsigned long long x) {
  float f = __ull2float_rz(x);
  return keep_lost(f, __float2ull_rz(f) == x);
}
}  // namespace __kiln

struct __align__(2) __nv_bfloat16 {
  __nv_bfloat16() = default;
  __device__ constexpr __nv_bfloat16(const __nv_bfloat16_raw& raw) : bits(raw.x) {}
  __device__ __nv_bfloat16(float x) : bits(__kiln::bfloat_bits(x)) {}
  __device__ __nv_bfloat16(double x) : bits(__kiln::bfloat_bits(__kiln::to_odd(x))) {}
  __device__ __nv_bfloat16(short x) : bits(__kiln::bfloat_bits(float(x))) {}
  __device__ __nv_bfloat16(unsigned short x) : bits(__kiln::bfloat_bits(float(x))) {}
  __device__ __nv_bfloat16(int x) : bits(__kiln::bfloat_bits(__kiln::to_odd(x))) {}
  __device__ __nv_bfloat16(unsigned int x) : bits(__kiln::bfloat_bits(__kiln::to_odd(x))) {}
  __device__ __nv_bfloat16(long x) : bits(__kiln::bfloat_bits(__kiln::to_odd(static_cast<long long>(x)))) {}
  __device__ __nv_bfloat16(unsigned long x)
      : bits(__kiln::bfloat_bits(__kiln::to_odd(static_cast<unsigned long long>(x)))) {}
  __device__ __nv_bfloat16(long long x) : bits(__kiln::bfloat_bits(__kiln::to_odd(x))) {}
  __device__ __nv_bfloat16(unsigned long long x) : bits(__kiln::bfloat_bits(__kiln::to_odd(x))) {}
#ifdef __KILN_HALF
  explicit __device__ __nv_bfloat16(__half x) : bits(__kiln::bfloat_bits(float(x))) {}
#endif

  __device__ operator __nv_bfloat16_raw() const { return {bits}; }
  __device__ operator float() const { return __kiln::bfloat_value(bits); }
  __device__ operator bool() const { return (bits & 0x7fff) != 0; }
  __device__ operator signed char() const { return static_cast<signed char>(max(-128, min(127, int(*this)))); }
  __device__ operator unsigned char() const { return static_cast<unsigned char>(max(0, min(255, int(*this)))); }
  __device__ operator char() const { return static_cast<char>(max(-128, min(127, int(*this)))); }
  __device__ operator short() const { return static_cast<short>(max(-32768, min(32767, int(*this)))); }
  __device__ operator unsigned short() const { return static_cast<unsigned short>(max(0, min(65535, int(*this)))); }
  __device__ operator int() const { return __float2int_rz(float(*this)); }
  __device__ operator unsigned int() const { return __float2uint_rz(float(*this)); }
  __device__ operator long() const { return __float2ll_rz(float(*this)); }
  __device__ operator unsigned long() const { return __float2ull_rz(float(*this)); }
  __device__ operator long long() const { return __float2ll_rz(float(*this)); }
  __device__ operator unsigned long long() const { return __float2ull_rz(float(*this)); }

  __device__ __nv_bfloat16& operator=(const __nv_bfloat16_raw& raw) { bits = raw.x; return *this; }
  __device__ __nv_bfloat16& operator=(float x) { return *this = __nv_bfloat16(x); }
  __device__ __nv_bfloat16& operator=(double x) { return *this = __nv_bfloat16(x); }
  __device__ __nv_bfloat16& operator=(short x) { return *this = __nv_bfloat16(x); }
  __device__ __nv_bfloat16& operator=(unsigned short x) { return *this = __nv_bfloat16(x); }
  __device__ __nv_bfloat16& operator=(int x) { return *this = __nv_bfloat16(x); }
  __device__ __nv_bfloat16& operator=(unsigned int x) { return *this = __nv_bfloat16(x); }
  __device__ __nv_bfloat16& operator=(long long x) { return *this = __nv_bfloat16(x); }
  __device__ __nv_bfloat16& operator=(unsigned long long x) { return *this = __nv_bfloat16(x); }

  unsigned short bits;
};
using nv_bfloat16 = __nv_bfloat16;

namespace __kiln {
__KILN_DEVICE __nv_bfloat16 to_bfloat(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
}  // namespace __kiln

__KILN_DEVICE __nv_bfloat16 __float2bfloat16(float x) { return x; }
__KILN_DEVICE __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
__KILN_DEVICE float __bfloat162float(__nv_bfloat16 x) { return x; }

#if __CUDA_ARCH__ >= 800 && !defined(__KILN_CPU_CUDA)
#define __KILN_BFLOAT_FMA(A, B, C)                                                              \
  unsigned short r;                                                                            \
  asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(r) : "h"((A).bits), "h"((B).bits), "h"((C).bits));  \
  return __kiln::to_bfloat(r)
#define __KILN_BFLOAT_INSTRUCTION(NAME, PTX)                               \
  __KILN_DEVICE __nv_bfloat16 NAME(__nv_bfloat16 a, __nv_bfloat16 b) {     \
    unsigned short r;                                                      \
    asm(PTX ".bf16 %0, %1, %2;" : "=h"(r) : "h"(a.bits), "h"(b.bits));     \
    return __kiln::to_bfloat(r);                                           \
  }
#endif
#if __CUDA_ARCH__ >= 900
__KILN_BFLOAT_INSTRUCTION(__hadd, "add")
__KILN_BFLOAT_INSTRUCTION(__hsub, "sub")
__KILN_BFLOAT_INSTRUCTION(__hmul, "mul")
#elif __CUDA_ARCH__ >= 800
__KILN_DEVICE __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { __KILN_BFLOAT_FMA(a, __nv_bfloat16(1.0f), b); }
__KILN_DEVICE __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { __KILN_BFLOAT_FMA(b, __nv_bfloat16(-1.0f), a); }
__KILN_DEVICE __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { __KILN_BFLOAT_FMA(a, b, __nv_bfloat16(-0.0f)); }
#else
__KILN_DEVICE __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { return __fadd_rn(a, b); }
__KILN_DEVICE __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { return __fsub_rn(a, b); }
__KILN_DEVICE __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { return __fmul_rn(a, b); }
#endif
__KILN_DEVICE __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) { return __fdiv_rn(a, b); }
__KILN_DEVICE __nv_bfloat16 __hneg(__nv_bfloat16 a) {
  return __kiln::to_bfloat(static_cast<unsigned short>(a.bits ^ 0x8000));
}

#include "small_float_operators.cuh"
__KILN_SMALL_OPERATORS(__nv_bfloat16, __hadd, __hsub, __hmul, __hdiv, __hneg, __nv_bfloat16(1.0f))
__KILN_SMALL_RELATIONS(__nv_bfloat16, __KILN_HOLDS_IN_FLOAT)
