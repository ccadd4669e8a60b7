#include "compiler/lowering/convergence_points.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <set>

#include "compiler/analysis/barrier_uniformity.h"
#include "compiler/ir/ordering_edges.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/matrix_products.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kLoopEnter = "__kiln_loop_enter";
constexpr const char* kLoopMerge = "__kiln_loop_merge";
constexpr const char* kCallEnter = "__kiln_call_enter";
constexpr const char* kCallMerge = "__kiln_call_merge";

std::vector<CallInst*> calls_of(Function& function) {
  std::vector<CallInst*> found;
  for (User* user : function.users())
    if (auto* call = dyn_cast<CallInst>(user); call && call->getCalledFunction() == &function) found.push_back(call);
  return found;
}

uint64_t constant(Value* value, const char* what) {
  auto* number = dyn_cast<ConstantInt>(value);
  if (!number) throw InternalError(concat("an exchange's ", what, " is no constant"));
  return number->getZExtValue();
}

// Where a call of `__kiln_wait` has its counters.
constexpr unsigned kFirstCounter = 3;

StringRef name_of_callee(const Instruction& instruction) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  return call && call->getCalledFunction() ? call->getCalledFunction()->getName() : "";
}

// The header of the loop that still counts, null where none does: it has been unrolled. Nothing where it is not one
// number, but that of several iterations which meet here.
std::optional<BasicBlock*> counted_by(Value* counter, const LoopInfo& loops) {
  if (isa<Constant>(counter)) return nullptr;
  if (auto* next = dyn_cast<BinaryOperator>(counter); next && isa<Constant>(next->getOperand(1)))
    return counted_by(next->getOperand(0), loops);
  auto* phi = dyn_cast<PHINode>(counter);
  if (!phi) return std::nullopt;
  if (loops.isLoopHeader(phi->getParent())) return phi->getParent();
  Value* same = phi->hasConstantValue();
  return same ? counted_by(same, loops) : std::nullopt;
}

// A way back to the header that nobody takes.
void keep_in_loop(CallInst& wait, BasicBlock& header) {
  BasicBlock& from = add_ordering_edge(*wait.getNextNode(), header);
  for (PHINode& phi : header.phis()) phi.addIncoming(Constant::getNullValue(phi.getType()), &from);
}

// Of each exchange the innermost loop that it is out of.
InLoops keep_in_innermost_loops(Function& function) {
  std::optional<LoopInfo> loops;  // where it is asked for
  SmallVector<std::pair<CallInst*, BasicBlock*>> left;
  for (Instruction& instruction : instructions(function)) {
    StringRef name = name_of_callee(instruction);
    const bool is_mark = name.starts_with(kIterationFunction);
    if (!is_mark && (!name.starts_with(kConvergenceFunction) || name == kProductConvergenceFunction)) continue;
    auto& call = cast<CallInst>(instruction);
    for (unsigned i = call.arg_size(); i-- > (is_mark ? 0 : kFirstCounter);) {
      if (!loops) loops.emplace(DominatorTree(function));
      std::optional<BasicBlock*> header = counted_by(call.getArgOperand(i), *loops);
      if (!header) return InLoops::kLost;
      if (!*header || loops->getLoopFor(*header)->contains(&call)) continue;
      left.push_back({&call, *header});
      break;
    }
  }
  for (auto [call, header] : left) keep_in_loop(*call, *header);
  return left.empty() ? InLoops::kAll : InLoops::kKept;
}

// Each block before those to which it leads, but for loops; otherwise what leads to no barrier first, since who waits
// at one waits for all that have not returned, and then as Clang made them.
std::vector<const BasicBlock*> in_order(Function& function) {
  DenseMap<const BasicBlock*, unsigned> layout, numbers, missing;
  for (const BasicBlock& block : function) layout.try_emplace(&block, layout.size());
  for (const BasicBlock* block : ReversePostOrderTraversal<const Function*>(&function))
    numbers.try_emplace(block, numbers.size());
  auto is_back = [&](const BasicBlock* from, const BasicBlock* to) { return numbers[to] <= numbers[from]; };
  for (auto [block, number] : numbers)
    for (const BasicBlock* next : successors(block)) missing[next] += !is_back(block, next);
  const Blocks leading = blocks_reaching(blocks_with(function, is_threadgroup_barrier));
  auto comes_first = [&](const BasicBlock* a, const BasicBlock* b) {
    return leading.contains(a) != leading.contains(b) ? leading.contains(b) : layout[a] < layout[b];
  };
  std::set<const BasicBlock*, decltype(comes_first)> ready({&function.getEntryBlock()}, comes_first);
  std::vector<const BasicBlock*> ordered;
  while (!ready.empty()) {
    const BasicBlock* block = ready.extract(ready.begin()).value();
    ordered.push_back(block);
    for (const BasicBlock* next : successors(block))
      if (!is_back(block, next) && --missing[next] == 0) ready.insert(next);
  }
  return ordered;
}

