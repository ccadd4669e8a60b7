// __half: the part of <cuda_fp16.h> that every body with halves needs, with its rounding. The rest, half_functions.cuh,
// costs more to read than a small kernel does.
//
// On the CPU (__KILN_CPU_CUDA) what is an instruction here is a function of cuda/small_floats.h.
#define __KILN_HALF 1
#ifndef __KILN_DEVICE
#define __KILN_DEVICE __device__ __forceinline__
#endif

struct __half_raw {
  unsigned short x;
};

#ifndef __KILN_CPU_CUDA
namespace __kiln {
__KILN_DEVICE unsigned short half_bits(float x) {
  unsigned short r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}
__KILN_DEVICE unsigned short half_bits(double x) {
  unsigned short r;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(r) : "d"(x));
  return r;
}
__KILN_DEVICE float half_value(unsigned short x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
  return r;
}
}  // namespace __kiln

// Conversions to and from integers, by the instruction's rounding.
#define __KILN_HALF_FROM(NAME, TYPE, PTX, REGISTER, ROUNDING)                    \
  namespace __kiln {                                                            \
  __KILN_DEVICE unsigned short NAME(TYPE x) {                                    \
    unsigned short r;                                                           \
    asm("cvt." ROUNDING ".f16." PTX " %0, %1;" : "=h"(r) : REGISTER(x));         \
    return r;                                                                   \
  }                                                                             \
  }
#define __KILN_HALF_TO(NAME, TYPE, PTX, REGISTER, ROUNDING)                      \
  namespace __kiln {                                                            \
  __KILN_DEVICE TYPE NAME(unsigned short x) {                                    \
    TYPE r;                                                                     \
    asm("cvt." ROUNDING "i." PTX ".f16 %0, %1;" : "=" REGISTER(r) : "h"(x));     \
    return r;                                                                   \
  }                                                                             \
  }
