// The lexer and the front end on made-up text (tests/fuzz): a few thousand texts that are the same each time. `make
// fuzz` looks for others.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "fuzz/generated_text.h"

namespace kiln {
namespace {

// In parts, for the time that one test may take with a sanitizer.
class MadeUpTexts : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, MadeUpTexts, testing::Range<uint32_t>(7, 15));

TEST_P(MadeUpTexts, HasAUnit) {
  std::mt19937 random(GetParam());
  size_t longest = 0;
  for (int n = 0; n < 375; ++n) {
    std::vector<uint8_t> bytes(random() % 400);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    for (Dialect dialect : {Dialect::kMetal, Dialect::kCuda}) {
      Choices choices(bytes);
      longest = std::max(longest, generate_unit(generate_text(choices), dialect).text.size());
    }
  }
  EXPECT_GT(longest, 10000u);
}

// Each token many times takes no more than a time that grows with their number.
TEST(MadeUpText, MayRepeatAnyToken) {
  for (const char* token : {"(",
                            "[",
                            "{",
                            "<",
                            "a<",
                            "a::",
                            "f(",
                            "struct",
                            "enum {",
                            "enum a {",
                            "using",
                            "if (",
                            "else",
                            "do",
                            "auto [",
                            "[[",
                            "a ",
                            "* ",
                            "&",
                            ",",
                            "= ",
                            ";",
                            "/*",
                            "\"",
                            "'",
                            "R\"(",
                            "\\\n",
                            "\\ ",
                            "#",
                            "\n#define a",
                            "#include \"a.h\"\n",
                            "alignas(",
                            "decltype(",
                            "const ",
                            "a b",
                            "a(",
                            "1e+",
                            "1'",
                            ":: ",
                            "a, ",
                            "typename ",
                            "/\\\n"}) {
    GeneratedText text;
    while (text.body.size() < 40000) text.body += token;
    generate_unit(text, Dialect::kMetal);
  }
}

}  // namespace
}  // namespace kiln
