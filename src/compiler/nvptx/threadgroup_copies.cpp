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
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
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
#include "compiler/nvptx/address_steps.h"
#include "compiler/nvptx/barrier_intervals.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr uint64_t kCopyBytes = 16;  // of the widest access
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
      const bool is_position = is_same_along_x(value) && !reads(value, Intrinsic::nvvm_read_ptx_sreg_tid_y) &&
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
    found.element_bytes = layout.getTypeStoreSize(found.copies[0].load->getType()).getFixedValue();
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
    return IterationDistances(*loop.block, loop.trips).of(*store.getPointerOperand()).value_or(0) != 0;
  }

  bool may_group(CopyLoop& loop, unsigned threads) {
    if (width_ % threads != 0 || loop.trips % threads != 0) return false;
    AddressSteps steps(threads, *loop.block, loops_, layout_);
    const auto zeros = static_cast<unsigned>(std::countr_zero(threads * loop.element_bytes));
    auto is_vector = [&](Value& address) {
      std::optional<AddressStep> step = steps.of(address);
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
  // Most kernels have no tiles, and need none of the analyses.
  if (none_of(instructions(function), is_hardware_barrier)) return false;
  Finder finder(function, analyses, width);
  const SmallVector<CopyLoop> found = finder.find();
  for (const CopyLoop& loop : found) Rewriter(function, loop, width, finder.thread_values()).run();
  return !found.empty() || finder.has_changed();
}

}  // namespace kiln
