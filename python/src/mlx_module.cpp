// `kiln._mlx`: MLX's arrays. In MLX's nanobind domain, so that its arrays are known here.
#include <mlx/device.h>
#include <mlx/ops.h>
#include <mlx/stream.h>
#include <mlx/utils.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/mlx_primitive.h"
#include "adapters/mlx_stream.h"
#include "array_library.h"
#include "core/array_layout.h"
#include "core/text.h"
#include "dlpack_input.h"
#include "exceptions.h"
#include "kiln/error.h"
#include "number_input.h"
#include "python_object.h"

namespace nb = nanobind;
namespace mx = mlx::core;

namespace kiln::python {
namespace {

// What a call's `stream` names.
mx::StreamOrDevice place_of(std::string_view interface, PyObject* object) {
  mx::StreamOrDevice wanted;
  if (object && !nb::try_cast(nb::handle(object), wanted))
    throw TypeError(concat("[", interface, "] Expected `stream` to be an MLX stream or device but got ",
                           kind_of(nb::handle(object)), "."));
  return wanted;
}

void warn(const std::string& message) {
  if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) < 0) nb::raise_python_error();
}

// Called while MLX evaluates, by a thread that may not hold the interpreter's lock.
void warn_of_input_writes(const std::string& message) {
  nb::gil_scoped_acquire lock;
  nb::object category = nb::module_::import_("kiln.errors").attr("WrittenInputWarning");
  if (PyErr_WarnEx(category.ptr(), message.c_str(), 1) < 0) throw RaisedInPython();
}

class MlxLibrary : public ArrayLibrary {
 public:
  const char* name() const override { return "mlx"; }

  bool owns(PyObject* object) const override { return nb::isinstance<mx::array>(nb::handle(object)); }

  std::optional<Dtype> dtype_of(PyObject* object) const override {
    mx::Dtype dtype = mx::float32;
    if (!nb::isinstance<mx::Dtype>(nb::handle(object)) || !nb::try_cast(nb::handle(object), dtype)) return std::nullopt;
    return to_kiln(dtype);
  }

  // `_core` may be built with another nanobind, which does not know this one's exception.
  PyObject* call(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments, Wanted wanted) override {
    try {
      return add_call(kernel, arguments, wanted);
    } catch (nb::python_error& error) {
      error.restore();
      throw RaisedInPython();
    }
  }

  // `_core` makes the object that describes compiled code: its type lives there.
  using MakeCompiled = PyObject* (*)(const std::shared_ptr<KernelObject>&, const KernelObject::Found&);
  MakeCompiled make_compiled = nullptr;

