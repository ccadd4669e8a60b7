#include "core/sha256.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Sha256, EqualsTheStandardsExample) {
  Sha256 hash;
  hash.add_bytes("abc", 3);
  EXPECT_EQ(hash.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// Digests of bytes 3, 10, 17, … modulo 256, from Python's hashlib. The lengths lie around the ends of blocks.
struct Vector {
  size_t length;
  const char* digest;
};
const Vector kVectors[] = {
    {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {1, "084fed08b978af4d7d196a7446a86b58009e636b611db16211b65a9aadff29c5"},
    {55, "e7313d333c272e639f790978283f9eb392e843d0f29b7016828bb1daa4aac70b"},
    {56, "4324d65f3c103567f5589c710bc08f8523f929a9272e3af36fc968e52abc6c27"},
    {57, "35df609437dcfea3279283ab79fd554e2bf78f8f7ae2de532d8ee300b09e8f73"},
    {63, "81c80242132f230c3bd41b3e63bbcff16107339549214a99614ff26664625055"},
    {64, "39e3d7b6b5d075d37d053ad89b24b41bef4f3c29760c84447cab3f3be1882241"},
    {65, "aacca6ff74fdbb296d165a45cecfa04e5127bc008770fbbdd48006f2d2fae95e"},
    {119, "9ce7368e4daf32341631b492e80359dc9f594b48453cd0dd5bf0b19279cc177e"},
    {120, "7836b787757e95e58b3ca5aec90b1b004e8deba1e50e9675af9cabf1a13a04b5"},
    {127, "a8d23e75d936f303d248888d9b165ee543f4cbafcad3c9dd2a79bd84faa11d07"},
    {128, "d2742f1f4ac6bb7ca2b239ee18402ba8b3f9f8e652d2a72973c2b9ba11c08cf6"},
    {1000, "1e9bc38cbf860b9ec31918b065f9b52476c549a782e0e7990bed8ce3868d2371"},
};

std::string bytes(size_t length) {
  std::string result;
  for (size_t i = 0; i < length; ++i) result += static_cast<char>(i * 7 + 3);
  return result;
}

TEST(Sha256, EqualsHashlibsDigests) {
  for (const Vector& vector : kVectors) {
    Sha256 hash;
    hash.add_bytes(bytes(vector.length).data(), vector.length);
    EXPECT_EQ(hash.hex(), vector.digest) << vector.length;
  }
}

TEST(Sha256, DoesNotDependOnHowBytesArrive) {
  for (const Vector& vector : kVectors)
    for (size_t piece : {1, 3, 63, 64, 65}) {
      Sha256 hash;
      std::string all = bytes(vector.length);
      for (size_t i = 0; i < all.size(); i += piece) hash.add_bytes(all.data() + i, std::min(piece, all.size() - i));
      EXPECT_EQ(hash.hex(), vector.digest) << vector.length << " in pieces of " << piece;
    }
}

TEST(Sha256, TakesTheLengthOfAStringWithIt) {
  // hashlib.sha256(struct.pack("<Q", 2) + b"ab" + struct.pack("<Q", 1) + b"c")
  Sha256 hash;
  hash.add("ab");
  hash.add("c");
  EXPECT_EQ(hash.hex(), "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617");
  Sha256 other;
  other.add("a");
  other.add("bc");
  EXPECT_NE(other.hex(), "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617");
}

TEST(Sha256, TakesANumberAsEightBytes) {
  // hashlib.sha256(struct.pack("<Q", 0x0123456789abcdef))
  Sha256 hash;
  hash.add(uint64_t{0x0123456789abcdef});
  EXPECT_EQ(hash.hex(), "a85ba2b36261d0dca4b6cbbc840fa8a441ec95200abba5c5623e7ddadeff99e5");
}

}  // namespace
}  // namespace kiln
