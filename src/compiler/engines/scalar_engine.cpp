// The scalar engine: one thread after the other.
//
// Where no thread waits for another, a threadgroup is a loop over its threads. Otherwise each thread is a coroutine,
// cut wherever it waits (`workgroup/suspend_points.cpp`); the target's scheduler (`targets/cpu/group_scheduler.cpp`)
// calls it until it has returned. It is slow and simple: it follows the specification's words on reconvergence
// literally, and other engines are held against it.
//
// Coroutines, not threads with stacks of their own: a waiting thread costs its live values and an indirect call, and
// sanitizers understand them. Their frames are memory of the scheduler's, 64-byte aligned, so that vectors of any width
// may live in them.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include "compiler/engines/engine.h"
#include "compiler/engines/engine_support.h"
#include "compiler/ir/entry.h"
#include "compiler/ir/pass_runner.h"
#include "compiler/lowering/convergence_points.h"
#include "compiler/lowering/masked_loads.h"
#include "compiler/lowering/matrix_products.h"
#include "compiler/lowering/spin_loops.h"
#include "compiler/workgroup/suspend_points.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kThreadFunction = "__kiln_thread";
constexpr const char* kRowFunction = "__kiln_row";
constexpr const char* kLongBodyFunction = "__kiln_long_body";

class ScalarEngine : public CpuEngine {
 public:
  EngineOutput lower(Module& module, const KernelUnit& unit, TargetMachine& machine,
                     StageKeeper /*keep_stage*/) override {
    EngineOutput output;
    output.engine = "scalar";
    output.reason = "KILN_CPU_ENGINE asks for it";
    Function& body = *module.getFunction(kBodyFunction);
    expand_matrix_products(body);
    const bool yields = unit.dialect == Dialect::kCuda && add_yields(body);
    output.sites = number_convergence_points(body);
    output.kind = output.sites.empty() ? CpuImageKind::kLoop : CpuImageKind::kCoroutines;
    for (size_t i = 0; i < output.sites.size(); ++i) {
      Function* combine = output.sites[i].combine;
      if (combine) combine->setLinkage(GlobalValue::ExternalLinkage);
      output.combine_functions.push_back(combine ? combine->getName().str() : "");
    }
    bool has_atomics = any_of(instructions(body), [](const Instruction& i) { return i.isAtomic(); });
    output.may_spin = yields || may_spin(body);
    Value* record = body.getArg(body.arg_size() - 1);
    lower_values(body, record, output.kind);
    output.threadgroup_memory_bytes = lower_threadgroup_memory(module, body, record, output.kind);
    if (output.kind == CpuImageKind::kLoop) {
      output.run_function = kRowFunction;
      const bool is_long = body.getInstructionCount() > kLongBody;
      Function& row = add_row(is_long ? keep_out_of_loop(body) : body, unit, is_long);
      // So that what is there at the beginning is known to be there until the end.
      row.setDoesNotFreeMemory();
      if (!has_atomics) row.setNoSync();
      if (!is_long) inline_into_callers(module, {&body});
      optimize(module, machine);
    } else {
      output.run_function = kThreadFunction;
      // CpuThreadFunction.
      Function& thread = add_caller(body, kThreadFunction, {PointerType::getUnqual(module.getContext())}, unit);
      inline_into_callers(module, {&body});
      optimize(module, machine);
      output.frame_bytes = split_at_suspend_points(thread);
      PassRunner(&machine).run("early-cse,simplifycfg", thread);
    }
    for (Function& function : module) mask_at_loads(function);
    output.private_bytes = output.frame_bytes + largest_stack(module);
    return output;
  }

 private:
  // Instructions before optimization.
  static constexpr unsigned kLongBody = 4000;

  // A long body stays a function. Inlined into the loop over threads, each of its constants is hoisted and live in all
  // of its blocks: liveness, and so register allocation, takes the square of its length.
  // It takes the launch before its arguments, as all that runs threads does (lowering/interrupt_polls.h).
  static Function& keep_out_of_loop(Function& body) {
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

  // CpuRowFunction: a loop over threads. Arguments are read before it, so that what is computed from them can leave it
  // too. Everything outside of a row is the target's, compiled once and not with each kernel.
  static Function& add_row(Function& body, const KernelUnit& unit, bool takes_launch) {
    LLVMContext& context = body.getContext();
    Type *pointer = PointerType::getUnqual(context), *number = Type::getInt32Ty(context);
    Function& row = add_function(body, kRowFunction, {pointer, pointer, number});
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
    auto value = [&](Value* record, CpuThreadValue which) {
      return builder.CreatePtrAdd(record, builder.getInt64(which * sizeof(uint32_t)));
    };
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
};

}  // namespace

std::unique_ptr<CpuEngine> make_scalar_engine() { return std::make_unique<ScalarEngine>(); }

}  // namespace kiln
