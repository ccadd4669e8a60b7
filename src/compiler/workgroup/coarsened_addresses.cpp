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

class Distances {
 public:
  Distances(Function& function, CoarsenedLoop pieces, ScalarEvolution& evolution)
      : function_(function), pieces_(pieces), evolution_(evolution) {}

  bool run() {
    // The loop's end says so, as it was made; without it nothing here holds.
    if (evolution_.getUnsignedRangeMax(evolution_.getSCEV(pieces_.half_offset)).ugt(kLanes)) return false;
    for (User* user : make_early_inc_range(pieces_.half_offset->users()))
      if (match(user, m_And(m_Specific(pieces_.half_offset), m_SpecificInt(kLanes)))) {
        user->replaceAllUsesWith(pieces_.half_offset);
        has_changed_ = true;
      }
    SmallVector<CastInst*> numbers;
    for (BasicBlock* block : pieces_.loop->blocks())
      for (Instruction& instruction : *block)
        if (isa<SExtInst, ZExtInst>(instruction) && is_piece_more(instruction.getOperand(0)))
          numbers.push_back(cast<CastInst>(&instruction));
    for (CastInst* number : numbers) separate(*number);
    return has_changed_;
  }

 private:
  // Whether it is a multiple of 64 for the first piece, and as much more as the piece for each.
  bool is_piece_more(Value* number) const {
    if (number->getType() != pieces_.half_offset->getType()) return false;
    const SCEV* first = evolution_.getMinusSCEV(evolution_.getSCEV(number), evolution_.getSCEV(pieces_.half_offset));
    return evolution_.isLoopInvariant(first, pieces_.loop) &&
           evolution_.getMinTrailingZeros(first) >= Log2_32(kCoarsenedThreads);
  }

  void separate(CastInst& number) {
    Value* first = of_first(number.getOperand(0));
    if (!first) return;
    IRBuilder<> before(pieces_.insertion_point()), builder(&number);
    Value* wide = before.CreateCast(number.getOpcode(), first, number.getType());
    Value* distance = builder.CreateZExt(pieces_.half_offset, number.getType());
    for (User* user : make_early_inc_range(number.users()))
      if (auto* place = dyn_cast<GetElementPtrInst>(user); place && is_element(*place, number))
        replace(*place, before.CreateGEP(place->getSourceElementType(), place->getPointerOperand(), wide), distance);
    number.replaceAllUsesWith(builder.CreateNSWAdd(wide, distance));
    has_changed_ = true;
  }

  bool is_element(const GetElementPtrInst& place, const Value& number) const {
    const auto* array = dyn_cast<Instruction>(place.getPointerOperand());
    return place.getNumIndices() == 1 && place.getOperand(1) == &number && !(array && pieces_.contain(*array));
  }

  // `first`: the first piece's place.
  void replace(GetElementPtrInst& place, Value* first, Value* distance) {
    for (User* user : make_early_inc_range(place.users()))
      if (auto* choice = dyn_cast<SelectInst>(user)) replace_choice(*choice, place, first, distance);
    IRBuilder<> builder(&place);
    place.replaceAllUsesWith(builder.CreateGEP(place.getSourceElementType(), first, distance));
  }

  // Of zeros instead of the place: as far behind one address as the other.
  void replace_choice(SelectInst& choice, GetElementPtrInst& place, Value* first, Value* distance) {
    auto* condition = dyn_cast<Instruction>(choice.getCondition());
    const bool is_first = choice.getTrueValue() == &place;
    Value* other = is_first ? choice.getFalseValue() : choice.getTrueValue();
    if (!is_zeros(other) || (condition && pieces_.contain(*condition))) return;
    const DataLayout& layout = function_.getDataLayout();
    const uint64_t bytes = layout.getTypeAllocSize(cast<GlobalVariable>(other)->getValueType()).getFixedValue(),
                   most = layout.getTypeAllocSize(place.getSourceElementType()).getFixedValue() * kLanes;
    Value* zeros = zeros_of(*function_.getParent(), bytes + most);
    IRBuilder<> before(pieces_.insertion_point()), builder(&choice);
    Value* chosen = before.CreateSelect(choice.getCondition(), is_first ? first : zeros, is_first ? zeros : first);
    choice.replaceAllUsesWith(builder.CreateGEP(place.getSourceElementType(), chosen, distance));
  }

  // What it is for the first piece, before the loop; null where that is not arithmetic alone.
  Value* of_first(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || !pieces_.contain(*instruction)) return value;
    if (instruction == pieces_.half_offset) return ConstantInt::get(value->getType(), 0);
    if (Value* known = first_.lookup(value)) return known;
    if (!isa<BinaryOperator, CastInst>(instruction) || !isSafeToSpeculativelyExecute(instruction)) return nullptr;
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) {
      operands.push_back(of_first(operand));
      if (!operands.back()) return nullptr;
    }
    return first_[value] = copy_before(pieces_, *instruction, operands);
  }

  Function& function_;
  const CoarsenedLoop pieces_;
  ScalarEvolution& evolution_;
  DenseMap<Value*, Value*> first_;
  bool has_changed_ = false;
};

}  // namespace

PreservedAnalyses CoarsenedAddressesPass::run(Function& function, FunctionAnalysisManager& analyses) {
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  bool has_changed = false;
  for (Loop* runs : analyses.getResult<LoopAnalysis>(function))
    if (CoarsenedLoop pieces = coarsened_loop_of(*runs); pieces.loop)
      has_changed |= Distances(function, pieces, evolution).run();
  return has_changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
