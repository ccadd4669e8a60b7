// Threads or threadgroups in x, y and z.
#pragma once

#include <array>
#include <cstdint>

namespace kiln {

using Extent3 = std::array<int64_t, 3>;

inline constexpr int64_t kSimdgroupSize = 32;

}  // namespace kiln
