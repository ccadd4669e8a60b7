#include "compiler/driver/compile_for_cpu.h"

#include <llvm/IR/LLVMContext.h>

#include <algorithm>

#include "compiler/driver/kept_machine.h"
#include "compiler/driver/thread_code.h"
#include "compiler/ir/abandonment.h"
#include "compiler/ir/entry.h"
#include "compiler/ir/pseudo_intrinsics.h"
#include "compiler/lowering/interrupt_polls.h"
#include "compiler/pipeline.h"
#include "compiler/x86/code_generator.h"
#include "compiler/x86/image_writer.h"
#include "compiler/x86/instruction_sets.h"
#include "core/attribute_table.h"
#include "core/text.h"

namespace kiln {
namespace {

// Whether threads are told nothing that differs between threadgroups but where they are in the grid.
bool knows_grid_only(const KernelUnit& unit) {
  return unit.dialect == Dialect::kMetal &&
         std::ranges::none_of(unit.attributes, [](uint8_t row) { return kAttributes[row].knows_threadgroups; });
}

}  // namespace

CompileResult compile_for_cpu(const CompileRequest& request) {
  CompileResult result;
  result.report.generated_source = request.unit.text;
  const KeptMachine<make_cpu_machine> machine(request.target.cpu);
  const VectorIsa vector_isa = vector_isa_of(request.target.cpu);

  Pipeline pipeline(request, result);
  llvm::LLVMContext context;
  const ThreadTarget thread{.cpu = request.target.cpu,
                            .layout = machine->createDataLayout(),
                            .vector_isa = vector_isa,
                            .reports_unsupported = true};
  std::unique_ptr<llvm::Module> module = make_thread_code(pipeline, thread, context);
  if (!module) return result;
  const FunctionsFreedWhenAbandoned freed(*module);
  const bool needs_polls = may_not_terminate(*module->getFunction(kBodyFunction));
  EngineOutput output = lower_for_cpu(pipeline, *module, *machine, vector_isa);
  if (!check_variables(*module, result)) return result;
  output.joins_rows = output.kind == CpuImageKind::kLoop && !output.may_spin && output.threadgroup_memory_bytes == 0 &&
                      knows_grid_only(request.unit);
  if (output.private_bytes > kCpuPrivateMemoryLimit) {
    refuse(result, concat("a thread's private variables take ", output.private_bytes, " bytes; the CPU has ",
                          kCpuPrivateMemoryLimit, " for each"));
    return result;
  }
  prepare_for_x86(pipeline, *module, output, vector_isa, needs_polls);
  refuse_pseudo_intrinsics(*module, output.engine == "simd" ? &PseudoIntrinsic::simd : &PseudoIntrinsic::scalar);
  pipeline.keep_stage("optimized", *module);
  if (request.keep_stages) result.stages.push_back({"assembly", generate_assembly(*module, *machine)});
  llvm::SmallVector<char, 0> object = generate_object(*module, *machine);
  result.binary = write_image(object.data(), object.size(), output);
  result.engine = output.engine;
  result.engine_reason = output.reason;
  return result;
}

}  // namespace kiln
