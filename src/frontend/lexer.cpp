#include "frontend/lexer.h"

#include <algorithm>

namespace kiln {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

class Lexer {
 public:
  Lexer(std::string_view text, std::vector<Token>& tokens, std::deque<std::string>& spliced)
      : text_(text), tokens_(tokens), spliced_(spliced) {}

  void run() {
    while (skip_blanks_and_comments(), pos_ < text_.size()) lex_token();
  }

 private:
  // Length of the line splice at `p` (a backslash, blanks, a line end), or 0.
  size_t splice_at(size_t p) const {
    if (p >= text_.size() || text_[p] != '\\') return 0;
    size_t q = p + 1;
    while (q < text_.size() && is_blank(text_[q])) ++q;
    return q < text_.size() && text_[q] == '\n' ? q + 1 - p : 0;
  }

  // The character `ahead` places after the current one, splices not counted.
  char peek(size_t ahead = 0) const {
    size_t p = pos_;
    for (;;) {
      while (size_t n = splice_at(p)) p += n;
      if (p >= text_.size()) return '\0';
      if (ahead-- == 0) return text_[p];
      ++p;
    }
  }

  // Takes one character, with the splices before it.
  void advance() {
    while (size_t n = splice_at(pos_)) pos_ += n, saw_splice_ = true;
    if (pos_ < text_.size()) ++pos_;
  }

  void skip_blanks_and_comments() {
    while (pos_ < text_.size()) {
      if (size_t n = splice_at(pos_)) {
        pos_ += n;
      } else if (text_[pos_] == '\n') {
        ++pos_;
        at_line_start_ = true;
        in_directive_ = false;
      } else if (is_blank(text_[pos_])) {
        ++pos_;
      } else if (peek() == '/' && peek(1) == '/') {
        while (pos_ < text_.size() && text_[pos_] != '\n') pos_ += std::max<size_t>(1, splice_at(pos_));
      } else if (peek() == '/' && peek(1) == '*') {
        advance(), advance();
        while (pos_ < text_.size() && !(peek() == '*' && peek(1) == '/')) advance();
        advance(), advance();
      } else {
        return;
      }
    }
  }

  void lex_token() {
    size_t start = pos_;
    saw_splice_ = false;
    char c = peek();
    if (c == '#' && at_line_start_) in_directive_ = true;
    at_line_start_ = false;

    TokenKind kind = TokenKind::kPunctuation;
    if (is_identifier_start(c)) {
      while (is_identifier_part(peek())) advance();
      std::string_view word = spelling(start);
      bool raw = word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
      bool prefix = word == "L" || word == "u" || word == "U" || word == "u8";
      if (raw && peek() == '"') {
        kind = TokenKind::kString;
        take_raw_string();
      } else if (prefix && (peek() == '"' || peek() == '\'')) {
        kind = peek() == '"' ? TokenKind::kString : TokenKind::kCharacter;
        take_quoted(peek());
      } else {
        kind = TokenKind::kIdentifier;
      }
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      kind = TokenKind::kNumber;
      take_number();
    } else if (c == '"' || c == '\'') {
      kind = c == '"' ? TokenKind::kString : TokenKind::kCharacter;
      take_quoted(c);
    } else {
      advance();
      // Of the punctuation of several characters, only what changes a reading of declarations matters.
      char next = peek();
      if ((c == ':' && next == ':') || (c == '#' && next == '#') || (c == '-' && next == '>'))
        advance();
      else if ((c == '=' || c == '!' || c == '<' || c == '>' || c == '+' || c == '-' || c == '*' || c == '/' ||
                c == '%' || c == '&' || c == '|' || c == '^') &&
               next == '=')
        advance();
      else if ((c == '+' || c == '-' || c == '&' || c == '|') && next == c)
        advance();
    }
    tokens_.push_back({kind, in_directive_, spelling(start)});
  }

  void take_number() {
    for (;;) {
      char c = peek();
      if ((c == 'e' || c == 'E' || c == 'p' || c == 'P') && (peek(1) == '+' || peek(1) == '-')) {
        advance(), advance();
      } else if (is_identifier_part(c) || c == '.' || (c == '\'' && is_identifier_part(peek(1)))) {
        advance();
      } else {
        return;
      }
    }
  }

  // A literal in quotes; it ends at its line's end if nothing closes it.
  void take_quoted(char quote) {
    advance();
    while (pos_ < text_.size() && peek() != quote && peek() != '\n') {
      if (peek() == '\\') advance();
      advance();
    }
    if (peek() == quote) advance();
  }

  // In a raw string nothing is spliced: it is read from the text itself.
  void take_raw_string() {
    advance();  // the quote
    size_t open = text_.find('(', pos_);
    if (open == std::string_view::npos || open - pos_ > 16) return;
    std::string end = ")" + std::string(text_.substr(pos_, open - pos_)) + "\"";
    size_t close = text_.find(end, open);
    pos_ = close == std::string_view::npos ? text_.size() : close + end.size();
  }

  std::string_view spelling(size_t start) {
    std::string_view raw = text_.substr(start, pos_ - start);
    if (!saw_splice_) return raw;
    std::string clean;
    for (size_t p = start; p < pos_;) {
      if (size_t n = splice_at(p))
        p += n;
      else
        clean += text_[p++];
    }
    return spliced_.emplace_back(std::move(clean));
  }

  std::string_view text_;
  std::vector<Token>& tokens_;
  std::deque<std::string>& spliced_;
  size_t pos_ = 0;
  bool at_line_start_ = true;
  bool in_directive_ = false;
  bool saw_splice_ = false;
};

}  // namespace

bool is_identifier_start(char c) {
  // Bytes of UTF-8 letters count as letters, as they do in C++.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_identifier_part(char c) { return is_identifier_start(c) || is_digit(c); }

bool is_identifier(std::string_view text) {
  return !text.empty() && is_identifier_start(text[0]) && std::all_of(text.begin(), text.end(), is_identifier_part);
}

TokenList::TokenList(std::string_view text) { Lexer(text, tokens_, spliced_).run(); }

}  // namespace kiln
