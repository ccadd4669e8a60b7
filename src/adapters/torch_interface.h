// PyTorch as libraries that are not built with it see it: functions in C that it keeps from version to version ("stable
// ABI"), and by which an operator is registered whose arguments come as 64-bit words.
//
// Nothing of PyTorch is there when Kiln is built or linked: the functions are declared here, as they are documented,
// and found in the process when they are first needed. So one build serves all versions, and a program that does not
// use PyTorch loads nothing of it. (Building against the headers of a wheel would tie the build to one, and its library
// would have to be loaded by programs that have no PyTorch.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "kiln/dtype.h"

namespace kiln {

// ---- Its types. Pointers are opaque.

using TorchStatus = int32_t;  // 0: it succeeded. PyTorch writes to standard error what has failed.
using TorchValue = uint64_t;  // an argument or result of an operator
using TorchTensor = struct AtenTensorOpaque*;
using TorchList = struct StableListOpaque*;
using TorchString = struct StringOpaque*;
using TorchLibrary = struct TorchLibraryOpaque*;
using TorchRecord = struct AtenRecordFunctionOpaque*;
using TorchFunction = void (*)(TorchValue* stack, uint64_t arguments, uint64_t results);

// ---- Its functions: those that an operator with lists and strings needs, which 2.10 was the first to have.
struct TorchInterface {
  // The version to which words on an operator's stack conform.
  static constexpr uint64_t kVersion = uint64_t{2} << 56 | uint64_t{10} << 48;

  TorchStatus (*library_init_impl)(const char* name, const char* key, const char* file, uint32_t line, TorchLibrary*);
  TorchStatus (*library_init_fragment)(const char* name, const char* file, uint32_t line, TorchLibrary*);
  TorchStatus (*library_define)(TorchLibrary, const char* schema);
  TorchStatus (*library_implement)(TorchLibrary, const char* name, TorchFunction, uint64_t version);

  TorchStatus (*list_new)(size_t capacity, TorchList*);
  TorchStatus (*list_size)(TorchList, size_t*);
  TorchStatus (*list_get)(TorchList, size_t index, TorchValue*);
  TorchStatus (*list_append)(TorchList, TorchValue);
  TorchStatus (*list_delete)(TorchList);  // not what is in it

  TorchStatus (*string_length)(TorchString, size_t*);
  TorchStatus (*string_data)(TorchString, const char**);
  TorchStatus (*string_delete)(TorchString);

  TorchStatus (*tensor_rank)(TorchTensor, int64_t*);
  TorchStatus (*tensor_sizes)(TorchTensor, const int64_t**);    // the tensor's
  TorchStatus (*tensor_strides)(TorchTensor, const int64_t**);  // likewise, in elements
  TorchStatus (*tensor_dtype)(TorchTensor, int32_t*);
  TorchStatus (*tensor_device_type)(TorchTensor, int32_t*);
  TorchStatus (*tensor_device_index)(TorchTensor, int32_t*);
  TorchStatus (*tensor_const_data)(TorchTensor, const void**);  // of its first element
  TorchStatus (*tensor_data)(TorchTensor, void**);
  TorchStatus (*tensor_empty)(int64_t rank, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                              int32_t device_type, int32_t device_index, TorchTensor*);
  TorchStatus (*tensor_delete)(TorchTensor);

  bool (*records_gradients)();
  int32_t (*cpu_type)();
  int32_t (*cuda_type)();

  // Of PyTorch's CUDA part, where that is loaded.
  TorchStatus (*current_cuda_stream)(int32_t device, void**);
  // A member function of what a tensor points to, which the C functions lack. May be null.
  bool (*requires_gradient)(const void* tensor_object);

  // Records of what runs, which profilers and observers keep. May be null. The first is a function of C++ that has no
  // counterpart in C: whether something keeps them.
  bool (*has_record_callbacks)();
  TorchStatus (*record_begin)(const char* name, void* keywords, const void* inputs, uint64_t count, TorchRecord*);
  TorchStatus (*record_end)(TorchRecord);

  // What the numbers of dtypes and devices are in this version.
  int32_t cpu, cuda;
  std::array<int32_t, kDtypeCount> dtype_codes;

  /// The Kiln dtype of a PyTorch dtype code.
  std::optional<Dtype> dtype_of(int32_t code) const {
    for (size_t i = 0; i < dtype_codes.size(); ++i)
      if (dtype_codes[i] == code) return static_cast<Dtype>(i);
    return std::nullopt;
  }
};

// A launch as profilers see it, from here to the end of the scope: by its kernel's name. Ends on the thread that it
// begins on. Does nothing where nothing keeps records.
class TorchRange {
 public:
  /// `torch` may be null.
  TorchRange(const TorchInterface* torch, std::string_view kernel) {
    if (torch && torch->has_record_callbacks && torch->has_record_callbacks()) begin(*torch, kernel);
  }
  ~TorchRange() {
    if (record_) end_(record_);
  }
  TorchRange(const TorchRange&) = delete;
  TorchRange& operator=(const TorchRange&) = delete;

 private:
  void begin(const TorchInterface& torch, std::string_view kernel);

  TorchRecord record_ = nullptr;
  TorchStatus (*end_)(TorchRecord) = nullptr;
};

/// The PyTorch that the process has loaded; null where there is none, or one before 2.10. Does not load it.
const TorchInterface* torch_interface();

}  // namespace kiln
