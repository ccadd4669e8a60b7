// libkiln_compiler.so, opened when it is first needed.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/compiler.h"
#include "kiln/error.h"

namespace kiln {

// The installation lacks it; whoever mends that needs no new process.
class MissingCompilerError : public UnsupportedError {
 public:
  using UnsupportedError::UnsupportedError;
};

class CompilerLibrary {
 public:
  /// `compiler`: what get() returns in place of the library's; null opens the library.
  explicit CompilerLibrary(std::unique_ptr<Compiler> compiler = nullptr) : compiler_(std::move(compiler)) {}

  /// The compiler; opens the library at the first call. Throws MissingCompilerError, which names the file and how to
  /// get it, where there is none, each time anew.
  Compiler& get();

  /// The file that get() opens.
  static std::string path();

 private:
  std::mutex mutex_;
  std::unique_ptr<Compiler> compiler_;
};

}  // namespace kiln
