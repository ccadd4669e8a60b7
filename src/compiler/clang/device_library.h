// The device library: what stands around a kernel, as text.
//
// It is compiled when Kiln is built, into one of Clang's precompiled headers, which is embedded in this library; a
// kernel's compilation deserialises only what the kernel uses. Parsing the text each time was the alternative: with
// only the parts that a kernel's names ask for it cost 11 ms for the smallest kernel, against 4 (see
// `docs/design/compiler.md`). Two things cannot be precompiled, because they depend on the kernel:
// the swizzles that it names, and functions that step back where a header defines its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/kernel_unit.h"

namespace kiln {

struct DeviceLibraryPart {
  std::string_view name;  // path below src/device: "metal_stdlib/vec.h"
  std::string_view text;
};

/// All parts. Those below `after/` are not precompiled; those below `cuda/` and `nvrtc/` are CUDA's alone.
std::span<const DeviceLibraryPart> device_library();

/// Name of the file that includes every part of a dialect that is precompiled, and its text, which also checks that the
/// library and this program agree.
inline constexpr const char* kDeviceLibraryFile = "kiln/device_library.h";
std::string device_library_umbrella(Dialect dialect);

/// The dialect's precompiled library; empty in the program that makes it.
std::string_view precompiled_device_library(Dialect dialect);

/// What comes between the precompiled library and a kernel. Metal: the swizzles that the unit names, and the parts
/// below `after/` whose names it mentions and does not declare itself. CUDA: what it includes and is not precompiled.
std::string text_before_kernel(const KernelUnit& unit);

/// A digest of the whole library: part of what identifies a compiled kernel.
std::string device_library_digest();

}  // namespace kiln
