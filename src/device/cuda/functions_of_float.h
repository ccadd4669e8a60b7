// CUDA's functions of floats: Metal's, and through doubles where Metal has none. Each has its name with f and is an
// overload of the one without.
namespace __kiln {
// Arguments that are integers count as doubles, as in C++.
template <class T>
using integral_as_double = typename enable_if<__is_integral(T), double>::type;
}  // namespace __kiln

#define __KILN_FLOAT_1(NAME, VALUE)                                                         \
  __KILN_DEVICE float NAME##f(float x) { return VALUE; }                                    \
  __KILN_DEVICE float NAME(float x) { return VALUE; }                                       \
  template <class T>                                                                        \
  __KILN_DEVICE __kiln::integral_as_double<T> NAME(T x) {                                   \
    return NAME(double(x));                                                                 \
  }
#define __KILN_FLOAT_2(NAME, VALUE)                                                         \
  __KILN_DEVICE float NAME##f(float x, float y) { return VALUE; }                           \
  __KILN_DEVICE float NAME(float x, float y) { return VALUE; }                              \
  __KILN_DEVICE double NAME(float x, double y) { return NAME(double(x), y); }               \
  __KILN_DEVICE double NAME(double x, float y) { return NAME(x, double(y)); }               \
  template <class T, class = __kiln::integral_as_double<T>>                                 \
  __KILN_DEVICE float NAME(float x, T y) {                                                  \
    return NAME(x, float(y));                                                               \
  }                                                                                         \
  template <class T, class = __kiln::integral_as_double<T>>                                 \
  __KILN_DEVICE float NAME(T x, float y) {                                                  \
    return NAME(float(x), y);                                                               \
  }                                                                                         \
  template <class T>                                                                        \
  __KILN_DEVICE __kiln::integral_as_double<T> NAME(double x, T y) {                         \
    return NAME(x, double(y));                                                              \
  }                                                                                         \
  template <class T>                                                                        \
  __KILN_DEVICE __kiln::integral_as_double<T> NAME(T x, double y) {                         \
    return NAME(double(x), y);                                                              \
  }
#define __KILN_METAL_1(NAME) __KILN_FLOAT_1(NAME, __kiln_metal::NAME(x))
#define __KILN_METAL_2(NAME) __KILN_FLOAT_2(NAME, __kiln_metal::NAME(x, y))
#define __KILN_BY_DOUBLE_1(NAME) __KILN_FLOAT_1(NAME, float(NAME(double(x))))
#define __KILN_BY_DOUBLE_2(NAME) __KILN_FLOAT_2(NAME, float(NAME(double(x), double(y))))
__KILN_METAL_1(exp)
__KILN_METAL_1(exp2)
__KILN_METAL_1(exp10)
__KILN_FLOAT_1(expm1, __kiln::expm1(x))
__KILN_METAL_1(log)
__KILN_METAL_1(log2)
__KILN_METAL_1(log10)
__KILN_FLOAT_1(log1p, __kiln::log1p(x))
__KILN_METAL_1(sin)
__KILN_METAL_1(cos)
__KILN_METAL_1(tan)
__KILN_METAL_1(sinpi)
__KILN_METAL_1(cospi)
__KILN_METAL_1(asin)
__KILN_METAL_1(acos)
__KILN_METAL_1(atan)
__KILN_METAL_1(sinh)
__KILN_METAL_1(cosh)
__KILN_METAL_1(tanh)
__KILN_METAL_1(asinh)
__KILN_METAL_1(acosh)
__KILN_METAL_1(atanh)
__KILN_METAL_1(sqrt)
__KILN_METAL_1(rsqrt)
__KILN_METAL_1(floor)
__KILN_METAL_1(ceil)
__KILN_METAL_1(trunc)
__KILN_METAL_1(rint)
__KILN_FLOAT_1(nearbyint, __kiln_metal::rint(x))
__KILN_METAL_1(round)
__KILN_METAL_1(fabs)
__KILN_FLOAT_1(erf, __kiln::erf(x))
__KILN_FLOAT_1(erfinv, __kiln::erfinv(x))
__KILN_BY_DOUBLE_1(cbrt)
__KILN_BY_DOUBLE_1(rcbrt)
__KILN_BY_DOUBLE_1(erfc)
__KILN_BY_DOUBLE_1(erfcinv)
__KILN_BY_DOUBLE_1(lgamma)
__KILN_BY_DOUBLE_1(tgamma)
__KILN_BY_DOUBLE_1(logb)
__KILN_BY_DOUBLE_1(normcdf)
__KILN_BY_DOUBLE_1(normcdfinv)
__KILN_BY_DOUBLE_1(j0)
__KILN_BY_DOUBLE_1(j1)
__KILN_BY_DOUBLE_1(y0)
__KILN_BY_DOUBLE_1(y1)
__KILN_BY_DOUBLE_1(erfcx)
__KILN_BY_DOUBLE_1(cyl_bessel_i0)
__KILN_BY_DOUBLE_1(cyl_bessel_i1)
__KILN_METAL_2(atan2)
__KILN_METAL_2(copysign)
__KILN_METAL_2(fdim)
__KILN_METAL_2(fmax)
__KILN_METAL_2(fmin)
__KILN_METAL_2(fmod)
__KILN_METAL_2(nextafter)
__KILN_FLOAT_2(hypot, __kiln::hypot(x, y))
__KILN_BY_DOUBLE_2(rhypot)
__KILN_BY_DOUBLE_2(remainder)

