// Compilations for inputs of which only dtypes and shapes are known.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "call_arguments.h"

namespace kiln::python {

/// What a call with row-contiguous arrays of these dtypes and shapes compiles: the generated text for Wanted::kSource,
/// a CompiledKernel for Wanted::kCompile. No array library has a part in it. Throws what such a call throws.
nanobind::object compile_described(const std::shared_ptr<KernelObject>& kernel, const CallArguments& arguments,
                                   const DescribedInputs& inputs, Wanted wanted);

}  // namespace kiln::python
