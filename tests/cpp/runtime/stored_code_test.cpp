// Code that one context has compiled and another finds: on disk, in a bundle. (Contexts stand for processes;
// tests/python/test_cache.py has processes.)
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cache/cache_test_base.h"
#include "core/array_layout.h"
#include "core/settings.h"
#include "runtime/context.h"
#include "runtime/kernel_object.h"
#include "runtime/run.h"
#include "runtime/target_registry.h"

namespace kiln {
namespace {

// The library's compiler, which counts.
class CountingCompiler : public Compiler {
 public:
  CountingCompiler(std::atomic<int>& compiles, std::string identity)
      : compiles_(compiles), identity_(std::move(identity)) {}
  CompileResult compile(const CompileRequest& request) override {
    ++compiles_;
    static CompilerLibrary library;
    return library.get().compile(request);
  }
  std::string identity() const override { return identity_; }

 private:
  std::atomic<int>& compiles_;
  const std::string identity_;
};

constexpr const char* kBody = "uint i = thread_position_in_grid.x; y[i] = 2 * x[i] + x_shape[0];";

class StoredCode : public CacheTest {
 protected:
  std::unique_ptr<Context> context(const std::string& bundle = "", const std::string& identity = "compiler 1") {
    return std::make_unique<Context>(std::make_unique<CountingCompiler>(compiles, identity), options(), bundle);
  }

  static KernelSpec spec(const std::string& body = kBody) {
    KernelSpec result;
    result.name = "stored";
    result.input_names = {"x"};
    result.output_names = {"y"};
    result.source = body;
    return result;
  }

  // Runs the kernel on 4 numbers, twice, and returns what the history says of both launches.
  std::vector<Launch> launch(Context& shared, const std::string& body = kBody) {
    KernelObject kernel(spec(body), shared);
    std::vector<float> x = {1, 2, 3, 4}, y(4);
    const int64_t shape[] = {4}, strides[] = {1};
    InputArray input{x.data(), Dtype::kFloat32, shape, strides};
    OutputArray output{Dtype::kFloat32, shape};
    for (int round = 0; round < 2; ++round) {
      void* data[] = {y.data()};
      run(kernel, Call{{&input, 1}, {&output, 1}, {}, {4, 1, 1}, {4, 1, 1}, {}, {}, {}}, data);
      EXPECT_EQ(y, (std::vector<float>{6, 8, 10, 12}));
    }
    return kernel.history().launches();
  }

  std::string only_entry() const {
    DiskCache cache(options());
    auto items = cache.items();
    EXPECT_EQ(items.size(), 1u);
    return items.at(0).id;
  }

  CodeEntry read_entry(const std::string& id) const { return DiskCache(options()).load(id).value(); }

  void replace_entry(const std::string& id, const CodeEntry& entry) const {
    write_file(root() + "/v1/" + id, encode_entry(id, entry));
  }