__KILN_DEVICE float powf(float x, float y) { return __kiln_metal::pow(x, y); }
__KILN_DEVICE float pow(float x, float y) { return __kiln_metal::pow(x, y); }
__KILN_DEVICE double pow(float x, double y) { return pow(double(x), y); }
__KILN_DEVICE double pow(double x, float y) { return pow(x, double(y)); }
// CUDA's own: a float to an integer's power is a float.
__KILN_DEVICE float pow(float x, int y) { return __kiln_metal::pow(x, float(y)); }
__KILN_DEVICE float powif(float x, int y) { return __kiln_metal::pow(x, float(y)); }
template <class T>
__KILN_DEVICE __kiln::integral_as_double<T> pow(double x, T y) {
  return pow(x, double(y));
}
template <class T>
__KILN_DEVICE __kiln::integral_as_double<T> pow(T x, double y) {
  return pow(double(x), y);
}
template <class T, class U, class = __kiln::integral_as_double<U>>
__KILN_DEVICE __kiln::integral_as_double<T> pow(T x, U y) {
  return pow(double(x), double(y));
}

__KILN_DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__KILN_DEVICE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__KILN_DEVICE float fdividef(float x, float y) { return x / y; }
__KILN_DEVICE float ldexpf(float x, int k) { return __kiln_metal::ldexp(x, k); }
__KILN_DEVICE float ldexp(float x, int k) { return __kiln_metal::ldexp(x, k); }
__KILN_DEVICE float scalbnf(float x, int k) { return __kiln_metal::ldexp(x, k); }
__KILN_DEVICE float scalbn(float x, int k) { return __kiln_metal::ldexp(x, k); }
__KILN_DEVICE float scalblnf(float x, long k) {
  return __kiln_metal::ldexp(x, int(k < -1000 ? -1000 : k > 1000 ? 1000 : k));
}
__KILN_DEVICE float scalbln(float x, long k) { return scalblnf(x, k); }
__KILN_DEVICE float nanf(const char*) { return __builtin_bit_cast(float, 0x7fc00000); }
// In double no square overflows or vanishes.
__KILN_DEVICE float normf(int n, const float* v) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += double(v[i]) * v[i];
  return float(sqrt(sum));
}
__KILN_DEVICE float rnormf(int n, const float* v) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += double(v[i]) * v[i];
  return float(1 / sqrt(sum));
}
__KILN_DEVICE int ilogbf(float x) { return __kiln_metal::ilogb(x); }
__KILN_DEVICE int ilogb(float x) { return __kiln_metal::ilogb(x); }
__KILN_DEVICE float frexpf(float x, int* exponent) { return __kiln_metal::frexp(x, *exponent); }
__KILN_DEVICE float frexp(float x, int* exponent) { return __kiln_metal::frexp(x, *exponent); }
__KILN_DEVICE float modff(float x, float* integer) { return __kiln_metal::modf(x, *integer); }
__KILN_DEVICE float modf(float x, float* integer) { return __kiln_metal::modf(x, *integer); }
__KILN_DEVICE float remquof(float x, float y, int* quotient) { return float(remquo(double(x), double(y), quotient)); }
__KILN_DEVICE float remquo(float x, float y, int* quotient) { return remquof(x, y, quotient); }
__KILN_DEVICE float jnf(int n, float x) { return float(jn(n, double(x))); }
__KILN_DEVICE float ynf(int n, float x) { return float(yn(n, double(x))); }
__KILN_DEVICE float norm3df(float a, float b, float c) { return float(norm3d(a, b, c)); }
__KILN_DEVICE float norm4df(float a, float b, float c, float d) { return float(norm4d(a, b, c, d)); }
__KILN_DEVICE float rnorm3df(float a, float b, float c) { return float(rnorm3d(a, b, c)); }
__KILN_DEVICE float rnorm4df(float a, float b, float c, float d) { return float(rnorm4d(a, b, c, d)); }
__KILN_DEVICE void sincosf(float x, float* sine, float* cosine) { *sine = __kiln_metal::sincos(x, *cosine); }
__KILN_DEVICE void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
__KILN_DEVICE void sincospif(float x, float* sine, float* cosine) {
  *sine = __kiln_metal::sinpi(x);
  *cosine = __kiln_metal::cospi(x);
}
__KILN_DEVICE void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }
#define __KILN_TO_INTEGER(NAME, TYPE, ROUNDED)                                 \
  __KILN_DEVICE TYPE NAME##f(float x) { return TYPE(__kiln_metal::ROUNDED(x)); } \
  __KILN_DEVICE TYPE NAME(float x) { return TYPE(__kiln_metal::ROUNDED(x)); }
