// How XLA calls functions that are not its own: version 0 of its foreign function interface, as far as it is used here
// (xla/ffi/api/c_api.h, which jaxlib installs). Declared here, since it is an interface in memory whose structures only
// grow at their ends: nothing of JAX is needed to build, and one build serves its versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kiln/dtype.h"

namespace kiln::python {

struct XlaExtension {
  size_t struct_size;
  int type;
  XlaExtension* next;
};
inline constexpr int kXlaMetadata = 1;
inline constexpr int kXlaFirstMinor = 1;  // of JAX 0.6

struct XlaApiVersion {
  size_t struct_size;
  XlaExtension* extensions;
  int major, minor;
};

struct XlaMetadata {
  size_t struct_size;
  XlaApiVersion version;  // to be written
};

struct XlaMetadataExtension {
  XlaExtension base;
  XlaMetadata* metadata;
};

struct XlaError;
struct XlaExecutionContext;

enum XlaErrorCode : int {
  kXlaCancelled = 1,
  kXlaInvalidArgument = 3,
  kXlaResourceExhausted = 8,
  kXlaUnimplemented = 12,
  kXlaInternal = 13
};

struct XlaErrorArguments {
  size_t struct_size;
  XlaExtension* extensions;
  const char* message;
  int code;
};

struct XlaStreamArguments {
  size_t struct_size;
  XlaExtension* extensions;
  XlaExecutionContext* context;
  void* stream;  // is written
};

struct XlaDeviceArguments {
  size_t struct_size;
  XlaExtension* extensions;
  XlaExecutionContext* context;
  int32_t ordinal;  // is written
};

// Functions that are not called here are pointers without a type.
struct XlaApi {
  size_t struct_size;
  XlaExtension* extensions;
  XlaApiVersion version;
  const void* internal;
  XlaError* (*create_error)(XlaErrorArguments*);
  void* error_message;
  void* destroy_error;
  void* register_handler;
  XlaError* (*get_stream)(XlaStreamArguments*);
  void* rest[12];
  XlaError* (*get_device)(XlaDeviceArguments*);
};

struct XlaBuffer {
  size_t struct_size;
  XlaExtension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dimensions;
};

inline constexpr int kXlaBufferArgument = 1;

struct XlaArguments {
  size_t struct_size;
  XlaExtension* extensions;
  int64_t size;
  const int* types;
  XlaBuffer** buffers;
};

struct XlaText {
  const char* data;
  size_t size;
};

struct XlaNumbers {
  int dtype;
  size_t size;
  void* data;
};

inline constexpr int kXlaArrayAttribute = 1, kXlaTextAttribute = 4;

struct XlaAttributes {
  size_t struct_size;
  XlaExtension* extensions;
  int64_t size;
  const int* types;
  XlaText** names;
  void** values;  // XlaNumbers*, XlaText*
};

inline constexpr int kXlaExecute = 3;  // the stage at which a handler computes

struct XlaCallFrame {
  size_t struct_size;
  XlaExtension* extensions;
  const XlaApi* api;
  XlaExecutionContext* context;
  int stage;
  XlaArguments inputs, outputs;
  XlaAttributes attributes;
};

inline constexpr int kXlaInt64 = 5;

inline std::optional<Dtype> dtype_of_xla(int dtype) {
  switch (dtype) {
    case 1: return Dtype::kBool;
    case 2: return Dtype::kInt8;
    case 3: return Dtype::kInt16;
    case 4: return Dtype::kInt32;
    case 5: return Dtype::kInt64;
    case 6: return Dtype::kUInt8;
    case 7: return Dtype::kUInt16;
    case 8: return Dtype::kUInt32;
    case 9: return Dtype::kUInt64;
    case 10: return Dtype::kFloat16;
    case 11: return Dtype::kFloat32;
    case 12: return Dtype::kFloat64;
    case 15: return Dtype::kComplex64;
    case 16: return Dtype::kBFloat16;
    default: return std::nullopt;
  }
}

}  // namespace kiln::python
