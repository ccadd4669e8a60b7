// Control flow of a simdgroup: blocks, their masks, phis, and loops that run until their last lane leaves.
//
// The thread's control flow is structured (analysis/structured_flow.h). Each of its blocks becomes one or more blocks
// of the function that is made, in the same order: what a block's instructions become may have branches of its own.
//
// Linear in the blocks, phis and live-out values of loops.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/IRBuilder.h>

#include <optional>
#include <vector>

#include "compiler/vectorize/widener_lanes.h"
#include "compiler/vectorize/widener_thread_code.h"

namespace kiln::widening {

class ControlFlow {
 public:
  using WidenInstruction = function_ref<void(Instruction&, IRBuilder<>&)>;

  /// `is_full`: all lanes are active at entry. Otherwise the last argument is their number.
  ControlFlow(ThreadCode& code, bool is_full, Lanes& lanes);

  /// Widens all blocks. `widen_instruction` emits what an instruction becomes at the end of the current block.
  void widen(WidenInstruction widen_instruction);

  /// A block's first and last block in the function that is made. The former is there from the beginning of widen() on,
  /// the latter once the block is widened.
  BasicBlock* begin(const BasicBlock* block) const { return begin_.lookup(block); }
  BasicBlock* end(const BasicBlock* block) const { return end_.lookup(block); }

  /// Whether the block is in an if-converted side, which runs even if no lane takes it.
  bool is_if_converted(const BasicBlock& block) const { return if_converted_.contains(&block); }

 private:
  // A live-out value of a divergent loop.
  struct LiveOut {
    Loop* loop;
    Instruction* value;
    PHINode* phi;
    Value* last;
    BasicBlock* side = nullptr;  // of a carried result: lanes in the side get `next`, others keep what they have
    Value* next = nullptr;
  };

  // A loop-carried value that is also live out: lanes that leave at the branch keep the carried value, others have what
  // its side computes.
  struct CarriedResult {
    PHINode* carried;
    BasicBlock* side;
    Value* next;
  };

  // A branch's side that runs without a test whether any lane takes it.
  struct ConvertedSide {
    SmallVector<const BasicBlock*> blocks;  // but those of inner sides
    BasicBlock* last;
    unsigned cost;
  };

  Value* condition_for(const BasicBlock& from, const BasicBlock& to, IRBuilder<>& builder);
  Value* mask_at(BasicBlock& block, IRBuilder<>& builder);
  void widen_block(BasicBlock& block, WidenInstruction widen_instruction);
  bool is_guarded_uniform_load(const Instruction& instruction) const;
  std::optional<unsigned> cost_without_test(const BasicBlock& block) const;
  std::optional<ConvertedSide> converted_side(BasicBlock& branch_block) const;
  BasicBlock* if_converted_side(BasicBlock& block) const;
  std::optional<CarriedResult> carried_result_of(Loop& loop, Instruction& value) const;
  void create_live_out_phis(Loop& loop, IRBuilder<>& builder);
  PHINode* carrier_of(Loop& loop, Instruction& value) const;
  void widen_terminator(BasicBlock& block, IRBuilder<>& builder);
  void close_loop(Loop& loop, BasicBlock& latch, BranchInst& branch, IRBuilder<>& builder);
  void complete_phis(BasicBlock& block);
  Value* incoming(PHINode& phi, BasicBlock& before, IRBuilder<>& builder);

  Function& from_;
  const StructuredFlow& flow_;
  LoopInfo& loops_;
  DominatorTree& dominators_;
  const VectorIsa& isa_;
  const bool is_full_;
  Lanes& lanes_;
  DenseMap<const BasicBlock*, BasicBlock*> begin_, end_;
  DenseMap<const BasicBlock*, Value*> masks_;
  DenseMap<Loop*, PHINode*> loop_masks_;
  DenseMap<PHINode*, Value*> carried_;
  DenseMap<const BasicBlock*, ConvertedSide> converted_;  // by the blocks of their branches
  DenseSet<const BasicBlock*> if_converted_;              // blocks of such sides
  DenseSet<PHINode*> live_out_phis_;                      // loop-carried values that are also live out
  std::vector<LiveOut> live_outs_;
};

}  // namespace kiln::widening
