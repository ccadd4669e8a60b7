// Exchanges against the definitions in core/cpu_image.h, written down once more, lane for lane.
#include "targets/cpu/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>

namespace kiln {
namespace {

using Lanes = std::array<uint64_t, 32>;

// The order of combining shows: none is associative, the last not even commutative.
uint64_t add_floats(uint64_t a, uint64_t b) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(static_cast<uint32_t>(a)) +
                                 std::bit_cast<float>(static_cast<uint32_t>(b)));
}
uint64_t mix(uint64_t a, uint64_t b) { return (a + b) * 0x9e3779b97f4a7c15u ^ a * b; }

uint64_t weigh(uint64_t a, uint64_t b) { return 2 * a + b; }

uint64_t identity_of(CpuCombineFunction combine) { return combine == add_floats ? 0 : 77; }

Lanes reduced(uint32_t width, CpuCombineFunction combine, Lanes lanes) {
  for (uint32_t distance = 1; distance < width; distance *= 2) {
    Lanes before = lanes;
    for (uint32_t lane = 0; lane < 32; ++lane) lanes[lane] = combine(before[lane & ~distance], before[lane | distance]);
  }
  return lanes;
}

Lanes scanned(uint32_t width, CpuCombineFunction combine, Lanes lanes) {
  for (uint32_t distance = 1; distance < width; distance *= 2) {
    Lanes before = lanes;
    for (uint32_t lane = 0; lane < 32; ++lane)
      if (lane % width >= distance) lanes[lane] = combine(before[lane - distance], before[lane]);
  }
  return lanes;
}

Lanes moved_up(uint32_t width, uint64_t identity, const Lanes& lanes) {
  Lanes moved;
  for (uint32_t lane = 0; lane < 32; ++lane) moved[lane] = lane % width == 0 ? identity : lanes[lane - 1];
  return moved;
}

class Exchange : public testing::Test {
 protected:
  Exchange() {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      lanes_.values[lane] = std::bit_cast<uint32_t>(std::normal_distribution<float>()(random_));
      lanes_.operands[lane] = random_();
      lanes_.results[lane] = random_();
    }
    before_ = lanes_;
  }

  // The results, after seeing that nothing else was written.
  Lanes exchange(CpuExchange kind, uint32_t mask, uint32_t width = 32, CpuCombineFunction combine = nullptr) {
    CpuSite site{};
    site.exchange = kind;
    site.width = width;
    site.identity = identity_of(combine);
    lanes_ = before_;
    exchange_values(site, combine, lanes_, mask);
    EXPECT_TRUE(std::ranges::equal(lanes_.values, before_.values));
    EXPECT_TRUE(std::ranges::equal(lanes_.operands, before_.operands));
    return std::to_array(lanes_.results);
  }

  // The values, with the identity in lanes that take no part.
  Lanes values(uint32_t mask, uint64_t identity) const {
    Lanes lanes;
    for (uint32_t lane = 0; lane < 32; ++lane) lanes[lane] = mask >> lane & 1 ? before_.values[lane] : identity;
    return lanes;
  }

  std::mt19937 random_{7};
  CpuPayload lanes_, before_;
};

constexpr uint32_t kMasks[] = {~0u, 1u, 1u << 31, 0x80000001u, 0x0000ffffu, 0xaaaaaaaau, 0x12345678u};

TEST_F(Exchange, LeavesResultsWhereNothingIsExchanged) {
  EXPECT_EQ(exchange(CpuExchange::kNone, ~0u), std::to_array(before_.results));
}

TEST_F(Exchange, ShufflesTakeTheNamedLanesValue) {
  for (uint32_t mask : kMasks) {
    Lanes results = exchange(CpuExchange::kShuffle, mask);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t source = before_.operands[lane] & 31;
      EXPECT_EQ(results[lane], mask >> source & 1 ? before_.values[source] : 0) << lane;
    }
  }
}

TEST_F(Exchange, BallotsAskTheLanesThatTakePart) {
  for (uint32_t lane = 0; lane < 32; lane += 3) before_.values[lane] = 0;
  before_.values[1] = uint64_t{1} << 63;
  for (uint32_t mask : kMasks) {
    uint32_t votes = 0;
    for (uint32_t lane = 0; lane < 32; ++lane)
      if (lane % 3 != 0) votes |= mask & uint32_t{1} << lane;
    Lanes expected;
    expected.fill(votes);
    EXPECT_EQ(exchange(CpuExchange::kBallot, mask), expected);
  }
}

TEST_F(Exchange, ReductionsAndScansCombineInTheirOrder) {
  for (CpuCombineFunction combine : {add_floats, mix, weigh})
    for (uint32_t width : {1u, 2u, 4u, 8u, 16u, 32u})
      for (uint32_t mask : kMasks) {
        uint64_t identity = identity_of(combine);
        Lanes lanes = values(mask, identity), scan = scanned(width, combine, lanes);
        EXPECT_EQ(exchange(CpuExchange::kReduce, mask, width, combine), reduced(width, combine, lanes));
        EXPECT_EQ(exchange(CpuExchange::kInclusiveScan, mask, width, combine), scan);
        EXPECT_EQ(exchange(CpuExchange::kExclusiveScan, mask, width, combine), moved_up(width, identity, scan));
      }
}

}  // namespace
}  // namespace kiln
