// What all kernels of a process share: targets, compiler, machine code.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle.h"
#include "cache/disk_cache.h"
#include "cache/single_flight.h"
#include "core/compiler.h"
#include "core/device_traits.h"
#include "core/settings.h"
#include "kiln/device.h"
#include "runtime/compiler_library.h"
#include "runtime/history.h"
#include "runtime/recording.h"
#include "targets/cuda/cuda_target.h"
#include "targets/target.h"

namespace kiln {

// Machine code that has been made or found, and how.
struct Binary {
  std::shared_ptr<const LoadedKernel> code;
  std::string engine;
  std::string engine_reason;
  std::vector<uint32_t> written_inputs;  // as in CompileResult
  double compile_ms = 0;                 // what it took when it was compiled
  std::vector<Diagnostic> diagnostics;   // warnings, and their notes
  CodeSource source = CodeSource::kCompiled;
  std::string not_stored;  // of what was compiled: why it is not on disk; empty where it is
};

// Machine code that need not be for this machine.
struct MadeCode {
  std::string id;
  CodeEntry entry;
  CodeSource source = CodeSource::kCompiled;
  std::string not_stored;  // as in Binary
};

/// Whether compiling once more would fail in the same way. What is missing today (memory, the compiler) may be there
/// tomorrow.
bool is_lasting(const std::exception_ptr& error);

class KernelObject;

class Context {
 public:
  ~Context();

  /// `compiler`: what compiles in place of libkiln_compiler.so and NVRTC. `bundle_path`: empty for none. What is wrong
  /// with the cache's folder or the bundle throws nothing.
  explicit Context(std::unique_ptr<Compiler> compiler = nullptr,
                   DiskCacheOptions cache = DiskCacheOptions::of_process(),
                   const std::string& bundle_path = settings().bundle_path);

  /// The context that kernels use unless they are given another.
  static Context& shared();

  Target& cpu() { return target(Device{}); }

  /// The target of a device, made when it is first asked for. Throws DeviceError, UnsupportedError where the machine
  /// has no such GPU that serves.
  Target& target(Device device) {
    if (Target* made = made_target(device)) return *made;
    return make_target(device);
  }

  /// A kernel that copies arrays of any strides, for targets that leave it to one.
  KernelObject& copier();

  /// How much code is kept of kernels that are gone: for equal ones that are made later.
  static constexpr size_t kMostIdleBinaries = 4096;

  /// Machine code for the unit, found in the bundle or on disk or compiled at the first call for each identity;
  /// `made_now` says whether by this call. The compiler is opened where it is not found. Throws CompileError,
  /// UnsupportedError, InternalError.
  SingleFlight<Binary>::Found binary_for(const KernelUnit& unit, Target& target);

  /// The same for any target, without loading it.
  MadeCode compile_ahead(const KernelUnit& unit, const TargetSpec& target);

  /// Version and file of the library that compiles CUDA bodies for NVIDIA's GPUs. Throws MissingCompilerError.
  static std::string describe_nvrtc();

  DiskCache& cache() { return cache_; }

  /// What KILN_BUNDLE names, where it can be used.
  const std::optional<Bundle>& bundle() const { return bundle_; }
  /// Why the bundle is not used; empty where it is, or where none is named.
  std::string bundle_problem();

  /// From now on, what kernels of this context compile, or would have compiled, is recorded. To be called before others
  /// use the context.
  void start_recording() { recording_ = std::make_unique<Recording>(); }
  /// Null where nothing is recorded.
  Recording* recording() const { return recording_.get(); }

  /// What a compilation keeps besides machine code: nothing, stages and passes, or passes and remarks.
  enum class Keep : uint8_t { kNothing, kStages, kRemarks };

  /// Compiles the unit once more, for what is kept of it; with stages, the IR after each pass of `keep_after` too.
  /// Throws as binary_for() does.
  CompileResult recompile(const KernelUnit& unit, Target& target, Keep keep, std::vector<std::string> keep_after = {});

 private:
  static constexpr size_t kMostDevices = 64;  // of a kind

  // Null where it has not been made.
  Target* made_target(Device device) const {
    const auto index = static_cast<size_t>(device.index);
    if (index >= kMostDevices) return nullptr;
    return targets_[static_cast<size_t>(device.kind)][index].load(std::memory_order_acquire);
  }
  Target& make_target(Device device);
  // Runs a job that owns all that it touches on a thread for compilations, whose stack is large. Throws Interrupted,
  // UnsupportedError where it takes far longer than compilations may; it then ends in the background.
  void run_job(const KernelUnit& unit, const std::function<void()>& job);
  SingleFlight<Binary>::Found find_or_make_binary(const KernelUnit& unit, Target& target,
                                                  const CompilerIdentity& compiler, const std::string& id,
                                                  const std::string& key);
  // Of the compiler that is asked for the unit.
  CompilerIdentity identity(const KernelUnit& unit, const TargetSpec& target);
  CompileResult run_compiler(const KernelUnit& unit, const TargetSpec& target, bool keep_stages, bool keep_remarks,
                             std::vector<std::string> keep_after = {});
  [[noreturn]] void throw_missing(const MissingCompilerError& error, const KernelUnit& unit) const;
  std::optional<CodeEntry> find_stored(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                                       const CompilerIdentity& compiler, CodeSource& source);
  // `here`: the target that is to run it, if it is this machine's.
  MadeCode compile(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                   const CompilerIdentity& compiler, Target* here);
  MadeCode find_or_compile(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                           const CompilerIdentity& compiler, Target* here);
  std::optional<MadeCode> find_finished(const std::string& id, const KernelUnit& unit, const TargetSpec& target,
                                        const CompilerIdentity& compiler, Target* here);

  std::mutex targets_mutex_;
  std::vector<std::unique_ptr<Target>> owned_targets_;
  std::array<std::array<std::atomic<Target*>, kMostDevices>, kDeviceKinds> targets_{};
  std::once_flag copier_once_;
  std::unique_ptr<KernelObject> copier_;
  std::unique_ptr<Compiler> nvrtc_;  // null where one compiler serves in place of both
  CompilerLibrary compiler_;
  DiskCache cache_;
  std::optional<Bundle> bundle_;
  std::string bundle_failure_;
  std::unique_ptr<Recording> recording_;
  std::atomic<int> jobs_{0};  // that have not ended, whoever waits for them
  const pid_t process_ = getpid();
  // A program that makes kernels of ever new texts, and lets them go, does not fill its memory. (A kernel that is kept
  // keeps what it was called with.)
  SingleFlight<Binary> binaries_{is_lasting, kMostIdleBinaries};
};

/// "metal_kernel" or "cuda_kernel": how messages name the interface.
std::string_view interface_name(Dialect dialect);

/// How messages to its caller begin: "[metal_kernel] ".
std::string_view message_prefix(Dialect dialect);

}  // namespace kiln
