// NumPy is reached through its C interface, which it hands over at run time: nothing of it is linked, and a process
// that has no NumPy never asks for it.
#include "numpy_library.h"

#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <numpy/arrayobject.h>

#include <cstring>

#include "core/array_layout.h"
#include "core/out_of_memory.h"
#include "core/text.h"
#include "dlpack_input.h"
#include "kiln/error.h"
#include "number_input.h"
#include "overlaps.h"
#include "python_object.h"
#include "runtime/run.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

std::optional<Dtype> dtype_of_kind(char kind, int size) {
  switch (kind) {
    case 'b': return Dtype::kBool;
    case 'u':
      return size == 1 ? Dtype::kUInt8 : size == 2 ? Dtype::kUInt16 : size == 4 ? Dtype::kUInt32 : Dtype::kUInt64;
    case 'i': return size == 1 ? Dtype::kInt8 : size == 2 ? Dtype::kInt16 : size == 4 ? Dtype::kInt32 : Dtype::kInt64;
    case 'f':
      if (size == 2) return Dtype::kFloat16;
      if (size == 4) return Dtype::kFloat32;
      if (size == 8) return Dtype::kFloat64;
      return std::nullopt;
    case 'c':
      if (size == 8) return Dtype::kComplex64;
      return std::nullopt;
    default: return std::nullopt;
  }
}

// NumPy has no bfloat16 of its own; ml_dtypes brings it.
PyObject* bfloat16_type(bool import) {
  static PyObject* type = nullptr;
  if (type) return type;
  nb::object modules = nb::module_::import_("sys").attr("modules");
  if (!import && !nb::cast<bool>(modules.attr("__contains__")("ml_dtypes"))) return nullptr;
  try {
    type = nb::object(nb::module_::import_("ml_dtypes").attr("bfloat16")).release().ptr();
  } catch (nb::python_error&) {
    throw UnsupportedError("NumPy has bfloat16 only with the package ml_dtypes: `pip install ml_dtypes`");
  }
  return type;
}

std::optional<Dtype> dtype_of_descriptor(PyArray_Descr* descriptor) {
  if (!PyTypeNum_ISNUMBER(descriptor->type_num) && !PyTypeNum_ISBOOL(descriptor->type_num)) {
    // What others have added may have the letter and the size of one of NumPy's own types.
    PyObject* bfloat16 = bfloat16_type(/*import=*/false);
    if (bfloat16 && reinterpret_cast<PyObject*>(descriptor->typeobj) == bfloat16) return Dtype::kBFloat16;
    return std::nullopt;
  }
  return dtype_of_kind(descriptor->kind, static_cast<int>(PyDataType_ELSIZE(descriptor)));
}

int type_number(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool: return NPY_BOOL;
    case Dtype::kUInt8: return NPY_UINT8;
    case Dtype::kUInt16: return NPY_UINT16;
    case Dtype::kUInt32: return NPY_UINT32;
    case Dtype::kUInt64: return NPY_UINT64;
    case Dtype::kInt8: return NPY_INT8;
    case Dtype::kInt16: return NPY_INT16;
    case Dtype::kInt32: return NPY_INT32;
    case Dtype::kInt64: return NPY_INT64;
    case Dtype::kFloat16: return NPY_FLOAT16;
    case Dtype::kBFloat16: return -1;
    case Dtype::kFloat32: return NPY_FLOAT32;
    case Dtype::kFloat64: return NPY_FLOAT64;
    case Dtype::kComplex64: return NPY_COMPLEX64;
  }
  return -1;
}

// In place of the error by which NumPy has refused to make an array: what it was for.
[[noreturn]] void throw_numpy_error(const std::string& out_of_memory, const std::string& otherwise) {
  nb::python_error error;
  if (error.matches(PyExc_MemoryError)) throw OutOfMemory(out_of_memory);
  if (!error.matches(PyExc_ValueError)) throw error;
  nb::raise_from(error, PyExc_ValueError, "%s: %s", otherwise.c_str(), to_utf8(nb::str(error.value())).c_str());
}

