#include "number_input.h"

#include <nanobind/nanobind.h>

#include <cstring>

#include "core/text.h"
#include "kiln/error.h"
#include "python_object.h"

namespace kiln::python {
namespace {

template <typename T>
NumberInput number_of(Dtype dtype, T value) {
  NumberInput number{dtype, {}};
  std::memcpy(number.bytes, &value, sizeof value);
  return number;
}

}  // namespace

std::optional<NumberInput> read_number_input(PyObject* object, const ArgumentName& name) {
  if (PyBool_Check(object)) return number_of(Dtype::kBool, static_cast<uint8_t>(object == Py_True));
  if (PyFloat_Check(object)) return number_of(Dtype::kFloat32, static_cast<float>(PyFloat_AS_DOUBLE(object)));
  if (PyComplex_Check(object)) {
    struct {
      float real, imaginary;
    } parts{static_cast<float>(PyComplex_RealAsDouble(object)), static_cast<float>(PyComplex_ImagAsDouble(object))};
    return number_of(Dtype::kComplex64, parts);
  }
  if (!PyIndex_Check(object) || is_foreign_array(object)) return std::nullopt;
  std::optional<Index> index = index_of(object);
  if (!index) return std::nullopt;
  if (!index->value) throw ValueError(concat(name, " does not fit into int64: ", index->text, "."));
  int64_t value = *index->value;
  if (value >= INT32_MIN && value <= INT32_MAX) return number_of(Dtype::kInt32, static_cast<int32_t>(value));
  return number_of(Dtype::kInt64, value);
}

}  // namespace kiln::python
