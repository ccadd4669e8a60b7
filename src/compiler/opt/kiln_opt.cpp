// kiln-opt: runs passes of the compiler on LLVM IR from a file, as LLVM's opt does.
//
//   kiln-opt --passes=prefetch,early-cse,simplifycfg [options] file.ll
//
// `--passes` names passes of the table below and pipelines of LLVM's (those with commas or parentheses between single
// quotes, such as 'loop-mssa(licm)'), which run in their order on every function that is defined, or on the one that
// `--function` names. The resulting module goes to stdout; a pass that answers a question prints a line with the answer
// as a comment before it. `--list` prints the names. As in a verified compilation, what a pass takes for granted
// (compiler/ir/preconditions.h) is tested before it, and the IR is verified after it.
//
// Tests of passes are below tests/compiler, a folder for each room and pass.
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
#include "compiler/engines/simd_entry.h"
#include "compiler/engines/thread_positions.h"
#include "compiler/ir/convergence_point.h"
#include "compiler/ir/guard_sinks.h"
#include "compiler/ir/pipeline.h"
#include "compiler/ir/remarks.h"
#include "compiler/ir/simdgroup.h"
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
#include "compiler/lowering/promote_variables.h"
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
#include "compiler/nvptx/ptx_generator.h"
#include "compiler/nvptx/simdgroup_collectives.h"
#include "compiler/nvptx/simdgroup_masks.h"
#include "compiler/nvptx/tensor_products.h"
#include "compiler/nvptx/threadgroup_copies.h"
#include "compiler/nvptx/threadgroup_memory.h"
#include "compiler/opt/access_shapes.h"
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
#include "compiler/x86/code_generator.h"
#include "compiler/x86/gather_addresses.h"
#include "compiler/x86/gather_instructions.h"
#include "compiler/x86/instruction_sets.h"
#include "compiler/x86/int4_to_float.h"
#include "core/cpu_functions.h"
#include "core/cpu_image.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

using namespace llvm;

struct Options {
  std::string passes, function, file;
  std::string cpu = kLowestSimdCpu;
  unsigned simdgroups = 0;            // of a threadgroup
  unsigned row_threads = 0;           // of a threadgroup's rows
  bool compares_with_launch = false;  // bounds guards
  unsigned fewest = 3;                // accesses from which code is versioned
  uint64_t threadgroup_bytes = 0;     // of threadgroup memory
  // Of kBodyFunction: "in:4,batch-of-out:4,shape:4,out:4:400", roles, bytes of an element, and known bytes of all.
  std::string parameters;
  std::vector<int64_t> values;         // of the parameters that are shapes
  std::vector<int64_t> grid, threads;  // of the launch and of a threadgroup in x, y, z, where they are known
  MatrixMap map = MatrixMap::kApple;
  bool is_full = false, rows_are_simdgroups = false, threadgroups_are_even = false, list = false;
  bool shows_remarks = false;  // on standard error
};

// What passes of one run share.
struct State {
  explicit State(const Options& options)
      : options(options),
        machine(make_cpu_machine(options.cpu)),
        vector_isa(vector_isa_of(options.cpu)),
        runner(machine.get()) {}

  FunctionAnalysisManager& threads() { return analyses.functions(); }

  const Options& options;
  std::unique_ptr<TargetMachine> machine;
  const VectorIsa vector_isa;
  PassRunner runner;
  ThreadAnalyses analyses;
  KernelUnit unit;
  std::vector<ConvergencePoint> points;
  Masks masks;
  CompileRequest request{.unit = unit, .target = {}, .limits = {}, .verify_passes = true, .keep_after = {}};
  CompileResult result;
  Pipeline pipeline{request, result};
};

using FunctionPass = std::function<void(Function&, State&)>;
using ModulePass = std::function<void(Module&, State&)>;

void answer(const std::string& name, std::string_view text) { outs() << "; " << name << ": " << text << "\n"; }

bool is_point(const Instruction& instruction) { return convergence_point_at(instruction).has_value(); }

template <class Pass>
FunctionPass run_pass(Pass pass) {
  return [pass](Function& function, State& state) { state.runner.run_pass(pass, function); };
}

