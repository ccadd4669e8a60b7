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

// The first operand of `__kiln_wait` that is a counter.
constexpr unsigned kFirstCounter = 3;

StringRef name_of_callee(const Instruction& instruction) {
  const auto* call = dyn_cast<CallInst>(&instruction);
  return call && call->getCalledFunction() ? call->getCalledFunction()->getName() : "";
}

// The header of the loop that still increments the counter; null if none does, since the loop has been unrolled.
// Nothing if the value is not one counter, but a phi of several iterations.
std::optional<BasicBlock*> counted_by(Value* counter, const LoopInfo& loops) {
  if (isa<Constant>(counter)) return nullptr;
  if (auto* next = dyn_cast<BinaryOperator>(counter); next && isa<Constant>(next->getOperand(1)))
    return counted_by(next->getOperand(0), loops);
  auto* phi = dyn_cast<PHINode>(counter);
  if (!phi) return std::nullopt;
  if (loops.isLoopHeader(phi->getParent())) return phi->getParent();
  Value* common = phi->hasConstantValue();
  return common ? counted_by(common, loops) : std::nullopt;
}

// Adds an ordering back edge to the header.
void keep_in_loop(CallInst& call, BasicBlock& header) {
  BasicBlock& from = add_ordering_edge(*call.getNextNode(), header);
  for (PHINode& phi : header.phis()) phi.addIncoming(Constant::getNullValue(phi.getType()), &from);
}

// Does so for the innermost loop that each collective has left.
LoopMembership keep_in_innermost_loops(Function& function) {
  std::optional<LoopInfo> loops;  // computed on demand
  SmallVector<std::pair<CallInst*, BasicBlock*>> left;
  for (Instruction& instruction : instructions(function)) {
    StringRef name = name_of_callee(instruction);
    const bool is_mark = name.starts_with(kIterationFunction);
    if (!is_mark && (!name.starts_with(kConvergenceFunction) || name == kProductConvergenceFunction)) continue;
    auto& call = cast<CallInst>(instruction);
    for (unsigned i = call.arg_size(); i-- > (is_mark ? 0 : kFirstCounter);) {
      if (!loops) loops.emplace(DominatorTree(function));
      std::optional<BasicBlock*> header = counted_by(call.getArgOperand(i), *loops);
      if (!header) return LoopMembership::kLost;
      if (!*header || loops->getLoopFor(*header)->contains(&call)) continue;
      left.push_back({&call, *header});
      break;
    }
  }
  for (auto [call, header] : left) keep_in_loop(*call, *header);
  return left.empty() ? LoopMembership::kAll : LoopMembership::kKept;
}

// Each block before its successors, except for back edges. Otherwise blocks that lead to no barrier come first, since
// threads at a barrier wait for all that have not returned. The rest is in the order in which Clang made it.
std::vector<const BasicBlock*> in_order(Function& function) {
  DenseMap<const BasicBlock*, unsigned> layout, numbers, pending;
  for (const BasicBlock& block : function) layout.try_emplace(&block, layout.size());
  for (const BasicBlock* block : ReversePostOrderTraversal<const Function*>(&function))
    numbers.try_emplace(block, numbers.size());
  auto is_back = [&](const BasicBlock* from, const BasicBlock* to) { return numbers[to] <= numbers[from]; };
  for (auto [block, number] : numbers)
    for (const BasicBlock* next : successors(block)) pending[next] += !is_back(block, next);
  const Blocks reaching_barrier = blocks_reaching(blocks_with(function, is_threadgroup_barrier));
  auto comes_first = [&](const BasicBlock* a, const BasicBlock* b) {
    return reaching_barrier.contains(a) != reaching_barrier.contains(b) ? reaching_barrier.contains(b)
                                                                        : layout[a] < layout[b];
  };
  std::set<const BasicBlock*, decltype(comes_first)> ready({&function.getEntryBlock()}, comes_first);
  std::vector<const BasicBlock*> ordered;
  while (!ready.empty()) {
    const BasicBlock* block = ready.extract(ready.begin()).value();
    ordered.push_back(block);
    for (const BasicBlock* next : successors(block))
      if (!is_back(block, next) && --pending[next] == 0) ready.insert(next);
  }
  return ordered;
}

