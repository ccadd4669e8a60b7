// What the runtime asks of a target. A target is one folder with one implementation; the targets do not know one
// another.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/compiler.h"
#include "core/gpu_queue.h"
#include "core/interruption.h"
#include "core/launch_geometry.h"
#include "kiln/device.h"

namespace kiln {

// Machine code, loaded and ready to run. Immutable; may be launched by several threads at once.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  /// Bytes of threadgroup memory that each threadgroup needs.
  virtual size_t threadgroup_memory_bytes() const = 0;
  /// Bytes that each thread needs while it waits for others; 0 where none waits.
  virtual size_t thread_memory_bytes() const = 0;
  /// Whether a launch may throw: a DeviceError, std::bad_alloc for what it needs for each of its threads or
  /// threadgroups, or Interrupted because it has loops that are not known to end.
  virtual bool may_fail() const = 0;
  /// The machine code and its constants; lives as long as this object.
  virtual std::span<const std::byte> code() const = 0;
};

// One parameter of the kernel's function at a launch.
struct LaunchArgument {
  void* data = nullptr;    // of an input or output: in the target's memory; otherwise in this process's
  int64_t first_byte = 0;  // of the bytes that belong to it, relative to data
  int64_t end_byte = 0;    // one past the last
};

// What a launch needs besides.
struct LaunchOptions {
  void* stream = nullptr;     // what is launched on one stream runs in this order; the CPU has none
  size_t dynamic_bytes = 0;   // of threadgroup memory that the call asks for (CUDA dialect)
  GpuQueue* queue = nullptr;  // takes the launch in place of the stream
  // Its outputs have just been filled for it, so that nobody else can be using them.
  bool fills_outputs = false;
  LaunchStop* stop = nullptr;  // by which another thread ends the launch; the CPU's only
  int64_t batch = 1;           // how many arrays a parameter that is a batch has
};

class Target;

// Memory of a target for the time of a launch. It may be let go before the launch has ended: whoever gets it next on
// the same stream gets it afterwards.
struct ReleaseMemory {
  Target* target = nullptr;
  void* stream = nullptr;
  void operator()(void* memory) const noexcept;
};
using TargetMemory = std::unique_ptr<void, ReleaseMemory>;

class Target {
 public:
  virtual ~Target() = default;

  /// "cpu", "nvidia:0"
  virtual std::string_view name() const = 0;

  virtual Device device() const = 0;

  /// What code is made for.
  virtual const TargetSpec& spec() const = 0;

  /// How many threads of this process a launch may use.
  virtual unsigned concurrency() const = 0;

  /// Bytes of threadgroup memory that a kernel may have.
  virtual size_t threadgroup_memory_limit() const = 0;

  /// Takes a compiler's image as far as this machine can, so that it need not be done at each load: what is stored is
  /// what this leaves. Returns whether it has changed anything. Throws DeviceError, InternalError.
  virtual bool finish(std::vector<std::byte>& image, const KernelUnit& unit) = 0;

  /// Makes machine code runnable. Throws InternalError where it is damaged, DeviceError.
  virtual std::shared_ptr<const LoadedKernel> load(std::span<const std::byte> image, const KernelUnit& unit) = 0;

  /// Throws ValueError where the kernel cannot have so many threads or so much memory in a threadgroup here, or so
  /// many threadgroups.
  virtual void check_launch(const LoadedKernel& kernel, const KernelUnit& unit, const LaunchGeometry& geometry,
                            const LaunchOptions& options) const = 0;

  /// Runs a kernel that check_launch() has accepted. On the CPU it has run on return; on a GPU it is the last in the
  /// stream, or in the queue. `arguments` follow the unit's parameters, and need not outlive the call. Throws
  /// DeviceError, Interrupted; `unit` serves the message.
  virtual void launch(const LoadedKernel& kernel, const KernelUnit& unit, const LaunchGeometry& geometry,
                      std::span<const LaunchArgument> arguments, const LaunchOptions& options) = 0;

  /// Writes `pattern`, the bytes of one element (1, 2, 4 or 8), `count` times.
  virtual void fill(void* data, size_t count, std::span<const std::byte> pattern, void* stream) = 0;

  /// Returns when what was put on a stream has run. Throws DeviceError.
  virtual void wait(void* stream) = 0;

  /// Throws std::bad_alloc.
  virtual TargetMemory allocate(size_t bytes, void* stream) = 0;

  /// Copies a strided array, whose element (0, …, 0) is at `data`, to `out`, the last dimension fastest. Strides are in
  /// elements of `element_bytes` bytes: 1, 2, 4 or 8. False, and nothing done, where the target leaves that to a
  /// kernel.
  virtual bool copy_row_contiguous(const void* data, std::span<const int64_t> shape, std::span<const int64_t> strides,
                                   size_t element_bytes, void* out) = 0;

 private:
  friend ReleaseMemory;
  virtual void release(void* memory, void* stream) noexcept = 0;
};

inline void ReleaseMemory::operator()(void* memory) const noexcept { target->release(memory, stream); }

}  // namespace kiln
