// Clang's diagnostics as Kiln's: in the caller's lines, in the dialect's words.
#pragma once

#include <clang/Basic/Diagnostic.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/kernel_unit.h"
#include "kiln/error.h"

namespace kiln {

// The file that holds a unit's text. Included files stand beside it.
inline const char* kernel_file(const KernelUnit& unit) {
  return unit.dialect == Dialect::kMetal ? "kernel.metal" : "kernel.cu";
}

/// Collects what Clang says about a unit.
///
/// A message without a position in the unit's files (an error inside the device library, say) moves to the innermost of
/// its notes that has one: that is where the caller's text asked for it. One inside a macro stands where the macro is
/// used; a note says where in the macro it is.
class DiagnosticCollector : public clang::DiagnosticConsumer {
 public:
  explicit DiagnosticCollector(const KernelUnit& unit);
  ~DiagnosticCollector() override;

  void BeginSourceFile(const clang::LangOptions& options, const clang::Preprocessor* preprocessor) override;
  void EndSourceFile() override;
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override;

  /// A diagnostic of Kiln's own at a place that Clang knows.
  Diagnostic at(const clang::SourceManager& sources, clang::SourceLocation location, std::string message) const;
  /// The same at a line of the generated text.
  Diagnostic at_line(int generated_line, std::string message) const;

  /// The line of a place in the unit's text, or in a file that it includes (core/source_map.h). `location` is in no
  /// macro. What `#line` says counts for nothing.
  std::optional<int> line_of(const clang::SourceManager& sources, clang::SourceLocation location) const;

  /// What came, in order. What has no position in the caller's text is left out beside an error that has one; a note
  /// without any position always is.
  std::vector<Diagnostic> take();
  /// Uses of what the device library declares to say why it is not there, and address spaces that Clang has not
  /// understood. They are in take() no more.
  std::vector<Diagnostic> take_unsupported();
  bool has_unsupported() const;
  /// Warnings about the caller's text, each followed by its notes, in order. Errors come without them.
  std::vector<Diagnostic> take_warnings();
  std::string take_log();

 private:
  struct Entry {
    Diagnostic diagnostic;
    bool placed = false;  // has a position in the caller's text
    bool is_unsupported = false;
    // A call that fits no function, and what those of the device library take; false once one of them fails for
    // another reason than the number of arguments.
    bool is_call_without_match = false;
    std::set<int> arguments_taken;
  };

  static void note_unsupported(Entry& entry);
  bool is_lost_address_space(const clang::Diagnostic& info, llvm::StringRef message);
  void handle_warning(const clang::Diagnostic& info);
  void drop_comma_warning(const clang::Diagnostic& info);
  void add_warning(const clang::Diagnostic& info, Severity severity, llvm::StringRef message);
  void move_to_end_of_text(int& line, int& column) const;
  bool place(const clang::SourceManager& sources, clang::SourceLocation location, Diagnostic& diagnostic) const;
  /// The dialect's types, nothing of Kiln's own names, and what a user can do.
  std::string in_users_words(std::string message, unsigned id, const clang::SourceManager* sources,
                             clang::SourceLocation location, const Diagnostic& placed) const;
  /// What a message of a file that was not found says behind it.
  std::string where_looked_for(const Diagnostic& missing) const;
  void add_macro_note(const clang::SourceManager& sources, clang::SourceLocation location, const Diagnostic& error);
  /// Names that a signature would have offered, and none of C++'s keywords.
  std::string with_better_suggestion(std::string message, bool& is_dropped) const;

  const KernelUnit& unit_;
  const clang::Preprocessor* preprocessor_ = nullptr;
  // Where Clang took a name for a keyword that it was told not to suggest: what it says of that place next is no news.
  clang::SourceLocation dropped_keyword_;
  std::vector<std::string_view> lines_;  // of the unit's text
  std::vector<Entry> entries_;
  std::vector<Diagnostic> warnings_;
  bool is_in_warning_ = false;    // what came last was a warning, or a note of one
  bool is_warning_kept_ = false;  // that warning is about the caller's text
  std::string log_;
  struct LogPrinter;
  std::unique_ptr<LogPrinter> printer_;
};

/// Types by Metal's names: `half` for `_Float16`, `float3` for `vec<float, 3>`, `uint` for `unsigned int`.
std::string in_metal_words(std::string message);

}  // namespace kiln
