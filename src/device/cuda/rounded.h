// Arithmetic that says how it rounds: n to the nearest, z toward zero, d down, u up.
//
// Of floats it is computed in double and rounded to odd there (the last bit says whether something was lost), which
// makes the second rounding right. Of doubles the error of the nearest result says to which side it lies; it is exact
// where nothing is tiny or huge, so fractions are computed and their exponents put back with one more rounding in the
// same direction, which changes nothing that the first one decided.
__KILN_EXACT_BEGIN
namespace __kiln {
__KILN_DEVICE double toward_odd(double x, double error) {
  unsigned long bits = bits_of(x);
  bool is_wrong = (error > 0 || error < 0) && !(bits & 1) && bits_of(__builtin_fabs(x)) < double_infinity;
  return double_of(is_wrong ? ((error > 0) == (x > 0) ? bits + 1 : bits - 1) : bits);
}
__KILN_DEVICE double odd_sum(double a, double b) {
  double sum = a + b, part = sum - a;
  return toward_odd(sum, (a - (sum - part)) + (b - part));
}
__KILN_DEVICE double odd_quotient(double a, double b) {
  double q = a / b, rest = __builtin_fma(-q, b, a);
  return toward_odd(q, b < 0 ? -rest : rest);
}
__KILN_DEVICE double odd_root(double a) {
  double root = __builtin_elementwise_sqrt(a);
  return toward_odd(root, __builtin_fma(-root, root, a));
}

// The neighbours of a float and of a double.
template <class T>
__KILN_DEVICE T next_up(T x) {
  using bits_type = typename bits_of_size<sizeof(T)>::type;
  auto bits = __builtin_bit_cast(bits_type, x);
  if (x == 0) return __builtin_bit_cast(T, bits_type(1));
  return __builtin_bit_cast(T, bits_type(x > 0 ? bits + 1 : bits - 1));
}
template <class T>
__KILN_DEVICE T next_down(T x) {
  return -next_up(-x);
}
// `x` is the nearest of T to something that is `error` more.
template <char Rounding, class T>
__KILN_DEVICE T rounded(T x, double error) {
  bool is_up = Rounding == 'u' || (Rounding == 'z' && x < 0), is_down = Rounding == 'd' || (Rounding == 'z' && x > 0);
  if (is_up && error > 0) return next_up(x);
  if (is_down && error < 0) return next_down(x);
  return x;
}
template <char Rounding>
__KILN_DEVICE float narrowed(double x) {
  float f = float(x);
  if constexpr (Rounding == 'n') return f;
  // One that is too large: what is lost of infinity is no number.
  double back = f;
  return rounded<Rounding>(f, back < x ? 1.0 : back > x ? -1.0 : 0.0);
}
__KILN_DEVICE double error_of_sum(double a, double b, double sum) {
  double part = sum - a;
  return (a - (sum - part)) + (b - part);
}
// Of two numbers whose sum is exactly zero: -0 where one rounds down, unless both are +0.
template <char Rounding, class T>
__KILN_DEVICE T zero_sum(T a, T b, T sum) {
  if constexpr (Rounding == 'd') {
    bool is_negative = __builtin_copysign(1.0, double(a)) < 0 || __builtin_copysign(1.0, double(b)) < 0;
    return sum == 0 && a == -b && is_negative ? -T(0) : sum;
  }
  return sum;
}

__KILN_DEVICE bool is_regular(double x) { return x != 0 && bits_of(__builtin_fabs(x)) < double_infinity; }
// A regular number is its fraction, in [1, 2), times two to its exponent.
__KILN_DEVICE int exponent_of(double x) {
  bool is_tiny = __builtin_fabs(x) < 0x1p-1022;
  return int(bits_of(is_tiny ? x * 0x1p54 : x) >> 52 & 0x7ff) - 1023 - (is_tiny ? 54 : 0);
}
__KILN_DEVICE double fraction_of(double x) {
  bool is_tiny = __builtin_fabs(x) < 0x1p-1022;
  return double_of((bits_of(is_tiny ? x * 0x1p54 : x) & 0x800ffffffffffffful) | 0x3ff0000000000000ul);
}
// Two to a power from -1022 to 1023.
__KILN_DEVICE double double_power_of_two(int exponent) { return double_of(static_cast<unsigned long>(exponent + 1023) << 52); }
// x, a regular number, times two to a power.
template <char Rounding>
__KILN_DEVICE double scaled(double number, int exponent) {
  exponent += exponent_of(number);
  double x = fraction_of(number);
  if (exponent > 1100) exponent = 1100;
  if (exponent < -1200) exponent = -1200;
  // Up in two exact steps but for the last; down at once, so that there is one rounding.
  if (exponent >= -900) {
    int first = exponent > 900 ? 900 : exponent;
    double big = x * double_power_of_two(first);
    double value = big * double_power_of_two(exponent - first);
    // What does not fit becomes infinite, which is too much.
    bool overflows = bits_of(__builtin_fabs(value)) == double_infinity;
    return overflows ? rounded<Rounding>(value, x > 0 ? -1.0 : 1.0) : value;
  }
  double small = x * double_power_of_two(-900);
  double value = small * double_power_of_two(exponent + 900);
  double back = value * double_power_of_two(-(exponent + 900));
  return rounded<Rounding>(value, small > back ? 1.0 : small < back ? -1.0 : 0.0);
}

// a * b + c; where c is zero it has the sign that a sum of zeros is to have.
template <char Rounding>
__KILN_DEVICE double fused(double a, double b, double c) {
  if (!(is_regular(a) && is_regular(b) && (is_regular(c) || c == 0))) {
    double product = a * b;
    return zero_sum<Rounding>(product, c, __builtin_fma(a, b, c));
  }
  int exponent = exponent_of(a) + exponent_of(b);
  double x = fraction_of(a), y = fraction_of(b), z = c;
  if (c != 0) {
    int distance = exponent_of(c) - exponent;
    // Far apart, the smaller one matters by its sign only.
    if (distance < -200) distance = -200;
    if (distance > 200) {
      exponent += distance - 200;
      distance = 200;
    }
    z = fraction_of(c) * double_power_of_two(distance);
  }
  // Boldo and Muller, Exact and approximated error of the FMA.
  double nearest = __builtin_fma(x, y, z);
  double high = x * y, low = __builtin_fma(x, y, -high);
  double inner = z + low, inner_error = error_of_sum(z, low, inner);
  double outer = high + inner, outer_error = error_of_sum(high, inner, outer);
  double error = (outer - nearest) + outer_error;
  error = error + inner_error;
  if (nearest == 0) return Rounding == 'd' ? -0.0 : 0.0;
  return scaled<Rounding>(rounded<Rounding>(nearest, error), exponent);
}
template <char Rounding>
__KILN_DEVICE double quotient(double a, double b) {
  if (!is_regular(a) || !is_regular(b)) return a / b;
  double x = fraction_of(a), y = fraction_of(b), q = x / y, rest = __builtin_fma(-q, y, x);
  return scaled<Rounding>(rounded<Rounding>(q, y < 0 ? -rest : rest), exponent_of(a) - exponent_of(b));
}
template <char Rounding>
__KILN_DEVICE double root(double a) {
  if (!is_regular(a) || a < 0) return ::sqrt(a);
  int exponent = exponent_of(a), odd = exponent & 1;
  double x = fraction_of(a) * (odd ? 2.0 : 1.0), r = ::sqrt(x);
  return rounded<Rounding>(r, __builtin_fma(-r, r, x)) * double_power_of_two((exponent - odd) / 2);
}
}  // namespace __kiln

