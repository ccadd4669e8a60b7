#include "runtime/recording.h"

#include <algorithm>

#include "core/fork_guard.h"

namespace kiln {

RecordedCall::RecordedCall(const Call& call, bool for_shapes, const Extent3& threadgroup)
    : template_arguments(call.template_arguments.begin(), call.template_arguments.end()),
      input_names(call.input_names.begin(), call.input_names.end()),
      output_names(call.output_names.begin(), call.output_names.end()),
      specialized(for_shapes),
      extents(example_of(launch_form(call.grid, threadgroup))) {
  for (const InputArray& input : call.inputs)
    inputs.push_back(
        {input.dtype, {input.shape.begin(), input.shape.end()}, {input.strides.begin(), input.strides.end()}});
  for (const OutputArray& output : call.outputs)
    outputs.push_back({output.dtype, {output.shape.begin(), output.shape.end()}});
}

void RecordedCall::view(const std::function<void(const Call&)>& function) const {
  std::vector<InputArray> input_arrays;
  for (const RecordedInput& input : inputs) input_arrays.push_back({nullptr, input.dtype, input.shape, input.strides});
  std::vector<OutputArray> output_arrays;
  for (const RecordedOutput& output : outputs) output_arrays.push_back({output.dtype, output.shape});
  function({input_arrays,
            output_arrays,
            template_arguments,
            extents.grid,
            extents.threadgroup,
            {},
            input_names,
            output_names});
}

void Recording::add(const KernelSpec& spec, const Call& call, bool specialized, const Extent3& threadgroup) {
  RecordedCall recorded(call, specialized, threadgroup);
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  // The newest first: a program that makes its kernel anew for each call asks for that one again.
  auto same = std::find_if(kernels_.rbegin(), kernels_.rend(),
                           [&](const RecordedKernel& kernel) { return kernel.spec == spec; });
  RecordedKernel& kernel = same == kernels_.rend() ? kernels_.emplace_back(RecordedKernel{spec, {}}) : *same;
  if (std::find(kernel.calls.begin(), kernel.calls.end(), recorded) == kernel.calls.end())
    kernel.calls.push_back(std::move(recorded));
}

std::vector<RecordedKernel> Recording::kernels() const {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  return kernels_;
}

}  // namespace kiln
