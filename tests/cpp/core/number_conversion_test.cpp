// The reference is the definition of the formats: a finite half is a sign, a mantissa of 11 bits and a power of two,
// and `std::ldexp` puts them together without rounding.
#include "core/number_conversion.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace kiln {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A format of 16 bits with `exponent_bits` bits of exponent.
struct SmallFloat {
  int exponent_bits;

  int mantissa_bits() const { return 15 - exponent_bits; }
  uint16_t infinity() const { return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits()); }
  bool is_nan(uint16_t bits) const { return (bits & 0x7fff) > infinity(); }

  float value(uint16_t bits) const {
    int exponent = (bits & 0x7fff) >> mantissa_bits(), mantissa = bits & ((1 << mantissa_bits()) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    float magnitude = exponent == (1 << exponent_bits) - 1 ? (mantissa ? NAN : kInfinity)
                      : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits())
                                      : std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits())),
                                                   exponent - bias - mantissa_bits());
    return bits & 0x8000 ? -magnitude : magnitude;
  }
};

constexpr SmallFloat kHalf{5}, kBFloat{8};

void expect_round_trips(const SmallFloat& format, uint16_t (*to_bits)(float)) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = format.value(static_cast<uint16_t>(bits));
    uint16_t back = to_bits(value);
    if (format.is_nan(static_cast<uint16_t>(bits))) {
      ASSERT_TRUE(format.is_nan(back)) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Between each two neighbours: what lies below the middle goes down, above it up, the middle to the even one.
void expect_nearest(const SmallFloat& format, uint16_t (*to_bits)(float)) {
  for (uint16_t sign : {0x0000, 0x8000})
    for (uint16_t magnitude = 0; magnitude + 1 < format.infinity(); ++magnitude) {
      auto low = static_cast<uint16_t>(sign | magnitude), high = static_cast<uint16_t>(low + 1);
      float towards_low = format.value(low), towards_high = format.value(high);
      float middle = static_cast<float>((static_cast<double>(towards_low) + towards_high) / 2);
      ASSERT_EQ(to_bits(middle), low % 2 == 0 ? low : high) << low;
      ASSERT_EQ(to_bits(std::nextafter(middle, towards_low)), low);
      ASSERT_EQ(to_bits(std::nextafter(middle, towards_high)), high);
    }
}

TEST(Half, ComesBackFromAFloat) { expect_round_trips(kHalf, to_half_bits); }
TEST(BFloat, ComesBackFromAFloat) { expect_round_trips(kBFloat, to_bfloat_bits); }
TEST(Half, IsTheNearestTiesToEven) { expect_nearest(kHalf, to_half_bits); }
TEST(BFloat, IsTheNearestTiesToEven) { expect_nearest(kBFloat, to_bfloat_bits); }

TEST(Half, BeyondItsLargestRoundsToInfinityFromTheMiddleOn) {
  EXPECT_EQ(to_half_bits(65504.0f), 0x7bff);
  EXPECT_EQ(to_half_bits(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(to_half_bits(65520.0f), 0x7c00);
  EXPECT_EQ(to_half_bits(-65520.0f), 0xfc00);
  EXPECT_EQ(to_half_bits(std::numeric_limits<float>::max()), 0x7c00);
}

TEST(BFloat, BeyondItsLargestRoundsToInfinity) {
  EXPECT_EQ(to_bfloat_bits(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bfloat_bits(-std::numeric_limits<float>::max()), 0xff80);
}

TEST(Half, OfTheSmallestFloatsIsZeroWithTheirSign) {
  EXPECT_EQ(to_half_bits(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(to_half_bits(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(to_half_bits(std::ldexp(1.0f, -25)), 0x0000);
  EXPECT_EQ(to_half_bits(std::nextafter(std::ldexp(1.0f, -25), 1.0f)), 0x0001);
}

TEST(SmallFloats, OfANanAreNansWhateverItsPayload) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    EXPECT_TRUE(kHalf.is_nan(to_half_bits(std::bit_cast<float>(bits)))) << bits;
    EXPECT_TRUE(kBFloat.is_nan(to_bfloat_bits(std::bit_cast<float>(bits)))) << bits;
  }
}

// ---- element_bytes

template <typename T>
T element(Dtype dtype, double value) {
  T result;
  auto bytes = element_bytes(dtype, value);
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

template <typename Integer>
void expect_saturation(Dtype dtype) {
  using Limits = std::numeric_limits<Integer>;
  auto convert = [&](double value) { return element<Integer>(dtype, value); };
  for (double far : {1e300, 1e20, static_cast<double>(INFINITY)}) {
    EXPECT_EQ(convert(far), Limits::max()) << name_of(dtype);
    EXPECT_EQ(convert(-far), Limits::min()) << name_of(dtype);
  }
  EXPECT_EQ(convert(NAN), 0) << name_of(dtype);
  EXPECT_EQ(convert(static_cast<double>(Limits::max())), Limits::max()) << name_of(dtype);
  EXPECT_EQ(convert(static_cast<double>(Limits::max()) + 1), Limits::max()) << name_of(dtype);
  EXPECT_EQ(convert(static_cast<double>(Limits::min())), Limits::min()) << name_of(dtype);
  EXPECT_EQ(convert(static_cast<double>(Limits::min()) - 1), Limits::min()) << name_of(dtype);
  EXPECT_EQ(convert(0), 0) << name_of(dtype);
  EXPECT_EQ(convert(100), 100) << name_of(dtype);
  EXPECT_EQ(convert(1.9), 1) << name_of(dtype);
  EXPECT_EQ(convert(-0.9), 0) << name_of(dtype);
  EXPECT_EQ(convert(-1.9), static_cast<Integer>(Limits::is_signed ? -1 : 0)) << name_of(dtype);
}

TEST(ElementBytes, OfIntegersAreRoundedTowardsZeroAndSaturate) {
  expect_saturation<uint8_t>(Dtype::kUInt8);
  expect_saturation<uint16_t>(Dtype::kUInt16);
  expect_saturation<uint32_t>(Dtype::kUInt32);
  expect_saturation<uint64_t>(Dtype::kUInt64);
  expect_saturation<int8_t>(Dtype::kInt8);
  expect_saturation<int16_t>(Dtype::kInt16);
  expect_saturation<int32_t>(Dtype::kInt32);
  expect_saturation<int64_t>(Dtype::kInt64);
  // The largest double below 2^63.
  EXPECT_EQ(element<int64_t>(Dtype::kInt64, 9223372036854774784.0), 9223372036854774784);
  EXPECT_EQ(element<uint8_t>(Dtype::kUInt8, 254.99), 254);
}

TEST(ElementBytes, OfABoolSayWhetherItIsNotZero) {
  for (double value : {1.0, -3.0, 0.25, 1e300, static_cast<double>(NAN)})
    EXPECT_EQ(element<uint8_t>(Dtype::kBool, value), 1) << value;
  EXPECT_EQ(element<uint8_t>(Dtype::kBool, 0.0), 0);
  EXPECT_EQ(element<uint8_t>(Dtype::kBool, -0.0), 0);
}

TEST(ElementBytes, OfFloatsAreTheNearestOnes) {
  EXPECT_EQ(element<float>(Dtype::kFloat32, 0.1), 0.1f);
  EXPECT_EQ(element<double>(Dtype::kFloat64, 0.1), 0.1);
  EXPECT_EQ(element<float>(Dtype::kFloat32, 1e300), kInfinity);
  EXPECT_EQ(element<uint16_t>(Dtype::kFloat16, 1.0), 0x3c00);
  EXPECT_EQ(element<uint16_t>(Dtype::kFloat16, -2.0), 0xc000);
  EXPECT_EQ(element<uint16_t>(Dtype::kBFloat16, 1.0), 0x3f80);
  EXPECT_TRUE(std::isnan(element<float>(Dtype::kFloat32, NAN)));
}

TEST(ElementBytes, OfAComplexNumberHaveNoImaginaryPart) {
  EXPECT_EQ(element<float>(Dtype::kComplex64, -1.5), -1.5f);
  auto bytes = element_bytes(Dtype::kComplex64, -1.5);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(bytes[i], std::byte{0});
}

TEST(ElementBytes, TakesIntegersExactly) {
  auto as = []<typename T>(Dtype dtype, Number value, T) {
    T result;
    auto bytes = element_bytes(dtype, value);
    std::memcpy(&result, bytes.data(), sizeof result);
    return result;
  };
  int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(as(Dtype::kInt64, odd, int64_t{}), odd);
  EXPECT_EQ(as(Dtype::kUInt64, UINT64_MAX - 1, uint64_t{}), UINT64_MAX - 1);
  EXPECT_EQ(as(Dtype::kInt64, UINT64_MAX, int64_t{}), INT64_MAX);
  EXPECT_EQ(as(Dtype::kUInt8, int64_t{-1}, uint8_t{}), 0);
  EXPECT_EQ(as(Dtype::kInt8, int64_t{1000}, int8_t{}), 127);
  EXPECT_EQ(as(Dtype::kFloat32, int64_t{16777217}, float{}), 16777216.0f);
  EXPECT_EQ(as(Dtype::kBool, int64_t{256}, uint8_t{}), 1);
}

TEST(HalfAndBFloat, ComeBackFromEveryBitPattern) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    float value = half;
    int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(value));
    } else {
      float expected = exponent == 31  ? INFINITY
                       : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                       : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
      EXPECT_EQ(value, bits & 0x8000 ? -expected : expected) << bits;
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
      EXPECT_EQ(Half(value).bits, bits);
    }
    BFloat bfloat;
    bfloat.bits = static_cast<uint16_t>(bits);
    float wide = bfloat;
    EXPECT_EQ(std::bit_cast<uint32_t>(wide), bits << 16);
    if (!std::isnan(wide)) {
      EXPECT_EQ(BFloat(wide).bits, bits);
    }
  }
}

}  // namespace
}  // namespace kiln
