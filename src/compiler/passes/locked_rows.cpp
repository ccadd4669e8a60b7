#include "compiler/passes/locked_rows.h"

#include <llvm/IR/Module.h>

#include "compiler/passes/loop_unrolling.h"
#include "compiler/passes/widen.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr StringLiteral kPrefix = "__kiln_locked_row.";

enum Parameter : unsigned { kRow, kOperands, kRowLanes, kOffset, kLimit };

constexpr uint64_t kFloat = sizeof(float);

// Of what has no guard.
constexpr uint64_t kNoLimit = uint64_t{1} << 61;

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
    lanes_ = lanes();
    Value* are_all = builder_.CreateICmpEQ(lanes_, builder_.getInt32(-1));
    builder_.CreateCondBr(builder_.CreateAnd(is_aligned, are_all), pair, some);
    write_pairs(*pair);
    builder_.SetInsertPoint(some);
    builder_.CreateCondBr(builder_.CreateICmpEQ(lanes_, builder_.getInt32(0)), end_, lane);
    write_lanes(*some, *lane);
    builder_.SetInsertPoint(end_);
    builder_.CreateRetVoid();
  }

 private:
  BasicBlock* block(const char* name) { return BasicBlock::Create(function_.getContext(), name, &function_); }

  // How many lanes begin within so many bytes.
  Value* lanes_in(Value* bytes) {
    bytes = builder_.CreateBinaryIntrinsic(Intrinsic::smin, bytes, builder_.getInt64(kLanes * kFloat));
    bytes = builder_.CreateBinaryIntrinsic(Intrinsic::smax, bytes, builder_.getInt64(0));
    return builder_.CreateLShr(builder_.CreateAdd(bytes, builder_.getInt64(kFloat - 1)), Log2_64(kFloat));
  }

  // Those that take part and are let through, as `Widener::lanes_below` finds them where the guard is: from the first
  // one that is not before the array to the last one in it.
  Value* lanes() {
    Value *offset = function_.getArg(kOffset), *limit = function_.getArg(kLimit);
    Value* behind = builder_.CreateShl(builder_.getInt64(-1), lanes_in(builder_.CreateSub(limit, offset)));
    Value* before = builder_.CreateShl(builder_.getInt64(-1), lanes_in(builder_.CreateNeg(offset)));
    Value* allowed = builder_.CreateAnd(before, builder_.CreateNot(behind));
    return builder_.CreateAnd(function_.getArg(kRowLanes), builder_.CreateTrunc(allowed, builder_.getInt32Ty()));
  }

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
    rest->addIncoming(lanes_, &before);
    rest->addIncoming(less, &loop);
    go_round(builder_.CreateICmpNE(less, builder_.getInt32(0)), loop);
  }

  Function& function_;
  const AtomicRMWInst& atomic_;
  IRBuilder<> builder_;
  BasicBlock *entry_ = nullptr, *end_;
  Value* lanes_ = nullptr;
};

// One for each operation, and each way in which atomics are seen.
Function& function_for(const AtomicRMWInst& atomic, Module& module) {
  std::string name =
      concat(std::string_view(kPrefix), AtomicRMWInst::getOperationName(atomic.getOperation()).str(), ".",
             static_cast<unsigned>(atomic.getOrdering()), ".", static_cast<unsigned>(atomic.getSyncScopeID()));
  if (Function* made = module.getFunction(name)) return *made;
  LLVMContext& context = module.getContext();
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt64Ty(context);
  auto* type =
      FunctionType::get(Type::getVoidTy(context), {pointer, pointer, Type::getInt32Ty(context), number, number},
                        /*isVarArg=*/false);
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
                            const std::optional<RowGuard>& guard, IRBuilder<>& builder) {
  Function& function = function_for(atomic, *builder.GetInsertBlock()->getModule());
  Value* offset = guard ? guard->offset : builder.getInt64(0);
  Value* limit = guard ? guard->limit : builder.getInt64(kNoLimit);
  CallInst* call = builder.CreateCall(&function, {row, operands, lanes, offset, limit});
  call->setCallingConv(function.getCallingConv());
  return call;
}

Value* locked_row(const Instruction& instruction) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  const Function* called = call ? call->getCalledFunction() : nullptr;
  return called && called->getName().starts_with(kPrefix) ? call->getArgOperand(kRow) : nullptr;
}

}  // namespace kiln
