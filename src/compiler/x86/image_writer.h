// A relocatable object to an image that runs wherever it is put (`core/cpu_image.h`).
//
// It is the small part of a linker that such code needs: sections one after the other, PC-relative relocations
// resolved, and a stub for each function from outside, which jumps through a slot that the loader fills. Code that
// would need more (writable data, absolute addresses, thread-local storage) is refused: a kernel has none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/ir/engine_output.h"

namespace kiln {

/// Throws InternalError for an object that no image can hold.
std::vector<std::byte> write_image(const char* object, size_t object_bytes, const EngineOutput& engine);

}  // namespace kiln
