// Nothing but what was written is read.
#include "cache/code_entry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cache/cache_test_base.h"

namespace kiln {
namespace {

TEST(CodeEntry, ComesBackAsItWas) {
  CodeEntry entry = test_entry(3), read;
  entry.kernel = std::string("a\0b", 3);
  entry.engine_reason = "";
  ASSERT_EQ(decode_entry(encode_entry(test_id(3), entry), test_id(3), read), EntryState::kValid);
  EXPECT_TRUE(same(entry, read));
  entry.binary.clear();
  ASSERT_EQ(decode_entry(encode_entry(test_id(3), entry), test_id(3), read), EntryState::kValid);
  EXPECT_TRUE(same(entry, read));
}

TEST(CodeEntry, IsDamagedByEveryFlippedBit) {
  std::vector<std::byte> bytes = encode_entry(test_id(1), test_entry(1));
  ASSERT_GT(bytes.size(), 400u);
  CodeEntry read;
  for (size_t i = 0; i < 8 * bytes.size(); ++i) {
    std::byte bit = std::byte{1} << (i % 8);
    bytes[i / 8] ^= bit;
    EXPECT_EQ(decode_entry(bytes, test_id(1), read), EntryState::kDamaged) << "bit " << i;
    bytes[i / 8] ^= bit;
  }
  EXPECT_EQ(decode_entry(bytes, test_id(1), read), EntryState::kValid);
}

TEST(CodeEntry, IsDamagedByEveryOtherLength) {
  std::vector<std::byte> bytes = encode_entry(test_id(1), test_entry(1));
  CodeEntry read;
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(decode_entry(std::span(bytes).first(size), test_id(1), read), EntryState::kDamaged) << size;
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode_entry(bytes, test_id(1), read), EntryState::kDamaged);
}

TEST(CodeEntry, IsDamagedUnderAnotherId) {
  std::vector<std::byte> bytes = encode_entry(test_id(1), test_entry(1));
  CodeEntry read;
  EXPECT_EQ(decode_entry(bytes, test_id(2), read), EntryState::kDamaged);
}

// What a program writes that knows the format and is wrong: the checksum is right, the sizes are not.
TEST(CodeEntry, IsDamagedBySizesThatDoNotFit) {
  const std::vector<std::byte> good = encode_entry(test_id(1), test_entry(1));
  CodeEntry read;
  for (size_t at = 72; at + 8 <= good.size(); ++at)
    for (uint64_t size : {uint64_t{0}, uint64_t{1} << 20, uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 100}) {
      std::vector<std::byte> bytes = good;
      std::memcpy(bytes.data() + at, &size, 8);
      Sha256 hash;
      hash.add_bytes(bytes.data() + 72, bytes.size() - 72);
      std::string sum = hash.hex();
      std::memcpy(bytes.data() + 8, sum.data(), 64);
      EntryState state = decode_entry(bytes, test_id(1), read);
      // Where a text or a number was changed, it is an entry; where a size was, it is none. Nothing is read outside.
      EXPECT_TRUE(at < 72 + 8 || at >= 72 + 16 || state == EntryState::kDamaged) << at;
    }
}

TEST(CodeEntry, HasIdsOfDigitsOnly) {
  EXPECT_TRUE(is_entry_id(test_id(1)));
  for (std::string name : {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'A'),
                           std::string(64, '/'), std::string(".."), std::string(64, '.')})
    EXPECT_FALSE(is_entry_id(name)) << name;
}

}  // namespace
}  // namespace kiln
