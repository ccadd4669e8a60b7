// Reductions and scans over a simdgroup or a quadgroup.
//
// Each has one order on every engine and target: reductions are the butterfly over lane xor 1, 2, 4, 8, 16, scans add
// at lane distances 1, 2, 4, 8, 16. Lanes that take no part hold the operation's identity.
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
__KILN_INLINE void load_lanes(const ulong* payload, uint mask, T* lanes) {
  __KILN_LANES lanes[l] = mask >> l & 1 ? unpack<T>(payload[l]) : Operation::identity();
}

// Both lanes of a pair get one result: the operations are commutative.
template <uint Width, class Operation, class T>
void combine_reduce(ulong* payload, uint mask) {
  T lanes[32];
  load_lanes<Operation>(payload, mask, lanes);
  _Pragma("clang loop unroll(disable)") for (uint distance = 1; distance < Width; distance *= 2) {
    __KILN_LANES {
      if (l & distance) continue;
      lanes[l] = lanes[l | distance] = Operation::apply(lanes[l], lanes[l | distance]);
    }
  }
  __KILN_LANES payload[64 + l] = pack(lanes[l]);
}

template <uint Width, class Operation, class T, bool Exclusive>
void combine_scan(ulong* payload, uint mask) {
  T lanes[32], next[32];
  load_lanes<Operation>(payload, mask, lanes);
  _Pragma("clang loop unroll(disable)") for (uint distance = 1; distance < Width; distance *= 2) {
    __KILN_LANES
      next[l] = (l & (Width - 1)) < distance ? lanes[l] : Operation::apply(lanes[l - distance], lanes[l]);
    __KILN_LANES lanes[l] = next[l];
  }
  __KILN_LANES {
    if constexpr (Exclusive)
      payload[64 + l] = pack(l & (Width - 1) ? lanes[l - 1] : Operation::identity());
    else
      payload[64 + l] = pack(lanes[l]);
  }
}

template <class T>
__KILN_INLINE T exchange(combine_function* combine, T value, Line line) {
  return unpack<T>(__kiln_exchange(line, combine, pack(value), 0));
}

}  // namespace __kiln

namespace metal {

// A function for scalars and, component after component, for vectors. `line` is where the caller's call stands.
#define __KILN_COLLECTIVE(NAME, ...)                                                                      \
  template <class T>                                                                                      \
  __KILN_INLINE __kiln::reduced<T> NAME(T data, __KILN_CALLERS_LINE) {                                    \
    typedef __kiln::reduced<T> R;                                                                         \
    return __kiln::exchange<R>(__VA_ARGS__, data, line);                                                  \
  }                                                                                                       \
  template <class T, int N>                                                                               \
  __KILN_INLINE vec<T, N> NAME(vec<T, N> data, __KILN_CALLERS_LINE) {                                     \
    vec<T, N> result;                                                                                     \
    result.x = NAME(data.x, line);                                                                        \
    result.y = NAME(data.y, line);                                                                        \
    if constexpr (N > 2) result.z = NAME(data.z, line);                                                   \
    if constexpr (N > 3) result.w = NAME(data.w, line);                                                   \
    return result;                                                                                        \
  }

#define __KILN_REDUCTION(GROUP, WIDTH, NAME) \
  __KILN_COLLECTIVE(GROUP##_##NAME, __kiln::combine_reduce<WIDTH, __kiln::NAME##_of<R>, R>)
#define __KILN_SCAN(GROUP, WIDTH, NAME)                                                                                \
  __KILN_COLLECTIVE(GROUP##_prefix_inclusive_##NAME, __kiln::combine_scan<WIDTH, __kiln::NAME##_of<R>, R, false>)     \
  __KILN_COLLECTIVE(GROUP##_prefix_exclusive_##NAME, __kiln::combine_scan<WIDTH, __kiln::NAME##_of<R>, R, true>)

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
