#include "compiler/analysis/value_ranges.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "compiler/ir/pseudo_intrinsics.h"

namespace kiln {

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

constexpr unsigned kRounds = 16;      // then nothing is proved
constexpr unsigned kExactRounds = 2;  // before phis are widened
constexpr unsigned kNarrowings = 3;
constexpr unsigned kFacts = 32;     // conditions kept for a value
constexpr unsigned kLeaders = 8;    // of equivalent values where none dominates the others
constexpr unsigned kFactDepth = 4;  // casts and additions between a value and the compared value
constexpr unsigned kDepth = 32;     // of expressions re-evaluated at their use

bool is_number(const Value& value) {
  return (value.getType()->isIntegerTy() && value.getType()->getIntegerBitWidth() <= 64) ||
         value.getType()->isPointerTy();
}

unsigned width_of(const Value& value) {
  return value.getType()->isPointerTy() ? 64 : value.getType()->getIntegerBitWidth();
}

}  // namespace

class ValueRanges::Analysis {
 public:
  Analysis(Function& function, const ThreadLimits& limits)
      : layout_(function.getDataLayout()), limits_(limits), dominators_(function) {
    ReversePostOrderTraversal<Function*> order(&function);
    for (BasicBlock* block : order) number_[block] = static_cast<unsigned>(number_.size());
    number_values(order);
    find_facts(order);
    for (BasicBlock* block : order)
      for (Instruction& instruction : *block)
        if (is_number(instruction) && !isa<AllocaInst>(instruction) && leader(&instruction) == &instruction)
          values_.push_back(&instruction);
    solve();
  }

  ConstantRange range_at(Value* value, BasicBlock* block) {
    evaluated_.clear();
    return evaluate(leader(value), block, kDepth);
  }

 private:
  struct Fact {
    CmpInst::Predicate predicate;
    Value *left, *right;
    BasicBlock* block;  // it holds where this block dominates
  };
  using Edge = std::pair<BasicBlock*, BasicBlock*>;

  // ---- Value numbering

  Value* leader(Value* value) const {
    auto found = leaders_.find(value);
    return found == leaders_.end() ? value : found->second;
  }

  // The operand behind a vector component, or behind a truth value that was widened to a byte.
  Value* simplified(Instruction& instruction) const {
    Value* source;
    if (auto* extract = dyn_cast<ExtractElementInst>(&instruction)) {
      auto* index = dyn_cast<ConstantInt>(extract->getIndexOperand());
      if (!index) return nullptr;
      return component(extract->getVectorOperand(), index->getZExtValue());
    }
    if (match(&instruction, m_Trunc(m_ZExt(m_Value(source)))) && source->getType() == instruction.getType())
      return leader(source);
    if (auto* extract = dyn_cast<ExtractValueInst>(&instruction)) {
      source = FindInsertedValue(extract->getAggregateOperand(), extract->getIndices());
      return source ? leader(source) : nullptr;
    }
    if (auto* freeze = dyn_cast<FreezeInst>(&instruction)) return leader(freeze->getOperand(0));
    return nullptr;
  }

  Value* component(Value* vector, uint64_t index) const {
    for (unsigned steps = 0; steps < 64; ++steps) {
      if (auto* constant = dyn_cast<Constant>(vector))
        return constant->getAggregateElement(static_cast<unsigned>(index));
      if (auto* insert = dyn_cast<InsertElementInst>(vector)) {
        auto* position = dyn_cast<ConstantInt>(insert->getOperand(2));
        if (!position) return nullptr;
        if (position->getZExtValue() == index) return leader(insert->getOperand(1));
        vector = insert->getOperand(0);
      } else if (auto* shuffle = dyn_cast<ShuffleVectorInst>(vector)) {
        auto* type = dyn_cast<FixedVectorType>(shuffle->getOperand(0)->getType());
        if (!type || index >= shuffle->getShuffleMask().size()) return nullptr;
        int from = shuffle->getMaskValue(static_cast<unsigned>(index));
        if (from < 0) return nullptr;
        unsigned count = type->getNumElements(), lane = static_cast<unsigned>(from);
        vector = shuffle->getOperand(lane >= count);
        index = lane % count;
      } else {
        return nullptr;
      }
    }
    return nullptr;
  }

