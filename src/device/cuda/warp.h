// Barriers, and the collectives of a warp.
//
// A warp is a simdgroup. A `_sync` function waits for the lanes that its mask names and that have not returned,
// whichever call of the same function with the same mask they come to; those that have come then act together. That is
// PTX's rule (shfl.sync, vote.sync, match.sync, redux.sync, bar.warp.sync). `__activemask` acts on the threads that
// execute the same dynamic instance of it, as Metal's functions do (engine/thread.h).
__KILN_DEVICE void __syncthreads(__KILN_CALLERS_LINE) { __kiln::__kiln_threadgroup_barrier(line); }

namespace __kiln {
// Only calls of one function with values of one size meet.
enum class WarpFunction : unsigned {
  syncwarp = 1,
  shfl,
  shfl_up,
  shfl_down,
  shfl_xor,
  ballot,
  any,
  all,
  match_any,
  match_all,
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor
};
template <WarpFunction Function, class T>
inline constexpr unsigned function_id = unsigned(Function) * 16 + sizeof(T);

// __kiln_exchange of the lanes that `mask` names, of which the upper half of the operand tells the scheduler.
extern "C" __attribute__((convergent)) unsigned long __kiln_warp_exchange(
    Line line, Exchange exchange, unsigned width, combine_function* combine, unsigned long identity,
    unsigned long value, unsigned long operand, unsigned function, unsigned mask);

template <WarpFunction Function, class T>
__KILN_INLINE T warp_shuffle(unsigned mask, T value, unsigned source, Line line) {
  return unpack<T>(__kiln_warp_exchange(line, Exchange::shuffle, 32, nullptr, 0, pack(value), source,
                                        function_id<Function, T>, mask));
}
template <WarpFunction Function, class T = int>
__KILN_INLINE unsigned warp_ballot(unsigned mask, bool value, Line line) {
  return unsigned(__kiln_warp_exchange(line, Exchange::ballot, 32, nullptr, 0, value, 0, function_id<Function, T>,
                                       mask)) &
         mask;
}
}  // namespace __kiln

__KILN_DEVICE void __syncwarp(unsigned mask = 0xffffffff, __KILN_CALLERS_LINE) {
  __kiln::__kiln_warp_exchange(line, __kiln::Exchange::none, 0, nullptr, 0, 0, 0,
                               __kiln::function_id<__kiln::WarpFunction::syncwarp, int>, mask);
}
__KILN_DEVICE void __barrier_sync(unsigned, __KILN_CALLERS_LINE) { __kiln::__kiln_threadgroup_barrier(line); }
__attribute__((unavailable("barriers of a part of a block are not supported on the CPU"))) void __barrier_sync_count(
    unsigned, unsigned);

namespace __kiln {
// How many threads of the block say yes. Each thread clears the count, since any of them may have returned.
__KILN_DEVICE unsigned count_in_block(bool yes, Line line) {
  static __attribute__((section("kiln.threadgroup"))) unsigned count;
  __kiln_threadgroup_barrier(line);
  __atomic_store_n(&count, 0u, __KILN_RELAXED);
  __kiln_threadgroup_barrier(line);
  if (yes) __atomic_fetch_add(&count, 1u, __KILN_RELAXED);
  __kiln_threadgroup_barrier(line);
  return __atomic_load_n(&count, __KILN_RELAXED);
}
}  // namespace __kiln
__KILN_DEVICE int __syncthreads_count(int predicate, __KILN_CALLERS_LINE) {
  return int(__kiln::count_in_block(predicate != 0, line));
}
__KILN_DEVICE int __syncthreads_or(int predicate, __KILN_CALLERS_LINE) {
  return __kiln::count_in_block(predicate != 0, line) != 0;
}
__KILN_DEVICE int __syncthreads_and(int predicate, __KILN_CALLERS_LINE) {
  return __kiln::count_in_block(predicate == 0, line) == 0;
}

__KILN_DEVICE unsigned __activemask(__KILN_CALLERS_LINE) { return __kiln::ballot(true, line); }
__KILN_DEVICE unsigned __ballot_sync(unsigned mask, int predicate, __KILN_CALLERS_LINE) {
  return __kiln::warp_ballot<__kiln::WarpFunction::ballot>(mask, predicate != 0, line);
}
__KILN_DEVICE int __any_sync(unsigned mask, int predicate, __KILN_CALLERS_LINE) {
  return __kiln::warp_ballot<__kiln::WarpFunction::any>(mask, predicate != 0, line) != 0;
}
__KILN_DEVICE int __all_sync(unsigned mask, int predicate, __KILN_CALLERS_LINE) {
  return __kiln::warp_ballot<__kiln::WarpFunction::all>(mask, predicate == 0, line) == 0;
}

