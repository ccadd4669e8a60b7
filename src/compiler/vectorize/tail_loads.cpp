#include "compiler/vectorize/tail_loads.h"

#include <llvm/IR/Module.h>

#include "compiler/ir/loop_metadata.h"
#include "compiler/ir/simdgroup.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

enum Parameter : unsigned { kAddress, kOffset, kLimit };

// A loop over lanes.
void write_body(Function& function, Type& element) {
  LLVMContext& context = function.getContext();
  const DataLayout& layout = function.getDataLayout();
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, &function); };
  BasicBlock *entry = block("entry"), *lane = block("lane"), *inside = block("inside"), *next = block("next"),
             *end = block("end");
  IRBuilder<> builder(entry);
  AllocaInst* lanes = builder.CreateAlloca(function.getReturnType());
  builder.CreateBr(lane);

  builder.SetInsertPoint(lane);
  PHINode* index = builder.CreatePHI(builder.getInt64Ty(), 2);
  Value* distance = builder.CreateMul(index, builder.getInt64(layout.getTypeStoreSize(&element)));
  Value* offset = builder.CreateAdd(function.getArg(kOffset), distance);
  builder.CreateCondBr(builder.CreateICmpULT(offset, function.getArg(kLimit)), inside, next);

  builder.SetInsertPoint(inside);
  Value* loaded =
      builder.CreateAlignedLoad(&element, builder.CreateGEP(&element, function.getArg(kAddress), index), Align(1));
  builder.CreateBr(next);

  builder.SetInsertPoint(next);
  PHINode* value = builder.CreatePHI(&element, 2);
  value->addIncoming(Constant::getNullValue(&element), lane);
  value->addIncoming(loaded, inside);
  builder.CreateStore(value, builder.CreateGEP(&element, lanes, index));
  Value* after = builder.CreateAdd(index, builder.getInt64(1));
  index->addIncoming(builder.getInt64(0), entry);
  index->addIncoming(after, next);
  // Unrolled for all lanes, the loop would take long to compile.
  never_unroll(*builder.CreateCondBr(builder.CreateICmpNE(after, builder.getInt64(kLanes)), lane, end));

  builder.SetInsertPoint(end);
  builder.CreateRet(builder.CreateLoad(function.getReturnType(), lanes));
}

// One function for each type.
Function& function_for(Type& element, Module& module) {
  std::string name = "__kiln_edge_row.";
  raw_string_ostream(name) << element;
  if (Function* existing = module.getFunction(name)) return *existing;
  LLVMContext& context = module.getContext();
  Type* number = Type::getInt64Ty(context);
  auto* type = FunctionType::get(FixedVectorType::get(&element, kLanes),
                                 {PointerType::getUnqual(context), number, number}, /*isVarArg=*/false);
  Function* function = Function::Create(type, GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(Attribute::NoInline);
  function->addFnAttr(Attribute::NullPointerIsValid);
  function->setCallingConv(CallingConv::PreserveMost);  // as in striped_atomics.cpp
  function->setDoesNotThrow();
  function->setDoesNotFreeMemory();
  function->setWillReturn();
  function->setNoSync();
  function->setOnlyReadsMemory();
  function->setOnlyAccessesArgMemory();
  function->addParamAttr(kAddress, Attribute::NoCapture);
  write_body(*function, element);
  return *function;
}

}  // namespace

CallInst* load_tail(Type& element, Value* address, Value* offset, Value* limit, IRBuilder<>& builder) {
  Function& function = function_for(element, *builder.GetInsertBlock()->getModule());
  CallInst* call = builder.CreateCall(&function, {address, offset, limit});
  call->setCallingConv(function.getCallingConv());
  return call;
}

}  // namespace kiln
