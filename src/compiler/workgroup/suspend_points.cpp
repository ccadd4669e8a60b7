#include "compiler/workgroup/suspend_points.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/SSAUpdater.h>

#include "compiler/ir/convergence_point.h"
#include "compiler/ir/rematerialize.h"
#include "core/cpu_image.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

class SuspendPointSplitter {
 public:
  explicit SuspendPointSplitter(Function& function)
      : function_(function),
        layout_(function.getParent()->getDataLayout()),
        builder_(function.getContext()),
        record_(function.getArg(1)),
        frame_(function.getArg(2)) {}

  uint64_t run() {
    BasicBlock* start = &function_.getEntryBlock();
    builder_.SetInsertPoint(BasicBlock::Create(function_.getContext(), "dispatch", &function_, start));
    entries_ =
        builder_.CreateSwitch(builder_.CreateLoad(builder_.getInt32Ty(), field(offsetof(CpuThread, entry))), start);

    move_variables(*start);
    // Found before anything is cut.
    SmallVector<CallInst*> waits;
    SmallVector<ReturnInst*> returns;
    for (Instruction& instruction : instructions(function_)) {
      if (auto* call = dyn_cast<CallInst>(&instruction);
          call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with(kConvergenceFunction))
        waits.push_back(call);
      if (auto* ret = dyn_cast<ReturnInst>(&instruction)) returns.push_back(ret);
    }
    for (CallInst* wait : waits) cut(*wait);
    for (ReturnInst* ret : returns) {
      builder_.SetInsertPoint(ret);
      builder_.CreateStore(builder_.getInt32(CpuThread::kReturned), field(offsetof(CpuThread, site)));
    }
    keep_values();
    return frame_bytes_;
  }

 private:
  uint64_t reserve(uint64_t bytes, Align alignment) {
    uint64_t offset = alignTo(frame_bytes_, alignment);
    frame_bytes_ = offset + bytes;
    return offset;
  }

