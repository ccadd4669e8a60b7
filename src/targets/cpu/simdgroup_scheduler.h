// Runs the simdgroups of a threadgroup whose code is that of a simdgroup (CpuImageKind::kSimdgroups).
//
// Each simdgroup runs to a barrier or to its end, one after the other; when all of them wait, it must be at the same
// instance of a barrier, and they go on. Where the code has a function for a threadgroup of full simdgroups, which does
// this in loops, the scheduler only calls it. What threads of one simdgroup exchange needs nobody here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "targets/cpu/barrier_fault.h"
#include "targets/cpu/image_loader.h"

namespace kiln {

class SimdgroupScheduler {
 public:
  /// `image` must outlive it. Allocates what one threadgroup of the geometry needs; throws std::bad_alloc.
  SimdgroupScheduler(const LoadedImage& image, const CpuLaunch& launch);
  ~SimdgroupScheduler();
  SimdgroupScheduler(const SimdgroupScheduler&) = delete;
  SimdgroupScheduler& operator=(const SimdgroupScheduler&) = delete;

  /// Runs threadgroups [begin, end), counted with x fastest, until one ends with a fault; false then.
  bool run(uint64_t begin, uint64_t end, char* threadgroup_memory, BarrierFault& fault);

 private:
  struct Simdgroup;

  void place(const uint32_t* threads_per_threadgroup);
  std::optional<BarrierFault> run(uint64_t group, char* threadgroup_memory);
  void run(Simdgroup& simdgroup);
  std::optional<BarrierFault> find_fault() const;

  const LoadedImage& image_;
  const CpuSite* sites_;
  CpuSimdgroupFunction run_simdgroup_;
  CpuThreadgroupFunction run_threadgroup_;  // null: there is none
  const CpuLaunch& launch_;
  bool has_barriers_;
  uint32_t simdgroup_count_ = 0;  // of the current threadgroup
  uint64_t alike_end_ = 0;        // of threadgroups behind the last one, those that differ from it in x only
  bool are_full_ = false;         // its simdgroups, as run_threadgroup_ wants them
  uint32_t placed_[3] = {};       // the size for which simdgroups have their positions
  std::unique_ptr<Simdgroup[]> simdgroups_;
  std::unique_ptr<uint32_t[]> counts_;
  std::unique_ptr<uint32_t[]> places_;  // of simdgroups, for run_threadgroup_
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using AlignedMemory = std::unique_ptr<std::byte, Free>;
  static AlignedMemory allocate(uint64_t bytes);

  AlignedMemory frames_;  // null where the code has none
};

}  // namespace kiln
