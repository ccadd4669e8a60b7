// Functions without a body that stand for something until an engine puts instructions in their place: which calls are
// theirs, how they may be moved, and how they are replaced.
#pragma once

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <optional>

namespace kiln {

/// The function of this name, which the first to ask declares.
inline llvm::Function& pseudo_intrinsic(llvm::Module& module, llvm::StringRef name, llvm::FunctionType* type) {
  return *llvm::cast<llvm::Function>(module.getOrInsertFunction(name, type).getCallee());
}

inline bool calls(const llvm::Instruction& instruction, llvm::StringRef name) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == name;
}

/// `__kiln_value(which)` is a number of the thread, a CpuThreadValue: which one, where the value is such a call of a
/// constant.
inline constexpr const char* kValueFunction = "__kiln_value";
inline std::optional<uint64_t> thread_value(const llvm::Value* value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  if (!call || !calls(*call, kValueFunction)) return std::nullopt;
  const auto* which = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0));
  return which ? std::optional(which->getZExtValue()) : std::nullopt;
}

/// Says of calls that they end and do nothing but compute: what nobody wants goes, what is wanted twice is computed
/// once.
inline void set_no_side_effects(llvm::Function& function) {
  function.setDoesNotAccessMemory();
  function.setDoesNotThrow();
  function.setWillReturn();
}

/// Lets calls be moved as arithmetic is.
inline void set_speculatable(llvm::Function& function) {
  set_no_side_effects(function);
  function.setSpeculatable();
}

/// Keeps calls where the same threads are together.
inline void set_convergent(llvm::Function& function) {
  function.setConvergent();
  function.setDoesNotThrow();
}

/// Keeps calls in their order, whatever memory is accessed between them.
inline void set_ordered(llvm::Function& function) {
  function.setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  function.setDoesNotThrow();
}

/// `replacement(CallInst&)` gives the value, whose instructions stand before the call. The function goes.
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
