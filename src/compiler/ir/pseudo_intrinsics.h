// Pseudo-intrinsics: functions without a body that stand for something until an engine replaces their calls by
// instructions. These helpers recognize the calls, declare how they may be moved, and replace them.
#pragma once

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <optional>

namespace kiln {

/// The function of this name, declared on first use.
inline llvm::Function& pseudo_intrinsic(llvm::Module& module, llvm::StringRef name, llvm::FunctionType* type) {
  return *llvm::cast<llvm::Function>(module.getOrInsertFunction(name, type).getCallee());
}

inline bool calls(const llvm::Instruction& instruction, llvm::StringRef name) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == name;
}

/// `__kiln_value(which)` is a value of the thread, by its number in core/thread_values.h. Returns `which` if the value
/// is such a call with a constant.
inline constexpr const char* kValueFunction = "__kiln_value";
inline std::optional<uint64_t> thread_value(const llvm::Value* value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  if (!call || !calls(*call, kValueFunction)) return std::nullopt;
  const auto* which = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0));
  return which ? std::optional(which->getZExtValue()) : std::nullopt;
}

/// Declares that calls return and only compute: dead calls may be deleted, and equal ones merged.
inline void set_no_side_effects(llvm::Function& function) {
  function.setDoesNotAccessMemory();
  function.setDoesNotThrow();
  function.setWillReturn();
}

/// Allows calls to be moved like arithmetic.
inline void set_speculatable(llvm::Function& function) {
  set_no_side_effects(function);
  function.setSpeculatable();
}

/// Keeps calls at points that the same threads execute together.
inline void set_convergent(llvm::Function& function) {
  function.setConvergent();
  function.setDoesNotThrow();
}

/// Keeps calls in their order, whatever memory accesses are between them.
inline void set_ordered(llvm::Function& function) {
  function.setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  function.setDoesNotThrow();
}

/// Replaces each call by the value of `replacement(CallInst&)`, which inserts its instructions before the call, and
/// deletes the function.
template <class Replacement>
void replace_calls(llvm::Module& module, llvm::StringRef name, Replacement replacement) {
  llvm::Function* function = module.getFunction(name);
  if (!function) return;
  for (llvm::User* user : llvm::make_early_inc_range(function->users())) {
    auto* call = llvm::cast<llvm::CallInst>(user);
    call->replaceAllUsesWith(replacement(*call));
    call->eraseFromParent();
  }
  function->eraseFromParent();
}

}  // namespace kiln
