// Which of two threads, or simdgroups, waits at the earlier instance of a wait (`core/cpu_image.h`).
#pragma once

#include <algorithm>
#include <cstdint>

#include "targets/cpu/image_loader.h"

namespace kiln {

/// Asked for each thread at each place.
inline bool same_instance(const CpuSite* sites, const CpuThread& a, const CpuThread& b) {
  if (a.site != b.site) return false;
  uint32_t depth = sites[a.site - 1].loop_depth;
  return depth == 0 || std::equal(a.counts, a.counts + depth, b.counts);
}

/// Paths compare lexicographically: for each loop its place and its iteration, at the end the call's place.
inline bool is_before(const LoadedImage& image, const CpuThread& a, const CpuThread& b) {
  const CpuSite& site_a = image.sites()[a.site - 1];
  const CpuSite& site_b = image.sites()[b.site - 1];
  auto path_a = image.path(site_a), path_b = image.path(site_b);
  for (uint32_t i = 0;; ++i) {
    if (path_a[i] != path_b[i]) return path_a[i] < path_b[i];
    if (i == site_a.loop_depth || i == site_b.loop_depth) return false;
    if (a.counts[i] != b.counts[i]) return a.counts[i] < b.counts[i];
  }
}

}  // namespace kiln
