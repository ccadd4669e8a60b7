// LLVM IR to a relocatable object for x86-64.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

namespace kiln {

/// A machine for the processor (or level) that LLVM calls `cpu`, which does not contract floating-point operations.
std::unique_ptr<llvm::TargetMachine> make_cpu_machine(const std::string& cpu);

/// An ELF object in memory. Changes the module.
llvm::SmallVector<char, 0> generate_object(llvm::Module& module, llvm::TargetMachine& machine);

/// The same as assembly language; does not change the module.
std::string generate_assembly(const llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace kiln
