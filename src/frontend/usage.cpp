#include "frontend/usage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "frontend/includes.h"

namespace kiln {
namespace {

constexpr std::array<std::string_view, 5> kAddressSpaces = {"constant", "device", "thread", "threadgroup",
                                                            "threadgroup_imageblock"};
constexpr std::array<std::string_view, 12> kSpecifiers = {"const",   "volatile", "static",   "constexpr",
                                                          "inline",  "register", "extern",   "mutable",
                                                          "typedef", "typename", "restrict", "__restrict__"};
constexpr std::array<std::string_view, 12> kBuiltinTypes = {"void", "bool", "char",  "short",    "int",    "long",
                                                            "half", "auto", "float", "unsigned", "signed", "double"};
constexpr std::array<std::string_view, 4> kClassKeys = {"struct", "class", "union", "enum"};
// `if (…)` and the like: what they declare, and what the statement that they control declares, is in an inner scope.
constexpr std::array<std::string_view, 6> kControls = {"if", "for", "while", "switch", "else", "do"};
// What begins a statement that declares nothing.
constexpr std::array<std::string_view, 11> kOtherStatements = {
    "return", "case", "default", "break", "continue", "goto", "delete", "throw", "template", "static_assert", "new"};

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_address_space(const Token& t) { return t.is_identifier() && is_one_of(kAddressSpaces, t.text); }

// Reads the declarations of one block, statement by statement. It reads what C++ would read as a declaration when it
// begins a statement: specifiers, a type's name, `*` and `&`, and a name. What looks otherwise is skipped to its end.
//
// It is no parser: it does not know which names are types or macros. Two names behind one another, or a name behind
// `f(…)`, can only be a declaration or a macro that stands before something; both are read as if the first were not
// there.
class DeclarationReader {
 public:
  explicit DeclarationReader(const TokenList& tokens) {
    // Preprocessor lines are no statements.
    for (const Token& t : tokens)
      if (!t.in_directive) tokens_.push_back(&t);
  }

  std::vector<std::string_view> run() {
    while (!at_end()) {
      bool controlled = std::exchange(controls_next_, false);
      size_t known = names_.size();
      read_statement();
      if (controlled) names_.resize(known);
    }
    return std::move(names_);
  }

 private:
  bool at_end() const { return pos_ >= tokens_.size(); }
  bool at(std::string_view spelling, size_t ahead = 0) const {
    return pos_ + ahead < tokens_.size() && tokens_[pos_ + ahead]->is(spelling);
  }
  bool at_identifier(size_t ahead = 0) const {
    return pos_ + ahead < tokens_.size() && tokens_[pos_ + ahead]->is_identifier();
  }
  template <size_t N>
  bool at_one_of(const std::array<std::string_view, N>& words) const {
    return at_identifier() && is_one_of(words, tokens_[pos_]->text);
  }
  bool at_opener() const { return at("(") || at("[") || at("{"); }

  // Past the group that the bracket at pos_ opens; at the end of the text if nothing closes it.
  void skip_group() {
    int depth = 0;
    for (; !at_end(); ++pos_) {
      if (at_opener()) ++depth;
      if ((at(")") || at("]") || at("}")) && --depth == 0) {
        ++pos_;
        return;
      }
    }
  }

  // Past `<…>`; stays where it is if that is no list of template arguments.
  bool skip_template_arguments() {
    size_t start = pos_;
    int depth = 0;
    while (!at_end()) {
      if (at_opener()) {
        skip_group();
        continue;
      }
      if (at(";") || at("}") || at(")") || at("=")) break;
      if (at("<")) ++depth;
      if (at(">") && --depth == 0) {
        ++pos_;
        return true;
      }
      ++pos_;
    }
    pos_ = start;
    return false;
  }

  // Past attributes: `[[…]]`, `alignas(…)`, `__attribute__((…))`.
  void skip_attributes() {
    for (;;) {
      if (at("[") && at("[", 1)) {
        skip_group();
      } else if ((at("alignas") || at("__attribute__")) && at("(", 1)) {
        ++pos_;
        skip_group();
      } else {
        return;
      }
    }
  }

  // Past what stands before a statement: attributes, macros such as MLX_MTL_PRAGMA_UNROLL, `_Pragma("…")`.
  void skip_prefixes() {
    for (;;) {
      skip_attributes();
      if (!at_identifier() || at_one_of(kControls) || at_one_of(kOtherStatements) || at("decltype")) return;
      size_t start = pos_++;
      bool is_macro = at_one_of(kControls);
      if (at("(")) {
        skip_group();
        is_macro = at_identifier();
      }
      if (!is_macro) {
        pos_ = start;
        return;
      }
    }
  }

  // To the end of the statement: past its `;`, or past a block that ends it.
  void skip_statement() {
    bool in_expression = false;
    while (!at_end()) {
      if (at(";")) {
        ++pos_;
        return;
      }
      if (at("{")) {
        skip_group();
        if (!in_expression) return;
      } else if (at("(") || at("[")) {
        in_expression = in_expression || at("[");
        skip_group();
      } else {
        in_expression = in_expression || at("=") || at("return") || at(",");
        ++pos_;
      }
    }
  }

