#include "core/launch_form.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace kiln {
namespace {

// All that differ in a member.
std::vector<LaunchForm> every_form() {
  std::vector<LaunchForm> forms;
  constexpr std::array<std::array<uint16_t, 3>, 5> kThreads = {
      {{0, 0, 0}, {1, 1, 1}, {1024, 1, 1}, {1, 1024, 1}, {1, 1, 1024}}};
  for (unsigned bits = 0; bits < 128; ++bits)
    for (uint32_t simdgroups : {0, 1, 2, 4, 8, 16, 32})
      for (uint32_t row : {0, 2, 4, 8, 16, 32, 64, 128, 256, 512})
        for (const auto& threads : kThreads)
          forms.push_back({(bits & 1) != 0, (bits & 2) != 0, simdgroups, (bits & 4) != 0, (bits & 8) != 0, row,
                           (bits & 64) != 0, (bits & 16) != 0, (bits & 32) != 0, threads});
  return forms;
}

TEST(LaunchForm, EachHasANumberOfItsOwn) {
  std::set<uint64_t> numbers;
  for (const LaunchForm& form : every_form()) numbers.insert(form.packed());
  EXPECT_EQ(numbers.size(), every_form().size());
}

TEST(LaunchForm, OnlyTheDefaultIsGeneral) {
  for (const LaunchForm& form : every_form()) EXPECT_EQ(form.is_general(), form.packed() == 0);
}

TEST(LaunchForm, DescribesALaunch) {
  EXPECT_TRUE(launch_form({7, 1, 1}, {7, 1, 1}).is_general());
  EXPECT_TRUE(launch_form({17, 5, 1}, {17, 5, 1}).is_general());
  EXPECT_TRUE(launch_form({7, 5, 1}, {7, 5, 1}).is_general());
  EXPECT_TRUE(launch_form({3, 5, 1}, {3, 5, 1}).is_general());
  EXPECT_EQ(launch_form({3, 50, 1}, {3, 22, 1}), (LaunchForm{.rows_are_short = true}));
  EXPECT_EQ(launch_form({16, 1, 30}, {8, 1, 9}), (LaunchForm{.rows_are_short = true}));
  EXPECT_EQ(launch_form({256, 1, 1}, {256, 1, 1}), (LaunchForm{true, true, 8, true, true}));
  EXPECT_EQ(launch_form({96, 1, 1}, {96, 1, 1}), (LaunchForm{true, false, 0, true, true}));
  // The last threadgroup of a row is smaller.
  EXPECT_EQ(launch_form({100, 1, 1}, {64, 1, 1}), (LaunchForm{true, true, 2, false, false}));
  // Simdgroups of several rows.
  EXPECT_EQ(launch_form({8, 4, 1}, {8, 4, 1}), (LaunchForm{false, false, 1, false, true, 8}));
  EXPECT_EQ(launch_form({64, 64, 1}, {16, 16, 1}), (LaunchForm{false, false, 8, false, true, 16}));
  EXPECT_EQ(launch_form({64, 64, 1}, {32, 8, 1}), (LaunchForm{true, false, 8, false, true, 32}));
  // Rows of several simdgroups, if there are 2, 4, 8, 16 or 32 in all.
  EXPECT_EQ(launch_form({128, 64, 1}, {64, 4, 1}), (LaunchForm{true, true, 8, false, true, 64}));
  EXPECT_EQ(launch_form({256, 6, 1}, {256, 3, 1}), (LaunchForm{true, true, 0, false, true}));
  EXPECT_EQ(launch_form({512, 6, 1}, {512, 2, 1}), (LaunchForm{true, true, 32, false, true, 512}));
  EXPECT_EQ(launch_form({96, 4, 1}, {64, 4, 1}), (LaunchForm{true, true, 0, false, true}));
  EXPECT_EQ(launch_form({128, 4, 2}, {64, 2, 2}), (LaunchForm{true, true, 0, false, true}));
  EXPECT_EQ(launch_form({128, 4, 1}, {64, 3, 1}), (LaunchForm{true, true, 0, false, true}));
  EXPECT_EQ(launch_form({24, 4, 1}, {24, 4, 1}), (LaunchForm{false, false, 0, false, true}));
  // Threadgroups at the grid's edge have fewer rows, but each has whole simdgroups.
  EXPECT_EQ(launch_form({64, 20, 1}, {16, 16, 1}), (LaunchForm{false, false, 8, false, true, 16}));
  EXPECT_EQ(launch_form({64, 21, 1}, {16, 16, 1}), (LaunchForm{}));
  // Not of a power of two, or in several planes.
  EXPECT_EQ(launch_form({16, 12, 1}, {16, 12, 1}), (LaunchForm{false, false, 0, false, true, 16, true}));
  EXPECT_EQ(launch_form({16, 4, 4}, {16, 4, 4}), (LaunchForm{false, false, 0, false, true, 16, true}));
}

TEST(LaunchForm, ShortRowsHaveThreadgroupsOfSeveral) {
  auto of = [](const Extent3& grid, const Extent3& threadgroup) {
    return threadgroup_of_short_rows(grid, threadgroup);
  };
  EXPECT_EQ(of({4, 1000, 1}, {4, 1, 1}), (Extent3{4, 32, 1}));
  EXPECT_EQ(of({8, 1000, 5}, {256, 1, 1}), (Extent3{8, 16, 1}));
  EXPECT_EQ(of({3, 1000, 1}, {1, 1, 1}), (Extent3{3, 42, 1}));
  EXPECT_EQ(of({1, 1000, 1}, {1, 2, 1}), (Extent3{1, 128, 1}));
  EXPECT_EQ(of({4, 8, 100}, {4, 2, 2}), (Extent3{4, 8, 4}));
  EXPECT_EQ(of({2, 1, 100}, {2, 1, 1}), (Extent3{2, 1, 64}));
  // Of other lengths, of enough threads already, or a single row.
  EXPECT_EQ(of({5, 1000, 1}, {5, 1, 1}), (Extent3{5, 1, 1}));
  EXPECT_EQ(of({32, 1000, 1}, {32, 1, 1}), (Extent3{32, 1, 1}));
  EXPECT_EQ(of({4, 1000, 1}, {4, 32, 1}), (Extent3{4, 32, 1}));
  EXPECT_EQ(of({4, 1, 1}, {4, 1, 1}), (Extent3{4, 1, 1}));
  EXPECT_EQ(of({0, 1000, 1}, {4, 1, 1}), (Extent3{4, 1, 1}));
  EXPECT_EQ(of({4, 0, 7}, {4, 1, 1}), (Extent3{4, 1, 1}));
}

TEST(LaunchForm, EvenThreadgroupsHaveTheHardwaresPositions) {
  EXPECT_TRUE(has_even_threadgroups({256, 12, 4}, {32, 4, 2}));
  EXPECT_TRUE(has_even_threadgroups({8, 4, 1}, {32, 8, 8}));  // one, as large as the grid
  EXPECT_FALSE(has_even_threadgroups({250, 12, 4}, {32, 4, 2}));
  EXPECT_TRUE(has_even_threadgroups({1, 65535, 65535}, {1, 1, 1}));
  EXPECT_FALSE(has_even_threadgroups({1, 65536, 1}, {1, 1, 1}));
  EXPECT_TRUE(has_even_threadgroups({1, 1, 64}, {1, 1, 64}));
  EXPECT_FALSE(has_even_threadgroups({1, 1, 128}, {1, 1, 128}));
  EXPECT_FALSE(has_even_threadgroups({0, 1, 1}, {32, 1, 1}));
}

TEST(LaunchForm, AnExampleHasItsForm) {
  for (const Extent3& grid : {Extent3{1, 1, 1},
                              {64, 1, 1},
                              {96, 1, 1},
                              {128, 3, 1},
                              {100, 1, 1},
                              {8, 4, 1},
                              {3, 64, 1},
                              {48, 48, 2},
                              {2048, 2, 2}})
    for (const Extent3& threadgroup : {Extent3{1, 1, 1},
                                       {32, 1, 1},
                                       {64, 1, 1},
                                       {96, 1, 1},
                                       {32, 4, 1},
                                       {64, 4, 1},
                                       {128, 2, 1},
                                       {16, 16, 1},
                                       {8, 8, 2},
                                       {4, 24, 1},
                                       {24, 4, 1},
                                       {1024, 1, 1}}) {
      LaunchForm form = launch_form(grid, threadgroup);
      LaunchExtents example = example_of(form);
      EXPECT_EQ(launch_form(example.grid, example.threadgroup), form);
    }
}

}  // namespace
}  // namespace kiln
