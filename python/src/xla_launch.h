// Launches that XLA makes, of programs that JAX has compiled.
#pragma once

#include <memory>
#include <string>

#include "python_object.h"
#include "runtime/kernel_object.h"

namespace kiln::python {

/// Makes launches with this key known. The values are kept for the life of the process.
void register_xla_launch(const std::string& key, std::shared_ptr<KernelObject> kernel,
                         std::vector<TemplateArgument> template_arguments, std::optional<Number> init_value);

/// XLA's handlers, as `jax.ffi.register_ffi_target` takes their addresses.
void* xla_handler(DeviceKind device);

}  // namespace kiln::python
