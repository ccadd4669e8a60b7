// Every pass that runs on a kernel, in order, each with the reason for its place.
//
//   one thread     make_one_function, expose_addresses, guard_accesses: the same for every target
//   CPU            lower_for_cpu: the SIMD engine (vectorize, then rows, simdgroups or threadgroups), or the scalar one
//                  prepare_for_x86: what the back end would do worse
//   NVIDIA         lower_for_nvidia, prepare_for_ptx
//
// `pipeline.run("name", …)` is a pass that correctness needs. `pipeline.run(optional("name"), …)` is an optional one:
// its name is in the list below, KILN_PASSES=-name switches it off, and results do not depend on it. A pass that is
// added gets a line here, a name, its reason, and tests below tests/compiler.
#include "compiler/pipeline.h"

#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "compiler/analysis/barrier_uniformity.h"
#include "compiler/analysis/structured_flow.h"
#include "compiler/analysis/uniformity.h"
#include "compiler/codegen/compose_shuffles.h"
#include "compiler/codegen/extension_uses.h"
#include "compiler/codegen/half_comparisons.h"
#include "compiler/codegen/lane_loop_splitting.h"
#include "compiler/codegen/lane_reductions.h"
#include "compiler/codegen/min_max_idiom.h"
#include "compiler/codegen/pressure_scheduler.h"
#include "compiler/codegen/split_vectors.h"
#include "compiler/codegen/word_masks.h"
#include "compiler/engines/engine_support.h"
#include "compiler/engines/scalar_entry.h"
#include "compiler/engines/simd_entry.h"
#include "compiler/engines/thread_positions.h"
#include "compiler/ir/entry.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"
#include "compiler/ir/striped_atomics.h"
#include "compiler/ir/vector_isa.h"
#include "compiler/lowering/affine_lanes.h"
#include "compiler/lowering/approximations.h"
#include "compiler/lowering/bounds_guards.h"
#include "compiler/lowering/common_calls.h"
#include "compiler/lowering/constant_initializers.h"
#include "compiler/lowering/convergence_points.h"
#include "compiler/lowering/defined_arithmetic.h"
#include "compiler/lowering/flow_conditions.h"
#include "compiler/lowering/inline_all.h"
#include "compiler/lowering/interrupt_polls.h"
#include "compiler/lowering/lane_collectives.h"
#include "compiler/lowering/ldexp.h"
#include "compiler/lowering/masked_loads.h"
#include "compiler/lowering/matrix_products.h"
#include "compiler/lowering/module_preparation.h"
#include "compiler/lowering/reference_loads.h"
#include "compiler/lowering/scalar_components.h"
#include "compiler/lowering/shape_constants.h"
#include "compiler/lowering/small_floats.h"
#include "compiler/lowering/spin_loops.h"
#include "compiler/lowering/split_structures.h"
#include "compiler/lowering/structure_phis.h"
#include "compiler/lowering/threadgroup_pointer_tables.h"
#include "compiler/lowering/unreachable_defaults.h"
#include "compiler/lowering/unsigned_operations.h"
#include "compiler/lowering/vector_bitcasts.h"
#include "compiler/lowering/vector_copies.h"
#include "compiler/lowering/warp_masks.h"
#include "compiler/memory/constant_offsets.h"
#include "compiler/memory/indirect_prefetch.h"
#include "compiler/memory/prefetch.h"
#include "compiler/memory/store_forwarding.h"
#include "compiler/nvptx/adjacent_loads.h"
#include "compiler/nvptx/alignments.h"
#include "compiler/nvptx/asynchronous_copies.h"
#include "compiler/nvptx/component_conditions.h"
#include "compiler/nvptx/exact_operations.h"
#include "compiler/nvptx/flat_branches.h"
#include "compiler/nvptx/full_unrolling.h"
#include "compiler/nvptx/guard_indices.h"
#include "compiler/nvptx/kernel_entry.h"
#include "compiler/nvptx/predicated_accesses.h"
#include "compiler/nvptx/simdgroup_collectives.h"
#include "compiler/nvptx/simdgroup_masks.h"
#include "compiler/nvptx/tensor_products.h"
#include "compiler/nvptx/threadgroup_copies.h"
#include "compiler/nvptx/threadgroup_memory.h"
#include "compiler/vectorize/cluster_stores.h"
#include "compiler/vectorize/early_exits.h"
#include "compiler/vectorize/execution_cost.h"
#include "compiler/vectorize/guard_extension.h"
#include "compiler/vectorize/guarded_atomics.h"
#include "compiler/vectorize/interleaved_variables.h"
#include "compiler/vectorize/narrow_integers.h"
#include "compiler/vectorize/reload_inputs.h"
#include "compiler/vectorize/rolled_loops.h"
#include "compiler/vectorize/row_blocks.h"
#include "compiler/vectorize/row_unrolling.h"
#include "compiler/vectorize/sink_stores.h"
#include "compiler/vectorize/widen.h"
#include "compiler/vectorize/widening_cost.h"
#include "compiler/versioning/function_versioning.h"
#include "compiler/versioning/loop_versioning.h"
#include "compiler/workgroup/coarsened_addresses.h"
#include "compiler/workgroup/deferred_reductions.h"
#include "compiler/workgroup/reuse_barriers.h"
#include "compiler/workgroup/simdgroup_loops.h"
#include "compiler/workgroup/suspend_points.h"
#include "compiler/workgroup/thread_coarsening.h"
#include "compiler/workgroup/tile_multibuffering.h"
#include "compiler/x86/bit_counts.h"
#include "compiler/x86/gather_addresses.h"
#include "compiler/x86/gather_instructions.h"
#include "compiler/x86/int4_to_float.h"
#include "core/device_traits.h"
#include "core/text.h"

