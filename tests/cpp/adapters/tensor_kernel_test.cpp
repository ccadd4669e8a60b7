// Kernels as a program in C++ calls them. The header alone is included: what a program can see.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <new>
#include <numeric>

#include "kiln/kiln.h"
#include "sanitizers.h"

namespace kiln {
namespace {

template <typename Error = ValueError>
std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

constexpr const char* kTwice = "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];";

Kernel twice() { return metal_kernel("twice", {"x"}, {"y"}, kTwice); }

KernelCall call_with(TensorView x, Shape shape = {3}, Dtype dtype = Dtype::kFloat32) {
  int64_t threads = 1;
  for (int64_t dimension : shape) threads *= dimension;
  return {.inputs = {std::move(x)},
          .output_shapes = {std::move(shape)},
          .output_dtypes = {dtype},
          .grid = {threads, 1, 1},
          .threadgroup = {32, 1, 1}};
}

template <typename T>
std::vector<T> to_vector(const Tensor& tensor) {
  auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

TEST(TensorKernel, RunsOnAVector) {
  std::vector<float> x = {1, 2, 3};
  std::vector<Tensor> outputs = twice()(call_with(x));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].shape(), Shape{3});
  EXPECT_EQ(to_vector<float>(outputs[0]), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3}));
}

TEST(TensorKernel, TakesViewsTensorsAndNumbers) {
  Kernel kernel = metal_kernel("mix", {"a", "b", "c"}, {"y", "z"}, R"(
      uint i = thread_position_in_grid.x;
      y[i] = a[i] * b + T(c[i]);
      z[i] = N + (FLAG ? 1 : 0);
  )");
  std::vector<float> a = {1, 2, 3, 4};
  Tensor c(std::vector<int32_t>{10, 20}, {2});
  std::vector<Tensor> outputs = kernel({
      .inputs = {TensorView(a.data() + 3, {2}, {-2}), 0.5, c},
      .output_shapes = {{2}, {2}},
      .output_dtypes = {Dtype::kFloat32, Dtype::kInt16},
      .grid = {2, 1, 1},
      .threadgroup = {2, 1, 1},
      .template_arguments = {{"T", Dtype::kFloat32}, {"N", 5}, {"FLAG", true}},
  });
  EXPECT_EQ(to_vector<float>(outputs[0]), (std::vector<float>{12, 21}));
  EXPECT_EQ(to_vector<int16_t>(outputs[1]), (std::vector<int16_t>{6, 6}));
}

