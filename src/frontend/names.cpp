#include "frontend/names.h"

#include <algorithm>
#include <array>

#include "frontend/lexer.h"

namespace kiln {
namespace {

constexpr std::array<std::string_view, 84> kCxxKeywords = {
    "alignas",   "alignof",  "and",      "and_eq",    "asm",          "auto",          "bitand",
    "bitor",     "bool",     "break",    "case",      "catch",        "char",          "char16_t",
    "char32_t",  "class",    "compl",    "const",     "const_cast",   "constexpr",     "continue",
    "decltype",  "default",  "delete",   "do",        "double",       "dynamic_cast",  "else",
    "enum",      "explicit", "export",   "extern",    "false",        "float",         "for",
    "friend",    "goto",     "if",       "inline",    "int",          "long",          "mutable",
    "namespace", "new",      "noexcept", "not",       "not_eq",       "nullptr",       "operator",
    "or",        "or_eq",    "private",  "protected", "public",       "register",      "reinterpret_cast",
    "return",    "short",    "signed",   "sizeof",    "static",       "static_assert", "static_cast",
    "struct",    "switch",   "template", "this",      "thread_local", "throw",         "true",
    "try",       "typedef",  "typeid",   "typename",  "union",        "unsigned",      "using",
    "virtual",   "void",     "volatile", "wchar_t",   "while",        "xor",           "xor_eq"};
constexpr std::array<std::string_view, 11> kMetalKeywords = {"bfloat", "constant",    "device",      "fragment",
                                                             "half",   "kernel",      "object_data", "ray_data",
                                                             "thread", "threadgroup", "vertex"};
constexpr std::array<std::string_view, 7> kCudaKeywords = {"__constant__", "__device__",   "__global__", "__host__",
                                                           "__managed__",  "__restrict__", "__shared__"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool is_keyword(Dialect dialect, std::string_view name) {
  if (contains(kCxxKeywords, name)) return true;
  return dialect == Dialect::kMetal ? contains(kMetalKeywords, name) : contains(kCudaKeywords, name);
}

std::string to_identifier(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (!is_identifier_part(c) || static_cast<unsigned char>(c) >= 0x80) c = '_';
  return result;
}

}  // namespace kiln
