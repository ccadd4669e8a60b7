#include "targets/cuda/nvrtc_diagnostics.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "core/text.h"

namespace kiln {
namespace {

constexpr std::string_view kBlanks = " \t\v\f\r";

// One message of the log.
struct Message {
  Severity severity = Severity::kError;
  std::string text;
  std::string file;  // empty: none is named
  int line = 0;
  int column = 0;
  bool at_end = false;    // of the whole text
  int asked_at_line = 0;  // of the unit's text, for a message about another file
};

std::optional<Severity> read_severity(std::string_view word) {
  if (word.ends_with("error")) return Severity::kError;  // "catastrophic error", "internal error"
  if (word == "warning") return Severity::kWarning;
  if (word == "note") return Severity::kNote;
  return std::nullopt;
}

// "error: text", "warning #177-D: text"
bool read_head(std::string_view rest, Message& message) {
  size_t colon = rest.find(": ");
  if (colon == std::string_view::npos) return false;
  std::string_view word = rest.substr(0, colon);
  if (size_t number = word.find(" #"); number != std::string_view::npos) word = word.substr(0, number);
  std::optional<Severity> severity = read_severity(word);
  if (!severity) return false;
  message.severity = *severity;
  message.text = rest.substr(colon + 2);
  return true;
}

// The first line of a message, in one of the forms that NVRTC and its assembler have.
std::optional<Message> read_first_line(std::string_view line) {
  Message message;
  if (line.empty() || kBlanks.find(line[0]) != std::string_view::npos) return std::nullopt;
  constexpr std::string_view kEnd = "At end of source: ";
  if (line.starts_with(kEnd)) {
    message.at_end = true;
    if (read_head(line.substr(kEnd.size()), message)) return message;
    return std::nullopt;
  }
  if (line.starts_with("ptxas ")) {
    for (std::string_view word : {"error", "fatal", "warning"}) {
      size_t at = line.find(word);
      if (at == std::string_view::npos) continue;
      size_t colon = line.find(": ", at);
      if (colon == std::string_view::npos) continue;
      message.severity = word == "warning" ? Severity::kWarning : Severity::kError;
      message.text = concat("ptxas: ", line.substr(colon + 2));
      return message;
    }
    return std::nullopt;
  }
  for (size_t close = line.find("): "); close != std::string_view::npos; close = line.find("): ", close + 1)) {
    size_t open = line.rfind('(', close);
    if (open == std::string_view::npos || open == 0) continue;
    auto [end, error] = std::from_chars(line.data() + open + 1, line.data() + close, message.line);
    if (error != std::errc() || end != line.data() + close) continue;
    message.file = line.substr(0, open);
    if (read_head(line.substr(close + 3), message)) return message;
  }
  return std::nullopt;
}

bool is_caret(std::string_view line) {
  size_t first = line.find_first_not_of(kBlanks);
  return first != std::string_view::npos && line.substr(first) == "^";
}

// "… at line 3 of kernel.cu": the last one is where the unit's text asks.
int line_that_asks(std::string_view line) {
  std::string_view before = " at line ";
  size_t at = line.rfind(before);
  if (at == std::string_view::npos) return 0;
  int number = 0;
  auto [end, error] = std::from_chars(line.data() + at + before.size(), line.data() + line.size(), number);
  std::string_view rest(end, static_cast<size_t>(line.data() + line.size() - end));
  return error == std::errc() && rest == concat(" of ", kUnitFile) ? number : 0;
}

std::vector<Message> read_messages(std::string_view log) {
  std::vector<Message> messages;
  std::vector<std::string_view> lines = split_lines(log);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (std::optional<Message> message = read_first_line(lines[i])) {
      messages.push_back(std::move(*message));
      continue;
    }
    if (messages.empty() || lines[i].empty() || kBlanks.find(lines[i][0]) == std::string_view::npos) continue;
    Message& message = messages.back();
    if (i + 1 < lines.size() && is_caret(lines[i + 1])) {
      // Text and caret are moved by two columns. Both count bytes, and tabs are tabs.
      if (message.column == 0) message.column = static_cast<int>(lines[i + 1].find('^')) - 1;
      ++i;
    } else if (int line = line_that_asks(lines[i])) {
      // A note that follows its error stands for the same.
      for (auto earlier = messages.rbegin(); earlier != messages.rend(); ++earlier) {
        if (earlier->asked_at_line == 0) earlier->asked_at_line = line;
        if (earlier->severity != Severity::kNote) break;
      }
    } else if (message.column == 0) {
      std::string_view more = lines[i].substr(std::min(lines[i].find_first_not_of(kBlanks), lines[i].size()));
      message.text += concat(message.text.ends_with(':') ? " " : "; ", more);
    }
  }
  return messages;
}

class Placer {
 public:
  explicit Placer(const KernelUnit& unit) : unit_(unit), map_(unit.source_map), lines_(split_lines(unit.text)) {}