// The inputs of a call as arrays in memory. Keeps alive what it had to make.
class Inputs {
 public:
  Inputs(const KernelObject& kernel, const CallArguments& arguments) : kernel_(kernel), arguments_(arguments) {
    for (const ObjectOwner& input : arguments.inputs) objects_.push_back(input.get());
    scalars_.resize(objects_.size());
    exported_.resize(objects_.size());
    // All that may run code of the caller's comes before anything is read of an array, which that code may change.
    for (size_t i = 0; i < objects_.size(); ++i)
      if (!PyArray_Check(objects_[i]) && !read_scalar(i) && !read_exported(i)) objects_[i] = own(as_array(i));
    // Dimensions and strides of all inputs, in one buffer, which must not move.
    size_t dimensions = 0;
    for (size_t i = 0; i < objects_.size(); ++i) {
      if (scalars_[i]) continue;
      if (kernel_.writes_inputs() && kernel_.is_writable(arguments_.input_name(kernel_, i))) check_writable(i);
      if (exported_[i]) continue;
      objects_[i] = well_behaved(i);
      dimensions += 2 * static_cast<size_t>(PyArray_NDIM(reinterpret_cast<PyArrayObject*>(objects_[i])));
    }
    dimensions_.reserve(dimensions);
    for (size_t i = 0; i < objects_.size(); ++i)
      arrays_.push_back(scalars_[i]    ? InputArray{scalars_[i]->bytes, scalars_[i]->dtype, {}, {}, /*is_number=*/true}
                        : exported_[i] ? exported_[i]->array()
                                       : array(i));
  }

  std::span<const InputArray> arrays() const { return arrays_; }

  /// Those that are arrays, for messages.
  std::vector<NamedArray> named() const {
    std::vector<NamedArray> result;
    for (size_t i = 0; i < arrays_.size(); ++i)
      if (!scalars_[i]) result.push_back({{kernel_, arguments_, ArgumentName::Kind::kInput, i}, arrays_[i]});
    return result;
  }

 private:
  std::string_view prefix() const { return message_prefix(kernel_.spec().dialect); }

  std::string name(size_t i) const { return concat("`", arguments_.input_name(kernel_, i), "`"); }

  PyObject* own(nb::object object) { return made_.emplace_back(std::move(object)).ptr(); }

  [[noreturn]] void fail_as_no_input(size_t i) const {
    throw_type_error(concat(prefix(), "Expected `inputs` to be NumPy arrays or numbers but got ", kind_of(objects_[i]),
                            " for ", name(i), "."));
  }

  // NumPy scalars of dtypes that Kiln lacks.
  nb::object as_array(size_t i) const {
    if (!PyArray_CheckScalar(objects_[i])) fail_as_no_input(i);
    nb::object array = nb::steal(PyArray_FromScalar(objects_[i], nullptr));
    if (!array.is_valid()) nb::raise_python_error();
    return array;
  }

  // Whether it is a number; then it is read.
  bool read_scalar(size_t i) {
    scalars_[i] = read_number_input(objects_[i], {kernel_, arguments_, ArgumentName::Kind::kInput, i},
                                    /*keeps_float64=*/kernel_.spec().dialect == Dialect::kCuda);
    if (!scalars_[i] && PyErr_Occurred()) fail_as_no_input(i);
    return scalars_[i].has_value();
  }

  // Whether it is an array of a library that Kiln does not know; then it is read.
  bool read_exported(size_t i) {
    if (!is_foreign_array(objects_[i])) return false;
    exported_[i].emplace(objects_[i], ArgumentName(kernel_, arguments_, ArgumentName::Kind::kInput, i));
    return true;
  }

  // Aligned, in the machine's byte order, with strides that are whole elements.
  static bool is_well_behaved(PyArrayObject* array) {
    bool whole = true;
    for (int d = 0; d < PyArray_NDIM(array); ++d)
      whole = whole && PyArray_ITEMSIZE(array) > 0 && PyArray_STRIDE(array, d) % PyArray_ITEMSIZE(array) == 0;
    return PyArray_ISBEHAVED_RO(array) && whole;
  }

  // Of an input that is written in place.
  void check_writable(size_t i) const {
    ArgumentName what(kernel_, arguments_, ArgumentName::Kind::kInput, i);
    if (exported_[i]) refuse_to_write(what, kOfUnknownLibrary);
    auto* array = reinterpret_cast<PyArrayObject*>(objects_[i]);
    if (PyArray_IsScalar(arguments_.inputs[i].get(), Generic)) refuse_to_write(what, "but is a number");
    if (!PyArray_ISWRITEABLE(array)) refuse_to_write(what, "but is read-only");
    if (dtype_of_descriptor(PyArray_DESCR(array)) && !is_well_behaved(array))
      refuse_to_write(what, "but is not aligned, of the machine's byte order and with strides of whole elements");
  }