  void read_statement() {
    skip_prefixes();
    if (at(";") || at("}") || at(")") || at("]")) {  // an empty statement, or a bracket too many
      ++pos_;
    } else if (at("{")) {
      skip_group();
    } else if (at("(") || at("[")) {
      skip_group();
      skip_statement();
    } else if (at("using") || at("namespace")) {
      read_alias();
    } else if (at_one_of(kControls)) {
      ++pos_;
      if (at("constexpr")) ++pos_;
      if (at("(")) skip_group();
      controls_next_ = true;
    } else if (at_one_of(kOtherStatements) || !read_declaration()) {
      skip_statement();
    }
  }

  // `using A = …;`, `using a::b;`, `namespace a = …;`, but not `using namespace a;`.
  void read_alias() {
    ++pos_;
    if (at("namespace")) return skip_statement();
    std::string_view last;
    for (; at_identifier() || at("::"); ++pos_)
      if (at_identifier()) last = tokens_[pos_]->text;
    if (!last.empty() && (at("=") || at(";"))) names_.push_back(last);
    skip_statement();
  }

  // Whether the statement at pos_ is a declaration; if so it is read to its end.
  bool read_declaration() {
    size_t start = pos_;
    bool is_auto = false;
    if (!read_specifiers(is_auto)) {
      pos_ = start;
      return false;
    }
    bool declared = false;
    while (read_declarator(is_auto)) {
      declared = true;
      // Its array bounds and its initialiser, to the next declarator or the end.
      while (!at_end() && !at(",") && !at(";")) {
        if (at_opener())
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

  // Past specifiers and the type; whether there is a type.
  bool read_specifiers(bool& is_auto) {
    bool type_seen = false;
    for (;;) {
      skip_attributes();
      if (at("::") && !type_seen) {
        read_type_name();
        type_seen = true;
        continue;
      }
      if (!at_identifier()) return type_seen;
      if (is_address_space(*tokens_[pos_]) || at_one_of(kSpecifiers)) {
        ++pos_;
      } else if (at_one_of(kClassKeys)) {
        read_class();
        type_seen = true;
      } else if (at_one_of(kBuiltinTypes)) {
        is_auto = is_auto || at("auto");
        type_seen = true;
        ++pos_;
      } else if (at("decltype") && at("(", 1)) {
        ++pos_;
        skip_group();
        if (at("::")) read_type_name();
        type_seen = true;
      } else if (!type_seen || (at_identifier(1) && !at("__attribute__", 1) && !at("alignas", 1))) {
        read_type_name();
        type_seen = true;
      } else {
        return true;
      }
    }
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

  // `struct A`, or its definition.
  void read_class() {
    bool is_enum = at("enum");
    ++pos_;
    bool is_scoped = is_enum && (at("class") || at("struct"));
    if (is_scoped) ++pos_;
    skip_attributes();
    size_t name = pos_;
    read_type_name();
    bool is_named = pos_ > name;
    if (at("final")) ++pos_;
    if (at(":"))
      while (!at_end() && !at("{") && !at(";")) ++pos_;
    if (!at("{")) return;
    if (is_named) names_.push_back(tokens_[name]->text);
    if (is_enum && !is_scoped)
      read_enumerators();
    else
      skip_group();
  }

  // Those of an enumeration that is not scoped belong to the block.
  void read_enumerators() {
    ++pos_;
    while (!at_end() && !at("}")) {
      if (at_identifier()) names_.push_back(tokens_[pos_]->text);
      while (!at_end() && !at(",") && !at("}")) {
        if (at_opener())
          skip_group();
        else if (!(at("<") && skip_template_arguments()))
          ++pos_;
      }
      if (at(",")) ++pos_;
    }
    if (at("}")) ++pos_;
  }

  // Whether a declarator stands at pos_; if so it is read as far as its name.
  bool read_declarator(bool is_auto) {
    while (at("*") || at("&") || at("&&") || at_one_of(kSpecifiers) ||
           (at_identifier() && is_address_space(*tokens_[pos_])))
      ++pos_;
    if (is_auto && at("[")) {  // structured binding
      size_t open = pos_;
      skip_group();
      if (!at("=") && !at("(") && !at("{")) return false;
      for (size_t i = open; i < pos_; ++i)
        if (tokens_[i]->is_identifier()) names_.push_back(tokens_[i]->text);
      return true;
    }
    if (at("(") && (at("&", 1) || at("*", 1))) {  // (&name)[N], (*name)(…)
      std::string_view name;
      for (++pos_; !at_end() && !at(")"); ++pos_)
        if (at_identifier()) name = tokens_[pos_]->text;
      if (name.empty() || (!at("[", 1) && !at("(", 1))) return false;
      ++pos_;
      names_.push_back(name);
      return true;
    }
    if (!at_identifier()) return false;
    std::string_view next = pos_ + 1 < tokens_.size() ? tokens_[pos_ + 1]->text : ";";
    constexpr std::array<std::string_view, 8> kAfterName = {"=", ";", ",", "[", "(", "{", "__attribute__", "alignas"};
    if (!is_one_of(kAfterName, next)) return false;
    names_.push_back(tokens_[pos_]->text);
    ++pos_;
    return true;
  }

  std::vector<const Token*> tokens_;
  std::vector<std::string_view> names_;
  size_t pos_ = 0;
  bool controls_next_ = false;  // the statement just read controls the one that follows
};

// Reads the declarations at namespace scope token by token. A name is declared where it stands after a class key, after
// `using`, or between a type and what may follow a declarator's name. An expression may look like that too; the extra
// names are harmless, since nothing but the parts of the device library that step back asks for them.
class NamespaceReader {
 public:
  explicit NamespaceReader(const TokenList& tokens) : tokens_(tokens) {}

  std::vector<std::string_view> run() {
    std::vector<bool> open;  // brackets; true for those that open a block and no namespace
    size_t blocks = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Token& t = tokens_[i];
      if (t.in_directive) {
        if (t.is("define") && i + 2 < tokens_.size() && tokens_[i + 1].is_identifier())
          names_.push_back(tokens_[i + 1].text);
        continue;
      }
      if (blocks == 0 && t.is_identifier() && declares(i)) names_.push_back(t.text);
      if (t.is("(") || t.is("[") || t.is("{")) {
        open.push_back(!opens_namespace(i));
        blocks += open.back();
      } else if ((t.is(")") || t.is("]") || t.is("}")) && !open.empty()) {
        blocks -= open.back();
        open.pop_back();
      }
    }
    return std::move(names_);
  }

 private:
  bool at(size_t i, std::string_view spelling) const { return i < tokens_.size() && tokens_[i].is(spelling); }

  // Whether the bracket opens a namespace whose names are found without their qualification: `namespace metal {`,
  // `namespace {`, `extern "C" {`.
  bool opens_namespace(size_t i) const {
    if (!at(i, "{") || i == 0) return false;
    if (at(i - 1, "namespace")) return true;
    return i > 1 && ((at(i - 1, "metal") && at(i - 2, "namespace")) ||
                     (tokens_[i - 1].kind == TokenKind::kString && at(i - 2, "extern")));
  }

  bool declares(size_t i) const {
    if (i == 0 || i + 1 >= tokens_.size() || tokens_[i - 1].in_directive) return false;
    const Token &before = tokens_[i - 1], &next = tokens_[i + 1];
    if (is_one_of(kClassKeys, before.text) || ((before.is(")") || before.is("]")) && next.is("{")))
      return next.is("{") || next.is(":") || next.is(";") || next.is("final");
    if (before.is("using")) return next.is("=");
    if (before.is("typename")) return false;
    bool type_before = before.is_identifier() || before.is(">") || before.is("*") || before.is("&") || before.is("}");
    constexpr std::array<std::string_view, 6> kAfterName = {"(", "=", ";", "[", "{", ","};
    return type_before && is_one_of(kAfterName, next.text);
  }

  const TokenList& tokens_;
  std::vector<std::string_view> names_;
};

}  // namespace

std::vector<std::string_view> outermost_declarations(const TokenList& body) { return DeclarationReader(body).run(); }

std::vector<std::string_view> namespace_names(const TokenList& text) { return NamespaceReader(text).run(); }

KernelText::KernelText(std::string header, std::string body, KernelFiles files)
    : header_(std::move(header)), body_(std::move(body)), files_(std::move(files)), body_tokens_(body_) {
  for (const Token& t : body_tokens_)
    if (t.is_identifier()) used_.insert(t.text);
  for (std::string_view name : outermost_declarations(body_tokens_)) declared_.insert(name);

  auto add_identifiers = [&](std::string_view text, const TokenList& tokens) {
    for (const Token& t : tokens) {
      if (t.is_identifier()) identifiers_.emplace_back(t.text);
      if (t.is("##")) pastes_tokens_ = true;
    }
    if (text.find("%:%:") != std::string_view::npos) pastes_tokens_ = true;  // the same
    for (const IncludeName& include : include_names(text, tokens)) included_names_.emplace_back(include.name);
  };
  auto add_definitions = [&](std::string_view text) {
    TokenList tokens(text);
    add_identifiers(text, tokens);
    for (std::string_view name : namespace_names(tokens)) own_names_.emplace_back(name);
  };
  add_identifiers(body_, body_tokens_);
  add_definitions(header_);
  for (const IncludedFile& file : files_.included) add_definitions(file.text);
  std::sort(identifiers_.begin(), identifiers_.end());
  identifiers_.erase(std::unique(identifiers_.begin(), identifiers_.end()), identifiers_.end());
}

}  // namespace kiln
