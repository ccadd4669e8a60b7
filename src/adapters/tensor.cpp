#include "kiln/tensor.h"

#include <cstring>
#include <new>

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

std::byte* allocate(size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{Tensor::kAlignment}));
}

}  // namespace

TensorView::TensorView(const void* data, Dtype dtype, Shape shape)
    : dtype_(dtype), data_(data), shape_(std::move(shape)), strides_(row_contiguous_strides(shape_)) {}

TensorView::TensorView(const void* data, Dtype dtype, Shape shape, Strides strides)
    : dtype_(dtype), data_(data), shape_(std::move(shape)), strides_(std::move(strides)) {}

TensorView::TensorView(Scalar, Dtype dtype, const void* number) : dtype_(dtype), is_number_(true) {
  std::memcpy(number_, number, size_of(dtype));
}

TensorView::TensorView(const Tensor& tensor) : TensorView(tensor.data(), tensor.dtype(), tensor.shape()) {}

Tensor::Tensor(Dtype dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      size_(element_count(shape_)),
      memory_(allocate(static_cast<size_t>(byte_count(shape_, dtype)))) {}

Tensor::Tensor(Dtype dtype, Shape shape, const void* values, size_t count) : Tensor(dtype, std::move(shape)) {
  if (static_cast<size_t>(size_) != count)
    throw ValueError(concat("a tensor of ", size_, " elements cannot hold ", count, " values"));
  if (count > 0) std::memcpy(data(), values, bytes());
}

void Tensor::check_dtype(Dtype wanted) const {
  if (wanted != dtype_) throw TypeError(concat("a tensor of ", name_of(dtype_), " has no values of ", name_of(wanted)));
}

void Tensor::check_single() const {
  if (size_ != 1) throw ValueError(concat("a tensor of ", size_, " elements is not a single value"));
}

void Tensor::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete(memory, std::align_val_t{kAlignment});
}

}  // namespace kiln
