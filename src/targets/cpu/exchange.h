// What the threads of a simdgroup that wait together do with their values (CpuExchange in core/cpu_image.h).
#pragma once

#include <cstdint>

#include "core/cpu_image.h"
#include "core/launch_geometry.h"

namespace kiln {

// Of each lane; CpuThread::payload points to a lane's value.
struct ExchangedValues {
  uint64_t values[kSimdgroupSize];
  uint64_t operands[kSimdgroupSize];
  uint64_t results[kSimdgroupSize];
};

/// Writes results; those of the lanes in `mask`, which take part, mean something. Values and operands stay: other lanes
/// may wait at other sites with theirs. `combine`, the site's function, is called for reductions and scans only.
void exchange_values(const CpuSite& site, CpuCombineFunction combine, ExchangedValues& lanes, uint32_t mask);

}  // namespace kiln
