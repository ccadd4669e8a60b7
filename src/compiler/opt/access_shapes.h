// What the widener's analyses find for each load and store of a function, as text, for their tests.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

#include <string>
#include <utility>
#include <vector>

namespace kiln {

/// Of each load and store, in their order: its name or the name of what it stores, and a description. What has no name
/// has its number in the printed IR. The function's control flow is structured.
std::vector<std::pair<std::string, std::string>> access_shapes(llvm::Function& function,
                                                               llvm::FunctionAnalysisManager& analyses);

}  // namespace kiln
