#include "compiler/vectorize/sink_stores.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/DomTreeUpdater.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/vectorize/memory_objects.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMaxDepth = 10;             // of an address expression
constexpr unsigned kMaxSunkInstructions = 64;  // of a side, from its end to the store
constexpr unsigned kMaxAttempts = 8;           // at one join, to find partners for a store

// The predecessors whose only successor is the join.
SmallVector<BasicBlock*, 4> sides_of(BasicBlock& join) {
  SmallVector<BasicBlock*, 4> sides;
  for (BasicBlock* before : predecessors(&join))
    if (before != &join && before->getSingleSuccessor() == &join && !is_contained(sides, before))
      sides.push_back(before);
  return sides;
}

bool has_store(const BasicBlock& block) {
  return any_of(block, [](const Instruction& instruction) { return isa<StoreInst>(instruction); });
}

class StoreSinking {
 public:
  StoreSinking(Function& function, FunctionAnalysisManager& analyses)
      : function_(function),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        divergence_(analyses.getResult<DivergenceAnalysis>(function)),
        updater_(dominators_, DomTreeUpdater::UpdateStrategy::Eager) {}

  bool run() {
    SmallVector<BasicBlock*> joins;
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      if (block->hasNPredecessorsOrMore(2)) joins.push_back(block);
    for (BasicBlock* join : joins) sink_into(*join);
    return has_changed_;
  }

 private:
  // The stores, one of each side, that become one.
  using Stores = SmallVector<StoreInst*, 4>;

  void sink_into(BasicBlock& join) {
    SmallVector<BasicBlock*, 4> sides;
    for (BasicBlock* before : sides_of(join))
      if (!dominators_.dominates(&join, before)) sides.push_back(before);
    BasicBlock* to = &join;
    for (;;) {
      Stores stores = next_stores(sides, /*needs_all=*/to != &join);
      if (stores.empty()) return;
      if (to == &join && stores.size() < pred_size(&join)) {
        SmallVector<BasicBlock*, 4> storing;
        for (StoreInst* store : stores) storing.push_back(store->getParent());
        to = SplitBlockPredecessors(&join, storing, "", &updater_);
        sides = storing;
      }
      sink(stores, *to);
    }
  }

  // Stores of all sides or of some that can become one; the last such.
  Stores next_stores(ArrayRef<BasicBlock*> sides, bool needs_all) const {
    if (sides.size() < 2) return {};
    SmallVector<SmallVector<StoreInst*, 2>, 4> movable;
    for (BasicBlock* side : sides) movable.push_back(movable_stores(*side));
    unsigned attempts = 0;
    for (const auto& of_side : movable)
      for (StoreInst* store : of_side) {
        if (++attempts > kMaxAttempts) return {};
        Stores stores = partners(*store, movable);
        if (stores.size() >= 2 && (!needs_all || stores.size() == sides.size()) && are_divergent(stores)) return stores;
      }
    return {};
  }

