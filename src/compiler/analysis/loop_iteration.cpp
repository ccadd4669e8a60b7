#include "compiler/analysis/loop_iteration.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>

namespace kiln {

using namespace llvm;

// Instructions visited for one value.
static constexpr unsigned kMostInstructions = 64;

PHINode* number_of(const Loop& loop, ScalarEvolution& evolution) {
  for (PHINode& phi : loop.getHeader()->phis()) {
    if (!phi.getType()->isIntegerTy()) continue;
    auto* recurrence = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(&phi));
    if (recurrence && recurrence->getLoop() == &loop && recurrence->isAffine() && recurrence->getStart()->isZero() &&
        recurrence->getStepRecurrence(evolution)->isOne())
      return &phi;
  }
  return nullptr;
}

bool has_other_access(const Loop& loop, const StoreInst& store, AAResults& aliases) {
  const MemoryLocation location = MemoryLocation::getBeforeOrAfter(store.getPointerOperand(), store.getAAMetadata());
  return any_of(loop.blocks(), [&](BasicBlock* block) {
    return any_of(*block, [&](const Instruction& other) {
      return &other != &store && other.mayReadOrWriteMemory() && !other.hasMetadata(LLVMContext::MD_invariant_load) &&
             isModOrRefSet(aliases.getModRefInfo(&other, location));
    });
  });
}

LoopIteration::LoopIteration(const Loop& loop, PHINode& number, unsigned iteration) : loop_(loop) {
  values_[&number] = constants_[&number] = ConstantInt::get(number.getType(), iteration);
}

Constant* LoopIteration::constant(Value* value) {
  if (auto* constant = dyn_cast<Constant>(value)) return constant;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction) return nullptr;
  if (auto known = constants_.find(value); known != constants_.end()) return known->second;
  constants_[value] = nullptr;
  if (!isa<BinaryOperator, CastInst, CmpInst>(instruction) || constants_.size() > kMostInstructions) return nullptr;
  SmallVector<Constant*, 2> operands;
  for (Value* operand : instruction->operands()) {
    operands.push_back(constant(operand));
    if (!operands.back()) return nullptr;
  }
  return constants_[value] = ConstantFoldInstOperands(instruction, operands, instruction->getDataLayout());
}

bool LoopIteration::can_be_computed(const Value* value) {
  if (loop_.isLoopInvariant(value) || values_.contains(value)) return true;
  if (auto known = can_be_computed_.find(value); known != can_be_computed_.end()) return known->second;
  can_be_computed_[value] = false;
  if (!isa<BinaryOperator, CastInst, GetElementPtrInst>(value) || can_be_computed_.size() > kMostInstructions)
    return false;
  auto& instruction = *cast<Instruction>(value);
  return can_be_computed_[value] =
             !instruction.isIntDivRem() &&
             all_of(instruction.operands(), [&](const Use& operand) { return can_be_computed(operand); });
}

Value* LoopIteration::computed(Value* value, IRBuilderBase& builder) {
  if (loop_.isLoopInvariant(value)) return value;
  if (auto known = values_.find(value); known != values_.end()) return known->second;
  if (Constant* constant = this->constant(value)) return values_[value] = constant;
  Instruction* copy = cast<Instruction>(value)->clone();
  for (Use& operand : copy->operands()) operand.set(computed(operand, builder));
  return values_[value] = builder.Insert(copy);
}

}  // namespace kiln