  static bool is_pure(const Instruction& instruction) {
    if (isa<BinaryOperator, CastInst, CmpInst, SelectInst, GetElementPtrInst, ExtractElementInst>(instruction))
      return true;
    if (const auto* load = dyn_cast<LoadInst>(&instruction))
      return load->hasMetadata(LLVMContext::MD_invariant_load) && load->isSimple();
    const auto* call = dyn_cast<CallInst>(&instruction);
    return call && call->doesNotAccessMemory() && !call->isConvergent() && !call->getType()->isVoidTy();
  }

  void number_values(ReversePostOrderTraversal<Function*>& order) {
    std::map<std::vector<uintptr_t>, SmallVector<Instruction*, 1>> known;
    std::vector<uintptr_t> key;
    for (BasicBlock* block : order)
      for (Instruction& instruction : *block) {
        if (Value* simple = simplified(instruction)) {
          leaders_[&instruction] = simple;
          continue;
        }
        if (!is_number(instruction) || !is_pure(instruction)) continue;
        key.assign({instruction.getOpcode(), reinterpret_cast<uintptr_t>(instruction.getType())});
        if (auto* comparison = dyn_cast<CmpInst>(&instruction)) key.push_back(comparison->getPredicate());
        if (auto* gep = dyn_cast<GetElementPtrInst>(&instruction))
          key.push_back(reinterpret_cast<uintptr_t>(gep->getSourceElementType()));
        for (Value* operand : instruction.operands()) key.push_back(reinterpret_cast<uintptr_t>(leader(operand)));
        // The conditions of a leader hold in blocks that it dominates.
        SmallVector<Instruction*, 1>& leaders = known[key];
        auto* found =
            find_if(leaders, [&](Instruction* one) { return dominators_.dominates(one->getParent(), block); });
        if (found != leaders.end())
          leaders_[&instruction] = *found;
        else if (leaders.size() < kLeaders)
          leaders.push_back(&instruction);
      }
  }

  // ---- Conditions

  void find_facts(ReversePostOrderTraversal<Function*>& order) {
    for (BasicBlock* block : order) {
      Instruction* terminator = block->getTerminator();
      if (auto* branch = dyn_cast<BranchInst>(terminator); branch && branch->isConditional()) {
        BasicBlock *then = branch->getSuccessor(0), *otherwise = branch->getSuccessor(1);
        if (then == otherwise) continue;
        add_condition(branch->getCondition(), true, {block, then}, 0);
        add_condition(branch->getCondition(), false, {block, otherwise}, 0);
      } else if (auto* choice = dyn_cast<SwitchInst>(terminator)) {
        for (auto& option : choice->cases())
          if (option.getCaseSuccessor()->getSinglePredecessor())
            add_fact(
                {CmpInst::ICMP_EQ, leader(choice->getCondition()), option.getCaseValue(), option.getCaseSuccessor()},
                {block, option.getCaseSuccessor()});
      }
    }
  }

