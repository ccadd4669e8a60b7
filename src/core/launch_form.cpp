#include "core/launch_form.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace kiln {

namespace {

// Of other lengths a thread's row and place take a division, and rows that threads walk begin at places that no
// register has together: bodies that access memory for the most part are slower.
bool is_short(int64_t row) { return (row > 0 && row <= 4) || row == 8 || row == 16; }

}  // namespace

Extent3 threadgroup_of_short_rows(const Extent3& grid, const Extent3& threadgroup) {
  // Enough for what a threadgroup costs, and few enough for many processors.
  constexpr int64_t kThreads = 128;
  int64_t threads = 1;
  for (size_t d = 0; d < 3; ++d) threads *= std::min(grid[d], threadgroup[d]);
  if (!is_short(grid[0]) || (grid[1] <= 1 && grid[2] <= 1) || threads <= 0 || threads >= kThreads) return threadgroup;
  const int64_t rows = std::min(grid[1], kThreads / grid[0]);
  return {grid[0], rows, rows == grid[1] ? std::min(grid[2], kThreads / (grid[0] * rows)) : 1};
}

LaunchForm launch_form(const Extent3& grid, const Extent3& threadgroup) {
  auto threads = [&](size_t d) { return std::min(grid[d], threadgroup[d]); };
  LaunchForm form;
  // What divides each side of a threadgroup, those at the edges of the grid too.
  int64_t divisor = 1;
  for (size_t d = 0; d < 3; ++d) divisor *= std::gcd(grid[d], threads(d));
  form.simdgroups_are_full = divisor > 0 && divisor % kSimdgroupSize == 0;
  const bool is_row = threads(1) == 1 && threads(2) == 1;
  // A threadgroup costs as much as some simdgroups of a short body.
  constexpr int64_t kFewestThreads = 64;
  form.rows_are_short = !is_row && is_short(grid[0]) && threads(0) * threads(1) * threads(2) >= kFewestThreads;
  // Powers of two, so that there are few.
  auto count_of = [](int64_t threads) {
    const auto count = static_cast<uint32_t>(threads / kSimdgroupSize);
    return std::has_single_bit(count) ? count : 0;
  };
  if (const int64_t row = threads(0); form.simdgroups_are_full && !is_row && row > 1 && kSimdgroupSize % row == 0)
    if (grid[0] % row == 0 && std::gcd(grid[1], threads(1)) % (kSimdgroupSize / row) == 0) {
      form.row_threads = static_cast<uint32_t>(row);
      if (threads(2) == 1) form.simdgroups = count_of(row * threads(1));
    }
  // Rows of several simdgroups: forms are made for known counts of both alone.
  if (const int64_t row = threads(0); form.simdgroups_are_full && !is_row && row > kSimdgroupSize && threads(2) == 1)
    if (std::has_single_bit(static_cast<uint64_t>(row)) && grid[0] % row == 0) {
      form.simdgroups = count_of(row * threads(1));
      if (form.simdgroups > 0) form.row_threads = static_cast<uint32_t>(row);
    }
  if (threads(0) <= 0 || threads(0) % kSimdgroupSize != 0) return form;
  // At an edge of the grid, too.
  form.rows_are_simdgroups = grid[0] % kSimdgroupSize == 0 || is_row;
  form.rows_are_simdgroup_pairs = form.rows_are_simdgroups && threads(0) % (2 * kSimdgroupSize) == 0;
  if (is_row) form.simdgroups = count_of(threads(0));
  form.is_one_row = grid[1] == 1 && grid[2] == 1 && grid[0] % threads(0) == 0;
  return form;
}

bool has_even_threadgroups(const Extent3& grid, const Extent3& threadgroup) {
  constexpr int64_t kMostThreadgroups = 65535, kMostThreadsInZ = 64;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t threads = std::min(grid[d], threadgroup[d]);
    if (threads <= 0 || grid[d] % threads != 0) return false;
    if (d > 0 && grid[d] / threads > kMostThreadgroups) return false;
  }
  return std::min(grid[2], threadgroup[2]) <= kMostThreadsInZ;
}

LaunchExtents example_of(const LaunchForm& form) {
  constexpr int64_t kNoPowerOfTwo = 3;
  const int64_t count = form.simdgroups > 0 ? form.simdgroups : kNoPowerOfTwo << form.rows_are_simdgroup_pairs;
  if (const int64_t row = form.row_threads) {
    const Extent3 rectangle{row, count * kSimdgroupSize / row, 1};
    const bool has_neighbours = !form.rows_are_short && row <= kSimdgroupSize / 2;
    return {{has_neighbours ? kSimdgroupSize : row, rectangle[1], 1}, rectangle};
  }
  if (!form.rows_are_simdgroups) {
    if (form.rows_are_short) {
      const Extent3 rows = form.simdgroups_are_full ? Extent3{3, 32, 1} : Extent3{3, 22, 1};
      return {rows, rows};
    }
    if (!form.simdgroups_are_full) return {};
    constexpr Extent3 kRowsOfAnyLength{24, 4, 1};
    return {kRowsOfAnyLength, kRowsOfAnyLength};
  }
  const int64_t threads = kSimdgroupSize * count;
  Extent3 threadgroup{threads, 1, 1};
  if (form.is_one_row) return {threadgroup, threadgroup};
  return {form.simdgroups_are_full ? Extent3{threads, 2, 1} : Extent3{threads + 1, 1, 1}, threadgroup};
}

}  // namespace kiln
