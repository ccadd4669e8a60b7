// What a kernel is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/included_file.h"
#include "core/kernel_unit.h"
#include "frontend/signature.h"
#include "kiln/compilation.h"

namespace kiln {

// Names are given here or, where the generation of the interface has them in the call, there.
struct KernelSpec {
  Dialect dialect = Dialect::kMetal;
  std::string name;
  std::optional<std::vector<std::string>> input_names;
  std::optional<std::vector<std::string>> output_names;
  std::string source;
  std::string header;
  KernelFiles files;  // where these come from, and what they include
  bool ensure_row_contiguous = true;
  bool atomic_outputs = false;
  int64_t shared_memory = 0;  // bytes; CUDA
  CompileOptions compile_options;
  // Inputs that the body writes become writable, as on a Mac; else such a body is refused.
  bool allows_input_stores = false;
  SignatureStyle style = SignatureStyle::kWhereUsed;
  // With the parameters of the part among its inputs.
  GridPart part = {};

  bool operator==(const KernelSpec&) const = default;
};

}  // namespace kiln