TEST(TensorKernel, SizesThatAreLeftOutAreOne) {
  const std::vector<std::pair<GridSize, std::array<int64_t, 3>>> cases = {
      {GridSize(), {1, 1, 1}},
      {6, {6, 1, 1}},
      {{6}, {6, 1, 1}},
      {{2, 3}, {2, 3, 1}},
      {{1, 2, 3}, {1, 2, 3}},
      {{}, {1, 1, 1}},
      {std::array<int64_t, 3>{2, 0, 1}, {2, 0, 1}},
  };
  for (const auto& [size, expected] : cases) EXPECT_EQ(size, expected);

  std::vector<float> x = {1, 2, 3};
  for (const KernelCall& call : {
           KernelCall{.inputs = {x}, .output_shapes = {{3}}, .output_dtypes = {Dtype::kFloat32}, .grid = {3}},
           KernelCall{
               .inputs = {x}, .output_shapes = {{3}}, .output_dtypes = {Dtype::kFloat32}, .grid = 3, .threadgroup = 2},
       }) {
    Kernel kernel = twice();
    EXPECT_EQ(to_vector<float>(kernel(call)[0]), (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(kernel.history()[0].grid, (std::array<int64_t, 3>{3, 1, 1}));
  }
}

TEST(TensorKernel, FillsOutputsFirst) {
  Kernel kernel = metal_kernel("add", {}, {"y"},
                               "atomic_fetch_add_explicit(&y[thread_position_in_grid.x % 2], 1, memory_order_relaxed);",
                               "", true, /*atomic_outputs=*/true);
  std::vector<Tensor> outputs = kernel({.output_shapes = {{3}},
                                        .output_dtypes = {Dtype::kUInt32},
                                        .grid = {10, 1, 1},
                                        .threadgroup = {4, 1, 1},
                                        .init_value = 7});
  EXPECT_EQ(to_vector<uint32_t>(outputs[0]), (std::vector<uint32_t>{12, 12, 7}));
}

TEST(TensorKernel, PassesStridesWhereItMayNotCopy) {
  const char* body =
      "uint2 p = thread_position_in_grid.xy; y[p.y * 2 + p.x] = x[p.y * x_strides[0] + p.x * x_strides[1]];";
  std::vector<float> values = {1, 2, 3, 4};
  for (bool contiguous : {true, false}) {
    Kernel kernel = metal_kernel("transpose", {"x"}, {"y"}, body, "", contiguous);
    KernelCall call = call_with(TensorView(values.data(), {2, 2}, {1, 2}), {2, 2});
    call.grid = {2, 2, 1};
    EXPECT_EQ(to_vector<float>(kernel(call)[0]), (std::vector<float>{1, 3, 2, 4}));
    EXPECT_NE(kernel.source_for(call).find("x_strides"), std::string::npos);
  }
}

TEST(TensorKernel, WritesWhereTheCallerSays) {
  std::vector<float> x = {1, 2, 3}, y(5, -1.0f);
  Kernel kernel = twice();
  void* outputs[] = {y.data() + 1};
  kernel.run(call_with(x), outputs);
  EXPECT_EQ(y, (std::vector<float>{-1, 2, 4, 6, -1}));
  void* nowhere[] = {nullptr};
  KernelCall empty = call_with(std::vector<float>{}, {0});
  EXPECT_NO_THROW(kernel.run(empty, nowhere));
}

TEST(TensorKernel, SaysWhatIsWrongWithMemory) {
  alignas(8) std::byte memory[64] = {};
  Kernel kernel = twice();
  auto refusal = [&](const TensorView& x) { return message_of([&] { kernel(call_with(x)); }); };
  EXPECT_EQ(refusal(TensorView(nullptr, Dtype::kFloat32, {3})), "[metal_kernel] The memory of input `x` is null.");
  EXPECT_EQ(refusal(TensorView(memory + 2, Dtype::kFloat32, {3})),
            "[metal_kernel] The memory of input `x` is not aligned to 4 bytes.");
  EXPECT_EQ(refusal(TensorView(memory, Dtype::kFloat32, {3}, {1, 1})),
            "[metal_kernel] Expected the strides of input `x` to have size 1 but got size 2.");
  EXPECT_EQ(refusal(TensorView(memory, Dtype::kFloat32, {-3})),
            "[metal_kernel] Input `x`: array dimension -3 is negative.");
  EXPECT_EQ(refusal(TensorView(memory, Dtype::kFloat32, {3}, {int64_t{1} << 62})),
            "[metal_kernel] Input `x`: array's strides reach beyond 2^63 elements.");
  EXPECT_EQ(refusal(TensorView(memory, Dtype::kFloat64, {3})),
            "[metal_kernel] Metal has no double, but input `x` is float64.");
  // Nothing is read of an array without elements.
  EXPECT_NO_THROW(kernel(call_with(TensorView(nullptr, Dtype::kFloat32, {0}), {0})));

  auto run_refusal = [&](const TensorView& x, std::vector<void*> outputs) {
    return message_of([&] { kernel.run(call_with(x), outputs); });
  };
  float x[3] = {};
  EXPECT_EQ(run_refusal(TensorView(x, {3}), {}), "[metal_kernel] Expected `outputs` to have size 1 but got size 0.");
  EXPECT_EQ(run_refusal(TensorView(x, {3}), {nullptr}), "[metal_kernel] The memory of output `y` is null.");
  EXPECT_EQ(run_refusal(TensorView(x, {3}), {memory + 1}),
            "[metal_kernel] The memory of output `y` is not aligned to 4 bytes.");
  EXPECT_EQ(run_refusal(TensorView(x, {3}), {x + 2}),
            "[metal_kernel] The memory of input `x` and of output `y` overlap.");
  // From its last element back to its first.
  EXPECT_EQ(run_refusal(TensorView(x + 2, {3}, {-1}), {x}),
            "[metal_kernel] The memory of input `x` and of output `y` overlap.");
  Kernel two = metal_kernel("two", {}, {"y", "z"}, "y[0] = z[0] = 1;");
  KernelCall call{.output_shapes = {{2}, {2}}, .output_dtypes = {Dtype::kInt32, Dtype::kInt32}};
  std::vector<void*> same = {memory, memory + 4};
  EXPECT_EQ(message_of([&] { two.run(call, same); }),
            "[metal_kernel] The memory of output `y` and of output `z` overlap.");
}

TEST(TensorKernel, SaysWhatIsWrongWithACall) {
  Kernel kernel = twice();
  std::vector<float> x = {1, 2, 3};
  auto refusal = [&](const std::function<void(KernelCall&)>& change) {
    KernelCall call = call_with(x);
    change(call);
    std::string message = message_of([&] { kernel(call); });
    EXPECT_EQ(message_of([&] { static_cast<void>(kernel.source_for(call)); }), message);
    EXPECT_EQ(message_of([&] { static_cast<void>(kernel.compile(call)); }), message);
    return message;
  };
  EXPECT_EQ(refusal([](KernelCall& c) { c.inputs.clear(); }),
            "[metal_kernel] Expected `inputs` to have size 1 but got size 0.");
  EXPECT_EQ(refusal([](KernelCall& c) { c.inputs.emplace_back(1); }),
            "[metal_kernel] Expected `inputs` to have size 1 but got size 2.");
  EXPECT_EQ(refusal([](KernelCall& c) { c.output_shapes.clear(); }),
            "[metal_kernel] Expected `output_shapes` to have size 1 but got size 0.");
  EXPECT_EQ(refusal([](KernelCall& c) { c.output_dtypes.clear(); }),
            "[metal_kernel] Expected `output_dtypes` to have size 1 but got size 0.");
  EXPECT_EQ(refusal([](KernelCall& c) { c.output_dtypes.push_back(Dtype::kInt8); }),
            "[metal_kernel] Expected `output_dtypes` to have size 1 but got size 2.");
  EXPECT_EQ(refusal([](KernelCall& c) { c.output_shapes[0] = {-2}; }),
            "[metal_kernel] Expected the dimensions of output `y` to be at least 0 but got -2.");
  EXPECT_EQ(refusal([](KernelCall& c) { c.threadgroup = {32, 33, 1}; }),
            "[metal_kernel] Expected `threadgroup` to have at most 1024 threads but got (32, 33, 1).");
  EXPECT_EQ(refusal([](KernelCall& c) { c.template_arguments = {{"x", 1}}; }),
            "[metal_kernel] Name `x` is used twice.");
  EXPECT_EQ(message_of([] { metal_kernel("k", {"x"}, {}, ""); }), "[metal_kernel] Must specify at least one output.");
  EXPECT_EQ(message_of([] { metal_kernel("k", {"1x"}, {"y"}, ""); }),
            "[metal_kernel] Input name `1x` is not an identifier.");
  EXPECT_EQ(message_of([] { cuda_kernel("k", {}, {"y"}, "", "", true, -1); }),
            "[cuda_kernel] Expected `shared_memory` to be at least 0 but got -1.");
}

TEST(TensorKernel, ThrowsWhatTheKernelsTextIs) {
  Kernel broken = metal_kernel("broken", {"x"}, {"y"}, "y[0] = nothing;");
  std::vector<float> x = {1, 2, 3};
  try {
    broken(call_with(x));
    FAIL();
  } catch (const CompileError& error) {
    EXPECT_EQ(std::string(error.what()),
              "[metal_kernel] `broken` does not compile.\nsource:1:8: error: use of undeclared identifier 'nothing'\n"
              "  y[0] = nothing;\n         ^");
    EXPECT_EQ(error.report()->diagnostics.at(0).column, 8);
  }
  Kernel cuda = cuda_kernel("c", {"x"}, {"y"}, "y[0] = x[0];");
  EXPECT_NE(cuda.source_for(call_with(x)).find("__global__"), std::string::npos);
  EXPECT_EQ(to_vector<float>(cuda(call_with(x)).at(0))[0], 1);
  Kernel barrier = metal_kernel("b", {}, {"y"},
                                "if (thread_position_in_grid.x < 1) threadgroup_barrier(mem_flags::mem_none);\nelse "
                                "threadgroup_barrier(mem_flags::mem_none);\n");
  EXPECT_EQ(
      message_of<DeviceError>([&] {
        barrier({.output_shapes = {{1}}, .output_dtypes = {Dtype::kInt8}, .grid = {4, 1, 1}, .threadgroup = {4, 1, 1}});
      }),
      "kernel `b`: only 1 of 4 threads reach the threadgroup_barrier in line 1 of the source; the launch was ended");
}

TEST(TensorKernel, SaysWhatItCompiledAndLaunched) {
  Kernel kernel = metal_kernel("inspected", {"x"}, {"y"},
                               "threadgroup float s[8]; float v = x[0] * x[1]; s[0] = v; "
                               "threadgroup_barrier(mem_flags::mem_threadgroup); y[0] = s[0] + v;");
  std::vector<float> x = {1, 2, 3};
  CompiledKernel compiled = kernel.compile(call_with(x));
  EXPECT_TRUE(kernel.history().empty());
  EXPECT_EQ(kernel.name(), "inspected");
  EXPECT_EQ(compiled.name(), "inspected");
  EXPECT_EQ(compiled.target(), "cpu");
  EXPECT_TRUE(compiled.engine() == "simd" || compiled.engine() == "scalar") << compiled.engine();
  EXPECT_FALSE(compiled.engine_reason().empty());
  EXPECT_TRUE(compiled.architecture().starts_with("x86-64")) << compiled.architecture();
  EXPECT_EQ(compiled.source(), kernel.source_for(call_with(x)));
  EXPECT_GT(compiled.machine_code().size(), 0u);
  EXPECT_EQ(compiled.threadgroup_memory_bytes(), 32u);
  EXPECT_GT(compiled.thread_memory_bytes(), 0u);  // threads wait at the barrier, and keep the product
  EXPECT_GT(compiled.compile_ms(), 0);
  std::vector<CompileStage> stages = compiled.stages();
  std::vector<std::string> names = {"clang", "guarded"};
  if (compiled.engine() == "simd") names.insert(names.end(), {"lanes", "components", "structured", "widened"});
  names.insert(names.end(), {"optimized", "assembly"});
  ASSERT_EQ(stages.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(stages[i].name, names[i]);
  for (size_t i = 0; i + 1 < names.size(); ++i)
    EXPECT_NE(stages[i].text.find("\ndefine "), std::string::npos) << names[i];
  EXPECT_NE(stages.back().text.find("\tret"), std::string::npos);
  Kernel same = kernel;
  same(call_with(x));
  std::vector<Launch> history = kernel.history();
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].target, "cpu");
  EXPECT_EQ(history[0].engine, compiled.engine());
  EXPECT_EQ(history[0].code, "memory");
  EXPECT_FALSE(history[0].specialized);
  EXPECT_EQ(history[0].compile_ms, 0);
}

TEST(TensorKernel, PrintsItsTextWhenAsked) {
  std::vector<float> x = {1, 2, 3};
  KernelCall call = call_with(x);
  call.verbose = true;
  Kernel kernel = twice();
  testing::internal::CaptureStdout();
  kernel(call);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "Generated source code for `twice`:\n```\n" + kernel.source_for(call) + "\n```\n");
}

