// The last launches of a kernel.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "core/fork_guard.h"

namespace kiln {

// Where a launch found its machine code.
enum class CodeSource : uint8_t { kMemory, kDisk, kCompiled };

struct LaunchRecord {
  std::string_view target;  // "cpu"; lives as long as the kernel, like the next two
  std::string_view engine;  // "scalar"
  std::string_view reason;  // why that engine
  CodeSource source = CodeSource::kMemory;
  bool specialized = false;  // code made for these shapes
  double compile_ms = 0;     // 0 unless compiled now
  double run_ms = 0;         // from the start of the launch to the end of its last thread
};

class History {
 public:
  static constexpr size_t kLength = 1000;

  void add(const LaunchRecord& record) {
    ForkGuard guard;
    std::lock_guard lock(mutex_);
    if (records_.size() == kLength) records_.pop_front();
    records_.push_back(record);
  }
  /// Oldest first.
  std::vector<LaunchRecord> records() const {
    ForkGuard guard;
    std::lock_guard lock(mutex_);
    return {records_.begin(), records_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<LaunchRecord> records_;
};

}  // namespace kiln
