// Python objects as both modules read them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

namespace kiln::python {

/// The name of an object's type, for messages.
inline std::string kind_of(nanobind::handle object) {
  return nanobind::cast<std::string>(nanobind::str(object.type().attr("__name__")));
}

/// What `__index__` gives; empty where 64 bits do not hold it, and then `text` is the number. Raises what `__index__`
/// raises.
inline std::optional<int64_t> index_of(nanobind::handle object, std::string& text) {
  nanobind::object number = nanobind::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) nanobind::raise_python_error();
  int overflow;
  int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (!overflow) return value;
  text = nanobind::cast<std::string>(nanobind::str(number));
  return std::nullopt;
}

}  // namespace kiln::python
