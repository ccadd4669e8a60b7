#include "compiler/driver/compile_for_cpu.h"

#include <llvm/IR/LLVMContext.h>

#include <algorithm>
#include <string_view>

#include "compiler/codegen/extension_uses.h"
#include "compiler/codegen/lane_reductions.h"
#include "compiler/codegen/min_max_idiom.h"
#include "compiler/codegen/pressure_scheduler.h"
#include "compiler/driver/thread_code.h"
#include "compiler/engines/engine.h"
#include "compiler/ir/entry.h"
#include "compiler/lowering/interrupt_polls.h"
#include "compiler/lowering/small_floats.h"
#include "compiler/x86/code_generator.h"
#include "compiler/x86/image_writer.h"
#include "compiler/x86/int4_to_float.h"
#include "core/attribute_table.h"
#include "core/text.h"

namespace kiln {
namespace {

// Each thread keeps its machine: making one, and parsing the processor's features, takes a millisecond.
llvm::TargetMachine& cpu_machine(const std::string& cpu) {
  thread_local std::string made_for;
  thread_local std::unique_ptr<llvm::TargetMachine> machine;
  if (!machine || made_for != cpu) {
    machine = make_cpu_machine(cpu);
    made_for = cpu;
  }
  return *machine;
}

// Whether threads are told nothing that differs between threadgroups but where they are in the grid.
bool knows_grid_only(const KernelUnit& unit) {
  constexpr std::string_view kOfGrid[] = {
      "grid_origin",          "grid_size", "thread_execution_width", "thread_position_in_grid", "threads_per_grid",
      "threads_per_simdgroup"};
  return unit.dialect == Dialect::kMetal && std::ranges::all_of(unit.attributes, [&](uint8_t row) {
           return std::ranges::find(kOfGrid, kAttributes[row].name) != std::end(kOfGrid);
         });
}

}  // namespace

CompileResult compile_for_cpu(const CompileRequest& request) {
  CompileResult result;
  result.report.generated_source = request.unit.text;
  std::unique_ptr<CpuEngine> engine =
      prefers_simd(request.target) ? make_simd_engine(request.target.engine == "simd-always") : make_scalar_engine();
  llvm::TargetMachine* machine = &cpu_machine(request.target.cpu);

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      make_thread_code(request, request.target.cpu, machine->createDataLayout(), context, result);
  if (!module) return result;
  auto keep = [&](const char* stage) { keep_stage(request, *module, stage, result); };
  const bool needs_polls = may_loop_for_ever(*module->getFunction(kBodyFunction));
  EngineOutput output = engine->lower(*module, request.unit, *machine, keep);
  if (!check_variables(*module, result)) return result;
  output.joins_rows = output.kind == CpuImageKind::kLoop && !output.may_spin && output.threadgroup_memory_bytes == 0 &&
                      knows_grid_only(request.unit);
  if (output.private_bytes > kCpuPrivateMemoryLimit) {
    refuse(result, concat("a thread's private variables take ", output.private_bytes, " bytes; the CPU has ",
                          kCpuPrivateMemoryLimit, " for each"));
    return result;
  }
  remove_bfloat(*module);
  choose_halves_by_bits(*module);
  match_min_max(*module);
  if (request.target.cpu == "x86-64-v4") convert_int4_by_table(*module);
  if (output.engine == "simd") {
    bool has_avx512 = request.target.cpu == "x86-64-v4";
    add_lanes_by_pairs(*module, has_avx512 ? 16 : 8);
    for (llvm::Function& function : *module)
      schedule_for_pressure(function, has_avx512 ? 32 : 16, has_avx512 ? 16 : 8, /*are_few=*/!has_avx512);
  }
  for (llvm::Function& function : *module) truncate_extended_values(function);
  output.polls = needs_polls && insert_interrupt_polls(*module, output.sites.empty() ? "" : output.run_function);
  keep("optimized");
  if (request.keep_stages) result.stages.push_back({"assembly", generate_assembly(*module, *machine)});
  llvm::SmallVector<char, 0> object = generate_object(*module, *machine);
  result.binary = write_image(object.data(), object.size(), output);
  result.engine = output.engine;
  result.engine_reason = output.reason;
  return result;
}

}  // namespace kiln
