#include "compiler/ir/preconditions.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <initializer_list>

#include "compiler/ir/entry.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/guard_zeros.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "core/thread_values.h"

namespace kiln {
namespace {

using namespace llvm;

// Whether `function` calls a pseudo-intrinsic for whose row `is_meant` is true. Declarations are few, instructions
// many.
template <class Predicate>
bool calls_any(const Function& function, Predicate is_meant) {
  for (const Function& declared : *function.getParent()) {
    if (!declared.isDeclaration() || declared.use_empty()) continue;
    const PseudoIntrinsic* row = find_pseudo_intrinsic(declared.getName());
    if (!row || !is_meant(*row)) continue;
    for (const User* user : declared.users())
      if (const auto* call = dyn_cast<CallInst>(user); call && call->getFunction() == &function) return true;
  }
  return false;
}

bool calls_one_of(const Function& function, std::initializer_list<const char*> names) {
  return calls_any(function, [&](const PseudoIntrinsic& row) { return is_contained(names, row.name); });
}

struct Precondition {
  const char* claim;
  bool (*holds)(const Function&);
};

// ---- One thread

constexpr Precondition kAsClangMadeIt = {
    "no pass has inserted pseudo-intrinsics yet", [](const Function& f) {
      return !calls_any(f, [](const PseudoIntrinsic& row) { return row.origin == PseudoIntrinsic::kCompiler; });
    }};

constexpr Precondition kUnguarded = {"no access has a bounds guard yet", [](const Function& f) {
                                       return none_of(instructions(f), [](const Instruction& i) {
                                         const auto* select = dyn_cast<SelectInst>(&i);
                                         if (!select || !select->getType()->isPointerTy()) return false;
                                         return is_zeros(select->getFalseValue()) || is_sink(select->getFalseValue());
                                       });
                                     }};

constexpr Precondition kUnnumbered = {"convergence points have no numbers yet", [](const Function& f) {
                                        return !calls_one_of(f, {kConvergenceFunction, kProductConvergenceFunction});
                                      }};

constexpr Precondition kNumbered = {
    "convergence points have numbers, and loops no marks", [](const Function& f) {
      return !calls_one_of(f, {kThreadgroupBarrierFunction, kCollectiveFunction, kWarpCollectiveFunction,
                               kLoopEnterFunction, kLoopMergeFunction, kCallEnterFunction, kCallMergeFunction});
    }};

// ---- The SIMD engine, before the code is a simdgroup's

constexpr Precondition kHasNoThreadValues = {"the values of a thread are computed",
                                             [](const Function& f) { return !calls_one_of(f, {kValueFunction}); }};

constexpr Precondition kHasNoProducts = {"products of matrices are operations on lanes", [](const Function& f) {
                                           return !calls_one_of(f, {kProductConvergenceFunction});
                                         }};

constexpr Precondition kHasNoMasks = {"no masks of collectives are left",
                                      [](const Function& f) { return !calls_one_of(f, {kMaskFunction}); }};

constexpr Precondition kHasNoIterations = {"no marks of iterations are left",
                                           [](const Function& f) { return !calls_one_of(f, {kIterationFunction}); }};

constexpr Precondition kHasNoSwitches = {
    "branches have two successors at most", [](const Function& f) {
      return none_of(f, [](const BasicBlock& b) { return isa<SwitchInst>(b.getTerminator()); });
    }};

constexpr Precondition kHasNoStructurePhis = {"no structure comes from several blocks", [](const Function& f) {
                                                return none_of(instructions(f), [](const Instruction& i) {
                                                  return isa<PHINode>(i) && i.getType()->isStructTy();
                                                });
                                              }};

// ---- Once it is

constexpr Precondition kHasNoLanes = {
    "no lane is computed by itself any more", [](const Function& f) {
      return !calls_one_of(
          f, {kLaneFunction, kCollectiveLaneFunction, kLanesShuffleFunction, kLanesVoteFunction, kLanesTakeFunction,
              kLanesExchangeFunction, kLanesUpFunction, kLanesFirstFunction, kLanesMultiplyFunction, kNeverFunction});
    }};

constexpr Precondition kHasNoHalfOffset = {"the half of a coarsened pair is a number",
                                           [](const Function& f) { return !calls_one_of(f, {kHalfOffsetFunction}); }};

constexpr Precondition kIsMachineCode = {"calls are of functions that the loader knows", [](const Function& f) {
                                           return !calls_any(f, [](const PseudoIntrinsic& row) {
                                             const bool is_loaded = row.simd && !*row.simd;
                                             // Barriers at which a simdgroup suspends.
                                             return !is_loaded && row.name != kConvergenceFunction;
                                           });
                                         }};

constexpr Precondition kHasNoBfloat = {
    "bfloats are integers", [](const Function& f) {
      return none_of(instructions(f), [](const Instruction& i) { return i.getType()->getScalarType()->isBFloatTy(); });
    }};

// ---- GPUs

constexpr Precondition kIndexIsSplit = {
    "a thread's index is its simdgroup's and its lane", [](const Function& f) {
      return none_of(instructions(f), [](const Instruction& i) { return thread_value(&i) == kIndexInThreadgroup; });
    }};

constexpr Precondition kHasNoPoints = {
    "collectives and barriers are instructions", [](const Function& f) {
      return !calls_one_of(f, {kConvergenceFunction, kProductConvergenceFunction, kMaskFunction, kNeverFunction});
    }};

constexpr Precondition kIsUnpredicated = {"no access is a predicated instruction yet", [](const Function& f) {
                                            return none_of(instructions(f), [](const Instruction& i) {
                                              const auto* call = dyn_cast<CallInst>(&i);
                                              if (!call || !call->isInlineAsm() || !call->mayReadOrWriteMemory())
                                                return false;
                                              const StringRef text =
                                                  cast<InlineAsm>(call->getCalledOperand())->getAsmString();
                                              return text.starts_with("@") || text.contains("; @");
                                            });
                                          }};

struct PassRow {
  StringLiteral pass;
  const Precondition* conditions[3];  // null: no more
};

// A row for each pass of pipeline.cpp and kiln-opt, in the order of pipeline.cpp; tools/check_passes.py names those
// that take nothing for granted, and why.
ArrayRef<PassRow> pass_rows() {
  static constexpr PassRow kRows[] = {
      // One thread.
      {"target-layout", {&kAsClangMadeIt}},
      {"dynamic-threadgroup-memory", {&kAsClangMadeIt}},
      // What is undefined in C++ is still as the body has it: no pass has moved it.
      {"defined-arithmetic", {&kAsClangMadeIt}},
      {"bfloat", {&kAsClangMadeIt}},
      {"mark-calls", {&kAsClangMadeIt}},
      // A copy of a numbered point would be the same instance twice.
      {"common-calls", {&kUnnumbered}},
      {"inline", {&kUnnumbered}},
      {"constant-initializers", {&kUnnumbered}},
      {"matrix-elements", {&kUnnumbered}},
      {"threadgroup-pointer-tables", {&kUnguarded}},
      {"split-structures", {&kUnguarded}},
      {"vector-copies", {&kUnguarded}},
      {"component-extractions", {&kUnguarded}},
      {"shape-constants", {&kUnguarded}},
      {"describe-accesses", {&kUnguarded}},
      {"unsigned-operations", {&kUnguarded, &kUnnumbered}},
      {"bounds-guards", {&kUnguarded, &kUnnumbered}},
      {"batch-elements", {&kUnnumbered}},
      {"yields", {&kUnnumbered}},
      {"matrix-products", {&kUnnumbered}},
      // The barriers that it inserts get numbers like others.
      {"reuse-barriers", {&kUnnumbered}},
      {"convergence-points", {&kUnnumbered}},
      {"convergence-points-in-loops", {&kUnnumbered}},
      {"positions", {&kNumbered}},
      {"thread-values", {&kNumbered}},
      // The SIMD engine, lane by lane.
      {"reference-loads", {&kNumbered, &kHasNoThreadValues}},
      {"collectives-in-loops", {&kNumbered}},
      {"lane-collectives", {&kNumbered, &kHasNoThreadValues}},
      // It runs before products of matrices are operations on lanes, too.
      {"affine-lanes", {&kNumbered}},
      {"warp-masks", {&kNumbered, &kHasNoProducts}},
      {"remove-warp-masks", {&kNumbered, &kHasNoProducts}},
      {"structure-phis", {&kHasNoProducts, &kHasNoMasks}},
      {"components", {&kHasNoProducts, &kHasNoMasks, &kHasNoStructurePhis}},
      {"rolled-loops", {&kHasNoProducts, &kHasNoMasks, &kHasNoThreadValues}},
      {"remove-iterations", {&kHasNoProducts, &kHasNoMasks}},
      {"coarsened-positions", {&kHasNoMasks, &kHasNoIterations, &kHasNoThreadValues}},
      {"interleaved-variables", {&kHasNoMasks, &kHasNoIterations}},
      {"row-blocks", {&kHasNoMasks, &kHasNoIterations}},
      {"row-unrolling", {&kHasNoMasks, &kHasNoIterations}},
      {"narrow-integers", {&kHasNoMasks, &kHasNoIterations}},
      {"cluster-stores", {&kHasNoMasks, &kHasNoIterations}},
      {"barrier-uniformity", {&kHasNoMasks, &kHasNoIterations}},
      {"sink-stores", {&kHasNoSwitches, &kHasNoMasks, &kHasNoIterations}},
      {"early-exits", {&kHasNoSwitches, &kHasNoMasks, &kHasNoIterations}},
      {"guard-extension", {&kHasNoSwitches, &kHasNoIterations}},
      {"guarded-atomics", {&kHasNoSwitches, &kHasNoIterations}},
      {"structurize", {&kHasNoSwitches, &kHasNoIterations}},
      {"flow-conditions", {&kHasNoSwitches, &kHasNoIterations}},
      {"reload-inputs", {&kHasNoSwitches, &kHasNoIterations}},
      {"thread-coarsening", {&kHasNoSwitches, &kHasNoIterations}},
      {"execution-cost", {&kHasNoMasks, &kHasNoIterations}},
      {"widen", {&kHasNoSwitches, &kHasNoMasks, &kHasNoIterations}},
      // The SIMD engine's functions for rows, simdgroups and threadgroups.
      {"restore-sinks", {&kHasNoLanes}},
      {"half-offset", {&kHasNoLanes}},
      {"threadgroup-memory", {&kHasNoLanes}},
      {"function-versioning", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"scalar-slow-version", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"launch-loads", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"indirect-prefetch", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"coarsened-addresses", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"coarsened-loop-versioning", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"lane-loop-splitting", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"order-stores", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"loop-versioning", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"atomic-prefetch", {&kHasNoLanes, &kHasNoHalfOffset}},
      {"tile-multibuffering", {&kHasNoLanes, &kHasNoThreadValues}},
      {"simdgroup-loops", {&kHasNoLanes, &kHasNoThreadValues}},
      {"suspend-points", {&kNumbered, &kHasNoLanes, &kHasNoThreadValues}},
      {"threadgroup-versioning", {&kHasNoLanes, &kHasNoThreadValues}},
      {"deferred-reductions", {&kHasNoLanes, &kHasNoThreadValues}},
      {"store-forwarding", {&kHasNoLanes, &kHasNoThreadValues}},
      {"prefetch", {&kHasNoLanes, &kHasNoThreadValues}},
      {"masked-loads", {&kNumbered, &kHasNoLanes, &kHasNoThreadValues}},
      // Machine code.
      {"half-comparisons", {&kHasNoBfloat, &kIsMachineCode}},
      {"half-selects", {&kHasNoBfloat, &kIsMachineCode}},
      {"half-operations", {&kHasNoBfloat, &kIsMachineCode}},
      {"min-max-idiom", {&kIsMachineCode}},
      {"word-masks", {&kIsMachineCode}},
      {"bit-counts", {&kIsMachineCode}},
      {"int4-to-float", {&kIsMachineCode}},
      {"lane-reductions", {&kIsMachineCode}},
      {"compose-shuffles", {&kIsMachineCode}},
      {"gather-addresses", {&kIsMachineCode}},
      {"gather-instructions", {&kIsMachineCode}},
      {"pressure-scheduler", {&kIsMachineCode}},
      {"extension-uses", {&kIsMachineCode}},
      {"interrupt-polls", {&kIsMachineCode}},
      // A GPU's code.
      {"volatile-atomics", {&kUnnumbered}},
      {"thread-index", {&kNumbered}},
      {"simdgroup-masks", {&kNumbered, &kIndexIsSplit}},
      {"tensor-products", {&kHasNoMasks, &kIndexIsSplit}},
      {"simdgroup-collectives", {&kHasNoMasks, &kIndexIsSplit}},
      {"threadgroup-variables", {&kHasNoPoints}},
      {"kernel-entry", {&kHasNoPoints}},
      {"parameter-loads", {&kHasNoPoints, &kHasNoThreadValues}},
      {"full-unrolling", {&kHasNoPoints, &kHasNoThreadValues}},
      {"component-conditions", {&kHasNoPoints, &kHasNoThreadValues}},
      {"guarded-loop-versioning", {&kHasNoPoints, &kHasNoThreadValues}},
      {"threadgroup-copies", {&kIsUnpredicated, &kHasNoPoints, &kHasNoThreadValues}},
      {"partial-unrolling", {&kHasNoPoints, &kHasNoThreadValues}},
      {"pairs", {&kHasNoPoints, &kHasNoThreadValues}},
      {"constant-offsets", {&kIsUnpredicated, &kHasNoThreadValues}},
      {"guard-comparisons", {&kIsUnpredicated, &kHasNoPoints}},
      {"guard-indices", {&kIsUnpredicated, &kHasNoPoints}},
      {"alignments", {&kIsUnpredicated, &kHasNoPoints}},
      {"asynchronous-copies", {&kIsUnpredicated, &kHasNoPoints}},
      {"adjacent-loads", {&kIsUnpredicated, &kHasNoPoints}},
      {"flat-branches", {&kIsUnpredicated, &kHasNoPoints}},
      {"predicated-accesses", {&kHasNoPoints, &kHasNoThreadValues}},
      {"hardware-operations", {&kHasNoPoints, &kHasNoThreadValues}},
      {"share-sinks", {&kHasNoPoints, &kHasNoThreadValues}},
  };
  return kRows;
}

const PassRow* row_of_pass(StringRef pass) {
  const PassRow* row = find_if(pass_rows(), [&](const PassRow& one) { return one.pass == pass; });
  return row == pass_rows().end() ? nullptr : row;
}

const char* first_broken(const PassRow& row, const Function& function) {
  for (const Precondition* condition : row.conditions)
    if (condition && !condition->holds(function)) return condition->claim;
  return nullptr;
}

}  // namespace

const char* broken_precondition(StringRef pass, const Function& function) {
  const PassRow* row = row_of_pass(pass);
  return row && !function.isDeclaration() ? first_broken(*row, function) : nullptr;
}

const char* broken_precondition(StringRef pass, const Module& module) {
  const PassRow* row = row_of_pass(pass);
  if (!row) return nullptr;
  for (const Function& function : module)
    if (const char* claim = function.isDeclaration() ? nullptr : first_broken(*row, function)) return claim;
  return nullptr;
}

}  // namespace kiln
