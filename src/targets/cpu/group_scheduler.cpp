#include "targets/cpu/group_scheduler.h"

#include <algorithm>
#include <bit>
#include <new>
#include <thread>

#include "targets/cpu/exchange.h"
#include "targets/cpu/group_position.h"
#include "targets/cpu/launch_attendant.h"
#include "targets/cpu/wait_order.h"

namespace kiln {

namespace {

// Turns of threads that wait for other threadgroups, after which other threads of the process get the core.
constexpr uint32_t kTurnsOfCore = 64;

uint32_t mask_of(const CpuThread& thread) {
  constexpr size_t kOperand = offsetof(CpuPayload, operands) / sizeof(uint64_t);
  return static_cast<uint32_t>(thread.payload[kOperand] >> 32);
}

}  // namespace

struct GroupScheduler::Simdgroup {
  alignas(64) CpuPayload payload;
  uint32_t first = 0;  // thread
  uint32_t live = 0;   // lanes that have not returned
};

GroupScheduler::GroupScheduler(const LoadedImage& image, const CpuLaunch& launch)
    : image_(image),
      sites_(image.sites().data()),
      run_thread_(image.thread_function()),
      launch_(launch),
      max_threads_(launch.threads_per_threadgroup[0] * launch.threads_per_threadgroup[1] *
                   launch.threads_per_threadgroup[2]) {
  has_yields_ = std::ranges::any_of(image.sites(), [](const CpuSite& site) { return site.function == kCpuYield; });
  frame_stride_ = (image.header().frame_bytes + kCpuFrameAlignment - 1) / kCpuFrameAlignment * kCpuFrameAlignment;
  threads_ = std::make_unique<CpuThread[]>(max_threads_);
  counts_ = std::make_unique<uint32_t[]>(size_t{max_threads_} * std::max(1u, image.header().max_loop_depth));
  simdgroups_ = std::make_unique<Simdgroup[]>((max_threads_ + kSimdgroupSize - 1) / kSimdgroupSize);
  frames_ = static_cast<std::byte*>(
      ::operator new(std::max<size_t>(1, frame_stride_ * max_threads_), std::align_val_t(kCpuFrameAlignment)));
  for (uint32_t t = 0; t < max_threads_; ++t) {
    CpuThread& thread = threads_[t];
    set_launch_values(thread, launch);
    thread.values[kIndexInThreadgroup] = t;
    thread.counts = counts_.get() + size_t{t} * image.header().max_loop_depth;
    thread.payload = &simdgroups_[t / kSimdgroupSize].payload.values[t % kSimdgroupSize];
  }
}

GroupScheduler::~GroupScheduler() { ::operator delete(frames_, std::align_val_t(kCpuFrameAlignment)); }

bool GroupScheduler::run(uint64_t begin, uint64_t end, char* threadgroup_memory, BarrierFault& fault) {
  for (uint64_t group = begin; group < end && !is_ended(launch_); ++group)
    if (std::optional<BarrierFault> found = run(group, threadgroup_memory)) {
      fault = *found;
      return false;
    }
  return true;
}

std::optional<BarrierFault> GroupScheduler::run(uint64_t group, char* threadgroup_memory) {
  start(group, threadgroup_memory);
  for (;;) {
    // Every simdgroup to its next barrier, or to its end.
    const CpuThread* at_barrier = nullptr;
    bool all_at_one = true;
    for (uint32_t s = 0; s < simdgroup_count_; ++s) {
      Simdgroup& simdgroup = simdgroups_[s];
      const CpuThread* waiting = run_to_barrier(simdgroup);
      if (waiting) all_at_one = false;
      if (!simdgroup.live) continue;
      if (!waiting) waiting = &threads_[simdgroup.first + std::countr_zero(simdgroup.live)];
      if (!at_barrier) at_barrier = waiting;
      if (!same_instance(sites_, *at_barrier, *waiting)) {
        all_at_one = false;
        if (is_before(image_, *waiting, *at_barrier)) at_barrier = waiting;
      }
    }
    if (is_ended(launch_)) return std::nullopt;
    if (has_yields_ && run_yielding()) continue;
    if (!at_barrier) return std::nullopt;
    if (!all_at_one) return describe_fault(*at_barrier);
    for (uint32_t s = 0; s < simdgroup_count_; ++s) run_lanes(simdgroups_[s], simdgroups_[s].live);
  }
}

void GroupScheduler::start(uint64_t group, char* threadgroup_memory) {
  GroupPosition position = locate_group(launch_, group);
  const auto& size = position.threads;
  thread_count_ = size[0] * size[1] * size[2];
  simdgroup_count_ = (thread_count_ + kSimdgroupSize - 1) / kSimdgroupSize;
  for (uint32_t s = 0; s < simdgroup_count_; ++s) {
    uint32_t first = s * kSimdgroupSize;
    uint32_t lanes = std::min<uint32_t>(kSimdgroupSize, thread_count_ - first);
    simdgroups_[s].first = first;
    simdgroups_[s].live = lanes == kSimdgroupSize ? ~0u : (1u << lanes) - 1;
  }
  // All records first: a thread that starts may already be asked for by another.
  uint32_t t = 0;
  if (size != placed_) {
    // The fourth value of a thread is set once.
    static_assert(numbers_of(ThreadValueScope::kThread) == 4, "set each value of a thread");
    for (uint32_t z = 0; z < size[2]; ++z)
      for (uint32_t y = 0; y < size[1]; ++y)
        for (uint32_t x = 0; x < size[0]; ++x, ++t) {
          threads_[t].values[kPositionInThreadgroup] = x;
          threads_[t].values[kPositionInThreadgroup + 1] = y;
          threads_[t].values[kPositionInThreadgroup + 2] = z;
        }
    placed_ = size;
  }
  for (t = 0; t < thread_count_; ++t) {
    set_group_values(threads_[t], position);
    threads_[t].entry = CpuThread::kBegin;
    threads_[t].threadgroup_memory = threadgroup_memory;
  }
  for (uint32_t s = 0; s < simdgroup_count_; ++s) run_lanes(simdgroups_[s], simdgroups_[s].live);
}

void GroupScheduler::run_lanes(Simdgroup& simdgroup, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t lane = std::countr_zero(left), thread = simdgroup.first + lane;
    run_thread_(&launch_, &threads_[thread], frames_ + thread * frame_stride_);
    if (threads_[thread].site == CpuThread::kReturned) simdgroup.live &= ~(1u << lane);
  }
}

