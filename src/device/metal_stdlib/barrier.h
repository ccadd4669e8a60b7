// threadgroup_barrier and simdgroup_barrier.
namespace metal {

// The default argument is evaluated at the call: the caller's line.
__KILN_INLINE void threadgroup_barrier(mem_flags, uint line = __builtin_LINE()) {
  __kiln::__kiln_threadgroup_barrier(line);
}

__KILN_INLINE void simdgroup_barrier(mem_flags, uint line = __builtin_LINE()) {
  __kiln::__kiln_exchange(line, nullptr, 0, 0);
}

}  // namespace metal
