#include "frontend/cooperation.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace kiln {
namespace {

// Beginnings of names. Those of cooperative groups cannot be called without naming their namespace.
constexpr std::string_view kMetalBarriers[] = {"threadgroup_barrier"};
constexpr std::string_view kMetalCollectives[] = {"simd", "quad_"};
constexpr std::string_view kCudaBarriers[] = {"__syncthreads", "__barrier_sync", "cooperative_groups"};
constexpr std::string_view kCudaCollectives[] = {"__shfl",  "__ballot", "__any_sync", "__all_sync",
                                                 "__match", "__reduce", "__syncwarp", "__activemask"};

bool uses_any(const KernelText& text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(text.identifiers(), [&](std::string_view name) {
    return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
  });
}

}  // namespace

Cooperation cooperation_of(Dialect dialect, const KernelText& text) {
  // Any name may be pasted together.
  if (text.pastes_tokens()) return {.waits_at_barriers = true, .has_collectives = true};
  const bool is_metal = dialect == Dialect::kMetal;
  Cooperation found;
  found.waits_at_barriers = is_metal ? uses_any(text, kMetalBarriers) : uses_any(text, kCudaBarriers);
  found.has_collectives =
      found.waits_at_barriers || (is_metal ? uses_any(text, kMetalCollectives) : uses_any(text, kCudaCollectives));
  return found;
}

}  // namespace kiln
