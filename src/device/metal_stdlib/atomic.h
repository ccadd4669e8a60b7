// Atomic types and functions, on device and threadgroup memory.
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

// `order` is a constant wherever a kernel calls these, and its other cases are gone after inlining.
template <class T>
__KILN_INLINE T atomic_load_explicit(const volatile atomic<T>* object, memory_order order) {
  T result;
  __atomic_load(&object->__value, &result, order);
  return result;
}

template <class T>
__KILN_INLINE void atomic_store_explicit(volatile atomic<T>* object, __kiln::converted<T> desired, memory_order order) {
  __atomic_store(&object->__value, &desired, order);
}

template <class T>
__KILN_INLINE T atomic_exchange_explicit(volatile atomic<T>* object, __kiln::converted<T> desired,
                                         memory_order order) {
  T result;
  __atomic_exchange(&object->__value, &desired, &result, order);
  return result;
}

// It never fails without a reason, which Metal allows.
template <class T>
__KILN_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected,
                                                         __kiln::converted<T> desired, memory_order success,
                                                         memory_order failure) {
  return __atomic_compare_exchange(&object->__value, expected, &desired, false, success, failure);
}

#define __KILN_FETCH(NAME, BUILTIN)                                                                     \
  template <class T>                                                                                    \
  __KILN_INLINE T NAME(volatile atomic<T>* object, __kiln::converted<T> operand, memory_order order) {  \
    return BUILTIN(&object->__value, operand, order);                                                   \
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
  __atomic_thread_fence(order);
}
__KILN_INLINE void atomic_signal_fence(mem_flags, memory_order order, thread_scope = thread_scope_device) {
  __atomic_signal_fence(order);
}

}  // namespace metal
