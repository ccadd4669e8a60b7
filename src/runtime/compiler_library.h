// libkiln_compiler.so, opened when it is first needed.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/compiler.h"
#include "kiln/error.h"

namespace kiln {

// What tells one compiler from another.
struct CompilerIdentity {
  std::string text;
  // Whether another process tells the same of the same compiler and something else of every other.
  bool lasting = false;
};

class CompilerLibrary {
 public:
  /// `compiler`: what get() returns in place of the library's; null opens the library.
  explicit CompilerLibrary(std::unique_ptr<Compiler> compiler = nullptr);

  /// The compiler; opens the library at the first call. Throws MissingCompilerError, which names the file and how to
  /// get it, where there is none, each time anew.
  Compiler& get();

  /// The compiler's identity. Opens nothing: before get() has opened the library it is that of the file, which may be
  /// replaced until then. Empty where the file is missing or has no build ID and nothing is open.
  std::optional<CompilerIdentity> identity();

  /// The file that get() opens.
  static std::string path();

 private:
  std::mutex mutex_;
  std::unique_ptr<Compiler> compiler_;
  std::optional<CompilerIdentity> identity_;
};

}  // namespace kiln
