#include "compiler/nvptx/address_steps.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <bit>

namespace kiln {

using namespace llvm;

namespace {

constexpr unsigned kMostSteps = 48;  // of the operations that compute an address

unsigned low_zeros(uint64_t number) { return static_cast<unsigned>(std::countr_zero(number)); }

AddressStep scaled(const AddressStep& step, uint64_t by) {
  return {step.factor * by, std::min(64U, step.zeros + low_zeros(by))};
}

}  // namespace

bool reads(const Value& value, Intrinsic::ID special_register) {
  const auto* call = dyn_cast<IntrinsicInst>(&value);
  return call && call->getIntrinsicID() == special_register;
}

bool is_thread_x(const Value& value) { return reads(value, Intrinsic::nvvm_read_ptx_sreg_tid_x); }

bool is_same_along_x(const Value& value) {
  const auto* call = dyn_cast<IntrinsicInst>(&value);
  if (!call) return false;
  switch (call->getIntrinsicID()) {
    case Intrinsic::nvvm_read_ptx_sreg_tid_y:
    case Intrinsic::nvvm_read_ptx_sreg_tid_z:
    case Intrinsic::nvvm_read_ptx_sreg_ntid_x:
    case Intrinsic::nvvm_read_ptx_sreg_ntid_y:
    case Intrinsic::nvvm_read_ptx_sreg_ntid_z:
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
    case Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
    case Intrinsic::nvvm_read_ptx_sreg_nctaid_y:
    case Intrinsic::nvvm_read_ptx_sreg_nctaid_z: return true;
    default: return false;
  }
}

// ---- From thread to thread

std::optional<AddressStep> AddressSteps::of(Value& value, unsigned depth) {
  if (depth == kMostSteps) return std::nullopt;
  if (auto known = steps_.find(&value); known != steps_.end()) return known->second;
  steps_[&value] = std::nullopt;  // of a cycle
  std::optional<Step> step = compute(value, depth + 1);
  if (step && step->factor == 0) step->zeros = std::max(step->zeros, known_zeros(value));
  return steps_[&value] = step;
}

unsigned AddressSteps::known_zeros(const Value& value) const {
  if (value.getType()->isPointerTy()) return Log2(value.getPointerAlignment(layout_));
  if (!value.getType()->isIntegerTy()) return 0;
  return computeKnownBits(&value, layout_).countMinTrailingZeros();
}

// The bits that factor * r may have, if the factor is a power of two.
uint64_t AddressSteps::bits_of(uint64_t factor) const { return factor * (threads_ - 1); }

// Whether adding factor * r to A, in a type of this width, sets bits that are zero, so that no other bit changes.
bool AddressSteps::has_no_carry(const Step& step, unsigned width) const {
  return step.factor == 0 ||
         (std::has_single_bit(step.factor) && bits_of(step.factor) < uint64_t{1} << std::min({step.zeros, width, 63U}));
}

std::optional<AddressStep> AddressSteps::compute(Value& value, unsigned depth) {
  if (is_thread_x(value)) return Step{1, static_cast<unsigned>(std::countr_zero(threads_))};
  if (is_same_along_x(value) || isa<Argument, GlobalVariable, ConstantData>(value)) return Step{};
  if (auto* phi = dyn_cast<PHINode>(&value)) return of_counter(*phi, depth);
  auto* operation = dyn_cast<Operator>(&value);
  if (!operation) return std::nullopt;
  switch (operation->getOpcode()) {
    case Instruction::GetElementPtr: return of_address(*cast<GEPOperator>(operation), depth);
    case Instruction::AddrSpaceCast:
    case Instruction::BitCast:
    case Instruction::Freeze: return of(*operation->getOperand(0), depth);
    case Instruction::Trunc: return of(*operation->getOperand(0), depth);
    case Instruction::ZExt:
    case Instruction::SExt: {
      std::optional<Step> step = of(*operation->getOperand(0), depth);
      const unsigned width = operation->getOperand(0)->getType()->getScalarSizeInBits();
      // The thread's number must not change the sign.
      const unsigned bits = operation->getOpcode() == Instruction::SExt ? width - 1 : width;
      if (step && !has_no_carry(*step, bits)) return std::nullopt;
      return step;
    }
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Or:
    case Instruction::Mul:
    case Instruction::And:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::UDiv:
    case Instruction::URem: return of_arithmetic(*operation, depth);
    case Instruction::Load:
      if (!cast<LoadInst>(operation)->hasMetadata(LLVMContext::MD_invariant_load)) return std::nullopt;
      break;
    case Instruction::Call: {
      const auto* call = dyn_cast<IntrinsicInst>(operation);
      if (!call || !call->doesNotAccessMemory() || call->isConvergent() ||
          !Intrinsic::isOverloaded(call->getIntrinsicID()))
        return std::nullopt;  // it may read a special register
      break;
    }
    case Instruction::Xor:
    case Instruction::SDiv:
    case Instruction::SRem:
    case Instruction::AShr:
    case Instruction::ICmp:
    case Instruction::Select:
    case Instruction::ExtractValue: break;
    default: return std::nullopt;
  }
  // The same for all threads of a group if all operands are.
  for (Value* operand : operation->operands()) {
    if (isa<Function>(operand)) continue;
    std::optional<Step> step = of(*operand, depth);
    if (!step || step->factor != 0) return std::nullopt;
  }
  return Step{};
}

// The counter of a loop around the place where values are used: threads are in the same iteration there.
std::optional<AddressStep> AddressSteps::of_counter(PHINode& phi, unsigned depth) {
  const Loop* loop = loops_.getLoopFor(phi.getParent());
  if (!loop || loop->getHeader() != phi.getParent() || !loop->contains(&at_) || phi.getNumIncomingValues() != 2)
    return std::nullopt;
  const unsigned entry = loop->contains(phi.getIncomingBlock(0)) ? 1 : 0;
  if (loop->contains(phi.getIncomingBlock(entry))) return std::nullopt;
  std::optional<Step> step = of(*phi.getIncomingValue(entry), depth);
  auto* next = dyn_cast<Operator>(phi.getIncomingValue(1 - entry));
  if (!step || !next) return std::nullopt;
  unsigned zeros = 0;
  if (next->getOpcode() == Instruction::Add) {
    Value* other = next->getOperand(0) == &phi ? next->getOperand(1) : next->getOperand(0);
    if (next->getOperand(0) != &phi && next->getOperand(1) != &phi) return std::nullopt;
    std::optional<Step> increment = of(*other, depth);
    if (!increment || increment->factor != 0) return std::nullopt;
    zeros = increment->zeros;
  } else if (auto* address = dyn_cast<GEPOperator>(next); address && address->getPointerOperand() == &phi) {
    std::optional<Step> increment = offset_of(*address, depth);
    if (!increment || increment->factor != 0) return std::nullopt;
    zeros = increment->zeros;
  } else {
    return std::nullopt;
  }
  return Step{step->factor, std::min(step->zeros, zeros)};
}

// Of what the address computation adds to its base.
std::optional<AddressStep> AddressSteps::offset_of(GEPOperator& address, unsigned depth) {
  Step sum{0, 64};
  for (auto index = gep_type_begin(address); index != gep_type_end(address); ++index) {
    Step part;
    if (StructType* structure = index.getStructTypeOrNull()) {
      const auto field = static_cast<unsigned>(cast<ConstantInt>(index.getOperand())->getZExtValue());
      part.zeros = low_zeros(layout_.getStructLayout(structure)->getElementOffset(field));
    } else {
      std::optional<Step> step = of(*index.getOperand(), depth);
      const TypeSize bytes = index.getSequentialElementStride(layout_);
      if (!step || bytes.isScalable()) return std::nullopt;
      // Narrower indices are extended.
      const unsigned width = index.getOperand()->getType()->getScalarSizeInBits();
      if (width < 64 && !has_no_carry(*step, width - 1)) return std::nullopt;
      part = scaled(*step, bytes.getFixedValue());
    }
    sum = {sum.factor + part.factor, std::min(sum.zeros, part.zeros)};
  }
  return sum;
}

std::optional<AddressStep> AddressSteps::of_address(GEPOperator& address, unsigned depth) {
  std::optional<Step> base = of(*address.getPointerOperand(), depth), offset = offset_of(address, depth);
  if (!base || !offset) return std::nullopt;
  return Step{base->factor + offset->factor, std::min(base->zeros, offset->zeros)};
}

std::optional<AddressStep> AddressSteps::of_arithmetic(Operator& operation, unsigned depth) {
  std::optional<Step> left = of(*operation.getOperand(0), depth), right = of(*operation.getOperand(1), depth);
  if (!left || !right) return std::nullopt;
  const auto* constant = dyn_cast<ConstantInt>(operation.getOperand(1));
  const unsigned opcode = operation.getOpcode();
  if (opcode == Instruction::Add || opcode == Instruction::Sub ||
      (opcode == Instruction::Or && isa<PossiblyDisjointInst>(operation) &&
       cast<PossiblyDisjointInst>(operation).isDisjoint())) {
    const uint64_t factor = opcode == Instruction::Sub ? left->factor - right->factor : left->factor + right->factor;
    return Step{factor, std::min(left->zeros, right->zeros)};
  }
  if (left->factor == 0 && right->factor == 0) {
    if (opcode == Instruction::Mul) return Step{0, std::min(64U, left->zeros + right->zeros)};
    return Step{};
  }
  // InstCombine puts constants on the right.
  if (!constant || constant->getBitWidth() > 64) return std::nullopt;
  const uint64_t number = constant->getZExtValue();
  const unsigned width = constant->getBitWidth();
  if (opcode == Instruction::Mul) return scaled(*left, number);
  if (opcode == Instruction::Shl) {
    if (number >= width) return std::nullopt;
    return scaled(*left, uint64_t{1} << number);
  }
  // What is left looks at single bits.
  if (!has_no_carry(*left, width)) return std::nullopt;
  const uint64_t bits = bits_of(left->factor);
  switch (opcode) {
    case Instruction::And:
      if ((number & bits) == bits) return left;
      if ((number & bits) == 0) return Step{0, std::max(left->zeros, low_zeros(number))};
      return std::nullopt;
    case Instruction::LShr: {
      if (number >= width) return std::nullopt;
      const unsigned zeros = left->zeros > number ? left->zeros - static_cast<unsigned>(number) : 0;
      if (bits >> number == 0) return Step{0, zeros};
      if (low_zeros(left->factor) >= number) return Step{left->factor >> number, zeros};
      return std::nullopt;
    }
    case Instruction::UDiv:
    case Instruction::URem: {
      // A and the divisor are multiples of a power of two that is larger than all of the bits.
      const unsigned zeros = std::min(left->zeros, low_zeros(number));
      if (number == 0 || zeros >= 64 || bits >= uint64_t{1} << zeros) return std::nullopt;
      return opcode == Instruction::UDiv ? Step{} : Step{left->factor, zeros};
    }
    default: return std::nullopt;
  }
}

// ---- From iteration to iteration

std::optional<Counter> counter_of(const PHINode& phi) {
  const BasicBlock* block = phi.getParent();
  if (phi.getNumIncomingValues() != 2 || !phi.getType()->isIntegerTy()) return std::nullopt;
  const unsigned entry = phi.getIncomingBlock(0) == block ? 1 : 0;
  auto* next = dyn_cast<BinaryOperator>(phi.getIncomingValue(1 - entry));
  if (!next || next->getOpcode() != Instruction::Add) return std::nullopt;
  if (next->getOperand(0) != &phi && next->getOperand(1) != &phi) return std::nullopt;
  Value* increment = next->getOperand(next->getOperand(0) == &phi ? 1 : 0);
  if (auto* made = dyn_cast<Instruction>(increment); made && made->getParent() == block) return std::nullopt;
  return Counter{phi.getIncomingValue(entry), increment};
}

std::optional<int64_t> IterationDistances::of(Value& value, unsigned depth) const {
  std::optional<int64_t> distance = compute(value, depth);
  if (!distance || *distance == 0) return distance;
  const unsigned bits = value.getType()->isIntegerTy() ? std::min(value.getType()->getIntegerBitWidth(), 32U) : 32;
  const uint64_t size = *distance < 0 ? -static_cast<uint64_t>(*distance) : static_cast<uint64_t>(*distance);
  return size < (uint64_t{1} << (bits - 1)) / trips_ ? distance : std::nullopt;
}

std::optional<int64_t> IterationDistances::compute(Value& value, unsigned depth) const {
  auto* instruction = dyn_cast<Instruction>(&value);
  if (!instruction || instruction->getParent() != &block_) return 0;
  if (depth == kMostSteps) return std::nullopt;
  if (auto* phi = dyn_cast<PHINode>(instruction)) {
    std::optional<Counter> counter = counter_of(*phi);
    auto* increment = counter ? dyn_cast<ConstantInt>(counter->increment) : nullptr;
    if (!increment || increment->getBitWidth() > 64) return std::nullopt;
    return increment->getSExtValue();
  }
  auto operand = [&](unsigned i) { return of(*instruction->getOperand(i), depth + 1); };
  if (auto* address = dyn_cast<GetElementPtrInst>(instruction)) return of_address(*address, depth);
  const auto* constant =
      instruction->getNumOperands() == 2 ? dyn_cast<ConstantInt>(instruction->getOperand(1)) : nullptr;
  if (constant && constant->getBitWidth() > 64) return std::nullopt;
  const int64_t number = constant ? constant->getSExtValue() : 0;
  switch (instruction->getOpcode()) {
    case Instruction::AddrSpaceCast:
    case Instruction::BitCast:
    case Instruction::Freeze:
    case Instruction::ZExt:
    case Instruction::SExt: return operand(0);
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Or: {
      if (instruction->getOpcode() == Instruction::Or && !cast<PossiblyDisjointInst>(instruction)->isDisjoint())
        return std::nullopt;
      std::optional<int64_t> left = operand(0), right = operand(1);
      // One of two that wrap when they are extended may wrap earlier.
      if (!left || !right || (*left != 0 && *right != 0)) return std::nullopt;
      return instruction->getOpcode() == Instruction::Sub ? *left - *right : *left + *right;
    }
    case Instruction::Mul:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::UDiv:
    case Instruction::URem:
    case Instruction::And: break;
    default: return std::nullopt;
  }
  std::optional<int64_t> left = operand(0);
  if (left == 0 && operand(1) == 0) return 0;
  if (!left || !constant || number < 0) return std::nullopt;
  const auto zeros = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(*left)));
  const bool is_shift = instruction->isShift();
  if (is_shift && number >= 32) return std::nullopt;
  const int64_t by = is_shift ? int64_t{1} << number : number;
  switch (instruction->getOpcode()) {
    case Instruction::Mul:
    case Instruction::Shl: {
      int64_t product = 0;
      if (MulOverflow(*left, by, product)) return std::nullopt;
      return product;
    }
    case Instruction::And:
      // Bits below those that change.
      if (zeros >= 63 || number < int64_t{1} << zeros) return 0;
      return std::nullopt;
    case Instruction::LShr: return *left % by == 0 ? std::optional(*left / by) : std::nullopt;
    default:
      // Of the counter alone, which does not wrap.
      if (!isa<PHINode>(instruction->getOperand(0)) || by == 0 || *left % by != 0) return std::nullopt;
      return instruction->getOpcode() == Instruction::UDiv ? *left / by : 0;
  }
}

std::optional<int64_t> IterationDistances::of_address(GetElementPtrInst& address, unsigned depth) const {
  std::optional<int64_t> sum = of(*address.getPointerOperand(), depth + 1);
  for (auto index = gep_type_begin(address); sum && index != gep_type_end(address); ++index) {
    if (index.isStruct()) continue;
    std::optional<int64_t> distance = of(*index.getOperand(), depth + 1);
    const TypeSize bytes = index.getSequentialElementStride(layout_);
    int64_t product = 0;
    if (!distance || bytes.isScalable() || (*distance != 0 && *sum != 0) ||
        MulOverflow(*distance, static_cast<int64_t>(bytes.getFixedValue()), product))
      return std::nullopt;
    *sum += product;
  }
  return sum;
}

}  // namespace kiln
