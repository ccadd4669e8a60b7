#include "runtime/launch_form.h"

#include <algorithm>
#include <bit>

namespace kiln {

LaunchForm launch_form(const Extent3& grid, const Extent3& threadgroup) {
  auto threads = [&](size_t d) { return std::min(grid[d], threadgroup[d]); };
  LaunchForm form;
  if (threads(0) <= 0 || threads(0) % kSimdgroupSize != 0) return form;
  bool is_row = threads(1) == 1 && threads(2) == 1;
  // At an edge of the grid, too.
  form.rows_are_simdgroups = grid[0] % kSimdgroupSize == 0 || is_row;
  form.rows_are_runs = form.rows_are_simdgroups && threads(0) % (2 * kSimdgroupSize) == 0;
  // Powers of two, so that there are few.
  auto count = static_cast<uint32_t>(threads(0) / kSimdgroupSize);
  if (is_row && std::has_single_bit(count)) form.simdgroups = count;
  form.is_whole_row = grid[1] == 1 && grid[2] == 1 && grid[0] % threads(0) == 0;
  return form;
}

LaunchExtents example_of(const LaunchForm& form) {
  if (!form.rows_are_simdgroups) return {};
  constexpr int64_t kNoPowerOfTwo = 3;
  int64_t threads = kSimdgroupSize * (form.simdgroups > 0 ? form.simdgroups : kNoPowerOfTwo << form.rows_are_runs);
  return {{form.is_whole_row ? threads : threads + 1, 1, 1}, {threads, 1, 1}};
}

bool forget_launch_form(KernelUnit& unit) {
  bool had_one = unit.rows_are_simdgroups || unit.rows_are_runs || unit.simdgroups > 0 || unit.is_whole_row;
  unit.rows_are_simdgroups = unit.rows_are_runs = unit.is_whole_row = false;
  unit.simdgroups = 0;
  return had_one;
}

}  // namespace kiln
