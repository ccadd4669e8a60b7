#include "compiler/vectorize/widen.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>

#include "compiler/analysis/barrier_uniformity.h"
#include "compiler/analysis/divergence.h"
#include "compiler/analysis/structured_flow.h"
#include "compiler/analysis/uniformity.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/lowering/affine_lanes.h"
#include "compiler/lowering/convergence_points.h"
#include "compiler/lowering/lane_collectives.h"
#include "compiler/lowering/structure_phis.h"
#include "compiler/lowering/vector_bitcasts.h"
#include "compiler/lowering/warp_masks.h"
#include "compiler/vectorize/cluster_stores.h"
#include "compiler/vectorize/early_exits.h"
#include "compiler/vectorize/guarded_atomics.h"
#include "compiler/vectorize/reload_inputs.h"
#include "compiler/vectorize/sink_stores.h"
#include "compiler/vectorize/widener.h"
#include "compiler/vectorize/widening_cost.h"
#include "compiler/workgroup/thread_coarsening.h"

namespace kiln {
namespace {

using namespace llvm;

// Vectors of the kernel's own as their components: they become vectors of 32.
void split_vectors(Function& function, ThreadAnalyses& analyses) {
  spell_out_bitcasts(function);
  analyses.forget(function);
  ScalarizerPassOptions options;
  options.ScalarizeLoadStore = true;
  options.ScalarizeVariableInsertExtract = true;
  options.ScalarizeMinBits = 0;
  FunctionPassManager passes;
  passes.addPass(ScalarizerPass(options));
  analyses.run(passes, function);
}

// Shapes and numbers that are given by reference never change, which loads lose that leave a condition. As they are the
// same in all iterations of a loop that threads leave one by one, they are the same for all threads behind it.
void find_invariant_loads(Function& function) {
  for (Instruction& instruction : instructions(function)) {
    auto* load = dyn_cast<LoadInst>(&instruction);
    if (!load || !load->isSimple()) continue;
    auto* argument = dyn_cast<LoadInst>(load->getPointerOperand()->stripInBoundsConstantOffsets());
    if (argument && argument->hasMetadata(LLVMContext::MD_invariant_load) &&
        argument->hasMetadata(LLVMContext::MD_dereferenceable))
      load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(function.getContext(), {}));
  }
}

}  // namespace

std::string widen(Function& function, const WidenOptions& options) {
  if (!options.takes_long_bodies) {
    if (std::string reason = refuse_by_length(function); !reason.empty()) {
      function.deleteBody();
      return reason;
    }
  }
  ThreadAnalyses analyses;
  hide_sinks(function);
  analyses.run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>", function);
  find_invariant_loads(function);
  auto give_up = [&](std::string reason) {
    function.deleteBody();
    restore_sinks(function);
    return reason;
  };
  auto keep_in_loops = [&] {
    InLoops are = keep_collectives_in_loops(function);
    if (are == InLoops::kKept) analyses.forget(function);
    return are != InLoops::kLost;
  };
  if (!keep_in_loops()) return give_up(kLostCollective);
  if (std::string reason = lower_collectives(function, options.sites); !reason.empty()) return give_up(reason);
  split_affine_lanes(function);
  options.keep_stage("lanes");
  auto is_barrier = [&](const Instruction& instruction) {
    std::optional<unsigned> site = convergence_point_at(instruction);
    return site && options.sites[*site].is_barrier;
  };
  analyses.forget(function);
  if (!masks_are_together(function, analyses.functions(), is_barrier)) return give_up(kMayConvergeElsewhere);
  remove_masks(function);
  split_structure_phis(function);
  split_vectors(function, analyses);
  analyses.run("sroa,early-cse,simplifycfg", function);
  // What is out of a loop that is unrolled would be the same for all of its iterations.
  if (!keep_in_loops()) return give_up(kLostCollective);
  // Loops that are unrolled make indices of private arrays constant. Others are left at their end, so that they need no
  // structuring.
  analyses.run("loop-mssa(loop-instsimplify,loop-rotate,licm),loop(loop-deletion,loop-unroll-full)", function);
  find_invariant_loads(function);
  analyses.run("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,sroa", function);
  if (!keep_in_loops()) return give_up(kLostCollective);
  remove_iterations(function);
  analyses.run("adce", function);
  // Variables that unrolling has made values are vectors again.
  if (any_of(instructions(function), [](const Instruction& i) { return i.getType()->isVectorTy(); }))
    split_vectors(function, analyses);
  split_affine_lanes(function);
  if (options.halves_share) split_coarsened_positions(function, *function.getArg(3));
  analyses.forget(function);
  cluster_stores(function, analyses.functions());
  options.keep_stage("components");
  const bool has_convergence_points = !options.sites.empty();
  auto refuse_long = [&] {
    if (options.takes_long_bodies) return std::string();
    const auto& divergence = analyses.functions().getResult<DivergenceAnalysis>(function);
    return refuse_by_cost(widening_cost(function, divergence, options.has_avx512), has_convergence_points);
  };
  if (!has_convergence_points)
    if (std::string reason = refuse_long(); !reason.empty()) return give_up(std::move(reason));
  if (!barriers_are_uniform(function, analyses.functions(), blocks_with(function, is_barrier)))
    return give_up("threads may come to a threadgroup_barrier in different numbers");
  analyses.run("lower-switch", function);
  if (sink_stores(function, analyses.functions())) analyses.forget(function);
  auto waits = [](const Instruction& instruction) { return convergence_point_at(instruction).has_value(); };
  auto put_first = [&](function_ref<bool(const Instruction&)> are_waited_for) {
    const EarlyExits leavings =
        linearize_early_exits(function, analyses.functions(), blocks_with(function, are_waited_for));
    if (leavings == EarlyExits::kFirst) analyses.forget(function);
    return leavings != EarlyExits::kTooLate;
  };
  // Who waits for the simdgroup alone may be on the way out for the threadgroup's barriers.
  const bool are_all_barriers = blocks_with(function, waits).size() == blocks_with(function, is_barrier).size();
  if (!put_first(is_barrier) || !(are_all_barriers || put_first(waits))) return give_up(kLeavesTooLate);
  // Barriers that are not uniform are reported first, however long the body is.
  if (has_convergence_points)
    if (std::string reason = refuse_long(); !reason.empty()) return give_up(std::move(reason));
  if (select_guarded_addresses(function, analyses.functions().getResult<DivergenceAnalysis>(function)))
    analyses.forget(function);
  analyses.run(kStructuring, function);
  if (reload_inputs(function, analyses.functions(), is_barrier)) analyses.forget(function);
  options.keep_stage("structured");
  if (options.halves_share)
    *options.halves_share = halves_share_work(function, analyses.functions().getResult<DivergenceAnalysis>(function));
  Function* wide = Function::Create(function.getFunctionType(), function.getLinkage(), "", function.getParent());
  wide->copyAttributesFrom(&function);
  std::string reason;
  try {
    widening::Widener(function, *wide, analyses.functions(), options).run();
  } catch (const widening::Refusal& refusal) {
    reason = refusal.reason;
  }
  function.deleteBody();
  if (!reason.empty()) {
    wide->dropAllReferences();
    wide->eraseFromParent();
    return give_up(reason);
  }
  function.splice(function.begin(), wide);
  for (auto [to, from] : zip(function.args(), wide->args())) from.replaceAllUsesWith(&to);
  wide->eraseFromParent();
  restore_sinks(function);
  options.keep_stage("widened");
  return "";
}

}  // namespace kiln
