// What engines have in common on the way from the code of one thread to code for a launch.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <cstdint>
#include <initializer_list>

#include "core/cpu_image.h"
#include "core/kernel_unit.h"

namespace kiln {

void inline_into_callers(llvm::Module& module, std::initializer_list<llvm::Function*> functions);

/// What the function's variables need on the stack, in bytes.
uint64_t stack_of(const llvm::Function& function);

/// The most that a function of the module needs there, without what those that it calls do.
uint64_t largest_stack(const llvm::Module& module);

/// Whether a loop looks at an atomic again and again, as who waits for another threadgroup does.
bool may_spin(llvm::Function& body);

/// The call of kBodyFunction in `function`, or of `name`.
llvm::CallInst& call_of_body(llvm::Function& function);

/// Describes the loads of a launch's arguments in `thread`, which calls the body with them: they do not change while it
/// runs, whatever threads write, and some point to memory that is always there.
void describe_arguments(llvm::Function& thread, const KernelUnit& unit);

/// Arguments are read before the loop over threads, so that what is computed from them can leave it too.
void hoist_arguments(llvm::Function& row);

/// What a thread that waits has in its record does not change while it runs; a row of threads shares one.
void describe_record_load(llvm::LoadInst& load, CpuImageKind kind);

/// The values that attributes come from are read from the thread's record.
void lower_values(llvm::Function& body, llvm::Value* record, CpuImageKind kind);

/// Threadgroup variables are places in memory that belongs to the threadgroup. Returns how many bytes they need.
uint64_t lower_threadgroup_memory(llvm::Module& module, llvm::Function& body, llvm::Value* record, CpuImageKind kind);

/// A third of what -O2 costs, for code that is as good: one function, everything inlined, no vectorising.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace kiln