TEST(TensorKernel, FollowsItsOptions) {
  // What lies before the array is read where accesses are not guarded.
  float memory[2] = {5, 1};
  const char* body = "y[0] = x[-1];";
  for (bool guarded : {true, false}) {
    Kernel kernel = metal_kernel("before", {"x"}, {"y"}, body, "", true, false, {.bounds = guarded});
    std::vector<Tensor> outputs =
        kernel({.inputs = {TensorView(memory + 1, {1})}, .output_shapes = {{}}, .output_dtypes = {Dtype::kFloat32}});
    EXPECT_EQ(outputs[0].item<float>(), guarded ? 0.0f : 5.0f);
  }
  for (bool specialize : {true, false}) {
    Kernel kernel = metal_kernel("rank", {"x"}, {"y"}, "y[0] = x_ndim;", "", true, false, {.specialize = specialize});
    kernel({.inputs = {TensorView(memory, {1, 2})}, .output_shapes = {{}}, .output_dtypes = {Dtype::kInt32}});
    EXPECT_EQ(kernel.history()[0].specialized, specialize);
  }
  Kernel fast = metal_kernel("fast", {}, {"y"}, "#ifdef __FAST_MATH__\ny[0] = 1;\n#else\ny[0] = 2;\n#endif\n", "", true,
                             false, {.math_mode = MathMode::kFast});
  EXPECT_EQ(fast({.output_shapes = {{}}, .output_dtypes = {Dtype::kInt32}})[0].item<int32_t>(), 1);
}

