// LLVM IR to PTX.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

namespace kiln {

inline constexpr const char* kGpuTriple = "nvptx64-nvidia-cuda";

// LLVM's numbers of the address spaces.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3, kParameterSpace = 101;

/// Null where LLVM does not know the architecture ("sm_90").
std::unique_ptr<llvm::TargetMachine> make_gpu_machine(const std::string& architecture);

/// Changes the module.
std::string generate_ptx(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace kiln
