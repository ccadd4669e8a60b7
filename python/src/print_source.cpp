#include <nanobind/nanobind.h>

#include "array_library.h"
#include "core/text.h"

namespace nb = nanobind;

namespace kiln::python {

void print_source(const KernelUnit& unit) {
  std::string text = verbose_text(unit);
  nb::module_::import_("builtins").attr("print")(nb::str(text.data(), text.size()));
}

}  // namespace kiln::python
