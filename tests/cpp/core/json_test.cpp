#include "core/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "kiln/error.h"

namespace kiln {
namespace {

TEST(Json, ValuesOfEachKind) {
  Json value = Json::parse(R"( {"a": [1, -2, true, false, null, "x"], "b": {"c": []}, "d": {}} )");
  const Json::List& list = value["a"].as_list();
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(list[0].as_integer(), 1);
  EXPECT_EQ(list[1].as_integer(), -2);
  EXPECT_TRUE(list[2].as_bool());
  EXPECT_FALSE(list[3].as_bool());
  EXPECT_TRUE(list[4].is_null());
  EXPECT_EQ(list[5].as_string(), "x");
  EXPECT_TRUE(value["b"]["c"].as_list().empty());
  EXPECT_EQ(value["d"].find("e"), nullptr);
  EXPECT_EQ(Json::parse("-9223372036854775808").as_integer(), std::numeric_limits<int64_t>::min());
}

TEST(Json, Escapes) {
  EXPECT_EQ(Json::parse(R"("\" \\ \/ \b\f\n\r\t")").as_string(), "\" \\ / \b\f\n\r\t");
  EXPECT_EQ(Json::parse(R"("A\u00fc\u5149\ud83c\udf88\u0000!")").as_string(),
            std::string("A\xC3\xBC\xE5\x85\x89\xF0\x9F\x8E\x88\0!", 12));
  EXPECT_EQ(Json::parse("\"\xC3\xBC\"").as_string(), "\xC3\xBC");
}

TEST(Json, WhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[1 2]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{1:2}",
                           "\"",
                           "\"\\",
                           "\"\\u12",
                           "\"\\u12x4\"",
                           "\"\\ud83c\\u0041\"",
                           "\"\\x\"",
                           "nul",
                           "tru",
                           "1.5",
                           "1e3",
                           "+1",
                           "--1",
                           "9223372036854775808",
                           "1 1",
                           "{} x"})
    EXPECT_THROW(Json::parse(text), ValueError) << text;
  EXPECT_THROW(Json::parse(std::string(1000000, '[')), ValueError);
}

TEST(Json, ValuesOfAnotherKind) {
  Json value = Json::parse(R"({"a": 1})");
  EXPECT_THROW(value["b"], ValueError);
  EXPECT_THROW(value["a"].as_string(), ValueError);
  EXPECT_THROW(value["a"]["b"], ValueError);
  EXPECT_THROW(value.as_list(), ValueError);
}

}  // namespace
}  // namespace kiln
