// Links a relocatable object into an image that runs at any address (`core/cpu_image.h`).
//
// This is the small part of a linker that such code needs. It lays out sections one after the other and resolves
// PC-relative relocations. Each imported function gets a stub that jumps through a slot, which the loader fills. Code
// that would need more (writable data, absolute symbols, thread-local storage) is refused: a kernel has none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/ir/engine_output.h"

namespace kiln {

/// Throws InternalError for an object that no image can hold.
std::vector<std::byte> write_image(const char* object, size_t object_bytes, const EngineOutput& engine);

}  // namespace kiln
