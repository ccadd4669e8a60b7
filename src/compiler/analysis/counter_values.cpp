#include "compiler/analysis/counter_values.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace kiln {

using namespace llvm;

namespace {

constexpr unsigned kMostOrigins = 64;

bool is_arithmetic_of_integers(const Value& value) {
  if (!value.getType()->isIntegerTy()) return false;
  if (const auto* compare = dyn_cast<ICmpInst>(&value)) return compare->getOperand(0)->getType()->isIntegerTy();
  if (const auto* intrinsic = dyn_cast<IntrinsicInst>(&value)) return isa<MinMaxIntrinsic>(intrinsic);
  return isa<BinaryOperator, CastInst, FreezeInst, SelectInst>(value);
}

}  // namespace

bool becomes_constant(Value* value, const LoopInfo& loops, LoopSet& unrolled) {
  SmallVector<Value*> work{value};
  SmallPtrSet<Value*, 16> seen;
  for (unsigned steps = 0; !work.empty(); ++steps) {
    if (steps == kMostOrigins) return false;
    Value* origin = work.pop_back_val();
    if (isa<ConstantInt>(origin) || !seen.insert(origin).second) continue;
    if (auto* phi = dyn_cast<PHINode>(origin)) {
      // Where paths of an iteration join, structured control flow leaves phis of one value. Behind a loop such a phi
      // has the value of its last iteration, or of whichever exit was taken if there are several.
      if (Value* only = phi->hasConstantValue()) {
        auto* made = dyn_cast<Instruction>(only);
        for (Loop* around = made ? loops.getLoopFor(made->getParent()) : nullptr; around && !around->contains(phi);
             around = around->getParentLoop()) {
          if (!around->getExitingBlock()) return false;
          unrolled.insert(around);
        }
        work.push_back(only);
        continue;
      }
      Loop* loop = loops.getLoopFor(phi->getParent());
      if (!loop || loop->getHeader() != phi->getParent() || !phi->getType()->isIntegerTy()) return false;
      unrolled.insert(loop);
      work.append(phi->op_begin(), phi->op_end());
    } else if (is_arithmetic_of_integers(*origin)) {
      for (Value* operand : cast<Instruction>(origin)->operand_values())
        if (!isa<Function>(operand)) work.push_back(operand);
    } else {
      return false;
    }
  }
  return true;
}

uint64_t constant_trips(Loop& loop, ScalarEvolution& evolution) {
  SmallVector<BasicBlock*> exiting;
  loop.getExitingBlocks(exiting);
  uint64_t fewest = 0;
  for (BasicBlock* block : exiting)
    if (uint64_t count = evolution.getSmallConstantTripCount(&loop, block); count != 0)
      fewest = fewest == 0 ? count : std::min(fewest, count);
  return fewest;
}

}  // namespace kiln
