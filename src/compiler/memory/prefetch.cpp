#include "compiler/memory/prefetch.h"

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

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <set>

#include "compiler/ir/cache_lines.h"
#include "compiler/ir/invariant_loads.h"
#include "compiler/ir/metadata.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

// Bytes that a threadgroup reads, a page, beyond which no processor's prefetcher goes, or writes.
constexpr int64_t kFewestRead = 4096, kFewestWritten = 1024;

// Of one array and one threadgroup: rows with jumps, and bytes, of which caches have room for thrice as many.
constexpr size_t kFewestRows = 16;
constexpr int64_t kMostBytes = 64 << 10;
constexpr size_t kMostLines = kMostBytes / kCacheLine;

// Bytes, of a row that one register is loaded from for each cache line.
constexpr int64_t kTouch = sizeof(uint32_t), kBetweenTouches = kCacheLine / 2;

class Prefetcher {
 public:
  Prefetcher(Function& function, FunctionAnalysisManager& analyses, uint32_t ahead, uint32_t register_bytes)
      : function_(function),
        analyses_(analyses),
        ahead_(ahead),
        register_bytes_(register_bytes),
        record_(function.getArg(kCpuRecord)),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  bool run() {
    MapVector<const Value*, Parts> arrays;
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      for (auto& [array, parts] : parts_of(*block)) add(parts, arrays[array]);
    bool has_changed = false;
    for (auto& [array, parts] : arrays) {
      if (bytes_of(parts) > kMostBytes) continue;
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
    Value* base = nullptr;
    const void* place = nullptr;  // where a loop begins, or the base
    Rows rows;
    std::set<int64_t> lines;  // behind the base, of one iteration
    size_t iterations = 1;
    int64_t step = 0;             // to the next one, in bytes
    std::set<int64_t> all_lines;  // behind the place
    bool is_written = false;
  };
  using Parts = SmallVector<Part, 0>;

  // In another place for each threadgroup, by what their addresses have in common.
  MapVector<Value*, Rows> rows_of(BasicBlock& block) {
    MapVector<Value*, Rows> rows;
    for (Instruction& access : block) {
      Value* place = getLoadStorePointerOperand(&access);
      if (!place || access.isVolatile() || access.isAtomic() || access.hasMetadata(kAddressOrdered)) continue;
      Type* type = getLoadStoreType(&access);
      if (!type->isVectorTy()) continue;
      APInt offset(64, 0);
      Value* base = place->stripAndAccumulateConstantOffsets(layout_, offset, true);
      auto bytes = static_cast<int64_t>(layout_.getTypeStoreSize(type).getFixedValue());
      if (is_divergent(base)) rows[base].push_back({&access, offset.getSExtValue(), offset.getSExtValue() + bytes});
    }
    return rows;
  }

  // By array.
  MapVector<const Value*, Parts> parts_of(BasicBlock& block) {
    MapVector<const Value*, Parts> arrays;
    for (auto& [base, rows] : rows_of(block))
      if (std::optional<Part> part = part_of(block, base, rows)) arrays[getUnderlyingObject(base)].push_back(*part);
    return arrays;
  }

  std::optional<Part> part_of(BasicBlock& block, Value* base, Rows& rows) {
    Part part;
    part.base = base;
    part.place = base;
    part.rows = std::move(rows);
    for (const Row& row : part.rows) {
      part.is_written |= isa<StoreInst>(row.access);
      for (int64_t line = divideFloorSigned(row.begin, kCacheLine); line * kCacheLine < row.end; ++line)
        part.lines.insert(line);
    }
    if (Loop* loop = loops_.getLoopFor(&block); loop && !repeats(*loop, part)) return std::nullopt;
    for (int64_t i = 0; i < static_cast<int64_t>(part.iterations); ++i)
      for (int64_t line : part.lines) part.all_lines.insert(line + divideFloorSigned(i * part.step, kCacheLine));
    return part;
  }

  // What a processor does not see for itself that later threadgroups access, and is not there already.
  static void add(Parts& parts, Parts& to) {
    auto written = std::stable_partition(parts.begin(), parts.end(), [](const Part& part) { return !part.is_written; });
    bool is_much_read = bytes_of(ArrayRef(parts.begin(), written)) >= kFewestRead;
    bool is_much_written = bytes_of(ArrayRef(written, parts.end())) >= kFewestWritten;
    for (Part& part : parts) {
      if (!(part.is_written ? is_much_written : is_much_read) && !has_jumps(part)) continue;
      auto is_prefetched = [&](const Part& other) {
        return other.place == part.place && std::includes(other.all_lines.begin(), other.all_lines.end(),
                                                          part.all_lines.begin(), part.all_lines.end());
      };
      if (none_of(to, is_prefetched)) to.push_back(std::move(part));
    }
  }

  static int64_t bytes_of(ArrayRef<Part> parts) {
    int64_t lines = 0;
    for (const Part& part : parts) lines += static_cast<int64_t>(part.all_lines.size());
    return lines * kCacheLine;
  }

  // Whether a known number of iterations each access what is a known distance further on.
  bool repeats(const Loop& loop, Part& part) {
    if (loop.getParentLoop()) return false;
    auto& evolution = analyses_.getResult<ScalarEvolutionAnalysis>(function_);
    const SCEV* base = evolution.getSCEV(part.base);
    std::optional<int64_t> step = step_of(*base, loop, evolution);
    part.iterations = evolution.getSmallConstantTripCount(&loop);
    if (!step || *step <= 0 || part.iterations == 0 || part.iterations * part.lines.size() > kMostLines) return false;
    part.step = *step;
    LoopToScevMapT first{{&loop, evolution.getZero(Type::getInt64Ty(function_.getContext()))}};
    part.place = SCEVLoopAddRecRewriter::rewrite(base, first, evolution);
    return true;
  }

  // If no index wraps.
  static std::optional<int64_t> step_of(const SCEV& value, const Loop& loop, ScalarEvolution& evolution) {
    if (evolution.isLoopInvariant(&value, &loop)) return 0;
    if (auto* cast = dyn_cast<SCEVCastExpr>(&value); cast && cast->getSCEVType() != scTruncate)
      return step_of(*cast->getOperand(), loop, evolution);
    if (auto* growing = dyn_cast<SCEVAddRecExpr>(&value)) {
      auto* step = dyn_cast<SCEVConstant>(growing->getStepRecurrence(evolution));
      if (!step || growing->getLoop() != &loop || !growing->isAffine()) return std::nullopt;
      return step->getAPInt().trySExtValue();
    }
    if (auto* product = dyn_cast<SCEVMulExpr>(&value); product && product->getNumOperands() == 2) {
      auto* factor = dyn_cast<SCEVConstant>(product->getOperand(0));
      std::optional<int64_t> step = step_of(*product->getOperand(1), loop, evolution);
      if (!factor || !step || factor->getAPInt().abs().ugt(kMostBytes) || std::abs(*step) > kMostBytes)
        return std::nullopt;
      return *step * factor->getAPInt().getSExtValue();
    }
    if (!isa<SCEVAddExpr>(value)) return std::nullopt;
    int64_t sum = 0;
    for (const SCEV* operand : value.operands()) {
      std::optional<int64_t> step = step_of(*operand, loop, evolution);
      if (!step || std::abs(*step) > kMostBytes) return std::nullopt;
      sum += *step;
    }
    return sum;
  }

  static bool has_jumps(const Part& part) {
    const Rows& rows = part.rows;
    if (part.iterations * rows.size() < kFewestRows) return false;
    auto is_jump = [](const Row& row, int64_t begin) { return begin < row.begin || begin > row.end + kCacheLine; };
    size_t jumps = part.iterations > 1 && is_jump(rows.back(), rows[0].begin + part.step);
    for (size_t i = 1; i < rows.size(); ++i) jumps += is_jump(rows[i - 1], rows[i].begin);
    return 2 * jumps > rows.size();
  }

  // The axis of which it is the threadgroup's place.
  std::optional<unsigned> axis_of(const Value* value) const {
    const auto* load = dyn_cast<LoadInst>(value);
    if (!load || !load->getType()->isIntegerTy(32)) return std::nullopt;
    APInt offset(64, 0);
    if (load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true) != record_)
      return std::nullopt;
    for (unsigned axis = 0; axis < 3; ++axis)
      if (offset == offset_of(kThreadgroupPosition, axis)) return axis;
    return std::nullopt;
  }

