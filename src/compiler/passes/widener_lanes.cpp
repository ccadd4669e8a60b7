#include <map>

#include "compiler/passes/widener.h"

namespace kiln::widening {

// Runs the instruction for each lane of the mask, in a loop. Its operands and results are in memory there.
void Widener::each_lane(Instruction& instruction, IRBuilder<>& builder) {
  Type* type = instruction.getType();
  auto* pair = dyn_cast<StructType>(type);  // cmpxchg
  if (pair) check_pair(instruction);
  IRBuilder<> variables(allocas_);
  std::map<unsigned, Value*> places;
  for (unsigned i = 0; i < instruction.getNumOperands(); ++i) {
    Value* operand = instruction.getOperand(i);
    if (!differs(operand)) continue;
    Value* lanes = vector(operand, builder);
    if (lanes->getType()->getScalarType()->isIntegerTy(1))
      lanes = builder.CreateZExt(lanes, vector_of(builder.getInt8Ty()));
    Value* place = variables.CreateAlloca(lanes->getType());
    builder.CreateStore(lanes, place);
    places[i] = place;
  }
  Type* element = pair ? pair->getElementType(0) : type;
  bool is_flag = element->isIntegerTy(1);
  Type* stored = is_flag ? builder.getInt8Ty() : element;
  Value *results = nullptr, *flags = nullptr;
  if (!type->isVoidTy()) {
    results = variables.CreateAlloca(vector_of(stored));
    builder.CreateStore(Constant::getNullValue(vector_of(stored)), results);
  }
  if (pair) {
    flags = variables.CreateAlloca(vector_of(builder.getInt8Ty()));
    builder.CreateStore(Constant::getNullValue(vector_of(builder.getInt8Ty())), flags);
  }
  BasicBlock* before = builder.GetInsertBlock();
  BasicBlock* body = BasicBlock::Create(context_, "lane", &to_);
  BasicBlock* after = BasicBlock::Create(context_, "lanes.end", &to_);
  body->moveAfter(before);
  after->moveAfter(body);
  Value* bits = builder.CreateBitCast(mask_, builder.getInt32Ty());
  builder.CreateCondBr(builder.CreateICmpNE(bits, builder.getInt32(0)), body, after);

  builder.SetInsertPoint(body);
  PHINode* rest = builder.CreatePHI(builder.getInt32Ty(), 2, "rest");
  rest->addIncoming(bits, before);
  Value* lane = builder.CreateBinaryIntrinsic(Intrinsic::cttz, rest, builder.getTrue());
  Instruction* one = instruction.clone();
  for (unsigned i = 0; i < instruction.getNumOperands(); ++i) {
    Value* operand = instruction.getOperand(i);
    if (!places.contains(i)) {
      one->setOperand(i, scalar(operand));
      continue;
    }
    Type* in_memory = operand->getType()->isIntegerTy(1) ? builder.getInt8Ty() : operand->getType();
    Value* value = builder.CreateLoad(in_memory, builder.CreateGEP(in_memory, places[i], lane));
    one->setOperand(i, operand->getType()->isIntegerTy(1) ? builder.CreateTrunc(value, builder.getInt1Ty()) : value);
  }
  builder.Insert(one);
  if (results) {
    Value* value = pair ? builder.CreateExtractValue(one, 0) : one;
    if (is_flag) value = builder.CreateZExt(value, stored);
    builder.CreateStore(value, builder.CreateGEP(stored, results, lane));
  }
  if (flags)
    builder.CreateStore(builder.CreateZExt(builder.CreateExtractValue(one, 1), builder.getInt8Ty()),
                        builder.CreateGEP(builder.getInt8Ty(), flags, lane));
  Value* less = builder.CreateAnd(rest, builder.CreateSub(rest, builder.getInt32(1)));
  rest->addIncoming(less, body);
  builder.CreateCondBr(builder.CreateICmpNE(less, builder.getInt32(0)), body, after);

  builder.SetInsertPoint(after);
  auto read = [&](Value* place, Type* of, bool flag) -> Value* {
    Value* value = builder.CreateLoad(vector_of(of), place);
    return flag ? builder.CreateTrunc(value, mask_type_) : value;
  };
  if (pair) {
    for (User* user : instruction.users()) {
      auto* part = cast<ExtractValueInst>(user);
      vectors_[part] =
          part->getIndices()[0] == 0 ? read(results, stored, is_flag) : read(flags, builder.getInt8Ty(), true);
    }
  } else if (results) {
    vectors_[&instruction] = read(results, stored, is_flag);
  }
}

void Widener::check_pair(Instruction& instruction) {
  if (!isa<AtomicCmpXchgInst, WithOverflowInst>(instruction)) refuse("a structure as a value");
  for (User* user : instruction.users())
    if (!isa<ExtractValueInst>(user)) refuse("a structure as a value");
}

}  // namespace kiln::widening
