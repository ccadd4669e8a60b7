// Compile-time ranges of the values that a thread reads of its launch.
#pragma once

#include <llvm/IR/ConstantRange.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/kernel_unit.h"
#include "core/launch_geometry.h"
#include "core/thread_values.h"

namespace kiln {

/// Spec 3.1: the launch refuses more.
inline constexpr uint64_t kMostThreads{kMaxThreadsPerThreadgroup};
/// Along each axis, in whole blocks in CUDA.
inline constexpr uint64_t kMostThreadsOfGrid{kMaxThreadsOfGrid};

struct ThreadLimits {
  uint64_t extents[3] = {kMostThreads, kMostThreads, kMostThreads};  // the most threads of a threadgroup in x, y, z
  uint64_t threads = kMostThreads;
  bool are_known = false;          // of full threadgroups
  std::array<uint32_t, 3> grid{};  // the threads of the grid, or zeros

  ThreadLimits() = default;
  explicit ThreadLimits(const KernelUnit& unit) : grid(unit.known_grid) {
    if (unit.form.has_known_threads()) {
      threads = 1;
      for (unsigned i = 0; i < 3; ++i) threads *= extents[i] = unit.form.threads[i];
      are_known = true;
      return;
    }
    if (unit.form.simdgroups == 0) return;
    threads = uint64_t{kSimdgroupSize} * unit.form.simdgroups;
    std::ranges::copy(unit.form.full_threads(), extents);
  }

  /// The range of `__kiln_value(which)`.
  llvm::ConstantRange range(uint64_t which) const {
    const ThreadValueRow* row = thread_value_row(which);
    if (!row) return llvm::ConstantRange::getFull(32);
    const uint64_t i = which - row->value;
    switch (row->value) {
      case kPositionInThreadgroup: return between(0, most_threads(i) - 1);
      case kThreadsPerThreadgroup: return between(1, most_threads(i));
      case kFullThreadsPerThreadgroup: return between(are_known ? extents[i] : 1, most_threads(i));
      case kIndexInThreadgroup: return between(0, threads - 1);
      case kThreadsPerGrid: return between(has_known_grid() ? grid[i] : 1, most_of_grid(i));
      case kThreadgroupPosition: return between(0, most_threadgroups(i) - 1);
      case kThreadgroupsPerGrid:
        return between(has_known_grid() && are_known ? most_threadgroups(i) : 1, most_threadgroups(i));
      default: return llvm::ConstantRange::getFull(32);
    }
  }

  /// The range of the thread's position in the grid along an axis.
  llvm::ConstantRange position_in_grid(uint64_t axis) const { return between(0, most_of_grid(axis) - 1); }

 private:
  static llvm::ConstantRange between(uint64_t first, uint64_t last) {
    return llvm::ConstantRange::getNonEmpty(llvm::APInt(32, first), llvm::APInt(32, last + 1));
  }

  bool has_known_grid() const { return grid[0] > 0; }
  uint64_t most_threads(uint64_t axis) const {
    return has_known_grid() ? std::min<uint64_t>(extents[axis], grid[axis]) : extents[axis];
  }
  uint64_t most_of_grid(uint64_t axis) const { return has_known_grid() ? grid[axis] : kMostThreadsOfGrid; }
  uint64_t most_threadgroups(uint64_t axis) const {
    const uint64_t threads_of_grid = most_of_grid(axis);
    return are_known ? (threads_of_grid + extents[axis] - 1) / extents[axis] : threads_of_grid;
  }
};

}  // namespace kiln
