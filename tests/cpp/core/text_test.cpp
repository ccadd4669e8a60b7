#include "core/text.h"

#include <gtest/gtest.h>

#include <locale>

namespace kiln {
namespace {

using namespace std::string_literals;

struct Grouped : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// Generated text has numbers in it, and a program may set a locale in which 1024 is 1.024.
TEST(Text, NumbersDoNotFollowTheLocale) {
  std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouped));
  std::string text = concat("N = ", 1234567, ", ", uint64_t{1} << 63, ", ", 2.5);
  std::locale::global(before);
  EXPECT_EQ(text, "N = 1234567, 9223372036854775808, 2.5");
}

TEST(Text, PrintableTextHasNoNul) {
  EXPECT_EQ(printable("größer"), "größer");
  EXPECT_EQ(printable("a\0b\0"s), "a\u2400b\u2400");
  EXPECT_EQ(printable(""), "");
}

TEST(Text, SplitsLines) {
  std::vector<std::string_view> lines = split_lines("a\r\n\nb\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "a");
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[2], "b");
}

}  // namespace
}  // namespace kiln
