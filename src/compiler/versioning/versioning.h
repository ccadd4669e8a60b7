// Versioning on hoisted checks: code exists twice, and what its likely checks follow from, evaluated once before it,
// selects the copy that does without them.
//
// Each access checks whether its lanes are consecutive and pass its guard, and has a slow path for divergent lanes
// (widener_checks.h). What is evaluated before a region of code often answers this for all of its accesses. The fast
// copy has no branches then, and keeps no registers live for paths that are never taken.
//
// This is one mechanism at four scopes: a loop, the loop over the halves of 64 coarsened threads, a threadgroup's
// function (loop_versioning.h) and a simdgroup's function (function_versioning.h). A scope says which checks it hoists
// and by which analysis, and how its copies are made and selected.
//
// Rejected: one analysis for all. In loops ScalarEvolution expands the check of the first and the last iteration. In a
// simdgroup's function there is nothing to evolve, but checks of accesses at constant distances become one; there the
// checks' own instructions move.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <cstddef>

namespace kiln {

class VersioningScope {
 public:
  virtual ~VersioningScope() = default;
  VersioningScope(const VersioningScope&) = delete;
  VersioningScope& operator=(const VersioningScope&) = delete;

  /// Versions the code, unless too few of the checks can be hoisted. Returns whether it has.
  bool version(llvm::ArrayRef<llvm::BranchInst*> checks);

 protected:
  VersioningScope() = default;

  /// Collects what must hold before the code for the check's condition to have the value. Returns false, and collects
  /// nothing, if that is not known.
  virtual bool require(llvm::BranchInst& check, bool value) = 0;
  /// Whether the check may stay in the fast copy, since it is not hoisted.
  virtual bool may_keep(llvm::BranchInst& check) = 0;
  virtual bool is_enough(size_t hoisted) = 0;
  /// Makes the copy, where it must not contain what `expand` emits.
  virtual void copy() {}
  /// Emits the conjunction of what was collected.
  virtual llvm::Value* expand() = 0;
  /// Runs the fast copy if the condition holds, else the slow one.
  virtual void select(llvm::Value* condition) = 0;
  virtual llvm::BranchInst& in_fast_copy(llvm::BranchInst& check) { return check; }
};

/// The block's check: its branch, if that has a likely edge; else null.
llvm::BranchInst* check_of(llvm::BasicBlock& block);

llvm::SmallVector<llvm::BranchInst*> checks_of(llvm::Function& function);

/// From `at` on code runs if the condition holds, and else `slow`. Returns the branch.
llvm::BranchInst& branch_at(llvm::Instruction& at, llvm::Value* condition, llvm::BasicBlock& slow);

}  // namespace kiln
