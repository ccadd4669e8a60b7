// One handler of XLA's foreign function interface for all kernels. Its attributes say which launch it is:
//
// * `key`, a hash of `launch`, by which the kernel is found here;
// * `launch`, the launch's text (kiln/_functions.py): of a program that was compiled or exported by another process the
//   key is not known yet, and Python makes the kernel from the text;
// * `extents`, from which grid and threadgroup are computed: a program for each of the six numbers, on a stack, from
// the
//   dimensions of the arrays. JAX may not know these before the call (jax.export with symbolic shapes).
//
// XLA calls it on threads of its own, without the interpreter's lock; on the GPU with the stream that the launch is put
// on. Nothing waits.
#include "xla_launch.h"

#include <nanobind/stl/string.h>

#include <array>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "core/interruption.h"
#include "core/text.h"
#include "kiln/error.h"
#include "runtime/run.h"
#include "xla_ffi.h"

namespace nb = nanobind;

namespace kiln::python {
namespace {

struct XlaLaunch {
  std::shared_ptr<KernelObject> kernel;
  std::vector<TemplateArgument> template_arguments;
  std::optional<Number> init_value;
};

class XlaLaunches {
 public:
  std::shared_ptr<const XlaLaunch> find(const std::string& key) const {
    std::shared_lock lock(mutex_);
    auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : found->second;
  }

