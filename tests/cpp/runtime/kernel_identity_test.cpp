// docs/language.md 6.1: nothing identifies code but all that it depends on. Each test changes one thing of a kernel, a
// call or the installation, and finds another id.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/array_layout.h"
#include "runtime/context.h"
#include "runtime/kernel_object.h"

namespace kiln {
namespace {

// Compiles nothing.
class IdleCompiler : public Compiler {
 public:
  explicit IdleCompiler(std::string identity) : identity_(std::move(identity)) {}
  CompileResult compile(const CompileRequest&) override { return {}; }
  std::string identity() const override { return identity_; }

 private:
  const std::string identity_;
};

struct Subject {
  KernelSpec spec;
  RecordedCall call;
  TargetSpec target{DeviceKind::kCpu, "x86-64-v3"};
  std::string compiler = "Kiln 0.1.0, compiler 01";

  Subject() {
    spec.name = "kernel";
    spec.input_names = {"x", "s"};
    spec.output_names = {"y"};
    spec.source = "uint i = thread_position_in_grid.x; y[i] = T(x[i] * s + x_shape[0] * N);";
    spec.header = "inline int f() { return 1; }\n";
    input({4, 8});
    call.inputs.push_back({Dtype::kFloat32, {}, {}});
    call.outputs = {{Dtype::kFloat32, {32}}};
    call.template_arguments = {{"T", Dtype::kFloat32}, {"N", 4}};
    call.specialized = true;
  }

  void input(std::vector<int64_t> shape) {
    std::vector<int64_t> strides(shape.size());
    write_row_contiguous_strides(shape, strides);
    if (call.inputs.empty()) call.inputs.emplace_back();
    call.inputs[0] = {Dtype::kFloat32, shape, strides};
  }

