// `kiln._mlx`: MLX's arrays. In MLX's nanobind domain, so that its arrays are known here.
#include <mlx/device.h>
#include <mlx/ops.h>
#include <mlx/stream.h>
#include <mlx/utils.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <string>

#include "adapters/mlx_primitive.h"
#include "adapters/mlx_stream.h"
#include "array_library.h"
#include "core/text.h"
#include "exceptions.h"
#include "kiln/error.h"
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

class MlxLibrary : public ArrayLibrary {
 public:
  const char* name() const override { return "mlx"; }

  bool owns(PyObject* object) const override { return nb::isinstance<mx::array>(nb::handle(object)); }

  std::optional<Dtype> dtype_of(PyObject* object) const override {
    mx::Dtype dtype = mx::float32;
    if (!nb::isinstance<mx::Dtype>(nb::handle(object)) || !nb::try_cast(nb::handle(object), dtype)) return std::nullopt;
    return to_kiln(dtype);
  }

  PyObject* call(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments, Wanted wanted) override {
    std::string_view interface = interface_name(kernel->spec().dialect);
    if (arguments.outputs)
      throw ValueError(concat("[", interface, "] `outputs` has no meaning for MLX arrays, which cannot be written."));
    std::vector<mx::array> inputs;
    for (size_t i = 0; i < arguments.inputs.size(); ++i)
      inputs.push_back(
          to_array(interface, arguments.inputs[i].get(), [&] { return arguments.input_name(*kernel, i); }));
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
                 {}};
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
    std::vector<mx::array> outputs =
        add_to_graph(std::move(call), std::move(inputs), shapes, arguments.output_dtypes, stream);
    return nb::cast(std::move(outputs)).release().ptr();
  }

  // `_core` makes the object that describes compiled code: its type lives there.
  using MakeCompiled = PyObject* (*)(const std::shared_ptr<KernelObject>&, const KernelObject::Found&);
  MakeCompiled make_compiled = nullptr;

 private:
  template <typename NameOf>
  static mx::array to_array(std::string_view interface, PyObject* object, const NameOf& name_of) {
    nb::handle value(object);
    if (nb::isinstance<mx::array>(value)) return nb::cast<mx::array>(value);
    if (PyBool_Check(object)) return mx::array(object == Py_True);
    if (PyFloat_Check(object)) return mx::array(static_cast<float>(PyFloat_AS_DOUBLE(object)));
    if (PyComplex_Check(object))
      return mx::array(mx::complex64_t(static_cast<float>(PyComplex_RealAsDouble(object)),
                                       static_cast<float>(PyComplex_ImagAsDouble(object))));
    auto expected_array = [&] {
      return concat("[", interface, "] Expected `inputs` to be MLX arrays or numbers but got ", kind_of(value),
                    " for `", name_of(), "`.");
    };
    bool is_array = is_foreign_array(value);
    if (!is_array && PyIndex_Check(object)) {
      std::optional<Index> index = index_of(value);
      if (!index) throw_type_error(expected_array());
      if (!index->value)
        throw ValueError(
            concat("[", interface, "] Input `", name_of(), "` does not fit into int64: ", index->text, "."));
      int64_t integer = *index->value;
      if (integer >= INT32_MIN && integer <= INT32_MAX) return mx::array(static_cast<int32_t>(integer));
      return mx::array(integer, mx::int64);
    }
    // What MLX's own kernels take: arrays of NumPy and others in the CPU's memory, with MLX's rules for their dtypes.
    Memory memory = memory_of(object);
    if (memory == Memory::kWithoutStrides || (memory == Memory::kNone && !is_array)) throw_type_error(expected_array());
    try {
      return nb::cast<mx::array>(nb::type<mx::array>()(value));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
      std::string message = concat("[", interface, "] MLX does not take input `", name_of(), "`, which is ",
                                   kind_of(value), dtype_shown(object));
      // Of a dtype that it lacks, MLX says nothing but that a cast is bad.
      if (error.matches(PyExc_RuntimeError)) nb::raise_from(error, PyExc_TypeError, "%s.", message.c_str());
      nb::raise_from(error, PyExc_TypeError, "%s: %s", message.c_str(), to_utf8(nb::str(error.value())).c_str());
    }
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

}  // namespace

NB_MODULE(_mlx, m) {
  // Who holds a kernel when the interpreter ends has done nothing wrong.
  nb::set_leak_warnings(false);
  register_exceptions();
  m.def("library", [](nb::capsule make_compiled) {
    // Lives as long as the process, like the module.
    static MlxLibrary library;
    library.make_compiled = reinterpret_cast<MlxLibrary::MakeCompiled>(make_compiled.data("kiln.make_compiled_kernel"));
    return nb::capsule(static_cast<ArrayLibrary*>(&library), "kiln.ArrayLibrary");
  });
  m.def("has_gpu", [] { return mx::is_available(mx::Device::gpu); });
}

}  // namespace kiln::python