// A lane that has no source keeps its own value.
#define __KILN_SHUFFLES(TYPE)                                                                                         \
  __KILN_DEVICE TYPE __shfl_sync(unsigned mask, TYPE value, int source, int width = 32, __KILN_CALLERS_LINE) {        \
    unsigned lane = __kiln::lane(), inner = unsigned(width) - 1;                                                      \
    return __kiln::warp_shuffle<__kiln::WarpFunction::shfl>(                                                          \
        mask, value, (lane & ~inner) | (unsigned(source) & inner), line);                                             \
  }                                                                                                                   \
  __KILN_DEVICE TYPE __shfl_up_sync(unsigned mask, TYPE value, unsigned distance, int width = 32,                     \
                                    __KILN_CALLERS_LINE) {                                                            \
    unsigned lane = __kiln::lane(), inner = unsigned(width) - 1;                                                      \
    return __kiln::warp_shuffle<__kiln::WarpFunction::shfl_up>(                                                       \
        mask, value, (lane & inner) >= distance ? lane - distance : lane, line);                                      \
  }                                                                                                                   \
  __KILN_DEVICE TYPE __shfl_down_sync(unsigned mask, TYPE value, unsigned distance, int width = 32,                   \
                                      __KILN_CALLERS_LINE) {                                                          \
    unsigned lane = __kiln::lane(), inner = unsigned(width) - 1;                                                      \
    return __kiln::warp_shuffle<__kiln::WarpFunction::shfl_down>(                                                     \
        mask, value, distance <= inner - (lane & inner) ? lane + distance : lane, line);                              \
  }                                                                                                                   \
  __KILN_DEVICE TYPE __shfl_xor_sync(unsigned mask, TYPE value, int lanes, int width = 32, __KILN_CALLERS_LINE) {     \
    unsigned lane = __kiln::lane(), source = lane ^ unsigned(lanes);                                                  \
    return __kiln::warp_shuffle<__kiln::WarpFunction::shfl_xor>(                                                      \
        mask, value, source <= (lane | (unsigned(width) - 1)) ? source : lane, line);                                 \
  }
__KILN_SHUFFLES(int)
__KILN_SHUFFLES(unsigned)
__KILN_SHUFFLES(long)
__KILN_SHUFFLES(unsigned long)
__KILN_SHUFFLES(long long)
__KILN_SHUFFLES(unsigned long long)
__KILN_SHUFFLES(float)
__KILN_SHUFFLES(double)
#undef __KILN_SHUFFLES

#define __KILN_MATCHES(TYPE)                                                                                          \
  __KILN_DEVICE unsigned __match_any_sync(unsigned mask, TYPE value, __KILN_CALLERS_LINE) {                           \
    constexpr auto kFunction = __kiln::WarpFunction::match_any;                                                       \
    unsigned long bits = __kiln::pack(value);                                                                         \
    unsigned same = 0, here = __kiln::warp_ballot<kFunction, TYPE>(mask, true, line);                                 \
    for (unsigned lane = 0; lane < 32; ++lane)                                                                        \
      same |= unsigned(__kiln::warp_shuffle<kFunction>(mask, bits, lane, line) == bits) << lane;                      \
    return same & here;                                                                                               \
  }                                                                                                                   \
  __KILN_DEVICE unsigned __match_all_sync(unsigned mask, TYPE value, int* predicate, __KILN_CALLERS_LINE) {           \
    constexpr auto kFunction = __kiln::WarpFunction::match_all;                                                       \
    unsigned long bits = __kiln::pack(value);                                                                         \
    unsigned here = __kiln::warp_ballot<kFunction, TYPE>(mask, true, line);                                           \
    unsigned long first = __kiln::warp_shuffle<kFunction>(mask, bits, __builtin_ctzg(here, 31), line);                \
    *predicate = __kiln::warp_ballot<kFunction, TYPE>(mask, bits != first, line) == 0;                                \
    return *predicate ? here : 0;                                                                                     \
  }
__KILN_MATCHES(int)
__KILN_MATCHES(unsigned)
__KILN_MATCHES(long)
__KILN_MATCHES(unsigned long)
__KILN_MATCHES(long long)
__KILN_MATCHES(unsigned long long)
__KILN_MATCHES(float)
__KILN_MATCHES(double)
#undef __KILN_MATCHES

namespace __kiln {
// Of all lanes that are here in a few steps; of those of a mask one after the other, since each lane may have another.
template <template <class> class Operation, WarpFunction Function, class T>
__KILN_DEVICE T reduce_masked(unsigned mask, T value, Line line) {
  constexpr unsigned long kIdentity = pack(Operation<T>::identity());
  if (mask == 0xffffffff)
    return unpack<T>(__kiln_warp_exchange(line, Exchange::reduce, 32, combine<Operation<T>, T>, kIdentity, pack(value),
                                          0, function_id<Function, T>, mask));
  T result = Operation<T>::identity();
  unsigned here = warp_ballot<Function, T>(mask, true, line);
  for (unsigned lane = 0; lane < 32; ++lane) {
    T other = warp_shuffle<Function>(mask, value, lane, line);
    if (here >> lane & 1) result = Operation<T>::apply(result, other);
  }
  return result;
}
}  // namespace __kiln
#define __KILN_WARP_REDUCTION(NAME, TYPE, OPERATION)                                                                  \
  __KILN_DEVICE TYPE __reduce_##NAME##_sync(unsigned mask, TYPE value, __KILN_CALLERS_LINE) {                         \
    return __kiln::reduce_masked<__kiln::OPERATION, __kiln::WarpFunction::reduce_##NAME>(mask, value, line);          \
  }
__KILN_WARP_REDUCTION(add, int, sum_of)
__KILN_WARP_REDUCTION(add, unsigned, sum_of)
__KILN_WARP_REDUCTION(min, int, min_of)
__KILN_WARP_REDUCTION(min, unsigned, min_of)
__KILN_WARP_REDUCTION(max, int, max_of)
__KILN_WARP_REDUCTION(max, unsigned, max_of)
__KILN_WARP_REDUCTION(and, unsigned, and_of)
__KILN_WARP_REDUCTION(or, unsigned, or_of)
__KILN_WARP_REDUCTION(xor, unsigned, xor_of)