namespace kiln {
namespace {

using namespace llvm;

// ---- The optional passes

// clang-format off: a name a line
constexpr const char* kOptionalPasses[] = {
    "adjacent-loads",
    "affine-lanes",
    "asynchronous-copies",
    "atomic-prefetch",
    "bit-counts",
    "cluster-stores",
    "coarsened-addresses",
    "coarsened-loop-versioning",
    "common-calls",
    "component-conditions",
    "compose-shuffles",
    "constant-offsets",
    "deferred-reductions",
    "extension-uses",
    "flat-branches",
    "flow-conditions",
    "full-unrolling",
    "function-versioning",
    "gather-addresses",
    "gather-instructions",
    "guard-indices",
    "guarded-atomics",
    "guarded-loop-versioning",
    "half-comparisons",
    "indirect-prefetch",
    "int4-to-float",
    "interleaved-variables",
    "lane-loop-splitting",
    "lane-reductions",
    "loop-versioning",
    "masked-loads",
    "min-max-idiom",
    "narrow-integers",
    "order-stores",
    "partial-unrolling",
    "prefetch",
    "pressure-scheduler",
    "reload-inputs",
    "rolled-loops",
    "row-blocks",
    "row-unrolling",
    "scalar-slow-version",
    "simdgroup-loops",
    "store-forwarding",
    "tensor-products",
    "thread-coarsening",
    "threadgroup-copies",
    "threadgroup-versioning",
    "tile-multibuffering",
    "unsigned-operations",
    "vector-copies",
    "word-masks",
};
// clang-format on

// A name of the list; another one does not compile.
consteval OptionalPass optional(std::string_view name) {
  for (const char* known : kOptionalPasses)
    if (name == known) return {known};
  throw "kOptionalPasses has no such pass";
}

// ---- Shared sequences of LLVM's passes

// A third of what -O2 costs, for code that is as good: one function, everything inlined, no vectorization. Code that is
// the same for all threads leaves the loop over threads. Unrolling makes indices of private arrays constant, so that
// SROA can promote them. InstCombine, the most expensive pass, runs once, when everything is in registers; in a
// pipeline in text it would end the process, unless told otherwise, where one round leaves work for a second. PRE would
// compute on every path what only a rare path needs. `loop-unroll` is for `#pragma unroll N`.
constexpr const char* kOptimize =
    "early-cse<memssa>,simplifycfg,"
    "loop-mssa(loop-instsimplify,loop-rotate,licm),loop(loop-deletion,loop-unroll-full),sroa,"
    "gvn<no-pre>,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg,"
    "loop-unroll<O2;no-runtime>,instsimplify";

void optimize(Pipeline& pipeline, Module& module) {
  for (Function& function : module)
    if (!function.isDeclaration()) pipeline.run_llvm(kOptimize, function);
  pipeline.run_llvm("globaldce", module);
}

// Loops that are marked. What their copies have in common stays once.
constexpr const char* kUnrollMarked =
    "loop-simplify,lcssa,loop-unroll<O2;no-partial;no-peeling;no-runtime;no-upperbound>,instsimplify,early-cse,"
    "simplifycfg";

// The same for a GPU, in parts: loops that are to be unrolled are chosen in between.
constexpr const char* kBeforeGpuUnrolling =
    "function(early-cse<memssa>,simplifycfg,loop-mssa(loop-instsimplify,loop-rotate,licm))";
constexpr const char* kOptimizeForGpu =
    "function(loop(loop-deletion,loop-unroll-full),sroa,"
    "gvn<no-pre>,instcombine<no-verify-fixpoint>)";
constexpr const char* kCleanUpForGpu = "function(dse,adce,simplifycfg)";
constexpr const char* kAfterGpuUnrolling = "function(loop-unroll<O2;no-runtime>,instsimplify,early-cse),globaldce";

// Removes the checks that versioning has hoisted.
constexpr const char* kRemoveChecks = "simplifycfg,early-cse,adce,simplifycfg";

// Accesses in a loop from which it is worth to have the loop twice.
constexpr unsigned kFewestRows = 3;

// Instructions of a simdgroup from which it has masks where these have registers of their own: code for full simdgroups
// alone would take as long to compile again, and is hardly faster. Not with variables in memory: a load waits for a
// masked store to the same place.
constexpr unsigned kLongSimdgroup = 300;

// Instructions of a simdgroup from which the version that checks each access is one thread's code in a loop, where it
// runs at the ends of arrays alone: vector code of it takes half of the time to compile both.
constexpr unsigned kLongSlowVersion = 600;

template <class Pass>
void hoist_checks(Pipeline& pipeline, OptionalPass name, Pass pass, Function& function) {
  pipeline.run_pass(name, std::move(pass), function);
  pipeline.run_llvm(kRemoveChecks, function);
}

void split_lane_loops(Pipeline& pipeline, Function& function, const VectorIsa& vector_isa, bool may_have_collectives) {
  pipeline.run_pass(optional("lane-loop-splitting"), LaneLoopSplittingPass(vector_isa, may_have_collectives), function);
}

// Lines are for remarks; machine code has none.
void strip_lines(Pipeline& pipeline, Module& module) {
  if (pipeline.request().keep_remarks) pipeline.run("strip-lines", module, [&] { return StripDebugInfo(module); });
}

bool fold_known_branches(Function& function) {
  bool has_changed = false;
  for (BasicBlock& block : function) has_changed |= ConstantFoldTerminator(&block, /*DeleteDeadConditions=*/true);
  if (has_changed) removeUnreachableBlocks(function);
  return has_changed;
}

// Only its address is asked for.
void make_empty(Function& function) {
  function.deleteBody();
  ReturnInst::Create(function.getContext(), BasicBlock::Create(function.getContext(), "", &function));
}

bool has_indirect_calls(const Function& function) {
  return any_of(instructions(function), [](const Instruction& instruction) {
    const auto* call = dyn_cast<CallBase>(&instruction);
    return call && call->isIndirectCall();
  });
}

}  // namespace

std::span<const char* const> optional_passes() { return kOptionalPasses; }

// ---- The code of one thread

bool make_one_function(Pipeline& pipeline, Module& module, const ThreadTarget& thread) {
  const KernelUnit& unit = pipeline.request().unit;
  // First: sizes of types depend on the layout, and each function's subtarget on its attributes.
  pipeline.run("target-layout", module, [&] { set_layout(module, thread.layout); });
  pipeline.run("dynamic-threadgroup-memory", module, [&] { define_dynamic_memory(module, unit.dynamic_memory_bytes); });
  // Pseudo-intrinsics get their attributes, or a meaning, before code is moved.
  set_attributes(module);
  const bool has_vectors = prefers_simd(pipeline.request().target);
  pipeline.run("ldexp", module, [&] {
    if (!has_vectors || !thread.vector_isa.scale) expand_ldexp(module);
  });
  pipeline.run("approximations", module, [&] {
    const bool are_allowed = unit.math_mode != MathMode::kSafe;
    fold_approximations(module, are_allowed && thread.approximate);
    if (are_allowed && thread.approximate)
      thread.approximate(module);
    else if (!are_allowed || !has_vectors)
      expand_approximations(module);
    if (thread.round_rsqrt)
      thread.round_rsqrt(module);
    else if (!has_vectors || !thread.vector_isa.estimates_rsqrt_to_14_bits)
      expand_rounded_rsqrt(module);
  });
  // Before anything may take C++'s undefined behaviour for granted.
  pipeline.run("defined-arithmetic", module, [&] { define_arithmetic(module); });
  pipeline.run("bfloat", module, [&] { expand_bfloat(module); });
  // Needs the functions that inlining removes.
  pipeline.run("mark-calls", module, [&] { mark_calls(module); });
  // From here on nothing is undefined, and code may be moved. Calls can be compared as long as they are calls.
  pipeline.run(optional("common-calls"), module, [&] { return merge_common_calls(module, kBodyFunction); });
  pipeline.run("inline", module, [&] { inline_all(module, kBodyFunction); });
  // Line tables serve remarks, and instructions have them whichever function they are in. A function that says that it
  // has some would be verified, and what passes insert has none.
  if (pipeline.request().keep_remarks)
    for (Function& function : module) function.setSubprogram(nullptr);
  // While control flow is as Clang made it: positions in the program are read from it.
  pipeline.run("constant-initializers", module, [&] { evaluate_constant_initializers(module); });
  pipeline.run("matrix-elements", module, [&] { assign_matrix_elements(module, thread.matrix_map); });
  return !has_indirect_calls(*module.getFunction(kBodyFunction));
}

void expose_addresses(Pipeline& pipeline, Function& body) {
  pipeline.run("threadgroup-pointer-tables", body, [&] { unfold_threadgroup_pointer_tables(body); });
  // A pointer in a structure has no argument that it could be followed to.
  if (pipeline.request().unit.bounds_guards) pipeline.run("split-structures", body, [&] { split_structures(body); });
}

void guard_accesses(Pipeline& pipeline, Function& body, std::span<const KernelParameter> parameters) {
  const KernelUnit& unit = pipeline.request().unit;
  if (traits_of(pipeline.request().target.kind).has_vector_accesses)
    pipeline.run(optional("vector-copies"), body, [&] { return load_and_store_copies(body); });
  // Before guards: ranges of components and constant shapes prove accesses to be inside.
  pipeline.run("component-extractions", body, [&] { extract_components(body); });
  pipeline.run("shape-constants", body, [&] { replace_known_shapes(body, unit); });
  pipeline.run("describe-accesses", body, [&] { describe_accesses(body, unit, parameters); });
  // After shapes are constants, and before LLVM makes shifts and products of signed divisions.
  pipeline.run(optional("unsigned-operations"), body,
               [&] { return use_unsigned_operations(body, ThreadLimits(unit)); });
  // Before optimization, which would follow pointers less far than guards do.
  const bool compares_with_launch = prefers_simd(pipeline.request().target);
  if (unit.bounds_guards)
    pipeline.run("bounds-guards", body, [&] { insert_bounds_guards(body, unit, parameters, compares_with_launch); });
  pipeline.run("batch-elements", body, [&] { expand_elements(*body.getParent()); });
}

// ---- The SIMD engine: one thread's code as a simdgroup's

namespace {

struct Vectorized {
  std::string refusal;  // empty: it is done
  std::vector<ConvergencePoint> points;
  bool is_by_simdgroups = false;  // a function for one simdgroup of a threadgroup, not for rows of threads in x
  bool halves_share = false;      // pairs of simdgroups are computed together (workgroup/thread_coarsening.h)
};

// Makes kGroupFunction of a copy of the body, which calls it for one lane.
Function& add_group(Pipeline& pipeline, Module& module, const VectorIsa& vector_isa, Vectorized& result) {
  const KernelUnit& unit = pipeline.request().unit;
  ValueToValueMapTy map;
  Function* copy = CloneFunction(module.getFunction(kBodyFunction), map);
  pipeline.run("reuse-barriers", *copy, [&] { add_reuse_barriers(*copy); });
  // Before any optimization: a copy of a call must still say which instance it is.
  result.points =
      pipeline.run("convergence-points", *copy, [&] { return number_convergence_points(*copy, LoopEnds::kKept); });
  // Short rows would leave most lanes without a thread. Of rows of 16 threads half have one, and without mask registers
  // rows that threads walk are accessed so much faster from one row of threads.
  const bool pays = unit.form.rows_are_short && (unit.form.row_threads < kLanes / 2 || vector_isa.has_mask_registers);
  result.is_by_simdgroups = !result.points.empty() || pays;
  // A CpuSimdgroupFunction; or one with RowParameter's numbers.
  Type *pointer = PointerType::getUnqual(module.getContext()), *number = Type::getInt32Ty(module.getContext());
  SmallVector<Type*> own = result.is_by_simdgroups ? SmallVector<Type*>{pointer, number, number}
                                                   : SmallVector<Type*>{number, number, number, number};
  Function& group = add_caller(*copy, kGroupFunction, own, unit);
  pipeline.run("inline-body", module, [&] { inline_into_callers(module, {copy}); });
  // Without convergence points a row does not belong to one threadgroup: neighbours' rows may be run as one.
  pipeline.run("positions", group,
               [&] { lower_positions(group, unit.form, result.is_by_simdgroups, unit.dialect == Dialect::kCuda); });
  // LLVM would make a call for each element of a vector of bfloats.
  pipeline.run("bfloat-conversions", group, [&] { remove_bfloat(group); });
  return group;
}

std::string vectorize_group(Pipeline& pipeline, Function& group, Vectorized& result, const VectorIsa& vector_isa,
                            bool takes_long_bodies) {
  const KernelUnit& unit = pipeline.request().unit;
  const bool has_points = !result.points.empty();
  ThreadAnalyses analyses;
  const auto use = pipeline.use(analyses);
  FunctionAnalysisManager& functions = analyses.functions();
  auto is_barrier = [&](const Instruction& instruction) {
    std::optional<unsigned> point = convergence_point_at(instruction);
    return point && result.points[*point].is_barrier;
  };
  auto is_point = [](const Instruction& instruction) { return convergence_point_at(instruction).has_value(); };
  // A condition that becomes known may move a collective out of its loop, where it would be the same instruction for
  // several iterations.
  auto keep_in_loops = [&] {
    return pipeline.run("collectives-in-loops", group, [&] { return keep_collectives_in_loops(group); }) !=
           LoopMembership::kLost;
  };

  // A sink is a variable of the thread, and would become one of 32 lanes.
  pipeline.run("hide-sinks", group, [&] { hide_sinks(group); });
  // Before InstCombine, which clears more bits in `i & ~1` where it knows that they are 0.
  pipeline.run_llvm("sroa,early-cse", group);
  pipeline.run(optional("affine-lanes"), group, [&] { split_lowest_bits(group); });
  pipeline.run_llvm("simplifycfg,instcombine<no-verify-fixpoint>", group);
  pipeline.run("reference-loads", group, [&] { return mark_reference_loads(group); });
  if (!keep_in_loops()) return kLostCollective;
  // In registers the operands of collectives are known; later passes move lane operations but not calls that wait.
  if (std::string reason =
          pipeline.run("lane-collectives", group, [&] { return lower_collectives(group, result.points); });
      !reason.empty())
    return reason;
  // Before masks are checked: which lanes take part is a question of the simdgroup then.
  pipeline.run(optional("affine-lanes"), group, [&] { split_affine_lanes(group); });
  pipeline.keep_stage("lanes", *group.getParent());
  if (!pipeline.query("warp-masks", group, [&] { return masks_are_converged(group, functions, is_barrier); }))
    return kMayWaitElsewhere;
  pipeline.run("remove-warp-masks", group, [&] { remove_masks(group); });
  // The widener knows scalars: structures and vectors of the kernel's own become their components.
  pipeline.run("structure-phis", group, [&] { split_structure_phis(group); });
  pipeline.run("components", group, [&] { split_into_components(group, analyses); });
  pipeline.run_llvm("sroa,early-cse,simplifycfg", group);
  // Before unrolling: outside of a loop a collective would be the same for all of its iterations.
  if (!keep_in_loops()) return kLostCollective;
  // Loops get their exit at the latch, so that they need no structurization.
  pipeline.run_llvm("loop-mssa(loop-instsimplify,loop-rotate,licm),loop(loop-deletion)", group);
  // Unrolled loops make indices of private arrays constant, where none depends on data.
  pipeline.run(optional("rolled-loops"), group, [&] { return keep_loops_rolled(group, functions); });
  pipeline.run_llvm("loop(loop-unroll-full)", group);
  pipeline.run("reference-loads", group, [&] { return mark_reference_loads(group); });
  // Strides that a loop halves are constants now. Before InstCombine, which makes `lane & 15` of the second operand of
  // `i - (i & 15)`, so that its guards are not proved.
  pipeline.run(optional("affine-lanes"), group, [&] { split_lowest_bits(group); });
  // What an unrolled loop has in each iteration of the loop around it leaves that one.
  pipeline.run_llvm("sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,sroa,loop-mssa(licm)", group);
  if (!keep_in_loops()) return kLostCollective;
  // The last pass that needs iterations has run.
  pipeline.run("remove-iterations", group, [&] { remove_iterations(group); });
  pipeline.run_llvm("adce", group);
  // Variables that unrolling has made values are vectors again.
  if (any_of(instructions(group), [](const Instruction& i) { return i.getType()->isVectorTy(); }))
    pipeline.run("components", group, [&] { split_into_components(group, analyses); });
  // After full unrolling, which leaves the longer loops. Their iterations stay one by one.
  if (pipeline.run(optional("row-blocks"), group, [&] {
        return make_row_blocks(group, functions.getResult<DivergenceAnalysis>(group), functions, vector_isa);
      }))
    pipeline.run_llvm("early-cse,adce", group);
  // Those that do not write.
  if (pipeline.run(optional("row-unrolling"), group, [&] {
        return mark_loops_over_rows(group, functions.getResult<DivergenceAnalysis>(group), functions);
      }))
    pipeline.run_llvm(kUnrollMarked, group);
  // Again: unrolling has made constants of a loop's counter.
  pipeline.run(optional("affine-lanes"), group, [&] { split_affine_lanes(group); });
  const bool may_coarsen = unit.form.rows_are_simdgroup_pairs && !result.is_by_simdgroups;
  if (!has_points && !may_coarsen)
    remark("thread-coarsening", group,
           unit.form.rows_are_simdgroups
               ? "not for this launch: threadgroups are not multiples of 64 threads in x"
               : "not for this launch: threadgroups, and the grid, are not multiples of 32 threads "
                 "in x");
  if (may_coarsen)
    pipeline.run("coarsened-positions", group, [&] { split_coarsened_positions(group, *group.getArg(kRowX)); });
  // After unrolling, which makes registers of variables whose indices become constants; before costs are estimated.
  pipeline.run(optional("interleaved-variables"), group, [&] { return interleave_variables(group); });
  // After the last InstCombine, which would compute in 32 bits again, and before costs are estimated.
  pipeline.run(optional("narrow-integers"), group,
               [&] { return narrow_integers(group, functions.getResult<DivergenceAnalysis>(group), functions); });
  // Before control flow is structured: stores of one block are adjacent members of a structure.
  pipeline.run(optional("cluster-stores"), group, [&] { cluster_stores(group, functions); });
  pipeline.keep_stage("components", *group.getParent());

  // The cost is known best here, and most of the time of a compilation is still to come.
  auto refuse = [&] {
    if (takes_long_bodies) return std::string();
    const auto& divergence = functions.getResult<DivergenceAnalysis>(group);
    std::string reason = refuse_by_cost(widening_cost(group, divergence, vector_isa), has_points);
    // At convergence points the scalar engine suspends each thread, which takes longer than any access.
    if (reason.empty() && !has_points)
      reason = refuse_by_execution_cost(execution_cost(group, divergence, functions, vector_isa));
    return reason;
  };
  if (!has_points)
    if (std::string reason = refuse(); !reason.empty()) return reason;
  // Before structurization, which would make divergent paths to a barrier one path.
  if (!pipeline.query("barrier-uniformity", group,
                      [&] { return barriers_are_uniform(group, functions, blocks_with(group, is_barrier)); }))
    return "threads may come to a threadgroup_barrier in different numbers";
  // LowerSwitch would make a branch of a default that other blocks part from what cannot be reached.
  pipeline.run("unreachable-defaults", group, [&] { return simplify_unreachable_defaults(group); });
  // The passes below know branches with two successors.
  pipeline.run_llvm("lower-switch", group);
  // Two sides of a branch that store to one address do so in the order of lanes (docs/language.md).
  pipeline.run("sink-stores", group, [&] { return sink_stores(group, functions); });
  // What threads write before they return must come before the barriers of the others, and structurization orders
  // blocks as it likes. Threads that wait for the simdgroup alone may be on the way out for the threadgroup's barriers.
  auto linearize = [&](function_ref<bool(const Instruction&)> is_waited_for) {
    return pipeline.run("early-exits", group, [&] {
      return linearize_early_exits(group, functions, blocks_with(group, is_waited_for));
    }) != EarlyExits::kTooLate;
  };
  const bool are_all_barriers = blocks_with(group, is_point).size() == blocks_with(group, is_barrier).size();
  if (!linearize(is_barrier) || !(are_all_barriers || linearize(is_point))) return kExitsTooLate;
  // Barriers that are not uniform are reported first, however long the body is.
  if (has_points)
    if (std::string reason = refuse(); !reason.empty()) return reason;
  // After the last InstCombine, which narrows guards, and before other conditions become guards of atomics.
  pipeline.run("guard-extension", group,
               [&] { return extend_guards(group, functions.getResult<DivergenceAnalysis>(group)); });
  // Removes branches around atomics, which structurization would keep.
  pipeline.run(optional("guarded-atomics"), group,
               [&] { return select_guarded_addresses(group, functions.getResult<DivergenceAnalysis>(group)); });
  // The widener needs two rules then (vectorize/widen.h).
  pipeline.run_llvm(kStructuring, group);
  // Before widening, in which a phi of bits becomes a mask of its own.
  pipeline.run(optional("flow-conditions"), group, [&] { return replace_flow_phis(group, functions); });
  // After structurization, which moves code across barriers no more.
  pipeline.run(optional("reload-inputs"), group, [&] { return reload_inputs(group, functions, is_barrier); });
  pipeline.keep_stage("structured", *group.getParent());
  if (may_coarsen)
    result.halves_share = pipeline.run(optional("thread-coarsening"), group, [&] {
      return halves_share_work(group, functions.getResult<DivergenceAnalysis>(group));
    });
  auto is_output = [&](uint64_t argument) {
    return argument < unit.parameters.size() && unit.parameters[argument].role == ParameterRole::kOutput;
  };
  const WidenOptions options{vector_isa, unit.form.simdgroups_are_full && result.is_by_simdgroups, result.points,
                             offsetof(CpuLaunch, is_alone), is_output};
  return pipeline.run("widen", group, [&] { return widen(group, functions, options); });
}

// Fills `result.refusal` where the engine cannot take the body; kGroupFunction is gone then.
Vectorized vectorize(Pipeline& pipeline, Module& module, TargetMachine& machine, const VectorIsa& vector_isa) {
  const KernelUnit& unit = pipeline.request().unit;
  const bool takes_long_bodies = pipeline.request().target.engine == "simd-always";
  Vectorized result;
  PassRunner runner(&machine);
  const auto use = pipeline.use(runner);
  result.refusal = vector_isa.refusal;
  // Metal does not promise that threads make progress by themselves (docs/language.md 2.5).
  if (result.refusal.empty() && unit.dialect == Dialect::kCuda && has_spin_loops(*module.getFunction(kBodyFunction)))
    result.refusal = kSpinLoop;
  Function* group = nullptr;
  if (result.refusal.empty()) {
    group = &add_group(pipeline, module, vector_isa, result);
    if (!takes_long_bodies) result.refusal = refuse_by_length(*group);
    if (result.refusal.empty()) {
      result.refusal = vectorize_group(pipeline, *group, result, vector_isa, takes_long_bodies);
      if (!result.refusal.empty()) group->deleteBody();
      pipeline.run("restore-sinks", module, [&] { restore_sinks(*group); });
      if (result.refusal.empty()) pipeline.keep_stage("widened", module);
    }
  }
  // What is left of the pseudo-intrinsics: in the scalar engine's body, or for operands that are not vectors.
  pipeline.run("ldexp", module, [&] { expand_ldexp(module); });
  pipeline.run("approximations", module, [&] {
    expand_approximations(module);
    expand_rounded_rsqrt(module);
  });
  if (result.refusal.empty() && stack_of(*group) > kCpuPrivateMemoryLimit)
    result.refusal = "the private variables of 32 threads take too much memory";
  if (!result.refusal.empty())
    for (const char* name : {kGroupFunction, kLaneFunction})
      if (Function* function = module.getFunction(name)) pipeline.erase(*function);
  return result;
}

// ---- The SIMD engine: a simdgroup's code as a launch's

// No thread waits: a function for rows of threads.
void lower_rows(Pipeline& pipeline, Function& group, bool halves_share, bool has_atomics, bool knows_row,
                EngineOutput& output, const VectorIsa& vector_isa) {
  const KernelUnit& unit = pipeline.request().unit;
  Module& module = *group.getParent();
  Function* body = module.getFunction(kBodyFunction);
  // Before inlining: the function is made twice, and its entry decides for all of its accesses. What the checks of
  // several accesses have in common is one value then. (What a lane of an atomic update loads before another's stays.)
  Function* whole = nullptr;
  if (!halves_share && !has_atomics) pipeline.run_llvm("early-cse", group);
  if (!halves_share)
    whole = pipeline.run(optional("function-versioning"), group,
                         [&] { return make_fast_version(group, pipeline.analyses(), kFewestRows); });
  Function* slow = &group;
  const bool may_be_scalar = body && !has_atomics && group.getInstructionCount() > kLongSlowVersion;
  auto run_slow_threads_in_turn = [&] {
    // There are none, but loops of CUDA bodies have marks, since their threads could wait.
    pipeline.run("convergence-points", *body, [&] { number_convergence_points(*body); });
    pipeline.run("thread-values", *body,
                 [&] { lower_values(*body, body->getArg(body->arg_size() - 1), CpuImageKind::kLoop); });
    slow = &pipeline
                .run("scalar-simdgroup", module,
                     [&]() -> std::reference_wrapper<Function> { return add_scalar_simdgroup(*body, unit); })
                .get();
    pipeline.run("inline-body", module, [&] { inline_into_callers(module, {body}); });
  };
  if (whole && may_be_scalar) {
    pipeline.run_llvm("instsimplify", *whole);
    pipeline.run("known-branches", *whole, [&] { return fold_known_branches(*whole); });
    if (pipeline.run(optional("scalar-slow-version"), *whole, [&] { return take_fewer_threads(*whole, vector_isa); }))
      run_slow_threads_in_turn();
  }
  // Without masks in registers of their own there are two copies of vector code. One runs simdgroups that are not full,
  // of which a launch has one if its rows are whole simdgroups.
  const bool has_masks = vector_isa.has_mask_registers && group.getInstructionCount() > kLongSimdgroup &&
                         none_of(instructions(group), [](const Instruction& i) { return isa<AllocaInst>(i); });
  if (!whole && !halves_share && !has_masks && may_be_scalar && unit.form.rows_are_simdgroups &&
      pipeline.run(optional("scalar-slow-version"), group, [] { return true; }))
    run_slow_threads_in_turn();
  const bool is_scalar = slow != &group;
  if (body && !is_scalar) pipeline.erase(*body);
  output.run_function = kRowFunction;
  Function& row = add_simd_row(group);
  if (!has_atomics) row.setNoSync();
  if (whole) {
    output.takes_rows = knows_row;
    pipeline.run("row-loops", row,
                 [&] { run_rows(row, *whole, *slow, unit.form.rows_are_simdgroup_pairs, knows_row, is_scalar); });
    pipeline.run("inline-body", module, [&] { inline_into_callers(module, {whole}); });
    if (knows_row) pipeline.run("launch-loads", row, [&] { read_launch_first(row); });
  } else if (halves_share) {
    ValueToValueMapTy map;
    Function* full = CloneFunction(&group, map);
    pipeline.run("row-loops", row, [&] { run_coarsened(row, *full, group); });
    pipeline.run("inline-body", module, [&] { inline_into_callers(module, {full}); });
  } else {
    pipeline.run("row-loops", row, [&] {
      if (has_masks)
        run_with_masks(row, group, unit.form.rows_are_simdgroup_pairs);
      else
        run_in_groups(row, group, *slow, unit.form.rows_are_simdgroup_pairs);
    });
    pipeline.run("inline-body", module, [&] { inline_into_callers(module, {&group}); });
  }
  // The slow path stays a function of its own.
  if (whole || halves_share || is_scalar) {
    slow->setLinkage(GlobalValue::InternalLinkage);
    slow->addFnAttr(Attribute::NoInline);
    if (!has_atomics) slow->setNoSync();
  }
  if (is_scalar && whole) pipeline.erase(group);
  optimize(pipeline, module);
  if (halves_share) {
    // Before checks are hoisted out of the loop over halves: a prefetch needs the accesses' guards.
    pipeline.run_pass(optional("indirect-prefetch"), IndirectPrefetchPass(), row);
    pipeline.run_pass(optional("coarsened-addresses"), CoarsenedAddressesPass(), row);
    hoist_checks(pipeline, optional("coarsened-loop-versioning"), CoarsenedLoopVersioningPass(group), row);
    pipeline.run_llvm("loop-mssa(licm)", row);
  }
  // After everything that changes how many values a loop carries.
  split_lane_loops(pipeline, row, vector_isa, /*may_have_collectives=*/false);
  if (is_scalar)
    pipeline.run(optional("masked-loads"), *slow, [&] { mask_at_loads(*slow); });
  else if (whole)
    split_lane_loops(pipeline, group, vector_isa, /*may_have_collectives=*/false);
  pipeline.run(optional("order-stores"), row, [&] { split_stores_in_order(row, vector_isa); });
}

// Lanes exchange values, or are threads of short rows, and none waits for another simdgroup: a function for one
// simdgroup.
void lower_simdgroup(Pipeline& pipeline, Function& group) {
  optimize(pipeline, *group.getParent());
  hoist_checks(pipeline, optional("loop-versioning"), LoopVersioningPass(kFewestRows), group);
  // Otherwise `x` is known to be within a threadgroup.
  if (pipeline.request().unit.form.simdgroups == 0)
    pipeline.run_pass(optional("atomic-prefetch"), AtomicPrefetchPass(), group);
}

// The function for a whole threadgroup, and its slow clone.
void optimize_threadgroup(Pipeline& pipeline, Module& module, const VectorIsa& vector_isa) {
  const KernelUnit& unit = pipeline.request().unit;
  Function& threadgroup = *module.getFunction(kThreadgroupFunction);
  // Values that the loops over simdgroups have in common leave them; loops without anything to do go.
  pipeline.run_llvm("early-cse<memssa>,simplifycfg,loop-mssa(licm),instsimplify", threadgroup);
  // Before loops over simdgroups are unrolled: each check is there once.
  hoist_checks(pipeline, optional("threadgroup-versioning"), ThreadgroupVersioningPass(), threadgroup);
  Function* slow = module.getFunction((Twine(kThreadgroupFunction) + kSlowSuffix).str());
  for (Function* function : {&threadgroup, slow}) {
    if (!function) continue;
    // Loops get a preheader and dedicated exits.
    pipeline.run_llvm("loop-simplify,simplifycfg", *function);
    pipeline.run_llvm(
        "loop(loop-deletion,loop-unroll-full),sroa,simplifycfg,gvn<no-pre>,instcombine<no-verify-fixpoint>", *function);
    pipeline.run_llvm("loop-simplify", *function);
    // After unrolling: loops that are left run over simdgroups.
    const bool has_sums = pipeline.run(optional("deferred-reductions"), *function,
                                       [&] { return defer_reductions(*function, pipeline.analyses(), vector_isa); });
    // Memory that sums have been stored to becomes registers.
    if (has_sums) pipeline.run_llvm("sroa,simplifycfg,adce,gvn<no-pre>,instcombine<no-verify-fixpoint>", *function);
    // Needs the addresses of all simdgroups' stores in one block.
    if (unit.form.simdgroups != 0)
      pipeline.run_pass(optional("store-forwarding"), StoreForwardingPass(vector_isa), *function);
    pipeline.run_pass(optional("constant-offsets"), ConstantOffsetsPass(), *function);
    pipeline.run_llvm("early-cse,dse,adce,simplifycfg", *function);
    split_lane_loops(pipeline, *function, vector_isa, /*may_have_collectives=*/true);
  }
  // Last, since it depends on the final order of loads.
  pipeline.run_pass(optional("prefetch"), PrefetchPass(vector_isa), threadgroup);
}

// Threads wait at barriers: a function for a threadgroup where its control flow allows it, and one that suspends.
void lower_threadgroup(Pipeline& pipeline, Function& group, Function& full, std::vector<ConvergencePoint> points,
                       EngineOutput& output, const VectorIsa& vector_isa) {
  const KernelUnit& unit = pipeline.request().unit;
  Module& module = *group.getParent();
  // Where all threadgroups are alike and whole, the function for one of them serves them all.
  const bool may_replace = unit.form.threadgroups_are_even;
  if (may_replace)
    pipeline.run_llvm(kOptimize, full);
  else
    optimize(pipeline, module);
  // A barrier keeps its number; collectives have become instructions.
  for (ConvergencePoint& point : points) point.combine = nullptr, point.exchange = CpuExchange::kNone;
  output.combine_functions.resize(points.size());
  output.sites = std::move(points);
  auto is_barrier = [](const Instruction& i) { return convergence_point_at(i).has_value(); };
  TileMultibuffering tiles;
  // Before loops over simdgroups are made: it changes which barriers there are. One simdgroup keeps its sums in
  // registers as it is.
  if (unit.form.simdgroups != 1)
    tiles = pipeline.run(optional("tile-multibuffering"), full, [&] {
      return multibuffer_tiles(full, output.threadgroup_memory_bytes, vector_isa, is_barrier);
    });
  if (tiles.changed) pipeline.run_llvm("instsimplify,adce,simplifycfg", full);
  if (unit.form.simdgroups == 0)
    remark("store-forwarding", full,
           "not for this launch: threadgroups are not 32, 64, 128, … threads in x and one in y and z");
  // Before the code is split at suspend points: barriers are calls still.
  bool is_made = false;
  pipeline.runner().invalidate(full);
  std::optional<uint64_t> frame = pipeline.run(optional("simdgroup-loops"), module, [&] {
    is_made = true;
    return loop_over_simdgroups(full, kThreadgroupFunction, unit.form.simdgroups, is_barrier);
  });
  if (!is_made) pipeline.erase(full);
  if (tiles.tiles) put_on_stack(*tiles.tiles, frame ? module.getFunction(kThreadgroupFunction) : nullptr);
  uint64_t own_frame = 0;
  if (may_replace && frame) {
    pipeline.run("unused-simdgroups", group, [&] { make_empty(group); });
  } else {
    if (may_replace) pipeline.run_llvm(kOptimize, group);
    own_frame = pipeline.run("suspend-points", group, [&] { return split_at_suspend_points(group); });
    pipeline.run_llvm("early-cse,simplifycfg", group);
  }
  output.frame_bytes = std::max(own_frame, frame.value_or(0));
  if (!frame) return;
  output.threadgroup_function = kThreadgroupFunction;
  output.threadgroup_simdgroups = unit.form.simdgroups;
  output.threadgroup_width = unit.form.width();
  optimize_threadgroup(pipeline, module, vector_isa);
}

// Whether some simdgroups of a launch may run one thread after the other, and others may compute lanes without a
// thread. In other math modes the engines' bits differ, and without guards such lanes could read anywhere.
bool may_mix_engines(Function& body, const KernelUnit& unit) {
  return unit.bounds_guards && unit.math_mode == MathMode::kSafe && body.getInstructionCount() <= kLongBody &&
         none_of(instructions(body), [](const Instruction& i) { return i.isAtomic(); }) && !may_spin(body) &&
         none_of(body.getParent()->globals(),
                 [](const GlobalVariable& v) { return v.getSection() == kThreadgroupSection; });
}

EngineOutput lower_vectorized(Pipeline& pipeline, Module& module, const VectorIsa& vector_isa, Vectorized vectorized) {
  const KernelUnit& unit = pipeline.request().unit;
  EngineOutput output;
  output.engine = "simd";
  output.reason = pipeline.request().target.engine == "simd-always" ? "KILN_CPU_ENGINE asks for it" : "the default";
  Function &group = *module.getFunction(kGroupFunction), &body = *module.getFunction(kBodyFunction);
  const bool is_by_simdgroups = vectorized.is_by_simdgroups;
  if (is_by_simdgroups || !may_mix_engines(body, unit)) pipeline.erase(body);
  const bool knows_row = !is_by_simdgroups && !group.getArg(kRowOfCall)->use_empty();
  if (unit.form.rows_are_simdgroup_pairs && !is_by_simdgroups)
    pipeline.run("half-offset", group, [&] { lower_half_offset(group, group.getArg(kHalfOffset)); });
  output.threadgroup_memory_bytes = pipeline.run("threadgroup-memory", module, [&] {
    return lower_threadgroup_memory(module, group, group.getArg(1), CpuImageKind::kSimdgroups);
  });
  output.may_spin = may_spin(group);
  output.uses_striped_locks = any_of(instructions(group), uses_striped_lock);
  const bool has_atomics =
      any_of(instructions(group), [](const Instruction& i) { return i.isAtomic() || striped_range(i); });
  // Otherwise spilled registers would lie across cache lines.
  group.addFnAttr("stackrealign");
  group.setDoesNotFreeMemory();
  if (!is_by_simdgroups) {
    lower_rows(pipeline, group, vectorized.halves_share, has_atomics, knows_row, output, vector_isa);
  } else {
    output.kind = CpuImageKind::kSimdgroups;
    output.run_function = kGroupFunction;
    if (any_of(vectorized.points, [](const ConvergencePoint& point) { return point.is_barrier; })) {
      Function& full = *full_simdgroup(group, unit.form);
      lower_threadgroup(pipeline, group, full, std::move(vectorized.points), output, vector_isa);
    } else {
      lower_simdgroup(pipeline, group);
    }
  }
  output.private_bytes = (output.frame_bytes + largest_stack(module)) / kLanes;
  return output;
}

// ---- The scalar engine

EngineOutput lower_scalar(Pipeline& pipeline, Module& module, TargetMachine& machine) {
  const KernelUnit& unit = pipeline.request().unit;
  PassRunner runner(&machine);
  const auto use = pipeline.use(runner);
  EngineOutput output;
  output.engine = "scalar";
  output.reason = "KILN_CPU_ENGINE asks for it";
  Function& body = *module.getFunction(kBodyFunction);
  pipeline.run("matrix-products", body, [&] { expand_matrix_products(body); });
  const bool yields = unit.dialect == Dialect::kCuda && pipeline.run("yields", body, [&] { return add_yields(body); });
  // Before any optimization: a copy of a call must still say which instance it is.
  output.sites = pipeline.run("convergence-points", body, [&] { return number_convergence_points(body); });
  output.kind = output.sites.empty() ? CpuImageKind::kLoop : CpuImageKind::kCoroutines;
  for (const ConvergencePoint& point : output.sites) {
    if (point.combine) point.combine->setLinkage(GlobalValue::ExternalLinkage);
    output.combine_functions.push_back(point.combine ? point.combine->getName().str() : "");
  }
  const bool has_atomics = any_of(instructions(body), [](const Instruction& i) { return i.isAtomic(); });
  output.may_spin = yields || may_spin(body);
  Value* record = body.getArg(body.arg_size() - 1);
  pipeline.run("thread-values", body, [&] { lower_values(body, record, output.kind); });
  output.threadgroup_memory_bytes = pipeline.run(
      "threadgroup-memory", module, [&] { return lower_threadgroup_memory(module, body, record, output.kind); });
  if (output.kind == CpuImageKind::kLoop) {
    output.run_function = kScalarRowFunction;
    const bool is_long = body.getInstructionCount() > kLongBody;
    Function& row = add_scalar_row(is_long ? keep_out_of_loop(body) : body, unit, is_long);
    // So that memory which is valid at the beginning is known to be valid until the end.
    row.setDoesNotFreeMemory();
    if (!has_atomics) row.setNoSync();
    if (!is_long) pipeline.run("inline-body", module, [&] { inline_into_callers(module, {&body}); });
    optimize(pipeline, module);
  } else {
    output.run_function = kThreadFunction;
    // CpuThreadFunction.
    Function& thread = add_caller(body, kThreadFunction, {PointerType::getUnqual(module.getContext())}, unit);
    pipeline.run("inline-body", module, [&] { inline_into_callers(module, {&body}); });
    optimize(pipeline, module);
    // After optimization: live values are in registers, and each becomes a field of the frame.
    output.frame_bytes = pipeline.run("suspend-points", thread, [&] { return split_at_suspend_points(thread); });
    pipeline.run_llvm("early-cse,simplifycfg", thread);
  }
  // After optimization, which makes a mask's condition and a guard's visible at one load.
  for (Function& function : module)
    if (!function.isDeclaration()) pipeline.run(optional("masked-loads"), function, [&] { mask_at_loads(function); });
  output.private_bytes = output.frame_bytes + largest_stack(module);
  return output;
}

}  // namespace

EngineOutput lower_for_cpu(Pipeline& pipeline, Module& module, TargetMachine& machine, const VectorIsa& vector_isa) {
  if (!prefers_simd(pipeline.request().target)) return lower_scalar(pipeline, module, machine);
  Vectorized vectorized = vectorize(pipeline, module, machine, vector_isa);
  if (vectorized.refusal.empty()) {
    PassRunner runner(&machine);
    const auto use = pipeline.use(runner);
    return lower_vectorized(pipeline, module, vector_isa, std::move(vectorized));
  }
  // The widener has said where.
  remark("widen", *module.getFunction(kBodyFunction), kSimdRefusal, vectorized.refusal);
  EngineOutput output = lower_scalar(pipeline, module, machine);
  output.reason = concat("the SIMD engine does not take it: ", vectorized.refusal);
  return output;
}

void prepare_for_x86(Pipeline& pipeline, Module& module, EngineOutput& output, const VectorIsa& vector_isa,
                     bool needs_polls) {
  strip_lines(pipeline, module);
  // LLVM's lowering of bfloat rounds otherwise, and a select of halves goes through floats.
  pipeline.run("bfloat-conversions", module, [&] { remove_bfloat(module); });
  // Before selects of halves become those of integers, which hide the minimum and maximum.
  if (output.engine == "simd")
    pipeline.run(optional("half-comparisons"), module, [&] { compare_halves_as_integers(module, vector_isa); });
  pipeline.run("half-selects", module, [&] { select_halves_as_integers(module); });
  // InstCombine would compare halves again.
  pipeline.run("half-operations", module, [&] { compute_halves_as_floats(module); });
  pipeline.run(optional("min-max-idiom"), module, [&] { match_min_max(module); });
  if (vector_isa.has_table_of_16_floats)
    pipeline.run(optional("int4-to-float"), module, [&] { convert_int4_by_table(module); });
  if (output.engine == "simd") {
    pipeline.run(optional("lane-reductions"), module, [&] { reduce_lanes(module, vector_isa); });
    // After reductions, which are recognized by their shuffles. Where a register is permuted in parts nothing gains.
    for (Function& function : module)
      if (!function.isDeclaration() && vector_isa.permute_two_registers)
        pipeline.run(optional("compose-shuffles"), function, [&] { return compose_shuffles(function, vector_isa); });
    // Before blocks are ordered: a sum of counts becomes another one.
    for (Function& function : module)
      if (!function.isDeclaration())
        pipeline.run(optional("bit-counts"), function, [&] { return count_bits_in_bytes(function, vector_isa); });
    // After passes that make masks; before vectors are split.
    for (Function& function : module)
      if (!vector_isa.has_mask_registers && !function.isDeclaration())
        pipeline.run(optional("word-masks"), function, [&] { return widen_masks_to_words(function); });
    // Before vectors are split: the parts of an index share its base.
    for (Function& function : module)
      if (!function.isDeclaration())
        pipeline.run(optional("gather-addresses"), function, [&] { return split_gather_addresses(function); });
    // After it: indices are narrow where they can be. Before vectors are split.
    for (Function& function : module)
      if (vector_isa.has_gathers && !vector_isa.has_mask_registers && !function.isDeclaration())
        pipeline.run(optional("gather-instructions"), function, [&] { return select_gather_instructions(function); });
    // After everything that makes vectors: it splits them to registers, and orders a block for register pressure.
    for (Function& function : module) {
      if (function.isDeclaration()) continue;
      pipeline.run(optional("pressure-scheduler"), function, [&] { schedule_for_pressure(function, vector_isa); });
    }
  }
  for (Function& function : module)
    if (!function.isDeclaration())
      pipeline.run(optional("extension-uses"), function, [&] { truncate_extended_values(function); });
  // Last: no pass may take a loop with a poll for one that has none.
  if (needs_polls)
    output.polls = pipeline.run("interrupt-polls", module, [&] {
      return insert_interrupt_polls(module, output.sites.empty() ? "" : output.run_function);
    });
}

// ---- NVIDIA

namespace {

// Replaces convergence points by the hardware's instructions. Returns why it cannot be done, or nothing.
std::string lower_gpu_collectives(Pipeline& pipeline, Function& body, bool has_tensor_products, MatrixMap map) {
  // Threads of a simdgroup run independently, so that LLVM's passes may not take a value for uniform.
  ThreadAnalyses analyses(Lanes::kIndependent);
  const auto use = pipeline.use(analyses);
  const bool has_collectives = any_of(instructions(body), [](const Instruction& instruction) {
    return is_matrix_product(instruction) || calls(instruction, kCollectiveFunction);
  });
  std::vector<ConvergencePoint> points = pipeline.run("convergence-points", body, [&] {
    return number_convergence_points(body, has_collectives ? LoopEnds::kKept : LoopEnds::kCounted);
  });
  if (points.empty()) return "";
  auto keep_in_loops = [&] {
    return pipeline.run("collectives-in-loops", body, [&] { return keep_collectives_in_loops(body); }) !=
           LoopMembership::kLost;
  };
  if (has_collectives) {
    // Paths that are never taken, as far as constants tell, go: a block that only returns is in no loop then.
    pipeline.run_llvm("instsimplify", body);
    pipeline.run("known-branches", body, [&] { return fold_known_branches(body); });
    if (!keep_in_loops()) return kLostCollective;
  }
  pipeline.run("thread-index", body, [&] { split_thread_index(body); });
  if (any_of(points, [](const ConvergencePoint& point) { return point.is_product; })) {
    // Matrices in arrays become values while a product is one instruction still, and products of one block are seen
    // together.
    pipeline.run_llvm(
        "sroa,early-cse,simplifycfg,loop-mssa(loop-instsimplify,loop-rotate,licm),"
        "loop(loop-deletion,loop-unroll-full),sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>",
        body);
    if (!keep_in_loops()) return kLostCollective;
  }
  Masks masks = pipeline.run("simdgroup-masks", body, [&] {
    Masks found = find_masks(body, points);
    // Code that is refused may be half changed.
    if (!found.refusal.empty()) body.deleteBody();
    return found;
  });
  if (!masks.refusal.empty()) return masks.refusal;
  // Before products are lowered to operations on lanes.
  if (!has_tensor_products && any_of(points, [](const ConvergencePoint& point) { return point.is_product; }))
    remark("tensor-products", body, "no tensor cores: they need a math mode other than safe, and sm_80 or later");
  if (has_tensor_products)
    pipeline.run(optional("tensor-products"), body, [&] { multiply_by_tensor_cores(body, points, masks, map); });
  pipeline.run("simdgroup-collectives", body, [&] { lower_convergence_points(body, points, masks, map); });
  return "";
}

// LLVM has instructions for pairs of 16 bits alone. It would make pairs of three components too, the last one of which
// is undefined. Loads and stores stay whole.
void split_to_pairs(PassRunner& runner, Function& kernel) {
  ScalarizerPassOptions options;
  options.ScalarizeLoadStore = false;
  options.ScalarizeMinBits = 32;
  runner.run_pass(ScalarizerPass(options), kernel);
}

}  // namespace

GpuLowering lower_for_nvidia(Pipeline& pipeline, Module& module, TargetMachine& machine,
                             const std::string& architecture, MatrixMap map) {
  const KernelUnit& unit = pipeline.request().unit;
  const int number = std::atoi(architecture.c_str() + std::string_view("sm_").size());
  GpuLowering result;
  Function& body = *module.getFunction(kBodyFunction);
  pipeline.run("volatile-atomics", body, [&] { drop_volatile_atomics(body); });
  pipeline.run("hide-sinks", body, [&] { hide_sinks(body); });
  result.refusal = lower_gpu_collectives(pipeline, body, unit.math_mode != MathMode::kSafe && number >= 80, map);
  PassRunner runner(&machine);
  const auto use = pipeline.use(runner);
  if (!result.refusal.empty()) return result;
  pipeline.run("threadgroup-variables", module, [&] { move_threadgroup_variables(module); });
  Function& kernel = pipeline.run(
      "kernel-entry", module, [&]() -> std::reference_wrapper<Function> { return make_kernel_entry(module, unit); });
  result.entry = kernel.getName().str();
  // Before and after optimization, which moves and copies loads of parameters.
  pipeline.run("parameter-loads", kernel, [&] { read_parameters(kernel); });
  pipeline.run_llvm(kBeforeGpuUnrolling, module);
  // While private arrays are in memory, and counters are in registers.
  pipeline.run(optional("full-unrolling"), kernel, [&] { return mark_loops_to_unroll(kernel, pipeline.analyses()); });
  pipeline.run_llvm(kOptimizeForGpu, module);
  // InstCombine has made bits of vectors of what were booleans; branches on them are merged afterwards.
  pipeline.run(optional("component-conditions"), kernel, [&] { return split_vector_conditions(kernel); });
  pipeline.run_llvm(kCleanUpForGpu, module);
  // While loops are short: what is unrolled and vectorized afterwards has no guards.
  pipeline.run_pass(optional("guarded-loop-versioning"), GuardedLoopVersioningPass(), kernel);
  // Once guards are gone, and while a tile is copied by a loop.
  if (unit.form.has_known_threads() && (unit.form.is_one_row || unit.form.threadgroups_are_even))
    pipeline.run(optional("threadgroup-copies"), kernel,
                 [&] { return vectorize_threadgroup_copies(kernel, pipeline.analyses(), unit.form.threads[0]); });
  // Once it is seen which loops LLVM's own limits leave.
  pipeline.run(optional("partial-unrolling"), kernel,
               [&] { return mark_short_loops_to_unroll(kernel, pipeline.analyses()); });
  pipeline.run_llvm(kAfterGpuUnrolling, module);
  pipeline.run("parameter-loads", kernel, [&] { read_parameters(kernel); });
  pipeline.run(optional("masked-loads"), kernel, [&] { mask_at_loads(kernel); });
  pipeline.run("pairs", kernel, [&] { split_to_pairs(runner, kernel); });
  // What unrolling has made: accesses at constant distances share an address, and adjacent ones become vectors.
  pipeline.run_pass(optional("constant-offsets"), ConstantOffsetsPass(), kernel);
  // Address spaces are inferred once guards' offsets have become arithmetic of integers.
  pipeline.run_llvm("generic-to-nvvm,function(infer-address-spaces,sroa,early-cse,adce)", module);
  pipeline.run("guard-comparisons", kernel, [&] { compare_guards_with_ends(kernel, unit); });
  // After the last simplification: InstCombine would compare offsets again.
  pipeline.run(optional("guard-indices"), kernel, [&] { return compare_indices_in_guards(kernel); });
  pipeline.run_llvm("early-cse", kernel);
  pipeline.run("alignments", kernel, [&] { set_known_alignments(kernel); });
  // Once it is known which copies are aligned; LLVM's vectors are made later.
  if (number >= 80)
    pipeline.run(optional("asynchronous-copies"), kernel,
                 [&] { return copy_asynchronously(kernel, pipeline.analyses()); });
  // Single accesses of what LLVM will not see any more once they are predicated.
  pipeline.run(optional("adjacent-loads"), kernel, [&] { return merge_adjacent_loads(kernel); });
  // Before accesses become predicated instructions, which end a block.
  pipeline.run(optional("flat-branches"), kernel, [&] { flatten_short_branches(kernel); });
  pipeline.run("predicated-accesses", kernel, [&] { predicate_accesses(kernel); });
  pipeline.run("hardware-operations", kernel, [&] { use_hardware_operations(kernel, unit.math_mode); });
  result.threadgroup_memory_bytes =
      pipeline.run("threadgroup-memory", module, [&] { return lay_out_threadgroup_memory(module); });
  return result;
}

void prepare_for_ptx(Pipeline& pipeline, Module& module) {
  strip_lines(pipeline, module);
  pipeline.run("share-sinks", module, [&] { share_sinks(module); });
  pipeline.run("bfloat-conversions", module, [&] { remove_bfloat(module); });
  for (Function& function : module)
    if (!function.isDeclaration())
      pipeline.run(optional("extension-uses"), function, [&] { truncate_extended_values(function); });
}

}  // namespace kiln
