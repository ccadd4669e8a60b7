#include "compiler/passes/prefetches.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/MathExtras.h>

#include <cstddef>
#include <set>

#include "compiler/passes/cache_lines.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

// Bytes that a threadgroup reads, a page, beyond which no processor's prefetcher goes, or writes.
constexpr int64_t kFewestRead = 4096, kFewestWritten = 1024;

// In threadgroups. What the next one reads first would come too late where it is asked for last.
constexpr uint32_t kAhead = 2;

// Of one array and one threadgroup: rows with jumps, and bytes, of which caches have room for thrice as many.
constexpr size_t kFewestRows = 16;
constexpr int64_t kMostBytes = 16 << 10;

class Prefetcher {
 public:
  Prefetcher(Function& function, FunctionAnalysisManager& analyses)
      : function_(function),
        analyses_(analyses),
        record_(function.getArg(kCpuRecord)),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  bool run() {
    MapVector<const Value*, Parts> arrays;
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      for (auto& [base, rows] : rows_of(*block)) add(*block, base, rows, arrays[getUnderlyingObject(base)]);
    bool has_changed = false;
    for (auto& [array, parts] : arrays) {
      int64_t bytes = 0;
      for (const Part& part : parts) bytes += part.bytes;
      if (bytes > kMostBytes) continue;
      for (const Part& part : parts) ask(part);
      has_changed |= !parts.empty();
    }
    return has_changed;
  }

 private:
  struct Row {
    Instruction* access;
    int64_t begin, end;  // behind the base, in bytes
  };
  using Rows = SmallVector<Row, 0>;

  // Of an array, what is accessed at one base, by a loop with all its iterations.
  struct Part {
    Value* base;
    const void* place;  // where a loop begins, or the base; what comes later at the same place is left out
    Rows rows;
    std::set<int64_t> lines;  // behind the base, of one iteration
    int64_t bytes;
    bool is_written;
  };
  using Parts = SmallVector<Part, 0>;

  // In another place for each threadgroup, by what their addresses have in common.
  MapVector<Value*, Rows> rows_of(BasicBlock& block) {
    MapVector<Value*, Rows> rows;
    for (Instruction& access : block) {
      Value* place = getLoadStorePointerOperand(&access);
      if (!place || access.isVolatile() || access.isAtomic()) continue;
      Type* type = getLoadStoreType(&access);
      if (!type->isVectorTy()) continue;
      APInt offset(64, 0);
      Value* base = place->stripAndAccumulateConstantOffsets(layout_, offset, true);
      auto bytes = static_cast<int64_t>(layout_.getTypeStoreSize(type).getFixedValue());
      if (differs(base)) rows[base].push_back({&access, offset.getSExtValue(), offset.getSExtValue() + bytes});
    }
    return rows;
  }

  // Where a processor does not see for itself what later threadgroups access, and it is not there already.
  void add(BasicBlock& block, Value* base, Rows& rows, Parts& parts) {
    Part part{base, base, std::move(rows), {}, 0, false};
    for (const Row& row : part.rows) {
      part.is_written |= isa<StoreInst>(row.access);
      for (int64_t line = divideFloorSigned(row.begin, kCacheLine); line * kCacheLine < row.end; ++line)
        part.lines.insert(line);
    }
    part.bytes = static_cast<int64_t>(part.lines.size()) * kCacheLine;
    if (Loop* loop = loops_.getLoopFor(&block); loop && !repeats(*loop, part)) return;
    if (part.bytes < (part.is_written ? kFewestWritten : kFewestRead) && !has_jumps(part.rows)) return;
    if (none_of(parts, [&](const Part& other) { return other.place == part.place; })) parts.push_back(std::move(part));
  }

