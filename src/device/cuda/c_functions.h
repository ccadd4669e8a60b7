// Functions of the C library, which the target provides (targets/cpu/c_functions.cpp): those of doubles, and of floats
// where Metal has none.
namespace __kiln {
extern "C" {
#define __KILN_C_1(NAME) __attribute__((const)) double __kiln_c_##NAME(double);
#define __KILN_C_2(NAME) __attribute__((const)) double __kiln_c_##NAME(double, double);
__KILN_C_1(acos) __KILN_C_1(acosh) __KILN_C_1(asin) __KILN_C_1(asinh) __KILN_C_1(atan) __KILN_C_1(atanh)
__KILN_C_1(cbrt) __KILN_C_1(cos) __KILN_C_1(cosh) __KILN_C_1(erf) __KILN_C_1(erfc) __KILN_C_1(exp) __KILN_C_1(exp2)
__KILN_C_1(exp10) __KILN_C_1(expm1) __KILN_C_1(j0) __KILN_C_1(j1) __KILN_C_1(lgamma) __KILN_C_1(log)
__KILN_C_1(log10) __KILN_C_1(log1p) __KILN_C_1(log2) __KILN_C_1(logb) __KILN_C_1(sin) __KILN_C_1(sinh)
__KILN_C_1(tan) __KILN_C_1(tanh) __KILN_C_1(tgamma) __KILN_C_1(y0) __KILN_C_1(y1)
__KILN_C_2(atan2) __KILN_C_2(fmod) __KILN_C_2(hypot) __KILN_C_2(nextafter) __KILN_C_2(pow) __KILN_C_2(remainder)
__attribute__((const)) double __kiln_c_jn(int, double);
__attribute__((const)) double __kiln_c_yn(int, double);
__attribute__((const)) double __kiln_c_ldexp(double, int);
#undef __KILN_C_1
#undef __KILN_C_2
}
}  // namespace __kiln
