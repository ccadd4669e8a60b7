#include "targets/cpu/row_updates.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "concurrent.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

constexpr int kLanes = 32;
constexpr uint32_t kAll = ~uint32_t{0};
constexpr int64_t kNoLimit = int64_t{1} << 61;

class RowUpdates : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "the SIMD engine needs AVX2";
    if (GetParam()) launch_.striped_locks = locks_.data();
  }

  static CpuRowUpdate function(const char* name) {
    return reinterpret_cast<CpuRowUpdate>(const_cast<void*>(find_row_update(name)));
  }

  std::vector<CpuStripedLock> locks_{kCpuStripedLocks};
  CpuLaunch launch_{};
};

TEST_P(RowUpdates, ChangeTheLanesThatTakePartAndAreInside) {
  std::mt19937 random(7);
  std::array<float, kLanes> operands;
  for (int lane = 0; lane < kLanes; ++lane) operands[static_cast<size_t>(lane)] = static_cast<float>(lane + 1);
  for (int round = 0; round < 2000; ++round) {
    constexpr int64_t kLength = 50;
    std::vector<float> array(3 * kLength, 100.0f), expected = array;
    const auto first = static_cast<int64_t>(random() % 90) - 40;  // of an array of kLength in the middle
    const uint32_t lanes = round % 3 == 0 ? kAll : static_cast<uint32_t>(random());
    const bool adds = round % 2 == 0;
    for (int lane = 0; lane < kLanes; ++lane)
      if (lanes >> lane & 1 && first + lane >= 0 && first + lane < kLength)
        expected[static_cast<size_t>(kLength + first + lane)] += static_cast<float>(adds ? lane + 1 : -lane - 1);
    const int64_t offset = first * int64_t{sizeof(float)};
    function(adds ? kAddToRow : kSubtractFromRow)(&launch_, array.data() + kLength + first, operands.data(), lanes,
                                                  offset, kLength * int64_t{sizeof(float)}, offset);
    ASSERT_EQ(array, expected) << round;
    for (const CpuStripedLock& lock : locks_) ASSERT_EQ(lock.is_held, 0u);
  }
}

TEST_P(RowUpdates, LeaveAloneWhatIsFarOutside) {
  std::array<float, kLanes> operands{};
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  for (int64_t offset : {least, least + 4, least + 4096, most, most - 3, most - 127, int64_t{-128}, int64_t{4096}})
    function(kAddToRow)(&launch_, nullptr, operands.data(), kAll, offset, 4096, 0);
}

// Others' operands need not be there.
TEST_P(RowUpdates, ReadOneOperandForOneLane) {
  const auto operand = std::make_unique<float>(2.0f);
  float number = 1;
  function(kAddToRow)(&launch_, &number, operand.get(), 1, 0, kNoLimit, 508);
  EXPECT_EQ(number, 3.0f);
}

TEST_P(RowUpdates, LoseNothingWhereThreadsMeet) {
  constexpr int kThreads = 4, kRounds = 20000, kLength = 400;
  std::vector<float> array(kLength);
  std::vector<std::vector<float>> added(kThreads, std::vector<float>(kLength));
  in_threads(kThreads, [&](int number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::array<float, kLanes> operands;
    operands.fill(1.0f);
    std::vector<float>& own = added[static_cast<size_t>(number)];
    for (int round = 0; round < kRounds; ++round) {
      const size_t first = random() % (kLength - kLanes);
      const uint32_t lanes = round % 2 == 0 ? kAll : static_cast<uint32_t>(random());
      const auto offset = static_cast<int64_t>(first * sizeof(float));
      function(kAddToRow)(&launch_, array.data() + first, operands.data(), lanes, offset, kNoLimit, offset);
      for (size_t lane = 0; lane < kLanes; ++lane) own[first + lane] += static_cast<float>(lanes >> lane & 1);
    }
  });
  for (size_t i = 0; i < kLength; ++i) {
    float sum = 0;
    for (const std::vector<float>& own : added) sum += own[i];
    ASSERT_EQ(array[i], sum) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(WithLocks, RowUpdates, testing::Bool());

TEST(RowUpdateNames, OthersAreNobodys) { EXPECT_EQ(find_row_update("__kiln_add"), nullptr); }

}  // namespace
}  // namespace kiln
