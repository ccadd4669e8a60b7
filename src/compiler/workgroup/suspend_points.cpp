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

    move_variables_to_frame(*start);
    // Collected before the function is split.
    SmallVector<CallInst*> suspend_points;
    SmallVector<ReturnInst*> returns;
    for (Instruction& instruction : instructions(function_)) {
      if (auto* call = dyn_cast<CallInst>(&instruction);
          call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with(kConvergenceFunction))
        suspend_points.push_back(call);
      if (auto* ret = dyn_cast<ReturnInst>(&instruction)) returns.push_back(ret);
    }
    for (CallInst* suspend_point : suspend_points) split_at(*suspend_point);
    for (ReturnInst* ret : returns) {
      builder_.SetInsertPoint(ret);
      builder_.CreateStore(builder_.getInt32(CpuThread::kReturned), field(offsetof(CpuThread, site)));
    }
    spill_values();
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
  Value* payload_element(size_t offset) {
    Value* payload = builder_.CreateLoad(builder_.getPtrTy(), field(offsetof(CpuThread, payload)));
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), payload, builder_.getInt64(offset));
  }

  // Moves all remaining variables to the frame: most arrays live across suspend points.
  void move_variables_to_frame(BasicBlock& start) {
    SmallVector<AllocaInst*> variables;
    for (Instruction& instruction : instructions(function_))
      if (auto* variable = dyn_cast<AllocaInst>(&instruction)) variables.push_back(variable);
    for (AllocaInst* variable : variables) {
      std::optional<TypeSize> bytes = variable->getAllocationSize(layout_);
      if (!bytes || variable->getParent() != &start) throw InternalError("a variable's place is not known");
      for (User* user : make_early_inc_range(variable->users()))
        if (auto* lifetime = dyn_cast<LifetimeIntrinsic>(user)) lifetime->eraseFromParent();
      builder_.SetInsertPoint(entries_);
      variable->replaceAllUsesWith(reserve_variable(bytes->getFixedValue(), variable->getAlign()));
      variable->eraseFromParent();
    }
  }

  Value* reserve_variable(uint64_t bytes, Align alignment) {
    if (alignment <= kCpuFrameAlignment) return in_frame(reserve(bytes, alignment));
    Value* address = in_frame(reserve(bytes + alignment.value() - kCpuFrameAlignment, Align(kCpuFrameAlignment)));
    Value* end = builder_.CreateInBoundsGEP(builder_.getInt8Ty(), address,
                                            builder_.getInt64(alignment.value() - kCpuFrameAlignment));
    return builder_.CreateIntrinsic(Intrinsic::ptrmask, {builder_.getPtrTy(), builder_.getInt64Ty()},
                                    {end, builder_.getInt64(~(alignment.value() - 1))});
  }

  // The thread stores its suspend point and its operands, returns, and resumes with the result.
  void split_at(CallInst& suspend_point) {
    BasicBlock* before = suspend_point.getParent();
    BasicBlock* resume_block = SplitBlock(before, &suspend_point);
    suspended_blocks_[resume_block] = before;
    before->getTerminator()->eraseFromParent();
    builder_.SetInsertPoint(before);
    ConstantInt* number = builder_.getInt32(entries_->getNumCases() + 1);
    entries_->addCase(number, resume_block);
    builder_.CreateStore(number, field(offsetof(CpuThread, entry)));
    Value* site = builder_.CreateAdd(suspend_point.getArgOperand(0), builder_.getInt32(1));
    builder_.CreateStore(site, field(offsetof(CpuThread, site)));
    if (suspend_point.arg_size() > 3) {
      Value* counts = builder_.CreateLoad(builder_.getPtrTy(), field(offsetof(CpuThread, counts)));
      for (unsigned i = 3; i < suspend_point.arg_size(); ++i)
        builder_.CreateStore(suspend_point.getArgOperand(i),
                             builder_.CreateConstInBoundsGEP1_32(builder_.getInt32Ty(), counts, i - 3));
    }
    builder_.CreateStore(suspend_point.getArgOperand(1), payload_element(offsetof(CpuPayload, values)));
    builder_.CreateStore(suspend_point.getArgOperand(2), payload_element(offsetof(CpuPayload, operands)));
    builder_.CreateRetVoid();

    if (!suspend_point.use_empty()) {
      builder_.SetInsertPoint(&suspend_point);
      suspend_point.replaceAllUsesWith(
          builder_.CreateLoad(suspend_point.getType(), payload_element(offsetof(CpuPayload, results))));
    }
    suspend_point.eraseFromParent();
  }

  // ---- Values that are live across a suspend point

  // A value is stored to the frame at the suspend point and not at its definition, which may be in a loop without one:
  // a value live across a suspend point is live-in to the block after it.
  void spill_values() {
    DominatorTree dominators(function_);
    SmallVector<std::pair<Instruction*, SmallVector<Use*>>> spilled;
    for (Instruction& instruction : instructions(function_)) {
      SmallVector<Use*> uses;
      // A path to the use that bypasses the definition can only come from `dispatch`.
      for (Use& use : instruction.uses())
        if (!dominators.dominates(&instruction, use)) uses.push_back(&use);
      if (!uses.empty()) spilled.emplace_back(&instruction, std::move(uses));
    }
    LoopInfo loops(dominators);  // only those without suspend points: `dispatch` enters the others in the middle
    for (auto& [value, uses] : spilled) {
      if (can_be_rematerialized(*value, is_never_available))
        rematerialize_at_uses(*value, uses, loops);
      else
        spill(*value, uses);
    }
  }

  void rematerialize_at_uses(Instruction& value, ArrayRef<Use*> uses, const LoopInfo& loops) {
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
        copy = rematerialize(value, is_never_available, builder_);
      }
      use->set(copy);
    }
  }

  void spill(Instruction& value, ArrayRef<Use*> uses) {
    uint64_t offset = reserve(layout_.getTypeAllocSize(value.getType()), alignment_of(value.getType()));
    Type* type = value.getType();
    SSAUpdater updater;
    updater.Initialize(type, value.getName());
    updater.AddAvailableValue(value.getParent(), &value);
    SmallVector<BasicBlock*> suspending_blocks;
    for (BasicBlock* resume_block : live_after_suspend_points(value)) {
      builder_.SetInsertPoint(resume_block, resume_block->getFirstInsertionPt());
      updater.AddAvailableValue(resume_block, builder_.CreateAlignedLoad(type, in_frame(offset), alignment_of(type)));
      suspending_blocks.push_back(suspended_blocks_[resume_block]);
    }
    for (BasicBlock* block : suspending_blocks) {
      Value* last = updater.GetValueAtEndOfBlock(block);
      builder_.SetInsertPoint(block->getTerminator());
      builder_.CreateAlignedStore(last, in_frame(offset), alignment_of(type));
    }
    for (Use* use : uses) updater.RewriteUseAfterInsertions(*use);
  }

  // The blocks after suspend points to which the value is live-in.
  SmallVector<BasicBlock*> live_after_suspend_points(Instruction& value) {
    SmallVector<BasicBlock*> found, blocks;
    SmallPtrSet<BasicBlock*, 16> seen;
    for (Use& use : value.uses()) {
      auto* user = cast<Instruction>(use.getUser());
      auto* phi = dyn_cast<PHINode>(user);
      // A phi uses the value at the end of the incoming block.
      BasicBlock* block = phi ? phi->getIncomingBlock(use) : user->getParent();
      if (block != value.getParent()) blocks.push_back(block);
    }
    while (!blocks.empty()) {
      BasicBlock* block = blocks.pop_back_val();
      if (!seen.insert(block).second) continue;
      auto suspend_point = suspended_blocks_.find(block);
      if (suspend_point != suspended_blocks_.end()) {
        found.push_back(block);
        if (suspend_point->second != value.getParent()) blocks.push_back(suspend_point->second);
        continue;
      }
      for (BasicBlock* before : predecessors(block))
        if (before != value.getParent()) blocks.push_back(before);
    }
    return found;
  }

  Align alignment_of(Type* type) const { return std::min(layout_.getABITypeAlign(type), Align(kCpuFrameAlignment)); }

  static bool is_never_available(const Use&) { return false; }

  Function& function_;
  const DataLayout& layout_;
  IRBuilder<> builder_;
  Value* record_;
  Value* frame_;
  SwitchInst* entries_ = nullptr;                        // in `dispatch`, the first block
  DenseMap<BasicBlock*, BasicBlock*> suspended_blocks_;  // by resume block: the block before the suspend point
  uint64_t frame_bytes_ = 0;
};

}  // namespace

uint64_t split_at_suspend_points(Function& function) { return SuspendPointSplitter(function).run(); }

}  // namespace kiln
