// The NVIDIA target over a driver that is not there: which functions it calls with what, and what it says when they
// fail. What kernels compute is a matter of tests on a GPU.
#include "targets/cuda/cuda_target.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include "core/gpu_image.h"
#include "core/text.h"
#include "kiln/error.h"
#include "kiln/kernel.h"
#include "runtime/run.h"
#include "targets/fake_driver.h"

namespace kiln {
namespace {

[[maybe_unused]] const int g_set = setenv("KILN_CUDA_DRIVER", KILN_FAKE_DRIVER, 1);

FakeDriver& fake() {
  static FakeDriver& instance = []() -> FakeDriver& {
    void* library = dlopen(KILN_FAKE_DRIVER, RTLD_NOW);
    return *reinterpret_cast<FakeDriverFunction>(dlsym(library, kFakeDriverFunction))();
  }();
  return instance;
}

// The threads that each unit was compiled for.
std::vector<std::array<uint16_t, 3>>& compiled_threads() {
  static std::vector<std::array<uint16_t, 3>> threads;
  return threads;
}

// The grid that each unit was compiled for, and the bytes of its arguments.
struct KnownSizes {
  std::array<uint32_t, 3> grid;
  std::vector<uint64_t> bytes;
  bool operator==(const KnownSizes&) const = default;
};
std::vector<KnownSizes>& compiled_sizes() {
  static std::vector<KnownSizes> sizes;
  return sizes;
}

// "Compiles" every unit to the same PTX.
class PtxCompiler : public Compiler {
 public:
  explicit PtxCompiler(size_t threadgroup_memory = 0) : threadgroup_memory_(threadgroup_memory) {}

  CompileResult compile(const CompileRequest& request) override {
    compiled_threads().push_back(request.unit.form.threads);
    KnownSizes& sizes = compiled_sizes().emplace_back(KnownSizes{request.unit.known_grid, {}});
    for (const KernelParameter& parameter : request.unit.parameters)
      if (parameter.role == ParameterRole::kInput || parameter.role == ParameterRole::kOutput)
        sizes.bytes.push_back(parameter.known_bytes);
    CompileResult result;
    result.engine = "ptx";
    result.binary = image(request.unit, GpuCodeKind::kPtx, "// some PTX", threadgroup_memory_);
    return result;
  }
  std::string identity() const override { return "ptx"; }

  static std::vector<std::byte> image(const KernelUnit& unit, GpuCodeKind kind, const std::string& code,
                                      size_t threadgroup_memory) {
    const std::string entry = "the_entry";
    GpuImageHeader header{};
    header.magic = kGpuImageMagic;
    header.version = kGpuImageVersion;
    header.kind = kind;
    header.block_bytes = gpu_block_layout(unit).bytes;
    header.entry_offset = sizeof header;
    header.code_offset = sizeof header + entry.size() + 1;
    header.code_bytes = code.size() + 1;
    header.threadgroup_memory_bytes = threadgroup_memory;
    header.total_bytes = header.code_offset + header.code_bytes;
    std::vector<std::byte> image(header.total_bytes);
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + header.entry_offset, entry.c_str(), entry.size() + 1);
    std::memcpy(image.data() + header.code_offset, code.c_str(), code.size() + 1);
    return image;
  }

 private:
  const size_t threadgroup_memory_;
};

template <typename Error>
std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// A kernel, a call of it on GPU 1, and the context that they belong to.
struct Subject {
  KernelSpec spec;
  std::unique_ptr<Context> context;
  std::unique_ptr<KernelObject> kernel;
  std::vector<float> x = std::vector<float>(64, 1.0f), y = std::vector<float>(64);
  std::vector<int64_t> shape = {8, 8}, strides = {8, 1};
  float number = 2.5f;
  Extent3 grid = {64, 1, 1}, threadgroup = {32, 1, 1};
  std::optional<Number> init_value;
  Dtype out = Dtype::kFloat32;
  int stream = 0;  // has an address
  GpuQueue* queue = nullptr;
  int device = 1;

  explicit Subject(Dialect dialect = Dialect::kMetal, size_t threadgroup_memory = 0) {
    fake() = FakeDriver{};
    compiled_threads().clear();
    compiled_sizes().clear();
    spec.dialect = dialect;
    spec.name = "k";
    spec.input_names = {"x", "s"};
    spec.output_names = {"y"};
    spec.source = "y[0] = x[x_shape[1]] + s + x_strides[0] + x_ndim;";
    spec.compile_options.specialize = false;
    context = std::make_unique<Context>(std::make_unique<PtxCompiler>(threadgroup_memory),
                                        DiskCacheOptions{CacheMode::kOff, "", 0}, "");
  }

  KernelObject& made() {
    if (!kernel) kernel = std::make_unique<KernelObject>(spec, *context);
    return *kernel;
  }

  void run() {
    std::vector<InputArray> inputs = {{x.data(), Dtype::kFloat32, shape, strides},
                                      {&number, Dtype::kFloat32, {}, {}, /*is_number=*/true}};
    inputs.resize(spec.input_names->size());
    OutputArray output{out, shape};
    Call call{};
    call.inputs = inputs;
    call.outputs = {&output, 1};
    call.grid = grid;
    call.threadgroup = threadgroup;
    call.init_value = init_value;
    call.device = {DeviceKind::kNvidia, device};
    call.stream = &stream;
    call.queue = queue;
    made().check_sizes(call);
    void* data = y.data();
    kiln::run(made(), call, {&data, 1});
  }

