// Kernels without any array library: what the interfaces for Python and MLX stand on.
#include "runtime/kernel_object.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <numeric>

#include "core/text.h"
#include "kiln/error.h"
#include "runtime/run.h"

namespace kiln {
namespace {

template <typename Error>
std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

KernelSpec spec(std::vector<std::string> inputs, std::vector<std::string> outputs, std::string source = "out[0] = 1;") {
  KernelSpec result;
  result.name = "k";
  result.input_names = std::move(inputs);
  result.output_names = std::move(outputs);
  result.source = std::move(source);
  return result;
}

KernelSpec for_cuda(KernelSpec spec) {
  spec.dialect = Dialect::kCuda;
  return spec;
}

// A call with everything that it views.
struct CallData {
  struct Array {
    Dtype dtype = Dtype::kFloat32;
    std::vector<int64_t> shape;
    const void* data = nullptr;
  };
  std::vector<Array> inputs;
  std::vector<Array> outputs = {{Dtype::kFloat32, {4}, nullptr}};
  std::vector<TemplateArgument> template_arguments;
  Extent3 grid = {4, 1, 1};
  Extent3 threadgroup = {4, 1, 1};
  std::optional<double> init_value;
  std::vector<std::string> input_names, output_names;

  template <typename Function>
  auto with(const Function& function) const {
    std::vector<std::vector<int64_t>> strides;
    std::vector<InputArray> in;
    std::vector<OutputArray> out;
    for (const Array& input : inputs) {
      std::vector<int64_t>& s = strides.emplace_back(input.shape.size(), 1);
      for (size_t d = s.size(); d-- > 1;) s[d - 1] = s[d] * input.shape[d];
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      in.push_back({inputs[i].data, inputs[i].dtype, inputs[i].shape, strides[i]});
    for (const Array& output : outputs) out.push_back({output.dtype, output.shape});
    return function(Call{in, out, template_arguments, grid, threadgroup, init_value, input_names, output_names});
  }
};

template <typename Error = ValueError>
std::string refusal(KernelSpec spec, const CallData& data) {
  KernelObject kernel(std::move(spec));
  return message_of<Error>([&] { data.with([&](const Call& call) { kernel.check(call); }); });
}

void expect_accepted(KernelSpec spec, const CallData& data) {
  KernelObject kernel(std::move(spec));
  EXPECT_NO_THROW(data.with([&](const Call& call) { kernel.check(call); }));
}

std::string construction(KernelSpec spec) {
  return message_of<ValueError>([&] { KernelObject kernel(std::move(spec)); });
}

TEST(KernelConstruction, RefusesNamesThatNoArgumentCanHave) {
  EXPECT_EQ(construction(spec({"1a"}, {"out"})), "[metal_kernel] Input name `1a` is not an identifier.");
  EXPECT_EQ(construction(spec({""}, {"out"})), "[metal_kernel] Input name `` is not an identifier.");
  EXPECT_EQ(construction(spec({"a"}, {"o-ut"})), "[metal_kernel] Output name `o-ut` is not an identifier.");
  EXPECT_EQ(construction(spec({"device"}, {"out"})),
            "[metal_kernel] Input name `device` is a keyword of the Metal dialect.");
  EXPECT_EQ(construction(spec({"a"}, {"float"})),
            "[metal_kernel] Output name `float` is a keyword of the Metal dialect.");
  EXPECT_EQ(construction(for_cuda(spec({"__shared__"}, {"out"}))),
            "[cuda_kernel] Input name `__shared__` is a keyword of the CUDA dialect.");
  EXPECT_EQ(construction(spec({"a", "a"}, {"out"})), "[metal_kernel] Name `a` is used twice.");
  EXPECT_EQ(construction(spec({"a", "b"}, {"b"})), "[metal_kernel] Name `b` is used twice.");
  EXPECT_EQ(construction(spec({}, {"out", "out"})), "[metal_kernel] Name `out` is used twice.");
}

TEST(KernelConstruction, RefusesKernelsWithoutOutputs) {
  EXPECT_EQ(construction(spec({"a"}, {})), "[metal_kernel] Must specify at least one output.");
}

TEST(KernelConstruction, RefusesNegativeSharedMemory) {
  KernelSpec s = for_cuda(spec({}, {"out"}));
  s.shared_memory = -1;
  EXPECT_EQ(construction(s), "[cuda_kernel] Expected `shared_memory` to be at least 0 but got -1.");
}

TEST(KernelConstruction, TakesAnyTextAsTheKernelsName) {
  KernelSpec s = spec({}, {"out"});
  s.name =
      "gr\xc3\xb6\xc3\x9f"
      "er \"than\" 1";
  EXPECT_EQ(construction(s), "nothing was thrown");
}

TEST(KernelCheck, RefusesWrongCounts) {
  CallData data;
  data.inputs = {{}, {}};
  EXPECT_EQ(refusal(spec({"a", "b", "c"}, {"out"}), data),
            "[metal_kernel] Expected `inputs` to have size 3 but got size 2.");
  EXPECT_EQ(refusal(for_cuda(spec({"a"}, {"out"})), data),
            "[cuda_kernel] Expected `inputs` to have size 1 but got size 2.");
  EXPECT_EQ(refusal(spec({"a", "b"}, {"x", "y"}), data),
            "[metal_kernel] Expected `output_shapes` to have size 2 but got size 1.");
}

TEST(KernelCheck, RefusesACallWithoutOutputsWhereTheCallNamesThem) {
  KernelSpec s = spec({}, {});
  s.input_names.reset();
  s.output_names.reset();
  CallData data;
  data.outputs.clear();
  EXPECT_EQ(refusal(s, data), "[metal_kernel] Must specify at least one output.");
}

TEST(KernelCheck, RefusesNamesOfTheCallThatNoArgumentCanHave) {
  KernelSpec s = spec({}, {});
  s.input_names.reset();
  s.output_names.reset();
  CallData data;
  data.inputs = {{}};
  data.input_names = {"a b"};
  data.output_names = {"out"};
  EXPECT_EQ(refusal(s, data), "[metal_kernel] Input name `a b` is not an identifier.");
  data.input_names = {"a"};
  data.output_names = {"return"};
  EXPECT_EQ(refusal(s, data), "[metal_kernel] Output name `return` is a keyword of the Metal dialect.");
  data.output_names = {"a"};
  EXPECT_EQ(refusal(s, data), "[metal_kernel] Name `a` is used twice.");
}

TEST(KernelCheck, RefusesNamesOfTemplateArgumentsThatCannotBe) {
  CallData data;
  data.template_arguments = {{"T", Dtype::kFloat32}, {"3", 1}};
  EXPECT_EQ(refusal(spec({}, {"out"}), data), "[metal_kernel] Template argument name `3` is not an identifier.");
  data.template_arguments = {{"int", 1}};
  EXPECT_EQ(refusal(spec({}, {"out"}), data),
            "[metal_kernel] Template argument name `int` is a keyword of the Metal dialect.");
  data.template_arguments = {{"T", 1}, {"T", 2}};
  EXPECT_EQ(refusal(spec({}, {"out"}), data), "[metal_kernel] Name `T` is used twice.");
  data.template_arguments = {{"out", 1}};
  EXPECT_EQ(refusal(spec({}, {"out"}), data), "[metal_kernel] Name `out` is used twice.");
}

TEST(KernelCheck, RefusesOutputsThatCannotBe) {
  CallData data;
  data.outputs = {{Dtype::kFloat32, {2, -3}, nullptr}};
  EXPECT_EQ(refusal(spec({}, {"out"}), data),
            "[metal_kernel] Expected the dimensions of output `out` to be at least 0 but got -3.");
  for (int64_t rows : {int64_t{1} << 30, int64_t{1} << 50}) {
    data.outputs = {{Dtype::kFloat32, {int64_t{1} << 31, rows}, nullptr}};
    EXPECT_EQ(refusal(spec({}, {"out"}), data), "[metal_kernel] Output `out` has more than 2^63 - 1 bytes.");
  }
  data.outputs = {{Dtype::kFloat32, {int64_t{1} << 31, int64_t{1} << 50, 0}, nullptr}};
  expect_accepted(spec({}, {"out"}), data);
}

TEST(KernelCheck, RefusesGridsThatCannotBe) {
  CallData data;
  data.threadgroup = {0, 1, 1};
  EXPECT_EQ(refusal(for_cuda(spec({}, {"out"})), data),
            "[cuda_kernel] Expected each dimension of `threadgroup` to be in [1, 2147483647] but got (0, 1, 1).");
}

TEST(KernelCheck, RefusesDoubleInMetal) {
  CallData data;
  data.inputs = {{Dtype::kFloat64, {4}, nullptr}};
  EXPECT_EQ(refusal(spec({"a"}, {"out"}), data), "[metal_kernel] Metal has no double, but input `a` is float64.");
  expect_accepted(for_cuda(spec({"a"}, {"out"})), data);
  data.inputs.clear();
  data.outputs[0].dtype = Dtype::kFloat64;
  EXPECT_EQ(refusal(spec({}, {"out"}), data), "[metal_kernel] Metal has no double, but output `out` is float64.");
  data.outputs[0].dtype = Dtype::kFloat32;
  data.template_arguments = {{"T", Dtype::kFloat64}};
  EXPECT_EQ(refusal(spec({}, {"out"}), data),
            "[metal_kernel] Metal has no double, but template argument `T` is float64.");
}

TEST(KernelCheck, RefusesAtomicOutputsOfDtypesWithoutAtomics) {
  KernelSpec s = spec({}, {"out"});
  s.atomic_outputs = true;
  CallData data;
  for (Dtype dtype : {Dtype::kBool, Dtype::kInt32, Dtype::kUInt32, Dtype::kUInt64, Dtype::kFloat32}) {
    data.outputs[0].dtype = dtype;
    expect_accepted(s, data);
  }
  data.outputs[0].dtype = Dtype::kFloat16;
  EXPECT_EQ(refusal<UnsupportedError>(s, data),
            "[metal_kernel] Metal has no atomic<float16_t>, which `atomic_outputs` needs for output `out`.");
  for (Dtype dtype : {Dtype::kUInt8, Dtype::kInt16, Dtype::kInt64, Dtype::kBFloat16, Dtype::kComplex64}) {
    data.outputs[0].dtype = dtype;
    EXPECT_NE(refusal<UnsupportedError>(s, data), "nothing was thrown") << name_of(dtype);
  }
}

TEST(KernelCheck, RefusesMoreDimensionsThanCudasShapesHave) {
  CallData data;
  data.inputs = {{Dtype::kFloat32, std::vector<int64_t>(11, 1), nullptr}};
  EXPECT_EQ(refusal(for_cuda(spec({"a"}, {"out"}, "out[0] = a_shape[0];")), data),
            "[cuda_kernel] Input `a` has 11 dimensions, but `a_shape` has room for 10.");
  EXPECT_EQ(refusal(for_cuda(spec({"a"}, {"out"}, "out[0] = a_strides[0];")), data),
            "[cuda_kernel] Input `a` has 11 dimensions, but `a_strides` has room for 10.");
  expect_accepted(for_cuda(spec({"a"}, {"out"}, "out[0] = a[0] + a_ndim;")), data);
  expect_accepted(spec({"a"}, {"out"}, "out[0] = a_shape[0];"), data);
  data.inputs[0].shape.pop_back();
  expect_accepted(for_cuda(spec({"a"}, {"out"}, "out[0] = a_shape[0];")), data);
}

TEST(KernelText, DependsOnTheCall) {
  KernelObject kernel(spec({"a"}, {"out"}));
  CallData data;
  data.inputs = {{Dtype::kFloat16, {8}, nullptr}};
  auto text = [&] { return data.with([&](const Call& call) { return kernel.unit_for(call).text; }); };
  EXPECT_NE(text().find("const device float16_t* a"), std::string::npos);
  data.inputs[0].shape = {7};
  EXPECT_NE(text().find("const constant float16_t* a"), std::string::npos);
  data.inputs[0].shape = {0};
  EXPECT_NE(text().find("const constant float16_t* a"), std::string::npos);
  data.inputs[0].shape = {};
  EXPECT_NE(text().find("const constant float16_t& a"), std::string::npos);
}

TEST(KernelRun, RunsCudaBodies) {
  KernelSpec s = for_cuda(spec({}, {"out"}, "extern __shared__ char memory[]; memory[0] = 1; out[0] = memory[0];"));
  s.shared_memory = 48;
  KernelObject kernel(s);
  CallData().with([&](const Call& call) {
    KernelObject::Found found = kernel.find_or_compile(call);
    EXPECT_EQ(found.variant->unit.dynamic_memory_bytes, 48u);
    EXPECT_EQ(found.variant->binary->code->threadgroup_memory_bytes(), 48u);
  });
}

TEST(KernelRun, ComputesAndRemembers) {
  const char* source = "uint i = thread_position_in_grid.x; out[i] = a[i] * 2 + a_shape[0];";
  KernelObject kernel(spec({"a"}, {"out"}, source));
  std::vector<float> a(100), out(100);
  std::iota(a.begin(), a.end(), 0.0f);
  CallData data;
  data.inputs = {{Dtype::kFloat32, {100}, a.data()}};
  data.outputs = {{Dtype::kFloat32, {100}, nullptr}};
  data.grid = {100, 1, 1};
  data.threadgroup = {32, 1, 1};
  void* outputs[] = {out.data()};
  for (int round = 0; round < 3; ++round) {
    std::ranges::fill(out, -1.0f);
    data.with([&](const Call& call) { run(kernel, call, outputs); });
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 2.0f * static_cast<float>(i) + 100);
  }
  std::vector<Launch> history = kernel.history().launches();
  ASSERT_EQ(history.size(), 3u);
  EXPECT_EQ(history[0].code, "compiled");
  EXPECT_EQ(history[1].code, "memory");
  EXPECT_EQ(history[2].code, "memory");
  EXPECT_EQ(history[0].target, "cpu");
  EXPECT_EQ(history[2].grid, (Extent3{100, 1, 1}));
  EXPECT_EQ(history[2].threadgroup, (Extent3{32, 1, 1}));
  EXPECT_EQ(history[2].input_dtypes, std::vector{Dtype::kFloat32});
  EXPECT_EQ(history[2].output_dtypes, std::vector{Dtype::kFloat32});
  EXPECT_EQ(kernel.history().totals().launches, 3u);

