#include "targets/cpu/launch_attendant.h"

namespace kiln {

// The word of a thread without a scope is that of the whole launch.
uint32_t attend_to_launch(const CpuLaunch* launch) {
  auto* scope = static_cast<InterruptibleScope*>(launch->attendant);
  return scope ? scope->attend() : 1;
}

}  // namespace kiln
