#include "core/array_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "kiln/error.h"

namespace kiln {
namespace {

using Sizes = std::vector<int64_t>;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

std::string message_of(const auto& function) {
  try {
    function();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// The place of every element, in the order of their indices with the last dimension fastest.
Sizes places(const Sizes& shape, const Sizes& strides) {
  Sizes result = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    Sizes next;
    for (int64_t place : result)
      for (int64_t i = 0; i < shape[d]; ++i) next.push_back(place + i * strides[d]);
    result = next;
  }
  return result;
}

TEST(ElementCount, IsTheProductOfTheDimensions) {
  EXPECT_EQ(element_count(Sizes{}), 1);
  EXPECT_EQ(element_count(Sizes{7}), 7);
  EXPECT_EQ(element_count(Sizes{2, 3, 4}), 24);
  EXPECT_EQ(element_count(Sizes{0}), 0);
  EXPECT_EQ(element_count(Sizes{3, 0, 5}), 0);
  EXPECT_EQ(element_count(Sizes{kMax}), kMax);
  EXPECT_EQ(element_count(Sizes{kMax, 1, 1}), kMax);
}

TEST(ElementCount, IsZeroForAnEmptyArrayWhateverItsOtherDimensions) {
  EXPECT_EQ(element_count(Sizes{int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
  EXPECT_EQ(element_count(Sizes{0, kMax, kMax}), 0);
}

TEST(ElementCount, RefusesWhatDoesNotFit) {
  EXPECT_EQ(message_of([] { element_count(Sizes{int64_t{1} << 32, int64_t{1} << 31}); }),
            "array has more than 2^63 - 1 elements");
  EXPECT_EQ(message_of([] { element_count(Sizes{kMax, 2}); }), "array has more than 2^63 - 1 elements");
  EXPECT_EQ(message_of([] { element_count(Sizes{2, -1}); }), "array dimension -1 is negative");
  // Also where another dimension makes the array empty.
  EXPECT_EQ(message_of([] { element_count(Sizes{0, -3}); }), "array dimension -3 is negative");
}

TEST(RowContiguity, IsThatElementsFollowOneAnother) {
  std::mt19937 random(1);
  int contiguous = 0;
  for (int round = 0; round < 20000; ++round) {
    size_t rank = random() % 4;
    Sizes shape(rank), strides(rank);
    int64_t dense = 1;
    for (size_t d = rank; d-- > 0;) {
      shape[d] = random() % 4;
      strides[d] = random() % 3 ? dense : static_cast<int64_t>(random() % 9) - 4;
      dense *= shape[d];
    }
    Sizes where = places(shape, strides);
    bool expected = true;
    for (size_t i = 0; i < where.size(); ++i) expected = expected && where[i] == static_cast<int64_t>(i);
    ASSERT_EQ(is_row_contiguous(shape, strides), expected)
        << ::testing::PrintToString(shape) << " " << ::testing::PrintToString(strides);
    contiguous += expected;
  }
  EXPECT_GT(contiguous, 2000);
  EXPECT_LT(contiguous, 18000);
}

TEST(RowContiguity, LooksAtNoStrideOfADimensionOfOneElement) {
  EXPECT_TRUE(is_row_contiguous(Sizes{1, 3, 1}, Sizes{-7, 1, 99}));
}

TEST(RowContiguity, DoesNotOverflowOnEmptyArrays) {
  EXPECT_TRUE(is_row_contiguous(Sizes{0, kMax, kMax}, Sizes{0, kMax, 1}));
}

TEST(ElementRange, ReachesFromTheLowestToTheHighestElement) {
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    size_t rank = random() % 5;
    Sizes shape(rank), strides(rank);
    for (size_t d = 0; d < rank; ++d) {
      shape[d] = random() % 4;
      strides[d] = static_cast<int64_t>(random() % 21) - 10;
    }
    Sizes where = places(shape, strides);
    ElementRange expected;
    if (!where.empty()) expected = {*std::ranges::min_element(where), *std::ranges::max_element(where) + 1};
    ASSERT_EQ(element_range(shape, strides), expected)
        << ::testing::PrintToString(shape) << " " << ::testing::PrintToString(strides);
  }
}

TEST(ElementRange, ReachesAsFarAsInt64Does) {
  EXPECT_EQ(element_range(Sizes{2}, Sizes{kMax - 1}), (ElementRange{0, kMax}));
  EXPECT_EQ(element_range(Sizes{2}, Sizes{kMin}), (ElementRange{kMin, 1}));
  EXPECT_EQ(element_range(Sizes{2, 2}, Sizes{kMax - 1, kMin}), (ElementRange{kMin, kMax}));
}

TEST(ElementRange, RefusesStridesThatReachTooFar) {
  const char* message = "array's strides reach beyond 2^63 elements";
  EXPECT_EQ(message_of([] { element_range(Sizes{2}, Sizes{kMax}); }), message);
  EXPECT_EQ(message_of([] { element_range(Sizes{3}, Sizes{kMax}); }), message);
  EXPECT_EQ(message_of([] { element_range(Sizes{3}, Sizes{kMin}); }), message);
  EXPECT_EQ(message_of([] { element_range(Sizes{2, 2}, Sizes{kMin, -1}); }), message);
  EXPECT_EQ(message_of([] { element_range(Sizes{2, 2}, Sizes{kMax - 1, 1}); }), message);
}

TEST(ElementRange, OfAnEmptyArrayIsEmptyWhateverItsStrides) {
  EXPECT_EQ(element_range(Sizes{kMax, 0}, Sizes{kMax, 1}), (ElementRange{0, 0}));
  EXPECT_EQ(element_range(Sizes{0, kMax}, Sizes{1, kMax}), (ElementRange{0, 0}));
}

TEST(ByteCount, IsThatOfAllElements) {
  EXPECT_EQ(byte_count(Sizes{}, Dtype::kFloat64), 8);
  EXPECT_EQ(byte_count(Sizes{3, 5}, Dtype::kInt16), 30);
  EXPECT_EQ(byte_count(Sizes{kMax, 0}, Dtype::kInt64), 0);
  EXPECT_EQ(byte_count(Sizes{int64_t{1} << 60}, Dtype::kFloat32), int64_t{1} << 62);
}

TEST(ByteCount, RefusesWhatExceedsInt64) {
  const char* message = "array has more than 2^63 - 1 bytes";
  EXPECT_EQ(message_of([] { byte_count(Sizes{1 << 30, 1 << 30, 2}, Dtype::kInt64); }), message);
  EXPECT_EQ(message_of([] { byte_count(Sizes{int64_t{1} << 60}, Dtype::kInt64); }), message);
}

TEST(ByteRange, IsThatOfTheElements) {
  EXPECT_EQ(byte_range(Sizes{3, 2}, Sizes{-2, 5}, Dtype::kFloat32), (ElementRange{-16, 24}));
  EXPECT_EQ(message_of([] { byte_range(Sizes{2}, Sizes{kMax - 1}, Dtype::kFloat32); }),
            "array's strides reach beyond 2^63 bytes");
}

}  // namespace
}  // namespace kiln
