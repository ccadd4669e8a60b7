#include "compiler/engines/engine_support.h"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ReplaceConstant.h>

#include "compiler/ir/invariant_loads.h"
#include "compiler/ir/pass_runner.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/sections.h"
#include "compiler/ir/thread_ranges.h"
#include "kiln/error.h"

namespace kiln {

using namespace llvm;

void inline_into_callers(Module& module, std::initializer_list<Function*> functions) {
  for (Function* function : functions) {
    function->setLinkage(GlobalValue::InternalLinkage);
    function->addFnAttr(Attribute::AlwaysInline);
  }
  PassRunner(nullptr).run("always-inline", module);
}

// What the variables of one function need on the stack. Of a threadgroup that is run by `.apart` the larger of both
// counts.
uint64_t stack_of(const Function& function) {
  uint64_t bytes = 0;
  for (const Instruction& instruction : instructions(function))
    if (const auto* variable = dyn_cast<AllocaInst>(&instruction))
      bytes += variable->getAllocationSize(function.getDataLayout())->getFixedValue();
  return bytes;
}

uint64_t largest_stack(const Module& module) {
  uint64_t largest = 0;
  for (const Function& function : module) largest = std::max(largest, stack_of(function));
  return largest;
}

// Who waits for another threadgroup looks at an atomic again and again.
bool may_spin(Function& body) {
  for (auto cycle = scc_begin(&body); !cycle.isAtEnd(); ++cycle) {
    if (!cycle.hasCycle()) continue;
    for (BasicBlock* block : *cycle)
      for (const Instruction& instruction : *block)
        if (instruction.isAtomic() && !instruction.getType()->isVoidTy() && !instruction.use_empty()) return true;
  }
  return false;
}

Function& add_function(Function& body, const char* name, ArrayRef<Type*> parameters) {
  auto* type = FunctionType::get(Type::getVoidTy(body.getContext()), parameters, /*isVarArg=*/false);
  Function* function = Function::Create(type, GlobalValue::ExternalLinkage, name, body.getParent());
  function->setDSOLocal(true);
  function->setAttributes(AttributeList::get(body.getContext(), body.getAttributes().getFnAttrs(), {}, {}));
  BasicBlock::Create(body.getContext(), "entry", function);
  return *function;
}

// They do not change while the launch runs, whatever threads write, and some point to memory that is always there.
SmallVector<Value*> load_arguments(IRBuilder<>& builder, Value* launch, const KernelUnit& unit) {
  LLVMContext& context = builder.getContext();
  auto number = [&](uint64_t value) {
    return MDNode::get(context, {ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(context), value))});
  };
  auto load = [&](Type* type, Value* structure, uint64_t offset) {
    return load_invariant(builder, type, structure, offset);
  };
  Value* records = load(builder.getPtrTy(), launch, offsetof(CpuLaunch, arguments));
  SmallVector<Value*> arguments;
  for (size_t i = 0; i < unit.parameters.size(); ++i) {
    auto field = [&](Type* type, uint64_t offset) { return load(type, records, i * sizeof(CpuArgument) + offset); };
    LoadInst* data = field(builder.getPtrTy(), offsetof(CpuArgument, data));
    if (uint64_t bytes = unit.parameters[i].guaranteed_bytes()) {
      data->setMetadata(LLVMContext::MD_dereferenceable, number(bytes));
      data->setMetadata(LLVMContext::MD_align, number(unit.parameters[i].alignment));
    }
    LoadInst* first = field(builder.getInt64Ty(), offsetof(CpuArgument, first_byte));
    LoadInst* end = field(builder.getInt64Ty(), offsetof(CpuArgument, end_byte));
    // No address space has room for more.
    end->setMetadata(LLVMContext::MD_range, MDBuilder(context).createRange(APInt(64, 0), APInt(64, 1ULL << 62)));
    arguments.append({data, first, end});
  }
  return arguments;
}

Function& add_caller(Function& body, const char* name, ArrayRef<Type*> others, const KernelUnit& unit) {
  Type* pointer = PointerType::getUnqual(body.getContext());
  SmallVector<Type*> parameters{pointer, pointer};
  parameters.append(others.begin(), others.end());
  Function& caller = add_function(body, name, parameters);
  IRBuilder<> builder(&caller.getEntryBlock());
  SmallVector<Value*> arguments = load_arguments(builder, caller.getArg(0), unit);
  arguments.push_back(caller.getArg(1));
  builder.CreateCall(&body, arguments);
  builder.CreateRetVoid();
  return caller;
}

// What a thread that waits has in its record does not change while it runs; a row of threads shares one.
void describe_record_load(LoadInst& load, CpuImageKind kind) {
  if (kind != CpuImageKind::kLoop) load.setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load.getContext(), {}));
}

void set_range_of_size(LoadInst& load, uint64_t thread_value) {
  const ConstantRange range = ThreadLimits().range(thread_value);
  if (is_divergent_value(thread_value) || range.isFullSet()) return;
  load.setMetadata(LLVMContext::MD_range, MDBuilder(load.getContext()).createRange(range.getLower(), range.getUpper()));
}

// The values that attributes come from are read from the thread's record.
void lower_values(Function& body, Value* record, CpuImageKind kind) {
  for (Instruction& instruction : make_early_inc_range(instructions(body))) {
    if (!calls(instruction, kValueFunction)) continue;
    auto* call = cast<CallInst>(&instruction);
    IRBuilder<> builder(call);
    Value* address = builder.CreateInBoundsGEP(builder.getInt32Ty(), record, call->getArgOperand(0));
    LoadInst* load = builder.CreateLoad(builder.getInt32Ty(), address);
    describe_record_load(*load, kind);
    set_range_of_size(*load, cast<ConstantInt>(call->getArgOperand(0))->getZExtValue());
    call->replaceAllUsesWith(load);
    call->eraseFromParent();
  }
}

// Threadgroup variables are places in memory that belongs to the threadgroup. Returns how many bytes they need.
uint64_t lower_threadgroup_memory(Module& module, Function& body, Value* record, CpuImageKind kind) {
  const DataLayout& layout = module.getDataLayout();
  SmallVector<GlobalVariable*> variables;
  for (GlobalVariable& variable : module.globals())
    if (variable.getSection() == kThreadgroupSection) variables.push_back(&variable);
  if (variables.empty()) return 0;
  // Uses in constant expressions become instructions, which the replacements are some of. Those that a phi needs come
  // to the beginning of the block before it, which may be the first: the replacements must come in front of them.
  SmallVector<Constant*> constants(variables.begin(), variables.end());
  convertUsersOfConstantsToInstructions(constants);

  uint64_t bytes = 0;
  IRBuilder<> builder(&*body.getEntryBlock().getFirstInsertionPt());
  Value* address =
      builder.CreateInBoundsGEP(builder.getInt8Ty(), record, builder.getInt64(offsetof(CpuThread, threadgroup_memory)));
  LoadInst* base = builder.CreateLoad(builder.getPtrTy(), address);
  describe_record_load(*base, kind);
  for (GlobalVariable* variable : variables) {
    if (any_of(variable->users(), [](User* user) { return isa<Constant>(user); }))
      throw InternalError("a constant holds an address in threadgroup memory");
    bytes = alignTo(bytes, std::max(Align(16), variable->getAlign().valueOrOne()));
    Value* place = builder.CreateInBoundsGEP(builder.getInt8Ty(), base, builder.getInt64(bytes));
    bytes += layout.getTypeAllocSize(variable->getValueType());
    variable->replaceAllUsesWith(place);
    variable->eraseFromParent();
  }
  return bytes;
}

}  // namespace kiln
