#include "frontend/names.h"

#include <gtest/gtest.h>

#include <sstream>

namespace kiln {
namespace {

// C++17, [lex.key] and [lex.digraph].
constexpr const char* kCxx17Keywords =
    "alignas alignof asm auto bool break case catch char char16_t char32_t class const const_cast constexpr continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline int long mutable namespace new noexcept nullptr operator private protected public register "
    "reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while "
    "and and_eq bitand bitor compl not not_eq or or_eq xor xor_eq";

std::vector<std::string> words(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(Keywords, OfCxxAreThoseOfBothDialects) {
  for (const std::string& word : words(kCxx17Keywords)) {
    EXPECT_TRUE(is_keyword(Dialect::kMetal, word)) << word;
    EXPECT_TRUE(is_keyword(Dialect::kCuda, word)) << word;
  }
}

TEST(Keywords, OfMetalAreMetals) {
  for (const std::string& word : words("kernel vertex fragment device constant thread threadgroup half bfloat")) {
    EXPECT_TRUE(is_keyword(Dialect::kMetal, word)) << word;
    EXPECT_FALSE(is_keyword(Dialect::kCuda, word)) << word;
  }
}

TEST(Keywords, OfCudaAreCudas) {
  for (const std::string& word : words("__global__ __device__ __shared__ __constant__ __host__ __restrict__")) {
    EXPECT_TRUE(is_keyword(Dialect::kCuda, word)) << word;
    EXPECT_FALSE(is_keyword(Dialect::kMetal, word)) << word;
  }
}

TEST(Keywords, AreNotNamesThatOnlyLookLikeThem) {
  for (const char* word : {"", "x", "Int", "intx", "x_shape", "metal", "uint", "T", "xor_", "co_await", "concept"})
    for (Dialect dialect : {Dialect::kMetal, Dialect::kCuda}) EXPECT_FALSE(is_keyword(dialect, word)) << word;
}

TEST(ToIdentifier, ReplacesWhatAnIdentifierCannotHave) {
  EXPECT_EQ(to_identifier("my_exp2"), "my_exp2");
  EXPECT_EQ(to_identifier("my exp-2.0"), "my_exp_2_0");
  EXPECT_EQ(to_identifier("gr\xc3\xb6n"), "gr__n");
  EXPECT_EQ(to_identifier(""), "");
  EXPECT_EQ(to_identifier("\n\t\"`"), "____");
}

}  // namespace
}  // namespace kiln
