// What passes know of a processor's vectors.
#pragma once

namespace kiln {

struct VectorRegisters {
  unsigned count, bytes;
};

}  // namespace kiln
