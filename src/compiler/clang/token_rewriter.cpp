#include "compiler/clang/token_rewriter.h"

#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Preprocessor.h>
#include <llvm/ADT/APFloat.h>
#include <llvm/ADT/StringSwitch.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/clang/dialects/cuda_tokens.h"
#include "compiler/clang/threadgroup_variables.h"
#include "core/text.h"

namespace kiln {
namespace {

using clang::Token;
namespace tok = clang::tok;

// Maximum nesting depth of brackets, since parsers recurse with it. Clang has the same limit.
constexpr size_t kMaxDepth = 256;
// Maximum number of operators in an expression: Clang and LLVM recurse, and parts of Clang take quadratic time.
constexpr size_t kMaxOperators = size_t{1} << 14;

bool is_texture_name(llvm::StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases("texture1d", "texture1d_array", "texture2d", "texture2d_array", "texture2d_ms", "texture2d_ms_array", true)
      .Cases("texture3d", "texturecube", "texturecube_array", "texture_buffer", true)
      .Cases("depth2d", "depth2d_array", "depth2d_ms", "depth2d_ms_array", "depthcube", "depthcube_array", true)
      .Default(false);
}

// The reason why a C++ keyword is not supported in Metal; null if it is.
const char* unsupported_keyword(tok::TokenKind keyword) {
  switch (keyword) {
    case tok::kw_asm: return "inline assembly is not supported";
    case tok::kw_new:
    case tok::kw_delete: return "a kernel cannot allocate memory";
    case tok::kw_try:
    case tok::kw_catch:
    case tok::kw_throw: return "exceptions are not supported";
    case tok::kw_goto: return "jumps to labels are not supported";
    case tok::kw_virtual: return "virtual functions are not supported";
    case tok::kw_dynamic_cast:
    case tok::kw_typeid: return "types are not known when a kernel runs";
    case tok::kw___int128: return "integers of 128 bits are not supported";
    case tok::kw___float128: return "floats of 128 bits are not supported";
    case tok::kw_thread_local: return "static variables of a thread are not supported";
    default: return nullptr;
  }
}

// Why a body cannot use this name here; null if it can. `before` and `next` are the tokens around it: a name that a
// body might define itself is Metal's only if it is used like a type or a namespace.
const char* unsupported_reason(tok::TokenKind before, llvm::StringRef name, tok::TokenKind next) {
  if (is_texture_name(name) && next == tok::less) return "textures are not supported";
  if (name == "sampler" && next == tok::identifier) return "samplers are not supported";
  if (name == "function_constant" && next == tok::l_paren) return "function constants are not supported";
  bool is_namespace = next == tok::coloncolon || before == tok::kw_namespace || before == tok::coloncolon;
  if (name == "raytracing" && is_namespace) return "ray tracing is not supported";
  if (name == "mpp" && is_namespace) return "Metal Performance Primitives are not supported";
  return nullptr;
}

class Rewriter {
 public:
  Rewriter(const KernelUnit& unit, clang::Preprocessor& preprocessor, const DiagnosticCollector& diagnostics)
      : unit_(unit),
        preprocessor_(preprocessor),
        sources_(preprocessor.getSourceManager()),
        diagnostics_(diagnostics) {}

  RewriteResult run(std::vector<Token> tokens) {
    // The caller's tokens are contiguous: the device library comes before them, the entry after them.
    auto is_in_caller_text = [&](const Token& t) { return is_in_kernel(t); };
    auto begin = std::find_if(tokens.begin(), tokens.end(), is_in_caller_text);
    auto end = std::find_if(tokens.rbegin(), tokens.rend(), is_in_caller_text).base();
    if (begin == tokens.end()) end = begin;

    tokens_.assign(begin, end);
    refuse_unsupported();
    check_brackets();
    if (result_.invalid.empty()) check_depth();
    if (result_.invalid.empty() && result_.unsupported.empty()) {
      if (unit_.dialect == Dialect::kCuda) {
        rewrite_cuda();
      } else {
        drop_attributes();
        mark_threadgroup_constructors();
        // Merging compares declarations without address spaces, and considers only those that had one.
        erase_address_spaces();
        merge_overloads();
        replace_threadgroup_qualifiers("threadgroup", kThreadgroupAttribute);
        rewrite_literals();
      }
      if (mentions_convergent_operations(unit_)) {
        refuse_destructors();
        mark_loops();
      }
    }
    result_.tokens.assign(tokens.begin(), begin);
    result_.tokens.insert(result_.tokens.end(), tokens_.begin(), tokens_.end());
    result_.tokens.insert(result_.tokens.end(), end, tokens.end());
    return std::move(result_);
  }

 private:
  bool is_in_kernel(const Token& t) {
    if (t.is(tok::eof)) return false;
    clang::SourceLocation location = sources_.getExpansionLoc(t.getLocation());
    clang::FileID file = sources_.getFileID(location);
    if (file != last_file_) is_last_in_caller_text_ = diagnostics_.line_of(sources_, location).has_value();
    last_file_ = file;
    return is_last_in_caller_text_;
  }

  static llvm::StringRef identifier(const Token& t) {
    if (t.isAnnotation()) return {};
    const clang::IdentifierInfo* info = t.getIdentifierInfo();
    return info ? info->getName() : llvm::StringRef();
  }

