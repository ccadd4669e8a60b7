// A graph of PyTorch's has a launch as a text (runtime/launch_text.h) and sizes. The text is the launch's identity in
// every process, so a stored program needs nothing else. What was made of it is found by its hash; the texts themselves
// are compared, which is a few tens of nanoseconds.
//
// Tensors, lists and strings come as handles that the operator owns and gives back. What goes wrong is thrown: PyTorch
// calls the operator from C++ and knows `std::exception`.
#include "adapters/torch_operator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "adapters/torch_interface.h"
#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/fork_guard.h"
#include "core/out_of_memory.h"
#include "core/text.h"
#include "kiln/error.h"
#include "kiln/torch.h"
#include "runtime/launch_text.h"
#include "runtime/run.h"

namespace kiln {
namespace {

// ---- Launches by their texts.

// Texts of functions begin with the hash of the function and end with the template arguments.
size_t hash_of(std::string_view text) {
  constexpr size_t kEnds = 128;
  size_t hash = text.size();
  auto add = [&](std::string_view part) {
    while (!part.empty()) {
      uint64_t word = 0;
      size_t bytes = std::min(part.size(), sizeof word);
      std::memcpy(&word, part.data(), bytes);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
      part.remove_prefix(bytes);
    }
  };
  add(text.substr(0, kEnds));
  if (text.size() > kEnds) add(text.substr(std::max(kEnds, text.size() - kEnds)));
  return hash;
}

// Only ever grows, so it is read without a lock: a child that is forked while a thread adds to it can go on.
class TorchLaunches {
 public:
  const TorchLaunch* find(std::string_view text, size_t hash) const {
    for (const TorchLaunch* launch = head(hash).load(std::memory_order_acquire); launch; launch = launch->next)
      if (launch->hash == hash && launch->text == text) return launch;
    return nullptr;
  }

  /// Two threads may add the same; each has the kernel of the other.
  const TorchLaunch* add(std::unique_ptr<TorchLaunch> launch) {
    std::atomic<TorchLaunch*>& first = head(launch->hash);
    launch->next = first.load(std::memory_order_acquire);
    while (!first.compare_exchange_weak(launch->next, launch.get(), std::memory_order_acq_rel)) {
    }
    return launch.release();
  }

 private:
  static constexpr size_t kHeads = 1024;
  std::atomic<TorchLaunch*>& head(size_t hash) const { return heads_[hash % kHeads]; }

  mutable std::array<std::atomic<TorchLaunch*>, kHeads> heads_{};
};

// Never destroyed: PyTorch's threads may outlive the program's main function.
TorchLaunches& launches() {
  static auto* instance = new TorchLaunches;
  return *instance;
}

// Kernels that were made from texts here. Equal ones are one: each has code for a few shapes of its own.
std::shared_ptr<KernelObject> kernel_of(KernelSpec spec) {
  static auto* mutex = new std::mutex;
  static auto* kernels = new std::vector<std::shared_ptr<KernelObject>>;
  ForkGuard fork_guard;
  std::lock_guard lock(*mutex);
  for (const std::shared_ptr<KernelObject>& kernel : *kernels)
    if (kernel->spec() == spec) return kernel;
  return kernels->emplace_back(std::make_shared<KernelObject>(std::move(spec)));
}

const TorchLaunch* add_launch(std::string_view text, size_t hash, std::shared_ptr<KernelObject> kernel) {
  LaunchText parsed = parse_launch_text(text);
  auto launch = std::make_unique<TorchLaunch>();
  launch->text = text;
  launch->hash = hash;
  launch->kernel = kernel ? std::move(kernel) : kernel_of(std::move(parsed.kernel));
  launch->template_arguments = std::move(parsed.template_arguments);
  launch->outputs = std::move(parsed.outputs);
  launch->init_value = parsed.init_value;
  launch->sizes = 6;
  for (const LaunchText::Output& output : launch->outputs) launch->sizes += output.rank;
  return launches().add(std::move(launch));
}

// ---- Its arguments and results.

void check(TorchStatus status, const char* what) {
  if (status != 0) throw InternalError(concat("PyTorch cannot give ", what));
}

// A number of values that are few as a rule: these need no memory but the stack's.
template <typename T, size_t kFew>
class Few {
 public:
  explicit Few(size_t count) : count_(count) {
    if (count > kFew) many_ = std::make_unique<T[]>(count);
  }
  T* data() { return many_ ? many_.get() : few_.data(); }
  std::span<T> span() { return {data(), count_}; }
  T& operator[](size_t i) { return data()[i]; }
  size_t size() const { return count_; }

