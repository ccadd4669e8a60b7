// Guards of accesses: an access of one thread has a select as its address, between the address in the array and memory
// that any thread may access (lowering/bounds_guards.h). Pure functions of the thread's code, in constant time.
#pragma once

#include <llvm/IR/Instructions.h>

#include <optional>

#include "compiler/analysis/structured_flow.h"

namespace kiln::widening {

using namespace llvm;

// A guarded address: `address` if `allowed` holds, else memory of zeros or a sink. Null if there is no guard.
struct GuardedAddress {
  Value* allowed;
  Value* address;
};

// A guard that compares a lane's offset with a uniform limit.
struct LaneGuard {
  Value *offset, *limit;
};

/// Of a load's pointer.
std::optional<GuardedAddress> guarded(Value* pointer);

/// Of a load, a store or an atomic operation. Without a guard `allowed` is null.
GuardedAddress guarded_address_of(Instruction& access);

/// `allowed` may be null.
std::optional<LaneGuard> lane_guard_of(Value* allowed, const StructuredFlow& flow);

}  // namespace kiln::widening
