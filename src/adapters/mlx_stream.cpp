#include "adapters/mlx_stream.h"

#include <mlx/device.h>

#include <atomic>
#include <type_traits>
#include <variant>

#include "core/settings.h"
#include "core/text.h"
#include "kiln/error.h"

namespace mx = ::mlx::core;

namespace kiln {

mx::Stream stream_for(std::string_view interface, const mx::StreamOrDevice& wanted,
                      const std::function<void(const std::string&)>& warn) {
  auto is_missing = [](mx::Device device) { return device == mx::Device::gpu && !mx::is_available(device); };
  bool missing = std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return is_missing(mx::default_device());
        else if constexpr (std::is_same_v<T, mx::Device> || std::is_same_v<T, mx::Device::DeviceType>)
          return is_missing(mx::Device(value));
        else
          return is_missing(value.device);
      },
      wanted);
  if (!missing) return mx::to_stream(wanted);
  if (settings().strict_device)
    throw UnsupportedError(concat("[", interface,
                                  "] The kernel is to run on MLX's GPU, and MLX has no GPU here. Without ",
                                  "KILN_STRICT_DEVICE=1 it would run on the CPU."));
  static std::atomic<bool> warned = false;
  if (!warned.exchange(true))
    warn(concat("[", interface, "] MLX has no GPU here: kernels that are to run on it run on the CPU. ",
                "KILN_STRICT_DEVICE=1 makes this an error."));
  return mx::default_stream(mx::Device::cpu);
}

Device device_of(const mx::Stream& stream) {
  if (stream.device == mx::Device::cpu) return {};
  return {DeviceKind::kNvidia, stream.device.index};
}

}  // namespace kiln