  PyObject* well_behaved(size_t i) {
    auto* array = reinterpret_cast<PyArrayObject*>(objects_[i]);
    if (is_well_behaved(array)) return objects_[i];
    if (!dtype_of_descriptor(PyArray_DESCR(array))) fail_as_no_dtype(i);
    nb::object copy = nb::steal(PyArray_FromArray(array, PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE),
                                                  NPY_ARRAY_DEFAULT | NPY_ARRAY_ENSUREARRAY));
    if (!copy.is_valid())
      throw_numpy_error(concat(prefix(), "There is no memory for an aligned copy of input ", name(i), "."),
                        concat(prefix(), "NumPy cannot copy input ", name(i)));
    return own(std::move(copy));
  }

  [[noreturn]] void fail_as_no_dtype(size_t i) const {
    auto* descriptor = reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(objects_[i])));
    throw TypeError(concat(prefix(), "Input ", name(i), " has dtype ", to_utf8(nb::str(nb::handle(descriptor))),
                           ", which no kernel can take."));
  }

  InputArray array(size_t i) {
    auto* object = reinterpret_cast<PyArrayObject*>(objects_[i]);
    std::optional<Dtype> dtype = dtype_of_descriptor(PyArray_DESCR(object));
    if (!dtype) fail_as_no_dtype(i);
    auto rank = static_cast<size_t>(PyArray_NDIM(object));
    auto size = static_cast<int64_t>(size_of(*dtype));
    size_t first = dimensions_.size();
    for (size_t d = 0; d < rank; ++d) dimensions_.push_back(PyArray_DIM(object, static_cast<int>(d)));
    for (size_t d = 0; d < rank; ++d) dimensions_.push_back(PyArray_STRIDE(object, static_cast<int>(d)) / size);
    InputArray result;
    result.data = PyArray_DATA(object);
    result.dtype = *dtype;
    result.shape = {dimensions_.data() + first, rank};
    result.strides = {dimensions_.data() + first + rank, rank};
    return result;
  }

  const KernelObject& kernel_;
  const CallArguments& arguments_;
  std::vector<PyObject*> objects_;
  std::vector<nb::object> made_;
  std::vector<std::optional<NumberInput>> scalars_;   // of those inputs that are numbers
  std::vector<std::optional<DlpackInput>> exported_;  // of those that other libraries export
  std::vector<int64_t> dimensions_;
  std::vector<InputArray> arrays_;
};

// The arrays that a caller has given for the outputs of a call.
class GivenOutputs {
 public:
  GivenOutputs(const KernelObject& kernel, const Inputs& inputs, const CallArguments& arguments) {
    std::string_view prefix = message_prefix(kernel.spec().dialect);
    std::vector<NamedArray> written;
    shapes.reserve(arguments.outputs->size());
    for (size_t i = 0; i < arguments.outputs->size(); ++i) {
      PyObject* object = (*arguments.outputs)[i].get();
      ArgumentName what(kernel, arguments, ArgumentName::Kind::kOutput, i);
      if (!PyArray_Check(object))
        throw TypeError(concat(prefix, "Expected `outputs` to be NumPy arrays but got ", kind_of(object), " for `",
                               what.text(), "`."));
      auto* array = reinterpret_cast<PyArrayObject*>(object);
      std::optional<Dtype> dtype = dtype_of_descriptor(PyArray_DESCR(array));
      if (!dtype)
        throw TypeError(concat(what, " has dtype ",
                               to_utf8(nb::str(nb::handle(reinterpret_cast<PyObject*>(PyArray_DESCR(array))))),
                               ", which no kernel can take."));
      if (!PyArray_ISWRITEABLE(array)) throw ValueError(concat(what, " is read-only."));
      if (!PyArray_ISCARRAY(array))
        throw ValueError(concat(what, " is not row-contiguous, aligned and of the machine's byte order."));
      shapes.emplace_back(PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array));
      std::vector<int64_t>& stride = strides.emplace_back(shapes.back().size());
      write_row_contiguous_strides(shapes.back(), stride);
      outputs.push_back({*dtype, shapes.back()});
      data.push_back(PyArray_DATA(array));
      results.append(nb::borrow(object));
      written.push_back({what, {PyArray_DATA(array), *dtype, shapes.back(), {}}});
    }
    for (size_t i = 0; i < written.size(); ++i) written[i].array.strides = strides[i];
    check_overlaps(prefix, inputs.named(), written);
  }

  std::vector<std::vector<int64_t>> shapes, strides;
  std::vector<OutputArray> outputs;
  std::vector<void*> data;
  nb::list results;
};

