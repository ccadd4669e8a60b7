#include "compiler/cpu/cpu_compiler.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/clang_frontend.h"
#include "compiler/cpu/code_generator.h"
#include "compiler/cpu/engine.h"
#include "compiler/cpu/image_writer.h"
#include "compiler/passes/bounds_guards.h"
#include "compiler/passes/exchange_sites.h"
#include "compiler/passes/harmless_arithmetic.h"
#include "compiler/passes/initial_values.h"
#include "compiler/passes/inline_all.h"
#include "compiler/passes/known_shapes.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/small_floats.h"
#include "compiler/passes/split_structures.h"
#include "core/text.h"

namespace kiln {
namespace {

// The functions that the engine's text defines besides the body.
std::vector<std::string> roots_of(const llvm::Module& module) {
  std::vector<std::string> roots;
  for (const llvm::Function& function : module)
    if (!function.isDeclaration() && function.getName().starts_with("__kiln_"))
      roots.push_back(function.getName().str());
  return roots;
}

// Calls through pointers that inlining has not resolved.
bool has_indirect_calls(const llvm::Function& function) {
  for (const llvm::Instruction& instruction : llvm::instructions(function))
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction); call && call->isIndirectCall()) return true;
  return false;
}

// Variables that live longer than a thread and can change: Metal has none but threadgroup memory.
const llvm::GlobalVariable* find_mutable_variable(const llvm::Module& module) {
  for (const llvm::GlobalVariable& variable : module.globals())
    if (!variable.isConstant() && !variable.hasSection() && !variable.isDeclaration() &&
        !variable.getName().starts_with("llvm."))
      return &variable;
  return nullptr;
}

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
  FrontendResult frontend =
      run_clang(request.unit, kCpuTriple, request.target.cpu, engine->text(request.unit), context);
  result.status = frontend.status;
  result.report.diagnostics = std::move(frontend.diagnostics);
  result.report.log = std::move(frontend.log);
  if (!frontend.module) return result;

  llvm::Module& module = *frontend.module;
  auto keep_stage = [&](const char* name) {
    if (!request.keep_stages) return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, /*AAW=*/nullptr);
    result.stages.push_back({name, std::move(text)});
  };
  keep_stage("clang");
  module.setDataLayout(machine->createDataLayout());
  make_arithmetic_harmless(module);
  expand_bfloat(module);
  mark_calls(module);
  // From here on nothing is undefined, and code may be moved.
  inline_all(module, roots_of(module));
  // The control flow is still as Clang made it: places in the program are read from it.
  compute_initial_values(module);
  llvm::Function& body = *module.getFunction(kBodyFunction);
  auto refuse = [&](Diagnostic diagnostic) {
    result.status = CompileStatus::kUnsupported;
    result.report.diagnostics.push_back(std::move(diagnostic));
    return std::move(result);
  };
  if (has_indirect_calls(body)) return refuse(std::move(frontend.indirect_call));
  if (request.unit.bounds_guards) split_structures(body);
  replace_known_shapes(body, request.unit);
  describe_accesses(body, request.unit);
  if (request.unit.bounds_guards) insert_bounds_guards(body, request.unit);
  keep_stage("guarded");

  EngineOutput output = engine->lower(module, request.unit, *machine, keep_stage);
  if (const llvm::GlobalVariable* variable = find_mutable_variable(module)) {
    Diagnostic diagnostic;
    diagnostic.message = "variable '" + variable->getName().str() + "' is neither constant nor in threadgroup memory";
    return refuse(std::move(diagnostic));
  }
  if (output.private_bytes > kCpuPrivateMemoryLimit) {
    Diagnostic diagnostic;
    diagnostic.message = concat("a thread's private variables take ", output.private_bytes, " bytes; the CPU has ",
                                kCpuPrivateMemoryLimit, " for each");
    return refuse(std::move(diagnostic));
  }
  remove_bfloat(module);
  keep_stage("optimized");
  if (request.keep_stages) result.stages.push_back({"assembly", generate_assembly(module, *machine)});
  llvm::SmallVector<char, 0> object = generate_object(module, *machine);
  result.binary = write_image(object.data(), object.size(), output);
  result.engine = output.engine;
  result.engine_reason = output.reason;
  return result;
}

}  // namespace kiln
