#include "compiler/memory/indirect_prefetch.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/cache_lines.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/invariant_loads.h"
#include "compiler/ir/likely.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"

namespace kiln {
namespace {

using namespace llvm;

constexpr unsigned kAhead = 8;  // iterations, or simdgroups
constexpr unsigned kMostInstructions = 120;

// Repeats the computation from a loop's counter to addresses for a later iteration. Without a loop, from a parameter of
// the function for a later call. With `halves`, for the first half, before their loop.
class LaterIteration {
 public:
  LaterIteration(const Loop* loop, Value& counter, uint64_t step, const PostDominatorTree& post_dominators,
                 CoarsenedLoop halves = {})
      : loop_(loop), counter_(counter), step_(step), post_dominators_(post_dominators), halves_(halves) {}

  // Whether the value varies by iteration, can be computed ahead, and depends on loads.
  bool depends_on_loads(const Value* value) { return kind_of(value) == Kind::kFromLoads; }

  bool can_be_computed(const Value* value) { return kind_of(value) != Kind::kUnknown; }

  // Whether the value varies by iteration, can be computed ahead, and depends on no load of this iteration.
  bool is_computed_from_counter(const Value* value) { return kind_of(value) == Kind::kFromCounter; }

  bool is_invariant(const Value* value) { return kind_of(value) == Kind::kInvariant; }

  bool depends_on_half(const Value* value) {
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || !halves_.contain(*instruction)) return false;
    if (isa<PHINode>(instruction)) return instruction == halves_.half_offset;
    if (auto known = depends_on_half_.find(value); known != depends_on_half_.end()) return known->second;
    bool is_divergent = any_of(instruction->operands(), [&](const Use& operand) { return depends_on_half(operand); });
    return depends_on_half_[value] = is_divergent;
  }

  Value* later_value(Value* value) {
    if (kind_of(value) == Kind::kInvariant) return value;
    if (Value* known = later_values_.lookup(value)) return known;
    if (value == &counter_) {
      IRBuilder<> builder(first_block(), first_block()->getFirstNonPHIOrDbgOrAlloca());
      return later_values_[value] = builder.CreateAdd(value, ConstantInt::get(value->getType(), kAhead * step_));
    }
    if (value == halves_.half_offset) return ConstantInt::get(value->getType(), 0);
    auto* instruction = cast<Instruction>(value);
    SmallVector<Value*> operands;
    for (Value* operand : instruction->operands()) operands.push_back(later_value(operand));
    const bool is_in_coarsened_loop = halves_.contain(*instruction);
    IRBuilder<> builder(instruction->getParent(), std::next(instruction->getIterator()));
    if (is_in_coarsened_loop) builder.SetInsertPoint(halves_.insertion_point());
    if (Value* converted = unsaturated_conversion(*instruction, operands[0], builder))
      return later_values_[value] = converted;
    if (is_in_coarsened_loop) return later_values_[value] = copy_before(halves_, *instruction, operands);
    Instruction* later = instruction->clone();
    for (auto [use, operand] : zip(later->operands(), operands)) use.set(operand);
    later->dropPoisonGeneratingAnnotations();
    return later_values_[value] = builder.Insert(later);
  }

  // Why the address of an access cannot be computed ahead although it depends on a load in the loop; empty if it can,
  // or depends on none.
  std::string_view obstacle(const Value* address) {
    if (kind_of(address) != Kind::kUnknown || !depends_on_a_load(address)) return {};
    const auto* cause = cast<Instruction>(address);
    for (const Value* next = cause; next;) {
      cause = cast<Instruction>(next);
      next = nullptr;
      if (isa<PHINode>(cause)) return "the address depends on what the loop carries from one iteration to the next";
      for (const Value* operand : cause->operands())
        if (kind_of(operand) == Kind::kUnknown) next = operand;
    }
    const auto* load = dyn_cast<LoadInst>(cause);
    if (!load) return "computing the address ahead takes too long, or may fail";
    if (!load->hasMetadata(LLVMContext::MD_invariant_load))
      return "the index is loaded from memory that may be written";
    if (!post_dominators_.dominates(load->getParent(), first_block())) return "the index is loaded under a condition";
    return "the index is loaded without a guard";
  }

  bool is_single_half() const { return loop_ && !halves_.loop; }

  bool is_before_halves(const Instruction& insertion_point) const {
    return halves_.loop && &insertion_point == halves_.insertion_point();
  }

