// What is known of each lane's number at compile time, because it depends on the lane index and constants alone. Pure
// functions of the thread's code. Each follows a value through six operations in a row at most.
#pragma once

#include <llvm/ADT/APInt.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Value.h>

#include <array>
#include <optional>

#include "compiler/analysis/structured_flow.h"
#include "compiler/ir/simdgroup.h"

namespace kiln::widening {

using namespace llvm;

/// Each lane's value, if it depends on the lane only.
std::optional<std::array<APInt, kLanes>> values_of(Value* value, unsigned depth = 0);

/// The bits of a lane's value that come from the lane index, if the others come from uniform values:
/// `(first | lane) << 6 & 0x7e00`.
std::optional<std::array<APInt, kLanes>> lane_bits(Value* value, const StructuredFlow& flow, const DataLayout& layout,
                                                   unsigned depth = 0);

/// Whether the arithmetic that computes the value wraps exactly as the value itself does.
bool is_modular(Value* value, const StructuredFlow& flow, const DataLayout& layout);

}  // namespace kiln::widening
