// What the threads of a simdgroup that wait together do with their values (CpuExchange in core/cpu_image.h).
#pragma once

#include <cstdint>

#include "core/cpu_image.h"

namespace kiln {

/// Writes results; those of the lanes in `mask`, which take part, mean something. Values and operands stay: other lanes
/// may wait at other sites with theirs. `combine` is the site's function; null where it has none.
void exchange_values(const CpuSite& site, CpuCombineFunction combine, CpuPayload& lanes, uint32_t mask);

}  // namespace kiln
