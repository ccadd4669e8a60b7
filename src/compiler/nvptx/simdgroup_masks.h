// The threads of a simdgroup that execute one instance of a collective, on hardware whose threads diverge freely.
//
// A collective instruction names its threads and waits for them. Kiln never queries which threads are active, since the
// hardware's answer guarantees nothing. It derives them by one of two methods.
//
// In most bodies the threads that will execute a collective reach it together, however they diverge in between. These
// threads are those of the launch. Where a branch keeps some from any further collective, a vote at the branch finds
// the others. The control flow stays as it is.
//
// Otherwise the control flow is structured (analysis/structured_flow.h). Each branch that keeps threads from a
// collective then votes which threads take its side, or stay in a loop.
//
// A barrier waits for the threads of the threadgroup that have not returned. If a branch keeps some threads of a
// simdgroup from any further barrier, they must not wait for the others at the end of code that both execute. Such
// threads get a copy of that code, which ends in an exit.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <string>

#include "compiler/ir/convergence_point.h"

namespace kiln {

// The masks at one collective.
struct SimdgroupMask {
  llvm::Value* named = nullptr;   // threads that the hardware waits for; may include returned ones
  llvm::Value* active = nullptr;  // threads that take part
  bool is_prefix = false;         // no active lane comes after a missing one
};

struct Masks {
  llvm::DenseMap<llvm::CallInst*, SimdgroupMask> at;  // for each collective
  // Whether the threads of a simdgroup reach barriers together, except for those that are about to return.
  bool barriers_are_uniform = true;
  std::string refusal;  // why masks cannot be found; else empty
};

/// Inserts votes, and exits before barriers. `body`'s index must be separated (kernel_entry.h).
Masks find_masks(llvm::Function& body, llvm::ArrayRef<ConvergencePoint> points);

}  // namespace kiln