 private:
  PyObject* add_call(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments, Wanted wanted) {
    std::string_view interface = interface_name(kernel->spec().dialect);
    if (arguments.outputs)
      throw ValueError(concat("[", interface, "] `outputs` has no meaning for MLX arrays, which cannot be written."));
    std::vector<mx::array> inputs;
    for (size_t i = 0; kernel->writes_inputs() && i < arguments.inputs.size(); ++i)
      if (kernel->is_writable(arguments.input_name(*kernel, i)) && !owns(arguments.inputs[i].get()))
        refuse_to_write({*kernel, arguments, ArgumentName::Kind::kInput, i},
                        concat("but is ", kind_of(nb::handle(arguments.inputs[i].get())), " and no MLX array"));
    for (size_t i = 0; i < arguments.inputs.size(); ++i)
      inputs.push_back(
          to_array(interface, arguments.inputs[i].get(), {*kernel, arguments, ArgumentName::Kind::kInput, i}));
    std::vector<mx::Shape> shapes;
    for (const std::vector<int64_t>& shape : arguments.output_shapes) {
      mx::Shape& dimensions = shapes.emplace_back();
      for (int64_t dimension : shape) {
        // Other negative ones are refused with the rest of the call.
        using Limits = std::numeric_limits<int32_t>;
        if (dimension > Limits::max() || dimension < Limits::min())
          throw ValueError(concat("[", interface, "] Expected each dimension in `output_shapes` to be from 0 to ",
                                  Limits::max(), ", as those of MLX's arrays are, but got ", dimension, "."));
        dimensions.push_back(static_cast<int32_t>(dimension));
      }
    }
    MlxCall call{kernel,
                 arguments.template_arguments,
                 arguments.grid,
                 arguments.threadgroup,
                 arguments.init_value,
                 arguments.input_names,
                 arguments.output_names,
                 {},
                 warn_of_input_writes};
    mx::StreamOrDevice place = place_of(interface, arguments.stream);
    if (wanted == Wanted::kSource || arguments.verbose) {
      KernelUnit unit;
      with_call(call, Known::kShapes, inputs, shapes, arguments.output_dtypes, [&](const Call& view) {
        kernel->check(view);
        unit = kernel->unit_for(view);
      });
      if (wanted == Wanted::kSource) return nb::str(unit.text.data(), unit.text.size()).release().ptr();
      print_source(unit);
    }
    mx::Stream stream = stream_for(interface, place, warn);
    if (wanted == Wanted::kCompile) {
      call.device = device_of(stream);
      KernelObject::Found found;
      {
        WithoutLock without_lock;
        with_call(call, Known::kShapes, inputs, shapes, arguments.output_dtypes, [&](const Call& view) {
          kernel->check(view);
          found = kernel->find_or_compile(view);
        });
      }
      return make_compiled(kernel, found);
    }
    std::vector<mx::array> outputs = add_to_graph(std::move(call), inputs, shapes, arguments.output_dtypes, stream);
    return nb::cast(std::move(outputs)).release().ptr();
  }

  static mx::array to_array(std::string_view interface, PyObject* object, const ArgumentName& name) {
    nb::handle value(object);
    if (nb::isinstance<mx::array>(value)) return nb::cast<mx::array>(value);
    auto expected_array = [&] {
      return concat("[", interface, "] Expected `inputs` to be MLX arrays or numbers but got ", kind_of(value),
                    " for `", name.text(), "`.");
    };
    // As in MLX's own kernels a float64 becomes a float32.
    if (std::optional<NumberInput> number = read_number_input(object, name, /*keeps_float64=*/false))
      return to_array(*number);
    if (PyErr_Occurred()) throw_type_error(expected_array());
    bool is_array = is_foreign_array(value);
    if (is_numpy_scalar(object))
      throw TypeError(concat("[", interface, "] MLX does not take input `", name.text(), "`, which is ", kind_of(value),
                             dtype_shown(object), "."));
    // What MLX's own kernels take: arrays of NumPy and others in the CPU's memory, with MLX's rules for their dtypes.
    Memory memory = memory_of(object);
    if (memory == Memory::kWithoutStrides || (memory == Memory::kNone && !is_array)) throw_type_error(expected_array());
    // MLX takes these without a look at their address, and neither those with negative strides nor those whose type
    // does not say that they are arrays.
    if (is_array && memory == Memory::kNone && kind_of(value) != "numpy.ndarray")
      return to_array(DlpackInput(value, name));
    try {
      return nb::cast<mx::array>(nb::type<mx::array>()(value));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
      std::string message = concat("[", interface, "] MLX does not take input `", name.text(), "`, which is ",
                                   kind_of(value), dtype_shown(object));
      // Of a dtype that it lacks, MLX says nothing but that a cast is bad.
      if (error.matches(PyExc_RuntimeError)) nb::raise_from(error, PyExc_TypeError, "%s.", message.c_str());
      nb::raise_from(error, PyExc_TypeError, "%s: %s", message.c_str(), to_utf8(nb::str(error.value())).c_str());
    }
  }