  static uint64_t offset_of(CpuThreadValue value, unsigned axis) {
    return offsetof(CpuThread, values) + (value + axis) * sizeof(uint32_t);
  }

  // The threadgroup that is asked for is further on in the first axis that has several.
  Value* later_position(LoadInst& position, unsigned axis, IRBuilder<>& builder) {
    auto has_one = [&](unsigned other) {
      uint64_t offset = offset_of(kThreadgroupsPerGrid, other);
      LoadInst* groups = load_invariant(builder, builder.getInt32Ty(), record_, offset);
      return builder.CreateICmpEQ(groups, builder.getInt32(1));
    };
    Value* is_first = builder.CreateNot(has_one(axis));
    for (unsigned before = 0; before < axis; ++before) is_first = builder.CreateAnd(has_one(before), is_first);
    Value* distance = builder.CreateSelect(is_first, builder.getInt32(ahead_), builder.getInt32(0));
    return builder.CreateAdd(&position, distance);
  }

  // Whether arithmetic makes it from that place, which may be done with any numbers: a division may not.
  bool is_divergent(const Value* value) {
    if (axis_of(value)) return true;
    if (auto* operation = dyn_cast<BinaryOperator>(value); operation && operation->isIntDivRem()) return false;
    if (!isa<BinaryOperator, CastInst, FreezeInst, GetElementPtrInst>(value)) return false;
    if (auto known = is_divergent_.find(value); known != is_divergent_.end()) return known->second;
    bool does = any_of(cast<Instruction>(value)->operands(), [&](const Use& operand) { return is_divergent(operand); });
    return is_divergent_[value] = does;
  }

