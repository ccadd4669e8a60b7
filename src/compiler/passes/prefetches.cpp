#include "compiler/passes/prefetches.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/MathExtras.h>

#include <cstddef>

#include "compiler/passes/cache_lines.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

// Of one array and one threadgroup: rows, and bytes, of which caches have room for twice as many.
constexpr size_t kFewestRows = 16;
constexpr int64_t kMostBytes = 16 << 10;

class Prefetcher {
 public:
  Prefetcher(Function& function, FunctionAnalysisManager& analyses)
      : function_(function),
        record_(function.getArg(kCpuRecord)),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  bool run() {
    bool has_changed = false;
    for (BasicBlock& block : function_) {
      if (loops_.getLoopFor(&block)) continue;
      for (auto& [base, rows] : rows_of(block)) {
        if (!has_jumps(rows)) continue;
        ask(base, rows);
        has_changed = true;
      }
    }
    return has_changed;
  }

 private:
  struct Row {
    LoadInst* load;
    int64_t begin, end;  // behind the base, in bytes
  };
  using Rows = SmallVector<Row, 0>;

  // In another place for each threadgroup, by what their addresses have in common.
  MapVector<Value*, Rows> rows_of(BasicBlock& block) {
    MapVector<Value*, Rows> rows;
    for (Instruction& instruction : block) {
      auto* load = dyn_cast<LoadInst>(&instruction);
      if (!load || !load->isSimple() || !load->getType()->isVectorTy()) continue;
      APInt offset(64, 0);
      Value* base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
      auto bytes = static_cast<int64_t>(layout_.getTypeStoreSize(load->getType()).getFixedValue());
      if (differs(base)) rows[base].push_back({load, offset.getSExtValue(), offset.getSExtValue() + bytes});
    }
    return rows;
  }

  static bool has_jumps(const Rows& rows) {
    if (rows.size() < kFewestRows) return false;
    size_t jumps = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      jumps += i > 0 && (rows[i].begin < rows[i - 1].begin || rows[i].begin > rows[i - 1].end + kCacheLine);
      bytes += rows[i].end - rows[i].begin;
    }
    return 2 * jumps > rows.size() && bytes <= kMostBytes;
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

  // What it is in the next threadgroup; `made`: what has been made at the builder's place.
  Value* next(Value* value, DenseMap<Value*, Value*>& made, IRBuilder<>& builder) {
    if (!differs(value)) return value;
    if (auto known = made.find(value); known != made.end()) return known->second;
    if (is_position(value)) return made[value] = builder.CreateAdd(value, builder.getInt32(1));
    SmallVector<Value*> operands;
    for (Value* operand : cast<Instruction>(value)->operands()) operands.push_back(next(operand, made, builder));
    Instruction* one = cast<Instruction>(value)->clone();
    for (auto [use, operand] : zip(one->operands(), operands)) use.set(operand);
    one->dropPoisonGeneratingFlags();
    return made[value] = builder.Insert(one);
  }

  // Each line once, where the row is loaded.
  void ask(Value* base, const Rows& rows) {
    IRBuilder<> builder(rows[0].load);
    DenseMap<Value*, Value*> made;
    Value* address = next(base, made, builder);
    SmallVector<int64_t> asked;
    for (const Row& row : rows) {
      builder.SetInsertPoint(row.load);
      for (int64_t line = divideFloorSigned(row.begin, kCacheLine); line * kCacheLine < row.end; ++line) {
        if (is_contained(asked, line)) continue;
        asked.push_back(line);
        ask_for_line(builder, builder.CreateConstGEP1_64(builder.getInt8Ty(), address,
                                                         static_cast<uint64_t>(line * kCacheLine)));
      }
    }
  }

  Function& function_;
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
