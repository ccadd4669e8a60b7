#include "frontend/lexer.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using Texts = std::vector<std::string>;

Texts texts(std::string_view text) {
  Texts result;
  for (const Token& token : TokenList(text)) result.emplace_back(token.text);
  return result;
}

std::vector<TokenKind> kinds(std::string_view text) {
  std::vector<TokenKind> result;
  for (const Token& token : TokenList(text)) result.push_back(token.kind);
  return result;
}

// What stands on a preprocessor line.
Texts directives(std::string_view text) {
  Texts result;
  for (const Token& token : TokenList(text))
    if (token.in_directive) result.emplace_back(token.text);
  return result;
}

TEST(Lexer, CutsTextIntoTokens) {
  EXPECT_EQ(texts("uint i = a[3];"), (Texts{"uint", "i", "=", "a", "[", "3", "]", ";"}));
  EXPECT_EQ(texts(""), Texts());
  EXPECT_EQ(texts(" \t\n\r\v\f"), Texts());
  EXPECT_EQ(kinds("a 1 \"s\" 'c' ;"), (std::vector{TokenKind::kIdentifier, TokenKind::kNumber, TokenKind::kString,
                                                   TokenKind::kCharacter, TokenKind::kPunctuation}));
}

TEST(Lexer, KeepsLongNamesWhole) {
  EXPECT_EQ(texts("max_x_shape x_shape2 _x_shape x_shape"), (Texts{"max_x_shape", "x_shape2", "_x_shape", "x_shape"}));
}

TEST(Lexer, SkipsComments) {
  EXPECT_EQ(texts("a // b\nc /* d */ e /* f\n g */ h /**/ i /***/ j"), (Texts{"a", "c", "e", "h", "i", "j"}));
  EXPECT_EQ(texts("a//"), (Texts{"a"}));
  EXPECT_EQ(texts("a / b /c"), (Texts{"a", "/", "b", "/", "c"}));
  EXPECT_EQ(texts("// a \\\n still a comment\nb"), (Texts{"b"}));
  EXPECT_EQ(texts("// a \\ no splice: text follows\nb"), (Texts{"b"}));
  EXPECT_EQ(texts("/* // */ a"), (Texts{"a"}));
  EXPECT_EQ(texts("/\\\n/ comment\na /\\\n* comment *\\\n/ b"), (Texts{"a", "b"}));
}

