#include "described_call.h"

#include "core/array_layout.h"
#include "python_object.h"
#include "runtime/call.h"

namespace nb = nanobind;

namespace kiln::python {

nb::object compile_described(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments,
                             const DescribedInputs& described, Wanted wanted) {
  std::vector<std::vector<int64_t>> strides;
  std::vector<InputArray> inputs;
  strides.reserve(described.shapes.size());
  for (size_t i = 0; i < described.shapes.size(); ++i) {
    const std::vector<int64_t>& shape = described.shapes[i];
    write_row_contiguous_strides(shape, strides.emplace_back(shape.size()));
    inputs.push_back({nullptr, described.dtypes[i], shape, strides.back()});
  }
  const std::vector<OutputArray> outputs = arguments.allocated_outputs();
  Call call = arguments.call_on(inputs, outputs, described.device);
  kernel->check_sizes(call);
  if (wanted == Wanted::kSource || arguments.verbose) {
    kernel->check(call);
    KernelUnit unit = kernel->unit_for(call);
    if (wanted == Wanted::kSource) return nb::str(unit.text.data(), unit.text.size());
    print_source(unit);
  }
  KernelObject::Found found;
  {
    WithoutLock without_lock;
    found = kernel->find_or_compile(call);
  }
  return nb::steal(make_compiled_kernel(kernel, found));
}

}  // namespace kiln::python