  bool is_word(size_t i, llvm::StringRef word) const { return i < tokens_.size() && identifier(tokens_[i]) == word; }
  bool is(size_t i, tok::TokenKind kind) const { return i < tokens_.size() && tokens_[i].is(kind); }

  std::string spelling(const Token& t) const {
    if (t.isAnnotation()) return concat("#pragma ", t.getLocation().getRawEncoding());
    return preprocessor_.getSpelling(t);
  }

  Diagnostic diagnose(const Token& t, std::string message) const {
    return diagnostics_.at(sources_, t.getLocation(), std::move(message));
  }

  // Creates tokens at the location of `where`.
  Token make(const Token& where, tok::TokenKind kind) const {
    Token t;
    t.startToken();
    t.setKind(kind);
    t.setLocation(where.getLocation());
    if (const char* keyword = tok::getKeywordSpelling(kind)) {
      t.setIdentifierInfo(preprocessor_.getIdentifierInfo(keyword));
      t.setLength(static_cast<unsigned>(std::char_traits<char>::length(keyword)));
    } else if (const char* punctuator = tok::getPunctuatorSpelling(kind)) {
      t.setLength(static_cast<unsigned>(std::char_traits<char>::length(punctuator)));
    }
    return t;
  }
  Token make_identifier(const Token& where, llvm::StringRef name) const {
    Token t;
    t.startToken();
    t.setKind(tok::identifier);
    t.setLocation(where.getLocation());
    t.setIdentifierInfo(preprocessor_.getIdentifierInfo(name));
    t.setLength(static_cast<unsigned>(name.size()));
    return t;
  }
  Token make_literal(const Token& where, tok::TokenKind kind, llvm::StringRef text) const {
    Token t;
    t.startToken();
    t.setKind(kind);
    preprocessor_.CreateString(text, t, where.getLocation(), where.getLocation());
    return t;
  }

  // ---- Checks before anything is rewritten

  void refuse_unsupported() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      llvm::StringRef name = identifier(tokens_[i]);
      if (unit_.dialect == Dialect::kCuda && launches_kernel(i))
        result_.unsupported.push_back(diagnose(tokens_[i], "'<<<': a kernel cannot launch kernels on the CPU"));
      if (unit_.dialect == Dialect::kMetal && is_long_double(tokens_[i])) {
        result_.invalid.push_back(diagnose(tokens_[i], "'long double' is not supported in Metal"));
        continue;
      }
      if (name.empty() || is(i - 1, tok::period) || is(i - 1, tok::arrow)) continue;
      tok::TokenKind before = i > 0 ? tokens_[i - 1].getKind() : tok::unknown;
      tok::TokenKind next = i + 1 < tokens_.size() ? tokens_[i + 1].getKind() : tok::eof;
      if (unit_.dialect == Dialect::kCuda) {
        const char* reason = unsupported_in_cuda(tokens_[i].getKind(), before, name, next);
        if (reason) result_.unsupported.push_back(diagnose(tokens_[i], concat("'", name.str(), "': ", reason)));
        continue;
      }
      // `double` is invalid in Metal, rather than unsupported by Kiln.
      if (tokens_[i].is(tok::kw_double)) {
        result_.invalid.push_back(diagnose(tokens_[i], "'double' is not supported in Metal"));
        continue;
      }
      // `kernel void f(…)`, `[[kernel]] void f(…)`
      bool is_kernel = name == "kernel" && (next == tok::kw_void || (before == tok::l_square && next == tok::r_square));
      if (is_kernel && text_of(tokens_[i]) == SourceText::kBody) {
        result_.invalid.push_back(diagnose(tokens_[i], kWholeKernelMessage));
        return;
      }
      if (name == "printf" && next == tok::l_paren && !defines_printf()) {
        result_.unsupported.push_back(diagnose(tokens_[i], "'printf': printing is not supported"));
        continue;
      }
      // `= delete` is a deleted function.
      if (tokens_[i].is(tok::kw_delete) && is(i - 1, tok::equal)) continue;
      const char* reason = unsupported_keyword(tokens_[i].getKind());
      if (!reason) reason = unsupported_reason(before, name, next);
      if (reason) result_.unsupported.push_back(diagnose(tokens_[i], concat("'", name.str(), "': ", reason)));
    }
  }

  // A literal like 1.0L; one with a suffix of the caller's own that ends like that is another.
  bool is_long_double(const Token& token) const {
    if (token.isNot(tok::numeric_constant)) return false;
    const std::string text = preprocessor_.getSpelling(token);
    if (text.back() != 'l' && text.back() != 'L') return false;
    const bool is_hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
    return text.find_first_of(is_hexadecimal ? "pP." : "eE.") != std::string::npos &&
           !has_suffix(llvm::StringRef(text).drop_back(), is_hexadecimal);
  }

  // Whether the caller's text defines its own `void printf(…)`.
  bool defines_printf() {
    if (!defines_printf_) defines_printf_ = finds_printf();
    return *defines_printf_;
  }

  bool finds_printf() const {
    for (size_t i = 1; i < tokens_.size(); ++i)
      if (is_word(i, "printf") && is(i + 1, tok::l_paren) &&
          tokens_[i - 1].isOneOf(tok::identifier, tok::kw_void, tok::kw_int, tok::kw_auto, tok::star, tok::amp))
        return true;
    return false;
  }

