#include "dlpack_input.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/array_layout.h"
#include "core/text.h"
#include "dlpack.h"
#include "kiln/error.h"
#include "python_object.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kiln::python {
namespace {

// Memory that the CPU reads as its own: the last two are pinned for a GPU.
bool is_on_cpu(int64_t device_type) {
  return device_type == kDlpackCpu || device_type == kDlpackCudaHost || device_type == kDlpackRocmHost;
}

std::string shown_device(int64_t type, int64_t index) {
  switch (type) {
    case kDlpackCuda: return concat("cuda:", index);
    case kDlpackMetal: return concat("metal:", index);
    case kDlpackRocm: return concat("rocm:", index);
    default: return concat("of DLPack's type ", type);
  }
}

std::string shown_dtype(const DlpackDtype& dtype) {
  static constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  std::string name = dtype.code < std::size(kNames) ? concat(kNames[dtype.code], int{dtype.bits})
                                                    : concat("of DLPack's code ", int{dtype.code});
  return dtype.lanes == 1 ? name : concat(name, "x", dtype.lanes);
}

[[noreturn]] void fail_as_elsewhere(nb::handle object, const ArgumentName& name, int64_t type, int64_t index) {
  throw TypeError(concat(name, " is a ", kind_of(object), " on the device ", shown_device(type, index),
                         ", and arrays of a library that Kiln does not know are read in the CPU's memory only."));
}

// Raises a TypeError in the place of what the exporter has raised, which becomes its cause.
void refuse(nb::python_error& error, nb::handle object, const ArgumentName& name) {
  if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw nb::python_error(error);
  std::string message =
      concat(name, " is a ", kind_of(object), " that cannot be exported by DLPack: ", to_utf8(nb::str(error.value())));
  nb::raise_from(error, PyExc_TypeError, "%s", message.c_str());
}

// The capsule that the object gives. Exporters from before DLPack 1.0 have no `max_version`.
nb::object export_capsule(nb::handle object, const ArgumentName& name) {
  try {
    return object.attr("__dlpack__")("max_version"_a = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) refuse(error, object, name);
  }
  try {
    return object.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    refuse(error, object, name);
  }
  return {};
}

void check_device(nb::handle object, const ArgumentName& name) {
  nb::object pair;
  try {
    nb::object query = nb::getattr(object, "__dlpack_device__", nb::none());
    if (query.is_none()) return;  // the capsule has the device, too
    pair = query();
  } catch (nb::python_error& error) {
    refuse(error, object, name);
  }
  int64_t device[2];
  for (int i = 0; i < 2; ++i) {
    nb::object item = nb::steal(PySequence_GetItem(pair.ptr(), i));
    if (!item.is_valid() && PyErr_ExceptionMatches(PyExc_IndexError)) PyErr_Clear();
    std::optional<Index> index = item.is_valid() ? index_of(item) : std::nullopt;
    if (!index || !index->value)
      throw_type_error(concat(name, " is a ", kind_of(object), " whose `__dlpack_device__` gives no two ints."));
    device[i] = *index->value;
  }
  if (!is_on_cpu(device[0])) fail_as_elsewhere(object, name, device[0], device[1]);
}

const DlpackTensor& tensor_of(nb::handle capsule, nb::handle object, const ArgumentName& name) {
  if (PyCapsule_IsValid(capsule.ptr(), kDlpackVersionedCapsule)) {
    auto* managed =
        static_cast<DlpackManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kDlpackVersionedCapsule));
    if (managed->version.major != 1)
      throw TypeError(concat(name, " is a ", kind_of(object), " exported by DLPack ", managed->version.major,
                             ", and Kiln reads DLPack 1."));
    return managed->tensor;
  }
  if (PyCapsule_IsValid(capsule.ptr(), kDlpackCapsule))
    return static_cast<DlpackManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kDlpackCapsule))->tensor;
  throw TypeError(concat(name, " is a ", kind_of(object), " whose `__dlpack__` gives ", shown(capsule),
                         " rather than an unused capsule."));
}

}  // namespace

DlpackInput::DlpackInput(nb::handle object, const ArgumentName& name) {
  check_device(object, name);
  capsule_ = export_capsule(object, name);
  const DlpackTensor& tensor = tensor_of(capsule_, object, name);
  if (!is_on_cpu(tensor.device.type)) fail_as_elsewhere(object, name, tensor.device.type, tensor.device.index);
  std::optional<Dtype> dtype = dtype_of(tensor.dtype);
  if (!dtype)
    throw TypeError(concat(name, " is a ", kind_of(object), " of dtype ", shown_dtype(tensor.dtype),
                           ", which no kernel can take."));
  dtype_ = *dtype;
  if (tensor.ndim < 0 || std::any_of(tensor.shape, tensor.shape + tensor.ndim, [](int64_t n) { return n < 0; }))
    throw TypeError(concat(name, " is a ", kind_of(object), " whose shape has a negative number."));
  shape_.assign(tensor.shape, tensor.shape + tensor.ndim);
  strides_.resize(shape_.size());
  if (tensor.strides)
    strides_.assign(tensor.strides, tensor.strides + tensor.ndim);
  else
    write_row_contiguous_strides(shape_, strides_);
  if (tensor.data)
    data_ = address_of(tensor);
  else if (element_count(shape_) != 0)
    throw ValueError(concat(name, " has no memory: the address of its elements is null."));
  size_t alignment = dtype_ == Dtype::kComplex64 ? 4 : size_of(dtype_);
  if (reinterpret_cast<uintptr_t>(data_) % alignment != 0) copy_aligned();
}

void DlpackInput::copy_aligned() {
  auto bytes = static_cast<size_t>(byte_count(shape_, dtype_));
  copy_.resize((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  copy_row_contiguous(copy_.data());
  write_row_contiguous_strides(shape_, strides_);
  data_ = copy_.data();
}

void DlpackInput::copy_row_contiguous(void* memory) const {
  size_t size = size_of(dtype_);
  auto count = static_cast<size_t>(element_count(shape_));
  auto* out = static_cast<std::byte*>(memory);
  std::vector<int64_t> index(shape_.size());
  int64_t offset = 0;  // of the element, in elements
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out + i * size, static_cast<const std::byte*>(data_) + offset * static_cast<int64_t>(size), size);
    for (size_t d = shape_.size(); d-- > 0;) {
      offset += strides_[d];
      if (++index[d] < shape_[d]) break;
      offset -= index[d] * strides_[d];
      index[d] = 0;
    }
  }
}

InputArray DlpackInput::array() const {
  InputArray result;
  result.data = data_;
  result.dtype = dtype_;
  result.shape = shape_;
  result.strides = strides_;
  return result;
}

}  // namespace kiln::python
