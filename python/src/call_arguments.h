// The keywords of a kernel's call, read into C++.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "array_library.h"

namespace kiln::python {

/// A dtype from whatever stands for one: a string, or a dtype of any array library in `libraries`.
using DtypeReader = std::function<std::optional<Dtype>(PyObject*)>;

/// Reads the keywords of a call, whose inputs and outputs are lists, or dictionaries where the kernel has no names of
/// its own. Throws TypeError and ValueError that name the argument.
CallArguments read_call(const KernelObject& kernel, nanobind::handle arguments, nanobind::handle keywords,
                        const DtypeReader& read_dtype);

}  // namespace kiln::python