  // The insertion point at which the values of `instruction` in both iterations are available.
  Instruction* insertion_point_after(Instruction& instruction) const {
    if (halves_.contain(instruction)) return halves_.insertion_point();
    auto* later = cast_or_null<Instruction>(later_values_.lookup(&instruction));
    return (later ? later : &instruction)->getNextNode();
  }

 private:
  // A prefetched address need not be right. A conversion that does not saturate takes a fifth of the instructions.
  // Numbers out of its range are no access's index.
  static Value* unsaturated_conversion(const Instruction& instruction, Value* real, IRBuilder<>& builder) {
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call) return nullptr;
    switch (call->getIntrinsicID()) {
      case Intrinsic::fptosi_sat: return builder.CreateFreeze(builder.CreateFPToSI(real, call->getType()));
      case Intrinsic::fptoui_sat: return builder.CreateFreeze(builder.CreateFPToUI(real, call->getType()));
      default: return nullptr;
    }
  }

  bool depends_on_a_load(const Value* address) const {
    SmallVector<const Value*> worklist{address};
    SmallPtrSet<const Value*, 16> seen;
    while (!worklist.empty()) {
      const auto* instruction = dyn_cast<Instruction>(worklist.pop_back_val());
      if (!instruction || (loop_ && !loop_->contains(instruction)) || !seen.insert(instruction).second) continue;
      if (isa<LoadInst>(instruction)) return true;
      if (!isa<PHINode>(instruction)) append_range(worklist, instruction->operands());
    }
    return false;
  }

  // How a value depends on the iteration of the loop.
  enum class Kind {
    kInvariant,
    kInHalvesLoop,  // invariant but for the half offset, but defined in the loop over halves
    kFromCounter,   // only the counter
    kFromLoads,     // loaded values
    kUnknown,
  };

  Kind kind_of(const Value* value) {
    if (value == &counter_) return Kind::kFromCounter;
    const auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || (loop_ && !loop_->contains(instruction))) return Kind::kInvariant;
    if (const auto* phi = dyn_cast<PHINode>(instruction)) return kind_of_phi(*phi);
    if (auto known = kinds_.find(value); known != kinds_.end()) return known->second;
    Kind kind = halves_.contain(*instruction) ? Kind::kInHalvesLoop : Kind::kInvariant;
    for (const Value* operand : instruction->operands()) kind = std::max(kind, kind_of(operand));
    if (kind != Kind::kInvariant && !can_be_executed_ahead(*instruction)) kind = Kind::kUnknown;
    if (kind == Kind::kFromCounter && isa<LoadInst>(instruction)) kind = Kind::kFromLoads;
    if (kind != Kind::kInvariant && ++instructions_ > kMostInstructions) kind = Kind::kUnknown;
    return kinds_[value] = kind;
  }

  // The counter of an inner loop has the same values in all iterations of this one. Nothing is known of other phis.
  Kind kind_of_phi(const PHINode& phi) const {
    if (halves_.contain(phi)) return &phi == halves_.half_offset ? Kind::kInHalvesLoop : Kind::kUnknown;
    BinaryOperator* next;
    Value *first, *step;
    const bool counts = matchSimpleRecurrence(&phi, next, first, step) && next->getOpcode() == Instruction::Add &&
                        isa<Constant>(first) && isa<Constant>(step);
    return counts && !(loop_ && phi.getParent() == loop_->getHeader()) ? Kind::kInvariant : Kind::kUnknown;
  }

  // The later iteration may not exist: loads must be valid for any index. A guard under a branch relies on the
  // direction of the branch in this iteration, and may check less than another iteration needs.
  bool can_be_executed_ahead(const Instruction& instruction) {
    if (const auto* load = dyn_cast<LoadInst>(&instruction)) {
      const auto* guard = dyn_cast<SelectInst>(load->getPointerOperand());
      return load->hasMetadata(LLVMContext::MD_invariant_load) && guard &&
             (is_zeros(guard->getTrueValue()) || is_zeros(guard->getFalseValue())) &&
             post_dominators_.dominates(load->getParent(), first_block()) && !depends_on_half(load);
    }
    return isSafeToSpeculativelyExecute(&instruction);
  }

  BasicBlock* first_block() const {
    return loop_ ? loop_->getHeader() : &cast<Argument>(counter_).getParent()->getEntryBlock();
  }

  const Loop* loop_;
  Value& counter_;
  const uint64_t step_;
  const PostDominatorTree& post_dominators_;
  const CoarsenedLoop halves_;
  DenseMap<const Value*, Kind> kinds_;
  DenseMap<const Value*, bool> depends_on_half_;
  DenseMap<const Value*, Value*> later_values_;
  unsigned instructions_ = 0;
};

