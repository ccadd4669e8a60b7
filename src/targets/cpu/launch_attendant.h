// How the threads of a launch on the CPU learn that it is to end (`core/interruption.h`).
#pragma once

#include <cstdint>

#include "core/cpu_image.h"
#include "core/interruption.h"

namespace kiln {

/// CpuAttendFunction.
uint32_t attend_to_launch(const CpuLaunch* launch);

/// Whether the launch is to end. One load as a rule.
inline bool is_ended(const CpuLaunch& launch) {
  return __atomic_load_n(launch.poll_word, __ATOMIC_RELAXED) != 0 && attend_to_launch(&launch) != 0;
}

/// `launch` as the thread in `scope` runs it, or with null as another one does.
inline void set_attendant(CpuLaunch& launch, const LaunchStop& stop, InterruptibleScope* scope) {
  launch.poll_word = scope ? scope->poll_word() : stop.word();
  launch.attendant = scope;
}

}  // namespace kiln
