#include "kiln/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "kiln/error.h"
#include "sanitizers.h"

// A program's own types of elements, one of them with a wrong size.
struct OwnHalf {
  uint16_t bits;
};
template <>
struct kiln::DtypeOf<OwnHalf> {
  static constexpr kiln::Dtype value = kiln::Dtype::kFloat16;
};
struct OwnByte {
  uint8_t bits;
};
template <>
struct kiln::DtypeOf<OwnByte> {
  static constexpr kiln::Dtype value = kiln::Dtype::kFloat32;
};

namespace kiln {
namespace {

template <typename Error, typename Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(TensorView, OfMemoryHasTheStridesOfARowContiguousArray) {
  float values[24] = {};
  TensorView view(values, {2, 3, 4});
  EXPECT_EQ(view.data(), values);
  EXPECT_EQ(view.dtype(), Dtype::kFloat32);
  EXPECT_EQ(view.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(view.strides(), (Strides{12, 4, 1}));
  EXPECT_EQ(TensorView(values + 23, {24}, {-1}).strides(), Strides{-1});
}

TEST(TensorView, OfAShapeThatNoArrayHasIsRefusedOnlyByACall) {
  EXPECT_EQ(TensorView(nullptr, Dtype::kInt8, {-1, 2}).shape(), (Shape{-1, 2}));
  EXPECT_EQ(TensorView(nullptr, Dtype::kInt8, {int64_t{1} << 62, 8}).strides(), (Strides{0, 0}));
}

TEST(TensorView, OfAContainerHasOneDimension) {
  std::vector<int16_t> vector = {1, 2, 3};
  TensorView of_vector = vector;
  EXPECT_EQ(of_vector.data(), vector.data());
  EXPECT_EQ(of_vector.shape(), Shape{3});
  EXPECT_EQ(of_vector.dtype(), Dtype::kInt16);
  const std::array<double, 2> array = {1, 2};
  TensorView of_span = std::span(array);
  EXPECT_EQ(of_span.shape(), Shape{2});
  EXPECT_EQ(of_span.dtype(), Dtype::kFloat64);
  EXPECT_EQ(TensorView(std::vector<OwnHalf>(5)).dtype(), Dtype::kFloat16);
  EXPECT_EQ(TensorView(array).shape(), Shape{2});
  EXPECT_EQ(TensorView(std::vector<long long>(5)).dtype(), Dtype::kInt64);
  EXPECT_EQ(TensorView(std::vector<unsigned long>(5)).dtype(), Dtype::kUInt64);
}

TEST(TensorView, OfAContainerTakesOtherDimensions) {
  std::vector<int16_t> vector = {1, 2, 3, 4, 5, 6};
  TensorView view(vector, {2, 3});
  EXPECT_EQ(view.data(), vector.data());
  EXPECT_EQ(view.strides(), (Strides{3, 1}));
  EXPECT_EQ(TensorView(std::span(vector), {3, 2}).shape(), (Shape{3, 2}));
  EXPECT_EQ(message_of<ValueError>([&] { TensorView(vector, {2, 2}); }),
            "the shape (2, 2) has 4 elements, but 6 values were given");
}

TEST(TensorView, IsOfNothingThatIsNoElement) {
  static_assert(!std::is_constructible_v<TensorView, char>);
  static_assert(!std::is_constructible_v<TensorView, long double>);
  static_assert(!std::is_constructible_v<TensorView, Dtype>);
  static_assert(!std::is_constructible_v<TensorView, const char*>);
  static_assert(!std::is_constructible_v<TensorView, std::vector<bool>>);
  // A view of a tensor that is made for it would outlive the tensor.
  static_assert(!std::is_convertible_v<std::pair<std::vector<float>, Shape>, Tensor>);
}

TEST(TensorView, OfANumberHoldsTheNumber) {
  TensorView view = 3;
  EXPECT_EQ(view.dtype(), Dtype::kInt32);
  EXPECT_TRUE(view.shape().empty());
  EXPECT_EQ(*static_cast<const int32_t*>(view.data()), 3);
  TensorView copy = view;
  view = 4;
  EXPECT_EQ(*static_cast<const int32_t*>(copy.data()), 3);
  EXPECT_NE(copy.data(), view.data());
  EXPECT_EQ(TensorView(true).dtype(), Dtype::kBool);
  EXPECT_EQ(TensorView(uint8_t{1}).dtype(), Dtype::kUInt8);
  EXPECT_EQ(TensorView(int64_t{1}).dtype(), Dtype::kInt64);
  EXPECT_EQ(TensorView(std::complex<float>(1, 2)).dtype(), Dtype::kComplex64);
  // Metal has no double.
  EXPECT_EQ(TensorView(2.5).dtype(), Dtype::kFloat32);
  EXPECT_EQ(*static_cast<const float*>(TensorView(2.5).data()), 2.5f);
}

TEST(Tensor, OwnsAlignedMemory) {
  for (int64_t size : {1, 3, 1000}) {
    Tensor tensor(Dtype::kInt8, {size});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % Tensor::kAlignment, 0u);
    EXPECT_EQ(tensor.size(), size);
    EXPECT_EQ(tensor.bytes(), static_cast<size_t>(size));
  }
  static_assert(!std::is_copy_constructible_v<Tensor>);
  static_assert(std::is_nothrow_move_constructible_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor>);
}

TEST(Tensor, HoldsACopyOfItsValues) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Tensor tensor(values, {2, 3});
  values[0] = 9;
  EXPECT_EQ(tensor.values<float>()[0], 1);
  EXPECT_EQ(tensor.values<float>().size(), 6u);
  const void* before = tensor.data();
  Tensor moved = std::move(tensor);
  EXPECT_EQ(moved.data(), before);
  EXPECT_EQ(tensor.size(), 0);
  EXPECT_TRUE(tensor.values<float>().empty());
  EXPECT_EQ(moved.shape(), (Shape{2, 3}));
  EXPECT_EQ(TensorView(moved).data(), before);
  EXPECT_EQ(TensorView(moved).strides(), (Strides{3, 1}));
  EXPECT_EQ(Tensor(std::vector<int32_t>{7}, {}).item<int32_t>(), 7);
  EXPECT_EQ(Tensor(std::vector<int32_t>{}, {0, 4}).size(), 0);
}

TEST(Tensor, SaysWhatItCannotBe) {
  EXPECT_EQ(message_of<ValueError>([] { Tensor(Dtype::kInt8, {2, -1}); }), "array dimension -1 is negative");
  EXPECT_EQ(message_of<ValueError>([] { Tensor(Dtype::kInt64, {int64_t{1} << 61}); }),
            "array has more than 2^63 - 1 bytes");
  EXPECT_EQ(message_of<ValueError>([] { Tensor(std::vector<float>{1, 2}, {3}); }),
            "the shape (3,) has 3 elements, but 2 values were given");
  EXPECT_EQ(message_of<ValueError>([] { Tensor(std::vector<float>{1}, {0}); }),
            "the shape (0,) has 0 elements, but 1 value was given");
  EXPECT_EQ(message_of<TypeError>([] { Tensor(Dtype::kInt32, {1}).values<float>(); }),
            "a tensor of int32 has no values of float32: the type of its elements is int32_t");
  EXPECT_EQ(message_of<TypeError>([] { Tensor(Dtype::kFloat16, {1}).values<float>(); }),
            "a tensor of float16 has no values of float32");
  EXPECT_EQ(message_of<ValueError>([] { Tensor(Dtype::kInt32, {2}).item<int32_t>(); }),
            "a tensor of 2 elements is not a single value");
  EXPECT_EQ(message_of<TypeError>([] { TensorView(OwnByte{1}); }), "a type of 1 bytes is no element of float32");
  EXPECT_EQ(message_of<TypeError>([] { Tensor(Dtype::kFloat32, {1}).values<OwnByte>(); }),
            "a type of 1 bytes is no element of float32");
}

TEST(Tensor, ThrowsWhereThereIsNoMemory) {
  KILN_SKIP_UNLESS_NEW_THROWS();
  EXPECT_THROW(Tensor(Dtype::kInt8, {int64_t{1} << 62}), std::bad_alloc);
}

}  // namespace
}  // namespace kiln