const std::map<std::string, FunctionPass>& function_passes() {
  static const std::map<std::string, FunctionPass> passes = {
      // analysis/
      {"barrier-uniformity",
       [](Function& f, State& s) {
         const bool are_uniform = barriers_are_uniform(f, s.threads(), blocks_with(f, is_point));
         answer(f.getName().str(), are_uniform ? "barriers are uniform" : "barriers are divergent");
       }},
      // lowering/
      {"affine-lanes", [](Function& f, State&) { split_affine_lanes(f); }},
      {"bfloat-conversions", [](Function& f, State&) { remove_bfloat(f); }},
      {"bounds-guards", [](Function& f, State& s) { insert_bounds_guards(f, s.unit, s.unit.parameters, s.options.compares_with_launch); }},
      {"collectives-in-loops", [](Function& f, State&) { keep_collectives_in_loops(f); }},
      {"component-extractions", [](Function& f, State&) { extract_components(f); }},
      {"components", [](Function& f, State& s) { split_into_components(f, s.analyses); }},
      {"convergence-points", [](Function& f, State& s) { s.points = number_convergence_points(f); }},
      {"convergence-points-in-loops",
       [](Function& f, State& s) { s.points = number_convergence_points(f, LoopEnds::kKept); }},
      {"describe-accesses", [](Function& f, State& s) { describe_accesses(f, s.unit, s.unit.parameters); }},
      {"flow-conditions", [](Function& f, State& s) { replace_flow_phis(f, s.threads()); }},
      {"hide-sinks", [](Function& f, State&) { hide_sinks(f); }},
      {"lane-collectives",
       [](Function& f, State& s) {
         std::string reason = lower_collectives(f, s.points);
         if (!reason.empty()) answer("lane-collectives", reason);
       }},
      {"masked-loads", [](Function& f, State&) { mask_at_loads(f); }},
      {"matrix-products", [](Function& f, State&) { expand_matrix_products(f); }},
      {"may-loop-for-ever",
       [](Function& f, State&) { answer(f.getName().str(), may_not_terminate(f) ? "may loop for ever" : "ends"); }},
      {"reference-loads", [](Function& f, State&) { mark_reference_loads(f); }},
      {"remove-iterations", [](Function& f, State&) { remove_iterations(f); }},
      {"remove-warp-masks", [](Function& f, State&) { remove_masks(f); }},
      {"restore-sinks", [](Function& f, State&) { restore_sinks(f); }},
      {"shape-constants", [](Function& f, State& s) { replace_known_shapes(f, s.unit); }},
      {"spin-loops",
       [](Function& f, State&) { answer(f.getName().str(), has_spin_loops(f) ? "waits in a loop" : "does not wait"); }},
      {"split-structures", [](Function& f, State&) { split_structures(f); }},
      {"structure-phis", [](Function& f, State&) { split_structure_phis(f); }},
      {"threadgroup-pointer-tables", [](Function& f, State&) { unfold_threadgroup_pointer_tables(f); }},
      {"unreachable-defaults", [](Function& f, State&) { simplify_unreachable_defaults(f); }},
      {"unsigned-operations", [](Function& f, State& s) { use_unsigned_operations(f, ThreadLimits(s.unit)); }},
      {"vector-bitcasts", [](Function& f, State&) { spell_out_bitcasts(f); }},
      {"vector-copies", [](Function& f, State&) { load_and_store_copies(f); }},
      {"warp-masks",
       [](Function& f, State& s) {
         auto is_barrier = [&](const Instruction& i) {
           std::optional<unsigned> point = convergence_point_at(i);
           return point && *point < s.points.size() && s.points[*point].is_barrier;
         };
         const bool are_together = masks_are_converged(f, s.threads(), is_barrier);
         answer(f.getName().str(), are_together ? "masks name the lanes that are together" : kMayWaitElsewhere);
       }},
      {"yields", [](Function& f, State&) { add_yields(f); }},
      // vectorize/
      {"access-shapes",
       [](Function& f, State& s) {
         for (const auto& [access, shape] : access_shapes(f, s.threads())) answer(access, shape);
       }},
      {"cluster-stores", [](Function& f, State& s) { cluster_stores(f, s.threads()); }},
      {"early-exits",
       [](Function& f, State& s) {
         if (linearize_early_exits(f, s.threads(), blocks_with(f, is_point)) == EarlyExits::kTooLate)
           answer(f.getName().str(), kExitsTooLate);
       }},
      {"execution-cost",
       [](Function& f, State& s) {
         const auto& divergence = s.threads().getResult<DivergenceAnalysis>(f);
         const ExecutionCost cost = execution_cost(f, divergence, s.threads(), s.vector_isa);
         const std::string reason = refuse_by_execution_cost(cost);
         answer(f.getName().str(), reason.empty() ? "vectors pay" : reason);
       }},
      {"guard-extension",
       [](Function& f, State& s) { extend_guards(f, s.threads().getResult<DivergenceAnalysis>(f)); }},
      {"guarded-atomics",
       [](Function& f, State& s) { select_guarded_addresses(f, s.threads().getResult<DivergenceAnalysis>(f)); }},
      {"interleaved-variables", [](Function& f, State&) { interleave_variables(f); }},
      {"narrow-integers",
       [](Function& f, State& s) { narrow_integers(f, s.threads().getResult<DivergenceAnalysis>(f), s.threads()); }},
      {"reload-inputs", [](Function& f, State& s) { reload_inputs(f, s.threads(), is_point); }},
      {"rolled-loops", [](Function& f, State& s) { keep_loops_rolled(f, s.threads()); }},
      {"row-blocks",
       [](Function& f, State& s) {
         make_row_blocks(f, s.threads().getResult<DivergenceAnalysis>(f), s.threads(), s.vector_isa);
       }},
      {"row-unrolling",
       [](Function& f, State& s) {
         mark_loops_over_rows(f, s.threads().getResult<DivergenceAnalysis>(f), s.threads());
       }},
      {"sink-stores", [](Function& f, State& s) { sink_stores(f, s.threads()); }},
      {"structurize", [](Function& f, State& s) { s.analyses.run(kStructuring, f); }},
      {"widen",
       [](Function& f, State& s) {
         auto is_output = [&](uint64_t argument) {
           return argument < s.unit.parameters.size() && s.unit.parameters[argument].role == ParameterRole::kOutput;
         };
         std::string reason = widen(
             f, s.threads(), {s.vector_isa, s.options.is_full, s.points, offsetof(CpuLaunch, is_alone), is_output});
         if (!reason.empty()) answer(f.getName().str(), reason);
       }},
      // workgroup/
      {"coarsened-addresses", run_pass(CoarsenedAddressesPass())},
      {"coarsened-positions", [](Function& f, State&) { split_coarsened_positions(f, *f.getArg(kRowX)); }},
      {"deferred-reductions", [](Function& f, State& s) { defer_reductions(f, s.runner.functions(), s.vector_isa); }},
      {"reuse-barriers", [](Function& f, State&) { add_reuse_barriers(f); }},
      {"simdgroup-loops",
       [](Function& f, State& s) {
         std::optional<uint64_t> frame = loop_over_simdgroups(f, "__kiln_threadgroup", s.options.simdgroups, is_point);
         answer("simdgroup-loops", frame ? concat("frame of ", *frame, " bytes") : "not possible");
       }},
      {"suspend-points",
       [](Function& f, State&) {
         std::string name = f.getName().str();
         answer(name, concat("frame of ", split_at_suspend_points(f), " bytes"));
       }},
      {"thread-coarsening",
       [](Function& f, State& s) {
         const bool share = halves_share_work(f, s.threads().getResult<DivergenceAnalysis>(f));
         answer(f.getName().str(), share ? "halves share work" : "halves share no work");
       }},
      {"tile-multibuffering",
       [](Function& f, State& s) { multibuffer_tiles(f, s.options.threadgroup_bytes, s.vector_isa, is_point); }},
      // versioning/
      {"function-versioning",
       [](Function& f, State& s) { make_fast_version(f, s.runner.functions(), s.options.fewest); }},
      {"guarded-loop-versioning", [](Function& f, State& s) { s.runner.run_pass(GuardedLoopVersioningPass(), f); }},
      {"loop-versioning", [](Function& f, State& s) { s.runner.run_pass(LoopVersioningPass(s.options.fewest), f); }},
      {"scalar-slow-version",
       [](Function& f, State& s) { answer(f.getName().str(), take_fewer_threads(f, s.vector_isa) ? "yes" : "no"); }},
      {"threadgroup-versioning", run_pass(ThreadgroupVersioningPass())},
      // memory/
      {"atomic-prefetch", run_pass(AtomicPrefetchPass())},
      {"constant-offsets", run_pass(ConstantOffsetsPass())},
      {"indirect-prefetch", run_pass(IndirectPrefetchPass())},
      {"prefetch", [](Function& f, State& s) { s.runner.run_pass(PrefetchPass(s.vector_isa), f); }},
      {"store-forwarding", [](Function& f, State& s) { s.runner.run_pass(StoreForwardingPass(s.vector_isa), f); }},
      // codegen/
      {"compose-shuffles", [](Function& f, State& s) { compose_shuffles(f, s.vector_isa); }},
      {"extension-uses", [](Function& f, State&) { truncate_extended_values(f); }},
      {"lane-loop-splitting",
       [](Function& f, State& s) {
         s.runner.run_pass(LaneLoopSplittingPass(s.vector_isa, /*may_have_collectives=*/false), f);
       }},
      {"order-stores", [](Function& f, State& s) { split_stores_in_order(f, s.vector_isa); }},
      {"pressure-scheduler", [](Function& f, State& s) { schedule_for_pressure(f, s.vector_isa); }},
      {"word-masks", [](Function& f, State&) { widen_masks_to_words(f); }},
      // engines/
      {"half-offset", [](Function& f, State&) { lower_half_offset(f, f.getArg(kHalfOffset)); }},
      {"launch-loads", [](Function& f, State&) { read_launch_first(f); }},
      // Functions for rows have a parameter more than those for simdgroups (RowParameter, CpuSimdgroupFunction).
      {"positions",
       [](Function& f, State& s) {
         const bool is_part_of_row = f.arg_size() > kRowX + 1;
         lower_positions(f, s.unit.form, !is_part_of_row, s.unit.dialect == Dialect::kCuda);
       }},
      {"thread-values",
       [](Function& f, State&) { lower_values(f, f.getArg(f.arg_size() - 1), CpuImageKind::kLoop); }},
      // x86/
      {"bit-counts", [](Function& f, State& s) { count_bits_in_bytes(f, s.vector_isa); }},
      {"gather-addresses", [](Function& f, State&) { split_gather_addresses(f); }},
      {"gather-instructions", [](Function& f, State&) { select_gather_instructions(f); }},
      // nvptx/
      {"adjacent-loads", [](Function& f, State&) { merge_adjacent_loads(f); }},
      {"alignments", [](Function& f, State&) { set_known_alignments(f); }},
      {"asynchronous-copies", [](Function& f, State& s) { copy_asynchronously(f, s.runner.functions()); }},
      {"component-conditions", [](Function& f, State&) { split_vector_conditions(f); }},
      {"flat-branches", [](Function& f, State&) { flatten_short_branches(f); }},
      {"full-unrolling", [](Function& f, State& s) { mark_loops_to_unroll(f, s.runner.functions()); }},
      {"guard-comparisons", [](Function& f, State& s) { compare_guards_with_ends(f, s.unit); }},
      {"guard-indices", [](Function& f, State&) { compare_indices_in_guards(f); }},
      {"hardware-operations", [](Function& f, State& s) { use_hardware_operations(f, s.unit.math_mode); }},
      {"parameter-loads", [](Function& f, State&) { read_parameters(f); }},
      {"partial-unrolling", [](Function& f, State& s) { mark_short_loops_to_unroll(f, s.runner.functions()); }},
      {"predicated-accesses", [](Function& f, State&) { predicate_accesses(f); }},
      {"simdgroup-collectives",
       [](Function& f, State& s) { lower_convergence_points(f, s.points, s.masks, s.options.map); }},
      {"simdgroup-masks",
       [](Function& f, State& s) {
         s.masks = find_masks(f, s.points);
         if (!s.masks.refusal.empty()) answer(f.getName().str(), s.masks.refusal);
       }},
      {"tensor-products", [](Function& f, State& s) { multiply_by_tensor_cores(f, s.points, s.masks, s.options.map); }},
      {"thread-index", [](Function& f, State&) { split_thread_index(f); }},
      {"threadgroup-copies",
       [](Function& f, State& s) { vectorize_threadgroup_copies(f, s.runner.functions(), s.unit.form.threads[0]); }},
      {"volatile-atomics", [](Function& f, State&) { drop_volatile_atomics(f); }},
  };
  return passes;
}

