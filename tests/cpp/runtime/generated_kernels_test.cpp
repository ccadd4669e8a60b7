// The whole compiler on made-up text (tests/fuzz), the same each time: every one is machine code, or an error that a
// user can read. `make fuzz` looks for others.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "fuzz/checked_compiler.h"
#include "fuzz/generated_text.h"
#include "runtime/compiler_library.h"

namespace kiln {
namespace {

TEST(GeneratedKernels, EndInCodeOrInAnErrorOfTheirs) {
  CompilerLibrary library(nullptr);
  std::mt19937 random(11);
  for (int n = 0; n < 60; ++n) {
    std::vector<uint8_t> bytes(random() % 120);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    Choices choices(bytes);
    KernelUnit unit = generate_unit(generate_text(choices), Dialect::kMetal);
    EXPECT_EQ(problem_of(library.get(), unit), "") << unit.text;
  }
}

}  // namespace
}  // namespace kiln
