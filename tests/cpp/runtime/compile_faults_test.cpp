// Compilations that end at an arbitrary point, as they do where memory, time or the stack run out: in Clang, in LLVM
// and in Kiln's passes. The process stays, and the next compilation is as if there had been none.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/job_threads.h"
#include "fuzz/generated_text.h"
#include "runtime/compiler_library.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace kiln {
namespace {

CompileResult compile(Compiler& compiler, const KernelUnit& unit, const TargetSpec& target, uint64_t allocations) {
  CompileResult copy;
  JobThreads::compiling().run(
      [&] {
#ifdef __SANITIZE_ADDRESS__
        // A compilation that is abandoned in Clang or LLVM loses what these have allocated.
        __lsan::ScopedDisabler leaks_are_known;
#endif
        CompileResult theirs = compiler.compile({unit, target, false, {.allocations = allocations}});
        copy = CompileResult(std::as_const(theirs));
        compiler.release(theirs);
      },
      size_t{1} << 20);
  return copy;
}

// Passes of each part of the pipeline: rows, simdgroups, threadgroups, the scalar engine.
const char* const kBodies[] = {
    "uint i = thread_position_in_grid.x; y[i] = x[i] > s ? exp(x[i]) : x[max(int(i) - 1, 0)];",
    "uint i = thread_position_in_grid.x; float sum = 0; for (uint k = 0; k < 9; ++k) sum += x[i * 9 + k]; y[i] = "
    "simd_sum(sum);",
    "threadgroup float t[64]; uint i = thread_position_in_threadgroup.x; t[i] = x[i]; "
    "threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = t[63 - i] * s;",
    "uint i = thread_position_in_grid.x; struct S { half4 v; int n; } a = {half4(x[i]), 3}; switch (int(s)) { case 0: "
    "y[i] = a.v.x; break; case 1: y[i] = undeclared(a.n); break; }",
};

class CompileFaults : public testing::TestWithParam<const char*> {};

TEST_P(CompileFaults, EndTheCompilationAlone) {
  CompilerLibrary library;
  const std::vector<TargetSpec> targets = {{DeviceKind::kCpu, "x86-64-v3", "simd"},
                                           {DeviceKind::kCpu, "x86-64-v4", "simd"},
                                           {DeviceKind::kCpu, "x86-64-v3", "scalar"},
                                           {DeviceKind::kNvidia, "sm_90", ""}};
  const KernelUnit unit = generate_unit({"", GetParam(), {}}, Dialect::kMetal);
  for (const TargetSpec& target : targets) {
    const CompileResult whole = compile(library.get(), unit, target, 0);
    uint64_t ended = 0, from = 0;
    // Ever longer steps: the front end alone makes thousands of allocations, passes a few each.
    for (uint64_t allocations = 1;; allocations += 1 + allocations / 6) {
      const CompileResult result = compile(library.get(), unit, target, allocations);
      if (result.status != CompileStatus::kTooLarge) {
        from = allocations;
        EXPECT_EQ(result.status, whole.status) << allocations;
        EXPECT_EQ(result.binary, whole.binary) << allocations;
        break;
      }
      ++ended;
    }
    EXPECT_GT(ended, 10u) << from;
    const CompileResult again = compile(library.get(), unit, target, 0);
    EXPECT_EQ(again.status, whole.status);
    EXPECT_EQ(again.binary, whole.binary);
  }
}

INSTANTIATE_TEST_SUITE_P(Bodies, CompileFaults, testing::ValuesIn(kBodies));

}  // namespace
}  // namespace kiln
