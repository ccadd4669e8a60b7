#include "compiler/lowering/small_floats.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace kiln {
namespace {

using namespace llvm;

bool is_bfloat(const Type* type) { return type->getScalarType()->isBFloatTy(); }

// The type with the same number of lanes and another scalar.
Type* with_scalar(Type* type, Type* scalar) {
  if (auto* vector = dyn_cast<VectorType>(type)) return VectorType::get(scalar, vector->getElementCount());
  return scalar;
}

class Expander {
 public:
  explicit Expander(Instruction& instruction) : builder_(&instruction), instruction_(instruction) {
    if (isa<FPMathOperator>(instruction)) builder_.setFastMathFlags(instruction.getFastMathFlags());
  }

  // The instruction's result without bfloat arithmetic; null if there is nothing to expand.
  Value* expand() {
    Type* type = instruction_.getType();
    switch (instruction_.getOpcode()) {
      case Instruction::FAdd:
      case Instruction::FSub:
      case Instruction::FMul:
      case Instruction::FDiv:
      case Instruction::FRem:
        if (!is_bfloat(type)) return nullptr;
        return narrow(builder_.CreateBinOp(cast<BinaryOperator>(instruction_).getOpcode(),
                                           widen(instruction_.getOperand(0)), widen(instruction_.getOperand(1))));
      case Instruction::FNeg:
        if (!is_bfloat(type)) return nullptr;
        return from_bits(builder_.CreateXor(bits(instruction_.getOperand(0)), int16(type, 0x8000)));
      case Instruction::FCmp:
        if (!is_bfloat(instruction_.getOperand(0)->getType())) return nullptr;
        return builder_.CreateFCmp(cast<FCmpInst>(instruction_).getPredicate(), widen(instruction_.getOperand(0)),
                                   widen(instruction_.getOperand(1)));
      case Instruction::FPTrunc:
        if (!is_bfloat(type)) return nullptr;
        return narrow(odd_float(instruction_.getOperand(0)));
      case Instruction::FPExt: {
        if (!is_bfloat(instruction_.getOperand(0)->getType())) return nullptr;
        Value* wide = widen(instruction_.getOperand(0));
        return wide->getType() == type ? wide : builder_.CreateFPExt(wide, type);
      }
      case Instruction::FPToSI: return convert_from(Instruction::FPToSI);
      case Instruction::FPToUI: return convert_from(Instruction::FPToUI);
      case Instruction::SIToFP: return convert_to(/*is_signed=*/true);
      case Instruction::UIToFP: return convert_to(/*is_signed=*/false);
      case Instruction::Call: return expand_intrinsic();
      default: return nullptr;
    }
  }

 private:
  Value* int16(Type* like, uint16_t value) { return ConstantInt::get(with_scalar(like, builder_.getInt16Ty()), value); }
  Value* int32(Type* like, uint32_t value) { return ConstantInt::get(with_scalar(like, builder_.getInt32Ty()), value); }
  Value* bits(Value* bfloat) {
    return builder_.CreateBitCast(bfloat, with_scalar(bfloat->getType(), builder_.getInt16Ty()));
  }
  Value* from_bits(Value* bits) {
    return builder_.CreateBitCast(bits, with_scalar(bits->getType(), builder_.getBFloatTy()));
  }

  // Exact.
  Value* widen(Value* bfloat) {
    Type* wide = with_scalar(bfloat->getType(), builder_.getInt32Ty());
    Value* shifted = builder_.CreateShl(builder_.CreateZExt(bits(bfloat), wide), ConstantInt::get(wide, 16));
    return builder_.CreateBitCast(shifted, with_scalar(bfloat->getType(), builder_.getFloatTy()));
  }

  // Rounds a float to nearest, ties to even; a NaN stays one and becomes quiet.
  Value* narrow(Value* value) {
    Type* type = value->getType();
    Value* word = builder_.CreateBitCast(value, with_scalar(type, builder_.getInt32Ty()));
    Value* is_odd = builder_.CreateAnd(builder_.CreateLShr(word, int32(type, 16)), int32(type, 1));
    Value* rounded = builder_.CreateAdd(word, builder_.CreateAdd(is_odd, int32(type, 0x7fff)));
    Value* quiet = builder_.CreateOr(word, int32(type, 0x400000));
    IRBuilder<>::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();
    Value* chosen = builder_.CreateSelect(builder_.CreateFCmpUNO(value, value), quiet, rounded);
    Value* high = builder_.CreateLShr(chosen, int32(type, 16));
    return from_bits(builder_.CreateTrunc(high, with_scalar(type, builder_.getInt16Ty())));
  }