// The first phi to which a constant is added in each iteration, and the constant.
std::pair<PHINode*, const ConstantInt*> counter_of(const Loop& loop) {
  for (PHINode& phi : loop.getHeader()->phis()) {
    BinaryOperator* next;
    Value *first, *step;
    if (!matchSimpleRecurrence(&phi, next, first, step) || next->getOpcode() != Instruction::Add) continue;
    if (const auto* constant = dyn_cast<ConstantInt>(step)) return {&phi, constant};
  }
  return {};
}

struct IndirectAccess {
  Instruction* address = nullptr;  // its address, before the guard's select; null: no access
  SelectInst* guard = nullptr;     // the guard's select of zeros, where the kernel's code can do without the access
  int64_t bytes = 0;
  bool is_written = false;  // and not read

  // Merges another access to the same address.
  void merge(const IndirectAccess& access) {
    // A store has no zeros to select.
    if (is_written) guard = access.guard;
    if (!access.is_written && guard != access.guard) guard = nullptr;
    is_written = is_written && access.is_written;
    bytes = std::max(bytes, access.bytes);
  }
};

IndirectAccess access_of(Instruction& instruction) {
  Value* address = striped_range(instruction);
  int64_t bytes = kLanes * sizeof(float);
  const auto* load = dyn_cast<LoadInst>(&instruction);
  const auto* store = dyn_cast<StoreInst>(&instruction);
  const bool is_simple = (load && load->isSimple()) || (store && store->isSimple());
  if (is_simple && getLoadStoreType(&instruction)->isVectorTy()) {
    address = getLoadStorePointerOperand(&instruction);
    Type* type = getLoadStoreType(&instruction);
    bytes = static_cast<int64_t>(instruction.getDataLayout().getTypeStoreSize(type).getFixedValue());
  }
  SelectInst* guard = nullptr;
  while (isa_and_nonnull<PHINode, SelectInst>(address)) {
    SmallVector<Value*> addresses;
    guard = dyn_cast<SelectInst>(address);
    if (guard)
      addresses = {guard->getTrueValue(), guard->getFalseValue()};
    else
      append_range(addresses, cast<PHINode>(address)->incoming_values());
    if (none_of(addresses, is_zeros)) guard = nullptr;
    erase_if(addresses, [](const Value* one) { return isa<AllocaInst>(one) || is_zeros(one); });
    address = addresses.size() == 1 ? addresses[0] : nullptr;
  }
  return {dyn_cast_or_null<Instruction>(address), guard, bytes, store != nullptr};
}

// An address as an array's base and an element's index, before the index is extended to the width of an address.
struct Element {
  Value* array = nullptr;
  Value* index = nullptr;
  int64_t bytes = 0;

  static Element at(const Instruction& address) {
    const auto* gep = dyn_cast<GetElementPtrInst>(&address);
    if (!gep || gep->getNumIndices() != 1) return {};
    const auto* wide = dyn_cast<CastInst>(gep->getOperand(1));
    if (!isa_and_nonnull<SExtInst, ZExtInst>(wide)) return {};
    TypeSize bytes = address.getDataLayout().getTypeAllocSize(gep->getSourceElementType());
    return {gep->getOperand(0), wide->getOperand(0), static_cast<int64_t>(bytes.getFixedValue())};
  }
};

// Lines to prefetch, grouped by insertion point.
class Prefetches {
 public:
  void add(Instruction& insertion_point, bool is_before_halves, Value& address, int64_t offset) {
    Lines& lines = lines_[&insertion_point];
    lines.are_before_halves = is_before_halves;
    lines.parts.push_back({&address, offset});
  }

  // Before a loop over halves the launch chooses the cache, by a branch that is too expensive for other insertion
  // points; those use `default_cache`. False if there are no prefetches.
  bool emit(Function& function, Cache default_cache) {
    Value* uses_second = nullptr;
    for (auto& [insertion_point, lines] : lines_) {
      if (!lines.are_before_halves) {
        emit_at(*insertion_point, lines, default_cache);
        continue;
      }
      if (!uses_second) uses_second = load_second_cache_flag(function);
      Instruction *second, *first;
      SplitBlockAndInsertIfThenElse(uses_second, insertion_point->getIterator(), &second, &first);
      emit_at(*second, lines, Cache::kSecond);
      emit_at(*first, lines, Cache::kFirst);
    }
    return !lines_.empty();
  }

