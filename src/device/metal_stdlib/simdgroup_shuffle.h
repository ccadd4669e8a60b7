// Shuffles, broadcasts and votes within a simdgroup or a quadgroup.
namespace __kiln {

// Values of the group of `Width` lanes that a lane belongs to: 32 for a simdgroup, 4 for a quadgroup.
template <uint Width>
__KILN_INLINE uint first_of_group() {
  return lane() & ~(Width - 1);
}
template <uint Width>
__KILN_INLINE uint lane_of_group() {
  return lane() & (Width - 1);
}
template <uint Width>
__KILN_INLINE uint mask_of_group() {
  if constexpr (Width == 32)
    return ~0u;
  else
    return ((1u << Width) - 1) << first_of_group<Width>();
}

template <uint Width, class T>
__KILN_INLINE T shuffle_in_group(T value, uint source, Line line) {
  return shuffle(value, first_of_group<Width>() | (source & (Width - 1)), line);
}

template <uint Width>
__KILN_INLINE uint ballot_in_group(bool value, Line line) {
  return (ballot(value, line) & mask_of_group<Width>()) >> first_of_group<Width>();
}

// A lane without a source keeps its own value.
template <uint Width, class T>
__KILN_INLINE T shuffle_up(T value, uint delta, Line line) {
  uint l = lane_of_group<Width>();
  return shuffle_in_group<Width>(value, l < delta ? l : l - delta, line);
}
template <uint Width, class T>
__KILN_INLINE T shuffle_down(T value, uint delta, Line line) {
  uint l = lane_of_group<Width>();
  return shuffle_in_group<Width>(value, l + delta < Width ? l + delta : l, line);
}

// Lanes fall into segments of `modulo`; a lane whose source lies outside its segment takes it from `filling`, at the
// segment's other end. 0: one segment.
template <uint Width, class T>
__KILN_INLINE T shuffle_and_fill_up(T value, T filling, uint delta, uint modulo, Line line) {
  if (modulo == 0) modulo = Width;
  uint l = lane_of_group<Width>(), place = l % modulo;
  uint source = l + (place < delta ? modulo : 0) - delta;
  T a = shuffle_in_group<Width>(value, source, line), b = shuffle_in_group<Width>(filling, source, line);
  return place < delta ? b : a;
}
template <uint Width, class T>
__KILN_INLINE T shuffle_and_fill_down(T value, T filling, uint delta, uint modulo, Line line) {
  if (modulo == 0) modulo = Width;
  uint l = lane_of_group<Width>(), place = l % modulo;
  bool fill = place + delta >= modulo;
  uint source = l + delta - (fill ? modulo : 0);
  T a = shuffle_in_group<Width>(value, source, line), b = shuffle_in_group<Width>(filling, source, line);
  return fill ? b : a;
}

// The lanes of the group that are threads: all but in the threadgroup's last simdgroup.
template <uint Width>
__KILN_INLINE uint lanes_of_group() {
  uint threads = threads_in_threadgroup() - (thread_index_in_threadgroup() & ~(Width - 1));
  return threads < Width ? (1u << threads) - 1 : Width == 32 ? ~0u : (1u << Width % 32) - 1;
}

template <uint Width>
__KILN_INLINE uint first_active_lane(Line line) {
  return __builtin_ctz(ballot_in_group<Width>(true, line));
}

}  // namespace __kiln

namespace metal {

// What each thread of a group has voted; 0 for those that were not active. So `all` is false where a thread of the group
// took no part.
#define __KILN_VOTE(GROUP, WIDTH, MASK)                                                                \
  class GROUP##_vote {                                                                                 \
   public:                                                                                             \
    typedef ulong vote_t;                                                                              \
    __KILN_INLINE explicit constexpr GROUP##_vote(vote_t v = 0) : votes_(v & MASK) {}                  \
    __KILN_INLINE explicit constexpr operator vote_t() const { return votes_; }                        \
    __KILN_INLINE bool all() const { return (~votes_ & __kiln::lanes_of_group<WIDTH>()) == 0; }        \
    __KILN_INLINE bool any() const { return (votes_ & __kiln::lanes_of_group<WIDTH>()) != 0; }         \
                                                                                                       \
   private:                                                                                            \
    vote_t votes_;                                                                                     \
  };
__KILN_VOTE(simd, 32, ~0ul)
__KILN_VOTE(quad, 4, 15)

// A function for scalars and, component after component, for vectors. `line` is where the caller's call stands.
#define __KILN_SHUFFLE(NAME, VALUE)                                                                  \
  template <class T>                                                                                 \
  __KILN_INLINE __kiln::shuffled<T> NAME(T data, ushort n, __KILN_CALLERS_LINE) {                    \
    return VALUE;                                                                                    \
  }                                                                                                  \
  template <class T, int N>                                                                          \
  __KILN_INLINE vec<T, N> NAME(vec<T, N> data, ushort n, __KILN_CALLERS_LINE) {                      \
    vec<T, N> result;                                                                                \
    result.x = NAME(data.x, n, line);                                                                \
    result.y = NAME(data.y, n, line);                                                                \
    if constexpr (N > 2) result.z = NAME(data.z, n, line);                                           \
    if constexpr (N > 3) result.w = NAME(data.w, n, line);                                           \
    return result;                                                                                   \
  }

