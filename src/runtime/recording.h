// What a program compiles, written down so that it can be compiled ahead: on another machine, for another processor,
// for a machine without a compiler.
//
// Kernels and the types of their calls are recorded, not the text or the machine code that came of them: a later
// version of Kiln, or another target, makes its own of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/signature.h"
#include "kiln/dtype.h"
#include "runtime/call.h"
#include "runtime/kernel_spec.h"

namespace kiln {

struct RecordedInput {
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements

  bool operator==(const RecordedInput&) const = default;
};

struct RecordedOutput {
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> shape;

  bool operator==(const RecordedOutput&) const = default;
};

// A call as far as code depends on it.
struct RecordedCall {
  std::vector<RecordedInput> inputs;
  std::vector<RecordedOutput> outputs;
  std::vector<TemplateArgument> template_arguments;
  std::vector<std::string> input_names, output_names;  // where the kernel does not have them
  bool specialized = false;                            // code for its shapes, or for any
  LaunchExtents extents;                               // of its form

  RecordedCall() = default;
  RecordedCall(const Call& call, bool specialized, const Extent3& threadgroup);

  /// Calls `function` with a Call of arrays at no address.
  void view(const std::function<void(const Call&)>& function) const;

  bool operator==(const RecordedCall&) const = default;
};

struct RecordedKernel {
  KernelSpec spec;
  std::vector<RecordedCall> calls;  // each once, in the order in which they were first made
};

// Of one process; may be added to by several threads at once.
class Recording {
 public:
  void add(const KernelSpec& spec, const Call& call, bool specialized, const Extent3& threadgroup);

  /// Each kernel once, in the order in which they were first called. Kernels that are made of the same are one.
  std::vector<RecordedKernel> kernels() const;

 private:
  mutable std::mutex mutex_;
  std::vector<RecordedKernel> kernels_;
};

}  // namespace kiln
