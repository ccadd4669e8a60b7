// What code may be made for of a launch's extents. Many launches have one form, and few forms are met.
//
// The front end's unit carries the form to the compiler (core/kernel_unit.h), and the runtime finds code by it: in a
// process by packed(), on disk by a hash of that number. Both come from one function, which does not compile where a
// member is missing in it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/extent.h"

namespace kiln {

// The default serves launches of any form.
struct LaunchForm {
  // Whether rows of threads in x are whole simdgroups, but for the last one of the grid: the threadgroup's x is a
  // multiple of 32.
  bool rows_are_simdgroups = false;
  // Whether the threadgroup's x is a multiple of 64, too. Code is made for that where no thread may wait.
  bool rows_are_simdgroup_pairs = false;
  // Where a full threadgroup is one row, or a rectangle of `row_threads` a row, of 1, 2, 4, 8, 16 or 32 whole
  // simdgroups: how many. Else 0. Code is made for that where threads may wait for one another.
  uint32_t simdgroups = 0;
  // Whether a launch is one row of equal threadgroups, of whole simdgroups: the grid's y and z are 1, and its x is a
  // multiple of the threadgroup's x, which is one of 32. Code for a GPU is made for that.
  bool is_one_row = false;
  // Whether each simdgroup of a launch has 32 threads. Code is made for that where threads of a simdgroup may work
  // together, or rows are short.
  bool simdgroups_are_full = false;
  // Where all threadgroups of a launch have several rows of 2, 4, 8, 16 or 32 threads in x, and a simdgroup is whole
  // rows of one plane: how many threads. Of 64, 128, 256 or 512 as well if `simdgroups` is known. Else 0. Code is made
  // for that where threads may work together; where they do not, for rows of 2 to 16 threads.
  uint32_t row_threads = 0;
  // Whether the grid has 1 to 4, 8 or 16 threads in x, and its threadgroups several rows and at least 64 threads. Code
  // for a CPU is made for that where threads do not work together: a simdgroup has threads of several rows then (of 16
  // threads, on processors with mask registers).
  bool rows_are_short = false;
  // Whether all threadgroups are equal and a GPU's hardware has their positions: has_even_threadgroups(). Code for a
  // GPU is made for that; for a CPU, where threads may wait for one another and simdgroups are full.
  bool threadgroups_are_even = false;
  // Whether each input's address is a multiple of 16 and no input or output has 2 GiB or more. Code for a GPU is made
  // for that. Not of a launch's extents.
  bool arrays_are_plain = false;
  // The threads of a full threadgroup, where a body sees its threadgroup. Else zeros. Code for a GPU is made for that:
  // indices into tiles need no bounds checks then, and loops over a threadgroup's threads have known trip counts.
  std::array<uint16_t, 3> threads{};

  bool operator==(const LaunchForm&) const = default;

  /// The threads in x of a full threadgroup with a known number of simdgroups.
  uint32_t width() const { return row_threads ? row_threads : simdgroups * kSimdgroupSize; }

  /// The threads of a full threadgroup with a known number of simdgroups, in x, y and z.
  std::array<uint32_t, 3> full_threads() const {
    return {width(), static_cast<uint32_t>(simdgroups * kSimdgroupSize / width()), 1};
  }

  bool has_known_threads() const { return threads[0] > 0; }

  /// Whether code for this form serves every launch.
  bool is_general() const { return *this == LaunchForm(); }

  /// A number that no other form has. The counts of simdgroups and of a row's threads are 0 or powers of two; those of
  /// threads have 11 bits.
  constexpr uint64_t packed() const {
    const auto& [in_simdgroups, in_pairs, count, is_one_row, are_full, in_row, are_short, are_even, are_plain, known] =
        *this;
    const auto flags = static_cast<uint64_t>(in_simdgroups | is_one_row << 1 | are_full << 2 |
                                             std::bit_width(count) << 3 | in_pairs << 6 | are_even << 7 |
                                             are_plain << 8 | std::bit_width(in_row) << 9 | are_short << 13);
    return flags | uint64_t{known[0]} << 16 | uint64_t{known[1]} << 27 | uint64_t{known[2]} << 38;
  }
};

/// All but whether threadgroups are even and arrays plain.
LaunchForm launch_form(const Extent3& grid, const Extent3& threadgroup);

/// A threadgroup of some 128 threads, of several rows, in place of one of fewer threads, where the grid's rows are
/// short. Otherwise the same.
Extent3 threadgroup_of_short_rows(const Extent3& grid, const Extent3& threadgroup);

/// Whether the grid is a multiple of its threadgroups, and threadgroups and threads have positions that fit into those
/// of NVIDIA's hardware (65,535 threadgroups in y and z, 64 threads in z).
bool has_even_threadgroups(const Extent3& grid, const Extent3& threadgroup);

struct LaunchExtents {
  Extent3 grid{1, 1, 1};
  Extent3 threadgroup{1, 1, 1};

  bool operator==(const LaunchExtents&) const = default;
};

/// A small launch of that form, always the same.
LaunchExtents example_of(const LaunchForm& form);

}  // namespace kiln
