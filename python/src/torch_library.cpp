// PyTorch is reached through Python objects and, where it has them (since 2.10), through the functions that its
// tensors' type offers by DLPack's exchange interface: they read a tensor and the current stream without making
// objects. Nothing of PyTorch is linked, so one build serves all its versions.
//
// Outputs are made by `torch.empty`: their memory is the caching allocator's, like that of any tensor. (Memory handed
// over by DLPack would be unknown to it, and `record_stream` would do nothing.)
#include "torch_library.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <utility>

#include "adapters/torch_interface.h"
#include "core/device_traits.h"
#include "core/dtype_table.h"
#include "core/text.h"
#include "device_library.h"
#include "dlpack.h"
#include "kiln/error.h"
#include "python_object.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kiln::python {
namespace {

// Kept for ever: while the interpreter shuts down nothing can be imported any more.
nb::handle keep(nb::object object) { return object.release(); }

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

// A question that tensors answer with True or False: a method without arguments, or an attribute. It is asked of each
// tensor of a launch, so what Python's type has for it is called itself, where it is written in C.
class Question {
 public:
  Question() = default;
  Question(nb::handle type, const char* name)
      : name_(interned(name)), type_(reinterpret_cast<PyTypeObject*>(type.ptr())) {
#ifndef Py_LIMITED_API
    PyObject* found = keep(type.attr(name)).ptr();
    if (Py_TYPE(found) == &PyMethodDescr_Type) {
      const PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(found)->d_method;
      if (method->ml_flags == METH_NOARGS) method_ = method->ml_meth;
    } else if (Py_TYPE(found) == &PyGetSetDescr_Type) {
      attribute_ = reinterpret_cast<PyGetSetDescrObject*>(found)->d_getset;
      if (!attribute_->get) attribute_ = nullptr;
    }
#endif
  }

  bool operator()(nb::handle tensor) const {
    nb::object answer;
    if (Py_TYPE(tensor.ptr()) == type_ && (method_ || attribute_)) {
      answer = nb::steal(method_ ? method_(tensor.ptr(), nullptr) : attribute_->get(tensor.ptr(), attribute_->closure));
      if (!answer.is_valid()) nb::raise_python_error();
    } else {
      answer = nb::object(tensor.attr(nb::handle(name_)));
      if (PyCallable_Check(answer.ptr())) answer = answer();
    }
    return answer.is(Py_True);
  }

