// What all targets begin with: a unit's text to the IR of one thread.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "compiler/ir/pipeline.h"
#include "compiler/ir/vector_isa.h"
#include "compiler/lowering/matrix_products.h"
#include "core/compiler.h"

namespace kiln {

/// kBodyFunction, with everything inlined, arithmetic made harmless and accesses guarded, unoptimised. `cpu` is what
/// Clang parses for, `layout` the target's, `vector_isa` a CPU's. Null, and the pipeline's result says why, where that
/// cannot be.
std::unique_ptr<llvm::Module> make_thread_code(Pipeline& pipeline, const std::string& cpu,
                                               const llvm::DataLayout& layout, const VectorIsa& vector_isa,
                                               llvm::LLVMContext& context);

/// How the code gives out matrices' elements. Instructions of a GPU have a map of their own, which serves where those
/// instructions may be used and the body does not look at single elements.
MatrixMap matrix_map(const CompileRequest& request);

void refuse(CompileResult& result, Diagnostic diagnostic);
void refuse(CompileResult& result, std::string message);

/// Refuses variables that live longer than a thread and can change: Metal has none but threadgroup memory, which the
/// module no longer holds. False where there is one.
bool check_variables(const llvm::Module& module, CompileResult& result);

}  // namespace kiln
