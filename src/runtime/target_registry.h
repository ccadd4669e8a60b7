// The targets that there are, a row each: how one is made, and which names of architectures are its own.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "core/compiler.h"
#include "kiln/device.h"
#include "targets/target.h"

namespace kiln {

struct TargetEntry {
  DeviceKind kind;
  /// The target of the device `index` of this kind. Throws DeviceError, UnsupportedError where the machine has no such
  /// device that serves.
  std::unique_ptr<Target> (*make)(int index);
  /// Whether code can be made for an architecture of this name, whatever this machine has.
  bool (*has_architecture)(std::string_view name);
  /// Those names, as messages list them.
  std::string_view architectures;
  /// Whether KILN_CPU_ENGINE chooses an engine.
  bool has_engines;
};

const TargetEntry& entry_of(DeviceKind kind);

/// What code is made for where it is named: "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "sm_90" and the other
/// names of NVIDIA's GPUs from sm_80 on. Throws ValueError for other names.
TargetSpec target_named(std::string_view architecture);

}  // namespace kiln
