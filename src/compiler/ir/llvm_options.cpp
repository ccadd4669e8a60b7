#include "compiler/ir/llvm_options.h"

#include <llvm/Support/CommandLine.h>

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {

void set_llvm_option(llvm::StringRef name, llvm::StringRef value) {
  auto& options = llvm::cl::getRegisteredOptions();
  auto option = options.find(name);
  if (option == options.end() || option->second->addOccurrence(0, name, value))
    throw InternalError(concat("LLVM has no option ", name.str()));
}

}  // namespace kiln
