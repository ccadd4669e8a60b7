// Clang's diagnostics as Kiln's: in the caller's lines, in Metal's words.
#pragma once

#include <clang/Basic/Diagnostic.h>

#include <string>
#include <vector>

#include "core/kernel_unit.h"
#include "kiln/error.h"

namespace kiln {

/// Collects what Clang says about a unit whose text stands in the file `kernel_file`.
///
/// A message without a position in that file (an error inside the device library, say) moves to the innermost of its
/// notes that has one: that is where the caller's text asked for it. One inside a macro stands where the macro is used;
/// a note says where in the macro it is.
class DiagnosticCollector : public clang::DiagnosticConsumer {
 public:
  DiagnosticCollector(const KernelUnit& unit, std::string kernel_file);
  ~DiagnosticCollector() override;

  void BeginSourceFile(const clang::LangOptions& options, const clang::Preprocessor* preprocessor) override;
  void EndSourceFile() override;
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override;

  /// A diagnostic of Kiln's own at a place that Clang knows.
  Diagnostic at(const clang::SourceManager& sources, clang::SourceLocation location, std::string message) const;
  /// The same at a line of the generated text.
  Diagnostic at_line(int generated_line, std::string message) const;

  /// What came, in order. What has no position in the caller's text is left out beside an error that has one; a note
  /// without any position always is.
  std::vector<Diagnostic> take();
  std::string take_log();

 private:
  struct Entry {
    Diagnostic diagnostic;
    bool placed = false;  // has a position in the caller's text
  };

  void move_to_end_of_text(int& line, int& column) const;
  bool place(const clang::SourceManager& sources, clang::SourceLocation location, Diagnostic& diagnostic) const;
  void add_macro_note(const clang::SourceManager& sources, clang::SourceLocation location, const Diagnostic& error);
  /// Names that a signature would have offered, and none of C++'s keywords.
  std::string with_better_suggestion(std::string message, bool& is_dropped) const;

  const KernelUnit& unit_;
  const clang::Preprocessor* preprocessor_ = nullptr;
  // Where Clang took a name for a keyword that it was told not to suggest: what it says of that place next is no news.
  clang::SourceLocation dropped_keyword_;
  std::string kernel_file_;
  std::vector<std::string_view> lines_;  // of the unit's text
  std::vector<Entry> entries_;
  std::string log_;
  struct LogPrinter;
  std::unique_ptr<LogPrinter> printer_;
};

/// `_Float16` and `__bf16` as `half` and `bfloat`.
std::string in_metal_words(std::string message);

}  // namespace kiln
