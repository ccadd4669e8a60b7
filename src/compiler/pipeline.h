// The pipelines of passes: from Clang's module to what the back ends take. The list is in pipeline.cpp, and nowhere
// else.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <span>
#include <string>

#include "compiler/ir/engine_output.h"
#include "compiler/ir/pipeline.h"
#include "compiler/ir/vector_isa.h"
#include "compiler/lowering/matrix_products.h"
#include "core/kernel_unit.h"

namespace kiln {

// ---- The code of one thread, for every target

// What a target decides about the code of one thread.
struct ThreadTarget {
  std::string cpu;          // what Clang parses for
  llvm::DataLayout layout;  // the target's
  VectorIsa vector_isa;     // of a CPU; empty for a GPU
  MatrixMap matrix_map = MatrixMap::kApple;
  // Replaces approximations, where they are allowed, by the target's own instructions. Null: an engine does, or they
  // are computed exactly.
  void (*approximate)(llvm::Module& module) = nullptr;
  // Replaces correctly rounded reciprocal roots by the target's own code for them, in all math modes. Null: an engine
  // does, or they are a root and a quotient.
  void (*round_rsqrt)(llvm::Module& module) = nullptr;
  // Whether a launch ends in an error where a thread comes to what is not supported. Otherwise such a unit is refused.
  bool reports_unsupported = false;
};

/// Makes Clang's module one function, kBodyFunction, in which each access can be followed to what it reads or writes.
/// False where calls are left whose functions are not known.
bool make_one_function(Pipeline& pipeline, llvm::Module& module, const ThreadTarget& thread);

/// Moves addresses out of memory into values, as far as possible.
void expose_addresses(Pipeline& pipeline, llvm::Function& body);

/// Makes shapes constants, and guards accesses.
void guard_accesses(Pipeline& pipeline, llvm::Function& body, std::span<const KernelParameter> parameters);

// ---- CPU

/// The guarded code of one thread as optimized code for a launch. The SIMD engine is tried first where the target asks
/// for it; what it does not take goes to the scalar engine, and EngineOutput::reason says why.
EngineOutput lower_for_cpu(Pipeline& pipeline, llvm::Module& module, llvm::TargetMachine& machine,
                           const VectorIsa& vector_isa);

/// What remains before code generation for x86-64.
void prepare_for_x86(Pipeline& pipeline, llvm::Module& module, EngineOutput& output, const VectorIsa& vector_isa,
                     bool needs_polls);

// ---- NVIDIA

struct GpuLowering {
  std::string refusal;  // why it cannot be done; empty: it is done
  std::string entry;    // the kernel's name
  uint64_t threadgroup_memory_bytes = 0;
};

/// The guarded code of one thread as a kernel. `architecture` is one that LLVM knows.
GpuLowering lower_for_nvidia(Pipeline& pipeline, llvm::Module& module, llvm::TargetMachine& machine,
                             const std::string& architecture, MatrixMap map);

/// What remains before PTX is written.
void prepare_for_ptx(Pipeline& pipeline, llvm::Module& module);

/// The names of the passes that KILN_PASSES may switch off.
std::span<const char* const> optional_passes();

}  // namespace kiln
