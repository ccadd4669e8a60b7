// How a grid, counted in threads, falls into threadgroups.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/extent.h"
#include "core/kernel_unit.h"

namespace kiln {

inline constexpr int64_t kMaxThreadsPerThreadgroup = 1024;
// Along each axis. The compiler relies on positions that are no negative numbers as an `int`.
inline constexpr int64_t kMaxThreadsOfGrid = std::numeric_limits<int32_t>::max();

struct LaunchGeometry {
  std::array<uint32_t, 3> threads_per_grid{};
  std::array<uint32_t, 3> threads_per_threadgroup{};  // after clamping; threadgroups at an edge may be smaller
  std::array<uint32_t, 3> threadgroups_per_grid{};
  uint64_t threadgroups = 0;  // their product

  uint64_t threads_in_full_threadgroup() const {
    return uint64_t{threads_per_threadgroup[0]} * threads_per_threadgroup[1] * threads_per_threadgroup[2];
  }
};

/// Checks a call's grid and threadgroup and divides the one by the other. Metal: exactly `grid` threads, the last
/// threadgroup of a row may be smaller. CUDA: whole blocks, the grid is rounded up. In both the threadgroup is first
/// clamped to the grid, per dimension. Throws ValueError; `interface_name` ("metal_kernel") begins the message.
LaunchGeometry divide_grid(std::string_view interface_name, Dialect dialect, const Extent3& grid,
                           const Extent3& threadgroup);

}  // namespace kiln
