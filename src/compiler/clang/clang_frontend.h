// A unit's text to LLVM IR, by Clang in this process.
#pragma once

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
  std::vector<Diagnostic> diagnostics;   // warnings where it is kOk
  std::string log;
  // What to say if a call through a pointer to a function is left once everything is inlined, when no place is known
  // any more. It points to the first such call that Clang has seen.
  Diagnostic indirect_call;
};

// Line tables are for text that is parsed again to say where it is wrong; no other text pays for them.
enum class LineTables : uint8_t { kNone, kMade };

/// `cpu` is LLVM's name of the processor. Values have names where the context keeps them.
FrontendResult run_clang(const KernelUnit& unit, const std::string& triple, const std::string& cpu,
                         llvm::LLVMContext& context, LineTables line_tables = LineTables::kNone);

/// A diagnostic at the caller's line from which an instruction of a module with line tables came: the innermost one of
/// the functions that were inlined. Without a position where there is none.
Diagnostic diagnostic_at(const llvm::Instruction& instruction, const KernelUnit& unit, std::string message);

}  // namespace kiln
