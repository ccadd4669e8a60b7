// What `_core` asks of an array library. NumPy's part is in `_core` itself; MLX's is in `_mlx`, which hands over an
// object of this interface. Only C types cross the border between the two modules, because they may be built with
// different options of nanobind.
//
// A new array library is one implementation of this interface, one entry in `kiln/_libraries.py`, and one test file.
#pragma once

#include <Python.h>

#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "kiln/error.h"
#include "runtime/call.h"
#include "runtime/context.h"
#include "runtime/kernel_object.h"

namespace kiln::python {

struct ReleaseObject {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using ObjectOwner = std::unique_ptr<PyObject, ReleaseObject>;

// A call's arguments, read but for what only an array library understands: the inputs and the stream.
struct CallArguments {
  // Owned: the sequence that they came in may make its items when asked for them, and another thread may change it
  // while the call runs.
  std::vector<ObjectOwner> inputs;
  std::vector<std::vector<int64_t>> output_shapes;
  std::vector<Dtype> output_dtypes;
  // Arrays that the caller has given for the outputs, owned likewise. Shapes and dtypes may be missing then.
  std::optional<std::vector<ObjectOwner>> outputs;
  Extent3 grid{};
  Extent3 threadgroup{};
  std::vector<TemplateArgument> template_arguments;
  std::optional<Number> init_value;
  bool verbose = false;
  PyObject* stream = nullptr;            // null: None; borrowed from the caller
  std::vector<std::string> input_names;  // where the call gives them
  std::vector<std::string> output_names;

  /// The outputs of a call that allocates them.
  std::vector<OutputArray> allocated_outputs() const {
    std::vector<OutputArray> made;
    for (size_t i = 0; i < output_shapes.size(); ++i)
      made.push_back({i < output_dtypes.size() ? output_dtypes[i] : Dtype::kFloat32, output_shapes[i]});
    return made;
  }

  /// The call on arrays that the caller keeps.
  Call call_on(std::span<const InputArray> input_arrays, std::span<const OutputArray> output_arrays,
               Device device = {}) const {
    Call call{};
    call.inputs = input_arrays;
    call.outputs = output_arrays;
    call.template_arguments = template_arguments;
    call.grid = grid;
    call.threadgroup = threadgroup;
    call.init_value = init_value;
    call.input_names = input_names;
    call.output_names = output_names;
    call.device = device;
    return call;
  }

  /// How messages name an input: by its name or, where there are more inputs than names, by its place.
  std::string input_name(const KernelObject& kernel, size_t i) const {
    const std::vector<std::string>& names = kernel.spec().input_names ? *kernel.spec().input_names : input_names;
    return i < names.size() ? names[i] : std::to_string(i);
  }
  std::string output_name(const KernelObject& kernel, size_t i) const {
    const std::vector<std::string>& names = kernel.spec().output_names ? *kernel.spec().output_names : output_names;
    return i < names.size() ? names[i] : std::to_string(i);
  }
};

// Which array of a call a message is about. It becomes text where a message is written: a call that is right makes
// none.
class ArgumentName {
 public:
  enum class Kind { kInput, kOutput };
  ArgumentName(const KernelObject& kernel, const CallArguments& arguments, Kind kind, size_t index)
      : kernel_(&kernel), arguments_(&arguments), kind_(kind), index_(index) {}

  Kind kind() const { return kind_; }
  /// "x"
  std::string text() const {
    return kind_ == Kind::kInput ? arguments_->input_name(*kernel_, index_) : arguments_->output_name(*kernel_, index_);
  }
  /// "[metal_kernel] Input `x`"
  friend std::ostream& operator<<(std::ostream& out, const ArgumentName& name) {
    return out << message_prefix(name.kernel_->spec().dialect) << (name.kind_ == Kind::kInput ? "Input `" : "Output `")
               << name.text() << "`";
  }

 private:
  const KernelObject* kernel_;
  const CallArguments* arguments_;
  Kind kind_;
  size_t index_;
};

// A reason for refuse_to_write: whether such an array may be written, DLPack before version 1 does not say.
inline constexpr std::string_view kOfUnknownLibrary = "but is an array of a library that Kiln does not know";

/// Throws ValueError for an input that the kernel's options name to be written in place, and that cannot be. `why`:
/// "but is read-only".
[[noreturn]] inline void refuse_to_write(const ArgumentName& what, std::string_view why) {
  throw ValueError(concat(what, " is to be written in place, ", why, "."));
}

// What a caller wants of a call.
enum class Wanted {
  kResult,   // run it: a list of arrays
  kSource,   // the generated text: a str
  kCompile,  // compile only: a CompiledKernel
};

class ArrayLibrary {
 public:
  virtual ~ArrayLibrary() = default;

  virtual const char* name() const = 0;

  /// Whether the object is an array of this library.
  virtual bool owns(PyObject* object) const = 0;

  /// The dtype that an object of this library stands for, such as `numpy.float32`.
  virtual std::optional<Dtype> dtype_of(PyObject* object) const = 0;

  /// Does what is wanted. Returns a new reference. Throws.
  virtual PyObject* call(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments,
                         Wanted wanted) = 0;
};

/// What `.compile()` returns, made by `_core` for every library.
PyObject* make_compiled_kernel(const std::shared_ptr<KernelObject>& kernel, const KernelObject::Found& found);

/// "Generated source code for `name`: …", as MLX prints it, to sys.stdout. In `print_source.cpp`, for both modules.
void print_source(const KernelUnit& unit);

}  // namespace kiln::python
