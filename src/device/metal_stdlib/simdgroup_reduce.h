// Reductions and scans over a simdgroup or a quadgroup.
//
// Each has one order on every engine and target, which CpuExchange in `core/cpu_image.h` gives.
namespace __kiln {

template <class T>
struct sum_of {
  static constexpr T identity() { return T(0); }
  static T apply(T a, T b) { return T(a + b); }
};
template <class T>
struct product_of {
  static constexpr T identity() { return T(1); }
  static T apply(T a, T b) { return T(a * b); }
};
template <class T>
struct min_of {
  static constexpr T identity() {
    typedef metal::numeric_limits<T> limits;
    return limits::has_infinity ? limits::infinity() : limits::max();
  }
  static T apply(T a, T b) { return metal::min(a, b); }
};
template <class T>
struct max_of {
  static constexpr T identity() {
    typedef metal::numeric_limits<T> limits;
    return limits::has_infinity ? T(-limits::infinity()) : limits::lowest();
  }
  static T apply(T a, T b) { return metal::max(a, b); }
};
template <class T>
struct and_of {
  static constexpr T identity() { return T(~T(0)); }
  static T apply(T a, T b) { return a & b; }
};
template <class T>
struct or_of {
  static constexpr T identity() { return T(0); }
  static T apply(T a, T b) { return a | b; }
};
template <class T>
struct xor_of {
  static constexpr T identity() { return T(0); }
  static T apply(T a, T b) { return a ^ b; }
};

template <class Operation, class T>
ulong combine(ulong a, ulong b) {
  return pack(Operation::apply(unpack<T>(a), unpack<T>(b)));
}

template <Exchange Kind, uint Width, class Operation, class T>
__KILN_INLINE T combine_lanes(T value, Line line) {
  constexpr ulong identity = pack(Operation::identity());
  return unpack<T>(__kiln_exchange(line, Kind, Width, combine<Operation, T>, identity, pack(value), 0));
}

}  // namespace __kiln

namespace metal {

// A function for scalars and, component after component, for vectors. `line` is where the caller's call stands.
#define __KILN_COLLECTIVE(NAME, KIND, WIDTH, OPERATION)                                               \
  template <class T>                                                                                  \
  __KILN_INLINE __kiln::reduced<T> NAME(T data, __KILN_CALLERS_LINE) {                                \
    typedef __kiln::reduced<T> R;                                                                     \
    return __kiln::combine_lanes<__kiln::Exchange::KIND, WIDTH, __kiln::OPERATION<R>, R>(data, line); \
  }                                                                                                   \
  template <class T, int N>                                                                           \
  __KILN_INLINE vec<T, N> NAME(vec<T, N> data, __KILN_CALLERS_LINE) {                                 \
    vec<T, N> result;                                                                                 \
    result.x = NAME(data.x, line);                                                                    \
    result.y = NAME(data.y, line);                                                                    \
    if constexpr (N > 2) result.z = NAME(data.z, line);                                               \
    if constexpr (N > 3) result.w = NAME(data.w, line);                                               \
    return result;                                                                                    \
  }

#define __KILN_REDUCTION(GROUP, WIDTH, NAME) __KILN_COLLECTIVE(GROUP##_##NAME, reduce, WIDTH, NAME##_of)
#define __KILN_SCAN(GROUP, WIDTH, NAME)                                                \
  __KILN_COLLECTIVE(GROUP##_prefix_inclusive_##NAME, inclusive_scan, WIDTH, NAME##_of) \
  __KILN_COLLECTIVE(GROUP##_prefix_exclusive_##NAME, exclusive_scan, WIDTH, NAME##_of)

#define __KILN_COLLECTIVES(GROUP, WIDTH)     \
  __KILN_REDUCTION(GROUP, WIDTH, sum)        \
  __KILN_REDUCTION(GROUP, WIDTH, product)    \
  __KILN_REDUCTION(GROUP, WIDTH, min)        \
  __KILN_REDUCTION(GROUP, WIDTH, max)        \
  __KILN_REDUCTION(GROUP, WIDTH, and)        \
  __KILN_REDUCTION(GROUP, WIDTH, or)         \
  __KILN_REDUCTION(GROUP, WIDTH, xor)        \
  __KILN_SCAN(GROUP, WIDTH, sum)             \
  __KILN_SCAN(GROUP, WIDTH, product)
__KILN_COLLECTIVES(simd, 32)
__KILN_COLLECTIVES(quad, 4)

}  // namespace metal
