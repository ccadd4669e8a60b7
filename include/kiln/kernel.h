// Kernels over tensors.
//
//     kiln::Kernel twice = kiln::metal_kernel("twice", {"x"}, {"y"}, R"(
//         uint i = thread_position_in_grid.x;
//         y[i] = 2 * x[i];
//     )");
//     std::vector<float> x = {1, 2, 3};
//     std::vector<kiln::Tensor> outputs = twice({
//         .inputs = {x},
//         .output_shapes = {{3}},
//         .output_dtypes = {kiln::Dtype::kFloat32},
//         .grid = {3, 1, 1},
//         .threadgroup = {3, 1, 1},
//     });
//     outputs[0].values<float>();  // 2, 4, 6
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/compilation.h"
#include "kiln/error.h"
#include "kiln/launch.h"
#include "kiln/tensor.h"

namespace kiln {

class KernelObject;
struct Variant;

/// A body or a header: text, or a file with the text. A string is always text, also if it looks like a path; write
/// `std::filesystem::path("scale.metal")` for a file.
class KernelSource {
 public:
  KernelSource(const char* text) : text_(text) {}
  KernelSource(std::string text) : text_(std::move(text)) {}
  KernelSource(std::filesystem::path path) : path_(std::move(path)) {}

  const std::string& text() const { return text_; }                           ///< empty for a file
  const std::optional<std::filesystem::path>& path() const { return path_; }  ///< empty for text

 private:
  std::string text_;
  std::optional<std::filesystem::path> path_;
};

/// Machine code for one combination of argument types. Keeps its kernel alive.
class CompiledKernel {
 public:
  /// For Kernel::compile.
  CompiledKernel(std::shared_ptr<KernelObject> kernel, std::shared_ptr<const Variant> variant)
      : kernel_(std::move(kernel)), variant_(std::move(variant)) {}

  const std::string& name() const;    ///< the kernel's name
  std::string target() const;         ///< the device that it runs on: "cpu", "nvidia:0"
  std::string architecture() const;   ///< LLVM's name of the architecture: "x86-64-v3", "sm_90"
  std::string engine() const;         ///< "simd" or "scalar"; for a GPU the compiler, "ptx" or "nvrtc"
  std::string engine_reason() const;  ///< the reason for that engine
  std::string source() const;         ///< the generated text
  /// The machine code with its constants, which lives as long as this object.
  std::span<const std::byte> machine_code() const;
  /// The threadgroup memory of one threadgroup, in bytes.
  size_t threadgroup_memory_bytes() const;
  /// The memory of one suspended thread, in bytes; 0 if no thread waits.
  size_t thread_memory_bytes() const;
  double compile_ms() const;
  /// The compiler's warnings about body and header, each followed by its notes. Code from the cache on disk and from a
  /// bundle has the warnings of its compilation. NVRTC's warnings are not included.
  std::vector<Diagnostic> diagnostics() const;

  /// The stages before the machine code, in this order. Compiles again, because they are not kept.
  ///
  /// * "clang": LLVM IR as Clang emits it;
  /// * "guarded": LLVM IR with defined arithmetic, inlined calls and guarded accesses;
  /// * "lanes", "components", "structured", "widened": stages of the SIMD engine (docs/design/simd-engine.md);
  /// * "optimized": LLVM IR of the code for a launch;
  /// * "assembly", for a GPU "ptx".
  ///
  /// A CUDA body that NVRTC compiles has "text" and "assembly". `after` names passes (see passes()): the IR after each
  /// run of such a pass is a stage "after:<name>", at its position in this order. Passes that do not run add none.
  std::vector<CompileStage> stages(const std::vector<std::string>& after = {}) const;

  /// The runs of the compiler's passes in order, also of those that were switched off. NVRTC has none. Compiles again.
  std::vector<CompilePass> passes() const;

  /// Reasons why optional passes did not apply, why the SIMD engine did not compile the kernel, and which accesses
  /// became gathers and scatters, in the order of the passes. NVRTC has none. Compiles again.
  std::vector<CompileRemark> remarks() const;

