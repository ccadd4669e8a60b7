#include "compiler/engines/simd_entry.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/engines/engine_support.h"
#include "compiler/ir/likely.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {

using namespace llvm;

namespace {

// Which half of its pair the simdgroup at `x` is (workgroup/thread_coarsening.h).
Value* half_at(Value* x, IRBuilder<>& builder) { return builder.CreateAnd(x, builder.getInt32(kLanes)); }

}  // namespace

Function& add_simd_row(Function& group) {
  Type *pointer = PointerType::getUnqual(group.getContext()), *number = Type::getInt32Ty(group.getContext());
  return add_function(group, kRowFunction, {pointer, pointer, number, number});
}

void run_in_groups(Function& row, Function& group, Function& part_of_group, bool in_pairs) {
  LLVMContext& context = row.getContext();
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
  BasicBlock *entry = &row.getEntryBlock(), *next = block("next"), *whole = block("whole"), *rest = block("rest"),
             *part = block("part"), *end = block("end");
  IRBuilder<> builder(entry);
  Value *count = row.getArg(2), *lanes = builder.getInt32(kLanes);
  builder.CreateBr(next);
  builder.SetInsertPoint(next);
  PHINode* x = builder.CreatePHI(builder.getInt32Ty(), 2);
  builder.CreateCondBr(builder.CreateICmpULE(builder.CreateAdd(x, lanes), count), whole, rest);
  auto call = [&](Function& function, Value* threads) {
    Value *half = in_pairs ? half_at(x, builder) : builder.getInt32(0), *first_row = builder.getInt32(0);
    builder.CreateCall(&function, {row.getArg(0), row.getArg(1), half, first_row, x, threads});
  };
  builder.SetInsertPoint(whole);
  call(group, lanes);
  x->addIncoming(builder.getInt32(0), entry);
  x->addIncoming(builder.CreateAdd(x, lanes), whole);
  builder.CreateBr(next);
  builder.SetInsertPoint(rest);
  builder.CreateCondBr(builder.CreateICmpULT(x, count), part, end);
  builder.SetInsertPoint(part);
  call(part_of_group, builder.CreateSub(count, x));
  builder.CreateBr(end);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
}

void run_with_masks(Function& row, Function& group, bool in_pairs) {
  LLVMContext& context = row.getContext();
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
  BasicBlock *entry = &row.getEntryBlock(), *next = block("next"), *some = block("some"), *end = block("end");
  IRBuilder<> builder(entry);
  Value *count = row.getArg(2), *zero = builder.getInt32(0);
  builder.CreateBr(next);
  builder.SetInsertPoint(next);
  PHINode* x = builder.CreatePHI(builder.getInt32Ty(), 2);
  builder.CreateCondBr(builder.CreateICmpULT(x, count), some, end);
  builder.SetInsertPoint(some);
  Value* threads =
      builder.CreateBinaryIntrinsic(Intrinsic::umin, builder.CreateSub(count, x), builder.getInt32(kLanes));
  Value* half = in_pairs ? half_at(x, builder) : zero;
  builder.CreateCall(&group, {row.getArg(0), row.getArg(1), half, /*row=*/zero, x, threads});
  x->addIncoming(zero, entry);
  x->addIncoming(builder.CreateAdd(x, threads), some);
  builder.CreateBr(next);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
}

