// The device library: the text of the types and functions that a kernel can use.
//
// Kiln's build compiles it into one Clang precompiled header for each dialect and embeds these in this library. Clang
// deserialises only the declarations that a kernel uses. Rejected: parsing the text for each kernel. Even with only the
// parts that a kernel's names need, the smallest kernel took 11 ms instead of 4 (see `docs/design/compiler.md`). Two
// things depend on the kernel and cannot be precompiled: the swizzles that it names, and functions that give way when
// a header defines its own.
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

/// Name of the file that includes every precompiled part of a dialect, and its text, which also asserts that the
/// library and this program agree.
inline constexpr const char* kDeviceLibraryFile = "kiln/device_library.h";
std::string device_library_umbrella(Dialect dialect);

/// The dialect's precompiled library; empty in kiln_precompile, which builds it.
std::string_view precompiled_device_library(Dialect dialect);

/// The text between the precompiled library and a kernel. Metal: the swizzles that the unit names, and the parts below
/// `after/` whose names it mentions but does not declare. CUDA: included headers that are not precompiled.
std::string text_before_kernel(const KernelUnit& unit);

/// A digest of the whole library; it is part of a compiled kernel's identity.
std::string device_library_digest();

}  // namespace kiln