  std::string id() const {
    Context context(std::make_unique<IdleCompiler>(compiler), {CacheMode::kOff, "", 0}, "");
    KernelObject kernel(spec, context);
    std::string id;
    call.view([&](const Call& view) { id = kernel.compile_ahead(view, target, call.specialized).id; });
    return id;
  }
};

class KernelIdentity : public testing::Test {
 protected:
  template <typename Change>
  static void expect_another(const Change& change) {
    Subject before, after;
    change(after);
    EXPECT_EQ(before.id().size(), 64u);
    EXPECT_NE(before.id(), after.id());
  }
};

TEST_F(KernelIdentity, IsStable) {
  EXPECT_EQ(Subject().id(), Subject().id());
  // Neither where arrays lie nor how large they are, but for shapes that code is made for.
  Subject general, other;
  general.call.specialized = other.call.specialized = false;
  other.input({16, 2});
  EXPECT_EQ(general.id(), other.id());
  EXPECT_NE(general.id(), Subject().id());
}

TEST_F(KernelIdentity, HasTheBody) {
  expect_another([](Subject& s) { s.spec.source += " "; });
}
TEST_F(KernelIdentity, HasTheHeader) {
  expect_another([](Subject& s) { s.spec.header = "inline int f() { return 2; }\n"; });
}
TEST_F(KernelIdentity, TellsHeaderFromBody) {
  expect_another([](Subject& s) { s.spec.header += "\n"; });
}
// What `read_kernel_files` gives for a header that includes a file.
void include(Subject& s, const std::string& text, const std::string& path = "a.h") {
  s.spec.header = "#include \"a.h\"\n";
  s.spec.files.header_inclusions = {{9, 14, 0}};
  s.spec.files.included = {{path, text, {}}};
}
TEST_F(KernelIdentity, HasTheIncludedFile) {
  Subject one, two, elsewhere;
  include(one, "inline int f() { return 1; }\n");
  include(two, "inline int f() { return 2; }\n");
  include(elsewhere, "inline int f() { return 1; }\n", "include/a.h");
  EXPECT_NE(one.id(), two.id());
  EXPECT_EQ(one.id(), elsewhere.id());
}
TEST_F(KernelIdentity, HasWhatAnIncludedFileIncludes) {
  Subject one, two;
  for (Subject* s : {&one, &two}) {
    include(*s, "#include \"b.h\"\n");
    s->spec.files.included.push_back({"b.h", s == &one ? "1" : "2", {}});
    s->spec.files.included[0].inclusions = {{9, 14, 1}};
  }
  EXPECT_NE(one.id(), two.id());
}
TEST_F(KernelIdentity, HasWhichFileIsIncluded) {
  Subject one, two;
  for (Subject* s : {&one, &two}) {
    include(*s, "1");
    s->spec.files.included.push_back({"b.h", "2", {}});
  }
  two.spec.files.header_inclusions[0].file = 1;
  EXPECT_NE(one.id(), two.id());
}
TEST_F(KernelIdentity, HasTheName) {
  expect_another([](Subject& s) { s.spec.name = "other"; });
}
TEST_F(KernelIdentity, HasTheDialect) {
  expect_another([](Subject& s) { s.spec.dialect = Dialect::kCuda; });
}
TEST_F(KernelIdentity, HasTheDynamicMemoryOfCudaBodies) {
  Subject one, two;
  one.spec.dialect = two.spec.dialect = Dialect::kCuda;
  two.spec.shared_memory = 64;
  EXPECT_NE(one.id(), two.id());
}
TEST_F(KernelIdentity, HasTheSpecializedShape) {
  expect_another([](Subject& s) { s.input({8, 4}); });
}
TEST_F(KernelIdentity, HasTheSpecializedRank) {
  expect_another([](Subject& s) { s.input({4, 2, 4}); });
}
TEST_F(KernelIdentity, HasTheSpecializedStrides) {
  Subject a, b;
  for (Subject* s : {&a, &b}) {
    s->spec.ensure_row_contiguous = false;
    s->spec.source += "y[0] = x_strides[0];";
  }
  b.call.inputs[0].strides = {1, 4};
  EXPECT_NE(a.id(), b.id());
}
TEST_F(KernelIdentity, HasTheMathMode) {
  expect_another([](Subject& s) { s.spec.compile_options.math_mode = MathMode::kRelaxed; });
  expect_another([](Subject& s) { s.spec.compile_options.math_mode = MathMode::kFast; });
}
TEST_F(KernelIdentity, HasWhetherAccessesAreGuarded) {
  expect_another([](Subject& s) { s.spec.compile_options.bounds = false; });
}
TEST_F(KernelIdentity, HasTheWritableInputs) {
  expect_another([](Subject& s) { s.spec.compile_options.writable_inputs = {"x"}; });
  Subject one, other, both;
  one.spec.compile_options.writable_inputs = {"x"};
  other.spec.compile_options.writable_inputs = {"s"};
  both.spec.compile_options.writable_inputs = {"x", "s"};
  EXPECT_NE(one.id(), other.id());
  EXPECT_NE(one.id(), both.id());
  EXPECT_NE(other.id(), both.id());
  // In whatever order they are named.
  Subject reverse;
  reverse.spec.compile_options.writable_inputs = {"s", "x"};
  EXPECT_EQ(both.id(), reverse.id());
}
TEST_F(KernelIdentity, HasTheWritableInputsOfCudaBodies) {
  Subject one, two;
  one.spec.dialect = two.spec.dialect = Dialect::kCuda;
  two.spec.compile_options.writable_inputs = {"x"};
  EXPECT_NE(one.id(), two.id());
}
TEST_F(KernelIdentity, HasWhetherStoresMakeInputsWritable) {
  expect_another([](Subject& s) { s.spec.allows_input_stores = true; });
}
TEST_F(KernelIdentity, HasWhetherShapesBecomeConstants) {
  expect_another([](Subject& s) { s.spec.compile_options.specialize = false; });
}
TEST_F(KernelIdentity, HasWhetherInputsAreRowContiguous) {
  expect_another([](Subject& s) { s.spec.ensure_row_contiguous = false; });
}
TEST_F(KernelIdentity, HasWhetherOutputsAreAtomic) {
  expect_another([](Subject& s) { s.spec.atomic_outputs = true; });
}
TEST_F(KernelIdentity, HasTheInputsDtype) {
  expect_another([](Subject& s) { s.call.inputs[0].dtype = Dtype::kInt32; });
}
TEST_F(KernelIdentity, HasTheOutputsDtype) {
  expect_another([](Subject& s) { s.call.outputs[0].dtype = Dtype::kFloat16; });
}
TEST_F(KernelIdentity, HasTheTemplatesDtype) {
  expect_another([](Subject& s) { s.call.template_arguments[0].value = Dtype::kFloat16; });
}
TEST_F(KernelIdentity, HasTheTemplatesNumber) {
  expect_another([](Subject& s) { s.call.template_arguments[1].value = 5; });
}
TEST_F(KernelIdentity, HasTheTemplatesKind) {
  Subject number, flag;
  number.call.template_arguments[1].value = 1;
  flag.call.template_arguments[1].value = true;
  EXPECT_NE(number.id(), flag.id());
}
TEST_F(KernelIdentity, HasWhetherAnInputIsANumberOrAnArray) {
  expect_another([](Subject& s) { s.call.inputs[1] = {Dtype::kFloat32, {9}, {1}}; });
}
TEST_F(KernelIdentity, HasWhetherAnInputIsSmall) {
  Subject small, large;
  small.call.inputs[1] = {Dtype::kFloat32, {7}, {1}};
  large.call.inputs[1] = {Dtype::kFloat32, {8}, {1}};
  EXPECT_NE(small.id(), large.id());
}
TEST_F(KernelIdentity, HasTheNamesOfArguments) {
  expect_another([](Subject& s) {
    s.spec.input_names = {"x", "t"};
    s.spec.source = "uint i = thread_position_in_grid.x; y[i] = T(x[i] * t + x_shape[0] * N);";
  });
}
TEST_F(KernelIdentity, HasTheGenerationOfTheInterface) {
  expect_another([](Subject& s) { s.spec.style = SignatureStyle::kAlways; });
}
TEST_F(KernelIdentity, HasTheInstructionSet) {
  expect_another([](Subject& s) { s.target.cpu = "x86-64-v4"; });
}
TEST_F(KernelIdentity, HasAGpusArchitecture) {
  Subject a, b;
  a.target = {DeviceKind::kNvidia, "sm_90"};
  b.target = {DeviceKind::kNvidia, "sm_100"};
  EXPECT_NE(a.id(), b.id());
}
// The build ID is a digest of the compiler's whole content (build_id_test.cpp, check_build_id.py): LLVM, the device
// library and the flags for Clang are in it.
TEST_F(KernelIdentity, HasTheCompilersBuild) {
  expect_another([](Subject& s) { s.compiler = "Kiln 0.1.0, compiler 02"; });
}
TEST_F(KernelIdentity, HasKilnsVersion) {
  expect_another([](Subject& s) { s.compiler = "Kiln 0.1.1, compiler 01"; });
}

}  // namespace
}  // namespace kiln
