#include "compiler/lowering/scalar_components.h"

#include <llvm/Transforms/Scalar/Scalarizer.h>

#include "compiler/lowering/vector_bitcasts.h"

namespace kiln {

void split_into_components(llvm::Function& function, PassRunner& runner) {
  spell_out_bitcasts(function);
  runner.invalidate(function);
  llvm::ScalarizerPassOptions options;
  options.ScalarizeLoadStore = true;
  options.ScalarizeVariableInsertExtract = true;
  options.ScalarizeMinBits = 0;
  runner.run_pass(llvm::ScalarizerPass(options), function);
}

}  // namespace kiln
