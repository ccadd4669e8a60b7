#include "compiler/nvptx/full_unrolling.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>
#include <vector>

#include "compiler/analysis/counter_values.h"
#include "compiler/nvptx/ptx_generator.h"

namespace kiln {
namespace {

using namespace llvm;

// After unrolling, before what that makes superfluous goes. The instruction cache next to a multiprocessor has 128 KB,
// 8,192 instructions.
constexpr uint64_t kMostUnrolled = 8192;
// Of one private array: half of the registers that a thread may have.
constexpr uint64_t kMostArrayBytes = 512;
// By which loops with loads are unrolled that are not unrolled completely, and the most instructions of their bodies.
constexpr uint64_t kFactor = 4, kMostRepeated = 64;
// Of a loop that is unrolled completely because it is short, with the loops in it: instructions after unrolling, and
// trips. NVCC has similar limits.
constexpr uint64_t kMostShort = 768, kMostShortTrips = 64;
// Of a loop whose trip count depends on the loops around it.
constexpr uint64_t kGuessedTrips = 8;

class Unrolling {
 public:
  Unrolling(Function& function, FunctionAnalysisManager& analyses)
      : function_(function),
        layout_(function.getDataLayout()),
        loops_(analyses.getResult<LoopAnalysis>(function)),
        evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)) {}

  bool choose_full() {
    find_candidates();
    // A loop that would become too long is not unrolled, and then what it was to make known stays unknown.
    while (!candidates_.empty()) {
      LoopSet chosen;
      for (const LoopSet& loops : candidates_) chosen.insert(loops.begin(), loops.end());
      Loop* too_long = nullptr;
      for (Loop* loop : chosen)
        if (!may_unroll(*loop) || unrolled_size(*loop, chosen) > kMostUnrolled) {
          // The outermost first: what is inside may fit.
          if (!too_long || too_long->getLoopDepth() > loop->getLoopDepth()) too_long = loop;
        }
      if (!too_long) return mark(chosen);
      erase_if(candidates_, [&](const LoopSet& loops) { return loops.contains(too_long); });
    }
    return false;
  }

  bool choose_short() {
    bool has_marked = false;
    for (Loop* loop : loops_) size_of_short(*loop, has_marked);
    for (Loop* loop : loops_.getLoopsInPreorder()) has_marked |= choose_partial(*loop);
    return has_marked;
  }

 private:
  // Unrolls loops that are short, from the inside. Returns how many instructions are left of the loop.
  uint64_t size_of_short(Loop& loop, bool& has_marked) {
    uint64_t size = 0;
    for (BasicBlock* block : loop.blocks()) {
      if (loops_.getLoopFor(block) != &loop) continue;
      for (Instruction& instruction : *block) size += !disappears(instruction);
    }
    for (Loop* inner : loop) size += size_of_short(*inner, has_marked);
    const uint64_t count = trips(loop);
    if (count == 0 || count > kMostShortTrips || size * count > kMostShort) return size;
    const TransformationMode hint = hasUnrollTransformation(&loop);
    if (hint & TM_Disable) return size;
    if (hint == TM_Unspecified) {
      set_hint(loop,
               MDNode::get(function_.getContext(), MDString::get(function_.getContext(), "llvm.loop.unroll.full")));
      has_marked = true;
    }
    return size * count;
  }

