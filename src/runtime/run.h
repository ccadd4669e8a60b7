// A launch, from look-up to the end of its last thread.
#pragma once

#include <span>

#include "runtime/kernel.h"

namespace kiln {

/// Runs a call that Kernel::check has accepted. `output_data` has a pointer for each output, to as many bytes as its
/// shape and dtype need; all of them are written only by this launch while it runs. Throws CompileError,
/// UnsupportedError, DeviceError, std::bad_alloc; the contents of the outputs are unspecified then.
void run(Kernel& kernel, const Call& call, std::span<void* const> output_data);

/// The same with code that was found before (`Kernel::find_or_compile`), on whichever thread.
void launch(Kernel& kernel, const Kernel::Found& found, const Call& call, std::span<void* const> output_data);

}  // namespace kiln
