// Kernels as nodes of MLX's CUDA graphs, where there is neither a GPU nor that back end of MLX: this program has what
// the back end exports, as stand-ins, and NVIDIA's driver is one too. What MLX's own operations do on a GPU (fills,
// copies), and what kernels compute, is a matter of tests on a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mlx/allocator.h>
#include <mlx/ops.h>
#include <mlx/primitives.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/mlx_primitive.h"
#include "core/gpu_image.h"
#include "core/text.h"
#include "kiln/error.h"
#include "targets/fake_driver.h"

// ---- The back end. Its functions' names are made of these types.

struct CUfunc_st;
struct dim3 {
  unsigned x, y, z;
};

namespace {

// What a buffer of the back end's allocator points to.
struct CudaBuffer {
  void* data;
};

struct Node {
  CUfunc_st* function;
  dim3 grid, block, cluster;
  unsigned dynamic_bytes;
  std::vector<std::byte> block_of_arguments;
  std::vector<const void*> inputs, outputs;  // buffers
};

struct Encoder {
  int stream = -1;
  std::vector<const void*> inputs, outputs;
  std::vector<Node> nodes;
  size_t block_bytes = 0;     // of the kernel's parameter
  size_t allocations = 0;     // of outputs
  std::string no_allocation;  // why there is none
  std::string no_node;
} g_encoder;

}  // namespace

namespace mlx::core {
namespace cu {

class MLX_API CommandEncoder {
 public:
  void set_input_array(const array& array);
  void set_output_array(const array& array);
  void add_kernel_node_raw(CUfunc_st* function, dim3 grid, dim3 block, dim3 cluster, uint32_t bytes, void** parameters);
  void add_completed_handler(std::function<void()> task);
};

void CommandEncoder::set_input_array(const array& array) { g_encoder.inputs.push_back(array.buffer().ptr()); }
void CommandEncoder::set_output_array(const array& array) { g_encoder.outputs.push_back(array.buffer().ptr()); }
void CommandEncoder::add_completed_handler(std::function<void()> task) { task(); }
void CommandEncoder::add_kernel_node_raw(CUfunc_st* function, dim3 grid, dim3 block, dim3 cluster, uint32_t bytes,
                                         void** parameters) {
  if (!g_encoder.no_node.empty()) throw std::runtime_error(g_encoder.no_node);
  auto* arguments = static_cast<const std::byte*>(parameters[0]);
  g_encoder.nodes.push_back({function,
                             grid,
                             block,
                             cluster,
                             bytes,
                             {arguments, arguments + g_encoder.block_bytes},
                             std::move(g_encoder.inputs),
                             std::move(g_encoder.outputs)});
  g_encoder.inputs.clear();
  g_encoder.outputs.clear();
}

MLX_API CommandEncoder& get_command_encoder(Stream stream) {
  static CommandEncoder encoder;
  g_encoder.stream = stream.index;
  return encoder;
}

}  // namespace cu

// As the back end's own, what is not contiguous leaves the output's layout as it is, and without elements there is
// nothing to do.
void Exp::eval_gpu(const std::vector<array>& inputs, array& out) {
  EXPECT_FALSE(inputs.at(0).flags().contiguous);
  EXPECT_EQ(inputs.at(0).size(), 0u);
  if (!g_encoder.no_allocation.empty()) throw std::runtime_error(g_encoder.no_allocation);
  ++g_encoder.allocations;
  auto* buffer = new CudaBuffer{std::malloc(out.nbytes() + 1)};
  out.set_data(allocator::Data(allocator::Buffer(buffer), [](allocator::Buffer freed) {
    auto* owned = static_cast<CudaBuffer*>(freed.ptr());
    std::free(owned->data);
    delete owned;
  }));
}

}  // namespace mlx::core

