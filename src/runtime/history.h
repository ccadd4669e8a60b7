// The last launches of a kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/extent.h"
#include "core/fork_guard.h"
#include "kiln/launch.h"

namespace kiln {

// Where a launch found its machine code.
enum class CodeSource : uint8_t { kMemory, kDisk, kBundle, kCompiled };

inline std::string_view name_of(CodeSource source) {
  switch (source) {
    case CodeSource::kMemory: return "memory";
    case CodeSource::kDisk: return "disk";
    case CodeSource::kBundle: return "bundle";
    case CodeSource::kCompiled: return "compiled";
  }
  return "";
}

// A Launch as it is kept, in few bytes: recording one allocates nothing once there are as many as are kept.
struct LaunchRecord {
  std::string_view target;      // "cpu", "nvidia:0"; lives as long as the kernel, like the next three
  std::string_view engine;      // "scalar", "simd"
  std::string_view reason;      // why that engine
  std::string_view not_stored;  // compiled now: why it is not on disk
  CodeSource source = CodeSource::kMemory;
  bool specialized = false;  // code made for these shapes
  double compile_ms = 0;     // 0 unless compiled now
  double run_ms = 0;         // from the start of the launch to the end of its last thread; GPU: until it is enqueued
  Extent3 grid{}, threadgroup{};
  std::span<const Dtype> input_dtypes, output_dtypes;  // live as long as the kernel, too
};

// What all launches of a kernel come to, also those that are no longer kept.
struct LaunchTotals {
  uint64_t launches = 0;
  uint64_t compiled = 0;  // that waited for code of their own to be compiled
  double compile_ms = 0;
  double run_ms = 0;
  double longest_run_ms = 0;
};

class History {
 public:
  static constexpr size_t kLength = 1000;

  void add(const LaunchRecord& record) {
    ForkGuard guard;
    std::lock_guard lock(mutex_);
    ++totals_.launches;
    totals_.compiled += record.source == CodeSource::kCompiled;
    totals_.compile_ms += record.compile_ms;
    totals_.run_ms += record.run_ms;
    totals_.longest_run_ms = std::max(totals_.longest_run_ms, record.run_ms);
    if (records_.size() < kLength) {
      records_.push_back(record);
    } else {
      records_[oldest_] = record;
      oldest_ = (oldest_ + 1) % kLength;
    }
  }
  /// Oldest first.
  std::vector<Launch> launches() const {
    ForkGuard guard;
    std::lock_guard lock(mutex_);
    std::vector<Launch> result;
    for (size_t i = 0; i < records_.size(); ++i) {
      const LaunchRecord& record = records_[(oldest_ + i) % records_.size()];
      result.push_back({std::string(record.target),
                        std::string(record.engine),
                        std::string(record.reason),
                        std::string(name_of(record.source)),
                        record.specialized,
                        std::string(record.not_stored),
                        record.compile_ms,
                        record.run_ms,
                        record.grid,
                        record.threadgroup,
                        {record.input_dtypes.begin(), record.input_dtypes.end()},
                        {record.output_dtypes.begin(), record.output_dtypes.end()}});
    }
    return result;
  }
  LaunchTotals totals() const {
    ForkGuard guard;
    std::lock_guard lock(mutex_);
    return totals_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LaunchRecord> records_;  // in a ring when there are kLength
  size_t oldest_ = 0;
  LaunchTotals totals_;
};

}  // namespace kiln
