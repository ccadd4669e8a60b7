#include "targets/cpu/group_position.h"

#include <gtest/gtest.h>

#include <random>

#include "core/launch_geometry.h"

namespace kiln {
namespace {

TEST(GroupPosition, CountsXFastestAndCutsTheGridsEdge) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Extent3 grid, threadgroup;
    for (int d = 0; d < 3; ++d) {
      grid[d] = 1 + random() % 30;
      threadgroup[d] = 1 + random() % 10;
    }
    LaunchGeometry geometry = divide_grid("metal_kernel", Dialect::kMetal, grid, threadgroup);
    CpuLaunch launch{};
    for (int d = 0; d < 3; ++d) {
      launch.threads_per_grid[d] = geometry.threads_per_grid[d];
      launch.threads_per_threadgroup[d] = geometry.threads_per_threadgroup[d];
      launch.threadgroups_per_grid[d] = geometry.threadgroups_per_grid[d];
    }
    // A plain walk over the grid in steps of a threadgroup.
    uint64_t index = 0;
    std::array<uint32_t, 3> group = {0, 0, 0};
    const auto& step = geometry.threads_per_threadgroup;
    for (int64_t z = 0; z < grid[2]; z += step[2], ++group[2], group[1] = 0)
      for (int64_t y = 0; y < grid[1]; y += step[1], ++group[1], group[0] = 0)
        for (int64_t x = 0; x < grid[0]; x += step[0], ++group[0], ++index) {
          GroupPosition position = locate_group(launch, index);
          EXPECT_EQ(position.group, group);
          EXPECT_EQ(position.threads[0], std::min<int64_t>(step[0], grid[0] - x));
          EXPECT_EQ(position.threads[1], std::min<int64_t>(step[1], grid[1] - y));
          EXPECT_EQ(position.threads[2], std::min<int64_t>(step[2], grid[2] - z));
        }
    EXPECT_EQ(index, geometry.threadgroups);
  }
}

TEST(GroupPosition, ReachesTheLastGroupOfTheLargestGrid) {
  LaunchGeometry geometry = divide_grid("metal_kernel", Dialect::kMetal, {1 << 30, 1 << 30, 4}, {1, 1, 1});
  CpuLaunch launch{};
  for (int d = 0; d < 3; ++d) {
    launch.threads_per_grid[d] = geometry.threads_per_grid[d];
    launch.threads_per_threadgroup[d] = geometry.threads_per_threadgroup[d];
    launch.threadgroups_per_grid[d] = geometry.threadgroups_per_grid[d];
  }
  EXPECT_EQ(locate_group(launch, geometry.threadgroups - 1).group,
            (std::array<uint32_t, 3>{(1u << 30) - 1, (1u << 30) - 1, 3}));
}

}  // namespace
}  // namespace kiln
