// The values of a thread that attributes are computed from, one row each. Code reads them by number (`__kiln_value`);
// on the CPU they are the beginning of a thread's record (core/cpu_image.h).
//
// Passes decide by a row's scope, not by ranges of numbers. What has to know every value, or every value of a scope,
// has a static_assert on their number, so that a row that is added does not compile until it is given everywhere. The
// device library has the numbers under the names of the second column (device/engine/thread_values.h);
// compiler/clang/device_library.cpp checks them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln {

// Who has one value in common.
enum class ThreadValueScope : uint8_t { kThread, kThreadgroup, kGrid };

// ROW(Name, name_in_device_library, components, scope). Each component is a uint.
// ThreadsPerThreadgroup is smaller at an edge of the grid; FullThreadsPerThreadgroup is not.
#define KILN_THREAD_VALUES(ROW)                                          \
  ROW(PositionInThreadgroup, position_in_threadgroup, 3, kThread)        \
  ROW(ThreadgroupPosition, threadgroup_position, 3, kThreadgroup)        \
  ROW(ThreadsPerThreadgroup, threads_per_threadgroup, 3, kThreadgroup)   \
  ROW(FullThreadsPerThreadgroup, full_threads_per_threadgroup, 3, kGrid) \
  ROW(ThreadsPerGrid, threads_per_grid, 3, kGrid)                        \
  ROW(ThreadgroupsPerGrid, threadgroups_per_grid, 3, kGrid)              \
  ROW(IndexInThreadgroup, index_in_threadgroup, 1, kThread)

// The number of each value's first component: kPositionInThreadgroup.
enum ThreadValue : uint32_t {
#define KILN_ROW(name, in_library, components, scope) k##name, k##name##Last = k##name + (components) - 1,
  KILN_THREAD_VALUES(KILN_ROW)
#undef KILN_ROW
};

struct ThreadValueRow {
  ThreadValue value;
  uint32_t components;
  ThreadValueScope scope;
};

inline constexpr ThreadValueRow kThreadValues[] = {
#define KILN_ROW(name, in_library, components, scope) {k##name, components, ThreadValueScope::scope},
    KILN_THREAD_VALUES(KILN_ROW)
#undef KILN_ROW
};

// How many numbers there are.
inline constexpr uint32_t kThreadValueNumbers = [] {
  uint32_t count = 0;
  for (const ThreadValueRow& row : kThreadValues) count += row.components;
  return count;
}();

/// The value that a number is a component of; null where there is none.
constexpr const ThreadValueRow* thread_value_row(uint64_t number) {
  for (const ThreadValueRow& row : kThreadValues)
    if (number >= row.value && number - row.value < row.components) return &row;
  return nullptr;
}

/// Whether threads of one threadgroup differ in the number.
constexpr bool is_divergent_value(uint64_t number) {
  const ThreadValueRow* row = thread_value_row(number);
  return row && row->scope == ThreadValueScope::kThread;
}

/// How many numbers a scope has.
constexpr uint32_t numbers_of(ThreadValueScope scope) {
  uint32_t count = 0;
  for (const ThreadValueRow& row : kThreadValues) count += row.scope == scope ? row.components : 0;
  return count;
}

}  // namespace kiln
