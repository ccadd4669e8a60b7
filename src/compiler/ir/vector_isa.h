// A processor's vector registers, as passes see them.
#pragma once

namespace kiln {

struct VectorRegisters {
  unsigned count, bytes;
};

}  // namespace kiln