constexpr const char* kAppend =
    "uint i = thread_position_in_grid.x; ((device float*)cache)[n * 3 + i] = x[i]; y[i] = cache[i];";

Kernel append(std::vector<std::string> writable, bool ensure_row_contiguous = true) {
  return metal_kernel("append", {"x", "cache", "n"}, {"y"}, kAppend, "", ensure_row_contiguous, false,
                      {.writable_inputs = std::move(writable)});
}

TEST(TensorKernel, WritesInputsThatItsOptionsName) {
  Kernel kernel = append({"cache"});
  std::vector<float> cache(9, 0.0f);
  for (int n = 0; n < 2; ++n) {
    std::vector<float> x = {1.0f + n, 2, 3};
    KernelCall call = call_with(x);
    call.inputs = {x, cache, n};
    EXPECT_EQ(to_vector<float>(kernel(call)[0]), (std::vector<float>{1, 2, 3}));
  }
  EXPECT_EQ(cache, (std::vector<float>{1, 2, 3, 2, 2, 3, 0, 0, 0}));
}

TEST(TensorKernel, RefusesWritesToOtherInputs) {
  std::vector<float> x = {1, 2, 3}, cache(9, 0.0f);
  KernelCall call = call_with(x);
  call.inputs = {x, cache, 0};
  for (const std::vector<std::string>& writable : {std::vector<std::string>{}, {"x"}})
    EXPECT_EQ(message_of<UnsupportedError>([&] { append(writable)(call); }),
              "[metal_kernel] `append` uses what is not supported.\n"
              "source:1:71: error: `cache` is an input, and the body writes to it; name it in "
              "compile_options={\"writable_inputs\": [\"cache\"]} to write it in place\n  " +
                  std::string(kAppend) + "\n  " + std::string(70, ' ') + "^");
  EXPECT_EQ(cache, std::vector<float>(9, 0.0f));
}

