// The geometric functions. They are sums of products from the first component to the last, in float for half and bfloat
// too, and rounded once. Lengths do not overflow or vanish where a square does: components are scaled first.
__KILN_EXACT_BEGIN
namespace __kiln {

template <class T>
using floating = typename enable_if<__is_floating_point(T), T>::type;

template <class T, int N>
__KILN_INLINE float dot(metal::vec<T, N> a, metal::vec<T, N> b) {
  if (__kiln_approximates()) {
    float sum = fma(float(a.y), float(b.y), float(a.x) * float(b.x));
    if constexpr (N > 2) sum = fma(float(a.z), float(b.z), sum);
    if constexpr (N > 3) sum = fma(float(a.w), float(b.w), sum);
    return sum;
  }
  float sum = float(a.x) * float(b.x) + float(a.y) * float(b.y);
  if constexpr (N > 2) sum += float(a.z) * float(b.z);
  if constexpr (N > 3) sum += float(a.w) * float(b.w);
  return sum;
}

// A power of two whose product with x has a square well inside the floats, and its inverse.
struct square_scale {
  float factor, inverse;
};
__KILN_INLINE square_scale scale_for_square(float x) {
  return {x > 0x1p60f ? 0x1p-70f : x < 0x1p-40f ? 0x1p100f : 1.0f,
          x > 0x1p60f ? 0x1p70f : x < 0x1p-40f ? 0x1p-100f : 1.0f};
}

// sqrt(x^2 + y^2); infinite where one of them is, even if the other is a NaN. Largest error: 0.986 ULP.
__KILN_INLINE float hypot(float x, float y) {
  float a = metal::fmax(magnitude(x), magnitude(y)), b = metal::fmin(magnitude(x), magnitude(y));
  square_scale s = scale_for_square(a);
  float u = a * s.factor, v = b * s.factor;
  float result = __kiln::sqrt(fma(u, u, v * v)) * s.inverse;
  return a == infinity ? a : x != x || y != y ? not_a_number : result;
}

template <class T, int N>
__KILN_INLINE float largest_component(metal::vec<T, N> v) {
  float largest = metal::fmax(magnitude(v.x), magnitude(v.y));
  if constexpr (N > 2) largest = metal::fmax(largest, magnitude(v.z));
  if constexpr (N > 3) largest = metal::fmax(largest, magnitude(v.w));
  return largest;
}

template <int N>
__KILN_INLINE float length(metal::vec<float, N> v) {
  square_scale s = scale_for_square(largest_component(v));
  v *= s.factor;
  return __kiln::sqrt(__kiln::dot(v, v)) * s.inverse;
}

template <int N>
__KILN_INLINE metal::vec<float, N> normalize(metal::vec<float, N> v) {
  v *= scale_for_square(largest_component(v)).factor;
  return v * __kiln::rounded_rsqrt(__kiln::dot(v, v));
}

// Where functions are approximated (math/approximate.h), nothing is scaled: squares are those of the floats.
template <int N>
__KILN_INLINE float length_or_approximation(metal::vec<float, N> v) {
  if (__kiln_approximates()) return approximate::sqrt(dot(v, v));
  return length(v);
}
template <int N>
__KILN_INLINE metal::vec<float, N> normalize_or_approximation(metal::vec<float, N> v) {
  if (__kiln_approximates()) return v * approximate::rsqrt(dot(v, v));
  return normalize(v);
}

// a b - c d to within 1.5 ULP, however much of the products cancels (W. Kahan): the rounding error of c d is added
// back.
__KILN_INLINE float difference_of_products(float a, float b, float c, float d) {
  float product = c * d;
  return fma(a, b, -product) + fma(-c, d, product);
}

// A vector of floats as one of another type, and back: exact.
template <int N, class T>
__KILN_INLINE metal::vec<float, N> widen(metal::vec<T, N> v) {
  return metal::vec<float, N>(v);
}

}  // namespace __kiln