void run_rows(Function& row, Function& whole, Function& group, bool in_pairs, bool takes_rows, bool whole_takes_rest) {
  LLVMContext& context = row.getContext();
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
  BasicBlock *entry = &row.getEntryBlock(), *rows = block("rows"), *first = block("first"), *full = block("full"),
             *next = block("next"), *after = block("after"), *other = block("other"), *next_row = block("next_row"),
             *end = block("end");
  IRBuilder<> builder(entry);
  Value *count = row.getArg(2), *zero = builder.getInt32(0), *lanes = builder.getInt32(kLanes);
  auto begin = [&](BasicBlock* block, unsigned values) {
    builder.SetInsertPoint(block);
    return builder.CreatePHI(builder.getInt32Ty(), values);
  };
  builder.CreateBr(rows);
  PHINode* y = begin(rows, 2);
  builder.CreateBr(first);
  auto call = [&](Function& function, Value* x, Value* threads) {
    Value *half = in_pairs ? half_at(x, builder) : zero, *row_of_call = takes_rows ? y : zero;
    return builder.CreateCall(&function, {row.getArg(0), row.getArg(1), half, row_of_call, x, threads});
  };
  auto go_on = [&](Value* x) {
    Value* left = builder.CreateSub(count, x);
    builder.CreateCondBr(whole_takes_rest ? builder.CreateIsNotNull(left) : builder.CreateICmpUGE(left, lanes), full,
                         after);
  };
  PHINode* first_x = begin(first, 2);
  go_on(first_x);
  PHINode* x = begin(full, 2);
  Value* in_full =
      whole_takes_rest ? builder.CreateBinaryIntrinsic(Intrinsic::umin, builder.CreateSub(count, x), lanes) : lanes;
  mark_likely(*builder.CreateCondBr(call(whole, x, in_full), next, after));
  builder.SetInsertPoint(next);
  Value* next_x = builder.CreateAdd(x, in_full);
  go_on(next_x);

  PHINode* rest = begin(after, 3);
  Value* left = builder.CreateSub(count, rest);
  builder.CreateCondBr(builder.CreateIsNotNull(left), other, next_row);
  builder.SetInsertPoint(other);
  Value* threads = builder.CreateBinaryIntrinsic(Intrinsic::umin, left, lanes);
  call(group, rest, threads);
  first_x->addIncoming(zero, rows);
  first_x->addIncoming(builder.CreateAdd(rest, threads), other);
  builder.CreateBr(first);
  x->addIncoming(first_x, first);
  x->addIncoming(next_x, next);
  rest->addIncoming(first_x, first);
  rest->addIncoming(x, full);
  rest->addIncoming(next_x, next);
  builder.SetInsertPoint(next_row);
  Value* next_y = builder.CreateAdd(y, builder.getInt32(1));
  y->addIncoming(zero, entry);
  if (takes_rows) {
    y->addIncoming(next_y, next_row);
    builder.CreateCondBr(builder.CreateICmpULT(next_y, row.getArg(3)), rows, end);
  } else {
    builder.CreateBr(end);
  }
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
}

void read_launch_first(Function& row) {
  BasicBlock& entry = row.getEntryBlock();
  auto base_of = [](LoadInst& load, APInt& offset) -> Value* {
    return load.getPointerOperand()->stripAndAccumulateConstantOffsets(load.getDataLayout(), offset, true);
  };
  auto is_there = [&](Value* base) {
    if (base == row.getArg(0) || base == row.getArg(1)) return true;
    auto* arguments = dyn_cast<LoadInst>(base);
    APInt offset(64, 0);
    return arguments && arguments->getParent() == &entry && base_of(*arguments, offset) == row.getArg(0) &&
           offset == offsetof(CpuLaunch, arguments);
  };
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&row))
    for (Instruction& instruction : make_early_inc_range(*block)) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || block == &entry || !load->hasMetadata(LLVMContext::MD_invariant_load)) continue;
      APInt offset(64, 0);
      Value* base = base_of(*load, offset);
      if (!is_there(base)) continue;
      IRBuilder<> builder(entry.getTerminator());
      load->setOperand(0, builder.CreatePtrAdd(base, builder.getInt(offset)));
      load->moveBefore(entry.getTerminator());
    }
}

void put_on_stack(GlobalVariable& variable, Function* threadgroup) {
  if (threadgroup) {
    convertUsersOfConstantsToInstructions({&variable});
    IRBuilder<> builder(&*threadgroup->getEntryBlock().begin());
    AllocaInst* place = builder.CreateAlloca(variable.getValueType());
    place->setAlignment(variable.getAlign().valueOrOne());
    variable.replaceAllUsesWith(place);
  }
  variable.removeDeadConstantUsers();
  variable.eraseFromParent();
}

