// What passes take for granted of the code that they get.
//
// pipeline.cpp gives the reason for a pass's place in words. A precondition states it as a test of the code, which
// fails where the pass runs too early or too late. `Pipeline` tests it before each pass whenever it verifies the IR
// (debug builds, all tests, the generators of random bodies), and kiln-opt always does; otherwise it costs nothing.
// Release and sanitizer builds of the tests have it alike, which asserts in the passes would not: most run the
// release's compiler.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

namespace kiln {

/// What the pass of this name takes for granted and does not hold in the function, or in one that the module defines; a
/// clause such as "no masks of collectives are left". Null if everything holds.
const char* broken_precondition(llvm::StringRef pass, const llvm::Function& function);
const char* broken_precondition(llvm::StringRef pass, const llvm::Module& module);

}  // namespace kiln
