// Runs the threads of a threadgroup that wait for one another.
//
// Each thread is a coroutine. Within a simdgroup all threads run until each waits or has returned. Then the earliest
// instance at which some wait (`core/cpu_image.h` says what is earlier) is released, with exactly the threads that
// wait there; nobody can arrive at it any more, because every other thread waits at a later one or has returned. This
// is docs/language.md 2.3. When all threads of all simdgroups wait at barriers or have returned, they must wait at the
// same instance, which is then released; otherwise the launch ends.
//
// A `_sync` function of CUDA's (CpuSite::function) is released when all lanes that its mask names wait with the same
// function and mask or have returned, wherever they wait. Until then it does not hold up what others wait for, and
// where nothing can be released any more the launch ends. A thread that yields goes on when all others have had their
// turn.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/launch_geometry.h"
#include "targets/cpu/barrier_fault.h"
#include "targets/cpu/image_loader.h"

namespace kiln {

class GroupScheduler {
 public:
  /// `image` must outlive it. Allocates what one threadgroup of the geometry needs; throws std::bad_alloc.
  GroupScheduler(const LoadedImage& image, const CpuLaunch& launch);
  ~GroupScheduler();

  /// Runs threadgroups [begin, end), counted with x fastest, until one ends with a fault; false then.
  bool run(uint64_t begin, uint64_t end, char* threadgroup_memory, BarrierFault& fault);

 private:
  struct Simdgroup;

  std::optional<BarrierFault> run(uint64_t group, char* threadgroup_memory);
  void start(uint64_t group, char* threadgroup_memory);
  void run_lanes(Simdgroup& simdgroup, uint32_t mask);
  const CpuThread* run_to_barrier(Simdgroup& simdgroup);
  uint32_t at_instance(const Simdgroup& simdgroup, uint32_t lanes, const CpuThread*& earliest) const;
  uint32_t come_to(const Simdgroup& simdgroup, const CpuThread& waiting) const;
  uint32_t yielding(const Simdgroup& simdgroup) const;
  bool run_yielding();
  BarrierFault describe_fault(const CpuThread& waiting) const;

  const LoadedImage& image_;
  const CpuSite* sites_;
  CpuThreadFunction run_thread_;
  const CpuLaunch& launch_;
  uint32_t max_threads_;
  size_t frame_stride_;
  std::unique_ptr<CpuThread[]> threads_;
  std::unique_ptr<uint32_t[]> counts_;
  std::unique_ptr<Simdgroup[]> simdgroups_;
  uint32_t thread_count_ = 0;  // of the current threadgroup
  uint32_t simdgroup_count_ = 0;
  bool has_yields_ = false;
  uint32_t turns_ = 0;                // of yielding threads
  std::array<uint32_t, 3> placed_{};  // the size for which threads have their positions
  std::byte* frames_ = nullptr;
};

}  // namespace kiln