#define __KILN_SHUFFLE_AND_FILL(NAME, VALUE)                                                                       \
  template <class T>                                                                                               \
  __KILN_INLINE __kiln::shuffled<T> NAME(T data, __kiln::converted<T> filling, ushort n, ushort modulo = 0,        \
                                         __KILN_CALLERS_LINE) {                                                    \
    return VALUE;                                                                                                  \
  }                                                                                                                \
  template <class T, int N>                                                                                        \
  __KILN_INLINE vec<T, N> NAME(vec<T, N> data, __kiln::converted<vec<T, N>> filling, ushort n, ushort modulo = 0,  \
                               __KILN_CALLERS_LINE) {                                                              \
    vec<T, N> result;                                                                                              \
    result.x = NAME(data.x, filling.x, n, modulo, line);                                                           \
    result.y = NAME(data.y, filling.y, n, modulo, line);                                                           \
    if constexpr (N > 2) result.z = NAME(data.z, filling.z, n, modulo, line);                                      \
    if constexpr (N > 3) result.w = NAME(data.w, filling.w, n, modulo, line);                                      \
    return result;                                                                                                 \
  }

#define __KILN_SHUFFLES(GROUP, WIDTH)                                                                                \
  __KILN_SHUFFLE(GROUP##_shuffle, __kiln::shuffle_in_group<WIDTH>(data, n, line))                                    \
  __KILN_SHUFFLE(GROUP##_broadcast, __kiln::shuffle_in_group<WIDTH>(data, n, line))                                  \
  __KILN_SHUFFLE(GROUP##_shuffle_up, __kiln::shuffle_up<WIDTH>(data, n, line))                                       \
  __KILN_SHUFFLE(GROUP##_shuffle_down, __kiln::shuffle_down<WIDTH>(data, n, line))                                   \
  __KILN_SHUFFLE(GROUP##_shuffle_xor,                                                                                \
                 __kiln::shuffle_in_group<WIDTH>(data, __kiln::lane_of_group<WIDTH>() ^ n, line))                    \
  __KILN_SHUFFLE(GROUP##_shuffle_rotate_up,                                                                          \
                 __kiln::shuffle_in_group<WIDTH>(data, __kiln::lane_of_group<WIDTH>() - n, line))                    \
  __KILN_SHUFFLE(GROUP##_shuffle_rotate_down,                                                                        \
                 __kiln::shuffle_in_group<WIDTH>(data, __kiln::lane_of_group<WIDTH>() + n, line))                    \
  __KILN_SHUFFLE_AND_FILL(GROUP##_shuffle_and_fill_up,                                                               \
                          __kiln::shuffle_and_fill_up<WIDTH>(data, filling, n, modulo, line))                        \
  __KILN_SHUFFLE_AND_FILL(GROUP##_shuffle_and_fill_down,                                                             \
                          __kiln::shuffle_and_fill_down<WIDTH>(data, filling, n, modulo, line))                      \
  template <class T>                                                                                                 \
  __KILN_INLINE T GROUP##_broadcast_first(T data, __KILN_CALLERS_LINE) {                                             \
    return GROUP##_shuffle(data, __kiln::first_active_lane<WIDTH>(line), line);                                      \
  }                                                                                                                  \
  __KILN_INLINE bool GROUP##_all(bool value, __KILN_CALLERS_LINE) {                                                  \
    return __kiln::ballot_in_group<WIDTH>(!value, line) == 0;                                                        \
  }                                                                                                                  \
  __KILN_INLINE bool GROUP##_any(bool value, __KILN_CALLERS_LINE) {                                                  \
    return __kiln::ballot_in_group<WIDTH>(value, line) != 0;                                                         \
  }                                                                                                                  \
  __KILN_INLINE GROUP##_vote GROUP##_ballot(bool value, __KILN_CALLERS_LINE) {                                       \
    return GROUP##_vote(__kiln::ballot_in_group<WIDTH>(value, line));                                                \
  }                                                                                                                  \
  __KILN_INLINE GROUP##_vote GROUP##_active_threads_mask(__KILN_CALLERS_LINE) {                                      \
    return GROUP##_vote(__kiln::ballot_in_group<WIDTH>(true, line));                                                 \
  }                                                                                                                  \
  __KILN_INLINE bool GROUP##_is_first(__KILN_CALLERS_LINE) {                                                         \
    return __kiln::first_active_lane<WIDTH>(line) == __kiln::lane_of_group<WIDTH>();                                 \
  }                                                                                                                  \
  __KILN_INLINE bool GROUP##_is_helper_thread() { return false; }
__KILN_SHUFFLES(simd, 32)
__KILN_SHUFFLES(quad, 4)

}  // namespace metal
