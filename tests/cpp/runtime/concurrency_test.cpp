// docs/language.md 6.2: entry points may be called from any thread, and compiling one kernel never blocks launching
// another. What is held is released only after what must not wait for it.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "core/text.h"
#include "kiln/error.h"
#include "runtime/held_compiler.h"
#include "runtime/run.h"

namespace kiln {
namespace {

constexpr const char* kMark = "HELD";

struct Fixture {
  std::shared_ptr<CompilerHold> hold;
  Context context{std::make_unique<HeldCompiler>(hold)};

  explicit Fixture(std::string mark = kMark) : hold(std::make_shared<CompilerHold>(std::move(mark))) {}

  std::shared_ptr<KernelObject> kernel(std::string source, std::string name = "k") {
    KernelSpec spec;
    spec.name = std::move(name);
    spec.input_names = {{"a"}};
    spec.output_names = {{"out"}};
    spec.source = std::move(source);
    return std::make_shared<KernelObject>(std::move(spec), context);
  }
};

// Runs out[i] = f(a[i]) for 16 elements that are all `value`.
template <typename T = float>
std::vector<T> result_of(KernelObject& kernel, T value, Dtype dtype = Dtype::kFloat32,
                         std::vector<TemplateArgument> template_arguments = {}) {
  std::vector<T> a(16, value), out(16);
  int64_t shape[] = {16}, strides[] = {1};
  InputArray input{a.data(), dtype, shape, strides};
  OutputArray output{dtype, shape};
  void* data[] = {out.data()};
  run(kernel, Call{{&input, 1}, {&output, 1}, template_arguments, {16, 1, 1}, {8, 1, 1}, {}, {}, {}}, data);
  return out;
}

template <typename T = float>
std::vector<T> all(T value) {
  return std::vector<T>(16, value);
}

std::string body(int n) { return concat("uint i = thread_position_in_grid.x; out[i] = a[i] + ", n, ";"); }
std::string held_body(int n) { return concat(body(n), " // ", kMark); }

TEST(Concurrency, LaunchesWhileAnotherKernelCompiles) {
  Fixture f;
  auto ready = f.kernel(body(1)), held = f.kernel(held_body(2), "held");
  ASSERT_EQ(result_of(*ready, 1.0f), all(2.0f));

  auto slow = std::async(std::launch::async, [&] { return result_of(*held, 1.0f); });
  Release release{*f.hold};
  f.hold->wait_until_held();
  for (int i = 0; i < 1000; ++i) {
    auto value = static_cast<float>(i);
    ASSERT_EQ(result_of(*ready, value), all(value + 1));
  }
  EXPECT_EQ(slow.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  f.hold->release();
  EXPECT_EQ(slow.get(), all(3.0f));
}

TEST(Concurrency, LaunchesFromManyThreadsWhileAnotherKernelCompiles) {
  constexpr int kThreads = 4;
  Fixture f;
  auto ready = f.kernel(body(1)), held = f.kernel(held_body(2), "held");
  auto slow = std::async(std::launch::async, [&] { return result_of(*held, 1.0f); });
  Release release{*f.hold};
  f.hold->wait_until_held();
  std::vector<std::future<int>> right;
  for (int t = 0; t < kThreads; ++t)
    right.push_back(std::async(std::launch::async, [&, t] {
      int count = 0;
      for (int i = 0; i < 250; ++i) {
        auto value = static_cast<float>(1000 * t + i);
        count += result_of(*ready, value) == all(value + 1);
      }
      return count;
    }));
  for (auto& count : right) EXPECT_EQ(count.get(), 250);
  f.hold->release();
  EXPECT_EQ(slow.get(), all(3.0f));
}

TEST(Concurrency, CompilesWhileAnotherKernelCompiles) {
  Fixture f;
  auto held = f.kernel(held_body(2), "held");
  auto slow = std::async(std::launch::async, [&] { return result_of(*held, 1.0f); });
  Release release{*f.hold};
  f.hold->wait_until_held();
  for (int n = 0; n < 10; ++n) EXPECT_EQ(result_of(*f.kernel(body(n)), 1.0f), all(1.0f + static_cast<float>(n)));
  EXPECT_EQ(f.hold->compiles(), 11);
  f.hold->release();
  EXPECT_EQ(slow.get(), all(3.0f));
}

TEST(Concurrency, LaunchesAVariantWhileAnotherOfTheSameKernelCompiles) {
  Fixture f("int8_t");  // which only the second variant's text has
  auto kernel = f.kernel("uint i = thread_position_in_grid.x; out[i] = a[i] + T(1.5);");
  auto result_with = [&](Dtype dtype, float value) {
    return result_of(*kernel, value, Dtype::kFloat32, {{"T", dtype}});
  };
  ASSERT_EQ(result_with(Dtype::kFloat16, 1), all(2.5f));
  auto slow = std::async(std::launch::async, [&] { return result_with(Dtype::kInt8, 1); });
  Release release{*f.hold};
  f.hold->wait_until_held();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(result_with(Dtype::kFloat16, 2), all(3.5f));
  EXPECT_EQ(slow.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  f.hold->release();
  EXPECT_EQ(slow.get(), all(2.0f));
}

TEST(Concurrency, CompilesOnceForThreadsThatWantTheSame) {
  constexpr int kThreads = 8;
  Fixture f;
  auto kernel = f.kernel(held_body(1));
  std::latch asking(kThreads);
  std::vector<std::future<std::vector<float>>> results;
  for (int t = 0; t < kThreads; ++t)
    results.push_back(std::async(std::launch::async, [&, t] {
      // Half of them have a kernel object of their own.
      auto mine = t % 2 == 0 ? kernel : f.kernel(held_body(1));
      asking.count_down();
      return result_of(*mine, static_cast<float>(t));
    }));
  Release release{*f.hold};
  asking.wait();
  f.hold->wait_until_held();
  f.hold->release();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(results[t].get(), all(static_cast<float>(t + 1)));
  EXPECT_EQ(f.hold->compiles(), 1);
  int compiled = 0;
  for (const Launch& launch : kernel->history().launches()) compiled += launch.code == "compiled";
  EXPECT_LE(compiled, 1);
  EXPECT_EQ(kernel->history().launches().size(), kThreads / 2u);
}

std::string failure_of(KernelObject& kernel) {
  try {
    result_of(kernel, 1.0f);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Concurrency, RemembersFailuresInMemoryOnly) {
  std::string message;
  for (int process = 0; process < 2; ++process) {
    // A new context knows what a new process knows.
    Fixture f;
    auto broken = f.kernel("out[0] = nothing;");
    message = failure_of(*broken);
    EXPECT_TRUE(message.starts_with("[metal_kernel] `k` does not compile.")) << message;
    EXPECT_EQ(failure_of(*broken), message);
    EXPECT_EQ(failure_of(*f.kernel("out[0] = nothing;")), message);
    EXPECT_EQ(f.hold->compiles(), 1);
    // What is right is not held up by what is wrong.
    EXPECT_EQ(result_of(*f.kernel(body(1)), 1.0f), all(2.0f));
    EXPECT_EQ(f.hold->compiles(), 2);
  }
}

TEST(Concurrency, GivesAFailureToAllThatWait) {
  Fixture f;
  auto broken = f.kernel(concat("out[0] = nothing; // ", kMark));
  std::vector<std::future<std::string>> messages;
  for (int t = 0; t < 4; ++t) messages.push_back(std::async(std::launch::async, [&] { return failure_of(*broken); }));
  Release release{*f.hold};
  f.hold->wait_until_held();
  f.hold->release();
  std::string first = messages[0].get();
  EXPECT_TRUE(first.starts_with("[metal_kernel] `k` does not compile.")) << first;
  for (size_t t = 1; t < messages.size(); ++t) EXPECT_EQ(messages[t].get(), first);
  EXPECT_EQ(f.hold->compiles(), 1);
}

}  // namespace
}  // namespace kiln
