#include "targets/cpu/simdgroup_scheduler.h"

#include <algorithm>
#include <bit>
#include <new>

#include "core/launch_geometry.h"
#include "targets/cpu/group_position.h"
#include "targets/cpu/launch_attendant.h"
#include "targets/cpu/wait_order.h"

namespace kiln {

struct SimdgroupScheduler::Simdgroup {
  CpuThread record{};    // of the first thread
  CpuPayload payload{};  // values[0]: the lanes that wait
  uint32_t lanes = 0;    // threads
  std::byte* frame = nullptr;

  bool has_returned() const { return record.site == CpuThread::kReturned; }
  uint32_t waiting() const { return static_cast<uint32_t>(std::popcount(static_cast<uint32_t>(payload.values[0]))); }
};

SimdgroupScheduler::SimdgroupScheduler(const LoadedImage& image, const CpuLaunch& launch)
    : image_(image),
      sites_(image.sites().data()),
      run_simdgroup_(image.simdgroup_function()),
      run_threadgroup_(image.threadgroup_function()),
      launch_(launch),
      has_barriers_(image.header().site_count > 0) {
  uint32_t threads =
      launch.threads_per_threadgroup[0] * launch.threads_per_threadgroup[1] * launch.threads_per_threadgroup[2];
  uint32_t most = (threads + kSimdgroupSize - 1) / kSimdgroupSize;
  size_t depth = std::max(1u, image.header().max_loop_depth);
  size_t stride = (image.header().frame_bytes + kCpuFrameAlignment - 1) / kCpuFrameAlignment * kCpuFrameAlignment;
  simdgroups_ = std::make_unique<Simdgroup[]>(most);
  counts_ = std::make_unique<uint32_t[]>(most * depth);
  places_ = std::make_unique<uint32_t[]>(most * size_t{kCpuPlaceValues});
  frames_ = allocate(stride * most);
  for (uint32_t s = 0; s < most; ++s) {
    Simdgroup& simdgroup = simdgroups_[s];
    set_launch_values(simdgroup.record, launch);
    simdgroup.record.values[kIndexInThreadgroup] = s * kSimdgroupSize;
    simdgroup.record.counts = counts_.get() + s * depth;
    simdgroup.record.payload = simdgroup.payload.values;
    if (frames_) simdgroup.frame = frames_.get() + s * stride;
  }
}

SimdgroupScheduler::AlignedMemory SimdgroupScheduler::allocate(uint64_t bytes) {
  if (bytes == 0) return nullptr;
  return AlignedMemory(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(kCpuFrameAlignment))));
}

SimdgroupScheduler::~SimdgroupScheduler() = default;

void SimdgroupScheduler::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, std::align_val_t(kCpuFrameAlignment));
}

// Where each simdgroup's first thread is in a threadgroup of this size, and how many threads it has.
void SimdgroupScheduler::place(const uint32_t* size) {
  // The fourth is set once.
  static_assert(numbers_of(ThreadValueScope::kThread) == 4,
                "set each value of a thread for the first lane of a simdgroup");
  uint32_t threads = size[0] * size[1] * size[2];
  simdgroup_count_ = (threads + kSimdgroupSize - 1) / kSimdgroupSize;
  for (uint32_t s = 0; s < simdgroup_count_; ++s) {
    uint32_t first = s * kSimdgroupSize;
    simdgroups_[s].lanes = std::min<uint32_t>(kSimdgroupSize, threads - first);
    uint32_t* position = &simdgroups_[s].record.values[kPositionInThreadgroup];
    position[0] = first % size[0];
    position[1] = first / size[0] % size[1];
    position[2] = first / size[0] / size[1];
    std::copy_n(position, 3, &places_[s * kCpuPlaceValues]);
  }
  const uint32_t count = image_.header().threadgroup_simdgroups;
  are_full_ = count == 0
                  ? threads % kSimdgroupSize == 0
                  : threads == count * kSimdgroupSize && size[0] == image_.header().threadgroup_width && size[2] == 1;
  std::copy_n(size, 3, placed_);
}

