// Builds the precompiled device library when Kiln is built: `kiln_precompile metal|cuda TRIPLE CPU OUTPUT`.
#include <clang/Basic/Builtins.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/Preprocessor.h>
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

namespace {

// No dialect has the built-in functions of one processor (`__builtin_ia32_…`): a body that called one would run on only
// one target. The front end knows those built-in functions whose numbers the precompiled library has.
class PrecompileAction : public clang::GeneratePCHAction {
 protected:
  // After the target's are known, before any gets its number.
  bool BeginSourceFileAction(clang::CompilerInstance& instance) override {
    instance.getPreprocessor().getBuiltinInfo() = clang::Builtin::Context();
    return GeneratePCHAction::BeginSourceFileAction(instance);
  }
};

}  // namespace

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
    PrecompileAction action;
    return instance.ExecuteAction(action) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln_precompile: %s\n", error.what());
    return 1;
  }
}
