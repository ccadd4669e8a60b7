#include "compiler/nvptx/threadgroup_copies.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "compiler/analysis/divergence.h"
#include "compiler/ir/metadata.h"
#include "compiler/nvptx/barrier_intervals.h"
#include "compiler/nvptx/ptx_generator.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr uint64_t kCopyBytes = 16;  // of the widest access
constexpr unsigned kMostSteps = 48;  // of the operations that compute an address

bool reads(const Value& value, Intrinsic::ID special_register) {
  const auto* call = dyn_cast<IntrinsicInst>(&value);
  return call && call->getIntrinsicID() == special_register;
}

bool is_thread_x(const Value& value) { return reads(value, Intrinsic::nvvm_read_ptx_sreg_tid_x); }

// Special registers that are the same for the threads of a group, which differ in x alone.
bool is_same_in_group(const Value& value) {
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

// ---- Steps from thread to thread

// A value is A + factor * r, where r is the thread's number in its group of adjacent threads in x. A is the same for
// all threads of the group, and its `zeros` lowest bits are zero.
struct Step {
  uint64_t factor = 0;
  unsigned zeros = 0;
};

class Steps {
 public:
  // In groups of `threads`, a power of two. `at` is where values are used.
  Steps(unsigned threads, const BasicBlock& at, const LoopInfo& loops, const DataLayout& layout)
      : threads_(threads), at_(at), loops_(loops), layout_(layout) {}

  std::optional<Step> of(Value& value, unsigned depth = 0) {
    if (depth == kMostSteps) return std::nullopt;
    if (auto known = steps_.find(&value); known != steps_.end()) return known->second;
    steps_[&value] = std::nullopt;  // of a cycle
    std::optional<Step> step = compute(value, depth + 1);
    if (step && step->factor == 0) step->zeros = std::max(step->zeros, known_zeros(value));
    return steps_[&value] = step;
  }

 private:
  unsigned known_zeros(const Value& value) const {
    if (value.getType()->isPointerTy()) return Log2(value.getPointerAlignment(layout_));
    if (!value.getType()->isIntegerTy()) return 0;
    return computeKnownBits(&value, layout_).countMinTrailingZeros();
  }

  // The bits that factor * r may have, if the factor is a power of two.
  uint64_t bits_of(uint64_t factor) const { return factor * (threads_ - 1); }

  // Whether adding factor * r to A, in a type of this width, sets bits that are zero, so that no other bit changes.
  bool has_no_carry(const Step& step, unsigned width) const {
    return step.factor == 0 || (std::has_single_bit(step.factor) &&
                                bits_of(step.factor) < uint64_t{1} << std::min({step.zeros, width, 63U}));
  }

  std::optional<Step> compute(Value& value, unsigned depth) {
    if (is_thread_x(value)) return Step{1, static_cast<unsigned>(std::countr_zero(threads_))};
    if (is_same_in_group(value) || isa<Argument, GlobalVariable, ConstantData>(value)) return Step{};
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
  std::optional<Step> of_counter(PHINode& phi, unsigned depth) {
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
  std::optional<Step> offset_of(GEPOperator& address, unsigned depth) {
    Step sum{0, 64};
    for (auto index = gep_type_begin(address); index != gep_type_end(address); ++index) {
      Step part;
      if (StructType* structure = index.getStructTypeOrNull()) {
        const auto field = static_cast<unsigned>(cast<ConstantInt>(index.getOperand())->getZExtValue());
        part.zeros = zeros_of(layout_.getStructLayout(structure)->getElementOffset(field));
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

  std::optional<Step> of_address(GEPOperator& address, unsigned depth) {
    std::optional<Step> base = of(*address.getPointerOperand(), depth), offset = offset_of(address, depth);
    if (!base || !offset) return std::nullopt;
    return Step{base->factor + offset->factor, std::min(base->zeros, offset->zeros)};
  }

  static unsigned zeros_of(uint64_t number) { return static_cast<unsigned>(std::countr_zero(number)); }

  static Step scaled(const Step& step, uint64_t by) {
    return {step.factor * by, std::min(64U, step.zeros + zeros_of(by))};
  }

  std::optional<Step> of_arithmetic(Operator& operation, unsigned depth) {
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
        if ((number & bits) == 0) return Step{0, std::max(left->zeros, zeros_of(number))};
        return std::nullopt;
      case Instruction::LShr: {
        if (number >= width) return std::nullopt;
        const unsigned zeros = left->zeros > number ? left->zeros - static_cast<unsigned>(number) : 0;
        if (bits >> number == 0) return Step{0, zeros};
        if (zeros_of(left->factor) >= number) return Step{left->factor >> number, zeros};
        return std::nullopt;
      }
      case Instruction::UDiv:
      case Instruction::URem: {
        // A and the divisor are multiples of a power of two that is larger than all of the bits.
        const unsigned zeros = std::min(left->zeros, zeros_of(number));
        if (number == 0 || zeros >= 64 || bits >= uint64_t{1} << zeros) return std::nullopt;
        return opcode == Instruction::UDiv ? Step{} : Step{left->factor, zeros};
      }
      default: return std::nullopt;
    }
  }

  const unsigned threads_;
  const BasicBlock& at_;
  const LoopInfo& loops_;
  const DataLayout& layout_;
  DenseMap<Value*, std::optional<Step>> steps_;
};

// ---- The loops

struct Copy {
  LoadInst* load;
  StoreInst* store;
};

struct CopyLoop {
  BasicBlock* block;
  uint64_t trips;
  uint64_t element_bytes;
  unsigned threads = 1;  // of a group
  SmallVector<Copy, 2> copies;
};

// A counter of the loop: what it begins with, and what is added in an iteration.
struct Counter {
  Value *start, *increment;
};

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

// What is added to a value in each iteration of the loop, modulo two to the power of its width. In all iterations
// together, that is less than half of what the type, or 32 bits, can hold: the value does not come back to where it
// was. SCEV knows it of sums and products, but not of quotients and remainders.
class Distances {
 public:
  // `trips` is not zero.
  Distances(const BasicBlock& block, uint64_t trips) : block_(block), layout_(block.getDataLayout()), trips_(trips) {}

  std::optional<int64_t> of(Value& value, unsigned depth = 0) {
    std::optional<int64_t> distance = compute(value, depth);
    if (!distance || *distance == 0) return distance;
    const unsigned bits = value.getType()->isIntegerTy() ? std::min(value.getType()->getIntegerBitWidth(), 32U) : 32;
    const uint64_t size = *distance < 0 ? -static_cast<uint64_t>(*distance) : static_cast<uint64_t>(*distance);
    return size < (uint64_t{1} << (bits - 1)) / trips_ ? distance : std::nullopt;
  }

 private:
  std::optional<int64_t> compute(Value& value, unsigned depth) {
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

  std::optional<int64_t> of_address(GetElementPtrInst& address, unsigned depth) {
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

  const BasicBlock& block_;
  const DataLayout& layout_;
  const uint64_t trips_;
};

class Finder {
 public:
  Finder(Function& function, FunctionAnalysisManager& analyses, uint32_t width)
      : width_(width),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {
    find_thread_values(function);
    const auto& post_dominators = analyses.getResult<PostDominatorTreeAnalysis>(function);
    const Divergence divergence(function, analyses.getResult<CycleAnalysis>(function), post_dominators, difference_of);
    for (BasicBlock& block : function)
      if (divergence.is_divergent_branch(block) && !leaves_together(block))
        find_divergent_blocks(block, post_dominators);
  }

  SmallVector<CopyLoop> find() {
    SmallVector<CopyLoop> found;
    for (Loop* loop : loops_.getLoopsInPreorder())
      if (std::optional<CopyLoop> copies = copies_of(*loop)) found.push_back(*copies);
    return found;
  }

  bool has_changed() const { return has_changed_; }

  // Values that are computed from the thread's x.
  const SmallPtrSetImpl<Value*>& thread_values() const { return thread_values_; }

 private:
  static Difference difference_of(const Value& value) {
    const auto* instruction = dyn_cast<Instruction>(&value);
    if (!instruction) return Difference::kNone;
    if (const auto* load = dyn_cast<LoadInst>(instruction))
      return load->hasMetadata(LLVMContext::MD_invariant_load) ? Difference::kInherits : Difference::kSource;
    if (instruction->isAtomic()) return Difference::kSource;
    if (const auto* call = dyn_cast<CallBase>(instruction)) {
      const auto* intrinsic = dyn_cast<IntrinsicInst>(call);
      if (!intrinsic || !call->doesNotAccessMemory() || call->isConvergent()) return Difference::kSource;
      const bool is_position = is_same_in_group(value) && !reads(value, Intrinsic::nvvm_read_ptx_sreg_tid_y) &&
                               !reads(value, Intrinsic::nvvm_read_ptx_sreg_tid_z);
      if (is_position) return Difference::kNone;
      return Intrinsic::isOverloaded(intrinsic->getIntrinsicID()) ? Difference::kInherits : Difference::kSource;
    }
    return Difference::kInherits;
  }

  void find_thread_values(Function& function) {
    SmallVector<Value*> work;
    for (Instruction& instruction : instructions(function))
      if (is_thread_x(instruction)) work.push_back(&instruction);
    while (!work.empty()) {
      Value* value = work.pop_back_val();
      if (!thread_values_.insert(value).second) continue;
      for (User* user : value->users()) work.push_back(user);
    }
  }

  // Whether the block ends a loop that all threads leave in the same iteration, though they compare counters of their
  // own.
  bool leaves_together(const BasicBlock& block) {
    Loop* loop = loops_.getLoopFor(&block);
    return loop && loop->getExitingBlock() == &block && trips_of(*loop) != 0;
  }

  // Blocks that not all threads execute, or not in the same iteration.
  void find_divergent_blocks(BasicBlock& branch, const PostDominatorTree& post_dominators) {
    const auto* node = post_dominators.getNode(&branch);
    const BasicBlock* end = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
    SmallPtrSet<const BasicBlock*, 16> seen;
    SmallVector<const BasicBlock*> work(successors(&branch));
    while (!work.empty()) {
      const BasicBlock* block = work.pop_back_val();
      if (block == end || !seen.insert(block).second) continue;
      divergent_.insert(block);
      append_range(work, successors(block));
    }
  }

  std::optional<CopyLoop> copies_of(Loop& loop) {
    BasicBlock* block = loop.getHeader();
    if (loop.getNumBlocks() != 1 || divergent_.contains(block) || !loop.getExitBlock() || !loop.getLoopPredecessor())
      return std::nullopt;
    has_changed_ |= replace_sums(*block);
    CopyLoop found{.block = block, .trips = 0, .element_bytes = 0, .copies = {}};
    if (!find_copies(found)) return std::nullopt;
    // Otherwise a thread might write twice to an address in iterations that different threads would get.
    if (reaches_without_barrier(*loop.getExitBlock(), *block)) return std::nullopt;
    found.trips = trips_of(loop);
    if (found.trips < 2) return std::nullopt;
    for (const Copy& copy : found.copies) {
      GlobalVariable* variable = threadgroup_variable_of(*copy.store->getPointerOperand());
      const auto shares = [&](const Copy& other) {
        return &other != &copy && threadgroup_variable_of(*other.store->getPointerOperand()) == variable;
      };
      if (!variable || any_of(found.copies, shares) || !moves_on(*copy.store, found)) return std::nullopt;
      if (!interval_of_lone_stores(*variable, {copy.store})) return std::nullopt;
    }
    for (uint64_t threads = kCopyBytes / found.element_bytes; threads > 1; threads /= 2)
      if (may_group(found, static_cast<unsigned>(threads))) {
        found.threads = static_cast<unsigned>(threads);
        return found;
      }
    return std::nullopt;
  }

  // Rotation of a loop makes a counter of `counter | lane`, which begins with the thread's index and continues with
  // `next | lane`. It becomes that sum again.
  bool replace_sums(BasicBlock& block) const {
    bool has_replaced = false;
    for (PHINode& phi : make_early_inc_range(block.phis())) {
      if (phi.getNumIncomingValues() != 2 || !phi.getType()->isIntegerTy()) continue;
      const unsigned entry = phi.getIncomingBlock(0) == &block ? 1 : 0;
      auto* sum = dyn_cast<PossiblyDisjointInst>(phi.getIncomingValue(1 - entry));
      if (!sum || !sum->isDisjoint()) continue;
      for (PHINode& counter : block.phis()) {
        if (&counter == &phi || counter.getType() != phi.getType()) continue;
        Value* next = counter.getIncomingValueForBlock(&block);
        if (sum->getOperand(0) != next && sum->getOperand(1) != next) continue;
        Value* part = sum->getOperand(sum->getOperand(0) == next ? 1 : 0);
        if (auto* made = dyn_cast<Instruction>(part); made && made->getParent() == &block) continue;
        if (!are_parts(*counter.getIncomingValue(counter.getIncomingBlock(0) == &block ? 1 : 0), *part,
                       *phi.getIncomingValue(entry)))
          continue;
        IRBuilder<> builder(&block, block.getFirstInsertionPt());
        Value* same = builder.CreateOr(&counter, part);
        cast<PossiblyDisjointInst>(same)->setIsDisjoint(true);
        phi.replaceAllUsesWith(same);
        phi.eraseFromParent();
        has_replaced = true;
        break;
      }
    }
    return has_replaced;
  }

  // Whether the first two are `whole & mask` each, and together have each of its bits once.
  bool are_parts(Value& one, Value& other, Value& whole) const {
    const APInt *mask = nullptr, *rest = nullptr;
    using namespace PatternMatch;
    return match(&one, m_And(m_Specific(&whole), m_APInt(mask))) &&
           match(&other, m_And(m_Specific(&whole), m_APInt(rest))) &&
           (~(*mask ^ *rest)).isSubsetOf(computeKnownBits(&whole, layout_).Zero);
  }

  // Whether the block does nothing else.
  static bool find_copies(CopyLoop& found) {
    for (Instruction& instruction : *found.block) {
      for (const User* user : instruction.users())
        if (cast<Instruction>(user)->getParent() != found.block) return false;
      if (auto* phi = dyn_cast<PHINode>(&instruction)) {
        if (!counter_of(*phi)) return false;
      } else if (auto* load = dyn_cast<LoadInst>(&instruction)) {
        if (!load->isSimple() || !load->hasMetadata(LLVMContext::MD_invariant_load)) return false;
        if (!all_of(load->users(), [&](User* user) {
              auto* store = dyn_cast<StoreInst>(user);
              return store && store->getValueOperand() == load;
            }))
          return false;
      } else if (auto* store = dyn_cast<StoreInst>(&instruction)) {
        auto* copied = dyn_cast<LoadInst>(store->getValueOperand());
        if (!store->isSimple() || !copied || copied->getParent() != found.block) return false;
        found.copies.push_back({copied, store});
      } else if (!instruction.isTerminator() && (instruction.mayHaveSideEffects() || instruction.mayReadFromMemory())) {
        return false;
      }
    }
    if (found.copies.empty()) return false;
    const DataLayout& layout = found.block->getDataLayout();
    const Type* type = found.copies[0].load->getType();
    found.element_bytes = layout.getTypeStoreSize(const_cast<Type*>(type)).getFixedValue();
    return std::has_single_bit(found.element_bytes) && found.element_bytes < kCopyBytes &&
           all_of(
               found.copies,
               [&](const Copy& copy) { return layout.getTypeStoreSize(copy.load->getType()) == found.element_bytes; });
  }

  // The loop's trip count, if it is one number for all threads; else 0. A counter that begins with the thread's index
  // often reaches its end in the same iteration for each thread, which SCEV does not see.
  uint64_t trips_of(Loop& loop) {
    if (uint64_t count = evolution_.getSmallConstantTripCount(&loop)) return count;
    const BasicBlock* latch = loop.getLoopLatch();
    const auto* branch = latch ? dyn_cast<BranchInst>(latch->getTerminator()) : nullptr;
    const auto* compare = branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
    const BasicBlock* entry = loop.getLoopPredecessor();
    if (!compare || !entry || loop.getExitingBlock() != latch || branch->getSuccessor(0) != loop.getHeader()) return 0;
    const auto* next = dyn_cast<BinaryOperator>(compare->getOperand(0));
    const auto* end = dyn_cast<ConstantInt>(compare->getOperand(1));
    const ICmpInst::Predicate predicate = compare->getPredicate();
    if (!next || !end || (predicate != ICmpInst::ICMP_ULT && predicate != ICmpInst::ICMP_SLT)) return 0;
    const auto* phi = dyn_cast<PHINode>(next->getOperand(0));
    const auto* increment = dyn_cast<ConstantInt>(next->getOperand(1));
    if (next->getOpcode() != Instruction::Add || !phi || phi->getParent() != loop.getHeader() || !increment) return 0;
    if (phi->getIncomingValueForBlock(latch) != next) return 0;
    const KnownBits start = computeKnownBits(phi->getIncomingValueForBlock(entry), layout_);
    const APInt first = start.getMinValue(), last = start.getMaxValue();
    // So that nothing wraps, signed or not.
    const unsigned bits = start.getBitWidth() - 2;
    if (bits > 62 || !last.isIntN(bits) || !end->getValue().isIntN(bits) || !increment->getValue().isIntN(bits) ||
        increment->isZero())
      return 0;
    auto trips = [&](const APInt& from) {
      const uint64_t reached = end->getZExtValue();
      return from.getZExtValue() >= reached ? 1 : divideCeil(reached - from.getZExtValue(), increment->getZExtValue());
    };
    return trips(first) == trips(last) ? trips(first) : 0;
  }

  // Whether a thread's iterations store to different addresses.
  static bool moves_on(StoreInst& store, const CopyLoop& loop) {
    return Distances(*loop.block, loop.trips).of(*store.getPointerOperand()).value_or(0) != 0;
  }

  bool may_group(CopyLoop& loop, unsigned threads) {
    if (width_ % threads != 0 || loop.trips % threads != 0) return false;
    Steps steps(threads, *loop.block, loops_, layout_);
    const auto zeros = static_cast<unsigned>(std::countr_zero(threads * loop.element_bytes));
    auto is_vector = [&](Value& address) {
      std::optional<Step> step = steps.of(address);
      return step && step->factor == loop.element_bytes && step->zeros >= zeros;
    };
    return all_of(loop.copies,
                  [&](const Copy& copy) {
                    return is_vector(*copy.load->getPointerOperand()) && is_vector(*copy.store->getPointerOperand());
                  }) &&
           // What a thread adds to a counter must not be its own.
           all_of(loop.block->phis(),
                  [&](PHINode& phi) { return !thread_values_.contains(counter_of(phi)->increment); });
  }

  const uint32_t width_;
  const DataLayout& layout_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  bool has_changed_ = false;
  SmallPtrSet<Value*, 32> thread_values_;
  SmallPtrSet<const BasicBlock*, 16> divergent_;
};

// ---- The loop of vectors

class Rewriter {
 public:
  Rewriter(Function& function, const CopyLoop& loop, uint32_t width, const SmallPtrSetImpl<Value*>& thread_values)
      : loop_(loop),
        thread_values_(thread_values),
        disjoint_(MDNode::getDistinct(function.getContext(), {})),
        builder_(&*function.getEntryBlock().getFirstInsertionPt()) {
    CallInst* x = builder_.CreateIntrinsic(Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
    x->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, width)));
    const uint32_t groups = width / loop.threads;
    first_thread_ =
        builder_.CreateNUWMul(builder_.CreateURem(x, builder_.getInt32(groups)), builder_.getInt32(loop.threads));
    first_iteration_ = builder_.CreateUDiv(x, builder_.getInt32(groups));
  }

  void run() {
    BasicBlock* old = loop_.block;
    BasicBlock* exit = nullptr;
    for (BasicBlock* successor : successors(old))
      if (successor != old) exit = successor;
    BasicBlock* entry = nullptr;
    for (BasicBlock* predecessor : predecessors(old))
      if (predecessor != old) entry = predecessor;
    block_ = BasicBlock::Create(old->getContext(), old->getName() + ".vectors", old->getParent(), old);
    builder_.SetInsertPoint(block_);
    PHINode* count = builder_.CreatePHI(builder_.getInt32Ty(), 2, "iteration");
    count->addIncoming(builder_.getInt32(0), entry);
    iteration_ = builder_.CreateAdd(first_iteration_, count);
    for (const Copy& copy : loop_.copies) add(copy);
    Value* next = builder_.CreateNUWAdd(count, builder_.getInt32(loop_.threads));
    count->addIncoming(next, block_);
    Value* is_more = builder_.CreateICmpULT(next, builder_.getInt32(static_cast<uint32_t>(loop_.trips)));
    builder_.CreateCondBr(is_more, block_, exit);

    entry->getTerminator()->replaceSuccessorWith(old, block_);
    for (PHINode& phi : exit->phis()) phi.addIncoming(phi.getIncomingValueForBlock(old), block_);
    DeleteDeadBlock(old);
  }

 private:
  void add(const Copy& copy) {
    const uint64_t bytes = loop_.threads * loop_.element_bytes;
    Type* word = bytes < 4 ? builder_.getIntNTy(static_cast<unsigned>(8 * bytes)) : builder_.getInt32Ty();
    Type* type = bytes <= 4 ? word : FixedVectorType::get(word, static_cast<unsigned>(bytes / 4));
    Value* from = substituted(*copy.load->getPointerOperand());
    Value* to = substituted(*copy.store->getPointerOperand());
    LoadInst* load = builder_.CreateAlignedLoad(type, from, Align(bytes));
    load->copyMetadata(*copy.load, {LLVMContext::MD_invariant_load, LLVMContext::MD_alias_scope,
                                    LLVMContext::MD_noalias, LLVMContext::MD_dbg});
    StoreInst* store = builder_.CreateAlignedStore(load, to, Align(bytes));
    store->copyMetadata(*copy.store, {LLVMContext::MD_alias_scope, LLVMContext::MD_noalias, LLVMContext::MD_dbg});
    // Once the loop is unrolled, the proof is lost.
    mark_aligned(*load);
    mark_aligned(*store);
    store->setMetadata(kDisjoint, disjoint_);
  }

  // The value that the first thread of the group has in the iteration.
  Value* substituted(Value& value) {
    if (is_thread_x(value)) return first_thread_;
    if (auto known = values_.find(&value); known != values_.end()) return known->second;
    auto* instruction = dyn_cast<Instruction>(&value);
    if (!instruction || (!thread_values_.contains(&value) && instruction->getParent() != loop_.block)) return &value;
    // Not of other counters: nothing is known of what they begin with, such as an atomic operation.
    if (auto* phi = dyn_cast<PHINode>(instruction); phi && phi->getParent() == loop_.block) {
      const Counter counter = *counter_of(*phi);
      Value* start = substituted(*counter.start);
      Value* number = builder_.CreateZExtOrTrunc(iteration_, phi->getType());
      return values_[&value] = builder_.CreateAdd(start, builder_.CreateMul(counter.increment, number));
    }
    Instruction* copy = instruction->clone();
    values_[&value] = copy;
    if (instruction->getParent() == loop_.block) {
      for (Use& operand : copy->operands()) operand.set(substituted(*operand));
      builder_.Insert(copy);
    } else {
      copy->insertBefore(instruction);
      for (Use& operand : copy->operands()) operand.set(substituted(*operand));
    }
    return copy;
  }

  const CopyLoop& loop_;
  const SmallPtrSetImpl<Value*>& thread_values_;
  MDNode* const disjoint_;
  IRBuilder<> builder_;
  BasicBlock* block_ = nullptr;
  Value *first_thread_ = nullptr, *first_iteration_ = nullptr, *iteration_ = nullptr;
  DenseMap<Value*, Value*> values_;
};

}  // namespace

bool vectorize_threadgroup_copies(Function& function, FunctionAnalysisManager& analyses, uint32_t width) {
  Finder finder(function, analyses, width);
  const SmallVector<CopyLoop> found = finder.find();
  for (const CopyLoop& loop : found) Rewriter(function, loop, width, finder.thread_values()).run();
  return !found.empty() || finder.has_changed();
}

}  // namespace kiln
