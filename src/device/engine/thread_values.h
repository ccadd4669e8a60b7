// The numbers of `__kiln_value`, as in `core/thread_values.h`. The compiler's C++ includes this file, too, and does not
// compile where the two differ.
namespace __kiln {

struct ThreadValue {
  enum : unsigned {
    position_in_threadgroup = 0,
    threadgroup_position = 3,
    threads_per_threadgroup = 6,  // of this threadgroup, smaller at an edge of the grid
    full_threads_per_threadgroup = 9,
    threads_per_grid = 12,
    threadgroups_per_grid = 15,
    index_in_threadgroup = 18,
    numbers = 19,
  };
};

}  // namespace __kiln
