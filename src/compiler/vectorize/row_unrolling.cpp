#include "compiler/vectorize/row_unrolling.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <optional>

#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/metadata.h"
#include "compiler/vectorize/lane_strides.h"
#include "compiler/vectorize/loop_strides.h"

namespace kiln {

using namespace llvm;

namespace {

// Four words of a row are as much as is loaded at once; of narrower elements eight are enough.
constexpr unsigned kFactor = 4, kFactorOfNarrow = 8;
// Instructions of one iteration, and of all that are in one block then.
constexpr unsigned kMostInLoop = 80;
// Instructions of all copies in a function: each takes some 0.5 ms to compile, with what runs where a check fails.
constexpr unsigned kMostCopied = 480;
// Lanes that are nearer to each other have their elements in the same registers (widener_strides.h).
constexpr int64_t kFewestBytesOfRow = 17;

class LoopsOverRows {
 public:
  LoopsOverRows(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses)
      : function_(function),
        layout_(function.getDataLayout()),
        divergence_(divergence),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  bool mark() {
    bool has_marked = false;
    for (Loop* loop : loops_.getLoopsInPreorder())
      if (unsigned factor = factor_of(*loop)) {
        const unsigned copied = num_copied_ + factor * size_of(*loop);
        if (copied > kMostCopied) continue;
        num_copied_ = copied;
        always_unroll(*cast<BranchInst>(loop->getLoopLatch()->getTerminator()), factor);
        for (LoadInst* load : rows_) load->setMetadata(kRowPart, MDNode::get(load->getContext(), {}));
        has_marked = true;
      }
    return has_marked;
  }

 private:
  static unsigned size_of(const Loop& loop) {
    unsigned size = 0;
    for (const BasicBlock* block : loop.blocks()) size += static_cast<unsigned>(block->size());
    return size;
  }

  // 0: it stays.
  unsigned factor_of(Loop& loop) {
    BasicBlock* latch = loop.getLoopLatch();
    if (!loop.isInnermost() || !latch || loop.getExitingBlock() != latch || !loop.getLoopPreheader() ||
        !isa<BranchInst>(latch->getTerminator()) || divergence_.is_divergent_branch(*latch) ||
        (hasUnrollTransformation(&loop) != TM_Unspecified && !is_kept_rolled(loop)))
      return 0;
    const unsigned trips = evolution_.getSmallConstantTripCount(&loop);
    if (trips != 0 && trips < 2 * kFactor) return 0;
    const unsigned size = size_of(loop);
    if (size > kMostInLoop) return 0;
    // Loads are not grouped over a write (widener_access_groups.h).
    const bool has_writes = any_of(loop.blocks(), [](const BasicBlock* block) {
      return any_of(*block, [](const Instruction& instruction) { return instruction.mayWriteToMemory(); });
    });
    bool has_gaps = false, are_words = false;
    rows_.clear();
    for (BasicBlock* block : loop.blocks())
      for (Instruction& instruction : *block) {
        if (const auto* call = dyn_cast<CallBase>(&instruction); call && !isa<IntrinsicInst>(call)) return 0;
        auto* load = dyn_cast<LoadInst>(&instruction);
        if (!load || (has_writes && !load->hasMetadata(LLVMContext::MD_invariant_load))) continue;
        const int64_t distance = walked(*load, loop);
        if (distance == 0) continue;
        if (distance < kFewestBytesOfRow)
          has_gaps = true;
        else
          rows_.push_back(load);
        are_words |= layout_.getTypeStoreSize(load->getType()) == 4;
      }
    // What the next iterations load fills gaps.
    if (rows_.empty()) return has_gaps ? kFactor : 0;
    const bool is_short = size <= kMostInLoop / 2 && (trips == 0 || trips >= 2 * kFactorOfNarrow);
    return are_words || !is_short ? kFactor : kFactorOfNarrow;
  }

  // The bytes between lanes, if the load is of the element after that of the iteration before and there is a gap
  // between lanes; otherwise 0.
  int64_t walked(LoadInst& load, const Loop& loop) {
    if (!load.isSimple() || load.getType()->isVectorTy()) return 0;
    Value* address = load.getPointerOperand();
    if (auto* guard = dyn_cast<SelectInst>(address)) address = guard->getTrueValue();
    const auto bytes = static_cast<int64_t>(layout_.getTypeStoreSize(load.getType()).getFixedValue());
    if (!divergence_.is_divergent(address)) return 0;
    if (!strides_) strides_.emplace(function_, divergence_);
    const LaneStride stride = strides_->of(address);
    if (bytes > 4 || !stride.distance || *stride.distance < 2 * bytes) return 0;
    const std::optional<LoopStride> walk = loop_stride_of(address, loop, evolution_, layout_);
    return walk && walk->bytes == bytes ? *stride.distance : 0;
  }

  Function& function_;
  const DataLayout& layout_;
  const Divergence& divergence_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  unsigned num_copied_ = 0;
  SmallVector<LoadInst*> rows_;         // of the loop that is looked at
  std::optional<LaneStrides> strides_;  // where a loop asks
};

}  // namespace

bool mark_loops_over_rows(Function& function, const Divergence& divergence, FunctionAnalysisManager& analyses) {
  return LoopsOverRows(function, divergence, analyses).mark();
}

}  // namespace kiln
