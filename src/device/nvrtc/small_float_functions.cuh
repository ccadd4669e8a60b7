// What halves and bfloats have alike behind their arithmetic: comparisons, functions, operators of pairs, loads, stores,
// shuffles. The text is read for each type, with the macros of small_float_pairs.cuh, which end here, and __KILN_COMPARE
// where the type has instructions that compare.
__KILN_OF_BOTH(__h2div, __hdiv)
__KILN_DEVICE __KILN_T2 __hneg2(__KILN_T2 a) { return __kiln::__KILN_TO2(__kiln::word(a) ^ 0x80008000u); }

// Comparisons; those with u are true where an operand is NaN.
#ifndef __KILN_COMPARE  // exact in float
#define __KILN_COMPARE(WORD, CONDITION)                                                             \
  __KILN_DEVICE bool __h##WORD(__KILN_T left, __KILN_T right) {                                     \
    float a = left, b = right;                                                                      \
    return CONDITION;                                                                               \
  }                                                                                                 \
  __KILN_DEVICE __KILN_T2 __h##WORD##2(__KILN_T2 a, __KILN_T2 b) {                                  \
    return {float(__h##WORD(a.x, b.x)), float(__h##WORD(a.y, b.y))};                                \
  }
#endif
#define __KILN_COMPARISON(WORD, CONDITION)                                                          \
  __KILN_COMPARE(WORD, CONDITION)                                                                   \
  __KILN_DEVICE bool __hb##WORD##2(__KILN_T2 a, __KILN_T2 b) {                                      \
    return __h##WORD(a.x, b.x) && __h##WORD(a.y, b.y);                                              \
  }                                                                                                 \
  __KILN_DEVICE unsigned __h##WORD##2_mask(__KILN_T2 a, __KILN_T2 b) {                              \
    return (__h##WORD(a.x, b.x) ? 0xffffu : 0u) | (__h##WORD(a.y, b.y) ? 0xffff0000u : 0u);         \
  }
__KILN_COMPARISON(eq, a == b)
__KILN_COMPARISON(ne, a < b || a > b)
__KILN_COMPARISON(lt, a < b)
__KILN_COMPARISON(le, a <= b)
__KILN_COMPARISON(gt, a > b)
__KILN_COMPARISON(ge, a >= b)
__KILN_COMPARISON(equ, !(a < b || a > b))
__KILN_COMPARISON(neu, a != b)
__KILN_COMPARISON(ltu, !(a >= b))
__KILN_COMPARISON(leu, !(a > b))
__KILN_COMPARISON(gtu, !(a <= b))
__KILN_COMPARISON(geu, !(a < b))
// a * b + c of complex numbers, real part first.
__KILN_DEVICE __KILN_T2 __hcmadd(__KILN_T2 a, __KILN_T2 b, __KILN_T2 c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}
__KILN_DEVICE bool __hisnan(__KILN_T a) { return (a.bits & 0x7fff) > __KILN_INFINITE_BITS; }
__KILN_DEVICE int __hisinf(__KILN_T a) {
  return a.bits == __KILN_INFINITE_BITS ? 1 : a.bits == (__KILN_INFINITE_BITS | 0x8000) ? -1 : 0;
}
__KILN_DEVICE __KILN_T2 __hisnan2(__KILN_T2 a) { return {float(__hisnan(a.x)), float(__hisnan(a.y))}; }

#define __KILN_FUNCTION(NAME, NAME2, FLOAT)                                         \
  __KILN_DEVICE __KILN_T NAME(__KILN_T a) {                                         \
    float x = a;                                                                    \
    return __KILN_T(FLOAT);                                                         \
  }                                                                                 \
  __KILN_DEVICE __KILN_T2 NAME2(__KILN_T2 a) { return {NAME(a.x), NAME(a.y)}; }
