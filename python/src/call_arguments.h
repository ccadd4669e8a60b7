// The keywords of a kernel's call, read into C++.
#pragma once

#include <nanobind/nanobind.h>

#include "array_library.h"
#include "kiln/device.h"

namespace kiln::python {

/// A dtype from whatever stands for one: a string, or a dtype of any array library in `libraries`, which it names.
using DtypeReader = std::optional<Dtype> (*)(PyObject* object, ArrayLibrary*& library);

// What a compilation is told of the inputs where there are no arrays, and where the code is to run.
struct DescribedInputs {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<Dtype> dtypes;  // as many
  Device device;
};

/// Reads the calls of one kernel, one after the other: inputs and outputs are lists, or dictionaries where the kernel
/// has no names of its own.
///
/// Calls of a kernel mostly differ in their arrays only. What is the object that it was in the call before and can't
/// have changed since is not read again: the names of the keywords, a tuple of ints, a dtype, a pair in `template`.
/// Reading all of it took as long as half of a small launch on a GPU.
class CallReader {
 public:
  CallReader(const KernelObject& kernel, DtypeReader read_dtype);
  ~CallReader();

  /// What is read is valid until the next read. Throws TypeError and ValueError that name the argument; a reader that
  /// has thrown is not used again.
  const CallArguments& read(nanobind::handle positional, nanobind::handle keywords);

  /// The same of what Python's vectorcall gives: values, and a tuple of names or null.
  const CallArguments& read(PyObject* const* values, size_t positional, PyObject* names);

  /// The same of a compilation, which may have `input_shapes`, `input_dtypes` and `target` in the place of `inputs`:
  /// then the call has no inputs but, where it gives them, their names, and `described` has the rest.
  const CallArguments& read_compilation(nanobind::handle positional, nanobind::handle keywords,
                                        std::optional<DescribedInputs>& described);

  /// The library of the call's first dtype that belongs to one, or null.
  ArrayLibrary* library_of_dtypes() const;

  /// Lets go of the call's arrays, which nobody else may hold.
  void forget_arrays();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln::python
