#include "targets/cpu/exchange.h"

#include <algorithm>

namespace kiln {
namespace {

constexpr uint32_t kLanes = 32;

bool takes_part(uint32_t mask, uint32_t lane) { return mask >> lane & 1; }

void shuffle(CpuPayload& lanes, uint32_t mask) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    auto source = static_cast<uint32_t>(lanes.operands[lane] % kLanes);
    lanes.results[lane] = takes_part(mask, source) ? lanes.values[source] : 0;
  }
}

void ballot(CpuPayload& lanes, uint32_t mask) {
  uint32_t votes = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    if (takes_part(mask, lane) && lanes.values[lane] != 0) votes |= uint32_t{1} << lane;
  std::fill_n(lanes.results, kLanes, votes);
}

void take_values(CpuPayload& lanes, uint32_t mask, uint64_t identity) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    lanes.results[lane] = takes_part(mask, lane) ? lanes.values[lane] : identity;
}

// After the step over `distance`, the lanes of a group of 2 * distance have one value: the group's first lane has it.
void reduce(uint32_t width, CpuCombineFunction combine, uint64_t* results) {
  for (uint32_t distance = 1; distance < width; distance *= 2)
    for (uint32_t lane = 0; lane < kLanes; lane += 2 * distance)
      results[lane] = combine(results[lane], results[lane + distance]);
  for (uint32_t lane = 0; lane < kLanes; ++lane) results[lane] = results[lane & ~(width - 1)];
}

void scan(uint32_t width, CpuCombineFunction combine, uint64_t* results) {
  for (uint32_t distance = 1; distance < width; distance *= 2)
    // From the last lane down: each still finds the step before in the lane that it takes.
    for (uint32_t lane = kLanes; lane-- > 0;)
      if ((lane & (width - 1)) >= distance) results[lane] = combine(results[lane - distance], results[lane]);
}

}  // namespace

void exchange_values(const CpuSite& site, CpuCombineFunction combine, CpuPayload& lanes, uint32_t mask) {
  switch (site.exchange) {
    case CpuExchange::kNone: break;
    case CpuExchange::kShuffle: shuffle(lanes, mask); break;
    case CpuExchange::kBallot: ballot(lanes, mask); break;
    case CpuExchange::kReduce:
      take_values(lanes, mask, site.identity);
      reduce(site.width, combine, lanes.results);
      break;
    case CpuExchange::kInclusiveScan:
    case CpuExchange::kExclusiveScan:
      take_values(lanes, mask, site.identity);
      scan(site.width, combine, lanes.results);
      if (site.exchange == CpuExchange::kInclusiveScan) break;
      for (uint32_t lane = kLanes; lane-- > 0;)
        lanes.results[lane] = lane & (site.width - 1) ? lanes.results[lane - 1] : site.identity;
      break;
  }
}

}  // namespace kiln
