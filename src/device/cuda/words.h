// CUDA's words around declarations. `__shared__` is the rewriter's (compiler/clang/token_rewriter.cpp).
#define __device__
#define __host__
#define __global__
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(BYTES) __attribute__((aligned(BYTES)))
#define __builtin_align__(BYTES) __attribute__((aligned(BYTES)))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __nv_pure__
#define __KILN_DEVICE __forceinline__
// Orders of memory, by the compiler's numbers.
#define __KILN_RELAXED 0
#define __KILN_SEQUENTIAL 5
