// The types that MLX's header adds to Metal's.
typedef half float16_t;
typedef bfloat bfloat16_t;

// A complex number. Arithmetic with real numbers converts them.
template <typename T>
struct complex_t {
  typedef T value_type;
  T real;
  T imag;

  constexpr complex_t() : real(0), imag(0) {}
  constexpr complex_t(T re, T im) : real(re), imag(im) {}
  template <typename U, typename = typename __kiln::enable_if<__is_arithmetic(U)>::type>
  constexpr complex_t(U re) : real(static_cast<T>(re)), imag(0) {}
  template <typename U, typename = typename __kiln::enable_if<!__kiln::same<U, T>>::type>
  constexpr complex_t(complex_t<U> z) : real(static_cast<T>(z.real)), imag(static_cast<T>(z.imag)) {}
  // A template, as is the conversion to vec<T, 2>: asking whether something converts would define that type here.
  template <typename U, typename = typename __kiln::enable_if<__kiln::same<U, T>>::type>
  constexpr complex_t(vec<U, 2> v) : real(v.x), imag(v.y) {}
  // A number takes the real part, a vec<T, 2> both.
  template <typename U, typename = typename __kiln::enable_if<__is_arithmetic(U) || __kiln::same<U, vec<T, 2>>>::type>
  constexpr operator U() const {
    if constexpr (__is_arithmetic(U))
      return static_cast<U>(real);
    else
      return U(real, imag);
  }

  friend constexpr complex_t operator+(complex_t a) { return a; }
  friend constexpr complex_t operator-(complex_t a) { return {-a.real, -a.imag}; }
  friend constexpr complex_t operator+(complex_t a, complex_t b) { return {a.real + b.real, a.imag + b.imag}; }
  friend constexpr complex_t operator-(complex_t a, complex_t b) { return {a.real - b.real, a.imag - b.imag}; }
  friend constexpr complex_t operator*(complex_t a, complex_t b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
  // Divides by the larger part of the divisor first, so that its square neither overflows nor vanishes (R. L. Smith,
  // Algorithm 116, 1962).
  friend constexpr complex_t operator/(complex_t a, complex_t b) {
    const bool real_is_larger = (b.real < 0 ? -b.real : b.real) >= (b.imag < 0 ? -b.imag : b.imag);
    const T ratio = real_is_larger ? b.imag / b.real : b.real / b.imag;
    const T divisor = real_is_larger ? b.real + b.imag * ratio : b.imag + b.real * ratio;
    if (real_is_larger) return {(a.real + a.imag * ratio) / divisor, (a.imag - a.real * ratio) / divisor};
    return {(a.real * ratio + a.imag) / divisor, (a.imag * ratio - a.real) / divisor};
  }
  // With a number on one side: without these, converting it to a complex number and converting that to a number are
  // equally good.
#define __KILN_WITH_NUMBER(OP)                                                                    \
  template <typename U, typename = typename __kiln::enable_if<__is_arithmetic(U)>::type>          \
  friend constexpr complex_t operator OP(complex_t a, U b) {                                      \
    return a OP complex_t(b);                                                                     \
  }                                                                                               \
  template <typename U, typename = typename __kiln::enable_if<__is_arithmetic(U)>::type>          \
  friend constexpr complex_t operator OP(U a, complex_t b) {                                      \
    return complex_t(a) OP b;                                                                     \
  }
  __KILN_WITH_NUMBER(+)
  __KILN_WITH_NUMBER(-)
  __KILN_WITH_NUMBER(*)
  __KILN_WITH_NUMBER(/)
  friend constexpr complex_t& operator+=(complex_t& a, complex_t b) { return a = a + b; }
  friend constexpr complex_t& operator-=(complex_t& a, complex_t b) { return a = a - b; }
  friend constexpr complex_t& operator*=(complex_t& a, complex_t b) { return a = a * b; }
  friend constexpr complex_t& operator/=(complex_t& a, complex_t b) { return a = a / b; }

  // Ordered by the real part, then by the imaginary one.
  friend constexpr bool operator==(complex_t a, complex_t b) { return a.real == b.real && a.imag == b.imag; }
  friend constexpr bool operator!=(complex_t a, complex_t b) { return !(a == b); }
  friend constexpr bool operator<(complex_t a, complex_t b) {
    return a.real < b.real || (a.real == b.real && a.imag < b.imag);
  }
  friend constexpr bool operator>(complex_t a, complex_t b) { return b < a; }
  friend constexpr bool operator<=(complex_t a, complex_t b) { return a < b || a == b; }
  friend constexpr bool operator>=(complex_t a, complex_t b) { return b < a || a == b; }
};

typedef complex_t<half> complex32_t;
typedef complex_t<float> complex64_t;
