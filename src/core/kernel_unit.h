// The contract between front ends and compilers: one kernel, written out for one combination of argument types.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/included_file.h"
#include "core/launch_form.h"
#include "core/source_map.h"
#include "kiln/compilation.h"
#include "kiln/dtype.h"

namespace kiln {

enum class Dialect : uint8_t { kMetal, kCuda };

// What one parameter of the generated function stands for. At a launch the runtime makes one pointer and one extent
// of each.
enum class ParameterRole : uint8_t {
  kInput,    // the elements of an input
  kShape,    // int[ndim]
  kStrides,  // int64_t[ndim], in elements
  kNdim,     // one int
  kOutput,   // the elements of an output
};

// Shapes and strides are followed by zeros up to this many elements at least. A read at a constant index below it needs
// no guard, and may be made early.
inline constexpr uint32_t kPaddedDimensions = 16;

// As many dimensions as the types Shape and Strides of a CUDA text hold.
inline constexpr uint32_t kMaxCudaDimensions = 10;

struct KernelParameter {
  ParameterRole role = ParameterRole::kInput;
  uint32_t argument = 0;  // index among the inputs, or among the outputs
  std::string name;       // "x", "x_shape"
  std::string element;    // element type in the dialect's spelling: "float16_t", "atomic<float>", "int"
  uint32_t element_bytes = 0;
  uint32_t alignment = 1;          // bytes; what an element's address is a multiple of
  bool by_reference = false;       // `T& name` rather than `T* name`
  bool from_zero = true;           // nothing of it lies before its pointer, as it may with negative strides
  bool is_writable_input = false;  // kInput: the body may write it, in place
  // kInput, kOutput: a batch of arrays (frontend/grid_part.h). Pointer and extent are those of its first array; the
  // body accesses the others through pointers that it makes by `__kiln::element`.
  bool is_batch = false;
  // kInput, kOutput: how many bytes it has, from its pointer on, where the code is made for that. Otherwise 0.
  uint64_t known_bytes = 0;
  // kShape, kStrides, kNdim: what it holds, where the code is made for that; zeros follow. Otherwise empty.
  std::vector<int64_t> values = {};

  /// Whether a launch may change it. Only outputs are exclusive to their launch: others may use a writable input at the
  /// same time.
  bool is_written() const { return role == ParameterRole::kOutput || is_writable_input; }

  /// Bytes from the pointer on that are there at every launch.
  uint32_t guaranteed_bytes() const {
    if (role == ParameterRole::kShape || role == ParameterRole::kStrides) return kPaddedDimensions * element_bytes;
    return by_reference || role == ParameterRole::kNdim ? element_bytes : 0;
  }
};

struct KernelUnit {
  Dialect dialect = Dialect::kMetal;
  MathMode math_mode = MathMode::kSafe;
  LaunchForm form;  // what launches the code may be made for
  // The threads of the grid in x, y and z, where the code is made for that and for how many bytes arrays have.
  // Otherwise zeros.
  std::array<uint32_t, 3> known_grid{};
  bool bounds_guards = true;  // spec: accesses outside an argument do not touch memory
  // A store through an input that is not writable makes it so, as on a Mac; else it is an error.
  bool allows_input_stores = false;
  // kCuda on the CPU: what an `extern __shared__` array has. (On a GPU it is the launch's.)
  uint64_t dynamic_memory_bytes = 0;

  /// What a parameter's address is a multiple of in every launch of this form, beyond KernelParameter::alignment.
  uint32_t assumed_alignment(const KernelParameter& parameter) const {
    const bool is_array = parameter.role == ParameterRole::kInput && !parameter.by_reference && !parameter.is_batch;
    return form.arrays_are_plain && is_array ? 16 : 1;
  }

  bool has_known_sizes() const { return known_grid[0] > 0; }

  /// What remains is made for the shapes that the body uses, if for any.
  void drop_known_sizes() {
    known_grid = {};
    for (KernelParameter& parameter : parameters) {
      const bool has_known_shape = std::ranges::any_of(parameters, [&](const KernelParameter& other) {
        return !other.values.empty() && other.argument == parameter.argument;
      });
      if (parameter.role == ParameterRole::kOutput || !has_known_shape) parameter.known_bytes = 0;
    }
  }

  std::string name;   // as the caller wrote it; for messages only
  std::string text;   // header, signature, body: what is compiled, and what `verbose=True` prints
  std::string entry;  // an expression that names the function: "custom_kernel_myexp<float, 3, 1>"
  SourceMap source_map;

  // What `text` includes (core/included_file.h).
  std::vector<Inclusion> inclusions;
  std::vector<IncludedFile> included_files;
  // For messages only: where header and body come from, if from files, and where included files were looked for.
  std::string source_path, header_path;
  std::vector<std::string> include_dirs;

  std::vector<KernelParameter> parameters;  // in signature order
  std::vector<uint8_t> attributes;          // rows of kAttributes, in signature order, after the parameters
  std::vector<std::string> offered_names;   // shapes, strides and ndims, used or not: what a misspelt name may mean
  std::vector<std::string> missing_names;   // those of arguments that have none

  // Every identifier of header, body and what they include, sorted, macros' replacement lists included. Device
  // libraries choose their parts by it. `pastes_tokens`: the text uses `##`, so names may arise that are not in the
  // list.
  std::vector<std::string> identifiers;
  bool pastes_tokens = false;

  // Names that the header declares at global scope or in namespace `metal`; what Kiln offers under one of them steps
  // back.
  std::vector<std::string> own_names;

  // The names in `#include`s of header, body and what they include: "cuComplex.h".
  std::vector<std::string> included_names;

  /// The path of the file that holds a text; empty where it is no file.
  std::string_view path_of(const SourcePosition& position) const {
    switch (position.text) {
      case SourceText::kBody: return source_path;
      case SourceText::kHeader: return header_path;
      case SourceText::kIncluded: return included_files[position.file].path;
      case SourceText::kGenerated: break;
    }
    return {};
  }
};

}  // namespace kiln