 private:
  PyObject* name_ = nullptr;
  PyTypeObject* type_ = nullptr;
  PyCFunction method_ = nullptr;
  const PyGetSetDef* attribute_ = nullptr;
};

bool has_elements(const DlpackTensor& tensor) {
  return std::find(tensor.shape, tensor.shape + tensor.ndim, 0) == tensor.shape + tensor.ndim;
}

class TorchLibrary : public DeviceLibrary {
 public:
  TorchLibrary() {
    nb::module_ torch = nb::module_::import_("torch");
    torch_ = keep(torch);
    tensor_ = keep(torch.attr("Tensor"));
    is_conj_ = Question(tensor_, "is_conj");
    is_neg_ = Question(tensor_, "is_neg");
    requires_grad_ = Question(tensor_, "requires_grad");
    is_inference_ = Question(tensor_, "is_inference");
    is_grad_enabled_ = keep(torch.attr("is_grad_enabled"));
    forward_ad_ = keep(nb::module_::import_("torch.autograd.forward_ad"));
    nb::object internals = torch.attr("_C");
    internals_ = keep(internals);
    tracing_state_ = keep(internals.attr("_get_tracing_state"));
    dispatch_modes_ = keep(nb::getattr(internals, "_len_torch_dispatch_stack", nb::none()));
    includes_key_ = keep(nb::getattr(internals, "_dispatch_tls_is_dispatch_key_included", nb::none()));
    pre_dispatch_key_ = keep(nb::getattr(internals.attr("DispatchKey"), "PreDispatch", nb::none()));
    transform_level_ = keep(internals.attr("_functorch").attr("maybe_current_level"));
    function_modes_ = keep(nb::getattr(internals, "_len_torch_function_stack", nb::none()));
    function_mode_ = keep(nb::getattr(internals, "_get_function_stack_at", nb::none()));
    device_context_ = keep(nb::module_::import_("torch.utils._device").attr("DeviceContext"));
    profiler_ = keep(nb::module_::import_("torch.autograd.profiler"));
    increment_version_ = keep(nb::getattr(internals, "_increment_version", nb::none()));
    parameter_ = keep(torch.attr("nn").attr("Parameter"));
    empty_ = keep(torch.attr("empty"));
    empty_like_ = keep(torch.attr("empty_like"));
    device_ = keep(torch.attr("device"));
    cpu_ = keep(torch.attr("device")("cpu"));
    for (const DtypeRow& row : kDtypes) {
      // uint16, uint32 and uint64 are younger than the others.
      nb::object dtype = nb::getattr(torch, std::string(row.name).c_str(), nb::none());
      dtypes_[static_cast<size_t>(row.dtype)] = dtype.is_none() ? nb::handle() : keep(dtype);
    }
    nb::object capsule = nb::getattr(tensor_, "__dlpack_c_exchange_api__", nb::none());
    if (PyCapsule_IsValid(capsule.ptr(), kDlpackExchangeCapsule))
      exchange_ = static_cast<const DlpackExchange*>(PyCapsule_GetPointer(capsule.ptr(), kDlpackExchangeCapsule));
    if (exchange_ && (exchange_->version.major != 1 || !exchange_->tensor_from_object)) exchange_ = nullptr;
  }

  const char* name() const override { return "torch"; }

  bool owns(PyObject* object) const override {
    return Py_TYPE(object) == type() || PyType_IsSubtype(Py_TYPE(object), type());
  }

  std::optional<Dtype> dtype_of(PyObject* object) const override {
    for (size_t i = 0; i < dtypes_.size(); ++i)
      if (dtypes_[i].ptr() == object) return kDtypes[i].dtype;
    return std::nullopt;
  }

 protected:
  const char* title() const override { return "PyTorch tensors"; }

  std::string show(Device device) const override { return framework_name(device); }

  void read(nb::object& object, const ArgumentName& what, ArrayView& view) const override {
    // Classes derived from tensors may hold anything.
    if (Py_TYPE(object.ptr()) != type() && object.type().ptr() != parameter_.ptr()) check_subclass(object, what);
    if (what.kind() == ArgumentName::Kind::kInput) check_gradient(object, what);
    DlpackTensor tensor;
    if (!exchange_ || exchange_->tensor_from_object(object.ptr(), &tensor) != 0) {
      PyErr_Clear();
      check_memory(object, what);
      check_form(object, what);
      return read_attributes(object, what, view);
    }
    if (!tensor.data && has_elements(tensor)) {
      if (nb::cast<bool>(object.attr("_is_zerotensor")())) return read_resolved(object, "clone", what, view);
      check_memory(object, what);
      fail_as_freed(what);
    }
    std::optional<Dtype> dtype = python::dtype_of(tensor.dtype);
    std::optional<Device> device = as_device(tensor.device);
    if (!dtype || !device) {
      check_form(object, what);
      fail_as_no_dtype(object, what);
    }
    // A conjugate is a mark beside the memory; taking the real part of one may leave a sign.
    if (*dtype == Dtype::kComplex64 && is_conj_(object)) return read_resolved(object, "resolve_conj", what, view);
    if (row_of(*dtype).kind == DtypeKind::kFloat || row_of(*dtype).kind == DtypeKind::kComplex)
      if (is_neg_(object)) return read_resolved(object, "resolve_neg", what, view);
    view.data = address_of(tensor);
    view.dtype = *dtype;
    view.device = *device;
    view.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
    view.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  }

