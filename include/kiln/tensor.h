// Arrays for programs without an array library: memory that a program has (TensorView), memory that a kernel has
// written (Tensor). Nothing here computes; that is what kernels are for.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kiln/dtype.h"

namespace kiln {

/// The dimensions of an array, the slowest first. Empty: an array of one element without dimensions.
using Shape = std::vector<int64_t>;

/// For each dimension, how many elements lie between neighbours. May be negative or 0.
using Strides = std::vector<int64_t>;

/// The dtype whose elements a C++ type holds. Specialise it for a type of your own, such as a half:
///
///     template <>
///     struct kiln::DtypeOf<my::half> {
///       static constexpr kiln::Dtype value = kiln::Dtype::kFloat16;
///     };
template <typename T>
struct DtypeOf;

// clang-format off
template <> struct DtypeOf<bool> { static constexpr Dtype value = Dtype::kBool; };
template <> struct DtypeOf<uint8_t> { static constexpr Dtype value = Dtype::kUInt8; };
template <> struct DtypeOf<uint16_t> { static constexpr Dtype value = Dtype::kUInt16; };
template <> struct DtypeOf<uint32_t> { static constexpr Dtype value = Dtype::kUInt32; };
template <> struct DtypeOf<uint64_t> { static constexpr Dtype value = Dtype::kUInt64; };
template <> struct DtypeOf<int8_t> { static constexpr Dtype value = Dtype::kInt8; };
template <> struct DtypeOf<int16_t> { static constexpr Dtype value = Dtype::kInt16; };
template <> struct DtypeOf<int32_t> { static constexpr Dtype value = Dtype::kInt32; };
template <> struct DtypeOf<int64_t> { static constexpr Dtype value = Dtype::kInt64; };
template <> struct DtypeOf<float> { static constexpr Dtype value = Dtype::kFloat32; };
template <> struct DtypeOf<double> { static constexpr Dtype value = Dtype::kFloat64; };
template <> struct DtypeOf<std::complex<float>> { static constexpr Dtype value = Dtype::kComplex64; };
// clang-format on

/// A type that is an element of arrays.
template <typename T>
concept Element = requires {
  { DtypeOf<std::remove_cv_t<T>>::value } -> std::convertible_to<Dtype>;
};

class Tensor;

/// An array that a kernel reads, or a number. Of an array it holds the address, not the elements: the memory must stay
/// as it is until the call that it is given to has returned. A number is held in the view itself.
class TensorView {
 public:
  /// `data` is the address of element (0, …, 0), a multiple of the element's size; null only where there are no
  /// elements. Without strides the elements follow one another, the last dimension fastest. A kernel's call throws
  /// ValueError where the address, the shape or the strides cannot be an array's.
  TensorView(const void* data, Dtype dtype, Shape shape);
  TensorView(const void* data, Dtype dtype, Shape shape, Strides strides);
  template <Element T>
  TensorView(const T* data, Shape shape) : TensorView(data, DtypeOf<T>::value, std::move(shape)) {}
  template <Element T>
  TensorView(const T* data, Shape shape, Strides strides)
      : TensorView(data, DtypeOf<T>::value, std::move(shape), std::move(strides)) {}

  /// One dimension: a vector, an array, a span.
  template <Element T, size_t N>
  TensorView(std::span<T, N> values)
      : TensorView(values.data(), DtypeOf<std::remove_cv_t<T>>::value, Shape{static_cast<int64_t>(values.size())}) {}
  template <Element T>
    requires(!std::same_as<T, bool>)
  TensorView(const std::vector<T>& values) : TensorView(std::span<const T>(values)) {}

  /// A number: an array without dimensions, of the dtype of its type. A double is a float32 here, as a float of
  /// Python's is: Metal has no double.
  template <Element T>
  TensorView(T number) : TensorView(Scalar{}, DtypeOf<T>::value, &number) {}
  TensorView(double number) : TensorView(static_cast<float>(number)) {}

  TensorView(const Tensor& tensor);

  /// The address of element (0, …, 0). A number's is within the view.
  const void* data() const { return is_number_ ? number_ : data_; }
  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  /// In elements; as many as dimensions.
  const Strides& strides() const { return strides_; }

 private:
  struct Scalar {};
  TensorView(Scalar, Dtype dtype, const void* number);

  Dtype dtype_;
  bool is_number_ = false;
  alignas(8) std::byte number_[8] = {};
  const void* data_ = nullptr;
  Shape shape_;
  Strides strides_;
};

/// An array that owns its memory: row-contiguous, at an address that is a multiple of 64. Moved, not copied.
class Tensor {
 public:
  static constexpr size_t kAlignment = 64;  // bytes: a cache line, and the widest register

  /// With elements of unspecified values. Throws ValueError for a negative dimension or more than 2^63 - 1 bytes,
  /// std::bad_alloc.
  Tensor(Dtype dtype, Shape shape);

  /// With a copy of `values`, the last dimension fastest. Throws ValueError unless there are as many as `shape` has
  /// elements.
  template <Element T>
  Tensor(std::span<const T> values, Shape shape)
      : Tensor(DtypeOf<T>::value, std::move(shape), values.data(), values.size()) {}
  template <Element T>
    requires(!std::same_as<T, bool>)
  Tensor(const std::vector<T>& values, Shape shape) : Tensor(std::span<const T>(values), std::move(shape)) {}

  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  /// How many elements there are, and bytes.
  int64_t size() const { return size_; }
  size_t bytes() const { return static_cast<size_t>(size_) * size_of(dtype_); }

  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }

  /// The elements, the last dimension fastest. Throws TypeError where T's dtype is not the tensor's. They live as long
  /// as the tensor, moved or not.
  template <Element T>
  std::span<T> values() {
    check_dtype(DtypeOf<T>::value);
    return {static_cast<T*>(data()), static_cast<size_t>(size_)};
  }
  template <Element T>
  std::span<const T> values() const {
    check_dtype(DtypeOf<T>::value);
    return {static_cast<const T*>(data()), static_cast<size_t>(size_)};
  }

  /// The only element. Throws ValueError where there are more or none, TypeError as values() does.
  template <Element T>
  T item() const {
    check_single();
    return values<T>()[0];
  }

 private:
  Tensor(Dtype dtype, Shape shape, const void* values, size_t count);
  void check_dtype(Dtype wanted) const;
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