  // Another object with the same meaning has the same code.
  KernelObject same(spec({"a"}, {"out"}, source));
  auto code_of = [&](KernelObject& k) {
    return data.with([&](const Call& call) { return k.find_or_compile(call).variant->binary; });
  };
  EXPECT_EQ(code_of(same), code_of(kernel));
  // Other types have other code.
  auto binary = code_of(kernel);
  data.inputs[0].dtype = Dtype::kInt32;
  EXPECT_NE(code_of(kernel), binary);
}

TEST(KernelRun, NamesTheKernelThatFailedWhateverFailedBefore) {
  // Both names become one identifier, so that the two have one text.
  for (const char* name : {"my kernel", "my-kernel"}) {
    KernelSpec s = spec({}, {"out"}, "out[0] = nothing;");
    s.name = name;
    KernelObject kernel(s);
    std::string message =
        message_of<CompileError>([&] { CallData().with([&](const Call& call) { kernel.find_or_compile(call); }); });
    EXPECT_TRUE(message.starts_with(concat("[metal_kernel] `", name, "` does not compile.\n"))) << message;
  }
}

TEST(KernelRun, FillsOutputsFirst) {
  KernelObject kernel(spec({}, {"out"}, "if (thread_position_in_grid.x == 1) out[1] = 5;"));
  std::vector<float> out(4, -1.0f);
  void* outputs[] = {out.data()};
  CallData data;
  data.init_value = 2.5;
  data.with([&](const Call& call) { run(kernel, call, outputs); });
  EXPECT_EQ(out, (std::vector<float>{2.5f, 5, 2.5f, 2.5f}));
  // With nothing to launch, too.
  data.grid = {0, 1, 1};
  data.init_value = 7;
  data.with([&](const Call& call) { run(kernel, call, outputs); });
  EXPECT_EQ(out, (std::vector<float>{7, 7, 7, 7}));
}

TEST(History, KeepsTheLastThousand) {
  History history;
  for (int i = 0; i < 1234; ++i) {
    LaunchRecord record;
    record.run_ms = i;
    history.add(record);
  }
  std::vector<Launch> records = history.launches();
  ASSERT_EQ(records.size(), 1000u);
  EXPECT_EQ(records.front().run_ms, 234);
  EXPECT_EQ(records.back().run_ms, 1233);
}

TEST(History, CountsThoseThatAreNoLongerKept) {
  History history;
  for (int i = 0; i < 1234; ++i) {
    LaunchRecord record;
    record.source = i < 2 ? CodeSource::kCompiled : CodeSource::kMemory;
    record.compile_ms = i < 2 ? 10 : 0;
    record.run_ms = i == 5 ? 3 : 0.5;
    history.add(record);
  }
  LaunchTotals totals = history.totals();
  EXPECT_EQ(totals.launches, 1234u);
  EXPECT_EQ(totals.compiled, 2u);
  EXPECT_EQ(totals.compile_ms, 20);
  EXPECT_EQ(totals.run_ms, 1233 * 0.5 + 3);
  EXPECT_EQ(totals.longest_run_ms, 3);
}

TEST(History, NamesWhereCodeCameFrom) {
  History history;
  for (CodeSource source : {CodeSource::kCompiled, CodeSource::kMemory, CodeSource::kDisk}) {
    LaunchRecord record;
    record.source = source;
    history.add(record);
  }
  std::vector<std::string> names;
  for (const Launch& launch : history.launches()) names.push_back(launch.code);
  EXPECT_EQ(names, (std::vector<std::string>{"compiled", "memory", "disk"}));
}

TEST(KernelCheck, RefusesInputsThatCannotBeDescribed) {
  CallData data;
  // Elements that all lie in one place: as a copy they would need 2^64 bytes.
  data.inputs = {{Dtype::kInt64, {1 << 30, 1 << 30, 2}, nullptr}};
  EXPECT_EQ(refusal(spec({"a"}, {"out"}), data), "[metal_kernel] Input `a`: array has more than 2^63 - 1 bytes.");
  data.inputs = {{Dtype::kInt8, {int64_t{1} << 31}, nullptr}};
  EXPECT_EQ(refusal(spec({"a"}, {"out"}, "out[0] = a_shape[0];"), data),
            "[metal_kernel] Input `a` has a dimension of 2147483648, which does not fit into the ints of `a_shape`.");
  expect_accepted(spec({"a"}, {"out"}), data);
}

// Counts what it is asked, and fails with `failure` as long as there is one.
class FailingCompiler : public Compiler {
 public:
  struct State {
    int compiles = 0;
    std::exception_ptr failure;
  };
  explicit FailingCompiler(std::shared_ptr<State> state) : state_(std::move(state)) {}
  CompileResult compile(const CompileRequest& request) override {
    ++state_->compiles;
    if (state_->failure) std::rethrow_exception(state_->failure);
    return library_.get().compile(request);
  }
  std::string identity() const override { return "failing"; }

