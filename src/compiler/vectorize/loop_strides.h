// Differences of an address from one iteration of a loop to the next one. (Those from lane to lane: lane_strides.h.)
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/DataLayout.h>

#include <cstdint>
#include <optional>

namespace kiln {

struct LoopStride {
  int64_t bytes;
  bool may_wrap;  // as far as is known, a narrow index, before it is extended
};

/// Nothing if the difference is not the same constant for all iterations.
std::optional<LoopStride> loop_stride_of(llvm::Value* address, const llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                                         const llvm::DataLayout& layout);

}  // namespace kiln
