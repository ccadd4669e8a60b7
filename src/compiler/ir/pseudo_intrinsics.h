// Pseudo-intrinsics: functions without a body that stand for something until an engine replaces their calls by
// instructions. pseudo_intrinsics.def lists them. These helpers recognize the calls, declare how they may be moved, and
// replace them.
#pragma once

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <optional>

namespace kiln {

// The names, under the constants of the rows.
#define KILN_PSEUDO_INTRINSIC(constant, name, ...) inline constexpr const char* constant = name;
#include "compiler/ir/pseudo_intrinsics.def"
#undef KILN_PSEUDO_INTRINSIC

// A row of pseudo_intrinsics.def, which says what the columns mean.
struct PseudoIntrinsic {
  enum Matches { kWhole, kNumbered };
  enum Effects {
    kUnknown,
    kPure,
    kSpeculatable,
    kConvergent,
    kConvergentReturning,
    kOrdered,
    kConvergentOrdered,
    kConvergentOrderedReturning
  };
  enum Origin { kDevice, kCompiler };
  static constexpr const char *kLoaded = "", *kNever = nullptr;

  llvm::StringLiteral name;
  Matches matches;
  Effects effects;
  Origin origin;
  // Who replaces the last calls in each engine.
  const char *scalar, *simd, *gpu;
};

/// Null where the function is none.
const PseudoIntrinsic* find_pseudo_intrinsic(llvm::StringRef name);

/// The function of this name, declared on first use, with the attributes of its row.
llvm::Function& pseudo_intrinsic(llvm::Module& module, llvm::StringRef name, llvm::FunctionType* type);

/// Gives their attributes to the functions that the device library declares.
void set_attributes(llvm::Module& module);

/// Throws an InternalError that names the row where calls are left that `engine`, &PseudoIntrinsic::simd for one,
/// should have replaced.
void refuse_pseudo_intrinsics(const llvm::Module& module, const char* PseudoIntrinsic::* engine);

inline bool calls(const llvm::Instruction& instruction, llvm::StringRef name) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == name;
}

/// `__kiln_value(which)` is a value of the thread, by its number in core/thread_values.h. Returns `which` if the value
/// is such a call with a constant.
inline std::optional<uint64_t> thread_value(const llvm::Value* value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  if (!call || !calls(*call, kValueFunction)) return std::nullopt;
  const auto* which = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0));
  return which ? std::optional(which->getZExtValue()) : std::nullopt;
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