namespace kiln {
namespace {

namespace mx = ::mlx::core;

[[maybe_unused]] const int g_set = setenv("KILN_CUDA_DRIVER", KILN_FAKE_DRIVER, 1);

FakeDriver& fake() {
  static FakeDriver& instance = []() -> FakeDriver& {
    void* library = dlopen(KILN_FAKE_DRIVER, RTLD_NOW);
    return *reinterpret_cast<FakeDriverFunction>(dlsym(library, kFakeDriverFunction))();
  }();
  return instance;
}

// "Compiles" every unit to the same PTX, but for one with an error.
class PtxCompiler : public Compiler {
 public:
  CompileResult compile(const CompileRequest& request) override {
    EXPECT_EQ(request.target.kind, DeviceKind::kNvidia);
    CompileResult result;
    if (request.unit.text.find("an_error") != std::string::npos) {
      result.status = CompileStatus::kInvalid;
      result.report.diagnostics.emplace_back().message = "an error";
      return result;
    }
    struct {
      GpuImageHeader header;
      char entry[4] = "the";
      char code[4] = "PTX";
    } image{};
    image.header = {kGpuImageMagic,
                    kGpuImageVersion,
                    sizeof image,
                    GpuCodeKind::kPtx,
                    gpu_block_layout(request.unit).bytes,
                    offsetof(decltype(image), entry),
                    offsetof(decltype(image), code),
                    sizeof image.code,
                    0};
    g_encoder.block_bytes = image.header.block_bytes;
    auto* bytes = reinterpret_cast<const std::byte*>(&image);
    result.binary.assign(bytes, bytes + sizeof image);
    result.engine = "ptx";
    return result;
  }
  std::string identity() const override { return "ptx"; }
};

// An array that the GPU has computed.
mx::array on_gpu(mx::Shape shape, mx::Dtype dtype = mx::float32) {
  mx::array array(std::move(shape), dtype, std::make_shared<mx::Exp>(mx::Stream(0, mx::Device::gpu)), {});
  mx::array empty({0}, mx::float32, nullptr, {});
  empty.set_data(mx::allocator::malloc(0), 0, {1}, {false, false, false});
  std::vector<mx::array> outputs{array};
  array.primitive().eval_gpu({empty}, outputs);
  return array;
}

void* address_of(const mx::array& array) {
  return static_cast<char*>(static_cast<const CudaBuffer*>(array.buffer().ptr())->data) + array.offset();
}

class MlxCuda : public testing::Test {
 protected:
  MlxCuda() {
    fake() = FakeDriver{};
    g_encoder = Encoder{};
  }

  std::shared_ptr<KernelObject> kernel(std::string source) {
    KernelSpec spec;
    spec.name = "k";
    spec.input_names = {{"x"}};
    spec.output_names = {{"y", "z"}};
    spec.source = std::move(source);
    spec.compile_options.specialize = false;
    return std::make_shared<KernelObject>(std::move(spec), context_);
  }

  std::vector<mx::array> call(const std::shared_ptr<KernelObject>& kernel, const mx::array& x) {
    MlxCall call{kernel, {}, {50, 3, 1}, {16, 2, 1}, {}, {}, {}};
    return add_to_graph(std::move(call), {x}, {{4}, {5, 2}}, {Dtype::kFloat32, Dtype::kBool}, stream_);
  }

  // As MLX evaluates a node.
  static void evaluate(std::vector<mx::array>& outputs) {
    outputs[0].primitive().eval_gpu(outputs[0].inputs(), outputs);
  }

