// What happens at a launch: the arguments are written into one block of bytes and handed to the driver, which copies
// it. Everything else was done when the code was loaded. A launch on a stream allocates nothing, takes no lock, and
// asks the driver nothing but which context is current, so that it can be captured into a CUDA graph.
//
// The context is the GPU's primary one, which array libraries use as well; so their arrays and streams serve as they
// are.
#include "targets/cuda/cuda_target.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <limits>
#include <mutex>

#include "core/gpu_image.h"
#include "core/out_of_memory.h"
#include "core/settings.h"
#include "core/text.h"
#include "kiln/error.h"
#include "targets/cuda/driver.h"

namespace kiln {
namespace {

// What a hardware grid may have in y and z, and in x.
constexpr uint64_t kMostInYOrZ = 65535;
constexpr uint64_t kMostInX = std::numeric_limits<int32_t>::max();

// Compiled code may use what came with these: arithmetic of bfloat, among others.
constexpr int kOldestArchitecture = 80;

constexpr size_t kLogBytes = 8192;

// ---- Images

struct ImageParts {
  const GpuImageHeader* header = nullptr;
  const char* entry = nullptr;
  std::span<const std::byte> code;
};

[[noreturn]] void refuse_image(const char* what) { throw InternalError(concat("an image for a GPU ", what)); }

ImageParts read_image(std::span<const std::byte> image, const GpuBlockLayout& layout) {
  ImageParts parts;
  if (image.size() < sizeof(GpuImageHeader)) refuse_image("is too short");
  parts.header = reinterpret_cast<const GpuImageHeader*>(image.data());
  const GpuImageHeader& header = *parts.header;
  if (header.magic != kGpuImageMagic || header.version != kGpuImageVersion) refuse_image("is of another version");
  if (header.total_bytes != image.size()) refuse_image("has another size than it says");
  if (header.kind != GpuCodeKind::kPtx && header.kind != GpuCodeKind::kCubin) refuse_image("has code of no known kind");
  if (header.block_bytes != layout.bytes) refuse_image("is for other arguments");
  if (header.entry_offset < sizeof header || header.entry_offset >= image.size() ||
      header.code_offset < sizeof header || header.code_offset > image.size() || header.code_bytes == 0 ||
      header.code_bytes > image.size() - header.code_offset)
    refuse_image("has parts outside of itself");
  parts.entry = reinterpret_cast<const char*>(image.data()) + header.entry_offset;
  if (!std::memchr(parts.entry, 0, image.size() - header.entry_offset)) refuse_image("names no entry");
  parts.code = image.subspan(header.code_offset, header.code_bytes);
  if (header.kind == GpuCodeKind::kPtx && parts.code.back() != std::byte{0}) refuse_image("has PTX without an end");
  return parts;
}

// The same image with machine code in place of its PTX.
std::vector<std::byte> with_machine_code(const ImageParts& parts, std::span<const std::byte> machine_code) {
  size_t entry_bytes = std::strlen(parts.entry) + 1;
  GpuImageHeader header = *parts.header;
  header.kind = GpuCodeKind::kCubin;
  header.entry_offset = sizeof header;
  header.code_offset = (sizeof header + entry_bytes + 15) / 16 * 16;
  header.code_bytes = machine_code.size();
  header.total_bytes = header.code_offset + machine_code.size();
  std::vector<std::byte> image(header.total_bytes);
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + header.entry_offset, parts.entry, entry_bytes);
  std::memcpy(image.data() + header.code_offset, machine_code.data(), machine_code.size());
  return image;
}

// ---- Kernels

class CudaKernel : public LoadedKernel {
 public:
  size_t threadgroup_memory_bytes() const override { return metal_memory + static_memory; }
  size_t thread_memory_bytes() const override { return 0; }
  bool may_fail() const override { return true; }
  std::span<const std::byte> code() const override { return code_copy; }

