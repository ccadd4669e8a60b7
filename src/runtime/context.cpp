#include "runtime/context.h"

#include <chrono>
#include <utility>

#include "cache/binary_id.h"
#include "core/diagnostic.h"
#include "core/floating_point_state.h"
#include "core/fork_guard.h"
#include "core/settings.h"
#include "core/text.h"
#include "kiln/error.h"
#include "runtime/compilation_dump.h"
#include "targets/cpu/cpu_target.h"

namespace kiln {
namespace {

[[noreturn]] void throw_failure(const KernelUnit& unit, CompileResult result) {
  std::string_view interface = interface_name(unit.dialect);
  switch (result.status) {
    case CompileStatus::kInvalid: {
      std::string message = summarize(interface, unit.name, result.report.diagnostics);
      throw CompileError(message, std::make_shared<const CompileReport>(std::move(result.report)));
    }
    case CompileStatus::kUnsupported:
      throw UnsupportedError(concat("[", interface, "] `", printable(unit.name), "` uses what is not supported.\n",
                                    render(result.report.diagnostics.at(0))));
    default:
      throw InternalError(concat("[", interface, "] `", printable(unit.name),
                                 "`: Kiln's compiler failed: ", result.report.log,
                                 ". This is a defect of Kiln; a report with the output of `source_for` helps."));
  }
}

}  // namespace

std::string_view interface_name(Dialect dialect) { return dialect == Dialect::kMetal ? "metal_kernel" : "cuda_kernel"; }

bool is_lasting(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CompileError&) {
    return true;
  } catch (const MissingCompilerError&) {
    return false;
  } catch (const UnsupportedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

Context::Context(std::unique_ptr<Compiler> compiler) : cpu_(make_cpu_target()), compiler_(std::move(compiler)) {}

Context& Context::shared() {
  // Never destroyed: launches may still run when static objects are.
  ForkGuard guard;
  static Context* instance = new Context;
  return *instance;
}

SingleFlight<Binary>::Found Context::binary_for(const KernelUnit& unit, Target& target) {
  Compiler& compiler = compiler_.get();
  std::string identity;
  {
    ForkGuard guard;
    identity = compiler.identity();
  }
  return binaries_.get(binary_id(unit, target.spec(), identity), [&] {
    // LLVM has locks of its own.
    ForkGuard guard;
    DefaultFloatingPoint floating_point;  // the compiler folds constants
    auto start = std::chrono::steady_clock::now();
    const std::string& dump_folder = settings().dump_folder;
    CompileResult result = compiler.compile({unit, target.spec(), /*keep_stages=*/!dump_folder.empty()});
    if (!dump_folder.empty()) dump_compilation(dump_folder, unit, result);
    if (result.status != CompileStatus::kOk) throw_failure(unit, std::move(result));
    auto binary = std::make_shared<Binary>();
    binary->code = target.load(result.binary);
    binary->engine = std::move(result.engine);
    binary->engine_reason = std::move(result.engine_reason);
    binary->compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return std::shared_ptr<const Binary>(std::move(binary));
  });
}

std::vector<CompileStage> Context::stages_of(const KernelUnit& unit, Target& target) {
  DefaultFloatingPoint floating_point;
  CompileResult result = compiler_.get().compile({unit, target.spec(), /*keep_stages=*/true});
  if (result.status != CompileStatus::kOk) throw_failure(unit, std::move(result));
  return std::move(result.stages);
}

}  // namespace kiln
