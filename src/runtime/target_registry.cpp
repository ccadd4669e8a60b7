#include "runtime/target_registry.h"

#include <iterator>
#include <string>

#include "core/device_traits.h"
#include "core/settings.h"
#include "core/text.h"
#include "kiln/error.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cuda/cuda_target.h"

namespace kiln {
namespace {

constexpr TargetEntry kTargets[] = {
    {DeviceKind::kCpu, make_cpu_target, is_processor_level, "x86-64, x86-64-v2, x86-64-v3, x86-64-v4",
     /*has_engines=*/true},
    {DeviceKind::kNvidia, make_cuda_target, is_gpu_architecture, "that of an NVIDIA GPU from sm_80 on",
     /*has_engines=*/false},
};

static_assert(std::size(kTargets) == kDeviceKinds);
static_assert([] {
  for (size_t row = 0; row < kDeviceKinds; ++row)
    if (static_cast<size_t>(kTargets[row].kind) != row) return false;
  return true;
}());

}  // namespace

const TargetEntry& entry_of(DeviceKind kind) { return kTargets[static_cast<size_t>(kind)]; }

TargetSpec target_named(std::string_view architecture) {
  const Settings& chosen = settings();
  std::string known;
  for (const TargetEntry& entry : kTargets) {
    if (entry.has_architecture(architecture))
      return {entry.kind, std::string(architecture), entry.has_engines ? chosen.cpu_engine : std::string(),
              chosen.passes, chosen.pass_limit};
    known += concat(known.empty() ? "" : ", or ", entry.architectures);
  }
  throw ValueError(concat("Expected an architecture to be ", known, ", but got `", architecture, "`."));
}

}  // namespace kiln
