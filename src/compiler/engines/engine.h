// How a CPU engine turns the code of one thread into code for a launch. There are two, the scalar one and the SIMD one;
// another is another implementation of this interface and a line in `compile_for_cpu.cpp`, which chooses.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/engine_output.h"
#include "core/cpu_image.h"
#include "core/kernel_unit.h"

namespace kiln {

// Told the name of what the module is now, for who wants to see it.
using StageKeeper = llvm::function_ref<void(const char* stage)>;

class CpuEngine {
 public:
  virtual ~CpuEngine() = default;

  /// `module` holds what Clang made, with arithmetic made harmless and accesses guarded, unoptimised; afterwards
  /// optimised code for a launch.
  virtual EngineOutput lower(llvm::Module& module, const KernelUnit& unit, llvm::TargetMachine& machine,
                             StageKeeper keep_stage) = 0;
};

std::unique_ptr<CpuEngine> make_scalar_engine();

/// Falls back to the scalar engine for what it cannot take, and says so in EngineOutput::reason.
/// `takes_long_bodies`: also those of which it would take long to compile vector code (vectorize/widening_cost.h).
std::unique_ptr<CpuEngine> make_simd_engine(bool takes_long_bodies);

}  // namespace kiln