#define __KILN_ROUNDED_FLOAT(R, ROUNDING)                                                                            \
  __KILN_DEVICE float __fadd_##R(float a, float b) {                                                                 \
    return __kiln::zero_sum<ROUNDING>(a, b, __kiln::narrowed<ROUNDING>(__kiln::odd_sum(a, b)));                      \
  }                                                                                                                  \
  __KILN_DEVICE float __fsub_##R(float a, float b) { return __fadd_##R(a, -b); }                                     \
  __KILN_DEVICE float __fmul_##R(float a, float b) { return __kiln::narrowed<ROUNDING>(double(a) * b); }             \
  __KILN_DEVICE float __fdiv_##R(float a, float b) { return __kiln::narrowed<ROUNDING>(__kiln::odd_quotient(a, b)); } \
  __KILN_DEVICE float __frcp_##R(float a) { return __kiln::narrowed<ROUNDING>(__kiln::odd_quotient(1, a)); }         \
  __KILN_DEVICE float __fsqrt_##R(float a) { return __kiln::narrowed<ROUNDING>(__kiln::odd_root(a)); }               \
  __KILN_DEVICE float __fmaf_##R(float a, float b, float c) {                                                        \
    double product = double(a) * b;                                                                                  \
    return float(__kiln::zero_sum<ROUNDING>(product, double(c),                                                      \
                                            double(__kiln::narrowed<ROUNDING>(__kiln::odd_sum(product, c)))));       \
  }                                                                                                                  \
  __KILN_DEVICE float __fmaf_ieee_##R(float a, float b, float c) { return __fmaf_##R(a, b, c); }
