#include "compiler/lowering/unsigned_operations.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <optional>

#include "compiler/analysis/value_ranges.h"

namespace kiln {

using namespace llvm;

namespace {

std::optional<Instruction::BinaryOps> unsigned_form(const Instruction& operation) {
  switch (operation.getOpcode()) {
    case Instruction::SDiv: return Instruction::UDiv;
    case Instruction::SRem: return Instruction::URem;
    case Instruction::AShr: return Instruction::LShr;
    default: return std::nullopt;
  }
}

bool is_signed_operation(const Instruction& instruction) {
  if (instruction.getNumOperands() != 2 || !instruction.getOperand(0)->getType()->isIntegerTy() ||
      instruction.getOperand(0)->getType()->getIntegerBitWidth() > 64)
    return false;
  if (const auto* comparison = dyn_cast<ICmpInst>(&instruction))
    return comparison->isSigned() && any_of(comparison->operand_values(), IsaPred<ConstantInt>);
  return unsigned_form(instruction).has_value();
}

// What takes the instruction's place, or null.
Value* without_sign(Instruction& instruction, ValueRanges& ranges) {
  auto range_of = [&](unsigned i) { return ranges.range_at(instruction.getOperand(i), instruction.getParent()); };
  const ConstantRange first = range_of(0);
  // No thread comes here.
  if (first.isEmptySet()) return nullptr;
  if (const auto* comparison = dyn_cast<ICmpInst>(&instruction)) {
    const ConstantRange second = range_of(1);
    if (second.isEmptySet()) return nullptr;
    if (first.icmp(comparison->getPredicate(), second)) return ConstantInt::getTrue(instruction.getContext());
    if (first.icmp(comparison->getInversePredicate(), second)) return ConstantInt::getFalse(instruction.getContext());
    return nullptr;
  }
  if (!first.isAllNonNegative()) return nullptr;
  if (instruction.getOpcode() != Instruction::AShr && !range_of(1).isAllNonNegative()) return nullptr;
  IRBuilder<> builder(&instruction);
  return builder.CreateBinOp(*unsigned_form(instruction), instruction.getOperand(0), instruction.getOperand(1));
}

}  // namespace

bool use_unsigned_operations(Function& body, const ThreadLimits& limits) {
  SmallVector<Instruction*> operations;
  for (Instruction& instruction : instructions(body))
    if (is_signed_operation(instruction)) operations.push_back(&instruction);
  if (operations.empty()) return false;
  // Replaced at the end: the analysis knows the function as it is.
  SmallVector<std::pair<Instruction*, Value*>> replaced;
  ValueRanges ranges(body, limits);
  for (Instruction* operation : operations)
    if (Value* value = without_sign(*operation, ranges)) replaced.emplace_back(operation, value);
  for (auto [operation, value] : replaced) {
    if (!isa<Constant>(value)) value->takeName(operation);
    operation->replaceAllUsesWith(value);
    operation->eraseFromParent();
  }
  return !replaced.empty();
}

}  // namespace kiln
