// The text that identifies a launch for every process (python/kiln/_functions.py writes it): the kernel, its template
// arguments, the dtypes and ranks of its outputs, and their initial value, in JSON. A library's graph keeps it, and a
// process that has not made the kernel makes it from the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/dtype.h"
#include "kiln/element.h"
#include "runtime/kernel_spec.h"

namespace kiln {

struct LaunchText {
  struct Output {
    Dtype dtype = Dtype::kFloat32;
    size_t rank = 0;
  };

  KernelSpec kernel;
  std::vector<TemplateArgument> template_arguments;
  std::vector<Output> outputs;
  std::optional<Number> init_value;
};

/// Throws ValueError for what no version of Kiln that reads this one's texts has written.
LaunchText parse_launch_text(std::string_view text);

}  // namespace kiln
