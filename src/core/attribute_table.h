// The attributes that a Metal body may use as if they were variables (Metal specification, Table 5.8, for compute).
// The device library has a function of the same name for each (`src/device/engine/attributes.h`).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace kiln {

struct AttributeRow {
  std::string_view name;
  bool is_vector;  // uint3; otherwise uint
  // Whether it is another where the grid is divided into threadgroups in another way. Where a body has no such
  // attribute, rows of threads of neighbouring threadgroups may be run as one.
  bool knows_threadgroups;

  // No column has a default.
  constexpr AttributeRow(std::string_view name, bool is_vector, bool knows_threadgroups)
      : name(name), is_vector(is_vector), knows_threadgroups(knows_threadgroups) {}

  constexpr std::string_view type() const { return is_vector ? "uint3" : "uint"; }
};

// In alphabetical order, which is their order in a generated signature.
inline constexpr std::array<AttributeRow, 20> kAttributes = {{
    {"dispatch_quadgroups_per_threadgroup", false, true},
    {"dispatch_simdgroups_per_threadgroup", false, true},
    {"dispatch_threads_per_threadgroup", true, true},
    {"grid_origin", true, false},
    {"grid_size", true, false},
    {"quadgroup_index_in_threadgroup", false, true},
    {"quadgroups_per_threadgroup", false, true},
    {"simdgroup_index_in_threadgroup", false, true},
    {"simdgroups_per_threadgroup", false, true},
    {"thread_execution_width", false, false},
    {"thread_index_in_quadgroup", false, true},
    {"thread_index_in_simdgroup", false, true},
    {"thread_index_in_threadgroup", false, true},
    {"thread_position_in_grid", true, false},
    {"thread_position_in_threadgroup", true, true},
    {"threadgroup_position_in_grid", true, true},
    {"threadgroups_per_grid", true, true},
    {"threads_per_grid", true, false},
    {"threads_per_simdgroup", false, false},
    {"threads_per_threadgroup", true, true},
}};

static_assert([] {
  for (size_t i = 1; i < kAttributes.size(); ++i)
    if (!(kAttributes[i - 1].name < kAttributes[i].name)) return false;
  return true;
}());

}  // namespace kiln