  bool read_plain(nb::handle object, bool is_output, bool on_gpu, PlainArray& array) const override {
    if (!exchange_ || (Py_TYPE(object.ptr()) != type() && (on_gpu || object.type().ptr() != parameter_.ptr())))
      return false;
    DlpackTensor tensor;
    if (exchange_->tensor_from_object(object.ptr(), &tensor) != 0) {
      PyErr_Clear();
      return false;
    }
    std::optional<Dtype> dtype = python::dtype_of(tensor.dtype);
    std::optional<Device> device = as_device(tensor.device);
    if (!dtype || *dtype == Dtype::kComplex64 || !device || (on_gpu && tensor.device.type != kDlpackCuda) ||
        tensor.ndim > PlainArray::kMostDimensions || (!tensor.data && has_elements(tensor)))
      return false;
    array.data = address_of(tensor);
    array.dtype = *dtype;
    array.device = *device;
    array.dimensions = tensor.ndim;
    std::copy_n(tensor.shape, tensor.ndim, array.shape);
    std::copy_n(tensor.strides, tensor.ndim, array.strides);
    if (row_of(*dtype).kind == DtypeKind::kFloat && is_neg_(object)) return false;
    if (is_output && is_inference_(object)) return false;
    return !requires_grad_(object) || (!is_output && !records_gradients());
  }

  bool may_record() const override {
    return !call(tracing_state_).is_none() || forward_level() >= 0 || is_traced_before_dispatch() ||
           (!dispatch_modes_.is_none() && nb::cast<int>(call(dispatch_modes_)) > 0);
  }

  bool may_see_operators() const override {
    static PyObject* const name = interned("_is_profiler_enabled");
    if (may_record() || !call(transform_level_).is_none()) return true;
    if (has_function_modes()) return true;
    // Also an observer of torch.profiler's, of which no variable tells.
    if (interface_ && interface_->has_record_callbacks) return interface_->has_record_callbacks();
    nb::object is_profiled = nb::steal(PyObject_GetAttr(profiler_.ptr(), name));
    PyErr_Clear();
    return is_profiled.is_valid() && !is_profiled.is(Py_False);
  }

  void* begin_range(const KernelObject& kernel) const override {
    if (!interface_ || !interface_->has_record_callbacks || !interface_->has_record_callbacks()) return nullptr;
    return new TorchRange(interface_, kernel.spec().name);
  }

  void end_range(void* range) const override { delete static_cast<TorchRange*>(range); }

  std::string recorder() const override {
    constexpr std::string_view kRemedy =
        ", which would miss the kernel: call it outside of what is traced, or make a function with "
        "`kernel.function(…)`.";
    if (!call(tracing_state_).is_none()) return concat(" is traced by torch.jit.trace", kRemedy);
    if (is_mode_active("PROXY")) return concat(" is traced by torch.fx (make_fx, torch.export)", kRemedy);
    if (is_mode_active("FUNCTIONAL")) return concat(" is traced by torch.compile or torch.export", kRemedy);
    if (is_mode_active("FAKE"))
      return " is read within FakeTensorMode, where new tensors have no elements: call the kernel outside of it, or "
             "make a function with `kernel.function(…)`.";
    if (is_traced_before_dispatch()) return concat(" is traced by torch.fx (make_fx, torch.export)", kRemedy);
    return {};
  }

  void check_writable(nb::handle object, const ArgumentName& what) const override {
    if (is_inference_(object) && !nb::cast<bool>(torch_.attr("is_inference_mode_enabled")()))
      throw ValueError(concat(what,
                              " is an inference tensor, which PyTorch writes within torch.inference_mode() only; ",
                              "`.clone()` gives a tensor that can be written."));
    if (forward_level() >= 0 && has_tangent(object)) fail_as_dual(what);
    if (requires_grad_(object) && records_gradients())
      throw ValueError(concat(what,
                              " requires a gradient, which a kernel does not know of; `.detach()` gives a tensor ",
                              "that can be written."));
  }