  std::atomic<int> compiles = 0;
};

TEST_F(StoredCode, IsFoundByOthers) {
  std::vector<Launch> first = launch(*context());
  EXPECT_EQ(first[0].code, "compiled");
  EXPECT_EQ(first[0].not_stored, "");
  EXPECT_GT(first[0].compile_ms, 0);
  EXPECT_EQ(first[1].code, "memory");
  std::vector<Launch> second = launch(*context());
  EXPECT_EQ(second[0].code, "disk");
  EXPECT_EQ(second[0].engine, first[0].engine);
  EXPECT_EQ(second[0].engine_reason, first[0].engine_reason);
  EXPECT_EQ(second[0].compile_ms, 0);
  EXPECT_TRUE(second[0].specialized);
  EXPECT_EQ(second[1].code, "memory");
  EXPECT_EQ(compiles, 1);
}

TEST_F(StoredCode, IsNotThatOfAnotherCompiler) {
  launch(*context("", "compiler 1"));
  EXPECT_EQ(launch(*context("", "compiler 2"))[0].code, "compiled");
  EXPECT_EQ(launch(*context("", "compiler 1"))[0].code, "disk");
}

TEST_F(StoredCode, IsCompiledAnewWhereItIsDamaged) {
  launch(*context());
  std::string file = root() + "/v1/" + only_entry();
  const std::vector<std::byte> good = read_file(file);
  for (size_t at = 0; at < good.size(); at += 97) {
    std::vector<std::byte> bytes = good;
    bytes[at] ^= std::byte{4};
    write_file(file, bytes);
    EXPECT_EQ(launch(*context())[0].code, "compiled") << at;
    EXPECT_EQ(launch(*context())[0].code, "disk") << at;
  }
}

// A program that writes entries and is wrong: checksums are right, content is not.
TEST_F(StoredCode, IsNotRunWhereItIsOfAnotherKernel) {
  launch(*context());
  std::string id = only_entry();
  const CodeEntry good = read_entry(id);
  const std::function<void(CodeEntry&)> changes[] = {
      [](CodeEntry& e) { e.source += " "; },
      [](CodeEntry& e) { e.compiler = "compiler 3"; },
      [](CodeEntry& e) { e.target.cpu = "x86-64-v9"; },
      [](CodeEntry& e) { e.binary.clear(); },
      [](CodeEntry& e) { e.binary.resize(e.binary.size() - 1); },
      [](CodeEntry& e) { e.binary[0] ^= std::byte{1}; },
      [](CodeEntry& e) { e.binary[4] ^= std::byte{1}; },  // the image's version
  };
  for (const auto& change : changes) {
    CodeEntry entry = good;
    change(entry);
    replace_entry(id, entry);
    EXPECT_EQ(launch(*context())[0].code, "compiled");
    EXPECT_EQ(launch(*context())[0].code, "disk");
    EXPECT_EQ(read_entry(id).binary, good.binary);
  }
}

TEST_F(StoredCode, IsOnlyWhatCompiles) {
  for (int round = 1; round <= 2; ++round) {
    auto shared = context();
    KernelObject kernel(spec("y[0] = nothing;"), *shared);
    std::vector<float> y(1);
    OutputArray output{Dtype::kFloat32, {}};
    InputArray input{y.data(), Dtype::kFloat32, {}, {}};
    EXPECT_THROW(kernel.find_or_compile(Call{{&input, 1}, {&output, 1}, {}, {1, 1, 1}, {1, 1, 1}, {}, {}, {}}),
                 CompileError);
    EXPECT_EQ(compiles, round);
  }
  EXPECT_EQ(DiskCache(options()).status().entries, 0u);
}

TEST_F(StoredCode, SaysWhyItIsNot) {
  ASSERT_EQ(mkdir(root().c_str(), 0700), 0);
  ASSERT_EQ(chmod(root().c_str(), 0777), 0);
  std::vector<Launch> launches = launch(*context());
  EXPECT_EQ(launches[0].code, "compiled");
  EXPECT_EQ(launches[0].not_stored, concat(root(), " can be written by other users"));
  EXPECT_EQ(launches[1].not_stored, "");
}

TEST_F(StoredCode, IsFoundInABundle) {
  launch(*context());
  std::string id = only_entry(), file = folder_ + "/bundle";
  write_bundle(file, {"compiler 1"}, {{id, encode_entry(id, read_entry(id))}});
  std::filesystem::remove_all(root());
  auto with_bundle = context(file);
  EXPECT_EQ(with_bundle->bundle_problem(), "");
  EXPECT_EQ(launch(*with_bundle)[0].code, "bundle");
  EXPECT_FALSE(std::filesystem::exists(root()));
  EXPECT_EQ(launch(*with_bundle, "uint i = thread_position_in_grid.x; y[i] = x[i] * 2 + 4;")[0].code, "compiled");

  auto other = context(file, "compiler 2");
  EXPECT_EQ(other->bundle_problem(), concat(file, " was made by another compiler: compiler 1, this one is compiler 2"));
  EXPECT_EQ(launch(*other)[0].code, "compiled");
}

TEST_F(StoredCode, IsCompiledWhereTheBundleIsDamaged) {
  launch(*context());
  std::string id = only_entry(), file = folder_ + "/bundle";
  write_bundle(file, {"compiler 1"}, {{id, encode_entry(id, read_entry(id))}});
  std::filesystem::remove_all(root());
  std::vector<std::byte> bytes = read_file(file);
  bytes.back() ^= std::byte{1};
  write_file(file, bytes);
  EXPECT_EQ(launch(*context(file))[0].code, "compiled");
  EXPECT_EQ(launch(*context(file))[0].code, "disk");
  auto without = context(folder_ + "/none");
  EXPECT_EQ(without->bundle_problem(), concat("cannot open ", folder_, "/none: No such file or directory"));
  EXPECT_EQ(launch(*without)[0].code, "disk");
}

TEST_F(StoredCode, IsRecordedOnceForEachCall) {
  auto shared = context();
  shared->start_recording();
  launch(*shared);
  launch(*shared);  // an equal kernel
  launch(*shared, "uint i = thread_position_in_grid.x; y[i] = x[i] * 2 + 4;");
  std::vector<RecordedKernel> kernels = shared->recording()->kernels();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].spec, spec());
  ASSERT_EQ(kernels[0].calls.size(), 1u);
  EXPECT_EQ(kernels[0].calls[0].inputs, (std::vector<RecordedInput>{{Dtype::kFloat32, {4}, {1}}}));
  EXPECT_TRUE(kernels[0].calls[0].specialized);
  EXPECT_FALSE(kernels[1].calls[0].specialized);
  // What is compiled of a recording is what the program looks for.
  auto later = context();
  KernelObject kernel(kernels[0].spec, *later);
  kernels[0].calls[0].view([&](const Call& call) {
    EXPECT_EQ(kernel.compile_ahead(call, later->cpu().spec(), true).source, CodeSource::kDisk);
  });
}

TEST(TargetNamed, KnowsProcessorsAndGpus) {
  EXPECT_EQ(target_named("x86-64-v3"), (TargetSpec{DeviceKind::kCpu, "x86-64-v3", settings().cpu_engine}));
  EXPECT_EQ(target_named("sm_90a"), (TargetSpec{DeviceKind::kNvidia, "sm_90a", ""}));
  EXPECT_EQ(target_named("sm_120"), (TargetSpec{DeviceKind::kNvidia, "sm_120", ""}));
  for (const char* name : {"sm_75", "sm_", "sm_90b", "sm_9000", "sm90"}) EXPECT_THROW(target_named(name), ValueError);
  EXPECT_THROW(target_named("x86-64-v5"), ValueError);
  EXPECT_THROW(target_named(""), ValueError);
}

}  // namespace
}  // namespace kiln
