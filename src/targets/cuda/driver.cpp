#include "targets/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <iterator>
#include <mutex>

#include "core/fork_guard.h"
#include "core/settings.h"
#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

// The first name that can be opened. The driver installs the first one; the others are where WSL and containers put it
// without telling the loader.
constexpr const char* kDriverNames[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
                                        "/usr/local/nvidia/lib64/libcuda.so.1"};

constexpr const char* kHowToGetDriver =
    "Installing NVIDIA's driver brings it, and KILN_CUDA_DRIVER names another file.";

std::atomic<bool> g_initialized{false};
std::atomic<bool> g_forked{false};

[[maybe_unused]] const int g_registered = pthread_atfork(nullptr, nullptr, [] {
  if (g_initialized) g_forked = true;
});

// "12.4", of 12040
std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

}  // namespace

const char* const kForkedMessage =
    "this process was forked from one that had used the GPU, and CUDA does not work in such a process. Start it anew "
    "(Python: multiprocessing's start method \"spawn\" or \"forkserver\"), or use the GPU only in children";

bool is_forked_from_gpu_process() { return g_forked.load(std::memory_order_relaxed); }

const Driver& Driver::get() {
  static std::atomic<const Driver*> ready{nullptr};
  if (is_forked_from_gpu_process()) throw DeviceError(kForkedMessage);
  if (const Driver* driver = ready.load(std::memory_order_acquire)) return *driver;
  // Never destroyed: launches may still run when static objects are.
  static std::mutex* mutex = new std::mutex;
  static Driver* driver = new Driver;
  ForkGuard guard;
  std::lock_guard lock(*mutex);
  if (!ready.load()) {
    driver->open();
    driver->start();
    ready = driver;
  }
  return *driver;
}

void Driver::open() {
  void* library = nullptr;
  std::string first_reason;
  auto try_name = [&](const char* name) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library)
      path_ = name;
    else if (first_reason.empty())
      first_reason = dlerror();
  };
  if (const std::string& named = settings().cuda_driver_path; !named.empty())
    try_name(named.c_str());
  else
    for (auto name = std::begin(kDriverNames); !library && name != std::end(kDriverNames); ++name) try_name(*name);
  if (!library) throw DeviceError(concat("NVIDIA's driver is missing: ", first_reason, ". ", kHowToGetDriver));

  std::string missing;
  auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (!function && missing.empty()) missing = name;
  };
  find("cuDriverGetVersion", driver_version);
  if (driver_version && driver_version(&version_) == kCudaSuccess && version_ < kOldestDriver)
    throw DeviceError(concat("NVIDIA's driver is too old: ", path_, " is one for CUDA ", version_text(version_),
                             ", and Kiln needs one for CUDA ", version_text(kOldestDriver),
                             " or later (525 or later). Installing a newer driver helps."));
  find("cuInit", init);
  find("cuGetErrorName", error_name);
  find("cuGetErrorString", error_string);
  find("cuDeviceGetCount", device_count);
  find("cuDeviceGet", device_get);
  find("cuDeviceGetName", device_name);
  find("cuDeviceGetAttribute", device_attribute);
  find("cuDeviceTotalMem_v2", device_memory);
  find("cuDevicePrimaryCtxRetain", retain_context);
  find("cuCtxGetCurrent", current_context);
  find("cuCtxPushCurrent_v2", push_context);
  find("cuCtxPopCurrent_v2", pop_context);
  find("cuModuleLoadDataEx", load_module);
  find("cuModuleUnload", unload_module);
  find("cuModuleGetFunction", get_function);
  find("cuFuncGetAttribute", function_attribute);
  find("cuFuncSetAttribute", set_function_attribute);
  find("cuLinkCreate_v2", link_create);
  find("cuLinkAddData_v2", link_add);
  find("cuLinkComplete", link_complete);
  find("cuLinkDestroy", link_destroy);
  find("cuLaunchKernel", launch);
  find("cuMemsetD8Async", set_8);
  find("cuMemsetD16Async", set_16);
  find("cuMemsetD32Async", set_32);
  find("cuMemcpyDtoDAsync_v2", copy_on_device);
  find("cuMemAllocAsync", allocate);
  find("cuMemFreeAsync", free);
  find("cuThreadExchangeStreamCaptureMode", exchange_capture_mode);
  find("cuStreamSynchronize", wait);
  if (!missing.empty())
    throw DeviceError(concat("NVIDIA's driver cannot be used: ", path_, " has no `", missing, "`. ", kHowToGetDriver));
}

void Driver::start() {
  CudaStatus status = init(0);
  if (status == kCudaNoDevice)
    throw DeviceError(
        "there is no NVIDIA GPU that this process may use: the driver finds none. CUDA_VISIBLE_DEVICES may hide "
        "it, or a container may lack it");
  // What cuInit says in a process whose parent had called it.
  if (status == kCudaNotInitialized) throw DeviceError(kForkedMessage);
  if (status != kCudaSuccess)
    throw DeviceError(concat("NVIDIA's driver cannot be initialised: cuInit gives ", describe(status),
                             ". The driver's ", "kernel module may be of another version than ", path_,
                             "; `nvidia-smi` says so, and restarting the machine helps"));
  g_initialized = true;
  if (CudaStatus counted = device_count(&devices_); counted != kCudaSuccess)
    throw DeviceError(concat("NVIDIA's driver does not tell its GPUs: cuDeviceGetCount gives ", describe(counted)));
}

std::string Driver::describe(CudaStatus status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name) error_name(status, &name);
  if (error_string) error_string(status, &text);
  return concat(name ? name : "an unknown error", " (", status, ")", text ? ": " : "", text ? text : "");
}

}  // namespace kiln