inline void SimdgroupScheduler::run(Simdgroup& simdgroup) {
  run_simdgroup_(&launch_, &simdgroup.record, simdgroup.frame, simdgroup.record.values[kPositionInThreadgroup],
                 simdgroup.lanes);
}

bool SimdgroupScheduler::run(uint64_t begin, uint64_t end, char* threadgroup_memory, BarrierFault& fault) {
  CpuThread& first = simdgroups_[0].record;
  for (uint64_t group = begin; group < end && !is_ended(launch_);) {
    if (std::optional<BarrierFault> found = run(group, threadgroup_memory)) {
      fault = *found;
      return false;
    }
    // What is stored in parts and read as a whole waits until stores before it have left the processor, those of the
    // threadgroup before among them: the neighbour differs in one number, and only that is written. A fault, which is
    // such a thing, is not asked for.
    for (alike_end_ = std::min(end, alike_end_), ++group; group < alike_end_ && !is_ended(launch_); ++group) {
      ++first.values[kThreadgroupPosition];
      run_threadgroup_(&launch_, &first, frames_.get(), places_.get(), simdgroup_count_);
    }
  }
  return true;
}

std::optional<BarrierFault> SimdgroupScheduler::run(uint64_t group, char* threadgroup_memory) {
  CpuThread& first = simdgroups_[0].record;
  alike_end_ = 0;
  GroupPosition position = locate_group(launch_, group);
  if (!std::equal(position.threads.begin(), position.threads.end(), placed_)) place(position.threads.data());
  if (run_threadgroup_ && are_full_) {
    set_group_values(first, position);
    first.threadgroup_memory = threadgroup_memory;
    // The last one in a row may be smaller.
    alike_end_ = group - position.group[0] + launch_.threadgroups_per_grid[0] - 1;
    run_threadgroup_(&launch_, &first, frames_.get(), places_.get(), simdgroup_count_);
    return std::nullopt;
  }
  for (uint32_t s = 0; s < simdgroup_count_; ++s) {
    if (!has_barriers_ && is_ended(launch_)) return std::nullopt;
    CpuThread& record = simdgroups_[s].record;
    set_group_values(record, position);
    record.threadgroup_memory = threadgroup_memory;
    record.entry = CpuThread::kBegin;
    run(simdgroups_[s]);
  }
  if (!has_barriers_) return std::nullopt;
  for (;;) {
    bool is_done = true;
    for (uint32_t s = 0; s < simdgroup_count_; ++s) is_done = is_done && simdgroups_[s].has_returned();
    if (is_done || is_ended(launch_)) return std::nullopt;
    if (std::optional<BarrierFault> fault = find_fault()) return fault;
    for (uint32_t s = 0; s < simdgroup_count_; ++s)
      if (!simdgroups_[s].has_returned()) run(simdgroups_[s]);
  }
}

// All of the threads that have not returned wait. The earliest instance's barrier is the one that others cannot reach.
std::optional<BarrierFault> SimdgroupScheduler::find_fault() const {
  const Simdgroup* earliest = nullptr;
  bool all_at_one = true;
  for (uint32_t s = 0; s < simdgroup_count_; ++s) {
    const Simdgroup& simdgroup = simdgroups_[s];
    if (simdgroup.has_returned()) continue;
    if (!earliest) earliest = &simdgroup;
    if (same_instance(sites_, earliest->record, simdgroup.record)) continue;
    all_at_one = false;
    if (is_before(image_, simdgroup.record, earliest->record)) earliest = &simdgroup;
  }
  if (all_at_one) return std::nullopt;
  BarrierFault fault;
  fault.line = sites_[earliest->record.site - 1].line;
  for (uint32_t s = 0; s < simdgroup_count_; ++s) {
    const Simdgroup& simdgroup = simdgroups_[s];
    if (simdgroup.has_returned()) continue;
    fault.expected += simdgroup.waiting();
    if (same_instance(sites_, simdgroup.record, earliest->record)) fault.waiting += simdgroup.waiting();
  }
  return fault;
}

}  // namespace kiln
