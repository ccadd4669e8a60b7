#include "frontend/cooperation.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "core/attribute_table.h"

namespace kiln {
namespace {

// Beginnings of names. Those of cooperative groups cannot be called without naming their namespace.
constexpr std::string_view kMetalBarriers[] = {"threadgroup_barrier"};
constexpr std::string_view kMetalCollectives[] = {"simd", "quad_"};
constexpr std::string_view kCudaBarriers[] = {"__syncthreads", "__barrier_sync", "cooperative_groups"};
constexpr std::string_view kCudaCollectives[] = {"__shfl",  "__ballot", "__any_sync", "__all_sync",
                                                 "__match", "__reduce", "__syncwarp", "__activemask"};

// Beginnings of names by which a Metal body sees threadgroups, beside attributes, barriers and collectives. Those with
// two underscores are the language's own, and may be anything.
constexpr std::string_view kMetalSights[] = {"_Atomic", "__", "threadgroup", "volatile"};

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

bool sees_threadgroups(Dialect dialect, const KernelText& text) {
  if (dialect != Dialect::kMetal || cooperation_of(dialect, text) != Cooperation()) return true;
  auto is_named = [&](const AttributeRow& attribute) {
    return attribute.knows_threadgroups && std::ranges::binary_search(text.identifiers(), attribute.name);
  };
  return std::ranges::any_of(kAttributes, is_named) || uses_any(text, kMetalSights) ||
         std::ranges::any_of(text.identifiers(),
                             [](std::string_view name) { return name.find("atomic") != std::string_view::npos; });
}

}  // namespace kiln
