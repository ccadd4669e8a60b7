// What all kernels of a process share: targets, compiler, machine code.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "cache/single_flight.h"
#include "core/compiler.h"
#include "runtime/compiler_library.h"
#include "targets/target.h"

namespace kiln {

// Machine code that has been made or found, and how.
struct Binary {
  std::shared_ptr<const LoadedKernel> code;
  std::string engine;
  std::string engine_reason;
  double compile_ms = 0;
};

/// Whether compiling once more would fail in the same way. What is missing today (memory, the compiler) may be there
/// tomorrow.
bool is_lasting(const std::exception_ptr& error);

class Context {
 public:
  /// `compiler`: what compiles in place of libkiln_compiler.so.
  explicit Context(std::unique_ptr<Compiler> compiler = nullptr);

  /// The context that kernels use unless they are given another.
  static Context& shared();

  Target& cpu() { return *cpu_; }

  /// Machine code for the unit, compiled at the first call for each identity; `made_now` says whether by this call.
  /// Throws CompileError, UnsupportedError, InternalError.
  SingleFlight<Binary>::Found binary_for(const KernelUnit& unit, Target& target);

  /// What compiling the unit makes on the way, compiled anew. Throws as binary_for() does.
  std::vector<CompileStage> stages_of(const KernelUnit& unit, Target& target);

 private:
  std::unique_ptr<Target> cpu_;
  CompilerLibrary compiler_;
  SingleFlight<Binary> binaries_{is_lasting};
};

/// "metal_kernel" or "cuda_kernel": how messages name the interface.
std::string_view interface_name(Dialect dialect);

}  // namespace kiln
