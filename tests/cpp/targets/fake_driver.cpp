// The functions of the driver that Kiln calls; built as a library of its own, which Kiln opens by KILN_CUDA_DRIVER.
#include "targets/fake_driver.h"

#include <cstdlib>
#include <cstring>

namespace {

kiln::FakeDriver g_fake;
void* g_current = nullptr;  // context
std::vector<void*> g_stack;
const char* g_mode = "global";

// Records a call. Returns what the test wants it to return.
int enter(const char* name) {
  g_fake.calls.emplace_back(name);
  auto found = g_fake.status.find(name);
  return found == g_fake.status.end() ? 0 : found->second;
}

template <typename T>
int fill(unsigned long long address, T value, size_t count) {
  for (size_t i = 0; i < count; ++i) std::memcpy(reinterpret_cast<T*>(address) + i, &value, sizeof value);
  return 0;
}

// What a context of device n is.
char g_contexts[8];
char g_module, g_function;

}  // namespace

extern "C" {

kiln::FakeDriver* kiln_fake_driver() { return &g_fake; }

int cuInit(unsigned) { return enter("cuInit"); }
int cuDriverGetVersion(int* version) {
  *version = g_fake.version;
  return enter("cuDriverGetVersion");
}
int cuGetErrorName(int status, const char** name) {
  *name = status == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : status == 701 ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
          : status == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
                          : nullptr;
  return *name ? 0 : 1;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == 700 ? "an illegal memory access was encountered" : nullptr;
  return *text ? 0 : 1;
}
int cuDeviceGetCount(int* count) {
  *count = g_fake.devices;
  return enter("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return enter("cuDeviceGet");
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return enter("cuDeviceGetName");
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75    ? g_fake.major
           : attribute == 76  ? g_fake.minor
           : attribute == 97  ? 232448
           : attribute == 4   ? 64
           : attribute == 16  ? 132
           : attribute == 115 ? g_fake.has_memory_pools
                              : 0;
  return enter("cuDeviceGetAttribute");
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{80} << 30;
  return enter("cuDeviceTotalMem");
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &g_contexts[device];
  return enter("cuDevicePrimaryCtxRetain");
}
int cuCtxGetCurrent(void** context) {
  *context = g_current;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  g_stack.push_back(g_current);
  g_current = context;
  return enter("cuCtxPushCurrent");
}
int cuCtxPopCurrent_v2(void** context) {
  *context = g_current;
  g_current = g_stack.back();
  g_stack.pop_back();
  return enter("cuCtxPopCurrent");
}
int cuModuleLoadDataEx(void** module, const void* code, unsigned, int*, void**) {
  g_fake.loaded = static_cast<const char*>(code);
  g_fake.capture_modes.emplace_back(g_mode);
  *module = &g_module;
  return enter("cuModuleLoadDataEx");
}
int cuModuleUnload(void*) { return enter("cuModuleUnload"); }
int cuModuleGetFunction(void** function, void*, const char* name) {
  g_fake.entry = name;
  *function = &g_function;
  return enter("cuModuleGetFunction");
}
int cuFuncGetAttribute(int* value, int attribute, void*) {
  *value = attribute == 0 ? g_fake.most_threads : attribute == 1 ? g_fake.static_memory : g_fake.registers;
  return enter("cuFuncGetAttribute");
}
int cuFuncSetAttribute(void*, int attribute, int value) {
  g_fake.attributes[attribute] = value;
  return enter("cuFuncSetAttribute");
}
int cuLinkCreate_v2(unsigned options, int* names, void** values, void** linker) {
  for (unsigned i = 0; i < options; ++i)
    if (names[i] == 5) std::strcpy(static_cast<char*>(values[i]), "ptxas: a log");
  *linker = &g_module;
  g_fake.capture_modes.emplace_back(g_mode);
  return enter("cuLinkCreate");
}
int cuLinkAddData_v2(void*, int, void* code, size_t bytes, const char*, unsigned, int*, void**) {
  g_fake.linked.assign(static_cast<const char*>(code), bytes);
  return enter("cuLinkAddData");
}
int cuLinkComplete(void*, void** code, size_t* bytes) {
  static char machine_code[] = "machine code";
  *code = machine_code;
  *bytes = sizeof machine_code;
  return enter("cuLinkComplete");
}
int cuLinkDestroy(void*) { return enter("cuLinkDestroy"); }
int cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned dynamic, void* stream, void**, void** extra) {
  auto* arguments = static_cast<const std::byte*>(extra[1]);
  size_t bytes = *static_cast<size_t*>(extra[3]);
  g_fake.launches.push_back({{gx, gy, gz}, {bx, by, bz}, dynamic, stream, g_current, {arguments, arguments + bytes}});
  return enter("cuLaunchKernel");
}
int cuMemsetD8Async(unsigned long long address, unsigned char value, size_t count, void*) {
  fill(address, value, count);
  return enter("cuMemsetD8Async");
}
int cuMemsetD16Async(unsigned long long address, unsigned short value, size_t count, void*) {
  fill(address, value, count);
  return enter("cuMemsetD16Async");
}
int cuMemsetD32Async(unsigned long long address, unsigned value, size_t count, void*) {
  fill(address, value, count);
  return enter("cuMemsetD32Async");
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return enter("cuMemcpyDtoDAsync");
}
int cuMemAllocAsync(unsigned long long* address, size_t bytes, void*) {
  int status = enter("cuMemAllocAsync");
  if (status != 0) return status;
  ++g_fake.allocated;
  *address = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  return 0;
}
int cuMemFreeAsync(unsigned long long address, void*) {
  ++g_fake.freed;
  std::free(reinterpret_cast<void*>(address));
  return enter("cuMemFreeAsync");
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  int before = std::strcmp(g_mode, "relaxed") == 0 ? 2 : 0;
  g_mode = *mode == 2 ? "relaxed" : "global";
  *mode = before;
  return 0;
}
int cuStreamSynchronize(void*) { return enter("cuStreamSynchronize"); }
}
