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

#include "compiler/lowering/convergence_points.h"
#include "core/cpu_image.h"
#include "core/kernel_unit.h"

namespace kiln {

// What an engine leaves behind for the image's header. Functions are named; their addresses are known after linking.
struct EngineOutput {
  std::string engine;  // its name
  std::string reason;  // why that one
  CpuImageKind kind = CpuImageKind::kLoop;
  std::string run_function;
  std::string threadgroup_function;     // empty: there is none
  uint32_t threadgroup_simdgroups = 0;  // for which it is made; 0: any
  std::vector<ExchangeSite> sites;
  std::vector<std::string> combine_functions;  // of each site; empty: none
  uint64_t threadgroup_memory_bytes = 0;
  uint64_t frame_bytes = 0;
  uint64_t table_bytes = 0;
  uint64_t private_bytes = 0;  // of one thread, in arrays and structures that are not in registers
  bool may_spin = false;
  bool wants_row_locks = false;
  bool joins_rows = false;
  bool takes_rows = false;
  bool polls = false;
};

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
