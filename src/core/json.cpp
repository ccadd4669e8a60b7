#include "core/json.h"

#include <charconv>
#include <optional>

#include "core/text.h"
#include "kiln/error.h"

namespace kiln {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json run() {
    Json result = value(0);
    skip_spaces();
    if (at_ != text_.size()) fail();
    return result;
  }

 private:
  // Nested deeper than any text; each level is a call.
  static constexpr int kMostLevels = 64;

  [[noreturn]] void fail() const { throw ValueError(concat("no JSON at byte ", at_)); }

  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) fail();
  }

  Json value(int level) {
    if (level > kMostLevels) fail();
    skip_spaces();
    if (take("null")) return Json();
    if (take("true")) return Json(true);
    if (take("false")) return Json(false);
    if (at_ >= text_.size()) fail();
    switch (text_[at_]) {
      case '"': return Json(string());
      case '[': return list(level);
      case '{': return object(level);
      default: return number();
    }
  }

  Json list(int level) {
    expect("[");
    Json::List items;
    skip_spaces();
    if (take("]")) return Json(std::move(items));
    while (true) {
      items.push_back(value(level + 1));
      skip_spaces();
      if (take("]")) return Json(std::move(items));
      expect(",");
    }
  }

  Json object(int level) {
    expect("{");
    Json::Object members;
    skip_spaces();
    if (take("}")) return Json(std::move(members));
    while (true) {
      skip_spaces();
      std::string name = string();
      skip_spaces();
      expect(":");
      members.emplace_back(std::move(name), value(level + 1));
      skip_spaces();
      if (take("}")) return Json(std::move(members));
      expect(",");
    }
  }

  Json number() {
    int64_t result = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result);
    if (error != std::errc()) fail();
    at_ = static_cast<size_t>(end - text_.data());
    return Json(result);
  }

  std::string string() {
    expect("\"");
    std::string result;
    while (true) {
      size_t end = text_.find_first_of("\"\\", at_);
      if (end == std::string_view::npos) fail();
      result.append(text_, at_, end - at_);
      at_ = end;
      if (take("\"")) return result;
      ++at_;
      append_escaped(result);
    }
  }

  void append_escaped(std::string& out) {
    if (at_ >= text_.size()) fail();
    char sign = text_[at_++];
    switch (sign) {
      case 'b': out += '\b'; return;
      case 'f': out += '\f'; return;
      case 'n': out += '\n'; return;
      case 'r': out += '\r'; return;
      case 't': out += '\t'; return;
      case '"':
      case '\\':
      case '/': out += sign; return;
      case 'u': append_utf8(out, code_point()); return;
      default: fail();
    }
  }

  uint32_t hexadecimal() {
    if (text_.size() - at_ < 4) fail();
    uint32_t result = 0;
    const char* begin = text_.data() + at_;
    if (std::from_chars(begin, begin + 4, result, 16).ptr != begin + 4) fail();
    at_ += 4;
    return result;
  }

  // Beyond the first 2^16 it is two escapes (UTF-16).
  uint32_t code_point() {
    uint32_t first = hexadecimal();
    if (first < 0xD800 || first > 0xDBFF || !text_.substr(at_).starts_with("\\u")) return first;
    at_ += 2;
    uint32_t second = hexadecimal();
    if (second < 0xDC00 || second > 0xDFFF) fail();
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  static void append_utf8(std::string& out, uint32_t point) {
    auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else if (point < 0x800) {
      out += static_cast<char>(0xC0 | (point >> 6));
      tail(0);
    } else if (point < 0x10000) {
      out += static_cast<char>(0xE0 | (point >> 12));
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xF0 | (point >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Json Json::parse(std::string_view text) { return Parser(text).run(); }

const Json* Json::find(std::string_view name) const {
  for (const auto& [key, value] : get<Object>())
    if (key == name) return &value;
  return nullptr;
}

const Json& Json::operator[](std::string_view name) const {
  if (const Json* found = find(name)) return *found;
  fail(concat("has no `", name, "`"));
}

void Json::fail(std::string_view what) { throw ValueError(concat("JSON ", what)); }

}  // namespace kiln
