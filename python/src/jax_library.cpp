// JAX shows its arrays by DLPack and takes memory of others by it; those on the CPU also by Python's buffer protocol,
// in a fifth of the time. It has no streams for programs, and gives memory of arrays that are gone to others in the
// order of a stream of its own. So on a GPU a call here waits until the kernel has run: only then may the inputs go and
// the outputs be read. (Waiting in the order of streams would need to keep the inputs until an event that somebody must
// ask for.)
//
// JAX's arrays do not change: outputs are memory of Kiln's, which becomes JAX's when it has been written. On the CPU
// most of a small call was spent in `jax.device_put` (30 microseconds) and, in its place, would be in
// `jax.dlpack.from_dlpack` (19), of which the function that makes the array takes 3 (kiln/_libraries.py). A cached
// program of `jax.jit` that returns its argument takes 5, and has to be compiled for each shape.
#include "jax_library.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/dtype_table.h"
#include "core/out_of_memory.h"
#include "core/text.h"
#include "device_library.h"
#include "dlpack.h"
#include "kiln/error.h"
#include "python_object.h"
#include "stable_interface.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kiln::python {
namespace {

// CUDA's default stream: of all streams, the one that any library can name.
constexpr uintptr_t kStream = 1;

// Memory that JAX takes over.
struct Handed {
  DlpackManagedTensor managed{};
  std::vector<int64_t> shape, strides;
  TargetMemory memory;
};

DlpackDtype as_dlpack(Dtype dtype) {
  auto bits = static_cast<uint8_t>(8 * size_of(dtype));
  if (dtype == Dtype::kBFloat16) return {4, bits, 1};
  switch (row_of(dtype).kind) {
    case DtypeKind::kBool: return {6, bits, 1};
    case DtypeKind::kUnsigned: return {1, bits, 1};
    case DtypeKind::kSigned: return {0, bits, 1};
    case DtypeKind::kFloat: return {2, bits, 1};
    case DtypeKind::kComplex: return {5, bits, 1};
  }
  return {};
}

class JaxLibrary : public DeviceLibrary {
 public:
  JaxLibrary()
      : jax_(nb::module_::import_("jax").release()),
        array_(nb::object(jax_.attr("Array")).release()),
        tracer_(nb::object(jax_.attr("core").attr("Tracer")).release()),
        on_one_device_(nb::object(jax_.attr("sharding").attr("SingleDeviceSharding")).release()),
        hand_over_(nb::object(nb::module_::import_("kiln._libraries").attr("hand_to_jax")).release()),
        zero_(nb::int_(0).release()) {}

  const char* name() const override { return "jax"; }

  bool owns(PyObject* object) const override {
    if (Py_TYPE(object) == read_type_) return true;
    int is_array = PyObject_IsInstance(object, array_.ptr());
    if (is_array < 0) nb::raise_python_error();
    return is_array != 0;
  }

  // jax.numpy.float32 is a class that has NumPy's dtype.
  std::optional<Dtype> dtype_of(PyObject* object) const override {
    nb::object module = nb::steal(PyObject_GetAttrString(object, "__module__"));
    nb::object dtype = nb::steal(PyObject_GetAttrString(object, "dtype"));
    PyErr_Clear();
    if (!PyType_Check(object) || !module.is_valid() || !dtype.is_valid() || !PyUnicode_Check(module.ptr()) ||
        !nb::cast<std::string>(module).starts_with("jax"))
      return std::nullopt;
    return dtype_from_name(to_utf8(nb::str(dtype)));
  }

 protected:
  const char* title() const override { return "JAX arrays"; }

  std::string show(Device device) const override { return framework_name(device); }

