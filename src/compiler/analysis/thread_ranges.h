// Compile-time ranges of the values that a thread reads of its launch.
#pragma once

#include <llvm/IR/ConstantRange.h>

#include <cstdint>

#include "core/kernel_unit.h"
#include "core/launch_geometry.h"
#include "core/thread_values.h"

namespace kiln {

/// Spec 3.1: the launch refuses more.
inline constexpr uint64_t kMostThreads{kMaxThreadsPerThreadgroup};

struct ThreadLimits {
  uint64_t extents[3] = {kMostThreads, kMostThreads, kMostThreads};  // the most threads of a threadgroup in x, y, z
  uint64_t threads = kMostThreads;
  bool are_known = false;  // of full threadgroups

  ThreadLimits() = default;
  explicit ThreadLimits(const KernelUnit& unit) {
    if (unit.form.has_known_threads()) {
      threads = 1;
      for (unsigned i = 0; i < 3; ++i) threads *= extents[i] = unit.form.threads[i];
      are_known = true;
      return;
    }
    if (unit.form.simdgroups == 0) return;
    threads = uint64_t{kSimdgroupSize} * unit.form.simdgroups;
    extents[0] = unit.form.width();
    extents[1] = threads / extents[0];
    extents[2] = 1;
  }

  /// The range of `__kiln_value(which)`.
  llvm::ConstantRange range(uint64_t which) const {
    auto between = [](uint64_t first, uint64_t last) {
      return llvm::ConstantRange::getNonEmpty(llvm::APInt(32, first), llvm::APInt(32, last + 1));
    };
    const ThreadValueRow* row = thread_value_row(which);
    if (!row) return llvm::ConstantRange::getFull(32);
    switch (row->value) {
      case kPositionInThreadgroup: return between(0, extents[which - row->value] - 1);
      case kThreadsPerThreadgroup: return between(1, extents[which - row->value]);
      case kFullThreadsPerThreadgroup: {
        const uint64_t extent = extents[which - row->value];
        return between(are_known ? extent : 1, extent);
      }
      case kIndexInThreadgroup: return between(0, threads - 1);
      default: return llvm::ConstantRange::getFull(32);
    }
  }
};

}  // namespace kiln
