#include "core/number_conversion.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <utility>

namespace kiln {
namespace {

template <typename Integer>
Integer saturate(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<Integer>(value);
}

template <typename Integer>
Integer saturate(std::integral auto value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::cmp_less(value, Limits::min())) return Limits::min();
  if (std::cmp_greater(value, Limits::max())) return Limits::max();
  return static_cast<Integer>(value);
}

template <typename T>
std::array<std::byte, 8> bytes_of(T value) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

uint16_t to_half_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;
  if (bits >= 0x477ff000) return sign | 0x7c00;  // rounds to infinity
  if (bits < 0x38800000) {
    // Subnormal: adding one half of the smallest normal shifts and rounds the mantissa.
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return static_cast<uint16_t>(sign | ((bits - 0x38000000) >> 13));
}

float from_half_bits(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, rest = bits & 0x7fff;
  // Subnormals and zero: the mantissa counts in units of 2^-24.
  if (rest < 0x400)
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::ldexp(static_cast<float>(rest), -24)));
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000));
}

uint16_t to_bfloat_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

namespace {

template <typename Value>
std::array<std::byte, 8> element_of(Dtype dtype, Value value) {
  switch (dtype) {
    case Dtype::kBool: return bytes_of(static_cast<uint8_t>(value != 0));
    case Dtype::kUInt8: return bytes_of(saturate<uint8_t>(value));
    case Dtype::kUInt16: return bytes_of(saturate<uint16_t>(value));
    case Dtype::kUInt32: return bytes_of(saturate<uint32_t>(value));
    case Dtype::kUInt64: return bytes_of(saturate<uint64_t>(value));
    case Dtype::kInt8: return bytes_of(saturate<int8_t>(value));
    case Dtype::kInt16: return bytes_of(saturate<int16_t>(value));
    case Dtype::kInt32: return bytes_of(saturate<int32_t>(value));
    case Dtype::kInt64: return bytes_of(saturate<int64_t>(value));
    case Dtype::kFloat16: return bytes_of(to_half_bits(static_cast<float>(value)));
    case Dtype::kBFloat16: return bytes_of(to_bfloat_bits(static_cast<float>(value)));
    case Dtype::kFloat32:
    case Dtype::kComplex64: return bytes_of(static_cast<float>(value));
    case Dtype::kFloat64: return bytes_of(static_cast<double>(value));
  }
  return {};
}

}  // namespace

Half::Half(float value) : bits(to_half_bits(value)) {}
Half::operator float() const { return from_half_bits(bits); }
BFloat::BFloat(float value) : bits(to_bfloat_bits(value)) {}
BFloat::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

std::array<std::byte, 8> element_bytes(Dtype dtype, Number value) {
  return std::visit([&](auto number) { return element_of(dtype, number); }, value);
}

}  // namespace kiln
