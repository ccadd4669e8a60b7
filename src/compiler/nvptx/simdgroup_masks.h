// Which threads of a simdgroup execute one instance of an exchange, on hardware where each goes its own way.
//
// An instruction that exchanges values names its threads and waits for them. Who they are is known, not asked for
// (what the hardware calls active promises nothing), in one of two ways.
//
// All exchanges stand where those threads that will come to one come together, however they part between: most bodies.
// The threads are those that the launch has, and where a branch keeps some from any further exchange, those that it
// does not, by a vote there. The control flow stays as it is.
//
// Otherwise it is structured (analysis/structured_flow.h), and each branch that keeps threads from an exchange votes:
// who takes its side, and who stays in a loop.
//
// A barrier waits for the threads of the threadgroup that have not returned. Where a branch keeps some threads of a
// simdgroup from any further barrier, they must not wait for the others at the end of what both do: what they still do
// becomes code of its own, which ends in an exit.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <string>

#include "compiler/ir/convergence_point.h"

namespace kiln {

// At one exchange.
struct SimdgroupMask {
  llvm::Value* named = nullptr;   // whom the hardware waits for; may name threads that have returned
  llvm::Value* active = nullptr;  // who takes part
  bool is_prefix = false;         // no lane of these comes behind one that is missing
};

struct Masks {
  llvm::DenseMap<llvm::CallInst*, SimdgroupMask> at;  // each exchange
  // Whether the threads of a simdgroup come to barriers together, but for those that are about to return.
  bool barriers_are_uniform = true;
  std::string refusal;  // why it cannot be done, or nothing
};

/// `body`'s index is separated (kernel_entry.h). Inserts the votes, and exits before barriers.
Masks find_masks(llvm::Function& body, llvm::ArrayRef<ConvergencePoint> sites);

}  // namespace kiln
