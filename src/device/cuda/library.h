// What CUDA bodies see on the CPU, in one file, which is precompiled.
//
// Arithmetic, exchanges between threads and barriers are Metal's, under names that no body can say: CUDA gives other
// meanings to `half`, `float4` and `int64_t`. What Kiln has written for NVRTC serves here too, over other instructions.
#define __KILN_CPU_CUDA 1
#define metal __kiln_metal
#define half __kiln_half
#define bfloat __kiln_bfloat
#define uchar __kiln_uchar
#define ushort __kiln_ushort
#define uint __kiln_uint
#define ulong __kiln_ulong
#define int8_t __kiln_int8_t
#define int16_t __kiln_int16_t
#define int32_t __kiln_int32_t
#define int64_t __kiln_int64_t
#define uint8_t __kiln_uint8_t
#define uint16_t __kiln_uint16_t
#define uint32_t __kiln_uint32_t
#define uint64_t __kiln_uint64_t
#define intptr_t __kiln_intptr_t
#define uintptr_t __kiln_uintptr_t
#include "engine/thread_values.h"
#include "engine/thread.h"
#include "metal_stdlib/scalar_types.h"
#include "metal_stdlib/vec.h"
#include "metal_stdlib/type_traits.h"
#include "metal_stdlib/constants.h"
#include "metal_stdlib/numeric_limits.h"
#include "metal_stdlib/min_max.h"
#include "metal_stdlib/simdgroup_common.h"
#include "metal_stdlib/simdgroup_reduce.h"
#include "math/math_common.h"
#include "math/approximate.h"
#include "math/rounding.h"
#include "math/representation.h"
#include "math/exponential.h"
#include "math/logarithm.h"
#include "math/power.h"
#include "math/trigonometric.h"
#include "math/inverse_trigonometric.h"
#include "math/hyperbolic.h"
#include "math/error_function.h"
#include "math/geometric.h"
#undef metal
#undef half
#undef bfloat
#undef uchar
#undef ushort
#undef uint
#undef ulong
#undef int8_t
#undef int16_t
#undef int32_t
#undef int64_t
#undef uint8_t
#undef uint16_t
#undef uint32_t
#undef uint64_t
#undef intptr_t
#undef uintptr_t
#undef METAL_FUNC

// Metal's constants, which CUDA has not, or has too.
#undef HUGE_VALH
#undef MAXFLOAT
#undef MAXHALF
#undef M_E_F
#undef M_LOG2E_F
#undef M_LOG10E_F
#undef M_LN2_F
#undef M_LN10_F
#undef M_PI_F
#undef M_PI_2_F
#undef M_PI_4_F
#undef M_1_PI_F
#undef M_2_PI_F
#undef M_2_SQRTPI_F
#undef M_SQRT2_F
#undef M_SQRT1_2_F
#undef M_E_H
#undef M_LOG2E_H
#undef M_LOG10E_H
#undef M_LN2_H
#undef M_LN10_H
#undef M_PI_H
#undef M_PI_2_H
#undef M_PI_4_H
#undef M_1_PI_H
#undef M_2_PI_H
#undef M_2_SQRTPI_H
#undef M_SQRT2_H
#undef M_SQRT1_2_H
#undef MAXBFLOAT
#undef HUGE_VALBF
#undef M_E_BF
#undef M_LOG2E_BF
#undef M_LOG10E_BF
#undef M_LN2_BF
#undef M_LN10_BF
#undef M_PI_BF
#undef M_PI_2_BF
#undef M_PI_4_BF
#undef M_1_PI_BF
#undef M_2_PI_BF
#undef M_2_SQRTPI_BF
#undef M_SQRT2_BF
#undef M_SQRT1_2_BF
#undef HALF_DIG
#undef HALF_DECIMAL_DIG
#undef HALF_MANT_DIG
#undef HALF_MAX_10_EXP
#undef HALF_MAX_EXP
#undef HALF_MIN_10_EXP
#undef HALF_MIN_EXP
#undef HALF_RADIX
#undef HALF_MAX
#undef HALF_MIN
#undef HALF_EPSILON
#undef FLT_DIG
#undef FLT_MANT_DIG
#undef FLT_MAX_EXP
#undef FLT_MIN_EXP
#undef FLT_MAX
#undef FLT_MIN
#undef FLT_EPSILON
#undef CHAR_BIT
#undef SCHAR_MAX
#undef SCHAR_MIN
#undef UCHAR_MAX
#undef SHRT_MAX
#undef SHRT_MIN
#undef USHRT_MAX
#undef INT_MAX
#undef INT_MIN
#undef UINT_MAX
#undef LONG_MAX
#undef LONG_MIN
#undef ULONG_MAX
#undef FP_ILOGB0
#undef FP_ILOGBNAN

// Chooses, in what NVRTC shares, the declarations that need no instructions of a GPU's.
#define __CUDA_ARCH__ 900
#include "cuda/words.h"
#include "cuda/vectors.h"
#include "cuda/c_functions.h"
#include "cuda/functions_of_double.h"
#include "cuda/functions_of_float.h"
#include "cuda/integers.h"
#include "cuda/packed_integers.h"
#include "cuda/rounded.h"
#include "cuda/conversions.h"
#include "cuda/constants.h"
#include "cuda/warp.h"
#include "cuda/memory.h"
#include "cuda/standard.h"
#include "cuda/atomics.h"
#include "cuda/output.h"
#include "nvrtc/types.cuh"
#include "cuda/small_floats.h"
#include "nvrtc/half.cuh"
#include "nvrtc/half_functions.cuh"
#include "nvrtc/bfloat16.cuh"
#include "nvrtc/bfloat16_functions.cuh"
#include "nvrtc/cooperative_groups.cuh"
#include "nvrtc/complex.cuh"
#include "nvrtc/utilities.cuh"
namespace mlx::core::cu {
namespace cg = cooperative_groups;
}
#undef __CUDA_ARCH__

// What bodies ask. The architecture is the oldest that Kiln runs on, whose intrinsics all are here.
#define __CUDA_ARCH__ 800
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __NVCC__ 1