 private:
  std::array<T, kFew> few_{};
  std::unique_ptr<T[]> many_;
  size_t count_;
};

class Text {
 public:
  Text(const TorchInterface& torch, TorchValue value) : torch_(torch), handle_(reinterpret_cast<TorchString>(value)) {}
  ~Text() { torch_.string_delete(handle_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  std::string_view view() const {
    size_t length = 0;
    const char* data = nullptr;
    check(torch_.string_length(handle_, &length), "a text");
    check(torch_.string_data(handle_, &data), "a text");
    return {data, length};
  }

 private:
  const TorchInterface& torch_;
  TorchString handle_;
};

// What its items are, the operator owns as well.
class List {
 public:
  List(const TorchInterface& torch, TorchValue value) : torch_(torch), handle_(reinterpret_cast<TorchList>(value)) {}
  ~List() {
    if (handle_) torch_.list_delete(handle_);
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  size_t size() const {
    size_t size = 0;
    check(torch_.list_size(handle_, &size), "a list");
    return size;
  }
  TorchValue get(size_t i) const {
    TorchValue value = 0;
    check(torch_.list_get(handle_, i, &value), "an item of a list");
    return value;
  }
  void append(TorchValue value) { check(torch_.list_append(handle_, value), "a list"); }
  TorchValue release() { return reinterpret_cast<TorchValue>(std::exchange(handle_, nullptr)); }

 private:
  const TorchInterface& torch_;
  TorchList handle_;
};

class Tensors {
 public:
  static constexpr size_t kFew = 8;

  Tensors(const TorchInterface& torch, size_t count) : torch_(torch), handles_(count) {}
  ~Tensors() {
    for (TorchTensor handle : handles_.span())
      if (handle) torch_.tensor_delete(handle);
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  TorchTensor& operator[](size_t i) { return handles_[i]; }
  size_t size() const { return handles_.size(); }

 private:
  const TorchInterface& torch_;
  Few<TorchTensor, kFew> handles_;
};

std::string shown(Device device) {
  return traits_of(device).has_own_memory ? concat("cuda:", device.index) : std::string("cpu");
}

Device device_of(const TorchInterface& torch, TorchTensor tensor) {
  int32_t type = 0, index = 0;
  check(torch.tensor_device_type(tensor, &type), "a tensor's device");
  if (type == torch.cpu) return {};
  if (type != torch.cuda) throw TypeError("[kiln] Kernels run on tensors on the CPU and on NVIDIA's GPUs.");
  check(torch.tensor_device_index(tensor, &index), "a tensor's device");
  return {DeviceKind::kNvidia, index};
}

std::string input_name(const KernelObject& kernel, size_t i) {
  const std::vector<std::string>& names = *kernel.spec().input_names;
  return i < names.size() ? names[i] : std::to_string(i);
}

void read_input(const TorchInterface& torch, const KernelObject& kernel, size_t i, TorchTensor tensor,
                InputArray& input) {
  int32_t code = 0;
  int64_t rank = 0;
  const int64_t *sizes = nullptr, *strides = nullptr;
  check(torch.tensor_dtype(tensor, &code), "a tensor's dtype");
  std::optional<Dtype> dtype = torch.dtype_of(code);
  if (!dtype)
    throw TypeError(concat(message_prefix(kernel.spec().dialect), "Input `", input_name(kernel, i),
                           "` has a dtype that no kernel can take."));
  check(torch.tensor_rank(tensor, &rank), "a tensor's rank");
  check(torch.tensor_sizes(tensor, &sizes), "a tensor's sizes");
  check(torch.tensor_strides(tensor, &strides), "a tensor's strides");
  check(torch.tensor_const_data(tensor, &input.data), "a tensor's elements");
  input.dtype = *dtype;
  input.shape = {sizes, static_cast<size_t>(rank)};
  input.strides = {strides, static_cast<size_t>(rank)};
}

// A gradient would end here, and nothing would say so later. What calls the operator with a rule has switched gradients
// off.
void check_gradients(const TorchInterface& torch, Tensors& tensors) {
  if (!torch.requires_gradient || !torch.records_gradients()) return;
  for (size_t i = 0; i < tensors.size(); ++i)
    // A tensor in C++ is a pointer to this object.
    if (torch.requires_gradient(*reinterpret_cast<void**>(tensors[i])))
      throw TypeError(
          "[kiln] An input of a launch of a stored program requires a gradient, and the program has no rule for one: "
          "run "
          "it under torch.no_grad(), or call the function that it was made of.");
}

void allocate(const TorchInterface& torch, const KernelObject& kernel, const Call& call, Tensors& outputs,
              std::span<void*> data) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputArray& output = call.outputs[i];
    Few<int64_t, 16> strides(output.shape.size());
    write_row_contiguous_strides(output.shape, strides.span());
    bool is_on_gpu = traits_of(call.device).has_own_memory;
    if (torch.tensor_empty(static_cast<int64_t>(output.shape.size()), output.shape.data(), strides.data(),
                           torch.dtype_codes[static_cast<size_t>(output.dtype)], is_on_gpu ? torch.cuda : torch.cpu,
                           call.device.index, &outputs[i]) != 0)
      throw OutOfMemory(concat(message_prefix(kernel.spec().dialect), "There is no memory for the ",
                               byte_count(output.shape, output.dtype), " bytes of output `",
                               kernel.spec().output_names->at(i), "`."));
    check(torch.tensor_data(outputs[i], &data[i]), "a tensor's elements");
  }
}

void* current_stream(const TorchInterface& torch, Device device) {
  void* stream = nullptr;
  if (!torch.current_cuda_stream || torch.current_cuda_stream(device.index, &stream) != 0)
    throw DeviceError("[kiln] PyTorch does not say which stream is current on a GPU.");
  return stream;
}

// ---- The operator.

TorchValue launch(const TorchInterface& torch, TorchValue* stack) {
  Text text(torch, stack[0]);
  List input_list(torch, stack[1]), size_list(torch, stack[2]);
  Tensors tensors(torch, input_list.size());
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = reinterpret_cast<TorchTensor>(input_list.get(i));

  std::string_view view = text.view();
  size_t hash = hash_of(view);
  const TorchLaunch* known = launches().find(view, hash);
  if (!known) known = add_launch(view, hash, nullptr);
  KernelObject& kernel = *known->kernel;
  TorchRange range(&torch, kernel.spec().name);
  check_gradients(torch, tensors);

  if (size_list.size() != known->sizes)
    throw ValueError(concat("[kiln] A launch of `", kernel.spec().name, "` has ", size_list.size(),
                            " sizes, and its outputs and its grid have ", known->sizes, "."));
  Few<int64_t, 32> sizes(known->sizes);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<int64_t>(size_list.get(i));

  Few<OutputArray, Tensors::kFew> outputs(known->outputs.size());
  Call call = known->call(sizes.span(), outputs.span());
  Few<InputArray, Tensors::kFew> inputs(tensors.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    read_input(torch, kernel, i, tensors[i], inputs[i]);
    Device device = device_of(torch, tensors[i]);
    if (i == 0) call.device = device;
    if (device != call.device)
      throw ValueError(concat(message_prefix(kernel.spec().dialect),
                              "Expected all arrays of a call to be on one device but got `", input_name(kernel, 0),
                              "` on ", shown(call.device), " and `", input_name(kernel, i), "` on ", shown(device),
                              "."));
  }
  call.inputs = inputs.span();

  std::shared_ptr<LaunchPlan> plan;
  if (traits_of(call.device).is_asynchronous) {
    call.stream = current_stream(torch, call.device);
    plan = find_plan(kernel, call);
  }
  if (!plan) kernel.check_sizes(call);
  Tensors results(torch, outputs.size());
  Few<void*, Tensors::kFew> data(outputs.size());
  allocate(torch, kernel, call, results, data.span());
  if (plan)
    run_again(*plan, kernel, call, data.span());
  else
    run(kernel, call, data.span());

  TorchList made = nullptr;
  check(torch.list_new(results.size(), &made), "a list");
  List result_list(torch, reinterpret_cast<TorchValue>(made));
  for (size_t i = 0; i < results.size(); ++i)
    result_list.append(reinterpret_cast<TorchValue>(std::exchange(results[i], nullptr)));
  return result_list.release();
}

std::atomic<void (*)(const std::exception_ptr&) noexcept> g_error_hook{nullptr};

void launch_operator(TorchValue* stack, uint64_t, uint64_t) {
  try {
    stack[0] = launch(*torch_interface(), stack);
  } catch (...) {
    if (auto* hook = g_error_hook.load(std::memory_order_acquire)) hook(std::current_exception());
    throw;
  }
}

// ---- Its registration.

struct Registration {
  std::mutex mutex;
  bool is_defined = false, is_implemented = false;
};

Registration& registration() {
  static auto* instance = new Registration;
  return *instance;
}

void check_registered(TorchStatus status) {
  if (status != 0) throw DeviceError("[kiln] PyTorch refuses the operator kiln::launch.");
}

// What is registered with a library object lasts as long as it, so these are kept.
void implement(const TorchInterface& torch) {
  for (const char* key : {"CPU", "CUDA"}) {
    TorchLibrary library = nullptr;
    check_registered(torch.library_init_impl("kiln", key, "libkiln.so", 0, &library));
    check_registered(torch.library_implement(library, "launch", launch_operator, TorchInterface::kVersion));
  }
}

}  // namespace

Call TorchLaunch::call(std::span<const int64_t> given, std::span<OutputArray> own) const {
  Call call{};
  const int64_t* next = given.data();
  for (size_t i = 0; i < own.size(); ++i) {
    own[i] = {outputs[i].dtype, {next, outputs[i].rank}};
    next += outputs[i].rank;
  }
  std::copy_n(next, 3, call.grid.begin());
  std::copy_n(next + 3, 3, call.threadgroup.begin());
  call.outputs = own;
  call.template_arguments = template_arguments;
  call.init_value = init_value;
  return call;
}

const TorchLaunch* find_torch_launch(std::string_view text) { return launches().find(text, hash_of(text)); }

void add_torch_launch(std::string_view text, std::shared_ptr<KernelObject> kernel) {
  size_t hash = hash_of(text);
  if (!launches().find(text, hash)) add_launch(text, hash, std::move(kernel));
}

void set_torch_error_hook(void (*hook)(const std::exception_ptr&) noexcept) {
  g_error_hook.store(hook, std::memory_order_release);
}

bool has_defined_torch_operator() {
  ForkGuard fork_guard;
  std::lock_guard lock(registration().mutex);
  return registration().is_defined;
}

bool implement_torch_operator() {
  const TorchInterface* torch = torch_interface();
  if (!torch) return false;
  ForkGuard fork_guard;
  std::lock_guard lock(registration().mutex);
  if (!std::exchange(registration().is_implemented, true)) implement(*torch);
  return true;
}

void register_torch_operator() {
  const TorchInterface* torch = torch_interface();
  if (!torch)
    throw UnsupportedError(
        "[kiln] Expected PyTorch 2.10 or later, but this process has not loaded a libtorch_cpu.so that has its stable "
        "interface.");
  ForkGuard fork_guard;
  std::lock_guard lock(registration().mutex);
  if (registration().is_implemented) return;
  TorchLibrary library = nullptr;
  check_registered(torch->library_init_fragment("kiln", "libkiln.so", 0, &library));
  check_registered(torch->library_define(library, kTorchOperatorSchema));
  implement(*torch);
  registration().is_defined = registration().is_implemented = true;
}

}  // namespace kiln