const std::map<std::string, ModulePass>& module_passes() {
  static const std::map<std::string, ModulePass> passes = {
      {"approximations",
       [](Module& m, State&) {
         fold_approximations(m, /*are_used=*/false);
         expand_approximations(m);
         expand_rounded_rsqrt(m);
       }},
      {"batch-elements", [](Module& m, State&) { expand_elements(m); }},
      {"bfloat", [](Module& m, State&) { expand_bfloat(m); }},
      {"common-calls", [](Module& m, State& s) { merge_common_calls(m, s.options.function); }},
      {"constant-initializers", [](Module& m, State&) { evaluate_constant_initializers(m); }},
      {"defined-arithmetic", [](Module& m, State&) { define_arithmetic(m); }},
      {"dynamic-threadgroup-memory",
       [](Module& m, State& s) { define_dynamic_memory(m, s.options.threadgroup_bytes); }},
      {"half-comparisons", [](Module& m, State& s) { compare_halves_as_integers(m, s.vector_isa); }},
      {"half-operations", [](Module& m, State&) { compute_halves_as_floats(m); }},
      {"half-selects", [](Module& m, State&) { select_halves_as_integers(m); }},
      {"inline", [](Module& m, State& s) { inline_all(m, s.options.function); }},
      {"int4-to-float", [](Module& m, State&) { convert_int4_by_table(m); }},
      {"interrupt-polls", [](Module& m, State& s) { insert_interrupt_polls(m, s.options.function); }},
      {"lane-reductions", [](Module& m, State& s) { reduce_lanes(m, s.vector_isa); }},
      {"ldexp", [](Module& m, State&) { expand_ldexp(m); }},
      {"mark-calls", [](Module& m, State&) { mark_calls(m); }},
      {"matrix-elements", [](Module& m, State& s) { assign_matrix_elements(m, s.options.map); }},
      {"min-max-idiom", [](Module& m, State&) { match_min_max(m); }},
      {"promote-variables", [](Module& m, State&) { promote_variables(m); }},
      {"share-sinks", [](Module& m, State&) { share_sinks(m); }},
      {"threadgroup-memory",
       [](Module& m, State&) { answer("threadgroup-memory", concat(lay_out_threadgroup_memory(m), " bytes")); }},
      {"threadgroup-variables", [](Module& m, State&) { move_threadgroup_variables(m); }},
  };
  return passes;
}

