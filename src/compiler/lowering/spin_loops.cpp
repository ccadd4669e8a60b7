#include "compiler/lowering/spin_loops.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include "compiler/ir/block_sets.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "core/cpu_image.h"
#include "core/launch_geometry.h"

namespace kiln {
namespace {

using namespace llvm;

// An access whose result a loop may wait on.
bool is_watched(const Instruction& instruction) {
  if (instruction.use_empty()) return false;
  if (isa<AtomicRMWInst, AtomicCmpXchgInst>(instruction)) return true;
  const auto* load = dyn_cast<LoadInst>(&instruction);
  return load && !load->isSimple();
}

// The variables and arguments that an access may reach, without private variables.
struct Objects {
  SmallPtrSet<const Value*, 4> known;
  bool has_unknown = false;

  explicit Objects(const Value* pointer) {
    if (!pointer) return;
    SmallVector<const Value*> objects;
    getUnderlyingObjects(pointer, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
    for (const Value* object : objects) {
      if (isa<AllocaInst, ConstantPointerNull, UndefValue>(object) || is_sink(object)) continue;
      const auto* variable = dyn_cast<GlobalVariable>(object);
      if (variable && variable->isConstant()) continue;
      if (variable || isa<Argument>(object))
        known.insert(object);
      else
        has_unknown = true;
    }
  }

  bool is_none() const { return known.empty() && !has_unknown; }

  bool may_overlap(const Objects& other) const {
    if (is_none() || other.is_none()) return false;
    if (has_unknown || other.has_unknown) return true;
    return any_of(known, [&](const Value* object) { return other.known.contains(object); });
  }
};

const Value* written_by(const Instruction& instruction) {
  if (const auto* store = dyn_cast<StoreInst>(&instruction)) return store->getPointerOperand();
  if (const auto* update = dyn_cast<AtomicRMWInst>(&instruction)) return update->getPointerOperand();
  if (const auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) return exchange->getPointerOperand();
  if (const auto* copy = dyn_cast<AnyMemIntrinsic>(&instruction)) return copy->getDest();
  return nullptr;
}

const Value* watched_address(const Instruction& instruction) {
  if (const auto* load = dyn_cast<LoadInst>(&instruction)) return load->getPointerOperand();
  return written_by(instruction);
}

class SpinFinder {
 public:
  explicit SpinFinder(Function& body)
      : body_(body), is_one_dimensional_(none_of(instructions(body), [](const Instruction& one) {
          return is_value(&one, kPositionInThreadgroup + 1) || is_value(&one, kPositionInThreadgroup + 2);
        })) {}

  // The latches of spin loops.
  SmallVector<BasicBlock*> run() {
    SmallVector<BasicBlock*> latches;
    if (none_of(instructions(body_), is_watched)) return latches;
    dominators_.recalculate(body_);
    loops_.analyze(dominators_);
    for (Loop* loop : loops_.getLoopsInPreorder())
      if (spins(*loop)) loop->getLoopLatches(latches);
    return latches;
  }

 private:
  bool spins(const Loop& loop) {
    SmallVector<BasicBlock*> latches;
    loop.getLoopLatches(latches);
    const bool has_barrier = any_of(loop.blocks(), [&](const BasicBlock* block) {
      return any_of(*block, is_threadgroup_barrier) &&
             all_of(latches, [&](const BasicBlock* latch) { return dominators_.dominates(block, latch); });
    });
    if (has_barrier) return false;
    const ExitConditions conditions = exit_conditions(loop);
    for (const Instruction* watched : conditions.watched) {
      if (is_retried(*watched, loop, latches, conditions)) continue;
      const Value* address = watched_address(*watched);
      if (!changes_each_time(address, loop) && is_written_by_others(*watched, Objects(address), loop)) return true;
    }
    return false;
  }