  // `object` becomes the capsule, which keeps the memory.
  void read(nb::object& object, const ArgumentName& what, ArrayView& view) const override {
    if (read_buffer(object, view)) return;
    if (nb::isinstance(object, tracer_))
      throw TypeError(concat(what, " is a value in a function that JAX traces (jit, grad, vmap), and has no elements ",
                             "yet: `kernel.function(…)` makes a function that JAX can trace."));
    if (nb::cast<bool>(object.attr("is_deleted")()))
      throw ValueError(concat(what, " is a JAX array that was deleted or donated, and has no elements any more."));
    nb::object dtype = object.attr("dtype");
    std::optional<Dtype> known = dtype_from_name(to_utf8(nb::str(dtype)));
    if (!known) throw TypeError(concat(what, " has dtype ", to_utf8(nb::str(dtype)), ", which no kernel can take."));
    if (nb::len(nb::object(object.attr("devices")())) != 1)
      throw TypeError(concat(what, " lies on several devices, and a kernel runs on one."));
    // Other devices than these two have no DLPack.
    nb::object place = object.attr("__dlpack_device__")();
    bool on_cpu = nb::cast<int>(nb::int_(place[0])) == kDlpackCpu;
    has_buffers_ = on_cpu;
    if (!on_cpu && nb::cast<int>(nb::int_(place[0])) != kDlpackCuda)
      throw TypeError(concat(what, " is neither on the CPU nor on an NVIDIA GPU."));
    if (on_cpu) object.attr("block_until_ready")();
    nb::object capsule = on_cpu ? object.attr("__dlpack__")() : object.attr("__dlpack__")("stream"_a = kStream);
    auto* managed = static_cast<DlpackManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kDlpackCapsule));
    if (!managed) nb::raise_python_error();
    const DlpackTensor& tensor = managed->tensor;
    view.data = address_of(tensor);
    view.dtype = *known;
    view.device = on_cpu ? Device{} : as_device(tensor.device).value();
    view.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
    if (tensor.strides) {
      view.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
    } else {
      view.strides.resize(view.shape.size());
      write_row_contiguous_strides(view.shape, view.strides);
    }
    object = std::move(capsule);
  }

  void check_output(std::string_view prefix) const override {
    throw ValueError(concat(prefix, "`outputs` has no meaning for JAX arrays, which cannot be written."));
  }

  // Of inputs; outputs are refused before.
  void check_writable(nb::handle, const ArgumentName& what) const override {
    refuse_to_write(what, "and JAX's arrays cannot be written");
  }

  // Never asked for: what DLPack shows of JAX's arrays is row-contiguous.
  nb::object copy_row_contiguous(nb::handle object) const override { return nb::borrow(object); }

  nb::object make(const OutputArray& output, Device device, nb::handle /*model*/, void*& data) const override {
    DtypeKind kind = row_of(output.dtype).kind;
    if (size_of(output.dtype) == 8 && kind != DtypeKind::kComplex &&
        !nb::cast<bool>(jax_.attr("config").attr("jax_enable_x64")))
      throw ValueError(concat("JAX has arrays of ", row_of(output.dtype).name,
                              " only after jax.config.update(\"jax_enable_x64\", True)"));
    auto handed = std::make_unique<Handed>();
    handed->shape.assign(output.shape.begin(), output.shape.end());
    handed->strides.resize(output.shape.size());
    write_row_contiguous_strides(handed->shape, handed->strides);
    const bool on_cpu = !traits_of(device).has_own_memory;
    const int64_t bytes = byte_count(output.shape, output.dtype);
    try {
      // On the CPU aligned to 64 bytes, as XLA demands of memory that it does not copy.
      handed->memory = Context::shared().target(device).allocate(static_cast<size_t>(bytes),
                                                                 on_cpu ? nullptr : current_stream(device));
    } catch (const std::bad_alloc&) {
      throw OutOfMemory(concat("There is no memory for the ", bytes, " bytes of an output on ", show(device), "."));
    }
    data = handed->memory.get();
    handed->managed.tensor = {data,
                              {on_cpu ? kDlpackCpu : kDlpackCuda, device.index},
                              static_cast<int32_t>(handed->shape.size()),
                              as_dlpack(output.dtype),
                              handed->shape.data(),
                              handed->strides.data(),
                              0};
    handed->managed.context = handed.get();
    handed->managed.deleter = [](DlpackManagedTensor* managed) { delete static_cast<Handed*>(managed->context); };
    nb::object capsule = nb::steal(PyCapsule_New(&handed->managed, kDlpackCapsule, [](PyObject* object) {
      // Who has taken the memory has renamed the capsule.
      if (!PyCapsule_IsValid(object, kDlpackCapsule)) return;
      auto* managed = static_cast<DlpackManagedTensor*>(PyCapsule_GetPointer(object, kDlpackCapsule));
      managed->deleter(managed);
    }));
    if (!capsule.is_valid()) nb::raise_python_error();
    static_cast<void>(handed.release());
    return capsule;
  }

  nb::object finish(nb::object made, Device device) const override {
    if (traits_of(device).has_own_memory) return hand_over_(made, device.index);
    return hand_over_(made);
  }

  bool waits() const override { return true; }

  void* current_stream(Device) const override { return reinterpret_cast<void*>(kStream); }

  nb::object stream_scope(nb::handle, Device, std::string_view prefix) const override {
    throw ValueError(concat(prefix, "`stream` has no meaning for JAX arrays, whose streams are JAX's own."));
  }

 private:
  /// The same of an array on the CPU by Python's buffer protocol, which waits for its elements with the interpreter's
  /// lock released, and keeps them if the array is deleted meanwhile. False where JAX shows none: on GPUs, of bfloat16,
  /// of what read() refuses.
  bool read_buffer(nb::object& object, ArrayView& view) const {
    if (!has_buffers_) return false;
    nb::object dtype = get(object, "dtype"), sharding = get(object, "sharding");
    if (!dtype.is_valid() || !sharding.is_valid() || !sharding.type().is(on_one_device_)) return false;
    std::optional<Dtype> known = known_dtype(dtype);
    if (!known || *known == Dtype::kBFloat16) return false;
    // JAX does not expect that another thread deletes an array while its memory is asked for, and the process would
    // end. The array's part of a device is an object of its own.
    nb::object part = get(object, "addressable_data");
    if (part.is_valid()) part = nb::steal(PyObject_CallOneArg(part.ptr(), zero_.ptr()));
    nb::object memory = nb::steal(part.is_valid() ? PyMemoryView_FromObject(part.ptr()) : nullptr);
    Py_buffer buffer;
    if (!memory.is_valid() || PyObject_GetBuffer(memory.ptr(), &buffer, PyBUF_STRIDED_RO) != 0) {
      PyErr_Clear();
      return false;
    }
    const int64_t bytes = size_of(*known);
    const bool is_known = buffer.itemsize == bytes;
    if (is_known) {
      view.data = buffer.buf;
      view.dtype = *known;
      view.device = {};
      view.shape.assign(buffer.shape, buffer.shape + buffer.ndim);
      view.strides.resize(view.shape.size());
      for (size_t d = 0; d < view.strides.size(); ++d) view.strides[d] = buffer.strides[d] / bytes;
    }
    PyBuffer_Release(&buffer);
    if (!is_known) return false;
    read_type_ = Py_TYPE(object.ptr());
    object = std::move(memory);
    return true;
  }

  // Not valid, and no error, where there is none.
  static nb::object get(nb::handle object, const char* name) {
    nb::object value = nb::steal(PyObject_GetAttrString(object.ptr(), name));
    if (!value.is_valid()) PyErr_Clear();
    return value;
  }

  // Of NumPy, which has one object for each. Asking for its name takes longer than all else of an array.
  std::optional<Dtype> known_dtype(nb::handle dtype) const {
    for (const auto& [object, known] : dtypes_)
      if (object.is(dtype)) return known;
    std::optional<Dtype> found = dtype_from_name(to_utf8(nb::str(dtype)));
    if (found && dtypes_.size() < kDtypes.size()) dtypes_.emplace_back(nb::object(nb::borrow(dtype)).release(), *found);
    return found;
  }

  // Kept for ever: while the interpreter shuts down nothing can be imported any more.
  const nb::handle jax_, array_, tracer_, on_one_device_, hand_over_, zero_;
  // Guarded by the interpreter's lock.
  mutable std::vector<std::pair<nb::handle, Dtype>> dtypes_;
  mutable PyTypeObject* read_type_ = nullptr;  // of arrays that were read; never a tracer's
  mutable bool has_buffers_ = true;            // whether the last array was one on the CPU
};

}  // namespace

std::unique_ptr<ArrayLibrary> make_jax_library() { return std::make_unique<JaxLibrary>(); }

}  // namespace kiln::python
