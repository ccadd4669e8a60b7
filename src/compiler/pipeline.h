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

/// Makes Clang's module one function, kBodyFunction, in which each access can be followed to what it reads or writes.
/// False where calls are left whose functions are not known. `vector_isa` describes a CPU; for a GPU it is empty.
bool make_one_function(Pipeline& pipeline, llvm::Module& module, const llvm::DataLayout& layout, MatrixMap map,
                       const VectorIsa& vector_isa);

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
