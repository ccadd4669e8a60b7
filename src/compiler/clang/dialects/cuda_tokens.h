// Names of CUDA that the CPU target refuses, and names of headers that it accepts without having them.
#pragma once

#include <clang/Basic/TokenKinds.h>
#include <llvm/ADT/StringRef.h>

#include <string>

namespace kiln {

/// Why a body cannot use this token on the CPU; null if it can. `before` and `next` are the tokens around it.
const char* unsupported_in_cuda(clang::tok::TokenKind token, clang::tok::TokenKind before, llvm::StringRef name,
                                clang::tok::TokenKind next);

/// Whether a function of this name is a convergent operation, at which threads wait for one another.
bool is_cuda_convergent_operation(llvm::StringRef name);

/// Headers whose declarations are always in scope.
bool is_known_cuda_header(llvm::StringRef name);

/// CUDA's other headers.
bool is_unsupported_cuda_header(llvm::StringRef name);

/// Replaces internal names of types by CUDA's.
std::string in_cuda_words(std::string message);

}  // namespace kiln