[[noreturn]] void fail(const std::string& message) {
  errs() << "kiln-opt: " << message << "\n";
  std::exit(1);
}

// Names between commas; those between single quotes are kept whole.
std::vector<std::string> names_of(StringRef text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    if (text.consume_front("'")) {
      auto [name, rest] = text.split('\'');
      names.push_back(name.str());
      text = rest;
      text.consume_front(",");
    } else {
      auto [name, rest] = text.split(',');
      names.push_back(name.str());
      text = rest;
    }
  }
  return names;
}

void read_parameters(StringRef text, ArrayRef<int64_t> values, KernelUnit& unit) {
  for (StringRef one : split(text, ',')) {
    auto [role, sizes] = one.split(':');
    auto [bytes, known_bytes] = sizes.split(':');
    KernelParameter parameter;
    parameter.is_batch = role.consume_front("batch-of-");
    parameter.role = StringSwitch<ParameterRole>(role)
                         .Case("out", ParameterRole::kOutput)
                         .Case("shape", ParameterRole::kShape)
                         .Default(ParameterRole::kInput);
    parameter.name = concat("p", unit.parameters.size());
    parameter.element_bytes = 4;
    if (!bytes.empty() && bytes.getAsInteger(10, parameter.element_bytes)) fail("--parameters=" + text.str());
    if (!known_bytes.empty() && known_bytes.getAsInteger(10, parameter.known_bytes)) fail("--parameters=" + text.str());
    parameter.alignment = parameter.element_bytes;
    if (parameter.role == ParameterRole::kShape) parameter.values.assign(values.begin(), values.end());
    unit.parameters.push_back(std::move(parameter));
  }
}

