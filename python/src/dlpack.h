// How array libraries describe arrays to one another: DLPack 1.x, as far as it is used here
// (https://dmlc.github.io/dlpack/latest/c_api.html). Declared here, since it is an interface in memory and nothing of
// its own is needed to use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "core/device_traits.h"
#include "core/text.h"
#include "kiln/device.h"
#include "kiln/dtype.h"

namespace kiln::python {

enum DlpackDeviceType : int32_t {
  kDlpackCpu = 1,
  kDlpackCuda = 2,
  kDlpackCudaHost = 3,
  kDlpackMetal = 8,
  kDlpackRocm = 10,
  kDlpackRocmHost = 11,
};

struct DlpackDevice {
  int32_t type;
  int32_t index;
};

struct DlpackDtype {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
  uint8_t bits;
  uint16_t lanes;
};

struct DlpackTensor {
  void* data;
  DlpackDevice device;
  int32_t ndim;
  DlpackDtype dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-contiguous
  uint64_t byte_offset;
};

// What a capsule named "dltensor" points to.
struct DlpackManagedTensor {
  DlpackTensor tensor;
  void* context;
  void (*deleter)(DlpackManagedTensor*);
};

struct DlpackVersion {
  uint32_t major, minor;
};

// What a capsule named "dltensor_versioned" points to, since DLPack 1.0.
struct DlpackManagedTensorVersioned {
  DlpackVersion version;
  void* context;
  void (*deleter)(DlpackManagedTensorVersioned*);
  uint64_t flags;
  DlpackTensor tensor;
};

inline constexpr const char* kDlpackCapsule = "dltensor";
inline constexpr const char* kDlpackVersionedCapsule = "dltensor_versioned";

// What a type's `__dlpack_c_exchange_api__` points to: functions that need no Python objects in between.
struct DlpackExchange {
  DlpackVersion version;
  void* previous;
  void* allocate;
  void* managed_from_object;
  void* object_from_managed;
  int (*tensor_from_object)(void* object, DlpackTensor* tensor);  // may be null; borrowed from the object
  int (*current_stream)(int32_t device_type, int32_t device, void** stream);
};
inline constexpr const char* kDlpackExchangeCapsule = "dlpack_exchange_api";

// Devices whose tensors kernels take, in the order of DeviceKind.
struct DlpackKind {
  DeviceKind kind;
  DlpackDeviceType type;
  std::string_view name;  // as PyTorch and JAX have it
};
inline constexpr DlpackKind kDlpackKinds[] = {
    {DeviceKind::kCpu, kDlpackCpu, "cpu"},
    {DeviceKind::kNvidia, kDlpackCuda, "cuda"},
};
static_assert(std::size(kDlpackKinds) == kDeviceKinds);

/// Where a tensor is; nothing where no kernel takes it.
constexpr std::optional<Device> as_device(const DlpackDevice& device) {
  for (const auto& [kind, type, name] : kDlpackKinds)
    if (type == device.type) return Device{kind, traits_of(kind).has_own_memory ? device.index : 0};
  return std::nullopt;
}

/// "cpu", "cuda:0"
inline std::string framework_name(Device device) {
  std::string name(kDlpackKinds[static_cast<size_t>(device.kind)].name);
  return traits_of(device).has_own_memory ? concat(name, ":", device.index) : name;
}

/// Of the first element.
inline void* address_of(const DlpackTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

/// Nothing for a type that Kiln does not know.
inline std::optional<Dtype> dtype_of(const DlpackDtype& dtype) {
  if (dtype.lanes != 1) return std::nullopt;
  auto one_of = [&](Dtype of8, Dtype of16, Dtype of32, Dtype of64) -> std::optional<Dtype> {
    switch (dtype.bits) {
      case 8: return of8;
      case 16: return of16;
      case 32: return of32;
      case 64: return of64;
      default: return std::nullopt;
    }
  };
  switch (dtype.code) {
    case 0: return one_of(Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kInt64);
    case 1: return one_of(Dtype::kUInt8, Dtype::kUInt16, Dtype::kUInt32, Dtype::kUInt64);
    case 2:
      if (dtype.bits == 8) return std::nullopt;
      return one_of({}, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64);
    case 4: return dtype.bits == 16 ? std::optional(Dtype::kBFloat16) : std::nullopt;
    case 5: return dtype.bits == 64 ? std::optional(Dtype::kComplex64) : std::nullopt;
    case 6: return dtype.bits == 8 ? std::optional(Dtype::kBool) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace kiln::python
