// Arithmetic that says how it rounds: n to the nearest, z toward zero, d down, u up.
//
// Of floats it is computed in double and rounded to odd there (the last bit says whether something was lost), which
// makes the second rounding right. Of doubles the error of the nearest result says to which side it lies.
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
}  // namespace __kiln

#define __KILN_ROUNDED_FLOAT(R, ROUNDING)                                                                            \
  __KILN_DEVICE float __fadd_##R(float a, float b) { return __kiln::narrowed<ROUNDING>(__kiln::odd_sum(a, b)); }     \
  __KILN_DEVICE float __fsub_##R(float a, float b) { return __kiln::narrowed<ROUNDING>(__kiln::odd_sum(a, -b)); }    \
  __KILN_DEVICE float __fmul_##R(float a, float b) { return __kiln::narrowed<ROUNDING>(double(a) * b); }             \
  __KILN_DEVICE float __fdiv_##R(float a, float b) { return __kiln::narrowed<ROUNDING>(__kiln::odd_quotient(a, b)); } \
  __KILN_DEVICE float __frcp_##R(float a) { return __kiln::narrowed<ROUNDING>(__kiln::odd_quotient(1, a)); }         \
  __KILN_DEVICE float __fsqrt_##R(float a) { return __kiln::narrowed<ROUNDING>(__kiln::odd_root(a)); }               \
  __KILN_DEVICE float __fmaf_##R(float a, float b, float c) {                                                        \
    return __kiln::narrowed<ROUNDING>(__kiln::odd_sum(double(a) * b, c));                                            \
  }
__KILN_ROUNDED_FLOAT(rz, 'z')
__KILN_ROUNDED_FLOAT(rd, 'd')
__KILN_ROUNDED_FLOAT(ru, 'u')
__KILN_DEVICE float __fadd_rn(float a, float b) { return a + b; }
__KILN_DEVICE float __fsub_rn(float a, float b) { return a - b; }
__KILN_DEVICE float __fmul_rn(float a, float b) { return a * b; }
__KILN_DEVICE float __fdiv_rn(float a, float b) { return a / b; }
__KILN_DEVICE float __frcp_rn(float a) { return 1 / a; }
__KILN_DEVICE float __fsqrt_rn(float a) { return __kiln::sqrt(a); }
__KILN_DEVICE float __frsqrt_rn(float a) { return __kiln_metal::rsqrt(a); }
__KILN_DEVICE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__KILN_DEVICE float __fmaf_ieee_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#define __KILN_ROUNDED_DOUBLE(R, ROUNDING)                                                                   \
  __KILN_DEVICE double __dadd_##R(double a, double b) {                                                      \
    double sum = a + b;                                                                                      \
    return __kiln::rounded<ROUNDING>(sum, __kiln::error_of_sum(a, b, sum));                                  \
  }                                                                                                          \
  __KILN_DEVICE double __dsub_##R(double a, double b) { return __dadd_##R(a, -b); }                          \
  __KILN_DEVICE double __dmul_##R(double a, double b) {                                                      \
    double product = a * b;                                                                                  \
    return __kiln::rounded<ROUNDING>(product, __builtin_fma(a, b, -product));                                \
  }                                                                                                          \
  __KILN_DEVICE double __ddiv_##R(double a, double b) {                                                      \
    double q = a / b, rest = __builtin_fma(-q, b, a);                                                        \
    return __kiln::rounded<ROUNDING>(q, b < 0 ? -rest : rest);                                               \
  }                                                                                                          \
  __KILN_DEVICE double __drcp_##R(double a) { return __ddiv_##R(1, a); }                                     \
  __KILN_DEVICE double __dsqrt_##R(double a) {                                                               \
    double root = sqrt(a);                                                                                   \
    return __kiln::rounded<ROUNDING>(root, __builtin_fma(-root, root, a));                                   \
  }
__KILN_ROUNDED_DOUBLE(rn, 'n')
__KILN_ROUNDED_DOUBLE(rz, 'z')
__KILN_ROUNDED_DOUBLE(rd, 'd')
__KILN_ROUNDED_DOUBLE(ru, 'u')
__KILN_DEVICE double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
__KILN_EXACT_END