  // `value` as a float; if it does not fit, the odd one of its two neighbours (round to odd), so that rounding again to
  // fewer bits gives the result of a single rounding.
  Value* odd_float(Value* value) {
    Type* type = value->getType();
    Type* float_type = with_scalar(type, builder_.getFloatTy());
    if (type == float_type) return value;
    if (type->getScalarType()->isHalfTy()) return builder_.CreateFPExt(value, float_type);
    Value* nearest = builder_.CreateFPTrunc(value, float_type);
    Value* back = builder_.CreateFPExt(nearest, type);
    auto magnitude = [&](Value* x) { return builder_.CreateUnaryIntrinsic(Intrinsic::fabs, x); };
    return make_odd(nearest, builder_.CreateFCmpONE(back, value),
                    builder_.CreateFCmpOGT(magnitude(back), magnitude(value)));
  }

  Value* make_odd(Value* nearest, Value* is_inexact, Value* is_too_large) {
    Type* type = nearest->getType();
    Value* word = builder_.CreateBitCast(nearest, with_scalar(type, builder_.getInt32Ty()));
    Value* is_even = builder_.CreateICmpEQ(builder_.CreateAnd(word, int32(type, 1)), int32(type, 0));
    Value* step = builder_.CreateSelect(is_too_large, int32(type, ~0u), int32(type, 1));
    Value* moved = builder_.CreateSelect(builder_.CreateAnd(is_inexact, is_even), builder_.CreateAdd(word, step), word);
    return builder_.CreateBitCast(moved, type);
  }

  Value* convert_from(Instruction::CastOps operation) {
    if (!is_bfloat(instruction_.getOperand(0)->getType())) return nullptr;
    return builder_.CreateCast(operation, widen(instruction_.getOperand(0)), instruction_.getType());
  }

  // Converts an integer through the odd float next to it.
  Value* convert_to(bool is_signed) {
    Type* type = instruction_.getType();
    if (!is_bfloat(type)) return nullptr;
    Value* integer = instruction_.getOperand(0);
    Type* float_type = with_scalar(type, builder_.getFloatTy());
    Value* nearest =
        is_signed ? builder_.CreateSIToFP(integer, float_type) : builder_.CreateUIToFP(integer, float_type);
    if (integer->getType()->getScalarSizeInBits() < 24) return narrow(nearest);
    Intrinsic::ID back_to = is_signed ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
    Value* back = builder_.CreateIntrinsic(back_to, {integer->getType(), float_type}, {nearest});
    Value* zero = Constant::getNullValue(integer->getType());
    Value* above = is_signed ? builder_.CreateICmpSGT(back, integer) : builder_.CreateICmpUGT(back, integer);
    Value* below = is_signed ? builder_.CreateICmpSLT(back, integer) : builder_.CreateICmpULT(back, integer);
    Value* is_too_large = above;
    if (is_signed) is_too_large = builder_.CreateSelect(builder_.CreateICmpSLT(integer, zero), below, above);
    return narrow(make_odd(nearest, builder_.CreateOr(above, below), is_too_large));
  }

  Value* expand_intrinsic() {
    auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction_);
    if (!intrinsic) return nullptr;
    Intrinsic::ID id = intrinsic->getIntrinsicID();
    Type* type = intrinsic->getType();
    if ((id == Intrinsic::fptosi_sat || id == Intrinsic::fptoui_sat) &&
        is_bfloat(intrinsic->getArgOperand(0)->getType())) {
      Value* wide = widen(intrinsic->getArgOperand(0));
      return builder_.CreateIntrinsic(id, {type, wide->getType()}, {wide});
    }
    if (!is_bfloat(type)) return nullptr;
    if (id == Intrinsic::fabs)
      return from_bits(builder_.CreateAnd(bits(intrinsic->getArgOperand(0)), int16(type, 0x7fff)));
    if (id == Intrinsic::copysign)
      return from_bits(builder_.CreateOr(builder_.CreateAnd(bits(intrinsic->getArgOperand(0)), int16(type, 0x7fff)),
                                         builder_.CreateAnd(bits(intrinsic->getArgOperand(1)), int16(type, 0x8000))));
    if (id == Intrinsic::fmuladd || id == Intrinsic::fma) {
      Value* wide[3];
      for (unsigned i = 0; i < 3; ++i) wide[i] = widen(intrinsic->getArgOperand(i));
      return narrow(builder_.CreateIntrinsic(Intrinsic::fma, {wide[0]->getType()}, {wide[0], wide[1], wide[2]}));
    }
    if (!rounds_through_float(id)) return nullptr;
    SmallVector<Value*> wide;
    for (Value* argument : intrinsic->args()) wide.push_back(widen(argument));
    return narrow(builder_.CreateIntrinsic(id, {wide[0]->getType()}, wide));
  }

