#include "compiler/diagnostics.h"

#include <clang/Basic/DiagnosticSema.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/Lexer.h>
#include <clang/Lex/Preprocessor.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "core/attribute_table.h"
#include "core/text.h"

namespace kiln {
namespace {

// Of "static assertion failed due to requirement '…': <sentence>", the sentence.
void keep_assertion(std::string& message) {
  if (!message.starts_with("static assertion failed")) return;
  bool has_requirement = message.find("requirement '") != std::string::npos;
  std::string_view before = has_requirement ? "': " : ": ";
  if (size_t at = message.find(before); at != std::string::npos) message.erase(0, at + before.size());
}

// Between the first pair of quotes at or behind `from`.
std::string_view quoted(std::string_view message, size_t from = 0) {
  size_t open = message.find('\'', from);
  if (open == std::string_view::npos) return {};
  size_t close = message.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view() : message.substr(open + 1, close - open - 1);
}

}  // namespace

// Clang's own rendering, for `.log`.
struct DiagnosticCollector::LogPrinter {
  explicit LogPrinter(std::string& log)
      : stream(log), options(new clang::DiagnosticOptions), printer(stream, options.get()) {}
  llvm::raw_string_ostream stream;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options;
  clang::TextDiagnosticPrinter printer;
};

DiagnosticCollector::DiagnosticCollector(const KernelUnit& unit, std::string kernel_file)
    : unit_(unit),
      kernel_file_(std::move(kernel_file)),
      lines_(split_lines(unit.text)),
      printer_(std::make_unique<LogPrinter>(log_)) {}

DiagnosticCollector::~DiagnosticCollector() = default;

void DiagnosticCollector::BeginSourceFile(const clang::LangOptions& options, const clang::Preprocessor* preprocessor) {
  preprocessor_ = preprocessor;
  printer_->printer.BeginSourceFile(options, preprocessor);
}

void DiagnosticCollector::EndSourceFile() { printer_->printer.EndSourceFile(); }

// What misses something at the end of the body or the header shows at what Kiln wrote behind it.
void DiagnosticCollector::move_to_end_of_text(int& line, int& column) const {
  const SourceMap& map = unit_.source_map;
  int first = 0;
  if (line == map.body_first_line + map.body_lines && column == 1)
    first = map.body_first_line;
  else if (line == map.header_lines + 1)
    first = 1;
  else
    return;
  for (int last = line - 1; last >= first; --last) {
    size_t end = lines_[last - 1].find_last_not_of(" \t\v\f\r");
    if (end == std::string_view::npos) continue;
    line = last;
    column = static_cast<int>(end) + 2;
    return;
  }
}

bool DiagnosticCollector::place(const clang::SourceManager& sources, clang::SourceLocation location,
                                Diagnostic& diagnostic) const {
  if (location.isInvalid()) return false;
  // Inside a macro: where the kernel uses it, or where it wrote the argument.
  clang::PresumedLoc presumed = sources.getPresumedLoc(sources.getFileLoc(location));
  if (presumed.isInvalid()) return false;
  llvm::StringRef file = presumed.getFilename();
  file.consume_front("./");
  if (file != kernel_file_) return false;
  int column = static_cast<int>(presumed.getColumn());
  int line = static_cast<int>(presumed.getLine());
  move_to_end_of_text(line, column);
  Diagnostic placed = at_line(line, "");
  diagnostic.text = placed.text;
  diagnostic.line = placed.line;
  diagnostic.source_line = std::move(placed.source_line);
  diagnostic.column = column;
  return true;
}

Diagnostic DiagnosticCollector::at_line(int generated_line, std::string message) const {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  SourcePosition position = unit_.source_map.locate(generated_line);
  diagnostic.text = position.text;
  diagnostic.line = position.line;
  if (generated_line >= 1 && static_cast<size_t>(generated_line) <= lines_.size())
    diagnostic.source_line = lines_[generated_line - 1];
  return diagnostic;
}

Diagnostic DiagnosticCollector::at(const clang::SourceManager& sources, clang::SourceLocation location,
                                   std::string message) const {
  Diagnostic diagnostic;
  place(sources, location, diagnostic);
  diagnostic.message = std::move(message);
  return diagnostic;
}

void DiagnosticCollector::HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) {
  clang::DiagnosticConsumer::HandleDiagnostic(level, info);
  printer_->printer.HandleDiagnostic(level, info);
  if (level < clang::DiagnosticsEngine::Note) return;
  if (dropped_keyword_.isValid() && info.getLocation() == dropped_keyword_) return;

  llvm::SmallString<128> message;
  info.FormatDiagnostic(message);
  Entry entry;
  entry.diagnostic.message = in_metal_words(message.str().str());
  if (info.getID() == clang::diag::err_undeclared_var_use ||
      info.getID() == clang::diag::err_undeclared_var_use_suggest) {
    bool is_dropped = false;
    entry.diagnostic.message = with_better_suggestion(std::move(entry.diagnostic.message), is_dropped);
    if (is_dropped) dropped_keyword_ = info.getLocation();
  }
  entry.diagnostic.severity = level >= clang::DiagnosticsEngine::Error  ? Severity::kError
                              : level == clang::DiagnosticsEngine::Note ? Severity::kNote
                                                                        : Severity::kWarning;
  if (info.hasSourceManager()) entry.placed = place(info.getSourceManager(), info.getLocation(), entry.diagnostic);

  // The device library asserts in sentences, on behalf of whoever uses it.
  if (!entry.placed) keep_assertion(entry.diagnostic.message);

  // A note in the caller's text gives its place to a message before it that has none.
  if (entry.diagnostic.severity == Severity::kNote && entry.placed)
    for (auto earlier = entries_.rbegin(); earlier != entries_.rend(); ++earlier) {
      if (earlier->diagnostic.severity == Severity::kNote) continue;
      if (!earlier->placed) {
        std::string text = std::move(earlier->diagnostic.message);
        Severity severity = earlier->diagnostic.severity;
        *earlier = entry;
        earlier->diagnostic.message = std::move(text);
        earlier->diagnostic.severity = severity;
        return;
      }
      break;
    }
  entries_.push_back(std::move(entry));
  const Entry& added = entries_.back();
  if (added.placed && added.diagnostic.severity == Severity::kError && info.getLocation().isMacroID())
    add_macro_note(info.getSourceManager(), info.getLocation(), Diagnostic(added.diagnostic));
}