  // Whether another thread may write the memory while the loop runs. Excludes the watched access, writes that all
  // threads have done before the last barrier ahead of the loop, and writes that only this thread reaches.
  bool is_written_by_others(const Instruction& watched, const Objects& objects, const Loop& loop) {
    if (writes_.empty())
      for (const Instruction& instruction : instructions(body_))
        if (const Value* address = written_by(instruction)) writes_.push_back({&instruction, Objects(address)});
    const Instruction* barrier = barrier_before(loop);
    const Blocks after_barrier = barrier ? blocks_after(*barrier->getParent()) : Blocks();
    auto is_done = [&](const Instruction& write) {
      return barrier && !after_barrier.contains(write.getParent()) &&
             !(write.getParent() == barrier->getParent() && barrier->comesBefore(&write));
    };
    const BasicBlock* exclusive = exclusive_from(loop);
    return any_of(writes_, [&](const auto& write) {
      const BasicBlock* block = write.first->getParent();
      return write.first != &watched && write.second.may_overlap(objects) && !is_done(*write.first) &&
             !(exclusive && dominators_.dominates(exclusive, block));
    });
  }

  // The first block ahead of the loop that a single thread of the threadgroup reaches, by `threadIdx.x == 0` or
  // similar.
  const BasicBlock* exclusive_from(const Loop& loop) const {
    SmallVector<const BasicBlock*> chain;
    for (const DomTreeNode* node = dominators_.getNode(loop.getHeader()); node; node = node->getIDom())
      chain.push_back(node->getBlock());
    Position known;
    for (const BasicBlock* block : reverse(chain)) {
      const BasicBlock* predecessor = block->getSinglePredecessor();
      const auto* branch = predecessor ? dyn_cast<BranchInst>(predecessor->getTerminator()) : nullptr;
      if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) continue;
      note_known(branch->getCondition(), branch->getSuccessor(0) == block, known);
      if (known.index || (known.simdgroup && known.lane) || (known.x && (is_one_dimensional_ || (known.y && known.z))))
        return block;
    }
    return nullptr;
  }

  // Which components of the position have one value in all threads that reach a block.
  struct Position {
    bool index = false, simdgroup = false, lane = false, x = false, y = false, z = false;
  };

  // Adds what the condition implies if it is `holds`.
  void note_known(Value* condition, bool holds, Position& known, unsigned depth = 0) const {
    using namespace PatternMatch;
    Value *a, *b;
    if (depth > 8) return;
    if (match(condition, m_Not(m_Value(a)))) return note_known(a, !holds, known, depth + 1);
    if (holds ? match(condition, m_LogicalAnd(m_Value(a), m_Value(b)))
              : match(condition, m_LogicalOr(m_Value(a), m_Value(b)))) {
      note_known(a, holds, known, depth + 1);
      note_known(b, holds, known, depth + 1);
      return;
    }
    const auto* comparison = dyn_cast<ICmpInst>(condition);
    if (!comparison || comparison->getPredicate() != (holds ? ICmpInst::ICMP_EQ : ICmpInst::ICMP_NE) ||
        !isa<Constant>(comparison->getOperand(1)))
      return;
    Value* value = number(comparison->getOperand(0));
    if (is_index(value)) known.index = true;
    if (is_value(value, kPositionInThreadgroup)) known.x = true;
    if (is_value(value, kPositionInThreadgroup + 1)) known.y = true;
    if (is_value(value, kPositionInThreadgroup + 2)) known.z = true;
    Value* whole;
    const auto lanes = m_SpecificInt(kSimdgroupSize);
    if (match(value, m_CombineOr(m_And(m_Value(whole), m_SpecificInt(kSimdgroupSize - 1)),
                                 m_CombineOr(m_URem(m_Value(whole), lanes), m_SRem(m_Value(whole), lanes)))) &&
        is_index(number(whole)))
      known.lane = true;
    if (match(value, m_CombineOr(m_Shr(m_Value(whole), m_SpecificInt(5)),
                                 m_CombineOr(m_UDiv(m_Value(whole), lanes), m_SDiv(m_Value(whole), lanes)))) &&
        is_index(number(whole)))
      known.simdgroup = true;
  }

