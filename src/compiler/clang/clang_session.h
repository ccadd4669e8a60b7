// Clang's arguments and files. Precompiling the device library and compiling a kernel use the same ones.
#pragma once

#include <clang/Frontend/CompilerInstance.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <string>
#include <vector>

#include "core/kernel_unit.h"

namespace kiln {

inline constexpr const char* kPrecompiledFile = "kiln/device_library.pch";

/// Language and target options; `cpu` is LLVM's name of the processor.
std::vector<std::string> clang_arguments(Dialect dialect, MathMode math_mode, const std::string& triple,
                                         const std::string& cpu);

/// Selects the warnings that Clang reports about a kernel.
std::vector<std::string> warning_arguments();

/// Sets the invocation of `instance` from arguments. Throws InternalError.
void set_arguments(clang::CompilerInstance& instance, const std::vector<std::string>& arguments);

/// A file system that contains only the device library. The views of device_library() and `umbrella`, the text of
/// kDeviceLibraryFile, must outlive it.
llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> library_files(const std::string& umbrella);

}  // namespace kiln
