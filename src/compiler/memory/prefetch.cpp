#include "compiler/memory/prefetch.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
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
#include "compiler/ir/remarks.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr const char* kPrefetch = "prefetch";

// The lines that the next threadgroup reads first would arrive too late.
constexpr uint32_t kThreadgroupsAhead = 2;

// Bytes that a threadgroup reads (a page, at whose end any hardware prefetcher stops) or writes.
constexpr int64_t kFewestRead = 4096, kFewestWritten = 1024;

// Per array and threadgroup: accesses with jumps, and bytes. The caches have room for three times as many.
constexpr size_t kFewestAccesses = 16;
constexpr int64_t kMostBytes = 64 << 10;
constexpr size_t kMostLines = kMostBytes / kCacheLine;

// Bytes of a scalar load that touches a line, and the distance between two, where each cache line fills one register.
constexpr int64_t kTouch = sizeof(uint32_t), kBetweenTouches = kCacheLine / 2;

class Prefetcher {
 public:
  Prefetcher(Function& function, FunctionAnalysisManager& analyses, const VectorIsa& vector_isa)
      : function_(function),
        analyses_(analyses),
        isa_(vector_isa),
        record_(function.getArg(kCpuRecord)),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)) {}

  bool run() {
    MapVector<const Value*, Footprints> arrays;
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      for (auto& [array, footprints] : footprints_of(*block)) add(footprints, arrays[array]);
    bool has_changed = false;
    for (auto& [array, footprints] : arrays) {
      if (bytes_of(footprints) > kMostBytes) {
        remark(kPrefetch, *footprints[0].accesses[0].instruction, "not for this array: a threadgroup accesses ",
               bytes_of(footprints), " bytes of it, and caches have room for ", kMostBytes);
        continue;
      }
      for (const Footprint& footprint : footprints) add_prefetches(footprint);
      has_changed |= !footprints.empty();
    }
    return has_changed;
  }

 private:
  struct Access {
    Instruction* instruction;
    int64_t begin, end;  // offset from the base, in bytes
  };
  using Accesses = SmallVector<Access, 0>;

  // Accesses to one array at one base, over all iterations of their loop.
  struct Footprint {
    Value* base = nullptr;
    const void* start = nullptr;  // the base in the loop's first iteration, or the base
    Accesses accesses;
    std::set<int64_t> lines;  // offset from the base, of one iteration
    size_t iterations = 1;
    int64_t step = 0;             // from one iteration to the next, in bytes
    std::set<int64_t> all_lines;  // offset from the start
    bool is_written = false;
  };
  using Footprints = SmallVector<Footprint, 0>;

  // Accesses whose address depends on the threadgroup's position, grouped by common base.
  MapVector<Value*, Accesses> accesses_of(BasicBlock& block) {
    MapVector<Value*, Accesses> accesses;
    for (Instruction& access : block) {
      Value* address = getLoadStorePointerOperand(&access);
      if (!address || access.isVolatile() || access.isAtomic()) continue;
      Type* type = getLoadStoreType(&access);
      if (!type->isVectorTy()) continue;
      APInt offset(64, 0);
      Value* base = address->stripAndAccumulateConstantOffsets(layout_, offset, true);
      auto bytes = static_cast<int64_t>(layout_.getTypeStoreSize(type).getFixedValue());
      if (is_divergent(base))
        accesses[base].push_back({&access, offset.getSExtValue(), offset.getSExtValue() + bytes});
      else if (keeps_remarks(function_))
        note_obstacle(access, *base);
    }
    return accesses;
  }

  // A remark on an access whose address depends on the threadgroup's position, but not by arithmetic alone.
  void note_obstacle(const Instruction& access, const Value& base) {
    SmallVector<const Value*> worklist{&base};
    SmallPtrSet<const Value*, 16> seen;
    while (!worklist.empty()) {
      const auto* value = dyn_cast<Instruction>(worklist.pop_back_val());
      if (!value || !seen.insert(value).second) continue;
      const auto* operation = dyn_cast<BinaryOperator>(value);
      const bool is_division = operation && operation->isIntDivRem();
      if (isa<BinaryOperator, CastInst, FreezeInst, GetElementPtrInst>(value) && !is_division) {
        append_range(worklist, value->operands());
        continue;
      }
      if (!comes_from_position(*value)) continue;
      remark(kPrefetch, access, "not for this access: its address depends on ",
             is_division            ? "a division"
             : isa<LoadInst>(value) ? "what the threadgroup loads"
                                    : "a branch or a loop");
      return;
    }
  }

  bool comes_from_position(const Instruction& from) const {
    SmallVector<const Value*> worklist{&from};
    SmallPtrSet<const Value*, 16> seen;
    while (!worklist.empty()) {
      const Value* value = worklist.pop_back_val();
      if (axis_of(value)) return true;
      if (const auto* instruction = dyn_cast<Instruction>(value); instruction && seen.insert(value).second)
        append_range(worklist, instruction->operands());
    }
    return false;
  }

  // Grouped by array.
  MapVector<const Value*, Footprints> footprints_of(BasicBlock& block) {
    MapVector<const Value*, Footprints> arrays;
    for (auto& [base, accesses] : accesses_of(block))
      if (std::optional<Footprint> footprint = footprint_of(block, base, accesses))
        arrays[getUnderlyingObject(base)].push_back(*footprint);
    return arrays;
  }

  std::optional<Footprint> footprint_of(BasicBlock& block, Value* base, Accesses& accesses) {
    Footprint footprint;
    footprint.base = base;
    footprint.start = base;
    footprint.accesses = std::move(accesses);
    for (const Access& access : footprint.accesses) {
      footprint.is_written |= isa<StoreInst>(access.instruction);
      for (int64_t line = divideFloorSigned(access.begin, kCacheLine); line * kCacheLine < access.end; ++line)
        footprint.lines.insert(line);
    }
    if (Loop* loop = loops_.getLoopFor(&block); loop && !find_repetition(*loop, footprint)) return std::nullopt;
    for (int64_t i = 0; i < static_cast<int64_t>(footprint.iterations); ++i)
      for (int64_t line : footprint.lines)
        footprint.all_lines.insert(line + divideFloorSigned(i * footprint.step, kCacheLine));
    return footprint;
  }

  // Adds what the hardware does not prefetch for later threadgroups, and what is not covered already.
  static void add(Footprints& footprints, Footprints& to) {
    auto written = std::stable_partition(footprints.begin(), footprints.end(),
                                         [](const Footprint& footprint) { return !footprint.is_written; });
    bool is_much_read = bytes_of(ArrayRef(footprints.begin(), written)) >= kFewestRead;
    bool is_much_written = bytes_of(ArrayRef(written, footprints.end())) >= kFewestWritten;
    for (Footprint& footprint : footprints) {
      if (!(footprint.is_written ? is_much_written : is_much_read) && !has_jumps(footprint)) continue;
      auto is_prefetched = [&](const Footprint& other) {
        return other.start == footprint.start && std::includes(other.all_lines.begin(), other.all_lines.end(),
                                                               footprint.all_lines.begin(), footprint.all_lines.end());
      };
      if (none_of(to, is_prefetched)) to.push_back(std::move(footprint));
    }
  }

  static int64_t bytes_of(ArrayRef<Footprint> footprints) {
    int64_t lines = 0;
    for (const Footprint& footprint : footprints) lines += static_cast<int64_t>(footprint.all_lines.size());
    return lines * kCacheLine;
  }

  // Whether a known number of iterations each access the same offsets a constant step further on.
  bool find_repetition(const Loop& loop, Footprint& footprint) {
    const Instruction& access = *footprint.accesses[0].instruction;
    auto fail = [&](const auto&... why) {
      remark(kPrefetch, access, "not in this loop: ", why...);
      return false;
    };
    if (loop.getParentLoop()) return fail("it is in another loop");
    auto& evolution = analyses_.getResult<ScalarEvolutionAnalysis>(function_);
    const SCEV* base = evolution.getSCEV(footprint.base);
    std::optional<int64_t> step = step_of(*base, loop, evolution);
    footprint.iterations = evolution.getSmallConstantTripCount(&loop);
    if (!step || *step <= 0) return fail("the address does not grow by a constant");
    if (footprint.iterations == 0) return fail("how often it runs is not known");
    if (footprint.iterations * footprint.lines.size() > kMostLines)
      return fail("it accesses more than the ", kMostBytes, " bytes that caches have room for");
    footprint.step = *step;
    LoopToScevMapT first{{&loop, evolution.getZero(Type::getInt64Ty(function_.getContext()))}};
    footprint.start = SCEVLoopAddRecRewriter::rewrite(base, first, evolution);
    return true;
  }

  // Provided that no index wraps.
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

  static bool has_jumps(const Footprint& footprint) {
    const Accesses& accesses = footprint.accesses;
    if (footprint.iterations * accesses.size() < kFewestAccesses) return false;
    auto is_jump = [](const Access& access, int64_t begin) {
      return begin < access.begin || begin > access.end + kCacheLine;
    };
    size_t jumps = footprint.iterations > 1 && is_jump(accesses.back(), accesses[0].begin + footprint.step);
    for (size_t i = 1; i < accesses.size(); ++i) jumps += is_jump(accesses[i - 1], accesses[i].begin);
    return 2 * jumps > accesses.size();
  }

  // The axis whose threadgroup position the value is.
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

  static uint64_t offset_of(ThreadValue value, unsigned axis) {
    return offsetof(CpuThread, values) + (value + axis) * sizeof(uint32_t);
  }

  // The prefetched threadgroup is further on along the first axis that has several.
  Value* later_position(LoadInst& position, unsigned axis, IRBuilder<>& builder) {
    auto has_one = [&](unsigned other) {
      uint64_t offset = offset_of(kThreadgroupsPerGrid, other);
      LoadInst* groups = load_invariant(builder, builder.getInt32Ty(), record_, offset);
      return builder.CreateICmpEQ(groups, builder.getInt32(1));
    };
    Value* is_first = builder.CreateNot(has_one(axis));
    for (unsigned before = 0; before < axis; ++before) is_first = builder.CreateAnd(has_one(before), is_first);
    Value* distance = builder.CreateSelect(is_first, builder.getInt32(kThreadgroupsAhead), builder.getInt32(0));
    return builder.CreateAdd(&position, distance);
  }

  // Whether the value is computed from that position, by arithmetic that is safe for any operands. Division is not.
  bool is_divergent(const Value* value) {
    if (axis_of(value)) return true;
    if (auto* operation = dyn_cast<BinaryOperator>(value); operation && operation->isIntDivRem()) return false;
    if (!isa<BinaryOperator, CastInst, FreezeInst, GetElementPtrInst>(value)) return false;
    if (auto known = is_divergent_.find(value); known != is_divergent_.end()) return known->second;
    bool result =
        any_of(cast<Instruction>(value)->operands(), [&](const Use& operand) { return is_divergent(operand); });
    return is_divergent_[value] = result;
  }

  // The value in the prefetched threadgroup: computed at the builder, or after the value itself if that is before the
  // loop around the builder. `later_values` are those computed so far.
  Value* later_value(Value* value, DenseMap<Value*, Value*>& later_values, IRBuilder<>& builder) {
    if (!is_divergent(value)) return value;
    if (auto known = later_values.find(value); known != later_values.end()) return known->second;
    auto* instruction = cast<Instruction>(value);
    const Loop* loop = loops_.getLoopFor(builder.GetInsertBlock());
    IRBuilder<> before(instruction->getNextNode());
    IRBuilder<>& inserter = loop && loop->isLoopInvariant(value) ? before : builder;
    if (std::optional<unsigned> axis = axis_of(value))
      return later_values[value] = later_position(cast<LoadInst>(*instruction), *axis, inserter);
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) operands.push_back(later_value(operand, later_values, builder));
    Instruction* copy = instruction->clone();
    for (auto [use, operand] : zip(copy->operands(), operands)) use.set(operand);
    copy->dropPoisonGeneratingFlags();
    return later_values[value] = inserter.Insert(copy);
  }

  // Each line once, in address order whatever the order of the accesses. For loads, each access issues the same number
  // of prefetches, unless schedule_for_pressure puts them first. For stores, all are issued at once: LLVM moves nothing
  // across these calls, and loads should precede stores.
  void add_prefetches(const Footprint& footprint) {
    const Accesses& accesses = footprint.accesses;
    IRBuilder<> builder(accesses[0].instruction);
    if (footprint.is_written) {
      BasicBlock* block = builder.GetInsertBlock();
      auto* base = cast<Instruction>(footprint.base);
      builder.SetInsertPoint(base->getParent() == block ? base->getNextNode() : &*block->getFirstInsertionPt());
    }
    DenseMap<Value*, Value*> later_values;
    Value* address = later_value(footprint.base, later_values, builder);
    size_t issued = 0;
    auto line = footprint.lines.begin();
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (!footprint.is_written) {
        builder.SetInsertPoint(accesses[i].instruction);
        touch(accesses[i], builder);
      }
      for (; issued * accesses.size() < (i + 1) * footprint.lines.size(); ++issued, ++line)
        prefetch_line(
            builder,
            builder.CreateConstGEP1_64(builder.getInt8Ty(), address, static_cast<uint64_t>(*line * kCacheLine)),
            Cache::kSecond);
    }
  }

  // The result is dead. The vector load that follows reads the same bytes.
  void touch(const Access& access, IRBuilder<>& builder) const {
    auto& load = cast<LoadInst>(*access.instruction);
    if (isa_.register_bytes < kCacheLine) return;
    for (int64_t offset = 0; access.begin + offset + kTouch <= access.end; offset += kBetweenTouches) {
      Value* address =
          builder.CreateConstGEP1_64(builder.getInt8Ty(), load.getPointerOperand(), static_cast<uint64_t>(offset));
      builder.CreateAlignedLoad(builder.getInt32Ty(), address, Align(1), /*isVolatile=*/true);
    }
  }

  Function& function_;
  FunctionAnalysisManager& analyses_;
  const VectorIsa& isa_;
  Argument* record_;
  const DataLayout& layout_;
  LoopInfo& loops_;
  DenseMap<const Value*, bool> is_divergent_;
};

}  // namespace

PreservedAnalyses PrefetchPass::run(Function& function, FunctionAnalysisManager& analyses) {
  return Prefetcher(function, analyses, isa_).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
