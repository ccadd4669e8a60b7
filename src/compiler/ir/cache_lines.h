// Cache lines and software prefetch.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

namespace kiln {

inline constexpr int64_t kCacheLine = 64;  // bytes

/// The cache that a prefetch fills, in LLVM's numbering.
enum class Cache : uint32_t { kSecond = 2, kFirst = 3 };

/// Prefetches at the insertion point. The address need not be mapped: a prefetch does not fault.
inline void prefetch_line(llvm::IRBuilderBase& builder, llvm::Value* address, Cache cache) {
  // As data to read. Also for lines that are written: not every processor has a prefetch for writing.
  builder.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {address->getType()},
      {address, builder.getInt32(0), builder.getInt32(static_cast<uint32_t>(cache)), builder.getInt32(1)});
}

/// Whether the instruction is a load that only brings its line into the cache, ahead of the loads that use the line.
inline bool is_line_load(const llvm::Instruction& instruction) {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
  return load && load->isVolatile() && load->use_empty();
}

}  // namespace kiln