__KILN_ROUNDED_FLOAT(rz, 'z')
__KILN_ROUNDED_FLOAT(rd, 'd')
__KILN_ROUNDED_FLOAT(ru, 'u')
__KILN_DEVICE float __fadd_rn(float a, float b) { return a + b; }
__KILN_DEVICE float __fsub_rn(float a, float b) { return a - b; }
__KILN_DEVICE float __fmul_rn(float a, float b) { return a * b; }
__KILN_DEVICE float __fdiv_rn(float a, float b) { return a / b; }
__KILN_DEVICE float __frcp_rn(float a) { return 1 / a; }
__KILN_DEVICE float __fsqrt_rn(float a) { return __kiln::sqrt(a); }
__KILN_DEVICE float __frsqrt_rn(float a) { return __kiln::rounded_rsqrt(a); }
__KILN_DEVICE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__KILN_DEVICE float __fmaf_ieee_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#define __KILN_ROUNDED_DOUBLE(R, ROUNDING)                                                                    \
  __KILN_DEVICE double __dadd_##R(double a, double b) { return __kiln::fused<ROUNDING>(a, 1, b); }             \
  __KILN_DEVICE double __dsub_##R(double a, double b) { return __kiln::fused<ROUNDING>(a, 1, -b); }            \
  __KILN_DEVICE double __dmul_##R(double a, double b) {                                                       \
    double sign = __builtin_copysign(1.0, a) * __builtin_copysign(1.0, b);                                    \
    return __kiln::fused<ROUNDING>(a, b, sign * 0.0);                                                         \
  }                                                                                                           \
  __KILN_DEVICE double __ddiv_##R(double a, double b) { return __kiln::quotient<ROUNDING>(a, b); }            \
  __KILN_DEVICE double __drcp_##R(double a) { return __kiln::quotient<ROUNDING>(1, a); }                      \
  __KILN_DEVICE double __dsqrt_##R(double a) { return __kiln::root<ROUNDING>(a); }                            \
  __KILN_DEVICE double __fma_##R(double a, double b, double c) { return __kiln::fused<ROUNDING>(a, b, c); }
__KILN_ROUNDED_DOUBLE(rz, 'z')
__KILN_ROUNDED_DOUBLE(rd, 'd')
__KILN_ROUNDED_DOUBLE(ru, 'u')
__KILN_DEVICE double __dadd_rn(double a, double b) { return a + b; }
__KILN_DEVICE double __dsub_rn(double a, double b) { return a - b; }
__KILN_DEVICE double __dmul_rn(double a, double b) { return a * b; }
__KILN_DEVICE double __ddiv_rn(double a, double b) { return a / b; }
__KILN_DEVICE double __drcp_rn(double a) { return 1 / a; }
__KILN_DEVICE double __dsqrt_rn(double a) { return sqrt(a); }
__KILN_DEVICE double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
__KILN_EXACT_END
