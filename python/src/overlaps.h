// Memory that a caller gives for a call's outputs.
#pragma once

#include <span>
#include <string_view>

#include "array_library.h"
#include "runtime/call.h"

namespace kiln::python {

// An array, and how messages name it.
struct NamedArray {
  ArgumentName name;
  InputArray array;
};

/// Whether there is a byte that both arrays have between their first element and their last.
bool overlap(const InputArray& one, const InputArray& other);

/// Throws ValueError where memory that is written is also read, or written as another output. `prefix`:
/// "[metal_kernel] ".
void check_overlaps(std::string_view prefix, std::span<const NamedArray> inputs, std::span<const NamedArray> outputs);

}  // namespace kiln::python
