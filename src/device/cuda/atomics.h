// Atomic functions. Those of a block and of the whole system are those of the device: they order as much or more.
//
// None of them orders other accesses, as on a GPU.
#define __KILN_ATOMIC_SCOPES(NAME, TYPE)                                               \
  __KILN_DEVICE TYPE NAME##_block(TYPE* p, TYPE v) { return NAME(p, v); }              \
  __KILN_DEVICE TYPE NAME##_system(TYPE* p, TYPE v) { return NAME(p, v); }
#define __KILN_ATOMIC(NAME, TYPE, BUILTIN)                                                               \
  __KILN_DEVICE TYPE NAME(TYPE* p, TYPE v) { return BUILTIN(p, v, __KILN_RELAXED); }                   \
  __KILN_ATOMIC_SCOPES(NAME, TYPE)
typedef unsigned int __kiln_unsigned;
typedef unsigned long long __kiln_unsigned_long_long;
#define __KILN_ATOMICS_OF(NAME, BUILTIN)                  \
  __KILN_ATOMIC(NAME, int, BUILTIN)                       \
  __KILN_ATOMIC(NAME, __kiln_unsigned, BUILTIN)           \
  __KILN_ATOMIC(NAME, __kiln_unsigned_long_long, BUILTIN)
__KILN_ATOMICS_OF(atomicAdd, __atomic_fetch_add)
__KILN_ATOMIC(atomicAdd, float, __atomic_fetch_add)
__KILN_ATOMIC(atomicAdd, double, __atomic_fetch_add)
__KILN_ATOMIC(atomicSub, int, __atomic_fetch_sub)
__KILN_ATOMIC(atomicSub, __kiln_unsigned, __atomic_fetch_sub)
__KILN_ATOMICS_OF(atomicMin, __atomic_fetch_min)
__KILN_ATOMIC(atomicMin, __kiln_long_long, __atomic_fetch_min)
__KILN_ATOMICS_OF(atomicMax, __atomic_fetch_max)
__KILN_ATOMIC(atomicMax, __kiln_long_long, __atomic_fetch_max)
__KILN_ATOMICS_OF(atomicAnd, __atomic_fetch_and)
__KILN_ATOMICS_OF(atomicOr, __atomic_fetch_or)
__KILN_ATOMICS_OF(atomicXor, __atomic_fetch_xor)
__KILN_ATOMIC(atomicAnd, __kiln_long_long, __atomic_fetch_and)
__KILN_ATOMIC(atomicOr, __kiln_long_long, __atomic_fetch_or)
__KILN_ATOMIC(atomicXor, __kiln_long_long, __atomic_fetch_xor)
__KILN_ATOMICS_OF(atomicExch, __atomic_exchange_n)
__KILN_DEVICE float atomicExch(float* p, float v) {
  float result;
  __atomic_exchange(p, &v, &result, __KILN_RELAXED);
  return result;
}
__KILN_ATOMIC_SCOPES(atomicExch, float)

#define __KILN_COMPARE_AND_SWAP(NAME, TYPE)                                                              \
  __KILN_DEVICE TYPE NAME(TYPE* p, TYPE expected, TYPE v) {                                              \
    __atomic_compare_exchange_n(p, &expected, v, false, __KILN_RELAXED, __KILN_RELAXED);             \
    return expected;                                                                                     \
  }
#define __KILN_COMPARE_AND_SWAPS(TYPE)                \
  __KILN_COMPARE_AND_SWAP(atomicCAS, TYPE)            \
  __KILN_COMPARE_AND_SWAP(atomicCAS_block, TYPE)      \
  __KILN_COMPARE_AND_SWAP(atomicCAS_system, TYPE)
__KILN_COMPARE_AND_SWAPS(int)
__KILN_COMPARE_AND_SWAPS(__kiln_unsigned)
__KILN_COMPARE_AND_SWAPS(__kiln_unsigned_long_long)
typedef unsigned short __kiln_unsigned_short;
__KILN_COMPARE_AND_SWAPS(__kiln_unsigned_short)
// Of 16 bytes.
#define __KILN_WIDE_ATOMIC(NAME, ...)                                                                                \
  template <class T>                                                                                                 \
  __attribute__((unavailable("atomics of 128 bits are not supported on the CPU")))                                   \
      typename __kiln::enable_if<sizeof(T) == 16, T>::type NAME(__VA_ARGS__);
__KILN_WIDE_ATOMIC(atomicCAS, T*, T, T)
__KILN_WIDE_ATOMIC(atomicExch, T*, T)

// Counts up to `last` and starts again; counts down from it.
__KILN_DEVICE unsigned atomicInc(unsigned* p, unsigned last) {
  unsigned before = __atomic_load_n(p, __KILN_RELAXED);
  while (!__atomic_compare_exchange_n(p, &before, before >= last ? 0 : before + 1, false, __KILN_RELAXED,
                                      __KILN_RELAXED)) {
  }
  return before;
}
__KILN_DEVICE unsigned atomicDec(unsigned* p, unsigned last) {
  unsigned before = __atomic_load_n(p, __KILN_RELAXED);
  while (!__atomic_compare_exchange_n(p, &before, before == 0 || before > last ? last : before - 1, false,
                                      __KILN_RELAXED, __KILN_RELAXED)) {
  }
  return before;
}
__KILN_ATOMIC_SCOPES(atomicInc, __kiln_unsigned)
__KILN_ATOMIC_SCOPES(atomicDec, __kiln_unsigned)

// Those that say their order and scope. Every scope is the whole device's.
#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4
#define __KILN_ORDERED_ATOMIC(NAME)                                                                     \
  template <class T>                                                                                    \
  __KILN_DEVICE T __nv_atomic_##NAME(T* p, __kiln::converted<T> v, int, int = __NV_THREAD_SCOPE_SYSTEM) { \
    return __atomic_##NAME(p, v, __KILN_SEQUENTIAL);                                                    \
  }
__KILN_ORDERED_ATOMIC(fetch_add)
__KILN_ORDERED_ATOMIC(fetch_sub)
__KILN_ORDERED_ATOMIC(fetch_min)
__KILN_ORDERED_ATOMIC(fetch_max)
__KILN_ORDERED_ATOMIC(fetch_and)
__KILN_ORDERED_ATOMIC(fetch_or)
__KILN_ORDERED_ATOMIC(fetch_xor)
__KILN_ORDERED_ATOMIC(exchange_n)
template <class T>
__KILN_DEVICE T __nv_atomic_load_n(T* p, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  return __atomic_load_n(p, __KILN_SEQUENTIAL);
}
template <class T>
__KILN_DEVICE void __nv_atomic_store_n(T* p, __kiln::converted<T> v, int, int = __NV_THREAD_SCOPE_SYSTEM) {
  __atomic_store_n(p, v, __KILN_SEQUENTIAL);
}
template <class T>
__KILN_DEVICE bool __nv_atomic_compare_exchange_n(T* p, T* expected, __kiln::converted<T> v, bool, int, int,
                                                  int = __NV_THREAD_SCOPE_SYSTEM) {
  return __atomic_compare_exchange_n(p, expected, v, false, __KILN_SEQUENTIAL, __KILN_SEQUENTIAL);
}
__KILN_DEVICE void __nv_atomic_thread_fence(int, int = __NV_THREAD_SCOPE_SYSTEM) {
  __atomic_thread_fence(__KILN_SEQUENTIAL);
}
