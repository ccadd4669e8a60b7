// Which names a kernel's text uses, and which it makes itself.
//
// A generated signature offers names (`thread_position_in_grid`, `inp_shape`) only to bodies that use them. The
// decision is made on tokens: a comment, a string or a longer name that contains the word is no use. A name that the
// body declares in its outermost block is the body's own, since a parameter of that name would be a redefinition; a
// declaration in an inner block shadows the parameter and changes nothing. Neither the header nor what is included is
// searched for uses.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/included_file.h"
#include "frontend/lexer.h"

namespace kiln {

/// The names that `body`, the text of a function's body, declares in its outermost block: variables (structured
/// bindings too), types, enumerators, aliases, functions.
std::vector<std::string_view> outermost_declarations(const TokenList& body);

/// The names that `text` declares at global scope or in namespace `metal`: functions, variables, types, templates,
/// aliases, namespaces and macros. Specialisations declare none.
std::vector<std::string_view> namespace_names(const TokenList& text);

// A kernel's text, read once when the kernel is made.
class KernelText {
 public:
  KernelText(std::string header, std::string body, KernelFiles files = {});
  KernelText(const KernelText&) = delete;
  KernelText& operator=(const KernelText&) = delete;

  const std::string& header() const { return header_; }
  const std::string& body() const { return body_; }
  const KernelFiles& files() const { return files_; }

  /// Whether the body uses `name` and does not declare it itself.
  bool body_uses(std::string_view name) const { return used_.contains(name) && !body_declares(name); }
  /// Whether the body declares `name` in its outermost block, so that no parameter can have it.
  bool body_declares(std::string_view name) const { return declared_.contains(name); }

  /// Every identifier of header, body and what they include, sorted.
  const std::vector<std::string>& identifiers() const { return identifiers_; }
  bool pastes_tokens() const { return pastes_tokens_; }
  /// What the header and its included files declare for themselves (`namespace_names`).
  const std::vector<std::string>& own_names() const { return own_names_; }
  /// The names in `#include`s of header, body and what they include.
  const std::vector<std::string>& included_names() const { return included_names_; }

 private:
  std::string header_;
  std::string body_;
  KernelFiles files_;
  TokenList body_tokens_;
  std::unordered_set<std::string_view> used_;
  std::unordered_set<std::string_view> declared_;
  std::vector<std::string> identifiers_;
  std::vector<std::string> own_names_, included_names_;
  bool pastes_tokens_ = false;
};

}  // namespace kiln