TEST(Lexer, KeepsStringsWhole) {
  EXPECT_EQ(texts(R"("x_shape" 'a' "a\"b" '\'' "\\" c)"),
            (Texts{R"("x_shape")", "'a'", R"("a\"b")", R"('\'')", R"("\\")", "c"}));
  EXPECT_EQ(texts(R"(L"a" u8"b" U'c' u "d")"), (Texts{R"(L"a")", R"(u8"b")", "U'c'", "u", R"("d")"}));
  EXPECT_EQ(texts("\"/* no comment */\" \"// none\" a"), (Texts{"\"/* no comment */\"", "\"// none\"", "a"}));
  EXPECT_EQ(texts("\"a\\\nb\" c"), (Texts{"\"ab\"", "c"}));
}

TEST(Lexer, KeepsRawStringsWhole) {
  EXPECT_EQ(texts("R\"(a\n\"b\\\n//c)\" d"), (Texts{"R\"(a\n\"b\\\n//c)\"", "d"}));
  EXPECT_EQ(texts("R\"x(a)\" )x\" d"), (Texts{"R\"x(a)\" )x\"", "d"}));
  for (const char* prefix : {"LR", "uR", "UR", "u8R"})
    EXPECT_EQ(texts(std::string(prefix) + "\"(a b)\" c"), (Texts{std::string(prefix) + "\"(a b)\"", "c"}));
  // A name that ends like a prefix is none.
  EXPECT_EQ(texts("VAR\"(a b)\""), (Texts{"VAR", "\"(a b)\""}));
}

TEST(Lexer, JoinsWhatALineSpliceCut) {
  EXPECT_EQ(texts("x_sh\\\nape y"), (Texts{"x_shape", "y"}));
  EXPECT_EQ(texts("x_sh\\  \nape"), (Texts{"x_shape"}));
  EXPECT_EQ(texts("x_sh\\\r\nape"), (Texts{"x_shape"}));
  EXPECT_EQ(texts("x\\\n\\\n_\\\nshape"), (Texts{"x_shape"}));
  EXPECT_EQ(texts("1\\\n2 :\\\n: a"), (Texts{"12", "::", "a"}));
  EXPECT_EQ(texts("\\\na"), (Texts{"a"}));
  // A backslash that splices nothing is a token of its own.
  EXPECT_EQ(texts("a \\ b"), (Texts{"a", "\\", "b"}));
  EXPECT_EQ(texts("a\\"), (Texts{"a", "\\"}));
}

TEST(Lexer, KnowsPreprocessorLines) {
  EXPECT_EQ(directives("#define A b\nc"), (Texts{"#", "define", "A", "b"}));
  EXPECT_EQ(directives("a # b\n"), Texts());
  EXPECT_EQ(directives("  # if x\nc\n#endif"), (Texts{"#", "if", "x", "#", "endif"}));
  EXPECT_EQ(directives("/* c */ #define A\nb"), (Texts{"#", "define", "A"}));
  EXPECT_EQ(directives("#define A b \\\n  c\nd"), (Texts{"#", "define", "A", "b", "c"}));
  EXPECT_EQ(directives("#define A b \\\r\n  c\r\nd"), (Texts{"#", "define", "A", "b", "c"}));
  EXPECT_EQ(directives("#define A /* a\n b */ c\nd"), (Texts{"#", "define", "A", "c"}));
  EXPECT_EQ(directives("#define A // b\nc"), (Texts{"#", "define", "A"}));
  EXPECT_EQ(directives("#define CAT(a, b) a##b"),
            (Texts{"#", "define", "CAT", "(", "a", ",", "b", ")", "a", "##", "b"}));
}

TEST(Lexer, ReadsCarriageReturnsAsBlanks) { EXPECT_EQ(texts("a\r\nb // c\r\nd\r\n"), (Texts{"a", "b", "d"})); }

TEST(Lexer, ReadsNumbers) {
  for (const char* number : {"0", "12", "1.5", ".5", "1.", "1e5", "1e-5", "1.5E+3f", "0x1F", "0x1p-3", "1.5h", "3u",
                             "1'000'000", "0b1010", "1e5bf"}) {
    EXPECT_EQ(texts(number), Texts{number});
    EXPECT_EQ(kinds(number), std::vector{TokenKind::kNumber}) << number;
  }
  EXPECT_EQ(texts("a.x_shape 1-2 3.x"), (Texts{"a", ".", "x_shape", "1", "-", "2", "3.x"}));
  EXPECT_EQ(texts("1'a' x"), (Texts{"1'a", "' x"}));
}

TEST(Lexer, ReadsPunctuationOfSeveralCharactersWhereItMatters) {
  EXPECT_EQ(texts("a::b->c==d!=e<=f>=g+=h-=i*=j/=k%=l&=m|=n^=o++p--q&&r||s"),
            (Texts{"a",  "::", "b",  "->", "c",  "==", "d",  "!=", "e",  "<=", "f",  ">=", "g",
                   "+=", "h",  "-=", "i",  "*=", "j",  "/=", "k",  "%=", "l",  "&=", "m",  "|=",
                   "n",  "^=", "o",  "++", "p",  "--", "q",  "&&", "r",  "||", "s"}));
  // So that `vec<vec<T, 2>>` closes twice.
  EXPECT_EQ(texts("a>>b<<c"), (Texts{"a", ">", ">", "b", "<", "<", "c"}));
}

TEST(Lexer, EndsInSomeTokenWhateverIsNotTerminated) {
  EXPECT_EQ(texts("a /* b"), (Texts{"a"}));
  EXPECT_EQ(texts("a /*"), (Texts{"a"}));
  EXPECT_EQ(texts("a \"b\nc"), (Texts{"a", "\"b", "c"}));
  EXPECT_EQ(texts("a 'b\nc"), (Texts{"a", "'b", "c"}));
  EXPECT_EQ(texts("a \""), (Texts{"a", "\""}));
  EXPECT_EQ(texts("a \"\\"), (Texts{"a", "\"\\"}));
  EXPECT_EQ(texts("R\"(a b"), (Texts{"R\"(a b"}));
  EXPECT_EQ(texts("R\"x(a)y\" b"), (Texts{"R\"x(a)y\" b"}));
  // No raw string: its delimiter is too long, or nothing opens it.
  EXPECT_EQ(texts("R\"0123456789abcdefg(a)\"").front(), "R\"");
  EXPECT_EQ(texts("R\" a").front(), "R\"");
}

TEST(Lexer, ReadsLettersBeyondAsciiAsLetters) {
  EXPECT_EQ(texts("gr\xc3\xb6\xc3\x9f"
                  "e = \xce\xb1;"),
            (Texts{"gr\xc3\xb6\xc3\x9f"
                   "e",
                   "=", "\xce\xb1", ";"}));
  EXPECT_EQ(texts("\"\xe2\x82\xac\" // \xe2\x82\xac\na"), (Texts{"\"\xe2\x82\xac\"", "a"}));
}

TEST(Lexer, TakesBytesOfEveryValue) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::string joined;
  for (const std::string& text : texts(all + "\n" + all)) joined += text;
  EXPECT_NE(joined.find("abcdefghijklmnopqrstuvwxyz"), std::string::npos);
}

TEST(Lexer, SaysWhatAnIdentifierIs) {
  for (const char* name : {"a", "_", "x1", "A_b9", "for", "\xc3\xa9"}) EXPECT_TRUE(is_identifier(name)) << name;
  for (const char* name : {"", "1a", "a b", "a-b", " a", "a.b", "a\n"}) EXPECT_FALSE(is_identifier(name)) << name;
}

}  // namespace
}  // namespace kiln