  // A 32-bit number without conversions, also as part of a structure that is passed in 64 bits.
  static Value* number(Value* value) {
    using namespace PatternMatch;
    for (;;) {
      Value* inner;
      if (auto* conversion = dyn_cast<CastInst>(value))
        value = conversion->getOperand(0);
      else if (match(value, m_c_Or(m_Value(), m_ZExt(m_Value(inner)))) && inner->getType()->isIntegerTy(32))
        value = inner;
      else if (match(value,
                     m_And(m_And(m_Value(), m_SpecificInt(kSimdgroupSize - 1)), m_SpecificInt(kSimdgroupSize - 1))))
        value = cast<Instruction>(value)->getOperand(0);
      else
        return value;
    }
  }

  static bool is_value(const Value* value, unsigned which) { return thread_value(value) == which; }

  // Whether this is the thread's index in its threadgroup, possibly as `(z * size_y + y) * size_x + x`.
  bool is_index(Value* value) const {
    using namespace PatternMatch;
    if (is_value(value, kIndexInThreadgroup) || (is_one_dimensional_ && is_value(value, kPositionInThreadgroup)))
      return true;
    Value *x, *y, *z;
    return match(value, m_c_Add(m_c_Mul(m_c_Add(m_c_Mul(m_Value(z), m_Value()), m_Value(y)), m_Value()), m_Value(x))) &&
           is_value(x, kPositionInThreadgroup) && is_value(y, kPositionInThreadgroup + 1) &&
           is_value(z, kPositionInThreadgroup + 2);
  }

  const Instruction* barrier_before(const Loop& loop) const {
    for (const DomTreeNode* node = dominators_.getNode(loop.getHeader())->getIDom(); node; node = node->getIDom())
      for (const Instruction& instruction : reverse(*node->getBlock()))
        if (is_threadgroup_barrier(instruction)) return &instruction;
    return nullptr;
  }

  // The instructions of the loop on which its exits depend.
  struct ExitConditions {
    SmallPtrSet<const Instruction*, 4> watched;  // atomics and volatile loads
    SmallPtrSet<const Instruction*, 32> others;
  };

  ExitConditions exit_conditions(const Loop& loop) const {
    ExitConditions conditions;
    SmallVector<const Value*> worklist;
    auto add_condition = [&](const BasicBlock* block) {
      const Instruction* end = block->getTerminator();
      if (end->getNumSuccessors() > 1) worklist.push_back(end->getOperand(0));
    };
    SmallVector<BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    for_each(exiting, add_condition);
    while (!worklist.empty()) {
      const auto* instruction = dyn_cast<Instruction>(worklist.pop_back_val());
      if (!instruction || !loop.contains(instruction)) continue;
      if (is_watched(*instruction)) {
        conditions.watched.insert(instruction);
        continue;
      }
      if (!conditions.others.insert(instruction).second) continue;
      if (const auto* phi = dyn_cast<PHINode>(instruction)) {
        for (const Value* value : phi->incoming_values()) worklist.push_back(value);
        for_each(controlling_blocks(*phi, loop), add_condition);
      } else if (!isa<LoadInst>(instruction)) {
        for (const Value* value : instruction->operands()) worklist.push_back(value);
      }
    }
    return conditions;
  }

  // The blocks of the loop whose branches control from which edge the phi is reached.
  SmallVector<const BasicBlock*> controlling_blocks(const PHINode& phi, const Loop& loop) const {
    const BasicBlock* block = phi.getParent();
    SmallVector<const BasicBlock*> found;
    if (block == loop.getHeader()) {
      if (loop.getNumBackEdges() > 1) found.append(loop.block_begin(), loop.block_end());
      return found;
    }
    const BasicBlock* first = dominators_.getNode(block)->getIDom()->getBlock();
    SmallPtrSet<const BasicBlock*, 16> seen{block, first};
    found.push_back(first);
    SmallVector<const BasicBlock*> worklist(pred_begin(block), pred_end(block));
    while (!worklist.empty()) {
      const BasicBlock* one = worklist.pop_back_val();
      if (!loop.contains(one) || !seen.insert(one).second) continue;
      found.push_back(one);
      worklist.append(pred_begin(one), pred_end(one));
    }
    return found;
  }

