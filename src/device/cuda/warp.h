// Barriers, and what the threads of a warp exchange.
//
// A warp is a simdgroup. A call acts on the threads of its mask that execute the same dynamic instance of it; the
// device library's exchanges find those (engine/thread.h), and the mask takes others out.
__KILN_DEVICE void __syncthreads(__KILN_CALLERS_LINE) { __kiln::__kiln_threadgroup_barrier(line); }
__KILN_DEVICE void __syncwarp(unsigned = 0xffffffff, __KILN_CALLERS_LINE) {
  __kiln::__kiln_exchange(line, __kiln::Exchange::none, 0, nullptr, 0, 0, 0);
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
  return __kiln::ballot(predicate != 0, line) & mask;
}
__KILN_DEVICE int __any_sync(unsigned mask, int predicate, __KILN_CALLERS_LINE) {
  return (__kiln::ballot(predicate != 0, line) & mask) != 0;
}
__KILN_DEVICE int __all_sync(unsigned mask, int predicate, __KILN_CALLERS_LINE) {
  return (__kiln::ballot(predicate == 0, line) & mask) == 0;
}

// A lane that has no source keeps its own value.
#define __KILN_SHUFFLES(TYPE)                                                                                          \
  __KILN_DEVICE TYPE __shfl_sync(unsigned, TYPE value, int source, int width = 32, __KILN_CALLERS_LINE) {              \
    unsigned lane = __kiln::lane(), inner = unsigned(width) - 1;                                                       \
    return __kiln::shuffle(value, (lane & ~inner) | (unsigned(source) & inner), line);                                 \
  }                                                                                                                    \
  __KILN_DEVICE TYPE __shfl_up_sync(unsigned, TYPE value, unsigned distance, int width = 32, __KILN_CALLERS_LINE) {    \
    unsigned lane = __kiln::lane(), inner = unsigned(width) - 1;                                                       \
    return __kiln::shuffle(value, (lane & inner) >= distance ? lane - distance : lane, line);                          \
  }                                                                                                                    \
  __KILN_DEVICE TYPE __shfl_down_sync(unsigned, TYPE value, unsigned distance, int width = 32, __KILN_CALLERS_LINE) {  \
    unsigned lane = __kiln::lane(), inner = unsigned(width) - 1;                                                       \
    return __kiln::shuffle(value, distance <= inner - (lane & inner) ? lane + distance : lane, line);                  \
  }                                                                                                                    \
  __KILN_DEVICE TYPE __shfl_xor_sync(unsigned, TYPE value, int lanes, int width = 32, __KILN_CALLERS_LINE) {           \
    unsigned lane = __kiln::lane(), source = lane ^ unsigned(lanes);                                                   \
    return __kiln::shuffle(value, source <= (lane | (unsigned(width) - 1)) ? source : lane, line);                     \
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

#define __KILN_MATCHES(TYPE)                                                                                \
  __KILN_DEVICE unsigned __match_any_sync(unsigned mask, TYPE value, __KILN_CALLERS_LINE) {                 \
    unsigned long bits = __kiln::pack(value);                                                               \
    unsigned same = 0, here = __kiln::ballot(true, line) & mask;                                            \
    for (unsigned lane = 0; lane < 32; ++lane)                                                              \
      same |= unsigned(__kiln::shuffle(bits, lane, line) == bits) << lane;                                  \
    return same & here;                                                                                     \
  }                                                                                                         \
  __KILN_DEVICE unsigned __match_all_sync(unsigned mask, TYPE value, int* predicate, __KILN_CALLERS_LINE) { \
    unsigned long bits = __kiln::pack(value);                                                               \
    unsigned here = __kiln::ballot(true, line) & mask;                                                      \
    unsigned long first = __kiln::shuffle(bits, __builtin_ctzg(here, 31), line);                            \
    *predicate = (__kiln::ballot(bits != first, line) & mask) == 0;                                         \
    return *predicate ? here : 0;                                                                           \
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
template <template <class> class Operation, class T>
__KILN_DEVICE T reduce_masked(unsigned mask, T value, Line line) {
  if (mask == 0xffffffff) return combine_lanes<Exchange::reduce, 32, Operation<T>, T>(value, line);
  T result = Operation<T>::identity();
  unsigned here = ballot(true, line) & mask;
  for (unsigned lane = 0; lane < 32; ++lane) {
    T other = shuffle(value, lane, line);
    if (here >> lane & 1) result = Operation<T>::apply(result, other);
  }
  return result;
}
}  // namespace __kiln
#define __KILN_WARP_REDUCTION(NAME, TYPE, OPERATION)                                            \
  __KILN_DEVICE TYPE __reduce_##NAME##_sync(unsigned mask, TYPE value, __KILN_CALLERS_LINE) {   \
    return __kiln::reduce_masked<__kiln::OPERATION>(mask, value, line);                         \
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