class PointNumbering {
 public:
  PointNumbering(Function& function, LoopEnds ends)
      : function_(function), module_(*function.getParent()), ends_(ends), dominators_(function), loops_(dominators_) {
    uint32_t place = 0;
    for (const BasicBlock* block : in_order(function)) {
      header_places_[block] = place;
      for (const Instruction& instruction : *block) places_[&instruction] = place++;
    }
    for (Instruction& instruction : instructions(function)) {
      if (calls(instruction, kLoopEnter)) enters_.push_back(cast<CallInst>(&instruction));
      if (calls(instruction, kCallEnter)) call_enters_.push_back(cast<CallInst>(&instruction));
      if (calls(instruction, kLoopMerge) || calls(instruction, kCallMerge)) {
        merges_.push_back(cast<CallInst>(&instruction));
        merges_of_[merges_.back()->getArgOperand(0)].push_back(merges_.back());
      }
      if (is_collective(instruction) || is_threadgroup_barrier(instruction) || is_matrix_product(instruction) ||
          calls(instruction, kYieldFunction))
        calls_.push_back(cast<CallInst>(&instruction));
    }
  }

  std::vector<ConvergencePoint> run() {
    if (!calls_.empty()) {
      for (const CallInst* enter : enters_)
        for (const CallInst* call : call_enters_)
          if (dominators_.dominates(call, enter) && !has_merged(call, enter)) calls_around_[enter].push_back(call);
      for (Loop* loop : loops_.getLoopsInPreorder()) find_merges(*loop);
      // All analyses end before the first change.
      std::vector<std::vector<Loop*>> around;
      for (CallInst* call : calls_) around.push_back(loops_around(*call));
      std::vector<BasicBlock*> left;  // the header of the loop that the call ends, or null
      for (size_t i = 0; i < calls_.size(); ++i) {
        auto ended = find_if(reverse(around[i]), [&](Loop* loop) { return !loop->contains(calls_[i]->getParent()); });
        left.push_back(ended == around[i].rend() ? nullptr : (*ended)->getHeader());
      }
      for (size_t i = 0; i < calls_.size(); ++i) {
        CallInst* wait = is_matrix_product(*calls_[i]) ? number(*calls_[i]) : replace(*calls_[i], around[i]);
        if (ends_ == LoopEnds::kKept && left[i]) keep_in_loop(*wait, *left[i]);
      }
    }
    for (const std::vector<CallInst*>* marks : {&merges_, &enters_, &call_enters_})
      for (CallInst* mark : *marks) {
        if (!mark->getType()->isVoidTy()) mark->replaceAllUsesWith(Constant::getNullValue(mark->getType()));
        mark->eraseFromParent();
      }
    return std::move(sites_);
  }

 private:
  bool has_merged(const CallInst* enter, const Instruction* before) const {
    auto merges = merges_of_.find(enter);
    return merges != merges_of_.end() &&
           any_of(merges->second, [&](const CallInst* merge) { return dominators_.dominates(merge, before); });
  }

  // Whether the loop that begins at `enter` has ended before the instruction, by its own mark or by that of a call of
  // the function that it stands in.
  bool merges_before(const CallInst* enter, const Instruction* instruction) const {
    if (has_merged(enter, instruction)) return true;
    auto around = calls_around_.find(enter);
    return around != calls_around_.end() &&
           any_of(around->second, [&](const CallInst* call) { return has_merged(call, instruction); });
  }

  // The merge marks of the source's loop that `loop` is: those of the innermost mark before its header.
  void find_merges(Loop& loop) {
    const Instruction* header = &loop.getHeader()->front();
    const CallInst* innermost = nullptr;
    for (const CallInst* enter : enters_) {
      if (loop.contains(enter->getParent()) || !dominators_.dominates(enter, header) || merges_before(enter, header))
        continue;
      // The mark must not belong to a loop further out, whose body holds a loop that no mark belongs to.
      if (const Loop* parent = loop.getParentLoop(); parent && !parent->contains(enter->getParent())) continue;
      if (!innermost || dominators_.dominates(innermost, enter)) innermost = enter;
    }
    if (innermost) enter_of_[&loop] = innermost;
  }

