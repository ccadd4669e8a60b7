// NVIDIA's driver, opened when a GPU is first asked for.
//
// Nothing of CUDA is there when Kiln is built or linked: the types and functions that Kiln needs of the driver's
// interface are declared here. They are those of CUDA 12.0, which later drivers keep. (The headers would tie the build
// to a toolkit, and the runtime library `libcudart` brings state of its own.)
//
// `Driver` is a table of functions. What a function returns is checked where it is called, since only there is it known
// what was attempted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

// ---- The driver's types. Pointers are opaque.

using CudaStatus = int;  // CUresult
using CudaDevice = int;
using CudaAddress = unsigned long long;
using CudaContext = struct CUctx_st*;
using CudaModule = struct CUmod_st*;
using CudaFunction = struct CUfunc_st*;
using CudaStream = struct CUstream_st*;
using CudaLinker = struct CUlinkState_st*;

inline constexpr CudaStatus kCudaSuccess = 0;
inline constexpr CudaStatus kCudaOutOfMemory = 2;
inline constexpr CudaStatus kCudaNotInitialized = 3;
inline constexpr CudaStatus kCudaDeinitialized = 4;
inline constexpr CudaStatus kCudaNoDevice = 100;
inline constexpr CudaStatus kCudaInvalidImage = 200;
inline constexpr CudaStatus kCudaNoBinaryForGpu = 209;
inline constexpr CudaStatus kCudaUnsupportedPtxVersion = 222;
inline constexpr CudaStatus kCudaLaunchOutOfResources = 701;

// CUdevice_attribute, CUfunction_attribute, CUjit_option, CUjitInputType and CUstreamCaptureMode, as far as they are
// used.
enum CudaDeviceAttribute : int {
  kCudaMaxBlockZ = 4,
  kCudaMultiprocessors = 16,
  kCudaMajor = 75,
  kCudaMinor = 76,
  kCudaMaxThreadgroupMemory = 97,  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  kCudaHasMemoryPools = 115,
};
enum CudaFunctionAttribute : int {
  kCudaMaxThreads = 0,
  kCudaStaticMemory = 1,  // SHARED_SIZE_BYTES
  kCudaRegisters = 4,
  kCudaMaxDynamicMemory = 8,  // MAX_DYNAMIC_SHARED_SIZE_BYTES
};
enum CudaJitOption : int { kCudaErrorLog = 5, kCudaErrorLogBytes = 6 };
enum CudaLinkInput : int { kCudaLinkPtx = 1 };
enum CudaCaptureMode : int { kCudaCaptureGlobal = 0, kCudaCaptureThreadLocal = 1, kCudaCaptureRelaxed = 2 };

// ---- Its functions

struct DriverFunctions {
  CudaStatus (*init)(unsigned flags) = nullptr;
  CudaStatus (*driver_version)(int*) = nullptr;
  CudaStatus (*error_name)(CudaStatus, const char**) = nullptr;
  CudaStatus (*error_string)(CudaStatus, const char**) = nullptr;
  CudaStatus (*device_count)(int*) = nullptr;
  CudaStatus (*device_get)(CudaDevice*, int ordinal) = nullptr;
  CudaStatus (*device_name)(char*, int bytes, CudaDevice) = nullptr;
  CudaStatus (*device_attribute)(int*, CudaDeviceAttribute, CudaDevice) = nullptr;
  CudaStatus (*device_memory)(size_t*, CudaDevice) = nullptr;
  CudaStatus (*retain_context)(CudaContext*, CudaDevice) = nullptr;
  CudaStatus (*current_context)(CudaContext*) = nullptr;
  CudaStatus (*push_context)(CudaContext) = nullptr;
  CudaStatus (*pop_context)(CudaContext*) = nullptr;
  CudaStatus (*load_module)(CudaModule*, const void*, unsigned, CudaJitOption*, void**) = nullptr;
  CudaStatus (*unload_module)(CudaModule) = nullptr;
  CudaStatus (*get_function)(CudaFunction*, CudaModule, const char*) = nullptr;
  CudaStatus (*function_attribute)(int*, CudaFunctionAttribute, CudaFunction) = nullptr;
  CudaStatus (*set_function_attribute)(CudaFunction, CudaFunctionAttribute, int) = nullptr;
  CudaStatus (*link_create)(unsigned, CudaJitOption*, void**, CudaLinker*) = nullptr;
  CudaStatus (*link_add)(CudaLinker, CudaLinkInput, void*, size_t, const char*, unsigned, CudaJitOption*,
                         void**) = nullptr;
  CudaStatus (*link_complete)(CudaLinker, void**, size_t*) = nullptr;
  CudaStatus (*link_destroy)(CudaLinker) = nullptr;
  CudaStatus (*launch)(CudaFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned dynamic_bytes, CudaStream, void** parameters,
                       void** extra) = nullptr;
  CudaStatus (*set_8)(CudaAddress, unsigned char, size_t, CudaStream) = nullptr;
  CudaStatus (*set_16)(CudaAddress, unsigned short, size_t, CudaStream) = nullptr;
  CudaStatus (*set_32)(CudaAddress, unsigned, size_t, CudaStream) = nullptr;
  CudaStatus (*copy_on_device)(CudaAddress, CudaAddress, size_t, CudaStream) = nullptr;
  CudaStatus (*allocate)(CudaAddress*, size_t, CudaStream) = nullptr;
  CudaStatus (*free)(CudaAddress, CudaStream) = nullptr;
  CudaStatus (*exchange_capture_mode)(CudaCaptureMode*) = nullptr;
  CudaStatus (*wait)(CudaStream) = nullptr;
};

// ---- The driver of this process

// The oldest driver that is used, as cuDriverGetVersion counts.
inline constexpr int kOldestDriver = 12000;

class Driver : public DriverFunctions {
 public:
  /// The driver, opened and initialised at the first call. Throws DeviceError that says what is missing and how to get
  /// it: no file, too old, no GPU, or a process that was forked from one that used the GPU. Each call tries anew what
  /// failed.
  static const Driver& get();

  /// As cuDriverGetVersion counts: 13000.
  int version() const { return version_; }
  /// The file it was opened from.
  const std::string& path() const { return path_; }
  int devices() const { return devices_; }

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
  std::string describe(CudaStatus status) const;

 private:
  void open();
  void start();

  std::string path_;
  int version_ = 0;
  int devices_ = 0;
};

/// Whether this process was forked from one that had initialised the driver. Its functions must not be called then: the
/// driver's state belongs to the parent.
bool is_forked_from_gpu_process();

/// What such a process is told.
extern const char* const kForkedMessage;

}  // namespace kiln
