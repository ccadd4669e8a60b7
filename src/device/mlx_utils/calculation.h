// Small helpers of MLX's header.
template <typename T, typename U>
inline constexpr T ceildiv(T n, U m) {
  return (n + m - 1) / m;
}

__KILN_EXACT_BEGIN
namespace __kiln {

// log(1 + z): log |1 + z| and the angle. Where |1 + z| is near 1, its logarithm comes from
// |1 + z|^2 - 1 = 2x + x^2 + y^2 without rounding errors of large terms.
inline complex64_t log1p(complex64_t z) {
  float u = 1.0f + z.real;
  float norm = u * u + z.imag * z.imag;
  float real;
  if (norm > 0.5f && norm < 0x1p50f) {
    float_pair x = exact_product(z.real, z.real), y = exact_product(z.imag, z.imag);
    float_pair a = exact_sum(z.real + z.real, x.high), b = exact_sum(a.high, y.high);
    // Near the circle |1 + z| = 1 the large terms cancel down to the size of what their roundings left, so that the
    // sum of those needs its roundings too.
    float_pair c = exact_sum(x.low, y.low), d = exact_sum(a.low, b.low), e = exact_sum(c.high, d.high);
    float_pair sum = exact_sum(b.high, e.high);
    real = 0.5f * log1p_pair(sum.high, sum.low + (e.low + (c.low + d.low)), 0);
  } else {
    // A quarter of a large 1 + z, whose magnitude may not be a float.
    bool large = !(norm < 1.0f);
    float factor = large ? 0.25f : 1.0f;
    real = metal::log(hypot(u * factor, z.imag * factor)) + (large ? 0x1.62e43p+0f : 0.0f);
  }
  return {real, metal::atan2(z.imag, u)};
}

}  // namespace __kiln
__KILN_EXACT_END

// Elements that a thread works on, so that it reads 8 bytes.
template <typename U>
struct WorkPerThread {
  static_assert(sizeof(U) <= 8, "the type is larger than 8 bytes");
  static constexpr int n = 8 / sizeof(U);
};

// max and min are the largest and smallest values, infinities counted; finite_max and finite_min are the finite ones.
template <typename U>
struct Limits {
  static constexpr U max = metal::numeric_limits<U>::max();
  static constexpr U min = metal::numeric_limits<U>::lowest();
  static constexpr U finite_max = max;
  static constexpr U finite_min = min;
};
#define __KILN_FLOAT_LIMITS_OF(T)                                        \
  template <>                                                            \
  struct Limits<T> {                                                     \
    static constexpr T max = metal::numeric_limits<T>::infinity();       \
    static constexpr T min = T(-metal::numeric_limits<T>::infinity());   \
    static constexpr T finite_max = metal::numeric_limits<T>::max();     \
    static constexpr T finite_min = metal::numeric_limits<T>::lowest();  \
  };
__KILN_FLOAT_TYPES(__KILN_FLOAT_LIMITS_OF)
template <typename T>
struct Limits<complex_t<T>> {
  static constexpr complex_t<T> max = complex_t<T>(Limits<T>::max, Limits<T>::max);
  static constexpr complex_t<T> min = complex_t<T>(Limits<T>::min, Limits<T>::min);
};

template <bool condition, typename T, typename U>
struct ConditionalType {
  typedef U type;
};
template <typename T, typename U>
struct ConditionalType<true, T, U> {
  typedef T type;
};

// To bool: whether any bit but the sign is set, which holds for NaNs and subnormals on every target.
template <typename U, typename T>
inline U cast_to(T value) {
  return static_cast<U>(value);
}
template <>
inline bool cast_to<bool, float>(float value) {
  return (__builtin_bit_cast(uint, value) & 0x7fffffff) != 0;
}
template <>
inline bool cast_to<bool, bfloat16_t>(bfloat16_t value) {
  return (__builtin_bit_cast(ushort, value) & 0x7fff) != 0;
}
template <>
inline bool cast_to<bool, complex64_t>(complex64_t value) {
  return cast_to<bool, float>(value.real) || cast_to<bool, float>(value.imag);
}

inline float log1p(float x) { return __kiln::log1p(x); }
inline half log1p(half x) { return half(__kiln::log1p(float(x))); }
inline bfloat log1p(bfloat x) { return bfloat(__kiln::log1p(float(x))); }
__KILN_VECTOR_FORMS_1(log1p)
inline complex64_t log1p(complex64_t z) { return __kiln::log1p(z); }

#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;

// Shuffles of complex numbers: part after part.
#define __KILN_COMPLEX_SHUFFLE(NAME)                                                                       \
  __KILN_INLINE complex64_t NAME(complex64_t data, ushort n, __KILN_CALLERS_LINE) {                        \
    float real = metal::NAME(data.real, n, line), imag = metal::NAME(data.imag, n, line);                  \
    return {real, imag};                                                                                   \
  }
__KILN_COMPLEX_SHUFFLE(simd_shuffle)
__KILN_COMPLEX_SHUFFLE(simd_shuffle_up)
__KILN_COMPLEX_SHUFFLE(simd_shuffle_down)
__KILN_COMPLEX_SHUFFLE(simd_shuffle_xor)
__KILN_COMPLEX_SHUFFLE(simd_broadcast)
__KILN_INLINE complex64_t simd_shuffle_and_fill_up(complex64_t data, complex64_t filling, ushort n, ushort modulo = 0,
                                                   __KILN_CALLERS_LINE) {
  float real = metal::simd_shuffle_and_fill_up(data.real, filling.real, n, modulo, line);
  float imag = metal::simd_shuffle_and_fill_up(data.imag, filling.imag, n, modulo, line);
  return {real, imag};
}
