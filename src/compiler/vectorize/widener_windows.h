// Numbers of elements in windows, the aligned ranges of twice as many elements as a part has lanes
// (widener_windows.cpp). Pure functions, in constant time.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace kiln::widening {

using namespace llvm;

inline constexpr unsigned kWindowRegisters = 2;
// A window begins whole words before the lanes' own elements, which may be aligned better.
inline constexpr Align kWindowAlignment = Align::Constant<sizeof(uint32_t)>();

/// Whether an address is in threadgroup memory, whichever variable it belongs to.
bool is_in_threadgroup_memory(const Value* address);

inline Value* splat(Value* value, unsigned width, IRBuilder<>& builder) {
  return builder.CreateVectorSplat(width, value);
}

inline Constant* words_from(unsigned first, unsigned count, IRBuilder<>& builder) {
  SmallVector<Constant*> words;
  for (unsigned i = first; i < first + count; ++i) words.push_back(builder.getInt32(i));
  return ConstantVector::get(words);
}

inline Value* all_of_lanes(Value* lanes, IRBuilder<>& builder) {
  Type* bits = builder.getIntNTy(cast<FixedVectorType>(lanes->getType())->getNumElements());
  return builder.CreateICmpEQ(builder.CreateBitCast(lanes, bits), ConstantInt::getAllOnesValue(bits));
}

// The number with a 0 inserted before the bit that `below` ends at, and without the bit there.
inline Value* with_zero_inserted(Value* numbers, Value* below, IRBuilder<>& builder) {
  Value* rest = builder.CreateShl(builder.CreateAnd(numbers, builder.CreateNot(below)), 1);
  return builder.CreateOr(builder.CreateAnd(numbers, below), rest);
}

inline Value* with_bit_removed(Value* numbers, Value* below, IRBuilder<>& builder) {
  Value* rest = builder.CreateAnd(builder.CreateLShr(numbers, 1), builder.CreateNot(below));
  return builder.CreateOr(builder.CreateAnd(numbers, below), rest);
}

}  // namespace kiln::widening
