// What Clang is told, alike when the device library is precompiled and when a kernel is compiled.
#pragma once

#include <clang/Frontend/CompilerInstance.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <string>
#include <vector>

#include "core/kernel_unit.h"

namespace kiln {

inline constexpr const char* kPrecompiledFile = "kiln/device_library.pch";

/// Options of the language and of the target; `cpu` is LLVM's name of the processor.
std::vector<std::string> clang_arguments(Dialect dialect, MathMode math_mode, const std::string& triple,
                                         const std::string& cpu);

/// Which warnings Clang gives about a kernel.
std::vector<std::string> warning_arguments();

/// Gives `instance` its invocation from arguments. Throws InternalError.
void set_arguments(clang::CompilerInstance& instance, const std::vector<std::string>& arguments);

/// A file system with nothing but the device library in it. The views of device_library() must outlive it, as must
/// `umbrella`, the text of kDeviceLibraryFile.
llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> library_files(const std::string& umbrella);

}  // namespace kiln
