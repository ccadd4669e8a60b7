// Loads and stores that say how they use caches, fences, copies, and the clock.
#define __KILN_LOAD(NAME)               \
  template <class T>                    \
  __KILN_DEVICE T NAME(const T* p) {    \
    return *p;                          \
  }
__KILN_LOAD(__ldg)
__KILN_LOAD(__ldcg)
__KILN_LOAD(__ldca)
__KILN_LOAD(__ldcs)
__KILN_LOAD(__ldlu)
template <class T>
__KILN_DEVICE T __ldcv(const T* p) {
  if constexpr (__is_scalar(T)) return *static_cast<const volatile T*>(p);
  else return *p;
}
#define __KILN_STORE(NAME)                                 \
  template <class T>                                       \
  __KILN_DEVICE void NAME(T* p, __kiln::converted<T> v) {  \
    *p = v;                                                \
  }
__KILN_STORE(__stwb)
__KILN_STORE(__stcg)
__KILN_STORE(__stcs)
__KILN_STORE(__stwt)

__KILN_DEVICE void __threadfence() { __atomic_thread_fence(__KILN_SEQUENTIAL); }
__KILN_DEVICE void __threadfence_block() { __atomic_thread_fence(__KILN_SEQUENTIAL); }
__KILN_DEVICE void __threadfence_system() { __atomic_thread_fence(__KILN_SEQUENTIAL); }

__KILN_DEVICE void* memcpy(void* to, const void* from, size_t bytes) { return __builtin_memcpy(to, from, bytes); }
__KILN_DEVICE void* memmove(void* to, const void* from, size_t bytes) { return __builtin_memmove(to, from, bytes); }
__KILN_DEVICE void* memset(void* to, int value, size_t bytes) { return __builtin_memset(to, value, bytes); }

__KILN_DEVICE long long clock64() { return static_cast<long long>(__builtin_readcyclecounter()); }
__KILN_DEVICE long clock() { return static_cast<long>(__builtin_readcyclecounter()); }
__KILN_DEVICE void __nanosleep(unsigned) {}
__KILN_DEVICE void __brkpt() {}
__KILN_DEVICE void __prof_trigger(int) {}

#define __KILN_ADDRESS_QUESTION(NAME) \
  __attribute__((unavailable("asking which memory an address is in is not supported on the CPU"))) unsigned NAME( \
      const volatile void*);
__KILN_ADDRESS_QUESTION(__isGlobal)
__KILN_ADDRESS_QUESTION(__isShared)
__KILN_ADDRESS_QUESTION(__isConstant)
__KILN_ADDRESS_QUESTION(__isLocal)
__KILN_ADDRESS_QUESTION(__isGridConstant)
__KILN_ADDRESS_QUESTION(__cvta_generic_to_global)
__KILN_ADDRESS_QUESTION(__cvta_generic_to_shared)
__KILN_ADDRESS_QUESTION(__cvta_generic_to_constant)
__KILN_ADDRESS_QUESTION(__cvta_generic_to_local)
#undef __KILN_ADDRESS_QUESTION