  // Of float64 MLX makes float32, unless it is asked otherwise.
  static mx::array to_array(const DlpackInput& input) {
    mx::Shape shape;
    for (int64_t dimension : input.shape()) {
      if (dimension > std::numeric_limits<int32_t>::max())
        throw ValueError(concat("MLX has no arrays with a dimension of ", dimension));
      shape.push_back(static_cast<int32_t>(dimension));
    }
    std::vector<uint64_t> elements(static_cast<size_t>(byte_count(input.shape(), input.dtype()) + 7) / 8);
    input.copy_row_contiguous(elements.data());
    auto of = [&]<typename T>(T) { return mx::array(reinterpret_cast<const T*>(elements.data()), shape); };
    switch (input.dtype()) {
      case Dtype::kBool: return of(bool{});
      case Dtype::kUInt8: return of(uint8_t{});
      case Dtype::kUInt16: return of(uint16_t{});
      case Dtype::kUInt32: return of(uint32_t{});
      case Dtype::kUInt64: return of(uint64_t{});
      case Dtype::kInt8: return of(int8_t{});
      case Dtype::kInt16: return of(int16_t{});
      case Dtype::kInt32: return of(int32_t{});
      case Dtype::kInt64: return of(int64_t{});
      case Dtype::kFloat16: return of(mx::float16_t{});
      case Dtype::kBFloat16: return of(mx::bfloat16_t{});
      case Dtype::kFloat32: return of(float{});
      case Dtype::kFloat64: return mx::array(reinterpret_cast<const double*>(elements.data()), shape, mx::float32);
      case Dtype::kComplex64: return of(mx::complex64_t{});
    }
    throw InternalError("an array has no dtype");
  }

  static mx::array to_array(const NumberInput& number) {
    auto as = [&]<typename T>(T value) {
      std::memcpy(&value, number.bytes, sizeof value);
      return mx::array(value);
    };
    switch (number.dtype) {
      case Dtype::kBool: return as(bool{});
      case Dtype::kUInt8: return as(uint8_t{});
      case Dtype::kUInt16: return as(uint16_t{});
      case Dtype::kUInt32: return as(uint32_t{});
      case Dtype::kUInt64: return as(uint64_t{});
      case Dtype::kInt8: return as(int8_t{});
      case Dtype::kInt16: return as(int16_t{});
      case Dtype::kInt32: return as(int32_t{});
      case Dtype::kInt64: return as(int64_t{});
      case Dtype::kFloat16: return as(mx::float16_t{});
      case Dtype::kBFloat16: return as(mx::bfloat16_t{});
      case Dtype::kFloat32: return as(float{});
      case Dtype::kFloat64: return as(double{});
      case Dtype::kComplex64: return as(mx::complex64_t{});
    }
    throw InternalError("a number has no dtype");
  }

  enum class Memory { kNone, kWithStrides, kWithoutStrides };

  // Whether the object shows its elements in memory, and says how they lie there. nanobind, by which MLX reads them,
  // believes that every object does which is asked to; NumPy's dates and the arrays of ctypes do not.
  static Memory memory_of(PyObject* object) {
    Py_buffer view;
    if (!PyObject_CheckBuffer(object)) return Memory::kNone;
    if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) < 0) {
      PyErr_Clear();
      return Memory::kNone;
    }
    bool has_strides = view.ndim == 0 || (view.shape && view.strides);
    PyBuffer_Release(&view);
    return has_strides ? Memory::kWithStrides : Memory::kWithoutStrides;
  }

  // " of dtype int4"; nothing where the object has none.
  static std::string dtype_shown(PyObject* object) {
    nb::object dtype = nb::steal(PyObject_GetAttrString(object, "dtype"));
    nb::object text = nb::steal(dtype.is_valid() ? PyObject_Str(dtype.ptr()) : nullptr);
    if (text.is_valid()) return concat(" of dtype ", to_utf8(text));
    PyErr_Clear();
    return {};
  }
};

// References that are no longer needed. The arrays that have them are destroyed by any thread, at a time when it must
// not wait for the interpreter's lock.
class ReleasedLater {
 public:
  void add(nb::object object) {
    std::lock_guard lock(mutex_);
    objects_.push_back(object.release().ptr());
  }

  /// The interpreter's lock is held.
  void release() {
    std::vector<PyObject*> objects;
    {
      std::lock_guard lock(mutex_);
      objects.swap(objects_);
    }
    for (PyObject* object : objects) Py_DECREF(object);
  }

 private:
  std::mutex mutex_;
  std::vector<PyObject*> objects_;
};