#endif
#define __KILN_HALF_INTEGERS(WORD, TYPE, PTX, REGISTER)           \
  __KILN_HALF_FROM(WORD##_to_half_rn, TYPE, PTX, REGISTER, "rn")  \
  __KILN_HALF_TO(half_to_##WORD##_rz, TYPE, PTX, REGISTER, "rz")
__KILN_HALF_INTEGERS(short, short, "s16", "h")
__KILN_HALF_INTEGERS(ushort, unsigned short, "u16", "h")
__KILN_HALF_INTEGERS(int, int, "s32", "r")
__KILN_HALF_INTEGERS(uint, unsigned int, "u32", "r")
__KILN_HALF_INTEGERS(ll, long long, "s64", "l")
__KILN_HALF_INTEGERS(ull, unsigned long long, "u64", "l")

struct __align__(2) __half {
  __half() = default;
  __device__ constexpr __half(const __half_raw& raw) : bits(raw.x) {}
  __device__ __half(float x) : bits(__kiln::half_bits(x)) {}
  __device__ __half(double x) : bits(__kiln::half_bits(x)) {}
  __device__ __half(short x) : bits(__kiln::short_to_half_rn(x)) {}
  __device__ __half(unsigned short x) : bits(__kiln::ushort_to_half_rn(x)) {}
  __device__ __half(int x) : bits(__kiln::int_to_half_rn(x)) {}
  __device__ __half(unsigned int x) : bits(__kiln::uint_to_half_rn(x)) {}
  __device__ __half(long x) : bits(__kiln::ll_to_half_rn(x)) {}
  __device__ __half(unsigned long x) : bits(__kiln::ull_to_half_rn(x)) {}
  __device__ __half(long long x) : bits(__kiln::ll_to_half_rn(x)) {}
  __device__ __half(unsigned long long x) : bits(__kiln::ull_to_half_rn(x)) {}

  __device__ operator __half_raw() const { return {bits}; }
  __device__ operator float() const { return __kiln::half_value(bits); }
  __device__ operator bool() const { return (bits & 0x7fff) != 0; }
  // Out of range: the nearest value, as the wider conversions have it.
  __device__ operator signed char() const { return static_cast<signed char>(max(-128, min(127, int(*this)))); }
  __device__ operator unsigned char() const { return static_cast<unsigned char>(max(0, min(255, int(*this)))); }
  __device__ operator char() const { return static_cast<char>(max(-128, min(127, int(*this)))); }
  __device__ operator short() const { return __kiln::half_to_short_rz(bits); }
  __device__ operator unsigned short() const { return __kiln::half_to_ushort_rz(bits); }
  __device__ operator int() const { return __kiln::half_to_int_rz(bits); }
  __device__ operator unsigned int() const { return __kiln::half_to_uint_rz(bits); }
  __device__ operator long() const { return __kiln::half_to_ll_rz(bits); }
  __device__ operator unsigned long() const { return __kiln::half_to_ull_rz(bits); }
  __device__ operator long long() const { return __kiln::half_to_ll_rz(bits); }
  __device__ operator unsigned long long() const { return __kiln::half_to_ull_rz(bits); }

  __device__ __half& operator=(const __half_raw& raw) { bits = raw.x; return *this; }
  __device__ __half& operator=(float x) { bits = __kiln::half_bits(x); return *this; }
  __device__ __half& operator=(double x) { bits = __kiln::half_bits(x); return *this; }
  __device__ __half& operator=(short x) { return *this = __half(x); }
  __device__ __half& operator=(unsigned short x) { return *this = __half(x); }
  __device__ __half& operator=(int x) { return *this = __half(x); }
  __device__ __half& operator=(unsigned int x) { return *this = __half(x); }
  __device__ __half& operator=(long long x) { return *this = __half(x); }
  __device__ __half& operator=(unsigned long long x) { return *this = __half(x); }

  unsigned short bits;
};
using half = __half;
using __nv_half = __half;
using nv_half = __half;
using __nv_half_raw = __half_raw;

namespace __kiln {
__KILN_DEVICE __half to_half(unsigned short bits) { return __half_raw{bits}; }
}  // namespace __kiln

__KILN_DEVICE __half __float2half(float x) { return x; }
__KILN_DEVICE __half __float2half_rn(float x) { return x; }
__KILN_DEVICE __half __double2half(double x) { return x; }
__KILN_DEVICE float __half2float(__half x) { return x; }
__KILN_DEVICE short __half_as_short(__half x) { return static_cast<short>(x.bits); }
__KILN_DEVICE unsigned short __half_as_ushort(__half x) { return x.bits; }
__KILN_DEVICE __half __short_as_half(short x) { return __kiln::to_half(static_cast<unsigned short>(x)); }
__KILN_DEVICE __half __ushort_as_half(unsigned short x) { return __kiln::to_half(x); }
#ifndef __KILN_CPU_CUDA
#define __KILN_HALF_ARITHMETIC(NAME, PTX)                           \
  __KILN_DEVICE __half NAME(__half a, __half b) {                   \
    unsigned short r;                                               \
    asm(PTX ".f16 %0, %1, %2;" : "=h"(r) : "h"(a.bits), "h"(b.bits)); \
    return __kiln::to_half(r);                                      \
  }
#endif
// A multiplication and an addition may become one instruction.
__KILN_HALF_ARITHMETIC(__hadd, "add")
__KILN_HALF_ARITHMETIC(__hsub, "sub")
__KILN_HALF_ARITHMETIC(__hmul, "mul")
// The quotient in float, rounded again, is the quotient rounded once: float has more than twice half's bits.
__KILN_DEVICE __half __hdiv(__half a, __half b) { return __fdiv_rn(a, b); }
__KILN_DEVICE __half __hneg(__half a) { return __kiln::to_half(static_cast<unsigned short>(a.bits ^ 0x8000)); }

#include "small_float_operators.cuh"
__KILN_SMALL_OPERATORS(__half, __hadd, __hsub, __hmul, __hdiv, __hneg, __half(1.0f))
__KILN_SMALL_RELATIONS(__half, __KILN_HOLDS_IN_FLOAT)