  // Loads of several iterations in flight at a time, where no iteration is left over.
  bool choose_partial(Loop& loop) {
    if (!loop.isInnermost() || hasUnrollTransformation(&loop) != TM_Unspecified) return false;
    const uint64_t count = trips(loop);
    SmallVector<BasicBlock*> exiting;
    loop.getExitingBlocks(exiting);
    if (count < 2 * kFactor || count % kFactor != 0 || exiting.size() != 1) return false;
    uint64_t size = 0;
    bool loads = false;
    for (BasicBlock* block : loop.blocks())
      for (Instruction& instruction : *block) {
        if (const auto* call = dyn_cast<CallBase>(&instruction); call && call->isConvergent()) return false;
        const auto* load = dyn_cast<LoadInst>(&instruction);
        loads = loads || (load && load->getPointerAddressSpace() != kParameterSpace &&
                          !is_small_array(*load->getPointerOperand()));
        size += !disappears(instruction);
      }
    if (!loads || size > kMostRepeated) return false;
    LLVMContext& context = function_.getContext();
    Metadata* factor = ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), kFactor));
    set_hint(loop, MDNode::get(context, {MDString::get(context, "llvm.loop.unroll.count"), factor}));
    return true;
  }

  void set_hint(Loop& loop, MDNode* hint) {
    loop.setLoopID(
        makePostTransformationMetadata(function_.getContext(), loop.getLoopID(), {"llvm.loop.unroll."}, {hint}));
  }

  // The values that become constants, each with the loops that must be unrolled for it.
  void find_candidates() {
    for (BasicBlock& block : function_) {
      if (!loops_.getLoopFor(&block)) continue;
      for (Instruction& instruction : block) {
        LoopSet loops;
        if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) {
          if (address->hasAllConstantIndices() || !is_small_array(*address)) continue;
          if (!all_of(address->indices(), [&](Value* index) { return becomes_constant(index, loops_, loops); }))
            continue;
        } else if (instruction.isIntDivRem()) {
          if (isa<Constant>(instruction.getOperand(1)) || !becomes_constant(instruction.getOperand(1), loops_, loops))
            continue;
        } else {
          continue;
        }
        if (!loops.empty()) candidates_.push_back(std::move(loops));
      }
    }
  }

  bool is_small_array(const Value& address) const {
    const Value* pointer = &address;
    // A guard's other address is memory of Kiln's own.
    if (const auto* guard = dyn_cast<SelectInst>(pointer))
      pointer = isa<GlobalValue>(guard->getTrueValue()) ? guard->getFalseValue() : guard->getTrueValue();
    const auto* array = dyn_cast<AllocaInst>(getUnderlyingObject(pointer));
    if (!array) return false;
    std::optional<TypeSize> bytes = array->getAllocationSize(layout_);
    return bytes && !bytes->isScalable() && bytes->getFixedValue() <= kMostArrayBytes;
  }

  bool may_unroll(Loop& loop) {
    if (hasUnrollTransformation(&loop) & TM_Disable) return false;
    // Without a constant trip count of its own, its start or end must come from a loop around it that is unrolled.
    return trips(loop) != 0 || loop.getParentLoop();
  }

  uint64_t unrolled_size(Loop& loop, const LoopSet& chosen) {
    uint64_t size = 0;
    for (BasicBlock* block : loop.blocks()) {
      if (loops_.getLoopFor(block) != &loop) continue;
      for (Instruction& instruction : *block) size += !disappears(instruction);
    }
    for (Loop* inner : loop) size += unrolled_size(*inner, chosen);
    if (!chosen.contains(&loop)) return size;
    const uint64_t count = trips(loop);
    return size * (count ? count : kGuessedTrips);
  }

  // Whether nothing is left of an instruction once counters are constants: arithmetic of counters, and accesses of
  // small arrays with their guards. Elements of vectors are registers.
  bool disappears(Instruction& instruction) {
    if (isa<PHINode, BranchInst, ExtractElementInst, InsertElementInst, BitCastInst>(instruction)) return true;
    if (auto* address = dyn_cast<GetElementPtrInst>(&instruction)) return is_small_array(*address);
    if (const Value* pointer = getLoadStorePointerOperand(&instruction)) return is_small_array(*pointer);
    LoopSet loops;
    if (auto* guard = dyn_cast<ICmpInst>(&instruction))
      return becomes_constant(guard->getOperand(0), loops_, loops) &&
             becomes_constant(guard->getOperand(1), loops_, loops);
    if (auto* select = dyn_cast<SelectInst>(&instruction)) {
      auto* condition = dyn_cast<ICmpInst>(select->getCondition());
      return condition && disappears(*condition);
    }
    return instruction.getType()->isIntegerTy() && becomes_constant(&instruction, loops_, loops);
  }

  uint64_t trips(Loop& loop) { return constant_trips(loop, evolution_); }

  bool mark(const LoopSet& chosen) {
    LLVMContext& context = function_.getContext();
    for (Loop* loop : chosen) {
      if (hasUnrollTransformation(loop) & TM_Force) continue;  // the body says so
      set_hint(*loop, MDNode::get(context, MDString::get(context, "llvm.loop.unroll.full")));
    }
    return true;
  }

  Function& function_;
  const DataLayout& layout_;
  LoopInfo& loops_;
  ScalarEvolution& evolution_;
  std::vector<LoopSet> candidates_;
};

}  // namespace

bool mark_loops_to_unroll(Function& function, FunctionAnalysisManager& analyses) {
  return Unrolling(function, analyses).choose_full();
}

bool mark_short_loops_to_unroll(Function& function, FunctionAnalysisManager& analyses) {
  return Unrolling(function, analyses).choose_short();
}

}  // namespace kiln
