// A pair of small floats, and what makes functions of instructions. The text is read for each type, with macros that its
// part defines before: __KILN_T, its pair __KILN_T2, the bits of both (__KILN_RAW, __KILN_RAW2), the functions in __kiln
// that make them of bits (__KILN_TO, __KILN_TO2), CUDA's names of functions with the type in them (__KILN_NAME), PTX's name
// of the type (__KILN_PTX), a function of one instruction (__KILN_INSTRUCTION), infinity's bits (__KILN_INFINITE_BITS).
struct __KILN_RAW2 {
  unsigned short x, y;
};
struct __align__(4) __KILN_T2 {
  __KILN_T2() = default;
  __device__ __KILN_T2(__KILN_T a, __KILN_T b) : x(a), y(b) {}
  __device__ __KILN_T2(const __KILN_RAW2& raw) : x(__KILN_RAW{raw.x}), y(__KILN_RAW{raw.y}) {}
  __device__ operator __KILN_RAW2() const { return {x.bits, y.bits}; }
  __KILN_T x, y;
};

namespace __kiln {
__KILN_DEVICE unsigned word(__KILN_T2 v) { return v.x.bits | (unsigned(v.y.bits) << 16); }
__KILN_DEVICE __KILN_T2 __KILN_TO2(unsigned w) {
  return __KILN_RAW2{static_cast<unsigned short>(w), static_cast<unsigned short>(w >> 16)};
}
}  // namespace __kiln

__KILN_DEVICE __KILN_T2 __KILN_NAME(make_, 2)(__KILN_T x, __KILN_T y) { return {x, y}; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__halves2, 2)(__KILN_T x, __KILN_T y) { return {x, y}; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__float2, 2_rn)(float x) { return {x, x}; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__floats2, 2_rn)(float x, float y) { return {x, y}; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__float22, 2_rn)(float2 v) { return {v.x, v.y}; }
__KILN_DEVICE float2 __KILN_NAME(__, 22float2)(__KILN_T2 v) { return {float(v.x), float(v.y)}; }
__KILN_DEVICE __KILN_T __KILN_NAME(__low2, )(__KILN_T2 v) { return v.x; }
__KILN_DEVICE __KILN_T __KILN_NAME(__high2, )(__KILN_T2 v) { return v.y; }
__KILN_DEVICE float __low2float(__KILN_T2 v) { return v.x; }
__KILN_DEVICE float __high2float(__KILN_T2 v) { return v.y; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__low2, 2)(__KILN_T2 v) { return {v.x, v.x}; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__high2, 2)(__KILN_T2 v) { return {v.y, v.y}; }
__KILN_DEVICE __KILN_T2 __lowhigh2highlow(__KILN_T2 v) { return {v.y, v.x}; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__lows2, 2)(__KILN_T2 a, __KILN_T2 b) { return {a.x, b.x}; }
__KILN_DEVICE __KILN_T2 __KILN_NAME(__highs2, 2)(__KILN_T2 a, __KILN_T2 b) { return {a.y, b.y}; }

// One instruction for a small float, and one for a pair.
#ifndef __KILN_CPU_CUDA
#define __KILN_PAIR(NAME2, NAME, PTX)                                                                        \
  __KILN_DEVICE __KILN_T2 NAME2(__KILN_T2 a, __KILN_T2 b) {                                                  \
    unsigned r;                                                                                              \
    asm(PTX __KILN_PTX "x2 %0, %1, %2;" : "=r"(r) : "r"(__kiln::word(a)), "r"(__kiln::word(b)));             \
    return __kiln::__KILN_TO2(r);                                                                            \
  }
#define __KILN_TERNARY(NAME, NAME2, PTX)                                                                     \
  __KILN_DEVICE __KILN_T NAME(__KILN_T a, __KILN_T b, __KILN_T c) {                                          \
    unsigned short r;                                                                                        \
    asm(PTX __KILN_PTX " %0, %1, %2, %3;" : "=h"(r) : "h"(a.bits), "h"(b.bits), "h"(c.bits));                \
    return __kiln::__KILN_TO(r);                                                                             \
  }                                                                                                          \
  __KILN_DEVICE __KILN_T2 NAME2(__KILN_T2 a, __KILN_T2 b, __KILN_T2 c) {                                     \
    unsigned r;                                                                                              \
    asm(PTX __KILN_PTX "x2 %0, %1, %2, %3;"                                                                  \
        : "=r"(r)                                                                                            \
        : "r"(__kiln::word(a)), "r"(__kiln::word(b)), "r"(__kiln::word(c)));                                 \
    return __kiln::__KILN_TO2(r);                                                                            \
  }
#endif
#define __KILN_BINARY(NAME, NAME2, PTX) \
  __KILN_INSTRUCTION(NAME, PTX)         \
  __KILN_PAIR(NAME2, NAME, PTX)
// A function of pairs by that of their small floats.
#define __KILN_OF_BOTH(NAME2, NAME) \
  __KILN_DEVICE __KILN_T2 NAME2(__KILN_T2 a, __KILN_T2 b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; }