  // An unmatched bracket would move every later message to a wrong location, so this check comes first.
  void check_brackets() {
    match_.assign(tokens_.size(), 0);
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      tok::TokenKind kind = tokens_[i].getKind();
      if (kind == tok::l_brace || kind == tok::l_paren || kind == tok::l_square) {
        open.push_back(i);
        if (open.size() > kMaxDepth) {
          result_.invalid.push_back(diagnose(tokens_[i], concat("brackets are nested more than ", kMaxDepth, " deep")));
          return;
        }
        continue;
      }
      // The preprocessor yields an unknown token for a quote that is not closed on its line.
      if (kind == tok::unknown)
        if (std::string text = spelling(tokens_[i]); text.starts_with('"') || text.starts_with('\'')) {
          result_.invalid.push_back(diagnose(tokens_[i], concat("nothing closes this ", text[0])));
          return;
        }
      tok::TokenKind opener = kind == tok::r_brace    ? tok::l_brace
                              : kind == tok::r_paren  ? tok::l_paren
                              : kind == tok::r_square ? tok::l_square
                                                      : tok::unknown;
      if (opener == tok::unknown) continue;
      bool matches = !open.empty() && tokens_[open.back()].is(opener);
      // The body's brackets must match each other: its braces must not close Kiln's text around it. An included file
      // may contain one bracket of a pair.
      SourceText here = text_of(tokens_[i]), there = matches ? text_of(tokens_[open.back()]) : SourceText::kGenerated;
      bool is_part = here == SourceText::kIncluded || there == SourceText::kIncluded;
      bool same_text = here == there || (is_part && here != SourceText::kGenerated && there != SourceText::kGenerated);
      if (matches && same_text) {
        match_[i] = open.back();
        match_[open.back()] = i;
        open.pop_back();
        continue;
      }
      std::string closer = concat("'", tok::getPunctuatorSpelling(kind), "'");
      if (!open.empty() && text_of(tokens_[open.back()]) != SourceText::kGenerated) {
        const Token& unclosed = tokens_[open.back()];
        result_.invalid.push_back(
            diagnose(unclosed, concat("nothing closes this '", tok::getPunctuatorSpelling(unclosed.getKind()), "'")));
      } else {
        result_.invalid.push_back(diagnose(tokens_[i], concat("nothing opens this ", closer)));
      }
      return;
    }
    for (size_t i : open)
      if (text_of(tokens_[i]) != SourceText::kGenerated) {
        result_.invalid.push_back(diagnose(
            tokens_[i], concat("nothing closes this '", tok::getPunctuatorSpelling(tokens_[i].getKind()), "'")));
        return;
      }
  }

  // Limits nesting without brackets: `- - - x`, `a = a = 1`, `if (a) if (b) …`. Clang recurses with it too, and would
  // overflow its stack.
  void check_depth() {
    // For each open bracket: nesting tokens and operators since the current statement or element began.
    struct Counts {
      size_t nested = 0, elses = 0, operators = 0;
    };
    std::vector<Counts> counts(1);
    size_t nested = 0;  // sum over all open brackets
    auto reset = [&](size_t elses) {
      nested -= counts.back().nested - elses;
      counts.back() = {elses, elses, 0};
    };
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Token& t = tokens_[i];
      if (t.isAnnotation()) continue;
      bool is_opener = t.isOneOf(tok::l_paren, tok::l_brace, tok::l_square);
      bool is_closer = t.isOneOf(tok::r_paren, tok::r_brace, tok::r_square);
      if (is_closer) {
        reset(0);
        counts.pop_back();
      }
      bool ends = t.isOneOf(tok::semi, tok::r_brace, tok::comma);
      if (ends) reset(is(i + 1, tok::kw_else) ? counts.back().elses : 0);
      bool is_name = t.isAnyIdentifier() || t.isLiteral();
      bool is_operator =
          !is_name && tok::getPunctuatorSpelling(t.getKind()) && !t.isOneOf(tok::coloncolon, tok::period);
      bool is_statement = t.isOneOf(tok::kw_for, tok::kw_while, tok::kw_do, tok::kw_switch) ||
                          (t.is(tok::kw_if) && !is(i - 1, tok::kw_else));
      // `sizeof`, `__alignof`, `__extension__` and others are prefix operators; no valid text has very many keywords.
      bool is_keyword = !is_name && t.getIdentifierInfo() && !t.is(tok::kw_if);
      bool follows_group = i > 0 && tokens_[i - 1].isOneOf(tok::r_paren, tok::r_square);
      bool follows_operand =
          follows_group || (i > 0 && (tokens_[i - 1].isAnyIdentifier() || tokens_[i - 1].isLiteral()));
      bool nests = (is_operator && !is_opener && !ends && !follows_operand) ||  // a prefix operator
                   (follows_group && (is_name || is_opener)) ||                 // a cast, a call of a call
                   is_keyword || t.isOneOf(tok::equal, tok::question, tok::colon, tok::less);
      size_t weight = is_statement ? 4 : nests ? 1 : 0;
      counts.back().nested += weight;
      counts.back().elses += t.is(tok::kw_else);
      counts.back().operators += is_operator && !ends && !is_opener && !is_closer;
      nested += weight;
      if (nested > 4 * kMaxDepth || counts.back().operators > kMaxOperators) {
        result_.invalid.push_back(
            diagnose(t, nested > 4 * kMaxDepth ? "expressions or statements are nested too deep"
                                               : concat("an expression has more than ", kMaxOperators, " operators")));
        return;
      }
      if (is_opener) counts.emplace_back();
    }
  }

  SourceText text_of(const Token& t) const {
    std::optional<int> line = diagnostics_.line_of(sources_, sources_.getExpansionLoc(t.getLocation()));
    return line ? unit_.source_map.locate(*line).text : SourceText::kGenerated;
  }

  // match_ maps each bracket to its partner's index; recomputed after tokens are added or removed.
  void match_brackets() {
    match_.assign(tokens_.size(), 0);
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].isOneOf(tok::l_brace, tok::l_paren, tok::l_square)) open.push_back(i);
      if (tokens_[i].isOneOf(tok::r_brace, tok::r_paren, tok::r_square) && !open.empty()) {
        match_[i] = open.back();
        match_[open.back()] = i;
        open.pop_back();
      }
    }
  }

  // ---- Attributes

  // Whether `[[name …]]` is a C++ or Clang attribute; any other attribute is Metal's.
  static bool is_cxx_attribute(llvm::StringRef name) {
    return llvm::StringSwitch<bool>(name)
        .Cases("maybe_unused", "nodiscard", "fallthrough", "likely", "unlikely", "deprecated", "clang", "gnu", true)
        .Default(false);
  }

  void drop_attributes() {
    std::vector<Token> kept;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (is(i, tok::l_square) && is(i + 1, tok::l_square) && match_[i + 1] + 1 == match_[i] &&
          !is_cxx_attribute(i + 2 < tokens_.size() ? identifier(tokens_[i + 2]) : "")) {
        i = match_[i];
        continue;
      }
      kept.push_back(tokens_[i]);
    }
    tokens_ = std::move(kept);
    match_brackets();
  }

  // ---- Address spaces

  static bool is_address_space(llvm::StringRef name) {
    return llvm::StringSwitch<bool>(name).Cases("device", "constant", "thread", "threadgroup", true).Default(false);
  }

  // Metal selects a constructor by the address space of its object, C++ has one address space. Of a class with
  // `Q() threadgroup` and another constructor without parameters, the former gets a parameter of a type that nothing is
  // converted to: C++ never selects it, and a variable in threadgroup memory looks for it
  // (compiler/clang/threadgroup_variables.h).
  void mark_threadgroup_constructors() {
    std::vector<bool> is_marked(tokens_.size());  // at the `)` of the parameter list
    for (size_t open = 0; open < tokens_.size(); ++open)
      if (is(open, tok::l_brace)) mark_threadgroup_constructors(open, is_marked);
    if (llvm::none_of(is_marked, [](bool marked) { return marked; })) return;
    std::vector<Token> out;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (is_marked[i]) {
        out.push_back(make_identifier(tokens_[i], "__kiln"));
        out.push_back(make(tokens_[i], tok::coloncolon));
        out.push_back(make_identifier(tokens_[i], kThreadgroupObject));
      }
      out.push_back(tokens_[i]);
      if (!is_marked[i]) continue;
      while (is_object_qualifier(i + 1)) out.push_back(tokens_[++i]);
      // With a parameter it is no function that C++ could define.
      if (!is(i + 1, tok::equal) || !is(i + 2, tok::kw_default)) continue;
      out.push_back(make(tokens_[i + 1], tok::l_brace));
      out.push_back(make(tokens_[i + 2], tok::r_brace));
      i += 2;
    }
    tokens_ = std::move(out);
    match_brackets();
  }

  // The constructors of the class whose body opens at `open`, if it is a class.
  void mark_threadgroup_constructors(size_t open, std::vector<bool>& is_marked) const {
    size_t key = class_key(open);
    if (key > open || is(key, tok::kw_enum)) return;
    size_t at = key + 1;
    while (at < open && tokens_[at].isOneOf(tok::kw___attribute, tok::kw_alignas))
      at = is(at + 1, tok::l_paren) ? match_[at + 1] + 1 : at + 1;
    llvm::StringRef name = identifier(tokens_[at]);
    if (name.empty()) return;
    std::vector<size_t> in_threadgroup;
    bool has_other = false;
    for (size_t i = open + 1; i < match_[open]; ++i) {
      const bool begins_member =
          tokens_[i - 1].isOneOf(tok::l_brace, tok::r_brace, tok::semi, tok::colon, tok::greater) ||
          tokens_[i - 1].isOneOf(tok::kw_constexpr, tok::kw_inline, tok::kw_explicit);
      if (begins_member && is_word(i, name) && is(i + 1, tok::l_paren) && is(i + 2, tok::r_paren)) {
        bool is_threadgroup = false;
        for (size_t j = i + 3; is_object_qualifier(j); ++j) is_threadgroup |= is_word(j, "threadgroup");
        if (is_threadgroup) in_threadgroup.push_back(i + 2);
        has_other |= !is_threadgroup;
      }
      if (tokens_[i].isOneOf(tok::l_brace, tok::l_paren, tok::l_square)) i = match_[i];
    }
    if (!has_other) return;
    for (size_t i : in_threadgroup) is_marked[i] = true;
  }

  // Whether the token may follow a member function's parameters.
  bool is_object_qualifier(size_t i) const {
    return i < tokens_.size() &&
           (tokens_[i].isOneOf(tok::kw_const, tok::kw_volatile, tok::amp, tok::ampamp, tok::kw_noexcept) ||
            is_address_space(identifier(tokens_[i])));
  }

  // `threadgroup` stays as a token until overloads have been merged; merging ignores it.
  void erase_address_spaces() {
    std::vector<Token> kept;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      llvm::StringRef name = identifier(tokens_[i]);
      bool is_space = is_address_space(name);
      if (!is_space && name != "kernel") {
        kept.push_back(tokens_[i]);
        continue;
      }
      erased_before_.insert(kept.size());
      if (!is_space || qualifies_function(i)) continue;
      if (name == "constant") kept.push_back(make(tokens_[i], tok::kw_const));
      if (name == "threadgroup") kept.push_back(tokens_[i]);
    }
    // erased_before_ holds the index of the following token; a suffix at the very end has none.
    tokens_ = std::move(kept);
    match_brackets();
  }

  // Whether the address space at `i` follows a parameter list and qualifies the object of a member function:
  // `S() threadgroup = default;`, `float get() const threadgroup;`.
  bool qualifies_function(size_t i) const {
    size_t j = i;
    while (j > 0 && is_object_qualifier(j - 1)) --j;
    if (j == 0 || !is(j - 1, tok::r_paren)) return false;
    size_t open = match_[j - 1];
    if (open == 0) return false;
    // A declaration may begin or continue after the parentheses of these words.
    return !tokens_[open - 1].isOneOf(tok::kw_decltype, tok::kw_alignas, tok::kw__Alignas, tok::kw_typeof) &&
           !tokens_[open - 1].isOneOf(tok::kw_if, tok::kw_for, tok::kw_while, tok::kw_switch, tok::kw_constexpr) &&
           !(is(open - 1, tok::l_paren) && open > 1 && is(open - 2, tok::kw___attribute)) &&
           !tokens_[open - 1].isOneOf(tok::kw___attribute, tok::kw___declspec);
  }

  // Replaces `threadgroup`, or CUDA's `__shared__`, by an attribute (compiler/clang/threadgroup_variables.h).
  void replace_threadgroup_qualifiers(llvm::StringRef word, llvm::StringRef attribute) {
    std::vector<Token> out;
    std::vector<size_t> index(tokens_.size());  // of each token in `out`
    bool has_word = false;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      index[i] = out.size();
      if (is_word(i, word)) {
        has_word = true;
        // After a class body an attribute would apply to the class.
        size_t key = is(i - 1, tok::r_brace) ? class_key(match_[i - 1]) : i;
        if (key == i) {
          push_attribute(tokens_[i], attribute, out);
        } else {
          std::vector<Token> tokens;
          push_attribute(tokens_[i], attribute, tokens);
          out.insert(out.begin() + static_cast<std::ptrdiff_t>(index[key]), tokens.begin(), tokens.end());
          for (size_t j = key; j <= i; ++j) index[j] += tokens.size();
        }
      } else if (is(i, tok::kw_alignas) && has_word && follows_specifier(i)) {
        // After other specifiers Clang accepts C's `_Alignas` but not `alignas`.
        out.push_back(make(tokens_[i], tok::kw__Alignas));
      } else {
        out.push_back(tokens_[i]);
      }
    }
    tokens_ = std::move(out);
    match_brackets();
  }

  // Index of the `struct`, `class`, `union` or `enum` whose body opens at `open`; the index after the matching brace if
  // the body is not a class's.
  size_t class_key(size_t open) const {
    for (size_t j = open; j-- > 0;) {
      if (tokens_[j].isOneOf(tok::kw_struct, tok::kw_class, tok::kw_union, tok::kw_enum))
        return j > 0 && is(j - 1, tok::kw_enum) ? j - 1 : j;  // enum class
      if (tokens_[j].isOneOf(tok::semi, tok::l_brace, tok::r_brace)) break;
      if (tokens_[j].is(tok::r_paren)) {
        j = match_[j];
        bool is_attribute = j > 0 && (tokens_[j - 1].isOneOf(tok::kw_alignas, tok::kw__Alignas, tok::kw___attribute,
                                                             tok::kw___declspec, tok::kw_decltype) ||
                                      tokens_[j - 1].is(tok::l_paren));
        if (!is_attribute) break;  // a function's parameters
      } else if (tokens_[j].is(tok::r_square)) {
        j = match_[j];
      }
    }
    return match_[open] + 1;
  }

  bool follows_specifier(size_t i) const {
    return i > 0 && (tokens_[i - 1].isOneOf(tok::kw_const, tok::kw_volatile, tok::kw_static, tok::kw_extern) ||
                     is_word(i - 1, "threadgroup") || is_word(i - 1, "__shared__"));
  }

  // __attribute__((attribute))
  void push_attribute(const Token& where, llvm::StringRef attribute, std::vector<Token>& out) const {
    out.push_back(make(where, tok::kw___attribute));
    out.push_back(make(where, tok::l_paren));
    out.push_back(make(where, tok::l_paren));
    out.push_back(make_identifier(where, attribute));
    out.push_back(make(where, tok::r_paren));
    out.push_back(make(where, tok::r_paren));
  }

  // ---- CUDA

  // `<<<`, which C++ lexes as `<<` and `<`.
  bool launches_kernel(size_t i) const {
    if (!is(i, tok::lessless) || !is(i + 1, tok::less) || tokens_[i].getLocation().isMacroID()) return false;
    return tokens_[i].getLocation().getLocWithOffset(2) == tokens_[i + 1].getLocation();
  }

  // `const __grid_constant__ Shape x_shape` in Kiln's signature becomes a reference: it is read-only, and a copy for
  // each thread would be in memory.
  void rewrite_cuda() {
    std::vector<Token> kept;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (is_word(i, "__grid_constant__") && i + 1 < tokens_.size()) {
        kept.push_back(tokens_[++i]);
        kept.push_back(make(tokens_[i], tok::amp));
      } else {
        kept.push_back(tokens_[i]);
      }
    }
    tokens_ = std::move(kept);
    match_brackets();
    replace_threadgroup_qualifiers("__shared__", kSharedAttribute);
  }

  // Index of the `>` that closes the `<` at i; i itself if that does not open template arguments.
  size_t template_arguments_end(size_t i) const {
    int depth = 0;
    for (size_t j = i; j < tokens_.size(); ++j) {
      if (tokens_[j].isOneOf(tok::l_paren, tok::l_square, tok::l_brace)) {
        j = match_[j];
        continue;
      }
      if (tokens_[j].is(tok::less)) ++depth;
      if (tokens_[j].is(tok::greater)) --depth;
      if (tokens_[j].is(tok::greatergreater)) depth -= 2;
      if (depth <= 0) return j;
      if (tokens_[j].isOneOf(tok::semi, tok::r_brace)) break;
    }
    return i;
  }

  // ---- Overloads by address space

  // Within a scope [begin, end), drops declarations that repeat an earlier one token for token.
  void merge_scope(size_t begin, size_t end, std::vector<bool>& dropped) {
    std::map<std::string, std::string> bodies;  // by declaration without its body
    for (size_t i = begin; i < end;) {
      size_t first = i;
      size_t body = 0;  // index of the `{` of a function's body, or of the `=` that stands for it
      bool had_address_space = false;
      bool is_class = false, is_namespace = false, is_function = false, has_initializer = false;
      for (; i < end; ++i) {
        if (erased_before_.contains(i)) had_address_space = true;
        const Token& t = tokens_[i];
        if (t.is(tok::semi)) break;
        // Access specifiers such as `public:` are not part of a declaration.
        if (i == first && t.isOneOf(tok::kw_public, tok::kw_private, tok::kw_protected) && is(i + 1, tok::colon)) {
          ++i;
          first = i + 1;
          continue;
        }
        if (t.is(tok::less) && is(i - 1, tok::kw_template)) {
          i = template_arguments_end(i);
          continue;
        }
        if (t.isOneOf(tok::kw_struct, tok::kw_class, tok::kw_union)) is_class = true;
        if (t.is(tok::kw_namespace)) is_namespace = true;
        if (t.is(tok::equal) && !is(i - 1, tok::kw_operator)) {
          if (is_function && body == 0) body = i;  // `= default`, `= delete`
          if (!is_function) has_initializer = true;
        }
        if (t.isOneOf(tok::l_paren, tok::l_square)) {
          if (t.is(tok::l_paren) && !has_initializer) is_function = true;
          for (size_t j = i; j <= match_[i]; ++j)
            if (erased_before_.contains(j)) had_address_space = true;
          i = match_[i];
          continue;
        }
        if (t.is(tok::l_brace)) {
          body = i;
          if (is_namespace || (is_class && !is_function))
            merge_scope(i + 1, match_[i], dropped);
          else if (is_function)
            merge_local_classes(i + 1, match_[i], dropped);
          i = match_[i];
          // A function body or a namespace ends its declaration; a class or an initialiser ends with `;`.
          if (is_function || is_namespace) break;
        }
      }
      size_t last = std::min(i, end - 1);
      i = last + 1;
      bool is_specialization = is_class && !is_function && body != 0 && is(first, tok::kw_template);
      if ((!is_function && !is_specialization) || is_namespace) continue;
      if (body == 0) body = last;  // a declaration without a body
      std::string head = spell(first, body), text = spell(body, last + 1);
      auto [earlier, is_new] = bodies.try_emplace(head, text);
      if (is_new || !had_address_space) continue;
      if (earlier->second == text) {
        std::fill(dropped.begin() + static_cast<ptrdiff_t>(first), dropped.begin() + static_cast<ptrdiff_t>(last + 1),
                  true);
      } else {
        result_.unsupported.push_back(
            diagnose(tokens_[first], concat(is_specialization ? "specializations of '" : "overloads of '",
                                            is_specialization ? class_name(first, body) : function_name(first, body),
                                            "' that differ in the address space and in what they do are not "
                                            "supported")));
      }
    }
  }

  // Statements of a function may repeat; only members of its local classes are merged.
  void merge_local_classes(size_t begin, size_t end, std::vector<bool>& dropped) {
    for (size_t i = begin; i < end; ++i) {
      if (!tokens_[i].isOneOf(tok::kw_struct, tok::kw_class, tok::kw_union)) continue;
      size_t open = i + 1;
      while (open < end && (is(open, tok::identifier) || is(open, tok::coloncolon) || is(open, tok::colon))) ++open;
      if (open >= end || !is(open, tok::l_brace)) continue;
      merge_scope(open + 1, match_[open], dropped);
      i = match_[open];
    }
  }

  // Writes `const` first and once in each type, so that `const device T*` and `constant T*` are equal.
  std::string spell(size_t begin, size_t end) const {
    std::string text, type;
    bool is_const = false;
    auto end_type = [&] {
      text += (is_const ? "const " : "") + type;
      type.clear();
      is_const = false;
    };
    for (size_t i = begin; i < end; ++i) {
      const Token& t = tokens_[i];
      if (is_word(i, "threadgroup")) continue;
      if (t.is(tok::kw_const)) {
        is_const = true;
      } else if (tok::getPunctuatorSpelling(t.getKind()) && t.isNot(tok::coloncolon)) {
        end_type();
        text += spelling(t) + " ";
      } else {
        type += spelling(t) + " ";
      }
    }
    end_type();
    return text;
  }

  // The identifier before the parameter list.
  std::string function_name(size_t begin, size_t end) const {
    for (size_t i = begin; i + 1 < end; ++i) {
      if (is(i, tok::less) && i > begin && is(i - 1, tok::kw_template)) i = template_arguments_end(i);
      if (is(i + 1, tok::l_paren) && !identifier(tokens_[i]).empty()) return identifier(tokens_[i]).str();
    }
    return "operator";
  }

  // The identifier after `struct`.
  std::string class_name(size_t begin, size_t end) const {
    for (size_t i = template_arguments_end(begin + 1); i + 1 < end; ++i)
      if (tokens_[i].isOneOf(tok::kw_struct, tok::kw_class)) return identifier(tokens_[i + 1]).str();
    return "a class";
  }

  void merge_overloads() {
    std::vector<bool> dropped(tokens_.size());
    merge_scope(0, tokens_.size(), dropped);
    std::vector<Token> kept;
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (!dropped[i]) kept.push_back(tokens_[i]);
    tokens_ = std::move(kept);
    match_brackets();
  }

  // ---- Literals

  // The device library's macros have Clang's suffixes, such as f16.
  static bool has_suffix(llvm::StringRef number, bool is_hexadecimal) {
    const size_t digits = is_hexadecimal ? number.find_first_of("pP") : 0;
    return number.find_first_not_of("0123456789.'+-eEpP", digits) != llvm::StringRef::npos;
  }

  void rewrite_literals() {
    std::vector<Token> out;
    for (const Token& t : tokens_) {
      if (t.isNot(tok::numeric_constant)) {
        out.push_back(t);
        continue;
      }
      std::string text = preprocessor_.getSpelling(t);
      bool hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
      bool is_float = text.find_first_of(hexadecimal ? "pP." : "eE.") != std::string::npos;
      if (text.back() == 'h' || text.back() == 'H') {
        text.pop_back();
        if (!is_float) text += ".0";  // 1h
        out.push_back(make_literal(t, tok::numeric_constant, text + "f16"));
      } else if (is_float && text.size() > 2 && (text.ends_with("bf") || text.ends_with("BF"))) {
        push_bfloat(t, text.substr(0, text.size() - 2), out);
      } else if (is_float && !has_suffix(text, hexadecimal)) {
        // Clang's option for literals of type float adds a cast, which an instantiated template has no longer.
        out.push_back(make_literal(t, tok::numeric_constant, text + "f"));
      } else {
        out.push_back(t);
      }
    }
    tokens_ = std::move(out);
    match_brackets();
  }

  // Pushes __builtin_bit_cast(__bf16, (unsigned short)bits), since C++17 has no literal of this type.
  void push_bfloat(const Token& where, llvm::StringRef digits, std::vector<Token>& out) const {
    llvm::APFloat value(llvm::APFloat::BFloat());
    auto status = value.convertFromString(digits, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      out.push_back(where);
      return;
    }
    out.push_back(make(where, tok::kw___builtin_bit_cast));
    out.push_back(make(where, tok::l_paren));
    out.push_back(make_identifier(where, "bfloat"));
    out.push_back(make(where, tok::comma));
    out.push_back(make(where, tok::l_paren));
    out.push_back(make(where, tok::kw_unsigned));
    out.push_back(make(where, tok::kw_short));
    out.push_back(make(where, tok::r_paren));
    out.push_back(make_literal(where, tok::numeric_constant, std::to_string(value.bitcastToAPInt().getZExtValue())));
    out.push_back(make(where, tok::r_paren));
  }

  // ---- Loops

  // Index of the last token of the statement that begins at i.
  size_t statement_end(size_t i) const {
    while (i < tokens_.size() && tokens_[i].isAnnotation()) ++i;
    if (i >= tokens_.size()) return tokens_.size() - 1;
    const Token& t = tokens_[i];
    if (t.is(tok::l_brace)) return match_[i];
    if (t.is(tok::kw_if)) {
      size_t condition = is(i + 1, tok::kw_constexpr) ? i + 2 : i + 1;
      size_t end = statement_end(after_parentheses(condition));
      return is(end + 1, tok::kw_else) ? statement_end(end + 2) : end;
    }
    if (t.isOneOf(tok::kw_for, tok::kw_while, tok::kw_switch)) return statement_end(after_parentheses(i + 1));
    if (t.is(tok::kw_do)) {
      size_t end = statement_end(i + 1);  // the body
      return after_parentheses(end + 2);  // while (…) ;
    }
    if (t.isOneOf(tok::kw_case, tok::kw_default)) {
      while (i < tokens_.size() && !is(i, tok::colon)) i = is_opener(i) ? match_[i] + 1 : i + 1;
      return statement_end(i + 1);
    }
    if (t.is(tok::l_square) && is(i + 1, tok::l_square)) return statement_end(match_[i] + 1);
    for (; i < tokens_.size() && !is(i, tok::semi); ++i)
      if (is_opener(i)) i = match_[i];
    return std::min(i, tokens_.size() - 1);
  }

  bool is_opener(size_t i) const {
    return i < tokens_.size() && tokens_[i].isOneOf(tok::l_brace, tok::l_paren, tok::l_square) && match_[i] > i;
  }
  size_t after_parentheses(size_t i) const { return is(i, tok::l_paren) ? match_[i] + 1 : i + 1; }

  void push_call(const Token& where, llvm::StringRef function, const std::string& argument,
                 std::vector<Token>& out) const {
    out.push_back(make_identifier(where, "__kiln"));
    out.push_back(make(where, tok::coloncolon));
    out.push_back(make_identifier(where, function));
    out.push_back(make(where, tok::l_paren));
    if (!argument.empty()) out.push_back(make_identifier(where, argument));
    out.push_back(make(where, tok::r_paren));
    out.push_back(make(where, tok::semi));
  }

  // All paths out of a scope share one destructor call, so threads that leave a loop there could not be distinguished
  // from those that stay in it.
  void refuse_destructors() {
    for (size_t i = 0; i + 4 < tokens_.size(); ++i)
      if (is(i, tok::tilde) && is(i + 1, tok::identifier) && is(i + 2, tok::l_paren) && is(i + 3, tok::r_paren) &&
          is(i + 4, tok::l_brace))
        result_.unsupported.push_back(
            diagnose(tokens_[i], concat("'~", identifier(tokens_[i + 1]).str(),
                                        "': destructors are not supported where threads wait for one another")));
  }

  // { unsigned __kiln_loop_N = __kiln::loop_enter(); <loop> __kiln::loop_merge(__kiln_loop_N); }
  void mark_loops() {
    std::multimap<size_t, size_t> begins, ends;  // token index -> loop number
    std::vector<size_t> keywords;
    std::vector<bool> closes_do(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!tokens_[i].isOneOf(tok::kw_for, tok::kw_while, tok::kw_do) || closes_do[i]) continue;
      if (tokens_[i].is(tok::kw_do)) {
        size_t keyword = statement_end(i + 1) + 1;
        if (keyword < closes_do.size()) closes_do[keyword] = true;
      }
      size_t begin = i;
      // Loop hints stay with the loop; other pragmas apply to the block that they begin.
      while (begin > 0 && tokens_[begin - 1].is(tok::annot_pragma_loop_hint)) --begin;
      begins.emplace(begin, keywords.size());
      ends.emplace(statement_end(i), keywords.size());
      keywords.push_back(i);
    }
    std::vector<Token> out;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      for (auto [at, loop] : range(begins, i)) {
        const Token& where = tokens_[keywords[loop]];
        out.push_back(make(where, tok::l_brace));
        out.push_back(make(where, tok::kw_unsigned));
        out.push_back(make_identifier(where, concat("__kiln_loop_", loop)));
        out.push_back(make(where, tok::equal));
        push_call(where, "loop_enter", "", out);
      }
      out.push_back(tokens_[i]);
      // Of loops that end at the same token, inner ones have higher numbers and close first.
      std::vector<size_t> closing;
      for (auto [at, loop] : range(ends, i)) closing.push_back(loop);
      std::sort(closing.rbegin(), closing.rend());
      for (size_t loop : closing) {
        const Token& where = tokens_[keywords[loop]];
        push_call(where, "loop_merge", concat("__kiln_loop_", loop), out);
        out.push_back(make(where, tok::r_brace));
      }
    }
    tokens_ = std::move(out);
  }

  static std::vector<std::pair<size_t, size_t>> range(const std::multimap<size_t, size_t>& map, size_t key) {
    auto [begin, end] = map.equal_range(key);
    return {begin, end};
  }

  const KernelUnit& unit_;
  clang::Preprocessor& preprocessor_;
  clang::SourceManager& sources_;
  clang::FileID last_file_;              // of the last is_in_kernel()
  bool is_last_in_caller_text_ = false;  // its result
  const DiagnosticCollector& diagnostics_;
  std::vector<Token> tokens_;
  std::vector<size_t> match_;
  std::optional<bool> defines_printf_;  // computed at the first use
  std::set<size_t> erased_before_;      // tokens that an erased address space preceded
  RewriteResult result_;
};

}  // namespace

// Mentioning such a type suffices, since products can be written with an operator.
static bool is_simdgroup_matrix(llvm::StringRef name) {
  return name == "simdgroup_matrix" || name == "simdgroup_float8x8" || name == "simdgroup_half8x8" ||
         name == "simdgroup_bfloat8x8";
}

bool mentions_convergent_operations(const KernelUnit& unit) {
  if (unit.pastes_tokens) return true;
  if (unit.dialect == Dialect::kCuda) return std::ranges::any_of(unit.identifiers, is_cuda_convergent_operation);
  return std::any_of(unit.identifiers.begin(), unit.identifiers.end(), [](const std::string& name) {
    return name.starts_with("simd_") || name.starts_with("quad_") || name == "threadgroup_barrier" ||
           name == "simdgroup_barrier" || name.starts_with("simdgroup_multiply") || is_simdgroup_matrix(name);
  });
}

RewriteResult rewrite_tokens(std::vector<clang::Token> tokens, const KernelUnit& unit,
                             clang::Preprocessor& preprocessor, const DiagnosticCollector& diagnostics) {
  return Rewriter(unit, preprocessor, diagnostics).run(std::move(tokens));
}

}  // namespace kiln
