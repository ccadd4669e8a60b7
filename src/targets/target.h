// What the runtime asks of a target. A target is one folder with one implementation; the targets do not know one
// another.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/compiler.h"
#include "core/launch_geometry.h"

namespace kiln {

// Machine code, loaded and ready to run. Immutable; may be launched by several threads at once.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  /// Bytes of threadgroup memory that each threadgroup needs.
  virtual size_t threadgroup_memory_bytes() const = 0;
  /// Bytes that each thread needs while it waits for others; 0 where none waits.
  virtual size_t thread_memory_bytes() const = 0;
  /// Whether a launch may throw: a DeviceError, or std::bad_alloc for what it needs for each of its threads or
  /// threadgroups.
  virtual bool may_fail() const = 0;
  /// The machine code and its constants; lives as long as this object.
  virtual std::span<const std::byte> code() const = 0;
};

// One parameter of the kernel's function at a launch.
struct LaunchArgument {
  void* data = nullptr;
  int64_t first_byte = 0;  // of the bytes that belong to it, relative to data
  int64_t end_byte = 0;    // one past the last
};

class Target {
 public:
  virtual ~Target() = default;

  virtual std::string_view name() const = 0;

  /// What code is made for.
  virtual const TargetSpec& spec() const = 0;

  /// How many threads of this process a launch may use (CPU).
  virtual unsigned concurrency() const = 0;

  /// Bytes of threadgroup memory that a kernel may have.
  virtual size_t threadgroup_memory_limit() const = 0;

  /// Makes machine code runnable. Throws InternalError where it is damaged.
  virtual std::shared_ptr<const LoadedKernel> load(std::span<const std::byte> binary) = 0;

  /// Runs a kernel to its end (CPU). `arguments` follow the unit's parameters. Throws DeviceError; `unit` serves its
  /// message.
  virtual void launch(const LoadedKernel& kernel, const KernelUnit& unit, const LaunchGeometry& geometry,
                      std::span<const LaunchArgument> arguments) = 0;

  /// Writes `pattern`, the bytes of one element, `count` times.
  virtual void fill(void* data, size_t count, std::span<const std::byte> pattern) = 0;

  /// Copies a strided array, whose element (0, …, 0) is at `data`, to `out`, the last dimension fastest. Strides are in
  /// elements of `element_bytes` bytes: 1, 2, 4 or 8.
  virtual void copy_row_contiguous(const void* data, std::span<const int64_t> shape, std::span<const int64_t> strides,
                                   size_t element_bytes, void* out) = 0;
};

}  // namespace kiln
