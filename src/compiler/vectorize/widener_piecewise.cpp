#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/vectorize/widener.h"

namespace kiln::widening {

using namespace PatternMatch;

// Loads at a border, for elements that are not gathered: the lanes that are on the side of the pieces with one masked
// load, the others one by one. Which these are the addresses tell.
void Widener::load_beside_border(LoadInst& load, IRBuilder<>& builder) {
  auto [allowed, address] = guarded_address_of(load);
  const uint64_t bytes = layout_.getTypeStoreSize(load.getType());
  Type *number = builder.getInt64Ty(), *type = vector_of(load.getType());
  SmallVector<Constant*> steps;
  for (unsigned lane = 0; lane < kLanes; ++lane) steps.push_back(builder.getInt64(lane * bytes));
  Value* first = lane_scalars_.at_lane(address, 0, builder);
  Value* expected = builder.CreateAdd(builder.CreateVectorSplat(kLanes, builder.CreatePtrToInt(first, number)),
                                      ConstantVector::get(steps));
  Value* in_line =
      builder.CreateICmpEQ(builder.CreatePtrToInt(lanes_.vector(address, builder), vector_of(number)), expected);
  Value* all = lanes_.mask();
  Value* mask = lanes_.narrowed(all, in_line, builder);
  if (allowed) mask = lanes_.narrowed(mask, lanes_.vector(allowed, builder), builder);
  Value* loaded = builder.CreateMaskedLoad(type, first, load.getAlign(), mask, Constant::getNullValue(type));
  lanes_.set_mask(lanes_.narrowed(all, builder.CreateNot(in_line), builder));
  lane_loops_.for_each_lane(load, builder);
  lanes_.set_mask(all);
  lanes_.set_vector(&load, builder.CreateSelect(in_line, loaded, lanes_.known_vector(&load)));
}

}  // namespace kiln::widening
