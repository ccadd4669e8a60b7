// Tokens of C++, Metal and CUDA text, as far as a front end needs them that generates signatures.
//
// It is no preprocessor and no parser: it knows comments, literals (raw strings too), line splices and preprocessor
// lines, and cuts the rest into identifiers, numbers and punctuation. It accepts every text: what a compiler would
// refuse (an unterminated comment, a stray character) ends in some token, and the compiler gives the message.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

enum class TokenKind : uint8_t { kIdentifier, kNumber, kString, kCharacter, kPunctuation };

struct Token {
  TokenKind kind = TokenKind::kPunctuation;
  bool in_directive = false;  // on a preprocessor line, its `#` included
  std::string_view text;      // without line splices

  bool is(std::string_view spelling) const { return text == spelling; }
  bool is_identifier() const { return kind == TokenKind::kIdentifier; }
};

// Views into the text that was lexed, and into storage of its own where a splice cut a token in two. The text must
// outlive it.
class TokenList {
 public:
  explicit TokenList(std::string_view text);
  TokenList(TokenList&&) = default;  // NOLINT(performance-noexcept-move-constructor): std::deque's allocates
  TokenList(const TokenList&) = delete;
  TokenList& operator=(const TokenList&) = delete;

  auto begin() const { return tokens_.begin(); }
  auto end() const { return tokens_.end(); }
  size_t size() const { return tokens_.size(); }
  const Token& operator[](size_t i) const { return tokens_[i]; }

 private:
  std::vector<Token> tokens_;
  std::deque<std::string> spliced_;
};

bool is_identifier_start(char c);
bool is_identifier_part(char c);

/// Whether `text` is exactly one identifier (keywords included).
bool is_identifier(std::string_view text);

}  // namespace kiln