  // The loops that the call is inside, outermost first.
  std::vector<Loop*> loops_around(const CallInst& call) {
    std::vector<Loop*> around;
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      bool inside = loop->contains(call.getParent());
      if (!inside && enter_of_.contains(loop))
        inside = dominators_.dominates(loop->getHeader(), call.getParent()) && !merges_before(enter_of_[loop], &call);
      if (inside) around.push_back(loop);
    }
    // By their headers, each of which dominates the next. Not by depth: in the control flow graph a loop that always
    // leaves those around it, as before a `return`, is not in them.
    sort(around, [&](Loop* a, Loop* b) { return dominators_.properlyDominates(a->getHeader(), b->getHeader()); });
    return around;
  }

  // The number of the current iteration, 0 in the first.
  Value* counter_of(Loop& loop) {
    Value*& counter = counters_[&loop];
    if (counter) return counter;
    BasicBlock* header = loop.getHeader();
    IRBuilder<> builder(&*header->begin());
    PHINode* phi = builder.CreatePHI(builder.getInt32Ty(), pred_size(header));
    builder.SetInsertPoint(&*header->getFirstInsertionPt());
    Value* next = builder.CreateAdd(phi, builder.getInt32(1));
    for (BasicBlock* before : predecessors(header))
      phi->addIncoming(loop.contains(before) ? next : builder.getInt32(0), before);
    return counter = phi;
  }

  CallInst* number(CallInst& product) {
    if (ends_ != LoopEnds::kKept) throw InternalError("a product of matrices has no counters");
    ConvergencePoint site;
    site.is_product = true;
    site.line = static_cast<uint32_t>(constant(product.getArgOperand(0), "line"));
    Function& function = pseudo_intrinsic(module_, kProductConvergenceFunction, product.getFunctionType());
    set_convergent(function);
    set_ordered(function);
    product.setArgOperand(0, ConstantInt::get(product.getArgOperand(0)->getType(), sites_.size()));
    product.setCalledFunction(&function);
    site.places.push_back(places_.lookup(&product));
    sites_.push_back(std::move(site));
    return &product;
  }

  CallInst* replace(CallInst& call, const std::vector<Loop*>& around) {
    ConvergencePoint site;
    site.line = static_cast<uint32_t>(constant(call.getArgOperand(0), "line"));
    IRBuilder<> builder(&call);
    Value* value = builder.getInt64(0);
    Value* operand = builder.getInt64(0);
    if (calls(call, kYieldFunction)) {
      site.function = kCpuYield;
    } else if (is_collective(call)) {
      site.exchange = static_cast<CpuExchange>(constant(call.getArgOperand(1), "kind"));
      site.width = static_cast<uint32_t>(constant(call.getArgOperand(2), "width"));
      if (Value* combine = call.getArgOperand(3); !isa<ConstantPointerNull>(combine)) {
        site.combine = dyn_cast<Function>(combine);
        if (!site.combine) throw InternalError("an exchange's function is not known");
      }
      site.identity = constant(call.getArgOperand(4), "identity");
      value = call.getArgOperand(5);
      operand = call.getArgOperand(6);
      if (calls(call, kWarpCollectiveFunction)) {
        site.function = static_cast<uint32_t>(constant(call.getArgOperand(7), "function"));
        Value* mask = call.getArgOperand(8);
        if (ends_ == LoopEnds::kCounted)
          operand = builder.CreateOr(operand, builder.CreateShl(builder.CreateZExt(mask, builder.getInt64Ty()), 32));
        else
          mark_mask(mask, builder);
      }
    } else {
      site.is_barrier = true;
    }
    std::vector<Value*> arguments = {builder.getInt32(static_cast<uint32_t>(sites_.size())), value, operand};
    for (Loop* loop : around) {
      site.places.push_back(header_places_.lookup(loop->getHeader()));
      arguments.push_back(counter_of(*loop));
    }
    site.places.push_back(places_.lookup(&call));

    CallInst* wait = builder.CreateCall(&wait_function(around.size()), arguments);
    // Barriers order memory; an exchange of values need not, but must stay where it is among its like.
    if (site.exchange != CpuExchange::kNone) wait->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
    if (!call.getType()->isVoidTy()) call.replaceAllUsesWith(wait);
    call.eraseFromParent();
    sites_.push_back(std::move(site));
    return wait;
  }

  void mark_mask(Value* mask, IRBuilder<>& builder) {
    Function& mark =
        pseudo_intrinsic(module_, kMaskFunction, FunctionType::get(builder.getVoidTy(), {builder.getInt32Ty()}, false));
    set_convergent(mark);
    set_ordered(mark);
    mark.setWillReturn();
    builder.CreateCall(&mark, {mask});
  }

  Function& wait_function(size_t counters) {
    IRBuilder<> builder(function_.getContext());
    std::vector<Type*> types = {builder.getInt32Ty(), builder.getInt64Ty(), builder.getInt64Ty()};
    types.insert(types.end(), counters, builder.getInt32Ty());
    Function& function = pseudo_intrinsic(module_, concat(kConvergenceFunction, counters),
                                          FunctionType::get(builder.getInt64Ty(), types, /*isVarArg=*/false));
    set_convergent(function);
    // Who would wait for ever is told, and the launch ends. So what is the same in all of a loop's iterations leaves
    // it.
    function.setWillReturn();
    return function;
  }

  Function& function_;
  Module& module_;
  LoopEnds ends_;
  DominatorTree dominators_;
  LoopInfo loops_;
  DenseMap<const Instruction*, uint32_t> places_;
  DenseMap<const BasicBlock*, uint32_t> header_places_;  // of a block's first instruction
  std::vector<CallInst*> enters_, call_enters_, merges_, calls_;
  DenseMap<const Value*, SmallVector<const CallInst*, 1>> merges_of_;        // by what they end
  DenseMap<const CallInst*, SmallVector<const CallInst*, 2>> calls_around_;  // of a loop's mark, not ended before it
  DenseMap<const Loop*, const CallInst*> enter_of_;
  DenseMap<const Loop*, Value*> counters_;
  std::vector<ConvergencePoint> sites_;
};

}  // namespace

