#include "targets/cpu/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace kiln {
namespace {

struct Layout {
  std::vector<int64_t> shape, strides;

  // Element (0, …, 0) and all others, in the order of a plain loop.
  std::vector<int64_t> places() const {
    std::vector<int64_t> result;
    std::vector<int64_t> index(shape.size());
    if (std::ranges::count(shape, 0)) return result;
    for (;;) {
      result.push_back(std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}));
      size_t d = shape.size();
      while (d-- > 0) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
      if (d == static_cast<size_t>(-1)) return result;
    }
  }
};

template <typename T>
void expect_copied(const Layout& layout) {
  std::vector<int64_t> places = layout.places();
  int64_t low = 0, high = 0;
  for (int64_t place : places) low = std::min(low, place), high = std::max(high, place);
  std::vector<T> source(static_cast<size_t>(high - low + 1));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<T>(i * 2654435761u + 1);
  std::vector<T> expected;
  for (int64_t place : places) expected.push_back(source[static_cast<size_t>(place - low)]);
  // One element more, which must stay as it is.
  std::vector<T> out(places.size() + 1, static_cast<T>(42));
  expected.push_back(42);
  copy_strided(source.data() - low, layout.shape, layout.strides, sizeof(T), out.data());
  ASSERT_EQ(out, expected) << ::testing::PrintToString(layout.shape) << " " << ::testing::PrintToString(layout.strides);
}

void expect_copied_for_all_sizes(const Layout& layout) {
  expect_copied<uint8_t>(layout);
  expect_copied<uint16_t>(layout);
  expect_copied<uint32_t>(layout);
  expect_copied<uint64_t>(layout);
}

TEST(StridedCopy, CopiesWhatIsContiguous) {
  expect_copied_for_all_sizes({{}, {}});
  expect_copied_for_all_sizes({{1}, {5}});
  expect_copied_for_all_sizes({{7}, {1}});
  expect_copied_for_all_sizes({{3, 4, 5}, {20, 5, 1}});
}

TEST(StridedCopy, CopiesEveryKindOfView) {
  expect_copied_for_all_sizes({{4, 5}, {1, 4}});    // transposed
  expect_copied_for_all_sizes({{4, 5}, {10, 2}});   // every second
  expect_copied_for_all_sizes({{6}, {-1}});         // reversed
  expect_copied_for_all_sizes({{4, 5}, {-5, -1}});  // reversed twice
  expect_copied_for_all_sizes({{4, 5}, {0, 1}});    // broadcast
  expect_copied_for_all_sizes({{4, 5}, {0, 0}});
  expect_copied_for_all_sizes({{2, 3, 4}, {1, 8, 2}});
  expect_copied_for_all_sizes({{5, 5}, {1, 1}});  // overlapping
}

TEST(StridedCopy, CopiesNothingOfAnEmptyArray) {
  expect_copied_for_all_sizes({{0}, {1}});
  expect_copied_for_all_sizes({{3, 0, 2}, {7, 1, -4}});
}

TEST(StridedCopy, EqualsAPlainLoopOnRandomLayouts) {
  std::mt19937 random(4);
  for (int round = 0; round < 3000; ++round) {
    Layout layout;
    int64_t dense = 1;
    size_t rank = random() % 6;
    layout.shape.resize(rank);
    layout.strides.resize(rank);
    for (size_t d = rank; d-- > 0;) {
      layout.shape[d] = random() % 12 == 0 ? 0 : 1 + random() % 5;
      switch (random() % 4) {
        case 0: layout.strides[d] = static_cast<int64_t>(random() % 21) - 10; break;
        case 1: layout.strides[d] = -dense; break;
        default: layout.strides[d] = dense;
      }
      dense *= std::max<int64_t>(1, layout.shape[d]);
    }
    if (layout.strides.size() > 1 && random() % 3 == 0) {
      std::swap(layout.strides[0], layout.strides[1]);
      std::swap(layout.shape[0], layout.shape[1]);
    }
    switch (random() % 4) {
      case 0: expect_copied<uint8_t>(layout); break;
      case 1: expect_copied<uint16_t>(layout); break;
      case 2: expect_copied<uint32_t>(layout); break;
      default: expect_copied<uint64_t>(layout);
    }
  }
}

}  // namespace
}  // namespace kiln
