#include "compiler/passes/leave_first.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <optional>
#include <utility>

#include "compiler/passes/bounds_guards.h"
#include "compiler/passes/copy_behind.h"
#include "compiler/passes/divergence.h"
#include "compiler/passes/exchange_sites.h"
#include "compiler/passes/guard_sinks.h"
#include "compiler/passes/lane_exchanges.h"

namespace kiln {

using namespace llvm;

namespace {

// Instructions of all copies.
constexpr size_t kMostCopied = 4000;

// In the order in which they are found.
using Reached = SmallSetVector<const BasicBlock*, 32>;

// Adds all blocks to which ways lead that do not go over `around`.
void follow(Reached& reached, const BasicBlock* around = nullptr) {
  for (unsigned i = 0; i < reached.size(); ++i)
    for (const BasicBlock* next : successors(reached[i]))
      if (next != around) reached.insert(next);
}

using Objects = SmallVector<const Value*>;

// In which memory the address may lie, but for what one thread has for itself.
Objects shared_objects(const Value* address) {
  Objects objects;
  getUnderlyingObjects(address, objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  erase_if(objects, [](const Value* object) {
    return isa<AllocaInst, ConstantPointerNull, UndefValue>(object) || is_sink(object) || is_zeros(object);
  });
  return objects;
}

// Of what others do not see.
bool is_quiet(const CallBase& call) {
  const auto* intrinsic = dyn_cast<IntrinsicInst>(&call);
  return call.onlyAccessesInaccessibleMemory() || waits_at(call) || (intrinsic && intrinsic->isAssumeLikeIntrinsic());
}

// Where it writes; nothing where that is not known.
std::optional<Objects> written_by(const Instruction& instruction) {
  if (!instruction.mayWriteToMemory() || isa<LoadInst>(instruction)) return Objects{};
  const Value* to = getLoadStorePointerOperand(&instruction);
  if (const auto* update = dyn_cast<AtomicRMWInst>(&instruction)) to = update->getPointerOperand();
  if (const auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) to = exchange->getPointerOperand();
  if (const auto* call = dyn_cast<CallBase>(&instruction)) {
    if (is_quiet(*call)) return Objects{};
    if (const auto* memory = dyn_cast<MemIntrinsic>(call)) to = memory->getDest();
  }
  if (!to) return std::nullopt;
  return shared_objects(to);
}

bool write_shared(const Instruction& instruction) {
  std::optional<Objects> objects = written_by(instruction);
  return !objects || !objects->empty();
}

// A variable of the threadgroup's, or memory that is a kernel's argument, by where its address is loaded from.
using Place = std::pair<const Value*, int64_t>;

// Which memory is read behind a wait. What is written to other memory nobody sees before the end; then it is late only
// where those that go on write to the same place.
class ReadMemory {
 public:
  explicit ReadMemory(const Blocks& waits) {
    Reached reached;
    reached.insert(waits.begin(), waits.end());
    follow(reached);
    for (const BasicBlock* block : reached) find(*block);
  }

  bool is_written_by(const Instruction& instruction) const {
    std::optional<Objects> objects = written_by(instruction);
    return !objects || any_of(*objects, [&](const Value* object) { return is_read(object); });
  }

 private:
  void find(const BasicBlock& block) {
    for (const Instruction& instruction : block) {
      if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
        if (!load->hasMetadata(LLVMContext::MD_invariant_load)) read(load->getPointerOperand());
      } else if (const auto* copy = dyn_cast<MemTransferInst>(&instruction)) {
        read(copy->getSource());
      } else if (const auto* update = dyn_cast<AtomicRMWInst>(&instruction)) {
        if (!update->use_empty()) read(update->getPointerOperand());
      } else if (const auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
        read(exchange->getPointerOperand());
      } else if (const auto* call = dyn_cast<CallBase>(&instruction)) {
        is_all_ = is_all_ || (call->mayReadFromMemory() && !is_quiet(*call) && !isa<MemSetInst>(call));
      }
    }
  }

  static std::optional<Place> place_of(const Value* object) {
    if (isa<GlobalVariable>(object)) return Place{object, 0};
    const auto* address = dyn_cast<LoadInst>(object);
    if (!address || !address->hasMetadata(LLVMContext::MD_invariant_load)) return std::nullopt;
    APInt offset(64, 0);
    const Value* base =
        address->getPointerOperand()->stripAndAccumulateConstantOffsets(address->getDataLayout(), offset,
                                                                        /*AllowNonInbounds=*/true);
    // The arguments' addresses lie where another address says.
    if (const auto* arguments = dyn_cast<LoadInst>(base)) base = arguments->getPointerOperand();
    return Place{base, offset.getSExtValue()};
  }

  void read(const Value* from) {
    for (const Value* object : shared_objects(from)) {
      if (std::optional<Place> place = place_of(object))
        places_.insert(*place);
      else
        is_all_ = true;
    }
  }

  bool is_read(const Value* object) const {
    std::optional<Place> place = place_of(object);
    return is_all_ || !place || places_.contains(*place);
  }

  DenseSet<Place> places_;
  bool is_all_ = false;  // or where it is not known
};

// Whether threads do something together there.
bool exchange(const BlockList& blocks) {
  auto is_together = [](const Instruction& instruction) {
    const auto* call = dyn_cast<CallInst>(&instruction);
    return call && call->isConvergent();
  };
  return any_of(blocks, [&](const BasicBlock* block) { return any_of(*block, is_together); });
}

// From the block's end one might go on instead.
void lead_to(BasicBlock& goes_on, BasicBlock& block) {
  Instruction* branch = block.getTerminator();
  BasicBlock* rest = SplitBlock(&block, branch);
  block.getTerminator()->eraseFromParent();
  IRBuilder<> builder(&block);
  builder.CreateCondBr(builder.CreateCall(&never_function(*block.getModule())), &goes_on, rest);
}

class LeaveFirst {
 public:
  LeaveFirst(Function& function, FunctionAnalysisManager& analyses, const Blocks& waits)
      : function_(function),
        waits_(waits),
        leading_(leading_to(waits)),
        for_good_(leading_for_good(waits)),
        divergence_(analyses.getResult<DivergenceAnalysis>(function)),
        dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  Leavings run() {
    if (leading_.empty()) return Leavings::kNone;
    for (BasicBlock& block : function_)
      if (!find(block)) return Leavings::kTooLate;
    if (found_.empty()) return Leavings::kNone;
    for (const Leaving& leaving : found_) order(leaving);
    EliminateUnreachableBlocks(function_);
    return Leavings::kFirst;
  }

