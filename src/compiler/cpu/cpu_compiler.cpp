#include "compiler/cpu/cpu_compiler.h"

#include <llvm/IR/LLVMContext.h>

#include "compiler/cpu/code_generator.h"
#include "compiler/cpu/engine.h"
#include "compiler/cpu/image_writer.h"
#include "compiler/passes/small_floats.h"
#include "compiler/thread_code.h"
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

}  // namespace

CompileResult compile_for_cpu(const CompileRequest& request) {
  CompileResult result;
  result.report.generated_source = request.unit.text;
  std::unique_ptr<CpuEngine> engine = request.target.engine == "simd" ? make_simd_engine() : make_scalar_engine();
  llvm::TargetMachine* machine = &cpu_machine(request.target.cpu);

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = make_thread_code(request, request.target.cpu, engine->text(request.unit),
                                                          machine->createDataLayout(), context, result);
  if (!module) return result;
  auto keep = [&](const char* stage) { keep_stage(request, *module, stage, result); };
  EngineOutput output = engine->lower(*module, request.unit, *machine, keep);
  if (!check_variables(*module, result)) return result;
  if (output.private_bytes > kCpuPrivateMemoryLimit) {
    refuse(result, concat("a thread's private variables take ", output.private_bytes, " bytes; the CPU has ",
                          kCpuPrivateMemoryLimit, " for each"));
    return result;
  }
  remove_bfloat(*module);
  keep("optimized");
  if (request.keep_stages) result.stages.push_back({"assembly", generate_assembly(*module, *machine)});
  llvm::SmallVector<char, 0> object = generate_object(*module, *machine);
  result.binary = write_image(object.data(), object.size(), output);
  result.engine = output.engine;
  result.engine_reason = output.reason;
  return result;
}

}  // namespace kiln