  // Functions whose result in float, rounded to bfloat, is the result in bfloat.
  static bool rounds_through_float(Intrinsic::ID id) {
    switch (id) {
      case Intrinsic::sqrt:
      case Intrinsic::minnum:
      case Intrinsic::maxnum:
      case Intrinsic::minimum:
      case Intrinsic::maximum:
      case Intrinsic::floor:
      case Intrinsic::ceil:
      case Intrinsic::trunc:
      case Intrinsic::rint:
      case Intrinsic::nearbyint:
      case Intrinsic::round:
      case Intrinsic::roundeven:
      case Intrinsic::canonicalize: return true;
      default: return false;
    }
  }

  IRBuilder<> builder_;
  Instruction& instruction_;
};

// Replaces operations that only move the bits of bfloats by integer operations.
class Mover {
 public:
  explicit Mover(Instruction& instruction) : builder_(&instruction), instruction_(instruction) {}

  // The replacement of the instruction, of its type; null if there is none.
  Value* move() {
    Type* type = instruction_.getType();
    if (auto* store = dyn_cast<StoreInst>(&instruction_)) {
      if (!is_bfloat(store->getValueOperand()->getType())) return nullptr;
      auto* moved =
          builder_.CreateAlignedStore(bits(0), store->getPointerOperand(), store->getAlign(), store->isVolatile());
      moved->copyMetadata(*store);
      if (store->isAtomic()) moved->setAtomic(store->getOrdering(), store->getSyncScopeID());
      return moved;
    }
    if (isa<BitCastInst>(instruction_) && is_bfloat(instruction_.getOperand(0)->getType()) && !is_bfloat(type))
      return builder_.CreateBitCast(bits(0), type);
    if (!is_bfloat(type)) return nullptr;
    Value* moved = move_bits(integer_of(type));
    if (!moved) return nullptr;
    // Phis precede all other instructions of their block.
    if (isa<PHINode>(moved)) builder_.SetInsertPoint(&*instruction_.getParent()->getFirstInsertionPt());
    return builder_.CreateBitCast(moved, type);
  }

 private:
  Type* integer_of(Type* type) { return with_scalar(type, builder_.getInt16Ty()); }
  Value* bits_of(Value* value) { return builder_.CreateBitCast(value, integer_of(value->getType())); }
  Value* bits(unsigned operand) { return bits_of(instruction_.getOperand(operand)); }

  Value* move_bits(Type* type) {
    switch (instruction_.getOpcode()) {
      case Instruction::Load: {
        auto& load = cast<LoadInst>(instruction_);
        auto* moved = builder_.CreateAlignedLoad(type, load.getPointerOperand(), load.getAlign(), load.isVolatile());
        moved->copyMetadata(load);
        if (load.isAtomic()) moved->setAtomic(load.getOrdering(), load.getSyncScopeID());
        return moved;
      }
      case Instruction::PHI: {
        auto& phi = cast<PHINode>(instruction_);
        PHINode* moved = builder_.CreatePHI(type, phi.getNumIncomingValues());
        // Several edges from one block, as of a switch, have the same value.
        SmallDenseMap<BasicBlock*, Value*> values;
        for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
          BasicBlock* block = phi.getIncomingBlock(i);
          builder_.SetInsertPoint(block->getTerminator());
          Value*& value = values[block];
          if (!value) value = bits(i);
          moved->addIncoming(value, block);
        }
        return moved;
      }
      case Instruction::Select: return builder_.CreateSelect(instruction_.getOperand(0), bits(1), bits(2));
      case Instruction::Freeze: return builder_.CreateFreeze(bits(0));
      case Instruction::ExtractElement: return builder_.CreateExtractElement(bits(0), instruction_.getOperand(1));
      case Instruction::InsertElement:
        return builder_.CreateInsertElement(bits(0), bits(1), instruction_.getOperand(2));
      case Instruction::ShuffleVector:
        return builder_.CreateShuffleVector(bits(0), bits(1), cast<ShuffleVectorInst>(instruction_).getShuffleMask());
      default: return nullptr;
    }
  }

  IRBuilder<> builder_;
  Instruction& instruction_;
};

// Folds a cast to bfloat and from there to another type into one cast.
void fold_casts(Function& function) {
  SmallVector<Instruction*> casts;
  for (Instruction& instruction : instructions(function))
    if (isa<BitCastInst>(instruction) && is_bfloat(instruction.getType())) casts.push_back(&instruction);
  for (Instruction* cast : casts) {
    Value* source = cast->getOperand(0);
    for (User* user : make_early_inc_range(cast->users()))
      if (auto* back = dyn_cast<BitCastInst>(user); back && !is_bfloat(back->getType())) {
        back->replaceAllUsesWith(IRBuilder<>(back).CreateBitCast(source, back->getType()));
        back->eraseFromParent();
      }
    if (cast->use_empty()) cast->eraseFromParent();
  }
}

}  // namespace