  // Whether the address depends on a counter: a value that is incremented, or doubled, in each iteration.
  bool changes_each_time(const Value* address, const Loop& loop) const {
    SmallPtrSet<const Value*, 16> seen;
    SmallVector<const Value*> worklist{address};
    while (!worklist.empty()) {
      const auto* instruction = dyn_cast<Instruction>(worklist.pop_back_val());
      if (!instruction || !loop.contains(instruction) || !seen.insert(instruction).second) continue;
      const auto* phi = dyn_cast<PHINode>(instruction);
      if (phi && phi->getParent() == loop.getHeader()) {
        bool is_counter = true;
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
          if (loop.contains(phi->getIncomingBlock(i)))
            is_counter = is_counter && isa<BinaryOperator, GetElementPtrInst>(phi->getIncomingValue(i));
        if (is_counter) return true;
        continue;
      }
      if (phi || instruction->mayReadOrWriteMemory()) continue;
      worklist.append(instruction->value_op_begin(), instruction->value_op_end());
    }
    return false;
  }

  // A value without conversions.
  static const Value* stripped(const Value* value) {
    while (const auto* conversion = dyn_cast<CastInst>(value)) value = conversion->getOperand(0);
    return value;
  }

  // Whether this is a compare-exchange that expects the value read before and on whose failure the loop iterates, or a
  // volatile load of the value that such a one expects.
  bool is_retried(const Instruction& watched, const Loop& loop, ArrayRef<BasicBlock*> latches,
                  const ExitConditions& conditions) const {
    return any_of(conditions.watched, [&](const Instruction* other) {
      const auto* attempt = dyn_cast<AtomicCmpXchgInst>(other);
      if (!attempt || !passes_each(*attempt, latches) || !decides_by_success(*attempt, loop)) return false;
      return expects_what_was_read(*attempt, loop) &&
             (attempt == &watched || stripped(attempt->getCompareOperand()) == &watched);
    });
  }

  // Whether an exit depends on the compare-exchange having found the expected value, whatever that is.
  static bool decides_by_success(const AtomicCmpXchgInst& attempt, const Loop& loop) {
    const Value* expected = stripped(attempt.getCompareOperand());
    SmallPtrSet<const Value*, 16> seen;
    SmallVector<const Value*> worklist;
    SmallVector<BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    for (const BasicBlock* block : exiting)
      if (const auto* branch = dyn_cast<BranchInst>(block->getTerminator())) worklist.push_back(branch->getCondition());
    while (!worklist.empty()) {
      const Value* value = stripped(worklist.pop_back_val());
      const auto* instruction = dyn_cast<Instruction>(value);
      if (!instruction || !loop.contains(instruction) || !seen.insert(value).second) continue;
      if (const auto* extract = dyn_cast<ExtractValueInst>(instruction)) {
        const auto* phi = dyn_cast<PHINode>(extract->getAggregateOperand());
        if (extract->getIndices()[0] == 1 &&
            (extract->getAggregateOperand() == &attempt || (phi && is_contained(phi->incoming_values(), &attempt))))
          return true;
      } else if (const auto* comparison = dyn_cast<CmpInst>(instruction)) {
        if (comparison->isEquality() &&
            any_of(comparison->operands(), [&](const Use& use) { return stripped(use.get()) == expected; }))
          return true;
        // A condition that was converted to a number.
        const auto* zero = dyn_cast<Constant>(comparison->getOperand(1));
        if (zero && zero->isNullValue() && isa<CastInst>(comparison->getOperand(0)))
          worklist.push_back(comparison->getOperand(0));
      } else if (isa<BinaryOperator, SelectInst, PHINode>(instruction)) {
        worklist.append(instruction->value_op_begin(), instruction->value_op_end());
      }
    }
    return false;
  }

