#include "compiler/ir/rematerialize.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>

namespace kiln {

using namespace llvm;

namespace {

constexpr unsigned kMostInstructions = 24;

bool is_at_hand(const Use& operand, IsThere is_there) {
  return isa<Argument, Constant>(operand.get()) || is_there(operand);
}

bool is_cheap(const Instruction& instruction, IsThere is_there, unsigned& cost) {
  if (++cost > kMostInstructions) return false;
  if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
    if (!load->hasMetadata(LLVMContext::MD_invariant_load)) return false;
  } else if (const auto* operation = dyn_cast<BinaryOperator>(&instruction)) {
    if (operation->isIntDivRem() || operation->getType()->isFPOrFPVectorTy()) return false;
  } else if (!isa<GetElementPtrInst, CastInst, ICmpInst, SelectInst, InsertElementInst, ShuffleVectorInst>(
                 instruction)) {
    return false;
  }
  return all_of(instruction.operands(), [&](const Use& operand) {
    if (is_at_hand(operand, is_there)) return true;
    const auto* needed = dyn_cast<Instruction>(operand.get());
    return needed && is_cheap(*needed, is_there, cost);
  });
}

Value* copied(Instruction& instruction, IsThere is_there, IRBuilder<>& builder, DenseMap<Value*, Value*>& copies) {
  if (Value* copy = copies.lookup(&instruction)) return copy;
  SmallVector<Value*> operands;
  for (Use& operand : instruction.operands())
    operands.push_back(is_at_hand(operand, is_there)
                           ? operand.get()
                           : copied(*cast<Instruction>(operand.get()), is_there, builder, copies));
  Instruction* copy = instruction.clone();
  for (auto [use, operand] : zip(copy->operands(), operands)) use.set(operand);
  return copies[&instruction] = builder.Insert(copy);
}

}  // namespace

bool can_be_rematerialized(const Instruction& value, IsThere is_there) {
  unsigned cost = 0;
  return is_cheap(value, is_there, cost);
}

Value* rematerialize(Instruction& value, IsThere is_there, IRBuilder<>& builder) {
  DenseMap<Value*, Value*> copies;
  return copied(value, is_there, builder, copies);
}

}  // namespace kiln