 private:
  struct Lines {
    bool are_before_halves = false;
    SmallVector<std::pair<Value*, int64_t>> parts;
  };

  static Value* load_second_cache_flag(Function& function) {
    BasicBlock& entry = function.getEntryBlock();
    IRBuilder<> builder(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    return builder.CreateIsNotNull(load_invariant(builder, builder.getInt32Ty(), function.getArg(kCpuLaunch),
                                                  offsetof(CpuLaunch, prefetches_to_second_cache)));
  }

  static void emit_at(Instruction& insertion_point, const Lines& lines, Cache cache) {
    IRBuilder<> builder(&insertion_point);
    for (auto [address, offset] : lines.parts)
      prefetch_line(builder, builder.CreateConstGEP1_64(builder.getInt8Ty(), address, static_cast<uint64_t>(offset)),
                    cache);
  }

  MapVector<Instruction*, Lines> lines_;
};

// Accesses at constant distances in each iteration, which are prefetched by the address of the first.
class AccessGroup {
 public:
  AccessGroup(const IndirectAccess& access, LaterIteration& iteration) : first_(access), iteration_(iteration) {
    add(access, 0);
  }

  // False if the access is at no constant distance.
  bool try_add(const IndirectAccess& access, const LaterIteration& iteration, ScalarEvolution& evolution,
               const DominatorTree& dominators) {
    if (&iteration != &iteration_ || !dominators.dominates(first_.address->getParent(), access.address->getParent()))
      return false;
    Element one = Element::at(*first_.address), other = Element::at(*access.address);
    if (!one.array || one.array != other.array || one.bytes != other.bytes ||
        one.index->getType() != other.index->getType())
      return false;
    const auto* distance =
        dyn_cast<SCEVConstant>(evolution.getMinusSCEV(evolution.getSCEV(other.index), evolution.getSCEV(one.index)));
    if (!distance) return false;
    add(access, distance->getAPInt().getSExtValue() * one.bytes);
    return true;
  }

  void add_prefetches(Prefetches& prefetches) {
    Value* later = iteration_.later_value(first_.address);
    Instruction* insertion_point = iteration_.insertion_point_after(*first_.address);
    Value* array = Element::at(*first_.address).array;
    if (array && iteration_.is_invariant(array) && are_guarded_ &&
        !(guards_.size() > 1 && !iteration_.is_before_halves(*insertion_point))) {
      // If the guards let through none of the accesses, prefetch the array's first line, which will soon be cached.
      insertion_point = iteration_.insertion_point_after(*guards_[0]);
      IRBuilder<> builder(insertion_point);
      Value* unused = nullptr;
      for (SelectInst* guard : guards_) {
        Value* is_unused = iteration_.later_value(guard->getCondition());
        if (!is_zeros(guard->getTrueValue())) is_unused = builder.CreateNot(is_unused);
        unused = unused ? builder.CreateAnd(unused, is_unused) : is_unused;
      }
      later = builder.CreateSelect(unused, array, later);
    }
    auto prefetch = [&](int64_t at) {
      prefetches.add(*insertion_point, iteration_.is_before_halves(*insertion_point), *later, at);
    };
    llvm::sort(parts_);
    for (size_t i = 0, next; i < parts_.size(); i = next) {
      auto [begin, end] = parts_[i];
      for (next = i + 1; next < parts_.size() && parts_[next].first <= end; ++next)
        end = std::max(end, parts_[next].second);
      for (int64_t at = begin; at < end; at += kCacheLine) prefetch(at);
      // The accesses touch one more line if the array is not line-aligned. For a single half, the other half prefetches
      // it.
      if (!iteration_.is_single_half()) prefetch(end - 1);
    }
  }

 private:
  void add(const IndirectAccess& access, int64_t begin) {
    are_guarded_ = are_guarded_ && access.guard && iteration_.can_be_computed(access.guard->getCondition()) &&
                   !iteration_.depends_on_half(access.guard->getCondition());
    if (are_guarded_ &&
        none_of(guards_, [&](const SelectInst* guard) { return is_equal_guard(*guard, *access.guard); }))
      guards_.push_back(access.guard);
    const int64_t count = iteration_.depends_on_half(access.address) ? kCoarsenedThreads / kLanes : 1;  // consecutive
    parts_.emplace_back(begin, begin + count * access.bytes);
  }

  static bool is_equal_guard(const SelectInst& one, const SelectInst& other) {
    return one.getCondition() == other.getCondition() && is_zeros(one.getTrueValue()) == is_zeros(other.getTrueValue());
  }