 private:
  std::shared_ptr<KernelObject> kernel_;
  std::shared_ptr<const Variant> variant_;
};

/// A kernel. Copies are the same kernel. Every function may be called from several threads at once; compiling one
/// kernel never blocks launching another.
class Kernel {
 public:
  /// Runs the kernel to its end. Compiles it first if this combination of dtypes, template arguments and (for the first
  /// four) shapes is new. Returns the outputs, row-contiguous.
  ///
  /// Throws before anything runs: ValueError and TypeError for a wrong argument, CompileError if the body or the header
  /// is not valid, UnsupportedError if it is valid but cannot run here. Throws DeviceError if the kernel fails while it
  /// runs or its device is missing, and std::bad_alloc. For a GPU this is a ValueError, because outputs there are
  /// memory of the caller: see run().
  std::vector<Tensor> operator()(const KernelCall& call) const;

  /// The same into existing tensors of the call's shapes and dtypes (ValueError). On the CPU.
  void run(const KernelCall& call, std::span<Tensor> outputs) const;

  /// The same into memory of the caller: an address for each output, a multiple of the element's size (of 4 for
  /// complex64), with as many bytes as its shape and dtype need. It must not overlap another output, or the range from
  /// the lowest to the highest element of an input (ValueError). After an exception the memory's contents are
  /// unspecified.
  void run(const KernelCall& call, std::span<void* const> outputs) const;

  /// The text that this call compiles, with the signature. Runs and compiles nothing, and does not read the inputs'
  /// addresses. Throws ValueError, TypeError, UnsupportedError.
  std::string source_for(const KernelCall& call) const;

  /// Compiles what this call would run. Runs nothing, and does not read the inputs' addresses. Throws what the call
  /// would throw before it runs, except for addresses.
  CompiledKernel compile(const KernelCall& call) const;

  const std::string& name() const;

  /// The last 1,000 launches, oldest first.
  std::vector<Launch> history() const;

 private:
  friend Kernel metal_kernel(std::string, std::vector<std::string>, std::vector<std::string>, const KernelSource&,
                             const KernelSource&, bool, bool, const CompileOptions&);
  friend Kernel cuda_kernel(std::string, std::vector<std::string>, std::vector<std::string>, const KernelSource&,
                            const KernelSource&, bool, int64_t, const CompileOptions&);
  explicit Kernel(std::shared_ptr<KernelObject> object) : object_(std::move(object)) {}

  std::shared_ptr<KernelObject> object_;
};

/// A kernel from the body of a function in Metal. `name` is for messages and may be any text. The names of inputs and
/// outputs become the function's parameters. The body also sees `x_shape`, `x_strides` and `x_ndim` of an input `x`,
/// and Metal's attributes, such as `thread_position_in_grid`. `header` precedes the function.
///
/// `ensure_row_contiguous`: inputs that are not row-contiguous are copied first; otherwise they are passed unchanged,
/// and the body uses their strides. `atomic_outputs`: outputs are `device atomic<T>*`.
///
/// A file and its includes are read now; later changes have no effect. Kiln looks for `#include "…"` in the folder of
/// the including file, then in `compile_options.include_dirs`.
///
/// Throws ValueError: no output; a name that is not an identifier, is a keyword, or is used twice; text that is not
/// UTF-8; a file that is missing or cannot be read.
Kernel metal_kernel(std::string name, std::vector<std::string> input_names, std::vector<std::string> output_names,
                    const KernelSource& source, const KernelSource& header = "", bool ensure_row_contiguous = true,
                    bool atomic_outputs = false, const CompileOptions& compile_options = {});

/// A kernel from a body in CUDA, which runs on an NVIDIA GPU or on the CPU. `shared_memory`: dynamic shared memory of a
/// block in bytes. Whole blocks run, so the body has to check that its thread is within the arrays. On the CPU accesses
/// are guarded as in Metal bodies. On a GPU they are not guarded, and `bounds` set to true is an UnsupportedError.
Kernel cuda_kernel(std::string name, std::vector<std::string> input_names, std::vector<std::string> output_names,
                   const KernelSource& source, const KernelSource& header = "", bool ensure_row_contiguous = true,
                   int64_t shared_memory = 0, const CompileOptions& compile_options = {});

}  // namespace kiln
