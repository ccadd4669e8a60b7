#include "compiler/ir/lane_operations.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <array>
#include <utility>

#include "compiler/ir/pseudo_intrinsics.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr std::array<std::pair<LaneOperation, StringRef>, 7> kNames = {{
    {LaneOperation::kShuffle, kLanesShuffleFunction},
    {LaneOperation::kVote, kLanesVoteFunction},
    {LaneOperation::kTake, kLanesTakeFunction},
    {LaneOperation::kExchange, kLanesExchangeFunction},
    {LaneOperation::kUp, kLanesUpFunction},
    {LaneOperation::kFirst, kLanesFirstFunction},
    {LaneOperation::kMultiply, kLanesMultiplyFunction},
}};

}  // namespace

LaneOperation lane_operation(const Value* value) {
  const auto* call = dyn_cast<CallInst>(value);
  if (!call || !call->getCalledFunction()) return LaneOperation::kNone;
  const StringRef name = call->getCalledFunction()->getName().rtrim("0123456789");
  for (auto [operation, known] : kNames)
    if (name == known) return operation;
  return LaneOperation::kNone;
}

bool is_uniform_collective(const Value* value) {
  switch (lane_operation(value)) {
    case LaneOperation::kVote:
    case LaneOperation::kFirst: return true;
    case LaneOperation::kShuffle: return isa<Constant>(cast<CallInst>(value)->getArgOperand(1));
    default: return false;
  }
}

CallInst* call_lane_operation(IRBuilderBase& builder, LaneOperation operation, ArrayRef<Value*> arguments,
                              Type* result) {
  for (auto [known, name] : kNames) {
    if (known != operation) continue;
    SmallVector<Type*> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    Module& module = *builder.GetInsertBlock()->getModule();
    const unsigned bits = arguments[0]->getType()->getScalarSizeInBits();
    Function& function = pseudo_intrinsic(module, concat(name.str(), bits), FunctionType::get(result, types, false));
    return builder.CreateCall(&function, arguments);
  }
  throw InternalError("an unknown operation on lanes");
}

}  // namespace kiln
