#include "compiler/clang/clang_session.h"

#include <clang/Frontend/CompilerInvocation.h>

#include "compiler/clang/device_library.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {

std::vector<std::string> clang_arguments(Dialect dialect, MathMode math_mode, const std::string& triple,
                                         const std::string& cpu) {
  // clang-format off
  std::vector<std::string> arguments = {
      "-triple", triple, "-target-cpu", cpu, "-std=c++17", "-O2", "-disable-llvm-passes",
      // A lifetime end marker would be a block where paths out of a loop join before they branch again.
      "-disable-lifetime-markers",
      // A kernel sees Metal's macros and none of the host's (docs/language.md 1.5).
      "-undef", "-nostdsysteminc", "-nobuiltininc", "-fno-builtin", "-fno-rtti", "-fno-threadsafe-statics",
      // Signed arithmetic wraps, conversions of floats to integers saturate, any pointer may alias any other, loops may
      // be infinite, uninitialised variables are zero, a missing return is harmless (docs/language.md 4.3).
      "-fwrapv", "-fno-strict-float-cast-overflow", "-relaxed-aliasing", "-fno-finite-loops", "-fno-strict-return", "-fno-delete-null-pointer-checks",
      "-ftrivial-auto-var-init=zero",
      // Swizzles are properties, half and bfloat are rounded at each operation, nothing is contracted in safe mode.
      "-fdeclspec", "-ffloat16-excess-precision=none",
      "-fbfloat16-excess-precision=none", "-ffp-contract=off",
      // Both are errors in C++ but not in Metal.
      "-Wno-c++11-narrowing", "-Wno-invalid-constexpr",
      "-ferror-limit", "20", "-fno-elide-type",
  };
  // CUDA's macros are defined by the device library.
  if (dialect == Dialect::kMetal)
    arguments.insert(arguments.end(), {"-cl-single-precision-constant", "-D__METAL__=1", "-D__METAL_VERSION__=320",
                                       "-D__HAVE_BFLOAT__=1", "-D__HAVE_SIMDGROUP_MATRIX__=1"});
  // As on a GPU, where `long double` is a double.
  if (dialect == Dialect::kCuda) arguments.emplace_back("-mlong-double-64");
  if (math_mode == MathMode::kFast) arguments.insert(arguments.end(), {"-ffast-math", "-ffinite-math-only"});
  if (math_mode != MathMode::kSafe)
    arguments.insert(arguments.end(), {"-mreassociate", "-fno-signed-zeros", "-freciprocal-math", "-fapprox-func", "-ffp-contract=fast"});
  // clang-format on
  return arguments;
}

std::vector<std::string> warning_arguments() {
  // Clang's defaults, and operators that are easily confused. Extensions of C++ belong to Metal or are harmless;
  // `noderef` stands for an address space (compiler/clang/threadgroup_variables.h); Kiln reports undefined functions.
  return {"-Wparentheses",
          "-Wcomma",
          "-Wno-noderef",
          "-Wno-c++17-extensions",
          "-Wno-c++20-extensions",
          "-Wno-c++23-extensions",
          "-Wno-gnu",
          "-Wno-vla-extension",
          "-Wno-undefined-internal",
          "-Wno-undefined-inline",
          "-Wno-unknown-attributes",
          "-Wno-nan-infinity-disabled",
          "-Wno-duplicate-decl-specifier"};
}

void set_arguments(clang::CompilerInstance& instance, const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  if (!clang::CompilerInvocation::CreateFromArgs(instance.getInvocation(), pointers, instance.getDiagnostics()))
    throw InternalError(concat("Clang does not take its arguments: ", join(arguments, " ")));
  clang::ProcessWarningOptions(instance.getDiagnostics(), instance.getDiagnosticOpts());
}

llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> library_files(const std::string& umbrella) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto add = [&](const std::string& name, std::string_view text) {
    files->addFileNoOwn(name, /*ModificationTime=*/0, llvm::MemoryBufferRef({text.data(), text.size()}, name));
  };
  add(kDeviceLibraryFile, umbrella);
  for (const DeviceLibraryPart& part : device_library()) add(concat("kiln/", part.name), part.text);
  return files;
}

}  // namespace kiln
