// What libkiln_compiler.so exports.
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/ErrorHandling.h>

#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "compiler/clang/device_library.h"
#include "compiler/driver/compile_budget.h"
#include "compiler/driver/compile_for_cpu.h"
#include "compiler/driver/compile_for_nvidia.h"
#include "compiler/driver/thread_code.h"
#include "compiler/pipeline.h"
#include "core/compiler.h"
#include "core/device_traits.h"
#include "core/text.h"

namespace kiln {
namespace {

// LLVM ends the process where it meets something that it cannot compile, unless a handler ends the compilation.
void end_after_fatal_error(void*, const char* reason, bool) { CompileBudget::give_up(reason); }

// The first name of KILN_PASSES that no optional pass has; empty where there is none.
std::string unknown_pass(const TargetSpec& target) {
  if (target.passes.empty()) return "";
  for (llvm::StringRef name : llvm::split(target.passes, ',')) {
    name.consume_front("-");
    if (!llvm::is_contained(optional_passes(), name)) return name.str();
  }
  return "";
}

// Code generation of each target, in the order of DeviceKind.
constexpr CompileResult (*kCompileFor[])(const CompileRequest&) = {compile_for_cpu, compile_for_nvidia};
static_assert(std::size(kCompileFor) == kDeviceKinds);

class ClangCompiler : public Compiler {
 public:
  CompileResult compile(const CompileRequest& request) override {
    static std::once_flag once;
    std::call_once(once, [] {
      llvm::install_fatal_error_handler(end_after_fatal_error);
      llvm::install_bad_alloc_error_handler(end_after_fatal_error);
    });
    std::optional<CompileBudget> budget;
    std::string message;
    bool lacks_memory = false;
    if (std::string name = unknown_pass(request.target); !name.empty()) {
      CompileResult result;
      result.report.generated_source = request.unit.text;
      const llvm::ArrayRef known(optional_passes().data(), optional_passes().size());
      refuse(result, concat("KILN_PASSES names the pass `", name, "`; those that can be switched off are ",
                            llvm::join(known.begin(), known.end(), ", ")));
      return result;
    }
    try {
      budget.emplace(request.limits);
      CompileResult result;
      if (budget->run([&] { result = kCompileFor[static_cast<size_t>(request.target.kind)](request); })) return result;
      if (!budget->reason().empty()) message = concat("LLVM: ", budget->reason());
    } catch (const std::bad_alloc&) {
      lacks_memory = true;
    } catch (const std::exception& error) {
      message = error.what();
    }
    CompileExcess excess = budget ? budget->excess() : CompileExcess::kNone;
    CompileResult result;
    result.report.generated_source = request.unit.text;
    if (excess != CompileExcess::kNone && excess != CompileExcess::kSystemMemory) {
      result.status = CompileStatus::kTooLarge;
      result.report.log = budget->describe();
    } else if (lacks_memory || excess == CompileExcess::kSystemMemory) {
      result.status = CompileStatus::kOutOfMemory;
    } else {
      result.status = CompileStatus::kInternal;
      result.report.log = std::move(message);
    }
    return result;
  }

  std::string identity() const override { return concat("LLVM ", LLVM_VERSION_STRING, " ", device_library_digest()); }
};

}  // namespace
}  // namespace kiln

// Threads may still compile when the process ends and the destructors of static objects run. LLVM's live for ever: all
// of the library that would have one of them destroyed finds this function rather than the C library's.
extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }

extern "C" __attribute__((visibility("default"))) kiln::Compiler* kiln_make_compiler(uint32_t interface_version) {
  return interface_version == kiln::kCompilerInterfaceVersion ? new kiln::ClangCompiler : nullptr;
}
