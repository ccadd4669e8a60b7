#include "compiler/lowering/interrupt_polls.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>

#include "compiler/ir/invariant_loads.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kMostIterationBits = 33;

bool ends(const Loop& loop, ScalarEvolution& evolution) {
  if (isa<SCEVCouldNotCompute>(evolution.getSymbolicMaxBackedgeTakenCount(&loop))) return false;
  const auto* most = dyn_cast<SCEVConstant>(evolution.getConstantMaxBackedgeTakenCount(&loop));
  return most && most->getAPInt().getActiveBits() < kMostIterationBits;
}

// The headers of all cycles, irreducible ones too, that are not known to end, or that call a function which may return
// early.
SmallVector<BasicBlock*> unbounded_headers(Function& function, function_ref<bool(BasicBlock&)> calls_polled) {
  SmallVector<BasicBlock*> headers;
  DominatorTree dominators(function);
  CycleInfo cycles;
  cycles.compute(function);
  if (cycles.toplevel_begin() == cycles.toplevel_end()) return headers;
  LoopInfo loops(dominators);
  AssumptionCache assumptions(function);
  TargetLibraryInfoImpl implementation;
  implementation.disableAllFunctions();
  TargetLibraryInfo library(implementation);
  ScalarEvolution evolution(function, library, assumptions, dominators, loops);
  SmallVector<const CycleInfo::CycleT*> worklist(cycles.toplevel_begin(), cycles.toplevel_end());
  while (!worklist.empty()) {
    const CycleInfo::CycleT* cycle = worklist.pop_back_val();
    worklist.append(cycle->child_begin(), cycle->child_end());
    const Loop* loop = cycle->isReducible() ? loops.getLoopFor(cycle->getHeader()) : nullptr;
    bool is_loop = loop && loop->getHeader() == cycle->getHeader();
    if (is_loop && ends(*loop, evolution) &&
        none_of(cycle->blocks(), [&](BasicBlock* block) { return calls_polled(*block); }))
      continue;
    headers.push_back(cycle->getHeader());
  }
  return headers;
}

class PollInserter {
 public:
  PollInserter(Function& function, bool is_coroutine, const SmallPtrSetImpl<Function*>& polled)
      : function_(function), is_coroutine_(is_coroutine), polled_(polled) {}

  bool run() {
    for (BasicBlock* header : unbounded_headers(function_, [&](BasicBlock& block) { return calls_polled(block); }))
      insert_at(*header);
    return word_ != nullptr;
  }

 private:
  bool calls_polled(BasicBlock& block) const {
    for (Instruction& instruction : block)
      if (auto* call = dyn_cast<CallInst>(&instruction); call && polled_.contains(call->getCalledFunction()))
        return true;
    return false;
  }

  void insert_at(BasicBlock& header) {
    LLVMContext& context = function_.getContext();
    IRBuilder<> builder(context);
    Value* launch = function_.getArg(0);
    if (!word_) {
      BasicBlock& entry = function_.getEntryBlock();
      builder.SetInsertPoint(&entry, entry.getFirstInsertionPt());
      word_ = load_invariant(builder, builder.getPtrTy(), launch, offsetof(CpuLaunch, poll_word));
    }
    BasicBlock* rest = header.splitBasicBlock(header.getFirstInsertionPt());
    BasicBlock* attend = BasicBlock::Create(context, "attend", &function_);
    BasicBlock* leave = BasicBlock::Create(context, "leave", &function_);
    MDNode* unlikely = MDBuilder(context).createBranchWeights(1, (1u << 31) - 1);
    header.getTerminator()->eraseFromParent();
    builder.SetInsertPoint(&header);
    LoadInst* word = builder.CreateLoad(builder.getInt32Ty(), word_, /*isVolatile=*/true);
    builder.CreateCondBr(builder.CreateICmpNE(word, builder.getInt32(0)), attend, rest, unlikely);
    builder.SetInsertPoint(attend);
    CallInst* ended = builder.CreateCall(attend_function(), {launch});
    ended->addFnAttr(Attribute::Cold);
    builder.CreateCondBr(builder.CreateICmpNE(ended, builder.getInt32(0)), leave, rest, unlikely);
    builder.SetInsertPoint(leave);
    if (is_coroutine_)
      builder.CreateStore(
          builder.getInt32(CpuThread::kReturned),
          builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), function_.getArg(1), offsetof(CpuThread, site)));
    builder.CreateRetVoid();
    // Clang marked a body that loops for ever as one that does not return, or that calls nothing.
    for (Attribute::AttrKind kind : {Attribute::NoReturn, Attribute::WillReturn, Attribute::NoSync, Attribute::NoFree})
      function_.removeFnAttr(kind);
    function_.removeFnAttr(Attribute::Memory);
  }

  FunctionCallee attend_function() {
    LLVMContext& context = function_.getContext();
    FunctionCallee callee = function_.getParent()->getOrInsertFunction(
        kAttendFunction, FunctionType::get(Type::getInt32Ty(context), {PointerType::getUnqual(context)}, false));
    auto* function = cast<Function>(callee.getCallee());
    function->addFnAttr(Attribute::Cold);
    function->setDoesNotThrow();
    return callee;
  }

  Function& function_;
  const bool is_coroutine_;
  const SmallPtrSetImpl<Function*>& polled_;
  Value* word_ = nullptr;
};

// All functions that run threads take the launch as the first argument and return nothing (core/cpu_functions.h).
bool runs_threads(const Function& function) {
  return !function.isDeclaration() && function.getName().starts_with("__kiln_") &&
         function.getReturnType()->isVoidTy() && function.arg_size() >= 3 &&
         function.getArg(0)->getType()->isPointerTy() && function.getArg(1)->getType()->isPointerTy();
}

}  // namespace

bool may_not_terminate(Function& body) {
  return !unbounded_headers(body, [](BasicBlock&) { return false; }).empty();
}

bool insert_interrupt_polls(Module& module, StringRef coroutine) {
  // Callees before callers: a loop over calls of a function with polls ends when such a call has returned early.
  SmallPtrSet<Function*, 4> polled;
  bool changed = true;
  SmallPtrSet<Function*, 8> done;
  while (changed) {
    changed = false;
    for (Function& function : module) {
      if (!runs_threads(function) || done.contains(&function)) continue;
      bool has_pending_callee = any_of(instructions(function), [&](Instruction& instruction) {
        auto* call = dyn_cast<CallInst>(&instruction);
        Function* callee = call ? call->getCalledFunction() : nullptr;
        return callee && runs_threads(*callee) && !done.contains(callee);
      });
      if (has_pending_callee) continue;
      done.insert(&function);
      changed = true;
      if (PollInserter(function, function.getName() == coroutine, polled).run()) polled.insert(&function);
    }
  }
  return !polled.empty();
}

}  // namespace kiln
