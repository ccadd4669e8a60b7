// Lists of Metal's scalar types, for functions that exist once for each.
#define __KILN_SIGNED_TYPES(M) M(char) M(short) M(int) M(long)
#define __KILN_UNSIGNED_TYPES(M) M(uchar) M(ushort) M(uint) M(ulong)
#define __KILN_INTEGER_TYPES(M) __KILN_SIGNED_TYPES(M) __KILN_UNSIGNED_TYPES(M)
#define __KILN_FLOAT_TYPES(M) M(float) M(half) M(bfloat)
#define __KILN_ARITHMETIC_TYPES(M) __KILN_INTEGER_TYPES(M) __KILN_FLOAT_TYPES(M)

// F of each component. Scalar overloads of F come first; these are its forms for vectors. Where there are several
// arguments, one of them is a vector and the others are converted to it.
#define __KILN_VECTOR_FORMS_1(F)                     \
  template <class T, int N>                          \
  __KILN_INLINE auto F(vec<T, N> a) {                \
    vec<decltype(F(a.x)), N> result;                 \
    result.x = F(a.x);                               \
    result.y = F(a.y);                               \
    if constexpr (N > 2) result.z = F(a.z);          \
    if constexpr (N > 3) result.w = F(a.w);          \
    return result;                                   \
  }

#define __KILN_VECTOR_FORMS_2(F)                                               \
  template <class T, int N>                                                    \
  __KILN_INLINE auto F(vec<T, N> a, __kiln::converted<vec<T, N>> b) {          \
    vec<decltype(F(a.x, b.x)), N> result;                                      \
    result.x = F(a.x, b.x);                                                    \
    result.y = F(a.y, b.y);                                                    \
    if constexpr (N > 2) result.z = F(a.z, b.z);                               \
    if constexpr (N > 3) result.w = F(a.w, b.w);                               \
    return result;                                                             \
  }                                                                            \
  template <class T, int N>                                                    \
  __KILN_INLINE auto F(__kiln::converted<T> a, vec<T, N> b) {                  \
    return F(vec<T, N>(a), b);                                                 \
  }

#define __KILN_VECTOR_FORMS_3(F)                                                                                  \
  template <class T, int N>                                                                                       \
  __KILN_INLINE vec<T, N> F(vec<T, N> a, __kiln::converted<vec<T, N>> b, __kiln::converted<vec<T, N>> c) {        \
    vec<T, N> result;                                                                                             \
    result.x = F(a.x, b.x, c.x);                                                                                  \
    result.y = F(a.y, b.y, c.y);                                                                                  \
    if constexpr (N > 2) result.z = F(a.z, b.z, c.z);                                                             \
    if constexpr (N > 3) result.w = F(a.w, b.w, c.w);                                                             \
    return result;                                                                                                \
  }                                                                                                               \
  template <class T, int N>                                                                                       \
  __KILN_INLINE vec<T, N> F(__kiln::converted<T> a, vec<T, N> b, __kiln::converted<vec<T, N>> c) {                \
    return F(vec<T, N>(a), b, c);                                                                                 \
  }                                                                                                               \
  template <class T, int N>                                                                                       \
  __KILN_INLINE vec<T, N> F(__kiln::converted<T> a, __kiln::converted<T> b, vec<T, N> c) {                        \
    return F(vec<T, N>(a), vec<T, N>(b), c);                                                                      \
  }

// F in metal::precise and metal::fast.
#define __KILN_PRECISE_AND_FAST(F) \
  namespace precise {              \
  using metal::F;                  \
  }                                \
  namespace fast {                 \
  using metal::F;                  \
  }
