// Printing never ends a call: a call that computes must not fail because of what `sys.stdout` is. It may be closed, a
// pipe without a reader, None, an object of a test's, or of an encoding that lacks a character of the text.
#include <nanobind/nanobind.h>

#include "array_library.h"
#include "core/text.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

enum class Printed { kYes, kLacksCharacter, kNo };

Printed print_text(nb::handle text) {
  try {
    nb::module_::import_("builtins").attr("print")(text);
    return Printed::kYes;
  } catch (nb::python_error& error) {
    // Ctrl-C and the end of the program are not the printing's.
    if (!error.matches(PyExc_Exception)) throw;
    return error.matches(PyExc_UnicodeEncodeError) ? Printed::kLacksCharacter : Printed::kNo;
  }
}

}  // namespace

void print_source(const KernelUnit& unit) {
  std::string utf8 = verbose_text(unit);
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
  if (!text.is_valid()) nb::raise_python_error();
  if (print_text(text) != Printed::kLacksCharacter) return;
  nb::object ascii = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "ascii", "backslashreplace"));
  if (ascii.is_valid()) text = nb::steal(PyUnicode_FromEncodedObject(ascii.ptr(), "ascii", "strict"));
  if (!ascii.is_valid() || !text.is_valid()) nb::raise_python_error();
  print_text(text);
}

}  // namespace kiln::python
