// threadgroup_barrier and simdgroup_barrier.
namespace metal {

__KILN_INLINE void threadgroup_barrier(mem_flags, __KILN_CALLERS_LINE) {
  __kiln::__kiln_threadgroup_barrier(line);
}

__KILN_INLINE void simdgroup_barrier(mem_flags, __KILN_CALLERS_LINE) {
  __kiln::__kiln_exchange(line, __kiln::Exchange::none, 0, nullptr, 0, 0, 0);
}

}  // namespace metal
