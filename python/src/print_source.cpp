#include <nanobind/nanobind.h>

#include "array_library.h"
#include "core/text.h"

namespace nb = nanobind;

namespace kiln::python {

void print_source(const KernelUnit& unit) {
  std::string text = concat("Generated source code for `", unit.name, "`:\n```\n", unit.text, "\n```");
  nb::module_::import_("builtins").attr("print")(nb::str(text.data(), text.size()));
}

}  // namespace kiln::python
