#include "compiler/engines/scalar_entry.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/engines/engine_support.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {

using namespace llvm;

namespace {

constexpr const char* kLongBodyFunction = "__kiln_long_body";
constexpr const char* kScalarSimdgroupFunction = "__kiln_simdgroup.scalar";

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

namespace {

Value* value_in(Value* record, unsigned which, IRBuilder<>& builder) {
  return builder.CreatePtrAdd(record, builder.getInt64(which * sizeof(uint32_t)));
}

// The threads of a row from one position in x to another.
struct ThreadsOfRow {
  Value *launch, *first;  // the launch, and the record of the row's first thread
  Value *begin, *end;
  Value* row = nullptr;  // how many rows after that of `first`
};

// Fills the function, whose entry is empty, with a loop over threads.
void run_threads(Function& function, Function& body, const KernelUnit& unit, bool takes_launch,
                 function_ref<ThreadsOfRow(IRBuilder<>&)> describe) {
  LLVMContext& context = body.getContext();
  IRBuilder<> builder(&function.getEntryBlock());
  Type* number = builder.getInt32Ty();
  AllocaInst* thread = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), sizeof(CpuThread)));
  thread->setAlignment(Align(alignof(CpuThread)));
  const ThreadsOfRow threads = describe(builder);
  Value* first = threads.first;
  builder.CreateMemCpy(thread, thread->getAlign(), first, thread->getAlign(), sizeof(CpuThread));
  SmallVector<Value*> arguments = load_arguments(builder, threads.launch, unit);
  arguments.push_back(thread);
  if (takes_launch) arguments.insert(arguments.begin(), threads.launch);
  auto of_first = [&](unsigned which) { return builder.CreateLoad(number, value_in(first, which, builder)); };
  Value* rows_index = nullptr;
  if (threads.row) {
    builder.CreateStore(builder.CreateAdd(of_first(kPositionInThreadgroup + 1), threads.row),
                        value_in(thread, kPositionInThreadgroup + 1, builder));
    rows_index = builder.CreateMul(threads.row, of_first(kThreadsPerThreadgroup));
  }
  auto block = [&](const char* name) { return BasicBlock::Create(context, name, &function); };
  BasicBlock *entry = builder.GetInsertBlock(), *next = block("next"), *run = block("run"), *end = block("end");
  builder.CreateBr(next);
  builder.SetInsertPoint(next);
  PHINode* x = builder.CreatePHI(number, 2);
  builder.CreateCondBr(builder.CreateICmpULT(x, threads.end), run, end);
  builder.SetInsertPoint(run);
  // The rest of the position is that of the row.
  static_assert(numbers_of(ThreadValueScope::kThread) == 4,
                "compute each value of a thread from the first one of its row");
  builder.CreateStore(x, value_in(thread, kPositionInThreadgroup, builder));
  Value* index = builder.CreateAdd(of_first(kIndexInThreadgroup), x);
  if (rows_index) index = builder.CreateAdd(index, rows_index);
  builder.CreateStore(index, value_in(thread, kIndexInThreadgroup, builder));
  builder.CreateCall(&body, arguments);
  x->addIncoming(threads.begin, entry);
  x->addIncoming(builder.CreateAdd(x, builder.getInt32(1)), run);
  builder.CreateBr(next);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
}

}  // namespace

Function& add_scalar_row(Function& body, const KernelUnit& unit, bool takes_launch) {
  LLVMContext& context = body.getContext();
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt32Ty(context);
  Function& row = add_function(body, kScalarRowFunction, {pointer, pointer, number});
  run_threads(row, body, unit, takes_launch, [&](IRBuilder<>& builder) {
    return ThreadsOfRow{row.getArg(0), row.getArg(1), builder.getInt32(0), row.getArg(2)};
  });
  return row;
}

Function& add_scalar_simdgroup(Function& body, const KernelUnit& unit) {
  LLVMContext& context = body.getContext();
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt32Ty(context);
  Function& group = add_function(body, kScalarSimdgroupFunction, {pointer, pointer, number, number, number, number});
  group.setLinkage(GlobalValue::InternalLinkage);
  run_threads(group, body, unit, /*takes_launch=*/false, [&](IRBuilder<>& builder) {
    Value *x = group.getArg(kRowX), *lanes = group.getArg(kRowX + 1);
    return ThreadsOfRow{group.getArg(kCpuLaunch), group.getArg(kCpuRecord), x, builder.CreateAdd(x, lanes),
                        group.getArg(kRowOfCall)};
  });
  return group;
}

}  // namespace kiln
