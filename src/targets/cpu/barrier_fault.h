// A barrier that only some of a threadgroup's threads can reach, or a `_sync` function of CUDA's that only some of
// those that its mask names can.
#pragma once

#include <cstdint>

namespace kiln {

struct BarrierFault {
  uint32_t line = 0;      // of the generated text, or what `#line` makes of it
  uint32_t waiting = 0;   // threads that wait there
  uint32_t expected = 0;  // threads of the threadgroup, or of those that the mask names, that have not returned
  bool is_masked = false;
};

}  // namespace kiln
