#include <gtest/gtest.h>

#include "core/sha256.h"

namespace kiln {
namespace {

TEST(Sha256, EqualsTheStandardsExample) {
  Sha256 hash;
  hash.add_bytes("abc", 3);
  EXPECT_EQ(hash.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace kiln
