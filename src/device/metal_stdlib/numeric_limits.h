// metal::numeric_limits.
namespace metal {

template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = false;
};

#define __KILN_INTEGER_LIMITS(T, MIN, MAX, DIGITS)                          \
  template <>                                                               \
  struct numeric_limits<T> {                                                \
    static constexpr bool is_specialized = true;                            \
    static constexpr bool is_signed = (T)(-1) < (T)0;                       \
    static constexpr bool is_integer = true;                                \
    static constexpr bool is_exact = true;                                  \
    static constexpr bool has_infinity = false;                             \
    static constexpr bool has_quiet_NaN = false;                            \
    static constexpr int digits = DIGITS;                                   \
    static constexpr int digits10 = DIGITS * 30103 / 100000;                \
    static constexpr int radix = 2;                                         \
    static constexpr T min() { return MIN; }                                \
    static constexpr T max() { return MAX; }                                \
    static constexpr T lowest() { return MIN; }                             \
    static constexpr T epsilon() { return 0; }                              \
    static constexpr T round_error() { return 0; }                          \
    static constexpr T infinity() { return 0; }                             \
    static constexpr T quiet_NaN() { return 0; }                            \
    static constexpr T denorm_min() { return 0; }                           \
  };
__KILN_INTEGER_LIMITS(bool, false, true, 1)
__KILN_INTEGER_LIMITS(char, -128, 127, 7)
__KILN_INTEGER_LIMITS(signed char, -128, 127, 7)
__KILN_INTEGER_LIMITS(uchar, 0, 255, 8)
__KILN_INTEGER_LIMITS(short, -32768, 32767, 15)
__KILN_INTEGER_LIMITS(ushort, 0, 65535, 16)
__KILN_INTEGER_LIMITS(int, -2147483647 - 1, 2147483647, 31)
__KILN_INTEGER_LIMITS(uint, 0, 0xffffffffu, 32)
__KILN_INTEGER_LIMITS(long, -0x7fffffffffffffffl - 1, 0x7fffffffffffffffl, 63)
__KILN_INTEGER_LIMITS(ulong, 0, 0xfffffffffffffffful, 64)
__KILN_INTEGER_LIMITS(long long, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll, 63)
__KILN_INTEGER_LIMITS(unsigned long long, 0, 0xffffffffffffffffull, 64)

#define __KILN_FLOAT_LIMITS(T, BITS, DIGITS, DIGITS10, MAX_DIGITS10, MIN_EXP, MIN_EXP10, MAX_EXP, MAX_EXP10, MIN, MAX, \
                            EPSILON, DENORM, INF, QNAN, SNAN)                                                         \
  template <>                                                                                                         \
  struct numeric_limits<T> {                                                                                          \
    static constexpr bool is_specialized = true;                                                                      \
    static constexpr bool is_signed = true;                                                                           \
    static constexpr bool is_integer = false;                                                                         \
    static constexpr bool is_exact = false;                                                                           \
    static constexpr bool has_infinity = true;                                                                        \
    static constexpr bool has_quiet_NaN = true;                                                                       \
    static constexpr bool has_signaling_NaN = true;                                                                   \
    static constexpr bool is_iec559 = true;                                                                           \
    static constexpr int radix = 2;                                                                                   \
    static constexpr int digits = DIGITS;                                                                             \
    static constexpr int digits10 = DIGITS10;                                                                         \
    static constexpr int max_digits10 = MAX_DIGITS10;                                                                 \
    static constexpr int min_exponent = MIN_EXP;                                                                      \
    static constexpr int min_exponent10 = MIN_EXP10;                                                                  \
    static constexpr int max_exponent = MAX_EXP;                                                                      \
    static constexpr int max_exponent10 = MAX_EXP10;                                                                  \
    static constexpr T min() { return __builtin_bit_cast(T, BITS(MIN)); }                                             \
    static constexpr T max() { return __builtin_bit_cast(T, BITS(MAX)); }                                             \
    static constexpr T lowest() { return -max(); }                                                                    \
    static constexpr T epsilon() { return __builtin_bit_cast(T, BITS(EPSILON)); }                                     \
    static constexpr T round_error() { return (T)0.5f; }                                                              \
    static constexpr T infinity() { return __builtin_bit_cast(T, BITS(INF)); }                                        \
    static constexpr T quiet_NaN() { return __builtin_bit_cast(T, BITS(QNAN)); }                                      \
    static constexpr T signaling_NaN() { return __builtin_bit_cast(T, BITS(SNAN)); }                                  \
    static constexpr T denorm_min() { return __builtin_bit_cast(T, BITS(DENORM)); }                                   \
  };
__KILN_FLOAT_LIMITS(float, uint, 24, 6, 9, -125, -37, 128, 38, 0x00800000, 0x7f7fffff, 0x34000000, 1, 0x7f800000,
                    0x7fc00000, 0x7fa00000)
__KILN_FLOAT_LIMITS(half, ushort, 11, 3, 5, -13, -4, 16, 4, 0x0400, 0x7bff, 0x1400, 1, 0x7c00, 0x7e00, 0x7d00)
__KILN_FLOAT_LIMITS(bfloat, ushort, 8, 2, 4, -125, -37, 128, 38, 0x0080, 0x7f7f, 0x3c00, 1, 0x7f80, 0x7fc0, 0x7fa0)

}  // namespace metal
