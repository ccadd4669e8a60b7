// What engines have in common on the way from the code of one thread to code for a launch.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
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

/// An empty function for a launch, which returns nothing, with the attributes that `body` has as a function.
llvm::Function& add_function(llvm::Function& body, const char* name, llvm::ArrayRef<llvm::Type*> parameters);

/// One that calls `body`, kBodyFunction or a copy, once: its first parameters are the launch and what the engine knows
/// of the thread, behind them are `others`.
llvm::Function& add_caller(llvm::Function& body, const char* name, llvm::ArrayRef<llvm::Type*> others,
                           const KernelUnit& unit);

/// The loads of the arguments in `launch` (CpuLaunch) that kBodyFunction takes: what is known of them is said.
llvm::SmallVector<llvm::Value*> load_arguments(llvm::IRBuilder<>& builder, llvm::Value* launch, const KernelUnit& unit);

/// What a thread that waits has in its record does not change while it runs; a row of threads shares one.
void describe_record_load(llvm::LoadInst& load, CpuImageKind kind);

/// What is known of a number of threads or threadgroups in a record: a launch that runs has one at least. Without it
/// LLVM would see loops that never end: `i += threads` with none.
void set_range_of_size(llvm::LoadInst& load, uint64_t thread_value);

/// The values that attributes come from are read from the thread's record.
void lower_values(llvm::Function& body, llvm::Value* record, CpuImageKind kind);

/// Threadgroup variables are places in memory that belongs to the threadgroup. Returns how many bytes they need.
uint64_t lower_threadgroup_memory(llvm::Module& module, llvm::Function& body, llvm::Value* record, CpuImageKind kind);

}  // namespace kiln