// Of `lanes`, those that wait at the earliest instance, and the first thread of them.
uint32_t GroupScheduler::at_instance(const Simdgroup& simdgroup, uint32_t lanes, const CpuThread*& earliest) const {
  const CpuThread* threads = &threads_[simdgroup.first];
  earliest = &threads[std::countr_zero(lanes)];
  uint32_t mask = 0;
  for (uint32_t left = lanes; left; left &= left - 1) {
    uint32_t lane = std::countr_zero(left);
    if (same_instance(sites_, threads[lane], *earliest)) {
      mask |= uint32_t{1} << lane;
    } else if (is_before(image_, threads[lane], *earliest)) {
      earliest = &threads[lane];
      mask = 1u << lane;
    }
  }
  return mask;
}

// The lanes that wait with the same function and mask as `waiting`.
uint32_t GroupScheduler::come_to(const Simdgroup& simdgroup, const CpuThread& waiting) const {
  const uint32_t function = sites_[waiting.site - 1].function, mask = mask_of(waiting);
  uint32_t lanes = 0;
  for (uint32_t left = simdgroup.live; left; left &= left - 1) {
    uint32_t lane = std::countr_zero(left);
    const CpuThread& thread = threads_[simdgroup.first + lane];
    if (sites_[thread.site - 1].function == function && mask_of(thread) == mask) lanes |= uint32_t{1} << lane;
  }
  return lanes;
}

uint32_t GroupScheduler::yielding(const Simdgroup& simdgroup) const {
  if (!has_yields_) return 0;
  uint32_t lanes = 0;
  for (uint32_t left = simdgroup.live; left; left &= left - 1) {
    uint32_t lane = std::countr_zero(left);
    if (sites_[threads_[simdgroup.first + lane].site - 1].function == kCpuYield) lanes |= uint32_t{1} << lane;
  }
  return lanes;
}

// Whether there were any.
bool GroupScheduler::run_yielding() {
  bool has_run = false;
  for (uint32_t s = 0; s < simdgroup_count_; ++s)
    if (uint32_t lanes = yielding(simdgroups_[s])) {
      run_lanes(simdgroups_[s], lanes);
      has_run = true;
    }
  if (has_run && ++turns_ % kTurnsOfCore == 0) std::this_thread::yield();
  return has_run;
}

// Null: all of the simdgroup wait at one barrier, yield, or have returned. Otherwise a thread that waits for others of
// the simdgroup, which do not come: at a barrier that some of them have passed, or with a mask.
const CpuThread* GroupScheduler::run_to_barrier(Simdgroup& simdgroup) {
  while (simdgroup.live) {
    if (is_ended(launch_)) return nullptr;
    const CpuThread* stuck = nullptr;  // the earliest that cannot go on
    uint32_t released = 0;
    for (uint32_t lanes = simdgroup.live & ~yielding(simdgroup); lanes;) {
      const CpuThread* earliest;
      uint32_t mask = at_instance(simdgroup, lanes, earliest);
      const CpuSite& site = sites_[earliest->site - 1];
      // Who waits at a barrier waits for those that come to one later.
      if (stuck && sites_[stuck->site - 1].is_barrier && site.function == 0) break;
      if (site.is_barrier) {
        if (mask == simdgroup.live) return nullptr;
      } else {
        if (site.function != 0) mask = come_to(simdgroup, *earliest);
        if (site.function == 0 || (mask_of(*earliest) & simdgroup.live & ~mask) == 0) {
          exchange_values(site, image_.combine_function(site), simdgroup.payload, mask);
          released = mask;
          break;
        }
      }
      if (!stuck) stuck = earliest;
      lanes &= ~mask;
    }
    if (!released) return stuck;
    run_lanes(simdgroup, released);
  }
  return nullptr;
}

BarrierFault GroupScheduler::describe_fault(const CpuThread& waiting) const {
  BarrierFault fault;
  const CpuSite& site = sites_[waiting.site - 1];
  fault.line = site.line;
  if (site.function != 0) {
    const Simdgroup& simdgroup = simdgroups_[(&waiting - threads_.get()) / kSimdgroupSize];
    const uint32_t named = mask_of(waiting) & simdgroup.live;
    fault.is_masked = true;
    fault.expected = static_cast<uint32_t>(std::popcount(named));
    fault.waiting = static_cast<uint32_t>(std::popcount(named & come_to(simdgroup, waiting)));
    return fault;
  }
  for (uint32_t t = 0; t < thread_count_; ++t) {
    if (threads_[t].site == CpuThread::kReturned) continue;
    ++fault.expected;
    fault.waiting += same_instance(sites_, threads_[t], waiting);
  }
  return fault;
}

}  // namespace kiln
