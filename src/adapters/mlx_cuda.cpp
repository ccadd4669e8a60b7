// One library serves MLX with and without its CUDA back end: both are the same version of MLX, with the same headers,
// and differ in libmlx.so. What Kiln needs of the back end are four functions of its command encoder. They are declared
// here, as that version has them, and weak: where libmlx.so lacks them they are null, and everything else works.
//
// MLX's header of the encoder would need CUDA's headers, and Kiln is built where there are none. Only names and types
// are taken over, no layout of the encoder, but for the first member of a buffer of MLX's allocator.
//
// docs/design/nvidia-mlx.md says what else was weighed, and why memory is allocated as it is.
#include "adapters/mlx_cuda.h"

#include <mlx/allocator.h>
#include <mlx/ops.h>
#include <mlx/primitives.h>
#include <mlx/version.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/text.h"
#include "kiln/error.h"

// ---- CUDA's types in the functions' names. `dim3` is passed by value: three members, which are copied as bytes.

struct CUfunc_st;
struct dim3 {
  unsigned x, y, z;
};
static_assert(std::is_trivially_copyable_v<dim3> && sizeof(dim3) == 12);

// ---- The back end, as this version of MLX exports it

#ifndef MLX_API  // before 0.30.4 MLX exports all names
#define MLX_API
#endif

namespace mlx::core::cu {

class MLX_API CommandEncoder {
 public:
  [[gnu::weak]] void set_input_array(const array& array);
  [[gnu::weak]] void set_output_array(const array& array);
  [[gnu::weak]] void add_kernel_node_raw(CUfunc_st* function, dim3 grid, dim3 block, dim3 cluster,
                                         uint32_t dynamic_bytes, void** parameters);
  // Done when the GPU has done what is in the graph.
  [[gnu::weak]] void add_completed_handler(std::function<void()> task);
};

[[gnu::weak]] MLX_API CommandEncoder& get_command_encoder(Stream stream);

// What the pointer in a buffer of the back end's allocator points to begins with this.
struct CudaBuffer {
  void* data;
};

}  // namespace mlx::core::cu

namespace mx = mlx::core;

namespace kiln {
namespace {

// Another version's device.h is to be compared with what is declared above.
constexpr std::string_view kVersion = "0.32.4";

}  // namespace

void keep_on_gpu(const mx::array& array, const mx::Stream& stream) {
  mx::cu::get_command_encoder(stream).add_completed_handler([data = array.data_shared_ptr()] {});
}

void check_mlx_cuda() {
  static const std::string problem = [] {
    if (!&mx::cu::get_command_encoder)
      return std::string("MLX's GPU is not one of its CUDA back end, the only one that Kiln runs kernels on");
    if (mx::version() != kVersion)
      return concat("Kiln runs kernels on MLX's CUDA back end of version ", kVersion, ", and this one is of version ",
                    mx::version(), "; pip install 'mlx[cuda13]==", kVersion, "' brings that version");
    return std::string();
  }();
  if (!problem.empty()) throw UnsupportedError(problem);
}

void* gpu_address(const mx::array& array) {
  auto* buffer = static_cast<const mx::cu::CudaBuffer*>(array.buffer().ptr());
  return buffer ? static_cast<char*>(buffer->data) + array.offset() : nullptr;
}

// MLX exports no function for it. What its operations on each element do first is to allocate all of the output, and of
// an input without elements they compute nothing; exp is one of those whose class is exported.
void allocate_on_gpu(mx::array& array) {
  // An output is not laid out like an input that is not contiguous. Never destroyed: MLX's allocator may be gone first.
  static const auto* none = [] {
    mx::array empty({0}, mx::float32, nullptr, {});
    empty.set_data(mx::allocator::malloc(0), 0, {1}, {/*contiguous=*/false, false, false});
    return new std::vector<mx::array>{empty};
  }();
  mx::Exp(array.primitive().stream()).eval_gpu(*none, array);
}

void fill_on_gpu(mx::array& array, std::span<const std::byte> element) {
  mx::Stream stream = array.primitive().stream();
  mx::array value(mx::Shape{}, array.dtype(), nullptr, {});
  value.set_data(mx::allocator::malloc(value.nbytes()));
  std::memcpy(value.data<char>(), element.data(), element.size());
  std::vector<mx::array> outputs{array};
  mx::full(mx::Shape{}, value, array.dtype(), stream).primitive().eval_gpu({value}, outputs);
  keep_on_gpu(value, stream);
}

mx::array copy_on_gpu(const mx::array& array, mx::Stream stream) {
  std::vector<mx::array> outputs{mx::contiguous(array, /*allow_col_major=*/false, stream)};
  outputs[0].primitive().eval_gpu({array}, outputs);
  keep_on_gpu(outputs[0], stream);
  return outputs[0];
}

void MlxGpuQueue::add(const GpuLaunch& launch) {
  auto& encoder = mx::cu::get_command_encoder(stream_);
  for (const mx::array& input : inputs_) encoder.set_input_array(input);
  for (const mx::array& output : outputs_) encoder.set_output_array(output);
  auto dimensions = [](const std::array<unsigned, 3>& d) { return dim3{d[0], d[1], d[2]}; };
  encoder.add_kernel_node_raw(static_cast<CUfunc_st*>(launch.function), dimensions(launch.threadgroups),
                              dimensions(launch.threads_per_threadgroup), dim3{1, 1, 1}, launch.dynamic_bytes,
                              launch.parameters);
}

}  // namespace kiln