class PointNumbering {
 public:
  PointNumbering(Function& function, LoopEnds ends)
      : function_(function), module_(*function.getParent()), ends_(ends), dominators_(function), loops_(dominators_) {
    uint32_t position = 0;
    for (const BasicBlock* block : in_order(function)) {
      header_positions_[block] = position;
      for (const Instruction& instruction : *block) positions_[&instruction] = position++;
    }
    for (Instruction& instruction : instructions(function)) {
      if (calls(instruction, kLoopEnterFunction)) enters_.push_back(cast<CallInst>(&instruction));
      if (calls(instruction, kCallEnterFunction)) call_enters_.push_back(cast<CallInst>(&instruction));
      if (calls(instruction, kLoopMergeFunction) || calls(instruction, kCallMergeFunction)) {
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
      std::vector<BasicBlock*> left;  // the header of the loop that the call leaves, or null
      for (size_t i = 0; i < calls_.size(); ++i) {
        auto ended = find_if(reverse(around[i]), [&](Loop* loop) { return !loop->contains(calls_[i]->getParent()); });
        left.push_back(ended == around[i].rend() ? nullptr : (*ended)->getHeader());
      }
      for (size_t i = 0; i < calls_.size(); ++i) {
        CallInst* point_call = is_matrix_product(*calls_[i]) ? number(*calls_[i]) : replace(*calls_[i], around[i]);
        if (ends_ == LoopEnds::kKept && left[i]) keep_in_loop(*point_call, *left[i]);
      }
    }
    for (const std::vector<CallInst*>* marks : {&merges_, &enters_, &call_enters_})
      for (CallInst* mark : *marks) {
        if (!mark->getType()->isVoidTy()) mark->replaceAllUsesWith(Constant::getNullValue(mark->getType()));
        mark->eraseFromParent();
      }
    return std::move(points_);
  }

 private:
  bool has_merged(const CallInst* enter, const Instruction* before) const {
    auto merges = merges_of_.find(enter);
    return merges != merges_of_.end() &&
           any_of(merges->second, [&](const CallInst* merge) { return dominators_.dominates(merge, before); });
  }

  // Whether the loop that begins at `enter` has ended before the instruction, by its own mark or by the mark of a call
  // of the function that contains the loop.
  bool merges_before(const CallInst* enter, const Instruction* instruction) const {
    if (has_merged(enter, instruction)) return true;
    auto around = calls_around_.find(enter);
    return around != calls_around_.end() &&
           any_of(around->second, [&](const CallInst* call) { return has_merged(call, instruction); });
  }

  // Finds the marks of the source's loop that `loop` is: those of the innermost enter mark before its header.
  void find_merges(Loop& loop) {
    const Instruction* header = &loop.getHeader()->front();
    const CallInst* innermost = nullptr;
    for (const CallInst* enter : enters_) {
      if (loop.contains(enter->getParent()) || !dominators_.dominates(enter, header) || merges_before(enter, header))
        continue;
      // The mark must not belong to an outer loop whose body contains a loop without a mark.
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
    // By their headers, each of which dominates the next. Not by depth: in the control flow graph, a loop that always
    // leaves the loops around it, as before a `return`, is not in them.
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
    ConvergencePoint point;
    point.is_product = true;
    point.line = static_cast<uint32_t>(constant(product.getArgOperand(0), "line"));
    Function& function = pseudo_intrinsic(module_, kProductConvergenceFunction, product.getFunctionType());
    product.setArgOperand(0, ConstantInt::get(product.getArgOperand(0)->getType(), points_.size()));
    product.setCalledFunction(&function);
    point.places.push_back(positions_.lookup(&product));
    points_.push_back(std::move(point));
    return &product;
  }

  CallInst* replace(CallInst& call, const std::vector<Loop*>& around) {
    ConvergencePoint point;
    point.line = static_cast<uint32_t>(constant(call.getArgOperand(0), "line"));
    IRBuilder<> builder(&call);
    Value* value = builder.getInt64(0);
    Value* operand = builder.getInt64(0);
    if (calls(call, kYieldFunction)) {
      point.function = kCpuYield;
    } else if (is_collective(call)) {
      point.exchange = static_cast<CpuExchange>(constant(call.getArgOperand(1), "kind"));
      point.width = static_cast<uint32_t>(constant(call.getArgOperand(2), "width"));
      if (Value* combine = call.getArgOperand(3); !isa<ConstantPointerNull>(combine)) {
        point.combine = dyn_cast<Function>(combine);
        if (!point.combine) throw InternalError("an exchange's function is not known");
      }
      point.identity = constant(call.getArgOperand(4), "identity");
      value = call.getArgOperand(5);
      operand = call.getArgOperand(6);
      if (calls(call, kWarpCollectiveFunction)) {
        point.function = static_cast<uint32_t>(constant(call.getArgOperand(7), "function"));
        Value* mask = call.getArgOperand(8);
        if (ends_ == LoopEnds::kCounted)
          operand = builder.CreateOr(operand, builder.CreateShl(builder.CreateZExt(mask, builder.getInt64Ty()), 32));
        else
          mark_mask(mask, builder);
      }
    } else {
      point.is_barrier = true;
    }
    std::vector<Value*> arguments = {builder.getInt32(static_cast<uint32_t>(points_.size())), value, operand};
    for (Loop* loop : around) {
      point.places.push_back(header_positions_.lookup(loop->getHeader()));
      arguments.push_back(counter_of(*loop));
    }
    point.places.push_back(positions_.lookup(&call));

    CallInst* replacement = builder.CreateCall(&point_function(around.size()), arguments);
    // Barriers order memory. A collective need not, but must stay in order with other collectives.
    if (point.exchange != CpuExchange::kNone) replacement->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
    if (!call.getType()->isVoidTy()) call.replaceAllUsesWith(replacement);
    call.eraseFromParent();
    points_.push_back(std::move(point));
    return replacement;
  }

  void mark_mask(Value* mask, IRBuilder<>& builder) {
    Function& mark =
        pseudo_intrinsic(module_, kMaskFunction, FunctionType::get(builder.getVoidTy(), {builder.getInt32Ty()}, false));
    builder.CreateCall(&mark, {mask});
  }

  Function& point_function(size_t counters) {
    IRBuilder<> builder(function_.getContext());
    std::vector<Type*> types = {builder.getInt32Ty(), builder.getInt64Ty(), builder.getInt64Ty()};
    types.insert(types.end(), counters, builder.getInt32Ty());
    return pseudo_intrinsic(module_, concat(kConvergenceFunction, counters),
                            FunctionType::get(builder.getInt64Ty(), types, /*isVarArg=*/false));
  }

  Function& function_;
  Module& module_;
  LoopEnds ends_;
  DominatorTree dominators_;
  LoopInfo loops_;
  DenseMap<const Instruction*, uint32_t> positions_;
  DenseMap<const BasicBlock*, uint32_t> header_positions_;  // of the first instruction of a block
  std::vector<CallInst*> enters_, call_enters_, merges_, calls_;
  DenseMap<const Value*, SmallVector<const CallInst*, 1>> merges_of_;  // by the enter mark that they end
  DenseMap<const CallInst*, SmallVector<const CallInst*, 2>>
      calls_around_;  // the calls whose marks enclose the mark of a loop
  DenseMap<const Loop*, const CallInst*> enter_of_;
  DenseMap<const Loop*, Value*> counters_;
  std::vector<ConvergencePoint> points_;
};

}  // namespace

void mark_iteration(CallInst& collective) {
  SmallVector<Value*> counters(drop_begin(collective.args(), kFirstCounter));
  if (counters.empty()) return;
  IRBuilder<> builder(&collective);
  Function& mark = pseudo_intrinsic(
      *collective.getModule(), concat(kIterationFunction, counters.size()),
      FunctionType::get(builder.getVoidTy(), SmallVector<Type*>(counters.size(), builder.getInt32Ty()), false));
  builder.CreateCall(&mark, counters);
}

void remove_iterations(Function& function) {
  for (Instruction& instruction : make_early_inc_range(instructions(function)))
    if (name_of_callee(instruction).starts_with(kIterationFunction)) instruction.eraseFromParent();
}

LoopMembership keep_collectives_in_loops(Function& function) {
  // A loop that a collective is in again may itself have left an outer loop.
  LoopMembership first = keep_in_innermost_loops(function), last = first;
  while (last == LoopMembership::kKept) last = keep_in_innermost_loops(function);
  return last == LoopMembership::kLost ? last : first;
}

void mark_calls(Module& module) {
  // The mark itself is called by a function of the device library, which the loops call.
  SetVector<Function*> with_loops;
  if (Function* mark = module.getFunction(kLoopEnterFunction))
    for (CallInst* call : calls_of(*mark))
      for (CallInst* loop : calls_of(*call->getFunction())) with_loops.insert(loop->getFunction());
  std::vector<CallInst*> marked;
  for (Function* function : with_loops)
    for (CallInst* call : calls_of(*function)) marked.push_back(call);
  if (marked.empty()) return;
  IRBuilder<> builder(module.getContext());
  Function& enter = pseudo_intrinsic(module, kCallEnterFunction, FunctionType::get(builder.getInt32Ty(), false));
  Function& merge = pseudo_intrinsic(module, kCallMergeFunction,
                                     FunctionType::get(builder.getVoidTy(), {builder.getInt32Ty()}, false));
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
