#include "core/launch_geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "kiln/error.h"

namespace kiln {
namespace {

using Counts = std::array<uint32_t, 3>;

std::string refusal(const Extent3& grid, const Extent3& threadgroup, Dialect dialect = Dialect::kMetal) {
  try {
    divide_grid(dialect == Dialect::kMetal ? "metal_kernel" : "cuda_kernel", dialect, grid, threadgroup);
  } catch (const ValueError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(LaunchGeometry, OfMetalHasExactlyTheGridsThreads) {
  LaunchGeometry g = divide_grid("metal_kernel", Dialect::kMetal, {100, 7, 1}, {32, 4, 1});
  EXPECT_EQ(g.threads_per_grid, (Counts{100, 7, 1}));
  EXPECT_EQ(g.threads_per_threadgroup, (Counts{32, 4, 1}));
  EXPECT_EQ(g.threadgroups_per_grid, (Counts{4, 2, 1}));
  EXPECT_EQ(g.threadgroups, 8u);
  EXPECT_EQ(g.threads_in_full_threadgroup(), 128u);
}

TEST(LaunchGeometry, OfCudaHasWholeBlocks) {
  LaunchGeometry g = divide_grid("cuda_kernel", Dialect::kCuda, {100, 7, 1}, {32, 4, 1});
  EXPECT_EQ(g.threads_per_grid, (Counts{128, 8, 1}));
  EXPECT_EQ(g.threads_per_threadgroup, (Counts{32, 4, 1}));
  EXPECT_EQ(g.threadgroups_per_grid, (Counts{4, 2, 1}));
}

TEST(LaunchGeometry, ClampsTheThreadgroupToTheGridBeforeItRounds) {
  for (Dialect dialect : {Dialect::kMetal, Dialect::kCuda}) {
    LaunchGeometry g = divide_grid("kernel", dialect, {5, 3, 2}, {256, 1, 4});
    EXPECT_EQ(g.threads_per_threadgroup, (Counts{5, 1, 2}));
    EXPECT_EQ(g.threads_per_grid, (Counts{5, 3, 2}));
    EXPECT_EQ(g.threadgroups_per_grid, (Counts{1, 3, 1}));
  }
}

TEST(LaunchGeometry, WithAZeroDimensionLaunchesNothing) {
  for (Extent3 grid : {Extent3{0, 1, 1}, Extent3{8, 0, 8}, Extent3{2147483647, 2147483647, 0}}) {
    LaunchGeometry g = divide_grid("metal_kernel", Dialect::kMetal, grid, {4, 4, 4});
    EXPECT_EQ(g.threadgroups, 0u);
    // Sizes that are divided by are never 0.
    for (uint32_t size : g.threads_per_threadgroup) EXPECT_GE(size, 1u);
  }
}

// Positions are numbers of 31 bits, of which the compiler makes use.
TEST(LaunchGeometry, WholeBlocksHaveNoMoreThreadsThanAGridMayHave) {
  EXPECT_EQ(refusal({2147483647, 1, 1}, {96, 1, 1}, Dialect::kCuda),
            "[cuda_kernel] Expected each dimension of `grid`, in whole blocks, to be in [0, 2147483647] but got "
            "(2147483647, 1, 1) in blocks of (96, 1, 1).");
  EXPECT_EQ(refusal({1, 2147483647, 1}, {1, 64, 1}, Dialect::kCuda),
            "[cuda_kernel] Expected each dimension of `grid`, in whole blocks, to be in [0, 2147483647] but got "
            "(1, 2147483647, 1) in blocks of (1, 64, 1).");
  EXPECT_EQ(refusal({2147483584, 1, 1}, {64, 1, 1}, Dialect::kCuda), "nothing was thrown");
  EXPECT_EQ(refusal({2147483647, 1, 1}, {96, 1, 1}, Dialect::kMetal), "nothing was thrown");
  // Nothing runs.
  EXPECT_EQ(refusal({2147483647, 0, 1}, {96, 1, 1}, Dialect::kCuda), "nothing was thrown");
}

TEST(LaunchGeometry, CoversEachThreadOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    Extent3 grid, group;
    for (int d = 0; d < 3; ++d) {
      grid[d] = random() % 50;
      group[d] = 1 + random() % 10;
    }
    LaunchGeometry metal = divide_grid("metal_kernel", Dialect::kMetal, grid, group);
    LaunchGeometry cuda = divide_grid("cuda_kernel", Dialect::kCuda, grid, group);
    for (int d = 0; d < 3; ++d) {
      int64_t size = metal.threads_per_threadgroup[d], groups = metal.threadgroups_per_grid[d];
      EXPECT_EQ(metal.threads_per_grid[d], grid[d]);
      EXPECT_GE(groups * size, grid[d]);
      EXPECT_LT((groups - 1) * size, std::max<int64_t>(grid[d], 1));
      EXPECT_EQ(cuda.threads_per_grid[d], groups * size);
    }
  }
}

TEST(LaunchGeometry, TakesTheLargestThatItAllows) {
  EXPECT_EQ(divide_grid("metal_kernel", Dialect::kMetal, {2147483647, 1, 1}, {1024, 1, 1}).threadgroups, 2097152u);
  EXPECT_EQ(divide_grid("metal_kernel", Dialect::kMetal, {1 << 30, 1 << 30, 4}, {1, 1, 1}).threadgroups,
            uint64_t{1} << 62);
  EXPECT_EQ(divide_grid("metal_kernel", Dialect::kMetal, {64, 64, 64}, {8, 8, 16}).threadgroups, 256u);
}

TEST(LaunchGeometry, RefusesGridsOutsideTheirRange) {
  EXPECT_EQ(refusal({-1, 1, 1}, {1, 1, 1}),
            "[metal_kernel] Expected each dimension of `grid` to be in [0, 2147483647] but got (-1, 1, 1).");
  EXPECT_EQ(refusal({1, 1, 2147483648}, {1, 1, 1}),
            "[metal_kernel] Expected each dimension of `grid` to be in [0, 2147483647] but got (1, 1, 2147483648).");
  EXPECT_EQ(refusal({1, -5, 1}, {1, 1, 1}, Dialect::kCuda),
            "[cuda_kernel] Expected each dimension of `grid` to be in [0, 2147483647] but got (1, -5, 1).");
}

TEST(LaunchGeometry, RefusesThreadgroupsOutsideTheirRange) {
  EXPECT_EQ(refusal({1, 1, 1}, {0, 1, 1}),
            "[metal_kernel] Expected each dimension of `threadgroup` to be in [1, 2147483647] but got (0, 1, 1).");
  EXPECT_EQ(refusal({1, 1, 1}, {1, -2, 1}),
            "[metal_kernel] Expected each dimension of `threadgroup` to be in [1, 2147483647] but got (1, -2, 1).");
  EXPECT_EQ(refusal({1, 1, 1}, {1, 1, 2147483648}),
            "[metal_kernel] Expected each dimension of `threadgroup` to be in [1, 2147483647] but got "
            "(1, 1, 2147483648).");
}

TEST(LaunchGeometry, RefusesThreadgroupsOfMoreThan1024ThreadsAsGiven) {
  EXPECT_EQ(refusal({4, 4, 4}, {1025, 1, 1}),
            "[metal_kernel] Expected `threadgroup` to have at most 1024 threads but got (1025, 1, 1).");
  EXPECT_EQ(refusal({4, 4, 4}, {32, 32, 2}),
            "[metal_kernel] Expected `threadgroup` to have at most 1024 threads but got (32, 32, 2).");
  // Products beyond 64 bits, too.
  EXPECT_EQ(refusal({4, 4, 4}, {2147483647, 2147483647, 2147483647}),
            "[metal_kernel] Expected `threadgroup` to have at most 1024 threads but got "
            "(2147483647, 2147483647, 2147483647).");
}

TEST(LaunchGeometry, RefusesMoreThreadgroupsThanItCanCount) {
  EXPECT_EQ(refusal({2147483647, 2147483647, 2}, {1, 1, 1}),
            "[metal_kernel] Expected `grid` to have at most 2^62 threadgroups but got (2147483647, 2147483647, 2) in "
            "threadgroups of (1, 1, 1).");
  EXPECT_EQ(refusal({2147483647, 2147483647, 2147483647}, {1, 1, 1}),
            "[metal_kernel] Expected `grid` to have at most 2^62 threadgroups but got "
            "(2147483647, 2147483647, 2147483647) in threadgroups of (1, 1, 1).");
}

}  // namespace
}  // namespace kiln