  template <typename Error>
  static std::string failure(std::vector<mx::array>& outputs) {
    try {
      evaluate(outputs);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  Context context_{std::make_unique<PtxCompiler>(), DiskCacheOptions{CacheMode::kOff, "", 0}, ""};
  mx::Stream stream_{7, mx::Device(mx::Device::gpu, 1)};
};

constexpr const char* kSource = "y[0] = x[x_shape[1]]; z[0] = x[0];";

template <typename T>
T at(const std::vector<std::byte>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

TEST_F(MlxCuda, AddsOneNodeToTheGraphOfTheStream) {
  mx::array x = on_gpu({8, 8});
  auto made = kernel(kSource);
  std::vector<mx::array> outputs = call(made, x);
  // Lazily.
  EXPECT_TRUE(fake().calls.empty());
  evaluate(outputs);
  EXPECT_EQ(g_encoder.stream, 7);
  ASSERT_EQ(g_encoder.nodes.size(), 1u);
  const Node& node = g_encoder.nodes[0];
  EXPECT_NE(node.function, nullptr);
  EXPECT_EQ(node.grid.x, 4u);
  EXPECT_EQ(node.grid.y, 2u);
  EXPECT_EQ(node.block.x, 16u);
  EXPECT_EQ(node.block.y, 2u);
  EXPECT_EQ(node.cluster.x * node.cluster.y * node.cluster.z, 1u);
  EXPECT_EQ(node.inputs, std::vector<const void*>{x.buffer().ptr()});
  EXPECT_EQ(node.outputs, (std::vector<const void*>{outputs[0].buffer().ptr(), outputs[1].buffer().ptr()}));
  // The device's addresses, not those of MLX's buffers.
  auto input = at<GpuArgument>(node.block_of_arguments, sizeof(GpuGeometry));
  EXPECT_EQ(input.address, reinterpret_cast<uint64_t>(address_of(x)));
  EXPECT_EQ(input.end_byte, 256);
  EXPECT_EQ(at<int32_t>(node.block_of_arguments, sizeof(GpuGeometry) + 24 + 4), 8);
  auto y = at<GpuArgument>(node.block_of_arguments, node.block_of_arguments.size() - 48);
  EXPECT_EQ(y.address, reinterpret_cast<uint64_t>(address_of(outputs[0])));
  EXPECT_EQ(y.end_byte, 16);
  auto z = at<GpuArgument>(node.block_of_arguments, node.block_of_arguments.size() - 24);
  EXPECT_EQ(z.address, reinterpret_cast<uint64_t>(address_of(outputs[1])));
  EXPECT_EQ(z.end_byte, 10);
  // Nothing goes to a stream of the driver's.
  EXPECT_TRUE(fake().launches.empty());
  EXPECT_EQ(fake().allocated, 0u);
  Launch launch = made->history().launches().at(0);
  EXPECT_EQ(launch.target, "nvidia:1");
  EXPECT_EQ(launch.engine, "ptx");
}

TEST_F(MlxCuda, CompilesOnce) {
  mx::array x = on_gpu({8, 8});
  auto made = kernel(kSource);
  for (int i = 0; i < 3; ++i) {
    std::vector<mx::array> outputs = call(made, x);
    evaluate(outputs);
  }
  EXPECT_EQ(g_encoder.nodes.size(), 3u);
  EXPECT_EQ(std::ranges::count(fake().calls, "cuModuleLoadDataEx"), 1);
  EXPECT_EQ(made->history().launches().at(2).code, "memory");
}

TEST_F(MlxCuda, ReadsPartsOfArraysWhereTheyAre) {
  mx::array x = on_gpu({8, 8});
  mx::array part({2, 8}, mx::float32, nullptr, {});
  part.copy_shared_buffer(x, {8, 1}, {true, true, false}, 16, 24);
  std::vector<mx::array> outputs = call(kernel(kSource), part);
  evaluate(outputs);
  EXPECT_EQ(at<GpuArgument>(g_encoder.nodes.at(0).block_of_arguments, sizeof(GpuGeometry)).address,
            reinterpret_cast<uint64_t>(address_of(x)) + 24 * sizeof(float));
}

TEST_F(MlxCuda, LaunchesNothingWithoutThreads) {
  mx::array x = on_gpu({8, 8});
  MlxCall call{kernel(kSource), {}, {0, 3, 1}, {16, 2, 1}, {}, {}, {}};
  std::vector<mx::array> outputs =
      add_to_graph(std::move(call), {x}, {{4}, {5, 2}}, {Dtype::kFloat32, Dtype::kBool}, stream_);
  size_t before = g_encoder.allocations;
  evaluate(outputs);
  EXPECT_TRUE(g_encoder.nodes.empty());
  EXPECT_EQ(g_encoder.allocations, before + 2);
}

TEST_F(MlxCuda, RaisesWhatCompilingRaises) {
  std::vector<mx::array> outputs = call(kernel("an_error;"), on_gpu({8, 8}));
  size_t before = g_encoder.allocations;
  EXPECT_NE(failure<CompileError>(outputs).find("an error"), std::string::npos);
  EXPECT_EQ(g_encoder.allocations, before);
}

TEST_F(MlxCuda, ChecksACallForTheGpuWhenItIsMade) {
  mx::array x = on_gpu({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  try {
    call(kernel("y[0] = x[x_shape[1]]; z[0] = 0;"), x);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(
        error.what(),
        "[metal_kernel] Input `x` has 17 dimensions, and a launch on an NVIDIA GPU has room for 16 in `x_shape`.");
  }
}

TEST_F(MlxCuda, SaysForWhichKernelMlxFails) {
  mx::array x = on_gpu({8, 8});
  auto made = kernel(kSource);
  std::vector<mx::array> outputs = call(made, x);
  g_encoder.no_allocation = "[malloc] Unable to allocate 16 bytes.";
  EXPECT_EQ(failure<DeviceError>(outputs),
            "[metal_kernel] `k` on nvidia:1: MLX cannot make its outputs, or row-contiguous copies of its inputs: "
            "[malloc] Unable to allocate 16 bytes.");
  g_encoder.no_allocation.clear();
  g_encoder.no_node = "cuGraphAddKernelNode failed: invalid argument";
  EXPECT_EQ(
      failure<DeviceError>(outputs),
      "kernel `k` on nvidia:1 with (4, 2, 1) threadgroups of (16, 2, 1) threads and 0 bytes of threadgroup memory: "
      "cuGraphAddKernelNode failed: invalid argument");
  g_encoder.no_node.clear();
  evaluate(outputs);
  EXPECT_EQ(g_encoder.nodes.size(), 1u);
}

}  // namespace
}  // namespace kiln
