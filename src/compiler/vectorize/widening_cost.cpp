#include "compiler/vectorize/widening_cost.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/metadata.h"
#include "compiler/ir/simdgroup.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

// Compile time of an access's or edge's machine instructions, relative to those of an arithmetic operation (measured
// with registers of 32 bytes, without gathers).
constexpr uint64_t kConsecutiveWeight = 40, kSerializedWeight = 18, kBranchWeight = 25, kRowWeight = 8;

// Compiling takes about 0.5 s at the first limit, and 0.7 s at the second. Kernels of ordinary length are below 2000.
constexpr uint64_t kMaxSerialized = 3000, kMaxTotal = 4000, kMaxWithConvergencePoints = 16000;

// Before optimization, which removes most of them.
constexpr uint64_t kMaxWidenedInstructions = 40000;

// Vectors save nothing if one in so many operations is serialized.
constexpr uint64_t kSerializedShare = 20;

// Values that are affine in the lane index.
class AffineLanes {
 public:
  AffineLanes(Function& function, const Divergence& divergence) : divergence_(divergence) {
    // Operands are visited before their users, except those of phis; a divergent phi does not count as affine.
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function))
      for (Instruction& instruction : *block)
        if (divergence_.is_divergent(&instruction) && has_affine_result(instruction)) affine_.insert(&instruction);
  }

  bool contains(const Value* value) const { return !divergence_.is_divergent(value) || affine_.contains(value); }

 private:
  bool has_affine_result(const Instruction& instruction) const {
    if (is_lane(&instruction)) return true;
    auto is_affine = [&](const Use& operand) { return contains(operand.get()); };
    switch (instruction.getOpcode()) {
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Or:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc:
      case Instruction::GetElementPtr: return all_of(instruction.operands(), is_affine);
      case Instruction::Mul:
      case Instruction::Shl:
        return all_of(instruction.operands(), is_affine) && any_of(instruction.operands(), [&](const Use& operand) {
                 return !divergence_.is_divergent(operand.get());
               });
      default: return false;
    }
  }

  const Divergence& divergence_;
  DenseSet<const Value*> affine_;
};

Type* accessed_type(const Instruction& access) {
  const auto* store = dyn_cast<StoreInst>(&access);
  return store ? store->getValueOperand()->getType() : access.getType();
}

}  // namespace

uint64_t WideningCost::total() const {
  return vector + kConsecutiveWeight * consecutive + kSerializedWeight * serialized + kBranchWeight * branches;
}

WideningCost widening_cost(Function& function, const Divergence& divergence, const VectorIsa& vector_isa) {
  const AffineLanes affine(function, divergence);
  const DataLayout& layout = function.getDataLayout();
  WideningCost cost;
  for (const Instruction& instruction : instructions(function)) {
    if (instruction.isDebugOrPseudoInst()) continue;
    if (instruction.isTerminator()) {
      if (divergence.is_divergent_branch(*instruction.getParent())) cost.branches += instruction.getNumSuccessors() - 1;
      continue;
    }
    const bool is_access = isa<LoadInst, StoreInst>(instruction);
    if (is_access && instruction.hasMetadata(kRowBlock)) {
      cost.vector += isa<AllocaInst>(getUnderlyingObject(getLoadStorePointerOperand(&instruction))) ? 1 : kRowWeight;
    } else if (is_access && divergence.is_divergent(getLoadStorePointerOperand(&instruction))) {
      const Value* pointer = unguarded(getLoadStorePointerOperand(&instruction));
      const uint64_t bytes = layout.getTypeStoreSize(accessed_type(instruction));
      const bool is_indexed =
          isa<StoreInst>(instruction) ? vector_isa.stores_by_index(bytes) : vector_isa.loads_by_index(bytes);
      ++(affine.contains(pointer) || is_indexed ? cost.consecutive : cost.serialized);
    } else if (instruction.isAtomic()) {
      ++cost.serialized;
    } else if (divergence.is_divergent(&instruction)) {
      ++cost.vector;
    }
  }
  return cost;
}

std::string refuse_by_length(const Function& function) {
  const uint64_t length = function.getInstructionCount();
  if (length <= kMaxWidenedInstructions) return "";
  return concat("vector code of so long a body would take long to compile (", length, " instructions, limit ",
                kMaxWidenedInstructions, ")");
}

std::string refuse_by_cost(const WideningCost& cost, bool has_convergence_points) {
  const uint64_t total = cost.total();
  auto limit = [&](uint64_t max_total) { return concat(" (estimated cost ", total, ", limit ", max_total, ")"); };
  const uint64_t max_total = has_convergence_points ? kMaxWithConvergencePoints : kMaxTotal;
  if (total > max_total) return concat("vector code of so long a body would take long to compile", limit(max_total));
  if (!has_convergence_points && total > kMaxSerialized && cost.serialized * kSerializedShare >= cost.vector)
    return concat("its memory accesses are serialized, so that vectors save little, and it would take long to compile",
                  limit(kMaxSerialized));
  return "";
}

}  // namespace kiln
