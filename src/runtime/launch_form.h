// What code may be made for of a launch's extents. Many launches have one form, and few forms are met.
#pragma once

#include <cstdint>

#include "core/kernel_unit.h"
#include "core/launch_geometry.h"

namespace kiln {

// As the members of these names in KernelUnit.
struct LaunchForm {
  bool rows_are_simdgroups = false;
  bool rows_are_runs = false;  // also where threads may wait
  uint32_t simdgroups = 0;     // also where no thread may wait
  bool is_whole_row = false;
  bool simdgroups_are_full = false;  // also where no thread works with others

  bool operator==(const LaunchForm&) const = default;
};

LaunchForm launch_form(const Extent3& grid, const Extent3& threadgroup);

struct LaunchExtents {
  Extent3 grid{1, 1, 1};
  Extent3 threadgroup{1, 1, 1};

  bool operator==(const LaunchExtents&) const = default;
};

/// A small launch of that form, always the same.
LaunchExtents example_of(const LaunchForm& form);

/// Makes the unit serve launches of any form. Whether it did not.
bool forget_launch_form(KernelUnit& unit);

}  // namespace kiln
