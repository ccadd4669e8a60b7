// Numbers and texts as bytes of a file, in one order of bytes whatever the machine's. Reading checks every size before
// anything is allocated or copied: files may be damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class ByteWriter {
 public:
  void add_u64(uint64_t number) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::byte>(number >> (8 * i)));
  }
  /// As it is.
  void add_raw(std::string_view text) { add_raw(std::as_bytes(std::span(text))); }
  void add_raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  /// With its size before it.
  void add_sized(std::span<const std::byte> bytes) {
    add_u64(bytes.size());
    add_raw(bytes);
  }
  void add_sized(std::string_view text) { add_sized(std::as_bytes(std::span(text))); }

  size_t size() const { return bytes_.size(); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Once something did not fit, everything that is read is empty, and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  uint64_t u64() {
    std::span<const std::byte> bytes = raw(8);
    uint64_t number = 0;
    for (size_t i = 0; i < bytes.size(); ++i) number |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
    return number;
  }
  /// Views what the reader was given.
  std::span<const std::byte> raw(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    std::span<const std::byte> bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::span<const std::byte> sized() { return raw(u64()); }
  std::string sized_text() {
    std::span<const std::byte> bytes = sized();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }
  size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace kiln