void mark_iteration(CallInst& wait) {
  SmallVector<Value*> counters(drop_begin(wait.args(), kFirstCounter));
  if (counters.empty()) return;
  IRBuilder<> builder(&wait);
  Function& mark = pseudo_intrinsic(
      *wait.getModule(), concat(kIterationFunction, counters.size()),
      FunctionType::get(builder.getVoidTy(), SmallVector<Type*>(counters.size(), builder.getInt32Ty()), false));
  set_convergent(mark);
  set_ordered(mark);
  mark.setWillReturn();
  builder.CreateCall(&mark, counters);
}

void remove_iterations(Function& function) {
  for (Instruction& instruction : make_early_inc_range(instructions(function)))
    if (name_of_callee(instruction).starts_with(kIterationFunction)) instruction.eraseFromParent();
}

InLoops keep_collectives_in_loops(Function& function) {
  // A loop that an exchange is in again may itself be out of one.
  InLoops first = keep_in_innermost_loops(function), last = first;
  while (last == InLoops::kKept) last = keep_in_innermost_loops(function);
  return last == InLoops::kLost ? last : first;
}

void mark_calls(Module& module) {
  // The mark itself is called by a function of the device library, which loops call.
  SetVector<Function*> with_loops;
  if (Function* mark = module.getFunction(kLoopEnter))
    for (CallInst* call : calls_of(*mark))
      for (CallInst* loop : calls_of(*call->getFunction())) with_loops.insert(loop->getFunction());
  std::vector<CallInst*> marked;
  for (Function* function : with_loops)
    for (CallInst* call : calls_of(*function)) marked.push_back(call);
  if (marked.empty()) return;
  IRBuilder<> builder(module.getContext());
  Function& enter = pseudo_intrinsic(module, kCallEnter, FunctionType::get(builder.getInt32Ty(), false));
  Function& merge =
      pseudo_intrinsic(module, kCallMerge, FunctionType::get(builder.getVoidTy(), {builder.getInt32Ty()}, false));
  for (Function* mark : {&enter, &merge}) set_convergent(*mark);
  for (CallInst* call : marked) {
    builder.SetInsertPoint(call);
    Value* number = builder.CreateCall(&enter);
    builder.SetInsertPoint(call->getNextNode());
    builder.CreateCall(&merge, {number});
  }
}

std::vector<ConvergencePoint> number_convergence_points(Function& function, LoopEnds ends) {
  return PointNumbering(function, ends).run();
}

}  // namespace kiln