  // Whether the message has a place in the caller's text.
  bool place(const Message& message, Diagnostic& diagnostic) const {
    int line = message.line, column = message.column;
    if (message.at_end) {
      line = map_.body_first_line + map_.body_lines;
      column = 1;
    } else if (message.file != kUnitFile) {
      line = message.asked_at_line;
      column = 0;
    }
    if (line < 1) return false;
    if (static_cast<size_t>(line) <= lines_.size()) move_to_end_of_text(line, column);
    SourcePosition position = map_.locate(line);
    std::optional<std::string_view> found = text_at(line, position);
    if (!found) return false;
    std::string_view text = *found;
    if (column == 0) column = static_cast<int>(std::min(text.find_first_not_of(kBlanks), text.size())) + 1;
    diagnostic.text = position.text;
    diagnostic.line = position.line;
    diagnostic.column = column;
    diagnostic.source_line = text;
    diagnostic.file = unit_.path_of(position);
    return position.text != SourceText::kGenerated;
  }

 private:
  // Lines of included files are numbered behind those of the unit's text.
  std::optional<std::string_view> text_at(int line, const SourcePosition& position) const {
    if (static_cast<size_t>(line) <= lines_.size()) return lines_[static_cast<size_t>(line) - 1];
    if (position.text != SourceText::kIncluded) return std::nullopt;
    std::vector<std::string_view> lines = split_lines(unit_.included_files[position.file].text);
    if (static_cast<size_t>(position.line) > lines.size()) return std::nullopt;
    return lines[static_cast<size_t>(position.line) - 1];
  }

  // What misses something at the end of the body or the header shows at what Kiln wrote behind it.
  void move_to_end_of_text(int& line, int& column) const {
    int first = 0;
    if (line >= map_.body_first_line + map_.body_lines && column == 1)
      first = map_.body_first_line;
    else if (line == map_.header_lines + 1)
      first = 1;
    else
      return;
    for (int last = std::min(line - 1, first == 1 ? map_.header_lines : map_.body_first_line + map_.body_lines - 1);
         last >= first; --last) {
      std::string_view text = lines_[static_cast<size_t>(last) - 1];
      size_t end = text.find_last_not_of(kBlanks);
      if (end == std::string_view::npos) continue;
      line = last;
      column = static_cast<int>(end) + 2;
      return;
    }
  }

  const KernelUnit& unit_;
  const SourceMap& map_;
  std::vector<std::string_view> lines_;
};

}  // namespace

std::vector<Diagnostic> read_nvrtc_log(const KernelUnit& unit, std::string_view log) {
  Placer placer(unit);
  std::vector<std::pair<Diagnostic, bool>> entries;
  bool has_callers_error = false;
  for (Message& message : read_messages(log)) {
    Diagnostic diagnostic;
    diagnostic.severity = message.severity;
    diagnostic.message = std::move(message.text);
    bool is_placed = placer.place(message, diagnostic);
    has_callers_error = has_callers_error || (is_placed && diagnostic.severity == Severity::kError);
    entries.emplace_back(std::move(diagnostic), is_placed);
  }
  // Beside an error in the caller's text, what has no place in it only repeats that the kernel cannot be made.
  std::vector<Diagnostic> result;
  for (auto& [diagnostic, is_placed] : entries)
    if (is_placed || (!has_callers_error && diagnostic.severity == Severity::kError))
      result.push_back(std::move(diagnostic));
  return result;
}

}  // namespace kiln