__KILN_FUNCTION(hexp, h2exp, expf(x))
__KILN_FUNCTION(hexp2, h2exp2, exp2f(x))
__KILN_FUNCTION(hexp10, h2exp10, exp10f(x))
__KILN_FUNCTION(hlog, h2log, logf(x))
__KILN_FUNCTION(hlog2, h2log2, log2f(x))
__KILN_FUNCTION(hlog10, h2log10, log10f(x))
__KILN_FUNCTION(hsin, h2sin, sinf(x))
__KILN_FUNCTION(hcos, h2cos, cosf(x))
__KILN_FUNCTION(htanh, h2tanh, tanhf(x))
__KILN_FUNCTION(hsqrt, h2sqrt, __fsqrt_rn(x))
__KILN_FUNCTION(hrsqrt, h2rsqrt, rsqrtf(x))
__KILN_FUNCTION(hrcp, h2rcp, __frcp_rn(x))
__KILN_FUNCTION(hfloor, h2floor, floorf(x))
__KILN_FUNCTION(hceil, h2ceil, ceilf(x))
__KILN_FUNCTION(htrunc, h2trunc, truncf(x))
__KILN_FUNCTION(hrint, h2rint, rintf(x))

__KILN_SMALL_OPERATORS(__KILN_T2, __hadd2, __hsub2, __hmul2, __h2div, __hneg2, __KILN_T2(1.0f, 1.0f))
__KILN_SMALL_RELATIONS(__KILN_T2, __KILN_HOLDS_OF_BOTH)

// Loads, stores, shuffles: of the bits.
#define __KILN_LOADS(NAME)                                                                        \
  __KILN_DEVICE __KILN_T NAME(const __KILN_T* p) {                                                \
    return __kiln::__KILN_TO(NAME(reinterpret_cast<const unsigned short*>(p)));                   \
  }                                                                                               \
  __KILN_DEVICE __KILN_T2 NAME(const __KILN_T2* p) {                                              \
    return __kiln::__KILN_TO2(NAME(reinterpret_cast<const unsigned*>(p)));                        \
  }
__KILN_LOADS(__ldg)
__KILN_LOADS(__ldcg)
__KILN_LOADS(__ldca)
__KILN_LOADS(__ldcs)
__KILN_LOADS(__ldlu)
__KILN_LOADS(__ldcv)
#ifndef __KILN_CPU_CUDA
#define __KILN_STORES(NAME)                                                                             \
  __KILN_DEVICE void NAME(__KILN_T* p, __KILN_T v) { NAME(reinterpret_cast<unsigned short*>(p), v.bits); } \
  __KILN_DEVICE void NAME(__KILN_T2* p, __KILN_T2 v) { NAME(reinterpret_cast<unsigned*>(p), __kiln::word(v)); }
__KILN_STORES(__stwb)
__KILN_STORES(__stcg)
__KILN_STORES(__stcs)
__KILN_STORES(__stwt)
#endif
#define __KILN_SHUFFLE(NAME, WHERE)                                                                           \
  __KILN_DEVICE __KILN_T NAME(unsigned mask, __KILN_T v, WHERE at, int width = 32) {                          \
    return __kiln::__KILN_TO(static_cast<unsigned short>(NAME(mask, unsigned(v.bits), at, width)));           \
  }                                                                                                           \
  __KILN_DEVICE __KILN_T2 NAME(unsigned mask, __KILN_T2 v, WHERE at, int width = 32) {                        \
    return __kiln::__KILN_TO2(NAME(mask, __kiln::word(v), at, width));                                        \
  }
__KILN_SHUFFLE(__shfl_sync, int)
__KILN_SHUFFLE(__shfl_up_sync, unsigned)
__KILN_SHUFFLE(__shfl_down_sync, unsigned)
__KILN_SHUFFLE(__shfl_xor_sync, int)

#undef __KILN_T
#undef __KILN_T2
#undef __KILN_RAW
#undef __KILN_RAW2
#undef __KILN_TO
#undef __KILN_TO2
#undef __KILN_NAME
#undef __KILN_PTX
#undef __KILN_INSTRUCTION
#undef __KILN_COMPARE
#undef __KILN_INFINITE_BITS
