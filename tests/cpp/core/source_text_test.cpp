// Lines of text, and where they came from.
#include <gtest/gtest.h>

#include "core/included_file.h"
#include "core/source_map.h"
#include "core/text.h"

namespace kiln {
namespace {

using Lines = std::vector<std::string_view>;

TEST(SourceMap, FindsTheCallersLine) {
  // Lines 1 and 2: the header. 3 to 5: the signature. 6 to 8: the body. From 9: the rest.
  const SourceMap map{2, 6, 3};
  EXPECT_EQ(map.locate(1), (SourcePosition{SourceText::kHeader, 1}));
  EXPECT_EQ(map.locate(2), (SourcePosition{SourceText::kHeader, 2}));
  EXPECT_EQ(map.locate(3), (SourcePosition{SourceText::kGenerated, 3}));
  EXPECT_EQ(map.locate(5), (SourcePosition{SourceText::kGenerated, 5}));
  EXPECT_EQ(map.locate(6), (SourcePosition{SourceText::kBody, 1}));
  EXPECT_EQ(map.locate(8), (SourcePosition{SourceText::kBody, 3}));
  EXPECT_EQ(map.locate(9), (SourcePosition{SourceText::kGenerated, 9}));
  EXPECT_EQ(map.locate(0), (SourcePosition{SourceText::kGenerated, 0}));
  EXPECT_EQ(map.locate(-1), (SourcePosition{SourceText::kGenerated, -1}));
}

TEST(SourceMap, WithoutAHeaderBeginsInGeneratedText) {
  const SourceMap map{0, 2, 1};
  EXPECT_EQ(map.locate(1), (SourcePosition{SourceText::kGenerated, 1}));
  EXPECT_EQ(map.locate(2), (SourcePosition{SourceText::kBody, 1}));
}

TEST(SourceMap, NumbersIncludedFilesBehindTheText) {
  // 4 lines of text, then a file of 3 lines, one of 1 and one of 2.
  const SourceMap map{0, 2, 1, {5, 8, 9}};
  EXPECT_EQ(map.locate(4), (SourcePosition{SourceText::kGenerated, 4}));
  EXPECT_EQ(map.locate(5), (SourcePosition{SourceText::kIncluded, 1, 0}));
  EXPECT_EQ(map.locate(7), (SourcePosition{SourceText::kIncluded, 3, 0}));
  EXPECT_EQ(map.locate(8), (SourcePosition{SourceText::kIncluded, 1, 1}));
  EXPECT_EQ(map.locate(10), (SourcePosition{SourceText::kIncluded, 2, 2}));
}

TEST(IncludedFile, HasANameOfKilns) {
  EXPECT_EQ(included_name(12), "kiln_include_12");
  EXPECT_EQ(included_index("kiln_include_12"), 12u);
  for (const char* other : {"", "a.h", "kiln_include_", "kiln_include_1x", "kiln_include_-1", "./kiln_include_1"})
    EXPECT_EQ(included_index(other), std::nullopt) << other;
  EXPECT_EQ(with_included_names("#include <a>\n#include \"b\" // c", {{9, 12, 3}, {22, 25, 0}}),
            "#include \"kiln_include_3\"\n#include \"kiln_include_0\" // c");
}

TEST(SplitLines, DropsLineEnds) {
  EXPECT_EQ(split_lines(""), Lines());
  EXPECT_EQ(split_lines("a"), (Lines{"a"}));
  EXPECT_EQ(split_lines("a\n"), (Lines{"a"}));
  EXPECT_EQ(split_lines("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(split_lines("\n\n"), (Lines{"", ""}));
  EXPECT_EQ(split_lines("a\r\nb\r\n"), (Lines{"a", "b"}));
  // A carriage return within a line belongs to it.
  EXPECT_EQ(split_lines("a\rb\n"), (Lines{"a\rb"}));
}

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
}

TEST(Concat, PrintsEachPart) {
  EXPECT_EQ(concat("a", 1, 'b', std::string("c"), std::string_view("d"), int64_t{-2}), "a1bcd-2");
}

TEST(Utf8, IsFoundWhereItEnds) {
  for (const char* right :
       {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(first_invalid_utf8(right), std::nullopt) << right;
  // A lone continuation, a sequence that ends early, overlong ones, a surrogate, beyond U+10FFFF, bytes that never
  // occur.
  for (const char* wrong : {"\x80", "\xc3", "\xc3(", "\xe2\x82", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80",
                            "\xf0\x80\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_EQ(first_invalid_utf8(std::string("ab") + wrong + "c"), 2u) << wrong;
}

}  // namespace
}  // namespace kiln
