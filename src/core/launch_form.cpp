#include "core/launch_form.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace kiln {

LaunchForm launch_form(const Extent3& grid, const Extent3& threadgroup) {
  auto threads = [&](size_t d) { return std::min(grid[d], threadgroup[d]); };
  LaunchForm form;
  // What divides each side of a threadgroup, those at the edges of the grid too.
  int64_t divisor = 1;
  for (size_t d = 0; d < 3; ++d) divisor *= std::gcd(grid[d], threads(d));
  form.simdgroups_are_full = divisor > 0 && divisor % kSimdgroupSize == 0;
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
  if (!form.rows_are_simdgroups) {
    if (!form.simdgroups_are_full) return {};
    constexpr Extent3 kSquare{8, 4, 1};
    return {kSquare, kSquare};
  }
  constexpr int64_t kNoPowerOfTwo = 3;
  int64_t threads = kSimdgroupSize * (form.simdgroups > 0 ? form.simdgroups : kNoPowerOfTwo << form.rows_are_runs);
  Extent3 threadgroup{threads, 1, 1};
  if (form.is_whole_row) return {threadgroup, threadgroup};
  return {form.simdgroups_are_full ? Extent3{threads, 2, 1} : Extent3{threads + 1, 1, 1}, threadgroup};
}

}  // namespace kiln
