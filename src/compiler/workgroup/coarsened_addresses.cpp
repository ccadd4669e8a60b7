#include "compiler/workgroup/coarsened_addresses.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/MathExtras.h>

#include <cstdint>

#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/workgroup/thread_coarsening.h"

namespace kiln {
namespace {

using namespace llvm;
using namespace llvm::PatternMatch;

class CoarsenedAddresses {
 public:
  CoarsenedAddresses(Function& function, CoarsenedLoop halves, ScalarEvolution& evolution)
      : function_(function), halves_(halves), evolution_(evolution) {}

  bool run() {
    // The loop's exit condition implies it, as the loop was built. Nothing here holds without it.
    if (evolution_.getUnsignedRangeMax(evolution_.getSCEV(halves_.half_offset)).ugt(kLanes)) return false;
    for (User* user : make_early_inc_range(halves_.half_offset->users()))
      if (match(user, m_And(m_Specific(halves_.half_offset), m_SpecificInt(kLanes)))) {
        user->replaceAllUsesWith(halves_.half_offset);
        has_changed_ = true;
      }
    SmallVector<CastInst*> indices;
    for (BasicBlock* block : halves_.loop->blocks())
      for (Instruction& instruction : *block)
        if (isa<SExtInst, ZExtInst>(instruction) && is_first_plus_half_offset(instruction.getOperand(0)))
          indices.push_back(cast<CastInst>(&instruction));
    for (CastInst* index : indices) split(*index);
    return has_changed_;
  }

 private:
  // Whether the index is a multiple of 64 for the first half, and grows by exactly the half offset.
  bool is_first_plus_half_offset(Value* index) const {
    if (index->getType() != halves_.half_offset->getType()) return false;
    const SCEV* first = evolution_.getMinusSCEV(evolution_.getSCEV(index), evolution_.getSCEV(halves_.half_offset));
    return evolution_.isLoopInvariant(first, halves_.loop) &&
           evolution_.getMinTrailingZeros(first) >= Log2_32(kCoarsenedThreads);
  }

  void split(CastInst& index) {
    Value* first = first_half_value(index.getOperand(0));
    if (!first) return;
    IRBuilder<> before(halves_.insertion_point()), builder(&index);
    Value* wide = before.CreateCast(index.getOpcode(), first, index.getType());
    Value* offset = builder.CreateZExt(halves_.half_offset, index.getType());
    for (User* user : make_early_inc_range(index.users()))
      if (auto* address = dyn_cast<GetElementPtrInst>(user); address && is_element(*address, index))
        replace(*address, before.CreateGEP(address->getSourceElementType(), address->getPointerOperand(), wide),
                offset);
    index.replaceAllUsesWith(builder.CreateNSWAdd(wide, offset));
    has_changed_ = true;
  }

  bool is_element(const GetElementPtrInst& address, const Value& index) const {
    const auto* array = dyn_cast<Instruction>(address.getPointerOperand());
    return address.getNumIndices() == 1 && address.getOperand(1) == &index && !(array && halves_.contain(*array));
  }

  // `first`: the first half's address.
  void replace(GetElementPtrInst& address, Value* first, Value* offset) {
    for (User* user : make_early_inc_range(address.users()))
      if (auto* select = dyn_cast<SelectInst>(user)) replace_select(*select, address, first, offset);
    IRBuilder<> builder(&address);
    address.replaceAllUsesWith(builder.CreateGEP(address.getSourceElementType(), first, offset));
  }

  // A guard's select of zeros instead of the address: both alternatives get the same offset.
  void replace_select(SelectInst& select, GetElementPtrInst& address, Value* first, Value* offset) {
    auto* condition = dyn_cast<Instruction>(select.getCondition());
    const bool is_first = select.getTrueValue() == &address;
    Value* other = is_first ? select.getFalseValue() : select.getTrueValue();
    if (!is_zeros(other) || (condition && halves_.contain(*condition))) return;
    const DataLayout& layout = function_.getDataLayout();
    const uint64_t bytes = layout.getTypeAllocSize(cast<GlobalVariable>(other)->getValueType()).getFixedValue(),
                   most = layout.getTypeAllocSize(address.getSourceElementType()).getFixedValue() * kLanes;
    Value* zeros = zeros_of(*function_.getParent(), bytes + most);
    IRBuilder<> before(halves_.insertion_point()), builder(&select);
    Value* chosen = before.CreateSelect(select.getCondition(), is_first ? first : zeros, is_first ? zeros : first);
    select.replaceAllUsesWith(builder.CreateGEP(address.getSourceElementType(), chosen, offset));
  }

  // The first half's value, computed before the loop; null if it is more than arithmetic.
  Value* first_half_value(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || !halves_.contain(*instruction)) return value;
    if (instruction == halves_.half_offset) return ConstantInt::get(value->getType(), 0);
    if (Value* known = first_half_values_.lookup(value)) return known;
    if (!isa<BinaryOperator, CastInst>(instruction) || !isSafeToSpeculativelyExecute(instruction)) return nullptr;
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) {
      operands.push_back(first_half_value(operand));
      if (!operands.back()) return nullptr;
    }
    return first_half_values_[value] = copy_before(halves_, *instruction, operands);
  }

  Function& function_;
  const CoarsenedLoop halves_;
  ScalarEvolution& evolution_;
  DenseMap<Value*, Value*> first_half_values_;
  bool has_changed_ = false;
};

}  // namespace

PreservedAnalyses CoarsenedAddressesPass::run(Function& function, FunctionAnalysisManager& analyses) {
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  bool has_changed = false;
  for (Loop* outer : analyses.getResult<LoopAnalysis>(function))
    if (CoarsenedLoop halves = coarsened_loop_of(*outer); halves.loop)
      has_changed |= CoarsenedAddresses(function, halves, evolution).run();
  return has_changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
