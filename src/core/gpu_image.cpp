#include "core/gpu_image.h"

namespace kiln {
namespace {

struct Place {
  uint32_t bytes, alignment;
};

Place place_of(const KernelUnit& unit, const KernelParameter& parameter) {
  bool metal = unit.dialect == Dialect::kMetal;
  uint32_t dimensions = metal ? kPaddedDimensions : kMaxCudaDimensions;
  Place place{};
  switch (parameter.role) {
    case ParameterRole::kInput:
    case ParameterRole::kOutput: place = {metal ? uint32_t{sizeof(GpuArgument)} : 8, 8}; break;
    case ParameterRole::kShape: place = {dimensions * 4, 4}; break;
    case ParameterRole::kStrides: place = {dimensions * 8, 8}; break;
    case ParameterRole::kNdim: place = {4, 4}; break;
  }
  if (metal) place.alignment = 8;
  if (metal && !parameter.values.empty()) place.bytes = 0;
  return place;
}

uint32_t round_up(uint32_t bytes, uint32_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

GpuBlockLayout gpu_block_layout(const KernelUnit& unit) {
  GpuBlockLayout layout;
  layout.bytes = unit.dialect == Dialect::kMetal ? sizeof(GpuGeometry) : 0;
  for (const KernelParameter& parameter : unit.parameters) {
    Place place = place_of(unit, parameter);
    layout.bytes = round_up(layout.bytes, place.alignment);
    layout.offsets.push_back(layout.bytes);
    layout.bytes += place.bytes;
  }
  layout.bytes = round_up(layout.bytes, 8);
  return layout;
}

}  // namespace kiln
