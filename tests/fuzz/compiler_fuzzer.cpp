// libFuzzer on the whole compiler, which is opened as programs open it. It is not instrumented; the front end is.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "checked_compiler.h"
#include "core/text.h"
#include "generated_text.h"

namespace {

kiln::Compiler& compiler() {
  static kiln::Compiler* opened = [] {
    const char* path = getenv("KILN_COMPILER");
    void* library = dlopen(path ? path : "libkiln_compiler.so", RTLD_NOW);
    auto factory =
        library ? reinterpret_cast<kiln::CompilerFactory>(dlsym(library, kiln::kCompilerFactoryName)) : nullptr;
    kiln::Compiler* made = factory ? factory(kiln::kCompilerInterfaceVersion) : nullptr;
    if (!made) {
      std::fprintf(stderr, "KILN_COMPILER names no compiler: %s\n", library ? path : dlerror());
      std::exit(2);
    }
    return made;
  }();
  return *opened;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln::Choices choices({data, size});
  kiln::KernelUnit unit = kiln::generate_unit(kiln::generate_text(choices), kiln::Dialect::kMetal);
  std::string problem = kiln::problem_of(compiler(), unit);
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s\n%s\n", problem.c_str(), unit.text.c_str());
  std::abort();
}
