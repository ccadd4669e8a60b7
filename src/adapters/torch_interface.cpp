#include "adapters/torch_interface.h"

#include <dlfcn.h>

#include <atomic>
#include <string>
#include <type_traits>

#include "core/dtype_table.h"
#include "core/text.h"

namespace kiln {
namespace {

// A symbol of one of PyTorch's libraries. Python loads these without giving their symbols to others, so they are asked
// by name where the process's own symbols do not have it. A library that is not loaded stays so.
void* find_symbol(const char* library, const char* symbol) {
  if (void* found = dlsym(RTLD_DEFAULT, symbol)) return found;
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  // The handle is kept: the function is used from now on.
  return handle ? dlsym(handle, symbol) : nullptr;
}

constexpr const char* kCpuLibrary = "libtorch_cpu.so";

template <typename Function>
bool find(Function& function, const char* symbol, const char* library = kCpuLibrary) {
  function = reinterpret_cast<Function>(find_symbol(library, symbol));
  return function != nullptr;
}

bool find_dtypes(TorchInterface& torch) {
  for (const DtypeRow& row : kDtypes) {
    int32_t (*code)() = nullptr;
    if (!find(code, ("aoti_torch_dtype_" + std::string(row.name)).c_str())) return false;
    torch.dtype_codes[static_cast<size_t>(row.dtype)] = code();
  }
  return true;
}

bool find_all(TorchInterface& torch) {
  // Symbols that only newer versions have come first: where they are missing, nothing else is looked for.
  bool has_all = find(torch.list_new, "torch_new_list_reserve_size") &&            //
                 find(torch.library_implement, "torch_library_impl") &&            //
                 find(torch.list_size, "torch_list_size") &&                       //
                 find(torch.list_get, "torch_list_get_item") &&                    //
                 find(torch.list_append, "torch_list_push_back") &&                //
                 find(torch.list_delete, "torch_delete_list") &&                   //
                 find(torch.string_length, "torch_string_length") &&               //
                 find(torch.string_data, "torch_string_c_str") &&                  //
                 find(torch.string_delete, "torch_delete_string") &&               //
                 find(torch.tensor_const_data, "torch_get_const_data_ptr") &&      //
                 find(torch.tensor_data, "torch_get_mutable_data_ptr") &&          //
                 find(torch.library_init_impl, "aoti_torch_library_init_impl") &&  //
                 find(torch.library_init_fragment, "aoti_torch_library_init_fragment") &&
                 find(torch.library_define, "aoti_torch_library_def") &&              //
                 find(torch.tensor_rank, "aoti_torch_get_dim") &&                     //
                 find(torch.tensor_sizes, "aoti_torch_get_sizes") &&                  //
                 find(torch.tensor_strides, "aoti_torch_get_strides") &&              //
                 find(torch.tensor_dtype, "aoti_torch_get_dtype") &&                  //
                 find(torch.tensor_device_type, "aoti_torch_get_device_type") &&      //
                 find(torch.tensor_device_index, "aoti_torch_get_device_index") &&    //
                 find(torch.tensor_empty, "aoti_torch_empty_strided") &&              //
                 find(torch.tensor_delete, "aoti_torch_delete_tensor_object") &&      //
                 find(torch.records_gradients, "aoti_torch_grad_mode_is_enabled") &&  //
                 find(torch.cpu_type, "aoti_torch_device_type_cpu") &&                //
                 find(torch.cuda_type, "aoti_torch_device_type_cuda") && find_dtypes(torch);
  if (!has_all) return false;
  torch.cpu = torch.cpu_type();
  torch.cuda = torch.cuda_type();
  find(torch.current_cuda_stream, "aoti_torch_get_current_cuda_stream", "libtorch_cuda.so");
  find(torch.requires_gradient, "_ZNK3c1010TensorImpl13requires_gradEv", "libc10.so");
  if (!find(torch.record_begin, "aoti_record_function_start") || !find(torch.record_end, "aoti_record_function_end") ||
      !find(torch.has_record_callbacks, "_ZN2at12hasCallbacksEv"))
    torch.has_record_callbacks = nullptr;
  return true;
}

}  // namespace

void TorchRange::begin(const TorchInterface& torch, std::string_view kernel) {
  if (torch.record_begin(concat("kiln::", kernel).c_str(), nullptr, nullptr, 0, &record_) != 0) record_ = nullptr;
  end_ = torch.record_end;
}

const TorchInterface* torch_interface() {
  // Several threads may find the same; a lock could be held by one that a fork leaves behind.
  static std::atomic<const TorchInterface*> known{nullptr};
  if (const TorchInterface* found = known.load(std::memory_order_acquire)) return found;
  auto made = std::make_unique<TorchInterface>();
  if (!find_all(*made)) return nullptr;
  const TorchInterface* expected = nullptr;
  if (known.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return made.release();
  return expected;
}

}  // namespace kiln
