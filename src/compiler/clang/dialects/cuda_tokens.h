// What of CUDA's the CPU does not run, and what it takes without having it, by name.
#pragma once

#include <clang/Basic/TokenKinds.h>
#include <llvm/ADT/StringRef.h>

#include <string>

namespace kiln {

/// Why a body cannot use this token on the CPU; null if it can. `before` and `next` are the tokens around it.
const char* unsupported_in_cuda(clang::tok::TokenKind token, clang::tok::TokenKind before, llvm::StringRef name,
                                clang::tok::TokenKind next);

/// Whether a function of this name makes threads wait for one another.
bool is_cuda_exchange(llvm::StringRef name);

/// Headers whose names are in scope without them.
bool is_known_cuda_header(llvm::StringRef name);

/// CUDA's other headers.
bool is_unsupported_cuda_header(llvm::StringRef name);

/// Types by CUDA's names.
std::string in_cuda_words(std::string message);

}  // namespace kiln
