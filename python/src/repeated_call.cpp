// A call of small arrays on a GPU that is like one before, in less time than it takes to be read for any error.
//
// What call() does first takes as long as half a launch: it describes arrays in vectors, and names each for messages.
// Where a thread has a plan for a call (runtime/run.h), a call of these shapes has been accepted before, and all that
// is left to ask is of the arrays themselves. What is not as most calls are goes the long way, which finds the same
// again and says what is wrong; here is no message.
//
// A program that PyTorch has compiled calls an operator with what is known already, and is served likewise, on the CPU
// too.
#include <algorithm>
#include <array>
#include <span>

#include "core/array_layout.h"
#include "core/device_traits.h"
#include "device_library.h"
#include "overlaps.h"
#include "python_object.h"
#include "runtime/run.h"

namespace nb = nanobind;

namespace kiln::python {

PyObject* DeviceLibrary::repeat(KernelObject& kernel, const CallArguments& given) const {
  size_t input_count = given.inputs.size();
  size_t output_count = given.outputs ? given.outputs->size() : given.output_shapes.size();
  if (input_count + output_count > kMostArrays || kernel.writes_inputs() || given.verbose || given.stream ||
      given.init_value || waits() || !given.input_names.empty() || !given.output_names.empty() || may_record())
    return nullptr;

  std::array<PlainArray, kMostArrays> arrays;
  std::array<InputArray, kMostArrays> described;  // given outputs, too
  size_t read = 0;
  auto read_array = [&](const ObjectOwner& object, bool is_output) {
    PlainArray& array = arrays[read];
    if (!read_plain(object.get(), is_output, /*on_gpu=*/true, array) || (read > 0 && array.device != arrays[0].device))
      return false;
    auto dimensions = static_cast<size_t>(array.dimensions);
    described[read++] = {array.data, array.dtype, {array.shape, dimensions}, {array.strides, dimensions}};
    return true;
  };
  for (const ObjectOwner& input : given.inputs)
    if (!read_array(input, false)) return nullptr;
  if (given.outputs)
    for (const ObjectOwner& output : *given.outputs)
      if (!read_array(output, true)) return nullptr;
  if (read == 0) return nullptr;  // the call does not say where it runs

  std::span<const InputArray> inputs(described.data(), input_count);
  std::span<const InputArray> written(described.data() + input_count, read - input_count);
  std::array<OutputArray, kMostArrays> outputs;
  for (size_t i = 0; i < output_count; ++i) {
    if (given.outputs)
      outputs[i] = {written[i].dtype, written[i].shape};
    else if (i < given.output_dtypes.size())
      outputs[i] = {given.output_dtypes[i], given.output_shapes[i]};
    else
      return nullptr;
  }
  Call call{};
  call.inputs = inputs;
  call.outputs = {outputs.data(), output_count};
  call.template_arguments = given.template_arguments;
  call.grid = given.grid;
  call.threadgroup = given.threadgroup;
  call.device = arrays[0].device;
  std::shared_ptr<LaunchPlan> plan = find_plan(kernel, call);
  if (!plan) return nullptr;

  for (size_t i = input_count; i < read; ++i) {
    if (!is_row_contiguous(described[i].shape, described[i].strides)) return nullptr;
    for (size_t other = 0; other < i; ++other)
      if (overlap(described[i], described[other])) return nullptr;
  }

  call.stream = current_stream(call.device);
  std::array<nb::object, kMostArrays> results;
  std::array<void*, kMostArrays> data;
  for (size_t i = 0; i < output_count; ++i) {
    if (given.outputs) {
      results[i] = nb::borrow((*given.outputs)[i].get());
      data[i] = arrays[input_count + i].data;
      continue;
    }
    nb::handle model;
    for (size_t k = 0; k < input_count && !model.is_valid(); ++k)
      if (is_like_new(inputs[k], outputs[i])) model = given.inputs[k].get();
    results[i] = make(outputs[i], call.device, model, data[i]);
  }
  if (given.outputs) mark_written({results.data(), output_count});
  {
    WithoutLock without_lock;
    run_again(*plan, kernel, call, {data.data(), output_count});
  }
  return list_of({results.data(), output_count}, given.outputs.has_value(), call.device);
}

PyObject* DeviceLibrary::run_operator(KernelObject& kernel, std::span<PyObject* const> inputs, Call call) const {
  if (inputs.empty() || inputs.size() + call.outputs.size() > kMostArrays || may_see_operators()) return nullptr;
  std::array<PlainArray, kMostArrays> arrays;
  std::array<InputArray, kMostArrays> described;
  for (size_t i = 0; i < inputs.size(); ++i) {
    PlainArray& array = arrays[i];
    if (!read_plain(inputs[i], /*is_output=*/false, /*on_gpu=*/false, array) || array.device != arrays[0].device)
      return nullptr;
    auto dimensions = static_cast<size_t>(array.dimensions);
    described[i] = {array.data, array.dtype, {array.shape, dimensions}, {array.strides, dimensions}};
  }
  call.inputs = {described.data(), inputs.size()};
  call.device = arrays[0].device;
  std::shared_ptr<LaunchPlan> plan;
  if (traits_of(call.device).is_asynchronous) {
    call.stream = current_stream(call.device);
    plan = find_plan(kernel, call);
  }
  if (!plan) kernel.check_sizes(call);
  std::array<nb::object, kMostArrays> results;
  std::array<void*, kMostArrays> data;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    nb::handle model;
    for (size_t k = 0; k < inputs.size() && !model.is_valid(); ++k)
      if (is_like_new(call.inputs[k], call.outputs[i])) model = inputs[k];
    results[i] = make(call.outputs[i], call.device, model, data[i]);
  }
  {
    WithoutLock without_lock;
    if (plan)
      run_again(*plan, kernel, call, {data.data(), call.outputs.size()});
    else
      run(kernel, call, {data.data(), call.outputs.size()});
  }
  return list_of({results.data(), call.outputs.size()}, /*were_given=*/false, call.device);
}

}  // namespace kiln::python
