// libkiln_compiler.so, opened when it is first needed.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/compiler.h"

namespace kiln {

class CompilerLibrary {
 public:
  /// The compiler; opens the library at the first call. Throws UnsupportedError, which names the file and how to get
  /// it, where there is none, each time anew.
  Compiler& get();

  /// The file that get() opens.
  static std::string path();

 private:
  std::mutex mutex_;
  std::unique_ptr<Compiler> compiler_;
};

}  // namespace kiln
