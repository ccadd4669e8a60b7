// What every engine and target gives to the code of one thread.
//
// Nothing here is defined: an engine replaces each call. Names of Kiln's own begin with `__kiln`, which no kernel may
// use, so that a kernel sees Metal's names and MLX's and no others.
#define METAL_FUNC inline __attribute__((always_inline))
#define __KILN_INLINE inline __attribute__((always_inline))

typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
typedef _Float16 half;
typedef __bf16 bfloat;

namespace __kiln {

// The parameter of constructors for objects in threadgroup memory. Nothing is converted to it.
enum class ThreadgroupObject {};

// One of the values that attributes are computed from, by its number in `engine/thread_values.h`.
extern "C" __attribute__((const)) uint __kiln_value(uint index);

// The line of a caller's call: a parameter behind Metal's own, of a type that no argument of a kernel's converts to.
// The default argument is evaluated at the call.
enum class Line : uint {};
#define __KILN_CALLERS_LINE __kiln::Line line = __kiln::Line(__builtin_LINE())

// Waits for the threads of the simdgroup that execute the same dynamic instance of this call, then exchanges values
// among them; the result is this thread's. All arguments but the last two are constants. CpuExchange in
// `core/cpu_image.h` says what the kinds do, and with what; reductions and scans combine two values by a function.
enum class Exchange : uint { none, shuffle, ballot, reduce, inclusive_scan, exclusive_scan };
typedef ulong combine_function(ulong a, ulong b);
extern "C" __attribute__((convergent)) ulong __kiln_exchange(Line line, Exchange exchange, uint width,
                                                             combine_function* combine, ulong identity, ulong value,
                                                             ulong operand);

// The lane whose elements of a matrix a thread has: its own, unless an engine gives them out in another way, which it
// may where a body does not look at them.
extern "C" __attribute__((const)) uint __kiln_matrix_lane();

// This thread's two elements of a b + c, matrices of 8 by 8 (metal_stdlib/simdgroup_matrix.h), whose elements the
// threads of the simdgroup have: the first in the lower half of the result. The types, 0 for float, 1 for half, 2 for
// bfloat, say what a and b were before. An engine does it as a whole, or by exchanges
// (compiler/lowering/matrix_products.h).
extern "C" __attribute__((convergent)) ulong __kiln_matrix_product(Line line, uint a_type, uint b_type, float a_first,
                                                                   float a_second, float b_first, float b_second,
                                                                   float c_first, float c_second);

// x * 2^n, rounded once, for x that is near 1 or a NaN, and n in [-252, 254], which is given as both types.
extern "C" __attribute__((const)) float __kiln_scaled(float x, float n, int same_n);

// 1 / sqrt(x): `rounded`, which is correctly rounded. In math modes other than safe an engine may compute it within two
// units in the last place instead (compiler/lowering/approximations.h).
extern "C" __attribute__((const)) float __kiln_rsqrt(float x, float rounded);

// The same in all math modes: what an engine computes in its place has the same bits.
extern "C" __attribute__((const)) float __kiln_rounded_rsqrt(float x, float rounded);

// Whether functions are computed by the instructions below (math/approximate.h): a constant. In safe mode they are not.
extern "C" __attribute__((const)) bool __kiln_approximates();
// An instruction's result, if __kiln_approximates().
enum class approximation : uint { exp2, log2, sin, cos, reciprocal, sqrt, rsqrt };
extern "C" __attribute__((const)) float __kiln_approximate(approximation which, float x);

// An array of a batch: `array` is a parameter of the kernel, and the result lies `bytes` after it. Accesses through the
// result are guarded by the extent of one array of the batch (compiler/lowering/bounds_guards.h).
extern "C" __attribute__((const)) void* __kiln_element(const volatile void* array, long bytes);
template <class T>
__KILN_INLINE T* element(T* array, long index) {
  return (T*)__kiln_element(array, index * (long)sizeof(T));
}

// Waits for all threads of the threadgroup that have not returned.
extern "C" __attribute__((convergent)) void __kiln_threadgroup_barrier(Line line);

// Around each loop of the kernel, in order to tell iterations of one exchange from another. The first gives a number
// that belongs to the second.
extern "C" __attribute__((convergent)) uint __kiln_loop_enter();
extern "C" __attribute__((convergent)) void __kiln_loop_merge(uint loop);
__KILN_INLINE constexpr uint loop_enter() { return __builtin_is_constant_evaluated() ? 0 : __kiln_loop_enter(); }
__KILN_INLINE constexpr void loop_merge(uint loop) {
  if (!__builtin_is_constant_evaluated()) __kiln_loop_merge(loop);
}

// A type as it is, but not deduced from an argument: the argument is converted to what another one deduced.
template <class T>
struct converted_to {
  typedef T type;
};
template <class T>
using converted = typename converted_to<T>::type;

template <bool Condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};

// T where it is an integer type; a template that names it is not there for other types.
template <class T>
using integral = typename enable_if<__is_integral(T), T>::type;

template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

}  // namespace __kiln
