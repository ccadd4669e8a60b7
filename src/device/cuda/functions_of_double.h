// CUDA's functions of doubles. Those that are neither exact nor correctly rounded are the C library's.
namespace __kiln {
__KILN_DEVICE constexpr unsigned long bits_of(double x) { return __builtin_bit_cast(unsigned long, x); }
__KILN_DEVICE constexpr double double_of(unsigned long bits) { return __builtin_bit_cast(double, bits); }
constexpr unsigned long double_infinity = 0x7ff0000000000000ul;
}  // namespace __kiln

#define __KILN_OF_C(NAME) \
  __KILN_DEVICE double NAME(double x) { return __kiln::__kiln_c_##NAME(x); }
__KILN_OF_C(acos) __KILN_OF_C(acosh) __KILN_OF_C(asin) __KILN_OF_C(asinh) __KILN_OF_C(atan) __KILN_OF_C(atanh)
__KILN_OF_C(cbrt) __KILN_OF_C(cos) __KILN_OF_C(cosh) __KILN_OF_C(erf) __KILN_OF_C(erfc) __KILN_OF_C(exp)
__KILN_OF_C(exp2) __KILN_OF_C(exp10) __KILN_OF_C(expm1) __KILN_OF_C(j0) __KILN_OF_C(j1) __KILN_OF_C(lgamma)
__KILN_OF_C(log) __KILN_OF_C(log10) __KILN_OF_C(log1p) __KILN_OF_C(log2) __KILN_OF_C(logb) __KILN_OF_C(sin)
__KILN_OF_C(sinh) __KILN_OF_C(tan) __KILN_OF_C(tanh) __KILN_OF_C(tgamma) __KILN_OF_C(y0) __KILN_OF_C(y1)
#undef __KILN_OF_C
#define __KILN_OF_C(NAME) \
  __KILN_DEVICE double NAME(double x, double y) { return __kiln::__kiln_c_##NAME(x, y); }
__KILN_OF_C(atan2) __KILN_OF_C(fmod) __KILN_OF_C(hypot) __KILN_OF_C(nextafter) __KILN_OF_C(pow) __KILN_OF_C(remainder)
#undef __KILN_OF_C
__KILN_DEVICE double jn(int n, double x) { return __kiln::__kiln_c_jn(n, x); }
__KILN_DEVICE double yn(int n, double x) { return __kiln::__kiln_c_yn(n, x); }
__KILN_DEVICE double ldexp(double x, int k) { return __kiln::__kiln_c_ldexp(x, k); }
__KILN_DEVICE double scalbn(double x, int k) { return __kiln::__kiln_c_ldexp(x, k); }
__KILN_DEVICE double scalbln(double x, long k) {
  return __kiln::__kiln_c_ldexp(x, int(k < -10000 ? -10000 : k > 10000 ? 10000 : k));
}
// What it is asked for beyond "no number" is left to the device.
__KILN_DEVICE double nan(const char*) { return __kiln::double_of(0x7ff8000000000000ul); }

__KILN_DEVICE double floor(double x) { return __builtin_floor(x); }
__KILN_DEVICE double ceil(double x) { return __builtin_ceil(x); }
__KILN_DEVICE double trunc(double x) { return __builtin_trunc(x); }
__KILN_DEVICE double rint(double x) { return __builtin_rint(x); }
__KILN_DEVICE double nearbyint(double x) { return __builtin_rint(x); }
__KILN_DEVICE double round(double x) {
  double t = __builtin_trunc(x);
  return __builtin_fabs(x - t) >= 0.5 ? t + __builtin_copysign(1.0, x) : t;
}
__KILN_DEVICE double fabs(double x) { return __builtin_fabs(x); }
__KILN_DEVICE double copysign(double x, double y) { return __builtin_copysign(x, y); }
__KILN_DEVICE double sqrt(double x) { return __builtin_elementwise_sqrt(x); }
__KILN_DEVICE double rsqrt(double x) { return 1 / sqrt(x); }
__KILN_DEVICE double rcbrt(double x) { return 1 / cbrt(x); }
__KILN_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
__KILN_DEVICE double fmin(double x, double y) { return y < x || x != x ? y : x; }
__KILN_DEVICE double fmax(double x, double y) { return x < y || x != x ? y : x; }
__KILN_DEVICE double fdim(double x, double y) { return x > y ? x - y : x != x || y != y ? x + y : 0.0; }
__KILN_DEVICE double modf(double x, double* integer) {
  *integer = __builtin_trunc(x);
  bool is_infinite = __kiln::bits_of(__builtin_fabs(x)) == __kiln::double_infinity;
  return __builtin_copysign(is_infinite ? 0.0 : x - *integer, x);
}
__KILN_DEVICE double frexp(double x, int* exponent) {
  double a = __builtin_fabs(x);
  bool regular = a > 0 && __kiln::bits_of(a) < __kiln::double_infinity;
  bool tiny = a < 0x1p-1022;
  unsigned long bits = __kiln::bits_of(tiny ? x * 0x1p54 : x);
  *exponent = regular ? int(bits >> 52 & 0x7ff) - 1022 - (tiny ? 54 : 0) : 0;
  return regular ? __kiln::double_of((bits & 0x800ffffffffffffful) | 0x3fe0000000000000ul) : x;
}
__KILN_DEVICE int ilogb(double x) {
  int exponent;
  double a = __builtin_fabs(x);
  if (a == 0 || a != a) return -2147483647 - 1;
  if (__kiln::bits_of(a) == __kiln::double_infinity) return 2147483647;
  frexp(x, &exponent);
  return exponent - 1;
}
__KILN_DEVICE long lrint(double x) { return long(__builtin_rint(x)); }
__KILN_DEVICE long long llrint(double x) { return static_cast<long long>(__builtin_rint(x)); }
__KILN_DEVICE long lround(double x) { return long(round(x)); }
__KILN_DEVICE long long llround(double x) { return static_cast<long long>(round(x)); }
__KILN_DEVICE double remquo(double x, double y, int* quotient) {
  double r = remainder(x, y);
  // The low bits of the quotient: of what eight times y leaves.
  *quotient = int(__builtin_rint((fmod(x, 8 * y) - r) / y));
  return r;
}
__KILN_DEVICE void sincos(double x, double* sine, double* cosine) {
  *sine = sin(x);
  *cosine = cos(x);
}
namespace __kiln {
// sin of x turns of half a circle; the remainder is exact.
__KILN_DEVICE double sine_of_half_turns(double x, double shift) {
  constexpr double pi = 3.14159265358979323846;
  double r = __kiln_c_fmod(x, 2.0);
  double quarters = __builtin_rint(2 * r);
  double angle = (r - quarters / 2) * pi;
  int q = (int(quarters) + int(shift)) & 3;
  double value = q & 1 ? __kiln_c_cos(angle) : __kiln_c_sin(angle);
  return q & 2 ? -value : value;
}
}  // namespace __kiln
__KILN_DEVICE double sinpi(double x) { return __kiln::sine_of_half_turns(x, 0); }
__KILN_DEVICE double cospi(double x) { return __kiln::sine_of_half_turns(x, 1) + 0.0; }
__KILN_DEVICE void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
__KILN_DEVICE double rhypot(double x, double y) { return 1 / hypot(x, y); }
__KILN_DEVICE double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
__KILN_DEVICE double norm4d(double a, double b, double c, double d) { return hypot(hypot(a, b), hypot(c, d)); }
// Of any number of components: scaled by the largest, so that squares neither overflow nor vanish.
__KILN_DEVICE double norm(int n, const double* v) {
  double largest = 0, sum = 0;
  for (int i = 0; i < n; ++i) largest = fmax(largest, __builtin_fabs(v[i]));
  if (!(largest > 0) || __kiln::bits_of(largest) == __kiln::double_infinity) {
    for (int i = 0; i < n; ++i) sum += __builtin_fabs(v[i]);
    return largest > 0 ? largest : sum;
  }
  int exponent;
  frexp(largest, &exponent);
  for (int i = 0; i < n; ++i) {
    double part = ldexp(v[i], -exponent);
    sum = __builtin_fma(part, part, sum);
  }
  return ldexp(sqrt(sum), exponent);
}
__KILN_DEVICE double rnorm(int n, const double* v) { return 1 / norm(n, v); }
__KILN_DEVICE double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
__KILN_DEVICE double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
__KILN_DEVICE double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
namespace __kiln {
// y with erfc(y) = x, for 0 < x <= 1: Newton's steps from a first guess. The derivative is -2 / sqrt(pi) exp(-y^2).
__KILN_DEVICE double inverse_erfc(double x) {
  double t = ::sqrt(-2 * ::log(x / 2));
  double y = -0.70711 * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
  for (int i = 0; i < 3; ++i) {
    double error = ::erfc(y) - x;
    y += error / (1.12837916709551257390 * ::exp(-y * y) - y * error);
  }
  return y;
}
}  // namespace __kiln
__KILN_DEVICE double erfcinv(double x) {
  if (!(x >= 0 && x <= 2)) return __kiln::double_of(0x7ff8000000000000ul);
  if (x == 0 || x == 2) return __builtin_copysign(__kiln::double_of(__kiln::double_infinity), 1 - x);
  return x <= 1 ? __kiln::inverse_erfc(x) : -__kiln::inverse_erfc(2 - x);
}
__KILN_DEVICE double erfinv(double x) {
  // Near 0 what 1 - x loses matters; there one of Newton's steps on erf itself mends it.
  double y = x < 0 ? -erfcinv(1 + x) : erfcinv(1 - x);
  if (__builtin_fabs(x) < 0.5) y -= (erf(y) - x) / (1.12837916709551257390 * exp(-y * y));
  return x == 0 ? x : y;
}
__KILN_DEVICE double normcdfinv(double x) { return -1.41421356237309504880 * erfcinv(2 * x); }
// e to x * x, times erfc(x).
__KILN_DEVICE double erfcx(double x) {
  double square = x * x, rest = __builtin_fma(x, x, -square);
  if (x < -27) return __kiln::double_of(__kiln::double_infinity);
  if (x < 26) return exp(square) * (1 + rest) * erfc(x);
  // 1 / (x sqrt(pi)) times a series in 1 / (2 x * x) that does not converge, but is good enough here.
  double t = 1 / (2 * square), term = 1, sum = 1;
  for (int k = 1; k < 9; ++k) {
    term *= -(2 * k - 1) * t;
    sum += term;
  }
  return sum * 0.56418958354775628695 / x;
}
namespace __kiln {
// Modified Bessel functions of the first kind, of order 0 and 1: the power series, whose terms are all positive, and
// for large x the series in 1 / x.
__KILN_DEVICE double bessel_i(int order, double x) {
  double a = __builtin_fabs(x);
  if (a < 30) {
    double square = a * a / 4, term = order == 0 ? 1 : a / 2, sum = term;
    for (int k = 1; term > sum * 0x1p-56; ++k) {
      term *= square / (double(k) * (k + order));
      sum += term;
    }
    return sum;
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && __builtin_fabs(term) > 0x1p-56; ++k) {
    double odd = 2 * k - 1;
    term *= -(4 * order - odd * odd) / (k * 8.0 * a);
    sum += term;
  }
  if (__kiln::bits_of(a) == double_infinity) return a;
  double root = ::exp(a / 2);
  return root * (sum / ::sqrt(6.28318530717958647693 * a)) * root;
}
}  // namespace __kiln
__KILN_DEVICE double cyl_bessel_i0(double x) { return x != x ? x : __kiln::bessel_i(0, x); }
__KILN_DEVICE double cyl_bessel_i1(double x) { return x != x ? x : __builtin_copysign(__kiln::bessel_i(1, x), x); }

__KILN_DEVICE bool isnan(double x) { return __kiln::bits_of(__builtin_fabs(x)) > __kiln::double_infinity; }
__KILN_DEVICE bool isinf(double x) { return __kiln::bits_of(__builtin_fabs(x)) == __kiln::double_infinity; }
__KILN_DEVICE bool isfinite(double x) { return __kiln::bits_of(__builtin_fabs(x)) < __kiln::double_infinity; }
__KILN_DEVICE bool signbit(double x) { return (__kiln::bits_of(x) >> 63) != 0; }
