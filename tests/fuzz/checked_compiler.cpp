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
  // What the texts have themselves is quoted.
  auto is_in_texts = [&](std::string_view name) {
    return unit.text.find(name) != std::string::npos ||
           std::ranges::any_of(unit.included_files,
                               [&](const IncludedFile& file) { return file.text.find(name) != std::string::npos; });
  };
  for (std::string_view internal : {"__kiln", "_Float16", "__bf16", "ext_vector_type", "vec<float", "custom_kernel_"})
    if (first->message.find(internal) != std::string::npos && !is_in_texts(internal))
      return concat("an internal name: ", render(*first));
  return {};
}

}  // namespace kiln