  // Whether each of a known number of iterations accesses what follows.
  bool repeats(const Loop& loop, Part& part) {
    if (loop.getParentLoop()) return false;
    auto& evolution = analyses_.getResult<ScalarEvolutionAnalysis>(function_);
    auto* growing = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(part.base));
    if (!growing || growing->getLoop() != &loop || !growing->isAffine()) return false;
    auto* step = dyn_cast<SCEVConstant>(growing->getStepRecurrence(evolution));
    unsigned count = evolution.getSmallConstantTripCount(&loop);
    if (!step || !step->getAPInt().isStrictlyPositive() || step->getAPInt().sgt(part.bytes) || count == 0) return false;
    part.bytes += (count - 1) * step->getAPInt().getSExtValue();
    part.place = growing->getStart();
    return true;
  }

  static bool has_jumps(const Rows& rows) {
    if (rows.size() < kFewestRows) return false;
    size_t jumps = 0;
    for (size_t i = 1; i < rows.size(); ++i)
      jumps += rows[i].begin < rows[i - 1].begin || rows[i].begin > rows[i - 1].end + kCacheLine;
    return 2 * jumps > rows.size();
  }

  // The threadgroup's place in x.
  bool is_position(const Value* value) const {
    const auto* load = dyn_cast<LoadInst>(value);
    if (!load || !load->getType()->isIntegerTy(32)) return false;
    APInt offset(64, 0);
    return load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true) == record_ &&
           offset == offsetof(CpuThread, values) + kThreadgroupPosition * sizeof(uint32_t);
  }

  // Whether arithmetic makes it from that place, which may be done with any numbers: a division may not.
  bool differs(const Value* value) {
    if (is_position(value)) return true;
    if (auto* operation = dyn_cast<BinaryOperator>(value); operation && operation->isIntDivRem()) return false;
    if (!isa<BinaryOperator, CastInst, FreezeInst, GetElementPtrInst>(value)) return false;
    if (auto known = differs_.find(value); known != differs_.end()) return known->second;
    bool does = any_of(cast<Instruction>(value)->operands(), [&](const Use& operand) { return differs(operand); });
    return differs_[value] = does;
  }

  // What it is in the threadgroup that is asked for; `made`: what has been made at the builder's place.
  Value* later(Value* value, DenseMap<Value*, Value*>& made, IRBuilder<>& builder) {
    if (!differs(value)) return value;
    if (auto known = made.find(value); known != made.end()) return known->second;
    if (is_position(value)) return made[value] = builder.CreateAdd(value, builder.getInt32(kAhead));
    SmallVector<Value*> operands;
    for (Value* operand : cast<Instruction>(value)->operands()) operands.push_back(later(operand, made, builder));
    Instruction* one = cast<Instruction>(value)->clone();
    for (auto [use, operand] : zip(one->operands(), operands)) use.set(operand);
    one->dropPoisonGeneratingFlags();
    return made[value] = builder.Insert(one);
  }

  // Each line once, in the order of memory whatever the order of the rows is: what is read as many with one row as with
  // another, unless finish_chains puts them first; what is written at once, since LLVM moves nothing across these
  // calls, and loads are to come before stores.
  void ask(const Part& part) {
    const Rows& rows = part.rows;
    IRBuilder<> builder(rows[0].access);
    if (part.is_written) {
      BasicBlock* block = builder.GetInsertBlock();
      auto* base = cast<Instruction>(part.base);
      builder.SetInsertPoint(base->getParent() == block ? base->getNextNode() : &*block->getFirstInsertionPt());
    }
    DenseMap<Value*, Value*> made;
    Value* address = later(part.base, made, builder);
    size_t asked = 0;
    auto line = part.lines.begin();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!part.is_written) builder.SetInsertPoint(rows[i].access);
      for (; asked * rows.size() < (i + 1) * part.lines.size(); ++asked, ++line)
        ask_for_line(
            builder,
            builder.CreateConstGEP1_64(builder.getInt8Ty(), address, static_cast<uint64_t>(*line * kCacheLine)),
            Cache::kSecond);
    }
  }

  Function& function_;
  FunctionAnalysisManager& analyses_;
  Argument* record_;
  const DataLayout& layout_;
  LoopInfo& loops_;
  DenseMap<const Value*, bool> differs_;
};

}  // namespace

PreservedAnalyses PrefetchPass::run(Function& function, FunctionAnalysisManager& analyses) {
  return Prefetcher(function, analyses).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
