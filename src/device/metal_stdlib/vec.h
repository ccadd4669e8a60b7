// Vectors of two to four components.
//
// A class around Clang's vector type rather than that type itself, because Clang's has other rules than Metal's: a
// conversion between two of one size reinterprets the bits, a comparison gives integers of 0 and -1, and there are no
// constructors with several arguments. Components are properties (members whose reads and writes are function calls),
// so are swizzles; the compiler declares those swizzles, and those of r, g, b and a, that the kernel's text names, as
// members of __kiln::members::swizzles. That class is defined only then, so nothing before may need a vector's
// definition: functions of vectors are templates.
//
// A component is read and written on its own, so that threads may write components of one vector in memory.
namespace metal {
template <class T, int N>
struct vec;
}

namespace __kiln {

// bool vectors hold bytes of 0 and 1; Clang's own pack bits.
template <class T>
struct component {
  typedef T type;
};
template <>
struct component<bool> {
  typedef uchar type;
};

template <class T, int N>
struct vector_of {
  typedef typename component<T>::type type __attribute__((ext_vector_type(N)));
};
template <class T, int N>
using vector = typename vector_of<T, N>::type;

// In a namespace of its own: a class is looked up in the namespaces of its bases too, and a call of a vector must not find
// the functions of __kiln.
namespace members {
template <class Vector, class T, int N>
struct swizzles;
}

template <class To, int N, class From>
__KILN_INLINE vector<To, N> convert(From v) {
  if constexpr (same<To, bool>)
    return __builtin_convertvector(-(v != From(0)), vector<To, N>);
  else if constexpr ((same<To, bfloat> && same<From, vector<half, N>>) ||
                     (same<To, half> && same<From, vector<bfloat, N>>))
    // Clang knows no conversion between these two; by way of float it is rounded once.
    return __builtin_convertvector(__builtin_convertvector(v, vector<float, N>), vector<To, N>);
  else
    return __builtin_convertvector(v, vector<To, N>);
}

// A comparison's 0 and -1 as the 0 and 1 of a bool vector.
template <int N, class Mask>
__KILN_INLINE metal::vec<bool, N> to_bool(Mask mask) {
  metal::vec<bool, N> result;
  result.__v = __builtin_convertvector(-mask, vector<bool, N>);
  return result;
}

}  // namespace __kiln