TEST(TensorKernel, ChecksInputsThatItWrites) {
  const std::string begin = "[metal_kernel] Input `cache` is to be written in place, ";
  std::vector<float> x = {1, 2, 3}, cache(18, 0.0f);
  auto with = [&](TensorView view, bool ensure_row_contiguous = true) {
    KernelCall call = call_with(x);
    call.inputs = {x, std::move(view), 0};
    return message_of([&] { append({"cache"}, ensure_row_contiguous)(call); });
  };
  EXPECT_EQ(with(2.0f), begin + "but is a number.");
  EXPECT_EQ(with({cache.data(), {9}, {2}}),
            begin + "but is not row-contiguous, and `ensure_row_contiguous` would have a copy written.");
  EXPECT_EQ(with({cache.data(), {9}, {0}}, false), begin + "but is broadcast: its elements share memory.");
  EXPECT_EQ(with({x.data(), {3}}),
            "[metal_kernel] The memory of input `x` and of input `cache`, which is written in place, overlap.");
  EXPECT_EQ(message_of([] { append({"cash"}); }),
            "[metal_kernel] `writable_inputs` names `cash`, which is no input. Those are `x`, `cache`, `n`.");
  EXPECT_EQ(message_of([] { append({"x", "x"}); }), "[metal_kernel] `writable_inputs` names `x` twice.");
  EXPECT_EQ(cache, std::vector<float>(18, 0.0f));
  EXPECT_EQ(with({cache.data(), {9}, {2}}, false), "nothing was thrown");
  EXPECT_EQ(cache[1], 2.0f);
}