// Never destroyed: arrays may outlive the interpreter.
ReleasedLater& released_later() {
  static auto* instance = new ReleasedLater;
  return *instance;
}

// The rules of a `kiln.Function`, which `kiln/_functions_mlx.py` applies. MLX calls them on the thread that transforms
// or evaluates, which may not hold the interpreter's lock.
class PythonRules : public MlxRules {
 public:
  explicit PythonRules(nb::object function) : function_(std::move(function)) {}
  PythonRules(const PythonRules&) = delete;
  PythonRules& operator=(const PythonRules&) = delete;
  ~PythonRules() override { released_later().add(std::move(function_)); }

  Arrays vjp(const Arrays& primals, const Arrays& cotangents, const std::vector<int>& argnums,
             const Arrays& outputs) override {
    return apply<Arrays>("apply_vjp", primals, cotangents, argnums, outputs);
  }
  Arrays jvp(const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) override {
    return apply<Arrays>("apply_jvp", primals, tangents, argnums);
  }
  std::pair<Arrays, std::vector<int>> vmap(const Arrays& inputs, const std::vector<int>& axes) override {
    auto [outputs, out_axes] = apply<std::tuple<Arrays, std::vector<int>>>("apply_vmap", inputs, axes);
    return {std::move(outputs), std::move(out_axes)};
  }
  std::vector<mx::Shape> output_shapes(const Arrays& inputs) override {
    std::vector<mx::Shape> shapes;
    for (const std::vector<int>& shape : apply<std::vector<std::vector<int>>>("output_shapes", inputs))
      shapes.emplace_back(shape.begin(), shape.end());
    return shapes;
  }
  Extents extents(const Arrays& inputs) override {
    using Templates = std::vector<std::tuple<std::string, std::variant<bool, int32_t, std::string>>>;
    auto [grid, threadgroup, templates, numbers] =
        apply<std::tuple<Extent3, Extent3, Templates, std::vector<int64_t>>>("extents", inputs);
    Extents extents{grid, threadgroup, {}, std::move(numbers)};
    for (const auto& [name, value] : templates) {
      TemplateArgument& argument = extents.template_arguments.emplace_back(name, false);
      if (auto* dtype = std::get_if<std::string>(&value))
        argument.value = dtype_from_name(*dtype).value();
      else if (auto* number = std::get_if<int32_t>(&value))
        argument.value = *number;
      else
        argument.value = std::get<bool>(value);
    }
    return extents;
  }
  bool is_equivalent(const MlxRules& other) const override {
    const auto* rules = dynamic_cast<const PythonRules*>(&other);
    return rules && rules->function_.is(function_);
  }

 private:
  template <typename Result, typename... Arguments>
  Result apply(const char* name, const Arguments&... arguments) {
    nb::gil_scoped_acquire lock;
    try {
      nb::object rule = nb::module_::import_("kiln._functions_mlx").attr(name);
      return nb::cast<Result>(rule(function_, nb::cast(arguments)...));
    } catch (nb::python_error& error) {
      error.restore();
      throw RaisedInPython();
    }
  }

  nb::object function_;
};

}  // namespace

NB_MODULE(_mlx, m) {
  // Who holds a kernel when the interpreter ends has done nothing wrong.
  nb::set_leak_warnings(false);
  register_exceptions();
  m.def("library", [](const nb::capsule& make_compiled) {
    // Lives as long as the process, like the module.
    static MlxLibrary library;
    void* make = PyCapsule_GetPointer(make_compiled.ptr(), "kiln.make_compiled_kernel");
    if (!make) nb::raise_python_error();
    library.make_compiled = reinterpret_cast<MlxLibrary::MakeCompiled>(make);
    return nb::capsule(static_cast<ArrayLibrary*>(&library), "kiln.ArrayLibrary");
  });
  // Gives an array that a kernel's call has just made, with all others of the call, a function's rules.
  m.def("attach_rules", [](const mx::array& output, nb::object function) {
    released_later().release();
    attach_rules(output, std::make_shared<PythonRules>(std::move(function)));
  });
  m.def("has_gpu", [] { return mx::is_available(mx::Device::gpu); });
}

}  // namespace kiln::python