void DiagnosticCollector::add_macro_note(const clang::SourceManager& sources, clang::SourceLocation location,
                                         const Diagnostic& error) {
  Entry note;
  note.placed = place(sources, sources.getSpellingLoc(location), note.diagnostic);
  bool is_elsewhere = note.diagnostic.text != error.text || note.diagnostic.line != error.line ||
                      note.diagnostic.column != error.column;
  if (!note.placed || !is_elsewhere) return;
  note.diagnostic.severity = Severity::kNote;
  note.diagnostic.message =
      concat("expanded from macro '",
             clang::Lexer::getImmediateMacroName(location, sources, preprocessor_->getLangOpts()).str(), "'");
  entries_.push_back(std::move(note));
}

std::string DiagnosticCollector::with_better_suggestion(std::string message, bool& is_dropped) const {
  llvm::StringRef name = quoted(message);
  size_t question = message.find("; did you mean ");
  std::string_view suggested = question == std::string::npos ? std::string_view() : quoted(message, question);
  bool is_keyword =
      !suggested.empty() && preprocessor_->getIdentifierInfo(suggested)->isKeyword(preprocessor_->getLangOpts());
  is_dropped = is_keyword;

  // Clang offers the name itself, which the kernel's function has, or the shape of another argument.
  auto is_in = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name.str()) != names.end();
  };
  if (is_in(unit_.offered_names))
    return concat("use of undeclared identifier '", name.str(),
                  "'; only the body has it, where the body itself names it");
  if (is_in(unit_.missing_names))
    return concat("use of undeclared identifier '", name.str(), "'; only inputs with dimensions have a shape, strides ",
                  "and ndim");

  // As far from the name as Clang goes, and no farther than what it has found.
  unsigned most = (static_cast<unsigned>(name.size()) + 2) / 3;
  if (!suggested.empty() && !is_keyword) most = std::min(most, name.edit_distance(suggested));
  std::string_view best;
  auto consider = [&](std::string_view candidate) {
    unsigned distance = name.edit_distance(candidate, /*AllowReplacements=*/true, most + 1);
    if (distance > most || (distance == most && !best.empty())) return;
    most = distance;
    best = candidate;
  };
  for (const AttributeRow& attribute : kAttributes) consider(attribute.name);
  for (const std::string& offered : unit_.offered_names) consider(offered);
  if (best.empty() && !is_keyword) return message;
  std::string result = concat("use of undeclared identifier '", name.str(), "'");
  return best.empty() ? result : concat(result, "; did you mean '", best, "'?");
}

std::vector<Diagnostic> DiagnosticCollector::take() {
  // Beside an error in the caller's text, what has no place in it only repeats that the kernel cannot be made.
  auto is_callers = [](const Entry& entry) { return entry.placed && entry.diagnostic.text != SourceText::kGenerated; };
  bool has_callers_error = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return is_callers(entry) && entry.diagnostic.severity == Severity::kError;
  });
  std::vector<Diagnostic> result;
  for (Entry& entry : entries_)
    if (has_callers_error ? is_callers(entry) : entry.placed || entry.diagnostic.severity != Severity::kNote)
      result.push_back(std::move(entry.diagnostic));
  entries_.clear();
  return result;
}

std::string DiagnosticCollector::take_log() {
  printer_->stream.flush();
  return std::move(log_);
}

std::string in_metal_words(std::string message) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"_Float16", "half"}, {"__bf16", "bfloat"}};
  for (auto [clang_word, metal_word] : kWords)
    for (size_t at; (at = message.find(clang_word)) != std::string::npos;)
      message.replace(at, clang_word.size(), metal_word);
  // What was two words for one type.
  for (std::string_view twice : {"'half' (aka 'half')", "'bfloat' (aka 'bfloat')"})
    for (size_t at; (at = message.find(twice)) != std::string::npos;)
      message.erase(at + twice.find(' '), twice.size() - twice.find(' '));
  return message;
}

}  // namespace kiln
