#include "compiler/cpu/engine_support.h"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ReplaceConstant.h>

#include "compiler/clang_frontend.h"
#include "compiler/metal/token_rewriter.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/stand_ins.h"
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

CallInst& call_of_body(Function& function) {
  for (Instruction& instruction : instructions(function))
    if (calls(instruction, kBodyFunction)) return cast<CallInst>(instruction);
  throw InternalError("the body is not called");
}

// The loads of a launch's arguments: they do not change while it runs, whatever threads write, and some point to
// memory that is always there.
void describe_arguments(Function& thread, const KernelUnit& unit) {
  LLVMContext& context = thread.getContext();
  for (Instruction& instruction : instructions(thread))
    if (isa<LoadInst>(instruction)) instruction.setMetadata(LLVMContext::MD_invariant_load, MDNode::get(context, {}));
  CallInst& call = call_of_body(thread);
  auto number = [&](uint64_t value) {
    return MDNode::get(context, {ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(context), value))});
  };
  for (size_t i = 0; i < unit.parameters.size(); ++i) {
    auto* load = dyn_cast<LoadInst>(call.getArgOperand(static_cast<unsigned>(3 * i)));
    // No address space has room for more.
    if (auto* end = dyn_cast<LoadInst>(call.getArgOperand(static_cast<unsigned>(3 * i + 2))))
      end->setMetadata(LLVMContext::MD_range, MDBuilder(context).createRange(APInt(64, 0), APInt(64, 1ULL << 62)));
    uint64_t bytes = unit.parameters[i].guaranteed_bytes();
    if (!load || bytes == 0) continue;
    load->setMetadata(LLVMContext::MD_dereferenceable, number(bytes));
    load->setMetadata(LLVMContext::MD_align, number(unit.parameters[i].alignment));
  }
}

// Arguments are read before the loop over threads, so that what is computed from them can leave it too.
void hoist_arguments(Function& row) {
  CallInst& call = call_of_body(row);
  Instruction* before = row.getEntryBlock().getTerminator();
  for (Instruction& instruction : make_early_inc_range(*call.getParent())) {
    if (&instruction == &call) break;
    bool reads_launch = isa<GetElementPtrInst>(instruction) || instruction.hasMetadata(LLVMContext::MD_invariant_load);
    if (reads_launch && all_of(instruction.operands(), [&](Use& use) {
          auto* operand = dyn_cast<Instruction>(use.get());
          return !operand || operand->getParent() == before->getParent();
        }))
      instruction.moveBefore(before);
  }
}

// What a thread that waits has in its record does not change while it runs; a row of threads shares one.
void describe_record_load(LoadInst& load, CpuImageKind kind) {
  if (kind != CpuImageKind::kLoop) load.setMetadata(LLVMContext::MD_invariant_load, MDNode::get(load.getContext(), {}));
}

// The values that attributes come from are read from the thread's record.
void lower_values(Function& body, Value* record, CpuImageKind kind) {
  for (Instruction& instruction : make_early_inc_range(instructions(body))) {
    if (!calls(instruction, "__kiln_value")) continue;
    auto* call = cast<CallInst>(&instruction);
    IRBuilder<> builder(call);
    Value* address = builder.CreateInBoundsGEP(builder.getInt32Ty(), record, call->getArgOperand(0));
    LoadInst* load = builder.CreateLoad(builder.getInt32Ty(), address);
    describe_record_load(*load, kind);
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

// A third of what -O2 costs, for code that is as good: one function, everything inlined, no vectorising. InstCombine,
// the most expensive pass, runs once, when everything is in registers. (In a pipeline in text it ends the process,
// unless told otherwise, where one round leaves something for a second.) What only a rare way needs is not computed on
// all, which GVN's PRE would do.
void optimize(Module& module, TargetMachine& machine) {
  PassRunner runner(&machine);
  runner.run(
      "function("
      "early-cse<memssa>,simplifycfg,"
      // What does not depend on the thread leaves the loop over threads.
      "loop-mssa(loop-instsimplify,loop-rotate,licm),"
      // Unrolling makes indices of private arrays constant, so that these can be promoted.
      "loop(loop-deletion,loop-unroll-full),sroa,gvn<no-pre>,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg,"
      // `#pragma unroll N`.
      "loop-unroll<O2;no-runtime>,instsimplify),globaldce",
      module);
}

}  // namespace kiln
