// Lines of the caches, and asking for one before it is accessed.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

namespace kiln {

inline constexpr int64_t kCacheLine = 64;  // bytes

/// The cache that is to have a line, as LLVM counts them.
enum class Cache : uint32_t { kSecond = 2, kFirst = 3 };

/// Where the builder is. There may be nothing at the address: nobody is told.
inline void prefetch_line(llvm::IRBuilderBase& builder, llvm::Value* address, Cache cache) {
  // As data. To be written, too: x86-64-v3 and v4 have no instruction of their own for it.
  builder.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {address->getType()},
      {address, builder.getInt32(0), builder.getInt32(static_cast<uint32_t>(cache)), builder.getInt32(1)});
}

/// Whether it is a load that only brings its line into the cache, before the loads that use the line.
inline bool is_line_load(const llvm::Instruction& instruction) {
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
  return load && load->isVolatile() && load->use_empty();
}

}  // namespace kiln
