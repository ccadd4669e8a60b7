// JAX shows its arrays by DLPack and takes memory of others by it; nothing else of it is in reach outside of what it
// compiles. It has no streams for programs, and gives memory of arrays that are gone to others in the order of a stream
// of its own. So on a GPU a call here waits until the kernel has run: only then may the inputs go and the outputs be
// read. (Waiting in the order of streams would need to keep the inputs until an event that somebody must ask for.)
//
// JAX's arrays do not change: outputs are memory of Kiln's on a GPU, and an array of NumPy's on the CPU, which become
// JAX's when they have been written.
#include "jax_library.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/array_layout.h"
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

// CUDA's default stream: of all streams, the one that any library can name.
constexpr uintptr_t kStream = 1;

// Memory on a GPU that JAX takes over.
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
        numpy_(nb::module_::import_("numpy").release()),
        array_(nb::object(jax_.attr("Array")).release()),
        tracer_(nb::object(jax_.attr("core").attr("Tracer")).release()) {}

  const char* name() const override { return "jax"; }

  bool owns(PyObject* object) const override {
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
    nb::list shape;
    for (int64_t dimension : output.shape) shape.append(dimension);
    if (!traits_of(device).has_own_memory) {
      if (output.dtype == Dtype::kBFloat16) nb::module_::import_("ml_dtypes");  // which names it
      nb::object made = numpy_.attr("empty")(nb::tuple(shape), std::string(row_of(output.dtype).name));
      data = reinterpret_cast<void*>(nb::cast<uintptr_t>(made.attr("ctypes").attr("data")));
      return made;
    }
    auto handed = std::make_unique<Handed>();
    handed->shape.assign(output.shape.begin(), output.shape.end());
    handed->strides.resize(output.shape.size());
    write_row_contiguous_strides(handed->shape, handed->strides);
    handed->memory = Context::shared().target(device).allocate(
        static_cast<size_t>(byte_count(output.shape, output.dtype)), current_stream(device));
    data = handed->memory.get();
    handed->managed.tensor = {data,
                              {kDlpackCuda, device.index},
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
    if (!traits_of(device).has_own_memory) {
      nb::object cpu = nb::object(jax_.attr("devices")("cpu"))[0];
      return jax_.attr("device_put")(made, cpu);
    }
    nb::object exporter = nb::module_::import_("kiln._libraries").attr("Handed")(made, device.index);
    return jax_.attr("dlpack").attr("from_dlpack")(exporter);
  }

  bool waits() const override { return true; }

  void* current_stream(Device) const override { return reinterpret_cast<void*>(kStream); }

  nb::object stream_scope(nb::handle, Device, std::string_view prefix) const override {
    throw ValueError(concat(prefix, "`stream` has no meaning for JAX arrays, whose streams are JAX's own."));
  }

 private:
  // Kept for ever: while the interpreter shuts down nothing can be imported any more.
  const nb::handle jax_, numpy_, array_, tracer_;
};

}  // namespace

std::unique_ptr<ArrayLibrary> make_jax_library() { return std::make_unique<JaxLibrary>(); }

}  // namespace kiln::python
