// What stands before a CUDA unit for NVRTC: the names of docs/language.md 1.6, as text.
//
// CUDA's own headers for them cost up to a second for each kernel. So a unit gets Kiln's lean declarations of those
// that it mentions, and CUDA's headers only where its text includes some itself, names `cuda::…`, or does not compile
// without. Both kinds never stand in one text, since the types of one are not those of the other.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel_unit.h"

namespace kiln {

struct NvrtcDevicePart {
  std::string_view name;  // file below src/device/nvrtc
  std::string_view text;
  std::string_view digest;  // the text's SHA-256: taking it would take as long as all else of finding code on disk
};

/// All parts; made from the files when Kiln is built.
std::span<const NvrtcDevicePart> nvrtc_device_parts();

/// Whether the unit's text asks for CUDA's headers.
bool asks_for_cuda_headers(const KernelUnit& unit);

struct NvrtcPrefix {
  std::string text;
  // Whether it declares what CUDA's headers declare too, perhaps less of it than the unit needs.
  bool is_lean = false;
};

/// With lean declarations, or with CUDA's headers.
NvrtcPrefix nvrtc_prefix(const KernelUnit& unit, bool with_cuda_headers);

/// A digest of all that nvrtc_prefix() writes, and of the options that NVRTC gets.
std::string nvrtc_device_digest(const std::vector<std::string>& options);

}  // namespace kiln
