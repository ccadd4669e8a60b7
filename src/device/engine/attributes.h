// The values of a Metal body's attributes (`core/attribute_table.h`), from what the engine gives. One function each,
// of the attribute's name: the call of the kernel's function passes them.
namespace __kiln {

template <class U = uint>
__KILN_INLINE metal::vec<U, 3> vector_value(uint first) {
  return metal::vec<U, 3>(__kiln_value(first), __kiln_value(first + 1), __kiln_value(first + 2));
}

template <class U = uint>
__KILN_INLINE metal::vec<U, 3> thread_position_in_threadgroup() {
  return vector_value<U>(ThreadValue::position_in_threadgroup);
}
template <class U = uint>
__KILN_INLINE metal::vec<U, 3> threadgroup_position_in_grid() {
  return vector_value<U>(ThreadValue::threadgroup_position);
}
template <class U = uint>
__KILN_INLINE metal::vec<U, 3> threads_per_threadgroup() {
  return vector_value<U>(ThreadValue::threads_per_threadgroup);
}
template <class U = uint>
__KILN_INLINE metal::vec<U, 3> dispatch_threads_per_threadgroup() {
  return vector_value<U>(ThreadValue::full_threads_per_threadgroup);
}
template <class U = uint>
__KILN_INLINE metal::vec<U, 3> threads_per_grid() {
  return vector_value<U>(ThreadValue::threads_per_grid);
}
template <class U = uint>
__KILN_INLINE metal::vec<U, 3> threadgroups_per_grid() {
  return vector_value<U>(ThreadValue::threadgroups_per_grid);
}
__KILN_INLINE uint thread_index_in_threadgroup() { return __kiln_value(ThreadValue::index_in_threadgroup); }

template <class U = uint>
__KILN_INLINE metal::vec<U, 3> grid_origin() {
  return metal::vec<U, 3>(0u);
}
template <class U = uint>
__KILN_INLINE metal::vec<U, 3> grid_size() {
  return vector_value<U>(ThreadValue::threads_per_grid);
}
template <class U = uint>
__KILN_INLINE metal::vec<U, 3> thread_position_in_grid() {
  return metal::vec<U, 3>(__kiln_value(ThreadValue::threadgroup_position) * __kiln_value(ThreadValue::full_threads_per_threadgroup) +
                             __kiln_value(ThreadValue::position_in_threadgroup),
                         __kiln_value(ThreadValue::threadgroup_position + 1) * __kiln_value(ThreadValue::full_threads_per_threadgroup + 1) +
                             __kiln_value(ThreadValue::position_in_threadgroup + 1),
                         __kiln_value(ThreadValue::threadgroup_position + 2) * __kiln_value(ThreadValue::full_threads_per_threadgroup + 2) +
                             __kiln_value(ThreadValue::position_in_threadgroup + 2));
}

__KILN_INLINE uint threads_in_threadgroup() {
  return __kiln_value(ThreadValue::threads_per_threadgroup) *
         __kiln_value(ThreadValue::threads_per_threadgroup + 1) *
         __kiln_value(ThreadValue::threads_per_threadgroup + 2);
}
__KILN_INLINE uint threads_in_full_threadgroup() {
  return __kiln_value(ThreadValue::full_threads_per_threadgroup) *
         __kiln_value(ThreadValue::full_threads_per_threadgroup + 1) *
         __kiln_value(ThreadValue::full_threads_per_threadgroup + 2);
}

__KILN_INLINE uint threads_per_simdgroup() { return 32; }
__KILN_INLINE uint thread_execution_width() { return 32; }
__KILN_INLINE uint thread_index_in_simdgroup() { return thread_index_in_threadgroup() & 31; }
__KILN_INLINE uint simdgroup_index_in_threadgroup() { return thread_index_in_threadgroup() >> 5; }
__KILN_INLINE uint simdgroups_per_threadgroup() { return (threads_in_threadgroup() + 31) >> 5; }
__KILN_INLINE uint dispatch_simdgroups_per_threadgroup() { return (threads_in_full_threadgroup() + 31) >> 5; }

__KILN_INLINE uint thread_index_in_quadgroup() { return thread_index_in_threadgroup() & 3; }
__KILN_INLINE uint quadgroup_index_in_threadgroup() { return thread_index_in_threadgroup() >> 2; }
__KILN_INLINE uint quadgroups_per_threadgroup() { return (threads_in_threadgroup() + 3) >> 2; }
__KILN_INLINE uint dispatch_quadgroups_per_threadgroup() { return (threads_in_full_threadgroup() + 3) >> 2; }

}  // namespace __kiln
