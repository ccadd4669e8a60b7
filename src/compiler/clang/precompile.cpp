// Builds the precompiled device library when Kiln is built: `kiln_precompile metal|cuda TRIPLE CPU OUTPUT`.
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdio>
#include <exception>

#include "compiler/clang/clang_session.h"
#include "compiler/clang/device_library.h"

// kiln_precompile has no embedded library: it builds the library.
extern "C" const char kiln_metal_library_begin[] = "";
extern "C" const char kiln_cuda_library_begin[] = "";
asm(".globl kiln_metal_library_end\n.set kiln_metal_library_end, kiln_metal_library_begin");
asm(".globl kiln_cuda_library_end\n.set kiln_cuda_library_end, kiln_cuda_library_begin");

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: kiln_precompile metal|cuda TRIPLE CPU OUTPUT\n", stderr);
    return 2;
  }
  try {
    clang::CompilerInstance instance;
    instance.createDiagnostics();
    kiln::Dialect dialect = argv[1][0] == 'm' ? kiln::Dialect::kMetal : kiln::Dialect::kCuda;
    std::vector<std::string> arguments = kiln::clang_arguments(dialect, kiln::MathMode::kSafe, argv[2], argv[3]);
    arguments.insert(arguments.end(), {"-w", "-x", "c++-header", "-emit-pch", "-fno-pch-timestamp",
                                       "-fpch-instantiate-templates", "-o", argv[4], kiln::kDeviceLibraryFile});
    kiln::set_arguments(instance, arguments);
    std::string umbrella = kiln::device_library_umbrella(dialect);
    instance.createFileManager(kiln::library_files(umbrella));
    clang::GeneratePCHAction action;
    return instance.ExecuteAction(action) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln_precompile: %s\n", error.what());
    return 1;
  }
}
