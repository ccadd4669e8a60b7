#include "kiln/tensor.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/array_layout.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

// Of a shape that no array can have there are no strides; the call that the view is given to says so.
Strides row_contiguous_strides(const Shape& shape) {
  Strides strides(shape.size());
  try {
    static_cast<void>(element_count(shape));
  } catch (const ValueError&) {
    return strides;
  }
  write_row_contiguous_strides(shape, strides);
  return strides;
}

// A program may have said of a type of its own that it is a dtype's element.
void check_size(Dtype dtype, size_t element_bytes) {
  if (element_bytes != size_of(dtype))
    throw TypeError(concat("a type of ", element_bytes, " bytes is no element of ", name_of(dtype)));
}

[[noreturn]] void fail_on_count(const Shape& shape, size_t count) {
  std::vector<std::string> sizes;
  for (int64_t size : shape) sizes.push_back(std::to_string(size));
  throw ValueError(concat("the shape (", join(sizes, ", "), sizes.size() == 1 ? ",) has " : ") has ",
                          element_count(shape), element_count(shape) == 1 ? " element, but " : " elements, but ", count,
                          count == 1 ? " value was given" : " values were given"));
}

// The type of C++ that programs use for a dtype's elements; empty if each has its own.
std::string_view c_type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool: return "bool";
    case Dtype::kUInt8: return "uint8_t";
    case Dtype::kUInt16: return "uint16_t";
    case Dtype::kUInt32: return "uint32_t";
    case Dtype::kUInt64: return "uint64_t";
    case Dtype::kInt8: return "int8_t";
    case Dtype::kInt16: return "int16_t";
    case Dtype::kInt32: return "int32_t";
    case Dtype::kInt64: return "int64_t";
    case Dtype::kFloat32: return "float";
    case Dtype::kFloat64: return "double";
    default: return "";
  }
}

std::byte* allocate(size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{Tensor::kAlignment}));
}

}  // namespace

TensorView::TensorView(const void* data, Dtype dtype, Shape shape)
    : dtype_(dtype), data_(data), shape_(std::move(shape)), strides_(row_contiguous_strides(shape_)) {}

TensorView::TensorView(const void* data, Dtype dtype, Shape shape, Strides strides)
    : dtype_(dtype), data_(data), shape_(std::move(shape)), strides_(std::move(strides)) {}

TensorView::TensorView(OfValues, const void* data, Dtype dtype, Shape shape, size_t count)
    : TensorView(data, dtype, std::move(shape)) {
  if (static_cast<size_t>(element_count(shape_)) != count) fail_on_count(shape_, count);
}

TensorView::TensorView(OfNumber, Dtype dtype, const void* number, size_t bytes) : dtype_(dtype), is_number_(true) {
  check_size(dtype, bytes);
  std::memcpy(number_, number, bytes);
}

TensorView::TensorView(const Tensor& tensor) : TensorView(tensor.data(), tensor.dtype(), tensor.shape()) {}

Tensor::Tensor(Dtype dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      size_(element_count(shape_)),
      memory_(allocate(static_cast<size_t>(byte_count(shape_, dtype)))) {}

Tensor::Tensor(Dtype dtype, Shape shape, const void* values, size_t count, size_t element_bytes)
    : Tensor(dtype, std::move(shape)) {
  check_size(dtype, element_bytes);
  if (static_cast<size_t>(size_) != count) fail_on_count(shape_, count);
  if (count > 0) std::memcpy(data(), values, bytes());
}

Tensor::Tensor(Tensor&& other) noexcept
    : dtype_(other.dtype_),
      shape_(std::move(other.shape_)),
      size_(std::exchange(other.size_, 0)),
      memory_(std::move(other.memory_)) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  dtype_ = other.dtype_;
  shape_ = std::move(other.shape_);
  size_ = std::exchange(other.size_, 0);
  memory_ = std::move(other.memory_);
  return *this;
}

void Tensor::check_dtype(Dtype wanted, size_t element_bytes) const {
  check_size(wanted, element_bytes);
  if (wanted == dtype_) return;
  const std::string_view type = c_type_of(dtype_);
  throw TypeError(concat("a tensor of ", name_of(dtype_), " has no values of ", name_of(wanted),
                         type.empty() ? "" : ": the type of its elements is ", type));
}

void Tensor::check_single() const {
  if (size_ != 1) throw ValueError(concat("a tensor of ", size_, " elements is not a single value"));
}

void Tensor::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete(memory, std::align_val_t{kAlignment});
}

}  // namespace kiln
