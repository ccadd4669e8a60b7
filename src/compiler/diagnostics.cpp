#include "compiler/diagnostics.h"

#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/raw_ostream.h>

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
  printer_->printer.BeginSourceFile(options, preprocessor);
}

void DiagnosticCollector::EndSourceFile() { printer_->printer.EndSourceFile(); }

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
  Diagnostic placed = at_line(static_cast<int>(presumed.getLine()), "");
  diagnostic.text = placed.text;
  diagnostic.line = placed.line;
  diagnostic.source_line = std::move(placed.source_line);
  diagnostic.column = column;
  // An error that shows only at the text's end, after the body, is told where the body ends.
  if (diagnostic.text == SourceText::kBody && column > static_cast<int>(diagnostic.source_line.size()) + 1)
    diagnostic.column = static_cast<int>(diagnostic.source_line.size()) + 1;
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

  llvm::SmallString<128> message;
  info.FormatDiagnostic(message);
  Entry entry;
  entry.diagnostic.message = in_metal_words(message.str().str());
  entry.diagnostic.severity = level >= clang::DiagnosticsEngine::Error ? Severity::kError
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
}

std::vector<Diagnostic> DiagnosticCollector::take() {
  std::vector<Diagnostic> result;
  for (Entry& entry : entries_)
    if (entry.placed || entry.diagnostic.severity != Severity::kNote) result.push_back(std::move(entry.diagnostic));
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
  return message;
}

}  // namespace kiln