  void mark_written(std::span<const nb::object> arrays) const override {
    nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(arrays.size())));
    for (size_t i = 0; i < arrays.size(); ++i)
      PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i), nb::object(arrays[i]).release().ptr());
    if (!increment_version_.is_none() && nb::steal(PyObject_CallOneArg(increment_version_.ptr(), all.ptr())).is_valid())
      return;
    PyErr_Clear();  // older versions take a single tensor, or have no such function
    // A view shares its tensor's counter, and writing no elements raises it.
    for (const nb::object& array : arrays)
      array.attr("detach")().attr("view")(-1).attr("narrow")(0, 0, 0).attr("zero_")();
  }

  nb::object copy_row_contiguous(nb::handle object) const override {
    return object.attr("detach")().attr("contiguous")();
  }

  nb::object make(const OutputArray& output, Device device, nb::handle model, void*& data) const override {
    // `empty_like` has fewer arguments to read, which is a microsecond.
    nb::object made = model.is_valid() && Py_TYPE(model.ptr()) == type()
                          ? nb::steal(PyObject_CallOneArg(empty_like_.ptr(), model.ptr()))
                          : make_by_shape(output, device);
    if (!made.is_valid()) nb::raise_python_error();
    DlpackTensor tensor;
    bool is_shown = exchange_ && exchange_->tensor_from_object(made.ptr(), &tensor) == 0;
    if (!is_shown || (!tensor.data && has_elements(tensor))) {
      PyErr_Clear();
      // In a function that torch.func transforms, a new tensor is one of its values, around a tensor with memory.
      nb::object functorch = nb::getattr(internals_, "_functorch", nb::none());
      while (is_a(functorch, "is_functorch_wrapped_tensor", made)) made = functorch.attr("get_unwrapped")(made);
      is_shown = exchange_ && exchange_->tensor_from_object(made.ptr(), &tensor) == 0;
    }
    if (is_shown) {
      data = address_of(tensor);
    } else {
      PyErr_Clear();
      data = reinterpret_cast<void*>(nb::cast<uintptr_t>(made.attr("data_ptr")()));
    }
    return made;
  }

  Device default_device() const override {
    nb::object get = nb::getattr(torch_, "get_default_device", nb::none());  // since 2.3
    return get.is_none() ? Device{} : device_named(get(), "PyTorch's default device");
  }

  void* current_stream(Device device) const override {
    void* stream = nullptr;
    if (exchange_) {
      if (exchange_->current_stream(kDlpackCuda, device.index, &stream) != 0) nb::raise_python_error();
      return stream;
    }
    return reinterpret_cast<void*>(
        nb::cast<uintptr_t>(torch_.attr("_C").attr("_cuda_getCurrentRawStream")(device.index)));
  }

  nb::object stream_scope(nb::handle stream, Device device, std::string_view prefix) const override {
    nb::object cuda = torch_.attr("cuda");
    nb::object own = nb::borrow(stream);
    if (PyLong_Check(stream.ptr()) && !PyBool_Check(stream.ptr())) {
      own = cuda.attr("ExternalStream")(stream, "device"_a = device_object(device));
    } else if (!nb::isinstance(stream, cuda.attr("Stream"))) {
      throw TypeError(
          concat(prefix, "Expected `stream` to be a torch.cuda.Stream or an int but got ", kind_of(stream), "."));
    }
    int index = nb::cast<int>(own.attr("device_index"));
    if (index != device.index)
      throw ValueError(concat(prefix, "Expected `stream` to be one of ", show(device),
                              ", where the arrays are, but got one of cuda:", index, "."));
    return cuda.attr("stream")(own);
  }

  void mark_used(nb::handle array, Device device) const override {
    array.attr("record_stream")(torch_.attr("cuda").attr("current_stream")(device.index));
  }

 private:
  // Not valid where PyTorch has raised an error.
  nb::object make_by_shape(const OutputArray& output, Device device) const {
    static PyObject* const names = nb::make_tuple("dtype", "device").release().ptr();
    nb::handle dtype = dtypes_[static_cast<size_t>(output.dtype)];
    if (!dtype.is_valid())
      throw UnsupportedError(concat("this version of PyTorch has no dtype ", row_of(output.dtype).name));
    nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(output.shape.size())));
    for (size_t d = 0; d < output.shape.size(); ++d)
      PyTuple_SET_ITEM(shape.ptr(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(output.shape[d]));
    PyObject* arguments[] = {shape.ptr(), dtype.ptr(), device_object(device).ptr()};
    return nb::steal(PyObject_Vectorcall(empty_.ptr(), arguments, 1, names));
  }

  static nb::object call(nb::handle function) {
    nb::object result = nb::steal(PyObject_CallNoArgs(function.ptr()));
    if (!result.is_valid()) nb::raise_python_error();
    return result;
  }

  // What a function of a module says of a tensor; false where the module has no such function.
  static bool is_a(nb::handle module, const char* function, nb::handle tensor) {
    nb::object found = nb::getattr(module, function, nb::none());
    return !found.is_none() && nb::cast<bool>(found(tensor));
  }

  // But those of torch.set_default_device, which are for operations that make tensors.
  bool has_function_modes() const {
    if (function_modes_.is_none()) return false;
    for (int i = nb::cast<int>(call(function_modes_)); i-- > 0;) {
      if (function_mode_.is_none()) return true;
      nb::object mode = nb::steal(PyObject_CallOneArg(function_mode_.ptr(), nb::int_(i).ptr()));
      if (!mode.is_valid()) nb::raise_python_error();
      if (mode.type().ptr() != device_context_.ptr()) return true;
    }
    return false;
  }

  bool is_mode_active(const char* key) const {
    nb::object keys = nb::getattr(internals_, "_TorchDispatchModeKey", nb::none());
    nb::object mode = nb::getattr(keys, key, nb::none());
    nb::object get = nb::getattr(internals_, "_get_dispatch_mode", nb::none());
    return !mode.is_none() && !get.is_none() && !get(mode).is_none();
  }

  // Whether make_fx(…, pre_dispatch=True) records: its mode is in none of the stacks while an operator runs.
  bool is_traced_before_dispatch() const {
    if (includes_key_.is_none() || pre_dispatch_key_.is_none()) return false;
    nb::object included = nb::steal(PyObject_CallOneArg(includes_key_.ptr(), pre_dispatch_key_.ptr()));
    PyErr_Clear();
    return included.is(Py_True);
  }

  // Of forward-mode differentiation; -1 outside of it.
  int64_t forward_level() const {
    static PyObject* const name = interned("_current_level");
    nb::object level = nb::steal(PyObject_GetAttr(forward_ad_.ptr(), name));
    int64_t value = level.is_valid() && PyLong_Check(level.ptr()) ? PyLong_AsLongLong(level.ptr()) : -1;
    PyErr_Clear();
    return value;
  }

  bool has_tangent(nb::handle tensor) const {
    return !nb::object(forward_ad_.attr("unpack_dual")(tensor).attr("tangent")).is_none();
  }

  // Whether PyTorch's own operations would record a gradient here. Inside an operator's implementation they do not.
  bool records_gradients() const {
    if (!call(is_grad_enabled_).is(Py_True)) return false;
    nb::object is_excluded = nb::getattr(internals_, "_dispatch_tls_is_dispatch_key_excluded", nb::none());
    nb::object keys = nb::getattr(internals_, "DispatchKey", nb::none());
    nb::object key = nb::getattr(keys, "AutogradCPU", nb::none());
    return is_excluded.is_none() || key.is_none() || !nb::cast<bool>(is_excluded(key));
  }

  // A gradient ends at a kernel, and nothing says so later.
  void check_gradient(nb::handle object, const ArgumentName& what) const {
    if (forward_level() >= 0 && !is_wrapped(object) && has_tangent(object)) fail_as_dual(what);
    if (!requires_grad_(object) || !records_gradients() || is_wrapped(object)) return;
    throw TypeError(
        concat(what, " requires a gradient, which would end at the kernel: `kernel.function(…)` makes a function ",
               "with a gradient; or pass `", what.text(), ".detach()`, or call the kernel within torch.no_grad() ",
               "or in the forward of a torch.autograd.Function."));
  }

  [[noreturn]] void fail_as_dual(const ArgumentName& what) const {
    throw TypeError(
        concat(what, " has a tangent (torch.autograd.forward_ad), which would end at the kernel: ",
               "`kernel.function(…)` makes a function with tangents; or pass the `primal` that `unpack_dual(",
               what.text(), ")` gives."));
  }

  [[noreturn]] void fail_as_freed(const ArgumentName& what) const {
    throw TypeError(concat(what,
                           " has no memory: the address of its elements is null, as after its storage was "
                           "resized or freed."));
  }

  bool is_wrapped(nb::handle object) const {
    return is_a(nb::getattr(internals_, "_functorch", nb::none()), "is_functorch_wrapped_tensor", object);
  }

  // Refuses by name what has no memory of its own.
  void check_memory(nb::handle object, const ArgumentName& what) const {
    nb::object functorch = nb::getattr(internals_, "_functorch", nb::none());
    if (is_wrapped(object)) {
      const char* transform = is_a(functorch, "is_batchedtensor", object)      ? "vmap"
                              : is_a(functorch, "is_functionaltensor", object) ? "functionalize"
                                                                               : "grad, vjp, jvp";
      throw TypeError(
          concat(what, " is a value in a function that torch.func transforms (", transform,
                 "), and has no memory of its own: `kernel.function(…)` makes a function that can be transformed; or ",
                 "call the kernel outside of that function."));
    }
    if (is_a(torch_, "_is_functional_tensor", object))
      throw TypeError(concat(what,
                             " is a functional tensor, as torch.compile makes them, and has no memory of its own: ",
                             "`kernel.function(…)` makes a function that can be traced; or call the kernel outside of ",
                             "what is traced."));
    bool is_plain = Py_TYPE(object.ptr()) == type() || object.type().ptr() == parameter_.ptr();
    nb::object layout = object.attr("layout");
    if (!is_plain && layout.is(torch_.attr("strided")) && !nb::cast<bool>(object.attr("is_nested")) &&
        !nb::cast<bool>(object.attr("is_meta")))
      throw TypeError(concat(what, " is a ", kind_of(object), ", a tensor without memory of its own, and kernels take ",
                             "plain tensors."));
  }

  PyTypeObject* type() const { return reinterpret_cast<PyTypeObject*>(tensor_.ptr()); }

  void check_subclass(nb::handle object, const ArgumentName& what) const {
    nb::object elements = nb::getattr(torch_.attr("_subclasses"), "FakeTensor", nb::none());
    bool is_fake = !elements.is_none() && nb::isinstance(object, elements);
    std::string kind = kind_of(object);
    if (is_fake || kind.find("FunctionalTensor") != std::string::npos || kind.find("torch._higher_order") == 0)
      throw TypeError(concat(what, " is a stand-in for a tensor (", kind, "), as torch.compile makes them, and has no ",
                             "elements; `kernel.function(…)` makes a function that can be compiled, and "
                             "torch.compiler.disable keeps a function that calls kernels out of what is ",
                             "compiled."));
  }

  // Refuses by name what no kernel can read.
  void check_form(nb::handle object, const ArgumentName& what) const {
    if (nb::cast<bool>(object.attr("is_nested")))
      throw TypeError(
          concat(what, " is a nested tensor, and kernels take dense ones: `.to_padded_tensor(0)` gives one."));
    nb::object layout = object.attr("layout");
    if (!layout.is(torch_.attr("strided")))
      throw TypeError(concat(what, " has layout ", to_utf8(nb::str(layout)),
                             ", and kernels take dense tensors: `.to_dense()` gives one."));
    if (nb::cast<bool>(object.attr("is_quantized")))
      throw TypeError(concat(what, " is quantised, and kernels take plain tensors: `.dequantize()` gives one."));
    device_named(object.attr("device"), what);
  }

  template <typename Name>
  Device device_named(nb::handle device, const Name& what) const {
    std::string kind = nb::cast<std::string>(device.attr("type"));
    if (kind == "cpu") return {};
    if (kind == "cuda" && torch_.attr("version").attr("hip").is_none()) {
      nb::object index = device.attr("index");
      return {DeviceKind::kNvidia,
              nb::cast<int>(index.is_none() ? torch_.attr("cuda").attr("current_device")() : index)};
    }
    if (kind == "meta") throw TypeError(concat(what, " is on the device meta, and has no elements."));
    throw TypeError(concat(what, " is on the device ", to_utf8(nb::str(device)),
                           ", and kernels run on the CPU and on NVIDIA's GPUs."));
  }

  [[noreturn]] void fail_as_no_dtype(nb::handle object, const ArgumentName& what) const {
    throw TypeError(
        concat(what, " has dtype ", to_utf8(nb::str(nb::object(object.attr("dtype")))), ", which no kernel can take."));
  }

  void read_resolved(nb::object& object, const char* method, const ArgumentName& what, ArrayView& view) const {
    object = object.attr("detach")().attr(method)();
    read(object, what, view);
  }

  // As any version of PyTorch can be read.
  void read_attributes(nb::object& object, const ArgumentName& what, ArrayView& view) const {
    if (is_conj_(object)) object = object.attr("detach")().attr("resolve_conj")();
    if (is_neg_(object)) object = object.attr("detach")().attr("resolve_neg")();
    std::optional<Dtype> dtype = dtype_of(nb::object(object.attr("dtype")).ptr());
    if (!dtype) fail_as_no_dtype(object, what);
    view.dtype = *dtype;
    view.device = device_named(object.attr("device"), what);
    view.data = reinterpret_cast<void*>(nb::cast<uintptr_t>(object.attr("data_ptr")()));
    view.shape.clear();
    view.strides.clear();
    for (nb::handle dimension : object.attr("shape")) view.shape.push_back(nb::cast<int64_t>(dimension));
    for (nb::handle stride : object.attr("stride")()) view.strides.push_back(nb::cast<int64_t>(stride));
  }

  // Kept for each GPU that was used.
  nb::handle device_object(Device device) const {
    if (!traits_of(device).has_own_memory) return cpu_;
    auto index = static_cast<size_t>(device.index);
    if (gpus_.size() <= index) gpus_.resize(index + 1);
    if (!gpus_[index].is_valid()) gpus_[index] = keep(device_("cuda", device.index));
    return gpus_[index];
  }

  Question is_conj_, is_neg_, requires_grad_, is_inference_;
  nb::handle transform_level_, function_modes_, function_mode_, device_context_, profiler_;
  nb::handle is_grad_enabled_, forward_ad_, internals_, tracing_state_, dispatch_modes_, increment_version_;
  nb::handle includes_key_, pre_dispatch_key_;
  nb::handle torch_, tensor_, parameter_, empty_, empty_like_, device_, cpu_;
  std::array<nb::handle, kDtypes.size()> dtypes_;
  mutable std::vector<nb::handle> gpus_;
  const DlpackExchange* exchange_ = nullptr;
  const TorchInterface* const interface_ = torch_interface();  // null before PyTorch 2.10
};

}  // namespace

std::unique_ptr<DeviceLibrary> make_torch_library() { return std::make_unique<TorchLibrary>(); }

}  // namespace kiln::python