  // `condition` has this value on the edge.
  void add_condition(Value* condition, bool is_true, Edge edge, unsigned depth) {
    if (depth > kDepth) return;
    condition = leader(condition);
    Value *one, *other;
    if (match(condition, m_Not(m_Value(one)))) return add_condition(one, !is_true, edge, depth + 1);
    if (is_true ? match(condition, m_LogicalAnd(m_Value(one), m_Value(other)))
                : match(condition, m_LogicalOr(m_Value(one), m_Value(other)))) {
      add_condition(one, is_true, edge, depth + 1);
      add_condition(other, is_true, edge, depth + 1);
      return;
    }
    if (auto* comparison = dyn_cast<ICmpInst>(condition)) {
      Value *left = leader(comparison->getOperand(0)), *right = leader(comparison->getOperand(1));
      if (left->getType()->isPointerTy() || !is_number(*left)) return;
      CmpInst::Predicate predicate =
          is_true ? comparison->getPredicate() : CmpInst::getInversePredicate(comparison->getPredicate());
      // A truth value as a number.
      if (match(left, m_ZExt(m_Value(one))) && one->getType()->isIntegerTy(1) && match(right, m_Zero()) &&
          (predicate == CmpInst::ICMP_NE || predicate == CmpInst::ICMP_EQ))
        return add_condition(one, predicate == CmpInst::ICMP_NE, edge, depth + 1);
      add_fact({predicate, left, right, edge.second}, edge);
      add_fact({CmpInst::getSwappedPredicate(predicate), right, left, edge.second}, edge);
      return;
    }
    // `a && b` as a value: if it is true, so is its last operand, and the block of that operand was executed.
    auto* phi = dyn_cast<PHINode>(condition);
    if (!phi || !phi->getType()->isIntegerTy(1)) return;
    Value* last = nullptr;
    BasicBlock* before = nullptr;
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
      Value* value = leader(phi->getIncomingValue(i));
      auto* constant = dyn_cast<ConstantInt>(value);
      if (constant && constant->isOne() != is_true) continue;
      if (last) return;
      last = value;
      before = phi->getIncomingBlock(i);
    }
    // The phi of a loop header may hold a value of the previous iteration.
    if (!last || is_header_phi(*phi) || !dominators_.dominates(phi->getParent(), edge.first)) return;
    add_condition(last, is_true, edge, depth + 1);
    // The conditions that led to that block.
    for (unsigned steps = 0; steps < kFactDepth; ++steps) {
      BasicBlock* from = before->getSinglePredecessor();
      if (!from) return;
      auto* branch = dyn_cast<BranchInst>(from->getTerminator());
      if (branch && branch->isConditional() && branch->getSuccessor(0) != branch->getSuccessor(1))
        add_condition(branch->getCondition(), branch->getSuccessor(0) == before, edge, depth + 1);
      before = from;
    }
  }

  void add_fact(const Fact& fact, Edge edge) {
    // Also for the operands that the compared value is computed from.
    Value* value = fact.left;
    for (unsigned depth = 0; depth < kFactDepth && value && !isa<Constant>(value); ++depth) {
      SmallVector<Fact>& facts = edge.second->getSinglePredecessor() ? facts_[value] : edge_facts_[{edge, value}];
      if (facts.size() < kFacts) facts.push_back(fact);
      value = peeled(value);
    }
  }

  // The operand of an injective operation.
  Value* peeled(Value* value) const {
    Value* source;
    if (match(value, m_ZExt(m_Value(source))) || match(value, m_SExt(m_Value(source))) ||
        match(value, m_Add(m_Value(source), m_ConstantInt())) || match(value, m_Sub(m_Value(source), m_ConstantInt())))
      return leader(source);
    return nullptr;
  }

  // The values of `value` for which the fact holds.
  ConstantRange region(const Fact& fact, Value* value) const {
    ConstantRange result = ConstantRange::makeAllowedICmpRegion(fact.predicate, known(fact.right));
    for (Value* at = fact.left; at != value; at = peeled(at)) {
      auto* instruction = cast<Instruction>(at);
      unsigned bits = width_of(*instruction->getOperand(0));
      if (isa<ZExtInst>(at))
        result = result.intersectWith(ConstantRange::getFull(bits).zeroExtend(result.getBitWidth())).truncate(bits);
      else if (isa<SExtInst>(at))
        result = result.intersectWith(ConstantRange::getFull(bits).signExtend(result.getBitWidth())).truncate(bits);
      else if (auto* constant = cast<ConstantInt>(instruction->getOperand(1));
               instruction->getOpcode() == Instruction::Add)
        result = result.sub(ConstantRange(constant->getValue()));
      else
        result = result.add(ConstantRange(constant->getValue()));
    }
    return result;
  }

  ConstantRange narrowed(ConstantRange range, Value* value, BasicBlock* block) const {
    auto found = facts_.find(value);
    if (found == facts_.end()) return range;
    for (const Fact& fact : found->second)
      if (dominators_.dominates(fact.block, block)) range = range.intersectWith(region(fact, value));
    return on_steps(range, value);
  }

  // For a counter with a step above one: clamps the range to the first and last value that the counter takes.
  ConstantRange on_steps(const ConstantRange& range, Value* value) const {
    auto found = steps_.find(value);
    if (found == steps_.end() || range.isEmptySet() || range.isSignWrappedSet()) return range;
    auto [start, step] = found->second;
    int64_t below = range.getSignedMin().getSExtValue() - start, above = range.getSignedMax().getSExtValue() - start;
    auto floor = [&](int64_t number) { return number - ((number % step) + step) % step; };
    int64_t low = floor(below + step - 1), high = floor(above);
    if (low > high) return ConstantRange::getEmpty(range.getBitWidth());
    unsigned width = range.getBitWidth();
    return ConstantRange::getNonEmpty(APInt(width, static_cast<uint64_t>(start + low), true),
                                      APInt(width, static_cast<uint64_t>(start + high), true) + 1);
  }

  // Narrowed by the condition of the edge.
  ConstantRange narrowed(ConstantRange range, Value* value, Edge edge) const {
    range = narrowed(range, value, edge.first);
    if (auto found = edge_facts_.find({edge, value}); found != edge_facts_.end())
      for (const Fact& fact : found->second) range = range.intersectWith(region(fact, value));
    return range;
  }

  // ---- Evaluation

  ConstantRange known(Value* value) const {
    if (auto* constant = dyn_cast<ConstantInt>(value)) return ConstantRange(constant->getValue());
    unsigned width = width_of(*value);
    if (value->getType()->isPointerTy()) {
      // The start of the variable, or of the array of an argument.
      if (isa<AllocaInst>(value) || isa<GlobalVariable>(value) || isa<Argument>(value))
        return ConstantRange(APInt(64, 0));
      if (auto* gep = dyn_cast<GEPOperator>(value); gep && isa<Constant>(value)) {
        APInt offset(64, 0);
        auto* base = gep->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true);
        if (isa<GlobalVariable>(base)) return ConstantRange(offset);
      }
    }
    if (!isa<Instruction>(value)) return ConstantRange::getFull(width);
    auto found = ranges_.find(value);
    if (found != ranges_.end()) return found->second;
    return is_solved_ || !number_.contains(cast<Instruction>(value)->getParent()) ? ConstantRange::getFull(width)
                                                                                  : ConstantRange::getEmpty(width);
  }

  using Operands = function_ref<ConstantRange(Value*)>;

  ConstantRange evaluate(Value* value, BasicBlock* block, unsigned depth) {
    ConstantRange range = narrowed(known(value), value, block);
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || depth == 0 || isa<PHINode>(instruction) || range.isSingleElement()) return range;
    if (auto found = evaluated_.find(value); found != evaluated_.end()) return found->second;
    auto operand = [&](Value* used) { return evaluate(leader(used), block, depth - 1); };
    range = range.intersectWith(compute(*instruction, block, operand));
    evaluated_.insert_or_assign(value, range);
    return range;
  }

  // `a - b` where a condition implies that `a` is not less.
  ConstantRange difference(BinaryOperator& subtraction, BasicBlock* block, const ConstantRange& left,
                           const ConstantRange& right) const {
    ConstantRange result = left.sub(right);
    Value *one = leader(subtraction.getOperand(0)), *other = leader(subtraction.getOperand(1));
    auto found = facts_.find(one);
    if (found == facts_.end()) return result;
    bool are_positive = left.getSignedMin().isNonNegative() && right.getSignedMin().isNonNegative();
    for (const Fact& fact : found->second) {
      if (fact.left != one || fact.right != other || !dominators_.dominates(fact.block, block)) continue;
      bool is_ordered = fact.predicate == CmpInst::ICMP_UGE || fact.predicate == CmpInst::ICMP_UGT ||
                        (are_positive && (fact.predicate == CmpInst::ICMP_SGE || fact.predicate == CmpInst::ICMP_SGT));
      if (!is_ordered || left.getUnsignedMax().ult(right.getUnsignedMin())) continue;
      APInt most = left.getUnsignedMax() - right.getUnsignedMin();
      result = result.intersectWith(ConstantRange::getNonEmpty(APInt(most.getBitWidth(), 0), most + 1));
    }
    return result;
  }

  // Of the thread's position in the grid along an axis: `threadgroup_position * full_threads_per_threadgroup +
  // position_in_threadgroup`, whose last threadgroup may be smaller.
  static std::optional<unsigned> axis_of_position(BinaryOperator& sum) {
    Value *threadgroup, *threads, *position;
    if (!match(&sum, m_Add(m_Mul(m_Value(threadgroup), m_Value(threads)), m_Value(position)))) return std::nullopt;
    const std::optional<uint64_t> which = thread_value(position);
    if (!which || *which > kPositionInThreadgroupLast) return std::nullopt;
    const unsigned axis = static_cast<unsigned>(*which - kPositionInThreadgroup);
    if (thread_value(threadgroup) != kThreadgroupPosition + axis ||
        thread_value(threads) != kFullThreadsPerThreadgroup + axis)
      return std::nullopt;
    return axis;
  }

  ConstantRange compute(Instruction& instruction, BasicBlock* block, Operands operand) {
    unsigned width = width_of(instruction);
    ConstantRange full = ConstantRange::getFull(width);
    auto of = [&](unsigned i) { return operand(instruction.getOperand(i)); };
    if (auto* binary = dyn_cast<BinaryOperator>(&instruction)) {
      ConstantRange left = of(0), right = of(1);
      if (left.isEmptySet() || right.isEmptySet()) return ConstantRange::getEmpty(width);
      if (binary->getOpcode() == Instruction::Sub) return difference(*binary, block, left, right);
      if (std::optional<unsigned> axis = axis_of_position(*binary)) return limits_.position_in_grid(*axis);
      return left.binaryOp(binary->getOpcode(), right);
    }
    if (auto* cast = dyn_cast<CastInst>(&instruction)) {
      if (!is_number(*cast->getOperand(0)) || cast->getOperand(0)->getType()->isPointerTy() ||
          cast->getType()->isPointerTy())
        return cast->getOpcode() == Instruction::AddrSpaceCast ? of(0) : full;
      return of(0).castOp(cast->getOpcode(), width);
    }
    if (auto* gep = dyn_cast<GetElementPtrInst>(&instruction)) return offset_of(*gep, operand);
    if (auto* select = dyn_cast<SelectInst>(&instruction)) return chosen(*select, operand);
    if (auto* call = dyn_cast<CallInst>(&instruction)) {
      if (std::optional<uint64_t> which = thread_value(call)) return limits_.range(*which);
      if (calls(*call, kMatrixLaneFunction)) return ConstantRange(APInt(32, 0), APInt(32, 32));
      auto* intrinsic = dyn_cast<IntrinsicInst>(call);
      if (!intrinsic || !ConstantRange::isIntrinsicSupported(intrinsic->getIntrinsicID())) return full;
      SmallVector<ConstantRange> operands;
      for (Value* argument : intrinsic->args()) {
        if (!argument->getType()->isIntegerTy()) return full;
        operands.push_back(operand(argument));
        if (operands.back().isEmptySet()) return ConstantRange::getEmpty(width);
      }
      return ConstantRange::intrinsic(intrinsic->getIntrinsicID(), operands);
    }
    return full;
  }

  ConstantRange offset_of(GetElementPtrInst& gep, Operands operand) {
    ConstantRange offset = operand(gep.getPointerOperand());
    for (auto index = gep_type_begin(gep); index != gep_type_end(gep); ++index) {
      if (offset.isEmptySet() || offset.isFullSet()) return offset;
      if (StructType* structure = index.getStructTypeOrNull()) {
        uint64_t member = cast<ConstantInt>(index.getOperand())->getZExtValue();
        offset = offset.add(ConstantRange(
            APInt(64, layout_.getStructLayout(structure)->getElementOffset(static_cast<unsigned>(member)))));
        continue;
      }
      ConstantRange number = operand(index.getOperand());
      if (number.isEmptySet()) return ConstantRange::getEmpty(64);
      if (number.getBitWidth() > 64) return ConstantRange::getFull(64);
      uint64_t stride = index.getSequentialElementStride(layout_);
      offset = offset.add(number.sextOrTrunc(64).multiply(ConstantRange(APInt(64, stride))));
    }
    return offset;
  }

  // Each side narrowed by the condition.
  ConstantRange chosen(SelectInst& select, Operands operand) {
    Value* condition = leader(select.getCondition());
    auto side = [&](Value* value, bool is_true) {
      value = leader(value);
      ConstantRange range = operand(value);
      auto* comparison = dyn_cast<ICmpInst>(condition);
      if (!comparison || value->getType()->isPointerTy()) return range;
      CmpInst::Predicate predicate =
          is_true ? comparison->getPredicate() : CmpInst::getInversePredicate(comparison->getPredicate());
      Value *left = leader(comparison->getOperand(0)), *right = leader(comparison->getOperand(1));
      if (left == value) return range.intersectWith(ConstantRange::makeAllowedICmpRegion(predicate, operand(right)));
      if (right == value)
        return range.intersectWith(
            ConstantRange::makeAllowedICmpRegion(CmpInst::getSwappedPredicate(predicate), operand(left)));
      return range;
    };
    return side(select.getTrueValue(), true).unionWith(side(select.getFalseValue(), false));
  }

  // ---- The fixed point

  ConstantRange next(Instruction& instruction) {
    BasicBlock* block = instruction.getParent();
    if (auto* phi = dyn_cast<PHINode>(&instruction)) {
      ConstantRange range = ConstantRange::getEmpty(width_of(*phi));
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        BasicBlock* before = phi->getIncomingBlock(i);
        if (!number_.contains(before)) continue;
        Value* value = leader(phi->getIncomingValue(i));
        range = range.unionWith(narrowed(known(value), value, Edge{before, block}));
      }
      return range;
    }
    return compute(instruction, block, [&](Value* used) {
      Value* value = leader(used);
      return narrowed(known(value), value, block);
    });
  }

  bool is_header_phi(const Instruction& instruction) const {
    auto* phi = dyn_cast<PHINode>(&instruction);
    return phi && any_of(phi->blocks(), [&](BasicBlock* before) {
             auto found = number_.find(before);
             return found != number_.end() && found->second >= number_.lookup(phi->getParent());
           });
  }

  static ConstantRange widened(const ConstantRange& before, const ConstantRange& after) {
    unsigned width = after.getBitWidth();
    if (before.isEmptySet()) return after;
    if (after.isSignWrappedSet() || before.isSignWrappedSet()) return ConstantRange::getFull(width);
    APInt low = before.getSignedMin(), high = before.getSignedMax();
    if (after.getSignedMin().slt(low))
      low = after.getSignedMin().isNonNegative() ? APInt(width, 0) : APInt::getSignedMinValue(width);
    if (after.getSignedMax().sgt(high)) high = APInt::getSignedMaxValue(width);
    return ConstantRange::getNonEmpty(low, high + 1);
  }

  void solve() {
    bool has_changed = true;
    for (unsigned round = 0; has_changed; ++round) {
      has_changed = false;
      if (round == kRounds) {
        ranges_.clear();
        is_solved_ = true;
        return;
      }
      for (Instruction* value : values_) {
        ConstantRange before = known(value), after = before.unionWith(next(*value));
        if (after == before) continue;
        if (round >= kExactRounds && is_header_phi(*value)) after = widened(before, after);
        if (round >= kRounds / 2) after = ConstantRange::getFull(after.getBitWidth());
        ranges_.insert_or_assign(value, after);
        has_changed = true;
      }
    }
    is_solved_ = true;
    narrow();
    if (bound_by_trip_counts()) narrow();
  }

  void narrow() {
    for (unsigned round = 0; round < kNarrowings; ++round)
      for (Instruction* value : values_) {
        ConstantRange before = known(value);
        if (before.isSingleElement() || before.isEmptySet()) continue;
        ranges_.insert_or_assign(value, before.intersectWith(next(*value)));
      }
  }

  // The start of a loop phi and its step in each iteration.
  struct Recurrence {
    PHINode* phi;
    ConstantRange start;
    APInt step;  // 64 bits
  };

  std::optional<Recurrence> recurrence_of(PHINode& phi) {
    ConstantRange start = ConstantRange::getEmpty(width_of(phi));
    std::optional<APInt> step;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
      BasicBlock* before = phi.getIncomingBlock(i);
      auto found = number_.find(before);
      if (found == number_.end()) continue;
      Value* value = leader(phi.getIncomingValue(i));
      if (found->second < number_.lookup(phi.getParent())) {
        start = start.unionWith(narrowed(known(value), value, Edge{before, phi.getParent()}));
        continue;
      }
      std::optional<APInt> added = added_to(phi, value);
      if (!added || (step && *step != *added)) return std::nullopt;
      step = added;
    }
    if (!step || start.isEmptySet()) return std::nullopt;
    return Recurrence{&phi, start, *step};
  }

  std::optional<APInt> added_to(PHINode& phi, Value* value) const {
    if (auto* gep = dyn_cast<GetElementPtrInst>(value)) {
      APInt offset(64, 0);
      if (leader(gep->getPointerOperand()) != &phi || !gep->accumulateConstantOffset(layout_, offset))
        return std::nullopt;
      return offset;
    }
    auto* binary = dyn_cast<BinaryOperator>(value);
    if (!binary) return std::nullopt;
    auto constant_at = [&](unsigned i) { return dyn_cast<ConstantInt>(binary->getOperand(i)); };
    if (binary->getOpcode() == Instruction::Add) {
      if (leader(binary->getOperand(0)) == &phi && constant_at(1)) return constant_at(1)->getValue().sext(64);
      if (leader(binary->getOperand(1)) == &phi && constant_at(0)) return constant_at(0)->getValue().sext(64);
    }
    if (binary->getOpcode() == Instruction::Sub && leader(binary->getOperand(0)) == &phi && constant_at(1))
      return -constant_at(1)->getValue().sext(64);
    return std::nullopt;
  }

  // The most times that the header runs again: while the phi is in its range, it advances without wrapping.
  static std::optional<uint64_t> most_iterations(const Recurrence& counter, const ConstantRange& range) {
    if (range.isFullSet() || range.isSignWrappedSet() || range.isEmptySet() || counter.step.isZero() ||
        counter.start.isSignWrappedSet())
      return std::nullopt;
    APInt low = range.getSignedMin().sext(64), high = range.getSignedMax().sext(64);
    if (range.getBitWidth() == 64 && (low.slt(-(int64_t{1} << 61)) || high.sgt(int64_t{1} << 61))) return std::nullopt;
    APInt reach = high - low, step = counter.step.abs();
    APInt numbers = range.getBitWidth() == 64 ? APInt::getSignedMaxValue(64) : APInt(64, 1) << range.getBitWidth();
    if (step.ugt(numbers - reach - 1)) return std::nullopt;
    APInt distance = counter.step.isNegative() ? counter.start.getSignedMax().sext(64) - low
                                               : high - counter.start.getSignedMin().sext(64);
    if (distance.isNegative()) return std::nullopt;
    return distance.udiv(step).getZExtValue();
  }

  bool bound_by_trip_counts() {
    DenseMap<BasicBlock*, std::pair<SmallVector<Recurrence>, std::optional<uint64_t>>> loops;
    for (Instruction* value : values_) {
      if (!is_header_phi(*value)) continue;
      std::optional<Recurrence> recurrence = recurrence_of(*cast<PHINode>(value));
      if (!recurrence) continue;
      auto& [recurrences, most] = loops[value->getParent()];
      if (std::optional<uint64_t> count = most_iterations(*recurrence, known(value)))
        most = most ? std::min(*most, *count) : *count;
      recurrences.push_back(std::move(*recurrence));
    }
    bool has_changed = false;
    for (auto& [header, loop] : loops) {
      auto& [recurrences, most] = loop;
      if (!most || *most > uint64_t{1} << 32) continue;
      for (const Recurrence& recurrence : recurrences) {
        const ConstantRange before = known(recurrence.phi);
        if (recurrence.start.isSignWrappedSet()) continue;
        // Nothing wraps in 96 bits.
        APInt far = recurrence.step.sext(128) * APInt(128, *most);
        APInt low = recurrence.start.getSignedMin().sext(128), high = recurrence.start.getSignedMax().sext(128);
        (far.isNegative() ? low : high) += far;
        unsigned width = before.getBitWidth();
        if (!low.isSignedIntN(width) || !high.isSignedIntN(width)) continue;
        ConstantRange bound = ConstantRange::getNonEmpty(low.trunc(width), high.trunc(width) + 1);
        ConstantRange after = before.intersectWith(bound);
        if (recurrence.start.isSingleElement() && !recurrence.step.abs().isOne() && !recurrence.step.isZero() &&
            low.isSignedIntN(32) && high.isSignedIntN(32))
          has_changed |= steps_
                             .try_emplace(recurrence.phi, recurrence.start.getSingleElement()->getSExtValue(),
                                          recurrence.step.abs().getSExtValue())
                             .second;
        if (after == before) continue;
        ranges_.insert_or_assign(recurrence.phi, after);
        has_changed = true;
      }
    }
    return has_changed;
  }

  const DataLayout& layout_;
  const ThreadLimits limits_;
  DominatorTree dominators_;
  DenseMap<BasicBlock*, unsigned> number_;  // reachable blocks, in reverse post-order
  DenseMap<Value*, Value*> leaders_;
  DenseMap<Value*, SmallVector<Fact>> facts_;
  std::map<std::pair<Edge, Value*>, SmallVector<Fact>> edge_facts_;
  std::vector<Instruction*> values_;
  DenseMap<Value*, ConstantRange> ranges_;
  DenseMap<Value*, std::pair<int64_t, int64_t>> steps_;  // of counters: start and step
  DenseMap<Value*, ConstantRange> evaluated_;            // by one call of range_at
  bool is_solved_ = false;
};

ValueRanges::ValueRanges(Function& function, const ThreadLimits& limits)
    : analysis_(std::make_unique<Analysis>(function, limits)) {}

ValueRanges::~ValueRanges() = default;

ConstantRange ValueRanges::range_at(Value* value, BasicBlock* block) { return analysis_->range_at(value, block); }

}  // namespace kiln
