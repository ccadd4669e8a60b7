// A launch, from look-up to the end of its last thread; on a GPU, to its place in the stream.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kernel_object.h"
#include "targets/target.h"

namespace kiln {

/// Runs a call that KernelObject::check_sizes has accepted. `output_data` has a pointer for each output, to as many
/// bytes as its shape and dtype need, in the memory of the call's device; all of them are written only by this launch
/// while it runs. Throws ValueError, CompileError, UnsupportedError, DeviceError, OutOfMemory, Interrupted; the
/// contents of the outputs are unspecified then.
void run(KernelObject& kernel, const Call& call, std::span<void* const> output_data);

// What a thread keeps of a launch on a GPU's stream, so that the same one with other arrays is one call of the driver:
// nothing is checked, looked up, allocated or locked but the history. It is made at the second such launch.
class LaunchPlan;

/// The thread's plan for a call, or null. Where there is one, KernelObject::check_sizes has accepted such a call, and
/// run_again() serves. Whoever has it keeps it: another call that comes in between may take its place.
std::shared_ptr<LaunchPlan> find_plan(const KernelObject& kernel, const Call& call);

/// The same as run(), for a call of which find_plan() has given the plan.
void run_again(LaunchPlan& plan, KernelObject& kernel, const Call& call, std::span<void* const> output_data);

// Memory for row-contiguous copies of those inputs that are copied, in their order.
using InputCopies = std::vector<TargetMemory>;

/// For a call that KernelObject::check has accepted. Throws OutOfMemory.
InputCopies allocate_copies(const KernelObject& kernel, const Call& call);

/// Throws ValueError where an input that the code writes overlaps another array of the call. Part of run() and
/// launch(); for those who must know before a launch is on its way. Inputs have their data.
void check_written_inputs(const KernelObject& kernel, const Variant& variant, const Call& call,
                          std::span<void* const> output_data);

/// The same as run() with code that was found before (`KernelObject::find_or_compile`) and memory that was allocated
/// before for a call with the same arrays, on whichever thread. Where the code says that it cannot fail, nothing is
/// allocated any more that could be large. `stop`: by which another thread ends it; Interrupted is thrown then.
void launch(KernelObject& kernel, const KernelObject::Found& found, const Call& call,
            std::span<void* const> output_data, const InputCopies& copies, LaunchStop* stop = nullptr);

}  // namespace kiln
