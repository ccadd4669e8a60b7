// SHA-256 (FIPS 180-4), for identifiers that must not collide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

class Sha256 {
 public:
  /// Adds a string and its length, so that ("ab", "c") and ("a", "bc") differ.
  void add(std::string_view text);
  /// Adds a number as 8 bytes.
  void add(uint64_t number);
  /// Adds bytes as they are.
  void add_bytes(const void* bytes, size_t count);

  /// 64 hexadecimal digits. Ends the computation.
  std::string hex();

 private:
  void process_block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> buffer_{};
  size_t buffered_ = 0;
  uint64_t total_bytes_ = 0;
};

}  // namespace kiln
