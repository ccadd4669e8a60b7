// What every CUDA body sees: names of the C library's headers, which NVRTC has not, and constants.
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using intptr_t = int64_t;
using uintptr_t = uint64_t;

#define WARP_SIZE 32
#define MAX_NDIM 10

// Constants where NVRTC can make them of their bits (from 12.3 or so on).
#if defined(__has_builtin)
#if __has_builtin(__builtin_bit_cast)
#define __KILN_HAS_BIT_CAST 1
#endif
#endif
#ifdef __KILN_HAS_BIT_CAST
#define __KILN_CONSTEXPR constexpr
#define __KILN_FLOAT(BITS) __builtin_bit_cast(float, BITS)
#define __KILN_DOUBLE(BITS) __builtin_bit_cast(double, BITS)
#else
#define __KILN_CONSTEXPR
#define __KILN_FLOAT(BITS) __int_as_float(BITS)
#define __KILN_DOUBLE(BITS) __longlong_as_double(BITS)
#endif
#ifndef INFINITY
#define INFINITY __KILN_FLOAT(0x7f800000)
#endif
#ifndef NAN
#define NAN __KILN_FLOAT(0x7fc00000)
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MAX_EXP 1024
#define DBL_MIN_EXP (-1021)
#endif
#ifndef INT_MAX
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-9223372036854775807ll - 1)
#define ULLONG_MAX 18446744073709551615ull
#endif
#ifndef INT32_MAX
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define UINT32_MAX 4294967295u
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-9223372036854775807ll - 1)
#define UINT64_MAX 18446744073709551615ull
#define SIZE_MAX 18446744073709551615ul
#endif
