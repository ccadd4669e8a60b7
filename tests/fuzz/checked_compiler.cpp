#include "checked_compiler.h"

#include <algorithm>
#include <utility>

#include "core/diagnostic.h"
#include "core/text.h"

namespace kiln {

std::string problem_of(Compiler& compiler, const KernelUnit& unit) {
  // The library's memory: what is kept of it is a copy.
  CompileResult theirs = compiler.compile({unit, {DeviceKind::kCpu, "x86-64-v3", "simd"}});
  const CompileResult result(std::as_const(theirs));
  compiler.release(theirs);
  switch (result.status) {
    case CompileStatus::kOk: return result.binary.empty() ? "no machine code" : "";
    case CompileStatus::kInternal: return concat("a defect: ", result.report.log);
    case CompileStatus::kTooLarge:
    case CompileStatus::kOutOfMemory: return {};
    case CompileStatus::kInvalid:
    case CompileStatus::kUnsupported: break;
  }
  const std::vector<Diagnostic>& diagnostics = result.report.diagnostics;
  auto is_error = [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::kError; };
  auto first = std::find_if(diagnostics.begin(), diagnostics.end(), is_error);
  if (first == diagnostics.end()) return "a failure without an error";
  for (std::string_view internal : {"__kiln", "_Float16", "__bf16", "ext_vector_type", "vec<float", "custom_kernel_"})
    if (first->message.find(internal) != std::string::npos && unit.text.find(internal) == std::string::npos)
      return concat("an internal name: ", render(*first));
  return {};
}

}  // namespace kiln
