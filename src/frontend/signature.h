// Around a body: header, signature, and what makes one text of them. One function a dialect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/kernel_unit.h"
#include "frontend/usage.h"
#include "kiln/dtype.h"
#include "kiln/element.h"

namespace kiln {

// An input as far as the signature depends on it. Part of what identifies a compiled kernel.
struct InputType {
  Dtype dtype = Dtype::kFloat32;
  // Of an input with a batch: an element of the batch.
  bool is_scalar = false;  // 0-dimensional: passed by reference (Metal), and without shape
  bool is_small = false;   // fewer than kSmallInputSize elements: in the constant address space (Metal)

  bool operator==(const InputType&) const = default;
};

inline constexpr int64_t kSmallInputSize = 8;

struct TemplateArgument {
  std::string name;
  TemplateValue value;

  bool operator==(const TemplateArgument&) const = default;
};

// Which generation of MLX's interface the text follows.
enum class SignatureStyle : uint8_t {
  kWhereUsed,  // shape, strides and ndim where the body uses them; strides are int64_t
  kAlways,     // all three, used or not; strides are size_t (the class generation)
};

// The body's grid, where it is not the launch's (grid_part.h).
struct GridPart {
  // Of each input, whether its first axis is the batch's, which the body does not see. All outputs have one. Empty:
  // there is no batch.
  std::vector<bool> batched_inputs = {};
  // The launch is a slice of the body's grid along this axis; -1: it is none.
  int sliced_axis = -1;

  bool has_batch() const { return !batched_inputs.empty(); }
  bool is_slice() const { return sliced_axis >= 0; }
  bool is_whole() const { return !has_batch() && !is_slice(); }

  bool operator==(const GridPart&) const = default;
};

struct SignatureRequest {
  const KernelText& text;
  std::string_view kernel_name;  // as the caller wrote it
  std::span<const std::string> input_names;
  std::span<const InputType> inputs;
  std::span<const std::string> output_names;
  std::span<const Dtype> outputs;
  std::span<const TemplateArgument> template_arguments;
  bool atomic_outputs = false;
  SignatureStyle style = SignatureStyle::kWhereUsed;
  GridPart part = {};
};

/// The Metal text, equal to MLX's but for the function's name, which is always an identifier.
KernelUnit write_metal(const SignatureRequest& request);

/// The CUDA text.
KernelUnit write_cuda(const SignatureRequest& request);

}  // namespace kiln
