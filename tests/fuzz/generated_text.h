// Kernels of made-up text, for the lexer, the front end and the compiler.
//
// Random bytes as text would end in the first token that no compiler knows. So what is drawn are tokens: Metal's and
// CUDA's words, names that a kernel has, brackets, literals, comments, strings that nothing closes, preprocessor lines,
// `#include`s of the kernel's own files, statements that are right, and repetitions of what came before. What libFuzzer
// mutates is the choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/included_file.h"
#include "core/kernel_unit.h"

namespace kiln {

// The bytes that choices are made by; 0 when they are used up.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return next_ >= bytes_.size(); }
  /// Below `count`, which is from 1 to 256.
  size_t below(size_t count) { return empty() ? 0 : bytes_[next_++] % count; }

 private:
  std::span<const uint8_t> bytes_;
  size_t next_ = 0;
};

struct GeneratedText {
  std::string header;
  std::string body;
  KernelFiles files;
};

/// At most a few times `kMostGeneratedBytes` of text.
inline constexpr size_t kMostGeneratedBytes = 1 << 16;
GeneratedText generate_text(Choices& choices);

/// The unit of a call with an array, a number and an output. Ends the process where what the front end says of the text
/// cannot be.
KernelUnit generate_unit(const GeneratedText& text, Dialect dialect);

}  // namespace kiln
