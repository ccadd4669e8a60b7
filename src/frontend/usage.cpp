#include "frontend/usage.h"

#include <algorithm>
#include <array>

namespace kiln {
namespace {

constexpr std::array<std::string_view, 5> kAddressSpaces = {"constant", "device", "thread", "threadgroup",
                                                            "threadgroup_imageblock"};
constexpr std::array<std::string_view, 15> kSpecifiers = {
    "const",    "volatile", "static", "constexpr", "inline",       "register", "extern",  "mutable",
    "typename", "restrict", "struct", "class",     "__restrict__", "enum",     "__shared__"};
constexpr std::array<std::string_view, 12> kBuiltinTypes = {"void", "bool", "char",   "short",    "int",    "long",
                                                            "half", "auto", "float",  "unsigned", "signed", "double"};
constexpr std::array<std::string_view, 18> kStatementKeywords = {
    "return", "if",     "else", "for",   "while",    "do",       "switch", "case",     "default",
    "break",  "continue", "goto", "using", "typedef", "namespace", "delete", "template", "static_assert"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_address_space(const Token& t) { return t.is_identifier() && contains(kAddressSpaces, t.text); }

// Reads the declarations of one block, statement by statement. It reads what C++ would read as a declaration when it
// begins a statement: specifiers, a type's name, `*` and `&`, and a name. What looks otherwise is skipped to its end.
class DeclarationReader {
 public:
  explicit DeclarationReader(const TokenList& tokens) {
    // Preprocessor lines are no statements.
    for (const Token& t : tokens)
      if (!t.in_directive) tokens_.push_back(&t);
  }

  std::vector<std::string_view> run() {
    while (pos_ < tokens_.size()) read_statement();
    return std::move(names_);
  }

 private:
  bool at(std::string_view spelling, size_t ahead = 0) const {
    return pos_ + ahead < tokens_.size() && tokens_[pos_ + ahead]->is(spelling);
  }
  bool at_identifier(size_t ahead = 0) const {
    return pos_ + ahead < tokens_.size() && tokens_[pos_ + ahead]->is_identifier();
  }

  // Past the group that the bracket at pos_ opens; at the end of the text if nothing closes it.
  void skip_group() {
    int depth = 0;
    for (; pos_ < tokens_.size(); ++pos_) {
      std::string_view t = tokens_[pos_]->text;
      if (t == "(" || t == "[" || t == "{") ++depth;
      if (t == ")" || t == "]" || t == "}")
        if (--depth == 0) {
          ++pos_;
          return;
        }
    }
  }

  // Past `<…>`; stays where it is if that is no list of template arguments.
  bool skip_template_arguments() {
    size_t start = pos_;
    int depth = 0;
    while (pos_ < tokens_.size()) {
      std::string_view t = tokens_[pos_]->text;
      if (t == "(" || t == "[" || t == "{") {
        skip_group();
        continue;
      }
      if (t == ";" || t == "}" || t == ")") break;
      if (t == "<") ++depth;
      if (t == ">" && --depth == 0) {
        ++pos_;
        return true;
      }
      ++pos_;
    }
    pos_ = start;
    return false;
  }

  // To the end of the statement: past its `;`, or past a block that ends it.
  void skip_statement() {
    while (pos_ < tokens_.size()) {
      if (at(";")) {
        ++pos_;
        return;
      }
      if (at("{")) {
        bool ends = !in_expression_;
        skip_group();
        if (ends) return;
      } else if (at("(") || at("[")) {
        in_expression_ = in_expression_ || at("[");
        skip_group();
      } else {
        if (at("=") || at("return") || at(",")) in_expression_ = true;
        ++pos_;
      }
    }
  }

  void read_statement() {
    in_expression_ = false;
    if (at(";") || at("}") || at(")") || at("]")) {  // an empty statement, or a bracket too many
      ++pos_;
      return;
    }
    if (at("{") || at("(") || at("[")) {
      bool block = at("{");
      skip_group();
      if (!block) skip_statement();
      return;
    }
    if (at("using")) {
      if (at_identifier(1) && at("=", 2)) names_.push_back(tokens_[pos_ + 1]->text);
      skip_statement();
      return;
    }
    if (at("typedef")) {
      read_typedef();
      return;
    }
    // `if (…)`, `for (…)`, `while (…)`: what they declare is in an inner scope, and what follows is a statement of
    // the same block as far as braces go.
    if (at("if") || at("for") || at("while") || at("switch")) {
      ++pos_;
      if (at("constexpr")) ++pos_;
      if (at("(")) skip_group();
      return;
    }
    if (at("else") || at("do")) {
      ++pos_;
      return;
    }
    if (at_identifier() && contains(kStatementKeywords, tokens_[pos_]->text)) {
      skip_statement();
      return;
    }
    if (!read_declaration()) skip_statement();
  }

  void read_typedef() {
    std::string_view last;
    while (pos_ < tokens_.size() && !at(";")) {
      if (at("{") || at("(")) {
        skip_group();
      } else if (at("[")) {
        break;
      } else {
        if (at_identifier()) last = tokens_[pos_]->text;
        ++pos_;
      }
    }
    if (!last.empty()) names_.push_back(last);
    skip_statement();
  }

  // Whether the statement at pos_ is a declaration; if so it is read to its end.
  bool read_declaration() {
    size_t start = pos_;
    bool type_seen = false;
    bool is_auto = false;
    bool class_key = false;
    for (;;) {
      if (!at_identifier()) break;
      const Token& t = *tokens_[pos_];
      if (is_address_space(t) || contains(kSpecifiers, t.text)) {
        class_key = class_key || t.is("struct") || t.is("class") || t.is("enum");
        ++pos_;
      } else if (t.is("alignas") && at("(", 1)) {
        ++pos_;
        skip_group();
      } else if (contains(kBuiltinTypes, t.text)) {
        type_seen = true;
        is_auto = is_auto || t.is("auto");
        ++pos_;
      } else if (!type_seen) {
        read_type_name();
        type_seen = true;
        if (class_key && (at("{") || at(":"))) {  // the definition of a local class
          names_.push_back(tokens_[pos_ - 1]->text);
          while (pos_ < tokens_.size() && !at("{")) ++pos_;
          skip_group();
        }
      } else {
        break;
      }
    }
    if (!type_seen) {
      pos_ = start;
      return false;
    }
    bool declared = false;
    while (pos_ < tokens_.size()) {
      while (at("*") || at("&") || at("&&") || at("const") || at("volatile") ||
             (at_identifier() && is_address_space(*tokens_[pos_])))
        ++pos_;
      if (at("[") && is_auto) {  // structured binding
        size_t open = pos_;
        skip_group();
        if (!at("=")) break;
        for (size_t i = open; i < pos_; ++i)
          if (tokens_[i]->is_identifier()) names_.push_back(tokens_[i]->text);
      } else if (at("(") && (at("&", 1) || at("*", 1)) && at_identifier(2) && at(")", 3) && at("[", 4)) {  // (&name)[N]
        names_.push_back(tokens_[pos_ + 2]->text);
        skip_group();
      } else if (at_identifier()) {
        std::string_view next = pos_ + 1 < tokens_.size() ? tokens_[pos_ + 1]->text : ";";
        if (next != "=" && next != ";" && next != "," && next != "[" && next != "(" && next != "{") break;
        names_.push_back(tokens_[pos_]->text);
        ++pos_;
      } else {
        break;
      }
      declared = true;
      // Its array bounds and its initialiser, to the next declarator or the end.
      in_expression_ = true;
      while (pos_ < tokens_.size() && !at(",") && !at(";")) {
        if (at("(") || at("[") || at("{"))
          skip_group();
        else if (!(at("<") && skip_template_arguments()))
          ++pos_;
      }
      if (!at(",")) break;
      ++pos_;
    }
    if (!declared) {
      pos_ = start;
      return false;
    }
    skip_statement();
    return true;
  }

  void read_type_name() {
    if (at("::")) ++pos_;
    for (;;) {
      if (!at_identifier()) return;
      ++pos_;
      if (at("<")) skip_template_arguments();
      if (!at("::")) return;
      ++pos_;
    }
  }

  std::vector<const Token*> tokens_;
  std::vector<std::string_view> names_;
  size_t pos_ = 0;
  bool in_expression_ = false;
};

}  // namespace

std::vector<std::string_view> outermost_declarations(const TokenList& body) { return DeclarationReader(body).run(); }

std::vector<std::string_view> functions_of(const TokenList& text) {
  std::vector<std::string_view> names;
  int depth = 0;  // of braces, parentheses and brackets; namespaces are rare in headers and count as blocks
  for (size_t i = 0; i < text.size(); ++i) {
    const Token& t = text[i];
    if (t.in_directive) {
      if (t.is("define") && i + 2 < text.size() && text[i + 1].is_identifier()) names.push_back(text[i + 1].text);
      continue;
    }
    if (t.is("(") && depth == 0 && i >= 2 && text[i - 1].is_identifier()) {
      const Token& before = text[i - 2];
      bool type_before = before.is_identifier() || before.is(">") || before.is("*") || before.is("&");
      if (type_before && !before.in_directive) names.push_back(text[i - 1].text);
    }
    if (t.is("(") || t.is("[") || t.is("{")) ++depth;
    if (t.is(")") || t.is("]") || t.is("}")) depth = std::max(0, depth - 1);
  }
  return names;
}

KernelText::KernelText(std::string header, std::string body)
    : header_(std::move(header)), body_(std::move(body)), body_tokens_(body_) {
  for (const Token& t : body_tokens_)
    if (t.is_identifier()) used_.insert(t.text);
  for (std::string_view name : outermost_declarations(body_tokens_)) declared_.insert(name);

  TokenList header_tokens(header_);
  for (const TokenList* tokens : {&header_tokens, &body_tokens_})
    for (const Token& t : *tokens) {
      if (t.is_identifier()) identifiers_.emplace_back(t.text);
      if (t.is("##")) pastes_tokens_ = true;
    }
  std::sort(identifiers_.begin(), identifiers_.end());
  identifiers_.erase(std::unique(identifiers_.begin(), identifiers_.end()), identifiers_.end());
  for (std::string_view name : functions_of(header_tokens)) own_functions_.emplace_back(name);
}

}  // namespace kiln