Options read_options(int count, char** texts) {
  Options options;
  for (int i = 1; i < count; ++i) {
    StringRef text = texts[i];
    auto number = [&](auto& value) {
      if (text.getAsInteger(10, value)) fail("expected a number: " + text.str());
    };
    auto numbers = [&](std::vector<int64_t>& values) {
      for (StringRef one : split(text, ',')) {
        int64_t value = 0;
        if (one.getAsInteger(10, value)) fail("expected a number: " + one.str());
        values.push_back(value);
      }
    };
    auto extents = [&](std::vector<int64_t>& values) {
      numbers(values);
      if (values.size() != 3) fail("expected three numbers: " + text.str());
    };
    if (text.consume_front("--passes="))
      options.passes = text.str();
    else if (text.consume_front("--function="))
      options.function = text.str();
    else if (text.consume_front("--cpu="))
      options.cpu = text.str();
    else if (text.consume_front("--parameters="))
      options.parameters = text.str();
    else if (text.consume_front("--simdgroups="))
      number(options.simdgroups);
    else if (text.consume_front("--row-threads="))
      number(options.row_threads);
    else if (text.consume_front("--fewest="))
      number(options.fewest);
    else if (text.consume_front("--threadgroup-bytes="))
      number(options.threadgroup_bytes);
    else if (text.consume_front("--values="))
      numbers(options.values);
    else if (text.consume_front("--grid="))
      extents(options.grid);
    else if (text.consume_front("--threads="))
      extents(options.threads);
    else if (text.consume_front("--matrices="))
      options.map = text == "tensor" ? MatrixMap::kTensor : MatrixMap::kApple;
    else if (text == "--compares-with-launch")
      options.compares_with_launch = true;
    else if (text == "--full")
      options.is_full = true;
    else if (text == "--rows-are-simdgroups")
      options.rows_are_simdgroups = true;
    else if (text == "--threadgroups-are-even")
      options.threadgroups_are_even = true;
    else if (text == "--remarks")
      options.shows_remarks = true;
    else if (text == "--list")
      options.list = true;
    else if (text.starts_with("-") && text != "-")
      fail("there is no option " + text.str());
    else
      options.file = text.str();
  }
  return options;
}