  template <typename Error>
  std::string failure() {
    return message_of<Error>([&] { run(); });
  }

  // What the next launch calls of the driver.
  std::vector<std::string> calls() {
    fake().clear();
    run();
    return fake().calls;
  }
};

template <typename T>
T at(const std::vector<std::byte>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// ---- The driver. First, since it is opened once.

TEST(CudaDriver, SaysWhatIsWrongWithIt) {
  Subject subject;
  fake().version = 11080;
  EXPECT_EQ(
      subject.failure<DeviceError>(),
      concat("NVIDIA's driver is too old: ", KILN_FAKE_DRIVER,
             " is one for CUDA 11.8, and Kiln needs one for CUDA 12.0 or later (525 or later). Installing a newer "
             "driver helps."));
  fake().version = 13000;
  fake().status["cuInit"] = 100;
  EXPECT_EQ(
      subject.failure<DeviceError>(),
      "there is no NVIDIA GPU that this process may use: the driver finds none. CUDA_VISIBLE_DEVICES may hide it, "
      "or a container may lack it");
  fake().status["cuInit"] = 3;
  EXPECT_TRUE(subject.failure<DeviceError>().starts_with("this process was forked from one that had used the GPU"));
  fake().status["cuInit"] = 803;
  EXPECT_EQ(
      subject.failure<DeviceError>(),
      concat("NVIDIA's driver cannot be initialised: cuInit gives an unknown error (803). The driver's kernel module "
             "may be of another version than ",
             KILN_FAKE_DRIVER, "; `nvidia-smi` says so, and restarting the machine helps"));
  // Each call tries anew.
  fake().status.clear();
  subject.run();
  EXPECT_EQ(fake().launches.size(), 1u);
}

TEST(CudaDriver, TellsItsGpus) {
  Subject subject;
  CudaInfo info = cuda_info();
  EXPECT_EQ(info.path, KILN_FAKE_DRIVER);
  ASSERT_EQ(info.devices.size(), 2u);
  EXPECT_EQ(info.devices[0].name, "Fake GPU");
  EXPECT_EQ(info.devices[0].architecture, "sm_90");
  EXPECT_EQ(info.devices[0].multiprocessors, 132);
  EXPECT_EQ(info.devices[0].memory_bytes, size_t{80} << 30);
}

TEST(CudaDriver, IsAskedForNoGpuThatItHasNot) {
  Subject subject;
  for (int device : {2, 99, -1}) {
    subject.device = device;
    EXPECT_EQ(subject.failure<DeviceError>(),
              concat("there is no GPU nvidia:", device, ": this process may use 2 NVIDIA GPUs"));
  }
}

TEST(CudaDriver, RefusesGpusThatAreTooOld) {
  Subject subject;
  fake().major = 7;
  fake().minor = 5;
  EXPECT_EQ(subject.failure<UnsupportedError>(),
            "the GPU nvidia:1 is of architecture sm_75, and Kiln needs sm_80 or later");
}

// ---- Loading

TEST(CudaLoad, MakesMachineCodeOfPtxWhileCapturesGoOn) {
  Subject subject;
  subject.run();
  EXPECT_EQ(fake().linked, std::string("// some PTX") + '\0');
  EXPECT_EQ(fake().loaded, "machine code");
  EXPECT_EQ(fake().entry, "the_entry");
  EXPECT_EQ(fake().capture_modes, (std::vector<std::string>{"relaxed", "relaxed"}));
  Launch launch = subject.kernel->history().launches().at(0);
  EXPECT_EQ(launch.target, "nvidia:1");
  EXPECT_EQ(launch.code, "compiled");
  EXPECT_EQ(launch.engine, "ptx");
}

TEST(CudaLoad, IsOnceForEachGpu) {
  Subject subject;
  auto loads = [&] { return std::ranges::count(fake().calls, "cuModuleLoadDataEx"); };
  for (int device : {0, 1, 0, 1, 0}) {
    subject.device = device;
    subject.run();
  }
  EXPECT_EQ(loads(), 2);
  ASSERT_EQ(fake().launches.size(), 5u);
  EXPECT_NE(fake().launches[0].context, fake().launches[1].context);
  EXPECT_EQ(fake().launches[0].context, fake().launches[2].context);
}

TEST(CudaLoad, MakesCodeForTheThreadsOfTheFirstThreadgroups) {
  using Threads = std::array<uint16_t, 3>;
  Subject subject;
  subject.spec.source = "y[thread_position_in_threadgroup.x] = x[0] + s;";
  subject.spec.compile_options.specialize = true;
  for (int64_t n = 1; n <= 20; ++n) {
    subject.threadgroup = {n, 1, 1};
    subject.run();
  }
  // And one for all others.
  const std::vector<Threads>& threads = compiled_threads();
  ASSERT_EQ(threads.size(), KernelObject::kMostThreadgroups + 1);
  for (uint16_t n = 1; n <= KernelObject::kMostThreadgroups; ++n) EXPECT_EQ(threads[n - 1u], (Threads{n, 1, 1}));
  EXPECT_EQ(threads.back(), Threads{});
  for (int64_t n : {5, 18}) {
    subject.threadgroup = {n, 1, 1};
    subject.run();
  }
  EXPECT_EQ(threads.size(), KernelObject::kMostThreadgroups + 1);
}

TEST(CudaLoad, MakesCodeForThreadsWhereTheBodySeesItsThreadgroup) {
  using Threads = std::array<uint16_t, 3>;
  auto threads_of = [](const char* source, bool specialize, const Extent3& grid, const Extent3& threadgroup) {
    Subject subject;
    subject.spec.source = source;
    subject.spec.compile_options.specialize = specialize;
    subject.grid = grid;
    subject.threadgroup = threadgroup;
    subject.run();
    return compiled_threads().at(0);
  };
  const char* size = "y[0] = threads_per_threadgroup.y;";
  EXPECT_EQ(threads_of(size, true, {64, 8, 2}, {8, 4, 2}), (Threads{8, 4, 2}));
  EXPECT_EQ(threads_of(size, true, {6, 8, 1}, {8, 16, 4}), (Threads{6, 8, 1}));  // as many as the grid has
  EXPECT_EQ(threads_of(size, true, {65, 9, 3}, {8, 4, 2}), (Threads{8, 4, 2}));  // those at the edge have fewer
  EXPECT_EQ(threads_of(size, false, {64, 8, 2}, {8, 4, 2}), Threads{});
  EXPECT_EQ(threads_of("y[thread_position_in_grid.x] = 1;", true, {64, 8, 2}, {8, 4, 2}), Threads{});
  EXPECT_EQ(threads_of("y[0] = simdgroup_index_in_threadgroup;", true, {64, 8, 2}, {8, 4, 2}), (Threads{8, 4, 2}));
}

TEST(CudaLoad, MakesCodeForThreadsAndShapesApart) {
  using Threads = std::array<uint16_t, 3>;
  Subject subject;
  subject.spec.source = "y[thread_position_in_threadgroup.x] = x_shape[0] + s;";
  subject.spec.compile_options.specialize = true;
  auto run = [&](int64_t rows, int64_t threads) {
    subject.shape = {rows, 8};
    subject.threadgroup = {threads, 1, 1};
    subject.run();
  };
  for (int64_t rows = 1; rows <= 6; ++rows) run(rows, 32);
  // The first four shapes, and one for all others, for the same threads.
  EXPECT_EQ(compiled_threads(), std::vector<Threads>(5, {32, 1, 1}));
  for (int64_t threads = 1; threads <= 20; ++threads) run(1, threads);
  // Fifteen more threadgroups, and for all others one where the grid is a multiple of them and one where it is none.
  EXPECT_EQ(compiled_threads().size(), 5u + 15u + 2u);
  run(6, 20);  // neither
  EXPECT_EQ(compiled_threads().size(), 23u);
  EXPECT_EQ(compiled_threads().back(), Threads{});
}

TEST(CudaLoad, MakesCodeForTheSizesOfTheFirstLaunches) {
  auto run = [](Subject& subject, int64_t rows, int64_t columns) {
    subject.shape = {rows, columns};
    subject.strides = {columns, 1};
    subject.grid = {rows * columns, 1, 1};
    subject.run();
  };
  const KnownSizes none = {{}, {0, 0, 0}};
  Subject subject;
  subject.spec.source = "y[thread_position_in_grid.x] = x[0] + s;";
  subject.spec.compile_options.specialize = true;
  for (int64_t rows = 1; rows <= 8; ++rows) run(subject, rows, 32);
  ASSERT_EQ(compiled_sizes().size(), KernelObject::kMostSpecialized + 1);
  for (uint32_t rows = 1; rows <= KernelObject::kMostSpecialized; ++rows)
    EXPECT_EQ(compiled_sizes()[rows - 1], (KnownSizes{{32 * rows, 1, 1}, {128 * rows, 4, 128 * rows}}));
  EXPECT_EQ(compiled_sizes().back(), none);
  run(subject, 4, 8);  // as many elements as the first: the body does not see the shape
  run(subject, 9, 32);
  EXPECT_EQ(compiled_sizes().size(), KernelObject::kMostSpecialized + 1);

  Subject without_guards, general;
  without_guards.spec.compile_options.specialize = true;
  without_guards.spec.compile_options.bounds = false;
  without_guards.spec.source = general.spec.source = subject.spec.source;
  run(without_guards, 3, 8);
  run(general, 3, 8);
  EXPECT_EQ(compiled_sizes(), (std::vector<KnownSizes>{none, none}));
}

TEST(CudaLoad, KeepsAShapeThatManySizesShare) {
  Subject subject;
  subject.spec.source = "y[thread_position_in_grid.x] = x[x_shape[1]] + s;";
  subject.spec.compile_options.specialize = true;
  for (int64_t rows = 1; rows <= 8; ++rows) {
    subject.grid = {32 * rows, 1, 1};
    subject.run();
  }
  // Four grids, and one for the others, in which the shape is known still.
  ASSERT_EQ(compiled_sizes().size(), KernelObject::kMostSpecialized + 1);
  EXPECT_EQ(compiled_sizes().back(), (KnownSizes{{}, {256, 0, 0}}));
}

TEST(CudaLoad, KnowsNoSizesOfArraysThatBeginAnywhere) {
  Subject subject;
  subject.spec.source = "y[thread_position_in_grid.x] = x[0] + s;";
  subject.spec.compile_options.specialize = true;
  subject.spec.ensure_row_contiguous = false;
  subject.run();
  EXPECT_EQ(compiled_sizes(), (std::vector<KnownSizes>{{{64, 1, 1}, {0, 0, 256}}}));
}

TEST(CudaLoad, SaysWhatTheDriverRefuses) {
  Subject subject;
  fake().status["cuLinkComplete"] = 222;
  EXPECT_EQ(subject.failure<DeviceError>(),
            "[metal_kernel] `k` on nvidia:1: the driver, for CUDA 13.0, is too old for this code: "
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222). Installing a newer driver helps");
  fake().status["cuLinkComplete"] = 218;
  EXPECT_EQ(subject.failure<InternalError>(),
            "[metal_kernel] `k` on nvidia:1: the driver does not take the PTX: an unknown error (218): ptxas: a log");
  fake().status.clear();
  fake().status["cuModuleLoadDataEx"] = 2;
  EXPECT_EQ(subject.failure<DeviceError>(),
            "[metal_kernel] `k` on nvidia:1: the driver cannot load it: CUDA_ERROR_OUT_OF_MEMORY (2)");
  fake().status.clear();
  subject.run();
}

TEST(CudaLoad, RefusesDamagedImages) {
  Subject subject;
  KernelUnit unit;
  std::vector<std::byte> whole = PtxCompiler::image(unit, GpuCodeKind::kCubin, "code", 0);
  std::unique_ptr<Target> target = make_cuda_target(0);
  EXPECT_NO_THROW(target->load(whole, unit));
  EXPECT_FALSE(target->finish(whole, unit));
  for (size_t i = 0; i < offsetof(GpuImageHeader, threadgroup_memory_bytes); ++i) {
    std::vector<std::byte> damaged = whole;
    damaged[i] ^= std::byte{0x80};
    EXPECT_THROW(target->load(damaged, unit), InternalError) << i;
  }
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_THROW(target->load(std::span(whole).first(bytes), unit), InternalError) << bytes;
}

// ---- Launching

TEST(CudaLaunch, AfterTheFirstIsOneCallOfTheDriver) {
  for (Dialect dialect : {Dialect::kMetal, Dialect::kCuda}) {
    Subject subject(dialect);
    subject.spec.input_names = {"x"};
    subject.spec.source = "y[0] = x[x_shape[1]];";
    subject.run();
    EXPECT_EQ(subject.calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuLaunchKernel", "cuCtxPopCurrent"}));
    EXPECT_EQ(fake().launches.at(0).stream, &subject.stream);
  }
}

TEST(CudaLaunch, PassesMetalsBlock) {
  Subject subject;
  subject.grid = {50, 3, 2};
  subject.threadgroup = {16, 2, 1};
  subject.run();
  const FakeLaunch& launch = fake().launches.at(0);
  EXPECT_EQ(launch.grid[0], 4u);
  EXPECT_EQ(launch.grid[1], 2u);
  EXPECT_EQ(launch.grid[2], 2u);
  EXPECT_EQ(launch.block[0], 16u);
  EXPECT_EQ(launch.block[1], 2u);
  EXPECT_EQ(launch.block[2], 1u);
  // x, its shape, strides and rank, s, y
  const size_t first = sizeof(GpuGeometry);
  ASSERT_EQ(launch.block_of_arguments.size(), first + 24 + 64 + 128 + 8 + 24 + 24);
  auto geometry = at<GpuGeometry>(launch.block_of_arguments, 0);
  EXPECT_EQ(geometry.threads_per_grid[0], 50u);
  EXPECT_EQ(geometry.threads_per_threadgroup[1], 2u);
  EXPECT_EQ(geometry.threadgroups_per_grid[0], 4u);
  EXPECT_EQ(geometry.is_linear, 0u);
  auto x = at<GpuArgument>(launch.block_of_arguments, first);
  EXPECT_EQ(x.address, reinterpret_cast<uint64_t>(subject.x.data()));
  EXPECT_EQ(x.first_byte, 0);
  EXPECT_EQ(x.end_byte, 256);
  EXPECT_EQ(at<int32_t>(launch.block_of_arguments, first + 24), 8);
  EXPECT_EQ(at<int32_t>(launch.block_of_arguments, first + 28), 8);
  EXPECT_EQ(at<int32_t>(launch.block_of_arguments, first + 32), 0);
  EXPECT_EQ(at<int64_t>(launch.block_of_arguments, first + 88), 8);
  EXPECT_EQ(at<int32_t>(launch.block_of_arguments, first + 216), 2);
  auto y = at<GpuArgument>(launch.block_of_arguments, first + 248);
  EXPECT_EQ(y.address, reinterpret_cast<uint64_t>(subject.y.data()));
}

TEST(CudaLaunch, PassesCudasParameters) {
  Subject subject(Dialect::kCuda);
  subject.grid = {50, 3, 1};
  subject.threadgroup = {16, 2, 1};
  subject.spec.input_names = {"x"};
  subject.spec.source = "y[0] = x[x_shape[1]] + x_strides[0] + x_ndim;";
  subject.spec.shared_memory = 1000;
  subject.run();
  const FakeLaunch& launch = fake().launches.at(0);
  EXPECT_EQ(launch.grid[0], 4u);
  EXPECT_EQ(launch.grid[1], 2u);
  EXPECT_EQ(launch.block[0], 16u);
  EXPECT_EQ(launch.block[1], 2u);
  EXPECT_EQ(launch.dynamic_bytes, 1000u);
  ASSERT_EQ(launch.block_of_arguments.size(), 8u + 40 + 80 + 8 + 8);
  EXPECT_EQ(at<float*>(launch.block_of_arguments, 0), subject.x.data());
  EXPECT_EQ(at<int32_t>(launch.block_of_arguments, 12), 8);
  EXPECT_EQ(at<int64_t>(launch.block_of_arguments, 48), 8);
  EXPECT_EQ(at<int32_t>(launch.block_of_arguments, 128), 2);
  EXPECT_EQ(at<float*>(launch.block_of_arguments, 136), subject.y.data());
}

// Keeps what it is given.
struct Queue : GpuQueue {
  std::vector<GpuLaunch> launches;
  std::vector<std::vector<std::byte>> parameters;  // of the last
  std::vector<size_t> sizes;                       // of each parameter
  std::string failure;

  void add(const GpuLaunch& launch) override {
    if (!failure.empty()) throw std::runtime_error(failure);
    launches.push_back(launch);
    parameters.clear();
    for (size_t i = 0; i < sizes.size(); ++i) {
      auto* bytes = static_cast<const std::byte*>(launch.parameters[i]);
      parameters.emplace_back(bytes, bytes + sizes[i]);
    }
  }
};

TEST(CudaLaunch, GoesToAQueueInPlaceOfAStream) {
  for (Dialect dialect : {Dialect::kMetal, Dialect::kCuda}) {
    Subject subject(dialect, dialect == Dialect::kMetal ? 60000 : 0);
    subject.grid = {50, 3, 2};
    subject.threadgroup = {16, 2, 1};
    subject.spec.input_names = {"x"};
    subject.spec.source = "y[0] = x[x_shape[1]] + x_strides[0] + x_ndim;";
    subject.spec.shared_memory = dialect == Dialect::kMetal ? 0 : 60000;
    subject.run();
    ASSERT_EQ(fake().launches.size(), 1u);
    FakeLaunch launched = fake().launches[0];
    // The same as a launch of the driver's, for those who take parameters one by one.
    Queue queue;
    size_t bytes = launched.block_of_arguments.size();
    queue.sizes = dialect == Dialect::kMetal ? std::vector<size_t>{bytes} : std::vector<size_t>{8, 40, 80, 4, 8};
    subject.queue = &queue;
    EXPECT_EQ(subject.calls(), (std::vector<std::string>{"cuCtxPushCurrent", "cuCtxPopCurrent"}));
    ASSERT_EQ(queue.launches.size(), 1u);
    const GpuLaunch& launch = queue.launches[0];
    EXPECT_NE(launch.function, nullptr);
    EXPECT_EQ(launch.dynamic_bytes, 60000u);
    for (size_t d = 0; d < 3; ++d) {
      EXPECT_EQ(launch.threadgroups[d], launched.grid[d]);
      EXPECT_EQ(launch.threads_per_threadgroup[d], launched.block[d]);
    }
    size_t offset = 0;
    for (const std::vector<std::byte>& parameter : queue.parameters) {
      size_t alignment = std::min<size_t>(parameter.size() % 8 ? 4 : 8, 8);
      offset = (offset + alignment - 1) / alignment * alignment;
      EXPECT_EQ(std::memcmp(parameter.data(), launched.block_of_arguments.data() + offset, parameter.size()), 0);
      offset += parameter.size();
    }
    queue.failure = "no room";
    EXPECT_EQ(subject.failure<DeviceError>(),
              "kernel `k` on nvidia:1 with (4, 2, 2) threadgroups of (16, 2, 1) threads and 60000 bytes of threadgroup "
              "memory: no room");
    subject.grid = {0, 1, 1};
    EXPECT_EQ(subject.failure<DeviceError>(), "nothing was thrown");
  }
}

TEST(CudaLaunch, LinesUpThreadgroupsThatAreTooManyInYOrZ) {
  Subject subject;
  subject.grid = {2, 70000, 3};
  subject.threadgroup = {1, 1, 1};
  subject.run();
  const FakeLaunch& launch = fake().launches.at(0);
  EXPECT_EQ(launch.grid[0], 420000u);
  EXPECT_EQ(launch.grid[1], 1u);
  EXPECT_EQ(launch.grid[2], 1u);
  auto geometry = at<GpuGeometry>(launch.block_of_arguments, 0);
  EXPECT_EQ(geometry.is_linear, 1u);
  EXPECT_EQ(geometry.threadgroups_per_grid[1], 70000u);
  // In x there may be 2^31 - 1.
  subject.grid = {2147483647, 1, 1};
  subject.run();
  EXPECT_EQ(fake().launches.at(1).grid[0], 2147483647u);
}

TEST(CudaLaunch, RefusesMoreThreadgroupsThanTheHardwareTakes) {
  Subject subject;
  subject.grid = {70000, 70000, 1};
  subject.threadgroup = {1, 1, 1};
  EXPECT_EQ(
      subject.failure<ValueError>(),
      "[metal_kernel] Expected `grid` to have at most 2147483647 threadgroups on nvidia:1 where there are more than "
      "65535 in y or z, but got (70000, 70000, 1).");
  Subject cuda(Dialect::kCuda);
  cuda.grid = {1, 70000, 1};
  cuda.threadgroup = {1, 1, 1};
  EXPECT_EQ(
      cuda.failure<ValueError>(),
      "[cuda_kernel] Expected `grid` to have at most 65535 threadgroups in y and z on nvidia:1 but got (1, 70000, "
      "1).");
}

TEST(CudaLaunch, LaunchesNothingWithoutThreads) {
  Subject subject;
  subject.grid = {0, 4, 4};
  subject.init_value = 3.0;
  subject.run();
  EXPECT_TRUE(fake().launches.empty());
  EXPECT_EQ(subject.y[63], 3.0f);
}

TEST(CudaLaunch, RefusesThreadgroupsThatDoNotFit) {
  Subject subject;
  subject.threadgroup = {64, 1, 1};
  fake().most_threads = 48;
  fake().registers = 200;
  EXPECT_EQ(
      subject.failure<ValueError>(),
      "[metal_kernel] Expected `threadgroup` to have at most 48 threads for `k` on nvidia:1, where each needs 200 "
      "registers, but got (64, 1, 1).");
  EXPECT_TRUE(fake().launches.empty());
  Subject deep(Dialect::kCuda);
  deep.grid = deep.threadgroup = {1, 1, 65};
  EXPECT_EQ(deep.failure<ValueError>(),
            "[cuda_kernel] Expected `threadgroup` to have at most 64 threads in z on nvidia:1 but got (1, 1, 65).");
  // Metal has no such limit: its threads follow one another in x then.
  Subject metal;
  metal.grid = metal.threadgroup = {1, 1, 1024};
  metal.run();
  EXPECT_EQ(fake().launches.at(0).block[0], 1024u);
}

TEST(CudaLaunch, AsksForThreadgroupMemoryBeyond48K) {
  Subject little(Dialect::kMetal, 48 << 10);
  little.run();
  EXPECT_TRUE(fake().attributes.empty());
  EXPECT_EQ(fake().launches.at(0).dynamic_bytes, 49152u);
  Subject much(Dialect::kMetal, 200000);
  much.run();
  EXPECT_EQ(fake().attributes, (std::map<int, int>{{8, 200000}}));
  EXPECT_EQ(fake().launches.at(0).dynamic_bytes, 200000u);
  // Once.
  EXPECT_EQ(std::ranges::count(much.calls(), "cuFuncSetAttribute"), 0);
  Subject too_much(Dialect::kMetal, 300000);
  EXPECT_EQ(too_much.failure<UnsupportedError>(),
            "[metal_kernel] `k` needs 300000 bytes of threadgroup memory, and the nvidia:1 target has 232448.");
}

TEST(CudaLaunch, ChecksSharedMemoryOfCudaBodies) {
  Subject subject(Dialect::kCuda);
  fake().static_memory = 1024;
  subject.spec.shared_memory = 231424;
  subject.run();
  EXPECT_EQ(fake().attributes, (std::map<int, int>{{8, 231424}}));
  Subject more(Dialect::kCuda);
  fake().static_memory = 1024;
  more.spec.shared_memory = 231425;
  EXPECT_EQ(
      more.failure<ValueError>(),
      "[cuda_kernel] Expected `shared_memory` to be at most 231424 for `k` on nvidia:1, which has 232448 bytes for "
      "each threadgroup, but got 231425.");
}

TEST(CudaLaunch, RefusesGuardsForCudaBodies) {
  Subject subject(Dialect::kCuda);
  subject.spec.compile_options.bounds = true;
  EXPECT_EQ(subject.failure<UnsupportedError>(),
            "[cuda_kernel] `k`: `bounds` is on, but CUDA bodies have no guards on an NVIDIA GPU.");
}

TEST(CudaLaunch, RefusesMoreDimensionsThanItHasRoomFor) {
  Subject subject;
  subject.shape.assign(17, 1);
  subject.strides.assign(17, 1);
  EXPECT_EQ(subject.failure<UnsupportedError>(),
            "[metal_kernel] Input `x` has 17 dimensions, and a launch on an NVIDIA GPU has room for 16 in `x_shape`.");
}

TEST(CudaLaunch, PutsNumbersIntoMemoryByFilling) {
  Subject subject;
  subject.run();
  // One allocation for all numbers of a call; no copy, whose source a captured graph would read later.
  EXPECT_EQ(subject.calls(),
            (std::vector<std::string>{"cuCtxPushCurrent", "cuMemAllocAsync", "cuCtxPopCurrent", "cuCtxPushCurrent",
                                      "cuMemsetD32Async", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuLaunchKernel",
                                      "cuCtxPopCurrent", "cuCtxPushCurrent", "cuMemFreeAsync", "cuCtxPopCurrent"}));
  EXPECT_EQ(fake().allocated, fake().freed);
  fake().has_memory_pools = 0;
  Subject without;
  fake().has_memory_pools = 0;
  EXPECT_EQ(
      without.failure<UnsupportedError>(),
      "the GPU nvidia:1 cannot allocate memory in the order of a stream, as numbers among the inputs and copies of "
      "them need it; arrays that are row-contiguous serve");
}

TEST(CudaLaunch, FillsWithAnyElement) {
  Subject subject;
  subject.spec.input_names = {"x"};
  subject.spec.source = "y[0] = x[0];";
  subject.shape = {5};
  subject.strides = {1};
  subject.grid = {0, 1, 1};
  auto filled = [&](auto element, Dtype dtype, Number value) {
    subject.out = dtype;
    subject.init_value = value;
    std::ranges::fill(subject.y, 0.0f);
    subject.run();
    std::vector<decltype(element)> got(6);
    std::memcpy(got.data(), subject.y.data(), got.size() * sizeof element);
    return got;
  };
  EXPECT_EQ(filled(int8_t{}, Dtype::kInt8, int64_t{-3}), (std::vector<int8_t>{-3, -3, -3, -3, -3, 0}));
  EXPECT_EQ(filled(int16_t{}, Dtype::kInt16, int64_t{-3}), (std::vector<int16_t>{-3, -3, -3, -3, -3, 0}));
  EXPECT_EQ(filled(0.0f, Dtype::kFloat32, 1.5), (std::vector<float>{1.5f, 1.5f, 1.5f, 1.5f, 1.5f, 0}));
  EXPECT_EQ(filled(int64_t{}, Dtype::kInt64, int64_t{-1}), (std::vector<int64_t>{-1, -1, -1, -1, -1, 0}));
  EXPECT_EQ(filled(int64_t{}, Dtype::kInt64, int64_t{7}), (std::vector<int64_t>{7, 7, 7, 7, 7, 0}));
}

TEST(CudaLaunch, CopiesStridedInputsByAKernel) {
  Subject subject;
  subject.strides = {1, 8};
  subject.run();
  ASSERT_EQ(fake().launches.size(), 2u);
  const std::vector<std::byte>& copied = fake().launches[0].block_of_arguments;
  EXPECT_EQ(at<GpuGeometry>(copied, 0).threads_per_grid[0], 64u);
  EXPECT_EQ(at<GpuArgument>(copied, sizeof(GpuGeometry)).address, reinterpret_cast<uint64_t>(subject.x.data()));
  uint64_t copy = at<GpuArgument>(copied, copied.size() - sizeof(GpuArgument)).address;
  EXPECT_EQ(at<GpuArgument>(fake().launches[1].block_of_arguments, sizeof(GpuGeometry)).address, copy);
  EXPECT_EQ(at<int64_t>(fake().launches[1].block_of_arguments, sizeof(GpuGeometry) + 88), 8);  // the copy's strides
  EXPECT_EQ(fake().allocated, 2u);
  EXPECT_EQ(fake().freed, 2u);
}

// ---- Failing

TEST(CudaFailure, NamesTheKernelAndItsNumbers) {
  Subject subject(Dialect::kMetal, 1000);
  subject.run();
  fake().status["cuLaunchKernel"] = 701;
  EXPECT_EQ(subject.failure<DeviceError>(),
            "kernel `k` on nvidia:1 with (2, 1, 1) threadgroups of (32, 1, 1) threads and 1000 bytes of threadgroup "
            "memory: cuLaunchKernel gives CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701). A smaller threadgroup needs fewer "
            "registers");
  fake().status["cuLaunchKernel"] = 2;
  EXPECT_EQ(
      subject.failure<DeviceError>(),
      "kernel `k` on nvidia:1 with (2, 1, 1) threadgroups of (32, 1, 1) threads and 1000 bytes of threadgroup "
      "memory: cuLaunchKernel gives CUDA_ERROR_OUT_OF_MEMORY (2). Arrays that are no longer needed, and what array "
      "libraries keep for later, can be freed");
  fake().status.clear();
  subject.run();
}

TEST(CudaFailure, OfAllocatingIsOutOfMemory) {
  Subject subject;
  subject.strides = {1, 8};
  fake().status["cuMemAllocAsync"] = 2;
  EXPECT_EQ(subject.failure<std::bad_alloc>(),
            "[metal_kernel] There is no memory for the 256 bytes of a row-contiguous copy of input `x`.");
}

TEST(CudaFailure, ThatEndsTheContextIsSaidByEveryLaterLaunch) {
  Subject subject;
  subject.spec.input_names = {"x"};
  subject.spec.source = "y[0] = x[0];";
  subject.run();
  fake().status["cuLaunchKernel"] = 700;
  const std::string lost =
      "the context of nvidia:1 is lost: a kernel that was launched before has ended it with CUDA_ERROR_ILLEGAL_ADDRESS "
      "(700): an illegal memory access was encountered. Nothing can run on it any more; start the process anew. With "
      "CUDA_LAUNCH_BLOCKING=1 in its environment, the launch at fault raises this itself";
  EXPECT_EQ(
      subject.failure<DeviceError>(),
      "kernel `k` on nvidia:1 with (2, 1, 1) threadgroups of (32, 1, 1) threads and 0 bytes of threadgroup memory: " +
          lost);
  fake().clear();
  EXPECT_EQ(subject.failure<DeviceError>(), lost);
  EXPECT_TRUE(fake().calls.empty());
  // The other GPU's context is another.
  fake().status.clear();
  subject.device = 0;
  subject.run();
}

TEST(CudaFailure, InAForkedProcessIsSaidAtOnce) {
  Subject subject;
  subject.run();
  pid_t child = fork();
  if (child == 0) {
    fake().clear();
    bool said = subject.failure<DeviceError>().starts_with("this process was forked from one that had used the GPU");
    _exit(said && fake().calls.empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// ---- Programs in C++, with the compiler of the library

// A launch like the one before goes by what was kept of that one; it must be as if it had not.
TEST(CudaTensorKernel, TakesNoArrayOfOneElementForAnOutput) {
  fake() = FakeDriver{};
  float memory[4] = {};
  auto call_of = [&](size_t inputs, size_t outputs) {
    KernelCall call{.grid = {1, 1, 1}, .threadgroup = {1, 1, 1}, .device = {DeviceKind::kNvidia, 0}};
    for (size_t i = 0; i < inputs; ++i)
      call.inputs.push_back(TensorView(memory + i, std::vector<int64_t>{}, std::vector<int64_t>{}));
    call.output_shapes.resize(outputs);
    call.output_dtypes.resize(outputs, Dtype::kFloat32);
    return call;
  };
  auto run = [&](const Kernel& kernel, size_t inputs, size_t outputs) {
    std::vector<void*> data;
    for (size_t i = 0; i < outputs; ++i) data.push_back(memory + 3 - i);
    kernel.run(call_of(inputs, outputs), std::span<void* const>(data));
  };
  Kernel one_input = metal_kernel("k", {"a"}, {"b", "c"}, "b[0] = c[0] = a;");
  for (int i = 0; i < 3; ++i) run(one_input, 1, 2);
  EXPECT_EQ(message_of<ValueError>([&] { run(one_input, 2, 1); }),
            "[metal_kernel] Expected `inputs` to have size 1 but got size 2.");
  Kernel two_inputs = metal_kernel("k", {"a", "b"}, {"c"}, "c[0] = a + b;");
  for (int i = 0; i < 3; ++i) run(two_inputs, 2, 1);
  EXPECT_EQ(message_of<ValueError>([&] { run(two_inputs, 1, 2); }),
            "[metal_kernel] Expected `inputs` to have size 2 but got size 1.");
}

TEST(CudaTensorKernel, RepeatsLaunchesWithOtherArraysOnly) {
  fake() = FakeDriver{};
  Kernel kernel = metal_kernel("k", {"x"}, {"y"}, "y[thread_position_in_grid.x] = x[0] + T(x_ndim);", "",
                               /*ensure_row_contiguous=*/false);
  float memory[64] = {};  // no kernel runs
  auto launch = [&](std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t threads, Dtype type, int from,
                    int to) {
    KernelCall call{.inputs = {TensorView(memory + from, shape, strides)},
                    .output_shapes = {{4}},
                    .output_dtypes = {Dtype::kFloat32},
                    .grid = {threads, 1, 1},
                    .threadgroup = {4, 1, 1},
                    .template_arguments = {{"T", type}},
                    .device = {DeviceKind::kNvidia, 0}};
    void* outputs[] = {memory + to};
    fake().clear();
    kernel.run(call, std::span<void* const>(outputs));
    const FakeLaunch& made = fake().launches.at(0);
    GpuGeometry geometry;
    std::memcpy(&geometry, made.block_of_arguments.data(), sizeof geometry);
    GpuArgument input, output;
    std::memcpy(&input, made.block_of_arguments.data() + sizeof geometry, sizeof input);
    std::memcpy(&output, made.block_of_arguments.data() + made.block_of_arguments.size() - sizeof output,
                sizeof output);
    EXPECT_EQ(geometry.threads_per_grid[0], threads);
    EXPECT_EQ(input.address, reinterpret_cast<uint64_t>(memory + from));
    EXPECT_EQ(output.address, reinterpret_cast<uint64_t>(memory + to));
    EXPECT_EQ(output.end_byte, 16);
    return input.end_byte;
  };
  using enum Dtype;
  for (int round = 0; round < 4; ++round) {  // plans are made in the second
    EXPECT_EQ(launch({4}, {1}, 4, kFloat32, 0, 8), 16);
    EXPECT_EQ(launch({4}, {1}, 4, kFloat32, 16, 24), 16);
    EXPECT_EQ(launch({4}, {2}, 4, kFloat32, 16, 24), 28);
    EXPECT_EQ(launch({2, 2}, {2, 1}, 4, kFloat32, 16, 24), 16);
    EXPECT_EQ(launch({2, 2}, {2, 1}, 3, kFloat32, 16, 24), 16);
    EXPECT_EQ(launch({2, 2}, {2, 1}, 3, kInt32, 16, 24), 16);
  }
  EXPECT_EQ(kernel.history().size(), 24u);
  EXPECT_EQ(message_of<ValueError>([&] { launch({4}, {1}, 4, kFloat32, 8, 10); }),
            "[metal_kernel] The memory of input `x` and of output `y` overlap.");
}

TEST(CudaTensorKernel, RunsOnTheCallersMemoryAndStream) {
  fake() = FakeDriver{};
  Kernel kernel = metal_kernel("k", {"x", "s"}, {"y"}, "uint i = thread_position_in_grid.x; y[i] = x[i] * s;");
  float x[8] = {}, y[8] = {};  // no kernel runs
  int stream = 0;
  KernelCall call{.inputs = {TensorView(x, {8}), 2.5f},
                  .output_shapes = {{8}},
                  .output_dtypes = {Dtype::kFloat32},
                  .grid = {8, 1, 1},
                  .threadgroup = {8, 1, 1},
                  .device = {DeviceKind::kNvidia, 0},
                  .stream = &stream};
  void* outputs[] = {y};
  kernel.run(call, std::span<void* const>(outputs));
  ASSERT_EQ(fake().launches.size(), 1u);
  EXPECT_EQ(fake().launches[0].stream, &stream);
  EXPECT_EQ(fake().allocated, 1u);
  EXPECT_EQ(kernel.history().at(0).target, "nvidia:0");
  EXPECT_NE(fake().linked.find(".entry kiln_k"), std::string::npos);
  EXPECT_EQ(kernel.compile(call).architecture(), "sm_90");
  EXPECT_EQ(
      message_of<ValueError>([&] { kernel(call); }),
      "[metal_kernel] On a GPU the caller provides the memory of the outputs: pass its addresses to `Kernel::run`.");
}

}  // namespace
}  // namespace kiln
