#include "compiler/vectorize/widener_lane_sums.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>

#include <numeric>
#include <utility>

#include "compiler/ir/simdgroup.h"

namespace kiln::widening {

namespace {

constexpr unsigned kMostSteps = 32;
constexpr size_t kMostTerms = 3;
constexpr int64_t kMaxFactor = 1 << 20;

// What the factors of a sum add up to is less than so many bits have.
constexpr unsigned kFactorBits = 10;

}  // namespace

std::optional<int64_t> LaneSums::scale_of_step(const Instruction& step) const {
  const bool is_wide = layout_.getTypeSizeInBits(step.getType()) == 64;
  switch (step.getOpcode()) {
    case Instruction::Or:
      // What has no bit in common is added.
      if (!cast<PossiblyDisjointInst>(step).isDisjoint()) return std::nullopt;
      [[fallthrough]];
    case Instruction::GetElementPtr:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::Add:
    case Instruction::Sub: return is_wide ? std::optional<int64_t>(1) : std::nullopt;
    case Instruction::Mul:
    case Instruction::Shl: {
      const auto* by = dyn_cast<ConstantInt>(step.getOperand(1));
      const bool is_shift = step.getOpcode() == Instruction::Shl;
      if (!is_wide || !by || by->getValue().getActiveBits() > 16 || (is_shift && by->getZExtValue() > 16))
        return std::nullopt;
      return static_cast<int64_t>(is_shift ? uint64_t{1} << by->getZExtValue() : by->getZExtValue());
    }
    default: return std::nullopt;
  }
}

// Adds what differs between lanes in a number of 64 bits or an address, times `factor`, to the terms. False where there
// are too many, or others than numbers.
bool LaneSums::add_terms(Value* value, int64_t factor, LaneSum& sum, unsigned& steps) const {
  if (!flow_.is_divergent(value)) return true;
  auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || ++steps > kMostSteps || std::abs(factor) > kMaxFactor) return false;
  auto add_term = [&](Value* number, std::optional<unsigned> extension, int64_t by) {
    // Of fewer bits, the steps of a part would wrap.
    const auto* type = dyn_cast<IntegerType>(number->getType());
    if (!type || type->getBitWidth() < 8 || (!extension && type->getBitWidth() != 64)) return false;
    for (LaneTerm& term : sum.terms)
      if (term.number == number && term.extension == extension) {
        term.factor += by;
        return true;
      }
    sum.terms.push_back({number, extension, by});
    return sum.terms.size() <= kMostTerms;
  };
  const unsigned opcode = instruction->getOpcode();
  const auto operand = [&](unsigned i) { return instruction->getOperand(i); };
  const std::optional<int64_t> scale = scale_of_step(*instruction);
  if (!scale) {
    if (opcode == Instruction::ZExt || opcode == Instruction::SExt) return add_term(operand(0), opcode, factor);
    return add_term(value, std::nullopt, factor);
  }
  if (opcode == Instruction::GetElementPtr) {
    if (!add_terms(operand(0), factor, sum, steps)) return false;
    auto level = gep_type_begin(instruction);
    for (unsigned i = 1; i < instruction->getNumOperands(); ++i, ++level) {
      if (!flow_.is_divergent(operand(i))) continue;
      const uint64_t size = level.getSequentialElementStride(layout_);
      if (size > static_cast<uint64_t>(kMaxFactor)) return false;
      const int64_t by = factor * static_cast<int64_t>(size);
      // An address extends a narrow index itself.
      const bool is_added = operand(i)->getType()->isIntegerTy(64) ? add_terms(operand(i), by, sum, steps)
                                                                   : add_term(operand(i), Instruction::SExt, by);
      if (!is_added) return false;
    }
    return true;
  }
  if (!add_terms(operand(0), factor * *scale, sum, steps)) return false;
  if (opcode == Instruction::Add || opcode == Instruction::Or) return add_terms(operand(1), factor, sum, steps);
  if (opcode == Instruction::Sub) return add_terms(operand(1), -factor, sum, steps);
  return true;
}

