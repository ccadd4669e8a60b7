#include "number_input.h"

#include <nanobind/nanobind.h>

#include <cstring>

#include "core/dtype_table.h"
#include "core/text.h"
#include "kiln/error.h"
#include "python_object.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

template <typename T>
NumberInput number_of(Dtype dtype, T value) {
  NumberInput number{dtype, {}};
  std::memcpy(number.bytes, &value, sizeof value);
  return number;
}

// Nothing for a dtype that Kiln lacks.
std::optional<NumberInput> read_numpy_scalar(nb::handle scalar) {
  std::optional<Dtype> dtype = dtype_from_name(to_utf8(nb::str(nb::object(scalar.attr("dtype").attr("name")))));
  if (!dtype) return std::nullopt;
  nb::object bytes = scalar.attr("tobytes")();  // in the machine's byte order
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) < 0) nb::raise_python_error();
  NumberInput number{*dtype, {}};
  if (static_cast<size_t>(size) != size_of(*dtype)) return std::nullopt;
  std::memcpy(number.bytes, data, static_cast<size_t>(size));
  return number;
}

}  // namespace

bool is_numpy_scalar(PyObject* object) {
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object)) return false;
  nb::object bases = nb::handle(object).type().attr("__mro__");
  for (nb::handle base : bases) {
    nb::object name = nb::steal(PyType_GetName(reinterpret_cast<PyTypeObject*>(base.ptr())));
    if (!name.is_valid() || PyUnicode_CompareWithASCIIString(name.ptr(), "generic") != 0) continue;
    nb::object package = nb::getattr(base, "__module__", nb::none());
    if (PyUnicode_Check(package.ptr()) && PyUnicode_CompareWithASCIIString(package.ptr(), "numpy") == 0) return true;
  }
  return false;
}

std::optional<NumberInput> read_number_input(PyObject* object, const ArgumentName& name, bool keeps_float64) {
  if (PyBool_Check(object)) return number_of(Dtype::kBool, static_cast<uint8_t>(object == Py_True));
  if (PyFloat_Check(object)) {
    double value = PyFloat_AsDouble(object);
    if (keeps_float64 && is_numpy_scalar(object)) return number_of(Dtype::kFloat64, value);
    return number_of(Dtype::kFloat32, static_cast<float>(value));
  }
  if (PyComplex_Check(object)) {
    struct {
      float real, imaginary;
    } parts{static_cast<float>(PyComplex_RealAsDouble(object)), static_cast<float>(PyComplex_ImagAsDouble(object))};
    return number_of(Dtype::kComplex64, parts);
  }
  if (!PyLong_Check(object) && is_numpy_scalar(object)) return read_numpy_scalar(object);
  if (!PyIndex_Check(object) || is_foreign_array(object)) return std::nullopt;
  std::optional<Index> index = index_of(object);
  if (!index) return std::nullopt;
  if (!index->value) throw ValueError(concat(name, " does not fit into int64: ", index->text, "."));
  int64_t value = *index->value;
  if (value >= INT32_MIN && value <= INT32_MAX) return number_of(Dtype::kInt32, static_cast<int32_t>(value));
  return number_of(Dtype::kInt64, value);
}

}  // namespace kiln::python
