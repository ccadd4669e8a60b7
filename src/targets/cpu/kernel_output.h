// What CUDA bodies print, what their assertions say (device/cuda/output.h), and which calls of Metal bodies cannot be
// run (device/metal_stdlib/logging.h).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

// Where a thread of a launch gave up.
struct KernelFailure {
  uint32_t line = 0;      // of the generated text
  std::string assertion;  // empty: it called __trap
  // Where it came to something that is valid and not supported: what, and the column.
  std::string unsupported = {};
  uint32_t column = 0;
};

// The first failure of a launch. Its threads run on: what they compute is not given to anybody.
class KernelFailures {
 public:
  /// While it lives, failures in this thread are the launch's.
  class Scope {
   public:
    explicit Scope(KernelFailures& failures);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    KernelFailures* before_;
  };

  void add(KernelFailure failure);
  /// Once no thread of the launch runs any more.
  const std::optional<KernelFailure>& first() const { return first_; }

 private:
  std::mutex mutex_;
  std::optional<KernelFailure> first_;
};

/// What printf writes, for arguments of the kinds (letters of device/cuda/output.h).
std::string format_output(const char* format, const char* kinds, const uint64_t* values, uint32_t count);

inline constexpr std::string_view kFailFunction = "__kiln_fail";
inline constexpr std::string_view kUnsupportedFunction = "__kiln_unsupported";

/// Null for other names.
const void* find_output_function(std::string_view name);

}  // namespace kiln