 private:
  std::shared_ptr<State> state_;
  CompilerLibrary library_;
};

TEST(KernelCompile, TriesAgainWhatFailedForLackOfSomething) {
  for (const std::exception_ptr& failure :
       {std::make_exception_ptr(std::bad_alloc()), std::make_exception_ptr(MissingCompilerError("none"))}) {
    auto state = std::make_shared<FailingCompiler::State>();
    state->failure = failure;
    Context context{std::make_unique<FailingCompiler>(state)};
    KernelObject kernel(spec({}, {"out"}), context);
    CallData data;
    EXPECT_ANY_THROW(data.with([&](const Call& call) { kernel.find_or_compile(call); }));
    state->failure = nullptr;
    EXPECT_NO_THROW(data.with([&](const Call& call) { kernel.find_or_compile(call); }));
    EXPECT_EQ(state->compiles, 2);
  }
}

// Meets what it cannot compile.
class DefectiveCompiler : public Compiler {
 public:
  explicit DefectiveCompiler(std::shared_ptr<int> compiles) : compiles_(std::move(compiles)) {}
  CompileResult compile(const CompileRequest&) override {
    ++*compiles_;
    CompileResult result;
    result.status = CompileStatus::kInternal;
    result.report.log = "LLVM: ran out of registers";
    return result;
  }
  std::string identity() const override { return "defective"; }

