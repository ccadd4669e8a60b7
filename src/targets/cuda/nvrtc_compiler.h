// CUDA bodies for NVIDIA GPUs: given to NVRTC, which is opened at the first compilation (docs/design/nvrtc.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/compiler.h"

namespace kiln {

/// How the compiler's identity begins.
inline constexpr std::string_view kNvrtcIdentity = "NVRTC ";

/// A compiler of CUDA units for DeviceKind::kNvidia: images of machine code where NVRTC knows the GPU, of PTX where the
/// GPU is newer. `header_folder`: where CUDA's headers may be kept that NVRTC brings, should a body need them and none
/// be installed; empty: nowhere. compile() and identity() throw MissingCompilerError where there is no NVRTC.
std::unique_ptr<Compiler> make_nvrtc_compiler(std::string header_folder);

/// What `python -m kiln doctor` says of NVRTC: version, file, headers. Throws MissingCompilerError.
std::string describe_nvrtc();

}  // namespace kiln
