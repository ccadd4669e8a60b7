// Compiles a kernel unit's text to LLVM IR with Clang, in this process.
#pragma once

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instruction.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/compiler.h"
#include "core/kernel_unit.h"

namespace kiln {

struct FrontendResult {
  CompileStatus status = CompileStatus::kOk;
  std::unique_ptr<llvm::Module> module;  // unoptimised; null unless kOk
  std::vector<Diagnostic> diagnostics;   // warnings if the status is kOk
  std::string log;
  // Error to report if an indirect call is left after inlining, when source locations are no longer known. It points
  // to the first indirect call in the module that Clang generates.
  Diagnostic indirect_call;
};

// Line tables are emitted only when a unit is recompiled to locate an error, and for remarks; other compilations do not
// pay for them.
enum class LineTables : uint8_t { kNone, kMade };

/// `cpu` is LLVM's name of the processor. Values have names if the context keeps them.
FrontendResult run_clang(const KernelUnit& unit, const std::string& triple, const std::string& cpu,
                         llvm::LLVMContext& context, LineTables line_tables = LineTables::kNone);

/// A diagnostic at the caller's line that an instruction of a module with line tables comes from. For inlined code this
/// is the innermost location in the caller's text. The diagnostic has no position if there is none.
Diagnostic diagnostic_at(const llvm::Instruction& instruction, const KernelUnit& unit, std::string message);
/// The same at a location, which may be null.
Diagnostic diagnostic_at(const llvm::DILocation* location, const KernelUnit& unit, std::string message);

}  // namespace kiln