  // Stores that may be moved to the end of their block, the last first.
  static SmallVector<StoreInst*, 2> movable_stores(BasicBlock& block) {
    SmallVector<StoreInst*, 2> found;
    SmallVector<const Value*, 4> crossed;
    unsigned count = 0;
    for (Instruction& instruction : reverse(block)) {
      if (++count > kMaxSunkInstructions) break;
      if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isSimple()) {
        const Value* pointer = store->getPointerOperand();
        if (none_of(crossed, [&](const Value* other) { return may_alias(pointer, other); })) found.push_back(store);
        crossed.push_back(pointer);
      } else if (auto* load = dyn_cast<LoadInst>(&instruction); load && load->isSimple()) {
        if (!load->hasMetadata(LLVMContext::MD_invariant_load)) crossed.push_back(load->getPointerOperand());
      } else if (instruction.mayReadOrWriteMemory()) {
        break;
      }
    }
    return found;
  }

  Stores partners(StoreInst& store, ArrayRef<SmallVector<StoreInst*, 2>> movable) const {
    Stores stores;
    for (const auto& of_side : movable) {
      StoreInst* partner = nullptr;
      for (StoreInst* other : of_side) {
        if (other->getParent() == store.getParent()) {
          partner = &store;
          break;
        }
        if (!can_merge(store, *other)) continue;
        const bool is_same = same_expression(store.getPointerOperand(), other->getPointerOperand());
        if (!partner || is_same) partner = other;
        if (is_same) break;
      }
      if (partner) stores.push_back(partner);
    }
    return stores;
  }

  bool can_merge(const StoreInst& one, const StoreInst& other) const {
    const Value *to_one = one.getPointerOperand(), *to_other = other.getPointerOperand();
    if (one.getValueOperand()->getType() != other.getValueOperand()->getType()) return false;
    if (any_of(objects_of(to_one), [](const Value* object) { return isa<AllocaInst>(object); })) return false;
    if (same_expression(to_one, to_other)) return !is_distinct_per_lane(to_one);
    return (is_loaded_address(to_one) || is_loaded_address(to_other)) && may_alias(to_one, to_other);
  }

  // Whether some lanes may reach one of the stores and others another, with no convergent operation on the paths.
  bool are_divergent(ArrayRef<StoreInst*> stores) const {
    BasicBlock* dominator = stores[0]->getParent();
    for (StoreInst* store : stores) dominator = dominators_.findNearestCommonDominator(dominator, store->getParent());
    if (any_of(stores, [&](const StoreInst* store) { return store->getParent() == dominator; })) return false;
    bool is_divergent = divergence_.is_divergent_branch(*dominator);
    SmallPtrSet<const BasicBlock*, 16> visited{dominator};
    SmallVector<const BasicBlock*> worklist;
    for (StoreInst* store : stores) worklist.push_back(store->getParent());
    while (!worklist.empty()) {
      const BasicBlock* block = worklist.pop_back_val();
      if (!visited.insert(block).second) continue;
      for (const Instruction& instruction : *block) {
        const auto* call = dyn_cast<CallBase>(&instruction);
        if ((call && call->isConvergent()) || instruction.isVolatile() || isa<FenceInst>(instruction)) return false;
      }
      is_divergent = is_divergent || divergence_.is_divergent_branch(*block);
      worklist.append(pred_begin(block), pred_end(block));
    }
    return is_divergent;
  }

  // Whether each lane has an address of its own: a uniform one, plus a multiple of the lane index.
  bool is_distinct_per_lane(const Value* value, unsigned depth = 0) const {
    if (is_lane(value)) return true;
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || depth > kMaxDepth || !divergence_.is_divergent(value)) return false;
    if (const auto* select = dyn_cast<SelectInst>(instruction))
      return is_sink(select->getFalseValue()) && is_distinct_per_lane(select->getTrueValue(), depth + 1);
    switch (instruction->getOpcode()) {
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Or:
      case Instruction::Xor:
      case Instruction::Mul:
      case Instruction::GetElementPtr:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc: break;
      case Instruction::Shl: return is_distinct_per_lane(instruction->getOperand(0), depth + 1);
      default: return false;
    }
    if (instruction->getOpcode() == Instruction::Or && !cast<PossiblyDisjointInst>(instruction)->isDisjoint())
      return false;
    const Value* only = nullptr;
    for (const Value* operand : instruction->operand_values()) {
      if (!divergence_.is_divergent(operand) && !is_lane(operand)) continue;
      if (only) return false;
      only = operand;
    }
    return only && is_distinct_per_lane(only, depth + 1);
  }

  // Whether the address depends on a divergent value that lanes load from memory.
  bool is_loaded_address(const Value* value, unsigned depth = 0) const {
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || depth > kMaxDepth) return false;
    if (isa<LoadInst>(instruction)) return divergence_.is_divergent(instruction);
    if (const auto* select = dyn_cast<SelectInst>(instruction); select && is_sink(select->getFalseValue()))
      return is_loaded_address(select->getTrueValue(), depth + 1);
    if (isa<CallInst>(instruction)) return false;
    return any_of(instruction->operand_values(),
                  [&](const Value* operand) { return is_loaded_address(operand, depth + 1); });
  }

  static bool same_expression(const Value* one, const Value* other, unsigned depth = 0) {
    if (one == other) return true;
    const auto *first = dyn_cast<Instruction>(one), *second = dyn_cast<Instruction>(other);
    if (!first || !second || depth > kMaxDepth || !is_computed(*first) || !first->isSameOperationAs(second) ||
        !first->hasSameSubclassOptionalData(second))
      return false;
    return all_of(zip(first->operand_values(), second->operand_values()),
                  [&](auto pair) { return same_expression(std::get<0>(pair), std::get<1>(pair), depth + 1); });
  }

  static bool is_computed(const Instruction& instruction) {
    const auto* divisor = instruction.isIntDivRem() ? dyn_cast<ConstantInt>(instruction.getOperand(1)) : nullptr;
    return isa<BinaryOperator, CastInst, GetElementPtrInst, ICmpInst, SelectInst>(instruction) &&
           (!instruction.isIntDivRem() || (divisor && !divisor->isZero() && !divisor->isMinusOne()));
  }

  // The address at `join`, if it is the same expression on all sides.
  Value* address_at(BasicBlock& join, Value* value, IRBuilder<>& builder) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || dominators_.dominates(instruction->getParent(), &join)) return value;
    if (!is_computed(*instruction)) return nullptr;
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operand_values()) {
      operands.push_back(address_at(join, operand, builder));
      if (!operands.back()) return nullptr;
    }
    Instruction* copy = instruction->clone();
    for (auto [i, operand] : enumerate(operands)) copy->setOperand(i, operand);
    return builder.Insert(copy);
  }

  void sink(ArrayRef<StoreInst*> stores, BasicBlock& join) {
    auto merged = [&](auto of) -> Value* {
      Value* first = of(*stores[0]);
      if (all_of(stores, [&](StoreInst* store) { return of(*store) == first; })) {
        auto* instruction = dyn_cast<Instruction>(first);
        if (!instruction || dominators_.dominates(instruction->getParent(), &join)) return first;
      }
      PHINode* phi = PHINode::Create(first->getType(), stores.size(), "", join.begin());
      for (StoreInst* store : stores) phi->addIncoming(of(*store), store->getParent());
      return phi;
    };
    Value* value = merged([](StoreInst& store) { return store.getValueOperand(); });
    IRBuilder<> builder(&join, join.getFirstInsertionPt());
    Value* first = stores[0]->getPointerOperand();
    const bool is_same =
        all_of(stores, [&](StoreInst* store) { return same_expression(first, store->getPointerOperand()); });
    Value* pointer = is_same ? address_at(join, first, builder) : nullptr;
    if (!pointer) pointer = merged([](StoreInst& store) { return store.getPointerOperand(); });
    Align alignment = stores[0]->getAlign();
    for (const StoreInst* store : stores) alignment = std::min(alignment, store->getAlign());
    builder.CreateAlignedStore(value, pointer, alignment);
    for (StoreInst* store : stores) store->eraseFromParent();
    has_changed_ = true;
  }

  Function& function_;
  DominatorTree& dominators_;
  const Divergence& divergence_;
  DomTreeUpdater updater_;
  bool has_changed_ = false;
};

}  // namespace

bool sink_stores(Function& function, FunctionAnalysisManager& analyses) {
  // Most bodies need no analyses.
  if (none_of(function, [](BasicBlock& block) {
        return block.hasNPredecessorsOrMore(2) &&
               count_if(sides_of(block), [](const BasicBlock* side) { return has_store(*side); }) >= 2;
      }))
    return false;
  return StoreSinking(function, analyses).run();
}

}  // namespace kiln
