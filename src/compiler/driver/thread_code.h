// What all targets begin with: a unit's text to the IR of one thread.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "compiler/ir/pipeline.h"
#include "compiler/pipeline.h"
#include "core/compiler.h"

namespace kiln {

/// kBodyFunction, with everything inlined, arithmetic made harmless and accesses guarded, unoptimised. Null, and the
/// pipeline's result says why, where that cannot be.
std::unique_ptr<llvm::Module> make_thread_code(Pipeline& pipeline, const ThreadTarget& thread,
                                               llvm::LLVMContext& context);

void refuse(CompileResult& result, Diagnostic diagnostic);
void refuse(CompileResult& result, std::string message);

/// Refuses variables that live longer than a thread and can change: Metal has none but threadgroup memory, which the
/// module no longer holds. False where there is one.
bool check_variables(const llvm::Module& module, CompileResult& result);

}  // namespace kiln
