// Arrays for programs without an array library: views of memory (TensorView), and outputs that own theirs (Tensor).
// They do not compute; kernels do.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kiln/dtype.h"
#include "kiln/element.h"

namespace kiln {

/// The dimensions of an array, the slowest first. An empty shape is that of one element without dimensions. The sizes
/// are signed, as `std::ssize(container)` is.
using Shape = std::vector<int64_t>;

/// For each dimension, the distance between neighbours in elements. May be negative or 0.
using Strides = std::vector<int64_t>;

class Tensor;

/// An array that a kernel reads, or a number. A view of an array has its address, not its elements: the memory must not
/// change until the call has returned. A number is stored in the view itself.
class TensorView {
 public:
  /// `data` is the address of element (0, …, 0), a multiple of the element's size (of 4 for complex64); null only for
  /// an array without elements. Without strides the array is row-contiguous, the last dimension fastest. A kernel's
  /// call throws ValueError, with the input's name, if the address, the shape or the strides are invalid.
  TensorView(const void* data, Dtype dtype, Shape shape);
  TensorView(const void* data, Dtype dtype, Shape shape, Strides strides);
  template <Element T>
  TensorView(const T* data, Shape shape) : TensorView(data, dtype_of<T>(), std::move(shape)) {}
  template <Element T>
  TensorView(const T* data, Shape shape, Strides strides)
      : TensorView(data, dtype_of<T>(), std::move(shape), std::move(strides)) {}

  /// An array of one dimension from a span, a vector or a std::array.
  template <Element T, size_t N>
  TensorView(std::span<T, N> values)
      : TensorView(values.data(), dtype_of<T>(), Shape{static_cast<int64_t>(values.size())}) {}
  template <Element T>
    requires(!std::same_as<T, bool>)
  TensorView(const std::vector<T>& values) : TensorView(std::span<const T>(values)) {}
  template <Element T, size_t N>
  TensorView(const std::array<T, N>& values) : TensorView(std::span<const T, N>(values)) {}

  /// The same with other dimensions, the last one fastest. Throws ValueError unless the number of values is that of
  /// `shape`.
  template <Element T, size_t N>
  TensorView(std::span<T, N> values, Shape shape)
      : TensorView(OfValues{}, values.data(), dtype_of<T>(), std::move(shape), values.size()) {}
  template <Element T>
    requires(!std::same_as<T, bool>)
  TensorView(const std::vector<T>& values, Shape shape) : TensorView(std::span<const T>(values), std::move(shape)) {}

  /// A number: an array without dimensions, of the dtype of its type. A double becomes a float32, like a float of
  /// Python, because Metal has no double.
  template <Element T>
    requires(!std::same_as<T, double>)
  TensorView(T number) : TensorView(OfNumber{}, dtype_of<T>(), &number, sizeof number) {}
  template <std::same_as<double> T>
  TensorView(T number) : TensorView(static_cast<float>(number)) {}

  TensorView(const Tensor& tensor);

  /// The address of element (0, …, 0); for a number an address in the view.
  const void* data() const { return is_number_ ? number_ : data_; }
  /// Whether it is a number. Its memory is the process's, also if the kernel runs on a GPU.
  bool is_number() const { return is_number_; }
  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  /// In elements, one for each dimension.
  const Strides& strides() const { return strides_; }

 private:
  struct OfNumber {};
  TensorView(OfNumber, Dtype dtype, const void* number, size_t bytes);
  struct OfValues {};
  TensorView(OfValues, const void* data, Dtype dtype, Shape shape, size_t count);

  Dtype dtype_;
  bool is_number_ = false;
  alignas(8) std::byte number_[8] = {};
  const void* data_ = nullptr;
  Shape shape_;
  Strides strides_;
};

/// An array that owns its memory: row-contiguous, at an address that is a multiple of 64. It can be moved, not copied;
/// a moved-from tensor has no elements.
class Tensor {
 public:
  static constexpr size_t kAlignment = 64;  // bytes: a cache line, and the widest register

  /// A tensor of unspecified values. Throws ValueError for a negative dimension or more than 2^63 - 1 bytes, and
  /// std::bad_alloc.
  Tensor(Dtype dtype, Shape shape);

  /// A copy of `values`, the last dimension fastest. Throws ValueError unless the number of values is that of `shape`.
  template <Element T, size_t N>
  explicit Tensor(std::span<T, N> values, Shape shape)
      : Tensor(dtype_of<T>(), std::move(shape), values.data(), values.size(), sizeof(T)) {}
  template <Element T>
    requires(!std::same_as<T, bool>)
  explicit Tensor(const std::vector<T>& values, Shape shape) : Tensor(std::span<const T>(values), std::move(shape)) {}

  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor() = default;

  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  /// The number of elements, and of bytes.
  int64_t size() const { return size_; }
  size_t bytes() const { return static_cast<size_t>(size_) * size_of(dtype_); }

  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }

  /// The elements, the last dimension fastest. Throws TypeError if T's dtype is not the tensor's. The span is valid as
  /// long as the tensor's memory, which moves with the tensor.
  template <Element T>
  std::span<T> values() {
    check_dtype(dtype_of<T>(), sizeof(T));
    return {static_cast<T*>(data()), static_cast<size_t>(size_)};
  }
  template <Element T>
  std::span<const T> values() const {
    check_dtype(dtype_of<T>(), sizeof(T));
    return {static_cast<const T*>(data()), static_cast<size_t>(size_)};
  }

  /// The only element. Throws ValueError if there are more or none, TypeError as values() does.
  template <Element T>
  T item() const {
    check_single();
    return values<T>()[0];
  }

 private:
  Tensor(Dtype dtype, Shape shape, const void* values, size_t count, size_t element_bytes);
  void check_dtype(Dtype wanted, size_t element_bytes) const;
  void check_single() const;

  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  Dtype dtype_;
  Shape shape_;
  int64_t size_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace kiln