  void add(const std::string& key, XlaLaunch launch) {
    std::unique_lock lock(mutex_);
    by_key_.try_emplace(key, std::make_shared<const XlaLaunch>(std::move(launch)));
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const XlaLaunch>> by_key_;
};

// Never destroyed: XLA's threads may outlive the interpreter.
XlaLaunches& launches() {
  static auto* instance = new XlaLaunches;
  return *instance;
}

const void* attribute(const XlaCallFrame& frame, std::string_view name, int type) {
  for (int64_t i = 0; i < frame.attributes.size; ++i)
    if (std::string_view(frame.attributes.names[i]->data, frame.attributes.names[i]->size) == name &&
        frame.attributes.types[i] == type)
      return frame.attributes.values[i];
  throw ValueError(concat("a launch has no attribute `", name, "`: it was not made by this version of Kiln"));
}

std::string text_of(const XlaCallFrame& frame, std::string_view name) {
  const auto* text = static_cast<const XlaText*>(attribute(frame, name, kXlaTextAttribute));
  return {text->data, text->size};
}

std::shared_ptr<const XlaLaunch> find_launch(const XlaCallFrame& frame) {
  std::string key = text_of(frame, "key");
  if (std::shared_ptr<const XlaLaunch> launch = launches().find(key)) return launch;
  std::string text = text_of(frame, "launch");
  {
    nb::gil_scoped_acquire lock;
    try {
      nb::module_::import_("kiln._functions_jax").attr("register")(key, text);
    } catch (nb::python_error& error) {
      throw ValueError(error.what());
    }
  }
  if (std::shared_ptr<const XlaLaunch> launch = launches().find(key)) return launch;
  throw InternalError("a launch is not known after it was registered");
}

// As python/kiln/_functions.py's Size writes them.
enum Step : int64_t { kAdd, kSubtract, kMultiply, kDivide, kRemainder, kConstant, kDimension };

int64_t compute(int64_t step, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  switch (step) {
    case kAdd: overflows = __builtin_add_overflow(left, right, &result); break;
    case kSubtract: overflows = __builtin_sub_overflow(left, right, &result); break;
    case kMultiply: overflows = __builtin_mul_overflow(left, right, &result); break;
    case kDivide:
    case kRemainder: {
      if (right == 0) throw ValueError("a size is divided by 0");
      if (right == -1) return step == kDivide ? compute(kSubtract, 0, left) : 0;
      // As Python divides: towards negative infinity.
      int64_t quotient = left / right, remainder = left % right;
      bool rounds = remainder != 0 && (remainder < 0) != (right < 0);
      return step == kDivide ? quotient - rounds : remainder + (rounds ? right : 0);
    }
    default: throw ValueError("a size has an unknown step");
  }
  if (overflows) throw ValueError("a size is beyond 2^63");
  return result;
}

// The number that the program computes which begins at `at` with its length; `at` becomes its end.
int64_t run_program(std::span<const int64_t> steps, size_t& at, std::span<const InputArray> inputs) {
  auto next = [&] {
    if (at >= steps.size()) throw ValueError("a size has no end");
    return steps[at++];
  };
  std::vector<int64_t> stack;
  auto pop = [&] {
    if (stack.empty()) throw ValueError("a size has too many steps");
    int64_t value = stack.back();
    stack.pop_back();
    return value;
  };
  auto length = static_cast<size_t>(next());
  size_t end = at + length;
  while (at < end) {
    int64_t step = next();
    if (step == kConstant) {
      stack.push_back(next());
    } else if (step == kDimension) {
      auto input = static_cast<size_t>(next()), axis = static_cast<size_t>(next());
      if (input >= inputs.size() || axis >= inputs[input].shape.size()) throw ValueError("an input has no such size");
      stack.push_back(inputs[input].shape[axis]);
    } else {
      int64_t right = pop(), left = pop();
      stack.push_back(compute(step, left, right));
    }
  }
  return pop();
}

Dtype dtype_of(const XlaBuffer& buffer) {
  if (std::optional<Dtype> dtype = dtype_of_xla(buffer.dtype)) return *dtype;
  throw TypeError(concat("an array has a dtype that no kernel can take (XLA's ", buffer.dtype, ")"));
}

void launch(const XlaCallFrame& frame, DeviceKind kind) {
  std::shared_ptr<const XlaLaunch> known = find_launch(frame);
  KernelObject& kernel = *known->kernel;
  std::vector<InputArray> inputs;
  std::deque<std::vector<int64_t>> strides;
  for (int64_t i = 0; i < frame.inputs.size; ++i) {
    const XlaBuffer& buffer = *frame.inputs.buffers[i];
    std::span<const int64_t> shape(buffer.dimensions, static_cast<size_t>(buffer.rank));
    write_row_contiguous_strides(shape, strides.emplace_back(shape.size()));
    inputs.push_back({buffer.data, dtype_of(buffer), shape, strides.back()});
  }
  std::vector<OutputArray> outputs;
  std::vector<void*> data;
  for (int64_t i = 0; i < frame.outputs.size; ++i) {
    const XlaBuffer& buffer = *frame.outputs.buffers[i];
    outputs.push_back({dtype_of(buffer), {buffer.dimensions, static_cast<size_t>(buffer.rank)}});
    data.push_back(buffer.data);
  }
  const auto* extents = static_cast<const XlaNumbers*>(attribute(frame, "extents", kXlaArrayAttribute));
  if (extents->dtype != kXlaInt64) throw ValueError("the extents of a launch are no int64");
  std::span<const int64_t> steps(static_cast<const int64_t*>(extents->data), extents->size);
  Call call{};
  size_t at = 0;
  for (int64_t& size : call.grid) size = run_program(steps, at, inputs);
  for (int64_t& size : call.threadgroup) size = run_program(steps, at, inputs);
  call.inputs = inputs;
  call.outputs = outputs;
  call.template_arguments = known->template_arguments;
  call.init_value = known->init_value;
  if (traits_of(kind).is_asynchronous) {
    XlaStreamArguments stream{sizeof stream, nullptr, frame.context, nullptr};
    XlaDeviceArguments device{sizeof device, nullptr, frame.context, 0};
    if (frame.api->struct_size < sizeof(XlaApi))
      throw UnsupportedError("this version of JAX does not say on which GPU a function is called");
    if (frame.api->get_stream(&stream) || frame.api->get_device(&device))
      throw DeviceError("XLA does not say on which stream a function is called");
    call.device = {kind, device.ordinal};
    call.stream = stream.stream;
  }
  kernel.check_sizes(call);
  run(kernel, call, data);
}

XlaError* handle(XlaCallFrame* frame, DeviceKind kind) noexcept {
  // XLA asks once which version of its interface this is.
  if (frame->extensions && frame->extensions->type == kXlaMetadata) {
    XlaMetadata& metadata = *reinterpret_cast<XlaMetadataExtension*>(frame->extensions)->metadata;
    // Later versions only add to what is used here; the first do not tell theirs.
    metadata.version.major = frame->api ? frame->api->version.major : 0;
    metadata.version.minor = frame->api ? frame->api->version.minor : kXlaFirstMinor;
    return nullptr;
  }
  if (frame->stage != kXlaExecute) return nullptr;
  auto fail = [&](XlaErrorCode code, const char* message) {
    XlaErrorArguments arguments{sizeof arguments, nullptr, message, code};
    return frame->api->create_error(&arguments);
  };
  try {
    launch(*frame, kind);
    return nullptr;
  } catch (const UnsupportedError& error) {
    return fail(kXlaUnimplemented, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(kXlaInvalidArgument, error.what());
  } catch (const Interrupted&) {
    return fail(kXlaCancelled, "a kernel was interrupted");
  } catch (const std::bad_alloc& error) {
    return fail(kXlaResourceExhausted, error.what());
  } catch (const std::exception& error) {
    return fail(kXlaInternal, error.what());
  }
}

XlaError* handle_on_cpu(XlaCallFrame* frame) noexcept { return handle(frame, DeviceKind::kCpu); }
XlaError* handle_on_gpu(XlaCallFrame* frame) noexcept { return handle(frame, DeviceKind::kNvidia); }

}  // namespace

void register_xla_launch(const std::string& key, std::shared_ptr<KernelObject> kernel,
                         std::vector<TemplateArgument> template_arguments, std::optional<Number> init_value) {
  launches().add(key, {std::move(kernel), std::move(template_arguments), init_value});
}

void* xla_handler(DeviceKind device) {
  return reinterpret_cast<void*>(traits_of(device).is_asynchronous ? handle_on_gpu : handle_on_cpu);
}

}  // namespace kiln::python
