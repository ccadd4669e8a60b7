#include "python_object.h"

#include "core/text.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

constexpr size_t kMostShown = 200;  // bytes

// An int with its digits; converting very many of them is refused by Python.
std::string digits_of(nb::handle number) {
  if (nb::object text = nb::steal(PyObject_Str(number.ptr())); text.is_valid()) return to_utf8(text);
  PyErr_Clear();
  return concat("a number of ", to_utf8(nb::str(number.attr("bit_length")())), " bits");
}

}  // namespace

std::string kind_of(nb::handle object) {
  nb::handle type = object.type();
  std::string name = to_utf8(nb::steal(PyType_GetName(reinterpret_cast<PyTypeObject*>(type.ptr()))));
  nb::object package = nb::steal(PyObject_GetAttrString(type.ptr(), "__module__"));
  if (!package.is_valid() || !PyUnicode_Check(package.ptr())) {
    PyErr_Clear();
    return name;
  }
  std::string prefix = to_utf8(package);
  return prefix == "builtins" || prefix == "__main__" ? name : concat(prefix, ".", name);
}

bool is_bool(nb::handle object) {
  if (PyBool_Check(object.ptr())) return true;
  std::string kind = kind_of(object);
  return kind == "numpy.bool" || kind == "numpy.bool_";  // since NumPy 2; before
}

bool is_foreign_array(nb::handle object) {
  return !PyLong_Check(object.ptr()) && !PyFloat_Check(object.ptr()) && !PyComplex_Check(object.ptr()) &&
         !PyType_Check(object.ptr()) && nb::hasattr(object, "__dlpack__");
}

std::string to_utf8(nb::handle text) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) nb::raise_python_error();
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) < 0) nb::raise_python_error();
  return printable({data, static_cast<size_t>(size)});
}

std::string shown(nb::handle object) {
  nb::object text = nb::steal(PyObject_Repr(object.ptr()));
  if (!text.is_valid()) {
    PyErr_Clear();
    return kind_of(object);
  }
  std::string utf8 = to_utf8(text);
  if (utf8.size() <= kMostShown) return utf8;
  size_t end = kMostShown;
  while ((utf8[end] & 0xc0) == 0x80) --end;  // at the beginning of a character
  return utf8.substr(0, end) + "…";
}

bool is_refusal() {
  return PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
         PyErr_ExceptionMatches(PyExc_OverflowError);
}

void throw_type_error(const std::string& message) {
  if (PyErr_Occurred()) {
    if (!is_refusal()) nb::raise_python_error();
    nb::chain_error(PyExc_TypeError, "%s", message.c_str());
  } else {
    PyErr_SetString(PyExc_TypeError, message.c_str());
  }
  nb::raise_python_error();
}

std::optional<Index> index_of(nb::handle object) {
  nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) return std::nullopt;
  int overflow;
  int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (!overflow) return Index{value, {}};
  return Index{std::nullopt, digits_of(number)};
}

}  // namespace kiln::python