  // Never unloaded: a CUDA graph that a program has captured may launch it for as long as the process lives.
  CudaFunction function = nullptr;
  GpuBlockLayout layout;
  bool is_metal = true;
  unsigned metal_memory = 0;   // dynamic, the same at each launch
  unsigned static_memory = 0;  // of a CUDA body
  unsigned most_threads = 0;   // of a threadgroup
  unsigned registers = 0;      // of a thread
  std::vector<std::byte> code_copy;
  mutable std::atomic<unsigned> granted_memory{0};  // how much dynamic memory the driver was told of
};

// The block of a launch. (A vector would be one more thing that could move.)
struct alignas(16) Block {
  std::byte bytes[GpuBlockLayout::kLimit];
};

std::string show(const std::array<uint32_t, 3>& e) { return concat("(", e[0], ", ", e[1], ", ", e[2], ")"); }

std::string_view interface_of(const KernelUnit& unit) {
  return unit.dialect == Dialect::kMetal ? "metal_kernel" : "cuda_kernel";
}

// Whether the driver gives up a context that has met this: its memory and all that was launched in it.
bool ends_context(CudaStatus status) {
  switch (status) {
    case 214:  // an uncorrectable memory error
    case 700:  // an illegal address
    case 702:  // a launch that took too long
    case 709:  // a context that was destroyed
    case 710:  // an assertion
    case 714:  // the hardware's stack
    case 715:  // an illegal instruction
    case 716:  // a misaligned address
    case 717:  // an address of the wrong space
    case 718:  // an invalid program counter
    case 719:  // a launch that failed otherwise
      return true;
    default: return false;
  }
}

int attribute(const Driver& driver, CudaDeviceAttribute which, CudaDevice device) {
  int value = 0;
  driver.device_attribute(&value, which, device);
  return value;
}

std::string architecture_of(const Driver& driver, CudaDevice device) {
  return concat("sm_", attribute(driver, kCudaMajor, device), attribute(driver, kCudaMinor, device));
}

class CudaTarget : public Target {
 public:
  explicit CudaTarget(int index) : driver_(Driver::get()), index_(index), name_(concat("nvidia:", index)) {
    if (index < 0 || index >= driver_.devices())
      throw DeviceError(concat("there is no GPU ", name_, ": this process may use ", driver_.devices(),
                               driver_.devices() == 1 ? " NVIDIA GPU" : " NVIDIA GPUs"));
    CudaDevice device;
    check(driver_.device_get(&device, index), "cuDeviceGet");
    int major = attribute(driver_, kCudaMajor, device);
    spec_ = {DeviceKind::kNvidia, architecture_of(driver_, device), "", settings().passes, settings().pass_limit};
    if (major * 10 + attribute(driver_, kCudaMinor, device) < kOldestArchitecture)
      throw UnsupportedError(concat("the GPU ", name_, " is of architecture ", spec_.cpu, ", and Kiln needs sm_",
                                    kOldestArchitecture, " or later"));
    memory_limit_ = static_cast<size_t>(attribute(driver_, kCudaMaxThreadgroupMemory, device));
    most_in_block_z_ = static_cast<unsigned>(attribute(driver_, kCudaMaxBlockZ, device));
    has_memory_pools_ = attribute(driver_, kCudaHasMemoryPools, device) != 0;
    check(driver_.retain_context(&context_, device), "cuDevicePrimaryCtxRetain");
  }
  ~CudaTarget() override { delete lost_.load(); }

  std::string_view name() const override { return name_; }
  Device device() const override { return {DeviceKind::kNvidia, index_}; }
  const TargetSpec& spec() const override { return spec_; }
  unsigned concurrency() const override { return 1; }
  size_t threadgroup_memory_limit() const override { return memory_limit_; }