 private:
  std::shared_ptr<int> compiles_;
};

TEST(KernelCompile, SaysThatItsOwnFailureIsADefect) {
  auto compiles = std::make_shared<int>(0);
  Context context{std::make_unique<DefectiveCompiler>(compiles)};
  KernelObject kernel(spec({}, {"out"}), context);
  for (int round = 1; round <= 2; ++round) {
    EXPECT_EQ(
        message_of<InternalError>([&] { CallData().with([&](const Call& call) { kernel.find_or_compile(call); }); }),
        "[metal_kernel] `k`: Kiln's compiler failed: LLVM: ran out of registers. This is a defect of Kiln; a "
        "report with the output of `source_for` helps.");
    EXPECT_EQ(*compiles, round);  // it may have been for lack of something
  }
}

TEST(KernelCompile, CompilesABrokenBodyForOneShapeOnly) {
  auto state = std::make_shared<FailingCompiler::State>();
  Context context{std::make_unique<FailingCompiler>(state)};
  KernelSpec s = spec({"a"}, {"out"}, "out[0] = a_shape[0] + nothing;");
  s.compile_options.specialize = true;
  KernelObject kernel(s, context);
  for (int64_t n = 10; n < 20; ++n) {
    CallData data;
    data.inputs = {{Dtype::kFloat32, {n}, nullptr}};
    EXPECT_THROW(data.with([&](const Call& call) { kernel.find_or_compile(call); }), CompileError);
  }
  EXPECT_EQ(state->compiles, 1);
}

TEST(KernelRun, ComputesInTheDefaultFloatingPointEnvironment) {
  KernelObject kernel(spec({"a"}, {"out"}, "uint i = thread_position_in_grid.x; out[i] = a[i] / 3.0f;"));
  // Few threads stay with the caller, many are spread.
  for (int64_t n : {4, 1 << 16}) {
    std::vector<float> a(static_cast<size_t>(n)), expected(a.size()), out(a.size());
    for (size_t i = 0; i < a.size(); ++i) expected[i] = (a[i] = static_cast<float>(i + 1)) / 3.0f;
    CallData data;
    data.inputs = {{Dtype::kFloat32, {n}, a.data()}};
    data.outputs = {{Dtype::kFloat32, {n}, nullptr}};
    data.grid = {n, 1, 1};
    void* outputs[] = {out.data()};
    std::fesetround(FE_DOWNWARD);
    data.with([&](const Call& call) { run(kernel, call, outputs); });
    int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(after, FE_DOWNWARD);
    EXPECT_EQ(out, expected) << n;
  }
}

}  // namespace
}  // namespace kiln