  // Whether each iteration reaches the compare-exchange, or the guard that skips it.
  bool passes_each(const AtomicCmpXchgInst& attempt, ArrayRef<BasicBlock*> latches) const {
    const BasicBlock* block = attempt.getParent();
    auto all = [&](const BasicBlock* one) {
      return all_of(latches, [&](const BasicBlock* latch) { return dominators_.dominates(one, latch); });
    };
    if (all(block)) return true;
    // The join after a guard has a phi of the compare-exchange's pair and zeros, which succeed next time.
    const BasicBlock* guard = block->getSinglePredecessor();
    const BasicBlock* join = block->getSingleSuccessor();
    return guard && join && all(guard) && any_of(join->phis(), [&](const PHINode& phi) {
             return is_contained(phi.incoming_values(), &attempt) && phi.getBasicBlockIndex(guard) >= 0;
           });
  }

  // Whether the expected value is the one that the loop last read from that memory, unmodified.
  bool expects_what_was_read(const AtomicCmpXchgInst& attempt, const Loop& loop) const {
    const Objects objects(attempt.getPointerOperand());
    SmallPtrSet<const Value*, 16> seen;
    SmallVector<const Value*> worklist{stripped(attempt.getCompareOperand())};
    bool has_read = false;
    while (!worklist.empty()) {
      const Value* value = stripped(worklist.pop_back_val());
      if (!seen.insert(value).second) continue;
      const auto* instruction = dyn_cast<Instruction>(value);
      // A value from before the loop, for the first attempt.
      if (!instruction || !loop.contains(instruction)) continue;
      if (const auto* phi = dyn_cast<PHINode>(instruction)) {
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
          const Value* next = phi->getIncomingValue(i);
          // Each iteration must read it anew; the other side of a guard gives 0.
          const bool is_back_edge = phi->getParent() == loop.getHeader() && loop.contains(phi->getIncomingBlock(i));
          if (is_back_edge &&
              (next == phi || !isa<Instruction>(stripped(next)) || !loop.contains(cast<Instruction>(stripped(next)))))
            return false;
          worklist.push_back(next);
        }
      } else if (const auto* extract = dyn_cast<ExtractValueInst>(instruction)) {
        worklist.push_back(extract->getAggregateOperand());
      } else if (isa<InsertValueInst>(instruction)) {
        continue;  // a guard's zeros
      } else if (const auto* choice = dyn_cast<SelectInst>(instruction)) {
        worklist.push_back(choice->getTrueValue());
        worklist.push_back(choice->getFalseValue());
      } else if (isa<AtomicCmpXchgInst, LoadInst>(instruction)) {
        if (!Objects(watched_address(*instruction)).may_overlap(objects)) return false;
        has_read = true;
      } else {
        return false;
      }
    }
    return has_read;
  }

  Function& body_;
  const bool is_one_dimensional_;  // the body reads no y or z: it is written for one-dimensional threadgroups
  DominatorTree dominators_;
  LoopInfo loops_;
  SmallVector<std::pair<const Instruction*, Objects>> writes_;
};

}  // namespace

bool has_spin_loops(Function& body) { return !SpinFinder(body).run().empty(); }

bool add_yields(Function& body) {
  SmallVector<BasicBlock*> latches = SpinFinder(body).run();
  if (latches.empty()) return false;
  IRBuilder<> builder(body.getContext());
  Function& yield = pseudo_intrinsic(*body.getParent(), kYieldFunction,
                                     FunctionType::get(builder.getVoidTy(), {builder.getInt32Ty()}, false));
  SmallPtrSet<BasicBlock*, 8> seen;
  for (BasicBlock* latch : latches) {
    if (!seen.insert(latch).second) continue;
    builder.SetInsertPoint(latch->getTerminator());
    builder.CreateCall(&yield, {builder.getInt32(0)});
  }
  return true;
}

}  // namespace kiln