// 32 before NumPy 2.
size_t most_dimensions() { return PyArray_RUNTIME_VERSION >= NPY_2_0_API_VERSION ? 64 : 32; }

nb::object new_array(const KernelObject& kernel, const Call& call, size_t i, const std::vector<int64_t>& shape) {
  Dtype dtype = call.outputs[i].dtype;
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  auto* dimensions = const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(shape.data()));
  int rank = static_cast<int>(shape.size());
  PyObject* array;
  if (dtype == Dtype::kBFloat16) {
    PyArray_Descr* descriptor = PyArray_DescrFromTypeObject(bfloat16_type(/*import=*/true));
    array = descriptor ? PyArray_Empty(rank, dimensions, descriptor, 0) : nullptr;
  } else {
    array = PyArray_SimpleNew(rank, dimensions, type_number(dtype));
  }
  if (!array) {
    std::string_view prefix = message_prefix(kernel.spec().dialect);
    std::string output = concat("output `", kernel.output_name(call, i), "`");
    throw_numpy_error(
        concat(prefix, "There is no memory for the ", byte_count(shape, dtype), " bytes of ", output, "."),
        concat(prefix, "NumPy cannot make ", output));
  }
  return nb::steal(array);
}

class NumpyLibrary : public ArrayLibrary {
 public:
  const char* name() const override { return "numpy"; }

  bool owns(PyObject* object) const override { return PyArray_Check(object); }

  std::optional<Dtype> dtype_of(PyObject* object) const override {
    // numpy.dtype objects and NumPy's scalar types; strings and Python's types are not NumPy's alone.
    if (!PyArray_DescrCheck(object) &&
        !(PyType_Check(object) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), &PyGenericArrType_Type)))
      return std::nullopt;
    PyArray_Descr* descriptor = nullptr;
    if (!PyArray_DescrConverter(object, &descriptor)) {
      PyErr_Clear();
      return std::nullopt;
    }
    nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descriptor));
    return dtype_of_descriptor(descriptor);
  }

  PyObject* call(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments, Wanted wanted) override {
    std::string_view interface = interface_name(kernel->spec().dialect);
    if (arguments.stream)
      throw ValueError(
          concat("[", interface, "] `stream` has no meaning for NumPy arrays, whose kernels run at once."));
    Inputs inputs(*kernel, arguments);
    std::optional<GivenOutputs> given;
    if (arguments.outputs) given.emplace(*kernel, inputs, arguments);
    std::vector<OutputArray> outputs = arguments.allocated_outputs();
    if (given) outputs.insert(outputs.begin(), given->outputs.begin(), given->outputs.end());
    Call call = arguments.call_on(inputs.arrays(), outputs);
    kernel->check_sizes(call);
    for (const OutputArray& output : outputs)
      if (output.shape.size() > most_dimensions())
        throw ValueError(concat("[", interface, "] Expected the shapes in `output_shapes` to have at most ",
                                most_dimensions(), " dimensions, as NumPy's arrays have, but got ", output.shape.size(),
                                "."));
    if (wanted == Wanted::kSource || arguments.verbose) {
      kernel->check(call);
      KernelUnit unit = kernel->unit_for(call);
      if (wanted == Wanted::kSource) return nb::str(unit.text.data(), unit.text.size()).release().ptr();
      print_source(unit);
    }
    if (wanted == Wanted::kCompile) {
      KernelObject::Found found;
      {
        WithoutLock without_lock;
        found = kernel->find_or_compile(call);
      }
      return make_compiled_kernel(kernel, found);
    }
    nb::list results;
    std::vector<void*> data;
    if (given) {
      results = given->results;
      data = given->data;
    }
    for (size_t i = data.size(); i < outputs.size(); ++i) {
      nb::object array = new_array(*kernel, call, i, arguments.output_shapes[i]);
      data.push_back(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
      results.append(array);
    }
    {
      WithoutLock without_lock;
      run(*kernel, call, data);
    }
    return results.release().ptr();
  }
};

}  // namespace

std::unique_ptr<ArrayLibrary> make_numpy_library() {
  if (PyArray_API == nullptr && _import_array() < 0) nb::raise_python_error();
  return std::make_unique<NumpyLibrary>();
}

}  // namespace kiln::python
