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

  constexpr std::string_view type() const { return is_vector ? "uint3" : "uint"; }
};

// In alphabetical order, which is their order in a generated signature.
inline constexpr std::array<AttributeRow, 20> kAttributes = {{
    {"dispatch_quadgroups_per_threadgroup", false},
    {"dispatch_simdgroups_per_threadgroup", false},
    {"dispatch_threads_per_threadgroup", true},
    {"grid_origin", true},
    {"grid_size", true},
    {"quadgroup_index_in_threadgroup", false},
    {"quadgroups_per_threadgroup", false},
    {"simdgroup_index_in_threadgroup", false},
    {"simdgroups_per_threadgroup", false},
    {"thread_execution_width", false},
    {"thread_index_in_quadgroup", false},
    {"thread_index_in_simdgroup", false},
    {"thread_index_in_threadgroup", false},
    {"thread_position_in_grid", true},
    {"thread_position_in_threadgroup", true},
    {"threadgroup_position_in_grid", true},
    {"threadgroups_per_grid", true},
    {"threads_per_grid", true},
    {"threads_per_simdgroup", false},
    {"threads_per_threadgroup", true},
}};

static_assert([] {
  for (size_t i = 1; i < kAttributes.size(); ++i)
    if (!(kAttributes[i - 1].name < kAttributes[i].name)) return false;
  return true;
}());

}  // namespace kiln
