// Conversions that say how they round, and the bits of numbers.
namespace __kiln {
template <char Rounding, class T>
__KILN_DEVICE T whole(T x) {
  if constexpr (Rounding == 'n') return rint(x);
  if constexpr (Rounding == 'z') return trunc(x);
  if constexpr (Rounding == 'd' || Rounding == 'm') return floor(x);
  if constexpr (Rounding == 'u' || Rounding == 'p') return ceil(x);
}
// How much larger an integer is than its nearest float or double: its sign.
template <class T, class I>
__KILN_DEVICE double side_of(I x, T nearest) {
  // Beyond the integers' end the nearest is too large.
  T end = T(I(1) << (8 * sizeof(I) - 2)) * (I(-1) < I(0) ? 2 : 4);
  if (nearest >= end) return -1;
  I back = I(nearest);
  return back < x ? 1 : back > x ? -1 : 0;
}
template <char Rounding, class T, class I>
__KILN_DEVICE T from_integer(I x) {
  T nearest = T(x);
  if constexpr (Rounding == 'n') return nearest;
  return rounded<Rounding>(nearest, side_of(x, nearest));
}
}  // namespace __kiln

#define __KILN_FLOAT_CONVERSION(WORD, TYPE, R, ROUNDING)                                                      \
  __KILN_DEVICE TYPE __float2##WORD##_##R(float x) { return static_cast<TYPE>(__kiln::whole<ROUNDING>(x)); }   \
  __KILN_DEVICE TYPE __double2##WORD##_##R(double x) { return static_cast<TYPE>(__kiln::whole<ROUNDING>(x)); } \
  __KILN_DEVICE float __##WORD##2float_##R(TYPE x) { return __kiln::from_integer<ROUNDING, float>(x); }       \
  __KILN_DEVICE double __##WORD##2double_##R(TYPE x) { return __kiln::from_integer<ROUNDING, double>(x); }
#define __KILN_FLOAT_CONVERSIONS(WORD, TYPE)      \
  __KILN_FLOAT_CONVERSION(WORD, TYPE, rn, 'n')    \
  __KILN_FLOAT_CONVERSION(WORD, TYPE, rz, 'z')    \
  __KILN_FLOAT_CONVERSION(WORD, TYPE, rd, 'd')    \
  __KILN_FLOAT_CONVERSION(WORD, TYPE, ru, 'u')
__KILN_FLOAT_CONVERSIONS(int, int)
__KILN_FLOAT_CONVERSIONS(uint, unsigned int)
__KILN_FLOAT_CONVERSIONS(ll, long long)
__KILN_FLOAT_CONVERSIONS(ull, unsigned long long)
__KILN_DEVICE float __double2float_rn(double x) { return float(x); }
__KILN_DEVICE float __double2float_rz(double x) { return __kiln::narrowed<'z'>(x); }
__KILN_DEVICE float __double2float_rd(double x) { return __kiln::narrowed<'d'>(x); }
__KILN_DEVICE float __double2float_ru(double x) { return __kiln::narrowed<'u'>(x); }

__KILN_DEVICE constexpr int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__KILN_DEVICE constexpr unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
__KILN_DEVICE constexpr float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__KILN_DEVICE constexpr float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
__KILN_DEVICE constexpr long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
__KILN_DEVICE constexpr double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
__KILN_DEVICE constexpr int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
__KILN_DEVICE constexpr int __double2loint(double x) { return int(__double_as_longlong(x)); }
__KILN_DEVICE constexpr double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(double, (static_cast<unsigned long long>(unsigned(high)) << 32) | unsigned(low));
}
