// C++ types of array elements, and the numbers that calls take besides arrays.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "kiln/dtype.h"
#include "kiln/error.h"

namespace kiln {

/// A 16-bit float with 1 sign bit, 5 exponent bits and 10 fraction bits (IEEE 754 binary16, Metal's half).
struct Half {
  uint16_t bits = 0;

  Half() = default;
  /// Rounds to nearest, ties to even.
  explicit Half(float value);
  operator float() const;
};

/// A 16-bit float: the upper half of a 32-bit float (Metal's bfloat).
struct BFloat {
  uint16_t bits = 0;

  BFloat() = default;
  /// Rounds to nearest, ties to even.
  explicit BFloat(float value);
  operator float() const;
};

namespace detail {

template <typename T>
concept Character = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
                    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

/// long and long long are two types of one size.
template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !Character<T>;

template <Integer T>
constexpr Dtype integer_dtype() {
  constexpr bool is_signed = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1: return is_signed ? Dtype::kInt8 : Dtype::kUInt8;
    case 2: return is_signed ? Dtype::kInt16 : Dtype::kUInt16;
    case 4: return is_signed ? Dtype::kInt32 : Dtype::kUInt32;
    default: return is_signed ? Dtype::kInt64 : Dtype::kUInt64;
  }
}

}  // namespace detail

/// The dtype of a C++ type: bool, integers of all sizes except character types, Half, BFloat, float, double,
/// std::complex<float>. Specialize it for a type of your own that has the same bits:
///
///     template <>
///     struct kiln::DtypeOf<my::half> {
///       static constexpr kiln::Dtype value = kiln::Dtype::kFloat16;
///     };
template <typename T>
struct DtypeOf;

template <detail::Integer T>
struct DtypeOf<T> {
  static constexpr Dtype value = detail::integer_dtype<T>();
};
// clang-format off
template <> struct DtypeOf<bool> { static constexpr Dtype value = Dtype::kBool; };
template <> struct DtypeOf<Half> { static constexpr Dtype value = Dtype::kFloat16; };
template <> struct DtypeOf<BFloat> { static constexpr Dtype value = Dtype::kBFloat16; };
template <> struct DtypeOf<float> { static constexpr Dtype value = Dtype::kFloat32; };
template <> struct DtypeOf<double> { static constexpr Dtype value = Dtype::kFloat64; };
template <> struct DtypeOf<std::complex<float>> { static constexpr Dtype value = Dtype::kComplex64; };
// clang-format on

/// A type of array elements, const or not.
template <typename T>
concept Element = std::is_trivially_copyable_v<T> && requires {
  { DtypeOf<std::remove_cv_t<T>>::value } -> std::convertible_to<Dtype>;
};

/// The dtype of an Element.
template <Element T>
constexpr Dtype dtype_of() {
  return DtypeOf<std::remove_cv_t<T>>::value;
}

/// A number without loss of digits; integers beyond 2^53 do not fit into a double.
struct Number : std::variant<double, int64_t, uint64_t> {
  template <std::floating_point T>
  Number(T value) : variant(static_cast<double>(value)) {}
  template <std::signed_integral T>
  Number(T value) : variant(static_cast<int64_t>(value)) {}
  template <std::unsigned_integral T>
  Number(T value) : variant(static_cast<uint64_t>(value)) {}
};

/// A template argument: a dtype, a 32-bit int or a bool. An integer of another type must fit into 32 bits (ValueError).
struct TemplateValue : std::variant<Dtype, int32_t, bool> {
  TemplateValue(Dtype dtype) : variant(dtype) {}
  template <std::same_as<bool> T>
  TemplateValue(T flag) : variant(flag) {}
  template <detail::Integer T>
  TemplateValue(T number) : variant(static_cast<int32_t>(number)) {
    if (!std::in_range<int32_t>(number))
      throw ValueError("the template argument " + std::to_string(number) + " does not fit into 32 bits");
  }
};

}  // namespace kiln