// Small constants that are added to numbers before those are extended: so sums at constant distances, as a stencil's,
// have the same terms, which are tested once. That holds of numbers as small as sums_of() demands.
void LaneSums::take_out_constants(LaneSum& sum) {
  for (LaneTerm& term : sum.terms) {
    auto* added = dyn_cast<Instruction>(term.number);
    auto* constant = added && added->getOpcode() == Instruction::Add && added->getType()->isIntegerTy(32)
                         ? dyn_cast<ConstantInt>(added->getOperand(1))
                         : nullptr;
    const int64_t by = constant ? constant->getSExtValue() : 0;
    const bool is_exact =
        std::abs(by) < int64_t{1} << LaneSum::kSmallBits && (term.extension == Instruction::SExt || by >= 0);
    if (constant && is_exact) {
      sum.constant += by * term.factor;
      term.number = added->getOperand(0);
    }
    // A small word that is not negative is extended to the same number in both ways.
    if (term.number->getType()->isIntegerTy(32)) term.extension = Instruction::ZExt;
  }
}

// All terms, in elements.
std::optional<LaneSum> LaneSums::sum_of_terms(Value* value, uint64_t bytes) const {
  LaneSum sum{value, {}, 0, false, 1};
  unsigned steps = 0;
  if (!add_terms(value, 1, sum, steps)) return std::nullopt;
  erase_if(sum.terms, [](const LaneTerm& term) { return term.factor == 0; });
  const auto size = static_cast<int64_t>(bytes);
  for (LaneTerm& term : sum.terms) {
    if (term.factor % size != 0) return std::nullopt;
    term.factor /= size;
  }
  return sum;
}

std::optional<LaneSum> LaneSums::lane_sum_of(Value* value, uint64_t bytes, int64_t most_scale) const {
  std::optional<LaneSum> sum = sum_of_terms(value, bytes);
  if (!sum) return std::nullopt;
  uint64_t factors = 0;
  int64_t common = 0;
  for (const LaneTerm& term : sum->terms) {
    factors += static_cast<uint64_t>(std::abs(term.factor));
    common = std::gcd(common, term.factor);
  }
  sum->is_quotient =
      !sum->terms.empty() && all_of(sum->terms, [&](const LaneTerm& term) { return is_quotient(term.number); });
  // Lanes with a common factor are never consecutive.
  if (common != 1 && !sum->is_quotient) {
    if (common == 0 || common > most_scale || !isPowerOf2_64(static_cast<uint64_t>(common))) return std::nullopt;
    sum->scale = common;
    for (LaneTerm& term : sum->terms) term.factor /= common;
  }
  if (factors >= uint64_t{1} << kFactorBits) return std::nullopt;
  if (sum->is_sum_of_small()) take_out_constants(*sum);
  return sum;
}

std::optional<LaneSum> LaneSums::one_number_of(Value* value, uint64_t bytes, int64_t most_scale) const {
  std::optional<LaneSum> sum = sum_of_terms(value, bytes);
  if (!sum || sum->terms.size() != 1) return std::nullopt;
  sum->scale = std::exchange(sum->terms[0].factor, 1);
  if (sum->scale < 1 || sum->scale > most_scale) return std::nullopt;
  return sum;
}

// Whether a number is the quotient of a division or shift, but for what all lanes have: as a row's or channel's, it is
// mostly the same in neighbouring lanes.
bool LaneSums::is_quotient(Value* number) const {
  for (unsigned steps = 0; steps < kMostSteps; ++steps) {
    auto* instruction = dyn_cast<Instruction>(number);
    if (!instruction) return false;
    switch (instruction->getOpcode()) {
      case Instruction::UDiv:
      case Instruction::SDiv:
      case Instruction::LShr:
      case Instruction::AShr: return true;
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
      case Instruction::Or:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::Trunc: {
        auto is_other = [&](const Use& operand) { return flow_.is_divergent(operand.get()); };
        if (count_if(instruction->operands(), is_other) != 1) return false;
        number = *find_if(instruction->operands(), is_other);
        break;
      }
      default: return false;
    }
  }
  return false;
}

bool LaneSums::has_position(Value* number) const {
  SmallVector<Value*> left{number};
  SmallPtrSet<Value*, 16> seen;
  while (!left.empty()) {
    Value* value = left.pop_back_val();
    if (!flow_.is_divergent(value) || isa<LoadInst>(value) || !seen.insert(value).second) continue;
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || is_lane(value) || instruction->mayReadOrWriteMemory() || seen.size() > kMostSteps) return true;
    append_range(left, instruction->operand_values());
  }
  return false;
}

}  // namespace kiln::widening
