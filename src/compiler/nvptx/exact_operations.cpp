#include "compiler/nvptx/exact_operations.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln {
namespace {

using namespace llvm;

// cvt.rzi gives the nearest value that fits, and 0 for a NaN where the integer has 32 bits.
Value* convert(IntrinsicInst& conversion, bool is_signed) {
  IRBuilder<> builder(&conversion);
  Type* type = conversion.getType();
  Value* value = conversion.getArgOperand(0);
  if (value->getType()->isHalfTy()) value = builder.CreateFPExt(value, builder.getFloatTy());
  if (!value->getType()->isFloatTy() || !type->isIntegerTy()) return nullptr;
  unsigned width = type->getIntegerBitWidth();
  if (width == 64) {
    Intrinsic::ID id = is_signed ? Intrinsic::nvvm_f2ll_rz : Intrinsic::nvvm_f2ull_rz;
    Value* whole = builder.CreateIntrinsic(id, {}, {value});
    return builder.CreateSelect(builder.CreateFCmpUNO(value, value), builder.getInt64(0), whole);
  }
  if (width > 32) return nullptr;
  Value* whole = builder.CreateIntrinsic(is_signed ? Intrinsic::nvvm_f2i_rz : Intrinsic::nvvm_f2ui_rz, {}, {value});
  if (width == 32) return whole;
  auto limit = [&](const APInt& number) { return builder.getInt(is_signed ? number.sext(32) : number.zext(32)); };
  if (is_signed) {
    whole = builder.CreateBinaryIntrinsic(Intrinsic::smin, whole, limit(APInt::getSignedMaxValue(width)));
    whole = builder.CreateBinaryIntrinsic(Intrinsic::smax, whole, limit(APInt::getSignedMinValue(width)));
  } else {
    whole = builder.CreateBinaryIntrinsic(Intrinsic::umin, whole, limit(APInt::getMaxValue(width)));
  }
  return builder.CreateTrunc(whole, type);
}

// Within 2 units in the last place; in fast mode for divisors up to 2^126. The device library's divisions lack the
// flag.
void approximate_division(BinaryOperator& division, MathMode mode) {
  if (!division.getType()->isFloatTy() || !division.hasApproxFunc()) return;
  IRBuilder<> builder(&division);
  Type* type = division.getType();
  if (PatternMatch::match(division.getOperand(0), PatternMatch::m_FPOne())) {
    division.replaceAllUsesWith(
        builder.CreateIntrinsic(Intrinsic::nvvm_rcp_approx_ftz_f, {}, {division.getOperand(1)}));
    division.eraseFromParent();
    return;
  }
  const char* text = mode == MathMode::kFast ? "div.approx.ftz.f32 $0, $1, $2;" : "div.full.ftz.f32 $0, $1, $2;";
  CallInst* call = builder.CreateCall(
      InlineAsm::get(FunctionType::get(type, {type, type}, false), text, "=f,f,f", /*hasSideEffects=*/false),
      {division.getOperand(0), division.getOperand(1)});
  call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  division.replaceAllUsesWith(call);
  division.eraseFromParent();
}

void approximate_root(IntrinsicInst& root) {
  if (!root.getType()->isFloatTy() || !root.hasApproxFunc()) return;
  root.setCalledFunction(Intrinsic::getDeclaration(root.getModule(), Intrinsic::nvvm_sqrt_approx_ftz_f));
}

// membar.gl is a fence of the whole GPU, sequentially consistent.
void fence_before(Instruction& instruction) {
  IRBuilder<>(&instruction).CreateIntrinsic(Intrinsic::nvvm_membar_gl, {}, {});
}

void relax(Instruction& instruction, AtomicOrdering order) {
  if (isReleaseOrStronger(order)) fence_before(instruction);
  if (isAcquireOrStronger(order)) fence_before(*instruction.getNextNode());
}

}  // namespace

void drop_volatile_atomics(Function& function) {
  for (Instruction& instruction : instructions(function)) {
    if (!instruction.isAtomic()) continue;
    if (auto* update = dyn_cast<AtomicRMWInst>(&instruction)) update->setVolatile(false);
    if (auto* compare_exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) compare_exchange->setVolatile(false);
    if (auto* load = dyn_cast<LoadInst>(&instruction)) load->setVolatile(false);
    if (auto* store = dyn_cast<StoreInst>(&instruction)) store->setVolatile(false);
  }
}

void use_hardware_operations(Function& function, MathMode mode) {
  for (Instruction& instruction : make_early_inc_range(instructions(function))) {
    if (auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction)) {
      if (mode != MathMode::kSafe && intrinsic->getIntrinsicID() == Intrinsic::sqrt) approximate_root(*intrinsic);
      bool is_signed = intrinsic->getIntrinsicID() == Intrinsic::fptosi_sat;
      if (!is_signed && intrinsic->getIntrinsicID() != Intrinsic::fptoui_sat) continue;
      if (Value* whole = convert(*intrinsic, is_signed)) {
        intrinsic->replaceAllUsesWith(whole);
        intrinsic->eraseFromParent();
      }
    } else if (mode != MathMode::kSafe && instruction.getOpcode() == Instruction::FDiv) {
      approximate_division(cast<BinaryOperator>(instruction), mode);
    } else if (auto* update = dyn_cast<AtomicRMWInst>(&instruction)) {
      relax(*update, update->getOrdering());
      update->setOrdering(AtomicOrdering::Monotonic);
      if (update->getOperation() != AtomicRMWInst::FSub) continue;
      update->setOperation(AtomicRMWInst::FAdd);  // PTX has no atomic subtraction
      update->setOperand(1, IRBuilder<>(update).CreateFNeg(update->getValOperand()));
    } else if (auto* compare_exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
      relax(*compare_exchange, compare_exchange->getMergedOrdering());
      compare_exchange->setSuccessOrdering(AtomicOrdering::Monotonic);
      compare_exchange->setFailureOrdering(AtomicOrdering::Monotonic);
    } else if (auto* load = dyn_cast<LoadInst>(&instruction); load && load->isAtomic()) {
      if (load->getOrdering() == AtomicOrdering::SequentiallyConsistent) fence_before(*load);
      relax(*load, load->getOrdering());
      load->setOrdering(AtomicOrdering::Monotonic);
    } else if (auto* store = dyn_cast<StoreInst>(&instruction); store && store->isAtomic()) {
      relax(*store, store->getOrdering());
      if (store->getOrdering() == AtomicOrdering::SequentiallyConsistent) fence_before(*store->getNextNode());
      store->setOrdering(AtomicOrdering::Monotonic);
    } else if (isa<FenceInst>(instruction)) {
      if (cast<FenceInst>(instruction).getSyncScopeID() == SyncScope::System) fence_before(instruction);
      instruction.eraseFromParent();
    }
  }
}

}  // namespace kiln