  const IndirectAccess first_;
  LaterIteration& iteration_;
  bool are_guarded_ = true;  // each access
  SmallVector<SelectInst*> guards_;
  SmallVector<std::pair<int64_t, int64_t>> parts_;  // offsets from the first access's address, in bytes
};

// `iteration_of` returns what computes an access's address ahead, or null.
template <class IterationOf>
void prefetch_accesses(Function& function, const Loop* loop, IterationOf iteration_of, Prefetches& prefetches,
                       FunctionAnalysisManager& analyses) {
  const auto& dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  DenseMap<const Instruction*, IndirectAccess> found;  // by address
  ReversePostOrderTraversal<Function*> order(&function);
  for (BasicBlock* block : order)
    for (Instruction& instruction : *block)
      if (IndirectAccess access = access_of(instruction); access.address && !(loop && !loop->contains(block)))
        found.try_emplace(access.address, access).first->second.merge(access);
  // Stores only along with loads: without loads to wait for, the processor runs ahead of them by itself. They come
  // last, so that they do not use up the budget of instructions.
  std::vector<AccessGroup> groups;
  for (bool are_written : {false, true}) {
    if (are_written && groups.empty()) return;
    for (BasicBlock* block : order)
      for (Instruction& instruction : *block) {
        auto access = found.find(&instruction);
        if (access == found.end() || access->second.is_written != are_written) continue;
        LaterIteration* iteration = iteration_of(access->second);
        if (iteration && none_of(groups, [&](AccessGroup& group) {
              return group.try_add(access->second, *iteration, evolution, dominators);
            }))
          groups.emplace_back(access->second, *iteration);
      }
  }
  for (AccessGroup& group : groups) group.add_prefetches(prefetches);
}

// Whether only guards may come between.
bool is_on_likely_path(const BasicBlock* block, const BasicBlock* target, const PostDominatorTree& post_dominators) {
  while (!post_dominators.dominates(block, target)) {
    const BasicBlock* predecessor = block->getSinglePredecessor();
    const auto* branch = predecessor ? dyn_cast<BranchInst>(predecessor->getTerminator()) : nullptr;
    std::optional<unsigned> likely = branch ? likely_successor(*branch) : std::nullopt;
    if (!likely || branch->getSuccessor(*likely) != block) return false;
    block = predecessor;
  }
  return true;
}

}  // namespace

PreservedAnalyses IndirectPrefetchPass::run(Function& function, FunctionAnalysisManager& analyses) {
  const auto& post_dominators = analyses.getResult<PostDominatorTreeAnalysis>(function);
  Prefetches prefetches;
  for (Loop* loop : analyses.getResult<LoopAnalysis>(function)) {
    auto [counter, step] = counter_of(*loop);
    if (!counter) continue;
    const CoarsenedLoop halves = coarsened_loop_of(*loop);
    LaterIteration of_pair(loop, *counter, step->getZExtValue(), post_dominators, halves),
        of_half(loop, *counter, step->getZExtValue(), post_dominators);
    auto iteration_of = [&](const IndirectAccess& access) -> LaterIteration* {
      auto can_compute = [&](LaterIteration& iteration) {
        return access.is_written ? iteration.is_computed_from_counter(access.address)
                                 : iteration.depends_on_loads(access.address);
      };
      if (halves.loop && is_on_likely_path(access.address->getParent(), halves.loop->getHeader(), post_dominators) &&
          can_compute(of_pair))
        return &of_pair;
      if (can_compute(of_half)) return &of_half;
      if (!access.is_written && keeps_remarks(function))
        if (std::string_view why = of_half.obstacle(access.address); !why.empty())
          remark("indirect-prefetch", *access.address, "not for this access: ", why);
      return nullptr;
    };
    prefetch_accesses(function, loop, iteration_of, prefetches, analyses);
  }
  return prefetches.emit(function, Cache::kFirst) ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

PreservedAnalyses AtomicPrefetchPass::run(Function& function, FunctionAnalysisManager& analyses) {
  if (none_of(instructions(function), striped_range)) return PreservedAnalyses::all();
  LaterIteration iteration(nullptr, *function.getArg(kCpuX), kLanes,
                           analyses.getResult<PostDominatorTreeAnalysis>(function));
  auto iteration_of = [&](const IndirectAccess& access) {
    return !access.is_written && iteration.depends_on_loads(access.address) ? &iteration : nullptr;
  };
  Prefetches prefetches;
  prefetch_accesses(function, nullptr, iteration_of, prefetches, analyses);
  return prefetches.emit(function, Cache::kSecond) ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace kiln
