// Makes the precompiled device library when Kiln is built: `kiln_precompile TRIPLE OUTPUT`.
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdio>
#include <exception>

#include "compiler/clang_session.h"
#include "compiler/device_library.h"

// Here nothing is embedded yet.
extern "C" const char kiln_device_library_begin[] = "";
asm(".globl kiln_device_library_end\n.set kiln_device_library_end, kiln_device_library_begin");

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: kiln_precompile TRIPLE OUTPUT\n", stderr);
    return 2;
  }
  try {
    clang::CompilerInstance instance;
    instance.createDiagnostics();
    std::vector<std::string> arguments =
        kiln::clang_arguments(kiln::MathMode::kSafe, argv[1], argv[1][0] == 'x' ? "x86-64" : "sm_80");
    arguments.insert(arguments.end(), {"-x", "c++-header", "-emit-pch", "-fno-pch-timestamp",
                                       "-fpch-instantiate-templates", "-o", argv[2], kiln::kDeviceLibraryFile});
    kiln::set_arguments(instance, arguments);
    std::string umbrella = kiln::device_library_umbrella();
    instance.createFileManager(kiln::library_files(umbrella));
    clang::GeneratePCHAction action;
    return instance.ExecuteAction(action) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln_precompile: %s\n", error.what());
    return 1;
  }
}
