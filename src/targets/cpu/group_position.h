// Where a threadgroup lies in the grid, and what its threads are told.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/cpu_image.h"

namespace kiln {

struct GroupPosition {
  std::array<uint32_t, 3> group;    // counted in threadgroups
  std::array<uint32_t, 3> threads;  // its size; smaller than the others' at an edge of the grid
};

/// Of threadgroup number `index`, counted with x fastest.
inline GroupPosition locate_group(const CpuLaunch& launch, uint64_t index) {
  const uint32_t* groups = launch.threadgroups_per_grid;
  uint64_t row = index / groups[0];
  GroupPosition position{{static_cast<uint32_t>(index % groups[0]), static_cast<uint32_t>(row % groups[1]),
                          static_cast<uint32_t>(row / groups[1])},
                         {}};
  for (int d = 0; d < 3; ++d)
    position.threads[d] = std::min(launch.threads_per_threadgroup[d],
                                   launch.threads_per_grid[d] - position.group[d] * launch.threads_per_threadgroup[d]);
  return position;
}

/// Fills in the values that are the same for the whole launch.
inline void set_launch_values(CpuThread& thread, const CpuLaunch& launch) {
  static_assert(numbers_of(ThreadValueScope::kGrid) == 9, "set each value of a grid below");
  for (int d = 0; d < 3; ++d) {
    thread.values[kFullThreadsPerThreadgroup + d] = launch.threads_per_threadgroup[d];
    thread.values[kThreadsPerGrid + d] = launch.threads_per_grid[d];
    thread.values[kThreadgroupsPerGrid + d] = launch.threadgroups_per_grid[d];
  }
}

/// Fills in the values that are the same for the threadgroup.
inline void set_group_values(CpuThread& thread, const GroupPosition& position) {
  static_assert(numbers_of(ThreadValueScope::kThreadgroup) == 6, "set each value of a threadgroup below");
  for (int d = 0; d < 3; ++d) {
    thread.values[kThreadgroupPosition + d] = position.group[d];
    thread.values[kThreadsPerThreadgroup + d] = position.threads[d];
  }
}

}  // namespace kiln
