#include "compiler/passes/split_at_waits.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "compiler/passes/exchange_sites.h"
#include "core/cpu_image.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

class WaitSplitter {
 public:
  explicit WaitSplitter(Function& function)
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
          call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with(kWaitFunction))
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
    for (auto& [value, uses] : kept) {
      bool again = can_be_computed_again(*value);
      uint64_t offset = again ? 0 : store(*value);
      DenseMap<BasicBlock*, Value*> copies;
      for (Use* use : uses) {
        auto* user = cast<Instruction>(use->getUser());
        auto* phi = dyn_cast<PHINode>(user);
        BasicBlock* block = phi ? phi->getIncomingBlock(*use) : user->getParent();
        Value*& copy = copies[block];
        if (!copy) {
          builder_.SetInsertPoint(block, block->getFirstInsertionPt());
          Type* type = value->getType();
          copy = again ? compute_again(*value) : builder_.CreateAlignedLoad(type, in_frame(offset), alignment_of(type));
        }
        use->set(copy);
      }
    }
  }

  Align alignment_of(Type* type) const { return std::min(layout_.getABITypeAlign(type), Align(kCpuFrameAlignment)); }

  // The frame has the value that was computed last, which is the one that every use means.
  uint64_t store(Instruction& value) {
    Type* type = value.getType();
    uint64_t offset = reserve(layout_.getTypeAllocSize(type), alignment_of(type));
    std::optional<BasicBlock::iterator> behind = value.getInsertionPointAfterDef();
    if (!behind) throw InternalError("a value cannot be kept");
    builder_.SetInsertPoint((*behind)->getParent(), *behind);
    builder_.CreateAlignedStore(&value, in_frame(offset), alignment_of(type));
    return offset;
  }

  // What is read from the launch's arguments is read again instead.
  static bool can_be_computed_again(const Value& value) {
    if (isa<Argument>(value) || isa<Constant>(value)) return true;
    if (const auto* address = dyn_cast<GetElementPtrInst>(&value))
      return address->hasAllConstantIndices() && can_be_computed_again(*address->getPointerOperand());
    if (const auto* load = dyn_cast<LoadInst>(&value))
      return load->hasMetadata(LLVMContext::MD_invariant_load) && can_be_computed_again(*load->getPointerOperand());
    return false;
  }

  Value* compute_again(Value& value) {
    auto* instruction = dyn_cast<Instruction>(&value);
    if (!instruction) return &value;
    Instruction* copy = instruction->clone();
    copy->setOperand(0, compute_again(*instruction->getOperand(0)));
    return builder_.Insert(copy);
  }

  Function& function_;
  const DataLayout& layout_;
  IRBuilder<> builder_;
  Value* record_;
  Value* frame_;
  SwitchInst* entries_ = nullptr;  // from `dispatch`, the first block
  uint64_t frame_bytes_ = 0;
};

}  // namespace

uint64_t split_at_waits(Function& function) { return WaitSplitter(function).run(); }

}  // namespace kiln
