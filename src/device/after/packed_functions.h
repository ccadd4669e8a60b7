// Metal's functions of packed vectors: those of the vectors that they convert to.
//
// A vector's function deduces the type of its components, for which nothing is converted. So each has a form here that
// any packed vector among the arguments chooses. Every kernel that calls such a function would look at it; therefore
// only a kernel that names a packed type reads this file.
namespace __kiln {

template <class T>
constexpr bool is_packed = false;
template <class T, int N>
constexpr bool is_packed<metal::packed_vec<T, N>> = true;

template <class T>
__KILN_INLINE T& unpacked(T& argument) {
  return argument;
}
template <class T>
__KILN_INLINE const T& unpacked(const T& argument) {
  return argument;
}
template <class T, int N>
__KILN_INLINE metal::vec<T, N> unpacked(metal::packed_vec<T, N>& argument) {
  return argument;
}
template <class T, int N>
__KILN_INLINE metal::vec<T, N> unpacked(const metal::packed_vec<T, N>& argument) {
  return argument;
}

template <class... T>
using if_packed = typename enable_if<(is_packed<__remove_cv(__remove_reference_t(T))> || ...)>::type;

}  // namespace __kiln

#define __KILN_PACKED_BY(F, UNPACKED)                    \
  template <class... A, class = __kiln::if_packed<A...>> \
  __KILN_INLINE auto F(A&&... arguments) {               \
    return UNPACKED(__kiln::unpacked(arguments)...);     \
  }
#define __KILN_PACKED(F) __KILN_PACKED_BY(F, F)
#define __KILN_PACKED_EVERYWHERE(F) \
  __KILN_PACKED(F)                  \
  __KILN_PRECISE_AND_FAST(F)
// Of a function that precise:: has for itself, because another form of it is an approximation.
#define __KILN_PACKED_APPROXIMATED(F)    \
  __KILN_PACKED(F)                       \
  namespace fast {                       \
  using metal::F;                        \
  }                                      \
  namespace precise {                    \
  __KILN_PACKED_BY(F, metal::precise::F) \
  }

namespace metal {
__KILN_PACKED(absdiff)
__KILN_PACKED(addsat)
__KILN_PACKED(all)
__KILN_PACKED(any)
__KILN_PACKED(clz)
__KILN_PACKED(cross)
__KILN_PACKED(ctz)
__KILN_PACKED(distance_squared)
__KILN_PACKED(dot)
__KILN_PACKED(extract_bits)
__KILN_PACKED(faceforward)
__KILN_PACKED(hadd)
__KILN_PACKED(insert_bits)
__KILN_PACKED(isfinite)
__KILN_PACKED(isinf)
__KILN_PACKED(isnan)
__KILN_PACKED(isnormal)
__KILN_PACKED(isordered)
__KILN_PACKED(isunordered)
__KILN_PACKED(length_squared)
__KILN_PACKED(mad24)
__KILN_PACKED(madhi)
__KILN_PACKED(madsat)
__KILN_PACKED(mul24)
__KILN_PACKED(mulhi)
__KILN_PACKED(popcount)
__KILN_PACKED(reflect)
__KILN_PACKED(refract)
__KILN_PACKED(reverse_bits)
__KILN_PACKED(rhadd)
__KILN_PACKED(rotate)
__KILN_PACKED(select)
__KILN_PACKED(signbit)
__KILN_PACKED(subsat)
__KILN_PACKED_EVERYWHERE(abs)
__KILN_PACKED_EVERYWHERE(acos)
__KILN_PACKED_EVERYWHERE(acosh)
__KILN_PACKED_EVERYWHERE(asin)
__KILN_PACKED_EVERYWHERE(asinh)
__KILN_PACKED_EVERYWHERE(atan)
__KILN_PACKED_EVERYWHERE(atan2)
__KILN_PACKED_EVERYWHERE(atanh)
__KILN_PACKED_EVERYWHERE(ceil)
__KILN_PACKED_EVERYWHERE(clamp)
__KILN_PACKED_EVERYWHERE(copysign)
__KILN_PACKED_APPROXIMATED(cos)
__KILN_PACKED_EVERYWHERE(cosh)
__KILN_PACKED_EVERYWHERE(cospi)
__KILN_PACKED_APPROXIMATED(distance)
__KILN_PACKED_EVERYWHERE(divide)
__KILN_PACKED_APPROXIMATED(exp)
__KILN_PACKED_APPROXIMATED(exp10)
__KILN_PACKED_APPROXIMATED(exp2)
__KILN_PACKED_EVERYWHERE(fabs)
__KILN_PACKED_EVERYWHERE(fdim)
__KILN_PACKED_EVERYWHERE(floor)
__KILN_PACKED_EVERYWHERE(fma)
__KILN_PACKED_EVERYWHERE(fmax)
__KILN_PACKED_EVERYWHERE(fmax3)
__KILN_PACKED_EVERYWHERE(fmedian3)
__KILN_PACKED_EVERYWHERE(fmin)
__KILN_PACKED_EVERYWHERE(fmin3)
__KILN_PACKED_EVERYWHERE(fmod)
__KILN_PACKED_EVERYWHERE(fract)
__KILN_PACKED_EVERYWHERE(frexp)
__KILN_PACKED_EVERYWHERE(ilogb)
__KILN_PACKED_EVERYWHERE(ldexp)
__KILN_PACKED_APPROXIMATED(length)
__KILN_PACKED_APPROXIMATED(log)
__KILN_PACKED_APPROXIMATED(log10)
__KILN_PACKED_APPROXIMATED(log2)
__KILN_PACKED_EVERYWHERE(max)
__KILN_PACKED_EVERYWHERE(max3)
__KILN_PACKED_EVERYWHERE(median3)
__KILN_PACKED_EVERYWHERE(min)
__KILN_PACKED_EVERYWHERE(min3)
__KILN_PACKED_EVERYWHERE(mix)
__KILN_PACKED_EVERYWHERE(modf)
__KILN_PACKED_EVERYWHERE(nextafter)
__KILN_PACKED_APPROXIMATED(normalize)
__KILN_PACKED_APPROXIMATED(pow)
__KILN_PACKED_APPROXIMATED(powr)
__KILN_PACKED_EVERYWHERE(rint)
__KILN_PACKED_EVERYWHERE(round)
__KILN_PACKED_APPROXIMATED(rsqrt)
__KILN_PACKED_EVERYWHERE(saturate)
__KILN_PACKED_EVERYWHERE(sign)
__KILN_PACKED_APPROXIMATED(sin)
__KILN_PACKED_APPROXIMATED(sincos)
__KILN_PACKED_EVERYWHERE(sinh)
__KILN_PACKED_EVERYWHERE(sinpi)
__KILN_PACKED_EVERYWHERE(smoothstep)
__KILN_PACKED_APPROXIMATED(sqrt)
__KILN_PACKED_EVERYWHERE(step)
__KILN_PACKED_APPROXIMATED(tan)
__KILN_PACKED_APPROXIMATED(tanh)
__KILN_PACKED_EVERYWHERE(tanpi)
__KILN_PACKED_EVERYWHERE(trunc)

}  // namespace metal