namespace metal {

template <class T, int N>
__KILN_INLINE __kiln::floating<T> dot(vec<T, N> a, __kiln::converted<vec<T, N>> b) {
  return T(__kiln::dot(a, b));
}

template <class T, int N>
__KILN_INLINE __kiln::floating<T> length_squared(vec<T, N> v) {
  return T(__kiln::dot(v, v));
}

template <class T, int N>
__KILN_INLINE __kiln::floating<T> length(vec<T, N> v) {
  return T(__kiln::length_or_approximation(__kiln::widen(v)));
}

template <class T, int N>
__KILN_INLINE __kiln::floating<T> distance(vec<T, N> a, __kiln::converted<vec<T, N>> b) {
  return T(__kiln::length_or_approximation(__kiln::widen(a) - __kiln::widen(b)));
}

template <class T, int N>
__KILN_INLINE __kiln::floating<T> distance_squared(vec<T, N> a, __kiln::converted<vec<T, N>> b) {
  vec<float, N> d = __kiln::widen(a) - __kiln::widen(b);
  return T(__kiln::dot(d, d));
}

// Of a zero vector: NaNs.
template <class T, int N>
__KILN_INLINE vec<__kiln::floating<T>, N> normalize(vec<T, N> v) {
  return vec<T, N>(__kiln::normalize_or_approximation(__kiln::widen(v)));
}

template <class T>
__KILN_INLINE vec<__kiln::floating<T>, 3> cross(vec<T, 3> a, __kiln::converted<vec<T, 3>> b) {
  auto u = __kiln::widen(a);
  auto v = __kiln::widen<3, T>(b);
  return {T(__kiln::difference_of_products(u.y, v.z, u.z, v.y)), T(__kiln::difference_of_products(u.z, v.x, u.x, v.z)),
          T(__kiln::difference_of_products(u.x, v.y, u.y, v.x))};
}

// v, turned so that it points away from where `incident` goes, which `reference` tells.
template <class T, int N>
__KILN_INLINE vec<__kiln::floating<T>, N> faceforward(vec<T, N> v, __kiln::converted<vec<T, N>> incident,
                                                      __kiln::converted<vec<T, N>> reference) {
  return __kiln::dot(reference, incident) < 0 ? v : -v;
}

template <class T, int N>
__KILN_INLINE vec<__kiln::floating<T>, N> reflect(vec<T, N> incident, __kiln::converted<vec<T, N>> normal) {
  vec<float, N> i = __kiln::widen(incident), n = __kiln::widen(normal);
  return vec<T, N>(i - n * (2.0f * __kiln::dot(n, i)));
}

template <class T, int N>
__KILN_INLINE vec<__kiln::floating<T>, N> refract(vec<T, N> incident, __kiln::converted<vec<T, N>> normal,
                                                  __kiln::converted<T> ratio) {
  vec<float, N> i = __kiln::widen(incident), n = __kiln::widen(normal);
  float eta = float(ratio), cosine = __kiln::dot(n, i);
  float k = 1.0f - eta * eta * (1.0f - cosine * cosine);
  if (k < 0) return vec<T, N>(T(0));  // total reflection
  return vec<T, N>(i * eta - n * (eta * cosine + __kiln::sqrt(k)));
}

namespace fast {
using metal::distance;
using metal::length;
using metal::normalize;
}  // namespace fast
namespace precise {
template <class T, int N>
__KILN_INLINE __kiln::floating<T> length(vec<T, N> v) {
  return T(__kiln::length(__kiln::widen(v)));
}
template <class T, int N>
__KILN_INLINE __kiln::floating<T> distance(vec<T, N> a, __kiln::converted<vec<T, N>> b) {
  return T(__kiln::length(__kiln::widen(a) - __kiln::widen(b)));
}
template <class T, int N>
__KILN_INLINE vec<__kiln::floating<T>, N> normalize(vec<T, N> v) {
  return vec<T, N>(__kiln::normalize(__kiln::widen(v)));
}
}  // namespace precise

}  // namespace metal
__KILN_EXACT_END
