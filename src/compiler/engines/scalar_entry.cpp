#include "compiler/engines/scalar_entry.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/engines/engine_support.h"
#include "core/cpu_image.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr const char* kLongBodyFunction = "__kiln_long_body";

}  // namespace

Function& keep_out_of_loop(Function& body) {
  SmallVector<Type*> parameters(body.getFunctionType()->params());
  parameters.insert(parameters.begin(), PointerType::getUnqual(body.getContext()));
  auto* function = Function::Create(FunctionType::get(body.getReturnType(), parameters, false),
                                    GlobalValue::InternalLinkage, kLongBodyFunction, body.getParent());
  function->copyAttributesFrom(&body);
  AttributeList attributes = body.getAttributes();
  SmallVector<AttributeSet> of_parameters{AttributeSet()};
  for (const Argument& argument : body.args()) of_parameters.push_back(attributes.getParamAttrs(argument.getArgNo()));
  function->setAttributes(
      AttributeList::get(body.getContext(), attributes.getFnAttrs(), attributes.getRetAttrs(), of_parameters));
  function->splice(function->begin(), &body);
  for (Argument& argument : body.args()) argument.replaceAllUsesWith(function->getArg(argument.getArgNo() + 1));
  body.eraseFromParent();
  function->addFnAttr(Attribute::NoInline);
  const unsigned record = static_cast<unsigned>(function->arg_size()) - 1;
  for (Attribute::AttrKind kind : {Attribute::NoAlias, Attribute::ReadOnly, Attribute::NoCapture})
    function->addParamAttr(record, kind);
  return *function;
}

Function& add_scalar_row(Function& body, const KernelUnit& unit, bool takes_launch) {
  LLVMContext& context = body.getContext();
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt32Ty(context);
  Function& row = add_function(body, kScalarRowFunction, {pointer, pointer, number});
  IRBuilder<> builder(&row.getEntryBlock());
  Value *launch = row.getArg(0), *first = row.getArg(1), *count = row.getArg(2);
  AllocaInst* thread = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), sizeof(CpuThread)));
  thread->setAlignment(Align(alignof(CpuThread)));
  builder.CreateMemCpy(thread, thread->getAlign(), first, thread->getAlign(), sizeof(CpuThread));
  SmallVector<Value*> arguments = load_arguments(builder, launch, unit);
  arguments.push_back(thread);
  if (takes_launch) arguments.insert(arguments.begin(), launch);
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, &row); };
  BasicBlock *entry = &row.getEntryBlock(), *next = block("next"), *run = block("run"), *end = block("end");
  builder.CreateBr(next);
  builder.SetInsertPoint(next);
  PHINode* x = builder.CreatePHI(number, 2);
  builder.CreateCondBr(builder.CreateICmpULT(x, count), run, end);
  builder.SetInsertPoint(run);
  auto value = [&](Value* record, ThreadValue which) {
    return builder.CreatePtrAdd(record, builder.getInt64(which * sizeof(uint32_t)));
  };
  // The rest of the position is that of the row.
  static_assert(numbers_of(ThreadValueScope::kThread) == 4,
                "compute each value of a thread from the first one of its row");
  builder.CreateStore(x, value(thread, kPositionInThreadgroup));
  Value* first_index = builder.CreateLoad(number, value(first, kIndexInThreadgroup));
  builder.CreateStore(builder.CreateAdd(first_index, x), value(thread, kIndexInThreadgroup));
  builder.CreateCall(&body, arguments);
  x->addIncoming(builder.getInt32(0), entry);
  x->addIncoming(builder.CreateAdd(x, builder.getInt32(1)), run);
  builder.CreateBr(next);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
  return row;
}

}  // namespace kiln