void run_coarsened(Function& row, Function& full, Function& group) {
  LLVMContext& context = row.getContext();
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
  BasicBlock *entry = &row.getEntryBlock(), *pairs = block("pairs"), *halves = block("halves"), *next = block("next"),
             *rest = block("rest"), *masked = block("masked"), *end = block("end");
  IRBuilder<> builder(entry);
  Value* count = row.getArg(2);
  auto number = [&](unsigned value) { return builder.getInt32(value); };
  auto call = [&](Function& function, Value* half, Value* x, Value* lanes) {
    builder.CreateCall(&function, {row.getArg(0), row.getArg(1), half, /*row=*/number(0), x, lanes});
  };
  Value* whole = builder.CreateAnd(count, number(~(kLanes - 1)));
  builder.CreateCondBr(builder.CreateICmpNE(whole, number(0)), pairs, rest);

  builder.SetInsertPoint(pairs);
  PHINode* x = builder.CreatePHI(builder.getInt32Ty(), 2);
  Value* left = builder.CreateSub(whole, x);
  // From this one bit LLVM knows that there are one or two halves.
  Value* last_half =
      builder.CreateSelect(builder.CreateICmpULT(left, number(kCoarsenedThreads)), number(0), number(kLanes));
  builder.CreateBr(halves);
  builder.SetInsertPoint(halves);
  PHINode* half = builder.CreatePHI(builder.getInt32Ty(), 2);
  call(full, half, x, number(kLanes));
  Value* next_half = builder.CreateAdd(half, number(kLanes));
  BranchInst* back_edge = builder.CreateCondBr(builder.CreateICmpNE(half, last_half), halves, next);
  half->addIncoming(number(0), pairs);
  half->addIncoming(next_half, halves);
  // Twice the code would be twice as long to compile.
  never_unroll(*back_edge);
  builder.SetInsertPoint(next);
  Value* next_x = builder.CreateAdd(x, number(kCoarsenedThreads));
  builder.CreateCondBr(builder.CreateICmpULT(next_x, whole), pairs, rest);
  x->addIncoming(number(0), entry);
  x->addIncoming(next_x, next);

  builder.SetInsertPoint(rest);
  builder.CreateCondBr(builder.CreateICmpNE(whole, count), masked, end);
  builder.SetInsertPoint(masked);
  call(group, builder.CreateAnd(whole, number(kLanes)), whole, builder.CreateSub(count, whole));
  builder.CreateBr(end);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
}

Function* full_simdgroup(Function& group, const LaunchForm& form) {
  ValueToValueMapTy map;
  Function* full = CloneFunction(&group, map);
  Argument* lanes = full->getArg(full->arg_size() - 1);
  lanes->replaceAllUsesWith(ConstantInt::get(lanes->getType(), kLanes));
  if (form.simdgroups == 0) return full;
  for (Instruction& instruction : make_early_inc_range(instructions(*full))) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->getType()->isIntegerTy(32)) continue;
    APInt offset(64, 0);
    Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(load->getDataLayout(), offset, true);
    if (base != full->getArg(1)) continue;
    uint64_t field = offset.getZExtValue() / sizeof(uint32_t);
    std::optional<uint32_t> value;
    // Of a rectangle's threads the positions follow from the index (lower_positions).
    if (!form.row_threads && (field == kPositionInThreadgroup + 1 || field == kPositionInThreadgroup + 2)) value = 0;
    if (field >= kThreadsPerThreadgroup && field <= kThreadsPerThreadgroupLast)
      value = form.full_threads()[field - kThreadsPerThreadgroup];
    if (!value) continue;
    load->replaceAllUsesWith(ConstantInt::get(load->getType(), *value));
    load->eraseFromParent();
  }
  return full;
}

}  // namespace kiln