#define __KILN_COMPONENT(NAME, INDEX)                                     \
  __KILN_INLINE T __get_##NAME() const {                                  \
    static_assert(INDEX < N, "the vector has no such component");         \
    return reinterpret_cast<const T*>(&__v)[INDEX];                       \
  }                                                                       \
  __KILN_INLINE T __put_##NAME(T value) {                                 \
    static_assert(INDEX < N, "the vector has no such component");         \
    return reinterpret_cast<T*>(&__v)[INDEX] = value;                     \
  }                                                                       \
  __declspec(property(get = __get_##NAME, put = __put_##NAME)) T NAME;

// A member of a vector's swizzles by which swizzles of swizzles are written, and their elements
// (compiler/clang/patches/vector_writes.cpp). Components says which components these are: two bits for each from the
// lowest, then a bit that is set. Value is the type that they have together.
#define __KILN_NESTED_SWIZZLES                                                                       \
  template <class Value, size_t Components>                                                          \
  __KILN_INLINE Value __get_components(Value (*)[Components]) const {                                \
    auto& v = static_cast<const Vector&>(*this);                                                     \
    if constexpr (Components < 8) return v[Components & 3];                                          \
    else if constexpr (Components < 32) return {v[Components & 3], v[Components >> 2 & 3]};          \
    else if constexpr (Components < 128)                                                             \
      return {v[Components & 3], v[Components >> 2 & 3], v[Components >> 4 & 3]};                    \
    else                                                                                             \
      return {v[Components & 3], v[Components >> 2 & 3], v[Components >> 4 & 3], v[Components >> 6 & 3]}; \
  }                                                                                                  \
  template <class Value, size_t Components>                                                          \
  __KILN_INLINE Value __put_components(Value (*)[Components], __kiln::converted<Value> value) {      \
    auto& v = static_cast<Vector&>(*this);                                                           \
    if constexpr (Components < 8) v[Components & 3] = value;                                         \
    else {                                                                                           \
      v[Components & 3] = value.x;                                                                   \
      v[Components >> 2 & 3] = value.y;                                                              \
      if constexpr (Components >= 32) v[Components >> 4 & 3] = value.z;                              \
      if constexpr (Components >= 128) v[Components >> 6 & 3] = value.w;                             \
    }                                                                                                \
    return value;                                                                                    \
  }                                                                                                  \
  template <class Value, size_t Components>                                                          \
  __KILN_INLINE T __get_components(Value (*components)[Components], size_t i) const {                \
    return __get_components(components)[i];                                                          \
  }                                                                                                  \
  template <class Value, size_t Components>                                                          \
  __KILN_INLINE T __put_components(Value (*)[Components], size_t i, T value) {                       \
    return static_cast<Vector&>(*this)[Components >> 2 * i & 3] = value;                             \
  }                                                                                                  \
  __declspec(property(get = __get_components, put = __put_components)) T __components[];

// Initialises the vector, whose number of components the constructor's arguments must make up.
#define __KILN_COMPONENTS(COUNT, ...) __v{__VA_ARGS__} { static_assert(N == COUNT, "the arguments do not make up the vector's components"); }

namespace metal {

template <class T, int N>
struct vec : __kiln::members::swizzles<vec<T, N>, T, N> {
  __kiln::vector<T, N> __v;

  static __KILN_INLINE __kiln::vector<T, N> __zero() { return __kiln::vector<T, N>(0); }

  __KILN_INLINE constexpr vec() = default;
  // As the component's own type: a bool that becomes a vector would be -1 in each component, as OpenCL has it.
  __KILN_INLINE constexpr vec(T s) : __v(static_cast<typename __kiln::component<T>::type>(s)) {}
  template <class U>
  __KILN_INLINE explicit vec(vec<U, N> other) : __v(__kiln::convert<T, N>(other.__v)) {}
  __KILN_INLINE constexpr vec(T a, T b) : __KILN_COMPONENTS(2, a, b)
  __KILN_INLINE constexpr vec(T a, T b, T c) : __KILN_COMPONENTS(3, a, b, c)
  __KILN_INLINE constexpr vec(T a, T b, T c, T d) : __KILN_COMPONENTS(4, a, b, c, d)
  __KILN_INLINE vec(vec<T, 2> a, T b) : __KILN_COMPONENTS(3, a.x, a.y, b)
  __KILN_INLINE vec(T a, vec<T, 2> b) : __KILN_COMPONENTS(3, a, b.x, b.y)
  __KILN_INLINE vec(vec<T, 2> a, vec<T, 2> b) : __KILN_COMPONENTS(4, a.x, a.y, b.x, b.y)
  __KILN_INLINE vec(vec<T, 2> a, T b, T c) : __KILN_COMPONENTS(4, a.x, a.y, b, c)
  __KILN_INLINE vec(T a, vec<T, 2> b, T c) : __KILN_COMPONENTS(4, a, b.x, b.y, c)
  __KILN_INLINE vec(T a, T b, vec<T, 2> c) : __KILN_COMPONENTS(4, a, b, c.x, c.y)
  __KILN_INLINE vec(vec<T, 3> a, T b) : __KILN_COMPONENTS(4, a.x, a.y, a.z, b)
  __KILN_INLINE vec(T a, vec<T, 3> b) : __KILN_COMPONENTS(4, a, b.x, b.y, b.z)

  // A temporary cannot be written: that would be lost.
  vec& operator=(const vec&) & = default;
  __KILN_INLINE T& operator[](size_t i) & { return reinterpret_cast<T*>(&__v)[i]; }
  __KILN_INLINE const T& operator[](size_t i) const& { return reinterpret_cast<const T*>(&__v)[i]; }
  __KILN_INLINE T operator[](size_t i) && { return reinterpret_cast<const T*>(&__v)[i]; }

  __KILN_COMPONENT(x, 0)
  __KILN_COMPONENT(y, 1)
  __KILN_COMPONENT(z, 2)
  __KILN_COMPONENT(w, 3)
};

// Operators are templates of their own rather than friends, which each vector type that a kernel uses would declare
// anew. One operand is a vector; the other is converted to it. WHICH<T> is T where the operator is defined.
#define __KILN_BINARY(OP, WHICH)                                                                              \
  template <class T, int N>                                                                                   \
  __KILN_INLINE constexpr vec<WHICH<T>, N> operator OP(vec<T, N> a, vec<T, N> b) {                            \
    a.__v = a.__v OP b.__v;                                                                                   \
    return a;                                                                                                 \
  }                                                                                                           \
  template <class T, int N>                                                                                   \
  __KILN_INLINE constexpr vec<WHICH<T>, N> operator OP(vec<T, N> a, __kiln::converted<T> b) {                 \
    return a OP vec<T, N>(b);                                                                                 \
  }                                                                                                           \
  template <class T, int N>                                                                                   \
  __KILN_INLINE constexpr vec<WHICH<T>, N> operator OP(__kiln::converted<T> a, vec<T, N> b) {                 \
    return vec<T, N>(a) OP b;                                                                                 \
  }                                                                                                           \
  template <class T, int N>                                                                                   \
  __KILN_INLINE constexpr vec<WHICH<T>, N>& operator OP##=(vec<T, N>& a, __kiln::converted<vec<T, N>> b) {    \
    return a = a OP b;                                                                                        \
  }
__KILN_BINARY(+, __kiln::converted)
__KILN_BINARY(-, __kiln::converted)
__KILN_BINARY(*, __kiln::converted)
__KILN_BINARY(/, __kiln::converted)
__KILN_BINARY(%, __kiln::integral)
__KILN_BINARY(&, __kiln::integral)
__KILN_BINARY(|, __kiln::integral)
__KILN_BINARY(^, __kiln::integral)
__KILN_BINARY(<<, __kiln::integral)
__KILN_BINARY(>>, __kiln::integral)

#define __KILN_TO_BOOL(OP, MASK)                                                       \
  template <class T, int N>                                                            \
  __KILN_INLINE vec<bool, N> operator OP(vec<T, N> a, vec<T, N> b) {                   \
    return __kiln::to_bool<N>(MASK);                                                   \
  }                                                                                    \
  template <class T, int N>                                                            \
  __KILN_INLINE vec<bool, N> operator OP(vec<T, N> a, __kiln::converted<T> b) {        \
    return a OP vec<T, N>(b);                                                          \
  }                                                                                    \
  template <class T, int N>                                                            \
  __KILN_INLINE vec<bool, N> operator OP(__kiln::converted<T> a, vec<T, N> b) {        \
    return vec<T, N>(a) OP b;                                                          \
  }
__KILN_TO_BOOL(==, a.__v == b.__v)
__KILN_TO_BOOL(!=, a.__v != b.__v)
__KILN_TO_BOOL(<, a.__v < b.__v)
__KILN_TO_BOOL(>, a.__v > b.__v)
__KILN_TO_BOOL(<=, a.__v <= b.__v)
__KILN_TO_BOOL(>=, a.__v >= b.__v)
__KILN_TO_BOOL(&&, (a.__v != a.__zero()) & (b.__v != b.__zero()))
__KILN_TO_BOOL(||, (a.__v != a.__zero()) | (b.__v != b.__zero()))

template <class T, int N>
__KILN_INLINE vec<bool, N> operator!(vec<T, N> a) {
  return __kiln::to_bool<N>(a.__v == a.__zero());
}
template <class T, int N>
__KILN_INLINE constexpr vec<T, N> operator+(vec<T, N> a) {
  return a;
}
template <class T, int N>
__KILN_INLINE constexpr vec<T, N> operator-(vec<T, N> a) {
  a.__v = -a.__v;
  return a;
}
template <class T, int N>
__KILN_INLINE constexpr vec<__kiln::integral<T>, N> operator~(vec<T, N> a) {
  static_assert(!__kiln::same<T, bool>, "operator ~ has no meaning for bool vectors");
  a.__v = ~a.__v;
  return a;
}
template <class T, int N>
__KILN_INLINE constexpr vec<T, N>& operator++(vec<T, N>& a) {
  return a += T(1);
}
template <class T, int N>
__KILN_INLINE constexpr vec<T, N>& operator--(vec<T, N>& a) {
  return a -= T(1);
}
template <class T, int N>
__KILN_INLINE constexpr vec<T, N> operator++(vec<T, N>& a, int) {
  vec<T, N> before = a;
  ++a;
  return before;
}
template <class T, int N>
__KILN_INLINE constexpr vec<T, N> operator--(vec<T, N>& a, int) {
  vec<T, N> before = a;
  --a;
  return before;
}

#define __KILN_VECTOR_NAMES(T) \
  typedef vec<T, 2> T##2;      \
  typedef vec<T, 3> T##3;      \
  typedef vec<T, 4> T##4;
__KILN_VECTOR_NAMES(bool)
__KILN_VECTOR_NAMES(char)
__KILN_VECTOR_NAMES(uchar)
__KILN_VECTOR_NAMES(short)
__KILN_VECTOR_NAMES(ushort)
__KILN_VECTOR_NAMES(int)
__KILN_VECTOR_NAMES(uint)
__KILN_VECTOR_NAMES(long)
__KILN_VECTOR_NAMES(ulong)
__KILN_VECTOR_NAMES(half)
__KILN_VECTOR_NAMES(bfloat)
__KILN_VECTOR_NAMES(float)

}  // namespace metal

// CUDA bodies do not see Metal's names.
#ifndef __KILN_CPU_CUDA
using namespace metal;
#endif
