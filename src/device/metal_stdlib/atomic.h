// Atomic types and functions, on device and threadgroup memory.
//
// Metal's orders are relaxed and, from version 3.2 on, the others. Everything that is not relaxed gets both an
// acquire and a release, which is never too weak.
namespace metal {

enum memory_order {
  memory_order_relaxed = 0,
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5,
};

enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

template <class T>
struct atomic {
  static_assert(__kiln::same<T, int> || __kiln::same<T, uint> || __kiln::same<T, bool> || __kiln::same<T, float> ||
                    __kiln::same<T, ulong>,
                "Metal has atomic<T> for int, uint, bool, float and ulong");
  T __value;

  atomic() = default;
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
};

typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;

#define __KILN_ORDERED(EXPRESSION)                      \
  if (order == memory_order_relaxed) {                  \
    constexpr int load = 0, store = 0, update = 0;      \
    EXPRESSION                                          \
  } else {                                              \
    constexpr int load = 2, store = 3, update = 4;      \
    EXPRESSION                                          \
  }

template <class T>
__KILN_INLINE T atomic_load_explicit(const volatile atomic<T>* object, memory_order order) {
  T result;
  __KILN_ORDERED((void)store; (void)update; __atomic_load(&object->__value, &result, load);)
  return result;
}

template <class T>
__KILN_INLINE void atomic_store_explicit(volatile atomic<T>* object, __kiln::converted<T> desired, memory_order order) {
  __KILN_ORDERED((void)load; (void)update; __atomic_store(&object->__value, &desired, store);)
}

template <class T>
__KILN_INLINE T atomic_exchange_explicit(volatile atomic<T>* object, __kiln::converted<T> desired,
                                         memory_order order) {
  T result;
  __KILN_ORDERED((void)load; (void)store; __atomic_exchange(&object->__value, &desired, &result, update);)
  return result;
}

// It never fails without a reason, which Metal allows.
template <class T>
__KILN_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected,
                                                         __kiln::converted<T> desired, memory_order order,
                                                         memory_order) {
  bool done;
  __KILN_ORDERED((void)store; done = __atomic_compare_exchange(&object->__value, expected, &desired, false, update,
                                                               load);)
  return done;
}

#define __KILN_FETCH(NAME, BUILTIN)                                                                             \
  template <class T>                                                                                            \
  __KILN_INLINE T NAME(volatile atomic<T>* object, __kiln::converted<T> operand, memory_order order) {          \
    T result;                                                                                                   \
    __KILN_ORDERED((void)load; (void)store; result = BUILTIN(&object->__value, operand, update);)               \
    return result;                                                                                              \
  }
__KILN_FETCH(atomic_fetch_add_explicit, __atomic_fetch_add)
__KILN_FETCH(atomic_fetch_sub_explicit, __atomic_fetch_sub)
__KILN_FETCH(atomic_fetch_min_explicit, __atomic_fetch_min)
__KILN_FETCH(atomic_fetch_max_explicit, __atomic_fetch_max)
__KILN_FETCH(atomic_fetch_and_explicit, __atomic_fetch_and)
__KILN_FETCH(atomic_fetch_or_explicit, __atomic_fetch_or)
__KILN_FETCH(atomic_fetch_xor_explicit, __atomic_fetch_xor)

// The forms without a result, for ulong.
__KILN_INLINE void atomic_min_explicit(volatile atomic<ulong>* object, ulong operand, memory_order order) {
  atomic_fetch_min_explicit(object, operand, order);
}
__KILN_INLINE void atomic_max_explicit(volatile atomic<ulong>* object, ulong operand, memory_order order) {
  atomic_fetch_max_explicit(object, operand, order);
}

__KILN_INLINE void atomic_thread_fence(mem_flags, memory_order order, thread_scope = thread_scope_device) {
  if (order != memory_order_relaxed) __atomic_thread_fence(5);
}
__KILN_INLINE void atomic_signal_fence(mem_flags, memory_order order, thread_scope = thread_scope_device) {
  if (order != memory_order_relaxed) __atomic_signal_fence(5);
}

}  // namespace metal