 private:
  struct Leaving {
    BranchInst* branch;
    unsigned way;
    bool shares;    // blocks that write, with others
    BlockList own;  // what is behind the way and nothing else leads to
  };

  static bool write(const BlockList& blocks) {
    return any_of(blocks, [](const BasicBlock* block) { return any_of(*block, write_shared); });
  }

  // Whether what is written there is read behind a wait.
  bool is_seen(const BlockList& blocks) {
    if (!read_) read_.emplace(waits_);
    return any_of(blocks, [&](const BasicBlock* block) {
      return any_of(*block, [&](const Instruction& instruction) { return read_->is_written_by(instruction); });
    });
  }

  // Of the blocks those to which nobody comes who has gone on by the fork's other way and waited. In others threads
  // meet, and what is written before is in no order with what others do who have not returned.
  BlockList apart_from_waiting(const BlockList& blocks, const BasicBlock& fork, const BasicBlock& goes_on) const {
    Reached going_on, behind_waits;
    going_on.insert(&goes_on);
    follow(going_on, &fork);
    for (const BasicBlock* block : going_on)
      if (waits_.contains(block)) behind_waits.insert(block);
    follow(behind_waits, &fork);
    BlockList apart;
    for (BasicBlock* block : blocks)
      if (!behind_waits.contains(block)) apart.insert(block);
    return apart;
  }

  static size_t size_of(const BlockList& blocks) {
    size_t size = 0;
    for (const BasicBlock* block : blocks) size += block->size();
    return size;
  }

