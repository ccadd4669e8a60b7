// Packed vectors: components one behind the other in memory, aligned as one of them is.
//
// They are for memory. Whatever is computed is computed of vectors, to which they convert: so operators, friends that
// only an operand of such a type finds, take vectors. What Metal's functions need, to take packed vectors too, is in
// after/packed_functions.h.
namespace metal {

template <class T, int N>
struct packed_vec : __kiln::members::swizzles<packed_vec<T, N>, T, N> {
  T __v[N];

  packed_vec() = default;
  __KILN_INLINE packed_vec(T s) : packed_vec(vec<T, N>(s)) {}
  __KILN_INLINE packed_vec(vec<T, N> v) {
    x = v.x;
    y = v.y;
    if constexpr (N > 2) z = v.z;
    if constexpr (N > 3) w = v.w;
  }
  template <class U>
  __KILN_INLINE explicit packed_vec(vec<U, N> v) : packed_vec(vec<T, N>(v)) {}
  template <class U>
  __KILN_INLINE explicit packed_vec(packed_vec<U, N> v) : packed_vec(vec<T, N>(v)) {}
  template <class First, class Second, class... More>
  __KILN_INLINE packed_vec(First first, Second second, More... more) : packed_vec(vec<T, N>(first, second, more...)) {}

  __KILN_INLINE operator vec<T, N>() const {
    if constexpr (N == 2) return {__v[0], __v[1]};
    else if constexpr (N == 3) return {__v[0], __v[1], __v[2]};
    else return {__v[0], __v[1], __v[2], __v[3]};
  }
  template <class U>
  __KILN_INLINE explicit operator vec<U, N>() const {
    return vec<U, N>(static_cast<vec<T, N>>(*this));
  }

  // A temporary cannot be written: that would be lost.
  packed_vec& operator=(const packed_vec&) & = default;
  __KILN_INLINE T& operator[](size_t i) & { return __v[i]; }
  __KILN_INLINE const T& operator[](size_t i) const& { return __v[i]; }
  __KILN_INLINE T operator[](size_t i) && { return __v[i]; }

  __KILN_COMPONENT(x, 0)
  __KILN_COMPONENT(y, 1)
  __KILN_COMPONENT(z, 2)
  __KILN_COMPONENT(w, 3)

#define __KILN_PACKED_OPERATOR(OP) \
  friend __KILN_INLINE auto operator OP(vec<T, N> a, vec<T, N> b) { return a OP b; }
#define __KILN_PACKED_ASSIGNMENT(OP)  \
  __KILN_PACKED_OPERATOR(OP)          \
  friend __KILN_INLINE packed_vec& operator OP##=(packed_vec& a, vec<T, N> b) { return a = a OP b; }
  __KILN_PACKED_ASSIGNMENT(+)
  __KILN_PACKED_ASSIGNMENT(-)
  __KILN_PACKED_ASSIGNMENT(*)
  __KILN_PACKED_ASSIGNMENT(/)
  __KILN_PACKED_ASSIGNMENT(%)
  __KILN_PACKED_ASSIGNMENT(&)
  __KILN_PACKED_ASSIGNMENT(|)
  __KILN_PACKED_ASSIGNMENT(^)
  __KILN_PACKED_ASSIGNMENT(<<)
  __KILN_PACKED_ASSIGNMENT(>>)
  __KILN_PACKED_OPERATOR(==)
  __KILN_PACKED_OPERATOR(!=)
  __KILN_PACKED_OPERATOR(<)
  __KILN_PACKED_OPERATOR(>)
  __KILN_PACKED_OPERATOR(<=)
  __KILN_PACKED_OPERATOR(>=)
  __KILN_PACKED_OPERATOR(&&)
  __KILN_PACKED_OPERATOR(||)

  friend __KILN_INLINE auto operator!(packed_vec a) { return !vec<T, N>(a); }
  friend __KILN_INLINE auto operator~(packed_vec a) { return ~vec<T, N>(a); }
  friend __KILN_INLINE vec<T, N> operator+(packed_vec a) { return a; }
  friend __KILN_INLINE vec<T, N> operator-(packed_vec a) { return -vec<T, N>(a); }
  friend __KILN_INLINE packed_vec& operator++(packed_vec& a) { return a += T(1); }
  friend __KILN_INLINE packed_vec& operator--(packed_vec& a) { return a -= T(1); }
  friend __KILN_INLINE vec<T, N> operator++(packed_vec& a, int) {
    vec<T, N> before = a;
    ++a;
    return before;
  }
  friend __KILN_INLINE vec<T, N> operator--(packed_vec& a, int) {
    vec<T, N> before = a;
    --a;
    return before;
  }
};

#define __KILN_PACKED_NAMES(T)            \
  typedef packed_vec<T, 2> packed_##T##2; \
  typedef packed_vec<T, 3> packed_##T##3; \
  typedef packed_vec<T, 4> packed_##T##4;
__KILN_PACKED_NAMES(bool)
__KILN_ARITHMETIC_TYPES(__KILN_PACKED_NAMES)

}  // namespace metal