void run_pass_named(const std::string& name, Module& module, State& state) {
  if (auto pass = module_passes().find(name); pass != module_passes().end()) {
    state.pipeline.run(name.c_str(), module, [&] { pass->second(module, state); });
    state.runner.invalidate_all();
    state.analyses.invalidate_all();
    return;
  }
  auto pass = function_passes().find(name);
  std::vector<Function*> functions;
  for (Function& function : module)
    if (!function.isDeclaration() && (state.options.function.empty() || function.getName() == state.options.function))
      functions.push_back(&function);
  for (Function* function : functions) {
    if (pass != function_passes().end()) {
      state.pipeline.run(name.c_str(), *function, [&] { pass->second(*function, state); });
      // The pass may have erased the function.
      state.runner.invalidate_all();
      state.analyses.invalidate_all();
    } else {
      state.runner.run(name, *function);
    }
  }
}

int main_of(int count, char** texts) {
  const Options options = read_options(count, texts);
  if (options.list) {
    for (const auto& [name, pass] : module_passes()) outs() << name << "\n";
    for (const auto& [name, pass] : function_passes()) outs() << name << "\n";
    return 0;
  }
  if (options.file.empty()) fail("expected a file, or - for the standard input");
  LLVMContext context;
  SMDiagnostic error;
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFileOrSTDIN(options.file);
  if (!text) fail(options.file + ": " + text.getError().message());
  std::unique_ptr<Module> module = parseAssembly((*text)->getMemBufferRef(), error, context);
  if (!module) {
    error.print("kiln-opt", errs());
    return 1;
  }
  std::vector<CompileRemark> remarks;
  if (options.shows_remarks)
    context.setDiagnosticHandler(std::make_unique<RemarkCollector>(
        remarks, [](const DILocation& at, CompileRemark& made) { made.line = static_cast<int>(at.getLine()); }));
  State state(options);
  if (module->getDataLayout().isDefault()) module->setDataLayout(state.machine->createDataLayout());
  if (!options.parameters.empty()) read_parameters(options.parameters, options.values, state.unit);
  state.unit.form.simdgroups = options.simdgroups;
  state.unit.form.row_threads = options.row_threads;
  state.unit.form.rows_are_simdgroups = options.rows_are_simdgroups;
  state.unit.form.threadgroups_are_even = options.threadgroups_are_even;
  std::ranges::copy(options.grid, state.unit.known_grid.begin());
  std::ranges::copy(options.threads, state.unit.form.threads.begin());
  for (const std::string& name : names_of(options.passes)) {
    run_pass_named(name, *module, state);
    if (verifyModule(*module, &errs())) fail("after the pass " + name + " the IR is not valid");
  }
  module->print(outs(), nullptr);
  for (const CompileRemark& made : remarks) {
    errs() << "remark: ";
    if (made.line > 0) errs() << "line " << made.line << ": ";
    errs() << made.pass << ": " << made.message << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace kiln

int main(int count, char** texts) {
  try {
    const int status = kiln::main_of(count, texts);
    llvm::outs().flush();  // nothing destroys it: factory.cpp
    return status;
  } catch (const std::exception& error) {
    llvm::errs() << "kiln-opt: " << error.what() << "\n";
    return 1;
  }
}