  // Whether some may take one of the block's ways while others go on.
  bool parts(const BasicBlock& block) {
    if (divergence_.is_divergent_branch(block) || !for_good_.contains(&block)) return true;
    if (!apart_) apart_ = blocks_apart(loops_, divergence_, waits_);
    return apart_->contains(&block);
  }

  // Returns whether what leaves there can be put first.
  bool find(BasicBlock& block) {
    auto* branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional()) return true;
    if (!never_goes_back(block) && !goes_back_in_time(block, *branch)) return false;
    const bool is_second = leading_.contains(branch->getSuccessor(0));
    if (is_second == leading_.contains(branch->getSuccessor(1))) return true;
    const unsigned way = is_second ? 1 : 0;
    BasicBlock* leaves = branch->getSuccessor(way);
    const BlockList all = behind(*leaves);
    if (!write(all) || !parts(block)) return true;
    const BasicBlockEdge edge(&block, leaves);
    BlockList own, shared;
    for (BasicBlock* one : all) (dominators_.dominates(edge, one) ? own : shared).insert(one);
    if (exchange(own) && leaves_loop(block, *leaves)) return !is_seen(all);
    const bool shares = write(shared) && !exchange(shared) && copied_ + size_of(all) <= kMostCopied;
    if (!shares && is_seen(apart_from_waiting(shared, block, *branch->getSuccessor(1 - way)))) return false;
    if (shares) copied_ += size_of(all);
    if (shares || write(own)) found_.push_back({branch, way, shares, std::move(own)});
    return true;
  }

  // Where those that leave exchange values in an iteration of a loop, a way back that nobody takes leads to the loop's
  // header. So they come before what is behind the loop, but not before what is in it.
  bool goes_back_in_time(const BasicBlock& block, const BranchInst& branch) {
    const bool is_second = for_good_.contains(branch.getSuccessor(0));
    if (is_second == for_good_.contains(branch.getSuccessor(1))) return true;
    BasicBlock* leaves = branch.getSuccessor(is_second ? 1 : 0);
    if (!leading_.contains(leaves)) return true;
    BlockList all;
    all.insert(leaves);
    bool waits = false;
    for (unsigned i = 0; i < all.size(); ++i)
      for (BasicBlock* next : successors(all[i])) {
        if (!for_good_.contains(next)) {
          all.insert(next);
          continue;
        }
        const Loop* loop = loops_.getLoopFor(next);
        waits = waits || any_of(waits_, [&](const BasicBlock* wait) { return !loop || loop->contains(wait); });
      }
    return !waits || !is_seen(all) || !parts(block);
  }

  // Those that leave in different iterations meet behind the loop.
  bool leaves_loop(const BasicBlock& from, const BasicBlock& to) const {
    const Loop* loop = loops_.getLoopFor(&from);
    return loop && !loop->contains(&to);
  }

  void order(const Leaving& leaving) {
    BasicBlock* goes_on = leaving.branch->getSuccessor(1 - leaving.way);
    if (goes_on->getSinglePredecessor()) FoldSingleEntryPHINodes(goes_on);
    goes_on = SplitEdge(leaving.branch->getParent(), goes_on);
    const BlockList own = leaving.shares ? copy_behind(*leaving.branch, leaving.way) : leaving.own;
    SmallVector<BasicBlock*> ends;
    for (BasicBlock* block : own) {
      if (isa<ReturnInst>(block->getTerminator())) ends.push_back(block);
      for (BasicBlock* next : SmallVector<BasicBlock*>(successors(block)))
        if (!own.contains(next)) ends.push_back(SplitEdge(block, next));
    }
    for (BasicBlock* end : ends) lead_to(*goes_on, *end);
  }

  Function& function_;
  const Blocks& waits_;
  const Blocks leading_, for_good_;
  const Divergence& divergence_;
  const DominatorTree& dominators_;
  const LoopInfo& loops_;
  // Where they are asked for:
  std::optional<ReadMemory> read_;
  std::optional<Blocks> apart_;
  SmallVector<Leaving> found_;
  size_t copied_ = 0;
};

}  // namespace

Leavings leave_first(Function& function, FunctionAnalysisManager& analyses, const Blocks& waits) {
  return LeaveFirst(function, analyses, waits).run();
}

}  // namespace kiln
