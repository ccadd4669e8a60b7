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

/// A body or a header: text, or a file that holds it. A string is text, also where it looks like a path; write
/// `std::filesystem::path("scale.metal")` for a file.
class KernelSource {
 public:
  KernelSource(const char* text) : text_(text) {}
  KernelSource(std::string text) : text_(std::move(text)) {}
  KernelSource(std::filesystem::path path) : path_(std::move(path)) {}

  const std::string& text() const { return text_; }                           ///< empty where it is a file
  const std::optional<std::filesystem::path>& path() const { return path_; }  ///< empty where it is text

 private:
  std::string text_;
  std::optional<std::filesystem::path> path_;
};

/// Machine code for one combination of argument types. Keeps its kernel alive.
class CompiledKernel {
 public:
  /// What Kernel::compile makes.
  CompiledKernel(std::shared_ptr<KernelObject> kernel, std::shared_ptr<const Variant> variant)
      : kernel_(std::move(kernel)), variant_(std::move(variant)) {}

  const std::string& name() const;    ///< the kernel's
  std::string target() const;         ///< where it runs: "cpu", "nvidia:0"
  std::string architecture() const;   ///< what it was made for, in LLVM's words: "x86-64-v3", "sm_90"
  std::string engine() const;         ///< how threads are run: "simd", "scalar"; GPU: who compiled, "ptx", "nvrtc"
  std::string engine_reason() const;  ///< why that engine
  std::string source() const;         ///< the generated text
  /// The machine code with its constants; lives as long as this object.
  std::span<const std::byte> machine_code() const;
  /// Threadgroup memory that each threadgroup needs, in bytes.
  size_t threadgroup_memory_bytes() const;
  /// Memory that each thread needs while it waits for others, in bytes; 0 where none waits.
  size_t thread_memory_bytes() const;
  double compile_ms() const;
  /// The compiler's warnings about body and header, each followed by its notes. Code from the cache on disk and from a
  /// bundle has those of its compilation. NVRTC's are not among them.
  std::vector<Diagnostic> diagnostics() const;

  /// What came before the machine code, in this order: LLVM IR as Clang made it ("clang"); with harmless arithmetic,
  /// everything inlined, and accesses guarded ("guarded"); as code for a launch, optimised ("optimized"); "assembly",
  /// of a GPU "ptx". Before "optimized" the SIMD engine has "lanes", "components", "structured" and "widened"
  /// (docs/design/simd-engine.md). NVRTC has "text" and "assembly". `after` names passes (see passes()): the IR after
  /// each run of such a pass is a stage "after:<name>", where it stands in this order; those that do not run are left
  /// out. Compiles once more, since none of it is kept.
  std::vector<CompileStage> stages(const std::vector<std::string>& after = {}) const;

  /// The runs of the compiler's passes, in their order; those that were switched off too. NVRTC has none. Compiles once
  /// more.
  std::vector<CompilePass> passes() const;

  /// Why optional passes did not fire where one would expect it, why the SIMD engine does not take the kernel, and
  /// which accesses became gathers and scatters; in the order of the passes. NVRTC has none. Compiles once more.
  std::vector<CompileRemark> remarks() const;

 private:
  std::shared_ptr<KernelObject> kernel_;
  std::shared_ptr<const Variant> variant_;
};

/// A kernel. Copies are the same kernel. Every function may be called from several threads at once; compiling one
/// kernel never blocks launching another.
class Kernel {
 public:
  /// Runs the kernel to its end, compiling it first where it has not met this combination of dtypes, of template
  /// arguments and (for the first four) of shapes. Returns the outputs, row-contiguous.
  ///
  /// Throws ValueError and TypeError where an argument is wrong, CompileError where the body or the header is not
  /// valid, UnsupportedError where it is valid but cannot run here: nothing ran then. Throws DeviceError where the
  /// kernel failed while it ran or where its device is missing, std::bad_alloc. On a GPU outputs are the caller's, so
  /// that this is a ValueError: see run().
  std::vector<Tensor> operator()(const KernelCall& call) const;

  /// The same with tensors that are there, of the call's shapes and dtypes (ValueError). On the CPU.
  void run(const KernelCall& call, std::span<Tensor> outputs) const;

  /// The same with memory of the caller's: an address for each output, a multiple of the element's size (of 4 for
  /// complex64), with room for as many bytes as its shape and dtype need. What lies between the lowest and the highest
  /// element of an input, and other outputs, must not overlap it (ValueError). Where this throws, what the memory holds
  /// is unspecified.
  void run(const KernelCall& call, std::span<void* const> outputs) const;

  /// The text that this call compiles, signature and all. Runs and compiles nothing; of the inputs, addresses are not
  /// looked at. Throws ValueError, TypeError, UnsupportedError.
  std::string source_for(const KernelCall& call) const;

  /// Compiles what this call would run, and runs nothing; of the inputs, addresses are not looked at. Throws what the
  /// call would throw before it runs, but for addresses.
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
/// outputs are those of the function's parameters; beside them the body sees `x_shape`, `x_strides` and `x_ndim` of an
/// input `x`, and Metal's attributes, such as `thread_position_in_grid`. `header` stands before the function.
///
/// `ensure_row_contiguous`: inputs that are not row-contiguous are copied first; otherwise they are passed as they are,
/// and the body uses their strides. `atomic_outputs`: outputs are `device atomic<T>*`.
///
/// A file, and what it includes, is read now; changing it later does not change the kernel. `#include "…"` is looked
/// for beside the file in which it stands, then in `compile_options.include_dirs`.
///
/// Throws ValueError: no output; a name that is not an identifier, is a keyword, or is used twice; text that is not
/// UTF-8; a file that is not there or cannot be read.
Kernel metal_kernel(std::string name, std::vector<std::string> input_names, std::vector<std::string> output_names,
                    const KernelSource& source, const KernelSource& header = "", bool ensure_row_contiguous = true,
                    bool atomic_outputs = false, const CompileOptions& compile_options = {});

/// The same from a body in CUDA, which runs on an NVIDIA GPU or on the CPU. `shared_memory`: dynamic threadgroup memory
/// in bytes. Whole threadgroups run, so that the body must ask whether its thread is within the arrays. On the CPU
/// accesses are guarded as those of Metal bodies; on a GPU nothing guards them, and `bounds` set to true is an
/// UnsupportedError.
Kernel cuda_kernel(std::string name, std::vector<std::string> input_names, std::vector<std::string> output_names,
                   const KernelSource& source, const KernelSource& header = "", bool ensure_row_contiguous = true,
                   int64_t shared_memory = 0, const CompileOptions& compile_options = {});

}  // namespace kiln
