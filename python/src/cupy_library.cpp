// CuPy's arrays are read by their attributes, which are those of objects in C: DLPack would make three objects for
// each.
#include "cupy_library.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "core/dtype_table.h"
#include "core/text.h"
#include "device_library.h"
#include "kiln/error.h"
#include "python_object.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

nb::object attribute(nb::handle object, PyObject* name) {
  nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), name));
  if (!value.is_valid()) nb::raise_python_error();
  return value;
}

int64_t as_int(nb::handle number) {
  int64_t value = PyLong_AsLongLong(number.ptr());
  if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
  return value;
}

#define KILN_NAME(NAME) static PyObject* const NAME = PyUnicode_InternFromString(#NAME)

class CupyLibrary : public DeviceLibrary {
 public:
  CupyLibrary() : cupy_(nb::module_::import_("cupy").release()), array_(nb::object(cupy_.attr("ndarray")).release()) {}

  const char* name() const override { return "cupy"; }

  bool owns(PyObject* object) const override { return nb::isinstance(nb::handle(object), array_); }

  // They are NumPy's.
  std::optional<Dtype> dtype_of(PyObject*) const override { return std::nullopt; }

 protected:
  const char* title() const override { return "CuPy arrays"; }

  std::string show(Device device) const override { return concat("cuda:", device.index); }

  void read(nb::object& object, const ArgumentName& what, ArrayView& view) const override {
    KILN_NAME(dtype);
    KILN_NAME(data);
    KILN_NAME(ptr);
    KILN_NAME(device);
    KILN_NAME(id);
    KILN_NAME(shape);
    KILN_NAME(strides);
    nb::object type = attribute(object, dtype);
    view.dtype = read_dtype(type, what);
    nb::object memory = attribute(object, data);
    view.data = reinterpret_cast<void*>(as_int(attribute(memory, ptr)));
    view.device = {DeviceKind::kNvidia, static_cast<int>(as_int(attribute(attribute(memory, device), id)))};
    auto size = static_cast<int64_t>(size_of(view.dtype));
    view.shape.clear();
    view.strides.clear();
    nb::object dimensions = attribute(object, shape), bytes = attribute(object, strides);
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(dimensions.ptr()); ++d) {
      view.shape.push_back(as_int(PyTuple_GET_ITEM(dimensions.ptr(), d)));
      int64_t stride = as_int(PyTuple_GET_ITEM(bytes.ptr(), d));
      if (stride % size != 0) throw TypeError(concat(what, " has strides that are no whole elements."));
      view.strides.push_back(stride / size);
    }
  }

  void check_writable(nb::handle, const ArgumentName&) const override {}

  nb::object copy_row_contiguous(nb::handle object) const override { return cupy_.attr("ascontiguousarray")(object); }

  nb::object make(const OutputArray& output, Device device, nb::handle /*model*/, void*& data) const override {
    KILN_NAME(ptr);
    nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(output.shape.size())));
    for (size_t d = 0; d < output.shape.size(); ++d)
      PyTuple_SET_ITEM(shape.ptr(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(output.shape[d]));
    if (output.dtype == Dtype::kBFloat16) nb::module_::import_("ml_dtypes");  // which names it
    nb::object cuda = cupy_.attr("cuda");
    int current = nb::cast<int>(cuda.attr("runtime").attr("getDevice")());
    nb::object scope = current == device.index ? nb::object() : nb::object(cuda.attr("Device")(device.index));
    if (scope.is_valid()) scope.attr("__enter__")();
    nb::object dtype = nb::str(std::string(row_of(output.dtype).name).c_str());
    nb::object made = nb::steal(
        PyObject_CallFunctionObjArgs(nb::object(cupy_.attr("empty")).ptr(), shape.ptr(), dtype.ptr(), nullptr));
    if (scope.is_valid()) {
      nb::error_scope keep_error;
      scope.attr("__exit__")(nb::none(), nb::none(), nb::none());
    }
    if (!made.is_valid()) nb::raise_python_error();
    data = reinterpret_cast<void*>(as_int(attribute(made.attr("data"), ptr)));
    return made;
  }

  Device default_device() const override {
    return {DeviceKind::kNvidia, nb::cast<int>(cupy_.attr("cuda").attr("runtime").attr("getDevice")())};
  }

  void* current_stream(Device device) const override {
    KILN_NAME(ptr);
    nb::object stream = cupy_.attr("cuda").attr("get_current_stream")(device.index);
    return reinterpret_cast<void*>(as_int(attribute(stream, ptr)));
  }

  nb::object stream_scope(nb::handle stream, Device device, std::string_view prefix) const override {
    nb::object cuda = cupy_.attr("cuda");
    if (PyLong_Check(stream.ptr()) && !PyBool_Check(stream.ptr()))
      return cuda.attr("ExternalStream")(stream, device.index);
    if (!nb::isinstance(stream, cuda.attr("Stream")) && !nb::isinstance(stream, cuda.attr("ExternalStream")))
      throw TypeError(
          concat(prefix, "Expected `stream` to be a cupy.cuda.Stream or an int but got ", kind_of(stream), "."));
    int index = nb::cast<int>(stream.attr("device_id"));
    if (index >= 0 && index != device.index)
      throw ValueError(concat(prefix, "Expected `stream` to be one of ", show(device),
                              ", where the arrays are, but got one of cuda:", index, "."));
    return nb::borrow(stream);
  }

 private:
  // CuPy's dtypes are few objects.
  Dtype read_dtype(nb::handle type, const ArgumentName& what) const {
    for (const auto& [known, dtype] : dtypes_)
      if (known.is(type)) return dtype;
    std::optional<Dtype> dtype = dtype_from_name(nb::cast<std::string>(nb::str(nb::object(type.attr("name")))));
    if (!dtype) throw TypeError(concat(what, " has dtype ", to_utf8(nb::str(type)), ", which no kernel can take."));
    dtypes_.emplace_back(nb::borrow(type).release(), *dtype);
    return *dtype;
  }

  // Kept for ever: while the interpreter shuts down nothing can be imported any more.
  const nb::handle cupy_, array_;
  mutable std::vector<std::pair<nb::handle, Dtype>> dtypes_;
};

#undef KILN_NAME

}  // namespace

std::unique_ptr<ArrayLibrary> make_cupy_library() { return std::make_unique<CupyLibrary>(); }

}  // namespace kiln::python
