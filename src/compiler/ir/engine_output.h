// What a CPU engine reports to the image writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/convergence_point.h"
#include "core/cpu_image.h"

namespace kiln {

// Values for the image's header. Functions are given by name, since their addresses are known only after linking.
struct EngineOutput {
  std::string engine;  // the engine's name
  std::string reason;  // why this engine was chosen
  CpuImageKind kind = CpuImageKind::kLoop;
  std::string run_function;
  std::string threadgroup_function;     // empty: there is none
  uint32_t threadgroup_simdgroups = 0;  // the number that it is made for; 0: any
  uint32_t threadgroup_width = 0;       // and the threadgroup's threads in x
  std::vector<ConvergencePoint> sites;
  std::vector<std::string> combine_functions;  // of each convergence point; empty: none
  uint64_t threadgroup_memory_bytes = 0;
  uint64_t frame_bytes = 0;
  uint64_t private_bytes = 0;  // of one thread: arrays and structures that are not in registers
  bool may_spin = false;
  bool uses_striped_locks = false;
  bool joins_rows = false;
  bool takes_rows = false;
  bool polls = false;
};

}  // namespace kiln
