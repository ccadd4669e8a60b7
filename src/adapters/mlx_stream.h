// Where in MLX a kernel runs.
#pragma once

#include <mlx/stream.h>
#include <mlx/utils.h>

#include <functional>
#include <string>
#include <string_view>

#include "kiln/device.h"

namespace kiln {

/// The stream that `wanted` names. A stream or a device of a GPU that MLX does not have here becomes the CPU's: the
/// first time in a process `warn` is told so. Throws UnsupportedError for it with KILN_STRICT_DEVICE=1, and what `warn`
/// throws. `interface` ("metal_kernel") begins the message.
::mlx::core::Stream stream_for(std::string_view interface, const ::mlx::core::StreamOrDevice& wanted,
                               const std::function<void(const std::string&)>& warn);

/// What a stream's kernels run on.
Device device_of(const ::mlx::core::Stream& stream);

}  // namespace kiln