void expand_bfloat(Module& module) {
  for (Function& function : module)
    for (Instruction& instruction : make_early_inc_range(instructions(function)))
      if (Value* expanded = Expander(instruction).expand()) {
        instruction.replaceAllUsesWith(expanded);
        instruction.eraseFromParent();
      }
}

void remove_bfloat(Function& function) {
  SmallVector<Instruction*> all;
  for (Instruction& instruction : instructions(function)) all.push_back(&instruction);
  for (Instruction* instruction : all)
    if (Value* moved = Mover(*instruction).move()) {
      if (!instruction->getType()->isVoidTy()) instruction->replaceAllUsesWith(moved);
      instruction->eraseFromParent();
    }
  fold_casts(function);
}

void remove_bfloat(Module& module) {
  expand_bfloat(module);
  for (Function& function : module) remove_bfloat(function);
}

void select_halves_as_integers(Module& module) {
  SmallVector<SelectInst*> choices;
  for (Function& function : module)
    for (Instruction& instruction : instructions(function))
      if (auto* choice = dyn_cast<SelectInst>(&instruction))
        if (choice->getType()->getScalarType()->isHalfTy() && isa<FCmpInst>(choice->getCondition()))
          choices.push_back(choice);
  for (SelectInst* choice : choices) {
    IRBuilder<> builder(choice);
    Type* bits = with_scalar(choice->getType(), builder.getInt16Ty());
    Value* chosen = builder.CreateSelect(choice->getCondition(), builder.CreateBitCast(choice->getTrueValue(), bits),
                                         builder.CreateBitCast(choice->getFalseValue(), bits));
    choice->replaceAllUsesWith(builder.CreateBitCast(chosen, choice->getType()));
    choice->eraseFromParent();
  }
}

// Functions that LLVM's code generator computes lane by lane, as floats, for a vector of halves. It converts what it
// adds and multiplies as vectors. A result is a half as it is, or is rounded twice, which for a square root gives what
// is rounded once.
static bool is_scalarized(const IntrinsicInst& call) {
  switch (call.getIntrinsicID()) {
    case Intrinsic::trunc:
    case Intrinsic::floor:
    case Intrinsic::ceil:
    case Intrinsic::rint:
    case Intrinsic::nearbyint:
    case Intrinsic::round:
    case Intrinsic::roundeven:
    case Intrinsic::sqrt:
    case Intrinsic::minnum:
    case Intrinsic::maxnum:
    case Intrinsic::minimum:
    case Intrinsic::maximum: return true;
    default: return false;
  }
}

void compute_halves_as_floats(Module& module) {
  auto are_halves = [](const Value* value) {
    return value->getType()->isVectorTy() && value->getType()->getScalarType()->isHalfTy();
  };
  for (Function& function : module)
    for (Instruction& instruction : make_early_inc_range(instructions(function))) {
      if (instruction.getNumOperands() == 0 || !are_halves(instruction.getOperand(0))) continue;
      IRBuilder<> builder(&instruction);
      auto as_floats = [&](Value* value) {
        return builder.CreateFPExt(value, with_scalar(value->getType(), builder.getFloatTy()));
      };
      if (auto* comparison = dyn_cast<FCmpInst>(&instruction)) {
        for (Use& operand : comparison->operands()) operand.set(as_floats(operand.get()));
      } else if (auto* call = dyn_cast<IntrinsicInst>(&instruction); call && is_scalarized(*call)) {
        builder.setFastMathFlags(call->getFastMathFlags());
        SmallVector<Value*> arguments;
        for (Value* argument : call->args()) arguments.push_back(as_floats(argument));
        Value* result = builder.CreateIntrinsic(call->getIntrinsicID(), {arguments[0]->getType()}, arguments);
        call->replaceAllUsesWith(builder.CreateFPTrunc(result, call->getType()));
        call->eraseFromParent();
      } else if (isa<FPToSIInst, FPToUIInst>(instruction) && instruction.getType()->getScalarSizeInBits() < 32) {
        // What does not fit is poison, and what fits is the same as a signed word.
        Value* word =
            builder.CreateFPToSI(instruction.getOperand(0), with_scalar(instruction.getType(), builder.getInt32Ty()));
        instruction.replaceAllUsesWith(builder.CreateTrunc(word, instruction.getType()));
        instruction.eraseFromParent();
      }
    }
}

}  // namespace kiln