TEST(TensorKernel, TakesWholeNumbersOfEveryType) {
  Kernel kernel = metal_kernel("number", {"n"}, {"y"}, "y[0] = n;");
  auto through = [&](TensorView n) {
    return kernel({.inputs = {n}, .output_shapes = {{}}, .output_dtypes = {Dtype::kInt64}})[0].item<int64_t>();
  };
  // Beyond what a float holds.
  EXPECT_EQ(through(16777217), 16777217);
  EXPECT_EQ(through(16777217l), 16777217);
  EXPECT_EQ(through(9007199254740993ll), 9007199254740993);
  EXPECT_EQ(through(16777217ull), 16777217);
  EXPECT_EQ(through(uint8_t{200}), 200);
}

TEST(TensorKernel, WritesIntoTensorsThatAreThere) {
  std::vector<float> x = {1, 2, 3};
  Kernel kernel = twice();
  std::vector<Tensor> outputs;
  outputs.emplace_back(Dtype::kFloat32, Shape{3});
  const void* memory = outputs[0].data();
  for (int round = 0; round < 2; ++round) {
    kernel.run(call_with(x), outputs);
    EXPECT_EQ(to_vector<float>(outputs[0]), (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(outputs[0].data(), memory);
  }
  // An output becomes an input; the kernel must not write where it reads.
  EXPECT_EQ(message_of([&] { kernel.run(call_with(outputs[0]), outputs); }),
            "[metal_kernel] The memory of input `x` and of output `y` overlap.");
  EXPECT_EQ(message_of([&] { kernel.run(call_with(x), std::span<Tensor>()); }),
            "[metal_kernel] Expected `outputs` to have size 1 but got size 0.");
  outputs[0] = Tensor(Dtype::kFloat32, {3, 1});
  EXPECT_EQ(message_of([&] { kernel.run(call_with(x), outputs); }),
            "[metal_kernel] Expected the tensor for output `y` to have shape (3) but got (3, 1).");
  outputs[0] = Tensor(Dtype::kInt32, {3});
  EXPECT_EQ(message_of([&] { kernel.run(call_with(x), outputs); }),
            "[metal_kernel] Expected the tensor for output `y` to be of float32 but got int32.");
}

TEST(TensorKernel, ReadsComplexNumbersWhereFloatsMayLie) {
  alignas(8) float memory[5] = {0, 1, 2, 3, 4};
  Kernel kernel = metal_kernel("imaginary", {"z"}, {"y"}, "uint i = thread_position_in_grid.x; y[i] = z[i].imag;");
  std::vector<Tensor> outputs = kernel(call_with(TensorView(memory + 1, Dtype::kComplex64, {2}), {2}));
  EXPECT_EQ(to_vector<float>(outputs[0]), (std::vector<float>{2, 4}));
}

TEST(TensorKernel, ReadsNothingOfAnEmptyInputWithinAnOutput) {
  float memory[4] = {};
  Kernel kernel = metal_kernel("one", {"x"}, {"y"}, "y[thread_position_in_grid.x] = 1;");
  void* outputs[] = {memory};
  kernel.run(call_with(TensorView(memory + 2, {0}), {4}), outputs);
  EXPECT_EQ(memory[3], 1);
}

TEST(TensorKernel, HasHalvesAndBfloats) {
  Kernel kernel = metal_kernel("sum", {"a", "b"}, {"y", "z"}, "y[0] = a[0] + half(b); z[0] = bfloat(a[0]) + b;");
  std::vector<Half> a = {Half(1.5f)};
  std::vector<Tensor> outputs = kernel({.inputs = {a, BFloat(2.25f)},
                                        .output_shapes = {{1}, {1}},
                                        .output_dtypes = {Dtype::kFloat16, Dtype::kBFloat16}});
  EXPECT_EQ(outputs[0].item<Half>(), 3.75f);
  EXPECT_EQ(outputs[1].item<BFloat>(), 3.75f);
}

TEST(TensorKernel, SaysForWhichOutputThereIsNoMemory) {
  KILN_SKIP_UNLESS_NEW_THROWS();
  Kernel kernel = metal_kernel("large", {}, {"small", "large"}, "small[0] = 1;");
  KernelCall call{.output_shapes = {{1}, {int64_t{1} << 60}}, .output_dtypes = {Dtype::kInt8, Dtype::kInt8}};
  EXPECT_EQ(message_of<std::bad_alloc>([&] { kernel(call); }),
            "[metal_kernel] There is no memory for the 1152921504606846976 bytes of output `large`.");
}

TEST(TensorKernel, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(message_of([] { metal_kernel("k", {}, {"y"}, "y[0] = 1; // \xe9"); }),
            "[metal_kernel] Expected `source` to be UTF-8 but byte 13 is not.");
  EXPECT_EQ(message_of([] { metal_kernel("k", {}, {"y"}, "", "\xff"); }),
            "[metal_kernel] Expected `header` to be UTF-8 but byte 0 is not.");
  EXPECT_EQ(message_of([] { metal_kernel("k\xc3", {}, {"y"}, ""); }),
            "[metal_kernel] Expected `name` to be UTF-8 but byte 1 is not.");
  EXPECT_EQ(message_of([] { metal_kernel("k", {"x\xe9"}, {"y"}, ""); }), "[metal_kernel] Input names must be UTF-8.");
}

TEST(TensorKernel, TakesLiteralsAsTheyAre) {
  // Each of these is written by someone.
  for (Number number : {Number(2), Number(2u), Number(2.0), Number(2.0f), Number(uint8_t{2}), Number(2ll)}) {
    Kernel kernel = metal_kernel("fill", {}, {"y"}, "");
    EXPECT_EQ(kernel({.output_shapes = {{}}, .output_dtypes = {Dtype::kInt32}, .init_value = number})[0].item<int>(),
              2);
  }
  EXPECT_EQ(std::get<int32_t>(TemplateValue(size_t{7})), 7);
  EXPECT_EQ(std::get<bool>(TemplateValue(true)), true);
  EXPECT_EQ(message_of([] { TemplateValue(int64_t{1} << 31); }),
            "the template argument 2147483648 does not fit into 32 bits");
}

}  // namespace
}  // namespace kiln