  // What it is in the threadgroup that is asked for: at the builder's place, or where the value itself is made, if that
  // is before the loop around the builder; `made`: what has been made.
  Value* later(Value* value, DenseMap<Value*, Value*>& made, IRBuilder<>& builder) {
    if (!is_divergent(value)) return value;
    if (auto known = made.find(value); known != made.end()) return known->second;
    auto* instruction = cast<Instruction>(value);
    const Loop* loop = loops_.getLoopFor(builder.GetInsertBlock());
    IRBuilder<> before(instruction->getNextNode());
    IRBuilder<>& place = loop && loop->isLoopInvariant(value) ? before : builder;
    if (std::optional<unsigned> axis = axis_of(value))
      return made[value] = later_position(cast<LoadInst>(*instruction), *axis, place);
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) operands.push_back(later(operand, made, builder));
    Instruction* one = instruction->clone();
    for (auto [use, operand] : zip(one->operands(), operands)) use.set(operand);
    one->dropPoisonGeneratingFlags();
    return made[value] = place.Insert(one);
  }

  // Each line once, in the order of memory whatever the order of the rows is: what is read as many with one row as with
  // another, unless schedule_for_pressure puts them first; what is written at once, since LLVM moves nothing across
  // these calls, and loads are to come before stores.
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
      if (!part.is_written) {
        builder.SetInsertPoint(rows[i].access);
        touch(rows[i], builder);
      }
      for (; asked * rows.size() < (i + 1) * part.lines.size(); ++asked, ++line)
        prefetch_line(
            builder,
            builder.CreateConstGEP1_64(builder.getInt8Ty(), address, static_cast<uint64_t>(*line * kCacheLine)),
            Cache::kSecond);
    }
  }

  // Nobody wants what it loads, of what is loaded right behind it.
  void touch(const Row& row, IRBuilder<>& builder) const {
    auto& load = cast<LoadInst>(*row.access);
    if (register_bytes_ < kCacheLine) return;
    for (int64_t offset = 0; row.begin + offset + kTouch <= row.end; offset += kBetweenTouches) {
      Value* place =
          builder.CreateConstGEP1_64(builder.getInt8Ty(), load.getPointerOperand(), static_cast<uint64_t>(offset));
      builder.CreateAlignedLoad(builder.getInt32Ty(), place, Align(1), /*isVolatile=*/true);
    }
  }

  Function& function_;
  FunctionAnalysisManager& analyses_;
  const uint32_t ahead_, register_bytes_;
  Argument* record_;
  const DataLayout& layout_;
  LoopInfo& loops_;
  DenseMap<const Value*, bool> is_divergent_;
};

}  // namespace

PreservedAnalyses PrefetchPass::run(Function& function, FunctionAnalysisManager& analyses) {
  return Prefetcher(function, analyses, ahead_, register_bytes_).run() ? PreservedAnalyses::none()
                                                                       : PreservedAnalyses::all();
}

}  // namespace kiln