  Value* in_frame(uint64_t offset) {
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), frame_, builder_.getInt64(offset));
  }
  Value* field(size_t offset) {
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), record_, builder_.getInt64(offset));
  }

  // This lane's element of one of the payload's arrays.
  Value* exchanged(size_t offset) {
    Value* payload = builder_.CreateLoad(builder_.getPtrTy(), field(offsetof(CpuThread, payload)));
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), payload, builder_.getInt64(offset));
  }

  // What is still in memory, all of it: most arrays live across waits.
  void move_variables(BasicBlock& start) {
    SmallVector<AllocaInst*> variables;
    for (Instruction& instruction : instructions(function_))
      if (auto* variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
    for (AllocaInst* variable : variables) {
      std::optional<TypeSize> bytes = variable->getAllocationSize(layout_);
      if (!bytes || variable->getParent() != &start) throw InternalError("a variable's place is not known");
      for (User* user : make_early_inc_range(variable->users()))
        if (auto* lifetime = dyn_cast<LifetimeIntrinsic>(user)) lifetime->eraseFromParent();
      builder_.SetInsertPoint(entries_);
      variable->replaceAllUsesWith(room_for(bytes->getFixedValue(), variable->getAlign()));
      variable->eraseFromParent();
    }
  }

  Value* room_for(uint64_t bytes, Align alignment) {
    if (alignment <= kCpuFrameAlignment) return in_frame(reserve(bytes, alignment));
    Value* room = in_frame(reserve(bytes + alignment.value() - kCpuFrameAlignment, Align(kCpuFrameAlignment)));
    Value* up = builder_.CreateInBoundsGEP(builder_.getInt8Ty(), room,
                                           builder_.getInt64(alignment.value() - kCpuFrameAlignment));
    return builder_.CreateIntrinsic(Intrinsic::ptrmask, {builder_.getPtrTy(), builder_.getInt64Ty()},
                                    {up, builder_.getInt64(~(alignment.value() - 1))});
  }

  // The thread says where it waits and with what, returns, and goes on with the result.
  void cut(CallInst& wait) {
    BasicBlock* before = wait.getParent();
    BasicBlock* behind = SplitBlock(before, &wait);
    waits_before_[behind] = before;
    before->getTerminator()->eraseFromParent();
    builder_.SetInsertPoint(before);
    ConstantInt* number = builder_.getInt32(entries_->getNumCases() + 1);
    entries_->addCase(number, behind);
    builder_.CreateStore(number, field(offsetof(CpuThread, entry)));
    Value* site = builder_.CreateAdd(wait.getArgOperand(0), builder_.getInt32(1));
    builder_.CreateStore(site, field(offsetof(CpuThread, site)));
    if (wait.arg_size() > 3) {
      Value* counts = builder_.CreateLoad(builder_.getPtrTy(), field(offsetof(CpuThread, counts)));
      for (unsigned i = 3; i < wait.arg_size(); ++i)
        builder_.CreateStore(wait.getArgOperand(i),
                             builder_.CreateConstInBoundsGEP1_32(builder_.getInt32Ty(), counts, i - 3));
    }
    builder_.CreateStore(wait.getArgOperand(1), exchanged(offsetof(CpuPayload, values)));
    builder_.CreateStore(wait.getArgOperand(2), exchanged(offsetof(CpuPayload, operands)));
    builder_.CreateRetVoid();

    if (!wait.use_empty()) {
      builder_.SetInsertPoint(&wait);
      wait.replaceAllUsesWith(builder_.CreateLoad(wait.getType(), exchanged(offsetof(CpuPayload, results))));
    }
    wait.eraseFromParent();
  }

  // ---- Values that are needed behind a wait

  // A value goes into the frame where the thread waits and not where it is computed, which may be a loop that does not
  // wait: what lives across a wait is live at the beginning of the block behind it.
  void keep_values() {
    DominatorTree dominators(function_);
    SmallVector<std::pair<Instruction*, SmallVector<Use*>>> kept;
    for (Instruction& instruction : instructions(function_)) {
      SmallVector<Use*> uses;
      // A way that leads to the use past the definition can only come from `dispatch`.
      for (Use& use : instruction.uses())
        if (!dominators.dominates(&instruction, use)) uses.push_back(&use);
      if (!uses.empty()) kept.emplace_back(&instruction, std::move(uses));
    }
    LoopInfo loops(dominators);  // those that do not wait: from `dispatch` one comes into the others' middle
    for (auto& [value, uses] : kept) {
      if (can_be_rematerialized(*value, is_never_there))
        compute_where_used(*value, uses, loops);
      else
        keep(*value, uses);
    }
  }

  void compute_where_used(Instruction& value, ArrayRef<Use*> uses, const LoopInfo& loops) {
    DenseMap<BasicBlock*, Value*> copies;
    for (Use* use : uses) {
      auto* user = cast<Instruction>(use->getUser());
      auto* phi = dyn_cast<PHINode>(user);
      BasicBlock* block = phi ? phi->getIncomingBlock(*use) : user->getParent();
      for (Loop* loop = loops.getLoopFor(block); loop; loop = loop->getParentLoop())
        if (BasicBlock* before = loop->getLoopPreheader()) block = before;
      Value*& copy = copies[block];
      if (!copy) {
        builder_.SetInsertPoint(block, block->getFirstInsertionPt());
        copy = rematerialize(value, is_never_there, builder_);
      }
      use->set(copy);
    }
  }

  void keep(Instruction& value, ArrayRef<Use*> uses) {
    uint64_t offset = reserve(layout_.getTypeAllocSize(value.getType()), alignment_of(value.getType()));
    Type* type = value.getType();
    SSAUpdater updater;
    updater.Initialize(type, value.getName());
    updater.AddAvailableValue(value.getParent(), &value);
    SmallVector<BasicBlock*> waiting;
    for (BasicBlock* behind : live_after_suspend_points(value)) {
      builder_.SetInsertPoint(behind, behind->getFirstInsertionPt());
      updater.AddAvailableValue(behind, builder_.CreateAlignedLoad(type, in_frame(offset), alignment_of(type)));
      waiting.push_back(waits_before_[behind]);
    }
    for (BasicBlock* block : waiting) {
      Value* last = updater.GetValueAtEndOfBlock(block);
      builder_.SetInsertPoint(block->getTerminator());
      builder_.CreateAlignedStore(last, in_frame(offset), alignment_of(type));
    }
    for (Use* use : uses) updater.RewriteUseAfterInsertions(*use);
  }

  // The blocks behind waits at whose beginning a later use will need the value.
  SmallVector<BasicBlock*> live_after_suspend_points(Instruction& value) {
    SmallVector<BasicBlock*> found, blocks;
    SmallPtrSet<BasicBlock*, 16> seen;
    for (Use& use : value.uses()) {
      auto* user = cast<Instruction>(use.getUser());
      auto* phi = dyn_cast<PHINode>(user);
      // A phi uses the value at the end of the block before.
      BasicBlock* block = phi ? phi->getIncomingBlock(use) : user->getParent();
      if (block != value.getParent()) blocks.push_back(block);
    }
    while (!blocks.empty()) {
      BasicBlock* block = blocks.pop_back_val();
      if (!seen.insert(block).second) continue;
      auto wait = waits_before_.find(block);
      if (wait != waits_before_.end()) {
        found.push_back(block);
        if (wait->second != value.getParent()) blocks.push_back(wait->second);
        continue;
      }
      for (BasicBlock* before : predecessors(block))
        if (before != value.getParent()) blocks.push_back(before);
    }
    return found;
  }

  Align alignment_of(Type* type) const { return std::min(layout_.getABITypeAlign(type), Align(kCpuFrameAlignment)); }

  static bool is_never_there(const Use&) { return false; }

  Function& function_;
  const DataLayout& layout_;
  IRBuilder<> builder_;
  Value* record_;
  Value* frame_;
  SwitchInst* entries_ = nullptr;                    // from `dispatch`, the first block
  DenseMap<BasicBlock*, BasicBlock*> waits_before_;  // by the block behind a wait, that which ends with it
  uint64_t frame_bytes_ = 0;
};

}  // namespace

uint64_t split_at_suspend_points(Function& function) { return SuspendPointSplitter(function).run(); }

}  // namespace kiln
