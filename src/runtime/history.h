// The last launches of a kernel.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

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
};

class History {
 public:
  static constexpr size_t kLength = 1000;

  void add(const LaunchRecord& record) {
    ForkGuard guard;
    std::lock_guard lock(mutex_);
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
      result.push_back({std::string(record.target), std::string(record.engine), std::string(record.reason),
                        std::string(name_of(record.source)), record.specialized, std::string(record.not_stored),
                        record.compile_ms, record.run_ms});
    }
    return result;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LaunchRecord> records_;  // in a ring when there are kLength
  size_t oldest_ = 0;
};

}  // namespace kiln