__KILN_TO_INTEGER(lrint, long, rint)
__KILN_TO_INTEGER(lround, long, round)
typedef long long __kiln_long_long;
__KILN_TO_INTEGER(llrint, __kiln_long_long, rint)
__KILN_TO_INTEGER(llround, __kiln_long_long, round)

__KILN_DEVICE bool isnan(float x) { return __kiln::bits_of(__kiln::magnitude(x)) > 0x7f800000; }
__KILN_DEVICE bool isinf(float x) { return __kiln::bits_of(__kiln::magnitude(x)) == 0x7f800000; }
__KILN_DEVICE bool isfinite(float x) { return __kiln::bits_of(__kiln::magnitude(x)) < 0x7f800000; }
__KILN_DEVICE bool signbit(float x) { return (__kiln::bits_of(x) >> 31) != 0; }
template <class T>
__KILN_DEVICE typename __kiln::enable_if<__is_integral(T), bool>::type isnan(T) { return false; }
template <class T>
__KILN_DEVICE typename __kiln::enable_if<__is_integral(T), bool>::type isinf(T) { return false; }
template <class T>
__KILN_DEVICE typename __kiln::enable_if<__is_integral(T), bool>::type isfinite(T) { return true; }
__KILN_DEVICE int __isnanf(float x) { return isnan(x); }
__KILN_DEVICE int __isinff(float x) { return isinf(x); }
__KILN_DEVICE int __finitef(float x) { return isfinite(x); }
__KILN_DEVICE int __signbitf(float x) { return signbit(x); }
__KILN_DEVICE int __isnan(double x) { return isnan(x); }
__KILN_DEVICE int __isinf(double x) { return isinf(x); }
__KILN_DEVICE int __finite(double x) { return isfinite(x); }
__KILN_DEVICE int __signbitd(double x) { return signbit(x); }

// Those that a GPU has in hardware, with less precision.
__KILN_DEVICE float __expf(float x) { return __kiln_metal::exp(x); }
__KILN_DEVICE float __exp10f(float x) { return __kiln_metal::exp10(x); }
__KILN_DEVICE float __logf(float x) { return __kiln_metal::log(x); }
__KILN_DEVICE float __log2f(float x) { return __kiln_metal::log2(x); }
__KILN_DEVICE float __log10f(float x) { return __kiln_metal::log10(x); }
__KILN_DEVICE float __sinf(float x) { return __kiln_metal::sin(x); }
__KILN_DEVICE float __cosf(float x) { return __kiln_metal::cos(x); }
__KILN_DEVICE float __tanf(float x) { return __kiln_metal::tan(x); }
__KILN_DEVICE float __tanhf(float x) { return __kiln_metal::tanh(x); }
__KILN_DEVICE void __sincosf(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
__KILN_DEVICE float __powf(float x, float y) { return __kiln_metal::pow(x, y); }
__KILN_DEVICE float __fdividef(float x, float y) { return x / y; }
__KILN_DEVICE float __saturatef(float x) { return __kiln_metal::fmin(__kiln_metal::fmax(x, 0.0f), 1.0f); }
