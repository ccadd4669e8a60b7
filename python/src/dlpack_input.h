// Inputs that are arrays of libraries Kiln does not know: read through Python's DLPack protocol, in the CPU's memory
// (https://dmlc.github.io/dlpack/latest/python_spec.html).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "array_library.h"
#include "runtime/call.h"

namespace kiln::python {

// An array that a capsule holds; its memory lives as long as this object.
class DlpackInput {
 public:
  /// Calls the object's `__dlpack__`. Throws TypeError for an array that is not in the CPU's memory, of a dtype that no
  /// kernel can take, or that cannot be exported; the exporter's own error is the cause. `name` begins the message.
  DlpackInput(nanobind::handle object, const ArgumentName& name);

  Dtype dtype() const { return dtype_; }
  const void* data() const { return data_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<int64_t>& strides() const { return strides_; }  // in elements

  /// Writes the elements in order, to as many bytes as they have.
  void copy_row_contiguous(void* memory) const;

  /// As a launch reads it; valid as long as this object stays where it is.
  InputArray array() const;

 private:
  void copy_aligned();

  nanobind::object capsule_;
  Dtype dtype_ = Dtype::kFloat32;
  const void* data_ = nullptr;
  std::vector<int64_t> shape_, strides_;
  std::vector<uint64_t> copy_;  // the elements, where they are not aligned in the exporter's memory
};

}  // namespace kiln::python
