#include "compiler/vectorize/lane_strides.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/CFG.h>
#include <llvm/Support/MathExtras.h>

#include <numeric>

#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/simdgroup.h"

namespace kiln {

using namespace llvm;

namespace {

LaneStride scaled(LaneStride stride, std::optional<int64_t> factor) {
  if (!stride.is_affine) return {};
  int64_t product = 0;
  const bool is_known = stride.distance && factor && !MulOverflow(*stride.distance, *factor, product);
  return {true, is_known ? std::optional(product) : std::nullopt};
}

LaneStride sum(LaneStride a, LaneStride b) {
  if (!a.is_affine || !b.is_affine) return {};
  int64_t total = 0;
  const bool is_known = a.distance && b.distance && !AddOverflow(*a.distance, *b.distance, total);
  return {true, is_known ? std::optional(total) : std::nullopt};
}

std::optional<int64_t> constant(const Value* value) {
  const auto* number = dyn_cast<ConstantInt>(value);
  return number && number->getBitWidth() <= 64 ? std::optional(number->getSExtValue()) : std::nullopt;
}

// The first-level cache.
constexpr int64_t kLineBytes = 64, kSets = 64, kWays = 8;

}  // namespace

bool rows_conflict(int64_t distance) {
  if (distance % kLineBytes != 0) return false;
  const int64_t sets = kSets / std::gcd(distance / kLineBytes, kSets);
  return sets * kWays < kLanes;
}

LaneStrides::LaneStrides(Function& function, const Divergence& divergence)
    : divergence_(divergence), layout_(function.getDataLayout()) {
  // Operands before their users, except those of phis.
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function))
    for (Instruction& instruction : *block)
      if (divergence.is_divergent(&instruction)) strides_[&instruction] = compute(instruction);
}

LaneStride LaneStrides::compute(const Instruction& instruction) const {
  if (is_lane(&instruction)) return {true, 1};
  auto operand = [&](unsigned number) { return of(instruction.getOperand(number)); };
  auto is_divergent = [&](unsigned number) { return divergence_.is_divergent(instruction.getOperand(number)); };
  switch (instruction.getOpcode()) {
    // Each lane has its own, and what matters is the index.
    case Instruction::Alloca: return {true, 0};
    case Instruction::Add: return sum(operand(0), operand(1));
    case Instruction::Sub: return sum(operand(0), scaled(operand(1), -1));
    case Instruction::Or:
      return cast<PossiblyDisjointInst>(instruction).isDisjoint() ? sum(operand(0), operand(1)) : LaneStride();
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::Trunc:
    case Instruction::Freeze: return operand(0);
    case Instruction::Mul:
      if (!is_divergent(1)) return scaled(operand(0), constant(instruction.getOperand(1)));
      return is_divergent(0) ? LaneStride() : scaled(operand(1), constant(instruction.getOperand(0)));
    case Instruction::Shl: {
      if (is_divergent(1)) return {};
      const std::optional<int64_t> by = constant(instruction.getOperand(1));
      return scaled(operand(0), by && *by >= 0 && *by < 32 ? std::optional(int64_t{1} << *by) : std::nullopt);
    }
    case Instruction::Select: {
      const Value* otherwise = instruction.getOperand(2);
      return is_zeros(otherwise) || is_sink(otherwise) ? operand(1) : LaneStride();
    }
    case Instruction::GetElementPtr: return of_address(cast<GetElementPtrInst>(instruction));
    case Instruction::PHI: return of_counter(cast<PHINode>(instruction));
    default: return {};
  }
}

LaneStride LaneStrides::of_address(const GetElementPtrInst& address) const {
  MapVector<Value*, APInt> variable;
  APInt fixed(layout_.getIndexTypeSizeInBits(address.getType()), 0);
  if (!address.collectOffset(layout_, fixed.getBitWidth(), variable, fixed)) return {};
  LaneStride result = of(address.getPointerOperand());
  for (const auto& [index, size] : variable) result = sum(result, scaled(of(index), size.getSExtValue()));
  return result;
}

// What enters a loop, and the same with something uniform added.
LaneStride LaneStrides::of_counter(const PHINode& phi) const {
  const Value* start = nullptr;
  for (const Value* value : phi.incoming_values()) {
    const auto* step = dyn_cast<Instruction>(value);
    if (step && (isa<GetElementPtrInst>(step) || step->getOpcode() == Instruction::Add) &&
        step->getOperand(0) == &phi && none_of(drop_begin(step->operands()), [&](const Use& operand) {
          return divergence_.is_divergent(operand.get());
        }))
      continue;
    if (start && start != value) return {};
    start = value;
  }
  return start ? of(start) : LaneStride();
}

}  // namespace kiln
