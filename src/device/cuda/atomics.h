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
