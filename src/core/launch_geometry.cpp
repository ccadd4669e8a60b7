#include "core/launch_geometry.h"

#include <algorithm>

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

std::string show(const Extent3& e) { return concat("(", e[0], ", ", e[1], ", ", e[2], ")"); }

}  // namespace

LaunchGeometry divide_grid(std::string_view interface_name, Dialect dialect, const Extent3& grid,
                           const Extent3& threadgroup) {
  constexpr int64_t kMax = kMaxThreadsOfGrid;
  for (int d = 0; d < 3; ++d) {
    if (grid[d] < 0 || grid[d] > kMax)
      throw ValueError(concat("[", interface_name, "] Expected each dimension of `grid` to be in [0, ", kMax,
                              "] but got ", show(grid), "."));
    if (threadgroup[d] <= 0 || threadgroup[d] > kMax)
      throw ValueError(concat("[", interface_name, "] Expected each dimension of `threadgroup` to be in [1, ", kMax,
                              "] but got ", show(threadgroup), "."));
  }
  // Each factor is below 2^31, so the product of two fits.
  int64_t plane = threadgroup[0] * threadgroup[1];
  if (plane > kMaxThreadsPerThreadgroup || plane * threadgroup[2] > kMaxThreadsPerThreadgroup)
    throw ValueError(concat("[", interface_name, "] Expected `threadgroup` to have at most ", kMaxThreadsPerThreadgroup,
                            " threads but got ", show(threadgroup), "."));

  LaunchGeometry geometry;
  geometry.threadgroups = 1;
  for (int d = 0; d < 3; ++d) {
    int64_t group = std::max<int64_t>(1, std::min(grid[d], threadgroup[d]));
    int64_t groups = (grid[d] + group - 1) / group;
    int64_t threads = dialect == Dialect::kCuda ? groups * group : grid[d];
    geometry.threads_per_grid[d] = static_cast<uint32_t>(threads);
    geometry.threads_per_threadgroup[d] = static_cast<uint32_t>(group);
    geometry.threadgroups_per_grid[d] = static_cast<uint32_t>(groups);
    if (__builtin_mul_overflow(geometry.threadgroups, static_cast<uint64_t>(groups), &geometry.threadgroups) ||
        geometry.threadgroups > (uint64_t{1} << 62))
      throw ValueError(concat("[", interface_name, "] Expected `grid` to have at most 2^62 threadgroups but got ",
                              show(grid), " in threadgroups of ", show(threadgroup), "."));
  }
  if (geometry.threadgroups > 0 && *std::ranges::max_element(geometry.threads_per_grid) > kMax)
    throw ValueError(concat("[", interface_name, "] Expected each dimension of `grid`, in whole blocks, to be in [0, ",
                            kMax, "] but got ", show(grid), " in blocks of ", show(threadgroup), "."));
  return geometry;
}

}  // namespace kiln
