// LLVM's command-line options, for settings that have no other interface. They hold for the whole process.
#pragma once

#include <llvm/ADT/StringRef.h>

namespace kiln {

/// Not thread-safe: call it once, before any pass reads the option. Throws InternalError if LLVM has no such option.
void set_llvm_option(llvm::StringRef name, llvm::StringRef value);

}  // namespace kiln
