#include "targets/cpu/cpu_target.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "core/diagnostic.h"
#include "core/floating_point_state.h"
#include "core/interruption.h"
#include "core/job_threads.h"
#include "core/launch_geometry.h"
#include "core/settings.h"
#include "core/text.h"
#include "core/thread_stack.h"
#include "kiln/error.h"
#include "targets/cpu/group_position.h"
#include "targets/cpu/group_scheduler.h"
#include "targets/cpu/huge_pages.h"
#include "targets/cpu/image_loader.h"
#include "targets/cpu/kernel_output.h"
#include "targets/cpu/launch_attendant.h"
#include "targets/cpu/simdgroup_scheduler.h"
#include "targets/cpu/strided_copy.h"
#include "targets/cpu/thread_pool.h"

namespace kiln {
namespace {

// A launch of fewer threads than this is done before another core has woken up.
constexpr uint64_t kSmallLaunchThreads = 4096;
// Claims a participant makes of a launch that is spread evenly; more balance better and cost more.
constexpr uint64_t kClaimsPerThread = 16;
// What a launch takes of the caller's stack besides its compiled code.
constexpr size_t kLaunchStackBytes = 24 << 10;

// The best level of x86-64 that this processor reaches and the settings allow. Levels rather than processors, so that
// what is compiled on one machine serves others.
std::string processor_level() {
  __builtin_cpu_init();
  int most = settings().cpu_level;
  if (most >= 4 && __builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (most >= 3 && __builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  if (most >= 2 && __builtin_cpu_supports("x86-64-v2")) return "x86-64-v2";
  return "x86-64";
}

// A Zen 4 takes two thirds of the time for a grid sample where lines are asked for in the second cache: its first one
// waits for few at a time. A Zen 3, which has no AVX-512, takes a twentieth longer then, an Emerald Rapids a quarter.
// Of AMD's later ones it is assumed.
bool prefetches_to_second_cache() {
  static const bool does = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f");
  }();
  return does;
}

class CpuKernel : public LoadedKernel {
 public:
  explicit CpuKernel(std::span<const std::byte> binary) : image(binary) {}
  size_t threadgroup_memory_bytes() const override { return image.header().threadgroup_memory_bytes; }
  size_t thread_memory_bytes() const override {
    return image.header().kind == CpuImageKind::kSimdgroups
               ? (image.header().frame_bytes + kSimdgroupSize - 1) / kSimdgroupSize
               : image.header().frame_bytes;
  }
  bool may_fail() const override {
    // Threads that share simdgroups because rows are short wait for nothing.
    const bool may_wait = image.header().kind == CpuImageKind::kCoroutines || image.header().site_count > 0;
    return may_wait || threadgroup_memory_bytes() > 0 || image.header().polls || image.may_fail();
  }
  std::span<const std::byte> code() const override { return image.code(); }

  const LoadedImage image;
};

// Memory for the variables of one threadgroup, on a cache line of its own.
class ThreadgroupMemory {
 public:
  explicit ThreadgroupMemory(size_t bytes)
      : memory_(bytes ? static_cast<char*>(::operator new(bytes, std::align_val_t(64))) : nullptr) {}
  ~ThreadgroupMemory() { ::operator delete(memory_, std::align_val_t(64)); }
  ThreadgroupMemory(const ThreadgroupMemory&) = delete;
  ThreadgroupMemory& operator=(const ThreadgroupMemory&) = delete;
  char* get() const { return memory_; }

 private:
  char* memory_;
};

// Rows of at most so many are joined; a row's count is one of 32 bits.
constexpr uint64_t kJoinedThreads = 1 << 16;

// Runs threadgroups [begin, end) of a kernel whose threads do not wait for one another.
void run_rows(const LoadedImage& image, const CpuLaunch& launch, uint64_t begin, uint64_t end, char* memory) {
  CpuRowFunction row = image.row_function();
  CpuThread thread{};
  thread.threadgroup_memory = memory;
  set_launch_values(thread, launch);
  bool joins = image.header().joins_rows != 0;
  for (uint64_t group = begin, next; group < end; group = next) {
    if (is_ended(launch)) return;
    GroupPosition position = locate_group(launch, group);
    set_group_values(thread, position);
    next = group + 1;
    uint64_t threads = position.threads[0];
    // One call for the neighbours' rows: what is the same in all of them is computed once, and narrow rows fill
    // simdgroups.
    if (joins) {
      uint64_t together = std::max<uint64_t>(1, kJoinedThreads / launch.threads_per_threadgroup[0]);
      next = std::min({end, group + together, group + launch.threadgroups_per_grid[0] - position.group[0]});
      uint64_t first = uint64_t{position.group[0]} * launch.threads_per_threadgroup[0];
      threads = std::min((next - group) * launch.threads_per_threadgroup[0], launch.threads_per_grid[0] - first);
    }
    uint32_t rows = image.header().takes_rows ? position.threads[1] : 1;
    // Of the first thread of each row; its x is 0.
    static_assert(numbers_of(ThreadValueScope::kThread) == 4,
                  "set each value of a thread for the first thread of a row");
    uint32_t& index = thread.values[kIndexInThreadgroup];
    index = 0;
    for (uint32_t z = 0; z < position.threads[2]; ++z)
      for (uint32_t y = 0; y < position.threads[1]; y += rows) {
        thread.values[kPositionInThreadgroup + 1] = y;
        thread.values[kPositionInThreadgroup + 2] = z;
        row(&launch, &thread, static_cast<uint32_t>(threads), rows);
        index += position.threads[0] * rows;
      }
  }
}

// Runs threadgroups [begin, end), and what is claimed next, until one fails.
template <typename Scheduler>
std::optional<BarrierFault> run_groups(const LoadedImage& image, const CpuLaunch& launch, ThreadPool::Claims& claims,
                                       uint64_t begin, uint64_t end, const ThreadgroupMemory& memory) {
  Scheduler scheduler(image, launch);
  BarrierFault fault;
  do {
    if (!scheduler.run(begin, end, memory.get(), fault)) return fault;
  } while (!is_ended(launch) && claims.next(begin, end));
  return std::nullopt;
}

std::string describe(const BarrierFault& fault, const KernelUnit& unit) {
  SourcePosition position = unit.source_map.locate(static_cast<int>(fault.line));
  std::string_view path = unit.path_of(position);
  const char* function = fault.is_masked                   ? " threads that its mask names reach the _sync function"
                         : unit.dialect == Dialect::kMetal ? " threads reach the threadgroup_barrier"
                                                           : " threads reach the __syncthreads";
  return concat("kernel `", printable(unit.name), "`: only ", fault.waiting, " of ", fault.expected, function,
                " in line ", position.line, " of ",
                !path.empty()                          ? printable(path)
                : position.text == SourceText::kHeader ? "the header"
                                                       : "the source",
                "; the launch was ended");
}

std::string describe(const KernelFailure& failure, const KernelUnit& unit) {
  SourcePosition position = unit.source_map.locate(static_cast<int>(failure.line));
  std::string_view path = unit.path_of(position);
  return concat("kernel `", printable(unit.name), "`: ",
                failure.assertion.empty() ? std::string("__trap() was called")
                                          : concat("assertion `", printable(failure.assertion), "` failed"),
                " in line ", position.line, " of ",
                !path.empty()                          ? printable(path)
                : position.text == SourceText::kHeader ? "the header"
                                                       : "the source");
}

[[noreturn]] void throw_failure(const KernelFailure& failure, const KernelUnit& unit) {
  if (failure.unsupported.empty()) throw DeviceError(describe(failure, unit));
  Diagnostic diagnostic = diagnostic_at(unit, static_cast<int>(failure.line), failure.unsupported);
  diagnostic.column = static_cast<int>(failure.column);
  throw UnsupportedError(unsupported_message(unit, diagnostic));
}

class CpuTarget : public Target {
 public:
  CpuTarget() {
    spec_ = {DeviceKind::kCpu, processor_level(), settings().cpu_engine, settings().passes, settings().pass_limit};
  }

  std::string_view name() const override { return "cpu"; }
  Device device() const override { return {}; }
  const TargetSpec& spec() const override { return spec_; }

  unsigned concurrency() const override { return usable_threads(); }

  size_t threadgroup_memory_limit() const override { return kCpuThreadgroupMemoryLimit; }

  bool finish(std::vector<std::byte>&, const KernelUnit&) override { return false; }

  std::shared_ptr<const LoadedKernel> load(std::span<const std::byte> image, const KernelUnit&) override {
    return std::make_shared<CpuKernel>(image);
  }

  void check_launch(const LoadedKernel&, const KernelUnit&, const LaunchGeometry&,
                    const LaunchOptions&) const override {}

  void launch(const LoadedKernel& loaded, const KernelUnit& unit, const LaunchGeometry& geometry,
              std::span<const LaunchArgument> arguments, const LaunchOptions& options) override {
    static_assert(sizeof(LaunchArgument) == sizeof(CpuArgument) &&
                  offsetof(LaunchArgument, end_byte) == offsetof(CpuArgument, end_byte));
    if (geometry.threadgroups == 0) return;
    const LoadedImage& image = static_cast<const CpuKernel&>(loaded).image;
    LaunchStop own_stop;
    LaunchStop& stop = options.stop ? *options.stop : own_stop;
    InterruptibleScope scope(stop);
    const size_t stack_bytes = image.header().stack_bytes + kLaunchStackBytes;
    if (stack_left() >= stack_bytes) {
      launch_here(image, unit, geometry, arguments, options, stop, &scope);
    } else {
      std::function<void()> attend;
      if (scope.is_watched()) attend = [&] { static_cast<void>(scope.attend()); };
      JobThreads::launching().run([&] { launch_here(image, unit, geometry, arguments, options, stop, nullptr); },
                                  stack_bytes, attend);
    }
    if (stop.is_stopped.load(std::memory_order_relaxed)) throw Interrupted();
  }

  void fill(void* data, size_t count, std::span<const std::byte> pattern, void*) override {
    size_t bytes = count * pattern.size();
    use_huge_pages(data, bytes);
    in_pieces(bytes, [&](size_t begin, size_t end) { fill_bytes(data, begin, end, pattern); });
  }

  void wait(void*) override {}

  TargetMemory allocate(size_t bytes, void* stream) override {
    // Not operator new: a sanitizer's ends the process where there is no memory.
    constexpr size_t kAlignment = 64, kMost = PTRDIFF_MAX - kAlignment;
    size_t rounded = std::max(bytes + kAlignment - 1, kAlignment) / kAlignment * kAlignment;
    void* memory = bytes > kMost ? nullptr : std::aligned_alloc(kAlignment, rounded);
    if (!memory) throw std::bad_alloc();
    return {memory, ReleaseMemory{this, stream}};
  }

  bool copy_row_contiguous(const void* data, std::span<const int64_t> shape, std::span<const int64_t> strides,
                           size_t element_bytes, void* out) override {
    copy_strided(data, shape, strides, element_bytes, out);
    return true;
  }

 private:
  // `scope`: null on a thread that is not the caller's.
  static void launch_here(const LoadedImage& image, const KernelUnit& unit, const LaunchGeometry& geometry,
                          std::span<const LaunchArgument> arguments, const LaunchOptions& options,
                          const LaunchStop& stop, InterruptibleScope* scope) {
    DefaultFloatingPoint floating_point;
    CpuLaunch launch{};
    launch.arguments = reinterpret_cast<const CpuArgument*>(arguments.data());
    set_attendant(launch, stop, scope);
    launch.prefetches_to_second_cache = prefetches_to_second_cache();
    std::copy(geometry.threads_per_grid.begin(), geometry.threads_per_grid.end(), launch.threads_per_grid);
    std::copy(geometry.threads_per_threadgroup.begin(), geometry.threads_per_threadgroup.end(),
              launch.threads_per_threadgroup);
    std::copy(geometry.threadgroups_per_grid.begin(), geometry.threadgroups_per_grid.end(),
              launch.threadgroups_per_grid);

    bool small = geometry.threadgroups * geometry.threads_in_full_threadgroup() < kSmallLaunchThreads;
    KernelFailures failures;
    if (image.header().kind == CpuImageKind::kLoop && !image.header().may_spin && small) {
      launch.is_alone = options.fills_outputs;
      KernelFailures::Scope failure_scope(failures);
      ThreadgroupMemory memory(image.header().threadgroup_memory_bytes);
      run_rows(image, launch, 0, geometry.threadgroups, memory.get());
      if (failures.first() && !stop.is_stopped.load(std::memory_order_relaxed)) throw_failure(*failures.first(), unit);
      return;
    }
    for (size_t i = 0; i < arguments.size(); ++i)
      if (unit.parameters[i].role == ParameterRole::kOutput)
        use_huge_pages(arguments[i].data, static_cast<size_t>(arguments[i].end_byte * options.batch));
    ThreadPool& pool = ThreadPool::shared();
    ThreadPool::Work work;
    work.pieces = geometry.threadgroups;
    work.pieces_may_wait = image.header().may_spin;
    if (scope && scope->is_watched()) work.while_waiting = [scope] { static_cast<void>(scope->attend()); };
    // Threadgroups that may wait for one another are claimed one by one, so that none waits behind its waiter.
    if (!work.pieces_may_wait)
      work.pieces_per_claim = small ? work.pieces : geometry.threadgroups / (pool.threads() * kClaimsPerThread);

    // One that is claimed as a whole is run by who claims it.
    launch.is_alone = options.fills_outputs && (pool.threads() == 1 || (small && !work.pieces_may_wait));
    std::unique_ptr<CpuStripedLock[]> striped_locks;
    if (image.header().uses_striped_locks && options.fills_outputs && !launch.is_alone) {
      striped_locks = std::make_unique<CpuStripedLock[]>(kCpuStripedLocks);
      launch.striped_locks = striped_locks.get();
    }

    std::mutex fault_mutex;
    std::optional<BarrierFault> fault;
    const pthread_t caller = pthread_self();
    pool.run(work, [&, scope](ThreadPool::Claims& claims) {
      DefaultFloatingPoint own_floating_point;  // of a worker, which began with what its creator had
      KernelFailures::Scope failure_scope(failures);
      CpuLaunch own_launch = launch;
      if (!pthread_equal(pthread_self(), caller)) set_attendant(own_launch, stop, nullptr);
      ThreadgroupMemory memory(image.header().threadgroup_memory_bytes);
      uint64_t begin, end;
      if (image.header().kind == CpuImageKind::kLoop) {
        while (claims.next(begin, end) && !is_ended(own_launch)) run_rows(image, own_launch, begin, end, memory.get());
        return;
      }
      if (!claims.next(begin, end)) return;
      std::optional<BarrierFault> found =
          image.header().kind == CpuImageKind::kCoroutines
              ? run_groups<GroupScheduler>(image, own_launch, claims, begin, end, memory)
              : run_groups<SimdgroupScheduler>(image, own_launch, claims, begin, end, memory);
      if (!found) return;
      claims.stop();
      std::lock_guard lock(fault_mutex);
      if (!fault) fault = found;
    });
    // What an interruption has left is no failure.
    if (stop.is_stopped.load(std::memory_order_relaxed)) return;
    if (failures.first()) throw_failure(*failures.first(), unit);
    if (fault) throw DeviceError(describe(*fault, unit));
  }

  void release(void* memory, void*) noexcept override { std::free(memory); }

  // Memory that is touched for the first time is given out page by page, which takes longer than writing it; several
  // threads do it faster.
  template <typename Function>
  static void in_pieces(size_t bytes, const Function& function) {
    constexpr size_t kPiece = 1 << 20;
    if (bytes <= 2 * kPiece) return function(0, bytes);
    ThreadPool::Work work;
    work.pieces = (bytes + kPiece - 1) / kPiece;
    ThreadPool::shared().run(work, [&](ThreadPool::Claims& claims) {
      uint64_t begin, end;
      while (claims.next(begin, end)) function(begin * kPiece, std::min(bytes, end * kPiece));
    });
  }

  // Bytes [begin, end) of an array that is filled with a pattern; begin is a multiple of its size.
  static void fill_bytes(void* data, size_t begin, size_t end, std::span<const std::byte> pattern) {
    auto* out = static_cast<std::byte*>(data) + begin;
    size_t bytes = end - begin;
    bool same = std::all_of(pattern.begin(), pattern.end(), [&](std::byte b) { return b == pattern[0]; });
    if (same) {
      std::memset(out, static_cast<int>(pattern[0]), bytes);
      return;
    }
    // Doubles what has been written.
    size_t done = std::min(bytes, pattern.size());
    std::memcpy(out, pattern.data(), done);
    while (done < bytes) {
      size_t more = std::min({done, bytes - done, size_t{4096}});
      std::memcpy(out + done, out, more);
      done += more;
    }
  }

  TargetSpec spec_;
};

}  // namespace

bool is_processor_level(std::string_view name) {
  return name == "x86-64" || name == "x86-64-v2" || name == "x86-64-v3" || name == "x86-64-v4";
}

std::unique_ptr<Target> make_cpu_target(int index) {
  if (index != 0) throw DeviceError(concat("There is one CPU, and its index is 0; got ", index, "."));
  return std::make_unique<CpuTarget>();
}

}  // namespace kiln
