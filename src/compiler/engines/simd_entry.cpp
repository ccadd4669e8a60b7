#include "compiler/engines/simd_entry.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "compiler/engines/engine_support.h"
#include "compiler/ir/likely.h"
#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {

using namespace llvm;

namespace {

// Of a threadgroup.
constexpr unsigned kMostSimdgroups = 32;

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
    if (field == kThreadsPerThreadgroup) value = form.width();
    if (field == kThreadsPerThreadgroup + 1) value = form.simdgroups * kLanes / form.width();
    if (field == kThreadsPerThreadgroup + 2) value = 1;
    if (!value) continue;
    load->replaceAllUsesWith(ConstantInt::get(load->getType(), *value));
    load->eraseFromParent();
  }
  return full;
}

void lower_positions(Function& group, const LaunchForm& form, bool has_convergence_points, bool is_signed) {
  const bool rows_are_simdgroups = form.rows_are_simdgroups,
             in_pairs = form.rows_are_simdgroup_pairs && !has_convergence_points;
  const unsigned simdgroups = has_convergence_points ? form.simdgroups : 0;
  Value *record = group.getArg(kCpuRecord),
        *x = group.getArg(has_convergence_points ? unsigned{kCpuX} : unsigned{kRowX});
  Function& lane = lane_function(*group.getParent());
  lane.setSpeculatable();
  lane.addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, kLanes)));
  for (Instruction& instruction : make_early_inc_range(instructions(group))) {
    const std::optional<uint64_t> value_number = thread_value(&instruction);
    if (!value_number) continue;
    auto* call = cast<CallInst>(&instruction);
    IRBuilder<> builder(call);
    const uint64_t which = *value_number;
    auto recorded = [&](uint64_t value) {
      LoadInst* load = builder.CreateLoad(
          builder.getInt32Ty(),
          builder.CreateInBoundsGEP(builder.getInt32Ty(), record, builder.getInt32(static_cast<uint32_t>(value))));
      load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load->getContext(), {}));
      return load;
    };
    auto in_record = [&] { return recorded(which); };
    // What is known to be a multiple of 32 lets the optimiser divide the simdgroup's place from the lane's: x / 64 is
    // the same in all lanes then. Where it must be less than a known number of threads, comparisons with lengths fall
    // away.
    auto multiple = [&](Value* number, unsigned of = kLanes) {
      return builder.CreateAnd(number, builder.getInt32(~(of - 1)));
    };
    auto place = [&](Value* number) {
      const unsigned most = simdgroups ? simdgroups : has_convergence_points && is_signed ? kMostSimdgroups : 0;
      return most ? builder.CreateAnd(number, builder.getInt32((most - 1) * kLanes)) : multiple(number);
    };
    auto index_in_simdgroups = [&] {
      return builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, place(recorded(kIndexInThreadgroup)),
                                                           builder.CreateCall(&lane)));
    };
    // Exact for a threadgroup's at most 1024 threads: what is rounded is at least 1/2048 away from a whole number.
    // Vectors have no division of integers.
    auto quotient = [&](Value* number, Value* divisor) {
      Type* real = builder.getFloatTy();
      Value* middle = builder.CreateFAdd(builder.CreateUIToFP(number, real), ConstantFP::get(real, 0.5));
      Value* inverse = builder.CreateFDiv(ConstantFP::get(real, 1), builder.CreateUIToFP(divisor, real));
      return builder.CreateFPToUI(builder.CreateFMul(middle, inverse), builder.getInt32Ty());
    };
    auto remainder = [&](Value* number, Value* divisor) {
      return builder.CreateSub(number, builder.CreateMul(quotient(number, divisor), divisor));
    };
    // Rows of so many threads: a simdgroup's first one is that of a row, and its rows are of one plane. The number of
    // that row is a multiple of the simdgroup's number of rows, as is the plane's.
    const bool is_recorded = rows_are_simdgroups && simdgroups == 0;  // each simdgroup's row
    const unsigned row_threads = has_convergence_points && !is_recorded ? form.row_threads : 0,
                   rows = kLanes / std::clamp(row_threads, 1U, kLanes);
    auto first_row = [&] {
      return builder.CreateUDiv(place(recorded(kIndexInThreadgroup)), builder.getInt32(row_threads));
    };
    auto row_of_lane = [&] { return builder.CreateUDiv(builder.CreateCall(&lane), builder.getInt32(row_threads)); };
    // Each value of a thread that is not in the record of a simdgroup.
    static_assert(numbers_of(ThreadValueScope::kThread) == 4, "compute each value of a thread from its lane");
    Value* value;
    if (has_convergence_points && which == kIndexInThreadgroup)
      value = index_in_simdgroups();
    else if (row_threads > kLanes && which == kPositionInThreadgroup)
      // Rows of several simdgroups.
      value = builder.Insert(BinaryOperator::CreateDisjoint(
          Instruction::Or,
          builder.CreateAnd(place(recorded(kIndexInThreadgroup)), builder.getInt32(row_threads - kLanes)),
          builder.CreateCall(&lane)));
    else if (row_threads > kLanes && which == kPositionInThreadgroup + 1)
      value = first_row();
    else if (row_threads && which == kPositionInThreadgroup)
      value = builder.CreateAnd(builder.CreateCall(&lane), builder.getInt32(row_threads - 1));
    else if (row_threads && which == kPositionInThreadgroup + 1) {
      Value* first = simdgroups ? first_row() : builder.CreateURem(first_row(), recorded(kThreadsPerThreadgroup + 1));
      value = builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, multiple(first, rows), row_of_lane()));
    } else if (row_threads && which == kPositionInThreadgroup + 2)
      value = simdgroups ? static_cast<Value*>(builder.getInt32(0))
                         : builder.CreateUDiv(first_row(), recorded(kThreadsPerThreadgroup + 1));
    else if (row_threads && (which == kThreadsPerThreadgroup || which == kFullThreadsPerThreadgroup))
      value = builder.getInt32(row_threads);
    else if (simdgroups && (which == kPositionInThreadgroup + 1 || which == kPositionInThreadgroup + 2))
      value = builder.getInt32(0);
    else if (has_convergence_points && !rows_are_simdgroups && which == kPositionInThreadgroup)
      value = remainder(index_in_simdgroups(), recorded(kThreadsPerThreadgroup));
    else if (has_convergence_points && !rows_are_simdgroups && which == kPositionInThreadgroup + 1)
      value = remainder(quotient(index_in_simdgroups(), recorded(kThreadsPerThreadgroup)),
                        recorded(kThreadsPerThreadgroup + 1));
    else if (has_convergence_points && !rows_are_simdgroups && which == kPositionInThreadgroup + 2)
      value = quotient(quotient(index_in_simdgroups(), recorded(kThreadsPerThreadgroup)),
                       recorded(kThreadsPerThreadgroup + 1));
    else if (which == kPositionInThreadgroup)
      value = builder.Insert(BinaryOperator::CreateDisjoint(Instruction::Or, place(x), builder.CreateCall(&lane)));
    else if (which == kPositionInThreadgroup + 1 && !has_convergence_points)
      value = builder.CreateAdd(in_record(), group.getArg(kRowOfCall));
    else if (which == kIndexInThreadgroup) {
      Value* index = builder.CreateAdd(in_record(), x);
      if (!has_convergence_points)
        index = builder.CreateAdd(index, builder.CreateMul(group.getArg(kRowOfCall), recorded(kThreadsPerThreadgroup)));
      value = builder.CreateAdd(index, builder.CreateCall(&lane));
    } else if (which == kFullThreadsPerThreadgroup && rows_are_simdgroups)
      value = multiple(in_record(), in_pairs ? kCoarsenedThreads : kLanes);
    else
      value = in_record();
    call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
}

}  // namespace kiln
