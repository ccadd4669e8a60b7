#include "compiler/passes/locked_rows.h"

#include <llvm/IR/Module.h>

#include "compiler/passes/loop_unrolling.h"
#include "compiler/passes/widen.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr StringLiteral kPrefix = "__kiln_locked_row.";

enum Parameter : unsigned { kRow, kOperands, kRowLanes };

class LockedRow {
 public:
  LockedRow(Function& function, const AtomicRMWInst& atomic)
      : function_(function), atomic_(atomic), builder_(function.getContext()), end_(block("end")) {}

  void write() {
    BasicBlock *pair = block("pair"), *some = block("some"), *lane = block("lane");
    entry_ = block("entry");
    entry_->moveBefore(end_);
    builder_.SetInsertPoint(entry_);
    Value* address = builder_.CreatePtrToInt(function_.getArg(kRow), builder_.getInt64Ty());
    Value* is_aligned = builder_.CreateICmpEQ(builder_.CreateAnd(address, 7), builder_.getInt64(0));
    // Those of lanes that take no part may lie outside.
    Value* are_all = builder_.CreateICmpEQ(function_.getArg(kRowLanes), builder_.getInt32(-1));
    builder_.CreateCondBr(builder_.CreateAnd(is_aligned, are_all), pair, some);
    write_pairs(*pair);
    builder_.SetInsertPoint(some);
    Value* is_none = builder_.CreateICmpEQ(function_.getArg(kRowLanes), builder_.getInt32(0));
    builder_.CreateCondBr(is_none, end_, lane);
    write_lanes(*some, *lane);
    builder_.SetInsertPoint(end_);
    builder_.CreateRetVoid();
  }

 private:
  BasicBlock* block(const char* name) { return BasicBlock::Create(function_.getContext(), name, &function_); }

  // All of them written out would be long to compile, and gain no more.
  void go_round(Value* condition, BasicBlock& loop) { never_unroll(*builder_.CreateCondBr(condition, &loop, end_)); }

  void exchange(Type* type, Value* index) {
    Value* operand = builder_.CreateAlignedLoad(type, builder_.CreateGEP(type, function_.getArg(kOperands), index),
                                                function_.getDataLayout().getABITypeAlign(type));
    builder_.CreateAtomicRMW(atomic_.getOperation(), builder_.CreateGEP(type, function_.getArg(kRow), index), operand,
                             function_.getDataLayout().getABITypeAlign(type), atomic_.getOrdering(),
                             atomic_.getSyncScopeID());
  }

  void write_pairs(BasicBlock& loop) {
    builder_.SetInsertPoint(&loop);
    PHINode* index = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    exchange(FixedVectorType::get(atomic_.getType(), 2), index);
    Value* next = builder_.CreateAdd(index, builder_.getInt64(1));
    index->addIncoming(builder_.getInt64(0), entry_);
    index->addIncoming(next, &loop);
    go_round(builder_.CreateICmpNE(next, builder_.getInt64(kLanes / 2)), loop);
  }

  void write_lanes(BasicBlock& before, BasicBlock& loop) {
    builder_.SetInsertPoint(&loop);
    PHINode* rest = builder_.CreatePHI(builder_.getInt32Ty(), 2);
    Value* lane = builder_.CreateBinaryIntrinsic(Intrinsic::cttz, rest, builder_.getTrue());
    exchange(atomic_.getType(), builder_.CreateZExt(lane, builder_.getInt64Ty()));
    Value* less = builder_.CreateAnd(rest, builder_.CreateSub(rest, builder_.getInt32(1)));
    rest->addIncoming(function_.getArg(kRowLanes), &before);
    rest->addIncoming(less, &loop);
    go_round(builder_.CreateICmpNE(less, builder_.getInt32(0)), loop);
  }

  Function& function_;
  const AtomicRMWInst& atomic_;
  IRBuilder<> builder_;
  BasicBlock *entry_ = nullptr, *end_;
};

// One for each operation, and each way in which atomics are seen.
Function& function_for(const AtomicRMWInst& atomic, Module& module) {
  std::string name =
      concat(std::string_view(kPrefix), AtomicRMWInst::getOperationName(atomic.getOperation()).str(), ".",
             static_cast<unsigned>(atomic.getOrdering()), ".", static_cast<unsigned>(atomic.getSyncScopeID()));
  if (Function* made = module.getFunction(name)) return *made;
  LLVMContext& context = module.getContext();
  Type* pointer = PointerType::getUnqual(context);
  auto* type =
      FunctionType::get(Type::getVoidTy(context), {pointer, pointer, Type::getInt32Ty(context)}, /*isVarArg=*/false);
  Function* function = Function::Create(type, GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(Attribute::NoInline);
  function->addFnAttr(Attribute::NullPointerIsValid);
  // Who calls has registers full of values, and the function needs few. (Vectors would be kept by `preserve_all`, which
  // loses their upper halves: LLVM 19 ends such a function with `vzeroupper`.)
  function->setCallingConv(CallingConv::PreserveMost);
  function->setDoesNotThrow();
  function->setDoesNotFreeMemory();
  function->setWillReturn();
  for (Parameter pointer : {kRow, kOperands}) function->addParamAttr(pointer, Attribute::NoCapture);
  function->addParamAttr(kOperands, Attribute::ReadOnly);
  // Stronger ones order accesses of other memory.
  if (atomic.getOrdering() == AtomicOrdering::Monotonic) function->setOnlyAccessesArgMemory();
  LockedRow(*function, atomic).write();
  return *function;
}

}  // namespace

CallInst* update_locked_row(const AtomicRMWInst& atomic, Value* row, Value* operands, Value* lanes,
                            IRBuilder<>& builder) {
  Function& function = function_for(atomic, *builder.GetInsertBlock()->getModule());
  CallInst* call = builder.CreateCall(&function, {row, operands, lanes});
  call->setCallingConv(function.getCallingConv());
  return call;
}

Value* locked_row(const Instruction& instruction) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  const Function* called = call ? call->getCalledFunction() : nullptr;
  return called && called->getName().starts_with(kPrefix) ? call->getArgOperand(kRow) : nullptr;
}

}  // namespace kiln
