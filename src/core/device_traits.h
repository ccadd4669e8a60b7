// What sets the kinds of devices apart, a row each. Code asks for the property that it depends on; kinds are compared
// nowhere else (tools/check_layers.py), so that a new kind is a row here and what the row cannot say: a target
// (runtime/target_registry.h) and a code generation (compiler/driver/factory.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "core/kernel_unit.h"
#include "kiln/device.h"

namespace kiln {

// Which part of a launch's form (core/launch_form.h) code is made for.
enum class FormUse : uint8_t {
  kSimdgroups,  // how simdgroups lie in threadgroups, where the SIMD engine is preferred
  kWholeRow,    // whether the launch is one row of equal threadgroups
};

struct DeviceTraits {
  DeviceKind kind;
  std::string_view title;  // as messages have it, with its article
  // Arrays lie in memory of its own. Numbers are copied there for a launch, a program's own tensors do not serve, and
  // strided arrays are made row-contiguous by their library or by a kernel.
  bool has_own_memory;
  // A launch goes on after the call, behind what was put on its stream before. Launches that are repeated have plans
  // (runtime/run.h).
  bool is_asynchronous;
  // CUDA bodies go to NVRTC, which has neither guards nor known shapes nor forms; elsewhere to libkiln_compiler.so.
  bool has_nvrtc;
  // Threadgroup memory whose size the call gives is part of the code, not of the launch.
  bool compiles_dynamic_memory;
  // Each thread of a simdgroup loads or stores up to 16 bytes by the same instruction; elsewhere vectors are split.
  bool has_vector_accesses;
  // Most dimensions of an input of a Metal body that uses its shape.
  size_t most_shape_dimensions;
  FormUse form_use;
};

inline constexpr DeviceTraits kDeviceTraits[] = {
    {.kind = DeviceKind::kCpu,
     .title = "a CPU",
     .has_own_memory = false,
     .is_asynchronous = false,
     .has_nvrtc = false,
     .compiles_dynamic_memory = true,
     .has_vector_accesses = false,
     .most_shape_dimensions = SIZE_MAX,
     .form_use = FormUse::kSimdgroups},
    {.kind = DeviceKind::kNvidia,
     .title = "an NVIDIA GPU",
     .has_own_memory = true,
     .is_asynchronous = true,
     .has_nvrtc = true,
     .compiles_dynamic_memory = false,
     .has_vector_accesses = true,
     .most_shape_dimensions = kPaddedDimensions,
     .form_use = FormUse::kWholeRow},
};

inline constexpr size_t kDeviceKinds = std::size(kDeviceTraits);

static_assert([] {
  for (size_t row = 0; row < kDeviceKinds; ++row)
    if (static_cast<size_t>(kDeviceTraits[row].kind) != row) return false;
  return true;
}());

constexpr const DeviceTraits& traits_of(DeviceKind kind) { return kDeviceTraits[static_cast<size_t>(kind)]; }
constexpr const DeviceTraits& traits_of(Device device) { return traits_of(device.kind); }

/// Whether NVIDIA's compiler makes the code of such kernels; libkiln_compiler.so makes that of all others.
constexpr bool is_for_nvrtc(Dialect dialect, DeviceKind kind) {
  return dialect == Dialect::kCuda && traits_of(kind).has_nvrtc;
}

}  // namespace kiln