  // PTX to machine code, 5 to 20 ms: done once, so that what is found on disk is loaded in less than one.
  bool finish(std::vector<std::byte>& image, const KernelUnit& unit) override {
    GpuBlockLayout layout = gpu_block_layout(unit);
    ImageParts parts = read_image(image, layout);
    if (parts.header->kind != GpuCodeKind::kPtx) return false;
    Use use(*this);
    AllowWhileCapturing allow(driver_);
    std::vector<char> log(kLogBytes);
    CudaJitOption options[] = {kCudaErrorLog, kCudaErrorLogBytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CudaLinker linker = nullptr;
    check(driver_.link_create(2, options, values, &linker), "cuLinkCreate");
    struct Destroy {
      const Driver& driver;
      CudaLinker linker;
      ~Destroy() { driver.link_destroy(linker); }
    } destroy{driver_, linker};
    auto* code = const_cast<std::byte*>(parts.code.data());
    CudaStatus status = driver_.link_add(linker, kCudaLinkPtx, code, parts.code.size(), "kernel", 0, nullptr, nullptr);
    void* machine_code = nullptr;
    size_t bytes = 0;
    if (status == kCudaSuccess) status = driver_.link_complete(linker, &machine_code, &bytes);
    if (status != kCudaSuccess) fail_to_load(unit, status, "PTX", log.data());
    image = with_machine_code(parts, {static_cast<const std::byte*>(machine_code), bytes});
    return true;
  }

  std::shared_ptr<const LoadedKernel> load(std::span<const std::byte> image, const KernelUnit& unit) override {
    auto kernel = std::make_shared<CudaKernel>();
    kernel->layout = gpu_block_layout(unit);
    kernel->is_metal = unit.dialect == Dialect::kMetal;
    ImageParts parts = read_image(image, kernel->layout);
    if (kernel->layout.bytes > GpuBlockLayout::kLimit)
      throw UnsupportedError(concat("[", interface_of(unit), "] The arguments of `", printable(unit.name), "` take ",
                                    kernel->layout.bytes, " bytes, and a launch on an NVIDIA GPU has room for ",
                                    GpuBlockLayout::kLimit, "."));
    Use use(*this);
    AllowWhileCapturing allow(driver_);
    std::vector<char> log(kLogBytes);
    CudaJitOption options[] = {kCudaErrorLog, kCudaErrorLogBytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CudaModule module = nullptr;
    CudaStatus status = driver_.load_module(&module, parts.code.data(), 2, options, values);
    if (status != kCudaSuccess)
      fail_to_load(unit, status, parts.header->kind == GpuCodeKind::kPtx ? "PTX" : "machine code", log.data());
    status = driver_.get_function(&kernel->function, module, parts.entry);
    if (status != kCudaSuccess) {
      driver_.unload_module(module);
      fail_to_load(unit, status, "code", parts.entry);
    }
    kernel->most_threads = function_attribute(*kernel, kCudaMaxThreads);
    kernel->static_memory = function_attribute(*kernel, kCudaStaticMemory);
    kernel->registers = function_attribute(*kernel, kCudaRegisters);
    kernel->metal_memory = static_cast<unsigned>(parts.header->threadgroup_memory_bytes);
    kernel->code_copy.assign(parts.code.begin(), parts.code.end());
    // More than the GPU has is refused by who asked for the code.
    if (kernel->metal_memory <= memory_limit_) grant_memory(*kernel, kernel->metal_memory);
    return kernel;
  }

  void check_launch(const LoadedKernel& loaded, const KernelUnit& unit, const LaunchGeometry& geometry,
                    const LaunchOptions& options) const override {
    const auto& kernel = static_cast<const CudaKernel&>(loaded);
    uint64_t threads = geometry.threads_in_full_threadgroup();
    if (threads > kernel.most_threads)
      throw ValueError(concat("[", interface_of(unit), "] Expected `threadgroup` to have at most ", kernel.most_threads,
                              " threads for `", printable(unit.name), "` on ", name_, ", where each needs ",
                              kernel.registers, " registers, but got ", show(geometry.threads_per_threadgroup), "."));
    const auto& groups = geometry.threadgroups_per_grid;
    if (kernel.is_metal) {
      if ((groups[1] > kMostInYOrZ || groups[2] > kMostInYOrZ) && geometry.threadgroups > kMostInX)
        throw ValueError(concat("[metal_kernel] Expected `grid` to have at most ", kMostInX, " threadgroups on ", name_,
                                " where there are more than ", kMostInYOrZ, " in y or z, but got ", show(groups), "."));
      return;
    }
    if (geometry.threads_per_threadgroup[2] > most_in_block_z_)
      throw ValueError(concat("[cuda_kernel] Expected `threadgroup` to have at most ", most_in_block_z_,
                              " threads in z on ", name_, " but got ", show(geometry.threads_per_threadgroup), "."));
    if (groups[1] > kMostInYOrZ || groups[2] > kMostInYOrZ)
      throw ValueError(concat("[cuda_kernel] Expected `grid` to have at most ", kMostInYOrZ,
                              " threadgroups in y and z on ", name_, " but got ", show(groups), "."));
    if (options.dynamic_bytes + kernel.static_memory > memory_limit_)
      throw ValueError(concat("[cuda_kernel] Expected `shared_memory` to be at most ",
                              memory_limit_ - std::min<size_t>(kernel.static_memory, memory_limit_), " for `",
                              printable(unit.name), "` on ", name_, ", which has ", memory_limit_,
                              " bytes for each threadgroup, but got ", options.dynamic_bytes, "."));
  }

  void launch(const LoadedKernel& loaded, const KernelUnit& unit, const LaunchGeometry& geometry,
              std::span<const LaunchArgument> arguments, const LaunchOptions& options) override {
    const auto& kernel = static_cast<const CudaKernel&>(loaded);
    if (geometry.threadgroups == 0) return;
    Block block;
    std::memset(block.bytes, 0, kernel.layout.bytes);
    if (kernel.is_metal)
      write_metal_block(kernel, unit, geometry, arguments, block.bytes);
    else
      write_cuda_block(kernel, unit, arguments, block.bytes);

    const auto& threads = geometry.threads_per_threadgroup;
    GpuLaunch launch{kernel.function, geometry.threadgroups_per_grid, threads,
                     static_cast<unsigned>(options.dynamic_bytes), nullptr};
    Use use(*this);
    if (kernel.is_metal) {
      launch.dynamic_bytes = kernel.metal_memory;
      // Code goes by the geometry where the hardware's is another.
      if (is_linear(geometry)) launch.threadgroups = {static_cast<unsigned>(geometry.threadgroups), 1, 1};
      if (threads[2] > most_in_block_z_)
        launch.threads_per_threadgroup = {static_cast<unsigned>(geometry.threads_in_full_threadgroup()), 1, 1};
    } else {
      grant_memory(kernel, launch.dynamic_bytes);
    }
    auto where = [&] {
      return concat("kernel `", printable(unit.name), "` on ", name_, " with ", show(geometry.threadgroups_per_grid),
                    " threadgroups of ", show(threads), " threads and ", launch.dynamic_bytes + kernel.static_memory,
                    " bytes of threadgroup memory: ");
    };
    if (options.queue) {
      std::vector<void*> parameters = parameters_in(kernel, block.bytes);
      launch.parameters = parameters.data();
      try {
        return options.queue->add(launch);
      } catch (const std::runtime_error& error) {
        throw DeviceError(where() + error.what());
      }
    }
    CudaStatus status = launch_on(static_cast<CudaStream>(options.stream), launch, block.bytes, kernel.layout.bytes);
    if (status == kCudaSuccess) return;
    if (ends_context(status)) lose_context(where(), status);
    const char* advice = "";
    if (status == kCudaLaunchOutOfResources)
      advice = ". A smaller threadgroup needs fewer registers";
    else if (status == kCudaOutOfMemory)
      advice = ". Arrays that are no longer needed, and what array libraries keep for later, can be freed";
    throw DeviceError(concat(where(), "cuLaunchKernel gives ", driver_.describe(status), advice));
  }

  void fill(void* data, size_t count, std::span<const std::byte> pattern, void* stream_pointer) override {
    if (count == 0) return;
    auto stream = static_cast<CudaStream>(stream_pointer);
    auto address = reinterpret_cast<CudaAddress>(data);
    uint32_t words[2] = {};
    std::memcpy(words, pattern.data(), pattern.size());
    Use use(*this);
    switch (pattern.size()) {
      case 1:
        return check(driver_.set_8(address, static_cast<unsigned char>(words[0]), count, stream), "cuMemsetD8Async");
      case 2:
        return check(driver_.set_16(address, static_cast<unsigned short>(words[0]), count, stream), "cuMemsetD16Async");
      case 4: return check(driver_.set_32(address, words[0], count, stream), "cuMemsetD32Async");
      default: break;
    }
    if (words[0] == words[1]) return check(driver_.set_32(address, words[0], 2 * count, stream), "cuMemsetD32Async");
    check(driver_.set_32(address, words[0], 1, stream), "cuMemsetD32Async");
    check(driver_.set_32(address + 4, words[1], 1, stream), "cuMemsetD32Async");
    // Doubles what has been written.
    size_t bytes = count * pattern.size();
    for (size_t done = pattern.size(); done < bytes; done *= 2)
      check(driver_.copy_on_device(address + done, address, std::min(done, bytes - done), stream), "cuMemcpyDtoDAsync");
  }

  void wait(void* stream) override {
    Use use(*this);
    check(driver_.wait(static_cast<CudaStream>(stream)), "cuStreamSynchronize");
  }

  TargetMemory allocate(size_t bytes, void* stream) override {
    if (!has_memory_pools_)
      throw UnsupportedError(concat("the GPU ", name_, " cannot allocate memory in the order of a stream, as numbers ",
                                    "among the inputs and copies of them need it; arrays that are row-contiguous ",
                                    "serve"));
    Use use(*this);
    CudaAddress address = 0;
    CudaStatus status = driver_.allocate(&address, std::max<size_t>(bytes, 1), static_cast<CudaStream>(stream));
    if (status == kCudaOutOfMemory) throw OutOfMemory(concat("there is no memory for ", bytes, " bytes on ", name_));
    check(status, "cuMemAllocAsync");
    return {reinterpret_cast<void*>(address), ReleaseMemory{this, stream}};
  }

  bool copy_row_contiguous(const void*, std::span<const int64_t>, std::span<const int64_t>, size_t, void*) override {
    return false;
  }

 private:
  // For the time of a scope, this target's context is the thread's.
  class Use {
   public:
    explicit Use(CudaTarget& target) : driver_(target.driver_) {
      target.check_usable();
      CudaContext current = nullptr;
      driver_.current_context(&current);
      if (current == target.context_) return;
      target.check(driver_.push_context(target.context_), "cuCtxPushCurrent");
      pushed_ = true;
    }
    ~Use() {
      CudaContext popped;
      if (pushed_) driver_.pop_context(&popped);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const Driver& driver_;
    bool pushed_ = false;
  };

  // While this thread captures a stream into a graph, the driver refuses functions that may wait for the GPU. Loading
  // code is one of them, and has nothing to do with what is captured.
  class AllowWhileCapturing {
   public:
    explicit AllowWhileCapturing(const Driver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
    ~AllowWhileCapturing() { driver_.exchange_capture_mode(&mode_); }
    AllowWhileCapturing(const AllowWhileCapturing&) = delete;
    AllowWhileCapturing& operator=(const AllowWhileCapturing&) = delete;

   private:
    const Driver& driver_;
    CudaCaptureMode mode_ = kCudaCaptureRelaxed;
  };

  CudaStatus launch_on(CudaStream stream, const GpuLaunch& launch, std::byte* block, size_t bytes) const {
    void* extra[] = {/*CU_LAUNCH_PARAM_BUFFER_POINTER*/ reinterpret_cast<void*>(1), block,
                     /*CU_LAUNCH_PARAM_BUFFER_SIZE*/ reinterpret_cast<void*>(2), &bytes,
                     /*CU_LAUNCH_PARAM_END*/ nullptr};
    const auto& groups = launch.threadgroups;
    const auto& threads = launch.threads_per_threadgroup;
    return driver_.launch(static_cast<CudaFunction>(launch.function), groups[0], groups[1], groups[2], threads[0],
                          threads[1], threads[2], launch.dynamic_bytes, stream, nullptr, extra);
  }

  // The same block for those who want to know where each parameter of the function lies. That of a Metal body is one.
  static std::vector<void*> parameters_in(const CudaKernel& kernel, std::byte* block) {
    if (kernel.is_metal) return {block};
    std::vector<void*> parameters;
    for (uint32_t offset : kernel.layout.offsets) parameters.push_back(block + offset);
    return parameters;
  }

  static bool is_linear(const LaunchGeometry& geometry) {
    return geometry.threadgroups_per_grid[1] > kMostInYOrZ || geometry.threadgroups_per_grid[2] > kMostInYOrZ;
  }

  static void write_metal_block(const CudaKernel& kernel, const KernelUnit& unit, const LaunchGeometry& geometry,
                                std::span<const LaunchArgument> arguments, std::byte* block) {
    static_assert(numbers_of(ThreadValueScope::kGrid) == 9, "set each value of a grid below");
    GpuGeometry positions{};
    std::copy_n(geometry.threads_per_grid.begin(), 3, positions.threads_per_grid);
    std::copy_n(geometry.threads_per_threadgroup.begin(), 3, positions.threads_per_threadgroup);
    std::copy_n(geometry.threadgroups_per_grid.begin(), 3, positions.threadgroups_per_grid);
    positions.is_linear = is_linear(geometry);
    std::memcpy(block, &positions, sizeof positions);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const KernelParameter& parameter = unit.parameters[i];
      std::byte* place = block + kernel.layout.offsets[i];
      if (parameter.role == ParameterRole::kInput || parameter.role == ParameterRole::kOutput) {
        GpuArgument argument{reinterpret_cast<uint64_t>(arguments[i].data), arguments[i].first_byte,
                             arguments[i].end_byte};
        std::memcpy(place, &argument, sizeof argument);
      } else if (parameter.values.empty()) {
        copy_dimensions(parameter, arguments[i], kPaddedDimensions, place);
      }
    }
  }

  static void write_cuda_block(const CudaKernel& kernel, const KernelUnit& unit,
                               std::span<const LaunchArgument> arguments, std::byte* block) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const KernelParameter& parameter = unit.parameters[i];
      std::byte* place = block + kernel.layout.offsets[i];
      if (parameter.role == ParameterRole::kInput || parameter.role == ParameterRole::kOutput)
        std::memcpy(place, &arguments[i].data, sizeof(void*));
      else
        copy_dimensions(parameter, arguments[i], kMaxCudaDimensions, place);
    }
  }

  static void copy_dimensions(const KernelParameter& parameter, const LaunchArgument& argument, size_t dimensions,
                              std::byte* place) {
    switch (parameter.role) {
      case ParameterRole::kShape: std::memcpy(place, argument.data, dimensions * sizeof(int32_t)); break;
      case ParameterRole::kStrides: std::memcpy(place, argument.data, dimensions * sizeof(int64_t)); break;
      default: std::memcpy(place, argument.data, sizeof(int32_t)); break;
    }
  }

  unsigned function_attribute(const CudaKernel& kernel, CudaFunctionAttribute which) {
    int value = 0;
    check(driver_.function_attribute(&value, which, kernel.function), "cuFuncGetAttribute");
    return static_cast<unsigned>(value);
  }

  // More than 48 KB of dynamic memory must be asked for before a launch.
  void grant_memory(const CudaKernel& kernel, unsigned bytes) {
    constexpr unsigned kAlwaysGranted = 48 << 10;
    if (bytes + kernel.static_memory <= kAlwaysGranted || bytes <= kernel.granted_memory.load()) return;
    std::lock_guard lock(grant_mutex_);
    if (bytes <= kernel.granted_memory.load()) return;
    check(driver_.set_function_attribute(kernel.function, kCudaMaxDynamicMemory, static_cast<int>(bytes)),
          "cuFuncSetAttribute");
    kernel.granted_memory = bytes;
  }

  void check_usable() const {
    if (is_forked_from_gpu_process()) throw DeviceError(kForkedMessage);
    if (const std::string* lost = lost_.load(std::memory_order_acquire)) throw DeviceError(*lost);
  }

  void check(CudaStatus status, const char* function) {
    if (status == kCudaSuccess) return;
    if (ends_context(status)) lose_context(concat(name_, ": "), status);
    throw DeviceError(concat(name_, ": ", function, " gives ", driver_.describe(status)));
  }

  [[noreturn]] void lose_context(const std::string& where, CudaStatus status) {
    auto message = std::make_unique<const std::string>(
        concat("the context of ", name_, " is lost: a kernel that was launched before has ended it with ",
               driver_.describe(status),
               ". Nothing can run on it any more; start the process anew. With CUDA_LAUNCH_BLOCKING=1 in its ",
               "environment, the launch at fault raises this itself"));
    DeviceError error(where + *message);
    const std::string* none = nullptr;
    // It is what every later launch says.
    if (lost_.compare_exchange_strong(none, message.get())) static_cast<void>(message.release());
    throw error;
  }

  [[noreturn]] void fail_to_load(const KernelUnit& unit, CudaStatus status, const char* what, const char* log) {
    std::string where = concat("[", interface_of(unit), "] `", printable(unit.name), "` on ", name_, ": ");
    if (ends_context(status)) lose_context(where, status);
    if (status == kCudaUnsupportedPtxVersion)
      throw DeviceError(concat(where, "the driver, for CUDA ", driver_.version() / 1000, ".",
                               driver_.version() % 1000 / 10, ", is too old for this code: ", driver_.describe(status),
                               ". Installing a newer driver helps"));
    if (status == kCudaOutOfMemory || status == kCudaDeinitialized)
      throw DeviceError(concat(where, "the driver cannot load it: ", driver_.describe(status)));
    throw InternalError(
        concat(where, "the driver does not take the ", what, ": ", driver_.describe(status), *log ? ": " : "", log));
  }

  const Driver& driver_;
  const int index_;
  const std::string name_;
  TargetSpec spec_;
  size_t memory_limit_ = 0;
  unsigned most_in_block_z_ = 0;
  bool has_memory_pools_ = false;
  CudaContext context_ = nullptr;
  std::mutex grant_mutex_;
  std::atomic<const std::string*> lost_{nullptr};

  void release(void* memory, void* stream) noexcept override {
    if (is_forked_from_gpu_process() || lost_.load()) return;
    try {
      Use use(*this);
      driver_.free(reinterpret_cast<CudaAddress>(memory), static_cast<CudaStream>(stream));
    } catch (...) {  // the context is gone, and its memory with it
    }
  }
};

}  // namespace

bool is_gpu_architecture(std::string_view name) {
  if (!name.starts_with("sm_")) return false;
  name.remove_prefix(3);
  int number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  std::string_view rest(end, static_cast<size_t>(name.data() + name.size() - end));
  return error == std::errc() && number >= 80 && number < 1000 && (rest.empty() || rest == "a");
}

std::unique_ptr<Target> make_cuda_target(int index) { return std::make_unique<CudaTarget>(index); }

CudaInfo cuda_info() {
  const Driver& driver = Driver::get();
  CudaInfo info{driver.version(), driver.path(), {}};
  for (int index = 0; index < driver.devices(); ++index) {
    CudaDevice device;
    if (driver.device_get(&device, index) != kCudaSuccess) continue;
    char name[256] = {};
    driver.device_name(name, sizeof name - 1, device);
    size_t bytes = 0;
    driver.device_memory(&bytes, device);
    info.devices.push_back(
        {name, architecture_of(driver, device), attribute(driver, kCudaMultiprocessors, device), bytes});
  }
  return info;
}

}  // namespace kiln
